"""The base class of filter stages, and what a stage on details knows about its pyramid."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ..arrays import check_number, is_integer, is_number
from ..errors import ArgumentError, UnknownNameError
from .operations import ArrayOperations

__all__ = [
    "Argument",
    "BandLimits",
    "Details",
    "FilterStage",
    "FilteredImage",
    "Pyramid",
    "Word",
    "argument",
    "check_choice",
    "check_levels",
    "check_number",
    "plain_number",
    "round_down",
]

LARGE = 1e30  # More than any sample in its own unit has, and finite in single precision.
ENOUGH_SAMPLES = 1 << 21  # of an image, for the noise to be that of one shift

Details = list[dict[str, Any]]  # Bands by key, for each level, finest first.


class BandLimits(NamedTuple):
    """A threshold rule with its limits for some bands of a pyramid.

    Parameters
    ----------
    rule : str
        A threshold rule, or ``gain``.
    bands : list of (index, key)
        Where the bands are in :data:`Details`; index 0 is the finest level.
    lows, highs : list
        For each band its thresholds: a number, or one number per item.
    """

    rule: str
    bands: list[tuple[int, str]]
    lows: list[Any]
    highs: list[Any]

    def apply(self, details: Details, pyramid: Pyramid) -> Details:
        """Return the details with the rule applied."""
        bands = [details[index][key] for index, key in self.bands]
        shrunk = pyramid.operations.shrink(bands, self.rule, self.lows, self.highs)
        return replace_bands(details, self.bands, shrunk)


def replace_bands(details: Details, replaced: Sequence[tuple[int, str]], bands: Sequence[Any]) -> Details:
    """Return details in which the bands with these indices and keys are replaced."""
    result = [dict(level) for level in details]
    for (index, key), band in zip(replaced, bands, strict=True):
        result[index][key] = band
    return result


@dataclass(frozen=True, kw_only=True)
class Pyramid:
    """Properties of a decomposition that stages on details need.

    Parameters
    ----------
    operations : ArrayOperations
        Operations on the bands.
    norms : sequence of dict
        For each level, index 0 being the finest, the norm of the filters of each band by key.
    samples : int
        Number of samples of the decomposed image.
    ndim : int
        Number of spatial axes.
    offset : int
        The parent of coefficient ``i`` of a band, along each axis, is coefficient ``(i + offset) // 2`` of
        the same band of the next coarser level. Longer filters have larger offsets, because they delay the
        coefficients of each level.
    sigma : array, optional
        Noise of each item, if known.
    valid : sequence of array of bool
        For each level, index 0 being the finest, where the samples at the centre of the coefficients are
        valid. Empty if all samples are valid.
    floor : array
        For each item, the magnitude up to which a coefficient of the finest level counts as zero because of
        rounding.
    channels : int
        Number of channels that belong together: luma and chroma, or 1. Those of all images follow each other.
    strength : float or array
        Factor of the strength of all stages, or one for each item.
    mosaic_contrast : callable
        Takes the noise of each item, and returns the contrast of the mosaic of a sensor in it, from 0 to 1.
    """

    operations: ArrayOperations
    norms: Sequence[Mapping[str, float]]
    samples: int
    ndim: int
    offset: int
    sigma: Any = None
    valid: Sequence[Any] = ()
    floor: Any = 0.0
    channels: int = 1
    strength: Any = 1.0
    mosaic_contrast: Callable[[Any], Any] = ArrayOperations.xp.zeros_like

    def rounding_floor(self, index: int) -> Any:
        """Return the magnitude up to which a coefficient counts as zero, index 0 being the finest level.

        It grows from level to level as the approximations do.
        """
        return self.floor * 2.0 ** (index * self.ndim / 2)

    @property
    def arrays(self) -> ArrayOperations:
        """Former name of ``operations``."""
        warnings.warn("Pyramid.arrays is deprecated; use operations", DeprecationWarning, stacklevel=2)
        return self.operations

    def one_shift(self, band: Any) -> Any:
        """Return the coefficients of one shift of a band that has those of several."""
        return band[:, :1] if len(band.shape) > self.ndim + 1 else band

    def sampled(self, band: Any) -> Any:
        """Return as much of a band as its median needs: of large images, one shift."""
        return self.one_shift(band) if self.samples > ENOUGH_SAMPLES else band

    def masked(self, band: Any, index: int) -> tuple[Any, Any]:
        """Return a band with zeros at invalid samples, and the valid share of each item.

        Parameters
        ----------
        band : array
        index : int
            Index of the level of the band, 0 being the finest.
        """
        if not self.valid:
            return band, 1.0
        xp, mask = self.operations.xp, self.valid[index]
        counts = self.operations.energies([xp.astype(mask, band.dtype)])[0]
        share = counts / math.prod(mask.shape[1:])  # Masks are the same for all shifts.
        return band * mask, xp.maximum(share, xp.full_like(share, 1e-9))


class FilteredImage(NamedTuple):
    """What a stage on results knows about the image that was filtered.

    Parameters
    ----------
    samples : array
        The image before its decomposition, with one item per image and channel along the first axis.
    noise : callable
        Returns the noise of each item, which it estimates unless it is known.
    ndim : int
        Number of spatial axes.
    channels : int
        Number of channels that belong together: luma and chroma, or 1. Those of all images follow each other.
    spectrum : NoiseSpectrum, optional
        That of noise that is not white.
    strength : float or array
        Factor of the strength of the stage, or one for each item.
    camera_share : callable
        Returns the share of noise, from 0 to 1, that is recognised as that of a camera, for each item or all.
    """

    samples: Any
    noise: Callable[[], Any]
    ndim: int
    channels: int
    spectrum: Any = None
    strength: Any = 1.0
    camera_share: Callable[[], Any] = float


@dataclass(frozen=True)
class Argument:
    """The description of an argument of a stage, from which Studio makes a control."""

    label: str
    low: float = 0.0  # Range of a number.
    high: float = 1.0
    step: float | None = None  # None for a rounded 200th of ``high``.
    of_span: bool = False  # ``high`` is a share of the span of the samples, and ``step`` one of that.
    per_level: bool = False  # The number may be a tuple, with a value for each level.
    integer: bool = False
    auto: str = ""  # Label of the value None, if that leaves the number to the filter.
    hint: str = ""
    options: dict[Any, str] | None = None  # Values with their labels, if the argument is a choice.
    multiple: bool = False  # Any number of options, or of levels, can be chosen; None stands for all.
    advanced: bool = False  # Hidden until the visitor asks for more.
    kept: bool = False  # Kept by a reset, because it defines what the stage does.

    def bounds(self, span: float) -> tuple[float, float, float]:
        """Return lowest value, highest value and step for samples with this span."""
        high = round_down(self.high * span) if self.of_span else self.high
        step = round_down(high / 200) if self.step is None else self.step * (high if self.of_span else 1)
        return self.low, high, step


def argument(default: Any, label: str, *bounds: Any, **description: Any) -> Any:
    """Return the field for an argument, given its default and the parameters of :class:`Argument`."""
    return field(default=default, metadata={"argument": Argument(label, *bounds, **description)})


def round_down(x: float) -> float:
    """Round down to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(x))
    return power * max(step for step in (1, 2, 5) if step * power <= x * 1.0001)


