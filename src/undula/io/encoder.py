"""Write a video: its main stream is encoded, all others are copied.

The encoder is one that keeps the depth, chroma resolution, range and alpha of the frames. If there is none,
an error says so before anything is written. Audio and text subtitles that the container cannot store are
converted; what is lost is listed in ``VideoWriter.losses``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any

from ..errors import FileError
from .containers import CONTAINERS, muxer_options
from .contents import Contents, decoded_tags, losses, quicktime_language, timecode, valid_tags
from .conversion import TEXT_SUBTITLES, AudioConverter, SubtitleConverter, codec_name
from .cutting import Cut, later_timecode
from .decoder import IDENTITY_MATRIX, display_matrix, frame_times, open_video
from .encoder_choice import CONSTANT_RATE, choose_encoder, encoder_options, keeps_aspect, keeps_range
from .files import VIDEOS, import_optional, short_message
from .foreign import foreign_code
from .video_sources import is_live

__all__ = ["VideoWriter", "ordinary_threads"]

MAX_MPEG4_TIMESCALE = 65535
MAX_REORDERED_PACKETS = 64  # Packets of a stream that may come before its first decoding time.
LIMITED_RANGE, FULL_RANGE = 1, 2  # AVCOL_RANGE_MPEG and AVCOL_RANGE_JPEG
BT601 = 6  # AVCOL_SPC_SMPTE170M, to which FFmpeg converts RGB
UNSPECIFIED = 2  # of AVColorSpace, AVColorPrimaries and AVColorTransferCharacteristic
COVER_ART = 1 << 10  # AV_DISPOSITION_ATTACHED_PIC
CLOCK = Fraction(1, 90_000)  # The unit of times in MPEG.
GRID_TOLERANCE = Fraction(1, 4)  # In frame intervals of a constant rate.


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


def _constant_rate(path: Any, stream: Any, target: str, name: str, gaps: bool) -> Fraction:
    """Return a rate at which each frame has a slot of its own near its time; ``name`` requires one.

    Without ``gaps``, every slot must have a frame.
    """
    guesses = (stream.average_rate, stream.guessed_rate, stream.base_rate)
    rates = [Fraction(rate) for rate in guesses if rate] or [Fraction(25)]
    times = None if is_live(path) else frame_times(path, stream.index)
    if not times:
        return rates[0]
    for rate in rates:
        slots = [(time - times[0]) * stream.time_base * rate for time in times]
        near = all(abs(slot - round(slot)) <= GRID_TOLERANCE for slot in slots)
        last = round(slots[-1])
        if near and len(set(map(round, slots))) == len(slots) and (gaps or last == len(slots) - 1):
            return rate
    raise FileError(
        f"cannot write {target}: {name} needs a constant rate, which the frames of {path} do not have; write"
        " .mkv, .mp4 or .webm"
    )


class VideoWriter:
    """A container to write: one stream is encoded, others are copied, or converted if need be.

    Parameters
    ----------
    path : Path or file object
        The temporary file to write, or a file object to write Y4M to.
    target : Path
        The file that errors refer to; its suffix determines the container.
    source : Path or Y4MReader
        The file that is read.
    container, stream
        The container that is read, and its main video stream.
    first : av.VideoFrame
        The first frame, in the format that it is filtered in.
    others : sequence of streams
        The streams to copy.
    codec, quality, preset
        See :func:`undula.io.process`.
    cut : Cut, optional
        The part of the video that is written.

    Attributes
    ----------
    name, encoder : str
        The target, for messages, and the encoder that is used.
    notes : list of str
        What was done otherwise than asked for, and conversions.
    dropped : list of str
        What the container cannot store.
    """

    def __init__(
        self,
        path: Any,
        target: Path,
        source: Any,
        container: Any,
        stream: Any,
        first: Any,
        others: Sequence[Any],
        codec: str | None,
        quality: int,
        preset: str,
        cut: Cut | None = None,
    ) -> None:
        av = import_optional("av")
        self.target, self.kind = target, VIDEOS[target.suffix.lower()]
        self.name = "standard output" if hasattr(path, "write") else str(target)
        self.notes: list[str] = []
        self.dropped: list[str] = []
        self._description = CONTAINERS[self.kind]
        pixels = str(first.format.name)
        full_range = first.color_range == FULL_RANGE or "yuvj" in pixels
        odd_size = bool(first.width % 2 or first.height % 2)
        choice = choose_encoder(self.name, self.kind, codec, stream, pixels, full_range, odd_size)
        name = self.encoder = choice.name
        self._pixels = choice.pixels
        full_range = full_range and not choice.from_rgb
        self._is_from_rgb = choice.from_rgb
        if choice.note:
            self.notes.append(choice.note)
        if len(first.format.components) == 1:  # Grey is full-range by default.
            full_range = first.color_range != LIMITED_RANGE and keeps_range(name, self.kind)
        suffix = Path(str(source)).suffix
        self._advised_suffix = suffix if suffix in VIDEOS and suffix != target.suffix else ".mkv"
        self._size = first.width, first.height
        self._aspect = stream.sample_aspect_ratio or Fraction(1)
        if self._aspect != 1 and not keeps_aspect(name, self.kind):
            self._resize_to_square_pixels()
        self._matrix = self._checked_matrix(display_matrix(first))
        self._rate: Fraction | None = None
        if self._description.constant_rate or name in CONSTANT_RATE:
            needs_rate = target.suffix if self._description.constant_rate else name
            self._rate = _constant_rate(source, stream, self.name, needs_rate, self._description.gaps)
        self._first_time = Fraction(0) if first.pts is None else first.pts * first.time_base
        self._origin, self._offset = self._beginning(others, cut)
        with foreign_code(f"cannot write {self.name}"):
            self._container = av.open(
                path if hasattr(path, "write") else str(path),
                "w",
                format=self.kind,
                options=muxer_options(target),
            )
        try:
            options = encoder_options(choice, self.kind, quality, preset, stream, first)
            self._add_encoded_stream(stream, first, full_range, options)
            self._copied: dict[int, Any] = {}
            self._video_end = Fraction(0)
            self._sound_ends: dict[int, tuple[Any, int, Fraction, int]] = {}  # Of streams of audio, by index.
            self._converters: dict[int, AudioConverter | SubtitleConverter] = {}
            self._undated: dict[int, list[Any]] = {}  # Packets without decoding times, by stream.
            for other in others:
                self._add_other_stream(other)
            self._container.metadata.update(valid_tags(container.metadata))
            self._add_timecode(timecode(container, [stream]), cut)
            chapters = cut.chapters(container.chapters()) if cut is not None else container.chapters()
            self._container.set_chapters(
                [{**chapter, "metadata": decoded_tags(chapter["metadata"])} for chapter in chapters]
            )
            # Without this, Matroska writes random identifiers, and files are not reproducible.
            self._container.flags |= av.container.core.Flags.bitexact.value
        except BaseException:
            self._container.close()
            raise
        stored = [stream, *(other for other in others if self._stores(other))]
        self._expected = Contents.of(container, stored, first, len(chapters))

    def _beginning(self, others: Sequence[Any], cut: Cut | None) -> tuple[Fraction, Fraction]:
        """Return the time of the source at which the result begins, and how much later the first frame is.

        Containers with a constant rate have slots for frames, and no times for audio. They begin a whole
        number of slots before the first frame; audio before that is left out.
        """
        if self._rate is None or not self._description.constant_rate:
            return Fraction(0), self._first_time
        starts = [
            Fraction(0) if cut is not None else other.start_time * other.time_base
            for other in others
            if other.type == "audio" and other.start_time is not None
        ]
        earlier = max(0, self._first_time - min(starts, default=self._first_time))
        offset = floor(earlier * self._rate) / self._rate if self._description.gaps else Fraction(0)
        origin = self._first_time - offset
        if any(2 * (start - origin) > 1 / self._rate for start in starts):
            self.dropped.append("the time at which audio begins")
        return origin, offset

    def _resize_to_square_pixels(self) -> None:
        """Enlarge the frames, if neither stream nor container can store an aspect ratio of pixels."""
        encoder = import_optional("av").Codec(self.encoder, "w")
        if encoder.lossless and not encoder.lossy:
            raise FileError(
                f"cannot write {self.name}: {self.encoder} in {self.target.suffix} cannot store the pixel"
                f" aspect ratio {self._aspect.numerator}:{self._aspect.denominator}; write .mkv with"
                " codec='ffv1'"
            )
        width, height = self._size
        if self._aspect > 1:
            width = 2 * round(width * self._aspect / 2)
        else:
            height = 2 * round(height / self._aspect / 2)
        self._size, self._aspect = (width, height), Fraction(1)

    def _checked_matrix(self, matrix: tuple[int, ...]) -> tuple[int, ...]:
        a, b, _, c, d, *_ = matrix
        is_rotation = a == d and b == -c
        stored = self._description.mirroring or (self._description.rotation and is_rotation)
        if matrix[:5] == IDENTITY_MATRIX[:5] or stored:
            return matrix
        raise FileError(
            f"cannot write {self.name}: the video is displayed rotated or mirrored, which"
            f" {self.target.suffix} cannot store; write .mp4 or .mov"
        )

    def _add_encoded_stream(self, source: Any, first: Any, full_range: bool, options: dict[str, str]) -> None:
        av, name = import_optional("av"), self.encoder
        rate = self._rate or source.average_rate or source.guessed_rate or Fraction(25)
        with foreign_code(f"no encoder {name!r} for {self.name}"):
            stream = self._container.add_stream(name, rate=rate, options=options)
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
        if self._is_from_rgb:
            context.colorspace, context.color_range = BT601, LIMITED_RANGE
        context.sample_aspect_ratio = self._aspect if source.sample_aspect_ratio else Fraction(0)
        context.flags |= av.codec.context.Flags.frame_duration
        if first.interlaced_frame:
            context.flags |= av.codec.context.Flags.interlaced_dct | av.codec.context.Flags.interlaced_me
        if self._matrix[:5] != IDENTITY_MATRIX[:5]:
            stream.set_display_matrix(self._matrix)
        self._describe_stream(stream, source)
        self._stream = stream

    def _add_timecode(self, text: str, cut: Cut | None) -> None:
        """Store the timecode of the first frame; the muxer of MP4 and MOV makes a track of it."""
        if cut is not None:
            rate = self._stream.codec_context.framerate
            text = later_timecode(text, round(cut.skipped * rate), rate)
        if text:
            self._container.metadata["timecode"] = text

    def _stores(self, source: Any) -> bool:
        return source.index in self._copied or source.index in self._converters

    def _add_other_stream(self, source: Any) -> None:
        """Add a stream that is copied, or converted if the container cannot store its codec."""
        description, codec = self._description, codec_name(source)
        cover = bool(source.type == "video" and source.disposition & COVER_ART)
        if cover and description.cover != "stream":
            if description.cover != "attachment":  # Otherwise start() attaches it.
                self.dropped.append("cover art")
            return
        if source.type == "attachment" and not description.attachments:
            self.dropped.append(f"the attachment {decoded_tags(source.metadata).get('filename', '')}".strip())
            return
        listed = {"audio": description.audio, "subtitle": description.subtitles, "video": description.video}
        codecs = listed.get(source.type)
        try:
            if codecs is not None and codec not in codecs:
                raise ValueError(f"{self.kind} does not support {codec}")
            stream = self._container.add_stream_from_template(source, opaque=True)
        except Exception as error:  # FFmpeg's libraries raise all kinds of errors.
            if not self._convert(source, codec):
                self._drop(source, "cover art" if cover else source.type, codec, error)
            return
        self._describe_stream(stream, source)
        self._copied[source.index] = stream

    def _convert(self, source: Any, codec: str) -> bool:
        """Add a stream that is encoded again; return whether the container has an encoder for it."""
        description = self._description
        is_text = source.type == "subtitle" and codec in TEXT_SUBTITLES
        encoder = description.audio_encoder if source.type == "audio" else description.text_encoder
        if encoder is None or source.codec_context is None or not (is_text or source.type == "audio"):
            return False
        make = AudioConverter if source.type == "audio" else SubtitleConverter
        converter = self._converters[source.index] = make(self._container, source, encoder)
        self._describe_stream(converter.stream, source)
        kind = "subtitles were" if is_text else "audio was"
        note = f"{kind} converted from {codec} to {encoder}"
        if note not in self.notes:
            self.notes.append(note)
        return True

    def _drop(self, source: Any, kind: str, codec: str, error: Exception) -> None:
        """Leave out a stream; this is an error for audio and video, unless the container never has any."""
        if source.type == "subtitle" or self._description.audio == ():
            self.dropped.append(f"{'subtitles' if kind == 'subtitle' else kind} ({codec})")
            return
        raise FileError(
            f"cannot write {self.name}: {self.target.suffix} cannot store {kind} encoded as {codec}"
            f" ({short_message(error)}); write {self._advised_suffix}, or the main video stream alone"
            " with audio=False"
        ) from None

    def _describe_stream(self, stream: Any, source: Any) -> None:
        stream.metadata.update(valid_tags(source.metadata))
        if self.kind == "mov" and "language" in stream.metadata:
            stream.metadata["language"] = quicktime_language(stream.metadata["language"])
        stream.disposition = source.disposition

    def start(self, packets: Sequence[Any]) -> None:
        """Open the encoder and write the header and the packets that came before the first frame."""
        for packet in packets:
            is_cover = packet.stream.type == "video" and packet.stream.disposition & COVER_ART
            if is_cover and self._description.cover == "attachment":
                self._attach_cover(packet)
        try:
            with ordinary_threads():
                self._container.start_encoding()
        except OSError:
            raise
        except Exception:  # FFmpeg's message is no more than "invalid argument".
            width, height = self._size
            rate = f" at {float(self._rate):g} frames per second" if self._rate else ""
            raise FileError(
                f"cannot write {self.name}: {self.encoder} for {self.target.suffix} does not take"
                f" {self._pixels} of {width} × {height}{rate}; choose another suffix or codec"
            ) from None
        for packet in packets:
            self.copy(packet)

    def _attach_cover(self, packet: Any) -> None:
        cover = packet.stream
        suffix = {"mjpeg": "jpg"}.get(cover.codec_context.name, cover.codec_context.name)
        mime = f"image/{'jpeg' if suffix == 'jpg' else suffix}"
        tags = decoded_tags(cover.metadata)
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
            frame.pts = round((pts * base - self._first_time) * self._rate)
            frame.time_base = 1 / self._rate
            frame.duration = 1
        frame.pict_type = 0  # Let the encoder choose instead of repeating the type of the source.
        self._mux_encoded(frame)

    def _mux_encoded(self, frame: Any) -> None:
        """Encode a frame, or flush the encoder, and write the packets; constant rates begin at 0."""
        for packet in self._stream.encode(frame):
            if self._rate is not None and packet.pts is not None:
                shift = self._offset / packet.time_base
                if shift.denominator != 1:
                    pts, dts = (time * packet.time_base / CLOCK for time in (packet.pts, packet.dts))
                    packet.time_base, packet.pts, packet.dts = CLOCK, round(pts), round(dts)
                    shift = self._offset / CLOCK
                packet.pts, packet.dts = packet.pts + round(shift), packet.dts + round(shift)
                self._video_end = max(self._video_end, packet.pts * packet.time_base + 1 / self._rate)
            self._container.mux(packet)

    def copy(self, packet: Any) -> None:
        """Copy or convert a packet of another stream, unless that stream is left out.

        Matroska stores no decoding times. If frames are out of order, FFmpeg derives the times only after
        some packets, and the first packets wait for it.
        """
        if self._description.constant_rate and not self._move(packet):
            return
        converter = self._converters.get(packet.stream.index)
        if converter is not None:
            for converted in converter.convert(packet):
                self._mux_other(converted)
            return
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

    def _move(self, packet: Any) -> bool:
        """Give a packet its time in the result; return whether it belongs there."""
        time = packet.pts if packet.pts is not None else packet.dts
        if time is None:
            return True
        if (time + Fraction(packet.duration or 0, 2)) * packet.time_base <= self._origin:
            return False
        shift = round(self._origin / packet.time_base)
        # FFmpeg would move all frames if a time was negative.
        packet.pts = None if packet.pts is None else max(0, packet.pts - shift)
        packet.dts = None if packet.dts is None else max(0, packet.dts - shift)
        return True

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
            self._mux_other(packet)
        except OSError:
            raise
        except Exception as error:  # FFmpeg's libraries raise all kinds of errors.
            name = getattr(source.codec_context, "name", "an unknown codec")
            raise FileError(
                f"cannot write {self.name}: stream {source.index} ({name}) cannot be copied:"
                f" {short_message(error)}; audio=False leaves it out"
            ) from None

    def finish(self) -> None:
        """Flush the encoder and finish the file."""
        for index in list(self._undated):
            self._copy_undated(index, None)
        for converter in self._converters.values():
            for converted in converter.convert(None):
                self._mux_other(converted)
        self._mux_encoded(None)
        if self.kind == "mxf":
            self._fill_sound()
        self._container.close()

    def _mux_other(self, packet: Any) -> None:
        if packet.stream.type == "audio" and packet.pts is not None and packet.duration:
            end, tick_bytes = packet.pts + packet.duration, packet.size // packet.duration
            self._sound_ends[packet.stream.index] = packet.stream, end, packet.time_base, tick_bytes
        self._container.mux(packet)

    def _fill_sound(self) -> None:
        """Make PCM as long as the video: FFmpeg's muxer of MXF drops what follows the end of either."""
        for stream, end, base, tick_bytes in self._sound_ends.values():
            duration = ceil(self._video_end / base) - end
            if duration * base < -1 / (self._rate or 1):
                self.dropped.append("audio after the last frame")
            if duration > 0 and tick_bytes:
                packet = import_optional("av").Packet(bytes(duration * tick_bytes))
                packet.stream, packet.time_base, packet.duration = stream, base, duration
                packet.pts = packet.dts = end
                self._container.mux(packet)

    def check(self, path: Path | None) -> None:
        """Read the finished file again, to find what the container did not store; None for a pipe."""
        if path is None:
            self.dropped += losses(self._expected, Contents({}, 0, {"title": [], "language": []}, {}))
            return
        container, stream = open_video(path, sys.maxsize)  # The limit was checked for the source.
        with container:
            first = next(container.decode(stream), None)
            if first is None:
                raise FileError(f"cannot write {self.name}: its frames cannot be read again; write .mkv")
            written = Contents.of(container, container.streams, first, len(container.chapters()))
            self.dropped += losses(self._expected, written)

    def abandon(self) -> None:
        """Close an incomplete file."""
        with suppress(Exception):
            self._container.close()
