"""Check the size that a file declares before anything is decoded.

    path ──headers──▶ pixels, bytes ──check_size──▶ the reader, or an error

A small file can declare, or decompress to, gigabytes. Sizes are therefore read from the headers here,
whichever library decodes the file afterwards. A malformed header is left to the decoder, which reports it.
"""

from __future__ import annotations

import lzma
import math
import mmap
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import FileError
from .files import check_size

Data = bytes | mmap.mmap

__all__ = [
    "MAX_METADATA_BYTES",
    "DeclaredSize",
    "check_arrays",
    "check_declared",
    "check_tiff",
    "codestream_size",
    "gif_end",
    "has_uuid_boxes",
    "inflates_beyond",
    "png_color_chunks",
]

MAX_METADATA_BYTES = 16 << 20  # Decompressed profiles, texts and other data besides pixels.
MAX_DEFLATE_RATIO = 1000  # Deflate compresses by little more than this at most.
MAX_INFLATE_CHUNK_BYTES = 1 << 20


class DeclaredSize(NamedTuple):
    """The size of an image; ``samples`` are those of one pixel."""

    width: int
    height: int
    samples: int = 1
    sample_bytes: int = 1
    frames: int = 1

    @property
    def pixels(self) -> int:
        """The number of pixels in all frames."""
        return self.width * self.height * self.frames

    @property
    def nbytes(self) -> int:
        """The number of bytes in all frames."""
        return self.pixels * self.samples * self.sample_bytes


def check_declared(path: Path, kind: str, max_pixels: int | None) -> None:
    """Raise an error if the header of a file declares more than is allowed."""
    if kind in ("npy", "npz"):
        check_arrays(path, kind, max_pixels)
        return
    if kind not in _HEADERS:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            size = _HEADERS[kind](data)
        except (struct.error, IndexError):
            return
        if size is not None:
            check_size(path, size.pixels, max_pixels, size.nbytes)
        if kind == "png":
            _check_png_texts(path, data)


# --- images ---------------------------------------------------------------------------------------


