"""Shrinkage of a dual tree: its noise, its quality, and awkward images."""

from __future__ import annotations

import numpy as np
import pytest
import pywt

import undula
from undula.filters import Directional, Pipeline
from undula.filters.directional import FIRST, NORMS, WAVELET
from undula.measures import psnr

PHOTO = pywt.data.camera()[100:300, 150:370].astype(np.float32)
NOISE = np.random.default_rng(0).standard_normal(PHOTO.shape).astype(np.float32)


def test_norms_are_those_of_white_noise() -> None:
    noise = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32)
    _, *details = undula.dtcwt2(noise, WAVELET, len(NORMS), first=FIRST)
    measured = [np.sqrt((np.abs(band) ** 2).mean()) for band in reversed(details)]
    np.testing.assert_allclose(measured, NORMS, rtol=0.02)


@pytest.mark.parametrize("sigma", [10.0, 25.0, 50.0])
def test_directions_are_better_than_separable_wavelets(sigma: float) -> None:
    gains = []
    for clean in (PHOTO, pywt.data.aero()[100:300, 150:370].astype(np.float32)):
        noisy = clean + sigma * NOISE
        fast, directional = (
            psnr(clean, undula.denoise(noisy, sigma, method=method), 255)
            for method in ("bivariate", "directional")
        )
        gains.append(directional - fast)
    assert min(gains) > 0
    assert np.mean(gains) > 0.03


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**90])
def test_the_scale_of_an_image_does_not_matter(scale: float) -> None:
    noisy = (PHOTO + 10 * NOISE)[:64, :64]
    result = undula.denoise(noisy, 10.0, method="directional")
    scaled = undula.denoise(np.float32(scale) * noisy, 10 * scale, method="directional")
    np.testing.assert_allclose(scaled / np.float32(scale), result, rtol=1e-5)


def test_engines_and_dtypes_agree() -> None:
    noisy = PHOTO[:61, :75] + 10 * NOISE[:61, :75]
    result = undula.denoise(noisy, 10.0, method="directional")
    for other in (
        undula.denoise(noisy.astype(float), 10.0, method="directional"),
        undula.denoise(noisy, 10.0, method="directional", backend="reference"),
        Pipeline("db2", 0, [Directional(sigma=10.0)])(noisy),
    ):
        np.testing.assert_allclose(other, result, atol=0.02)
    batch = undula.denoise(np.stack([noisy, noisy]), 10.0, method="directional", axes=(1, 2))
    np.testing.assert_allclose(batch[1], result, atol=1e-3)
    colour = undula.denoise(np.stack([noisy] * 3, -1), 10.0, method="directional", color="channels")
    np.testing.assert_allclose(colour[..., 2], result, atol=1e-3)


@pytest.mark.parametrize("shape", [(2, 2), (5, 40), (17, 3)])
def test_small_and_flat_images(shape: tuple[int, int]) -> None:
    flat = np.full(shape, 7.0)
    np.testing.assert_allclose(undula.denoise(flat, method="directional", channel_axis=None), flat, atol=1e-9)
    noisy = flat + np.random.default_rng(0).standard_normal(shape)
    result = undula.denoise(noisy, 1.0, method="directional", channel_axis=None)
    assert np.isfinite(result).all()
    assert result.std() < noisy.std()
    np.testing.assert_allclose(undula.denoise(noisy, 0.0, method="directional", channel_axis=None), noisy)


def test_signals_have_no_directions() -> None:
    with pytest.raises(undula.UndulaError, match="two axes"):
        undula.denoise(NOISE[0], 1.0, method="directional")
    with pytest.raises(undula.UndulaError, match="omit method='directional'"):
        undula.denoise(NOISE, 1.0, method="directional", quality="best")
