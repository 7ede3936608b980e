"""The range of values that the samples of a file may have, where it is smaller than that of their dtype.

For example, readers of a 12-bit scan stored in 16-bit words ignore the upper 4 bits, and some values may be
reserved for padding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError

__all__ = ["StoredRange"]

Array = NDArray[Any]


@dataclass(frozen=True)
class StoredRange:
    """The range of values that a file can store.

    Parameters
    ----------
    low, high : int
        The smallest and the largest value.
    padding : pair of int, optional
        The first and the last value that stand for padding, where nothing was measured.

    Examples
    --------
    >>> stored = StoredRange(0, 4095, padding=(0, 0))
    >>> before = np.array([[0, 7, 4090]], np.uint16)
    >>> stored.valid(before)
    array([[False,  True,  True]])
    >>> stored.fitted(np.array([[5, 0, 4106]], np.uint16), before)
    array([[   0,    1, 4095]], dtype=uint16)
    """

    low: int
    high: int
    padding: tuple[int, int] | None = None

    def valid(self, x: Array) -> NDArray[np.bool_] | None:
        """Return a mask that is False at padding; None if there is no padding."""
        if self.padding is None:
            return None
        measured = (x < self.padding[0]) | (x > self.padding[1])
        return None if measured.all() else measured

    def fitted(self, result: Array, before: Array) -> Array:
        """Round and clip a result to values that can be stored.

        Padding in ``before`` is restored, and no other sample becomes padding.
        """
        if result.dtype.kind == "f" and not np.isfinite(result).all():
            raise ArgumentError("pixels contain NaN or infinity, which a file of integers cannot store")
        low, high = self.low, self.high
        if result.dtype.kind in "iu":  # NumPy refuses to clip to limits outside of the dtype.
            info = np.iinfo(result.dtype)
            low, high = max(low, int(info.min)), min(high, int(info.max))
        fitted = np.clip(np.round(result), low, high).astype(before.dtype)
        if self.padding is None:
            return fitted
        first, last = self.padding
        padded = (before >= first) & (before <= last)
        # A sample that would become padding stays on the side of the padding that it came from.
        collided = (fitted >= first) & (fitted <= last) & ~padded
        fitted[collided] = np.where(before[collided] > last, last + 1, first - 1)
        fitted[padded] = before[padded]
        return fitted

    def filtered(
        self, work: Callable[..., Any], x: Array, *, mask: NDArray[np.bool_] | None = None, **options: Any
    ) -> Array:
        """Filter samples and fit the result; padding is masked, too, and stays as it is."""
        valid = self.valid(x)
        if valid is not None and mask is not None:
            mask = valid & (mask if mask.ndim == x.ndim else mask[..., None])
        elif valid is not None:
            mask = valid
        if mask is None:
            return self.fitted(work(x, **options), x)
        return self.fitted(work(x, mask=mask, **options), x) if mask.any() else x
