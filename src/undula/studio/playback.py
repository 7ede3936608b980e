"""Playback: which frame is due when."""

from __future__ import annotations

import time
from dataclasses import dataclass

__all__ = ["Playback"]

MAX_DELAY_SECONDS = 0.3  # before frames are dropped


@dataclass
class Playback:
    """State of playback; ``speed`` 0 is as fast as possible."""

    on: bool = False
    loop: bool = True
    speed: float = 1.0
    _start_time: float = 0.0
    _start_frame: int = 0

    def start(self, number: int) -> None:
        """Start the clock at a frame."""
        self._start_time, self._start_frame = time.perf_counter(), number

    def seconds_until(self, number: int, rate: float) -> float:
        """Return the seconds until a frame is due; negative if it is late."""
        if self.speed == 0:
            return 0.0
        elapsed = time.perf_counter() - self._start_time
        return (number - self._start_frame) / (rate * self.speed) - elapsed

    def next_frame(self, number: int, rate: float, count: int) -> int | None:
        """Return the frame after a frame, without those that are late; None after the last of ``count``."""
        number += 1
        delay = -self.seconds_until(number, rate)
        if self.speed and delay > MAX_DELAY_SECONDS:
            number += int(delay * rate * self.speed)
        if number < count:
            return number
        if not self.loop:
            self.on = False
            return None
        self.start(0)
        return 0
