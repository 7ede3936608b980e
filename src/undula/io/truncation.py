"""Whether a file ends before its parts do, by the sizes and offsets that these declare.

Decoders of videos, TIFF and GIF take the end of such a file for the end of its frames or pages.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import FileError
from .limits import gif_end

__all__ = ["DECLARED_SIZES", "check_complete", "is_index_truncated", "is_truncated", "lacks_index"]

EBML_ID, SEGMENT_ID = b"\x1aE\xdf\xa3", b"\x18S\x80g"
NUT_INDEX, NUT_SYNCPOINT = b"NX\xdd\x67\x2f\x23\xe6\x4e", b"NK\xe4\xad\xee\xca\x45\x69"
ASF_DATA = bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")
OGG_LAST_PAGE = 4  # A flag of pages.
TIFF_SEGMENTS = {273: 279, 324: 325}  # Tags: where strips or tiles are, and how many bytes each has.
TIFF_DIRECTORIES = (330, 34665, 34853)  # Tags that refer to directories: SubIFDs, EXIF, GPS.
TIFF_NUMBERS = {1: "u1", 3: "u2", 4: "u4", 13: "u4", 16: "u8", 18: "u8"}  # By the type of a tag.
TIFF_TYPE_BYTES = np.array([0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8, 0])
MAX_OFFSET = (1 << 32) - 1  # Of classic TIFF: larger files of some microscopes have offsets modulo 2^32.


def is_truncated(path: Path, container: str) -> bool:
    """Return whether a file is shorter than its container declares.

    Parameters
    ----------
    path : Path
    container : str
        ``"tiff"``, ``"gif"`` or FFmpeg's name of the demuxer, one of :data:`DECLARED_SIZES`.
    """
    with path.open("rb") as file:
        return DECLARED_SIZES[container](file) > path.stat().st_size


def check_complete(path: Path, kind: str | None) -> None:
    """Raise an error if a TIFF or GIF file ends before its pages do."""
    if kind in ("tiff", "gif") and is_truncated(path, kind):
        raise FileError(
            f"{path} ends before the pages or metadata that it declares: it is cut off or damaged; fetch it"
            " again"
        )


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


def _mov_atoms(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield the names of the atoms of an MP4 or MOV file, and where they end."""
    end = 0
    while len(head := file.read(8)) == 8:
        size = int.from_bytes(head[:4], "big")
        if size == 1:
            size = int.from_bytes(file.read(8), "big")
        if size < 8:  # An atom of size 0 reaches to the end of the file.
            break
        end += size
        yield head[4:], end
        file.seek(end)


def _mov_size(file: BinaryIO) -> int:
    """Return where the last atom of an MP4 or MOV file ends, or one that is cut off."""
    return max((end for _, end in _mov_atoms(file)), default=0)


def lacks_index(path: Path) -> bool:
    """Return whether an MP4 or MOV file has no index of its frames, as one that was not completed."""
    with path.open("rb") as file:
        if file.read(8)[4:] not in (b"ftyp", b"mdat", b"wide", b"free"):
            return False
        file.seek(0)
        return all(name != b"moov" or end > path.stat().st_size for name, end in _mov_atoms(file))


def is_index_truncated(path: Path) -> bool:
    """Return whether an MP4 or MOV file ends within the index of its frames."""
    size = path.stat().st_size
    with path.open("rb") as file:
        return any(name == b"moov" and end > size for name, end in _mov_atoms(file))


def _avi_size(file: BinaryIO) -> int:
    """Return where the last list of frames in an AVI file ends; the index after it can be missing."""
    end = 0
    while (head := file.read(12))[:4] == b"RIFF" and len(head) == 12:
        stop = file.tell() - 4 + int.from_bytes(head[4:8], "little")
        while file.tell() < stop and len(head := file.read(8)) == 8:
            size, start = int.from_bytes(head[4:], "little"), file.tell()
            if head[:4] == b"LIST" and file.read(4) == b"movi":
                end = start + size
                break
            file.seek(start + size + size % 2)
        file.seek(stop + stop % 2)
    return end


def _flv_size(file: BinaryIO) -> int:
    """Return where the last tag of an FLV file ends, or one that is cut off."""
    end = file.seek(int.from_bytes(file.read(9)[5:], "big"))
    while len(head := file.read(15)) == 15:  # The size of the tag before, and the header of a tag.
        end = file.seek(int.from_bytes(head[5:8], "big"), 1)
    return end


def _asf_size(file: BinaryIO) -> int:
    """Return where the packets of an ASF file, such as WMV, end; the index after them can be missing."""
    end = 0
    while len(head := file.read(24)) == 24:
        size = int.from_bytes(head[16:], "little")
        end += size
        if head.startswith(ASF_DATA) or not 24 <= size < MAX_OFFSET:
            break
        file.seek(end)
    return end


