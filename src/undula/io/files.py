"""Files: what they are by their content, and how they are written so that nothing is ever half there."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import FileError, MissingExtraError, install_hint

__all__ = ["IMAGES", "LIMIT", "VIDEOS", "check_size", "kind_of", "needed", "same_file", "sniffed", "written"]

LIMIT = 100_000_000  # pixels that a file may claim to have, unless somebody says more
PIXEL = 8  # bytes that a pixel may have on average: red, green, blue and opacity of 16 bits, or a double

# Suffixes, by what reads and writes them.
IMAGES = {
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".tif": "tiff",
    ".tiff": "tiff",
    ".bmp": "bmp",
    ".gif": "gif",
    ".webp": "webp",
    ".jp2": "jpeg2000",
    ".j2k": "jpeg2000",
    ".npy": "npy",
    ".npz": "npz",
    ".dcm": "dicom",
    ".dicom": "dicom",
    ".ima": "dicom",
}
VIDEOS = {".mp4": "mp4", ".m4v": "mp4", ".mkv": "matroska", ".mov": "mov", ".avi": "avi", ".webm": "webm"}


def needed(module: str, extra: str = "app") -> Any:
    """A package that only some need, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"this needs the package {package!r}: {install_hint(extra)} ({error})"
        ) from None


def sniffed(path: Path) -> str | None:
    """What a file is by its first bytes; None if nobody knows."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    if not head:
        raise FileError(f"{path} is empty")
    if head[128:132] == b"DICM":  # (what comes before may look like a TIFF)
        return "dicom"
    starts = {
        b"\x89PNG\r\n\x1a\n": "png",
        b"\xff\xd8\xff": "jpeg",
        b"II*\0": "tiff",
        b"MM\0*": "tiff",
        b"II+\0": "tiff",
        b"MM\0+": "tiff",
        b"BM": "bmp",
        b"GIF8": "gif",
        b"\0\0\0\x0cjP  ": "jpeg2000",
        b"\xff\x4f\xff\x51": "jpeg2000",
        b"\x93NUMPY": "npy",
        b"PK\x03\x04": "npz",
        b"\x1aE\xdf\xa3": "video",
    }
    for start, kind in starts.items():
        if head.startswith(start):
            return kind
    if head[:4] == b"RIFF":
        return {b"WEBP": "webp", b"AVI ": "video"}.get(head[8:12])
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free"):
        return "video"
    return "dicom" if _bare_dicom(head) else None


def _bare_dicom(head: bytes) -> bool:
    """Whether it begins with two elements of group 8, in order, as datasets without a preamble do."""
    if len(head) < 8 or head[:2] != b"\x08\0":
        return False
    explicit = head[4:6].isalpha() and head[4:6].isupper()
    length = int.from_bytes(head[6:8] if explicit else head[4:8], "little")
    second = head[8 + length : 12 + length]
    return (
        len(second) == 4 and second[:2] == b"\x08\0" and second[2:] > head[2:4] and head[3] == second[3] == 0
    )


def kind_of(path: Path, source: str = "", suffix: str = "") -> str:
    """What a file that is to be written is, by its suffix.

    DICOM files often have none, or one that means nothing, such as the end of ``1.2.840.55``: what was made
    of one (``source`` is its kind) is DICOM again under such a name, or with the suffix that it had.
    """
    given, suffix = suffix.lower(), path.suffix.lower()
    if suffix in IMAGES:
        return IMAGES[suffix]
    if suffix in VIDEOS:
        return "video"
    if source == "dicom" and (suffix in ("", given) or suffix[1:].isdigit()):
        return "dicom"
    known = ", ".join([*IMAGES, *VIDEOS])
    raise FileError(f"cannot tell from {path.name!r} what to write; its suffix should be one of {known}")


def check_size(path: Path, pixels: int, limit: int | None, nbytes: int = 0) -> None:
    """An error for a file that claims to be larger than anybody expects, in pixels or in bytes of pixels."""
    most = LIMIT if limit is None else limit
    if pixels > most:
        raise FileError(
            f"{path} says that it has {pixels:,} pixels, and the limit is {most:,}; raise it (max_pixels,"
            " --max-pixels) if you trust the file"
        )
    if nbytes > PIXEL * most:
        raise FileError(
            f"{path} says that it has {nbytes:,} bytes of pixels, and the limit is {PIXEL * most:,}"
            f" ({PIXEL} for each of {most:,} pixels); raise it (max_pixels, --max-pixels) if you trust the"
            " file"
        )


def same_file(a: Path, b: Path) -> bool:
    """Whether two paths lead to one file."""
    try:
        return a.samefile(b)
    except OSError:
        return a.absolute() == b.absolute()


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A path beside another one, which it takes the place of when all is written; or nothing is left."""
    try:
        handle, name = tempfile.mkstemp(suffix=path.suffix, prefix=f".{path.stem[:40]}-", dir=path.parent)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from None
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        with suppress(OSError):  # (as others would have made it)
            mask = os.umask(0)
            os.umask(mask)
            beside.chmod(0o666 & ~mask)
        os.replace(beside, path)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            beside.unlink()
