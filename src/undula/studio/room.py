"""What all visitors of a server share: a folder, so many bytes of disk, and so many of memory.

    uploads            take disk, byte by byte as they come, and give it back when they are closed
    what is open       holds memory: its pixels, and what is kept to show them; at most half of all
    decoding, filters  work in what is left, and wait for each other where it is too little for all at once

Nothing is measured: everybody says before how much they will need, so that many at once cannot take more than
one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from ..errors import FileError
from ..filters import Pipeline
from .decoding import Limits

__all__ = ["SAMPLE", "MemoryBudget", "ServerBudget", "work_for"]

LITTLE = 32 << 20  # bytes of work that nobody has to wait for
SAMPLE, SHIFT, PYRAMID = 24, 40, 48  # bytes of work for each sample, for each level of shifts, for each pixel


def work_for(frame: Any, pipeline: Pipeline, pyramid: bool = False) -> int:
    """Bytes that filtering a frame needs at most, as was measured; or those of looking at its bands."""
    wide = 2 if frame.dtype.itemsize > 2 and frame.dtype != "float32" else 1
    if pyramid:
        return int(wide * PYRAMID * frame.shape[0] * frame.shape[1])
    shifts = min(int(pipeline.invariant), 64 if pipeline.level is None else pipeline.level)
    if pipeline.invariant is True or shifts > 10:
        shifts = 10
    return int(wide * frame.size * (SAMPLE + SHIFT * shifts))


class MemoryBudget:
    """So many bytes, held by what is open and lent to what works."""

    def __init__(self, total: int) -> None:
        self.total, self.held, self.working = total, 0, 0
        self._lock = Lock()
        self._waiting: list[asyncio.Future[None]] = []

    def hold(self, nbytes: int) -> None:
        """Takes bytes for as long as something is open."""
        with self._lock:
            if self.held + nbytes > self.total // 2:
                raise FileError(
                    f"it takes {nbytes / 1e6:,.0f} MB of memory to show it, and"
                    f" {(self.total // 2 - self.held) / 1e6:,.0f} MB are left for all that is open: close"
                    " something first, or start the Studio with a larger --max-memory"
                )
            self.held += nbytes

    def release(self, nbytes: int) -> None:
        """Gives bytes back."""
        with self._lock:
            self.held -= nbytes
        self._wake()

    def has(self, nbytes: int) -> bool:
        """Whether there is so much for work, sooner or later."""
        return nbytes <= max(LITTLE, self.total - self.held)

    @asynccontextmanager
    async def lend(self, nbytes: int) -> AsyncIterator[None]:
        """Bytes for some work, as soon as there are so many."""
        if not self.has(nbytes):
            raise FileError(
                f"this needs {nbytes / 1e6:,.0f} MB of memory, and the Studio has"
                f" {(self.total - self.held) / 1e6:,.0f} MB for it: choose fewer shifts, close something, or"
                " start it with a larger --max-memory"
            )
        nbytes = nbytes if nbytes > LITTLE else 0
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
        """Whoever waits looks again."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            with suppress(RuntimeError):  # (a loop that is closed)
                each.get_loop().call_soon_threadsafe(_done, each)


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class ServerBudget:
    """Folder, disk and memory of a server."""

    def __init__(self, limits: Limits, folder: Path) -> None:
        self.limits, self.folder = limits, folder
        self.memory = MemoryBudget(limits.total)
        self.stored = 0

    def store(self, nbytes: int) -> None:
        """Takes bytes of disk."""
        if self.stored + nbytes > self.limits.disk:
            raise FileError(
                f"all that visitors have open takes {self.stored / 1e6:,.0f} MB of disk already, and"
                f" {self.limits.disk / 1e6:,.0f} MB is the limit of this Studio (--max-disk): close something"
            )
        self.stored += nbytes

    def discard(self, nbytes: int) -> None:
        """Gives bytes of disk back."""
        self.stored -= nbytes
