"""Filter a file into another one: all pages of an image, or all frames of a video."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..filters.memory import check_memory
from ..filters.pipeline import Pipeline
from ..filters.unchanged import estimates_noise, filtering_parts, is_unchanged, warn_of_no_noise
from ..filters.video import TemporalDenoiser
from .preview import write_preview
from .raster import read, read_header, save
from .stack import StackLayout
from .video import Planes, probe, process

__all__ = ["Encoding", "FilteredPicture", "filter_picture", "filter_video"]

Filter = Callable[..., Any]  # Takes an image and the keywords of a Pipeline.
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Encoding:
    """How a video is filtered and encoded; see :func:`undula.io.process`.

    ``frames`` is the maximum number of frames; ``start`` and ``duration`` are in seconds. With ``luma``, only
    the luma plane is filtered.
    """

    over_time: int = 0
    quality: int = 18
    codec: str | None = None
    preset: str = "veryfast"
    audio: bool = True
    frames: int | None = None
    workers: int | None = None
    luma: bool = False
    start: float = 0.0
    duration: float | None = None


class FilteredPicture(NamedTuple):
    """The shape of the pixels of a filtered image, the number of pages, and what the result does not keep."""

    shape: tuple[int, ...]
    pages: int
    lost: tuple[str, ...]


def _for_chroma(work: Filter) -> Filter:
    """Return a filter for planes of chroma; they are filtered like grey images, whose strength is luma."""
    return replace(work, luma=work.chroma) if isinstance(work, (Pipeline, TemporalDenoiser)) else work


def denoise_planes(
    denoiser: Filter,
    chroma_denoiser: Filter,
    frames: Iterator[Planes],
    sigma: Any = None,
    backend: str = "auto",
) -> Iterator[Planes]:
    """Denoise frames over time, plane by plane, because chroma may have another size than luma."""
    waiting: list[deque[Any]] = []

    def of_plane(k: int) -> Iterator[Any]:
        while True:
            while not waiting[k]:
                try:
                    planes = next(frames)
                except StopIteration:
                    return
                for queue, plane in zip(waiting, planes, strict=True):
                    queue.append(plane)
            yield waiting[k].popleft()

    first = next(frames, None)
    if first is None:
        return
    waiting += [deque([plane]) for plane in first]
    options = {"sigma": sigma, "channel_axis": None, "backend": backend}
    results = [(chroma_denoiser if k else denoiser)(of_plane(k), **options) for k in range(len(first))]
    yield from map(list, zip(*results, strict=True))


def filter_picture(
    source: Path,
    target: Path,
    work: Filter,
    *,
    sigma: float | None = None,
    backend: str = "auto",
    max_pixels: int | None = None,
    axes: str | None = None,
    over: str | None = None,
    begin: Callable[[int], Progress] | None = None,
    preview: Path | None = None,
    **options: Any,
) -> FilteredPicture:
    """Filter every page of an image.

    ``axes`` names the axes of a stack, and ``over`` those that are filtered together, see
    :meth:`Picture.filtered`. ``begin`` is called with the number of pages or volumes, and returns a function
    that is called with the number of those done. ``preview`` is a file for a picture of a part before and
    after. Other options are those of :func:`undula.io.write`.
    """
    filtering: dict[str, Any] = {"over": over, "sigma": sigma, "backend": backend}
    header = read_header(source)
    if header is not None:
        header = header if axes is None else header.with_axes(axes)
        # The encoder copies the result.
        needed = header.working_memory(work, **filtering) + 2 * header.pixels.nbytes
        check_memory(needed, f"filtering {source}")
    picture = read(source, max_pixels)
    picture = picture if axes is None else picture.with_axes(axes)
    if header is None:
        check_memory(picture.working_memory(work, **filtering), f"filtering {source}")
    items = len(StackLayout.of(picture.stack_axes, over or "YX"))
    progress = begin(items) if begin is not None else None
    result = picture.filtered(work, progress, **filtering)
    lost = save(target, result, **options)
    if preview is not None:
        write_preview(preview, picture, result)
    return FilteredPicture(picture.pixels.shape, len(picture.all_pages), lost)


def filter_video(
    source: Any,
    target: Any,
    work: Filter,
    encoding: Encoding | None = None,
    *,
    sigma: float | None = None,
    backend: str = "auto",
    max_pixels: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Filter every frame of a video, plane by plane; return the number of frames.

    ``source`` and ``target`` are those of :func:`undula.io.process`.
    """
    options = asdict(encoding or Encoding())
    luma, chroma_work = options.pop("luma"), _for_chroma(work)
    if (luma or chroma_work != work) and probe(source, max_pixels).is_rgb:  # RGB frames have no luma plane.
        luma, chroma_work = False, work
    options["count"] = options.pop("frames")

    report = _ClipReport(work, sigma)

    def filter_plane(x: np.ndarray[Any, Any], plane_work: Filter) -> Any:
        return plane_work(x, sigma=sigma, channel_axis=None, backend=backend)

    def run(**filtering: Any) -> int:
        with filtering_parts():
            count = process(source, target, **filtering, progress=progress, max_pixels=max_pixels, **options)
        report.finish()
        return count

    if isinstance(work, TemporalDenoiser):
        del options["over_time"]

        def filter_stream(frames: Iterator[Planes]) -> Iterator[Planes]:
            waiting: deque[Planes] = deque()

            def given() -> Iterator[Planes]:
                for planes in frames:
                    waiting.append(planes)
                    yield planes

            for result in denoise_planes(work, chroma_work, given(), sigma, backend):
                report.compare(waiting.popleft(), result)
                yield result

        return run(stream=filter_stream)

    def filter_planes(planes: Planes) -> Planes:
        with filtering_parts():  # Threads begin without it.
            chroma = planes[1:] if luma else [filter_plane(plane, chroma_work) for plane in planes[1:]]
            result = [filter_plane(planes[0], work), *chroma]
        report.compare(planes, result)
        return result

    return run(work=filter_planes)


class _ClipReport:
    """Warns if a filter that estimates noise has changed no plane of a video.

    Parameters
    ----------
    work : callable
    sigma : float, optional
        The noise, if the caller knows it. Then nothing is reported.
    """

    def __init__(self, work: Filter, sigma: Any) -> None:
        estimates = isinstance(work, TemporalDenoiser) and work.strength > 0
        estimates = estimates or (isinstance(work, Pipeline) and estimates_noise(work))
        self._silent = sigma is not None or not estimates
        self._count = 0

    def compare(self, planes: Planes, results: Planes) -> None:
        """Compare a frame with its result."""
        self._count += 1
        if not self._silent:
            self._silent = not all(map(is_unchanged, planes, results))

    def finish(self) -> None:
        """Warn after the last frame."""
        if self._count and not self._silent:
            warn_of_no_noise()
