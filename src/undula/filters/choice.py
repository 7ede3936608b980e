"""Thresholds: how large a coefficient has to be before it is more than noise.

universal  σ √(2 ln N)            nothing of the noise is left, and some detail is lost
minimax    σ (0.3936 + 0.1829 log₂ N)
bayes      σ² / √(E - σ²)         by the energy E of each band
sure       where Stein's estimate of the error is least, for each band
hybrid     sure, and universal for bands with next to nothing in them
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .arrays import Arrays, count_of

__all__ = ["CHOICES", "choose"]

CHOICES = ("bayes", "sure", "hybrid", "minimax", "universal")


def choose(
    arrays: Arrays,
    method: str,
    bands: Sequence[Any],
    sigmas: Sequence[Any],
    samples: int,
    shares: Sequence[Any],
) -> list[Any]:
    """For each band, a threshold for each item.

    Parameters
    ----------
    arrays : Arrays
    method : str
        One of :data:`CHOICES`.
    bands : sequence of arrays
    sigmas : sequence of arrays
        The noise in each band, for each item.
    samples : int
        How many samples the whole image has.
    shares : sequence of numbers
        How much of each band is valid; the rest is zero.
    """
    if method == "universal":
        return [sigma * math.sqrt(2 * math.log(max(samples, 2))) for sigma in sigmas]
    if method == "minimax":
        factor = 0.3936 + 0.1829 * math.log2(samples) if samples > 32 else 0.0
        return [sigma * factor for sigma in sigmas]
    if method == "bayes":
        energies = zip(arrays.energies(bands), bands, sigmas, shares, strict=True)
        return [bayes(arrays.xp, e / (count_of(band) * share), sigma) for e, band, sigma, share in energies]
    return [_sure(arrays, band, sigma, method == "hybrid") for band, sigma in zip(bands, sigmas, strict=True)]


def bayes(xp: Any, energy: Any, sigma: Any) -> Any:
    """From the mean of squares of a band, in units of the noise."""
    unit = xp.where(sigma > 0, sigma, xp.ones_like(sigma))
    left = energy / unit / unit - 1
    return sigma / xp.sqrt(xp.maximum(left, xp.full_like(left, 1e-12)))


def _sure(arrays: Arrays, band: Any, sigma: Any, hybrid: bool) -> Any:
    """Stein's estimate of the error at every magnitude that occurs, and where it is least."""
    xp = arrays.xp
    count = count_of(band)
    noise = xp.reshape(sigma, (-1, 1))
    sizes = xp.sort(xp.abs(xp.reshape(band, (band.shape[0], -1))), axis=1)
    scaled = sizes / xp.maximum(noise, xp.full_like(noise, 1e-30))
    squares = scaled * scaled
    below = xp.cumulative_sum(squares, axis=1)
    ranks = xp.reshape(xp.astype(xp.arange(1, count + 1), squares.dtype), (1, -1))
    if not arrays.host:
        from array_api_compat import device, to_device

        ranks = to_device(ranks, device(band))
    risk = count - 2 * ranks + below + (count - ranks) * squares
    universal = math.sqrt(2 * math.log(max(count, 2)))
    # (Thresholds above the universal one are never of use.)
    risk = xp.where(scaled <= universal, risk, xp.full_like(risk, math.inf))
    best = xp.argmin(risk, axis=1)
    found = xp.take_along_axis(scaled, xp.reshape(best, (-1, 1)), axis=1)[:, 0]
    least = xp.min(risk, axis=1)
    found = xp.where(least < count, found, xp.zeros_like(found))  # (better nothing than harm)
    if hybrid:
        sparse = (below[:, -1] - count) / count <= math.log2(max(count, 2)) ** 1.5 / math.sqrt(count)
        found = xp.where(sparse, xp.full_like(found, universal), found)
    return found * xp.reshape(noise, (-1,))
