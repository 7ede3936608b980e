"""The reach of a graph: from how far around a place its results come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .collaborative import BLOCK
from .expressions import loads
from .graph import Collaborate, Graph, Move, Node, Reduce, Stencil, Transform

__all__ = ["reaches"]

Shape = tuple[int, ...]


def reaches(graph: Graph, scales: Mapping[Shape, int]) -> dict[str, int]:
    """Return how many samples of the image, to either side, each buffer depends on.

    What statistics depend on does not count.

    Parameters
    ----------
    graph : Graph
    scales : mapping of tuple of int to int
        Distance of neighbours in samples of the image, by the lengths along the spatial axes, the last ones.
    """
    ndim = len(next(iter(scales)))
    known = dict.fromkeys(graph.inputs, 0)
    for node in graph.nodes:
        for name, reach in _reaches(node, known, scales, ndim).items():
            known[name] = max(reach, known.get(name, 0))
    return known


def _reaches(node: Node, known: Mapping[str, int], scales: Mapping[Shape, int], ndim: int) -> dict[str, int]:
    def scale(shape: Sequence[int]) -> int:
        # Arrays of other shapes are statistics, or images with their channels last.
        return scales.get(tuple(shape[len(shape) - ndim :]), 1)

    if isinstance(node, Reduce):
        return {view.buffer: 0 for view in node.writes}
    read = max((known[view.buffer] for view in node.reads), default=0)
    if isinstance(node, Transform):
        taps = max(wavelet.dec_len for wavelet in node.tree.spec.wavelets) + 1  # One more for shifts.
        distance = taps * scale(node.tree.sample_shapes[0])
        levels = _band_levels(node)
        if not node.back:
            return {
                view.buffer: read + distance * ((1 << level) - 1)
                for view, level in zip(node.bands, levels, strict=True)
            }
        reach = max(
            known[view.buffer] + distance * ((1 << level) - 1)
            for view, level in zip(node.bands, levels, strict=True)
        )
        return {node.samples.buffer: reach}
    if isinstance(node, Move):
        moved = max(
            (abs(place - number) for _, places in node.places for number, place in enumerate(places)),
            default=0,
        )
        return {node.result.buffer: read + moved * scale(node.source.shape)}
    if isinstance(node, Collaborate):  # Two steps: blocks, references around them, and blocks around these.
        return {view.buffer: read + 4 * (node.profile.radius + BLOCK) for view in node.writes}
    reach = read
    values = (*node.sources, *node.values) if isinstance(node, Stencil) else node.values
    for load in loads(*values):
        if load.finer:
            reach = max(reach, known[load.view.buffer] + (2 + abs(load.offset)) * scale(load.view.shape))
    if isinstance(node, Stencil):
        radius = max(len(taps) // 2 for taps in node.taps)
        reach += radius * max(scale(view.shape) for view in node.results)
    return {view.buffer: reach for view in node.writes}


def _band_levels(node: Transform) -> list[int]:
    """Return the levels of the bands of a transform."""
    count = len(node.tree.spec.keys) - 1
    levels = node.tree.levels
    return [levels, *(level for level in range(levels, 0, -1) for _ in range(count))]
