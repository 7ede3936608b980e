"""Parts of a DWT and the fully separable one, against PyWavelets."""

from typing import Any

import numpy as np
import pytest
import pywt

import undula
from comparing import assert_same, noise

MODES = pywt.Modes.modes
pytestmark = pytest.mark.filterwarnings("ignore:Level value")


@pytest.mark.parametrize("name", ["haar", "db4", "bior2.4", "dmey"])
def test_one_band_of_a_line(name: str) -> None:
    for x in (noise(37), noise(64, dtype="f4"), noise(20, dtype="c16")):
        for part in "ad":
            for level in (1, 2, 3):
                for mode in MODES:
                    theirs = pywt.downcoef(part, x, name, mode, level)
                    # (Extrapolation makes large numbers of small ones, and rounding errors with them.)
                    looser = 30 if mode in ("smooth", "antireflect") else 1
                    assert_same(undula.downcoef(part, x, name, mode, level), theirs, looser)
                for take in (0, 1, 10, 37, 1000):
                    assert_same(
                        undula.upcoef(part, x, name, level, take), pywt.upcoef(part, x, name, level, take)
                    )


@pytest.mark.parametrize("mode", MODES)
def test_fully_separable(mode: str) -> None:
    for x, wavelet, levels, axes in (
        (noise(20, 33, 5), ("db2", "haar"), (2, 1), (1, 0)),
        (noise(31, 16, dtype="f4"), "db3", None, None),
        (noise(40), "bior2.2", 3, None),
        (noise(12, 13, 14), "haar", (0, 1, 2), None),
    ):
        mine: Any = undula.fswavedecn(x, wavelet, mode, levels, axes)
        theirs: Any = pywt.fswavedecn(x, wavelet, mode, levels, axes)
        assert_same(mine.coeffs, theirs.coeffs)
        assert mine.detail_keys() == theirs.detail_keys()
        for name in ("levels", "axes", "modes", "wavelet_names", "ndim", "ndim_transform", "coeff_slices"):
            assert getattr(mine, name) == getattr(theirs, name)
        for key in mine.detail_keys():
            assert_same(mine[key], theirs[key])
        assert_same(mine.approx, theirs.approx)
        assert_same(undula.fswaverecn(mine), pywt.fswaverecn(theirs))
        assert_same(undula.fswaverecn(theirs), pywt.fswaverecn(theirs))


def test_bands_can_be_replaced() -> None:
    result = undula.fswavedecn(noise(16, 16), "haar", levels=1)
    result[1, 1] = np.zeros((8, 8))
    result.approx = np.ones((8, 8))
    assert not result[1, 1].any()
    assert result.coeffs[:8, :8].all()
    result.coeffs = 2 * result.coeffs
    assert (result.approx == 2).all()


def test_booleans_of_one_band() -> None:
    x = np.array([True, False, True, True])
    for part in "ad":
        np.testing.assert_allclose(undula.upcoef(part, x, "db2"), pywt.upcoef(part, x, "db2"), atol=1e-12)
        np.testing.assert_allclose(undula.downcoef(part, x, "db2"), pywt.downcoef(part, x, "db2"), atol=1e-12)


def test_a_result_is_printed_in_short() -> None:
    result = undula.fswavedecn(np.ones((16, 8)), "haar", levels=(2, 1))
    assert repr(result) == (
        "<FswavedecnResult of shape (16, 8): ['haar', 'haar'], levels [2, 1],"
        " modes ['symmetric', 'symmetric'], axes (0, 1)>"
    )


BAD: dict[str, tuple[Any, str]] = {
    "another part": (lambda: undula.downcoef("x", [1.0, 2.0], "haar"), "'x'"),
    "no level": (lambda: undula.downcoef("a", [1.0, 2.0], "haar", level=0), "level"),
    "an image": (lambda: undula.downcoef("a", np.ones((2, 2)), "haar"), r"\(2, 2\)"),
    "line of terabytes": (lambda: undula.upcoef("a", [1.0, 2.0], "db2", level=40), "takes? .* memory"),
    "negative take": (lambda: undula.upcoef("a", [1.0], "haar", take=-1), "take"),
    "level of no integer": (lambda: undula.fswavedecn(np.ones(8), "haar", levels=0.5), "0.5"),  # type: ignore[arg-type]
    "two levels for one axis": (lambda: undula.fswavedecn(np.ones(8), "haar", levels=(1, 2)), "1 axes"),
    "one level for two axes": (
        lambda: undula.fswavedecn(np.ones((5, 7)), "db2", levels=(1,)),
        r"2 axes.*\(1,\)",
    ),
    "a band named by letters": (lambda: undula.fswavedecn(np.ones((5, 7)), "db2")["dd"], "'dd'"),  # type: ignore[index]
    "no result": (lambda: undula.fswaverecn([1.0]), "list"),  # type: ignore[arg-type]
    "no such band": (lambda: undula.fswavedecn(np.ones(8), "haar")[9], "9"),
    "a band of another shape": (
        lambda: undula.fswavedecn(np.ones(8), "haar").__setitem__(0, np.ones(3)),
        r"\(3,\)",
    ),
    "a number": (lambda: undula.fswavedecn(3.0, "haar"), "single number"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, message = BAD[case]
    with pytest.raises(undula.UndulaError, match=message):
        act()
