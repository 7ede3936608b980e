"""The order in which the nodes of a graph run: as early as possible, except for what saves memory.

Groups of blocks take more memory than all other nodes. What would be kept meanwhile is computed later if it
follows from inputs alone, and what else reads their source is computed before, so that their result can have
its place.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Node

__all__ = ["node_depths"]


def node_depths(
    nodes: Sequence[Node], inputs: Collection[str], numbers: Container[str], groups: Sequence[int]
) -> list[int]:
    """Return the depth of each node: nodes run by increasing depth.

    Parameters
    ----------
    nodes : sequence of Node
        In an order in which they could run.
    inputs : collection of str
        The arrays that are there anyway.
    numbers : container of str
        The arrays of a few numbers, whose memory is not counted.
    groups : sequence of int
        Which nodes filter groups of blocks.
    """
    least = [1] * len(nodes)
    depths = _depths(nodes, least)
    for group in groups:
        before, after = _before(nodes, group), _after(nodes, group)
        apart = [k for k in range(len(nodes)) if k != group and k not in before and k not in after]
        kept, waiting = set(inputs), []
        for k in apart:
            arrays = {view.buffer for view in nodes[k].reads if view.buffer not in numbers}
            if arrays and arrays <= kept:
                waiting.append(k)
                kept.update(view.buffer for view in nodes[k].writes)
        sources = {view.buffer for view in nodes[group].reads if view.buffer not in numbers}
        for k in apart:
            if k not in waiting and not sources.isdisjoint(view.buffer for view in nodes[k].reads):
                least[group] = max(least[group], depths[k] + 1)
        for k in waiting:
            least[k] = max(least[group], depths[group]) + 1
        depths = _depths(nodes, least)
    return depths


def _depths(nodes: Sequence[Node], least: Sequence[int]) -> list[int]:
    """Return the least depth of each node, which is above those of what it reads."""
    written: dict[str, int] = {}
    depths = []
    for node, depth in zip(nodes, least, strict=True):
        depth = max(depth, 1 + max((written.get(view.buffer, 0) for view in node.reads), default=0))
        for view in node.writes:
            written[view.buffer] = max(depth, written.get(view.buffer, 0))
        depths.append(depth)
    return depths


def _before(nodes: Sequence[Node], number: int) -> set[int]:
    """Return the nodes whose results a node needs."""
    needed, sources = {view.buffer for view in nodes[number].reads}, set()
    for k in reversed(range(number)):
        if not needed.isdisjoint(view.buffer for view in nodes[k].writes):
            sources.add(k)
            needed.update(view.buffer for view in nodes[k].reads)
    return sources


def _after(nodes: Sequence[Node], number: int) -> set[int]:
    """Return the nodes that need the results of a node."""
    known, readers = {view.buffer for view in nodes[number].writes}, set()
    for k in range(number + 1, len(nodes)):
        if not known.isdisjoint(view.buffer for view in nodes[k].reads):
            readers.add(k)
            known.update(view.buffer for view in nodes[k].writes)
    return readers
