"""Graphs in plain NumPy: the meaning of every node, and the oracle of what other engines compile."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...lowering.compute import compute
from ...lowering.expressions import strided
from ...lowering.graph import Graph, Node, Transform
from . import ReferenceExecutable

__all__ = ["ReferenceGraph"]

Array = NDArray[Any]
Buffers = dict[str, Array]


class ReferenceGraph:
    """A graph that runs node by node.

    Parameters
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph.scheduled()

    def run(self, arrays: Mapping[str, Array], seconds: dict[str, float] | None = None) -> dict[str, Array]:
        """Return the outputs by name, given the inputs by name; add the time of each phase to ``seconds``."""
        buffers: Buffers = {}
        for buffer in self.graph.buffers.values():
            given = arrays.get(buffer.name)
            if given is None:
                buffers[buffer.name] = np.zeros(max(1, int(np.prod(buffer.shape))), buffer.dtype)
            else:
                buffers[buffer.name] = np.ascontiguousarray(given, buffer.dtype).reshape(-1)
        for node, phase in zip(self.graph.nodes, self.graph.phases, strict=True):
            begin = time.perf_counter()
            run_node(node, buffers)
            if seconds is not None:
                seconds[phase] += time.perf_counter() - begin
        return {name: strided(buffers[name], buffer.view) for name, buffer in self.graph.outputs.items()}


def run_node(node: Node, buffers: Buffers) -> None:
    """Compute what a node writes."""
    if isinstance(node, Transform):
        _transform(node, buffers)
    else:
        compute(node, buffers)


def _transform(node: Transform, buffers: Buffers) -> None:
    dtype = np.dtype(node.bands[0].dtype)
    executable = ReferenceExecutable(node.back, node.tree, dtype)
    if node.shifts == 1:
        executable.run([strided(buffers[view.buffer], view) for view in (node.samples, *node.bands)])
        return
    axes = node.tree.spec.axes
    total, covered = np.zeros(node.samples.shape), np.zeros(node.samples.shape)
    nodes = node.samples.shape[1]
    for number, shift in enumerate(product((0, 1), repeat=len(axes))):
        bands = [
            strided(buffers[view.buffer], view)[:, number * nodes : (number + 1) * nodes]
            for view in node.bands
        ]
        if not node.back:
            moved = sum(s * node.samples.strides[axis] for s, axis in zip(shift, axes, strict=True))
            view = node.samples._replace(offset=node.samples.offset - moved)
            executable.run([strided(buffers[view.buffer], view), *bands])
            continue
        part = np.empty(node.samples.shape)
        executable.run([part, *bands])
        # Sample i of the image is sample i + 1 of the line that begins one sample earlier.
        source = [slice(None)] * part.ndim
        target = [slice(None)] * part.ndim
        for s, axis in zip(shift, axes, strict=True):
            if s:
                source[axis], target[axis] = slice(1, None), slice(0, -1)
        total[tuple(target)] += part[tuple(source)]
        covered[tuple(target)] += 1
    if node.back:
        strided(buffers[node.samples.buffer], node.samples)[...] = total / covered
