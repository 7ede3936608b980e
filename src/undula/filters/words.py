"""Stages as words of a command line.

soft:20   hard:30:20   bayes:1.2   gain:1.5   contrast:0.3   blur:1@last   unsharp:1:0.5   laplace:0.1
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import ArgumentError, UndulaError, UnknownNameError
from .rules import THRESHOLD_RULES
from .selection import THRESHOLD_METHODS
from .shrinkage import LOCAL_METHODS
from .spatial import Spatial
from .stages import Blur, Contrast, FilterStage, Gain, Laplace, Shrink, Unsharp

__all__ = ["format_stage", "parse_stage"]

RULES = tuple(name for name, rule in THRESHOLD_RULES.items() if rule.by_magnitude)
METHODS = (*THRESHOLD_METHODS, *LOCAL_METHODS)
SPATIAL: dict[str, Any] = {"blur": Blur, "unsharp": Unsharp, "laplace": Laplace}
NAMES = (*RULES, *METHODS, "gain", "contrast", *SPATIAL, "diagonal")
MAX_NUMBERS = {"contrast": 3, "blur": 1, "unsharp": 2, "laplace": 1, "diagonal": 1} | dict.fromkeys(
    METHODS, 1
)
DEFAULT_THRESHOLD = 20.0


def parse_stage(text: str) -> FilterStage:
    """Return the stage that a word of a command line stands for.

    Parameters
    ----------
    text : str
        A name, numbers separated by colons, and for spatial stages ``@`` and a place.

    Examples
    --------
    >>> parse_stage("soft:20")
    Shrink(method='given', threshold=20.0)
    """
    body, _, place = text.partition("@")
    name, *numbers = body.split(":")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ArgumentError(
            f"a stage is a name with numbers after colons, such as soft:20; got {text!r}"
        ) from None
    if name not in NAMES:
        raise UnknownNameError("stage", name, NAMES)
    if place and name not in (*SPATIAL, "diagonal"):
        raise ArgumentError(f"{name} always filters details and takes no place after @; got {text!r}")
    limit = MAX_NUMBERS.get(name, math.inf)
    if len(values) > limit:
        raise ArgumentError(f"{name} takes at most {limit} number(s), got {text!r}")
    at: dict[str, Any] = {"at": place} if place else {}
    if name in RULES:
        return Shrink("given", name, values[0] if len(values) == 1 else values or DEFAULT_THRESHOLD)
    if name in METHODS:
        return Shrink(name, strength=values[0] if values else Shrink.strength)
    if name == "gain":
        return Gain(values[0] if len(values) == 1 else tuple(values) or Gain.gains)
    if name == "contrast":
        return Contrast(*values)
    if name == "diagonal":
        return Laplace(values[0] if values else Laplace.amount, "diagonal", **at)
    return SPATIAL[name](*values, **at)  # type: ignore[no-any-return]


def format_stage(stage: FilterStage) -> str | None:
    """Return the word for a stage, or None if a word cannot express all of its arguments.

    Examples
    --------
    >>> format_stage(Shrink("given", "soft", 20.0)), format_stage(Blur(2.0, at="last"))
    ('soft:20', 'blur:2@last')
    """
    arguments: tuple[Any, ...] = ()
    name = stage.kind
    if isinstance(stage, Shrink):
        name = stage.rule if stage.method == "given" else stage.method
        arguments = (stage.threshold if stage.method == "given" else stage.strength,)
    elif isinstance(stage, Gain):
        arguments = (stage.gains,)
    elif isinstance(stage, Contrast):
        arguments = (stage.amount, stage.max_gain)
    elif isinstance(stage, Laplace):
        name, arguments = {"diagonal": "diagonal"}.get(stage.kernel, name), (stage.amount,)
    elif isinstance(stage, Unsharp):
        arguments = (stage.sigma, stage.amount)
    elif isinstance(stage, Blur):
        arguments = (stage.sigma,)
    numbers = [
        n for argument in arguments for n in (argument if isinstance(argument, tuple) else (argument,))
    ]
    if not all(isinstance(number, (int, float)) for number in numbers):
        return None
    place = f"@{stage.at}" if isinstance(stage, Spatial) and stage.at != "image" else ""
    text = ":".join([name, *(f"{number:g}" for number in numbers)]) + place
    try:
        return text if parse_stage(text) == stage else None
    except UndulaError:
        return None
