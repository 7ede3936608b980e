"""Widgets that several parts of the page use; each has a label for screen readers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from nicegui import ui

from .slider import RangeSlider

__all__ = ["check_box", "icon_button", "identify", "sample_image", "select_box", "slider_row", "value_text"]


def identify(element: Any, label: str, test_id: str = "") -> Any:
    """Give an element a label for screen readers, and an identifier for tests."""
    element.props["aria-label"] = label
    if test_id:
        element.props["data-testid"] = test_id
    return element


def select_box(
    options: dict[Any, str],
    value: Any,
    label: str,
    change: Callable[[Any], None],
    test_id: str,
    classes: str = "full-width",
    title: str = "",
    **more: Any,
) -> Any:
    """Add a list to choose from; ``title`` is shown in place of the label."""
    box = ui.select(
        options, value=value, label=title or label, on_change=lambda event: change(event.value), **more
    )
    return identify(box.props("dense outlined options-dense").classes(classes), label, test_id)


def check_box(label: str, value: bool, change: Callable[[bool], None], test_id: str, name: str = "") -> None:
    """Add a check box; ``name`` is for screen readers."""
    box = ui.checkbox(label, value=value, on_change=lambda event: change(event.value))
    identify(box.props("dense size=sm").classes("hint"), name or label, test_id)


def value_text(number: float, step: float) -> str:
    """Return the value of a slider with as many digits as its steps have.

    Examples
    --------
    >>> value_text(1.5, 0.01), value_text(0.425, 0.05), value_text(3.0, 1.0), value_text(1.5e-12, 1e-14)
    ('1.50', '0.425', '3', '1.5e-12')
    """
    if not 1e-4 < step < 1e4:
        return f"{number:g}"
    rounded = f"{number:.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"
    return rounded if abs(float(rounded) - number) < 1e-6 * step else f"{number:g}"


def slider_row(
    label: str,
    bounds: tuple[float, float, float],
    value: float,
    change: Callable[[float], None],
    settle: Callable[[], None],
    test_id: str,
    hint: str = "",
) -> None:
    """Add a label, a value and a slider with ``bounds`` (low, high, step), which reports while dragged."""
    low, high, step = bounds

    def shown(number: float) -> str:
        return value_text(number, step)

    with ui.column().classes("control"):
        with ui.row().classes("full-width justify-between items-center no-wrap"):
            name = ui.label(label).classes("name")
            if hint:
                name.tooltip(hint)
            text = ui.input(value=shown(value)).props("dense borderless inputmode=decimal")
            identify(text.classes("value"), f"{label}: value", f"{test_id}-value")

        def moved(number: float) -> None:
            text.set_value(shown(number))
            change(number)

        def typed() -> None:
            if text.value == shown(slider.value):
                return
            try:
                number = float(str(text.value).strip().replace(",", ".").replace("−", "-"))
                whole = float(round(number))  # refuses NaN and infinity
                number = min(max(whole if step >= 1 else number, low), high)
            except (ValueError, OverflowError):
                ui.notify(f"{label}: expected a number from {low:g} to {high:g}", type="warning")
                number = slider.value
            text.set_value(shown(number))  # The text of a number that was out of range or no number.
            if number != slider.value:
                slider.show(number)
                change(number)
                settle()

        slider = RangeSlider(bounds, value, moved, settle)
        identify(slider, label, test_id)
        text.on("keydown.enter", typed, args=[])
        text.on("blur", typed, args=[])


def icon_button(icon: str | None, label: str, test_id: str, action: Any, text: str = "") -> Any:
    """Add a button with an icon, a text or both; the label appears under the pointer."""
    button = ui.button(text, icon=icon, on_click=action).props("flat dense size=md")
    return identify(button.classes("q-px-xs"), label, test_id).tooltip(label)


def sample_image(name: str) -> None:
    """Add the thumbnail of a sample."""
    ui.element("img").props(f'src="/studio/sample/{name}" alt="" width="64" height="48" loading="lazy"')
