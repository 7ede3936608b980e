"""Noise of counted photons: stabilized, inverted without bias, estimated and removed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import pywt

import undula
from undula.filters import Pipeline, PoissonNoise, Shrink
from undula.measures import psnr

PHOTO = pywt.data.camera()[100:356, 100:356].astype(np.float64) / 255


@pytest.mark.parametrize("read_noise", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("gain", [0.02, 5.0])
def test_means_are_restored_without_bias(read_noise: float, gain: float) -> None:
    rng = np.random.default_rng(0)
    noise = PoissonNoise(gain, read_noise * gain)
    for photons in (0.2, 1.0, 6.0, 40.0, 300.0):
        samples = gain * (rng.poisson(photons, 200_000) + read_noise * rng.standard_normal(200_000))
        stable = noise.stabilized(samples)
        tolerance = 4 * np.sqrt((photons + read_noise**2) / samples.size)
        assert abs(noise.restored(np.array([stable.mean()]))[0] / gain - photons) < tolerance
        if photons > 5:
            assert abs(stable.std() - 1) < 0.02


def test_far_beyond_the_table_the_inverse_goes_on() -> None:
    stable = np.linspace(1.3, 60, 20_000)
    for noise in (PoissonNoise(1.0), PoissonNoise(1.0, 2.0)):
        photons = noise.restored(stable)
        assert (photons >= 0).all()
        steps = np.diff(photons[photons > 0.01])
        assert (steps > 0).all()
        assert np.abs(np.diff(steps)).max() < 1e-3


@pytest.mark.parametrize("weight", [0.5, 0.125])
@pytest.mark.parametrize("read_noise", [0.0, 1.5])
def test_combinations_with_means_are_restored_without_bias(weight: float, read_noise: float) -> None:
    rng = np.random.default_rng(0)
    noise = PoissonNoise(3.0, 3 * read_noise)
    for photons in (0.05, 0.7, 6.0, 300.0):
        samples = 3 * (rng.poisson(photons, 200_000) + read_noise * rng.standard_normal(200_000))
        stable = noise.stabilized(weight * samples + (1 - weight) * 3 * photons, weight)
        tolerance = 4 * weight * np.sqrt((photons + read_noise**2) / samples.size)
        assert abs(noise.restored(np.array([stable.mean()]), weight)[0] / 3 - photons) < tolerance
        if photons > 5:
            assert abs(stable.std() - 1) < 0.02


@pytest.mark.parametrize("quality", ["fast", "best"])
@pytest.mark.parametrize(("gain", "sigma"), [(0.1, 0.0), (20.0, 10.0)])
def test_few_photons_are_filtered_from_coarse_to_fine(quality: str, gain: float, sigma: float) -> None:
    rng = np.random.default_rng(1)
    clean = gain * PHOTO[:199, :251]
    photons = gain * rng.poisson(clean / gain) + sigma * rng.standard_normal(clean.shape)
    noise = PoissonNoise(gain, sigma)
    stable = undula.denoise(noise.stabilized(photons), 1.0, quality=quality, noise="gaussian")
    kind = "poisson-gaussian" if sigma else "poisson"
    result = undula.denoise(photons, sigma, noise=kind, gain=gain, quality=quality)
    assert result.shape == clean.shape
    assert psnr(clean, result, gain) > psnr(clean, noise.restored(stable), gain) + 1


@pytest.mark.parametrize("shape", [(4096,), (61, 83), (20, 33, 41), (51, 70, 3)])
def test_light_is_preserved(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    ramp = np.linspace(0.2, 3, shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    photons = rng.poisson(np.broadcast_to(ramp, shape)).astype(np.float32)
    result = undula.denoise(photons, noise="poisson", gain=1.0)
    assert result.dtype == np.float32
    assert (result >= 0).all()
    axes = (0, 1) if shape[-1] == 3 else None  # of each colour
    np.testing.assert_allclose(result.mean(axes), photons.mean(axes), rtol=1e-5)
    assert np.std(result - ramp) < 0.4 * np.std(photons - ramp)


def test_images_of_a_batch_are_filtered_alone() -> None:
    light = np.stack([0.5 * PHOTO[:64, :80], 8 * PHOTO[64:128, :80], 500 * PHOTO[:64, :80]])
    batch = np.random.default_rng(0).poisson(light).astype(np.float64)
    options = {"noise": "poisson", "gain": 1.0, "quality": "balanced"}
    result = undula.denoise(batch, axes=(1, 2), **options)
    for filtered, image in zip(result, batch, strict=True):
        np.testing.assert_array_equal(filtered, undula.denoise(image, **options))


def test_filters_that_do_more_than_remove_noise_are_applied_once() -> None:
    photons = np.random.default_rng(0).poisson(2 * PHOTO[:64, :64]).astype(np.float64)
    noise = PoissonNoise(1.0)
    for stages in (["unsharp"], [Shrink("given", threshold=2.0)], [Shrink("bivariate", strength=0.0)]):
        pipeline = Pipeline("db2", 2, stages, photons="poisson", gain=1.0)
        stable = Pipeline("db2", 2, stages)(noise.stabilized(photons), sigma=1.0)
        np.testing.assert_array_equal(pipeline(photons), noise.restored(stable))


def test_few_photons_around_holes() -> None:
    light = 2 * PHOTO[:96, :96]
    photons = np.random.default_rng(0).poisson(light).astype(np.float64)
    mask = np.ones(photons.shape, bool)
    mask[30:47, 50:] = False
    photons[~mask] = np.nan
    result = undula.denoise(photons, noise="poisson", gain=1.0)
    np.testing.assert_array_equal(np.isnan(result), ~mask)
    assert result[mask].mean() == pytest.approx(photons[mask].mean())
    errors = np.abs(result - light)[mask]
    assert errors.mean() < 0.4 * np.abs(photons - light)[mask].mean()
    # Samples beside the hole are no worse than others: nothing of it gets into them.
    beside = np.abs(result - light)[[29, 47], 50:]
    assert beside.mean() < 2 * errors.mean()


@pytest.mark.parametrize("peak", [1, 5, 20])
def test_gain_is_estimated(peak: int) -> None:
    rng = np.random.default_rng(peak)
    photons = rng.poisson(peak * PHOTO)
    assert undula.estimate_poisson(0.3 * photons, 0.0).gain == pytest.approx(0.3, rel=0.05)
    ramp = np.add.outer(np.linspace(0.1, 1, 512), np.linspace(0.1, 1, 512)) * peak
    sigma = np.sqrt(peak) / 3
    noise = undula.estimate_poisson(7 * (rng.poisson(ramp) + sigma * rng.standard_normal(ramp.shape)))
    assert noise.gain == pytest.approx(7, rel=0.05)
    assert noise.sigma == pytest.approx(7 * sigma, rel=0.2)


@pytest.mark.parametrize("peak", [1, 5, 20])
@pytest.mark.parametrize("quality", ["fast", "balanced"])
def test_photons_need_their_own_noise(peak: int, quality: str) -> None:
    photons = np.random.default_rng(0).poisson(peak * PHOTO)
    plain = undula.denoise(photons.astype(np.float32), quality=quality)
    better = undula.denoise(photons.astype(np.float32), noise="poisson", quality=quality)
    assert psnr(peak * PHOTO, better, peak) > psnr(peak * PHOTO, plain, peak) + 0.3
    assert better.mean() == pytest.approx(photons.mean(), rel=0.02)


def test_integers_of_few_photons_warn() -> None:
    photons = np.random.default_rng(6).poisson(0.3, (40, 50)).astype("uint8")
    with pytest.warns(UserWarning, match="rounded to uint8, in which so few photons are lost"):
        undula.denoise(photons, noise="poisson", gain=1)


def test_noise_is_estimated_beside_a_mask() -> None:
    rng = np.random.default_rng(5)
    y, x = np.indices((200, 260))
    photons = 3.0 * rng.poisson(20 + 15 * np.sin(y / 40) * np.cos(x / 50))
    mask = np.ones(photons.shape, bool)
    mask[40:110, 60:200] = False
    estimates = [
        undula.estimate_poisson(np.where(mask, photons, hidden), 0.0, mask=mask)
        for hidden in (0, 1e6, np.nan)
    ]
    assert estimates[0] == estimates[1] == estimates[2]
    assert estimates[0].gain == pytest.approx(undula.estimate_poisson(photons, 0.0).gain, rel=0.05)
    given = undula.denoise(photons, noise="poisson", gain=estimates[0].gain, mask=mask)
    np.testing.assert_array_equal(undula.denoise(photons, noise="poisson", mask=mask), given)
    with pytest.raises(undula.ArgumentError, match=r"\(200, 260\), got \(2, 2\)"):
        undula.estimate_poisson(photons, mask=np.ones((2, 2)))


def test_dtypes_colours_and_masks() -> None:
    rng = np.random.default_rng(0)
    color = rng.poisson(30 * PHOTO[:64, :64, None] * [1.0, 0.7, 0.4, 0.5]).astype(np.uint16)
    result = undula.denoise(color, noise="poisson")
    assert result.dtype == np.uint16
    np.testing.assert_array_equal(result[..., 3], color[..., 3])
    image = color[..., 0].astype(np.float64)
    image[5, 5] = np.nan
    mask = np.ones(image.shape, bool)
    mask[20:22] = False
    result = undula.denoise(image, 0.5, noise="poisson-gaussian", gain=1.0, mask=mask)
    np.testing.assert_array_equal(result[20:22], image[20:22])
    assert np.isnan(result).sum() == 1
    assert np.nanstd(result) < np.nanstd(image)


@pytest.mark.parametrize("value", [0, 7, 255])
@pytest.mark.parametrize(
    "options",
    [{"noise": "poisson"}, {"noise": "correlated", "quality": "best"}, {"calibrate": True}],
    ids=str,
)
def test_images_without_structure_stay_as_they_are(value: int, options: dict[str, Any]) -> None:
    """Such as black frames of a video."""
    image = np.full((40, 48), value, np.uint8)
    result = undula.denoise(image, **options)
    np.testing.assert_array_equal(result, image)
    assert result.dtype == image.dtype
    assert result is not image


@pytest.mark.parametrize("gain", [0, -1, 1e300, 1e-300, np.inf])
def test_gains_out_of_range(gain: float) -> None:
    with pytest.raises(undula.ArgumentError, match="gain must be"):
        undula.denoise(np.ones((32, 32)), noise="poisson", gain=gain)


def test_mistakes_are_explained() -> None:
    image = np.ones((32, 32))
    with pytest.raises(undula.UnknownNameError, match="poisson-gaussian"):
        undula.denoise(image, noise="salt")
    with pytest.raises(undula.ArgumentError, match="gain is for"):
        undula.denoise(image, gain=2.0)
    with pytest.raises(undula.ArgumentError, match="no read noise"):
        undula.denoise(image, 2.0, noise="poisson")
    with pytest.raises(undula.ArgumentError, match="regions"):
        undula.denoise(image, noise="poisson", regions=16)
    with pytest.raises(undula.ArgumentError, match="pass gain"):
        undula.denoise(np.eye(32), noise="poisson")
    with pytest.raises(undula.ArgumentTypeError, match="16 by 16"):
        undula.estimate_poisson(image[:4])
    with pytest.raises(undula.ArgumentError, match="constant"):
        undula.estimate_poisson(image)


def test_negative_samples_are_no_counts() -> None:
    counts = np.random.default_rng(0).poisson(5, (40, 40)).astype(float)
    counts[3, 4] = -2
    with pytest.raises(undula.ArgumentError, match="least sample is -2; subtract the black level"):
        undula.denoise(counts, noise="poisson")
    assert undula.denoise(counts, 1.0, noise="poisson-gaussian", gain=1.0).shape == counts.shape
    mask = counts >= 0  # Samples that are not valid do not matter.
    assert undula.denoise(counts, noise="poisson", gain=1.0, mask=mask)[3, 4] == -2
