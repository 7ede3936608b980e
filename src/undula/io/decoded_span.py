"""Which part of a video was decoded: a file whose end is missing decodes without an error."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import FileError
from .pixel_formats import sample_bits
from .truncation import DECLARED_SIZES, is_truncated
from .video_sources import VideoSource, Y4MReader, damage_error, open_container

__all__ = ["DecodedSpan"]

# Files that are as long as they declare are cut off if more is missing than so many of their longest frames
# and this share of their duration, which programs do not always write exactly.
MAX_MISSING_FRAMES, MAX_MISSING_SHARE = 2.5, 0.03
WITH_TRAILING_PARTS = ("matroska", "mov")  # Containers whose last parts may be no frames.
REMEDY = (
    "it is cut off or damaged. Fetch it again, repair it (ffmpeg -err_detect ignore_err -i … -c copy …), or"
    " read the frames that it has with"
)


def _tagged_seconds(text: str) -> float | None:
    """Parse a tag such as ``00:01:02.500000000``."""
    with suppress(ValueError):
        hours, minutes, seconds = map(float, text.split(":"))
        return 3600 * hours + 60 * minutes + seconds
    return None


def _packet_ends(path: VideoSource, index: int, **options: str) -> tuple[int, float, float]:
    """Return the number of packets of a stream, its end, and the end of all streams, in seconds."""
    count, stream_end, file_end = 0, 0.0, 0.0
    with open_container(path, sys.maxsize, **options) as container:  # Nothing is decoded.
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
            raise damage_error(self._path, self._count)
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
        if not self._count:
            raise FileError(f"no frame of {self._path} can be decoded")
        declared, of_stream = self._declared()
        truncated = self._kind in DECLARED_SIZES and is_truncated(Path(str(self._path)), self._kind)
        if truncated and self._kind not in WITH_TRAILING_PARTS:
            raise FileError(
                f"{self._path} ends after {self._count} frames, before the end that it declares: {REMEDY}"
                f" count={self._count}"
            )
        missing_frames = 0 if truncated else 2
        if not self._times or 0 < int(self._stream.frames) <= self._count + missing_frames:
            return
        reached = max(self._end, self._end - self._times[0])
        slack = max(MAX_MISSING_FRAMES * self._longest, MAX_MISSING_SHARE * declared)
        if truncated:
            slack = self._longest / 2
        if reached >= declared - slack:
            return
        if not self._is_damaged(declared - slack, reached + slack, of_stream, missing_frames):
            return
        raise FileError(
            f"{self._path} declares {declared:.2f} s and ends after {self._count} frames, at {reached:.2f} s:"
            f" {REMEDY} count={self._count}"
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
                f" read the frames that it has with count={self._count}"
            )

    def _is_damaged(self, min_end: float, max_end: float, of_stream: bool, missing_frames: int) -> bool:
        """Return whether packets are missing, or some gave no frames."""
        index = self._stream.index
        _, stream_end, file_end = _packet_ends(self._path, index)
        if stream_end > max_end:
            return True
        if self._kind == "mov":  # Packets that an edit list leaves out are not missing.
            count, _, _ = _packet_ends(self._path, index, ignore_editlist="1")
            return count < int(self._stream.frames) - missing_frames
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
