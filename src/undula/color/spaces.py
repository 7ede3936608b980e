"""Colour spaces of a luma plane and two chroma planes.

Integer spaces: ``rct`` is lossless; ``apple`` is nearly so, and its inverse takes additions only. The planes
of the other spaces are floats, with chroma centred on 0.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UnknownNameError
from ..lowering.mixing import Mixing, Unmixing

__all__ = ["SPACES", "Space", "space"]

SPACES = ("rct", "apple", "ict", "bt601", "bt709")
"""Names of the colour spaces."""


@dataclass(frozen=True)
class Space:
    """A linear map from red, green and blue to three planes, and its inverse.

    Parameters
    ----------
    name : str
        One of :data:`SPACES`.
    integer : bool
        True if the planes are integers: ``(weights · rgb + offsets) >> shifts``.
    weights : tuple of three tuples of three numbers
        One row for each plane.
    shifts : tuple of three ints
        Right shifts of the three sums; zeros in float spaces.
    inverse : tuple of three tuples of three numbers, or None
        The matrix from planes to channels; None for ``rct``, which is undone step by step.

    Examples
    --------
    >>> from undula.color import space
    >>> space("rct").weights[0]
    (1, 2, 1)
    """

    name: str
    integer: bool
    weights: tuple[tuple[float, ...], ...]
    shifts: tuple[int, int, int]
    inverse: tuple[tuple[float, ...], ...] | None

    def __getattr__(self, name: str) -> Any:
        renamed = {"whole": "integer", "back": "inverse"}
        if name not in renamed:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warnings.warn(
            f"Space.{name} is deprecated; use Space.{renamed[name]}", DeprecationWarning, stacklevel=2
        )
        return getattr(self, renamed[name])

    def mixing(self, channels: int) -> Mixing:
        """Return the forward map for images of three channels, or of four, where alpha is copied.

        Parameters
        ----------
        channels : {3, 4}
            Number of channels.

        Returns
        -------
        Mixing
        """
        weights = [(*row, *([0] * (channels - 3))) for row in self.weights]
        shifts = list(self.shifts)
        if channels == 4:
            weights.append((0, 0, 0, 1))
            shifts.append(0)
        offsets = [(1 << shift >> 1) if self.integer and self.name != "rct" else 0 for shift in shifts]
        return Mixing(tuple(weights), tuple(offsets), tuple(shifts))

    @property
    def unmixing(self) -> Unmixing:
        """The inverse map."""
        return Unmixing(self.inverse)

    def matrix(self) -> NDArray[np.float64]:
        """Return the weights divided by ``2 ** shifts``."""
        return np.array(self.weights) / 2.0 ** np.array(self.shifts)[:, np.newaxis]

    @property
    def largest(self) -> float:
        """The largest magnitude in any plane for channels in [0, 1], before rounding."""
        matrix = self.matrix()
        return float(max(np.maximum(matrix, 0).sum(1).max(), np.maximum(-matrix, 0).sum(1).max(), 1.0))


def _luma(red: float, blue: float) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]:
    """Return the matrices to and from luma and the blue and red differences, scaled to ±½."""
    green = 1 - red - blue
    matrix = np.array([[red, green, blue], [-red, -green, 1 - blue], [1 - red, -green, -blue]])
    matrix[1] /= 2 * (1 - blue)
    matrix[2] /= 2 * (1 - red)
    return _tuples(matrix), _tuples(np.linalg.inv(matrix))


def _tuples(matrix: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in row) for row in matrix)


@cache
def space(name: str) -> Space:
    """Return the colour space of a name, one of :data:`SPACES`.

    Parameters
    ----------
    name : {"rct", "apple", "ict", "bt601", "bt709"}
        Name of the space.

    Returns
    -------
    Space
        The colour space.

    Examples
    --------
    >>> space("rct").integer, space("bt709").integer
    (True, False)
    """
    if name == "rct":  # JPEG 2000, reversible: ⌊(R + 2G + B) / 4⌋, B - G, R - G
        return Space(name, True, ((1, 2, 1), (0, -1, 1), (1, -1, 0)), (2, 0, 0), None)
    if name == "apple":
        return Space(
            name,
            True,
            ((43, 42, 43), (-42, -43, 85), (85, -43, -42)),
            (7, 7, 7),
            ((1, 0, 1), (1, -1, -1), (1, 1, 0)),
        )
    if name == "ict":  # JPEG 2000, irreversible: BT.601 with the digits of the standard
        ict = ((0.299, 0.587, 0.114), (-0.16875, -0.33126, 0.5), (0.5, -0.41869, -0.08131))
        return Space(name, False, ict, (0, 0, 0), _tuples(np.linalg.inv(np.array(ict))))
    if name in ("bt601", "bt709"):
        weights, inverse = _luma(0.299, 0.114) if name == "bt601" else _luma(0.2126, 0.0722)
        return Space(name, False, weights, (0, 0, 0), inverse)
    raise UnknownNameError("color", name, SPACES)
