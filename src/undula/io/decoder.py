"""Decode video from local files and cameras.

    path ─▶ container (a file, no playlist) ─▶ main video stream ─▶ frames ─▶ planes

Decoders keep references to the frames that they return, since later frames are predicted from them. Planes
are therefore copied out of a frame, and a frame is made writable before its planes are replaced.
"""

from __future__ import annotations

import errno
import io
import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, FileError, UndulaError
from .cutting import Cut
from .files import Y4M_SIGNATURE, check_size, import_optional, pixel_limit, short_message

__all__ = [
    "DecodedSpan",
    "Planes",
    "Video",
    "VideoReader",
    "Y4MReader",
    "copy_planes",
    "decode_error",
    "display_matrix",
    "filterable_format",
    "find_frame",
    "frame_decoder",
    "frame_times",
    "is_filterable",
    "is_live",
    "open_video",
    "probe",
    "read_frames",
    "read_planes",
    "replace_planes",
    "sample_bits",
    "times_are_guessed",
]

Array = NDArray[Any]
Planes = list[Array]

# Containers in one file. Playlists and session descriptions would make FFmpeg open whatever they name.
CONTAINERS = (
    "mov matroska avi mpegts mpeg mpegvideo flv asf ogg mxf nut ivf yuv4mpegpipe dv gif h264 hevc obu m4v"
).split()
PLAYLISTS = (b"#EXTM3U", b"ffconcat", b"v=0", b"<?xml", b"<MPD", b"[playlist]", b"[Reference]", b"<asx")
STILL_DISPOSITIONS = ("attached_pic", "timed_thumbnails", "still_image")
STILL_PACKETS = 64  # A stream with at most one of the first so many packets is a still image.
# A video is cut off if more is missing than so many of its longest frames and this share of its duration.
MAX_MISSING_FRAMES, MAX_MISSING_SHARE = 2.5, 0.03
IDENTITY_MATRIX = (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)


@dataclass(frozen=True)
class Video:
    """Properties of a video, from its container.

    Attributes
    ----------
    path : str
        The file.
    width, height : int
        The size of a frame in pixels.
    frames : int
        The number of frames, estimated from the duration if the container does not declare it.
    rate : float
        Frames per second.
    seconds : float
        The duration.
    pixels : str
        The pixel format in FFmpeg's words, such as ``"yuv420p"``; ``"unknown"`` if there is none.
    codec, container : str
        Names of FFmpeg.
    audio : tuple of str
        The codec of each audio stream.

    Examples
    --------
    >>> from undula import io
    >>> video = io.probe(io.sample("clip"))
    >>> video.width > 0, video.frames > 0
    (True, True)
    """

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
        """The number of bits of a sample."""
        return 8 if self.pixels == "unknown" else sample_bits(self.pixels)

    @property
    def is_rgb(self) -> bool:
        """Whether the planes are red, green and blue, so that there is no luma."""
        return self.pixels != "unknown" and bool(_pixel_format(self.pixels).is_rgb)


class Y4MReader:
    """Reads Y4M from a file object that can be read only once, such as standard input.

    The header is read at once, so that the properties of the video are known before its frames.

    Parameters
    ----------
    file : file object
        A binary file.
    head : bytes, optional
        The beginning of the file, if it has been read already.
    """

    MAX_HEADER_BYTES = 4096

    def __init__(self, file: Any, head: bytes = b"") -> None:
        self.header = head if b"\n" in head else head + file.readline(self.MAX_HEADER_BYTES)
        if not self.header.startswith(Y4M_SIGNATURE):
            raise FileError(f"cannot read {self} as a video: only Y4M can be read from a pipe")
        self._file, self._unread, self.size = file, self.header, 0

    def __str__(self) -> str:
        return "standard input"

    def read(self, count: int) -> bytes:
        """Read bytes, as a file does."""
        data = self._unread or self._file.read(count)
        data, self._unread = data[:count], data[count:]
        self.size += len(data)
        return bytes(data)

    def without_frames(self) -> Y4MReader:
        """Return a reader of the header alone."""
        return Y4MReader(io.BytesIO(), self.header)


