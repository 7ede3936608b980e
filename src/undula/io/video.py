"""Video: decoding, filtering and encoding at the same time, in memory that does not grow.

    decode (a thread) ─▶ queue ─▶ filter (several frames at once, in their order) ─▶ encode

Frames stay in the planes that they are kept in, brightness and colour differences; other streams, time stamps
and metadata are copied. Queues are short: whoever is ahead waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any

import numpy as np

from ..errors import ArgumentError, FileError, UndulaError
from .decoder import (
    DecodedSpan,
    Planes,
    Video,
    copy_planes,
    decode_error,
    filterable_format,
    frame_times,
    open_video,
    probe,
    read_frames,
    reason,
    replace_planes,
    times_are_guessed,
)
from .encoder import VideoWriter, check_options
from .files import VIDEOS, atomic_write, import_optional, same_file

__all__ = ["Planes", "Video", "probe", "process", "read_frames"]

Work = Callable[[Planes], Planes]

COPIED = ("video", "audio", "subtitle", "attachment")  # kinds of streams that are copied beside the film
DEPTH = 3  # frames that wait between two stages


class _Decoder(threading.Thread):
    """Decodes, and waits where others are behind."""

    def __init__(
        self, path: str | Path, container: Any, stream: Any, others: Sequence[Any], count: int | None
    ) -> None:
        super().__init__(name="undula-decode", daemon=True)
        self.path, self.container, self.stream, self.count = path, container, stream, count
        self.streams = [stream, *others]
        self.times = frame_times(path, stream.index) if times_are_guessed(container, stream) else None
        self.queue: Queue[tuple[str, Any]] = Queue(DEPTH)
        self.stopped = threading.Event()

    def _put(self, item: tuple[str, Any]) -> bool:
        while not self.stopped.is_set():
            try:
                self.queue.put(item, timeout=0.1)
            except Full:
                continue
            return True
        return False

    def _time(self, number: int, pts: int | None, last: int | None) -> int:
        """When a frame is shown: later than the one before it, whatever a broken container says."""
        if self.times is not None and number < len(self.times):
            pts = self.times[number]
        if pts is None or (last is not None and pts <= last):
            return 0 if last is None else last + 1
        return pts

    def run(self) -> None:
        number, first, last = 0, None, None
        span = DecodedSpan(self.path, self.container, self.stream)
        try:
            for packet in self.container.demux(self.streams):
                if packet.stream is not self.stream:
                    if packet.size and not self._put(("packet", packet)):
                        return
                    continue
                for frame in packet.decode():
                    if self.count is not None and number >= self.count:
                        self._put(("end", None))
                        return
                    span.add(frame)
                    number += 1
                    size = frame.width, frame.height, frame.format.name
                    if size != (first := first or size):
                        raise FileError(
                            "frames change from {} × {} of {} to {} × {} of {} on the way; convert the"
                            " video to one size and format first".format(*first, *size)
                        )
                    pts, base, pixels = frame.pts, frame.time_base, filterable_format(frame.format.name)
                    if frame.format.name != pixels:
                        frame = frame.reformat(format=pixels)
                    last = frame.pts = self._time(number - 1, pts, last)
                    frame.time_base = base
                    if not self._put(("frame", frame)):
                        return
            if number and number != self.count:
                span.check_end()
            self._put(("end", None))
        except UndulaError as error:  # (raised again where frames are waited for)
            self._put(("error", error))
        except Exception as error:
            self._put(("error", decode_error(self.path, number, error)))

    def items(self) -> Iterator[tuple[str, Any]]:
        while True:
            try:
                kind, item = self.queue.get(timeout=0.5)
            except Empty:
                if not self.is_alive() and self.queue.empty():
                    return
                continue
            if kind == "end":
                return
            if kind == "error":
                raise item
            yield kind, item


def process(
    source: str | Path,
    target: str | Path,
    work: Work,
    *,
    over_time: int = 0,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    codec: str | None = None,
    quality: int = 18,
    preset: str = "veryfast",
    audio: bool = True,
    count: int | None = None,
    max_pixels: int | None = None,
) -> int:
    """Filters a video into another file.

    Parameters
    ----------
    source : path, or ``camera:0``
    target : path
        The suffix says which container: mp4, m4v, mkv, mov, avi, webm.
    work : callable
        Gets the planes of a frame, brightness first, and gives others of the same shapes and dtypes; with
        ``over_time``, planes of so many frames, each with one more axis in front.
    over_time : int
        Frames that are filtered together, half of them again with the next ones; 0 for one by one.
    workers : int, optional
        Frames that are worked on at once.
    progress : callable, optional
        Is told how many frames are done.
    codec : str, optional
        An encoder of FFmpeg's. By default that of the container which keeps the frames: H.264; MPEG-4 or
        Motion JPEG in AVI, VP9 or AV1 in WebM, FFV1 in Matroska and AVI if the source is lossless.
    quality : int
        Constant quality, from 0, the best, to 63.
    preset : str
        How much libx264 and libx265 try: ``"ultrafast"`` to ``"placebo"``.
    audio : bool
        Whether other streams are copied: sound, subtitles, cover art, attachments and other films.
    count : int, optional
        The most frames to take.
    max_pixels : int, optional
        The most pixels that a frame may have.

    Returns
    -------
    int
        How many frames were written.

    Raises
    ------
    FileError
        For what cannot be read or written, and for what would be lost: depth, colour resolution, opacity,
        range, orientation or time stamps that the codec or the container does not keep; for a film that ends
        clearly before the end that its file declares.

    Notes
    -----
    Of several video streams the film is filtered: the default one of those with more than one frame.
    """
    target = Path(target)
    if target.suffix.lower() not in VIDEOS:
        raise FileError(f"a video is written as {', '.join(VIDEOS)}; got {target.name!r}")
    if not str(source).startswith("camera:") and same_file(Path(source), target):
        raise FileError(f"{target} is the input; give the output another name")
    if over_time and over_time < 4:
        raise ArgumentError(f"frames are filtered together by 4 or more, got {over_time}")
    check_options(quality, preset)
    container, film = open_video(source, max_pixels)
    done = 0
    with container, atomic_write(target) as beside:
        others = [s for s in container.streams if s is not film and s.type in COPIED] if audio else []
        decoder = _Decoder(source, container, film, others, count)
        out: VideoWriter | None = None
        held: list[Any] = []  # packets that come before the first frame
        try:
            decoder.start()
            for kind, item in _filtered(decoder.items(), work, over_time, workers):
                if out is None and kind == "packet":
                    held.append(item)
                    continue
                if out is None:
                    out = VideoWriter(
                        beside, target, Path(source), container, film, item, others, codec, quality, preset
                    )
                    out.start(held)
                if kind == "packet":
                    out.copy(item)
                    continue
                out.encode(item)
                done += 1
                if progress is not None:
                    progress(done)
            if out is None:
                raise FileError(f"{source} has no frames that could be decoded")
            out.finish()
        except BaseException as error:
            if out is not None:
                out.abandon()
            if isinstance(error, UndulaError | OSError) or not isinstance(error, Exception):
                raise
            muxed = isinstance(error, import_optional("av").error.FFmpegError)  # (and no error of the filter)
            advice = "; write .mkv, or the film alone (audio=False, --no-audio)" if muxed else ""
            raise FileError(f"cannot filter {source} into {target}: {reason(error)}{advice}") from None
        finally:
            decoder.stopped.set()
            if decoder.ident is not None:
                decoder.join()
    return done


def _filtered(
    items: Iterator[tuple[str, Any]], work: Work, over_time: int, workers: int | None
) -> Iterator[tuple[str, Any]]:
    """Frames with filtered planes, in their order; packets pass by."""
    from ..backends.cpu import get_num_threads

    if over_time:
        yield from _over_time(items, work, over_time)
        return

    def one(frame: Any) -> Any:
        return replace_planes(frame, work(copy_planes(frame)))

    count = workers or get_num_threads()
    waiting: deque[tuple[str, Any]] = deque()
    with ThreadPoolExecutor(count, "undula-filter") as pool:
        try:
            for kind, item in items:
                waiting.append((kind, pool.submit(one, item) if kind == "frame" else item))
                while sum(k == "frame" for k, _ in waiting) > count or (
                    waiting and waiting[0][0] == "packet"
                ):
                    yield _ready(waiting.popleft())
            while waiting:
                yield _ready(waiting.popleft())
        finally:
            for kind, item in waiting:
                if kind == "frame":
                    item.cancel()


def _ready(item: tuple[str, Any]) -> tuple[str, Any]:
    return (item[0], item[1].result()) if item[0] == "frame" else item


def _over_time(items: Iterator[tuple[str, Any]], work: Work, length: int) -> Iterator[tuple[str, Any]]:
    """Windows of frames that overlap by half, each fading into the next."""
    hop = length // 2
    frames: list[Any] = []
    stacks: list[Planes] = []  # of the frames that are waiting
    before: list[Planes] | None = None  # what the last window made of its second half

    def window(final: bool) -> Iterator[tuple[str, Any]]:
        nonlocal frames, stacks, before
        made = work([np.stack([one[k] for one in stacks]) for k in range(len(stacks[0]))])
        results = [[plane[t] for plane in made] for t in range(len(stacks))]
        for t, old in enumerate(before or []):
            share = (t + 1) / (len(before or []) + 1)
            for k, plane in enumerate(results[t]):
                mixed = old[k] + (plane.astype(np.float32) - old[k]) * np.float32(share)
                results[t][k] = np.round(mixed).astype(plane.dtype)
        out = len(stacks) if final else hop
        for frame, planes in zip(frames[:out], results[:out], strict=True):
            yield "frame", replace_planes(frame, planes)
        before = None if final else results[hop:]
        frames, stacks = frames[out:], stacks[out:]

    for kind, item in items:
        if kind == "packet":
            yield kind, item
            continue
        frames.append(item)
        stacks.append(copy_planes(item))
        if len(stacks) == length:
            yield from window(final=False)
    if stacks:
        yield from window(final=True)
