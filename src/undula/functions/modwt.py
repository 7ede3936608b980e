"""The maximal overlap DWT (MODWT) of Percival and Walden: undecimated, circular, for lines of any length.

With the filters h = ``dec_hi`` / √2 and g = ``dec_lo`` / √2 of L taps, level j of a line of N samples is [1]_

    W[j, t] = Σ h[l] V[j - 1, t - 2^(j-1) l mod N]      V[j, t] = Σ g[l] V[j - 1, t - 2^(j-1) l mod N]

where V[0] is the line. They are computed by the operator of the stationary transform, with causal filters.
The functions ``swt`` with ``norm=True`` centre each filter: they have W[j, t], and V[j, t], at the place
t - s, where

    s = (L / 2) (2^j - 1).

References
----------
.. [1] D. B. Percival and A. T. Walden, *Wavelet Methods for Time Series Analysis*, Cambridge University
   Press, 2000, chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import library_of, traceable_array
from ..engines.dispatch import decompose, engine_for, recompose
from ..engines.tensors import call_untraced, is_torch_compiling
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.axis_arguments import checked_axes, one_axis
from ..lowering.spec import MAX_LEVEL, TransformSpec, undecimated_spec
from ..wavelets import Wavelet, as_wavelet
from .multiresolution import zeros_like

__all__ = ["imodwt", "modwt", "modwt_mra"]

Array = NDArray[Any]
BOUNDARIES = ("circular", "reflection")


def modwt(
    data: ArrayLike,
    wavelet: Wavelet | str,
    level: int | None = None,
    axis: int = -1,
    boundary: str = "circular",
    *,
    backend: str = "auto",
) -> list[Array]:
    """Compute the maximal overlap DWT along one axis.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any length.
    wavelet : Wavelet or str
        The wavelet.
    level : int, optional
        The number of levels. The default is as many as have filters no longer than the line,
        ``floor(log2((N - 1) / (L - 1) + 1))``, and at least 1.
    axis : int, default -1
        Axis to transform.
    boundary : {"circular", "reflection"}, default "circular"
        ``circular`` repeats the line. ``reflection`` transforms the line followed by its mirror image, so
        that its ends meet without a jump, and returns twice as many coefficients.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list of arrays
        ``[W1, W2, …, WJ, VJ]``: wavelet coefficients from the finest level to the coarsest, and the scaling
        coefficients of the coarsest level.

    See Also
    --------
    imodwt : The inverse.
    modwt_mra : Details and smooth, which add up to the samples.

    Notes
    -----
    As in [1]_, ``W1[t]`` is the sum of ``h[l] x[(t - l) % N]`` with ``h = dec_hi / √2``, and ``V1`` likewise
    with ``dec_lo``. At level j filters have ``2**(j - 1) - 1`` zeros between taps, and are applied to the
    scaling coefficients of the level before. The book tabulates the filters of some families in reverse
    order.

    For orthogonal wavelets the energy of the samples is that of all coefficients. If samples are shifted
    circularly, coefficients are shifted alike.

    References
    ----------
    .. [1] D. B. Percival and A. T. Walden, *Wavelet Methods for Time Series Analysis*, Cambridge University
       Press, 2000, chapter 5.

    Examples
    --------
    >>> details, scaling = modwt([1.0, 2.0, 4.0, 8.0, 5.0], "haar", level=1)
    >>> details.round(3).tolist()
    [2.0, -0.5, -1.0, -2.0, 1.5]
    >>> scaling.round(3).tolist()
    [3.0, 1.5, 3.0, 6.0, 6.5]
    """
    if is_torch_compiling():
        return call_untraced(  # type: ignore[no-any-return]
            __name__, "modwt", data, wavelet, level=level, axis=axis, boundary=boundary, backend=backend
        )
    x, number = _line(data, axis)
    bank = as_wavelet(wavelet)
    levels = _levels(x.shape[number], bank, level)
    line = _reflected(x, number) if _is_reflected(boundary) else x
    bands: list[Array] = library_of(data).restore(_undecimated(line, bank, levels, number, backend), data)
    return bands


def imodwt(
    coeffs: Sequence[ArrayLike],
    wavelet: Wavelet | str,
    axis: int = -1,
    boundary: str = "circular",
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`modwt`.

    Parameters
    ----------
    coeffs : sequence of array_like
        Coefficients as :func:`modwt` returns them.
    wavelet : Wavelet or str
        The wavelet.
    axis : int, default -1
        Axis to transform.
    boundary : {"circular", "reflection"}, default "circular"
        The boundary of the transform. Of ``reflection``, the first half of the line is returned.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    array
        The samples.

    Examples
    --------
    >>> imodwt(modwt([1.0, 2.0, 4.0, 8.0, 5.0], "db2"), "db2").round(3).tolist()
    [1.0, 2.0, 4.0, 8.0, 5.0]
    """
    if is_torch_compiling():
        options = {"backend": backend}
        return call_untraced(__name__, "imodwt", coeffs, wavelet, axis, boundary, **options)  # type: ignore[no-any-return]
    if isinstance(coeffs, np.ndarray) and coeffs.ndim > 1:
        coeffs = list(coeffs)  # Bands of one shape are often stacked in one array.
    if isinstance(coeffs, str) or not isinstance(coeffs, Sequence) or len(coeffs) < 2:
        got = f"a {type(coeffs).__name__}"
        if isinstance(coeffs, (list, tuple)):
            got += f" of {len(coeffs)}"
        raise ArgumentTypeError(
            "coefficients are a sequence [W1, …, WJ, VJ] of two or more arrays, as modwt returns it; got"
            f" {got}"
        )
    arrays = [traceable_array(band, "a band of coefficients") for band in coeffs]
    if len({tuple(band.shape) for band in arrays}) > 1:
        raise ArgumentError(
            f"all coefficients need the same shape, got {[tuple(band.shape) for band in arrays]}"
        )
    (number,) = checked_axes(one_axis(axis), len(arrays[0].shape))
    reflected = _is_reflected(boundary)
    samples = _inverse_undecimated(arrays, as_wavelet(wavelet), number, backend)
    x: Array = library_of(coeffs[0]).restore(samples, coeffs[0])
    return _first_half(x, number) if reflected else x


