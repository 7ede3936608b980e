"""Exact numbers ``a + b·√2`` with rational ``a`` and ``b``.

The taps of spline wavelets are rational numbers times √2. Arithmetic in the field Q(√2) keeps equations
between their schemes exact. Results with ``b = 0`` are plain :class:`~fractions.Fraction` objects.

    (a + b·√2)(c + d·√2) = (ac + 2bd) + (ad + bc)·√2
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError

__all__ = ["ROOT2", "Exact", "Number", "Surd", "as_number", "is_exact", "surd"]

_ROOT2 = math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class Surd:
    """The number ``a + b·√2``; ``b`` is never zero (see :func:`surd`).

    Examples
    --------
    >>> ROOT2 * ROOT2
    Fraction(2, 1)
    >>> 1 / (1 + ROOT2)
    Surd(a=Fraction(-1, 1), b=Fraction(1, 1))
    """

    a: Fraction
    b: Fraction

    def __add__(self, other: Any) -> Any:
        if isinstance(other, (float, complex)):
            return float(self) + other
        if not is_exact(other):
            return NotImplemented
        c, d = _parts(other)
        return surd(self.a + c, self.b + d)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (float, complex)):
            return float(self) * other
        if not is_exact(other):
            return NotImplemented
        c, d = _parts(other)
        return surd(self.a * c + 2 * self.b * d, self.a * d + self.b * c)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Surd:
        return Surd(-self.a, -self.b)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        return self * (other.reciprocal() if isinstance(other, Surd) else 1 / _divisor(other))

    def __rtruediv__(self, other: Any) -> Any:
        return self.reciprocal() * other

    def reciprocal(self) -> Surd:
        """Return ``1 / (a + b·√2)`` by the conjugate; the norm ``a² - 2b²`` is never zero."""
        norm = self.a * self.a - 2 * self.b * self.b
        return Surd(self.a / norm, -self.b / norm)

    def __pow__(self, exponent: int) -> Any:
        base: Any = self if exponent >= 0 else self.reciprocal()
        result: Any = Fraction(1)
        for _ in range(abs(exponent)):
            result = result * base
        return result

    def __abs__(self) -> Surd:
        return -self if float(self) < 0 else self

    def __float__(self) -> float:
        return float(self.a) + float(self.b) * _ROOT2

    def __str__(self) -> str:
        root = "√2" if abs(self.b.numerator) == 1 else f"{abs(self.b.numerator)}√2"
        if self.b.denominator != 1:
            root = f"{root}/{self.b.denominator}"
        if not self.a:
            return f"-{root}" if self.b < 0 else root
        return f"({self.a} {'-' if self.b < 0 else '+'} {root})"


Exact = Fraction | Surd
Number = Fraction | Surd | float


def surd(a: Fraction | int, b: Fraction | int) -> Exact:
    """Return the exact number ``a + b·√2``: a Fraction if ``b`` is zero, else a Surd."""
    return Surd(Fraction(a), Fraction(b)) if b else Fraction(a)


ROOT2 = Surd(Fraction(0), Fraction(1))
"""The square root of 2, exactly; sums and products with fractions stay exact."""


def _parts(value: Any) -> tuple[Fraction, Fraction]:
    if isinstance(value, Surd):
        return value.a, value.b
    return Fraction(value), Fraction(0)


def _divisor(value: Any) -> Any:
    return Fraction(value) if isinstance(value, int) else value


def is_exact(value: object) -> bool:
    """Return True for integers, Fractions and Surds."""
    return isinstance(value, (int, Fraction, Surd)) and not isinstance(value, bool)


def as_number(value: Any) -> Number:
    """Convert a value to an exact number if possible, else to a finite float.

    Examples
    --------
    >>> as_number(3), as_number(0.5)
    (Fraction(3, 1), 0.5)
    """
    exact = Fraction(value) if isinstance(value, int) and not isinstance(value, bool) else value
    try:
        number = float(exact)
    except OverflowError:
        raise ArgumentError("the coefficient is too large for a float") from None
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"a coefficient must be a real number, got {value!r} ({type(value).__name__})"
        ) from None
    if not math.isfinite(number):
        raise ArgumentError(f"a coefficient must be finite, got {number!r}")
    return exact if isinstance(exact, (Fraction, Surd)) else number