def _png_chunks(data: Data) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name, start and length of each chunk of a PNG."""
    offset = 8
    while offset + 8 <= len(data):
        (length,) = struct.unpack_from(">I", data, offset)
        yield data[offset + 4 : offset + 8], offset + 8, length
        offset += length + 12


def png_color_chunks(path: Path) -> list[tuple[bytes, bytes]]:
    """Return the chunks of a PNG that say what its colours mean, apart from a profile."""
    data, chunks = path.read_bytes(), []
    for name, offset, length in _png_chunks(data):
        if name == b"IDAT":
            break
        if name in (b"gAMA", b"cHRM", b"sRGB", b"cICP"):
            chunks.append((name, data[offset : offset + length]))
    return chunks


def _png(data: Data) -> DeclaredSize | None:
    width, height, depth, colors = struct.unpack_from(">IIBB", data, 16)
    samples = {0: 1, 2: 3, 3: 4, 4: 4, 6: 4}.get(colors, 4)  # Palettes and grey with alpha become RGBA.
    frames = 1
    for name, offset, length in _png_chunks(data):
        if name == b"acTL" and length >= 4:
            frames = max(1, struct.unpack_from(">I", data, offset)[0])
        if name == b"IDAT":
            break
    return DeclaredSize(width, height, samples, 2 if depth == 16 else 1, frames)


def _check_png_texts(path: Path, data: Data) -> None:
    """Raise an error if a compressed profile or text is too large; some decoders decompress all of them."""
    for name, offset, length in _png_chunks(data):
        if name in (b"iCCP", b"zTXt", b"iTXt") and length * MAX_DEFLATE_RATIO > MAX_METADATA_BYTES:
            start = data.find(b"\0", offset, offset + 80) + 2
            if inflates_beyond(data[start : offset + length], MAX_METADATA_BYTES):
                raise FileError(
                    f"{path} contains a profile or text that decompresses to more than"
                    f" {MAX_METADATA_BYTES:,} bytes"
                )


def _jpeg(data: Data) -> DeclaredSize | None:
    """Read the frame header of a JPEG or JPEG-LS codestream."""
    offset = 2
    while offset + 9 <= len(data):
        if data[offset] != 0xFF:
            offset += 1
            continue
        marker = data[offset + 1]
        if marker in (0xFF, 0x00, 0x01) or 0xD0 <= marker <= 0xD8:  # These have no length.
            offset += 1 if marker == 0xFF else 2
            continue
        (length,) = struct.unpack_from(">H", data, offset + 2)
        if (0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC)) or marker == 0xF7:
            depth, height, width, samples = struct.unpack_from(">BHHB", data, offset + 4)
            return DeclaredSize(width, height, samples, 1 if depth <= 8 else 2)
        if marker == 0xDA:
            return None
        offset += 2 + length
    return None


def _jpeg2000(data: Data) -> DeclaredSize | None:
    """Read the header of the codestream, which is decoded whatever the boxes around it declare."""
    offset = data.find(b"\xff\x4f\xff\x51")
    if offset < 0:
        return None
    x1, y1, x0, y0 = struct.unpack_from(">IIII", data, offset + 8)
    samples, depth = struct.unpack_from(">HB", data, offset + 40)
    return DeclaredSize(max(0, x1 - x0), max(0, y1 - y0), samples, 1 + ((depth & 0x7F) >= 8))


def has_uuid_boxes(path: Path) -> bool:
    """Return whether a JPEG 2000 file has boxes with metadata of other standards."""
    data, offset = path.read_bytes(), 0
    while offset + 8 <= len(data) and data.startswith(b"\0\0\0\x0cjP  "):
        length, name = struct.unpack_from(">I4s", data, offset)
        if name == b"uuid":
            return True
        if length < 8:  # Boxes of more than 4 GB, or the last one.
            break
        offset += length
    return False


def _gif(data: Data) -> DeclaredSize | None:
    return _gif_blocks(data)[0]


def gif_end(data: Data) -> int:
    """Return where the blocks of a GIF file end, and its trailer is; 0 if its header is damaged."""
    try:
        return _gif_blocks(data)[1]
    except (struct.error, IndexError):
        return 0


def _gif_blocks(data: Data) -> tuple[DeclaredSize, int]:
    """Read all frames, since they may extend beyond the logical screen, and return where they end."""
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    offset = 13 + (3 << (1 + (flags & 7)) if flags & 0x80 else 0)
    frames = 0
    while offset < len(data) and data[offset] in (0x21, 0x2C):
        if data[offset] == 0x2C:
            left, top, frame_width, frame_height, flags = struct.unpack_from("<HHHHB", data, offset + 1)
            width, height = max(width, left + frame_width), max(height, top + frame_height)
            frames += 1
            offset += 11 + (3 << (1 + (flags & 7)) if flags & 0x80 else 0)
        else:
            offset += 2
        while offset < len(data) and data[offset]:
            offset += 1 + data[offset]
        offset += 1
    return DeclaredSize(width, height, 4, 1, max(1, frames)), offset


def _bmp(data: Data) -> DeclaredSize | None:
    (size,) = struct.unpack_from("<I", data, 14)
    width, height = struct.unpack_from("<hh" if size == 12 else "<ii", data, 18)
    return DeclaredSize(abs(width), abs(height), 4)


def _webp(data: Data) -> DeclaredSize | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[24 + k : 27 + k], "little") + 1 for k in (0, 3))
        frames, offset = 0, 30
        while offset + 8 <= len(data):
            name, (length,) = data[offset : offset + 4], struct.unpack_from("<I", data, offset + 4)
            frames += name == b"ANMF"
            offset += 8 + length + length % 2
        return DeclaredSize(width, height, 4, 1, max(1, frames))
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return DeclaredSize((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1, 4)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return DeclaredSize(width & 0x3FFF, height & 0x3FFF, 3)
    return None


_HEADERS = {"png": _png, "jpeg": _jpeg, "jpeg2000": _jpeg2000, "gif": _gif, "bmp": _bmp, "webp": _webp}


def codestream_size(data: Data) -> DeclaredSize | None:
    """Read the size of a JPEG, JPEG-LS or JPEG 2000 frame; None for other data."""
    try:
        if data[:2] == b"\xff\xd8":
            return _jpeg(data)
        return _jpeg2000(data) if b"\xff\x4f\xff\x51" in data[:256] else None
    except (struct.error, IndexError):
        return None


def inflates_beyond(data: bytes, max_bytes: int, bits: int = zlib.MAX_WBITS) -> bool:
    """Return whether deflated data decompress to more than so many bytes; the result is discarded."""
    return _decompresses_beyond(zlib.decompressobj(bits), data, max_bytes)


def _decompresses_beyond(decompressor: Any, data: bytes, max_bytes: int) -> bool:
    total = 0
    try:
        while total <= max_bytes and not decompressor.eof:
            chunk = decompressor.decompress(data, MAX_INFLATE_CHUNK_BYTES)
            total += len(chunk)
            data = getattr(decompressor, "unconsumed_tail", b"")
            if not chunk and not data:
                break
    except (zlib.error, lzma.LZMAError, EOFError):  # Data that break off count as far as they go.
        pass
    return total > max_bytes


def check_tiff(path: Path, series: Any, max_pixels: int | None) -> None:
    """Raise an error if the pages, tiles or compressed segments of a TIFF are larger than allowed."""
    page = series.keyframe
    samples, total = int(page.samplesperpixel), math.prod(map(int, series.shape))
    sample_bytes = np.dtype(series.dtype).itemsize
    check_size(path, total // max(1, samples), max_pixels, total * sample_bytes)
    tile = int(page.tilewidth) * int(page.tilelength) * int(page.tiledepth) if page.is_tiled else 0
    check_size(path, tile, max_pixels, tile * samples * sample_bytes)
    segment = max(tile, int(page.imagewidth) * int(page.imagelength))
    limit = segment * samples * sample_bytes + MAX_METADATA_BYTES
    decompressors: dict[int, Any] = {
        8: zlib.decompressobj,
        32946: zlib.decompressobj,
        34925: lzma.LZMADecompressor,
    }
    decompressor = decompressors.get(int(page.compression))
    if decompressor is None:
        return
    with path.open("rb") as file:
        for page in filter(None, series.pages):
            for offset, nbytes in zip(page.dataoffsets, page.databytecounts, strict=False):
                if nbytes * MAX_DEFLATE_RATIO > limit or decompressor is lzma.LZMADecompressor:
                    file.seek(offset)
                    if _decompresses_beyond(decompressor(), file.read(nbytes), limit):
                        raise FileError(
                            f"{path} contains a segment that decompresses to more than {limit:,} bytes"
                        )


# --- arrays ---------------------------------------------------------------------------------------


def _array_sizes(path: Path, kind: str) -> list[tuple[int, int]]:
    """Return the number of elements and of bytes of each array in a file."""
    with path.open("rb") as file:
        if kind == "npy":
            return [_array_size(file)]
        sizes = []
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                try:
                    with archive.open(info) as member:
                        elements, nbytes = _array_size(member)
                except ValueError:  # A member that is not an array.
                    elements, nbytes = 1, 1
                sizes.append((elements, max(info.file_size, nbytes)))
        return sizes


def _array_size(file: Any) -> tuple[int, int]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    elements = math.prod(map(int, shape))
    return elements, elements * dtype.itemsize


def check_arrays(path: Path, kind: str, max_pixels: int | None) -> None:
    """Raise an error if an array, or all of them together, are larger than allowed."""
    try:
        sizes = _array_sizes(path, kind)
    except (ValueError, OSError, zipfile.BadZipFile, RuntimeError, zlib.error):
        return  # NumPy reports what is wrong when it loads the file.
    check_size(path, max((elements for elements, _ in sizes), default=0), max_pixels)
    check_size(path, 0, max_pixels, sum(nbytes for _, nbytes in sizes))
