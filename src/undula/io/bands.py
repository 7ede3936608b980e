"""Images in bands of rows, for files that are too large to be read at once.

    file ──series_bands──▶ (page, first row, rows) …      PixelBands ──tiles, encoded_strips──▶ file

Reading decodes the strips or tiles of a few rows at a time. Writing asks :class:`PixelBands` for a few rows
of a page at a time, in the order of the file.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.threads import get_num_threads
from .files import import_optional

__all__ = ["ArrayBands", "PixelBands", "ReducedBands", "encoded_strips", "series_bands", "tiles"]

Array = NDArray[Any]

STRIP_BYTES = 1 << 18
BAND_ROWS = 512  # Rows that are written together, unless tiles are larger.
READ_BYTES = 1 << 25  # Compressed bytes that are read ahead of the decoder.


class PixelBands(ABC):
    """Pages of pixels that are read a few rows at a time.

    Parameters
    ----------
    shape : tuple of int
        ``(pages, rows, columns)``, with one more axis for several samples.
    dtype : dtype
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)

    @abstractmethod
    def band(self, page: int, start: int, stop: int) -> Array:
        """Return some rows of a page."""


class ArrayBands(PixelBands):
    """Bands of an array in memory, whose first axis counts pages."""

    def __init__(self, pixels: Array) -> None:
        super().__init__(pixels.shape, pixels.dtype)
        self.pixels = pixels

    def band(self, page: int, start: int, stop: int) -> Array:
        """Return some rows of a page."""
        return self.pixels[page, start:stop]


class ReducedBands(PixelBands):
    """Pages that are smaller by whole factors: each pixel is the mean of a block.

    Parameters
    ----------
    bands : PixelBands
    size : (int, int)
        Rows and columns of the result; blocks that reach beyond the image repeat its last row and column.

    Examples
    --------
    >>> image = np.array([[[1, 3, 9], [5, 7, 11]]], np.uint8)
    >>> ReducedBands(ArrayBands(image), (1, 2)).band(0, 0, 1)
    array([[ 4, 10]], dtype=uint8)
    """

    def __init__(self, bands: PixelBands, size: tuple[int, int]) -> None:
        super().__init__((bands.shape[0], *size, *bands.shape[3:]), bands.dtype)
        self.bands = bands
        self.factors = tuple(max(1, -(-n // m)) for n, m in zip(bands.shape[1:3], size, strict=True))

    def band(self, page: int, start: int, stop: int) -> Array:
        """Return some rows of a page."""
        down, across = self.factors
        height, width = self.bands.shape[1:3]
        parts = []
        rows = max(1, BAND_ROWS // down)
        for first in range(start, stop, rows):
            last = min(stop, first + rows)
            given = self.bands.band(page, min(first * down, height - 1), min(last * down, height))
            missing = [((last - first) * down - len(given)), self.shape[2] * across - width]
            edges = [(0, max(0, n)) for n in missing] + [(0, 0)] * (given.ndim - 2)
            given = np.pad(given, edges, mode="edge")[:, : self.shape[2] * across]
            blocks = given.reshape(last - first, down, self.shape[2], across, *given.shape[2:])
            means = blocks.mean(axis=(1, 3), dtype=np.float64 if given.itemsize > 2 else np.float32)
            parts.append((means if given.dtype.kind == "f" else np.rint(means)).astype(given.dtype))
        return np.concatenate(parts)


# --- reading --------------------------------------------------------------------------------------


def series_bands(path: Path, rows: int) -> Iterator[tuple[int, int, Array]]:
    """Yield the rows of all pages of a TIFF file: the number of the page, the first row, and the rows.

    Bands have about so many rows: a multiple of the rows of a strip or tile. Samples of a pixel are together.
    """
    with import_optional("tifffile").TiffFile(path) as file:
        series = file.series[0]
        page = series.keyframe
        shape = page.shaped[2:] if page.samplesperpixel > 1 else page.shaped[2:4]
        dtype = np.dtype(page.dtype).newbyteorder("=")
        stored = dtype.newbyteorder(file.byteorder)
        row_bytes = prod(shape[1:]) * stored.itemsize
        count = prod(series.shape) // prod(shape)
        segment_rows = int(page.tilelength if page.is_tiled else min(page.rowsperstrip, shape[0]))
        for number in range(count):
            offset = series.dataoffset
            if offset is not None:
                offset += number * shape[0] * row_bytes
            elif series.pages[number] is not None and page.is_memmappable:
                offset = series.pages[number].dataoffsets[0]
            if offset is None:
                unit = -(-rows // segment_rows) * segment_rows
                yield from _decoded_bands(series.pages[number], number, shape, dtype, unit, page.nodata)
                continue
            for start in range(0, shape[0], rows):
                stop = min(shape[0], start + rows)
                values = file.filehandle.read_array(
                    stored, (stop - start) * prod(shape[1:]), offset + start * row_bytes
                )
                yield number, start, values.reshape(stop - start, *shape[1:]).astype(dtype, copy=False)


def _decoded_bands(
    page: Any, number: int, shape: tuple[int, ...], dtype: Any, rows: int, missing: Any
) -> Iterator[tuple[int, int, Array]]:
    """Yield the rows of a page of strips or tiles, which are decoded in the order of the image."""
    height = shape[0]
    band = np.full((min(rows, height), *shape[1:]), missing, dtype)
    first = 0
    segments = () if page is None else page.segments(maxworkers=get_num_threads(), buffersize=READ_BYTES)
    for segment, (_, _, top, left, _), (_, length, width, _) in segments:
        while top >= first + rows:
            yield number, first, band
            first += rows
            band = np.full((min(rows, height - first), *shape[1:]), missing, dtype)
        if segment is not None:  # Tiles at the edges reach beyond the image.
            part = band[top - first : top - first + length, left : left + width]
            part[...] = segment[0, : part.shape[0], : part.shape[1]].reshape(part.shape)
    while first < height:
        yield number, first, band
        first += rows
        band = np.full((max(0, min(rows, height - first)), *shape[1:]), missing, dtype)


# --- writing --------------------------------------------------------------------------------------


def tiles(bands: PixelBands, tile: tuple[int, int]) -> Iterator[Array]:
    """Yield the tiles of all pages, row by row; those at the edges are filled up with zeros."""
    pages, height, width = bands.shape[:3]
    length, across = tile
    rows = max(1, BAND_ROWS // length) * length
    for page in range(pages):
        for first in range(0, height, rows):
            band = bands.band(page, first, min(height, first + rows))
            for top in range(0, len(band), length):
                for left in range(0, width, across):
                    values = band[top : top + length, left : left + across]
                    full = np.zeros((length, across, *values.shape[2:]), values.dtype)
                    full[: values.shape[0], : values.shape[1]] = values
                    yield full


def encoded_strips(bands: PixelBands, compression: str | None) -> tuple[int, Iterator[bytes]]:
    """Return the number of rows of a strip, and an iterator over the bytes of all strips."""
    pages, height = bands.shape[:2]
    row_bytes = max(1, prod(bands.shape[2:]) * bands.dtype.itemsize)
    rows = max(1, min(height, STRIP_BYTES // row_bytes))

    def encoded() -> Iterator[bytes]:
        at_once = max(1, BAND_ROWS // rows) * rows
        with ThreadPoolExecutor(get_num_threads(), "undula-strips") as pool:
            for page in range(pages):
                for first in range(0, height, at_once):
                    band = bands.band(page, first, min(height, first + at_once))
                    strips = (band[top : top + rows].tobytes() for top in range(0, len(band), rows))
                    yield from pool.map(zlib.compress, strips) if compression else strips

    return rows, encoded()
