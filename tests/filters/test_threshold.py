"""Thresholds against PyWavelets."""

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st

import undula
from undula.filters import threshold, threshold_firm

MODES = ("soft", "hard", "garrote", "greater", "less")
samples = st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=12)


@given(
    samples,
    st.floats(0.125, 6),
    st.sampled_from(MODES),
    st.sampled_from([0, -2.5]),
    st.sampled_from(["f4", "f8"]),
)
def test_real(values: list[float], t: float, mode: str, substitute: float, dtype: str) -> None:
    data = np.array(values, dtype)
    mine, theirs = threshold(data, t, mode, substitute), pywt.threshold(data, t, mode, substitute)
    assert mine.dtype == data.dtype
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@given(samples, samples, st.floats(0.125, 6), st.sampled_from(["soft", "hard"]))
def test_complex(real: list[float], imaginary: list[float], t: float, mode: str) -> None:
    n = min(len(real), len(imaginary))
    data = np.array(real[:n]) + 1j * np.array(imaginary[:n])
    np.testing.assert_allclose(threshold(data, t, mode), pywt.threshold(data, t, mode), atol=1e-12)


@given(samples, st.floats(0.125, 3), st.floats(0.25, 3))
def test_firm(values: list[float], low: float, width: float) -> None:
    data = np.array([0, *values])  # (PyWavelets overlooks a large value that stands first)
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


def test_nothing_is_lost_or_changed() -> None:
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
        (([1.0], -1), "-1"),
        (([1j], 1, "greater"), "order"),
        ((["a"], 1), "dtype"),
        (([1.0], "b"), "threshold"),
    ],
)
def test_bad_input(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        threshold(*arguments)  # type: ignore[arg-type]


def test_bad_firm_thresholds() -> None:
    for low, high in ((2, 1), (-1, 1)):
        with pytest.raises(undula.ArgumentError, match=str(low)):
            threshold_firm([1.0], low, high)
