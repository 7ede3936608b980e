"""Thresholding of arrays: the functions of PyWavelets, with its results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import library_of, numpy_array, refuse_gradients, traceable_array
from ..engines.tensors import call_untraced, is_torch_compiling
from ..errors import ArgumentError, UnknownNameError
from ..lowering.rules import ALIASES, THRESHOLD_RULES, apply_rule

__all__ = ["threshold", "threshold_firm"]

MODES = tuple(name for name in THRESHOLD_RULES if name != "firm")


def threshold(data: ArrayLike, value: ArrayLike, mode: str = "soft", substitute: complex = 0) -> NDArray[Any]:
    """Threshold an array by magnitude (``soft``, ``hard``, ``garrote``) or by value (``greater``, ``less``).

    Parameters
    ----------
    data : array_like
        Real samples, or complex ones for the modes that compare magnitudes. Arrays on a GPU (CuPy, PyTorch,
        JAX) are processed there.
    value : float or array_like
        Threshold, or one threshold per sample. No magnitude is below a negative one: ``soft`` then adds to
        all magnitudes, and ``hard`` keeps all samples.
    mode : {"soft", "hard", "garrote", "greater", "less"}, default "soft"
        ``soft`` shrinks the remaining samples by the threshold, ``hard`` leaves them unchanged, ``garrote``
        lies in between. ``greater`` keeps samples that are not below the threshold, ``less`` those that are
        not above it.
    substitute : complex, default 0
        Replaces the samples that are not kept.

    Returns
    -------
    ndarray
        Array of the dtype of the data. Integers become float64 if the mode shrinks or the substitute is a
        float; a complex substitute makes the result complex.

    See Also
    --------
    threshold_firm

    Examples
    --------
    >>> threshold([-3.0, -1.0, 0.5, 2.0, 4.0], 2)
    array([-1.,  0.,  0.,  0.,  2.])
    >>> threshold([-3.0, -1.0, 0.5, 2.0, 4.0], 2, "hard")
    array([-3.,  0.,  0.,  2.,  4.])
    """
    if is_torch_compiling():
        return call_untraced(__name__, "threshold", data, value, mode, substitute)  # type: ignore[no-any-return]
    mode = ALIASES.get(mode, mode) if isinstance(mode, str) else mode
    if not isinstance(mode, str) or mode not in MODES:
        raise UnknownNameError("threshold mode", mode, MODES)
    x = traceable_array(data)
    if not isinstance(x, np.ndarray):
        refuse_gradients(value, "the threshold")
        return threshold_in(library_of(x).namespace(x), x, value, mode, substitute)  # type: ignore[no-any-return]
    restore = library_of(data).restore
    limit = numpy_array(value, "the threshold")
    if limit.dtype.kind == "c":
        if limit.imag.any():
            raise ArgumentError(f"a threshold is a real number, got {value!r}; pass abs(value)")
        if THRESHOLD_RULES[mode].gain is not None:
            x = x.astype(np.result_type(x, limit))
        value = limit = limit.real
    if x.dtype.kind == "c" and not THRESHOLD_RULES[mode].by_magnitude:
        raise ArgumentError(f"mode {mode!r} needs real numbers; pass abs(x)")
    if THRESHOLD_RULES[mode].squares and np.any(limit < 0):
        # The threshold is squared, but only magnitudes below the negative number would be substituted.
        fill = np.where(limit < 0, 0, substitute)
        return restore(np.asarray(threshold_in(np, x, np.abs(limit), mode, fill)), data)  # type: ignore[no-any-return]
    # A number takes the precision of the data: a sample of float32 may be equal to it.
    number = value if isinstance(value, (int, float)) else limit
    return restore(np.asarray(threshold_in(np, x, number, mode, substitute)), data)  # type: ignore[no-any-return]


def threshold_firm(data: ArrayLike, value_low: ArrayLike, value_high: ArrayLike) -> NDArray[Any]:
    """Set magnitudes below the first threshold to zero and keep those above the second one.

    Magnitudes in between are mapped linearly to the range from 0 to the second threshold, so that the result
    has no jump.

    Parameters
    ----------
    data : array_like
        Real or complex samples, on the host or on a GPU.
    value_low, value_high : float or array_like
        The two thresholds, or two per sample.

    Returns
    -------
    ndarray
        Array of the dtype of the data; integers become float64.

    See Also
    --------
    threshold

    Examples
    --------
    >>> threshold_firm([-4.0, -2.0, 0.5, 1.5, 3.0], 1, 3)
    array([-4.  , -1.5 ,  0.  ,  0.75,  3.  ])
    """
    if is_torch_compiling():
        return call_untraced(__name__, "threshold_firm", data, value_low, value_high)  # type: ignore[no-any-return]
    x = traceable_array(data)
    if not isinstance(x, np.ndarray):
        refuse_gradients((value_low, value_high), "a threshold")
        return firm_in(library_of(x).namespace(x), x, value_low, value_high)  # type: ignore[no-any-return]
    low, high = numpy_array(value_low, "the low threshold"), numpy_array(value_high, "the high threshold")
    _check_not_negative(low, value_low)
    _check_not_negative(high, value_high)
    if np.any(high < low):
        raise ArgumentError(f"value_high must be at least value_low, got {value_high!r} and {value_low!r}")
    with np.errstate(invalid="ignore"):  # An infinite threshold divided by itself is replaced.
        return library_of(data).restore(np.asarray(firm_in(np, x, low, high)), data)  # type: ignore[no-any-return]


def threshold_in(xp: Any, x: Any, value: Any, mode: str, substitute: ArrayLike) -> Any:
    """Threshold an array of any library by the functions of its namespace."""
    fill, dtype = numpy_array(substitute, "substitute"), _numpy_dtype(x)
    if THRESHOLD_RULES[mode].gain is not None:
        x, dtype = _as_floats(xp, x, dtype)
    values, dropped = apply_rule(xp, mode, x, value)
    common = _common_dtype(dtype, fill)
    if common != dtype:
        values = xp.astype(values, getattr(xp, common.name))
    filling = fill.astype(common) if isinstance(x, np.ndarray) else xp.full_like(values, fill.item())
    return xp.where(dropped, filling, values)


def firm_in(xp: Any, x: Any, low: Any, high: Any) -> Any:
    """Apply two thresholds to an array of any library by the functions of its namespace."""
    x, _ = _as_floats(xp, x, _numpy_dtype(x))
    values, dropped = apply_rule(xp, "firm", x, low, high)
    return xp.where(dropped, xp.zeros_like(values), values)


def _numpy_dtype(x: Any) -> np.dtype[Any]:
    """NumPy's equivalent of the dtype of an array of any library."""
    try:
        return np.dtype(library_of(x).dtype(x))
    except TypeError:  # NumPy has no bfloat16, for example.
        return np.dtype(np.float32)


def _as_floats(xp: Any, x: Any, dtype: np.dtype[Any]) -> tuple[Any, np.dtype[Any]]:
    """Convert booleans and integers to float64."""
    if dtype.kind not in "biu":
        return x, dtype
    return xp.astype(x, xp.float64), np.dtype(np.float64)


def _common_dtype(dtype: np.dtype[Any], fill: NDArray[Any]) -> np.dtype[Any]:
    """Return the dtype of the data, or one that also holds a substitute of another kind."""
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


def _check_not_negative(limit: NDArray[Any], value: object) -> None:
    if limit.dtype.kind == "c" or np.any(limit < 0):
        raise ArgumentError(f"a threshold on magnitudes must not be negative, got {value!r}")
