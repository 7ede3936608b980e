"""Checks of axes, and of values that callers may pass once for each axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..arrays import is_integer
from ..errors import ArgumentError, ArgumentTypeError, UnknownAxisError

__all__ = ["Axes", "checked_axes", "checked_axis", "one_axis", "per_axis", "two_axes"]

Axes = Sequence[int] | int | None


def checked_axes(axes: Axes, ndim: int, distinct: bool = True) -> list[int]:
    """Return axes from 0 to ``ndim - 1``, at least one and each once if ``distinct``; all of them for None.

    Examples
    --------
    >>> checked_axes((-1, 0), 3)
    [2, 0]
    """
    if type(axes) is int and -ndim <= axes < ndim:  # without the checks below, for small arrays
        return [axes % ndim]
    if axes is None:
        return list(range(ndim))
    requested = tuple(axes) if isinstance(axes, Iterable) else (axes,)
    if not all(map(is_integer, requested)):
        raise ArgumentTypeError(f"axes must be integers, got {axes!r}")
    if distinct and not requested:
        raise UnknownAxisError(f"at least one axis is needed, got axes={axes!r}; the default is all axes")
    if not all(-ndim <= axis < ndim for axis in requested):
        raise UnknownAxisError(f"axes {requested} do not exist in an array of {ndim} dimension(s)")
    numbers = [int(axis) % ndim for axis in requested]
    if distinct and len(set(numbers)) != len(numbers):
        raise ArgumentError(f"axes must be unique, got {requested}")
    return numbers


def checked_axis(axis: object, ndim: int, what: str = "channel_axis", others: str = "") -> int:
    """Return an axis from 0 to ``ndim - 1``; ``others`` are the words for what may be passed instead."""
    if not is_integer(axis) or not -ndim <= axis < ndim:
        kind = ArgumentError if is_integer(axis) else ArgumentTypeError
        raise kind(f"{what} must be an integer from {-ndim} to {ndim - 1}{others}, got {axis!r}")
    return int(axis) % ndim


def one_axis(axis: object) -> tuple[int]:
    """Return the axis of a one-dimensional transform, an integer."""
    if not is_integer(axis):
        raise ArgumentTypeError(f"a line has one axis, an integer; got axis={axis!r}")
    return (int(axis),)


def two_axes(axes: object) -> tuple[int, int]:
    """Return the axes of a two-dimensional transform, vertical and horizontal."""
    if not isinstance(axes, Iterable):
        raise ArgumentTypeError(f"axes must be 2 integers, those of an image, got axes={axes!r}")
    pair = tuple(axes)
    if len(pair) != 2:
        raise ArgumentError(f"an image has 2 axes, got axes={axes!r}")
    return pair[0], pair[1]


def per_axis(values: Any, count: int, what: str) -> list[Any]:
    """Return one value for each axis, from one value for all axes or from a sequence of as many."""
    if isinstance(values, (list, tuple)):
        if len(values) == 1:
            return list(values) * count
        if len(values) != count:
            raise ArgumentError(f"one {what} for each of {count} axes is needed, got {len(values)}")
        return list(values)
    return [values] * count
