"""The slider as an element of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui.element import Element

__all__ = ["RangeSlider"]


class RangeSlider(Element, component="static/slider.js"):
    """A slider with ``bounds`` (low, high, step).

    It calls ``move`` with each value while it moves, and ``settle`` after the last one: when a key or the
    pointer is released. ``hold`` is called with True when it is grasped, and with False when it is released.
    """

    def __init__(
        self,
        bounds: tuple[float, float, float],
        value: float,
        move: Callable[[float], None],
        settle: Callable[[], None] | None = None,
        hold: Callable[[bool], None] | None = None,
    ) -> None:
        super().__init__()
        self._move, self._settle = move, settle
        self._props |= dict(zip(("min", "max", "step"), bounds, strict=True))
        self._props["value"] = value
        self.on("move", self._moved)
        if hold is not None:
            self.on("hold", lambda event: hold(bool(event.args["held"])))

    @property
    def value(self) -> float:
        """The newest value."""
        return float(self._props["value"])

    def show(self, value: float, most: float | None = None) -> None:
        """Show another value, and possibly another largest one, without calling ``move``."""
        if most is not None and most != self._props["max"]:
            self._props["max"] = most
            self.update()
        if value != self.value:
            self._props["value"] = value
            self.run_method("show", value)

    def _moved(self, event: Any) -> None:
        value = min(max(float(event.args["value"]), self._props["min"]), self._props["max"])
        if value != self.value:
            self._props["value"] = value
            self._move(value)
        if event.args["settled"] and self._settle is not None:
            self._settle()
