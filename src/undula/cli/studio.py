"""The command that serves the Studio."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ..io import DEFAULT_MAX_PIXELS
from ..studio import ServerOptions, StudioLimits, serve
from .common import app
from .screen import print_text


@app.command(rich_help_panel="Studio and samples")
def studio(
    files: Annotated[
        list[Path] | None, Argument(metavar="FILE", help="Images, volumes, DICOM files and videos to open.")
    ] = None,
    host: Annotated[
        str | None, Option("--host", help="Address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int, Option("--port", min=0, max=65535, help="Port to listen on; if it is taken, the next free one.")
    ] = 8765,
    share: Annotated[
        bool, Option("--share", help="Listen on all addresses, so that other machines can connect.")
    ] = False,
    token: Annotated[
        str | None,
        Option(
            "--token",
            envvar="UNDULA_STUDIO_TOKEN",
            help="A fixed access token. Prefer the environment variable: other users can see command lines.",
            show_default="a new one each time",
        ),
    ] = None,
    exports: Annotated[Path, Option("--exports", help="Folder that exports are written to.")] = Path(
        "undula-exports"
    ),
    max_upload: Annotated[
        int, Option("--max-upload", min=1, help="Maximum size of an upload, in megabytes.")
    ] = 512,
    max_disk: Annotated[
        int, Option("--max-disk", min=1, help="Maximum size of all uploads together, in megabytes.")
    ] = 8000,
    max_memory: Annotated[
        int | None,
        Option(
            "--max-memory",
            min=2048,
            help="Memory for open files and for the work on them, in megabytes.",
            show_default="half of the machine's, at most 8192",
        ),
    ] = None,
    max_pixels: Annotated[
        int, Option("--max-pixels", min=1, help="Refuse files with more pixels.")
    ] = DEFAULT_MAX_PIXELS,
    no_browser: Annotated[bool, Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Filter images and video interactively in the browser.

    The printed address contains an access token; nobody can connect without it.

    Example: `undula studio` or `undula studio scan.dcm clip.mp4`
    """
    limits = StudioLimits(upload=max_upload * 1_000_000, pixels=max_pixels, disk=max_disk * 1_000_000)
    if max_memory is not None:
        limits = replace(limits, total=max_memory << 20)
    serve(ServerOptions(files or (), host, port, share, token, exports, limits, not no_browser), print_text)
