"""The controls of each kind of stage, with ranges that suit the picture; inapplicable ones are left out."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from ..filters import METHODS, PLACES, RULES, Blur, Contrast, FilterStage, Gain, Laplace, Shrink, Unsharp

__all__ = [
    "STAGE_TITLES",
    "Choice",
    "Control",
    "MultiChoice",
    "PerLevel",
    "Slider",
    "apply_control",
    "control_value",
    "controls",
    "is_advanced",
    "reset_stage",
    "stage_title",
]

STAGE_TITLES = {
    "shrink": ("Shrink", "Reduce noise by shrinking small details", "grain"),
    "gain": ("Gain", "Amplify or attenuate the details of each level", "equalizer"),
    "contrast": ("Contrast", "Enhance weak details at all scales", "contrast"),
    "blur": ("Blur", "Gaussian blur of the image or of its pyramid", "blur_on"),
    "unsharp": ("Unsharp", "Sharpen with an unsharp mask", "deblur"),
    "laplace": ("Laplace", "Sharpen with a Laplacian", "change_history"),
}


def stage_title(kind: str) -> tuple[str, str, str]:
    """Return title, description and icon of a kind of stage, including kinds registered by the user."""
    return STAGE_TITLES.get(kind, (kind.capitalize(), "Custom stage", "extension"))


METHOD_LABELS = {
    "bayes": "Bayes, per band",
    "bivariate": "Bivariate, local",
    "block": "Block, local",
    "sure": "SURE, per band",
    "hybrid": "Hybrid (SURE, universal)",
    "minimax": "Minimax",
    "universal": "Universal (VisuShrink)",
    "given": "Manual threshold",
}
RULE_LABELS = {
    "soft": "Soft",
    "hard": "Hard",
    "garrote": "Garrote",
    "firm": "Firm",
    "greater": "Greater (keeps large values)",
    "less": "Less (keeps small values)",
}
PLACE_LABELS = {
    "image": "Image, before the transform",
    "approximation": "Approximations, between levels",
    "last": "Last approximation",
    "details": "Details",
}
BAND_LABELS = {"ad": "vertical edges", "da": "horizontal edges", "dd": "diagonals"}
KERNEL_LABELS = {"cross": "4 neighbours", "diagonal": "8 neighbours"}
NOISE_LABELS = {"white": "equal in all bands", "bands": "different in each band"}


@dataclass(frozen=True)
class Slider:
    """A number.

    ``index`` is the level that it belongs to, if each level has its own; ``auto`` labels the option to leave
    the value to the filter.
    """

    name: str
    label: str
    low: float
    high: float
    step: float
    index: int | None = None
    auto: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Choice:
    """One of several options."""

    name: str
    label: str
    options: dict[str, str]


@dataclass(frozen=True)
class MultiChoice:
    """Any number of several options; the value is None for all of them."""

    name: str
    label: str
    options: dict[Any, str]


@dataclass(frozen=True)
class PerLevel:
    """Whether each level has its own number."""

    name: str
    label: str


Control = Slider | Choice | MultiChoice | PerLevel


def is_advanced(control: Control) -> bool:
    """Whether a control is hidden until the visitor asks for more."""
    return isinstance(control, MultiChoice) or control.name in ("noise", "radius")


def _round_down(x: float) -> float:
    """Round down to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(x))
    return power * max(step for step in (1, 2, 5) if step * power <= x * 1.0001)


def _level_sliders(
    name: str, label: str, value: Any, levels: int, low: float, high: float, step: float
) -> list[Control]:
    """One slider for all levels, or one for each, and the box that switches between the two."""
    box: list[Control] = [PerLevel(name, "a separate value for each level")] if levels > 1 else []
    if not isinstance(value, tuple):
        return [Slider(name, label, low, high, step), *box]
    sliders = [
        Slider(name, f"{label}, level {k + 1}{' (finest)' if k == 0 else ''}", low, high, step, index=k)
        for k in range(len(value))
    ]
    return [*sliders, *box]


def _level_choice(levels: int) -> MultiChoice:
    return MultiChoice("levels", "Levels", {n: str(n) for n in range(1, levels + 1)})


