"""The command that serves the Studio."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..io import DEFAULT_MAX_PIXELS
from ..studio import Limits, Options, serve
from .common import app
from .screen import say


@app.command()
def studio(
    files: Annotated[list[Path] | None, typer.Argument(help="pictures, volumes, DICOM files, video")] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", help="the address to listen on, instead of 127.0.0.1"),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="the port; the next free one if it is taken")
    ] = 8765,
    share: Annotated[
        bool, typer.Option("--share", help="listen on all addresses, so that other machines can connect")
    ] = False,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="UNDULA_STUDIO_TOKEN",
            help="a token of your own, instead of a new one each time (others can see command lines)",
        ),
    ] = None,
    exports: Annotated[Path, typer.Option("--exports", help="the folder that exports go to")] = Path(
        "undula-exports"
    ),
    max_upload: Annotated[int, typer.Option("--max-upload", min=1, help="megabytes of one upload")] = 512,
    max_disk: Annotated[
        int, typer.Option("--max-disk", min=1, help="megabytes of all uploads together")
    ] = 8000,
    max_memory: Annotated[
        int | None,
        typer.Option(
            "--max-memory",
            min=2048,
            help="megabytes for pictures and work on them; usually half of the machine's, and at most 8192",
        ),
    ] = None,
    max_pixels: Annotated[
        int, typer.Option("--max-pixels", min=1, help="the most pixels of one file")
    ] = DEFAULT_MAX_PIXELS,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="do not open a browser")] = False,
) -> None:
    """Filter pictures and video on a page in your browser, and see what every slider does.

    The address that is printed has a token in it; nobody can connect without it.

    Example: `undula studio` or `undula studio scan.dcm clip.mp4`
    """
    limits = Limits(upload=max_upload * 1_000_000, pixels=max_pixels, disk=max_disk * 1_000_000)
    if max_memory is not None:
        limits = replace(limits, total=max_memory << 20)
    serve(Options(files or (), host, port, share, token, exports, limits, not no_browser), say)
