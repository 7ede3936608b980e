"""Graphs: the programs of whole pipelines, between what filters describe and what engines compile.

A graph is a list of nodes over named buffers. There are six kinds of nodes:

    Transform    one or more levels of a wavelet transform, forward or back
    Pointwise    an expression at each place
    Stencil      an expression of the weighted sum over a window around each place
    Reduce       one number for each item: a sum, a maximum, a median, a threshold
    Move         samples taken from other places
    Collaborate  groups of similar blocks, filtered together

Arrays have their items (images of a batch, channels) along the first axis, spatial axes last, and shifts in
between. Views name their buffer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from ..arrays import COMPLEX, ArrayView
from ..errors import ArgumentError
from .collaborative import CollaborativeProfile
from .expressions import Constant, Expression, Load, WindowSum, loads
from .schedule import node_depths
from .spec import BandTree

__all__ = [
    "REDUCTIONS",
    "Buffer",
    "Collaborate",
    "Graph",
    "Move",
    "Node",
    "Pointwise",
    "Reduce",
    "Stencil",
    "Transform",
]

REDUCTIONS = ("sum", "max", "median", "sure")


@dataclass(frozen=True)
class Buffer:
    """A named block of memory, with the shape and dtype that its first user gave it."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def view(self) -> ArrayView:
        """All of the buffer, in C order."""
        return ArrayView.contiguous(self.name, self.shape, self.dtype)


@dataclass(frozen=True, eq=False)
class Transform:
    """Levels of a wavelet transform.

    Parameters
    ----------
    tree : BandTree
        The transform, and the shapes of its samples and bands.
    back : bool
        Whether samples are computed from bands.
    samples : ArrayView
    bands : tuple of ArrayView
        In flat order: the approximation, then details by level, coarsest first, in the order of their keys.
    shifts : int, default 1
        Number of shifts: 1, or 2 along each axis for a tree of one level. Axis 1 of the bands then has the
        bands of all shifts, one shift after the other. The line of a shift by 1 begins one sample earlier,
        with a sample that is in memory before the first one, and ends one sample earlier. The samples of
        the inverse are the mean over all shifts that have the sample.
    """

    tree: BandTree
    back: bool
    samples: ArrayView
    bands: tuple[ArrayView, ...]
    shifts: int = 1

    @property
    def reads(self) -> tuple[ArrayView, ...]:
        """What is read."""
        return self.bands if self.back else (self.samples,)

    @property
    def writes(self) -> tuple[ArrayView, ...]:
        """What is written."""
        return (self.samples,) if self.back else self.bands


@dataclass(frozen=True, eq=False)
class Pointwise:
    """Expressions of samples at the same place.

    Parameters
    ----------
    results : tuple of ArrayView
    values : tuple of Expression
        One for each result, in which loads are broadcast to the shape of the result.
    """

    results: tuple[ArrayView, ...]
    values: tuple[Expression, ...]

    @cached_property
    def reads(self) -> tuple[ArrayView, ...]:
        """What is read."""
        return tuple(load.view for load in loads(*self.values))

    @property
    def writes(self) -> tuple[ArrayView, ...]:
        """What is written."""
        return self.results


@dataclass(frozen=True, eq=False)
class Stencil:
    """Expressions of the weighted sum over a window around each place.

    Parameters
    ----------
    taps : tuple of tuple of float
        Weights along each of the last axes, an odd number of them. The window is their product. Borders are
        mirrored, repeating the last sample.
    results : tuple of ArrayView
    sources : tuple of Expression
        What is summed, for each result.
    values : tuple of Expression
        The result, in which :data:`WINDOW` is the sum.
    guard : ArrayView, optional
        One number. If it is zero, nobody uses the results, and engines may skip the node.
    """

    taps: tuple[tuple[float, ...], ...]
    results: tuple[ArrayView, ...]
    sources: tuple[Expression, ...]
    values: tuple[Expression, ...]
    guard: ArrayView | None = None

    @cached_property
    def reads(self) -> tuple[ArrayView, ...]:
        """What is read."""
        guards = () if self.guard is None else (self.guard,)
        return (*guards, *(load.view for load in loads(*self.sources, *self.values)))

    @property
    def writes(self) -> tuple[ArrayView, ...]:
        """What is written."""
        return self.results


