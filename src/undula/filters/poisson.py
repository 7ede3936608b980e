"""Noise of counted photons: its estimation, and the transform that makes it equal everywhere.

A sensor that counts photons returns ``z = g·P(λ) + N(0, σ²)``: the gain times a Poisson variable, whose
variance is its mean, plus read noise. With ``s = σ/g``, the generalised Anscombe transform [1]_ ::

    f(z) = 2·√(max(0, z/g + 3/8 + s²))

has noise of about 1 for all λ above 1 or so. What is filtered is therefore f(z), with σ = 1. The mean of f(z)
is not f of the mean: the inverse has to be that of ``λ → E f(z)`` instead [2]_. Here this mean is computed
for a table of λ: the sum over all counts of their probability times the integral over the read noise. Far
beyond the table, ``λ = (f/2)² - 1/8 - s²``.

Where there are few photons, an image is filtered from coarse to fine [3]_. The means of 2×2 samples have four
times the photons. Once filtered, they give an expectation y of the samples, and ``w·z + (1 - w)·y`` is
filtered instead of z. Its noise is w times that of z, so divided by w² it has the variance of Poisson noise
again, with read noise s/w, and f stabilizes it. The weight w depends on the number n of photons at the place
of an average photon, ``w = 0.37·n^⅓``; where that is about 1, no coarser image is needed. What is filtered
loses some light at edges, where f is concave, and is scaled to the light of the image.

.. [1] F. Murtagh, J.-L. Starck, A. Bijaoui: Image restoration with noise suppression using a multiresolution
       support. Astronomy and Astrophysics Supplement Series, 1995.
.. [2] M. Mäkitalo, A. Foi: Optimal inversion of the generalized Anscombe transformation for Poisson-Gaussian
       noise. IEEE Transactions on Image Processing, 2013.
.. [3] L. Azzari, A. Foi: Variance stabilization for noisy+estimate combination in iterative Poisson
       denoising. IEEE Signal Processing Letters, 2016. There, samples are combined several times, in bins
       that become smaller; here once for each size of bins, with a weight that depends on the photons.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import DASK, array_in_memory
from ..engines.cpu.filter_operations import convolve
from ..errors import ArgumentError, ArgumentTypeError
from ..functions import dwt2
from .base import check_number
from .collaborative import Collaborative
from .directional import Directional
from .operations import NORMAL_MEDIAN
from .planes import GivenImage, is_constant, largest_magnitude, native_samples, unit_of
from .shrinkage import Shrink
from .spatial import gaussian

__all__ = ["PHOTON_NOISE", "PoissonNoise", "estimate_poisson", "filter_photons"]

Array = NDArray[Any]

PHOTON_NOISE = ("poisson", "poisson-gaussian")
LARGEST = 200.0  # mean number of photons of the table
ENTRIES = 4096  # of the table of inverses
NODES = 64  # of the integral over the read noise
LEAST_ROUNDED_MEAN = 4.0  # of integers, of which rounding takes little
ALL_VALID = 1 - 1e-6  # share of the valid samples around a place, by their weights
WEIGHT_OF_PHOTON = 0.37  # of samples with one photon, where they are combined with an expectation
WEIGHT_STEPS = 4  # of a factor of two: so there are few tables
LEAST_WEIGHT = 1 / 16
LEAST_HALVED = 32  # samples along an axis that is halved
BINS = 24  # of means, for the fit of gain and read noise
FLAT_SHARE = 0.4  # of places with the least structure, which the noise is estimated from
LEAST_PLACES = 64
ROUNDING = 64  # times the precision of floats is what rounding may change in the brightest sample
LEAST_GAIN = 1e-30  # in units of samples: the square of it and of its inverse are normal numbers of float64
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

    def stabilized(self, x: Array, weight: float = 1.0) -> Array:
        """Return samples whose noise has the standard deviation 1.

        Parameters
        ----------
        x : array
            Samples with this noise, or combinations of such samples with their means, which have less noise.
        weight : float, default 1
            The weight of the noisy samples in these combinations.

        Returns
        -------
        array
            Samples of the same shape.
        """
        return np.asarray(2 * np.sqrt(np.maximum(x / (self.gain * weight**2) + self._offset(weight), 0)))

    def restored(self, stable: Array, weight: float = 1.0) -> Array:
        """Return the means of samples, given the means of what :meth:`stabilized` returned.

        Parameters
        ----------
        stable : array
            What a filter made of :meth:`stabilized` samples.
        weight : float, default 1
            The weight that :meth:`stabilized` was given.

        Returns
        -------
        array
            Samples in the units of the image.
        """
        table = _inverse_table(self.sigma / self.gain, weight)
        photons, slopes = (part.astype(stable.dtype) for part in (table.photons, table.slopes))
        position = (stable - table.least) * table.density
        inside = np.fmin(np.fmax(position, 0), len(photons) - 1)  # NaNs become 0.
        index = inside.astype(np.intp)
        inside = photons[index] + (inside - index.astype(stable.dtype)) * slopes[index]
        # At the end of the table, both differ by less than a thousandth of a photon.
        asymptotic = weight**2 * ((stable / 2) ** 2 - (self._offset(weight) - 0.25))
        return np.asarray(self.gain * np.where(position > len(photons) - 1, asymptotic, inside))

    def averaged(self, count: int) -> PoissonNoise:
        """Return the noise of means of several samples.

        Parameters
        ----------
        count : int
            The number of samples of each mean.

        Returns
        -------
        PoissonNoise
            Noise of a smaller gain, and less read noise.
        """
        return PoissonNoise(self.gain / count, self.sigma / math.sqrt(count))

    def weight(self, x: Array) -> float:
        """Return the weight of samples where they are combined with their expectation.

        Parameters
        ----------
        x : array
            Samples with this noise.

        Returns
        -------
        float
            At most 1, which stands for samples alone.
        """
        mean = max(float(x.mean(dtype=float)) / self.gain, 0.0)
        read_noise = (self.sigma / self.gain) ** 2
        # The mean over photons: dark samples, of which there may be many, do not count.
        square = float(np.square(x, dtype=float).mean()) / self.gain**2
        photons = max((square - read_noise) / mean - 1, mean) if mean else 0.0
        # So many photons would have the same ratio of signal to noise without read noise.
        equivalent = photons**2 / (photons + read_noise) if photons else 0.0
        weight = min(max(WEIGHT_OF_PHOTON * math.cbrt(equivalent), LEAST_WEIGHT), 1.0)
        return float(2 ** (round(WEIGHT_STEPS * math.log2(weight)) / WEIGHT_STEPS))

    def _offset(self, weight: float) -> float:
        return 3 / 8 + (self.sigma / (self.gain * weight)) ** 2


class _InverseTable(NamedTuple):
    """Means of samples for evenly spaced means of stabilized ones, and their differences."""

    least: float  # of stabilized samples
    density: float  # entries per unit
    photons: Array
    slopes: Array


@lru_cache(maxsize=64)
def _inverse_table(read_noise: float, weight: float) -> _InverseTable:
    """Return the inverse of the means of stabilized samples, computed for some numbers of photons."""
    photons = np.linspace(0, np.sqrt(LARGEST), 800) ** 2
    counts = np.arange(int(LARGEST + 12 * np.sqrt(LARGEST)) + 1)
    combined = (counts + (1 / weight - 1) * photons[:, None]) / weight
    logarithms = np.cumsum(np.log(np.maximum(counts, 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.where(counts == 0, 0.0, counts * np.log(photons[:, None]))
    probabilities = np.exp(exponents - photons[:, None] - logarithms)
    means = (probabilities * _conditional(combined, read_noise / weight)).sum(axis=1)
    even = np.linspace(means[0], means[-1], ENTRIES)
    inverse = np.interp(even, means, photons)
    density = (ENTRIES - 1) / float(even[-1] - even[0])
    return _InverseTable(float(even[0]), density, inverse, np.append(np.diff(inverse), 0.0))


def _conditional(x: Array, read_noise: float) -> Array:
    """Return the means of stabilized samples that are x without read noise."""
    if not read_noise:
        return np.asarray(2 * np.sqrt(x + 3 / 8))
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    places = np.linspace(0, np.sqrt(x.max()), 4000) ** 2
    values = 2 * np.sqrt(np.maximum(places[:, None] + read_noise * nodes + 3 / 8 + read_noise**2, 0))
    return np.asarray(np.interp(x, places, values @ (weights / weights.sum())))


def estimate_poisson(
    image: ArrayLike, sigma: float | None = None, *, mask: ArrayLike | None = None
) -> PoissonNoise:
    """Estimate the gain and the read noise of an image of counted photons.

    Parameters
    ----------
    image : array_like
        Image with two axes, or several of them along further axes in front. Zero stands for no light.
    sigma : float, optional
        Standard deviation of the read noise, if it is known; 0 for pure Poisson noise.
    mask : array_like of bool, optional
        True where samples are valid, with the shape of the image. Noise is measured away from all others.

    Returns
    -------
    PoissonNoise
        With the fields ``gain`` and ``sigma``.

    Raises
    ------
    ArgumentError
        If the image has too few bright samples, or if its noise does not grow with its brightness.

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
    valid = None if mask is None else np.asarray(mask, bool)
    if valid is not None and valid.shape != x.shape:
        raise ArgumentError(f"mask must have the shape of the image, {x.shape}, got {valid.shape}")
    if is_constant(x, valid):
        raise ArgumentError("the image is constant, and has no noise to estimate; pass gain")
    planes = x.reshape(-1, *x.shape[-2:]).astype(np.float64)
    largest = largest_magnitude(planes if valid is None else planes[valid.reshape(planes.shape)])
    unit = unit_of(largest)
    planes, sigma = planes / unit, None if sigma is None else sigma / unit
    means, differences = _flat_places(planes, None if valid is None else valid.reshape(planes.shape))
    if means.size < LEAST_PLACES or means.max() <= 0:
        raise ArgumentError("the image has too few bright samples to estimate its noise; pass gain")
    squares = _clipped_squares(means, differences)
    if sigma is not None:
        gain = (squares.mean() - sigma**2) / means.mean()
        variance = sigma**2
    else:
        gain, variance = _line(means, squares)
    rounding = (ROUNDING * float(np.finfo(planes.dtype).eps) * float(means.max())) ** 2
    if not gain * means.mean() > rounding:
        raise ArgumentError(
            "the noise of the image does not grow with its brightness; pass gain, or no noise"
        )
    return PoissonNoise(float(gain) * unit, float(np.sqrt(max(variance, 0.0))) * unit)


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
    if gain is None and is_constant(image, options["mask"]):  # It has no noise to estimate.
        return image.copy()
    given = GivenImage(image, options["channel_axis"], options["axes"], pipeline.colors, options["mask"])
    layout, mask = given.layout, given.mask
    unit = given.unit or unit_of(largest_magnitude(given.array if mask is None else given.array[mask]))
    if not given.on_host or not isinstance(given.array, np.ndarray):
        raise ArgumentError(f"noise={kind!r} is for arrays of NumPy; convert the image first")
    x = given.array.astype(layout.working_dtype)
    if unit != 1:
        x /= x.dtype.type(unit)
        gain, sigma = (None if value is None else value / unit for value in (gain, sigma))
    least = float(x.min() if mask is None else x[mask].min())
    if kind == "poisson" and least < 0:
        raise ArgumentError(
            f"noise='poisson' is for counts of photons, but the least sample is {least:g}; subtract the black"
            " level so that samples without light are 0, or pass noise='poisson-gaussian' if read noise makes"
            " them negative"
        )
    if given.array.dtype.kind in "iu" and (x if mask is None else x[mask]).mean() < LEAST_ROUNDED_MEAN:
        warnings.warn(
            f"results are rounded to {given.array.dtype}, in which so few photons are lost; convert the image"
            " to float32",
            stacklevel=2,
        )
    if gain is None or sigma is None:

        def images(samples: Array) -> Array:
            colored = layout.mixed and layout.channels == 4
            channels = np.take(samples, range(3), layout.channel) if colored else samples
            return np.moveaxis(channels, layout.axes[-2:], (-2, -1)) if layout.ndim > 1 else channels

        estimated = estimate_poisson(images(x), sigma, mask=None if mask is None else images(mask))
        gain, sigma = gain or estimated.gain, estimated.sigma if sigma is None else sigma
    if not LEAST_GAIN <= gain <= 1 / LEAST_GAIN:
        raise ArgumentError(
            f"gain must be within a factor of {1 / LEAST_GAIN:g} of the samples, got {gain * unit:g} for"
            f" samples of up to {largest_magnitude(given.array):g}"
        )
    noise = PoissonNoise(float(gain), float(sigma))
    plain = replace(pipeline, photons=None, gain=None)
    photon_filter = _PhotonFilter(plain, layout.channel, layout.axes, options)
    colors: tuple[slice, ...] = (slice(None),) * x.ndim
    if layout.mixed and layout.channels == 4:
        colors = tuple(slice(3) if axis == layout.channel else part for axis, part in enumerate(colors))
    for numbers in product(*(range(layout.shape[axis]) for axis in layout.batch_axes)):
        place = list(colors)
        for axis, number in zip(layout.batch_axes, numbers, strict=True):
            place[axis] = slice(number, number + 1)
        valid = None if mask is None else mask[tuple(place)]
        if valid is None or valid.any():
            x[tuple(place)] = photon_filter.means(x[tuple(place)], valid, noise)
    if unit != 1:
        x *= x.dtype.type(unit)
    return given.as_given(layout.restore(np, x, given.array, mask))


