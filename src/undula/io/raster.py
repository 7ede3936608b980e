"""Pictures in files: by Pillow, by tifffile, and by FFmpeg's PNG where there are 16 bits and colours."""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentTypeError, FileError, UndulaError
from .files import IMAGES, atomic_write, check_size, detect_kind, import_optional, output_kind
from .limits import check_declared
from .picture import ALPHA, CMYK, LAB, RGB, Picture, picture_from_array, profile_space
from .tiff import read_tiff, write_tiff

__all__ = ["Picture", "pixels_from_pillow", "read", "write"]

Array = NDArray[Any]

# Colour spaces and opacity, by the kinds of files that hold them; orientation is a tag in these alone.
_SPACES = {"jpeg": ("grey", "rgb", "cmyk"), "tiff": ("grey", "rgb", "cmyk", "lab")}
_OPAQUE = ("jpeg", "bmp")
_ORIENTED = ("jpeg", "png", "webp", "tiff")
_ARRAYS = ("npy", "npz", "dicom")
ORIENTATION_TAG = 274  # of EXIF


def read(path: str | Path, max_pixels: int | None = None) -> Picture:
    """A picture from a file: PNG, JPEG, TIFF, BMP, GIF, WebP, JPEG 2000, ``.npy``, ``.npz`` or DICOM.

    What it is, is seen by its content. Files that are broken, or claim to be larger than ``max_pixels``, are
    a :class:`undula.FileError`. :meth:`Picture.filtered` filters each channel as what it is; arrays of 4
    channels may be RGB with opacity, CMYK, or RGB and something else.
    """
    path = Path(path)
    kind = detect_kind(path)
    if kind is None and IMAGES.get(path.suffix.lower()) == "dicom":
        kind = "dicom"
    readers = {"tiff": read_tiff, "npy": _read_npy, "npz": _read_npz, "dicom": _read_dicom}
    if kind == "video":
        raise FileError(f"{path} is a video, and a picture is needed here")
    if kind is None:
        raise FileError(f"{path} is in no file format that Undula reads")
    try:
        check_declared(path, kind, max_pixels)
        found = readers.get(kind, _read_pillow)(path, kind, max_pixels)
        if found.pixels.size == 0 or found.pixels.ndim < 2 + found.pages:
            raise FileError(f"{path} has no pixels in it (shape {found.pixels.shape})")
        return found
    except UndulaError:
        raise
    except MemoryError:
        raise FileError(f"cannot read {path}: it does not fit into memory") from None
    except Exception as error:  # whatever a decoder thinks of a broken file
        raise FileError(f"cannot read {path} as {kind}: {_short(error)}") from None


def _short(error: BaseException) -> str:
    text = " ".join(str(error).partition("Traceback")[0].split()) or type(error).__name__
    return text if len(text) < 160 else text[:157] + "…"


def write(path: str | Path, picture: Picture | Array, **options: Any) -> None:
    """Writes a picture; the suffix says which kind of file.

    It is written beside its place and put there when it is whole. What cannot be kept, such as 16 bits in a
    JPEG, is an error, and nothing is written. Where a format has no tag for the orientation, pixels are
    turned; where it has neither CMYK nor Lab, these become RGB.
    """
    path = Path(path)
    own = picture if isinstance(picture, Picture) else picture_from_array(np.asarray(picture))
    kind = output_kind(path, own.kind, own.about.get("suffix", ""))
    writers = {"tiff": write_tiff, "npy": _write_npy, "npz": _write_npz, "dicom": _write_dicom}
    if kind == "video":
        raise FileError(f"{path} would be a video, and this is a picture")
    if kind not in _ORIENTED:
        own = own.upright()
    if kind not in _ARRAYS:
        own = _fitting(own, kind)
    with atomic_write(path) as beside:
        try:
            writers.get(kind, _write_pillow)(beside, own, kind, **options)
        except (UndulaError, OSError):
            raise
        except Exception as error:  # (whatever an encoder does not like)
            raise FileError(f"cannot write {path} as {kind}: {_short(error)}") from None


# --- Pillow ---------------------------------------------------------------------------------------


def _png_depth(path: Path) -> tuple[int, int]:
    """Bits of a channel, and the kind of colours."""
    with path.open("rb") as file:
        head = file.read(33)
    if len(head) < 33 or head[12:16] != b"IHDR":
        raise FileError(f"cannot read {path} as png: its header is broken")
    return head[24], head[25]


