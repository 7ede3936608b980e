"""Statistics of images in parts: exact whatever the parts are.

Medians are found by counting magnitudes by their bits, 16 at a time, and sums are exact until they are
rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranks", "Statistic"]

Array = np.ndarray[Any, Any]
DIGIT_BITS = 16


@dataclass(frozen=True)
class Statistic:
    """One pass over the image for a statistic.

    Parameters
    ----------
    number : int
        Number of the node in the graph.
    kind : {"sum", "max", "median"}
    digit : int
        For medians, how many digits of the magnitudes are known already; see :func:`_counted`.
    dtype : dtype
    """

    number: int
    kind: str
    digit: int
    dtype: np.dtype[Any]

    @staticmethod
    def digits(kind: str, dtype: np.dtype[Any]) -> int:
        """Return the number of passes over the image."""
        return 8 * dtype.itemsize // DIGIT_BITS if kind == "median" else 1

    def part(self, source: Array, limit: Array | None, state: Any) -> Any:
        """Return what a block contributes to each item of an array."""
        items = source.reshape(len(source), -1)
        if self.kind == "max":
            return items.max(axis=1)
        if self.kind == "sum":
            return [_exact_sum(item) for item in items]
        assert limit is not None
        prefixes = [None] * len(items) if state is None else state.prefixes
        return [_counted(*each, self.digit) for each in zip(items, limit, prefixes, strict=True)]

    def joined(self, parts: Sequence[Sequence[Any]]) -> list[Any]:
        """Join the contributions of blocks, for each array."""
        return [self._joined(of_array) for of_array in zip(*parts, strict=True)]

    def _joined(self, parts: Sequence[Any]) -> Any:
        if self.kind == "max":
            return np.max(parts, axis=0)
        add = _add_sums if self.kind == "sum" else np.add
        return [reduce(add, of_item) for of_item in zip(*parts, strict=True)]

    def finished(self, parts: Sequence[Sequence[Any]], states: Sequence[Any] | None) -> list[Any]:
        """Return the values of each array; or, of a median, what is known after this digit."""
        totals = self.joined(parts)
        if self.kind == "max":
            return [np.asarray(total, self.dtype) for total in totals]
        if self.kind == "sum":
            return [np.array([_rounded_sum(total) for total in of_array], self.dtype) for of_array in totals]
        before = [None] * len(totals) if states is None else states
        ranks = [Ranks.after(*each, self.digit) for each in zip(totals, before, strict=True)]
        last = DIGIT_BITS * (self.digit + 1) == 8 * self.dtype.itemsize
        return [each.medians(self.dtype) for each in ranks] if last else ranks


# --- exact sums -----------------------------------------------------------------------------------

FIXED_POINT = 1200  # Bits after the point, enough for all floats.
HALF = 27  # Bits of the lower half of a mantissa; sums of halves are exact in floats.
MAX_TERMS = 1 << 25


def _exact_sum(x: Array) -> tuple[int, float]:
    """Return the sum of finite numbers as an integer in fixed point, and that of all others."""
    total, special = 0, 0.0
    for first in range(0, x.size, MAX_TERMS):
        part = x[first : first + MAX_TERMS].astype(np.float64)
        finite = np.isfinite(part)
        if not finite.all():
            special += float(part[~finite].sum())
            part = part[finite]
        mantissas, exponents = np.frexp(part)
        integers = (mantissas * 2.0**53).astype(np.int64)
        exponents = exponents.astype(np.int64) + (FIXED_POINT - 53)
        least = int(exponents.min(initial=0))
        places = exponents - least
        high = np.bincount(places, (integers >> HALF).astype(np.float64))
        low = np.bincount(places, (integers & ((1 << HALF) - 1)).astype(np.float64))
        for place, (a, b) in enumerate(zip(high.tolist(), low.tolist(), strict=True)):
            if a or b:
                total += ((int(a) << HALF) + int(b)) << (least + place)
    return total, special


def _add_sums(x: tuple[int, float], y: tuple[int, float]) -> tuple[int, float]:
    return x[0] + y[0], x[1] + y[1]


def _rounded_sum(x: tuple[int, float]) -> float:
    return float(Fraction(x[0], 1 << FIXED_POINT)) + x[1]


# --- exact medians --------------------------------------------------------------------------------


def _counted(x: Array, limit: Any, prefixes: Any, digit: int) -> NDArray[np.int64]:
    """Count the finite magnitudes above a limit by one digit of their bits.

    Parameters
    ----------
    x : array
        Floats, whose magnitudes are in the order of their bits.
    limit : float
    prefixes : pair of int or None
        The digits before this one of the two numbers in the middle; None for the first digit.
    digit : int

    Returns
    -------
    array of shape (2, 65536)
        For each of the two, how many magnitudes with its prefix have which digit.
    """
    integer = np.dtype(f"u{x.itemsize}")
    bits = np.abs(x[np.isfinite(x)]).view(integer)
    bits = bits[bits > np.abs(x.dtype.type(limit)).view(integer)]
    shift = 8 * x.itemsize - DIGIT_BITS * (digit + 1)
    digits = (bits >> integer.type(shift)) & integer.type((1 << DIGIT_BITS) - 1)
    if prefixes is None:
        return np.repeat(np.bincount(digits, minlength=1 << DIGIT_BITS)[np.newaxis], 2, axis=0)
    leading = bits >> integer.type(shift + DIGIT_BITS)
    return np.stack([np.bincount(digits[leading == p], minlength=1 << DIGIT_BITS) for p in prefixes])


@dataclass(frozen=True)
class Ranks:
    """For each item, the leading digits of the two numbers in the middle, and their ranks among those.

    An item without numbers has a median of zero, and a rank of -1.
    """

    prefixes: list[tuple[int, int]]
    ranks: list[tuple[int, int]]

    @staticmethod
    def after(counts: Sequence[NDArray[np.int64]], before: Ranks | None, digit: int) -> Ranks:
        """Return what is known after the counts of one more digit."""
        prefixes, ranks = [], []
        for item, both in enumerate(counts):
            if before is None:
                total = int(both[0].sum())
                known, rank = (0, 0), ((total - 1) // 2, total // 2) if total else (-1, -1)
            else:
                known, rank = before.prefixes[item], before.ranks[item]
            digits = [_next_digit(*each) for each in zip(both, known, rank, strict=True)]
            prefixes.append((digits[0][0], digits[1][0]))
            ranks.append((digits[0][1], digits[1][1]))
        return Ranks(prefixes, ranks)

    def medians(self, dtype: np.dtype[Any]) -> Array:
        """Return the medians, after the last digit."""
        middle = np.array(self.prefixes, f"u{dtype.itemsize}").view(dtype).astype(np.float64)
        return ((middle[:, 0] + middle[:, 1]) / 2).astype(dtype)


def _next_digit(counts: NDArray[np.int64], prefix: int, rank: int) -> tuple[int, int]:
    """Return the prefix with one more digit, and the rank among the numbers that have it."""
    if rank < 0:
        return 0, -1
    upto = np.cumsum(counts)
    digit = int(np.searchsorted(upto, rank, "right"))
    return (prefix << DIGIT_BITS) | digit, rank - int(upto[digit] - counts[digit])
