"""One axis at a time, with segments of lines in shared memory."""

from __future__ import annotations

from ....wavelets import Wavelet
from ..emit import rowcolumn
from ..launches import Launch
from .base import Strategy, StrategyCost, Target, Workload, launches_of

__all__ = ["ROWCOLUMN", "RowColumn"]

MAX_ITEMS = 256  # work items of a group
MODEL_SEGMENT = 1024  # samples of a segment in the performance model


class RowColumn(Strategy):
    """A group loads segments of lines with their halo, transforms them and writes both bands."""

    name = "rowcolumn"

    def launches(self, workload: Workload, target: Target) -> list[Launch]:
        """Return the launch of one pass."""
        spec, columns, row_pairs = workload.spec, workload.columns, workload.row_pairs
        width = 32 if columns > 8 else columns
        pairs = target.knobs.tile[1] or max(16, 512 // width)
        geometry = rowcolumn.SegmentGeometry(pairs, width, min(MAX_ITEMS, target.limits.items))
        while geometry.shared_bytes(spec) > target.limits.shared and width > 1:
            width //= 2
            geometry = rowcolumn.SegmentGeometry(max(16, pairs // 2), width, geometry.items)
        segments, blocks = -(-row_pairs // geometry.pairs), -(-columns // geometry.width)
        kernel = rowcolumn.emit(spec, geometry, target.dialect)
        extents = (workload.rows, *workload.row_counts, row_pairs, columns, segments, blocks)
        return launches_of(kernel, segments * blocks * workload.planes, workload.views, extents)

    def cost(self, axes: int, operations: float, wavelet: Wavelet, scheme: str) -> StrategyCost:
        """Return the cost of a level: one pass for each axis, through shared memory."""
        return StrategyCost(
            axes, operations, accesses=operations + 2 * axes, barriers=2.0 * axes / MODEL_SEGMENT
        )


ROWCOLUMN = RowColumn()
