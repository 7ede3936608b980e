"""Operators along one axis, encoded as the arrays that kernels read.

An :class:`~undula.lowering.axis.AxisOp` becomes one array of integers and one of numbers, in the order that
``kernel_layout`` names, together with a table of what lies beyond the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...lowering.adjoints import Fold
from ...lowering.axis import AxisOp
from ...lowering.choose import NeighbourStep, neighbour_steps
from .kernel_layout import DIFFERENCES, FILTERED, INTEGER_FACTORS, LIFTED, TABLE, TERMS

__all__ = [
    "NO_FOLD",
    "EncodedOp",
    "coefficient_ranges",
    "encode_analysis",
    "encode_synthesis",
    "sample_range",
]

UNITS = [1.0, 0.0]
NO_FOLD = Fold(0, 0, ())


@dataclass(frozen=True, eq=False)
class EncodedOp:
    """An operator along one axis as kernels read it, and what is needed to find room for the work.

    Parameters
    ----------
    integers, numbers : array
        What kernels read; ``kernel_layout`` names the entries.
    length : int
        Samples of a line.
    counts : (int, int)
        Coefficients of the low and of the high band.
    pairs : int
        Pairs of lifting steps; 0 for filters.
    taps : int
        Sources of the filters, of both bands together on the way back.
    reach : int
        Places or coefficients read beyond those that a part of a line has itself, on either side.
    rims : int
        Places beyond the ends that are no copies of samples.
    local : bool
        What lies beyond an end is made of samples near that end.
    """

    integers: NDArray[np.int64]
    numbers: NDArray[Any]
    length: int
    counts: tuple[int, int]
    pairs: int
    taps: int
    reach: int
    rims: int
    local: bool


def _lifting(op: AxisOp) -> tuple[list[int], list[float]]:
    """Return what both directions have in common: kind, pairs, lengths, place, first; factors and scales."""
    if op.method == "filters":
        return [FILTERED, 0, op.length, *op.counts, 0, 0], [0.0] * 6 + UNITS
    first, steps = _steps(op)
    head = [LIFTED, len(steps) // 2, op.length, *op.counts, op.places[first], first]
    factors = [step.factor for step in steps] + [0.0] * (4 - len(steps))
    return head, [*factors, *_scales(op), *UNITS]


def _steps(op: AxisOp) -> tuple[int, tuple[NeighbourStep, ...]]:
    lifted = neighbour_steps(op)
    assert lifted is not None, "kernels lift by sums of two neighbours"
    return lifted


def _scales(op: AxisOp) -> list[float]:
    """Return what the low and the high band are multiplied with in the end."""
    if not op.back:
        return [way.scale for way in op.exits]
    return [1 / way.scale for way in op.inverse().exits]


def sample_range(op: AxisOp) -> tuple[int, int]:
    """Return the first and the last place that the kernels of analysis read for the coefficients 0.

    Those of coefficients k are 2k further on.
    """
    if op.method == "filters":
        return op.analysis.start, op.analysis.start + len(op.analysis.low) - 1
    first, steps = _steps(op)
    place, pairs = op.places[first], len(steps) // 2
    return place - 1 - 2 * pairs, place - 1 + 2 * pairs


def coefficient_ranges(op: AxisOp, samples: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return, for each band, which coefficients the kernels of synthesis read for the first samples."""
    half = (samples + 1) // 2
    if op.method == "filters":
        low, high = ((s.start, half - 1 + s.start + len(s.even)) for s in op.synthesis)
        return low, high
    first, steps = _steps(op)
    place, pairs = op.places[first], len(steps) // 2
    moved = (place + 1 - op.places[1 - first]) // 2
    begin, end = -(place // 2), (samples - place) // 2 + 1
    changed = begin - pairs, end + pairs - 1
    other = begin - pairs - 1 + moved, end + pairs - 1 + moved
    return (changed, other) if first == 0 else (other, changed)


def _numbers(op: AxisOp, numbers: Sequence[float], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the numbers in their type; those of integers have their steps behind them."""
    if dtype.kind == "f":
        return np.array(numbers, dtype=dtype)
    rounded = [step.rounded for step in _steps(op)[1]]
    steps = [part for step in rounded for part in (step.weights[0], step.offset, step.shift)]
    steps += [0] * (12 - len(steps))
    steps.append(int(all(abs(step.weights[0]) <= 1 for step in rounded)))  # sums fit their own width
    memory = np.zeros(INTEGER_FACTORS + 8 * len(steps), np.uint8)
    memory[: 8 * dtype.itemsize].view(dtype)[:] = [0, 0, 0, 0, 1, 1, 1, 0]
    memory[INTEGER_FACTORS:].view(np.int64)[:] = steps
    return memory


def _order(op: AxisOp) -> list[int]:
    """Return the tap to begin with and, in that order, which taps of the high filter have to cancel."""
    order = op.analysis.order
    if not op.analysis.cancels:
        return [order[0], 0, 0]
    places = np.flatnonzero([op.analysis.high[k] for k in order])
    return [order[0], int(places[0]), int(places[-1]) + 1]


@lru_cache(maxsize=1024)
def encode_analysis(op: AxisOp, dtype: np.dtype[Any]) -> EncodedOp:
    """Return an analysis, encoded for kernels on samples of a dtype."""
    head, numbers = _lifting(op)
    kind, pairs, place = head[0], head[1], head[5]
    taps = 0 if kind == LIFTED else len(op.analysis.low)
    start, count = op.analysis.start, max(op.counts)
    lowest, last = sample_range(op)
    highest = 2 * (count - 1) + last
    if kind == FILTERED:
        numbers += [taps_[k] for taps_ in (op.analysis.low, op.analysis.high) for k in op.analysis.order]
    left, right = max(0, -lowest), max(0, highest - op.length + 1)
    places = np.concatenate([np.arange(-left, 0), np.arange(op.length, op.length + right)])
    index, factors = op.beyond(places)
    used = np.repeat(factors != 0, [1, *[2] * DIFFERENCES], axis=1)
    weighted = (factors[:, 0] != 1) | (factors[:, 1:] != 0).any(axis=1)
    numbered = np.where(weighted, np.cumsum(weighted) - 1, -1)
    table = np.concatenate([index, numbered[:, np.newaxis]], axis=1)
    # Which rows those beyond the ends are made of: of places before the start, up to which; of places after
    # the end, from which on.
    near_start = int(np.where(used[:left], index[:left], -1).max(initial=-1)) + 1
    near_end = int(np.where(used[left:], index[left:], op.length).min(initial=op.length))
    integers = [*head, start, taps, left, right, int(weighted.sum()), near_end, near_start]
    integers += _order(op) if kind == FILTERED else []
    integers += [0] * (TABLE - len(integers))
    return EncodedOp(
        integers=np.array([*integers, *table.ravel()], dtype=np.int64),
        numbers=_numbers(op, [*numbers, *factors.ravel()], dtype),
        length=op.length,
        counts=op.counts,
        pairs=pairs,
        taps=max(taps, TERMS),
        reach=max(left, right, abs(start), taps, abs(place) + 2 * pairs + 4),
        rims=int(weighted.sum()),
        local=near_start <= left + 2 and near_end >= op.length - right - 2,
    )


@lru_cache(maxsize=1024)
def encode_synthesis(op: AxisOp, dtype: np.dtype[Any], fold: Fold = NO_FOLD) -> EncodedOp:
    """Return a synthesis, encoded for kernels on samples of a dtype; that of an adjoint has a ``fold``."""
    head, numbers = _lifting(op)
    kind, pairs, place, first = head[0], head[1], head[5], head[6]
    low, high = op.synthesis
    length, moved = op.length + fold.before + fold.after, fold.before // 2  # of a line with what is folded
    delta, half = 0, (length + 1) // 2
    head[2], head[5] = length, place + fold.before
    used = [(begin - moved, end - moved) for begin, end in coefficient_ranges(op, length)]
    if kind == LIFTED:
        delta = (place + 1 - op.places[1 - first]) // 2
    else:
        # Details first, which are small: what is added to them loses less than what is added to a large sum.
        numbers += [side.even[k] for side in (high, low) for k in side.order]
        numbers += [side.odd[k] for side in (high, low) for k in side.order]
    margins, table = [], []
    for band, (begin, end) in enumerate(used):
        count = op.counts[band]
        left, right = max(0, -begin), max(0, end - count)
        margins += [left, right]
        places = np.concatenate([np.arange(-left, 0), np.arange(count, count + right)])
        table += op.coefficients_beyond(band, places).tolist()
    integers = [*head, delta]
    for side in (low, high):
        integers += [side.start - moved, len(side.even)] if kind == FILTERED else [0, 0]
    turns = [low.order[0], high.order[0]]
    folded = [n + fold.before for place, sample, _ in fold.entries for n in (place, sample)]
    folds = [fold.before, op.length, len(fold.entries), TABLE + len(table), len(numbers)]
    return EncodedOp(
        integers=np.array([*integers, *margins, *turns, *folds, *table, *folded], dtype=np.int64),
        numbers=_numbers(op, [*numbers, *(weight for _, _, weight in fold.entries)], dtype),
        length=length,
        counts=op.counts,
        pairs=pairs,
        taps=len(low.even) + len(high.even),
        reach=max(*margins, *(abs(begin) for begin, _ in used), *(abs(end - half) for _, end in used)),
        rims=0,
        local=False,
    )
