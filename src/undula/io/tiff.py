"""Read and write TIFF, with its channels, layout and description.

Files are read and written by tifffile. Pillow reads compressed data for which tifffile has no decoder, if
nothing is lost.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from .files import import_optional
from .limits import check_tiff
from .metadata import STRUCTURED, caption, tiff_metadata, tiff_tags, write_tiff_directories
from .picture import ALPHA, CMYK, LAB, ORIENTATION_TAG, RGB, Picture

__all__ = ["read_tiff", "write_tiff"]

Array = NDArray[Any]

# The names of the colours by photometric interpretation.
_COLORS = {
    "MINISBLACK": ("grey",),
    "MINISWHITE": ("grey",),
    "RGB": RGB,
    "SEPARATED": CMYK,
    "CIELAB": LAB,
    "ICCLAB": LAB,
}
_EXTRA_SAMPLES = {0: "other", 1: ALPHA[1], 2: ALPHA[0]}
# The tags of GeoTIFF.
_COPIED_TAGS = (33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113)
_SAMPLE_BITS = (1, 8, 16, 32, 64)  # Samples of other sizes are left to Pillow.


def read_tiff(path: Path, kind: str, max_pixels: int | None = None) -> Picture:
    """Read all pages of the first series of a TIFF file."""
    tifffile = import_optional("tifffile")
    with tifffile.TiffFile(path) as file:
        if not file.series:
            raise FileError(f"{path} contains no images")
        series = file.series[0]
        page = series.keyframe
        if not all(getattr(other.keyframe, "is_reduced", False) for other in file.series[1:]):
            raise FileError(
                f"{path} contains {len(file.series)} series of images; split it into a file for each"
            )
        check_tiff(path, series, max_pixels)
        photometric = _name(page.photometric)
        about = _about(page)
        profile = _tag(page, "InterColorProfile")
        orientation = _tag(page, "Orientation", 1)
        orientation = int(orientation) if orientation in range(1, 9) else 1
        metadata = tiff_metadata(path, page)
        decoded = None
        if photometric in _COLORS and page.bitspersample in _SAMPLE_BITS:
            channels = _channels(path, page, photometric)
            decoded = _decoded(series)
        count = len(series)
    if decoded is None:  # Pillow turns the pixels upright, and inverts grey whose 0 is white.
        about = {key: about[key] for key in ("resolution", "unit", "description") if key in about}
        if orientation > 4 and "resolution" in about:
            about["resolution"] = about["resolution"][::-1]
        decoded, channels = _read_by_pillow(path, page, count)
        orientation = 1
    pixels, axes = decoded
    if pixels.dtype.kind not in "iufb":
        raise FileError(f"cannot read {path}: pixels of {pixels.dtype} are not supported")
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
    about["as_read"] = (pixels.shape, str(pixels.dtype))
    pixels = np.ascontiguousarray(pixels)
    return Picture(
        pixels, kind, pages, profile, about=about, channels=channels, orientation=orientation, **metadata
    )


def _name(value: Any) -> str:
    """Return the name of a member of tifffile's enumerations, or an unknown number as text."""
    return str(getattr(value, "name", value))


def _tag(page: Any, name: str, default: Any = None) -> Any:
    return page.tags[name].value if name in page.tags else default


def _about(page: Any) -> dict[str, Any]:
    """Collect the metadata that is written again."""
    photometric = _name(page.photometric)
    about: dict[str, Any] = {}
    if "XResolution" in page.tags and "YResolution" in page.tags:
        about["resolution"] = (_tag(page, "XResolution"), _tag(page, "YResolution"))
        about["unit"] = int(_tag(page, "ResolutionUnit", 2))
    text = _tag(page, "ImageDescription")
    if isinstance(text, str) and text.strip():
        about["description"] = _in_one_file(text)
    if photometric in ("MINISWHITE", "CIELAB", "ICCLAB"):
        about["photometric"] = photometric.lower()
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
    """Change an OME description of planes in several files to one of planes in this file, in their order."""
    before, *planes = text.split("<TiffData")
    if not planes or (len(planes) == 1 and "<UUID" not in text):
        return text

    def after(plane: str) -> str:
        start, _, remainder = plane.partition(">")
        return remainder if start.endswith("/") else plane.partition("</TiffData>")[2]

    return f"{before}<TiffData/>{''.join(map(after, planes))}"