@dataclass(frozen=True, eq=False)
class Reduce:
    """One number for each item of several arrays.

    Parameters
    ----------
    kind : {"sum", "max", "median", "sure"}
        ``median`` is that of the finite magnitudes above a limit, or 0 if there are none. ``sure`` is the
        threshold, among the magnitudes up to a limit, with the least of Stein's risk estimate for noise of
        1; it is 0 where no threshold is better than none.
    shapes : tuple of tuple of int
        The shape of each array; items are along its first axis.
    results : tuple of ArrayView
        Of shape ``(items,)``, for each array.
    sources : tuple of Expression
        The samples of each array.
    limits : tuple of Expression
        For medians and SURE: the limit for each item of each array.
    region : tuple of (int, int), optional
        The part of the image, along each spatial axis, that the samples are computed from, as if it were an
        image of its own; all of the image if None. Results are then those of this part alone.
    """

    kind: str
    shapes: tuple[tuple[int, ...], ...]
    results: tuple[ArrayView, ...]
    sources: tuple[Expression, ...]
    limits: tuple[Expression, ...] = ()
    region: tuple[tuple[int, int], ...] | None = None

    @cached_property
    def reads(self) -> tuple[ArrayView, ...]:
        """What is read."""
        return tuple(load.view for load in loads(*self.sources, *self.limits))

    @property
    def writes(self) -> tuple[ArrayView, ...]:
        """What is written."""
        return self.results


@dataclass(frozen=True, eq=False)
class Move:
    """Samples taken from other places along some axes.

    Parameters
    ----------
    source, result : ArrayView
        Of the same shape, except along axes with places.
    places : tuple of (int, tuple of int)
        Pairs of an axis and the place in the source for each place in the result.
    """

    source: ArrayView
    result: ArrayView
    places: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def reads(self) -> tuple[ArrayView, ...]:
        """What is read."""
        return (self.source,)

    @property
    def writes(self) -> tuple[ArrayView, ...]:
        """What is written."""
        return (self.result,)


@dataclass(frozen=True, eq=False)
class Collaborate:
    """Images or volumes whose similar blocks are filtered together; see :mod:`.collaborative`.

    Parameters
    ----------
    profile : CollaborativeProfile
    channels : int
        Number of channels of an image, whose blocks are matched in the first one: items are the first
        channel of all images, then the second one, and so on.
    source : ArrayView
        Of shape ``(items, rows, columns)``, or ``(items, layers, rows, columns)`` for volumes.
    noise : ArrayView
        Standard deviation of the noise of each item. Items without noise stay as they are.
    results : tuple of ArrayView
        One, of the shape of the source.
    """

    profile: CollaborativeProfile
    channels: int
    source: ArrayView
    noise: ArrayView
    results: tuple[ArrayView, ...]

    @property
    def reads(self) -> tuple[ArrayView, ...]:
        """What is read."""
        return self.source, self.noise

    @property
    def writes(self) -> tuple[ArrayView, ...]:
        """What is written."""
        return self.results


Node = Transform | Pointwise | Stencil | Reduce | Move | Collaborate


