"""The sessions of a server, by visitor and tab."""

from __future__ import annotations

import os
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..engines.cpu import keep_memory
from ..engines.devices import devices, unusable_devices
from ..errors import ArgumentError
from .budget import ServerBudget
from .chain import PRESETS
from .session import Session

__all__ = ["SessionRegistry"]


def _warm_up() -> None:
    """Load the kernels that the first picture would otherwise wait for."""
    for shape in ((64, 64), (64, 64, 3)):
        x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
        for _, pipeline in PRESETS.values():
            pipeline(x)


class SessionRegistry:
    """Sessions by visitor and tab; each visitor has access to their own, and abandoned ones are closed."""

    KEEP_SECONDS = 600.0  # after a tab was closed
    MAX_SESSIONS = 32

    def __init__(self, budget: ServerBudget, raw: bool = True) -> None:
        self.budget, self.raw = budget, raw
        keep_memory(min(1 << 30, budget.limits.total // 16))
        self.pool = ThreadPoolExecutor(max(2, os.cpu_count() or 2), "undula-studio")
        # Loading drivers and trying devices can take seconds.
        self.devices = self.pool.submit(lambda: (devices(), unusable_devices()))
        self.pool.submit(_warm_up)
        self._sessions: dict[tuple[str, str], Session] = {}
        self._left_at: dict[tuple[str, str], float] = {}

    def session(self, visitor: str, tab: str) -> tuple[Session, bool]:
        """Return the session of a tab, and whether it is new."""
        self.remove_abandoned()
        owner = (visitor, tab)
        self._left_at.pop(owner, None)
        if owner in self._sessions:
            return self._sessions[owner], False
        if len(self._sessions) >= self.MAX_SESSIONS and self._left_at:
            self._remove(min(self._left_at, key=lambda owner: self._left_at[owner]))
        if len(self._sessions) >= self.MAX_SESSIONS:
            raise ArgumentError("too many tabs are open in this Studio; close some, or wait ten minutes")
        self._sessions[owner] = Session(self.budget, self.pool, self.raw)
        return self._sessions[owner], True

    def by_key(self, visitor: str, key: str) -> Session | None:
        """Return the session with this key, or None if it is not the visitor's."""
        for (owner, _), session in self._sessions.items():
            if owner == visitor and secrets.compare_digest(session.key, key):
                return session
        return None

    def leave(self, session: Session, page: Any) -> None:
        """Note that the tab of a session was closed, unless it was opened again in the meantime."""
        if session.page is not page:
            return
        session.page = None
        session.playback.on = False
        for owner, other in self._sessions.items():
            if other is session:
                self._left_at[owner] = time.monotonic()

    def remove_abandoned(self) -> None:
        """Close the sessions whose tabs were closed long ago."""
        now = time.monotonic()
        for owner in [owner for owner, since in self._left_at.items() if now - since > self.KEEP_SECONDS]:
            self._remove(owner)

    def _remove(self, owner: tuple[str, str]) -> None:
        del self._left_at[owner]
        self._sessions.pop(owner).close()

    def close(self) -> None:
        """Close all sessions."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        self.pool.shutdown(wait=False, cancel_futures=True)
