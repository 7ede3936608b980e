"""Strategies: how the work of a level is distributed over a device.

:data:`STRATEGIES` is the registry, in which programs, the tuning of plans, the performance model and the
tests find all strategies. A new one is a subclass of :class:`Strategy` and an entry of the registry.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import ArgumentError
from .auto import AUTO
from .base import Strategy, StrategyCost, Target, Views, Workload
from .naive import NAIVE
from .rowcolumn import ROWCOLUMN
from .sliding import SLIDING
from .stepwise import STEPWISE
from .tiled import TILED
from .undecimated import UNDECIMATED

__all__ = [
    "STEPWISE",
    "STRATEGIES",
    "UNDECIMATED",
    "Strategy",
    "StrategyCost",
    "Target",
    "Views",
    "Workload",
    "choose",
]

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy for strategy in (AUTO, NAIVE, ROWCOLUMN, TILED, SLIDING)
}


def choose(name: str, scheme: str, method: str, axes: Sequence[int]) -> Strategy:
    """Return the strategy for a combination of choices.

    Parameters
    ----------
    name : str
        A key of :data:`STRATEGIES`.
    scheme : str
        ``"auto"``, or a scheme for two axes.
    method : {"auto", "lifting", "filters"}
    axes : sequence of int
        The axes of the transform.

    Raises
    ------
    ArgumentError
        If the choices exclude each other.
    """
    strategy = STRATEGIES[name]
    if scheme != "auto":
        if strategy.with_scheme is None:
            able = [s.name for s in STRATEGIES.values() if s.with_scheme is s]
            raise ArgumentError(
                f"scheme {scheme!r} is run by strategy {', '.join(map(repr, able))}, not by {name!r}"
            )
        if len(axes) != 2 or abs(axes[0] - axes[1]) != 1:
            raise ArgumentError(
                f"scheme {scheme!r} transforms two neighbouring axes at once, got axes {tuple(axes)}"
            )
        strategy = strategy.with_scheme
    if strategy.needs_two_axes and len(axes) < 2:
        others = [repr(s.name) for s in STRATEGIES.values() if not s.needs_two_axes and s is not AUTO]
        raise ArgumentError(
            f"strategy {name!r} transforms two neighbouring axes at once, got axes {tuple(axes)};"
            f" {', '.join(others)} accept a single axis"
        )
    if method != "auto" and method not in strategy.methods:
        others = [repr(s.name) for s in STRATEGIES.values() if method in s.methods]
        raise ArgumentError(
            f"method {method!r} does not apply to strategy {strategy.name!r}, {strategy.methods_note};"
            f" it applies to {', '.join(others)}"
        )
    return strategy