def _read_pillow(path: Path, kind: str, max_pixels: int | None) -> Picture:
    image_module = import_optional("PIL.Image")
    image_module.MAX_IMAGE_PIXELS = None  # (there is a limit of our own)
    depth, colors = _png_depth(path) if kind == "png" else (8, 0)
    with image_module.open(path) as image:
        # (What follows the first JPEG in a file is a preview, a map of depths, or for the other eye.)
        frames = 1 if kind == "jpeg" else int(getattr(image, "n_frames", 1))
        check_size(path, image.width * image.height * frames, max_pixels)
        info = dict(image.info)
        exif = image.getexif() if kind in ("jpeg", "png", "webp") else image_module.Exif()
        orientation = exif.get(ORIENTATION_TAG, 1)
        about = {key: info[key] for key in ("dpi", "loop", "lossless", "default_image") if key in info}
        pages, durations = [], []
        if (depth == 16 and (colors in (2, 4, 6) or "transparency" in info)) or _deep_jpeg2000(path, kind):
            if frames > 1:
                raise FileError(f"{path} is an animation in colours of 16 bits, which is not read here")
            pages.append(_deep_pixels(path, kind))
        else:
            for number in range(frames):
                if frames > 1:
                    image.seek(number)
                pages.append(pixels_from_pillow(image, depth))
                durations.append(image.info.get("duration"))
    if len({page.shape for page, _ in pages}) > 1:  # (some frames have colours of their own)
        pages = [_as_rgba(*page) for page in pages]
    if frames > 1:
        about["durations"] = durations
    return Picture(
        np.stack([page for page, _ in pages]) if frames > 1 else pages[0][0],
        kind,
        frames > 1,
        info.get("icc_profile"),
        exif.tobytes() if exif else None,
        about,
        channels=pages[0][1],
        orientation=orientation if orientation in range(1, 9) else 1,
    )


def pixels_from_pillow(image: Any, depth: int = 8) -> tuple[Array, tuple[str, ...]]:
    """The pixels of an image of Pillow's, and what its channels are; ``depth`` is that of a PNG."""
    key = image.info.get("transparency")
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA" if key is not None or image.mode == "PA" else "RGB")
        key = None
    elif image.mode == "1":
        image = image.convert("L")
    elif image.mode in ("YCbCr", "HSV"):
        image = image.convert("RGB")
    elif image.mode in ("La", "RGBa"):
        image = image.convert({"La": "LA", "RGBa": "RGBA"}[image.mode])
    elif image.mode in ("I;16B", "I;16L", "I;16N"):
        image = image.convert("I;16")
    elif image.mode == "L" and depth < 8 and key is not None:
        key *= 255 // ((1 << depth) - 1)
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
        raise FileError(f"a picture of mode {image.mode!r} is not known here")
    if image.mode == "LAB":  # (a and b with an offset)
        pixels = pixels ^ np.array([0, 128, 128], np.uint8)
    if key is not None and image.mode in ("L", "RGB", "I;16", "I"):
        clear = pixels == key if pixels.ndim == 2 else (pixels == np.array(key)).all(axis=-1)
        most = 65535 if pixels.dtype == np.uint16 else 255
        pixels = np.dstack([pixels, np.where(clear, 0, most).astype(pixels.dtype)])
        names = (*names, ALPHA[0])
    return np.ascontiguousarray(pixels), names


