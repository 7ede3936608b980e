"""Collaborative filtering of a tile of an image, written as vector instructions for LLVM.

References are on a grid of 4 samples, so blocks of 8×8 consist of four *cells* of 4×4 that they share. For
each displacement, distances of cells are computed once, for 16 cells of a row at a time, and added up to
distances of blocks. A row of the matched image is kept in 4 phases, so that all loads are contiguous.

The blocks of a group are kept as a sorted vector of *keys*, integers that consist of the leading bits of the
distance and the number of the displacement. So neither the order in which blocks are compared nor equal
distances matter. ``lowering.collaborative`` describes the filter, and
``collaborative_layout`` the table of a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...lowering.collaborative import (
    BLOCK,
    LEAST_GAIN,
    NUMBER_BITS,
    STEP,
    WINDOW_TAPS,
    cosine_matrix,
    wavelet_matrix,
)
from .collaborative_layout import (
    BEGIN,
    BLOCKS,
    CELL_BYTES,
    COLUMNS,
    DISPLACEMENTS,
    END,
    GROUP,
    HEIGHT,
    KEYS,
    LANES,
    LEFT,
    LIMITS,
    MATCH,
    NOISY,
    NUMBERS,
    OFFSETS,
    OUT_ROW,
    PHASE_BYTES,
    PHASES,
    PILOT,
    PILOT_GROUP,
    PLANE_BYTES,
    PLANES,
    RADIUS,
    ROW_BYTES,
    SIDE,
    SUMS,
    THRESHOLD,
    TOTAL_BYTES,
    TOTALS,
    VECTORS,
    WEIGHTED,
    WEIGHTS,
    WIDTH,
)
from .emitter import INDEX, INT, Emitter
from .rows import compiled
from .simd import reals, words

__all__ = ["filter_tile", "instructions", "weigh_rows"]

FAR = np.float32(1e15)  # A sample outside of the image, in units of the noise.
MOST = np.int32(0x7149F2CA)  # The bits of 1e30: blocks that are further away have samples outside.
ROW = 4 * BLOCK  # bytes of a row of a block
BLOCK_BYTES = ROW * BLOCK
TAPS = tuple(float(tap) for tap in WINDOW_TAPS)

Vector = Any  # a value of LLVM
Body = Callable[[Emitter, list[Any]], Any]


def instructions(name: str, parameters: Sequence[Any], result: Any, body: Body, inline: bool = False) -> Any:
    """Return a function for kernels whose body is written as instructions."""

    def typed(context: Any, *_: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            if inline:
                value = body(Emitter(builder, types.float32), list(values))
                return context.get_dummy_value() if value is None else value
            kinds = [context.get_value_type(kind) for kind in parameters]
            kind = ir.FunctionType(
                ir.VoidType() if result == types.void else context.get_value_type(result), kinds
            )
            function = cgutils.get_or_insert_function(builder.module, kind, f"undula_{name}")
            if function.is_declaration:
                function.linkage = "linkonce_odr"
                function.attributes.add("noinline")
                inside = ir.IRBuilder(function.append_basic_block("entry"))
                value = body(Emitter(inside, types.float32), list(function.args))
                inside.ret_void() if value is None else inside.ret(value)
            value = builder.call(function, values)
            return context.get_dummy_value() if result == types.void else value

        return result(*parameters), generate

    # Numba looks at the names of parameters, so the function needs as many as it takes.
    names = ", ".join(f"x{k}" for k in range(len(parameters)))
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def {name}(context, {names}):\n    return typed(context, {names})", scope)
    return intrinsic(scope[name])


def _load(emit: Emitter, place: Vector, lanes: int) -> Vector:
    return emit.load(emit.pointer(place), INT(0), lanes)


def _store(emit: Emitter, value: Vector, place: Vector, lanes: int) -> None:
    emit.store(value, emit.pointer(place), INT(0), lanes)


def _integers(emit: Emitter, place: Vector, lanes: int) -> Vector:
    kind = ir.VectorType(INDEX, lanes)
    return emit.b.load(emit.b.inttoptr(place, kind.as_pointer()), align=4)


def _store_integers(emit: Emitter, value: Vector, place: Vector) -> None:
    emit.b.store(value, emit.b.inttoptr(place, value.type.as_pointer()), align=4)


def _constant(value: float, lanes: int) -> Vector:
    return ir.Constant(ir.VectorType(ir.FloatType(), lanes), [float(value)] * lanes)


def _total(emit: Emitter, x: Vector) -> Vector:
    """Return the sum over all lanes."""
    kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), x.type])
    name = f"llvm.vector.reduce.fadd.v{x.type.count}f32"
    function = cgutils.get_or_insert_function(emit.b.module, kind, name)
    return emit.b.call(function, [ir.Constant(ir.FloatType(), -0.0), x], fastmath=("reassoc",))


# --- distances ------------------------------------------------------------------------------------


def _cell_distances(emit: Emitter, values: list[Any]) -> None:
    """Compute the distances of a row of cells from those with displacements of one row.

    ``cells`` are the samples of the references, ``others`` those that are moved down. What was computed for
    the row of cells above is in ``above``; sums of both are written to ``sums``.
    """
    cells, others, row_bytes, phase_bytes, vectors, above, sums, cell_bytes, side, offsets = values
    b = emit.b
    with emit.loop(INT(0), vectors, 1) as vector:
        moved = b.mul(vector, INT(4 * LANES))
        base = b.add(others, moved)
        references = [
            _load(
                emit,
                b.add(b.add(cells, moved), b.add(b.mul(row_bytes, INT(r)), b.mul(phase_bytes, INT(c)))),
                LANES,
            )
            for r in range(STEP)
            for c in range(STEP)
        ]
        with emit.loop(INT(0), side, 1) as right:
            totals: list[Any] = [None] * STEP
            listed = b.inttoptr(b.add(offsets, b.mul(right, INT(8 * STEP))), INT.as_pointer())
            for c in range(STEP):
                place = b.add(base, b.load(b.gep(listed, [INT(c)])))
                for r in range(STEP):
                    other = _load(emit, b.add(place, b.mul(row_bytes, INT(r))), LANES)
                    difference = b.fsub(references[STEP * r + c], other)
                    if totals[r] is None:
                        totals[r] = b.fmul(difference, difference)
                    else:
                        totals[r] = emit.add(totals[r], difference, difference)
            distance = b.fadd(b.fadd(totals[0], totals[1]), b.fadd(totals[2], totals[3]))
            place = b.add(above, b.add(b.mul(right, cell_bytes), moved))
            target = b.add(sums, b.add(b.mul(right, b.add(cell_bytes, INT(4 * LANES))), moved))
            _store(emit, b.fadd(distance, _load(emit, place, LANES)), target, LANES)
            _store(emit, distance, place, LANES)


def _compare(emit: Emitter, values: list[Any]) -> Any:
    """Write the keys of 16 blocks; return which of them are below their limits, as bits."""
    sums, limits, keys, number = values
    b = emit.b
    kind = ir.VectorType(INDEX, LANES)
    distance = b.fadd(_load(emit, sums, LANES), _load(emit, b.add(sums, INT(4)), LANES))
    leading = b.and_(b.bitcast(distance, kind), ir.Constant(kind, [-(1 << NUMBER_BITS)] * LANES))
    key = b.or_(leading, emit.spread(b.trunc(number, INDEX), LANES))
    below = b.icmp_signed("<", key, _integers(emit, limits, LANES))
    _store_integers(emit, key, keys)
    return b.zext(b.bitcast(below, ir.IntType(LANES)), INT)


def _insert(size: int) -> Body:
    def body(emit: Emitter, values: list[Any]) -> Any:
        """Insert a key into a sorted vector; return the last one."""
        place, key = values
        kind = ir.VectorType(INDEX, size)
        ordered = _integers(emit, place, size)
        least = ir.Constant(kind, [-(2**31)] * size)
        moved = emit.shuffle(ordered, least, [size, *range(size - 1)])
        ordered = emit.call("smin", ordered, emit.call("smax", moved, emit.spread(key, size)))
        _store_integers(emit, ordered, place)
        return emit.b.extract_element(ordered, INDEX(size - 1))

    return body


def _lowest(emit: Emitter, values: list[Any]) -> Any:
    """Return the place of the lowest bit that is set."""
    return emit.b.cttz(values[0], ir.Constant(ir.IntType(1), 1))


ADDRESS, FLOAT, KEY = types.int64, types.float32, types.int32
cell_distances = instructions("cell_distances", [ADDRESS] * 10, types.void, _cell_distances)
compare = instructions("compare", [ADDRESS] * 4, ADDRESS, _compare, inline=True)
insert16 = instructions("insert16", [ADDRESS, KEY], KEY, _insert(16), inline=True)
insert32 = instructions("insert32", [ADDRESS, KEY], KEY, _insert(32), inline=True)
lowest = instructions("lowest", [ADDRESS], ADDRESS, _lowest, inline=True)


# --- transforms of blocks -------------------------------------------------------------------------


def _combined(emit: Emitter, weights: Sequence[float], rows: Sequence[Vector]) -> Vector:
    """Return a weighted sum of rows."""
    total = None
    for weight, row in zip(weights, rows, strict=True):
        if abs(weight) < 1e-12:
            continue
        factor = _constant(weight, row.type.count)
        total = emit.b.fmul(row, factor) if total is None else emit.add(total, factor, row)
    return total


def _multiplied(emit: Emitter, matrix: Any, rows: Sequence[Vector]) -> list[Vector]:
    """Multiply rows by a matrix; matrices whose rows are even and odd by turns need half of the products."""
    b, half = emit.b, BLOCK // 2
    signs = np.array([1, -1] * half)
    if np.allclose(matrix, matrix[:, ::-1] * signs[:, None]):
        even = [b.fadd(rows[k], rows[BLOCK - 1 - k]) for k in range(half)]
        odd = [b.fsub(rows[k], rows[BLOCK - 1 - k]) for k in range(half)]
        return [_combined(emit, matrix[k, :half], odd if k % 2 else even) for k in range(BLOCK)]
    if np.allclose(matrix, matrix[::-1] * signs):
        even = [_combined(emit, matrix[k, 0::2], rows[0::2]) for k in range(half)]
        odd = [_combined(emit, matrix[k, 1::2], rows[1::2]) for k in range(half)]
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
        rows = [_load(emit, b.add(source, b.mul(row_bytes, INT(r))), BLOCK) for r in range(BLOCK)]
        rows = _multiplied(emit, matrix, _transposed(emit, _multiplied(emit, matrix, rows)))
        for r, row in enumerate(rows):
            _store(emit, row, b.add(target, INT(ROW * r)), BLOCK)

    return body


def _add_inverse(matrix: Any) -> Body:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Invert the transform of a block, and add it to the image, times the weight and the window."""
        source, target, row_bytes, weight = values
        b = emit.b
        rows = [_load(emit, b.add(source, INT(ROW * r)), BLOCK) for r in range(BLOCK)]
        rows = _multiplied(emit, matrix, _transposed(emit, _multiplied(emit, matrix, rows)))
        along = b.fmul(emit.spread(weight, BLOCK), ir.Constant(ir.VectorType(ir.FloatType(), BLOCK), TAPS))
        for r, row in enumerate(rows):
            place = b.add(target, b.mul(row_bytes, INT(r)))
            window = b.fmul(along, _constant(TAPS[r], BLOCK))
            _store(emit, emit.add(_load(emit, place, BLOCK), window, row), place, BLOCK)

    return body


