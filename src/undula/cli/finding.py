"""Finding files: which inputs become which outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ArgumentError, FileError
from ..io.dicom import has_image
from ..io.files import IMAGES, RAW_SUFFIXES, VIDEOS, detect_kind
from ..stores.partial import is_store
from .outputs import PIPE, ResultNames
from .zarr_stores import is_zarr

DICOMDIR = "DICOMDIR"  # The index of a DICOM medium, whose images are in folders next to it.


@dataclass(frozen=True)
class FileJob:
    """A file to filter, and the file to write."""

    source: Path
    target: Path


def input_kind(path: Path) -> str | None:
    """Return the kind of an input by its content, such as ``"png"``; a camera is a video."""
    return "video" if str(path).startswith("camera:") else detect_kind(path)


def find_jobs(
    paths: Sequence[str], output: str | None, recursive: bool = False, names: ResultNames | None = None
) -> list[FileJob]:
    """List the files to filter.

    ``paths`` are an input and an output or, with ``output``, only inputs. All of them may be folders. If
    results are named after their inputs, a single path and several files are inputs, too, and the results are
    written beside them.
    """
    names = names or ResultNames()
    if "" in (*paths, output):
        raise ArgumentError("a path is empty; name a file, a folder, or - for a pipe")
    if output is None:
        if names and (len(paths) != 2 or Path(paths[1]).is_file()):
            return _jobs_into_folder(paths, None, recursive, names)
        if len(paths) != 2:
            raise ArgumentError(
                "expected an input and an output, or several inputs and a folder with --output, or inputs and"
                f" --suffix; got {len(paths)} path(s)"
            )
        paths, output = paths[:1], paths[1]
        is_folder = (Path(output).is_dir() or output.endswith("/")) and not is_zarr(output)
    else:
        is_folder = output != "-" and not _is_file_name(Path(output))
    is_study = Path(paths[0]).is_dir() or Path(paths[0]).name == DICOMDIR
    if len(paths) > 1 or is_folder or (is_study and not is_zarr(paths[0])):
        return _jobs_into_folder(paths, Path(output), recursive, names)
    if names:
        raise ArgumentError(
            f"--suffix and --format name results after their inputs, and {output} is named already; omit them"
        )
    return [FileJob(Path(paths[0]), Path(output))]


def _is_file_name(path: Path) -> bool:
    """Return whether the suffix of a path is that of an image, a video or a Zarr store."""
    return path.suffix.lower() in {*IMAGES, *VIDEOS, *RAW_SUFFIXES} or is_zarr(path)


def _jobs_into_folder(
    paths: Sequence[str], folder: Path | None, recursive: bool, names: ResultNames
) -> list[FileJob]:
    """List files, and those in folders, with outputs in a folder; without one, beside their inputs."""
    if folder is None:
        if PIPE in paths:
            raise ArgumentError("the result of standard input has no name; name the output")
    elif str(folder) == PIPE:
        raise ArgumentError("several results cannot be written to standard output; name a folder")
    elif not folder.is_dir():
        if _is_file_name(folder):
            raise ArgumentError(f"several results need a folder, and {folder} looks like a file")
        if folder.exists():
            raise ArgumentError(f"several results need a folder, and {folder} is a file")
    jobs: list[FileJob] = []
    for path in map(Path, paths):
        if path.is_file() and path.name == DICOMDIR:
            path = path.parent
        if not path.is_dir() or is_zarr(path):
            jobs.append(FileJob(path, (folder or path.parent) / names.of(path)))
            continue
        files = files_in(path, recursive)
        if folder is None and names.suffix:  # Results of an earlier run are not filtered again.
            files = [file for file in files if not file.stem.endswith(names.suffix)]
        jobs += [
            FileJob(file, ((folder or path) / file.relative_to(path)).with_name(names.of(file)))
            for file in files
        ]
    if folder is None and names.suffix:
        # Patterns such as *.jpg also match the results of an earlier run.
        results = {job.target for job in jobs}
        jobs = [job for job in jobs if job.source not in results]
    targets = [job.target for job in jobs]
    if len(set(targets)) < len(targets):
        duplicate = next(target for target in targets if targets.count(target) > 1)
        first, second = [str(job.source) for job in jobs if job.target == duplicate][:2]
        if first == second:
            raise ArgumentError(f"{first} was given twice")
        raise ArgumentError(
            f"{first} and {second} would both be written to {duplicate}; filter them one after the other,"
            " with another folder or suffix (--output, --suffix)"
        )
    return jobs


def files_in(folder: Path, recursive: bool) -> list[Path]:
    """Return the images, videos and Zarr stores in a folder; an error if there are none."""
    is_deep = recursive or (folder / DICOMDIR).is_file()
    entries = sorted(_entries(folder, is_deep))
    files = [entry for entry in entries if is_store(entry) or (entry.is_file() and _can_filter(entry))]
    if not files:
        has_folders = any(entry.is_dir() for entry in entries)
        hint = "; add --recursive to search its subfolders" if has_folders and not is_deep else ""
        raise FileError(f"{folder} contains no images or videos{hint}")
    return files


def _entries(folder: Path, is_deep: bool) -> Iterator[Path]:
    """Yield what a folder contains, and with ``is_deep`` its subfolders, but not the parts of stores."""
    for entry in folder.iterdir():
        yield entry
        if is_deep and entry.is_dir() and not entry.is_symlink() and not is_store(entry):
            yield from _entries(entry, is_deep)


def _can_filter(path: Path) -> bool:
    """Return whether a file is an image or a video by its suffix, or a DICOM image by its content."""
    suffix = path.suffix.lower()
    if suffix in {*IMAGES, *VIDEOS, *RAW_SUFFIXES} and IMAGES.get(suffix) != "dicom":
        return True
    try:
        # Studies have reports and other files without images besides.
        return has_image(path) if detect_kind(path) == "dicom" else suffix in IMAGES
    except FileError:  # The file is empty or cannot be read, which is reported if it should be an image.
        return suffix in IMAGES
