"""The CPU backend: one level of a transform, forward and back, on arrays of any dimension and strides.

One axis, or two neighbouring ones, are worked on at once; where there are more, the first is split off and
its two bands are worked on in turn. Complex numbers are pairs of real ones beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plans.line import Line, Steps
from ...plans.mixing import Mixing
from .compiled import kernel
from .memory import empty, keep_memory, kept_memory
from .mixing import fusible, join_channels, mix_planes, run_mixed
from .passes import Pass, TwoLevels, address
from .threads import get_num_threads, run, set_num_threads, workers

__all__ = [
    "Level",
    "empty",
    "get_num_threads",
    "join_channels",
    "keep_memory",
    "kept_memory",
    "largest",
    "largest_of",
    "mix_planes",
    "set_num_threads",
]

Array = NDArray[Any]
Shape = tuple[int, ...]
Lines = Sequence[tuple[int, Line | Steps]]  # axes and what is done along them
Work = Callable[[Array, Sequence[Array | None]], None]


class Level:
    """One level of arrays of one shape and dtype, ready to run.

    Parameters
    ----------
    shape : tuple of int
        Of the samples.
    dtype : dtype
        float32, float64, complex64, complex128; int16 and int32 where all lines are lifted, and int64 where
        that is done step by step.
    lines : sequence of (axis, Line or Steps)
        What is done along which axis; bands are named by a letter for each, in this order.
    """

    def __init__(self, shape: Shape, dtype: np.dtype[Any], lines: Lines) -> None:
        self.complex = dtype.kind == "c"
        if self.complex:
            shape, dtype = (*shape, 2), np.empty(0, dtype).real.dtype
        order = list(range(len(lines)))
        if dtype.kind == "f":  # (rounding makes the order of integer steps matter)
            order.sort(key=lambda k: lines[k][0])
        ordered = [lines[k] for k in order]
        # Keys as the caller has them, in the order in which the work here has the bands.
        back = [order.index(k) for k in range(len(order))]
        self.keys = ["".join(letters[k] for k in back) for letters in product("ad", repeat=len(order))]
        self._shape, self._dtype, self._lines = shape, dtype, ordered
        self._work: dict[bool, Work] = {}

    def _of(self, back: bool) -> Work:
        if back not in self._work:
            self._work[back] = _work(back, self._shape, self._dtype, self._lines)
        return self._work[back]

    def forward(self, x: Array, bands: Mapping[str, Array]) -> None:
        """Fills the bands."""
        ordered = [bands[key] for key in self.keys]
        if self.complex:
            x, ordered = _pairs(x), [_pairs(band) for band in ordered]
        self._of(False)(x, ordered)

    def with_next(self, other: Level) -> TwoLevels | None:
        """The work of a level and the next one at once, if that is possible."""
        first, second = self._of(False), other._of(False)
        if TwoLevels.possible(first, second):
            return TwoLevels(first, second)  # type: ignore[arg-type]
        return None

    def forward_two(
        self, work: TwoLevels, x: Array, bands: Mapping[str, Array], other: Level, others: Mapping[str, Array]
    ) -> None:
        """Fills the bands of two levels, except the approximation between them."""
        sides: list[list[Array | None]] = []
        for level, found in ((self, bands), (other, others)):
            ordered = [found.get(key) for key in level.keys]
            sides.append([_pairs(b) if self.complex and b is not None else b for b in ordered])
        work(_pairs(x) if self.complex else x, *sides)

    def forward_mixed(
        self,
        image: Array,
        mixing: Mixing,
        bands: Mapping[str, Array],
        both: TwoLevels | None = None,
        others: Mapping[str, Array] | None = None,
    ) -> None:
        """Fills the bands of planes that are made of an image, and those of the next level where ``both``."""
        sides = [[found.get(key) for key in self.keys] for found in (bands, others) if found is not None]
        work = self._of(False) if both is None else both
        assert isinstance(work, (Pass, TwoLevels))
        run_mixed(work, image, mixing, sides)

    @property
    def mixes(self) -> bool:
        """Whether :meth:`forward_mixed` can be used."""
        return fusible(self._of(False))

    def rows(self, back: bool, x: Array, bands: Mapping[str, Array | None], begin: int, end: int) -> None:
        """Some rows of an image, forward or back, into arrays that begin with the first of them."""
        work, ordered = self._of(back), [bands[key] for key in self.keys]
        assert isinstance(work, Pass)
        if self.complex:
            x, ordered = _pairs(x), [None if band is None else _pairs(band) for band in ordered]
        work.rows(x, ordered, begin, end)

    def backward(self, bands: Mapping[str, Array | None], x: Array) -> None:
        """Fills ``x``; bands that are None are zero."""
        ordered = [bands[key] for key in self.keys]
        if self.complex:
            x, ordered = _pairs(x), [None if band is None else _pairs(band) for band in ordered]
        self._of(True)(x, ordered)


def largest(x: Array) -> int:
    """The largest of integers, whatever their signs."""
    return int(largest_of([x])[0])


def largest_of(arrays: Sequence[Array]) -> list[int]:
    """The largest of the integers in each array, whatever their signs."""
    dtype, total = arrays[0].dtype, 0
    table: list[int] = []
    for x in arrays:
        if x.dtype != dtype or not x.flags.c_contiguous or dtype.char not in _FOUND_IN:
            return [max(-int(x.min()), int(x.max())) if x.size else 0 for x in arrays]
        table += [address(x) if x.size else 0, x.size]
        total += x.size
    count, threads = len(arrays), workers(total)
    if threads > 1:  # each thread has a part of every array
        pieces: list[int] = []
        for thread in range(threads):
            for start, size in zip(table[::2], table[1::2], strict=True):
                begin, end = size * thread // threads, size * (thread + 1) // threads
                pieces += [start + begin * dtype.itemsize, end - begin]
        table = pieces
    memory = np.array([*table, *[0] * (len(table) // 2 + 16 * threads)], np.int64)
    start = address(memory)
    results = start + 8 * len(table)
    scratch = results + 4 * len(table)
    run(
        kernel("find_largest", _FOUND_IN[dtype.char]),
        [
            (start + 16 * count * thread, results + 8 * count * thread, scratch + 128 * thread, count)
            for thread in range(threads)
        ],
    )
    found: list[int] = memory[len(table) : len(table) + count * threads].tolist()
    return found if threads == 1 else [max(found[k::count]) for k in range(count)]


_FOUND_IN = {"h": "int16", "i": "int32"}


def _pairs(x: Array) -> Array:
    """Complex numbers as real ones, with one more axis for their two parts; shares memory."""
    real = x.real
    return np.lib.stride_tricks.as_strided(real, (*x.shape, 2), (*x.strides, real.itemsize))


def _work(back: bool, shape: Shape, dtype: np.dtype[Any], lines: Lines) -> Work:
    """What does a level: passes, one after the other."""
    axis, line = lines[0]
    if len(lines) == 1:
        if isinstance(line, Line):
            return Pass(back, shape, dtype, axis, [line])
        from .steps import StepsPass

        return StepsPass(back, shape, dtype, axis, line)
    other_axis, other = lines[1]
    if len(lines) == 2 and other_axis == axis + 1 and isinstance(line, Line) and isinstance(other, Line):
        return Pass(back, shape, dtype, axis, _alike(line, other))
    shapes = [(*shape[:axis], count, *shape[axis + 1 :]) for count in line.counts]
    rest = [_work(back, part, dtype, lines[1:]) if 0 not in part else None for part in shapes]
    return _Split(back, _work(back, shape, dtype, lines[:1]), shapes, rest, dtype)


def _alike(down: Line, along: Line) -> list[Line]:
    """Both lifted or both filtered: the kernels for planes know no mixture."""
    if (down.chain is None) == (along.chain is None):
        return [down, along]
    return [replace(down, chain=None), replace(along, chain=None)]


@dataclass(frozen=True)
class _Split:
    """The first axis apart from all others."""

    back: bool
    first: Work
    shapes: Sequence[Shape]
    rest: Sequence[Work | None]
    dtype: np.dtype[Any]

    def __call__(self, x: Array, bands: Sequence[Array | None]) -> None:
        half = len(bands) // 2
        under = [bands[:half], bands[half:]]
        parts: list[Array | None] = [empty(shape, self.dtype) for shape in self.shapes]
        if not self.back:
            self.first(x, parts)
        for k, (part, own, work) in enumerate(zip(parts, under, self.rest, strict=True)):
            if work is None or part is None:
                continue
            if self.back and all(band is None for band in own):
                parts[k] = None
            else:
                work(part, own)
        if self.back:
            self.first(x, parts)