def _pair(name: str, matrix: Any) -> tuple[Any, Any]:
    """Return the functions of a transform and of its inverse."""
    transform = instructions(f"transform_{name}", [ADDRESS] * 3, types.void, _transform(matrix))
    body = _add_inverse(np.linalg.inv(matrix))
    return transform, instructions(f"add_{name}", [ADDRESS] * 3 + [FLOAT], types.void, body)


transform_wavelet, add_wavelet = _pair("wavelet", wavelet_matrix())
transform_cosine, add_cosine = _pair("cosine", cosine_matrix())


# --- groups ---------------------------------------------------------------------------------------

HALF = 0.5**0.5


def _haar(emit: Emitter, blocks: Sequence[Vector]) -> list[Vector]:
    """Transform along a group: the approximation, then details, coarsest first."""
    b, low, details = emit.b, list(blocks), []
    while len(low) > 1:
        factor = _constant(HALF, low[0].type.count)
        pairs = list(zip(low[::2], low[1::2], strict=True))
        details = [b.fmul(b.fsub(x, y), factor) for x, y in pairs] + details
        low = [b.fmul(b.fadd(x, y), factor) for x, y in pairs]
    return low + details


def _inverse_haar(emit: Emitter, coefficients: Sequence[Vector]) -> list[Vector]:
    b, low = emit.b, list(coefficients[:1])
    while len(low) < len(coefficients):
        factor, details = _constant(HALF, low[0].type.count), coefficients[len(low) : 2 * len(low)]
        low = [
            b.fmul(part, factor)
            for x, y in zip(low, details, strict=True)
            for part in (b.fadd(x, y), b.fsub(x, y))
        ]
    return low


