"""Graphs compiled for the CPU.

All steps between two nodes that are functions are played in one call from Python, by as many threads as there
are: see ``tape.play_steps``. Where the arrays of the caller are is all that is added when a graph runs.
"""

from __future__ import annotations

import ctypes
import math
import struct
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import NotEnoughMemoryError
from ...lowering.compute import compute
from ...lowering.expressions import strided
from ...lowering.graph import Collaborate, Graph, Node, Transform
from ..memory import MEMORY_ADVICE, empty, free_kept, memory_size
from ..threads import get_num_threads, run
from .executable import ERROR, RESULT, KernelCall, address, call_tape, scratch_memory
from .graph_lowering import lower_graph
from .kernel_layout import COUNTER_BYTES, COUNTER_END, FINISHED, SLEEP, TAKEN
from .machine_code import LIKE, kernel_address
from .tasks import ALIGNMENT, FIRST_OUTER, GRAPH_BUFFER, PIECE, GraphTasks, Step

__all__ = ["CpuGraph"]

Array = NDArray[Any]
Shape = tuple[int, ...]
Writer = Callable[[Array], None]

LARGE = 1 << 25  # bytes
TEMPORARIES = 4  # Arrays that NumPy makes while it computes a node.
THREADED = 1 << 18  # Samples of all steps below which handing work to other threads costs more than it saves.


@dataclass
class _Segment:
    """Pieces that are played in one call, or a node that a function computes: its own, or that of NumPy."""

    phase: str
    begin: int = 0
    end: int = 0
    node: Node | None = None
    workspace: str = ""  # A buffer that the function has for itself.
    counters: bytes = field(default=b"", repr=False)


