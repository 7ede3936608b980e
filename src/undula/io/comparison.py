"""Compare two videos frame by frame: PSNR and SSIM in the planes that they are stored in."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import measures
from ..errors import ArgumentError, FileError
from .decoder import Planes, Video, probe, read_planes
from .pixel_formats import filterable_format, sample_bits

__all__ = ["VideoComparison", "compare_videos"]

MIN_SSIM_SIDE = 7


@dataclass(frozen=True)
class VideoComparison:
    """The similarity of two videos.

    Attributes
    ----------
    pixels : str
        The pixel format in which frames were compared.
    frames : tuple of int
        The number of frames of either video; the first ones of both were compared.
    times : list of float
        The time of each compared frame of the first video, in seconds.
    psnr : list of float
        Of each frame, over the samples of all planes except alpha, in decibels; infinite for equal frames.
    ssim : list of float
        Of each frame, of its first plane: luma, or green. NaN if a side is shorter than 7 samples.
    """

    pixels: str
    frames: tuple[int, int]
    times: list[float]
    psnr: list[float]
    ssim: list[float]

    @property
    def mean_psnr(self) -> float:
        """The PSNR of the mean squared error of all frames; equal frames would make a mean infinite."""
        error = float(np.mean([10 ** (-value / 10) for value in self.psnr]))
        return math.inf if error == 0 else -10 * math.log10(error)

    @property
    def mean_ssim(self) -> float:
        """The mean SSIM of all frames."""
        return float(np.mean(self.ssim))


def _common_format(a: Video, b: Video) -> str:
    """Return the pixel format to compare in: that of the video with more bits, or of the first."""
    formats = [
        filterable_format(video.pixels).replace("yuvj", "yuv").replace("yuva", "yuv") for video in (a, b)
    ]
    return formats[0] if sample_bits(formats[0]) >= sample_bits(formats[1]) else formats[1]


def _similarity(x: Planes, y: Planes, peak: float) -> tuple[float, float]:
    """Return the PSNR and the SSIM of a frame."""
    errors = [
        float(np.square(p.astype(np.float32) - q.astype(np.float32)).sum(dtype=np.float64))
        for p, q in zip(x, y, strict=True)
    ]
    error = sum(errors) / sum(plane.size for plane in x)
    is_small = min(x[0].shape) < MIN_SSIM_SIDE
    if error == 0:
        return math.inf, math.nan if is_small else 1.0
    return 10 * math.log10(peak**2 / error), math.nan if is_small else measures.ssim(x[0], y[0], peak)


def compare_videos(
    a: str | Path,
    b: str | Path,
    max_pixels: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> VideoComparison:
    """Compare the frames of two videos, in their order.

    Parameters
    ----------
    a, b : path
        Videos with frames of the same size. If their pixel formats differ, the one with fewer bits is
        converted to that of the other.
    max_pixels : int, optional
        The maximum number of pixels in a frame; by default 100 million.
    progress : callable, optional
        Called with the number of frames done.

    Returns
    -------
    VideoComparison
    """
    from ..engines.threads import frame_workers, share_of_threads

    videos = [probe(path, max_pixels) for path in (a, b)]
    sizes = [(video.width, video.height) for video in videos]
    if sizes[0] != sizes[1]:
        texts = [
            f"{path} has {width} × {height} pixels"
            for path, (width, height) in zip((a, b), sizes, strict=True)
        ]
        raise ArgumentError(f"{' and '.join(texts)}: they cannot be compared; scale one of them first")
    pixels = _common_format(*videos)
    peak = float((1 << sample_bits(pixels)) - 1)
    count = frame_workers()
    times: list[float] = []
    results: list[tuple[float, float]] = []
    waiting: deque[Future[tuple[float, float]]] = deque()

    def measure(x: Planes, y: Planes) -> tuple[float, float]:
        with share_of_threads(count):
            return _similarity(x, y, peak)

    def finish_first() -> None:
        results.append(waiting.popleft().result())
        if progress is not None:
            progress(len(results))

    first, second = (read_planes(path, pixels, max_pixels) for path in (a, b))
    with ThreadPoolExecutor(count, "undula-compare") as pool:
        for time, x in first:
            pair: Any = next(second, None)
            if pair is None:
                extra = 1 + _remaining(first)
                totals = len(times) + extra, len(times)
                break
            times.append(time)
            waiting.append(pool.submit(measure, x, pair[1]))
            if len(waiting) > count:
                finish_first()
        else:
            totals = len(times), len(times) + _remaining(second)
        while waiting:
            finish_first()
    if not results:
        raise FileError(f"no frames of {a} and {b} can be decoded")
    return VideoComparison(pixels, totals, times, *map(list, zip(*results, strict=True)))


def _remaining(frames: Iterator[Any]) -> int:
    return sum(1 for _ in frames)
