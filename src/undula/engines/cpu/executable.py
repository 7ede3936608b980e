"""Executables: transforms of arrays of known layouts, compiled to lists of kernel calls.

A call of a kernel is described by :class:`KernelCall`: everything but the addresses of arrays is known when
it is compiled, and those are added when it runs. So an executable keeps no arrays, and one that runs again
reads and writes what it is given, and nothing else. Small transforms are one call from Python, however many
levels they have; of large ones, every step is cut into pieces for threads.

Buffers are numbered: 0 is scratch of the thread that works, 1 holds intermediate results, and the arrays of
the caller follow.
"""

from __future__ import annotations

import ctypes
import math
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...lowering.adjoints import Fold
from ...lowering.axis import AxisOp
from ...lowering.borders import TERMS
from ..base import UnfollowableStridesError
from ..memory import empty
from ..threads import WORTHWHILE, ranges, run, workers
from .encoding import NO_FOLD, EncodedOp, encode_analysis, encode_synthesis
from .kernel_layout import BANDS, BLOCK, BUFFER, CHUNK, LINE, SCRATCH, STRIP, X
from .line_loops import LineLoop, line_loop
from .machine_code import LIKE, kernel_address

__all__ = [
    "ERROR",
    "RESULT",
    "AxisPass",
    "CpuExecutable",
    "ExecutableStep",
    "KernelCall",
    "address",
    "call_tape",
    "fused_calls",
    "scratch_memory",
]

Array = NDArray[Any]
Shape = tuple[int, ...]

MAX_LINE_CHANNELS = 16  # Samples side by side below which an axis is worked on as lines.
MIN_PART_ROWS = 16  # Fewer rows are not worth a call: some are read by two calls.
CALL_BYTES = 1024  # At the beginning of the scratch, for the words of the call that runs.
MAX_SCRATCH_TEMPORARY_BYTES = 1 << 20  # Smaller intermediate results are in the scratch of the thread.
SCRATCH_BUFFER, TEMPORARY_BUFFER, FIRST_ARRAY = range(3)


