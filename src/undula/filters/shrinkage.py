"""The stage that denoises: it shrinks details by thresholds, or by their neighbours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ..arrays import is_integer
from ..errors import ArgumentError
from ..lowering.rules import THRESHOLD_RULES
from .base import (
    BandLimits,
    Details,
    FilterStage,
    Pyramid,
    Word,
    argument,
    check_choice,
    check_levels,
    check_number,
    replace_bands,
    round_down,
)
from .camera import can_recognize, correlated_noise
from .noise import estimate_noise, noise_argument, robust_sigma
from .operations import LocalWindow
from .selection import select_thresholds

__all__ = ["BAND_LABELS", "LOCAL_METHODS", "METHODS", "RULES", "Shrink"]

RULES = tuple(THRESHOLD_RULES)
"""Threshold rules of :class:`Shrink`."""
LOCAL_METHODS = ("bivariate", "block")
METHOD_LABELS = {
    "bayes": "Bayes, per band",
    "sure": "SURE, per band",
    "hybrid": "Hybrid (SURE, universal)",
    "minimax": "Minimax",
    "universal": "Universal (VisuShrink)",
    "bivariate": "Bivariate, local",
    "block": "Block, local",
    "given": "Manual threshold",
}
METHODS = tuple(METHOD_LABELS)
"""Methods of :class:`Shrink`."""
RULE_LABELS = {name: rule.label for name, rule in THRESHOLD_RULES.items()}
NOISE_LABELS = {
    "auto": "recognised",
    "white": "equal in all bands",
    "correlated": "correlated",
    "bands": "different in each band",
}
BAND_LABELS = {"ad": "vertical edges", "da": "horizontal edges", "dd": "diagonals"}
MAX_RADIUS = 32  # coefficients


@dataclass(frozen=True, repr=False)
class Shrink(FilterStage):
    """Shrink small details or set them to zero, which removes noise.

    Parameters
    ----------
    method : str, default "bayes"
        ``bayes``, ``sure`` and ``hybrid`` select a threshold for each band, ``universal`` and ``minimax`` by
        the size of the image; ``given`` uses ``threshold``. ``bivariate`` shrinks each coefficient by its
        neighbours and its parent at the next coarser level, ``block`` by its neighbours alone.
    rule : {"soft", "hard", "garrote", "firm", "greater", "less"}, default "soft"
        Threshold rule of methods with thresholds: ``soft`` shrinks what remains by the threshold, ``hard``
        leaves it, ``garrote`` and ``firm`` are in between; ``greater`` and ``less`` compare values and not
        magnitudes.
    threshold : float, sequence of float, or sequence of dict, optional
        For ``given``: one threshold, one per level (finest first), or for each level one per band by key.
        Further levels use the last one.
    sigma : float, optional
        Standard deviation of the noise; estimated if None.
    strength : float, default 1.0
        Factor of all thresholds; higher values remove more.
    noise : {"white", "bands", "correlated", "auto"}, default "white"
        ``white`` noise is spread over all bands. ``bands`` estimates it for each band, as speckle needs;
        ``correlated`` for the bands of two levels, from which that of coarser ones follows. ``auto``
        recognises the correlated noise of cameras in images, and takes any other for white.
    levels : sequence of int, optional
        Levels to shrink, 1 being the finest; all if None.
    bands : sequence of str, optional
        Keys of the bands to shrink, such as ``"ad"``; all if None.
    radius : int, default 3
        Radius of the neighbourhood of ``bivariate`` and ``block``.
    second : float, default 2.0
        Second threshold of ``firm``, as a multiple of the first.

    Examples
    --------
    >>> from undula.filters import Pipeline
    >>> noisy = 100 + np.random.default_rng(0).standard_normal((64, 64))
    >>> bool(Pipeline("db2", 3, [Shrink("bivariate")])(noisy).std() < 0.3)
    True
    """

    kind: ClassVar[str] = "shrink"
    description: ClassVar[str] = "Reduce noise by shrinking small details"
    icon: ClassVar[str] = "grain"
    words: ClassVar = {
        name: Word(("threshold",), {"method": "given", "rule": name, "threshold": 20.0})
        for name, rule in THRESHOLD_RULES.items()
        if rule.by_magnitude
    } | {name: Word(("strength",), {"method": name}) for name in METHODS if name != "given"}
    method: str = argument("bayes", "Method", options=METHOD_LABELS, kept=True)
    rule: str = argument("soft", "Rule", options=RULE_LABELS, kept=True)
    threshold: Any = argument(None, "Threshold", high=0.5, of_span=True, per_level=True, kept=True)
    sigma: float | None = noise_argument()
    strength: float = argument(1.0, "Strength", 0, 3, 0.01, hint="values above 1 remove more")
    noise: str = argument("white", "Noise level", options=NOISE_LABELS, advanced=True)
    levels: tuple[int, ...] | None = argument(None, "Levels", multiple=True, advanced=True)
    bands: tuple[str, ...] | None = argument(None, "Bands", options=BAND_LABELS, multiple=True, advanced=True)
    radius: int = argument(3, "Window radius", 1, 8, 1, integer=True, advanced=True)
    second: float = argument(2.0, "Second threshold, × first", 1, 5, 0.05)

    def _check(self) -> None:
        check_choice(self.method, "method", METHODS)
        check_choice(self.rule, "threshold rule", RULES)
        check_choice(self.noise, "kind of noise", tuple(NOISE_LABELS))
        check_number(self.strength, "strength")
        check_number(self.second, "second", 1.0)
        check_levels(self.levels)
        if self.bands is not None and not (
            isinstance(self.bands, tuple)
            and all(isinstance(key, str) and set(key) <= {"a", "d"} and "d" in key for key in self.bands)
        ):
            raise ArgumentError(f"bands must be keys of details such as 'ad' or 'dd', got {self.bands!r}")
        if self.sigma is not None:
            check_number(self.sigma, "sigma")
        if not is_integer(self.radius) or not 0 <= self.radius <= MAX_RADIUS:
            raise ArgumentError(f"radius must be an integer from 0 to {MAX_RADIUS}, got {self.radius!r}")
        if (self.method == "given") != (self.threshold is not None):
            raise ArgumentError(
                "method='given' and threshold belong together, got"
                f" method={self.method!r} and threshold={self.threshold!r}"
            )
        if self.threshold is not None:
            object.__setattr__(self, "threshold", _frozen_thresholds(self.threshold))

    def applicable(self) -> list[str]:
        """Return the names of the arguments that apply to the method and the rule."""
        if self.method in LOCAL_METHODS:
            names = ["method", "strength", "sigma", "noise", "radius"]
        else:
            names = ["method", "rule"]
            names += ["threshold"] if self.method == "given" else ["strength", "sigma", "noise"]
            names += ["second"] * (self.rule == "firm")
        return [*names, "levels", "bands"]

    def with_argument(self, name: str, value: Any, span: float) -> Self:
        """Return the stage with another value of an argument; the method "given" gets a threshold."""
        changes = {name: value}
        if name == "method":
            threshold = round_down(0.08 * span) if self.threshold is None else self.threshold
            changes["threshold"] = threshold if value == "given" else None
        return replace(self, **changes)

    def _given(self, index: int, key: str) -> float:
        """Return the threshold that was given for a band, index 0 being the finest level."""
        threshold = self.threshold
        if isinstance(threshold, tuple):
            threshold = threshold[min(index, len(threshold) - 1)]
        if not isinstance(threshold, tuple):
            return float(threshold)
        by_key = dict(threshold)
        if key not in by_key:
            raise ArgumentError(
                f"the thresholds of level {index + 1} have no band {key!r}; they have {sorted(by_key)}"
            )
        return float(by_key[key])

    def _check_pyramid(self, details: Details) -> None:
        """Raise an error for levels and bands that the details do not have."""
        count = len(details)
        if self.levels is not None and max(self.levels, default=1) > count:
            raise ArgumentError(f"levels {list(self.levels)} were requested, but there are {count}")
        if isinstance(self.threshold, tuple) and len(self.threshold) > count:
            raise ArgumentError(f"{len(self.threshold)} thresholds were passed, but there are {count} levels")
        if self.bands is not None and not set(self.bands) <= set(details[0]):
            raise ArgumentError(
                f"bands {list(self.bands)} were requested, but there are {sorted(details[0])}"
            )

    def limits(self, details: Details, pyramid: Pyramid) -> BandLimits | None:
        """Return the thresholds of the bands to shrink, or None for methods without thresholds.

        Parameters
        ----------
        details : list of dict
            For each level, finest first, bands by key.
        pyramid : Pyramid
            The transform that the details belong to, and its noise.

        Returns
        -------
        BandLimits or None
            One threshold for each band.
        """
        self._check_pyramid(details)
        if self.method in LOCAL_METHODS:
            return None
        selected = self._selected_bands(details)
        if self.method == "given":
            lows: list[Any] = [self._given(index, key) for index, key in selected]
        else:
            bands, sigmas, shares = self._noise(details, selected, pyramid)
            lows = select_thresholds(self.method, bands, sigmas, pyramid.samples, shares)
        lows = [self.strength * pyramid.strength * low for low in lows]
        return BandLimits(self.rule, selected, lows, [self.second * low for low in lows])

    def _selected_bands(self, details: Details) -> list[tuple[int, str]]:
        """Return the index of the level, 0 being the finest, and the key of the bands to shrink."""
        return [
            (index, key)
            for index, bands in enumerate(details)
            if self.levels is None or index + 1 in self.levels
            for key in bands
            if self.bands is None or key in self.bands
        ]

    def _noise(
        self, details: Details, selected: list[tuple[int, str]], pyramid: Pyramid
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the valid part of some bands, the noise of their items, and their valid shares."""
        masked = [pyramid.masked(details[index][key], index) for index, key in selected]
        bands = [band for band, _ in masked]
        kind = "white" if self.sigma is not None or pyramid.sigma is not None else self.noise
        if kind == "auto" and not can_recognize(details, pyramid):
            kind = "white"
        if kind in ("auto", "correlated"):
            noise = correlated_noise(details, pyramid, kind == "correlated")
            sigmas = [noise[index][key] for index, key in selected]
        elif kind == "bands":
            # Coefficients that are zero up to rounding would count on one engine and not on another.
            floors = [pyramid.rounding_floor(index) for index, _ in selected]
            sigmas = [robust_sigma(band, 1.0, floor) for band, floor in zip(bands, floors, strict=True)]
        else:
            sigma = estimate_noise(details, pyramid, self.sigma)
            sigmas = [sigma * pyramid.norms[index][key] for index, key in selected]
        return bands, sigmas, [share for _, share in masked]

    def on_details(self, details: Details, pyramid: Pyramid) -> Details:
        """Apply thresholds, or shrink each coefficient by its neighbours."""
        limits = self.limits(details, pyramid)
        if limits is not None:
            return limits.apply(details, pyramid)
        selected = self._selected_bands(details)
        _, sigmas, _ = self._noise(details, selected, pyramid)
        bands = [
            self._shrink_locally(details, index, key, sigma, pyramid)
            for (index, key), sigma in zip(selected, sigmas, strict=True)
        ]
        return replace_bands(details, selected, bands)

    def _shrink_locally(self, details: Details, index: int, key: str, sigma: Any, pyramid: Pyramid) -> Any:
        band = details[index][key]
        parents, weight = self._parents(details, index, key, pyramid)
        bivariate = self.method == "bivariate"
        factor = self.strength * pyramid.strength
        if bivariate:  # √3 is for a pair of child and parent, √2 for a coefficient without a parent.
            factor *= math.sqrt(2 if parents is None else 3)
        window = LocalWindow(self.radius, factor, weight, pyramid.offset, bivariate)
        return pyramid.operations.shrink_locally(band, parents, sigma, window, pyramid.ndim)

    def _parents(self, details: Details, index: int, key: str, pyramid: Pyramid) -> tuple[Any, float]:
        """Return the band of the next coarser level, and the ratio of the noise power of both bands."""
        if self.method == "block" or index + 1 >= len(details):
            return None, 1.0
        parents = details[index + 1][key]
        if len(parents.shape) > pyramid.ndim + 1:  # Of all shifts, take the parents that were not shifted.
            parents = parents[:, : details[index][key].shape[1]]
        return parents, (pyramid.norms[index][key] / pyramid.norms[index + 1][key]) ** 2


def _frozen_thresholds(value: Any) -> Any:
    """Check thresholds, and convert them to floats and tuples."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return (_frozen_by_band(value),)
    if isinstance(value, (list, tuple)):
        if not value:
            raise ArgumentError("threshold must not be empty: no level would have one")
        return tuple(map(_frozen_level, value))
    check_number(value, "threshold")
    return float(value)


def _frozen_level(value: Any) -> Any:
    pairs = isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple))
    if isinstance(value, Mapping) or pairs:
        return _frozen_by_band(dict(value))
    if isinstance(value, (list, tuple)):
        raise ArgumentError(
            "pass the thresholds of the bands of a level by key, as in {'ad': 1, 'da': 2, 'dd': 3}; got"
            f" {value!r}"
        )
    check_number(value, "threshold")
    return float(value)


def _frozen_by_band(thresholds: Mapping[Any, Any]) -> tuple[tuple[str, float], ...]:
    for key, value in thresholds.items():
        if not isinstance(key, str) or not key or not set(key) <= {"a", "d"}:
            raise ArgumentError(f"thresholds of bands must have keys such as 'ad', got {key!r}")
        check_number(value, f"threshold of {key!r}")
    return tuple(sorted((key, float(value)) for key, value in thresholds.items()))
