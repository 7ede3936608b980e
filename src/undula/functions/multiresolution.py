"""Multiresolution analyses: samples as a sum of what each band of a transform contributes to them.

The functions have the names, arguments and results of PyWavelets. A contribution is the inverse transform of
one band, with zeros in place of all others. Since the inverse is linear, the contributions add up to the
samples,

    x = S + Σ D(level, band),

and each has the shape of the samples, aligned with them [1]_.

References
----------
.. [1] D. B. Percival and H. O. Mofjeld, "Analysis of subtidal coastal sea level fluctuations using wavelets",
   Journal of the American Statistical Association 92 (439), 1997, 868-880.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import library_of, traceable_array
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.axis_arguments import Axes, checked_axes
from ..lowering.borders import check_mode
from ..lowering.boundary_methods import has_boundary_method
from ..wavelets import Wavelet
from .discrete import wavedec, wavedec2, wavedecn, waverec, waverec2, waverecn

__all__ = ["imra", "imra2", "imran", "mra", "mra2", "mran", "zeros_like"]

Array = NDArray[Any]
Transform = Callable[..., Any]


def mra(
    data: ArrayLike,
    wavelet: Wavelet | str,
    level: int | None = None,
    axis: int = -1,
    transform: str = "swt",
    mode: str | int = "periodization",
) -> list[Array]:
    """Split samples into the contributions of the levels of a transform along one axis.

    Parameters
    ----------
    data : array_like
        Samples, real or complex.
    wavelet : Wavelet or str
        The wavelet.
    level : int, optional
        How often the approximation is decomposed. The default is as often as is useful; for the stationary
        transform of lines of an even length, as often as this length is divisible by two, as in PyWavelets.
    axis : int, default -1
        Axis to transform.
    transform : {"swt", "dwt"}, default "swt"
        The stationary or the decimated transform.
    mode : str or int, default "periodization"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number. The stationary transform
        has the mode ``periodization`` only.

    Returns
    -------
    list of arrays
        ``[smooth, details of the coarsest level, …, details of the finest level]``, all of the shape of the
        samples. Their sum is the samples.

    See Also
    --------
    imra : The inverse.
    modwt_mra : The same for periods of any length, and for mirrored lines.

    Notes
    -----
    The contributions do not have the energy of the bands, as those of ``swt`` with ``norm=True`` do, but they
    are aligned with the samples whatever the symmetry of the wavelet.

    References
    ----------
    .. [1] D. B. Percival and H. O. Mofjeld, "Analysis of subtidal coastal sea level fluctuations using
       wavelets", Journal of the American Statistical Association 92 (439), 1997, 868-880.

    Examples
    --------
    >>> smooth, slow, fast = mra([1.0, 1, 3, 3, 5, 6, 7, 8], "haar", level=2, transform="dwt")
    >>> smooth.round(3).tolist()
    [2.0, 2.0, 2.0, 2.0, 6.5, 6.5, 6.5, 6.5]
    >>> (smooth + slow + fast).round(3).tolist()
    [1.0, 1.0, 3.0, 3.0, 5.0, 6.0, 7.0, 8.0]
    """
    forward: Transform = wavedec
    inverse: Transform = waverec
    if _is_stationary(transform, "", mode):
        from .stationary import iswt, swt

        forward, inverse, level = swt, iswt, _stationary_level(data, axis, level)
    return _analysis(data, forward, inverse, transform, {"wavelet": wavelet, "axis": axis}, level, mode)


def imra(mra_coeffs: Sequence[Array]) -> Array:
    """Compute the inverse of :func:`mra`: the sum.

    Parameters
    ----------
    mra_coeffs : sequence of arrays
        Contributions as :func:`mra` returns them.

    Returns
    -------
    array
        The samples.

    Examples
    --------
    >>> imra(mra([1.0, 2.0, 3.0, 5.0], "haar", transform="dwt")).round(3).tolist()
    [1.0, 2.0, 3.0, 5.0]
    """
    return _sum(mra_coeffs)


def mra2(
    data: ArrayLike,
    wavelet: Wavelet | str | Sequence[Any],
    level: int | None = None,
    axes: Sequence[int] = (-2, -1),
    transform: str = "swt2",
    mode: str | int | Sequence[Any] = "periodization",
) -> list[Any]:
    """Split images into the contributions of the bands of a transform.

    Parameters
    ----------
    data : array_like
        Samples, real or complex.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    level : int, optional
        How often the approximation is decomposed. The default is that of :func:`mra` for both axes.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
    transform : {"swt2", "dwt2"}, default "swt2"
        The stationary or the decimated transform.
    mode : str or int, or a sequence of them, default "periodization"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or one for each axis. The
        stationary transform has the mode ``periodization`` only.

    Returns
    -------
    list
        ``[smooth, (horizontal, vertical, diagonal) of the coarsest level, …, of the finest level]``, arrays
        of the shape of the samples. Their sum is the samples.

    See Also
    --------
    mra : More about these analyses.
    imra2 : The inverse.

    Examples
    --------
    >>> import numpy as np
    >>> smooth, details = mra2(np.eye(4), "haar", level=1, transform="dwt2")
    >>> bool(np.allclose(smooth + sum(details), np.eye(4)))
    True
    """
    forward: Transform = wavedec2
    inverse: Transform = waverec2
    if _is_stationary(transform, "2", mode):
        from .stationary import iswt2, swt2

        forward, inverse, level = swt2, iswt2, _stationary_level(data, axes, level)
    return _analysis(data, forward, inverse, transform, {"wavelet": wavelet, "axes": axes}, level, mode)


def imra2(mra_coeffs: Sequence[Any]) -> Array:
    """Compute the inverse of :func:`mra2`: the sum.

    Parameters
    ----------
    mra_coeffs : sequence
        Contributions as :func:`mra2` returns them.

    Returns
    -------
    array
        The samples.

    Examples
    --------
    >>> import numpy as np
    >>> imra2(mra2(np.eye(2), "haar", level=1, transform="dwt2")).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return _sum(mra_coeffs)


