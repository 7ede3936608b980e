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
from ..lowering.symbolic import materialize, xp
from .holes import fill_holes, valid_counts

__all__ = ["KINDS", "MULTIPLICATIVE", "Logarithm", "check_intensities", "check_looks", "digamma", "trigamma"]

MULTIPLICATIVE = ("intensity", "amplitude")
KINDS = (*MULTIPLICATIVE, "log")


def check_looks(looks: Any) -> None:
    """Raise an error unless the number of looks is finite and above 0."""
    number = isinstance(looks, (int, float, np.number)) and not isinstance(looks, bool)
    if not number or not 0 < looks < math.inf:
        raise ArgumentError(f"looks must be a number above 0, got {looks!r}")


def check_intensities(x: np.ndarray[Any, Any], mask: Any = None) -> bool:
    """Return whether all valid samples are above zero, and raise an error for negative ones."""
    least = float(x.min() if mask is None else x[mask].min())
    if least < 0:
        raise ArgumentError(
            f"intensities and amplitudes must not be negative, got {least:g}; for images that are logarithms"
            " already, use the kind 'log'"
        )
    return least > 0


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

    def __init__(self, kind: str, looks: float | None = None, ndim: int = 2) -> None:
        self.kind, self.looks, self.ndim = kind, looks, ndim
        self.valid: Any = None

    def forward(self, x: Any, valid: Any, positive: bool = False) -> Any:
        """Return logarithms. Zeros have none: they are filled in here, and restored by :meth:`inverse`.

        Negative samples count as zeros; :func:`check_intensities` finds them where that is possible. Nothing
        is filled in if all samples are known to be ``positive``.
        """
        self._positive = x > 0
        self.valid = valid
        if not positive:
            self.valid = self._positive if valid is None else self._positive & valid
        self._logarithms = xp.log(xp.where(self._positive, x, 1.0))
        if self.valid is not None:
            self._counts = valid_counts(self._logarithms, self.valid)
            self._logarithms = fill_holes(self._logarithms, self.valid, self.ndim, self._counts)
            materialize(self._logarithms)  # They are read twice, and take long to compute.
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
        axes = tuple(range(1, len(filtered.shape)))
        ratio = xp.exp(self._logarithms - filtered)
        if self.valid is None:
            return -xp.log(xp.mean(ratio, axis=axes, keepdims=True))
        weights = xp.astype(xp.broadcast_to(self.valid, ratio.shape), ratio.dtype)
        counts = self._counts
        total = xp.sum(ratio * weights, axis=axes, keepdims=True)
        # An item without a valid sample has nothing to correct.
        return -xp.log(xp.where(counts > 0, total / xp.where(counts > 0, counts, 1.0), 1.0))

    def inverse(self, filtered: Any) -> Any:
        """Return intensities or amplitudes again."""
        values = xp.exp(filtered - self._bias(filtered))
        return xp.where(self._positive, values, xp.zeros_like(values))
