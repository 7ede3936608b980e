"""Every container and codec that PyAV can write, compared with direct decoding."""

import ctypes
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest

from cases import parametrize_some
from clips import CLIP_CODECS, COUNT, plain_decode, write_test_clip
from undula import io
from undula.io import video
from undula.io.decoder import Planes, VideoReader
from undula.io.pixel_formats import filterable_format
from undula.io.samples import write_clip
from undula.studio.decoding import FileDecoder

CLIPS = [(name, suffix) for name, codec in CLIP_CODECS.items() for suffix in codec.suffixes.split()]
LOSSLESS = [(name, suffix) for name, suffix in CLIPS if CLIP_CODECS[name].lossless]
# The first container of each codec and the most common codec of each container.
USUAL = {
    ("h264", "mkv"),
    ("h264", "avi"),
    ("h264", "m4v"),
    ("mpeg4", "avi"),
    ("vp9", "webm"),
    ("prores", "mov"),
}
SOME = [clip for clip in CLIPS if clip in USUAL or CLIP_CODECS[clip[0]].suffixes.split()[0] == clip[1]]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    folder = tmp_path_factory.mktemp("clips")

    def cached_clip(name: str, suffix: str) -> Path:
        path = folder / f"{name}.{suffix}"
        return path if path.exists() else write_test_clip(path, name)

    return cached_clip


class SlowQueue(Queue[Any]):
    """A queue that delays the decoder, so that a frame is filtered before the next one is decoded."""

    def put(self, *args: Any, **options: Any) -> None:
        super().put(*args, **options)
        time.sleep(0.003)


def as_bytes(frame: Planes) -> bytes:
    return b"".join(np.ascontiguousarray(plane).tobytes() for plane in frame)


def identity(planes: Planes) -> Planes:
    return planes


