"""Video: decoding, filtering and encoding at the same time, in memory that does not grow.

    decode (a thread) ─▶ queue ─▶ filter (several frames at once, in their order) ─▶ encode

Frames stay in the planes that they are kept in, brightness and colour differences; other streams, time stamps
and metadata are copied. Queues are short: whoever is ahead waits.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, FileError, UndulaError
from .files import VIDEOS, check_size, needed, same_file, written

__all__ = ["Planes", "Video", "look", "process", "read_frames"]

Array = NDArray[Any]
Planes = list[Array]
Work = Callable[[Planes], Planes]

# What frames may be kept in while they are filtered: planes of 8 bits, or of 9 to 16 in two bytes.
PLANAR = ("yuv420p", "yuv422p", "yuv444p", "yuvj420p", "yuvj422p", "yuvj444p", "gray", "gbrp")
DEEP = tuple(
    f"{name}{bits}le" for bits in (10, 12, 16) for name in ("yuv420p", "yuv422p", "yuv444p", "gray", "gbrp")
)
LOSSLESS = ("ffv1", "huffyuv", "ffvhuff", "utvideo", "rawvideo", "png", "magicyuv")  # what loses nothing
CODECS = {"mp4": "libx264", "matroska": "libx264", "mov": "libx264", "avi": "mpeg4", "webm": "libvpx-vp9"}
DEPTH = 3  # frames that wait between two stages


@dataclass(frozen=True)
class Video:
    """What is known of a video before it is decoded."""

    path: str
    width: int
    height: int
    frames: int
    rate: float
    seconds: float
    pixels: str
    codec: str
    container: str
    audio: tuple[str, ...]

    @property
    def bits(self) -> int:
        """Of a sample."""
        return _bits(self.pixels)


def _bits(pixels: str) -> int:
    for bits in (9, 10, 12, 14, 16):
        if f"p{bits}" in pixels or f"gray{bits}" in pixels:
            return bits
    return 8


def _source(path: str | Path) -> tuple[str, dict[str, Any]]:
    """A file, or a camera by number: ``camera:0``."""
    text = str(path)
    if not text.startswith("camera:"):
        return text, {}
    number = text.partition(":")[2] or "0"
    if not number.isdigit():
        raise FileError(f"cameras are camera:0, camera:1, …; got {text!r}")
    if sys.platform == "darwin":
        return number, {"format": "avfoundation"}
    if sys.platform == "win32":
        return f"video={number}", {"format": "dshow"}
    return f"/dev/video{number}", {"format": "v4l2"}


def _open(path: str | Path, max_pixels: int | None) -> tuple[Any, Any]:
    """A container and its video stream."""
    av = needed("av")
    name, options = _source(path)
    if not options:
        size = Path(name).stat().st_size if Path(name).exists() else -1
        if size < 0:
            raise FileError(f"cannot read {path}: there is no such file")
        if size == 0:
            raise FileError(f"{path} is empty")
    try:
        container = av.open(name, **options)
    except Exception as error:  # (FFmpeg has an error for everything)
        raise FileError(f"cannot read {path} as a video: {_reason(error)}") from None
    if not container.streams.video:
        container.close()
        raise FileError(f"{path} has no pictures in it")
    stream = container.streams.video[0]
    stream.thread_type = "AUTO"
    try:
        check_size(Path(name), stream.codec_context.width * stream.codec_context.height, max_pixels)
    except UndulaError:
        container.close()
        raise
    return container, stream


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:160]


def look(path: str | Path, max_pixels: int | None = None) -> Video:
    """What a video is: sizes, rate, codec, how many frames its container tells of."""
    container, stream = _open(path, max_pixels)
    with container:
        context = stream.codec_context
        rate = float(stream.average_rate or stream.guessed_rate or 0)
        seconds = 0.0
        if stream.duration is not None and stream.time_base is not None:
            seconds = float(stream.duration * stream.time_base)
        elif container.duration is not None:
            seconds = container.duration / 1e6
        return Video(
            str(path),
            int(context.width),
            int(context.height),
            int(stream.frames or round(seconds * rate)),
            rate,
            seconds,
            str(context.pix_fmt or "unknown"),
            str(context.name),
            str(container.format.name),
            tuple(str(other.codec_context.name) for other in container.streams.audio),
        )


def read_frames(path: str | Path, count: int | None = None, max_pixels: int | None = None) -> Iterator[Array]:
    """Frames as ``(H, W, 3)`` of 8 bits, one after the other; of a video or of a camera."""
    container, stream = _open(path, max_pixels)
    with container:
        number = 0
        try:
            for frame in container.decode(stream):
                if count is not None and number >= count:
                    return
                yield frame.to_ndarray(format="rgb24")
                number += 1
        except UndulaError:
            raise
        except Exception as error:  # (of a decoder, whatever it is)
            raise FileError(f"cannot read frame {number} of {path}: {_reason(error)}") from None


def _planes(frame: Any) -> Planes:
    """The planes of a frame, copied out of it."""
    found = []
    for plane in frame.planes:
        dtype = np.dtype(np.uint8 if _bits(frame.format.name) == 8 else "<u2")
        row = plane.line_size // dtype.itemsize
        whole = np.frombuffer(plane, dtype, row * plane.height).reshape(plane.height, row)
        found.append(np.ascontiguousarray(whole[:, : plane.width]))
    return found


def _filled(frame: Any, planes: Planes) -> Any:
    """The frame with other planes; its time and everything else stay."""
    for plane, values in zip(frame.planes, planes, strict=True):
        row = plane.line_size // values.itemsize
        padded = np.zeros((plane.height, row), values.dtype)
        padded[:, : plane.width] = values
        plane.update(padded)
    return frame


class _Decoder(threading.Thread):
    """Decodes, and waits where others are behind."""

    def __init__(
        self, container: Any, stream: Any, format_: str, others: Sequence[Any], count: int | None
    ) -> None:
        super().__init__(name="undula-decode", daemon=True)
        self.container, self.stream, self.format = container, stream, format_
        self.others, self.count = [stream, *others], count
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

    def run(self) -> None:
        try:
            number = 0
            for packet in self.container.demux(self.others):
                if packet.stream is not self.stream:
                    if packet.dts is not None and not self._put(("packet", packet)):
                        return
                    continue
                for frame in packet.decode():
                    if self.count is not None and number >= self.count:
                        self._put(("end", None))
                        return
                    number += 1
                    pts, base = frame.pts, frame.time_base
                    if frame.format.name != self.format:
                        frame = frame.reformat(format=self.format)
                        frame.pts, frame.time_base = pts, base
                    if not self._put(("frame", frame)):
                        return
            self._put(("end", None))
        except Exception as error:  # (raised again where frames are waited for)
            self._put(("error", error))

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
    """Filters a video into another file; how many frames it has.

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
    codec, quality, preset
        Of the encoder: the usual one of the container, at a constant quality (0 is the best).
    audio : bool
        Whether other streams are copied.
    count : int, optional
        The most frames to take.
    """
    target = Path(target)
    if target.suffix.lower() not in VIDEOS:
        raise FileError(f"a video is written as {', '.join(VIDEOS)}; got {target.name!r}")
    if not str(source).startswith("camera:") and same_file(Path(source), target):
        raise FileError(f"{target} is the input; give the output another name")
    if over_time and over_time < 4:
        raise ArgumentError(f"frames are filtered together by 4 or more, got {over_time}")
    container, stream = _open(source, max_pixels)
    done = 0
    with container, written(target) as beside:
        kept = [s for s in container.streams if s is not stream and s.type in ("audio", "subtitle")]
        own = _format(stream)
        decoder = _Decoder(container, stream, own, kept if audio else [], count)
        try:
            with _Output(
                beside, target, stream, own, kept if audio else [], container, codec, quality, preset
            ) as out:
                decoder.start()
                for kind, item in _filtered(decoder.items(), work, over_time, workers):
                    if kind == "packet":
                        out.copy(item)
                        continue
                    out.encode(item)
                    done += 1
                    if progress is not None:
                        progress(done)
        except (UndulaError, KeyboardInterrupt, OSError):
            raise
        except Exception as error:  # (of a decoder or an encoder, whatever it is)
            raise FileError(f"cannot filter {source} into {target}: {_reason(error)}") from None
        finally:
            decoder.stopped.set()
            if decoder.ident is not None:
                decoder.join()
        if done == 0:
            raise FileError(f"{source} has no frames that could be decoded")
    return done


def _format(stream: Any) -> str:
    """What frames are filtered in: what they are in, or the nearest to it."""
    name = str(stream.codec_context.pix_fmt or "yuv420p")
    context = stream.codec_context
    odd = context.width % 2 or context.height % 2
    if name in PLANAR or name in DEEP:
        # (Encoders want even sides where colours have half of them.)
        if odd and "420" in name:
            return name.replace("420", "444")
        return name.replace("422", "444") if odd and "422" in name else name
    if stream.codec_context.name in LOSSLESS and any(word in name for word in ("rgb", "bgr", "gbr")):
        return "gbrp"
    deep = _bits(name) > 8
    return (
        ("yuv444p10le" if deep else "yuv444p")
        if odd or "444" in name
        else ("yuv420p10le" if deep else "yuv420p")
    )


def _filtered(
    items: Iterator[tuple[str, Any]], work: Work, over_time: int, workers: int | None
) -> Iterator[tuple[str, Any]]:
    """Frames with filtered planes, in their order; packets pass by."""
    from ..backends.cpu import get_num_threads

    if over_time:
        yield from _over_time(items, work, over_time)
        return

    def one(frame: Any) -> Any:
        return _filled(frame, work(_planes(frame)))

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
            yield "frame", _filled(frame, planes)
        before = None if final else results[hop:]
        frames, stacks = frames[out:], stacks[out:]

    for kind, item in items:
        if kind == "packet":
            yield kind, item
            continue
        frames.append(item)
        stacks.append(_planes(item))
        if len(stacks) == length:
            yield from window(final=False)
    if stacks:
        yield from window(final=True)


class _Output:
    """A container that is written: one stream encoded, others copied."""

    def __init__(
        self,
        path: Path,
        target: Path,
        stream: Any,
        pixels: str,
        others: Iterable[Any],
        source: Any,
        codec: str | None,
        quality: int,
        preset: str,
    ) -> None:
        av = needed("av")
        kind = VIDEOS[target.suffix.lower()]
        name = codec or CODECS[kind]
        if codec is None and stream.codec_context.name in LOSSLESS and kind in ("matroska", "avi"):
            name = "ffv1"  # (what was kept without loss stays so)
        if name in ("libx264", "libvpx-vp9", "mpeg4") and (_bits(pixels) > 10 or "gbr" in pixels):
            raise FileError(
                f"{name} does not keep {pixels}; write .mkv with --codec ffv1, or convert it first"
            )
        try:
            self.container = av.open(str(path), "w", format={"mp4": "mp4"}.get(kind, kind))
        except Exception as error:
            raise FileError(f"cannot write {target}: {_reason(error)}") from None
        self.target = target
        context = stream.codec_context
        rate = stream.average_rate or stream.guessed_rate or Fraction(25)
        options: dict[str, str] = {}
        if name in ("libx264", "libx265"):
            options = {"crf": str(quality), "preset": preset}
        elif name == "libvpx-vp9":
            options = {
                "crf": str(quality),
                "b:v": "0",
                "deadline": "realtime",
                "cpu-used": "8",
                "row-mt": "1",
            }
        elif name == "mpeg4":
            options = {"qscale": "2", "qmin": "1"}
        try:
            self.stream = self.container.add_stream(name, rate=rate, options=options)
        except Exception as error:
            self.container.close()
            raise FileError(f"no encoder {name!r} for {target}: {_reason(error)}") from None
        own = self.stream.codec_context
        own.width, own.height = context.width, context.height
        own.pix_fmt = "bgr0" if name == "ffv1" and pixels == "gbrp" else pixels  # (the same, interleaved)
        if stream.time_base is not None and kind != "avi" and name != "mpeg4":
            own.time_base = stream.time_base
        for what in ("color_range", "colorspace", "color_primaries", "color_trc", "sample_aspect_ratio"):
            value = getattr(context, what, None)
            if value:
                setattr(own, what, value)
        self.copied = {}
        for other in others:
            try:
                self.copied[other.index] = self.container.add_stream_from_template(other)
            except Exception as error:
                self.container.close()
                raise FileError(
                    f"{target.suffix} keeps no {other.type} of {other.codec_context.name}"
                    f" ({_reason(error)}); write .mkv, or leave it away (audio=False, --no-audio)"
                ) from None
        for key, value in source.metadata.items():
            self.container.metadata[key] = value

    def __enter__(self) -> _Output:
        return self

    def encode(self, frame: Any) -> None:
        if frame.format.name != self.stream.codec_context.pix_fmt:
            pts, base = frame.pts, frame.time_base
            frame = frame.reformat(format=self.stream.codec_context.pix_fmt)
            frame.pts, frame.time_base = pts, base
        frame.pict_type = 0  # (the encoder knows better than the last one)
        self.container.mux(self.stream.encode(frame))

    def copy(self, packet: Any) -> None:
        packet.stream = self.copied[packet.stream.index]
        self.container.mux(packet)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self.container.mux(self.stream.encode(None))
        finally:
            self.container.close()
