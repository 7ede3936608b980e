"""Array operations of filters, compared with NumPy, SciPy and PyWavelets."""

import numpy as np
import pytest
import pywt
import scipy.ndimage
from hypothesis import given
from hypothesis import strategies as st

from undula.engines.cpu import filter_operations as cpu
from undula.engines.cpu.filter_operations import median_magnitude, rounded
from undula.engines.gpu.emit import kernel
from undula.filters.base import Pyramid
from undula.filters.noise import band_norms
from undula.filters.operations import NUMPY_OPERATIONS, ArrayOperations, GenericOperations, LocalWindow
from undula.filters.selection import select_thresholds
from undula.filters.spatial import gaussian
from undula.filters.stages import RULES, Shrink
from undula.wavelets import Wavelet

OTHER = GenericOperations(np)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rule", RULES)
def test_rules_match_pywavelets(rule: str, dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 70, 61)).astype(dtype)
    low, high = 0.4, 1.1
    expected = pywt.threshold_firm(x, low, high) if rule == "firm" else pywt.threshold(x, low, rule)
    for operations in (NUMPY_OPERATIONS, OTHER):
        result = operations.shrink([x], rule, [low], [high])[0]
        assert result.dtype == x.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-5 if dtype == "f4" else 1e-12, atol=1e-6)
    copy = x.copy()
    np.testing.assert_array_equal(
        NUMPY_OPERATIONS.shrink([copy], rule, [low], [high], overwrite=True)[0],
        NUMPY_OPERATIONS.shrink([x], rule, [low], [high])[0],
    )


def test_every_engine_has_the_same_rules() -> None:
    assert cpu.RULES == (*RULES, "gain")
    assert tuple(kernel.RULES) == (*RULES, "gain")


def test_each_item_has_its_own_threshold() -> None:
    x = np.random.default_rng(1).standard_normal((3, 9, 8))
    lows = np.array([0.1, 0.5, 2.0])
    expected = np.stack([pywt.threshold(item, t, "soft") for item, t in zip(x, lows, strict=True)])
    for operations in (NUMPY_OPERATIONS, OTHER):
        np.testing.assert_allclose(operations.shrink([x], "soft", [lows], [lows])[0], expected, atol=1e-12)


@given(st.integers(1, 400), st.sampled_from(["f4", "f8"]), st.integers(-30, 30), st.integers(0, 2**32 - 1))
def test_medians_ignore_zeros_and_nans(count: int, dtype: str, scale: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(count) * 2.0**scale).astype(dtype)
    x[rng.random(count) < 0.2] = 0
    x[rng.random(count) < 0.1] = np.nan
    x[rng.random(count) < 0.1] = -np.inf
    left = np.abs(x[np.isfinite(x) & (x != 0)]).astype("f8")
    expected = np.median(left) if left.size else 0.0
    assert median_magnitude(x) == pytest.approx(expected, rel=1e-7)


