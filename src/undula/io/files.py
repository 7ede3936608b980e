"""Detect the kind of a file by its content, and write files atomically."""

from __future__ import annotations

import importlib
import os
import re
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import NO_FILE, FileError, MissingExtraError, install_hint

__all__ = [
    "DEFAULT_MAX_PIXELS",
    "EXPORT_ADVICE",
    "IMAGES",
    "RAW_SUFFIXES",
    "READABLE_SUFFIXES",
    "READ_ONLY_VIDEOS",
    "VIDEOS",
    "Y4M_SIGNATURE",
    "OnlyWritable",
    "atomic_write",
    "check_size",
    "check_writable",
    "detect_kind",
    "import_optional",
    "output_kind",
    "pixel_limit",
    "same_file",
    "short_message",
]

DEFAULT_MAX_PIXELS = 100_000_000
"""How many pixels a file may declare unless ``max_pixels`` is given."""
BYTES_PER_PIXEL = 8  # Allowed on average: RGBA with 16 bits per channel, or one double.

IMAGES = {
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".tif": "tiff",
    ".tiff": "tiff",
    ".bmp": "bmp",
    ".gif": "gif",
    ".webp": "webp",
    ".avif": "avif",
    ".heic": "heif",
    ".heif": "heif",
    ".hif": "heif",
    ".jp2": "jpeg2000",
    ".j2k": "jpeg2000",
    ".npy": "npy",
    ".npz": "npz",
    ".dcm": "dicom",
    ".dicom": "dicom",
    ".ima": "dicom",
}
"""The formats of images by suffix."""
# Suffixes of raw photographs, which are read and never written.
RAW_SUFFIXES = frozenset(
    ".3fr .arw .cr2 .cr3 .dcr .dng .erf .iiq .kdc .mef .mos .mrw .nef .nrw .orf .pef .raf .rw2 .rwl .sr2 .srw"
    " .x3f".split()
)
VIDEOS = {
    ".mp4": "mp4",
    ".m4v": "mp4",
    ".mkv": "matroska",
    ".mov": "mov",
    ".avi": "avi",
    ".webm": "webm",
    ".ts": "mpegts",
    ".mts": "mpegts",
    ".m2ts": "mpegts",
    ".mpg": "vob",  # MPEG-2; FFmpeg's muxer "mpeg" writes MPEG-1.
    ".mpeg": "vob",
    ".mxf": "mxf",
    ".y4m": "yuv4mpegpipe",
}
"""The containers of video by suffix."""
# Suffixes of videos that are read and never written.
READ_ONLY_VIDEOS = frozenset(".wmv .asf .flv .f4v .ogv .vob .m2v .3gp .3g2 .nut".split())
READABLE_SUFFIXES = frozenset({*IMAGES, *RAW_SUFFIXES, *VIDEOS, *READ_ONLY_VIDEOS})
Y4M_SIGNATURE = b"YUV4MPEG2"
_IMAGE_BRANDS = {
    b"avif": "avif",
    b"avis": "avif",
    b"crx ": "raw",  # CR3 of Canon
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"), "heif"),
}
_RAW_SIGNATURES = (b"IIU\0", b"IIRO", b"IIRS", b"MMOR", b"FUJIFILMCCD-RAW", b"FOVb", b"\0MRM")
DNG_VERSION_TAG = 50706
# What to do where a format cannot store the samples of DICOM.
EXPORT_ADVICE = "; undula export writes DICOM as a screen shows it, as pictures or video"
_UMASK_LOCK = threading.Lock()


