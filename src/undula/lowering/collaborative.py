"""Collaborative filtering: similar blocks of an image are transformed, shrunk and inverted as a group.

Around each reference, a block of 8×8 samples, the most similar blocks are found: those with the least sum of
squared differences. They are stacked, and transformed along all three axes: noise is spread over all
coefficients, while what the blocks have in common is in few of them. This is done twice [1]_::

    1. groups of the noisy image           coefficients below a threshold become zero    ──▶ pilot
    2. groups of the pilot                 gains p²/(p² + ν), with coefficients p of the pilot, are applied to
                                           the coefficients of the noisy image           ──▶ result

Every block of a group is written back, and a sample is the weighted mean over all blocks that cover it. The
weight of a block is the inverse of the noise that its group still has, times a window.

Blocks are matched in integers, which are multiples of a small part of the noise: so distances are exact, and
few bits are enough. References are 4 samples apart, and groups always have the same number of blocks, a power
of two. Volumes have blocks of 4×4×4 samples [2]_, whose references are 2 or 4 planes, 2 rows and 4 columns
apart. Noise has the standard deviation 1. This module has the parameters, and the meaning in NumPy.

.. [1] K. Dabov, A. Foi, V. Katkovnik, K. Egiazarian: Image denoising by sparse 3-D transform-domain
       collaborative filtering. IEEE Transactions on Image Processing, 2007.
.. [2] M. Maggioni, V. Katkovnik, K. Egiazarian, A. Foi: Nonlocal transform-domain filter for volumetric data
       denoising and reconstruction. IEEE Transactions on Image Processing, 2013.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ..wavelets import as_wavelet

__all__ = [
    "BLOCK",
    "BLOCK_SAMPLES",
    "COARSEST",
    "CUBE",
    "CUBE_STEPS",
    "CUBE_TAPS",
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
    "VOLUME_PROFILES",
    "WINDOW_TAPS",
    "BlockNoise",
    "CollaborativeProfile",
    "collaborate",
    "cosine_matrix",
    "displacements",
    "extended_shape",
    "haar_matrix",
    "limited_noise",
    "matching_scale",
    "reference_steps",
    "wavelet_matrix",
]

Array = NDArray[Any]

BLOCK, CUBE = 8, 4  # samples along an axis of a block, of images and of volumes
BLOCK_SAMPLES = BLOCK**2
assert BLOCK_SAMPLES == CUBE**3
STEP = 4  # samples from one reference to the next
CUBE_STEPS = (2, 4)  # the same along rows and columns of volumes
LEAST_SAMPLES = {2: 16, 3: 8}  # along an axis: then there are enough blocks for a group around each reference
NUMBER_BITS = 11  # Distances are compared without so many bits of their mantissa, then by displacement.
LEAST_GAIN = 1e-3  # of a group, so that weights are finite
MAX_RANGE = 1e7  # of samples in units of the noise: less noise than rounding would leave is none
MAX_NOISE = 16.0  # of the range of samples: more leaves their mean as well, but rounding would move it
FLOOR = 32.0  # The least sample, in units of the noise: means of groups are then far above thresholds.
MAX_MATCHED = 4095  # Blocks are matched in integers up to this; their distances are then below 2**30.
FINEST, COARSEST = 128.0, 4.0  # of integers in a unit of the noise; images with fewer are clipped at outliers
MATCHING_MARGIN = 4.0  # in units of the noise: a pilot may go beyond the range of the image
WINDOW_TAPS, CUBE_TAPS = (np.kaiser(side, 2.0).astype(np.float32) for side in (BLOCK, CUBE))


@dataclass(frozen=True)
class BlockNoise:
    """Noise that is not white: what the coefficients of blocks have of it.

    Parameters
    ----------
    thresholded, weighted : tuple of float
        Variances of the coefficients of a block in both steps, with the first axis first; 1 for white noise.
    common : tuple of float
        Covariances of samples that are one displacement apart, by the number of the displacement.
    """

    thresholded: tuple[float, ...]
    weighted: tuple[float, ...]
    common: tuple[float, ...]

    def variances(self, weighted: bool) -> Array:
        """Return the variances of the coefficients in one of the steps."""
        return np.array(self.weighted if weighted else self.thresholded)

    def penalties(self, scale: float) -> Array:
        """Return what is added to distances in the noisy image, by displacement.

        Noise that blocks have in common is no reason to group them: with the penalty, all blocks of a
        constant image are expected at the same distance. ``scale`` is the number of integers in a unit of the
        noise.
        """
        # Multiples of the number of cells of a block, each of which adds its part.
        penalties = 4 * np.rint(BLOCK_SAMPLES / 2 * scale**2 * np.maximum(self.common, 0))
        penalties[0] = 0  # The reference belongs to its group.
        return np.asarray(penalties, np.int64)


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
    gain_noise : float, default 0.6
        Variance of the noise in the gains of the second step, ν. It is less than 1 because the first step
        also removes details, and the pilot has less energy than the image.
    layer_step : int, default 4
        Planes of a volume from one reference to the next: 2 or 4.
    noise : BlockNoise, optional
        White noise if None.
    """

    radius: int
    thresholded: int
    weighted: int
    threshold: float = 2.7
    gain_noise: float = 0.6
    layer_step: int = 4
    noise: BlockNoise | None = None


