"""Read and write image files.

Pillow decodes most formats, tifffile TIFF, pydicom DICOM, pillow-heif HEIC, rawpy raw photographs, and FFmpeg
colours of 16 bits in PNG and JPEG 2000.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentTypeError, FileError, FormatWarning
from .dicom import read_dicom, write_dicom
from .files import (
    EXPORT_ADVICE,
    IMAGES,
    OnlyWritable,
    atomic_write,
    check_size,
    detect_kind,
    import_optional,
    output_kind,
)
from .foreign import foreign_code
from .limits import check_declared, png_color_chunks
from .metadata import (
    exif_block,
    lost_metadata,
    pillow_metadata,
    pillow_options,
    pillow_resolution,
    png_info,
    resolution_per_inch,
)
from .photos import check_avif, is_hdr, read_heif, read_raw, write_heif
from .picture import ALPHA, CMYK, LAB, RGB, Picture, picture_from_array, profile_space
from .tiff import read_tiff, read_tiff_header, write_tiff
from .truncation import check_complete

__all__ = ["Picture", "pixels_from_pillow", "png_bands", "read", "read_header", "save", "write"]

Array = NDArray[Any]

# What the formats can store.
_SPACES = {"jpeg": ("grey", "rgb", "cmyk"), "tiff": ("grey", "rgb", "cmyk", "lab")}
_WITHOUT_ALPHA = ("jpeg", "bmp")
_WITH_ORIENTATION = ("jpeg", "png", "webp", "tiff", "heif")
_WITH_16_BITS = ("png", "jpeg2000", "tiff", "heif")
_WITH_FRAMES = ("gif", "webp", "png", "avif")
_LOSSY = ("gif", "avif", "heif")  # Those with transparency, in which pixels influence their neighbours.
_ARRAYS = ("npy", "npz", "dicom")
_PALETTE_COLORS = 256


def read(path: str | Path, max_pixels: int | None = None) -> Picture:
    """Read an image: PNG, JPEG, TIFF, BMP, GIF, WebP, AVIF, HEIC, JPEG 2000, raw, NumPy arrays or DICOM.

    Parameters
    ----------
    path : path
        The file, whose format is detected by its content.
    max_pixels : int, optional
        The maximum number of pixels, in all pages; by default 100 million.

    Returns
    -------
    Picture
        Its method :meth:`Picture.filtered` treats each channel by its meaning; an array of 4 channels may be
        RGBA, CMYK, or RGB and something else.

    Raises
    ------
    FileError
        If the file is damaged, is not an image, or declares more than ``max_pixels``.

    Examples
    --------
    >>> from undula import io
    >>> picture = io.read(io.sample("scene"))
    >>> picture.pixels.shape, picture.pixels.dtype
    ((480, 640, 3), dtype('uint8'))
    """
    path = Path(path)
    kind = detect_kind(path)
    if kind is None and IMAGES.get(path.suffix.lower()) == "dicom":
        kind = "dicom"
    readers: dict[str, Callable[..., Picture]] = {
        "tiff": read_tiff,
        "heif": read_heif,
        "raw": read_raw,
        "npy": _read_npy,
        "npz": _read_npz,
        "dicom": read_dicom,
    }
    if kind == "video":
        raise FileError(f"{path} is a video; an image is expected here")
    if kind is None:
        raise FileError(f"{path} is in no file format that Undula reads")
    with foreign_code(f"cannot read {path} as {kind}"):
        check_declared(path, kind, max_pixels)
        check_complete(path, kind)
        picture = readers.get(kind, _read_pillow)(path, kind, max_pixels)
        if picture.pixels.size == 0 or picture.pixels.ndim < 2 + picture.pages:
            raise FileError(f"{path} contains no pixels (shape {picture.pixels.shape})")
        return picture


def read_header(path: str | Path) -> Picture | None:
    """Read what an image tells of itself, without decoding its pixels.

    Returns
    -------
    Picture or None
        A picture whose pixels are zeros that take no memory; None for formats that have to be decoded.
    """
    path = Path(path)
    kind = detect_kind(path)
    with foreign_code(f"cannot read {path} as {kind}"):
        check_complete(path, kind)
        if kind == "tiff":
            return read_tiff_header(path, kind)
        if kind == "npy":
            return _read_npy(path, kind, None, header_only=True)
        if kind in ("png", "jpeg", "bmp"):
            return _read_pillow(path, kind, None, header_only=True)
    return None


def png_bands(path: Path, rows: int, max_pixels: int | None) -> Iterator[tuple[int, int, Array]] | None:
    """Return the rows of a PNG, so many at a time, like :func:`undula.io.bands.series_bands`.

    Pillow decodes the image at once, but without a copy of it. None for images that are converted when they
    are read: animations, palettes, transparent colours, and colours of 16 bits.
    """
    check_declared(path, "png", max_pixels)
    image_module = import_optional("PIL.Image")
    image_module.MAX_IMAGE_PIXELS = None  # check_declared has checked the size.
    with image_module.open(path) as image:
        is_deep = _png_depth(path)[0] == 16
        plain = image.mode == "I;16" if is_deep else image.mode in ("L", "RGB", "RGBA")
        if not plain or "transparency" in image.info or getattr(image, "n_frames", 1) > 1:
            return None

    def bands() -> Iterator[tuple[int, int, Array]]:
        with image_module.open(path) as image:
            for top in range(0, image.height, rows):
                yield 0, top, np.asarray(image.crop((0, top, image.width, min(image.height, top + rows))))

    return bands()


def write(path: str | Path, picture: Picture | Array, **options: Any) -> None:
    """Write an image atomically, in the format of the suffix.

    Parameters
    ----------
    path : path
        The file; its suffix is the format.
    picture : Picture or ndarray
        The image.
    **options
        Passed to the encoder of Pillow, such as ``quality``; ``compression`` is passed to tifffile.

    Raises
    ------
    ArgumentTypeError
        If the format cannot store the pixels, such as 16 bits in JPEG.
    FileError
        If the file cannot be written.

    Notes
    -----
    Pixels are turned upright for formats that store no orientation. CMYK and Lab become RGB in formats that
    store neither. Raw photographs and HEIC of more than 8 bits become 8 bits in formats that store no more.
    A JPEG that was read from a JPEG is written with the same quantisation and subsampling, unless ``quality``
    is given.

    Warns
    -----
    FormatWarning
        If parts of the picture or of the file that it was read from are lost, such as EXIF data or layers.

    Examples
    --------
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/image.png"
    >>> write(path, np.zeros((4, 6), "uint8"))
    >>> read(path).pixels.shape
    (4, 6)
    """
    lost = save(path, picture, **options)
    if lost:
        warnings.warn(f"{Path(path).name} does not keep {', '.join(lost)}", FormatWarning, stacklevel=2)


def save(path: str | Path, picture: Picture | Array, **options: Any) -> tuple[str, ...]:
    """Write an image as :func:`write` does, and return the names of what is lost instead of warning."""
    path = Path(path)
    if not isinstance(picture, Picture):
        picture = picture_from_array(np.asarray(picture))
    kind = output_kind(path, picture.kind, picture.about.get("suffix", ""))
    writers: dict[str, Any] = {
        "tiff": write_tiff,
        "heif": write_heif,
        "npy": _write_npy,
        "npz": _write_npz,
        "dicom": write_dicom,
    }
    if kind == "video":
        advice = EXPORT_ADVICE if picture.kind == "dicom" else ""
        raise FileError(f"an image cannot be written to {path}, which has the suffix of a video{advice}")
    if kind not in _WITH_ORIENTATION:
        picture = picture.upright()
    if kind not in _ARRAYS:
        picture = _convert_depth(_convert_colors(picture, kind), kind)
    if kind in _LOSSY or (kind == "webp" and "quality" in options):
        picture = picture.without_hidden_colors()
    if kind == "gif":
        picture = replace(picture, lost=(*picture.lost, *_lost_in_palettes(picture)))
    with atomic_write(path) as temporary, foreign_code(f"cannot write {path} as {kind}", OSError):
        try:
            writers.get(kind, _write_pillow)(temporary, picture, kind, **options)
        except ArgumentTypeError as error:
            if picture.kind != "dicom":
                raise
            raise ArgumentTypeError(f"{error}{EXPORT_ADVICE}") from None
    return lost_metadata(picture, kind)


# --- Pillow ---------------------------------------------------------------------------------------


def _png_depth(path: Path) -> tuple[int, int]:
    """Return the bits of a channel and the colour type of PNG."""
    with path.open("rb") as file:
        head = file.read(33)
    if len(head) < 33 or head[12:16] != b"IHDR":
        raise FileError(f"cannot read {path} as png: its header is damaged")
    return head[24], head[25]


def _read_pillow(path: Path, kind: str, max_pixels: int | None, header_only: bool = False) -> Picture:
    image_module = import_optional("PIL.Image")
    image_module.MAX_IMAGE_PIXELS = None  # check_declared has checked the size.
    if kind == "avif":
        check_avif()
    depth, colors = _png_depth(path) if kind == "png" else (8, 0)
    with image_module.open(path) as image:
        # Further images in a JPEG file are previews, depth maps or the other view of a stereo pair.
        frames = 1 if kind == "jpeg" else int(getattr(image, "n_frames", 1))
        if not header_only:
            check_size(path, image.width * image.height * frames, max_pixels)
        info = dict(image.info)
        about = {key: info[key] for key in ("loop", "default_image") if key in info}
        pages, durations = [], []
        deep_png = depth == 16 and (colors in (2, 4, 6) or "transparency" in info)
        if header_only:
            pages.append(_without_pixels(image, depth, deep_png, frames))
        elif deep_png or (kind == "jpeg2000" and _has_deep_colors(path)):
            if frames > 1:
                raise FileError(f"{path} is an animation with colours of 16 bits, which is not supported")
            pages.append(_deep_pixels(path, kind))
        else:
            for number in range(frames):
                if frames > 1:
                    image.seek(number)
                pages.append(pixels_from_pillow(image, depth))
                durations.append(image.info.get("duration"))
        if not header_only:
            image.seek(0)
        metadata = pillow_metadata(image, kind, decoded=not header_only)
        about |= pillow_resolution(image, kind, metadata["exif"])
        if kind == "jpeg":
            about["jpeg"] = _jpeg_encoding(image)
    if kind == "png":
        about["png_colors"] = png_color_chunks(path)
    if len({page.shape for page, _ in pages}) > 1:  # Frames of a GIF may differ in mode.
        pages = [_as_rgba(*page) for page in pages]
    if frames > 1:
        about["durations"] = durations
    return Picture(
        np.stack([page for page, _ in pages]) if len(pages) > 1 else pages[0][0],
        kind,
        frames > 1,
        about=about,
        channels=pages[0][1],
        **metadata,
    )


def _without_pixels(image: Any, depth: int, deep: bool, frames: int) -> tuple[Array, tuple[str, ...]]:
    """Return zeros that take no memory in place of the pixels of an image, and the names of its channels."""
    pixel = import_optional("PIL.Image").new(image.mode, (1, 1))
    pixel.info = dict(image.info)
    page, names = pixels_from_pillow(pixel, depth)
    zero = np.zeros((), np.uint16 if deep else page.dtype)
    shape = (image.height, image.width, *page.shape[2:])
    return np.broadcast_to(zero, (frames, *shape) if frames > 1 else shape), names


def _jpeg_encoding(image: Any) -> dict[str, Any]:
    """Return the options of Pillow's encoder for a JPEG of the same quality."""
    tables = getattr(image, "quantization", None)
    if not tables:
        return {}
    sampling = import_optional("PIL.JpegImagePlugin").get_sampling(image)
    options: dict[str, Any] = {"qtables": tables, "subsampling": max(0, sampling)}
    return options | ({"progressive": True} if image.info.get("progressive") else {})


