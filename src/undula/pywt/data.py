"""The samples of ``undula.data``, where ``import pywt.data`` looks for them."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_") or find_spec("undula.data") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("undula.data"), name)