PROFILES = {
    "fast": CollaborativeProfile(8, 16, 16),
    "normal": CollaborativeProfile(12, 16, 16),
    "best": CollaborativeProfile(16, 16, 32),
}
VOLUME_PROFILES = {
    "fast": CollaborativeProfile(3, 16, 16, 2.8, 0.8),
    "normal": CollaborativeProfile(4, 16, 16, 2.8, 0.8),
    "best": CollaborativeProfile(5, 16, 32, 2.8, 0.8, layer_step=2),
}


@cache
def cosine_matrix(side: int = BLOCK) -> Array:
    """Return the matrix of the orthonormal cosine transform of a line of a block."""
    frequency, place = np.arange(side)[:, None], np.arange(side)
    matrix = np.cos(np.pi * (2 * place + 1) * frequency / (2 * side)) * math.sqrt(2 / side)
    matrix[0] /= math.sqrt(2)
    return np.asarray(matrix)


@cache
def wavelet_matrix(side: int = BLOCK) -> Array:
    """Return the matrix of all periodic levels of the wavelet bior1.5, with rows of norm 1."""
    wavelet = as_wavelet("bior1.5")
    low: Array = np.eye(side)
    details: list[Array] = []
    while len(low) > 1:
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
def displacements(radius: int, ndim: int = 2) -> Array:
    """Return the displacements of blocks from the reference along all axes, nearest first."""
    moves = product(range(-radius, radius + 1), repeat=ndim)
    return np.array(sorted(moves, key=lambda move: (sum(n * n for n in move), move)), np.int64)


def reference_steps(ndim: int, layer_step: int = 4) -> tuple[int, ...]:
    """Return the samples from one reference to the next along each axis."""
    return (STEP, STEP) if ndim == 2 else (layer_step, *CUBE_STEPS)


