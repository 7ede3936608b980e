"""The LWT on the engine against the reference: floats to rounding, integers bit for bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undula
from comparing import assert_identical, assert_same, flat, noise
from undula.backends import reference


@pytest.mark.parametrize("mode", undula.LWT_MODES)
def test_every_wavelet_agrees_with_the_reference(wavelet: undula.Wavelet, mode: str) -> None:
    for shape in ((1,), (2,), (3,), (64,), (37,), (1, 7), (16, 33)):
        for dtype in ("f8", "f4", "i8", "c16"):
            x = noise(*shape, dtype=dtype)
            theirs = reference.lwtn(x, wavelet, 2, mode)
            assert_same(undula.lwtn(x, wavelet, 2, mode), theirs, 10)
            back = undula.ilwtn(theirs, wavelet, mode)
            assert_same(back, reference.ilwtn(theirs, wavelet, mode), 10)


@given(
    st.sampled_from(["haar", "db4", "cdf53", "cdf97", "dd137", "rbio4.4", "sym6"]),
    st.sampled_from(undula.LWT_MODES),
    st.lists(st.integers(1, 25), min_size=1, max_size=3),
    st.integers(0, 6),
    st.sampled_from(["f2", "f4", "f8", "c8", "u1", "i2", "i8"]),
    st.data(),
)
def test_as_many_numbers_out_as_in(
    name: str, mode: str, shape: list[int], level: int, dtype: str, data: st.DataObject
) -> None:
    x = noise(*shape, dtype=dtype)
    axes = data.draw(st.none() | st.permutations(range(len(shape))))
    coeffs = undula.lwtn(x, name, level, mode, axes)
    assert sum(part.size for part in flat(coeffs)) == x.size
    back = undula.ilwtn(coeffs, name, mode, axes)
    assert back.shape == x.shape
    if x.dtype.kind in "iu":
        assert back.dtype == np.int64
        np.testing.assert_array_equal(back, x)
        assert_identical(coeffs, reference.lwtn(x, name, level, mode, axes))
    else:
        np.testing.assert_allclose(
            back, x, rtol=0, atol=1e-3 if x.dtype.itemsize <= 4 or dtype == "c8" else 1e-9
        )


def test_lines_and_images() -> None:
    x = noise(3, 20, 31)
    for axis in (0, 1, -1):
        coeffs = undula.lwt(x, "cdf97", 2, axis=axis)
        assert_same(coeffs, reference.lwt(x, "cdf97", 2, axis=axis))
        assert_same(undula.ilwt(coeffs, "cdf97", axis=axis), x)
    for axes in ((-2, -1), (2, 0)):
        planes = undula.lwt2(x, "cdf53", 3, axes=axes)
        assert_same(planes, reference.lwt2(x, "cdf53", 3, axes=axes))
        assert_same(undula.ilwt2(planes, "cdf53", axes=axes), x)
    large = noise(800, 901, dtype="f4")
    deep = undula.lwt2(large, "cdf97", level=None)
    assert deep[0].shape == (1, 1)
    assert_same(undula.ilwt2(deep, "cdf97"), large, 10)
    made = [np.empty_like(deep[0]), *(tuple(map(np.empty_like, level)) for level in deep[1:])]
    assert_identical(undula.lwt2(large, "cdf97", level=None, out=made), deep)
    array = np.empty_like(large)
    assert undula.ilwt2(deep, "cdf97", out=array) is array


def test_threads_do_not_change_a_bit() -> None:
    for x in (noise(900, 801), noise(900, 801).astype(np.int64)):
        for name in ("cdf97", "db3"):
            undula.set_num_threads(1)
            try:
                wanted = undula.lwt2(x, name, 3)
                undula.set_num_threads(3)
                assert_identical(undula.lwt2(x, name, 3), wanted)
            finally:
                undula.set_num_threads(None)


BAD: dict[str, tuple[Any, str]] = {
    "no lifting": (lambda: undula.lwt(np.ones(8), "dmey"), "dmey"),
    "a mode of the DWT": (lambda: undula.lwt(np.ones(8), "haar", mode="reflect"), "'reflect'"),
    "negative level": (lambda: undula.lwt(np.ones(8), "haar", -1), "-1"),
    "level of no integer": (lambda: undula.lwt(np.ones(8), "haar", 1.5), "1.5"),  # type: ignore[arg-type]
    "huge integers": (lambda: undula.lwt([2**50], "haar"), "2⁴⁰"),
    "nothing": (lambda: undula.lwt2(np.ones((0, 4)), "haar"), r"\(0, 4\)"),
    "missing": (lambda: undula.ilwt([np.ones(2), None], "haar"), "None"),  # type: ignore[list-item]
    "bands that do not fit": (lambda: undula.ilwt([np.ones(2), np.ones(4)], "haar"), r"\(2,\).*\(4,\)"),
    "integers and floats": (lambda: undula.ilwt([np.ones(2, int), np.ones(2)], "haar"), "int64"),
    "keys": (lambda: undula.ilwtn([np.ones(2), {"x": np.ones(2)}], "haar"), "'x'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, message = BAD[case]
    with pytest.raises(undula.UndulaError, match=f"(?s){message}"):
        act()
