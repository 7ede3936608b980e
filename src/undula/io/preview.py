"""A picture of a part of an image before and after a filter, at full size and side by side.

The part is the one with the most detail that survives the filter: edges and texture rather than noise.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .display import window
from .files import import_optional
from .picture import Picture
from .raster import save

__all__ = ["detailed_region", "write_preview"]

Array = NDArray[Any]

PART_PIXELS = 400  # Height and width of the part, if the image is not smaller.
MARGIN_PIXELS, LABEL_PIXELS, NOTE_PIXELS = 12, 34, 28
STRONG_EDGE_QUANTILE = 0.95  # Gradients above it count no more, or a single edge would win over texture.
BACKGROUND, INK = (32, 33, 36), (232, 234, 237)


def detailed_region(image: Array, height: int, width: int) -> tuple[int, int]:
    """Return the first row and column of the part of an image with the largest sum of gradients.

    Parameters
    ----------
    image : ndarray
        Of two axes.
    height, width : int
        The size of the part, at most that of the image.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> image = np.zeros((90, 120))
    >>> image[40:60, 70:100] = np.random.default_rng(0).random((20, 30))
    >>> detailed_region(image, 20, 30)
    (40, 70)
    """
    if min(image.shape) < 2:
        return 0, 0
    detail = np.hypot(*np.gradient(np.nan_to_num(image.astype(np.float32))))
    detail = np.minimum(detail, np.quantile(detail, STRONG_EDGE_QUANTILE) or detail.max())
    sums = np.pad(detail.cumsum(0, dtype=np.float64).cumsum(1), ((1, 0), (1, 0)))
    sums = sums[height:] - sums[:-height]
    sums = sums[:, width:] - sums[:, :-width]
    row, column = np.unravel_index(sums.argmax(), sums.shape)
    return int(row), int(column)


def write_preview(path: Path, before: Picture, after: Picture) -> None:
    """Write the most detailed part of the first page before and after a filter, with labels."""
    image_module, draw_module, font_module = (
        import_optional(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont")
    )
    pages = _screen_pages(before, after)
    full_height, full_width = pages[0].shape[:2]
    height, width = min(PART_PIXELS, full_height), min(PART_PIXELS, full_width)
    row, column = detailed_region(pages[1].mean(axis=-1), height, width)
    enlargement = max(1, PART_PIXELS // max(height, width))
    shown_width, shown_height = enlargement * width, enlargement * height
    size = (2 * shown_width + 3 * MARGIN_PIXELS, shown_height + LABEL_PIXELS + NOTE_PIXELS)
    canvas = image_module.new("RGB", size, BACKGROUND)
    draw = draw_module.Draw(canvas)
    for index, (label, page) in enumerate(zip(("before", "after"), pages, strict=True)):
        part = image_module.fromarray(page[row : row + height, column : column + width])
        left = MARGIN_PIXELS + index * (shown_width + MARGIN_PIXELS)
        canvas.paste(
            part.resize((shown_width, shown_height), image_module.Resampling.NEAREST), (left, LABEL_PIXELS)
        )
        draw.text((left, LABEL_PIXELS // 2), label, INK, font_module.load_default(18), anchor="lm")
    note = f"{width} x {height} of {full_width} x {full_height} pixels, from column {column} and row {row}"
    draw.text(
        (MARGIN_PIXELS, size[1] - NOTE_PIXELS // 2), note, INK, font_module.load_default(12), anchor="lm"
    )
    save(path, np.asarray(canvas))


def _screen_pages(before: Picture, after: Picture) -> list[Array]:
    """Convert the first pages to 8-bit RGB, on the same scale and over a white background."""
    pictures = [replace(each, pixels=each.all_pages[0], pages=False) for each in (before, after)]
    if "dataset" in before.about:
        pictures = [each.with_pixels(window(each)) for each in pictures]
    pages = [np.atleast_3d(each.for_screen().all_pages[0]) for each in pictures]
    dtype = pages[0].dtype
    low, high = 0.0, float(np.iinfo(dtype).max) if dtype.kind == "u" else 1.0
    if (
        dtype != np.uint8
    ):  # Scans use a part of 16 bits, and floats have any range; photographs use all of it.
        least, most = (float(value) for value in np.nanquantile(pages[0][..., :3], (0.001, 0.999)))
        if dtype.kind != "u" or most < high / 4:
            low, high = least, most
    shown = []
    for page in pages:
        levels = np.clip((page[..., :3].astype(np.float64) - low) / (high - low or 1.0), 0, 1)
        if page.shape[-1] == 4:
            opacity = page[..., 3:] / (np.iinfo(page.dtype).max if page.dtype.kind in "iu" else 1.0)
            levels = opacity * levels + 1 - opacity
        levels = np.broadcast_to(255 * levels, (*page.shape[:2], 3))
        shown.append(np.round(np.nan_to_num(levels)).astype(np.uint8))
    return shown
