"""Memory for results, which is reused.

The system provides memory page by page, and clears each page at the first access; for a transform that runs
at the speed of memory, this takes as long as the work itself. So the memory of large results is kept for
later ones when its last array is gone, up to a limit. Blocks that were not used for longest are freed first.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, NotEnoughMemoryError
from .threads import get_num_threads, ranges, run

__all__ = [
    "MEMORY_ADVICE",
    "allocator",
    "available_memory",
    "copy_bytes",
    "empty",
    "free_kept",
    "installed_memory",
    "keep_at_most",
    "keep_memory",
    "kept_memory",
    "memory_size",
]

Array = NDArray[Any]

SMALL = 1 << 15  # Bytes: what is smaller, the system keeps for itself.
SMALL_RESULTS = 3 << 15  # The same of all results of a call: it gives back what is more than 128 KiB.
PAGE = 4096
MEMORY_ADVICE = "filter over fewer axes, with fewer shifts or quality fast, or a part at a time"
M_MMAP_THRESHOLD = -3  # of mallopt
LARGE = 1 << 21  # Bytes that several threads copy sooner than one.

_kept: OrderedDict[int, list[Array]] = OrderedDict()  # by size, that which was used last at the end
_returned: deque[Array] = deque()  # blocks just given back: half of the limit is for them
_total = 0
_lock = Lock()


def _forget() -> None:
    """Make a new lock: a thread that the child of a fork does not have may hold the old one."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def installed_memory() -> int | None:
    """Return the bytes of physical memory, or None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def memory_size(nbytes: float) -> str:
    """Return a number of bytes as text.

    Examples
    --------
    >>> memory_size(3 << 29)
    '1.6 GB'
    """
    return f"{nbytes / 1e9:,.1f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:,.0f} MB"


def available_memory() -> int | None:
    """Return how many bytes this process can still use, or None where the system does not say."""
    limits = (_unused_memory(), _unused_of_group(), _unused_addresses())
    return min((limit for limit in limits if limit is not None), default=installed_memory())


def _unused_memory() -> int | None:
    """Return the bytes that no process uses, and those that are kept for results."""
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return (int(line.split()[1]) << 10) + kept_memory()
    return None


def _unused_of_group() -> int | None:
    """Return the bytes that the group of processes, such as a container, may still use."""
    with suppress(OSError, ValueError):
        folder = Path("/sys/fs/cgroup")
        most, used = (int((folder / f"memory.{name}").read_text()) for name in ("max", "current"))
        return most - used + kept_memory()
    return None


def _unused_addresses() -> int | None:
    """Return the bytes of addresses that the process may still use, if they are limited."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return max(0, most - pages * resource.getpagesize()) + kept_memory()
    return None


def _usual_limit() -> int:
    """Return an eighth of the memory of the machine, at most 2 GiB."""
    return min(1 << 31, (installed_memory() or 1 << 31) // 8)


_limit = _usual_limit()


def keep_memory(limit: int | None) -> None:
    """Set how many bytes of results that are no longer used are kept for later ones.

    Parameters
    ----------
    limit : int or None
        The number of bytes; 0 keeps none. None stands for the default, an eighth of the machine's memory, at
        most 2 GiB.

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


def _return_freed_memory() -> None:
    """Let glibc return every larger block to the system when it is freed, from now on.

    By default it learns to keep blocks of up to 32 MiB, and several threads fragment them.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 4 * SMALL)


@contextmanager
def keep_at_most(limit: int) -> Iterator[None]:
    """Keep no more than so many bytes, for work whose memory must not grow."""
    before = _limit
    _return_freed_memory()
    keep_memory(min(limit, before))
    try:
        yield
    finally:
        keep_memory(before)


def kept_memory() -> int:
    """Return how many bytes are kept at the moment.

    Returns
    -------
    int
        The number of bytes.

    Examples
    --------
    >>> kept_memory() >= 0
    True
    """
    with _lock:
        _settle()
        return _total


def free_kept() -> None:
    """Free all memory that is kept for later results, for work of other sizes that needs it."""
    global _total
    with _lock:
        _settle()
        _kept.clear()
        _total = 0


def _give_back(lease: Any) -> None:
    """Take back a block whose last array is gone.

    This may happen at any time, even during an interrupt. So nothing is locked here: the block only joins
    those that the next allocation looks at.
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
    """Keep the blocks that were given back, and free those that were not used for longest."""
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
    """Return a kept block of this size; None if there is none."""
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
    """Return a type of buffers of so many bytes, which notice when the last array on them is gone."""
    return type("Lease", (ctypes.c_char * size,), {"__del__": _give_back})


def copy_bytes(target: Array, source: Array) -> None:
    """Copy bytes, by several threads if there are many."""
    many = min(4, get_num_threads()) if source.nbytes >= LARGE else 1
    pieces = ranges(source.nbytes, many)
    run(lambda begin, end: np.copyto(target[begin:end], source[begin:end]), pieces)


def allocator(size: int) -> Callable[[tuple[int, ...], np.dtype[Any]], Array]:
    """Return the function that makes the results of a call, of so many bytes together."""
    return np.empty if size < SMALL_RESULTS else empty


def _new(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> Array:
    """Return a new array, or raise an error that says how much memory it needs."""
    try:
        return np.empty(shape, dtype)
    except MemoryError:
        raise NotEnoughMemoryError(
            f"an array of {memory_size(size)} does not fit into memory: use fewer levels or float32, divide"
            " the array, or pass a Dask array, which is transformed chunk by chunk"
        ) from None


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an uninitialised array, like ``np.empty``, in memory that is kept if there is some."""
    size = math.prod(shape) * dtype.itemsize
    if size < SMALL:
        return np.empty(shape, dtype)
    if not _limit:
        return _new(shape, dtype, size)
    size = -(-size // PAGE) * PAGE
    block = _taken(size)
    if block is None:
        block = _new((size,), np.dtype(np.uint8), size)
    lease = _lease(size).from_buffer(block)
    lease.block = block
    return np.ndarray(shape, dtype, lease)