def mran(
    data: ArrayLike,
    wavelet: Wavelet | str | Sequence[Any],
    level: int | None = None,
    axes: Axes = None,
    transform: str = "swtn",
    mode: str | int | Sequence[Any] = "periodization",
) -> list[Any]:
    """Split samples into the contributions of the bands of a transform along several axes.

    Parameters
    ----------
    data : array_like
        Samples, real or complex.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    level : int, optional
        How often the approximation is decomposed. The default is that of :func:`mra`; that of the stationary
        transform is for all axes of the array, as in PyWavelets.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    transform : {"swtn", "dwtn"}, default "swtn"
        The stationary or the decimated transform.
    mode : str or int, or a sequence of them, default "periodization"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or one for each axis. The
        stationary transform has the mode ``periodization`` only.

    Returns
    -------
    list
        ``[smooth, details of the coarsest level, …, details of the finest level]``, the details of a level as
        a dictionary of arrays, all of the shape of the samples. Their sum is the samples.

    See Also
    --------
    mra : More about these analyses.
    imran : The inverse.

    Examples
    --------
    >>> import numpy as np
    >>> smooth, details = mran(np.eye(4), "haar", level=1, transform="dwtn")
    >>> sorted(details)
    ['ad', 'da', 'dd']
    """
    axes = checked_axes(axes, len(traceable_array(data).shape))
    forward: Transform = wavedecn
    inverse: Transform = waverecn
    if _is_stationary(transform, "n", mode):
        from .stationary import iswtn, swtn

        # As in PyWavelets, the default is for all axes, unless these have no level.
        level = _stationary_level(data, None, level) or _stationary_level(data, axes, level)
        forward, inverse = swtn, iswtn
    return _analysis(data, forward, inverse, transform, {"wavelet": wavelet, "axes": axes}, level, mode)


