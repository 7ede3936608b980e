"""The samples of :mod:`undula.data`, where ``import pywt.data`` looks for them."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(import_module("undula.data"), name)
