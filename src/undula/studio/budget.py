"""The resources that all visitors of a server share: a folder, disk space and memory.

    uploads              take disk space as their bytes arrive, and release it when they are closed
    open files           hold memory for their pixels and bitmaps, at most half of the total
    decoding, filtering  use the rest, and wait for each other if it is not enough for all at once

Memory is not measured: each user of it declares its needs in advance, so that simultaneous work cannot exceed
the total. Those of filters are estimated by :func:`undula.filters.memory.working_memory`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from ..engines.memory import MEMORY_ADVICE, memory_size
from ..errors import FileError
from .decoding import StudioLimits

__all__ = ["BYTES_PER_SAMPLE", "MemoryBudget", "ServerBudget", "pyramid_memory"]

SMALL_WORK_BYTES = 32 << 20  # work that never waits
BYTES_PER_SAMPLE = 24  # working memory of figures for each sample
PYRAMID_BYTES_PER_PIXEL = 48


def pyramid_memory(frame: Any) -> int:
    """Return an upper bound on the bytes needed to render the pyramids of a frame."""
    precision = 2 if frame.dtype.itemsize > 2 and frame.dtype != "float32" else 1
    return int(precision * PYRAMID_BYTES_PER_PIXEL * frame.shape[0] * frame.shape[1])


class MemoryBudget:
    """Bytes of memory, held by open files and lent to computations."""

    def __init__(self, total: int) -> None:
        self.total, self.held, self.working = total, 0, 0
        self._lock = Lock()
        self._waiting: list[asyncio.Future[None]] = []

    def hold(self, nbytes: int) -> None:
        """Take bytes for an open file."""
        with self._lock:
            if self.held + nbytes > self.total // 2:
                raise FileError(
                    f"showing it takes {nbytes / 1e6:,.0f} MB of memory, and"
                    f" {(self.total // 2 - self.held) / 1e6:,.0f} MB are left for open files: close another"
                    " file, or start the Studio with a larger --max-memory"
                )
            self.held += nbytes

    def release(self, nbytes: int) -> None:
        """Return the bytes of an open file."""
        with self._lock:
            self.held -= nbytes
        self._wake()

    def can_lend(self, nbytes: int) -> bool:
        """Return whether so many bytes can be lent, possibly after waiting."""
        return nbytes <= max(SMALL_WORK_BYTES, self.total - self.held)

    @asynccontextmanager
    async def lend(self, nbytes: int) -> AsyncIterator[None]:
        """Lend bytes to a computation, as soon as they are available."""
        if not self.can_lend(nbytes):
            raise FileError(
                f"this takes {memory_size(nbytes)} of memory, and {memory_size(self.total - self.held)} are"
                f" available: {MEMORY_ADVICE}, close a file, or start the Studio with a larger --max-memory"
            )
        nbytes = nbytes if nbytes > SMALL_WORK_BYTES else 0
        while nbytes and self.working and self.working + nbytes > self.total - self.held:
            self._waiting.append(asyncio.get_running_loop().create_future())
            await self._waiting[-1]
        self.working += nbytes
        try:
            yield
        finally:
            self.working -= nbytes
            self._wake()

    def _wake(self) -> None:
        """Let everything that waits check again."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            with suppress(RuntimeError):  # The event loop may be closed already.
                future.get_loop().call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class ServerBudget:
    """Folder, disk space and memory of a server."""

    def __init__(self, limits: StudioLimits, folder: Path) -> None:
        self.limits, self.folder = limits, folder
        self.memory = MemoryBudget(limits.total)
        self.stored = 0

    def store(self, nbytes: int) -> None:
        """Take disk space for an upload."""
        if self.stored + nbytes > self.limits.disk:
            raise FileError(
                f"open uploads take {self.stored / 1e6:,.0f} MB of disk space, and this Studio allows"
                f" {self.limits.disk / 1e6:,.0f} MB (--max-disk): close a file first"
            )
        self.stored += nbytes

    def discard(self, nbytes: int) -> None:
        """Release disk space."""
        self.stored -= nbytes
