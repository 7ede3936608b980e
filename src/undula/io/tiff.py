"""Read and write TIFF, with its channels, axes, layout and description.

Files are read and written by tifffile. Pillow reads compressed data for which tifffile has no decoder, if
nothing is lost. Images that are too large to be read at once are read and written in bands of rows, see
:mod:`undula.io.bands`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError, MissingExtraError, install_hint
from .bands import ArrayBands, PixelBands, ReducedBands, encoded_strips, series_bands, tiles
from .files import import_optional
from .limits import check_tiff
from .metadata import STRUCTURED, caption, tiff_metadata, tiff_tags, write_tiff_directories
from .picture import ALPHA, CMYK, LAB, ORIENTATION_TAG, RGB, Picture
from .stack import OME_AXES, SAMPLES, StackAxes, unit_symbol

__all__ = ["read_tiff", "read_tiff_bands", "read_tiff_header", "write_tiff", "write_tiff_bands"]

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
IMAGEJ_TAG = 50839
MAX_CLASSIC_BYTES = (1 << 32) - (1 << 25)  # Larger files need BigTIFF.


OME_SUFFIXES = (".ome.tif", ".ome.tiff")


class _TiffHeader(NamedTuple):
    """What a TIFF file tells before its pixels are decoded."""

    series: Any
    page: Any
    about: dict[str, Any]
    profile: bytes | None
    orientation: int
    channels: tuple[str, ...] | None  # None if tifffile does not decode the pixels.
    metadata: dict[str, Any]


@contextmanager
def _opened(path: Path) -> Iterator[_TiffHeader]:
    """Open a file and read the headers of its first series, which must be the only one."""
    with import_optional("tifffile").TiffFile(path) as file:
        if not file.series:
            raise FileError(f"{path} contains no images")
        series = file.series[0]
        if path.name.lower().endswith(OME_SUFFIXES) and not file.is_ome:
            raise FileError(
                f"{path} is named OME-TIFF and has no description of OME: it is cut off or damaged; rename it"
                " to .tif to read its pages without it"
            )
        _check_hyperstack(path, file, series)
        page = series.keyframe
        if not all(getattr(other.keyframe, "is_reduced", False) for other in file.series[1:]):
            raise FileError(
                f"{path} contains {len(file.series)} series of images; split it into a file for each"
            )
        about = _about(page)
        about["axes"] = _described_axes(file, page)
        smaller = [level.keyframe.shape for level in series.levels[1:]]
        if page.is_tiled:
            about["tile"] = (int(page.tilelength), int(page.tilewidth))
        if smaller:
            about["levels"] = [(shape[-3:-1] if "S" in series.axes else shape[-2:]) for shape in smaller]
        about["bigtiff"] = bool(file.is_bigtiff)
        orientation = _tag(page, "Orientation", 1)
        metadata = tiff_metadata(path, page)
        channels = None
        if (photometric := _name(page.photometric)) in _COLORS and page.bitspersample in _SAMPLE_BITS:
            channels = _channels(path, page, photometric)
        yield _TiffHeader(
            series,
            page,
            about,
            _tag(page, "InterColorProfile"),
            int(orientation) if orientation in range(1, 9) else 1,
            channels,
            metadata,
        )


def read_tiff(path: Path, kind: str, max_pixels: int | None = None) -> Picture:
    """Read all pages of the first series of a TIFF file."""
    with _opened(path) as header:
        check_tiff(path, header.series, max_pixels)
        decoded = None if header.channels is None else _decoded(header.series)
        lacks_decoder = decoded is None and header.channels is not None
        count = len(header.series)
    about, channels, orientation = header.about, header.channels, header.orientation
    if decoded is None:  # Pillow turns the pixels upright, and inverts grey whose 0 is white.
        about = {
            key: value for key, value in about.items() if key not in ("photometric", "planar", "bilevel")
        }
        if orientation != 1:  # The tags say where on the globe pixels are.
            del about["tags"]
        if orientation > 4:
            turned = {key: about[key][::-1] for key in ("resolution", "tile") if key in about}
            about |= turned | (
                {"levels": [size[::-1] for size in about["levels"]]} if "levels" in about else {}
            )
        decoded, channels = _read_by_pillow(path, header.page, count, lacks_decoder)
        orientation = 1
    pixels, axes = decoded
    return _picture(path, kind, header._replace(about=about, orientation=orientation), pixels, axes, channels)


def read_tiff_header(path: Path, kind: str) -> Picture:
    """Read what a TIFF file tells of itself: a picture whose pixels are zeros that take no memory."""
    with _opened(path) as header:
        series = header.series
        pixels = np.broadcast_to(np.zeros((), series.dtype), series.shape)
        return _picture(path, kind, header, pixels, series.axes, header.channels)


def read_tiff_bands(path: Path, rows: int, max_pixels: int | None) -> Iterator[tuple[int, int, Array]] | None:
    """Return the rows of all pages, about so many at a time: the page, the first row, and the rows.

    None if the pixels of the file cannot be decoded in parts.
    """
    with _opened(path) as header:
        check_tiff(path, header.series, max_pixels)
        about, page = header.about, header.page
        plain = header.channels is not None and page.bitspersample > 1
        if not plain or about.get("planar") or about.get("photometric") == "cielab":
            return None
        try:
            next(page.segments(maxworkers=1, buffersize=1), None)  # A decoder may be missing.
        except (ValueError, NotImplementedError, ImportError):
            return None
    return series_bands(path, rows)


def _picture(
    path: Path, kind: str, header: _TiffHeader, pixels: Array, axes: str, channels: tuple[str, ...] | None
) -> Picture:
    """Return a picture of pixels with named axes."""
    about = dict(header.about)
    if pixels.dtype.kind not in "iufb":
        raise FileError(f"cannot read {path}: pixels of {pixels.dtype} are not supported")
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False) if pixels.strides[-1] else pixels
    color = SAMPLES in axes
    if color:
        pixels = np.moveaxis(pixels, axes.index(SAMPLES), -1)
    stack = about.pop("axes").renamed(axes.replace(SAMPLES, ""), pixels.shape[: pixels.ndim - color])
    pages = pixels.ndim - color > 2
    if pages:
        pixels = pixels.reshape(-1, *pixels.shape[pixels.ndim - 2 - color :])
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * 255
    if about.get("photometric") == "cielab":
        pixels = _shifted_lab(path, pixels)
    about["as_read"] = (pixels.shape, str(pixels.dtype))
    return Picture(
        pixels if not pixels.strides[-1] else np.ascontiguousarray(pixels),
        kind,
        pages,
        header.profile,
        about=about,
        channels=channels or (),
        orientation=header.orientation,
        stack=stack,
        **header.metadata,
    )


def _check_hyperstack(path: Path, file: Any, series: Any) -> None:
    """Raise an error if a file has fewer planes than ImageJ describes, since it was cut off."""
    described = (file.imagej_metadata or {}).get("images", 1) if file.is_imagej else 1
    planes = math.prod(n for n, axis in zip(series.shape, series.axes, strict=True) if axis not in "YXS")
    if isinstance(described, int) and planes < described:
        raise FileError(
            f"cannot read {path}: it has {planes} of the {described} planes that ImageJ describes; it seems"
            " to be cut off"
        )


# --- axes -----------------------------------------------------------------------------------------


def _described_axes(file: Any, page: Any) -> StackAxes:
    """Return what the descriptions of OME and ImageJ tell of axes; lengths are not known yet."""
    if file.is_ome:
        return _ome_axes(file.ome_metadata)
    if file.is_imagej and isinstance(described := file.imagej_metadata, dict):
        unit = str(described.get("unit", ""))
        sizes: dict[str, tuple[Any, str]] = {
            "Z": (described.get("spacing"), unit),
            "T": (described.get("finterval"), str(described.get("tunit", "s"))),
        }
        for name, tag in (("X", "XResolution"), ("Y", "YResolution")):
            numerator, denominator = _tag(page, tag, (0, 1))
            sizes[name] = (denominator / numerator if numerator else None, unit)
        labels = described.get("Labels")
        return _named_sizes(sizes, labels if isinstance(labels, list) else ())
    return _named_sizes({}, ())


def _ome_axes(text: str) -> StackAxes:
    try:
        image = import_optional("tifffile").xml2dict(text)["OME"]["Image"]
        pixels = (image[0] if isinstance(image, list) else image)["Pixels"]
        channels = pixels.get("Channel", ())
        channels = channels if isinstance(channels, (list, tuple)) else [channels]
        names = [str(channel.get("Name", "")) for channel in channels]
    except (KeyError, TypeError, AttributeError, ValueError, SyntaxError):  # SyntaxError: damaged XML.
        return _named_sizes({}, ())
    sizes = {
        name: (pixels.get(f"PhysicalSize{name}"), str(pixels.get(f"PhysicalSize{name}Unit", "µm")))
        for name in "XYZ"
    }
    sizes["T"] = (pixels.get("TimeIncrement"), str(pixels.get("TimeIncrementUnit", "s")))
    return _named_sizes(sizes, names if any(names) else ())


def _named_sizes(sizes: dict[str, tuple[Any, str]], channels: Any) -> StackAxes:
    """Return axes of sizes that are known and useful."""
    known = {
        name: (float(size), unit)
        for name, (size, unit) in sizes.items()
        if isinstance(size, (int, float)) and math.isfinite(size) and size > 0
    }
    spacing = tuple(size for size, _ in known.values())
    units = tuple(unit for _, unit in known.values())
    return StackAxes("".join(known), (0,) * len(known), spacing, units, tuple(channels))


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
    except ImportError:  # Python's module of Zstandard, which there is since 3.14.
        return None
    except (ValueError, NotImplementedError) as error:
        if "imagecodecs" in str(error):
            return None
        raise


def _read_by_pillow(
    path: Path, page: Any, count: int, lacks_decoder: bool
) -> tuple[tuple[Array, str], tuple[str, ...]]:
    """Return pixels with the names of their axes, and channels, if Pillow decodes them without loss."""
    from .raster import pixels_from_pillow

    what = f"{page.bitspersample} bits of {_name(page.photometric)}"
    if page.bitspersample > 8 and (page.samplesperpixel > 1 or page.bitspersample != 16):
        if not lacks_decoder:
            raise FileError(f"cannot read {path}: {what} are not supported")
        raise MissingExtraError(
            f"cannot read {path}: {what} with compression {_name(page.compression)} need the package"
            f" imagecodecs: {install_hint('photo')}"
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


# --- writing --------------------------------------------------------------------------------------


def write_tiff(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    """Write all pages, with their channels, axes, layout and description."""
    pixels, about = picture.pixels, picture.about
    arguments = _arguments(path, picture, **options)
    if arguments["photometric"] == "cielab":
        pixels = _shifted_lab(path, pixels)
    if about.get("bilevel") and picture.space == "grey" and np.isin(pixels, (0, 255)).all():
        pixels = pixels > 0
    if arguments.get("planarconfig") == "separate":
        pixels = np.moveaxis(pixels, -1, -3)
    elif picture.channel_axis is not None and len(picture.channels) == 1:
        pixels = pixels[..., 0]
    levels = [] if pixels.dtype == np.bool_ or about.get("planar") else _levels(picture)
    bands = ArrayBands(pixels if picture.pages else pixels[np.newaxis])
    stacked = np.ascontiguousarray(_stacked(picture, pixels, arguments))
    _write_levels(path, stacked, bands, levels, arguments, picture)


def write_tiff_bands(path: Path, picture: Picture, bands: PixelBands, **options: Any) -> None:
    """Write an image that is read in bands of rows, with the metadata of a picture of the same shape."""
    _write_levels(path, None, bands, _levels(picture), _arguments(path, picture, **options), picture)


def _arguments(path: Path, picture: Picture, **options: Any) -> dict[str, Any]:
    """Return the arguments of tifffile for the pages of a picture."""
    tifffile = import_optional("tifffile")
    about, space = picture.about, picture.space
    unchanged = about.get("as_read") == (picture.pixels.shape, str(picture.pixels.dtype))
    text = about.get("description")
    # ImageJ opens uncompressed files only, or with the help of plugins.
    packed = None if unchanged and text and text.startswith("ImageJ=") else "zlib"
    arguments: dict[str, Any] = {"compression": options.pop("compression", packed), "metadata": None}
    photometric = {"rgb": "rgb", "cmyk": "separated", "lab": "cielab", "grey": "minisblack"}[space]
    if (space, about.get("photometric")) in (("grey", "miniswhite"), ("lab", "icclab")):
        photometric = about["photometric"]
    arguments["photometric"] = photometric
    if len(picture.channels) > 1:
        kinds = {name: number for number, name in _EXTRA_SAMPLES.items()}
        arguments["extrasamples"] = [kinds.get(name, 0) for name in picture.extra_channels] or None
        arguments["planarconfig"] = "separate" if about.get("planar") else "contig"
    text = about.get("description") or caption(picture)
    described = _ome_description(path, picture, unchanged)
    if described is not None:
        arguments["metadata"] = described
    elif text and (unchanged or not text.startswith(STRUCTURED)):
        arguments["description"] = text if text.isascii() else text.encode()
    if picture.profile:
        arguments["iccprofile"] = picture.profile
    tags = list(about.get("tags", ())) if unchanged else []
    if unchanged and described is None and "imagej" in about:
        tags += tifffile.imagej_metadata_tag(about["imagej"], "<")
    tags += tiff_tags(picture)
    if picture.orientation != 1:
        tags.append((ORIENTATION_TAG, "H", 1, picture.orientation, False))
    arguments["extratags"] = tags
    resolution = about.get("resolution") or about.get("dpi")
    if resolution is not None:
        arguments["resolution"] = tuple(resolution)
        arguments["resolutionunit"] = about.get("unit", 2)
    if (tile := about.get("tile")) and not any(length % 16 for length in tile):  # TIFF has no others.
        arguments["tile"] = tile
    return arguments


def _ome_description(path: Path, picture: Picture, unchanged: bool) -> dict[str, Any] | None:
    """Return the axes of a picture for a new description, unless that of the file is kept.

    Files that are named so get a description of OME, others one of tifffile if the user has named the axes.
    """
    stack, text = picture.stack, picture.about.get("description", "")
    if stack is None or not set(stack.names) <= set(OME_AXES) or not picture.matches(stack):
        return None
    is_ome = path.name.lower().endswith(OME_SUFFIXES)
    if unchanged and not picture.about.get("renamed") and (not is_ome or text.startswith("<?xml")):
        return None
    if not is_ome:
        return {"axes": stack.names + SAMPLES * (picture.channel_axis is not None)} if picture.pages else None
    described: dict[str, Any] = {"axes": stack.names + SAMPLES * (picture.channel_axis is not None)}
    for name, size, unit in zip(stack.names, stack.spacing, stack.units, strict=True):
        key = "TimeIncrement" if name == "T" else f"PhysicalSize{name}"
        if size is not None and name != "C":
            described[key] = size
            if unit is not None:
                described[f"{key}Unit"] = unit_symbol(unit)
    if stack.channel_names:
        described["Channel"] = {"Name": list(stack.channel_names)}
    return described


def _stacked(picture: Picture, pixels: Array, arguments: dict[str, Any]) -> Array:
    """Return pixels in the shape of their stack if it is described anew."""
    if arguments["metadata"] is None or picture.stack is None:
        return pixels
    return pixels.reshape(*picture.stack.shape, *pixels.shape[2 + picture.pages :])


def _levels(picture: Picture) -> list[tuple[int, int]]:
    """Return the sizes of the smaller copies that the file had and that pages of this size can have."""
    size = tuple(picture.pixels.shape[axis] for axis in picture.axes)
    levels = []
    for level in picture.about.get("levels", ()):
        if not all(0 < small < large for small, large in zip(level, size, strict=True)):
            break
        levels.append(level)
        size = level
    return levels


def _write_levels(
    path: Path,
    pixels: Array | None,
    bands: PixelBands,
    levels: list[tuple[int, int]],
    arguments: dict[str, Any],
    picture: Picture,
) -> None:
    """Write pages, and smaller copies of them as the file had."""
    tifffile = import_optional("tifffile")
    imagej = any(tag[0] == IMAGEJ_TAG for tag in arguments["extratags"])
    nbytes = math.prod(bands.shape) * np.dtype(bands.dtype).itemsize
    options: dict[str, Any] = {"bigtiff": bool(picture.about.get("bigtiff")) or nbytes > MAX_CLASSIC_BYTES}
    if imagej:
        options["byteorder"] = "<"
    ome = path.name.lower().endswith(OME_SUFFIXES) and arguments["metadata"] is not None
    with tifffile.TiffWriter(path, ome=ome, **options) as writer:
        if pixels is not None:
            writer.write(pixels, subifds=len(levels), **arguments)
        else:
            writer.write(**_in_parts(bands, arguments), subifds=len(levels), **arguments)
        for level in levels:
            bands = ReducedBands(bands, level)
            smaller = {**arguments, "extratags": [], "metadata": None, "subfiletype": 1}
            smaller.pop("description", None)
            writer.write(**_in_parts(bands, smaller), **smaller)
    write_tiff_directories(path, picture)


def _in_parts(bands: PixelBands, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of tifffile for pixels that are read in bands."""
    parts: dict[str, Any] = {"shape": bands.shape, "dtype": bands.dtype}
    if tile := arguments.get("tile"):
        return {**parts, "data": tiles(bands, tile)}
    rows, data = encoded_strips(bands, arguments["compression"])
    return {**parts, "data": data, "rowsperstrip": rows}
