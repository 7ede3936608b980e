"""Calls that were compiled for earlier arguments, to be looked up when equal ones come.

A call is compiled for NumPy arrays of one layout, or for tensors of one shape. It allocates the results, runs
a function of an engine, and nests the results; nothing is checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import library_of, result_dtype
from ..engines.base import UnfollowableStridesError
from ..engines.cpu.engine import ForwardCall, InverseCall
from ..engines.dispatch import operator_engine
from ..lowering.nesting import Form, flat_bands, shapes_of
from ..lowering.spec import BandTree, TransformSpec, checked_level, exact_types, is_exact_key

__all__ = [
    "CALLS",
    "KeptForward",
    "bands_layout",
    "call_key",
    "compile_forward",
    "compile_inverse",
    "keep_call",
]

MAX_CALLS = 2048
# What was compiled, by its key: a KeptForward, or the function of bands that compile_inverse returns.
CALLS: dict[Any, Any] = {}


class KeptForward(NamedTuple):
    """A transform that was compiled.

    Parameters
    ----------
    call : callable
        A function of the array that returns its coefficients, or None if it cannot read the array.
    warn : callable, optional
        What each call has to warn of: that there are more levels than are useful.
    """

    call: Callable[[Any], Any]
    warn: Callable[..., Any] | None = None


def call_key(name: str, wavelet: Any, mode: Any, axes: Any, rest: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the key of a call of a function; ``rest`` is what it depends on besides these arguments."""
    key = (name, wavelet, mode, axes, rest, type(mode), type(axes))
    if type(axes) is tuple or type(mode) is tuple:
        return *key, exact_types(mode), exact_types(axes)
    return key


def keep_call(key: tuple[Any, ...], call: Any) -> None:
    """Keep a compiled call, unless an argument could compare equal to one of another type."""
    _, wavelet, mode, axes, *_ = key
    if not is_exact_key(wavelet, mode, axes):
        return
    if len(CALLS) >= MAX_CALLS:
        CALLS.clear()
    CALLS[key] = call


def compile_forward(form: Form, spec: TransformSpec, x: Any, levels: int, backend: str) -> KeptForward | None:
    """Compile a transform for NumPy arrays of the layout of ``x``, or for tensors of its shape.

    Returns
    -------
    KeptForward or None
        None if kernels cannot read the array as it is.
    """
    nest = form.flat_nesting(spec.keys[1:], levels)
    call: Callable[[Any], Any] | None = None
    if not isinstance(x, np.ndarray):
        call = operator_engine(x, backend).forward_call(spec, levels, nest)
    elif levels and x.size and x.dtype == result_dtype(x.dtype) and x.strides[-1] == x.itemsize:
        with suppress(UnfollowableStridesError):
            call = ForwardCall(BandTree.of_samples(spec, x.shape, levels), x, nest)
    if call is None:
        return None
    if form.single or levels <= checked_level(x.shape, spec.wavelets, spec.axes, None):
        return KeptForward(call)
    return KeptForward(call, partial(checked_level, x.shape, spec.wavelets, spec.axes, levels))


def bands_layout(bands: Sequence[Any], shape: Any, backend: str) -> tuple[Any, ...] | None:
    """Return the part of a key that describes bands: NumPy arrays alone, or tensors alone, else None."""
    example = next((band for band in bands if band is not None), None)
    if type(example) is not np.ndarray:
        given = [band for band in bands if band is not None]
        if example is None or not all(library_of(band).has_operators(band) for band in given):
            return None
        lengths = tuple(shape) if isinstance(shape, (list, tuple)) else shape
        shapes = [None if band is None else band.shape for band in bands]
        return "tensors", library_of(example).name, lengths, backend, *shapes
    if shape is not None or backend != "auto":
        return None
    layout: list[Any] = []
    for band in bands:
        if type(band) is np.ndarray:
            layout += (band.shape, band.dtype)
        elif band is None:
            layout.append(None)
        else:
            return None
    return tuple(layout)


def compile_inverse(
    spec: TransformSpec, keyed: list[Any], given: Sequence[Any], shape: tuple[int, ...] | None, backend: str
) -> Callable[[Sequence[Any]], Any] | None:
    """Compile an inverse for bands in the order of ``given``; None if they must be cut or levels left out.

    None is also returned if one array is given as several bands, as zeros often are: it does not tell which
    band is which, and later calls would mix up theirs.
    """
    arrays = [band for band in given if band is not None]
    on_numpy = type(arrays[0]) is np.ndarray
    if len(set(map(id, arrays))) < len(arrays) or (on_numpy and not _all_alike(arrays)):
        return None
    tree, low = BandTree.of_bands(spec, shapes_of(keyed), shape)
    bands = flat_bands(keyed, spec.keys[1:])
    if tree.levels != len(keyed) - 1 or not tree.levels or (low is not None and low != bands[0].shape):
        return None
    order = [
        next(k for k, a in enumerate(given) if a is band) if band is not None else None for band in bands
    ]
    call: Callable[[Sequence[Any]], Any] = (
        InverseCall(tree, bands) if on_numpy else operator_engine(arrays[0], backend).inverse_call(tree)
    )
    plain = [None if band is None else k for k, band in enumerate(bands)]
    if order == plain and len(given) == len(bands):
        return call
    return lambda bands: call([None if k is None else bands[k] for k in order])


def _all_alike(arrays: Sequence[NDArray[Any]]) -> bool:
    """Return whether all arrays are in C order and of one dtype that needs no conversion."""
    dtype = arrays[0].dtype
    plain = all(a.dtype == dtype and a.flags.c_contiguous and a.flags.aligned and a.size for a in arrays)
    return plain and result_dtype(dtype) == dtype and dtype.isnative
