"""Collaborative filtering of video: motion, windows along it, and groups of their blocks.

The distances of all blocks of a window from a reference are computed at once: each lane of a vector has one
of 8 columns, and each sum one of the rows. So every sample of the window is loaded once for each column of
the block, and used for all rows. ``lowering.temporal`` describes the filter, and ``temporal_layout`` the
tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ...lowering.collaborative import BLOCK, LEAST_GAIN, NUMBER_BITS
from ...lowering.temporal import (
    COARSE_WINDOWS,
    COLUMNS,
    GROUP_SIZE,
    NEAR_ROWS,
    OTHER_ROWS,
    REACH,
    WINDOW_BITS,
)
from .collaborative_blocks import BLOCK_BYTES, BLOCK_TRANSFORMS
from .collaborative_instructions import ADDRESS, KEY, function, integers, store_integers
from .collaborative_kernels import threshold16, weight16
from .emitter import INDEX, INT, Emitter
from .rows import compiled
from .simd import reals, words
from .temporal_layout import (
    BEGIN,
    CANDIDATES,
    COARSE,
    COARSE_COLUMNS,
    COARSE_ROWS,
    END,
    FIELD_COLUMNS,
    FIELD_ROWS,
    FIELDS,
    FORWARD,
    FRAMES,
    GROUP,
    HEIGHT,
    KEYS,
    MOTION,
    NOISY,
    ORIGINS,
    PILOT_GROUP,
    PILOTS,
    PLANE_BYTES,
    PLANES,
    SHRINKAGE,
    SOURCE,
    STEP,
    TARGET,
    TOTALS,
    VARIANCES,
    WEIGHTED,
    WEIGHTS,
    WIDTH,
)

__all__ = ["estimate_motion", "filter_references", "halve_rows"]

transform_wavelet, add_wavelet, transform_cosine, add_cosine = BLOCK_TRANSFORMS
HALF_BLOCK = BLOCK // 2
LEADING = np.int32(-(1 << NUMBER_BITS))
NUMBERS = np.int32((1 << NUMBER_BITS) - 1)
PLACES = (1 << WINDOW_BITS) - 1
MOST = np.int32(0x7FFFFFFF)
LEAST, UNIT = np.float32(LEAST_GAIN), np.float32(1)
HALVED = np.float32(0.5)
KEY_LIKE = np.int32(0)
WINDOWS = tuple(place for window in COARSE_WINDOWS for place in window)


def _distances(rows: int) -> Any:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Write the distances of a block from all blocks of a window."""
        reference, row_bytes, window, out = values
        b = emit.b
        parts = 2 if rows <= OTHER_ROWS else 1  # sums that do not wait for each other
        totals: list[list[Any]] = [[None] * parts for _ in range(rows)]
        for line in range(rows + BLOCK - 1):
            begin = emit.pointer(b.add(window, b.mul(row_bytes, INT(line))))
            for column in range(BLOCK):
                samples = emit.load(begin, INT(column), COLUMNS)
                for row in range(max(0, line - BLOCK + 1), min(rows, line + 1)):
                    place = emit.pointer(b.add(reference, b.mul(row_bytes, INT(line - row))))
                    sample = b.load(b.gep(place, [INT(column)]))
                    difference = b.fsub(samples, emit.spread(sample, COLUMNS))
                    total = totals[row][column % parts]
                    if total is None:
                        total = b.fmul(difference, difference)
                    else:
                        total = emit.add(total, difference, difference)
                    totals[row][column % parts] = total
        for row, sums in enumerate(totals):
            total = sums[0] if parts == 1 else b.fadd(sums[0], sums[1])
            emit.store(total, emit.pointer(out), INT(COLUMNS * row), COLUMNS)

    return body


