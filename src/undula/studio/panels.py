"""The panels beside the stage: the wavelet, the chain of filters, figures."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nicegui import ui

from ..backends.devices.strategies import STRATEGIES
from ..errors import UndulaError
from ..filters import STAGES
from ..filters.speckle import KINDS
from ..plans.boundary import MODES
from ..schemes import SCHEMES, scheme
from ..wavelets import wavelist
from .chain import Link
from .controls import (
    BAND_WORDS,
    Choice,
    Picks,
    Slider,
    Spread,
    changed,
    controls,
    rare,
    titled,
    usual,
    value_of,
)
from .plots import COLORS, histogram, time_bar, wavelet_functions
from .rendering import Settings

if TYPE_CHECKING:
    from .page import Page

SPECKLE_WORDS = {
    "intensity": "multiplied, of intensities",
    "amplitude": "multiplied, of amplitudes",
    "log": "of a scan as screens show it",
}

# What was typed into a list, unless the list has an option of its own for Enter: that which arrow keys chose.
TYPED = """(event) => {
    if (!document.querySelector(".q-menu .q-manual-focusable--focused")) emit(event.target.value);
}"""

__all__ = ["ChainPanel", "FiguresPanel", "WaveletPanel"]


def named(element: Any, label: str, test: str = "") -> Any:
    """An element with a name for screen readers, and one for tests."""
    element.props["aria-label"] = label
    if test:
        element.props["data-testid"] = test
    return element


def number_text(value: float, step: float) -> str:
    """A number with as many digits as its slider can tell."""
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0
    return f"{value:.{digits}f}"


def slider_row(
    label: str,
    low: float,
    high: float,
    step: float,
    value: float,
    change: Callable[[float], None],
    settle: Callable[[], None],
    test: str,
    about: str = "",
    text: Callable[[float], str] | None = None,
) -> Any:
    """A name, a value and a slider; it changes while it is dragged."""
    told = text or (lambda x: number_text(x, step))
    with ui.column().classes("control"):
        with ui.row().classes("full-width justify-between items-baseline no-wrap"):
            name = ui.label(label).classes("name")
            if about:
                name.tooltip(about)
            shown = ui.label(told(value)).classes("value").props(f'data-testid="{test}-value"')

        def moved(event: Any) -> None:
            if event.value is not None:
                shown.set_text(told(event.value))
                change(event.value)

        slider = ui.slider(min=low, max=high, step=step, value=value, on_change=moved).props("dense")
        named(slider, label, test)
        slider.on("change", settle, args=[])
    return slider


class WaveletPanel:
    """Which wavelet, how deep, how lines go on; how it is run, for the curious."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._open = False  # (what was opened stays so when the card is made anew)

    def _set(self, **told: Any) -> None:
        self.page.do(self.page.chain.set(**told), ("wavelet", *told))

    @ui.refreshable_method
    def build(self) -> None:
        """The card."""
        chain, page = self.page.chain, self.page
        with ui.element("section").classes("card column").props('aria-label="Wavelet"'):
            ui.html("<h2>Wavelet</h2>", sanitize=False)
            names = {name: name for name in wavelist()}

            def chosen(event: Any) -> None:
                if event.value and event.value != self.page.chain.wavelet:
                    self._set(wavelet=event.value)
                    page.history.settle()
                    self.build.refresh()

            select = ui.select(names, value=chain.wavelet, with_input=True, on_change=chosen)
            named(select.props("dense outlined options-dense").classes("full-width"), "Wavelet", "wavelet")
            select.on("keydown.enter", self._typed, js_handler=TYPED)
            ui.html(wavelet_functions(chain.wavelet), sanitize=False).classes("full-width")
            most = page.deepest
            usual_level = page.levels

            def open_level(event: Any) -> None:
                self._set(level=None if event.value else page.levels)
                page.history.settle()
                page.structure()

            if chain.level is not None:
                slider_row(
                    "Levels",
                    1,
                    most,
                    1,
                    min(max(1, chain.level), most),
                    lambda value: self._level(int(value)),
                    self._settled,
                    "levels",
                )
            label = (
                "as deep as is usual" if chain.level is not None else f"as deep as is usual: {usual_level}"
            )
            box = ui.checkbox(label, value=chain.level is None, on_change=open_level).props("dense size=sm")
            named(box.classes("hint"), "Levels as usual", "levels-auto")
            shifts = min(chain.invariant, most)
            slider_row(
                "All shifts, finest levels",
                0,
                min(most, 6),
                1,
                min(shifts, 6),
                lambda value: self._set(invariant=int(value)),
                self._settled,
                "invariant",
                "fewer artefacts at edges, at several times the work",
            )
            with ui.expansion("Borders, colour, speckle").props("dense").classes("full-width hint") as more:
                named(more, "Borders, colour, speckle", "wavelet-more")
                self._more()
            with ui.expansion("Scheme and strategy, for the curious", value=self._open) as own:
                own.props("dense").classes("full-width hint")
                own.on_value_change(lambda event: setattr(self, "_open", bool(event.value)))
                named(own, "Scheme and strategy", "curious")
                self._curious()

    def _typed(self, event: Any) -> None:
        """Somebody typed a name, or how one begins, and pressed Enter."""
        text = str(event.args).strip().lower()[:40]
        if not text or text == self.page.chain.wavelet:
            return
        names = sorted(wavelist(), key=lambda name: (name != text, not name.startswith(text)))
        name = next((name for name in names if text in name), None)
        if name is None:
            ui.notify(f"no wavelet is called {text!r}", type="warning")
            return
        self._set(wavelet=name)
        self._settled()
        self.build.refresh()

    def _settled(self) -> None:
        self.page.history.settle()

    def _level(self, value: int) -> None:
        before = len(self.page.chain.links)
        self._set(level=value)
        if before:
            self.page.chain_panel.build.refresh()
        self.page.figures_panel.choices.refresh()

    def _choice(self, label: str, options: dict[Any, str], value: Any, change: Any, test: str) -> None:
        select = ui.select(options, value=value, label=label, on_change=lambda event: change(event.value))
        named(select.props("dense outlined options-dense").classes("full-width q-mt-xs"), label, test)

    def _more(self) -> None:
        chain = self.page.chain

        def settled(**told: Any) -> None:
            self._set(**told)
            self.page.history.settle()

        self._choice("Borders", {m: m for m in MODES}, chain.mode, lambda v: settled(mode=v), "mode")
        colors = {"ycbcr": "brightness and colour differences", "channels": "each channel by itself"}
        self._choice("Colours are filtered as", colors, chain.color, lambda v: settled(color=v), "color")
        self._choice(
            "Speckle",
            {"": "none", **{kind: SPECKLE_WORDS[kind] for kind in KINDS}},
            chain.speckle or "",
            lambda v: settled(speckle=v or None, looks=None),
            "speckle",
        )

    def _curious(self) -> None:
        page, settings = self.page, self.page.session.settings

        def change(**told: Any) -> None:
            now = page.session.settings
            own = {"strategy": now.strategy, "scheme": now.scheme, **told}
            page.session.settings = Settings(now.backend, **own)
            page.session.changed()
            self.build.refresh()

        self._choice(
            "Scheme",
            {s: s for s in ("auto", *SCHEMES)},
            settings.scheme,
            lambda v: change(scheme=v),
            "scheme",
        )
        self._choice(
            "Strategy",
            {s: s for s in STRATEGIES},
            settings.strategy,
            lambda v: change(strategy=v),
            "strategy",
        )
        name = "sweldens" if settings.scheme == "auto" else settings.scheme
        try:
            found = scheme(page.chain.wavelet, name)
            words = f"{name}: {found.barriers} barriers, {found.operations} operations for four samples"
        except UndulaError as error:
            words = str(error)
        ui.label(words).classes("hint q-mt-xs")
        ui.label(
            "All give the same picture. GPUs and OpenCL devices run them; the CPU has one way of its own."
        ).classes("hint")