@dataclass(frozen=True)
class _PhotonFilter:
    """A filter of white noise, applied to counted photons of an image.

    Parameters
    ----------
    pipeline : Pipeline
        Filters noise of standard deviation 1.
    channel : int or None
        Axis of channels.
    axes : tuple of int
        Spatial axes.
    options : dict
        Arguments of a call of the pipeline.
    """

    pipeline: Any
    channel: int | None
    axes: tuple[int, ...]
    options: dict[str, Any]

    def means(self, x: Array, mask: Array | None, noise: PoissonNoise) -> Array:
        """Return the means of samples with this noise."""
        if not self._removes_noise():
            return self._filtered(x, mask, noise)
        weight = noise.weight(x if mask is None else x[mask])
        axes = [axis for axis in self.axes if x.shape[axis] >= LEAST_HALVED]
        if weight == 1 or not axes:
            result = self._filtered(x, mask, noise)
        else:
            bins, valid = _halved(x, mask, axes)
            coarse = self._coarse().means(bins, valid, noise.averaged(2 ** len(axes)))
            expected = _doubled(coarse, x.shape, axes)
            result = self._filtered(weight * x + (1 - weight) * expected, mask, noise, weight)
        light, filtered_light = (
            part.sum(self.axes, float, keepdims=True, where=True if mask is None else mask)
            for part in (x, result)
        )
        scaled = (light > 0) & (filtered_light > 0)
        factor = np.where(scaled, light, 1) / np.where(scaled, filtered_light, 1)
        return np.asarray(result * factor.astype(x.dtype))

    def _filtered(self, x: Array, mask: Array | None, noise: PoissonNoise, weight: float = 1.0) -> Array:
        """Stabilize the noise of samples, filter them, and restore their means."""
        stable = noise.stabilized(x, weight).astype(x.dtype)
        options = {**self.options, "mask": mask, "channel_axis": self.channel, "axes": self.axes}
        return noise.restored(self.pipeline(stable, sigma=1.0, **options), weight)

    def _removes_noise(self) -> bool:
        """Return whether all stages remove noise, at all scales; others are not applied to several images."""
        return all(
            isinstance(stage, (Collaborative, Directional, Shrink))
            and stage.strength > 0
            and not (isinstance(stage, Shrink) and (stage.threshold or stage.levels or stage.bands))
            for stage in self.pipeline.stages
        )

    def _coarse(self) -> _PhotonFilter:
        """Return the filter of an image of half the size, which has one level less."""
        level = self.pipeline.level
        pipeline = replace(self.pipeline, level=max(level - 1, 1)) if level else self.pipeline
        return replace(self, pipeline=pipeline, options={**self.options, "counted": None, "trace": None})


