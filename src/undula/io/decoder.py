"""Films are read from local files alone: one container, one video stream, frames in their order.

    path ─▶ container (a file, no playlist) ─▶ film (the stream that moves) ─▶ frames ─▶ planes

Decoders keep references to the frames that they hand out: the frames after them are predicted from these. So
planes are always copied out of a frame, and a frame is made writable before anything is put into it.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, FileError, UndulaError
from .files import DEFAULT_MAX_PIXELS, check_size, import_optional

__all__ = [
    "DecodedSpan",
    "Planes",
    "Video",
    "VideoReader",
    "copy_planes",
    "decode_error",
    "display_matrix",
    "filterable_format",
    "frame_times",
    "is_filterable",
    "open_video",
    "probe",
    "read_frames",
    "reason",
    "replace_planes",
    "times_are_guessed",
]

Array = NDArray[Any]
Planes = list[Array]

# Containers that are one file; playlists and session descriptions make FFmpeg open whatever they name.
CONTAINERS = (
    "mov matroska avi mpegts mpeg mpegvideo flv asf ogg mxf nut ivf yuv4mpegpipe dv gif h264 hevc obu m4v"
).split()
PLAYLISTS = (b"#EXTM3U", b"ffconcat", b"v=0", b"<?xml", b"<MPD", b"[playlist]", b"[Reference]", b"<asx")
STILLS = ("attached_pic", "timed_thumbnails", "still_image")  # dispositions of streams that are no films
STILL_PACKETS = 64  # a stream with one packet among so many is a still picture
# A film ends early if more is missing than so many of its longest frames, and than this part of it.
MISSING_FRAMES, MISSING_PART = 2.5, 0.03
IDENTITY = (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)


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
        return 8 if self.pixels == "unknown" else _bits(self.pixels)

    @property
    def is_rgb(self) -> bool:
        """Whether planes are colours, and none of them is brightness."""
        return self.pixels != "unknown" and bool(
            import_optional("av").VideoFormat(self.pixels, 16, 16).is_rgb
        )


def _pixel_format(name: str) -> Any:
    return import_optional("av").VideoFormat(name, 16, 16)


@cache
def _bits(pixels: str) -> int:
    return max(int(part.bits) for part in _pixel_format(pixels).components)


@cache
def is_filterable(pixels: str) -> bool:
    """Whether frames are planes of 8 bits, or of 9 to 16 bits in two bytes, lowest first."""
    layout = _pixel_format(pixels)
    parts = layout.components
    return (
        not (layout.is_big_endian and parts[0].bits > 8)
        and not layout.has_palette
        and not layout.is_bit_stream
        and len({part.plane for part in parts}) == len(parts)
        and len({part.bits for part in parts}) == 1
        and 8 <= parts[0].bits <= 16
        and not any(word in pixels for word in ("f16", "msb"))  # floats, and samples in the upper bits
    )


@cache
def filterable_format(pixels: str) -> str:
    """The format to filter frames in: their own, or the nearest that has a plane for each component."""
    if is_filterable(pixels):
        return pixels
    av = import_optional("av")
    names = sorted(name for name in av.video.format.names if is_filterable(name))
    best, _ = av.codec.codec.find_best_pix_fmt_of_list(names, pixels, True)
    return str(best.name)


def _camera(text: str) -> tuple[str, str]:
    """A camera by number, ``camera:0``, as FFmpeg's name and format."""
    number = text.partition(":")[2] or "0"
    if not number.isdigit():
        raise FileError(f"cameras are camera:0, camera:1, …; got {text!r}")
    if sys.platform == "darwin":
        return number, "avfoundation"
    if sys.platform == "win32":
        return f"video={number}", "dshow"
    return f"/dev/video{number}", "v4l2"


