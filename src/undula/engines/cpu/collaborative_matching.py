"""The search for similar blocks of a tile, written as vector instructions for LLVM.

References are on a grid of 4 samples, so blocks of 8×8 consist of four *cells* of 4×4 that they share. For
each displacement, distances of cells are computed once, for all cells of a row, and added up to distances of
blocks. Blocks of volumes consist of two cells of 4 layers, 2 rows and 4 columns, one above the other. Samples
are integers of 16 bits, so that one instruction multiplies and adds up pairs of them. A row of the matched
image is kept as pairs of neighbours, in 4 phases, so that all loads are contiguous.

The blocks of a group are a sorted list of *keys*, integers that consist of the leading bits of the distance
and the number of the displacement. So neither the order in which blocks are compared nor equal distances
matter. The lists of a vector of references are sorted together, a lane for each: displacements with a key
below the limit of any lane wait in a queue, and a full queue is sorted and merged into the lists by a network
of minima and maxima. There are no branches that depend on a single reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ...lowering.collaborative import CUBE, CUBE_STEPS, MAX_MATCHED, NUMBER_BITS, STEP
from .collaborative_instructions import ADDRESS, Body, Vector, function, integers, store_integers
from .collaborative_layout import (
    BEGIN,
    BLOCKS,
    CELL_BYTES,
    CELLS,
    COLUMNS,
    COUNTS,
    DEPTH,
    END,
    FIRST_LAYER,
    FIRST_ROW,
    HEIGHT,
    KEYS,
    LANES,
    LAYER_BYTES,
    LEFT,
    LIMITS,
    MATCH,
    MATCH_FIRST,
    MATCH_SCALE,
    MOVE_COUNT,
    MOVES,
    NUMBERS,
    OFFSETS,
    ORIGIN,
    PENALTIES,
    PHASE_BYTES,
    PHASE_LAYERS,
    PHASE_ROWS,
    PHASES,
    QUEUE,
    QUEUES,
    RIGHTS,
    ROW_BYTES,
    SAMPLES,
    SIDE,
    SUMS,
    VECTORS,
    WIDTH,
)
from .emitter import INDEX, INT, Emitter
from .rows import compiled
from .simd import reals, words

__all__ = ["find_cubes", "find_groups"]

VECTOR_BYTES = 4 * LANES
PAIR_COUNT = STEP // 2  # pairs of samples of a row of a cell
FAR = np.int32(2**30 - 1)  # of a cell outside of the image: more than any block, and twice it is an integer
MOST = np.int32(0x4E800000)  # The bits of 2**30 as a float: keys of blocks in the image are below.
LEAST = np.int32(-(2**31))
KEY_LIKE, SHORT_LIKE = np.int32(0), np.int16(0)
ZERO, HALF, LARGEST = np.float32(0), np.float32(0.5), np.float32(MAX_MATCHED)


def _added_squares(emit: Emitter, x: Vector) -> Vector:
    """Return the sums of the squares of both integers of each pair: one instruction of most processors."""
    b, lanes = emit.b, x.type.count
    wide = b.sext(x, ir.VectorType(INDEX, lanes))
    squares = b.mul(wide, wide)
    even, odd = (emit.shuffle(squares, squares, list(range(k, lanes, 2))) for k in (0, 1))
    return b.add(even, odd)


def _cell_distances(layers: int, rows: int) -> Body:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Compute the distances of a row of cells from those with displacements of one row.

        ``cells`` are the samples of the references, ``others`` those that are moved. What was computed for
        the row of cells above is in ``above``; sums of both are written to ``sums``.
        """
        cells, others, row_bytes, layer_bytes, phase_bytes, vectors = values[:6]
        above, sums, cell_bytes, side, offsets, penalties = values[6:]
        b = emit.b
        lines = [
            b.add(b.mul(layer_bytes, INT(z)), b.mul(row_bytes, INT(r)))
            for z in range(layers)
            for r in range(rows)
        ]
        with emit.loop(INT(0), vectors, 1) as vector:
            moved = b.mul(vector, INT(VECTOR_BYTES))
            base, first = b.add(others, moved), b.add(cells, moved)
            references = [
                integers(emit, b.add(first, b.add(line, b.mul(phase_bytes, INT(2 * c)))), 2 * LANES, 16)
                for c in range(PAIR_COUNT)
                for line in lines
            ]
            with emit.loop(INT(0), side, 1) as right:
                penalty = b.load(b.gep(b.inttoptr(penalties, INDEX.as_pointer()), [right]))
                totals: list[Any] = [emit.spread(penalty, LANES), None]
                listed = b.inttoptr(b.add(offsets, b.mul(right, INT(8 * PAIR_COUNT))), INT.as_pointer())
                for c in range(PAIR_COUNT):
                    place = b.add(base, b.load(b.gep(listed, [INT(c)])))
                    for r, line in enumerate(lines):
                        other = integers(emit, b.add(place, line), 2 * LANES, 16)
                        added = _added_squares(emit, b.sub(references[len(lines) * c + r], other))
                        totals[c] = added if totals[c] is None else b.add(totals[c], added)
                distance = b.add(*totals)
                place = b.add(above, b.add(b.mul(right, cell_bytes), moved))
                target = b.add(sums, b.add(b.mul(right, b.add(cell_bytes, INT(VECTOR_BYTES))), moved))
                store_integers(emit, b.add(distance, integers(emit, place, LANES)), target)
                store_integers(emit, distance, place)

    return body


