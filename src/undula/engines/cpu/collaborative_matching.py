"""The search for similar blocks of a tile, written as vector instructions for LLVM.

References are on a grid of 4 samples, so blocks of 8×8 consist of four *cells* of 4×4 that they share. For
each displacement, distances of cells are computed once, for all cells of a row, and added up to distances of
blocks. Samples are integers of 16 bits, so that one instruction multiplies and adds up pairs of them. A row
of the matched image is kept as pairs of neighbours, in 4 phases, so that all loads are contiguous.

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

from ...lowering.collaborative import MAX_MATCHED, NUMBER_BITS, STEP
from .collaborative_instructions import ADDRESS, Vector, function, integers, store_integers
from .collaborative_layout import (
    BEGIN,
    BLOCKS,
    CELL_BYTES,
    CELLS,
    COLUMNS,
    COUNTS,
    END,
    HEIGHT,
    KEYS,
    LANES,
    LEFT,
    LIMITS,
    MATCH,
    MATCH_FIRST,
    MATCH_SCALE,
    NUMBERS,
    OFFSETS,
    PHASE_BYTES,
    PHASES,
    QUEUE,
    QUEUES,
    RADIUS,
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

__all__ = ["find_groups"]

VECTOR_BYTES = 4 * LANES
PAIR_COUNT = STEP // 2  # pairs of samples of a row of a cell
FAR = np.int32(2**30 - 1)  # of a cell outside of the image: more than any block, and twice it is an integer
MOST = np.int32(0x4E800000)  # The bits of 2**30 as a float: keys of blocks in the image are below.
LEAST = np.int32(-(2**31))
KEY_LIKE, SHORT_LIKE = np.int32(0), np.int16(0)
ZERO, HALF, LARGEST = np.float32(0), np.float32(0.5), np.float32(MAX_MATCHED)
# An optimal network that sorts 8 numbers.
SORTED_PAIRS = (
    *((0, 2), (1, 3), (4, 6), (5, 7), (0, 4), (1, 5), (2, 6), (3, 7), (0, 1), (2, 3)),
    *((4, 5), (6, 7), (2, 4), (3, 5), (1, 4), (3, 6), (1, 2), (3, 4), (5, 6)),
)


def _added_squares(emit: Emitter, x: Vector) -> Vector:
    """Return the sums of the squares of both integers of each pair: one instruction of most processors."""
    b, lanes = emit.b, x.type.count
    wide = b.sext(x, ir.VectorType(INDEX, lanes))
    squares = b.mul(wide, wide)
    even, odd = (emit.shuffle(squares, squares, list(range(k, lanes, 2))) for k in (0, 1))
    return b.add(even, odd)


def _cell_distances(emit: Emitter, values: list[Any]) -> None:
    """Compute the distances of a row of cells from those with displacements of one row.

    ``cells`` are the samples of the references, ``others`` those that are moved down. What was computed for
    the row of cells above is in ``above``; sums of both are written to ``sums``.
    """
    cells, others, row_bytes, phase_bytes, vectors, above, sums, cell_bytes, side, offsets = values
    b = emit.b
    with emit.loop(INT(0), vectors, 1) as vector:
        moved = b.mul(vector, INT(VECTOR_BYTES))
        base = b.add(others, moved)
        first = b.add(cells, moved)
        references = [
            integers(
                emit,
                b.add(first, b.add(b.mul(row_bytes, INT(r)), b.mul(phase_bytes, INT(2 * c)))),
                2 * LANES,
                16,
            )
            for c in range(PAIR_COUNT)
            for r in range(STEP)
        ]
        with emit.loop(INT(0), side, 1) as right:
            totals: list[Any] = []
            listed = b.inttoptr(b.add(offsets, b.mul(right, INT(8 * PAIR_COUNT))), INT.as_pointer())
            for c in range(PAIR_COUNT):
                place = b.add(base, b.load(b.gep(listed, [INT(c)])))
                total = None
                for r in range(STEP):
                    other = integers(emit, b.add(place, b.mul(row_bytes, INT(r))), 2 * LANES, 16)
                    added = _added_squares(emit, b.sub(references[STEP * c + r], other))
                    total = added if total is None else b.add(total, added)
                totals.append(total)
            distance = b.add(*totals)
            place = b.add(above, b.add(b.mul(right, cell_bytes), moved))
            target = b.add(sums, b.add(b.mul(right, b.add(cell_bytes, INT(VECTOR_BYTES))), moved))
            store_integers(emit, b.add(distance, integers(emit, place, LANES)), target)
            store_integers(emit, distance, place)


def _select(emit: Emitter, values: list[Any]) -> Any:
    """Compare the blocks of a vector of references, for displacements of a row from ``right`` on.

    Keys go to the queue. Return the next displacement, when the queue is full or no displacement is left.
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
    distance = b.add(integers(emit, place, LANES), integers(emit, b.add(place, INT(4)), LANES))
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


