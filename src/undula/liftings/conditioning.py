"""How well a lifting keeps numbers: size of its coefficients and a measured float32 round trip."""

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

_SAMPLES = 2048


@dataclass(frozen=True)
class Conditioning:
    """What is known of the numbers in a lifting.

    Attributes
    ----------
    largest : float
        Largest magnitude among the coefficients of the steps.
    float32_error : float
        Root mean square of (inverse of forward of x) - x, for white noise x of unit variance, all steps
        in float32.
    residual : float
        Largest difference between the steps multiplied out and the polyphase matrix they came from.
    """

    largest: float
    float32_error: float
    residual: float

    @property
    def good(self) -> bool:
        """True when the wavelet may be run by these steps; else its filter bank is the better way."""
        return self.float32_error <= FLOAT32_LIMIT and self.residual <= RESIDUAL_LIMIT

    def __str__(self) -> str:
        verdict = "good"
        if self.residual > RESIDUAL_LIMIT:
            verdict = "not the filters' transform to the last digits: run the filter bank where those count"
        if self.float32_error > FLOAT32_LIMIT:
            verdict = "loses precision: run the filter bank"
        return (
            f"largest coefficient {self.largest:.3g}, float32 round trip {self.float32_error:.1e},"
            f" residual {self.residual:.1e}: {verdict}"
        )


def round_trip_error(lifting: Lifting) -> float:
    """The float32 error of forward and inverse on periodic white noise."""
    noise = np.random.default_rng(0).standard_normal((2, _SAMPLES)).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        back = _run(lifting.inverse(), _run(lifting, noise))
        error = float(np.sqrt(np.mean(np.square(back - noise, dtype=np.float64))))
    return error if np.isfinite(error) else float("inf")


def _run(lifting: Lifting, signal: NDArray[np.float32]) -> NDArray[np.float32]:
    parts = _renumbered(lifting.before, signal)
    for step in lifting.steps:
        target, source = (1, 0) if step.is_predict else (0, 1)
        parts[target] = parts[target] + _filtered(step.filter, parts[source])
    return np.stack(_renumbered(lifting.after, parts))


def _renumbered(
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
