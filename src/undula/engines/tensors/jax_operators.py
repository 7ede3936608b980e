"""Transforms as linear operators of JAX; importing this registers them.

JAX knows the transpose of each operator, which is the other operator with the adjoint spec, and how to batch
it. So all of its transformations apply, of any order. What runs is chosen when a program is compiled: kernels
of this package for large arrays on the CPU, and elsewhere expressions of ``jax.numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ...lowering.nesting import keyed_bands
from ...lowering.spec import BandTree
from ..base import engine
from ..dispatch import decompose as decompose_arrays
from ..dispatch import recompose as recompose_arrays
from .encoding import adjoint_of, decoded, moved
from .expressions import decompose_expression, recompose_expression

__all__ = ["decompose", "recompose"]

MIN_KERNEL_SAMPLES = 1 << 16  # A callback to the host takes longer than the expressions of fewer samples.
KERNEL_DTYPES = ("float32", "float64", "complex64", "complex128")

Shape = tuple[int, ...]

_decompose = Primitive("undula_decompose")
_recompose = Primitive("undula_recompose")
_decompose.multiple_results = _recompose.multiple_results = True


def decompose(x: Any, transform: str, levels: int) -> list[Any]:
    """Return the bands of a value in flat order."""
    return list(_decompose.bind(x, transform=transform, levels=levels))


def recompose(bands: Sequence[Any], transform: str, shape: Shape) -> Any:
    """Return the samples of bands in flat order, none of them missing."""
    (x,) = _recompose.bind(*bands, transform=transform, shape=tuple(shape))
    return x


def _tree(transform: str, shape: Shape, bands: int) -> BandTree:
    spec = decoded(transform)
    return BandTree.of_samples(spec, shape, (bands - 1) // (len(spec.keys) - 1))


@lru_cache(maxsize=512)
def _compiled(operator: Any, **parameters: Any) -> Any:
    return jax.jit(partial(operator.bind, **parameters))


for operator in (_decompose, _recompose):
    operator.def_impl(lambda *values, _op=operator, **named: _compiled(_op, **named)(*values))


# --- shapes ---------------------------------------------------------------------------------------


@_decompose.def_abstract_eval
def _decompose_shapes(x: Any, *, transform: str, levels: int) -> list[Any]:
    tree = BandTree.of_samples(decoded(transform), x.shape, levels)
    return [x.update(shape=shape) for shape in tree.flat_shapes]


@_recompose.def_abstract_eval
def _recompose_shapes(*bands: Any, transform: str, shape: Shape) -> list[Any]:
    return [bands[0].update(shape=shape)]


# --- derivatives and batches ----------------------------------------------------------------------


def _decompose_transposed(cotangents: Sequence[Any], x: Any, *, transform: str, levels: int) -> list[Any]:
    bands = [ad.instantiate_zeros(part) for part in cotangents]
    return [recompose(bands, adjoint_of(transform), x.aval.shape)]


def _recompose_transposed(cotangents: Sequence[Any], *bands: Any, transform: str, shape: Shape) -> list[Any]:
    (x,) = cotangents
    levels = _tree(transform, shape, len(bands)).levels
    results = decompose(ad.instantiate_zeros(x), adjoint_of(transform), levels)
    pairs = zip(results, bands, strict=True)
    return [result if ad.is_undefined_primal(band) else None for result, band in pairs]


ad.deflinear2(_decompose, _decompose_transposed)
ad.deflinear2(_recompose, _recompose_transposed)


def _decompose_batch(values: Any, places: Any, *, transform: str, levels: int) -> tuple[list[Any], list[int]]:
    (x,), (place,) = values, places
    bands = decompose(x, moved(transform, place), levels)
    return bands, [place] * len(bands)


def _recompose_batch(
    values: Any, places: Any, *, transform: str, shape: Shape
) -> tuple[list[Any], list[int]]:
    count = next(x.shape[place] for x, place in zip(values, places, strict=True) if place is not None)
    bands = [batching.bdim_at_front(x, place, count) for x, place in zip(values, places, strict=True)]
    return [recompose(bands, moved(transform, 0), (count, *shape))], [0]


batching.primitive_batchers[_decompose] = _decompose_batch
batching.primitive_batchers[_recompose] = _recompose_batch


# --- expressions ----------------------------------------------------------------------------------


def _decompose_as_expression(x: Any, *, transform: str, levels: int) -> list[Any]:
    tree = BandTree.of_samples(decoded(transform), x.shape, levels)
    if not tree.spec.dual:
        return decompose_expression(jax.numpy, tree, x)
    inverse = BandTree.of_samples(decoded(adjoint_of(transform)), x.shape, levels)
    bands = [jax.ShapeDtypeStruct(shape, x.dtype) for shape in tree.flat_shapes]
    transposed = jax.linear_transpose(lambda *y: recompose_expression(jax.numpy, inverse, y), *bands)
    return list(transposed(x))


def _recompose_as_expression(*bands: Any, transform: str, shape: Shape) -> list[Any]:
    tree = _tree(transform, shape, len(bands))
    if not tree.spec.dual:
        return [recompose_expression(jax.numpy, tree, bands)]
    forward = BandTree.of_samples(decoded(adjoint_of(transform)), shape, tree.levels)
    x = jax.ShapeDtypeStruct(shape, bands[0].dtype)
    transposed = jax.linear_transpose(lambda x: decompose_expression(jax.numpy, forward, x), x)
    return list(transposed(list(bands)))


# --- kernels --------------------------------------------------------------------------------------


def _decompose_on_host(x: Any, *, transform: str, levels: int) -> list[Any]:
    if not _suits_kernels(x.shape, x.dtype):
        return _decompose_as_expression(x, transform=transform, levels=levels)

    def run(x: Any) -> list[Any]:
        coeffs = decompose_arrays(engine("cpu"), decoded(transform), np.asarray(x), levels)
        return [coeffs[0], *(band for part in coeffs[1:] for band in part.values())]

    tree = BandTree.of_samples(decoded(transform), x.shape, levels)
    shapes = [jax.ShapeDtypeStruct(shape, x.dtype) for shape in tree.flat_shapes]
    return list(jax.pure_callback(run, shapes, x))


def _recompose_on_host(*bands: Any, transform: str, shape: Shape) -> list[Any]:
    dtype = bands[0].dtype
    if not _suits_kernels(shape, dtype):
        return _recompose_as_expression(*bands, transform=transform, shape=shape)

    def run(*bands: Any) -> Any:
        spec = decoded(transform)
        keyed = keyed_bands([np.asarray(band) for band in bands], spec.keys[1:])
        return recompose_arrays(engine("cpu"), spec, keyed, shape)

    return [jax.pure_callback(run, jax.ShapeDtypeStruct(shape, dtype), *bands)]


def _suits_kernels(shape: Shape, dtype: Any) -> bool:
    return math.prod(shape) >= MIN_KERNEL_SAMPLES and str(dtype) in KERNEL_DTYPES


for operator, expression, kernels in (
    (_decompose, _decompose_as_expression, _decompose_on_host),
    (_recompose, _recompose_as_expression, _recompose_on_host),
):
    mlir.register_lowering(operator, mlir.lower_fun(expression, multiple_results=True))
    mlir.register_lowering(operator, mlir.lower_fun(kernels, multiple_results=True), platform="cpu")
