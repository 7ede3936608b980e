"""The page: the viewer in the middle, the chain on its left, figures on its right."""

from __future__ import annotations

import asyncio
import html
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

from .. import io
from ..errors import UndulaError
from ..filters import Pipeline
from .chain import PRESETS, FilterChain, History
from .dialogs import code_dialog, export_dialog, keys_dialog
from .inputs import Camera, Input
from .panels import ChainPanel, FiguresPanel, WaveletPanel
from .player import Player
from .session import Session
from .storage import BrowserStorage
from .tasks import TaskPanel
from .versions import check_stages
from .viewer import Viewer
from .views import VIEWS
from .widgets import icon_button, identify, sample_image

if TYPE_CHECKING:
    from .server import ServerOptions

__all__ = ["Page"]

STATIC = Path(__file__).parent / "static"
BUSY_SECONDS = 0.4  # before the page says that something takes long
REBUILD_SECONDS = 0.05  # without another change, before panels are rebuilt


class Page:
    """The page of one browser tab."""

    def __init__(
        self, session: Session, options: ServerOptions, devices: dict[str, str], unusable: dict[str, str]
    ) -> None:
        self.session, self.options = session, options
        self.client = ui.context.client
        self.devices, self.unusable_devices = devices, unusable
        self.task_panel = TaskPanel(self)
        self.wavelet_panel = WaveletPanel(self)
        self.chain_panel = ChainPanel(self)
        self.figures_panel = FiguresPanel(self)
        self.player = Player(self)
        self._listed_inputs: Any = None
        self._opening: set[str] = set()  # names of samples
        self._rebuilding: asyncio.TimerHandle | None = None
        self.storage = BrowserStorage(self)

    # --- state, for the panels --------------------------------------------------------------------

    @property
    def chain(self) -> FilterChain:
        """The current chain."""
        return self.session.chain

    @property
    def history(self) -> History:
        """Undo and redo."""
        return self.session.history

    @property
    def _shape(self) -> tuple[int, int]:
        shown = self.session.current
        height, width = (512, 512) if shown is None else shown.first_frame.shape[:2]
        return int(height), int(width)

    @property
    def levels(self) -> int:
        """Number of levels of the chain for the current input."""
        chain = self.session.fitted_chain
        try:
            return max(1, chain.pipeline().levels_for([n for n in self._shape if n > 1] or [1]))
        except UndulaError:
            return max(1, min(self.deepest, chain.level or 1))

    @property
    def deepest(self) -> int:
        """Largest number of levels to offer."""
        return min(10, math.ceil(math.log2(max(4, *self._shape))))

    @property
    def span(self) -> float:
        """Difference between the values displayed as white and black."""
        return self.session.current.display.span if self.session.current is not None else 255.0

    @property
    def follows_motion(self) -> bool:
        """Whether frames are filtered along their motion, for which wavelet and chain are not used."""
        shown = self.session.current
        return shown is not None and self.chain.applied(self._shape, shown.extents).task is not None

    def initial_sigma(self, most: float) -> float:
        """Return the estimated noise level, to start with when the estimate is switched off."""
        return min(most, float(f"{self.session.figures.get('noise before', 0.04 * self.span):.4g}"))

    def set_chain(self, chain: FilterChain, gesture: Any = None) -> None:
        """Change the chain; changes by the same gesture are undone in one step."""
        self.session.set_chain(chain, gesture)
        self._update_undo()

    def rebuild_panels(self) -> None:
        """Rebuild the panels after a change that was not made with their controls.

        Changes that follow closely, as while a key is held, rebuild them once: browsers need longer to
        lay out the panels than keys need to repeat.
        """
        self._update_undo()
        if self._rebuilding is not None:
            self._rebuilding.cancel()
        self._rebuilding = asyncio.get_running_loop().call_later(REBUILD_SECONDS, self._rebuild_panels)

    def _rebuild_panels(self) -> None:
        self._rebuilding = None
        if not self.client.is_deleted:
            with self.client:
                for part in (self.task_panel, self.chain_panel, self.wavelet_panel):
                    part.build.refresh()
                self.figures_panel.choices.refresh()
                self.figures_panel.dicom.refresh()

    # --- building ---------------------------------------------------------------------------------

    def build(self) -> None:
        """Build the page."""
        ui.add_css(STATIC / "studio.css")
        ui.colors(primary="#0f766e", dark="#1c2227", dark_page="#14181c")
        self.dark = ui.dark_mode(value=None)
        with ui.header().classes("studio-header row").props("role=banner"):
            self._build_header()
        with ui.left_drawer(value=None).props(
            "width=300 bordered breakpoint=1023 aria-label='Filters'"
        ) as self.left:
            with ui.column().classes("panel"):
                self._build_closing("left", "Filters", self.left)
                self.task_panel.build()
                self.wavelet_panel.build()
                self.chain_panel.build()
        with ui.right_drawer(value=None).props(
            "width=292 bordered breakpoint=1179 aria-label='Figures'"
        ) as self.right:
            with ui.column().classes("panel"):
                self._build_closing("right", "Figures", self.right)
                self.figures_panel.build()
        with ui.element("div").classes("stage"):
            self.storage.build()
            with ui.row().classes("toolbar"):
                self._build_toolbar()
            with ui.element("div").classes("stage-box"):
                self.viewer = Viewer(self.session.key)
                self.viewer.on("shortcut", lambda event: self._shortcut(event.args["key"]))
                self.viewer.on("pipeline", lambda event: self._load_json(event.args))
                self.viewer.on("sync", lambda event: self._sync(event.args))
                self.viewer.on("kept", lambda event: self.storage.use(event.args))
                self.viewer.on("tool", lambda event: self.use_tool(str(event.args["tool"])))
                self.viewer.on("camera", lambda event: self._camera_started(event.args))
                self._error = ui.label("").classes("filter-error").props('role="alert" data-testid="error"')
                self._error.set_visibility(False)
                self._build_welcome()
                self._build_busy()
                self._build_zoom()
            self.player.build()
            self._inputs_row = ui.row().classes("strip")
        self._update_inputs()
        self._update_undo()
        ui.timer(0.25, self._update)

    def _build_header(self) -> None:
        icon_button("tune", "Filters panel", "toggle-left", lambda: self.left.toggle())
        logo = (STATIC / "logo.svg").read_text(encoding="utf-8")
        ui.html(f'<h1 class="brand">{logo}Undula <em>Studio</em></h1>', sanitize=False)
        icon_button("folder_open", "Open files (O)", "open", lambda: self.viewer.run_method("pick"), "Open")
        with ui.button("Samples", icon="collections").props("flat dense").classes("middling") as samples:
            identify(samples, "Samples", "samples")
            with ui.menu().props("auto-close"):
                for name, title in io.samples().items():
                    item = ui.menu_item(on_click=lambda name=name: self.open_sample(name))
                    with item.props(f'data-testid="menu-sample-{name}"'):
                        with ui.item_section().props("avatar"):
                            sample_image(name)
                        with ui.item_section():
                            ui.label(title)
        icon_button("videocam", "Camera", "camera", lambda: self.viewer.run_method("startCamera"))
        ui.space()
        self._undo = icon_button("undo", "Undo (Ctrl+Z)", "undo", self.undo)
        self._redo = icon_button("redo", "Redo (Ctrl+Y)", "redo", self.redo)
        with ui.button("Presets", icon="auto_awesome").props("flat dense") as presets:
            identify(presets, "Presets", "presets")
            with ui.menu().props("auto-close"):
                for name, (description, pipeline) in PRESETS.items():
                    with ui.menu_item(on_click=lambda p=pipeline: self.load_pipeline(p)).props(
                        f'data-testid="preset-{name}"'
                    ):
                        with ui.item_section():
                            ui.item_label(name)
                            ui.item_label(description).props("caption")
                ui.separator()
                for text, test_id, action in (
                    ("Load a pipeline (JSON) …", "load-pipeline", lambda: self.viewer.run_method("pickJson")),
                    (
                        "Save this pipeline …",
                        "save-pipeline",
                        lambda: self.show_dialog(export_dialog, "pipeline"),
                    ),
                ):
                    ui.menu_item(text, on_click=action).props(f'data-testid="{test_id}"')
        icon_button("code", "Show code (C)", "code", lambda: self.show_dialog(code_dialog))
        with icon_button(
            "download", "Export (E)", "export", lambda: self.show_dialog(export_dialog)
        ) as self._export:
            self._running = ui.badge("").props('floating data-testid="exports-running"')
            self._running.set_visibility(False)
        icon_button("dark_mode", "Light or dark theme (D)", "dark", self.storage.toggle_theme)
        icon_button("help_outline", "Keyboard shortcuts (?)", "help", lambda: self.show_dialog(keys_dialog))
        icon_button("analytics", "Figures panel", "toggle-right", lambda: self.right.toggle())

    def _build_closing(self, side: str, title: str, drawer: Any) -> None:
        """Add a heading with a button that closes a drawer; they are shown where it covers the page."""
        with ui.row().classes(f"closing {side} full-width items-center justify-between no-wrap"):
            ui.html(f"<h2 class='card-title'>{title}</h2>", sanitize=False)
            button = ui.button(icon="close", on_click=drawer.hide).props("flat dense")
            identify(button, f"Close the panel {title}", f"close-{side}")

    def _build_toolbar(self) -> None:
        self._views = ui.toggle(
            VIEWS, value=self.session.view, on_change=lambda event: self.show_view(event.value)
        )
        identify(self._views.props("flat dense no-caps toggle-color=primary"), "View", "views")
        ui.space()
        with ui.row().classes("slots no-wrap items-center").props('role="group" aria-label="Versions"'):
            self._slots = ui.toggle(
                ["A", "B"], value=self.session.slot, on_change=lambda e: self.use_slot(e.value)
            )
            self._slots.props("flat dense no-caps toggle-color=primary")
            identify(self._slots, "Version of the chain", "slots").tooltip("Two versions of the chain (A)")
            self._compare = icon_button("compare", "Compare A with B (B)", "compare", self.compare)
            self._show_comparing()
        self._tools = {
            tool: icon_button(icon, label, f"tool-{tool}", lambda tool=tool: self.use_tool(tool))
            for tool, icon, label in (
                ("window", "contrast", "Window: drag for width and centre (W, or the right button)"),
                ("region", "highlight_alt", "Region: drag for mean and deviation (R, or Shift)"),
            )
        }
        # Browsers enter full screen only in response to a click, not to a message of the server.
        full = ui.button(icon="fullscreen").props("flat dense").classes("q-px-xs")
        full.on("click", js_handler="() => window.undulaStudio.fullscreen()")
        identify(full, "Full screen (F)", "fullscreen").tooltip("Full screen (F)")

    def _build_welcome(self) -> None:
        with ui.element("div").classes("welcome").props('data-testid="welcome"') as self._welcome:
            ui.html("<h2>Drop an image, a volume or a video here</h2>", sanitize=False)
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
                        sample_image(name)
                        ui.label(title)

    def _build_zoom(self) -> None:
        with ui.row().classes("zoom-buttons no-wrap").props('role="group" aria-label="Zoom"') as self._zoom:
            for icon, text, label, test_id, method in (
                ("zoom_out", "", "Zoom out (−)", "zoom-out", ("zoom", 0.8)),
                ("zoom_in", "", "Zoom in (+)", "zoom-in", ("zoom", 1.25)),
                ("fit_screen", "", "Fit (0)", "fit", ("fit",)),
                (None, "1:1", "1:1, actual size (9)", "actual", ("actual",)),
            ):
                button = icon_button(
                    icon, label, test_id, lambda method=method: self.viewer.run_method(*method), text
                )
                button.props("color=white")

    def _build_busy(self) -> None:
        with ui.row().classes("busy").props('role="status" data-testid="busy"') as self._busy:
            ui.spinner(size="20px").props('aria-hidden="true"')
            self._busy_text = ui.label("")
            cancel = ui.button("Cancel", on_click=self.cancel).props("flat dense size=sm")
            identify(cancel, "Cancel", "cancel")
        self._busy.set_visibility(False)

    def _update_inputs(self) -> None:
        """Rebuild the list of inputs if it changed."""
        session = self.session
        listed = ([each.id for each in session.inputs], session.current.id if session.current else None)
        if listed == self._listed_inputs:
            return
        if self._listed_inputs is not None:  # Otherwise the panels have been built just now.
            self.rebuild_panels()
            self.figures_panel.references.refresh()
        self._listed_inputs = listed
        self._welcome.set_visibility(session.current is None)
        self._zoom.set_visibility(session.current is not None)
        self._inputs_row.set_visibility(bool(session.inputs))
        self._inputs_row.clear()
        with self._inputs_row:
            with ui.element("div").classes("inputs").props('role="list" aria-label="Inputs"'):
                for each in session.inputs:
                    self._build_thumbnail(each)
            add = ui.button(icon="add", on_click=lambda: self.viewer.run_method("pick")).props("flat")
            identify(add.classes("add"), "Open more files", "add-input")
        if not isinstance(session.current, Camera):
            self.viewer.run_method("stopCamera")
        if session.current is None:
            ui.page_title("Undula Studio")
            self.viewer.run_method("clear")
        else:
            ui.page_title(f"{session.current.name} – Undula Studio")
            self.viewer.set_label(
                f"{session.current.name}, {session.current.size_text}."
                " Plus and minus zoom, arrow keys step, question mark lists all keys"
            )

    def _build_thumbnail(self, shown: Input) -> None:
        selected = shown is self.session.current
        with ui.element("div").classes("thumb-box").props('role="listitem"'):
            with (
                ui.element("button")
                .classes("thumb" + (" now" if selected else ""))
                .props(f'type="button" aria-pressed="{str(selected).lower()}" data-testid="input-{shown.id}"')
                .on("click", lambda: self.select(shown))
            ):
                identify(ui.context.slot.parent, f"{shown.name}, {shown.kind}, {shown.size_text}")
                if isinstance(shown, Camera):
                    ui.icon("videocam", size="26px").style("color:#fff;margin:15px")
                else:
                    ui.element("img").props(f'src="{shown.thumbnail}" alt=""')
                if shown.kind != "picture":
                    ui.html(f'<span class="kind">{shown.kind}</span>', sanitize=False)
                ui.tooltip(f"{shown.name}: {shown.size_text}")
            close = ui.button(icon="close", on_click=lambda: self.close(shown)).props(
                "round dense size=7px color=grey-8"
            )
            identify(close.classes("shut"), f"Close {shown.name}", f"close-{shown.id}")

    # --- updates ----------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Show changes of the session that were not made on this page."""
        if not self.client.is_deleted:
            with self.client:
                self._update_inputs()
                self._update()

    def _update(self) -> None:
        session = self.session
        self._error.set_text(session.error_message)
        self._error.set_visibility(bool(session.error_message))
        running = session.exports.running
        self._running.set_text(str(running))
        self._running.set_visibility(running > 0)
        self._export.props(f'aria-label="Export (E){f", {running} running" if running else ""}"')
        busy = session.activities.newest
        self._busy.set_visibility(busy is not None and busy.seconds > BUSY_SECONDS)
        if busy is not None:
            self._busy_text.set_text(f"{busy.title} … {busy.seconds:.0f} s")
        self.player.update()
        self.figures_panel.update()
        self.storage.update()

    def _update_undo(self) -> None:
        self._undo.set_enabled(self.history.can_undo)
        self._redo.set_enabled(self.history.can_redo)

    def restore(self) -> None:
        """Show the chain and the view of the session, after the session has changed them."""
        if not self.client.is_deleted:
            with self.client:
                self._views.set_value(self.session.view)
                self.rebuild_panels()

    # --- actions ----------------------------------------------------------------------------------

    _dialog: Any = None

    def show_dialog(self, build: Callable[..., Any], *arguments: Any) -> None:
        """Show a dialog until it is closed, unless another one is shown already."""
        if self._dialog is None or not self._dialog.value:
            self._dialog = build(self, *arguments)
            self._dialog.on("hide", self._dialog.delete)

    def cancel(self) -> None:
        """Cancel what the visitor waits for."""
        activity = self.session.activities.newest
        if activity is not None:
            activity.cancel()

    async def open_files(self, paths: Sequence[Path]) -> None:
        """Open the files that the Studio was started with."""
        for path in paths:
            await self._open(path, path.name, str(path))

    async def open_sample(self, name: str) -> None:
        """Open a sample, once if it is clicked twice."""
        if name in self._opening:
            return
        self._opening.add(name)
        try:
            path = await asyncio.to_thread(io.sample, name, self.session.budget.folder / "samples")
            await self._open(path, io.samples()[name], f"sample:{name}")
        finally:
            self._opening.discard(name)

    async def _open(self, path: Path, name: str, source: str) -> None:
        try:
            await self.session.open_file(path, name, source)
        except UndulaError as error:
            ui.notify(f"{name}: {error}", type="negative", multi_line=True, close_button=True)
        self.refresh()

    def select(self, selected: Input) -> None:
        """Show an input."""
        if isinstance(selected, Camera):
            self.viewer.run_method("startCamera")
        self.session.select(selected)
        self.refresh()

    def close(self, closed: Input) -> None:
        """Close an input."""
        self.session.close_input(closed)
        self.refresh()

    def _camera_started(self, event: Any) -> None:
        error = str(event.get("error", ""))[:300]
        if error:
            ui.notify(f"cannot use the camera: {html.escape(error)}", type="warning")
            return
        self.session.show_camera()
        self.refresh()

    def _sync(self, event: Any) -> None:
        """Note that all events which the page sent before this one were handled."""
        if self._rebuilding is not None:
            self._rebuilding.cancel()
            self._rebuild_panels()
        self.session.sync_mark = str(event["mark"])[:40]

    def show_view(self, view: str) -> None:
        """Show a view."""
        self.session.view = view
        self._views.set_value(view)
        self.session.invalidate()

    def use_slot(self, slot: str) -> None:
        """Go on with version A or B of the chain."""
        if slot != self.session.slot:
            self.session.switch_slot()
            self.show_slot()

    def show_slot(self) -> None:
        """Show the version of the chain that the session has chosen."""
        self._slots.set_value(self.session.slot)
        self.rebuild_panels()

    def compare(self) -> None:
        """Compare the result with that of the other version, or with the original again."""
        self.session.comparing = not self.session.comparing
        self._show_comparing()
        self.session.invalidate()

    def _show_comparing(self) -> None:
        self._compare.props(f"color={'orange-9' if self.session.comparing else 'primary'}")
        self._compare.props(f"aria-pressed={str(self.session.comparing).lower()}")

    _tool = "pan"

    def use_tool(self, tool: str) -> None:
        """Choose what dragging does; choosing a tool again returns to panning."""
        self._tool = "pan" if tool == self._tool or tool not in self._tools else tool
        for name, button in self._tools.items():
            button.props(f"color={'orange-9' if name == self._tool else 'primary'}")
            button.props(f"aria-pressed={str(name == self._tool).lower()}")
        self.viewer.run_method("setTool", self._tool)

    def load_pipeline(self, pipeline: Pipeline) -> None:
        """Replace the chain by a pipeline."""
        self.set_chain(self.chain.with_pipeline(pipeline))
        self.history.end_gesture()
        self.rebuild_panels()

    def _load_json(self, event: Any) -> None:
        try:
            if event.get("error"):
                raise UndulaError(str(event["error"])[:200])
            self.load_pipeline(check_stages(Pipeline.from_json(str(event["text"])[:200_000])))
        except (UndulaError, TypeError) as error:
            name = str(event.get("name", "the file"))[:80]
            ui.notify(f"{name}: {error}", type="negative", multi_line=True)
            return
        ui.notify("pipeline loaded")

    def undo(self) -> None:
        """Undo one step."""
        self.history.undo()
        self.session.invalidate()
        self.rebuild_panels()

    def redo(self) -> None:
        """Redo one step."""
        self.history.redo()
        self.session.invalidate()
        self.rebuild_panels()

    def set_device(self, name: str) -> None:
        """Choose the device that filters run on."""
        self.session.settings = replace(self.session.settings, backend=name)
        self.session.invalidate()
        self.wavelet_panel.build.refresh()

    async def _shortcut(self, key: str) -> None:
        session = self.session
        actions: dict[str, Any] = {
            **{str(k): (lambda view=view: self.show_view(view)) for k, view in enumerate(VIEWS, 1)},
            " ": self.player.play,
            "arrowleft": lambda: self.player.seek(session.number - 1),
            "arrowright": lambda: self.player.seek(session.number + 1),
            "home": lambda: self.player.seek(0),
            "end": self.player.seek_last,
            "l": self.player.loop,
            "d": self.storage.toggle_theme,
            "?": lambda: self.show_dialog(keys_dialog),
            "e": lambda: self.show_dialog(export_dialog),
            "c": lambda: self.show_dialog(code_dialog),
            "ctrl+s": lambda: self.show_dialog(export_dialog, "pipeline"),
            "ctrl+z": self.undo,
            "ctrl+y": self.redo,
            "x": self._toggle_filters,
            "a": lambda: self.use_slot(session.other_slot),
            "b": self.compare,
            "h": lambda: (self.left.toggle(), self.right.toggle()),
        }
        if key in actions:
            result = actions[key]()
            if asyncio.iscoroutine(result):
                await result

    def _toggle_filters(self) -> None:
        """Disable all filters, or enable them if none is enabled."""
        enabled = any(link.enabled for link in self.chain.links)
        self.set_chain(self.chain.enable_all(not enabled))
        self.history.end_gesture()
        self.rebuild_panels()
