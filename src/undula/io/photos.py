"""Read HEIC and raw photographs, and write HEIC.

pillow-heif decodes and encodes HEIC, with 8 or 10 bits per sample. LibRaw, called by rawpy, develops raw
files to sRGB with 16 bits. Both packages belong to the extra ``photo``.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentTypeError, FileError, MissingExtraError, install_hint
from .files import check_size, import_optional
from .metadata import EXIF_PREFIX, exif_resolution, pillow_metadata, pillow_options, tiff_exif
from .picture import ALPHA, RGB, Picture

__all__ = ["HDR_CURVES", "check_avif", "is_hdr", "read_heif", "read_raw", "write_heif"]

Array = NDArray[Any]

_CHANNELS = {
    "L": ("grey",),
    "LA": ("grey", ALPHA[0]),
    "RGB": RGB,
    "RGBA": (*RGB, ALPHA[0]),
    "RGBa": (*RGB, ALPHA[1]),
}
# What pillow-heif writes again as it was read: the meaning of the colours, and the brightness of HDR.
_KEPT = (
    "nclx_profile",
    "content_light_level",
    "mastering_display_colour_volume",
    "ambient_viewing_environment",
    "nominal_diffuse_white_luminance",
)
HDR_CURVES = (16, 18)  # The transfer functions PQ and HLG, as H.273 numbers them.


def check_avif() -> None:
    """Raise an error if Pillow was built without AVIF, or is older than its support of AVIF."""
    if not import_optional("PIL.features").check("avif"):
        raise MissingExtraError(f"AVIF needs Pillow 11.3 or later with libavif: {install_hint('photo')}")


def read_heif(path: Path, kind: str, max_pixels: int | None = None) -> Picture:
    """Read the primary image of a HEIC file; one of more than 8 bits as 16 bits."""
    heif = import_optional("pillow_heif", "photo")
    file = heif.open_heif(path, convert_hdr_to_8bit=False)
    image = file[file.primary_index]
    check_size(path, image.size[0] * image.size[1], max_pixels)
    mode = image.mode.partition(";")[0]
    if mode not in _CHANNELS:
        raise FileError(f"cannot read {path}: HEIC images of mode {image.mode} are not supported")
    info = dict(image.info)
    heif.set_orientation(info)  # libheif has turned the pixels upright.
    exif = info.get("exif")
    if exif and not exif.startswith(EXIF_PREFIX):
        exif = EXIF_PREFIX + exif
    about = {"heif": {key: info[key] for key in _KEPT if key in info}, **exif_resolution(exif)}
    return Picture(
        np.array(image),
        kind,
        profile=info.get("icc_profile"),
        exif=exif,
        about=about,
        channels=_CHANNELS[mode],
        xmp=info.get("xmp"),
        lost=tuple(_lost_from_heif(info, len(file))),
    )


def _lost_from_heif(info: dict[str, Any], images: int) -> list[str]:
    """Name the parts of a HEIC file that are not read."""
    names = {name.rpartition(":")[2] for name in info.get("aux", ()) if "alpha" not in name}
    lost = ["HDR gain map" if "gainmap" in name.lower() else f"image {name}" for name in sorted(names)]
    if info.get("depth_images"):
        lost.append("depth map")
    if images > 1:
        lost.append(f"{images - 1} further image{'s' if images > 2 else ''}")
    return lost


def is_hdr(picture: Picture) -> bool:
    """Return whether the colours of a HEIC file are encoded for HDR, which other formats do not declare."""
    return picture.about.get("heif", {}).get("nclx_profile", {}).get("transfer_characteristics") in HDR_CURVES


def write_heif(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    """Write HEIC: 8 bits, or 10 for pixels of 16 bits."""
    heif = import_optional("pillow_heif", "photo")
    if picture.pages:
        raise ArgumentTypeError(
            f"HEIC is written with one page, got {len(picture.pixels)}; write TIFF or .npy"
        )
    pixels = picture.pixels
    if pixels.dtype not in (np.uint8, np.uint16):
        raise ArgumentTypeError(f"HEIC stores 8 or 10 bits, got {pixels.dtype}; write TIFF or .npy")
    if len(picture.channels) == 2:  # Grey with alpha is not encoded.
        pixels = pixels[..., [0, 0, 0, 1]]
    mode = {1: "L", 3: "RGB", 4: "RGBA"}[pixels.shape[-1] if picture.channel_axis is not None else 1]
    if pixels.dtype == np.uint16:
        mode += ";16"
    size = (pixels.shape[1], pixels.shape[0])
    file = heif.from_bytes(mode, size, np.ascontiguousarray(pixels).tobytes())
    metadata = pillow_options(picture, kind)
    file[0].info |= {**picture.about.get("heif", {}), **metadata}
    encoded = io.BytesIO()
    file.save(encoded, **({"quality": 90, "chroma": 444} | options))
    path.write_bytes(encoded.getbuffer())


def read_raw(path: Path, kind: str, max_pixels: int | None = None) -> Picture:
    """Develop a raw file to upright sRGB with 16 bits, with the white balance and exposure of the camera."""
    rawpy = import_optional("rawpy", "photo")
    with rawpy.RawPy() as raw:
        raw.open_file(str(path))
        check_size(path, raw.sizes.width * raw.sizes.height, max_pixels)
        pixels = raw.postprocess(
            rawpy.Params(use_camera_wb=True, output_bps=16, no_auto_bright=True, gamma=(2.4, 12.92))
        )
        exif, has_maker_notes = _raw_exif(path, raw, rawpy)
    if pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    lost = ("maker notes",) if has_maker_notes else ()
    return Picture(pixels, kind, exif=exif, lost=lost)


def _raw_exif(path: Path, raw: Any, rawpy: Any) -> tuple[bytes | None, bool]:
    """Return the EXIF data of a raw file, from its tags or from its preview, without the orientation."""
    tifffile = import_optional("tifffile")
    try:
        with tifffile.TiffFile(path) as file:
            return tiff_exif(path, file.pages.first)
    except (tifffile.TiffFileError, OSError, ValueError, SyntaxError, KeyError):
        pass  # Not all raw files are TIFF.
    try:
        preview = raw.extract_thumb()
        if preview.format == rawpy.ThumbFormat.JPEG:
            with import_optional("PIL.Image").open(io.BytesIO(preview.data)) as image:
                return pillow_metadata(image, "jpeg")["exif"], False
    except (rawpy.LibRawError, OSError):
        pass
    return None, False