def _as_rgba(page: Array, names: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    colors = page[..., :3] if names[:3] == RGB else np.repeat(np.atleast_3d(page)[..., :1], 3, axis=2)
    opaque = np.full(page.shape[:2], 255, page.dtype)
    return np.dstack([colors, page[..., -1] if ALPHA[0] in names else opaque]), (*RGB, ALPHA[0])


def _fitting(picture: Picture, kind: str) -> Picture:
    """The same with colours that a kind of file holds, and without a profile of others."""
    if picture.space not in _SPACES.get(kind, ("grey", "rgb")):
        picture = picture.as_rgb()
    if kind != "tiff":
        extra = picture.extra_channels
        if len(extra) > 1 or not set(extra) <= set(ALPHA):
            raise ArgumentTypeError(
                f"{kind} keeps grey or colours, with or without opacity, got channels"
                f" {', '.join(picture.channels)}; write TIFF or .npy"
            )
        if extra and kind in _OPAQUE:
            raise ArgumentTypeError(f"{kind} keeps no opacity; write PNG, TIFF or WebP")
        picture = picture.with_plain_alpha().with_black_zero()
    spaces = {"grey": (b"GRAY", b"RGB "), "rgb": (b"RGB ",), "cmyk": (b"CMYK",), "lab": (b"Lab ",)}
    if picture.profile and profile_space(picture.profile) not in (b"", *spaces[picture.space]):
        picture = replace(picture, profile=None)
    return picture


def _exif(picture: Picture) -> bytes | None:
    """What a camera wrote, with the orientation of these pixels."""
    exif = import_optional("PIL.Image").Exif()
    exif.load(picture.exif or b"")
    if exif.get(ORIENTATION_TAG, 1) == picture.orientation:
        return picture.exif
    exif[ORIENTATION_TAG] = picture.orientation
    return bytes(exif.tobytes())


def _dpi(about: dict[str, Any]) -> tuple[float, float] | None:
    """Pixels of an inch."""
    if "dpi" in about:
        return tuple(about["dpi"])
    if about.get("unit") not in (2, 3) or "resolution" not in about:
        return None
    scale = 2.54 if about["unit"] == 3 else 1.0
    ratios = [value if isinstance(value, tuple) else (value, 1) for value in about["resolution"]]
    if any(not bottom or not top for top, bottom in ratios):
        return None
    x, y = (scale * top / bottom for top, bottom in ratios)
    return x, y


def _write_pillow(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    image_module = import_optional("PIL.Image")
    pixels = picture.pixels
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * 255
    deep = pixels.dtype == np.uint16
    if pixels.dtype not in (np.uint8, np.uint16) or (deep and kind not in ("png", "jpeg2000")):
        raise ArgumentTypeError(
            f"{kind} keeps 8 bits{' or 16' if kind in ('png', 'jpeg2000') else ''}, got {pixels.dtype}; write"
            " TIFF or .npy, or convert it"
        )
    if picture.channel_axis is not None and len(picture.channels) == 1:
        pixels = pixels[..., 0]
    if len(picture.channels) == 2 and kind in ("gif", "webp"):
        pixels = pixels[..., [0, 0, 0, 1]]
    if deep and not picture.pages and kind == "png":
        _write_deep_png(path, pixels, picture)
        return
    if deep and (len(picture.channels) > 1 or picture.pages):
        raise ArgumentTypeError(f"{kind} keeps colours of 8 bits here, got {pixels.dtype}; write TIFF or PNG")
    mode = "CMYK" if picture.space == "cmyk" else None
    pages = [image_module.fromarray(page, mode) for page in (pixels if picture.pages else [pixels])]
    told: dict[str, Any] = dict(options)
    if picture.profile:
        told["icc_profile"] = picture.profile
    if kind in _ORIENTED and (exif := _exif(picture)):
        told["exif"] = exif
    if kind in ("jpeg", "png", "bmp") and (dpi := _dpi(picture.about)):
        told["dpi"] = dpi
    if kind == "jpeg":
        told.setdefault("quality", 95)
        told.setdefault("subsampling", 0)
    if kind == "jpeg2000":
        told.setdefault("irreversible", False)
    if kind == "webp":
        told.setdefault("lossless", True)
    if len(pages) > 1:
        if kind not in ("gif", "webp", "png"):
            raise ArgumentTypeError(f"{kind} keeps one page, got {len(pages)}; write TIFF, GIF or .npy")
        durations = [d or 100 for d in picture.about.get("durations", [100] * len(pages))]
        told |= {"save_all": True, "append_images": pages[1:], "duration": durations}
        told["loop"] = picture.about.get("loop", 0)
        if kind == "png" and picture.about.get("default_image"):  # (a still that is no part of the animation)
            told |= {"default_image": True, "duration": durations[1:]}
    # To memory first: on a full disk Pillow's encoders cut JPEG and BMP short without a word, and JPEG 2000's
    # tries for ever.
    encoded = io.BytesIO()
    pages[0].save(encoded, {"jpeg2000": "JPEG2000"}.get(kind, kind.upper()), **told)
    path.write_bytes(encoded.getbuffer())


# Colours of 16 bits, which Pillow would cut to 8 or read without opacity, by the pixel formats of FFmpeg.
_DEEP = {"rgb48": RGB, "ya16": ("grey", ALPHA[0]), "rgba64": (*RGB, ALPHA[0])}


def _deep_jpeg2000(path: Path, kind: str) -> bool:
    """Whether a JPEG 2000 file has several channels of more than 8 bits."""
    if kind != "jpeg2000":
        return False
    data = path.read_bytes()
    place = data.find(b"\xff\x4f\xff\x51")
    channels, depth = struct.unpack_from(">HB", data, place + 40)
    return bool(channels > 1 and depth & 0x7F >= 8)


def _deep_pixels(path: Path, kind: str) -> tuple[Array, tuple[str, ...]]:
    av = import_optional("av")
    with av.open(
        io.BytesIO(path.read_bytes()), format={"jpeg2000": "j2k_pipe"}.get(kind, "png_pipe")
    ) as file:
        frame = next(file.decode(video=0))
    name, order = frame.format.name[:-2], frame.format.name[-2:]
    if name not in _DEEP:
        raise FileError(f"cannot read {path}: colours as {frame.format.name} are not known here")
    names = _DEEP[name]
    plane = np.frombuffer(frame.planes[0], ">u2" if order == "be" else "<u2")
    line = frame.planes[0].line_size // 2
    pixels = plane[: line * frame.height].reshape(frame.height, line)[:, : frame.width * len(names)]
    return np.ascontiguousarray(pixels.reshape(frame.height, frame.width, -1).astype(np.uint16)), names


def _write_deep_png(path: Path, pixels: Array, picture: Picture) -> None:
    height, width = pixels.shape[:2]
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[len(picture.channels)]
    rows = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    lines = np.zeros((height, rows.shape[1] + 1), np.uint8)
    lines[:, 0] = 2  # each row as its difference from the one above
    lines[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=lines[1:, 1:])

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    parts = [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0))]
    if picture.profile:
        parts.append(chunk(b"iCCP", b"profile\0\0" + zlib.compress(picture.profile)))
    if dpi := _dpi(picture.about):
        across, down = (round(each / 0.0254) for each in dpi)
        parts.append(chunk(b"pHYs", struct.pack(">IIB", across, down, 1)))
    if exif := _exif(picture):
        parts.append(chunk(b"eXIf", exif.removeprefix(b"Exif\0\0")))
    parts += [chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)), chunk(b"IEND", b"")]
    path.write_bytes(b"".join(parts))


