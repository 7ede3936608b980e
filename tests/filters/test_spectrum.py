"""Noise with a power spectrum: its variances, its estimation, and what filters make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import pywt
import scipy.ndimage
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

import undula
from undula.engines.cpu.collaborative import filter_planes
from undula.filters.noise import band_norms
from undula.filters.spectrum import as_spectrum
from undula.lowering.collaborative import PROFILES, collaborate, cosine_matrix, wavelet_matrix
from undula.measures import psnr
from undula.wavelets import as_wavelet

Array = NDArray[Any]
CAMERA = pywt.data.camera()[100:356, 100:356].astype(float)
SMALL = replace(PROFILES["fast"], radius=5)


def colored_noise(
    shape: tuple[int, ...], widths: float | tuple[float, ...], seed: int = 0
) -> tuple[Array, Array]:
    """Return blurred noise of variance 1, and its power spectrum."""
    impulse = np.zeros(shape)
    impulse[(0,) * len(shape)] = 1
    response = np.fft.fftn(scipy.ndimage.gaussian_filter(impulse, widths, mode="wrap"))
    response /= np.sqrt(np.mean(np.abs(response) ** 2))
    noise = np.fft.ifftn(np.fft.fftn(np.random.default_rng(seed).standard_normal(shape)) * response).real
    return noise, np.abs(response) ** 2


@pytest.mark.parametrize("shape", [(256, 256), (64, 200), (48, 40, 44)])
def test_variances_of_blocks_and_bands_are_those_of_noise(shape: tuple[int, ...]) -> None:
    widths = (1.0, 0.6, 0.8)[: len(shape)]
    noise, power = colored_noise(shape, widths)
    spectrum = as_spectrum(9 * power)
    assert spectrum.sigma == pytest.approx(3)
    ndim = len(shape)
    side = 8 if ndim == 2 else 4
    described = spectrum.block_noise(3)
    blocks = sliding_window_view(noise, (side,) * ndim)[(slice(None, None, 2),) * ndim]
    for matrix, variances in (
        (wavelet_matrix(side), described.thresholded),
        (cosine_matrix(side), described.weighted),
    ):
        coefficients = blocks
        for axis in range(ndim):
            coefficients = np.moveaxis(np.tensordot(coefficients, matrix, (ndim + axis, 1)), -1, ndim + axis)
        measured = np.mean(coefficients**2, axis=tuple(range(ndim)))
        large = measured > 0.01
        np.testing.assert_allclose(np.reshape(variances, measured.shape)[large], measured[large], rtol=0.25)
    neighbours = np.mean(noise[1:] * noise[:-1])
    numbers = [k for k, move in enumerate(described.common) if k and abs(move - neighbours) < 0.05]
    assert numbers
    wavelet = as_wavelet("db2")
    details = undula.wavedecn(noise, "db2", "periodization", level=2)[1:]
    for bands, norms in zip(details[::-1], band_norms(wavelet, 2, ndim, spectrum), strict=True):
        for key, band in bands.items():
            if norms[key] > 0.1:
                assert norms[key] == pytest.approx(band.std(), rel=0.15)


def test_white_noise_is_a_constant_spectrum() -> None:
    norms = band_norms(as_wavelet("bior4.4"), 3, 2)
    colored = band_norms(as_wavelet("bior4.4"), 3, 2, as_spectrum(np.full((20, 30), 4.0)))
    for level, other in zip(norms, colored, strict=True):
        assert level == pytest.approx(other)
    noisy = CAMERA + 20 * np.random.default_rng(0).standard_normal(CAMERA.shape)
    for options in ({}, {"method": "collaborative"}):
        expected = undula.denoise(noisy, 20.0, **options)
        result = undula.denoise(noisy, noise=np.full((5, 7), 400.0), **options)
        np.testing.assert_allclose(result, expected, atol=1e-3)


def test_kernels_with_a_spectrum_compute_what_numpy_does() -> None:
    noise, power = colored_noise((32, 44), (1.2, 0.7))
    image = np.rint(CAMERA[:30, :42] + 8 * noise[:30, :42])
    profile = as_spectrum(power).colored_profile(SMALL)
    assert profile.threshold > SMALL.threshold
    expected = collaborate(image[None] / 8, profile)[0] * 8
    result = np.empty((1, *image.shape))
    filter_planes(image[None], np.array([8.0]), profile, 1, result)
    assert np.abs(result[0] - expected).mean() < 0.01
    white = np.empty_like(result)
    filter_planes(image[None], np.array([8.0]), SMALL, 1, white)
    assert np.abs(result - white).mean() > 1


@pytest.mark.parametrize("widths", [0.6, (1.2, 0.5)])
def test_filters_gain_from_the_spectrum(widths: Any) -> None:
    noise, power = colored_noise(CAMERA.shape, widths)
    noisy = CAMERA + 25 * noise

    def quality(**options: Any) -> float:
        return psnr(CAMERA, undula.denoise(noisy, **options), 255)

    for options in ({}, {"method": "collaborative"}, {"quality": "balanced"}):
        white = max(quality(sigma=sigma, **options) for sigma in (None, 25.0))
        estimated, known = quality(noise="correlated", **options), quality(noise=625 * power, **options)
        assert white + 0.5 < estimated < known + 0.1
        assert quality(noise=power, sigma=25.0, **options) == pytest.approx(known, abs=0.01)
    assert quality(noise=625 * power, quality="balanced") > quality(noise=625 * power) + 0.2


@pytest.mark.parametrize("widths", [0.001, 0.8, (1.5, 0.4)])
def test_spectra_are_estimated(widths: Any) -> None:
    noise, power = colored_noise(CAMERA.shape, widths)
    spectrum = undula.estimate_spectrum(CAMERA + 25 * noise)
    assert np.sqrt(spectrum.mean()) == pytest.approx(25, rel=0.1)
    expected, result = (
        np.array(as_spectrum(x).block_noise(3).weighted) * x.mean() for x in (625 * power, spectrum)
    )
    large = expected > 0.1 * expected.max()
    assert np.abs(np.log2(result[large] / expected[large])).mean() < 0.5
    color = np.stack([CAMERA + 25 * noise, CAMERA - 25 * noise], axis=-1)
    assert np.sqrt(undula.estimate_spectrum(color, channel_axis=-1).mean()) == pytest.approx(25, rel=0.1)


def test_colours_volumes_masks_and_batches() -> None:
    noise, power = colored_noise((3, *CAMERA.shape), (0.001, 1.0, 1.0))
    color = np.moveaxis(np.stack([CAMERA, 255 - CAMERA, 0.5 * CAMERA]) + 20 * noise, 0, -1)
    better = undula.denoise(color, noise="correlated", quality="balanced")
    assert psnr(CAMERA, better[..., 0], 255) > psnr(CAMERA, color[..., 0], 255) + 3
    image = color[..., 0].copy()
    image[40:44, 50] = np.nan
    assert np.isnan(undula.denoise(image, noise="correlated", method="collaborative")).sum() == 4
    noise, power = colored_noise((16, 40, 40), 0.8)
    volume = CAMERA[:40, :40] + 20 * noise
    better = undula.denoise(volume, noise=400 * power, method="collaborative")
    clean = np.broadcast_to(CAMERA[:40, :40], volume.shape)
    assert (
        psnr(clean, better, 255) > psnr(clean, undula.denoise(volume, 20.0, method="collaborative"), 255) + 1
    )


def test_pipelines_with_noise_are_values() -> None:
    _, power = colored_noise((16, 16), 1.0)
    for pipeline in (
        undula.Pipeline("db2", 2, ["shrink"], spectrum=4 * power),
        undula.Pipeline("db2", None, ["shrink", "collaborative"], spectrum="estimated", max_level=3),
        undula.Pipeline("db2", 2, ["shrink"], photons="poisson", gain=2.0),
    ):
        again = undula.Pipeline.from_json(pipeline.to_json())
        noisy = np.abs(CAMERA[:64, :64] + 5 * np.random.default_rng(0).standard_normal((64, 64)))
        np.testing.assert_allclose(again(noisy), pipeline(noisy), rtol=1e-6)
        assert "noise" in str(pipeline)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "correlated", "sigma": 2.0}, "omit sigma"),
        ({"noise": "correlated", "regions": 32}, "regions"),
        ({"noise": "correlated", "method": "directional"}, "method='directional'"),
        ({"noise": np.ones((4, 4, 4))}, "2 axes"),
        ({"noise": -np.ones((4, 4))}, "not negative"),
        ({"noise": np.ones((4, 4), complex)}, "real numbers"),
    ],
)
def test_mistakes_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        undula.denoise(CAMERA, **options)


def test_small_images_with_correlated_noise() -> None:
    small = np.random.default_rng(0).standard_normal((3, 3))
    assert undula.denoise(small, noise="correlated").shape == (3, 3)
    with pytest.raises(undula.ArgumentError, match="32 by 32"):
        undula.denoise(small, noise="correlated", method="collaborative")
