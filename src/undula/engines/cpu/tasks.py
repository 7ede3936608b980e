"""The nodes of a graph as tasks: steps of kernel calls on memory that is laid out before.

Each node becomes one or more steps, and each step is cut into parts, in the same way for any number of
threads.

Buffers are numbered: 0 is scratch of the thread, 1 has intermediate results of transforms, 2 has all arrays
between nodes, and the arrays of the caller follow. Arrays that are not needed at the same time share their
place in buffer 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...lowering.expressions import WINDOW, Call, Constant, Expression, Load, loads
from ...lowering.graph import Buffer, Collaborate, Graph, Move, Node, Pointwise, Reduce, Stencil, Transform
from ..base import UnfollowableStridesError
from .compile import LIFTING, compile_transform, level_passes, ordered_bands
from .executable import (
    CALL_BYTES,
    FIRST_ARRAY,
    SCRATCH_BUFFER,
    AxisPass,
    CpuExecutable,
    KernelCall,
    address,
)
from .expressions import (
    COUNTS_BYTES,
    GATHER,
    LOCATE,
    MAX_BOX_RADIUS,
    MEDIAN_WORDS,
    SELECT,
    STATE_BYTES,
    TALLY,
    KernelPart,
    Nest,
    UnsupportedExpressionError,
    box_text,
    combine_text,
    cut,
    median_text,
    move_text,
    pointwise_text,
    row_bytes,
    total_text,
    window_text,
)
from .machine_code import source_address

__all__ = ["ALIGNMENT", "FIRST_OUTER", "GRAPH_BUFFER", "PIECE", "GraphTasks", "Step"]

Array = NDArray[Any]
Step = list[KernelPart]  # Calls that may run at the same time.

GRAPH_BUFFER = 2
PARTS = "parts"  # The name of memory of the thread with parts of a mean.
FIRST_OUTER = 3  # The buffers of the caller.
ALIGNMENT = 64  # bytes
PIECE = 1 << 15  # Samples that a thread takes at a time.
MAX_PIECES = 128  # Of one array.
MIN_ROWS = 64  # Of a piece, where neighbouring rows are needed as well.
MAX_GROUP = 8  # Shifts of an array that are transformed in one piece.
BAND_BYTES = 1 << 19  # Samples of all shifts that stay in a cache until their mean is taken.
MIN_BAND_ROWS, MAX_BAND_ROWS = 16, 64
MAX_ITEM = 1 << 15  # Samples of an item whose median one thread finds alone.
MIN_GROUP = 1 << 22  # Samples of results of a node that are computed in one step.


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
    """

    phase: str
    buffers: set[str]
    steps: Callable[[], list[Step]] | None = None
    node: Node | None = None


