"""Lifting in integers: every step adds a rounded sum, ``⌊Σ factor · other + ½⌋``, and can be undone exactly.

Factors are fractions ``whole / 2^shift``, so that a step is multiplications, additions and one shift, the
same on every device:

    target += (Σ whole · other + offset) >> shift

Factors that are no such fractions are rounded to one, as fine as sums of 16-bit numbers in 32 bits allow.
What a transform can grow to is known before it runs: by the norms of what its steps compute, a number is at
most so many times the largest sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..liftings import lifting
from ..wavelets import Wavelet

__all__ = ["Growth", "Rounding", "gains_back", "growth", "rounding"]

FINEST = 16  # bits behind the point of a factor
ROOM = 2**16  # What the factors of a step add up to, at most: then 32 bits hold any sum of 16-bit numbers.
DEEPEST = 12  # Levels after which norms hardly change.


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


class Growth(NamedTuple):
    """How large numbers get in a transform of samples up to 1, and what rounding adds to that.

    Parameters
    ----------
    numbers : float
        Any number on the way, and any coefficient.
    sums : float
        Any sum before it is shifted; for steps whose factors are ±1 over a power of two. 0 where there is
        nothing to do.
    errors : float
        What rounding may have added to a number.
    """

    numbers: float
    sums: float
    errors: float

    def bound(self, largest: int) -> int:
        """The largest number that samples up to ``largest`` can lead to."""
        return math.ceil(self.numbers * largest + self.errors)

    def fits(self, largest: int, bits: int) -> bool:
        """Whether integers of so many bits hold everything."""
        if not self.sums:  # nothing is computed
            return bool(largest < 2 ** (bits - 1))
        if bits == 64 and self.bound(largest) * ROOM >= 2**62:  # (there are no wider ones for sums)
            return False
        # (Of 32 bits, two numbers are added before they are multiplied; of 16, a difference is one, too.)
        sums = max(self.sums, 2 * self.numbers) if bits < 64 else self.sums
        return bool(math.ceil(sums * largest + 2 * self.errors) < 2 ** (bits - 1))

    def largest(self, bits: int) -> int:
        """The largest sample for which integers of so many bits hold everything."""
        low, high = 0, 2 ** (bits - 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(middle, bits) else (low, middle)
        return low


class _States(NamedTuple):
    """Along one axis: filters of all that is computed, the norms of sums, and the rounding in each."""

    filters: list[NDArray[np.float64]]
    low: NDArray[np.float64]
    sums: float  # norm of the largest sum, over the norm of the largest state
    errors: float


@lru_cache(maxsize=256)
def _states(wavelet: Wavelet) -> _States:
    chain = lifting(wavelet)
    reach = sum(max(abs(exponent) for exponent, _ in step.filter.items()) for step in chain.steps)
    width, middle = 2 * reach + 1, reach
    # What the two components are made of, by number from their own: even samples, odd ones, and what was
    # rounded in each step.
    current = np.zeros((2, 2 + len(chain.steps), width))
    current[0, 0, middle] = current[1, 1, middle] = 1

    def line(component: int) -> NDArray[np.float64]:
        """What a component is made of, along the line."""
        both = np.zeros(2 * width + abs(chain.odd))
        for phase in (0, 1):
            begin = phase * chain.odd - min(0, chain.odd)
            both[begin : begin + 2 * width : 2][:width] += current[component, phase]
        return np.trim_zeros(both)

    filters, sums, errors = [np.ones(1)], 1.0, 0.0
    for number, step in enumerate(chain.steps):
        target = int(step.is_predict)
        terms = list(step.filter.items())
        made = rounding([value for _, value in terms])
        for (exponent, _), whole in zip(terms, made.whole, strict=True):
            current[target] += whole / 2**made.shift * np.roll(current[1 - target], exponent, axis=1)
        current[target, 2 + number, middle] += 0.5
        filters.append(line(target))
        errors = max(errors, float(np.abs(current[target, 2:]).sum()))
        norm = sum(abs(w) for w in made.whole)
        if norm == len(made.whole):  # (others are summed in wider integers)
            sums = max(sums, float(norm))
    return _States(filters, line(0), sums, errors)


def _norm(taps: NDArray[np.float64]) -> float:
    return float(np.abs(taps).sum())


@lru_cache(maxsize=256)
def _norms(wavelet: Wavelet, levels: int) -> tuple[list[float], list[float], float, float]:
    """For each level: the norm of the largest state, and of the approximation before it; sums, errors."""
    states = _states(wavelet)
    low = np.ones(1)
    largest, before = [], []
    for number in range(min(levels, DEEPEST)):
        before.append(_norm(low))
        spread = 2**number
        found = 0.0
        for filt in (*states.filters, states.low):
            apart = np.zeros(spread * (filt.size - 1) + 1)
            apart[::spread] = filt
            whole = np.convolve(low, apart)
            found = max(found, _norm(whole))
            if filt is states.low:
                low = whole
        largest.append(found)
    while len(largest) < levels:  # (a little more for each, to be on the safe side)
        largest.append(1.01 * largest[-1])
        before.append(1.01 * before[-1])
    return largest, before, states.sums, states.errors


@lru_cache(maxsize=512)
def growth(wavelets: tuple[Wavelet, ...], levels: tuple[int, ...]) -> Growth:
    """What a transform makes of samples up to 1: a wavelet and a number of levels for each axis."""
    each = [_norms(wavelet, number) for wavelet, number in zip(wavelets, levels, strict=True) if number]
    if not each:
        return Growth(1.0, 0.0, 0.0)
    # (An axis whose lines are single samples by then stays as it is.)
    products = [
        math.prod(one[0][k] if k < len(one[0]) else one[0][-1] for one in each) for k in range(max(levels))
    ]
    numbers = max(products)
    sums = max(one[2] for one in each) * numbers
    # Rounding of one level, along one axis after the other; then what later levels make of it.
    single = 0.0
    for one in each:
        single = one[0][0] * single + one[3]
    return Growth(numbers, sums, single * sum(products))


@lru_cache(maxsize=256)
def gains_back(wavelet: Wavelet) -> tuple[float, float]:
    """How many times a coefficient of the low and of the high band anything can be, on the way back."""
    chain = lifting(wavelet)
    # Each component as a sum of coefficients of both bands, by number.
    current: list[list[dict[int, float]]] = [[{0: 1.0}, {}], [{}, {0: 1.0}]]
    gains = [1.0, 1.0]
    for step in reversed(chain.steps):
        target = int(step.is_predict)
        terms = list(step.filter.items())
        made = rounding([value for _, value in terms])
        for (exponent, _), whole in zip(terms, made.whole, strict=True):
            for band in (0, 1):
                own = current[target][band]
                for place, value in current[1 - target][band].items():
                    own[place + exponent] = own.get(place + exponent, 0.0) - whole / 2**made.shift * value
        for band in (0, 1):
            gains[band] = max(gains[band], sum(abs(value) for value in current[target][band].values()))
    return gains[0], gains[1]
