"""Collaborative filtering: against plain NumPy, on awkward images, and blended with wavelets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import undula
from undula.engines.cpu.collaborative import filter_planes
from undula.filters import Collaborative, Pipeline, Shrink
from undula.lowering.collaborative import (
    PROFILES,
    VOLUME_PROFILES,
    CollaborativeProfile,
    collaborate,
    wavelet_matrix,
)
from undula.measures import psnr

Array = NDArray[Any]
SMALL = CollaborativeProfile(5, 16, 16)
PHOTO = pywt.data.camera()[180:308, 150:280].astype(np.float32)
NOISE = np.random.default_rng(0).standard_normal(PHOTO.shape).astype(np.float32)


def filtered(planes: Array, sigmas: Any, profile: CollaborativeProfile = SMALL, matched: int = 1) -> Array:
    out = np.empty_like(planes)
    filter_planes(planes, np.asarray(sigmas, float), profile, matched, out)
    return out


def quality(denoised: Array) -> float:
    return psnr(PHOTO, denoised, 255)


def test_the_wavelet_of_blocks_is_that_of_the_library() -> None:
    low, rows = np.eye(8), []
    for _ in range(3):
        low, detail = undula.dwt(low, "bior1.5", "periodization", axis=0)
        rows.insert(0, detail)
    matrix = np.concatenate([low, *rows])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    np.testing.assert_allclose(wavelet_matrix(), matrix, atol=1e-12)


@pytest.mark.parametrize("name", PROFILES)
def test_kernels_compute_what_numpy_does(name: str) -> None:
    # Integers, and noise that is a power of two, have exact distances: so groups are the same.
    noisy = np.rint(PHOTO[:30, :42] + 8 * NOISE[:30, :42])[None]
    expected = collaborate(noisy / 8.0, PROFILES[name]) * 8
    result = filtered(noisy, [8.0], PROFILES[name])
    assert np.abs(result - expected).max() < 0.5
    assert np.abs(result - expected).mean() < 0.01
    assert np.abs(result - noisy).mean() > 3


@given(
    hnp.arrays(
        np.float32, st.tuples(st.just(2), st.integers(1, 20), st.integers(1, 20)), elements=st.integers(0, 64)
    ),
    st.sampled_from([4.0, 16.0]),
)
@settings(max_examples=20, deadline=None)
def test_channels_have_the_groups_of_the_first_one_at_any_size(planes: Array, sigma: float) -> None:
    expected = collaborate(planes.astype(float) / sigma, SMALL) * sigma
    result = filtered(planes, [sigma, sigma], SMALL, 2)
    assert np.isfinite(result).all()
    # Groups of a pilot differ where distances are equal up to rounding.
    assert np.median(np.abs(result - expected)) < 0.01 * sigma


@pytest.mark.parametrize("method", [{"method": "collaborative"}, {"quality": "best"}])
def test_results_do_not_depend_on_threads(method: dict[str, str]) -> None:
    image = np.tile(PHOTO + 20 * NOISE, (2, 5))[:203, :603]  # Several tiles across and down.
    results = []
    try:
        for threads in (1, 2, 5):
            undula.set_num_threads(threads)
            results.append(undula.denoise(image, 20.0, **method))
    finally:
        undula.set_num_threads(None)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("sigma", [8.0, 25.0])
def test_more_quality_is_better(sigma: float) -> None:
    noisy = PHOTO + sigma * NOISE
    fast, balanced, best = (
        quality(undula.denoise(noisy, sigma, quality=q)) for q in ("fast", "balanced", "best")
    )
    assert quality(noisy) + 3 < fast < balanced - 0.2
    assert best > fast + 0.2
    alone = [quality(undula.denoise(noisy, sigma, method="collaborative", profile=p)) for p in PROFILES]
    assert min(alone) > fast
    assert abs(quality(undula.denoise(noisy, quality="balanced")) - balanced) < 0.3  # Its noise is estimated.


def test_smooth_images_are_not_worse_than_by_wavelets() -> None:
    rows, columns = np.mgrid[:160, :160] / 160.0
    clean = 100 + 50 * np.sin(3 * rows + columns) + 30 * columns**2
    noisy = clean + 20 * np.random.default_rng(1).standard_normal(clean.shape)
    errors = {q: np.std(undula.denoise(noisy, 20.0, quality=q) - clean) for q in ("fast", "balanced", "best")}
    groups = np.std(undula.denoise(noisy, 20.0, method="collaborative") - clean)
    assert errors["balanced"] < 1.01 * errors["fast"]
    assert errors["best"] < 1.01 * errors["fast"]
    assert errors["fast"] < groups


@pytest.mark.parametrize("options", [{"method": "collaborative"}, {"quality": "balanced"}])
class TestAwkwardImages:
    """What all filters promise of their images."""

    def test_without_noise_nothing_changes(self, options: dict[str, str]) -> None:
        np.testing.assert_allclose(undula.denoise(PHOTO, 0.0, **options), PHOTO, atol=1e-3)
        flat = np.full((40, 50), 7, np.uint8)
        np.testing.assert_array_equal(undula.denoise(flat, **options), flat)
        np.testing.assert_array_equal(undula.denoise(flat, 3.0, **options), flat)

    @pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float64", "uint32"])
    def test_dtypes(self, options: dict[str, str], dtype: str) -> None:
        noisy = np.clip(np.rint(PHOTO + 10 * NOISE), 0, 255)
        result = undula.denoise(noisy.astype(dtype), 10.0, **options)
        assert result.dtype == dtype
        expected = undula.denoise(noisy, 10.0, **options)
        assert np.abs(result.astype(float) - expected).mean() < 0.3

    def test_masks_and_nans(self, options: dict[str, str]) -> None:
        noisy = PHOTO + 10 * NOISE
        noisy[40:50, 60:64] = np.nan
        mask = np.ones(noisy.shape, bool)
        mask[:4] = False
        result = undula.denoise(noisy, 10.0, mask=mask, **options)
        np.testing.assert_array_equal(result[:4], noisy[:4])
        assert np.isnan(result).sum() == 40
        valid = mask & np.isfinite(noisy)
        assert psnr(PHOTO[valid], result[valid], 255) > psnr(PHOTO[valid], noisy[valid], 255) + 2

    def test_noise_may_vary(self, options: dict[str, str]) -> None:
        sigmas = np.broadcast_to(np.linspace(4, 24, PHOTO.shape[1], dtype=np.float32), PHOTO.shape)
        noisy = PHOTO + sigmas * NOISE
        assert (
            quality(undula.denoise(noisy, sigmas, **options))
            > quality(undula.denoise(noisy, 4.0, **options)) + 1
        )

    @pytest.mark.parametrize("shape", [(2, 2), (7, 5), (9, 60), (17, 16)])
    def test_small_images(self, options: dict[str, str], shape: tuple[int, int]) -> None:
        noisy = 50 + 5 * np.random.default_rng(2).standard_normal(shape)
        result = undula.denoise(noisy, 5.0, **options)
        assert result.shape == shape
        assert np.std(result) < np.std(noisy)

    def test_batches_and_colours(self, options: dict[str, str]) -> None:
        batch = np.stack([PHOTO[:60] + 9 * NOISE[:60], PHOTO[60:120] - 9 * NOISE[60:120]])
        result = undula.denoise(batch, 9.0, axes=(1, 2), **options)
        for image, expected in zip(batch, result, strict=True):
            np.testing.assert_array_equal(undula.denoise(image, 9.0, **options), expected)
        color = np.stack([PHOTO, 0.5 * PHOTO + 60, 255 - PHOTO, 255 + 0 * PHOTO], axis=-1)
        rng = np.random.default_rng(3)
        noisy = color + [15.0, 15, 15, 0] * rng.standard_normal(color.shape).astype(np.float32)
        better = undula.denoise(noisy, 15.0, **options)
        np.testing.assert_array_equal(better[..., 3], noisy[..., 3])
        assert psnr(color[..., :3], better[..., :3], 255) > psnr(color[..., :3], noisy[..., :3], 255) + 5

    def test_units_do_not_matter(self, options: dict[str, str]) -> None:
        noisy = PHOTO + 10 * NOISE
        scaled = undula.denoise(noisy.astype(np.float64) * 1e-6 - 3, 1e-5, **options)
        expected = undula.denoise(noisy, 10.0, **options)
        assert np.abs((scaled + 3) * 1e6 - expected).mean() < 0.01  # A group may differ.


def noisy_volume(shape: tuple[int, int, int], sigma: float) -> tuple[Array, Array]:
    """Return a volume whose planes are similar, with noise; integers, so that distances are exact."""
    planes, rows, columns = shape
    clean = np.stack([np.roll(PHOTO, (k, 2 * k), (0, 1))[:rows, :columns] for k in range(planes)])
    noise = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    return clean, np.rint(clean + np.float32(sigma) * noise)


@pytest.mark.parametrize("name", ["fast", "best"])
def test_kernels_of_volumes_compute_what_numpy_does(name: str) -> None:
    profile = replace(VOLUME_PROFILES[name], radius=3)
    _, volume = noisy_volume((9, 15, 21), 8)
    expected = collaborate(volume[None] / 8.0, profile) * 8
    result = filtered(volume[None], [8.0], profile)
    assert np.abs(result - expected).mean() < 0.01
    assert np.abs(result - volume).mean() > 3


def test_groups_of_volumes_are_better_than_planes_and_wavelets() -> None:
    clean, volume = noisy_volume((24, 60, 70), 25)
    options: dict[str, dict[str, Any]] = {
        "groups": {"method": "collaborative"},
        "planes": {"method": "collaborative", "axes": (1, 2)},
        "fast": {},
        "best": {"quality": "best"},
    }
    results = {name: psnr(clean, undula.denoise(volume, 25.0, **each), 255) for name, each in options.items()}
    assert results["groups"] > max(results["planes"], results["fast"]) + 0.5
    assert results["best"] > results["groups"]


def test_volumes_do_not_depend_on_threads() -> None:
    _, volume = noisy_volume((30, 90, 100), 20)  # Several bands, layers at the same time, and tiles.
    volume = np.tile(volume, (1, 1, 2))[..., :140]
    results = []
    try:
        for threads in (1, 2, 5):
            undula.set_num_threads(threads)
            results.append(undula.denoise(volume, 20.0, method="collaborative", profile="best"))
    finally:
        undula.set_num_threads(None)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 9, 12), (3, 5, 40), (9, 8, 7)])
def test_small_volumes(shape: tuple[int, int, int]) -> None:
    noisy = 50 + 5 * np.random.default_rng(2).standard_normal(shape)
    result = undula.denoise(noisy, 5.0, method="collaborative")
    assert result.shape == shape
    assert np.std(result) < np.std(noisy)


def test_volumes_with_colours_nans_and_more_axes() -> None:
    clean, volume = noisy_volume((12, 24, 28), 10)
    color = np.stack([volume, 255 - volume, 0.5 * volume], axis=-1)
    better = undula.denoise(color, 10.0, method="collaborative", channel_axis=-1)
    assert psnr(clean, better[..., 0], 255) > psnr(clean, volume, 255) + 2
    volume[3, 4, 5:9] = np.nan
    result = undula.denoise(volume, 10.0, method="collaborative")
    assert np.isnan(result).sum() == 4
    several = np.stack([volume, volume])
    np.testing.assert_array_equal(
        undula.denoise(several, 10.0, method="collaborative", axes=(1, 2, 3))[1], result
    )


@pytest.mark.parametrize("sigma", [1e3, 1e6, 1e30])
def test_more_noise_than_an_image_has_leaves_its_mean(sigma: float) -> None:
    image = np.random.default_rng(0).uniform(0, 1, (40, 52)).astype(np.float32)
    result = undula.denoise(image, sigma, method="collaborative")
    assert abs(result.mean() - image.mean()) < 2e-3  # Blocks have different weights.
    assert result.std() < 0.1
    together = undula.denoise(np.stack([image, image]), sigma, over_time=2)
    assert abs(together.mean() - image.mean()) < 1e-3


def test_strength_is_a_factor_of_the_noise() -> None:
    noisy = PHOTO + 10 * NOISE
    stronger = undula.denoise(noisy, 10.0, method="collaborative", strength=1.5)
    np.testing.assert_array_equal(stronger, undula.denoise(noisy, 15.0, method="collaborative"))


def test_stages_are_values() -> None:
    pipeline = Pipeline("db2", 3, [Shrink("bivariate"), Collaborative("best", strength=1.2)], invariant=True)
    assert Pipeline.from_json(pipeline.to_json()) == pipeline
    reference = Pipeline("db2", 2, [Shrink("bivariate"), Collaborative("fast", sigma=10.0)])
    image = np.rint(PHOTO[:24, :28] + 10 * NOISE[:24, :28])
    difference = reference(image, backend="reference") - reference(image)
    assert np.abs(difference).mean() < 0.1
    without = replace(reference, stages=reference.stages[:1])
    assert np.abs(without(image, sigma=10.0) - reference(image)).mean() > 0.3


def test_mistakes_are_explained() -> None:
    with pytest.raises(undula.ArgumentError, match="two axes"):
        undula.denoise(PHOTO[0], method="collaborative")
    with pytest.raises(undula.UnknownNameError, match="fast, balanced, best"):
        undula.denoise(PHOTO, quality="worst")
    with pytest.raises(undula.UnknownNameError, match="fast, normal, best"):
        undula.denoise(PHOTO, method="collaborative", profile="worst")
    with pytest.raises(undula.ArgumentError, match="omit method"):
        undula.denoise(PHOTO, method="collaborative", quality="best")
    da = pytest.importorskip("dask.array")
    with pytest.raises(undula.ArgumentError, match="in memory"):
        undula.denoise(da.from_array(PHOTO), quality="best")
