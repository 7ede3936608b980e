"""The builder of programs of graphs: where buffers are, and launches for parts of arrays.

Buffers of a graph that are neither inputs nor outputs are parts of one scratch buffer, the *arena*, and
share memory if they are not needed at the same time. A second scratch buffer has the tables of kernels, which
are uploaded once. So most launches never change from run to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...arrays import ArrayView, contiguous
from ...lowering.expressions import Expression, Load
from ...lowering.graph import Buffer, Graph, Move, Node
from ..base import TransformOptions
from .builder import ProgramBuilder
from .emit import Dialect
from .emit.parts import PartsKernel, pattern_of, size_numbers
from .emit.pointwise import elements_per_group, emit_pointwise
from .launches import DeviceLimits, Launch
from .memory import Arena, Tables, row_pitches, with_pitch
from .parts import Part, PartArray, PartGroup, PartRow, grouped, part_array, row_numbers
from .transform import builder_target

__all__ = ["DTYPE_OF", "GraphBuilder", "flat_rows", "guard_start"]

DTYPE_OF = {"float": "float32", "double": "float64"}

Shape = tuple[int, ...]


@dataclass
class ArenaBuilder(ProgramBuilder):
    """A builder of transforms whose scratch arrays are in the arena of a graph."""

    memory: Callable[[Shape, str], ArrayView] = field(kw_only=True)

    def allocate(self, shape: Shape, dtype: str, pad: int = 1) -> ArrayView:
        """Return a scratch array; its rows are padded to a multiple of ``pad`` elements."""
        padded = (*shape[:-1], -(-shape[-1] // pad) * pad)
        return self.memory(padded, dtype)._replace(shape=shape)


class GraphBuilder:
    """The program of a graph while it is built.

    Parameters
    ----------
    graph : Graph
    layouts : mapping of str to ArrayView
        Where the inputs are in their buffers; they may have any strides.
    dialect : Dialect
    limits : DeviceLimits
    options : TransformOptions
    elided : mapping of str to Move
        Moves whose results are not stored, by the names of these: kernels read their sources instead.

    Attributes
    ----------
    launches : list of Launch
    arena, tables : Arena, Tables
        The scratch memory.
    arena_buffer, table_buffer : int
        The numbers of its two buffers.
    """

    def __init__(
        self,
        graph: Graph,
        layouts: Mapping[str, ArrayView],
        dialect: Dialect,
        limits: DeviceLimits,
        options: TransformOptions,
        elided: Mapping[str, Move],
    ) -> None:
        self.graph, self.dialect, self.limits, self.options = graph, dialect, limits, options
        self.elided = elided
        self.launches: list[Launch] = []
        self.arena, self.tables = Arena(), Tables()
        callers = [*graph.inputs, *graph.outputs]
        self.arena_buffer, self.table_buffer = len(callers), len(callers) + 1
        self._pitches = row_pitches(graph, set(callers))
        self._places: dict[str, tuple[int, int, int]] = {}  # buffer, byte, alignment
        self._temporary: list[tuple[int, int]] = []
        strided: dict[str, ArrayView] = {}
        for number, name in enumerate(callers):
            view = layouts.get(name)
            if view is not None and not _is_contiguous(view):
                strided[name] = view.at(number)
                continue
            start, alignment = (view.offset, view.alignment) if view is not None else (0, 16)
            itemsize = np.dtype(graph.buffers[name].dtype).itemsize
            self._places[name] = (number, start * itemsize, alignment)
        for name, view in strided.items():
            self._place(graph.buffers[name])
            self._copy(view.as_pairs(), self.resolve(graph.buffers[name].view.as_pairs()))

    # --- memory -----------------------------------------------------------------------------------

    def begin(self, node: Node) -> None:
        """Give the results of a node places in the arena."""
        for view in node.writes:
            self._place(self.graph.buffers[view.buffer])

    def end(self, unused: Iterable[str]) -> None:
        """Free the memory of the node that was lowered, and buffers that no later node uses."""
        for block in self._temporary:
            self.arena.give_back(*block)
        self._temporary.clear()
        for name in unused:
            if name in self._places and self._places[name][0] == self.arena_buffer:
                self.arena.give_back(self._places[name][1], self._bytes(self.graph.buffers[name]))

    def _place(self, buffer: Buffer) -> None:
        """Give a buffer a place in the arena, unless it has one."""
        if buffer.name in self._places or buffer.name in self.elided:
            return
        begin = self.arena.take(self._bytes(buffer))
        self._places[buffer.name] = (self.arena_buffer, begin, 16)

    def _bytes(self, buffer: Buffer) -> int:
        columns, pitch = self._pitches.get(buffer.name, (1, 1))
        return max(1, math.prod(buffer.shape)) // columns * pitch * np.dtype(buffer.dtype).itemsize

    def resolve(self, view: ArrayView) -> ArrayView:
        """Return a view in numbered buffers."""
        buffer, begin, alignment = self._places[view.buffer]
        if view.buffer in self._pitches:
            padded = with_pitch(view, *self._pitches[view.buffer])
            assert padded is not None
            view = padded
        offset = view.offset + begin // view.itemsize
        return view._replace(buffer=buffer, offset=offset, alignment=alignment)

    def scratch(self, shape: Shape, dtype: str) -> ArrayView:
        """Return memory of the arena for the node that is being lowered."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        begin = self.arena.take(size)
        self._temporary.append((begin, size))
        return ArrayView.contiguous(self.arena_buffer, shape, dtype, begin // np.dtype(dtype).itemsize)

    def table(self, values: Sequence[float], dtype: str) -> tuple[int, int]:
        """Return the buffer of a new table of numbers, and where it begins there, in elements."""
        return self.table_buffer, self.tables.add(values, dtype)

    def _copy(self, source: ArrayView, target: ArrayView) -> None:
        arrays = [part_array(source), part_array(target)]
        pattern, _, _ = pattern_of(Load(source))
        self.pointwise_launches([Part(target.shape, arrays, pattern, [])])

    # --- parts and launches -----------------------------------------------------------------------

    def loaded(self, load: Load, shape: Shape) -> PartArray:
        """Return the array of a load, broadcast to a shape."""
        view = self.resolve(load.view)
        array = part_array(view, shape)
        axes, ndim = list(array.axes), len(view.shape)
        for k in range(len(load.finer)):
            axis = ndim - len(load.finer) + k
            target = len(shape) - ndim + axis
            if view.shape[axis] > 1:
                axes[target] = ("finer", view.strides[axis], load.offset, view.shape[axis] - 1)
        return array._replace(axes=tuple(axes))

    def part(self, shape: Shape, result: ArrayView | None, *values: Expression) -> Part:
        """Return the part of expressions at the places of a shape, and of the array that is computed."""
        pattern, slots, constants = pattern_of(*values)
        arrays = [self.loaded(load, shape) for load in slots]
        if result is not None:
            arrays.append(part_array(self.resolve(result), shape))
        return Part(shape, arrays, pattern, constants)

    def launch(
        self,
        kernel: PartsKernel,
        parts: Sequence[PartRow],
        extra: Sequence[tuple[int, int]] = (),
        integers: Sequence[int] = (),
    ) -> None:
        """Append the launch of a kernel.

        Parameters
        ----------
        kernel : PartsKernel
            With its text complete.
        parts : sequence of PartRow
        extra : sequence of (buffer, start)
            Of the further arrays of the kernel.
        integers : sequence of int
            Its further parameters.
        """
        width = len(kernel.row)
        begin = self.tables.reserve(8 * width * len(parts))
        rows: list[list[int]] = []
        first = 0
        values: list[float] = []
        for groups, fields, arrays, constants in parts:
            row = [first, *fields]
            for array, access in zip(arrays, kernel.accesses, strict=False):
                row += row_numbers(array, access, begin // 8)
            rows.append(row)
            first += groups
            values += constants
        self.tables.fill(begin, rows, "int64")
        constants_start = self.tables.add(values, DTYPE_OF[kernel.number]) if values else 0
        stride = 1 << (len(parts) - 1).bit_length() >> 1
        arrays = parts[0].arrays[: len(kernel.accesses)]
        self.launches.append(
            Launch(
                kernel.kernel(),
                first,
                (*[self.table_buffer] * 2, *(buffer for buffer, _ in extra), *(a.buffer for a in arrays)),
                (begin // 8, constants_start, *(start for _, start in extra), len(parts), stride, *integers),
            )
        )

    def pointwise_launches(self, parts: Iterable[Part], guard: ArrayView | None = None) -> None:
        """Append launches that compute parts, unless the guard of a stencil is zero."""
        for group in grouped(part.merged() for part in parts if 0 not in part.sizes):
            kernel = emit_pointwise(group.spec(self.dialect, "result", guard=guard))
            self.launch(kernel, flat_rows(group, guard), guard_start(guard))

    def transform_builder(self) -> ProgramBuilder:
        """Return a builder that appends the launches of transforms to those of the graph."""
        strategy, target = builder_target(self.dialect, self.limits, self.options)
        return ArenaBuilder(strategy, target, self.arena_buffer, self.launches, memory=self.scratch)


def flat_rows(group: PartGroup, guard: ArrayView | None = None) -> list[PartRow]:
    """Return the rows of parts whose places are counted in C order."""
    rows = []
    for part in group.parts:
        count = math.prod(part.sizes)
        groups = -(-count // elements_per_group(guard is not None))
        rows.append(PartRow(groups, [count, *size_numbers(part.sizes)], part.arrays, part.constants))
    return rows


def guard_start(guard: ArrayView | None) -> list[tuple[int, int]]:
    """Return the buffer of a guard, and where it begins there."""
    return [] if guard is None else [(guard.buffer, guard.offset)]


def _is_contiguous(view: ArrayView) -> bool:
    steps = zip(view.shape, view.strides, contiguous(view.shape), strict=True)
    return all(n == 1 or have == want for n, have, want in steps)
