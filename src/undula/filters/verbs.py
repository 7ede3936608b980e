"""The defaults of denoising, despeckling, sharpening and enhancing, and their pipelines.

Functions, commands and presets of the Studio all take their defaults from these classes: a default is an
attribute of its class, such as ``Despeckling.strength``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..wavelets import Wavelet
from .base import check_number
from .pipeline import Pipeline
from .speckle import KINDS, check_looks, trigamma
from .stages import Contrast, FilterStage, Gain, Laplace, Shrink, Unsharp

__all__ = ["Denoising", "Despeckling", "Enhancing", "Sharpening"]


@dataclass(frozen=True, kw_only=True)
class Denoising:
    """The options of :func:`undula.denoise`."""

    method: str = "bivariate"
    strength: float = 1.0
    wavelet: str | Wavelet = "db2"
    level: int | None = None
    rule: str = Shrink.rule
    invariant: bool | int = 2
    color: str = Pipeline.color

    def pipeline(self) -> Pipeline:
        """Return the pipeline that denoises with these options."""
        if self.method == "given":
            raise ArgumentError(
                "denoise takes no thresholds; use a Pipeline with Shrink('given', threshold=...)"
            )
        stage = Shrink(self.method, self.rule, strength=self.strength)
        return Pipeline(self.wavelet, self.level, [stage], invariant=self.invariant, color=self.color)


@dataclass(frozen=True, kw_only=True)
class Despeckling:
    """The options of :func:`undula.despeckle`.

    ``log`` images have speckle of a few pixels, while larger structures are tissue. They are filtered with
    noise estimated for each band, and with two levels.
    """

    kind: str = "intensity"
    looks: float | None = None
    strength: float = 1.0
    method: str = Denoising.method
    wavelet: str | Wavelet = Denoising.wavelet
    level: int | None = None
    invariant: bool | int = Denoising.invariant
    noise: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("kind of speckle", self.kind, KINDS)
        if self.looks is not None:
            check_looks(self.looks)
            if self.kind == "log":
                raise ArgumentError(
                    "looks apply to kind='intensity' and kind='amplitude' only, got kind='log'"
                )

    @property
    def sigma(self) -> float | None:
        """Standard deviation of the noise of the logarithm; None if the number of looks is unknown."""
        if self.looks is None:
            return None
        return float(np.sqrt(trigamma(float(self.looks)))) * (1.0 if self.kind == "intensity" else 0.5)

    def pipeline(self) -> Pipeline:
        """Return the pipeline that despeckles with these options."""
        log = self.kind == "log"
        level = 2 if log and self.level is None else self.level
        noise = self.noise if self.noise is not None else "bands" if log else "white"
        return Pipeline(
            self.wavelet,
            level,
            [Shrink(self.method, strength=self.strength, noise=noise)],
            invariant=self.invariant,
            speckle=self.kind,
            looks=None if self.looks is None else float(self.looks),
        )


@dataclass(frozen=True, kw_only=True)
class Sharpening:
    """The options of :func:`undula.sharpen`."""

    amount: float = 1.0
    method: str = "unsharp"
    sigma: float = Unsharp.sigma

    def pipeline(self) -> Pipeline:
        """Return the pipeline that sharpens with these options."""
        check_number(self.amount, "amount")
        amount = self.amount
        methods: dict[str, Sequence[FilterStage]] = {
            "unsharp": [Unsharp(self.sigma, amount)],
            "laplace": [Laplace(0.1 * amount)],
            "diagonal": [Laplace(0.1 * amount, "diagonal")],
            "wavelet": [Contrast(0.25, 1.0 + amount), Gain((1 + 0.5 * amount, 1 + 0.25 * amount, 1.0))],
        }
        if self.method not in methods:
            raise UnknownNameError("method", self.method, tuple(methods))
        return Pipeline("bior4.4", None, methods[self.method])


@dataclass(frozen=True, kw_only=True)
class Enhancing:
    """The options of :func:`undula.enhance`."""

    amount: float = 0.4
    denoise: bool = True
    wavelet: str | Wavelet = "bior4.4"
    level: int | None = None
    max_gain: float = Contrast.max_gain

    def pipeline(self) -> Pipeline:
        """Return the pipeline that enhances with these options."""
        if not isinstance(self.denoise, (bool, np.bool_)):
            raise ArgumentTypeError(f"denoise must be True or False, got {self.denoise!r}")
        stages: list[FilterStage] = [Shrink("bayes", strength=0.7)] if self.denoise else []
        return Pipeline(self.wavelet, self.level, [*stages, Contrast(self.amount, self.max_gain)])
