"""Stages that filter samples in space: blurs and sharpeners."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import ArgumentError
from .base import Details, FilterStage, Pyramid, Word, argument, check_choice, check_levels, check_number
from .operations import ArrayOperations

__all__ = ["PLACES", "Blur", "Laplace", "Spatial", "Unsharp", "gaussian"]

PLACE_LABELS = {
    "image": "Image, before the transform",
    "approximation": "Approximations, between levels",
    "last": "Last approximation",
    "details": "Details",
}
PLACES = tuple(PLACE_LABELS)
"""Places at which stages on samples can act."""
PLACES_WITHOUT_LEVELS = ("image", "last")
KERNEL_LABELS = {"cross": "4 neighbours", "diagonal": "8 neighbours"}
MAX_SIGMA = 1000  # samples


@dataclass(frozen=True, repr=False)
class Spatial(FilterStage):
    """Base class of stages on images, approximations, or bands of details.

    Parameters
    ----------
    at : {"image", "approximation", "last", "details"}, default "image"
        Place in the pyramid: the image, each approximation that is decomposed further, the last
        approximation, or the details.
    levels : sequence of int, optional
        Levels of approximations or details, 1 being the finest; all if None.
    """

    _: KW_ONLY
    at: str = argument("image", "Applied to", options=PLACE_LABELS, kept=True)
    levels: tuple[int, ...] | None = argument(None, "Levels", multiple=True, advanced=True)

    def _check(self) -> None:
        check_choice(self.at, "place", PLACES)
        check_levels(self.levels)
        if self.levels is not None and self.at in PLACES_WITHOUT_LEVELS:
            raise ArgumentError(
                f"levels apply to at='approximation' and at='details' only, got at={self.at!r}"
            )

    def applicable(self) -> list[str]:
        """Return the names of the arguments; levels apply to places that have some."""
        return [name for name in self.arguments() if name != "levels" or self.at not in PLACES_WITHOUT_LEVELS]

    def with_argument(self, name: str, value: Any, span: float) -> Self:
        """Return the stage with another value of an argument; a place without levels removes the levels."""
        changes = {name: value}
        if name == "at" and value in PLACES_WITHOUT_LEVELS:
            changes["levels"] = None
        return replace(self, **changes)

    def places(self) -> tuple[str, ...]:
        """Return the place at which the stage works."""
        return (self.at,)

    def on_details(self, details: Details, pyramid: Pyramid) -> Details:
        """Filter each band separately."""
        return [
            {key: self.on_samples(band, pyramid.operations, pyramid.ndim) for key, band in bands.items()}
            if self.levels is None or level in self.levels
            else bands
            for level, bands in enumerate(details, 1)
        ]


def gaussian(sigma: float) -> np.ndarray[Any, Any]:
    """Return the taps of a Gaussian up to four standard deviations; their sum is 1."""
    radius = int(4 * sigma + 0.5)
    positions = np.arange(-radius, radius + 1)
    taps = np.exp(-0.5 * (positions / max(sigma, 1e-30)) ** 2)
    return np.asarray(taps / taps.sum())


def _check_width(sigma: float) -> None:
    """Raise an error for a blur whose taps would fill the memory."""
    if sigma > MAX_SIGMA:
        raise ArgumentError(f"sigma of a blur must be at most {MAX_SIGMA} samples, got {sigma!r}")


@dataclass(frozen=True, repr=False)
class Blur(Spatial):
    """Blur with a Gaussian.

    Parameters
    ----------
    sigma : float, default 1.0
        Standard deviation, in samples at the place of the stage.
    at : {"image", "approximation", "last", "details"}, default "image"
        Where the stage acts: on the image, on each approximation before it is decomposed further, on the
        last approximation, or on the details.
    levels : sequence of int, optional
        With ``at="approximation"`` and ``at="details"``, the levels that are filtered, 1 being the finest;
        all if None.

    Examples
    --------
    >>> from undula.filters import Pipeline
    >>> step = np.repeat([[0.0, 1.0]], 8, axis=0).repeat(4, axis=1)
    >>> bool(Pipeline("haar", 1, [Blur(sigma=1)])(step).std() < step.std())
    True
    """

    kind: ClassVar[str] = "blur"
    description: ClassVar[str] = "Gaussian blur of the image or of its pyramid"
    icon: ClassVar[str] = "blur_on"
    words: ClassVar = {"blur": Word(("sigma",))}
    sigma: float = argument(1.0, "Radius σ", 0, 10, 0.05, hint="in samples of the blurred band")

    def _check(self) -> None:
        super()._check()
        check_number(self.sigma, "sigma")
        _check_width(self.sigma)

    def on_samples(self, x: Any, operations: ArrayOperations, ndim: int) -> Any:
        """Return the blurred samples."""
        return x if self.sigma == 0 else operations.convolve(x, gaussian(self.sigma), ndim)


@dataclass(frozen=True, repr=False)
class Unsharp(Spatial):
    """Sharpen by an unsharp mask: add a multiple of the difference from a Gaussian blur.

    Parameters
    ----------
    sigma : float, default 1.0
        Standard deviation of the blur, in samples at the place of the stage.
    amount : float, default 1.0
        Factor of the difference.
    at : {"image", "approximation", "last", "details"}, default "image"
        Where the stage acts: on the image, on each approximation before it is decomposed further, on the
        last approximation, or on the details.
    levels : sequence of int, optional
        With ``at="approximation"`` and ``at="details"``, the levels that are filtered, 1 being the finest;
        all if None.

    Examples
    --------
    >>> from undula.filters import Pipeline
    >>> step = np.repeat([[0.0, 1.0]], 8, axis=0).repeat(4, axis=1)
    >>> bool(Pipeline("haar", 1, [Unsharp(sigma=1, amount=0.5)])(step).max() > 1)
    True
    """

    kind: ClassVar[str] = "unsharp"
    description: ClassVar[str] = "Sharpen with an unsharp mask"
    icon: ClassVar[str] = "deblur"
    words: ClassVar = {"unsharp": Word(("sigma", "amount"))}
    sigma: float = argument(1.0, "Radius σ", 0.3, 10, 0.05)
    amount: float = argument(1.0, "Amount", 0, 5, 0.01)

    def _check(self) -> None:
        super()._check()
        check_number(self.sigma, "sigma", exclusive=True)
        _check_width(self.sigma)
        check_number(self.amount, "amount")

    def on_samples(self, x: Any, operations: ArrayOperations, ndim: int) -> Any:
        """Return the sharpened samples."""
        return x + self.amount * (x - operations.convolve(x, gaussian(self.sigma), ndim))


@dataclass(frozen=True, repr=False)
class Laplace(Spatial):
    """Sharpen by subtracting a multiple of the Laplacian.

    Parameters
    ----------
    amount : float, default 0.1
        Factor of the Laplacian; the default is that of Nielsen's kernels (NTNU, 2007).
    kernel : {"cross", "diagonal"}, default "cross"
        ``cross`` uses the nearest neighbours along each axis, ``diagonal`` also the diagonal ones.
    at : {"image", "approximation", "last", "details"}, default "image"
        Where the stage acts: on the image, on each approximation before it is decomposed further, on the
        last approximation, or on the details.
    levels : sequence of int, optional
        With ``at="approximation"`` and ``at="details"``, the levels that are filtered, 1 being the finest;
        all if None.

    Examples
    --------
    >>> from undula.filters import Pipeline
    >>> step = np.repeat([[0.0, 1.0]], 8, axis=0).repeat(4, axis=1)
    >>> bool(Pipeline("haar", 1, [Laplace(0.1)])(step).max() > 1)
    True
    """

    kind: ClassVar[str] = "laplace"
    description: ClassVar[str] = "Sharpen with a Laplacian"
    icon: ClassVar[str] = "change_history"
    words: ClassVar = {"laplace": Word(("amount",)), "diagonal": Word(("amount",), {"kernel": "diagonal"})}
    amount: float = argument(0.1, "Amount", 0, 1, 0.005)
    kernel: str = argument("cross", "Kernel", options=KERNEL_LABELS)

    def _check(self) -> None:
        super()._check()
        check_number(self.amount, "amount")
        check_choice(self.kernel, "kernel", tuple(KERNEL_LABELS))

    def on_samples(self, x: Any, operations: ArrayOperations, ndim: int) -> Any:
        """Return the sharpened samples."""
        if self.kernel == "diagonal":
            return x - self.amount * (operations.convolve(x, np.ones(3), ndim) - 3**ndim * x)
        laplacian = x * 0
        for axis in range(ndim):
            laplacian = laplacian + operations.convolve_axis(x, np.array([1.0, -2.0, 1.0]), axis, ndim)
        return x - self.amount * laplacian
