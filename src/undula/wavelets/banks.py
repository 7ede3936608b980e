"""Filter banks from one filter: the quadrature mirror filter and the orthogonal bank."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import keeps_library, numpy_array
from ..errors import ArgumentError

__all__ = ["orthfilt", "orthogonal_filter_bank", "qmf"]

Filter = NDArray[np.float64]


@keeps_library
def qmf(filt: ArrayLike) -> NDArray[np.float64]:
    """Return the quadrature mirror of a filter: reversed, with every second tap negated.

    Parameters
    ----------
    filt : array_like
        The taps, one-dimensional.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> qmf([1, 2, 3, 4]).tolist()
    [4, -3, 2, -1]
    """
    taps = numpy_array(filt, "a filter")
    if taps.dtype.kind in "bu":  # They have no negative numbers.
        taps = taps.astype(np.float64)
    if taps.ndim != 1:
        raise ArgumentError(f"a filter must be one-dimensional, got shape {taps.shape}")
    mirror = taps[::-1].copy()
    mirror[1::2] *= -1
    return mirror


@keeps_library
def orthogonal_filter_bank(scaling_filter: ArrayLike) -> tuple[Filter, Filter, Filter, Filter]:
    """Return the orthogonal filter bank of a scaling filter.

    Parameters
    ----------
    scaling_filter : array_like
        The taps, an even number of them; normalised to the sum √2.

    Returns
    -------
    tuple of ndarray
        ``(dec_lo, dec_hi, rec_lo, rec_hi)``.

    Examples
    --------
    >>> [f.round(3).tolist() for f in orthogonal_filter_bank([1, 1])]
    [[0.707, 0.707], [-0.707, 0.707], [0.707, 0.707], [0.707, -0.707]]
    """
    taps = numpy_array(scaling_filter, "scaling_filter").astype(np.float64)
    if taps.ndim != 1 or taps.size == 0 or taps.size % 2:
        raise ArgumentError(f"`scaling_filter` length has to be even and not zero, got shape {taps.shape}")
    total = taps.sum()
    if not np.isfinite(total) or total == 0:
        raise ArgumentError(f"the sum of the scaling filter must be finite and non-zero, got {total}")
    rec_lo = np.sqrt(2) * taps / total
    rec_hi = qmf(rec_lo)
    return rec_lo[::-1], rec_hi[::-1], rec_lo, rec_hi


def orthfilt(scaling_filter: ArrayLike) -> tuple[Filter, Filter, Filter, Filter]:
    """Return :func:`orthogonal_filter_bank`; the old name, which warns.

    Parameters
    ----------
    scaling_filter : array_like
        The taps, an even number of them.

    Returns
    -------
    tuple of ndarray
        ``(dec_lo, dec_hi, rec_lo, rec_hi)``.

    Examples
    --------
    >>> import pytest
    >>> with pytest.warns(DeprecationWarning, match="orthogonal_filter_bank"):
    ...     dec_lo, *_ = orthfilt([1.0, 1.0])
    """
    message = "orthfilt is the old name of orthogonal_filter_bank, which PyWavelets is going to require"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return orthogonal_filter_bank(scaling_filter)
