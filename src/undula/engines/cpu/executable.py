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
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ..memory import empty
from ..threads import WORTHWHILE, run, workers
from .machine_code import LIKE, kernel_address

__all__ = [
    "ERROR",
    "RESULT",
    "CpuExecutable",
    "ExecutableStep",
    "KernelCall",
    "address",
    "aligned",
    "call_tape",
    "scratch_memory",
]

Array = NDArray[Any]

CALL_BYTES = 1024  # At the beginning of the scratch, for the words of the call that runs.
MAX_SCRATCH_TEMPORARY_BYTES = 1 << 20  # Smaller intermediate results are in the scratch of the thread.
SCRATCH_BUFFER, TEMPORARY_BUFFER, FIRST_ARRAY = range(3)


def address(x: Array) -> int:
    """Return the address of the first sample."""
    try:  # This is the fastest way.
        return ctypes.addressof(ctypes.c_char.from_buffer(x))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # It is read-only, empty, or has strides.
        start: int = x.__array_interface__["data"][0]
        return start


@dataclass
class KernelCall:
    """A kernel and its parameters, of which only the addresses of buffers are missing.

    Parameters
    ----------
    kernel : int
        The address of the kernel.
    parameters : int
        How many parameters it has.
    words : list of int
        The parameters, and behind them the arrays of arguments that some of them point to.
    relocations : list of (int, int)
        Which words are relative to a buffer, and to which.
    further : list of KernelCall
        Calls that the same thread runs after this one.
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


def aligned(size: int) -> int:
    """Return a number of bytes, rounded up to whole lines of the cache."""
    return -(-size // 64) * 64


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
        self.scratch_bytes = max([aligned(step.scratch_bytes) for step in steps], default=0)
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
        _local.scratch, _local.size = (memory, aligned(address(memory))), size
    return _local.scratch
