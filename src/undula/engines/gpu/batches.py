"""Large batches in parts: all levels of a few planes, then those of the next ones.

The approximations between levels are scratch arrays, a third of the samples in all. If the planes of a batch
take turns, these arrays are as small as a part, and stay in the cache of the device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...arrays import ArrayView
from ...lowering.spec import Task
from .launches import DeviceLevel

__all__ = ["MAX_SCRATCH_SHARE", "MIN_SAMPLE_BYTES", "batch_parts", "merged_batch"]

MIN_SAMPLE_BYTES = 1 << 27  # of a batch that is divided: parts have to occupy the device
MAX_SCRATCH_SHARE = 0.09  # of the samples

Part = tuple[Sequence[DeviceLevel], ArrayView, list[ArrayView | None]]


def batch_parts(
    levels: Sequence[DeviceLevel], samples: ArrayView, coefficients: Sequence[ArrayView | None]
) -> Iterator[Part]:
    """Yield the levels, the samples and the coefficients of each part of a batch.

    Parameters
    ----------
    levels : sequence of DeviceLevel
        From fine to coarse.
    samples : ArrayView
    coefficients : sequence of ArrayView or None
        In flat order.
    """
    parts = _parts(levels, samples)
    batch = merged_batch(levels, samples, coefficients) if parts > 1 else None
    if batch is None:
        yield levels, samples, list(coefficients)
        return
    levels, samples, coefficients = batch
    planes = samples.shape[0]
    size = -(-planes // parts)
    for start in range(0, planes, size):
        count = min(size, planes - start)
        bands = [None if view is None else _slice(view, start, count) for view in coefficients]
        yield [_level(level, 1, count) for level in levels], _slice(samples, start, count), bands


def merged_batch(
    levels: Sequence[DeviceLevel], samples: ArrayView, coefficients: Sequence[ArrayView | None]
) -> Part | None:
    """Return a batch whose planes are along one axis; None if they have no common stride.

    There must be an axis before those of a plane.
    """
    outer = _outer_axes(levels)
    views = [samples, *coefficients]
    merged = [None if view is None else _merged(view, outer) for view in views]
    if any((part is None) != (view is None) for part, view in zip(merged, views, strict=True)):
        return None
    assert merged[0] is not None
    planes = merged[0].shape[0]
    return [_level(level, outer, planes) for level in levels], merged[0], merged[1:]


def _parts(levels: Sequence[DeviceLevel], samples: ArrayView) -> int:
    """Return the number of parts that keeps scratch arrays small; one for batches that fit the device."""
    size = math.prod(samples.shape)
    planes = math.prod(samples.shape[: _outer_axes(levels)])
    if size * samples.itemsize < MIN_SAMPLE_BYTES or samples.shape != levels[0].shape or not planes:
        return 1
    scratch = sum(math.prod(next(iter(level.shapes.values()))) for level in levels[:-1])
    return min(planes, math.ceil(scratch / (MAX_SCRATCH_SHARE * size)))


def _outer_axes(levels: Sequence[DeviceLevel]) -> int:
    """Return the number of axes before those of a plane."""
    return min(task.axis for task in levels[0].tasks)


def _merged(view: ArrayView, outer: int) -> ArrayView | None:
    """Return a view with all axes before ``outer`` as one; None if they have no common stride."""
    planes, plane = 1, 0
    for length, stride in zip(view.shape[outer - 1 :: -1], view.strides[outer - 1 :: -1], strict=True):
        if length == 1:
            continue
        if planes > 1 and stride != planes * plane:
            return None
        plane = plane if planes > 1 else stride
        planes *= length
    return view._replace(shape=(planes, *view.shape[outer:]), strides=(plane, *view.strides[outer:]))


def _slice(view: ArrayView, start: int, count: int) -> ArrayView:
    shape = (count, *view.shape[1:])
    return view._replace(shape=shape, offset=view.offset + start * view.strides[0])


def _level(level: DeviceLevel, outer: int, count: int) -> DeviceLevel:
    """Return a level of samples with one axis, of so many planes, in place of those before ``outer``."""

    def moved(tasks: Sequence[Task]) -> tuple[Task, ...]:
        return tuple(Task(axis - outer + 1, op) for axis, op in tasks)

    return replace(
        level,
        shape=(count, *level.shape[outer:]),
        tasks=moved(level.tasks),
        shapes={key: (count, *shape[outer:]) for key, shape in level.shapes.items()},
        adjoints=moved(level.adjoints),
    )
