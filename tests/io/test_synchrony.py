"""Pictures and sound stay together, also in containers that store no times."""

import warnings
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from films import AUDIO_STEP, COUNT, RATE, SAMPLE_RATE, add_frames, add_video, audio_blocks, real_frames
from undula import FormatWarning, io

UNEVEN = [0, 1, 2, 4, 5, 9, *range(10, 28)]
HALF_SLOT = 0.5 / RATE


def film(
    path: Path, video_start: float, audio_start: float, audio: str = "pcm_s16le", uneven: bool = False
) -> Path:
    """A film whose streams begin at different times; PCM tells its time."""
    with av.open(str(path), "w") as container:
        pictures, sound = add_video(container), container.add_stream(audio, rate=SAMPLE_RATE)
        sound.layout = "stereo"
        pictures.codec_context.time_base = Fraction(1, 1000)
        container.start_encoding()
        context = sound.codec_context
        resampler = av.AudioResampler(context.format, "stereo", SAMPLE_RATE, context.frame_size or None)
        for block in audio_blocks(context.frame_size or 960):
            block.pts += round(audio_start * SAMPLE_RATE)
            for part in resampler.resample(block):
                container.mux(sound.encode(part))
        container.mux(sound.encode(None))
        for rgb, time in zip(real_frames(), UNEVEN if uneven else range(COUNT), strict=True):
            frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = round(1000 * video_start) + 40 * time, Fraction(1, 1000)
            container.mux(pictures.encode(frame))
        container.mux(pictures.encode(None))
    return path


def picture_times(path: Path) -> list[float]:
    with av.open(str(path)) as container:
        return [float(frame.time) for frame in container.decode(video=0)]


def sound_delay(path: Path) -> float:
    """The time of the first sample in the file, less the time of its content."""
    with av.open(str(path)) as container:
        frame = next(container.decode(audio=0))
        samples = frame.to_ndarray().ravel()
        if samples.dtype == np.int32:  # 24 bits
            samples >>= 16
        return float(frame.time) - int(samples[0]) * AUDIO_STEP / SAMPLE_RATE


def lateness(path: Path, target: Path) -> float:
    """By how many seconds pictures come later, relative to the sound, than in the source."""
    before, after = picture_times(path), picture_times(target)
    assert len(before) == len(after) == COUNT
    # The first frame may be shown from 0 on, until the next one.
    offsets = np.subtract(after, before)[1:] - (sound_delay(target) - sound_delay(path))
    np.testing.assert_allclose(offsets, offsets[0], atol=1e-3)
    return float(offsets[0])


@pytest.mark.parametrize("starts", [(0, 0), (0.021, 0), (1.4, 1.4), (0.5, 0), (0, 0.015)])
@pytest.mark.parametrize(
    ("suffix", "uneven"), [(".avi", False), (".avi", True), (".mxf", False), (".mov", True), (".mkv", False)]
)
def test_pictures_and_sound_stay_together(
    suffix: str, uneven: bool, starts: tuple[float, float], tmp_path: Path
) -> None:
    source, target = film(tmp_path / "in.mkv", *starts, uneven=uneven), tmp_path / f"out{suffix}"
    io.process(source, target, lambda planes: planes, preset="ultrafast")
    assert abs(lateness(source, target)) <= (HALF_SLOT if suffix in (".avi", ".mxf") else 0.002) + 1e-9


@pytest.mark.parametrize("uneven", [False, True])
def test_what_audio_begins_with_delays_no_pictures(uneven: bool, tmp_path: Path) -> None:
    """AAC begins before 0, which AVI cannot store: FFmpeg would move everything by a frame."""
    source, target = film(tmp_path / "in.mkv", 0, 0, "aac", uneven), tmp_path / "out.avi"
    io.process(source, target, lambda planes: planes)
    np.testing.assert_allclose(picture_times(target), picture_times(source), atol=1e-3)


@pytest.mark.parametrize("start", [0, 0.013, 0.021, 0.3])
def test_mpeg_has_exact_times(start: float, tmp_path: Path) -> None:
    source, target = film(tmp_path / "in.mkv", start, 0), tmp_path / "out.mpg"
    with pytest.warns(FormatWarning, match="converted from pcm_s16le to ac3"):
        io.process(source, target, lambda planes: planes)
    with av.open(str(target)) as container:
        sound = float(next(container.decode(audio=0)).time) + 256 / SAMPLE_RATE  # The delay of AC-3.
    np.testing.assert_allclose(np.subtract(picture_times(target), sound), picture_times(source), atol=1e-3)


@pytest.mark.parametrize("seconds", [0.3, 0.96, 2])
def test_mxf_keeps_all_frames_whatever_sound_there_is(seconds: float, tmp_path: Path) -> None:
    source, target = tmp_path / "in.mkv", tmp_path / "out.mxf"
    with av.open(str(source), "w") as container:
        pictures, sound = add_video(container), container.add_stream("pcm_s16le", rate=SAMPLE_RATE)
        sound.layout = "stereo"
        container.start_encoding()
        for start in range(0, round(seconds * SAMPLE_RATE), 960):
            block = av.AudioFrame.from_ndarray(np.full((1, 1920), 7, "i2"), "s16", "stereo")
            block.rate, block.pts, block.time_base = SAMPLE_RATE, start, Fraction(1, SAMPLE_RATE)
            container.mux(sound.encode(block))
        container.mux(sound.encode(None))
        add_frames(container, pictures)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert io.process(source, target, lambda planes: planes) == COUNT
    assert ("audio after the last frame" in "".join(str(each.message) for each in caught)) == (seconds > 1)
    assert len(picture_times(target)) == COUNT


def test_sound_that_begins_later_is_named(tmp_path: Path) -> None:
    source = film(tmp_path / "in.mkv", 0, 0.5)
    with pytest.warns(FormatWarning, match="the time at which audio begins"):
        io.process(source, tmp_path / "out.avi", lambda planes: planes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        io.process(source, tmp_path / "out.mkv", lambda planes: planes, preset="ultrafast")


@pytest.mark.parametrize(("options", "uneven"), [({}, False), ({"bf": "0"}, False), ({"bf": "0"}, True)])
def test_h264_in_avi_is_not_late(options: dict[str, str], uneven: bool, tmp_path: Path) -> None:
    source, target = tmp_path / "in.avi", tmp_path / "out.mkv"
    times = UNEVEN if uneven else list(range(COUNT))
    with av.open(str(source), "w") as container:
        stream = add_video(container, **options)
        for rgb, time in zip(real_frames(), times, strict=True):
            frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = time, Fraction(1, RATE)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    io.process(source, target, lambda planes: planes, preset="ultrafast")
    np.testing.assert_allclose(picture_times(target), np.divide(times, RATE), atol=1e-3)
    io.process(target, tmp_path / "again.avi", lambda planes: planes, codec="libx264")
    io.process(tmp_path / "again.avi", tmp_path / "last.mkv", lambda planes: planes, preset="ultrafast")
    np.testing.assert_allclose(picture_times(tmp_path / "last.mkv"), np.divide(times, RATE), atol=1e-3)
