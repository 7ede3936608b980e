import numpy as np
import pytest
import pywt

import undula
from undula.wavelets import orthogonal_filter_bank, qmf


@pytest.mark.parametrize("name", ["haar", "db3", "sym8", "coif2"])
def test_banks_are_those_of_pywavelets(name: str) -> None:
    taps = pywt.Wavelet(name).rec_lo
    np.testing.assert_array_equal(qmf(taps), pywt.qmf(taps))
    for mine, theirs in zip(orthogonal_filter_bank(taps), pywt.orthogonal_filter_bank(taps), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    made = undula.Wavelet("mine", orthogonal_filter_bank(taps))
    np.testing.assert_allclose(made.filter_bank, undula.Wavelet(name).filter_bank, atol=1e-10)


@pytest.mark.parametrize("taps", [[1, 2, 3], [], [1, -1], [[1, 1]], [np.inf, 1]])
def test_bad_filters(taps: list[float]) -> None:
    with pytest.raises(undula.ArgumentError):
        orthogonal_filter_bank(taps)


def test_qmf_of_a_table() -> None:
    with pytest.raises(undula.ArgumentError, match=r"\(2, 2\)"):
        qmf([[1, 2], [3, 4]])


def test_wavelists() -> None:
    assert undula.wavelist("db", kind="discrete") == pywt.wavelist("db", kind="discrete")
    assert undula.wavelist(["haar", "db"])[:2] == ["haar", "db1"]
    assert undula.wavelist(kind="continuous") == pywt.wavelist(kind="continuous")
    with pytest.raises(undula.UnknownNameError, match=r"'discreet'.*'discrete'"):
        undula.wavelist(kind="discreet")
