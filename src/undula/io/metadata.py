"""Metadata of photographs: EXIF, XMP, IPTC, colour profiles and texts, and which formats store them.

    file ──read_*──▶ fields of Picture ──pillow_options, tiff_tags──▶ file

EXIF data are kept byte for byte where a format stores them as a block, because the notes of camera makers
contain offsets into it. TIFF, and raw files that are TIFF, have tags instead: the block is built from them or
divided into them, without those notes.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .derivation import has_overlays, stale_parts
from .files import import_optional
from .limits import has_uuid_boxes
from .picture import ORIENTATION_TAG, Picture

__all__ = [
    "STORED",
    "caption",
    "exif_block",
    "exif_resolution",
    "lost_metadata",
    "pillow_metadata",
    "pillow_options",
    "pillow_resolution",
    "png_info",
    "resolution_per_inch",
    "tiff_exif",
    "tiff_metadata",
    "tiff_tags",
    "write_tiff_directories",
]

EXIF_PREFIX, EXIF_HEADER = b"Exif\0\0", b"II*\0\x08\0\0\0"
MAX_SEGMENT_BYTES = 65_500  # of JPEG, without the longest name of a segment's content
IPTC_RESOURCE = 0x0404  # among Photoshop's image resources
PATH_RESOURCES = range(2000, 2998)
EXIF_DIRECTORY, GPS_DIRECTORY, INTEROP_DIRECTORY, MAKER_NOTE = 34665, 34853, 40965, 37500
X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT = 282, 283, 296
DESCRIPTION, SOFTWARE = 270, 305
XMP_TAG, IPTC_TAG, LAYERS_TAG = 700, 33723, 37724
# Description, make, model, software, date, artist and copyright; other tags of a TIFF describe its pixels.
DESCRIPTIVE_TAGS = (DESCRIPTION, 271, 272, SOFTWARE, 306, 315, 33432)
STRUCTURED = ("<?xml", "ImageJ=", "{")  # Starts of descriptions that contain the shape of the pixels.

COMMENT, CAPTION = "Comment", "Description"  # Keywords of PNG texts that other formats store, too.
_PNG_XMP = "XML:com.adobe.xmp"
_PNG_PROFILE = "Raw profile type "
_PHOTO = ("EXIF", "XMP", "colour profile", "resolution")
# What the formats store; `texts` are all keywords of PNG.
STORED: dict[str, tuple[str, ...]] = {
    "jpeg": (*_PHOTO, "IPTC", COMMENT),
    "png": (*_PHOTO, "IPTC", "texts"),
    "tiff": (*_PHOTO, "IPTC", CAPTION),
    "webp": _PHOTO,
    "avif": _PHOTO,
    "heif": _PHOTO,
    "gif": (COMMENT,),
    "bmp": ("resolution",),
    "jpeg2000": (COMMENT,),
}


def lost_metadata(picture: Picture, kind: str) -> tuple[str, ...]:
    """Name what a file of some kind does not keep of a picture, including what was not read."""
    stored = STORED.get(kind, ())
    parts = {
        # Formats without EXIF data have upright pixels, which need no orientation.
        "EXIF": picture.exif if set(_parse_exif(picture.exif)[0]) != {ORIENTATION_TAG} else None,
        "XMP": picture.xmp,
        "IPTC": picture.iptc,
        "colour profile": picture.profile and not _is_srgb(picture.profile),  # Without one, sRGB is assumed.
        "resolution": resolution_per_inch(picture.about) if "EXIF" in stored or not picture.exif else None,
    }
    lost = [name for name, value in parts.items() if value and name not in stored]
    if kind == "jpeg":
        lost += [
            f"{name} of more than 64 kB" for name in ("EXIF", "XMP", "IPTC") if not _fits_jpeg(parts[name])
        ]
    if kind == "tiff" and picture.exif and MAKER_NOTE in _parse_exif(picture.exif).get(EXIF_DIRECTORY, ()):
        lost.append("maker notes")
    texts = [name for name in picture.texts if not {name, "texts"} & set(stored)]
    if texts:
        lost.append(f"text ({', '.join(texts)})")
    has_shape = kind not in ("npy", "npz") or "shape" in picture.about
    if not has_shape and picture.stack is not None and len(picture.stack.names) > 2 + picture.pages:
        lost.append(f"axes {picture.stack.names}")
    if kind == "dicom":
        lost += stale_parts(picture.about["dataset"])
    elif "dataset" in picture.about:
        lost.append("DICOM header")
        dataset = picture.about["dataset"]
        if has_overlays(dataset):
            lost.append("overlays")
        slope, intercept = dataset.get("RescaleSlope") or 1, dataset.get("RescaleIntercept") or 0
        if (float(slope), float(intercept)) != (1, 0):
            lost.append("rescale of stored values")
    return (*picture.lost, *lost)


def _is_srgb(profile: bytes) -> bool:
    cms = import_optional("PIL.ImageCms")
    try:
        return "sRGB" in cms.getProfileDescription(cms.ImageCmsProfile(io.BytesIO(profile)))
    except (cms.PyCMSError, OSError):
        return False


def _fits_jpeg(data: Any) -> bool:
    return not data or len(data) <= MAX_SEGMENT_BYTES


# --- EXIF -----------------------------------------------------------------------------------------


def _directories(file: BinaryIO, header: bytes, offset: int) -> dict[int, Any]:
    """Read the directories of a TIFF file, or of EXIF data: by the tag that refers to them, the first by 0.

    They are Pillow's ``ImageFileDirectory_v2``, which knows the types of the tags.
    """
    create = import_optional("PIL.TiffImagePlugin").ImageFileDirectory_v2
    directories = {0: create(header)}
    file.seek(offset)
    directories[0].load(file)
    for code in (EXIF_DIRECTORY, GPS_DIRECTORY):
        if code in directories[0]:
            directories[code] = create(header, group=code)
            file.seek(int(directories[0][code]))
            directories[code].load(file)
    return directories


def _parse_exif(exif: bytes | None) -> dict[int, Any]:
    """Read the directories of EXIF data; nothing is known of data that cannot be read."""
    block = (exif or b"").removeprefix(EXIF_PREFIX)
    try:
        order = "<" if block[:2] == b"II" else ">"
        (offset,) = struct.unpack_from(f"{order}I", block, 4)
        struct.unpack_from(f"{order}H", block, offset)  # Pillow would warn of a directory beyond the end.
        return _directories(io.BytesIO(block), block[:8], offset)
    except (SyntaxError, ValueError, TypeError, OSError, struct.error):
        return {0: {}}


def _copy_directory(source: Any, header: bytes, group: int, without: Collection[int] = ()) -> Any:
    """Copy a directory to the byte order of a header, with the types of its tags."""
    copy = import_optional("PIL.TiffImagePlugin").ImageFileDirectory_v2(header, group=group or None)
    for tag in source:
        if tag not in (*without, INTEROP_DIRECTORY, EXIF_DIRECTORY, GPS_DIRECTORY):
            copy.tagtype[tag] = source.tagtype[tag]
            value = source[tag]
            # Pillow decodes texts as Latin-1, and encodes them as ASCII.
            copy[tag] = value.encode("latin-1") if isinstance(value, str) else value
    return copy


def _encode_exif(directories: dict[int, Any]) -> bytes | None:
    """Encode directories as EXIF data; None if they are empty."""
    if not any(directories.values()):
        return None
    main, *others = (_copy_directory(each, EXIF_HEADER, code) for code, each in directories.items())
    for directory in others:
        main[directory.group] = 0
    offset = len(EXIF_HEADER) + len(main.tobytes(len(EXIF_HEADER)))
    parts = []
    for directory in others:
        main[directory.group] = offset
        parts.append(directory.tobytes(offset))
        offset += len(parts[-1])
    return b"".join([EXIF_PREFIX, EXIF_HEADER, main.tobytes(len(EXIF_HEADER)), *parts])


def exif_block(picture: Picture, kind: str) -> bytes | None:
    """Return the EXIF data with the orientation and, where the format has no other place, the resolution."""
    exif = picture.exif
    main = _parse_exif(exif)[0]
    changes: dict[int, Any] = {}
    if main.get(ORIENTATION_TAG, 1) != picture.orientation:
        changes[ORIENTATION_TAG] = picture.orientation
    dpi = resolution_per_inch(picture.about)
    if dpi and X_RESOLUTION not in main and kind in ("webp", "avif", "heif"):
        changes |= {X_RESOLUTION: dpi[0], Y_RESOLUTION: dpi[1], RESOLUTION_UNIT: 2}
    if set(changes) == {ORIENTATION_TAG} and ORIENTATION_TAG in main:
        exif = _with_orientation(exif or b"", picture.orientation)
    elif changes:
        directories = _parse_exif(exif)
        directories[0] = _copy_directory(directories[0], EXIF_HEADER, 0)
        directories[0].update(changes)
        exif = _encode_exif(directories)
    # Pillow would encode the block anew to move the orientation of AVIF; the pixels are upright instead.
    return _with_orientation(exif, None) if exif and kind == "avif" else exif


def _with_orientation(exif: bytes, orientation: int | None) -> bytes:
    """Replace the orientation, or remove its tag, in place: all offsets in the block remain valid."""
    block = bytearray(exif)
    start = len(EXIF_PREFIX) if exif.startswith(EXIF_PREFIX) else 0
    order = "<" if exif[start : start + 2] == b"II" else ">"
    try:
        directory = start + struct.unpack_from(f"{order}I", block, start + 4)[0]
        (count,) = struct.unpack_from(f"{order}H", block, directory)
        end = directory + 2 + 12 * count
        for entry in range(directory + 2, end, 12):
            if struct.unpack_from(f"{order}H", block, entry)[0] != ORIENTATION_TAG:
                continue
            if orientation is not None:
                struct.pack_into(f"{order}H", block, entry + 8, orientation)
            else:
                struct.pack_into(f"{order}H", block, directory, count - 1)
                block[entry : end + 4] = block[entry + 12 : end + 4].ljust(end + 4 - entry, b"\0")
            break
    except struct.error:
        pass
    return bytes(block)


def caption(picture: Picture) -> str | None:
    """Return the description of a picture, from its EXIF data or its texts."""
    text = _parse_exif(picture.exif)[0].get(DESCRIPTION)
    return _decode(text.encode("latin-1")) if isinstance(text, str) else picture.texts.get(CAPTION)


def resolution_per_inch(about: dict[str, Any]) -> tuple[float, float] | None:
    """Return the horizontal and vertical resolution in pixels per inch."""
    if "dpi" in about:
        return tuple(about["dpi"])
    if about.get("unit") not in (2, 3) or "resolution" not in about:
        return None
    scale = 2.54 if about["unit"] == 3 else 1.0
    ratios = [value if isinstance(value, tuple) else (value, 1) for value in about["resolution"]]
    if not all(map(all, ratios)):
        return None
    x, y = (scale * numerator / denominator for numerator, denominator in ratios)
    return x, y


def exif_resolution(exif: bytes | None) -> dict[str, Any]:
    """Return the resolution in EXIF data as an entry of ``Picture.about``."""
    main = _parse_exif(exif)[0]
    scale = {2: 1.0, 3: 2.54}.get(main.get(RESOLUTION_UNIT, 2))
    values = [main.get(tag) for tag in (X_RESOLUTION, Y_RESOLUTION)]
    if scale is None or not all(values):
        return {}
    return {"dpi": tuple(scale * float(value) for value in values)}


# --- Pillow ---------------------------------------------------------------------------------------


def pillow_metadata(image: Any, kind: str, decoded: bool = True) -> dict[str, Any]:
    """Return the fields of a Picture that describe an image opened by Pillow.

    Unless it has been decoded, texts after the pixels of a PNG are left out.
    """
    info, texts = image.info, {}
    exif = info.get("exif") if kind in ("jpeg", "png", "webp", "avif") else None
    xmp, iptc, lost = info.get("xmp"), None, []
    if kind == "png":
        texts = {
            key: value for key, value in (image.text if decoded else info).items() if isinstance(value, str)
        }
        xmp = texts.pop(_PNG_XMP, "").encode() or xmp
        profiles = {key: texts.pop(key) for key in list(texts) if key.startswith(_PNG_PROFILE)}
        if exif is None and decoded and f"{_PNG_PROFILE}exif" in profiles:
            exif = image.getexif().tobytes()
        for name in ("iptc", "8bim"):
            iptc = iptc or _iptc_from_resources(_from_raw_profile(profiles.get(_PNG_PROFILE + name, "")))
    elif "comment" in info and not info["comment"].startswith(b"Created by OpenJPEG"):
        texts[COMMENT] = _decode(info["comment"])
    if kind == "jpeg":
        resources = info.get("photoshop", {})
        iptc = resources.get(IPTC_RESOURCE)
        lost = list(_lost_from_jpeg(image, resources, xmp or b""))
    if kind == "jpeg2000" and has_uuid_boxes(Path(image.filename)):
        lost.append("EXIF, XMP or IPTC of JPEG 2000")
    if isinstance(xmp, str):
        xmp = xmp.encode()
    if exif and not exif.startswith(EXIF_PREFIX):
        exif = EXIF_PREFIX + exif
    orientation = _parse_exif(exif)[0].get(ORIENTATION_TAG, 1)
    return {
        "profile": info.get("icc_profile"),
        "exif": exif or None,
        "orientation": orientation if orientation in range(1, 9) else 1,
        "xmp": xmp or None,
        "iptc": iptc or None,
        "texts": {key: value for key, value in texts.items() if value},
        "lost": tuple(lost),
    }


def pillow_resolution(image: Any, kind: str, exif: bytes | None) -> dict[str, Any]:
    """Return the resolution of an image as an entry of ``Picture.about``."""
    # Pillow assumes 72 dpi for a JPEG with EXIF data that do not contain the resolution.
    if "dpi" in image.info and (kind != "jpeg" or image.info.get("jfif_unit")):
        return {"dpi": image.info["dpi"]}
    return exif_resolution(exif)


def _decode(text: bytes | str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        return text.rstrip(b"\0").decode("latin-1")


def _lost_from_jpeg(image: Any, resources: Any, xmp: bytes) -> Iterator[str]:
    """Name the parts of a JPEG file that are not read."""
    if b"hdrgm:" in xmp or b"HDRGainMap" in xmp:
        yield "HDR gain map"
    elif (count := int(getattr(image, "n_frames", 1)) - 1) > 0:
        yield f"{count} further image{'s' if count > 1 else ''}"
    if b"MotionPhoto" in xmp or b"MicroVideo" in xmp:
        yield "video of the motion photo"
    if any(data.startswith(b"http://ns.adobe.com/xmp/extension/") for _, data in image.applist):
        yield "extended XMP"
    if any(number in PATH_RESOURCES for number in resources):
        yield "clipping paths"


def pillow_options(picture: Picture, kind: str) -> dict[str, Any]:
    """Return the options of Pillow's encoder that store the metadata of a picture."""
    stored = STORED.get(kind, ())
    options: dict[str, Any] = {}
    if picture.profile:
        options["icc_profile"] = picture.profile
    dpi = resolution_per_inch(picture.about)
    if kind in ("jpeg", "png", "bmp") and dpi:
        options["dpi"] = dpi
    if "EXIF" in stored and (exif := exif_block(picture, kind)):
        options["exif"] = exif
    if kind == "png":
        options["pnginfo"] = png_info(picture)
    elif "XMP" in stored and picture.xmp:
        options["xmp"] = picture.xmp
    if COMMENT in stored and picture.texts.get(COMMENT):
        options["comment"] = picture.texts[COMMENT].encode()
    if kind == "jpeg":
        if picture.iptc and _fits_jpeg(picture.iptc):
            content = b"Photoshop 3.0\0" + _iptc_resource(picture.iptc)
            options["extra"] = b"\xff\xed" + struct.pack(">H", len(content) + 2) + content
        for key in ("exif", "xmp", "comment"):
            if not _fits_jpeg(options.get(key)):
                del options[key]
    return options


