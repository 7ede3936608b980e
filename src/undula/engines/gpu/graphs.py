"""Graphs on devices: the program of a pipeline with its scratch memory, ready to run."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...arrays import ArrayView, contiguous, dtype_name
from ...errors import OutOfMemoryError
from ...lowering.graph import Buffer, Graph
from ..base import TransformOptions
from ..memory import empty
from .graph_lowering import GraphProgram, lower_graph

__all__ = ["DeviceGraph", "ScratchPool"]

MAX_QUEUES = 8  # for which memory is kept
MAX_COPIES = 8  # of small arrays of NumPy


class DeviceGraph:
    """A graph that is compiled for a device.

    Parameters
    ----------
    engine : DeviceEngine
    graph : Graph
    options : TransformOptions
        For its transforms.
    """

    def __init__(self, engine: Any, graph: Graph, options: TransformOptions) -> None:
        self.engine, self.graph, self.options = engine, graph.scheduled(), options
        self._programs: dict[Any, _PreparedGraph] = {}
        self._inputs = list(self.graph.inputs.values())
        self._outputs = [(b.name, b.shape, np.dtype(b.dtype)) for b in self.graph.outputs.values()]
        self._plain = self._prepared({})
        self._copies: OrderedDict[Any, Any] = OrderedDict()

    @property
    def program(self) -> Any:
        """The launches of kernels, for contiguous inputs."""
        return self._plain.prepared.program

    def _prepared(self, layouts: dict[str, ArrayView]) -> _PreparedGraph:
        device = self.engine.device
        lowered = lower_graph(self.graph, layouts, device.dialect, device.limits, self.options)
        return _PreparedGraph(self.engine, lowered)

    def _prepared_for(self, views: list[ArrayView]) -> _PreparedGraph:
        """Return the program for inputs of any strides."""
        if all(v.strides == contiguous(v.shape) and not v.offset and v.alignment == 16 for v in views):
            return self._plain
        return self._prepared({b.name: view for b, view in zip(self._inputs, views, strict=True)})

    def run(self, arrays: Mapping[str, Any], seconds: dict[str, float] | None = None) -> dict[str, Any]:
        """Return the outputs by name, given the inputs by name; add the time of each phase to ``seconds``.

        Arrays of NumPy are copied to the device, and outputs back. Those of other libraries stay where they
        are, and outputs are new arrays of that library.
        """
        engine = self.engine
        if not engine.takes_numpy:
            return self._run_there(arrays, seconds)
        views = []
        for buffer in self._inputs:
            x = np.ascontiguousarray(arrays[buffer.name], buffer.dtype)
            views.append(engine.upload(x))
        targets = [engine.allocate(shape, dtype_name(dtype)) for _, shape, dtype in self._outputs]
        self._plain.run([view.buffer for view in (*views, *targets)], engine.device.queue, (), None, seconds)
        return {
            name: engine.download(view, empty(shape, dtype))
            for (name, shape, dtype), view in zip(self._outputs, targets, strict=True)
        }

    def _run_there(self, arrays: Mapping[str, Any], seconds: dict[str, float] | None) -> dict[str, Any]:
        """Run on arrays of a library that are on the device."""
        engine, library = self.engine, self.engine.library
        present = [arrays[buffer.name] for buffer in self._inputs]
        like = next(x for x in present if not isinstance(x, np.ndarray))
        inputs = [self._readable(x, buffer, like) for x, buffer in zip(present, self._inputs, strict=True)]
        if library.allocates:
            buffers = [library.buffer(x) for x in inputs]
            layouts = library.layout_keys(inputs)
        else:  # These arrays have fewer attributes.
            views = [library.view(x) for x in inputs]
            buffers = [view.buffer for view in views]
            layouts = [view[1:6] for view in views]
        alignments = [buffer & 15 if isinstance(buffer, int) else 0 for buffer in buffers]
        key = (*layouts, *alignments)
        prepared = self._programs.get(key)
        if prepared is None:
            prepared = self._programs[key] = self._prepared_for([library.view(x) for x in inputs])
        outputs = [engine.empty(shape, dtype, like) for _, shape, dtype in self._outputs]
        buffers += [library.buffer(x) if library.allocates else x.memory.address for x in outputs]
        event = prepared.run(buffers, library.queue(like), library.events(inputs), like, seconds)
        if event is not None:
            library.add_event(outputs, event)
        names = [name for name, _, _ in self._outputs]
        results: dict[str, Any] = engine.restore(dict(zip(names, outputs, strict=True)), like)
        return results

    def _readable(self, x: Any, buffer: Buffer, like: Any) -> Any:
        library = self.engine.library
        if isinstance(x, np.ndarray):
            return self._uploaded(np.ascontiguousarray(x, buffer.dtype), like)
        x = library.materialize(x)
        return x if library.dtype(x) == buffer.dtype else library.convert(x, buffer.dtype)

    def _uploaded(self, x: np.ndarray[Any, Any], like: Any) -> Any:
        """Return a small array of NumPy, such as the noise of each item, beside another array.

        Copies are kept for the next runs, so that the host does not wait for the device each time.
        """
        engine, key = self.engine, (x.dtype.str, x.shape, x.tobytes())
        copy = self._copies.get(key)
        if copy is None:
            copy = engine.empty(x.shape, x.dtype, like)
            engine.device.upload(x, engine.library.view(copy).buffer, engine.library.queue(like))
            self._copies[key] = copy
            while len(self._copies) > MAX_COPIES:
                self._copies.popitem(last=False)
        return copy


class ScratchPool:
    """The arenas of an engine, one for each of the queues that were used last.

    All graphs of a queue share its arena, since they run one after the other: whoever launches kernels on it
    holds the ``lock``. It grows with the largest graph.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._arenas: OrderedDict[Any, ArrayView] = OrderedDict()
        self.events: dict[Any, Any] = {}  # The last events of queues, after which their arenas are free.

    def arena(self, engine: Any, queue: Any, size: int, like: Any) -> ArrayView:
        """Return memory of at least so many bytes, beside an array."""
        arena = self._arenas.get(queue)
        if arena is not None and arena.shape[0] >= size:
            return arena
        self._arenas.pop(queue, None)
        arena = None  # The smaller one is freed first.
        arena = self._arenas[queue] = _allocated(engine, size, like)
        while len(self._arenas) > MAX_QUEUES:
            old, _ = self._arenas.popitem(last=False)
            self.events.pop(old, None)
        return arena


