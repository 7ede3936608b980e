"""Graphs as programs of kernels: node by node, each by the module that has the launches of its kind.

Graph ──scheduled──▶ nodes ──lower_graph──▶ GraphProgram: launches, phases, tables
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import ArrayView
from ...errors import ArgumentError
from ...lowering.expressions import Load
from ...lowering.graph import Collaborate, Graph, Move, Pointwise, Reduce, Stencil, Transform
from ..base import TransformOptions, UnfollowableStridesError
from .collaborative import lower_collaborate
from .emit import Dialect
from .emit.parts import pattern_of
from .graph_builder import GraphBuilder
from .launches import DeviceLimits, DeviceProgram
from .parts import NO_OFFSET, Part, part_array
from .reductions import lower_reduce
from .shifts import elided_moves, lower_shifts
from .stencils import lower_stencil
from .transform import append_levels, check_lengths, device_levels

__all__ = ["GraphProgram", "lower_graph"]

MIN_ITEMS = 256  # in a group, that the device must support


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
    builder = GraphBuilder(graph, layouts, dialect, limits, options, elided_moves(graph, limits, options))
    phases = [graph.phases[0]] * len(builder.launches) if graph.phases else []
    unused = _last_uses(builder)
    for number, (node, phase) in enumerate(zip(graph.nodes, graph.phases, strict=True)):
        builder.begin(node)
        try:
            LOWERINGS[type(node)](builder, node)
        except UnfollowableStridesError as error:
            raise ArgumentError(f"kernels cannot run {type(node).__name__}: {error}") from None
        phases += [phase] * (len(builder.launches) - len(phases))
        builder.end(unused[number])
    scratch = ((max(1, builder.arena.size), "uint8"), (builder.tables.size, "uint8"))
    program = DeviceProgram(tuple(builder.launches), scratch, builder.arena_buffer)
    return GraphProgram(program, tuple(phases), builder.tables.image())


def _last_uses(builder: GraphBuilder) -> list[list[str]]:
    """Return for each node the buffers that no later node uses."""
    last: dict[str, int] = {}
    for number, node in enumerate(builder.graph.nodes):
        for view in (*node.reads, *node.writes):
            last[view.buffer] = number
            if view.buffer in builder.elided:
                last[builder.elided[view.buffer].source.buffer] = number
    unused: list[list[str]] = [[] for _ in builder.graph.nodes]
    for name, number in last.items():
        unused[number].append(name)
    return unused


# --- nodes ----------------------------------------------------------------------------------------


def _lower_transform(builder: GraphBuilder, node: Transform) -> None:
    check_lengths(node.samples.shape)
    if node.shifts > 1:
        lower_shifts(builder, node)
        return
    samples, *bands = (builder.resolve(view) for view in (node.samples, *node.bands))
    levels = device_levels(node.tree, bands[0].dtype)
    append_levels(builder.transform_builder(), node.back, levels, samples, bands, builder.options)


def _lower_pointwise(builder: GraphBuilder, node: Pointwise) -> None:
    entries = zip(node.results, node.values, strict=True)
    builder.pointwise_launches(builder.part(view.shape, view, value) for view, value in entries)


def _lower_move(builder: GraphBuilder, node: Move) -> None:
    if node.result.buffer in builder.elided:
        return
    source, result = builder.resolve(node.source), builder.resolve(node.result)
    array = part_array(source)
    axes = list(array.axes)
    for axis, places in node.places:
        offsets = [place * source.strides[axis] for place in places]
        if len(set(offsets)) == 1 and offsets[0] == 0:
            axes[axis] = NO_OFFSET
        else:
            axes[axis] = ("places", builder.tables.add(offsets, "int64"))
    pattern, _, _ = pattern_of(Load(node.source))
    part = Part(result.shape, [array._replace(axes=tuple(axes)), part_array(result)], pattern, [])
    builder.pointwise_launches([part])


LOWERINGS: dict[type, Callable[[GraphBuilder, Any], None]] = {
    Transform: _lower_transform,
    Pointwise: _lower_pointwise,
    Stencil: lower_stencil,
    Reduce: lower_reduce,
    Move: _lower_move,
    Collaborate: lower_collaborate,
}
