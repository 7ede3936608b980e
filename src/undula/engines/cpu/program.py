"""Programs: what is done along one axis, as the arrays that kernels read.

A :class:`~undula.lowering.line.Line` says it in words; here it becomes one array of integers and one of
numbers, in the order that ``layout`` names, together with a table of what lies beyond the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...lowering.line import Line
from .layout import DIFFERENCES, FILTERED, INTEGER_FACTORS, LIFTED, TABLE, TERMS

__all__ = ["Program", "backward", "forward"]

UNITS = [1.0, 0.0]


@dataclass(frozen=True, eq=False)
class Program:
    """The two arrays, and what is needed to find room for the work.

    Parameters
    ----------
    integers, numbers
        What kernels read.
    taps : int
        Sources of the filters, of both bands together on the way back.
    reach : int
        Places or coefficients read beyond those that a piece of a line has itself, on either side.
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


def _lifting(line: Line, inverse: bool) -> tuple[list[int], list[float]]:
    """What both directions have in common: kind, pairs, lengths, place, first; factors and scales."""
    chain = line.chain
    if chain is None:
        return [FILTERED, 0, line.length, *line.counts, 0, 0], [0.0] * 6 + UNITS
    chain = chain.inverse() if inverse else chain
    head = [LIFTED, chain.pairs, line.length, *line.counts, line.places[chain.first], chain.first]
    return head, [*chain.steps, *[0.0] * (4 - len(chain.steps)), *chain.scaling, *UNITS]


def _numbers(line: Line, inverse: bool, numbers: Sequence[float], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The numbers in their type; those of integers have their steps behind them."""
    if dtype.kind == "f":
        return np.array(numbers, dtype=dtype)
    assert line.chain is not None
    rounded = (line.chain.inverse() if inverse else line.chain).rounded
    steps = [part for step in rounded for part in (step.whole[0], step.offset, step.shift)]
    steps += [0] * (12 - len(steps))
    steps.append(int(all(abs(step.whole[0]) <= 1 for step in rounded)))  # sums fit their own width
    memory = np.zeros(INTEGER_FACTORS + 8 * len(steps), np.uint8)
    memory[: 8 * dtype.itemsize].view(dtype)[:] = [0, 0, 0, 0, 1, 1, 1, 0]
    memory[INTEGER_FACTORS:].view(np.int64)[:] = steps
    return memory


def _order(line: Line) -> list[int]:
    """The tap to begin with, and which ones of the high filter, in that order, have to cancel, if any."""
    order = line.analysis.order
    if not line.analysis.cancels:
        return [order[0], 0, 0]
    places = np.flatnonzero([line.analysis.high[k] for k in order])
    return [order[0], int(places[0]), int(places[-1]) + 1]


@lru_cache(maxsize=1024)
def forward(line: Line, dtype: np.dtype[Any]) -> Program:
    """The program of a level forward."""
    head, numbers = _lifting(line, False)
    kind, pairs, place = head[0], head[1], head[5]
    taps = 0 if kind == LIFTED else len(line.analysis.low)
    start, count = line.analysis.start, max(line.counts)
    lowest, last = line.reads()
    highest = 2 * (count - 1) + last
    if kind == FILTERED:
        numbers += [
            taps_[k] for taps_ in (line.analysis.low, line.analysis.high) for k in line.analysis.order
        ]
    left, right = max(0, -lowest), max(0, highest - line.length + 1)
    places = np.concatenate([np.arange(-left, 0), np.arange(line.length, line.length + right)])
    index, factors = line.beyond(places)
    used = np.repeat(factors != 0, [1, *[2] * DIFFERENCES], axis=1)
    made = (factors[:, 0] != 1) | (factors[:, 1:] != 0).any(axis=1)
    numbered = np.where(made, np.cumsum(made) - 1, -1)
    table = np.concatenate([index, numbered[:, np.newaxis]], axis=1)
    # Which rows those beyond the ends are made of: of places before the start, up to which; of places after
    # the end, from which on.
    near_start = int(np.where(used[:left], index[:left], -1).max(initial=-1)) + 1
    near_end = int(np.where(used[left:], index[left:], line.length).min(initial=line.length))
    integers = [*head, start, taps, left, right, int(made.sum()), near_end, near_start]
    integers += _order(line) if kind == FILTERED else []
    integers += [0] * (TABLE - len(integers))
    return Program(
        integers=np.array([*integers, *table.ravel()], dtype=np.int64),
        numbers=_numbers(line, False, [*numbers, *factors.ravel()], dtype),
        length=line.length,
        counts=line.counts,
        pairs=pairs,
        taps=max(taps, TERMS),
        reach=max(left, right, abs(start), taps, abs(place) + 2 * pairs + 4),
        rims=int(made.sum()),
        local=near_start <= left + 2 and near_end >= line.length - right - 2,
    )


@lru_cache(maxsize=1024)
def backward(line: Line, dtype: np.dtype[Any]) -> Program:
    """The program of a level back."""
    head, numbers = _lifting(line, True)
    kind, pairs, place, first = head[0], head[1], head[5], head[6]
    low, high = line.synthesis
    delta, half = 0, (line.length + 1) // 2
    used = line.uses(line.length)
    if kind == LIFTED:
        delta = (place + 1 - line.places[1 - first]) // 2
    else:
        # Details first, which are small: what is added to them loses less than what is added to a large sum.
        numbers += [side.even[k] for side in (high, low) for k in side.order]
        numbers += [side.odd[k] for side in (high, low) for k in side.order]
    margins, table = [], []
    for band, (begin, end) in enumerate(used):
        count = line.counts[band]
        left, right = max(0, -begin), max(0, end - count)
        margins += [left, right]
        places = np.concatenate([np.arange(-left, 0), np.arange(count, count + right)])
        table += line.coefficients_beyond(band, places).tolist()
    integers = [*head, delta]
    for side in (low, high):
        integers += [side.start, len(side.even)] if kind == FILTERED else [0, 0]
    turns = [low.order[0], high.order[0]]
    return Program(
        integers=np.array([*integers, *margins, *turns, *table], dtype=np.int64),
        numbers=_numbers(line, True, numbers, dtype),
        length=line.length,
        counts=line.counts,
        pairs=pairs,
        taps=len(low.even) + len(high.even),
        reach=max(*margins, *(abs(begin) for begin, _ in used), *(abs(end - half) for _, end in used)),
        rims=0,
        local=False,
    )
