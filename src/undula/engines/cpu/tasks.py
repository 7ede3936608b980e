"""Tasks: the nodes of a graph as steps of kernel calls, on memory that is laid out before.

Each node becomes one or more steps, and each step is cut into parts, in the same way for any number of
threads. Small parts are joined to pieces, which threads take one after the other. A node that no kernel can
compute is left to NumPy.

Buffers are numbered: 0 is scratch of the thread, 1 has intermediate results of transforms, 2 has all arrays
between nodes, and the arrays of the caller follow. Arrays that are not needed at the same time share their
place in buffer 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...lowering.expressions import Expression, Load, loads, rewritten
from ...lowering.graph import Buffer, Collaborate, Graph, Node, Pointwise, Stencil, Transform
from .executable import CALL_BYTES
from .expressions import pointwise_text, row_bytes
from .nests import KernelPart, Nest, NoKernelError, TooManyAxesError, cut

__all__ = [
    "ALIGNMENT",
    "FIRST_OUTER",
    "GRAPH_BUFFER",
    "MAX_PIECES",
    "PIECE",
    "GraphTasks",
    "Step",
    "coarser_operands",
    "piece_samples",
]

Array = NDArray[Any]
Step = list[KernelPart]  # Calls that may run at the same time.

GRAPH_BUFFER = 2
FIRST_OUTER = 3  # The buffers of the caller.
ALIGNMENT = 64  # bytes
PIECE = 1 << 15  # Samples that a thread takes at a time.
MAX_PIECES = 128  # Of one array.


@dataclass
class GraphTask:
    """What a node, or a part of it, becomes.

    Parameters
    ----------
    phase : str
    buffers : set of str
        The buffers that it reads or writes.
    steps : callable, optional
        Returns its steps, once buffers have their places.
    node : Node, optional
        Computed in one call if there are no steps.
    workspace : str
        A buffer that this call has for itself.
    reused : tuple of (str, str), optional
        A buffer that it reads, and one that it may write in the same place.
    """

    phase: str
    buffers: set[str]
    steps: Callable[[], list[Step]] | None = None
    node: Node | None = None
    workspace: str = ""
    reused: tuple[str, str] | None = None


class GraphTasks:
    """The tasks of a graph, and where its buffers are.

    Parameters
    ----------
    graph : Graph
    aliases : mapping of str to str
        Buffers that are outputs under another name.

    Attributes
    ----------
    tasks : list of GraphTask
        In the order in which they run.
    phase : str
        The phase of tasks that are added.
    dtype : str
        The dtype by which tapes tell kernels the type of samples.
    places : dict
        For each buffer its number, and the byte where it begins.
    inside : dict
        For inputs and outputs that may be in buffer 2 the byte where they begin.
    tables : list
        What kernels have the address of, to be kept.
    bytes, transform_bytes, scratch_bytes : int
        The sizes of buffers 2, 1 and 0; those of the last two are known when all steps are made.
    """

    def __init__(self, graph: Graph, aliases: Mapping[str, str]) -> None:
        self.graph, self.aliases = graph, aliases
        self.buffers = dict(graph.buffers)
        self.tasks: list[GraphTask] = []
        self.tables: list[Any] = []
        self.scratch_bytes = CALL_BYTES
        self.transform_bytes = self.bytes = 0
        self.phase = ""
        self.places: dict[str, tuple[int, int]] = {}
        self.inside: dict[str, int] = {}
        transforms = [node.bands[0].dtype for node in graph.nodes if isinstance(node, Transform)]
        floats = [b.dtype for b in self.buffers.values() if b.dtype in ("float32", "float64")]
        self.dtype = (transforms or floats or ["float64"])[0]

    # --- memory -----------------------------------------------------------------------------------

    def new_buffer(self, shape: tuple[int, ...], dtype: str) -> ArrayView:
        """Return a new buffer."""
        name = f"cpu{len(self.buffers)}"
        self.buffers[name] = buffer = Buffer(name, shape, dtype)
        return buffer.view

    def table(self, numbers: Iterable[float], dtype: Any = np.float64) -> Array:
        """Return numbers at an address that stays."""
        table = np.array([*numbers, 0], dtype)
        self.tables.append(table)
        return table

    def lay_out(self, inside: Collection[str]) -> None:
        """Give each buffer a place, once all tasks are known, and some inputs and outputs two."""
        outer = [*self.graph.inputs, *self.graph.outputs]
        places = {name: (number, 0) for number, name in enumerate(outer, FIRST_OUTER)}
        places |= {name: places[output] for name, output in self.aliases.items()}
        lives: dict[str, tuple[int, int]] = {}
        for number, task in enumerate(self.tasks):
            for name in sorted(task.buffers - places.keys()):
                lives[name] = lives.get(name, (number, number))[0], number
        shared = self._shared(lives)
        lives |= {name: self._outer_life(name) for name in inside}
        taken: list[tuple[int, int, int, int]] = []  # the first and last task, the first byte and the end
        sizes = {name: _bytes(self.buffers[name]) for name in lives}
        for name in sorted(lives, key=lambda name: (-sizes[name], lives[name])):
            first, last = lives[name]
            start = 0
            for _, _, begin, end in sorted(
                (place for place in taken if place[0] <= last and first <= place[1]),
                key=lambda place: place[2],
            ):
                if start + sizes[name] <= begin:
                    break
                start = max(start, end)
            if name in inside:
                self.inside[name] = start
            else:
                places[name] = GRAPH_BUFFER, start
            taken.append((first, last, start, start + sizes[name]))
            self.bytes = max(self.bytes, start + sizes[name])
        places |= {name: places[source] for name, source in shared.items()}
        self.places = places

    def _outer_life(self, name: str) -> tuple[int, int]:
        """Return the first and the last task from which on, or up to which, an input or output is needed."""
        last = len(self.tasks) - 1
        used = [
            number
            for number, task in enumerate(self.tasks)
            if any(self.aliases.get(each, each) == name for each in task.buffers)
        ]
        return (0, max(used, default=last)) if name in self.graph.inputs else (min(used, default=0), last)

    def _shared(self, lives: dict[str, tuple[int, int]]) -> dict[str, str]:
        """Return the buffer whose place another one takes, and let it live as long as both."""
        shared: dict[str, str] = {}
        for number, task in enumerate(self.tasks):
            source, result = task.reused or ("", "")
            source = shared.get(source, source)
            if source in lives and result in lives and lives[source][1] == number == lives[result][0]:
                lives[source] = lives[source][0], lives.pop(result)[1]
                shared[result] = source
        return shared

    def locate(self, view: ArrayView) -> tuple[int, int]:
        """Return the buffer number of a view, and the byte where it begins."""
        buffer, start = self.places[view.buffer]
        return buffer, start + view.offset * view.itemsize

    def placed(self, view: ArrayView) -> ArrayView:
        """Return a view with the number of its buffer."""
        buffer, start = self.locate(view)
        return view._replace(buffer=buffer, offset=start // view.itemsize)

    # --- tasks ------------------------------------------------------------------------------------

    def add(self, views: Sequence[ArrayView], steps: Callable[[], list[Step]]) -> None:
        """Add a task."""
        self.tasks.append(GraphTask(self.phase, {view.buffer for view in views}, steps))

    def add_node(self, node: Node, add: Callable[[GraphTasks, Any], None]) -> None:
        """Add the tasks of a node by ``add``, or compute it by a function if no kernels can."""
        count = len(self.tasks)
        try:
            try:
                add(self, node)
            except TooManyAxesError:
                del self.tasks[count:]
                for part in _divided_along_axis(node):
                    add(self, part)
        except NoKernelError:
            del self.tasks[count:]
            self.add_function(node)

    def add_function(self, node: Node) -> None:
        """Add a node that is not made of steps, but computed by one function."""
        views, workspace, reused = [*node.reads, *node.writes], "", None
        if isinstance(node, Collaborate):
            from .collaborative import filter_memory  # (imports llvmlite)

            nbytes = filter_memory(node.source.shape, node.profile, node.channels)
            views.append(self.new_buffer((nbytes,), "uint8"))
            workspace, (result,) = views[-1].buffer, node.results
            if node.source.dtype == result.dtype and self._is_whole(node.source) and self._is_whole(result):
                reused = node.source.buffer, result.buffer
        self.tasks.append(
            GraphTask(self.phase, {view.buffer for view in views}, None, node, workspace, reused)
        )

    def _is_whole(self, view: ArrayView) -> bool:
        """Return whether a view is a whole buffer in C order."""
        size = math.prod(self.buffers[view.buffer].shape)
        return view.offset == 0 and math.prod(view.shape) == size and view.plane_strides(0, 0) is not None

    def add_pointwise(self, node: Pointwise) -> None:
        """Add the task of expressions."""
        nests = [
            Nest(result.shape, [value], result)
            for result, value in zip(node.results, node.values, strict=True)
        ]
        texts = [pointwise_text(nest, value) for nest, value in zip(nests, node.values, strict=True)]

        def steps() -> list[Step]:
            return [
                [
                    part
                    for nest, text in zip(nests, texts, strict=True)
                    for part in self.parts(
                        nest, text, (), row_bytes(nest.lengths[3], nest.itemsize) * coarser_operands(nest)
                    )
                ]
            ]

        self.add((*node.reads, *node.writes), steps)

    def copy(self, source: ArrayView, target: ArrayView) -> None:
        """Add a copy."""
        self.add_node(Pointwise((target,), (Load(source),)), GraphTasks.add_pointwise)

    def parts(
        self,
        nest: Nest,
        text: str,
        extras: Sequence[tuple[int, int]] = (),
        scratch: int = 0,
        parts: Sequence[Any] | None = None,
    ) -> Step:
        """Return calls of a kernel for parts of all loops."""
        table = self.table(nest.constants)
        self.scratch_bytes = max(self.scratch_bytes, CALL_BYTES + scratch)
        if parts is None:
            parts = list(cut(nest.lengths, piece_samples(math.prod(nest.lengths))))
        return [
            KernelPart(
                [nest.call(text, self.dtype, table, part, extras, self.locate)],
                math.prod(end - begin for begin, end in part),
            )
            for part in parts
        ]


def piece_samples(samples: int) -> int:
    """Return the samples of a piece of an array."""
    return max(PIECE, samples // MAX_PIECES)


def coarser_operands(nest: Nest) -> int:
    """Return how many operands belong to the next coarser level; each needs a row of memory."""
    return sum(operand.is_coarser for operand in nest.operands)


def _bytes(buffer: Buffer) -> int:
    size = math.prod(buffer.shape) * np.dtype(buffer.dtype).itemsize
    return -(-max(1, size) // ALIGNMENT) * ALIGNMENT


def _divided_along_axis(node: Node) -> Iterator[Node]:
    """Divide a node into parts of one place along its shortest axis, apart from those of windows and levels.

    Batches of volumes are filtered one by one in this way, by the kernels of a single one.
    """
    if not isinstance(node, Pointwise | Stencil):
        raise TooManyAxesError("this node cannot be divided")
    sources = node.sources if isinstance(node, Stencil) else ()
    inner = max([0, *(len(load.finer) for load in loads(*sources, *node.values))])
    inner = max(inner, len(node.taps) if isinstance(node, Stencil) else 0)
    shapes = [view.shape for view in node.results]
    common = zip(*(shape[: max(0, len(shape) - inner)] for shape in shapes), strict=False)
    lengths = {ns[0]: axis for axis, ns in enumerate(common) if ns[0] > 1 and len(set(ns)) == 1}
    if not lengths or len(set(map(len, shapes))) > 1:
        raise TooManyAxesError("this node has no axis to divide")
    count = min(lengths)
    place = lengths[count] - len(shapes[0])  # from the last axis
    for number in range(count):

        def part(view: ArrayView, number: int = number) -> ArrayView:
            if len(view.shape) < -place or view.shape[place] == 1:
                return view
            shape = list(view.shape)
            shape[place] = 1
            return view._replace(shape=tuple(shape), offset=view.offset + number * view.strides[place])

        def parts(expressions: Sequence[Expression], part: Any = part) -> tuple[Expression, ...]:
            return tuple(rewritten(e, lambda load: replace(load, view=part(load.view))) for e in expressions)

        divided = replace(node, results=tuple(map(part, node.results)), values=parts(node.values))
        yield replace(divided, sources=parts(sources)) if isinstance(divided, Stencil) else divided
