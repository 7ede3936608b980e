"""Verbs: denoising, despeckling, sharpening and enhancing, as a table of their options.

:data:`VERBS` has for each verb its options with their defaults and help, and the pipeline that they make.
Functions, commands and presets of the Studio are made from it: ``undula.denoise(image, strength=2)`` and
``undula denoise in.png out.png --strength 2`` both run ``Denoising(strength=2).pipeline()``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ..arrays import check_integer
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..wavelets import Wavelet
from .base import check_choice, check_number
from .collaborative import PROFILE_NAMES, Collaborative
from .directional import Directional
from .pipeline import Pipeline
from .planes import COLORS
from .poisson import PHOTON_NOISE
from .shrinkage import LOCAL_METHODS, METHODS, RULES
from .speckle import KINDS, check_looks, trigamma
from .spectrum import ESTIMATED, NoiseSpectrum
from .stages import Contrast, FilterStage, Gain, Laplace, Shrink, Unsharp
from .video import TemporalDenoiser

__all__ = ["VERBS", "Denoising", "Despeckling", "Enhancing", "Sharpening", "Verb", "VerbOption"]

NAMED_METHODS = tuple(name for name in METHODS if name != "given")
COLLABORATIVE = "collaborative"
DIRECTIONAL = "directional"
DENOISING_METHODS = (*NAMED_METHODS, DIRECTIONAL, COLLABORATIVE)
QUALITIES = ("fast", "balanced", "best")
TEMPORAL_STEPS = {"fast": 6, "balanced": 4, "best": 3}  # samples from one reference to the next
CORRELATED = "correlated"
GAUSSIAN = "gaussian"
NOISE_KINDS = (GAUSSIAN, CORRELATED, *PHOTON_NOISE)
# The options that a method uses, besides those that all of them do.
WAVELET_OPTIONS = ("wavelet", "level", "invariant")
METHOD_OPTIONS = {
    **dict.fromkeys(NAMED_METHODS, (*WAVELET_OPTIONS, "rule", "noise")),
    **dict.fromkeys(LOCAL_METHODS, (*WAVELET_OPTIONS, "noise")),
    DIRECTIONAL: (),
    COLLABORATIVE: ("profile", "noise"),
}
SHARPENING_METHODS = ("unsharp", "laplace", "diagonal", "wavelet")
DECIMATED_WAVELET = "bior4.4"  # The default for denoising without shifts.
METHOD_HELP = "Method of shrinkage. The best one is bivariate, closely followed by block."
WAVELET_HELP = "Name of a wavelet."
LEVEL_HELP = "Number of levels."
LEVEL_AUTO = "up to 4, depending on the size of the image"
SHIFTS_HELP = "Number of the finest levels that are computed for all shifts: fewer artefacts, but slower."


@dataclass(frozen=True)
class VerbOption:
    """The description of an option.

    Parameters
    ----------
    help : str
    choices : tuple of str
    auto : str
        What None stands for.
    for_video : optional
        Another default for video.
    video_only : bool
    bounds : tuple of float, optional
        Lowest value, highest value and step of a slider.
    """

    help: str
    choices: tuple[str, ...] = ()
    auto: str = ""
    for_video: Any = None
    video_only: bool = False
    bounds: tuple[float, float, float] | None = None


def option(default: Any, *description: Any, **more: Any) -> Any:
    """Return the field for an option, given its default and the parameters of :class:`VerbOption`."""
    return field(default=default, metadata={"option": VerbOption(*description, **more)})


class Verb(ABC):
    """Base class of the verbs, which are dataclasses of their options.

    Attributes
    ----------
    summary : str
    takes_sigma : bool
        Whether the noise can be given.
    windows : bool
        Whether windows of frames of a video can be filtered as volumes.
    luma_only : bool
        Whether only the luma of a video is filtered.
    """

    summary: ClassVar[str]
    takes_sigma: ClassVar[bool] = False
    windows: ClassVar[bool] = False
    luma_only: ClassVar[bool] = True

    @property
    def noise_sigma(self) -> float | None:
        """The noise that follows from the options; None if it does not."""
        return None

    def uses(self, name: str) -> bool:
        """Return whether an option applies to the others."""
        return True

    def pipeline(self) -> Pipeline:
        """Return the pipeline of these options."""
        try:  # Options that compare equal may differ in type, as 1 and True do.
            return _pipeline(self, tuple(map(type, vars(self).values())))
        except TypeError:  # Some option cannot be a key.
            return self._build()

    @abstractmethod
    def _build(self) -> Pipeline:
        """Build the pipeline of these options."""

    @classmethod
    def options(cls) -> dict[str, VerbOption]:
        """Return the descriptions of the options by name."""
        return {each.name: each.metadata["option"] for each in fields(cls)}  # type: ignore[arg-type]


def _check_method(method: Any, verb: str, methods: Sequence[str] = NAMED_METHODS) -> None:
    """Raise an error unless this is a method that needs no thresholds."""
    if method == "given":
        raise ArgumentError(f"{verb} takes no thresholds; they are for the stage Shrink of a pipeline")
    check_choice(method, "method", methods)


@lru_cache(maxsize=64)
def _pipeline(verb: Verb, types: tuple[type, ...]) -> Pipeline:
    return verb._build()


@dataclass(frozen=True, kw_only=True)
class Denoising(Verb):
    """The options of :func:`undula.denoise`."""

    summary: ClassVar[str] = "Remove noise from images, DICOM files and video"
    takes_sigma: ClassVar[bool] = True
    luma_only: ClassVar[bool] = False
    quality: str = option(
        "fast",
        "Higher quality takes longer; balanced and best also filter similar blocks together.",
        QUALITIES,
    )
    method: str = option(
        "bivariate",
        "Method of shrinkage; bivariate is the best of those that use wavelets. Quality balanced and best"
        " blend its result with that of similar blocks; directional and collaborative are for fast.",
        DENOISING_METHODS,
    )
    profile: str = option("normal", "Search range and group size of the method collaborative.", PROFILE_NAMES)
    strength: float = option(1.0, "Strength of the filter; values above 1 remove more.", bounds=(0, 3, 0.01))
    luma: float = option(
        1.0, "Factor of the strength for luma, the brightness of colours.", bounds=(0, 3, 0.01)
    )
    chroma: float = option(
        1.0,
        "Factor of the strength for chroma, in which the noise of cameras is coarse.",
        bounds=(0, 3, 0.01),
    )
    wavelet: str | Wavelet | None = option(
        None, WAVELET_HELP, auto=f"db2, or {DECIMATED_WAVELET} without shifts"
    )
    level: int | None = option(None, LEVEL_HELP, auto=LEVEL_AUTO)
    rule: str = option(Shrink.rule, "Threshold rule, for methods that select thresholds.", RULES)
    invariant: bool | int = option(2, SHIFTS_HELP, for_video=0)
    color: str = option(Pipeline.color, "Whether to filter luma and chroma, or each channel.", COLORS)
    noise: str | NoiseSpectrum | None = option(
        None,
        "White noise, noise that is correlated between neighbouring pixels, or noise of counted photons;"
        " poisson-gaussian adds read noise, --sigma.",
        NOISE_KINDS,
        auto="correlated where the noise of a camera is recognised, otherwise gaussian",
    )
    gain: float | None = option(
        None, "What one photon adds to a pixel, for noise poisson and poisson-gaussian.", auto="estimated"
    )
    calibrate: bool = option(
        False, "Find the strength with the least estimated error; takes about twenty times as long."
    )
    over_time: int = option(
        0,
        "Number of frames around each frame of a video to filter together, following motion: 2 to 14, or 0.",
        video_only=True,
    )

    def uses(self, name: str) -> bool:
        """Return whether the method has a use for an option."""
        return name not in WAVELET_OPTIONS or name in METHOD_OPTIONS.get(self.method, WAVELET_OPTIONS)

    def denoiser(self) -> TemporalDenoiser:
        """Return the filter over time with these options."""
        check_choice(self.quality, "quality", QUALITIES)
        check_number(self.strength, "strength")
        check_choice(self.color, "color", COLORS)
        unused = ("method", "profile", "wavelet", "level", "rule", "invariant", "noise", "gain", "calibrate")
        self._refuse(
            unused, f"over_time={self.over_time}, which filters groups of similar blocks along their motion"
        )
        self._check_strengths()
        return TemporalDenoiser(
            self.over_time, TEMPORAL_STEPS[self.quality], self.strength, self.color, self.luma, self.chroma
        )

    def _build(self) -> Pipeline:
        """Return the pipeline that denoises single images with these options."""
        if not isinstance(self.invariant, (bool, np.bool_)):
            check_integer(self.invariant, "invariant")
        _check_method(self.method, "denoise", DENOISING_METHODS)
        check_choice(self.quality, "quality", QUALITIES)
        if self.noise is not None and not isinstance(self.noise, NoiseSpectrum):
            check_choice(self.noise, "noise", NOISE_KINDS)
        check_choice(self.profile, "profile", PROFILE_NAMES)
        check_choice(self.rule, "threshold rule", RULES)
        if self.quality != "fast":
            if self.method in (COLLABORATIVE, DIRECTIONAL):
                raise ArgumentError(
                    f"quality={self.quality!r} selects the method; omit method={self.method!r} or quality"
                )
            self._refuse(["profile"], f"quality={self.quality!r}, which selects it")
        if self.calibrate:
            self._refuse(["strength", "noise"], "calibrate=True, which finds the strength for Gaussian noise")
        used = METHOD_OPTIONS[self.method]
        unused = [name for name in ("profile", *WAVELET_OPTIONS, "rule", "noise") if name not in used]
        self._refuse(unused, f"method={self.method!r}")
        correlated = self.noise == CORRELATED
        grouped = self.quality != "fast" or self.method == COLLABORATIVE
        self._check_strengths()
        options: dict[str, Any] = {"color": self.color, "gain": self.gain}
        options |= {"luma": self.luma, "chroma": self.chroma}
        if self.noise in PHOTON_NOISE:
            options["photons"] = self.noise
        elif isinstance(self.noise, NoiseSpectrum) or (correlated and grouped):
            options["spectrum"] = ESTIMATED if correlated else self.noise
        recognized = "white" if self.noise is not None else "auto"
        collaborative = Collaborative(self.profile, strength=self.strength)
        if self.method == COLLABORATIVE:
            return Pipeline("db2", 0, [collaborative], **options)
        if self.method == DIRECTIONAL:
            return Pipeline("db2", 0, [Directional(strength=self.strength)], **options)
        estimated = "correlated" if correlated else "auto" if self.noise is None else "white"
        stages: list[FilterStage] = [Shrink(self.method, self.rule, strength=self.strength, noise=estimated)]
        invariant = self.invariant
        if self.quality == "balanced":
            stages.append(replace(collaborative, profile="normal", noise=recognized))
        elif self.quality == "best":
            stages.append(replace(collaborative, profile="best", noise=recognized))
            invariant = True if invariant == Denoising.invariant else invariant
        wavelet = self.wavelet or ("db2" if invariant else DECIMATED_WAVELET)
        return Pipeline(wavelet, self.level, stages, invariant=invariant, **options)

    def _refuse(self, names: Sequence[str], reason: str) -> None:
        """Raise an error for options that were given, although they do not apply."""
        for name in names:
            given = getattr(self, name)
            if given not in (getattr(Denoising, name), GAUSSIAN):
                raise ArgumentError(f"{name}={given!r} does not apply to {reason}; omit one of them")

    def _check_strengths(self) -> None:
        """Raise an error for strengths of luma and chroma that there are not, or that are no strengths."""
        for name in ("luma", "chroma"):
            check_number(getattr(self, name), name)
        if self.color != Denoising.color:
            self._refuse(["luma", "chroma"], f"color={self.color!r}; pass strength instead")


@dataclass(frozen=True, kw_only=True)
class Despeckling(Verb):
    """The options of :func:`undula.despeckle`.

    ``log`` images have speckle of a few pixels, while larger structures are tissue. They are filtered with
    noise estimated for each band, and with two levels.
    """

    summary: ClassVar[str] = "Remove speckle from ultrasound, radar and OCT images, DICOM files and video"
    windows: ClassVar[bool] = True
    kind: str = option("intensity", "What the pixels are; log is compressed for display.", KINDS)
    looks: float | None = option(None, "Number of looks that were averaged.", auto="estimated")
    strength: float = option(1.0, "Strength of the filter; values above 1 remove more.", bounds=(0, 3, 0.01))
    method: str = option("bivariate", METHOD_HELP, NAMED_METHODS)
    wavelet: str | Wavelet = option("db2", WAVELET_HELP)
    level: int | None = option(None, LEVEL_HELP, auto=f"2 for kind log, otherwise {LEVEL_AUTO}")
    invariant: bool | int = option(Denoising.invariant, SHIFTS_HELP)
    noise: str | None = option(
        None,
        "Whether speckle is as small as pixels (white), or larger (bands).",
        ("white", "bands"),
        auto="bands for kind log, otherwise white",
    )

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
    def noise_sigma(self) -> float | None:
        """Standard deviation of the noise of the logarithm; None if the number of looks is unknown."""
        if self.looks is None:
            return None
        return float(np.sqrt(trigamma(float(self.looks)))) * (1.0 if self.kind == "intensity" else 0.5)

    def _build(self) -> Pipeline:
        """Return the pipeline that despeckles with these options."""
        _check_method(self.method, "despeckle")
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
class Sharpening(Verb):
    """The options of :func:`undula.sharpen`."""

    summary: ClassVar[str] = "Sharpen images and video"
    amount: float = option(1.0, "Strength of the sharpening; 0 changes nothing.", bounds=(0, 3, 0.01))
    method: str = option(
        "unsharp", "Unsharp mask, Laplacian of 4 or 8 neighbours, or gain of details.", SHARPENING_METHODS
    )
    sigma: float = option(Unsharp.sigma, "Standard deviation of the blur of unsharp, in pixels.")

    def _build(self) -> Pipeline:
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
class Enhancing(Verb):
    """The options of :func:`undula.enhance`."""

    summary: ClassVar[str] = "Enhance weak structures at all scales of images and video"
    amount: float = option(
        0.4,
        "From 0, which changes nothing, to 1, which makes all details equally strong.",
        bounds=(0, 1, 0.01),
    )
    denoise: bool = option(True, "Whether to remove noise first.")
    wavelet: str | Wavelet = option("bior4.4", WAVELET_HELP)
    level: int | None = option(None, LEVEL_HELP, auto=LEVEL_AUTO)
    max_gain: float = option(Contrast.max_gain, "Upper limit on the gain applied to any detail.")

    def _build(self) -> Pipeline:
        """Return the pipeline that enhances with these options."""
        if not isinstance(self.denoise, (bool, np.bool_)):
            raise ArgumentTypeError(f"denoise must be True or False, got {self.denoise!r}")
        stages: list[FilterStage] = [Shrink("bayes", strength=0.7)] if self.denoise else []
        return Pipeline(self.wavelet, self.level, [*stages, Contrast(self.amount, self.max_gain)])


VERBS: dict[str, type[Verb]] = {
    "denoise": Denoising,
    "despeckle": Despeckling,
    "sharpen": Sharpening,
    "enhance": Enhancing,
}
