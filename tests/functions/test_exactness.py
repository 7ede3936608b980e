"""Rounding: what cancels is exactly 0, and float32 is as precise as PyWavelets'."""

import sys
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st
from skimage import data, restoration, util

import undula
from comparing import flat, reference

# Every wavelet whose details of a constant PyWavelets finds to be exactly 0, whatever the constant is.
CANCELLING = "haar db1 rbio1.1 bior1.1 bior1.3 bior1.5 bior2.2 bior2.4 bior2.6 bior2.8".split()
CLOSED = [mode for mode in undula.MODES if mode not in ("zero", "antisymmetric")]  # a constant goes on as one

pytestmark = pytest.mark.filterwarnings("ignore:Level value")


def details(coeffs: Any) -> list[Any]:
    return flat(coeffs[1:])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("mode", CLOSED)
@pytest.mark.parametrize("name", CANCELLING)
def test_a_constant_has_no_details(name: str, mode: str, dtype: str) -> None:
    for shape, value in (((67,), 0.1), ((32, 32), 1 / 3), ((31, 18), 173.3), ((9, 11, 12), 0.7)):
        x = np.full(shape, value, dtype)
        for part in details(undula.wavedecn(x, name, mode, 2)):
            assert not part.any()
        bands = reference.dwtn(x, name, mode)
        assert not any(band.any() for key, band in bands.items() if "d" in key)


@given(
    st.sampled_from(CANCELLING),
    st.sampled_from(CLOSED),
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.sampled_from(["f4", "f8", "c8", "c16"]),
    st.integers(1, 3),
    st.floats(2**-20, 2**20),
)
def test_a_constant_of_any_shape_has_no_details(
    name: str, mode: str, shape: list[int], dtype: str, level: int, value: float
) -> None:
    if mode.endswith("reflect"):  # Two samples are needed, also at the third level.
        shape = [max(8, n) for n in shape]
    x = np.full(shape, value, dtype)
    assert not any(part.any() for part in details(undula.wavedecn(x, name, mode, level)))


@given(
    st.sampled_from(CANCELLING),
    st.sampled_from(undula.MODES),
    st.integers(2, 90),  # (PyWavelets reflects no line of one sample)
    st.sampled_from(["f4", "f8", "c8", "c16"]),
    st.floats(2**-20, 2**20),
)
def test_what_cancels_for_pywavelets_cancels(
    name: str, mode: str, length: int, dtype: str, value: float
) -> None:
    x = np.full(length, value, dtype)
    theirs, mine = pywt.dwt(x, name, mode)[1], undula.dwt(x, name, mode)[1]
    assert not mine[theirs == 0].any()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("picture", ["text", "page"])
def test_scikit_image_denoises_alike(picture: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It estimates the noise from those details of Haar that are not 0."""
    image = util.img_as_float(getattr(data, picture)()).astype(dtype)
    theirs = restoration.denoise_wavelet(image)
    monkeypatch.setitem(sys.modules, "pywt", undula)
    mine = restoration.denoise_wavelet(image)
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5 if dtype == "f4" else 1e-13)


def rms(coeffs: Any, exact: Any) -> float:
    total = sum(float(((a - b) ** 2).sum()) for a, b in zip(flat(coeffs), flat(exact), strict=True))
    return total**0.5


LONG = "db8 db17 db30 sym14 coif5 coif10 dmey bior6.8 rbio3.9 bior3.9".split()


@pytest.mark.parametrize("mode", undula.MODES)
@pytest.mark.parametrize("name", LONG)
def test_float32_is_as_precise_as_that_of_pywavelets(name: str, mode: str) -> None:
    rng = np.random.default_rng(0)
    lines = [100 + 20 * np.sin(np.linspace(0, 7, 600) + rng.uniform(0, 6, (24, 1)))]
    lines += [np.cumsum(rng.standard_normal((24, 600)), axis=1) + 50, rng.standard_normal((24, 600))]
    forward, back = [], []
    for x in (line.astype("f4") for line in lines):
        for level in (1, 2, 6):
            exact = pywt.wavedec(x.astype("f8"), name, mode, level)
            theirs, mine = pywt.wavedec(x, name, mode, level), undula.wavedec(x, name, mode, level)
            forward.append(rms(mine, exact) / rms(theirs, exact))
            coeffs = [part.astype("f4") for part in exact]
            exact = pywt.waverec([part.astype("f8") for part in coeffs], name, mode)
            theirs, mine = pywt.waverec(coeffs, name, mode), undula.waverec(coeffs, name, mode)
            back.append(rms(mine, exact) / rms(theirs, exact))
    for ratios in (forward, back):
        assert np.exp(np.mean(np.log(ratios))) < 1.1
        # (Far beyond the ends, in deep levels, a few roundings decide.)
        assert max(ratios) < 2
