"""The launches of stencils; see :mod:`undula.engines.gpu.emit.stencils`.

Windows over the last two axes are summed in tiles of shared memory; others along one axis after the other.
"""

from __future__ import annotations

import math
from typing import Any

from ...lowering.expressions import Load, WindowSum
from ...lowering.graph import Stencil
from .emit.pointwise import emit_pointwise
from .emit.stencils import (
    STENCIL_ITEMS,
    TileShape,
    emit_marching_stencil,
    emit_stencil,
    marching_width,
    tile_shape,
)
from .graph_builder import DTYPE_OF, GraphBuilder, flat_rows, guard_start
from .parts import Part, PartRow, grouped, part_array

__all__ = ["lower_stencil"]

MARCHING_STRIPS = (64, 32, 16)  # rows
MARCHING_WARPS = 32  # for each unit of the device
MAX_TILE_TAPS = 33  # along each axis of a window in shared memory


def lower_stencil(builder: GraphBuilder, node: Stencil) -> None:
    """Append the launches of a node that sums over windows."""
    lengths = [len(taps) for taps in node.taps]
    weights = [taps[0] if len(taps) == 1 else 1.0 for taps in node.taps]
    active = [k - len(lengths) for k, n in enumerate(lengths) if n > 1]
    entries = list(zip(node.results, node.sources, node.values, strict=True))
    # Windows that may be skipped are summed along lines, in fewer groups.
    planar = len(lengths) >= 2 and all(axis >= -2 for axis in active) and len(node.results[0].shape) >= 2
    if planar and node.guard is None:
        taps = (lengths[-2], lengths[-1])
        itemsize = max(view.itemsize for view in node.results)
        tile = tile_shape(taps, itemsize, builder.limits.shared) if max(taps) <= MAX_TILE_TAPS else None
        if tile is not None and math.prod(weights[:-2]) == 1:
            _tiles(builder, node, entries, tile)
            return
    _lines(builder, node, entries, active, math.prod(weights))


def _tiles(builder: GraphBuilder, node: Stencil, entries: list[Any], tile: TileShape) -> None:
    """Append launches that sum in tiles of shared memory, or by warps."""
    down, along = node.taps[-2:]
    boxes = (len(set(down)) == 1, len(set(along)) == 1)
    scale = math.prod(taps[0] for taps, box in zip((down, along), boxes, strict=True) if box)
    parts = [builder.part(view.shape, view, source, value).merged(0, 2) for view, source, value in entries]
    taps = (len(down), len(along))
    if builder.dialect.shuffle and all(boxes) and marching_width(taps):
        _march(builder, parts, taps, scale)
        return
    for group in grouped(parts):
        kernel = emit_stencil(group.spec(builder.dialect, "result"), tile, boxes)
        rows = []
        for part in group.parts:
            *outer, high, wide = part.sizes
            across, downwards = -(-wide // tile.columns), -(-high // tile.rows)
            tiles = across * downwards
            fields = [high, wide, across, tiles, *outer]
            rows.append(PartRow(tiles * math.prod(outer), fields, part.arrays, part.constants))
        weights = builder.table([scale, *down, *along], DTYPE_OF[group.number])
        builder.launch(kernel, rows, [weights])


def _march(builder: GraphBuilder, parts: list[Part], taps: tuple[int, int], scale: float) -> None:
    """Append launches of warps that go down strips of columns."""
    width, warps = marching_width(taps), STENCIL_ITEMS // 32

    def tiles(part: Part, strip: int) -> tuple[int, int]:
        *_, high, wide = part.sizes
        return -(-wide // width), -(-high // strip)

    for group in grouped(parts):
        # Long strips have fewer rows in common, short ones keep all units of the device busy.
        for strip in MARCHING_STRIPS:
            units = [math.prod(tiles(part, strip)) * math.prod(part.sizes[:-2]) for part in group.parts]
            if sum(units) >= MARCHING_WARPS * builder.limits.units:
                break
        rows = []
        for part, count in zip(group.parts, units, strict=True):
            *outer, high, wide = part.sizes
            across, downwards = tiles(part, strip)
            fields = [high, wide, across, across * downwards, strip, count, *outer]
            rows.append(PartRow(-(-count // warps), fields, part.arrays, part.constants))
        kernel = emit_marching_stencil(group.spec(builder.dialect, "result"), taps)
        builder.launch(kernel, rows, [builder.table([scale], DTYPE_OF[group.number])])


def _lines(
    builder: GraphBuilder, node: Stencil, entries: list[Any], active: list[int], factor: float
) -> None:
    """Append launches that sum along one axis after the other."""
    guard = None if node.guard is None else builder.resolve(node.guard)
    views = []
    parts = []
    for view, source, _ in entries:
        if isinstance(source, Load) and not source.finer and source.view.shape == view.shape:
            views.append(builder.resolve(source.view))
            continue
        samples = builder.scratch(view.shape, view.dtype)
        part = builder.part(view.shape, None, source)
        part.arrays.append(part_array(samples))
        parts.append(part)
        views.append(samples)
    builder.pointwise_launches(parts, guard)
    for number, axis in enumerate(active or [-1]):
        taps = node.taps[axis] if active else (1.0,)
        taps = tuple(factor * tap for tap in taps) if number == 0 else taps
        last = number >= len(active) - 1
        parts = []
        results = []
        for (view, _, value), source in zip(entries, views, strict=True):
            expression = value if last else WindowSum()
            part = builder.part(view.shape, None, expression)
            result = builder.resolve(view) if last else builder.scratch(view.shape, view.dtype)
            part.arrays += [part_array(result), part_array(source)]
            results.append(result)
            parts.append(part)
        for group in grouped(part.merged(0, -axis) for part in parts):
            spec = group.spec(builder.dialect, "result", "source", guard=guard)
            weights = builder.table(taps, DTYPE_OF[group.number])
            kernel = emit_pointwise(spec, group.ndim + axis)
            builder.launch(kernel, flat_rows(group, guard), [weights, *guard_start(guard)], [len(taps)])
        views = results
