"""The spectrum of the noise of any image that a pipeline takes: with channels, a mask, and in any unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import DASK, library_of
from ..errors import ArgumentError
from .planes import GivenImage, unit_of
from .spectrum import NoiseSpectrum, as_spectrum, estimate_spectrum

__all__ = ["image_spectrum"]


def image_spectrum(
    x: Any, channel_axis: int | str | None, axes: Sequence[int] | None, color: str, mask: Any
) -> NoiseSpectrum:
    """Estimate the spectrum of the noise of an image; the arguments are those of :class:`GivenImage`."""
    if DASK.owns(x):
        raise ArgumentError(
            "the spectrum of noise is estimated from images in memory; call compute() first, or pass it"
        )
    given = GivenImage(x, channel_axis, axes, color, mask)
    layout, samples = given.layout, library_of(given.array).to_numpy(given.array)
    if layout.ndim != 2:
        raise ArgumentError(
            f"the spectrum of noise is estimated from images with two axes, got {layout.ndim}; pass a"
            " spectrum, or the two axes of images by axes"
        )
    planes = layout.to_planes(np, samples).astype(float)
    if given.mask is not None:
        valid = library_of(given.mask).to_numpy(given.mask)
        planes = np.where(layout.mask_planes(np, valid), planes, np.nan)
    if layout.mixed:  # Chroma has the same noise, but less.
        planes = planes[: len(planes) // 3] / math.sqrt((layout.weights[0] ** 2).sum())
    unit = unit_of(float(np.nanmax(np.abs(planes), initial=0.0)))
    spectrum = as_spectrum(estimate_spectrum(planes / unit, channel_axis=0))
    return replace(spectrum, sigma=spectrum.sigma * unit)
