"""An extension of griffe, which reads the code for the reference: default values as values, and not as names.

Defaults that several functions share are written once, as in ``method: str = Denoising.method``. Readers want
to see ``"bivariate"``.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
from typing import Any

import griffe


class RuntimeDefaults(griffe.Extension):
    """Replace defaults that are names by what they are when the code runs."""

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Look at a function that griffe has read."""
        named = [p for p in func.parameters if p.default is not None and not _is_literal(str(p.default))]
        if not named or func.name.startswith("_"):
            return
        try:
            found = inspect.signature(pkgutil.resolve_name(func.path)).parameters
        except (ImportError, AttributeError, TypeError, ValueError):  # PyTorch may be missing, for instance.
            return
        for parameter in named:
            value = found[parameter.name].default if parameter.name in found else inspect.Parameter.empty
            if _is_literal(repr(value)):
                parameter.default = repr(value).replace("'", '"')


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True
