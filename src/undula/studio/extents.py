"""What a chain filters together: a frame or slice alone, a volume, or several frames over time.

An *extent* beyond a single page is what ``--filter-over`` and ``--over-time`` select on the command line.
Which ones there are depends on the file: stacks of images are filtered over axes, videos and DICOM files in
windows of some frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from ..filters import Pipeline
from ..filters.verbs import Denoising
from ..filters.video import LEAST_NEIGHBOURS, MOST_NEIGHBOURS, TemporalDenoiser
from ..io.stack import UNKNOWN, StackAxes
from ..io.video import MIN_WINDOW_FRAMES, filter_windows

__all__ = [
    "EACH",
    "TIME",
    "VOLUME",
    "VOLUME_AND_TIME",
    "AppliedChain",
    "Extent",
    "StackNames",
    "extents_of",
    "filter_clip",
]

Array = NDArray[Any]

EACH, VOLUME, TIME, VOLUME_AND_TIME = "", "volume", "time", "volume and time"
PAGES = "I"  # what Undula calls an axis of pages of which nothing is known
UNKNOWN_NAMES = {2: "TZ", 3: "TCZ"}  # for arrays with several axes of which nothing is known
MAX_WINDOW_FRAMES = 64
MAX_LEAD_SAMPLES = 1 << 25  # of all frames before one that is to be shown


@dataclass(frozen=True)
class Extent:
    """What is filtered together.

    Parameters
    ----------
    title : str
    over : str, optional
        The letters of the axes, for ``--filter-over``; empty for windows of frames.
    axes : str, optional
        The letters that the axes get first, for ``--axes``.
    """

    title: str
    over: str = ""
    axes: str | None = None

    @property
    def is_window(self) -> bool:
        """Whether some frames are filtered together, and not all along an axis."""
        return not self.over


@dataclass(frozen=True)
class StackNames:
    """The axes of a stack in front of rows and columns, by letters that differ."""

    letters: str
    lengths: tuple[int, ...]
    axes: str | None = None  # the letters of all axes, if the file does not tell them

    @staticmethod
    def of(axes: StackAxes) -> StackNames:
        """Return the names of a stack; several unknown axes are taken for time, channels and depth."""
        letters, lengths = axes.names[:-2], axes.shape[:-2]
        if letters.count(UNKNOWN) < 2:
            return StackNames(letters, lengths)
        letters = UNKNOWN_NAMES.get(len(letters), letters)
        return StackNames(letters, lengths, f"{letters}YX")

    def length(self, letter: str) -> int:
        """Return the length of an axis; 1 if there is none of this name."""
        return self.lengths[self.letters.index(letter)] if letter in self.letters else 1

    def place(self, number: int) -> tuple[int, ...]:
        """Return the place of a page along each axis."""
        places = []
        for length in reversed(self.lengths):
            number, place = divmod(number, length)
            places.append(place)
        return tuple(places[::-1])


def extents_of(kind: str, is_dicom: bool, stack: StackNames) -> dict[str, Extent]:
    """Return what can be filtered together, beyond a single page, for an input of some kind."""
    if kind == "video" or (is_dicom and kind == "clip"):
        return {TIME: Extent("several frames (over time)")}
    if kind not in ("clip", "volume"):
        return {}
    if is_dicom:
        return {VOLUME: Extent("several slices (3-D)")}
    page = next((letter for letter in stack.letters if letter in PAGES + UNKNOWN), "")
    depth, time = ("Z", page or "T") if kind == "clip" else (page or "Z", "T")
    extents = {}
    if stack.length(depth) > 1:
        extents[VOLUME] = Extent("the whole volume (3-D)", f"{depth}YX", stack.axes)
    if stack.length(time) > 1:
        extents[TIME] = Extent("all frames (over time)", f"{time}YX", stack.axes)
    if len(extents) == 2:
        extents[VOLUME_AND_TIME] = Extent("the volume over time (4-D)", f"{time}{depth}YX", stack.axes)
    return extents


@dataclass(frozen=True)
class AppliedChain:
    """A chain as it is applied to an input.

    Parameters
    ----------
    pipeline : Pipeline
    extent : Extent, optional
        What is filtered together; None for each page alone.
    over_time : int, default 0
        Number of frames that are filtered together, if the extent is a window.
    task : Denoising, optional
        The task that follows motion in a window, in place of the pipeline.
    """

    pipeline: Pipeline
    extent: Extent | None = None
    over_time: int = 0
    task: Denoising | None = None

    @classmethod
    def of(
        cls, pipeline: Pipeline, extent: Extent | None, over_time: int, task: Denoising | None
    ) -> AppliedChain:
        """Return a chain without what does not apply to an extent, and with a number of frames that does."""
        if extent is None or not extent.is_window:
            return cls(pipeline, extent)
        low, high, _ = cls.frame_bounds(task is not None)
        over_time = min(max(over_time, low), high)
        return cls(pipeline, extent, over_time, task and replace(task, over_time=over_time))

    @property
    def is_window(self) -> bool:
        """Whether some frames are filtered together."""
        return self.extent is not None and self.extent.is_window

    @property
    def over(self) -> str | None:
        """The letters of the axes that are filtered together; None for pages and for windows."""
        return None if self.extent is None else self.extent.over or None

    @property
    def work(self) -> Pipeline | TemporalDenoiser:
        """The filter, as :class:`undula.io.dicom_filtering.DicomFilter` and others take it."""
        return self.pipeline if self.task is None else self.task.denoiser()

    @property
    def lead(self) -> int:
        """How many frames before a frame, or before its window, have an influence on its result."""
        if self.task is not None:
            return self.over_time + 4
        hop = self.over_time // 2
        return (2 if self.over_time % 2 else 1) * hop

    def first_frame(self, number: int, samples: int) -> int:
        """Return the frame to begin with, so that a frame gets the result that it has in the whole clip.

        Windows begin at multiples of half their length. A filter that follows motion measures the noise where
        it begins, which is the first frame unless that would take too long. ``samples`` is the size of a
        frame.
        """
        if self.task is not None:
            return 0 if number * samples <= MAX_LEAD_SAMPLES else number - self.lead
        hop = max(1, self.over_time // 2)
        return max(0, number // hop * hop - self.lead)

    @staticmethod
    def frame_bounds(follows_motion: bool) -> tuple[int, int, int]:
        """Return the smallest and the largest number of frames, and the step of their slider."""
        if follows_motion:
            return (LEAST_NEIGHBOURS, MOST_NEIGHBOURS, 2)
        return (MIN_WINDOW_FRAMES, MAX_WINDOW_FRAMES, 2)

    def command_options(self) -> list[str]:
        """Return the options of the command line."""
        if self.extent is None:
            return []
        if self.is_window:
            return ["--over-time", str(self.over_time)]
        axes = [] if self.extent.axes is None else ["--axes", self.extent.axes]
        return [*axes, "--filter-over", self.extent.over]


def filter_clip(
    frames: Iterator[Array], work: Any, over_time: int, channel_axis: int | None, **options: Any
) -> Iterator[Array]:
    """Filter frames together with those around them, as ``--over-time`` does."""
    if isinstance(work, TemporalDenoiser):
        yield from work(frames, channel_axis=channel_axis, **options)
        return
    windows = filter_windows(
        ([frame] for frame in frames),
        lambda planes: [work(planes[0], channel_axis=channel_axis, **options)],
        over_time,
    )
    for (result,) in windows:
        yield result
