"""The file that a film is written to: frames are encoded, everything else is copied.

A codec is chosen that keeps what the frames are: depth, colour resolution, range, opacity. Where none does,
an error says so before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, FileError
from .decoder import IDENTITY, display_matrix, frame_times, reason
from .files import VIDEOS, import_optional

__all__ = ["DEFAULT_ENCODERS", "VideoWriter", "check_options", "ordinary_threads"]

# The first one that keeps the frames is taken.
DEFAULT_ENCODERS = {
    "mp4": ("libx264",),
    "matroska": ("libx264",),
    "mov": ("libx264",),
    "avi": ("mpeg4", "mjpeg"),
    "webm": ("libvpx-vp9", "libsvtav1"),
}
PRESETS = "ultrafast superfast veryfast faster fast medium slow slower veryslow placebo".split()
WORST_QUALITY = 63
QUANTIZED = (
    "mpeg4",
    "mjpeg",
    "mpeg2video",
    "mpeg1video",
    "msmpeg4",
    "msmpeg4v2",
    "wmv1",
    "wmv2",
    "h263p",
    "flv",
)
CONSTANT_RATE = ("mpeg1video", "mpeg2video")  # encoders whose frames come at a few rates only
EVEN_SIDES = ("libx264", "libx265")  # where colours have half of the samples
FULL_RANGE_IN_STREAM = ("libx264", "libx265", "libvpx-vp9", "libsvtav1", "mjpeg")
ASPECT_KEPT = ("mp4", "mov")  # containers that say for every codec whether pixels are square
ASPECT_IN_STREAM = ("libx264", "libx265", "mpeg4", "mpeg2video", "mpeg1video", "ffv1")
RANGE_KEPT = ("matroska", "webm")  # containers that say for every codec whether samples are full-range
# What comes back as it was written; other formats are written, too, and read as something else.
RAW_PIXELS = {
    "avi": ["yuv420p", "yuv422p", "yuv411p", "yuv410p", "gray", "bgr24", "bgra"],
    "matroska": ["yuv420p", "yuv422p", "yuv411p", "yuv410p", "gray"],
    "mov": ["rgb24", "bgra"],
}
LARGEST_MPEG4_TIMESCALE = 65535
MOST_REORDERED = 64  # packets of a stream that may come before the first decoding time
LIMITED_RANGE, FULL_RANGE = 1, 2  # AVCOL_RANGE_MPEG and AVCOL_RANGE_JPEG
UNSPECIFIED = 2  # of AVColorSpace, AVColorPrimaries and AVColorTransferCharacteristic
GRID_TOLERANCE = Fraction(1, 4)  # of the time between frames at a constant rate
# What a container or a muxer says about itself, and is no longer true of the copy.
STALE_TAGS = (
    "ENCODER SOFTWARE VENDOR_ID MAJOR_BRAND MINOR_VERSION COMPATIBLE_BRANDS DURATION BPS NUMBER_OF_FRAMES"
    " NUMBER_OF_BYTES NAME"
).split()


def check_options(quality: int, preset: str) -> None:
    """An error for what no encoder takes, before a file is opened."""
    if preset not in PRESETS:
        raise ArgumentError(f"preset should be one of {', '.join(PRESETS)}; got {preset!r}")
    if not 0 <= quality <= WORST_QUALITY:
        raise ArgumentError(f"quality should be from 0, the best, to {WORST_QUALITY}; got {quality}")


@contextmanager
def ordinary_threads() -> Iterator[None]:
    """Threads that an encoder makes real-time ones are made ordinary again.

    SVT-AV1 raises the priority of its threads and of the caller's where it may, as it may for root; whatever
    is started afterwards inherits it, and nothing else on the machine gets to run.
    """
    if not hasattr(os, "sched_setscheduler"):
        yield
        return
    before = _real_time_threads()
    try:
        yield
    finally:
        for thread in _real_time_threads() - before:
            with suppress(OSError):
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def _real_time_threads() -> set[int]:
    found = set()
    with suppress(OSError):
        for name in os.listdir("/proc/self/task"):
            with suppress(OSError):
                if os.sched_getscheduler(int(name)) in (os.SCHED_FIFO, os.SCHED_RR):
                    found.add(int(name))
    return found


def _keeps_range(name: str, kind: str) -> bool:
    """Whether it is known afterwards that samples are full-range."""
    return kind in RANGE_KEPT or name in FULL_RANGE_IN_STREAM


def _encoder_pixels(name: str, kind: str, pixels: str, full_range: bool, odd: bool) -> str:
    """The format that an encoder keeps frames in; an error if something would be lost."""
    av = import_optional("av")
    encoder = av.Codec(name, "w")
    layout = av.VideoFormat(pixels, 16, 16)
    lossless = encoder.lossless and not encoder.lossy
    if "yuv" in pixels and full_range and not _keeps_range(name, kind):
        raise ValueError(f"{name} in this container does not keep full-range {pixels}")
    if name == "mjpeg" and "yuv" in pixels and not full_range:
        raise ValueError(f"mjpeg does not keep {pixels} of limited range")
    names = [str(each.name) for each in encoder.video_formats or []]
    if name in EVEN_SIDES and odd:
        names = [each for each in names if "444" in each or "gray" in each]
    if name == "rawvideo":
        names = RAW_PIXELS.get(kind, [])
        if not names:
            raise ValueError("this container does not keep rawvideo")
    for same in (pixels, pixels.replace("yuvj", "yuv")):
        if same in names or not names:
            return same
    gray = len(layout.components) == 1
    if not layout.is_rgb:  # (grey as red, green and blue would be kept, and few players show it)
        names = [each for each in names if not av.VideoFormat(each, 16, 16).is_rgb]
    if not names:
        raise ValueError(f"{name} does not keep {pixels}")
    best, loss = av.codec.codec.find_best_pix_fmt_of_list(names, pixels, True)
    losses = av.codec.codec.PixFmtLoss
    serious = losses.DEPTH if gray and not lossless else ~losses.NONE & 0x3F
    if best is None or loss & serious:
        raise ValueError(f"{name} does not keep {pixels}")
    return str(best.name)


def _choose(
    kind: str, target: Path, codec: str | None, source: Any, pixels: str, full_range: bool, odd: bool
) -> tuple[str, str]:
    """An encoder that keeps frames as they are, and its format."""
    av = import_optional("av")
    names = (codec,) if codec is not None else DEFAULT_ENCODERS[kind]
    if codec is None and source.lossless and not source.lossy and kind in ("matroska", "avi"):
        names = ("ffv1",)  # What was kept without loss stays so.
    errors = []
    for name in names:
        if name not in av.codecs_available or not _is_encoder(name):
            errors.append(f"this FFmpeg has no video encoder named {name!r}")
            continue
        try:
            return name, _encoder_pixels(name, kind, pixels, full_range, odd)
        except ValueError as error:
            errors.append(str(error))
    advice = "choose another with --codec" if codec is not None else "name a codec that does with --codec"
    raise FileError(f"cannot write {target}: {', '.join(errors)}; {advice}, or write .mkv with --codec ffv1")


def _is_encoder(name: str) -> bool:
    try:
        return str(import_optional("av").Codec(name, "w").type) == "video"
    except Exception:  # (PyAV's own error, which is no public name in all versions)
        return False


def _encoder_options(name: str, quality: int, preset: str) -> dict[str, str]:
    """A constant quality, 0 to 51 as for H.264, in the words of an encoder."""
    if name in ("libx264", "libx265"):
        quiet = {"x265-params": "log-level=error"} if name == "libx265" else {}
        return {"crf": str(min(quality, 51)), "preset": preset} | quiet
    if name in ("libvpx-vp9", "libvpx"):
        rate = "0" if name == "libvpx-vp9" else "50M"  # (the most that VP8 may take)
        fast = {"deadline": "realtime", "cpu-used": "8"}
        return {"crf": str(quality), "b": rate} | fast | ({"row-mt": "1"} if rate == "0" else {})
    if name == "libsvtav1":
        os.environ.setdefault("SVT_LOG", "1")  # (or it prints all its settings)
        return {"crf": str(quality), "preset": "10"}
    if name in QUANTIZED:
        # Six steps of H.264's quantizer double it: 18 is 2 here.
        step = min(31, max(1, round(2 ** ((quality - 12) / 6))))
        return {"flags": "+qscale", "global_quality": str(118 * step), "qmin": "1"}
    return {}


def _constant_rate(path: Path, stream: Any, target: Path, what: str) -> Fraction:
    """A rate at which every frame has a place of its own, near its time."""
    guesses = (stream.average_rate, stream.guessed_rate, stream.base_rate)
    rates = [Fraction(rate) for rate in guesses if rate] or [Fraction(25)]
    times = None if str(path).startswith("camera:") else frame_times(path, stream.index)
    if not times:
        return rates[0]
    for rate in rates:
        places = [(time - times[0]) * stream.time_base * rate for time in times]
        if len({round(place) for place in places}) == len(places) and all(
            abs(place - round(place)) <= GRID_TOLERANCE for place in places
        ):
            return rate
    raise FileError(
        f"cannot write {target}: the frames of {path} do not come at a constant rate, and {what} keeps no"
        " other; write .mkv, .mp4 or .webm"
    )


def _tags(metadata: dict[str, str]) -> dict[str, str]:
    """Tags that are still true of a copy; MP4 calls the title of a stream its name."""
    tags = {
        key: value
        for key, value in metadata.items()
        if key.partition("-")[0].upper() not in STALE_TAGS and not key.startswith("_STATISTICS")
    }
    return {"title": metadata["name"]} | tags if "name" in metadata else tags


class VideoWriter:
    """A container that is written: one stream encoded, others copied.

    Parameters
    ----------
    path : Path
        Where it is written; errors speak of ``target``.
    source : Path
    container, film
        What is read.
    first : av.VideoFrame
        The first frame of the film, in the format that it is filtered in.
    others : sequence of streams
        Copied as they are.
    """

    def __init__(
        self,
        path: Path,
        target: Path,
        source: Path,
        container: Any,
        film: Any,
        first: Any,
        others: Sequence[Any],
        codec: str | None,
        quality: int,
        preset: str,
    ) -> None:
        av = import_optional("av")
        self.target, self.kind = target, VIDEOS[target.suffix.lower()]
        pixels = str(first.format.name)
        full_range = first.color_range == FULL_RANGE or "yuvj" in pixels
        odd = bool(first.width % 2 or first.height % 2)
        name, self._pixels = _choose(
            self.kind, target, codec, film.codec_context.codec, pixels, full_range, odd
        )
        if len(first.format.components) == 1:  # Grey is full-range, unless it says that it is not.
            full_range = first.color_range != LIMITED_RANGE and _keeps_range(name, self.kind)
        self._suffix = source.suffix if source.suffix not in ("", target.suffix) else ".mkv"
        self._size = first.width, first.height
        self._aspect = film.sample_aspect_ratio or Fraction(1)
        if self._aspect != 1 and self.kind not in ASPECT_KEPT and name not in ASPECT_IN_STREAM:
            self._square_pixels(name)
        self._matrix = self._checked_matrix(display_matrix(first))
        self._rate: Fraction | None = None
        self._begin: Fraction | None = None
        if self.kind == "avi" or name in CONSTANT_RATE:
            what = target.suffix if self.kind == "avi" else name
            self._rate = _constant_rate(source, film, target, what)
        try:
            self._container = av.open(str(path), "w", format=self.kind)
        except Exception as error:  # (FFmpeg's libraries raise anything, ValueError and OSError too)
            raise FileError(f"cannot write {target}: {reason(error)}") from None
        try:
            self._add_film(name, film, first, full_range, _encoder_options(name, quality, preset))
            self._copied: dict[int, Any] = {}
            self._undated: dict[int, list[Any]] = {}  # packets without decoding times, by stream
            for other in others:
                self._add_copy(other)
            self._container.metadata.update(_tags(container.metadata))
            self._container.set_chapters(container.chapters())
            # Without this Matroska writes random identifiers, and no two files are the same.
            self._container.flags |= av.container.core.Flags.bitexact.value
        except BaseException:
            self._container.close()
            raise
        self._name, self._started = name, False

    def _square_pixels(self, name: str) -> None:
        """Frames become wider or higher where nothing else can say that their pixels are not square."""
        encoder = import_optional("av").Codec(name, "w")
        if encoder.lossless and not encoder.lossy:
            raise FileError(
                f"cannot write {self.target}: {name} in {self.target.suffix} does not keep that pixels are"
                f" {self._aspect.numerator}:{self._aspect.denominator}; write .mkv with --codec ffv1"
            )
        width, height = self._size
        if self._aspect > 1:
            width = 2 * round(width * self._aspect / 2)
        else:
            height = 2 * round(height / self._aspect / 2)
        self._size, self._aspect = (width, height), Fraction(1)

    def _checked_matrix(self, matrix: tuple[int, ...]) -> tuple[int, ...]:
        a, b, _, c, d, *_ = matrix
        turned = a == d and b == -c
        if matrix[:5] == IDENTITY[:5] or self.kind in ("mp4", "mov") or (self.kind != "avi" and turned):
            return matrix
        raise FileError(
            f"cannot write {self.target}: the video is shown turned or mirrored, and"
            f" {self.target.suffix} does not keep that; write .mp4 or .mov"
        )

    def _add_film(self, name: str, film: Any, first: Any, full_range: bool, options: dict[str, str]) -> None:
        av = import_optional("av")
        rate = self._rate or film.average_rate or film.guessed_rate or Fraction(25)
        try:
            stream = self._container.add_stream(name, rate=rate, options=options)
        except Exception as error:  # (FFmpeg's libraries raise anything, ValueError and OSError too)
            raise FileError(f"no encoder {name!r} for {self.target}: {reason(error)}") from None
        context = stream.codec_context
        context.width, context.height = self._size
        context.pix_fmt = self._pixels
        base = 1 / self._rate if self._rate else film.time_base
        if base is not None and name == "mpeg4" and base.denominator > LARGEST_MPEG4_TIMESCALE:
            base = Fraction(1, 60000)
        if base is not None:
            context.time_base = base
        for what in ("colorspace", "color_primaries", "color_trc"):
            value = getattr(first, what)
            setattr(context, what, getattr(film.codec_context, what) if value == UNSPECIFIED else value)
        context.color_range = (
            FULL_RANGE if full_range else first.color_range or film.codec_context.color_range
        )
        context.sample_aspect_ratio = self._aspect if film.sample_aspect_ratio else Fraction(0)
        context.flags |= av.codec.context.Flags.frame_duration
        if self._matrix[:5] != IDENTITY[:5]:
            stream.set_display_matrix(self._matrix)
        stream.metadata.update(_tags(film.metadata))
        stream.disposition = film.disposition
        self._stream = stream

    def _add_copy(self, other: Any) -> None:
        flags = import_optional("av").stream.Disposition
        cover = other.type == "video" and other.disposition & flags.attached_pic
        what = "cover art" if cover else other.type
        try:
            if cover and self.kind == "matroska":
                return  # (its packet becomes an attachment)
            if (cover and self.kind != "mp4") or (other.type == "attachment" and self.kind != "matroska"):
                return
            stream = self._container.add_stream_from_template(other, opaque=True)
        except Exception as error:  # (FFmpeg's libraries raise anything, ValueError and OSError too)
            name = getattr(other.codec_context, "name", "an unknown codec")
            raise FileError(
                f"cannot write {self.target}: {self.target.suffix} keeps no {what} of {name}"
                f" ({reason(error)}); write {self._suffix}, or the film alone (audio=False, --no-audio)"
            ) from None
        stream.metadata.update(_tags(other.metadata))
        stream.disposition = other.disposition
        self._copied[other.index] = stream

    def start(self, held: Sequence[Any]) -> None:
        """Opens the encoder and writes the header; ``held`` are the packets before the first frame."""
        for packet in held:
            if packet.stream.index not in self._copied and self.kind == "matroska":
                self._attach_cover(packet)
        try:
            with ordinary_threads():
                self._container.start_encoding()
        except OSError:
            raise
        except Exception:  # (FFmpeg says "invalid argument", and no more)
            width, height = self._size
            raise FileError(
                f"cannot write {self.target}: {self._name} for {self.target.suffix} does not take"
                f" {self._pixels} of {width} × {height}; choose another suffix or --codec"
            ) from None
        self._started = True
        for packet in held:
            self.copy(packet)

    def _attach_cover(self, packet: Any) -> None:
        cover = packet.stream
        suffix = {"mjpeg": "jpg"}.get(cover.codec_context.name, cover.codec_context.name)
        mime = f"image/{'jpeg' if suffix == 'jpg' else suffix}"
        name = cover.metadata.get("filename", f"cover.{suffix}")
        self._container.add_attachment(name, cover.metadata.get("mimetype", mime), bytes(packet))

    def encode(self, frame: Any) -> None:
        """A frame of the film."""
        pts, base = frame.pts, frame.time_base
        if (frame.format.name, frame.width, frame.height) != (self._pixels, *self._size):
            full = self._stream.codec_context.color_range == FULL_RANGE
            ranges = {"src_color_range": "JPEG", "dst_color_range": "JPEG"} if full else {}
            frame = frame.reformat(*self._size, self._pixels, **ranges)
            frame.pts, frame.time_base = pts, base
        if self._rate is not None and pts is not None:
            time = pts * base
            self._begin = time if self._begin is None else self._begin
            frame.pts = round((time - self._begin) * self._rate) + round(self._begin * self._rate)
            frame.time_base = 1 / self._rate
            frame.duration = 1
        frame.pict_type = 0  # (the encoder knows better than the last one)
        self._container.mux(self._stream.encode(frame))

    def copy(self, packet: Any) -> None:
        """A packet of another stream, if it is kept.

        Matroska has no decoding times. Where frames are stored out of order FFmpeg knows them only after some
        packets: the first ones wait for it.
        """
        if packet.stream.index not in self._copied:
            return
        waiting = self._undated.setdefault(packet.stream.index, [])
        if packet.dts is None and packet.stream.type == "video" and len(waiting) < MOST_REORDERED:
            waiting.append(packet)
            return
        if packet.dts is None:
            packet.dts = packet.pts = packet.pts or 0
        self._copy_undated(packet.stream.index, packet.dts)
        self._mux_copy(packet)

    def _copy_undated(self, index: int, until: int | None) -> None:
        """Writes the packets of a stream that wait for decoding times; those are before the one given."""
        packets = self._undated.pop(index, [])
        if until is None:
            until = max(((packet.pts or 0) + max(1, packet.duration or 0) for packet in packets), default=0)
        for packet in reversed(packets):
            until -= max(1, packet.duration or 0)
            packet.dts = until = until if packet.pts is None else min(until, packet.pts)
            packet.pts = until if packet.pts is None else packet.pts
        for packet in packets:
            self._mux_copy(packet)

    def _mux_copy(self, packet: Any) -> None:
        source = packet.stream
        packet.stream = self._copied[source.index]
        try:
            self._container.mux(packet)
        except OSError:
            raise
        except Exception as error:  # (FFmpeg's libraries raise anything, ValueError and OSError too)
            name = getattr(source.codec_context, "name", "an unknown codec")
            raise FileError(
                f"cannot write {self.target}: stream {source.index} ({name}) cannot be copied:"
                f" {reason(error)}; --no-audio (audio=False) leaves it out"
            ) from None

    def finish(self) -> None:
        """Writes what the encoder still has, and the end of the file."""
        for index in list(self._undated):
            self._copy_undated(index, None)
        self._container.mux(self._stream.encode(None))
        self._container.close()

    def abandon(self) -> None:
        """Closes a file that is not wanted any more."""
        with suppress(Exception):
            self._container.close()
