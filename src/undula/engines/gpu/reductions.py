"""The launches of reductions; see :mod:`undula.engines.gpu.emit.reductions`.

Each item is divided into chunks. The partial results of chunks are in scratch memory, and are joined by a
second launch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ...arrays import ArrayView
from ...errors import ArgumentError
from ...lowering.expressions import Expression, loads
from ...lowering.graph import Reduce
from .emit import reductions
from .emit.parts import pattern_of, size_numbers
from .graph_builder import DTYPE_OF, GraphBuilder
from .parts import NO_OFFSET, Part, PartGroup, PartRow, grouped, part_array

__all__ = ["fold", "lower_reduce"]

CHUNK_ELEMENTS = 2048  # Each group of a reduction has at least so many.
GROUPS_PER_UNIT = 8
MAX_SORTED = 2**30  # numbers

Shape = tuple[int, ...]


def lower_reduce(builder: GraphBuilder, node: Reduce) -> None:
    """Append the launches of a node that computes one number for each item."""
    limits = node.limits or (None,) * len(node.results)
    parts = [
        _reduced_part(builder, *entry)
        for entry in zip(node.shapes, node.results, node.sources, limits, strict=True)
    ]
    for group in grouped(parts, 1):
        if node.kind == "median":
            _median(builder, group)
        elif node.kind == "sure":
            _sure(builder, group)
        else:
            fold(builder, node.kind, group)


def _reduced_part(
    builder: GraphBuilder, shape: Shape, result: ArrayView, source: Expression, limit: Expression | None
) -> Part:
    """Return the part of samples, whose first axis is that of items."""
    roots = (source,) if limit is None else (source, limit)
    pattern, slots, constants = pattern_of(*roots)
    limited = {id(load) for load in loads(*roots[1:])}
    ndim = max(2, len(shape))
    arrays = []
    for load in slots:  # A limit is one number for each item.
        arrays.append(builder.loaded(load, shape[:1] if id(load) in limited else shape))
    arrays.append(part_array(builder.resolve(result)))
    padded = [array._replace(axes=(*array.axes, *[NO_OFFSET] * (ndim - len(array.axes)))) for array in arrays]
    return Part((*shape, 1)[:ndim], padded, pattern, constants).merged(1)


def _chunked(builder: GraphBuilder, group: PartGroup) -> list[tuple[int, int, int]]:
    """Return for each part the number of samples of an item, those of a chunk, and the number of chunks.

    All parts together have as many chunks as the device runs at a time, since each takes a while to begin.
    """
    items = sum(part.sizes[0] for part in group.parts)
    samples = sum(math.prod(part.sizes) for part in group.parts)
    counts = [math.prod(part.sizes[1:]) for part in group.parts]
    groups = max(1, GROUPS_PER_UNIT * builder.limits.units - items)  # The last chunk of an item is not full.
    chunk = max(CHUNK_ELEMENTS, min(-(-samples // groups), max(counts)))
    return [(count, chunk, -(-count // chunk)) for count in counts]


def _source_rows(builder: GraphBuilder, group: PartGroup, entries: Sequence[int]) -> list[PartRow]:
    """Return rows for kernels on chunks of items."""
    rows = []
    chunked = _chunked(builder, group)
    for part, entry, (count, chunk, chunks) in zip(group.parts, entries, chunked, strict=True):
        fields = [count, chunk, chunks, entry, 0, *size_numbers(part.sizes[1:])]
        rows.append(PartRow(chunks * part.sizes[0], fields, part.arrays, part.constants))
    return rows


def fold(builder: GraphBuilder, kind: str, group: PartGroup) -> None:
    """Append a launch for chunks, and one for items if they have several."""
    spec = group.spec(builder.dialect, "result")
    counts = [chunks for _, _, chunks in _chunked(builder, group)]
    if max(counts) == 1:
        kernel = reductions.emit_partials(kind, spec, True)
        builder.launch(kernel, _source_rows(builder, group, [0] * len(counts)))
        return
    entries, total = _running([n * part.sizes[0] for n, part in zip(counts, group.parts, strict=True)])
    partials = builder.scratch((total,), DTYPE_OF[group.number])
    extra = [(partials.buffer, partials.offset)]
    builder.launch(
        reductions.emit_partials(kind, group.spec(builder.dialect), False),
        _source_rows(builder, group, entries),
        extra,
    )
    rows = [
        PartRow(part.sizes[0], [chunks, entry], part.arrays[-1:], [])
        for part, chunks, entry in zip(group.parts, counts, entries, strict=True)
    ]
    builder.launch(reductions.emit_folded(kind, spec), rows, extra)


def _median(builder: GraphBuilder, group: PartGroup) -> None:
    """Append a launch for each of the digits of magnitudes, and one for the result."""
    digits = reductions.digits(group.number)
    entries, items = _running([part.sizes[0] for part in group.parts])
    # Histograms are zero at the beginning, and the last launch sets them to zero for the next time.
    histograms = builder.tables.reserve(4 * items * len(digits) * reductions.BINS) // 4
    states = builder.tables.reserve(8 * items * (len(digits) + 1) * reductions.STATE) // 8
    extra = [(builder.table_buffer, histograms), (builder.table_buffer, states)]
    rows, spec = _source_rows(builder, group, entries), group.spec(builder.dialect)
    kernels = [reductions.emit_median_pass(first, spec) for first in (True, False)]
    previous = 0
    for turn, (shift, bits) in enumerate(digits):
        builder.launch(kernels[min(turn, 1)], rows, extra, [turn, shift, bits, previous])
        previous = bits
    kernel = reductions.emit_median_result(group.spec(builder.dialect, "result"))
    rows = [
        PartRow(part.sizes[0], [1, entry], part.arrays[-1:], [])
        for part, entry in zip(group.parts, entries, strict=True)
    ]
    builder.launch(kernel, rows, extra, [len(digits), previous])


def _sure(builder: GraphBuilder, group: PartGroup) -> None:
    """Append launches that sort magnitudes, and find the one of least risk."""
    block = reductions.SORTED_AT_ONCE
    counts = [math.prod(part.sizes[1:]) for part in group.parts]
    if max(counts) > MAX_SORTED:
        raise ArgumentError(f"kernels sort up to 2³⁰ samples for SURE, got {max(counts)}")
    padded = [1 << (count - 1).bit_length() for count in counts]
    entries, total = _running([part.sizes[0] * n for part, n in zip(group.parts, padded, strict=True)])
    keys = builder.scratch((total,), DTYPE_OF[group.number])
    extra = [(keys.buffer, keys.offset)]
    rows = []
    for part, count, size, entry in zip(group.parts, counts, padded, entries, strict=True):
        blocks = -(-size // block)
        fields = [count, block, blocks, entry, size, *size_numbers(part.sizes[1:])]
        rows.append(PartRow(blocks * part.sizes[0], fields, part.arrays, part.constants))
    builder.launch(reductions.emit_keys(group.spec(builder.dialect)), rows, extra)
    _sort(builder, group, padded, entries, extra)
    chunked = _chunked(builder, group)
    partial_counts = [3 * part.sizes[0] * c[2] for part, c in zip(group.parts, chunked, strict=True)]
    starts, total = _running(partial_counts)
    partials = builder.scratch((total,), "float64")
    extra.append((partials.buffer, partials.offset))
    spec = group.spec(builder.dialect, "result")
    for stage in ("squares", "risks", "threshold"):
        rows = []
        for k, part in enumerate(group.parts):
            groups = part.sizes[0] * (1 if stage == "threshold" else chunked[k][2])
            fields = [*chunked[k], entries[k], padded[k], starts[k]]
            rows.append(PartRow(groups, fields, part.arrays, part.constants))
        builder.launch(reductions.emit_risks(stage, spec), rows, extra)


def _sort(
    builder: GraphBuilder, group: PartGroup, padded: list[int], entries: list[int], extra: list[Any]
) -> None:
    """Append the launches of bitonic networks for all items."""
    block = reductions.SORTED_AT_ONCE
    rows = []
    for part, size, entry in zip(group.parts, padded, entries, strict=True):
        blocks = -(-size // block)
        rows.append(PartRow(blocks * part.sizes[0], [blocks, entry, size], [], []))
    sort_block = reductions.emit_sort_block(group.number, builder.dialect)
    sort_step = reductions.emit_sort_step(group.number, builder.dialect)
    builder.launch(sort_block, rows, extra, [0])
    length = 2 * block
    while length <= max(padded):
        bits, distance = length.bit_length() - 1, length // 2
        while distance >= block:
            builder.launch(sort_step, rows, extra, [bits, distance])
            distance //= 2
        builder.launch(sort_block, rows, extra, [bits])
        length *= 2


def _running(counts: Sequence[int]) -> tuple[list[int], int]:
    """Return the sum of all counts before each, and of all."""
    sums = [0, *accumulate(counts)]
    return sums[:-1], sums[-1]
