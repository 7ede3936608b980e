"""Dispatch of transforms: from arrays of any library to an engine, and back.

:func:`decompose` and :func:`recompose` infer the shapes of all levels, convert arrays to what the engine
reads, allocate or check the results, and let the engine run. Coefficients are keyed: the approximation, then
the details of each level as a dictionary, coarsest first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import DASK, JAX, NUMPY, TORCH
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.growth import Growth, gains_back, growth
from ..lowering.mixing import Mixing
from ..lowering.nesting import arrays_of, flat_bands, out_name, shapes_of
from ..lowering.spec import NO_COEFFICIENTS, BandTree, TransformSpec
from . import base, cpu
from .base import DEFAULT_OPTIONS, Engine, RunCache, TransformOptions, split_backend
from .chunked.engine import ChunkedEngine, chunked_engine
from .cpu.engine import CPU
from .gpu.engine import library_engine
from .tensors.engine import TensorEngine, tensor_engine
from .tensors.jax_engine import jax_engine

__all__ = [
    "decompose",
    "decompose_mixed",
    "engine_for",
    "grown",
    "operator_engine",
    "recompose",
    "surely_fit",
]

Array = NDArray[Any]
Shape = tuple[int, ...]


def engine_for(arrays: Sequence[Any], backend: str = "auto") -> Engine:
    """Return the engine that transforms arrays where they are, or where ``backend`` says.

    Parameters
    ----------
    arrays : sequence
        Arrays as the caller passed them; None among them is ignored.
    backend : str
        ``auto``, or as :func:`~undula.engines.base.engine` takes it.
    """
    for x in arrays:
        if x is not None and type(x) is not np.ndarray:
            break
    else:
        return base.engine(backend)
    if any(DASK.owns(x) for x in arrays):
        return chunked_engine(backend)
    if any(TORCH.owns(x) and TORCH.is_traced(x) for x in arrays):
        return tensor_engine(backend)
    if any(JAX.owns(x) and JAX.is_traced(x) for x in arrays):
        return jax_engine(backend)
    on_device = library_engine(arrays)
    if on_device is None:
        return base.engine(backend)
    name, _ = split_backend(backend)
    if name not in ("auto", on_device.name):
        raise ArgumentError(
            f"an array of {on_device.library.name} is transformed by backend {on_device.name!r} where it is,"
            f" not by {backend!r}; give a NumPy array to have it brought there"
        )
    return on_device


def operator_engine(x: Any, backend: str = "auto") -> TensorEngine:
    """Return the engine that transforms an array by operators that its library knows."""
    return tensor_engine(backend) if TORCH.owns(x) else jax_engine(backend)


def _refuse_adjoints(spec: TransformSpec) -> None:
    if spec.dual:
        raise ArgumentTypeError("adjoints of Dask arrays are not computed; pass arrays in memory")


# --- forward --------------------------------------------------------------------------------------


def decompose(
    engine: Engine,
    spec: TransformSpec,
    x: Any,
    levels: int,
    out: Any = None,
    keyed: Sequence[Any] | None = None,
    *,
    options: TransformOptions = DEFAULT_OPTIONS,
    padded: Shape | None = None,
    integers: np.dtype[Any] | None = None,
    cache: RunCache | None = None,
) -> list[Any]:
    """Return the coefficients of samples.

    Parameters
    ----------
    engine : Engine
    spec : TransformSpec
    x : array
        The samples, an array of the engine's library.
    levels : int
    out : optional
        What the caller passed for the results.
    keyed : list, optional
        The same with details by key; None if it is nested in another way.
    options : TransformOptions, optional
    padded : tuple of int, optional
        A larger shape, up to which samples are padded with zeros.
    integers : dtype, optional
        Dtype of the coefficients of an LWT of integers.
    cache : RunCache, optional
        What a plan keeps between runs.
    """
    if isinstance(engine, ChunkedEngine):
        _refuse_adjoints(spec)
        return engine.decompose(spec, x, levels, out, integers)
    if isinstance(engine, TensorEngine):
        return engine.decompose(spec, x, levels, out, padded)
    given, library = x, engine.library
    x = engine.samples(x) if integers is None else engine.integers(x, integers)
    dtype = engine.result_dtype(np.dtype(library.dtype(x))) if integers is None else integers
    shape = library.shape(x)
    if levels == 0:
        shape = padded or shape
        target = None if out is None else _checked_out(engine, [shape], dtype, out, keyed, given)[0]
        return [engine.copy(x, shape, dtype, target)]
    tree = BandTree.of_samples(spec, padded or shape, levels)
    if out is None:
        order = engine.memory_order([x])
        if order is not None:
            return _in_order(order, tree, x, engine, dtype, options)
        bands = engine.empty_bands(tree, dtype, x)
    else:
        bands = _checked_out(engine, tree.shapes, dtype, out, keyed, given)
    if math.prod(shape):
        engine.run(False, tree, [x, *bands], dtype, options, out is None, cache)
    return tree.by_key(bands)


def _in_order(
    order: list[int], tree: BandTree, x: Any, engine: Engine, dtype: np.dtype[Any], options: TransformOptions
) -> list[Any]:
    """Return the coefficients of samples whose axes are in another order in memory."""
    turned, inverse = _turned(tree, order), tuple(order.index(axis) for axis in range(len(order)))
    x = engine.library.transpose(x, tuple(order))
    bands = engine.empty_bands(turned, dtype, x)
    engine.run(False, turned, [x, *bands], dtype, options)
    return tree.by_key([engine.library.transpose(band, inverse) for band in bands])


def _turned(tree: BandTree, order: Sequence[int]) -> BandTree:
    shapes = tuple(tuple(shape[axis] for axis in order) for shape in tree.sample_shapes)
    return BandTree(tree.spec.transposed(order), shapes)


def _checked_out(
    engine: Engine,
    shapes: Sequence[Any],
    dtype: np.dtype[Any],
    out: Any,
    keyed: Sequence[Any] | None,
    given: Any,
) -> list[Any]:
    """Return arrays for results in flat order, or raise an error where one does not fit."""
    if keyed is None or len(keyed) != len(shapes):
        got = f"{len(out)} entries" if isinstance(out, (list, tuple)) else type(out).__name__
        raise ArgumentError(
            f"out must be nested as the result is, [approximation, details of {len(shapes) - 1} level(s)];"
            f" got {got}"
        )
    before: list[Any] = [given]
    for number, (part, shape) in enumerate(zip(keyed, shapes, strict=True)):
        parts = {"": (part, shape)}
        if number:
            if not isinstance(part, Mapping) or sorted(part) != sorted(shape):
                raise ArgumentError(f"out has to hold the details {sorted(shape)} at place {number}")
            parts = {key: (part[key], shape[key]) for key in shape}
        for key, (array, expected) in parts.items():
            name = out_name(out, number, key)
            before.append(engine.check_out(array, expected, dtype, before, name))
    return before[1:]


def decompose_mixed(
    spec: TransformSpec, image: Array, mixing: Mixing, levels: int, dtype: np.dtype[Any]
) -> list[Any]:
    """Decompose planes ``(P, H, W)`` that are made of the channels of an image, ``(H, W, C)``, on the CPU.

    The first level makes them row by row as it needs them, if it can, so that they are never all in memory.
    """
    shape = (mixing.planes, *image.shape[:2])
    tree = BandTree.of_samples(spec, shape, levels)
    if not levels or not cpu.mixes(dtype, *CPU.operators(tree, dtype)[0]):
        planes = cpu.empty(shape, dtype)
        cpu.mix_planes(image, mixing, planes)
        return decompose(CPU, spec, planes, levels, integers=dtype if dtype.kind == "i" else None)
    bands = [cpu.empty(part, dtype) for part in tree.flat_shapes]
    views = [NUMPY.view(image), *tree.contiguous_views(dtype.name)[1:]]
    CPU.compile(False, tree, dtype, views, TransformOptions(mixing=mixing)).run([image, *bands])
    return tree.by_key(bands)


# --- back -----------------------------------------------------------------------------------------


def recompose(
    engine: Engine,
    spec: TransformSpec,
    coeffs: Sequence[Any],
    shape: Shape | None = None,
    out: Any = None,
    *,
    options: TransformOptions = DEFAULT_OPTIONS,
    cut: Shape | None = None,
    dtype: np.dtype[Any] | None = None,
    result: np.dtype[Any] | None = None,
    limits: Any = None,
    cache: RunCache | None = None,
    checked: bool = True,
) -> Any:
    """Return the samples of coefficients: the inverse of :func:`decompose`.

    Parameters
    ----------
    engine : Engine
    spec : TransformSpec
    coeffs : list
        Keyed; None in place of an array stands for zeros.
    shape : tuple of int, optional
        Shape of the samples, needed for odd lengths.
    out : array, optional
        Array for the result.
    options : TransformOptions, optional
    cut : tuple of int, optional
        Shape of the part of the samples to return, from the first sample on.
    dtype : dtype, optional
        Dtype in which to transform; that of the coefficients if not given.
    result : dtype, optional
        Dtype of the samples, if it is not that of the coefficients.
    limits : array, optional
        Limits of the threshold rule in the options.
    cache : RunCache, optional
        What a plan keeps between runs.
    checked : bool, default True
        Whether integers that their dtype does not hold are corrected, or are an error.
    """
    if isinstance(engine, ChunkedEngine):
        _refuse_adjoints(spec)
        return engine.recompose(spec, coeffs, shape, out)
    if isinstance(engine, TensorEngine):
        return engine.recompose(spec, coeffs, shape, out, cut, dtype, limits)
    library = engine.library
    given = [band for band in arrays_of(coeffs) if band is not None]
    if not given:
        raise ArgumentError(NO_COEFFICIENTS)
    common = engine.coefficient_dtype(spec.lifted, {np.dtype(library.dtype(band)) for band in given})
    if dtype is None:
        dtype = common
    elif common.kind == "c" and dtype.kind != "c":
        raise ArgumentTypeError(f"this plan is transformed in {dtype}, got coefficients of {common}")
    flat = flat_bands(coeffs, spec.keys[1:])
    ready = [None if band is None else engine.coefficients(band, dtype) for band in flat]
    tree, low = BandTree.of_bands(spec, shapes_of(coeffs, library), shape)
    if tree.levels == 0:
        lengths = cut or library.shape(ready[0])
        if out is not None:
            engine.check_out(out, lengths, dtype, given, "out")
        return engine.copy(ready[0], lengths, dtype, out)
    # Levels without any coefficients are left out.
    details = ready[len(ready) - tree.levels * (len(spec.keys) - 1) :]
    approximation = ready[0]
    if approximation is not None and library.shape(approximation) != low:
        approximation = approximation[tuple(slice(n) for n in low or ())]
    bands = [approximation, *details]
    lengths = cut or tree.sample_shapes[0]
    rule_limits = [] if limits is None else [limits]
    order = engine.memory_order(bands) if out is None else None
    if order is not None:
        lengths = tuple(lengths[axis] for axis in order)
        tree = _turned(tree, order)
        bands = [None if band is None else library.transpose(band, tuple(order)) for band in bands]
    if out is None:
        x = engine.empty(lengths, result or dtype, given[0])
    else:
        x = engine.check_out(out, lengths, dtype, given, "out")
    if math.prod(tree.sample_shapes[0]):
        engine.run(True, tree, [x, *bands, *rule_limits], dtype, options, out is None, cache)
    if order is not None:
        x = library.transpose(x, tuple(order.index(axis) for axis in range(len(order))))
    if checked and engine.exact and spec.lifted and dtype.kind in "iu" and not surely_fit(spec, coeffs, x):
        _check_integers(engine, spec, coeffs, x)
    return x


# --- integers -------------------------------------------------------------------------------------


def _check_integers(engine: Engine, spec: TransformSpec, coeffs: Sequence[Any], x: Array) -> None:
    """Correct samples that a dtype holds, although not everything on the way to them, or raise an error."""
    if x.dtype.itemsize == 8:
        _check_way_back(engine, spec, x, coeffs)
        return
    wider = np.dtype(f"i{2 * x.dtype.itemsize}")
    details = [{key: band.astype(wider) for key, band in part.items()} for part in coeffs[1:]]
    exact = recompose(engine, spec, [coeffs[0].astype(wider), *details], x.shape)
    least, most, info = int(exact.min()), int(exact.max()), np.iinfo(x.dtype)
    if least < info.min or most > info.max:
        raise ArgumentError(
            f"these {x.dtype} coefficients lead to samples from {least} to {most}, which {x.dtype} does not"
            f" hold; pass coefficients of {wider}"
        )
    x[...] = exact


def surely_fit(spec: TransformSpec, coeffs: Sequence[Any], x: Array) -> bool:
    """Return whether no integer on the way back from such coefficients can exceed the dtype of ``x``."""
    weights, error = _gains_back(spec, x.shape, len(coeffs) - 1, 8 * x.itemsize)
    return sum(map(mul, weights, cpu.largest_of(flat_bands(coeffs, spec.keys[1:]))), error) <= 1


@lru_cache(maxsize=512)
def _gains_back(spec: TransformSpec, shape: Shape, levels: int, bits: int) -> tuple[list[float], float]:
    lengths = tuple(shape[axis] for axis in spec.axes)
    weights, error = gains_back(spec.wavelets, spec.modes, lengths, levels, bits)
    return weights.tolist(), error


def _check_way_back(engine: Engine, spec: TransformSpec, x: Array, coeffs: Sequence[Any]) -> None:
    """Raise an error unless these samples, transformed, give just these coefficients."""
    levels = len(coeffs) - 1
    if grown(spec, x.shape, levels).fits(cpu.largest(x), 8 * x.itemsize):
        again = decompose(engine, spec, x, levels, integers=x.dtype)
        same = [np.array_equal(again[0], coeffs[0])]
        for computed, given in zip(again[1:], coeffs[1:], strict=True):
            same += [np.array_equal(computed[key], band) for key, band in given.items()]
        if all(same):
            return
    raise ArgumentError(
        f"these coefficients lead to numbers that {x.dtype} does not hold; scale them down before the inverse"
    )


@lru_cache(maxsize=512)
def grown(spec: TransformSpec, shape: Shape, levels: int) -> Growth:
    """Return how large numbers get along lines of these lengths."""
    return growth(spec.wavelets, spec.modes, tuple(shape[axis] for axis in spec.axes), levels)
