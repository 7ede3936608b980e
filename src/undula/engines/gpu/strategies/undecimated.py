"""Undecimated transforms: two neighbouring axes in one pass, or one axis at a time.

Callers do not choose this strategy: it runs every undecimated operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....lowering.axis import AxisOp
from ....lowering.spec import Task
from ....wavelets import Wavelet
from ..emit import KernelSpec, undecimated, undecimated_plane
from ..emit.undecimated_plane import PlaneGeometry, tap_range
from ..launches import Launch
from .base import Strategy, StrategyCost, StripLaunch, Target, Workload, launches_of, view_values

__all__ = ["UNDECIMATED", "PlaneStrips", "Undecimated"]

MAX_PLANE_TAPS = 20  # of filters whose sums are in registers
MAX_EXTENT = 2**29  # rows or columns, with those that taps reach beyond the ends, that kernels can count
MIN_ITEMS = 256  # of a group, for the narrowest tile of the longest filters
WIDTHS = (256, 128, 64)  # of tiles
MAX_RUN = 8  # neighbouring columns of a tile
MAX_BATCHED_SPAN = 11  # rows from the first to the last tap of an inverse with two rows between barriers
GUESSED_ITEMS_PER_UNIT = 1024  # that run at once, unless the device knows better
STRIPS = range(4, 129, 4)  # results down a strip
STRIP_START = 4  # rows that a group could process in the time that it takes to start


class Undecimated(Strategy):
    """A group computes a strip of a tile of columns; of a single axis, an item computes a few results."""

    name = "undecimated"

    def operator(self, op: AxisOp, method: str) -> AxisOp:
        """Return the operator with a dilation of 1, for which kernels are printed."""
        return replace(op, dilation=1)

    def fits(self, tasks: Sequence[Task], dtype: str, target: Target) -> bool:
        """Return whether one pass can transform two neighbouring axes, in both directions."""
        for _, op in tasks:
            taps = _taps(op.wavelet)
            if taps > MAX_PLANE_TAPS or max(op.counts) + taps * op.dilation > MAX_EXTENT:
                return False
        return target.scheme == "auto" and target.limits.items >= MIN_ITEMS

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
        assert spec.down is not None
        read = workload.rows, workload.columns
        rows, columns = workload.row_counts[0], workload.column_counts[0]
        if spec.back:
            read, (rows, columns) = (rows, columns), read
        if 0 in (rows, columns, workload.planes):
            return []
        row_dilation, column_dilation = (task.op.dilation for task in workload.tasks)
        geometry = _geometry(spec, columns, column_dilation, target.limits.items)
        kernel = undecimated_plane.emit(spec, geometry, target.dialect)
        across = geometry.tiles(columns, column_dilation)
        runs = -(-min(column_dilation, columns) * spec.channels // geometry.run)
        phases = min(row_dilation, rows)
        first, last = tap_range(spec.down)
        others = across * runs * phases * workload.planes
        strips = PlaneStrips(-(-rows // row_dilation), others, last - first)
        buffers, values = view_values(kernel, workload.views)
        extents = (*read, rows, columns, row_dilation, column_dilation, across, runs, phases)
        groups, strip = strips.divided(target.limits.units * GUESSED_ITEMS_PER_UNIT // kernel.items)
        return [StripLaunch(kernel, groups, buffers, (*values, *extents, *strip), strips)]

    def cost(self, axes: int, operations: float, wavelet: Wavelet, scheme: str) -> StrategyCost:
        """Return the cost of a level."""
        if _taps(wavelet) > MAX_PLANE_TAPS:
            return StrategyCost(axes, operations)
        return super().cost(axes, operations, wavelet, scheme)


def _taps(wavelet: Wavelet) -> int:
    return max(wavelet.dec_len, wavelet.rec_len)


def _geometry(spec: KernelSpec, columns: int, dilation: int, most_items: int) -> PlaneGeometry:
    """Return the geometry that needs the fewest work items for rows of ``columns`` results."""
    assert spec.down is not None
    first, last = tap_range(spec.down)
    # Two rows between barriers need registers for the values of both, in an inverse of all bands.
    single = spec.number == "double" or (spec.back and last - first > MAX_BATCHED_SPAN)
    run = min(dilation * spec.channels, MAX_RUN)
    geometries = [PlaneGeometry(width // run * run, run, 1 if single else 2) for width in WIDTHS]
    return min(
        (geometry for geometry in geometries if geometry.items(spec) <= most_items),
        key=lambda geometry: geometry.tiles(columns, dilation) * geometry.items(spec),
    )


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

        def time(strip: int) -> int:
            rounds = -(-self.others * -(-self.rows // strip) // max(1, at_once))
            return rounds * (min(strip, self.rows) + self.overlap + STRIP_START)

        strip = min(min(STRIPS, key=time), self.rows)
        strips = -(-self.rows // strip)
        return self.others * strips, (strip, strips)


UNDECIMATED = Undecimated()
