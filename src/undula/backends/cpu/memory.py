"""Memory for results, given back and taken again.

The system hands out fresh memory page by page, and clears each page at the first touch; for a transform that
runs at the speed of memory this costs as much as the work. So the memory of large results is kept for the
next ones when the last array on it is gone, up to a limit.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections import defaultdict
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ArgumentError

__all__ = ["empty", "keep_memory", "kept_memory"]

Array = NDArray[Any]

SMALL = 1 << 15  # Bytes: what is smaller, the system keeps for itself.
PAGE = 4096

_kept: dict[int, list[Array]] = defaultdict(list)  # by size; appending and popping are atomic
_total = 0


def _usual_limit() -> int:
    """A sixteenth of the memory of the machine, and at most 1 GiB."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 256 << 20
    return min(1 << 30, whole // 16)


_limit = _usual_limit()


def keep_memory(limit: int | None) -> None:
    """Sets how many bytes of results that nobody uses any more are kept for the next ones.

    0 for none; None for a sixteenth of the machine's memory, and at most 1 GiB, as it is in the beginning.

    >>> keep_memory(256 << 20)
    >>> keep_memory(None)
    """
    global _limit
    limit = _usual_limit() if limit is None else limit
    if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 0:
        raise ArgumentError(f"a number of bytes from 0 on is needed, got {limit!r}")
    _limit = int(limit)
    while _total > _limit and any(_kept.values()):
        for size, blocks in list(_kept.items()):
            if blocks:
                blocks.pop()
                _count(-size)


def kept_memory() -> int:
    """How many bytes are kept at the moment."""
    return _total


def _count(size: int) -> None:
    global _total
    _total += size


def _give_back(lease: Any) -> None:
    """The last array on a block is gone."""
    block = lease.block
    if _total + block.nbytes <= _limit:
        _count(block.nbytes)
        _kept[block.nbytes].append(block)


@lru_cache(maxsize=256)
def _lease(size: int) -> Any:
    """A type of objects on which arrays of so many bytes stand, and that notice when the last is gone."""
    return type("Lease", (ctypes.c_char * size,), {"__del__": _give_back})


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array with nothing in it yet, as ``np.empty`` makes them."""
    size = math.prod(shape) * dtype.itemsize
    if size < SMALL or not _limit:
        return np.empty(shape, dtype)
    size = -(-size // PAGE) * PAGE
    try:
        block = _kept[size].pop()
        _count(-size)
    except IndexError:
        block = np.empty(size, np.uint8)
    lease = _lease(size).from_buffer(block)
    lease.block = block
    return np.ndarray(shape, dtype, lease)