def _select(wide: bool) -> Body:
    def body(emit: Emitter, values: list[Any]) -> Any:
        """Compare the blocks of a vector of references, for displacements of a row from ``right`` on.

        Blocks have one cell, or if ``wide`` two of them side by side. Keys go to the queue. Return the next
        displacement, when the queue is full or no displacement is left.
        """
        sums, sum_bytes, limits, queue, count, numbers, right, side = values
        b = emit.b
        kind = ir.VectorType(INDEX, LANES)
        limit = integers(emit, limits, LANES)
        leading = ir.Constant(kind, [-(1 << NUMBER_BITS)] * LANES)
        listed = b.inttoptr(numbers, INT.as_pointer())
        counter = b.inttoptr(count, INT.as_pointer())
        waiting = b.load(counter)
        loop, end = (b.function.append_basic_block(name) for name in ("loop", "end"))
        entry = b.block
        b.branch(loop)
        b.position_at_end(loop)
        number, fill = b.phi(INT), b.phi(INT)
        number.add_incoming(right, entry)
        fill.add_incoming(waiting, entry)
        place = b.add(sums, b.mul(number, sum_bytes))
        distance = integers(emit, place, LANES)
        if wide:
            distance = b.add(distance, integers(emit, b.add(place, INT(4)), LANES))
        distance = b.bitcast(b.sitofp(distance, ir.VectorType(ir.FloatType(), LANES)), kind)
        label = emit.spread(b.trunc(b.load(b.gep(listed, [number])), INDEX), LANES)
        key = b.or_(b.and_(distance, leading), label)
        store_integers(emit, key, b.add(queue, b.mul(fill, INT(VECTOR_BYTES))))
        below = b.bitcast(b.icmp_signed("<", key, limit), ir.IntType(LANES))
        longer = b.add(fill, b.zext(b.icmp_unsigned("!=", below, ir.IntType(LANES)(0)), INT))
        further = b.add(number, INT(1))
        number.add_incoming(further, loop)
        fill.add_incoming(longer, loop)
        more = b.and_(b.icmp_signed("<", further, side), b.icmp_signed("<", longer, INT(QUEUE)))
        b.cbranch(more, loop, end)
        b.position_at_end(end)
        b.store(longer, counter)
        return further

    return body