def address(x: Array) -> int:
    """Return the address of the first sample; the quickest way first."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(x))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # It is read-only, empty, or has strides.
        start: int = x.__array_interface__["data"][0]
        return start


@dataclass
class KernelCall:
    """The parameters of a kernel, the arrays of arguments behind them, and what is relative to a buffer.

    ``further`` calls belong to the same piece of work: they are run after this one, by the same thread.
    """

    kernel: int
    parameters: int
    words: list[int]
    relocations: list[tuple[int, int]] = field(default_factory=list)
    further: list[KernelCall] = field(default_factory=list)

    def tape(self) -> list[int]:
        """Return the call as ``tape.play`` reads it."""
        relative = [number for pair in self.relocations for number in pair]
        return [self.kernel, self.parameters, len(self.words), len(self.relocations), *self.words, *relative]


@dataclass(frozen=True)
class PlaneStrides:
    """An array of a pass, as planes of rows: where it is, and bytes between planes and between rows."""

    buffer: int
    offset: int
    plane: int
    row: int


NOWHERE = PlaneStrides(-1, 0, 0, 0)


class ScratchLayout:
    """Scratch of a kernel: rows in halves, a buffer for steps along a row, a list of addresses."""

    def __init__(self, half: int, origin: int, slots: int, step: int, listed: int, size: int) -> None:
        self.origin, self.half = _rounded(origin), _rounded(half) + 64
        self.slot = 2 * self.half + 64
        self.before = _rounded(self.slot * slots + self.origin)  # the buffer
        steps = 2 * (max(1, CHUNK * size // step) + 4) * step + 2 * step
        self.bytes = _rounded(self.before + steps + 64)
        self.listed = _rounded(8 * (listed + TERMS))

    def arguments(self, start: int) -> list[int]:
        """Return what a kernel is told, for scratch that begins so many bytes from the start of all."""
        return [start, self.slot, self.half, self.origin, start + self.before]


def _rounded(size: int) -> int:
    return -(-size // 64) * 64


class AxisPass:
    """One or two neighbouring axes of arrays of one shape, forward or back.

    Parameters
    ----------
    back : bool
        Whether to compute samples from bands.
    shape : tuple of int
        Shape of the samples.
    dtype : dtype
        float32 or float64; int16 or int32 for lines that are lifted.
    axis : int
        The axis, or the first of two.
    operators : one or two AxisOps
        Analyses.
    folds : sequence of Fold, optional
        How adjoints of analyses, of which the inverses of the operators are the plain ones, fold lines.
    """

    def __init__(
        self,
        back: bool,
        shape: Shape,
        dtype: np.dtype[Any],
        axis: int,
        operators: Sequence[AxisOp],
        folds: Sequence[Fold] = (NO_FOLD, NO_FOLD),
    ) -> None:
        # Kernels find the arrays of encoded operators by their addresses, so these have to stay.
        if back:
            pairs = zip(operators, folds, strict=False)
            self._encoded_ops = [encode_synthesis(op.inverse(), dtype, fold) for op, fold in pairs]
        else:
            self._encoded_ops = [encode_analysis(op, dtype) for op in operators]
        self.back, self.size, self.dtype, self.axis = back, dtype.itemsize, dtype, axis
        self.op_addresses = [
            address(array) for op in self._encoded_ops for array in (op.integers, op.numbers)
        ]
        last = axis + len(operators) - 1
        self.channels = math.prod(shape[last + 1 :])
        along = len(operators) == 1 and self.channels < MAX_LINE_CHANNELS
        self.kind = "planes" if len(operators) == 2 else "lines" if along else "columns"
        self.inner = axis if along else axis + 1
        self.shape = shape
        self.planes, self.samples = math.prod(shape[:axis]), math.prod(shape)
        first = self._encoded_ops[0]
        self.count, self.unit = (operators[0].length, 2) if back else (max(first.counts), 1)
        self.first_row = folds[0].before if back else 0  # of the line, in the order of the kernel
        self.local = all(op.local for op in self._encoded_ops)
        self.lifted = all(op.method == "lifting" for op in operators)
        self.overlap = first.taps + first.reach
        layout = {"planes": self._plane_scratch, "lines": self._line_scratch, "columns": self._column_scratch}
        self.scratch = layout[self.kind](self._encoded_ops)
        # One row of zeros stands for a band that is zero. It is made here: kernels hold its address, and
        # threads that made it later at the same time would each have their own.
        row = 1 if self.kind == "columns" else max(self._encoded_ops[-1].counts)
        self._zeros = np.zeros(max(1, row * self.channels) if back else 0, self.dtype)

    def _plane_scratch(self, ops: Sequence[EncodedOp]) -> ScratchLayout:
        down, along = ops
        step = self.channels * self.size
        reach = along.reach + 8
        places = max(*along.counts, (along.length + 1) // 2) + 2 * reach
        # Forward, four rows are for samples that are made of others.
        slots = 4 * down.pairs + (9 + (0 if down.pairs else down.taps) if self.back else 8 + down.rims)
        listed = down.taps + along.taps + 4 * reach
        return ScratchLayout(places * step, reach * step, slots, step, listed, self.size)

    def _line_scratch(self, ops: Sequence[EncodedOp]) -> ScratchLayout:
        (along,) = ops
        step = self.channels * self.size
        reach = along.reach + 8
        places = min(max(8, LINE // self.channels), max(*along.counts, (along.length + 1) // 2))
        half = (places + 2 * reach) * step
        return ScratchLayout(half, reach * step, 3, step, along.taps, self.size)

    def _column_scratch(self, ops: Sequence[EncodedOp]) -> ScratchLayout:
        (down,) = ops
        width = min(STRIP, self.channels) * self.size
        return ScratchLayout(width, 0, 4 * down.pairs + 4 + down.rims, self.size, down.taps, self.size)

    @property
    def reads_pieces(self) -> bool:
        """Whether rows of samples may be in pieces: what lies beyond the ends is copies of rows."""
        return self.kind == "planes" and not self.back and not self._encoded_ops[0].rims

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch that a call needs."""
        return CALL_BYTES + self.scratch.bytes + self.scratch.listed

    @cached_property
    def kernel(self) -> int:
        """The address of the kernel that does the work."""
        return kernel_address(f"{'synthesise' if self.back else 'analyse'}_{self.kind}", str(self.dtype))

    @cached_property
    def _loop(self) -> LineLoop | None:
        """The loop for the middle of long lines."""
        if self.kind != "lines" or self.channels > 1:
            return None
        return line_loop(self.back, self._encoded_ops[0], self.dtype)

    def check(self, *views: ArrayView | PlaneStrides | None) -> None:
        """Raise an error for a view whose strides kernels cannot follow."""
        for view in views:
            if isinstance(view, ArrayView):
                self._plane_strides(view)

    def _plane_strides(self, view: ArrayView) -> PlaneStrides:
        strides = view.plane_strides(self.axis, self.inner)
        if strides is None:
            raise UnfollowableStridesError(view.buffer)
        plane, row = strides
        return PlaneStrides(view.buffer, view.offset * self.size, plane * self.size, row * self.size)

    def located(self, views: Sequence[ArrayView | PlaneStrides | None]) -> list[PlaneStrides]:
        """Return samples and bands as planes of rows; bands that are None are zero, or are not kept."""
        nothing = PlaneStrides(-1, address(self._zeros), 0, 0) if self.back else NOWHERE
        planes = [
            nothing if view is None else view if isinstance(view, PlaneStrides) else self._plane_strides(view)
            for view in views
        ]
        return [*planes, *[NOWHERE] * (5 - len(planes))]

    def arguments(
        self,
        arrays: Sequence[PlaneStrides],
        planes: tuple[int, int],
        rows: tuple[int, int],
        scratch: int,
        mix: int = 0,
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return what the kernel is told of some planes and rows, and which words are relative."""
        first = planes[0]
        offsets = [array.offset + first * array.plane for array in arrays]
        steps, strides = [array.plane for array in arrays], [array.row for array in arrays]
        words = [
            offsets[0], steps[0], strides[0], *offsets[1:], *steps[1:], *strides[1:],
            planes[1] - first, *rows, self.channels, *self.scratch.arguments(scratch), mix,
        ]  # fmt: skip
        places = (X, *range(BANDS, BANDS + 4))
        relative = [(k, a.buffer) for k, a in zip(places, arrays, strict=True) if a.buffer >= 0]
        return words, [*relative, (SCRATCH, SCRATCH_BUFFER), (BUFFER, SCRATCH_BUFFER)]

    def call(
        self, arrays: Sequence[PlaneStrides], planes: tuple[int, int], rows: tuple[int, int], mix: int = 0
    ) -> KernelCall:
        """Return the call for some planes and some rows."""
        if self._loop is None:
            return self._kernel_call(arrays, planes, rows, mix)
        begin, end = rows
        start = self._loop.places[0]
        # Back, results are samples; pair k is samples 2k + start and the one after.
        pairs = (-((start - begin) // 2), (end - start) // 2) if self.back else rows
        first, last = self._loop.pairs_within(*pairs)
        if first == last:
            return self._kernel_call(arrays, planes, rows, mix)
        call = self._loop_call(self._loop, arrays, planes, (first, last))
        if self.back:
            # Kernels begin with even samples. A sample that the loop computes as well is the same.
            first, last = 2 * first + start + start % 2, 2 * last + start - start % 2
        ends = [part for part in ((begin, first), (last, end)) if part[0] < part[1]]
        call.further += [self._kernel_call(arrays, planes, part) for part in ends]
        return call

    def _loop_call(
        self,
        loop: LineLoop,
        arrays: Sequence[PlaneStrides],
        planes: tuple[int, int],
        pairs: tuple[int, int],
    ) -> KernelCall:
        """Return the call of a loop for some pairs of samples of some lines."""
        first, last = pairs
        places = [place + k * first for place, k in zip(loop.places, (2, 1, 1), strict=True)]
        arrays = arrays[:3]
        starts = [
            array.offset + planes[0] * array.plane + place * self.size
            for array, place in zip(arrays, places, strict=True)
        ]
        strides = [array.plane for array in arrays]
        turns, numbers = (last - first) // loop.lanes, self.op_addresses[1]
        relocations = [(0, SCRATCH_BUFFER)]
        relocations += [(k, array.buffer) for k, array in enumerate(arrays, 1) if array.buffer >= 0]
        words = [8, *starts, *strides, planes[1] - planes[0], turns, numbers]
        return KernelCall(kernel_address(loop.name, str(self.dtype)), 1, words, relocations)

    def _kernel_call(
        self, arrays: Sequence[PlaneStrides], planes: tuple[int, int], rows: tuple[int, int], mix: int = 0
    ) -> KernelCall:
        """Return a call of the kernel for some planes and some rows."""
        words, relative = self.arguments(arrays, planes, rows, CALL_BYTES, mix)
        listed = CALL_BYTES + self.scratch.bytes
        # The kernel for images forward could do a second level, too; here there is none.
        more = (
            [address(NO_SECOND_LEVEL), *self.op_addresses] if self.kind == "planes" and not self.back else []
        )
        count = 2 + len(self.op_addresses) + len(more)
        parameters = [8 * count, *self.op_addresses, *more, listed]
        relocations = [(0, SCRATCH_BUFFER), (count - 1, SCRATCH_BUFFER)]
        relocations += [(count + word, buffer) for word, buffer in relative]
        return KernelCall(self.kernel, count, [*parameters, *words], relocations)

    def calls(
        self, x: ArrayView | PlaneStrides, bands: Sequence[ArrayView | None], threads: int, mix: int = 0
    ) -> list[KernelCall]:
        """Return one call for each thread: some of the planes, some of the rows of all, or both."""
        arrays, begin = self.located([x, *bands]), self.first_row
        arrays[0] = _from_row(arrays[0], begin)
        end = begin + self.count
        if self.planes >= threads and not mix:
            return [self.call(arrays, part, (begin, end)) for part in ranges(self.planes, threads)]
        planes = [(0, self.planes)]
        if self.count < threads * MIN_PART_ROWS and not mix:
            planes, threads = ranges(self.planes, self.planes), max(1, threads // self.planes)
        parts = ranges(-(-self.count // self.unit), threads)
        rows = [(begin + first * self.unit, min(begin + last * self.unit, end)) for first, last in parts]
        return [self.call(arrays, group, part, mix) for group in planes for part in rows]

    def plane_calls(
        self, x: ArrayView, bands: Sequence[ArrayView | None], begin: int, end: int, threads: int
    ) -> list[KernelCall]:
        """Return calls for rows ``begin … end`` of all planes, in an array that begins with the first row."""
        arrays = self.located([x, *bands])
        arrays[0] = _from_row(arrays[0], begin)
        return [
            self.call(arrays, part, (begin, end)) for part in ranges(self.planes, min(threads, self.planes))
        ]

    def row_calls(
        self, x: ArrayView, bands: Sequence[ArrayView | None], begin: int, end: int, threads: int
    ) -> list[KernelCall]:
        """Return calls for rows ``begin … end`` of the result, in arrays that begin with the first of them.

        The rows must not depend on samples beyond an end of the array that is no end of the image.
        """
        arrays = self.located([x, *bands])
        for k in range(1) if self.back else range(1, 5):
            arrays[k] = _from_row(arrays[k], begin)
        calls = []
        for first, last in ranges(-(-(end - begin) // self.unit), threads):
            part = begin + first * self.unit, min(begin + last * self.unit, end)
            calls.append(self.call(arrays, (0, self.planes), part))
        return calls


def _from_row(array: PlaneStrides, row: int) -> PlaneStrides:
    """Return an array that begins with so many rows that it does not have."""
    return replace(array, offset=array.offset - row * array.row)


NO_SECOND_LEVEL = np.zeros(32, np.int64)  # Arguments of a level without planes.


def fusible(first: object, second: object) -> bool:
    """Return whether one call can compute both levels: of images, if the second needs nearby rows only."""
    return (
        isinstance(first, AxisPass)
        and isinstance(second, AxisPass)
        and first.kind == second.kind == "planes"
        and second.local
    )


def fused_scratch(first: AxisPass, second: AxisPass) -> tuple[int, int, int]:
    """Return where rows of the approximation are in the scratch, their stride, and the size of it all."""
    row = _rounded(math.prod(second.shape[second.axis + 1 :]) * second.size) + 64
    start = CALL_BYTES + first.scratch.bytes + second.scratch.bytes
    rows = _rounded((2 * BLOCK + 2 * second.overlap + 8) * row)
    return start, row, start + rows + max(first.scratch.listed, second.scratch.listed)


def fused_calls(
    first: AxisPass,
    second: AxisPass,
    x: ArrayView | PlaneStrides,
    bands: Sequence[ArrayView | None],
    others: Sequence[ArrayView | None],
    threads: int,
    mix: int = 0,
) -> list[KernelCall]:
    """Return calls for two levels forward, where the approximation between them is not kept.

    ``bands`` are those of the first level, the first of them None, and ``others`` all of the second.
    """
    start, row, size = fused_scratch(first, second)
    listed = size - max(first.scratch.listed, second.scratch.listed)
    outer = first.located([x, *bands])
    inner = [PlaneStrides(SCRATCH_BUFFER, start, 0, row), *second.located([None, *others])[1:]]
    planes = 0, first.planes
    if threads > 1 and first.planes >= threads and not mix:
        cuts = [(part, (0, second.count)) for part in ranges(first.planes, threads)]
    else:
        cuts = [(planes, part) for part in ranges(second.count, threads)]
    calls = []
    for part, rows in cuts:
        words, relative = first.arguments(outer, part, (0, 0), CALL_BYTES, mix)
        scratch = CALL_BYTES + first.scratch.bytes
        more, more_relative = second.arguments(inner, part, rows, scratch)
        count = 3 + len(first.op_addresses) + len(second.op_addresses)
        parameters = [8 * count, *first.op_addresses, 8 * (count + len(words)), *second.op_addresses, listed]
        relocations = [(k, SCRATCH_BUFFER) for k in (0, 1 + len(first.op_addresses), count - 1)]
        relocations += [(count + word, buffer) for word, buffer in relative]
        relocations += [(count + len(words) + word, buffer) for word, buffer in more_relative]
        calls.append(KernelCall(first.kernel, count, [*parameters, *words, *more], relocations))
    return calls


@dataclass(frozen=True)
class ExecutableStep:
    """A part of an executable: calls of kernels, or a function of arrays.

    Parameters
    ----------
    samples : int
        Number of samples, which decides how many threads are used.
    scratch_bytes : int
    calls : function, optional
        A function that returns calls for a number of threads, one for each.
    function, views
        What is called instead with the arrays of these views; None among them is a band of zeros.
    """

    samples: int
    scratch_bytes: int = 0
    calls: Callable[[int], list[KernelCall]] | None = None
    function: Callable[..., None] | None = None
    views: tuple[ArrayView | None, ...] = ()


class CpuExecutable:
    """A transform of arrays of known layouts, ready to run on any such arrays.

    Parameters
    ----------
    dtype : dtype
        Dtype of the samples, real.
    steps : sequence of ExecutableStep
    arrays : int
        How many arrays it is called with.
    transform_bytes : int
        Size of the memory for intermediate results.
    tables : sequence of arrays
        Arrays that kernels find by their address, kept as long as the executable.
    """

    def __init__(
        self,
        dtype: np.dtype[Any],
        steps: Sequence[ExecutableStep],
        arrays: int,
        transform_bytes: int = 0,
        tables: Sequence[Array] = (),
    ) -> None:
        self.dtype, self.steps, self._tables = dtype, steps, tables
        self.scratch_bytes = max([_rounded(step.scratch_bytes) for step in steps], default=0)
        self.transform_bytes = transform_bytes
        self.samples = max((step.samples for step in steps), default=0)
        self.has_functions = any(step.function is not None for step in steps)
        self._pack = struct.Struct(f"{arrays}q").pack
        self._tapes: dict[int, list[Any]] = {}
        small = transform_bytes <= MAX_SCRATCH_TEMPORARY_BYTES
        self._scratch_total = self.scratch_bytes + (transform_bytes if small else 0)
        self._temporary_in_scratch = small

    def _compiled(self, threads: int) -> list[Any]:
        """Return tapes and functions: a list of one tape for each piece, or the step with a function."""
        parts: list[Any] = []
        pending: list[KernelCall] = []  # Calls of one piece are joined.

        def flush() -> None:
            if pending:
                parts.append([call_tape(pending)])
                pending.clear()

        for step in self.steps:
            if step.calls is None:
                flush()
                parts.append(step)
                continue
            calls = step.calls(workers(step.samples))
            if len(calls) == 1:
                pending.append(calls[0])
            else:
                flush()
                parts.append([call_tape([call]) for call in calls])
        flush()
        # Others may hold the address of a tape, so the first one stays, whoever else compiled it meanwhile.
        return self._tapes.setdefault(threads, parts)

    def run_at(self, addresses: bytes) -> None:
        """Run on arrays at these addresses; only where all steps are calls of kernels."""
        threads = workers(self.samples)
        parts = self._tapes.get(threads) or self._compiled(threads)
        if len(parts) == 1 and len(parts[0]) == 1 and self._temporary_in_scratch:
            self.run_tape(parts[0][0], 0, addresses)
            return
        memory = empty((max(1, self.transform_bytes),), _BYTES)  # Threads share intermediate results.
        temporary = address(memory)
        for tapes in parts:
            run(self.run_tape, [(tape, temporary, addresses) for tape in tapes])

    def run_tape(self, tape: Array, temporary: int, addresses: bytes) -> None:
        """Run the calls of a tape in this thread."""
        memory, start = scratch_memory(self._scratch_total)
        buffers = _PAIR(start, temporary or start + self.scratch_bytes) + addresses
        player(self.dtype)(RESULT, ERROR, address(tape), buffers, 0)
        del memory  # It had to stay until here.

    def single_tape(self) -> tuple[int, int, int] | None:
        """Return the tape that is everything, if the work is so small that no threads are worthwhile.

        Returns
        -------
        tape : int
            Its address; the executable keeps it.
        scratch_bytes, temporary : int
            Bytes of scratch, and where intermediate results begin in it.
        """
        if self.has_functions or self.samples >= WORTHWHILE or not self._temporary_in_scratch:
            return None
        parts = self._tapes.get(1) or self._compiled(1)
        if len(parts) != 1 or len(parts[0]) != 1:
            return None
        return address(parts[0][0]), self._scratch_total, self.scratch_bytes

    def run(self, arrays: Sequence[Array | None]) -> None:
        """Run on arrays; None for those that the executable was compiled without."""
        addresses = self._pack(*[0 if x is None else address(x) for x in arrays])
        if not self.has_functions:
            self.run_at(addresses)
            return
        threads = workers(self.samples)
        parts = self._tapes.get(threads) or self._compiled(threads)
        memory = empty((max(1, self.transform_bytes),), _BYTES)
        buffers: list[Any] = [None, memory, *arrays]
        for part in parts:
            if isinstance(part, ExecutableStep):
                viewed = [None if view is None else _array(view, buffers[view.buffer]) for view in part.views]
                part.function(viewed[0], viewed[1:])  # type: ignore[misc]
            else:
                run(self.run_tape, [(tape, address(memory), addresses) for tape in part])


def _array(view: ArrayView, memory: Array) -> Array:
    """Return the array of a view; ``memory`` is the intermediate results, or the array of the caller."""
    if view.buffer == TEMPORARY_BUFFER:
        offset = view.offset * view.itemsize
        return np.ndarray(view.shape, view.dtype, memory.data, offset, view.byte_strides)
    return np.lib.stride_tricks.as_strided(memory.real, view.shape, view.byte_strides)


_PAIR = struct.Struct("2q").pack
_BYTES = np.dtype(np.uint8)


def call_tape(calls: Sequence[KernelCall]) -> Array:
    """Return calls as ``tape.play`` reads them."""
    ordered = [each for call in calls for each in (call, *call.further)]
    return np.array([len(ordered), *(word for call in ordered for word in call.tape())], np.int64)


@cache
def player(dtype: np.dtype[Any]) -> Any:
    """Return the kernel ``play`` as a function; it reads the addresses of buffers from bytes."""
    # Numba's convention: where to put a result and an error, which kernels do not have, come first.
    name = str(dtype)
    kinds = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, LIKE[name]
    return ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(kernel_address("play", name))


_nothing = (ctypes.c_int64 * 2)()
RESULT, ERROR = ctypes.addressof(_nothing), ctypes.addressof(_nothing) + 8


class _Local(threading.local):
    scratch: tuple[Any, int] = (None, 0)
    size = -1


_local = _Local()


def scratch_memory(size: int) -> tuple[Any, int]:
    """Return memory that this thread works in, kept for the next time, and its first aligned address."""
    if _local.size < size:
        memory = np.empty(size + 64, np.uint8)
        _local.scratch, _local.size = (memory, _rounded(address(memory))), size
    return _local.scratch
