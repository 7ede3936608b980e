"""The jobs of exports: files that are filtered completely, each by a process that can be cancelled.

The process does what ``undula filter`` does, so that files keep their metadata, sound and pages.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import io
from ..errors import ArgumentError, FileError, UndulaError
from ..filters import Pipeline
from ..filters.memory import check_memory
from ..filters.verbs import Denoising
from ..io.dicom import get_element, read_header
from ..io.dicom_filtering import AUTOMATIC, NOTHING, DicomFilter, dicom_frames
from ..io.files import IMAGES, VIDEOS
from ..io.filtering import Encoding, filter_picture, filter_video
from ..io.stack import StackAxes
from .decoding import dicom_rate, limit_memory, picture_rate, stack_axes
from .extents import EACH, AppliedChain, StackNames, extents_of, filter_clip

__all__ = ["ExportJob", "ExportProcess", "export_path", "export_suffixes", "run_job"]

Array = NDArray[Any]
Progress = Callable[[int, int], None]
NO_STACK = StackNames("", ())


def export_path(folder: Path, name: str, suffixes: tuple[str, ...] = ()) -> Path:
    """Return an unused path in a folder for a name that a visitor typed.

    Names cannot lead out of the folder: only letters, digits and a few other characters are allowed.

    Examples
    --------
    >>> export_path(Path("exports"), "my picture.png").as_posix()
    'exports/my picture.png'
    >>> export_path(Path("exports"), "../../passwd.png")
    Traceback (most recent call last):
        ...
    undula.errors.ArgumentError: invalid file name '../../passwd.png': use letters, digits, spaces and -_.()+
    """
    clean = name.strip()
    if not re.fullmatch(r"[\w][\w \-.()+]{0,119}", clean) or ".." in clean or clean.endswith((".", " ")):
        raise ArgumentError(f"invalid file name {name!r}: use letters, digits, spaces and -_.()+")
    if Path(clean).stem.upper() in ("CON", "PRN", "AUX", "NUL"):
        raise ArgumentError(f"{name!r} is a reserved file name; choose another one")
    if suffixes and Path(clean).suffix.lower() not in suffixes:
        raise ArgumentError(f"the file name must end in {', '.join(suffixes)}; got {name!r}")
    path = folder / clean
    for number in range(2, 1000):
        if not path.exists():
            return path
        path = folder / f"{Path(clean).stem} {number}{Path(clean).suffix}"
    raise ArgumentError(f"there are too many files named like {name!r}; choose another name")


@dataclass(frozen=True)
class ExportJob:
    """A file to filter completely.

    ``target`` is a file, or a folder if ``frames`` are to be written separately. ``memory`` limits the
    memory of the process, in bytes; 0 is no limit. ``extent``, ``over_time`` and ``task`` are those of a
    :class:`~undula.studio.chain.FilterChain`, and ``protects`` tells whether burned-in text and colours of
    DICOM files are left alone, which then name the ``command`` that they were filtered with.
    """

    source: str
    target: str
    pipeline: str
    backend: str = "cpu"
    frames: bool = False
    pixels: int = io.DEFAULT_MAX_PIXELS
    memory: int = 0
    extent: str = EACH
    over_time: int = 0
    task: dict[str, Any] | None = None
    protects: bool = True
    command: str = "filter"

    def applied(self, kind: str, is_dicom: bool = False, stack: StackNames = NO_STACK) -> AppliedChain:
        """Return the chain as it is applied to a file of some kind."""
        pipeline = Pipeline.from_json(self.pipeline)
        extent = extents_of(kind, is_dicom, stack).get(self.extent)
        task = None if self.task is None else Denoising(**self.task)
        return AppliedChain.of(pipeline, extent, self.over_time, task)


class ExportProcess:
    """A job that runs in a process of its own."""

    def __init__(self, job: ExportJob) -> None:
        self.job = job
        self.cancelled = False
        self._process: asyncio.subprocess.Process | None = None

    async def run(self, progress: Progress) -> None:
        """Run the job, reporting progress as ``progress(done, total)``."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "undula.studio.export_jobs",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        reply: dict[str, Any] = {}
        try:
            self._process.stdin.write(json.dumps(asdict(self.job)).encode() + b"\n")
            await self._process.stdin.drain()
            self._process.stdin.close()
            async for line in self._process.stdout:
                reply = json.loads(line)
                if "done" in reply:
                    progress(reply["done"], reply["total"])
            await self._process.wait()
        finally:
            await self._terminate()
        if self.cancelled:
            raise FileError("the export was cancelled; no incomplete file was left behind")
        if "error" in reply:
            raise FileError(reply["error"])
        if self._process.returncode:
            raise FileError("the export process ended before it was finished")

    async def cancel(self) -> None:
        """Cancel the job if it is running; incomplete files are removed."""
        if self._process is not None and self._process.returncode is None:
            self.cancelled = True
            await self._terminate()

    async def _terminate(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()


def export_suffixes(kind: str, dtype: str) -> tuple[str, ...]:
    """Return the file name suffixes that a result can be written with."""
    if kind == "video":
        return tuple(VIDEOS)
    lossless = tuple(suffix for suffix, name in IMAGES.items() if name in ("tiff", "npy"))
    if kind in ("volume", "clip"):
        return lossless
    common = {"uint8": (".png", ".jpg", ".webp"), "uint16": (".png",)}
    return (*common.get(dtype, ()), *lossless)


# --- the process ----------------------------------------------------------------------------------


def _reply(**reply: Any) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def _write_frames(target: Path, frames: Iterable[Array], total: int, progress: Progress) -> None:
    """Write every frame as a picture into a new folder."""
    target.mkdir(parents=True)
    written: list[Path] = []
    try:
        for number, frame in enumerate(frames, 1):
            path = target / f"frame {number:05d}{'.png' if frame.dtype in (np.uint8, np.uint16) else '.tif'}"
            io.write(path, frame)
            written.append(path)
            progress(number, total)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        target.rmdir()
        raise


def _run_video(job: ExportJob, source: Path, target: Path, progress: Progress) -> None:
    applied, total = job.applied("video"), io.probe(source, job.pixels).frames
    if not job.frames:
        options: Any = {"backend": job.backend, "max_pixels": job.pixels}
        encoding = Encoding(over_time=applied.over_time)
        filter_video(
            source, target, applied.work, encoding, progress=lambda done: progress(done, total), **options
        )
        return
    frames = io.read_frames(source, None, job.pixels)
    if applied.is_window:
        filtered = filter_clip(frames, applied.work, applied.over_time, -1, backend=job.backend)
    else:
        filtered = applied.pipeline.frames(frames, channel_axis=-1, backend=job.backend)
    _write_frames(target, filtered, total, progress)


def _run_dicom(job: ExportJob, source: Path, target: Path, progress: Progress) -> None:
    header = read_header(source)
    several = "clip" if dicom_rate(header) else "volume"
    applied = job.applied(several if int(get_element(header, "NumberOfFrames", 1)) > 1 else "picture", True)
    dicom_filter = DicomFilter(
        applied.work,
        applied.over_time,
        AUTOMATIC if job.protects else NOTHING,
        derivation=io.Derivation(job.command),
        backend=job.backend,
        max_pixels=job.pixels,
    )
    if not job.frames:
        dicom_filter.filter_file(source, target, lambda total: lambda done: progress(done, total))
        return
    picture = io.read(source, job.pixels)
    protected = io.find_protected(picture) if job.protects else None
    frames = dicom_filter.filtered(dicom_frames(picture, protected))
    _write_frames(target, frames, len(picture.all_pages), progress)


def _run_picture(job: ExportJob, source: Path, target: Path, progress: Progress) -> None:
    applied = job.applied("picture")
    if job.extent:
        picture = io.read(source, job.pixels)
        letters, lengths = stack_axes(picture)
        stack = StackNames.of(StackAxes(f"{letters}YX", (*lengths, *picture.pixels.shape[:2])))
        applied = job.applied("clip" if picture_rate(picture) else "volume", False, stack)
    axes = None if applied.extent is None else applied.extent.axes
    if not job.frames:
        options: Any = {"backend": job.backend, "max_pixels": job.pixels, "axes": axes, "over": applied.over}
        filter_picture(
            source,
            target,
            applied.pipeline,
            begin=lambda total: lambda done: progress(done, total),
            **options,
        )
        return
    picture = io.read(source, job.pixels)
    picture = picture if axes is None else picture.with_axes(axes)
    needed = picture.working_memory(applied.pipeline, over=applied.over, backend=job.backend)
    check_memory(needed, f"filtering {source}")
    if applied.over is None:
        pages = (picture.page(number) for number in range(picture.page_count))
        filtered: Iterable[Array] = (
            page.filtered(applied.pipeline, backend=job.backend).for_screen().pixels for page in pages
        )
    else:
        result = picture.filtered(applied.pipeline, over=applied.over, backend=job.backend)
        filtered = result.for_screen().all_pages
    _write_frames(target, filtered, picture.page_count, progress)


def run_job(job: ExportJob, progress: Progress) -> None:
    """Run a job in this process."""
    source, target = Path(job.source), Path(job.target)
    kind = io.files.detect_kind(source)
    run = {"video": _run_video, "dicom": _run_dicom}.get(kind or "", _run_picture)
    run(job, source, target, progress)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _main() -> int:
    signal.signal(signal.SIGTERM, _interrupt)
    job = ExportJob(**json.loads(sys.stdin.readline()))
    try:
        if job.memory:
            limit_memory(job.memory)
        run_job(job, lambda done, total: _reply(done=done, total=total))
    except KeyboardInterrupt:
        return 130
    except (UndulaError, OSError, MemoryError) as error:
        text = str(error).replace(job.source, "the file").replace(job.target, Path(job.target).name)
        _reply(error=" ".join(text.split()) or type(error).__name__)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
