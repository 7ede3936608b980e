"""Decoding of uploaded files in a separate process with limited resources.

    page ──request, a line of JSON──▶ worker ──a line of JSON, then pixels──▶ page

A file that makes a decoder crash, exhaust its memory or run for ever ends the worker process only. The worker
cannot write files, has a memory limit, and must answer within a time limit.
"""

from __future__ import annotations

import ctypes
import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.memory import installed_memory, memory_size
from ..errors import FileError, UndulaError
from ..io import DEFAULT_MAX_PIXELS, read
from ..io.decoder import VideoReader
from ..io.dicom import get_element
from ..io.display import frame_rate
from ..io.files import detect_kind
from ..io.picture import Picture
from ..io.protection import find_protected, is_grey_outside
from ..io.raster import read_header
from .dicom import dicom_facts

__all__ = [
    "FileDecoder",
    "StudioLimits",
    "describe_file",
    "dicom_rate",
    "limit_memory",
    "picture_rate",
    "screen_pixels",
    "stack_axes",
]

Array = NDArray[Any]
Admit = Callable[[dict[str, Any]], None]
MAX_MAGNITUDE = 1e15  # of samples: their squares must not overflow
MIN_SPAN = 1e-300  # of samples that are not taken for equal: 255 divided by it must not overflow
M_ARENA_MAX = -8  # the parameter of glibc's mallopt that sets the number of heaps


