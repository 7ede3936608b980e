"""Speckle: the multiplicative noise of coherent waves in ultrasound, radar and OCT.

    f = g · η    so    log f = log g + log η

and the logarithm is filtered as if its noise were additive. The mean of log η is not zero: for intensities of
L looks it is ψ(L) - ln L, and its variance is ψ₁(L); amplitudes have half the mean and a quarter of the
variance. The inverse removes that mean again, because images would come out too dark otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .holes import fill_holes
from .operations import ArrayOperations

__all__ = ["KINDS", "MULTIPLICATIVE", "Logarithm", "check_looks", "digamma", "trigamma"]

MULTIPLICATIVE = ("intensity", "amplitude")
KINDS = (*MULTIPLICATIVE, "log")


def check_looks(looks: Any) -> None:
    """Raise an error unless the number of looks is finite and above 0."""
    number = isinstance(looks, (int, float, np.number)) and not isinstance(looks, bool)
    if not number or not 0 < looks < math.inf:
        raise ArgumentError(f"looks must be a number above 0, got {looks!r}")


def digamma(x: float) -> float:
    """Return ψ(x), the derivative of ln Γ, for x > 0.

    Examples
    --------
    >>> round(digamma(1.0), 6)  # minus Euler's constant
    -0.577216
    """
    shifted = 0.0
    while x < 8:  # The asymptotic series needs a large argument.
        shifted -= 1 / x
        x += 1
    square = 1 / (x * x)
    return shifted + math.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square / 252))


def trigamma(x: float) -> float:
    """Return ψ₁(x), the derivative of ψ, for x > 0.

    Examples
    --------
    >>> round(trigamma(1.0), 6)  # π²/6
    1.644934
    """
    shifted = 0.0
    while x < 8:
        shifted += 1 / (x * x)
        x += 1
    square = 1 / (x * x)
    return shifted + 1 / x + square / 2 + square / x * (1 / 6 - square * (1 / 30 - square / 42))


class Logarithm:
    """Logarithms of intensities or amplitudes, and the inverse without bias.

    Parameters
    ----------
    operations : ArrayOperations
    kind : {"intensity", "amplitude"}
    looks : float, optional
        Number of looks; the bias is estimated if None.
    ndim : int, default 2
        Number of spatial axes.

    Attributes
    ----------
    valid : array of bool or None
        After :meth:`forward`, where samples are valid and have a logarithm; None if all do.
    """

    def __init__(
        self, operations: ArrayOperations, kind: str, looks: float | None = None, ndim: int = 2
    ) -> None:
        self.operations, self.kind, self.looks, self.ndim = operations, kind, looks, ndim
        self.valid: Any = None

    def forward(self, x: Any, valid: Any) -> Any:
        """Return logarithms. Zeros have none: they are filled in here, and restored by :meth:`inverse`.

        On a device, negative samples are treated as zeros, because the host would have to wait for an error.
        """
        xp = self.operations.xp
        if self.operations.host and bool((x < 0).any()):
            raise ArgumentError(
                f"intensities and amplitudes must not be negative, got {float(x.min()):g}; for images"
                " that are logarithms already, use the kind 'log'"
            )
        self._positive = x > 0
        if not self.operations.host or not self._positive.all():
            self.valid = self._positive if valid is None else self._positive & valid
        else:
            self.valid = valid
        self._logarithms = xp.log(xp.where(self._positive, x, xp.ones_like(x)))
        if self.valid is not None:
            self._logarithms = fill_holes(self.operations, self._logarithms, self.valid, self.ndim)
        return self._logarithms

    def _bias(self, filtered: Any) -> Any:
        """Return the mean of the logarithm of the noise."""
        if self.looks is not None:
            bias = digamma(self.looks) - math.log(self.looks)
            if self.kind == "intensity":
                return bias
            # For amplitudes whose mean is 1.
            mean = math.lgamma(self.looks + 0.5) - math.lgamma(self.looks) - 0.5 * math.log(self.looks)
            return 0.5 * bias - mean
        # The bias is estimated from the noise that was removed.
        xp = self.operations.xp
        axes = tuple(range(1, len(filtered.shape)))
        ratio = xp.exp(self._logarithms - filtered)
        if self.valid is None:
            return -xp.log(xp.mean(ratio, axis=axes, keepdims=True))
        weights = xp.astype(xp.broadcast_to(self.valid, ratio.shape), ratio.dtype)
        counts = xp.sum(weights, axis=axes, keepdims=True)
        total = xp.sum(ratio * weights, axis=axes, keepdims=True)
        # An item without a valid sample has nothing to correct.
        ones = xp.ones_like(counts)
        mean = xp.where(counts > 0, total / xp.where(counts > 0, counts, ones), ones)
        return -xp.log(mean)

    def inverse(self, filtered: Any) -> Any:
        """Return intensities or amplitudes again."""
        xp = self.operations.xp
        values = xp.exp(filtered - self._bias(filtered))
        return xp.where(self._positive, values, xp.zeros_like(values))
