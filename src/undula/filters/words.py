"""Stages as words of a command line.

soft:20   hard:30:20   bayes:1.2   gain:1.5   contrast:0.3   blur:1@last   unsharp:1:0.5   laplace:0.1
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ..errors import ArgumentError, UndulaError, UnknownNameError
from .spatial import Spatial
from .stages import STAGES, FilterStage

__all__ = ["format_stage", "parse_stage"]


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
    words = {word: (kind, kind.words[word]) for kind in STAGES.values() for word in kind.words}
    if name not in words:
        raise UnknownNameError("stage", name, tuple(words))
    kind, word = words[name]
    arguments: dict[str, Any] = dict(word.arguments)
    if place and not issubclass(kind, Spatial):
        raise ArgumentError(f"{name} always filters details and takes no place after @; got {text!r}")
    if place:
        arguments["at"] = place
    per_level = [argument for argument in word.numbers if kind.arguments()[argument].per_level]
    if per_level and len(values) > 1:
        arguments[per_level[0]] = tuple(values)
    elif len(values) > len(word.numbers):
        raise ArgumentError(f"{name} takes at most {len(word.numbers)} number(s), got {text!r}")
    else:
        arguments |= zip(word.numbers, values, strict=False)
    return kind(**arguments)


def format_stage(stage: FilterStage) -> str | None:
    """Return the word for a stage, or None if a word cannot express all of its arguments.

    Examples
    --------
    >>> format_stage(parse_stage("soft:20")), format_stage(parse_stage("blur:2@last"))
    ('soft:20', 'blur:2@last')
    """
    for name, word in stage.words.items():
        arguments = [getattr(stage, argument) for argument in word.numbers]
        while arguments and arguments[-1] is None:  # Optional arguments, left to their defaults.
            arguments.pop()
        numbers = [n for value in arguments for n in (value if isinstance(value, tuple) else (value,))]
        if all(isinstance(number, (int, float)) for number in numbers):
            place = f"@{stage.at}" if isinstance(stage, Spatial) and stage.at != "image" else ""
            text = ":".join([name, *(f"{number:g}" for number in numbers)]) + place
            with suppress(UndulaError):
                if parse_stage(text) == stage:
                    return text
    return None
