"""What a task may use of the worker that runs it: threads, and memory that is kept."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..memory import keep_memory
from ..threads import single_thread

__all__ = ["worker_resources"]

KEPT_SHARE = 16  # A worker may keep this part of its memory for the results of later tasks.

_limited = False


@contextmanager
def worker_resources() -> Iterator[None]:
    """Use one thread, unless told otherwise, as a worker runs many tasks at once; and keep little memory."""
    _limit_kept_memory()
    with single_thread():
        yield


def _limit_kept_memory() -> None:
    """Limit the memory that is kept by the limit of the worker, which knows nothing of it."""
    global _limited
    distributed = sys.modules.get("distributed")
    if _limited or distributed is None:
        return
    try:
        limit = distributed.get_worker().memory_manager.memory_limit
    except ValueError:  # This process is no worker.
        return
    _limited = True
    if limit:
        keep_memory(int(limit) // KEPT_SHARE)
