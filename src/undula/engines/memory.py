"""Memory for results, given back and taken again.

The system hands out fresh memory page by page, and clears each page at the first touch; for a transform that
runs at the speed of memory this costs as much as the work. So the memory of large results is kept for the
next ones when the last array on it is gone, up to a limit; what was not used for longest goes first.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from .threads import get_num_threads, ranges, run

__all__ = ["allocator", "copy_bytes", "empty", "keep_memory", "kept_memory"]

Array = NDArray[Any]

SMALL = 1 << 15  # Bytes: what is smaller, the system keeps for itself.
SMALL_RESULTS = 3 << 15  # The same of all results of a call: it gives back what is more than 128 KiB.
PAGE = 4096
LARGE = 1 << 21  # Bytes that several threads copy sooner than one.

_kept: OrderedDict[int, list[Array]] = OrderedDict()  # by size, that which was used last at the end
_returned: deque[Array] = deque()  # blocks just given back: half of the limit is for them
_total = 0
_lock = Lock()


def _forget() -> None:
    """The child of a fork may find the lock taken by a thread that it does not have."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


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

    Examples
    --------
    >>> keep_memory(256 << 20)
    >>> keep_memory(None)
    """
    global _limit
    limit = _usual_limit() if limit is None else limit
    if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 0:
        raise ArgumentError(f"a number of bytes from 0 on is needed, got {limit!r}")
    with _lock:
        _limit = int(limit)
        _settle()


def kept_memory() -> int:
    """How many bytes are kept at the moment."""
    with _lock:
        _settle()
        return _total


def _give_back(lease: Any) -> None:
    """The last array on a block is gone.

    That may happen at any time and anywhere, in the middle of an interrupt, too: so nothing is locked here,
    and the block only joins those to be looked at by the next one who wants memory.
    """
    block = getattr(lease, "block", None)
    if block is None:
        return
    total = block.nbytes
    for other in tuple(_returned):
        total += other.nbytes
    if total <= _limit // 2:
        _returned.append(block)


def _settle() -> None:
    """Puts what was given back with what is kept, and lets go of what was not used for longest."""
    global _total
    while _returned:
        block = _returned.popleft()
        _kept.setdefault(block.nbytes, []).append(block)
        _kept.move_to_end(block.nbytes)
        _total += block.nbytes
    while _kept and _total > _limit // 2:
        oldest = next(iter(_kept))
        _kept[oldest].pop()
        _total -= oldest
        if not _kept[oldest]:
            del _kept[oldest]


def _taken(size: int) -> Array | None:
    """A block of this size that is kept, if there is one."""
    global _total
    try:
        # The end of a list of results gives the last one back first, so the first is wanted again first.
        block = _returned.pop()
    except IndexError:
        pass
    else:
        if block.nbytes == size:
            return block
        _returned.append(block)
    with _lock:
        _settle()
        blocks = _kept.get(size)
        if not blocks:
            return None
        block = blocks.pop()
        _total -= size
        if blocks:
            _kept.move_to_end(size)
        else:
            del _kept[size]
        return block


@lru_cache(maxsize=256)
def _lease(size: int) -> Any:
    """A type of objects on which arrays of so many bytes stand, and that notice when the last is gone."""
    return type("Lease", (ctypes.c_char * size,), {"__del__": _give_back})


def copy_bytes(target: Array, source: Array) -> None:
    """Bytes from one place to another, by several threads where there are many."""
    many = min(4, get_num_threads()) if source.nbytes >= LARGE else 1
    pieces = ranges(source.nbytes, many)
    run(lambda begin, end: np.copyto(target[begin:end], source[begin:end]), pieces)


def allocator(size: int) -> Callable[[tuple[int, ...], np.dtype[Any]], Array]:
    """Return the function that makes the results of a call, of so many bytes together."""
    return np.empty if size < SMALL_RESULTS else empty


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array with nothing in it yet, as ``np.empty`` makes them."""
    size = math.prod(shape) * dtype.itemsize
    if size < SMALL or not _limit:
        return np.empty(shape, dtype)
    size = -(-size // PAGE) * PAGE
    block = _taken(size)
    if block is None:
        block = np.empty(size, np.uint8)
    lease = _lease(size).from_buffer(block)
    lease.block = block
    return np.ndarray(shape, dtype, lease)
