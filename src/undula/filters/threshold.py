"""Thresholding: small coefficients, which are mostly noise, are made smaller or nothing.

With ``t`` the threshold, a coefficient of magnitude ``m > t`` is multiplied with

    soft  1 - t/m        hard  1        garrote  1 - t²/m²        firm  from 0 at t to 1 at a second threshold

and one below it becomes the substitute.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..backends.devices.libraries import library_of
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from .arrays import arrays_for

__all__ = ["threshold", "threshold_firm"]

MODES = ("soft", "hard", "garrote", "greater", "less")


def threshold(data: ArrayLike, value: ArrayLike, mode: str = "soft", substitute: float = 0) -> NDArray[Any]:
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
        Of the dtype of the data; integers become floats where the mode shrinks.

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
        return _where_it_is(data, value, mode, substitute)  # type: ignore[no-any-return]
    x, t = _checked(data), _checked(value, "the threshold")
    if mode in ("greater", "less"):
        if x.dtype.kind == "c":
            raise ArgumentTypeError(f"complex numbers have no order for mode {mode!r}; go by magnitude")
        dropped = x < t if mode == "greater" else x > t
        return np.asarray(np.where(dropped, np.asarray(substitute).astype(x.dtype), x))
    _not_negative(t, value)
    if mode == "hard":
        return np.asarray(np.where(np.abs(x) < t, np.asarray(substitute).astype(x.dtype), x))
    x = _floating(x)
    magnitude = np.abs(x)
    t = t.astype(magnitude.dtype)
    # A sample of magnitude zero is never kept, so what is divided by there does not matter.
    share = t / np.where(magnitude == 0, 1, magnitude)
    gain = 1 - (share if mode == "soft" else share**2)
    dropped = (magnitude < t) | (magnitude == 0)  # (what is no number is kept)
    fill = np.asarray(substitute).astype(x.dtype)
    return np.asarray(np.where(dropped, fill, x * gain.astype(magnitude.dtype)))


def threshold_firm(data: ArrayLike, value_low: ArrayLike, value_high: ArrayLike) -> NDArray[Any]:
    """Firm thresholding: nothing below the first threshold, everything above the second.

    In between magnitudes are spread from 0 to the second threshold, so that there is no jump.

    >>> threshold_firm([-4.0, -2.0, 0.5, 1.5, 3.0], 1, 3)
    array([-4.  , -1.5 ,  0.  ,  0.75,  3.  ])
    """
    if library_of(data) is not None:
        return _firm_where_it_is(data, value_low, value_high)  # type: ignore[no-any-return]
    x = _floating(_checked(data))
    low, high = _checked(value_low, "the low threshold"), _checked(value_high, "the high threshold")
    _not_negative(low, value_low)
    if np.any(high < low):
        raise ArgumentError(f"value_high must be at least value_low, got {value_high!r} and {value_low!r}")
    magnitude = np.abs(x)
    low, high = low.astype(magnitude.dtype), high.astype(magnitude.dtype)
    width = np.where(high > low, high - low, 1)
    spread = high * (1 - low / np.where(magnitude == 0, 1, magnitude)) / width
    gain = np.where(magnitude > high, 1, np.where(magnitude <= low, 0, spread))
    return np.asarray(x * gain.astype(magnitude.dtype))


def _where_it_is(data: Any, value: Any, mode: str, substitute: float) -> Any:
    """The same on a device, by the functions of the array's own library."""
    xp = arrays_for(data).xp
    x = data
    if mode in ("greater", "less"):
        dropped = x < value if mode == "greater" else x > value
        return xp.where(dropped, xp.full_like(x, substitute), x)
    magnitude = xp.abs(x)
    dropped = magnitude < value
    if mode != "hard":
        size = xp.where(magnitude == 0, xp.ones_like(magnitude), magnitude)
        share = value / size
        x = x * (1 - (share if mode == "soft" else share * share))
        dropped = dropped | (magnitude == 0)
    return xp.where(dropped, xp.full_like(x, substitute), x)


def _firm_where_it_is(x: Any, low: Any, high: Any) -> Any:
    xp = arrays_for(x).xp
    magnitude = xp.abs(x)
    size = xp.where(magnitude == 0, xp.ones_like(magnitude), magnitude)
    gap = high - low
    spread = (
        high
        * (1 - low / size)
        / (xp.where(gap > 0, gap, xp.ones_like(gap)) if hasattr(gap, "shape") else gap or 1)
    )
    gain = xp.where(
        magnitude > high, xp.ones_like(size), xp.where(magnitude <= low, xp.zeros_like(size), spread)
    )
    return x * gain


def _checked(data: ArrayLike, what: str = "data") -> NDArray[Any]:
    array = np.asarray(data)
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(f"{what} must be numbers, got dtype {array.dtype}")
    return array


def _floating(x: NDArray[Any]) -> NDArray[Any]:
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def _not_negative(t: NDArray[Any], given: object) -> None:
    if t.dtype.kind == "c" or np.any(t < 0):
        raise ArgumentError(f"a threshold on magnitudes must not be negative, got {given!r}")
