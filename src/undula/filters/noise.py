"""Noise: how much there is, and how much of it each band gets.

White noise of standard deviation σ has σ·‖f‖ in a band whose filters, taken together, are f; for orthogonal
wavelets that is σ in every band. The finest diagonal band is mostly noise, and the median of its magnitudes
tells how much: σ = median/0.6745, whatever few large coefficients say.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, ArgumentTypeError
from ..transforms import dwtn
from ..transforms.arrays import given_array
from ..wavelets import Wavelet
from .arrays import NORMAL, Arrays, arrays_for, rounding_of

__all__ = ["band_norms", "estimate_sigma", "sigma_of"]


@lru_cache(maxsize=256)
def band_norms(wavelet: Wavelet, levels: int) -> tuple[tuple[float, float], ...]:
    """For each level, finest first, the norms of what makes its low and its high band along an axis."""
    low = np.ones(1)
    found = []
    for level in range(levels):
        ends = []
        for taps in (wavelet.dec_lo, wavelet.dec_hi):
            apart = np.zeros((len(taps) - 1) * 2**level + 1)
            apart[:: 2**level] = taps
            ends.append(np.convolve(low, apart))
        low = ends[0]
        found.append((float(np.linalg.norm(ends[0])), float(np.linalg.norm(ends[1]))))
    return tuple(found)


def sigma_of(arrays: Arrays, diagonal: Any, norm: float = 1.0, least: Any = 0.0) -> Any:
    """The noise of each item, from its finest diagonal band; up to ``least`` is for zero."""
    return arrays.magnitude(diagonal, least) / (NORMAL * norm)


def estimate_sigma(image: ArrayLike, average_sigmas: bool = False, *, channel_axis: int | None = None) -> Any:
    """How much Gaussian noise is in an image or volume: its standard deviation.

    Parameters
    ----------
    image : array_like
        Of any dimension; what is no number is left out.
    average_sigmas : bool
        The mean over all channels.
    channel_axis : int, optional
        The axis of channels, which are looked at one by one.

    Returns
    -------
    float, or one for each channel
        For arrays on a device, arrays there: nobody waits.

    Notes
    -----
    The same as scikit-image's, except where coefficients are zero but for rounding, in even parts of pictures
    of integers: those count for zero here, and are left out; there they count as noise of 1e-17.

    Examples
    --------
    >>> noisy = 5 * np.random.default_rng(0).standard_normal((256, 256))
    >>> abs(estimate_sigma(noisy) - 5) < 0.1
    True
    """
    x = given_array(image, "image")
    if "complex" in str(x.dtype):
        raise ArgumentTypeError(f"images are real numbers, got {x.dtype}")
    ndim = len(x.shape)
    if ndim == 0 or 0 in x.shape:
        raise ArgumentError(f"an array with samples is needed, got shape {tuple(x.shape)}")
    arrays = arrays_for(x)
    if channel_axis is not None:
        if not -ndim <= channel_axis < ndim:
            raise ArgumentError(f"channel_axis must be from {-ndim} to {ndim - 1}, got {channel_axis}")
        own = channel_axis % ndim
        found = [
            estimate_sigma(x[(*[slice(None)] * own, channel)], channel_axis=None)
            for channel in range(x.shape[own])
        ]
        if not average_sigmas:
            return found
        return sum(found) / len(found)
    if ndim > 1 and 1 < x.shape[-1] <= 4:
        warnings.warn(
            f"the last axis has {x.shape[-1]} samples; if these are channels, pass channel_axis=-1",
            stacklevel=2,
        )
    if arrays.host and not np.isfinite(x).all():
        x = np.where(np.isfinite(x), x, np.nan)  # (coefficients near them are no numbers, and left out)
    if arrays.host and x.dtype.kind == "f" and not np.isfinite(x).any():
        raise ArgumentError("no sample is a number")
    if 1 in x.shape and max(x.shape) > 1:  # (an axis of one sample has no noise along it)
        x = arrays.xp.reshape(x, tuple(n for n in x.shape if n > 1))
        ndim = len(x.shape)
    bands = dwtn(x, "db2")
    low, diagonal = (bands[letter * ndim][None, ...] for letter in "ad")
    least = rounding_of(arrays, low[..., :: max(1, low.shape[-1] // 64)], 1, ndim)
    if arrays.host:
        least = np.where(np.isfinite(least), least, 0)
    sigma = sigma_of(arrays, diagonal, 1.0, least)[0]
    return float(sigma) if arrays.host else sigma
