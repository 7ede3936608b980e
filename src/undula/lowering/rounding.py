"""Integer lifting: each step adds a rounded sum, ``⌊Σ factor · other + ½⌋``, and can be undone exactly.

Factors are fractions ``weight / 2^shift``. A step takes multiplications, additions and one shift, the same on
every device:

    target += (Σ weight · other + offset) >> shift

Other factors are rounded to such fractions, as finely as sums of 16-bit numbers in 32 bits allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

__all__ = ["Rounding", "rounding"]

MAX_SHIFT = 16  # fractional bits of a factor
MAX_WEIGHT = 2**16  # sum of the weights of a step: then 32 bits hold any sum of 16-bit numbers


class Rounding(NamedTuple):
    """``(Σ weight · other + offset) >> shift``."""

    weights: tuple[int, ...]
    offset: int
    shift: int

    def undone(self) -> Rounding:
        """Return the step that undoes this one: it adds the negative of the same rounded sum."""
        return Rounding(tuple(-w for w in self.weights), (1 << self.shift) - 1 - self.offset, self.shift)


def rounding(values: Sequence[Any]) -> Rounding:
    """Return the factors of a step as fractions over a power of two.

    Examples
    --------
    >>> rounding([Fraction(-1, 2), Fraction(-1, 2)])
    Rounding(weights=(-1, -1), offset=1, shift=1)
    """
    total = sum(abs(float(value)) for value in values)
    finest = MAX_SHIFT
    while finest and total * 2**finest >= MAX_WEIGHT - 1:
        finest -= 1
    shift = finest
    if all(isinstance(value, Fraction) for value in values):
        unit = math.lcm(*(value.denominator for value in values))
        if unit & (unit - 1) == 0:  # a power of two
            shift = min(finest, unit.bit_length() - 1)
    weights = tuple(
        math.floor(value * 2**shift + Fraction(1, 2))
        if isinstance(value, Fraction)
        else round(float(value) * 2**shift)
        for value in values
    )
    return Rounding(weights, 1 << shift >> 1, shift)