# --- arrays ---------------------------------------------------------------------------------------


def _plain(path: Path, pixels: Array) -> Array:
    if pixels.dtype.kind not in "iufb":
        raise FileError(f"{path} has {pixels.dtype}, and numbers are needed")
    if pixels.ndim < 2:
        raise FileError(f"{path} has an array of shape {pixels.shape}, and a picture has two axes or more")
    return pixels


def _read_npy(path: Path, kind: str, max_pixels: int | None) -> Picture:
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    return picture_from_array(np.array(_plain(path, mapped)), kind)


def _read_npz(path: Path, kind: str, max_pixels: int | None) -> Picture:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
        if not found.files:
            raise FileError(f"{path} has no array in it")
        name = found.files[0]
        if "coeffs" in found.files or any(name.startswith("level") for name in found.files):
            raise FileError(f"{path} has coefficients in it; undula inverse makes a picture of them")
        if len(found.files) > 1:
            raise FileError(f"{path} has {len(found.files)} arrays in it, and one is filtered at a time")
        pixels = found[name]
    made = picture_from_array(_plain(path, pixels), kind)
    made.about["name"] = name
    return made


def _write_npy(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    with path.open("wb") as file:
        np.save(file, _whole(picture), allow_pickle=False)


def _write_npz(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    with path.open("wb") as file:
        named: dict[str, Any] = {picture.about.get("name", "image"): _whole(picture)}
        np.savez_compressed(file, **named)


def _whole(picture: Picture) -> Array:
    shape = picture.about.get("shape")
    if shape is not None and np.prod(shape) == picture.pixels.size:
        return picture.pixels.reshape(shape)
    return picture.pixels


def _read_dicom(path: Path, kind: str, max_pixels: int | None) -> Picture:
    from .dicom import read_dicom

    return read_dicom(path, max_pixels)


def _write_dicom(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    from .dicom import write_dicom

    write_dicom(path, picture)
