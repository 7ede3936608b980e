"""The stages of pipelines.

A stage is a value: it can be compared, printed and written as JSON. It works at one place of the pyramid:

    image           before the decomposition
    approximation   of a level, before it is decomposed further
    last            the approximation that remains
    details         of all levels or some, 1 being the finest
    result          after the reconstruction

    x ─ image ─▶ level 1 ─▶ approximation ─▶ level 2 ─▶ last ─▶ reconstruction ─▶ result
                    └ details                   └ details
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..errors import ArgumentTypeError, UnknownNameError
from .base import FilterStage
from .collaborative import PROFILE_NAMES, Collaborative
from .deprecation import RENAMED_ARGUMENTS
from .details import Contrast, Gain
from .directional import Directional
from .shrinkage import METHODS, RULES, Shrink
from .spatial import PLACES, Blur, Laplace, Unsharp

__all__ = [  # The names that undula.filters exports.
    "METHODS",
    "PLACES",
    "PROFILE_NAMES",
    "RULES",
    "STAGES",
    "Blur",
    "Collaborative",
    "Contrast",
    "Directional",
    "FilterStage",
    "Gain",
    "Laplace",
    "Shrink",
    "Unsharp",
]

STAGES: dict[str, type[FilterStage]] = {
    stage.kind: stage
    for stage in (Shrink, Directional, Collaborative, Gain, Contrast, Blur, Unsharp, Laplace)
}
"""The stages of pipelines by the name that they have in JSON."""


def as_stage(value: Any) -> FilterStage:
    """Return a stage, given a stage, its name, or the dictionary that JSON has for it."""
    if isinstance(value, FilterStage):
        return value
    if isinstance(value, str):
        value = {"stage": value}
    if not isinstance(value, Mapping) or "stage" not in value:
        raise ArgumentTypeError(
            f"expected a stage, its name, or a dictionary with the key 'stage'; got {value!r}"
        )
    name = value["stage"]
    name = name.lower() if isinstance(name, str) else name
    if not isinstance(name, str) or name not in STAGES:
        raise UnknownNameError("stage", name, tuple(STAGES))
    names = tuple(field.name for field in fields(STAGES[name]))
    # Files that were written before an argument was renamed can still be read.
    arguments: dict[Any, Any] = {RENAMED_ARGUMENTS.get(str(key), key): value[key] for key in value}
    del arguments["stage"]
    for key in arguments:
        if key not in names:
            raise UnknownNameError(f"argument of {name}", key, names)
    return STAGES[name](**arguments)