class ChainPanel:
    """The stages: add, order, switch off, remove, and their controls."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @ui.refreshable_method
    def build(self) -> None:
        """All cards."""
        page = self.page
        with ui.row().classes("full-width items-center justify-between no-wrap"):
            ui.html("<h2 class='card-title'>Filter chain</h2>", sanitize=False)
            with ui.row().classes("no-wrap").style("gap:2px"):
                with ui.button(icon="add").props("flat dense round size=sm") as add:
                    named(add, "Add a filter", "add").tooltip("Add a filter")
                    with ui.menu().props("auto-close"):
                        for kind in STAGES:
                            self._offer(kind)
        if not page.chain.links:
            ui.label("No filter yet: the picture stays as it is. Add one, or take a preset.").classes("hint")
        count = len(page.chain.links)
        for place, link in enumerate(page.chain.links):
            self._card(link, place, count)

    def _offer(self, kind: str) -> None:
        title, about, icon = titled(kind)
        with ui.menu_item(on_click=lambda: self._add(kind)).props(f'data-testid="add-{kind}"'):
            with ui.item_section().props("avatar"):
                ui.icon(icon)
            with ui.item_section():
                ui.item_label(title)
                ui.item_label(about).props("caption")

    def _add(self, kind: str) -> None:
        self._do(self.page.chain.added(STAGES[kind]()))

    def _do(self, chain: Any) -> None:
        self.page.do(chain)
        self.page.history.settle()
        self.build.refresh()

    def _card(self, link: Link, place: int, count: int) -> None:
        title, about, icon = titled(link.stage.kind)
        page = self.page
        with (
            ui.element("section")
            .classes("card column" + ("" if link.on else " off"))
            .props(f'aria-label="{title}, filter {place + 1}" data-testid="stage-{place}"')
        ):
            with ui.row().classes("full-width items-center no-wrap").style("gap:0"):
                ui.icon(icon).classes("q-mr-xs").style("color:var(--accent)")
                ui.html(f"<h2>{title}</h2>", sanitize=False).tooltip(about)
                ui.space()
                for label, name, by, allowed in (
                    ("Earlier", "arrow_upward", -1, place > 0),
                    ("Later", "arrow_downward", 1, place < count - 1),
                ):
                    move = ui.button(
                        icon=name, on_click=lambda by=by: self._do(page.chain.moved(link.key, by))
                    ).props("flat dense round size=xs")
                    move.set_enabled(allowed)
                    named(move, f"{title}: {label.lower()}", f"{label.lower()}-{place}").tooltip(label)
                reset = ui.button(
                    icon="restart_alt",
                    on_click=lambda: self._do(
                        page.chain.changed(link.key, usual(page.chain.link(link.key).stage))
                    ),
                ).props("flat dense round size=xs")
                named(reset, f"{title}: reset", f"reset-{place}").tooltip("Reset")
                remove = ui.button(
                    icon="close", on_click=lambda: self._do(page.chain.removed(link.key))
                ).props("flat dense round size=xs")
                named(remove, f"{title}: remove", f"remove-{place}").tooltip("Remove")
                on = ui.switch(
                    value=link.on,
                    on_change=lambda event: self._do(page.chain.switched(link.key, event.value)),
                ).props("dense size=xs")
                named(on.classes("q-ml-xs"), f"{title}: on", f"on-{place}").tooltip("On or off")
            if link.on:
                found = controls(link.stage, page.levels, page.span)
                for control in found:
                    if not rare(control):
                        self._control(link, control, place)
                others = [control for control in found if rare(control)]
                if others:
                    own = any(value_of(link.stage, one) not in (None, "white", 3.0) for one in others)
                    with ui.expansion("More", value=own).props("dense").classes("full-width hint") as more:
                        named(more, f"{title}: more", f"more-{place}")
                        for control in others:
                            self._control(link, control, place)

    def _change(self, link: Link, control: Any, value: Any) -> None:
        """A control was moved."""
        page = self.page
        stage = page.chain.link(link.key).stage
        try:
            made = changed(stage, control, value, page.levels, page.span)
        except UndulaError as error:
            ui.notify(str(error), type="warning")
            return
        page.do(page.chain.changed(link.key, made), (link.key, control.name, getattr(control, "index", None)))
        if not isinstance(control, Slider) or control.auto:
            shape = [type(one).__name__ + one.name for one in controls(made, page.levels, page.span)]
            before = [type(one).__name__ + one.name for one in controls(stage, page.levels, page.span)]
            opened = isinstance(control, Slider) and (value is None) != (getattr(stage, control.name) is None)
            if shape != before or opened:
                page.history.settle()
                self.build.refresh()

    def _control(self, link: Link, control: Any, place: int) -> None:
        stage = link.stage
        value = value_of(stage, control)
        test = f"{control.name}-{place}"

        def change(given: Any) -> None:
            self._change(link, control, given)

        settle = self.page.history.settle
        if isinstance(control, Slider):
            test += f"-{control.index}" if control.index is not None else ""
            if control.auto:
                box = ui.checkbox(
                    f"{control.label} {control.auto}",
                    value=value is None,
                    on_change=lambda event: change(None if event.value else self.page.noise(control.high)),
                ).props("dense size=sm")
                named(box.classes("hint"), f"{control.label} {control.auto}", f"{test}-auto")
            if value is not None:
                value = min(max(value, control.low), control.high)
                slider_row(
                    control.label,
                    control.low,
                    control.high,
                    control.step,
                    value,
                    change,
                    settle,
                    test,
                    control.about,
                )
        elif isinstance(control, Choice):
            select = ui.select(
                control.options, value=value, label=control.label, on_change=lambda event: change(event.value)
            )
            named(select.props("dense outlined options-dense").classes("full-width"), control.label, test)
        elif isinstance(control, Spread):
            box = ui.checkbox(control.label, value=value, on_change=lambda event: change(event.value))
            named(box.props("dense size=sm").classes("hint"), control.label, f"{test}-each")
        elif isinstance(control, Picks):
            select = ui.select(
                control.options,
                value=[one for one in value or [] if one in control.options],
                label=f"{control.label}: {'some' if value else 'all'}",
                multiple=True,
                on_change=lambda event: change(event.value),
            )
            named(select.props("dense outlined options-dense").classes("full-width"), control.label, test)


class FiguresPanel:
    """What is known of the picture, and where the time went."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def build(self) -> None:
        """The cards."""
        page = self.page
        with ui.element("section").classes("card column").props('aria-label="Figures"'):
            known = {
                name: "CPU" if name == "cpu" else f"{name} {about}" for name, about in page.devices.items()
            }
            device = ui.select(
                known,
                value=page.session.settings.backend,
                label="Device",
                on_change=lambda e: page.choose_device(e.value),
            )
            named(device.props("dense outlined options-dense").classes("full-width"), "Device", "device")
            with ui.row().classes("full-width items-baseline justify-between no-wrap"):
                ui.html("<h2>Figures</h2>", sanitize=False)
                self._fps = ui.label("").classes("fps").props('data-testid="fps" aria-live="off"')
            self._facts = ui.html("", sanitize=False).classes("full-width").props('data-testid="facts"')
            self.references()
        with ui.element("section").classes("card column").props('aria-label="Histogram"'):
            ui.html("<h2>Histogram of a band</h2>", sanitize=False)
            self.choices()
            self._plot = ui.html("", sanitize=False).classes("full-width").props('data-testid="histogram"')
            ui.label("grey before, line after the filter; logarithmic. Dashed: the threshold").classes("hint")

    @ui.refreshable_method
    def references(self) -> None:
        """What the result is compared with."""
        session = self.page.session
        own = session.current
        same = [
            one
            for one in session.inputs
            if own is not None
            and one is not own
            and one.first.shape == own.first.shape
            and one.kind != "camera"
        ]
        if session.reference not in same:
            session.reference = None
        options = {0: "the original", **{one.id: one.name for one in same}}

        def choose(event: Any) -> None:
            session.reference = next((one for one in session.inputs if one.id == event.value), None)
            session.changed()

        value = session.reference.id if session.reference else 0
        select = ui.select(options, value=value, label="PSNR and SSIM against", on_change=choose)
        named(
            select.props("dense outlined options-dense").classes("full-width q-mt-xs"),
            "Compare with",
            "reference",
        )

    @ui.refreshable_method
    def choices(self) -> None:
        """Which band."""
        session, page = self.page.session, self.page

        def choose(level: int | None = None, key: str | None = None) -> None:
            session.band = (level or session.band[0], key or session.band[1])
            session.changed()

        with ui.row().classes("full-width no-wrap").style("gap:6px"):
            levels = {n: str(n) for n in range(1, page.levels + 1)}
            level = min(session.band[0], page.levels)
            one = ui.select(levels, value=level, label="Level", on_change=lambda e: choose(level=e.value))
            named(
                one.props("dense outlined options-dense").classes("col"),
                "Level of the histogram",
                "band-level",
            )
            two = ui.select(
                BAND_WORDS, value=session.band[1], label="Band", on_change=lambda e: choose(key=e.value)
            )
            named(
                two.props("dense outlined options-dense").classes("col-7"),
                "Band of the histogram",
                "band-key",
            )

    def update(self) -> None:
        """The newest numbers."""
        session, page = self.page.session, self.page
        own, painted = session.current, session.painted
        fps = session.fps if session.moving else 0.0
        self._fps.set_text(f"{fps:.1f} fps" if fps else "")
        if own is None:
            self._facts.set_content("")
            self._plot.set_content("")
            return
        rows: list[tuple[str, str]] = [
            ("Size", own.size),
        ]
        bar = ""
        if painted is not None:
            times = painted.milliseconds
            for name in ("forward", "filter", "inverse", "transfer"):
                mark = f'<i class="dot" style="background:{COLORS[name]}"></i> '
                if name != "transfer" or session.settings.backend != "cpu":
                    rows.append((mark + name.capitalize(), f"{times.get(name, 0.0):.1f} ms"))
            rows.append(("All", f"{times.get('all', 0.0):.1f} ms"))
            bar = time_bar(times)
        rows += _quality(session.figures)
        cells = "".join(f"<tr><td>{name}</td><td>{html.escape(value)}</td></tr>" for name, value in rows)
        self._facts.set_content(f'{bar}<table class="facts">{cells}</table>')
        band, level = session.distribution, min(session.band[0], page.levels)
        words = BAND_WORDS[session.band[1]]
        self._plot.set_content("" if band is None else histogram(band, level, words))


def _short(value: float) -> str:
    return f"{value:.2f}" if 0.1 <= value < 10_000 or value == 0 else f"{value:.2e}"


def _quality(found: dict[str, float]) -> list[tuple[str, str]]:
    rows = []
    if "noise before" in found:
        rows.append(("Noise σ", " → ".join(_short(found[f"noise {when}"]) for when in ("before", "after"))))
    if "psnr" in found:
        text = "∞" if math.isinf(found["psnr"]) else f"{found['psnr']:.2f} dB"
        if "psnr before" in found:
            text = f"{found['psnr before']:.2f} → {text}"
        rows.append(("PSNR", text))
    if "ssim" in found:
        rows.append(("SSIM", f"{found['ssim']:.4f}"))
    return rows
