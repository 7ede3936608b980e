"""TIFF: channels, layout and descriptions as the file says them.

Read and written by tifffile; what it cannot decode is read by Pillow, as far as that loses nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from .files import import_optional
from .limits import check_tiff
from .picture import ALPHA, CMYK, LAB, RGB, Picture

__all__ = ["read_tiff", "write_tiff"]

Array = NDArray[Any]

# What the first channels are, by the photometric interpretation.
_FIRST = {
    "MINISBLACK": ("grey",),
    "MINISWHITE": ("grey",),
    "RGB": RGB,
    "SEPARATED": CMYK,
    "CIELAB": LAB,
    "ICCLAB": LAB,
}
_EXTRA = {0: "other", 1: ALPHA[1], 2: ALPHA[0]}
_STRUCTURED = ("<?xml", "ImageJ=", "{")  # descriptions that also tell the shape
# Maker, model, date, artist, copyright; and where on Earth the pixels are.
_COPIED_TAGS = (271, 272, 306, 315, 33432, 33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113)
_SIZES = (1, 8, 16, 32, 64)  # bits of samples that are read as they are


def read_tiff(path: Path, kind: str, max_pixels: int | None = None) -> Picture:
    """All pages of the first series of a TIFF file."""
    tifffile = import_optional("tifffile")
    with tifffile.TiffFile(path) as file:
        if not file.series:
            raise FileError(f"{path} has no pictures in it")
        series = file.series[0]
        page = series.keyframe
        if len(file.series) > 1 and not _thumbnails(file.series):
            raise FileError(
                f"{path} has pictures of {len(file.series)} kinds, and one is filtered at a time; split them"
            )
        check_tiff(path, series, max_pixels)
        colors = str(getattr(page.photometric, "name", page.photometric))
        about = _about(file, series, page)
        tag = page.tags.get("InterColorProfile")
        profile = None if tag is None else tag.value
        orientation = _tag(page, "Orientation", 1)
        orientation = int(orientation) if orientation in range(1, 9) else 1
        decoded = None
        if colors in _FIRST and page.bitspersample in _SIZES:
            channels = _channels(path, page, colors)
            decoded = _decoded(series)
        pages_of_pillow = len(series)
    if decoded is None:  # (Pillow turns the pixels, and takes white for the largest value)
        if orientation > 4:
            about |= {key: about[key][::-1] for key in ("resolution",) if key in about}
        about = {key: value for key, value in about.items() if key in ("resolution", "unit", "description")}
        decoded, channels, orientation = _by_pillow(path, page, pages_of_pillow)
    pixels, axes = decoded
    if pixels.dtype.kind not in "iufb":
        raise FileError(f"cannot read {path}: pixels of {pixels.dtype} are not known here")
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    color = "S" in axes
    if color:
        pixels = np.moveaxis(pixels, axes.index("S"), -1)
    pages = pixels.ndim - color > 2
    if pages:
        pixels = pixels.reshape(-1, *pixels.shape[pixels.ndim - 2 - color :])
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * 255
    if about.get("photometric") == "cielab":
        pixels = _shifted_lab(path, pixels)
    about["written"] = (pixels.shape, str(pixels.dtype))
    return Picture(
        np.ascontiguousarray(pixels),
        kind,
        pages,
        profile,
        None,
        about,
        channels=channels,
        orientation=orientation,
    )


def _thumbnails(series: Any) -> bool:
    """Whether all but the first are smaller copies of it."""
    return all(bool(getattr(other.keyframe, "is_reduced", False)) for other in series[1:])


def _tag(page: Any, name: str, default: Any = None) -> Any:
    return page.tags[name].value if name in page.tags else default


def _about(file: Any, series: Any, page: Any) -> dict[str, Any]:
    """What is written again as it was."""
    colors = str(getattr(page.photometric, "name", page.photometric))
    about: dict[str, Any] = {}
    if "XResolution" in page.tags and "YResolution" in page.tags:
        about["resolution"] = (_tag(page, "XResolution"), _tag(page, "YResolution"))
        about["unit"] = int(_tag(page, "ResolutionUnit", 2))
    text = _tag(page, "ImageDescription")
    if isinstance(text, str) and text.strip():
        about["description"] = _in_one_file(text)
    if colors in ("MINISWHITE", "CIELAB", "ICCLAB"):
        about["photometric"] = colors.lower()
    if page.samplesperpixel > 1 and int(page.planarconfig) == 2:
        about["planar"] = True
    if page.bitspersample == 1:
        about["bilevel"] = True
    about["tags"] = [
        (tag.code, int(tag.dtype), 0 if isinstance(tag.value, (str, bytes)) else tag.count, tag.value, True)
        for tag in page.tags
        if tag.code in _COPIED_TAGS
    ]
    if "IJMetadata" in page.tags:
        about["imagej"] = _tag(page, "IJMetadata")
    return about


def _in_one_file(text: str) -> str:
    """A description of OME's whose planes are in this file, in the order that it gives."""
    before, *planes = text.split("<TiffData")
    if not planes or (len(planes) == 1 and "<UUID" not in text):
        return text

    def after(plane: str) -> str:
        start, _, rest = plane.partition(">")
        return rest if start.endswith("/") else plane.partition("</TiffData>")[2]

    return f"{before}<TiffData/>{''.join(map(after, planes))}"


