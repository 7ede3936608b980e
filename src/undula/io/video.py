"""Filter videos: decode, filter and encode at the same time, in memory that does not grow.

    decode (a thread) ─▶ queue ─▶ filter (several frames at once, in their order) ─▶ encode

Frames stay in the planes that they are stored in, such as luma and chroma. Other streams, time stamps and
metadata are copied. The queues are short, so that a fast stage waits for a slow one.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any

import numpy as np

from ..errors import ArgumentError, FileError, FormatWarning, UndulaError
from .cutting import Cut
from .decoded_span import DecodedSpan
from .decoder import (
    Planes,
    Video,
    copy_planes,
    find_frame,
    frame_decoder,
    frame_times,
    mended_times,
    open_video,
    probe,
    read_frames,
    replace_planes,
    times_are_guessed,
)
from .encoder import VideoWriter
from .encoder_choice import check_options
from .files import VIDEOS, OnlyWritable, atomic_write, import_optional, same_file, short_message
from .pixel_formats import filterable_format
from .video_sources import VideoSource, Y4MReader, decode_error, is_live

__all__ = ["Planes", "Video", "probe", "process", "read_frames"]

Work = Callable[[Planes], Planes]
Stream = Callable[[Iterator[Planes]], Iterator[Planes]]

COPIED_STREAM_TYPES = ("video", "audio", "subtitle", "attachment")
COVER_ART = 1 << 10  # AV_DISPOSITION_ATTACHED_PIC
MAX_INTERLEAVING_SECONDS = 2  # How much later than a frame a packet of the same time may be stored.
QUEUE_FRAMES = 3
MIN_INTERVAL = Fraction(1, 1000)  # Between frames, in seconds: the unit of times in Matroska.
MIN_WINDOW_FRAMES = 4

# A frame or packet on its way through the stages, with its kind: "frame", "packet", "end" or "error".
Item = tuple[str, Any]


class _DecodingThread(threading.Thread):
    """Decodes one stream, demuxes others, and waits while the queue is full."""

    def __init__(
        self,
        path: VideoSource,
        container: Any,
        stream: Any,
        others: Sequence[Any],
        count: int | None,
        start: float,
        duration: float | None,
        max_pixels: int | None,
    ) -> None:
        super().__init__(name="undula-decode", daemon=True)
        self.path, self.container, self.stream, self.count = path, container, stream, count
        self.decoder = frame_decoder(stream, max_pixels)
        self.streams = [stream, *others]
        self.times = frame_times(path, stream.index) if times_are_guessed(container, stream) else None
        self.mended = mended_times(path, stream)
        base = Fraction(stream.time_base or 1)
        rate = stream.average_rate or stream.guessed_rate
        self.least_step = math.ceil(MIN_INTERVAL / base)
        self.interval = max(self.least_step, round(1 / (rate * base))) if rate else self.least_step
        self.queue: Queue[Item] = Queue(QUEUE_FRAMES)
        self.stopped = threading.Event()
        self.number = 0  # Frames decoded.
        self.taken = 0  # Frames of the part that is filtered.
        self.last: int | None = None  # The time of the last frame.
        self.first: tuple[int, int, str] | None = None  # The size and format of the first frame.
        self.started: set[int] = set()  # Streams of which packets were passed on.
        self.packets_until_key = 0  # Packets of the main stream that need not be decoded, and one.
        self.cut = self._exact_cut(start, duration)

    def _exact_cut(self, start: float, duration: float | None) -> Cut | None:
        """Return the part that begins with a frame, and find out which packets need not be decoded."""
        base = Fraction(self.stream.time_base or 1)
        times = self.times or sorted(chain(*self.mended.values()))
        cut = Cut.of(start, duration, base * (times[0] if times else self.stream.start_time or 0))
        if cut is None or not start:
            return cut
        first: Fraction | None
        if times:
            first = next((time * base for time in times if not cut.is_before(time * base)), None)
        elif is_live(self.path):
            first = cut.rounded_up(base)
        else:
            number, first = find_frame(self.path, self.stream.index, cut)
            self.packets_until_key = number + 1
        return cut.beginning(first) if first is not None else cut

    def _put(self, item: Item) -> bool:
        while not self.stopped.is_set():
            try:
                self.queue.put(item, timeout=0.1)
            except Full:
                continue
            return True
        return False

    def _time(self, pts: int | None) -> int:
        """Return the time of a frame, which is after the last one even if the container is damaged."""
        last = self.last
        if self.times is not None and self.number < len(self.times):
            pts = self.times[self.number]
        if pts is not None and self.mended.get(pts):
            pts = self.mended[pts].pop(0)
        if pts is None:
            return 0 if last is None else last + self.interval
        return pts if last is None or pts > last else last + self.least_step

    def run(self) -> None:
        try:
            self._decode()
            self._put(("end", None))
        except UndulaError as error:  # items() raises it again.
            self._put(("error", error))
        except BaseException as error:  # Without an item, the video would seem to end here.
            self._put(("error", decode_error(self.path, self.number, error)))

    def _decode(self) -> None:
        span = DecodedSpan(self.path, self.container, self.stream)
        packets = self.container.demux(self.streams)
        for packet in packets:
            if packet.stream is not self.stream:
                if not self._put_packet(packet):
                    return
            elif self._is_needed(packet) and not self._decode_packet(packet, span):
                self._put_rest(packets)
                return
        if self.taken and self.taken != self.count:
            span.check_end()

    def _is_needed(self, packet: Any) -> bool:
        """Return whether a packet is needed to decode the frames of the part."""
        self.packets_until_key = max(0, self.packets_until_key - 1)
        return not self.packets_until_key or not packet.size

    def _decode_packet(self, packet: Any, span: DecodedSpan) -> bool:
        """Decode a packet; return False after the last frame that is needed."""
        for frame in self.decoder.decode(packet):
            if self.count is not None and self.taken >= self.count:
                return False
            pts, base = self._time(frame.pts), frame.time_base
            self.last, self.number = pts, self.number + 1
            if self.cut is not None and self.cut.is_before(pts * base):
                continue
            if self.cut is not None and self.cut.is_after(pts * base):
                return False
            span.add(frame)
            size = frame.width, frame.height, frame.format.name
            if size != (first := self.first or size):
                raise FileError(
                    "frames change from {} × {} of {} to {} × {} of {}; convert the video to one size"
                    " and format first".format(*first, *size)
                )
            self.first = first
            pixels = filterable_format(frame.format.name)
            if frame.format.name != pixels:
                frame = frame.reformat(format=pixels)
            frame.pts = self.cut.shifted(pts, base) if self.cut is not None else pts
            frame.time_base = base
            self.taken += 1
            if not self._put(("frame", frame)):
                return False
        return True

    def _put_packet(self, packet: Any) -> bool:
        """Pass on a packet of another stream, if it belongs to the part; return False to stop."""
        if not packet.size:
            return True
        stream = packet.stream
        if self.cut is not None and not (stream.type == "video" and stream.disposition & COVER_ART):
            # A stream of video can be decoded from a key frame only.
            is_start = stream.index in self.started or stream.type != "video" or packet.is_keyframe
            if not is_start or not self.cut.take(packet):
                return True
            self.started.add(stream.index)
        return self._put(("packet", packet))

    def _put_rest(self, packets: Iterator[Any]) -> None:
        """Pass on packets that are stored after the last frame of a part, and belong to it."""
        if self.cut is None or self.cut.end is None:
            return
        end = self.cut.end + MAX_INTERLEAVING_SECONDS
        for packet in packets:
            time = packet.dts if packet.dts is not None else packet.pts
            is_late = time is not None and time * packet.time_base > end
            if is_late or (packet.stream is not self.stream and not self._put_packet(packet)):
                return

    def describe_end(self) -> str:
        """Say when the last decoded frame is shown, in seconds from the first one."""
        origin = self.stream.start_time or 0
        return f"the last one is at {float(((self.last or 0) - origin) * self.stream.time_base):.2f} s"

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
    source: str | Path | Any,
    target: str | Path | Any,
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
    start: float = 0.0,
    duration: float | None = None,
    max_pixels: int | None = None,
) -> int:
    """Filter a video into another file.

    Parameters
    ----------
    source : path, ``camera:0``, or file object
        From a binary file object, such as ``sys.stdin.buffer``, Y4M is read.
    target : path or file object
        The suffix determines the container; ``undula.io.VIDEOS`` lists them. To a binary file object, such as
        ``sys.stdout.buffer``, Y4M is written.
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
        An encoder of FFmpeg, or ``"copy-like"`` for one with the codec, the pixel format and the depth of the
        source. By default, one for the container that keeps the frames: H.264, and HEVC for HDR; MPEG-4 or
        Motion JPEG in AVI, VP9 or AV1 in WebM, MPEG-2 in MPG and MXF, ProRes in MXF for more than 8 bits, and
        FFV1 in Matroska and AVI if the source is lossless. RGB is converted, with a warning, if none of them
        stores it.
    quality : int, default 18
        A constant quality, from 0, the best, to 63.
    preset : str, default "veryfast"
        The effort of libx264 and libx265: ``"ultrafast"`` to ``"placebo"``.
    audio : bool, default True
        Whether to copy other streams: audio, subtitles, cover art, attachments and other videos.
    count : int, optional
        The maximum number of frames.
    start : float, default 0.0
        The time of the first frame, in seconds from the first one of the source. The result begins at 0.
    duration : float, optional
        In seconds; by default to the end. Other streams and chapters are cut alike.
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

    Warns
    -----
    FormatWarning
        If streams were converted, or if the container cannot store chapters, tags, subtitles and so on.

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
    if (work is None) == (stream is None):
        raise ArgumentError("expected either work, for single frames or windows of them, or stream")
    if stream is not None and over_time:
        raise ArgumentError("over_time is for work; a stream reads as many frames as it needs")
    check_window(over_time)
    check_options(quality, preset)
    to_file = not hasattr(target, "write")
    path = Path(target) if to_file else Path("output.y4m")
    if hasattr(source, "read") and not isinstance(source, Y4MReader):
        source = Y4MReader(source)
    if path.suffix.lower() not in VIDEOS:
        raise FileError(f"a video is written as {', '.join(VIDEOS)}; got {path.name!r}")
    if to_file and not is_live(source) and same_file(Path(str(source)), path):
        raise FileError(f"{path} is the input; choose another output")
    Cut.of(start, duration, Fraction(0))  # Raises an error for wrong times before a file is opened.
    container, main = open_video(source, max_pixels)
    with container, atomic_write(path) if to_file else nullcontext(OnlyWritable(target)) as destination:
        others = [s for s in container.streams if audio and s is not main and s.type in COPIED_STREAM_TYPES]
        decoder = _DecodingThread(source, container, main, others, count, start, duration, max_pixels)
        items = decoder.items()
        if over_time and work is not None:
            stream = partial(filter_windows, work=work, length=over_time)
        if stream is not None:
            filtered = _filter_stream(items, stream)
        else:
            assert work is not None
            filtered = _filter_frames(items, work, workers)

        def open_writer(first: Any) -> VideoWriter:
            options = codec, quality, preset, decoder.cut
            return VideoWriter(destination, path, source, container, main, first, others, *options)

        try:
            decoder.start()
            writer, written = _write_items(filtered, open_writer, progress)
            if writer is None and decoder.cut is not None and decoder.number:
                raise FileError(
                    f"{source} has no frames {_describe_part(start, duration)}; {decoder.describe_end()}"
                )
            if writer is None:
                raise FileError(f"no frame of {source} can be decoded")
            writer.check(None if isinstance(destination, OnlyWritable) else destination)
        except BaseException as error:
            if isinstance(error, UndulaError | OSError) or not isinstance(error, Exception):
                raise
            muxed = isinstance(error, import_optional("av").error.FFmpegError)  # Not an error of the filter.
            choices = ["write .mkv"] * (path.suffix.lower() != ".mkv")
            choices += ["write the main video stream alone with audio=False"] * bool(others)
            advice = f"; {', or '.join(choices)}" if muxed and choices else ""
            name = path if to_file else "standard output"
            raise FileError(f"cannot filter {source} into {name}: {short_message(error)}{advice}") from None
        finally:
            # Otherwise the garbage collector closes it and waits for its threads, which is a deadlock if the
            # collector was called by a thread that is being started.
            filtered.close()
            decoder.stopped.set()
            if decoder.ident is not None:
                decoder.join()
    _warn_of_losses(writer)
    return written


