"""Filtering files: which inputs become which outputs, and the work on each of them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import io
from ..errors import ArgumentError, FileError, UndulaError
from ..io.files import IMAGES, VIDEOS, detect_kind, output_kind
from ..io.filtering import Encoding, Filter, filter_picture, filter_video
from .outputs import PIPE, check_outputs, identity
from .screen import error_text, progress_bar

ADVICE = "name another output; the last path is the output, and several files go into a folder with --output"

DICOMDIR = "DICOMDIR"  # The index of a DICOM medium, whose images are in folders next to it.


@dataclass(frozen=True)
class FilterOptions:
    """Options shared by all commands that filter files."""

    backend: str
    max_pixels: int | None
    overwrite: bool
    quiet: bool
    encoding: Encoding
    sigma: float | None


@dataclass(frozen=True)
class FileJob:
    """A file to filter, and the file to write."""

    source: Path
    target: Path


def input_kind(path: Path) -> str | None:
    """Return the kind of an input by its content, such as ``"png"``; a camera is a video."""
    return "video" if str(path).startswith("camera:") else detect_kind(path)


@contextmanager
def input_path(source: str) -> Iterator[Path]:
    """Yield the path of an input; for standard input, that of a temporary file with its content."""
    if source != PIPE:
        yield Path(source)
        return
    with tempfile.TemporaryDirectory(prefix="undula-") as folder:
        path = Path(folder) / "input"
        path.write_bytes(sys.stdin.buffer.read())
        try:
            yield path
        except UndulaError as error:
            error.args = (str(error).replace(str(path), "standard input"),)
            raise


@contextmanager
def output_path(target: str, suffix: str) -> Iterator[Path]:
    """Yield the path of an output; for standard output, that of a temporary file with the given suffix."""
    if target != PIPE:
        yield Path(target)
        return
    with tempfile.TemporaryDirectory(prefix="undula-") as folder:
        path = Path(folder) / f"output{suffix}"
        yield path
        try:
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise FileError(f"cannot write to standard output: {error.strerror or error}") from None


def read_image(source: str, max_pixels: int | None = None, single_page: bool = False) -> io.Picture:
    """Read an image from a file or from standard input; with ``single_page``, refuse those with several."""
    with input_path(source) as path:
        image = io.read(path, max_pixels)
    if single_page and image.pages:
        raise FileError(f"{source} has {len(image.pixels)} pages, but this command takes a single image")
    return image


def find_jobs(paths: Sequence[str], output: str | None, recursive: bool = False) -> list[FileJob]:
    """List the files to filter.

    ``paths`` are an input and an output or, with ``output``, only inputs. All of them may be folders.
    """
    if "" in (*paths, output):
        raise ArgumentError("a path is empty; name a file, a folder, or - for a pipe")
    if output is None:
        if len(paths) != 2:
            raise ArgumentError(
                "expected an input and an output, or several inputs and a folder with --output; got"
                f" {len(paths)} path(s)"
            )
        paths, output = paths[:1], paths[1]
        is_folder = Path(output).is_dir()
    else:
        is_folder = output != "-" and Path(output).suffix.lower() not in {**IMAGES, **VIDEOS}
    if len(paths) > 1 or is_folder or Path(paths[0]).is_dir():
        return _jobs_into_folder(paths, Path(output), recursive)
    return [FileJob(Path(paths[0]), Path(output))]


def _jobs_into_folder(paths: Sequence[str], folder: Path, recursive: bool) -> list[FileJob]:
    """List files, and those in folders, with outputs of the same names in a folder."""
    if str(folder) == "-":
        raise ArgumentError("several results cannot be written to standard output; name a folder")
    if not folder.is_dir():
        if folder.suffix.lower() in {**IMAGES, **VIDEOS}:
            raise ArgumentError(f"several results need a folder, and {folder} looks like a file")
        if folder.exists():
            raise ArgumentError(f"several results need a folder, and {folder} is a file")
    jobs: list[FileJob] = []
    for path in map(Path, paths):
        if path.is_file() and path.name == DICOMDIR:
            path = path.parent
        if not path.is_dir():
            jobs.append(FileJob(path, folder / path.name))
            continue
        is_deep = recursive or (path / DICOMDIR).is_file()
        entries = sorted(path.rglob("*") if is_deep else path.iterdir())
        files = [entry for entry in entries if entry.is_file() and _can_filter(entry)]
        if not files:
            has_folders = any(entry.is_dir() for entry in entries)
            hint = "; add --recursive to search its subfolders" if has_folders and not is_deep else ""
            raise FileError(f"{path} contains no images or videos{hint}")
        jobs += [FileJob(file, folder / file.relative_to(path)) for file in files]
    targets = [job.target for job in jobs]
    if len(set(targets)) < len(targets):
        duplicate = next(target for target in targets if targets.count(target) > 1)
        raise ArgumentError(f"two inputs have the same name and would both be written to {duplicate}")
    return jobs


def _can_filter(path: Path) -> bool:
    """Return whether a file is an image or a video by its suffix, or a DICOM file by its content."""
    if path.suffix.lower() in {**IMAGES, **VIDEOS}:
        return True
    try:
        return path.name != DICOMDIR and detect_kind(path) == "dicom"
    except FileError:  # The file is empty or cannot be read.
        return False


def run_jobs(
    jobs: Sequence[FileJob],
    make_filter: Callable[[bool], Filter],
    options: FilterOptions,
    collect: bool = False,
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Filter files, and return an entry of the report for each result and for each error.

    If a file fails, the others are still filtered. The error of a single file is raised, unless ``collect``.
    ``make_filter`` returns the filter, given whether it is for video.
    """
    results: list[dict[str, Any]] = []
    errors: list[dict[str, str]] = []
    sources = {identity(job.source): job.source for job in jobs}
    advice = ADVICE if len(jobs) == 1 else "name another folder"
    with progress_bar("files", len(jobs), options.quiet or len(jobs) < 2) as progress:
        for number, job in enumerate(jobs, 1):
            # The output may be the input of another job.
            inputs = [job.source, sources.get(identity(job.target), job.source)]
            try:
                check_outputs(job.target, overwrite=options.overwrite, inputs=inputs, advice=advice)
                results.append(_run_job(job, make_filter, options))
            except Exception as error:  # Decoders, filters and encoders may raise anything.
                if len(jobs) == 1 and not collect:
                    raise
                errors.append({"input": str(job.source), "error": error_text(error)})
            progress(number)
    return results, errors


