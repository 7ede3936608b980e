"""Noise of counted photons: stabilized, inverted without bias, estimated and removed."""

from __future__ import annotations

import numpy as np
import pytest
import pywt

import undula
from undula.filters import PoissonNoise
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
        undula.denoise(0 * image, noise="poisson")
    with pytest.raises(undula.ArgumentTypeError, match="16 by 16"):
        undula.estimate_poisson(image[:4])


def test_negative_samples_are_no_counts() -> None:
    counts = np.random.default_rng(0).poisson(5, (40, 40)).astype(float)
    counts[3, 4] = -2
    with pytest.raises(undula.ArgumentError, match="least sample is -2; subtract the black level"):
        undula.denoise(counts, noise="poisson")
    assert undula.denoise(counts, 1.0, noise="poisson-gaussian", gain=1.0).shape == counts.shape
    mask = counts >= 0  # Samples that are not valid do not matter.
    assert undula.denoise(counts, noise="poisson", gain=1.0, mask=mask)[3, 4] == -2
