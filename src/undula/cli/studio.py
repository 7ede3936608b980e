"""The command that serves the Studio."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..io import LIMIT
from ..studio import Limits, Options, serve
from .common import app
from .screen import say


@app.command()
def studio(
    files: Annotated[list[Path] | None, typer.Argument(help="pictures, volumes, DICOM files, video")] = None,
    host: Annotated[str, typer.Option("--host", help="the address to listen on")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="the port; the next free one if it is taken")
    ] = 8765,
    share: Annotated[
        bool, typer.Option("--share", help="let other machines come, with a token that is printed")
    ] = False,
    token: Annotated[str | None, typer.Option("--token", help="a token of your own")] = None,
    exports: Annotated[Path, typer.Option("--exports", help="the folder that exports go to")] = Path(
        "undula-exports"
    ),
    max_upload: Annotated[int, typer.Option("--max-upload", min=1, help="megabytes of one upload")] = 512,
    max_pixels: Annotated[
        int, typer.Option("--max-pixels", min=1, help="the most pixels of one file")
    ] = LIMIT,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="do not open a browser")] = False,
) -> None:
    """Filter pictures and video on a page in your browser, and see what every slider does.

    Example: `undula studio` or `undula studio scan.dcm clip.mp4`
    """
    limits = Limits(upload=max_upload * 1_000_000, pixels=max_pixels)
    serve(Options(files or (), host, port, share, token, exports, limits, not no_browser), say)
