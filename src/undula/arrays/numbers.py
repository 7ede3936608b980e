"""Numbers as callers pass them: read, or refused with an error that says what is expected.

Neither ``True`` nor ``"1"`` is a number here, although Python and NumPy convert both.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError

__all__ = ["check_integer", "check_number", "is_integer", "is_number"]


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is one real number, of Python or of NumPy."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def is_integer(value: Any) -> TypeGuard[int]:
    """Return whether a value is one integer, of Python or of NumPy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_number(
    value: Any, name: str, least: float = 0.0, exclusive: bool = False, most: float = math.inf
) -> None:
    """Raise an error unless ``value`` is a finite number of at least (or above) ``least``, up to ``most``."""
    if not is_number(value):
        got = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        raise ArgumentTypeError(f"{name} must be a number, got {got}")
    if not math.isfinite(value) or not least <= value <= most or (exclusive and value == least):
        bound = f"above {least:g}" if exclusive else f"at least {least:g}"
        if math.isfinite(most):
            bound = f"from {least:g} to {most:g}"
        raise ArgumentError(f"{name} must be finite and {bound}, got {value!r}")


def check_integer(value: Any, name: str, least: int = 0, most: int | None = None) -> None:
    """Raise an error unless ``value`` is an integer of at least ``least`` and at most ``most``."""
    bound = f"of at least {least}" if most is None else f"from {least} to {most}"
    if not is_integer(value):
        raise ArgumentTypeError(f"{name} must be an integer {bound}, got {value!r}")
    if value < least or (most is not None and value > most):
        raise ArgumentError(f"{name} must be an integer {bound}, got {value!r}")
