"""Noise of counted photons: its estimation, and the transform that makes it equal everywhere.

A sensor that counts photons returns ``z = g·P(λ) + N(0, σ²)``: the gain times a Poisson variable, whose
variance is its mean, plus read noise. With ``s = σ/g``, the generalised Anscombe transform [1]_ ::

    f(z) = 2·√(max(0, z/g + 3/8 + s²))

has noise of about 1 for all λ above 1 or so. What is filtered is therefore f(z), with σ = 1. The mean of f(z)
is not f of the mean: the inverse has to be that of ``λ → E f(z)`` instead [2]_. Here this mean is computed
for a table of λ: the sum over all counts of their probability times the integral over the read noise. Far
beyond the table, ``λ = (f/2)² - 1/8 - s²``.

.. [1] F. Murtagh, J.-L. Starck, A. Bijaoui: Image restoration with noise suppression using a multiresolution
       support. Astronomy and Astrophysics Supplement Series, 1995.
.. [2] M. Mäkitalo, A. Foi: Optimal inversion of the generalized Anscombe transformation for Poisson-Gaussian
       noise. IEEE Transactions on Image Processing, 2013.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import DASK, array_in_memory
from ..engines.cpu.filter_operations import convolve
from ..errors import ArgumentError, ArgumentTypeError
from ..functions import dwt2
from .base import check_number
from .operations import NORMAL_MEDIAN
from .planes import GivenImage, native_samples
from .spatial import gaussian

__all__ = ["PHOTON_NOISE", "PoissonNoise", "estimate_poisson", "filter_photons"]

Array = NDArray[Any]

PHOTON_NOISE = ("poisson", "poisson-gaussian")
LARGEST = 200.0  # mean number of photons of the table
NODES = 64  # of the integral over the read noise
BINS = 24  # of means, for the fit of gain and read noise
FLAT_SHARE = 0.4  # of places with the least structure, which the noise is estimated from
LEAST_PLACES = 64
CLIPPED = 5.0  # standard deviations beyond which a difference is structure


class PoissonNoise(NamedTuple):
    """The noise of counted photons.

    Attributes
    ----------
    gain : float
        What one photon adds to a sample.
    sigma : float
        Standard deviation of the read noise, in units of the image.

    Examples
    --------
    >>> PoissonNoise(gain=2.0, sigma=3.0)
    PoissonNoise(gain=2.0, sigma=3.0)
    """

    gain: float
    sigma: float = 0.0

    def stabilized(self, x: Array) -> Array:
        """Return samples whose noise has the standard deviation 1."""
        return np.asarray(2 * np.sqrt(np.maximum(x / self.gain + self._offset, 0)))

    def restored(self, stable: Array) -> Array:
        """Return the means of samples, given the means of what :meth:`stabilized` returned."""
        means, photons = _table(self.sigma / self.gain)
        asymptotic = (stable / 2) ** 2 - (self._offset - 0.25)
        inside = np.interp(stable, means, photons)
        # At the end of the table, both differ by less than a thousandth of a photon.
        return np.asarray(self.gain * np.where(stable > means[-1], asymptotic, inside)).astype(stable.dtype)

    @property
    def _offset(self) -> float:
        return 3 / 8 + (self.sigma / self.gain) ** 2


@lru_cache(maxsize=16)
def _table(read_noise: float) -> tuple[Array, Array]:
    """Return the means of stabilized samples for a table of mean numbers of photons."""
    photons = np.linspace(0, np.sqrt(LARGEST), 800) ** 2
    counts = np.arange(int(LARGEST + 12 * np.sqrt(LARGEST)) + 1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES) if read_noise else (np.zeros(1), np.ones(1))
    offset = 3 / 8 + read_noise**2
    values = 2 * np.sqrt(np.maximum(counts[:, None] + read_noise * nodes + offset, 0))
    conditional = values @ (weights / weights.sum())
    logarithms = np.cumsum(np.log(np.maximum(counts, 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.where(counts == 0, 0.0, counts * np.log(photons[:, None]))
    probabilities = np.exp(exponents - photons[:, None] - logarithms)
    return probabilities @ conditional, photons


def estimate_poisson(image: ArrayLike, sigma: float | None = None) -> PoissonNoise:
    """Estimate the gain and the read noise of an image of counted photons.

    Parameters
    ----------
    image : array_like
        Image with two axes, or several of them along further axes in front. Zero stands for no light.
    sigma : float, optional
        Standard deviation of the read noise, if it is known; 0 for pure Poisson noise.

    Returns
    -------
    PoissonNoise
        With the fields ``gain`` and ``sigma``.

    Notes
    -----
    The variance of noise, ``g·mean + σ²``, is measured by the finest diagonal band at the places of the image
    with the least structure, and fitted by a line.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> light = 20 + 15 * np.sin(np.arange(256) / 40)[:, None] * np.cos(np.arange(256) / 50)
    >>> noise = estimate_poisson(3 * rng.poisson(light) + 4 * rng.standard_normal(light.shape))
    >>> bool(abs(noise.gain - 3) < 0.15), bool(2 < noise.sigma < 6)
    (True, True)
    """
    x = native_samples(np.asarray(array_in_memory(image, "image")))
    if x.dtype.kind not in "iuf" or x.ndim < 2 or min(x.shape[-2:]) < 16:
        raise ArgumentTypeError(
            f"images of real numbers with at least 16 by 16 samples are needed, got {x.dtype} and shape"
            f" {x.shape}"
        )
    if sigma is not None:
        check_number(sigma, "sigma")
    means, differences = _flat_places(x.reshape(-1, *x.shape[-2:]).astype(np.float64))
    if means.size < LEAST_PLACES or means.max() <= 0:
        raise ArgumentError("the image has too few bright samples to estimate its noise; pass gain")
    squares = _clipped_squares(means, differences)
    if sigma is not None:
        gain = (squares.mean() - sigma**2) / means.mean()
        variance = sigma**2
    else:
        gain, variance = _line(means, squares)
    if not gain > 0:
        raise ArgumentError(
            "the noise of the image does not grow with its brightness; pass gain, or no noise"
        )
    return PoissonNoise(float(gain), float(np.sqrt(max(variance, 0.0))))


def filter_photons(pipeline: Any, image: Any, sigma: Any, options: dict[str, Any]) -> Any:
    """Filter an image of counted photons: stabilize its noise, filter it, and restore the means.

    Parameters
    ----------
    pipeline : Pipeline
        With ``photons``.
    image : array
    sigma : float, optional
        Standard deviation of the read noise; estimated if None, and 0 for pure Poisson noise.
    options : dict
        Other arguments of a call of the pipeline.
    """
    kind, gain = pipeline.photons, pipeline.gain
    if DASK.owns(image):
        raise ArgumentError(f"noise={kind!r} is for arrays in memory; call compute() of the Dask array first")
    if sigma is not None:
        check_number(sigma, "sigma")
    if kind == "poisson":
        if sigma:
            raise ArgumentError(f"noise='poisson' has no read noise; pass 'poisson-gaussian' with {sigma=}")
        sigma = 0.0
    given = GivenImage(image, options["channel_axis"], options["axes"], pipeline.colors, options["mask"])
    layout, mask = given.layout, given.mask
    if not given.on_host or not isinstance(given.array, np.ndarray):
        raise ArgumentError(f"noise={kind!r} is for arrays of NumPy; convert the image first")
    x = given.array.astype(layout.working_dtype)
    least = float(x.min() if mask is None else x[mask].min())
    if kind == "poisson" and least < 0:
        raise ArgumentError(
            f"noise='poisson' is for counts of photons, but the least sample is {least:g}; subtract the black"
            " level so that samples without light are 0, or pass noise='poisson-gaussian' if read noise makes"
            " them negative"
        )
    if gain is None or sigma is None:
        if mask is not None:
            raise ArgumentError(
                "the gain of images with a mask or NaNs is not estimated; pass gain and sigma"
            )
        channels = x if layout.channels < 4 or not layout.mixed else np.take(x, range(3), layout.channel)
        images = np.moveaxis(channels, layout.axes[-2:], (-2, -1)) if layout.ndim > 1 else channels
        estimated = estimate_poisson(images, sigma)
        gain, sigma = gain or estimated.gain, estimated.sigma if sigma is None else sigma
    photons = PoissonNoise(float(gain), float(sigma))
    stable = photons.stabilized(x).astype(layout.working_dtype)
    plain = replace(pipeline, photons=None, gain=None)
    restored = photons.restored(plain(stable, sigma=1.0, **{**options, "mask": mask}))
    if layout.mixed and layout.channels == 4:
        alpha = (*[slice(None)] * (layout.channel or 0), slice(3, None))
        restored[alpha] = x[alpha]
    return given.as_given(layout.restore(np, restored, given.array, mask))


def _flat_places(planes: Array) -> tuple[Array, Array]:
    """Return local means and the finest diagonal differences where planes have the least structure."""
    _, (_, _, diagonal) = dwt2(planes, "db2", axes=(1, 2))
    smooth = convolve(planes, gaussian(2.0))
    structure = convolve(sum(slope**2 for slope in np.gradient(smooth, axis=(1, 2))), gaussian(4.0))
    means = convolve(planes, gaussian(4.0))
    margin = slice(4, -4)
    places = [
        np.clip(2 * np.arange(n)[margin] - 1, 0, m - 1)
        for n, m in zip(diagonal.shape[1:], planes.shape[1:], strict=True)
    ]
    means, structure = (part[:, places[0]][:, :, places[1]].ravel() for part in (means, structure))
    differences = diagonal[:, margin, margin].ravel()
    bright = np.flatnonzero(means > 1e-3 * max(means.max(), 0.0))
    # Structure is compared among places of equal brightness, which have equal noise.
    kept = [
        part[np.argsort(structure[part])[: max(1, int(FLAT_SHARE * part.size))]]
        for part in np.array_split(bright[np.argsort(means[bright])], BINS)
    ]
    listed = np.concatenate(kept)
    return means[listed], differences[listed]


def _clipped_squares(means: Array, differences: Array) -> Array:
    """Return the squares of differences; those that are too large for noise are clipped."""
    squares = differences**2
    parts = np.array_split(np.argsort(means), BINS)
    slope = np.median([squares[part].mean() / means[part].mean() for part in parts])
    for part in parts:  # At most places of dark images there is no photon, and the median is too small.
        robust = np.median(np.abs(differences[part])) / NORMAL_MEDIAN
        squares[part] = np.minimum(squares[part], CLIPPED**2 * max(robust**2, slope * means[part].mean()))
    return squares


def _line(means: Array, squares: Array) -> tuple[float, float]:
    """Fit the variance of noise by a line over the mean, with weights by its own variance."""
    parts = np.array_split(np.argsort(means), BINS)
    x = np.array([means[part].mean() for part in parts])
    y = np.array([squares[part].mean() for part in parts])
    counts = np.array([part.size for part in parts])
    fitted = y
    gain = intercept = 0.0
    for _ in range(5):
        weights = np.sqrt(counts) / np.maximum(fitted, 1e-3 * y.max())
        gain, intercept = np.polyfit(x, y, 1, w=weights)
        if intercept < 0:
            gain, intercept = (weights**2 * x * y).sum() / (weights**2 * x * x).sum(), 0.0
        fitted = gain * x + intercept
    return float(gain), float(intercept)