@dataclass
class Graph:
    """A program of nodes.

    Attributes
    ----------
    inputs, outputs : dict of str to Buffer
        What the caller passes, and what it gets.
    buffers : dict of str to Buffer
        All buffers by name, those of the caller first.
    nodes : list of Node
        In the order in which they run.
    phases : list of str
        What each node belongs to: ``"forward"``, ``"filter"`` or ``"inverse"``.
    extents : dict of tuple to int
        For the graph of a window of an image: how many samples the image has at each level, by the lengths of
        the window along its last axes. Statistics are those of the image.
    blocks : int
        For the graph of one of several blocks of equal size, such as shifts: how many there are. Statistics
        are those of all of them.
    """

    inputs: dict[str, Buffer] = field(default_factory=dict)
    outputs: dict[str, Buffer] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    phase: str = "filter"
    extents: dict[tuple[int, ...], int] = field(default_factory=dict)
    blocks: int = 1
    _written: set[str] = field(default_factory=set)

    def add_input(self, name: str, shape: tuple[int, ...], dtype: str) -> ArrayView:
        """Add an array that the caller passes, and return its view."""
        self.inputs[name] = buffer = self._add(name, shape, dtype)
        return buffer.view

    def add_output(self, name: str, shape: tuple[int, ...], dtype: str) -> ArrayView:
        """Add an array that the caller gets, and return its view."""
        self.outputs[name] = buffer = self._add(name, shape, dtype)
        return buffer.view

    def allocate(self, shape: tuple[int, ...], dtype: str) -> ArrayView:
        """Add an array between nodes, and return its view."""
        return self._add(f"t{len(self.buffers)}", shape, dtype).view

    def _add(self, name: str, shape: tuple[int, ...], dtype: str) -> Buffer:
        if name in self.buffers:
            raise ValueError(f"the graph has a buffer {name!r} already")
        self.buffers[name] = buffer = Buffer(name, tuple(shape), dtype)
        return buffer

    def append(self, node: Node) -> None:
        """Add a node, after checking that its arrays are in buffers and what it reads was written."""
        for view in (*node.reads, *node.writes):
            self._check(view)
        for view in node.reads:
            if view.buffer not in self._written and view.buffer not in self.inputs:
                raise ValueError(f"{type(node).__name__} reads {view.buffer!r}, which no node has written")
        for view in node.writes:
            if view.buffer in self.inputs:
                raise ValueError(f"{type(node).__name__} writes the input {view.buffer!r}")
        self._written.update(view.buffer for view in node.writes)
        self.nodes.append(node)
        self.phases.append(self.phase)

    def item_samples(self, shape: tuple[int, ...]) -> int:
        """Return the number of samples of one item of an array, or of what it is a window or a block of."""
        for axes in range(1, len(shape)):
            if shape[axes:] in self.extents:
                return math.prod(shape[1:axes]) * self.extents[shape[axes:]]
        return self.blocks * math.prod(shape[1:])

    def reductions(self) -> list[Reduce]:
        """Return the nodes that compute statistics that outputs depend on, in the order in which they run."""
        return [node for node in self._without_unused().nodes if isinstance(node, Reduce)]

    def with_inputs(self, names: Iterable[str]) -> Graph:
        """Return the graph with some of its buffers as inputs, instead of the nodes that compute them."""
        graph, names = self._without_unused(), set(names)
        inputs = self.inputs | {name: graph.buffers[name] for name in graph.buffers if name in names}
        kept = [k for k, node in enumerate(graph.nodes) if names.isdisjoint(v.buffer for v in node.writes)]
        nodes, phases = [graph.nodes[number] for number in kept], [graph.phases[number] for number in kept]
        written = {view.buffer for node in nodes for view in node.writes}
        return Graph(inputs, self.outputs, graph.buffers, nodes, phases, _written=written)._without_unused()

    def with_outputs(self, values: Mapping[str, tuple[tuple[int, ...], str, Expression]]) -> Graph:
        """Return the graph with other outputs: for each name a shape, a dtype and an expression."""
        graph = replace(self, outputs={}, buffers=dict(self.buffers), nodes=list(self.nodes))
        graph.phases = list(graph.phases)
        graph._written = {view.buffer for node in graph.nodes for view in node.writes}
        for name, (shape, dtype, value) in values.items():
            graph.append(Pointwise((graph.add_output(name, shape, dtype),), (value,)))
        return graph._without_unused()

    def with_known_reductions(self, count: int) -> Graph:
        """Return the graph with the results of the first statistics as inputs, named as their buffers."""
        return self.with_inputs(view.buffer for node in self.reductions()[:count] for view in node.writes)

    def reduction_sources(self, number: int) -> Graph:
        """Return the graph of what a statistic is made of, with those before it as inputs.

        Its outputs are ``source0``, ``limit0`` and so on, for each array of the node.
        """
        node, values = self.reductions()[number], {}
        for j, (shape, result) in enumerate(zip(node.shapes, node.results, strict=True)):
            values[f"source{j}"] = shape, result.dtype, node.sources[j]
            if node.limits:
                values[f"limit{j}"] = result.shape, result.dtype, node.limits[j]
        return self.with_known_reductions(number).with_outputs(values)

    def scheduled(self) -> Graph:
        """Return the graph with its nodes in the order of depths, and joined if they can run together.

        What is only copied to an output is computed there, unless it can be computed together with others.
        """
        # Transforms and moves are not joined with others.
        graph = self._without_unused()._without_copies(lambda node: isinstance(node, (Transform, Move)))
        return graph._joined()._without_copies(lambda node: len(node.writes) == 1)

    def _without_unused(self) -> Graph:
        """Return the graph without nodes whose results nothing needs."""
        needed = set(self.outputs)
        kept = []
        for number in reversed(range(len(self.nodes))):
            node = self.nodes[number]
            if any(view.buffer in needed for view in node.writes):
                needed.update(view.buffer for view in node.reads)
                kept.append(number)
        return self._with_nodes(reversed(kept), {})

    def _with_nodes(self, numbers: Iterable[int], names: Mapping[str, str]) -> Graph:
        """Return the graph with some of its nodes, which write to renamed buffers."""
        numbers = list(numbers)
        nodes = [_renamed(self.nodes[number], names) for number in numbers]
        written = {view.buffer for node in nodes for view in node.writes}
        kept = written.union(self.inputs, self.outputs)
        buffers = {name: buffer for name, buffer in self.buffers.items() if name in kept}
        phases = [self.phases[number] for number in numbers]
        return Graph(self.inputs, self.outputs, buffers, nodes, phases)

    def _joined(self) -> Graph:
        """Return the graph with its nodes in the order of depths, and joined if they can run together."""
        numbers = {name for name, buffer in self.buffers.items() if len(buffer.shape) < 2}
        collaborations = [k for k, node in enumerate(self.nodes) if isinstance(node, Collaborate)]
        depths = node_depths(self.nodes, self.inputs, numbers, collaborations)
        groups: dict[tuple[Any, ...], list[Node]] = {}
        for depth, node, phase in zip(depths, self.nodes, self.phases, strict=True):
            groups.setdefault((depth, phase, *_group_key(node)), []).append(node)
        result = Graph(self.inputs, self.outputs, self.buffers)
        for key in sorted(groups, key=lambda key: int(key[0])):
            result.nodes.append(_joined(groups[key]))
            result.phases.append(key[1])
        return result

    def _without_copies(self, direct: Callable[[Node], bool]) -> Graph:
        """Return the graph without copies to outputs, if the nodes for which ``direct`` holds write there."""
        names: dict[str, str] = {}
        kept = []
        for number, node in enumerate(self.nodes):
            copied = self._copied(node, direct)
            names |= copied
            if not copied:
                kept.append(number)
        return self._with_nodes(kept, names)

    def _copied(self, node: Node, direct: Callable[[Node], bool]) -> dict[str, str]:
        """Return the names of the array that a node copies to an output and of the output, if it does."""
        if not isinstance(node, Pointwise) or len(node.results) != 1:
            return {}
        (view,), (value,) = node.results, node.values
        if not isinstance(value, Load) or value.finer:
            return {}
        source, target = self.buffers[value.view.buffer], self.buffers[view.buffer]
        complete = (
            source.name not in self.inputs
            and source.name not in self.outputs
            and source.dtype == target.dtype
            and value.view.offset == view.offset == 0
            and math.prod(source.shape) == math.prod(view.shape) == math.prod(target.shape)
            and _steps(value.view) == _steps(view) == _steps(target.view)
        )
        readers = [other for other in self.nodes if any(v.buffer == source.name for v in other.reads)]
        writers = [other for other in self.nodes if any(v.buffer == source.name for v in other.writes)]
        if not (complete and all(map(direct, writers)) and readers == [node]):
            return {}
        return {source.name: target.name}

    def _check(self, view: ArrayView) -> None:
        buffer = self.buffers.get(view.buffer)
        if buffer is None:
            raise ValueError(f"no buffer {view.buffer!r}; the graph has {', '.join(self.buffers)}")
        low = view.offset + sum(min(0, s * (n - 1)) for n, s in zip(view.shape, view.strides, strict=True))
        high = view.offset + sum(max(0, s * (n - 1)) for n, s in zip(view.shape, view.strides, strict=True))
        if view.dtype in COMPLEX:
            raise ArgumentError(
                "nodes read and write the parts of complex numbers, as pairs;"
                f" got {view.dtype} in {buffer.name!r}"
            )
        whole = buffer.view.as_pairs()
        if view.dtype != whole.dtype or low < 0 or high >= max(1, math.prod(whole.shape)):
            raise ValueError(f"a view of shape {view.shape} and {view.dtype} exceeds {buffer}")

    def __str__(self) -> str:
        lines = [f"{buffer.name}: {_kind(buffer)}" for buffer in self.inputs.values()]
        for node in self.nodes:
            lines += _described(node)
        lines += [f"return {buffer.name}: {_kind(buffer)}" for buffer in self.outputs.values()]
        return "\n".join(lines)


