"""What files say of their size, before anything is decoded.

    path ──headers──▶ pixels, bytes ──check_size──▶ the reader, or an error

A file of few bytes can claim, or unpack to, gigabytes. Sizes are taken from headers here, whoever decodes the
file afterwards; a header that is not understood is left to the decoder, which says what is wrong with it.
"""

from __future__ import annotations

import lzma
import math
import mmap
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import FileError
from .files import check_size

Data = bytes | mmap.mmap

__all__ = [
    "ELSE",
    "Declared",
    "check_arrays",
    "check_declared",
    "check_tiff",
    "codestream_size",
    "inflates_beyond",
]

ELSE = 16 << 20  # bytes that profiles, texts and other things besides pixels may unpack to
RATIO = 1000  # deflate makes no more than so many bytes of one


class Declared(NamedTuple):
    """The size of a picture: samples of a pixel, and bytes of a sample."""

    width: int
    height: int
    samples: int = 1
    each: int = 1
    frames: int = 1

    @property
    def pixels(self) -> int:
        """Of all frames."""
        return self.width * self.height * self.frames


def check_declared(path: Path, kind: str, max_pixels: int | None) -> None:
    """An error for a file whose header tells of more than is allowed."""
    if kind in ("npy", "npz"):
        check_arrays(path, kind, max_pixels)
        return
    if kind not in _HEADERS:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            found = _HEADERS[kind](data)
        except (struct.error, IndexError):
            return
        if found is not None:
            check_size(path, found.pixels, max_pixels, found.pixels * found.samples * found.each)
        if kind == "png":
            _check_texts(path, data)


# --- pictures -------------------------------------------------------------------------------------


def _chunks(data: Data) -> Any:
    """Names and contents of the parts of a PNG."""
    place = 8
    while place + 8 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        yield data[place + 4 : place + 8], place + 8, length
        place += length + 12


def _png(data: Data) -> Declared | None:
    width, height, depth, colors = struct.unpack_from(">IIBB", data, 16)
    samples = {0: 1, 2: 3, 3: 4, 4: 4, 6: 4}.get(colors, 4)  # (palettes and grey with opacity become RGBA)
    frames = 1
    for name, place, length in _chunks(data):
        if name == b"acTL" and length >= 4:
            frames = max(1, struct.unpack_from(">I", data, place)[0])
        if name == b"IDAT":
            break
    return Declared(width, height, samples, 2 if depth == 16 else 1, frames)


def _check_texts(path: Path, data: Data) -> None:
    """Profiles and texts are compressed, and some decoders unpack all of them."""
    for name, place, length in _chunks(data):
        if name in (b"iCCP", b"zTXt", b"iTXt") and length * RATIO > ELSE:
            start = data.find(b"\0", place, place + 80) + 2
            if inflates_beyond(data[start : place + length], ELSE):
                raise FileError(f"{path} has a profile or text of more than {ELSE:,} bytes in it, unpacked")


def _jpeg(data: Data) -> Declared | None:
    """The frame of a JPEG or JPEG-LS codestream."""
    place = 2
    while place + 9 <= len(data):
        if data[place] != 0xFF:
            place += 1
            continue
        marker = data[place + 1]
        if marker in (0xFF, 0x00, 0x01) or 0xD0 <= marker <= 0xD8:  # (these have no length)
            place += 1 if marker == 0xFF else 2
            continue
        (length,) = struct.unpack_from(">H", data, place + 2)
        if (0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC)) or marker == 0xF7:
            depth, height, width, samples = struct.unpack_from(">BHHB", data, place + 4)
            return Declared(width, height, samples, 1 if depth <= 8 else 2)
        if marker == 0xDA:
            return None
        place += 2 + length
    return None


def _jpeg2000(data: Data) -> Declared | None:
    """The codestream of a JPEG 2000 file, which may say something else than the boxes around it."""
    place = data.find(b"\xff\x4f\xff\x51")
    if place < 0:
        return None
    x1, y1, x0, y0 = struct.unpack_from(">IIII", data, place + 8)
    samples, depth = struct.unpack_from(">HB", data, place + 40)
    each = 1 + ((depth & 0x7F) >= 8)
    return Declared(max(0, x1 - x0), max(0, y1 - y0), samples, each)


def _gif(data: Data) -> Declared | None:
    """Frames may reach beyond the screen that they are shown on."""
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    place = 13 + (3 << (1 + (flags & 7)) if flags & 0x80 else 0)
    frames = 0
    while place < len(data) and data[place] in (0x21, 0x2C):
        if data[place] == 0x2C:
            left, top, wide, high, flags = struct.unpack_from("<HHHHB", data, place + 1)
            width, height, frames = max(width, left + wide), max(height, top + high), frames + 1
            place += 11 + (3 << (1 + (flags & 7)) if flags & 0x80 else 0)
        else:
            place += 2
        while place < len(data) and data[place]:
            place += 1 + data[place]
        place += 1
    return Declared(width, height, 4, 1, max(1, frames))


