"""Stages: what a pipeline does, one thing each.

A stage is a value: it can be compared, printed, and written down as JSON. Places are those of a pyramid:

    image           before anything is decomposed
    approximation   of a level, before it is decomposed further
    last            the approximation that is left
    details         of all levels or of some, 1 being the finest

    x ─ image ─▶ level 1 ─▶ approximation ─▶ level 2 ─▶ last
                    └ details                   └ details
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..errors import ArgumentTypeError, UnknownNameError
from .base import Pyramid, Stage
from .details import Contrast, Gain
from .shrinkage import METHODS, RULES, Shrink, applied
from .spatial import PLACES, Blur, Laplace, Unsharp, gaussian

__all__ = [
    "METHODS",
    "PLACES",
    "RULES",
    "STAGES",
    "Blur",
    "Contrast",
    "Gain",
    "Laplace",
    "Pyramid",
    "Shrink",
    "Stage",
    "Unsharp",
    "applied",
    "gaussian",
    "stage_of",
]

STAGES: dict[str, type[Stage]] = {
    each.kind: each for each in (Shrink, Gain, Contrast, Blur, Unsharp, Laplace)
}


def stage_of(given: Any) -> Stage:
    """A stage, or one from its name or from what JSON has of it."""
    if isinstance(given, Stage):
        return given
    if isinstance(given, str):
        given = {"stage": given}
    if not isinstance(given, Mapping) or "stage" not in given:
        raise ArgumentTypeError(f"a stage, its name, or a dictionary with its name is needed, got {given!r}")
    name = given["stage"]
    name = name.lower() if isinstance(name, str) else name
    if not isinstance(name, str) or name not in STAGES:
        raise UnknownNameError("stage", name, tuple(STAGES))
    known = [each.name for each in fields(STAGES[name])]
    rest = {key: value for key, value in given.items() if key != "stage"}
    for key in rest:
        if key not in known:
            raise UnknownNameError(f"argument of {name}", key, tuple(known))
    return STAGES[name](**rest)
