"""Convert images to 8 bits for display: DICOM images by their window, others by their range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, FileError
from .derivation import get_element
from .files import import_optional, short_message
from .foreign import foreign_code
from .picture import Picture

__all__ = ["declared_window", "frame_rate", "value_range", "window"]

Array = NDArray[Any]


def window(
    picture: Picture, center: float | None = None, width: float | None = None
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Convert the pixels of a picture to 8 bits for display.

    Parameters
    ----------
    picture : Picture
        DICOM images are shown in the window that their dataset declares; others, and those without a window,
        from their smallest to their largest value, or unchanged if they have 8 bits.
    center, width : float, optional
        The window of a grey image instead, in the units of the modality, such as Hounsfield units: its
        smallest values become black, and its largest white.

    Returns
    -------
    ndarray of uint8
        Of the same shape; padding is black.

    Examples
    --------
    >>> from undula import io
    >>> ct = io.read(io.sample("ct"))
    >>> lung = window(ct, -600, 1500)
    >>> lung.dtype, lung.shape
    (dtype('uint8'), (128, 128))
    """
    pixels, dataset = picture.pixels, picture.about.get("dataset")
    if (center is None) != (width is None) or (width is not None and not width > 0):
        raise ArgumentError(f"a window has a center and a positive width; got {center} and {width}")
    if picture.channel_axis is not None or dataset is None:
        if center is not None and picture.channel_axis is not None:
            raise ArgumentError(f"a window is for grey images; these pixels have shape {pixels.shape}")
        if center is None and pixels.dtype == np.uint8:
            return pixels
    pages = []
    for number, page in enumerate(picture.all_pages):
        elements = _display_elements(dataset, number)
        try:
            pages.append(_windowed(page, elements, center, width))
        except Exception as error:  # Malformed elements raise all kinds of errors.
            name = getattr(dataset, "filename", "the image")
            raise FileError(f"cannot apply the window of {name}: {short_message(error)}") from None
    shown = np.stack(pages) if picture.pages else pages[0]
    valid = picture.stored.valid(pixels) if picture.stored is not None else None
    if center is None and not _has_window(_display_elements(dataset, 0)):
        low, high = 0.0, 255.0
        if pixels.dtype != np.uint8:
            measured = shown if valid is None or not valid.any() else shown[valid]
            low, high = float(measured.min()), float(measured.max())
        shown = (shown - low) / ((high - low) or 1.0)
    if get_element(dataset, "PhotometricInterpretation") == "MONOCHROME1":
        shown = 1 - shown
    if valid is not None:
        shown = np.where(valid, shown, 0)
    return np.asarray(np.clip(255 * shown + 0.5, 0, 255), np.uint8)


def _display_elements(dataset: Any, frame: int) -> Any:
    """Return a dataset with the elements for the display of a frame.

    Enhanced images have them in functional groups, of all frames or of each.
    """
    elements = import_optional("pydicom").Dataset()
    if dataset is None:
        return elements
    groups = [dataset, *get_element(dataset, "SharedFunctionalGroupsSequence", ())[:1]]
    groups += get_element(dataset, "PerFrameFunctionalGroupsSequence", ())[frame : frame + 1]
    names = ("PixelValueTransformationSequence", "FrameVOILUTSequence")
    items = [item for group in groups for name in names for item in get_element(group, name, ())[:1]]
    with foreign_code(f"cannot read {getattr(dataset, 'filename', None) or 'the DICOM file'}"):
        for source in (dataset, *items):
            for name in _DISPLAY_ELEMENTS:
                if name in source:
                    elements[name] = source[name]
    return elements


_DISPLAY_ELEMENTS = (
    "BitsStored PixelRepresentation RescaleIntercept RescaleSlope ModalityLUTSequence WindowCenter"
    " WindowWidth VOILUTFunction VOILUTSequence"
).split()


def _has_window(elements: Any) -> bool:
    return ("WindowCenter" in elements and "WindowWidth" in elements) or "VOILUTSequence" in elements


def _windowed(page: Array, elements: Any, center: float | None, width: float | None) -> Array:
    """Return values from 0 to 1 by a window; without any, the values of the modality."""
    pixel_tools = import_optional("pydicom.pixels")
    values = np.asarray(pixel_tools.apply_modality_lut(page, elements))
    function = "LINEAR" if center is not None else str(get_element(elements, "VOILUTFunction", "LINEAR"))
    if center is None and "WindowCenter" in elements and "WindowWidth" in elements:
        center, width = _window_of(elements)
    if center is None or width is None:
        if "VOILUTSequence" not in elements:
            return values.astype(np.float64)
        bits = int(elements.VOILUTSequence[0].LUTDescriptor[2])
        return np.asarray(pixel_tools.apply_voi(values, elements) / ((1 << bits) - 1))
    x = values.astype(np.float64)
    # The three functions of part 3 of the standard, C.11.2.1.
    if function == "SIGMOID":
        return np.asarray(1 / (1 + np.exp(-4 * (x - center) / width)))
    if function == "LINEAR_EXACT":
        return np.clip((x - center) / width + 0.5, 0, 1)
    return np.clip((x - (center - 0.5)) / max(width - 1, 1e-6) + 0.5, 0, 1)


def _window_of(elements: Any) -> tuple[float, float]:
    """Return the center and the width of the first window; there may be several."""
    values = [elements[name].value for name in ("WindowCenter", "WindowWidth")]
    firsts = [v if isinstance(v, str) or not hasattr(v, "__len__") else v[0] for v in values]
    return float(firsts[0]), float(firsts[1])


def declared_window(dataset: Any) -> tuple[float, float] | None:
    """Return the center and the width of the window that a dataset declares; None if it declares none."""
    elements = _display_elements(dataset, 0)
    try:
        return _window_of(elements)
    except (KeyError, TypeError, ValueError, IndexError):
        return None


def value_range(picture: Picture) -> tuple[float, float]:
    """Return the smallest and the largest value of a grey image in the units of its modality."""
    pixels, dataset = picture.pixels, picture.about.get("dataset")
    valid = picture.stored.valid(pixels) if picture.stored is not None else None
    values = import_optional("pydicom.pixels").apply_modality_lut(pixels, _display_elements(dataset, 0))
    measured = values if valid is None or not valid.any() else values[valid]
    return float(measured.min()), float(measured.max())


def frame_rate(dataset: Any) -> float:
    """Return the frames per second that a DICOM clip declares; 0 if it does not."""
    for name, is_time in (("RecommendedDisplayFrameRate", False), ("CineRate", False), ("FrameTime", True)):
        try:
            value = float(get_element(dataset, name, 0))
        except (TypeError, ValueError):
            continue
        if value > 0:
            return 1000 / value if is_time else value
    return 0.0
