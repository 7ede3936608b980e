"""Undecimated transforms: two neighbouring axes in one pass, or one axis at a time.

Callers do not choose this strategy: it runs every undecimated operator.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ....lowering.axis import AxisOp
from ....lowering.spec import Task
from ....wavelets import Wavelet
from ..emit import Kernel, undecimated, undecimated_plane
from ..emit.undecimated_plane import PlaneGeometry, tap_range
from ..launches import Launch
from .base import Strategy, StrategyCost, Target, Workload, launches_of, view_values

__all__ = ["UNDECIMATED", "PlaneLaunch", "PlaneStrips", "Undecimated"]

MAX_PLANE_TAPS = 20  # of filters in registers
MAX_REACH = 2**30  # samples from a result to those that it reads
MAX_RUN = 8  # neighbouring columns of a tile, of all that a large dilation leaves apart
GUESSED_ITEMS_PER_UNIT = 1024  # that run at once, unless the device knows better
STRIPS = (4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128)  # results down a strip
STRIP_START = 4  # rows, as long as a group takes to start


class Undecimated(Strategy):
    """A group computes a strip of a tile of columns; of a single axis, an item computes a few results."""

    name = "undecimated"

    def operator(self, op: AxisOp, method: str) -> AxisOp:
        """Return the operator with a dilation of 1, for which kernels are printed."""
        return replace(op, dilation=1)

    def fits(self, tasks: Sequence[Task], dtype: str, target: Target) -> bool:
        """Return whether one pass can transform two neighbouring axes, in both directions."""
        taps = [max(task.op.wavelet.dec_len, task.op.wavelet.rec_len) for task in tasks]
        reach = max(count * task.op.dilation for count, task in zip(taps, tasks, strict=True))
        return max(taps) <= MAX_PLANE_TAPS and reach < MAX_REACH and target.scheme == "auto"

    def launches(self, workload: Workload, target: Target) -> list[Launch]:
        """Return the launch of one pass."""
        if len(workload.tasks) == 2:
            return self._plane(workload, target)
        (task,), (count, _) = workload.tasks, workload.row_counts
        kernel = undecimated.emit(workload.spec, target.dialect)
        rows, columns, planes = workload.rows, workload.columns, workload.planes
        # A tile has a power of two of columns.
        shift = min((max(1, columns) - 1).bit_length(), (kernel.items - 1).bit_length())
        across = -(-columns // (1 << shift))
        written = rows if workload.spec.back else count
        downwards = -(-written // (undecimated.PLACES * kernel.items >> shift))
        extents = (rows, count, task.op.dilation, columns, shift, across, downwards)
        return launches_of(kernel, across * downwards * planes, workload.views, extents)

    def _plane(self, workload: Workload, target: Target) -> list[Launch]:
        """Return the launch for two axes."""
        spec = workload.spec
        read = workload.rows, workload.columns
        written = workload.row_counts[0], workload.column_counts[0]
        if spec.back:
            read, written = written, read
        if 0 in (*written, workload.planes):
            return []
        row_dilation, column_dilation = (task.op.dilation for task in workload.tasks)
        geometry = self._geometry(workload, target)
        kernel = undecimated_plane.emit(spec, geometry, target.dialect)
        # Columns that are a dilation apart, the runs of them, and the tiles of those.
        lines = -(-written[1] // column_dilation)
        across = -(-lines * geometry.run // geometry.width)
        runs = -(-min(column_dilation, written[1]) * spec.channels // geometry.run)
        phases = min(row_dilation, written[0])
        assert spec.down is not None
        first, last = tap_range(spec.down)
        others = across * runs * phases * workload.planes
        strips = PlaneStrips(-(-written[0] // row_dilation), others, last - first)
        buffers, values = view_values(kernel, workload.views)
        extents = (*read, *written, row_dilation, column_dilation, across, runs, phases)
        groups, strip = strips.divided(target.limits.units * GUESSED_ITEMS_PER_UNIT // kernel.items)
        return [PlaneLaunch(kernel, groups, buffers, (*values, *extents, *strip), strips)]

    def _geometry(self, workload: Workload, target: Target) -> PlaneGeometry:
        spec = workload.spec
        run = min(workload.tasks[1].op.dilation * spec.channels, int(os.environ.get("SWT_RUN", MAX_RUN)))
        assert spec.down is not None
        assert spec.along is not None
        first, last = tap_range(spec.down)
        words = 2 if spec.number == "double" else 1
        per_item = 2 if words * (last - first) < 12 else 1
        batch = 1 if spec.back or words == 2 else 2
        per_item = int(os.environ.get("SWT_PER_ITEM", per_item))
        batch = int(os.environ.get("SWT_BATCH", batch))
        # Those of sums, and others.
        registers = words * 2 * (last - first) * per_item + (44 if spec.back or words == 2 else 28)
        if any(axis.borders[0].weighted for axis in (spec.down, spec.along)):
            registers += 40
        registers = int(os.environ.get("SWT_REGISTERS", registers))
        dilation, written = (
            workload.tasks[1].op.dilation,
            workload.columns if spec.back else workload.column_counts[0],
        )
        elements = -(-written // dilation) * run
        possible = []
        for width in (512, 256, 128, 64):
            if width > 256 * per_item:
                continue
            width = int(os.environ.get("SWT_WIDTH", width))
            geometry = PlaneGeometry(width // run * run, run, per_item, batch, registers)
            items, shared = geometry.items(spec), geometry.shared_bytes(spec)
            if items <= target.limits.items and shared <= target.limits.shared:
                possible.append((-(-elements // geometry.width) * items, geometry))
        return min(possible, key=lambda pair: pair[0])[1]

    def cost(self, axes: int, operations: float, wavelet: Wavelet, scheme: str) -> StrategyCost:
        """Return the cost of a level."""
        if wavelet.dec_len > MAX_PLANE_TAPS:
            return StrategyCost(axes, operations)
        return super().cost(axes, operations, wavelet, scheme)


@dataclass(frozen=True)
class PlaneStrips:
    """The division of rows into strips.

    Parameters
    ----------
    rows : int
        Results down the rows of one phase.
    others : int
        Groups for each strip: tiles, phases and planes.
    overlap : int
        Rows that neighbouring strips share.
    """

    rows: int
    others: int
    overlap: int

    def divided(self, at_once: int) -> tuple[int, tuple[int, int]]:
        """Return the number of groups, and the length and the number of strips.

        ``at_once`` is the number of groups that run at the same time. Rows that two strips share are read
        twice, so strips should be long, but the last round of groups should not be a small one.
        """

        def time(strip: int) -> float:
            rounds = -(-self.others * -(-self.rows // strip) // max(1, at_once))
            return rounds * (min(strip, self.rows) + self.overlap + STRIP_START)

        strip = min(int(os.environ.get("SWT_STRIP", 0)) or min(STRIPS, key=time), self.rows)
        strips = -(-self.rows // strip)
        return self.others * strips, (strip, strips)


@dataclass(frozen=True)
class PlaneLaunch(Launch):
    """A launch whose strips depend on how many groups the device runs at the same time."""

    strips: PlaneStrips

    def fitted(self, capacity: Callable[[Kernel], int]) -> Launch:
        """Return the launch with strips for a device; ``capacity`` tells how many groups it runs at once."""
        groups, strip = self.strips.divided(capacity(self.kernel))
        return replace(self, groups=groups, values=(*self.values[:-2], *strip))


UNDECIMATED = Undecimated()