def _run_job(job: FileJob, make_filter: Callable[[bool], Filter], options: FilterOptions) -> dict[str, Any]:
    """Filter one file and return its entry in the report."""
    suffix = job.source.suffix.lower()
    shape: Sequence[int]
    common: Any = {"sigma": options.sigma, "backend": options.backend, "max_pixels": options.max_pixels}
    with ExitStack() as stack:
        source = stack.enter_context(input_path(str(job.source)))
        kind = input_kind(source)
        pipe_suffix = suffix if suffix in IMAGES else ".dcm" if kind == "dicom" else ".png"
        target = stack.enter_context(output_path(str(job.target), pipe_suffix))

        def start_progress(total: int) -> Any:
            return stack.enter_context(progress_bar(source.name, total, options.quiet))

        if kind == "video":
            if str(job.target) == PIPE:
                raise FileError("a video cannot be written to standard output; name a file")
            target.parent.mkdir(parents=True, exist_ok=True)
            video, count = io.probe(source, options.max_pixels), options.encoding.frames
            progress = start_progress(min(video.frames, count) if count else video.frames)
            pipeline = make_filter(True)
            frames = filter_video(source, target, pipeline, options.encoding, progress=progress, **common)
            shape = (video.height, video.width)
        else:
            if kind is not None and output_kind(target, kind, suffix) == "video":
                raise FileError(f"{source} is an image and cannot be written as a video, {target.name}")
            if options.encoding.over_time:
                raise ArgumentError(f"--over-time applies to video only; {source} is an image")
            target.parent.mkdir(parents=True, exist_ok=True)
            shape, frames = filter_picture(source, target, make_filter(False), begin=start_progress, **common)
    return {"input": str(job.source), "output": str(job.target), "shape": list(shape), "frames": frames}
