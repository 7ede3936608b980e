"""Writing of regions: after an error or an interrupt, remaining tasks of the run write nothing.

A thread cannot be stopped. One that is left behind may end its task when another run writes the same output,
with another filter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Any
from uuid import uuid4

from .opening import open_array

__all__ = ["run_token", "write_region", "writing"]

_changed = Condition()
_writing: Counter[str] = Counter()
_ended: set[str] = set()


@contextmanager
def run_token() -> Iterator[str]:
    """Yield what identifies a run; after an error, wait for what is being written, and let nothing follow."""
    token = uuid4().hex
    try:
        yield token
    except BaseException:
        with _changed:
            _ended.add(token)
            _changed.wait_for(lambda: not _writing[token])
        raise


@contextmanager
def writing(token: str) -> Iterator[None]:
    """Write a part of an output, unless the run has ended."""
    with _changed:
        if token in _ended:
            raise RuntimeError("the run has ended")
        _writing[token] += 1
    try:
        yield
    finally:
        with _changed:
            _writing[token] -= 1
            _changed.notify_all()


def write_region(location: str, token: str, region: tuple[slice, ...], values: Any) -> None:
    """Write a region of an array."""
    with writing(token):
        open_array(location, token, True)[region] = values