def _allocated(engine: Any, size: int, like: Any) -> ArrayView:
    """Allocate memory, or raise an error with the number of bytes."""
    try:
        view: ArrayView = engine.allocate((size,), "uint8", like)
    except OutOfMemoryError:
        raise
    except Exception as error:  # Each library has a class of its own.
        if "OutOfMemory" not in type(error).__name__ and not isinstance(error, MemoryError):
            raise
        raise OutOfMemoryError(f"{size} bytes of the device were requested ({error})") from error
    return view


class _PreparedGraph:
    """A program whose kernels are compiled, with its tables for each queue."""

    def __init__(self, engine: Any, lowered: GraphProgram) -> None:
        self.engine, self.lowered = engine, lowered
        self.prepared = engine.device.prepare(lowered.program)
        self._tables: OrderedDict[Any, ArrayView] = OrderedDict()

    def run(
        self, buffers: list[Any], queue: Any, events: Any, like: Any, seconds: dict[str, float] | None
    ) -> Any:
        """Run on buffers of inputs and outputs, and return the last event, if queues have events."""
        pool = self.engine.scratch_pool
        with pool.lock:
            tables = self._tables.get(queue)
            if tables is None:
                tables = self._uploaded_tables(queue, like)
            arena = pool.arena(self.engine, queue, self.lowered.program.scratch[0][0], like)
            everything = [*buffers, arena.buffer, tables.buffer]
            last = pool.events.get(queue)
            waiting = events if last is None else [*events, last]
            try:
                if seconds is None:
                    event = self.prepared.run(everything, queue, waiting)
                else:
                    event = self._timed(everything, queue, waiting, seconds)
            except Exception:
                self._tables.pop(queue, None)  # They may have been left in any state.
                raise
            if event is not None:
                pool.events[queue] = event
        return event

    def _uploaded_tables(self, queue: Any, like: Any) -> ArrayView:
        """Return the tables of a queue."""
        tables = _allocated(self.engine, self.lowered.program.scratch[1][0], like)
        self.engine.device.upload(self.lowered.tables, tables.buffer, queue)
        self._tables[queue] = tables
        while len(self._tables) > MAX_QUEUES:
            self._tables.popitem(last=False)
        return tables

    def _timed(self, buffers: list[Any], queue: Any, events: Any, seconds: dict[str, float]) -> Any:
        """Run phase by phase, and wait after each."""
        device, phases = self.engine.device, self.lowered.phases
        event, first = None, 0
        device.finish(queue)
        for last in range(1, len(phases) + 1):
            if last == len(phases) or phases[last] != phases[first]:
                begin = time.perf_counter()
                event = self.prepared.launch(buffers, queue, events, first, last)
                device.finish(queue)
                seconds[phases[first]] += time.perf_counter() - begin
                events, first = [], last
        return event
