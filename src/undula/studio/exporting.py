"""Exports: under one folder, by names that cannot leave it; long ones by a process that can be ended.

The process does what ``undula filter`` does, so that files keep all they had besides their pixels.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import io
from ..errors import ArgumentError, FileError, UndulaError
from ..filters import Pipeline
from ..io.files import IMAGES, VIDEOS
from ..io.filtering import filter_picture, filter_video
from .decoding import limit_memory

__all__ = ["Export", "Job", "named_path"]


def named_path(folder: Path, name: str, suffixes: tuple[str, ...] = ()) -> Path:
    """A path under a folder by a name that somebody typed; one that is not taken yet.

    Nothing of the name can lead elsewhere: it is one name, of letters, digits and few signs.

    Examples
    --------
    >>> named_path(Path("exports"), "my picture.png").as_posix()
    'exports/my picture.png'
    >>> named_path(Path("exports"), "../../etc/passwd.png")
    Traceback (most recent call last):
        ...
    undula.errors.ArgumentError: a name has letters, digits, spaces, - _ and ., got '../../etc/passwd.png'
    """
    clean = name.strip()
    if not re.fullmatch(r"[\w][\w \-.()+]{0,119}", clean) or ".." in clean or clean.endswith((".", " ")):
        raise ArgumentError(f"a name has letters, digits, spaces, - _ and ., got {name!r}")
    if Path(clean).stem.upper() in ("CON", "PRN", "AUX", "NUL"):
        raise ArgumentError(f"{name!r} is no name for a file")
    if suffixes and Path(clean).suffix.lower() not in suffixes:
        raise ArgumentError(f"the name should end in {', '.join(suffixes)}; got {name!r}")
    path = folder / clean
    for number in range(2, 1000):
        if not path.exists():
            return path
        path = folder / f"{Path(clean).stem} {number}{Path(clean).suffix}"
    raise ArgumentError(f"there are too many files called {name!r} already")


@dataclass(frozen=True)
class Job:
    """A whole file, or all its frames, through a pipeline.

    ``target`` is a file, or a folder for ``frames``. The process may have ``memory`` bytes, if any.
    """

    source: str
    target: str
    pipeline: str
    backend: str = "cpu"
    frames: bool = False
    pixels: int = io.DEFAULT_MAX_PIXELS
    memory: int = 0


class Export:
    """A job that runs beside the page."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.done, self.total = 0, 0
        self._process: asyncio.subprocess.Process | None = None
        self.cancelled = False

    async def run(self, progress: Callable[[int, int], None]) -> None:
        """Until it is done; an error says what went wrong."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "undula.studio.exporting",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        told: dict[str, Any] = {}
        try:
            self._process.stdin.write(json.dumps(self.job.__dict__).encode() + b"\n")
            await self._process.stdin.drain()
            self._process.stdin.close()
            async for line in self._process.stdout:
                told = json.loads(line)
                if "done" in told:
                    self.done, self.total = told["done"], told["total"]
                    progress(self.done, self.total)
            await self._process.wait()
        finally:
            await self.cancel(quietly=True)
        if self.cancelled:
            raise FileError("the export was cancelled; nothing was left half done")
        if "error" in told:
            raise FileError(told["error"])
        if self._process.returncode:
            raise FileError("the export ended before it was done")

    async def cancel(self, quietly: bool = False) -> None:
        """Ends it; what was not finished is not left behind."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        self.cancelled = self.cancelled or not quietly
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()


# --- the process ----------------------------------------------------------------------------------


def _reply(**told: Any) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def _frames(job: Job, pipeline: Pipeline, progress: Callable[[int, int], None]) -> None:
    """Every frame as a picture of its own."""
    source, target = Path(job.source), Path(job.target)
    target.mkdir(parents=True)
    if io.files.detect_kind(source) == "video":
        total = io.probe(source, job.pixels).frames
        frames = io.read_frames(source, None, job.pixels)
        filtered = pipeline.frames(frames, channel_axis=-1, backend=job.backend)
    else:
        picture = io.read(source, job.pixels).for_screen()
        total = len(picture.all_pages)
        filtered = picture.filtered_pages(pipeline, backend=job.backend)
    written: list[Path] = []
    try:
        for number, frame in enumerate(filtered):
            path = target / f"frame {number:05d}{'.png' if frame.dtype in (np.uint8, np.uint16) else '.tif'}"
            io.write(path, frame)
            written.append(path)
            progress(number + 1, total)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        target.rmdir()
        raise


def _run(job: Job) -> None:
    pipeline = Pipeline.from_json(job.pipeline)
    source, target = Path(job.source), Path(job.target)

    def progress(done: int, total: int) -> None:
        _reply(done=done, total=total)

    if job.frames:
        _frames(job, pipeline, progress)
    elif io.files.detect_kind(source) == "video":
        total = io.probe(source, job.pixels).frames
        filter_video(
            source,
            target,
            pipeline,
            backend=job.backend,
            max_pixels=job.pixels,
            progress=lambda done: progress(done, total),
        )
    else:
        filter_picture(
            source,
            target,
            pipeline,
            backend=job.backend,
            max_pixels=job.pixels,
            begin=lambda total: lambda done: progress(done, total),
        )


def _stopped(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _work() -> int:
    signal.signal(signal.SIGTERM, _stopped)
    job = Job(**json.loads(sys.stdin.readline()))
    try:
        if job.memory:
            limit_memory(job.memory)
        _run(job)
    except KeyboardInterrupt:
        return 130
    except (UndulaError, OSError, MemoryError) as error:
        text = str(error).replace(job.source, "the file").replace(job.target, Path(job.target).name)
        _reply(error=" ".join(text.split()) or type(error).__name__)
        return 1
    return 0


def suffixes_for(kind: str, dtype: str) -> tuple[str, ...]:
    """What a result can be written as."""
    if kind == "video":
        return tuple(VIDEOS)
    deep = tuple(s for s, name in IMAGES.items() if name in ("tiff", "npy"))
    if kind in ("volume", "clip"):
        return deep
    return (
        (".png", *deep)
        if dtype == "uint16"
        else (".png", ".jpg", ".webp", *deep)
        if dtype == "uint8"
        else deep
    )


if __name__ == "__main__":
    sys.exit(_work())