def inverted(planes: Planes) -> Planes:
    """A filter whose output is as different from its input as possible."""
    return [np.where(plane < plane.max() // 2, plane.max(), 0).astype(plane.dtype) for plane in planes]


class Recorder:
    """A filter that records its input, and overwrites it in place."""

    def __init__(self, over_time: int) -> None:
        self.over_time, self.lock = over_time, threading.Lock()
        self.frames: Counter[bytes] = Counter()

    def __call__(self, planes: Planes) -> Planes:
        frames = (
            [[plane[t] for plane in planes] for t in range(len(planes[0]))] if self.over_time else [planes]
        )
        with self.lock:
            self.frames.update(as_bytes(frame) for frame in frames)
        for plane in planes:
            plane[...] = 0
        return inverted(planes)


def filtered_planes(name: str, path: Path) -> list[Planes]:
    """Decode directly, in the format that frames are filtered in; filters do not get alpha."""
    pixels = filterable_format(CLIP_CODECS[name].pixels)
    return [
        frame[: 3 if "a" in pixels.partition("p")[0][3:] else None] for frame in plain_decode(path, pixels)
    ]


@pytest.mark.parametrize("over_time", [0, 4])
@parametrize_some(("name", "suffix"), CLIPS, SOME)
def test_filters_get_the_decoded_frames(
    name: str,
    suffix: str,
    over_time: int,
    clip: Callable[[str, str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(video, "Queue", SlowQueue)
    path, recorder = clip(name, suffix), Recorder(over_time)
    count = io.process(path, tmp_path / "y.mkv", recorder, over_time=over_time, workers=2, codec="ffv1")
    expected = Counter(as_bytes(frame) for frame in filtered_planes(name, path))
    assert count == expected.total() == COUNT
    assert set(recorder.frames) == set(expected)
    if not over_time:
        assert recorder.frames == expected


@pytest.mark.parametrize(("name", "suffix"), LOSSLESS)
def test_identity_of_lossless_codecs_is_exact(
    name: str, suffix: str, clip: Callable[[str, str], Path], tmp_path: Path
) -> None:
    path, target = clip(name, suffix), tmp_path / f"y.{suffix}"
    codec = CLIP_CODECS[name]
    assert io.process(path, target, identity, codec=codec.encoder, quality=0, workers=2) == COUNT
    assert io.probe(target).codec == io.probe(path).codec
    assert_same_frames(plain_decode(path, codec.pixels), plain_decode(target, codec.pixels))


@pytest.mark.parametrize("name", [name for name, codec in CLIP_CODECS.items() if codec.lossless])
def test_lossless_codecs_stay_exact_in_matroska(
    name: str, clip: Callable[[str, str], Path], tmp_path: Path
) -> None:
    path = clip(name, CLIP_CODECS[name].suffixes.split()[0])
    codec = "ffv1" if name.startswith("h264") else None  # The default if the source is lossless.
    assert io.process(path, tmp_path / "y.mkv", identity, codec=codec, over_time=4) == COUNT
    pixels = CLIP_CODECS[name].pixels
    assert_same_frames(plain_decode(path, pixels), plain_decode(tmp_path / "y.mkv", pixels))


def assert_same_frames(expected: list[Planes], frames: list[Planes]) -> None:
    assert [as_bytes(frame) for frame in frames] == [as_bytes(frame) for frame in expected]


@pytest.mark.parametrize("suffix", ["mp4", "m4v", "mov", "mkv", "avi", "webm"])
def test_repeated_runs_write_the_same_bytes(
    suffix: str, clip: Callable[[str, str], Path], tmp_path: Path
) -> None:
    files = []
    for number in range(2):
        target = tmp_path / f"{number}.{suffix}"
        io.process(clip("h264-refs", "mp4"), target, inverted, workers=2 + number)
        files.append(target.read_bytes())
    assert files[0] == files[1]


@pytest.fixture
def fill_fresh_memory() -> Iterator[Callable[[int], None]]:
    """A function that sets the byte from which glibc derives the contents of memory that it allocates."""
    glibc_option = -6  # M_PERTURB
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None or not mallopt(glibc_option, 0):
        pytest.skip("the C library cannot fill the memory that it allocates")
    yield lambda value: mallopt(glibc_option, value)
    mallopt(glibc_option, 0)


# Rows of 4 and of 8 macroblocks; libx264 processes up to 8 at once.
@pytest.mark.parametrize("width", [64, 128])
def test_encoded_bytes_do_not_depend_on_the_contents_of_fresh_memory(
    width: int, fill_fresh_memory: Callable[[int], None], tmp_path: Path
) -> None:
    path = write_test_clip(tmp_path / "x.mp4", "h264-refs", width=width)
    files = set()
    for value in (1, 64, 85, 128, 170, 255):
        fill_fresh_memory(value)
        io.process(path, tmp_path / "y.mp4", inverted, workers=2)
        files.add((tmp_path / "y.mp4").read_bytes())
    assert len(files) == 1


def test_generated_clips_do_not_depend_on_the_contents_of_fresh_memory(
    fill_fresh_memory: Callable[[int], None], tmp_path: Path
) -> None:
    files = set()
    for value in (1, 85, 255):
        fill_fresh_memory(value)
        write_clip(tmp_path / "x.mp4", 12.0, 8)
        files.add((tmp_path / "x.mp4").read_bytes())
    assert len(files) == 1


@parametrize_some(("name", "suffix"), CLIPS, SOME)
def test_random_access_returns_the_decoded_frames(
    name: str, suffix: str, clip: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VideoReader, "NEAR_FRAMES", 3)
    path = clip(name, suffix)
    expected = [frame[0] for frame in plain_decode(path, "rgb24")]
    reader = VideoReader(path)
    for number in (0, 1, 9, 4, 5, 7, 19, 18, 2, 2, 0, COUNT + 5):
        frame = expected[min(number, COUNT - 1)].reshape(64, 64, 3)
        np.testing.assert_array_equal(reader.frame(number), frame, err_msg=f"frame {number}")
    reader.close()


def test_the_studio_shows_the_decoded_frames(clip: Callable[[str, str], Path]) -> None:
    path = clip("h264-refs", "mp4")
    expected = [frame[0].reshape(64, 64, 3) for frame in plain_decode(path, "rgb24")]
    decoder = FileDecoder(path)
    try:
        for number in (0, 1, 2, 17, 3, COUNT - 1):
            np.testing.assert_array_equal(decoder.frame(number, ahead=number + 1), expected[number])
    finally:
        decoder.close()
