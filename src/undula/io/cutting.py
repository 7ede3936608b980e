"""A part of a video: which frames, packets and chapters belong to it, and their times.

Times are exact fractions of seconds, since time bases such as 1001/30000 have no decimal form.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..errors import ArgumentError

__all__ = ["Cut", "later_timecode", "parse_seconds"]

# Containers such as Matroska round times to milliseconds, and so do people.
TOLERANCE = Fraction(1, 1000)
_TIMECODE = re.compile(r"(\d\d):(\d\d):(\d\d)([:;.])(\d\d)")
_CLOCK = re.compile(r"(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d*)?|\.\d+)")


def parse_seconds(text: str) -> float:
    """Parse a time such as ``"12.5"``, ``"1:30"`` or ``"00:01:30.5"``, and return seconds.

    Examples
    --------
    >>> parse_seconds("1:02:03.5")
    3723.5
    """
    match = _CLOCK.fullmatch(text.strip())
    parts = [float(part or 0) for part in match.groups()] if match else []
    if not match or (match[2] is not None and parts[2] >= 60) or (match[1] is not None and parts[1] >= 60):
        raise ArgumentError(
            f"expected a time in seconds or as hh:mm:ss, such as 90, 1:30 or 00:01:30.5; got {text!r}"
        )
    return 3600 * parts[0] + 60 * parts[1] + parts[2]


def later_timecode(text: str, frames: int, rate: Fraction) -> str:
    """Return the timecode of a later frame.

    Drop-frame timecodes, which have a semicolon, leave out the first numbers of each minute except every
    tenth one, so that 29.97 frames per second keep up with the clock.

    Examples
    --------
    >>> later_timecode("00:00:59;29", 1, Fraction(30000, 1001))
    '00:01:00;02'
    """
    match = _TIMECODE.fullmatch(text.strip())
    nominal = round(rate)
    if match is None or not frames or not nominal:
        return text
    hours, minutes, seconds, number = (int(match[k]) for k in (1, 2, 3, 5))
    dropped = round(nominal / 15) if match[4] in ";." else 0
    minutes += 60 * hours
    total = (60 * minutes + seconds) * nominal + number - dropped * (minutes - minutes // 10) + frames
    if dropped:
        tens, rest = divmod(total, 600 * nominal - 9 * dropped)
        total += 9 * dropped * tens + dropped * max(0, (rest - dropped) // (60 * nominal - dropped))
    seconds, number = divmod(total, nominal)
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{match[4]}{number:02}"


@dataclass(frozen=True)
class Cut:
    """A part of a video, in the times of its file.

    Attributes
    ----------
    start : Fraction
        Of the first frame, at the earliest.
    end : Fraction, optional
        Frames from here on are left out; by default none.
    shift : Fraction
        What is subtracted from all times, so that the part starts at 0.
    skipped : Fraction
        How long after the beginning of the video the part starts.
    """

    start: Fraction
    end: Fraction | None
    shift: Fraction
    skipped: Fraction

    @classmethod
    def of(cls, start: float, duration: float | None, origin: Fraction) -> Cut | None:
        """Return the part that begins ``start`` seconds after ``origin``; None if it is the whole video."""
        for name, value, least in (("start", start, 0.0), ("duration", duration, TOLERANCE)):
            if value is not None and not (math.isfinite(value) and value >= least):
                raise ArgumentError(
                    f"{name} must be a {'positive ' if least else ''}number of seconds, got {value}"
                )
        if not start and duration is None:
            return None
        first = origin + Fraction(start)
        end = first + Fraction(duration) if duration is not None else None
        return cls(first, end, first if start else Fraction(0), Fraction(start))

    def beginning(self, first: Fraction) -> Cut:
        """Return the part with the time of its first frame, to which all times are relative."""
        return Cut(first, self.end, first, self.skipped + first - self.start)

    def rounded_up(self, base: Fraction) -> Fraction:
        """Return the first multiple of a time base that belongs to the part."""
        return math.ceil((self.start - TOLERANCE) / base) * base

    def is_before(self, time: Fraction) -> bool:
        """Return whether a frame at this time comes before the part."""
        return time < self.start - TOLERANCE

    def is_after(self, time: Fraction) -> bool:
        """Return whether a frame at this time comes after the part."""
        return self.end is not None and time >= self.end - TOLERANCE

    def shifted(self, time: int, base: Fraction) -> int:
        """Return a time of the file, in units of ``base``, as a time of the part."""
        return max(0, time - round(self.shift / base))

    def take(self, packet: Any) -> bool:
        """Shift the times of a packet of a copied stream; return whether it belongs to the part.

        Audio begins with the first packet that starts within the part. Subtitles that are shown when the part
        begins or ends are shortened.
        """
        base, pts = packet.time_base, packet.pts if packet.pts is not None else packet.dts
        if pts is None:
            return True
        begin, end = pts * base, (pts + (packet.duration or 0)) * base
        if self.is_after(begin) or (self.is_before(begin) and packet.stream.type != "subtitle"):
            return False
        if packet.stream.type == "subtitle":
            if end <= self.start + TOLERANCE and self.is_before(begin):
                return False
            first = max(begin, self.start)
            last = end if self.end is None else min(end, self.end)
            packet.pts = packet.dts = self.shifted(round(first / base), base)
            packet.duration = max(0, round((last - first) / base))
            return True
        offset = round(self.shift / base)
        packet.pts = pts - offset
        packet.dts = packet.dts - offset if packet.dts is not None else None
        return True

    def chapters(self, chapters: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the chapters of the part, with its times."""
        parts = []
        for chapter in chapters:
            base = Fraction(chapter["time_base"])
            begin, end = max(chapter["start"] * base, self.start), chapter["end"] * base
            end = end if self.end is None else min(end, self.end)
            if end > begin + TOLERANCE:
                times = {
                    "start": self.shifted(round(begin / base), base),
                    "end": self.shifted(round(end / base), base),
                }
                parts.append({**chapter, **times})
        return parts
