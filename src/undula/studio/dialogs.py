"""Dialogs: code to copy, exports, keys, samples."""

from __future__ import annotations

import asyncio
import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

from .. import io
from ..errors import UndulaError
from ..filters import Pipeline
from .code import command_line, python_code
from .exporting import Export, Job, named_path, suffixes_for
from .inputs import Camera
from .panels import named
from .rendering import layers
from .room import work_for

if TYPE_CHECKING:
    from .page import Page

EXPORT_WORK = 256 << 20  # bytes that an export takes besides filtering
EXPORT_ROOM = 4 << 30  # bytes besides what decoding takes: machine code, frames that wait

__all__ = ["code_dialog", "export_dialog", "keys_dialog"]

KEYS = {
    "1 … 6": "result, before | after, side by side, difference, analysis, filtered analysis",
    "+ − 0 9": "zoom in, zoom out, fit, one to one",
    "F": "full screen",
    "Space": "play or pause",
    "← →": "one frame or slice back or on",
    "Home End": "the first, the last",
    "L": "loop or not",
    "Ctrl+Z Ctrl+Y": "undo, redo",
    "O": "open files",
    "E": "export",
    "C": "code to copy",
    "Ctrl+S": "save the pipeline",
    "X": "switch all filters off or on",
    "H": "hide or show the side panels",
    "D": "light or dark",
    "?": "these keys",
}


def keys_dialog() -> Any:
    """All keys."""
    with ui.dialog() as dialog, ui.card().classes("q-pa-md").props('data-testid="keys"'):
        ui.label("Keys").classes("text-h6")
        rows = "".join(
            "<div>"
            + " ".join(f"<kbd>{html.escape(k)}</kbd>" for k in keys.split())
            + f"</div><div>{about}</div>"
            for keys, about in KEYS.items()
        )
        ui.html(f'<div class="keys">{rows}</div>', sanitize=False)
        ui.label("Drag to move the picture, turn the wheel or pinch to zoom, double-click to fit.").classes(
            "hint"
        )
        with ui.row().classes("full-width justify-end"):
            ui.button("Close", on_click=dialog.close).props("flat")
    return dialog


def code_dialog(page: Page) -> Any:
    """The same work as a command and as a program."""
    own, pipeline = page.session.current, page.session.fitting.pipeline()
    source = own.source if own is not None and not isinstance(own, Camera) else "picture.png"
    video = own is not None and own.video
    plain = source.partition(":")[2] if source.startswith("sample:") else source
    suffix = ".png"
    if own is not None and own.first.dtype.name not in ("uint8", "uint16"):
        suffix = ".npy"
    target = f"{Path(plain).stem} filtered{suffix}".replace(" ", "-")
    page_number = page.session.number if own is not None and own.pages else None
    code = python_code(pipeline, source, target, page=page_number, video=video)
    shown = (
        own.path.name if own is not None and own.path is not None and source.startswith("sample:") else source
    )
    whole = f"{Path(plain).stem}-filtered{_suffix_of(own) if own is not None else '.png'}".replace(" ", "-")
    command = command_line(pipeline, shown, whole)
    with ui.dialog(value=True) as dialog, ui.card().style("width:min(820px,94vw);max-width:none"):
        ui.label("The same without this page").classes("text-h6")
        for title, text, test in (("Command line", command, "command"), ("Python", code, "python")):
            with ui.row().classes("full-width items-center justify-between"):
                ui.label(title).classes("card-title")
                copy = ui.button("Copy", icon="content_copy", on_click=lambda text=text: _copied(text))
                named(copy.props("flat dense size=sm"), f"Copy: {title}", f"copy-{test}")
            box = ui.html(html.escape(text), sanitize=False)
            box.props('tabindex="0" role="region"').classes("code-box" + " wrapped" * (test == "command"))
            named(box, title, test)
        with ui.row().classes("full-width justify-end"):
            ui.button("Close", on_click=dialog.close).props("flat")
    return dialog


def _copied(text: str) -> None:
    ui.clipboard.write(text)
    ui.notify("copied")


def _suffix_of(own: Any) -> str:
    """The suffix that a whole result should have."""
    known = suffixes_for(own.kind, str(own.first.dtype))
    if own.format == "dicom":
        return ".dcm"
    if own.format == "gif" and own.count > 1:
        return ".gif"
    given = own.path.suffix.lower() if own.path is not None else ""
    return given if given in known else known[0]


def save_pipeline(page: Page, name: str) -> Path:
    """The pipeline under the folder of exports, as ``undula filter --pipeline`` reads it."""
    folder = page.options.exports
    folder.mkdir(parents=True, exist_ok=True)
    path = named_path(folder, name if name.lower().endswith(".json") else f"{name}.json", (".json",))
    page.chain.pipeline().save(path)
    return path


