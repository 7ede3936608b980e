"""Image files that are filtered in blocks, because they are too large for memory or become a store.

    file ──import_picture──▶ store ──apply──▶ store ──▶ file

The first store is temporary, and so is the second one unless it is the output. TIFF is read and written in
bands of rows. Other files are decoded and encoded at once.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.memory import keep_at_most
from ..errors import ArgumentError, FileError, UndulaError
from ..io.bands import PixelBands
from ..io.files import (
    DEFAULT_MAX_PIXELS,
    atomic_write,
    detect_kind,
    import_optional,
    output_kind,
)
from ..io.foreign import foreign_code
from ..io.picture import RGB, Picture
from ..io.raster import png_bands, read, read_header, write
from ..io.stack import OME_AXES, StackLayout
from ..io.tiff import read_tiff_bands, write_tiff_bands
from .filtering import apply
from .opening import import_zarr
from .pyramid_stages import image_attributes
from .running import ThreadRunner
from .work import Progress

__all__ = ["filter_in_blocks", "filter_stack", "imported_image", "joined_chunks", "large_picture"]

Array = NDArray[Any]
Shape = tuple[int, ...]
Bands = Iterator[tuple[int, int, Array]]

LARGE_ITEM_SAMPLES = 1 << 25  # Filtering takes about a hundred bytes for each sample of a page or volume.
LARGE_BYTES = 1 << 30  # All pages together.
PIXELS_PER_BYTE = 16  # A file that has fewer pixels for each of its bytes is no decompression bomb.
BLOCK_SAMPLES = 1 << 20  # With windows around them, blocks take about 150 MB each while they are filtered.
BLOCKS_AT_ONCE = 3
KEPT_BYTES = 1 << 28  # Memory that is kept from one block to the next, and by Dask from one pass to the next.
LENGTH_UNIT = 64  # Lengths of blocks are multiples of it.
ARRAY_NAME = "0"  # The array of an image of OME-Zarr.


def large_picture(path: Path, axes: str | None = None, over: str | None = None) -> Picture | None:
    """Return the header of a file that is to be filtered in blocks; None if it fits into memory."""
    if detect_kind(path) not in ("tiff", "png"):
        return None
    header = read_header(path)
    if header is None or header.channels not in (("grey",), RGB):
        return None
    if axes is not None:
        header = header.with_axes(axes)
    samples = math.prod(StackLayout.of(header.stack_axes, over or "YX").item_shape) * len(header.channels)
    is_large = samples > LARGE_ITEM_SAMPLES or header.pixels.nbytes > LARGE_BYTES
    return header if is_large else None


def filter_in_blocks(
    source: Path,
    target: Path,
    header: Picture,
    work: Callable[..., Any],
    *,
    sigma: float | None = None,
    backend: str = "auto",
    max_pixels: int | None = None,
    over: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Filter a large image file into another one, with the numbers of the filter of the whole image.

    Parameters
    ----------
    source, target : Path
    header : Picture
        As :func:`large_picture` returns it.
    work : callable
        A :class:`undula.Pipeline`, or a function such as :func:`undula.denoise`.
    sigma, backend
        Arguments of ``work``.
    max_pixels : int, optional
        As for :func:`undula.io.read`. By default, TIFF files may have more pixels if they have the bytes.
    over : str, optional
        The axes that are filtered together, by default rows and columns.
    progress : callable, optional
        Called with the number of blocks that are done, and the number of all blocks.
    """
    kind = output_kind(target, header.kind)
    layout = StackLayout.of(header.stack_axes, over or "YX")
    color = None if header.channel_axis is None else len(layout.axes.shape)
    options = {"sigma": sigma, "backend": backend, "channel_axis": color}
    samples = header.pixels.shape[2 + header.pages :]
    blocks = (*_block_lengths(layout, len(header.channels)), *samples)
    nothing = import_optional("dask.array", "scale").zeros(
        (*layout.axes.shape, *samples), header.pixels.dtype
    )
    filter_stack(nothing, work, layout, options)  # An error in options is raised before any work is done.
    with _scratch(target) as folder, keep_at_most(KEPT_BYTES):
        stored, result = folder / "source.zarr", folder / "result.zarr"
        _import(source, header, stored, blocks, max_pixels)
        apply(
            stored,
            result,
            lambda x: filter_stack(x, work, layout, options),
            blocks=blocks,
            progress=progress,
            runner=ThreadRunner(BLOCKS_AT_ONCE),
        )
        array = import_zarr().open_array(str(result), mode="r")
        if kind == "tiff":
            with atomic_write(target) as temporary:
                write_tiff_bands(temporary, header, _StoredBands(array, header))
        else:
            write(target, header.with_pixels(array[...].reshape(header.pixels.shape)))


