"""Checkpoints: approximations of a graph at which its work on a large image can be divided.

Results depend on samples far away through the coarse levels. If the approximations of each level are stored,
on the way down and on the way back, what follows needs them near a place, and the image only very near.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from .expressions import Load
from .graph import Graph, Node, Pointwise, Transform

__all__ = ["CHECKPOINT", "checkpoint_buffers", "computing", "live_bytes", "reading"]

Shape = tuple[int, ...]
TRANSFORM_COPIES = 2
CHECKPOINT = "checkpoint"  # The output of a graph that computes one.


def checkpoint_buffers(graph: Graph, levels: Mapping[Shape, int]) -> list[str]:
    """Return the names of the approximations between levels, in the order in which they are computed.

    Parameters
    ----------
    graph : Graph
    levels : mapping of tuple of int to int
        The level of each array, by its lengths along the spatial axes, the last ones.
    """
    ndim, coarsest = len(next(iter(levels))), max(levels.values())
    names = []
    for node in graph.with_known_reductions(0).nodes:
        if isinstance(node, Transform):
            name = _approximation(node)
            level = levels.get(graph.buffers[name].shape[-ndim:], 0)
            if node.tree.levels == 1 and 0 < level < coarsest:
                names.append(name)
    return names


def _approximation(node: Transform) -> str:
    """Return the buffer of the approximation that a transform computes."""
    return str((node.samples if node.back else node.bands[0]).buffer)


def computing(graph: Graph, name: str) -> Graph:
    """Return the graph that computes a checkpoint."""
    source = graph.buffers[name]
    result = replace(source, name=CHECKPOINT)
    node = Pointwise((result.view,), (Load(source.view),))
    buffers, outputs = graph.buffers | {CHECKPOINT: result}, {CHECKPOINT: result}
    nodes, phases = [*graph.nodes, node], [*graph.phases, graph.phase]
    return Graph(graph.inputs, outputs, buffers, nodes, phases).with_known_reductions(0)


def reading(graph: Graph, names: Sequence[str]) -> Graph:
    """Return the graph with checkpoints as inputs, without inputs that are not needed."""
    buffers = dict(graph.buffers)

    def unread(node: Node) -> Node:
        """Let a node that computes a checkpoint write it where nobody reads."""
        if not isinstance(node, Transform) or (name := _approximation(node)) not in names:
            return node
        buffers[f"{name}'"] = replace(buffers[name], name=f"{name}'")
        if node.back:
            return replace(node, samples=node.samples._replace(buffer=f"{name}'"))
        return replace(node, bands=(node.bands[0]._replace(buffer=f"{name}'"), *node.bands[1:]))

    nodes = [unread(node) for node in graph.nodes]
    inputs = graph.inputs | {name: graph.buffers[name] for name in names if name in graph.buffers}
    result = Graph(inputs, graph.outputs, buffers, nodes, graph.phases).with_known_reductions(0)
    used = {view.buffer for node in result.nodes for view in node.reads}
    needed = {name: buffer for name, buffer in inputs.items() if name in used}
    return Graph(needed, result.outputs, result.buffers, result.nodes, result.phases)


def live_bytes(graph: Graph) -> int:
    """Return about how many bytes a run of the graph takes: those of arrays that are needed at a time."""
    graph = graph.scheduled()
    last = {view.buffer: number for number, node in enumerate(graph.nodes) for view in node.reads}
    last |= dict.fromkeys(graph.outputs, len(graph.nodes))
    sizes = {
        name: math.prod(buffer.shape) * np.dtype(buffer.dtype).itemsize
        for name, buffer in graph.buffers.items()
    }
    live = set(graph.inputs)
    most = 0
    for number, node in enumerate(graph.nodes):
        live |= {view.buffer for view in node.writes}
        nbytes = sum(sizes[name] for name in live)
        if isinstance(node, Transform):  # Its levels and axes have arrays between them.
            nbytes += TRANSFORM_COPIES * sum(sizes[view.buffer] for view in node.bands)
        most = max(most, nbytes)
        live -= {name for name in live if last.get(name, -1) <= number}
    return most
