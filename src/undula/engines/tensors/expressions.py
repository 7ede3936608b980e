"""Transforms as expressions of array functions, for JAX, and for formats such as ONNX.

Every operator is sums of slices of lines that are extended at their ends. A library that knows the
derivatives of slices and sums knows those of the transform; no kernel of this package runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...lowering.axis import AxisOp
from ...lowering.spec import BandTree, Task
from ..reference import ReferenceEngine

__all__ = ["decompose_expression", "recompose_expression"]

Numbers = NDArray[np.int_]


def decompose_expression(xp: Any, tree: BandTree, x: Any) -> list[Any]:
    """Return the bands of samples in flat order; ``xp`` has the functions of the library."""
    details: list[Any] = []
    for level, shape in enumerate(tree.sample_shapes):
        bands = [x]
        for task in _operators(tree, level, shape):
            bands = [half for band in bands for half in _analysis(xp, task, band)]
        x, details = bands[0], bands[1:] + details
    return [x, *details]


def recompose_expression(xp: Any, tree: BandTree, bands: Sequence[Any]) -> Any:
    """Return the samples of bands in flat order, none of them missing."""
    count = len(tree.spec.keys) - 1
    x, first = bands[0], 1
    for level in reversed(range(tree.levels)):
        parts = [x, *bands[first : first + count]]
        first += count
        for axis, op in reversed(_operators(tree, level, tree.sample_shapes[level])):
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [_synthesis(xp, Task(axis, op.inverse()), *pair) for pair in pairs]
        x = parts[0]
    return x


def _operators(tree: BandTree, level: int, shape: tuple[int, ...]) -> tuple[Task, ...]:
    return tree.spec.at_level(level).operators(shape, np.dtype(np.float64), ReferenceEngine.lifting)


def _analysis(xp: Any, task: Task, x: Any) -> list[Any]:
    """Return the low and the high band of lines along an axis."""
    axis, op = task
    x = xp.moveaxis(x, axis, -1)
    if op.method == "steps":
        bands = [x[..., 0::2], x[..., 1::2]]
        for number in range(len(op.steps)):
            bands = _step(xp, op, number, bands, 1)
        bands = [band * scale for band, scale in zip(bands, op.scaling, strict=True)]
    else:
        line, begin = _extended(xp, op, x)
        bands = []
        for (places, factors), count in zip(op.sample_taps, op.counts, strict=True):
            stop = op.stride * (count - 1) + 1
            starts = [place - begin for place in places]
            parts = (line[..., start : start + stop : op.stride] for start in starts)
            bands.append(sum(float(factor) * part for factor, part in zip(factors, parts, strict=True)))
    return [xp.moveaxis(band, -1, axis) for band in bands]


def _extended(xp: Any, op: AxisOp, x: Any) -> tuple[Any, int]:
    """Return lines with the samples that filters read beyond their ends, and the place of the first one."""
    ((begin, end),) = op.window(0, max(op.counts)).ranges
    ends = [np.arange(begin, 0), np.arange(op.length, max(end, op.length))]
    before, after = (_beyond(xp, op, x, places) for places in ends)
    first, last = max(begin, 0), min(end, op.length)
    parts = [part for part in (before, x[..., first:last], after) if part.shape[-1]]
    return xp.concatenate(parts, axis=-1), begin


def _beyond(xp: Any, op: AxisOp, x: Any, places: Numbers) -> Any:
    index, factors = op.beyond(places)
    value = xp.asarray(factors[:, 0], dtype=x.real.dtype) * xp.take(x, index[:, 0], axis=-1)
    for number, weight in enumerate(factors.T[1:]):
        if weight.any():
            rise, fall = (xp.take(x, index[:, 2 * number + k], axis=-1) for k in (1, 2))
            value = value + xp.asarray(weight, dtype=x.real.dtype) * (rise - fall)
    return value


def _synthesis(xp: Any, task: Task, low: Any, high: Any) -> Any:
    """Return the samples of a low and a high band along an axis."""
    axis, op = task
    bands = [xp.moveaxis(band, axis, -1) for band in (low, high)]
    if op.method == "steps":
        bands = [band / scale for band, scale in zip(bands, op.scaling, strict=True)]
        for number in range(len(op.steps)):
            bands = _step(xp, op, number, bands, 1)
        phases = bands
    else:
        phases = [_phase(xp, op, bands, phase) for phase in range(op.stride)]
    return xp.moveaxis(_interleaved(xp, phases, op.length), -1, axis)


def _phase(xp: Any, op: AxisOp, bands: Sequence[Any], phase: int) -> Any:
    """Return every second sample, or all of an undecimated transform."""
    count = -(-(op.length - phase) // op.stride)
    total = 0.0
    for band, (part, (offsets, factors)) in enumerate(zip(bands, op.coefficient_taps(phase), strict=True)):
        if not offsets or not count:
            continue
        first, last = min(offsets), max(offsets) + count
        numbers = op.coefficients_beyond(band, np.arange(first, last))
        inside = xp.asarray(np.where(numbers < 0, 0, 1), dtype=part.real.dtype)
        line = xp.take(part, np.maximum(numbers, 0), axis=-1) * inside
        parts = (line[..., offset - first : offset - first + count] for offset in offsets)
        total = total + sum(float(factor) * value for factor, value in zip(factors, parts, strict=True))
    return total


def _interleaved(xp: Any, phases: Sequence[Any], length: int) -> Any:
    if len(phases) == 1:
        return phases[0]
    missing = phases[0].shape[-1] - phases[1].shape[-1]
    if missing:
        phases = [phases[0], xp.concatenate([phases[1], phases[0][..., -missing:]], axis=-1)]
    pairs = xp.stack(phases, axis=-1)
    return pairs.reshape(*pairs.shape[:-2], 2 * pairs.shape[-2])[..., :length]


def _step(xp: Any, op: AxisOp, number: int, bands: Sequence[Any], sign: int) -> list[Any]:
    """Return both bands after a lifting step that extends the band it reads."""
    table = op.step_tables[number]
    target, other = bands[table.step.target], bands[1 - table.step.target]
    rows = np.concatenate([np.arange(table.begin, table.end), table.border])
    order = np.argsort(rows)
    total = target
    for column, tap in enumerate(table.step.taps):
        inner = np.arange(table.begin, table.end) + tap.offset
        sources = np.concatenate([inner, table.table[:, column]])[order]
        if not sources.size or not other.shape[-1]:
            continue
        inside = xp.asarray(np.where(sources < 0, 0.0, sign * tap.factor), dtype=target.real.dtype)
        total = total + inside * xp.take(other, np.maximum(sources, 0), axis=-1)
    changed = list(bands)
    changed[table.step.target] = total
    return changed
