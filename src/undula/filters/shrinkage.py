"""The stage that denoises: details by thresholds, or by those around them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError
from .base import Pyramid, Stage, check_levels, named, number
from .choice import CHOICES, choose
from .noise import sigma_of

__all__ = ["METHODS", "RULES", "Shrink", "applied"]

RULES = ("soft", "hard", "garrote", "firm", "greater", "less")
METHODS = (*CHOICES, "bivariate", "block", "given")
NOISES = ("white", "bands")


@dataclass(frozen=True, repr=False)
class Shrink(Stage):
    """Small details made smaller or nothing: what denoises.

    Parameters
    ----------
    method : str
        How thresholds are found: ``bayes``, ``sure``, ``hybrid`` for each band; ``universal``, ``minimax`` by
        the size of the image; ``given`` by ``threshold``. ``bivariate`` shrinks each coefficient by those
        around it and its parent at the next level, ``block`` by those around it.
    rule : str
        What is done with a threshold: ``soft``, ``hard``, ``garrote``, ``firm``, ``greater``, ``less``.
    threshold : number, or one for each level, finest first, or for each level one for each band by key
        For ``given``; what comes after the last is as the last.
    sigma : number, optional
        The noise; estimated if not given.
    strength : number
        A factor for all thresholds.
    noise : str
        ``white`` is in all bands; ``bands`` has its own amount in each of them, as speckle has.
    levels : sequence of int, optional
        1 is the finest; all if not given.
    bands : sequence of str, optional
        Keys such as ``"ad"``; all if not given.
    radius : int
        Of the window of ``bivariate`` and ``block``.
    second : number
        Where ``firm`` lets coefficients pass as they are, as a multiple of the threshold.
    """

    kind: ClassVar[str] = "shrink"
    method: str = "bayes"
    rule: str = "soft"
    threshold: Any = None
    sigma: float | None = None
    strength: float = 1.0
    noise: str = "white"
    levels: tuple[int, ...] | None = None
    bands: tuple[str, ...] | None = None
    radius: int = 3
    second: float = 2.0

    def _check(self) -> None:
        named(self.method, "method", METHODS)
        named(self.rule, "threshold rule", RULES)
        named(self.noise, "kind of noise", NOISES)
        number(self.strength, "strength")
        number(self.second, "second", 1.0)
        check_levels(self.levels)
        if self.bands is not None and not (
            isinstance(self.bands, tuple)
            and all(isinstance(key, str) and set(key) <= {"a", "d"} and "d" in key for key in self.bands)
        ):
            raise ArgumentError(f"bands of details have keys of a's and d's such as 'ad', got {self.bands!r}")
        if self.sigma is not None:
            number(self.sigma, "sigma")
        if not isinstance(self.radius, int) or not 0 <= self.radius <= 32:
            raise ArgumentError(f"radius must be an integer from 0 to 32, got {self.radius!r}")
        if (self.method == "given") != (self.threshold is not None):
            raise ArgumentError(
                "method='given' and threshold belong together, got"
                f" method={self.method!r} and threshold={self.threshold!r}"
            )
        if self.threshold is not None:
            object.__setattr__(self, "threshold", _thresholds(self.threshold))

    def given(self, level: int, key: str) -> float:
        """The threshold of a band, as it was given."""
        if not isinstance(self.threshold, tuple):
            return float(self.threshold)
        one = self.threshold[min(level, len(self.threshold) - 1)]
        if not isinstance(one, tuple):
            return float(one)
        found = dict(one)
        if key not in found:
            raise ArgumentError(
                f"thresholds of level {level + 1} have no band {key!r}; they have {sorted(found)}"
            )
        return float(found[key])

    def _check_pyramid(self, details: list[dict[str, Any]]) -> None:
        """An error for levels and bands that a pyramid does not have."""
        count = len(details)
        if self.levels is not None and max(self.levels, default=1) > count:
            raise ArgumentError(f"levels {list(self.levels)} are asked for, and there are {count}")
        if isinstance(self.threshold, tuple) and len(self.threshold) > count:
            raise ArgumentError(f"{len(self.threshold)} thresholds are given, and there are {count} levels")
        if self.bands is not None and not set(self.bands) <= set(details[0]):
            raise ArgumentError(f"bands {list(self.bands)} are asked for, and there are {sorted(details[0])}")

    def limits(
        self, details: list[dict[str, Any]], pyramid: Pyramid
    ) -> tuple[str, list[tuple[int, str]], list[Any], list[Any]] | None:
        """The rule, which bands it is for, and their thresholds; None for what is no matter of thresholds."""
        self._check_pyramid(details)
        if self.method in ("bivariate", "block"):
            return None
        chosen = self._chosen(details)
        if self.method == "given":
            lows: list[Any] = [self.strength * self.given(level, key) for level, key in chosen]
        else:
            bands, noises, shares = self._noises(details, chosen, pyramid)
            found = choose(pyramid.arrays, self.method, bands, noises, pyramid.samples, shares)
            lows = [self.strength * low for low in found]
        return self.rule, chosen, lows, [self.second * low for low in lows]

    def _chosen(self, details: list[dict[str, Any]]) -> list[tuple[int, str]]:
        return [
            (level, key)
            for level, found in enumerate(details)
            if self.levels is None or level + 1 in self.levels
            for key in found
            if self.bands is None or key in self.bands
        ]

    def _noises(
        self, details: list[dict[str, Any]], chosen: list[tuple[int, str]], pyramid: Pyramid
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Of chosen bands: what is valid, the noise of each item, the share that is valid."""
        seen = [pyramid.seen(details[level][key], level) for level, key in chosen]
        sigma = self._sigma(details, pyramid)
        noises = [
            sigma_of(pyramid.arrays, band) if sigma is None else sigma * pyramid.norms[level][key]
            for (level, key), (band, _) in zip(chosen, seen, strict=True)
        ]
        return [band for band, _ in seen], noises, [share for _, share in seen]

    def on_details(self, details: list[dict[str, Any]], pyramid: Pyramid) -> list[dict[str, Any]]:
        """Thresholds for all bands at once, or every coefficient by those around it."""
        found = self.limits(details, pyramid)
        if found is not None:
            return applied(details, pyramid, *found)
        chosen = self._chosen(details)
        _, noises, _ = self._noises(details, chosen, pyramid)
        new = [
            self._local(details, level, key, noise, pyramid)
            for (level, key), noise in zip(chosen, noises, strict=True)
        ]
        return _replaced(details, chosen, new)

    def _sigma(self, details: list[dict[str, Any]], pyramid: Pyramid) -> Any:
        """The noise of each item, or None where it is found in each band."""
        finest = details[0]
        diagonal = "d" * pyramid.places
        if self.sigma is not None:
            return pyramid.arrays.per_item(self.sigma, finest[diagonal])
        if pyramid.sigma is not None:
            return pyramid.sigma
        if self.method == "given" or self.noise == "bands":
            return None
        seen, _ = pyramid.seen(finest[diagonal], 0)
        return sigma_of(pyramid.arrays, seen, pyramid.norms[0][diagonal], pyramid.least)

    def _local(
        self, details: list[dict[str, Any]], level: int, key: str, noise: Any, pyramid: Pyramid
    ) -> Any:
        band = details[level][key]
        parents, weight = self._parents(details, level, key, band, pyramid)
        bivariate = self.method == "bivariate"
        factor = self.strength
        if bivariate:  # (of a pair; of a coefficient that has no parent, the same rule for one)
            factor *= math.sqrt(2 if parents is None else 3)
        return pyramid.arrays.local(
            band, parents, self.radius, noise, factor, weight, pyramid.offset, bivariate, pyramid.places
        )

    def _parents(
        self, details: list[dict[str, Any]], level: int, key: str, band: Any, pyramid: Pyramid
    ) -> tuple[Any, float]:
        """The band of the next level, and how its noise compares."""
        if self.method == "block" or level + 1 >= len(details):
            return None, 1.0
        above = details[level + 1][key]
        if len(above.shape) > pyramid.places + 1:  # (of all shifts, the parents that were not shifted)
            above = above[:, : band.shape[1]]
        return above, (pyramid.norms[level][key] / pyramid.norms[level + 1][key]) ** 2


