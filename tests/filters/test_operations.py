"""Operations of filters on the CPU and by the reference, compared with NumPy, SciPy and PyWavelets."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pywt
import scipy.ndimage
from hypothesis import given
from hypothesis import strategies as st

from undula.engines.base import engine
from undula.engines.cpu.filter_operations import median_magnitude, rounded
from undula.filters.base import Pyramid
from undula.filters.noise import band_norms
from undula.filters.operations import OPERATIONS, LocalWindow
from undula.filters.selection import select_thresholds
from undula.filters.spatial import gaussian
from undula.filters.stages import RULES, Shrink
from undula.lowering.graph import Graph
from undula.lowering.symbolic import symbolic_input, symbolic_output
from undula.wavelets import Wavelet

ENGINES = ("cpu", "reference")


def run(name: str, function: Callable[..., Any], *arrays: Any) -> list[np.ndarray]:
    """Trace a function of arrays, and return what an engine computes."""
    graph = Graph()
    inputs = {f"x{k}": np.asarray(x) for k, x in enumerate(arrays)}
    results = function(*(symbolic_input(graph, key, x.shape, str(x.dtype)) for key, x in inputs.items()))
    for k, result in enumerate(results):
        symbolic_output(graph, f"y{k}", result)
    return list(engine(name).compile_graph(graph).run(inputs).values())


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ENGINES)
def test_rules_match_pywavelets(rule: str, dtype: str, name: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 70, 61)).astype(dtype)
    low, high = 0.4, 1.1
    expected = pywt.threshold_firm(x, low, high) if rule == "firm" else pywt.threshold(x, low, rule)
    (result,) = run(name, lambda x: OPERATIONS.shrink([x], rule, [low], [high]), x)
    assert result.dtype == x.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-5 if dtype == "f4" else 1e-12, atol=1e-6)


@pytest.mark.parametrize("name", ENGINES)
def test_each_item_has_its_own_threshold(name: str) -> None:
    x = np.random.default_rng(1).standard_normal((3, 9, 8))
    lows = np.array([0.1, 0.5, 2.0])
    expected = np.stack([pywt.threshold(item, t, "soft") for item, t in zip(x, lows, strict=True)])
    (result,) = run(name, lambda x, low: OPERATIONS.shrink([x], "soft", [low], [low]), x, lows)
    np.testing.assert_allclose(result, expected, atol=1e-12)


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


@pytest.mark.parametrize("name", ENGINES)
def test_energies(name: str) -> None:
    rng = np.random.default_rng(0)
    bands = [rng.standard_normal((2, 300, 211)).astype("f4"), rng.standard_normal((2, 5, 3)).astype("f4")]
    for band, sums in zip(bands, run(name, lambda *bands: OPERATIONS.energies(bands), *bands), strict=True):
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
    scaled, unit = x / noise[:, None, None, None], noise[:, None, None, None]
    energy = scipy.ndimage.uniform_filter(scaled**2, (1, 1, 2 * radius + 1, 2 * radius + 1), mode="reflect")
    places = [np.minimum((np.arange(n) + offset) // 2, m - 1) for n, m in ((rows, above), (columns, left))]
    coarser = parents[:, :, places[0][:, None], places[1]] / unit
    for with_parents in (True, False):
        if bivariate:
            size = scaled**2 + (0.8 * coarser**2 if with_parents else 0) + 1e-6
            gain = 1 - 1.3 / np.sqrt(np.maximum(energy - 1, 1e-6) * size)
        else:
            gain = 1 - 1.3 / (energy + 1e-6)
        expected = x * np.maximum(gain, 0)
        for name in ENGINES:
            (actual,) = run(
                name,
                lambda x, p, s, with_parents=with_parents: [
                    OPERATIONS.shrink_locally(x, p if with_parents else None, s, window, 2)
                ],
                x,
                parents,
                noise,
            )
            np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sigma", [0.3, 1, 2.5, 20])
@pytest.mark.parametrize("name", ENGINES)
def test_blurs_match_scipy(sigma: float, name: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 40, 33))
    expected = np.stack([scipy.ndimage.gaussian_filter(p, sigma, mode="reflect") for p in x])
    (actual,) = run(name, lambda x: [OPERATIONS.convolve(x, gaussian(sigma), 2)], x)
    np.testing.assert_allclose(actual, expected, atol=1e-12)
    volume = np.random.default_rng(0).standard_normal((1, 12, 13, 14))
    expected = scipy.ndimage.gaussian_filter(volume[0], sigma, mode="reflect")
    (actual,) = run(name, lambda x: [OPERATIONS.convolve(x, gaussian(sigma), 3)], volume)
    np.testing.assert_allclose(actual[0], expected, atol=1e-12)


def _selected(name: str, method: str, band: np.ndarray, sigma: float = 1.0) -> float:
    """Return the threshold of a band with this noise."""

    def select(x: Any, noise: Any) -> Any:
        return select_thresholds(method, [x], [noise], 400, [1.0])

    return float(run(name, select, band, np.full(len(band), sigma))[0][0])


def test_sure_selects_the_least_risk() -> None:
    rng = np.random.default_rng(3)
    band = rng.standard_normal((1, 20, 20)) + (rng.random((1, 20, 20)) < 0.1) * 8
    sizes = np.abs(band).ravel()

    def risk(t: float) -> float:
        return float(sizes.size - 2 * (sizes <= t).sum() + np.minimum(sizes, t).__pow__(2).sum())

    limit = np.sqrt(2 * np.log(sizes.size))
    least = min(risk(t) for t in sizes if t <= limit)
    quiet = rng.standard_normal((1, 20, 20))
    for name in ENGINES:
        assert risk(_selected(name, "sure", band)) == pytest.approx(least)
        assert _selected(name, "hybrid", quiet) == pytest.approx(limit)
    for method in ("universal", "minimax", "bayes", "sure", "hybrid"):
        ours, expected = (_selected(name, method, band, 0.8) for name in ENGINES)
        assert ours == pytest.approx(expected)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("method", ["bayes", "sure", "hybrid"])
def test_thresholds_do_not_depend_on_invalid_coefficients(method: str, name: str) -> None:
    rng = np.random.default_rng(4)
    band = rng.standard_normal((2, 20, 20))
    band[0] += (rng.random((20, 20)) < 0.1) * 8  # The other item is noise alone.
    valid = np.zeros(band.shape, bool)
    valid[:, 3:8] = valid[0, :10] = True

    def limits(band: Any, valid: Any, sigma: Any) -> Any:
        pyramid = Pyramid(
            operations=OPERATIONS,
            norms=[{"dd": 1.0}],
            samples=400,
            ndim=2,
            offset=0,
            sigma=sigma,
            valid=[valid],
        )
        selected = Shrink(method).limits([{"dd": band}], pyramid)
        assert selected is not None
        return selected.lows

    (lows,) = run(name, limits, band, valid, np.ones(2))
    for k in range(2):
        assert lows[k] == pytest.approx(_selected(name, method, band[k][valid[k]][None]), rel=1e-12)


def test_band_norms_match_the_noise_in_bands() -> None:
    noise = np.random.default_rng(0).standard_normal((3000, 512))
    for name in ("haar", "bior4.4", "cdf53", "rbio3.1"):
        _, *details = pywt.wavedec(noise, "bior2.2" if name == "cdf53" else name, level=3)
        for norms, band in zip(band_norms(Wavelet(name), 3, 1), reversed(details), strict=True):
            assert band[:, 20:-20].std() == pytest.approx(norms["d"], rel=0.01)