def _describe_part(start: float, duration: float | None) -> str:
    return f"from {start:g} s on" if duration is None else f"between {start:g} s and {start + duration:g} s"


def _write_items(
    filtered: Iterator[Item],
    open_writer: Callable[[Any], VideoWriter],
    progress: Callable[[int], None] | None,
) -> tuple[VideoWriter | None, int]:
    """Write frames and packets; return the writer, which is None without frames, and the number of frames."""
    writer: VideoWriter | None = None
    written = 0
    early: list[Any] = []  # Packets before the first frame.
    try:
        for kind, item in filtered:
            if writer is None and kind == "packet":
                early.append(item)
                continue
            if writer is None:
                writer = open_writer(item)
                writer.start(early)
            if kind == "packet":
                writer.copy(item)
                continue
            writer.encode(item)
            written += 1
            if progress is not None:
                progress(written)
        if writer is not None:
            writer.finish()
    except BaseException:
        if writer is not None:
            writer.abandon()
        raise
    return writer, written


def _warn_of_losses(writer: VideoWriter) -> None:
    """Name in one warning what was converted, and what is missing from the result."""
    messages = list(writer.notes)
    if writer.dropped:
        names = ", ".join(dict.fromkeys(writer.dropped))
        format_name = f"{writer.target.suffix} with {writer.encoder}"
        messages.append(f"written without {names}, which {format_name} cannot store")
    if messages:
        warnings.warn(f"{writer.name}: {'; '.join(messages)}", FormatWarning, stacklevel=3)


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