def reason(error: BaseException) -> str:
    """What FFmpeg says, in a line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:160]


def decode_error(path: str | Path, number: int, error: Exception) -> FileError:
    """An error that names the frame that could not be decoded."""
    refused = getattr(error, "errno", None) == errno.EINVAL
    what = "it is broken, or larger than the limit (max_pixels, --max-pixels)" if refused else reason(error)
    return FileError(f"cannot read frame {number} of {path}: {what}")


def _damaged(path: str | Path, number: int) -> FileError:
    before = f", or take those before it with --frames {number} (count={number})" if number else ""
    return FileError(f"frame {number} of {path} is damaged; fetch the file again{before}")


def _open_container(path: str | Path, max_pixels: int | None, **options: str) -> Any:
    """A container of a local file or of a camera; decoders refuse frames that are too large."""
    av = import_optional("av")
    limit = {"max_pixels": str(DEFAULT_MAX_PIXELS if max_pixels is None else max_pixels)}
    if str(path).startswith("camera:"):
        name, kind = _camera(str(path))
        try:
            return av.open(name, format=kind, options=limit)
        except Exception as error:  # (FFmpeg has an error for everything)
            raise FileError(f"cannot read {path} as a video: {reason(error)}") from None
    try:
        with Path(path).open("rb") as file:
            head = file.read(64)
    except OSError as error:
        what = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror or error
        raise FileError(f"cannot read {path}: {what}") from None
    if not head:
        raise FileError(f"{path} is empty")
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(PLAYLISTS):
        raise FileError(f"{path} is a playlist; give the videos that it names, one by one")
    allowed = {"protocol_whitelist": "file", "format_whitelist": ",".join(CONTAINERS), **options}
    for encoding in ("utf-8", "latin-1"):  # (of tags; old AVI files have the second)
        with suppress(UnicodeDecodeError):
            try:
                return av.open(
                    f"file:{path}", container_options=allowed, options=limit, metadata_encoding=encoding
                )
            except UnicodeDecodeError:
                raise
            except Exception as error:  # (FFmpeg's libraries raise anything, ValueError and OSError too)
                raise FileError(f"cannot read {path} as a video: {reason(error)}") from None
    raise AssertionError("every byte is a letter of Latin-1")


def open_video(path: str | Path, max_pixels: int | None = None) -> tuple[Any, Any]:
    """A container and its film: of the streams that move the default one, or the first."""
    container = _open_container(path, max_pixels)
    try:
        stream = _film_of(container, path, max_pixels)
        context = stream.codec_context
        pixels = context.width * context.height
        if not pixels:  # FFmpeg forgets a size that it has refused.
            most = DEFAULT_MAX_PIXELS if max_pixels is None else max_pixels
            raise FileError(
                f"the frames of {path} have more pixels than the limit of {most:,}, or no size; raise it"
                " (max_pixels, --max-pixels) if you trust the file"
            )
        bits = context.format.padded_bits_per_pixel if context.format else 0
        check_size(Path(path), pixels, max_pixels, pixels * bits // 8)
        # What is inside may be larger than the container says, and it is the decoder that sees it.
        context.options = {"max_pixels": str(DEFAULT_MAX_PIXELS if max_pixels is None else max_pixels)}
        stream.thread_type = "AUTO"
    except BaseException:
        container.close()
        raise
    return container, stream


def _film_of(container: Any, path: str | Path, max_pixels: int | None) -> Any:
    flags = import_optional("av").stream.Disposition
    stills = sum(flags[name].value for name in STILLS)
    films = [stream for stream in container.streams.video if not stream.disposition & stills]
    if not films:
        cover = " but cover art" if container.streams.video else ""
        raise FileError(f"{path} has no pictures in it{cover}")
    if len(films) > 1 and not str(path).startswith("camera:"):
        moving = _moving(path, [stream.index for stream in films], max_pixels)
        films = [stream for stream in films if stream.index in moving] or films
    film = next((stream for stream in films if stream.disposition & flags.default), films[0])
    if film.codec_context is None:
        raise FileError(
            f"cannot read {path}: FFmpeg has no decoder for its video stream"
            f" ({_stream_line(container, film.index)}); convert it with the program that wrote it"
        )
    return film


def _stream_line(container: Any, index: int) -> str:
    """What FFmpeg prints of a stream that it cannot decode: its tag, its size."""
    with suppress(Exception):
        for line in container.dumps_format().splitlines():
            if f"#0:{index}" in line and "Video: " in line:
                return " ".join(line.partition("Video: ")[2].split())[:60]
    return "unknown codec"


def _moving(path: str | Path, indices: list[int], max_pixels: int | None) -> set[int]:
    """Which streams have more than one packet; some writers add cover art as a stream of one frame."""
    counts = dict.fromkeys(indices, 0)
    with _open_container(path, max_pixels) as container:
        packets = container.demux([container.streams[index] for index in indices])
        for packet in islice((packet for packet in packets if packet.size), STILL_PACKETS):
            counts[packet.stream.index] += 1
    return {index for index, count in counts.items() if count > 1}


def times_are_guessed(container: Any, stream: Any) -> bool:
    """Whether packets say when they are decoded, not when they are shown: AVI with frames out of order."""
    return str(container.format.name) == "avi" and bool(stream.codec_context.has_b_frames)


def frame_times(path: str | Path, index: int) -> list[int] | None:
    """When the frames of a stream are shown, in its time base; None if packets do not say so."""
    times: list[int] = []
    with _open_container(path, sys.maxsize) as container:  # (nothing is decoded)
        stream = container.streams[index]
        hidden = stream.codec_context.name == "vp8"  # (its packets may be of frames that are never shown)
        for packet in container.demux(stream):
            if packet.size and not packet.is_discard and not (hidden and not bytes(packet)[0] & 0x10):
                if packet.pts is None:
                    return None
                times.append(packet.pts)
    return sorted(times) if len(set(times)) == len(times) else None


def _tagged_seconds(text: str) -> float | None:
    """Seconds of a tag like ``00:01:02.500000000``."""
    with suppress(ValueError):
        hours, minutes, seconds = map(float, text.split(":"))
        return 3600 * hours + 60 * minutes + seconds
    return None


def _packet_ends(path: str | Path, index: int, **options: str) -> tuple[int, float, float]:
    """How many packets a stream has; when its last one ends, and the last one of any stream, in seconds."""
    count, film_end, last_end = 0, 0.0, 0.0
    with _open_container(path, sys.maxsize, **options) as container:  # (nothing is decoded)
        for packet in container.demux():
            if packet.size:
                is_film = packet.stream.index == index
                count += is_film
                if packet.pts is not None and not packet.is_discard:
                    end = float((packet.pts + (packet.duration or 0)) * packet.time_base)
                    film_end, last_end = max(film_end, end * is_film), max(last_end, end)
    return count, film_end, last_end


class DecodedSpan:
    """How much of a film was decoded, and whether that is what its file declares.

    FFmpeg takes the end of a file for the end of the film, wherever it was cut off.
    """

    def __init__(self, path: str | Path, container: Any, stream: Any) -> None:
        self._path, self._container, self._stream = path, container, stream
        self._kind = str(container.format.name).partition(",")[0]
        self._count = 0
        self._times: list[float] = []  # of the first frame and of the last one
        self._end = self._longest = 0.0

    def add(self, frame: Any) -> None:
        """A frame that was decoded, with the time that it came with; an error if it is damaged."""
        if frame.is_corrupt:
            raise _damaged(self._path, self._count)
        self._count += 1
        if frame.pts is None or frame.time_base is None:
            return
        time = float(frame.pts * frame.time_base)
        length = float((frame.duration or 0) * frame.time_base)
        between = time - self._times[-1] if self._times else 0.0
        self._longest = max(self._longest, length, between)
        self._end = max(self._end, time + length)
        self._times = [*self._times[:1], time]

    def check_end(self) -> None:
        """An error if the film ended clearly before it should."""
        declared, of_film = self._declared()
        if not self._times or (self._stream.frames and self._count >= self._stream.frames - 2):
            return
        reached = max(self._end, self._end - self._times[0])
        slack = max(MISSING_FRAMES * self._longest, MISSING_PART * declared)
        if reached >= declared - slack or not self._is_damaged(declared - slack, reached + slack, of_film):
            return
        raise FileError(
            f"{self._path} declares {declared:.2f} s and ends after {self._count} frames, at {reached:.2f} s:"
            " it is cut off or damaged. Fetch it again, repair it (ffmpeg -err_detect ignore_err -i … -c copy"
            f" …), or take what is there with --frames {self._count} (count={self._count})"
        )

    def _is_damaged(self, least: float, most: float, of_film: bool) -> bool:
        """Whether packets are missing, or were there and gave no frames."""
        index = self._stream.index
        _, film_end, last_end = _packet_ends(self._path, index)
        if film_end > most:
            return True
        if self._kind == "mov":  # Packets that an edit list leaves out are not missing.
            count, _, _ = _packet_ends(self._path, index, ignore_editlist="1")
            return count < int(self._stream.frames) - 2
        return of_film or last_end < least

    def _declared(self) -> tuple[float, bool]:
        """Seconds that the header says, 0 if nothing; and whether of the film or of the longest stream.

        Other containers say nothing, and FFmpeg makes an estimate from what is in the file.
        """
        stream, kind = self._stream, self._kind
        whole = (self._container.duration or 0) / 1e6
        if kind == "mov" and stream.duration is not None:
            return float(stream.duration * stream.time_base), True
        if kind == "avi" and stream.average_rate:
            return float(stream.frames / stream.average_rate), True
        if kind == "matroska":
            tagged = _tagged_seconds(stream.metadata.get("DURATION", ""))
            if tagged is not None and tagged <= whole:  # (or it was copied from another file)
                return tagged, True
        return (whole, False) if kind in ("matroska", "flv") else (0.0, False)


def probe(path: str | Path, max_pixels: int | None = None) -> Video:
    """What a video is: sizes, rate, codec, how many frames its container tells of."""
    container, stream = open_video(path, max_pixels)
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
            str(context.codec.canonical_name),
            str(container.format.name),
            tuple(str(getattr(other.codec_context, "name", "unknown")) for other in container.streams.audio),
        )


def copy_planes(frame: Any) -> Planes:
    """The planes of a frame, copied out of it; without opacity."""
    return [rows.copy() for rows in _views(frame)]


def _views(frame: Any) -> Iterator[Array]:
    dtype = np.dtype(np.uint8 if _bits(frame.format.name) == 8 else "<u2")
    for part, plane in zip(frame.format.components, frame.planes, strict=True):
        if plane.line_size < 0:
            raise FileError(f"frames of {frame.format.name} that are stored upside down are not supported")
        if not part.is_alpha:
            rows = np.frombuffer(plane, dtype).reshape(plane.height, plane.line_size // dtype.itemsize)
            yield rows[:, : plane.width]


def replace_planes(frame: Any, planes: Planes) -> Any:
    """The frame with other planes; its time, colours, opacity and side data stay.

    What a decoder still refers to is left alone: the frame gets memory of its own first.
    """
    frame.make_writable()
    most = (1 << _bits(frame.format.name)) - 1
    views = list(_views(frame))
    kinds = [[(values.shape, values.dtype) for values in each] for each in (views, planes)]
    if kinds[0] != kinds[1]:
        raise ArgumentError(f"a filter should return planes of {kinds[0]}, got {kinds[1]}")
    for rows, values in zip(views, planes, strict=True):
        rows[...] = np.minimum(values, most) if 255 < most < 65535 else values
    return frame


def display_matrix(frame: Any) -> tuple[int, ...]:
    """How a frame is turned and mirrored before it is shown: FFmpeg's nine numbers."""
    try:
        data = frame.side_data["DISPLAYMATRIX"]
    except KeyError:
        return IDENTITY
    except ValueError:  # PyAV knows no name for other side data of this frame.
        cos, sin = (round((1 << 16) * f(np.deg2rad(frame.rotation))) for f in (np.cos, np.sin))
        return (cos, -sin, 0, sin, cos, 0, 0, 0, 1 << 30)
    return tuple(int(value) for value in np.frombuffer(data, np.int32))


