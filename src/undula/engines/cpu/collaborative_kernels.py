"""Collaborative filtering of a tile of an image or a volume, written as vector instructions for LLVM.

The blocks of each group, which ``collaborative_matching`` finds, are transformed, shrunk, inverted and added
up. ``lowering.collaborative`` describes the filter, and ``collaborative_layout`` the table of a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from ...lowering.collaborative import (
    BLOCK,
    BLOCK_SAMPLES,
    CUBE,
    CUBE_TAPS,
    LEAST_GAIN,
    NUMBER_BITS,
    STEP,
    WINDOW_TAPS,
)
from .collaborative_blocks import BLOCK_BYTES, BLOCK_TRANSFORMS, CUBE_TRANSFORMS, Transforms
from .collaborative_instructions import ADDRESS, FLOAT, Body, Vector, constant, function, load, store
from .collaborative_layout import (
    BEGIN,
    BLOCKS,
    CLEARED,
    COLUMNS,
    END,
    GROUP,
    KEYS,
    LANES,
    LAYER_BYTES,
    NOISY,
    PILOT,
    PILOT_GROUP,
    PLANE_BYTES,
    PLANES,
    ROW_BYTES,
    SHRINKAGE,
    SOURCE_MOVES,
    SOURCE_START,
    SOURCE_STEP,
    TOTAL_BYTES,
    TOTAL_LAYER,
    TOTAL_MOVES,
    TOTAL_ROW,
    TOTAL_START,
    TOTAL_STEP,
    TOTALS,
    VARIANCES,
    VECTORS,
    WEIGHTED,
    WEIGHTS,
)
from .collaborative_matching import find_cubes, find_groups
from .emitter import INT, Emitter
from .rows import compiled
from .simd import reals, words

__all__ = ["filter_cubes", "filter_tile", "weigh_layers", "weigh_rows"]

TAPS = tuple(float(tap) for tap in WINDOW_TAPS)
LAYER_TAPS = tuple(float(tap) for tap in CUBE_TAPS)


def _total(emit: Emitter, x: Vector) -> Vector:
    """Return the sum over all lanes."""
    kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), x.type])
    name = f"llvm.vector.reduce.fadd.v{x.type.count}f32"
    sum_lanes = cgutils.get_or_insert_function(emit.b.module, kind, name)
    return emit.b.call(sum_lanes, [ir.Constant(ir.FloatType(), -0.0), x], fastmath=("reassoc",))


# --- groups ---------------------------------------------------------------------------------------

Coefficients = tuple[list[Any], int]  # those of all groups at a place, and how often blocks were added up


def _shrink_group(
    emit: Emitter,
    size: int,
    groups: Sequence[Any],
    shrink: Callable[[Sequence[Coefficients], Any], list[Any]],
) -> None:
    """Transform groups along their blocks, shrink coefficients, and write blocks back to the first group.

    Sums and differences are not scaled: ``shrink`` gets two coefficients of all groups, and how often blocks
    were added up to them. Its results are divided by two as often, which inverts the transform. Coefficients
    are shrunk as soon as two of them are known, so few vectors have to be kept in registers. ``shrink`` also
    gets the place of the coefficients in a block, in bytes.
    """
    b, lanes = emit.b, LANES
    with emit.loop(INT(0), INT(BLOCK_SAMPLES // lanes), 1) as part:
        moved = b.mul(part, INT(4 * lanes))
        details: dict[tuple[int, int], Any] = {}

        def place(group: Any, k: int) -> Any:
            return b.add(b.add(group, moved), INT(BLOCK_BYTES * k))

        def shrink_two(*pairs: tuple[tuple[int, int], Coefficients]) -> None:
            values = shrink([coefficients for _, coefficients in pairs], moved)
            for (key, (_, depth)), value in zip(pairs, values, strict=True):
                details[key] = b.fmul(value, constant(0.5**depth, lanes))

        def sums(first: int, count: int) -> tuple[list[Any], list[Any]]:
            """Return the sums of some blocks, and the differences of both halves of them."""
            half, depth = count // 2, count.bit_length() - 1
            if count == 2:
                left, right = (
                    [load(emit, place(group, first + k), lanes) for group in groups] for k in (0, 1)
                )
            else:
                left, left_details = sums(first, half)
                right, right_details = sums(first + half, half)
                shrink_two(
                    ((first, half), (left_details, depth - 1)),
                    ((first + half, half), (right_details, depth - 1)),
                )
            pairs = list(zip(left, right, strict=True))
            return [b.fadd(x, y) for x, y in pairs], [b.fsub(x, y) for x, y in pairs]

        def restore(mean: Any, first: int, count: int) -> None:
            if count == 1:
                store(emit, mean, place(groups[0], first), lanes)
                return
            half, detail = count // 2, details[first, count]
            restore(b.fadd(mean, detail), first, half)
            restore(b.fsub(mean, detail), first + half, half)

        depth, mean = size.bit_length() - 1, (0, 0)
        total, differences = sums(0, size)
        shrink_two(((0, size), (differences, depth)), (mean, (total, depth)))
        restore(details[mean], 0, size)


def _threshold_group(size: int) -> Body:
    def body(emit: Emitter, values: list[Any]) -> Any:
        """Set small coefficients of a group to zero; return the variance of the noise that is left."""
        group, thresholds, variances = values
        b, lanes = emit.b, LANES
        kind = ir.VectorType(ir.FloatType(), lanes)
        magnitude = cgutils.get_or_insert_function(
            b.module, ir.FunctionType(kind, [kind]), f"llvm.fabs.v{lanes}f32"
        )
        zero = constant(0, lanes)
        left = cgutils.alloca_once_value(b, zero)

        def shrink(pairs: Sequence[Coefficients], moved: Any) -> list[Any]:
            threshold, variance = (load(emit, b.add(x, moved), lanes) for x in (thresholds, variances))
            results = []
            for (x,), depth in pairs:
                limit = b.fmul(threshold, constant(2.0 ** (depth / 2), lanes))
                large = b.fcmp_ordered(">", b.call(magnitude, [x]), limit)
                b.store(b.fadd(b.load(left), b.select(large, variance, zero)), left)
                results.append(b.select(large, x, zero))
            return results

        _shrink_group(emit, size, [group], shrink)
        return _total(emit, b.load(left))

    return body


def _weight_group(size: int) -> Body:
    def body(emit: Emitter, values: list[Any]) -> Any:
        """Apply the gains that the pilot determines to a group; return the variance that noise still has."""
        group, pilot_group, noise, variances = values
        b, lanes = emit.b, LANES
        left = cgutils.alloca_once_value(b, constant(0, lanes))

        def shrink(pairs: Sequence[Coefficients], moved: Any) -> list[Any]:
            power, variance = (load(emit, b.add(x, moved), lanes) for x in (noise, variances))
            energies = [b.fmul(pilot, pilot) for (_, pilot), _ in pairs]
            totals = [
                emit.add(energy, power, constant(2.0**depth, lanes))
                for energy, (_, depth) in zip(energies, pairs, strict=True)
            ]
            # One division for two gains: e₁/t₁ = e₁·t₂/(t₁·t₂).
            inverse = b.fdiv(constant(1, lanes), b.fmul(*totals))
            results = []
            for energy, total, ((x, _), _) in zip(energies, totals[::-1], pairs, strict=True):
                gain = b.fmul(energy, b.fmul(total, inverse))
                b.store(emit.add(b.load(left), b.fmul(gain, gain), variance), left)
                results.append(b.fmul(x, gain))
            return results

        _shrink_group(emit, size, [group, pilot_group], shrink)
        return _total(emit, b.load(left))

    return body


threshold16, threshold32 = (
    function(f"threshold{size}", [ADDRESS] * 3, FLOAT, _threshold_group(size)) for size in (16, 32)
)
weight16, weight32 = (
    function(f"weight{size}", [ADDRESS] * 4, FLOAT, _weight_group(size)) for size in (16, 32)
)


# --- a tile ---------------------------------------------------------------------------------------


KEY_LIKE = np.int32(0)
LEAST = np.float32(LEAST_GAIN)
UNIT = np.float32(1)
NUMBERS = np.int32((1 << NUMBER_BITS) - 1)


def _group_filter(transforms: Transforms) -> Any:
    """Return the function that filters a group of blocks of images, or of volumes."""
    transform_wavelet, add_wavelet, transform_cosine, add_cosine = transforms

    @compiled
    def filter_group(table, plane, source, total, keys, like):
        """Filter a plane of the group of one reference, and add its blocks to sums."""
        t = words(table)
        size, row_bytes, layer_bytes = t[BLOCKS], t[ROW_BYTES], t[LAYER_BYTES]
        moves, chosen, group = words(t[SOURCE_MOVES]), reals(keys, KEY_LIKE), t[GROUP]
        noisy, pilot = t[NOISY] + source, t[PILOT] + source
        for k in range(0, size, 2):
            first = moves[np.int64(chosen[LANES * k] & NUMBERS)]
            second = moves[np.int64(chosen[LANES * (k + 1)] & NUMBERS)]
            target = group + BLOCK_BYTES * k
            if t[WEIGHTED]:
                more = t[PILOT_GROUP] + BLOCK_BYTES * k
                transform_cosine(
                    noisy + first, noisy + second, row_bytes, layer_bytes, target, target + BLOCK_BYTES
                )
                transform_cosine(
                    pilot + first, pilot + second, row_bytes, layer_bytes, more, more + BLOCK_BYTES
                )
            else:
                transform_wavelet(
                    noisy + first, noisy + second, row_bytes, layer_bytes, target, target + BLOCK_BYTES
                )
        if t[WEIGHTED]:
            if size == 32:
                left = weight32(group, t[PILOT_GROUP], t[SHRINKAGE], t[VARIANCES])
            else:
                left = weight16(group, t[PILOT_GROUP], t[SHRINKAGE], t[VARIANCES])
            weight = UNIT / max(left, LEAST)
        else:
            if size == 32:
                left = threshold32(group, t[SHRINKAGE], t[VARIANCES])
            else:
                left = threshold16(group, t[SHRINKAGE], t[VARIANCES])
            weight = UNIT / max(left, UNIT)
        moves, totals = words(t[TOTAL_MOVES]), t[TOTALS] + plane * t[TOTAL_BYTES] + total
        weights = t[WEIGHTS] + plane * t[TOTAL_BYTES] + total
        for k in range(0, size, 2):
            first = moves[np.int64(chosen[LANES * k] & NUMBERS)]
            second = moves[np.int64(chosen[LANES * (k + 1)] & NUMBERS)]
            reals(weights + first, like)[0] += weight
            reals(weights + second, like)[0] += weight
            block = group + BLOCK_BYTES * k
            if t[WEIGHTED]:
                add_cosine(
                    block, block + BLOCK_BYTES, totals + first, totals + second, t[TOTAL_ROW],
                    t[TOTAL_LAYER], weight,
                )  # fmt: skip
            else:
                add_wavelet(
                    block, block + BLOCK_BYTES, totals + first, totals + second, t[TOTAL_ROW],
                    t[TOTAL_LAYER], weight,
                )  # fmt: skip

    return filter_group


def _tile_filter(find: Any, transforms: Transforms) -> Any:
    """Return the kernel that filters a tile of an image, or of a volume."""
    filter_group = _group_filter(transforms)

    @compiled
    def filter_references(table, like):
        """Filter the groups of all references of a tile; add weighted blocks, and their weights, to sums."""
        t = words(table)
        find(table, like)
        for k in range(t[CLEARED] // 4):
            reals(t[TOTALS], like)[k] = 0
            reals(t[WEIGHTS], like)[k] = 0
        list_bytes = 4 * LANES * t[BLOCKS]
        for row in range(t[END] - t[BEGIN]):
            lists = t[KEYS] + row * t[VECTORS] * list_bytes
            source, total = t[SOURCE_START] + row * t[SOURCE_STEP], t[TOTAL_START] + row * t[TOTAL_STEP]
            for j in range(t[COLUMNS]):
                keys = lists + j // LANES * list_bytes + 4 * (j % LANES)
                right = 4 * STEP * j
                for plane in range(t[PLANES]):
                    place = source + plane * t[PLANE_BYTES] + right
                    filter_group(table, plane, place, total + right, keys, like)

    return filter_references


filter_tile = _tile_filter(find_groups, BLOCK_TRANSFORMS)
filter_cubes = _tile_filter(find_cubes, CUBE_TRANSFORMS)
assert CUBE == STEP  # References of volumes are as far apart along rows as those of images.


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


@compiled
def weigh_layers(totals, weights, out, layer_bytes, row_bytes, begin, end, rows, width, scratch, like):
    """Divide layers of weighted sums by sums of weights, as :func:`weigh_rows` does for images.

    Weights are spread over the window of a block along its rows and columns, then along layers.
    """
    size = 4 * rows * width
    for z in range(max(0, begin - CUBE + 1), end):
        place = scratch + (z - begin + CUBE - 1) * size
        spread = reals(place, like)
        for j in range(rows * width):
            spread[j] = 0
        for y in range(rows):
            for down in range(min(CUBE, y + 1)):
                x = reals(weights + 4 * (z * rows + y - down) * width, like)
                for right in range(CUBE):
                    tap = np.float32(LAYER_TAPS[down]) * np.float32(LAYER_TAPS[right])
                    row = reals(place + 4 * (y * width + right), like)
                    for j in range(width - right):
                        row[j] += tap * x[j]
    for z in range(begin, end):
        for y in range(rows):
            total = reals(scratch + (end - begin + CUBE - 1) * size, like)
            for j in range(width):
                total[j] = 0
            for k in range(min(CUBE, z + 1)):
                tap = np.float32(LAYER_TAPS[k])
                row = reals(scratch + (z - k - begin + CUBE - 1) * size + 4 * y * width, like)
                for j in range(width):
                    total[j] += tap * row[j]
            x = reals(totals + 4 * (z * rows + y) * width, like)
            result = reals(out + z * layer_bytes + y * row_bytes, like)
            for j in range(width):
                result[j] = x[j] / total[j]
