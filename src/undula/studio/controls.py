"""Which controls a stage has: only those that do something, with ranges that make sense for the picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ..filters import METHODS, PLACES, RULES, Blur, Contrast, FilterStage, Gain, Laplace, Shrink, Unsharp

__all__ = [
    "TITLES",
    "Choice",
    "Control",
    "Picks",
    "Slider",
    "changed",
    "controls",
    "titled",
    "usual",
    "value_of",
]

TITLES = {
    "shrink": ("Shrink", "small details made smaller or nothing: what denoises", "grain"),
    "gain": ("Gain", "details stronger or weaker, for each level", "equalizer"),
    "contrast": ("Contrast", "weak details brought out at all scales", "contrast"),
    "blur": ("Blur", "a Gaussian blur, in the image or in its pyramid", "blur_on"),
    "unsharp": ("Unsharp", "sharper by what a blur takes away", "deblur"),
    "laplace": ("Laplace", "sharper by differences from neighbours", "change_history"),
}


def titled(kind: str) -> tuple[str, str, str]:
    """What a stage is called, what it does and its picture; of one that others brought along, its name."""
    return TITLES.get(kind, (kind.capitalize(), "a stage of your own", "extension"))


METHOD_WORDS = {
    "bayes": "Bayes, for each band",
    "bivariate": "Bivariate, local",
    "block": "Block, local",
    "sure": "SURE, for each band",
    "hybrid": "Hybrid (SURE, universal)",
    "minimax": "Minimax",
    "universal": "Universal (VisuShrink)",
    "given": "Given threshold",
}
RULE_WORDS = {
    "soft": "Soft",
    "hard": "Hard",
    "garrote": "Garrote",
    "firm": "Firm",
    "greater": "Greater: what is large",
    "less": "Less: what is small",
}
PLACE_WORDS = {
    "image": "Image, before the transform",
    "approximation": "Approximations, between levels",
    "last": "Last approximation",
    "details": "Details",
}
BAND_WORDS = {"ad": "vertical edges", "da": "horizontal edges", "dd": "diagonals"}
KERNEL_WORDS = {"cross": "4 neighbours", "diagonal": "8 neighbours"}
NOISE_WORDS = {"white": "the same in all bands", "bands": "its own in each band"}


@dataclass(frozen=True)
class Slider:
    """A number; ``index`` is that of a level, where each has one; ``auto`` says what it is when left open."""

    name: str
    label: str
    low: float
    high: float
    step: float
    index: int | None = None
    auto: str = ""
    about: str = ""


@dataclass(frozen=True)
class Choice:
    """One of several words."""

    name: str
    label: str
    options: dict[str, str]
    about: str = ""


@dataclass(frozen=True)
class Picks:
    """Some of several, or all of them, which is None."""

    name: str
    label: str
    options: dict[Any, str]
    about: str = ""


def rare(control: Control) -> bool:
    """Whether a control is for few: it is shown when asked for."""
    return isinstance(control, Picks) or control.name in ("noise", "radius")


@dataclass(frozen=True)
class Spread:
    """Whether there is a number for each level, or one for all."""

    name: str
    label: str
    levels: int


Control = Slider | Choice | Picks | Spread


def _nice(x: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten below."""
    power = 10.0 ** math.floor(math.log10(x))
    return power * max(step for step in (1, 2, 5) if step * power <= x * 1.0001)


def _numbers(
    name: str, label: str, value: Any, levels: int, low: float, high: float, step: float
) -> list[Control]:
    """One slider, or one for each level."""
    spread: list[Control] = [Spread(name, "one for each level", levels)] if levels > 1 else []
    if not isinstance(value, tuple):
        return [Slider(name, label, low, high, step), *spread]
    own = [
        Slider(name, f"{label}, level {k + 1}{' (finest)' if k == 0 else ''}", low, high, step, index=k)
        for k in range(len(value))
    ]
    return [*own, *spread]


def _levels(levels: int) -> list[Control]:
    return [
        Picks("levels", "Levels", {n: str(n) for n in range(1, levels + 1)}, "1 is the finest; none is all")
    ]


