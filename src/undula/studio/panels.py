"""The panels beside the viewer: the wavelet, the filter chain and the figures."""

from __future__ import annotations

import html
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nicegui import ui

from ..engines.gpu.strategies import STRATEGIES
from ..errors import UndulaError
from ..filters import STAGES, FilterStage
from ..filters.shrinkage import BAND_LABELS
from ..filters.speckle import KINDS
from ..lowering.borders import MODES
from ..schemes import SCHEMES, scheme
from ..wavelets import families, wavelist
from .chain import PRESETS, FilterChain, Link
from .controls import (
    Choice,
    Control,
    MultiChoice,
    PerLevel,
    Slider,
    apply_control,
    control_value,
    controls,
    reset_stage,
)
from .inputs import DisplayRange
from .plots import PHASE_COLORS, histogram, time_bar, wavelet_functions
from .widgets import check_box, identify, select_box, slider_row

if TYPE_CHECKING:
    from .page import Page

__all__ = ["ChainPanel", "FiguresPanel", "WaveletPanel"]

SPECKLE_LABELS = {
    "intensity": "multiplicative, intensities",
    "amplitude": "multiplicative, amplitudes",
    "log": "log-compressed, as displayed",
}
MAX_SHIFT_LEVELS = 6
HISTOGRAM_HINT = "Grey: before; line: after; dashed: threshold. Logarithmic scale."

# On Enter, sends the text typed into a list, unless an option was selected with the arrow keys.
SEND_TYPED_TEXT = """(event) => {
    if (!document.querySelector(".q-menu .q-manual-focusable--focused")) emit(event.target.value);
}"""


