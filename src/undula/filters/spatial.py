"""Stages on samples that lie side by side: blurs and sharpeners."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError
from .arrays import Arrays
from .base import Pyramid, Stage, check_levels, named, number

__all__ = ["PLACES", "Blur", "Laplace", "Spatial", "Unsharp", "gaussian"]

PLACES = ("image", "approximation", "last", "details")
KERNELS = ("cross", "diagonal")
MAX_SIGMA = 1000  # samples


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
        named(self.at, "place", PLACES)
        check_levels(self.levels)
        if self.levels is not None and self.at in ("image", "last"):
            raise ArgumentError(f"levels belong to approximations and details, got them with at={self.at!r}")

    def places(self) -> tuple[str, ...]:
        """Where it is asked for."""
        return (self.at,)

    def on_details(self, details: list[dict[str, Any]], pyramid: Pyramid) -> list[dict[str, Any]]:
        """Every band by itself."""
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


def _check_width(sigma: float) -> None:
    """The taps of a wider blur would take all memory."""
    if sigma > MAX_SIGMA:
        raise ArgumentError(f"sigma of a blur must be at most {MAX_SIGMA} samples, got {sigma!r}")


@dataclass(frozen=True, repr=False)
class Blur(Spatial):
    """A Gaussian blur of standard deviation ``sigma``, in samples of where it is done."""

    kind: ClassVar[str] = "blur"
    sigma: float = 1.0

    def _check(self) -> None:
        super()._check()
        number(self.sigma, "sigma")
        _check_width(self.sigma)

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
        number(self.sigma, "sigma", open_=True)
        _check_width(self.sigma)
        number(self.amount, "amount")

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
        number(self.amount, "amount")
        named(self.kernel, "kernel", KERNELS)

    def on_samples(self, x: Any, arrays: Arrays, places: int) -> Any:
        """Sharpened."""
        if self.kernel == "diagonal":
            return x - self.amount * (arrays.convolve(x, np.ones(3), places) - 3**places * x)
        cross = x * 0
        for axis in range(places):
            cross = cross + arrays.along(x, np.array([1.0, -2.0, 1.0]), axis, places)
        return x - self.amount * cross