def png_info(picture: Picture) -> Any:
    """Return the XMP, the IPTC data, the texts and the description of colours as chunks of a PNG."""
    info = import_optional("PIL.PngImagePlugin").PngInfo()
    if not picture.profile:
        for name, data in picture.about.get("png_colors", ()):
            info.add(name, data)
    if picture.xmp:
        info.add_itxt(_PNG_XMP, picture.xmp.decode("utf-8", "replace"))
    if picture.iptc:
        info.add_text(f"{_PNG_PROFILE}iptc", _to_raw_profile(_iptc_resource(picture.iptc)), zip=True)
    for key, text in picture.texts.items():
        info.add_text(key, text, zip=len(text) > 1024)
    return info


def _from_raw_profile(text: str) -> bytes:
    """Decode a profile that is stored as text: a name, a length, and hexadecimal digits."""
    lines = text.split()
    try:
        return bytes.fromhex("".join(lines[2:]))
    except ValueError:
        return b""


def _to_raw_profile(data: bytes) -> str:
    return f"\niptc\n{len(data):8}\n" + "\n".join(re.findall(".{1,72}", data.hex())) + "\n"


def _iptc_resource(iptc: bytes) -> bytes:
    """Wrap IPTC data in an image resource of Photoshop, as JPEG and PNG store them."""
    return b"8BIM" + struct.pack(">HHI", IPTC_RESOURCE, 0, len(iptc)) + iptc + b"\0" * (len(iptc) % 2)


