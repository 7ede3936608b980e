"""Strides that kernels can follow: planes of rows, with contiguous elements within a row."""

from __future__ import annotations

__all__ = ["contiguous", "plane_strides"]

Shape = tuple[int, ...]


def plane_strides(
    shape: Shape, strides: Shape, itemsize: int, outer: int, inner: int
) -> tuple[int, int] | None:
    """Return the strides of planes and rows; None if kernels cannot follow the strides of an array.

    Parameters
    ----------
    shape, strides : tuple of int
    itemsize : int
        Size of an element, in the unit of the strides.
    outer : int
        The axis of rows, unless it equals ``inner``. All axes before it are planes.
    inner : int
        The first axis within a row. It has to be contiguous with those after it.

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
    """Return the strides of a C-contiguous array."""
    strides = [itemsize]
    for n in shape[:0:-1]:
        strides.append(strides[-1] * n)
    return tuple(strides[::-1])
