"""An extension of griffe, which reads the code for the reference: default values as they are.

Defaults that several functions share are written once, as in ``method: str = Denoising.method``. Readers want
to see ``"bivariate"``. Fields of dataclasses that functions declare are shown with their default values, too.
Of choices in braces, griffe takes the first for the default, whatever follows them.

The pages are Markdown: marks of reStructuredText that it does not know are removed from docstrings.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from typing import Any

import griffe

CHOICES = re.compile(r"^(\s*\w[\w, ]* : )\{(.+?)\}", re.M)
PARAMETER_TYPE = re.compile(r"^\s*\w[\w, ]* : .*$", re.M)
ROLE = re.compile(r":(?:class|func|meth|data|mod|attr):`~?([^`]+)`")
LITERAL_BLOCK = re.compile(r"^::\n", re.M)


class RuntimeDefaults(griffe.Extension):
    """Replace defaults that are names by what they are when the code runs, and choices by lists of words."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite ``{"a", "b", "c"}`` as ``"a" | "b" | "c"``, and cross-references as code."""
        if obj.docstring is not None:
            text = CHOICES.sub(_listed, obj.docstring.value)
            text = PARAMETER_TYPE.sub(lambda found: found[0].replace("``", ""), text)
            obj.docstring.value = LITERAL_BLOCK.sub("", ROLE.sub(r"``\1``", text))

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Look at a function that griffe has read."""
        named = [p for p in func.parameters if p.default is not None and not _is_literal(str(p.default))]
        if not named or (func.name.startswith("_") and func.name != "__init__"):
            return
        try:
            found = inspect.signature(pkgutil.resolve_name(func.path)).parameters
        except (ImportError, AttributeError, TypeError, ValueError):  # PyTorch may be missing, for instance.
            return
        for parameter in named:
            value = found[parameter.name].default if parameter.name in found else inspect.Parameter.empty
            if parameter.name not in found and func.name == "__init__":  # griffe takes ClassVar for a field.
                del func.parameters[parameter.name]
            if _is_literal(repr(value)):
                parameter.default = repr(value).replace("'", '"')


def _listed(found: re.Match[str]) -> str:
    return found[1] + found[2].replace(", ", " | ")


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True
