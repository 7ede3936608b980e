"""The format ``undula.zigzag``: signed integers as unsigned ones, small magnitudes as small numbers.

Compressors find few patterns in the bits of small numbers whose signs change, since a negative number begins
with ones. Behind ``nd_lift`` this stores 0, -1, 1, -2, 2 … as 0, 1, 2, 3, 4 …, with the same number of bits::

    u = 2x for x >= 0,    u = -2x - 1 for x < 0
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..engines.cpu.coding import fold_signs, unfold_signs
from ..errors import ArgumentTypeError

__all__ = ["folded", "folded_dtype", "unfolded"]

Array = NDArray[Any]


def folded_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the unsigned integers in place of signed ones.

    Examples
    --------
    >>> folded_dtype(np.int32)
    dtype('uint32')
    """
    dtype = np.dtype(dtype)
    if dtype.kind != "i":
        raise ArgumentTypeError(f"zigzag: signed integers are needed, got {dtype}; put it behind nd_lift")
    return np.dtype(f"u{dtype.newbyteorder('=').name}")


def folded(x: Array) -> Array:
    """Return signed integers as unsigned ones.

    Examples
    --------
    >>> folded(np.array([0, -1, 1, -2, 2, 127, -128], np.int8)).tolist()
    [0, 1, 2, 3, 4, 254, 255]
    """
    folded_dtype(x.dtype)
    return fold_signs(np.require(x, x.dtype.newbyteorder("="), ["C", "A"]).reshape(x.shape))


def unfolded(x: Array, dtype: DTypeLike) -> Array:
    """Return the signed integers of a dtype; the inverse of :func:`folded`."""
    dtype = np.dtype(dtype)
    stored = folded_dtype(dtype)
    if x.dtype.newbyteorder("=") != stored:
        raise ArgumentTypeError(f"zigzag: {dtype} is stored as {stored}, got {x.dtype}")
    numbers = unfold_signs(np.require(x, stored, ["C", "A"]).reshape(x.shape))
    return numbers.astype(dtype, copy=False)
