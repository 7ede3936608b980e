"""Compiled kernels on disk: safe for many processes at once, and worth nothing if lost."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["folder", "keep", "kept", "remember", "remembered"]

DIGEST = 32


def folder() -> Path | None:
    """Where things are kept: ``$XDG_CACHE_HOME/undula/kernels``, or below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "undula" / "kernels"
    with suppress(RuntimeError):  # (somebody without a home)
        return Path.home() / ".cache" / "undula" / "kernels"
    return None


def _path(key: str) -> Path | None:
    place = folder()
    return None if place is None else place / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.bin"


def kept(key: str) -> bytes | None:
    """What was kept under a key, if it is whole."""
    path = _path(key)
    if path is None:
        return None
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    code = whole[DIGEST:]
    return code if hashlib.sha256(code).digest() == whole[:DIGEST] else None


def keep(key: str, code: bytes) -> None:
    """Writes at once and whole, or not at all."""
    path = _path(key)
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)


def remembered(key: str) -> str | None:
    """A text kept under a key."""
    found = kept(f"text {key}")
    return None if found is None else found.decode()


def remember(key: str, text: str) -> None:
    """Keeps a text."""
    keep(f"text {key}", text.encode())
