"""Holes: samples that are not valid, replaced by what is around them, so that they do not matter."""

from __future__ import annotations

from typing import Any

from .arrays import Arrays
from .spatial import gaussian

__all__ = ["filled"]


def filled(arrays: Arrays, planes: Any, valid: Any, places: int) -> Any:
    """Planes with a smooth surface in their holes; far away from anything valid it is the mean."""
    xp = arrays.xp
    weights = xp.astype(xp.broadcast_to(valid, planes.shape), planes.dtype)
    known = xp.where(valid, planes, xp.zeros_like(planes))
    axes = tuple(range(1, len(planes.shape)))
    counts = xp.sum(weights, axis=axes, keepdims=True)
    mean = xp.sum(known, axis=axes, keepdims=True) / xp.maximum(counts, xp.ones_like(counts))
    fill = xp.broadcast_to(mean, planes.shape)
    # Wider and wider windows, the narrowest that sees something valid wins.
    for sigma in (16.0, 4.0, 1.5):
        taps = gaussian(sigma)
        around, there = (arrays.convolve(part, taps, places) for part in (known, weights))
        seen = there > 1e-3
        fill = xp.where(seen, around / xp.where(seen, there, xp.ones_like(there)), fill)
    return xp.where(valid, planes, fill)
