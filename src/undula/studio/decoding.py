"""Files from strangers are decoded by a process of its own, with limits.

    page ──request, a line of JSON──▶ worker ──a line of JSON, then pixels──▶ page

A file that makes a decoder crash, take all memory or run for ever takes the worker with it, and no more. The
worker writes no files; it has so much memory, and so much time for an answer.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError, UndulaError
from ..io import DEFAULT_MAX_PIXELS, read
from ..io.decoder import VideoReader
from ..io.dicom import get_element
from ..io.files import detect_kind

__all__ = ["Decoder", "Limits", "installed_memory", "limit_memory"]

Array = NDArray[Any]
Admit = Callable[[dict[str, Any]], None]
LARGEST = 1e15  # of values; their squares are numbers, too
ARENA_MAX = -8  # what glibc's mallopt calls the number of heaps


def installed_memory() -> int:
    """Bytes of memory of the machine; 8 GiB where nobody tells."""
    with suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 8 << 30


@dataclass(frozen=True)
class Limits:
    """What a file may take.

    Parameters
    ----------
    upload : int
        Bytes that a visitor may send as one file.
    pixels : int
        Of all pages of a picture together, or of a frame of a video.
    memory : int
        Bytes that the decoder may have.
    seconds : number
        Until an answer is there.
    disk : int
        Bytes of all that visitors have sent and have open.
    total : int
        Bytes of memory for what is open and for all work on it, besides the program itself.
    """

    upload: int = 512 << 20
    pixels: int = DEFAULT_MAX_PIXELS
    memory: int = 4 << 30
    seconds: float = 30.0
    disk: int = 8 << 30
    total: int = field(default_factory=lambda: min(8 << 30, installed_memory() // 2))


class Decoder:
    """A file that is decoded by a worker, on request.

    Attributes
    ----------
    about : dict
        What it is: ``kind`` (picture or video), ``shape``, ``pages``, ``rate``, ``low`` and ``high``, …
    pixels : array or None
        All of a picture.

    ``admit`` is called with what the worker says of the file before its pixels are taken, and may object.
    """

    def __init__(self, path: Path, limits: Limits | None = None, admit: Admit | None = None) -> None:
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        self._asked: int | None = None  # a frame that is on the way
        self._process = subprocess.Popen(
            [sys.executable, "-m", "undula.studio.decoding"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pipesize=1 << 20,
        )
        try:
            told = {"path": str(path), "pixels": self._limits.pixels, "memory": self._limits.memory}
            self._ask(told)
            self.about, self.pixels = self._answer(admit)
        except BaseException:
            self.close()
            raise
        if self.about["kind"] == "picture":
            self.close()

    def frame(self, number: int, ahead: int | None = None) -> Array:
        """A frame of a video; ``ahead`` is the one that will be asked for next."""
        with self._lock:
            if self._asked is not None and self._asked != number:
                with suppress(FileError):
                    self._answer()  # (what was on the way is not wanted any more)
                self._asked = None
            if self._asked is None:
                self._ask({"frame": number})
            self._asked = None
            _, pixels = self._answer()
            if ahead is not None:
                self._ask({"frame": ahead})
                self._asked = ahead
            assert pixels is not None
            return pixels

    def close(self) -> None:
        """Ends the worker."""
        process = self._process
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _ask(self, told: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(told).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise FileError("the decoder has ended; open the file again") from None

    def _answer(self, admit: Admit | None = None) -> tuple[dict[str, Any], Array | None]:
        assert self._process.stdout is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(self._limits.seconds, stop)
        timer.start()
        try:
            line = self._process.stdout.readline()
            told = json.loads(line) if line else {}
            pixels = None
            if "bytes" in told:
                if admit is not None:
                    admit(told)
                data = bytearray(told["bytes"])
                if self._process.stdout.readinto(data) == len(data):  # type: ignore[attr-defined]
                    pixels = np.frombuffer(data, told["dtype"]).reshape(told["shape"])
                else:
                    told = {}
        except ValueError:
            told = {}
        finally:
            timer.cancel()
        if late.is_set():
            raise FileError(f"it takes more than {self._limits.seconds:g} seconds to decode this file")
        if not told:
            raise FileError("the decoder did not survive this file: it is broken, or needs too much memory")
        if "error" in told:
            raise FileError(told["error"])
        return told, pixels


# --- the worker -----------------------------------------------------------------------------------


def limit_memory(most: int) -> None:
    """Limits the memory of the process, where the system can."""
    try:
        import resource
    except ImportError:  # (there are no such limits on Windows)
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _limited(memory: int) -> None:
    """No more memory than that, and no files written."""
    limit_memory(memory)
    try:
        import resource
    except ImportError:
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _one_heap() -> None:
    """All threads of a decoder share one heap, where the C library can be told so.

    By default each has its own, and FFmpeg starts new threads whenever a clip begins again: what they leave
    behind grows by megabytes in an hour.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(ARENA_MAX, 1)


