"""The exports of a session: they run in the background, one after the other, and outlive the page.

picture, view, pipeline    computed here, from what the page shows
whole, frames              a file filtered completely, by a process that can be cancelled
batch                      one export for each open file; other files are uploaded for it and then removed
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import io
from ..errors import UndulaError
from ..filters import Pipeline
from ..filters.verbs import Denoising
from ..io.files import IMAGES, READ_ONLY_VIDEOS, VIDEOS
from .chain import FilterChain
from .code import command_words
from .export_jobs import ExportJob, ExportProcess, export_path, export_suffixes
from .inputs import Input
from .renderer import filter_memory

if TYPE_CHECKING:
    from .session import Session

__all__ = ["Export", "ExportKind", "ExportList", "file_stem", "file_suffix"]

EXPORT_WORK_BYTES = 256 << 20  # memory of an export, besides filtering
EXPORT_EXTRA_BYTES = 4 << 30  # address space of an export, besides decoding: machine code, queued frames
MAX_LISTED = 100
MAX_WAITING = 4  # uploads of a batch that wait for their export


@dataclass(frozen=True)
class ExportKind:
    """Title, proposed name and allowed suffixes of a kind of export."""

    title: str
    name: str
    suffixes: tuple[str, ...] = ()


@dataclass
class Export:
    """An export that waits, runs or has ended."""

    number: int
    name: str
    path: Path | None = None  # once it is written
    done: int = 0
    total: int = 0
    error: str = ""
    process: ExportProcess | None = None
    task: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether it is written, has failed or was cancelled."""
        return self.path is not None or bool(self.error)

    @property
    def title(self) -> str:
        """The name of the file, which has a number if the chosen name was used already."""
        return self.name if self.path is None else self.path.name

    @property
    def text(self) -> str:
        """The state, for display."""
        if self.path is not None:
            return f"written: {self.path.name}"
        return self.error or (f"{self.done} of {self.total}" if self.total else "working …")

    @property
    def share(self) -> float:
        """The share of the work that is done."""
        return self.done / max(1, self.total)

    def report(self, done: int, total: int) -> None:
        """Note the progress."""
        self.done, self.total = done, total

    async def cancel(self) -> None:
        """Cancel it; no incomplete file is left behind."""
        if self.process is not None:
            await self.process.cancel()
        elif self.task is not None:
            self.task.cancel()


def file_stem(shown: Input) -> str:
    """Return the name of an input without its suffix, for file names."""
    sample = shown.source.partition(":")[2] if shown.source.startswith("sample:") else ""
    return sample or Path(shown.name).stem


def file_suffix(shown: Input) -> str:
    """Return the suffix for a result with all frames."""
    suffixes = export_suffixes(shown.kind, str(shown.first_frame.dtype))
    if shown.format == "dicom":
        return ".dcm"
    if shown.format == "gif" and shown.frame_count > 1:
        return ".gif"
    suffix = shown.path.suffix.lower() if shown.path is not None else ""
    return suffix if suffix in suffixes else suffixes[0]


def _allowed(stem: str) -> str:
    """Return a stem without the characters that names of exports must not have."""
    return "".join(c if c.isalnum() or c in " -_()+" else "-" for c in stem)[:80].strip(" -") or "picture"


def _job_options(chain: FilterChain, pipeline: Pipeline | None = None) -> dict[str, Any]:
    """Return what a job has to know about a chain, whose levels may be limited by ``pipeline``."""
    task = asdict(chain.task) if isinstance(chain.task, Denoising) else None
    text = (pipeline or chain.pipeline()).to_json()
    return {"pipeline": text, "extent": chain.extent, "over_time": chain.over_time, "task": task}


