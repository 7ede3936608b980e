"""Find the parts of a DICOM image that filters should leave alone: burned-in text and colour Doppler.

Four signs are combined. Pixels outside of the regions of tissue that an ultrasound file declares are
annotations; so are pixels of a clip that never change although the rest does, and thin bright strokes on
black. Coloured pixels of an image that is otherwise grey show flow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .derivation import get_element
from .display import window
from .picture import RGB, Picture

__all__ = ["find_protected", "is_grey_outside", "show_protected"]

Mask = NDArray[np.bool_]

# All levels are for samples of 8 bits.
BLACK_LEVEL = 12  # Compression adds some noise to black.
STROKE_LEVEL = 100  # The least brightness of burned-in text on a still image.
STROKE_PIXELS = 5  # Strokes of letters and lines are thinner.
STATIC_LEVEL = 32  # The least brightness of what is constant in a clip.
STATIC_TOLERANCE = 8  # Compression changes constant pixels by less.
STATIC_FRAMES = 4  # Fewer frames say little about what is constant.
COLOR_LEVEL = 28  # Chroma of compressed grey pixels is smaller.
MARGIN_PIXELS = 2  # Antialiasing and subsampled chroma reach around what is protected.
MAX_SHARE = 0.75  # If more of the pixels that are not black have a sign, it says nothing.
TISSUE, COLOR_FLOW = 1, 2  # of RegionDataType
TWO_DIMENSIONAL, M_MODE = 1, 2  # of RegionSpatialFormat


def find_protected(picture: Picture) -> Mask | None:
    """Find burned-in text and colour Doppler in a DICOM image.

    Parameters
    ----------
    picture : Picture
        As read from a DICOM file.

    Returns
    -------
    ndarray of bool or None
        True at protected pixels: of shape ``(H, W)``, or ``(frames, H, W)`` if frames differ. None if nothing
        is protected, as always for images of more than 8 bits and for those that are not DICOM.

    Examples
    --------
    >>> from undula import io
    >>> find_protected(io.read(io.sample("ct"))) is None  # 16 bits
    True
    """
    dataset = picture.about.get("dataset")
    if dataset is None or picture.pixels.dtype != np.uint8:
        return None
    is_color = picture.channels == RGB
    pages = picture.all_pages
    bright = pages.max(axis=-1) if is_color else pages
    if get_element(dataset, "PhotometricInterpretation") == "MONOCHROME1":
        bright = 255 - bright
    content = bright > BLACK_LEVEL
    is_clip = len(pages) >= STATIC_FRAMES
    signs = [_static(bright, content) if is_clip else None]
    if get_element(dataset, "Modality") == "US":
        # In a clip, thin structures such as valves would be protected in some frames only.
        signs += [_annotations(dataset, picture), None if is_clip else _strokes(bright)]
    if is_color:
        signs.append(_colored(pages, content))
    protected = np.zeros((1, *bright.shape[1:]), bool)
    for sign in signs:
        if sign is not None:
            protected = protected | sign
    if not protected.any():
        return None
    grown = _spread(_spread(protected, MARGIN_PIXELS, 1), MARGIN_PIXELS, 2)
    return grown if len(grown) > 1 else grown[0]


def _spread(mask: Mask, radius: int, axis: int, before: bool = True, after: bool = True) -> Mask:
    """Extend what is True along an axis, to smaller indices (before) and to larger ones (after)."""
    spread = mask.copy()
    lines, source = np.moveaxis(spread, axis, 0), np.moveaxis(mask, axis, 0)
    for distance in range(1, min(radius, len(lines) - 1) + 1):
        if after:
            lines[distance:] |= source[:-distance]
        if before:
            lines[:-distance] |= source[distance:]
    return spread


def _is_minority(sign: Mask, content: Mask) -> bool:
    return bool(np.count_nonzero(sign & content) <= MAX_SHARE * np.count_nonzero(content))


def _annotations(dataset: Any, picture: Picture) -> Mask | None:
    """Return a mask of what lies outside of tissue; None if the file declares no regions of its size."""
    height, width = (picture.pixels.shape[axis] for axis in picture.axes)
    tissue, others = np.zeros((1, height, width), bool), np.zeros((1, height, width), bool)
    for region in get_element(dataset, "SequenceOfUltrasoundRegions", ()):
        names = ("MinX0", "MinY0", "MaxX1", "MaxY1")
        left, top, right, bottom = (get_element(region, f"RegionLocation{name}", -1) for name in names)
        # Some programs change the size of an image and leave its regions as they were.
        if not (0 <= left < right <= width and 0 <= top < bottom <= height):
            return None
        is_tissue = get_element(region, "RegionDataType") in (TISSUE, COLOR_FLOW) and get_element(
            region, "RegionSpatialFormat"
        ) in (TWO_DIMENSIONAL, M_MODE)
        (tissue if is_tissue else others)[:, top : bottom + 1, left : right + 1] = True
    return ~tissue | others if tissue.any() else None


def _static(bright: Any, content: Mask) -> Mask | None:
    """Return a mask of what is bright and constant in a clip; None if nearly all of it is, as if frozen."""
    least, most = bright.min(axis=0, keepdims=True), bright.max(axis=0, keepdims=True)
    static = (most - least <= STATIC_TOLERANCE) & (most >= STATIC_LEVEL)
    return static if _is_minority(static, np.asarray(content.any(axis=0, keepdims=True))) else None


def _strokes(bright: Any) -> Mask:
    """Return a mask of thin bright strokes on black, such as letters, rulers and crosses."""
    black = bright <= BLACK_LEVEL
    sides = [
        _spread(black, STROKE_PIXELS, axis, after=True, before=False)
        & _spread(black, STROKE_PIXELS, axis, after=False, before=True)
        for axis in (1, 2)
    ]
    return np.asarray((bright >= STROKE_LEVEL) & (sides[0] | sides[1]))


def _colored(pages: Any, content: Mask) -> Mask | None:
    """Return a mask of coloured pixels; None if most of the image has colours."""
    colored = _chroma(pages) > COLOR_LEVEL
    return colored if _is_minority(colored, content) else None


def _chroma(pages: Any) -> Any:
    return pages.max(axis=-1) - pages.min(axis=-1)


def is_grey_outside(picture: Picture, protected: Mask) -> bool:
    """Return whether an RGB image of 8 bits has hardly any colours but those that are protected."""
    if picture.channels != RGB or picture.pixels.dtype != np.uint8:
        return False
    return bool(((_chroma(picture.all_pages) <= COLOR_LEVEL) | protected).all())


def show_protected(picture: Picture, protected: Mask | None) -> NDArray[np.uint8]:
    """Draw the first page as it is displayed, with protected pixels in green."""
    shown = window(picture.for_screen())
    page = shown[0] if picture.pages else shown
    rgb = np.repeat(page[..., None], 3, axis=-1) if page.ndim == 2 else page[..., :3].copy()
    if protected is not None:
        mask = protected[0] if protected.ndim == 3 else protected
        rgb[mask] = rgb[mask] // 2 + np.array([0, 127, 40], np.uint8)
    return rgb
