"""Axes as callers give them: one or several, negative or not, checked against an array's dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError, UnknownAxisError

__all__ = ["Axes", "checked_axes", "one_axis", "two_axes"]

Axes = Sequence[int] | int | None


def checked_axes(axes: Axes, ndim: int) -> list[int]:
    """Different axes from 0 to ``ndim - 1``; all of them for None.

    Examples
    --------
    >>> checked_axes((-1, 0), 3)
    [2, 0]
    """
    if axes is None:
        return list(range(ndim))
    wanted = tuple(axes) if isinstance(axes, Iterable) else (axes,)
    if not all(isinstance(axis, (int, np.integer)) and not isinstance(axis, bool) for axis in wanted):
        raise ArgumentTypeError(f"axes must be integers, got {axes!r}")
    if not wanted or not all(-ndim <= axis < ndim for axis in wanted):
        raise UnknownAxisError(f"axes {wanted} do not exist in an array of {ndim} dimension(s)")
    found = [int(axis) % ndim for axis in wanted]
    if len(set(found)) != len(found):
        raise ArgumentError(f"axes must be unique, got {wanted}")
    return found


def one_axis(axis: object) -> tuple[int]:
    """The axis of lines, which is one integer."""
    if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
        raise ArgumentTypeError(f"a line has one axis, an integer; got axis={axis!r}")
    return (int(axis),)


def two_axes(axes: object) -> tuple[int, int]:
    """The axes of images, vertical and horizontal."""
    pair = tuple(axes) if isinstance(axes, Iterable) else ()
    if len(pair) != 2:
        raise ArgumentError(f"an image has 2 axes, got axes={axes!r}")
    return pair[0], pair[1]
