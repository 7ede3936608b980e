"""Collaborative filtering of a tile of an image, written as vector instructions for LLVM.

The blocks of each group, which ``collaborative_matching`` finds, are transformed, shrunk, inverted and added
up. ``lowering.collaborative`` describes the filter, and ``collaborative_layout`` the table of a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from ...lowering.collaborative import (
    BLOCK,
    LEAST_GAIN,
    NUMBER_BITS,
    STEP,
    WINDOW_TAPS,
    cosine_matrix,
    wavelet_matrix,
)
from .collaborative_instructions import ADDRESS, FLOAT, Body, Vector, constant, function, load, store
from .collaborative_layout import (
    BEGIN,
    BLOCKS,
    COLUMNS,
    DISPLACEMENTS,
    END,
    GROUP,
    KEYS,
    LANES,
    LEFT,
    NOISY,
    OUT_ROW,
    PILOT,
    PILOT_GROUP,
    PLANE_BYTES,
    PLANES,
    RADIUS,
    ROW_BYTES,
    THRESHOLD,
    TOTAL_BYTES,
    TOTALS,
    VECTORS,
    WEIGHTED,
    WEIGHTS,
)
from .collaborative_matching import find_groups
from .emitter import INDEX, INT, Emitter
from .rows import compiled
from .simd import reals, words

__all__ = ["filter_tile", "weigh_rows"]

ROW = 4 * BLOCK  # bytes of a row of a block
BLOCK_BYTES = ROW * BLOCK
TAPS = tuple(float(tap) for tap in WINDOW_TAPS)


def _total(emit: Emitter, x: Vector) -> Vector:
    """Return the sum over all lanes."""
    kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), x.type])
    name = f"llvm.vector.reduce.fadd.v{x.type.count}f32"
    sum_lanes = cgutils.get_or_insert_function(emit.b.module, kind, name)
    return emit.b.call(sum_lanes, [ir.Constant(ir.FloatType(), -0.0), x], fastmath=("reassoc",))


# --- transforms of blocks -------------------------------------------------------------------------


def _combined(emit: Emitter, weights: Sequence[float], rows: Sequence[Vector]) -> Vector:
    """Return a weighted sum of rows."""
    total = None
    for weight, row in zip(weights, rows, strict=True):
        if abs(weight) < 1e-12:
            continue
        factor = constant(weight, row.type.count)
        total = emit.b.fmul(row, factor) if total is None else emit.add(total, factor, row)
    return total


def _multiplied(emit: Emitter, matrix: Any, rows: Sequence[Vector]) -> list[Vector]:
    """Multiply rows by a matrix; matrices whose rows are even and odd by turns need half of the products."""
    b, count = emit.b, len(rows)
    half = count // 2
    signs = np.array([1, -1] * half)
    if count > 1 and np.allclose(matrix, matrix[:, ::-1] * signs[:, None]):
        even = [b.fadd(rows[k], rows[count - 1 - k]) for k in range(half)]
        odd = [b.fsub(rows[k], rows[count - 1 - k]) for k in range(half)]
        products = [_multiplied(emit, matrix[k::2, :half], part) for k, part in enumerate((even, odd))]
        return [products[k % 2][k // 2] for k in range(count)]
    if count > 1 and np.allclose(matrix, matrix[::-1] * signs):
        even, odd = (_multiplied(emit, matrix[:half, k::2], rows[k::2]) for k in (0, 1))
        first = [b.fadd(x, y) for x, y in zip(even, odd, strict=True)]
        return first + [b.fsub(x, y) for x, y in zip(even[::-1], odd[::-1], strict=True)]
    return [_combined(emit, row, rows) for row in matrix]


def _transposed(emit: Emitter, rows: Sequence[Vector]) -> list[Vector]:
    """Transpose 8 rows of 8 samples: exchange pairs, pairs of pairs, and halves."""

    def exchanged(rows: Sequence[Vector], distance: int) -> list[Vector]:
        result = list(rows)
        for k in range(BLOCK):
            if k & distance == 0:
                lanes = range(BLOCK)
                low = [j if j & distance == 0 else BLOCK + j - distance for j in lanes]
                high = [j + distance if j & distance == 0 else BLOCK + j for j in lanes]
                x, y = rows[k], rows[k + distance]
                result[k], result[k + distance] = emit.shuffle(x, y, low), emit.shuffle(x, y, high)
        return result

    return exchanged(exchanged(exchanged(rows, 1), 2), 4)


def _transform(matrix: Any) -> Body:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Transform a block along both axes; the result is transposed."""
        source, row_bytes, target = values
        b = emit.b
        rows = [load(emit, b.add(source, b.mul(row_bytes, INT(r))), BLOCK) for r in range(BLOCK)]
        rows = _multiplied(emit, matrix, _transposed(emit, _multiplied(emit, matrix, rows)))
        for r, row in enumerate(rows):
            store(emit, row, b.add(target, INT(ROW * r)), BLOCK)

    return body


