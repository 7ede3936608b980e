"""Whether a video file ends before the parts of its container do, by the sizes that these declare."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

__all__ = ["DECLARED_SIZES", "is_truncated"]

EBML_ID, SEGMENT_ID = b"\x1aE\xdf\xa3", b"\x18S\x80g"


def is_truncated(path: Path, container: str) -> bool:
    """Return whether a file is shorter than its container declares.

    Parameters
    ----------
    path : Path
    container : str
        FFmpeg's name of the demuxer, one of :data:`DECLARED_SIZES`.
    """
    with path.open("rb") as file:
        return DECLARED_SIZES[container](file) > path.stat().st_size


def _matroska_size(file: BinaryIO) -> int:
    """Return where the segment of a Matroska file ends; 0 if it declares no size, as live recordings."""
    for name in (EBML_ID, SEGMENT_ID):
        if file.read(4) != name:
            return 0
        first = file.read(1)
        length = 9 - int.from_bytes(first, "big").bit_length()
        size = int.from_bytes(first + file.read(length - 1), "big") - (1 << 7 * length)
        if name == EBML_ID:
            file.seek(size, 1)
    unknown = (1 << 7 * length) - 1
    return 0 if size == unknown else file.tell() + size


def _mov_size(file: BinaryIO) -> int:
    """Return where the last atom of an MP4 or MOV file ends, or one that is cut off."""
    end = 0
    while len(head := file.read(8)) == 8:
        size = int.from_bytes(head[:4], "big")
        if size == 1:
            size = int.from_bytes(file.read(8), "big")
        if size < 8:  # An atom of size 0 reaches to the end of the file.
            break
        end += size
        file.seek(end)
    return end


DECLARED_SIZES = {"matroska": _matroska_size, "mov": _mov_size}
