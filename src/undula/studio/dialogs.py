"""Dialogs: code to copy, exports, keyboard shortcuts."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nicegui import ui

from ..errors import UndulaError
from .code import CodeSource, command_line, python_code
from .exports import Export, file_stem, file_suffix
from .extents import AppliedChain
from .widgets import check_box, identify

if TYPE_CHECKING:
    from .page import Page
    from .session import Session

__all__ = ["code_dialog", "export_dialog", "keys_dialog", "reproducing_code"]

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
    "A": "version A or B of the chain",
    "B": "compare A with B",
    "W R": "drag for window and level, or for a region",
    "H": "hide or show the side panels",
    "D": "light or dark theme",
    "?": "this list",
}


def _named(title: str) -> Any:
    """Return a dialog with a name for screen readers."""
    return identify(ui.dialog(value=True), title)


def keys_dialog(page: Page) -> Any:
    """Show the list of keyboard shortcuts."""
    with _named("Keyboard shortcuts") as dialog, ui.card().classes("q-pa-md").props('data-testid="keys"'):
        ui.html("<h2 class='text-h6'>Keyboard shortcuts</h2>", sanitize=False)
        check_box(
            "Single letters, digits and signs are shortcuts",
            page.storage.letters,
            page.storage.use_letters,
            "letters",
        )
        rows = "".join(
            "<div>"
            + " ".join(f"<kbd>{html.escape(k)}</kbd>" for k in keys.split())
            + f"</div><div>{action}</div>"
            for keys, action in KEYS.items()
        )
        ui.html(f'<div class="keys">{rows}</div>', sanitize=False)
        ui.label(
            "Drag to pan, scroll or pinch to zoom, double-click to fit. Drag with the right button for window"
            " and level, with Shift for a region."
        ).classes("hint")
        with ui.row().classes("full-width justify-end"):
            ui.button("Close", on_click=dialog.close).props("flat")
    return dialog


def reproducing_code(session: Session) -> tuple[str, str]:
    """Return a command and a program that reproduce the result of a session.

    Both write the whole file, unless it has several pages and these are filtered one by one: then the program
    writes the one that is shown.
    """
    shown = session.current
    applied, source, sample_suffix = AppliedChain(session.chain.pipeline()), CodeSource("picture.png"), ""
    stem, suffix, whole_suffix = "picture", ".png", ".png"
    if shown is not None:
        applied = session.chain.applied(shown.first_frame.shape, shown.extents)
        suffix = ".png" if shown.first_frame.dtype.name in ("uint8", "uint16") else ".npy"
        whole_suffix = file_suffix(shown)
        number = session.number if shown.pages else None
        source = replace(source, page=number, plane=shown.plane, volume=shown.volume_code)
    if shown is not None and shown.path is not None:
        is_scan = shown.dicom is not None and (not shown.plane or applied.is_window)
        kind = "video" if shown.video else "dicom" if is_scan else "picture"
        protects = shown.protects or shown.protected is None
        source = replace(source, name=shown.source, kind=kind, protects=protects)
        stem, sample_suffix = file_stem(shown), shown.path.suffix
        if kind == "dicom" or (kind == "picture" and (applied.extent is not None or not shown.pages)):
            suffix = whole_suffix
    target = f"{stem}-filtered".replace(" ", "-")
    command = command_line(applied, source.name, target + whole_suffix, sample_suffix, source.protects)
    return command, python_code(applied, source, target + suffix)


def code_dialog(page: Page) -> Any:
    """Show the code that reproduces the result."""
    command, code = reproducing_code(page.session)
    with (
        _named("Code for this result") as dialog,
        ui.card().style("width:min(820px,94vw);max-width:none"),
    ):
        ui.html("<h2 class='text-h6'>Code for this result</h2>", sanitize=False)
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


def export_dialog(page: Page, kind: str | None = None) -> Any:
    """Show the dialog for writing results to files; ``kind`` is the kind of export selected first."""
    exports, folder = page.session.exports, page.options.exports
    kinds = exports.kinds()
    first = kind if kind in kinds else next(iter(kinds))
    with _named("Export") as dialog, ui.card().style("width:min(520px,94vw)"):
        ui.html("<h2 class='text-h6'>Export</h2>", sanitize=False)
        what = ui.select({key: each.title for key, each in kinds.items()}, value=first, label="What")
        identify(what.props("outlined dense").classes("full-width"), "What to export", "export-what")
        name = ui.input("Name", value=kinds[first].name).props("outlined dense").classes("full-width")
        identify(name, "Name", "export-name")
        hint = ui.label("").classes("hint")
        ui.label(f"Written to {folder.absolute()}").classes("hint").style("overflow-wrap:anywhere")
        status = ui.label("").classes("hint").props('data-testid="export-status" role="status"')

        def propose_name() -> None:
            chosen = kinds[what.value]
            name.set_value(chosen.name)
            name.set_visibility(bool(chosen.name))
            suffixes = f"Allowed suffixes: {', '.join(chosen.suffixes)}"
            none = (
                "Name of a new folder" if chosen.name else "Each file keeps its name, with “filtered” added"
            )
            hint.set_text(suffixes if chosen.suffixes else none)

        what.on_value_change(propose_name)
        propose_name()

        def start_export() -> None:
            try:
                exports.start(what.value, name.value or "", kinds[what.value].suffixes, folder)
            except (UndulaError, OSError) as error:
                status.set_text(" ".join(str(error).split()))
                return
            status.set_text("")
            listed.refresh()

        @ui.refreshable
        def listed() -> None:
            box = ui.column().classes("exports full-width").props('role="group" tabindex="0"')
            with identify(box, "Exports"):
                progress[:] = [_build_export(page, export) for export in reversed(exports.exports)]

        progress: list[Callable[[], None]] = []
        listed()
        shown = [_export_state(page)]

        def update() -> None:
            if shown[0] != _export_state(page):
                shown[0] = _export_state(page)
                listed.refresh()
            else:  # A click on a button that is replaced meanwhile would be lost.
                for show in progress:
                    show()

        ui.timer(0.25, update)

        with ui.row().classes("full-width justify-end items-center"):
            batch = ui.button("Batch …", on_click=lambda: page.viewer.run_method("pickBatch")).props("flat")
            identify(
                batch.classes("q-mr-auto"), "Batch …: filter many files with this chain", "export-batch"
            ).tooltip("Filter many files with this chain, without opening them")
            identify(ui.button("Close", on_click=dialog.close).props("flat"), "Close", "export-close")
            start = identify(ui.button("Export"), "Export", "export-go")
            # The second click of a double click is ignored.
            start.on("click", start_export, js_handler="(event) => { if (event.detail < 2) emit(); }")
    return dialog


def _export_state(page: Page) -> list[tuple[int, bool]]:
    return [(each.number, each.ended) for each in page.session.exports.exports]


def _build_export(page: Page, export: Export) -> Callable[[], None]:
    """Add the state of an export, with a link to its file, or a button that cancels it.

    The result shows the progress of the export.
    """
    with ui.row().classes("full-width items-center justify-between no-wrap"):
        with ui.column().style("gap:0;min-width:0;flex:1"):
            ui.label(export.title).style("overflow-wrap:anywhere")
            state = ui.label(export.text).classes("hint").style("overflow-wrap:anywhere")
            bar = None
            if not export.ended:
                bar = ui.linear_progress(export.share, show_value=False)
                bar.props(f'aria-label="{html.escape(export.name)}"')
        if not export.ended:
            cancel = ui.button(icon="close", on_click=export.cancel).props("flat dense round")
            identify(cancel, f"Cancel {export.name}", f"export-cancel-{export.number}")
        elif export.path is not None and export.path.is_file():
            link = ui.element("a").classes("text-primary q-ml-sm").props("download")
            link.props["href"] = f"/studio/export/{page.session.key}/{export.number}"
            identify(link, f"Download {export.path.name}", f"export-link-{export.number}")
            with link:
                ui.label("Download")

    def show() -> None:
        state.set_text(export.text)
        if bar is not None:
            bar.set_value(export.share)

    return show
