"""Passes: one axis, or two neighbouring ones, of arrays of one shape, as calls of kernels.

Everything that depends on the shape alone is prepared once: programs, strides, how much scratch. A call finds
the addresses, cuts the work into pieces for threads, and runs the kernel on each.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plans.boundary import TERMS
from ...plans.line import Line
from ..strides import contiguous, plane_strides
from . import program
from .compiled import kernel
from .layout import BLOCK, CHUNK, STRIP
from .program import Program
from .threads import ranges, recorded, run, workers

__all__ = ["Pass", "TwoLevels", "address"]

Array = NDArray[Any]
Shape = tuple[int, ...]

NARROW = 16  # Samples side by side below which an axis is worked on as lines.


def address(x: Array) -> int:
    """Where an array begins; the quickest way first."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(x))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # read-only, empty or with strides
        address: int = x.__array_interface__["data"][0]
        return address


class Side:
    """Where arrays of one shape lie, as planes of rows."""

    def __init__(self, shape: Shape, itemsize: int, outer: int, inner: int) -> None:
        self.shape, self.outer, self.inner, self.itemsize = shape, outer, inner, itemsize
        usual = plane_strides(shape, contiguous(shape, itemsize), itemsize, outer, inner)
        assert usual is not None
        self.usual = usual

    def strides(self, x: Array) -> tuple[int, int] | None:
        """Bytes between planes and rows of an array, or None where kernels cannot follow its strides."""
        flags = x.flags
        if not flags.aligned:
            return None
        if flags.c_contiguous:
            return self.usual
        return plane_strides(x.shape, x.strides, self.itemsize, self.outer, self.inner)


