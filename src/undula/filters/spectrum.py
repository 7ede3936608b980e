"""Noise that is not white: its power spectrum, what bands and blocks have of it, and its estimation.

A filter with taps ``f`` turns stationary noise with the covariances ``R`` into noise of variance ``Σ A·R``,
where ``A`` is the autocorrelation of ``f``, and the sum is over all displacements. Filters here are
separable, so the sum is a product of matrices, one for each axis. Covariances are the Fourier transform of
the power spectrum.

A spectrum is estimated from the windows of an image that have the least structure. Which windows these are is
decided for each frequency by the others, so that windows with little noise are not preferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from ..arrays import DASK, given_array, keeps_library, library_of
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.axis_arguments import checked_axis
from ..lowering.collaborative import (
    BLOCK,
    CUBE,
    BlockNoise,
    CollaborativeProfile,
    cosine_matrix,
    displacements,
    wavelet_matrix,
)
from .planes import unit_of

__all__ = ["ESTIMATED", "NoiseSpectrum", "as_spectrum", "estimate_spectrum"]

Array = NDArray[Any]

ESTIMATED = "estimated"
MAX_FREQUENCIES = 64  # along an axis; finer spectra are averaged
SHARED_THRESHOLD = 0.22  # exponent of the number of samples that share their noise
LEAST_VARIANCE = 1e-4  # of a coefficient, relative to a sample
WINDOW = 16  # samples along an axis of the windows that a spectrum is estimated from
MAX_WINDOWS = 10_000
TAPER_REACH = 2  # frequencies over which the taper of windows spreads powers
FLAT_SHARE = 0.15  # of windows with the least structure
LEAST_WINDOWS = 16
SMALLEST = float(np.finfo(float).tiny)  # instead of the power 0, which constant images have


@dataclass(frozen=True)
class NoiseSpectrum:
    """The power spectrum of noise.

    Parameters
    ----------
    sigma : float
        Standard deviation of a sample.
    shape : tuple of int
        Numbers of frequencies along all axes.
    values : tuple of float
        Powers relative to ``sigma²``, with a mean of 1, in the order of ``numpy.fft.fftn``.
    """

    sigma: float
    shape: tuple[int, ...]
    values: tuple[float, ...] = field(repr=False)

    @property
    def power(self) -> Array:
        """The spectrum as an array, whose mean is the variance of the noise."""
        return self.sigma**2 * np.array(self.values).reshape(self.shape)

    def variances(self, filters: Sequence[Sequence[Array]]) -> Array:
        """Return the variances of separable filters of noise of variance 1, for filters along each axis."""
        result = _covariances(self)
        for axis, taps in enumerate(filters):
            length = max(map(len, taps))
            correlations = np.array([_autocorrelation(np.asarray(each, float), length) for each in taps])
            lags = np.arange(1 - length, length)
            count = self.shape[axis]
            result = np.moveaxis(result, axis, 0)[lags % count]
            result = np.where(np.expand_dims(2 * np.abs(lags) <= count, (*range(1, result.ndim),)), result, 0)
            result = np.moveaxis(np.tensordot(correlations, result, 1), 0, axis)
        return np.asarray(np.maximum(result, LEAST_VARIANCE))

    def colored_profile(self, profile: CollaborativeProfile) -> CollaborativeProfile:
        """Return how blocks with this noise are grouped and shrunk.

        Where neighbours share their noise, blocks of a group are more similar by chance, and more of it is
        left in their mean. So thresholds and the noise in gains grow with the number of samples that share
        it.
        """
        shared = float((_covariances(self) ** 2).sum())
        return replace(
            profile,
            threshold=profile.threshold * shared**SHARED_THRESHOLD,
            gain_noise=profile.gain_noise * shared,
            noise=self.block_noise(profile.radius),
        )

    def block_noise(self, radius: int) -> BlockNoise:
        """Return the noise of the coefficients of blocks, and of their displacements."""
        ndim = len(self.shape)
        side = BLOCK if ndim == 2 else CUBE
        thresholded, weighted = (
            tuple(self.variances([list(matrix)] * ndim).reshape(-1).tolist())
            for matrix in (wavelet_matrix(side), cosine_matrix(side))
        )
        moves, shape = displacements(radius, ndim), np.array(self.shape)
        common = _covariances(self)[tuple((moves % shape).T)]
        common = np.where((2 * np.abs(moves) <= shape).all(axis=1), common, 0.0)
        return BlockNoise(thresholded, weighted, tuple(common.tolist()))


@lru_cache(maxsize=16)
def _covariances(spectrum: NoiseSpectrum) -> Array:
    """Return the covariances of samples by displacement, relative to the variance."""
    return np.fft.ifftn(np.array(spectrum.values).reshape(spectrum.shape)).real


def _autocorrelation(taps: Array, length: int) -> Array:
    """Return the sums of products of taps, for displacements from ``1 - length`` to ``length - 1``."""
    result = np.correlate(taps, taps, "full")
    return np.pad(result, length - len(taps))


def as_spectrum(power: ArrayLike) -> NoiseSpectrum:
    """Return a spectrum, given an array of powers whose mean is the variance of the noise."""
    if isinstance(power, NoiseSpectrum):
        return power
    x = np.asarray(library_of(given_array(power, "noise")).to_numpy(given_array(power, "noise")))
    if x.dtype.kind not in "iuf" or x.ndim == 0 or x.size == 0:
        raise ArgumentTypeError(
            "the power spectrum of noise must be an array of real numbers, one for each frequency; got"
            f" {x.dtype} and shape {x.shape}"
        )
    x = x.astype(float)
    if not np.isfinite(x).all() or (x < 0).any() or not x.any():
        raise ArgumentError("the power spectrum of noise must be finite, not negative, and not all zero")
    variance = float(x.mean())
    covariances = np.fft.ifftn(x / variance).real
    for axis, count in enumerate(x.shape):
        if count > MAX_FREQUENCIES:  # The mean over neighbouring frequencies.
            lags = np.fft.fftfreq(count, 1 / count).round().astype(int)
            covariances = np.moveaxis(covariances, axis, -1) * np.sinc(lags / MAX_FREQUENCIES)
            folded = np.zeros((MAX_FREQUENCIES, *covariances.shape[:-1]))
            np.add.at(folded, lags % MAX_FREQUENCIES, np.moveaxis(covariances, -1, 0))
            covariances = np.moveaxis(folded, 0, axis)
    values = np.maximum(np.fft.fftn(covariances).real, 0)
    values /= values.mean()
    return NoiseSpectrum(float(np.sqrt(variance)), values.shape, tuple(values.reshape(-1).tolist()))


@keeps_library
def estimate_spectrum(image: ArrayLike, *, channel_axis: int | None = None) -> Array:
    """Estimate the power spectrum of the noise of an image, which may be correlated between neighbours.

    Parameters
    ----------
    image : array_like
        Image with two axes of at least 32 samples. NaNs and infinities are left out.
    channel_axis : int, optional
        Axis of channels, over which the spectrum is averaged.

    Returns
    -------
    array
        Powers of 16×16 frequencies, in the order of ``numpy.fft.fft2``. Their mean is the variance of the
        noise.

    Notes
    -----
    The spectrum is that of the windows of 16×16 samples with the least structure. Images that are full of
    texture have none, and the estimate is too high for them. To measure a spectrum instead, take an image of
    noise alone, such as a dark frame: ``numpy.abs(numpy.fft.fft2(dark - dark.mean())) ** 2 / dark.size``.

    Examples
    --------
    >>> white = 5 * np.random.default_rng(0).standard_normal((128, 128))
    >>> bool(abs(np.sqrt(estimate_spectrum(white).mean()) - 5) < 0.3)
    True
    """
    if DASK.owns(image):
        raise ArgumentError(
            "the spectrum of noise is estimated from images in memory; call the compute() of a part first"
        )
    x = given_array(image, "image")
    x = np.asarray(library_of(x).to_numpy(x))
    if channel_axis is not None:
        channels = np.moveaxis(x, checked_axis(channel_axis, x.ndim), 0)
        return np.asarray(np.mean([estimate_spectrum(channel) for channel in channels], axis=0))
    if x.dtype.kind not in "iuf" or x.ndim != 2 or min(x.shape) < 2 * WINDOW:
        raise ArgumentError(
            f"the spectrum of noise is estimated from images with at least {2 * WINDOW} by {2 * WINDOW} real"
            f" samples, got {x.dtype} and shape {x.shape}; use noise='gaussian' for smaller ones"
        )
    x = x.astype(float)
    unit = unit_of(float(np.abs(x, where=np.isfinite(x), out=np.zeros_like(x)).max()))
    windows = sliding_window_view(x / unit, (WINDOW, WINDOW))
    step = max(WINDOW // 4, int(np.ceil(np.sqrt(x.size / MAX_WINDOWS))))
    windows = windows[::step, ::step].reshape(-1, WINDOW, WINDOW)
    windows = windows[np.isfinite(windows).all(axis=(1, 2))]
    if len(windows) < LEAST_WINDOWS:
        raise ArgumentError("too few windows of the image are valid to estimate the spectrum of its noise")
    taper = np.hanning(WINDOW + 2)[1:-1]
    taper = np.outer(taper, taper)
    centred = windows - (windows * taper).sum(axis=(1, 2), keepdims=True) / taper.sum()
    powers = np.abs(np.fft.fft2(centred * taper)) ** 2 / (taper**2).sum()
    return _flat_spectrum(powers.reshape(len(powers), -1)).reshape(WINDOW, WINDOW) * unit * unit


@cache
def _independent() -> Array:
    """Return for each frequency which others have independent noise: those that the taper does not join.

    A window is chosen for a frequency by these, so that windows with little noise are not preferred.
    """
    axis = np.arange(WINDOW)
    distances = np.abs((axis[:, None] - axis + WINDOW // 2) % WINDOW - WINDOW // 2)
    near = distances <= TAPER_REACH
    opposite = np.abs((axis[:, None] + axis + WINDOW // 2) % WINDOW - WINDOW // 2) <= TAPER_REACH
    return 1.0 - (np.kron(near, near) | np.kron(opposite, opposite))


def _flat_spectrum(powers: Array) -> Array:
    """Return the mean powers of windows with little structure, given those of all windows."""
    count = max(LEAST_WINDOWS, int(FLAT_SHARE * len(powers)))
    spectrum = np.median(powers, axis=0) / np.log(2)  # The powers of noise have exponential distributions.
    for _ in range(4):
        structure = np.log1p(powers / np.maximum(spectrum, SMALLEST)) @ _independent()
        chosen = np.argpartition(structure, count - 1, axis=0)[:count]
        spectrum = np.median(np.take_along_axis(powers, chosen, axis=0), axis=0) / np.log(2)
    # Windows have no mean, and the taper spreads that to the neighbours of the frequency 0.
    grid = spectrum.reshape(WINDOW, WINDOW)
    near = [(0, 2), (2, 0), (0, -2), (-2, 0), (1, 2), (2, 1), (-1, 2), (2, -1)]
    level = np.mean([grid[place] for place in near])
    for place in ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)):
        grid[place] = max(grid[place], level)
    return np.asarray(grid)
