"""Thresholds, compared with PyWavelets."""

from itertools import product
from typing import Any

import array_api_compat
import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st

import undula
from undula.filters import threshold, threshold_firm
from undula.filters.threshold import firm_in, threshold_in

MODES = ("soft", "hard", "garrote", "greater", "less")
samples = st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=12)


@given(
    samples,
    st.floats(0.125, 6),
    st.sampled_from(MODES),
    st.sampled_from([0, -2.5]),
    st.sampled_from(["f4", "f8"]),
)
def test_real_numbers(values: list[float], t: float, mode: str, substitute: float, dtype: str) -> None:
    data = np.array(values, dtype)
    ours = threshold(data, t, mode, substitute)
    with np.errstate(over="ignore"):  # PyWavelets divides by the smallest floats.
        theirs = pywt.threshold(data, t, mode, substitute)
    assert ours.dtype == data.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_samples_that_equal_the_threshold(mode: str) -> None:
    data = np.array([0.3936, -0.3936, 0.1], "f4")
    np.testing.assert_array_equal(threshold(data, 0.3936, mode, 7), pywt.threshold(data, 0.3936, mode, 7))


@given(samples, samples, st.floats(0.125, 6), st.sampled_from(["soft", "hard"]))
def test_complex_numbers(real: list[float], imaginary: list[float], t: float, mode: str) -> None:
    n = min(len(real), len(imaginary))
    data = np.array(real[:n]) + 1j * np.array(imaginary[:n])
    np.testing.assert_allclose(threshold(data, t, mode), pywt.threshold(data, t, mode), atol=1e-12)


@given(samples, st.floats(0.125, 3), st.floats(0.25, 3))
def test_firm_thresholds(values: list[float], low: float, width: float) -> None:
    data = np.array([0, *values])  # PyWavelets overlooks a large first value.
    np.testing.assert_allclose(
        threshold_firm(data, low, low + width), pywt.threshold_firm(data, low, low + width), atol=1e-12
    )


@pytest.mark.parametrize("mode", MODES)
def test_nan_passes_through(mode: str) -> None:
    data = np.array([-3, 1, 0, np.nan, 5])
    np.testing.assert_array_equal(threshold(data, 2, mode), pywt.threshold(data, 2, mode))


@pytest.mark.parametrize("mode", MODES)
def test_a_threshold_for_each_sample(mode: str) -> None:
    data = np.linspace(-3, 3, 12).reshape(3, 4)
    t = np.array([0.5, 1, 2, 3])
    np.testing.assert_allclose(threshold(data, t, mode), pywt.threshold(data, t, mode))


