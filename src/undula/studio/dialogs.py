"""Dialogs: code to copy, exports, keyboard shortcuts."""

from __future__ import annotations

import asyncio
import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from nicegui import ui

from .. import io
from ..errors import UndulaError
from .budget import working_memory
from .code import command_line, python_code
from .exporting import ExportJob, ExportProcess, export_path, export_suffixes
from .inputs import Camera, Input
from .panels import identify
from .rendering import PYRAMID_VIEWS, render_pyramids, view_layers

if TYPE_CHECKING:
    from .page import Page

__all__ = ["code_dialog", "export_dialog", "keys_dialog"]

EXPORT_WORK_BYTES = 256 << 20  # memory of an export, besides filtering
EXPORT_EXTRA_BYTES = 4 << 30  # address space of an export, besides decoding: machine code, queued frames

KEYS = {
    "1 … 6": "result, before | after, side by side, difference, analysis, filtered analysis",
    "+ − 0 9": "zoom in, zoom out, fit, actual size",
    "F": "full screen",
    "Space": "play or pause",
    "← →": "previous or next frame or slice",
    "Home End": "first or last frame or slice",
    "L": "loop on or off",
    "Ctrl+Z Ctrl+Y": "undo, redo",
    "O": "open files",
    "E": "export",
    "C": "show code",
    "Ctrl+S": "save the pipeline",
    "X": "all filters on or off",
    "H": "hide or show the side panels",
    "D": "light or dark theme",
    "?": "this list",
}


def keys_dialog() -> Any:
    """Build the list of keyboard shortcuts."""
    with ui.dialog() as dialog, ui.card().classes("q-pa-md").props('data-testid="keys"'):
        ui.label("Keyboard shortcuts").classes("text-h6")
        rows = "".join(
            "<div>"
            + " ".join(f"<kbd>{html.escape(k)}</kbd>" for k in keys.split())
            + f"</div><div>{action}</div>"
            for keys, action in KEYS.items()
        )
        ui.html(f'<div class="keys">{rows}</div>', sanitize=False)
        ui.label("Drag to pan, scroll or pinch to zoom, double-click to fit.").classes("hint")
        with ui.row().classes("full-width justify-end"):
            ui.button("Close", on_click=dialog.close).props("flat")
    return dialog


def _stem(shown: Input) -> str:
    """Return the name of an input without its suffix, for file names."""
    sample = shown.source.partition(":")[2] if shown.source.startswith("sample:") else ""
    return sample or Path(shown.name).stem


def code_dialog(page: Page) -> Any:
    """Show a command and a program that reproduce the result."""
    session, shown = page.session, page.session.current
    pipeline = session.fitted_chain.pipeline()
    source = file_name = "picture.png"
    suffix = file_suffix = ".png"
    stem, number, video = "picture", None, False
    if shown is not None:
        if not isinstance(shown, Camera):
            source = file_name = shown.source
        if source.startswith("sample:"):
            stem = source.partition(":")[2]
            file_name = shown.path.name if shown.path is not None else source
        else:
            stem = Path(source).stem
        suffix = ".png" if shown.first_frame.dtype.name in ("uint8", "uint16") else ".npy"
        file_suffix = _file_suffix(shown)
        number, video = (session.number if shown.pages else None), shown.video
    target = f"{stem}-filtered".replace(" ", "-")
    code = python_code(pipeline, source, target + suffix, page=number, video=video)
    command = command_line(pipeline, file_name, target + file_suffix)
    with ui.dialog(value=True) as dialog, ui.card().style("width:min(820px,94vw);max-width:none"):
        ui.label("Code for this result").classes("text-h6")
        for title, text, test_id in (("Command line", command, "command"), ("Python", code, "python")):
            with ui.row().classes("full-width items-center justify-between"):
                ui.label(title).classes("card-title")
                copy = ui.button("Copy", icon="content_copy", on_click=lambda text=text: _copy(text))
                identify(copy.props("flat dense size=sm"), f"Copy: {title}", f"copy-{test_id}")
            box = ui.html(html.escape(text), sanitize=False)
            box.props('tabindex="0" role="region"').classes("code-box" + " wrapped" * (test_id == "command"))
            identify(box, title, test_id)
        with ui.row().classes("full-width justify-end"):
            ui.button("Close", on_click=dialog.close).props("flat")
    return dialog