def _over_group(
    emit: Emitter, size: int, lanes: int, groups: Sequence[Any], work: Callable[[Any, list[list[Any]]], Any]
) -> Any:
    """Call ``work`` for some places of all blocks of groups at a time; store what it returns in the first.

    Return the sum of what it adds to a vector of zeros.
    """
    b = emit.b
    total = cgutils.alloca_once_value(b, _constant(0, lanes))
    with emit.loop(INT(0), INT(BLOCK * BLOCK // lanes), 1) as part:
        moved = b.mul(part, INT(4 * lanes))
        places = [[b.add(b.add(group, moved), INT(BLOCK_BYTES * k)) for k in range(size)] for group in groups]
        values = [[_load(emit, place, lanes) for place in listed] for listed in places]
        results, added = work(b.load(total), values)
        b.store(added, total)
        for value, place in zip(results, places[0], strict=True):
            _store(emit, value, place, lanes)
    return _total(emit, b.load(total))


def _threshold_group(size: int) -> Body:
    def body(emit: Emitter, values: list[Any]) -> Any:
        """Set small coefficients of a group to zero; return how many are left."""
        group, threshold = values
        b, lanes = emit.b, LANES
        limit, zero = emit.spread(threshold, lanes), _constant(0, lanes)
        kind = ir.VectorType(ir.FloatType(), lanes)
        magnitude = cgutils.get_or_insert_function(
            b.module, ir.FunctionType(kind, [kind]), f"llvm.fabs.v{lanes}f32"
        )

        def work(total: Any, values: list[list[Any]]) -> Any:
            kept = []
            for x in _haar(emit, values[0]):
                large = b.fcmp_ordered(">", b.call(magnitude, [x]), limit)
                total = b.fadd(total, b.select(large, _constant(1, lanes), zero))
                kept.append(b.select(large, x, zero))
            return _inverse_haar(emit, kept), total

        return _over_group(emit, size, lanes, [group], work)

    return body


def _weight_group(size: int) -> Body:
    def body(emit: Emitter, values: list[Any]) -> Any:
        """Apply the gains that the pilot determines to a group; return the sum of their squares."""
        group, pilot = values
        b, lanes = emit.b, LANES if size <= 16 else LANES // 2

        def work(total: Any, values: list[list[Any]]) -> Any:
            gains = []
            for x in _haar(emit, values[1]):
                energy = b.fmul(x, x)
                gain = b.fdiv(energy, b.fadd(energy, _constant(1, lanes)), flags=("arcp",))
                total = emit.add(total, gain, gain)
                gains.append(gain)
            shrunk = [b.fmul(x, gain) for x, gain in zip(_haar(emit, values[0]), gains, strict=True)]
            return _inverse_haar(emit, shrunk), total

        return _over_group(emit, size, lanes, [group, pilot], work)

    return body


threshold16, threshold32 = (
    instructions(f"threshold{size}", [ADDRESS, FLOAT], FLOAT, _threshold_group(size)) for size in (16, 32)
)
weight16, weight32 = (
    instructions(f"weight{size}", [ADDRESS, ADDRESS], FLOAT, _weight_group(size)) for size in (16, 32)
)


# --- a tile ---------------------------------------------------------------------------------------


@compiled
def fill_phases(table, like):
    """Copy the samples around a tile, apart in 4 phases; samples outside of the image are far away."""
    t = words(table)
    radius, height, width = t[RADIUS], t[HEIGHT], t[WIDTH]
    count = t[PHASE_BYTES] // 4
    left = t[LEFT] - 4 * ((radius + 3) // 4)
    first = STEP * t[BEGIN] - radius
    for row in range(STEP * (t[END] + 1) + 2 * radius - STEP * t[BEGIN]):
        y = first + row
        for c in range(STEP):
            out = reals(t[PHASES] + (STEP * row + c) * t[PHASE_BYTES], like)
            if y < 0 or y >= height:
                for j in range(count):
                    out[j] = FAR
                continue
            x = reals(t[MATCH] + y * t[ROW_BYTES], like)
            begin = min(count, max(0, (-left - c + 3) // 4))
            end = max(begin, min(count, (width - left - c + 3) // 4))
            for j in range(begin):
                out[j] = FAR
            for j in range(begin, end):
                out[j] = x[left + c + 4 * j]
            for j in range(end, count):
                out[j] = FAR


@compiled
def find_groups(table, row, like):
    """Find the groups of a row of references; the first call for a tile only computes distances of cells."""
    t = words(table)
    side, size, columns, vectors = t[SIDE], t[BLOCKS], t[COLUMNS], t[VECTORS]
    limits, keys = reals(t[LIMITS], KEY_LIKE), reals(t[KEYS], KEY_LIKE)
    numbers = words(t[NUMBERS])
    row_bytes = STEP * t[PHASE_BYTES]
    cell_bytes = t[CELL_BYTES]
    for j in range(LANES * vectors):
        limits[j] = MOST if j < columns else np.int32(-2147483648)
    for j in range(columns * size):
        keys[j] = MOST
    candidates = t[KEYS] + 4 * columns * size  # the keys of a vector of blocks
    fresh = reals(candidates, KEY_LIKE)
    inside = 4 * ((t[RADIUS] + 3) // 4)
    cells = t[PHASES] + (STEP * (row - t[BEGIN]) + t[RADIUS]) * row_bytes + inside
    for down in range(side):
        others = cells + numbers[side * side + down] * row_bytes
        above = t[SUMS] + side * (cell_bytes + 4 * LANES) + down * side * cell_bytes
        cell_distances(
            cells, others, row_bytes, t[PHASE_BYTES], vectors, above, t[SUMS], cell_bytes, side, t[OFFSETS]
        )
        if row == t[BEGIN]:
            continue
        for right in range(side):
            sums = t[SUMS] + right * (cell_bytes + 4 * LANES)
            number = numbers[down * side + right]
            for vector in range(vectors):
                moved = 4 * LANES * vector
                below = compare(sums + moved, t[LIMITS] + moved, candidates, number)
                while below:
                    lane = lowest(below)
                    below &= below - 1
                    j = LANES * vector + lane
                    if size == 16:
                        limits[j] = insert16(t[KEYS] + 64 * j, fresh[lane])
                    else:
                        limits[j] = insert32(t[KEYS] + 128 * j, fresh[lane])


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
        number = np.int64(chosen[k] & mask)
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
        number = np.int64(chosen[k] & mask)
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
    fill_phases(table, like)
    above = reals(t[SUMS], like)
    for k in range(t[SIDE] * ((t[SIDE] + 1) * t[CELL_BYTES] // 4 + LANES)):
        above[k] = 0
    for k in range(t[PLANES] * t[TOTAL_BYTES] // 4):
        reals(t[TOTALS], like)[k] = 0
        reals(t[WEIGHTS], like)[k] = 0
    for row in range(t[BEGIN], t[END] + 1):
        find_groups(table, row, like)
        if row == t[BEGIN]:
            continue
        for j in range(t[COLUMNS]):
            for plane in range(t[PLANES]):
                group = t[KEYS] + 4 * t[BLOCKS] * j
                filter_group(table, plane, STEP * (row - 1), t[LEFT] + STEP * j, group, like)


@compiled
def weigh_rows(totals, weights, out, begin, end, width, scratch, like):
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
        x, result = reals(totals + 4 * y * width, like), reals(out + 4 * y * width, like)
        for j in range(width):
            result[j] = x[j] / total[j]