def filter_stack(x: Any, work: Callable[..., Any], layout: StackLayout, options: dict[str, Any]) -> Any:
    """Filter a Dask array of a stack, item by item; short axes are extended as in memory."""
    dask, da = import_optional("dask", "scale"), import_optional("dask.array", "scale")
    margins = [(0, 0)] * x.ndim
    for place, margin in zip(layout.places, layout.margins, strict=True):
        margins[place] = margin
    is_dropped = dict(zip(layout.places, layout.is_dropped, strict=True))
    axes = tuple(place for place in layout.places if not is_dropped[place])
    inner = tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, margins, strict=True))
    if any(map(any, margins)):
        extended = [axis for axis, margin in enumerate(margins) if any(margin)]
        x = da.pad(x, margins, mode="reflect").rechunk(dict.fromkeys(extended, -1))
    with dask.config.set({"undula.kept-bytes": KEPT_BYTES}):
        return work(x, **{"channel_axis": None, **options, "axes": axes})[inner]


@contextmanager
def imported_image(
    source: Path,
    target: Path,
    axes: str | None = None,
    over: str | None = None,
    max_pixels: int | None = None,
) -> Iterator[Path]:
    """Yield a temporary image of OME-Zarr beside a target, with the pixels, axes and channels of a file.

    ``axes`` and ``over`` are the names of its axes and those that are filtered together.
    """
    header = read_header(source) if detect_kind(source) == "tiff" else None
    picture = header if header is not None else read(source, max_pixels)
    if axes is not None:
        picture = picture.with_axes(axes)
    stack = picture.stack_axes
    if not set(stack.names) <= set(OME_AXES):
        raise ArgumentError(
            f"OME-Zarr has the axes T, C, Z, Y and X, and those of {source} are {stack.description()}; name"
            " them with axes='ZYX' of a filter"
        )
    if picture.channel_axis is not None and "C" in stack.names:
        raise ArgumentError(f"{source} has channels and pixels of several samples, which OME-Zarr has not")
    layout = StackLayout.of(stack, over or "YX")
    blocks = (*_block_lengths(layout, 1), *picture.pixels.shape[2 + picture.pages :])
    with _scratch(target) as folder, keep_at_most(KEPT_BYTES):
        _import(source, picture, folder / target.name, blocks, max_pixels, as_image=True)
        yield folder / target.name


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """Yield a temporary folder beside a target."""
    try:
        folder = tempfile.TemporaryDirectory(prefix=f".{target.stem[:40]}-", dir=target.parent)
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror or error}") from None
    with folder as name:
        yield Path(name)


