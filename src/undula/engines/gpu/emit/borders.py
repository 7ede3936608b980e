"""Boundary modes as C functions, printed from the table of :mod:`undula.lowering.borders`.

Each border has a function ``<name>_place(p, n, t)``: the index on the line of the t-th sample from which the
value at place p is computed, or -1 for none. Borders with weights also have ``<name>_weight(p, n, t)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....lowering.borders import Arithmetic, Border
from .dialect import Dialect
from .text import Text

__all__ = ["FOLDS", "emit_border"]

# Most places beyond the ends are close to them: one addition suffices, and the division is in a rare branch.
FOLDS = """\
{function} int wrapped(int p, int n) {{
    p += p < 0 ? n : 0;
    p -= p >= n ? n : 0;
    if (p < 0 || p >= n) p = (p % n + n) % n;
    return p;
}}
{function} int mirrored(int p, int n, int last) {{
    p = p < 0 ? -(last & 1) - p : p;
    p = p >= n ? last - p : p;
    while (p < 0 || p >= n) p = p < 0 ? -(last & 1) - p : last - p;
    return p;
}}"""

# How tightly the operators of C bind.
_CONDITIONAL, _OR, _AND, _EQUAL, _COMPARED, _SUM, _PRODUCT, _UNARY, _ATOM = range(9)


class _Expression:
    """An integer expression in C."""

    def __init__(self, text: str, binding: int = _ATOM) -> None:
        self.text, self.binding = text, binding

    def inside(self, binding: int) -> str:
        """Return the text as an operand, in parentheses if it binds less tightly than its operator."""
        return self.text if self.binding >= binding else f"({self.text})"

    def _joined(self, operator: str, other: Any, binding: int, swapped: bool = False) -> _Expression:
        left, right = (_expression(other), self) if swapped else (self, _expression(other))
        text = f"{left.inside(binding)} {operator} {right.inside(binding + 1)}"
        return _Expression(text, binding)

    def __add__(self, other: Any) -> _Expression:
        return self._joined("+", other, _SUM)

    def __sub__(self, other: Any) -> _Expression:
        return self._joined("-", other, _SUM)

    def __rmul__(self, other: Any) -> _Expression:
        return self._joined("*", other, _PRODUCT, swapped=True)

    def __mod__(self, other: Any) -> _Expression:
        return self._joined("%", other, _PRODUCT)

    def __neg__(self) -> _Expression:
        return _Expression(f"-{self.inside(_UNARY)}", _UNARY)

    def __lt__(self, other: Any) -> _Expression:
        return self._joined("<", other, _COMPARED)

    def __gt__(self, other: Any) -> _Expression:
        return self._joined(">", other, _COMPARED)

    def __ge__(self, other: Any) -> _Expression:
        return self._joined(">=", other, _COMPARED)

    def __eq__(self, other: object) -> Any:
        return self._joined("==", other, _EQUAL)

    __hash__ = None  # type: ignore[assignment]


def _expression(value: Any) -> _Expression:
    return (
        value if isinstance(value, _Expression) else _Expression(str(value), _ATOM if value >= 0 else _UNARY)
    )


class _CArithmetic:
    @staticmethod
    def where(condition: Any, then: Any, otherwise: Any) -> _Expression:
        texts = [_expression(part) for part in (condition, then, otherwise)]
        text = f"{texts[0].inside(_OR)} ? {texts[1].inside(_OR)} : {texts[2].text}"
        return _Expression(text, _CONDITIONAL)

    @staticmethod
    def both(first: Any, second: Any) -> _Expression:
        return _Expression(f"{first.inside(_AND)} && {second.inside(_AND)}", _AND)

    @staticmethod
    def either(first: Any, second: Any) -> _Expression:
        return _Expression(f"{first.inside(_OR)} || {second.inside(_OR)}", _OR)

    @staticmethod
    def minimum(first: Any, second: Any) -> _Expression:
        return _Expression(f"min({_expression(first).text}, {_expression(second).text})")

    @staticmethod
    def quotient(value: Any, divisor: Any) -> _Expression:
        text = f"{value.inside(_PRODUCT)} / {_expression(divisor).inside(_UNARY)}"
        return _Expression(text, _PRODUCT)

    @staticmethod
    def wrap(place: Any, period: Any) -> _Expression:
        return _Expression(f"wrapped({place.text}, {period.text})")

    @staticmethod
    def mirror(place: Any, length: Any, last: Any) -> _Expression:
        return _Expression(f"mirrored({place.text}, {length.text}, {last.text})")


_C: Arithmetic = _CArithmetic()


def _emit_choice(text: Text, head: str, choices: Sequence[Any]) -> None:
    """Append a function that returns the t-th of some expressions."""
    with text.block(f"{head}(int p, int n, int t)"):
        for number, choice in enumerate(choices[:-1]):
            text(f"if (t == {number}) return {_expression(choice).text};")
        text(f"return {_expression(choices[-1]).text};")


def emit_border(text: Text, dialect: Dialect, border: Border, name: str) -> None:
    """Append the functions of a border."""
    places, weights = border.rule(_Expression("p"), _Expression("n"), _C)
    _emit_choice(text, f"{dialect.function} int {name}_place", places)
    if weights:
        _emit_choice(text, f"{dialect.function} number {name}_weight", weights)
