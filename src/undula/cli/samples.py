"""Something to try the other commands with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import io
from ..errors import FileError
from ..io.files import IMAGES, VIDEOS
from ..io.samples import scene, write_clip
from .common import Json, Overwrite, app
from .outputs import check_outputs
from .screen import say, show_json


@app.command()
def example(
    target: Annotated[
        Path, typer.Argument(help="photo.png, noisy.png, noisy.mp4, …: noise if the name says so")
    ],
    overwrite: Overwrite = False,
    json_: Json = False,
) -> None:
    """Write a picture or a clip to try the other commands with.

    Example: `undula example noisy.png`
    """
    check_outputs(target, overwrite=overwrite)
    rough = 12.0 if "noisy" in target.stem else 2.0
    if target.suffix.lower() in VIDEOS:
        write_clip(target, rough)
    elif IMAGES.get(target.suffix.lower(), "dicom") != "dicom":
        io.write(target, scene(240, 320, 0.0, rough))
    else:
        raise FileError(
            f"an example is a picture or a clip, such as noisy.png or noisy.mp4; got {target.name!r}"
        )
    show_json({"output": str(target)}) if json_ else say(str(target))
