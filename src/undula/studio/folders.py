"""The private folder of a running server, removed when the server ends.

A lock that the system releases with the process tells running servers from killed ones, whose folders the
next server removes.
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
except ImportError:  # Windows has no such locks, so that folders of killed servers stay.
    fcntl = None  # type: ignore[assignment]

__all__ = ["private_folder"]

PREFIX = "undula-studio-"
LOCK = "lock"


@contextmanager
def private_folder() -> Iterator[Path]:
    """Create a folder that only this user can read, locked while in use and removed afterwards.

    Folders of servers that were killed are removed first.
    """
    _remove_leftovers(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (folder / f".{LOCK}").open("w") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
                # The lock gets its final name only now, so that no other server sees it unlocked.
                (folder / f".{LOCK}").rename(folder / LOCK)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_leftovers(base: Path) -> None:
    """Remove the folders of servers that no longer run, which are those that nobody has locked."""
    if fcntl is None:
        return
    for folder in base.glob(f"{PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                continue
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
