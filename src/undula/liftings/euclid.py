"""Factoring a polyphase matrix by Euclid's algorithm (Daubechies and Sweldens).

Splitting a lifting step off a matrix on the right is a division with remainder of one entry of a row by
the other: ``[a, b] = [a - bP, b] · [1 0; P 1]``. Divisions continue until a row holds a single monomial;
one more step clears the other row and leaves the scaling.

Laurent polynomials have two ends, so a quotient of ``m`` terms may clear ``i`` terms at the low end and
``m - i`` at the high end: there are ``m + 1`` possible remainders. A beam search follows the cheapest
sequences: few multiplications, small coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..algebra import Laurent, Number, PolyphaseMatrix
from .lifting import Lifting, LiftingStep, merged

__all__ = ["factor"]

BEAM_WIDTH = 16  # Rows kept after each division; the textbook factorizations need far fewer.
MAX_CANDIDATES = 5  # Complete factorizations returned for each row.
REACH_COST = 0.5  # Cost of reaching one pair of samples further, in multiplications.
NOISE = 1e-13  # Float remainders below this share of the largest coefficient count as zero.


@dataclass(frozen=True)
class _Poly:
    """Coefficients of the exponents from ``low`` on: a lightweight Laurent polynomial for the search."""

    low: int
    taps: tuple[Number, ...]

    def trimmed(self, noise: float) -> _Poly:
        significant = [k for k, tap in enumerate(self.taps) if abs(float(tap)) > noise]
        if not significant:
            return _Poly(0, ())
        return _Poly(self.low + significant[0], self.taps[significant[0] : significant[-1] + 1])

    def laurent(self) -> Laurent:
        return Laurent({self.low + k: tap for k, tap in enumerate(self.taps)}, 1)


@dataclass(frozen=True)
class _Row:
    """A node of the search: the entries of a row, the quotients so far, and their cost."""

    entries: tuple[_Poly, _Poly]
    quotients: tuple[tuple[int, _Poly], ...] = ()
    cost: float = 0.0


def factor(matrix: PolyphaseMatrix, error: float = 0.0) -> Iterator[Lifting]:
    """Factor a 2×2 matrix with a monomial determinant, starting from either row.

    Parameters
    ----------
    matrix : PolyphaseMatrix
        The matrix.
    error : float, optional
        The reconstruction error of the filters; remainders of that size count as zero.

    Yields
    ------
    Lifting
        The cheapest first, for each row.
    """
    noise = max(NOISE, error)
    for row in (1, 0):
        for quotients in _chains(_row(matrix, row), row, noise):
            steps = [
                LiftingStep("predict" if target == 0 else "update", quotient.laurent())
                for target, quotient in quotients
            ]
            lifting = _finish(matrix, steps, row, noise)
            if lifting is not None:
                yield lifting


def _row(matrix: PolyphaseMatrix, row: int) -> _Row:
    # Scaling a row does not change the quotients. With a largest coefficient of 1 the noise threshold is
    # relative, and rows of rational wavelets become rational.
    largest = max((t for e in matrix.rows[row] for _, t in e.items()), key=lambda t: abs(float(t)))
    first, second = (
        _Poly(low, tuple(entry[e] / largest for e in range(low, high + 1)))
        for entry in matrix.rows[row]
        for low, high in entry.support
    )
    return _Row((first, second))


def _chains(start: _Row, keep: int, noise: float) -> list[tuple[tuple[int, _Poly], ...]]:
    """Return the cheapest sequences of quotients that leave a monomial at ``keep`` and zero elsewhere."""
    done: list[_Row] = []
    beam = [start]
    while beam:
        done += [row for row in beam if not row.entries[1 - keep].taps]
        divided = [
            result for row in beam if row.entries[1 - keep].taps for result in _divisions(row, keep, noise)
        ]
        beam = sorted(divided, key=lambda row: row.cost)[:BEAM_WIDTH]
    return [row.quotients for row in sorted(done, key=lambda row: row.cost)[:MAX_CANDIDATES]]


def _divisions(row: _Row, keep: int, noise: float) -> Iterator[_Row]:
    for target in (0, 1):
        large, small = row.entries[target], row.entries[1 - target]
        if target == keep and len(small.taps) == 1:
            # Clearing all terms would leave the monomial at the wrong entry, so one term stays.
            if not large.taps:
                results = [_borrow(small)]
            elif len(large.taps) > 1:
                results = [_all_but(large, small, k) for k, tap in enumerate(large.taps) if tap]
            else:
                continue
        elif not small.taps or len(large.taps) < len(small.taps):
            continue
        else:
            count = len(large.taps) - len(small.taps) + 1
            results = [_divide(large, small, cleared) for cleared in range(count + 1)]
        for quotient, remainder in results:
            remainder = remainder.trimmed(noise)
            if target == keep and not remainder.taps:
                continue
            size = sum(abs(float(tap)) for tap in quotient.taps)
            terms = sum(1 for tap in quotient.taps if tap)
            yield _Row(
                (remainder, small) if target == 0 else (small, remainder),
                (*row.quotients, (target, quotient)),
                row.cost + terms + math.log1p(size) ** 2 + REACH_COST * _distance(quotient),
            )


def _distance(quotient: _Poly) -> int:
    """Return the distance from the changed sample to the furthest source, in pairs of samples."""
    return max(0, -quotient.low, quotient.low + len(quotient.taps) - 1)


def _divide(large: _Poly, small: _Poly, cleared: int) -> tuple[_Poly, _Poly]:
    """Return quotient and remainder; ``cleared`` terms are cleared at the low end, others at the high end."""
    remainder, width = list(large.taps), len(small.taps)
    count = len(remainder) - width + 1
    quotient: list[Number] = [Fraction(0)] * count
    for place in [*range(cleared), *range(count - 1, cleared - 1, -1)]:
        end = 0 if place < cleared else width - 1
        tap = remainder[place + end] / small.taps[end]
        quotient[place] = tap
        for k, other in enumerate(small.taps):
            remainder[place + k] -= tap * other
    return (
        _Poly(large.low - small.low, tuple(quotient)),
        _Poly(large.low + cleared, tuple(remainder[cleared : cleared + width - 1])),
    )


def _all_but(large: _Poly, small: _Poly, kept: int) -> tuple[_Poly, _Poly]:
    """Divide by a monomial, so that one term of ``large`` is left as the remainder."""
    tap = small.taps[0]
    quotient = [Fraction(0) if k == kept else value / tap for k, value in enumerate(large.taps)]
    return (
        _Poly(large.low - small.low, tuple(quotient)),
        _Poly(large.low + kept, (large.taps[kept],)),
    )


def _borrow(small: _Poly) -> tuple[_Poly, _Poly]:
    """Return the quotient that turns a zero entry at the kept position into 1."""
    return _Poly(-small.low, (-1 / small.taps[0],)), _Poly(0, (Fraction(1),))


def _finish(matrix: PolyphaseMatrix, steps: Sequence[LiftingStep], row: int, noise: float) -> Lifting | None:
    """Complete the lifting whose first steps clear one entry of ``row``, or return None."""
    residue = matrix
    for step in steps:
        residue = residue @ step.inverse().matrix
    low, high = _leading(residue[0, 0]), _leading(residue[1, 1])
    if low is None or high is None:
        return None
    quotient = residue[0, 1] / low if row == 1 else residue[1, 0] / high
    quotient = quotient.chop(noise * max(1.0, quotient.max_abs()))
    last = LiftingStep("update" if row == 1 else "predict", quotient)
    return Lifting(
        merged((*steps, last)),
        after=PolyphaseMatrix.diagonal([low, high]),
        before=PolyphaseMatrix.identity(2),
    )


def _leading(entry: Laurent) -> Laurent | None:
    """Return the monomial that an entry equals up to float noise, or None."""
    cleaned = entry.chop(1e-6 * entry.max_abs())
    return cleaned if cleaned.is_monomial else None