def controls(stage: FilterStage, levels: int, span: float, places: int = 2) -> list[Control]:
    """The controls of a stage.

    Parameters
    ----------
    stage : FilterStage
    levels : int
        Of the chain.
    span : number
        From the darkest to the brightest sample that the picture can have.
    """
    top = _nice(0.5 * span)
    fine = _nice(top / 200)
    noise = Slider(
        "sigma",
        "Noise σ",
        0,
        _nice(0.25 * span),
        _nice(0.25 * span) / 200,
        auto="estimated",
        about="in grey levels",
    )
    if isinstance(stage, Shrink):
        found: list[Control] = [Choice("method", "Method", {m: METHOD_WORDS[m] for m in METHODS})]
        local = stage.method in ("bivariate", "block")
        if not local:
            found.append(Choice("rule", "Rule", {r: RULE_WORDS[r] for r in RULES}))
        if stage.method == "given":
            found += _numbers("threshold", "Threshold", stage.threshold, levels, 0, top, fine)
        else:
            found.append(Slider("strength", "Strength", 0, 3, 0.01, about="above 1 removes more"))
            found += [noise, Choice("noise", "The noise is", NOISE_WORDS)]
        if stage.rule == "firm" and not local:
            found.append(Slider("second", "Lets pass from, × threshold", 1, 5, 0.05))
        if local:
            found.append(Slider("radius", "Radius of the window", 1, 8, 1))
        bands = Picks("bands", "Bands", BAND_WORDS, "none is all")
        return [*found, *_levels(levels), bands]
    if isinstance(stage, Gain):
        return _numbers("gains", "Gain", stage.gains, levels, 0, 4, 0.01)
    if isinstance(stage, Contrast):
        return [
            Slider("amount", "Amount", 0, 1, 0.01),
            Slider("max_gain", "At most, ×", 1, 8, 0.05),
            noise,
        ]
    found = []
    if isinstance(stage, Blur):
        found = [Slider("sigma", "Radius σ", 0, 10, 0.05, about="in samples of where it is done")]
    elif isinstance(stage, Unsharp):
        found = [Slider("sigma", "Radius σ", 0.3, 10, 0.05), Slider("amount", "Amount", 0, 5, 0.01)]
    elif isinstance(stage, Laplace):
        found = [Slider("amount", "Amount", 0, 1, 0.005), Choice("kernel", "Kernel", KERNEL_WORDS)]
    found.append(Choice("at", "Where", {place: PLACE_WORDS[place] for place in PLACES}))
    return [*found, *(_levels(levels) if getattr(stage, "at", "") in ("approximation", "details") else [])]


def value_of(stage: FilterStage, control: Control) -> Any:
    """What a control shows."""
    value = getattr(stage, control.name)
    if isinstance(control, Slider):
        if control.index is not None:
            one = value[control.index]
            return float(max(dict(one).values())) if isinstance(one, tuple) else float(one)
        return None if value is None else float(value)
    if isinstance(control, Spread):
        return isinstance(value, tuple)
    return list(value) if isinstance(value, tuple) else value


def changed(stage: FilterStage, control: Control, value: Any, levels: int, span: float) -> FilterStage:
    """The stage with what a control was set to."""
    told: dict[str, Any] = {control.name: value}
    old = getattr(stage, control.name)
    if isinstance(control, Spread):
        told = {control.name: _spread(old, value, levels)}
    elif isinstance(control, Picks):
        told = {control.name: tuple(sorted(value)) if value else None}
    elif isinstance(control, Slider):
        if control.index is not None:
            told = {control.name: tuple(float(value) if k == control.index else v for k, v in enumerate(old))}
        elif value is not None:
            told = {control.name: int(value) if control.name == "radius" else float(value)}
    if isinstance(stage, Shrink) and control.name == "method":
        own = stage.threshold if stage.threshold is not None else _nice(0.08 * span)
        told["threshold"] = own if value == "given" else None
    if control.name == "at" and value in ("image", "last"):
        told["levels"] = None
    return replace(stage, **told)


def _spread(old: Any, each: bool, levels: int) -> Any:
    if not each:
        return old[0] if isinstance(old, tuple) else old
    own: Sequence[Any] = old if isinstance(old, tuple) else [old]
    return tuple((list(own) + [own[-1]] * levels)[:levels])


def usual(stage: FilterStage) -> FilterStage:
    """The stage as it is without a word said; what was chosen by name stays."""
    keep = {
        each.name: getattr(stage, each.name)
        for each in fields(stage)
        if each.name in ("method", "rule", "at")
    }
    if isinstance(stage, Shrink) and stage.method == "given":
        keep["threshold"] = stage.threshold
    return type(stage)(**keep)