def import_optional(module: str, extra: str = "app") -> Any:
    """Import a module of an optional dependency; the error says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"this needs the package {package!r}: {install_hint(extra)} ({error})"
        ) from None


def detect_kind(path: Path) -> str | None:
    """Detect the kind of a file by its first bytes; None if it is unknown."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        if path.is_dir():
            raise FileError(f"cannot read {path}: it is a folder, and an image file is needed") from None
        raise FileError(f"cannot read {path}: {short_message(error)}") from None
    if not head:
        raise FileError(f"{path} is empty")
    if head[128:132] == b"DICM":  # Tested first, since the preamble may look like a TIFF header.
        return "dicom"
    if _is_raw(path, head):
        return "raw"
    signatures = {
        "png": (b"\x89PNG\r\n\x1a\n",),
        "jpeg": (b"\xff\xd8\xff",),
        "tiff": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
        "bmp": (b"BM",),
        "gif": (b"GIF8",),
        "jpeg2000": (b"\0\0\0\x0cjP  ", b"\xff\x4f\xff\x51"),
        "npy": (b"\x93NUMPY",),
        "npz": (b"PK\x03\x04",),
        # Matroska, Y4M, MPEG program and video streams, MXF, ASF (WMV), FLV, Ogg and NUT.
        "video": (
            b"\x1aE\xdf\xa3",
            Y4M_SIGNATURE,
            b"\0\0\x01\xba",
            b"\0\0\x01\xb3",
            b"\x06\x0e+4\x02\x05\x01\x01\r\x01\x02",
            b"0&\xb2u\x8ef\xcf\x11\xa6\xd9",
            b"FLV\x01",
            b"OggS",
            b"nut/multimedia container",
        ),
    }
    for kind, starts in signatures.items():
        if head.startswith(starts):
            return kind
    if head[:4] == b"RIFF":
        return {b"WEBP": "webp", b"AVI ": "video"}.get(head[8:12])
    if head[4:8] == b"ftyp":
        brands = re.findall(b"....", head[8 : int.from_bytes(head[:4], "big")], re.DOTALL)
        for brand, kind in _IMAGE_BRANDS.items():
            if brand in (*brands[:1], *(brands if brands[:1] == [b"mif1"] else ())):
                return kind
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free"):
        return "video"
    if _is_transport_stream(head):
        return "video"
    return "dicom" if _is_bare_dicom(head) else None


