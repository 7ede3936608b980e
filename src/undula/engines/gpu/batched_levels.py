"""All levels of a batch of small planes in one launch.

If a batch has enough planes, a device is occupied by groups of work items that take a plane each. Then a
single launch computes all levels, and no level waits for the last groups of the one before. Approximations
stay in memory that a group shares, as far as they fit; the others are arrays of the groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...arrays import ArrayView, contiguous
from ...lowering.adjoints import differs_at_ends
from ...lowering.nesting import details_by_level
from ..base import Knobs
from .adjoints import BorderFrame
from .batches import MAX_SCRATCH_SHARE, MIN_SAMPLE_BYTES, merged_batch
from .emit.kernel import INTEGERS, KernelSpec
from .emit.sliding import LaneGeometry, SharedApproximations, emit_levels
from .launches import PAD_ELEMENTS, DeviceLevel, Launch
from .strategies.auto import AUTO
from .strategies.base import Workload, view_values
from .strategies.sliding import access_width, rows_shared, wide_enough

if TYPE_CHECKING:
    from .builder import ProgramBuilder

__all__ = ["append_batched_levels"]

DEFAULT_KNOBS = Knobs()
WARPS_PER_UNIT = 32  # that run at once
WARPS = 16  # of a group
MIN_ROW_PAIRS_PER_WARP = 8  # Groups have fewer warps if planes are smaller.
MIN_OCCUPANCY = 0.75  # of a device, by groups with a plane
COLUMNS = 4  # of a lane
MAX_WIDE_REACH = 2  # Longer operators leave no registers for more than two columns of a lane.
PREFETCHED_PAIRS = 1  # of rows
MAX_LEVELS = 6  # The arguments of a kernel take about 200 bytes for each level.
RESERVED_SHARED_BYTES = 1024  # of each group
SHARED = -1  # the number of a buffer that is memory of a group


def append_batched_levels(
    builder: ProgramBuilder,
    back: bool,
    levels: Sequence[DeviceLevel],
    samples: ArrayView,
    coefficients: Sequence[ArrayView | None],
) -> bool:
    """Append one launch for all levels of a batch; return False, and append nothing, if it does not fit.

    The arguments are those of :func:`~.transform.append_levels`.
    """
    batch = merged_batch(levels, samples, coefficients) if _is_candidate(builder, levels, samples) else None
    if batch is None or any(view is not None and view.dtype != samples.dtype for view in batch[2]):
        return False
    levels, samples, coefficients = batch
    channels = math.prod(samples.shape[3:])
    shapes = [next(iter(level.shapes.values()))[1:] for level in levels[:-1]]
    group = _group(builder, samples, shapes, PAD_ELEMENTS if channels == 1 else 1)
    slots = _slots(builder, group, samples)
    if slots is None:
        return False
    details = details_by_level(coefficients[1:], 3)[::-1]
    arrays = [samples, *_approximations(builder, group, slots, samples.dtype), coefficients[0]]
    workloads, frames = [], []
    for number, level in enumerate(levels):
        bands = [arrays[number + 1], *details[number]]
        x = arrays[number]
        assert x is not None
        workloads.append(builder.plane_workload(back, x, level.tasks, bands))
        ops = [op.inverse() if back else op for _, op in level.adjoints]
        needed = any(map(differs_at_ends, ops))
        frames.append(BorderFrame(ops, channels, samples.dtype, samples.dtype) if needed else None)
    builder.launches += _launches(builder, workloads, frames, group, (samples.shape[0], slots))
    return True


def _is_candidate(builder: ProgramBuilder, levels: Sequence[DeviceLevel], samples: ArrayView) -> bool:
    target, first = builder.target, levels[0]
    # The default strategy for samples of the dtype of their bands, with nothing chosen by the caller.
    chosen = builder.strategy is not AUTO or target.knobs != DEFAULT_KNOBS or target.method != "auto"
    if chosen or not target.limits.gpu or len(levels) > MAX_LEVELS or samples.dtype in INTEGERS:
        return False
    if samples.shape != first.shape or len(first.tasks) != 2 or (len(levels) == 1 and not first.adjoints):
        return False
    axes = sorted(task.axis for task in first.tasks)
    if axes[0] < 1 or axes[1] != axes[0] + 1 or len(samples.shape) - axes[1] > 2:
        return False
    specs = {builder.plane_operators(level.tasks) for level in levels}
    return len(specs) == 1 and None not in specs


class _PlaneGroup(NamedTuple):
    """A group of work items, and the approximations that it computes in turn.

    Parameters
    ----------
    warps : int
    shapes : list of tuple of int
        The approximations of a plane between levels, finest first.
    pad : int
        Rows are padded to a multiple of so many elements.
    first_shared : int
        The first approximation that, with those after it, is in memory that the group shares.
    """

    warps: int
    shapes: list[tuple[int, ...]]
    pad: int
    first_shared: int

    def padded(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an array with room for padded rows."""
        return (*shape[:-1], -(-shape[-1] // self.pad) * self.pad)

    def elements(self, first: int, stop: int | None = None) -> int:
        """Return the size of some approximations."""
        return sum(math.prod(self.padded(shape)) for shape in self.shapes[first:stop])


def _group(
    builder: ProgramBuilder, samples: ArrayView, shapes: list[tuple[int, ...]], pad: int
) -> _PlaneGroup:
    """Return the smallest group that shares as many approximations as any."""
    limits, count = builder.target.limits, len(shapes)
    if not builder.target.dialect.shuffle:
        return _PlaneGroup(1, shapes, pad, count)
    row_pairs = samples.shape[1] // 2 * -(-samples.shape[2] // (32 * COLUMNS))
    warps = WARPS
    while warps > 4 and row_pairs < warps * MIN_ROW_PAIRS_PER_WARP:
        warps //= 2
    groups = []
    for size in (warps, WARPS_PER_UNIT):
        most = limits.unit_shared * size // WARPS_PER_UNIT - RESERVED_SHARED_BYTES
        choices = [_PlaneGroup(size, shapes, pad, first) for first in range(count + 1)]
        fitting = (
            group for group in choices if group.elements(group.first_shared) * samples.itemsize <= most
        )
        groups.append(next(fitting, choices[-1]))
    return min(groups, key=lambda group: group.first_shared)


def _approximations(builder: ProgramBuilder, group: _PlaneGroup, slots: int, dtype: str) -> list[ArrayView]:
    """Return the arrays of approximations, in memory that a group shares or in scratch memory."""
    views = []
    for number, shape in enumerate(group.shapes):
        if number < group.first_shared:
            views.append(builder.allocate((slots, *shape), dtype, group.pad))
            continue
        strides = contiguous((1, *group.padded(shape)))
        start = group.elements(group.first_shared, number)
        views.append(ArrayView(SHARED, (1, *shape), strides, dtype, start))
    return views


def _slots(builder: ProgramBuilder, group: _PlaneGroup, samples: ArrayView) -> int | None:
    """Return the number of groups, each with arrays of a plane; None if they are too few."""
    planes, size = samples.shape[0], math.prod(samples.shape) * samples.itemsize
    at_once = most = builder.target.limits.units * WARPS_PER_UNIT // group.warps
    scratch_bytes = group.elements(0, group.first_shared) * samples.itemsize
    if size >= MIN_SAMPLE_BYTES and scratch_bytes:
        most = min(most, int(MAX_SCRATCH_SHARE * size / scratch_bytes))
    if not most or not planes:
        return None
    slots = -(-planes // -(-planes // most))  # All rounds have the same number of planes.
    return slots if slots >= MIN_OCCUPANCY * at_once else None


def _launches(
    builder: ProgramBuilder,
    workloads: Sequence[Workload],
    frames: Sequence[BorderFrame | None],
    group: _PlaneGroup,
    planes_and_slots: tuple[int, int],
) -> list[Launch]:
    spec, dialect = workloads[0].spec, builder.target.dialect
    narrow = rows_shared(spec) > MAX_WIDE_REACH or spec.channels > 1 or spec.number == "double"
    geometry = LaneGeometry(
        pixels=wide_enough(spec, 2 if narrow else COLUMNS),
        warps=group.warps,
        prefetch=PREFETCHED_PAIRS,
        lockstep=0,
        apart=False,
        packed=True,
        wide_source=min(access_width(*w.views[name]) for w in workloads for name in spec.sources),
        wide_result=min(access_width(*w.views[name]) for w in workloads for name in spec.results),
    )
    specs = tuple(None if frame is None else frame.spec for frame in frames)
    shared = SharedApproximations(
        group.first_shared, group.elements(group.first_shared) * workloads[0].samples.itemsize
    )
    kernel = emit_levels(spec, geometry, specs, shared, WARPS_PER_UNIT // group.warps, dialect)
    views = {f"{name}_{k}": pair for k, w in enumerate(workloads) for name, pair in w.views.items()}
    size = max((frame.buffer_size for frame in frames if frame is not None), default=0)
    if any(specs):
        number = next(part.number for part in specs if part is not None)
        views["frame"] = builder.allocate((planes_and_slots[1], size), number), (size, 0)
    buffers, values = view_values(kernel, views)
    extents: list[int] = []
    for workload, frame in zip(workloads, frames, strict=True):
        lanes = -(-workload.column_pairs // (geometry.pixels // 2)) + sum(geometry.overlap(spec))
        strip = _strip(lanes, workload.row_pairs, geometry, spec)
        extents += [
            workload.rows, workload.columns, *workload.row_counts, *workload.column_counts,
            lanes, strip, -(-workload.row_pairs // strip),
            *((0, 0) if frame is None else (frame.ends_items, frame.rest_items)),
        ]  # fmt: skip
    for workload in workloads[group.first_shared : -1]:
        view, (_, row) = workload.views[spec.bands[0]]
        extents += [view.offset, row]
    return [Launch(kernel, planes_and_slots[1], buffers, (*values, *extents, *planes_and_slots))]


def _strip(lanes: int, row_pairs: int, geometry: LaneGeometry, spec: KernelSpec) -> int:
    """Return the pairs of rows of a strip with which the groups of lanes finish a level soonest."""

    def iterations(strip: int) -> int:
        turns = -(-(-(-row_pairs // strip) * lanes) // geometry.useful(spec))
        return -(-turns // geometry.warps) * (strip + rows_shared(spec))

    return min(range(1, row_pairs + 1), key=lambda strip: (iterations(strip), -strip))
