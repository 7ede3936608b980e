"""Work that a visitor waits for, and can cancel."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .decoding import FileDecoder

__all__ = ["Activity", "ActivityList"]


@dataclass
class Activity:
    """Work that the visitor waits for, and can cancel.

    ``is_refinement`` is True if a preview of the result is shown already, and ``is_superseded`` if the work
    was stopped because its result was no longer needed.
    """

    title: str
    is_refinement: bool = False
    is_superseded: bool = False
    started: float = field(default_factory=time.monotonic)
    cancelled: threading.Event = field(default_factory=threading.Event)
    process: FileDecoder | None = None

    def cancel(self) -> None:
        """Stop the work as soon as possible."""
        self.cancelled.set()
        if self.process is not None:
            self.process.close()

    def supersede(self) -> None:
        """Stop the work, because its result is no longer needed."""
        self.is_superseded = True
        self.cancel()

    @property
    def seconds(self) -> float:
        """How long the work has taken so far."""
        return time.monotonic() - self.started


class ActivityList:
    """The activities of a session."""

    def __init__(self) -> None:
        self._running: list[Activity] = []

    @property
    def newest(self) -> Activity | None:
        """The activity that was started last; None if there is none."""
        return self._running[-1] if self._running else None

    @contextmanager
    def working(self, title: str, is_refinement: bool = False) -> Iterator[Activity]:
        """Tell the visitor that something is being done, and let them cancel it."""
        activity = Activity(title, is_refinement)
        self._running.append(activity)
        try:
            yield activity
        finally:
            self._running.remove(activity)