def applied(
    details: list[dict[str, Any]],
    pyramid: Pyramid,
    rule: str,
    chosen: Sequence[tuple[int, str]],
    lows: Sequence[Any],
    highs: Sequence[Any],
) -> list[dict[str, Any]]:
    """Chosen bands by a rule with thresholds."""
    bands = [details[level][key] for level, key in chosen]
    return _replaced(details, chosen, pyramid.arrays.shrink(bands, rule, lows, highs, pyramid.own))


def _replaced(
    details: list[dict[str, Any]], chosen: Sequence[tuple[int, str]], bands: Sequence[Any]
) -> list[dict[str, Any]]:
    """Details with some bands in the place of others."""
    made = [dict(found) for found in details]
    for (level, key), band in zip(chosen, bands, strict=True):
        made[level][key] = band
    return made


def _thresholds(value: Any) -> Any:
    """Thresholds as values, each of them checked."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return (_thresholds_of_bands(value),)
    if isinstance(value, (list, tuple)):
        if not value:
            raise ArgumentError("thresholds of no level at all are given")
        return tuple(_one(part) for part in value)
    number(value, "threshold")
    return float(value)


def _one(part: Any) -> Any:
    pairs = isinstance(part, (list, tuple)) and part and isinstance(part[0], (list, tuple))
    if isinstance(part, Mapping) or pairs:
        return _thresholds_of_bands(dict(part))
    if isinstance(part, (list, tuple)):
        raise ArgumentError(
            f"thresholds of the bands of a level go by key, {{'ad': 1, 'da': 2, 'dd': 3}}; got {part!r}"
        )
    number(part, "threshold")
    return float(part)


def _thresholds_of_bands(part: Mapping[Any, Any]) -> tuple[tuple[str, float], ...]:
    for key, value in part.items():
        if not isinstance(key, str) or not key or not set(key) <= {"a", "d"}:
            raise ArgumentError(f"thresholds of bands go by keys such as 'ad', got {key!r}")
        number(value, f"threshold of {key!r}")
    return tuple(sorted((key, float(value)) for key, value in part.items()))
