"""Sessions by visitor and tab: nobody finds another's, and those that nobody uses any more are closed."""

from __future__ import annotations

import os
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..backends.cpu import keep_memory
from ..errors import ArgumentError
from ..transforms import devices
from .chain import PRESETS
from .decoding import installed_memory
from .room import ServerBudget
from .session import Session

__all__ = ["Shelf"]


def _warm() -> None:
    """Loads what the first picture of every kind would wait for."""
    for shape in ((64, 64), (64, 64, 3)):
        x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
        for _, pipeline in PRESETS.values():
            pipeline(x)


class Shelf:
    """Sessions by visitor and tab; nobody finds another's. Those that nobody uses any more are closed."""

    KEEP = 600.0  # seconds after a tab was closed
    MOST = 32  # sessions at once

    def __init__(self, room: ServerBudget, raw: bool = True) -> None:
        self.room, self.raw = room, raw
        keep_memory(min(1 << 30, installed_memory() // 16, room.limits.total // 16))
        self.pool = ThreadPoolExecutor(max(2, os.cpu_count() or 2), "undula-studio")
        self.devices = self.pool.submit(devices)  # (drivers take their time)
        self.pool.submit(_warm)
        self._sessions: dict[tuple[str, str], Session] = {}
        self._left: dict[tuple[str, str], float] = {}

    def session(self, visitor: str, tab: str) -> tuple[Session, bool]:
        """The session of a tab, and whether it is new."""
        self.tidy()
        place = (visitor, tab)
        self._left.pop(place, None)
        if place in self._sessions:
            return self._sessions[place], False
        if len(self._sessions) >= self.MOST and self._left:  # (who left longest ago makes room)
            oldest = min(self._left, key=lambda place: self._left[place])
            del self._left[oldest]
            self._sessions.pop(oldest).close()
        if len(self._sessions) >= self.MOST:
            raise ArgumentError("too many tabs are open in this Studio; close some, or wait ten minutes")
        self._sessions[place] = Session(self.room, self.pool, self.raw)
        return self._sessions[place], True

    def by_key(self, visitor: str, key: str) -> Session | None:
        """The session that a visitor's page asks for; None if it is not theirs."""
        for (owner, _), session in self._sessions.items():
            if owner == visitor and secrets.compare_digest(session.key, key):
                return session
        return None

    def leave(self, session: Session, page: Any) -> None:
        """Its tab is gone, perhaps to come back; unless it has come back already."""
        if session.page is not page:
            return
        session.page = None
        session.playing.on = False
        for place, own in self._sessions.items():
            if own is session:
                self._left[place] = time.monotonic()

    def tidy(self) -> None:
        """Closes what nobody came back to."""
        now = time.monotonic()
        for place in [place for place, since in self._left.items() if now - since > self.KEEP]:
            del self._left[place]
            self._sessions.pop(place).close()

    def close(self) -> None:
        """Closes all."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        self.pool.shutdown(wait=False, cancel_futures=True)