@dataclass(frozen=True)
class StudioLimits:
    """Resources that visitors may use.

    Parameters
    ----------
    upload : int, default 512 MiB
        Largest upload, in bytes.
    pixels : int
        Largest number of pixels, of all pages of a picture together or of one frame of a video.
    memory : int, default 4 GiB
        Memory of a decoding process, in bytes.
    seconds : float, default 30
        Time limit for each answer of a decoding process.
    disk : int, default 8 GiB
        Bytes of all uploads that are open.
    total : int, optional
        Bytes of memory for everything that is open and for all computations, not counting the program itself.
        The default is half of the installed memory, and at most 8 GiB.
    """

    upload: int = 512 << 20
    pixels: int = DEFAULT_MAX_PIXELS
    memory: int = 4 << 30
    seconds: float = 30.0
    disk: int = 8 << 30
    total: int = field(default_factory=lambda: min(8 << 30, (installed_memory() or 8 << 30) // 2))


class FileDecoder:
    """A file decoded by a worker process.

    Parameters
    ----------
    path : Path
    limits : StudioLimits, optional
    admit : callable, optional
        Called with the description of the file before its pixels are received; it may raise an error.
    on_start : callable, optional
        Called with the decoder, which another thread can then close to cancel the decoding.

    Attributes
    ----------
    about : dict
        Description: ``kind`` ("picture" or "video"), ``shape``, ``pages``, ``rate``, ``low``, ``high``, …
    pixels : array or None
        All pixels of a picture as the file has them, or the first frame of a video.
    protected : array of bool or None
        Where a picture has burned-in text or colours that filters leave alone.
    """

    protected: NDArray[np.bool_] | None = None

    def __init__(
        self,
        path: Path,
        limits: StudioLimits | None = None,
        admit: Admit | None = None,
        on_start: Callable[[FileDecoder], None] | None = None,
    ) -> None:
        self._limits = limits or StudioLimits()
        self._lock = threading.Lock()
        self._requested: int | None = None  # the frame that the worker is decoding ahead
        self._process = subprocess.Popen(
            [sys.executable, "-m", "undula.studio.decoding"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pipesize=1 << 20,
        )
        self._closed = False
        try:
            if on_start is not None:
                on_start(self)
            self._request(path=str(path), pixels=self._limits.pixels, memory=self._limits.memory)
            self.about, self.pixels = self._answer(admit)
        except BaseException:
            self.close()
            raise
        if self.about["kind"] == "picture" and not self.about["profiled"]:
            self.close()

    def frame(self, number: int, ahead: int | None = None) -> Array:
        """Return a frame of a video; ``ahead`` is the number of the frame that will be needed next."""
        with self._lock:
            if self._requested is not None and self._requested != number:
                with suppress(FileError):
                    self._answer()  # Discard the frame that is no longer needed.
                self._requested = None
            if self._requested is None:
                self._request(frame=number)
            self._requested = None
            _, pixels = self._answer()
            if ahead is not None:
                self._request(frame=ahead)
                self._requested = ahead
            assert pixels is not None
            return pixels

    def for_screen(self, picture: Picture) -> Array:
        """Return the pixels of a part of a picture as :meth:`undula.io.Picture.for_screen` does.

        Colours are converted by the profile of the file, which only the worker process may interpret.
        """
        with self._lock:
            pixels = np.ascontiguousarray(picture.pixels)
            self._request(screen=pixels.shape, dtype=str(pixels.dtype), pages=picture.pages)
            self._send(pixels.data.cast("B"))
            _, shown = self._answer()
            assert shown is not None
            return shown

    def close(self) -> None:
        """End the worker process."""
        process, self._closed = self._process, True
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _request(self, **request: Any) -> None:
        self._send(json.dumps(request).encode() + b"\n")

    def _send(self, data: bytes | memoryview) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise FileError("the decoder process has ended; open the file again") from None

    def _answer(self, admit: Admit | None = None) -> tuple[dict[str, Any], Array | None]:
        assert self._process.stdout is not None
        timed_out = threading.Event()

        def stop() -> None:
            timed_out.set()
            self._process.kill()

        timer = threading.Timer(self._limits.seconds, stop)
        timer.start()
        try:
            line = self._process.stdout.readline()
            answer = json.loads(line) if line else {}
            pixels = None
            if "bytes" in answer:
                if admit is not None:
                    admit(answer)
                data = bytearray(answer["bytes"])
                if self._process.stdout.readinto(data) == len(data):  # type: ignore[attr-defined]
                    pixels = np.frombuffer(data, answer["dtype"]).reshape(answer["shape"])
                else:
                    answer = {}
            if "protected" in answer:
                shape = answer["protected"]
                count = math.prod(shape)
                bits = np.frombuffer(self._process.stdout.read(-(-count // 8)), np.uint8)
                self.protected = np.unpackbits(bits, count=count).astype(bool).reshape(shape)
        except ValueError:
            answer = {}
        finally:
            timer.cancel()
        if self._closed:
            raise FileError("opening it was cancelled")
        if timed_out.is_set():
            raise FileError(f"decoding this file takes more than {self._limits.seconds:g} seconds")
        if not answer:
            raise FileError("the decoder crashed: the file is damaged, or decoding it needs too much memory")
        if "error" in answer:
            raise FileError(answer["error"])
        return answer, pixels


# --- the worker process ---------------------------------------------------------------------------


def limit_memory(nbytes: int) -> None:
    """Limit the address space of this process, where the system supports it."""
    _limit_resource("RLIMIT_AS", nbytes)


def _limit_resource(name: str, most: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits.
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(getattr(resource, name), (most, most))


def limit_worker(memory: int) -> None:
    """Limit the memory of this process, and keep it from writing files."""
    limit_memory(memory)
    _limit_resource("RLIMIT_FSIZE", 0)
    _limit_resource("RLIMIT_CORE", 0)


def _use_one_heap() -> None:
    """Make all threads share one heap, where the C library supports it.

    By default each thread has its own, and FFmpeg starts new threads whenever a clip is rewound; the heaps
    that they leave behind grow by megabytes per hour.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def _display_range(pixels: Array) -> tuple[float, float]:
    """Return the values displayed as black and white: the range of the type for 8 bits, else of the data."""
    if pixels.dtype == np.uint8:
        return 0.0, 255.0
    finite = pixels[np.isfinite(pixels)] if pixels.dtype.kind == "f" else pixels
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    magnitude = max(abs(low), abs(high))
    if magnitude > MAX_MAGNITUDE:
        raise FileError(
            f"its values reach {magnitude:.3g}; the Studio supports magnitudes up to {MAX_MAGNITUDE:g}"
        )
    is_constant = high - low <= max(MIN_SPAN, 1e-12 * magnitude)
    return (low, low + (abs(low) or 1.0)) if is_constant else (low, high)


def describe_file(path: Path, limit: int) -> tuple[dict[str, Any], Picture | VideoReader]:
    """Return the description of a file, and the picture or the reader of a video."""
    if detect_kind(path) != "video":
        return _read_picture(path, limit)
    reader = VideoReader(path, limit)
    known = reader.video
    about = {"kind": "video", "pages": max(1, known.frames), "rate": known.rate or 25.0, "color": True}
    return about | {"low": 0.0, "high": 255.0, "format": known.codec}, reader


def screen_pixels(picture: Picture) -> Array:
    """Return the pixels of a picture as a screen shows them."""
    pixels = picture.for_screen().pixels
    return np.ascontiguousarray(pixels.astype(np.uint8) * 255 if pixels.dtype == np.bool_ else pixels)


def _read_picture(path: Path, limit: int) -> tuple[dict[str, Any], Picture]:
    picture = read(path, limit)
    native = picture.pixels.astype(picture.pixels.dtype.newbyteorder("="), copy=False)
    picture = picture.with_pixels(native)
    pixels = screen_pixels(picture)
    valid = picture.stored.valid(pixels) if picture.stored is not None else None
    low, high = _display_range(pixels if valid is None or not valid.any() else pixels[valid])
    dataset = picture.about.get("dataset")
    pages = pixels.ndim > 2 and (picture.pages or bool(picture.page_channels))
    about: dict[str, Any] = {
        "kind": "picture",
        "format": picture.kind,
        "pages": len(pixels) if pages else 0,
        "color": pixels.ndim - pages > 2,
        "stack": stack_axes(picture),
        "profiled": picture.space == "cmyk" and picture.profile is not None,
        "converted": 0 if pixels is native else pixels.nbytes,
        "source": {
            "pages": picture.pages,
            "channels": picture.channels,
            "orientation": picture.orientation,
            "about": {"photometric": picture.about.get("photometric")} if dataset is None else {},
        },
    }
    if dataset is not None:
        facts = dicom_facts(dataset)
        if picture.channel_axis is None:
            low, high = facts.stored_window or (low, high)
            about["invert"] = get_element(dataset, "PhotometricInterpretation") == "MONOCHROME1"
        about["rate"] = dicom_rate(dataset)
        about["dicom"] = facts.to_dict()
        protected = find_protected(picture)
        if protected is not None:
            about |= {"protected": protected, "grey outside": is_grey_outside(picture, protected)}
    if picture.stored is not None:
        about["stored"] = [picture.stored.low, picture.stored.high, picture.stored.padding]
    rate = picture_rate(picture)
    if rate:
        about["rate"] = rate
    return about | {"low": low, "high": high}, picture


def dicom_rate(dataset: Any) -> float:
    """Return the frames per second of a DICOM clip; 0 for slices."""
    return frame_rate(dataset) or (25.0 if get_element(dataset, "Modality") == "US" else 0.0)


def picture_rate(picture: Picture) -> float:
    """Return the frames per second of an animation; 0 for pages."""
    durations = [duration for duration in picture.about.get("durations", []) if duration]
    return 1000 / (sum(durations) / len(durations)) if durations else 0.0


def stack_axes(picture: Picture) -> tuple[str, tuple[int, ...]]:
    """Return the letters and lengths of the axes in front of rows and columns.

    Channels that are shown as pages are the last one of them.
    """
    axes = picture.stack_axes
    letters, lengths = axes.names[:-2], axes.shape[:-2]
    channels = len(picture.page_channels)
    return (letters + "C", (*lengths, channels)) if channels > 1 else (letters, lengths)


def _reply(answer: dict[str, Any], pixels: Array | None = None) -> None:
    out = sys.stdout.buffer
    protected = answer.get("protected")
    if protected is not None:
        answer["protected"] = protected.shape
    if pixels is not None:
        answer |= {"bytes": pixels.nbytes, "dtype": str(pixels.dtype), "shape": list(pixels.shape)}
    out.write(json.dumps(answer).encode() + b"\n")
    if pixels is not None:
        out.write(np.ascontiguousarray(pixels).data.cast("B"))
    if protected is not None:
        out.write(np.packbits(protected).data)
    out.flush()


def _reply_error(error: BaseException, path: Path) -> None:
    """Report an error without revealing the path of the file."""
    known = isinstance(error, UndulaError)
    text = str(error) if known else f"cannot read it: {str(error) or type(error).__name__}"
    _reply({"error": " ".join(text.replace(str(path), "the file").split())[:300]})


def _receive(request: dict[str, Any]) -> Array:
    """Return the pixels that follow a request."""
    shape, dtype = request["screen"], np.dtype(request["dtype"])
    data = sys.stdin.buffer.read(math.prod(shape) * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(shape)


def _check_size(path: Path, limit: int, memory: int) -> None:
    """Raise an error for a picture whose header tells that it does not fit, before it is decoded."""
    header = None if detect_kind(path) == "video" else read_header(path)
    if header is None or header.pixels.size > limit * len(header.channels):  # The reader refuses it.
        return
    if 2 * header.pixels.nbytes > memory:
        raise FileError(
            f"decoding it takes {memory_size(2 * header.pixels.nbytes)} of memory, and {memory_size(memory)}"
            " are allowed: open a part of it, or start the Studio with a larger --max-memory"
        )


def _main() -> None:
    """Answer requests until the pipe is closed."""
    request = json.loads(sys.stdin.buffer.readline())
    path = Path(request["path"])
    try:
        limit_worker(request["memory"])
        _use_one_heap()
        _check_size(path, request["pixels"], request["memory"])
        about, source = describe_file(path, request["pixels"])
        _reply(about, source.pixels if isinstance(source, Picture) else source.frame(0))
    except BaseException as error:  # Decoders raise all kinds of errors for damaged files.
        _reply_error(error, path)
        return
    for line in sys.stdin.buffer:
        try:
            request = json.loads(line)
            if isinstance(source, Picture):
                part = _receive(request)
                _reply({}, screen_pixels(replace(source, pixels=part, pages=request["pages"], stack=None)))
            else:
                _reply({}, source.frame(int(request["frame"])))
        except BaseException as error:  # As above.
            _reply_error(error, path)


if __name__ == "__main__":
    _main()
