"""Nothing depends on the unit: an image times a power of two gives the result times that power, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undula
from cases import parametrize_some
from undula.filters import Pipeline

RNG = np.random.default_rng(0)
LIGHT = np.add.outer(np.sin(np.arange(48) / 5), np.cos(np.arange(64) / 7)) / 8 + 0.5
SIGMA = 1 / 64
NOISY = LIGHT + SIGMA * RNG.standard_normal(LIGHT.shape)
COUNTS = RNG.poisson(LIGHT * 80) / 128
PIPELINES: dict[str, Any] = {
    "contrast": Pipeline("db2", 3, ["contrast"]),
    "mosaic": Pipeline("db2", 3, [{"stage": "shrink", "method": "bivariate", "noise": "auto"}], invariant=2),
    "correlated": Pipeline("db2", 3, [{"stage": "shrink", "noise": "correlated"}]),
    "bands": Pipeline("haar", 2, [{"stage": "shrink", "noise": "bands"}]),
    "unsharp": Pipeline("db2", 2, ["unsharp", "laplace", "blur", "gain"]),
}
FILTERS: dict[str, Any] = {
    **{
        f"{method} {quality}": lambda x, unit, method=method, quality=quality: undula.denoise(
            x, method=method, quality=quality
        )
        for method in ("bivariate", "block", "bayes", "sure", "hybrid", "minimax", "universal")
        for quality in ("fast", "best")
    },
    "directional": lambda x, unit: undula.denoise(x, method="directional"),
    "collaborative": lambda x, unit: undula.denoise(x, method="collaborative"),
    "balanced": lambda x, unit: undula.denoise(x, quality="balanced"),
    "a known sigma": lambda x, unit: undula.denoise(x, SIGMA * unit, quality="balanced"),
    "noise per sample": lambda x, unit: undula.denoise(x, np.full(x.shape, SIGMA * unit)),
    "regions": lambda x, unit: undula.denoise(x, regions=16),
    "regions of colours": lambda x, unit: undula.denoise(np.stack([x] * 3, -1), regions=16)[..., 0],
    "correlated noise": lambda x, unit: undula.denoise(x, noise="correlated", quality="balanced"),
    "a mask": lambda x, unit: undula.denoise(np.where(LIGHT > 0.4, x, np.nan)),
    "colours": lambda x, unit: undula.denoise(np.stack([x, x[::-1], x[:, ::-1]], -1), quality="balanced"),
    "calibrated": lambda x, unit: undula.denoise(x, calibrate=True, method="universal"),
    "over time": lambda x, unit: undula.denoise(np.stack([x] * 3), over_time=2),
    "a threshold": lambda x, unit: Pipeline(
        "haar", 2, [{"stage": "shrink", "method": "given", "threshold": unit / 32}]
    )(x),
    "a stage's noise": lambda x, unit: Pipeline("haar", 2, [{"stage": "shrink", "sigma": SIGMA * unit}])(x),
    "sharpen": lambda x, unit: undula.sharpen(x),
    "enhance": lambda x, unit: undula.enhance(x),
    "poisson": lambda x, unit: undula.denoise(abs(x), noise="poisson", gain=unit / 128),
    "estimated gain": lambda x, unit: undula.denoise(abs(x), noise="poisson-gaussian"),
    "noise": lambda x, unit: np.array(undula.estimate_sigma(x)),
    "a batch": lambda x, unit: undula.denoise(np.stack([x, x / 3]), axes=(1, 2)),
    **{name: lambda x, unit, pipeline=pipeline: pipeline(x) for name, pipeline in PIPELINES.items()},
}
OF_COUNTS = ("poisson", "estimated gain")
APPROXIMATE: dict[str, Any] = {  # Logarithms are those of a number of units.
    kind: lambda x, unit, kind=kind: undula.despeckle(abs(x), kind=kind)
    for kind in ("intensity", "amplitude")
}
POWERS = {
    "float32": (-140, -120, -60, -33, 30, 110, 120),
    "float64": (-1040, -1000, -500, -33, 30, 500, 1000, 1015),
}
CASES = [(name, dtype, power) for name in FILTERS for dtype, powers in POWERS.items() for power in powers]
FEW = [case for number, case in enumerate(CASES) if number % 9 == 0 or case[2] in (-120, -1000)]


def scaled(x: Any, power: int) -> Any:
    return np.ldexp(x, power)


@parametrize_some(("name", "dtype", "power"), CASES, FEW)
def test_nothing_depends_on_the_unit(name: str, dtype: str, power: int) -> None:
    info = np.finfo(dtype)
    x = scaled((COUNTS if name in OF_COUNTS else NOISY).astype(dtype), power)
    # Subnormal samples are those of a coarser image.
    ordinary = scaled(x, -power)
    expected = scaled(FILTERS[name](ordinary, 1.0), power)
    result = FILTERS[name](x, 2.0**power)
    assert np.isfinite(result[np.isfinite(expected)]).all()
    # Subnormal noise, and subnormal results, have few digits.
    np.testing.assert_allclose(result, expected, rtol=0, atol=4 * float(info.smallest_subnormal))


@pytest.mark.parametrize(("kind", "power"), [("intensity", -900), ("amplitude", 60)])
def test_speckle_hardly_depends_on_the_unit(kind: str, power: int) -> None:
    """The logarithm of a large number has fewer digits."""
    expected = scaled(undula.despeckle(COUNTS, kind=kind), power)
    np.testing.assert_allclose(undula.despeckle(scaled(COUNTS, power), kind=kind), expected, rtol=1e-10)


def test_images_of_a_batch_have_units_of_their_own() -> None:
    images = [scaled(NOISY, power) for power in (-1000, 0, 900)]
    options: dict[str, Any]
    for options in ({}, {"mask": LIGHT > 0.4}, {"regions": 16}):
        together = undula.denoise(np.stack(images), axes=(1, 2), **options)
        for number, image in enumerate(images):
            np.testing.assert_array_equal(together[number], undula.denoise(image, **options))


def test_pictures_of_coefficients_do_not_depend_on_the_unit() -> None:
    pipeline = Pipeline("haar", 2, ["shrink"])
    expected = pipeline.views(NOISY)
    for power in (-1000, -50, 900):
        views = pipeline.views(scaled(NOISY, power))
        np.testing.assert_array_equal(views.analysis, expected.analysis)
        np.testing.assert_array_equal(views.filtered, expected.filtered)


@pytest.mark.parametrize("method", ["bivariate", "block", "bayes", "universal"])
def test_chunks_do_not_depend_on_the_unit(method: str) -> None:
    chunked = pytest.importorskip("dask.array")
    for dtype, powers in (("float32", (-90, 90)), ("float64", (-900, 900))):
        x = NOISY.astype(dtype)
        expected = undula.denoise(x, method=method)
        for power in powers:
            blocks = chunked.from_array(scaled(x, power), chunks=32)
            result = scaled(undula.denoise(blocks, method=method).compute(), -power)
            np.testing.assert_allclose(result, expected, rtol=0, atol=4 * np.finfo(dtype).eps)


def test_subnormal_noise_leaves_no_nan_where_units_are_unknown() -> None:
    chunked = pytest.importorskip("dask.array")
    for method in ("bivariate", "block", "bayes", "universal"):
        blocks = chunked.from_array(scaled(NOISY.astype("float32"), -145), chunks=32)
        assert np.isfinite(undula.denoise(blocks, method=method).compute()).all()