def _number_blocks(emit: Emitter, values: list[Any]) -> Any:
    """Make keys of 8 distances; return which of them are below the limit, as bits."""
    place, number, limit = values
    b = emit.b
    kind = ir.VectorType(INDEX, COLUMNS)
    distances = b.bitcast(emit.load(emit.pointer(place), INT(0), COLUMNS), kind)
    leading = b.and_(distances, ir.Constant(kind, [int(LEADING)] * COLUMNS))
    numbers = b.add(emit.spread(b.trunc(number, INDEX), COLUMNS), ir.Constant(kind, list(range(COLUMNS))))
    keys = b.or_(leading, numbers)
    b.store(keys, b.inttoptr(place, kind.as_pointer()), align=4)
    below = b.icmp_signed("<", keys, emit.spread(limit, COLUMNS))
    return b.zext(b.bitcast(below, ir.IntType(COLUMNS)), INT)


def _insert(emit: Emitter, values: list[Any]) -> Any:
    """Insert a key into the sorted keys of a group; return the last one."""
    place, key = values
    least = ir.Constant(ir.VectorType(INDEX, GROUP_SIZE), [-(2**31)] * GROUP_SIZE)
    ordered = integers(emit, place, GROUP_SIZE)
    moved = emit.shuffle(ordered, least, [GROUP_SIZE, *range(GROUP_SIZE - 1)])
    ordered = emit.call("smin", ordered, emit.call("smax", moved, emit.spread(key, GROUP_SIZE)))
    store_integers(emit, ordered, place)
    return emit.b.extract_element(ordered, INDEX(GROUP_SIZE - 1))


def _lowest_bit(emit: Emitter, values: list[Any]) -> Any:
    """Return the place of the lowest bit that is set."""
    return emit.b.cttz(values[0], ir.Constant(ir.IntType(1), 1))


near_distances, other_distances, block_distances = (
    function(f"distances{rows}", [ADDRESS] * 4, types.void, _distances(rows))
    for rows in (NEAR_ROWS, OTHER_ROWS, 1)
)
number_blocks = function("number_blocks", [ADDRESS, ADDRESS, KEY], ADDRESS, _number_blocks, inline=True)
insert_key = function("insert_key", [ADDRESS, KEY], KEY, _insert, inline=True)
lowest_bit = function("lowest_bit", [ADDRESS], ADDRESS, _lowest_bit, inline=True)


@compiled
def search_window(reference, row_bytes, window, rows, slot, candidates, keys):
    """Compare the blocks of a window with a reference; return the key of the best one.

    Blocks that are better than one of the group become part of it, unless ``keys`` is 0.
    """
    if rows == NEAR_ROWS:
        near_distances(reference, row_bytes, window, candidates)
    else:
        other_distances(reference, row_bytes, window, candidates)
    fresh = reals(candidates, KEY_LIKE)
    limit = reals(keys, KEY_LIKE)[GROUP_SIZE - 1] if keys else np.int32(0)
    best = MOST
    for row in range(rows):
        number = (slot << WINDOW_BITS) + COLUMNS * row
        below = number_blocks(candidates + 4 * COLUMNS * row, number, limit)
        for k in range(COLUMNS * row, COLUMNS * row + COLUMNS):
            best = min(best, fresh[k])
        while below:
            limit = insert_key(keys, fresh[COLUMNS * row + lowest_bit(below)])
            below &= below - 1
    return best


@compiled
def clamped(place, least, most):
    """Return the number that is nearest to ``place`` between two others."""
    return max(least, min(place, most))


