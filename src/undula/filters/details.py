"""Stages that bring details out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import ArgumentError
from .arrays import count_of
from .base import Pyramid, Stage, number
from .shrinkage import Shrink, applied

__all__ = ["Contrast", "Gain"]


@dataclass(frozen=True, repr=False)
class Gain(Stage):
    """Details multiplied: below 1 softer, above 1 sharper.

    ``gains`` is a number, or one for each level, finest first; what comes after the last is as the last.
    """

    kind: ClassVar[str] = "gain"
    gains: Any = 1.5

    def _check(self) -> None:
        gains = self.gains if isinstance(self.gains, tuple) else (self.gains,)
        if not gains:
            raise ArgumentError("gains of no level at all are given")
        for gain in gains:
            number(gain, "a gain")

    def limits(
        self, details: list[dict[str, Any]], pyramid: Pyramid
    ) -> tuple[str, list[tuple[int, str]], list[Any], list[Any]]:
        """The rule, the bands, and their gains."""
        gains = self.gains if isinstance(self.gains, tuple) else (self.gains,)
        own = [float(gains[min(level, len(gains) - 1)]) for level in range(len(details))]
        chosen = [(level, key) for level, found in enumerate(details) for key in found]
        lows: list[Any] = [own[level] for level, _ in chosen]
        return "gain", chosen, lows, lows

    def on_details(self, details: list[dict[str, Any]], pyramid: Pyramid) -> list[dict[str, Any]]:
        """All bands at once."""
        return applied(details, pyramid, *self.limits(details, pyramid))


@dataclass(frozen=True, repr=False)
class Contrast(Stage):
    """Weak details made stronger and noise left alone: contrast at all scales.

    A detail d becomes ``d · min(most, (m/|d|)^amount)`` where m is four times the mean size in its band; what
    is near the noise keeps its size.

    Parameters
    ----------
    amount : number
        From 0, nothing, to 1, all details alike.
    most : number
        What no detail is multiplied with more than.
    sigma : number, optional
        The noise; estimated if not given.
    """

    kind: ClassVar[str] = "contrast"
    amount: float = 0.3
    most: float = 3.0
    sigma: float | None = None

    def _check(self) -> None:
        number(self.amount, "amount")
        number(self.most, "most", 1.0)
        if self.amount > 1:
            raise ArgumentError(f"amount must be from 0 to 1, got {self.amount!r}")
        if self.sigma is not None:
            number(self.sigma, "sigma")

    def on_details(self, details: list[dict[str, Any]], pyramid: Pyramid) -> list[dict[str, Any]]:
        """Every band by itself."""
        arrays, xp = pyramid.arrays, pyramid.arrays.xp
        own = Shrink(sigma=self.sigma)
        sigma = own._sigma(details, pyramid)
        made = []
        for level, found in enumerate(details):
            bands = {}
            for key, band in found.items():
                seen, share = pyramid.seen(band, level)
                scale = 4 * xp.sqrt(arrays.energies([seen])[0] / (count_of(band) * share))
                top = arrays.spread(arrays.per_item(scale, band), band)
                noise = arrays.spread(arrays.per_item(sigma * pyramid.norms[level][key], band), band)
                size = xp.abs(band)
                tiny = 1e-6 * top + float(xp.finfo(band.dtype).smallest_normal)
                gain = xp.minimum((top / (size + tiny)) ** self.amount, xp.full_like(band, self.most))
                gain = xp.maximum(gain, xp.ones_like(gain))
                # How sure it is that this is no noise: s²/(s² + 4n²), whatever is how small.
                larger = xp.maximum(size + tiny, noise)
                signal, doubt = (size + tiny) / larger, 2 * noise / larger
                sure = signal * signal / (signal * signal + doubt * doubt)
                bands[key] = band * (1 + (gain - 1) * sure)
            made.append(bands)
        return made