class Word(NamedTuple):
    """A word of a command line that stands for a stage, such as ``unsharp:1:0.5``."""

    numbers: tuple[str, ...]  # Arguments that the numbers stand for; one ``per_level`` takes all numbers.
    arguments: Mapping[str, Any] = {}  # Arguments that the name stands for.


@dataclass(frozen=True, repr=False)
class FilterStage:
    """Base class of the stages of a :class:`Pipeline`.

    A stage is a frozen dataclass: its fields are its arguments, and instances can be compared, printed and
    written as JSON. Subclasses define ``kind``, the name in JSON, and override one of the methods that
    begin with ``on``. For Studio, they describe themselves in one line, name an icon of Google's Material
    Icons, and declare their fields by :func:`argument`; ``words`` are their names on the command line.

    Examples
    --------
    >>> from undula.filters import Blur
    >>> isinstance(Blur(), FilterStage), Blur.kind
    (True, 'blur')
    """

    kind: ClassVar[str] = ""
    description: ClassVar[str] = "Custom stage"
    icon: ClassVar[str] = "extension"
    words: ClassVar[Mapping[str, Word]] = {}

    def __post_init__(self) -> None:
        for each in fields(self):  # JSON has lists where values are tuples, and no numbers of NumPy.
            value = getattr(self, each.name)
            if isinstance(value, (list, tuple, np.ndarray, np.generic)):
                object.__setattr__(self, each.name, _frozen(value))
        self._check()

    def __repr__(self) -> str:
        arguments = [f"{name}={value!r}" for name, value in self.non_defaults().items()]
        return f"{type(self).__name__}({', '.join(arguments)})"

    @classmethod
    def title(cls) -> str:
        """Return the name of the stage in Studio."""
        return cls.kind.capitalize()

    @classmethod
    def arguments(cls) -> dict[str, Argument]:
        """Return the descriptions of the arguments, in the order of the signature."""
        described = [each for each in fields(cls) if "argument" in each.metadata]
        described.sort(key=lambda each: bool(each.kw_only))
        return {each.name: each.metadata["argument"] for each in described}

    def applicable(self) -> list[str]:
        """Return the names of the described arguments that have an effect, in the order of the controls."""
        return list(self.arguments())

    def with_argument(self, name: str, value: Any, span: float) -> Self:
        """Return the stage with another value of an argument, for samples with this span.

        Parameters
        ----------
        name : str
            Name of the argument.
        value : object
            Its new value.
        span : float
            Range of the samples, such as 255, in whose units some arguments are given.

        Returns
        -------
        FilterStage
            A copy; the stage itself is unchanged.
        """
        return replace(self, **{name: value})

    def non_defaults(self) -> dict[str, Any]:
        """Return the arguments that differ from their defaults."""
        values = {each: getattr(self, each.name) for each in fields(self)}
        return {each.name: value for each, value in values.items() if value != each.default}

    def _check(self) -> None:
        """Raise an error for invalid arguments."""

    def in_units(self, unit: float) -> Self:
        """Return the stage for samples that were divided by a number.

        Parameters
        ----------
        unit : float
            The number, above 0.

        Returns
        -------
        FilterStage
            With the arguments that are declared as shares of the span of samples in this unit.
        """
        in_samples = [name for name, described in self.arguments().items() if described.of_span]
        return replace(self, **{name: _divided(getattr(self, name), unit) for name in in_samples})

    def places(self) -> tuple[str, ...]:
        """Return the places of the pyramid at which the stage works."""
        return ("details",)

    def on_details(self, details: Details, pyramid: Pyramid) -> Details:
        """Filter the details of all levels, finest first.

        Parameters
        ----------
        details : list of dict
            For each level, bands by key. Each band has one item per image and channel along its first axis.
        pyramid : Pyramid
            The transform that the details belong to, and its noise.

        Returns
        -------
        list of dict
            The filtered details.
        """
        return details

    def on_samples(self, x: Any, operations: ArrayOperations, ndim: int) -> Any:
        """Filter an image or an approximation.

        Parameters
        ----------
        x : array
            The image or the approximation.
        operations : ArrayOperations
            The functions to compute with, of the library of ``x``.
        ndim : int
            Number of spatial axes, which are the last ones.

        Returns
        -------
        array
            Samples of the same shape.
        """
        return x

    def on_result(self, x: Any, image: FilteredImage) -> Any:
        """Filter the reconstructed image.

        Parameters
        ----------
        x : array
            The reconstructed image, which is ``image.samples`` if there is no other stage.
        image : FilteredImage
            The image before the filter, and its noise.

        Returns
        -------
        array
            Samples of the same shape.
        """
        return x

    def to_dict(self) -> dict[str, Any]:
        """Return the kind of the stage and the arguments that differ from their defaults, for JSON."""
        return {"stage": self.kind, **{name: _thawed(value) for name, value in self.non_defaults().items()}}


def _divided(value: Any, unit: float) -> Any:
    """Divide a number, or those in nested tuples."""
    if isinstance(value, tuple):
        return tuple(_divided(part, unit) for part in value)
    return min(value / unit, LARGE) if is_number(value) else value


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted((key, _frozen(part)) for key, part in value.items()))
    value = plain_number(value)
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def plain_number(value: Any) -> Any:
    """Return numbers and arrays of NumPy as numbers and lists of Python, and anything else unchanged."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _thawed(value: Any) -> Any:
    return [_thawed(part) for part in value] if isinstance(value, tuple) else value


def check_choice(value: Any, name: str, choices: Sequence[str]) -> None:
    """Raise an error unless ``value`` is one of the choices."""
    if value not in choices:
        raise UnknownNameError(name, value, choices)


def check_levels(levels: Any) -> None:
    """Raise an error unless ``levels`` is None or a tuple of levels."""
    if levels is None:
        return
    if not isinstance(levels, tuple) or not all(is_integer(n) and n >= 1 for n in levels):
        raise ArgumentError(f"levels must be integers from 1 (the finest level), got {levels!r}")
