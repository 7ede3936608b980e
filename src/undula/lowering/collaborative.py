"""Collaborative filtering: similar blocks of an image are transformed, shrunk and inverted as a group.

Around each reference, a block of 8×8 samples, the most similar blocks are found: those with the least sum of
squared differences. They are stacked, and transformed along all three axes: noise is spread over all
coefficients, while what the blocks have in common is in few of them. This is done twice [1]_::

    1. groups of the noisy image           coefficients below a threshold become zero    ──▶ pilot
    2. groups of the pilot                 gains p²/(p² + 1), with coefficients p of the pilot, are applied to
                                           the coefficients of the noisy image           ──▶ result

Every block of a group is written back, and a sample is the weighted mean over all blocks that cover it. The
weight of a block is the inverse of the noise that its group still has, times a window.

Blocks are matched in integers, which are multiples of a small part of the noise: so distances are exact, and
few bits are enough. References are 4 samples apart, and groups always have the same number of blocks, a power
of two. Noise has the standard deviation 1. This module has the parameters, and the meaning in NumPy.

.. [1] K. Dabov, A. Foi, V. Katkovnik, K. Egiazarian: Image denoising by sparse 3-D transform-domain
       collaborative filtering. IEEE Transactions on Image Processing, 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ..wavelets import as_wavelet

__all__ = [
    "BLOCK",
    "COARSEST",
    "FINEST",
    "FLOOR",
    "LEAST_GAIN",
    "LEAST_SAMPLES",
    "MATCHING_MARGIN",
    "MAX_MATCHED",
    "MAX_NOISE",
    "MAX_RANGE",
    "NUMBER_BITS",
    "PROFILES",
    "STEP",
    "WINDOW_TAPS",
    "CollaborativeProfile",
    "collaborate",
    "cosine_matrix",
    "displacements",
    "extended_shape",
    "haar_matrix",
    "limited_noise",
    "matching_scale",
    "wavelet_matrix",
]

Array = NDArray[Any]

BLOCK = 8  # samples
STEP = 4  # samples from one reference to the next
LEAST_SAMPLES = 16  # along an axis: then there are enough blocks for a group around each reference
NUMBER_BITS = 11  # Distances are compared without so many bits of their mantissa, then by displacement.
LEAST_GAIN = 1e-3  # of a group, so that weights are finite
MAX_RANGE = 1e7  # of samples in units of the noise: less noise than rounding would leave is none
MAX_NOISE = 16.0  # of the range of samples: more leaves their mean as well, but rounding would move it
FLOOR = 32.0  # The least sample, in units of the noise: means of groups are then far above thresholds.
MAX_MATCHED = 4095  # Blocks are matched in integers up to this; their distances are then below 2**30.
FINEST, COARSEST = 128.0, 4.0  # of integers in a unit of the noise; images with fewer are clipped at outliers
MATCHING_MARGIN = 4.0  # in units of the noise: a pilot may go beyond the range of the image
WINDOW_TAPS = np.kaiser(BLOCK, 2.0).astype(np.float32)


@dataclass(frozen=True)
class CollaborativeProfile:
    """How blocks are grouped.

    Parameters
    ----------
    radius : int
        The largest displacement of a block from the reference, along each axis.
    thresholded, weighted : int
        Number of blocks of a group in the first and in the second step: 16 or 32.
    threshold : float, default 2.7
        Threshold of the first step, in units of the noise.
    """

    radius: int
    thresholded: int
    weighted: int
    threshold: float = 2.7


PROFILES = {
    "fast": CollaborativeProfile(8, 16, 16),
    "normal": CollaborativeProfile(12, 16, 16),
    "best": CollaborativeProfile(19, 16, 32),
}


@cache
def cosine_matrix() -> Array:
    """Return the matrix of the orthonormal cosine transform of 8 samples."""
    frequency, place = np.arange(BLOCK)[:, None], np.arange(BLOCK)
    matrix = np.cos(np.pi * (2 * place + 1) * frequency / (2 * BLOCK)) * math.sqrt(2 / BLOCK)
    matrix[0] /= math.sqrt(2)
    return np.asarray(matrix)


@cache
def wavelet_matrix() -> Array:
    """Return the matrix of three periodic levels of the wavelet bior1.5, with rows of norm 1."""
    wavelet = as_wavelet("bior1.5")
    low: Array = np.eye(BLOCK)
    details: list[Array] = []
    for _ in range(3):
        count = low.shape[0]
        bands = np.zeros((2, count // 2, count))
        for band, taps in zip(bands, (wavelet.dec_lo, wavelet.dec_hi), strict=True):
            for row in range(count // 2):
                for k, tap in enumerate(taps):
                    band[row, (2 * row + len(taps) // 2 - k) % count] += tap
        details.insert(0, bands[1] @ low)
        low = bands[0] @ low
    matrix = np.concatenate([low, *details])
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


@cache
def displacements(radius: int) -> Array:
    """Return the displacements ``(down, right)`` of blocks from the reference, nearest first."""
    side = range(-radius, radius + 1)
    pairs = [(down, right) for down in side for right in side]
    return np.array(sorted(pairs, key=lambda pair: (pair[0] ** 2 + pair[1] ** 2, pair)), np.int64)


def extended_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Return the shape to which images are extended, by mirroring: references then cover all samples."""
    rows, columns = (max(LEAST_SAMPLES, -(-n // STEP) * STEP) for n in shape)
    return rows, columns


def limited_noise(sigmas: Array, extents: Array) -> Array:
    """Return the noise of planes, at most a multiple of the range of samples unless that is zero."""
    return np.where(extents > 0, np.minimum(sigmas, MAX_NOISE * extents), sigmas)


def matching_scale(plane: Array) -> tuple[float, float]:
    """Return the sample that is matched as the integer 0, and the factor of samples, a power of two."""
    least, largest = float(plane.min()), float(plane.max())
    if largest - least > MAX_MATCHED / COARSEST:
        least, largest = (float(x) for x in np.percentile(plane[::4, ::4], (1, 99)))
    power = math.floor(math.log2(MAX_MATCHED / (largest - least + 2 * MATCHING_MARGIN)))
    return math.floor(least) - MATCHING_MARGIN, min(2.0**power, FINEST)


def collaborate(planes: Array, profile: CollaborativeProfile) -> Array:
    """Filter planes with noise of standard deviation 1; blocks are matched in the first one."""
    shape = planes.shape[1:]
    added = [(0, extended - n) for n, extended in zip(shape, extended_shape(shape), strict=True)]
    offset = planes.min(axis=(1, 2), keepdims=True) - FLOOR
    noisy = np.pad(planes - offset, ((0, 0), *added), mode="symmetric")
    pilot = _filtered(noisy, None, profile)
    result = _filtered(noisy, pilot, profile)
    return np.asarray(result[:, : shape[0], : shape[1]] + offset)


def _filtered(noisy: Array, pilot: Array | None, profile: CollaborativeProfile) -> Array:
    """Return the result of one step: the first one, if there is no pilot."""
    size = profile.thresholded if pilot is None else profile.weighted
    matrix = cosine_matrix() if pilot is not None else wavelet_matrix()
    inverse, haar = np.linalg.inv(matrix), haar_matrix(size)
    window = np.outer(WINDOW_TAPS, WINDOW_TAPS)
    least, scale = matching_scale(noisy[0])
    matched = np.floor(((noisy if pilot is None else pilot)[0] - least) * scale + 0.5)
    match = sliding_window_view(np.clip(matched, 0, MAX_MATCHED).astype(np.float32), (BLOCK, BLOCK))
    total, weights = np.zeros(noisy.shape), np.zeros(noisy.shape)
    for top in range(0, match.shape[0], STEP):
        for left in range(0, match.shape[1], STEP):
            places = _similar(match, top, left, profile.radius, size)
            for k in range(len(noisy)):
                group = _coefficients(noisy[k], places, matrix, haar)
                if pilot is None:
                    gains = (np.abs(group) > profile.threshold).astype(float)
                    weight = 1 / max(1.0, gains.sum())
                else:
                    energy = _coefficients(pilot[k], places, matrix, haar) ** 2
                    gains = energy / (energy + 1)
                    weight = 1 / max(LEAST_GAIN, (gains**2).sum())
                blocks = np.einsum("gn,nij->gij", haar.T, group * gains)
                blocks = inverse @ blocks @ inverse.T
                for (y, x), block in zip(places, blocks, strict=True):
                    total[k, y : y + BLOCK, x : x + BLOCK] += weight * window * block
                    weights[k, y : y + BLOCK, x : x + BLOCK] += weight * window
    return total / weights


def _coefficients(plane: Array, places: Array, matrix: Array, haar: Array) -> Array:
    blocks = np.array([plane[y : y + BLOCK, x : x + BLOCK] for y, x in places], float)
    return np.asarray(np.einsum("ng,gij->nij", haar, matrix @ blocks @ matrix.T))


def _similar(match: Array, top: int, left: int, radius: int, size: int) -> Array:
    """Return the places of the blocks that are most similar to a reference."""
    offsets = displacements(radius)
    places = offsets + np.array([top, left])
    inside = ((places >= 0) & (places < match.shape[:2])).all(axis=1)
    blocks = match[places[inside, 0], places[inside, 1]]
    distances = ((blocks - match[top, left]) ** 2).sum(axis=(1, 2)).astype(np.float32)
    keys = (distances.view(np.int32) >> NUMBER_BITS << NUMBER_BITS) | np.flatnonzero(inside)
    return np.asarray(places[inside][np.argsort(keys)[:size]])


@cache
def haar_matrix(size: int) -> Array:
    """Return the matrix of all levels of the orthonormal Haar transform of ``size`` samples."""
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        details = np.kron(np.eye(len(matrix)), [[1, -1]])
        matrix = np.concatenate([np.kron(matrix, [[1, 1]]), details]) / math.sqrt(2)
    return matrix
