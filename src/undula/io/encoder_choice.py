"""Choose the encoder of a video: one that keeps the depth, chroma resolution, range and alpha of the frames.

It is that of the user, of the source (``"copy-like"``), or the first one of the container that fits.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..errors import ArgumentError, FileError
from .containers import CONTAINERS
from .contents import hdr_parameters
from .conversion import codec_name
from .files import import_optional
from .photos import HDR_CURVES

__all__ = [
    "CONSTANT_RATE",
    "COPY_LIKE",
    "EncoderChoice",
    "check_options",
    "choose_encoder",
    "encoder_options",
    "keeps_aspect",
    "keeps_range",
    "repeatable_options",
]

COPY_LIKE = "copy-like"  # In place of an encoder: one for the codec of the source.
PRESETS = "ultrafast superfast veryfast faster fast medium slow slower veryslow placebo".split()
WORST_QUALITY = 63
# Encoders whose quality is a quantizer.
QUANTIZED = "mpeg4 mjpeg mpeg2video mpeg1video msmpeg4 msmpeg4v2 wmv1 wmv2 h263p flv".split()
CONSTANT_RATE = ("mpeg1video", "mpeg2video")  # Encoders that support only some constant frame rates.
EVEN_SIDES = ("libx264", "libx265")  # Encoders that need an even width and height for subsampled chroma.
FULL_RANGE_IN_STREAM = ("libx264", "libx265", "libvpx-vp9", "libsvtav1", "mjpeg")
ASPECT_IN_STREAM = ("libx264", "libx265", "mpeg4", "mpeg2video", "mpeg1video", "ffv1")
# Raw formats that are read as they were written; others are written as well, but read as something else.
RAW_PIXELS = {
    "avi": ["yuv420p", "yuv422p", "yuv411p", "yuv410p", "gray", "bgr24", "bgra"],
    "matroska": ["yuv420p", "yuv422p", "yuv411p", "yuv410p", "gray"],
    "mov": ["rgb24", "bgra"],
    "yuv4mpegpipe": [
        "yuv420p",
        "yuv422p",
        "yuv444p",
        "yuv411p",
        "gray",
        "gray9le",
        "gray10le",
        "gray12le",
        "gray16le",
        *(f"yuv{chroma}p{bits}le" for chroma in (420, 422, 444) for bits in (9, 10, 12, 14, 16)),
    ],
}
OPAQUE_ONLY = ("libx264", "libx265")
# Pixel formats of ProRes 4444, which FFmpeg decodes with 12 bits and encodes with 10.
PRORES_DECODED = ("yuv444p12le", "yuva444p12le")
# Profiles of encoders that do not choose one by themselves, by pixel format.
DNXHR_PROFILES = {"yuv422p": "dnxhr_hq", "yuv422p10le": "dnxhr_hqx"}
PRORES_PROFILES = ("Proxy", "LT", "Standard", "HQ", "4444", "XQ")  # By number.
MACROBLOCK = 16  # The width of a macroblock of H.264, in pixels.
X264_LANES = 8  # Macroblocks that libx264 processes together with AVX-512.
# LLVM's names of what libx264 calls AVX512, and of what its option asm=avx2 enables.
AVX512_FEATURES = "avx512f avx512bw avx512cd avx512dq avx512vl".split()
AVX2_FEATURES = "avx2 fma bmi bmi2 lzcnt".split()


def check_options(quality: int, preset: str) -> None:
    """Raise an error for options that no encoder accepts."""
    if preset not in PRESETS:
        raise ArgumentError(f"preset must be one of {', '.join(PRESETS)}; got {preset!r}")
    if not 0 <= quality <= WORST_QUALITY:
        raise ArgumentError(
            f"the quality of the encoder must be from 0, the best, to {WORST_QUALITY}; got {quality}"
        )


def keeps_range(name: str, kind: str) -> bool:
    """Return whether the stream or the container stores that samples are full-range."""
    return CONTAINERS[kind].full_range or name in FULL_RANGE_IN_STREAM


def keeps_aspect(name: str, kind: str) -> bool:
    """Return whether the stream or the container stores the aspect ratio of pixels."""
    return CONTAINERS[kind].aspect or name in ASPECT_IN_STREAM


@dataclass(frozen=True)
class EncoderChoice:
    """An encoder, the pixel format of its frames, and why they are not those that were asked for.

    With ``from_rgb``, frames of RGB are converted to luma and chroma.
    """

    name: str
    pixels: str
    note: str = ""
    from_rgb: bool = False


def _encoder_pixels(name: str, kind: str, pixels: str, full_range: bool, odd_size: bool) -> str:
    """Return the format in which an encoder keeps frames; raise ValueError if something would be lost."""
    av = import_optional("av")
    encoder = av.Codec(name, "w")
    stored_codecs = CONTAINERS[kind].video
    if stored_codecs is not None and str(encoder.canonical_name) not in stored_codecs:
        raise ValueError(f"this container cannot store {name}")
    pixel_format = av.VideoFormat(pixels, 16, 16)
    if "yuv" in pixels and full_range and not keeps_range(name, kind):
        raise ValueError(f"{name} in this container cannot store full-range {pixels}")
    if name == "mjpeg" and "yuv" in pixels and not full_range:
        raise ValueError(f"mjpeg cannot store limited-range {pixels}")
    formats = [str(video_format.name) for video_format in encoder.video_formats or []]
    if name in EVEN_SIDES and odd_size:
        formats = [candidate for candidate in formats if "444" in candidate or "gray" in candidate]
    if name in OPAQUE_ONLY:  # The list of pixel formats has alpha, which only some builds encode.
        formats = [candidate for candidate in formats if not candidate.startswith("yuva")]
    if name == "rawvideo":
        formats = RAW_PIXELS.get(kind, [])
        if not formats:
            raise ValueError("this container cannot store rawvideo")
    for equivalent in (pixels, pixels.replace("yuvj", "yuv")):
        if equivalent in formats or not formats:
            return equivalent
    if not pixel_format.is_rgb:  # RGB would keep grey, but few players show it.
        formats = [candidate for candidate in formats if not av.VideoFormat(candidate, 16, 16).is_rgb]
    if not formats:
        raise ValueError(f"{name} cannot store {pixels}")
    best, loss = av.codec.codec.find_best_pix_fmt_of_list(formats, pixels, True)
    kinds = av.codec.codec.PixFmtLoss
    grey, lossless = len(pixel_format.components) == 1, encoder.lossless and not encoder.lossy
    serious = kinds.DEPTH if grey and not lossless else ~kinds.NONE & 0x3F
    if name == "prores_ks" and pixels in PRORES_DECODED:
        serious &= ~kinds.DEPTH
    if best is None or loss & serious:
        raise ValueError(f"{name} cannot store {pixels}")
    return str(best.name)


def choose_encoder(
    target: str, kind: str, codec: str | None, stream: Any, pixels: str, full_range: bool, odd_size: bool
) -> EncoderChoice:
    """Return an encoder that keeps frames as they are.

    Parameters
    ----------
    target : str
        The file that errors refer to.
    kind : str
        FFmpeg's name of the container.
    codec : str, optional
        An encoder, or ``"copy-like"`` for that of the source.
    stream : av.VideoStream
        The source.
    pixels : str
        The pixel format of the frames.
    full_range, odd_size : bool
        Whether samples are full-range, and whether the width or the height is odd.
    """
    description = pixels, full_range, odd_size
    if codec == COPY_LIKE:
        try:
            return _copy_like(kind, stream, *description)
        except ValueError as error:
            choice = choose_encoder(target, kind, None, stream, *description)
            note = f"{error}: {choice.name} was used instead of the codec of the source"
            return replace(choice, note="; ".join(filter(None, (note, choice.note))))
    source = stream.codec_context.codec
    names = (codec,) if codec is not None else CONTAINERS[kind].encoders
    if codec is None and source.lossless and not source.lossy and kind in ("matroska", "avi"):
        names = ("ffv1",)  # A lossless source stays lossless.
    elif codec is None and "libx264" in names and stream.codec_context.color_trc in HDR_CURVES:
        names = ("libx265", *names)  # Players show HDR in HEVC, and hardly any in H.264.
    errors = []
    for name in names:
        if not _is_encoder(name):
            errors.append(f"this FFmpeg has no video encoder named {name!r}")
            continue
        try:
            return EncoderChoice(name, _encoder_pixels(name, kind, *description))
        except ValueError as error:
            errors.append(str(error))
    converted = _converted_from_rgb(names, kind, pixels, odd_size)
    if converted is not None:
        return converted
    advice = "choose another codec" if codec is not None else "choose a codec that does"
    raise FileError(f"cannot write {target}: {', '.join(errors)}; {advice}, or write .mkv with codec='ffv1'")


def _converted_from_rgb(names: Sequence[str], kind: str, pixels: str, odd_size: bool) -> EncoderChoice | None:
    """Return an encoder for RGB as luma and chroma, with as much chroma as possible; None without one."""
    pixel_format = import_optional("av").VideoFormat(pixels, 16, 16)
    if not pixel_format.is_rgb:
        return None
    alpha = "a" if len(pixel_format.components) == 4 else ""
    depth = "" if (bits := max(component.bits for component in pixel_format.components)) == 8 else f"{bits}le"
    for chroma in ("444", "422", "420"):
        for name in filter(_is_encoder, names):
            with suppress(ValueError):  # The encoder does not store it.
                stored = _encoder_pixels(name, kind, f"yuv{alpha}{chroma}p{depth}", False, odd_size)
                return EncoderChoice(name, stored, f"RGB was converted to {stored}", from_rgb=True)
    return None


def _copy_like(kind: str, stream: Any, pixels: str, full_range: bool, odd_size: bool) -> EncoderChoice:
    """Return an encoder for the codec of a stream; raise ValueError if there is none."""
    av = import_optional("av")
    codec = codec_name(stream)
    if not _is_encoder(codec):
        raise ValueError(f"this FFmpeg has no encoder for {codec}")
    name = "prores_ks" if codec == "prores" else str(av.Codec(codec, "w").name)
    with av.open(os.devnull, "w", format=kind) as container:
        codecs = CONTAINERS[kind].video or container.supported_codecs
    if codec not in codecs:
        raise ValueError(f"this container cannot store {codec}")
    choice = EncoderChoice(name, _encoder_pixels(name, kind, pixels, full_range, odd_size))
    if pixels in PRORES_DECODED and name == "prores_ks":
        return EncoderChoice(name, choice.pixels, "prores_ks stores 10 of 12 bits")
    if choice.pixels != pixels.replace("yuvj", "yuv") and choice.pixels != pixels:
        raise ValueError(f"{name} cannot store {pixels}")
    return choice


def _is_encoder(name: str) -> bool:
    """Return whether FFmpeg has an encoder of this name, or for the codec of this name."""
    try:
        return str(import_optional("av").Codec(name, "w").type) == "video"
    except Exception:  # PyAV's own error is not public in all versions.
        return False


def encoder_options(
    choice: EncoderChoice, kind: str, quality: int, preset: str, source: Any, first: Any
) -> dict[str, str]:
    """Return the options of an encoder for a constant quality, on the scale of H.264.

    ``source`` is the stream that is read, and ``first`` its first frame, whose mastering display is kept.
    """
    name = choice.name
    options = _quality_options(name, quality, preset)
    if name in ("libx264", "libx265") and kind in ("mxf", "avi"):
        options["bf"] = "0"  # AVI has no times for frames out of order, and FFmpeg reads wrong ones from MXF.
    if name == "libvpx" and "yuva" in choice.pixels:
        options["auto-alt-ref"] = "0"  # The encoder refuses alpha otherwise.
    if name == "dnxhd":
        profile = str(source.profile or "").lower().replace(" ", "_")
        is_same = codec_name(source) == "dnxhd" and profile.startswith("dnxhr")
        options["profile"] = profile if is_same else DNXHR_PROFILES.get(choice.pixels, "dnxhr_444")
    if name == "prores_ks" and codec_name(source) == "prores" and source.profile in PRORES_PROFILES:
        options["profile"] = str(PRORES_PROFILES.index(source.profile))
    for extra in (repeatable_options(name, first.width), hdr_parameters(name, first)):
        for key, value in extra.items():
            options[key] = f"{options[key]}:{value}" if key in options else value
    return options


def _quality_options(name: str, quality: int, preset: str) -> dict[str, str]:
    if name in ("libx264", "libx265"):
        quiet = {"x265-params": "log-level=error"} if name == "libx265" else {}
        return {"crf": str(min(quality, 51)), "preset": preset} | quiet
    if name in ("libvpx-vp9", "libvpx"):
        rate = "0" if name == "libvpx-vp9" else "50M"  # VP8 needs an upper limit.
        fast = {"deadline": "realtime", "cpu-used": "8"}
        return {"crf": str(quality), "b": rate} | fast | ({"row-mt": "1"} if rate == "0" else {})
    if name == "libsvtav1":
        os.environ.setdefault("SVT_LOG", "1")  # Otherwise it prints all its settings.
        return {"crf": str(quality), "preset": "10"}
    if name in QUANTIZED:
        # The quantizer of H.264 doubles every six steps; 18 corresponds to 2 here.
        step = min(31, max(1, round(2 ** ((quality - 12) / 6))))
        return {"flags": "+qscale", "global_quality": str(118 * step), "qmin": "1"}
    return {}


def repeatable_options(name: str, width: int) -> dict[str, str]:
    """Return the options that an encoder needs to write the same bytes in every run.

    libx264 (at least builds 164 and 165) has one function for AVX-512, ``mbtree_propagate_list``, that
    processes eight macroblocks at once and does not mask those beyond the end of a row. If the number of
    macroblocks in a row is not a multiple of eight, their costs are read from uninitialized memory and change
    the quantizers of other macroblocks. Its functions for AVX2 stop at the end of the row.
    """
    encoder = str(import_optional("av").Codec(name, "w").name)  # The name "h264" also stands for libx264.
    macroblocks = -(-width // MACROBLOCK)
    if encoder not in ("libx264", "libx264rgb") or macroblocks % X264_LANES == 0:
        return {}
    # The cost of AVX2 instead of AVX-512 is below the noise: 30 frames of 1920 × 1080 take 1.76 s of
    # processor time instead of 1.75 s (medians of five runs; veryfast, CRF 18). The alternative, mbtree=0,
    # made files of noisy frames 12 to 44 % larger at the same CRF.
    return {"x264-params": "asm=avx2"} if _has_avx512() else {}


@cache
def _has_avx512() -> bool:
    """Return whether libx264 would use AVX-512, and may be told to use AVX2 instead."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return all(features.get(feature) for feature in AVX512_FEATURES + AVX2_FEATURES)
