"""Write a video: its main stream is encoded, all others are copied.

The encoder is one that keeps the depth, chroma resolution, range and alpha of the frames. If there is none,
an error says so before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, FileError
from .decoder import IDENTITY_MATRIX, display_matrix, frame_times
from .files import VIDEOS, import_optional, short_message

__all__ = ["DEFAULT_ENCODERS", "VideoWriter", "check_options", "ordinary_threads", "repeatable_options"]

# The first encoder that keeps the frames is used.
DEFAULT_ENCODERS = {
    "mp4": ("libx264",),
    "matroska": ("libx264",),
    "mov": ("libx264",),
    "avi": ("mpeg4", "mjpeg"),
    "webm": ("libvpx-vp9", "libsvtav1"),
}
PRESETS = "ultrafast superfast veryfast faster fast medium slow slower veryslow placebo".split()
WORST_QUALITY = 63
# Encoders whose quality is a quantizer.
QUANTIZED = "mpeg4 mjpeg mpeg2video mpeg1video msmpeg4 msmpeg4v2 wmv1 wmv2 h263p flv".split()
CONSTANT_RATE = ("mpeg1video", "mpeg2video")  # Encoders that support only some constant frame rates.
EVEN_SIDES = ("libx264", "libx265")  # Encoders that need an even width and height for subsampled chroma.
FULL_RANGE_IN_STREAM = ("libx264", "libx265", "libvpx-vp9", "libsvtav1", "mjpeg")
FULL_RANGE_IN_CONTAINER = ("matroska", "webm")
ASPECT_IN_STREAM = ("libx264", "libx265", "mpeg4", "mpeg2video", "mpeg1video", "ffv1")
ASPECT_IN_CONTAINER = ("mp4", "mov")
# Raw formats that are read as they were written; others are written as well, but read as something else.
RAW_PIXELS = {
    "avi": ["yuv420p", "yuv422p", "yuv411p", "yuv410p", "gray", "bgr24", "bgra"],
    "matroska": ["yuv420p", "yuv422p", "yuv411p", "yuv410p", "gray"],
    "mov": ["rgb24", "bgra"],
}
MACROBLOCK = 16  # The width of a macroblock of H.264, in pixels.
X264_LANES = 8  # Macroblocks that libx264 processes together with AVX-512.
# LLVM's names of what libx264 calls AVX512, and of what its option asm=avx2 enables.
AVX512_FEATURES = "avx512f avx512bw avx512cd avx512dq avx512vl".split()
AVX2_FEATURES = "avx2 fma bmi bmi2 lzcnt".split()
MAX_MPEG4_TIMESCALE = 65535
MAX_REORDERED_PACKETS = 64  # Packets of a stream that may come before its first decoding time.
LIMITED_RANGE, FULL_RANGE = 1, 2  # AVCOL_RANGE_MPEG and AVCOL_RANGE_JPEG
UNSPECIFIED = 2  # of AVColorSpace, AVColorPrimaries and AVColorTransferCharacteristic
GRID_TOLERANCE = Fraction(1, 4)  # In frame intervals of a constant rate.
# Tags that describe the file that they are in, and are wrong in a copy.
STALE_TAGS = (
    "ENCODER SOFTWARE VENDOR_ID MAJOR_BRAND MINOR_VERSION COMPATIBLE_BRANDS DURATION BPS NUMBER_OF_FRAMES"
    " NUMBER_OF_BYTES NAME"
).split()


def check_options(quality: int, preset: str) -> None:
    """Raise an error for options that no encoder accepts."""
    if preset not in PRESETS:
        raise ArgumentError(f"preset must be one of {', '.join(PRESETS)}; got {preset!r}")
    if not 0 <= quality <= WORST_QUALITY:
        raise ArgumentError(f"quality must be from 0, the best, to {WORST_QUALITY}; got {quality}")


@contextmanager
def ordinary_threads() -> Iterator[None]:
    """Reset threads that an encoder gives real-time priority.

    SVT-AV1 gives it to its own threads and to the calling one if it has the permission, as for root.
    Everything that is started afterwards would inherit it and starve the rest of the machine.
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
    threads = set()
    with suppress(OSError):
        for name in os.listdir("/proc/self/task"):
            with suppress(OSError):
                if os.sched_getscheduler(int(name)) in (os.SCHED_FIFO, os.SCHED_RR):
                    threads.add(int(name))
    return threads