def _channels(path: Path, page: Any, colors: str) -> tuple[str, ...]:
    first = _FIRST[colors]
    rest = page.samplesperpixel - len(first)
    if rest < 0 or (colors == "SEPARATED" and _tag(page, "InkSet", 1) != 1):
        raise FileError(f"{path} has {page.samplesperpixel} channel(s) of {colors}, which are not known here")
    extra = [_EXTRA.get(int(kind), "other") for kind in page.extrasamples][:rest]
    return (*first, *extra, *["other"] * (rest - len(extra)))


def _decoded(series: Any) -> tuple[Array, str] | None:
    """Pixels and what their axes are; None where a decoder is not installed."""
    try:
        return series.asarray(), series.axes
    except (ValueError, NotImplementedError) as error:
        if "imagecodecs" in str(error):
            return None
        raise


def _by_pillow(path: Path, page: Any, count: int) -> tuple[tuple[Array, str], tuple[str, ...], int]:
    """Pixels, axes and channels of what Pillow can decode without a loss; it makes them upright."""
    from .raster import pixels_from_pillow

    colors = str(getattr(page.photometric, "name", page.photometric))
    if page.bitspersample > 8 and (page.samplesperpixel > 1 or page.bitspersample != 16):
        packed = str(getattr(page.compression, "name", page.compression))
        raise FileError(
            f"cannot read {path}: {page.bitspersample} bits of {colors}, packed as {packed}, need the package"
            " imagecodecs (pip install imagecodecs)"
        )
    pages = []
    with import_optional("PIL.Image").open(path) as image:
        for number in range(count):
            image.seek(number)
            pages.append(pixels_from_pillow(image))
    channels = pages[0][1]
    axes = "YXS" if pages[0][0].ndim == 3 else "YX"
    if count == 1:
        return (pages[0][0], axes), channels, 1
    return (np.stack([pixels for pixels, _ in pages]), "I" + axes), channels, 1


def _shifted_lab(path: Path, pixels: Array) -> Array:
    """Between a and b as signed numbers, and with an offset; the same for both ways."""
    if pixels.dtype not in (np.uint8, np.uint16):
        raise FileError(f"{path}: Lab has 8 or 16 bits, got {pixels.dtype}")
    half = 1 << (8 * pixels.itemsize - 1)
    offset = np.zeros(pixels.shape[-1], pixels.dtype)
    offset[1:3] = half
    return pixels ^ offset


def write_tiff(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    """All pages, with channels, layout and descriptions as they were read."""
    tifffile = import_optional("tifffile")
    pixels, about = picture.pixels, picture.about
    same = about.get("written") == (pixels.shape, str(pixels.dtype))
    arguments: dict[str, Any] = {"compression": options.pop("compression", "zlib"), "metadata": None}
    space = picture.space
    photometric = about.get("photometric")
    arguments["photometric"] = {"rgb": "rgb", "cmyk": "separated", "lab": "cielab", "grey": "minisblack"}[
        space
    ]
    if photometric in {"grey": ("miniswhite",), "lab": ("icclab",)}.get(space, ()):
        arguments["photometric"] = photometric
    if arguments["photometric"] == "cielab":
        pixels = _shifted_lab(path, pixels)
    if about.get("bilevel") and space == "grey" and np.isin(pixels, (0, 255)).all():
        pixels = pixels > 0
    if len(picture.channels) > 1:
        kinds = {name: number for number, name in _EXTRA.items()}
        arguments["extrasamples"] = [kinds.get(name, 0) for name in picture.extra_channels] or None
        arguments["planarconfig"] = "separate" if about.get("planar") else "contig"
        if about.get("planar"):
            pixels = np.moveaxis(pixels, -1, -3)
    elif picture.channel_axis is not None:
        pixels = pixels[..., 0]
    text = about.get("description")
    if text and (same or not text.startswith(_STRUCTURED)):
        arguments["description"] = text if text.isascii() else text.encode()
    if picture.profile:
        arguments["iccprofile"] = picture.profile
    tags = list(about.get("tags", ())) if same else []
    if same and "imagej" in about:
        tags += tifffile.imagej_metadata_tag(about["imagej"], "<")
        arguments["byteorder"] = "<"
    if picture.orientation != 1:
        tags.append((274, "H", 1, picture.orientation, False))
    arguments["extratags"] = tags
    resolution = about.get("resolution") or about.get("dpi")
    if resolution is not None:
        arguments["resolution"] = tuple(resolution)
        arguments["resolutionunit"] = about.get("unit", 2)
    tifffile.imwrite(path, np.ascontiguousarray(pixels), **arguments)
