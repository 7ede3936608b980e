"""The containers that videos are written to: their encoders, and the streams that they store.

What a table cannot tell, such as which tags survive, is found by reading the written file: see ``contents``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .files import VIDEOS

__all__ = ["CONTAINERS", "WrittenContainer", "muxer_options"]

MPEG_AUDIO = ("mp1", "mp2", "mp3", "ac3", "dts")


@dataclass(frozen=True)
class WrittenContainer:
    """What a container stores.

    Attributes
    ----------
    encoders : tuple of str
        The first of these encoders that keeps the frames is the default.
    video, audio, subtitles : tuple of str, optional
        The codecs that can be read again; by default those that FFmpeg writes.
    audio_encoder, text_encoder : str, optional
        Encoders for audio and text subtitles that cannot be copied.
    attachments : bool
        Whether fonts and other files can be attached.
    cover : {"", "stream", "attachment"}
        How cover art is stored.
    full_range, aspect : bool
        Whether the container stores, if the stream does not, that samples are full-range, and the aspect
        ratio of pixels.
    rotation, mirroring : bool
        Whether frames can be displayed rotated, or mirrored as well.
    constant_rate, gaps : bool
        Whether frames have no times of their own, and whether frames can be missing in between.
    options : dict
        Options of FFmpeg's muxer.
    """

    encoders: tuple[str, ...]
    video: tuple[str, ...] | None = None
    audio: tuple[str, ...] | None = None
    subtitles: tuple[str, ...] | None = None
    audio_encoder: str | None = "aac"
    text_encoder: str | None = None
    attachments: bool = False
    cover: str = ""
    full_range: bool = False
    aspect: bool = False
    rotation: bool = False
    mirroring: bool = False
    constant_rate: bool = False
    gaps: bool = True
    options: dict[str, str] = field(default_factory=dict)


# By FFmpeg's name of the muxer.
CONTAINERS = {
    "mp4": WrittenContainer(
        ("libx264",), text_encoder="mov_text", cover="stream", aspect=True, rotation=True, mirroring=True
    ),
    "mov": WrittenContainer(
        ("libx264", "prores_ks"), text_encoder="mov_text", aspect=True, rotation=True, mirroring=True
    ),
    "matroska": WrittenContainer(
        ("libx264",),
        text_encoder="srt",
        attachments=True,
        cover="attachment",
        full_range=True,
        rotation=True,
    ),
    "webm": WrittenContainer(
        ("libvpx-vp9", "libsvtav1"),
        audio_encoder="libopus",
        text_encoder="webvtt",
        full_range=True,
        rotation=True,
    ),
    "avi": WrittenContainer(("mpeg4", "mjpeg"), constant_rate=True),
    "mpegts": WrittenContainer(
        ("libx264",),
        video=("h264", "hevc", "mpeg1video", "mpeg2video", "mpeg4"),
        audio=(*MPEG_AUDIO, "aac", "eac3", "opus", "truehd"),
        subtitles=("dvb_subtitle", "dvb_teletext", "hdmv_pgs_subtitle"),
    ),
    "vob": WrittenContainer(
        ("mpeg2video",),
        video=("mpeg1video", "mpeg2video"),
        audio=(*MPEG_AUDIO, "pcm_dvd"),
        subtitles=("dvd_subtitle",),
        audio_encoder="ac3",
        gaps=False,
    ),
    "mxf": WrittenContainer(
        ("mpeg2video", "prores_ks", "ffv1"),
        video=("dnxhd", "dvvideo", "ffv1", "h264", "jpeg2000", "mpeg2video", "prores"),
        audio=("pcm_s16le", "pcm_s24le"),
        subtitles=(),
        audio_encoder="pcm_s24le",
        constant_rate=True,
        gaps=False,
    ),
    "yuv4mpegpipe": WrittenContainer(
        ("rawvideo",),
        video=("rawvideo",),
        audio=(),
        subtitles=(),
        audio_encoder=None,
        full_range=True,
        aspect=True,
        constant_rate=True,
        gaps=False,
        options={"strict": "unofficial"},  # Needed for more than 8 bits.
    ),
}


def muxer_options(path: Path) -> dict[str, str]:
    """Return the options of FFmpeg's muxer for a path; camcorders write packets of 192 bytes to MTS."""
    suffix = path.suffix.lower()
    camcorder = {"mpegts_m2ts_mode": "1"} if suffix in (".mts", ".m2ts") else {}
    return CONTAINERS[VIDEOS[suffix]].options | camcorder
