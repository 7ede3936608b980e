"""Files that begin with a digest of their contents: written complete or not at all, and read only if whole.

Machine code and compiled kernels are kept in such files, which many processes may use at once.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["read_file", "write_file"]

DIGEST_BYTES = 32


def read_file(path: Path) -> bytes | None:
    """Return the contents of a file; None if there is none, or if it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    data = content[DIGEST_BYTES:]
    return data if hashlib.sha256(data).digest() == content[:DIGEST_BYTES] else None


def write_file(path: Path, data: bytes) -> bool:
    """Write a file, and the folders that it needs; return whether that was possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        return False
    return True
