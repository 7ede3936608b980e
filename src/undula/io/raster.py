"""Pictures in files: by Pillow, by tifffile, and by FFmpeg's PNG where there are 16 bits and colours."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentTypeError, FileError, UndulaError
from .files import IMAGES, check_size, kind_of, needed, sniffed, written
from .limits import check_declared, check_tiff
from .stored import StoredRange

__all__ = ["Picture", "read", "write"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Picture:
    """Pixels, and what has to come back with them.

    Parameters
    ----------
    pixels : array
        ``(H, W)`` or ``(H, W, channels)``; several pages, frames or volumes have one more axis in front.
    kind : str
        Of the file.
    pages : bool
        Whether the first axis counts pages.
    profile, exif : bytes, optional
        The colour profile, and what a camera wrote, with the orientation.
    about : dict
        Anything else that a format keeps: resolution, durations of frames, a dataset.
    stored : StoredRange, optional
        The values that the file can store, where they are fewer than those of the dtype.
    """

    pixels: Array
    kind: str = ""
    pages: bool = False
    profile: bytes | None = None
    exif: bytes | None = None
    about: dict[str, Any] = field(default_factory=dict)
    stored: StoredRange | None = None

    @property
    def channel_axis(self) -> int | None:
        """The last axis, where it has channels."""
        return self.pixels.ndim - 1 if self.pixels.ndim == 3 + self.pages else None

    @property
    def axes(self) -> tuple[int, int]:
        """Rows and columns."""
        return (int(self.pages), int(self.pages) + 1)

    def with_pixels(self, pixels: Array) -> Picture:
        """The same with other pixels."""
        return replace(self, pixels=pixels)


def read(path: str | Path, max_pixels: int | None = None) -> Picture:
    """A picture from a file: PNG, JPEG, TIFF, BMP, GIF, WebP, JPEG 2000, ``.npy``, ``.npz`` or DICOM.

    What it is, is seen by its content. Files that are broken, or claim to be larger than ``max_pixels``, are
    a :class:`undula.FileError`.
    """
    path = Path(path)
    kind = sniffed(path)
    if kind is None and IMAGES.get(path.suffix.lower()) == "dicom":
        kind = "dicom"
    readers = {"tiff": _read_tiff, "npy": _read_npy, "npz": _read_npz, "dicom": _read_dicom}
    if kind == "video":
        raise FileError(f"{path} is a video, and a picture is needed here")
    if kind is None:
        raise FileError(f"{path} is no kind of file that is known here")
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
    JPEG, is an error, and nothing is written.
    """
    path = Path(path)
    own = picture if isinstance(picture, Picture) else Picture(np.asarray(picture))
    kind = kind_of(path, own.kind, own.about.get("suffix", ""))
    writers = {"tiff": _write_tiff, "npy": _write_npy, "npz": _write_npz, "dicom": _write_dicom}
    if kind == "video":
        raise FileError(f"{path} would be a video, and this is a picture")
    with written(path) as beside:
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
    image_module = needed("PIL.Image")
    image_module.MAX_IMAGE_PIXELS = None  # (there is a limit of our own)
    if kind == "png":
        depth, colors = _png_depth(path)
        if depth == 16 and colors in (2, 4, 6):
            return _read_deep_png(path, colors, max_pixels)
    with image_module.open(path) as image:
        frames = int(getattr(image, "n_frames", 1))
        check_size(path, image.width * image.height * frames, max_pixels)
        info = dict(image.info)
        exif = image.getexif().tobytes() if kind in ("jpeg", "png", "webp") and len(image.getexif()) else None
        pages, durations = [], []
        for number in range(frames):
            if frames > 1:
                image.seek(number)
            pages.append(_pixels(image))
            durations.append(image.info.get("duration"))
    several = frames > 1
    shapes = {page.shape for page in pages}
    if len(shapes) > 1:  # (some frames have colours of their own)
        pages = [_as_rgba(page) for page in pages]
    pixels = np.stack(pages) if several else pages[0]
    about = {key: info[key] for key in ("dpi", "loop", "lossless") if key in info}
    if several:
        about["durations"] = durations
    return Picture(pixels, kind, several, info.get("icc_profile"), exif, about)