def _upright(pixels: Array, matrix: tuple[int, ...]) -> Array:
    """Pixels as they are shown, for turns by 90 degrees and mirrors."""
    a, b, _, c, d, *_ = matrix
    if not b and not c:
        pixels = pixels[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1]
    elif not a and not d:
        pixels = pixels.swapaxes(0, 1)[:: -1 if b < 0 else 1, :: -1 if c < 0 else 1]
    return np.ascontiguousarray(pixels)


def _shown(frame: Any) -> Array:
    return _upright(frame.to_ndarray(format="rgb24"), display_matrix(frame))


def read_frames(path: str | Path, count: int | None = None, max_pixels: int | None = None) -> Iterator[Array]:
    """Frames as ``(H, W, 3)`` of 8 bits, upright, one after the other; of a video or of a camera."""
    container, stream = open_video(path, max_pixels)
    with container:
        number, span = 0, DecodedSpan(path, container, stream)
        try:
            for frame in container.decode(stream):
                if count is not None and number >= count:
                    return
                span.add(frame)
                yield _shown(frame)
                number += 1
            if number != count:
                span.check_end()
        except UndulaError:
            raise
        except Exception as error:  # (of a decoder, whatever it is)
            raise decode_error(path, number, error) from None


class VideoReader:
    """Frames of a film by number, as :func:`read_frames` counts them.

    A frame that is near is decoded from the last one. For others decoding begins where the container can, and
    the frame is known by its time; where times are missing or ambiguous, decoding begins anew.
    """

    NEAR = 50  # frames that are sooner decoded than looked for
    BACK = 10  # seconds before a frame from which decoding begins if the nearest place was too late

    def __init__(self, path: Path, max_pixels: int | None = None) -> None:
        self.known = probe(path, max_pixels)
        self._path, self._max_pixels = path, max_pixels
        self._times: list[int] | None = None
        self._indexed = False
        self._last: Any = None  # the frame that was decoded last
        self._container: Any = None
        self._restart()

    def close(self) -> None:
        """Closes the file."""
        if self._container is not None:
            self._container.close()

    def _restart(self) -> None:
        self.close()
        self._container, self._stream = open_video(self._path, self._max_pixels)
        self._frames, self._next = iter(self._container.decode(self._stream)), 0

    def frame(self, number: int) -> Array:
        """A frame, upright; of a number that is too large the last frame there is."""
        try:
            if number != self._next - 1 or self._last is None:
                self._decode_until(number)
                if self._last is not None and self._last.is_corrupt:  # (maybe since decoding began too late)
                    self._restart()
                    self._advance(number)
        except UndulaError:
            raise
        except Exception as error:  # (of a decoder, whatever it is)
            self._next, self._last = sys.maxsize, None  # (so that the next frame is looked for)
            raise decode_error(self._path, number, error) from None
        if self._last is None:
            raise FileError(f"{self._path} has no frames that could be decoded")
        if self._last.is_corrupt:
            raise _damaged(self._path, self._next - 1)
        return _shown(self._last)

    def _decode_until(self, number: int) -> None:
        if self._next <= number < self._next + self.NEAR:
            with suppress(
                import_optional("av").error.FFmpegError
            ):  # A frame between may be broken, and this one not.
                self._advance(number)
                return
        if not self._seek(number):
            self._restart()
        self._advance(number)

    def _advance(self, number: int) -> None:
        for frame in self._frames:
            self._next, self._last = self._next + 1, frame
            if self._next > number:
                break

    def _seek(self, number: int) -> bool:
        """Whether the next frame now is the one with this number."""
        if not self._indexed:
            guessed = times_are_guessed(self._container, self._stream)
            self._times = None if guessed else frame_times(self._path, self._stream.index)
            self._indexed = True
        if self._times is None or number >= len(self._times):
            return False
        time, base = self._times[number], self._stream.time_base
        for begin in (time, time - round(self.BACK / base)):
            if begin < self._times[0]:
                return False
            self._container.seek(begin, stream=self._stream, backward=True)
            frames = iter(self._container.decode(self._stream))
            for frame in frames:
                if frame.pts == time and not frame.is_corrupt:
                    self._frames, self._next = chain([frame], frames), number
                    return True
                if frame.pts is None or frame.pts >= time:
                    break
        return False