def _range(pixels: Array) -> tuple[float, float]:
    """What is shown as black and as white: all that bytes can be, and of others what there is."""
    if pixels.dtype == np.uint8:
        return 0.0, 255.0
    finite = pixels[np.isfinite(pixels)] if pixels.dtype.kind == "f" else pixels
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if max(abs(low), abs(high)) > LARGEST:
        raise FileError(
            f"its values reach {max(high, -low):.3g}, and nothing above {LARGEST:g} is filtered here"
        )
    least = max(1e-30, 1e-12 * max(abs(low), abs(high)))
    return (low, high) if high - low > least else (low, low + max(1.0, abs(low)))


def _window(dataset: Any, low: float, high: float) -> tuple[float, float]:
    """The window that a DICOM file asks for, in stored values."""
    with suppress(TypeError, ValueError, IndexError, ArithmeticError):
        center, width = get_element(dataset, "WindowCenter"), get_element(dataset, "WindowWidth")
        if center is None or width is None:
            return low, high
        center, width = (
            float(v[0] if hasattr(v, "__len__") and not isinstance(v, str) else v) for v in (center, width)
        )
        slope = float(get_element(dataset, "RescaleSlope", 1) or 1)
        shift = float(get_element(dataset, "RescaleIntercept", 0))
        ends = sorted(((center + side * width / 2) - shift) / slope for side in (-1, 1))
        if ends[1] > ends[0]:
            return ends[0], ends[1]
    return low, high


def _picture(path: Path, limit: int) -> tuple[dict[str, Any], Array]:
    picture = read(path, limit).for_screen()
    pixels = picture.pixels
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * 255
    pixels = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder("="), copy=False))
    valid = picture.stored.valid(pixels) if picture.stored is not None else None
    low, high = _range(pixels if valid is None or not valid.any() else pixels[valid])
    told: dict[str, Any] = {
        "kind": "picture",
        "format": picture.kind,
        "pages": len(pixels) if picture.pages else 0,
        "color": picture.channel_axis is not None,
    }
    dataset = picture.about.get("dataset")
    if dataset is not None:
        if picture.channel_axis is None:
            low, high = _window(dataset, low, high)
            told["invert"] = get_element(dataset, "PhotometricInterpretation") == "MONOCHROME1"
        told["rate"] = _rate(dataset)
    if picture.stored is not None:
        told["stored"] = [picture.stored.low, picture.stored.high, picture.stored.padding]
    durations = [d for d in picture.about.get("durations", []) if d]
    if durations:
        told["rate"] = 1000 / (sum(durations) / len(durations))
    return told | {"low": low, "high": high}, pixels


def _rate(dataset: Any) -> float:
    """Frames in a second, of a clip that tells; 0 for what is no clip."""
    for name, make in (
        ("RecommendedDisplayFrameRate", float),
        ("CineRate", float),
        ("FrameTime", lambda value: 1000 / float(value)),
    ):
        with suppress(TypeError, ValueError, ZeroDivisionError):
            value = get_element(dataset, name)
            if value is not None:
                return make(value)
    return 25.0 if get_element(dataset, "Modality") == "US" else 0.0


def _reply(told: dict[str, Any], pixels: Array | None = None) -> None:
    out = sys.stdout.buffer
    if pixels is not None:
        told |= {"bytes": pixels.nbytes, "dtype": str(pixels.dtype), "shape": list(pixels.shape)}
    out.write(json.dumps(told).encode() + b"\n")
    if pixels is not None:
        out.write(np.ascontiguousarray(pixels).data.cast("B"))
    out.flush()


def _reason(error: BaseException, path: Path) -> str:
    """What is wrong, without where the file is."""
    text = (
        str(error) if isinstance(error, UndulaError) else f"cannot read it: {error or type(error).__name__}"
    )
    return " ".join(text.replace(str(path), "the file").split())[:300]


def _work() -> None:
    """Answers requests until there are no more."""
    told = json.loads(sys.stdin.buffer.readline())
    path = Path(told["path"])
    try:
        _limited(told["memory"])
        _one_heap()
        if detect_kind(path) != "video":
            _reply(*_picture(path, told["pixels"]))
            return
        film = VideoReader(path, told["pixels"])
        known = film.video
        first = film.frame(0)
        shape = {"width": int(first.shape[1]), "height": int(first.shape[0])}
        about = {"kind": "video", "pages": max(1, known.frames), "rate": known.rate or 25.0, "color": True}
        _reply(about | shape | {"low": 0.0, "high": 255.0, "format": known.codec}, first)
    except Exception as error:  # whatever a decoder thinks of a broken file
        _reply({"error": _reason(error, path)})
        return
    for line in sys.stdin.buffer:
        try:
            _reply({}, film.frame(int(json.loads(line)["frame"])))
        except Exception as error:  # (likewise)
            _reply({"error": _reason(error, path)})


if __name__ == "__main__":
    _work()
