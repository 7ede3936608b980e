"""Inpainting of samples that are not valid, so that they do not influence their neighbours."""

from __future__ import annotations

from typing import Any

from ..lowering.symbolic import xp
from .operations import OPERATIONS
from .spatial import gaussian

__all__ = ["fill_holes", "valid_counts"]


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
