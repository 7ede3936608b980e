"""The noise of cameras: its recognition, and its standard deviation in each band.

A sensor has one colour per pixel and the others are interpolated, and most JPEG files have chroma at half the
resolution. So neighbouring pixels share their noise, of which the finest bands have least.

In colour images it is recognised by chroma, in which there is little but noise: where the second level has
several times what the finest diagonal band has, chroma was interpolated. White noise has the same in both.

In grey images it is recognised by the mosaic of colours: pixels that were measured differ more from their
neighbours than pixels that were interpolated. These differences are compared between the two colours of a
chessboard, for green, and between even and odd rows and columns, for red and blue. White noise, textures and
the blocks of JPEG are the same on all of them.

Noise is the median of magnitudes in the first two levels, and follows from them in coarser ones, where there
is more of the image than of noise: it grows by the square root of the growth before. That is what
interpolation and 4:2:0 leave. Luma has texture in the first levels already. But sensors have independent
noise in all colours, so coarse bands of luma have as much of it as those of chroma, S, and the finest
diagonal band has d, mostly noise. Between them, a low-pass filter leaves

    S·(d/S)^a,    a = 4^(1 - level), and 0.4 times that in bands that are not diagonal

where 0.4 is what demosaicing leaves; it is 0.5 for a Gaussian filter. Grey images have no chroma, and S
follows from the other bands of the finest level, e: (e/d)^1.4·d, which is less than the formula says, because
these bands have texture, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..functions import dwtn_max_level
from ..lowering.symbolic import materialize, reduced, xp
from ..wavelets import as_wavelet
from .base import Details, Pyramid
from .noise import finest_noise_share, noise_pyramid
from .operations import NORMAL_MEDIAN, OPERATIONS, smallest_normal
from .transforms import PipelineTransform

__all__ = ["camera_share", "can_recognize", "correlated_noise", "mosaic_contrast"]

MEASURED_LEVELS = 2
MAX_GROWTH = 8.0  # from one level to the next
# The share of interpolated noise grows from 0 to 1 between these ratios, so that frames of a video that are
# close to a limit do not differ.
LEAST_RATIO, CERTAIN_RATIO = 3.5, 5.0
# The same for the contrast of a mosaic. By chance, it is 0.8 divided by the root of the number of pixels.
LEAST_CONTRAST, CERTAIN_CONTRAST, CHANCE_CONTRAST = 0.02, 0.04, 4.0
MOSAIC_LENGTH = 512  # The mosaic is looked for in the middle of larger images; a multiple of 2.
MAX_DIFFERENCE = 3.0  # Differences from neighbours count up to this, in units of the noise, because of edges.
MAX_GREY_GROWTH, GREY_EXPONENT = 3.0, 1.4
NOT_DIAGONAL = 0.4
# Noise that neighbours share varies more from one window to another than white noise does.
LUMA_MARGIN = 1.1

Levels = list[dict[str, Any]]


def camera_share(x: Any, valid: Any, ndim: int, channels: int) -> Any:
    """Return the share of the noise of planes that is recognised as that of a camera: 0 if none can be."""
    if ndim != 2 or dwtn_max_level(x.shape[1:], as_wavelet("db2")) < MEASURED_LEVELS:
        return 0.0
    details, pyramid = noise_pyramid(x, valid, ndim, MEASURED_LEVELS, channels)
    measured = _measured(details, pyramid)
    if channels > 1:
        return _chroma_share(measured, channels)
    contrast = partial(mosaic_contrast, x, PipelineTransform(as_wavelet("db2")))
    return _mosaic_share(_mosaic_limit(measured), replace(pyramid, mosaic_contrast=contrast))


def can_recognize(details: Details, pyramid: Pyramid) -> bool:
    """Return whether the noise of a camera could be recognised: in images with two levels."""
    return pyramid.ndim == 2 and len(details) >= MEASURED_LEVELS


def mosaic_contrast(x: Any, transform: PipelineTransform, limit: Any) -> Any:
    """Return by how much pixels of different places of a mosaic differ in noise, from 0 to 1, for each image.

    Parameters
    ----------
    x : SymbolicArray of shape (items, rows, columns)
    transform : PipelineTransform
        Its bands have the differences between rows, between columns, and between the colours of a chessboard.
    limit : SymbolicArray
        The largest difference from neighbours that counts, for each item.
    """
    middle = tuple(_middle(n) for n in x.shape[1:])
    remainders = OPERATIONS.remainders(x[:, *middle], np.array([0.25, 0.5, 0.25]), 2, limit)
    low, bands = transform.decompose_level(remainders, (1, 2))
    wavelet = transform.wavelet
    signs = (-1.0) ** np.arange(wavelet.dec_len)
    gain = abs(float(np.sum(wavelet.dec_lo)) / float(np.dot(signs, wavelet.dec_hi)))
    region = tuple((each.start, each.stop) for each in middle)
    sums = reduced("sum", [low, bands["dd"], bands["ad"], bands["da"]], region=region)
    mean, *differences = sums
    chess, columns, rows = (xp.abs(each) / _above_zero(mean) for each in differences)
    return xp.maximum(gain**2 * chess, gain * xp.minimum(columns, rows))


def _middle(length: int) -> slice:
    """Return the middle of a long line, from an even place on, or the whole line."""
    start = max(0, (length - MOSAIC_LENGTH) // 4 * 2)
    return slice(start, start + min(length, MOSAIC_LENGTH))


def correlated_noise(details: Details, pyramid: Pyramid, presumed: bool) -> Levels:
    """Return the noise of each item in each band, finest level first.

    Parameters
    ----------
    details : list of dict
    pyramid : Pyramid
    presumed : bool
        Whether noise is correlated, or white, if it is not recognised as that of a camera.
    """
    measured = _measured(details, pyramid)
    extended = _extended(measured, len(details))
    white = measured[0]["d" * pyramid.ndim]
    noise = extended if presumed else [dict.fromkeys(bands, white) for bands in details]
    if can_recognize(details, pyramid):
        if pyramid.channels == 1:
            limit = _mosaic_limit(measured)
            share = _mosaic_share(limit, pyramid)
            of_camera = _grey_camera_noise(measured, limit, len(details))
        else:
            share = _chroma_share(measured, pyramid.channels)
            of_camera = _color_camera_noise(measured, extended, pyramid.channels)
        noise = [
            {key: (1 - share) * sigma + share * camera[key] for key, sigma in bands.items()}
            for bands, camera in zip(noise, of_camera, strict=True)
        ]
    noise = [
        {key: sigma * norms[key] for key, sigma in bands.items()}
        for bands, norms in zip(noise, pyramid.norms, strict=True)
    ]
    materialize(*(sigma for bands in noise for sigma in bands.values()))  # All of them by one node.
    return noise


def _measured(details: Details, pyramid: Pyramid) -> Levels:
    """Return the noise of the first levels by the median of each band, in units of white noise."""
    places, bands, floors = [], [], []
    for level, keys in enumerate(details[:MEASURED_LEVELS]):
        for key in keys:
            band, _ = pyramid.masked(details[level][key], level)
            # Of all shifts, one is enough where differences of bands matter.
            band = pyramid.sampled(band) if level == 0 and "a" not in key else pyramid.one_shift(band)
            places.append((level, key))
            bands.append(band)
            floors.append(pyramid.rounding_floor(level))
    noise: Levels = [{} for _ in details[:MEASURED_LEVELS]]
    share = finest_noise_share(bands[places.index((0, "d" * pyramid.ndim))], pyramid)
    for (level, key), median in zip(places, reduced("median", bands, floors), strict=True):
        noise[level][key] = share * median / (NORMAL_MEDIAN * pyramid.norms[level][key])
    return noise


def _extended(measured: Levels, levels: int) -> Levels:
    """Return the noise of more levels: it grows by the square root of the growth before."""
    noise = list(measured)
    while 1 < len(noise) < levels:
        finer, last = noise[-2:]
        noise.append({key: last[key] * xp.sqrt(_growth(finer[key], last[key])) for key in last})
    return noise


def _growth(finer: Any, coarser: Any) -> Any:
    return xp.clip(coarser / _above_zero(finer), 1.0, MAX_GROWTH)


def _of_chroma(bands: Sequence[Any], channels: int) -> Any:
    """Return the mean over the bands of the chroma of each image, for all of its channels."""
    images = bands[0].shape[0] // channels
    parts = [band[k * images : (k + 1) * images] for band in bands for k in range(1, channels)]
    return xp.reshape(xp.broadcast_to(_mean(parts)[None], (channels, images)), (-1,))


def _above_zero(x: Any) -> Any:
    """Return a divisor, without zeros."""
    return xp.maximum(x, smallest_normal(x))


def _mean(bands: Sequence[Any]) -> Any:
    return sum(bands[1:], bands[0]) / len(bands)


def _others(bands: dict[str, Any]) -> list[Any]:
    """Return the bands that are not diagonal."""
    return [band for key, band in bands.items() if "a" in key]


def _mosaic_limit(measured: Levels) -> Any:
    """Return the largest difference between neighbours that is compared, for each item."""
    limit = MAX_DIFFERENCE * _mean(_others(measured[0]))
    materialize(limit)
    return limit


def _mosaic_share(limit: Any, pyramid: Pyramid) -> Any:
    """Return the share of the noise of grey images that is recognised by the mosaic, for each item."""
    contrast = pyramid.mosaic_contrast(limit)
    least = LEAST_CONTRAST + CHANCE_CONTRAST / math.sqrt(min(pyramid.samples, MOSAIC_LENGTH**2))
    share = xp.clip((contrast - least) / (CERTAIN_CONTRAST - LEAST_CONTRAST), 0.0, 1.0)
    materialize(share)
    return share


def _chroma_share(measured: Levels, channels: int) -> Any:
    """Return the share of the noise of colour images that is recognised by chroma, for each item."""
    finest = _of_chroma([measured[0]["dd"]], channels)
    second = _of_chroma(_others(measured[1]), channels)
    span = (CERTAIN_RATIO - LEAST_RATIO) * finest
    share = xp.clip((second - LEAST_RATIO * finest) / _above_zero(span), 0.0, 1.0)
    share = xp.where(finest > 0, share, xp.zeros_like(share))  # Graphics without noise have edges alone.
    materialize(share)
    return share


def _grey_camera_noise(measured: Levels, limit: Any, levels: int) -> Levels:
    """Return the noise of a camera in each band of grey images."""
    diagonal = measured[0]["dd"]
    growth = xp.clip(limit / _above_zero(MAX_DIFFERENCE * diagonal), 1.0, MAX_GREY_GROWTH)
    noise: Levels = []
    for level in range(levels):
        noise.append({})
        for key in measured[0]:
            sigma = diagonal * growth ** (GREY_EXPONENT * (1 - _exponent(level, key)))
            if level < MEASURED_LEVELS:
                sigma = xp.minimum(sigma, measured[level][key])
            noise[-1][key] = LUMA_MARGIN * sigma
    return noise


def _color_camera_noise(measured: Levels, extended: Levels, channels: int) -> Levels:
    """Return the noise of a camera in each band of luma and chroma."""
    diagonal = measured[0]["dd"]
    coarse = xp.maximum(_of_chroma(_others(_extended(measured, MEASURED_LEVELS + 1)[-1]), channels), diagonal)
    ratio = _above_zero(diagonal) / _above_zero(coarse)
    materialize(coarse, ratio)
    luma = xp.ones_like(diagonal[: diagonal.shape[0] // channels])
    is_luma = xp.concat([luma, *[xp.zeros_like(luma)] * (channels - 1)]) > 0
    noise: Levels = []
    for level, bands in enumerate(extended):
        noise.append({})
        for key, of_chroma in bands.items():
            of_luma = coarse * ratio ** _exponent(level, key)
            if level < MEASURED_LEVELS:
                of_luma = xp.minimum(of_luma, measured[level][key])
            noise[-1][key] = xp.where(is_luma, LUMA_MARGIN * of_luma, of_chroma)
    return noise


def _exponent(level: int, key: str) -> float:
    """Return the share of the noise of a band that is that of the finest diagonal band, as an exponent."""
    return float(4.0**-level) * (NOT_DIAGONAL if "a" in key else 1.0)