@compiled
def find_group(table, y, x, like):
    """Find the blocks that are most similar to a reference, along its motion."""
    t = words(table)
    height, width = t[HEIGHT], t[WIDTH]
    row_bytes = 4 * width
    matched = words(t[PILOTS] if t[WEIGHTED] else t[NOISY])
    fields, origins = words(t[FIELDS]), words(t[ORIGINS])
    keys = reals(t[KEYS], KEY_LIKE)
    for k in range(GROUP_SIZE):
        keys[k] = MOST
    reference = matched[0] + y * row_bytes + 4 * x
    lowest_row, highest_row = max(0, y - REACH), min(height - BLOCK, y + REACH)
    down, right = y, x
    for slot in range(t[FRAMES]):
        rows = NEAR_ROWS
        if slot:
            if slot == 1 or slot == t[FORWARD] + 1:
                down, right = y, x
            rows = OTHER_ROWS
            field = reals(fields[slot], KEY_LIKE)
            i = clamped((down + HALF_BLOCK) // BLOCK, 0, t[FIELD_ROWS] - 1)
            j = clamped((right + HALF_BLOCK) // BLOCK, 0, t[FIELD_COLUMNS] - 1)
            place = 2 * (i * t[FIELD_COLUMNS] + j)
            down, right = down + field[place], right + field[place + 1]
        down = clamped(down - rows // 2, lowest_row, highest_row - rows + 1)
        right = clamped(right - COLUMNS // 2, 0, width - BLOCK - COLUMNS + 1)
        origins[2 * slot], origins[2 * slot + 1] = down, right
        window = matched[slot] + down * row_bytes + 4 * right
        best = search_window(reference, row_bytes, window, rows, slot, t[CANDIDATES], t[KEYS])
        number = np.int64(best & NUMBERS) & PLACES
        down, right = down + number // COLUMNS, right + number % COLUMNS


@compiled
def block_place(key, origins, row_bytes):
    """Return the frame of a block, and the bytes to its first sample."""
    number = np.int64(key & NUMBERS)
    slot, place = number >> WINDOW_BITS, number & PLACES
    down, right = origins[2 * slot] + place // COLUMNS, origins[2 * slot + 1] + place % COLUMNS
    return slot, down * row_bytes + 4 * right


@compiled
def filter_group(table, plane, like):
    """Filter a plane of a group, and add its blocks to the sums of their frames."""
    t = words(table)
    row_bytes, plane_bytes = 4 * t[WIDTH], plane * t[PLANE_BYTES]
    noisy, pilots, totals, weights = words(t[NOISY]), words(t[PILOTS]), words(t[TOTALS]), words(t[WEIGHTS])
    origins, keys = words(t[ORIGINS]), reals(t[KEYS], KEY_LIKE)
    group, more = t[GROUP], t[PILOT_GROUP]
    for k in range(0, GROUP_SIZE, 2):
        slot, first = block_place(keys[k], origins, row_bytes)
        other_slot, second = block_place(keys[k + 1], origins, row_bytes)
        first, second, moved = first + plane_bytes, second + plane_bytes, BLOCK_BYTES * k
        x, y = noisy[slot] + first, noisy[other_slot] + second
        target = group + moved
        if t[WEIGHTED]:
            transform_cosine(x, y, row_bytes, 0, target, target + BLOCK_BYTES)
            x, y = pilots[slot] + first, pilots[other_slot] + second
            target = more + moved
            transform_cosine(x, y, row_bytes, 0, target, target + BLOCK_BYTES)
        else:
            transform_wavelet(x, y, row_bytes, 0, target, target + BLOCK_BYTES)
    if t[WEIGHTED]:
        weight = UNIT / max(weight16(group, more, t[SHRINKAGE], t[VARIANCES]), LEAST)
    else:
        weight = UNIT / max(threshold16(group, t[SHRINKAGE], t[VARIANCES]), UNIT)
    for k in range(0, GROUP_SIZE, 2):
        slot, first = block_place(keys[k], origins, row_bytes)
        other_slot, second = block_place(keys[k + 1], origins, row_bytes)
        first, second = first + plane_bytes, second + plane_bytes
        x, y = group + BLOCK_BYTES * k, group + BLOCK_BYTES * (k + 1)
        target, other_target = np.int64(0), np.int64(0)  # Blocks of frames that are far away are not added.
        if totals[slot]:
            target = totals[slot] + first
            reals(weights[slot] + first, like)[0] += weight
        if totals[other_slot]:
            other_target = totals[other_slot] + second
            reals(weights[other_slot] + second, like)[0] += weight
        if t[WEIGHTED]:
            add_cosine(x, y, target, other_target, row_bytes, 0, weight)
        else:
            add_wavelet(x, y, target, other_target, row_bytes, 0, weight)


@compiled
def filter_references(table, like):
    """Filter the groups of some rows of references; add weighted blocks, and their weights, to frames."""
    t = words(table)
    step, bottom, edge = t[STEP], t[HEIGHT] - BLOCK, t[WIDTH] - BLOCK
    for y in range(t[BEGIN], t[END]):
        if y != bottom and y % step:
            continue
        for k in range((edge + step - 1) // step + 1):
            find_group(table, y, min(step * k, edge), like)
            for plane in range(t[PLANES]):
                filter_group(table, plane, like)


# --- motion ---------------------------------------------------------------------------------------


@compiled
def halve_rows(source, columns, out, begin, end, half, like):
    """Compute rows of an image of half the size, whose noise has the same standard deviation."""
    for row in range(begin, end):
        first = reals(source + 8 * row * columns, like)
        second = reals(source + 4 * (2 * row + 1) * columns, like)
        result = reals(out + 4 * row * half, like)
        for k in range(half):
            left, right = first[2 * k] + second[2 * k], first[2 * k + 1] + second[2 * k + 1]
            result[k] = HALVED * (left + right)


@compiled
def predicted(table, reference, i, j):
    """Return the best displacement of the coarser images for a block: those around it, or none."""
    t = words(table)
    row_bytes = 4 * t[WIDTH]
    coarse, columns = reals(t[COARSE], KEY_LIKE), t[COARSE_COLUMNS]
    distance = reals(t[CANDIDATES], KEY_LIKE)
    best, best_down, best_right = MOST, 0, 0
    for way in range(4):
        down, right = 0, 0
        if way:
            a = i // 2 + (2 * (i % 2) - 1 if way == 3 else 0)
            b = j // 2 + (2 * (j % 2) - 1 if way == 2 else 0)
            place = 2 * (clamped(a, 0, t[COARSE_ROWS] - 1) * columns + clamped(b, 0, columns - 1))
            down, right = 2 * np.int64(coarse[place]), 2 * np.int64(coarse[place + 1])
        y = clamped(BLOCK * i + down, 0, t[HEIGHT] - BLOCK)
        x = clamped(BLOCK * j + right, 0, t[WIDTH] - BLOCK)
        # All lanes but one are further to the right, or to the left at the end of rows.
        first = min(x, t[WIDTH] - BLOCK - COLUMNS + 1)
        block_distances(reference, row_bytes, t[TARGET] + y * row_bytes + 4 * first, t[CANDIDATES])
        key = distance[x - first] & LEADING
        if key < best:
            best, best_down, best_right = key, down, right
    return best_down, best_right


@compiled
def estimate_motion(table, like):
    """Estimate the displacements of some rows of blocks from an image to another."""
    t = words(table)
    height, width = t[HEIGHT], t[WIDTH]
    row_bytes, columns = 4 * width, width // BLOCK
    motion = reals(t[MOTION], KEY_LIKE)
    for i in range(t[BEGIN], t[END]):
        for j in range(columns):
            top, left = BLOCK * i, BLOCK * j
            reference = t[SOURCE] + top * row_bytes + 4 * left
            windows, rows, down, right = len(WINDOWS) // 2, NEAR_ROWS, 0, 0
            if t[COARSE]:
                windows, rows = 1, OTHER_ROWS
                down, right = predicted(table, reference, i, j)
                down, right = down - OTHER_ROWS // 2, right - COLUMNS // 2
            best = MOST
            for window in range(windows):
                y, x = top + down, left + right
                if t[COARSE] == 0:
                    y, x = y + WINDOWS[2 * window], x + WINDOWS[2 * window + 1]
                y = clamped(y, 0, height - BLOCK - rows + 1)
                x = clamped(x, 0, width - BLOCK - COLUMNS + 1)
                place = t[TARGET] + y * row_bytes + 4 * x
                key = search_window(reference, row_bytes, place, rows, window, t[CANDIDATES], 0)
                if key < best:
                    best = key
                    number = np.int64(key & NUMBERS) & PLACES
                    motion[2 * (i * columns + j)] = y + number // COLUMNS - top
                    motion[2 * (i * columns + j) + 1] = x + number % COLUMNS - left