def _iptc_from_resources(data: bytes) -> bytes | None:
    """Return the IPTC data in a list of image resources, or data that are not in such a list."""
    if not data.startswith(b"8BIM"):
        return data or None
    offset = 0
    while data[offset : offset + 4] == b"8BIM" and offset + 12 <= len(data):
        name_bytes = (data[offset + 6] + 2) // 2 * 2
        start = offset + 6 + name_bytes + 4
        (length,) = struct.unpack_from(">I", data.ljust(start, b"\0"), start - 4)
        if data[offset + 4 : offset + 6] == struct.pack(">H", IPTC_RESOURCE):
            return data[start : start + length] or None
        offset = start + length + length % 2
    return None


# --- TIFF -----------------------------------------------------------------------------------------


def tiff_metadata(path: Path, page: Any) -> dict[str, Any]:
    """Return the fields of a Picture that describe a page opened by tifffile."""

    def raw(code: int) -> bytes | None:
        if code not in page.tags:
            return None
        tag = page.tags[code]
        page.parent.filehandle.seek(tag.valueoffset)
        data: bytes = page.parent.filehandle.read(tag.valuebytecount)
        # IPTC data are often declared as integers of 4 bytes, and padded.
        return data[:-3] + data[-3:].rstrip(b"\0") or None

    exif, has_maker_notes = tiff_exif(path, page)
    lost = ["layers"] if LAYERS_TAG in page.tags else []
    return {
        "exif": exif,
        "xmp": raw(XMP_TAG),
        "iptc": raw(IPTC_TAG),
        "lost": (*lost, *(["maker notes"] if has_maker_notes else [])),
    }


