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

from ..lowering.symbolic import reduced, xp
from .operations import OPERATIONS, item_size, smallest_normal

__all__ = ["select_thresholds"]


def select_thresholds(
    method: str,
    bands: Sequence[Any],
    sigmas: Sequence[Any],
    samples: int,
    shares: Sequence[Any],
) -> list[Any]:
    """Select a threshold for each item of each band.

    Parameters
    ----------
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
        energies = OPERATIONS.energies(list(map(_in_units_of_noise, bands, sigmas)))
        rows = zip(energies, bands, sigmas, shares, strict=True)
        return [_bayes(energy / (item_size(band) * share), sigma) for energy, band, sigma, share in rows]
    return [_sure(*row, method == "hybrid") for row in zip(bands, sigmas, shares, strict=True)]


def _in_units_of_noise(band: Any, sigma: Any) -> Any:
    """Divide a band by its noise; squares of very small and very large units then stay in range."""
    unit = xp.where(sigma > 0, xp.maximum(sigma, smallest_normal(band)), 1.0)
    return band * OPERATIONS.spread(OPERATIONS.per_item(1 / unit, band), band)


def _bayes(mean_square: Any, sigma: Any) -> Any:
    """Return the threshold of a band whose mean square is in units of the noise."""
    return sigma / xp.sqrt(xp.maximum(mean_square - 1, 1e-12))


def _sure(band: Any, sigma: Any, share: Any, hybrid: bool) -> Any:
    """Return the magnitude with the least of Stein's risk estimate.

    Each of the zeros that stand for invalid coefficients lowers the estimate by 1, whatever the threshold, so
    that they do not influence which threshold has the least risk.
    """
    valid_counts = OPERATIONS.per_item(item_size(band) * share, band)
    scaled = _in_units_of_noise(band, sigma)
    logarithms = xp.log(xp.maximum(valid_counts, 2.0))
    # Thresholds above the universal one never help.
    universal = xp.sqrt(2 * logarithms)
    (selected,) = reduced("sure", [scaled], [universal])
    if hybrid:
        (energy,) = OPERATIONS.energies([scaled])
        excess = (energy - valid_counts) / valid_counts
        sparse = excess <= (logarithms / math.log(2)) ** 1.5 / xp.sqrt(valid_counts)
        selected = xp.where(sparse, universal, selected)
    return selected * sigma