def extended_shape(shape: Sequence[int], layer_step: int = 4) -> tuple[int, ...]:
    """Return the shape to which images are extended, by mirroring: references then cover all samples."""
    steps, least = reference_steps(len(shape), layer_step), LEAST_SAMPLES[len(shape)]
    return tuple(max(least, -(-n // step) * step) for n, step in zip(shape, steps, strict=True))


def limited_noise(sigmas: Array, extents: Array) -> Array:
    """Return the noise of planes, at most a multiple of the range of samples unless that is zero."""
    return np.where(extents > 0, np.minimum(sigmas, MAX_NOISE * extents), sigmas)


def matching_scale(image: Array) -> tuple[float, float]:
    """Return the sample that is matched as the integer 0, and the factor of samples, a power of two."""
    least, largest = float(image.min()), float(image.max())
    if largest - least > MAX_MATCHED / COARSEST:
        least, largest = (float(x) for x in np.percentile(image[..., ::4, ::4], (1, 99)))
    power = math.floor(math.log2(MAX_MATCHED / (largest - least + 2 * MATCHING_MARGIN)))
    return math.floor(least) - MATCHING_MARGIN, min(2.0**power, FINEST)


def collaborate(channels: Array, profile: CollaborativeProfile) -> Array:
    """Filter channels of an image or a volume; blocks are matched in the first one."""
    shape = channels.shape[1:]
    extended = extended_shape(shape, profile.layer_step)
    added = [(0, more - n) for n, more in zip(shape, extended, strict=True)]
    offset = channels.min(axis=tuple(range(1, channels.ndim)), keepdims=True) - FLOOR
    noisy = np.pad(channels - offset, ((0, 0), *added), mode="symmetric")
    pilot = _filtered(noisy, None, profile)
    result = _filtered(noisy, pilot, profile)
    return np.asarray(result[(slice(None), *(slice(n) for n in shape))] + offset)


def _filtered(noisy: Array, pilot: Array | None, profile: CollaborativeProfile) -> Array:
    """Return the result of one step: the first one, if there is no pilot."""
    ndim, weighted = noisy.ndim - 1, pilot is not None
    side, taps = (BLOCK, WINDOW_TAPS) if ndim == 2 else (CUBE, CUBE_TAPS)
    size = profile.weighted if weighted else profile.thresholded
    matrix = cosine_matrix(side) if weighted else wavelet_matrix(side)
    inverse, haar = np.linalg.inv(matrix), haar_matrix(size)
    window = np.ones(())
    for _ in range(ndim):
        window = np.multiply.outer(window, taps)
    variances = np.ones(window.shape)
    penalties = np.zeros((2 * profile.radius + 1) ** ndim)
    least, scale = matching_scale(noisy[0])
    if profile.noise is not None:
        variances = profile.noise.variances(weighted).reshape(window.shape)
        penalties = penalties if weighted else profile.noise.penalties(scale)
    matched = np.floor(((noisy if pilot is None else pilot)[0] - least) * scale + 0.5)
    match = sliding_window_view(np.clip(matched, 0, MAX_MATCHED).astype(np.float64), (side,) * ndim)
    total, weights = np.zeros(noisy.shape), np.zeros(noisy.shape)
    steps = reference_steps(ndim, profile.layer_step)
    for reference in product(*(range(0, n, step) for n, step in zip(match.shape, steps, strict=False))):
        corners = _similar(match, reference, penalties, profile.radius, size)
        blocks = [tuple(slice(n, n + side) for n in corner) for corner in corners]
        for k in range(len(noisy)):
            group = _coefficients([noisy[k][block] for block in blocks], matrix, haar)
            if pilot is None:
                gains = (np.abs(group) > profile.threshold * np.sqrt(variances)).astype(float)
                weight = 1 / max(1.0, (gains * variances).sum())
            else:
                energy = _coefficients([pilot[k][block] for block in blocks], matrix, haar) ** 2
                gains = energy / (energy + profile.gain_noise * variances)
                weight = 1 / max(LEAST_GAIN, (gains**2 * variances).sum())
            restored = _along_axes(np.tensordot(haar.T, group * gains, 1), inverse)
            for block, samples in zip(blocks, restored, strict=True):
                total[k][block] += weight * window * samples
                weights[k][block] += weight * window
    return total / weights


def _along_axes(blocks: Array, matrix: Array) -> Array:
    """Multiply blocks by a matrix along all of their axes."""
    for axis in range(1, blocks.ndim):
        blocks = np.moveaxis(np.tensordot(matrix, blocks, (1, axis)), 0, axis)
    return blocks


def _coefficients(blocks: Sequence[Array], matrix: Array, haar: Array) -> Array:
    return np.asarray(np.tensordot(haar, _along_axes(np.array(blocks, float), matrix), 1))


def _similar(match: Array, reference: tuple[int, ...], penalties: Array, radius: int, size: int) -> Array:
    """Return the places of the blocks that are most similar to a reference."""
    ndim = len(reference)
    places = displacements(radius, ndim) + np.array(reference)
    inside = ((places >= 0) & (places < match.shape[:ndim])).all(axis=1)
    blocks = match[tuple(places[inside].T)]
    distances = ((blocks - match[reference]) ** 2).sum(axis=tuple(range(1, ndim + 1))) + penalties[inside]
    keys = distances.astype(np.float32).view(np.int32) >> NUMBER_BITS << NUMBER_BITS | np.flatnonzero(inside)
    return np.asarray(places[inside][np.argsort(keys)[:size]])


@cache
def haar_matrix(size: int) -> Array:
    """Return the matrix of all levels of the orthonormal Haar transform of ``size`` samples."""
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        details = np.kron(np.eye(len(matrix)), [[1, -1]])
        matrix = np.concatenate([np.kron(matrix, [[1, 1]]), details]) / math.sqrt(2)
    return matrix