def pixels_from_pillow(image: Any, depth: int = 8) -> tuple[Array, tuple[str, ...]]:
    """Return the pixels of a Pillow image and the names of its channels; ``depth`` is that of a PNG."""
    transparent = image.info.get("transparency")
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA" if transparent is not None or image.mode == "PA" else "RGB")
        transparent = None
    elif image.mode == "1":
        image = image.convert("L")
    elif image.mode in ("YCbCr", "HSV"):
        image = image.convert("RGB")
    elif image.mode in ("La", "RGBa"):
        image = image.convert({"La": "LA", "RGBa": "RGBA"}[image.mode])
    elif image.mode in ("I;16B", "I;16L", "I;16N"):
        image = image.convert("I;16")
    elif image.mode == "L" and depth < 8 and transparent is not None:
        transparent *= 255 // ((1 << depth) - 1)
    names = {
        "LA": ("grey", ALPHA[0]),
        "RGB": RGB,
        "RGBA": (*RGB, ALPHA[0]),
        "RGBX": (*RGB, "other"),
        "CMYK": CMYK,
        "LAB": LAB,
    }.get(image.mode, ("grey",))
    pixels = np.asarray(image)
    if image.mode == "I" and pixels.min() >= 0 and pixels.max() < 65536:
        pixels = pixels.astype(np.uint16)
    if pixels.dtype.kind not in "iuf":
        raise FileError(f"images of mode {image.mode!r} are not supported")
    if image.mode == "LAB":  # Pillow stores a and b as signed bytes.
        pixels = pixels ^ np.array([0, 128, 128], np.uint8)
    if transparent is not None and image.mode in ("L", "RGB", "I;16", "I"):
        clear = pixels == np.array(transparent)
        opaque = 65535 if pixels.dtype == np.uint16 else 255
        alpha = np.where(clear if pixels.ndim == 2 else clear.all(axis=-1), 0, opaque)
        pixels = np.dstack([pixels, alpha.astype(pixels.dtype)])
        names = (*names, ALPHA[0])
    return np.ascontiguousarray(pixels), names