def _keeps_range(name: str, kind: str) -> bool:
    """Return whether the stream or the container stores that samples are full-range."""
    return kind in FULL_RANGE_IN_CONTAINER or name in FULL_RANGE_IN_STREAM


def _encoder_pixels(name: str, kind: str, pixels: str, full_range: bool, odd_size: bool) -> str:
    """Return the format in which an encoder keeps frames; raise ValueError if something would be lost."""
    av = import_optional("av")
    encoder = av.Codec(name, "w")
    pixel_format = av.VideoFormat(pixels, 16, 16)
    if "yuv" in pixels and full_range and not _keeps_range(name, kind):
        raise ValueError(f"{name} in this container cannot store full-range {pixels}")
    if name == "mjpeg" and "yuv" in pixels and not full_range:
        raise ValueError(f"mjpeg cannot store limited-range {pixels}")
    formats = [str(video_format.name) for video_format in encoder.video_formats or []]
    if name in EVEN_SIDES and odd_size:
        formats = [candidate for candidate in formats if "444" in candidate or "gray" in candidate]
    if name == "rawvideo":
        formats = RAW_PIXELS.get(kind, [])
        if not formats:
            raise ValueError("this container cannot store rawvideo")
    for equivalent in (pixels, pixels.replace("yuvj", "yuv")):
        if equivalent in formats or not formats:
            return equivalent
    if not pixel_format.is_rgb:  # RGB would keep grey, but few players show it.
        formats = [candidate for candidate in formats if not av.VideoFormat(candidate, 16, 16).is_rgb]
    if not formats:
        raise ValueError(f"{name} cannot store {pixels}")
    best, loss = av.codec.codec.find_best_pix_fmt_of_list(formats, pixels, True)
    losses = av.codec.codec.PixFmtLoss
    grey, lossless = len(pixel_format.components) == 1, encoder.lossless and not encoder.lossy
    serious = losses.DEPTH if grey and not lossless else ~losses.NONE & 0x3F
    if best is None or loss & serious:
        raise ValueError(f"{name} cannot store {pixels}")
    return str(best.name)


def _choose_encoder(
    kind: str, target: Path, codec: str | None, source: Any, pixels: str, full_range: bool, odd_size: bool
) -> tuple[str, str]:
    """Return the name of an encoder that keeps frames as they are, and its pixel format."""
    av = import_optional("av")
    names = (codec,) if codec is not None else DEFAULT_ENCODERS[kind]
    if codec is None and source.lossless and not source.lossy and kind in ("matroska", "avi"):
        names = ("ffv1",)  # A lossless source stays lossless.
    errors = []
    for name in names:
        if name not in av.codecs_available or not _is_encoder(name):
            errors.append(f"this FFmpeg has no video encoder named {name!r}")
            continue
        try:
            return name, _encoder_pixels(name, kind, pixels, full_range, odd_size)
        except ValueError as error:
            errors.append(str(error))
    advice = "choose another with --codec" if codec is not None else "choose a codec that does with --codec"
    raise FileError(f"cannot write {target}: {', '.join(errors)}; {advice}, or write .mkv with --codec ffv1")


def _is_encoder(name: str) -> bool:
    try:
        return str(import_optional("av").Codec(name, "w").type) == "video"
    except Exception:  # PyAV's own error is not public in all versions.
        return False


def _encoder_options(name: str, quality: int, preset: str) -> dict[str, str]:
    """Return the options of an encoder for a constant quality, on the scale of H.264."""
    if name in ("libx264", "libx265"):
        quiet = {"x265-params": "log-level=error"} if name == "libx265" else {}
        return {"crf": str(min(quality, 51)), "preset": preset} | quiet
    if name in ("libvpx-vp9", "libvpx"):
        rate = "0" if name == "libvpx-vp9" else "50M"  # VP8 needs an upper limit.
        fast = {"deadline": "realtime", "cpu-used": "8"}
        return {"crf": str(quality), "b": rate} | fast | ({"row-mt": "1"} if rate == "0" else {})
    if name == "libsvtav1":
        os.environ.setdefault("SVT_LOG", "1")  # Otherwise it prints all its settings.
        return {"crf": str(quality), "preset": "10"}
    if name in QUANTIZED:
        # The quantizer of H.264 doubles every six steps; 18 corresponds to 2 here.
        step = min(31, max(1, round(2 ** ((quality - 12) / 6))))
        return {"flags": "+qscale", "global_quality": str(118 * step), "qmin": "1"}
    return {}


