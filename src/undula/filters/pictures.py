"""Coefficients as pictures: the approximation in a corner, details around a mid-grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["on_host", "picture"]


def on_host(x: Any) -> NDArray[Any]:
    """An array of any library, as NumPy's."""
    if hasattr(x, "get") and not isinstance(x, np.ndarray):  # CuPy
        return np.asarray(x.get())
    if hasattr(x, "detach"):
        x = x.detach().cpu()
    return np.asarray(x)


def _fitted(band: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The middle of a band, as large as its place in the picture; bands reach beyond their images."""
    for axis, wanted in enumerate(shape, 1):
        have = band.shape[axis]
        begin = max(0, (have - wanted) // 2)
        band = np.take(band, range(begin, min(begin + wanted, have)), axis=axis)
        if band.shape[axis] < wanted:
            width = [(0, 0)] * band.ndim
            width[axis] = (0, wanted - band.shape[axis])
            band = np.pad(band, width, mode="edge")
    return band


def picture(
    low: Any, details: Sequence[Mapping[str, Any]], shape: Sequence[int], gain: float = 0.5
) -> NDArray[np.uint8]:
    """Images ``(items, H, W)`` of 8 bits, of the size of what was decomposed.

    Parameters
    ----------
    low : array ``(items, …)``
        The approximation.
    details : sequence of dict
        Finest first.
    shape : two int
    gain : number
        How much details are brought out; small ones are lifted by a square root, so that all can be seen.
    """
    approximation = on_host(low)
    levels = len(details)
    scale = 2.0**levels  # (each level makes an approximation twice as large)
    base = approximation / scale
    least = base.min(axis=(1, 2), keepdims=True)
    most = base.max(axis=(1, 2), keepdims=True)
    span = np.maximum(most - least, 1e-12)
    sizes = [tuple(int(n) for n in shape)]
    for _ in range(levels):
        sizes.append(tuple((n + 1) // 2 for n in sizes[-1]))
    canvas = np.zeros((approximation.shape[0], *sizes[0]))
    for level, found in enumerate(details):
        (height, width), (top, left) = sizes[level], sizes[level + 1]
        places = {"ad": (0, top, left, width), "da": (top, height, 0, left), "dd": (top, height, left, width)}
        for key, (begin, end, start, stop) in places.items():
            band = _fitted(on_host(found[key]), (end - begin, stop - start))
            size = gain * np.abs(band) / (2.0**level * span)
            canvas[:, begin:end, start:stop] = 0.5 + 0.5 * np.sign(band) * np.sqrt(size)
    canvas[:, : sizes[-1][0], : sizes[-1][1]] = (_fitted(base, sizes[-1]) - least) / span
    return np.asarray(np.clip(canvas * 255 + 0.5, 0, 255), np.uint8)