def _steps(view: ArrayView) -> list[tuple[int, int]]:
    """Return lengths and strides along axes of more than one sample."""
    return [pair for pair in zip(view.shape, view.strides, strict=True) if pair[0] != 1]


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return a node that writes to renamed buffers."""
    if not any(view.buffer in names for view in node.writes):
        return node

    def renamed(view: ArrayView) -> ArrayView:
        return view._replace(buffer=names.get(view.buffer, view.buffer))

    if isinstance(node, Move):
        return replace(node, result=renamed(node.result))
    if not isinstance(node, Transform):
        return replace(node, results=tuple(map(renamed, node.results)))
    if node.back:
        return replace(node, samples=renamed(node.samples))
    return replace(node, bands=tuple(map(renamed, node.bands)))


def _group_key(node: Node) -> tuple[Any, ...]:
    """Return what nodes have in common that can run together."""
    if isinstance(node, Pointwise):
        return (Pointwise,)
    if isinstance(node, Stencil):
        return (Stencil, node.taps, node.guard)
    if isinstance(node, Reduce):
        return (Reduce, node.kind, node.region)
    return (type(node), id(node))


def _joined(nodes: list[Node]) -> Node:
    """Return one node that does what several nodes of one kind do."""
    first = nodes[0]
    if len(nodes) == 1:
        return first
    changes: dict[str, Any] = {
        each.name: tuple(chain.from_iterable(getattr(node, each.name) for node in nodes))
        for each in fields(first)
        if each.name not in ("taps", "kind", "guard", "region")
    }
    return replace(first, **changes)


def _kind(array: Buffer | ArrayView) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def _described(node: Node) -> Iterator[str]:
    """Describe a node in one line for each result."""
    targets = ", ".join(f"{view.buffer}: {_kind(view)}" for view in node.writes)
    if isinstance(node, Transform):
        spec = node.tree.spec
        names = ", ".join(dict.fromkeys(wavelet.name for wavelet in spec.wavelets))
        shifts = "" if node.shifts == 1 else f", {node.shifts} shifts"
        sources = ", ".join(view.buffer for view in node.reads)
        verb = "inverse" if node.back else "forward"
        yield f"{targets} = {verb}({sources}; {names}, {node.tree.levels} level(s){shifts})"
    elif isinstance(node, Move):
        yield f"{targets} = move({node.source.buffer})"
    elif isinstance(node, Collaborate):
        yield f"{targets} = collaborate({node.source.buffer}, {node.noise.buffer})"
    else:
        for k, view in enumerate(node.results):
            target = f"{view.buffer}: {_kind(view)}"
            if isinstance(node, Pointwise):
                yield f"{target} = {printed(node.values[k])}"
            elif isinstance(node, Stencil):
                size = "×".join(str(len(taps)) for taps in node.taps)
                source = printed(node.sources[k])
                yield f"{target} = {printed(node.values[k])} with w = window {size} of {source}"
            else:
                limit = f", {printed(node.limits[k])}" if node.limits else ""
                yield f"{target} = {node.kind}({printed(node.sources[k])}{limit})"


SIGNS = {"add": "+", "subtract": "-", "multiply": "·", "divide": "/", "less": "<", "greater": ">"}


def printed(expression: Expression) -> str:
    """Return an expression as people write it."""
    if isinstance(expression, Constant):
        return f"{expression.value:g}"
    if isinstance(expression, Load):
        return f"{expression.view.buffer}↓" if expression.finer else str(expression.view.buffer)
    if isinstance(expression, WindowSum):
        return "w"
    arguments = [printed(part) for part in expression.arguments]
    sign = SIGNS.get(expression.operation)
    return f"({f' {sign} '.join(arguments)})" if sign else f"{expression.operation}({', '.join(arguments)})"
