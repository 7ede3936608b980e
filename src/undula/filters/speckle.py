"""Speckle: noise that is multiplied, as coherent waves make it in ultrasound, radar and OCT.

    f = g · η    so    log f = log g + log η

and what is left after the logarithm is filtered as noise that is added. The mean of log η is not zero: of
intensities with L looks it is ψ(L) - ln L, and its variance ψ₁(L); half of that and a quarter for amplitudes.
On the way back the mean is taken out again, or images would come out darker than they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .arrays import Arrays
from .holes import filled

__all__ = ["KINDS", "MULTIPLIED", "Logarithm", "digamma", "looks_of", "trigamma"]

MULTIPLIED = ("intensity", "amplitude")
KINDS = (*MULTIPLIED, "log")


def digamma(x: float) -> float:
    """ψ(x), the derivative of ln Γ, for x > 0.

    Examples
    --------
    >>> round(digamma(1.0), 6)  # minus Euler's constant
    -0.577216
    """
    found = 0.0
    while x < 8:
        found -= 1 / x
        x += 1
    square = 1 / (x * x)
    return found + math.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square / 252))


def trigamma(x: float) -> float:
    """ψ₁(x), the derivative of ψ, for x > 0.

    Examples
    --------
    >>> round(trigamma(1.0), 6)  # π²/6
    1.644934
    """
    found = 0.0
    while x < 8:
        found += 1 / (x * x)
        x += 1
    square = 1 / (x * x)
    return found + 1 / x + square / 2 + square / x * (1 / 6 - square * (1 / 30 - square / 42))


def looks_of(variance: float) -> float:
    """How many looks have this variance of the logarithm of intensities."""
    low, high = 1e-3, 1e6
    if variance <= trigamma(high):
        return high
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if trigamma(middle) > variance else (low, middle)
    return math.sqrt(low * high)


class Logarithm:
    """To logarithms and back, without the bias."""

    def __init__(self, arrays: Arrays, kind: str, looks: float | None = None, places: int = 2) -> None:
        self.arrays, self.kind, self.looks, self.places = arrays, kind, looks, places
        self.valid: Any = None

    def taken(self, x: Any, valid: Any) -> Any:
        """Logarithms; zeros have none, so that they are left out and stay zeros."""
        xp = self.arrays.xp
        if self.arrays.host and bool((x < 0).any()):
            raise ArgumentError(f"intensities and amplitudes are not negative, got {float(x.min()):g}")
        positive = x > 0
        self._positive = positive
        if not self.arrays.host or not positive.all():
            self.valid = positive if valid is None else positive & valid
        else:
            self.valid = valid
        logs = xp.log(xp.where(positive, x, xp.ones_like(x)))
        self._given = logs
        if self.valid is None:
            return logs
        # What has no logarithm is as large as those around it.
        self._given = filled(self.arrays, logs, self.valid, self.places)
        return self._given

    def bias(self, made: Any) -> Any:
        """The mean of the logarithm of the noise."""
        if self.looks is not None:
            known = digamma(self.looks) - math.log(self.looks)
            if self.kind == "intensity":
                return known
            # (Of amplitudes whose mean is 1.)
            mean = math.lgamma(self.looks + 0.5) - math.lgamma(self.looks) - 0.5 * math.log(self.looks)
            return 0.5 * known - mean
        # Of the noise that was removed, which is what is known of it.
        xp = self.arrays.xp
        axes = tuple(range(1, len(made.shape)))
        ratio = xp.exp(self._given - made)
        if self.valid is None:
            return -xp.log(xp.mean(ratio, axis=axes, keepdims=True))
        weights = xp.astype(xp.broadcast_to(self.valid, ratio.shape), ratio.dtype)
        counts = xp.sum(weights, axis=axes, keepdims=True)
        total = xp.sum(ratio * weights, axis=axes, keepdims=True)
        # (Where nothing is valid there is nothing to correct.)
        some = counts > 0
        return -xp.log(
            xp.where(some, total / xp.where(some, counts, xp.ones_like(counts)), xp.ones_like(total))
        )

    def undone(self, made: Any) -> Any:
        """Intensities or amplitudes again."""
        xp = self.arrays.xp
        back = xp.exp(made - self.bias(made))
        return xp.where(self._positive, back, xp.zeros_like(back))


def equivalent_looks(x: np.ndarray[Any, Any]) -> float:
    """Of an even region of intensities: its squared mean over its variance."""
    return float(np.mean(x) ** 2 / np.var(x))