def imran(mra_coeffs: Sequence[Any]) -> Array:
    """Compute the inverse of :func:`mran`: the sum.

    Parameters
    ----------
    mra_coeffs : sequence
        Contributions as :func:`mran` returns them.

    Returns
    -------
    array
        The samples.

    Examples
    --------
    >>> import numpy as np
    >>> imran(mran(np.eye(2), "haar", level=1, transform="dwtn")).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return _sum(mra_coeffs)


# --- for any number of axes -----------------------------------------------------------------------


def _is_stationary(transform: object, suffix: str, mode: Any) -> bool:
    """Return whether a transform is the stationary one, or raise an error for an unknown one."""
    stationary, decimated = f"swt{suffix}", f"dwt{suffix}"
    if transform not in (stationary, decimated):
        raise ArgumentError(f"transform must be {stationary!r} or {decimated!r}, got {transform!r}")
    if has_boundary_method(mode):
        for each in mode if isinstance(mode, (list, tuple)) else (mode,):
            check_mode(each)  # It says where boundary methods work.
    if transform == stationary and mode != "periodization":
        raise ArgumentError(
            f"transform {stationary!r} has the mode 'periodization' only, got mode={mode!r}; for other modes"
            f" pass transform={decimated!r}"
        )
    return transform == stationary


def _stationary_level(data: ArrayLike, axes: Axes | None, level: int | None) -> int | None:
    """Return the number of levels of a stationary transform; None for as many as are useful.

    By default it is that of PyWavelets, where every level halves the period, unless a length is odd.
    """
    shape = traceable_array(data).shape
    lengths = [shape[axis] for axis in checked_axes(axes, len(shape))]
    return level if level is not None else max(0, min((n & -n).bit_length() - 1 for n in lengths)) or None


def _analysis(
    data: ArrayLike,
    forward: Transform,
    inverse: Transform,
    transform: str,
    arguments: dict[str, Any],
    level: int | None,
    mode: Any,
) -> list[Any]:
    """Return the contribution of each band, nested as the bands are."""
    if transform.startswith("swt"):
        bands = forward(data, level=level, trim_approx=True, norm=True, mode=mode, **arguments)
        return _contributions(bands, partial(inverse, norm=True, mode=mode, **arguments), data, False)
    bands = forward(data, level=level, mode=mode, **arguments)
    return _contributions(bands, partial(inverse, mode=mode, **arguments), data, True)


def _contributions(bands: Sequence[Any], inverse: Transform, data: ArrayLike, decimated: bool) -> list[Any]:
    """Invert one band at a time.

    The inverse of a decimated transform skips levels that are None. Finer levels are zeros instead, because
    their shapes tell which of the lengths between them are odd.
    """
    ends = tuple(slice(length) for length in traceable_array(data).shape)
    zeros = [zeros_like(part) for part in bands]

    def contribution(number: int, part: Any) -> Any:
        coarser = [None] * number if decimated else zeros[:number]
        return inverse([*coarser, part, *zeros[number + 1 :]])[ends]

    parts = [contribution(0, bands[0])]
    for number, (part, zero) in enumerate(zip(bands[1:], zeros[1:], strict=True), 1):
        if isinstance(part, dict):
            alone: Any = {key: {**zero, key: band} for key, band in part.items()}
            parts.append({key: contribution(number, single) for key, single in alone.items()})
        elif isinstance(part, tuple):
            alone = [(*zero[:k], band, *zero[k + 1 :]) for k, band in enumerate(part)]
            parts.append(tuple(contribution(number, single) for single in alone))
        else:
            parts.append(contribution(number, part))
    return parts


def zeros_like(part: Any) -> Any:
    """Return zeros in place of all coefficients of a level."""
    if isinstance(part, dict):
        return {key: zeros_like(band) for key, band in part.items()}
    if isinstance(part, tuple):
        return tuple(zeros_like(band) for band in part)
    return library_of(part).namespace(part).zeros_like(part)


def _sum(parts: Sequence[Any]) -> Array:
    """Return the sum of all arrays, however they are nested."""
    if isinstance(parts, np.ndarray) and parts.ndim > 1:
        parts = list(parts)  # Contributions of one shape are often stacked in one array.
    if isinstance(parts, (dict, str)) or not isinstance(parts, Sequence):
        raise ArgumentTypeError(f"a sequence of contributions is needed, got {type(parts).__name__}")
    given = list(_arrays(parts))
    read = [traceable_array(x, "a contribution") for x in given]
    plain = (np.ndarray, list, tuple, int, float, complex)  # of other libraries, sums are left to them
    arrays = [array if isinstance(x, plain) else x for x, array in zip(given, read, strict=True)]
    if not arrays:
        raise ArgumentError("a sequence of contributions is needed, got none")
    shapes = {tuple(x.shape) for x in arrays}
    if len(shapes) > 1:
        raise ArgumentError(f"contributions must have the same shape, got {sorted(shapes)}")
    total: Array = reduce(add, arrays)
    return total


def _arrays(parts: Any) -> Iterator[Any]:
    for part in parts.values() if isinstance(parts, dict) else parts:
        if isinstance(part, (dict, tuple, list)):
            yield from _arrays(part)
        else:
            yield part