def _channels(path: Path, page: Any, photometric: str) -> tuple[str, ...]:
    colors = _COLORS[photometric]
    count = page.samplesperpixel - len(colors)
    if count < 0 or (photometric == "SEPARATED" and _tag(page, "InkSet", 1) != 1):
        raise FileError(
            f"cannot read {path}: {page.samplesperpixel} channel(s) of {photometric} are not supported"
        )
    extra = [_EXTRA_SAMPLES.get(int(kind), "other") for kind in page.extrasamples][:count]
    return (*colors, *extra, *["other"] * (count - len(extra)))


def _decoded(series: Any) -> tuple[Array, str] | None:
    """Return pixels and the names of their axes; None if a decoder is not installed."""
    try:
        return series.asarray(), series.axes
    except (ValueError, NotImplementedError) as error:
        if "imagecodecs" in str(error):
            return None
        raise


def _read_by_pillow(path: Path, page: Any, count: int) -> tuple[tuple[Array, str], tuple[str, ...]]:
    """Return pixels with the names of their axes, and channels, if Pillow decodes them without loss."""
    from .raster import pixels_from_pillow

    if page.bitspersample > 8 and (page.samplesperpixel > 1 or page.bitspersample != 16):
        raise FileError(
            f"cannot read {path}: {page.bitspersample} bits of {_name(page.photometric)} with compression"
            f" {_name(page.compression)} need the package imagecodecs (pip install imagecodecs)"
        )
    pages = []
    with import_optional("PIL.Image").open(path) as image:
        for number in range(count):
            image.seek(number)
            pages.append(pixels_from_pillow(image))
    pixels, channels = pages[0]
    axes = "YXS" if pixels.ndim == 3 else "YX"
    if count > 1:
        pixels, axes = np.stack([pixels for pixels, _ in pages]), "I" + axes
    return (pixels, axes), channels


def _shifted_lab(path: Path, pixels: Array) -> Array:
    """Convert a and b from signed numbers to numbers with an offset, or back."""
    if pixels.dtype not in (np.uint8, np.uint16):
        raise FileError(f"{path}: Lab of 8 or 16 bits is expected, got {pixels.dtype}")
    half = 1 << (8 * pixels.itemsize - 1)
    offset = np.zeros(pixels.shape[-1], pixels.dtype)
    offset[1:3] = half
    return pixels ^ offset


def write_tiff(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    """Write all pages, with their channels, layout and description."""
    tifffile = import_optional("tifffile")
    pixels, about = picture.pixels, picture.about
    unchanged = about.get("as_read") == (pixels.shape, str(pixels.dtype))
    arguments: dict[str, Any] = {"compression": options.pop("compression", "zlib"), "metadata": None}
    space = picture.space
    photometric = {"rgb": "rgb", "cmyk": "separated", "lab": "cielab", "grey": "minisblack"}[space]
    if (space, about.get("photometric")) in (("grey", "miniswhite"), ("lab", "icclab")):
        photometric = about["photometric"]
    arguments["photometric"] = photometric
    if photometric == "cielab":
        pixels = _shifted_lab(path, pixels)
    if about.get("bilevel") and space == "grey" and np.isin(pixels, (0, 255)).all():
        pixels = pixels > 0
    if len(picture.channels) > 1:
        kinds = {name: number for number, name in _EXTRA_SAMPLES.items()}
        arguments["extrasamples"] = [kinds.get(name, 0) for name in picture.extra_channels] or None
        arguments["planarconfig"] = "separate" if about.get("planar") else "contig"
        if about.get("planar"):
            pixels = np.moveaxis(pixels, -1, -3)
    elif picture.channel_axis is not None:
        pixels = pixels[..., 0]
    text = about.get("description") or caption(picture)
    if text and (unchanged or not text.startswith(STRUCTURED)):
        arguments["description"] = text if text.isascii() else text.encode()
    if picture.profile:
        arguments["iccprofile"] = picture.profile
    tags = list(about.get("tags", ())) if unchanged else []
    if unchanged and "imagej" in about:
        tags += tifffile.imagej_metadata_tag(about["imagej"], "<")
        arguments["byteorder"] = "<"
    tags += tiff_tags(picture)
    if picture.orientation != 1:
        tags.append((ORIENTATION_TAG, "H", 1, picture.orientation, False))
    arguments["extratags"] = tags
    resolution = about.get("resolution") or about.get("dpi")
    if resolution is not None:
        arguments["resolution"] = tuple(resolution)
        arguments["resolutionunit"] = about.get("unit", 2)
    tifffile.imwrite(path, np.ascontiguousarray(pixels), **arguments)
    write_tiff_directories(path, picture)
