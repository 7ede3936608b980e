"""The folder of a running server: nobody else may look into it, and it goes with the server.

A lock that dies with its process tells living servers from those that were killed, whose folders the next one
clears.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # (Windows, where nothing tells whether a server still lives)
    fcntl = None  # type: ignore[assignment]

__all__ = ["private_folder"]

PREFIX = "undula-studio-"
LOCK = "lock"


@contextmanager
def private_folder() -> Iterator[Path]:
    """A new folder that only this user may look into; it is locked while it is used, and gone afterwards.

    Folders of servers that were killed are cleared before.
    """
    _clear_leftovers(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (folder / f".{LOCK}").open("w") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
                (folder / f".{LOCK}").rename(folder / LOCK)  # (there is none that is not locked)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _clear_leftovers(base: Path) -> None:
    """Removes folders whose server lives no more: nobody holds their lock."""
    if fcntl is None:
        return
    for folder in base.glob(f"{PREFIX}*"):
        with suppress(OSError):
            known = folder.lstat()
            if not stat.S_ISDIR(known.st_mode) or known.st_uid != os.getuid():
                continue
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
