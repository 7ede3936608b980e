"""Graphs as tasks: node by node, each by the module that has the steps of its kind.

Graph ──scheduled──▶ nodes ──lower_graph──▶ GraphTasks: steps of kernel calls, places of buffers
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

from ...arrays import ArrayView
from ...lowering.expressions import Expression, Load
from ...lowering.graph import Collaborate, Graph, Move, Node, Pointwise, Reduce, Stencil, Transform
from .moves import add_move
from .reductions import add_reduce
from .stencils import add_stencil
from .tasks import GraphTasks
from .transforms import add_transform

__all__ = ["lower_graph"]

MIN_GROUP = 1 << 21  # Samples of results of a node that are computed in one step.

LOWERINGS: dict[type, Callable[[GraphTasks, Any], None]] = {
    Transform: add_transform,
    Pointwise: GraphTasks.add_pointwise,
    Stencil: add_stencil,
    Reduce: add_reduce,
    Move: add_move,
    Collaborate: GraphTasks.add_function,
}


def lower_graph(graph: Graph, inside: Collection[str] = ()) -> GraphTasks:
    """Return the tasks of a graph; some inputs and outputs may be among the arrays between nodes."""
    scheduled, aliases = _without_copies(graph.scheduled())
    tasks = GraphTasks(scheduled, aliases)
    for node, phase in zip(scheduled.nodes, scheduled.phases, strict=True):
        tasks.phase = phase
        for part in _divided(node):
            tasks.add_node(part, LOWERINGS[type(part)])
    tasks.lay_out(inside)
    return tasks


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
