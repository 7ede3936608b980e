"""Colours as three planes: one that looks like the image without colours, and two that are mostly smooth.

Some spaces are of integers: ``rct`` comes back bit for bit, ``apple`` nearly so, with an inverse of nothing
but additions. The others are of floats, their planes of colour differences around 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..errors import UnknownNameError
from ..plans.mixing import Mixing, Unmixing

__all__ = ["SPACES", "Space", "space"]

SPACES = ("rct", "apple", "ict", "bt601", "bt709")


@dataclass(frozen=True)
class Space:
    """How red, green and blue become three planes, and how they come back.

    Parameters
    ----------
    name : str
    whole : bool
        Planes are integers: ``(weights · rgb + offsets) >> shifts``.
    weights : 3 × 3 numbers
    shifts : three ints
        By which the sums of integers are shifted.
    back : 3 × 3 numbers, or None where integers come back step by step
    """

    name: str
    whole: bool
    weights: tuple[tuple[float, ...], ...]
    shifts: tuple[int, int, int]
    back: tuple[tuple[float, ...], ...] | None

    def mixing(self, channels: int) -> Mixing:
        """The planes of images with three channels, or with four, of which the last is kept as it is."""
        weights = [(*row, *([0] * (channels - 3))) for row in self.weights]
        shifts = list(self.shifts)
        if channels == 4:
            weights.append((0, 0, 0, 1))
            shifts.append(0)
        offsets = [(1 << shift >> 1) if self.whole and self.name != "rct" else 0 for shift in shifts]
        return Mixing(tuple(weights), tuple(offsets), tuple(shifts))

    @property
    def unmixing(self) -> Unmixing:
        """The way back."""
        return Unmixing(self.back)

    def matrix(self) -> NDArray[np.float64]:
        """The weights as they count."""
        return np.array(self.weights) / 2.0 ** np.array(self.shifts)[:, np.newaxis]

    @property
    def largest(self) -> float:
        """What samples up to 1 become at most, without rounding."""
        matrix = self.matrix()
        return float(max(np.maximum(matrix, 0).sum(1).max(), np.maximum(-matrix, 0).sum(1).max(), 1.0))


def _luma(red: float, blue: float) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]:
    """Luma, and the differences of blue and red from it, scaled to ±½; and back."""
    green = 1 - red - blue
    there = np.array([[red, green, blue], [-red, -green, 1 - blue], [1 - red, -green, -blue]])
    there[1] /= 2 * (1 - blue)
    there[2] /= 2 * (1 - red)
    return _tuples(there), _tuples(np.linalg.inv(there))


def _tuples(matrix: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in row) for row in matrix)


@cache
def space(name: str) -> Space:
    """A space by name: one of ``SPACES``."""
    if name == "rct":  # JPEG 2000, reversible: (R + 2G + B)/4 rounded down, B - G, R - G
        return Space(name, True, ((1, 2, 1), (0, -1, 1), (1, -1, 0)), (2, 0, 0), None)
    if name == "apple":
        return Space(
            name,
            True,
            ((43, 42, 43), (-42, -43, 85), (85, -43, -42)),
            (7, 7, 7),
            ((1, 0, 1), (1, -1, -1), (1, 1, 0)),
        )
    if name == "ict":  # JPEG 2000, irreversible: BT.601 with the digits that the standard gives
        there = ((0.299, 0.587, 0.114), (-0.16875, -0.33126, 0.5), (0.5, -0.41869, -0.08131))
        return Space(name, False, there, (0, 0, 0), _tuples(np.linalg.inv(np.array(there))))
    if name in ("bt601", "bt709"):
        weights, back = _luma(0.299, 0.114) if name == "bt601" else _luma(0.2126, 0.0722)
        return Space(name, False, weights, (0, 0, 0), back)
    raise UnknownNameError("color", name, SPACES)
