"""Multiresolution analyses against PyWavelets."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pywt

import undula
from comparing import assert_same, flat, noise

pytestmark = pytest.mark.filterwarnings("ignore:Level value")

DECIMATED = [
    ("mra", (37,), {"transform": "dwt", "level": 3}),
    ("mra", (20, 3), {"transform": "dwt", "level": 2, "axis": 0}),
    ("mra2", (21, 14), {"transform": "dwt2", "level": 2}),
    ("mra2", (11, 2, 20), {"transform": "dwt2", "level": 2, "axes": (0, 2)}),
    ("mran", (13, 6, 8), {"transform": "dwtn", "level": 2}),
    ("mran", (13, 3, 8), {"transform": "dwtn", "level": 1, "axes": (2, 0)}),
]
STATIONARY = [
    ("mra", (32,), {}),
    ("mra", (48, 3), {"level": 3, "axis": 0}),
    ("mra2", (16, 32), {}),
    ("mra2", (16, 8, 32), {"level": 2, "axes": (0, 2)}),
    ("mran", (4, 8, 4), {}),
    ("mran", (8, 4, 16), {"level": 2, "axes": (2, 0)}),
]


def check(name: str, x: Any, wavelet: Any, looser: float = 1, **options: Any) -> Any:
    """The contributions are those of PyWavelets, and add up to the samples."""
    parts = getattr(undula, name)(x, wavelet, **options)
    assert_same(parts, getattr(pywt, name)(x, wavelet, **options), looser)
    before = [part.copy() for part in flat(parts)]
    assert_same(getattr(undula, f"i{name}")(parts), x, looser)
    assert all((a == b).all() for a, b in zip(flat(parts), before, strict=True))
    return parts


@pytest.mark.parametrize(("name", "shape", "options"), DECIMATED)
@pytest.mark.parametrize("mode", pywt.Modes.modes)
def test_decimated(name: str, shape: tuple[int, ...], options: dict[str, Any], mode: str) -> None:
    parts = check(name, noise(*shape), "db2", 100, mode=mode, **options)
    assert {part.shape for part in flat(parts)} == {shape}


@pytest.mark.parametrize(("name", "shape", "options"), STATIONARY)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_stationary(name: str, shape: tuple[int, ...], options: dict[str, Any], dtype: str) -> None:
    check(name, noise(*shape, dtype=dtype), "db4", **options)


@pytest.mark.parametrize("dtype", ["f4", "c8", "c16"])
def test_dtypes(dtype: str) -> None:
    for name, shape, options in DECIMATED:
        check(name, noise(*shape, dtype=dtype), "db3", mode="symmetric", **options)


@pytest.mark.parametrize("length", [1, 7, 12, 45])
@pytest.mark.parametrize("level", [None, 1, 3])
def test_stationary_of_any_length(length: int, level: int | None) -> None:
    """The analysis of a period is that by the MODWT, whatever its length."""
    x = noise(length)
    parts = undula.mra(x, "db3", level)
    assert_same(undula.imra(parts), x, 10)
    assert_same(parts, undula.modwt_mra(x, "db3", len(parts) - 1)[::-1], 10)
    image = noise(length, 6)
    assert_same(undula.imra2(undula.mra2(image, "db2", level)), image, 10)
    assert_same(undula.imran(undula.mran(image, "db2", level)), image, 10)


def test_default_levels() -> None:
    assert len(undula.mra(noise(64), "haar", transform="dwt")) == 7
    assert len(undula.mra(noise(64), "haar")) == 7
    assert len(undula.mra2(noise(3, 16, 32), "haar")) == 5  # The number of images does not matter.


def test_default_levels_of_some_axes() -> None:
    """PyWavelets looks at the lengths of all axes; where these have no level, it has no answer."""
    x = np.random.default_rng(0).standard_normal((16, 32))
    assert len(undula.mran(x, "haar", axes=(1,))) == len(pywt.mran(x, "haar", axes=(1,))) == 5
    assert len(undula.mran(x[:3], "haar", axes=(1,))) == 6


def test_a_wavelet_for_each_axis() -> None:
    wavelets, modes = ("haar", "db3"), ("zero", "reflect")
    check("mra2", noise(20, 21), wavelets, transform="dwt2", mode=modes, level=1)
    check("mran", noise(20, 21), wavelets, transform="dwtn", mode=modes, level=1)


def test_level_zero_is_the_samples() -> None:
    (smooth,) = undula.mra([1.0, 2.0, 4.0], "db2", 0, transform="dwt")
    assert smooth.tolist() == [1, 2, 4]


LINE = np.arange(16.0)
BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "transform": (lambda: undula.mra(LINE, "haar", transform="dwt2"), ValueError, "'swt' or 'dwt'.*'dwt2'"),
    "transform of images": (lambda: undula.mra2(np.eye(4), "haar", transform="swt"), ValueError, "'swt2'"),
    "mode": (lambda: undula.mra(LINE, "haar", mode="symmetric"), ValueError, "'symmetric'.*transform='dwt'"),
    "mode of volumes": (lambda: undula.mran(LINE, "haar", mode="zero"), ValueError, "'zero'"),
    "axis": (lambda: undula.mra(LINE, "haar", axis=1, transform="dwt"), np.exceptions.AxisError, r"\(1,\)"),
    "axes": (
        lambda: undula.mran(LINE, "haar", axes=(0, 2), transform="dwtn"),
        np.exceptions.AxisError,
        r"\(0, 2\)",
    ),
    "sum of nothing": (lambda: undula.imra([]), ValueError, "got none"),
    "sum of details": (lambda: undula.imran({"a": LINE}), TypeError, "dict"),  # type: ignore[arg-type]
    "sum of a string": (lambda: undula.imra("abc"), TypeError, "str"),  # type: ignore[arg-type]
    "sum of other shapes": (lambda: undula.imra([LINE, LINE[:8]]), ValueError, r"\(8,\), \(16,\)"),
    "sum of None": (lambda: undula.imran([None, {"d": LINE}]), TypeError, "got None"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, kind, message = BAD[case]
    with pytest.raises(kind, match=message) as error:
        act()
    assert isinstance(error.value, undula.UndulaError)


def test_contributions_and_bands_in_one_array() -> None:
    x = noise(32)
    stacked = np.array(pywt.mra(x, "db2", 2))
    np.testing.assert_allclose(undula.imra(stacked), x)
    bands = np.array(undula.modwt(x, "db2", 2))
    np.testing.assert_allclose(undula.imodwt(bands, "db2"), x)
