"""Decode video from local files and cameras.

    path ─▶ container (a file, no playlist) ─▶ main video stream ─▶ frames ─▶ planes

Decoders keep references to the frames that they return, since later frames are predicted from them. Planes
are therefore copied out of a frame, and a frame is made writable before its planes are replaced.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, FileError
from .cutting import Cut
from .decoded_span import DecodedSpan
from .files import check_size, import_optional, pixel_limit
from .foreign import foreign_code
from .pixel_formats import pixel_format, sample_bits
from .video_sources import (
    VideoSource,
    Y4MReader,
    damage_error,
    decode_error,
    decoder_limit,
    is_live,
    open_container,
)

__all__ = [
    "Planes",
    "Video",
    "VideoReader",
    "copy_planes",
    "display_matrix",
    "find_frame",
    "frame_decoder",
    "frame_times",
    "mended_times",
    "open_video",
    "probe",
    "read_frames",
    "read_planes",
    "replace_planes",
    "times_are_guessed",
]

Array = NDArray[Any]
Planes = list[Array]

STILL_DISPOSITIONS = ("attached_pic", "timed_thumbnails", "still_image")
STILL_PACKETS = 64  # A stream with at most one of the first so many packets is a still image.
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
        return self.pixels != "unknown" and bool(pixel_format(self.pixels).is_rgb)


def open_video(path: VideoSource, max_pixels: int | None = None) -> tuple[Any, Any]:
    """Open a container; return it with its main video stream."""
    container = open_container(path, max_pixels)
    try:
        stream = _main_stream(container, path, max_pixels)
        context = stream.codec_context
        pixels = context.width * context.height
        limit = pixel_limit(max_pixels)
        if not pixels:  # FFmpeg resets a size that it has refused.
            raise FileError(
                f"the frames of {path} have more pixels than the limit of {limit:,}, or no size; raise it"
                " with max_pixels if you trust the file"
            )
        bits = context.format.padded_bits_per_pixel if context.format else 0
        check_size(Path(str(path)), pixels, max_pixels, pixels * bits // 8)
        # Frames may be larger than the container declares, which only the decoder sees.
        context.options = {"max_pixels": decoder_limit(max_pixels)}
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
    with open_container(path, max_pixels) as container:
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
    context.options = {"max_pixels": decoder_limit(max_pixels)}
    return context


def find_frame(path: VideoSource, index: int, cut: Cut) -> tuple[int, Fraction | None]:
    """Return the number of the packet of a stream to start decoding at for a part, and its first time.

    The packet is that of the last but one key frame before the part: after a recovery point, which FFmpeg
    takes for a key frame, some frames are incomplete. The time is None if the part has no frames.
    """
    numbers, first = [0, 0], None
    with open_container(path, sys.maxsize) as container:  # Nothing is decoded.
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
    """Return whether packets have decoding times only, as in AVI, and frames may be stored out of order.

    FFmpeg also delays the frames of H.264 that are in order.
    """
    context = stream.codec_context
    is_reordered = bool(context.has_b_frames) or context.name in ("h264", "hevc")
    return str(container.format.name) == "avi" and is_reordered


def frame_times(path: VideoSource, index: int) -> list[int] | None:
    """Return the sorted presentation times of a stream; None if any is missing or repeated."""
    times: list[int] = []
    with open_container(path, sys.maxsize) as container:  # Nothing is decoded.
        stream, is_avi = container.streams[index], str(container.format.name) == "avi"
        is_vp8 = stream.codec_context.name == "vp8"  # VP8 has packets of frames that are never shown.
        for packet in container.demux(stream):
            if packet.size and not packet.is_discard and not (is_vp8 and not bytes(packet)[0] & 0x10):
                time = packet.dts if is_avi else packet.pts  # AVI has slots in the order of decoding.
                if time is None:
                    return None
                times.append(time)
    return sorted(times) if len(set(times)) == len(times) else None


def mended_times(path: VideoSource, stream: Any) -> dict[int, list[int]]:
    """Return distinct times for the frames of MPEG-1 and MPEG-2 that FFmpeg gives repeated ones.

    A packet of a program or transport stream may contain several frames and has the time of one of them.
    FFmpeg gives it to another, so that frames before are late, and there is a gap where they should begin.

    Returns
    -------
    dict of list of int
        By the time that FFmpeg gives to frames, the times of these frames in their order. It is empty if
        no time is repeated, or if times are missing or begin again.
    """
    rate = stream.average_rate or stream.guessed_rate
    is_mpeg = stream.codec_context.name in ("mpeg1video", "mpeg2video")
    if is_live(path) or not is_mpeg or not rate:
        return {}
    with open_container(path, sys.maxsize) as container:  # Nothing is decoded.
        packets = (packet for packet in container.demux(container.streams[stream.index]) if packet.size)
        pairs = [(packet.pts, packet.dts) for packet in packets]
    pts, dts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if len(set(pts)) == len(pts) or None in pts or None in dts or dts != sorted(dts):
        return {}
    given = sorted(pts)
    times, interval = given.copy(), max(1, round(1 / (rate * stream.time_base)))
    for number in range(len(times) - 2, -1, -1):
        if times[number] >= times[number + 1]:
            times[number] = times[number + 1] - interval
    mended: dict[int, list[int]] = {}
    for before, after in zip(given, times, strict=True):
        mended.setdefault(before, []).append(after)
    return mended if times[0] >= min(0, given[0]) else {}


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
        with foreign_code(lambda error: decode_error(path, number, error)):
            for frame in container.decode(stream):
                if count is not None and number >= count:
                    return
                span.add(frame)
                yield _upright_rgb(frame)
                number += 1
            if number != count:
                span.check_end()


def read_planes(
    path: VideoSource, pixels: str, max_pixels: int | None = None
) -> Iterator[tuple[float, Planes]]:
    """Iterate over the time and the planes of each frame, in a pixel format and without alpha."""
    container, stream = open_video(path, max_pixels)
    with container:
        decoder, span = frame_decoder(stream, max_pixels), DecodedSpan(path, container, stream)
        number = 0
        with foreign_code(lambda error: decode_error(path, number, error)):
            for packet in container.demux(stream):
                for frame in decoder.decode(packet):
                    span.add(frame)
                    time = float(frame.pts * frame.time_base) if frame.pts is not None else math.nan
                    same = frame.format.name.replace("yuvj", "yuv") == pixels
                    yield time, copy_planes(frame if same else frame.reformat(format=pixels))
                    number += 1
            span.check_end()


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
        with foreign_code(lambda error: self._decode_error(number, error)):
            if number != self._next - 1 or self._last is None:
                self._decode_until(number)
                if self._last is not None and self._last.is_corrupt:  # Decoding may have started too late.
                    self._restart()
                    self._advance(number)
        if self._last is None:
            raise FileError(f"no frame of {self._path} can be decoded")
        if self._last.is_corrupt:
            raise damage_error(self._path, self._next - 1)
        return _upright_rgb(self._last)

    def _decode_error(self, number: int, error: BaseException) -> FileError:
        self._next, self._last = sys.maxsize, None  # Makes the next call seek.
        return decode_error(self._path, number, error)

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