def controls(stage: FilterStage, levels: int, span: float) -> list[Control]:
    """Return the controls of a stage.

    Parameters
    ----------
    stage : FilterStage
    levels : int
        Number of levels of the chain.
    span : float
        Difference between the largest and the smallest value that a sample can have.
    """
    max_threshold, max_sigma = _round_down(0.5 * span), _round_down(0.25 * span)
    sigma = Slider("sigma", "Noise σ", 0, max_sigma, max_sigma / 200, auto="estimated", hint="in grey levels")
    if isinstance(stage, Shrink):
        result: list[Control] = [Choice("method", "Method", {m: METHOD_LABELS[m] for m in METHODS})]
        local = stage.method in ("bivariate", "block")
        if not local:
            result.append(Choice("rule", "Rule", {r: RULE_LABELS[r] for r in RULES}))
        if stage.method == "given":
            step = _round_down(max_threshold / 200)
            result += _level_sliders(
                "threshold", "Threshold", stage.threshold, levels, 0, max_threshold, step
            )
        else:
            result.append(Slider("strength", "Strength", 0, 3, 0.01, hint="values above 1 remove more"))
            result += [sigma, Choice("noise", "Noise level", NOISE_LABELS)]
        if stage.rule == "firm" and not local:
            result.append(Slider("second", "Second threshold, × first", 1, 5, 0.05))
        if local:
            result.append(Slider("radius", "Window radius", 1, 8, 1))
        return [*result, _level_choice(levels), MultiChoice("bands", "Bands", BAND_LABELS)]
    if isinstance(stage, Gain):
        return _level_sliders("gains", "Gain", stage.gains, levels, 0, 4, 0.01)
    if isinstance(stage, Contrast):
        return [Slider("amount", "Amount", 0, 1, 0.01), Slider("max_gain", "Maximum gain", 1, 8, 0.05), sigma]
    result = []
    if isinstance(stage, Blur):
        result = [Slider("sigma", "Radius σ", 0, 10, 0.05, hint="in samples of the blurred band")]
    elif isinstance(stage, Unsharp):
        result = [Slider("sigma", "Radius σ", 0.3, 10, 0.05), Slider("amount", "Amount", 0, 5, 0.01)]
    elif isinstance(stage, Laplace):
        result = [Slider("amount", "Amount", 0, 1, 0.005), Choice("kernel", "Kernel", KERNEL_LABELS)]
    result.append(Choice("at", "Applied to", {place: PLACE_LABELS[place] for place in PLACES}))
    return [*result, *[_level_choice(levels)] * (getattr(stage, "at", "") in ("approximation", "details"))]


def control_value(stage: FilterStage, control: Control) -> Any:
    """Return the value that a control shows."""
    value = getattr(stage, control.name)
    if isinstance(control, Slider):
        if control.index is not None:
            value = value[control.index]
            return float(max(dict(value).values()) if isinstance(value, tuple) else value)
        return None if value is None else float(value)
    if isinstance(control, PerLevel):
        return isinstance(value, tuple)
    return list(value) if isinstance(value, tuple) else value


def apply_control(stage: FilterStage, control: Control, value: Any, levels: int, span: float) -> FilterStage:
    """Return the stage after a control was set to a value."""
    old = getattr(stage, control.name)
    new = value
    if isinstance(control, PerLevel):
        new = _spread(old, levels) if value else old[0] if isinstance(old, tuple) else old
    elif isinstance(control, MultiChoice):
        new = tuple(sorted(value)) if value else None
    elif isinstance(control, Slider):
        if control.index is not None:
            new = tuple(float(value) if k == control.index else v for k, v in enumerate(old))
        elif value is not None:
            new = int(value) if control.name == "radius" else float(value)
    changes: dict[str, Any] = {control.name: new}
    if isinstance(stage, Shrink) and control.name == "method":
        threshold = stage.threshold if stage.threshold is not None else _round_down(0.08 * span)
        changes["threshold"] = threshold if value == "given" else None
    if control.name == "at" and value in ("image", "last"):
        changes["levels"] = None
    return replace(stage, **changes)


def _spread(value: Any, levels: int) -> tuple[Any, ...]:
    """A value for each level; levels without one get that of the coarsest level before them."""
    values = list(value) if isinstance(value, tuple) else [value]
    return tuple((values + [values[-1]] * levels)[:levels])


def reset_stage(stage: FilterStage) -> FilterStage:
    """Return the stage with default values, except for the options that define what it does."""
    kept = [each.name for each in fields(stage) if each.name in ("method", "rule", "at")]
    if isinstance(stage, Shrink) and stage.method == "given":
        kept.append("threshold")
    return type(stage)(**{name: getattr(stage, name) for name in kept})