def tiff_exif(path: Path, page: Any) -> tuple[bytes | None, bool]:
    """Build EXIF data from the tags of a page, and return whether maker notes were left out."""
    order, is_big = page.parent.byteorder, page.parent.is_bigtiff
    header = struct.pack(f"{order}2sHI", b"II" if order == "<" else b"MM", 43 if is_big else 42, 8)
    with path.open("rb") as file:
        directories = _directories(file, header.ljust(16 if is_big else 8, b"\0"), page.offset)
    main = directories[0]
    structural = {tag for tag in main if tag not in DESCRIPTIVE_TAGS}
    if str(main.get(DESCRIPTION, "")).startswith(STRUCTURED):
        structural.add(DESCRIPTION)
    if set(main) - structural <= {SOFTWARE}:  # The name of a library says nothing about a photograph.
        structural.add(SOFTWARE)
    directories[0] = _copy_directory(main, EXIF_HEADER, 0, structural)
    has_maker_notes = MAKER_NOTE in directories.get(EXIF_DIRECTORY, ())
    if has_maker_notes:
        del directories[EXIF_DIRECTORY][MAKER_NOTE]
    return _encode_exif(directories), has_maker_notes


def tiff_tags(picture: Picture) -> list[tuple[Any, ...]]:
    """Return the metadata of a picture as tags for tifffile, with empty references to the directories."""
    directories = _parse_exif(picture.exif)
    tags: list[tuple[Any, ...]] = [
        (tag, 2, 0, directories[0][tag].encode("latin-1"), True)
        for tag in sorted(set(DESCRIPTIVE_TAGS) - {DESCRIPTION, SOFTWARE})
        if isinstance(directories[0].get(tag), str)
    ]
    if picture.xmp:
        tags.append((XMP_TAG, 1, len(picture.xmp), picture.xmp, True))
    if picture.iptc:
        tags.append((IPTC_TAG, 7, len(picture.iptc), picture.iptc, True))
    # tifffile refuses to write these tags; write_tiff_directories replaces their successors.
    return tags + [(code + 1, 4, 1, 0, True) for code in directories if code]


def write_tiff_directories(path: Path, picture: Picture) -> None:
    """Append the directories of EXIF and GPS tags to a TIFF file, and refer to them."""
    directories = _parse_exif(picture.exif)
    if len(directories) == 1:
        return
    with import_optional("tifffile").TiffFile(path, mode="r+b") as file:
        stream, order = file.filehandle, file.byteorder
        stream.seek(0)
        header = stream.read(16 if file.is_bigtiff else 8)
        for code in (EXIF_DIRECTORY, GPS_DIRECTORY):
            if code not in directories:
                continue
            offset = stream.seek(0, io.SEEK_END)
            offset += stream.write(b"\0" * (offset % 2))
            stream.write(_copy_directory(directories[code], header, code, (MAKER_NOTE,)).tobytes(offset))
            tag = file.pages.first.tags[code + 1]
            tag.overwrite(offset)
            stream.seek(tag.offset)
            stream.write(struct.pack(f"{order}H", code))
