"""Streams, times and metadata of a video are kept; anything that cannot be read or written is an error."""

import io as bytes_io
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

import undula
from clips import encoded, plain_decode, write_test_clip
from undula import io
from undula.cli import main
from undula.io import files
from undula.io.decoder import Planes, VideoReader, display_matrix, open_video
from undula.io.encoder import VideoWriter, ordinary_threads
from undula.io.video_sources import directshow_name

COVER = av.stream.Disposition.attached_pic
QUARTER = (0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30)  # Displayed rotated clockwise.
MIRROR = (-(1 << 16), 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)


def identity(planes: Planes) -> Planes:
    return planes


def jpeg() -> bytes:
    out = bytes_io.BytesIO()
    Image.new("RGB", (32, 32), (200, 20, 20)).save(out, "JPEG")
    return out.getvalue()


def add_video(container: Any, codec: str = "libx264", pixels: str = "yuv420p", **options: str) -> Any:
    stream = container.add_stream(codec, rate=25, options=options)
    stream.width, stream.height, stream.pix_fmt = 64, 48, pixels
    return stream


def rotated(path: Path, matrix: tuple[int, ...], codec: str = "libx264") -> Path:
    """Write a video as phones do: on its side, with a matrix that rotates it upright."""
    with av.open(str(path), "w") as container:
        stream = add_video(container, codec)
        stream.set_display_matrix(matrix)
        encoded(container, stream, range(5), Fraction(1, 25))
    return path


def matrix_of(path: Path) -> tuple[int, ...]:
    container, stream = open_video(path)
    with container:
        return display_matrix(next(container.decode(stream)))


@pytest.mark.parametrize("suffix", ["mp4", "m4v", "mov", "mkv", "webm"])
def test_a_rotated_video_stays_rotated(suffix: str, tmp_path: Path) -> None:
    source = rotated(tmp_path / "x.mp4", QUARTER)
    io.process(source, tmp_path / f"y.{suffix}", identity)
    assert matrix_of(tmp_path / f"y.{suffix}") == QUARTER
    properties = io.probe(tmp_path / f"y.{suffix}")
    assert (properties.width, properties.height) == (64, 48)


@pytest.mark.parametrize("suffix", ["mp4", "mov"])
def test_a_mirrored_video_stays_mirrored(suffix: str, tmp_path: Path) -> None:
    source = rotated(tmp_path / "x.mov", MIRROR)
    io.process(source, tmp_path / f"y.{suffix}", identity)
    assert matrix_of(tmp_path / f"y.{suffix}")[:5] == MIRROR[:5]


@pytest.mark.parametrize(("suffix", "matrix"), [("avi", QUARTER), ("mkv", MIRROR), ("webm", MIRROR)])
def test_a_container_without_rotation_is_an_error(
    suffix: str, matrix: tuple[int, ...], tmp_path: Path
) -> None:
    source = rotated(tmp_path / "x.mov", matrix)
    with pytest.raises(undula.FileError, match=r"rotated or mirrored.*write \.mp4"):
        io.process(source, tmp_path / f"y.{suffix}", identity)


@pytest.mark.parametrize(
    ("matrix", "upright"),
    [
        (QUARTER, lambda x: np.rot90(x, -1)),
        (MIRROR, lambda x: x[:, ::-1]),
        ((-(1 << 16), 0, 0, 0, -(1 << 16), 0, 0, 0, 1 << 30), lambda x: np.rot90(x, 2)),
        ((0, -(1 << 16), 0, 1 << 16, 0, 0, 0, 0, 1 << 30), lambda x: np.rot90(x, 1)),
        ((0, 1 << 16, 0, 1 << 16, 0, 0, 0, 0, 1 << 30), lambda x: x.swapaxes(0, 1)),
    ],
)
def test_frames_are_read_upright(matrix: tuple[int, ...], upright: Any, tmp_path: Path) -> None:
    source = rotated(tmp_path / "x.mov", matrix)
    with av.open(str(source)) as container:
        stored = next(container.decode(video=0)).to_ndarray(format="rgb24")
    np.testing.assert_array_equal(next(io.read_frames(source)), upright(stored))
    np.testing.assert_array_equal(VideoReader(source).frame(0), upright(stored))


def with_cover(path: Path) -> Path:
    """Write a video with cover art, fonts, chapters, titles and languages, if the container stores them."""
    with av.open(str(path), "w", format=files.VIDEOS[path.suffix]) as container:
        cover = None
        if path.suffix == ".mkv":
            container.add_attachment("cover.jpg", "image/jpeg", jpeg())
            container.add_attachment("font.ttf", "application/x-truetype-font", b"letters")
        else:
            cover = container.add_stream("mjpeg", rate=1)
            cover.width, cover.height, cover.pix_fmt, cover.disposition = 32, 32, "yuvj420p", COVER
        main_stream = add_video(container)
        main_stream.metadata.update(title="The film", language="deu")
        sound = container.add_stream("aac", rate=44100)
        sound.metadata.update(language="fra")
        container.metadata.update(title="All of it", comment="Made here")
        times = {"start": 0, "end": 300, "time_base": Fraction(1, 1000)}
        container.set_chapters([{"id": 1, **times, "metadata": {"title": "First"}}])
        container.start_encoding()
        if cover is not None:
            packet = av.Packet(jpeg())
            packet.stream, packet.pts, packet.dts, packet.time_base = cover, 0, 0, Fraction(1, 1)
            container.mux(packet)
        encoded(container, main_stream, range(8), Fraction(1, 25))
        quiet = av.AudioFrame.from_ndarray(np.zeros((2, 1024), "f4"), "fltp", "stereo")
        quiet.rate, quiet.pts, quiet.time_base = 44100, 0, Fraction(1, 44100)
        container.mux(sound.encode(quiet))
        container.mux(sound.encode(None))
    return path


