"""Graphs as programs of kernels.

Buffers of a graph that are neither inputs nor outputs are pieces of one scratch buffer, the *arena*, and
share memory if they are not needed at the same time. A second scratch buffer has the tables of kernels, which
are uploaded once. So most launches never change from run to run.

    Graph ──scheduled──▶ nodes ──lower_graph──▶ GraphProgram: launches, phases, tables
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, product
from typing import Any, NamedTuple

import numpy as np

from ...arrays import ArrayView, contiguous
from ...errors import ArgumentError
from ...lowering.borders import BORDERS
from ...lowering.expressions import Call, Expression, Load, WindowSum, loads
from ...lowering.graph import Buffer, Collaborate, Graph, Move, Node, Pointwise, Reduce, Stencil, Transform
from ..base import TransformOptions, UnfollowableStridesError
from .builder import ProgramBuilder
from .collaborative import CollaborativeLowering
from .emit import Dialect, Kernel, reductions
from .emit.parts import DTYPES, PartsKernel, PartsSpec, pattern_of, size_numbers
from .emit.pointwise import elements_per_group, emit_mean, emit_pointwise
from .emit.shifts import (
    BAND_COLUMNS,
    COLUMNS,
    MARCHING_COLUMNS,
    MARCHING_ITEMS,
    MAX_MARCHING_TAPS,
    emit_marching_shifted,
    emit_marching_unshifted,
    emit_shifted,
    emit_unshifted,
    marching_tile,
    shifted_rows,
    unshifted_rows,
)
from .emit.stencils import (
    STENCIL_ITEMS,
    TileShape,
    emit_marching_stencil,
    emit_stencil,
    marching_width,
    tile_shape,
)
from .launches import DeviceLevel, DeviceLimits, DeviceProgram, Launch
from .memory import Arena, Tables
from .parts import NARROW, NO_OFFSET, Part, PartArray, PartGroup, grouped, row_numbers
from .transform import PAD_ELEMENTS, append_levels, builder_target, check_lengths, device_levels

__all__ = ["GraphProgram", "lower_graph"]

MIN_ITEMS = 256  # in a group, that the device must support
CHUNK_ELEMENTS = 2048  # Each group of a reduction has at least so many.
GROUPS_PER_UNIT = 8  # of a reduction
MARCHING_STRIPS = (64, 32, 16)  # rows
MARCHING_WARPS = 32  # for each unit of the device
MAX_TILE_TAPS = 33  # along each axis of a window in shared memory
MAX_SORTED = 2**30  # numbers
MAX_SHIFTED_TAPS = 20  # of filters for all shifts at once
# Each sample beyond the ends of a line is one of those inside.
PLACED_MODES = ("symmetric", "reflect", "periodic", "constant")
MIN_PADDED_COLUMNS = 32  # Rows of transforms with at least so many are padded.
DTYPE_OF = {"float": "float32", "double": "float64"}

Shape = tuple[int, ...]


@dataclass(frozen=True)
class GraphProgram:
    """The program of a graph for a kind of device.

    Parameters
    ----------
    program : DeviceProgram
        Its buffers are the inputs, the outputs, and two of scratch memory: the arena and the tables.
    phases : tuple of str
        The phase of each launch.
    tables : ndarray of uint8
        What the second buffer of scratch memory begins with.
    """

    program: DeviceProgram
    phases: tuple[str, ...]
    tables: np.ndarray[Any, Any]


class PartRow(NamedTuple):
    """A part of a launch.

    Parameters
    ----------
    groups : int
    fields : sequence of int
        Its numbers, besides those of arrays.
    arrays : sequence of PartArray
    constants : sequence of float
    """

    groups: int
    fields: Sequence[int]
    arrays: Sequence[PartArray]
    constants: Sequence[float]


@dataclass
class GraphBuilder(ProgramBuilder):
    """A builder of transforms whose scratch arrays are in the arena."""

    memory: Callable[[Shape, str], ArrayView] = field(kw_only=True)

    def allocate(self, shape: Shape, dtype: str, pad: int = 1) -> ArrayView:
        """Return a scratch array; its rows are padded to a multiple of ``pad`` elements."""
        padded = (*shape[:-1], -(-shape[-1] // pad) * pad)
        return self.memory(padded, dtype)._replace(shape=shape)


def lower_graph(
    graph: Graph,
    layouts: Mapping[str, ArrayView],
    dialect: Dialect,
    limits: DeviceLimits,
    options: TransformOptions,
) -> GraphProgram:
    """Return the program of a scheduled graph.

    Parameters
    ----------
    graph : Graph
    layouts : mapping of str to ArrayView
        Where the inputs are in their buffers; they may have any strides.
    dialect : Dialect
    limits : DeviceLimits
    options : TransformOptions
    """
    if limits.items < MIN_ITEMS:
        raise ArgumentError(
            f"filters need groups of {MIN_ITEMS} work items, but the device has {limits.items}"
        )
    return _GraphLowering(graph, layouts, dialect, limits, options).lowered()


class _GraphLowering:
    def __init__(
        self,
        graph: Graph,
        layouts: Mapping[str, ArrayView],
        dialect: Dialect,
        limits: DeviceLimits,
        options: TransformOptions,
    ) -> None:
        self.graph, self.dialect, self.limits, self.options = graph, dialect, limits, options
        self.launches: list[Launch] = []
        self.phases: list[str] = []
        self.guard: ArrayView | None = None  # of the stencil that is lowered
        self.arena_memory, self.table_memory = Arena(), Tables()
        callers = [*graph.inputs, *graph.outputs]
        self.arena, self.tables = len(callers), len(callers) + 1
        self.pitches = _row_pitches(graph, set(callers))
        self.places: dict[str, tuple[int, int, int]] = {}  # buffer, byte, alignment
        self.layouts: dict[str, ArrayView] = {}
        for number, name in enumerate(callers):
            view = layouts.get(name)
            buffer = graph.buffers[name]
            if view is not None and not _is_contiguous(view):
                self.layouts[name] = view.at(number)
                continue
            start, alignment = (view.offset, view.alignment) if view is not None else (0, 16)
            self.places[name] = (number, start * np.dtype(buffer.dtype).itemsize, alignment)
        self.temporary: list[tuple[int, int]] = []
        self.mirrored = self._mirrored()  # moves to buffers that are not needed

    def lowered(self) -> GraphProgram:
        """Lower all nodes."""
        graph = self.graph
        last: dict[str, int] = {}
        for number, node in enumerate(graph.nodes):
            for view in (*node.reads, *node.writes):
                last[view.buffer] = number
                if view.buffer in self.mirrored:
                    last[self.mirrored[view.buffer].source.buffer] = number
        for name, view in self.layouts.items():
            self._place(graph.buffers[name])
            self._copy(view.as_pairs(), self.resolve(graph.buffers[name].view.as_pairs()))
        self.phases += [graph.phases[0]] * len(self.launches) if graph.phases else []
        for number, (node, phase) in enumerate(zip(graph.nodes, graph.phases, strict=True)):
            for view in node.writes:
                self._place(graph.buffers[view.buffer])
            try:
                self._lower(node)
            except UnfollowableStridesError as error:
                raise ArgumentError(f"kernels cannot run {type(node).__name__}: {error}") from None
            self.phases += [phase] * (len(self.launches) - len(self.phases))
            for piece in self.temporary:
                self.arena_memory.give_back(*piece)
            self.temporary.clear()
            for name, end in last.items():
                if end == number and name in self.places and self.places[name][0] == self.arena:
                    self.arena_memory.give_back(self.places[name][1], self._bytes(graph.buffers[name]))
        scratch = ((max(1, self.arena_memory.size), "uint8"), (self.table_memory.size, "uint8"))
        program = DeviceProgram(tuple(self.launches), scratch, self.arena)
        return GraphProgram(program, tuple(self.phases), self.table_memory.image())

    # --- memory -----------------------------------------------------------------------------------

    def _place(self, buffer: Buffer) -> None:
        """Give a buffer a place in the arena, unless it has one."""
        if buffer.name in self.places or buffer.name in self.mirrored:
            return
        begin = self.arena_memory.take(self._bytes(buffer))
        self.places[buffer.name] = (self.arena, begin, 16)

    def _bytes(self, buffer: Buffer) -> int:
        columns, pitch = self.pitches.get(buffer.name, (1, 1))
        return max(1, math.prod(buffer.shape)) // columns * pitch * np.dtype(buffer.dtype).itemsize

    def resolve(self, view: ArrayView) -> ArrayView:
        """Return a view in numbered buffers."""
        buffer, begin, alignment = self.places[view.buffer]
        if view.buffer in self.pitches:
            padded = _with_pitch(view, *self.pitches[view.buffer])
            assert padded is not None
            view = padded
        offset = view.offset + begin // view.itemsize
        return view._replace(buffer=buffer, offset=offset, alignment=alignment)

    def scratch(self, shape: Shape, dtype: str) -> ArrayView:
        """Return memory of the arena for the node that is being lowered."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        begin = self.arena_memory.take(size)
        self.temporary.append((begin, size))
        return ArrayView.contiguous(self.arena, shape, dtype, begin // np.dtype(dtype).itemsize)

    def _copy(self, source: ArrayView, target: ArrayView) -> None:
        arrays = [self._part_array(source), self._part_array(target)]
        pattern, _, _ = pattern_of(Load(source))
        self._pointwise_launches([Part(target.shape, arrays, pattern, [])])

    # --- parts ------------------------------------------------------------------------------------

    def _part_array(self, view: ArrayView, shape: Shape | None = None) -> PartArray:
        """Return an array whose view is in numbered buffers, broadcast to a shape."""
        shape = view.shape if shape is None else shape
        _check_dtype(view.dtype)
        missing = len(shape) - len(view.shape)
        axes = [NO_OFFSET] * missing + [
            ("stride", step) if n > 1 and step else NO_OFFSET
            for n, step in zip(view.shape, view.strides, strict=True)
        ]
        return PartArray(view.buffer, view.dtype, view.offset, tuple(axes))

    def _loaded(self, load: Load, shape: Shape) -> PartArray:
        """Return the array of a load, broadcast to a shape."""
        view = self.resolve(load.view)
        if not load.finer:
            return self._part_array(view, shape)
        array = self._part_array(view, shape)
        axes, ndim = list(array.axes), len(view.shape)
        for k in range(len(load.finer)):
            axis = ndim - len(load.finer) + k
            target = len(shape) - ndim + axis
            if view.shape[axis] > 1:
                axes[target] = ("finer", view.strides[axis], load.offset, view.shape[axis] - 1)
        return array._replace(axes=tuple(axes))

    def _part(self, shape: Shape, result: ArrayView | None, *values: Expression) -> Part:
        pattern, slots, constants = pattern_of(*values)
        arrays = [self._loaded(load, shape) for load in slots]
        if result is not None:
            arrays.append(self._part_array(self.resolve(result), shape))
        return Part(shape, arrays, pattern, constants)

    def _launch(
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
        if kernel.guarded:
            assert self.guard is not None
            extra = [*extra, (self.guard.buffer, self.guard.offset)]
        width = len(kernel.row)
        begin = self.table_memory.reserve(8 * width * len(parts))
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
        self.table_memory.fill(begin, rows, "int64")
        constants_start = self.table_memory.add(values, DTYPE_OF[kernel.number]) if values else 0
        stride = 1 << (len(parts) - 1).bit_length() >> 1
        arrays = parts[0].arrays[: len(kernel.accesses)]
        self.launches.append(
            Launch(
                kernel.kernel(),
                first,
                (self.tables, self.tables, *(buffer for buffer, _ in extra), *(a.buffer for a in arrays)),
                (begin // 8, constants_start, *(start for _, start in extra), len(parts), stride, *integers),
            )
        )

    # --- nodes ------------------------------------------------------------------------------------

    def _lower(self, node: Node) -> None:
        lower: dict[type, Callable[[Any], None]] = {
            Transform: self._transform,
            Pointwise: self._pointwise,
            Stencil: self._stencil,
            Reduce: self._reduce,
            Move: self._move,
            Collaborate: self._collaborate,
        }
        lower[type(node)](node)

    def _pointwise(self, node: Pointwise) -> None:
        parts = [
            self._part(view.shape, view, value) for view, value in zip(node.results, node.values, strict=True)
        ]
        self._pointwise_launches(parts)

    def _pointwise_launches(self, parts: Iterable[Part]) -> None:
        for group in grouped(part.merged() for part in parts if 0 not in part.sizes):
            kernel = emit_pointwise(self._guarded_spec(group, "result"))
            self._launch(kernel, self._flat_rows(group))

    def _guarded_spec(self, group: PartGroup, *others: str) -> PartsSpec:
        """Return what a kernel on a group of parts computes, unless the guard of the stencil is zero."""
        guard = "" if self.guard is None else self.guard.dtype
        return replace(group.spec(self.dialect, *others), guard=guard)

    def _flat_rows(self, group: PartGroup) -> list[PartRow]:
        """Return the rows of parts whose places are counted in C order."""
        rows = []
        for part in group.parts:
            count = math.prod(part.sizes)
            groups = -(-count // elements_per_group(self.guard is not None))
            rows.append(PartRow(groups, [count, *size_numbers(part.sizes)], part.arrays, part.constants))
        return rows

    def _move(self, node: Move) -> None:
        if node.result.buffer in self.mirrored:
            return
        source, result = self.resolve(node.source), self.resolve(node.result)
        array = self._part_array(source, source.shape)
        axes = list(array.axes)
        for axis, places in node.places:
            offsets = [place * source.strides[axis] for place in places]
            if len(set(offsets)) == 1 and offsets[0] == 0:
                axes[axis] = NO_OFFSET
            else:
                axes[axis] = ("places", self.table_memory.add(offsets, "int64"))
        pattern, _, _ = pattern_of(Load(node.source))
        part = Part(result.shape, [array._replace(axes=tuple(axes)), self._part_array(result)], pattern, [])
        self._pointwise_launches([part])

    def _collaborate(self, node: Collaborate) -> None:
        """Append launches for the extremes of planes, and for their groups."""
        source, items = self.resolve(node.source), node.source.shape[0]
        if len(source.shape) != 3:
            raise ArgumentError(
                "groups of blocks of volumes are filtered on the CPU; copy the volume to the host or pass"
                " backend='cpu', or filter its planes as images with axes=(-2, -1)"
            )
        if node.profile.noise is not None:
            raise ArgumentError(
                "groups of blocks whose noise has a spectrum are filtered on the CPU; copy the image to the"
                " host or pass backend='cpu', or use quality='fast'"
            )
        load = Load(node.source)
        extremes = []
        for value in (Call("negative", (load,)), load):
            pattern, _, constants = pattern_of(value)
            extreme = self.scratch((items,), source.dtype)
            axes = (("stride", 1), NO_OFFSET, NO_OFFSET)
            arrays = [
                self._part_array(source),
                PartArray(extreme.buffer, extreme.dtype, extreme.offset, axes),
            ]
            for group in grouped([Part(source.shape, arrays, pattern, constants).merged(1)], 1):
                self._fold("max", group)
            extremes.append(extreme)
        lowering = CollaborativeLowering(
            profile=node.profile,
            channels=node.channels,
            source=source,
            noise=self.resolve(node.noise),
            result=self.resolve(node.results[0]),
            lowest=extremes[0],
            highest=extremes[1],
            scratch=self.scratch,
            tables=self.table_memory,
            table_buffer=self.tables,
            dialect=self.dialect,
            limits=self.limits,
        )
        self.launches += lowering.launches()

    # --- stencils ---------------------------------------------------------------------------------

    def _stencil(self, node: Stencil) -> None:
        self.guard = None if node.guard is None else self.resolve(node.guard)
        self._sum_windows(node)
        self.guard = None

    def _sum_windows(self, node: Stencil) -> None:
        lengths = [len(taps) for taps in node.taps]
        weights = [taps[0] if len(taps) == 1 else 1.0 for taps in node.taps]
        active = [k - len(lengths) for k, n in enumerate(lengths) if n > 1]
        entries = list(zip(node.results, node.sources, node.values, strict=True))
        # Windows that may be skipped are summed along lines, in fewer groups.
        planar = len(lengths) >= 2 and all(axis >= -2 for axis in active) and len(node.results[0].shape) >= 2
        if planar and self.guard is None:
            taps = (lengths[-2], lengths[-1])
            itemsize = max(view.itemsize for view in node.results)
            tile = tile_shape(taps, itemsize, self.limits.shared) if max(taps) <= MAX_TILE_TAPS else None
            if tile is not None and math.prod(weights[:-2]) == 1:
                self._tiles(node, entries, tile)
                return
        self._lines(node, entries, active, math.prod(weights))

    def _tiles(self, node: Stencil, entries: list[Any], tile: TileShape) -> None:
        down, along = node.taps[-2:]
        boxes = (len(set(down)) == 1, len(set(along)) == 1)
        scale = math.prod(taps[0] for taps, box in zip((down, along), boxes, strict=True) if box)
        parts = [self._part(view.shape, view, source, value).merged(0, 2) for view, source, value in entries]
        taps = (len(down), len(along))
        if self.dialect.shuffle and all(boxes) and marching_width(taps):
            self._march(parts, taps, scale)
            return
        for group in grouped(parts):
            kernel = emit_stencil(group.spec(self.dialect, "result"), tile, boxes)
            rows = []
            for part in group.parts:
                *outer, high, wide = part.sizes
                across, downwards = -(-wide // tile.columns), -(-high // tile.rows)
                tiles = across * downwards
                fields = [high, wide, across, tiles, *outer]
                rows.append(PartRow(tiles * math.prod(outer), fields, part.arrays, part.constants))
            start = self._weights([scale, *down, *along], group.number)
            self._launch(kernel, rows, [(self.tables, start)])

    def _march(self, parts: list[Part], taps: tuple[int, int], scale: float) -> None:
        """Append launches of warps that go down strips of columns."""
        width, warps = marching_width(taps), STENCIL_ITEMS // 32

        def tiles(part: Part, strip: int) -> tuple[int, int]:
            *_, high, wide = part.sizes
            return -(-wide // width), -(-high // strip)

        for group in grouped(parts):
            # Long strips have fewer rows in common, short ones keep all units of the device busy.
            for strip in MARCHING_STRIPS:
                units = [math.prod(tiles(part, strip)) * math.prod(part.sizes[:-2]) for part in group.parts]
                if sum(units) >= MARCHING_WARPS * self.limits.units:
                    break
            rows = []
            for part, count in zip(group.parts, units, strict=True):
                *outer, high, wide = part.sizes
                across, downwards = tiles(part, strip)
                fields = [high, wide, across, across * downwards, strip, count, *outer]
                rows.append(PartRow(-(-count // warps), fields, part.arrays, part.constants))
            kernel = emit_marching_stencil(group.spec(self.dialect, "result"), taps)
            self._launch(kernel, rows, [(self.tables, self._weights([scale], group.number))])

    def _weights(self, weights: Sequence[float], number: str) -> int:
        return self.table_memory.add(weights, DTYPE_OF[number])

    def _lines(self, node: Stencil, entries: list[Any], active: list[int], factor: float) -> None:
        """Sum along one axis after the other."""
        views = []
        parts = []
        for view, source, _ in entries:
            if isinstance(source, Load) and not source.finer and source.view.shape == view.shape:
                views.append(self.resolve(source.view))
                continue
            samples = self.scratch(view.shape, view.dtype)
            part = self._part(view.shape, None, source)
            part.arrays.append(self._part_array(samples))
            parts.append(part)
            views.append(samples)
        self._pointwise_launches(parts)
        for number, axis in enumerate(active or [-1]):
            taps = node.taps[axis] if active else (1.0,)
            taps = tuple(factor * tap for tap in taps) if number == 0 else taps
            last = number >= len(active) - 1
            parts = []
            results = []
            for (view, _, value), source in zip(entries, views, strict=True):
                expression = value if last else WindowSum()
                part = self._part(view.shape, None, expression)
                result = self.resolve(view) if last else self.scratch(view.shape, view.dtype)
                part.arrays += [self._part_array(result), self._part_array(source)]
                results.append(result)
                parts.append(part)
            self._line_launches(parts, axis, taps)
            views = results

    def _line_launches(self, parts: list[Part], axis: int, taps: Sequence[float]) -> None:
        for group in grouped(part.merged(0, -axis) for part in parts):
            kernel = emit_pointwise(self._guarded_spec(group, "result", "source"), group.ndim + axis)
            start = self._weights(taps, group.number)
            self._launch(kernel, self._flat_rows(group), [(self.tables, start)], [len(taps)])

    # --- reductions -------------------------------------------------------------------------------

    def _reduce(self, node: Reduce) -> None:
        limits = node.limits or (None,) * len(node.results)
        parts = [
            self._reduced_part(*entry)
            for entry in zip(node.shapes, node.results, node.sources, limits, strict=True)
        ]
        for group in grouped(parts, 1):
            if node.kind == "median":
                self._median(group)
            elif node.kind == "sure":
                self._sure(group)
            else:
                self._fold(node.kind, group)

    def _reduced_part(
        self, shape: Shape, result: ArrayView, source: Expression, limit: Expression | None
    ) -> Part:
        """Return the part of samples, whose first axis is that of items."""
        roots = (source,) if limit is None else (source, limit)
        pattern, slots, constants = pattern_of(*roots)
        limited = {id(load) for load in loads(*roots[1:])}
        ndim = max(2, len(shape))
        arrays = []
        for load in slots:  # A limit is one number for each item.
            arrays.append(self._loaded(load, shape[:1] if id(load) in limited else shape))
        arrays.append(self._part_array(self.resolve(result)))
        padded = [
            array._replace(axes=(*array.axes, *[NO_OFFSET] * (ndim - len(array.axes)))) for array in arrays
        ]
        return Part((*shape, 1)[:ndim], padded, pattern, constants).merged(1)

    def _chunks(self, part: Part) -> tuple[int, int, int]:
        """Return the number of samples of an item, those of a chunk, and the number of chunks."""
        items, count = part.sizes[0], math.prod(part.sizes[1:])
        groups = max(1, GROUPS_PER_UNIT * self.limits.units // items)
        chunk = max(CHUNK_ELEMENTS, -(-count // groups))
        return count, chunk, -(-count // chunk)

    def _source_rows(self, group: PartGroup, entries: Sequence[int]) -> list[PartRow]:
        """Return rows for kernels on chunks of items."""
        rows = []
        for part, entry in zip(group.parts, entries, strict=True):
            count, chunk, chunks = self._chunks(part)
            fields = [count, chunk, chunks, entry, 0, *size_numbers(part.sizes[1:])]
            rows.append(PartRow(chunks * part.sizes[0], fields, part.arrays, part.constants))
        return rows

    def _fold(self, kind: str, group: PartGroup) -> None:
        """Append a launch for chunks, and one for items if they have several."""
        spec = group.spec(self.dialect, "result")
        counts = [self._chunks(part)[2] for part in group.parts]
        if max(counts) == 1:
            kernel = reductions.emit_partials(kind, spec, True)
            self._launch(kernel, self._source_rows(group, [0] * len(counts)))
            return
        entries, total = _running([n * part.sizes[0] for n, part in zip(counts, group.parts, strict=True)])
        partials = self.scratch((total,), DTYPE_OF[group.number])
        extra = [(partials.buffer, partials.offset)]
        self._launch(
            reductions.emit_partials(kind, group.spec(self.dialect), False),
            self._source_rows(group, entries),
            extra,
        )
        rows = [
            PartRow(part.sizes[0], [chunks, entry], part.arrays[-1:], [])
            for part, chunks, entry in zip(group.parts, counts, entries, strict=True)
        ]
        self._launch(reductions.emit_folded(kind, spec), rows, extra)

    def _median(self, group: PartGroup) -> None:
        """Append a launch for each of the digits of magnitudes, and one for the result."""
        digits = reductions.digits(group.number)
        entries, items = _running([part.sizes[0] for part in group.parts])
        # Histograms are zero at the beginning, and the last launch sets them to zero for the next time.
        histograms = self.table_memory.reserve(4 * items * len(digits) * reductions.BINS) // 4
        states = self.table_memory.reserve(8 * items * (len(digits) + 1) * reductions.STATE) // 8
        extra = [(self.tables, histograms), (self.tables, states)]
        rows, spec = self._source_rows(group, entries), group.spec(self.dialect)
        kernels = [reductions.emit_median_pass(first, spec) for first in (True, False)]
        previous = 0
        for turn, (shift, bits) in enumerate(digits):
            self._launch(kernels[min(turn, 1)], rows, extra, [turn, shift, bits, previous])
            previous = bits
        kernel = reductions.emit_median_result(group.spec(self.dialect, "result"))
        rows = [
            PartRow(part.sizes[0], [1, entry], part.arrays[-1:], [])
            for part, entry in zip(group.parts, entries, strict=True)
        ]
        self._launch(kernel, rows, extra, [len(digits), previous])

    def _sure(self, group: PartGroup) -> None:
        """Append launches that sort magnitudes, and find the one of least risk."""
        block = reductions.SORTED_AT_ONCE
        counts = [math.prod(part.sizes[1:]) for part in group.parts]
        if max(counts) > MAX_SORTED:
            raise ArgumentError(f"kernels sort up to 2³⁰ samples for SURE, got {max(counts)}")
        padded = [1 << (count - 1).bit_length() for count in counts]
        entries, total = _running([part.sizes[0] * n for part, n in zip(group.parts, padded, strict=True)])
        keys = self.scratch((total,), DTYPE_OF[group.number])
        extra = [(keys.buffer, keys.offset)]
        rows = []
        for part, count, size, entry in zip(group.parts, counts, padded, entries, strict=True):
            blocks = -(-size // block)
            fields = [count, block, blocks, entry, size, *size_numbers(part.sizes[1:])]
            rows.append(PartRow(blocks * part.sizes[0], fields, part.arrays, part.constants))
        self._launch(reductions.emit_keys(group.spec(self.dialect)), rows, extra)
        self._sort(group, padded, entries, extra)
        chunked = [self._chunks(part) for part in group.parts]
        partial_counts = [3 * part.sizes[0] * c[2] for part, c in zip(group.parts, chunked, strict=True)]
        starts, total = _running(partial_counts)
        partials = self.scratch((total,), "float64")
        extra.append((partials.buffer, partials.offset))
        spec = group.spec(self.dialect, "result")
        for stage in ("squares", "risks", "threshold"):
            rows = []
            for k, part in enumerate(group.parts):
                groups = part.sizes[0] * (1 if stage == "threshold" else chunked[k][2])
                fields = [*chunked[k], entries[k], padded[k], starts[k]]
                rows.append(PartRow(groups, fields, part.arrays, part.constants))
            self._launch(reductions.emit_risks(stage, spec), rows, extra)

    def _sort(self, group: PartGroup, padded: list[int], entries: list[int], extra: list[Any]) -> None:
        """Append the launches of bitonic networks for all items."""
        block = reductions.SORTED_AT_ONCE
        rows = []
        for part, size, entry in zip(group.parts, padded, entries, strict=True):
            blocks = -(-size // block)
            rows.append(PartRow(blocks * part.sizes[0], [blocks, entry, size], [], []))
        sort_block = reductions.emit_sort_block(group.number, self.dialect)
        sort_step = reductions.emit_sort_step(group.number, self.dialect)
        self._launch(sort_block, rows, extra, [0])
        length = 2 * block
        while length <= max(padded):
            bits, distance = length.bit_length() - 1, length // 2
            while distance >= block:
                self._launch(sort_step, rows, extra, [bits, distance])
                distance //= 2
            self._launch(sort_block, rows, extra, [bits])
            length *= 2

    # --- transforms -------------------------------------------------------------------------------

    def _transform(self, node: Transform) -> None:
        check_lengths(node.samples.shape)
        bands = [self.resolve(view) for view in node.bands]
        if not node.back and node.samples.buffer in self.mirrored:
            self._shifted(node, self.resolve(self.mirrored[node.samples.buffer].source), bands)
            return
        samples, dtype = self.resolve(node.samples), bands[0].dtype
        strategy, target = builder_target(self.dialect, self.limits, self.options)
        builder = GraphBuilder(strategy, target, self.arena, memory=self.scratch)
        stages = device_levels(node.tree, dtype)
        if node.shifts == 1:
            append_levels(builder, node.back, stages, samples, bands, self.options)
            self.launches += builder.launches
            return
        if node.back and self._unshifted(node, samples, bands):
            return
        if node.back:
            parts = self._all_shifts(samples, node.shifts)
            stages = tuple(_resized(stage, 1, node.shifts * samples.shape[1]) for stage in stages)
            append_levels(builder, True, stages, parts, bands, self.options)
            self.launches += builder.launches
            self._mean(parts, samples, len(node.tree.spec.axes))
            return
        if builder.shifted_level(samples, stages[0].tasks, bands):
            self.launches += builder.launches
            return
        nodes, axes = samples.shape[1], node.tree.spec.axes
        stages = tuple(_resized(stage, 0, 1) for stage in stages)
        for number, shift in enumerate(product((0, 1), repeat=len(axes))):
            moved = sum(s * samples.strides[axis] for s, axis in zip(shift, axes, strict=True))
            for item in range(samples.shape[0]):
                source = samples._replace(
                    shape=(1, *samples.shape[1:]), offset=samples.offset - moved + item * samples.strides[0]
                )
                targets = [
                    view._replace(
                        shape=(1, nodes, *view.shape[2:]),
                        offset=view.offset + item * view.strides[0] + number * nodes * view.strides[1],
                    )
                    for view in bands
                ]
                append_levels(builder, False, stages, source, targets, self.options)
        self.launches += builder.launches

    def _unshifted(self, node: Transform, samples: ArrayView, bands: Sequence[ArrayView]) -> bool:
        """Append one launch for the mean over the reconstructions of all shifts, or return False."""
        taps = self._filter_lengths(node)
        if taps is None:
            return False
        rows = unshifted_rows(taps[0], samples.itemsize, self.limits.shared)
        strides = [view.plane_strides(2, 3) for view in bands]
        if rows is None or samples.strides[3] != 1 or any(each is None for each in strides):
            return False
        tile = rows, COLUMNS
        if max(taps) <= MAX_MARCHING_TAPS and _band_reach(samples, bands) < NARROW:
            items, nodes, high, wide = samples.shape
            tile = marching_tile(high, wide, items * nodes, self.limits.units, MARCHING_COLUMNS)
            kernel = emit_marching_unshifted(samples.dtype, taps, tile[0], self.dialect)
        else:
            kernel = emit_unshifted(samples.dtype, taps, rows, self.dialect)
        filters = [f for wavelet in node.tree.spec.wavelets for f in (wavelet.rec_lo, wavelet.rec_hi)]
        self._shift_launch(kernel, filters, samples, bands, tile, True)
        return True

    def _shifted(self, node: Transform, source: ArrayView, bands: Sequence[ArrayView]) -> None:
        """Append one launch for the coefficients of all shifts of samples without mirrored ones."""
        taps = self._filter_lengths(node)
        rows = shifted_rows(taps[0], source.itemsize, self.limits.shared) if taps else None
        assert taps is not None
        assert rows is not None
        down, along = (BORDERS[mode] for mode in node.tree.spec.modes)
        tile = rows, BAND_COLUMNS
        reach = max(_band_reach(source, bands), source.shape[2] * source.strides[2])
        if max(taps) <= MAX_MARCHING_TAPS and reach < NARROW:
            high, wide = bands[0].shape[2:]
            planes = math.prod(source.shape[:2])
            tile = marching_tile(high, wide, planes, self.limits.units, MARCHING_ITEMS)
            kernel = emit_marching_shifted(source.dtype, taps, (down, along), tile[0], self.dialect)
        else:
            kernel = emit_shifted(source.dtype, taps, (down, along), rows, self.dialect)
        filters = [f for wavelet in node.tree.spec.wavelets for f in (wavelet.dec_lo, wavelet.dec_hi)]
        self._shift_launch(kernel, filters, source, bands, tile, False)

    def _shift_launch(
        self,
        kernel: Kernel,
        filters: Sequence[Sequence[float]],
        samples: ArrayView,
        bands: Sequence[ArrayView],
        tile: tuple[int, int],
        back: bool,
    ) -> None:
        """Append the launch of a kernel for all shifts."""
        weights = self.table_memory.add([tap for f in filters for tap in f], samples.dtype)
        items, nodes, *lengths = samples.shape
        downwards, across = (
            -(-n // size) for n, size in zip(lengths if back else bands[0].shape[2:], tile, strict=True)
        )
        arrays = {"x": samples, "weights": ArrayView(self.tables, (), (), samples.dtype, weights)}
        arrays |= dict(zip(("aa", "ad", "da", "dd"), bands, strict=True))
        values = [arrays[name].offset for name in kernel.arrays]
        for view in bands:
            strides = view.plane_strides(2, 3)
            assert strides is not None
            values += strides
        values += [*samples.strides[:3], *lengths, *bands[0].shape[2:], nodes, across, downwards]
        buffers = tuple(arrays[name].buffer for name in kernel.arrays)
        self.launches.append(Launch(kernel, items * nodes * across * downwards, buffers, tuple(values)))

    def _mirrored(self) -> dict[str, Move]:
        """Return the moves that put a mirrored sample before each line, for kernels that need no copy."""
        users: dict[str, list[Node]] = {}
        for node in self.graph.nodes:
            for name in {view.buffer for view in (*node.reads, *node.writes)}:
                users.setdefault(name, []).append(node)
        moves = {}
        for name, nodes in users.items():
            if len(nodes) != 2 or name in self.graph.outputs:
                continue
            move, node = nodes
            if not (isinstance(move, Move) and isinstance(node, Transform) and node.shifts > 1):
                continue
            counts = move.source.shape[2:]
            places = tuple((axis, (min(1, n - 1), *range(n))) for axis, n in enumerate(counts, 2))
            samples, taps = node.samples, self._filter_lengths(node)
            if (
                taps is not None
                and not node.back
                and move.places == places
                and (move.result.offset, samples.shape) == (0, move.source.shape)
                and all(
                    n == 1 or a == b
                    for n, a, b in zip(samples.shape, samples.strides, move.result.strides, strict=True)
                )
                and samples.offset == sum(move.result.strides[2:])
                and move.source.strides[3] == 1
                and all(mode in PLACED_MODES for mode in node.tree.spec.modes)
                and shifted_rows(taps[0], samples.itemsize, self.limits.shared) is not None
            ):
                moves[name] = move
        return moves

    def _filter_lengths(self, node: Transform) -> tuple[int, int] | None:
        """Return the taps of both axes of a level, if kernels for all shifts at once run it."""
        spec = node.tree.spec
        plain = self.options.strategy == self.options.scheme == self.options.method == "auto"
        if not plain or spec.axes != (2, 3) or spec.lifted or "periodization" in spec.modes:
            return None
        down, along = (wavelet.rec_len for wavelet in spec.wavelets)
        return (down, along) if max(down, along) <= MAX_SHIFTED_TAPS and not (down | along) % 2 else None

    def _all_shifts(self, samples: ArrayView, shifts: int) -> ArrayView:
        items, nodes, *lengths = samples.shape
        shape = (items, shifts * nodes, *lengths)
        pad = PAD_ELEMENTS if len(lengths) == 2 and lengths[-1] >= MIN_PADDED_COLUMNS else 1
        padded = (*shape[:-1], -(-shape[-1] // pad) * pad)
        return self.scratch(padded, samples.dtype)._replace(shape=shape)

    def _mean(self, parts: ArrayView, result: ArrayView, axes: int) -> None:
        """Append the mean over all shifts that have a sample."""
        count, nodes = math.prod(result.shape), result.shape[1]
        kernel = emit_mean(result.dtype, axes, math.prod(parts.shape) >= NARROW, self.dialect)
        values = [count, nodes, parts.offset, result.offset, parts.strides[1], *result.strides[:2]]
        for numbers in zip(result.shape[2:], parts.strides[2:], result.strides[2:], strict=True):
            values += numbers
        groups = -(-count // elements_per_group(False))
        self.launches.append(Launch(kernel, groups, (parts.buffer, result.buffer), tuple(values)))


def _band_reach(samples: ArrayView, bands: Sequence[ArrayView]) -> int:
    """Return the number of elements between the first and the last coefficient of all shifts of an item."""
    return max(4 * samples.shape[1] * view.strides[1] for view in bands)


def _resized(stage: DeviceLevel, axis: int, length: int) -> DeviceLevel:
    """Return a level for arrays of another length along an axis that is not transformed."""

    def resized(shape: Shape) -> Shape:
        return (*shape[:axis], length, *shape[axis + 1 :])

    shapes = {key: resized(shape) for key, shape in stage.shapes.items()}
    return replace(stage, shape=resized(stage.shape), shapes=shapes)


def _running(counts: Sequence[int]) -> tuple[list[int], int]:
    """Return the sum of all counts before each, and of all."""
    sums = [0, *accumulate(counts)]
    return sums[:-1], sums[-1]


def _is_contiguous(view: ArrayView) -> bool:
    steps = zip(view.shape, view.strides, contiguous(view.shape), strict=True)
    return all(n == 1 or have == want for n, have, want in steps)


def _row_pitches(graph: Graph, fixed: set[str]) -> dict[str, tuple[int, int]]:
    """Return for buffers of transforms the length of their rows, and a longer one for access in wide pieces.

    Those of the caller stay as they are, as do buffers with views that go on from row to row.
    """
    pitches: dict[str, tuple[int, int]] = {}
    for node in graph.nodes:
        if not isinstance(node, Transform):
            continue
        for view in (node.samples, *node.bands):
            buffer = graph.buffers[view.buffer]
            columns = buffer.shape[-1]
            if buffer.name not in fixed and len(buffer.shape) > 1 and columns >= MIN_PADDED_COLUMNS:
                pitches[buffer.name] = columns, -(-columns // PAD_ELEMENTS) * PAD_ELEMENTS
    for node in graph.nodes:
        for view in (*node.reads, *node.writes):
            if view.buffer in pitches and _with_pitch(view, *pitches[view.buffer]) is None:
                del pitches[view.buffer]
    return pitches


def _with_pitch(view: ArrayView, columns: int, pitch: int) -> ArrayView | None:
    """Return a view of a buffer with rows of ``columns`` for one whose rows are ``pitch`` apart, or None."""
    row, first = divmod(view.offset, columns)
    low = high = first
    strides = []
    for n, step in zip(view.shape, view.strides, strict=True):
        if n > 1 and step % columns:  # along a row
            low, high = low + min(0, step * (n - 1)), high + max(0, step * (n - 1))
            strides.append(step)
        else:
            strides.append(step // columns * pitch if n > 1 else 0)
    if low < 0 or high >= columns:
        return None
    return view._replace(strides=tuple(strides), offset=row * pitch + first)


def _check_dtype(dtype: str) -> None:
    if dtype not in DTYPES:
        raise ArgumentError(f"kernels cannot read or write arrays of dtype {dtype}; convert them on the host")