def _pixels(image: Any) -> Array:
    """The pixels of an image of Pillow's, whatever its mode."""
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA" if "transparency" in image.info or image.mode == "PA" else "RGB")
    elif image.mode == "1":
        image = image.convert("L")
    elif image.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
        image = image.convert("RGB")
    elif image.mode == "LA":
        image = image.convert("RGBA")
    elif image.mode in ("I;16B", "I;16L", "I;16N"):
        image = image.convert("I;16")
    pixels = np.asarray(image)
    if image.mode == "I" and pixels.min() >= 0 and pixels.max() < 65536:
        pixels = pixels.astype(np.uint16)
    if pixels.dtype.kind not in "iuf":
        raise FileError(f"a picture of mode {image.mode!r} is not known here")
    return np.ascontiguousarray(pixels)


def _as_rgba(page: Array) -> Array:
    if page.ndim == 2:
        page = np.repeat(page[..., None], 3, axis=2)
    if page.shape[2] == 3:
        page = np.concatenate([page, np.full((*page.shape[:2], 1), 255, page.dtype)], axis=2)
    return page


def _write_pillow(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    image_module = needed("PIL.Image")
    pixels = picture.pixels
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * 255
    deep = pixels.dtype == np.uint16
    if pixels.dtype not in (np.uint8, np.uint16) or (deep and kind not in ("png", "jpeg2000")):
        raise ArgumentTypeError(
            f"{kind} keeps 8 bits{' or 16' if kind in ('png', 'jpeg2000') else ''}, got {pixels.dtype}; write"
            " TIFF or .npy, or convert it"
        )
    channels = picture.channel_axis
    if channels is not None and pixels.shape[channels] not in (1, 3, 4):
        raise ArgumentTypeError(f"{kind} keeps 1, 3 or 4 channels, got {pixels.shape[channels]}")
    if deep and channels is not None:
        if kind == "png":
            _write_deep_png(path, pixels, picture)
            return
        raise ArgumentTypeError(f"{kind} keeps colours of 8 bits here, got {pixels.dtype}; write TIFF or PNG")
    pages = [image_module.fromarray(page) for page in (pixels if picture.pages else [pixels])]
    if kind in ("jpeg", "bmp") and pages[0].mode == "RGBA":
        raise ArgumentTypeError(f"{kind} keeps no opacity; write PNG, TIFF or WebP")
    told: dict[str, Any] = dict(options)
    if picture.profile:
        told["icc_profile"] = picture.profile
    if picture.exif and kind in ("jpeg", "png", "webp"):
        told["exif"] = picture.exif
    if "dpi" in picture.about and kind in ("jpeg", "png", "bmp"):
        told["dpi"] = picture.about["dpi"]
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
    # To memory first: on a full disk Pillow's encoders cut JPEG and BMP short without a word, and JPEG 2000's
    # tries for ever.
    encoded = io.BytesIO()
    pages[0].save(encoded, {"jpeg2000": "JPEG2000"}.get(kind, kind.upper()), **told)
    path.write_bytes(encoded.getbuffer())


# PNG with 16 bits and colours, which Pillow would cut to 8.
_DEEP = {2: ("rgb48be", 3), 4: ("ya16be", 2), 6: ("rgba64be", 4)}


def _read_deep_png(path: Path, colors: int, max_pixels: int | None) -> Picture:
    av = needed("av")
    name, channels = _DEEP[colors]
    with path.open("rb") as file:
        data = file.read()
    width, height = struct.unpack(">II", data[16:24])
    check_size(path, width * height, max_pixels)
    with av.open(io.BytesIO(data), format="png_pipe") as container:
        frame = next(container.decode(video=0))
        if frame.format.name != name:
            frame = frame.reformat(format=name)
    plane = np.frombuffer(frame.planes[0], ">u2")
    line = frame.planes[0].line_size // 2
    pixels = plane[: line * height].reshape(height, line)[:, : width * channels]
    pixels = np.ascontiguousarray(pixels.reshape(height, width, channels).astype(np.uint16))
    profile = None
    with needed("PIL.Image").open(path) as image:
        profile = image.info.get("icc_profile")
    if channels == 2:
        pixels = np.concatenate([np.repeat(pixels[..., :1], 3, axis=2), pixels[..., 1:]], axis=2)
    return Picture(pixels, "png", profile=profile)


def _write_deep_png(path: Path, pixels: Array, picture: Picture) -> None:
    import zlib

    height, width, channels = pixels.shape
    if channels == 1:
        pixels, channels = pixels[..., 0], 1
    kind = {1: 0, 3: 2, 4: 6}[channels]
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
    parts += [chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)), chunk(b"IEND", b"")]
    path.write_bytes(b"".join(parts))


# --- TIFF -----------------------------------------------------------------------------------------