def _is_raw(path: Path, head: bytes) -> bool:
    """Return whether a file is a raw photograph.

    Most raw files are TIFF. DNG and CR2 say so; others are recognised by their suffix.
    """
    if head.startswith(_RAW_SIGNATURES) or (head[:2] == b"II" and head[8:10] == b"CR"):
        return True
    if len(head) < 8 or not head.startswith((b"II*\0", b"MM\0*")):
        return False
    if path.suffix.lower() in RAW_SUFFIXES:
        return True
    order = "<" if head[:2] == b"II" else ">"
    with path.open("rb") as file:
        file.seek(struct.unpack_from(f"{order}I", head, 4)[0])
        count = int.from_bytes(file.read(2), "little" if order == "<" else "big")
        entries = file.read(12 * count)
    tags = struct.iter_unpack(f"{order}H10x", entries[: len(entries) // 12 * 12])
    return any(tag == DNG_VERSION_TAG for (tag,) in tags)


def _is_transport_stream(head: bytes) -> bool:
    """Return whether packets of 188 bytes, or of 192 with a time in front, begin with their sync byte."""
    return any(head[start::size][:3] == b"GGG" for start, size in ((0, 188), (4, 192)))


def _is_bare_dicom(head: bytes) -> bool:
    """Return whether a file is DICOM without a preamble: it starts with two ascending elements of group 8."""
    if len(head) < 8 or head[:2] != b"\x08\0":
        return False
    explicit = head[4:6].isalpha() and head[4:6].isupper()
    length = int.from_bytes(head[6:8] if explicit else head[4:8], "little")
    second = head[8 + length : 12 + length]
    return (
        len(second) == 4 and second[:2] == b"\x08\0" and second[2:] > head[2:4] and head[3] == second[3] == 0
    )


def output_kind(path: Path, source_kind: str = "", source_suffix: str = "") -> str:
    """Determine from its suffix the kind of a file to be written.

    DICOM files often have no suffix, or a meaningless one such as the last part of ``1.2.840.55``. If the
    source is DICOM, a target without a suffix, with that of the source or with digits is DICOM as well.
    """
    suffix = path.suffix.lower()
    if suffix in IMAGES:
        return IMAGES[suffix]
    if suffix in VIDEOS:
        return "video"
    if source_kind == "dicom" and (suffix in ("", source_suffix.lower()) or suffix[1:].isdigit()):
        return "dicom"
    if suffix in RAW_SUFFIXES:
        raise FileError(f"raw files such as {path.name!r} are read, not written; write .tif, .png or .jpg")
    if suffix in READ_ONLY_VIDEOS:
        raise FileError(f"videos such as {path.name!r} are read, not written; write .mkv, .mp4 or .webm")
    known = ", ".join([*IMAGES, *VIDEOS])
    raise FileError(f"the suffix of {path.name!r} stands for no known format; use one of {known}")


def pixel_limit(max_pixels: int | None) -> int:
    """Return the limit on pixels, with its default."""
    return DEFAULT_MAX_PIXELS if max_pixels is None else max_pixels


def check_size(path: Path, pixels: int, max_pixels: int | None, nbytes: int = 0) -> None:
    """Raise an error if a file declares more pixels, or more bytes of pixels, than allowed."""
    limit = pixel_limit(max_pixels)
    advice = "raise it with max_pixels if you trust the file"
    if pixels > limit:
        raise FileError(f"{path} declares {pixels:,} pixels, and the limit is {limit:,}; {advice}")
    if nbytes > BYTES_PER_PIXEL * limit:
        raise FileError(
            f"{path} declares {nbytes:,} bytes of pixels, and the limit is {BYTES_PER_PIXEL * limit:,}"
            f" ({BYTES_PER_PIXEL} for each of {limit:,} pixels); {advice}"
        )


def short_message(error: BaseException) -> str:
    """Return the message of a decoder, an encoder or the operating system as one short line."""
    message = getattr(error, "strerror", None) or str(error)
    if isinstance(error, FileNotFoundError):
        message = NO_FILE
    if error.args and isinstance(error.args[0], bytes):  # as LibRaw has it
        message = error.args[0].decode(errors="replace")
    line = " ".join(str(message).partition("Traceback")[0].split()) or type(error).__name__
    return line if len(line) < 160 else line[:157] + "…"


def same_file(a: Path, b: Path) -> bool:
    """Return whether two paths refer to the same file."""
    try:
        return a.samefile(b)
    except OSError:
        return a.absolute() == b.absolute()


@contextmanager
def atomic_write(path: Path, keep_existing: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that replaces it on success and is removed on error.

    With ``keep_existing``, a file that another process has written to ``path`` in the meantime is kept.
    """
    try:
        # Both suffixes of .ome.tif, as writers look at them.
        suffix = "".join(path.suffixes[-2:]) if path.suffix.lower() in (".tif", ".tiff") else path.suffix
        handle, name = tempfile.mkstemp(suffix=suffix, prefix=f".{path.stem[:40]}-", dir=path.parent)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with suppress(OSError):  # mkstemp allows the owner alone; use the permissions of an ordinary file.
            temporary.chmod(0o666 & ~_umask())
        if not keep_existing or not _link(temporary, path):
            os.replace(temporary, path)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


class OnlyWritable:
    """A file object that can be written to, and neither closed nor read.

    NumPy writes to other files by a function of C, whose errors do not tell their cause.
    """

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        """Write all bytes, and return their number."""
        self._file.write(data)
        return len(data)


def check_writable(path: Path) -> None:
    """Raise an error if no file can be written beside ``path``."""
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from None


def _link(temporary: Path, path: Path) -> bool:
    """Make ``path`` a link to a file unless it exists; return False if there are no links, and no file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return True
    except OSError:  # Some file systems have no hard links.
        return path.exists()
    return True


def _umask() -> int:
    """Return the mask of permissions. It can be read only by setting it, one thread at a time."""
    with _UMASK_LOCK:
        mask = os.umask(0)
        os.umask(mask)
    return mask
