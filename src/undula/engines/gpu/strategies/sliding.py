"""One pass with all intermediate values in registers; lanes march down strips of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....arrays import ArrayView
from ....lowering.spec import Task
from ...base import Knobs
from ..emit import KernelSpec
from ..emit import sliding as emitter
from ..emit.sliding import LaneGeometry
from ..launches import Launch
from .base import Strategy, StripLaunch, Target, Workload, view_values

__all__ = ["SLIDING", "Sliding", "Strips", "access_width", "rows_shared", "wide_enough"]

MAX_STRIP_PAIRS = 96  # pairs of rows
SHORT_STRIP_PAIRS = 16  # For strips that would be shorter, lanes get fewer columns.
END_STRIP_SHARE = 0.75  # of a strip, for groups of lanes at the ends of rows
GUESSED_ITEMS_PER_UNIT = 512  # that run at once, unless the device knows better


class Sliding(Strategy):
    """Each lane owns a few columns and marches down the rows of its strip."""

    name = "sliding"
    candidates = tuple(
        Knobs(pixels=pixels, warps=warps, prefetch=prefetch)
        for pixels in (4, 8)
        for warps in (2, 4)
        for prefetch in (0, 1)
    )
    within_rows = True
    applies_rules = True

    def fits(self, tasks: Sequence[Task], dtype: str, target: Target) -> bool:
        """Return whether one pass can transform two neighbouring axes."""
        return all(task.op.method != "steps" for task in tasks)

    def launches(self, workload: Workload, target: Target) -> list[Launch]:
        """Return the launch of one pass."""
        spec, knobs = workload.spec, target.knobs
        geometry = self._geometry(workload, target)
        kernel = emitter.emit(spec, geometry, target.dialect)
        pairs, row_pairs = workload.column_pairs, workload.row_pairs
        total = -(-pairs // geometry.step(spec))
        left, right = total, 0
        if geometry.apart:
            left, right = geometry.ends(spec, total, (workload.columns, *workload.column_counts))
        strips = Strips(
            row_pairs=row_pairs,
            planes=workload.planes,
            total=total,
            left=left,
            right=right,
            warps=geometry.warps,
            overlap=rows_shared(spec),
            # Half the bytes take half the time.
            longest=SHORT_STRIP_PAIRS if spec.band_dtype == "int16" else MAX_STRIP_PAIRS,
            fixed=knobs.strip,
            gpu=target.limits.gpu,
        )
        buffers, values = view_values(kernel, workload.views)
        extents = (workload.rows, workload.columns, *workload.row_counts, *workload.column_counts)
        values = (*values, *extents, row_pairs, workload.planes)
        groups, strip_values = strips.divided(target.limits.units * GUESSED_ITEMS_PER_UNIT // kernel.items)
        if groups <= 0:
            return []
        values = (*values, *strip_values)
        if not strips.depends_on_device:
            return [Launch(kernel, groups, buffers, values)]
        return [StripLaunch(kernel, groups, buffers, values, strips)]

    def _geometry(self, workload: Workload, target: Target) -> LaneGeometry:
        spec, knobs, shuffles = workload.spec, target.knobs, bool(target.dialect.shuffle)
        pixels = wide_enough(spec, knobs.pixels or _pixels(workload, target))
        if spec.along is None:
            pixels = min(pixels, 4)
        # Halves and bytes would be converted too early, and for the inverse many columns leave no registers.
        kinds = ("float32", "float64") if spec.back else ("float32", "float64", "int16", "int32")
        ahead = shuffles and spec.source in kinds and rows_shared(spec) > 0
        ahead = ahead and (not spec.back or pixels <= 10)
        return LaneGeometry(
            pixels=pixels,
            warps=(knobs.warps or 4) if shuffles else 1,
            prefetch=knobs.prefetch if knobs.prefetch >= 0 else int(ahead),
            unroll=knobs.unroll or 1,
            lockstep=knobs.lockstep if knobs.lockstep >= 0 else 4,
            apart=target.limits.gpu,
            wide_source=min(access_width(*workload.views[name]) for name in spec.sources),
            wide_result=min(access_width(*workload.views[name]) for name in spec.results),
        )


def rows_shared(spec: KernelSpec) -> int:
    """Return the pairs of rows that neighbouring strips share."""
    return 0 if spec.down is None else sum(spec.down.reach)


def wide_enough(spec: KernelSpec, pixels: int) -> int:
    """Return ``pixels``, doubled until a group of lanes reaches further than the operator within rows.

    The lanes at both ends of a group only provide values for the others. With few columns in each, a long
    filter would need all of them, and no lane would have results.
    """
    while LaneGeometry(pixels=pixels).useful(spec) <= 0:
        pixels *= 2
    return pixels


def _pixels(workload: Workload, target: Target) -> int:
    """Return the columns of a lane: as many as leave registers for the earlier rows.

    In short rows, fewer columns may leave fewer lanes idle; and if there is little work in all, more lanes
    finish it sooner.
    """
    spec, shuffles = workload.spec, target.dialect.shuffle
    if spec.along is None:
        return 4
    pairs = workload.column_pairs
    remembered = 4
    if spec.down is not None:
        op = spec.down
        remembered = len(op.steps) if op.steps else 2 * sum(op.reach)
    # Short texts matter more if lanes exchange through shared memory. Halves have half the bytes, so that the
    # time is that of a lane's work.
    wide = shuffles and (spec.back or "float16" not in (spec.source, spec.result))
    most = 8 if remembered <= 8 and wide else 4
    if spec.number == "double":
        most = max(2, most // 2)
    most = max(2, most // {1: 1, 2: 2, 3: 4, 4: 4}[spec.channels])

    def groups(pixels: int) -> float:
        geometry = LaneGeometry(pixels=pixels)
        return -(-pairs // geometry.step(spec)) if geometry.useful(spec) > 0 else math.inf

    def lanes(pixels: int) -> float:
        return groups(pixels) * pixels * (1.5 if pixels < most else 1.0)

    best = min((n for n in (most, most // 2) if n >= 2), key=lanes)
    if most >= 4 and shuffles:
        # Rows of one or two groups of lanes: any number of columns may be the best.
        for pixels in (10, 12):
            if groups(pixels) <= 2 and groups(pixels) * (pixels + 1.5) < groups(best) * (best + 1.5):
                best = pixels
    all_rows = workload.row_pairs * workload.planes
    if best == 8 and groups(best) * all_rows < SHORT_STRIP_PAIRS * 12 * target.limits.units:
        best = 4
    return best


def access_width(view: ArrayView, strides: tuple[int, int]) -> int:
    """Return how many elements, of at most 16 bytes, may be moved at once."""
    size = view.itemsize
    aligned = math.gcd(view.alignment, 16) // size if view.alignment % size == 0 else 1
    return max(1, math.gcd(view.offset, *strides, aligned, 4 if size < 8 else 2))


@dataclass(frozen=True)
class Strips:
    """The division of rows into strips.

    Parameters
    ----------
    row_pairs, planes : int
    total, left, right : int
        Groups of lanes across a row, and those of them that see its left or right end.
    warps : int
        Groups of lanes in a work group.
    overlap : int
        Pairs of rows that neighbouring strips share.
    longest : int
        Upper limit for the pairs of rows of a strip.
    fixed : int
        The caller's choice of pairs of rows; 0 for none.
    gpu : bool
        Whether work groups run side by side.
    """

    row_pairs: int
    planes: int
    total: int
    left: int
    right: int
    warps: int
    overlap: int
    longest: int
    fixed: int
    gpu: bool

    def divided(self, at_once: int) -> tuple[int, tuple[int, ...]]:
        """Return the number of work groups, and the kernel's integers from ``total`` on.

        ``at_once`` is the number of work groups that run at the same time.
        """
        ends = self.left + self.right
        blocks = -(-(self.total - ends) // self.warps)
        # Groups at the ends of rows have more work for each row, so they get fewer rows.
        share = END_STRIP_SHARE if blocks else 1.0
        across = self.planes * (blocks + ends / self.warps / share)
        strip = max(1, min(self.fixed or self._length(at_once, across), self.row_pairs))
        end_strip = max(1, int(share * strip))
        strips, end_strips = -(-self.row_pairs // strip), -(-self.row_pairs // end_strip)
        end_groups = -(-ends * end_strips * self.planes // self.warps)
        values = (
            self.total,
            ends,
            self.left,
            end_groups,
            end_strip,
            end_strips,
            strip,
            strips,
            max(1, blocks),
        )
        return end_groups + blocks * strips * self.planes, values

    @property
    def depends_on_device(self) -> bool:
        """Whether the lengths depend on how many work groups run at the same time."""
        return not self.fixed and bool(self.overlap or not self.gpu)

    def _length(self, at_once: int, across: float) -> int:
        """Return the pairs of rows of a strip, given the number of work groups ``across`` all rows.

        Rows that two strips share are read twice, so strips should be long. But there have to be enough of
        them for all units, and the last round of work groups should not be a small one.
        """
        if not self.depends_on_device:
            return 2  # Work groups that run at the same time then work on neighbouring rows.
        rounds = 1
        while True:
            strips = max(1, int(rounds * max(1, at_once) / across))
            strip = -(-self.row_pairs // strips)
            if strip <= self.longest or strips >= self.row_pairs:
                return max(strip, 2 if self.overlap else 1)
            rounds += 1


SLIDING = Sliding()
