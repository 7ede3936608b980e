"""Finding files: which inputs become which outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, FileError
from ..io.dicom import without_image
from ..io.files import IMAGES, READABLE_SUFFIXES, detect_kind
from ..stores.partial import is_store
from .outputs import PIPE, ResultNames
from .zarr_stores import is_zarr

LEFT_OUT = "left out"
MAX_REASONS = 3  # That an error lists.
DICOMDIR = "DICOMDIR"  # The index of a DICOM medium, whose images are in folders next to it.


@dataclass(frozen=True)
class FileJob:
    """A file to filter, and the file to write."""

    source: Path
    target: Path
    piped_format: str = ""  # of standard output, without a dot; that of the input by default


@dataclass
class LeftOut:
    """What folders contain besides the files of a command, as entries of its report."""

    entries: list[dict[str, Any]] = field(default_factory=list)

    def add(self, path: Path, reason: str) -> None:
        """Note a file or folder."""
        self.entries.append({"input": str(path), "status": LEFT_OUT, "reason": reason})

    def lines(self) -> list[str]:
        """Return a line for each reason, with the first file that it applies to."""
        paths: dict[str, list[str]] = {}
        for entry in self.entries:
            paths.setdefault(entry["reason"], []).append(entry["input"])
        return [
            f"left out: {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {reason}"
            for reason, names in paths.items()
        ]


def input_kind(path: Path) -> str | None:
    """Return the kind of an input by its content, such as ``"png"``; a camera is a video."""
    return "video" if str(path).startswith("camera:") else detect_kind(path)


def find_jobs(
    paths: Sequence[str],
    output: str | None,
    recursive: bool = False,
    names: ResultNames | None = None,
    maps: bool = True,
    left_out: LeftOut | None = None,
) -> list[FileJob]:
    """List the files to filter.

    ``paths`` are an input and an output or, with ``output``, only inputs. All of them may be folders. If
    results are named after their inputs, a single path and several files are inputs, too, and the results are
    written beside them. Everything else in folders is added to ``left_out``; with ``maps``, DICOM images
    whose samples are quantities are filtered, too.
    """
    names, left_out = names or ResultNames(), left_out or LeftOut()
    if "" in (*paths, output):
        raise ArgumentError("a path is empty; name a file, a folder, or - for a pipe")
    if output is None:
        if names and (len(paths) != 2 or Path(paths[1]).is_file()):
            return _jobs_into_folder(paths, None, recursive, names, maps, left_out)
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
        return _jobs_into_folder(paths, Path(output), recursive, names, maps, left_out)
    if names.format and not names.suffix and output == PIPE:
        return [FileJob(Path(paths[0]), Path(PIPE), names.format)]
    if names:
        raise ArgumentError(
            f"--suffix and --format name results after their inputs, and {output} is named already; omit them"
        )
    return [FileJob(Path(paths[0]), Path(output))]


def _is_file_name(path: Path) -> bool:
    """Return whether the suffix of a path is that of an image, a video or a Zarr store."""
    return path.suffix.lower() in READABLE_SUFFIXES or is_zarr(path)


def _jobs_into_folder(
    paths: Sequence[str],
    folder: Path | None,
    recursive: bool,
    names: ResultNames,
    maps: bool,
    left_out: LeftOut,
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
        files = files_in(path, recursive, maps, left_out)
        if folder is None and names.suffix:  # Results of an earlier run are not filtered again.
            for file in files:
                if file.stem.endswith(names.suffix):
                    left_out.add(file, "a result of an earlier run")
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


def files_in(folder: Path, recursive: bool, maps: bool = True, left_out: LeftOut | None = None) -> list[Path]:
    """Return the images, videos and Zarr stores in a folder; an error if there are none."""
    is_deep = recursive or (folder / DICOMDIR).is_file()
    left_out = left_out or LeftOut()
    entries, files = sorted(_entries(folder, is_deep)), []
    for entry in entries:
        reason = _reason_to_leave_out(entry, is_deep, maps)
        if reason:
            left_out.add(entry, reason)
        elif is_store(entry) or not entry.is_dir():
            files.append(entry)
    if not files:
        has_folders = any(entry.is_dir() for entry in entries)
        hint = "; add --recursive to search its subfolders" if has_folders and not is_deep else ""
        others = "".join(f"; {line}" for line in left_out.lines()[:MAX_REASONS])
        raise FileError(f"{folder} contains no images or videos{hint}{others}")
    return files


def _entries(folder: Path, is_deep: bool) -> Iterator[Path]:
    """Yield what a folder contains, and with ``is_deep`` its subfolders, but not the parts of stores."""
    for entry in folder.iterdir():
        yield entry
        if is_deep and entry.is_dir() and not entry.is_symlink() and not is_store(entry):
            yield from _entries(entry, is_deep)


def _reason_to_leave_out(path: Path, is_deep: bool, maps: bool) -> str:
    """Say why something in a folder is not filtered; an empty text if it is, or if its contents are.

    Images and videos are recognised by their suffix, and DICOM images by their content.
    """
    if is_store(path):
        return ""
    if path.is_dir():
        if is_deep:
            return "a link to a folder" if path.is_symlink() else ""
        return "a folder, which --recursive searches"
    if not path.is_file():
        return "no file"
    suffix = path.suffix.lower()
    if suffix in READABLE_SUFFIXES and IMAGES.get(suffix) != "dicom":
        return ""
    try:
        if detect_kind(path) == "dicom":  # Studies have reports and other files without images besides.
            return without_image(path, maps)
    except FileError:  # The file is empty or cannot be read, which is reported if it should be an image.
        pass
    return "" if suffix in IMAGES else "no image or video by its name"