def _bmp(data: Data) -> Declared | None:
    (size,) = struct.unpack_from("<I", data, 14)
    width, height = struct.unpack_from("<hh" if size == 12 else "<ii", data, 18)
    return Declared(abs(width), abs(height), 4)


def _webp(data: Data) -> Declared | None:
    kind = data[12:16]
    if kind == b"VP8X":
        parts = [int.from_bytes(data[24 + k : 27 + k], "little") + 1 for k in (0, 3)]
        frames, place = 0, 30
        while place + 8 <= len(data):
            name, (length,) = data[place : place + 4], struct.unpack_from("<I", data, place + 4)
            frames += name == b"ANMF"
            place += 8 + length + length % 2
        return Declared(parts[0], parts[1], 4, 1, max(1, frames))
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return Declared((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1, 4)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return Declared(width & 0x3FFF, height & 0x3FFF, 3)
    return None


_HEADERS = {"png": _png, "jpeg": _jpeg, "jpeg2000": _jpeg2000, "gif": _gif, "bmp": _bmp, "webp": _webp}


def codestream_size(data: Data) -> Declared | None:
    """The size of a compressed frame: JPEG, JPEG-LS or JPEG 2000; None if it is none of them."""
    try:
        if data[:2] == b"\xff\xd8":
            return _jpeg(data)
        return _jpeg2000(data) if b"\xff\x4f\xff\x51" in data[:256] else None
    except (struct.error, IndexError):
        return None


def inflates_beyond(data: bytes, most: int, bits: int = zlib.MAX_WBITS) -> bool:
    """Whether deflated data unpack to more bytes; nothing of them is kept."""
    return _unpacks_beyond(zlib.decompressobj(bits), data, most)


def _unpacks_beyond(unpacker: Any, data: bytes, most: int) -> bool:
    total, rest = 0, data
    try:
        while total <= most and not unpacker.eof:
            part = unpacker.decompress(rest, 1 << 20)
            total += len(part)
            rest = getattr(unpacker, "unconsumed_tail", b"")
            if not part and not rest:
                break
    except (zlib.error, lzma.LZMAError, EOFError):  # (as far as it goes)
        pass
    return total > most


def check_tiff(path: Path, series: Any, max_pixels: int | None) -> None:
    """An error for pages, tiles or compressed parts of a TIFF that are larger than allowed."""
    page = series.keyframe
    each = np.dtype(series.dtype).itemsize
    pixels = math.prod(map(int, series.shape)) // max(1, int(page.samplesperpixel))
    check_size(path, pixels, max_pixels, math.prod(map(int, series.shape)) * each)
    tile = int(page.tilewidth) * int(page.tilelength) * int(page.tiledepth) if page.is_tiled else 0
    check_size(path, tile, max_pixels, tile * int(page.samplesperpixel) * each)
    part = max(tile, int(page.imagewidth) * int(page.imagelength)) * int(page.samplesperpixel) * each + ELSE
    makers: dict[int, Any] = {8: zlib.decompressobj, 32946: zlib.decompressobj, 34925: lzma.LZMADecompressor}
    maker = makers.get(int(page.compression))
    if maker is None:
        return
    with path.open("rb") as file:
        for page in series.pages:
            if page is None:
                continue
            for offset, count in zip(page.dataoffsets, page.databytecounts, strict=False):
                if count * RATIO > part or maker is lzma.LZMADecompressor:
                    file.seek(offset)
                    if _unpacks_beyond(maker(), file.read(count), part):
                        raise FileError(f"{path} has a part in it that unpacks to more than it should")


# --- arrays ---------------------------------------------------------------------------------------


def _array_sizes(path: Path, kind: str) -> dict[str, tuple[tuple[int, ...], np.dtype[Any], int]]:
    """Shapes, dtypes and bytes of the arrays in a file, by name."""
    if kind == "npy":
        with path.open("rb") as file:
            shape, dtype = _array_header(file)
        return {"": (shape, dtype, math.prod(shape) * dtype.itemsize)}
    found = {}
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            try:
                with archive.open(info) as member:
                    shape, dtype = _array_header(member)
            except ValueError:  # (something else among the arrays)
                shape, dtype = (), np.dtype("u1")
            size = max(info.file_size, math.prod(shape) * dtype.itemsize)
            found[info.filename.removesuffix(".npy")] = (shape, dtype, size)
    return found


def _array_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return tuple(map(int, shape)), dtype


def check_arrays(path: Path, kind: str, max_pixels: int | None) -> None:
    """An error for arrays that are larger than allowed, each and together."""
    try:
        sizes = _array_sizes(path, kind)
    except (ValueError, OSError, zipfile.BadZipFile, RuntimeError, zlib.error):
        return  # (NumPy says what is wrong)
    check_size(path, max((math.prod(s[0]) for s in sizes.values()), default=0), max_pixels)
    check_size(path, 0, max_pixels, sum(s[2] for s in sizes.values()))