class WaveletPanel:
    """Wavelet, levels, boundary mode and colour; scheme and strategy."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._schemes_open = False  # The section stays open when the card is rebuilt.

    def _configure(self, **settings: Any) -> None:
        self.page.set_chain(self.page.chain.configure(**settings), ("wavelet", *settings))

    def _configure_once(self, **settings: Any) -> None:
        """Change settings as a step of its own in the history."""
        self._configure(**settings)
        self.page.history.end_gesture()

    @ui.refreshable_method
    def build(self) -> None:
        """Build the card."""
        chain, page = self.page.chain, self.page
        if page.follows_motion:
            return
        settle = page.history.end_gesture
        with ui.element("section").classes("card column").props('aria-label="Wavelet"'):
            ui.html("<h2>Wavelet</h2>", sanitize=False)
            select = ui.select(
                {name: name for name in wavelist(families(), kind="discrete")},
                value=chain.wavelet,
                with_input=True,
                on_change=lambda event: self._choose_wavelet(event.value),
            )
            identify(select.props("dense outlined options-dense").classes("full-width"), "Wavelet", "wavelet")
            select.on("keydown.enter", self._find_wavelet, js_handler=SEND_TYPED_TEXT)
            ui.html(wavelet_functions(chain.wavelet), sanitize=False).classes("full-width")
            deepest = page.deepest
            if chain.level is not None:
                level = min(max(1, chain.level), deepest)
                slider_row("Levels", (1, deepest, 1), level, self._set_level, settle, "levels")
            label = "default number of levels" + ("" if chain.level is not None else f": {page.levels}")
            check_box(label, chain.level is None, self._set_default_level, "levels-auto", "Default levels")
            slider_row(
                "Translation-invariant levels",
                (0, min(deepest, MAX_SHIFT_LEVELS), 1),
                min(int(chain.base.invariant), page.levels, MAX_SHIFT_LEVELS),
                lambda value: self._configure(invariant=int(value)),
                settle,
                "invariant",
                "averages all shifts of the finest levels: fewer artefacts at edges, several times the work",
            )
            with (
                ui.expansion("Boundaries, colour, speckle").props("dense").classes("full-width hint") as more
            ):
                identify(more, "Boundaries, colour, speckle", "wavelet-more")
                self._build_more()
            with ui.expansion("Scheme and strategy", value=self._schemes_open) as section:
                section.props("dense").classes("full-width hint")
                section.on_value_change(lambda event: setattr(self, "_schemes_open", bool(event.value)))
                identify(section, "Scheme and strategy", "schemes")
                self._build_schemes()

    def _choose_wavelet(self, name: str | None) -> None:
        if name and name != self.page.chain.wavelet:
            self._configure_once(wavelet=name)
            self.build.refresh()

    def _find_wavelet(self, event: Any) -> None:
        """Choose the wavelet whose name was typed, starts with the typed text or contains it."""
        text = str(event.args).strip().lower()[:40]
        if not text or text == self.page.chain.wavelet:
            return
        names = sorted(wavelist(kind="discrete"), key=lambda name: (name != text, not name.startswith(text)))
        name = next((name for name in names if text in name), None)
        if name is None:
            ui.notify(f"unknown wavelet {text!r}", type="warning")
        else:
            self._choose_wavelet(name)

    def _set_level(self, value: float) -> None:
        self._configure(level=int(value))
        if self.page.chain.links:
            self.page.chain_panel.build.refresh()
        self.page.figures_panel.choices.refresh()

    def _set_default_level(self, default: bool) -> None:
        self._configure_once(level=None if default else self.page.levels)
        self.page.rebuild_panels()

    def _build_more(self) -> None:
        chain, set_once = self.page.chain, self._configure_once
        classes = "full-width q-mt-xs"
        select_box(
            {m: m for m in MODES},
            chain.base.mode,
            "Boundary mode",
            lambda v: set_once(mode=v),
            "mode",
            classes,
        )
        colors = {"ycbcr": "luma and chroma", "channels": "separate channels"}
        select_box(
            colors, chain.base.color, "Filter colours as", lambda v: set_once(color=v), "color", classes
        )
        speckle = {"": "none", **{kind: SPECKLE_LABELS[kind] for kind in KINDS}}
        select_box(
            speckle,
            chain.base.speckle or "",
            "Speckle",
            lambda v: set_once(speckle=v or None, looks=None),
            "speckle",
            classes,
        )

    def _build_schemes(self) -> None:
        page, settings = self.page, self.page.session.settings

        def change(**changes: str) -> None:
            page.session.settings = replace(page.session.settings, **changes)
            page.session.invalidate()
            self.build.refresh()

        for label, names, value in (
            ("Scheme", ("auto", *SCHEMES), settings.scheme),
            ("Strategy", STRATEGIES, settings.strategy),
        ):
            key = label.lower()
            select_box(
                {name: name for name in names},
                value,
                label,
                lambda v, key=key: change(**{key: v}),  # type: ignore[misc]
                key,
                "full-width q-mt-xs",
            )
        name = "sweldens" if settings.scheme == "auto" else settings.scheme
        try:
            chosen = scheme(page.chain.wavelet, name)
            text = f"{name}: {chosen.barriers} barriers, {chosen.operations} operations per four samples"
        except UndulaError as error:
            text = str(error)
        ui.label(text).classes("hint q-mt-xs")
        ui.label("For GPUs and OpenCL devices; results are equal up to rounding.").classes("hint")


class ChainPanel:
    """The stages of the chain, with their controls."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @ui.refreshable_method
    def build(self) -> None:
        """Build the cards of all stages."""
        if self.page.follows_motion:
            return
        links = self.page.chain.links
        with ui.row().classes("full-width items-center justify-between no-wrap"):
            ui.html("<h2 class='card-title'>Filter chain</h2>", sanitize=False)
            with ui.button(icon="add").props("flat dense round size=sm") as add:
                identify(add, "Add a filter", "add").tooltip("Add a filter")
                with ui.menu().props("auto-close"):
                    for stage in STAGES.values():
                        self._build_menu_item(stage)
        if not links:
            ui.label("No filters: the image is unchanged. Add a filter, or choose a preset.").classes("hint")
        for index, link in enumerate(links):
            self._build_card(link, index, len(links))

    def _build_menu_item(self, stage: type[FilterStage]) -> None:
        with ui.menu_item(on_click=lambda: self._edit(self.page.chain.append(stage()))) as item:
            item.props(f'data-testid="add-{stage.kind}"')
            with ui.item_section().props("avatar"):
                ui.icon(stage.icon)
            with ui.item_section():
                ui.item_label(stage.title())
                ui.item_label(stage.description).props("caption")

    def _edit(self, chain: FilterChain) -> None:
        """Change the chain as a step of its own in the history."""
        self.page.set_chain(chain)
        self.page.history.end_gesture()
        self.build.refresh()

    def _build_card(self, link: Link, index: int, count: int) -> None:
        title, page, key = link.stage.title(), self.page, link.key
        with (
            ui.element("section")
            .classes("card column" + ("" if link.enabled else " off"))
            .props(f'aria-label="{title}, filter {index + 1}" data-testid="stage-{index}"')
        ):
            with ui.row().classes("full-width items-center no-wrap").style("gap:0"):
                ui.icon(link.stage.icon).classes("q-mr-xs").style("color:var(--accent)")
                ui.html(f"<h2>{title}</h2>", sanitize=False).tooltip(link.stage.description)
                ui.space()
                for label, icon_name, allowed, edited in (
                    ("Earlier", "arrow_upward", index > 0, lambda: page.chain.move(key, -1)),
                    ("Later", "arrow_downward", index < count - 1, lambda: page.chain.move(key, 1)),
                    ("Reset", "restart_alt", True, lambda: self._reset(key)),
                    ("Remove", "close", True, lambda: page.chain.remove(key)),
                ):
                    button = ui.button(icon=icon_name, on_click=lambda edited=edited: self._edit(edited()))
                    button.props("flat dense round size=xs").set_enabled(allowed)
                    word = label.lower()
                    identify(button, f"{title}: {word}", f"{word}-{index}").tooltip(label)
                switch = ui.switch(
                    value=link.enabled,
                    on_change=lambda event: self._edit(page.chain.enable(key, event.value)),
                ).props("dense size=xs")
                identify(switch.classes("q-ml-xs"), f"{title}: on", f"on-{index}").tooltip("On or off")
            if link.enabled:
                self._build_controls(link, index, title)

    def _reset(self, key: int) -> FilterChain:
        chain = self.page.chain
        return chain.replace_stage(key, reset_stage(chain.link(key).stage))

    def _build_controls(self, link: Link, index: int, title: str) -> None:
        every, arguments = controls(link.stage, self.page.levels, self.page.span), link.stage.arguments()
        advanced = [control for control in every if arguments[control.name].advanced]
        for control in every:
            if control not in advanced:
                self._build_control(link, control, index)
        if advanced:
            changed = not link.stage.non_defaults().keys().isdisjoint(each.name for each in advanced)
            with ui.expansion("More", value=changed).props("dense").classes("full-width hint") as more:
                identify(more, f"{title}: more", f"more-{index}")
                for control in advanced:
                    self._build_control(link, control, index)

    def _change(self, link: Link, control: Control, value: Any) -> None:
        """Apply a control that was moved, and rebuild the card if other controls apply now."""
        page = self.page
        stage = page.chain.link(link.key).stage
        try:
            new_stage = apply_control(stage, control, value, page.levels, page.span)
        except UndulaError as error:
            ui.notify(str(error), type="warning")
            return
        gesture = (link.key, control.name, getattr(control, "index", None))
        page.set_chain(page.chain.replace_stage(link.key, new_stage), gesture)
        if not isinstance(control, Slider) or control.auto:
            before, after = (
                [(type(each), each.name) for each in controls(each_stage, page.levels, page.span)]
                for each_stage in (stage, new_stage)
            )
            switched = isinstance(control, Slider) and (value is None) != (
                getattr(stage, control.name) is None
            )
            if before != after or switched:
                page.history.end_gesture()
                self.build.refresh()

    def _build_control(self, link: Link, control: Control, index: int) -> None:
        value = control_value(link.stage, control)
        test_id = f"{control.name}-{index}"

        def change(new_value: Any) -> None:
            self._change(link, control, new_value)

        if isinstance(control, Slider):
            test_id += f"-{control.index}" if control.index is not None else ""
            if control.auto:
                high = control.high
                check_box(
                    f"{control.label} {control.auto}",
                    value is None,
                    lambda auto: change(None if auto else self.page.initial_sigma(high)),
                    f"{test_id}-auto",
                )
            if value is not None:
                value = min(max(value, control.low), control.high)
                bounds = (control.low, control.high, control.step)
                settle = self.page.history.end_gesture
                slider_row(control.label, bounds, value, change, settle, test_id, control.hint)
        elif isinstance(control, PerLevel):
            check_box(control.label, value, change, f"{test_id}-each")
        elif isinstance(control, Choice):
            select_box(control.options, value, control.label, change, test_id)
        elif isinstance(control, MultiChoice):
            chosen = [option for option in value or [] if option in control.options]
            title = f"{control.label}: {'some' if value else 'all'}"
            select_box(control.options, chosen, control.label, change, test_id, title=title, multiple=True)


