"""Inpainting of samples that are not valid, so that they do not influence their neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lowering.symbolic import materialize, xp
from ..wavelets import Wavelet
from .base import Details
from .operations import OPERATIONS
from .spatial import gaussian

__all__ = ["central_places", "fill_holes", "valid_coefficients", "valid_counts"]


def valid_counts(planes: Any, valid: Any) -> Any:
    """Return the number of valid samples of each item."""
    weights = xp.astype(xp.broadcast_to(valid, planes.shape), planes.dtype)
    return xp.sum(weights, axis=tuple(range(1, len(planes.shape))), keepdims=True)


def fill_holes(planes: Any, valid: Any, ndim: int, counts: Any = None) -> Any:
    """Replace invalid samples by a smooth surface, which approaches the mean far from valid samples.

    Parameters
    ----------
    planes, valid : array
        Samples, and whether each is valid. The first axis is that of items.
    ndim : int
        Number of spatial axes.
    counts : array, optional
        What :func:`valid_counts` returned, if it was called before.
    """
    weights = xp.astype(xp.broadcast_to(valid, planes.shape), planes.dtype)
    known = xp.where(valid, planes, xp.zeros_like(planes))
    axes = tuple(range(1, len(planes.shape)))
    counts = valid_counts(planes, valid) if counts is None else counts
    mean = xp.sum(known, axis=axes, keepdims=True) / xp.maximum(counts, xp.ones_like(counts))
    surface = xp.broadcast_to(mean, planes.shape)
    holes = xp.max(xp.reshape(1 - weights, (1, -1)), axis=1)
    # The narrowest window with a valid sample in it determines the surface.
    for sigma in (16.0, 4.0, 1.5):
        taps = gaussian(sigma)
        blurred, coverage = (OPERATIONS.convolve(part, taps, ndim, holes) for part in (known, weights))
        covered = coverage > 1e-3
        local_mean = blurred / xp.where(covered, coverage, xp.ones_like(coverage))
        surface = xp.where(covered, local_mean, surface)
    return xp.where(valid, planes, surface)


def valid_coefficients(
    valid: Any,
    details: Details,
    ndim: int,
    wavelet: Wavelet,
    invariant: bool | int,
) -> list[Any]:
    """Return for each level where the two samples at the centre of each coefficient are valid.

    A coefficient also depends on other samples. Those that are not valid are filled in from their neighbours,
    so that they hardly matter. The list is empty if all samples are valid.
    """
    if valid is None:
        return []
    masks = []
    for bands in details:
        band = next(iter(bands.values()))
        for axis in range(1, 1 + ndim):
            count, size = valid.shape[axis], band.shape[len(band.shape) - ndim + axis - 1]
            even, odd = (
                xp.take(valid, np.clip(places, 0, count - 1), axis)
                for places in central_places(wavelet, size)
            )
            valid = even & odd
        materialize(valid)  # Statistics read it several times.
        masks.append(valid[:, None] if invariant else valid)
    return masks


def central_places(wavelet: Wavelet, size: int) -> list[np.ndarray[Any, Any]]:
    """Return the places of the two samples at the centre of each of ``size`` coefficients of a line."""
    first = 2 * np.arange(size) - (wavelet.dec_len - 2) // 2
    return [first, first + 1]
