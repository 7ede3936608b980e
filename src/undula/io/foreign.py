"""Calls of decoders and encoders of other packages, which may raise anything.

What libraries in Rust raise is not even an ``Exception``: one damaged byte in one file would end a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import FileError, UndulaError
from .files import short_message

__all__ = ["foreign_code"]


@contextmanager
def foreign_code(
    problem: str | Callable[[BaseException], Exception], *passed: type[Exception]
) -> Iterator[None]:
    """Raise a FileError in place of whatever else is raised.

    Parameters
    ----------
    problem : str or callable
        What could not be done, such as ``"cannot read x.png"``; or a function that returns the error to raise
        for another one.
    *passed : type
        Errors that are raised as they are, besides those of Undula.
    """
    unchanged: tuple[type[BaseException], ...] = (UndulaError, KeyboardInterrupt, GeneratorExit, *passed)
    try:
        yield
    except unchanged:
        raise
    except BaseException as error:
        if callable(problem):
            raise problem(error) from None
        cause = "it does not fit into memory" if isinstance(error, MemoryError) else short_message(error)
        raise FileError(f"{problem}: {cause}") from None