class FiguresPanel:
    """Device, times, quality figures and the histogram of a band."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._listed_window: DisplayRange | None = None  # the window that the card of DICOM files shows

    def build(self) -> None:
        """Build the cards."""
        page = self.page
        with ui.element("section").classes("card column").props('aria-label="Figures"'):
            devices = {
                name: "CPU" if name == "cpu" else f"{name} {about}" for name, about in page.devices.items()
            }
            select_box(devices, page.session.settings.backend, "Device", page.set_device, "device")
            for name, about in page.unusable_devices.items():
                with ui.element("details").classes("hint").props('data-testid="unusable-device"'):
                    with ui.element("summary"):
                        ui.label(f"{name} cannot be used (why?)").style("display:inline; cursor:pointer")
                    ui.label(about).style("overflow-wrap:anywhere")
            with ui.row().classes("full-width items-baseline justify-between no-wrap"):
                ui.html("<h2>Figures</h2>", sanitize=False)
                self._fps = ui.label("").classes("fps").props('data-testid="fps" aria-live="off"')
            self._facts = ui.html("", sanitize=False).classes("full-width").props('data-testid="facts"')
            self.references()
        self.dicom()
        with ui.element("section").classes("card column").props('aria-label="Histogram"'):
            ui.html("<h2>Histogram of a band</h2>", sanitize=False)
            self.choices()
            self._plot = ui.html("", sanitize=False).classes("full-width").props('data-testid="histogram"')
            self._plot_hint = ui.label("").classes("hint")

    @ui.refreshable_method
    def dicom(self) -> None:
        """Build the card of patient, modality and window."""
        self._listed_window = None
        page, shown = self.page, self.page.session.current
        if (
            shown is None
            or (shown.color and shown.dicom is None)
            or (shown.first_frame.dtype == "uint8" and not shown.dicom)
        ):
            return

        def choose(name: str) -> None:
            assert shown is not None
            shown.window = shown.windows.get(name, shown.window)
            page.session.invalidate()

        def protect(protects: bool) -> None:
            assert shown is not None
            shown.protects = protects
            page.session.invalidate()

        facts = shown.facts
        title = "DICOM" if shown.dicom else "Window"
        with ui.element("section").classes("card column").props(f'aria-label="{title}" data-testid="dicom"'):
            ui.html(f"<h2>{title}</h2>", sanitize=False)
            spacing = "" if facts.spacing is None else " × ".join(f"{n:.4g}" for n in facts.spacing) + " mm"
            rows = [
                ("Patient", facts.patient),
                ("Modality", facts.modality),
                ("Series", facts.description),
                ("Spacing", spacing),
            ]
            cells = [f"<tr><td>{name}</td><td>{html.escape(text)}</td></tr>" for name, text in rows if text]
            ui.html(f'<table class="facts">{"".join(cells)}</table>', sanitize=False).classes("full-width")
            if not shown.color:
                chosen = next((name for name, each in shown.windows.items() if each == shown.window), "")
                names = ({} if chosen else {"": "custom"}) | {name: name for name in shown.windows}
                select_box(names, chosen, "Window", choose, "window")
            self._listed_window = shown.window
            ultrasound = PRESETS["Ultrasound"][1]
            if facts.is_ultrasound and page.chain != page.chain.with_pipeline(ultrasound):
                offer = ui.button(
                    "Use the ultrasound preset", on_click=lambda: page.load_pipeline(ultrasound)
                )
                offer.props("outline dense size=sm").classes("full-width q-mt-xs")
                identify(offer, "Use the ultrasound preset", "offer-ultrasound")
            if shown.protected is not None:
                share = 100 * float(shown.protected.mean())
                check_box(
                    f"Keep text and colours ({share:.0f} %)",
                    shown.protects,
                    protect,
                    "protect",
                    "Leave burned-in text and colours unchanged",
                )
            if shown.dicom:
                ui.label("Not for diagnosis.").classes("hint")

    @ui.refreshable_method
    def references(self) -> None:
        """Build the list of inputs that the result can be compared with."""
        session = self.page.session
        shown = session.current
        comparable = {
            each.id: each
            for each in session.inputs
            if shown is not None
            and each is not shown
            and each.first_frame.shape == shown.first_frame.shape
            and each.kind != "camera"
        }
        if session.reference not in comparable.values():
            session.reference = None

        def choose(input_id: int) -> None:
            session.reference = next((each for each in session.inputs if each.id == input_id), None)
            session.invalidate()

        select_box(
            {0: "none", **{each.id: each.name for each in comparable.values()}},
            session.reference.id if session.reference else 0,
            "Reference for PSNR and SSIM",
            choose,
            "reference",
            "full-width q-mt-xs",
        )

    @ui.refreshable_method
    def choices(self) -> None:
        """Build the choice of a band."""
        session, page = self.page.session, self.page
        if page.follows_motion:
            return

        def choose(level: int | None = None, key: str | None = None) -> None:
            session.band = (level or session.band[0], key or session.band[1])
            session.invalidate()

        with ui.row().classes("full-width no-wrap").style("gap:6px"):
            levels = {n: str(n) for n in range(1, page.levels + 1)}
            level, key = min(session.band[0], page.levels), session.band[1]
            name = "Level of the histogram"
            select_box(levels, level, name, lambda n: choose(level=n), "band-level", "col", title="Level")
            name = "Band of the histogram"
            select_box(BAND_LABELS, key, name, lambda k: choose(key=k), "band-key", "col-7", title="Band")

    def update(self) -> None:
        """Show the newest figures."""
        session = self.page.session
        if session.current is not None and self._listed_window not in (None, session.current.window):
            self.dicom.refresh()  # The window was dragged.
        fps = session.fps if session.moving else 0.0
        self._fps.set_text(f"{fps:.1f} fps" if fps else "")
        if session.current is None:
            self._facts.set_content("")
            self._plot.set_content("")
            return
        size, *more = session.current.size_text.split(", ")
        rows = [("Size", size), *(("", text) for text in more)]
        bar = ""
        if session.last_sent is not None:
            times = session.last_sent.milliseconds
            for name in ("forward", "filter", "inverse", "transfer"):
                mark = f'<i class="dot" style="background:{PHASE_COLORS[name]}"></i> '
                if name in times and (name != "transfer" or session.settings.backend != "cpu"):
                    rows.append((mark + name.capitalize(), f"{times[name]:.1f} ms"))
            total = "Total, first run" if session.last_sent.first_run else "Total"
            rows.append((total, f"{times.get('total', 0.0):.1f} ms"))
            bar = time_bar(times) if "forward" in times else ""
        rows += _quality_rows(session.figures)
        cells = "".join(f"<tr><td>{name}</td><td>{html.escape(value)}</td></tr>" for name, value in rows)
        self._facts.set_content(f'{bar}<table class="facts">{cells}</table>')
        level, key = min(session.band[0], self.page.levels), session.band[1]
        counts = session.histogram
        shown = session.current
        hint = HISTOGRAM_HINT
        if self.page.follows_motion:
            hint = "Along motion, blocks are filtered and not bands of wavelets."
        elif session.chain.extent in shown.extents:
            hint += f" For this {shown.position_name} alone."
        self._plot_hint.set_text(hint)
        self._plot.set_content("" if counts is None else histogram(counts, level, BAND_LABELS[key]))


def _sigma_text(value: float) -> str:
    return f"{value:.2f}" if 0.1 <= value < 10_000 or value == 0 else f"{value:.2e}"


def _quality_rows(figures: dict[str, float]) -> list[tuple[str, str]]:
    rows = []
    if "noise before" in figures:
        sigmas = [_sigma_text(figures[f"noise {when}"]) for when in ("before", "after")]
        rows.append(("Noise σ", " → ".join(sigmas)))
    if "change" in figures:
        rows.append(("Change from input", f"{_sigma_text(figures['change'])} RMS"))
    for name, digits, unit in (("psnr", 2, " dB"), ("ssim", 4, "")):
        if name in figures:
            values = [figures[f"{name} before"], figures[name]]
            texts = ["∞" if math.isinf(value) else f"{value:.{digits}f}" for value in values]
            rows.append((name.upper(), " → ".join(texts) + unit))
    return rows
