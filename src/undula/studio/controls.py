"""The controls of a stage, with ranges that suit the picture; inapplicable ones are left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..filters import FilterStage
from ..filters.base import Argument

__all__ = [
    "Choice",
    "Control",
    "MultiChoice",
    "PerLevel",
    "Slider",
    "apply_control",
    "control_value",
    "controls",
    "reset_stage",
]


@dataclass(frozen=True)
class Control:
    """What a visitor sets an argument of a stage with."""

    name: str
    label: str


@dataclass(frozen=True)
class Slider(Control):
    """A number.

    ``index`` is the level that it belongs to, if each level has its own; ``auto`` labels the option to leave
    the value to the filter.
    """

    low: float
    high: float
    step: float
    index: int | None = None
    auto: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Choice(Control):
    """One of several options."""

    options: dict[str, str]


@dataclass(frozen=True)
class MultiChoice(Control):
    """Any number of several options; the value is None for all of them."""

    options: dict[Any, str]


@dataclass(frozen=True)
class PerLevel(Control):
    """Whether each level has its own number."""


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
    arguments = stage.arguments()
    return [
        control
        for name in stage.applicable()
        for control in _argument_controls(name, arguments[name], getattr(stage, name), levels, span)
    ]


def _argument_controls(name: str, argument: Argument, value: Any, levels: int, span: float) -> list[Control]:
    """Return one control, or one for each level and the box that switches between the two."""
    if argument.multiple:
        options = argument.options or {n: str(n) for n in range(1, levels + 1)}
        return [MultiChoice(name, argument.label, options)]
    if argument.options is not None:
        return [Choice(name, argument.label, argument.options)]
    slider = Slider(name, argument.label, *argument.bounds(span), auto=argument.auto, hint=argument.hint)
    box = [PerLevel(name, "a separate value for each level")] * (argument.per_level and levels > 1)
    if not isinstance(value, tuple):
        return [slider, *box]
    labels = [f"{argument.label}, level {k + 1}{' (finest)' if k == 0 else ''}" for k in range(len(value))]
    return [*(replace(slider, label=label, index=k) for k, label in enumerate(labels)), *box]


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
            new = int(value) if stage.arguments()[control.name].integer else float(value)
    return stage.with_argument(control.name, new, span)


def _spread(value: Any, levels: int) -> tuple[Any, ...]:
    """Return a value for each level; levels without one get that of the coarsest level before them."""
    values = list(value) if isinstance(value, tuple) else [value]
    return tuple((values + [values[-1]] * levels)[:levels])


def reset_stage(stage: FilterStage) -> FilterStage:
    """Return the stage with default values, except for the options that define what it does."""
    kept = [name for name, argument in stage.arguments().items() if argument.kept]
    return type(stage)(**{name: getattr(stage, name) for name in kept})
