"""The Studio: a web page for setting up wavelet filters interactively, served by ``undula studio``."""

from __future__ import annotations

import warnings
from typing import Any

from .decoding import StudioLimits
from .server import ServerOptions, serve

__all__ = ["ServerOptions", "StudioLimits", "serve"]

_DEPRECATED = {"Limits": StudioLimits, "Options": ServerOptions}


def __getattr__(name: str) -> Any:
    if name not in _DEPRECATED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = _DEPRECATED[name]
    warnings.warn(f"undula.studio.{name} is now {new.__name__}", DeprecationWarning, stacklevel=2)
    return new
