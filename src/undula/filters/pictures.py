"""Coefficients as pictures: the approximation in the corner, details around a mid-grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import array_in_memory, keeps_library, library_of
from ..errors import ArgumentError

__all__ = ["Views", "picture"]


class Views(NamedTuple):
    """Pictures of the coefficients before and after the stages of a pipeline, and the filtered image.

    Attributes
    ----------
    analysis : ndarray of uint8
        The coefficients of the image.
    filtered : ndarray of uint8
        The coefficients after the stages.
    synthesis : array
        The filtered image.

    Examples
    --------
    >>> from undula.filters import Pipeline
    >>> views = Pipeline("haar", 1, ["shrink"]).views(np.ones((8, 8), "uint8"))
    >>> views.analysis.shape, views.synthesis.shape
    ((8, 8), (8, 8))
    """

    analysis: Any
    filtered: Any
    synthesis: Any


def _fit(band: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Crop a band to its centre, or pad it, to the size of its place; bands extend beyond their images."""
    for axis, count in enumerate(shape, 1):
        begin = max(0, (band.shape[axis] - count) // 2)
        band = np.take(band, range(begin, min(begin + count, band.shape[axis])), axis=axis)
        if band.shape[axis] < count:
            width = [(0, 0)] * band.ndim
            width[axis] = (0, count - band.shape[axis])
            band = np.pad(band, width, mode="edge")
    return band


def _samples(x: Any, what: str) -> NDArray[Any]:
    """Return an array on the host as floats."""
    array = array_in_memory(x, what)
    samples: NDArray[Any] = library_of(array).to_numpy(array).astype(np.float64, copy=False)
    return samples


@keeps_library
def picture(
    low: Any, details: Sequence[Mapping[str, Any]], shape: Sequence[int], gain: float = 0.5
) -> NDArray[np.uint8]:
    """Render the coefficients of images as pictures of 8 bits.

    Parameters
    ----------
    low : array of shape (items, ...)
        Approximation.
    details : sequence of dict
        Bands by key for each level, finest first.
    shape : tuple of two int
        Shape of the decomposed images.
    gain : float, default 0.5
        Amplification of details. Their square root is shown, so that small ones are visible.

    Returns
    -------
    ndarray of uint8
        Pictures of shape ``(items, *shape)``.

    Examples
    --------
    >>> import undula
    >>> low, bands = undula.wavedecn(np.ones((1, 8, 8)), "haar", level=1, axes=(1, 2))
    >>> picture(low, [bands], (8, 8)).shape
    (1, 8, 8)
    """
    approximation = _samples(low, "low")
    if approximation.ndim != 3 or not approximation.size:
        raise ArgumentError(f"low must have shape (items, height, width), got {approximation.shape}")
    levels = len(details)
    base = approximation / 2.0**levels  # Each level doubles the values of an approximation.
    least = base.min(axis=(1, 2), keepdims=True)
    span = base.max(axis=(1, 2), keepdims=True) - least
    span[span == 0] = 1
    sizes = [tuple(int(n) for n in shape)]
    for _ in range(levels):
        sizes.append(tuple((n + 1) // 2 for n in sizes[-1]))
    canvas = np.zeros((approximation.shape[0], *sizes[0]))
    for level, bands in enumerate(details):
        (height, width), (top, left) = sizes[level], sizes[level + 1]
        places = {"ad": (0, top, left, width), "da": (top, height, 0, left), "dd": (top, height, left, width)}
        for key, (begin, end, start, stop) in places.items():
            band = _fit(_samples(bands[key], "a band"), (end - begin, stop - start))
            size = gain * np.abs(band) / (2.0**level * span)
            canvas[:, begin:end, start:stop] = 0.5 + 0.5 * np.sign(band) * np.sqrt(size)
    canvas[:, : sizes[-1][0], : sizes[-1][1]] = (_fit(base, sizes[-1]) - least) / span
    return np.asarray(np.clip(canvas * 255 + 0.5, 0, 255), np.uint8)
