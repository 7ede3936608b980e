"""The DWT with a boundary method in place of a mode.

Axes are transformed one after the other. An axis with an extrapolation is extended by as many samples as the
filters read, transformed in mode ``zero``, and cut. With boundary filters, the coefficients inside are those
of mode ``zero``, and those at the ends are products with small matrices.

Adjoints have the same loops over levels and axes: the adjoint of the transform goes the way of the inverse,
and that of the inverse the way of the transform, each with the transpose of a step along one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import DASK, as_shape, library_of, result_dtype, traceable_array
from ..engines.dispatch import decompose, engine_for, recompose
from ..errors import ArgumentError
from ..lowering.axis_arguments import checked_axes, per_axis
from ..lowering.borders import band_length, check_mode, signal_length
from ..lowering.boundary_methods import (
    BoundaryFilters,
    BoundaryMethod,
    Extrapolation,
    Taper,
    end_filters,
    orthogonal_matrix,
)
from ..lowering.nesting import Form, arrays_of, band_keys
from ..lowering.spec import NO_COEFFICIENTS, checked_level, transform_spec
from ..wavelets import Wavelet, as_wavelet
from .discrete import dwt, idwt

__all__ = ["extended", "forward", "inverse"]

Shape = tuple[int, ...]


def _checked(
    ndim: int, wavelet: Any, mode: Any, axes: Any
) -> tuple[list[int], list[Wavelet], list[BoundaryMethod | str]]:
    numbers = checked_axes(axes, ndim)
    wavelets = [as_wavelet(each) for each in per_axis(wavelet, len(numbers), "wavelet")]
    modes = [
        each if isinstance(each, BoundaryMethod) else check_mode(each)
        for each in per_axis(mode, len(numbers), "mode")
    ]
    return numbers, wavelets, modes


def _part(x: Any, axis: int, *part: Any) -> Any:
    return x[(*[slice(None)] * axis, slice(*part))]


def _zeros(x: Any, axis: int, count: int) -> Any:
    """Return zeros like an array, so many along an axis."""
    xp = library_of(x).namespace(x)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return np.zeros(shape, x.dtype) if xp is np else xp.zeros(shape, dtype=x.dtype, device=_device(x))


def _like(values: Any, x: Any) -> Any:
    """Return numbers as an array of the library, dtype and device of another one."""
    xp = library_of(x).namespace(x)
    if xp is np:
        return np.asarray(values, dtype=x.dtype)
    # PyTorch does not read arrays with negative strides.
    return xp.asarray(np.ascontiguousarray(values), dtype=x.dtype, device=_device(x))


def _device(x: Any) -> Any:
    """Return the device of an array of the array API; None for a value that JAX traces, which has none."""
    return getattr(x, "device", None)


def _product(matrix: np.ndarray[Any, Any], x: Any, axis: int) -> Any:
    """Return the product of a matrix and the lines along an axis."""
    xp, factor = library_of(x).namespace(x), _like(matrix, x)
    order = [*(k for k in range(x.ndim) if k != axis), axis]
    lines = xp.permute_dims(x, tuple(order)) @ factor.T
    return xp.permute_dims(lines, tuple(order.index(k) for k in range(x.ndim)))


def extended(x: Any, axis: int, method: Extrapolation, before: int, after: int) -> Any:
    """Return an array with more samples at both ends of an axis."""
    xp, length = library_of(x).namespace(x), x.shape[axis]
    parts = [x]
    for count, left in ((before, True), (after, False)):
        if count:
            weights = method.weights(count, length)
            used = weights.shape[1]
            if left:
                parts.insert(0, _product(weights[::-1], _part(x, axis, 0, used), axis))
            else:
                parts.append(_product(weights[:, ::-1], _part(x, axis, length - used, length), axis))
    return xp.concat(parts, axis=axis)


def _analysed(
    x: Any, axis: int, wavelet: Wavelet, mode: BoundaryMethod | str, backend: str
) -> tuple[Any, Any]:
    """Return the bands of one level along one axis."""
    if isinstance(mode, str):
        return dwt(x, wavelet, mode, axis, backend=backend)
    length, taps = x.shape[axis], wavelet.dec_len
    if isinstance(mode, Extrapolation):
        before = taps - 2 + taps % 2  # An even number, so that every second coefficient stays.
        low, high = dwt(extended(x, axis, mode, before, taps - 1), wavelet, "zero", axis, backend=backend)
        begin, count = before // 2, band_length(length, taps, "zero")
        return _part(low, axis, begin, begin + count), _part(high, axis, begin, begin + count)
    if isinstance(mode, Taper):
        return dwt(x, wavelet, "zero", axis, backend=backend)
    if length < 2 * taps:
        rows = orthogonal_matrix(wavelet, length)
        return _product(rows[0], x, axis), _product(rows[1], x, axis)
    xp, ends = library_of(x).namespace(x), end_filters(wavelet, length % 2)
    first, last = (taps - 1) // 2, length // 2  # coefficients that read samples of the line alone
    bands = []
    for band, inner in enumerate(dwt(x, wavelet, "zero", axis, backend=backend)):
        left, right = ends.left[band], ends.right[band]
        parts = [_product(left, _part(x, axis, 0, left.shape[1]), axis), _part(inner, axis, first, last)]
        parts.append(_product(right, _part(x, axis, length - right.shape[1], length), axis))
        bands.append(xp.concat(parts, axis=axis))
    return bands[0], bands[1]


def _synthesised(
    low: Any, high: Any, axis: int, wavelet: Wavelet, mode: BoundaryMethod | str, length: int, backend: str
) -> Any:
    """Return the samples of one level along one axis."""
    if not isinstance(mode, BoundaryFilters):
        name = mode if isinstance(mode, str) else "zero"
        return _part(idwt(low, high, wavelet, name, axis, backend=backend), axis, 0, length)
    taps = wavelet.dec_len
    if length < 2 * taps:
        rows = orthogonal_matrix(wavelet, length)
        return _product(rows[0].T, low, axis) + _product(rows[1].T, high, axis)
    xp, ends = library_of(low).namespace(low), end_filters(wavelet, length % 2)
    first, last = (taps - 1) // 2, length // 2
    count = band_length(length, taps, "zero")
    padded, additions = [], []
    for band, part in enumerate((low, high)):
        left, right = ends.left[band], ends.right[band]
        inner = _part(part, axis, len(left), len(left) + last - first)
        pieces = [_zeros(part, axis, first), inner, _zeros(part, axis, count - last)]
        padded.append(xp.concat(pieces, axis=axis))
        if len(left):
            additions.append((0, _product(left.T, _part(part, axis, 0, len(left)), axis)))
        if len(right):
            end = _part(part, axis, part.shape[axis] - len(right), part.shape[axis])
            additions.append((length - right.shape[1], _product(right.T, end, axis)))
    x = idwt(padded[0], padded[1], wavelet, "zero", axis, backend=backend)
    x = _part(x, axis, 0, length)
    for start, values in additions:
        x = _increased(x, axis, start, values)
    return x


def _transposed_analysis(
    low: Any, high: Any, axis: int, wavelet: Wavelet, mode: BoundaryMethod | str, length: int, backend: str
) -> Any:
    """Return the transpose of :func:`_analysed`: samples from the bands of one level along one axis."""
    if isinstance(mode, BoundaryFilters):
        return _synthesised(low, high, axis, wavelet, mode, length, backend)
    taps, shape = wavelet.dec_len, list(low.shape)
    before = after = 0
    if isinstance(mode, Extrapolation):
        before, after = taps - 2 + taps % 2, taps - 1
        xp, count = library_of(low).namespace(low), band_length(length + before + after, taps, "zero")
        begin = _zeros(low, axis, before // 2)
        end = _zeros(low, axis, count - before // 2 - low.shape[axis])
        low, high = (xp.concat([begin, band, end], axis=axis) for band in (low, high))
    shape[axis] = before + length + after
    spec = transform_spec(low.ndim, wavelet, mode if isinstance(mode, str) else "zero", axis).adjoint()
    x = recompose(engine_for([low, high], backend), spec, [low, {"d": high}], tuple(shape))
    return _folded(x, axis, mode, before, after) if isinstance(mode, Extrapolation) else x


def _transposed_synthesis(
    x: Any, axis: int, wavelet: Wavelet, mode: BoundaryMethod | str, backend: str
) -> tuple[Any, Any]:
    """Return the transpose of :func:`_synthesised`: the bands of one level along one axis."""
    if isinstance(mode, BoundaryFilters):
        return _analysed(x, axis, wavelet, mode, backend)
    spec = transform_spec(x.ndim, wavelet, mode if isinstance(mode, str) else "zero", axis).adjoint()
    low, details = decompose(engine_for([x], backend), spec, x, 1)
    return low, details["d"]


def _folded(x: Any, axis: int, method: Extrapolation, before: int, after: int) -> Any:
    """Return the transpose of :func:`extended`: what is beyond the ends is added to the samples inside."""
    length = x.shape[axis] - before - after
    inner = _part(x, axis, before, before + length)
    for count, left in ((before, True), (after, False)):
        if count:
            weights = method.weights(count, length)
            used = weights.shape[1]
            if left:
                addition = _product(weights[::-1].T, _part(x, axis, 0, before), axis)
                inner = _increased(inner, axis, 0, addition)
            else:
                beyond = _part(x, axis, before + length, before + length + after)
                addition = _product(weights[:, ::-1].T, beyond, axis)
                inner = _increased(inner, axis, length - used, addition)
    return inner


def _increased(x: Any, axis: int, start: int, values: Any) -> Any:
    """Return an array with values added from a place on."""
    stop = start + values.shape[axis]
    pieces = [
        _part(x, axis, 0, start),
        _part(x, axis, start, stop) + values,
        _part(x, axis, stop, x.shape[axis]),
    ]
    return library_of(x).namespace(x).concat([piece for piece in pieces if piece.shape[axis]], axis=axis)


def _faded(x: Any, axes: Sequence[int], modes: Sequence[Any], back: bool) -> Any:
    """Return samples multiplied by the factors of all windows, or divided by them."""
    for axis, mode in zip(axes, modes, strict=True):
        if not isinstance(mode, Taper):
            continue
        factors = mode.factors(x.shape[axis])
        if back and not factors.all():
            raise ArgumentError(
                f"{mode} multiplies the outermost samples by 0, so they cannot be restored; use Taper with"
                " least above 0"
            )
        xp = library_of(x).namespace(x)
        shape = [1] * x.ndim
        shape[axis] = -1
        x = x * xp.reshape(_like(1 / factors if back else factors, x), tuple(shape))
    return x


def _floats(x: Any) -> Any:
    """Return samples as the numbers that a transform computes with."""
    if DASK.owns(x):
        raise ArgumentError("boundary methods need an array in memory, and got a Dask array; use a mode")
    return x.astype(result_dtype(x.dtype), copy=False) if isinstance(x, np.ndarray) else x


def forward(
    form: Form,
    data: Any,
    wavelet: Any,
    mode: Any,
    level: int | None,
    axes: Any,
    out: Any,
    backend: str,
    *,
    transposed: bool = False,
) -> Any:
    """Return coefficients nested as a form does; the arguments are those of its function.

    With ``transposed``, the result is that of the adjoint of the inverse transform.
    """
    step = _transposed_synthesis if transposed else _analysed
    if out is not None:
        raise ArgumentError("transforms with a boundary method return new arrays; omit out")
    x = _floats(traceable_array(data))
    numbers, wavelets, modes = _checked(x.ndim, wavelet, mode, form.axes(axes))
    if any(x.shape[axis] < 1 for axis in numbers):
        raise ArgumentError(f"Input data must have samples along the transformed axes, got shape {x.shape}")
    levels = 1 if form.single else checked_level(x.shape, wavelets, numbers, level, stacklevel=5)
    low, details = _faded(x, numbers, modes, transposed), list[Any]()
    keys = band_keys(len(numbers))
    for _ in range(levels):
        bands = {"": low}
        for axis, name, how in zip(numbers, wavelets, modes, strict=True):
            bands = {
                key + letter: half
                for key, band in bands.items()
                for letter, half in zip("ad", step(band, axis, name, how, backend), strict=True)
            }
        low = bands[keys[0]]
        details.append({key: bands[key] for key in keys[1:]})
    return form.from_keyed(library_of(data).restore([low, *details[::-1]], data))


def inverse(
    keyed: Sequence[Any],
    wavelet: Any,
    mode: Any,
    axes: Any,
    shape: Any,
    out: Any,
    backend: str,
    *,
    transposed: bool = False,
) -> Any:
    """Return the samples of keyed coefficients.

    Parameters
    ----------
    keyed : sequence
        The approximation, and details by key, coarsest level first; None for zeros.
    wavelet, mode, axes, shape, out, backend
        As the functions of the DWT take them.
    transposed : bool, default False
        Whether to apply the adjoint of the transform instead.
    """
    step = _transposed_analysis if transposed else _synthesised
    if out is not None:
        raise ArgumentError("transforms with a boundary method return new arrays; omit out")
    example = next((band for band in arrays_of(keyed) if band is not None), None)
    if example is None:
        raise ArgumentError(NO_COEFFICIENTS)
    # If a gradient of one band is expected, all of them stay arrays of the library that computes it.
    traced = next((band for band in arrays_of(keyed) if library_of(band).is_traced(band)), None)
    arrays: list[Any] = [_band(keyed[0], "the approximation", traced)]
    for part in keyed[1:]:
        arrays.append({key: _band(band, f"band {key!r}", traced) for key, band in part.items()})
    given = [band for band in arrays_of(arrays) if band is not None]
    numbers, wavelets, modes = _checked(given[0].ndim, wavelet, mode, axes)
    lengths = as_shape(shape, given[0].ndim)
    low = arrays[0]
    for number, details in enumerate(arrays[1:], 1):
        target = None
        if number < len(arrays) - 1:
            finer = [band for band in arrays[number + 1].values() if band is not None]
            target = finer[0].shape if finer else None
        elif lengths is not None:
            target = lengths
        low = _joined(low, details, numbers, wavelets, modes, target, step, backend, number)
    if lengths is not None and tuple(low.shape) != lengths:
        raise ArgumentError(f"shape {lengths} does not match these coefficients, which lead to {low.shape}")
    return library_of(example).restore(_faded(low, numbers, modes, not transposed), example)


def _band(band: Any, what: str, traced: Any) -> Any:
    if band is None:
        return None
    x = _floats(traceable_array(band, what))
    return x if traced is None or library_of(x).is_traced(x) else _like(x, traced)


def _joined(
    low: Any,
    details: Mapping[str, Any],
    axes: Sequence[int],
    wavelets: Sequence[Wavelet],
    modes: Sequence[Any],
    target: Shape | None,
    step: Callable[..., Any],
    backend: str,
    number: int,
) -> Any:
    """Return the samples of one level; ``target`` is their shape where bands do not determine it."""
    keys = band_keys(len(axes))
    if not set(details) <= set(keys[1:]):
        raise ArgumentError(f"details {number} have keys among {keys[1:]}, got {sorted(map(str, details))}")
    bands = {keys[0]: low, **{key: details.get(key) for key in keys[1:]}}
    given = {key: band for key, band in bands.items() if band is not None}
    if not given:
        raise ArgumentError(NO_COEFFICIENTS)
    for key in keys:
        if bands[key] is None:
            bands[key] = _missing_band(key, given, modes, number)
    if low is not None and any(band is not None for band in details.values()):
        example = next(key for key in keys[1:] if details.get(key) is not None)
        bands[keys[0]] = _cut_to(low, bands[example], example, axes, modes, number)
    values = [bands[key] for key in keys]
    for place in reversed(range(len(axes))):
        axis, wavelet, mode = axes[place], wavelets[place], modes[place]
        pairs = list(pairwise(values))[::2]
        count = pairs[0][0].shape[axis]
        if isinstance(mode, BoundaryFilters):
            length = count + pairs[0][1].shape[axis]
        else:
            length = signal_length(count, wavelet.rec_len, mode if isinstance(mode, str) else "zero")
            # An odd length is known from the shape that the caller passes, or from finer coefficients.
            if target is not None and length - target[axis] == 1:
                length -= 1
        values = [step(a, d, axis, wavelet, mode, length, backend) for a, d in pairs]
    return values[0]


def _missing_band(key: str, given: Mapping[str, Any], modes: Sequence[Any], number: int) -> Any:
    """Return zeros in place of a band that is missing."""
    if any(isinstance(mode, BoundaryFilters) for mode in modes):
        raise ArgumentError(f"with boundary filters all bands are needed; level {number} has no {key!r}")
    band = next(iter(given.values()))
    return library_of(band).namespace(band).zeros_like(band)


def _cut_to(low: Any, band: Any, key: str, axes: Sequence[int], modes: Sequence[Any], number: int) -> Any:
    """Return the approximation in the shape of its details, which may be one shorter."""
    for axis, letter, mode in zip(axes, key, modes, strict=True):
        surplus = low.shape[axis] - band.shape[axis]
        allowed = ((0, 1) if letter == "d" else (0,)) if isinstance(mode, BoundaryFilters) else (0, 1)
        if surplus not in allowed:
            raise ArgumentError(
                f"incompatible coefficient array sizes: approximation {low.shape} and details {band.shape} of"
                f" level {number}"
            )
        if not isinstance(mode, BoundaryFilters):
            low = _part(low, axis, 0, band.shape[axis])
    return low