def modwt_mra(
    data: ArrayLike,
    wavelet: Wavelet | str,
    level: int | None = None,
    axis: int = -1,
    boundary: str = "circular",
    *,
    backend: str = "auto",
) -> list[Array]:
    """Split samples into the details and the smooth of their maximal overlap DWT.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any length.
    wavelet : Wavelet or str
        The wavelet.
    level : int, optional
        The number of levels. The default is that of :func:`modwt`.
    axis : int, default -1
        Axis to transform.
    boundary : {"circular", "reflection"}, default "circular"
        ``circular`` repeats the line. ``reflection`` transforms the line followed by its mirror image, so
        that its ends meet without a jump.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list of arrays
        ``[D1, D2, …, DJ, SJ]``: details from the finest level to the coarsest, and the smooth, all of the
        shape of the samples. Their sum is the samples.

    See Also
    --------
    mra : The same as a part of PyWavelets' functions, with the smooth first.

    Notes
    -----
    A detail is the inverse of the coefficients of one level. It is a line filtered by a filter and by its
    mirror image, which has zero phase: events are where they are in the samples [1]_.

    References
    ----------
    .. [1] D. B. Percival and A. T. Walden, *Wavelet Methods for Time Series Analysis*, Cambridge University
       Press, 2000, section 5.4.

    Examples
    --------
    >>> x = [1.0, 2.0, 4.0, 8.0, 5.0]
    >>> details, smooth = modwt_mra(x, "haar", level=1)
    >>> smooth.round(3).tolist()
    [2.25, 2.25, 4.5, 6.25, 4.75]
    >>> (details + smooth).round(3).tolist()
    [1.0, 2.0, 4.0, 8.0, 5.0]
    """
    bands = modwt(data, wavelet, level, axis, boundary, backend=backend)
    zero = zeros_like(bands[0])
    alone = [[*[zero] * k, band, *[zero] * (len(bands) - 1 - k)] for k, band in enumerate(bands)]
    return [imodwt(single, wavelet, axis, boundary, backend=backend) for single in alone]


# --- lines ----------------------------------------------------------------------------------------


def _line(data: ArrayLike, axis: int) -> tuple[Any, int]:
    x = traceable_array(data)
    (number,) = checked_axes(one_axis(axis), len(x.shape))
    if not x.shape[number]:
        raise ArgumentError(f"data must have samples along the axis, got shape {tuple(x.shape)}")
    return x, number


def _levels(length: int, bank: Wavelet, level: int | None) -> int:
    if level is None:
        return max(1, math.floor(math.log2((length - 1) / (bank.dec_len - 1) + 1)))
    if not isinstance(level, int) or isinstance(level, bool):
        raise ArgumentTypeError(f"level must be an integer, got {level!r}")
    if not 1 <= level <= MAX_LEVEL:
        raise ArgumentError(f"level must be from 1 to {MAX_LEVEL}, got {level}")
    return level


def _is_reflected(boundary: object) -> bool:
    if boundary not in BOUNDARIES:
        raise ArgumentError(f"boundary must be 'circular' or 'reflection', got {boundary!r}")
    return boundary == "reflection"


def _reflected(x: Any, axis: int) -> Any:
    functions = library_of(x).namespace(x)
    return functions.concat([x, functions.flip(x, axis=axis)], axis=axis)


def _first_half(x: Array, axis: int) -> Array:
    return x[(*[slice(None)] * axis, slice(x.shape[axis] // 2))]


# --- the undecimated operator ---------------------------------------------------------------------


def _spec(ndim: int, bank: Wavelet, axis: int) -> TransformSpec:
    return undecimated_spec(ndim, bank, "periodization", (axis,), gain=1 / math.sqrt(2), causal=True)


def _undecimated(x: Any, bank: Wavelet, levels: int, axis: int, backend: str) -> list[Any]:
    """Return wavelet coefficients, finest first, and scaling coefficients, of causal filters."""
    spec = _spec(len(x.shape), bank, axis)
    scaling, *details = decompose(engine_for([x], backend), spec, x, levels)
    bands: list[Any] = [*(part["d"] for part in reversed(details)), scaling]
    return bands


def _inverse_undecimated(coeffs: Sequence[Any], bank: Wavelet, axis: int, backend: str) -> Any:
    """Compute the inverse of :func:`_undecimated`."""
    *details, scaling = coeffs
    spec = _spec(len(scaling.shape), bank, axis)
    keyed = [scaling, *({"d": band} for band in reversed(details))]
    return recompose(engine_for(list(coeffs), backend), spec, keyed)
