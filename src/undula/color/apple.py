"""The two pipelines of Crandall and Klivington (Apple, 1999), in 16-bit integers throughout.

``d4_forward`` transforms interleaved pixels, all channels at once, by Daubechies' four taps over 16.
``burt_forward`` converts them to luma and 2 × 2 subsampled chroma, and transforms each plane by Burt's 5/7
wavelet over 256. The inverse colour conversion takes additions only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import keeps_library, numpy_array
from ..errors import ArgumentError
from ..fixedpoint import burt57, d4
from .images import channels_last, expand, from_planes, to_planes

__all__ = ["BurtCoeffs", "burt_forward", "burt_inverse", "d4_forward", "d4_inverse", "rmse", "rmsy"]

Array = NDArray[Any]


@keeps_library
def d4_forward(image: ArrayLike, level: int = 1) -> list[Any]:
    """Transform interleaved pixels by D4 in int16.

    Parameters
    ----------
    image : array_like of uint8, of shape (H, W, 3) or (H, W, 4)
        Height and width must be multiples of ``2**level``.
    level : int, default 1
        Number of levels.

    Returns
    -------
    list
        ``[cA, (cH, cV, cD) of the coarsest level, …]``, each ``(h, w, channels)``.

    Examples
    --------
    >>> image = np.full((16, 24, 4), 200, "uint8")
    >>> image[4:9, 5:] = 90
    >>> int(np.abs(d4_inverse(d4_forward(image)).astype(int) - image).max()) <= 2
    True
    """
    return d4.forward(_bytes(image), level, (0, 1))


@keeps_library
def d4_inverse(coeffs: list[Any]) -> Array:
    """Reconstruct an image, clipped to uint8; the inverse of :func:`d4_forward`.

    Parameters
    ----------
    coeffs : list
        Coefficients as :func:`d4_forward` returns them.

    Returns
    -------
    ndarray of uint8
        The image.

    Examples
    --------
    >>> image = np.full((16, 24, 4), 200, "uint8")
    >>> d4_inverse(d4_forward(image)).shape
    (16, 24, 4)
    """
    image: Array = np.clip(d4.inverse(coeffs, (0, 1)), 0, 255).astype(np.uint8)
    return image


@dataclass(frozen=True)
class BurtCoeffs:
    """Coefficients of luma and subsampled chroma.

    Attributes
    ----------
    y, u, v : list
        Coefficients of luma and of both chroma planes, nested as :func:`undula.lwt2` does.
    shape : tuple of int
        Height and width of the image.

    Examples
    --------
    >>> image = np.full((32, 32, 3), 100, "uint8")
    >>> coeffs = burt_forward(image, level=2)
    >>> coeffs.shape, coeffs.y[0].shape, coeffs.u[0].shape
    ((32, 32), (8, 8), (4, 4))
    """

    y: list[Any]
    u: list[Any]
    v: list[Any]
    shape: tuple[int, int]


@keeps_library
def burt_forward(image: ArrayLike, level: int = 3) -> BurtCoeffs:
    """Transform luma and subsampled chroma by Burt's 5/7 wavelet in int16.

    Parameters
    ----------
    image : array_like of uint8, of shape (H, W, 3)
        Height and width must be multiples of ``2**(level + 1)``.
    level : int, default 3
        Number of levels.

    Returns
    -------
    BurtCoeffs
        Coefficients of luma and chroma.

    Examples
    --------
    >>> image = np.full((32, 32, 3), 100, "uint8")
    >>> burt_forward(image).y[0].dtype
    dtype('int16')
    """
    pixels = _bytes(image)
    if pixels.shape[2] != 3:
        raise ArgumentError(f"this pipeline takes images with 3 channels, got {pixels.shape[2]}")
    if any(n % 2 ** (level + 1) for n in pixels.shape[:2]):
        raise ArgumentError(
            f"2^{level + 1} must divide both sides for {level} level(s) of subsampled chroma, got"
            f" {pixels.shape[:2]}"
        )
    y = to_planes(pixels, "apple")[0]
    _, u, v = to_planes(_quarter(pixels), "apple")
    shape = (pixels.shape[0], pixels.shape[1])
    return BurtCoeffs(burt57.forward(y, level), burt57.forward(u, level), burt57.forward(v, level), shape)


@keeps_library
def burt_inverse(coeffs: BurtCoeffs) -> Array:
    """Reconstruct an image; the inverse of :func:`burt_forward`.

    Parameters
    ----------
    coeffs : BurtCoeffs
        Coefficients of luma and chroma.

    Returns
    -------
    ndarray of uint8
        The image, of shape ``(H, W, 3)``.

    Examples
    --------
    >>> image = np.full((32, 32, 3), 100, "uint8")
    >>> rmse(image, burt_inverse(burt_forward(image))) < 2
    True
    """
    y, u, v = (burt57.inverse(part) for part in (coeffs.y, coeffs.u, coeffs.v))
    planes = np.stack([y, *(expand(part, coeffs.shape) for part in (u, v))])
    return from_planes(planes, "apple")


def _bytes(image: ArrayLike) -> Array:
    pixels = channels_last(image, -1)
    if pixels.dtype != np.uint8:
        raise ArgumentError(f"this pipeline takes uint8, got {pixels.dtype}")
    return pixels


def _quarter(pixels: Array) -> Array:
    """Return the means of two rows, then of two columns, halves rounded upwards."""
    wide = pixels.astype(np.uint16)
    rows = (wide[0::2] + wide[1::2] + 1) >> 1
    return ((rows[:, 0::2] + rows[:, 1::2] + 1) >> 1).astype(np.uint8)


def rmse(image: ArrayLike, other: ArrayLike) -> float:
    """Return the root mean square error over red, green and blue.

    Parameters
    ----------
    image : array_like
        An image with red, green and blue along its last axis.
    other : array_like
        Another one of the same shape.

    Returns
    -------
    float
        The error, in units of the samples.

    Examples
    --------
    >>> rmse(np.zeros((2, 2, 3)), np.full((2, 2, 3), 3.0))
    3.0
    """
    first, second = numpy_array(image, "image"), numpy_array(other, "the other image")
    if first.ndim != 3 or first.shape[:2] != second.shape[:2] or min(first.shape[2:] + second.shape[2:]) < 3:
        raise ArgumentError(
            f"expected two colour images of the same size, got shapes {first.shape} and {second.shape}"
        )
    a, b = (x[..., :3].astype(np.float64) for x in (first, second))
    return float(np.sqrt(np.mean((a - b) ** 2)))


@keeps_library
def rmsy(image: ArrayLike, coeffs: BurtCoeffs) -> float:
    """Return the root mean square error of luma between an image and its reconstruction.

    Parameters
    ----------
    image : array_like of uint8
        The image that was transformed.
    coeffs : BurtCoeffs
        Its coefficients.

    Returns
    -------
    float
        The error, in units of the samples.

    Examples
    --------
    >>> image = np.full((32, 32, 3), 100, "uint8")
    >>> rmsy(image, burt_forward(image)) < 2
    True
    """
    luma, restored = to_planes(image, "apple")[0], burt57.inverse(coeffs.y)
    return float(np.sqrt(np.mean((luma.astype(np.float64) - restored) ** 2)))