class Room:
    """Scratch that a kernel wants: rows in halves, a buffer for steps along a row, a list of addresses."""

    def __init__(self, half: int, origin: int, slots: int, step: int, listed: int, size: int) -> None:
        self.origin, self.half = _rounded(origin), _rounded(half) + 64
        self.slot = 2 * self.half + 64
        self.before = _rounded(self.slot * slots + self.origin)  # the buffer
        self.bytes = self.before + 2 * (max(1, CHUNK * size // step) + 4) * step + 2 * step + 64
        self.listed = listed + TERMS

    def place(self, start: int) -> list[int]:
        """Where everything is, for scratch that starts at this address."""
        return [start, self.slot, self.half, self.origin, start + self.before]


def _rounded(size: int) -> int:
    return -(-size // 64) * 64


_local = threading.local()
NOTHING = np.zeros(32, np.int64)  # arguments for no work


def _scratch(size: int, listed: int) -> tuple[Array, Array]:
    """Memory that this thread works in, kept for the next time: bytes, and a list of addresses."""
    kept: tuple[Array, Array] | None = getattr(_local, "scratch", None)
    if kept is None or kept[0].nbytes < size or kept[1].size < listed:
        kept = _local.scratch = (np.empty(size, np.uint8), np.empty(max(listed, 64), np.int64))
    return kept


def call(kernel: Any, arguments: list[int], arrays: Sequence[int], room: Room, mix: int = 0) -> None:
    """One piece of the work, in the thread that does it; ``mix`` is where it stands how samples are made."""
    memory, listed = _scratch(room.bytes, room.listed)
    own = np.array([*arguments, *room.place(_rounded(address(memory))), mix], np.int64)
    kernel(address(own), *arrays, address(listed))


def call_two(
    kernel: Any, arguments: Sequence[list[int]], levels: Sequence[Pass], rows: int, mix: int = 0
) -> None:
    """One piece of two levels at once; ``rows`` bytes are for the approximation between them."""
    first, second = (level.room for level in levels)
    memory, listed = _scratch(first.bytes + second.bytes + rows + 256, max(first.listed, second.listed))
    start = _rounded(address(memory))
    middle = start + _rounded(first.bytes)
    rows_between = middle + _rounded(second.bytes)
    own = [np.array([*arguments[0], *first.place(start), mix], np.int64)]
    # (Arguments stay as they are: several threads may run the same call again at once.)
    own.append(np.array([rows_between, *arguments[1][1:], *second.place(middle), 0], np.int64))
    first_programs, second_programs = (level.programs for level in levels)
    kernel(address(own[0]), *first_programs, address(own[1]), *second_programs, address(listed))


class Pass:
    """One or two neighbouring axes of arrays of one shape, forward or back.

    Parameters
    ----------
    back : bool
        From bands to samples.
    shape : tuple of int
        Of the samples.
    dtype : dtype
        float32 or float64; int16 or int32 for lines that are lifted.
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
        self._kept = programs  # (their arrays are found by address)
        self.programs = [address(array) for one in programs for array in (one.integers, one.numbers)]
        # The kernel for images forward could do a second level, too; here there is none.
        self.no_more: list[int] = []
        if len(lines) == 2 and not back:
            self.no_more = [address(NOTHING), *self.programs]
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
        self.local = all(one.local for one in programs)
        self.lifted = all(line.chain is not None for line in lines)
        self.overlap = programs[0].taps + programs[0].reach
        self.room: Room = getattr(self, f"_room_for_{self.kind}")(programs)

    def _room_for_planes(self, programs: Sequence[Program]) -> Room:
        down, along = programs
        step = self.channels * self.size
        reach = along.reach + 8
        places = max(*along.counts, (along.length + 1) // 2) + 2 * reach
        # (Forward, four rows are for samples that are made of others.)
        slots = 4 * down.pairs + (9 + (0 if down.pairs else down.taps) if self.back else 8 + down.rims)
        listed = down.taps + along.taps + 4 * reach
        return Room(places * step, reach * step, slots, step, listed, self.size)

    def _room_for_lines(self, programs: Sequence[Program]) -> Room:
        (one,) = programs
        step = self.channels * self.size
        reach = one.reach + 8
        half = (max(8, STRIP // self.channels) + 2 * reach) * step
        return Room(half, reach * step, 3, step, one.taps, self.size)

    def _room_for_columns(self, programs: Sequence[Program]) -> Room:
        (one,) = programs
        wide = min(STRIP, self.channels) * self.size
        return Room(wide, 0, 4 * one.pairs + 4 + one.rims, self.size, one.taps, self.size)

    @cached_property
    def kernel(self) -> Any:
        """What does the work."""
        return kernel(f"{'synthesise' if self.back else 'analyse'}_{self.kind}", str(self.dtype))

    def __call__(self, x: Array, bands: Sequence[Array | None]) -> None:
        """From ``x`` to the bands, or back, where a band that is None is zero."""
        with _Places(self, x, bands) as places:
            run(
                call,
                [
                    (self.kernel, own, [*self.programs, *self.no_more], self.room)
                    for own in self._pieces(places)
                ],
            )

    def mixed(self, x: tuple[int, int, int], mix: int, bands: Sequence[Array | None]) -> None:
        """From an image whose address and strides are known, with planes that are made of it."""
        with _Places(self, None, bands) as places:
            places[0] = x
            pieces = []
            for some in ranges(self.count, workers(self.samples)):
                own = self._arguments(places, (0, self.planes), some)
                pieces.append((self.kernel, own, [*self.programs, *self.no_more], self.room, mix))
            run(call, pieces)

    def rows(self, x: Array, bands: Sequence[Array | None], begin: int, end: int) -> None:
        """Only rows ``begin … end`` of the result, in arrays that begin with the first of them.

        They must not depend on what lies beyond an end of the array that is no end of the image.
        """
        with _Places(self, x, bands) as places:
            for k in range(1) if self.back else range(1, 5):
                address, plane, row = places[k]
                places[k] = (address - begin * row, plane, row)
            pieces = []
            for first, last in ranges(-(-(end - begin) // self.unit), workers(self.samples)):
                some = begin + first * self.unit, min(begin + last * self.unit, end)
                own = self._arguments(places, (0, self.planes), some)
                pieces.append((self.kernel, own, [*self.programs, *self.no_more], self.room))
            run(call, pieces)

    def _arguments(
        self, places: Sequence[tuple[int, int, int]], planes: tuple[int, int], rows: tuple[int, int]
    ) -> list[int]:
        """What the kernel is told, up to the scratch: some of the planes, some of the rows."""
        first = planes[0]
        addresses = [address + first * plane for address, plane, _ in places]
        steps = [plane for _, plane, _ in places]
        strides = [row for _, _, row in places]
        return [
            addresses[0], steps[0], strides[0], *addresses[1:], *steps[1:], *strides[1:],
            planes[1] - first, *rows, self.channels,
        ]  # fmt: skip

    def _pieces(self, places: Sequence[tuple[int, int, int]]) -> list[list[int]]:
        """The arguments of each thread: some of the planes, or some of the rows of all."""
        threads = workers(self.samples)
        all_planes, all_rows = (0, self.planes), (0, self.count)
        if threads == 1:
            return [self._arguments(places, all_planes, all_rows)]
        if self.planes >= threads:
            return [self._arguments(places, some, all_rows) for some in ranges(self.planes, threads)]
        unit = self.unit
        return [
            self._arguments(places, all_planes, (begin * unit, min(end * unit, self.count)))
            for begin, end in ranges(-(-self.count // unit), threads)
        ]


class _Places:
    """Addresses and strides of the arrays of a pass, for as long as kernels work on them."""

    def __init__(self, work: Pass, x: Array | None, bands: Sequence[Array | None]) -> None:
        self.work, self.arrays = work, (x, *bands)
        self.kept: list[Array] = []  # what must not go away meanwhile
        self.home: list[tuple[Array, Array]] = []  # arrays to be written, and where the results stand

    def __enter__(self) -> list[tuple[int, int, int]]:
        work, record = self.work, recorded()
        places: list[tuple[int, int, int]] = []
        for k, array in enumerate(self.arrays):
            side = work.bands[k - 1] if k else work.x
            if array is None:
                if not work.back:  # found elsewhere
                    places.append((0, 0, 0))
                    continue
                # One row of zeros stands for all.
                array = np.zeros(max(1, math.prod(side.shape[work.inner :])), work.dtype)
                self.kept.append(array)
                places.append((address(array), 0, 0))
                if record is not None:
                    record.reads(address(array))
                continue
            strides, written = side.strides(array), (k == 0) == work.back
            if record is not None and not written:
                record.reads(address(array) if strides is not None else 0)  # (else a copy is read)
            if record is not None and written and strides is not None:
                record.writes(address(array))
            if strides is None:
                own = np.empty(array.shape, array.dtype) if written else np.array(array, order="C")
                self.kept.append(own)
                if written:
                    self.home.append((array, own))
                array, strides = own, side.usual
            places.append((address(array), *strides))
        return places + [(0, 0, 0)] * (5 - len(places))

    def __exit__(self, *error: object) -> None:
        for array, own in self.home:
            array[...] = own


class TwoLevels:
    """Two levels forward at once, where the approximation between them need not be kept."""

    def __init__(self, first: Pass, second: Pass) -> None:
        self.first, self.second = first, second
        self.row = second.x.shape[second.inner - 1 :][1:]
        self.stride = _rounded(math.prod(self.row) * second.size) + 64
        self.kernel = kernel("analyse_planes", str(first.dtype))

    @staticmethod
    def possible(first: object, second: object) -> bool:
        """Both are planes, and the second needs only rows that are near each other."""
        return (
            isinstance(first, Pass)
            and isinstance(second, Pass)
            and first.kind == second.kind == "planes"
            and second.local
        )

    def __call__(self, x: Array, bands: Sequence[Array | None], others: Sequence[Array | None]) -> None:
        """``bands`` of the first level, the first of them None, and all of the second."""
        self._run(x, None, 0, bands, others)

    def mixed(
        self, x: tuple[int, int, int], mix: int, bands: Sequence[Array | None], others: Sequence[Array | None]
    ) -> None:
        """From an image whose address and strides are known, with planes that are made of it."""
        self._run(None, x, mix, bands, others)

    def _run(
        self,
        x: Array | None,
        place: tuple[int, int, int] | None,
        mix: int,
        bands: Sequence[Array | None],
        others: Sequence[Array | None],
    ) -> None:
        first, second = self.first, self.second
        rows = (2 * BLOCK + 2 * second.overlap + 8) * self.stride
        with _Places(first, x, bands) as places, _Places(second, None, others) as beyond:
            beyond[0] = (0, 0, self.stride)
            if place is not None:
                places[0] = place
            threads = workers(first.samples)
            whole = (0, first.planes)
            if threads > 1 and first.planes >= threads and place is None:
                cuts = [(some, (0, second.count)) for some in ranges(first.planes, threads)]
            else:
                cuts = [(whole, some) for some in ranges(second.count, threads)]
            pieces = []
            for planes, part in cuts:
                own = [first._arguments(places, planes, (0, 0)), second._arguments(beyond, planes, part)]
                pieces.append((self.kernel, own, (first, second), rows, mix))
            run(call_two, pieces)
