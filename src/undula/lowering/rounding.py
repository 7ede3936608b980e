"""Lifting in integers: every step adds a rounded sum, ``⌊Σ factor · other + ½⌋``, and can be undone exactly.

Factors are fractions ``whole / 2^shift``, so that a step is multiplications, additions and one shift, the
same on every device:

    target += (Σ whole · other + offset) >> shift

Factors that are no such fractions are rounded to one, as fine as sums of 16-bit numbers in 32 bits allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

__all__ = ["Rounding", "rounding"]

FINEST = 16  # bits behind the point of a factor
ROOM = 2**16  # What the factors of a step add up to, at most: then 32 bits hold any sum of 16-bit numbers.


class Rounding(NamedTuple):
    """``(Σ whole · other + offset) >> shift``."""

    whole: tuple[int, ...]
    offset: int
    shift: int

    def undone(self) -> Rounding:
        """What is added to undo it: the negative of the same rounded sum."""
        return Rounding(tuple(-w for w in self.whole), (1 << self.shift) - 1 - self.offset, self.shift)


def rounding(values: Sequence[Any]) -> Rounding:
    """The factors of a step as fractions over a power of two.

    Examples
    --------
    >>> rounding([Fraction(-1, 2), Fraction(-1, 2)])
    Rounding(whole=(-1, -1), offset=1, shift=1)
    """
    total = sum(abs(float(value)) for value in values)
    finest = FINEST
    while finest and total * 2**finest >= ROOM - 1:
        finest -= 1
    shift = finest
    if all(isinstance(value, Fraction) for value in values):
        unit = math.lcm(*(value.denominator for value in values))
        if unit & (unit - 1) == 0:  # a power of two
            shift = min(finest, unit.bit_length() - 1)
    whole = tuple(
        math.floor(value * 2**shift + Fraction(1, 2))
        if isinstance(value, Fraction)
        else round(float(value) * 2**shift)
        for value in values
    )
    return Rounding(whole, 1 << shift >> 1, shift)
