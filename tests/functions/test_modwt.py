"""The MODWT against circular convolutions by the book."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import undula
from comparing import assert_same, noise

Array = NDArray[Any]
pytestmark = pytest.mark.filterwarnings("ignore:norm=True")  # of wavelets that are not orthogonal


def by_the_book(x: Array, name: str, level: int) -> list[Array]:
    """W_j,t = Σ h_l V_j-1,(t - 2^(j-1) l mod N), and V likewise with g; h and g are divided by √2."""
    wavelet, length = pywt.Wavelet(name), x.shape[-1]
    details, scaling = [], x.astype(np.result_type(x, "f8"))
    for step in (2**j for j in range(level)):
        places = (np.arange(length) - step * np.arange(wavelet.dec_len)[:, None]) % length
        before = scaling
        details.append(
            sum(tap * before[..., row] for tap, row in zip(wavelet.dec_hi, places, strict=True)) / 2**0.5
        )
        scaling = (
            sum(tap * before[..., row] for tap, row in zip(wavelet.dec_lo, places, strict=True)) / 2**0.5
        )
    return [*details, scaling]


LENGTHS = [1, 2, 5, 16, 37, 64]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ["haar", "db2", "db8", "coif2", "bior2.2"])
def test_convolutions(name: str, length: int) -> None:
    x = noise(2, length)
    for level in (1, 2, 4):
        coeffs = undula.modwt(x, name, level)
        assert_same(coeffs, by_the_book(x, name, level))
        assert_same(undula.imodwt(coeffs, name), x)


@pytest.mark.parametrize("dtype", ["f4", "c8", "c16", "i8"])
def test_dtypes_and_axes(dtype: str) -> None:
    x = noise(21, 3, dtype=dtype)
    for axis in (0, -2):
        coeffs = undula.modwt(x, "db3", 2, axis)
        expected = by_the_book(x.T, "db3", 2)
        looser = 1e7 if dtype in ("f4", "c8") else 1
        assert_same([c.T.astype("c16") for c in coeffs], [c.astype("c16") for c in expected], looser)
        assert coeffs[0].dtype == (np.dtype("f8") if dtype == "i8" else np.dtype(dtype))
        np.testing.assert_allclose(undula.imodwt(coeffs, "db3", axis), x, atol=1e-4)


@given(
    st.integers(1, 40),
    st.sampled_from(["haar", "db4", "sym5", "coif1"]),
    st.integers(1, 4),
    st.integers(-50, 50),
)
def test_energy_and_shifts(length: int, name: str, level: int, shift: int) -> None:
    x = noise(length)
    coeffs = undula.modwt(x, name, level)
    assert sum(np.square(c).sum() for c in coeffs) == pytest.approx(np.square(x).sum())
    assert_same(undula.modwt(np.roll(x, shift), name, level), [np.roll(c, shift) for c in coeffs], 10)


@pytest.mark.parametrize("boundary", ["circular", "reflection"])
@pytest.mark.parametrize("length", LENGTHS)
def test_details_and_smooth_add_up(length: int, boundary: str) -> None:
    x = noise(length)
    parts = undula.modwt_mra(x, "db4", 3, boundary=boundary)
    assert [part.shape for part in parts] == [x.shape] * 4
    assert_same(sum(parts), x)


@pytest.mark.parametrize("name", ["haar", "db3", "sym4"])
def test_details_have_zero_phase(name: str) -> None:
    """A detail is the line filtered by |H|², so it is symmetric about a spike."""
    spike = np.zeros(63)
    spike[31] = 1
    for part in undula.modwt_mra(spike, name, 2):
        np.testing.assert_allclose(part, part[::-1], atol=1e-12)
        assert np.abs(part).argmax() == 31


def test_the_dwt_is_every_second_coefficient() -> None:
    """√2 W1 at odd places is the DWT of the book, here away from the ends."""
    x = noise(64)
    details, scaling = undula.modwt(x, "db4", 1)
    low, high = pywt.dwt(x, "db4", "periodic")
    np.testing.assert_allclose(2**0.5 * details[1::2], high[:32], atol=1e-10)
    np.testing.assert_allclose(2**0.5 * scaling[1::2], low[:32], atol=1e-10)


def test_reflection_is_that_of_the_line_and_its_mirror_image() -> None:
    x = noise(3, 21)
    coeffs = undula.modwt(x, "db2", 3, boundary="reflection")
    assert_same(coeffs, by_the_book(np.concatenate([x, x[:, ::-1]], axis=1), "db2", 3))
    assert_same(undula.imodwt(coeffs, "db2", boundary="reflection"), x)
    along = undula.modwt(x.T, "db2", 3, 0, "reflection")
    assert_same(undula.imodwt(along, "db2", 0, "reflection"), x.T)


@pytest.mark.parametrize(("length", "name", "levels"), [(64, "haar", 6), (64, "db4", 3), (3, "db4", 1)])
def test_default_level_has_filters_no_longer_than_the_line(length: int, name: str, levels: int) -> None:
    assert len(undula.modwt(noise(length), name)) == levels + 1
    assert len(undula.modwt_mra(noise(length), name, boundary="reflection")) == levels + 1


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "boundary": (lambda: undula.modwt([1.0, 2.0], "haar", boundary="periodic"), "'periodic'"),
    "boundary back": (
        lambda: undula.imodwt([np.ones(4)] * 2, "haar", boundary="zero"),
        "'circular' or 'reflection', got 'zero'",
    ),
    "level 0": (lambda: undula.modwt([1.0, 2.0], "haar", 0), "got 0"),
    "level of no integer": (lambda: undula.modwt([1.0, 2.0], "haar", 1.5), "1.5"),  # type: ignore[arg-type]
    "no samples": (lambda: undula.modwt(np.ones((2, 0)), "haar"), r"\(2, 0\)"),
    "axis": (lambda: undula.modwt([1.0, 2.0], "haar", axis=1), r"\(1,\)"),
    "one band": (lambda: undula.imodwt([np.ones(4)], "haar"), "two or more"),
    "a band": (lambda: undula.imodwt(np.ones(4), "haar"), "ndarray"),  # type: ignore[arg-type]
    "shapes": (lambda: undula.imodwt([np.ones(4), np.ones(5)], "haar"), r"\(4,\), \(5,\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, message = BAD[case]
    with pytest.raises(undula.UndulaError, match=message):
        act()


@pytest.mark.parametrize("boundary", ["circular", "reflection"])
def test_engines_agree(target: str, boundary: str) -> None:
    x = noise(3, 37)
    expected = undula.modwt(x, "db3", 3, boundary=boundary)
    for backend in ("reference", target):
        bands = undula.modwt(x, "db3", 3, boundary=boundary, backend=backend)
        for mine, theirs in zip(bands, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-12)
        np.testing.assert_allclose(undula.imodwt(bands, "db3", boundary=boundary, backend=backend), x)
