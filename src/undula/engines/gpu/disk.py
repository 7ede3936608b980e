"""A cache on disk for compiled kernels and tuning results.

Many processes may use it at once, and it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from ..digests import read_file, write_file

__all__ = ["folder", "load", "load_text", "save", "save_text"]


def folder() -> Path | None:
    """Return the folder of the cache: ``$XDG_CACHE_HOME/undula/kernels``, or the same below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "undula" / "kernels"
    with suppress(RuntimeError):  # The user has no home directory.
        return Path.home() / ".cache" / "undula" / "kernels"
    return None


def _path(key: str) -> Path | None:
    place = folder()
    return None if place is None else place / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.bin"


def load(key: str) -> bytes | None:
    """Return the entry of a key; None if there is none, or if its file is damaged."""
    path = _path(key)
    return None if path is None else read_file(path)


def save(key: str, data: bytes) -> None:
    """Store an entry; failures are ignored."""
    path = _path(key)
    if path is not None:
        write_file(path, data)


def load_text(key: str) -> str | None:
    """Return the text of a key; None if there is none."""
    data = load(f"text {key}")
    return None if data is None else data.decode()


def save_text(key: str, text: str) -> None:
    """Store a text."""
    save(f"text {key}", text.encode())
