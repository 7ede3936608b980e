"""Tiny clips of every codec that PyAV can make here, and what a plain decoder makes of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from undula.io.encoder import ordinary_threads
from undula.io.files import VIDEOS

WIDTH, HEIGHT, COUNT = 64, 64, 20


@dataclass(frozen=True)
class ClipCodec:
    """An encoder, and the containers that hold what it writes."""

    encoder: str
    pixels: str
    suffixes: str
    options: dict[str, str] = field(default_factory=dict)
    lossless: bool = False


X265 = "log-level=none:b-adapt=0:pools=none:frame-threads=1:scenecut=0"
VPX = {"deadline": "good", "cpu-used": "5", "lag-in-frames": "8", "auto-alt-ref": "1"}
EVERYWHERE = "mp4 m4v mkv mov avi"
CLIP_CODECS = {
    "h264": ClipCodec("libx264", "yuv420p", EVERYWHERE, {"preset": "veryfast", "bf": "3", "b-adapt": "0"}),
    "h264-refs": ClipCodec("libx264", "yuv420p", EVERYWHERE, {"x264-params": "bframes=0:ref=8:scenecut=0"}),
    "h264-10": ClipCodec("libx264", "yuv422p10le", "mp4 mkv mov", {"preset": "veryfast", "bf": "3"}),
    "h264-lossless": ClipCodec("libx264", "yuv420p", EVERYWHERE, {"qp": "0", "bf": "3"}, lossless=True),
    "hevc": ClipCodec("libx265", "yuv420p", "mp4 m4v mkv mov", {"x265-params": f"{X265}:bframes=3"}),
    "hevc-refs": ClipCodec("libx265", "yuv420p", "mp4 mkv", {"x265-params": f"{X265}:bframes=0:ref=8"}),
    "av1": ClipCodec(
        "libsvtav1", "yuv420p", "mp4 m4v mkv avi webm", {"preset": "11", "svtav1-params": "lp=1"}
    ),
    "vp9": ClipCodec("libvpx-vp9", "yuv420p", "mp4 m4v mkv avi webm", VPX),
    "vp8": ClipCodec("libvpx", "yuv420p", "mkv avi webm", VPX),
    "mpeg4": ClipCodec("mpeg4", "yuv420p", EVERYWHERE, {"bf": "2"}),
    "mpeg2": ClipCodec("mpeg2video", "yuv420p", EVERYWHERE, {"bf": "2"}),
    "mpeg1": ClipCodec("mpeg1video", "yuv420p", EVERYWHERE, {"bf": "2"}),
    "prores": ClipCodec("prores_ks", "yuv422p10le", "mov mkv"),
    "mjpeg": ClipCodec("mjpeg", "yuvj420p", EVERYWHERE),
    "cfhd": ClipCodec("cfhd", "yuv422p10le", "mov avi"),
    "wmv2": ClipCodec("wmv2", "yuv420p", "avi"),
    "msmpeg4": ClipCodec("msmpeg4", "yuv420p", "mkv mov avi"),
    "h263": ClipCodec("h263p", "yuv420p", "avi"),
    "flv": ClipCodec("flv", "yuv420p", "avi"),
    "snow": ClipCodec("snow", "yuv420p", "mkv avi", {"strict": "-2"}),
    "svq1": ClipCodec("svq1", "yuv410p", "mov avi"),
    "cinepak": ClipCodec("cinepak", "rgb24", "mov avi"),
    "jpeg2000": ClipCodec("jpeg2000", "yuv420p", EVERYWHERE),
    "asv1": ClipCodec("asv1", "yuv420p", "avi"),
    "ffv1": ClipCodec("ffv1", "yuv420p", "mp4 m4v mkv avi", lossless=True),
    "ffv1-gray": ClipCodec("ffv1", "gray", "mkv", lossless=True),
    "ffv1-12": ClipCodec("ffv1", "yuv444p12le", "mkv avi", lossless=True),
    "ffv1-alpha": ClipCodec("ffv1", "yuva420p", "mkv", lossless=True),
    "ffv1-rgb": ClipCodec("ffv1", "bgr0", "mkv avi", lossless=True),
    "huffyuv": ClipCodec("huffyuv", "yuv422p", "avi", lossless=True),
    "ffvhuff": ClipCodec("ffvhuff", "yuv420p", "avi", lossless=True),
    "utvideo": ClipCodec("utvideo", "yuv420p", "avi", lossless=True),
    "magicyuv": ClipCodec("magicyuv", "yuv420p", "mov avi", lossless=True),
    "raw": ClipCodec("rawvideo", "yuv420p", "mkv avi", lossless=True),
    "raw-rgb": ClipCodec("rawvideo", "bgr24", "avi", lossless=True),
    "png": ClipCodec("png", "rgb24", "mp4 m4v mov avi", lossless=True),
    "qtrle": ClipCodec("qtrle", "rgb24", "mov", lossless=True),
    "zlib": ClipCodec("zlib", "bgr24", "avi", lossless=True),
    "v210": ClipCodec("v210", "yuv422p10le", "mov avi", lossless=True),
}


def clip_frame(number: int, width: int = WIDTH, height: int = HEIGHT) -> Any:
    """One of four textures in turn, lower each time, so that frames are predicted from older ones."""
    rng = np.random.default_rng(number % 4)
    blocks = rng.integers(0, 256, (-(-height // 4), -(-width // 4), 3)).repeat(4, 0).repeat(4, 1)
    smooth = sum(np.roll(blocks, shift, (0, 1)) for shift in ((0, 0), (1, 0), (0, 1), (0, 2))) // 4
    return np.roll(smooth[:height, :width], number // 4, 0).astype(np.uint8)


def encoded(container: Any, stream: Any, times: Iterator[int] | range, base: Fraction) -> None:
    """Writes moving frames into a stream that was added to a container."""
    for number, pts in enumerate(times):
        rgb = clip_frame(number, stream.width, stream.height)
        frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=stream.pix_fmt)
        frame.pts, frame.time_base = pts, base
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


def write_test_clip(path: Path, name: str = "h264", count: int = COUNT, width: int = WIDTH) -> Path:
    """A clip of a codec, in the container of the suffix."""
    codec = CLIP_CODECS[name]
    if codec.encoder not in av.codecs_available:
        pytest.skip(f"this build of PyAV has no encoder {codec.encoder}")
    with ordinary_threads(), av.open(str(path), "w", format=VIDEOS[path.suffix]) as container:
        stream = container.add_stream(codec.encoder, rate=25, options=codec.options)
        stream.width, stream.height, stream.pix_fmt = width, HEIGHT, codec.pixels
        encoded(container, stream, range(count), Fraction(1, 25))
    return path


def plain_decode(path: Path, pixels: str | None = None) -> list[list[Any]]:
    """The planes of all frames, decoded by one thread, with nothing else going on."""
    frames = []
    with av.open(str(path)) as container:
        stream = next(
            s for s in container.streams.video if not s.disposition & av.stream.Disposition.attached_pic
        )
        stream.thread_type, stream.thread_count = "NONE", 1
        for frame in container.decode(stream):
            if pixels is not None:
                frame = frame.reformat(format=pixels)
            packed = len(frame.format.components) > len(frame.planes)
            frames.append([plane_array(frame, plane, packed) for plane in frame.planes])
    return frames


def plane_array(frame: Any, plane: Any, packed: bool) -> Any:
    """The samples of a plane, without what pads its lines."""
    samples = plane.width * (frame.format.padded_bits_per_pixel // 8 if packed else 1)
    rows = np.frombuffer(bytes(plane), np.uint8 if frame.format.components[0].bits == 8 else "<u2")
    return rows.reshape(plane.height, -1)[:, :samples]
