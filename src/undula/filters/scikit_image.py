"""Wavelet denoising with the signature of scikit-image."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import numpy_array
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..functions import dwtn_max_level, wavedecn, waverecn
from ..wavelets import Wavelet, as_wavelet
from .noise import robust_sigma
from .operations import NUMPY_OPERATIONS, rounding_floor

__all__ = ["denoise_wavelet"]

METHODS = ("BayesShrink", "VisuShrink")
MODES = ("soft", "hard")

# Rec. 601, from the range 0 … 1 to 16 … 235 and 16 … 240.
_YCBCR = np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]])
_YCBCR_OFFSET = np.array([16.0, 128.0, 128.0])


def denoise_wavelet(
    image: ArrayLike,
    sigma: Any = None,
    wavelet: str | Wavelet = "db1",
    mode: str = "soft",
    wavelet_levels: int | None = None,
    convert2ycbcr: bool = False,
    method: str = "BayesShrink",
    rescale_sigma: bool = True,
    *,
    channel_axis: int | None = None,
) -> NDArray[Any]:
    """Denoise with the arguments and the results of ``skimage.restoration.denoise_wavelet``.

    Parameters
    ----------
    image : array_like
        As in scikit-image, integers are converted to floats from 0 to 1, or from -1 if they are signed.
    sigma : float or sequence of float, optional
        Standard deviation of the noise, or one per channel; estimated from the finest diagonal band if None.
    wavelet : str or Wavelet, default "db1"
    mode : {"soft", "hard"}, default "soft"
    wavelet_levels : int, optional
        Number of levels; three fewer than the maximum if None.
    convert2ycbcr : bool, default False
        Whether to filter channels as YCbCr, each scaled to the range from 0 to 1.
    method : {"BayesShrink", "VisuShrink"}, default "BayesShrink"
    rescale_sigma : bool, default True
        Whether sigma is given in units of the original image if that has integers.
    channel_axis : int, optional

    Returns
    -------
    ndarray

    See Also
    --------
    undula.denoise : Gives better results.

    Notes
    -----
    If sigma is estimated, results for images with constant regions may differ from scikit-image; see
    :func:`estimate_sigma`.

    Examples
    --------
    >>> noisy = np.random.default_rng(0).standard_normal((64, 64)) * 0.1 + 0.5
    >>> bool(denoise_wavelet(noisy).std() < 0.05)
    True
    """
    x = numpy_array(image, "image")
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if mode not in MODES:
        raise UnknownNameError("mode", mode, MODES)
    if x.ndim == 0 or x.size == 0:
        raise ArgumentError(f"an image with samples is needed, got shape {x.shape}")
    if x.dtype.kind == "c":
        raise ArgumentTypeError(f"images must have real numbers, got {x.dtype}")
    if channel_axis is None and convert2ycbcr:
        raise ArgumentError("convert2ycbcr requires channel_axis to be set")
    if x.dtype.kind == "f" and not np.isfinite(x).any():
        raise ArgumentError("all samples are NaN or infinite")
    if wavelet_levels is not None and wavelet_levels < 1:
        raise ArgumentError(f"wavelet_levels must be 1 or more, got {wavelet_levels!r}")
    wavelet = as_wavelet(wavelet)
    if not wavelet.orthogonal:
        warnings.warn(
            f"these thresholds are meant for orthogonal wavelets, but {wavelet.name} is not orthogonal;"
            " undula.denoise handles all wavelets",
            stacklevel=2,
        )
    if channel_axis is None:
        planes = x[None]
    elif -x.ndim <= channel_axis < x.ndim:
        planes = np.moveaxis(x, channel_axis, 0)
    else:
        raise ArgumentError(f"channel_axis must be from {-x.ndim} to {x.ndim - 1}, got {channel_axis}")
    sigmas = _channel_sigmas(sigma, planes.shape[0])
    integers = x.dtype.kind != "f"
    if integers:
        span = np.ptp(x) if x.dtype.kind != "b" else 1
        planes = _as_float(planes)
        if rescale_sigma and span:
            factor = float(np.ptp(planes)) / float(span)
            sigmas = [None if s is None else s * factor for s in sigmas]
    elif x.dtype.itemsize < 4:
        planes = planes.astype(np.float32)
    if convert2ycbcr:
        planes = _denoise_ycbcr(planes, wavelet, mode, wavelet_levels, method, sigmas, rescale_sigma)
    else:
        denoised = [
            _denoise_plane(plane, wavelet, mode, wavelet_levels, method, s)
            for plane, s in zip(planes, sigmas, strict=True)
        ]
        planes = denoised[0][None] if len(denoised) == 1 else np.stack(denoised)
    if integers:
        np.clip(planes, -1 if (x < 0).any() else 0, 1, out=planes)
    return planes[0] if channel_axis is None else np.moveaxis(planes, 0, channel_axis)


def _channel_sigmas(sigma: Any, channels: int) -> list[float | None]:
    """Return the noise of each channel."""
    if sigma is None:
        return [None] * channels
    sigmas = np.atleast_1d(numpy_array(sigma, "sigma")).astype(np.float64)
    if sigmas.size not in (1, channels):
        raise ArgumentError(
            f"sigma must be a number, or one for each of {channels} channels; got {sigmas.size} numbers"
        )
    if not np.isfinite(sigmas).all() or (sigmas < 0).any():
        raise ArgumentError(f"sigma must be finite and not negative, got {sigma!r}")
    return [float(s) for s in np.broadcast_to(sigmas, (channels,))]


def _as_float(x: NDArray[Any]) -> NDArray[Any]:
    """Scale integers to the range from 0 to 1, or from -1 if they are signed, in float64."""
    if x.dtype.kind == "b":
        return x.astype(np.float64)
    return np.maximum(x / np.float64(np.iinfo(x.dtype).max), -1.0)


def _denoise_plane(
    plane: NDArray[Any], wavelet: Wavelet, mode: str, levels: int | None, method: str, sigma: float | None
) -> NDArray[Any]:
    if levels is None:
        levels = max(dwtn_max_level(plane.shape, wavelet) - 3, 1)
    plane = np.ascontiguousarray(plane)
    low, *details = wavedecn(plane, wavelet, level=levels)
    if sigma is None:
        floor = rounding_floor(NUMPY_OPERATIONS, low[None], levels, plane.ndim)
        sigma = float(robust_sigma(NUMPY_OPERATIONS, details[-1]["d" * plane.ndim][None], 1.0, floor)[0])
    bands = [band[None] for level in details for band in level.values()]
    limits = [sigma * math.sqrt(2 * math.log(plane.size))] * len(bands)
    if method == "BayesShrink":
        tiny = float(np.finfo(low.dtype).eps)
        energies = [
            float(e[0]) / band.size for e, band in zip(NUMPY_OPERATIONS.energies(bands), bands, strict=True)
        ]
        limits = [sigma * sigma / math.sqrt(max(energy - sigma * sigma, tiny)) for energy in energies]
    NUMPY_OPERATIONS.shrink(bands, mode, limits, limits, overwrite=True)
    return waverecn([low, *details], wavelet, shape=plane.shape).astype(plane.dtype, copy=False)


def _denoise_ycbcr(
    planes: NDArray[Any],
    wavelet: Wavelet,
    mode: str,
    levels: int | None,
    method: str,
    sigmas: list[float | None],
    rescale: bool,
) -> NDArray[Any]:
    if planes.shape[0] != 3:
        raise ArgumentError(f"convert2ycbcr needs 3 channels, got {planes.shape[0]}")
    offset = _YCBCR_OFFSET.reshape(-1, *[1] * (planes.ndim - 1)).astype(planes.dtype)
    mixed = np.tensordot(_YCBCR.astype(planes.dtype), planes, 1) + offset
    if rescale and sigmas[0] is not None:
        variances = np.array([float(s or 0.0) ** 2 for s in sigmas])
        sigmas = [float(s) for s in np.sqrt((_YCBCR**2) @ variances)]
    for k, sigma in enumerate(sigmas):
        least = mixed[k].min()
        span = mixed[k].max() - least
        if span == 0:
            continue
        scaled_sigma = None if sigma is None else sigma / float(span)
        scaled = (mixed[k] - least) / span
        mixed[k] = _denoise_plane(scaled, wavelet, mode, levels, method, scaled_sigma) * span + least
    return np.asarray(np.tensordot(np.linalg.inv(_YCBCR).astype(planes.dtype), mixed - offset, 1))
