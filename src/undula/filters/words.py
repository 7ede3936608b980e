"""Stages as words of a command line.

soft:20   hard:30:20   bayes:1.2   gain:1.5   contrast:0.3   blur:1@last   unsharp:1:0.5   laplace:0.1
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, UndulaError, UnknownNameError
from .rules import THRESHOLD_RULES
from .selection import THRESHOLD_METHODS
from .shrinkage import LOCAL_METHODS
from .spatial import Spatial
from .stages import STAGES, FilterStage, Gain, Laplace, Shrink

__all__ = ["format_stage", "parse_stage"]

RULES = tuple(name for name, rule in THRESHOLD_RULES.items() if rule.by_magnitude)
METHODS = (*THRESHOLD_METHODS, *LOCAL_METHODS)
# The arguments that the numbers of a word stand for. Gains and thresholds take one number for each level.
NUMBERS: dict[str, tuple[str, ...]] = {
    "contrast": ("amount", "max_gain", "sigma"),
    "blur": ("sigma",),
    "unsharp": ("sigma", "amount"),
    "laplace": ("amount",),
    "diagonal": ("amount",),  # Laplace with that kernel
} | dict.fromkeys(METHODS, ("strength",))
NAMES = tuple(dict.fromkeys((*RULES, *METHODS, "gain", *NUMBERS)))
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
    kind = "laplace" if name == "diagonal" else "shrink" if name in METHODS else name
    if place and not (kind in STAGES and issubclass(STAGES[kind], Spatial)):
        raise ArgumentError(f"{name} always filters details and takes no place after @; got {text!r}")
    if name in RULES:
        return Shrink("given", name, values[0] if len(values) == 1 else values or DEFAULT_THRESHOLD)
    if name == "gain":
        return Gain(values[0] if len(values) == 1 else tuple(values) or Gain.gains)
    limit = len(NUMBERS[name])
    if len(values) > limit:
        raise ArgumentError(f"{name} takes at most {limit} number(s), got {text!r}")
    arguments: dict[str, Any] = dict(zip(NUMBERS[name], values, strict=False))
    if place:
        arguments["at"] = place
    if name in METHODS:
        arguments["method"] = name
    elif name == "diagonal":
        arguments["kernel"] = name
    return STAGES[kind](**arguments)


def format_stage(stage: FilterStage) -> str | None:
    """Return the word for a stage, or None if a word cannot express all of its arguments.

    Examples
    --------
    >>> format_stage(Shrink("given", "soft", 20.0)), format_stage(STAGES["blur"](2.0, at="last"))
    ('soft:20', 'blur:2@last')
    """
    name = stage.kind
    if isinstance(stage, Shrink):
        name = stage.rule if stage.method == "given" else stage.method
    elif isinstance(stage, Laplace) and stage.kernel == "diagonal":
        name = "diagonal"
    fields = ("threshold",) if name in RULES else ("gains",) if name == "gain" else NUMBERS.get(name, ())
    arguments = [getattr(stage, field) for field in fields]
    while arguments and arguments[-1] is None:  # Optional arguments, left to their defaults.
        arguments.pop()
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