class CpuGraph:
    """A graph compiled for the CPU.

    Parameters
    ----------
    graph : Graph
    inside : collection of str
        Inputs and outputs that may be in the memory of a run, where they take no more than what else is there
        at the same time.
    """

    def __init__(self, graph: Graph, inside: Collection[str] = ()) -> None:
        tasks = lower_graph(graph, inside)
        self._tapes: list[Array] = []
        self._steps: list[int] = []  # pieces before the step of each piece
        self.samples = 0
        self._phases = self._compiled(tasks)
        self._segments = _merged(self._phases)
        self._dtype = tasks.dtype
        self._kept = tasks.tables
        pairs = [
            word
            for tape, step in zip(self._tapes, self._steps, strict=True)
            for word in (address(tape), step)
        ]
        self._pieces = np.array(pairs or [0], np.int64)
        counts = [self._steps.count(step) for step in set(self._steps)]
        self._max_threads = max(counts, default=1) if self.samples >= THREADED else 1
        self._inputs = [(b.name, b.shape, np.dtype(b.dtype)) for b in tasks.graph.inputs.values()]
        self._outputs = [(b.name, b.shape, np.dtype(b.dtype)) for b in tasks.graph.outputs.values()]
        self._places, self._inside = tasks.places, tasks.inside
        self._buffers = tasks.buffers
        temporary = -(-tasks.transform_bytes // ALIGNMENT) * ALIGNMENT
        self._starts = COUNTER_BYTES, COUNTER_BYTES + temporary
        self._bytes = COUNTER_BYTES + temporary + tasks.bytes + ALIGNMENT
        self._scratch_bytes = tasks.scratch_bytes
        self._pack = struct.Struct(f"{2 + len(self._inputs) + len(self._outputs)}q").pack

    def _compiled(self, tasks: GraphTasks) -> list[_Segment]:
        """Make the tapes of all pieces, and return segments of one phase."""
        segments: list[_Segment] = []
        for task in tasks.tasks:
            if task.steps is None:
                segments.append(_Segment(task.phase, node=task.node, workspace=task.workspace))
                continue
            if not segments or segments[-1].node is not None or segments[-1].phase != task.phase:
                segments.append(_Segment(task.phase, len(self._tapes), len(self._tapes)))
                calls_before: list[KernelCall] = []
            for step in task.steps():
                self.samples += sum(part.samples for part in step)
                pieces = _packed(step)
                if len(pieces) == 1 and calls_before:  # The step before has one piece as well.
                    calls_before += pieces[0]
                    self._tapes[-1] = call_tape(calls_before)
                    continue
                before = len(self._tapes)
                self._tapes += [call_tape(calls) for calls in pieces]
                self._steps += [before] * len(pieces)
                calls_before = list(pieces[0]) if len(pieces) == 1 else []
            segments[-1].end = len(self._tapes)
        for segment in segments:
            segment.counters = _counters(segment.begin, segment.end)
        return segments

    @property
    def nbytes(self) -> int:
        """The bytes that a run takes besides its inputs, those of its outputs included."""
        outputs = sum(
            math.prod(shape) * dtype.itemsize
            for name, shape, dtype in self._outputs
            if name not in self._inside
        )
        nodes = [segment.node for segment in self._segments if segment.node is not None]
        scratch = min(get_num_threads(), self._max_threads) * self._scratch_bytes
        return self._bytes + outputs + max(scratch, *map(_function_bytes, nodes), 0)

    def run(
        self,
        arrays: Mapping[str, Array | Writer],
        seconds: dict[str, float] | None = None,
        outputs: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """Return the outputs by name.

        Parameters
        ----------
        arrays : mapping of str to array
            The inputs by name; those that are inside may be functions, which write the array that they get.
        seconds : dict, optional
            The time of each phase is added to it.
        outputs : mapping of str to array, optional
            Where to write some of the outputs. Others that are inside keep the memory of the run.
        """
        try:
            return self._run(arrays, seconds, outputs or {})
        except MemoryError as error:
            raise NotEnoughMemoryError(
                f"filtering takes {memory_size(self.nbytes)} of memory besides the image, and the system does"
                f" not provide so much: {MEMORY_ADVICE}"
            ) from error

    def _run(
        self,
        arrays: Mapping[str, Array | Writer],
        seconds: dict[str, float] | None,
        given: Mapping[str, Array],
    ) -> dict[str, Array]:
        memory = empty((self._bytes,), _BYTES)
        start = -(-address(memory) // ALIGNMENT) * ALIGNMENT

        def inside(name: str, shape: Shape, dtype: np.dtype[Any]) -> Array:
            begin = start - address(memory) + self._starts[1] + self._inside[name]
            return memory[begin : begin + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)

        inputs = []
        for name, shape, dtype in self._inputs:
            x = arrays[name]
            if callable(x):
                write, x = x, inside(name, shape, dtype)
                write(x)
            inputs.append(_checked(x, shape, dtype, name))
        outputs = {
            name: given[name]
            if name in given
            else (inside(name, shape, dtype) if name in self._inside else empty(shape, dtype))
            for name, shape, dtype in self._outputs
        }
        callers = [*inputs, *outputs.values()]
        first, second = self._starts
        buffers = self._pack(start + first, start + second, *[address(x) if x.size else 0 for x in callers])
        if seconds is None:
            for segment in self._segments:
                self._run_segment(segment, start, buffers, callers, memory)
        else:
            for segment in self._phases:
                begin = time.perf_counter()
                self._run_segment(segment, start, buffers, callers, memory)
                seconds[segment.phase] += time.perf_counter() - begin
        return outputs

    def _run_segment(
        self, segment: _Segment, counters: int, buffers: bytes, callers: Sequence[Array], memory: Array
    ) -> None:
        if segment.node is not None:
            self._run_node(segment.node, segment.workspace, counters, callers, memory)
            return
        ctypes.memmove(counters, segment.counters, COUNTER_BYTES)
        threads = min(get_num_threads(), self._max_threads)
        run(self._play, [(counters, buffers)] * threads)

    def _play(self, counters: int, buffers: bytes) -> None:
        """Play pieces in this thread until there are none."""
        memory, start = scratch_memory(self._scratch_bytes)
        table = start.to_bytes(8, "little") + buffers
        _player(self._dtype)(RESULT, ERROR, address(self._pieces), table, counters, 0)
        del memory  # It had to stay until here.

    def _run_node(
        self, node: Node, workspace: str, start: int, callers: Sequence[Array], memory: Array
    ) -> None:
        """Compute a node that is not made of pieces."""
        assert not isinstance(node, Transform)  # Transforms of floats are made of kernels.
        base = start - address(memory) + self._starts[1]
        buffers: dict[str, Array] = {}
        names = [view.buffer for view in (*node.reads, *node.writes)]
        for name in [*names, workspace] if workspace else names:
            number, place = self._places[name]
            if number != GRAPH_BUFFER:
                buffers[name] = callers[number - FIRST_OUTER].reshape(-1)
                continue
            buffer = self._buffers[name]
            size = max(1, math.prod(buffer.shape)) * np.dtype(buffer.dtype).itemsize
            buffers[name] = memory[base + place : base + place + size].view(buffer.dtype)
        if isinstance(node, Collaborate):
            from .collaborative import filter_planes  # (imports llvmlite)

            views = node.source, node.noise, *node.results
            x, sigmas, out = (strided(buffers[view.buffer], view) for view in views)
            filter_planes(x, sigmas, node.profile, node.channels, out, buffers[workspace])
            if out.nbytes >= LARGE:
                free_kept()  # The next program needs arrays of other sizes.
        else:
            compute(node, buffers)


def _function_bytes(node: Node) -> int:
    """Return the bytes that a node takes that is computed by a function, besides its arrays."""
    if isinstance(node, Collaborate):
        from .collaborative import tile_bytes

        return tile_bytes(node.source.shape, node.profile, node.channels)
    largest = max(math.prod(view.shape) * view.itemsize for view in (*node.reads, *node.writes))
    return TEMPORARIES * largest


_BYTES = np.dtype(np.uint8)
_COUNTERS = struct.Struct(f"{COUNTER_BYTES // 8}q").pack


def _packed(step: Step) -> list[list[KernelCall]]:
    """Join small calls of a step to pieces."""
    pieces: list[list[KernelCall]] = []
    samples = PIECE
    for part in step:
        if samples >= PIECE:
            pieces.append([])
            samples = 0
        pieces[-1] += part.calls
        samples += part.samples
    return pieces


def _merged(segments: Sequence[_Segment]) -> list[_Segment]:
    """Join segments of several phases."""
    merged: list[_Segment] = []
    for is_native, group in groupby(segments, lambda segment: segment.node is None):
        members = list(group)
        if is_native:
            begin, end = members[0].begin, members[-1].end
            members = [_Segment(members[0].phase, begin, end, counters=_counters(begin, end))]
        merged += members
    return merged


def _counters(begin: int, end: int) -> bytes:
    words = [0] * (COUNTER_BYTES // 8)
    words[TAKEN] = words[FINISHED] = begin
    words[COUNTER_END], words[SLEEP] = end, _sleep_address()
    return _COUNTERS(*words)


@cache
def _sleep_address() -> int:
    """Return the address of the function that sleeps for some microseconds, or 0."""
    try:
        library = ctypes.CDLL(None)
        return ctypes.cast(library.usleep, ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):
        return 0


def _checked(x: Any, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> Array:
    """Return an input in C order."""
    if x.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {x.shape}")
    if x.dtype == dtype and x.flags.c_contiguous and x.flags.aligned:
        return x  # type: ignore[no-any-return]
    return np.require(x, dtype, ["C", "ALIGNED"])


@cache
def _player(dtype: str) -> Any:
    """Return the kernel ``play_steps`` as a function; it reads the addresses of buffers from bytes."""
    kinds = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, LIKE[dtype]
    return ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(kernel_address("play_steps", dtype))
