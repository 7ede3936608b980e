"""What a visitor looks at: pictures, volumes, clips, videos, a camera; each gives frames by number."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from ..io.files import import_optional
from ..io.stored import StoredRange
from .decoding import Decoder, Limits
from .room import MemoryBudget

__all__ = ["Camera", "Input", "Screen", "opened"]

Array = NDArray[Any]
FILM = 160 << 20  # bytes that the decoder of a video has, besides frames
BANDS = 12  # bytes for each byte of a plane: its bands before and after, as numbers and as pictures
_numbers = count(1)


@dataclass(frozen=True)
class Screen:
    """How samples become the 8 bits of a screen: ``low`` is black, ``high`` is white."""

    low: float = 0.0
    high: float = 255.0
    invert: bool = False

    @property
    def span(self) -> float:
        """From black to white."""
        return self.high - self.low

    def shown(self, x: Array) -> NDArray[np.uint8]:
        """As a screen shows it: grey, or red, green and blue, and opacity if there is some."""
        if x.ndim == 3 and x.shape[2] not in (3, 4):
            x = x[..., 0] if x.shape[2] < 3 else x[..., :3]
        if x.dtype == np.uint8 and (self.low, self.high, self.invert) == (0.0, 255.0, False):
            return np.ascontiguousarray(x)
        kind = np.float32 if x.dtype.itemsize <= 2 else np.float64
        scaled = (np.nan_to_num(x.astype(kind)) - kind(self.low)) * kind(255 / self.span)
        made = np.clip(scaled + kind(0.5), 0, 255).astype(np.uint8)
        if made.ndim == 3 and made.shape[2] == 4 and x.dtype.kind == "u":
            made[..., 3] = x[..., 3] >> (8 * (x.dtype.itemsize - 1))
        return np.asarray(255 - made if self.invert else made, np.uint8)


class Input:
    """Something in the strip.

    Parameters
    ----------
    name : str
        As the visitor knows it.
    decoder : Decoder
    source : str
        What code and command lines call it: a name, or ``sample:camera``.
    path : path, optional
        The file, for exports.
    memory : MemoryBudget, optional
        What it holds ``held`` bytes of until it is closed.
    """

    memory: MemoryBudget | None = None
    held = 0

    def __init__(self, name: str, decoder: Decoder, source: str, path: Path | None) -> None:
        about = decoder.about
        self.id = next(_numbers)
        self.name, self.source, self.path = name, source, path
        self._decoder = decoder
        self.format = str(about["format"])
        self.video = about["kind"] == "video"
        self.pages = int(about["pages"])
        self.rate = float(about.get("rate") or 0.0) if self.pages > 1 else 0.0
        self.screen = Screen(about["low"], about["high"], bool(about.get("invert")))
        self.stored = _stored(about.get("stored"))
        assert decoder.pixels is not None
        self._pixels = decoder.pixels
        self.first = self._pixels if self.video or not self.pages else self._pixels[0]
        self.color = bool(about["color"])

    @property
    def kind(self) -> str:
        """In a word."""
        if self.video:
            return "video"
        if self.pages > 1:
            return "clip" if self.rate else "volume"
        return "picture"

    @property
    def count(self) -> int:
        """How many frames there are."""
        return max(1, self.pages)

    @property
    def channel_axis(self) -> int | None:
        """Of a frame."""
        return -1 if self.color else None

    @property
    def size(self) -> str:
        """For people."""
        height, width = self.first.shape[:2]
        words = [f"{width} × {height}"]
        if self.count > 1:
            words.append(f"{self.count} {'slices' if self.kind == 'volume' else 'frames'}")
        if self.first.dtype != np.uint8:
            words.append(str(self.first.dtype))
        return ", ".join(words)

    def frame(self, number: int, ahead: int | None = None) -> Array:
        """A frame by number; ``ahead`` is the one that will be asked for next."""
        if self.video:
            return self._decoder.frame(number, ahead)
        return self._pixels[number] if self.pages else self._pixels

    @cached_property
    def thumbnail(self) -> str:
        """A small picture, as a data URL."""
        step = max(1, min(self.first.shape[:2]) // 256)
        return _thumbnail(self.screen.shown(self.first[::step, ::step]), 96)

    def close(self) -> None:
        """Ends what is running for it, and gives its memory back."""
        self._decoder.close()
        if self.memory is not None:
            self.memory.release(self.held)
            self.memory = None


class Camera(Input):
    """What a browser's camera sees: always the newest frame."""

    def __init__(self) -> None:
        self.id = next(_numbers)
        self.name = self.source = "Camera"
        self.path = None
        self.format, self.video, self.pages, self.rate = "camera", False, 0, 0.0
        self.screen, self.color, self.stored = Screen(), True, None
        self.first = np.zeros((480, 640, 3), np.uint8)

    kind = "camera"

    def see(self, data: bytes, width: int, height: int) -> None:
        """A new frame, as red, green, blue and something else for each pixel."""
        if not (0 < width <= 2048 and 0 < height <= 2048 and len(data) == 4 * width * height):
            raise FileError(f"a frame of {width} × {height} has {4 * width * height} bytes, got {len(data)}")
        pixels = np.frombuffer(data, np.uint8).reshape(height, width, 4)
        self.first = np.ascontiguousarray(pixels[..., :3])

    def frame(self, number: int, ahead: int | None = None) -> Array:
        """What was seen last."""
        return self.first

    def close(self) -> None:
        """Nothing runs for it here."""


def _stored(told: Any) -> StoredRange | None:
    """The values that a file can store, as the decoder tells them."""
    if told is None:
        return None
    low, high, padding = told
    return StoredRange(low, high, tuple(padding) if padding else None)


def _thumbnail(shown: NDArray[np.uint8], side: int) -> str:
    image_module = import_optional("PIL.Image")
    image = image_module.fromarray(shown)
    image.thumbnail((side, side))
    out = io.BytesIO()
    image.convert("RGB").save(out, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()


def memory_for(about: dict[str, Any]) -> int:
    """Bytes that something takes while it is open: its pixels, and of one frame the result and its bands."""
    video = about["kind"] == "video"
    frame = about["bytes"] / (1 if video else max(1, about["pages"]))
    channels = about["shape"][-1] if about["color"] else 1
    kept = 2 * frame + BANDS * frame / channels
    # (Frames of a video are with its decoder, some at a time.)
    return int(kept + (FILM + 16 * frame if video else about["bytes"]))


def opened(
    path: Path, name: str, limits: Limits, source: str | None = None, memory: MemoryBudget | None = None
) -> Input:
    """A file, decoded by a worker, if there is memory for it."""
    held = 0

    def admit(about: dict[str, Any]) -> None:
        nonlocal held
        if memory is not None:
            memory.hold(memory_for(about))
            held = memory_for(about)

    try:
        found = Input(name, Decoder(path, limits, admit), source or name, path)
    except BaseException:
        if memory is not None:
            memory.release(held)
        raise
    found.memory, found.held = memory, held
    return found
