"""Nothing depends on the unit: an image times a power of two gives the result times that power, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

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
