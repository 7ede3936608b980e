"""The DWT of arrays: PyWavelets' functions, arguments and results, and what its users ask for besides.

Everything is a form of ``wavedecn`` and ``waverecn``: one level for ``dwtn``, one and two axes with plainer
coefficients. ``out=`` takes arrays for the results, nested as the results are; ``shape=`` brings an odd
length back that a transform cannot know of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ArgumentError, ArgumentTypeError
from ..plans.axes import Axes, one_axis, two_axes
from ..plans.coeffs import checked_level, from_keys, keyed_as
from ..wavelets import Wavelet
from .arrays import as_shape, given_array, result_dtype
from .levels import Recipe, checked_targets, decompose, recipe, recompose
from .ondevice import arrays_of, backward, engine, forward, restorer

__all__ = [
    "dwt",
    "dwt2",
    "dwtn",
    "idwt",
    "idwt2",
    "idwtn",
    "wavedec",
    "wavedec2",
    "wavedecn",
    "waverec",
    "waverec2",
    "waverecn",
]

Array = NDArray[Any]
Name = Wavelet | str
Names = Wavelet | str | Sequence[Any]
Mode = str | int
Modes = str | int | Sequence[Any]
Length = int | Sequence[int] | None


def _samples(data: ArrayLike, wavelet: Names, mode: Modes, axes: Axes, few: str) -> tuple[Array, Recipe]:
    """The array as it was given, and what is to be done to it."""
    x = given_array(data)
    ndim = len(x.shape)
    if ndim < 1:
        raise ArgumentError(f"{few}, got a single number")
    wanted = recipe(ndim, wavelet, mode, axes)
    if any(x.shape[axis] < 1 for axis in wanted.axes):
        raise ArgumentError(f"Input data must have samples along the transformed axes, got shape {x.shape}")
    return x, wanted


def _forward(
    data: Any, given: Any, wanted: Recipe, levels: int, out: Any, keyed: Sequence[Any] | None, backend: str
) -> list[Any]:
    device = engine([given], backend)
    if device is not None:
        if out is not None and keyed is None:
            raise ArgumentError(f"out must be nested as the result is, with {levels} level(s) of details")
        results: list[Any] = restorer(data)(forward(device, given, wanted, levels, keyed))
        return results
    x = given.astype(result_dtype(given.dtype), copy=False)
    targets = None if out is None else checked_targets(wanted, x, levels, out, keyed, given)
    made: list[Any] = restorer(data)(decompose(wanted, x, levels, targets))
    return made


def _backward(wanted: Recipe, coeffs: list[Any], given: Any, shape: Length, out: Any, backend: str) -> Array:
    device = engine(arrays_of(coeffs), backend)
    lengths = as_shape(shape, _ndim(coeffs))
    if device is not None:
        made: Array = restorer(given)(backward(device, coeffs, wanted, lengths, out))
        return made
    restored: Array = restorer(given)(recompose(wanted, coeffs, lengths, out))
    return restored


def _ndim(coeffs: list[Any]) -> int:
    return next(len(a.shape) for a in arrays_of(coeffs) if a is not None)


def _band(band: Any, what: str) -> Any:
    return None if band is None else given_array(band, what)


def dwtn(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Axes = None,
    *,
    out: dict[str, Array] | None = None,
    backend: str = "auto",
) -> dict[str, Array]:
    """One level of the DWT along several axes.

    Parameters
    ----------
    data : array_like
        Real or complex, of any dimension, strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there. On the CPU integers become float64 and float16 becomes float32; on
        a device integers of 8 and 16 bits become float32, and float16 stays. Tensors that require a gradient
        are refused, as none is computed yet.
    wavelet : Wavelet, str, or one for each axis
    mode : str, int, or one for each axis
        How lines go on beyond their ends: one of ``undula.MODES``.
    axes : sequence of int, optional
        All axes if not given.
    out : dict of arrays, optional
        For the results: all bands by key.
    backend : "auto", "cpu", "cuda" or "opencl"
        Arrays on a device are transformed there; NumPy's on the CPU, or where this says.

    Returns
    -------
    dict of arrays
        Bands by key: ``"ad"`` is low along the first axis and high along the second.

    Examples
    --------
    >>> sorted(dwtn([[1.0, 2.0], [3.0, 4.0]], "haar").items())[0]
    ('aa', array([[5.]]))
    """
    x, wanted = _samples(data, wavelet, mode, axes, "Input data must be at least 1D")
    low = wanted.keys[0]
    keyed = None
    if isinstance(out, Mapping) and low in out:
        keyed = [out[low], {key: band for key, band in out.items() if key != low}]
    approximation, details = _forward(data, x, wanted, 1, out, keyed, backend)
    return {low: approximation, **details}


def idwtn(
    coeffs: Mapping[str, ArrayLike | None],
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Axes = None,
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """The inverse of :func:`dwtn`; bands that are missing or None are zero.

    Parameters
    ----------
    coeffs, wavelet, mode, axes
        As :func:`dwtn` gave and had them.
    shape : tuple of int, optional
        The shape to come back to; without it every length is the even one.
    out : array, optional
        For the result.
    """
    if not isinstance(coeffs, Mapping):
        raise ArgumentTypeError(f"bands are given by key, such as {{'aa': …}}, got {type(coeffs).__name__}")
    bands = {key: _band(band, f"band {key!r}") for key, band in coeffs.items()}
    found = {key: tuple(band.shape) for key, band in bands.items() if band is not None}
    if not found:
        raise ArgumentError("At least one coefficient parameter must be specified.")
    if len(set(found.values())) > 1:
        raise ArgumentError(f"Coefficients arrays must have the same shape, got {found}")
    ndim = len(next(iter(found.values())))
    wanted = recipe(ndim, wavelet, mode, axes)
    if not set(bands) <= set(wanted.keys):
        raise ArgumentError(
            f"bands of {len(wanted.axes)} axes have keys among {wanted.keys}, got {sorted(map(str, bands))}"
        )
    keyed = [bands.pop(wanted.keys[0], None), bands]
    sample = next(band for band in coeffs.values() if band is not None)
    return _backward(wanted, keyed, sample, shape, out, backend)


def wavedecn(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes = "symmetric",
    level: int | None = None,
    axes: Axes = None,
    *,
    out: Sequence[Any] | None = None,
    backend: str = "auto",
) -> list[Any]:
    """The DWT of several levels along several axes.

    Parameters
    ----------
    data, wavelet, mode, axes
        As for :func:`dwtn`.
    level : int, optional
        How often the approximation is decomposed; as often as is useful if not given.
    out : list, optional
        Arrays for the results, nested as they are.

    Returns
    -------
    list
        ``[approximation, details of the coarsest level, …, details of the finest]``, details as dictionaries.
    """
    return _wavedecn(data, wavelet, mode, level, axes, out, "wavedecn", backend)


def _wavedecn(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes,
    level: int | None,
    axes: Axes,
    out: Any,
    form: str,
    backend: str,
) -> list[Any]:
    x, wanted = _samples(data, wavelet, mode, axes, "Expected at least 1D input data")
    levels = checked_level(x.shape, wanted.wavelets, wanted.axes, level, stacklevel=4)
    keyed = None if out is None else keyed_as(out, form)
    return from_keys(_forward(data, x, wanted, levels, out, keyed, backend), form)


def waverecn(
    coeffs: Sequence[Any],
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Axes = None,
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """The inverse of :func:`wavedecn`; None in place of coefficients stands for zeros.

    ``shape`` and ``out`` are those of :func:`idwtn`.
    """
    return _waverecn(coeffs, wavelet, mode, axes, shape, out, "wavedecn", backend)


def _waverecn(
    coeffs: Sequence[Any],
    wavelet: Names,
    mode: Modes,
    axes: Axes,
    shape: Length,
    out: Any,
    form: str,
    backend: str,
) -> Array:
    if isinstance(coeffs, (str, Mapping, np.ndarray)) or not isinstance(coeffs, Sequence):
        raise ArgumentError(f"Expected sequence of coefficient arrays, got {type(coeffs).__name__}")
    if len(coeffs) < 1:
        raise ArgumentError("Coefficient list too short (minimum 1 array required).")
    keyed = keyed_as(coeffs, form)
    if keyed is None:
        raise ArgumentError(f"coefficients must be nested as {form} does: {_NESTING[form]}")
    read: list[Any] = [_band(keyed[0], "the approximation")]
    for number, level in enumerate(keyed[1:], 1):
        read.append({key: _band(band, f"band {key!r} of level {number}") for key, band in level.items()})
    given = [a for a in (read[0], *(b for level in read[1:] for b in level.values())) if a is not None]
    if not given:
        raise ArgumentError("At least one coefficient parameter must be specified.")
    ndim = len(given[0].shape)
    wanted = recipe(ndim, wavelet, mode, axes)
    for number, level in enumerate(read[1:], 1):
        if not set(level) <= set(wanted.keys[1:]):
            raise ArgumentError(
                f"details {number} of {len(wanted.axes)} axes have keys among {wanted.keys[1:]}, got"
                f" {sorted(map(str, level))}"
            )
    sample = next(a for a in arrays_of(keyed) if a is not None)
    return _backward(wanted, read, sample, shape, out, backend)


_NESTING = {
    "wavedec": "[cA, cD of the coarsest level, …]",
    "wavedec2": "[cA, (cH, cV, cD) of the coarsest level, …], details three arrays each",
    "wavedecn": "[approximation, details of the coarsest level, …], details a dictionary of arrays each",
}


# --- one axis -------------------------------------------------------------------------------------


def dwt(
    data: ArrayLike,
    wavelet: Name,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    out: tuple[Array, Array] | None = None,
    backend: str = "auto",
) -> tuple[Array, Array]:
    """One level of the DWT of lines: ``(cA, cD)``; parameters are those of :func:`dwtn`.

    Examples
    --------
    >>> cA, cD = dwt([1, 2, 3, 4], "haar")
    >>> cA.round(3).tolist(), cD.round(3).tolist()
    ([2.121, 4.95], [-0.707, -0.707])
    """
    x, wanted = _samples(data, wavelet, mode, one_axis(axis), "Input data must be at least 1D")
    keyed = [out[0], {"d": out[1]}] if isinstance(out, (tuple, list)) and len(out) == 2 else None
    approximation, details = _forward(data, x, wanted, 1, out, keyed, backend)
    return approximation, details["d"]


def idwt(
    cA: ArrayLike | None,
    cD: ArrayLike | None,
    wavelet: Name,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """The inverse of :func:`dwt`; one of the two bands may be None.

    Examples
    --------
    >>> cA, cD = dwt([1.0, 2.0, 3.0], "haar")
    >>> idwt(cA, cD, "haar", shape=3).round(3).tolist()
    [1.0, 2.0, 3.0]
    """
    return idwtn({"a": cA, "d": cD}, wavelet, mode, one_axis(axis), shape=shape, out=out, backend=backend)


def wavedec(
    data: ArrayLike,
    wavelet: Name,
    mode: Mode = "symmetric",
    level: int | None = None,
    axis: int = -1,
    *,
    out: Sequence[Array] | None = None,
    backend: str = "auto",
) -> list[Array]:
    """The DWT of lines in several levels: ``[cA, cD of the coarsest level, …, cD of the finest]``.

    Parameters are those of :func:`wavedecn`, with one axis.
    """
    return _wavedecn(data, wavelet, mode, level, one_axis(axis), out, "wavedec", backend)


def waverec(
    coeffs: Sequence[ArrayLike | None],
    wavelet: Name,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """The inverse of :func:`wavedec`."""
    return _waverecn(coeffs, wavelet, mode, one_axis(axis), shape, out, "wavedec", backend)


# --- two axes -------------------------------------------------------------------------------------


def dwt2(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    out: tuple[Array, tuple[Array, Array, Array]] | None = None,
    backend: str = "auto",
) -> tuple[Array, tuple[Array, Array, Array]]:
    """One level of the DWT of images: ``(cA, (cH, cV, cD))``; parameters are those of :func:`dwtn`."""
    x, wanted = _samples(data, wavelet, mode, two_axes(axes), "Expected at least 2D input data")
    keyed = None if out is None else keyed_as(out, "wavedec2")
    approximation, details = _forward(data, x, wanted, 1, out, keyed, backend)
    return approximation, (details["da"], details["ad"], details["dd"])


def idwt2(
    coeffs: tuple[ArrayLike | None, tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None]],
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """The inverse of :func:`dwt2`; None in place of a band stands for zeros."""
    keyed = keyed_as(coeffs, "wavedec2")
    if keyed is None or len(keyed) != 2:
        raise ArgumentError(f"coefficients are a pair (cA, (cH, cV, cD)), got {type(coeffs).__name__}")
    return idwtn(
        {"aa": keyed[0], **keyed[1]}, wavelet, mode, two_axes(axes), shape=shape, out=out, backend=backend
    )


def wavedec2(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes = "symmetric",
    level: int | None = None,
    axes: Sequence[int] = (-2, -1),
    *,
    out: Sequence[Any] | None = None,
    backend: str = "auto",
) -> list[Any]:
    """The DWT of images in several levels: ``[cA, (cH, cV, cD) of the coarsest level, …]``.

    Parameters
    ----------
    data, wavelet, mode, backend
        As for :func:`dwtn`: NumPy's arrays, or arrays on a device, which are transformed where they are.
    level : int, optional
        How often the approximation is decomposed; as often as is useful if not given.
    axes : pair of int
        Vertical and horizontal.
    out : list, optional
        Arrays for the results, nested as they are.

    Examples
    --------
    >>> coeffs = wavedec2(np.eye(8), "haar", level=2)
    >>> [coeffs[0].shape, *(level[0].shape for level in coeffs[1:])]
    [(2, 2), (2, 2), (4, 4)]
    """
    return _wavedecn(data, wavelet, mode, level, two_axes(axes), out, "wavedec2", backend)


def waverec2(
    coeffs: Sequence[Any],
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """The inverse of :func:`wavedec2`; None in place of coefficients stands for zeros.

    Parameters
    ----------
    coeffs, wavelet, mode, axes, backend
        As :func:`wavedec2` gave and had them.
    shape : tuple of int, optional
        The shape to come back to; without it every length is the even one.
    out : array, optional
        For the result.

    Examples
    --------
    >>> coeffs = wavedec2(np.eye(7), "haar", level=2)
    >>> waverec2(coeffs, "haar").shape, waverec2(coeffs, "haar", shape=(7, 7)).shape
    ((8, 8), (7, 7))
    """
    return _waverecn(coeffs, wavelet, mode, two_axes(axes), shape, out, "wavedec2", backend)
