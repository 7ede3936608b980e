"""One array as a kernel sees it: a buffer, and where in it the samples are.

The sample at ``index`` is the element ``offset + sum(index * strides)`` of the buffer. Strides and offsets
are counted in elements, as in C.
"""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

__all__ = ["COMPLEX", "ArrayView", "contiguous", "dtype_name"]

Shape = tuple[int, ...]

COMPLEX = {"complex64": "float32", "complex128": "float64"}  # the dtypes of their real and imaginary parts
APART = 1 << 40  # An address for buffers that have none, of which only the offsets are compared.


@lru_cache(maxsize=256)
def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype; NumPy would put it together each time."""
    return str(dtype)


class ArrayView(NamedTuple):
    """An array in a buffer.

    Parameters
    ----------
    buffer : int or handle
        While a program is built, the number of the buffer; when it runs, its address or its OpenCL handle.
    shape : tuple of int
    strides : tuple of int
        In elements.
    dtype : str
    offset : int, default 0
        Place of the first element, in elements.
    alignment : int, default 16
        Alignment of the first element of the buffer, in bytes.
    owner : object, optional
        What keeps the memory alive. Views in programs have none.

    Examples
    --------
    >>> ArrayView.contiguous(0, (4, 3), "complex64").as_pairs().strides
    (6, 2, 1)
    """

    buffer: Any
    shape: Shape
    strides: Shape
    dtype: str
    offset: int = 0
    alignment: int = 16
    owner: Any = None

    @classmethod
    def contiguous(
        cls, buffer: Any, shape: Shape, dtype: str, offset: int = 0, owner: Any = None
    ) -> ArrayView:
        """Return a view of an array in C order."""
        return cls(buffer, shape, contiguous(shape), dtype, offset, 16, owner)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return np.dtype(self.dtype).itemsize

    @property
    def byte_strides(self) -> Shape:
        """The strides in bytes."""
        size = self.itemsize
        return tuple(stride * size for stride in self.strides)

    def at(self, buffer: Any) -> ArrayView:
        """Return the same array in another buffer, without its owner."""
        return ArrayView(buffer, *self[1:6])

    def corner(self, shape: Shape) -> ArrayView:
        """Return the part of the array with these lengths, from its first sample on."""
        return self._replace(shape=shape)

    def as_pairs(self) -> ArrayView:
        """Return complex numbers as pairs of real ones along one more axis; real arrays stay as they are."""
        if self.dtype not in COMPLEX:
            return self
        strides = (*(2 * stride for stride in self.strides), 1)
        return self._replace(
            shape=(*self.shape, 2), strides=strides, dtype=COMPLEX[self.dtype], offset=2 * self.offset
        )

    def plane_strides(self, outer: int, inner: int) -> tuple[int, int] | None:
        """Return the strides of planes and rows; None if kernels cannot follow the strides of the array.

        Parameters
        ----------
        outer : int
            The axis of rows, unless it equals ``inner``. All axes before it are planes.
        inner : int
            The first axis within a row. It has to be contiguous with those after it.

        Examples
        --------
        >>> ArrayView(0, (5, 4, 3), (24, 6, 1), "float32").plane_strides(1, 2)
        (24, 6)
        """
        if 0 in self.shape:  # Nobody follows the strides of an array without samples, which are all 0.
            return 0, 0
        size = 1
        for axis in range(len(self.shape) - 1, inner - 1, -1):
            if self.shape[axis] > 1 and self.strides[axis] != size:
                return None
            size *= self.shape[axis]
        planes, plane = 1, 0
        for axis in range(outer - 1, -1, -1):
            length, stride = self.shape[axis], self.strides[axis]
            if length == 1:
                continue
            if planes > 1 and stride != planes * plane:
                return None
            plane = plane if planes > 1 else stride
            planes *= length
        return plane, self.strides[outer] if outer < inner else 0

    @property
    def extent(self) -> tuple[int, int]:
        """The first byte of an array and the one after its last, from the start of its buffer."""
        if 0 in self.shape:
            return 0, 0
        steps = [step * (n - 1) for step, n in zip(self.strides, self.shape, strict=True)]
        first, last = (self.offset + sum(bound(step, 0) for step in steps) for bound in (min, max))
        size = self.itemsize
        return first * size, (last + 1) * size

    def overlaps(self, other: ArrayView) -> bool:
        """Return whether two arrays have an element in common; arrays behind different handles have none."""
        by_address = isinstance(self.buffer, int)
        if not by_address and self.buffer != other.buffer:
            return False
        starts = (self.buffer, other.buffer) if by_address else (0, 0)
        (first, end), (other_first, other_end) = (
            (start + a, start + b) for start, (a, b) in zip(starts, (self.extent, other.extent), strict=True)
        )
        if end <= other_first or other_end <= first:
            return False
        first, second = (np.asarray(view._untouchable(by_address)) for view in (self, other))
        return bool(np.may_share_memory(first, second) and np.shares_memory(first, second))

    def _untouchable(self, by_address: bool) -> SimpleNamespace:
        """Return something that NumPy takes for an array; its memory must not be read."""
        interface = {
            "data": ((self.buffer if by_address else APART) + self.offset * self.itemsize, False),
            "shape": self.shape,
            "strides": self.byte_strides,
            "typestr": np.dtype(self.dtype).str,
            "version": 3,
        }
        return SimpleNamespace(__array_interface__=interface)


def contiguous(shape: Shape, itemsize: int = 1) -> Shape:
    """Return the strides of a C-contiguous array."""
    strides, size = [], itemsize
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(reversed(strides))
