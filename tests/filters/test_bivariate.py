"""Bivariate shrinkage against its publication, in code that shares nothing with the engines.

L. Şendur, I. W. Selesnick: Bivariate shrinkage with local variance estimation. IEEE Signal Processing
Letters, 2002. With the noise σ, the coefficient w₁ and its parent w₂:

    ŵ₁ = (√(w₁² + w₂²) - √3·σ²/σ_s)₊ / √(w₁² + w₂²) · w₁,    σ_s² = (mean of w₁² in a 7 × 7 window - σ²)₊
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import pywt
from numpy.typing import NDArray
from scipy import ndimage

from undula.filters import Pipeline, Shrink
from undula.measures import psnr

Array = NDArray[np.float64]


def shrunk(child: Array, parent: Array | None, sigma: float, offset: int) -> Array:
    """Return the coefficients of a band after the formula of the publication."""
    signal = ndimage.uniform_filter(child**2, 7, mode="reflect") - sigma**2
    deviation = np.sqrt(np.maximum(signal, 1e-12 * sigma**2))
    size, factor = np.abs(child), np.sqrt(2.0)  # Without a parent it is soft thresholding.
    if parent is not None:
        places = [
            np.minimum((np.arange(n) + offset) // 2, m - 1)
            for n, m in zip(child.shape, parent.shape, strict=True)
        ]
        size, factor = np.sqrt(child**2 + parent[np.ix_(*places)] ** 2), np.sqrt(3.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.maximum(size - factor * sigma**2 / deviation, 0) / size
    return np.where(size > 0, gain, 0.0) * child


def denoised(image: Array, wavelet: str, levels: int) -> Array:
    """Return an image denoised by PyWavelets and the formula."""
    coeffs: list[Any] = pywt.wavedec2(image, wavelet, "symmetric", levels)
    magnitudes = np.abs(coeffs[-1][2])
    # Where the mirrored border makes a detail exactly zero, there is no noise to be measured.
    sigma = float(np.median(magnitudes[magnitudes > 1e-9])) / 0.6744897501960817
    offset = max(0, (pywt.Wavelet(wavelet).dec_len - 3) // 2)
    results = [coeffs[0]]
    for number in range(1, levels + 1):
        parents = coeffs[number - 1] if number > 1 else (None,) * 3
        results.append(
            tuple(
                shrunk(child, parent, sigma, offset)
                for child, parent in zip(coeffs[number], parents, strict=True)
            )
        )
    height, width = image.shape
    return np.asarray(pywt.waverec2(results, wavelet, "symmetric")[:height, :width])


@pytest.mark.parametrize("wavelet", ["haar", "db2", "sym6"])
@pytest.mark.parametrize("shape", [(64, 80), (101, 77)])
def test_bivariate_shrinkage_matches_its_publication(wavelet: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    clean = 40 * np.add.outer(np.sin(np.arange(shape[0]) / 9), np.sign(np.sin(np.arange(shape[1]) / 7)))
    noisy = clean + 8 * rng.standard_normal(shape)
    actual = Pipeline(wavelet, 2, [Shrink("bivariate")])(noisy)
    expected = denoised(noisy, wavelet, 2)
    np.testing.assert_allclose(actual, expected, atol=2e-3)
    assert psnr(clean, actual, 80) > psnr(clean, noisy, 80) + 4