def _halved(x: Array, mask: Array | None, axes: Sequence[int]) -> tuple[Array, Array | None]:
    """Return the means of pairs of samples along axes, and the mask of these means."""
    if mask is None:
        return _pair_means(x, axes), None
    shares = _pair_means(mask.astype(x.dtype), axes)
    sums = _pair_means(np.where(mask, x, 0), axes)
    valid = shares > 0
    fill = sums.sum() / shares.sum()
    return np.where(valid, sums / np.where(valid, shares, 1), fill), valid


def _pair_means(x: Array, axes: Sequence[int]) -> Array:
    for axis in axes:
        lines = np.moveaxis(x, axis, 0)
        even, odd = lines[::2], lines[1::2]
        if len(lines) % 2:
            odd = np.concatenate([odd, lines[-1:]])
        x = np.moveaxis((even + odd) / 2, 0, axis)
    return x


def _doubled(x: Array, shape: Sequence[int], axes: Sequence[int]) -> Array:
    """Return samples of which x are the means of pairs along axes; none is negative if no mean is.

    A pair follows the slope of a parabola that has the same means as the pair and its two neighbours.
    """
    for axis in axes:
        lines = np.moveaxis(x, axis, 0)
        following, previous = (
            np.concatenate([lines[1:], lines[-1:]]),
            np.concatenate([lines[:1], lines[:-1]]),
        )
        limit = np.maximum(lines, 0)
        slope = np.clip((following - previous) / 8, -limit, limit)
        pairs = np.stack([lines - slope, lines + slope], axis=1).reshape(-1, *lines.shape[1:])
        x = np.moveaxis(pairs[: shape[axis]], 0, axis)
    return x


def _flat_places(planes: Array, valid: Array | None) -> tuple[Array, Array]:
    """Return local means and the finest diagonal differences where planes have the least structure."""
    nearby = np.ones_like(planes)
    if valid is not None and not valid.all():
        planes = np.where(valid, planes, planes[valid].mean() if valid.any() else 0.0)
        nearby = convolve(valid.astype(np.float64), gaussian(4.0))
    _, (_, _, diagonal) = dwt2(planes, "db2", axes=(1, 2))
    smooth = convolve(planes, gaussian(2.0))
    structure = convolve(sum(slope**2 for slope in np.gradient(smooth, axis=(1, 2))), gaussian(4.0))
    means = convolve(planes, gaussian(4.0))
    margin = slice(4, -4)
    places = [
        np.clip(2 * np.arange(n)[margin] - 1, 0, m - 1)
        for n, m in zip(diagonal.shape[1:], planes.shape[1:], strict=True)
    ]
    means, structure, nearby = (
        part[:, places[0]][:, :, places[1]].ravel() for part in (means, structure, nearby)
    )
    differences = diagonal[:, margin, margin].ravel()
    bright = np.flatnonzero((means > 1e-3 * max(means.max(), 0.0)) & (nearby > ALL_VALID))
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
