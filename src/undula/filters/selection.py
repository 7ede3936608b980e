"""Selection of thresholds: how large a coefficient must be before it counts as more than noise.

With the noise σ, the number of samples N and the mean of squares E of a band:

universal  σ √(2 ln N)            removes all noise and some detail [1]_
minimax    σ (0.3936 + 0.1829 log₂ N)
bayes      σ² / √(E - σ²)         for each band [2]_
sure       the minimum of Stein's unbiased risk estimate, for each band [3]_
hybrid     sure, but universal for bands that are sparse [3]_

.. [1] D. L. Donoho, I. M. Johnstone: Ideal spatial adaptation by wavelet shrinkage. Biometrika, 1994.
.. [2] S. G. Chang, B. Yu, M. Vetterli: Adaptive wavelet thresholding for image denoising and compression.
       IEEE Transactions on Image Processing, 2000.
.. [3] D. L. Donoho, I. M. Johnstone: Adapting to unknown smoothness via wavelet shrinkage. Journal of the
       American Statistical Association, 1995.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .operations import ArrayOperations, item_size

__all__ = ["select_thresholds"]


def select_thresholds(
    operations: ArrayOperations,
    method: str,
    bands: Sequence[Any],
    sigmas: Sequence[Any],
    samples: int,
    shares: Sequence[Any],
) -> list[Any]:
    """Select a threshold for each item of each band.

    Parameters
    ----------
    operations : ArrayOperations
    method : {"bayes", "sure", "hybrid", "minimax", "universal"}
    bands : sequence of array
    sigmas : sequence of array
        For each band, the noise of each item.
    samples : int
        Number of samples of the decomposed image.
    shares : sequence of float or array
        Valid share of each band, or of each of its items; coefficients that are not valid are zero.
        ``universal`` and ``minimax`` do not use it.

    Returns
    -------
    list of array
    """
    if method == "universal":
        return [sigma * math.sqrt(2 * math.log(max(samples, 2))) for sigma in sigmas]
    if method == "minimax":
        factor = 0.3936 + 0.1829 * math.log2(samples) if samples > 32 else 0.0
        return [sigma * factor for sigma in sigmas]
    if method == "bayes":
        rows = zip(operations.energies(bands), bands, sigmas, shares, strict=True)
        return [
            _bayes(operations.xp, energy / (item_size(band) * share), sigma)
            for energy, band, sigma, share in rows
        ]
    return [_sure(operations, *row, method == "hybrid") for row in zip(bands, sigmas, shares, strict=True)]


def _bayes(xp: Any, mean_square: Any, sigma: Any) -> Any:
    # Dividing by the noise first keeps very small and very large units in the range of float32.
    unit = xp.where(sigma > 0, sigma, xp.ones_like(sigma))
    signal = mean_square / unit / unit - 1
    return sigma / xp.sqrt(xp.maximum(signal, xp.full_like(signal, 1e-12)))


def _sure(operations: ArrayOperations, band: Any, sigma: Any, share: Any, hybrid: bool) -> Any:
    """Evaluate Stein's risk estimate at each magnitude of a band and return the magnitude of least risk.

    Each of the zeros that stand for invalid coefficients lowers the estimate by 1, whatever the threshold, so
    that they do not influence which threshold has the least risk.
    """
    xp = operations.xp
    count = item_size(band)
    valid_counts = operations.per_item(count * share, band)
    noise = xp.reshape(sigma, (-1, 1))
    magnitudes = xp.sort(xp.abs(xp.reshape(band, (band.shape[0], -1))), axis=1)
    scaled = magnitudes / xp.maximum(noise, xp.full_like(noise, 1e-30))
    squares = scaled * scaled
    energy_below = xp.cumulative_sum(squares, axis=1)
    ranks = xp.reshape(xp.astype(xp.arange(1, count + 1), squares.dtype), (1, -1))
    if not operations.host:
        from array_api_compat import device, to_device

        ranks = to_device(ranks, device(band))
    risk = count - 2 * ranks + energy_below + (count - ranks) * squares
    logarithms = xp.log(xp.maximum(valid_counts, xp.full_like(valid_counts, 2.0)))
    universal = xp.sqrt(2 * logarithms)
    # Thresholds above the universal one never help.
    risk = xp.where(scaled <= xp.reshape(universal, (-1, 1)), risk, xp.full_like(risk, math.inf))
    best = xp.reshape(xp.argmin(risk, axis=1), (-1, 1))
    selected = xp.take_along_axis(scaled, best, axis=1)[:, 0]
    # A threshold of zero has the risk ``count``; it is kept where no other threshold is better.
    selected = xp.where(xp.min(risk, axis=1) < count, selected, xp.zeros_like(selected))
    if hybrid:
        excess = (energy_below[:, -1] - valid_counts) / valid_counts
        sparse = excess <= (logarithms / math.log(2)) ** 1.5 / xp.sqrt(valid_counts)
        selected = xp.where(sparse, universal, selected)
    return selected * xp.reshape(noise, (-1,))