@pytest.mark.parametrize(
    ("before", "after"), [("mkv", "mkv"), ("mp4", "mkv"), ("mkv", "mp4"), ("mp4", "m4v")]
)
def test_cover_art_and_other_contents_are_kept(before: str, after: str, tmp_path: Path) -> None:
    source = with_cover(tmp_path / f"x.{before}")
    is_lost = (before, after) == ("mkv", "mp4")
    lost = pytest.warns(
        undula.FormatWarning, match=r"without the attachment font\.ttf, which \.mp4 with libx264"
    )
    with lost if is_lost else nullcontext():
        assert io.process(source, tmp_path / f"y.{after}", identity) == 8
    with av.open(str(tmp_path / f"y.{after}")) as container:
        covers = [stream for stream in container.streams.video if stream.disposition & COVER]
        (main_stream,) = [stream for stream in container.streams.video if not stream.disposition & COVER]
        (sound,) = container.streams.audio
        assert main_stream.metadata.get("title", main_stream.metadata.get("name")) == "The film"
        assert (main_stream.language, sound.language) == ("deu", "fra")
        tags = {key.lower(): value for key, value in container.metadata.items()}
        assert (tags["title"], tags["comment"]) == ("All of it", "Made here")
        assert [chapter["metadata"]["title"] for chapter in container.chapters()] == ["First"]
        assert len(covers) == 1
        fonts = [stream.data for stream in container.streams if stream.type == "attachment"]
        assert fonts == ([b"letters"] if (before, after) == ("mkv", "mkv") else [])
        assert bytes(next(container.demux(covers[0]))) == jpeg()
        assert sum(1 for _ in container.decode(main_stream)) == 8


@pytest.mark.parametrize("suffix", ["mov", "avi", "webm"])
def test_containers_without_cover_art_get_the_video(suffix: str, tmp_path: Path) -> None:
    source = with_cover(tmp_path / "x.mkv")
    with pytest.warns(undula.FormatWarning, match=r"without cover art, the attachment font\.ttf"):
        assert io.process(source, tmp_path / f"y.{suffix}", identity) == 8
    assert len(plain_decode(tmp_path / f"y.{suffix}")) == 8
    assert io.probe(tmp_path / f"y.{suffix}").width == 64


def two_videos(path: Path, first: int, default: int, sizes: tuple[int, int] = (32, 64)) -> Path:
    """Write two video streams, the first with a number of frames; one of them is the default."""
    with av.open(str(path), "w", format=files.VIDEOS[path.suffix]) as container:
        streams = []
        for number, width in enumerate(sizes):
            stream = add_video(container, "mpeg4")
            stream.width = width
            if path.suffix != ".avi":
                stream.disposition = 1 if number == default else 0
            streams.append(stream)
        container.start_encoding()
        encoded(container, streams[0], range(first), Fraction(1, 25))
        encoded(container, streams[1], range(8), Fraction(1, 25))
    return path


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "mov", "avi"])
@pytest.mark.parametrize(("first", "default", "main_stream"), [(1, 0, 1), (8, 1, 1), (8, 0, 0)])
def test_the_main_one_of_two_video_streams_is_filtered(
    suffix: str, first: int, default: int, main_stream: int, tmp_path: Path
) -> None:
    main_stream = 0 if suffix == "avi" and first == 8 else main_stream  # AVI has no default stream.
    source = two_videos(tmp_path / f"x.{suffix}", first, default)
    seen: list[int] = []

    def looked(planes: Planes) -> Planes:
        seen.append(planes[0].shape[1])
        return [np.zeros_like(plane) for plane in planes]

    target = tmp_path / f"y.{suffix}"
    assert io.process(source, target, looked) == 8
    assert set(seen) == {(32, 64)[main_stream]}
    with av.open(str(source)) as before, av.open(str(target)) as after:
        copied = next(s for s in after.streams.video if s.width == (32, 64)[1 - main_stream])
        filtered = next(s for s in after.streams.video if s.width == (32, 64)[main_stream])
        original = before.streams.video[1 - main_stream]
        a, b = ([bytes(p) for p in c.demux(s) if p.size] for c, s in ((before, original), (after, copied)))
        assert a == b
        after.seek(0)
        assert next(after.decode(filtered)).to_ndarray(format="gray").max() < 20