def test_inputs_stay_unchanged() -> None:
    data = np.array([0.0, 1.0, -2.0, np.nan])
    before = data.copy()
    assert np.isnan(threshold(data, 1, "hard")[3])
    np.testing.assert_array_equal(threshold(data, 0, "soft")[:3], data[:3])
    np.testing.assert_array_equal(threshold(np.arange(5), 2, "hard"), [0, 0, 2, 3, 4])
    np.testing.assert_array_equal(threshold_firm(data[:3], 1, 1), [0, 0, -2])
    np.testing.assert_array_equal(data, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], 1, "softt"), "'softt'.*'soft'"),
        (([1.0], 1j), "1j"),
        (([1j], 1, "greater"), "needs real numbers"),
        ((["a"], 1), "dtype"),
        (([1.0], "b"), "threshold"),
    ],
)
def test_invalid_arguments(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        threshold(*arguments)  # type: ignore[arg-type]


def test_invalid_firm_thresholds() -> None:
    for low, high in ((2, 1), (-1, 1)):
        with pytest.raises(undula.ArgumentError, match=str(low)):
            threshold_firm([1.0], low, high)


INTEGERS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def _ramp(dtype: str) -> np.ndarray[Any, Any]:
    if dtype == "?":
        return np.array([True, False, True])
    return np.arange(-6 if dtype[0] == "i" else 0, 7).astype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("mode", MODES)
def test_integers(dtype: str, mode: str) -> None:
    data = _ramp(dtype)
    for substitute, t in product([0, 1, 1.5, -0.25, np.nan, 2 - 1j, np.float64(0.5)], [0.5, 2, 2.5, 4]):
        with np.errstate(all="ignore"):  # PyWavelets divides by zero.
            theirs = pywt.threshold(data, t, mode, substitute)
        ours = threshold(data, t, mode, substitute)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def test_substitutes_of_other_dtypes() -> None:
    assert threshold(np.array([True, False]), 1, "hard", False).dtype == bool
    assert threshold(np.array([1, 2], "u8"), 2, "hard", True).tolist() == [1, 2]
    ours = threshold(np.array([1, 2], "i1"), 2, "hard", np.float32(0.5))
    assert (ours.dtype, ours.tolist()) == (np.float64, [0.5, 2])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("limits", [(1, 3), (2, 2), (2.5, 7)])
def test_firm_on_integers(dtype: str, limits: tuple[float, float]) -> None:
    data = _ramp(dtype)
    with np.errstate(all="ignore"):
        theirs = pywt.threshold_firm(np.array([0, *data.astype(float)]), *limits)[1:]
    if limits[0] == limits[1]:  # PyWavelets divides by zero.
        theirs = np.where(np.abs(data.astype(float)) > limits[1], data, 0)
    ours = threshold_firm(data, *limits)
    assert ours.dtype == np.float64
    np.testing.assert_allclose(ours, theirs, rtol=1e-15)


@pytest.mark.parametrize("mode", ["soft", "hard", "garrote"])
def test_the_least_integer_has_a_magnitude(mode: str) -> None:
    for dtype in ("i1", "i2", "i4"):
        least = int(np.iinfo(dtype).min)
        ours = threshold(np.array([least], dtype), 2, mode)
        np.testing.assert_array_equal(ours, threshold(np.array([float(least)]), 2, mode))


@pytest.mark.parametrize(("dtype", "substitute"), [("u1", -1), ("i1", 300), ("u8", -1), ("i2", 2**40)])
def test_substitutes_out_of_range(dtype: str, substitute: int) -> None:
    for mode in ("hard", "greater", "less"):
        with pytest.raises(undula.ArgumentError, match=f"substitute.*{np.dtype(dtype)}.*{substitute}"):
            threshold(np.ones(3, dtype), 2, mode, substitute)
    np.testing.assert_array_equal(threshold(np.ones(3, dtype), 2, "soft", substitute), np.full(3, substitute))


def test_zeros_are_kept_by_a_threshold_of_zero() -> None:
    for mode in MODES:
        np.testing.assert_array_equal(
            threshold([0.0, 1.0], [0.0, 1.0], mode, 5), [0, {"soft": 0, "garrote": 0}.get(mode, 1)]
        )


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_smallest_magnitudes(dtype: str) -> None:
    """No overflow occurs: warnings are errors in tests."""
    data = np.array([np.finfo(dtype).smallest_subnormal, 4], dtype)
    np.testing.assert_array_equal(threshold(data, 2, "soft"), [0, 2])
    np.testing.assert_array_equal(threshold_firm(data, 1, 3), [0, 4])


def test_complex_substitutes_of_floats() -> None:
    for mode in MODES:
        ours = threshold(np.array([1, 5], "f4"), 3, mode, 1 + 2j)
        theirs = pywt.threshold(np.array([1, 5], "f4"), 3, mode, 1 + 2j)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_firm_with_an_infinite_threshold_is_soft() -> None:
    data = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(threshold_firm(data, 2, np.inf), threshold(data, 2), atol=1e-12)


@pytest.mark.parametrize("dtype", [*INTEGERS, "f4", "f8", "c8"])
@pytest.mark.parametrize("substitute", [0, 1.5, 2 - 1j])
def test_array_api_functions_match(dtype: str, substitute: complex) -> None:
    """The functions of the array API are those of NumPy here."""
    xp = array_api_compat.array_namespace(np.ones(1))
    data = _ramp(dtype) if dtype in INTEGERS else np.arange(-6, 7).astype(dtype)
    for mode in ("soft", "hard", "garrote") if dtype == "c8" else MODES:
        ours, theirs = threshold_in(xp, data, 2, mode, substitute), threshold(data, 2, mode, substitute)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    ours, theirs = firm_in(xp, data, 1, 4), threshold_firm(data, 1, 4)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
