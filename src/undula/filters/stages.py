"""Stages: what a pipeline does, one thing each.

A stage is a value: it can be compared, printed, and written down as JSON. Places are those of a pyramid:

    image           before anything is decomposed
    approximation   of a level, before it is decomposed further
    last            the approximation that is left
    details         of all levels or of some, 1 being the finest

    x ─ image ─▶ level 1 ─▶ approximation ─▶ level 2 ─▶ last
                    └ details                   └ details
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from .arrays import Arrays, count_of
from .choice import CHOICES, choose
from .noise import sigma_of

__all__ = [
    "METHODS",
    "PLACES",
    "RULES",
    "STAGES",
    "Blur",
    "Contrast",
    "Gain",
    "Laplace",
    "Shrink",
    "Stage",
    "Unsharp",
    "stage_of",
]

RULES = ("soft", "hard", "garrote", "firm", "greater", "less")
METHODS = (*CHOICES, "bivariate", "block", "given")
PLACES = ("image", "approximation", "last", "details")
NOISES = ("white", "bands")
KERNELS = ("cross", "diagonal")


@dataclass(frozen=True)
class Pyramid:
    """What stages on details need to know besides the details.

    Parameters
    ----------
    arrays : Arrays
    norms : for each level, finest first, those of each band by key
    samples : int
        Of the whole image.
    places : int
        Axes of an image.
    offset : int
        From a place in a band to its parent's: see ``backends.cpu.filtering``.
    sigma : array, optional
        The noise of each item, where it is known.
    valid : for each level, where coefficients have to do with valid samples; empty where all do
    own : bool
        Whether nobody else sees the bands, so that they may be overwritten.
    least : array
        For each item, what coefficients that are zero may be because of rounding.
    """

    arrays: Arrays
    norms: Sequence[Mapping[str, float]]
    samples: int
    places: int
    offset: int
    sigma: Any = None
    valid: Sequence[Any] = ()
    own: bool = False
    least: Any = 0.0

    def seen(self, band: Any, level: int) -> tuple[Any, Any]:
        """A band with zeros where samples are invalid, and the share of it that is valid."""
        if not self.valid:
            return band, 1.0
        mask = self.valid[level]
        share = max(float(np.mean(mask)), 1e-9) if self.arrays.host else 1.0
        return band * mask, share


@dataclass(frozen=True, repr=False)
class Stage:
    """One thing that is done."""

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for each in fields(self):  # (JSON knows lists, values are tuples)
            value = getattr(self, each.name)
            if isinstance(value, list):
                object.__setattr__(self, each.name, _frozen(value))
        self._check()

    def __repr__(self) -> str:
        """As it can be written: what differs from the usual."""
        told = [f"{name}={value!r}" for name, value in self._told().items()]
        return f"{type(self).__name__}({', '.join(told)})"

    def _told(self) -> dict[str, Any]:
        """What differs from the usual."""
        found = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        return {name: value for name, (value, usual) in found.items() if value != usual}

    def _check(self) -> None:
        """An error for arguments that make no sense."""

    def places(self) -> tuple[str, ...]:
        """Where it is done."""
        return ("details",)

    def on_details(self, details: list[dict[str, Any]], pyramid: Pyramid) -> list[dict[str, Any]]:
        """All levels, finest first."""
        return details

    def on_samples(self, x: Any, arrays: Arrays, places: int) -> Any:
        """An image or an approximation."""
        return x

    def to_dict(self) -> dict[str, Any]:
        """For JSON: its kind, and what differs from the usual."""
        given = {name: _thawed(value) for name, value in self._told().items()}
        return {"stage": self.kind, **given}


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted((key, _frozen(part)) for key, part in value.items()))
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _thawed(value: Any) -> Any:
    return [_thawed(part) for part in value] if isinstance(value, tuple) else value


def _number(value: Any, what: str, least: float = 0.0, open_: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(f"{what} must be a number, got {value!r}")
    if not math.isfinite(value) or value < least or (open_ and value == least):
        above = "above" if open_ else "at least"
        raise ArgumentError(f"{what} must be {above} {least:g}, got {value!r}")


def _named(value: Any, what: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UnknownNameError(what, value, known)


def _levels(levels: Any) -> None:
    if levels is None:
        return
    if not isinstance(levels, tuple) or not all(isinstance(n, int) and n >= 1 for n in levels):
        raise ArgumentError(f"levels are integers from 1, the finest, on; got {levels!r}")


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
        _named(self.method, "method", METHODS)
        _named(self.rule, "threshold rule", RULES)
        _named(self.noise, "kind of noise", NOISES)
        _number(self.strength, "strength")
        _number(self.second, "second", 1.0)
        _levels(self.levels)
        if self.bands is not None and not (
            isinstance(self.bands, tuple)
            and all(isinstance(key, str) and set(key) <= {"a", "d"} and "d" in key for key in self.bands)
        ):
            raise ArgumentError(f"bands of details have keys of a's and d's such as 'ad', got {self.bands!r}")
        if self.sigma is not None:
            _number(self.sigma, "sigma")
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

    def _check_levels(self, details: list[dict[str, Any]]) -> None:
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
        self._check_levels(details)
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
    _number(value, "threshold")
    return float(value)


def _one(part: Any) -> Any:
    pairs = isinstance(part, (list, tuple)) and part and isinstance(part[0], (list, tuple))
    if isinstance(part, Mapping) or pairs:
        return _thresholds_of_bands(dict(part))
    if isinstance(part, (list, tuple)):
        raise ArgumentError(
            f"thresholds of the bands of a level go by key, {{'ad': 1, 'da': 2, 'dd': 3}}; got {part!r}"
        )
    _number(part, "threshold")
    return float(part)


def _thresholds_of_bands(part: Mapping[Any, Any]) -> tuple[tuple[str, float], ...]:
    for key, number in part.items():
        if not isinstance(key, str) or not key or not set(key) <= {"a", "d"}:
            raise ArgumentError(f"thresholds of bands go by keys such as 'ad', got {key!r}")
        _number(number, f"threshold of {key!r}")
    return tuple(sorted((key, float(number)) for key, number in part.items()))


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
            _number(gain, "a gain")

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
        _number(self.amount, "amount")
        _number(self.most, "most", 1.0)
        if self.amount > 1:
            raise ArgumentError(f"amount must be from 0 to 1, got {self.amount!r}")
        if self.sigma is not None:
            _number(self.sigma, "sigma")

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
                ratio = noise / (size + tiny)
                sure = 1 / (1 + 4 * ratio * ratio)
                bands[key] = band * (1 + (gain - 1) * sure)
            made.append(bands)
        return made


@dataclass(frozen=True, repr=False)
class Spatial(Stage):
    """What is done to samples that lie side by side: images, approximations, bands of details.

    Parameters
    ----------
    at : str
        One of ``PLACES``.
    levels : sequence of int, optional
        Of approximations or details; all if not given.
    """

    at: str = field(default="image", kw_only=True)
    levels: tuple[int, ...] | None = field(default=None, kw_only=True)

    def _check(self) -> None:
        _named(self.at, "place", PLACES)
        _levels(self.levels)
        if self.levels is not None and self.at in ("image", "last"):
            raise ArgumentError(f"levels belong to approximations and details, got them with at={self.at!r}")

    def places(self) -> tuple[str, ...]:
        return (self.at,)

    def on_details(self, details: list[dict[str, Any]], pyramid: Pyramid) -> list[dict[str, Any]]:
        return [
            {key: self.on_samples(band, pyramid.arrays, pyramid.places) for key, band in found.items()}
            if self.levels is None or level + 1 in self.levels
            else found
            for level, found in enumerate(details)
        ]


def gaussian(sigma: float) -> np.ndarray[Any, Any]:
    """Taps up to four standard deviations away; their sum is 1."""
    radius = int(4 * sigma + 0.5)
    places = np.arange(-radius, radius + 1)
    taps = np.exp(-0.5 * (places / max(sigma, 1e-30)) ** 2)
    return np.asarray(taps / taps.sum())


@dataclass(frozen=True, repr=False)
class Blur(Spatial):
    """A Gaussian blur of standard deviation ``sigma``, in samples of where it is done."""

    kind: ClassVar[str] = "blur"
    sigma: float = 1.0

    def _check(self) -> None:
        super()._check()
        _number(self.sigma, "sigma")
        if self.sigma > 1000:
            raise ArgumentError(f"sigma of a blur must be at most 1000 samples, got {self.sigma!r}")

    def on_samples(self, x: Any, arrays: Arrays, places: int) -> Any:
        """Blurred."""
        return x if self.sigma == 0 else arrays.convolve(x, gaussian(self.sigma), places)


@dataclass(frozen=True, repr=False)
class Unsharp(Spatial):
    """Sharper by ``amount`` times what a blur takes away."""

    kind: ClassVar[str] = "unsharp"
    sigma: float = 1.0
    amount: float = 1.0

    def _check(self) -> None:
        super()._check()
        _number(self.sigma, "sigma", open_=True)
        _number(self.amount, "amount")

    def on_samples(self, x: Any, arrays: Arrays, places: int) -> Any:
        """Sharpened."""
        return x + self.amount * (x - arrays.convolve(x, gaussian(self.sigma), places))


@dataclass(frozen=True, repr=False)
class Laplace(Spatial):
    """Sharper by ``amount`` times the Laplacian: of the nearest neighbours, or of the diagonal ones, too.

    The usual amount is that of Nielsen's kernels (NTNU, 2007), 0.1.
    """

    kind: ClassVar[str] = "laplace"
    amount: float = 0.1
    kernel: str = "cross"

    def _check(self) -> None:
        super()._check()
        _number(self.amount, "amount")
        _named(self.kernel, "kernel", KERNELS)

    def on_samples(self, x: Any, arrays: Arrays, places: int) -> Any:
        """Sharpened."""
        if self.kernel == "diagonal":
            return x - self.amount * (arrays.convolve(x, np.ones(3), places) - 3**places * x)
        cross = x * 0
        for axis in range(places):
            cross = cross + arrays.along(x, np.array([1.0, -2.0, 1.0]), axis, places)
        return x - self.amount * cross


STAGES: dict[str, type[Stage]] = {
    each.kind: each for each in (Shrink, Gain, Contrast, Blur, Unsharp, Laplace)
}


def stage_of(given: Any) -> Stage:
    """A stage, or one from its name or from what JSON has of it."""
    if isinstance(given, Stage):
        return given
    if isinstance(given, str):
        given = {"stage": given}
    if not isinstance(given, Mapping) or "stage" not in given:
        raise ArgumentTypeError(f"a stage, its name, or a dictionary with its name is needed, got {given!r}")
    name = given["stage"]
    name = name.lower() if isinstance(name, str) else name
    if not isinstance(name, str) or name not in STAGES:
        raise UnknownNameError("stage", name, tuple(STAGES))
    known = [each.name for each in fields(STAGES[name])]
    rest = {key: value for key, value in given.items() if key != "stage"}
    for key in rest:
        if key not in known:
            raise UnknownNameError(f"argument of {name}", key, tuple(known))
    return STAGES[name](**rest)
