"""The page: a stage in the middle, the chain on its left, figures on its right."""

from __future__ import annotations

import asyncio
import html
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

from .. import io
from ..errors import UndulaError
from ..filters import Pipeline
from .chain import PRESETS, Chain, History
from .dialogs import code_dialog, export_dialog, keys_dialog
from .inputs import Camera, Input
from .panels import ChainPanel, FiguresPanel, WaveletPanel, named
from .rendering import VIEWS
from .session import Session
from .viewer import Viewer

if TYPE_CHECKING:
    from .server import Options

__all__ = ["Page"]

STATIC = Path(__file__).parent / "static"
LOGO = (
    '<svg viewBox="0 0 60 40" aria-hidden="true" fill="none" stroke="var(--accent)" stroke-width="4"'
    ' stroke-linecap="round" stroke-linejoin="round">'
    '<path d="M2 22c5 0 7-2 9-8s4-9 7-9 4 30 9 30 6-33 9-33 4 26 8 26 5-7 14-7"/></svg>'
)
ICONS = {
    "picture": "image", "volume": "view_in_ar", "clip": "movie", "video": "movie", "camera": "videocam",
}  # fmt: skip
SAMPLE_ICONS = {"volume": "view_in_ar", "clip": "movie", "bunny": "movie", "ultrasound-clip": "movie"}
MOST_STAGES = 40
SPEEDS = {0.25: "¼ ×", 0.5: "½ ×", 1.0: "1 ×", 2.0: "2 ×", 0.0: "max"}