class _Exporting:
    """What the dialog of exports does."""

    def __init__(self, page: Page) -> None:
        self.page, self.session = page, page.session
        self.own = self.session.current
        self.export: Export | None = None

    def names(self) -> dict[str, tuple[str, str, tuple[str, ...]]]:
        """Kinds of exports: what each is, a name for it, and how names may end."""
        own = self.own
        found: dict[str, tuple[str, str, tuple[str, ...]]] = {}
        if own is not None:
            sample = own.source.partition(":")[2] if own.source.startswith("sample:") else ""
            stem = sample or Path(own.name).stem
            stem = "".join(c if c.isalnum() or c in " -_()+" else "-" for c in stem)[:80].strip() or "picture"
            dtype = str(own.first.dtype)
            frame = f" {self.session.number}" if own.count > 1 else ""
            pictures = suffixes_for("picture", dtype)
            found["picture"] = ("This result, as a picture", f"{stem} filtered{frame}{pictures[0]}", pictures)
            found["view"] = (
                "What the view shows",
                f"{stem} {self.session.view}{frame}.png",
                (".png", ".jpg", ".webp"),
            )
            if own.path is not None:
                known = suffixes_for(own.kind, dtype)
                if (own.format in ("dicom", "gif") and own.count > 1) or own.format == "dicom":
                    known = (_suffix_of(own), *known)
                about = {"video": "The whole video", "picture": "The file, with all it tells besides"}
                title = about.get(own.kind, "All slices or frames, as one file")
                found["whole"] = (title, f"{stem} filtered{_suffix_of(own)}", known)
                if own.count > 1:
                    found["frames"] = ("Every frame, as pictures in a folder", f"{stem} frames", ())
        found["pipeline"] = ("The pipeline (JSON)", "pipeline.json", (".json",))
        return found

    async def run(self, kind: str, name: str, suffixes: tuple[str, ...], progress: Any) -> Path:
        """Writes it; the path that it got."""
        folder = self.page.options.exports
        folder.mkdir(parents=True, exist_ok=True)
        if kind == "pipeline":
            return save_pipeline(self.page, name)
        path = named_path(folder, name, suffixes)
        own, session = self.own, self.session
        assert own is not None
        if kind == "picture":
            result = await session.current_result()
            await asyncio.to_thread(io.write, path, io.Picture(result.after))
        elif kind == "view":
            await asyncio.to_thread(io.write, path, await self._view())
        else:
            pipeline: Pipeline = session.fitting.pipeline()
            job = Job(
                str(own.path),
                str(path),
                pipeline.to_json(),
                session.settings.backend,
                kind == "frames",
                session.room.limits.pixels,
                # (GPUs want more addresses than there is memory.)
                session.room.limits.memory + EXPORT_ROOM if session.settings.backend == "cpu" else 0,
            )
            self.export = Export(job)
            memory = session.room.memory
            async with memory.lend(min(memory.total // 2, EXPORT_WORK + 2 * work_for(own.first, pipeline))):
                await self.export.run(progress)
        return path

    async def _view(self) -> Any:
        import numpy as np

        session, own = self.session, self.own
        assert own is not None
        result = await session.current_result()
        pyramid = None
        if session.view in ("analysis", "filtered"):
            from .rendering import bands

            pipeline = session.fitting.pipeline()
            async with session.room.memory.lend(work_for(own.first, pipeline, True)):
                found = await asyncio.to_thread(bands, result.before, own.channel_axis, pipeline, own.stored)
            pyramid = found[:2]
        parts = list(layers(session.view, result, own.screen, pyramid).values())
        if len(parts) == 1:
            return parts[0]
        if session.view == "side":
            return np.concatenate(parts, axis=1)
        half = parts[0].shape[1] // 2
        return np.concatenate([parts[0][:, :half], parts[1][:, half:]], axis=1)


def export_dialog(page: Page, kind: str | None = None) -> Any:
    """Results into files, under one folder."""
    work = _Exporting(page)
    names = work.names()
    first = kind if kind in names else next(iter(names))
    with ui.dialog(value=True) as dialog, ui.card().style("width:min(520px,94vw)"):
        ui.label("Export").classes("text-h6")
        what = ui.select({key: title for key, (title, *_) in names.items()}, value=first, label="What")
        named(what.props("outlined dense").classes("full-width"), "What to export", "export-what")
        name = named(
            ui.input("Name", value=names[first][1]).props("outlined dense").classes("full-width"),
            "Name",
            "export-name",
        )
        hint = ui.label("").classes("hint")
        folder = str(page.options.exports.absolute())
        ui.label(f"It goes to {folder}").classes("hint").style("overflow-wrap:anywhere")
        bar = ui.linear_progress(0, show_value=False).props('aria-label="Progress"').classes("full-width")
        bar.set_visibility(False)
        told = ui.label("").classes("hint").props('data-testid="export-told" role="status"')

        def chosen() -> None:
            name.set_value(names[what.value][1])
            ends = names[what.value][2]
            hint.set_text(f"Names may end in {', '.join(ends)}" if ends else "A folder of that name is made")

        what.on_value_change(chosen)
        chosen()

        def progress(done: int, total: int) -> None:
            bar.set_value(done / max(1, total))
            told.set_text(f"{done} of {total}")

        async def go() -> None:
            start.disable()
            link.set_visibility(False)
            dialog.props("persistent")  # (nothing that runs is ended by a stray click)
            bar.set_visibility(what.value in ("whole", "frames"))
            told.set_text("working …")
            try:
                path = await work.run(what.value, name.value or "", names[what.value][2], progress)
            except (UndulaError, OSError) as error:
                told.set_text(" ".join(str(error).split()))
                bar.set_visibility(False)
                return
            finally:
                start.enable()
                dialog.props(remove="persistent")
            told.set_text(f"written: {path.name}")
            if path.is_file():
                number = len(work.session.exported) + 1
                work.session.exported[number] = path
                link.props(
                    f'href="/studio/export/{work.session.key}/{number}" download="{html.escape(path.name)}"'
                )
                link.set_visibility(True)

        async def leave() -> None:
            if work.export is not None:
                await work.export.cancel()
            dialog.close()
            dialog.clear()

        with ui.row().classes("full-width justify-end items-center"):
            link = ui.element("a").classes("text-primary q-mr-auto").props('data-testid="export-link"')
            with link:
                ui.label("Download it, too")
            link.set_visibility(False)
            named(
                ui.button("Close", on_click=leave).props("flat"), "Close, or cancel what runs", "export-close"
            )
            start = named(ui.button("Export", on_click=go), "Export", "export-go")
    return dialog
