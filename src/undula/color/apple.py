"""The two pipelines of Crandall and Klivington (Apple, 1999), in 16-bit integers throughout.

``d4_forward`` transforms interleaved pixels, all channels at once, by Daubechies' four taps over 16.
``burt_forward`` makes brightness and colour differences of them, a quarter as many of the latter, and
transforms each three times by Burt's 5/7 wavelet over 256. The way back has nothing but additions in colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ArgumentError
from ..fixedpoint import burt57, d4
from ..inputs import numpy_array
from .images import _image, expand, from_planes, to_planes

__all__ = ["BurtCoeffs", "burt_forward", "burt_inverse", "d4_forward", "d4_inverse", "rmse", "rmsy"]

Array = NDArray[Any]


def d4_forward(image: ArrayLike, level: int = 1) -> list[Any]:
    """The D4 transform of interleaved pixels: ``[cA, (cH, cV, cD), …]``, each ``(h, w, channels)`` in int16.

    Parameters
    ----------
    image : uint8 ``(H, W, 3)`` or ``(H, W, 4)``
        With sides that ``2^level`` divides.
    level : int

    Examples
    --------
    >>> image = np.full((16, 24, 4), 200, "uint8")
    >>> image[4:9, 5:] = 90
    >>> int(np.abs(d4_inverse(d4_forward(image)).astype(int) - image).max()) <= 2
    True
    """
    return d4.forward(_bytes(image), level, (0, 1))


def d4_inverse(coeffs: list[Any]) -> Array:
    """The inverse of :func:`d4_forward`, cut to what a byte holds."""
    return np.clip(d4.inverse(coeffs, (0, 1)), 0, 255).astype(np.uint8)


@dataclass(frozen=True)
class BurtCoeffs:
    """Coefficients of brightness and of the two colour differences, and the shape of the image."""

    y: list[Any]
    u: list[Any]
    v: list[Any]
    shape: tuple[int, int]


def burt_forward(image: ArrayLike, level: int = 3) -> BurtCoeffs:
    """Brightness and quarters of colour differences, each transformed by Burt's 5/7 wavelet in int16.

    Parameters
    ----------
    image : uint8 ``(H, W, 3)``
        With sides that ``2^(level + 1)`` divides.
    level : int
    """
    pixels = _bytes(image)
    if pixels.shape[2] != 3:
        raise ArgumentError(f"this pipeline takes images of 3 channels, got {pixels.shape[2]}")
    if any(n % 2 ** (level + 1) for n in pixels.shape[:2]):
        raise ArgumentError(
            f"{level} level(s) of quarters take sides that 2^{level + 1} divides, got {pixels.shape[:2]}"
        )
    y = to_planes(pixels, "apple")[0]
    _, u, v = to_planes(_quarter(pixels), "apple")
    made = [burt57.forward(plane, level) for plane in (y, u, v)]
    return BurtCoeffs(made[0], made[1], made[2], (pixels.shape[0], pixels.shape[1]))


def burt_inverse(coeffs: BurtCoeffs) -> Array:
    """The inverse of :func:`burt_forward`: uint8 ``(H, W, 3)``."""
    y, u, v = (burt57.inverse(part) for part in (coeffs.y, coeffs.u, coeffs.v))
    planes = np.stack([y, *(expand(part, coeffs.shape) for part in (u, v))])
    return from_planes(planes, "apple")


def _bytes(image: ArrayLike) -> Array:
    pixels = _image(image, -1)
    if pixels.dtype != np.uint8:
        raise ArgumentError(f"this pipeline takes bytes, got {pixels.dtype}")
    return pixels


def _quarter(pixels: Array) -> Array:
    """Means of two rows, then of two columns, each rounded up at a half."""
    wide = pixels.astype(np.uint16)
    rows = (wide[0::2] + wide[1::2] + 1) >> 1
    return ((rows[:, 0::2] + rows[:, 1::2] + 1) >> 1).astype(np.uint8)


def rmse(image: ArrayLike, other: ArrayLike) -> float:
    """The root of the mean squared error of red, green and blue."""
    first, second = numpy_array(image, "image"), numpy_array(other, "the other image")
    if first.ndim != 3 or first.shape[:2] != second.shape[:2] or min(first.shape[2:] + second.shape[2:]) < 3:
        raise ArgumentError(
            f"two colour images of one size are compared, got {first.shape} and {second.shape}"
        )
    a, b = (x[..., :3].astype(np.float64) for x in (first, second))
    return float(np.sqrt(np.mean((a - b) ** 2)))


def rmsy(image: ArrayLike, coeffs: BurtCoeffs) -> float:
    """The root of the mean squared error of brightness, after the transform and back."""
    there, back = to_planes(image, "apple")[0], burt57.inverse(coeffs.y)
    return float(np.sqrt(np.mean((there.astype(np.float64) - back) ** 2)))
