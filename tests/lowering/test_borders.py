"""Extensions against PyWavelets' ``pad``; lengths against its own functions."""

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st

from undula.lowering.borders import (
    LWT_MODES,
    MODES,
    band_length,
    extend,
    max_level,
    signal_length,
    source_places,
)


def test_modes_are_those_of_pywavelets() -> None:
    assert list(MODES) == pywt.Modes.modes


@given(
    st.sampled_from([mode for mode in MODES if mode != "periodization"]),
    st.integers(2, 9),
    st.integers(1, 40),  # (PyWavelets' pad fails on 0 in some modes)
    st.integers(1, 40),
    st.integers(0, 99),
)
def test_extension_is_that_of_pywavelets(mode: str, length: int, before: int, after: int, seed: int) -> None:
    line = np.random.default_rng(seed).standard_normal(length)
    wanted = pywt.pad(line, (before, after), mode)
    found = extend(line, 0, -before, length + after, mode)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("mode", MODES)
def test_extension_along_an_axis_and_of_one_sample(mode: str) -> None:
    block = np.arange(12.0).reshape(3, 4)
    for axis in (0, 1, -1):
        rows = np.apply_along_axis(lambda line: extend(line, 0, -5, 9, mode), axis, block)
        np.testing.assert_array_equal(extend(block, axis, -5, 9, mode), rows)
    single = extend(np.array([2.0]), 0, -3, 4, mode)
    expected = {"zero": [0, 0, 0, 2, 0, 0, 0], "antisymmetric": [-2, 2, -2, 2, -2, 2, -2]}
    np.testing.assert_array_equal(single, expected.get(mode, [2.0] * 7))
    assert extend(np.array([1, 2, 3]), 0, 1, 2, mode).tolist() == [2]


def test_extension_refuses_what_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"\(0,\)"):
        extend(np.zeros(0), 0, -1, 1, "symmetric")
    with pytest.raises(ValueError, match="mirror"):
        extend(np.zeros(3), 0, -1, 1, "mirror")


@given(st.integers(1, 300), st.integers(1, 40).map(lambda k: 2 * k), st.sampled_from(MODES))
def test_lengths_are_those_of_pywavelets(length: int, taps: int, mode: str) -> None:
    bands = band_length(length, taps, mode)
    assert bands == pywt.dwt_coeff_len(length, taps, mode)
    assert max_level(length, taps) == pywt.dwt_max_level(length, taps)
    assert signal_length(bands, taps, mode) == length + length % 2


@given(st.integers(1, 12), st.sampled_from(LWT_MODES))
def test_folded_places_keep_their_parity(length: int, mode: str) -> None:
    wanted = np.arange(-50, 60)
    found = source_places(wanted, length, mode)
    held = found >= 0
    assert np.all(found < length)
    assert np.all((found - wanted)[held] % 2 == 0)
    inside = (wanted >= 0) & (wanted < length)
    np.testing.assert_array_equal(found[inside], wanted[inside])
    if mode == "zero":
        np.testing.assert_array_equal(held, inside)
    elif length > 1:
        assert held.all()
    if mode == "symmetric" and length > 1:
        line = np.arange(length)
        np.testing.assert_array_equal(found, np.pad(line, (50, 60 - length), "reflect"))
