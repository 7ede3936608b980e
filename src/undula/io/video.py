"""Filter videos: decode, filter and encode at the same time, in memory that does not grow.

    decode (a thread) ─▶ queue ─▶ filter (several frames at once, in their order) ─▶ encode

Frames stay in the planes that they are stored in, such as luma and chroma. Other streams, time stamps and
metadata are copied. The queues are short, so that a fast stage waits for a slow one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
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
    replace_planes,
    times_are_guessed,
)
from .encoder import VideoWriter, check_options
from .files import VIDEOS, atomic_write, import_optional, same_file, short_message

__all__ = ["Planes", "Video", "probe", "process", "read_frames"]

Work = Callable[[Planes], Planes]
Stream = Callable[[Iterator[Planes]], Iterator[Planes]]

COPIED_STREAM_TYPES = ("video", "audio", "subtitle", "attachment")
QUEUE_FRAMES = 3
MIN_WINDOW_FRAMES = 4

# A frame or packet on its way through the stages, with its kind: "frame", "packet", "end" or "error".
Item = tuple[str, Any]


class _DecodingThread(threading.Thread):
    """Decodes one stream, demuxes others, and waits while the queue is full."""

    def __init__(
        self, path: str | Path, container: Any, stream: Any, others: Sequence[Any], count: int | None
    ) -> None:
        super().__init__(name="undula-decode", daemon=True)
        self.path, self.container, self.stream, self.count = path, container, stream, count
        self.streams = [stream, *others]
        self.times = frame_times(path, stream.index) if times_are_guessed(container, stream) else None
        self.queue: Queue[Item] = Queue(QUEUE_FRAMES)
        self.stopped = threading.Event()
        self.number = 0  # Frames decoded.

    def _put(self, item: Item) -> bool:
        while not self.stopped.is_set():
            try:
                self.queue.put(item, timeout=0.1)
            except Full:
                continue
            return True
        return False

    def _time(self, pts: int | None, last: int | None) -> int:
        """Return the time of a frame, which is after the last one even if the container is damaged."""
        if self.times is not None and self.number < len(self.times):
            pts = self.times[self.number]
        if pts is None or (last is not None and pts <= last):
            return 0 if last is None else last + 1
        return pts

    def run(self) -> None:
        try:
            self._decode()
            self._put(("end", None))
        except UndulaError as error:  # items() raises it again.
            self._put(("error", error))
        except Exception as error:
            self._put(("error", decode_error(self.path, self.number, error)))

    def _decode(self) -> None:
        first, last = None, None
        span = DecodedSpan(self.path, self.container, self.stream)
        for packet in self.container.demux(self.streams):
            if packet.stream is not self.stream:
                if packet.size and not self._put(("packet", packet)):
                    return
                continue
            for frame in packet.decode():
                if self.count is not None and self.number >= self.count:
                    return
                span.add(frame)
                size = frame.width, frame.height, frame.format.name
                if size != (first := first or size):
                    raise FileError(
                        "frames change from {} × {} of {} to {} × {} of {}; convert the video to one size"
                        " and format first".format(*first, *size)
                    )
                pts, base, pixels = frame.pts, frame.time_base, filterable_format(frame.format.name)
                if frame.format.name != pixels:
                    frame = frame.reformat(format=pixels)
                last = frame.pts = self._time(pts, last)
                frame.time_base = base
                self.number += 1
                if not self._put(("frame", frame)):
                    return
        if self.number and self.number != self.count:
            span.check_end()

    def items(self) -> Iterator[Item]:
        """Iterate over frames and packets in the order of the file."""
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
    work: Work | None = None,
    *,
    stream: Stream | None = None,
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
    """Filter a video into another file.

    Parameters
    ----------
    source : path
        The file, or ``camera:0`` for a camera.
    target : path
        The suffix determines the container: mp4, m4v, mkv, mov, avi or webm.
    work : callable, optional
        Takes the list of planes of a frame, luma first, and returns planes of the same shapes and dtypes.
        With ``over_time``, each plane has an axis of frames in front.
    stream : callable, optional
        In place of ``work``: takes an iterator over such lists, and returns an iterator over as many. It may
        read some frames ahead.
    over_time : int, default 0
        The number of frames that are filtered together, at least 4, in windows that overlap by half; 0 to
        filter each frame independently.
    workers : int, optional
        The number of frames that are filtered at the same time; by default up to 4.
    progress : callable, optional
        Called with the number of frames done.
    codec : str, optional
        An encoder of FFmpeg. By default, one for the container that keeps the frames: H.264; MPEG-4 or Motion
        JPEG in AVI, VP9 or AV1 in WebM, and FFV1 in Matroska and AVI if the source is lossless.
    quality : int, default 18
        A constant quality, from 0, the best, to 63.
    preset : str, default "veryfast"
        The effort of libx264 and libx265: ``"ultrafast"`` to ``"placebo"``.
    audio : bool, default True
        Whether to copy other streams: audio, subtitles, cover art, attachments and other videos.
    count : int, optional
        The maximum number of frames.
    max_pixels : int, optional
        The maximum number of pixels in a frame; by default 100 million.

    Returns
    -------
    int
        The number of frames written.

    Raises
    ------
    FileError
        If a file cannot be read or written; if the codec or the container does not keep the depth, chroma
        resolution, alpha, range, orientation or time stamps; or if the video ends clearly before the end that
        its file declares.

    Notes
    -----
    If there are several video streams, the default one of those with more than one frame is filtered.

    Examples
    --------
    >>> import tempfile
    >>> from undula import io
    >>> target = f"{tempfile.mkdtemp()}/inverted.mp4"
    >>> io.process(io.sample("clip"), target, lambda planes: [255 - planes[0], *planes[1:]], count=3)
    3
    """
    target = Path(target)
    if target.suffix.lower() not in VIDEOS:
        raise FileError(f"a video is written as {', '.join(VIDEOS)}; got {target.name!r}")
    if not str(source).startswith("camera:") and same_file(Path(source), target):
        raise FileError(f"{target} is the input; choose another output")
    if (work is None) == (stream is None):
        raise ArgumentError("expected either work, for single frames or windows of them, or stream")
    if stream is not None and over_time:
        raise ArgumentError("over_time is for work; a stream reads as many frames as it needs")
    check_window(over_time)
    check_options(quality, preset)
    container, main = open_video(source, max_pixels)
    written = 0
    with container, atomic_write(target) as temporary:
        others = [s for s in container.streams if audio and s is not main and s.type in COPIED_STREAM_TYPES]
        decoder = _DecodingThread(source, container, main, others, count)
        writer: VideoWriter | None = None
        early: list[Any] = []  # Packets before the first frame.
        items = decoder.items()
        if over_time and work is not None:
            stream = partial(filter_windows, work=work, length=over_time)
        if stream is not None:
            filtered = _filter_stream(items, stream)
        else:
            assert work is not None
            filtered = _filter_frames(items, work, workers)
        try:
            decoder.start()
            for kind, item in filtered:
                if writer is None and kind == "packet":
                    early.append(item)
                    continue
                if writer is None:
                    writer = VideoWriter(
                        temporary, target, Path(source), container, main, item, others, codec, quality, preset
                    )
                    writer.start(early)
                if kind == "packet":
                    writer.copy(item)
                    continue
                writer.encode(item)
                written += 1
                if progress is not None:
                    progress(written)
            if writer is None:
                raise FileError(f"no frame of {source} can be decoded")
            writer.finish()
        except BaseException as error:
            if writer is not None:
                writer.abandon()
            if isinstance(error, UndulaError | OSError) or not isinstance(error, Exception):
                raise
            muxed = isinstance(error, import_optional("av").error.FFmpegError)  # Not an error of the filter.
            advice = "; write .mkv, or the main video stream alone (audio=False, --no-audio)" if muxed else ""
            raise FileError(f"cannot filter {source} into {target}: {short_message(error)}{advice}") from None
        finally:
            # Otherwise the garbage collector closes it and waits for its threads, which is a deadlock if the
            # collector was called by a thread that is being started.
            filtered.close()
            decoder.stopped.set()
            if decoder.ident is not None:
                decoder.join()
    return written


def _filter_frames(items: Iterator[Item], work: Work, workers: int | None) -> Generator[Item]:
    """Replace the planes of frames by filtered ones; frames and packets stay in their order."""
    from ..engines.threads import frame_workers, share_of_threads

    def filter_frame(frame: Any) -> Any:
        with share_of_threads(count):
            return replace_planes(frame, work(copy_planes(frame)))

    def finished(kind: str, item: Any) -> Item:
        return kind, item.result() if kind == "frame" else item

    count = workers or frame_workers()
    waiting: deque[Item] = deque()
    with ThreadPoolExecutor(count, "undula-filter") as pool:
        try:
            for kind, item in items:
                waiting.append((kind, pool.submit(filter_frame, item) if kind == "frame" else item))
                while sum(k == "frame" for k, _ in waiting) > count or (
                    waiting and waiting[0][0] == "packet"
                ):
                    yield finished(*waiting.popleft())
            while waiting:
                yield finished(*waiting.popleft())
        finally:
            for kind, item in waiting:
                if kind == "frame":
                    item.cancel()


def _filter_stream(items: Iterator[Item], stream: Stream) -> Generator[Item]:
    """Pass the planes of frames through a stream; packets between frames come before the next result."""
    frames: deque[Any] = deque()
    packets: list[Item] = []

    def planes() -> Iterator[Planes]:
        for kind, item in items:
            if kind == "packet":
                packets.append((kind, item))
                continue
            frames.append(item)
            yield copy_planes(item)

    for result in stream(planes()):
        yield from packets
        packets.clear()
        yield "frame", replace_planes(frames.popleft(), result)
    yield from packets
    if frames:
        raise ArgumentError(f"the stream ended {len(frames)} frames before the video")


def filter_windows(frames: Iterator[Planes], work: Work, length: int) -> Iterator[Planes]:
    """Filter frames in windows of some length that overlap by half, each fading into the next."""
    hop = length // 2
    originals: list[Planes] = []
    overlap: list[Planes] = []  # Results of the last window for the first half of this one.

    def filter_window(final: bool) -> Iterator[Planes]:
        nonlocal originals, overlap
        stacks = work([np.stack(planes) for planes in zip(*originals, strict=True)])
        results = [[stack[t] for stack in stacks] for t in range(len(originals))]
        for t, before in enumerate(overlap):
            weight = np.float32((t + 1) / (len(overlap) + 1))
            for k, plane in enumerate(results[t]):
                mixed = before[k] + (plane.astype(np.float32) - before[k]) * weight
                results[t][k] = np.round(mixed).astype(plane.dtype)
        count = len(originals) if final else hop
        yield from results[:count]
        overlap = [] if final else results[hop:]
        originals = originals[count:]

    for planes in frames:
        originals.append(planes)
        if len(originals) == length:
            yield from filter_window(final=False)
    if originals:
        yield from filter_window(final=True)


def check_window(over_time: int) -> None:
    """Raise an error if windows of so many frames are too short."""
    if over_time and over_time < MIN_WINDOW_FRAMES:
        raise ArgumentError(f"over_time must be 0, or {MIN_WINDOW_FRAMES} or more; got {over_time}")
