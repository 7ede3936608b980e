"""What a video file contains besides its samples, and what is missing from a copy of it.

    source ─▶ Contents ─▶ expected ┐
    copy ─▶ read again ─▶ Contents ┴▶ losses, in words

Muxers ignore what they cannot store without an error. So the copy is read again, and compared.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Contents",
    "decoded_tags",
    "hdr_parameters",
    "losses",
    "quicktime_language",
    "timecode",
    "valid_tags",
]

# Tags that describe the file that they are in, and are wrong in a copy; timecodes are treated apart.
STALE_TAGS = (
    "ENCODER SOFTWARE VENDOR_ID MAJOR_BRAND MINOR_VERSION COMPATIBLE_BRANDS DURATION BPS NUMBER_OF_FRAMES"
    " NUMBER_OF_BYTES NAME ALPHA_MODE OPERATIONAL_PATTERN_UL UID GENERATION_UID COMPANY_NAME PRODUCT_NAME"
    " PRODUCT_VERSION PRODUCT_VERSION_NUM PRODUCT_UID APPLICATION_PLATFORM TOOLKIT_VERSION_NUM"
    " MODIFICATION_DATE MATERIAL_PACKAGE_UMID FILE_PACKAGE_UMID FILE_PACKAGE_NAME TIMECODE"
).split()
STREAM_TAGS = ("title", "language")  # Tags of streams that are compared; others are rarely set by people.
UNSPECIFIED_COLORS = (0, 2)  # Reserved, or unspecified.
COLOR_ATTRIBUTES = {
    "color_primaries": "colour primaries",
    "color_trc": "the transfer function",
    "colorspace": "the colour matrix",
}
HDR_NAMES = {
    "MASTERING_DISPLAY_METADATA": "the mastering display",
    "CONTENT_LIGHT_LEVEL": "the content light level",
    "DYNAMIC_HDR_PLUS": "HDR10+ metadata",
    "DOVI_METADATA": "Dolby Vision metadata",
    "DYNAMIC_HDR_VIVID": "HDR Vivid metadata",
    "ICC_PROFILE": "the colour profile",
}
# Languages with two codes in ISO 639-2; QuickTime knows one of them, which comes first.
LANGUAGE_CODES = (
    "alb/sqi arm/hye baq/eus bur/mya ces/cze chi/zho dut/nld fra/fre geo/kat ger/deu gre/ell ice/isl mac/mkd"
    " may/msa per/fas ron/rum slk/slo tib/bod wel/cym"
).split()
UNSET_DATES = ("1904-01-01", "1970-01-01")  # A date of 0 in MP4.
CHROMATICITY_UNIT = 50_000  # Of H.264 and HEVC, 1 / 0.00002.
LUMINANCE_UNIT = 10_000  # 1 / 0.0001 cd/m².


def _decoded_tag(tag: str) -> str:
    """Return a tag without surrogates; bytes that are not UTF-8, as in old AVI files, are Latin-1."""
    data = tag.encode("utf-8", "surrogateescape")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def decoded_tags(metadata: dict[str, str]) -> dict[str, str]:
    """Return all tags as text that can be encoded."""
    return {_decoded_tag(key): _decoded_tag(value) for key, value in metadata.items()}


def valid_tags(metadata: dict[str, str]) -> dict[str, str]:
    """Return the tags that are valid in a copy; MP4 calls the title of a stream its name."""
    metadata = decoded_tags(metadata)
    tags = {
        key: value
        for key, value in metadata.items()
        if key.partition("-")[0].upper() not in STALE_TAGS and not key.startswith("_STATISTICS")
    }
    return {"title": metadata["name"]} | tags if "name" in metadata else tags


def timecode(container: Any, streams: Iterable[Any]) -> str:
    """Return the timecode of the first frame, which is a tag of the file or of a stream; "" without one."""
    for metadata in (container.metadata, *(stream.metadata for stream in streams)):
        for name, value in decoded_tags(metadata).items():
            if name.lower() == "timecode":
                return value
    return ""


def quicktime_language(code: str) -> str:
    """Return the code of a language that QuickTime knows, if there are two."""
    return next((codes[:3] for codes in LANGUAGE_CODES if code in codes.split("/")), code)


def _side_data(frame: Any) -> dict[str, bytes]:
    """Return the side data of a frame by name; PyAV fails if it has no name for one of them."""
    try:
        return {data.type.name: bytes(data) for data in frame.side_data}
    except ValueError:
        return {}


@dataclass(frozen=True)
class Contents:
    """What a file contains besides samples: tags, chapters, the tags of streams, and colours.

    Attributes
    ----------
    tags : dict
        Of the file.
    chapters : int
        The number of chapters.
    streams : dict
        The values of a tag in all streams, by name of the tag.
    colors : dict
        What describes the colours of the first frame, by attribute or name of its side data.
    timecode : str
        Of the first frame.
    """

    tags: dict[str, str]
    chapters: int
    streams: dict[str, list[str]]
    colors: dict[str, Any]
    timecode: str = ""

    @classmethod
    def of(cls, container: Any, streams: Iterable[Any], frame: Any, chapters: int) -> Contents:
        """Return the contents of an open container; ``frame`` is the first one of its main stream."""
        streams = list(streams)
        tags = [valid_tags(stream.metadata) for stream in streams]
        values = {
            name: [each[name] for each in tags if each.get(name, "und") not in ("", "und")]
            for name in STREAM_TAGS
        }
        colors = {name: getattr(frame, name) for name in COLOR_ATTRIBUTES}
        colors = {name: value for name, value in colors.items() if value not in UNSPECIFIED_COLORS}
        colors |= {name: data for name, data in _side_data(frame).items() if name in HDR_NAMES}
        return cls(valid_tags(container.metadata), chapters, values, colors, timecode(container, streams))


def losses(expected: Contents, copy: Contents) -> list[str]:
    """Name what is missing from a copy."""
    values = set(copy.tags.values())
    tags = sorted(
        name.lower()
        for name, value in expected.tags.items()
        if value and value not in values and not value.startswith(UNSET_DATES)
    )
    missing = [f"tags ({', '.join(tags)})"] if tags else []
    if copy.chapters < expected.chapters:
        missing.append("chapters")
    for name, title in (("title", "titles of streams"), ("language", "languages")):
        before, after = (Counter(map(quicktime_language, each.streams[name])) for each in (expected, copy))
        absent = [value for value in expected.streams[name] if quicktime_language(value) in before - after]
        if absent:
            missing.append(f"{title} ({', '.join(dict.fromkeys(absent))})")
    if expected.timecode and not copy.timecode:
        missing.append(f"the timecode ({expected.timecode})")
    for name, title in (COLOR_ATTRIBUTES | HDR_NAMES).items():
        if name in expected.colors and name not in copy.colors:
            missing.append(title)
    return missing


def hdr_parameters(encoder: str, frame: Any) -> dict[str, str]:
    """Return the options by which an encoder stores the mastering display and the content light level.

    PyAV cannot pass side data of a frame to an encoder, which three encoders also take as text.
    """
    data = _side_data(frame)
    display = data.get("MASTERING_DISPLAY_METADATA", b"")
    light = data.get("CONTENT_LIGHT_LEVEL", b"")
    names = {
        "libx264": ("x264-params", "mastering-display", "cll"),
        "libx265": ("x265-params", "master-display", "max-cll"),
        "libsvtav1": ("svtav1-params", "mastering-display", "content-light"),
    }
    if encoder not in names:
        return {}
    option, display_name, light_name = names[encoder]
    parameters = []
    # AVMasteringDisplayMetadata: the primaries, the white point and the luminances as fractions, and flags.
    if len(display) >= 88 and all(struct.unpack_from("2i", display, 80)):
        numbers = struct.unpack_from("20i", display)
        fractions = [numbers[k] / (numbers[k + 1] or 1) for k in range(0, 20, 2)]
        parameters.append(f"{display_name}={_display_text(encoder, fractions)}")
    if len(light) >= 8:
        parameters.append("{}={},{}".format(light_name, *struct.unpack_from("2I", light)))
    if parameters and encoder == "libx265":
        parameters.append("hdr10=1")
    return {option: ":".join(parameters)} if parameters else {}


def _display_text(encoder: str, fractions: Sequence[float]) -> str:
    """Write a mastering display as encoders read it: green, blue, red, white, and luminances."""
    red, green, blue, white = (fractions[k : k + 2] for k in range(0, 8, 2))
    darkest, brightest = fractions[8:]
    if encoder == "libsvtav1":
        points = [f"{x:.6f},{y:.6f}" for x, y in (green, blue, red, white)]
        luminances = f"{brightest:.4f},{darkest:.4f}"
    else:
        units = [(x * CHROMATICITY_UNIT, y * CHROMATICITY_UNIT) for x, y in (green, blue, red, white)]
        points = [f"{x:.0f},{y:.0f}" for x, y in units]
        luminances = f"{brightest * LUMINANCE_UNIT:.0f},{darkest * LUMINANCE_UNIT:.0f}"
    named = zip(("G", "B", "R", "WP", "L"), (*points, luminances), strict=True)
    return "".join(f"{name}({value})" for name, value in named)
