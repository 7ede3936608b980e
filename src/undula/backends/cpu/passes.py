"""Passes: one axis, or two neighbouring ones, of arrays of one shape, as calls of kernels.

Everything that depends on the shape alone is prepared once: programs, strides, how much scratch. A call finds
the addresses, cuts the work into pieces for threads, and runs the kernel on each.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...plans.boundary import TERMS
from ...plans.line import Line
from . import program
from .program import Program
from .threads import ranges, run, workers

__all__ = ["Pass"]

Array = NDArray[Any]
Shape = tuple[int, ...]

NARROW = 16  # Samples side by side below which an axis is worked on as lines.


class Layout(NamedTuple):
    """An array as planes of rows: where it begins, and bytes from one plane and one row to the next."""

    address: int
    plane: int
    row: int


def _strides(shape: Shape, strides: Shape, itemsize: int, outer: int, inner: int) -> tuple[int, int] | None:
    """Bytes between planes and between rows; None where the strides are not of such a kind.

    Axes before ``outer`` are planes, ``outer`` has the rows unless it is ``inner``, and from ``inner`` on
    everything lies in one piece.
    """
    size = itemsize
    for axis in range(len(shape) - 1, inner - 1, -1):
        if shape[axis] > 1 and strides[axis] != size:
            return None
        size *= shape[axis]
    planes, plane = 1, 0
    for axis in range(outer - 1, -1, -1):
        if shape[axis] == 1:
            continue
        if planes > 1 and strides[axis] != planes * plane:
            return None
        plane = plane if planes > 1 else strides[axis]
        planes *= shape[axis]
    row = strides[outer] if outer < inner else 0
    return None if plane % itemsize or row % itemsize else (plane, row)


def _contiguous(shape: Shape, itemsize: int) -> Shape:
    strides = [itemsize]
    for n in shape[:0:-1]:
        strides.append(strides[-1] * n)
    return tuple(strides[::-1])


def _address(x: Array) -> int:
    address: int = x.__array_interface__["data"][0]
    return address


class Side:
    """Where arrays of one shape lie; several of them share it."""

    def __init__(self, shape: Shape, itemsize: int, outer: int, inner: int) -> None:
        self.shape, self.outer, self.inner, self.itemsize = shape, outer, inner, itemsize
        usual = _strides(shape, _contiguous(shape, itemsize), itemsize, outer, inner)
        assert usual is not None
        self.usual = usual

    def layout(self, x: Array) -> Layout | None:
        """Of one array, or None where kernels cannot follow its strides."""
        flags = x.flags
        if not flags.aligned:
            return None
        if flags.c_contiguous:
            return Layout(_address(x), *self.usual)
        found = _strides(x.shape, x.strides, self.itemsize, self.outer, self.inner)
        return None if found is None else Layout(_address(x), *found)


class Room(NamedTuple):
    """Scratch that a kernel wants: rows in halves, and a buffer for the steps along a row."""

    half: int
    origin: int
    slots: int
    step: int
    listed: int


_local = threading.local()


def _scratch(size: int, listed: int) -> tuple[Array, Array]:
    """Memory that this thread works in, kept for the next time: bytes, and a list of addresses."""
    kept: tuple[Array, Array] | None = getattr(_local, "scratch", None)
    if kept is None or kept[0].nbytes < size or kept[1].size < listed:
        kept = _local.scratch = (np.empty(size, np.uint8), np.empty(max(listed, 64), np.int64))
    return kept


def _rounded(size: int) -> int:
    return -(-size // 64) * 64


def call(kernel: Any, arguments: Array, arrays: Sequence[Array], room: Room, size: int) -> None:
    """One piece of the work, in the thread that does it; ``size`` is that of a sample."""
    from .kernels import BUFFER, CHUNK, HALF, ORIGIN, SCRATCH, SLOT

    origin, half = _rounded(room.origin), _rounded(room.half) + 64
    slot = 2 * half + 64
    buffer = 2 * (max(1, CHUNK * size // room.step) + 4) * room.step + 2 * room.step
    memory, listed = _scratch(slot * room.slots + origin + buffer + 3 * 64, room.listed + TERMS)
    start = _rounded(_address(memory))
    arguments[SCRATCH], arguments[SLOT], arguments[HALF], arguments[ORIGIN] = start, slot, half, origin
    arguments[BUFFER] = _rounded(start + slot * room.slots + origin)
    kernel(arguments, *arrays, listed)


class Pass:
    """One or two neighbouring axes of arrays of one shape, forward or back.

    Parameters
    ----------
    back : bool
        From bands to samples.
    shape : tuple of int
        Of the samples.
    dtype : dtype
        float32 or float64.
    axis : int
        The axis, or the first of two.
    lines : one or two Lines
    """

    def __init__(
        self, back: bool, shape: Shape, dtype: np.dtype[Any], axis: int, lines: Sequence[Line]
    ) -> None:
        make = program.backward if back else program.forward
        programs = [make(line, dtype) for line in lines]
        self.back, self.size, self.dtype = back, dtype.itemsize, dtype
        self.arrays = [array for one in programs for array in (one.integers, one.numbers)]
        last = axis + len(lines) - 1
        self.channels = math.prod(shape[last + 1 :])
        along = len(lines) == 1 and self.channels < NARROW
        self.kind = "planes" if len(lines) == 2 else "lines" if along else "columns"
        self.inner = axis if along else axis + 1
        self.x = Side(shape, self.size, axis, self.inner)
        band = list(shape)
        self.bands = []
        for number in range(2 ** len(lines)):
            for k, line in enumerate(lines):
                band[axis + k] = line.counts[number >> (len(lines) - 1 - k) & 1]
            self.bands.append(Side(tuple(band), self.size, axis, self.inner))
        self.planes = math.prod(shape[:axis])
        self.samples = math.prod(shape)
        first = programs[0]
        self.count, self.unit = (first.length, 2) if back else (max(first.counts), 1)
        self.room = getattr(self, f"_room_for_{self.kind}")(programs, shape[last + 1 :])
        self.template: Array | None = None

    def _room_for_planes(self, programs: Sequence[Program], rest: Shape) -> Room:
        down, along = programs
        step = self.channels * self.size
        reach = along.reach + 8
        places = max(*along.counts, (along.length + 1) // 2) + 2 * reach
        slots = 4 * down.pairs + (9 + (0 if down.pairs else down.taps) if self.back else 4 + down.rims)
        return Room(places * step, reach * step, slots, step, down.taps + along.taps)

    def _room_for_lines(self, programs: Sequence[Program], rest: Shape) -> Room:
        from .kernels import STRIP

        (one,) = programs
        step = self.channels * self.size
        reach = one.reach + 8
        return Room((max(8, STRIP // self.channels) + 2 * reach) * step, reach * step, 3, step, one.taps)

    def _room_for_columns(self, programs: Sequence[Program], rest: Shape) -> Room:
        from .kernels import STRIP

        (one,) = programs
        wide = min(STRIP, self.channels) * self.size
        return Room(wide, 0, 4 * one.pairs + 4 + one.rims, self.size, one.taps)

    def _template(self) -> Array:
        from .kernels import ARGUMENTS, BEGIN, CHANNELS, END, PLANES

        if self.template is None:
            self.template = np.zeros(ARGUMENTS, np.int64)
            self.template[[CHANNELS, PLANES, BEGIN, END]] = self.channels, self.planes, 0, self.count
        return self.template.copy()

    def __call__(self, x: Array, bands: Sequence[Array | None]) -> None:
        """From ``x`` to the bands, or back, where a band that is None is zero."""
        from . import kernels
        from .kernels import BAND_PLANE, BAND_ROW, BANDS, X_PLANE, X_ROW, X

        kernel = getattr(kernels, f"{'synthesise' if self.back else 'analyse'}_{self.kind}")
        arguments = self._template()
        kept: list[Array] = []  # what must not go away while kernels work on addresses
        home: list[tuple[Array, Array]] = []  # arrays to be written, and where the results stand meanwhile

        def place(array: Array, side: Side, written: bool) -> Layout:
            layout = side.layout(array)
            if layout is None:
                own = np.empty(array.shape, array.dtype) if written else np.array(array, order="C")
                layout = side.layout(own)
                assert layout is not None
                kept.append(own)
                if written:
                    home.append((array, own))
            return layout

        arguments[X], arguments[X_PLANE], arguments[X_ROW] = place(x, self.x, self.back)
        for k, (band, side) in enumerate(zip(bands, self.bands, strict=True)):
            if band is None:  # one row of zeros stands for all
                zeros = np.zeros(max(1, math.prod(side.shape[self.inner :])), self.dtype)
                kept.append(zeros)
                layout = Layout(_address(zeros), 0, 0)
            else:
                layout = place(band, side, not self.back)
            arguments[BANDS + k], arguments[BAND_PLANE + k], arguments[BAND_ROW + k] = layout
        run(call, [(kernel, own, self.arrays, self.room, self.size) for own in self._pieces(arguments)])
        for array, own in home:
            array[...] = own

    def _pieces(self, arguments: Array) -> list[Array]:
        """The arguments of each thread: some of the planes, or some of the rows of all."""
        from .kernels import BAND_PLANE, BANDS, BEGIN, END, PLANES, X_PLANE, X

        pieces = []
        threads = workers(self.samples)
        if threads == 1:
            return [arguments]
        if self.planes >= threads:
            for begin, end in ranges(self.planes, threads):
                own = arguments.copy()
                own[PLANES] = end - begin
                own[X] += begin * own[X_PLANE]
                own[BANDS : BANDS + 4] += begin * own[BAND_PLANE : BAND_PLANE + 4]
                pieces.append(own)
        else:
            for begin, end in ranges(-(-self.count // self.unit), threads):
                own = arguments.copy()
                own[BEGIN], own[END] = begin * self.unit, min(end * self.unit, self.count)
                pieces.append(own)
        return pieces