class Page:
    """What one tab of a browser shows of a session."""

    def __init__(self, session: Session, options: Options, devices: dict[str, str]) -> None:
        self.session, self.options = session, options
        self.client = ui.context.client
        self.devices = devices
        self.wavelet_panel = WaveletPanel(self)
        self.chain_panel = ChainPanel(self)
        self.figures_panel = FiguresPanel(self)
        self._strip_shown: Any = None

    # --- what panels ask --------------------------------------------------------------------------

    @property
    def chain(self) -> Chain:
        """As it is now."""
        return self.session.chain

    @property
    def history(self) -> History:
        """Of the chain."""
        return self.session.history

    @property
    def _shape(self) -> tuple[int, int]:
        own = self.session.current
        return (512, 512) if own is None else (int(own.first.shape[0]), int(own.first.shape[1]))

    @property
    def levels(self) -> int:
        """How many levels the chain has for what is shown."""
        chain = self.session.fitting
        try:
            return max(1, chain.pipeline().levels_for([n for n in self._shape if n > 1] or [1]))
        except UndulaError:
            return max(1, min(self.deepest, chain.level or 1))

    @property
    def deepest(self) -> int:
        """The most levels that make sense."""
        return min(10, math.ceil(math.log2(max(4, *self._shape))))

    @property
    def span(self) -> float:
        """From black to white."""
        return self.session.current.screen.span if self.session.current is not None else 255.0

    def noise(self, most: float) -> float:
        """The noise that was estimated, to begin with."""
        return min(most, round(self.session.figures.get("noise before", 0.04 * self.span), 3))

    def do(self, chain: Chain, why: Any = None) -> None:
        """Changes the chain."""
        self.session.do(chain, why)
        self._buttons()

    def structure(self) -> None:
        """Panels anew, when the chain was changed by something else than their controls."""
        self.chain_panel.build.refresh()
        self.wavelet_panel.build.refresh()
        self.figures_panel.choices.refresh()
        self._buttons()

    # --- building ---------------------------------------------------------------------------------

    def build(self) -> None:
        """All of it."""
        ui.add_css(STATIC / "studio.css")
        ui.colors(primary="#0d9488", dark="#1c2227", dark_page="#14181c")
        self.dark = ui.dark_mode(value=None)
        with ui.header().classes("studio-header row").props("role=banner"):
            self._header()
        with ui.left_drawer(value=None).props(
            "width=300 bordered breakpoint=1023 aria-label='Filters'"
        ) as self.left:
            with ui.column().classes("panel"):
                self.wavelet_panel.build()
                self.chain_panel.build()
        with ui.right_drawer(value=None).props(
            "width=292 bordered breakpoint=1179 aria-label='Figures'"
        ) as self.right:
            with ui.column().classes("panel"):
                self.figures_panel.build()
        with ui.element("div").classes("stage").props("role=main"):
            with ui.row().classes("toolbar"):
                self._toolbar()
            with ui.element("div").classes("stage-box"):
                self.viewer = Viewer(self.session.key)
                self.viewer.on("shortcut", lambda event: self._shortcut(event.args["key"]))
                self.viewer.on("pipeline", lambda event: self._load(event.args))
                self.viewer.on("camera", lambda event: self._camera_said(event.args))
                self._trouble = ui.label("").classes("trouble").props('role="alert" data-testid="trouble"')
                self._trouble.set_visibility(False)
                self._welcome()
            self._player()
            with ui.row().classes("strip").props('role="list" aria-label="Inputs"') as self._strip_row:
                pass
        self._keys = keys_dialog()
        self._strip()
        self._buttons()
        ui.timer(0.25, self._tick)

    def _button(self, icon: str, label: str, test: str, do: Any, text: str = "") -> Any:
        button = ui.button(text, icon=icon, on_click=do).props("flat dense size=md")
        return named(button.classes("q-px-xs"), label, test).tooltip(label)

    def _header(self) -> None:
        self._button("tune", "Filters panel", "toggle-left", lambda: self.left.toggle())
        ui.html(f'<span class="brand">{LOGO}Undula <em>Studio</em></span>', sanitize=False)
        self._button("folder_open", "Open files (O)", "open", lambda: self.viewer.run_method("pick"), "Open")
        with ui.button("Samples", icon="collections").props("flat dense").classes("middling") as shelf:
            named(shelf, "Samples", "samples")
            with ui.menu().props("auto-close"):
                for name, title in io.samples().items():
                    item = ui.menu_item(title, on_click=lambda name=name: self.open_sample(name))
                    item.props(f'data-testid="menu-sample-{name}"')
        self._button("videocam", "Camera", "camera", lambda: self.viewer.run_method("startCamera"))
        ui.space()
        self._undo = self._button("undo", "Undo (Ctrl+Z)", "undo", self.undo)
        self._redo = self._button("redo", "Redo (Ctrl+Y)", "redo", self.redo)
        with ui.button("Presets", icon="auto_awesome").props("flat dense") as presets:
            named(presets, "Presets", "presets")
            with ui.menu().props("auto-close"):
                for name, (about, pipeline) in PRESETS.items():
                    with ui.menu_item(on_click=lambda p=pipeline: self.take(p)).props(
                        f'data-testid="preset-{name}"'
                    ):
                        with ui.item_section():
                            ui.item_label(name)
                            ui.item_label(about).props("caption")
                ui.separator()
                load = ui.menu_item(
                    "Load a pipeline (JSON) …", on_click=lambda: self.viewer.run_method("pickJson")
                )
                load.props('data-testid="load-pipeline"')
                ui.menu_item("Save this pipeline …", on_click=lambda: export_dialog(self, "pipeline")).props(
                    'data-testid="save-pipeline"'
                )
        self._button("code", "Code to copy (C)", "code", lambda: code_dialog(self))
        self._button("download", "Export (E)", "export", lambda: export_dialog(self))
        self._button("dark_mode", "Light or dark (D)", "dark", self._turn_dark)
        self._button("help_outline", "Keys (?)", "help", lambda: self._keys.open())
        self._button("analytics", "Figures panel", "toggle-right", lambda: self.right.toggle())

    def _toolbar(self) -> None:
        options = {name: title for name, (title, _) in VIEWS.items()}
        self._views = ui.toggle(
            options, value=self.session.view, on_change=lambda event: self.show(event.value)
        )
        named(self._views.props("flat dense no-caps toggle-color=primary"), "View", "views")
        ui.space()
        for icon, label, test, method in (
            ("zoom_out", "Zoom out (−)", "zoom-out", ("zoom", 0.8)),
            ("zoom_in", "Zoom in (+)", "zoom-in", ("zoom", 1.25)),
            ("fit_screen", "Fit (0)", "fit", ("fit",)),
            ("crop_free", "One to one (9)", "actual", ("actual",)),
        ):
            self._button(icon, label, test, lambda method=method: self.viewer.run_method(*method))
        # (Browsers go full screen for a click of their own, not for a server's word.)
        full = ui.button(icon="fullscreen").props("flat dense").classes("q-px-xs")
        full.on("click", js_handler="() => window.undulaStudio.fullscreen()")
        named(full, "Full screen (F)", "fullscreen").tooltip("Full screen (F)")

    def _welcome(self) -> None:
        with ui.element("div").classes("welcome").props('data-testid="welcome"') as self._hello:
            ui.html("<h1>Drop a picture, a volume or a video here</h1>", sanitize=False)
            with ui.row().classes("justify-center"):
                ui.button("Open files", icon="folder_open", on_click=lambda: self.viewer.run_method("pick"))
                ui.button(
                    "Camera", icon="videocam", on_click=lambda: self.viewer.run_method("startCamera")
                ).props("outline")
            ui.label("or try a sample").classes("hint")
            with ui.element("div").classes("shelf"):
                for name, title in io.samples().items():
                    with (
                        ui.element("button")
                        .classes("sample")
                        .props(f'data-testid="sample-{name}" type="button"')
                        .on("click", lambda name=name: self.open_sample(name))
                    ):
                        ui.icon(SAMPLE_ICONS.get(name, "image"), size="20px").style("color:var(--accent)")
                        ui.label(title)

    def _player(self) -> None:
        session = self.session
        with ui.row().classes("player").props('role="group" aria-label="Playback"') as self._playing:
            self._button("skip_previous", "First (Home)", "first", lambda: self.seek(0))
            self._button("chevron_left", "Back (←)", "back", lambda: self.seek(session.number - 1))
            self._play = self._button("play_arrow", "Play or pause (Space)", "play", self.play)
            self._button("chevron_right", "On (→)", "on", lambda: self.seek(session.number + 1))
            self._loop = self._button("repeat", "Loop (L)", "loop", self.loop)
            self._scrub = ui.slider(
                min=0, max=1, step=1, value=0, on_change=lambda event: self._scrubbed(event.value)
            )
            named(self._scrub.props("dense"), "Frame or slice", "scrub")
            self._scrub.on("pan", lambda event: self._held(event.args))
            self._where = ui.label("").classes("where").props('data-testid="where"')
            speed = ui.select(SPEEDS, value=session.playing.speed, on_change=lambda e: self._speed(e.value))
            named(speed.props("dense borderless options-dense").style("width:58px"), "Speed", "speed")

    def _strip(self) -> None:
        """The inputs, anew where they changed."""
        session = self.session
        shown = ([one.id for one in session.inputs], session.current.id if session.current else None)
        if shown == self._strip_shown:
            return
        self._strip_shown = shown
        self._hello.set_visibility(session.current is None)
        self._strip_row.set_visibility(bool(session.inputs))
        self._strip_row.clear()
        with self._strip_row:
            for one in session.inputs:
                self._thumb(one)
            add = ui.button(icon="add", on_click=lambda: self.viewer.run_method("pick")).props("flat")
            named(add.classes("add"), "Open more files", "add-input")
        self.structure()
        self.figures_panel.references.refresh()
        if not isinstance(session.current, Camera):
            self.viewer.run_method("stopCamera")
        if session.current is None:
            self.viewer.run_method("clear")
        else:
            own = session.current
            self.viewer.say(
                f"{own.name}, {own.size}. Plus and minus zoom, arrow keys step, question mark shows all keys"
            )

    def _thumb(self, one: Input) -> None:
        now = one is self.session.current
        with ui.element("div").classes("thumb-box").props('role="listitem"'):
            with (
                ui.element("button")
                .classes("thumb" + (" now" if now else ""))
                .props(f'type="button" aria-pressed="{str(now).lower()}" data-testid="input-{one.id}"')
                .on("click", lambda: self.choose(one))
            ):
                named(ui.context.slot.parent, f"{one.name}, {one.kind}, {one.size}")
                if isinstance(one, Camera):
                    ui.icon("videocam", size="26px").style("color:#fff;margin:15px")
                else:
                    ui.element("img").props(f'src="{one.thumbnail}" alt=""')
                if one.kind != "picture":
                    ui.html(f'<span class="kind">{one.kind}</span>', sanitize=False)
                ui.tooltip(f"{one.name}: {one.size}")
            shut = ui.button(icon="close", on_click=lambda: self.close(one)).props(
                "round dense size=6px color=grey-8"
            )
            named(shut.classes("shut"), f"Close {one.name}", f"close-{one.id}")

    # --- news of the session ----------------------------------------------------------------------

    def news(self) -> None:
        """Something happened that nobody clicked for."""
        if not self.client.is_deleted:
            with self.client:
                self._strip()
                self._tick()

    def _tick(self) -> None:
        session = self.session
        own = session.current
        self._trouble.set_text(session.trouble)
        self._trouble.set_visibility(bool(session.trouble))
        several = own is not None and own.count > 1
        self._playing.set_visibility(several)
        if own is not None and several:
            self._scrub.props(f"max={own.count - 1}")
            if self._scrub.value != session.number and not self._holding:
                self._quiet = session.number
                self._scrub.set_value(session.number)
            unit = "slice" if own.kind == "volume" else "frame"
            self._where.set_text(f"{unit} {session.number + 1} / {own.count}")
            self._play.props(f"icon={'pause' if session.playing.on else 'play_arrow'}")
            self._loop.props(f"color={'primary' if session.playing.loop else 'grey'}")
        self.figures_panel.update()

    def _buttons(self) -> None:
        self._undo.set_enabled(self.history.can_undo)
        self._redo.set_enabled(self.history.can_redo)

    # --- what can be done -------------------------------------------------------------------------

    async def open_files(self, paths: Sequence[Path]) -> None:
        """Files of whoever started the Studio."""
        for path in paths:
            await self._open(path, path.name, str(path))

    async def open_sample(self, name: str) -> None:
        """A sample."""
        path = await asyncio.to_thread(io.sample, name, self.session.room.folder / "samples")
        await self._open(path, io.samples()[name], f"sample:{name}")

    async def _open(self, path: Path, name: str, source: str) -> None:
        try:
            await self.session.open(path, name, source)
        except UndulaError as error:
            ui.notify(f"{name}: {error}", type="negative", multi_line=True, close_button=True)
        self.news()

    def choose(self, one: Input) -> None:
        """Shows something of the strip."""
        if isinstance(one, Camera):
            self.viewer.run_method("startCamera")
        self.session.choose(one)
        self.news()

    def close(self, one: Input) -> None:
        """Takes something out of the strip."""
        self.session.close_input(one)
        self.news()

    def _camera_said(self, told: Any) -> None:
        error = str(told.get("error", ""))[:300]
        if error:
            ui.notify(f"the camera cannot be used: {html.escape(error)}", type="warning")
            return
        self.session.camera()
        self.news()

    def show(self, view: str) -> None:
        """Another view."""
        self.session.view = view
        self._views.set_value(view)
        self.session.changed()

    def take(self, pipeline: Pipeline) -> None:
        """A whole pipeline."""
        self.do(Chain.of(pipeline))
        self.history.settle()
        self.structure()

    def _load(self, told: Any) -> None:
        try:
            if told.get("error"):
                raise UndulaError(str(told["error"])[:200])
            pipeline = Pipeline.from_json(str(told["text"])[:200_000])
            if len(pipeline.stages) > MOST_STAGES:
                raise UndulaError(
                    f"{len(pipeline.stages)} stages are more than a page can show ({MOST_STAGES})"
                )
            self.take(pipeline)
        except (UndulaError, TypeError) as error:
            ui.notify(f"{str(told.get('name', 'the file'))[:80]}: {error}", type="negative", multi_line=True)
            return
        ui.notify("the pipeline was loaded")

    def undo(self) -> None:
        """As it was before."""
        self.history.undo()
        self.session.changed()
        self.structure()

    def redo(self) -> None:
        """As it was before it was undone."""
        self.history.redo()
        self.session.changed()
        self.structure()

    def play(self) -> None:
        """Plays or pauses."""
        self.session.play(not self.session.playing.on)
        self._tick()

    def loop(self) -> None:
        """Again from the beginning, or not."""
        self.session.playing.loop = not self.session.playing.loop
        self._tick()

    def seek(self, number: int) -> None:
        """Another frame."""
        self.session.play(False)
        self.session.seek(number)
        self._tick()

    _quiet: int | None = None
    _holding = False
    _resume = False

    def _held(self, phase: Any) -> None:
        """Somebody has the slider in hand: nothing plays until they let go."""
        self._holding = phase == "start"
        if self._holding:
            self._resume = self.session.playing.on
            self.session.play(False)
        elif self._resume:
            self.session.play(True)

    def _scrubbed(self, value: float | None) -> None:
        if value is None or int(value) == self._quiet:
            self._quiet = None
            return
        self.session.seek(int(value))

    def _speed(self, value: float) -> None:
        self.session.playing.speed = value
        self.session.seek(self.session.number)

    def choose_device(self, name: str) -> None:
        """Where filters run."""
        self.session.settings = replace(self.session.settings, backend=name)
        self.session.changed()
        self.wavelet_panel.build.refresh()

    async def _turn_dark(self) -> None:
        dark = await ui.run_javascript("document.body.classList.contains('body--dark')")
        self.dark.set_value(not dark)

    async def _shortcut(self, key: str) -> None:
        own, session = self.session.current, self.session
        last = own.count - 1 if own is not None else 0
        views = list(VIEWS)
        actions: dict[str, Any] = {
            **{str(k + 1): (lambda name=name: self.show(name)) for k, name in enumerate(views)},
            " ": self.play,
            "arrowleft": lambda: self.seek(session.number - 1),
            "arrowright": lambda: self.seek(session.number + 1),
            "home": lambda: self.seek(0),
            "end": lambda: self.seek(last),
            "l": self.loop,
            "d": self._turn_dark,
            "?": lambda: self._keys.open(),
            "e": lambda: export_dialog(self),
            "c": lambda: code_dialog(self),
            "ctrl+s": lambda: export_dialog(self, "pipeline"),
            "ctrl+z": self.undo,
            "ctrl+y": self.redo,
            "x": self._all_switched,
            "h": lambda: (self.left.toggle(), self.right.toggle()),
        }
        if key in actions:
            found = actions[key]()
            if asyncio.iscoroutine(found):
                await found

    def _all_switched(self) -> None:
        chain = self.chain
        on = not any(link.on for link in chain.links)
        for link in chain.links:
            chain = chain.switched(link.key, on)
        self.do(chain)
        self.history.settle()
        self.chain_panel.build.refresh()
