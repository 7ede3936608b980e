"""Transforms of the blocks of groups, written as vector instructions for LLVM.

Blocks of images have 8 rows of 8 samples, and two of them are transformed at the same time where a vector has
16 samples. Blocks of volumes have 4 layers, each of which is a vector of 16 samples. Between the transforms
along two axes, vectors are transposed. Coefficients stay in the order in which the last transform leaves
them, which :data:`BLOCK_ORDER` and :data:`CUBE_ORDER` describe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from ...lowering.collaborative import (
    BLOCK,
    BLOCK_SAMPLES,
    CUBE,
    CUBE_TAPS,
    WINDOW_TAPS,
    cosine_matrix,
    wavelet_matrix,
)
from .collaborative_instructions import ADDRESS, FLOAT, Body, Vector, constant, function, load, store
from .collaborative_layout import LANES
from .emitter import INT, Emitter

__all__ = ["BLOCK_BYTES", "BLOCK_ORDER", "BLOCK_TRANSFORMS", "CUBE_ORDER", "CUBE_TRANSFORMS", "Transforms"]

BLOCK_BYTES = 4 * BLOCK_SAMPLES
TOGETHER = min(2, LANES // BLOCK)  # blocks of images that are transformed at the same time
PLANE = CUBE * CUBE  # samples of a layer of a volume's block
# The axes of coefficients in memory: those of images are transposed; of volumes, columns are the first axis.
BLOCK_ORDER, CUBE_ORDER = (1, 0), (2, 0, 1)


class Transforms(NamedTuple):
    """The functions of both steps for blocks of images, or of volumes.

    A ``transform_…`` function takes the addresses of two blocks, the bytes of a row and of a layer, and the
    addresses of two results. An ``add_…`` function takes the addresses of two blocks of coefficients and of
    the sums that they are added to, unless that is 0; the bytes of a row and of a layer, and a weight.
    """

    transform_wavelet: Any
    add_wavelet: Any
    transform_cosine: Any
    add_cosine: Any


# --- matrices -------------------------------------------------------------------------------------


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


def _exchanged(emit: Emitter, vectors: Sequence[Vector], bits: Sequence[tuple[int, int]]) -> list[Vector]:
    """Exchange bits of the numbers of vectors with bits of the numbers of their lanes."""
    vectors = list(vectors)
    lanes = range(vectors[0].type.count)
    for vector_bit, bit in bits:
        low = [j - bit + len(lanes) if j & bit else j for j in lanes]
        high = [j + len(lanes) if j & bit else j + bit for j in lanes]
        for k in [k for k in range(len(vectors)) if not k & vector_bit]:
            x, y = vectors[k], vectors[k + vector_bit]
            vectors[k], vectors[k + vector_bit] = emit.shuffle(x, y, low), emit.shuffle(x, y, high)
    return vectors


def _joined(emit: Emitter, parts: Sequence[Vector]) -> Vector:
    """Return vectors, a power of two of them, one behind the other."""
    while len(parts) > 1:
        lanes = list(range(2 * parts[0].type.count))
        parts = [emit.shuffle(x, y, lanes) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _part(emit: Emitter, vector: Vector, number: int, lanes: int) -> Vector:
    return emit.shuffle(vector, vector, list(range(number * lanes, (number + 1) * lanes)))


@contextmanager
def _unless_zero(emit: Emitter, target: Vector) -> Iterator[None]:
    """Run what follows only if there is a target."""
    with emit.b.if_then(emit.b.icmp_unsigned("!=", target, INT(0))):
        yield


# --- images ---------------------------------------------------------------------------------------

TRANSPOSED = ((1, 1), (2, 2), (4, 4))


def _transform_blocks(matrix: Any) -> Body:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Transform two blocks along both axes."""
        first, second, row_bytes, _, first_target, second_target = values
        b, pairs = emit.b, [(first, first_target), (second, second_target)]
        for k in range(0, len(pairs), TOGETHER):
            sources, targets = zip(*pairs[k : k + TOGETHER], strict=True)
            rows = [
                _joined(emit, [load(emit, b.add(x, b.mul(row_bytes, INT(r))), BLOCK) for x in sources])
                for r in range(BLOCK)
            ]
            rows = _multiplied(emit, matrix, rows)
            rows = _multiplied(emit, matrix, _exchanged(emit, rows, TRANSPOSED))
            for number, target in enumerate(targets):
                for r, row in enumerate(rows):
                    store(emit, _part(emit, row, number, BLOCK), b.add(target, INT(4 * BLOCK * r)), BLOCK)

    return body


