"""What all stages are: values, done at one place of a pyramid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from .arrays import Arrays

__all__ = ["Pyramid", "Stage", "check_levels", "named", "number"]


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
        """A band with zeros where samples are invalid, and the share of each item that is valid."""
        if not self.valid:
            return band, 1.0
        mask = self.valid[level]
        share: Any = 1.0
        if self.arrays.host:
            share = np.maximum(np.mean(mask, axis=tuple(range(1, mask.ndim))), 1e-9)
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


def number(value: Any, what: str, least: float = 0.0, open_: bool = False) -> None:
    """An error for what is no number from ``least`` on."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(f"{what} must be a number, got {value!r}")
    if not math.isfinite(value) or value < least or (open_ and value == least):
        above = "above" if open_ else "at least"
        raise ArgumentError(f"{what} must be {above} {least:g}, got {value!r}")


def named(value: Any, what: str, known: Sequence[str]) -> None:
    """An error for a name that nobody knows."""
    if value not in known:
        raise UnknownNameError(what, value, known)


def check_levels(levels: Any) -> None:
    """An error for what is no choice of levels."""
    if levels is None:
        return
    if not isinstance(levels, tuple) or not all(isinstance(n, int) and n >= 1 for n in levels):
        raise ArgumentError(f"levels are integers from 1, the finest, on; got {levels!r}")
