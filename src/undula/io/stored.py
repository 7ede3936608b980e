"""Which values the samples of a file may have: fewer, at times, than those of their dtype.

A 12-bit scan lies in 16 bits, and readers look at 12 of them; some values may say that nothing was measured.
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
    """The values that a file can store.

    Parameters
    ----------
    low, high : int
        The least and the largest.
    padding : pair of int, optional
        The first and the last of those that fill places where nothing was measured.

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
        """True where something was measured; None where that is so everywhere."""
        if self.padding is None:
            return None
        seen = (x < self.padding[0]) | (x > self.padding[1])
        return None if seen.all() else seen

    def fitted(self, result: Array, before: Array) -> Array:
        """A result as it can be stored: clipped, padding as it was before, and none where there was none."""
        if result.dtype.kind == "f" and not np.isfinite(result).all():
            raise ArgumentError("there are no numbers among the pixels, and a file of integers keeps none")
        low, high = self.low, self.high
        if result.dtype.kind in "iu":  # (limits that its own numbers never reach are none)
            info = np.iinfo(result.dtype)
            low, high = max(low, int(info.min)), min(high, int(info.max))
        made = np.clip(np.round(result), low, high).astype(before.dtype)
        if self.padding is None:
            return made
        first, last = self.padding
        hidden = (before >= first) & (before <= last)
        # (A sample that falls among the padding stays on the side that it came from.)
        wrong = (made >= first) & (made <= last) & ~hidden
        made[wrong] = np.where(before[wrong] > last, last + 1, first - 1)
        made[hidden] = before[hidden]
        return made

    def filtered(self, work: Callable[..., Any], x: Array, **options: Any) -> Array:
        """Samples through a filter, as they can be stored; where nothing was measured, they stay."""
        valid = self.valid(x)
        if valid is None:
            return self.fitted(work(x, **options), x)
        return self.fitted(work(x, mask=valid, **options), x) if valid.any() else x
