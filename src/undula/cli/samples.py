"""Something to try the other commands with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .. import io
from ..errors import FileError
from ..io.files import IMAGES, VIDEOS, needed, written
from .common import Json, app
from .screen import say, show_json


@app.command()
def example(
    target: Annotated[
        Path, typer.Argument(help="photo.png, noisy.png, noisy.mp4, …: noise if the name says so")
    ],
    json_: Json = False,
) -> None:
    """Write a picture or a clip to try the other commands with.

    Example: `undula example noisy.png`
    """
    rough = 12.0 if "noisy" in target.stem else 2.0
    if target.suffix.lower() in VIDEOS:
        _example_clip(target, rough)
        show_json({"output": str(target)}) if json_ else say(str(target))
        return
    if target.suffix.lower() not in IMAGES or target.suffix.lower() == ".dcm":
        raise FileError(
            f"an example is a picture or a clip, such as noisy.png or noisy.mp4; got {target.name!r}"
        )
    io.write(target, _scene(240, 320, 0.0, rough))
    show_json({"output": str(target)}) if json_ else say(str(target))


def _scene(height: int, width: int, turn: float, rough: float) -> np.ndarray[Any, Any]:
    """Something with edges, textures and slopes."""
    rng = np.random.default_rng(round(turn * 1000))
    y, x = np.mgrid[:height, :width].astype(np.float64)
    sky = 150 + 60 * y / height
    hill = y > 0.62 * height + 18 * np.sin(x / 37 + turn) + 6 * np.sin(x / 11)
    disc = (x - (0.7 * width + 12 * np.cos(turn))) ** 2 + (y - 0.3 * height) ** 2 < (0.14 * height) ** 2
    bars = (x > 0.12 * width) & (x < 0.3 * width) & (y > 0.3 * height) & (y < 0.7 * height)
    grey = np.where(hill, 70 + 25 * np.sin(x / 3) * np.sin(y / 4), sky)
    grey = np.where(bars, 60 + 120 * ((x // 6) % 2), grey)
    planes = [np.where(disc, c, grey * t) for c, t in ((235, 1.0), (180, 0.96), (60, 0.88))]
    image = np.stack(planes, axis=-1) + rough * rng.standard_normal((height, width, 3))
    return np.clip(np.round(image), 0, 255).astype(np.uint8)


def _example_clip(target: Path, rough: float) -> None:

    av = needed("av")
    with written(target) as beside:
        kind = VIDEOS[target.suffix.lower()]
        with av.open(str(beside), "w", format=kind) as container:
            stream = container.add_stream(io.video.CODECS[kind], rate=25)
            stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
            for number in range(50):
                frame = av.VideoFrame.from_ndarray(_scene(240, 320, number / 8, rough), format="rgb24")
                container.mux(stream.encode(frame.reformat(format="yuv420p")))
            container.mux(stream.encode(None))
