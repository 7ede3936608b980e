"""The inputs of a session: pictures, volumes, clips, videos and the camera, as numbered frames."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, FileError
from ..io import DEFAULT_MAX_PIXELS, Picture
from ..io.dicom_filtering import DicomFrame
from ..io.files import import_optional
from ..io.stack import StackAxes
from ..io.stored import StoredRange
from .budget import MemoryBudget
from .decoding import FileDecoder, StudioLimits, describe_file, screen_pixels
from .dicom import DicomFacts
from .extents import TIME, VOLUME, Extent, StackNames, extents_of

__all__ = ["Camera", "DisplayRange", "Input", "jpeg_thumbnail", "open_input", "sample_thumbnail"]

Array = NDArray[Any]
Work = Callable[..., Any]
VIDEO_DECODER_BYTES = 160 << 20  # memory of a video decoder, besides its frames
VIDEO_DECODER_FRAMES = 16  # frames that a video decoder holds
PYRAMID_BYTES_PER_BYTE = 12  # memory of both pyramids per byte of a plane, as numbers and as bitmaps
_next_id = count(1)


@dataclass(frozen=True)
class DisplayRange:
    """The mapping from samples to 8 bits: ``low`` is displayed as black, ``high`` as white."""

    low: float = 0.0
    high: float = 255.0
    invert: bool = False

    @property
    def span(self) -> float:
        """Difference between white and black."""
        return self.high - self.low

    def to_uint8(self, x: Array) -> NDArray[np.uint8]:
        """Convert to a grey, RGB or RGBA bitmap."""
        if x.ndim == 3 and x.shape[2] not in (3, 4):
            x = x[..., 0] if x.shape[2] < 3 else x[..., :3]
        if x.dtype == np.uint8 and (self.low, self.high, self.invert) == (0.0, 255.0, False):
            return np.ascontiguousarray(x)
        dtype = np.float32 if x.dtype.itemsize <= 2 else np.float64
        scaled = (np.nan_to_num(x.astype(dtype)) - dtype(self.low)) * dtype(255 / self.span)
        bitmap = np.clip(scaled + dtype(0.5), 0, 255).astype(np.uint8)
        if bitmap.ndim == 3 and bitmap.shape[2] == 4 and x.dtype.kind == "u":
            bitmap[..., 3] = x[..., 3] >> (8 * (x.dtype.itemsize - 1))
        return np.asarray(255 - bitmap if self.invert else bitmap, np.uint8)


class Input:
    """A file that is open in a session.

    Parameters
    ----------
    name : str
        Name to display.
    decoder : FileDecoder
    source : str
        Name to use in generated code: a file name, or ``sample:camera``.
    path : Path, optional
        The file, for exports.

    Attributes
    ----------
    memory : MemoryBudget or None
        The budget from which ``held`` bytes are taken until the input is closed.
    """

    memory: MemoryBudget | None = None
    held = 0
    _picture: Picture | None = None  # the pixels as the file has them, from which results are computed
    _profiled = False  # whether a profile of the file converts its colours

    def __init__(self, name: str, decoder: FileDecoder, source: str, path: Path | None) -> None:
        about = decoder.about
        self.id = next(_next_id)
        self.name, self.source, self.path = name, source, path
        self._decoder = decoder
        self.format = str(about["format"])
        self.video = about["kind"] == "video"
        self.pages = int(about["pages"])
        self.rate = float(about.get("rate") or 0.0) if self.pages > 1 else 0.0
        self.display = DisplayRange(about["low"], about["high"], bool(about.get("invert")))
        self.window = self.display
        self.stored = _stored_range(about.get("stored"))
        self.dicom = DicomFacts.from_dict(about["dicom"]) if "dicom" in about else None
        assert decoder.pixels is not None
        self._pixels, self._profiled = decoder.pixels, bool(about.get("profiled"))
        if not self.video:
            self._picture = Picture(self._pixels, self.format, stored=self.stored, **about["source"])
            self._pixels = self.screen(self._picture)
        self.color = bool(about["color"])
        self.protected, self.protects = decoder.protected, decoder.protected is not None
        self._grey_outside = bool(about.get("grey outside"))
        letters, lengths = about.get("stack", ("", ()))
        self.stack = StackNames.of(StackAxes(f"{letters}YX", (*lengths, *self._pixels.shape[:2])))
        self.plane, self._plane_page = 0, 0
        self.first_frame = self._pixels if self.video or not self.pages else self._pixels[0]
        self.extents = extents_of(self.kind, self.dicom is not None, self.stack)

    def set_plane(self, axis: int, number: int = 0) -> None:
        """Show the slices across another axis of the volume that a page is in."""
        assert self.has_planes
        if self.plane == 0:
            self._plane_page = number
        self.plane, self.pages = axis, self.volume.shape[axis] if axis else len(self._pixels)
        self.first_frame = self.frame(0)

    @property
    def has_planes(self) -> bool:
        """Whether there is a volume whose slices can be shown across other axes."""
        several = self.pages > 1 and not self.video and not self.rate
        return several and not self.color and (self.dicom is not None or VOLUME in self.extents)

    @property
    def volume(self) -> Array:
        """The volume whose slices are shown."""
        extent = self.extents[VOLUME]
        return self._pixels if extent.is_window else self.together(self._plane_page, extent)[0]

    @property
    def volume_code(self) -> str:
        """The expression that selects :attr:`volume` from the pixels of a stack of several volumes."""
        if not self.plane or len(self.stack.lengths) < 2:
            return ""
        _, index = self.together(self._plane_page, self.extents[VOLUME])
        lengths = "".join(f"{length}, " for length in self.stack.lengths)
        places = ", ".join(":" if isinstance(place, slice) else f"{place}" for place in index)
        return f".reshape({lengths}*volume.pixels.shape[1:])[{places}]"

    def together(self, number: int, extent: Extent) -> tuple[Array, tuple[int | slice, ...]]:
        """Return the pixels that a page is filtered together with, and their index in the stack."""
        pixels = self._pixels.reshape(*self.stack.lengths, *self._pixels.shape[1:])
        places = zip(self.stack.letters, self.stack.place(number), strict=True)
        index = tuple(slice(None) if letter in extent.over else place for letter, place in places)
        return pixels[index], index

    def screen(self, picture: Picture) -> Array:
        """Return the pixels of a picture, or of a part of it, as a screen shows them."""
        return self._decoder.for_screen(picture) if self._profiled else screen_pixels(picture)

    def filtered(self, number: int, work: Work, pixels: Array | None = None) -> Array:
        """Filter a page alone, as files are filtered, and return it as a screen shows it."""
        frame = self.frame(number) if pixels is None else pixels
        scan = self.scan(number, frame)
        if scan is not None:
            return scan.filtered(work)
        if self._picture is None or self.plane:
            return screen_pixels(Picture(frame, stored=self.stored).filtered(work))
        return self.screen(self._picture.page(number).filtered(work))

    def filtered_together(self, number: int, extent: Extent, work: Work) -> Array:
        """Filter what a page is filtered together with, and return it as a screen shows it."""
        part, shape = self.picture_together(number, extent)
        return self.screen(part.filtered(work, over=extent.over)).reshape(shape)

    def picture_together(self, number: int, extent: Extent) -> tuple[Picture, tuple[int, ...]]:
        """Return what a page is filtered together with as a picture, and the shape that a screen shows."""
        assert self._picture is not None
        shown, index = self.together(self.page_of(number), extent)
        channels = self._picture.page_channels  # They are the last axis of the stack.
        axes_count = len(self.stack.lengths) - bool(channels)
        lengths = self.stack.lengths[:axes_count]
        pages = self._picture.pixels.reshape(*lengths, *self._picture.pixels.shape[1:])[index[:axes_count]]
        axes = StackAxes(extent.over, pages.shape[: len(extent.over)])
        part = replace(self._picture, pixels=pages.reshape(-1, *self._picture.pixels.shape[1:]), stack=axes)
        if channels:
            part = part.single_channel(channels[self.stack.place(self.page_of(number))[-1]])
        return part, shown.shape

    def filter_input(self, number: int) -> tuple[Array, dict[str, Any]]:
        """Return the samples of a page that a filter is given first, with its options."""
        given: list[tuple[Array, dict[str, Any]]] = []

        def note(x: Array, **options: Any) -> Array:
            given.append((x, options))
            return x

        self.filtered(number, note)
        if not given:
            raise ArgumentError("nothing of this image is visible, so nothing is filtered")
        return given[0]

    def visible(self, frame: Array) -> tuple[Array, NDArray[np.bool_] | None]:
        """Return a frame without alpha, and where it is filtered; None for everywhere."""
        if self.stored is not None:
            return frame, self.stored.valid(frame)
        if frame.ndim < 3 or frame.shape[2] < 4:
            return frame, None
        mask = frame[..., 3] > 0
        return np.ascontiguousarray(frame[..., :3]), mask if mask.any() and not mask.all() else None

    def slab(self, number: int, extent: Extent, thickness: int) -> tuple[Array, int]:
        """Return the part of a volume around a slice, and the place of the slice within it."""
        pixels, _ = self.together(self.page_of(number), extent)
        *times, depth_place = self.place_within(number, extent)
        pixels = pixels[tuple(times)]
        place = number if self.plane else depth_place
        depth = pixels.shape[self.plane]
        begin = min(max(0, place - thickness // 2), max(0, depth - thickness))
        part = slice(begin, min(begin + thickness, depth))
        return pixels[(*[slice(None)] * self.plane, part)], place - begin

    def page_of(self, number: int) -> int:
        """Return a page of the volume that a slice belongs to."""
        return self._plane_page if self.plane else number

    @property
    def page_samples(self) -> int:
        """Number of samples of a page of the file."""
        return self.first_frame.size if self.video or not self.pages else self._pixels[0].size

    def place_within(self, number: int, extent: Extent) -> tuple[int, ...]:
        """Return the place of a page within what it is filtered together with."""
        places = zip(self.stack.letters, self.stack.place(self.page_of(number)), strict=True)
        return tuple(place for letter, place in places if letter in extent.over)

    def slice_of(self, filtered: Array, number: int, extent: Extent) -> Array:
        """Return the slice that a number stands for, of what it was filtered together with."""
        places = self.place_within(number, extent)
        if not self.plane:
            return np.asarray(filtered[places])
        depth = extent.over.find(self.extents[VOLUME].over[0])
        if depth < 0:
            raise ArgumentError(
                "frames over time are filtered in the plane XY; show that plane, or filter volumes"
            )
        index = tuple(slice(None) if k == depth else place for k, place in enumerate(places))
        return np.ascontiguousarray(filtered[index].take(number, self.plane))

    def scan(self, number: int, pixels: Array | None = None) -> DicomFrame | None:
        """Return a frame of a DICOM file with what filters leave alone; None for other files."""
        if self.dicom is None or self.plane:
            return None
        return self._scan_frame(number, self.frame(number) if pixels is None else pixels)

    def _scan_frame(self, number: int, page: Array) -> DicomFrame:
        picture = Picture(page, "dicom", stored=self.stored)
        mask = self.protected if self.protects else None
        grey = mask is not None and self._grey_outside
        return DicomFrame(picture, page, mask[number] if mask is not None and mask.ndim == 3 else mask, grey)

    def scans(self) -> Iterator[DicomFrame]:
        """Yield all frames of a DICOM file with what filters leave alone."""
        for number, page in enumerate(self._pixels):
            yield self._scan_frame(number, page)

    @property
    def opening_number(self) -> int:
        """Number of the page that is shown first: the middle slice of a volume, or the first page."""
        if self.kind != "volume":
            return 0
        number = 0
        for letter, length in zip(self.stack.letters, self.stack.lengths, strict=True):
            number = number * length + (0 if letter in "TC" else length // 2)
        return number

    @property
    def position_name(self) -> str:
        """What the pages are called."""
        return "frame" if self.kind in ("clip", "video") or set(self.extents) == {TIME} else "slice"

    def position_text(self, number: int) -> str:
        """Return the number of a page, and its place along each axis of a hyperstack."""
        text = f"{self.position_name} {number + 1} / {self.frame_count}"
        if self.plane or sum(length > 1 for length in self.stack.lengths) < 2:
            return text
        places = zip(self.stack.letters, self.stack.place(number), self.stack.lengths, strict=True)
        return f"{' '.join(f'{n} {k + 1}' for n, k, length in places if length > 1)} · {text}"

    @property
    def kind(self) -> str:
        """One of {"picture", "volume", "clip", "video", "camera"}."""
        if self.video:
            return "video"
        if self.pages > 1:
            return "clip" if self.rate else "volume"
        return "picture"

    @property
    def frame_count(self) -> int:
        """Number of frames or slices."""
        return max(1, self.pages)

    @property
    def channel_axis(self) -> int | None:
        """Channel axis of a frame; None for grey."""
        return -1 if self.color else None

    @property
    def size_text(self) -> str:
        """Size, number of frames and sample type, for display."""
        height, width = self.first_frame.shape[:2]
        words = [f"{width} × {height}"]
        if self.frame_count > 1:
            words.append(f"{self.frame_count} {self.position_name}s")
        if self.first_frame.dtype != np.uint8:
            words.append(str(self.first_frame.dtype))
        return ", ".join(words)

    def frame(self, number: int, ahead: int | None = None) -> Array:
        """Return a frame; ``ahead`` is the number of the frame that will be needed next."""
        if self.video:
            return self._decoder.frame(number, ahead)
        if not self.pages:
            return self._pixels
        if self.plane:
            return np.ascontiguousarray(self.volume.take(number, self.plane))
        return np.asarray(self._pixels[number])

    @property
    def facts(self) -> DicomFacts:
        """Units, spacing and windows; defaults for files other than DICOM."""
        return self.dicom or DicomFacts()

    @property
    def windows(self) -> dict[str, DisplayRange]:
        """Windows to choose from: the one that is shown first, those of the modality, and all values."""
        facts = self.facts
        named = {
            name: self._range(*(facts.to_stored(center + side * width / 2) for side in (-1, 1)))
            for name, center, width in facts.windows
        }
        return {"As opened": self.display, **named}

    def _range(self, low: float, high: float) -> DisplayRange:
        low, high = min(low, high), max(low, high)
        return DisplayRange(low, max(high, low + 1e-6 * self.display.span), self.display.invert)

    def shift_window(self, right: float, down: float) -> None:
        """Widen the window and move its centre by shares of the span of the file."""
        span = self.display.span
        center = (self.window.low + self.window.high) / 2 + down * span
        width = max(self.window.span + right * span, span / 1000)
        self.window = self._range(center - width / 2, center + width / 2)

    @property
    def window_text(self) -> str:
        """Centre and width of the window, in units of the modality; empty for the one shown first."""
        if self.window == self.display and not self.facts.windows:
            return ""
        low, high = (self.facts.to_modality(value) for value in (self.window.low, self.window.high))
        return f"C {(low + high) / 2:.4g}  W {abs(high - low):.4g} {self.facts.unit}".rstrip()

    def value_text(self, values: Any) -> str:
        """Return samples of one pixel for display: stored values, and those of the modality."""
        texts = []
        for value in np.atleast_1d(values)[:4].tolist():
            text = f"{value}" if isinstance(value, int) else f"{value:.5g}"
            if self.facts.unit or (self.facts.slope, self.facts.intercept) != (1.0, 0.0):
                text += f" ({self.facts.to_modality(value):.5g} {self.facts.unit}".rstrip() + ")"
            texts.append(text)
        return " ".join(texts)

    @cached_property
    def thumbnail(self) -> str:
        """A small preview, as a data URL."""
        frame = self.frame(self.pages // 2) if self.kind == "volume" else self.first_frame
        data = jpeg_thumbnail(frame, self.display, 96)
        return "data:image/jpeg;base64," + base64.b64encode(data).decode()

    def close(self) -> None:
        """End the decoder process and release the memory."""
        self._decoder.close()
        if self.memory is not None:
            self.memory.release(self.held)
            self.memory = None


class Camera(Input):
    """The camera of the browser; every frame is the latest one."""

    def __init__(self) -> None:
        self.id = next(_next_id)
        self.name = self.source = "Camera"
        self.path = None
        self.format, self.video, self.pages, self.rate = "camera", False, 0, 0.0
        self.display = self.window = DisplayRange()
        self.color, self.stored, self.dicom, self.plane = True, None, None, 0
        self.protected, self.protects, self.extents, self.stack = None, False, {}, StackNames("", ())
        self.first_frame = np.zeros((480, 640, 3), np.uint8)

    kind = "camera"

    def set_frame(self, data: bytes, width: int, height: int) -> None:
        """Set the latest frame from RGBA bytes; alpha is ignored."""
        if not (0 < width <= 2048 and 0 < height <= 2048 and len(data) == 4 * width * height):
            raise FileError(
                f"camera frames are RGBA with sides up to 2048; got {len(data)} bytes for {width} × {height}"
            )
        pixels = np.frombuffer(data, np.uint8).reshape(height, width, 4)
        self.first_frame = np.ascontiguousarray(pixels[..., :3])

    def frame(self, number: int, ahead: int | None = None) -> Array:
        """Return the latest frame."""
        return self.first_frame

    def close(self) -> None:
        """Do nothing: there is no decoder process."""


def jpeg_thumbnail(frame: Array, display: DisplayRange, size: int) -> bytes:
    """Return a small preview of a frame as JPEG, with at most ``size`` rows and columns."""
    step = max(1, min(frame.shape[:2]) // (3 * size))
    pillow = import_optional("PIL.Image")
    image = pillow.fromarray(display.to_uint8(frame[::step, ::step]))
    if image.mode == "RGBA":
        image = pillow.alpha_composite(pillow.new("RGBA", image.size, "grey"), image)
    image.thumbnail((size, size))
    out = io.BytesIO()
    image.convert("RGB").save(out, "JPEG", quality=85)
    return out.getvalue()


def sample_thumbnail(path: Path, size: int = 160) -> bytes:
    """Return a small preview of a sample as JPEG; samples are trusted, so that no process is started."""
    about, source = describe_file(path, DEFAULT_MAX_PIXELS)
    pages = 0 if about["kind"] == "video" else about["pages"]
    pixels = screen_pixels(source) if isinstance(source, Picture) else source.frame(0)
    frame = pixels[0 if about.get("rate") else pages // 2] if pages else pixels
    return jpeg_thumbnail(frame, DisplayRange(about["low"], about["high"], bool(about.get("invert"))), size)


def _stored_range(parts: Any) -> StoredRange | None:
    """Return the range of values that the file format can store, as the decoder describes it."""
    if parts is None:
        return None
    low, high, padding = parts
    return StoredRange(low, high, tuple(padding) if padding else None)


def memory_while_open(about: dict[str, Any]) -> int:
    """Return the bytes held by an open file: its pixels, and the result and the pyramids of one frame."""
    video = about["kind"] == "video"
    converted = about.get("converted", 0)
    frame = max(about["bytes"], converted) / (1 if video else max(1, about["pages"]))
    channels = about["shape"][-1] if about["color"] else 1
    rendered = 2 * frame + PYRAMID_BYTES_PER_BYTE * frame / channels
    pixels = VIDEO_DECODER_BYTES + VIDEO_DECODER_FRAMES * frame if video else about["bytes"] + converted
    return int(rendered + pixels)


def open_input(
    path: Path,
    name: str,
    limits: StudioLimits,
    source: str | None = None,
    memory: MemoryBudget | None = None,
    on_start: Callable[[FileDecoder], None] | None = None,
) -> Input:
    """Decode a file in a worker process, if its size fits into the memory budget.

    ``on_start`` is called with the decoder, which can be closed to cancel the decoding.
    """
    held = 0

    def admit(about: dict[str, Any]) -> None:
        nonlocal held
        if memory is not None:
            memory.hold(memory_while_open(about))
            held = memory_while_open(about)

    try:
        opened = Input(name, FileDecoder(path, limits, admit, on_start), source or name, path)
    except BaseException:
        if memory is not None:
            memory.release(held)
        raise
    opened.memory, opened.held = memory, held
    return opened