class GraphTasks:
    """The tasks of a graph, and where its buffers are.

    Parameters
    ----------
    graph : Graph

    Attributes
    ----------
    tasks : list of GraphTask
        In the order in which they run.
    dtype : str
        The dtype by which tapes tell kernels the type of samples.
    places : dict
        For each buffer its number, and the byte where it begins.
    tables : list
        What kernels have the address of, to be kept.
    bytes, temporary_bytes, scratch_bytes : int
        The sizes of buffers 2, 1 and 0; those of the last two are known when all steps are made.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.aliases = _without_copies(graph.scheduled())
        self.buffers = dict(self.graph.buffers)
        self.tasks: list[GraphTask] = []
        self.tables: list[Array] = []
        self.scratch_bytes = CALL_BYTES
        self.temporary_bytes = 0
        self.phase = ""
        transforms = [node.bands[0].dtype for node in self.graph.nodes if isinstance(node, Transform)]
        floats = [b.dtype for b in self.buffers.values() if b.dtype in ("float32", "float64")]
        self.dtype = (transforms or floats or ["float64"])[0]
        for node, phase in zip(self.graph.nodes, self.graph.phases, strict=True):
            self.phase = phase
            for group in _divided(node):
                self._add_node(group)
        self.places = self._laid_out()

    # --- memory -----------------------------------------------------------------------------------

    def temporary(self, shape: tuple[int, ...], dtype: str) -> ArrayView:
        """Return a new buffer."""
        name = f"cpu{len(self.buffers)}"
        self.buffers[name] = buffer = Buffer(name, shape, dtype)
        return buffer.view

    def table(self, numbers: Iterable[float], dtype: Any = np.float64) -> Array:
        """Return numbers at an address that stays."""
        self.tables.append(np.array([*numbers, 0], dtype))
        return self.tables[-1]

    def _laid_out(self) -> dict[str, tuple[int, int]]:
        """Return the buffer number of each buffer, and the byte where it begins."""
        outer = [*self.graph.inputs, *self.graph.outputs]
        places = {name: (number, 0) for number, name in enumerate(outer, FIRST_OUTER)}
        places |= {name: places[output] for name, output in self.aliases.items()}
        lives: dict[str, tuple[int, int]] = {}
        for number, task in enumerate(self.tasks):
            for name in task.buffers - places.keys():
                lives[name] = lives.get(name, (number, number))[0], number
        taken: list[tuple[int, int, int, int]] = []  # the first and last task, the first byte and the end
        self.bytes = 0
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
            places[name] = GRAPH_BUFFER, start
            taken.append((first, last, start, start + sizes[name]))
            self.bytes = max(self.bytes, start + sizes[name])
        return places

    def locate(self, view: ArrayView) -> tuple[int, int]:
        """Return the buffer number of a view, and the byte where it begins."""
        buffer, start = self.places[view.buffer]
        return buffer, start + view.offset * view.itemsize

    def placed(self, view: ArrayView) -> ArrayView:
        """Return a view with the number of its buffer."""
        buffer, start = self.locate(view)
        return view._replace(buffer=buffer, offset=start // view.itemsize)

    # --- nodes ------------------------------------------------------------------------------------

    def add(self, views: Sequence[ArrayView], steps: Callable[[], list[Step]]) -> None:
        """Add a task."""
        self.tasks.append(GraphTask(self.phase, {view.buffer for view in views}, steps))

    def _add_node(self, node: Node) -> None:
        count = len(self.tasks)
        try:
            if isinstance(node, Transform):
                self._add_transform(node)
            elif isinstance(node, Pointwise):
                self.add_pointwise(node)
            elif isinstance(node, Stencil):
                self._add_stencil(node)
            elif isinstance(node, Reduce):
                self._add_reduce(node)
            elif isinstance(node, Collaborate):
                self._add_whole(node)
            else:
                self._add_move(node)
        except UnsupportedExpressionError:
            del self.tasks[count:]
            self._add_whole(node)

    def _add_whole(self, node: Node) -> None:
        """Add a node that is not made of steps."""
        views = (*node.reads, *node.writes)
        self.tasks.append(GraphTask(self.phase, {view.buffer for view in views}, node=node))

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
            parts = list(cut(nest.lengths, _piece(math.prod(nest.lengths))))
        return [
            KernelPart(
                [nest.call(text, self.dtype, table, part, extras, self.locate)],
                math.prod(end - begin for begin, end in part),
            )
            for part in parts
        ]

    def add_pointwise(self, node: Pointwise) -> None:
        """Add the task of a node."""
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
                        nest, text, (), row_bytes(nest.lengths[3], nest.itemsize) * _coarser(nest)
                    )
                ]
            ]

        self.add((*node.reads, *node.writes), steps)

    def _copy(self, source: ArrayView, target: ArrayView) -> None:
        self._add_node(Pointwise((target,), (Load(source),)))

    def _add_stencil(self, node: Stencil) -> None:
        """Sum over all axes but the last two by steps of their own, then compute the values."""
        sources = list(node.sources)
        for axis in range(len(node.taps) - 2):
            if len(node.taps[axis]) > 1:
                sources = self._summed(node, sources, axis)
        down, along = ((1.0,), *node.taps)[-2:]
        radii = len(down) // 2, len(along) // 2
        box = max(radii) <= MAX_BOX_RADIUS and len(set(down)) == len(set(along)) == 1
        weights = self.table([down[0] * along[0]]), self.table(down), self.table(along)
        kernels = []
        for result, source, value in zip(node.results, sources, node.values, strict=True):
            nest = Nest(result.shape, [source, value], result, apart=min(2, len(node.taps)))
            text = (box_text if box else window_text)(nest, source, value, *radii)
            kernels.append((nest, text))
        extras = [(address(weights[0]), -1)]
        if not box:
            extras = [(radii[0], -1), (radii[1], -1), (address(weights[1]), -1), (address(weights[2]), -1)]

        def steps() -> list[Step]:
            step: Step = []
            for nest, text in kernels:
                *outer, columns = nest.lengths
                rows = _piece(math.prod(nest.lengths)) // max(1, columns)
                parts = [(*part, (0, columns)) for part in cut(outer, max(1, rows), MIN_ROWS)]
                memory = (4 + 2 * radii[0] + _coarser(nest)) * row_bytes(
                    columns + 2 * radii[1], nest.itemsize
                )
                step += self.parts(nest, text, extras, memory, parts)
            return [step]

        views = [load_view for source in sources for load_view in _views(source)]
        self.add((*node.reads, *node.writes, *views), steps)

    def _summed(self, node: Stencil, sources: Sequence[Expression], axis: int) -> list[Expression]:
        """Return sources that are summed along one axis of the window."""
        results = [self.temporary(view.shape, view.dtype) for view in node.results]
        taps = node.taps[axis]
        kernels = []
        first = -len(node.taps) + axis
        for result, source in zip(results, sources, strict=True):
            # The axis is that of rows, and all that follow it are columns.
            plain = _materialized(self, source, result)
            rows = math.prod(result.shape[first + 1 :])
            shape = (math.prod(result.shape[:first]), result.shape[first], rows)
            view, target = (
                x._replace(shape=shape, strides=(shape[1] * rows, rows, 1)) for x in (plain, result)
            )
            load = Load(view)
            nest = Nest(shape, [load], target, apart=2)
            kernels.append((nest, window_text(nest, load, WINDOW, len(taps) // 2, 0)))
        table, unit = self.table(taps), self.table([1.0])
        extras = [(len(taps) // 2, -1), (0, -1), (address(table), -1), (address(unit), -1)]

        def steps() -> list[Step]:
            step: Step = []
            for nest, text in kernels:
                *outer, columns = nest.lengths
                rows = _piece(math.prod(nest.lengths)) // max(1, columns)
                parts = [(*part, (0, columns)) for part in cut(outer, max(1, rows), MIN_ROWS)]
                step += self.parts(
                    nest, text, extras, (3 + len(taps)) * row_bytes(columns, nest.itemsize), parts
                )
            return [step]

        views = [operand.view for nest, _ in kernels for operand in nest.operands]
        self.add(views, steps)
        return [Load(result) for result in results]

    def _add_reduce(self, node: Reduce) -> None:
        if node.kind == "sure":
            raise UnsupportedExpressionError(node.kind)
        if node.kind == "median":
            self._add_median(node)
            return
        nests = [
            Nest(shape, [source], apart=-1) for shape, source in zip(node.shapes, node.sources, strict=True)
        ]
        cuts = [list(cut(nest.lengths[1:], _piece(math.prod(nest.lengths[1:])))) for nest in nests]
        parts = [
            self.temporary((len(pieces), shape[0]), "float64")
            for pieces, shape in zip(cuts, node.shapes, strict=True)
        ]
        texts = [
            total_text(nest, source, node.kind) for nest, source in zip(nests, node.sources, strict=True)
        ]

        def totals() -> list[Step]:
            step: Step = []
            for nest, text, pieces, view in zip(nests, texts, cuts, parts, strict=True):
                buffer, start = self.locate(view)
                items = nest.lengths[0]
                for number, piece in enumerate(pieces):
                    inner = math.prod(end - begin for begin, end in piece)
                    for (group,) in cut((items,), max(1, PIECE // inner)):
                        extra = start + 8 * number * items, buffer
                        step += self.parts(nest, text, [extra], 0, [(group, *piece)])
            return [step]

        def combined() -> list[Step]:
            step: Step = []
            for view, result in zip(parts, node.results, strict=True):
                (source, begin), (target, place) = self.locate(view), self.locate(result)
                words = [8, begin, place, view.shape[1], view.shape[0]]
                relative = [(0, SCRATCH_BUFFER), (1, source), (2, target)]
                kernel = source_address(combine_text(node.kind, result.dtype), self.dtype)
                step.append(KernelPart([KernelCall(kernel, 1, words, relative)], math.prod(view.shape)))
            return [step]

        self.add((*node.reads, *parts), totals)
        self.add((*parts, *node.results), combined)

    def _add_median(self, node: Reduce) -> None:
        limits = [
            self.temporary(shape[:1], result.dtype)
            for shape, result in zip(node.shapes, node.results, strict=True)
        ]
        self.add_pointwise(Pointwise(tuple(limits), node.limits))
        nests = [
            Nest(shape, [source], apart=-1) for shape, source in zip(node.shapes, node.sources, strict=True)
        ]
        for nest, view in zip(nests, limits, strict=True):
            if nest.dtype != view.dtype:
                raise UnsupportedExpressionError("a limit has another dtype than its samples")
        texts = [
            median_text(nest, source, result.dtype)
            for nest, source, result in zip(nests, node.sources, node.results, strict=True)
        ]
        works = [
            _MedianWork(self, nest, text, limit, result)
            for nest, text, limit, result in zip(nests, texts, limits, node.results, strict=True)
        ]
        views = [*node.reads, *node.writes, *limits, *(view for work in works for view in work.memory)]
        for phases in (TALLY, LOCATE, GATHER, SELECT):
            members = [work for work in works if phases in work.phases]
            if members:
                self.add(
                    views,
                    lambda phases=phases, members=members: [  # type: ignore[misc]
                        [part for work in members for part in work.calls(phases)]
                    ],
                )

    def _add_move(self, node: Move) -> None:
        """Copy rows of samples that stay beside each other."""
        source, result = node.source, node.result
        tables = [np.arange(n) for n in result.shape]
        for axis, places in node.places:
            tables[axis] = np.asarray(places)
        lead = [axis for axis in range(len(result.shape) - 3) if result.shape[axis] > 1]
        contiguous = source.shape[-1] == 1 or (source.strides[-1] == 1 and result.strides[-1] in (0, 1))
        if len(lead) > 1 or not contiguous:
            raise UnsupportedExpressionError("no kernel moves these axes")
        if lead and any(axis == lead[0] for axis, _ in node.places):
            raise UnsupportedExpressionError("no kernel moves items")
        missing = max(0, 3 - len(result.shape))
        tables = [*[np.zeros(1, np.int64)] * missing, *tables]
        size = source.itemsize
        runs = _runs(tables[-1])
        outer, rows = (self.table(tables[k], np.int64) for k in (-3, -2))
        run_table = self.table([number for each in runs for number in each], np.int64)
        text = move_text(size)
        items = result.shape[lead[0]] if lead else 1
        lengths = items, len(tables[-3]), len(tables[-2]), len(tables[-1])

        def strides(view: ArrayView) -> list[int]:
            padded = [0] * missing + [s * size for s in view.strides]
            return [view.strides[lead[0]] * size if lead else 0, padded[-3], padded[-2]]

        def steps() -> list[Step]:
            (buffer, start), (target, place) = self.locate(source), self.locate(result)
            step: Step = []
            kernel = source_address(text, self.dtype)
            for part in cut(lengths[:3], max(1, _piece(math.prod(lengths)) // lengths[3])):
                words = [bound for pair in part for bound in pair]
                words += [len(runs), address(outer), address(rows), address(run_table)]
                words += [start, *strides(source), place, *strides(result)]
                step.append(
                    KernelPart(
                        [
                            KernelCall(
                                kernel, 1, [8, *words], [(0, SCRATCH_BUFFER), (11, buffer), (15, target)]
                            )
                        ],
                        math.prod(end - begin for begin, end in part) * lengths[3],
                    )
                )
            return [step]

        self.add((source, result), steps)

    # --- transforms -------------------------------------------------------------------------------

    def _add_transform(self, node: Transform) -> None:
        levels = node.tree.operators(np.dtype(node.bands[0].dtype), LIFTING)
        if node.shifts == 1:
            self._add_levels(node.back, [levels], [(node.samples, *node.bands)])
            return
        axes, (items, nodes) = node.tree.spec.axes, node.samples.shape[:2]
        shifts = list(product((0, 1), repeat=len(axes)))
        one_item = [((1, *shape[1:]), operators) for shape, operators in levels]
        if node.back and _is_banded(levels[0], node.samples.dtype):
            self._add_banded_inverse(node, levels[0], shifts)
            return
        parts = None
        if node.back:
            parts = self.temporary((items, len(shifts), *node.samples.shape[1:]), node.samples.dtype)
        arrays = []
        for item in range(items):
            for number, shift in enumerate(shifts):
                bands = [_part(view, (item, number * nodes), (1, nodes)) for view in node.bands]
                if parts is not None:
                    samples = _part(parts, (item, number), (1, 1))
                    samples = samples._replace(shape=samples.shape[1:], strides=samples.strides[1:])
                else:
                    moved = sum(s * node.samples.strides[axis] for s, axis in zip(shift, axes, strict=True))
                    samples = _part(node.samples, (item,), (1,))
                    samples = samples._replace(offset=samples.offset - moved)
                arrays.append((samples, *bands))
        self._add_levels(node.back, [one_item] * len(arrays), arrays)
        if parts is not None:
            # The mean of many shifts may have more loads than a kernel has arguments; NumPy computes it then.
            self._add_node(_mean_of_shifts(node.samples, parts, axes, shifts))

    def _add_banded_inverse(self, node: Transform, level: Any, shifts: Sequence[tuple[int, ...]]) -> None:
        """Reconstruct all shifts of some rows in memory of the thread, and take their mean."""
        samples, dtype = node.samples, np.dtype(node.samples.dtype)
        _, operators = level
        items, nodes, height, width = samples.shape
        plane = (1, 1, height, width)
        passes = level_passes(True, plane, dtype, operators)
        self.tables.append(passes)  # type: ignore[arg-type]  # It keeps what kernels have the address of.
        row = width * dtype.itemsize
        band = BAND_BYTES // (len(shifts) * row) // 2 * 2
        band = max(MIN_BAND_ROWS, min(MAX_BAND_ROWS, band))
        start = -(-passes.work.scratch_bytes // ALIGNMENT) * ALIGNMENT
        part_bytes = -(-(band + 2) * row // ALIGNMENT) * ALIGNMENT
        self.scratch_bytes = max(self.scratch_bytes, start + len(shifts) * part_bytes)
        # All rows of each shift would be here, if they were not computed a few at a time.
        elements = part_bytes // dtype.itemsize
        parts = ArrayView(
            PARTS, (1, len(shifts), 1, height, width), (0, elements, 0, width, 1), samples.dtype
        )
        mean = _mean_of_shifts(_part(samples, (0, 0), (1, 1)), parts, node.tree.spec.axes, shifts)
        regions = []
        for result, value in zip(mean.results, mean.values, strict=True):
            nest = Nest(result.shape, [value], result, apart=2)
            first = 0 if result.offset < samples.offset + (height - 1) * samples.strides[2] else height - 1
            regions.append((nest, pointwise_text(nest, value), first))
        tables = [self.table(nest.constants) for nest, _, _ in regions]

        def calls(item: int, number: int, begin: int, end: int) -> list[KernelCall]:
            result: list[KernelCall] = []
            for k, shift in enumerate(shifts):
                views = [self.placed(_part(view, (item, k * nodes + number), (1, 1))) for view in node.bands]
                place = (start + k * part_bytes) // dtype.itemsize
                target = ArrayView.contiguous(SCRATCH_BUFFER, plane, samples.dtype, place)
                bands = ordered_bands(passes, views[0], views[1:])
                stop = min(height, end + 2 * shift[0])
                result += passes.work.row_calls(target, bands, begin, stop, 1)
            moved = (item * samples.strides[0] + number * samples.strides[1]) * dtype.itemsize

            def locate(view: ArrayView) -> tuple[int, int]:
                if view.buffer == PARTS:
                    return SCRATCH_BUFFER, start - begin * row + view.offset * dtype.itemsize
                buffer, place = self.locate(view)
                return buffer, place + moved

            for (nest, text, first), table in zip(regions, tables, strict=True):
                rows = max(begin, first) - first, min(end, first + nest.lengths[2]) - first
                if rows[0] < rows[1]:
                    ranges = ((0, 1), (0, 1), rows, (0, nest.lengths[3]))
                    result.append(nest.call(text, self.dtype, table, ranges, (), locate))
            return result

        def steps() -> list[Step]:
            step: Step = []
            for item, number in product(range(items), range(nodes)):
                for begin in range(0, height, band):
                    end = min(height, begin + band)
                    count = len(shifts) * (end - begin) * width
                    step.append(KernelPart(calls(item, number, begin, end), count))
            return [step]

        self.add((*node.reads, *node.writes), steps)

    def _add_levels(self, back: bool, levels: Sequence[Any], arrays: Sequence[tuple[ArrayView, ...]]) -> None:
        """Add transforms that run at the same time."""
        before: list[tuple[ArrayView, ArrayView]] = []
        after: list[tuple[ArrayView, ArrayView]] = []
        followed = []
        for each, given in zip(levels, arrays, strict=True):
            views = list(given)
            while True:
                try:
                    numbered = [view._replace(buffer=k) for k, view in enumerate(views, FIRST_ARRAY)]
                    if compile_transform(back, np.dtype(views[0].dtype), each, numbered).has_functions:
                        raise UnsupportedExpressionError("a transform is not made of kernels")
                    break
                except UnfollowableStridesError as error:
                    number = error.buffer - FIRST_ARRAY
                    copy = self.temporary(views[number].shape, views[number].dtype)
                    read = (number == 0) != back
                    (before if read else after).append((views[number], copy))
                    views[number] = copy
            followed.append(views)
        for view, copy in before:
            self._copy(view, copy)

        def steps() -> list[Step]:
            start, transforms = 0, []
            for each, views in zip(levels, followed, strict=True):
                placed = [self.placed(view) for view in views]
                transforms.append(
                    compile_transform(back, np.dtype(views[0].dtype), each, placed, start=start)
                )
                start = transforms[-1].temporary_bytes
            self.temporary_bytes = max(self.temporary_bytes, start)
            self.tables.extend(transforms)  # type: ignore[arg-type]  # They keep what kernels have the address of.
            return _joined_steps(self, transforms)

        self.add([view for views in followed for view in views], steps)
        for view, copy in after:
            self._copy(copy, view)


def _joined_steps(graph_tasks: GraphTasks, transforms: Sequence[CpuExecutable]) -> list[Step]:
    """Return steps of several transforms at once; those of the same rows are in one piece."""
    steps: list[Step] = []
    for group in zip(*(transform.steps for transform in transforms), strict=True):
        step: Step = []
        for members in batched(group, MAX_GROUP):
            samples = sum(each.samples for each in members)
            parts = []
            for each in members:
                assert each.calls is not None
                graph_tasks.scratch_bytes = max(graph_tasks.scratch_bytes, each.scratch_bytes)
                parts.append(each.calls(_pieces(samples)))
            count = max(map(len, parts))
            if all(len(calls) == count for calls in parts):
                step += [KernelPart(list(calls), samples // count) for calls in zip(*parts, strict=True)]
            else:
                step += [KernelPart([call], samples // len(calls)) for calls in parts for call in calls]
        steps.append(step)
    return steps


def batched(members: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Divide a sequence into groups of a size; the last one may be smaller."""
    return (members[k : k + size] for k in range(0, len(members), size))


