"""All levels of a batch of small planes in one launch.

If a batch has enough planes, a device is occupied by groups of work items that take a plane each. Then a
single launch computes all levels: approximations are arrays of the groups, which are few and stay in the
cache, and no level waits for the last groups of the one before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...arrays import ArrayView
from ...lowering.adjoints import differs_at_ends
from ...lowering.nesting import details_by_level
from ..base import Knobs
from .adjoints import BorderFrame
from .batches import MAX_SCRATCH_SHARE, MIN_SAMPLE_BYTES, merged_batch
from .emit.kernel import INTEGERS
from .emit.sliding import LaneGeometry, emit_levels
from .launches import PAD_ELEMENTS, DeviceLevel, Launch
from .strategies.auto import AUTO
from .strategies.base import Workload, view_values
from .strategies.sliding import access_width, rows_shared, wide_enough

if TYPE_CHECKING:
    from .builder import ProgramBuilder

__all__ = ["append_batched_levels"]

DEFAULT_KNOBS = Knobs()
WARPS_PER_UNIT = 32  # that run at once
MAX_WARPS = 16  # of a group
MIN_ROW_PAIRS_PER_WARP = 8  # Groups have fewer warps if planes are smaller.
MIN_OCCUPANCY = 0.75  # of a device, by groups with a plane
PREFETCHED_PAIRS = 1  # of rows
MAX_LEVELS = 6  # The arguments of a kernel take about 200 bytes for each level.
MAX_WIDE_REACH = 4  # Longer operators leave no registers for more than two columns of a lane.


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
    approximations = [next(iter(level.shapes.values())) for level in levels[:-1]]
    pixels, warps = _lane_columns(samples, channels, bool(builder.target.dialect.shuffle))
    pad = PAD_ELEMENTS if channels == 1 else 1
    padded = (math.prod(shape[1:-1]) * -(-shape[-1] // pad) * pad for shape in approximations)
    scratch_bytes = samples.itemsize * sum(padded)
    slots = _slots(builder, warps, samples, scratch_bytes)
    if slots is None:
        return False
    details = details_by_level(coefficients[1:], 3)[::-1]
    inner = [builder.allocate((slots, *shape[1:]), samples.dtype, pad) for shape in approximations]
    arrays = [samples, *inner, coefficients[0]]
    workloads, frames = [], []
    for number, level in enumerate(levels):
        bands = [arrays[number + 1], *details[number]]
        x = arrays[number]
        assert x is not None
        workloads.append(builder.plane_workload(back, x, level.tasks, bands))
        ops = [op.inverse() if back else op for _, op in level.adjoints]
        needed = any(map(differs_at_ends, ops))
        frames.append(BorderFrame(ops, channels, samples.dtype, samples.dtype) if needed else None)
    builder.launches += _launches(builder, workloads, frames, (pixels, warps), (samples.shape[0], slots))
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


def _lane_columns(samples: ArrayView, channels: int, shuffles: bool) -> tuple[int, int]:
    """Return the columns of a lane, and the groups of lanes that work on a plane."""
    pixels = 2 if channels > 1 or samples.itemsize == 8 else 4
    if not shuffles:
        return pixels, 1
    row_pairs = samples.shape[1] // 2 * -(-samples.shape[2] // (32 * pixels))
    warps = MAX_WARPS
    while warps > 4 and row_pairs < warps * MIN_ROW_PAIRS_PER_WARP:
        warps //= 2
    return pixels, warps


def _slots(builder: ProgramBuilder, warps: int, samples: ArrayView, scratch_bytes: int) -> int | None:
    """Return the number of groups, each with scratch arrays of a plane; None if they are too few."""
    planes, size = samples.shape[0], math.prod(samples.shape) * samples.itemsize
    at_once = most = builder.target.limits.units * WARPS_PER_UNIT // warps
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
    lane_columns: tuple[int, int],
    planes_and_slots: tuple[int, int],
) -> list[Launch]:
    spec, dialect = workloads[0].spec, builder.target.dialect
    pixels, warps = lane_columns
    if rows_shared(spec) > MAX_WIDE_REACH:
        pixels = 2
    geometry = LaneGeometry(
        pixels=wide_enough(spec, pixels),
        warps=warps,
        prefetch=PREFETCHED_PAIRS,
        lockstep=0,
        wide_source=min(access_width(*w.views[name]) for w in workloads for name in spec.sources),
        wide_result=min(access_width(*w.views[name]) for w in workloads for name in spec.results),
    )
    specs = tuple(None if frame is None else frame.spec for frame in frames)
    kernel = emit_levels(spec, geometry, specs, WARPS_PER_UNIT // geometry.warps, dialect)
    views = {f"{name}_{k}": pair for k, w in enumerate(workloads) for name, pair in w.views.items()}
    size = max((frame.buffer_size for frame in frames if frame is not None), default=0)
    if any(specs):
        number = next(part.number for part in specs if part is not None)
        views["frame"] = builder.allocate((planes_and_slots[1], size), number), (size, 0)
    buffers, values = view_values(kernel, views)
    extents: list[int] = []
    for workload, frame in zip(workloads, frames, strict=True):
        total = -(-workload.column_pairs // geometry.step(spec))
        columns = workload.columns, *workload.column_counts
        strip = _strip(total, workload.row_pairs, geometry.warps, rows_shared(spec))
        extents += [
            workload.rows, workload.columns, *workload.row_counts, *workload.column_counts,
            workload.row_pairs, total, *geometry.ends(spec, total, columns),
            strip, -(-workload.row_pairs // strip),
            *((0, 0) if frame is None else (frame.ends_items, frame.rest_items)),
        ]  # fmt: skip
    return [Launch(kernel, planes_and_slots[1], buffers, (*values, *extents, *planes_and_slots))]


def _strip(total: int, row_pairs: int, warps: int, shared: int) -> int:
    """Return the pairs of rows of a strip with which the warps of a group finish a level soonest."""

    def rounds(strip: int) -> int:
        strips = -(-row_pairs // strip)
        return -(-total * strips // warps) * (strip + shared)

    return min(range(1, row_pairs + 1), key=lambda strip: (rounds(strip), -strip))