def repeatable_options(name: str, width: int) -> dict[str, str]:
    """Return the options that an encoder needs to write the same bytes in every run.

    libx264 (at least builds 164 and 165) has one function for AVX-512, ``mbtree_propagate_list``, that
    processes eight macroblocks at once and does not mask those beyond the end of a row. If the number of
    macroblocks in a row is not a multiple of eight, their costs are read from uninitialized memory and change
    the quantizers of other macroblocks. Its functions for AVX2 stop at the end of the row.
    """
    encoder = str(import_optional("av").Codec(name, "w").name)  # The name "h264" also stands for libx264.
    macroblocks = -(-width // MACROBLOCK)
    if encoder not in ("libx264", "libx264rgb") or macroblocks % X264_LANES == 0:
        return {}
    # The cost of AVX2 instead of AVX-512 is below the noise: 30 frames of 1920 × 1080 take 1.76 s of
    # processor time instead of 1.75 s (medians of five runs; veryfast, CRF 18). The alternative, mbtree=0,
    # made files of noisy frames 12 to 44 % larger at the same CRF.
    return {"x264-params": "asm=avx2"} if _has_avx512() else {}


@cache
def _has_avx512() -> bool:
    """Return whether libx264 would use AVX-512, and may be told to use AVX2 instead."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return all(features.get(feature) for feature in AVX512_FEATURES + AVX2_FEATURES)


def _constant_rate(path: Path, stream: Any, target: Path, name: str) -> Fraction:
    """Return a rate at which each frame has a slot of its own near its time; ``name`` requires one."""
    guesses = (stream.average_rate, stream.guessed_rate, stream.base_rate)
    rates = [Fraction(rate) for rate in guesses if rate] or [Fraction(25)]
    times = None if str(path).startswith("camera:") else frame_times(path, stream.index)
    if not times:
        return rates[0]
    for rate in rates:
        slots = [(time - times[0]) * stream.time_base * rate for time in times]
        near = all(abs(slot - round(slot)) <= GRID_TOLERANCE for slot in slots)
        if near and len(set(map(round, slots))) == len(slots):
            return rate
    raise FileError(
        f"cannot write {target}: {name} needs a constant rate, which the frames of {path} do not have; write"
        " .mkv, .mp4 or .webm"
    )


def _decoded_tag(tag: str) -> str:
    """Return a tag without surrogates; bytes that are not UTF-8, as in old AVI files, are Latin-1."""
    data = tag.encode("utf-8", "surrogateescape")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _decoded_tags(metadata: dict[str, str]) -> dict[str, str]:
    """Return all tags as text that can be encoded."""
    return {_decoded_tag(key): _decoded_tag(value) for key, value in metadata.items()}


def _valid_tags(metadata: dict[str, str]) -> dict[str, str]:
    """Return the tags that are valid in a copy; MP4 calls the title of a stream its name."""
    metadata = _decoded_tags(metadata)
    tags = {
        key: value
        for key, value in metadata.items()
        if key.partition("-")[0].upper() not in STALE_TAGS and not key.startswith("_STATISTICS")
    }
    return {"title": metadata["name"]} | tags if "name" in metadata else tags


class VideoWriter:
    """A container to write: one stream is encoded, others are copied.

    Parameters
    ----------
    path : Path
        The temporary file to write.
    target : Path
        The file that errors refer to; its suffix determines the container.
    source : Path
        The file that is read.
    container, stream
        The container that is read, and its main video stream.
    first : av.VideoFrame
        The first frame, in the format that it is filtered in.
    others : sequence of streams
        The streams to copy.
    codec, quality, preset
        See :func:`undula.io.process`.
    """

    def __init__(
        self,
        path: Path,
        target: Path,
        source: Path,
        container: Any,
        stream: Any,
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
        odd_size = bool(first.width % 2 or first.height % 2)
        self._encoder, self._pixels = _choose_encoder(
            self.kind, target, codec, stream.codec_context.codec, pixels, full_range, odd_size
        )
        name = self._encoder
        if len(first.format.components) == 1:  # Grey is full-range by default.
            full_range = first.color_range != LIMITED_RANGE and _keeps_range(name, self.kind)
        self._advised_suffix = source.suffix if source.suffix not in ("", target.suffix) else ".mkv"
        self._size = first.width, first.height
        self._aspect = stream.sample_aspect_ratio or Fraction(1)
        if self._aspect != 1 and self.kind not in ASPECT_IN_CONTAINER and name not in ASPECT_IN_STREAM:
            self._resize_to_square_pixels()
        self._matrix = self._checked_matrix(display_matrix(first))
        self._rate: Fraction | None = None
        self._first_time: Fraction | None = None
        if self.kind == "avi" or name in CONSTANT_RATE:
            self._rate = _constant_rate(source, stream, target, target.suffix if self.kind == "avi" else name)
        try:
            self._container = av.open(str(path), "w", format=self.kind)
        except Exception as error:  # FFmpeg's libraries raise all kinds of errors.
            raise FileError(f"cannot write {target}: {short_message(error)}") from None
        try:
            options = _encoder_options(name, quality, preset) | repeatable_options(name, self._size[0])
            self._add_encoded_stream(stream, first, full_range, options)
            self._copied: dict[int, Any] = {}
            self._undated: dict[int, list[Any]] = {}  # Packets without decoding times, by stream.
            for other in others:
                self._add_copied_stream(other)
            self._container.metadata.update(_valid_tags(container.metadata))
            self._container.set_chapters(
                [
                    {**chapter, "metadata": _decoded_tags(chapter["metadata"])}
                    for chapter in container.chapters()
                ]
            )
            # Without this, Matroska writes random identifiers, and files are not reproducible.
            self._container.flags |= av.container.core.Flags.bitexact.value
        except BaseException:
            self._container.close()
            raise

    def _resize_to_square_pixels(self) -> None:
        """Enlarge the frames, if neither stream nor container can store an aspect ratio of pixels."""
        encoder = import_optional("av").Codec(self._encoder, "w")
        if encoder.lossless and not encoder.lossy:
            raise FileError(
                f"cannot write {self.target}: {self._encoder} in {self.target.suffix} cannot store the pixel"
                f" aspect ratio {self._aspect.numerator}:{self._aspect.denominator}; write .mkv with --codec"
                " ffv1"
            )
        width, height = self._size
        if self._aspect > 1:
            width = 2 * round(width * self._aspect / 2)
        else:
            height = 2 * round(height / self._aspect / 2)
        self._size, self._aspect = (width, height), Fraction(1)

    def _checked_matrix(self, matrix: tuple[int, ...]) -> tuple[int, ...]:
        a, b, _, c, d, *_ = matrix
        rotated = a == d and b == -c and self.kind != "avi"
        if matrix[:5] == IDENTITY_MATRIX[:5] or self.kind in ("mp4", "mov") or rotated:
            return matrix
        raise FileError(
            f"cannot write {self.target}: the video is displayed rotated or mirrored, which"
            f" {self.target.suffix} cannot store; write .mp4 or .mov"
        )

    def _add_encoded_stream(self, source: Any, first: Any, full_range: bool, options: dict[str, str]) -> None:
        av, name = import_optional("av"), self._encoder
        rate = self._rate or source.average_rate or source.guessed_rate or Fraction(25)
        try:
            stream = self._container.add_stream(name, rate=rate, options=options)
        except Exception as error:  # FFmpeg's libraries raise all kinds of errors.
            raise FileError(f"no encoder {name!r} for {self.target}: {short_message(error)}") from None
        context = stream.codec_context
        # PyAV's default cuts frames into slices, which make files larger and keep fewer cores busy.
        context.thread_type = "AUTO"
        context.width, context.height = self._size
        context.pix_fmt = self._pixels
        base = 1 / self._rate if self._rate else source.time_base
        if base is not None and name == "mpeg4" and base.denominator > MAX_MPEG4_TIMESCALE:
            base = Fraction(1, 60000)
        if base is not None:
            context.time_base = base
        for attribute in ("colorspace", "color_primaries", "color_trc"):
            value = getattr(first, attribute)
            value = getattr(source.codec_context, attribute) if value == UNSPECIFIED else value
            setattr(context, attribute, value)
        context.color_range = (
            FULL_RANGE if full_range else first.color_range or source.codec_context.color_range
        )
        context.sample_aspect_ratio = self._aspect if source.sample_aspect_ratio else Fraction(0)
        context.flags |= av.codec.context.Flags.frame_duration
        if self._matrix[:5] != IDENTITY_MATRIX[:5]:
            stream.set_display_matrix(self._matrix)
        stream.metadata.update(_valid_tags(source.metadata))
        stream.disposition = source.disposition
        self._stream = stream

    def _add_copied_stream(self, source: Any) -> None:
        flags = import_optional("av").stream.Disposition
        cover = source.type == "video" and source.disposition & flags.attached_pic
        if (cover and self.kind != "mp4") or (source.type == "attachment" and self.kind != "matroska"):
            return  # In Matroska, start() attaches the cover.
        try:
            stream = self._container.add_stream_from_template(source, opaque=True)
        except Exception as error:  # FFmpeg's libraries raise all kinds of errors.
            name = getattr(source.codec_context, "name", "an unknown codec")
            raise FileError(
                f"cannot write {self.target}: {self.target.suffix} cannot store"
                f" {'cover art' if cover else source.type} encoded as {name} ({short_message(error)}); write"
                f" {self._advised_suffix}, or the main video stream alone (audio=False, --no-audio)"
            ) from None
        stream.metadata.update(_valid_tags(source.metadata))
        stream.disposition = source.disposition
        self._copied[source.index] = stream

    def start(self, packets: Sequence[Any]) -> None:
        """Open the encoder and write the header and the packets that came before the first frame."""
        for packet in packets:
            if packet.stream.index not in self._copied and self.kind == "matroska":
                self._attach_cover(packet)
        try:
            with ordinary_threads():
                self._container.start_encoding()
        except OSError:
            raise
        except Exception:  # FFmpeg's message is no more than "invalid argument".
            width, height = self._size
            raise FileError(
                f"cannot write {self.target}: {self._encoder} for {self.target.suffix} does not take"
                f" {self._pixels} of {width} × {height}; choose another suffix or --codec"
            ) from None
        for packet in packets:
            self.copy(packet)

    def _attach_cover(self, packet: Any) -> None:
        cover = packet.stream
        suffix = {"mjpeg": "jpg"}.get(cover.codec_context.name, cover.codec_context.name)
        mime = f"image/{'jpeg' if suffix == 'jpg' else suffix}"
        tags = _decoded_tags(cover.metadata)
        name = tags.get("filename", f"cover.{suffix}")
        self._container.add_attachment(name, tags.get("mimetype", mime), bytes(packet))

    def encode(self, frame: Any) -> None:
        """Encode a frame."""
        pts, base = frame.pts, frame.time_base
        if (frame.format.name, frame.width, frame.height) != (self._pixels, *self._size):
            full = self._stream.codec_context.color_range == FULL_RANGE
            ranges = {"src_color_range": "JPEG", "dst_color_range": "JPEG"} if full else {}
            frame = frame.reformat(*self._size, self._pixels, **ranges)
            frame.pts, frame.time_base = pts, base
        if self._rate is not None and pts is not None:
            time = pts * base
            first = self._first_time = time if self._first_time is None else self._first_time
            frame.pts = round((time - first) * self._rate) + round(first * self._rate)
            frame.time_base = 1 / self._rate
            frame.duration = 1
        frame.pict_type = 0  # Let the encoder choose instead of repeating the type of the source.
        self._container.mux(self._stream.encode(frame))

    def copy(self, packet: Any) -> None:
        """Copy a packet of another stream, if that stream is copied.

        Matroska stores no decoding times. If frames are out of order, FFmpeg derives the times only after
        some packets, and the first packets wait for it.
        """
        if packet.stream.index not in self._copied:
            return
        waiting = self._undated.setdefault(packet.stream.index, [])
        if packet.dts is None and packet.stream.type == "video" and len(waiting) < MAX_REORDERED_PACKETS:
            waiting.append(packet)
            return
        if packet.dts is None:
            packet.dts = packet.pts = packet.pts or 0
        self._copy_undated(packet.stream.index, packet.dts)
        self._mux_copy(packet)

    def _copy_undated(self, index: int, until: int | None) -> None:
        """Write the packets that wait for decoding times, giving them times before ``until``."""
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
        except Exception as error:  # FFmpeg's libraries raise all kinds of errors.
            name = getattr(source.codec_context, "name", "an unknown codec")
            raise FileError(
                f"cannot write {self.target}: stream {source.index} ({name}) cannot be copied:"
                f" {short_message(error)}; --no-audio (audio=False) leaves it out"
            ) from None

    def finish(self) -> None:
        """Flush the encoder and finish the file."""
        for index in list(self._undated):
            self._copy_undated(index, None)
        self._container.mux(self._stream.encode(None))
        self._container.close()

    def abandon(self) -> None:
        """Close an incomplete file."""
        with suppress(Exception):
            self._container.close()
