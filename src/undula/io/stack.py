"""The axes of stacks: their names, lengths, distances of samples, and the names of channels.

A stack is an array of planes, such as the slices of a volume for each channel and time. Its axes are named by
one letter each, as microscopes do: ``T`` time, ``Z`` depth, ``C`` channels, ``Y`` rows and ``X`` columns. The
two last axes are always ``Y`` and ``X``; the red, green and blue of a pixel are not an axis of the stack.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError

__all__ = [
    "OME_AXES",
    "SAMPLES",
    "UNKNOWN",
    "StackAxes",
    "StackLayout",
    "named_axes",
    "unit_name",
    "unit_symbol",
]

Array = NDArray[Any]

OME_AXES = "TCZYX"  # What OME-TIFF and OME-Zarr call axes.
SAMPLES = "S"  # What TIFF calls the axis of red, green and blue.
UNKNOWN = "Q"  # What tifffile calls an axis of which nothing is known.
# Along shorter axes, wavelets would see little more than the ends of lines.
MIN_LENGTH = 16
# Units in the words of OME-Zarr, by their symbols and by what programs write.
UNITS = {
    "micrometer": ("µm", "μm", "um", "micron", "microns", "micrometre", "\\u00b5m", "\\u00B5m"),
    "nanometer": ("nm", "nanometre"),
    "millimeter": ("mm", "millimetre"),
    "centimeter": ("cm", "centimetre"),
    "angstrom": ("Å",),
    "meter": ("m", "metre"),
    "inch": ("in", '"'),
    "second": ("s", "sec", "seconds"),
    "millisecond": ("ms", "msec"),
    "microsecond": ("µs", "us"),
    "minute": ("min", "minutes"),
    "hour": ("h", "hours"),
}
_UNIT_NAMES = {symbol: name for name, symbols in UNITS.items() for symbol in symbols}


@dataclass(frozen=True)
class StackAxes:
    """The axes of a stack.

    Parameters
    ----------
    names : str
        One letter for each axis, such as ``"TZCYX"``.
    shape : tuple of int
    spacing : tuple of float or None, optional
        Distance between samples along each axis; None where it is unknown.
    units : tuple of str or None, optional
        Unit of the distance, such as ``"micrometer"`` or ``"second"``.
    channel_names : tuple of str, optional
        The name of each sample along ``C``; empty if there are none.

    Examples
    --------
    >>> axes = StackAxes("ZCYX", (20, 2, 64, 64), channel_names=("DAPI", "GFP"))
    >>> axes.places("ZYX")
    (0, 2, 3)
    """

    names: str
    shape: tuple[int, ...]
    spacing: tuple[float | None, ...] = ()
    units: tuple[str | None, ...] = ()
    channel_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = (None,) * len(self.names)
        object.__setattr__(self, "spacing", tuple(self.spacing) or unknown)
        units = tuple(unit_name(unit) for unit in self.units) or unknown
        object.__setattr__(self, "units", units)

    def places(self, over: str) -> tuple[int, ...]:
        """Return the numbers of axes, given their letters in any order."""
        letters = over.upper()
        if not letters or len(set(letters)) < len(letters):
            raise ArgumentError(f"each axis to filter over must be named once, such as ZYX; got {over!r}")
        for letter in letters:
            if letter not in self.names:
                raise ArgumentError(
                    f"there is no axis {letter!r} to filter over; the axes are {self.description()};"
                    " rename them with axes="
                )
        return tuple(sorted(self.names.index(letter) for letter in letters))

    def length(self, name: str) -> int:
        """Return the length of an axis; 1 if there is none of this name."""
        return self.shape[self.names.index(name)] if name in self.names else 1

    def description(self) -> str:
        """Return names and lengths as text."""
        return ", ".join(f"{name} {length}" for name, length in zip(self.names, self.shape, strict=True))

    def renamed(self, names: str, shape: Sequence[int]) -> StackAxes:
        """Return axes of other names and lengths; what is known of axes that stay is kept."""
        known = dict(zip(self.names, zip(self.spacing, self.units, strict=True), strict=True))
        pairs = [known.get(name, (None, None)) for name in names]
        spacing, units = zip(*pairs, strict=True)
        axes = StackAxes(names, tuple(shape), spacing, units, self.channel_names)
        matches = len(self.channel_names) == axes.length("C")
        return axes if matches else replace(axes, channel_names=())


@dataclass(frozen=True)
class StackLayout:
    """A stack that is divided into items, pages or volumes, which are filtered by themselves.

    Parameters
    ----------
    axes : StackAxes
    places : tuple of int
        The axes of an item; the other axes count items.
    """

    axes: StackAxes
    places: tuple[int, ...]

    @staticmethod
    def of(axes: StackAxes, over: str) -> StackLayout:
        """Return the layout for the letters of the axes to filter over."""
        return StackLayout(axes, axes.places(over))

    @property
    def item_shape(self) -> tuple[int, ...]:
        """The lengths of an item along its axes."""
        return tuple(self.axes.shape[place] for place in self.places)

    def __len__(self) -> int:
        return math.prod(self.axes.shape) // math.prod(self.item_shape)

    def items(self) -> Iterator[tuple[int | slice, ...]]:
        """Yield the index of each item."""
        yield from product(
            *(
                [slice(None)] if place in self.places else range(length)
                for place, length in enumerate(self.axes.shape)
            )
        )

    @property
    def margins(self) -> tuple[tuple[int, int], ...]:
        """How many samples are added before and after each axis of an item, for axes that are too short.

        Rows and columns stay as they are.
        """
        added = []
        for place, length in zip(self.places, self.item_shape, strict=True):
            is_short = 1 < length < MIN_LENGTH and self.axes.names[place] not in "YX"
            missing = MIN_LENGTH - length if is_short else 0
            added.append((missing // 2, missing - missing // 2))
        return tuple(added)

    @property
    def extended_shape(self) -> tuple[int, ...]:
        """The shape of an item that is :meth:`extended`."""
        rows = zip(self.item_shape, self.margins, self.is_dropped, strict=True)
        return tuple(length + sum(margin) for length, margin, drops in rows if not drops)

    @property
    def is_dropped(self) -> tuple[bool, ...]:
        """For each axis of an item, whether it has one sample only, and is no row or column."""
        names = (self.axes.names[place] for place in self.places)
        return tuple(
            length == 1 and name not in "YX" for name, length in zip(names, self.item_shape, strict=True)
        )

    def extended(self, item: Array) -> Array:
        """Return an item without axes of one sample, and with short axes extended by reflection."""
        margins = (*self.margins, *[(0, 0)] * (item.ndim - len(self.places)))
        if any(map(any, margins)):
            item = np.pad(item, margins, mode="reflect")
        index = tuple(0 if drops else slice(None) for drops in self.is_dropped)
        return item[index]

    def restored(self, item: Array) -> Array:
        """Return an item with the axes and lengths that it had before :meth:`extended`."""
        index = tuple(
            None if drops else slice(before, before + length)
            for drops, length, (before, _) in zip(self.is_dropped, self.item_shape, self.margins, strict=True)
        )
        return item[index] if any(map(any, self.margins)) or any(self.is_dropped) else item


def unit_name(text: str | None) -> str | None:
    """Return a unit in the words of OME-Zarr; None for pixels and for no unit.

    Examples
    --------
    >>> unit_name("µm"), unit_name("second"), unit_name("pixel")
    ('micrometer', 'second', None)
    """
    if text is None or not (word := text.strip()) or word.lower() in ("pixel", "pixels", "px"):
        return None
    return _UNIT_NAMES.get(word, word)


def unit_symbol(name: str | None) -> str:
    """Return the symbol of a unit, or its name if it has none."""
    return "" if name is None else UNITS.get(name, (name,))[0]


def named_axes(text: str, axes: StackAxes, has_samples: bool = False) -> StackAxes:
    """Return the axes of a stack by names that a user passed.

    Parameters
    ----------
    text : str
        One letter for each axis; ``Z40C3YX`` also gives lengths, for pages whose axes the file does not tell.
    axes : StackAxes
        The axes as far as the file tells them.
    has_samples : bool, default False
        Whether pixels have several samples, which may be named ``S``.

    Examples
    --------
    >>> pages = StackAxes("IYX", (120, 64, 64))
    >>> named_axes("Z40C3YX", pages).shape
    (40, 3, 64, 64)
    """
    letters = text.upper()
    if has_samples:
        letters = letters.removesuffix(SAMPLES)
    parts = re.findall(r"([A-Z])(\d*)", letters)
    names = "".join(name for name, _ in parts)
    example = "such as TZCYX, or Z40C3YX with lengths"
    if "".join(name + length for name, length in parts) != letters or not names.endswith("YX"):
        raise ArgumentError(f"axes must be letters that end with YX, {example}; got {text!r}")
    if len(set(names)) < len(names) or SAMPLES in names:
        raise ArgumentError(f"each axis must have a letter of its own, {example}; got {text!r}")
    lengths = [int(length) if length else None for _, length in parts]
    if len(names) == len(axes.shape):
        known: list[int | None] = list(axes.shape)
    else:
        known = [None] * (len(names) - 2) + list(axes.shape[-2:])
    lengths = [given if given is not None else length for given, length in zip(lengths, known, strict=True)]
    total = math.prod(axes.shape)
    if lengths.count(None) == 1:
        others = math.prod(length for length in lengths if length is not None)
        if others and total % others == 0:
            lengths[lengths.index(None)] = total // others
    shape = tuple(length for length in lengths if length is not None)
    if len(shape) < len(names) or math.prod(shape) != total or shape[-2:] != axes.shape[-2:]:
        raise ArgumentError(
            f"axes {text!r} do not match the {len(axes.shape)} axes of the file, {axes.description()}; name"
            f" each of them, or give lengths whose product is that of the pages, {example}"
        )
    return axes.renamed(names, shape)
