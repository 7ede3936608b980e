"""Programs of blocks that run for one item after the other, in memory for one of them.

Items, the planes of images and channels, depend on each other by a few numbers only, such as their noise.
These numbers are computed for all items first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import ArrayView
from ..engines.cpu.graphs import CpuGraph
from ..lowering.expressions import Expression, Load, rewritten
from ..lowering.graph import Buffer, Collaborate, Graph, Move, Node, Pointwise, Reduce, Stencil, Transform
from ..lowering.spec import BandTree

__all__ = ["ItemProgram"]

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
Writer = Callable[[Array], None]
MIN_SAMPLES = 1 << 20  # Of an item: smaller ones are computed at once.


class _AcrossItemsError(Exception):
    """A node reads or writes several items at a time."""


class ItemProgram:
    """A program that is run for each item, or for all at once if they are small or depend on each other.

    Parameters
    ----------
    graph : Graph
        With the input ``samples``.
    inside : tuple of str
        Inputs and outputs that may be in the memory of a run; see :class:`.CpuGraph`.

    Attributes
    ----------
    items : list of slice
        The items of each run.
    """

    def __init__(self, graph: Graph, inside: tuple[str, ...]) -> None:
        count, *shape = graph.inputs["samples"].shape
        self.items, self._numbers = [slice(None)], None
        self._per_item: set[str] = set()
        if count > 1 and math.prod(shape) >= MIN_SAMPLES:
            views = _numbers(graph, count)
            try:
                single = _of_item(graph.with_inputs(views), count)
            except _AcrossItemsError:
                pass
            else:
                numbers = {
                    f"{name}.number": (view.shape, view.dtype, Load(view))
                    for name, view in views.items()
                    if name in single.inputs
                }
                self._numbers = CpuGraph(graph.with_outputs(numbers)) if numbers else None
                self._per_item = set(single.inputs)
                self.items, graph = [slice(k, k + 1) for k in range(count)], single
        read = {"samples"}.union(view.buffer for node in graph.nodes for view in node.reads)
        inputs = {name: buffer for name, buffer in graph.inputs.items() if name in read}
        self._program = CpuGraph(replace(graph, inputs=inputs), inside)

    @property
    def nbytes(self) -> int:
        """The bytes that a run takes besides its inputs."""
        return self._program.nbytes

    def prepared(self, known: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the inputs with the numbers that all items need."""
        if self._numbers is None:
            return known
        numbers = self._numbers.run(known)
        return {**known, **{name.removesuffix(".number"): array for name, array in numbers.items()}}

    def run(
        self,
        known: Mapping[str, Any],
        item: slice,
        samples: Array | Writer,
        seconds: dict[str, float] | None,
        outputs: Arrays | None = None,
    ) -> Arrays:
        """Return the outputs for an item with these samples, given prepared inputs of all items."""
        inputs = {name: known[name][item] if name in self._per_item else known[name] for name in known}
        return self._program.run({**inputs, "samples": samples}, seconds, outputs)


def _numbers(graph: Graph, count: int) -> dict[str, ArrayView]:
    """Return the arrays of one number for each item that are computed from such arrays alone, by name."""
    known = {name for name, buffer in graph.inputs.items() if math.prod(buffer.shape) <= count}
    views: dict[str, ArrayView] = {}
    for node in graph.nodes:
        is_small = all(math.prod(graph.buffers[view.buffer].shape) <= count for view in node.writes)
        if is_small and all(view.buffer in known for view in node.reads):
            for view in node.writes:
                known.add(view.buffer)
                views[view.buffer] = graph.buffers[view.buffer].view
    return {name: view for name, view in views.items() if name not in graph.outputs}


def _of_item(graph: Graph, count: int) -> Graph:
    """Return the graph for one item."""

    def viewed(view: ArrayView) -> ArrayView:
        buffer = graph.buffers[view.buffer]
        size = math.prod(buffer.shape[1:])
        of_all = buffer.shape[:1] == view.shape[:1] == (count,)
        if not of_all or view.strides[0] != size or not 0 <= view.offset < size:
            raise _AcrossItemsError
        return view._replace(shape=(1, *view.shape[1:]))

    def expression(value: Expression) -> Expression:
        return rewritten(value, lambda load: Load(viewed(load.view), load.finer, load.offset))

    def of_item(node: Node) -> Node:
        if isinstance(node, Transform):
            tree = node.tree
            single = BandTree.of_samples(tree.spec, (1, *tree.sample_shapes[0][1:]), tree.levels)
            return replace(
                node, tree=single, samples=viewed(node.samples), bands=tuple(map(viewed, node.bands))
            )
        if isinstance(node, Move):
            return replace(node, source=viewed(node.source), result=viewed(node.result))
        if isinstance(node, Collaborate):
            raise _AcrossItemsError
        results = tuple(map(viewed, node.results))
        if isinstance(node, Pointwise):
            return replace(node, results=results, values=tuple(map(expression, node.values)))
        sources = tuple(map(expression, node.sources))
        if isinstance(node, Stencil):
            guard = None if node.guard is None else viewed(node.guard)
            values = tuple(map(expression, node.values))
            return replace(node, results=results, sources=sources, values=values, guard=guard)
        assert isinstance(node, Reduce)
        shapes, limits = tuple((1, *shape[1:]) for shape in node.shapes), tuple(map(expression, node.limits))
        return replace(node, shapes=shapes, results=results, sources=sources, limits=limits)

    nodes = [of_item(node) for node in graph.nodes]
    read = {view.buffer for node in graph.nodes for view in node.reads}

    def single_buffers(buffers: Mapping[str, Buffer]) -> dict[str, Buffer]:
        kept = {name: buffer for name, buffer in buffers.items() if buffer.shape[:1] == (count,)}
        return {name: replace(buffer, shape=(1, *buffer.shape[1:])) for name, buffer in kept.items()}

    inputs = single_buffers({name: buffer for name, buffer in graph.inputs.items() if name in read})
    outputs, buffers = single_buffers(graph.outputs), single_buffers(graph.buffers)
    return Graph(inputs, outputs, buffers, nodes, list(graph.phases), blocks=graph.blocks)