VideoSource = str | Path | Y4MReader


def is_live(source: VideoSource) -> bool:
    """Return whether a source is a camera or a pipe, which can be read only once."""
    return isinstance(source, Y4MReader) or str(source).startswith("camera:")


def _pixel_format(name: str) -> Any:
    return import_optional("av").VideoFormat(name, 16, 16)


@cache
def sample_bits(pixels: str) -> int:
    """Return the number of bits of a sample in a pixel format."""
    return max(int(component.bits) for component in _pixel_format(pixels).components)


@cache
def is_filterable(pixels: str) -> bool:
    """Return whether components are planes of 8-bit samples, or of 9 to 16 bits in little-endian words."""
    pixel_format = _pixel_format(pixels)
    components = pixel_format.components
    sizes = {component.bits for component in components}
    return (
        len(sizes) == 1
        and 8 <= max(sizes) <= 16
        and not (pixel_format.is_big_endian and max(sizes) > 8)
        and not pixel_format.has_palette
        and not pixel_format.is_bit_stream
        and len({component.plane for component in components}) == len(components)
        and not any(word in pixels for word in ("f16", "msb"))  # Floats, and samples in the upper bits.
    )


@cache
def filterable_format(pixels: str) -> str:
    """Return the format to filter frames in: their own, or the nearest with a plane for each component."""
    if is_filterable(pixels):
        return pixels
    av = import_optional("av")
    names = sorted(name for name in av.video.format.names if is_filterable(name))
    best, _ = av.codec.codec.find_best_pix_fmt_of_list(names, pixels, True)
    return str(best.name)


def _camera(text: str) -> tuple[str, str]:
    """Return FFmpeg's name and format of a camera such as ``camera:0``."""
    number = text.partition(":")[2] or "0"
    if not number.isdigit():
        raise FileError(f"expected camera:0, camera:1 and so on, got {text!r}")
    if sys.platform == "darwin":
        return number, "avfoundation"
    if sys.platform == "win32":
        return f"video={number}", "dshow"
    return f"/dev/video{number}", "v4l2"


def decode_error(path: VideoSource, number: int, error: Exception) -> FileError:
    """Return an error that names the frame that could not be decoded."""
    refused = getattr(error, "errno", None) == errno.EINVAL
    cause = "it is damaged, or larger than the limit (max_pixels, --max-pixels)"
    return FileError(f"cannot read frame {number} of {path}: {cause if refused else short_message(error)}")


def _damage_error(path: VideoSource, number: int) -> FileError:
    advice = f", or read the frames before it with --frames {number} (count={number})" if number else ""
    return FileError(f"frame {number} of {path} is damaged; fetch the file again{advice}")


def _decoder_limit(max_pixels: int | None) -> str:
    """Return the limit on pixels as an option of FFmpeg, which refuses larger numbers than 31 bits."""
    return str(min(pixel_limit(max_pixels), (1 << 31) - 1))


def _open_container(path: VideoSource, max_pixels: int | None, **options: str) -> Any:
    """Open a local file or a camera; decoders refuse frames that are too large."""
    av = import_optional("av")
    limit = {"max_pixels": _decoder_limit(max_pixels)}
    if isinstance(path, Y4MReader):
        try:
            return av.open(path, format="yuv4mpegpipe", options=limit)
        except Exception as error:  # FFmpeg's libraries raise all kinds of errors.
            raise FileError(f"cannot read {path} as a video: {short_message(error)}") from None
    if str(path).startswith("camera:"):
        name, kind = _camera(str(path))
        try:
            return av.open(name, format=kind, options=limit)
        except Exception as error:  # FFmpeg's libraries raise all kinds of errors.
            raise FileError(f"cannot read {path} as a video: {short_message(error)}") from None
    try:
        with Path(str(path)).open("rb") as file:
            head = file.read(64)
    except OSError as error:
        cause = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror or error
        raise FileError(f"cannot read {path}: {cause}") from None
    if not head:
        raise FileError(f"{path} is empty")
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(PLAYLISTS):
        raise FileError(f"{path} is a playlist; pass the videos that it lists instead")
    allowed = {"protocol_whitelist": "file", "format_whitelist": ",".join(CONTAINERS), **options}
    # PyAV 19 always keeps tags that are not UTF-8 as surrogates; PyAV 18 has to be told to.
    tags = (
        {"metadata_errors": "surrogateescape"} if hasattr(av.container.Container, "metadata_errors") else {}
    )
    try:
        return av.open(f"file:{path}", container_options=allowed, options=limit, **tags)
    except Exception as error:  # FFmpeg's libraries raise all kinds of errors.
        raise FileError(f"cannot read {path} as a video: {short_message(error)}") from None


