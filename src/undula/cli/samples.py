"""The command that writes sample files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from .. import io
from ..errors import FileError
from ..io.files import IMAGES, VIDEOS
from ..io.samples import scene, write_clip
from .common import Json, Overwrite, app
from .outputs import check_outputs
from .screen import print_output


@app.command(rich_help_panel="Studio and samples")
def example(
    target: Annotated[
        Path,
        Argument(
            metavar="OUTPUT",
            help="An image or a video, such as photo.png; with noise if its name contains noisy.",
        ),
    ],
    overwrite: Overwrite = False,
    json_: Json = False,
) -> None:
    """Write a sample image or video to try the other commands with.

    Example: `undula example noisy.png`
    """
    check_outputs(target, overwrite=overwrite)
    sigma = 12.0 if "noisy" in target.stem else 2.0
    if target.suffix.lower() in VIDEOS:
        write_clip(target, sigma)
    elif IMAGES.get(target.suffix.lower(), "dicom") != "dicom":
        io.write(target, scene(240, 320, 0.0, sigma))
    else:
        raise FileError(
            f"cannot write {target.name!r}: an example is an image or a video, such as noisy.png or noisy.mp4"
        )
    print_output(target, json_)
