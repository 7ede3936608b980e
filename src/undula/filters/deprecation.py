"""Former names of arguments, which still work and warn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

__all__ = ["RENAMED_ARGUMENTS", "accept_former_names"]

RENAMED_ARGUMENTS = {"most": "max_gain"}

Target = TypeVar("Target", bound=Callable[..., Any])


def accept_former_names(target: Target) -> Target:
    """Decorate a function, or a class, to accept the former names of its arguments."""
    function = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]

    @wraps(function)
    def renaming(*arguments: Any, **keywords: Any) -> Any:
        for former in RENAMED_ARGUMENTS.keys() & keywords.keys():
            name = RENAMED_ARGUMENTS[former]
            warnings.warn(f"{former}= is deprecated; use {name}=", DeprecationWarning, stacklevel=2)
            keywords[name] = keywords.pop(former)
        return function(*arguments, **keywords)

    if isinstance(target, type):
        type.__setattr__(target, "__init__", renaming)
        return target
    return renaming  # type: ignore[return-value]