def open_video(path: VideoSource, max_pixels: int | None = None) -> tuple[Any, Any]:
    """Open a container; return it with its main video stream."""
    container = _open_container(path, max_pixels)
    try:
        stream = _main_stream(container, path, max_pixels)
        context = stream.codec_context
        pixels = context.width * context.height
        limit = pixel_limit(max_pixels)
        if not pixels:  # FFmpeg resets a size that it has refused.
            raise FileError(
                f"the frames of {path} have more pixels than the limit of {limit:,}, or no size; raise it"
                " with max_pixels (--max-pixels) if you trust the file"
            )
        bits = context.format.padded_bits_per_pixel if context.format else 0
        check_size(Path(str(path)), pixels, max_pixels, pixels * bits // 8)
        # Frames may be larger than the container declares, which only the decoder sees.
        context.options = {"max_pixels": _decoder_limit(max_pixels)}
        stream.thread_type = "AUTO"
    except BaseException:
        container.close()
        raise
    return container, stream


def _main_stream(container: Any, path: VideoSource, max_pixels: int | None) -> Any:
    """Return the default one of the video streams that are not still images, or the first of them."""
    flags = import_optional("av").stream.Disposition
    still = sum(flags[name].value for name in STILL_DISPOSITIONS)
    streams = [stream for stream in container.streams.video if not stream.disposition & still]
    if not streams:
        cover = " except cover art" if container.streams.video else ""
        raise FileError(f"{path} contains no video{cover}")
    if len(streams) > 1 and not is_live(path):
        moving = _moving_streams(path, [stream.index for stream in streams], max_pixels)
        streams = [stream for stream in streams if stream.index in moving] or streams
    main = next((stream for stream in streams if stream.disposition & flags.default), streams[0])
    if main.codec_context is None:
        raise FileError(
            f"cannot read {path}: FFmpeg has no decoder for its video stream"
            f" ({_stream_description(container, main.index)}); convert it with the program that wrote it"
        )
    return main


def _stream_description(container: Any, index: int) -> str:
    """Return FFmpeg's description of a stream that it cannot decode: its tag and its size."""
    with suppress(Exception):
        for line in container.dumps_format().splitlines():
            if f"#0:{index}" in line and "Video: " in line:
                return " ".join(line.partition("Video: ")[2].split())[:60]
    return "unknown codec"


def _moving_streams(path: VideoSource, indices: list[int], max_pixels: int | None) -> set[int]:
    """Return the streams with more than one packet; some writers store cover art as a stream of one frame."""
    counts = dict.fromkeys(indices, 0)
    with _open_container(path, max_pixels) as container:
        packets = container.demux([container.streams[index] for index in indices])
        for packet in islice((packet for packet in packets if packet.size), STILL_PACKETS):
            counts[packet.stream.index] += 1
    return {index for index, count in counts.items() if count > 1}


def frame_decoder(stream: Any, max_pixels: int | None = None) -> Any:
    """Return the decoder of a stream; FFmpeg's own for VP8 and VP9 ignores alpha, and libvpx does not."""
    av, name = import_optional("av"), stream.codec_context.name
    decoder = {"vp8": "libvpx", "vp9": "libvpx-vp9"}.get(name, "")
    if stream.metadata.get("alpha_mode") != "1" or decoder not in av.codecs_available:
        return stream.codec_context
    context = av.CodecContext.create(decoder, "r")
    context.options = {"max_pixels": _decoder_limit(max_pixels)}
    return context


def find_frame(path: VideoSource, index: int, cut: Cut) -> tuple[int, Fraction | None]:
    """Return the number of the packet of a stream to start decoding at for a part, and its first time.

    The packet is that of the last but one key frame before the part: after a recovery point, which FFmpeg
    takes for a key frame, some frames are incomplete. The time is None if the part has no frames.
    """
    numbers, first = [0, 0], None
    with _open_container(path, sys.maxsize) as container:  # Nothing is decoded.
        for number, packet in enumerate(container.demux(container.streams[index])):
            # Frames are decoded before they are shown, so that no earlier one follows.
            if first is not None and packet.dts is not None and packet.dts * packet.time_base > first:
                break
            if packet.pts is None:
                continue
            time = packet.pts * packet.time_base
            if not cut.is_before(time):
                first = time if first is None else min(time, first)
            elif packet.is_keyframe:
                numbers = [numbers[1], number]
    return numbers[0], first


def times_are_guessed(container: Any, stream: Any) -> bool:
    """Return whether packets have decoding times only, as in AVI, although frames are stored out of order."""
    return str(container.format.name) == "avi" and bool(stream.codec_context.has_b_frames)


def frame_times(path: VideoSource, index: int) -> list[int] | None:
    """Return the sorted presentation times of a stream; None if any is missing or repeated."""
    times: list[int] = []
    with _open_container(path, sys.maxsize) as container:  # Nothing is decoded.
        stream = container.streams[index]
        is_vp8 = stream.codec_context.name == "vp8"  # VP8 has packets of frames that are never shown.
        for packet in container.demux(stream):
            if packet.size and not packet.is_discard and not (is_vp8 and not bytes(packet)[0] & 0x10):
                if packet.pts is None:
                    return None
                times.append(packet.pts)
    return sorted(times) if len(set(times)) == len(times) else None


def _tagged_seconds(text: str) -> float | None:
    """Parse a tag such as ``00:01:02.500000000``."""
    with suppress(ValueError):
        hours, minutes, seconds = map(float, text.split(":"))
        return 3600 * hours + 60 * minutes + seconds
    return None


def _packet_ends(path: VideoSource, index: int, **options: str) -> tuple[int, float, float]:
    """Return the number of packets of a stream, its end, and the end of all streams, in seconds."""
    count, stream_end, file_end = 0, 0.0, 0.0
    with _open_container(path, sys.maxsize, **options) as container:  # Nothing is decoded.
        for packet in container.demux():
            if packet.size:
                of_stream = packet.stream.index == index
                count += of_stream
                if packet.pts is not None and not packet.is_discard:
                    end = float((packet.pts + (packet.duration or 0)) * packet.time_base)
                    stream_end, file_end = max(stream_end, end * of_stream), max(file_end, end)
    return count, stream_end, file_end


class DecodedSpan:
    """The part of a video that was decoded, to be compared with the duration that its file declares.

    FFmpeg takes the end of a truncated file for the end of the video.
    """

    def __init__(self, path: VideoSource, container: Any, stream: Any) -> None:
        self._path, self._container, self._stream = path, container, stream
        self._kind = str(container.format.name).partition(",")[0]
        self._count = 0
        self._times: list[float] = []  # Of the first and of the last frame.
        self._end = self._longest = 0.0
        self._frame_bytes = 0

    def add(self, frame: Any) -> None:
        """Add a decoded frame with its original time; raise an error if it is damaged."""
        if frame.is_corrupt:
            raise _damage_error(self._path, self._count)
        self._count += 1
        self._frame_bytes = self._frame_bytes or sum(
            plane.width * plane.height * (2 if sample_bits(frame.format.name) > 8 else 1)
            for plane in frame.planes
        )
        if frame.pts is None or frame.time_base is None:
            return
        time = float(frame.pts * frame.time_base)
        duration = float((frame.duration or 0) * frame.time_base)
        interval = time - self._times[-1] if self._times else 0.0
        self._longest = max(self._longest, duration, interval)
        self._end = max(self._end, time + duration)
        self._times = [*self._times[:1], time]

    def check_end(self) -> None:
        """Raise an error if the video ended clearly before its declared end."""
        if self._kind == "yuv4mpegpipe":
            self._check_last_frame()
            return
        declared, of_stream = self._declared()
        if not self._times or (self._stream.frames and self._count >= self._stream.frames - 2):
            return
        reached = max(self._end, self._end - self._times[0])
        slack = max(MAX_MISSING_FRAMES * self._longest, MAX_MISSING_SHARE * declared)
        if reached >= declared - slack or not self._is_damaged(declared - slack, reached + slack, of_stream):
            return
        raise FileError(
            f"{self._path} declares {declared:.2f} s and ends after {self._count} frames, at {reached:.2f} s:"
            " it is cut off or damaged. Fetch it again, repair it (ffmpeg -err_detect ignore_err -i … -c copy"
            f" …), or read the frames that it has with --frames {self._count} (count={self._count})"
        )

    def _check_last_frame(self) -> None:
        """Raise an error if the last frame of Y4M, which declares no length, is incomplete."""
        if isinstance(self._path, Y4MReader):
            size, header = self._path.size, self._path.header
        else:
            with Path(self._path).open("rb") as file:
                header = file.readline(Y4MReader.MAX_HEADER_BYTES)
            size = Path(self._path).stat().st_size
        if (size - len(header)) % (len(b"FRAME\n") + self._frame_bytes):
            raise FileError(
                f"{self._path} ends within frame {self._count}: it is cut off or damaged. Fetch it again, or"
                f" read the frames that it has with --frames {self._count} (count={self._count})"
            )

    def _is_damaged(self, min_end: float, max_end: float, of_stream: bool) -> bool:
        """Return whether packets are missing, or some gave no frames."""
        index = self._stream.index
        _, stream_end, file_end = _packet_ends(self._path, index)
        if stream_end > max_end:
            return True
        if self._kind == "mov":  # Packets that an edit list leaves out are not missing.
            count, _, _ = _packet_ends(self._path, index, ignore_editlist="1")
            return count < int(self._stream.frames) - 2
        return of_stream or file_end < min_end

    def _declared(self) -> tuple[float, bool]:
        """Return the declared duration in seconds, and whether it is that of the stream or of the file.

        It is 0 for containers that declare none, where FFmpeg estimates it from the contents.
        """
        stream, kind = self._stream, self._kind
        file_duration = (self._container.duration or 0) / 1e6
        if kind == "mov" and stream.duration is not None:
            return float(stream.duration * stream.time_base), True
        if kind == "avi" and stream.average_rate:
            return float(stream.frames / stream.average_rate), True
        if kind == "matroska":
            tagged = _tagged_seconds(stream.metadata.get("DURATION", ""))
            if tagged is not None and tagged <= file_duration:  # A longer one was copied from another file.
                return tagged, True
        return (file_duration, False) if kind in ("matroska", "flv") else (0.0, False)


def probe(path: VideoSource, max_pixels: int | None = None) -> Video:
    """Read the properties of a video without decoding it.

    Parameters
    ----------
    path : path
        The file, or ``camera:0`` for a camera.
    max_pixels : int, optional
        The maximum number of pixels in a frame; by default 100 million.

    Returns
    -------
    Video
        The properties.

    Raises
    ------
    FileError
        If the file does not exist, is damaged, is not a video, or declares more than ``max_pixels``.

    Examples
    --------
    >>> from undula import io
    >>> io.probe(io.sample("clip")).codec
    'h264'
    """
    container, stream = open_video(path.without_frames() if isinstance(path, Y4MReader) else path, max_pixels)
    with container:
        context = stream.codec_context
        has_alpha = frame_decoder(stream) is not context  # The decoder of the container ignores it.
        pixels = str(context.pix_fmt or "unknown")
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
            pixels.replace("yuv", "yuva", 1) if has_alpha and "yuva" not in pixels else pixels,
            str(context.codec.canonical_name),
            str(container.format.name),
            tuple(str(getattr(other.codec_context, "name", "unknown")) for other in container.streams.audio),
        )


