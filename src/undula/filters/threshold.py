"""Thresholding: small coefficients, which are mostly noise, are made smaller or nothing.

With ``t`` the threshold, a coefficient of magnitude ``m > t`` is multiplied with

    soft  1 - t/m        hard  1        garrote  1 - t²/m²        firm  from 0 at t to 1 at a second threshold

and one below it becomes the substitute.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..backends.devices.libraries import library_of
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..inputs import refuse_gradients
from ..transforms.arrays import as_array
from .arrays import arrays_for

__all__ = ["threshold", "threshold_firm"]

MODES = ("soft", "hard", "garrote", "greater", "less")


def threshold(data: ArrayLike, value: ArrayLike, mode: str = "soft", substitute: complex = 0) -> NDArray[Any]:
    """Thresholds the magnitude (``soft``, ``hard``, ``garrote``) or the value (``greater``, ``less``).

    Parameters
    ----------
    data : array_like
        Real, or complex for the modes that go by magnitude; on a GPU, too (CuPy, PyTorch, JAX).
    value : number or array_like
        The threshold, or one for each sample; not negative for modes that go by magnitude.
    mode : str
        ``soft`` shrinks what remains by the threshold, ``hard`` leaves it alone, ``garrote`` is between them;
        ``greater`` keeps what is not below the threshold, ``less`` what is not above it.
    substitute : number
        What replaces the samples that are not kept.

    Returns
    -------
    ndarray
        Of the dtype of the data. Integers become float64 where the mode shrinks or the substitute is a float;
        a complex substitute makes everything complex.

    Examples
    --------
    >>> threshold([-3.0, -1.0, 0.5, 2.0, 4.0], 2)
    array([-1.,  0.,  0.,  0.,  2.])
    >>> threshold([-3.0, -1.0, 0.5, 2.0, 4.0], 2, "hard")
    array([-3.,  0.,  0.,  2.,  4.])
    """
    mode = "garrote" if mode == "garotte" else mode  # PyWavelets knows both spellings
    if not isinstance(mode, str) or mode not in MODES:
        raise UnknownNameError("threshold mode", mode, MODES)
    if library_of(data) is not None:
        refuse_gradients(value, "the threshold")
        return threshold_by(arrays_for(data).xp, data, value, mode, substitute)  # type: ignore[no-any-return]
    x, t, fill = as_array(data), as_array(value, "the threshold"), as_array(substitute, "substitute")
    if mode in ("greater", "less"):
        if x.dtype.kind == "c" or t.dtype.kind == "c":
            raise ArgumentTypeError(f"mode {mode!r} needs real numbers; pass abs(x)")
        return _replaced(x < t if mode == "greater" else x > t, fill, x)
    _not_negative(t, value)
    if mode == "hard":
        magnitude = np.abs(x)
        if x.dtype.kind == "i":  # the magnitude of the least integer fits unsigned ones alone
            magnitude = magnitude.view(f"u{x.itemsize}")
        return _replaced(magnitude < t, fill, x)
    x = _floating(x)
    magnitude = np.abs(x)
    t = t.astype(magnitude.dtype)
    # Where the magnitude is zero, what is divided by does not matter.
    share = t / np.where(magnitude == 0, 1, magnitude)
    gain = 1 - (share if mode == "soft" else share**2)
    return _replaced(magnitude < t, fill, x * gain.astype(magnitude.dtype))


def threshold_firm(data: ArrayLike, value_low: ArrayLike, value_high: ArrayLike) -> NDArray[Any]:
    """Firm thresholding: nothing below the first threshold, everything above the second.

    In between magnitudes are spread from 0 to the second threshold, so that there is no jump.

    Examples
    --------
    >>> threshold_firm([-4.0, -2.0, 0.5, 1.5, 3.0], 1, 3)
    array([-4.  , -1.5 ,  0.  ,  0.75,  3.  ])
    """
    if library_of(data) is not None:
        refuse_gradients((value_low, value_high), "a threshold")
        return firm_by(arrays_for(data).xp, data, value_low, value_high)  # type: ignore[no-any-return]
    x = _floating(as_array(data))
    low, high = as_array(value_low, "the low threshold"), as_array(value_high, "the high threshold")
    _not_negative(low, value_low)
    _not_negative(high, value_high)
    if np.any(high < low):
        raise ArgumentError(f"value_high must be at least value_low, got {value_high!r} and {value_low!r}")
    magnitude = np.abs(x)
    low, high = low.astype(magnitude.dtype), high.astype(magnitude.dtype)
    width = np.where(high > low, high - low, 1)
    with np.errstate(invalid="ignore"):
        slope = np.where(np.isinf(high), 1, high / width)
    spread = (1 - low / np.where(magnitude == 0, 1, magnitude)) * slope
    gain = np.where(magnitude > high, 1, np.where(magnitude <= low, 0, spread))
    return np.asarray(x * gain.astype(magnitude.dtype))


def threshold_by(xp: Any, x: Any, value: Any, mode: str, substitute: complex) -> Any:
    """The same by the functions of another library, on its device."""
    fill, dtype = as_array(substitute, "substitute"), _numpy_dtype(x)
    whole, shrinks = dtype.kind in "biu", mode in ("soft", "garrote")
    if whole and shrinks:
        x, dtype = xp.astype(x, xp.float64), np.dtype(np.float64)
    if mode in ("greater", "less"):
        dropped = x < value if mode == "greater" else x > value
    else:
        # (The magnitude of the least integer does not fit its own dtype.)
        magnitude = xp.abs(xp.astype(x, xp.float64) if whole and not shrinks else x)
        dropped = magnitude < value
        if shrinks:
            share = value / xp.where(magnitude == 0, xp.ones_like(magnitude), magnitude)
            x = x * (1 - (share if mode == "soft" else share * share))
    common = _common_dtype(dtype, fill)
    if common != dtype:
        x = xp.astype(x, getattr(xp, common.name))
    return xp.where(dropped, xp.full_like(x, fill.item()), x)


def firm_by(xp: Any, x: Any, low: Any, high: Any) -> Any:
    """Firm thresholds by the functions of another library."""
    if _numpy_dtype(x).kind in "biu":
        x = xp.astype(x, xp.float64)
    magnitude = xp.abs(x)
    size = xp.where(magnitude == 0, xp.ones_like(magnitude), magnitude)
    gap = high - low
    if hasattr(gap, "shape"):
        slope = high / xp.where(gap > 0, gap, xp.ones_like(gap))
    else:
        slope = 1 if math.isinf(high) else high / (gap or 1)
    gain = xp.where(
        magnitude > high,
        xp.ones_like(size),
        xp.where(magnitude <= low, xp.zeros_like(size), (1 - low / size) * slope),
    )
    return x * gain


def _numpy_dtype(x: Any) -> np.dtype[Any]:
    """What NumPy calls the dtype of an array of another library."""
    try:
        return np.dtype(str(x.dtype).removeprefix("torch."))
    except TypeError:  # bfloat16, say
        return np.dtype(np.float32)


def _replaced(dropped: NDArray[Any], fill: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """Samples that are not kept replaced."""
    dtype = _common_dtype(x.dtype, fill)
    return np.asarray(np.where(dropped, fill.astype(dtype), x.astype(dtype, copy=False)))


def _common_dtype(dtype: np.dtype[Any], fill: NDArray[Any]) -> np.dtype[Any]:
    """A dtype that holds data and substitute: that of the data, unless the substitute is of another kind."""
    if fill.dtype.kind == "c":
        return np.result_type(np.float64 if dtype.kind in "biu" else dtype, np.complex64)
    if dtype.kind in "biu" and fill.dtype.kind == "f":
        return np.dtype(np.float64)
    if dtype.kind == "b" and fill.dtype.kind in "iu":
        return np.dtype(np.int64)
    if dtype.kind in "iu" and fill.size:
        info = np.iinfo(dtype)
        if int(fill.min()) < info.min or int(fill.max()) > info.max:
            raise ArgumentError(
                f"substitute must be from {info.min} to {info.max} for data of {dtype}, got {fill}; convert"
                " the data first"
            )
    return dtype


def _floating(x: NDArray[Any]) -> NDArray[Any]:
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def _not_negative(t: NDArray[Any], given: object) -> None:
    if t.dtype.kind == "c" or np.any(t < 0):
        raise ArgumentError(f"a threshold on magnitudes must not be negative, got {given!r}")
