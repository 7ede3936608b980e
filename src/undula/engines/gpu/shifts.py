"""The launches of one level for all shifts; see :mod:`undula.engines.gpu.emit.shifts`.

A level is one launch of the kernels for all shifts if they can run it, or else one launch of the strategy on
shifted views (:meth:`~.builder.ProgramBuilder.shifted_level`). Where neither can, each shift is transformed
like a level of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from ...arrays import ArrayView
from ...lowering.borders import BORDERS
from ...lowering.graph import Graph, Move, Node, Transform
from ..base import TransformOptions
from .emit import Kernel
from .emit.pointwise import elements_per_group, emit_mean
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
from .graph_builder import GraphBuilder
from .launches import PAD_ELEMENTS, DeviceLevel, DeviceLimits, Launch
from .memory import MIN_PADDED_COLUMNS
from .parts import NARROW
from .transform import append_levels, device_levels

__all__ = ["elided_moves", "lower_shifts"]

MAX_SHIFTED_TAPS = 20  # of filters for all shifts at once

Shape = tuple[int, ...]


def lower_shifts(builder: GraphBuilder, node: Transform) -> None:
    """Append the launches of one level for all shifts, or of the mean over their reconstructions."""
    bands = [builder.resolve(view) for view in node.bands]
    if not node.back and node.samples.buffer in builder.elided:
        _shifted(builder, node, builder.resolve(builder.elided[node.samples.buffer].source), bands)
        return
    samples = builder.resolve(node.samples)
    if node.back and _unshifted(builder, node, samples, bands):
        return
    transforms, levels = builder.transform_builder(), device_levels(node.tree, bands[0].dtype)
    items, nodes, *lengths = samples.shape
    if node.back:
        pad = PAD_ELEMENTS if len(lengths) == 2 and lengths[-1] >= MIN_PADDED_COLUMNS else 1
        parts = transforms.allocate((items, node.shifts * nodes, *lengths), samples.dtype, pad)
        levels = tuple(_resized(level, 1, node.shifts * nodes) for level in levels)
        append_levels(transforms, True, levels, parts, bands, builder.options)
        _mean(builder, parts, samples, len(node.tree.spec.axes))
        return
    if transforms.shifted_level(samples, levels[0].tasks, bands):
        return
    axes = node.tree.spec.axes
    levels = tuple(_resized(level, 0, 1) for level in levels)
    for number, shift in enumerate(product((0, 1), repeat=len(axes))):
        moved = sum(s * samples.strides[axis] for s, axis in zip(shift, axes, strict=True))
        for item in range(items):
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
            append_levels(transforms, False, levels, source, targets, builder.options)


def _unshifted(
    builder: GraphBuilder, node: Transform, samples: ArrayView, bands: Sequence[ArrayView]
) -> bool:
    """Append one launch for the mean over the reconstructions of all shifts, or return False."""
    taps = _filter_lengths(node, builder.options)
    if taps is None:
        return False
    rows = unshifted_rows(taps[0], samples.itemsize, builder.limits.shared)
    strides = [view.plane_strides(2, 3) for view in bands]
    if rows is None or samples.strides[3] != 1 or any(each is None for each in strides):
        return False
    tile = rows, COLUMNS
    if max(taps) <= MAX_MARCHING_TAPS and _band_reach(samples, bands) < NARROW:
        items, nodes, high, wide = samples.shape
        tile = marching_tile(high, wide, items * nodes, builder.limits.units, MARCHING_COLUMNS)
        kernel = emit_marching_unshifted(samples.dtype, taps, tile[0], builder.dialect)
    else:
        kernel = emit_unshifted(samples.dtype, taps, rows, builder.dialect)
    filters = [f for wavelet in node.tree.spec.wavelets for f in (wavelet.rec_lo, wavelet.rec_hi)]
    _shift_launch(builder, kernel, filters, samples, bands, tile, True)
    return True


def _shifted(builder: GraphBuilder, node: Transform, source: ArrayView, bands: Sequence[ArrayView]) -> None:
    """Append one launch for the coefficients of all shifts of samples without mirrored ones."""
    taps = _filter_lengths(node, builder.options)
    rows = shifted_rows(taps[0], source.itemsize, builder.limits.shared) if taps else None
    assert taps is not None  # This and the next are what elided_moves has checked.
    assert rows is not None
    down, along = (BORDERS[mode] for mode in node.tree.spec.modes)
    tile = rows, BAND_COLUMNS
    reach = max(_band_reach(source, bands), source.shape[2] * source.strides[2])
    if max(taps) <= MAX_MARCHING_TAPS and reach < NARROW:
        high, wide = bands[0].shape[2:]
        planes = math.prod(source.shape[:2])
        tile = marching_tile(high, wide, planes, builder.limits.units, MARCHING_ITEMS)
        kernel = emit_marching_shifted(source.dtype, taps, (down, along), tile[0], builder.dialect)
    else:
        kernel = emit_shifted(source.dtype, taps, (down, along), rows, builder.dialect)
    filters = [f for wavelet in node.tree.spec.wavelets for f in (wavelet.dec_lo, wavelet.dec_hi)]
    _shift_launch(builder, kernel, filters, source, bands, tile, False)


def _shift_launch(
    builder: GraphBuilder,
    kernel: Kernel,
    filters: Sequence[Sequence[float]],
    samples: ArrayView,
    bands: Sequence[ArrayView],
    tile: tuple[int, int],
    back: bool,
) -> None:
    """Append the launch of a kernel for all shifts."""
    buffer, weights = builder.table([tap for f in filters for tap in f], samples.dtype)
    items, nodes, *lengths = samples.shape
    downwards, across = (
        -(-n // size) for n, size in zip(lengths if back else bands[0].shape[2:], tile, strict=True)
    )
    arrays = {"x": samples, "weights": ArrayView(buffer, (), (), samples.dtype, weights)}
    arrays |= dict(zip(("aa", "ad", "da", "dd"), bands, strict=True))
    values = [arrays[name].offset for name in kernel.arrays]
    for view in bands:
        strides = view.plane_strides(2, 3)
        assert strides is not None
        values += strides
    values += [*samples.strides[:3], *lengths, *bands[0].shape[2:], nodes, across, downwards]
    buffers = tuple(arrays[name].buffer for name in kernel.arrays)
    builder.launches.append(Launch(kernel, items * nodes * across * downwards, buffers, tuple(values)))


def elided_moves(graph: Graph, limits: DeviceLimits, options: TransformOptions) -> dict[str, Move]:
    """Return the moves whose results need not be stored, by the names of these.

    They put a mirrored sample before each line, which kernels for all shifts can do themselves.
    """
    users: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in {view.buffer for view in (*node.reads, *node.writes)}:
            users.setdefault(name, []).append(node)
    moves = {}
    for name, nodes in users.items():
        if len(nodes) != 2 or name in graph.outputs:
            continue
        move, node = nodes
        if not (isinstance(move, Move) and isinstance(node, Transform) and node.shifts > 1):
            continue
        counts = move.source.shape[2:]
        places = tuple((axis, (min(1, n - 1), *range(n))) for axis, n in enumerate(counts, 2))
        samples, taps = node.samples, _filter_lengths(node, options)
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
            and all(BORDERS[mode].certain and not BORDERS[mode].weighted for mode in node.tree.spec.modes)
            and shifted_rows(taps[0], samples.itemsize, limits.shared) is not None
        ):
            moves[name] = move
    return moves


def _filter_lengths(node: Transform, options: TransformOptions) -> tuple[int, int] | None:
    """Return the taps of both axes of a level, if kernels for all shifts at once run it."""
    spec = node.tree.spec
    plain = options.strategy == options.scheme == options.method == "auto"
    if not plain or spec.axes != (2, 3) or spec.lifted or "periodization" in spec.modes:
        return None
    down, along = (wavelet.rec_len for wavelet in spec.wavelets)
    return (down, along) if max(down, along) <= MAX_SHIFTED_TAPS and not (down | along) % 2 else None


def _mean(builder: GraphBuilder, parts: ArrayView, result: ArrayView, axes: int) -> None:
    """Append the mean over all shifts that have a sample."""
    count, nodes = math.prod(result.shape), result.shape[1]
    kernel = emit_mean(result.dtype, axes, math.prod(parts.shape) >= NARROW, builder.dialect)
    values = [count, nodes, parts.offset, result.offset, parts.strides[1], *result.strides[:2]]
    for numbers in zip(result.shape[2:], parts.strides[2:], result.strides[2:], strict=True):
        values += numbers
    groups = -(-count // elements_per_group(False))
    builder.launches.append(Launch(kernel, groups, (parts.buffer, result.buffer), tuple(values)))


def _band_reach(samples: ArrayView, bands: Sequence[ArrayView]) -> int:
    """Return the number of elements between the first and the last coefficient of all shifts of an item."""
    return max(4 * samples.shape[1] * view.strides[1] for view in bands)


def _resized(level: DeviceLevel, axis: int, length: int) -> DeviceLevel:
    """Return a level for arrays of another length along an axis that is not transformed."""

    def resized(shape: Shape) -> Shape:
        return (*shape[:axis], length, *shape[axis + 1 :])

    shapes = {key: resized(shape) for key, shape in level.shapes.items()}
    return replace(level, shape=resized(level.shape), shapes=shapes)