def _add_blocks(matrix: Any) -> Body:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Invert the transforms of two blocks, and add them to sums, times the weight and the window."""
        first, second, first_target, second_target, row_bytes, _, weight = values
        b, pairs = emit.b, [(first, first_target), (second, second_target)]
        for k in range(0, len(pairs), TOGETHER):
            sources, targets = zip(*pairs[k : k + TOGETHER], strict=True)
            rows = [
                _joined(emit, [load(emit, b.add(x, INT(4 * BLOCK * r)), BLOCK) for x in sources])
                for r in range(BLOCK)
            ]
            rows = _multiplied(emit, matrix, rows)
            rows = _multiplied(emit, matrix, _exchanged(emit, rows, TRANSPOSED))
            lanes = BLOCK * len(sources)
            taps = ir.Constant(
                ir.VectorType(ir.FloatType(), lanes), [*map(float, WINDOW_TAPS)] * len(sources)
            )
            along = b.fmul(emit.spread(weight, lanes), taps)
            rows = [
                b.fmul(row, b.fmul(along, constant(float(tap), lanes)))
                for row, tap in zip(rows, WINDOW_TAPS, strict=True)
            ]
            for number, target in enumerate(targets):
                with _unless_zero(emit, target):
                    for r, row in enumerate(rows):
                        place = b.add(target, b.mul(row_bytes, INT(r)))
                        added = b.fadd(load(emit, place, BLOCK), _part(emit, row, number, BLOCK))
                        store(emit, added, place, BLOCK)

    return body


# --- volumes --------------------------------------------------------------------------------------

LAYERS_WITH_ROWS, ROWS_WITH_COLUMNS = ((1, CUBE), (2, 2 * CUBE)), ((1, 1), (2, 2))


def _transform_cubes(matrix: Any) -> Body:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Transform two blocks along their three axes."""
        first, second, row_bytes, layer_bytes, first_target, second_target = values
        b = emit.b
        for source, target in ((first, first_target), (second, second_target)):
            layers = []
            for z in range(CUBE):
                place = b.add(source, b.mul(layer_bytes, INT(z)))
                rows = [load(emit, b.add(place, b.mul(row_bytes, INT(r))), CUBE) for r in range(CUBE)]
                layers.append(_joined(emit, rows))
            rows = _exchanged(emit, _multiplied(emit, matrix, layers), LAYERS_WITH_ROWS)
            columns = _exchanged(emit, _multiplied(emit, matrix, rows), ROWS_WITH_COLUMNS)
            for k, column in enumerate(_multiplied(emit, matrix, columns)):
                store(emit, column, b.add(target, INT(4 * PLANE * k)), PLANE)

    return body


def _add_cubes(matrix: Any) -> Body:
    def body(emit: Emitter, values: list[Any]) -> None:
        """Invert the transforms of two blocks, and add them to sums, times the weight and the window."""
        first, second, first_target, second_target, row_bytes, layer_bytes, weight = values
        b = emit.b
        window = np.outer(CUBE_TAPS, CUBE_TAPS).reshape(-1)
        taps = ir.Constant(ir.VectorType(ir.FloatType(), PLANE), [*map(float, window)])
        across = b.fmul(emit.spread(weight, PLANE), taps)
        for source, target in ((first, first_target), (second, second_target)):
            columns = [load(emit, b.add(source, INT(4 * PLANE * k)), PLANE) for k in range(CUBE)]
            rows = _exchanged(emit, _multiplied(emit, matrix, columns), ROWS_WITH_COLUMNS)
            layers = _exchanged(emit, _multiplied(emit, matrix, rows), LAYERS_WITH_ROWS)
            with _unless_zero(emit, target):
                for z, layer in enumerate(_multiplied(emit, matrix, layers)):
                    layer = b.fmul(layer, b.fmul(across, constant(CUBE_TAPS[z], PLANE)))
                    place = b.add(target, b.mul(layer_bytes, INT(z)))
                    for r in range(CUBE):
                        row = b.add(place, b.mul(row_bytes, INT(r)))
                        added = b.fadd(load(emit, row, CUBE), _part(emit, layer, r, CUBE))
                        store(emit, added, row, CUBE)

    return body


def _transforms(
    kind: str, side: int, transform: Callable[[Any], Body], add: Callable[[Any], Body]
) -> Transforms:
    functions = []
    for name, matrix in (("wavelet", wavelet_matrix(side)), ("cosine", cosine_matrix(side))):
        functions.append(function(f"transform_{kind}_{name}", [ADDRESS] * 6, types.void, transform(matrix)))
        inverse = add(np.linalg.inv(matrix))
        functions.append(function(f"add_{kind}_{name}", [*[ADDRESS] * 6, FLOAT], types.void, inverse))
    return Transforms(*functions)


BLOCK_TRANSFORMS = _transforms("block", BLOCK, _transform_blocks, _add_blocks)
CUBE_TRANSFORMS = _transforms("cube", CUBE, _transform_cubes, _add_cubes)
