"""The CPU backend: one level of a transform, forward and back, on arrays of any dimension and strides.

One axis, or two neighbouring ones, are worked on at once; where there are more, the first is split off and
its two bands are worked on in turn. Complex numbers are pairs of real ones beside each other.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...plans.boundary import TERMS
from ...plans.line import Line
from . import program
from .program import Program
from .threads import get_num_threads, ranges, run, set_num_threads

__all__ = ["backward", "forward", "get_num_threads", "set_num_threads"]

Array = NDArray[Any]
Lines = Sequence[tuple[int, Line]]  # axes and what is done along them

NARROW = 16  # Samples side by side below which an axis is worked on as lines.
LETTERS = ("a", "d")
TWO = ("aa", "ad", "da", "dd")


def forward(x: Array, lines: Lines, bands: Mapping[str, Array]) -> None:
    """One level: fills ``bands``, whose keys have a letter for each of ``lines``, in their order."""
    if x.dtype.kind == "c":
        x, bands = _pairs(x), {key: _pairs(band) for key, band in bands.items()}
    _forward(x, *_in_order(lines, bands))


def _forward(x: Array, lines: Lines, bands: Mapping[str, Array]) -> None:
    axis, line = lines[0]
    if len(lines) == 1:
        _one_axis("analyse", x, axis, program.forward(line, x.dtype), [bands[key] for key in LETTERS])
    elif len(lines) == 2 and lines[1][0] == axis + 1:
        pair = _alike(line, lines[1][1])
        programs = [program.forward(side, x.dtype) for side in pair]
        _planes("analyse", x, axis, programs, [bands[key] for key in TWO])
    else:
        halves = {letter: _resized(x, axis, n) for letter, n in zip(LETTERS, line.counts, strict=True)}
        _forward(x, lines[:1], halves)
        for letter, part in halves.items():
            _forward(part, lines[1:], _under(bands, letter))


def backward(bands: Mapping[str, Array | None], lines: Lines, x: Array) -> None:
    """One level back, into ``x``; bands that are None are zero."""
    if x.dtype.kind == "c":
        bands = {k: b if b is None else _pairs(b) for k, b in bands.items()}
        x = _pairs(x)
    _backward(*_in_order(lines, bands)[::-1], x)


def _backward(bands: Mapping[str, Array | None], lines: Lines, x: Array) -> None:
    axis, line = lines[0]
    if len(lines) == 1:
        _one_axis("synthesise", x, axis, program.backward(line, x.dtype), [bands[key] for key in LETTERS])
    elif len(lines) == 2 and lines[1][0] == axis + 1:
        pair = _alike(line, lines[1][1])
        programs = [program.backward(side, x.dtype) for side in pair]
        _planes("synthesise", x, axis, programs, [bands[key] for key in TWO])
    else:
        halves: dict[str, Array | None] = {}
        for letter, count in zip(LETTERS, line.counts, strict=True):
            under = _under(bands, letter)
            halves[letter] = None
            if any(band is not None for band in under.values()):
                halves[letter] = part = _resized(x, axis, count)
                _backward(under, lines[1:], part)
        _backward(halves, lines[:1], x)


def _in_order(lines: Lines, bands: Mapping[str, Any]) -> tuple[Lines, dict[str, Any]]:
    """Lines by ascending axis, and the letters of the keys with them."""
    order = sorted(range(len(lines)), key=lambda k: lines[k][0])
    if order == list(range(len(lines))):
        return lines, dict(bands)
    return [lines[k] for k in order], {"".join(key[k] for k in order): b for key, b in bands.items()}


def _under(bands: Mapping[str, Any], letter: str) -> dict[str, Any]:
    return {key[1:]: band for key, band in bands.items() if key[0] == letter}


def _alike(down: Line, along: Line) -> tuple[Line, Line]:
    """Both lifted or both filtered: the kernels for planes know no mixture."""
    if (down.chain is None) == (along.chain is None):
        return down, along
    return replace(down, chain=None), replace(along, chain=None)


def _resized(x: Array, axis: int, count: int) -> Array:
    return np.empty((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype)


def _pairs(x: Array) -> Array:
    """Complex numbers as real ones, with one more axis for their two parts; shares memory."""
    real = x.real
    return np.lib.stride_tricks.as_strided(real, (*x.shape, 2), (*x.strides, real.itemsize))


# --- where arrays lie -----------------------------------------------------------------------------


class _Layout(NamedTuple):
    """An array as planes of rows."""

    address: int
    planes: int
    plane: int  # bytes from one to the next
    row: int


def _layout(x: Array, outer: int, inner: int) -> _Layout | None:
    """Axes before ``outer`` as planes, ``outer`` as rows, axes from ``inner`` on in one piece; else None."""
    size = x.itemsize
    for axis in range(x.ndim - 1, inner - 1, -1):
        if x.shape[axis] > 1 and x.strides[axis] != size:
            return None
        size *= x.shape[axis]
    planes, stride = 1, 0
    for axis in range(outer - 1, -1, -1):
        if x.shape[axis] == 1:
            continue
        if planes > 1 and x.strides[axis] != planes * stride:
            return None
        if planes == 1:
            stride = x.strides[axis]
        planes *= x.shape[axis]
    row = x.strides[outer] if outer < inner else 0
    address: int = x.__array_interface__["data"][0]
    if address % x.dtype.alignment or stride % x.itemsize or row % x.itemsize:
        return None
    return _Layout(address, planes, stride, row)


class _Sources:
    """Arrays that are read, copied where their strides are such that kernels cannot."""

    def __init__(self, arrays: Sequence[Array | None], outer: int, inner: int) -> None:
        self.kept: list[Array] = []
        self.layouts: list[_Layout] = []
        given = next(array for array in arrays if array is not None)
        for array in arrays:
            if array is None:  # zeros: one row for all
                shape = given.shape[inner:]
                zeros = np.zeros(max(1, math.prod(shape)), given.dtype)
                self.kept.append(zeros)
                self.layouts.append(_Layout(zeros.__array_interface__["data"][0], 1, 0, 0))
                continue
            layout = _layout(array, outer, inner)
            if layout is None:
                array = np.array(array, order="C")
                layout = _layout(array, outer, inner)
                assert layout is not None
            self.kept.append(array)
            self.layouts.append(layout)


class _Targets(_Sources):
    """Arrays that are written; :meth:`finish` brings results home to those with other strides."""

    def __init__(self, arrays: Sequence[Array], outer: int, inner: int) -> None:
        fits = [_layout(array, outer, inner) is not None for array in arrays]
        own = [a if good else np.empty(a.shape, a.dtype) for a, good in zip(arrays, fits, strict=True)]
        super().__init__(own, outer, inner)
        self.elsewhere = [(a, b) for a, b, good in zip(arrays, own, fits, strict=True) if not good]

    def finish(self) -> None:
        for array, made in self.elsewhere:
            array[...] = made


# --- calling kernels ------------------------------------------------------------------------------

_local = threading.local()


def _scratch(size: int) -> Array:
    """Memory that this thread works in, kept for the next time."""
    kept: Array | None = getattr(_local, "scratch", None)
    if kept is None or kept.nbytes < size:
        kept = _local.scratch = np.empty(size, np.uint8)
    return kept


class _Room(NamedTuple):
    """Scratch that a kernel wants: rows in halves, and a buffer for the steps along a row."""

    half: int
    origin: int
    slots: int
    step: int
    listed: int


def _rounded(size: int) -> int:
    return -(-size // 64) * 64


def _call(
    kernel: Callable[..., None], arguments: Array, programs: Sequence[Program], room: _Room, size: int
) -> None:
    """One piece of the work, in the thread that does it."""
    from .kernels import BUFFER, CHUNK, HALF, ORIGIN, SCRATCH, SLOT

    origin, half = _rounded(room.origin), _rounded(room.half) + 64
    slot = 2 * half + 64
    buffer = 2 * (max(1, CHUNK * size // room.step) + 4) * room.step + 2 * room.step
    memory = _scratch(slot * room.slots + origin + buffer + 3 * 64)
    start = _rounded(memory.__array_interface__["data"][0])
    arguments[SCRATCH], arguments[SLOT], arguments[HALF], arguments[ORIGIN] = start, slot, half, origin
    arguments[BUFFER] = _rounded(start + slot * room.slots + origin)
    arrays = [array for one in programs for array in (one.integers, one.numbers)]
    kernel(arguments, *arrays, np.empty(room.listed + TERMS, np.int64))


def _run(
    kernel: Callable[..., None],
    x: _Layout,
    bands: Sequence[_Layout],
    programs: Sequence[Program],
    room: _Room,
    whole: tuple[int, int],  # what is to be made: how many rows or coefficients, in what units
    channels: int,
    samples: int,
    size: int,
) -> None:
    """All of the work, cut into pieces for threads: planes if there are enough of them, or rows."""
    from .kernels import (
        ARGUMENTS,
        BAND_PLANE,
        BAND_ROW,
        BANDS,
        BEGIN,
        CHANNELS,
        END,
        PLANES,
        X_PLANE,
        X_ROW,
        X,
    )  # fmt: skip

    count, unit = whole
    fixed = np.zeros(ARGUMENTS, np.int64)
    fixed[[X, X_PLANE, X_ROW, CHANNELS]] = x.address, x.plane, x.row, channels
    for k, band in enumerate(bands):
        fixed[BANDS + k], fixed[BAND_PLANE + k], fixed[BAND_ROW + k] = band.address, band.plane, band.row
    fixed[PLANES], fixed[BEGIN], fixed[END] = x.planes, 0, count
    pieces = []
    if x.planes >= get_num_threads():
        for begin, end in ranges(x.planes, samples):
            own = fixed.copy()
            own[PLANES] = end - begin
            own[X] += begin * x.plane
            for k, band in enumerate(bands):
                own[BANDS + k] += begin * band.plane
            pieces.append((kernel, own, programs, room, size))
    else:
        for begin, end in ranges(-(-count // unit), samples):
            own = fixed.copy()
            own[BEGIN], own[END] = begin * unit, min(end * unit, count)
            pieces.append((kernel, own, programs, room, size))
    run(_call, pieces)


def _planes(
    what: str, x: Array, axis: int, programs: Sequence[Program], bands: Sequence[Array | None]
) -> None:
    """Both of two neighbouring axes."""
    from . import kernels

    down, along = programs
    channels = math.prod(x.shape[axis + 2 :])
    step = channels * x.itemsize
    reach = along.reach + 8
    places = max(*along.counts, (along.length + 1) // 2) + 2 * reach
    if what == "analyse":
        sources, targets = _Sources([x], axis, axis + 1), _Targets(bands, axis, axis + 1)  # type: ignore[arg-type]
        slots = 4 * down.pairs + 4 + down.rims
        whole, layouts = (max(down.counts), 1), (sources.layouts[0], targets.layouts)
    else:
        sources, targets = _Sources(bands, axis, axis + 1), _Targets([x], axis, axis + 1)
        slots = 9 + 4 * down.pairs + (down.taps if not down.pairs else 0)
        whole, layouts = (down.length, 2), (targets.layouts[0], sources.layouts)
    room = _Room(places * step, reach * step, slots, step, down.taps + along.taps)
    kernel = getattr(kernels, f"{what}_planes")
    _run(kernel, *layouts, programs, room, whole, channels, x.size, x.itemsize)
    targets.finish()


def _one_axis(what: str, x: Array, axis: int, one: Program, bands: Sequence[Array | None]) -> None:
    """One axis: down the columns, or along lines where there are no columns to speak of."""
    from . import kernels

    channels = math.prod(x.shape[axis + 1 :])
    lines = channels < NARROW
    inner = axis if lines else axis + 1
    if what == "analyse":
        sources, targets = _Sources([x], axis, inner), _Targets(bands, axis, inner)  # type: ignore[arg-type]
        whole, layouts = (max(one.counts), 1), (sources.layouts[0], targets.layouts)
    else:
        sources, targets = _Sources(bands, axis, inner), _Targets([x], axis, inner)
        whole, layouts = (one.length, 2), (targets.layouts[0], sources.layouts)
    size = x.itemsize
    if lines:
        step = channels * size
        reach = one.reach + 8
        room = _Room((max(8, kernels.STRIP // channels) + 2 * reach) * step, reach * step, 3, step, one.taps)
    else:
        slots = 4 * one.pairs + 4 + one.rims
        room = _Room(min(kernels.STRIP, channels) * size, 0, slots, size, one.taps)
    kernel = getattr(kernels, f"{what}_{'lines' if lines else 'columns'}")
    _run(kernel, *layouts, [one], room, whole, channels, x.size, size)
    targets.finish()