@pytest.fixture(scope="module")
def two_reordered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two videos with frames out of order; the first packets of Matroska have no decoding times."""
    path = tmp_path_factory.mktemp("two") / "x.mkv"
    with av.open(str(path), "w") as container:
        streams = [add_video(container, bf="2", **{"b-adapt": "0"}) for _ in range(2)]
        container.start_encoding()
        for stream, count in zip(streams, (12, 10), strict=True):
            encoded(container, stream, range(count), Fraction(1, 25))
    with av.open(str(path)) as container:
        assert next(container.demux(video=1)).dts is None
    return path


@pytest.mark.parametrize("count", [None, 1])
@pytest.mark.parametrize("suffix", ["mkv", "mp4", "mov"])
def test_a_second_video_with_frames_out_of_order_is_copied(
    suffix: str, count: int | None, two_reordered: Path, tmp_path: Path
) -> None:
    target = tmp_path / f"y.{suffix}"
    assert io.process(two_reordered, target, identity, count=count) == (count or 12)
    frames = []
    for path in (two_reordered, target):
        with av.open(str(path)) as container:
            frames.append(
                [(float(f.time), f.to_ndarray(format="yuv420p").tobytes()) for f in container.decode(video=1)]
            )
    assert frames[1] == frames[0][: len(frames[1])]
    assert count or len(frames[1]) == 10


def test_a_stream_that_cannot_be_copied_is_named(two_reordered: Path, tmp_path: Path) -> None:
    with av.open(str(two_reordered)) as container:
        main_stream, other = container.streams.video
        first = next(container.decode(main_stream))
        out = VideoWriter(
            tmp_path / "y.mkv",
            tmp_path / "y.mkv",
            two_reordered,
            container,
            main_stream,
            first,
            [other],
            None,
            18,
            "fast",
        )
        out.start([])
        early, late = [packet for packet in container.demux(other) if packet.dts is not None][:2]
        out.copy(late)
        with pytest.raises(undula.FileError, match=r"stream 1 \(h264\) cannot be copied: .*; audio=False"):
            out.copy(early)  # No container stores times in descending order.
        out.abandon()


def test_a_second_video_that_the_container_cannot_store_is_an_error(tmp_path: Path) -> None:
    source = two_videos(tmp_path / "x.mkv", 8, 0)
    with pytest.raises(undula.FileError, match=r"cannot store video encoded as mpeg4.*audio=False"):
        io.process(source, tmp_path / "y.webm", identity)
    assert io.process(source, tmp_path / "y.webm", identity, audio=False) == 8


def test_cover_art_alone_is_not_a_video(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mp4"), "w") as container:
        cover = container.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt, cover.disposition = 32, 32, "yuvj420p", COVER
        sound = container.add_stream("aac", rate=44100)
        container.start_encoding()
        packet = av.Packet(jpeg())
        packet.stream, packet.pts, packet.dts, packet.time_base = cover, 0, 0, Fraction(1, 1)
        container.mux(packet)
        container.mux(sound.encode(None))
    with pytest.raises(undula.FileError, match="no video except cover art"):
        io.probe(tmp_path / "x.mp4")


@pytest.mark.parametrize(
    "text",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nclip.mp4\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile clip.mp4\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"></MPD>',
    ],
)
@pytest.mark.parametrize("name", ["list.m3u8", "list.mp4"])
def test_playlists_are_refused(text: str, name: str, tmp_path: Path) -> None:
    write_test_clip(tmp_path / "clip.mp4")
    (tmp_path / name).write_text(text)
    for call in (
        lambda: io.probe(tmp_path / name),
        lambda: next(io.read_frames(tmp_path / name)),
        lambda: VideoReader(tmp_path / name),
        lambda: io.process(tmp_path / name, tmp_path / "y.mp4", identity),
    ):
        with pytest.raises(undula.FileError, match="is a playlist"):
            call()


def test_other_protocols_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = write_test_clip(tmp_path / "x.mp4")
    for name in ("subfile,,start,0,end,0,,:x.mp4", "concat:x.mp4", "http://127.0.0.1:9/x.mp4", "data:video,"):
        with pytest.raises(undula.FileError, match="no such file"):
            io.probe(name)
    (tmp_path / "concat:x.mp4").write_bytes(source.read_bytes())  # A file, in spite of its name.
    assert io.probe("concat:x.mp4").width == 64


def larger_inside(path: Path) -> Path:
    """A container that declares 64 × 64, with H.264 of 496 × 480."""
    with av.open(str(path), "w") as container:
        stream = add_video(container, preset="ultrafast")
        stream.width, stream.height = 496, 480
        encoded(container, stream, range(2), Fraction(1, 25))
    data = path.read_bytes()
    sizes = b"".join(side.to_bytes(2, "big") for side in (496, 480))
    assert data.count(sizes) == 1
    path.write_bytes(data.replace(sizes, (64).to_bytes(2, "big") * 2))
    return path


def test_the_size_is_checked_before_frames_are_decoded(tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / "x.mp4")
    for call in (
        lambda: io.probe(source, 64 * 64 - 1),
        lambda: io.process(source, tmp_path / "y.mp4", identity, max_pixels=64 * 64 - 1),
    ):
        with pytest.raises(undula.FileError, match="limit"):
            call()
    with pytest.raises(undula.FileError):
        list(io.read_frames(larger_inside(tmp_path / "z.mp4"), max_pixels=100_000))
    assert len(list(io.read_frames(tmp_path / "z.mp4"))) == 2


@pytest.mark.parametrize("codec", ["mpeg4", "ffv1", "libx264", "mjpeg"])
def test_frames_beyond_the_limit_are_not_decoded(codec: str, tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mkv"), "w") as container:
        stream = add_video(container, codec, "yuvj420p" if codec == "mjpeg" else "yuv420p")
        encoded(container, stream, range(2), Fraction(1, 25))
    for limit in (64 * 48 - 1, 100):
        with pytest.raises(undula.FileError, match="limit"):
            io.probe(tmp_path / "x.mkv", limit)
    assert io.probe(tmp_path / "x.mkv", 64 * 48).width == 64


def test_frames_that_grow_beyond_the_limit_are_an_error(tmp_path: Path) -> None:
    source = two_sizes(tmp_path / "x.ts")
    assert {frame.shape[1] for frame in io.read_frames(source)} == {64, 96}
    for call in (
        lambda: list(io.read_frames(source, max_pixels=64 * 48)),
        lambda: io.process(source, tmp_path / "y.mkv", identity, max_pixels=64 * 48),
    ):
        with pytest.raises(undula.FileError, match=r"cannot read frame \d.*limit"):
            call()


def unknown_codec(path: Path) -> Path:
    """Write a video of an unknown codec."""
    write_test_clip(path, "mpeg4")
    path.write_bytes(path.read_bytes().replace(b"FMP4", b"Zz9~"))
    return path


def test_an_unknown_codec_is_an_error(tmp_path: Path) -> None:
    source = unknown_codec(tmp_path / "x.avi")
    for call in (
        lambda: io.probe(source),
        lambda: next(io.read_frames(source)),
        lambda: io.process(source, tmp_path / "y.avi", identity),
    ):
        with pytest.raises(undula.FileError, match="no decoder"):
            call()


def test_an_unknown_codec_does_not_stop_a_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    unknown_codec(folder / "a.avi")
    write_test_clip(folder / "b.avi", "mpeg4")
    assert main(["sharpen", str(folder), "--output", str(tmp_path / "out"), "--json"]) != 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.avi"]
    assert "no decoder" in "".join(capsys.readouterr())


def test_audio_of_an_unknown_codec(tmp_path: Path) -> None:
    source = with_cover(tmp_path / "x.mkv")
    source.write_bytes(source.read_bytes().replace(b"A_AAC", b"A_ZZZ"))
    assert io.probe(source).audio == ("unknown",)
    with pytest.raises(
        undula.FileError, match=r"cannot store audio encoded as an unknown codec.*audio=False"
    ):
        io.process(source, tmp_path / "y.mkv", identity)
    assert io.process(source, tmp_path / "y.mkv", identity, audio=False) == 8


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "mov", "avi", "webm"])
def test_motion_jpeg_keeps_its_range_in_every_container(suffix: str, tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / "x.avi", "mjpeg", 4)
    assert io.process(source, tmp_path / f"y.{suffix}", identity) == 4
    container, stream = open_video(tmp_path / f"y.{suffix}")
    with container:
        frame = next(container.decode(stream))
        assert frame.color_range == 2 or "yuvj" in frame.format.name
    a, b = plain_decode(source)[0][0], plain_decode(tmp_path / f"y.{suffix}")[0][0]
    assert undula.measures.psnr(a, b) > 35


def test_full_range_that_would_be_lost_is_an_error(tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / "x.avi", "mjpeg", 4)
    with pytest.raises(undula.FileError, match="cannot store full-range"):
        io.process(source, tmp_path / "y.avi", identity, codec="mpeg4")
    assert io.process(source, tmp_path / "y.mkv", identity, codec="ffv1") == 4
    for a, b in zip(plain_decode(source), plain_decode(tmp_path / "y.mkv"), strict=True):
        np.testing.assert_array_equal(a[0], b[0])


def with_times(path: Path, times: list[int], codec: str = "ffv1") -> Path:
    """Write frames at these times in milliseconds."""
    with av.open(str(path), "w") as container:
        stream = add_video(container, codec)
        stream.codec_context.time_base = Fraction(1, 1000)
        encoded(container, stream, iter(times), Fraction(1, 1000))
    return path


def times_of(path: Path) -> list[float]:
    with av.open(str(path)) as container:
        return [float(frame.pts * frame.time_base) for frame in container.decode(video=0)]


@pytest.mark.parametrize(
    ("suffix", "codec"),
    [("mp4", None), ("mkv", None), ("mov", None), ("webm", None), ("mp4", "mpeg4"), ("mkv", "ffv1")],
)
def test_arbitrary_times_of_frames_are_kept(suffix: str, codec: str | None, tmp_path: Path) -> None:
    source = with_times(tmp_path / "x.mkv", [0, 10, 57, 60, 200, 201, 333, 1000])
    io.process(source, tmp_path / f"y.{suffix}", identity, codec=codec)
    np.testing.assert_allclose(times_of(tmp_path / f"y.{suffix}"), times_of(source), atol=6e-4)


def test_avi_stores_a_constant_rate_with_gaps(tmp_path: Path) -> None:
    source = with_times(tmp_path / "x.mkv", [0, 40, 80, 240, 280, 320])
    io.process(source, tmp_path / "y.avi", identity)
    np.testing.assert_allclose(times_of(tmp_path / "y.avi"), times_of(source), atol=6e-4)


@pytest.mark.parametrize(("suffix", "codec"), [("avi", None), ("mkv", "mpeg2video")])
def test_arbitrary_times_are_an_error_if_the_rate_is_constant(
    suffix: str, codec: str | None, tmp_path: Path
) -> None:
    source = with_times(tmp_path / "x.mkv", [0, 10, 57, 60, 200, 201, 333, 1000])
    with pytest.raises(undula.FileError, match=r"constant rate.*write \.mkv"):
        io.process(source, tmp_path / f"y.{suffix}", identity, codec=codec)
    assert not (tmp_path / f"y.{suffix}").exists()


def test_ten_bits_in_webm_become_av1(tmp_path: Path) -> None:
    if "libsvtav1" not in av.codecs_available:
        pytest.skip("this build of PyAV has no encoder libsvtav1")
    with av.open(str(tmp_path / "x.mkv"), "w") as container:
        stream = add_video(container, "libx264", "yuv420p10le")
        stream.height = 64
        encoded(container, stream, range(5), Fraction(1, 25))
    assert io.process(tmp_path / "x.mkv", tmp_path / "y.webm", identity) == 5
    properties = io.probe(tmp_path / "y.webm")
    assert properties.bits == 10
    if hasattr(os, "sched_getscheduler"):
        policies = {os.sched_getscheduler(int(name)) for name in os.listdir("/proc/self/task")}
        assert policies == {os.SCHED_OTHER}


@pytest.mark.parametrize(
    ("pixels", "suffix"),
    [
        ("yuv420p10le", "avi"),
        ("yuv422p", "avi"),
        ("yuv444p12le", "mp4"),
        ("gbrp12le", "mp4"),
        ("yuva420p", "mp4"),
    ],
)
def test_a_loss_is_an_error_that_says_what_to_do(pixels: str, suffix: str, tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mkv"), "w") as container:
        encoded(container, add_video(container, "ffv1", pixels), range(4), Fraction(1, 25))
    lossy = {"codec": "mpeg4"} if suffix == "avi" else {}
    with pytest.raises(undula.FileError, match=rf"cannot store {pixels}.*codec='ffv1'"):
        io.process(tmp_path / "x.mkv", tmp_path / f"y.{suffix}", identity, **lossy)
    assert io.process(tmp_path / "x.mkv", tmp_path / "y.mkv", identity, codec="ffv1") == 4


@pytest.mark.parametrize(
    ("pixels", "suffix", "stored"),
    [
        ("bgr0", "mp4", "yuv444p"),
        ("bgr0", "mpg", "yuv422p"),
        ("bgr0", "ts", "yuv444p"),
        ("bgr0", "y4m", "yuv444p"),
        ("gbrp10le", "mov", "yuv444p10le"),
        ("bgra", "mov", "yuva444p10le"),
    ],
)
def test_rgb_is_converted(pixels: str, suffix: str, stored: str, tmp_path: Path) -> None:
    source, target = tmp_path / "x.mkv", tmp_path / f"y.{suffix}"
    with av.open(str(source), "w") as container:
        stream = add_video(container, "ffv1", pixels)
        smooth = np.indices((stream.height, stream.width)).sum(axis=0)[..., None] * [1.5, 0.7, 1.0] + 20
        for number in range(4):
            frame = av.VideoFrame.from_ndarray(smooth.astype("u1"), format="rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    message = f"RGB was converted to {stored}"
    with pytest.warns(undula.FormatWarning, match=message):
        io.process(source, target, identity, quality=5)
    for before, after in zip(io.read_frames(source), io.read_frames(target), strict=True):
        assert np.abs(before.astype(int) - after).mean() < 2.5
    with pytest.warns(undula.FormatWarning, match=f"instead of the codec of the source; {message}"):
        io.process(source, target, identity, codec="copy-like")


def test_semi_planar_ten_bits_stay_ten_bits(tmp_path: Path) -> None:
    properties = io.Video("x", 4, 4, 1, 25.0, 1.0, "p010le", "rawvideo", "nut", ())
    assert properties.bits == 10


@pytest.mark.parametrize("command", ["sharpen", "denoise"])
def test_a_bad_preset_or_quality_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_test_clip(tmp_path / "x.mp4", count=4)
    for option, message in (("--preset=fst", "ultrafast"), ("--crf=99", "from 0")):
        assert main([command, str(source), str(tmp_path / "y.mp4"), option]) != 0
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("codec", "suffix", "message"),
    [
        ("nobody", "mp4", "no video encoder named 'nobody'"),
        ("aac", "mp4", "no video encoder named 'aac'"),
        ("libx264", "webm", "libx264"),
        ("libvpx-vp9", "mov", r"\.mov does not take"),
        ("rawvideo", "mp4", "cannot store rawvideo"),
    ],
)
def test_an_unsuitable_codec_is_named(codec: str, suffix: str, message: str, tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / "x.mp4", count=4)
    with pytest.raises(undula.FileError, match=message) as raised:
        io.process(source, tmp_path / f"y.{suffix}", identity, codec=codec)
    assert "Invalid argument" not in str(raised.value)
    # The error still refers to the frames of the call, whose threads have ended nevertheless.
    assert not any(thread.name.startswith("undula-filter") for thread in threading.enumerate())


def test_colours_and_aspect_ratio_are_kept(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mkv"), "w") as container:
        stream = add_video(container)
        context = stream.codec_context
        context.colorspace, context.color_primaries, context.color_trc, context.color_range = 9, 9, 16, 1
        context.sample_aspect_ratio = Fraction(4, 3)
        encoded(container, stream, range(5), Fraction(1, 25))
    io.process(tmp_path / "x.mkv", tmp_path / "y.webm", identity)  # WebM has square pixels.
    assert next(io.read_frames(tmp_path / "y.webm")).shape == (48, 86, 3)
    with pytest.raises(undula.FileError, match=r"aspect ratio 4:3; write \.mkv"):
        io.process(tmp_path / "x.mkv", tmp_path / "y.avi", identity, codec="utvideo")
    for suffix in ("mp4", "mkv", "mov"):
        io.process(tmp_path / "x.mkv", tmp_path / f"y.{suffix}", identity)
        container, stream = open_video(tmp_path / f"y.{suffix}")
        with container:
            frame = next(container.decode(stream))
            assert (frame.colorspace, frame.color_primaries, frame.color_trc, frame.color_range) == (
                9,
                9,
                16,
                1,
            )
            assert stream.sample_aspect_ratio == Fraction(4, 3)


def test_the_last_frame_keeps_its_duration(tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / "x.mp4", count=6)
    io.process(source, tmp_path / "y.mp4", identity)
    assert io.probe(tmp_path / "y.mp4").seconds == pytest.approx(io.probe(source).seconds, abs=1e-3)


def two_sizes(path: Path) -> Path:
    """Frames of 64 × 48, then of 96 × 48."""
    data = []
    for width in (64, 96):
        with av.open(str(path), "w", format="mpegts") as container:
            stream = add_video(container, "mpeg2video")
            stream.width = width
            encoded(container, stream, range(5), Fraction(1, 25))
        data.append(path.read_bytes())
    path.write_bytes(b"".join(data))
    return path


def test_frames_of_two_sizes_are_an_error(tmp_path: Path) -> None:
    two_sizes(tmp_path / "x.ts")
    for over_time in (0, 4):
        with pytest.raises(undula.FileError, match="64 × 48 of yuv420p to 96 × 48"):
            io.process(tmp_path / "x.ts", tmp_path / "y.mkv", identity, over_time=over_time)


def test_planes_of_another_kind_are_an_error(tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / "x.mp4", count=4)
    for wrong in (lambda planes: [p.astype("f4") for p in planes], lambda planes: planes[:1]):
        with pytest.raises(undula.ArgumentError, match="should return planes"):
            io.process(source, tmp_path / "y.mp4", wrong)


def test_sharpening_of_rgb_video_leaves_grey_grey(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with av.open(str(tmp_path / "x.mkv"), "w") as container:
        stream = add_video(container, "ffv1", "bgr0")
        for number in range(4):
            rgb = np.zeros((48, 64, 3), np.uint8) + 60
            rgb[:, 20 + number :] = 180
            frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="bgr0")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert main(["sharpen", str(tmp_path / "x.mkv"), str(tmp_path / "y.mkv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["frames"] == 4
    for frame in io.read_frames(tmp_path / "y.mkv"):
        np.testing.assert_array_equal(frame[..., 0], frame[..., 1])
        np.testing.assert_array_equal(frame[..., 0], frame[..., 2])


def test_encoders_leave_no_real_time_threads(tmp_path: Path) -> None:
    if not hasattr(os, "sched_setscheduler"):
        pytest.skip("this system has no scheduling policies")
    with ordinary_threads():
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except PermissionError:
            pytest.skip("this user may not change scheduling policies")
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_frames_are_not_cut_into_slices(tmp_path: Path) -> None:
    """Slices for threads make larger files, and use fewer cores than threads for whole frames."""
    with av.open(str(tmp_path / "x.mp4"), "w") as container:
        stream = add_video(container)
        stream.height = 480  # Low frames are never cut.
        encoded(container, stream, range(4), Fraction(1, 25))
    assert io.process(tmp_path / "x.mp4", tmp_path / "y.mp4", identity) == 4
    with av.open(str(tmp_path / "y.mp4")) as container:
        packets = [bytes(packet) for packet in container.demux(video=0) if packet.size]
    assert len(packets) == 4
    assert all(sum(1 <= kind <= 5 for kind in _unit_types(packet)) == 1 for packet in packets)


def _unit_types(packet: bytes) -> Iterator[int]:
    """The types of the units of H.264 in a packet of MP4; 1 to 5 are slices."""
    while packet:
        length = int.from_bytes(packet[:4], "big")
        yield packet[4] & 31
        packet = packet[4 + length :]


def test_tags_in_latin_1_are_read(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.avi"), "w") as container:
        main_stream = add_video(container, "mpeg4")
        container.metadata["title"] = "Cafe in Wien"
        encoded(container, main_stream, range(4), Fraction(1, 25))
    data = (tmp_path / "x.avi").read_bytes()
    (tmp_path / "x.avi").write_bytes(data.replace(b"Cafe", b"Caf\xe9"))
    assert io.process(tmp_path / "x.avi", tmp_path / "y.mkv", identity) == 4
    with av.open(str(tmp_path / "y.mkv")) as container:
        assert container.metadata["title"] == "Café in Wien"


def test_chapters_in_latin_1_are_read_beside_tags_in_utf_8(tmp_path: Path) -> None:
    chapter = {
        "id": 1,
        "start": 0,
        "end": 4,
        "time_base": Fraction(1, 25),
        "metadata": {"title": "Cafe in Wien"},
    }
    with av.open(str(tmp_path / "x.mkv"), "w") as container:
        main_stream = add_video(container)
        container.metadata["title"] = "Žižkov"
        container.set_chapters([chapter])
        encoded(container, main_stream, range(4), Fraction(1, 25))
    data = (tmp_path / "x.mkv").read_bytes()
    (tmp_path / "x.mkv").write_bytes(data.replace(b"Cafe", b"Caf\xe9"))
    assert io.process(tmp_path / "x.mkv", tmp_path / "y.mkv", identity) == 4
    with av.open(str(tmp_path / "y.mkv")) as container:
        assert container.metadata["title"] == "Žižkov"
        assert container.chapters()[0]["metadata"]["title"] == "Café in Wien"


def test_text_subtitles_are_copied_or_converted(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mp4"), "w") as container:
        main_stream = add_video(container)
        words = container.add_mux_stream("mov_text")
        words.time_base = Fraction(1, 1000)
        encoded(container, main_stream, range(4), Fraction(1, 25))
        packet = av.Packet(b"\0\x05hello")
        packet.stream, packet.time_base, packet.duration = words, Fraction(1, 1000), 100
        packet.pts = packet.dts = 0
        container.mux(packet)
    with pytest.warns(undula.FormatWarning, match="subtitles were converted from mov_text to srt"):
        io.process(tmp_path / "x.mp4", tmp_path / "y.mkv", identity)
    with av.open(str(tmp_path / "y.mkv")) as container:
        (line,) = [packet for packet in container.demux(subtitles=0) if packet.size]
        assert (bytes(line), line.pts * line.time_base, line.duration) == (b"hello", 0, 100)
    io.process(tmp_path / "x.mp4", tmp_path / "y.mov", identity)
    with av.open(str(tmp_path / "y.mov")) as container:
        assert [bytes(p) for p in container.demux(subtitles=0) if p.size > 2] == [b"\0\x05hello"]


def cut_off(path: Path, packets: int) -> Path:
    """Truncate a file after a number of packets of its main video stream."""
    with av.open(str(path)) as container:
        last = next(islice((p for p in container.demux(video=0) if p.size), packets - 1, None))
        end = last.pos + last.size + {".mp4": 0, ".avi": 8}.get(path.suffix, 16)  # With its header.
    path.write_bytes(path.read_bytes()[:end])
    return path


def with_sound(path: Path, name: str, seconds: float, **options: Any) -> Path:
    """Write a video of one second with audio of another duration; MP4 gets its index in front."""
    if path.suffix == ".mp4":
        options["options"] = {"movflags": "faststart"}
    with av.open(str(path), "w", **options) as container:
        main_stream = add_video(container, name)
        sound = container.add_stream("libopus" if path.suffix == ".webm" else "aac", rate=48000)
        sound.layout = "stereo"
        container.start_encoding()
        encoded(container, main_stream, range(25), Fraction(1, 25))
        for number in range(round(seconds * 50)):
            quiet = av.AudioFrame.from_ndarray(np.zeros((2, 960), "f4"), "fltp", "stereo")
            if path.suffix == ".webm":
                quiet = av.AudioFrame.from_ndarray(np.zeros((1, 1920), "f4"), "flt", "stereo")
            quiet.rate, quiet.pts, quiet.time_base = 48000, 960 * number, Fraction(1, 48000)
            container.mux(sound.encode(quiet))
        container.mux(sound.encode(None))
    return path


CUT = [
    ("mkv", "libx264"),
    ("webm", "libvpx-vp9"),
    ("mp4", "mpeg4"),
    ("avi", "mjpeg"),
    ("flv", "flv"),
]


def short_clip(path: Path, codec: str) -> Path:
    options = {"movflags": "faststart"} if path.suffix == ".mp4" else {}
    with av.open(str(path), "w", options=options) as container:
        stream = add_video(container, codec, "yuvj420p" if codec == "mjpeg" else "yuv420p")
        encoded(container, stream, range(25), Fraction(1, 25))
    return path


@pytest.mark.parametrize(("suffix", "codec"), CUT)
def test_a_video_that_is_cut_off_is_an_error(suffix: str, codec: str, tmp_path: Path) -> None:
    source, target = short_clip(tmp_path / f"x.{suffix}", codec), tmp_path / "y.mkv"
    assert io.process(source, target, identity) == len(list(io.read_frames(source))) == 25
    target.unlink()
    cut_off(source, 13)
    count = len(plain_decode(source))
    assert 10 <= count <= 14
    for call in (lambda: io.process(source, target, identity), lambda: list(io.read_frames(source))):
        with pytest.raises(undula.FileError, match=rf"x\.{suffix} .*ends after .*count={count}"):
            call()
    assert not target.exists()
    assert io.process(source, target, identity, count=count) == count
    assert len(list(io.read_frames(source, count))) == count


@pytest.mark.parametrize(("suffix", "codec"), CUT[:-1])
def test_a_video_that_lacks_its_last_frames_is_an_error(suffix: str, codec: str, tmp_path: Path) -> None:
    """Sizes that the container declares tell more than its duration, of which little is missing."""
    source = short_clip(tmp_path / f"x.{suffix}", codec)
    cut_off(source, 24)
    with pytest.raises(undula.FileError, match=r"ends after 2[34] frames|cannot read frame"):
        list(io.read_frames(source))


@pytest.mark.parametrize(
    ("suffix", "codec"),
    [*CUT, ("wmv", "wmv2"), ("ogv", "libvpx"), ("mxf", "mpeg2video"), ("nut", "mpeg4"), ("avi", "mpeg4")],
)
def test_no_cut_loses_frames_without_an_error(suffix: str, codec: str, tmp_path: Path) -> None:
    source = short_clip(tmp_path / f"x.{suffix}", codec)
    content, frames = source.read_bytes(), list(io.read_frames(source))
    for share in (0.3, 0.6, 0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999):
        source.write_bytes(content[: int(share * len(content))])
        try:
            part = list(io.read_frames(source))
        except undula.FileError:
            continue
        np.testing.assert_array_equal(part, frames)


def test_a_video_without_its_index(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mov"), "w") as container:  # The index comes last.
        encoded(container, add_video(container, "mpeg4"), range(25), Fraction(1, 25))
    content = (tmp_path / "x.mov").read_bytes()
    for share in (0.4, 0.9):
        (tmp_path / "x.mov").write_bytes(content[: int(share * len(content))])
        with pytest.raises(undula.FileError, match=r"x\.mov as a video: it has no index of its frames"):
            io.probe(tmp_path / "x.mov")


def test_a_video_that_ends_within_its_index(tmp_path: Path) -> None:
    """FFmpeg opens it if the index of the first stream is there."""
    source = with_sound(tmp_path / "x.mov", "mpeg4", 1)  # The index comes last.
    content = source.read_bytes()
    length = len(content) - content.rindex(b"moov")
    source.write_bytes(content[: -length // 4])
    with av.open(str(source)) as container:
        assert len(container.streams.video) == 1
    for call in (
        lambda: io.probe(source),
        lambda: io.process(source, tmp_path / "y.mkv", identity),
        lambda: io.process(source, tmp_path / "y.mkv", identity, audio=False),
    ):
        with pytest.raises(undula.FileError, match=r"x\.mov ends within the index .* cut off"):
            call()


@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
def test_a_video_may_lack_what_follows_its_frames(suffix: str, tmp_path: Path) -> None:
    source = with_sound(tmp_path / f"x.{suffix}", "libx264", 1)
    source.write_bytes(source.read_bytes()[:-20])
    assert len(list(io.read_frames(source))) == 25


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize("seconds", [0.2, 3])
@pytest.mark.parametrize(
    ("suffix", "codec"), [("mkv", "libx264"), ("mp4", "libx264"), ("webm", "libvpx-vp9")]
)
def test_audio_may_be_longer_or_shorter_than_the_video(
    suffix: str, codec: str, seconds: float, tagged: bool, tmp_path: Path
) -> None:
    source = with_sound(tmp_path / f"x.{suffix}", codec, seconds)
    if not tagged:  # Not all programs write the duration of a stream to Matroska.
        source.write_bytes(source.read_bytes().replace(b"DURATION", b"SOMETHIN"))
    assert io.process(source, tmp_path / "y.mkv", identity, audio=False) == 25
    cut_off(source, 13)
    with pytest.raises(undula.FileError, match=r"declares|cannot read frame"):
        io.process(source, tmp_path / "y.mkv", identity, audio=False)


def test_a_duration_copied_from_another_file_is_ignored(tmp_path: Path) -> None:
    source = short_clip(tmp_path / "x.mkv", "libx264")
    source.write_bytes(source.read_bytes().replace(b"00:00:01.0", b"00:20:01.0"))
    assert io.process(source, tmp_path / "y.mkv", identity) == 25


@pytest.mark.parametrize(("offset", "kept"), [(8, 12), (12, 13)])
def test_an_edit_list_shortens_a_video(offset: int, kept: int, tmp_path: Path) -> None:
    source = short_clip(tmp_path / "x.mp4", "mpeg4")
    data = bytearray(source.read_bytes())
    place = data.index(b"elst") + 4 + offset  # The duration of the edit in ms, or its start in the media.
    value = 480 if offset == 8 else 12 * 512
    data[place : place + 4] = value.to_bytes(4, "big")
    source.write_bytes(data)
    assert io.process(source, tmp_path / "y.mkv", identity) == kept


@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
@pytest.mark.parametrize(
    "times", [[0, 10, 57, 60, 5000], [0, 9000], [3000, 3040, 3080], [0, 40, 80, 5000, 5040]]
)
def test_videos_of_few_frames_are_complete(times: list[int], suffix: str, tmp_path: Path) -> None:
    source = with_times(tmp_path / f"x.{suffix}", times, "mpeg4")
    assert io.process(source, tmp_path / "y.mkv", identity) == len(times)


def test_undecodable_frames_are_errors(tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / "x.mov", "png", 12)
    frames = list(io.read_frames(source))
    parts = source.read_bytes().split(b"\x89PNG")
    source.write_bytes(b"\x89PNG".join(parts[:3]) + b"\0PNG" + b"\x89PNG".join(parts[3:]))
    reader = VideoReader(source)
    for call in (
        lambda: reader.frame(2),
        lambda: list(io.read_frames(source)),
        lambda: io.process(source, tmp_path / "y.mkv", identity),
    ):
        with pytest.raises(undula.FileError, match="cannot read frame 2"):
            call()
    for number in (3, 0, 11):
        np.testing.assert_array_equal(reader.frame(number), frames[number])


@pytest.mark.parametrize(("codec", "suffix"), [("mpeg4", "mp4"), ("mpeg2", "mkv"), ("prores", "mov")])
def test_damaged_frames_are_errors(codec: str, suffix: str, tmp_path: Path) -> None:
    source = write_test_clip(tmp_path / f"x.{suffix}", codec, 12)
    frames = list(io.read_frames(source))
    with av.open(str(source)) as container:
        packet = next(islice(container.demux(video=0), 9, None))
    data = bytearray(source.read_bytes())
    for place in range(packet.pos + packet.size // 2, packet.pos + packet.size):
        data[place] ^= 0x5A
    source.write_bytes(data)
    with av.open(str(source)) as container:
        number = next(n for n, frame in enumerate(container.decode(video=0)) if frame.is_corrupt)
    reader = VideoReader(source)
    for call in (
        lambda: reader.frame(number),
        lambda: list(io.read_frames(source)),
        lambda: io.process(source, tmp_path / "y.mkv", identity),
    ):
        with pytest.raises(
            undula.FileError, match=rf"frame {number} of .*x\.{suffix} is damaged.*count={number}"
        ):
            call()
    np.testing.assert_array_equal(reader.frame(2), frames[2])
    assert io.process(source, tmp_path / "y.mkv", identity, count=number) == number


@pytest.mark.parametrize(
    ("codec", "options"),
    [
        ("libx264", {"x264-params": "keyint=6:open-gop=1:bframes=3:b-adapt=0:scenecut=0"}),
        ("libx264", {"x264-params": "keyint=6:intra-refresh=1:bframes=0"}),
        ("mpeg2video", {"g": "6", "bf": "2"}),
    ],
)
def test_a_recording_that_begins_between_two_key_frames_is_not_damaged(
    codec: str, options: dict[str, str], tmp_path: Path
) -> None:
    source = tmp_path / "x.ts"
    with av.open(str(source), "w") as container:
        encoded(container, add_video(container, codec, **options), range(24), Fraction(1, 25))
    data = source.read_bytes()
    source.write_bytes(data[len(data) // 4 // 188 * 188 :])
    count = len(plain_decode(source))
    assert 6 <= count < 24
    assert io.process(source, tmp_path / "y.mkv", identity) == count


@pytest.mark.parametrize(
    ("suffix", "codec"),
    [("mp4", None), ("mov", None), ("webm", None), ("mkv", "libx264"), ("mkv", None), ("avi", "mpeg4")],
)
@pytest.mark.parametrize("width", [64, 65])
def test_grey_keeps_its_brightness(width: int, suffix: str, codec: str | None, tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mkv"), "w") as container:
        stream = add_video(container, "ffv1", "gray")
        stream.width = width
        for number in range(3):
            ramp = np.tile(np.linspace(0, 255, width).astype(np.uint8), (48, 1))
            frame = av.VideoFrame.from_ndarray(ramp, format="gray")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    io.process(tmp_path / "x.mkv", tmp_path / f"y.{suffix}", identity, codec=codec)
    for a, b in zip(
        io.read_frames(tmp_path / "x.mkv"), io.read_frames(tmp_path / f"y.{suffix}"), strict=True
    ):
        np.testing.assert_allclose(a.astype(float), b.astype(float), atol=8)


def test_the_codec_av1_is_named(tmp_path: Path) -> None:
    assert io.probe(write_test_clip(tmp_path / "x.mp4", "av1", 4)).codec == "av1"


LISTED = [
    av.DeviceInfo("@device_cm_{33D9}wave_{71}", "Microphone", False, ["audio"]),
    av.DeviceInfo("@device_pnp_usb#vid_046d", "Webcam", False, ["video"]),
    av.DeviceInfo("@device_sw_{860B}", "Camera and microphone", False, ["audio", "video"]),
    av.DeviceInfo("@device_pnp_usb#vid_04f2", "A camera in use", False, []),
]


def test_cameras_of_directshow_have_names() -> None:
    names = [directshow_name(number, LISTED) for number in range(3)]
    assert names == [device.name for device in LISTED[1:]]
    with pytest.raises(
        undula.FileError, match=r"no camera:3; .* lists camera:0 \(Webcam\), camera:1 \(Camera and "
    ):
        directshow_name(3, LISTED)
    with pytest.raises(undula.FileError, match="no camera:0; DirectShow lists no cameras"):
        directshow_name(0, LISTED[:1])


@pytest.mark.skipif(sys.platform == "win32", reason="DirectShow is there")
def test_cameras_on_windows_are_listed_before_they_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(undula.FileError, match="no such input format: 'dshow'"):
        io.probe("camera:0")


def test_frames_that_share_a_packet_get_times_of_their_own(tmp_path: Path) -> None:
    """FFmpeg gives the time of a packet of a program stream to a wrong frame, and one time twice."""

    def times(path: Path) -> list[float]:
        with av.open(str(path)) as container:
            return [frame.time for frame in container.decode(video=0)]

    source = tmp_path / "x.mpg"
    rng = np.random.default_rng(0)
    with av.open(str(source), "w", format="mpeg") as container:
        stream = add_video(container, "mpeg2video")
        stream.gop_size = 1
        for number in range(25):  # The first frames are larger than those after them.
            pixels = 127 + max(2, 40 >> number) * rng.standard_normal((48, 64))
            frame = av.VideoFrame.from_ndarray(pixels.astype("u1"), format="gray").reformat(format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert len(set(times(source))) < len(times(source)) == 25
    for suffix in ("mkv", "mpg", "avi"):
        target = tmp_path / f"y.{suffix}"
        assert io.process(source, target, identity) == 25
        assert {round(b - a, 3) for a, b in pairwise(times(target))} == {0.04}
    assert io.process(source, tmp_path / "part.mkv", identity, start=0.08, duration=0.2) == 5


@pytest.mark.parametrize(
    ("name", "sound", "advice"),
    [
        ("y.mkv", False, ""),
        ("y.mp4", False, "; write .mkv"),
        ("y.mkv", True, "; write the main video stream alone with audio=False"),
        ("y.mp4", True, "; write .mkv, or write the main video stream alone with audio=False"),
    ],
)
def test_advice_on_audio_needs_audio(name: str, sound: bool, advice: str, tmp_path: Path) -> None:
    source = tmp_path / "x.mkv"
    source = with_sound(source, "mpeg4", 1) if sound else short_clip(source, "mpeg4")

    def fail(planes: Any) -> Any:
        raise av.error.ArgumentError(22, "Invalid argument")

    with pytest.raises(undula.FileError) as raised:
        io.process(source, tmp_path / name, fail)
    assert str(raised.value).endswith(f"Invalid argument{advice}")