def _copy(text: str) -> None:
    ui.clipboard.write(text)
    ui.notify("copied")


def _file_suffix(shown: Input) -> str:
    """Return the suffix for a result with all frames."""
    suffixes = export_suffixes(shown.kind, str(shown.first_frame.dtype))
    if shown.format == "dicom":
        return ".dcm"
    if shown.format == "gif" and shown.frame_count > 1:
        return ".gif"
    suffix = shown.path.suffix.lower() if shown.path is not None else ""
    return suffix if suffix in suffixes else suffixes[0]


class _ExportDialog:
    """The kinds of export, and how each is done."""

    def __init__(self, page: Page) -> None:
        self.page, self.session = page, page.session
        self.shown = self.session.current
        self.process: ExportProcess | None = None

    def kinds(self) -> dict[str, tuple[str, str, tuple[str, ...]]]:
        """Return title, proposed name and allowed suffixes of each kind of export."""
        shown = self.shown
        kinds: dict[str, tuple[str, str, tuple[str, ...]]] = {}
        if shown is not None:
            stem = "".join(c if c.isalnum() or c in " -_()+" else "-" for c in _stem(shown))[:80].strip()
            stem = stem or "picture"
            dtype = str(shown.first_frame.dtype)
            frame = f" {self.session.number}" if shown.frame_count > 1 else ""
            suffixes = export_suffixes("picture", dtype)
            kinds["picture"] = ("This result, as an image", f"{stem} filtered{frame}{suffixes[0]}", suffixes)
            view = f"{stem} {self.session.view}{frame}.png"
            kinds["view"] = ("The current view", view, (".png", ".jpg", ".webp"))
            if shown.path is not None:
                suffixes = export_suffixes(shown.kind, dtype)
                if shown.format == "dicom" or (shown.format == "gif" and shown.frame_count > 1):
                    suffixes = (_file_suffix(shown), *suffixes)
                titles = {"video": "The whole video", "picture": "The whole file, with its metadata"}
                title = titles.get(shown.kind, "All slices or frames, as one file")
                kinds["whole"] = (title, f"{stem} filtered{_file_suffix(shown)}", suffixes)
                if shown.frame_count > 1:
                    kinds["frames"] = ("Every frame, as images in a folder", f"{stem} frames", ())
        kinds["pipeline"] = ("The pipeline (JSON)", "pipeline.json", (".json",))
        return kinds

    async def run(self, kind: str, name: str, suffixes: tuple[str, ...], progress: Any) -> Path:
        """Write an export, and return its path."""
        folder = self.page.options.exports
        folder.mkdir(parents=True, exist_ok=True)
        if kind == "pipeline" and not name.lower().endswith(".json"):
            name += ".json"
        path = export_path(folder, name, suffixes)
        if kind == "pipeline":
            self.page.chain.pipeline().save(path)
        elif kind == "picture":
            result = await self.session.current_result()
            await asyncio.to_thread(io.write, path, io.Picture(result.after))
        elif kind == "view":
            await asyncio.to_thread(io.write, path, await self._render_view())
        else:
            await self._run_process(path, kind == "frames", progress)
        return path

    async def _run_process(self, path: Path, frames: bool, progress: Any) -> None:
        session, shown = self.session, self.shown
        assert shown is not None
        pipeline, backend = session.fitted_chain.pipeline(), session.settings.backend
        limits, memory = session.budget.limits, session.budget.memory
        # GPU drivers reserve more address space than there is memory, so they cannot be limited.
        address_space = limits.memory + EXPORT_EXTRA_BYTES if backend == "cpu" else 0
        self.process = ExportProcess(
            ExportJob(
                str(shown.path), str(path), pipeline.to_json(), backend, frames, limits.pixels, address_space
            )
        )
        nbytes = EXPORT_WORK_BYTES + 2 * working_memory(shown.first_frame, pipeline)
        async with memory.lend(min(memory.total // 2, nbytes)):
            await self.process.run(progress)

    async def _render_view(self) -> Any:
        session, shown = self.session, self.shown
        assert shown is not None
        result = await session.current_result()
        pyramids = None
        if session.view in PYRAMID_VIEWS:
            pipeline = session.fitted_chain.pipeline()
            async with session.budget.memory.lend(working_memory(shown.first_frame, pipeline, True)):
                pyramids = await asyncio.to_thread(
                    render_pyramids, result.before, shown.channel_axis, pipeline, shown.stored
                )
        bitmaps = pyramids[:2] if pyramids is not None else None
        layers = list(view_layers(session.view, result, shown.display, bitmaps).values())
        if len(layers) == 1:
            return layers[0]
        if session.view == "side":
            return np.concatenate(layers, axis=1)
        half = layers[0].shape[1] // 2
        return np.concatenate([layers[0][:, :half], layers[1][:, half:]], axis=1)


def export_dialog(page: Page, kind: str | None = None) -> Any:
    """Show the dialog for writing results to files; ``kind`` is the kind of export selected first."""
    work = _ExportDialog(page)
    kinds = work.kinds()
    first = kind if kind in kinds else next(iter(kinds))
    with ui.dialog(value=True) as dialog, ui.card().style("width:min(520px,94vw)"):
        ui.label("Export").classes("text-h6")
        what = ui.select({key: title for key, (title, *_) in kinds.items()}, value=first, label="What")
        identify(what.props("outlined dense").classes("full-width"), "What to export", "export-what")
        name = ui.input("Name", value=kinds[first][1]).props("outlined dense").classes("full-width")
        identify(name, "Name", "export-name")
        hint = ui.label("").classes("hint")
        ui.label(f"Written to {page.options.exports.absolute()}").classes("hint").style(
            "overflow-wrap:anywhere"
        )
        bar = ui.linear_progress(0, show_value=False).props('aria-label="Progress"').classes("full-width")
        bar.set_visibility(False)
        status = ui.label("").classes("hint").props('data-testid="export-status" role="status"')

        def propose_name() -> None:
            name.set_value(kinds[what.value][1])
            suffixes = kinds[what.value][2]
            hint.set_text(f"Allowed suffixes: {', '.join(suffixes)}" if suffixes else "Name of a new folder")

        what.on_value_change(propose_name)
        propose_name()

        def progress(done: int, total: int) -> None:
            bar.set_value(done / max(1, total))
            status.set_text(f"{done} of {total}")

        async def start_export() -> None:
            start.disable()
            link.set_visibility(False)
            dialog.props("persistent")  # A click beside the dialog must not end a running export.
            bar.set_visibility(what.value in ("whole", "frames"))
            status.set_text("working …")
            try:
                path = await work.run(what.value, name.value or "", kinds[what.value][2], progress)
            except (UndulaError, OSError) as error:
                status.set_text(" ".join(str(error).split()))
                bar.set_visibility(False)
                return
            finally:
                start.enable()
                dialog.props(remove="persistent")
            status.set_text(f"written: {path.name}")
            if path.is_file():
                number = len(work.session.exports) + 1
                work.session.exports[number] = path
                link.props(
                    f'href="/studio/export/{work.session.key}/{number}" download="{html.escape(path.name)}"'
                )
                link.set_visibility(True)

        async def close() -> None:
            if work.process is not None:
                await work.process.cancel()
            dialog.close()
            dialog.clear()

        with ui.row().classes("full-width justify-end items-center"):
            link = ui.element("a").classes("text-primary q-mr-auto").props('data-testid="export-link"')
            with link:
                ui.label("Download")
            link.set_visibility(False)
            identify(ui.button("Close", on_click=close).props("flat"), "Close or cancel", "export-close")
            start = identify(ui.button("Export", on_click=start_export), "Export", "export-go")
    return dialog
