"""Threshold rules: which coefficients are kept, and by what they are multiplied.

This table serves arrays of NumPy, of every library with the functions of the array API, and symbolic arrays,
from which the kernels of pipelines and plans are made on all engines. With the threshold ``t``, a
coefficient of magnitude ``m ≥ t`` is multiplied by

    soft     1 - t/m
    hard     1
    garrote  1 - (t/m)²
    firm     (1 - t/m) · T/(T - t), and by 1 above the second threshold T

and one below the threshold is dropped. ``greater`` and ``less`` compare the value instead of the magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import ArrayView
from .expressions import Expression, Load
from .graph import Graph
from .symbolic import SymbolicArray
from .symbolic import xp as symbolic_functions

__all__ = [
    "ALIASES",
    "DETAIL_RULES",
    "THRESHOLD_RULES",
    "ThresholdRule",
    "apply_rule",
    "like",
    "rule_expression",
    "shrunk",
]


@dataclass(frozen=True)
class ThresholdRule:
    """What a threshold does to a coefficient.

    Parameters
    ----------
    label : str
    gain : callable, optional
        Takes the array namespace, magnitudes above 0, and the first and second thresholds; returns the
        factor of the coefficients that are kept. They stay unchanged if it is None.
    dropped : callable, optional
        Takes values and thresholds; returns where values are dropped. Magnitudes below the threshold are
        dropped if it is None.
    squares : bool, default False
        Whether the gain is the same for a threshold and its negative.
    real : callable, optional
        Takes the array namespace, real values and first thresholds; returns what the gain makes of the values
        that are kept, without a division, which takes a GPU longer than all else that it computes.
    """

    label: str
    gain: Callable[[Any, Any, Any, Any], Any] | None = None
    dropped: Callable[[Any, Any], Any] | None = None
    squares: bool = False
    real: Callable[[Any, Any, Any], Any] | None = None

    @property
    def by_magnitude(self) -> bool:
        """Whether the rule compares magnitudes with the threshold, rather than values."""
        return self.dropped is None


def _firm_gain(xp: Any, magnitude: Any, low: Any, high: Any) -> Any:
    gap = high - low
    slope = xp.where(xp.isinf(high), xp.ones_like(gap), high / xp.where(gap > 0, gap, xp.ones_like(gap)))
    return xp.where(magnitude > high, xp.ones_like(magnitude), (1 - low / magnitude) * slope)


THRESHOLD_RULES = {
    "soft": ThresholdRule(
        "Soft",
        lambda xp, magnitude, low, high: 1 - low / magnitude,
        real=lambda xp, x, low: xp.where(x < 0, x + low, x - low),
    ),
    "hard": ThresholdRule("Hard"),
    "garrote": ThresholdRule(
        "Garrote", lambda xp, magnitude, low, high: 1 - (low / magnitude) ** 2, squares=True
    ),
    "firm": ThresholdRule("Firm", _firm_gain),
    "greater": ThresholdRule("Greater (keeps large values)", dropped=lambda x, low: x < low),
    "less": ThresholdRule("Less (keeps small values)", dropped=lambda x, low: x > low),
}


ALIASES = {"garotte": "garrote"}  # PyWavelets accepts both spellings.
GAIN = "gain"  # Multiplies by the number that is the threshold of other rules.
DETAIL_RULES = (*THRESHOLD_RULES, GAIN)  # What can be done to details.


def apply_rule(xp: Any, name: str, x: Any, low: Any, high: Any = None) -> tuple[Any, Any]:
    """Apply a rule to an array.

    Parameters
    ----------
    xp : module
        Array namespace of ``x``.
    name : str
        One of :data:`THRESHOLD_RULES`.
    x : array
        Floats or complex numbers, or integers for rules without a gain.
    low, high : number or array
        Thresholds that broadcast against ``x``; only ``firm`` uses the second one.

    Returns
    -------
    values : array
        Coefficients multiplied by the gain of the rule, valid where they are not dropped.
    dropped : array of bool
    """
    rule = THRESHOLD_RULES[name]
    if rule.dropped is not None:
        return x, rule.dropped(x, low)
    magnitude = _magnitude(xp, x)
    if rule.gain is None:
        return x, magnitude < low
    low, high = like(xp, low, magnitude), None if high is None else like(xp, high, magnitude)
    dropped = magnitude < low
    # Ratios to small magnitudes would overflow. They do not matter where coefficients are dropped.
    divisor = xp.where(dropped | (magnitude == 0), xp.ones_like(magnitude), magnitude)
    return x * rule.gain(xp, divisor, low, high), dropped


def shrunk(xp: Any, name: str, x: Any, low: Any, high: Any) -> Any:
    """Apply one of :data:`DETAIL_RULES` to an array; samples that are dropped become 0."""
    if name == GAIN:
        return x * low
    values, dropped = apply_rule(xp, name, x, low, high)
    return xp.where(dropped, 0.0, values)


def rule_expression(name: str) -> Expression:
    """Return one of :data:`DETAIL_RULES` as an expression of the buffers ``v``, ``low`` and ``high``.

    These are real numbers.
    """
    graph = Graph()
    v, low, high = (
        SymbolicArray(graph, (), "float64", Load(ArrayView.contiguous(buffer, (), "float64")))
        for buffer in ("v", "low", "high")
    )
    xp, real = symbolic_functions, None if name == GAIN else THRESHOLD_RULES[name].real
    result: SymbolicArray
    if real is None:
        result = shrunk(xp, name, v, low, high)
    else:
        result = xp.where(xp.abs(v) < low, 0.0, real(xp, v, low))
    return result.expression


def _magnitude(xp: Any, x: Any) -> Any:
    """Absolute values, including that of the least integer, which its own dtype cannot hold."""
    if isinstance(x, np.ndarray):
        return np.abs(x).view(f"u{x.itemsize}") if x.dtype.kind == "i" else np.abs(x)
    return xp.abs(xp.astype(x, xp.float64) if xp.isdtype(x.dtype, ("bool", "integral")) else x)


def like(xp: Any, value: Any, x: Any) -> Any:
    """Convert a number or array to the dtype of an array, on its device."""
    if isinstance(x, np.ndarray):
        return np.asarray(value, x.dtype)
    if isinstance(x, SymbolicArray):
        return xp.astype(value, x.dtype) if isinstance(value, SymbolicArray) else float(value)
    if hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic)):
        return xp.astype(value, x.dtype) if value.dtype != x.dtype else value
    from array_api_compat import device

    return xp.asarray(np.asarray(value).tolist(), dtype=x.dtype, device=device(x))