def _as_rgba(page: Array, names: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    colors = page[..., :3] if names[:3] == RGB else np.repeat(np.atleast_3d(page)[..., :1], 3, axis=2)
    opaque = np.full(page.shape[:2], 255, page.dtype)
    return np.dstack([colors, page[..., -1] if ALPHA[0] in names else opaque]), (*RGB, ALPHA[0])


def _convert_colors(picture: Picture, kind: str) -> Picture:
    """Convert to colours that a format can store; drop a profile of other colours."""
    if picture.space not in _SPACES.get(kind, ("grey", "rgb")):
        picture = picture.as_rgb()
    if kind != "tiff":
        extra = picture.extra_channels
        if len(extra) > 1 or not set(extra) <= set(ALPHA):
            raise ArgumentTypeError(
                f"{kind} stores grey or RGB, with or without alpha, got channels"
                f" {', '.join(picture.channels)}; write TIFF or .npy"
            )
        if extra and kind in _WITHOUT_ALPHA:
            raise ArgumentTypeError(f"{kind} stores no alpha channel; write PNG, TIFF or WebP")
        picture = picture.with_plain_alpha().with_black_zero()
    spaces = {"grey": (b"GRAY", b"RGB "), "rgb": (b"RGB ",), "cmyk": (b"CMYK",), "lab": (b"Lab ",)}
    if picture.profile and profile_space(picture.profile) not in (b"", *spaces[picture.space]):
        picture = replace(picture, profile=None)
    return picture


def _convert_depth(picture: Picture, kind: str) -> Picture:
    """Reduce developed photographs to 8 bits for formats that store no more."""
    lost = picture.lost
    if kind != "heif" and is_hdr(picture):
        lost += ("HDR brightness curve",)
    if picture.kind not in ("raw", "heif") or picture.pixels.dtype != np.uint16 or kind in _WITH_16_BITS:
        return replace(picture, lost=lost)
    if picture.kind == "heif":
        lost += ("more than 8 bits per sample",)
    pixels = ((picture.pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)
    return replace(picture, pixels=pixels, lost=lost)


def _lost_in_palettes(picture: Picture) -> Iterator[str]:
    """Name what the palettes of GIF do not keep: each page has 256 colours, one of which is transparent."""
    if picture.pixels.dtype != np.uint8:
        return  # Such pixels are refused.
    for page in picture.all_pages if len(picture.channels) > 2 else ():
        weights = 256 ** np.arange(page.shape[-1])
        if len(np.unique(page @ weights)) > _PALETTE_COLORS:
            yield f"more than {_PALETTE_COLORS} colours"
            break
    if set(picture.channels) & set(ALPHA) and not np.isin(picture.pixels[..., -1], (0, 255)).all():
        yield "partial transparency"


def _write_pillow(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    image_module = import_optional("PIL.Image")
    if kind == "avif":
        check_avif()
    pixels = picture.pixels
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * 255
    deep = pixels.dtype == np.uint16
    if pixels.dtype not in (np.uint8, np.uint16) or (deep and kind not in _WITH_16_BITS):
        sizes = "8 or 16" if kind in _WITH_16_BITS else "8"
        raise ArgumentTypeError(
            f"{kind} stores unsigned integers of {sizes} bits, got {pixels.dtype}; write TIFF or .npy, or"
            " convert the pixels"
        )
    if picture.channel_axis is not None and len(picture.channels) == 1:
        pixels = pixels[..., 0]
    if len(picture.channels) == 2 and kind in ("gif", "webp"):
        pixels = pixels[..., [0, 0, 0, 1]]
    if deep and not picture.pages and kind == "png":
        _write_deep_png(path, pixels, picture)
        return
    if deep and (len(picture.channels) > 1 or picture.pages):
        raise ArgumentTypeError(
            f"{kind} is written with {'several pages' if picture.pages else 'colours'} of 8 bits only, got"
            f" {pixels.dtype}; write TIFF{'' if picture.pages else ' or PNG'}"
        )
    mode = "CMYK" if picture.space == "cmyk" else None
    pages = [image_module.fromarray(page, mode) for page in (pixels if picture.pages else [pixels])]
    defaults: dict[str, dict[str, Any]] = {
        "jpeg": picture.about.get("jpeg") or {"quality": 95, "subsampling": 0},
        "jpeg2000": {"irreversible": False},
        "webp": {"lossless": True},
        "avif": {"quality": 90, "subsampling": "4:4:4"},
    }
    encoding = defaults.get(kind, {})
    if "quality" in options:  # It replaces the tables of the source, and WebP of some quality has losses.
        encoding = {key: value for key, value in encoding.items() if key not in ("qtables", "lossless")}
    options = pillow_options(picture, kind) | encoding | options
    if len(pages) > 1:
        if kind not in _WITH_FRAMES:
            raise ArgumentTypeError(f"{kind} stores one page, got {len(pages)}; write TIFF, GIF or .npy")
        durations = [d or 100 for d in picture.about.get("durations", [100] * len(pages))]
        options |= {"save_all": True, "append_images": pages[1:], "duration": durations}
        options["loop"] = picture.about.get("loop", 0)
        if kind == "png" and picture.about.get("default_image"):  # A still that is not part of the animation.
            options |= {"default_image": True, "duration": durations[1:]}
    if kind == "png":  # Large images must not be in memory twice.
        with path.open("wb") as file:
            pages[0].save(file, "PNG", **options)
        return
    # Encode to memory first: on a full disk, Pillow truncates JPEG and BMP silently, and its encoder of
    # JPEG 2000 never returns.
    encoded = io.BytesIO()
    pages[0].save(encoded, kind.upper(), **options)
    path.write_bytes(encoded.getbuffer())


# Colours of 16 bits by the pixel format of FFmpeg; Pillow reduces them to 8 bits or drops alpha.
_DEEP_FORMATS = {"rgb48": RGB, "ya16": ("grey", ALPHA[0]), "rgba64": (*RGB, ALPHA[0])}


def _has_deep_colors(path: Path) -> bool:
    """Return whether a JPEG 2000 file has several channels of more than 8 bits."""
    data = path.read_bytes()
    start = data.find(b"\xff\x4f\xff\x51")
    channels, depth = struct.unpack_from(">HB", data, start + 40)
    return bool(channels > 1 and depth & 0x7F >= 8)


def _deep_pixels(path: Path, kind: str) -> tuple[Array, tuple[str, ...]]:
    demuxer = "j2k_pipe" if kind == "jpeg2000" else "png_pipe"
    with import_optional("av").open(io.BytesIO(path.read_bytes()), format=demuxer) as file:
        frame = next(file.decode(video=0))
    name, order = frame.format.name[:-2], frame.format.name[-2:]
    if name not in _DEEP_FORMATS:
        raise FileError(f"cannot read {path}: the pixel format {frame.format.name} is not supported")
    names = _DEEP_FORMATS[name]
    plane = np.frombuffer(frame.planes[0], ">u2" if order == "be" else "<u2")
    stride = frame.planes[0].line_size // 2
    pixels = plane[: stride * frame.height].reshape(frame.height, stride)[:, : frame.width * len(names)]
    return np.ascontiguousarray(pixels.reshape(frame.height, frame.width, -1).astype(np.uint16)), names


def _write_deep_png(path: Path, pixels: Array, picture: Picture) -> None:
    height, width = pixels.shape[:2]
    color_type = {1: 0, 2: 4, 3: 2, 4: 6}[len(picture.channels)]
    rows = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    lines = np.zeros((height, rows.shape[1] + 1), np.uint8)
    lines[:, 0] = 2  # The filter "Up": each row as its difference from the one above.
    lines[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=lines[1:, 1:])

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 16, color_type, 0, 0, 0)
    parts = [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", header)]
    if picture.profile:
        parts.append(chunk(b"iCCP", b"profile\0\0" + zlib.compress(picture.profile)))
    if dpi := resolution_per_inch(picture.about):
        x, y = (round(per_inch / 0.0254) for per_inch in dpi)
        parts.append(chunk(b"pHYs", struct.pack(">IIB", x, y, 1)))
    if exif := exif_block(picture, "png"):
        parts.append(chunk(b"eXIf", exif.removeprefix(b"Exif\0\0")))
    parts += [chunk(name, data) for name, data, *_ in png_info(picture).chunks]
    parts += [chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)), chunk(b"IEND", b"")]
    path.write_bytes(b"".join(parts))


# --- arrays ---------------------------------------------------------------------------------------


def _check_array(path: Path, pixels: Array) -> Array:
    if pixels.dtype.kind not in "iufb":
        raise FileError(f"{path} contains an array of {pixels.dtype}; real numbers are expected")
    if pixels.ndim < 2:
        raise FileError(f"{path} contains an array of shape {pixels.shape}; an image has two or more axes")
    return pixels


def _read_npy(path: Path, kind: str, max_pixels: int | None, header_only: bool = False) -> Picture:
    mapped = _check_array(path, np.load(path, mmap_mode="r", allow_pickle=False))
    if header_only:
        return picture_from_array(np.broadcast_to(np.zeros((), mapped.dtype), mapped.shape), kind)
    return picture_from_array(np.array(mapped), kind)


def _read_npz(path: Path, kind: str, max_pixels: int | None) -> Picture:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        names = arrays.files
        if not names:
            raise FileError(f"{path} contains no arrays")
        if "coeffs" in names or any(name.startswith("level") for name in names):
            raise FileError(f"{path} contains coefficients; reconstruct the image with undula inverse")
        if len(names) > 1:
            raise FileError(f"{path} contains {len(names)} arrays; save the one to filter by itself")
        picture = picture_from_array(_check_array(path, arrays[names[0]]), kind)
    picture.about["name"] = names[0]
    return picture


def _write_npy(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    with path.open("wb") as file:
        np.save(OnlyWritable(file), _original_array(picture), allow_pickle=False)


def _write_npz(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    with path.open("wb") as file:
        arrays: dict[str, Any] = {picture.about.get("name", "image"): _original_array(picture)}
        np.savez_compressed(file, **arrays)


def _original_array(picture: Picture) -> Array:
    """Return the pixels in the shape of the array that they were read from."""
    shape = picture.about.get("shape")
    if shape is not None and np.prod(shape) == picture.pixels.size:
        return picture.pixels.reshape(shape)
    return picture.pixels
