"""Strides of arrays that kernels can follow: planes of rows, everything within a row in one piece."""

from __future__ import annotations

__all__ = ["contiguous", "plane_strides"]

Shape = tuple[int, ...]


def plane_strides(
    shape: Shape, strides: Shape, itemsize: int, outer: int, inner: int
) -> tuple[int, int] | None:
    """How far planes and rows are apart; None where the strides are not of such a kind.

    Axes before ``outer`` are planes, ``outer`` has the rows unless it is ``inner``, and from ``inner`` on
    everything lies in one piece. Strides and ``itemsize`` have the same unit.

    Examples
    --------
    >>> plane_strides((5, 4, 3), (24, 6, 1), 1, 1, 2)
    (24, 6)
    """
    size = itemsize
    for axis in range(len(shape) - 1, inner - 1, -1):
        if shape[axis] > 1 and strides[axis] != size:
            return None
        size *= shape[axis]
    planes, plane = 1, 0
    for axis in range(outer - 1, -1, -1):
        if shape[axis] == 1:
            continue
        if planes > 1 and strides[axis] != planes * plane:
            return None
        plane = plane if planes > 1 else strides[axis]
        planes *= shape[axis]
    row = strides[outer] if outer < inner else 0
    return None if plane % itemsize or row % itemsize else (plane, row)


def contiguous(shape: Shape, itemsize: int = 1) -> Shape:
    """The strides of an array in one piece."""
    strides = [itemsize]
    for n in shape[:0:-1]:
        strides.append(strides[-1] * n)
    return tuple(strides[::-1])
