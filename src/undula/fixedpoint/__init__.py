"""Fixed point: filter banks whose taps are fractions over powers of two, in 16-bit integers."""

from .filters import FixedPoint, burt57, d4, shift_rational

__all__ = ["FixedPoint", "burt57", "d4", "shift_rational"]