def copy_planes(frame: Any) -> Planes:
    """Copy the planes of a frame, without alpha."""
    return [rows.copy() for rows in _plane_views(frame)]


def _plane_views(frame: Any) -> Iterator[Array]:
    dtype = np.dtype(np.uint8 if sample_bits(frame.format.name) == 8 else "<u2")
    for component, plane in zip(frame.format.components, frame.planes, strict=True):
        if plane.line_size < 0:
            raise FileError(f"frames of {frame.format.name} that are stored upside down are not supported")
        if not component.is_alpha:
            rows = np.frombuffer(plane, dtype).reshape(plane.height, plane.line_size // dtype.itemsize)
            yield rows[:, : plane.width]


def replace_planes(frame: Any, planes: Planes) -> Any:
    """Replace the planes of a frame; its time, colours, alpha and side data stay.

    The frame gets memory of its own first, since the decoder may still refer to the old planes.
    """
    frame.make_writable()
    largest = (1 << sample_bits(frame.format.name)) - 1
    views = list(_plane_views(frame))
    expected, got = ([(plane.shape, plane.dtype) for plane in each] for each in (views, planes))
    if expected != got:
        raise ArgumentError(f"a filter should return planes of {expected}, got {got}")
    for view, plane in zip(views, planes, strict=True):
        view[...] = np.minimum(plane, largest) if 255 < largest < 65535 else plane
    return frame


def display_matrix(frame: Any) -> tuple[int, ...]:
    """Return the 3×3 matrix by which a frame is rotated and mirrored for display."""
    try:
        data = frame.side_data["DISPLAYMATRIX"]
    except KeyError:
        return IDENTITY_MATRIX
    except ValueError:  # PyAV fails if it has no name for other side data of the frame.
        cos, sin = (round((1 << 16) * f(np.deg2rad(frame.rotation))) for f in (np.cos, np.sin))
        return (cos, -sin, 0, sin, cos, 0, 0, 0, 1 << 30)
    return tuple(int(value) for value in np.frombuffer(data, np.int32))


def _upright(pixels: Array, matrix: tuple[int, ...]) -> Array:
    """Apply a display matrix that rotates by a multiple of 90 degrees or mirrors."""
    a, b, _, c, d, *_ = matrix
    if not b and not c:
        pixels = pixels[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1]
    elif not a and not d:
        pixels = pixels.swapaxes(0, 1)[:: -1 if b < 0 else 1, :: -1 if c < 0 else 1]
    return np.ascontiguousarray(pixels)


def _upright_rgb(frame: Any) -> Array:
    return _upright(frame.to_ndarray(format="rgb24"), display_matrix(frame))


def read_frames(
    path: VideoSource, count: int | None = None, max_pixels: int | None = None
) -> Iterator[Array]:
    """Iterate over the frames of a video or a camera.

    Parameters
    ----------
    path : path
        The file, or ``camera:0`` for a camera.
    count : int, optional
        The maximum number of frames.
    max_pixels : int, optional
        The maximum number of pixels in a frame; by default 100 million.

    Yields
    ------
    ndarray of uint8
        A frame of shape ``(H, W, 3)`` in RGB, upright.

    Raises
    ------
    FileError
        If the file does not exist, is damaged, is not a video, or declares more than ``max_pixels``.

    Examples
    --------
    >>> from undula import io
    >>> [frame.ndim for frame in io.read_frames(io.sample("clip"), count=2)]
    [3, 3]
    """
    container, stream = open_video(path, max_pixels)
    with container:
        number, span = 0, DecodedSpan(path, container, stream)
        try:
            for frame in container.decode(stream):
                if count is not None and number >= count:
                    return
                span.add(frame)
                yield _upright_rgb(frame)
                number += 1
            if number != count:
                span.check_end()
        except UndulaError:
            raise
        except Exception as error:  # Decoders raise all kinds of errors.
            raise decode_error(path, number, error) from None


def read_planes(
    path: VideoSource, pixels: str, max_pixels: int | None = None
) -> Iterator[tuple[float, Planes]]:
    """Iterate over the time and the planes of each frame, in a pixel format and without alpha."""
    container, stream = open_video(path, max_pixels)
    with container:
        decoder, span = frame_decoder(stream, max_pixels), DecodedSpan(path, container, stream)
        number = 0
        try:
            for packet in container.demux(stream):
                for frame in decoder.decode(packet):
                    span.add(frame)
                    time = float(frame.pts * frame.time_base) if frame.pts is not None else math.nan
                    same = frame.format.name.replace("yuvj", "yuv") == pixels
                    yield time, copy_planes(frame if same else frame.reformat(format=pixels))
                    number += 1
            span.check_end()
        except UndulaError:
            raise
        except Exception as error:  # Decoders raise all kinds of errors.
            raise decode_error(path, number, error) from None


class VideoReader:
    """Random access to the frames of a video, numbered as by :func:`read_frames`.

    A frame shortly after the last one is reached by decoding. For others the container is asked to seek, and
    the frame is recognized by its time. If times are missing or repeated, decoding starts from the beginning.
    """

    NEAR_FRAMES = 50  # Decoding so many frames is faster than seeking.
    SEEK_BACK_SECONDS = 10  # How far before a frame to start if the first seek went too far.

    def __init__(self, path: Path, max_pixels: int | None = None) -> None:
        self.video = probe(path, max_pixels)
        self._path, self._max_pixels = path, max_pixels
        self._times: list[int] | None = None
        self._indexed = False
        self._last: Any = None  # The frame that was decoded last.
        self._container: Any = None
        self._restart()

    def close(self) -> None:
        """Close the file."""
        if self._container is not None:
            self._container.close()

    def _restart(self) -> None:
        self.close()
        self._container, self._stream = open_video(self._path, self._max_pixels)
        self._frames, self._next = iter(self._container.decode(self._stream)), 0

    def frame(self, number: int) -> Array:
        """Return a frame in RGB, upright; the last one if the number is too large."""
        try:
            if number != self._next - 1 or self._last is None:
                self._decode_until(number)
                if self._last is not None and self._last.is_corrupt:  # Decoding may have started too late.
                    self._restart()
                    self._advance(number)
        except UndulaError:
            raise
        except Exception as error:  # Decoders raise all kinds of errors.
            self._next, self._last = sys.maxsize, None  # Makes the next call seek.
            raise decode_error(self._path, number, error) from None
        if self._last is None:
            raise FileError(f"no frame of {self._path} can be decoded")
        if self._last.is_corrupt:
            raise _damage_error(self._path, self._next - 1)
        return _upright_rgb(self._last)

    def _decode_until(self, number: int) -> None:
        if self._next <= number < self._next + self.NEAR_FRAMES:
            # A frame in between may be damaged without affecting this one.
            with suppress(import_optional("av").error.FFmpegError):
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
        """Seek, and return whether the next frame is the one with this number."""
        if not self._indexed:
            guessed = times_are_guessed(self._container, self._stream)
            self._times = None if guessed else frame_times(self._path, self._stream.index)
            self._indexed = True
        if self._times is None or number >= len(self._times):
            return False
        time, base = self._times[number], self._stream.time_base
        for start in (time, time - round(self.SEEK_BACK_SECONDS / base)):
            if start < self._times[0]:
                return False
            self._container.seek(start, stream=self._stream, backward=True)
            frames = iter(self._container.decode(self._stream))
            for frame in frames:
                if frame.pts == time and not frame.is_corrupt:
                    self._frames, self._next = chain([frame], frames), number
                    return True
                if frame.pts is None or frame.pts >= time:
                    break
        return False
