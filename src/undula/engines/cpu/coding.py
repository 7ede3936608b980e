"""Integer lifting of chunks: passes along axes, which convert samples as they read or write them.

A chunk is seen as ``(outer, length, inner)`` by the pass along an axis. Neighbouring passes that stay within
small blocks of the chunk run one after the other on each block, which remains in a cache. All of it is one
call of a kernel in the caller's thread, during which other threads of Python run.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..memory import empty
from .coding_kernels import DELTA, HAAR, HEAD_WORDS, LIFT53, PASS_WORDS
from .executable import address
from .machine_code import source_address

__all__ = ["CODING_KINDS", "CodingStep", "decode", "encode", "fold_signs", "unfold_signs"]

Array = NDArray[Any]

CODING_KINDS = {"delta": DELTA, "haar": HAAR, "lift53": LIFT53}
TILE_BYTES = 1 << 16  # of a group of rows: two of them fit into the second cache, beside what is read
LEAST_WIDTH = 64  # columns of a tile; narrower ones would not use all of the memory lines that they touch
BLOCK_BYTES = 1 << 19  # of coefficients that stay in the second cache from one pass to the next


@dataclass(frozen=True)
class CodingStep:
    """One transform along one axis.

    Parameters
    ----------
    kind : str
        One of ``CODING_KINDS``.
    axis : int
        From 0.
    levels : int
        How often the approximation is decomposed.
    group : int
        How many samples are transformed together.
    """

    kind: str
    axis: int
    levels: int
    group: int


def encode(x: Array, plane: np.dtype[Any], steps: Sequence[CodingStep]) -> Array:
    """Return the coefficients of samples, which are contiguous and in native byte order.

    There is at least one step. Sums wrap around: it is up to the caller to know that they fit.
    """
    out = empty(x.shape, plane)
    source = x
    for start, stop in _stages(x.shape, plane.itemsize, steps):
        part = steps[start:stop]
        blocks = _block_count(x.shape, part)
        views = [_Place(source, blocks), *[_Place(out, blocks)] * len(part)]
        _run("encode_chunk", blocks, views, x.shape, x.dtype, plane, part, 0 if start == 0 else -1)
        source = out
    return out


def decode(coefficients: Array, dtype: np.dtype[Any], steps: Sequence[CodingStep]) -> tuple[Array, bool]:
    """Return samples of a dtype, and whether the dtype holds them all; the inverse of :func:`encode`."""
    plane, shape = coefficients.dtype, coefficients.shape
    out = empty(shape, dtype)
    backwards = steps[::-1]
    stages = _stages(shape, plane.itemsize, backwards)
    between = empty(shape, plane) if len(stages) > 1 else None
    source, fits = coefficients, True
    for start, stop in stages:
        part, last = backwards[start:stop], stop == len(backwards)
        blocks = _block_count(shape, part)
        if not last:
            assert between is not None
            views = [_Place(source, blocks), *[_Place(between, blocks)] * len(part)]
            source = between
        else:
            # What lies between the passes over a block is needed no longer than the block.
            middle = _Place(empty((math.prod(shape) // blocks,), plane), 0)
            views = [_Place(source, blocks), *[middle] * (len(part) - 1), _Place(out, blocks)]
        fits &= _run("decode_chunk", blocks, views, shape, dtype, plane, part, len(part) - 1 if last else -1)
    if dtype.kind == "u" and dtype.itemsize == plane.itemsize:  # The kernel checks only what it narrows.
        fits = fits and bool(out.view(plane).min() >= 0)
    return out, fits


def fold_signs(x: Array) -> Array:
    """Return 0, 1, 2, 3 … for the signed integers 0, -1, 1, -2 …, as unsigned ones of the same size.

    Numbers are contiguous and in native byte order.
    """
    return _folded("fold_signs", x, f"u{x.dtype.name}")


def unfold_signs(x: Array) -> Array:
    """Return the signed integers of :func:`fold_signs`."""
    return _folded("unfold_signs", x, x.dtype.name[1:])


def _folded(name: str, x: Array, dtype: str) -> Array:
    out = empty(x.shape, np.dtype(dtype))
    words = np.array([address(x), address(out), x.size], np.int64)
    plane = dtype.removeprefix("u")
    _kernel(f"{name}(table, np.{plane}(0), np.u{plane}(0))")(None, None, address(words), 0)
    return out


def _stages(shape: tuple[int, ...], itemsize: int, steps: Sequence[CodingStep]) -> list[tuple[int, int]]:
    """Return ranges of steps, each of which runs on one block of the chunk after the other."""
    ranges: list[tuple[int, int]] = []
    for number, step in enumerate(steps):
        if ranges:
            start = ranges[-1][0]
            axis = min(each.axis for each in (*steps[start:number], step))
            if math.prod(shape[axis:]) * itemsize <= BLOCK_BYTES:
                ranges[-1] = start, number + 1
                continue
        ranges.append((number, number + 1))
    return ranges


def _block_count(shape: tuple[int, ...], steps: Sequence[CodingStep]) -> int:
    """Return how many blocks a chunk has for the steps of one stage, which do not leave a block."""
    return 1 if len(steps) == 1 else math.prod(shape[: min(step.axis for step in steps)])


class _Place:
    """Where the first block of an array begins, and the distance of blocks; 0 blocks share one place."""

    def __init__(self, x: Array, blocks: int) -> None:
        self.array = x  # which stays alive as long as its address is used
        self.address = address(x)
        self.distance = x.nbytes // blocks if blocks else 0


def _run(
    name: str,
    blocks: int,
    places: Sequence[_Place],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    plane: np.dtype[Any],
    steps: Sequence[CodingStep],
    converting: int,
) -> bool:
    """Run steps over each block, from one place to the next; return whether all samples fit.

    ``converting`` is the number of the step that reads or writes samples in place of coefficients.
    """
    table: list[int] = []
    room = 0
    for number, (step, source, target) in enumerate(zip(steps, places, places[1:], strict=False)):
        length, inner = shape[step.axis], math.prod(shape[step.axis + 1 :])
        outer = math.prod(shape[: step.axis]) // blocks
        group = min(step.group, length)
        width = min(inner, max(LEAST_WIDTH, TILE_BYTES // (group * plane.itemsize)))
        room = max(room, 3 * (group + 2) if inner == 1 else 2 * group * width)
        table += [outer, length, inner, group, step.levels, CODING_KINDS[step.kind], width]
        table += [source.address, target.address, source.distance, target.distance]
        table.append(int(number == converting))
    scratch = empty((room,), plane)
    words = np.array([blocks, len(steps), address(scratch), 0, *table], np.int64)
    assert words.size == HEAD_WORDS + PASS_WORDS * len(steps)
    # Samples that are as large as coefficients are not converted, so one kernel serves both kinds.
    sample = plane if dtype.itemsize == plane.itemsize else dtype
    _kernel(f"{name}(table, np.{sample}(0), np.{plane}(0), np.u{plane}(0))")(None, None, address(words), 0)
    return not words[HEAD_WORDS - 1]


@cache
def _kernel(call: str) -> Callable[..., int]:
    """Return a function of the address of a table; ctypes lets other threads run while it works."""
    text = f"def kernel(table, like):\n    {call}\n"
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
    return kind(source_address(text, "int32"))
