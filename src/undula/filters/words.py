"""Stages in a word: how they are written on a command line.

soft:20   hard:30:20   bayes:1.2   gain:1.5   contrast:0.3   blur:1@last   unsharp:1:0.5   laplace:0.1
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import ArgumentError, UndulaError, UnknownNameError
from .spatial import Spatial
from .stages import Blur, Contrast, Gain, Laplace, Shrink, Stage, Unsharp

__all__ = ["stage_of_words", "words_of_stage"]

GIVEN = ("soft", "hard", "garrote", "firm")
CHOSEN = ("bayes", "sure", "hybrid", "universal", "minimax", "bivariate", "block")
PLACED: dict[str, Any] = {"blur": Blur, "unsharp": Unsharp, "laplace": Laplace}
MOST_NUMBERS = {"contrast": 3, "blur": 1, "unsharp": 2, "laplace": 1, "diagonal": 1}


def stage_of_words(text: str) -> Stage:
    """A stage as it is written on a command line.

    Examples
    --------
    >>> stage_of_words("soft:20")
    Shrink(method='given', threshold=20.0)
    """
    body, _, place = text.partition("@")
    name, *numbers = body.split(":")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ArgumentError(
            f"a stage is a name and numbers with colons, such as soft:20; got {text!r}"
        ) from None
    where: dict[str, Any] = {"at": place} if place else {}
    known = (*GIVEN, *CHOSEN, "gain", "contrast", *PLACED, "diagonal")
    if name not in known:
        raise UnknownNameError("stage", name, known)
    if place and name not in (*PLACED, "diagonal"):
        raise ArgumentError(f"{name} is done to details, and has no place to choose; got {text!r}")
    most = 1 if name in CHOSEN else MOST_NUMBERS.get(name, math.inf)
    if len(values) > most:
        raise ArgumentError(f"{name} takes at most {most} number(s), got {text!r}")
    if name in GIVEN:
        return Shrink("given", name, values[0] if len(values) == 1 else values or 20.0)
    if name in CHOSEN:
        return Shrink(name, strength=values[0] if values else 1.0)
    if name == "gain":
        return Gain(values[0] if len(values) == 1 else tuple(values) or 1.5)
    if name == "contrast":
        return Contrast(*values)
    if name == "diagonal":
        return Laplace(values[0] if values else 0.1, "diagonal", **where)
    return PLACED[name](*values, **where)  # type: ignore[no-any-return]


def words_of_stage(stage: Stage) -> str | None:
    """How a stage is written on a command line; None where there are no words for all of it.

    Examples
    --------
    >>> words_of_stage(Shrink("given", "soft", 20.0)), words_of_stage(Blur(2.0, at="last"))
    ('soft:20', 'blur:2@last')
    """
    numbers: tuple[Any, ...] = ()
    name = stage.kind
    if isinstance(stage, Shrink):
        name = stage.rule if stage.method == "given" else stage.method
        numbers = (stage.threshold if stage.method == "given" else stage.strength,)
    elif isinstance(stage, Gain):
        numbers = (stage.gains,)
    elif isinstance(stage, Contrast):
        numbers = (stage.amount, stage.most)
    elif isinstance(stage, Laplace):
        name, numbers = {"diagonal": "diagonal"}.get(stage.kernel, name), (stage.amount,)
    elif isinstance(stage, Unsharp):
        numbers = (stage.sigma, stage.amount)
    elif isinstance(stage, Blur):
        numbers = (stage.sigma,)
    flat = [part for one in numbers for part in (one if isinstance(one, tuple) else (one,))]
    if not all(isinstance(part, (int, float)) for part in flat):
        return None
    place = f"@{stage.at}" if isinstance(stage, Spatial) and stage.at != "image" else ""
    text = ":".join([name, *(f"{part:g}" for part in flat)]) + place
    try:
        same = stage_of_words(text) == stage
    except UndulaError:
        same = False
    return text if same else None
