"""The DWT of arrays: PyWavelets' functions, arguments and results. Here plan and backend meet.

Everything is one idea, one level along one axis, repeated: over axes for ``dwtn``, over levels for
``wavedecn``. The functions for one and two axes are thin forms of those for n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .backends import cpu
from .errors import ArgumentError, ArgumentTypeError
from .plans.axes import Axes, checked_axes, one_axis, two_axes
from .plans.boundary import check_mode
from .plans.coeffs import checked_level, detail_keys, from_keys, per_axis
from .plans.line import dwt_line, inverse_length
from .wavelets import Wavelet, as_wavelet

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
Plan = list[tuple[int, Wavelet, str]]  # for each axis: which, by what, and how the line goes on


# --- checking -------------------------------------------------------------------------------------


def _array(data: ArrayLike, what: str = "data") -> Array:
    """The array in the type its transform has: float32 stays, float16 becomes it, integers become float64."""
    try:
        x = np.asarray(data)
    except ValueError as error:
        raise ArgumentError(f"{what} must be an array of numbers: {error}") from None
    kind, size = x.dtype.kind, x.dtype.itemsize
    if kind not in "biufc":
        raise ArgumentTypeError(f"{what} must be numbers, got dtype {x.dtype}")
    if kind == "c":
        dtype = np.dtype(np.complex64 if size <= 8 else np.complex128)
    else:
        dtype = np.dtype(np.float32 if kind == "f" and size <= 4 else np.float64)
    return x.astype(dtype, copy=False)


def _plan(ndim: int, wavelet: Names, mode: Modes, axes: Axes) -> Plan:
    """What is done along which axis, or an error that says what is wrong with the asking."""
    found = checked_axes(axes, ndim)
    wavelets = [as_wavelet(w) for w in per_axis(wavelet, len(found), "wavelet")]
    modes = [check_mode(m) for m in per_axis(mode, len(found), "mode")]
    return list(zip(found, wavelets, modes, strict=True))


def _has_samples(x: Array, plan: Plan) -> None:
    if x.ndim < 1 or any(x.shape[axis] < 1 for axis, _, _ in plan):
        raise ArgumentError(f"Input data must have samples along the transformed axes, got shape {x.shape}")


# --- one level ------------------------------------------------------------------------------------


def _forward(x: Array, plan: Plan) -> dict[str, Array]:
    single = x.dtype.char in "fF"
    lines = [(axis, dwt_line(x.shape[axis], wavelet, mode, single)) for axis, wavelet, mode in plan]
    shape = list(x.shape)
    for axis, line in lines:
        shape[axis] = line.counts[0]
    bands = {key: np.empty(shape, x.dtype) for key in ["a" * len(plan), *detail_keys(len(plan))]}
    cpu.forward(x, lines, bands)
    return bands


def _backward(bands: Mapping[str, Array | None], plan: Plan) -> Array:
    """One level back; missing bands are zero, and cost nothing where both of a pair are missing."""
    given = next(band for band in bands.values() if band is not None)
    single = given.dtype.char in "fF"
    shape = list(given.shape)
    lines = []
    for axis, wavelet, mode in plan:
        shape[axis] = inverse_length(shape[axis], wavelet, mode)
        lines.append((axis, dwt_line(shape[axis], wavelet, mode, single)))
    x = np.empty(shape, given.dtype)
    every = ["a" * len(plan), *detail_keys(len(plan))]
    cpu.backward({key: bands.get(key) for key in every}, lines, x)
    return x


def _alike(bands: Mapping[str, Any]) -> dict[str, Array | None]:
    """Bands of one shape and one dtype; missing ones stay None."""
    arrays = {key: None if band is None else _array(band, f"band {key!r}") for key, band in bands.items()}
    given = [band for band in arrays.values() if band is not None]
    if not given:
        raise ArgumentError("At least one coefficient parameter must be specified.")
    if len({band.shape for band in given}) != 1:
        shapes = {key: band.shape for key, band in arrays.items() if band is not None}
        raise ArgumentError(f"Coefficients arrays must have the same shape, got {shapes}")
    dtype = np.result_type(*given)
    return {key: None if b is None else b.astype(dtype, copy=False) for key, b in arrays.items()}


def dwtn(data: ArrayLike, wavelet: Names, mode: Modes = "symmetric", axes: Axes = None) -> dict[str, Array]:
    """One level of the DWT along several axes.

    Parameters
    ----------
    data : array_like
        Real or complex, of any dimension, strides and dtype.
    wavelet : Wavelet, str, or one for each axis
    mode : str, int, or one for each axis
        How lines go on beyond their ends: one of ``undula.MODES``.
    axes : sequence of int, optional
        All axes if not given.

    Returns
    -------
    dict of arrays
        Bands by key: ``"ad"`` is low along the first axis and high along the second.

    Examples
    --------
    >>> sorted(dwtn([[1.0, 2.0], [3.0, 4.0]], "haar").items())[0]
    ('aa', array([[5.]]))
    """
    x = _array(data)
    if x.ndim < 1:
        raise ArgumentError("Input data must be at least 1D, got a single number")
    plan = _plan(x.ndim, wavelet, mode, axes)
    _has_samples(x, plan)
    return _forward(x, plan)


def idwtn(
    coeffs: Mapping[str, ArrayLike | None], wavelet: Names, mode: Modes = "symmetric", axes: Axes = None
) -> Array:
    """The inverse of :func:`dwtn`; bands that are missing or None are zero."""
    if not isinstance(coeffs, Mapping):
        raise ArgumentTypeError(f"bands are given by key, such as {{'aa': …}}, got {type(coeffs).__name__}")
    bands = _alike(coeffs)
    given = next(band for band in bands.values() if band is not None)
    plan = _plan(given.ndim, wavelet, mode, axes)
    keys = ["a" * len(plan), *detail_keys(len(plan))]
    if not set(bands) <= set(keys):
        raise ArgumentError(f"bands of {len(plan)} axes have keys among {keys}, got {sorted(bands)}")
    _long_enough(given, plan)
    return _backward(bands, plan)


def _long_enough(band: Array, plan: Plan) -> None:
    for axis, wavelet, mode in plan:
        if mode != "periodization" and 2 * band.shape[axis] < wavelet.rec_len:
            raise ArgumentError(
                f"Invalid coefficient arrays length: {band.shape[axis]} along axis {axis} is too short for"
                f" the {wavelet.rec_len} taps of {wavelet.name!r} in mode {mode!r}"
            )


# --- many levels ----------------------------------------------------------------------------------


def wavedecn(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes = "symmetric",
    level: int | None = None,
    axes: Axes = None,
) -> list[Any]:
    """The DWT of several levels along several axes.

    Parameters
    ----------
    data, wavelet, mode, axes
        As for :func:`dwtn`.
    level : int, optional
        How often the approximation is decomposed; as often as is useful if not given.

    Returns
    -------
    list
        ``[approximation, details of the coarsest level, …, details of the finest]``, details as dictionaries.
    """
    x = _array(data)
    if x.ndim < 1:
        raise ArgumentError("Expected at least 1D input data, got a single number")
    plan = _plan(x.ndim, wavelet, mode, axes)
    _has_samples(x, plan)
    wavelets, found = [w for _, w, _ in plan], [axis for axis, _, _ in plan]
    levels = checked_level(x.shape, wavelets, found, level) if plan else 0
    details: list[dict[str, Array]] = []
    for _ in range(levels):
        bands = _forward(x, plan)
        x = bands.pop("a" * len(plan))
        details.insert(0, bands)
    return [x.copy() if not levels else x, *details]


def waverecn(coeffs: Sequence[Any], wavelet: Names, mode: Modes = "symmetric", axes: Axes = None) -> Array:
    """The inverse of :func:`wavedecn`; None in place of coefficients stands for zeros."""
    if isinstance(coeffs, (str, Mapping)) or not isinstance(coeffs, Sequence):
        raise ArgumentTypeError(f"Expected sequence of coefficient arrays, got {type(coeffs).__name__}")
    if len(coeffs) < 1:
        raise ArgumentError("Coefficient list too short (minimum 1 array required).")
    x = None if coeffs[0] is None else _array(coeffs[0], "the approximation")
    for number, level in enumerate(coeffs[1:], 1):
        if not isinstance(level, Mapping):
            raise ArgumentError(f"details {number} are a dictionary of arrays, got {type(level).__name__}")
        details = {key: band for key, band in level.items() if band is not None}
        if not details and x is None:
            continue
        shape = np.shape(next(iter(details.values()))) if details else None
        if x is not None and shape is not None:
            x = _fitted(x, shape, number)
        ndim = len(shape) if shape is not None else np.ndim(x)  # type: ignore[arg-type]
        key = "a" * len(_plan(ndim, wavelet, mode, axes))
        x = idwtn({key: x, **details}, wavelet, mode, axes)
    if x is None:
        raise ArgumentError("At least one coefficient parameter must be specified.")
    return x


def _fitted(x: Array, shape: tuple[int, ...], number: int) -> Array:
    """The approximation without the sample that a line of odd length has gained."""
    surplus = [have - want for have, want in zip(x.shape, shape, strict=False)]
    if len(shape) != x.ndim or any(k not in (0, 1) for k in surplus):
        raise ArgumentError(
            f"incompatible coefficient array sizes: approximation {x.shape} and details {shape} of level"
            f" {number}"
        )
    return x[tuple(slice(n) for n in shape)]


# --- one axis -------------------------------------------------------------------------------------


def dwt(data: ArrayLike, wavelet: Name, mode: Mode = "symmetric", axis: int = -1) -> tuple[Array, Array]:
    """One level of the DWT of lines: ``(cA, cD)``.

    >>> cA, cD = dwt([1, 2, 3, 4], "haar")
    >>> cA.round(3).tolist(), cD.round(3).tolist()
    ([2.121, 4.95], [-0.707, -0.707])
    """
    bands = dwtn(data, wavelet, mode, one_axis(axis))
    return bands["a"], bands["d"]


def idwt(
    cA: ArrayLike | None, cD: ArrayLike | None, wavelet: Name, mode: Mode = "symmetric", axis: int = -1
) -> Array:
    """The inverse of :func:`dwt`; one of the two bands may be None."""
    return idwtn({"a": cA, "d": cD}, wavelet, mode, one_axis(axis))


def wavedec(
    data: ArrayLike, wavelet: Name, mode: Mode = "symmetric", level: int | None = None, axis: int = -1
) -> list[Array]:
    """The DWT of lines in several levels: ``[cA, cD of the coarsest level, …, cD of the finest]``."""
    return from_keys(wavedecn(data, wavelet, mode, level, one_axis(axis)), "wavedec")


def waverec(
    coeffs: Sequence[ArrayLike | None], wavelet: Name, mode: Mode = "symmetric", axis: int = -1
) -> Array:
    """The inverse of :func:`wavedec`."""
    if isinstance(coeffs, (str, Mapping)) or not isinstance(coeffs, Sequence):
        raise ArgumentTypeError("Expected sequence of coefficient arrays.")
    keyed = [*coeffs[:1], *({"d": band} for band in coeffs[1:])]
    return waverecn(keyed, wavelet, mode, one_axis(axis))


# --- two axes -------------------------------------------------------------------------------------


def dwt2(
    data: ArrayLike, wavelet: Names, mode: Modes = "symmetric", axes: Sequence[int] = (-2, -1)
) -> tuple[Array, tuple[Array, Array, Array]]:
    """One level of the DWT of images: ``(cA, (cH, cV, cD))``."""
    bands = dwtn(data, wavelet, mode, two_axes(axes))
    return bands["aa"], (bands["da"], bands["ad"], bands["dd"])


def idwt2(
    coeffs: tuple[ArrayLike | None, tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None]],
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Sequence[int] = (-2, -1),
) -> Array:
    """The inverse of :func:`dwt2`; None in place of a band stands for zeros."""
    if not isinstance(coeffs, (tuple, list)) or len(coeffs) != 2:
        raise ArgumentError(f"coefficients are a pair (cA, (cH, cV, cD)), got {type(coeffs).__name__}")
    return idwtn({"aa": coeffs[0], **_triple(coeffs[1], 1)}, wavelet, mode, two_axes(axes))


def wavedec2(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes = "symmetric",
    level: int | None = None,
    axes: Sequence[int] = (-2, -1),
) -> list[Any]:
    """The DWT of images in several levels: ``[cA, (cH, cV, cD) of the coarsest level, …]``.

    >>> coeffs = wavedec2(np.eye(8), "haar", level=2)
    >>> [coeffs[0].shape, *(level[0].shape for level in coeffs[1:])]
    [(2, 2), (2, 2), (4, 4)]
    """
    return from_keys(wavedecn(data, wavelet, mode, level, two_axes(axes)), "wavedec2")


def waverec2(
    coeffs: Sequence[Any], wavelet: Names, mode: Modes = "symmetric", axes: Sequence[int] = (-2, -1)
) -> Array:
    """The inverse of :func:`wavedec2`."""
    if isinstance(coeffs, (str, Mapping)) or not isinstance(coeffs, Sequence):
        raise ArgumentTypeError("Expected sequence of coefficient arrays.")
    keyed = [*coeffs[:1], *(_triple(level, number) for number, level in enumerate(coeffs[1:], 1))]
    return waverecn(keyed, wavelet, mode, two_axes(axes))


def _triple(level: Any, number: int) -> dict[str, Any]:
    if not isinstance(level, (tuple, list)) or len(level) != 3:
        raise ArgumentError(
            f"details {number} are three arrays (cH, cV, cD), got"
            f" {len(level) if isinstance(level, (tuple, list)) else type(level).__name__}"
        )
    return dict(zip(("da", "ad", "dd"), level, strict=True))