def _ogg_size(file: BinaryIO) -> int:
    """Return where the last page of an Ogg file ends; beyond the file if a stream has no last page."""
    end, open_streams = 0, set[bytes]()
    while (head := file.read(27))[:4] == b"OggS" and len(head) == 27:
        (open_streams.discard if head[5] & OGG_LAST_PAGE else open_streams.add)(head[14:18])
        end = file.seek(sum(file.read(head[26])), 1)
    return end + bool(open_streams)


def _mxf_size(file: BinaryIO) -> int:
    """Return where the footer of an MXF file begins; 0 if the header does not tell."""
    head = file.read(64)
    length_bytes = 1 + (head[16] & 0x7F if head[16] & 0x80 else 0)
    footer = 16 + length_bytes + 24
    return int.from_bytes(head[footer : footer + 8], "big") + 1


def _nut_size(file: BinaryIO) -> int:
    """Return where a NUT file ends; beyond it if its index, which comes last, is missing.

    Streams without points to seek to have no index.
    """
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        size = len(data)
        index = size - int.from_bytes(data[-12:-4], "big")  # Before the checksum: the size of the index.
        has_index = 0 <= index and data[index : index + len(NUT_INDEX)] == NUT_INDEX
        return size + (not has_index and data.find(NUT_SYNCPOINT) >= 0)


def _gif_size(file: BinaryIO) -> int:
    """Return where the trailer of a GIF file ends."""
    return gif_end(file.read()) + 1


def _tiff_size(file: BinaryIO) -> int:
    """Return the greatest end of the directories of a TIFF file, of the values of their tags, and of pixels.

    0 if the header is damaged, which the decoder reports.
    """
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        order, is_big = "<" if data[:2] == b"II" else ">", data[2:4] in (b"+\0", b"\0+")
        if len(data) < 16 or (len(data) > MAX_OFFSET and not is_big):
            return 0
        word, count_word = (
            np.dtype(f"{order}u{8 if is_big else 4}"),
            np.dtype(f"{order}u{8 if is_big else 2}"),
        )
        entry = np.dtype([("tag", f"{order}u2"), ("type", f"{order}u2"), ("count", word), ("value", word)])

        def number(offset: int, dtype: np.dtype[Any]) -> int:
            return int(np.frombuffer(data[offset : offset + dtype.itemsize], dtype)[0])

        def numbers(tag: int) -> np.ndarray[Any, np.dtype[np.float64]]:
            """Return the values of a tag of the current directory, as far as the file has them."""
            for index in np.flatnonzero(entries["tag"] == tag):
                dtype = np.dtype(order + TIFF_NUMBERS.get(int(entries["type"][index]), "u1"))
                place = start + (int(index) + 1) * entry.itemsize - word.itemsize
                place = int(entries["value"][index]) if is_outside[index] else place
                values = data[place : place + int(nbytes[index])]
                return np.frombuffer(values, dtype, len(values) // dtype.itemsize).astype(np.float64)
            return np.empty(0)

        end, waiting, known = 0.0, [number(word.itemsize, word)], {0}
        while waiting:
            offset = waiting.pop()
            if offset in known:
                continue
            known.add(offset)
            start = offset + count_word.itemsize
            if start > len(data):
                return start
            stop = start + number(offset, count_word) * entry.itemsize
            if stop + word.itemsize > len(data):
                return stop + word.itemsize
            entries = np.frombuffer(data[start:stop], entry)
            # Damaged counts may exceed the range of integers.
            nbytes = TIFF_TYPE_BYTES[np.minimum(entries["type"], len(TIFF_TYPE_BYTES) - 1)] * entries[
                "count"
            ].astype(float)
            is_outside = nbytes > word.itemsize
            end = max(end, (entries["value"] + nbytes)[is_outside].max(initial=0.0))
            waiting += [number(stop, word), *(int(n) for tag in TIFF_DIRECTORIES for n in numbers(tag))]
            for tag, count_tag in TIFF_SEGMENTS.items():
                offsets, counts = numbers(tag), numbers(count_tag)
                last = min(len(offsets), len(counts))
                end = max(end, (offsets[:last] + counts[:last])[counts[:last] > 0].max(initial=0.0))
        return int(end)


DECLARED_SIZES = {
    "asf": _asf_size,
    "avi": _avi_size,
    "flv": _flv_size,
    "gif": _gif_size,
    "matroska": _matroska_size,
    "mov": _mov_size,
    "mxf": _mxf_size,
    "nut": _nut_size,
    "ogg": _ogg_size,
    "tiff": _tiff_size,
}