def _read_tiff(path: Path, kind: str, max_pixels: int | None) -> Picture:
    tifffile = needed("tifffile")
    with tifffile.TiffFile(path) as file:
        if not file.series:
            raise FileError(f"{path} has no pictures in it")
        series = file.series[0]
        page = series.keyframe
        if len(file.series) > 1 and not _thumbnails(file.series):
            raise FileError(
                f"{path} has pictures of {len(file.series)} kinds, and one is filtered at a time; split them"
            )
        colors = str(getattr(page.photometric, "name", page.photometric))
        if colors not in ("MINISBLACK", "MINISWHITE", "RGB"):  # (palettes, CMYK and others become RGB)
            if len(series.pages) > 1:
                raise FileError(f"{path} has pages in colours of {colors}, which are not known here")
            return _read_pillow(path, kind, max_pixels)
        check_tiff(path, series, max_pixels)
        # (A decoder that is not installed says so by an error of its own.)
        pixels = series.asarray()
        if pixels.dtype.kind not in "iufb":
            raise FileError(f"cannot read {path}: pixels of {pixels.dtype} are not known here")
        tags = page.tags
        about: dict[str, Any] = {}
        for name in ("XResolution", "YResolution", "ResolutionUnit", "Orientation", "ImageDescription"):
            if name in tags:
                about[name] = tags[name].value
        if colors == "MINISWHITE":
            about["photometric"] = "miniswhite"
        profile = tags["InterColorProfile"].value if "InterColorProfile" in tags else None
        planar = page.samplesperpixel > 1 and int(page.planarconfig) == 2
    if planar:
        pixels = np.moveaxis(pixels, pixels.ndim - 3, -1)
    color = page.samplesperpixel > 1
    pages = pixels.ndim - color > 2
    if pages:
        pixels = pixels.reshape(-1, *pixels.shape[pixels.ndim - 2 - color :])
    return Picture(np.ascontiguousarray(pixels), kind, pages, profile, None, about)


def _thumbnails(series: Any) -> bool:
    """Whether all but the first are smaller copies of it."""
    return all(bool(getattr(other.keyframe, "is_reduced", False)) for other in series[1:])


def _write_tiff(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    tifffile = needed("tifffile")
    pixels, about = picture.pixels, picture.about
    told: dict[str, Any] = {"compression": options.pop("compression", "zlib"), "metadata": None}
    channels = picture.channel_axis
    told["photometric"] = "rgb" if channels is not None and pixels.shape[channels] in (3, 4) else "minisblack"
    if channels is None and about.get("photometric"):
        told["photometric"] = about["photometric"]
    if channels is not None and pixels.shape[channels] == 4:
        told["extrasamples"] = ["unassalpha"]
    text = about.get("ImageDescription")
    if isinstance(text, str) and text.isascii() and not text.startswith(("<?xml", "ImageJ=", "{")):
        told["description"] = text
    if picture.profile:
        told["iccprofile"] = picture.profile
    if "Orientation" in about:
        told["extratags"] = [(274, "H", 1, int(about["Orientation"]), True)]
    if "XResolution" in about and "YResolution" in about:
        told["resolution"] = (_ratio(about["XResolution"]), _ratio(about["YResolution"]))
        told["resolutionunit"] = int(about.get("ResolutionUnit", 2))
    tifffile.imwrite(path, pixels, **told)


def _ratio(value: Any) -> float:
    return value[0] / value[1] if isinstance(value, tuple) else float(value)


# --- arrays ---------------------------------------------------------------------------------------


def _plain(path: Path, pixels: Array) -> Array:
    if pixels.dtype.kind not in "iufb":
        raise FileError(f"{path} has {pixels.dtype}, and numbers are needed")
    if pixels.ndim < 2:
        raise FileError(f"{path} has an array of shape {pixels.shape}, and a picture has two axes or more")
    return pixels


def _array(path: Path, pixels: Array, kind: str) -> Picture:
    color = pixels.ndim >= 3 and pixels.shape[-1] in (3, 4)
    pages = pixels.ndim - color > 2
    if pages:
        shape = pixels.shape
        pixels = pixels.reshape(-1, *shape[len(shape) - 2 - color :])
        return Picture(pixels, kind, True, about={"shape": shape})
    return Picture(pixels, kind)


def _read_npy(path: Path, kind: str, max_pixels: int | None) -> Picture:
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    return _array(path, np.array(_plain(path, mapped)), kind)


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
    made = _array(path, _plain(path, pixels), kind)
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