def _merge(size: int) -> Any:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Merge a full queue of keys into the sorted lists of a vector of references."""
        keys, queue, limits = values
        b = emit.b
        waiting = [integers(emit, b.add(queue, INT(VECTOR_BYTES * k)), LANES) for k in range(QUEUE)]

        def sort(rows: list[Any], i: int, k: int) -> None:
            rows[i], rows[k] = emit.call("smin", rows[i], rows[k]), emit.call("smax", rows[i], rows[k])

        for i, k in SORTED_PAIRS:
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


cell_distances = function("cell_distances", [ADDRESS] * 10, types.void, _cell_distances)
select = function("select", [ADDRESS] * 8, ADDRESS, _select)
merge16, merge32 = (function(f"merge{size}", [ADDRESS] * 3, types.void, _merge(size)) for size in (16, 32))


@compiled
def fill_phases(table, like):
    """Copy pairs of samples around a tile, apart in 4 phases, as integers."""
    t = words(table)
    radius, height, width = t[RADIUS], t[HEIGHT], t[WIDTH]
    count = t[PHASE_BYTES] // 4
    left = t[LEFT] - STEP * ((radius + 3) // STEP)
    first = STEP * t[BEGIN] - radius
    scale, least = reals(t[MATCH_SCALE], like)[0], reals(t[MATCH_FIRST], like)[0]
    samples = reals(t[SAMPLES], SHORT_LIKE)
    total = STEP * (count + 1)
    begin, end = min(total, max(0, -left)), max(0, min(total, width - left))
    for j in range(total):
        samples[j] = 0
    for row in range(STEP * (t[END] + 1) + 2 * radius - STEP * t[BEGIN]):
        y = first + row
        if y < 0 or y >= height:
            continue
        x = reals(t[MATCH] + y * t[ROW_BYTES] + 4 * (left + begin), like)
        for j in range(end - begin):
            samples[begin + j] = np.int16(np.int32(min(max((x[j] - least) * scale + HALF, ZERO), LARGEST)))
        for c in range(STEP):
            out = reals(t[PHASES] + (STEP * row + c) * t[PHASE_BYTES], KEY_LIKE)
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
def merge(table, vector, row, like):
    """Merge the queue of a vector of references of a row of the tile, and empty it."""
    t = words(table)
    place = row * t[VECTORS] + vector
    keys, queue = t[KEYS] + place * t[BLOCKS] * VECTOR_BYTES, t[QUEUES] + place * QUEUE * VECTOR_BYTES
    limits = t[LIMITS] + place * VECTOR_BYTES
    if t[BLOCKS] == 16:
        merge16(keys, queue, limits)
    else:
        merge32(keys, queue, limits)
    words(t[COUNTS])[place] = 0


@compiled
def find_groups(table, like):
    """Find the groups of all references of a tile."""
    t = words(table)
    side, size, columns, vectors, radius = t[SIDE], t[BLOCKS], t[COLUMNS], t[VECTORS], t[RADIUS]
    rows = t[END] - t[BEGIN]
    limits, keys = reals(t[LIMITS], KEY_LIKE), reals(t[KEYS], KEY_LIKE)
    numbers, counts = words(t[NUMBERS]), words(t[COUNTS])
    row_bytes, cell_bytes = STEP * t[PHASE_BYTES], t[CELL_BYTES]
    fill_phases(table, like)
    for place in range(rows * vectors):
        counts[place] = 0
        inside = columns - LANES * (place % vectors)
        for lane in range(LANES):
            worst = MOST if lane < inside else LEAST
            limits[place * LANES + lane] = worst
            for k in range(size):
                keys[(place * size + k) * LANES + lane] = worst
    origin = t[PHASES] + radius * row_bytes + 4 * ((radius + 3) // STEP)
    for index in range(side):
        down = numbers[side * side + index]
        # Rows of cells that are in the image when they are moved down.
        first = max(t[BEGIN], (STEP - 1 - down) // STEP)
        last = min(t[END], (t[HEIGHT] - STEP - down) // STEP)
        for row in range(first, last + 1):
            cells = origin + STEP * (row - t[BEGIN]) * row_bytes
            cell_distances(
                cells,
                cells + down * row_bytes,
                row_bytes,
                t[PHASE_BYTES],
                vectors,
                t[CELLS],
                t[SUMS],
                cell_bytes,
                side,
                t[OFFSETS],
            )
            if row == first:
                continue
            if t[LEFT] < radius or t[LEFT] + STEP * (columns + 1) + radius > t[WIDTH]:
                for k in range(side):
                    exclude_outside(table, numbers[side * side + k], k, like)
            line = row - 1 - t[BEGIN]
            for vector in range(vectors):
                place = line * vectors + vector
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
                        merge(table, vector, line, like)
    for row in range(rows):
        for vector in range(vectors):
            place = row * vectors + vector
            queue = reals(t[QUEUES] + place * QUEUE * VECTOR_BYTES, KEY_LIKE)
            for k in range(counts[place] * LANES, QUEUE * LANES):
                queue[k] = MOST
            merge(table, vector, row, like)