def _block_lengths(layout: StackLayout, samples: int) -> Shape:
    """Return the lengths of blocks along the axes of a stack: items, or parts of large ones.

    Several items in one block would be filtered together, with sums in another order.
    """
    shape, places = layout.axes.shape, layout.places
    lengths = [length if axis in places else 1 for axis, length in enumerate(shape)]
    limit = BLOCK_SAMPLES // samples
    while math.prod(lengths) > limit and max(lengths) > LENGTH_UNIT:
        axis = max(places, key=lambda axis: lengths[axis])
        lengths[axis] = -(-lengths[axis] // 2 // LENGTH_UNIT) * LENGTH_UNIT
    return tuple(lengths)


def joined_chunks(layout: StackLayout, chunks: Shape) -> Shape:
    """Return the lengths of blocks that consist of chunks, which are joined along the axes of items."""
    lengths = list(chunks)
    for axis in layout.places:
        fitting = BLOCK_SAMPLES // math.prod(lengths)
        lengths[axis] = min(layout.axes.shape[axis], lengths[axis] * max(1, fitting))
    return tuple(lengths)


# --- stores ---------------------------------------------------------------------------------------


def _import(
    source: Path,
    picture: Picture,
    location: Path,
    blocks: Shape,
    max_pixels: int | None,
    as_image: bool = False,
) -> None:
    """Write the pixels of a file to a new store.

    Parameters
    ----------
    source : Path
    picture : Picture
        The picture, or its header.
    location : Path
    blocks : tuple of int
        Lengths of blocks; chunks are as long along rows and columns.
    max_pixels : int or None
    as_image : bool
        Whether to write an image of OME-Zarr, with the axes in its order and colours as channels.
    """
    stack, samples = picture.stack_axes, picture.pixels.shape[2 + picture.pages :]
    names, shape = stack.names, (*stack.shape, *samples)
    chunks = [1] * len(shape)
    chunks[len(names) - 2 :] = blocks[len(names) - 2 :]
    order = list(range(len(shape)))
    if as_image:
        names += "C" * len(samples)
        order.sort(key=lambda axis: OME_AXES.index(names[axis]))
    options: dict[str, Any] = {
        "shape": tuple(shape[axis] for axis in order),
        "chunks": tuple(chunks[axis] for axis in order),
        "dtype": picture.pixels.dtype,
    }
    zarr = import_zarr()
    try:
        with foreign_code(f"cannot read {source}", OSError):
            if as_image:
                group = zarr.create_group(
                    str(location), attributes={"ome": _ome(picture, names, order, location)}
                )
                letters = [names[axis].lower() for axis in order]
                array = group.create_array(ARRAY_NAME, dimension_names=letters, **options)
            else:
                array = zarr.create_array(str(location), compressors=None, **options)
            for page, start, rows in _bands(source, picture, blocks[len(stack.shape) - 2], max_pixels):
                place = [*map(int, np.unravel_index(page, stack.shape[:-2])), slice(start, start + len(rows))]
                index = [*place, *[slice(None)] * (len(shape) - len(place))]
                array[tuple(index[axis] for axis in order)] = rows.transpose(
                    [axis - len(place) + 1 for axis in order if axis >= len(place) - 1]
                )
    except UndulaError:
        raise
    except OSError as error:
        raise FileError(f"cannot write beside {location.parent}: {error.strerror or error}") from None


def _bands(source: Path, picture: Picture, rows: int, max_pixels: int | None) -> Bands:
    """Return the rows of all pages of a file, about so many at a time."""
    if picture.pixels.strides[0]:  # The picture is in memory.
        return ((page, 0, pixels) for page, pixels in enumerate(picture.all_pages))
    bands = None
    if picture.kind == "tiff":
        limit = max_pixels
        if limit is None:
            limit = max(DEFAULT_MAX_PIXELS, PIXELS_PER_BYTE * source.stat().st_size)
        bands = read_tiff_bands(source, rows, limit)
    elif picture.kind == "png":
        bands = png_bands(source, rows, max_pixels)
    if bands is not None:
        return bands
    return ((page, 0, pixels) for page, pixels in enumerate(read(source, max_pixels).all_pages))


def _ome(picture: Picture, names: str, order: list[int], location: Path) -> dict[str, Any]:
    """Return the attribute ``ome`` of an image with the axes and channels of a picture."""
    stack = picture.stack_axes
    spacing = (*stack.spacing, *[None] * (len(names) - len(stack.names)))
    units = (*stack.units, *[None] * (len(names) - len(stack.names)))
    return image_attributes(
        location.name.partition(".")[0],
        [names[axis].lower() for axis in order],
        [units[axis] for axis in order],
        [spacing[axis] or 1.0 for axis in order],
        picture.channels if picture.channel_axis is not None else stack.channel_names,
        picture.pixels.dtype,
    )


class _StoredBands(PixelBands):
    """Bands of an array in a store that has the axes of a stack."""

    def __init__(self, array: Any, picture: Picture) -> None:
        stack = picture.stack_axes
        count = math.prod(stack.shape[:-2])
        super().__init__((count, *array.shape[len(stack.shape) - 2 :]), array.dtype)
        self.array, self.page_shape = array, stack.shape[:-2]

    def band(self, page: int, start: int, stop: int) -> Array:
        """Return some rows of a page."""
        place = (*map(int, np.unravel_index(page, self.page_shape)), slice(start, stop))
        return np.asarray(self.array[place])
