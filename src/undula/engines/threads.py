"""Threads of the CPU engine: as many as there are cores, none for small work, new ones after a fork.

Work is divided into pieces, and each free thread takes the next one, the caller's included. So no caller
waits for a thread that the system is slow to wake, and many callers can share the threads without a deadlock.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np

from ..errors import ArgumentError, UndulaError

__all__ = [
    "WorkCancelledError",
    "cancellable",
    "frame_workers",
    "get_num_threads",
    "ranges",
    "run",
    "set_num_threads",
    "share_of_threads",
    "single_thread",
    "workers",
]

MAX_THREADS = 4096  # more than any machine has cores
WORTHWHILE = 1 << 19  # Samples below which handing work to a second thread costs more than it saves.

MAX_FRAMES = 4  # at the same time

_lock = Lock()
_started = 0
_jobs: SimpleQueue[_Job] = SimpleQueue()
_requested_threads: int | None = None


class _ThreadLimit(threading.local):
    limit: int | None = None
    cancelled: threading.Event | None = None


_local = _ThreadLimit()


class WorkCancelledError(UndulaError):
    """Work was cancelled before it was finished."""


@contextmanager
def cancellable(cancelled: threading.Event) -> Iterator[None]:
    """Raise an error between pieces of work of this thread as soon as the event is set."""
    before, _local.cancelled = _local.cancelled, cancelled
    try:
        yield
        _check_cancelled()
    finally:
        _local.cancelled = before


def _check_cancelled() -> None:
    if _local.cancelled is not None and _local.cancelled.is_set():
        raise WorkCancelledError("the computation was cancelled")


@cache
def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _threads_of_environment() -> int | None:
    """Return the number of threads that the environment sets, None if it sets none."""
    for variable in ("UNDULA_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(variable, "").split(",")[0].strip()
        if not text:
            continue
        if text.isdecimal() and 1 <= int(text) <= MAX_THREADS:
            return int(text)
        warnings.warn(
            f"{variable}={os.environ[variable]!r} is not a number of threads from 1 to {MAX_THREADS}, and is"
            " ignored",
            RuntimeWarning,
            stacklevel=3,
        )
    return None


def get_num_threads() -> int:
    """Return how many threads a large transform uses.

    That is the number that :func:`set_num_threads` set, the environment variable ``UNDULA_NUM_THREADS`` or
    ``OMP_NUM_THREADS``, or else one for each core.

    Returns
    -------
    int
        The number of threads.

    Examples
    --------
    >>> get_num_threads() >= 1
    True
    """
    return _local.limit or _requested_threads or _threads_of_environment() or _cores()


def frame_workers() -> int:
    """Return how many frames to filter at the same time, each with its share of the threads.

    More frames would need more memory than caches have.
    """
    return min(MAX_FRAMES, get_num_threads())


@contextmanager
def single_thread() -> Iterator[None]:
    """Use one thread, unless the caller or the environment asked for more."""
    before, _local.limit = _local.limit, _requested_threads or _threads_of_environment() or 1
    try:
        yield
    finally:
        _local.limit = before


@contextmanager
def share_of_threads(workers: int) -> Iterator[None]:
    """Use the share of threads of one of several workers, in the thread of that worker."""
    before, _local.limit = _local.limit, max(1, get_num_threads() // workers)
    try:
        yield
    finally:
        _local.limit = before


def set_num_threads(count: int | None) -> None:
    """Set how many threads a large transform uses.

    Results do not depend on it.

    Parameters
    ----------
    count : int or None
        The number of threads. None restores the default of :func:`get_num_threads`.

    Examples
    --------
    >>> set_num_threads(1)
    >>> get_num_threads()
    1
    >>> set_num_threads(None)
    """
    global _requested_threads
    if count is not None and (
        isinstance(count, bool) or not isinstance(count, (int, np.integer)) or not 1 <= count <= MAX_THREADS
    ):
        raise ArgumentError(
            f"the number of threads is an integer from 1 to {MAX_THREADS}, or None; got {count!r}"
        )
    _requested_threads = None if count is None else int(count)


def _forget() -> None:
    """Forget all threads: the child of a fork has only its own."""
    global _lock, _started, _jobs
    _lock, _started, _jobs = Lock(), 0, SimpleQueue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def workers(samples: int) -> int:
    """Return how many threads to use for so many samples: one, if sharing them would not pay off."""
    return 1 if samples < WORTHWHILE else get_num_threads()


def ranges(count: int, threads: int) -> list[tuple[int, int]]:
    """Divide ``0 … count`` into one piece for each thread.

    Examples
    --------
    >>> ranges(5, 2)
    [(0, 2), (2, 5)]
    """
    pieces = max(1, min(threads, count))
    return list(pairwise(count * piece // pieces for piece in range(pieces + 1)))


class _Job:
    """The pieces of one call of :func:`run`, for threads that are free."""

    def __init__(self, work: Callable[..., Any], pieces: Sequence[tuple[Any, ...]]) -> None:
        self.work, self.pieces = work, deque(pieces)
        self.done: SimpleQueue[BaseException | None] = SimpleQueue()  # one for each piece of a helper
        self.left: SimpleQueue[None] = SimpleQueue()  # One entry for each helper that has left.

    def help(self) -> None:
        """Work until no piece is left."""
        while True:
            try:
                piece = self.pieces.popleft()
            except IndexError:
                break
            try:
                self.work(*piece)
            except BaseException as error:
                self.done.put(error)
            else:
                self.done.put(None)
        self.left.put(None)


def _serve(jobs: SimpleQueue[_Job]) -> None:
    while True:
        jobs.get().help()


def run(work: Callable[..., Any], pieces: Sequence[tuple[Any, ...]]) -> None:
    """Call ``work`` with each piece, on this thread and on others.

    When this returns, even by an interrupt, no thread works on a piece any more, so arrays may be freed.
    """
    global _started
    # There may be thousands of pieces, but no more threads than the caller allows.
    others = min(len(pieces), get_num_threads()) - 1
    if not others:
        for piece in pieces:
            _check_cancelled()
            work(*piece)
        return
    if _started < others:
        with _lock:
            while _started < others:
                Thread(target=_serve, args=(_jobs,), name="undula", daemon=True).start()
                _started += 1
    job = _Job(work, pieces)
    for _ in range(others):
        _jobs.put(job)
    done_here = 0
    try:
        while job.pieces:
            _check_cancelled()
            try:
                piece = job.pieces.popleft()
            except IndexError:  # Another thread took the last piece.
                break
            work(*piece)
            done_here += 1
        errors = [
            error for error in (job.done.get() for _ in range(len(pieces) - done_here)) if error is not None
        ]
    except BaseException:
        job.pieces.clear()
        _wait(job.left, others)
        raise
    if errors:
        raise errors[0]


def _wait(queue: SimpleQueue[None], count: int) -> None:
    """Take so many entries from a queue, however often this is interrupted."""
    while count:
        try:
            queue.get()
        except BaseException:
            continue
        count -= 1
