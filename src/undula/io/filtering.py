"""Files through a filter: a picture with all its pages, or a video, into another file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .raster import read, write
from .video import Planes, probe, process

__all__ = ["Encoding", "filter_picture", "filter_video"]

Filter = Callable[..., Any]  # takes an image, and keywords as a Pipeline does
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Encoding:
    """How a video is filtered and encoded; see :func:`undula.io.process`.

    ``luma`` is for filters that have to do with brightness alone.
    """

    over_time: int = 0
    quality: int = 18
    codec: str | None = None
    preset: str = "veryfast"
    audio: bool = True
    frames: int | None = None
    workers: int | None = None
    luma: bool = False


def filter_picture(
    source: Path,
    target: Path,
    work: Filter,
    *,
    sigma: float | None = None,
    backend: str = "auto",
    max_pixels: int | None = None,
    begin: Callable[[int], Progress] | None = None,
) -> tuple[tuple[int, ...], int]:
    """Filters every page of a picture; the shape of all of it, and how many pages there are.

    ``begin`` is told how many pages there are, and gives what is told how many are done.
    """
    picture = read(source, max_pixels)
    pages = len(picture.all_pages)
    progress = begin(pages) if begin is not None else None
    write(target, picture.filtered(work, progress, sigma=sigma, backend=backend))
    return picture.pixels.shape, pages


def filter_video(
    source: Path,
    target: Path,
    work: Filter,
    encoding: Encoding | None = None,
    *,
    sigma: float | None = None,
    backend: str = "auto",
    max_pixels: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Filters every frame of a video, plane by plane; how many there are."""
    own = encoding or Encoding()
    luma = own.luma and not probe(source, max_pixels).is_rgb  # (green alone is not brightness)

    def plane(x: np.ndarray[Any, Any]) -> Any:
        return work(x, sigma=sigma, channel_axis=None, backend=backend)

    def frame(planes: Planes) -> Planes:
        return [plane(planes[0]), *(planes[1:] if luma else map(plane, planes[1:]))]

    return process(
        source,
        target,
        frame,
        over_time=own.over_time,
        workers=own.workers,
        progress=progress,
        codec=own.codec,
        quality=own.quality,
        preset=own.preset,
        audio=own.audio,
        count=own.frames,
        max_pixels=max_pixels,
    )
