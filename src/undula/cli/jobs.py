"""Files through a pipeline: one, many, folders, video, pipes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import io
from ..errors import ArgumentError, FileError, UndulaError
from ..io.files import IMAGES, VIDEOS, detect_kind, output_kind
from ..io.filtering import Encoding, Filter, filter_picture, filter_video
from .outputs import PIPE, check_outputs, identity
from .screen import explained, steps

__all__ = ["Job", "Options", "is_video", "jobs", "piped", "read_picture", "run_jobs"]

ADVICE = "name another output; the last path is the output, and several files go into a folder with --output"

DIRECTORY = "DICOMDIR"  # the list of all files of a DICOM medium, which lie in folders beside it


@dataclass(frozen=True)
class Options:
    """What commands that filter files have in common."""

    backend: str = "auto"
    max_pixels: int | None = None
    overwrite: bool = False
    quiet: bool = False
    encoding: Encoding = field(default_factory=Encoding)
    sigma: float | None = None


@dataclass(frozen=True)
class Job:
    """One file, and where its result goes."""

    source: Path
    target: Path


def is_video(path: Path) -> bool:
    """By what is in it; a camera is one, too."""
    if str(path).startswith("camera:"):
        return True
    return detect_kind(path) == "video"


def _suffix_for(path: Path) -> str:
    """Of a result that has no name: DICOM stays DICOM, and everything else becomes PNG."""
    return ".dcm" if path.is_file() and detect_kind(path) == "dicom" else ".png"


@contextmanager
def piped(source: str, target: str, suffix: str) -> Iterator[tuple[Path, Path]]:
    """Paths for both; of standard input and output, files that come and go.

    The suffix of standard output is what the input asks for, if none is given.
    """
    with tempfile.TemporaryDirectory(prefix="undula-") as folder:
        begin, end = Path(source), Path(target)
        if source == PIPE:
            begin = Path(folder) / "input"
            begin.write_bytes(sys.stdin.buffer.read())
        if target == PIPE:
            end = Path(folder) / f"output{suffix or _suffix_for(begin)}"
        try:
            yield begin, end
        except UndulaError as error:
            text = str(error)
            if source == PIPE:
                text = text.replace(str(begin), "standard input")
            error.args = (text,)
            raise
        if target == PIPE:
            try:
                sys.stdout.buffer.write(end.read_bytes())
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                raise
            except OSError as error:
                raise FileError(f"cannot write to standard output: {error.strerror or error}") from None


def jobs(paths: Sequence[str], output: str | None, recursive: bool = False) -> list[Job]:
    """Which files become which: INPUT OUTPUT, or many inputs and a folder."""
    if "" in (*paths, output):
        raise ArgumentError("a path is empty; name a file, a folder, or - for a pipe")
    if output is None:
        if len(paths) != 2:
            raise ArgumentError(
                "give an input and an output, or many inputs and a folder with --output; got"
                f" {len(paths)} path(s)"
            )
        paths, output = paths[:1], paths[1]
        if Path(output).is_dir() or Path(paths[0]).is_dir():
            return _into(paths, Path(output), recursive)
        return [Job(Path(paths[0]), Path(output))]
    folder = Path(output)
    if len(paths) == 1 and not Path(paths[0]).is_dir() and folder.suffix.lower() in {**IMAGES, **VIDEOS}:
        return [Job(Path(paths[0]), folder)]
    return _into(paths, folder, recursive)


def _into(paths: Sequence[str], folder: Path, recursive: bool) -> list[Job]:
    """Files, and those in folders, into a folder under their names."""
    if folder.suffix.lower() in {**IMAGES, **VIDEOS} and not folder.is_dir():
        raise ArgumentError(f"many results go to a folder, and {folder} looks like a file")
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"many results go to a folder, and {folder} is a file")
    found: list[Job] = []
    for path in map(Path, paths):
        if path.is_file() and path.name == DIRECTORY:
            path = path.parent
        if not path.is_dir():
            found.append(Job(path, folder / path.name))
            continue
        deep = recursive or (path / DIRECTORY).is_file()
        some = sorted(path.rglob("*") if deep else path.iterdir())
        known = [each for each in some if each.is_file() and _is_filtered(each)]
        if not known:
            more = (
                "" if deep or not any(each.is_dir() for each in some) else "; --recursive looks into folders"
            )
            raise FileError(f"{path} has no pictures or videos in it{more}")
        found += [Job(each, folder / each.relative_to(path)) for each in known]
    targets = [job.target for job in found]
    if len(set(targets)) < len(targets):
        twice = next(target for target in targets if targets.count(target) > 1)
        raise ArgumentError(f"two inputs have the same name and would both be written to {twice}")
    return found


def _is_filtered(path: Path) -> bool:
    """Whether a file in a folder is a picture or a video: by its suffix, and DICOM files by their content."""
    if path.suffix.lower() in {**IMAGES, **VIDEOS}:
        return True
    try:
        return path.name != DIRECTORY and detect_kind(path) == "dicom"
    except FileError:  # (empty, or not to be read)
        return False


def run_jobs(
    found: Sequence[Job], make: Callable[[bool], Filter], options: Options, collect: bool = False
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """All files through a filter, which ``make`` makes for pictures or for videos: results and errors.

    A file that cannot be filtered does not keep others from it, whatever is wrong with it. The error of a
    file that is alone is raised, unless errors are to be collected.
    """
    results: list[dict[str, Any]] = []
    errors: list[dict[str, str]] = []
    sources = {identity(job.source): job.source for job in found}
    with steps("files", len(found), options.quiet or len(found) < 2) as progress:
        for number, job in enumerate(found, 1):
            try:
                taken = sources.get(identity(job.target))
                inputs = [job.source] if taken is None else [job.source, taken]
                check_outputs(
                    job.target,
                    overwrite=options.overwrite,
                    inputs=inputs,
                    advice=ADVICE if len(found) == 1 else "name another folder",
                )
                results.append(run_job(job, make, options))
            except Exception as error:  # whatever a decoder, a filter or an encoder raises
                if len(found) == 1 and not collect:
                    raise
                errors.append({"input": str(job.source), "error": explained(error)})
            progress(number)
    return results, errors


def run_job(job: Job, make: Callable[[bool], Filter], options: Options) -> dict[str, Any]:
    """One file."""
    suffix = job.source.suffix.lower()
    with piped(str(job.source), str(job.target), suffix if suffix in IMAGES else "") as (source, target):
        if not str(source).startswith("camera:") and not source.exists():
            raise FileError(f"cannot read {source}: there is no such file")
        if source.is_dir():
            raise FileError(f"{source} is a folder, and so must the output be")
        if target.parent and not target.parent.exists():
            target.parent.mkdir(parents=True)
        if is_video(source):
            if str(job.target) == PIPE:
                raise FileError("a video is written to a file, and not to standard output")
            return _video(source, target, make(True), options)
        kind = detect_kind(source)
        if output_kind(target, kind or "", suffix) == "video" and kind is not None:
            raise FileError(f"{source} is a picture, and {target.name} would be a video")
        if options.encoding.over_time:
            raise ArgumentError(f"--over-time is for video, and {source} is none")
        return _picture(source, target, make(False), options)


def _picture(source: Path, target: Path, pipeline: Filter, options: Options) -> dict[str, Any]:
    with ExitStack() as shown:
        shape, pages = filter_picture(
            source,
            target,
            pipeline,
            sigma=options.sigma,
            backend=options.backend,
            max_pixels=options.max_pixels,
            begin=lambda pages: shown.enter_context(steps(source.name, pages, options.quiet)),
        )
    return {"input": str(source), "output": str(target), "shape": list(shape), "frames": pages}


def _video(source: Path, target: Path, pipeline: Filter, options: Options) -> dict[str, Any]:
    known = io.probe(source, options.max_pixels)
    total = min(known.frames, options.encoding.frames) if options.encoding.frames else known.frames
    with steps(source.name, total, options.quiet) as progress:
        frames = filter_video(
            source,
            target,
            pipeline,
            options.encoding,
            sigma=options.sigma,
            backend=options.backend,
            max_pixels=options.max_pixels,
            progress=progress,
        )
    return {
        "input": str(source),
        "output": str(target),
        "shape": [known.height, known.width],
        "frames": frames,
    }


def read_picture(path: str, max_pixels: int | None = None) -> io.Picture:
    """A picture from a file or from standard input."""
    with piped(path, "x", "") as (source, _):
        if not source.exists():
            raise FileError(f"cannot read {source}: there is no such file")
        return io.read(source, max_pixels)
