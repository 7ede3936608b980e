"""The panel of tasks: the verbs of the command line, such as denoise, with their options as controls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, fields, replace
from typing import TYPE_CHECKING, Any

from nicegui import ui

from ..errors import UndulaError
from ..filters.verbs import VERBS, Verb, VerbOption
from .code import TEMPORAL_OPTIONS
from .extents import EACH, AppliedChain
from .widgets import check_box, identify, select_box, slider_row

if TYPE_CHECKING:
    from .page import Page

__all__ = ["TaskPanel", "change_option", "shown_options"]

# Options with controls in other cards, and the one that is a button.
ELSEWHERE = ("wavelet", "level", "invariant", "color", "rule", "profile", "calibrate")


def shown_options(verb: Verb) -> Iterator[tuple[Field[Any], VerbOption]]:
    """Yield the options of a verb that have an effect, given the others."""
    for each in fields(verb):  # type: ignore[arg-type]
        description: VerbOption = each.metadata["option"]
        if each.name in ELSEWHERE or description.video_only:
            continue
        # Options that are estimated by default are refused where they do not apply.
        if each.default is not None or description.choices or _works(verb, each.name, 1.0):
            yield each, description


def _works(verb: Verb, name: str, value: Any) -> bool:
    try:
        replace(verb, **{name: value}).pipeline()  # type: ignore[type-var]
    except UndulaError:
        return False
    return True


def change_option(verb: Verb, name: str, value: Any) -> Verb:
    """Return the verb with another value of an option; others are reset if they do not go with it."""
    if _works(verb, name, value):
        return replace(verb, **{name: value})  # type: ignore[type-var]
    changed = type(verb)(**{name: value})
    changed.pipeline()
    return changed


class TaskPanel:
    """A verb and its options, from which the chain is made."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def _verb(self) -> Verb | None:
        return self.page.chain.verb

    @ui.refreshable_method
    def build(self) -> None:
        """Build the card."""
        verb = self._verb
        with ui.element("section").classes("card column").props('aria-label="Task"'):
            ui.html("<h2>Task</h2>", sanitize=False)
            tasks = {"": "custom chain", **{name: name.capitalize() for name in VERBS}}
            name = next((name for name, kind in VERBS.items() if type(verb) is kind), "")
            select_box(tasks, name, "Task", self._choose, "task")
            self._build_extent()
            if verb is None:
                return
            if self.page.chain.task is None:
                ui.label("The filter chain was changed; an option below replaces it.").classes("hint")
            in_motion = self.page.follows_motion
            for each, description in shown_options(verb):
                value = getattr(verb, each.name)
                # What denoising over time refuses is shown only if it has to be changed back.
                if not in_motion or each.name in TEMPORAL_OPTIONS or value != each.default:
                    self._build_option(each.name, description, value)
            if "calibrate" in verb.options() and not in_motion:
                button = ui.button("Calibrate the strength", icon="tune", on_click=self.calibrate)
                button.props("outline dense size=sm").classes("full-width q-mt-xs")
                identify(button, "Calibrate the strength", "calibrate").tooltip(
                    "Find the strength with the least estimated error for this image"
                )

    def _build_extent(self) -> None:
        """Add the choice of what is filtered together, for volumes and clips."""
        page, chain, shown = self.page, self.page.chain, self.page.session.current
        if shown is None or not shown.extents:
            return
        titles = {EACH: f"each {shown.position_name} alone"}
        titles |= {key: extent.title for key, extent in shown.extents.items()}
        chosen = chain.extent if chain.extent in titles else EACH

        def choose(extent: str) -> None:
            page.set_chain(replace(page.chain, extent=extent))
            page.history.end_gesture()
            page.rebuild_panels()

        select_box(titles, chosen, "Filter", choose, "extent", "full-width q-mt-xs")
        extent = shown.extents.get(chosen)
        if extent is None:
            return
        if extent.is_window:
            low, high, step = AppliedChain.frame_bounds(chain.follows_motion)
            slider_row(
                f"{shown.position_name.capitalize()}s together",
                (low, high, step),
                min(max(chain.over_time, low), high),
                lambda value: page.set_chain(replace(page.chain, over_time=int(value)), "over time"),
                page.history.end_gesture,
                "over-time",
                "more of them remove more noise, but take longer",
            )
            if page.follows_motion:
                ui.label(
                    "Similar blocks are filtered together, along their motion, without wavelets and filter"
                    " chain."
                ).classes("hint")

    def _build_option(self, name: str, description: VerbOption, value: Any) -> None:
        label, test_id = name.replace("_", " ").capitalize(), f"task-{name}"
        if description.choices:
            options: dict[Any, str] = {None: "automatic"} if description.auto else {}
            options |= {choice: choice for choice in description.choices}
            box = select_box(options, value, label, lambda new: self._change(name, new), test_id)
            automatic = f" Automatic: {description.auto}." if description.auto else ""
            box.tooltip(description.help + automatic)
        elif isinstance(value, bool):
            check_box(label, value, lambda new: self._change(name, new), test_id)
        elif description.bounds is not None and value is not None:
            slider_row(
                label,
                description.bounds,
                value,
                lambda new: self._change(name, new, rebuild=False),
                self.page.history.end_gesture,
                test_id,
                description.help,
            )
        else:
            text = "" if value is None else f"{value:g}"
            box = ui.input(label, value=text, placeholder=description.auto)
            box.props("dense outlined stack-label inputmode=decimal").classes("full-width")
            identify(box, label, test_id).tooltip(description.help)
            for event in ("keydown.enter", "blur"):
                box.on(event, lambda: self._type(name, box.value), args=[])

    def _type(self, name: str, text: str) -> None:
        """Set a number that was typed; no text leaves it to the filter."""
        try:
            value = float(text.replace(",", ".")) if text.strip() else None
        except ValueError:
            ui.notify(f"{name}: expected a number, got {text!r}", type="warning")
            return
        if value != getattr(self._verb, name):
            self._change(name, value)

    def _choose(self, name: str) -> None:
        shown = self.page.session.current
        scans = shown is not None and shown.facts.is_ultrasound
        options = {"kind": "log"} if name == "despeckle" and scans else {}
        self._show(VERBS[name](**options) if name else None)

    def _change(self, name: str, value: Any, rebuild: bool = True) -> None:
        verb = self._verb
        assert verb is not None
        try:
            self._show(change_option(verb, name, value), ("task", name), rebuild)
        except UndulaError as error:
            ui.notify(str(error), type="warning")
            self.build.refresh()

    def _show(self, verb: Verb | None, gesture: Any = None, rebuild: bool = True) -> None:
        """Make the chain of a verb the current one; the card of a slider that is dragged must stay."""
        page = self.page
        chain, followed_motion = page.chain, page.follows_motion
        chain = replace(chain, verb=None) if verb is None else chain.with_pipeline(verb.pipeline(), verb)
        page.set_chain(chain, gesture)
        if rebuild:
            page.history.end_gesture()
            page.rebuild_panels()
        else:
            page.chain_panel.build.refresh()
            if page.follows_motion != followed_motion:
                page.wavelet_panel.build.refresh()
                page.figures_panel.choices.refresh()

    async def calibrate(self) -> None:
        """Set the strengths of the chain to those with the least estimated error."""
        try:
            factor = await self.page.session.calibrate()
        except UndulaError as error:
            ui.notify(str(error), type="warning", multi_line=True)
            return
        self.page.history.end_gesture()
        self.page.rebuild_panels()
        ui.notify(f"strength × {factor:.2f}")