def _add_inverse(matrix: Any) -> Body:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Invert the transform of a block, and add it to the image, times the weight and the window."""
        source, target, row_bytes, weight = values
        b = emit.b
        rows = [load(emit, b.add(source, INT(ROW * r)), BLOCK) for r in range(BLOCK)]
        rows = _multiplied(emit, matrix, _transposed(emit, _multiplied(emit, matrix, rows)))
        along = b.fmul(emit.spread(weight, BLOCK), ir.Constant(ir.VectorType(ir.FloatType(), BLOCK), TAPS))
        for r, row in enumerate(rows):
            place = b.add(target, b.mul(row_bytes, INT(r)))
            window = b.fmul(along, constant(TAPS[r], BLOCK))
            store(emit, emit.add(load(emit, place, BLOCK), window, row), place, BLOCK)

    return body


def _pair(name: str, matrix: Any) -> tuple[Any, Any]:
    """Return the functions of a transform and of its inverse."""
    transform = function(f"transform_{name}", [ADDRESS] * 3, types.void, _transform(matrix))
    body = _add_inverse(np.linalg.inv(matrix))
    return transform, function(f"add_{name}", [ADDRESS] * 3 + [FLOAT], types.void, body)


transform_wavelet, add_wavelet = _pair("wavelet", wavelet_matrix())
transform_cosine, add_cosine = _pair("cosine", cosine_matrix())


# --- groups ---------------------------------------------------------------------------------------


def _shrink_group(
    emit: Emitter, size: int, groups: Sequence[Any], shrink: Callable[[list[Any], int], Any]
) -> None:
    """Transform groups along their blocks, shrink coefficients, and write blocks back to the first group.

    Sums and differences are not scaled: ``shrink`` gets the coefficients of all groups at a place, and how
    often blocks were added up to them. Its results are divided by two as often, which inverts the transform.
    A coefficient is shrunk as soon as it is known, so few vectors have to be kept in registers.
    """
    b, lanes = emit.b, LANES
    with emit.loop(INT(0), INT(BLOCK * BLOCK // lanes), 1) as part:
        moved = b.mul(part, INT(4 * lanes))
        details: dict[tuple[int, int], Any] = {}

        def place(group: Any, k: int) -> Any:
            return b.add(b.add(group, moved), INT(BLOCK_BYTES * k))

        def shrunk(values: list[Any], depth: int) -> Any:
            return b.fmul(shrink(values, depth), constant(0.5**depth, lanes))

        def sums(first: int, count: int) -> list[Any]:
            if count == 1:
                return [load(emit, place(group, first), lanes) for group in groups]
            half = count // 2
            left, right = sums(first, half), sums(first + half, half)
            differences = [b.fsub(x, y) for x, y in zip(left, right, strict=True)]
            details[first, count] = shrunk(differences, count.bit_length() - 1)
            return [b.fadd(x, y) for x, y in zip(left, right, strict=True)]

        def restore(mean: Any, first: int, count: int) -> None:
            if count == 1:
                store(emit, mean, place(groups[0], first), lanes)
                return
            half, detail = count // 2, details[first, count]
            restore(b.fadd(mean, detail), first, half)
            restore(b.fsub(mean, detail), first + half, half)

        mean = shrunk(sums(0, size), size.bit_length() - 1)
        restore(mean, 0, size)


def _threshold_group(size: int) -> Body:
    def body(emit: Emitter, values: list[Any]) -> Any:
        """Set small coefficients of a group to zero; return how many are left."""
        group, threshold = values
        b, lanes = emit.b, LANES
        limit, zero = emit.spread(threshold, lanes), constant(0, lanes)
        limits = {
            depth: b.fmul(limit, constant(2.0 ** (depth / 2), lanes)) for depth in range(1, size.bit_length())
        }
        kind = ir.VectorType(ir.FloatType(), lanes)
        magnitude = cgutils.get_or_insert_function(
            b.module, ir.FunctionType(kind, [kind]), f"llvm.fabs.v{lanes}f32"
        )
        count = cgutils.alloca_once_value(b, ir.Constant(ir.VectorType(INDEX, lanes), [0] * lanes))

        def shrink(values: list[Any], depth: int) -> Any:
            large = b.fcmp_ordered(">", b.call(magnitude, values), limits[depth])
            b.store(b.sub(b.load(count), b.sext(large, ir.VectorType(INDEX, lanes))), count)
            return b.select(large, values[0], zero)

        _shrink_group(emit, size, [group], shrink)
        return _total(emit, b.sitofp(b.load(count), kind))

    return body


def _weight_group(size: int) -> Body:
    def body(emit: Emitter, values: list[Any]) -> Any:
        """Apply the gains that the pilot determines to a group; return the sum of their squares."""
        b, lanes = emit.b, LANES
        total = cgutils.alloca_once_value(b, constant(0, lanes))

        def shrink(values: list[Any], depth: int) -> Any:
            x, pilot = values
            energy = b.fmul(pilot, pilot)
            gain = b.fdiv(energy, b.fadd(energy, constant(2.0**depth, lanes)))
            b.store(emit.add(b.load(total), gain, gain), total)
            return b.fmul(x, gain)

        _shrink_group(emit, size, values, shrink)
        return _total(emit, b.load(total))

    return body


threshold16, threshold32 = (
    function(f"threshold{size}", [ADDRESS, FLOAT], FLOAT, _threshold_group(size)) for size in (16, 32)
)
weight16, weight32 = (
    function(f"weight{size}", [ADDRESS, ADDRESS], FLOAT, _weight_group(size)) for size in (16, 32)
)


# --- a tile ---------------------------------------------------------------------------------------


KEY_LIKE = np.int32(0)
LEAST = np.float32(LEAST_GAIN)
UNIT = np.float32(1)


@compiled
def filter_group(table, plane, y, x, group, like):
    """Filter a plane of the group of one reference, and add its blocks to the tile."""
    t = words(table)
    size, row_bytes, out_row = t[BLOCKS], t[ROW_BYTES], t[OUT_ROW]
    moves, chosen = words(t[DISPLACEMENTS]), reals(group, KEY_LIKE)
    mask = np.int32((1 << NUMBER_BITS) - 1)
    noisy = t[NOISY] + plane * t[PLANE_BYTES] + y * row_bytes + 4 * x
    pilot = t[PILOT] + plane * t[PLANE_BYTES] + y * row_bytes + 4 * x
    for k in range(size):
        number = np.int64(chosen[LANES * k] & mask)
        moved = moves[2 * number] * row_bytes + 4 * moves[2 * number + 1]
        if t[WEIGHTED]:
            transform_cosine(noisy + moved, row_bytes, t[GROUP] + BLOCK_BYTES * k)
            transform_cosine(pilot + moved, row_bytes, t[PILOT_GROUP] + BLOCK_BYTES * k)
        else:
            transform_wavelet(noisy + moved, row_bytes, t[GROUP] + BLOCK_BYTES * k)
    if t[WEIGHTED]:
        gain = weight32(t[GROUP], t[PILOT_GROUP]) if size == 32 else weight16(t[GROUP], t[PILOT_GROUP])
        weight = UNIT / max(gain, LEAST)
    else:
        threshold = reals(t[THRESHOLD], like)[0]
        left = threshold32(t[GROUP], threshold) if size == 32 else threshold16(t[GROUP], threshold)
        weight = UNIT / max(left, UNIT)
    top, begin = y - STEP * t[BEGIN] + t[RADIUS], x - t[LEFT] + t[RADIUS]
    total = t[TOTALS] + plane * t[TOTAL_BYTES] + top * out_row + 4 * begin
    weights = reals(t[WEIGHTS] + plane * t[TOTAL_BYTES], like)
    for k in range(size):
        number = np.int64(chosen[LANES * k] & mask)
        down, right = moves[2 * number], moves[2 * number + 1]
        weights[(top + down) * (out_row // 4) + begin + right] += weight
        target = total + down * out_row + 4 * right
        if t[WEIGHTED]:
            add_cosine(t[GROUP] + BLOCK_BYTES * k, target, out_row, weight)
        else:
            add_wavelet(t[GROUP] + BLOCK_BYTES * k, target, out_row, weight)


@compiled
def filter_tile(table, like):
    """Filter the groups of all references of a tile; write weighted sums of blocks, and their weights."""
    t = words(table)
    find_groups(table, like)
    for k in range(t[PLANES] * t[TOTAL_BYTES] // 4):
        reals(t[TOTALS], like)[k] = 0
        reals(t[WEIGHTS], like)[k] = 0
    list_bytes = 4 * LANES * t[BLOCKS]
    for row in range(t[BEGIN], t[END]):
        lists = t[KEYS] + (row - t[BEGIN]) * t[VECTORS] * list_bytes
        for j in range(t[COLUMNS]):
            group = lists + j // LANES * list_bytes + 4 * (j % LANES)
            for plane in range(t[PLANES]):
                filter_group(table, plane, STEP * row, t[LEFT] + STEP * j, group, like)


@compiled
def weigh_rows(totals, weights, out, out_bytes, begin, end, width, scratch, like):
    """Divide rows of weighted sums by sums of weights, which are spread over the window of a block first."""
    for y in range(max(0, begin - BLOCK + 1), end):
        x = reals(weights + 4 * y * width, like)
        row = reals(scratch + 4 * (y - begin + BLOCK - 1) * width, like)
        for j in range(width):
            row[j] = 0
        for k in range(BLOCK):
            moved = reals(scratch + 4 * ((y - begin + BLOCK - 1) * width + k), like)
            tap = np.float32(TAPS[k])
            for j in range(width - k):
                moved[j] += tap * x[j]
    for y in range(begin, end):
        total = reals(scratch + 4 * (end - begin + BLOCK - 1) * width, like)
        for j in range(width):
            total[j] = 0
        for k in range(min(BLOCK, y + 1)):
            row = reals(scratch + 4 * (y - k - begin + BLOCK - 1) * width, like)
            tap = np.float32(TAPS[k])
            for j in range(width):
                total[j] += tap * row[j]
        x, result = reals(totals + 4 * y * width, like), reals(out + y * out_bytes, like)
        for j in range(width):
            result[j] = x[j] / total[j]