def test_medians_of_large_arrays() -> None:
    x = np.random.default_rng(0).standard_normal(1_000_001).astype("f4")
    assert median_magnitude(x) == np.median(np.abs(x))
    assert (
        OTHER.median_magnitude(x[None, :10_001])[0] == NUMPY_OPERATIONS.median_magnitude(x[None, :10_001])[0]
    )


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("f4", "u1"),
        ("f4", "i1"),
        ("f4", "u2"),
        ("f4", "i2"),
        ("f8", "u1"),
        ("f8", "i2"),
        ("f8", "i4"),
        ("f8", "u4"),
    ],
)
def test_floats_are_rounded_to_integers(kind: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([-1e30, -0.5, 0.49, 0.5, 1.5, 2.5, 100.51, float(info.max), 1e30], kind)
    x = np.concatenate([x, np.random.default_rng(0).uniform(info.min, info.max, 5000).astype(kind)])
    expected = np.clip(np.rint(x), info.min, info.max).astype(dtype)
    np.testing.assert_array_equal(rounded(x, np.dtype(dtype)), expected)


def test_energies() -> None:
    rng = np.random.default_rng(0)
    bands = [rng.standard_normal((2, 300, 211)).astype("f4"), rng.standard_normal((2, 5, 3)).astype("f4")]
    for operations in (NUMPY_OPERATIONS, OTHER):
        for band, sums in zip(bands, operations.energies(bands), strict=True):
            np.testing.assert_allclose(sums, (band.astype("f8") ** 2).sum(axis=(1, 2)), rtol=1e-5)


@pytest.mark.parametrize(
    "sizes", [(9, 11, 5, 6, 0), (20, 21, 12, 13, 1), (21, 20, 13, 12, 3), (5, 4, 3, 2, 2)]
)
@pytest.mark.parametrize("radius", [1, 3, 4])
@pytest.mark.parametrize("bivariate", [True, False])
def test_local_shrinkage_matches_its_formula(sizes: tuple[int, ...], radius: int, bivariate: bool) -> None:
    rows, columns, above, left, offset = sizes
    rng = np.random.default_rng(0)
    x, parents = rng.standard_normal((2, 3, rows, columns)), rng.standard_normal((2, 3, above, left))
    noise = np.array([0.5, 0.7])
    window = LocalWindow(radius, 1.3, 0.8, offset, bivariate)
    for coarser in (parents, None):
        actual, expected = (
            operations.shrink_locally(x, coarser, noise, window, 2)
            for operations in (NUMPY_OPERATIONS, OTHER)
        )
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sigma", [0.3, 1, 2.5, 20])
def test_blurs_match_scipy(sigma: float) -> None:
    x = np.random.default_rng(0).standard_normal((2, 40, 33))
    expected = np.stack([scipy.ndimage.gaussian_filter(p, sigma, mode="reflect") for p in x])
    np.testing.assert_allclose(NUMPY_OPERATIONS.convolve(x, gaussian(sigma), 2), expected, atol=1e-12)
    np.testing.assert_allclose(OTHER.convolve(x, gaussian(sigma), 2), expected, atol=1e-12)
    volume = np.random.default_rng(0).standard_normal((1, 12, 13, 14))
    expected = scipy.ndimage.gaussian_filter(volume[0], sigma, mode="reflect")
    np.testing.assert_allclose(NUMPY_OPERATIONS.convolve(volume, gaussian(sigma), 3)[0], expected, atol=1e-12)


def test_sure_selects_the_least_risk() -> None:
    rng = np.random.default_rng(3)
    band = rng.standard_normal((1, 20, 20)) + (rng.random((1, 20, 20)) < 0.1) * 8
    actual = select_thresholds(NUMPY_OPERATIONS, "sure", [band], [np.array([1.0])], 400, [1.0])[0][0]
    sizes = np.abs(band).ravel()

    def risk(t: float) -> float:
        return float(sizes.size - 2 * (sizes <= t).sum() + np.minimum(sizes, t).__pow__(2).sum())

    limit = np.sqrt(2 * np.log(sizes.size))
    assert risk(actual) == pytest.approx(min(risk(t) for t in sizes if t <= limit))
    quiet = rng.standard_normal((1, 20, 20))
    actual = select_thresholds(NUMPY_OPERATIONS, "hybrid", [quiet], [np.array([1.0])], 400, [1.0])[0][0]
    assert actual == pytest.approx(limit)
    for method in ("universal", "minimax", "bayes", "sure", "hybrid"):
        ours = select_thresholds(NUMPY_OPERATIONS, method, [band], [np.array([0.8])], 400, [1.0])[0]
        np.testing.assert_allclose(
            ours, select_thresholds(OTHER, method, [band], [np.array([0.8])], 400, [1.0])[0]
        )


@pytest.mark.parametrize("operations", [NUMPY_OPERATIONS, OTHER], ids=["NumPy", "array API"])
@pytest.mark.parametrize("method", ["bayes", "sure", "hybrid"])
def test_thresholds_do_not_depend_on_invalid_coefficients(method: str, operations: ArrayOperations) -> None:
    rng = np.random.default_rng(4)
    band = rng.standard_normal((2, 20, 20))
    band[0] += (rng.random((20, 20)) < 0.1) * 8  # The other item is noise alone.
    valid = np.zeros(band.shape, bool)
    valid[:, 3:8] = valid[0, :10] = True
    pyramid = Pyramid(
        operations=operations,
        norms=[{"dd": 1.0}],
        samples=400,
        ndim=2,
        offset=0,
        sigma=np.ones(2),
        valid=[valid],
    )
    limits = Shrink(method).limits([{"dd": band}], pyramid)
    assert limits is not None
    for k in range(2):
        part = band[k][valid[k]][None]
        expected = select_thresholds(NUMPY_OPERATIONS, method, [part], [np.ones(1)], 400, [1.0])[0]
        np.testing.assert_allclose(limits.lows[0][k], expected[0], rtol=1e-12)


def test_band_norms_match_the_noise_in_bands() -> None:
    noise = np.random.default_rng(0).standard_normal((3000, 512))
    for name in ("haar", "bior4.4", "cdf53", "rbio3.1"):
        low, *details = pywt.wavedec(noise, "bior2.2" if name == "cdf53" else name, level=3)
        for (_, norm), band in zip(band_norms(Wavelet(name), 3), reversed(details), strict=True):
            assert band[:, 20:-20].std() == pytest.approx(norm, rel=0.01)
        assert low[:, 20:-20].std() == pytest.approx(band_norms(Wavelet(name), 3)[-1][0], rel=0.02)
