"""Transforms of tensors by operators that their library knows, and so can differentiate, trace and batch."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["NOTHING", "call_untraced", "is_torch_compiling", "replaced"]

NOTHING = "None"  # stands for None, which functions that torch.compile does not trace cannot take


def is_torch_compiling() -> bool:
    """Return whether ``torch.compile`` traces the caller, in place of running it."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def call_untraced(module: str, name: str, *arguments: Any, **options: Any) -> Any:
    """Call a function of this package so that ``torch.compile`` sees nothing but its operators."""
    from .compiling import call_untraced

    marked = {key: replaced(value, None, NOTHING) for key, value in options.items()}
    return call_untraced(module, name, *[replaced(value, None, NOTHING) for value in arguments], **marked)


def replaced(value: Any, old: str | None, new: str | None) -> Any:
    """Return an argument, however nested, with another value in place of None or of a word."""
    if isinstance(value, dict):
        return {key: replaced(part, old, new) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [replaced(part, old, new) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if value is None or isinstance(value, str):
        return new if value == old else value
    return value
