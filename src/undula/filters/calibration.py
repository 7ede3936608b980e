"""Calibration: the strength of a filter whose error is least, estimated without the clean image.

Of an image y with Gaussian noise of standard deviation σ, a filter f makes f(y). Stein's unbiased estimate of
its mean squared error needs no clean image::

    mean (f(y) - y)² - σ² + 2 σ² divergence,      divergence ≈ mean b·(f(y + ε b) - f(y))/ε

with random signs b [1]_. It holds for any filter that changes little with small changes of the image.

.. [1] S. Ramani, T. Blu, M. Unser: Monte-Carlo SURE: a black-box optimization of regularization parameters
       for general denoising algorithms. IEEE Transactions on Image Processing, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from ..arrays import array_in_memory, check_integer, library_of
from ..errors import ArgumentError
from .noise import estimate_sigma
from .pipeline import Pipeline
from .planes import AUTO, GivenImage, checked_sigmas, largest_magnitude, unit_of
from .verbs import Denoising

__all__ = ["CalibratedPipeline", "Calibration", "calibrate"]

STRENGTHS = tuple(2.0 ** (k / 2) for k in range(-4, 4))  # from 0.25 to 2.83
PROBE = 0.1  # ε, in units of the noise: small, and far above rounding
UNUSED = ("noise", "gain", "regions", "over_time", "strength", "calibrate")


class Calibration(NamedTuple):
    """The result of :func:`calibrate`.

    Attributes
    ----------
    strength : float
        The strength with the least estimated error.
    error : float
        Estimated mean squared error with this strength.
    errors : dict
        Estimated errors of all strengths that were tried.

    Examples
    --------
    >>> from undula.filters import calibrate
    >>> noisy = 100 + np.random.default_rng(0).standard_normal((32, 32))
    >>> calibration = calibrate(noisy, 1.0, method="universal")
    >>> calibration.error <= min(calibration.errors.values())
    True
    """

    strength: float
    error: float
    errors: dict[float, float]


def calibrate(
    image: Any,
    sigma: Any = None,
    *,
    channel_axis: int | str | None = AUTO,
    mask: Any = None,
    seed: int = 0,
    **options: Any,
) -> Calibration:
    """Find the ``strength`` of :func:`undula.denoise` with the least error, without a clean image.

    About ten strengths from 0.25 to 2.83 are tried, each by two calls of ``denoise``. Their errors are those
    that Stein's unbiased risk estimate predicts.

    Parameters
    ----------
    image : array
        Image, volume or batch of them, with Gaussian noise. Arrays on a device are copied to the host.
    sigma : float or sequence of float, optional
        Standard deviation of the noise, or one per channel; estimated if None. Errors are predicted from it,
        so pass it if it is known.
    channel_axis : int, None or "auto", default "auto"
        Axis of channels. ``auto`` takes the last of three axes if it has 3 or 4 samples.
    mask : array of bool, optional
        True where samples are valid. Other samples, NaNs and infinities do not count.
    seed : int, default 0
        Seed of the random signs.
    **options
        Other arguments of :func:`undula.denoise`, such as ``method`` or ``quality``.

    Returns
    -------
    Calibration
        With ``strength``, the predicted mean squared ``error``, and the ``errors`` of all strengths.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.add.outer(np.sin(np.arange(96) / 7), np.cos(np.arange(96) / 9))
    >>> noisy = clean + 0.2 * rng.standard_normal(clean.shape)
    >>> calibration = calibrate(noisy, 0.2, method="universal")
    >>> from undula import denoise
    >>> better = denoise(noisy, 0.2, method="universal", strength=calibration.strength)
    >>> bool(np.mean((better - clean) ** 2) < np.mean((denoise(noisy, 0.2, method="universal") - clean) ** 2))
    True
    """
    for name in UNUSED:
        if name in options:
            raise ArgumentError(f"calibrate is for Gaussian noise of images, and takes no {name}")
    given = {name: options.pop(name) for name in ("axes", "backend") if name in options}
    pipeline = CalibratedPipeline(Denoising(**options).pipeline(), seed)
    return pipeline.calibration(image, sigma, channel_axis=channel_axis, mask=mask, **given)


@dataclass(frozen=True)
class CalibratedPipeline:
    """A pipeline whose strength is found for each image.

    Parameters
    ----------
    pipeline : Pipeline
        With stages that have a strength, which is multiplied by the one that is found.
    seed : int, default 0
        Seed of the random signs.
    """

    pipeline: Pipeline
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pipeline.photons is not None or self.pipeline.spectrum is not None or self.pipeline.speckle:
            raise ArgumentError("the strength is calibrated for white Gaussian noise only; omit one of them")
        check_integer(self.seed, "seed")
        if not any(_has_strength(stage) for stage in self.pipeline.stages):
            raise ArgumentError("no stage of the pipeline has a strength that could be calibrated")

    def to_json(self) -> str:
        """Raise an error: the strength depends on the image."""
        raise ArgumentError(
            "the strength is calibrated for images in memory, not for Zarr stores; pass strength"
        )

    def with_strength(self, strength: float) -> Pipeline:
        """Return the pipeline with the strengths of its stages multiplied by a factor."""
        stages: list[Any] = [
            replace(stage, strength=strength * stage.strength) if _has_strength(stage) else stage
            for stage in self.pipeline.stages
        ]
        return replace(self.pipeline, stages=stages)

    def __call__(self, x: Any, *, sigma: Any = None, **options: Any) -> Any:
        """Filter an image with the strength that is best for it; arguments are those of a pipeline."""
        known = self._estimated_sigma(x, **options) if sigma is None else sigma
        if sigma is None and not np.any(known):  # There is nothing to calibrate for.
            return library_of(x).copy(x)
        strength = self.calibration(x, known, **options).strength
        return self.with_strength(strength)(x, sigma=sigma, **options)

    def _given(self, image: Any, channel_axis: Any, axes: Any, mask: Any) -> GivenImage:
        """Return an image on the host, with its layout."""
        if not isinstance(image, np.ma.MaskedArray):
            image = array_in_memory(image, "image")
            image = library_of(image).to_numpy(image)
        return GivenImage(image, channel_axis, axes, self.pipeline.colors, mask)

    def _estimated_sigma(
        self, image: Any, *, channel_axis: Any = AUTO, axes: Any = None, mask: Any = None, backend: str = ""
    ) -> Any:
        """Return the noise of an image, or that of each of its channels."""
        given = self._given(image, channel_axis, axes, mask)
        x = given.array.astype(given.layout.working_dtype)
        masked = x if given.mask is None else np.where(given.mask, x, np.nan)
        return estimate_sigma(masked, channel_axis=given.layout.channel)

    def calibration(
        self,
        image: Any,
        sigma: Any = None,
        *,
        channel_axis: int | str | None = AUTO,
        axes: Sequence[int] | None = None,
        mask: Any = None,
        backend: str = "auto",
    ) -> Calibration:
        """Return the strength with the least error for an image, and the errors of others."""
        given = self._given(image, channel_axis, axes, mask)
        layout, valid = given.layout, given.mask
        unit = given.unit or unit_of(largest_magnitude(given.array))
        x = given.array.astype(layout.working_dtype)
        if unit != 1:
            x /= x.dtype.type(unit)
        if sigma is None:
            sigma = self._estimated_sigma(image, channel_axis=channel_axis, axes=axes, mask=mask)
        if np.ndim(sigma) > 1 or (np.ndim(sigma) == 1 and np.shape(sigma) != (layout.channels,)):
            raise ArgumentError(
                "calibrate needs one sigma, or one for each channel; noise per sample has none"
            )
        sigmas = checked_sigmas(sigma) / unit
        if not sigmas.any():
            raise ArgumentError(f"calibrate needs noise: sigma must be finite and above 0, got {sigma!r}")
        deviation = sigmas
        if sigmas.ndim:
            deviation = sigmas.reshape([-1 if axis == layout.channel else 1 for axis in range(x.ndim)])
        signs = np.random.default_rng(self.seed).integers(0, 2, x.shape) * 2 - 1
        probe = (PROBE * deviation * signs).astype(x.dtype)
        options = {"channel_axis": layout.channel, "axes": axes, "mask": valid, "backend": backend}

        def error(strength: float) -> float:
            pipeline = self.with_strength(strength).in_units(unit)
            filtered, moved = (pipeline(y, sigma=sigmas, **options) for y in (x, x + probe))
            # The noise of the probe is σ as well: σ² b Δ/ε is probe·Δ/PROBE².
            divergence = probe * (moved - filtered) / PROBE**2
            with np.errstate(invalid="ignore"):
                samples = (filtered - x) ** 2 - deviation**2 + 2 * divergence
            return float(np.mean(samples, dtype=float, where=True if valid is None else valid))

        errors = {strength: error(strength) for strength in STRENGTHS}
        best = min(errors, key=errors.__getitem__)
        for finer in (2**-0.25, 2**0.25):
            errors[best * finer] = error(best * finer)
        strength, least, tried = _least(errors)
        return Calibration(
            strength, least * unit * unit, {s: each * unit * unit for s, each in tried.items()}
        )


def _has_strength(stage: Any) -> bool:
    return "strength" in {each.name for each in fields(stage)}


def _least(errors: dict[float, float]) -> Calibration:
    """Return the lowest point of the parabola through the least error and its neighbours."""
    strengths = sorted(errors)
    place = min(range(len(strengths)), key=lambda k: errors[strengths[k]])
    best, ordered = strengths[place], dict(sorted(errors.items()))
    if place in (0, len(strengths) - 1):
        return Calibration(best, errors[best], ordered)
    near = strengths[place - 1 : place + 2]
    a, b, c = np.polyfit([math.log2(s) for s in near], [errors[s] for s in near], 2)
    if a <= 0:
        return Calibration(best, errors[best], ordered)
    place_of_least = -b / (2 * a)
    return Calibration(float(2**place_of_least), float(c - b**2 / (4 * a)), ordered)