class ExportList:
    """The exports of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.exports: list[Export] = []
        self._turn = asyncio.Lock()
        self._waiting = asyncio.Semaphore(MAX_WAITING)

    @property
    def running(self) -> int:
        """Number of exports that have not ended."""
        return sum(not each.ended for each in self.exports)

    def find(self, number: int) -> Export | None:
        """Return the export with this number."""
        return next((each for each in self.exports if each.number == number), None)

    def kinds(self) -> dict[str, ExportKind]:
        """Return the kinds of export that are possible now."""
        session, shown = self._session, self._session.current
        kinds: dict[str, ExportKind] = {}
        if shown is not None:
            stem, dtype = _allowed(file_stem(shown)), str(shown.first_frame.dtype)
            frame = f" {session.number + 1}" if shown.frame_count > 1 else ""
            if shown.path is not None:
                suffixes = export_suffixes(shown.kind, dtype)
                if shown.format == "dicom" or (shown.format == "gif" and shown.frame_count > 1):
                    suffixes = (file_suffix(shown), *suffixes)
                titles = {"video": "The whole video", "picture": "The whole file, with its metadata"}
                title = titles.get(shown.kind, f"All {shown.position_name}s, as one file")
                kinds["whole"] = ExportKind(title, f"{stem} filtered{file_suffix(shown)}", suffixes)
                if shown.frame_count > 1:
                    title = f"Every {shown.position_name}, as images in a folder"
                    kinds["frames"] = ExportKind(title, f"{stem} {shown.position_name}s")
            suffixes = export_suffixes("picture", dtype)
            name = f"{stem} filtered{frame}{suffixes[0]}"
            kinds["picture"] = ExportKind("This result, as an image without metadata", name, suffixes)
            view = f"{stem} {session.view}{frame}.png"
            kinds["view"] = ExportKind("The current view", view, (".png", ".jpg", ".webp"))
        count = len(self._files())
        if count > 1:
            kinds["batch"] = ExportKind(f"All {count} open files, one by one", "")
        kinds["pipeline"] = ExportKind("The pipeline (JSON)", "pipeline.json", (".json",))
        return kinds

    def _files(self) -> list[Input]:
        return [each for each in self._session.inputs if each.path is not None]

    def start(self, kind: str, name: str, suffixes: tuple[str, ...], folder: Path) -> None:
        """Start an export; errors in its name are raised at once, all others are noted by it."""
        session, shown = self._session, self._session.current
        if kind == "batch":
            for each in self._files():
                self._start_file(each, f"{_allowed(file_stem(each))} filtered{file_suffix(each)}", (), folder)
            return
        if kind == "pipeline":
            name += "" if name.lower().endswith(".json") else ".json"
            pipeline = session.chain.pipeline()
            self._start(name, suffixes, folder, lambda export, path: asyncio.to_thread(pipeline.save, path))
            return
        assert shown is not None
        if kind in ("whole", "frames"):
            self._start_file(shown, name, suffixes, folder, kind == "frames")
            return
        render = self._picture() if kind == "picture" else self._view()

        async def write(export: Export, path: Path) -> None:
            await asyncio.to_thread(io.write, path, await render)

        try:
            self._start(name, suffixes, folder, write)
        except UndulaError:
            render.close()
            raise

    async def start_upload(self, path: Path, name: str, folder: Path) -> None:
        """Start the export of an uploaded file, which is removed afterwards; wait if there are too many."""
        await self._waiting.acquire()
        suffix = Path(name).suffix.lower()
        if suffix not in (*IMAGES, *VIDEOS):
            suffix = ".mkv" if suffix in READ_ONLY_VIDEOS else ".dcm" if suffix == "" else ".tif"
        options = _job_options(self._session.chain)

        async def run(export: Export, target: Path) -> None:
            try:
                await self._run_process(export, path, target, options, EXPORT_WORK_BYTES)
            finally:
                self._waiting.release()
                self._session.budget.discard(path.stat().st_size)
                path.unlink()

        self._start(f"{_allowed(Path(name).stem)} filtered{suffix}", (), folder, run)

    def _start_file(
        self, shown: Input, name: str, suffixes: tuple[str, ...], folder: Path, frames: bool = False
    ) -> None:
        chain, path = self._session.chain.fit_shape(shown.first_frame.shape), shown.path
        applied = chain.applied(shown.first_frame.shape, shown.extents)
        assert path is not None
        nbytes = EXPORT_WORK_BYTES + 2 * filter_memory(shown, applied)
        options = _job_options(self._session.chain, chain.pipeline())
        options |= {"protects": shown.protects, "command": command_words(applied)}

        async def run(export: Export, target: Path) -> None:
            await self._run_process(export, path, target, options, nbytes, frames)

        self._start(name, suffixes, folder, run)

    def _start(
        self,
        name: str,
        suffixes: tuple[str, ...],
        folder: Path,
        run: Callable[[Export, Path], Awaitable[None]],
    ) -> None:
        """Run an export in the background, after those that were started before."""
        folder.mkdir(parents=True, exist_ok=True)
        export_path(folder, name, suffixes)
        number = self.exports[-1].number + 1 if self.exports else 1
        export = Export(number, name)

        async def work() -> None:
            try:
                async with self._turn:
                    path = export_path(folder, name, suffixes)
                    await run(export, path)
                    export.path = path
            except asyncio.CancelledError:
                export.error = "cancelled"
                raise
            except (UndulaError, OSError, MemoryError) as error:
                export.error = " ".join(str(error).split()) or type(error).__name__

        export.task = asyncio.create_task(work())
        self.exports = [*self.exports, export][-MAX_LISTED:]

    async def _run_process(
        self,
        export: Export,
        source: Path,
        target: Path,
        options: dict[str, Any],
        nbytes: int,
        frames: bool = False,
    ) -> None:
        session = self._session
        limits, memory, backend = session.budget.limits, session.budget.memory, session.settings.backend
        # GPU drivers reserve more address space than there is memory, so they cannot be limited.
        address_space = limits.memory + EXPORT_EXTRA_BYTES if backend == "cpu" else 0
        options = {**options, "backend": backend, "frames": frames}
        job = ExportJob(str(source), str(target), pixels=limits.pixels, memory=address_space, **options)
        async with memory.lend(min(memory.total // 2, nbytes)):
            export.process = ExportProcess(job)
            await export.process.run(export.report)

    async def _picture(self) -> Any:
        return io.Picture((await self._session.current_view()).result.after)

    async def _view(self) -> Any:
        session = self._session
        layers = list((await session.current_view()).layers.values())
        if len(layers) == 1:
            return layers[0]
        if session.view == "side":
            return np.concatenate(layers, axis=1)
        half = layers[0].shape[1] // 2
        return np.concatenate([layers[0][:, :half], layers[1][:, half:]], axis=1)

    def close(self) -> None:
        """Cancel everything that runs."""
        for each in self.exports:
            if each.task is not None:
                each.task.cancel()
