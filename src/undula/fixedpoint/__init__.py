"""Fixed-point filter banks: taps are fractions over powers of two, samples are 16-bit integers."""

from .filters import FixedPoint, burt57, d4, shift_rational

__all__ = ["FixedPoint", "burt57", "d4", "shift_rational"]
