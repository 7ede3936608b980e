"""The process in which a driver was started: contexts and threads of drivers do not survive a fork."""

from __future__ import annotations

import os

from ...errors import DeviceError

__all__ = ["DriverProcess"]


class DriverProcess:
    """The process of a driver; calls in a child of it would fail, or wait for ever.

    Parameters
    ----------
    backend : str
        The backend of the driver.
    """

    def __init__(self, backend: str) -> None:
        self._backend, self._pid = backend, 0

    def started(self) -> None:
        """Record that this process started the driver."""
        self._pid = os.getpid()

    def check(self) -> None:
        """Raise an error if the driver was started before a fork."""
        if self._pid not in (0, os.getpid()):
            raise DeviceError(
                f"backend {self._backend!r} was used before this process was forked, and its driver does not"
                " survive that: start processes with multiprocessing.get_context('spawn'), or use the backend"
                " in the child processes only"
            )
