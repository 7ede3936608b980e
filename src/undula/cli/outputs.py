"""The names of results, and the protection of existing files.

No command replaces a file unless ``--overwrite`` is given. Commands check all their outputs before they start
to work, so that an error changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ..errors import NO_FILE, ArgumentError, FileError, UnknownNameError
from ..io.files import (
    IMAGES,
    RAW_SUFFIXES,
    READ_ONLY_VIDEOS,
    READABLE_SUFFIXES,
    VIDEOS,
    detect_kind,
    output_kind,
)

PIPE = "-"  # Standard input or output.
Identity = tuple[int, int] | str
_KIND_NAMES = {"npy": "NumPy", "npz": "NumPy", "jpeg2000": "JPEG 2000", "webp": "WebP", "video": "video"}


@dataclass(frozen=True)
class ResultNames:
    """How results are named after their inputs: a text added to the name, and another format.

    Examples
    --------
    >>> names = ResultNames("-clean", "jpg")
    >>> names.of(Path("a.NEF")), names.of(Path("a.mp4")), names.of(Path("1.2.840"))
    ('a-clean.jpg', 'a-clean.mp4', '1.2.840-clean.jpg')
    >>> ResultNames().of(Path("a.NEF"))
    'a.tif'
    """

    suffix: str = ""
    format: str = ""

    def __post_init__(self) -> None:
        if self.format and f".{self.format}" not in {**IMAGES, **VIDEOS}:
            raise UnknownNameError("format", self.format, tuple(name[1:] for name in (*IMAGES, *VIDEOS)))
        if any(separator in self.suffix for separator in (os.sep, os.altsep) if separator):
            raise ArgumentError(f"--suffix is added to the names of files, got a path: {self.suffix!r}")

    @classmethod
    def from_options(cls, suffix: str | None, format_: str | None) -> ResultNames:
        """Accept a format with or without its dot, in any case."""
        return cls(suffix or "", (format_ or "").lower().removeprefix("."))

    def __bool__(self) -> bool:
        return bool(self.suffix or self.format)

    def of(self, source: Path) -> str:
        """Return the name of the result of an input.

        A format of images does not change that of videos. What cannot be written is replaced: raw files
        become TIFF, and videos such as WMV become Matroska, which stores all their streams. Files with
        unknown suffixes are named by their content.
        """
        stem, extension = source.stem, source.suffix.lower()
        kind = "video" if extension in {*VIDEOS, *READ_ONLY_VIDEOS} else extension
        if extension not in {*READABLE_SUFFIXES, ".zarr"}:
            kind = _kind_of_content(source)
            if kind in ("", "dicom"):  # DICOM files have any name.
                stem, extension = source.name, ""
            else:
                extension = next((suffix for suffix, name in IMAGES.items() if name == kind), extension)
        else:
            extension = source.suffix
        if self.format and kind != ".zarr" and (kind == "video") == (f".{self.format}" in VIDEOS):
            extension = f".{self.format}"
        elif kind == "video" and extension.lower() not in VIDEOS:
            extension = ".mkv"
        elif kind == "raw" or extension.lower() in RAW_SUFFIXES:
            extension = ".tif"
        return f"{stem}{self.suffix}{extension}"


def piped_suffix(kind: str | None, format_: str = "") -> str:
    """Return the suffix of an image on standard output: of the format that is asked for, or of its kind.

    Examples
    --------
    >>> piped_suffix("jpeg"), piped_suffix("jpeg", "webp"), piped_suffix("raw")
    ('.jpg', '.webp', '.tif')
    """
    if format_:
        return f".{format_}"
    suffixes = {"raw": ".tif"} | {name: suffix for suffix, name in reversed(IMAGES.items())}
    return suffixes.get(kind or "", ".png")


def _kind_of_content(path: Path) -> str:
    """Return the kind of a file; an empty text if it is unknown or cannot be read."""
    try:
        return detect_kind(path) or ""
    except FileError:  # What is wrong is reported when it is filtered.
        return ""


def identity(path: str | Path) -> Identity:
    """Return a key that is equal for two paths if and only if they lead to the same file."""
    try:
        status = os.stat(path)
    except OSError:
        return os.path.abspath(path)
    return status.st_dev, status.st_ino


@contextmanager
def without_empty_folders(folders: Iterable[Path]) -> Iterator[None]:
    """Remove folders that are made meanwhile and stay empty, as after an error."""
    missing = {each for folder in folders for each in (folder, *folder.parents) if not each.exists()}
    try:
        yield
    finally:
        for folder in sorted(missing, key=lambda path: len(path.parts), reverse=True):
            with suppress(OSError):  # Those that are not empty stay.
                folder.rmdir()


def check_exists(source: str | Path) -> None:
    """Raise an error if an input is a file that does not exist."""
    text = str(source)
    if text != PIPE and not text.startswith("camera:") and "://" not in text and not os.path.exists(text):
        raise FileError(f"cannot read {source}: {NO_FILE}")


def check_outputs(
    *outputs: str | Path | None,
    overwrite: bool,
    inputs: Iterable[str | Path] = (),
    advice: str = "name another output",
) -> None:
    """Raise an error if an output exists, is a folder or an input, or is named twice.

    Parameters
    ----------
    *outputs : path or None
        Files that the command is going to write. None and standard output are ignored.
    overwrite : bool
        Whether existing files may be replaced. Inputs, folders and other outputs never are.
    inputs : iterable of paths, optional
        Files that the command reads. If one is missing, the error is that, and not what exists.
    advice : str, optional
        What the user can do instead of overwriting, for the error message.
    """
    inputs = list(inputs)
    input_keys = {identity(path) for path in inputs if str(path) != PIPE}
    output_keys: set[Identity] = set()
    for output in outputs:
        if output is None or str(output) == PIPE:
            continue
        path, key = Path(output), identity(output)
        if key in input_keys:
            raise FileError(f"{path} is an input and cannot be replaced; name another output")
        if key in output_keys:
            raise FileError(f"{path} is named for two outputs; name another file for one of them")
        if path.is_dir():
            raise FileError(f"cannot write {path}: it is a folder; name a file in it")
        above = next((folder for folder in path.parents if folder.exists()), None)
        if above is not None and not above.is_dir():
            raise FileError(f"cannot write {path}: {above} is not a folder")
        if os.path.lexists(path) and not overwrite:
            for source in inputs:
                check_exists(source)
            raise FileError(
                f"{path} exists ({_describe(path)}) and would be lost; add --overwrite (-y) to replace it,"
                f" or {advice}"
            )
        output_keys.add(key)


def check_drawing(flag: str, path: Path | None) -> None:
    """Raise an error if a picture that a command draws is named like a video or a DICOM file."""
    if path is not None and output_kind(path) in ("video", "dicom"):
        raise ArgumentError(f"{flag} is written as an image, got {path.name}")


def _describe(path: Path) -> str:
    """Describe an existing file by its kind, size and date."""
    if path.is_symlink():
        return f"a link to {os.readlink(path)}"
    status = path.stat()
    try:
        kind = detect_kind(path)
    except FileError:  # The file is empty or cannot be read.
        kind = None
    name = f"{_KIND_NAMES.get(kind, kind.upper())} file" if kind else "file"
    date = datetime.fromtimestamp(status.st_mtime).strftime("%Y-%m-%d %H:%M")
    return f"a {name} of {status.st_size:,} bytes, modified on {date}"