def _pieces(samples: int) -> int:
    """Return into how many pieces to cut an array."""
    return max(1, min(MAX_PIECES, samples // PIECE))


def _piece(samples: int) -> int:
    """Return the samples of a piece of an array."""
    return max(PIECE, samples // MAX_PIECES)


def _bytes(buffer: Buffer) -> int:
    size = math.prod(buffer.shape) * np.dtype(buffer.dtype).itemsize
    return -(-max(1, size) // ALIGNMENT) * ALIGNMENT


def _coarser(nest: Nest) -> int:
    return sum(operand.finer for operand in nest.operands)


def _part(view: ArrayView, begins: Sequence[int], lengths: Sequence[int]) -> ArrayView:
    """Return a part of an array along its first axes."""
    offset = view.offset + sum(begin * stride for begin, stride in zip(begins, view.strides, strict=False))
    return view._replace(shape=(*lengths, *view.shape[len(lengths) :]), offset=offset)


def _is_banded(level: Any, dtype: str) -> bool:
    """Whether rows of a level are reconstructed a few at a time: those of images."""
    shape, operators = level
    if [axis for axis, _ in operators] != [2, 3] or len(shape) != 4:
        return False
    work = level_passes(True, (1, 1, *shape[2:]), np.dtype(dtype), operators).work
    return isinstance(work, AxisPass) and work.kind == "planes"


def _mean_of_shifts(
    samples: ArrayView, parts: ArrayView, axes: Sequence[int], shifts: Sequence[tuple[int, ...]]
) -> Pointwise:
    """Return the mean over the shifts that have a sample.

    Sample i of the array is sample i + 1 of the line that begins one sample earlier. The last sample of an
    axis is not in that line.
    """
    shape = samples.shape
    results, values = [], []
    for last in product((False, True), repeat=len(axes)):
        begins, lengths = [0] * len(shape), list(shape)
        for is_last, axis in zip(last, axes, strict=True):
            begins[axis] = shape[axis] - 1 if is_last else 0
            lengths[axis] = 1 if is_last else shape[axis] - 1
        if 0 in lengths:
            continue
        terms: list[Expression] = []
        for number, shift in enumerate(shifts):
            if any(s and is_last for s, is_last in zip(shift, last, strict=True)):
                continue
            places = list(begins)
            for s, axis in zip(shift, axes, strict=True):
                places[axis] += s
            view = _part(parts, (0, number, *places[1:]), (shape[0], 1, *lengths[1:]))
            view = view._replace(
                shape=(view.shape[0], *view.shape[2:]), strides=(view.strides[0], *view.strides[2:])
            )
            terms.append(Load(view))
        total = terms[0]
        for term in terms[1:]:
            total = Call("add", (total, term))
        values.append(Call("multiply", (total, Constant(1 / len(terms)))))
        results.append(_part(samples, begins, lengths))
    return Pointwise(tuple(results), tuple(values))


def _runs(places: Array) -> list[tuple[int, int, int]]:
    """Return runs of neighbours: the first place in the source and in the target, and the length."""
    breaks = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
    return [(int(places[begin]), begin, end - begin) for begin, end in pairwise(breaks) if end > begin]


class _MedianWork:
    """The median of each item of an array: by one call for small items, in phases for large ones."""

    def __init__(
        self, graph_tasks: GraphTasks, nest: Nest, text: str, limit: ArrayView, result: ArrayView
    ) -> None:
        self.graph_tasks, self.nest, self.text, self.limit, self.result = (
            graph_tasks,
            nest,
            text,
            limit,
            result,
        )
        items, samples = nest.lengths[0], math.prod(nest.lengths[1:])
        self.alone = samples <= MAX_ITEM
        size = samples if self.alone else _piece(samples)
        # Rows of memory stay in a cache.
        self.cuts = list(cut(nest.lengths[1:], size))
        splits = len(self.cuts)
        inside = max(math.prod(end - begin for begin, end in part) for part in self.cuts)
        self.capacity = inside + 8  # Candidates are written before it is known whether they are some.
        self.state_bytes = STATE_BYTES + 8 * splits
        sizes = self.state_bytes, splits * COUNTS_BYTES, splits * self.capacity * nest.itemsize
        self.sizes = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
        self.memory = (
            [] if self.alone else [graph_tasks.temporary((items * size,), "uint8") for size in self.sizes]
        )
        self.phases = (TALLY,) if self.alone else (TALLY, LOCATE, GATHER, SELECT)
        self.row = max(row_bytes(part[-1][1] - part[-1][0], nest.itemsize) for part in self.cuts)

    def calls(self, phase: int) -> Step:
        """Return the calls of a phase."""
        nest, graph_tasks = self.nest, self.graph_tasks
        items = nest.lengths[0]
        result = graph_tasks.locate(self.result)
        limit = graph_tasks.locate(self.limit)
        if self.alone:
            # All memory is that of the thread, behind the row.
            starts = [CALL_BYTES + self.row + sum(self.sizes[:k]) for k in range(3)]
            places = [(start, SCRATCH_BUFFER, 0) for start in starts]
            scratch = self.row + sum(self.sizes)
            phase = TALLY | LOCATE | GATHER | SELECT
        else:
            located = [graph_tasks.locate(view) for view in self.memory]
            places = [
                (start, buffer, size) for (buffer, start), size in zip(located, self.sizes, strict=True)
            ]
            scratch = self.row
        state, counts, candidates = places
        step: Step = []
        parts = list(enumerate(self.cuts)) if phase & (TALLY | GATHER) else [(0, self.cuts[0])]
        for split, part in parts:
            samples = math.prod(end - begin for begin, end in part)
            for (group,) in cut((items,), max(1, PIECE // max(1, samples))):
                words = [
                    counts[:2], (counts[2], -1), state[:2], (state[2], -1),
                    candidates[:2], (candidates[2], -1),
                    limit[::-1], (self.limit.strides[0] * self.limit.itemsize, -1),
                    result[::-1], (self.result.strides[0] * self.result.itemsize, -1),
                    (phase, -1), (len(self.cuts), -1), (split, -1), (self.capacity, -1),
                ]  # fmt: skip
                assert len(words) == len(MEDIAN_WORDS)
                step += graph_tasks.parts(nest, self.text, words, scratch, [(group, *part)])
        return step


def _divided(node: Node) -> Iterator[Node]:
    """Divide a node with several large results, so that memory that is no longer read is used again."""
    if not isinstance(node, Pointwise | Stencil):
        yield node
        return
    begin, samples = 0, 0
    for end, result in enumerate(node.results, 1):
        samples += math.prod(result.shape)
        if samples < MIN_GROUP and end < len(node.results):
            continue
        part = slice(begin, end)
        group: Node
        if isinstance(node, Stencil):
            group = replace(
                node, results=node.results[part], sources=node.sources[part], values=node.values[part]
            )
        else:
            group = replace(node, results=node.results[part], values=node.values[part])
        yield group
        begin, samples = end, 0


def _materialized(graph_tasks: GraphTasks, source: Expression, result: ArrayView) -> ArrayView:
    """Return the view of an expression in C order, which is computed if it is not in memory."""
    contiguous = ArrayView.contiguous(result.buffer, result.shape, result.dtype)
    if isinstance(source, Load) and not source.finer:
        view = source.view
        if (view.shape, view.strides, view.dtype) == (contiguous.shape, contiguous.strides, result.dtype):
            return view
    view = graph_tasks.temporary(result.shape, result.dtype)
    graph_tasks.add_pointwise(Pointwise((view,), (source,)))
    return view


def _without_copies(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Return a graph whose outputs are not copied from other buffers, and the output of each such buffer."""
    aliases: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Pointwise):
            pairs = []
            for result, value in zip(node.results, node.values, strict=True):
                name = _copied(graph, result, value)
                if name is not None and name not in aliases:
                    aliases[name] = result.buffer
                else:
                    pairs.append((result, value))
            if len(pairs) < len(node.results):
                node = Pointwise(tuple(result for result, _ in pairs), tuple(value for _, value in pairs))
        nodes.append(node)
    kept = [k for k, node in enumerate(nodes) if not isinstance(node, Pointwise) or node.results]
    graph = replace(graph, nodes=[nodes[k] for k in kept], phases=[graph.phases[k] for k in kept])
    return graph, aliases


def _copied(graph: Graph, result: ArrayView, value: Expression) -> str | None:
    """Return the buffer between nodes of which an output is a copy."""
    if not isinstance(value, Load) or value.finer or result.buffer not in graph.outputs:
        return None
    name = value.view.buffer
    if name in graph.inputs or name in graph.outputs:
        return None
    buffer, output = graph.buffers[name], graph.outputs[result.buffer]
    axes = [[(n, s) for n, s in zip(v.shape, v.strides, strict=True) if n != 1] for v in (value.view, result)]
    same = axes[0] == axes[1] and value.view.offset == result.offset == 0 and result.shape == output.shape
    return (
        name
        if same and (buffer.dtype, math.prod(buffer.shape)) == (output.dtype, math.prod(output.shape))
        else None
    )


def _views(expression: Expression) -> Iterator[ArrayView]:
    return (load.view for load in loads(expression))
