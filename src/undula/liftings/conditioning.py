"""Numerical conditioning of a lifting: its largest coefficient and its float32 round-trip error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..algebra import Laurent, PolyphaseMatrix

if TYPE_CHECKING:
    from .lifting import Lifting

__all__ = ["FLOAT32_LIMIT", "RESIDUAL_LIMIT", "Conditioning", "round_trip_error"]

FLOAT32_LIMIT = 6e-7
RESIDUAL_LIMIT = 1e-10

_NOISE_SAMPLES = 2048


@dataclass(frozen=True)
class Conditioning:
    """Numerical properties of a lifting.

    Attributes
    ----------
    largest : float
        Largest magnitude among the coefficients of the steps.
    float32_error : float
        Root mean square error of forward and inverse for white noise of unit variance, all steps in float32.
    residual : float
        Largest difference between the product of the steps and the factored polyphase matrix.

    Examples
    --------
    >>> import undula
    >>> conditioning = undula.lifting("haar").conditioning
    >>> conditioning.largest, conditioning.residual
    (1.0, 0.0)
    """

    largest: float
    float32_error: float
    residual: float

    @property
    def good(self) -> bool:
        """True if the steps are accurate enough to replace the filter bank."""
        return self.float32_error <= FLOAT32_LIMIT and self.residual <= RESIDUAL_LIMIT

    def __str__(self) -> str:
        verdict = "good"
        if self.residual > RESIDUAL_LIMIT:
            verdict = "inexact: use the filter bank where the last digits matter"
        if self.float32_error > FLOAT32_LIMIT:
            verdict = "inaccurate: use the filter bank"
        return (
            f"largest coefficient {self.largest:.3g}, float32 round trip {self.float32_error:.1e},"
            f" residual {self.residual:.1e}: {verdict}"
        )


def round_trip_error(lifting: Lifting) -> float:
    """Return the root mean square error of forward and inverse in float32, for periodic white noise."""
    noise = np.random.default_rng(0).standard_normal((2, _NOISE_SAMPLES)).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        restored = _run(lifting.inverse(), _run(lifting, noise))
        error = float(np.sqrt(np.mean(np.square(restored - noise, dtype=np.float64))))
    return error if np.isfinite(error) else float("inf")


def _run(lifting: Lifting, signal: NDArray[np.float32]) -> NDArray[np.float32]:
    parts = _reordered(lifting.before, signal)
    for step in lifting.steps:
        target, source = (1, 0) if step.is_predict else (0, 1)
        parts[target] = parts[target] + _filtered(step.filter, parts[source])
    return np.stack(_reordered(lifting.after, parts))


def _reordered(
    matrix: PolyphaseMatrix, parts: Sequence[NDArray[np.float32]] | NDArray[np.float32]
) -> list[NDArray[np.float32]]:
    return [
        _filtered(entry, part) for row in matrix.rows for entry, part in zip(row, parts, strict=True) if entry
    ]


def _filtered(filt: Laurent, part: NDArray[np.float32]) -> NDArray[np.float32]:
    total = np.zeros_like(part)
    for exponent, value in filt.items():
        total += np.float32(float(value)) * np.roll(part, -exponent)
    return total
