"""Threads of the CPU backend: one pool for the process, none for small work, a new one after a fork."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

from ...errors import ArgumentError

__all__ = ["get_num_threads", "ranges", "run", "set_num_threads", "workers"]

WORTHWHILE = 1 << 19  # Samples below which handing work to a second thread costs more than it saves.

_lock = Lock()
_pool: ThreadPoolExecutor | None = None
_wanted: int | None = None


@cache
def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def get_num_threads() -> int:
    """How many threads a large transform uses."""
    return _wanted or _cores()


def set_num_threads(count: int | None) -> None:
    """Sets how many threads a large transform uses; None for one on each core.

    Results do not depend on it.
    """
    global _pool, _wanted
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ArgumentError(f"the number of threads is an integer from 1 on, or None; got {count!r}")
    with _lock:
        _wanted, _pool = count, None


def _forget() -> None:
    """The child of a fork has no threads but its own."""
    global _pool, _lock
    _pool, _lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def workers(samples: int) -> int:
    """How many threads to use for so much work: one where handing it over would cost more than it saves."""
    return 1 if samples < WORTHWHILE else get_num_threads()


def ranges(count: int, threads: int) -> list[tuple[int, int]]:
    """``0 … count`` cut into one piece for each thread.

    >>> ranges(5, 2)
    [(0, 2), (2, 5)]
    """
    pieces = max(1, min(threads, count))
    return list(pairwise(count * piece // pieces for piece in range(pieces + 1)))


def run(work: Callable[..., Any], pieces: Sequence[tuple[Any, ...]]) -> None:
    """Calls ``work`` with each piece, the first on this thread and the others on the pool."""
    global _pool
    if len(pieces) == 1:
        work(*pieces[0])
        return
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(get_num_threads() - 1, 1), thread_name_prefix="undula")
        pool = _pool
    others = [pool.submit(work, *piece) for piece in pieces[1:]]
    work(*pieces[0])
    for other in others:
        other.result()
