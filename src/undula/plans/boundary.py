"""Boundaries: how a line goes on beyond its ends, and how long its bands are.

Two families of transforms. The DWT extends the line once, before the first step, and keeps every
coefficient that the extension touches, as PyWavelets does: ``⌊(N + L - 1) / 2⌋`` in each band. The LWT keeps
exactly N numbers: even places become the low band, odd places the high one, and every step finds its missing
neighbours by folding their places back onto the line.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, UnknownNameError

__all__ = [
    "LWT_MODES",
    "MODES",
    "band_length",
    "check_mode",
    "extend",
    "max_level",
    "signal_length",
    "source_places",
]

MODES = (
    "zero",
    "constant",
    "symmetric",
    "periodic",
    "smooth",
    "periodization",
    "reflect",
    "antisymmetric",
    "antireflect",
)
"""Modes of the DWT family, in PyWavelets' order."""

LWT_MODES = ("symmetric", "periodic", "zero")
"""Modes of the LWT family; symmetric is whole-sample, as in JPEG 2000."""


def check_mode(mode: object, known: tuple[str, ...] = MODES) -> str:
    """The mode, or an error that names the nearest ones."""
    if not isinstance(mode, str) or mode.lower() not in known:
        raise UnknownNameError("mode", mode, known)
    return mode.lower()


def extend(line: NDArray[Any], axis: int, start: int, stop: int, mode: str) -> NDArray[Any]:
    """The samples of places ``start … stop - 1``, of a line that is known from 0 to its length.

    >>> extend(np.array([1, 2, 3]), 0, -3, 6, "reflect")
    array([2, 3, 2, 1, 2, 3, 2, 1, 2])
    """
    x = np.moveaxis(line, axis, 0)
    n = x.shape[0]
    if n == 0:
        raise ArgumentError(f"an axis of length 0 cannot be extended; the shape is {line.shape}")
    places = np.arange(start, stop)
    column = (-1,) + (1,) * (x.ndim - 1)
    within = np.clip(places, 0, n - 1)
    if mode == "zero":
        result = np.where((places == within).reshape(column), x[within], x.dtype.type(0))
    elif mode == "constant" or (n == 1 and mode in ("reflect", "antireflect", "smooth")):
        result = x[within]
    elif mode in ("periodic", "periodization"):
        result = x[places % n]
    elif mode == "symmetric":
        result = x[_fold(places, 2 * n - 1)]
    elif mode == "reflect":
        result = x[_fold(places, 2 * n - 2)]
    elif mode == "antisymmetric":
        odd = (places // n) % 2 == 1
        result = x[_fold(places, 2 * n - 1)] * np.where(odd, -1, 1).reshape(column)
    elif mode == "antireflect":
        # Odd reflection at both ends: each turn of 2n - 2 places adds twice the rise of the line.
        turn, place = np.divmod(places, 2 * n - 2)
        mirrored = (place > n - 1).reshape(column)
        folded = x[_fold(places, 2 * n - 2)]
        result = np.where(mirrored, 2 * x[-1] - folded, folded)
        result = result + turn.reshape(column) * 2 * (x[-1] - x[0])
    elif mode == "smooth":
        beyond = (places - within).reshape(column)
        slope = np.where(beyond < 0, x[1] - x[0], x[-1] - x[-2])
        result = x[within] + beyond * slope
    else:
        raise UnknownNameError("mode", mode, MODES)
    return np.moveaxis(result, 0, axis)


def _fold(places: NDArray[np.int_], last: int) -> NDArray[np.int_]:
    """Places folded by mirrors: at 0 and ``last / 2``, so that ``last`` comes back to 0.

    An odd ``last`` puts the mirror between two samples, at the half; then the first mirror is at -1/2.
    """
    period = last + last % 2
    inside = places % period
    return np.minimum(inside, last - inside) if last % 2 else np.minimum(inside, period - inside)


def band_length(length: int, filter_length: int, mode: str) -> int:
    """Number of coefficients in each band of the DWT of a line."""
    if mode == "periodization":
        return (length + 1) // 2
    return (length + filter_length - 1) // 2


def signal_length(bands: int, filter_length: int, mode: str) -> int:
    """Number of samples that the inverse DWT makes of two bands."""
    return 2 * bands if mode == "periodization" else 2 * bands - filter_length + 2


def max_level(length: int, filter_length: int) -> int:
    """The deepest level of the DWT at which a coefficient is free of border effects."""
    if length < filter_length - 1 or filter_length < 2:
        return 0
    return int(math.log2(length / (filter_length - 1)))


def source_places(places: NDArray[np.int_], length: int, mode: str) -> NDArray[np.int_]:
    """The places on the line from which a lifting step reads when it wants ``places``.

    Even places stay even and odd ones odd. A place that holds nothing is answered with -1: everything
    beyond the ends in mode ``zero``, and odd places on a line of length 1.
    """
    if mode == "symmetric":
        found = _fold(places, 2 * length - 2) if length > 1 else np.where(places % 2, -1, 0)
    elif mode == "periodic":
        # Each of the two components repeats with its own length: on a line of odd length they differ.
        counts = np.where(places % 2, length // 2, (length + 1) // 2)
        found = np.where(counts, 2 * ((places // 2) % np.maximum(counts, 1)) + places % 2, -1)
    else:
        found = np.where((places >= 0) & (places < length), places, -1)
    return found
