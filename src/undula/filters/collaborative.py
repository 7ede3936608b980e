"""The stage that filters groups of similar blocks, and blends them with what wavelets gave.

Groups keep what repeats within an image, such as texture and edges. Where an image is smooth, wavelets of all
scales leave less noise. With c from groups and w from wavelets, in units of the noise::

    b = c + G(w - c)                    large structures are those of wavelets; G is a Gaussian blur
    p = 1/2 / (1 + G((w - b)²)/v)       where both differ by little, their mean has less noise than each
    q = 1 / (1 + (G((w - H(w))²)/u)²)   where w has no details beyond a narrower blur H, it is best
    result = b + max(p, q)·(w - b)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

from ..errors import ArgumentError
from ..lowering.collaborative import PROFILES, VOLUME_PROFILES
from ..lowering.graph import Collaborate
from ..lowering.symbolic import SymbolicArray, materialize, symbolic, xp
from .base import FilteredImage, FilterStage, Word, argument, check_choice, check_number
from .noise import noise_argument
from .operations import OPERATIONS, smallest_normal
from .spatial import gaussian

__all__ = ["PROFILE_NAMES", "Collaborative"]

PROFILE_LABELS = {"fast": "fast", "normal": "normal", "best": "best"}
PROFILE_NAMES = tuple(PROFILE_LABELS)
"""Profiles of :class:`Collaborative`."""
NOISE_LABELS = {"white": "white", "auto": "recognised"}
BLUR, NARROW_BLUR = 6.0, 2.0  # samples
DIFFERENCE = 0.006  # v: the mean square, in units of the noise, at which the weight of wavelets is a quarter
DETAIL = 0.003  # u: that of details at which it is a half


@dataclass(frozen=True, repr=False)
class Collaborative(FilterStage):
    """Filter groups of similar blocks together, which removes noise and keeps texture.

    If other stages have filtered the details, both results are blended: groups of blocks are better where
    structures repeat, wavelets where the image is smooth. Volumes, which are filtered on the CPU only, have
    groups of blocks of 4×4×4 samples.

    Parameters
    ----------
    profile : {"fast", "normal", "best"}, default "normal"
        How far similar blocks are looked for, and how many: up to 8, 12 or 16 samples away, or 3, 4 or 5 in
        volumes; 16 blocks, and with ``best`` 32 in the second of two steps.
    sigma : float, optional
        Standard deviation of the noise; estimated if None.
    strength : float, default 1.0
        Factor of the noise; higher values remove more.
    noise : {"white", "auto"}, default "white"
        ``auto`` recognises the correlated noise of cameras, which is left to other stages.

    Examples
    --------
    >>> import numpy as np
    >>> from undula.filters import Pipeline
    >>> noisy = 100 + np.random.default_rng(0).standard_normal((64, 64))
    >>> bool(Pipeline(stages=[Collaborative("fast")])(noisy).std() < 0.3)
    True
    """

    kind: ClassVar[str] = "collaborative"
    description: ClassVar[str] = "Reduce noise by filtering similar blocks together"
    icon: ClassVar[str] = "dashboard"
    words: ClassVar = {"collaborative": Word(("strength",))}
    profile: str = argument("normal", "Profile", options=PROFILE_LABELS)
    sigma: float | None = noise_argument()
    strength: float = argument(1.0, "Strength", 0, 3, 0.01)
    noise: str = argument("white", "Noise", options=NOISE_LABELS, advanced=True)

    def _check(self) -> None:
        check_choice(self.profile, "profile", PROFILE_NAMES)
        check_choice(self.noise, "kind of noise", tuple(NOISE_LABELS))
        check_number(self.strength, "strength")
        if self.sigma is not None:
            check_number(self.sigma, "sigma")

    def places(self) -> tuple[str, ...]:
        """Return the place of the stage: behind the reconstruction."""
        return ("result",)

    def on_result(self, x: Any, image: FilteredImage) -> Any:
        """Filter groups of blocks of the image, and blend them with the result of the other stages."""
        blended = x is not image.samples
        if image.ndim < 2 and not blended:
            raise ArgumentError(
                "collaborative filtering needs images with at least two axes of more than one sample; use"
                " another method, such as 'bivariate'"
            )
        if image.ndim < 2:
            return x
        sigma = image.noise() if self.sigma is None else OPERATIONS.per_item(self.sigma, image.samples)
        sigma = sigma * (self.strength * image.strength)
        grouped = self._grouped(image, sigma)
        if not blended:
            return grouped
        result = _blended(grouped, x, sigma, image)
        share = image.camera_share() if self.noise == "auto" and self.sigma is None else 0.0
        if isinstance(share, SymbolicArray):
            result = result + OPERATIONS.spread(share, x) * (x - result)
        return result

    def _grouped(self, image: FilteredImage, sigma: Any) -> Any:
        """Filter groups of blocks of images or volumes."""
        x, ndim = image.samples, min(image.ndim, 3)
        planes = xp.reshape(x, (-1, *x.shape[-ndim:]))
        count = planes.shape[0] // x.shape[0]  # volumes of an array with more axes
        noise = xp.reshape(xp.broadcast_to(xp.reshape(sigma, (-1, 1)), (x.shape[0], count)), (-1,))
        source, sigmas = materialize(planes, noise)
        result = x.graph.allocate(planes.shape, x.dtype)
        profile = (PROFILES if ndim == 2 else VOLUME_PROFILES)[self.profile]
        if image.spectrum is not None:
            if image.ndim != ndim:
                raise ArgumentError("noise with a spectrum needs images or volumes; name their axes by axes")
            profile = image.spectrum.colored_profile(profile)
        x.graph.append(Collaborate(profile, image.channels, source, sigmas, (result,)))
        return xp.reshape(symbolic(x.graph, result), x.shape)


def _blended(grouped: Any, x: Any, sigma: Any, image: FilteredImage) -> Any:
    """Blend the results of groups and of wavelets; channels of an image have the same weights."""
    taps, ndim, channels = gaussian(BLUR), image.ndim, image.channels
    large = grouped + OPERATIONS.convolve(x - grouped, taps, ndim)
    unit = OPERATIONS.spread(OPERATIONS.per_item(1 / xp.where(sigma >= smallest_normal(x), sigma, 1.0), x), x)
    difference = x - large
    details = x - OPERATIONS.convolve(x, gaussian(NARROW_BLUR), ndim)
    materialize(large, difference)
    energies = [OPERATIONS.convolve((part * unit) ** 2, taps, ndim) for part in (difference, details)]
    if channels > 1:
        energies = [_largest(energy, channels) for energy in energies]
    similar = 0.5 / (1 + energies[0] / DIFFERENCE)
    smooth = 1 / (1 + (energies[1] / DETAIL) ** 2)
    return large + xp.maximum(similar, smooth) * difference


def _largest(x: Any, channels: int) -> Any:
    """Return the maximum over the channels of each image, for all of its channels."""
    images = x.shape[0] // channels
    largest = reduce(xp.maximum, [x[k * images : (k + 1) * images] for k in range(channels)])
    return xp.reshape(xp.broadcast_to(largest[None], (channels, *largest.shape)), x.shape)
