"""Expressions: what is computed at each place of arrays, as a value.

An expression is built once and evaluated in several ways: by NumPy (:func:`evaluate`), printed as Python for
Numba, and printed as C for devices. :data:`OPERATIONS` is the table of everything that it may contain.

>>> x = Load(ArrayView.contiguous("x", (3,), "float64"))
>>> evaluate(Call("maximum", (x, Constant(0.0))), {"x": np.array([-1.0, 0.5, 2.0])})
array([0. , 0.5, 2. ])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays import ArrayView

__all__ = [
    "OPERATIONS",
    "WINDOW",
    "Call",
    "Constant",
    "Expression",
    "Load",
    "Operation",
    "WindowSum",
    "evaluate",
    "loads",
    "rewritten",
    "strided",
]


class Operation(NamedTuple):
    """An operation on numbers.

    Parameters
    ----------
    numpy : callable
        The function of NumPy.
    c, python : str
        The expression in C and in Python, with a field for each argument. In Python, ``type`` is the dtype.
    condition : bool
        Whether the result is a truth value.
    """

    numpy: Callable[..., Any]
    c: str
    python: str
    condition: bool = False


OPERATIONS = {
    "add": Operation(np.add, "({} + {})", "{} + {}"),
    "subtract": Operation(np.subtract, "({} - {})", "{} - {}"),
    "multiply": Operation(np.multiply, "({} * {})", "{} * {}"),
    "divide": Operation(np.divide, "({} / {})", "{} / {}"),
    "power": Operation(np.power, "pow({}, {})", "power_{type}({}, {})"),
    "negative": Operation(np.negative, "(-{})", "-{}"),
    "abs": Operation(np.abs, "fabs({})", "abs({})"),
    "sqrt": Operation(np.sqrt, "sqrt({})", "math.sqrt({})"),
    "exp": Operation(np.exp, "exp({})", "exp_{type}({})"),
    "log": Operation(np.log, "log({})", "log_{type}({})"),
    "round": Operation(np.rint, "rint({})", "np.rint({})"),
    "minimum": Operation(np.minimum, "fmin({}, {})", "min({}, {})"),
    "maximum": Operation(np.maximum, "fmax({}, {})", "max({}, {})"),
    "where": Operation(np.where, "({} ? {} : {})", "{1} if {0} else {2}"),
    "less": Operation(np.less, "({} < {})", "{} < {}", True),
    "less_equal": Operation(np.less_equal, "({} <= {})", "{} <= {}", True),
    "greater": Operation(np.greater, "({} > {})", "{} > {}", True),
    "greater_equal": Operation(np.greater_equal, "({} >= {})", "{} >= {}", True),
    "equal": Operation(np.equal, "({} == {})", "{} == {}", True),
    "not_equal": Operation(np.not_equal, "({} != {})", "{} != {}", True),
    "logical_and": Operation(np.logical_and, "({} && {})", "{} & {}", True),
    "logical_or": Operation(np.logical_or, "({} || {})", "{} | {}", True),
    "logical_not": Operation(np.logical_not, "(!{})", "not {}", True),
}


@dataclass(frozen=True, eq=False)
class Constant:
    """A number."""

    value: float


@dataclass(frozen=True, eq=False)
class Load:
    """The sample of an array at the place of the result.

    Parameters
    ----------
    view : ArrayView
        Broadcast to the result: shapes are aligned at their last axes, as in NumPy.
    finer : tuple of int, default ()
        The lengths of the result along its last axes, if it belongs to the next finer level. There, the
        sample at ``min((i + offset) // 2, last)`` is loaded in place of the one at ``i``.
    offset : int, default 0
    """

    view: ArrayView
    finer: tuple[int, ...] = ()
    offset: int = 0


@dataclass(frozen=True, eq=False)
class WindowSum:
    """The sum over the window of a stencil."""


@dataclass(frozen=True, eq=False)
class Call:
    """An operation on other expressions."""

    operation: str
    arguments: tuple[Expression, ...]


Expression = Constant | Load | WindowSum | Call
WINDOW = WindowSum()


def loads(*expressions: Expression) -> Iterator[Load]:
    """Iterate over all different loads of expressions."""
    seen: set[int] = set()
    waiting = list(reversed(expressions))
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Load):
            yield part
        elif isinstance(part, Call):
            waiting.extend(reversed(part.arguments))


def rewritten(expression: Expression, replace: Callable[[Load], Expression]) -> Expression:
    """Return an expression with each load replaced."""
    results: dict[int, Expression] = {}

    def visit(part: Expression) -> Expression:
        result = results.get(id(part))
        if result is None:
            if isinstance(part, Load):
                result = replace(part)
            elif isinstance(part, Call):
                result = Call(part.operation, tuple(map(visit, part.arguments)))
            else:
                result = part
            results[id(part)] = result
        return result

    return visit(expression)


def strided(buffer: np.ndarray[Any, Any], view: ArrayView) -> np.ndarray[Any, Any]:
    """Return the array of a view in a buffer of NumPy."""
    elements = buffer.reshape(-1).view(view.dtype)[view.offset :]  # Complex numbers may be read as pairs.
    return np.lib.stride_tricks.as_strided(elements, view.shape, view.byte_strides)


def evaluate(
    expression: Expression, buffers: Mapping[str, np.ndarray[Any, Any]], window: Any = None
) -> np.ndarray[Any, Any]:
    """Evaluate an expression by NumPy.

    Parameters
    ----------
    expression : Expression
    buffers : mapping of str to ndarray
    window : ndarray, optional
        The sums over the window of a stencil.
    """
    results: dict[int, Any] = {}

    def visit(part: Expression) -> Any:
        if id(part) not in results:
            results[id(part)] = value(part)
        return results[id(part)]

    def value(part: Expression) -> Any:
        if isinstance(part, Constant):
            return part.value
        if isinstance(part, WindowSum):
            return window
        if isinstance(part, Load):
            return _loaded(part, buffers)
        return OPERATIONS[part.operation].numpy(*map(visit, part.arguments))

    with np.errstate(all="ignore"):
        return np.asarray(visit(expression))


def _loaded(load: Load, buffers: Mapping[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    x = strided(buffers[load.view.buffer], load.view)
    if x.dtype.kind in "iu":  # Expressions compute with floats.
        x = x.astype(np.float64)
    for axis, length in enumerate(load.finer, x.ndim - len(load.finer)):
        places = (np.arange(length) + load.offset) // 2
        x = np.take(x, np.minimum(places, x.shape[axis] - 1), axis)
    return x
