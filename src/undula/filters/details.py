"""Stages that amplify details."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import ArgumentError
from .base import BandLimits, Details, FilterStage, Pyramid, Word, argument, check_number
from .deprecation import accept_former_names
from .noise import estimate_noise, noise_argument
from .operations import item_size, smallest_normal

__all__ = ["Contrast", "Gain"]


@dataclass(frozen=True, repr=False)
class Gain(FilterStage):
    """Multiply details: by less than 1 to soften, by more than 1 to sharpen.

    Parameters
    ----------
    gains : float or sequence of float, default 1.5
        One gain for all levels, or one per level, finest first. Further levels use the last one.

    Examples
    --------
    >>> import numpy as np
    >>> from undula.filters import Pipeline
    >>> image = np.arange(64.0).reshape(8, 8) % 2
    >>> bool(Pipeline("haar", 1, [Gain(2.0)])(image).std() > image.std())
    True
    """

    kind: ClassVar[str] = "gain"
    description: ClassVar[str] = "Amplify or attenuate the details of each level"
    icon: ClassVar[str] = "equalizer"
    words: ClassVar = {"gain": Word(("gains",))}
    gains: Any = argument(1.5, "Gain", 0, 4, 0.01, per_level=True)

    @property
    def _gains(self) -> tuple[Any, ...]:
        return self.gains if isinstance(self.gains, tuple) else (self.gains,)

    def _check(self) -> None:
        if not self._gains:
            raise ArgumentError("gains must not be empty; pass a number, or one for each level")
        for gain in self._gains:
            check_number(gain, "a gain")

    def limits(self, details: Details, pyramid: Pyramid) -> BandLimits:
        """Return the gains of all bands.

        Parameters
        ----------
        details : list of dict
            For each level, finest first, bands by key.
        pyramid : Pyramid
            The transform that the details belong to, and its noise.

        Returns
        -------
        BandLimits
            One gain for each band.
        """
        bands = [(index, key) for index, level_bands in enumerate(details) for key in level_bands]
        gains: list[Any] = [float(self._gains[min(index, len(self._gains) - 1)]) for index, _ in bands]
        return BandLimits("gain", bands, gains, gains)

    def on_details(self, details: Details, pyramid: Pyramid) -> Details:
        """Multiply all bands."""
        return self.limits(details, pyramid).apply(details, pyramid)


@accept_former_names
@dataclass(frozen=True, repr=False)
class Contrast(FilterStage):
    """Amplify weak details at all scales, but not noise.

    Parameters
    ----------
    amount : float, default 0.3
        From 0, which changes nothing, to 1, which makes all details equally strong.
    max_gain : float, default 3.0
        Upper limit on the gain applied to any detail.
    sigma : float, optional
        Standard deviation of the noise; estimated if None.

    Notes
    -----
    A detail d becomes ``d · min(max_gain, (m/|d|)^amount)``, where m is four times the root mean square of
    its band. The gain approaches 1 for details that are as small as the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from undula.filters import Pipeline
    >>> image = 100 + 5 * np.sin(np.arange(64) / 3) * np.ones((64, 1))
    >>> bool(Pipeline("db2", 3, [Contrast(0.4, sigma=0.1)])(image).std() > image.std())
    True
    """

    kind: ClassVar[str] = "contrast"
    description: ClassVar[str] = "Enhance weak details at all scales"
    icon: ClassVar[str] = "contrast"
    words: ClassVar = {"contrast": Word(("amount", "max_gain", "sigma"))}
    amount: float = argument(0.3, "Amount", 0, 1, 0.01)
    max_gain: float = argument(3.0, "Maximum gain", 1, 8, 0.05)
    sigma: float | None = noise_argument()

    def _check(self) -> None:
        check_number(self.amount, "amount")
        check_number(self.max_gain, "max_gain", 1.0)
        if self.amount > 1:
            raise ArgumentError(f"amount must be from 0 to 1, got {self.amount!r}")
        if self.sigma is not None:
            check_number(self.sigma, "sigma")

    @property
    def most(self) -> float:
        """Former name of ``max_gain``."""
        warnings.warn("Contrast.most is deprecated; use max_gain", DeprecationWarning, stacklevel=2)
        return self.max_gain

    def on_details(self, details: Details, pyramid: Pyramid) -> Details:
        """Amplify each band by its own statistics."""
        sigma = estimate_noise(details, pyramid, self.sigma)
        return [
            {key: self._amplify(band, index, key, sigma, pyramid) for key, band in bands.items()}
            for index, bands in enumerate(details)
        ]

    def _amplify(self, band: Any, index: int, key: str, sigma: Any, pyramid: Pyramid) -> Any:
        operations, xp = pyramid.operations, pyramid.operations.xp
        masked, share = pyramid.masked(band, index)
        # Squares of very small and very large samples stay in range if the samples are about 1.
        smallest = smallest_normal(band)
        span = pyramid.floor / float(xp.finfo(band.dtype).eps)
        unit = operations.per_item(xp.where(span > smallest, span, 1.0), band)
        (energy,) = operations.energies([masked * operations.spread(1 / unit, band)])
        scale = 4 * xp.sqrt(energy / (item_size(band) * share)) * unit
        top = operations.spread(operations.per_item(scale, band), band)
        noise = operations.spread(operations.per_item(sigma * pyramid.norms[index][key], band), band)
        tiny = 1e-6 * top + smallest
        magnitude = xp.abs(band) + tiny
        gain = xp.minimum((top / magnitude) ** self.amount, xp.full_like(band, self.max_gain))
        gain = xp.maximum(gain, xp.ones_like(gain))
        # The confidence that a detail is not noise is m²/(m² + 4n²). Both are divided by the larger one
        # first, so that squares of very small numbers do not vanish.
        larger = xp.maximum(magnitude, noise)
        signal, doubt = magnitude / larger, 2 * noise / larger
        confidence = signal * signal / (signal * signal + doubt * doubt)
        return band * (1 + (gain - 1) * confidence)
