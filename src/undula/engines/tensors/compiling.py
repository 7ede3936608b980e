"""Functions of this package within ``torch.compile``, which would otherwise trace all that they do in Python.

PyTorch runs them with tensors without memory, and keeps the operators that they call.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from torch._dynamo import nonstrict_trace
from torch.utils import _pytree as pytree

from ...wavelets import Wavelet
from . import NOTHING, replaced

__all__ = ["call_untraced"]

pytree.register_constant(Wavelet)


@nonstrict_trace
def call_untraced(module: str, name: str, *arguments: Any, **options: Any) -> Any:
    """Call a function by its name; only the operators that it calls are traced."""
    function = getattr(import_module(module), name)
    given = {key: replaced(value, NOTHING, None) for key, value in options.items()}
    return function(*[replaced(value, NOTHING, None) for value in arguments], **given)