def _sorting_network(count: int) -> list[tuple[int, int]]:
    """Return the comparisons that sort numbers, by Batcher's merging of even and odd places."""

    def merged(places: range) -> list[tuple[int, int]]:
        if len(places) == 2:
            return [(places[0], places[1])]
        joined = merged(places[::2]) + merged(places[1::2])
        return joined + [(places[k], places[k + 1]) for k in range(1, len(places) - 1, 2)]

    def sort(places: range) -> list[tuple[int, int]]:
        if len(places) == 1:
            return []
        half = len(places) // 2
        return sort(places[:half]) + sort(places[half:]) + merged(places)

    return sort(range(count))


def _merge(size: int) -> Any:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Merge a full queue of keys into the sorted lists of a vector of references."""
        keys, queue, limits = values
        b = emit.b
        waiting = [integers(emit, b.add(queue, INT(VECTOR_BYTES * k)), LANES) for k in range(QUEUE)]

        def sort(rows: list[Any], i: int, k: int) -> None:
            rows[i], rows[k] = emit.call("smin", rows[i], rows[k]), emit.call("smax", rows[i], rows[k])

        for i, k in _sorting_network(QUEUE):
            sort(waiting, i, k)
        ordered = [integers(emit, b.add(keys, INT(VECTOR_BYTES * k)), LANES) for k in range(size)]
        for k, key in enumerate(waiting):
            ordered[size - 1 - k] = emit.call("smin", ordered[size - 1 - k], key)
        # The list now rises and falls again, which log2(size) rounds sort.
        distance = size // 2
        while distance:
            for k in range(size):
                if k & distance == 0:
                    sort(ordered, k, k + distance)
            distance //= 2
        for k, key in enumerate(ordered):
            store_integers(emit, key, b.add(keys, INT(VECTOR_BYTES * k)))
        store_integers(emit, ordered[-1], limits)

    return body


block_cells = function("block_cells", [ADDRESS] * 12, types.void, _cell_distances(1, STEP))
cube_cells = function("cube_cells", [ADDRESS] * 12, types.void, _cell_distances(CUBE, CUBE_STEPS[0]))
select_blocks, select_cubes = (
    function(name, [ADDRESS] * 8, ADDRESS, _select(wide))
    for name, wide in (("select_blocks", True), ("select_cubes", False))
)
merge16, merge32 = (function(f"merge{size}", [ADDRESS] * 3, types.void, _merge(size)) for size in (16, 32))


@compiled
def fill_phases(table, like):
    """Copy pairs of samples around a tile, apart in 4 phases, as integers."""
    t = words(table)
    width, count = t[WIDTH], t[PHASE_BYTES] // 4
    left = t[LEFT] - (t[SIDE] // 2 + STEP - 1) // STEP * STEP
    scale, least = reals(t[MATCH_SCALE], like)[0], reals(t[MATCH_FIRST], like)[0]
    samples = reals(t[SAMPLES], SHORT_LIKE)
    total = STEP * (count + 1)
    begin, end = min(total, max(0, -left)), max(0, min(total, width - left))
    for j in range(total):
        samples[j] = 0
    for line in range(t[PHASE_LAYERS] * t[PHASE_ROWS]):
        z, y = t[FIRST_LAYER] + line // t[PHASE_ROWS], t[FIRST_ROW] + line % t[PHASE_ROWS]
        if z < 0 or z >= t[DEPTH] or y < 0 or y >= t[HEIGHT]:
            continue
        x = reals(t[MATCH] + z * t[LAYER_BYTES] + y * t[ROW_BYTES] + 4 * (left + begin), like)
        for j in range(end - begin):
            samples[begin + j] = np.int16(np.int32(min(max((x[j] - least) * scale + HALF, ZERO), LARGEST)))
        for c in range(STEP):
            out = reals(t[PHASES] + (STEP * line + c) * t[PHASE_BYTES], KEY_LIKE)
            pairs = reals(t[SAMPLES] + 2 * c, KEY_LIKE)
            for j in range(count):
                out[j] = pairs[2 * j]


@compiled
def exclude_outside(table, right, number, like):
    """Set the distances of cells outside of the image, for a displacement to the right."""
    t = words(table)
    width, sums = t[WIDTH], reals(t[SUMS] + number * (t[CELL_BYTES] + VECTOR_BYTES), KEY_LIKE)
    first = t[LEFT] + right
    for j in range(min(t[COLUMNS] + 1, (STEP - 1 - first) // STEP)):
        sums[j] = FAR
    for j in range(max(0, (width - first) // STEP), t[COLUMNS] + 1):
        sums[j] = FAR


@compiled
def merge(table, place, like):
    """Merge the queue of a vector of references of a row of the tile, and empty it."""
    t = words(table)
    keys, queue = t[KEYS] + place * t[BLOCKS] * VECTOR_BYTES, t[QUEUES] + place * QUEUE * VECTOR_BYTES
    limits = t[LIMITS] + place * VECTOR_BYTES
    if t[BLOCKS] == 16:
        merge16(keys, queue, limits)
    else:
        merge32(keys, queue, limits)
    words(t[COUNTS])[place] = 0


def _group_finder(cell_distances: Any, select: Any, rows_of_cell: int) -> Any:
    """Return the function that finds groups of blocks of images, or of volumes."""

    @compiled
    def find_groups(table, like):
        """Find the groups of all references of a tile."""
        t = words(table)
        side, size, columns, vectors = t[SIDE], t[BLOCKS], t[COLUMNS], t[VECTORS]
        rows = t[END] - t[BEGIN]
        limits, keys = reals(t[LIMITS], KEY_LIKE), reals(t[KEYS], KEY_LIKE)
        moves, counts, rights = words(t[MOVES]), words(t[COUNTS]), words(t[RIGHTS])
        row_bytes, cell_bytes = STEP * t[PHASE_BYTES], t[CELL_BYTES]
        near_ends = t[LEFT] < side // 2 or t[LEFT] + STEP * (columns + 1) + side // 2 > t[WIDTH]
        fill_phases(table, like)
        for place in range(rows * vectors):
            counts[place] = 0
            inside = columns - LANES * (place % vectors)
            for lane in range(LANES):
                worst = MOST if lane < inside else LEAST
                limits[place * LANES + lane] = worst
                for k in range(size):
                    keys[(place * size + k) * LANES + lane] = worst
        for index in range(t[MOVE_COUNT]):
            first, last, moved = moves[3 * index], moves[3 * index + 1], moves[3 * index + 2]
            for row in range(first, last + 1):
                cells = t[ORIGIN] + rows_of_cell * (row - t[BEGIN]) * row_bytes
                cell_distances(
                    cells,
                    cells + moved,
                    row_bytes,
                    t[PHASE_ROWS] * row_bytes,
                    t[PHASE_BYTES],
                    vectors,
                    t[CELLS],
                    t[SUMS],
                    cell_bytes,
                    side,
                    t[OFFSETS],
                    t[PENALTIES] + 4 * index * side,
                )
                if row == first:
                    continue
                if near_ends:
                    for k in range(side):
                        exclude_outside(table, rights[k], k, like)
                for vector in range(vectors):
                    place = (row - 1 - t[BEGIN]) * vectors + vector
                    right = 0
                    while right < side:
                        right = select(
                            t[SUMS] + vector * VECTOR_BYTES,
                            cell_bytes + VECTOR_BYTES,
                            t[LIMITS] + place * VECTOR_BYTES,
                            t[QUEUES] + place * QUEUE * VECTOR_BYTES,
                            t[COUNTS] + 8 * place,
                            t[NUMBERS] + 8 * index * side,
                            right,
                            side,
                        )
                        if counts[place] == QUEUE:
                            merge(table, place, like)
        for place in range(rows * vectors):
            queue = reals(t[QUEUES] + place * QUEUE * VECTOR_BYTES, KEY_LIKE)
            for k in range(counts[place] * LANES, QUEUE * LANES):
                queue[k] = MOST
            merge(table, place, like)

    return find_groups


find_groups = _group_finder(block_cells, select_blocks, STEP)
find_cubes = _group_finder(cube_cells, select_cubes, CUBE_STEPS[0])
