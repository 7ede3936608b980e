"""Built-in wavelets against PyWavelets, and wavelets of one's own."""

import pickle
import runpy
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import pywt

import undula
from undula.algebra import ROOT2, Laurent, PolyphaseMatrix

THEIRS = pywt.wavelist(kind="discrete")
OURS = ["cdf53", "cdf97", "dd137", "burt57", "d4", "qshift10", "qshift14", "qshift18"]
TOOL = Path(__file__).parents[2] / "tools" / "make_table.py"


def test_all_names_are_here() -> None:
    assert len(THEIRS) == 106
    assert set(undula.wavelist(undula.families(), kind="discrete")) == {*THEIRS, *OURS}
    assert undula.wavelist("sym") == pywt.wavelist("sym")
    assert undula.families()[:7] == pywt.families()[:7]
    assert "Coiflets" in undula.families(short=False)


@pytest.mark.parametrize("name", THEIRS)
def test_attributes_are_those_of_pywavelets(name: str) -> None:
    mine, theirs = undula.Wavelet(name), pywt.Wavelet(name)
    for bank in ("filter_bank", "inverse_filter_bank"):
        np.testing.assert_allclose(getattr(mine, bank), getattr(theirs, bank), rtol=0, atol=1e-12)
    for fact in (
        "name family_name short_family_name number family_number symmetry orthogonal biorthogonal"
        " vanishing_moments_psi vanishing_moments_phi dec_len rec_len"
    ).split():
        assert getattr(mine, fact) == getattr(theirs, fact), fact
    assert mine.get_filters_coeffs() == mine.filter_bank
    assert mine.get_reverse_filters_coeffs() == mine.inverse_filter_bank
    assert len(mine) == theirs.dec_len
    for level in (1, 5):
        ours, wanted = mine.wavefun(level), theirs.wavefun(level)
        assert len(ours) == len(wanted)
        for a, b in zip(ours, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", undula.wavelist(undula.families(), kind="discrete"))
def test_filters_reconstruct(name: str) -> None:
    wavelet = undula.Wavelet(name)
    product = wavelet.synthesis @ wavelet.polyphase
    if wavelet.exact:
        assert product == PolyphaseMatrix.identity(2)
    else:
        bound = 3e-3 if name == "dmey" else 2e-11
        assert product.close(PolyphaseMatrix.identity(2), bound)


def test_rational_wavelets_are_known_exactly() -> None:
    splines = [n for n in THEIRS if n[:-2] in ("bior1", "bior2", "bior3", "rbio1", "rbio2", "rbio3")]
    exact = {
        name for name in undula.wavelist(undula.families(), kind="discrete") if undula.Wavelet(name).exact
    }
    assert exact == {"haar", "db1", "cdf53", "dd137", "burt57", *splines}
    assert undula.Wavelet("cdf53").bank[0][3] == ROOT2 * Fraction(3, 4)


def test_own_wavelets_are_what_they_are_called() -> None:
    for ours, theirs in (("cdf53", "bior2.2"), ("cdf97", "bior4.4")):
        a, b = undula.Wavelet(ours), undula.Wavelet(theirs)
        np.testing.assert_allclose([a.dec_lo, a.rec_lo], [b.dec_lo, b.rec_lo], atol=2e-12)
        np.testing.assert_allclose([a.dec_hi, a.rec_hi], -np.array([b.dec_hi, b.rec_hi]), atol=2e-12)
    np.testing.assert_allclose(
        undula.Wavelet("d4").filter_bank, undula.Wavelet("db2").filter_bank, atol=1e-12
    )
    spans = {
        name: [int(np.ptp(np.nonzero(f))) + 1 for f in undula.Wavelet(name).filter_bank[:2]] for name in OURS
    }
    qshift = {f"qshift{taps}": [taps, taps] for taps in (10, 14, 18)}
    named = {"cdf53": [5, 3], "cdf97": [9, 7], "dd137": [13, 7], "burt57": [5, 7], "d4": [4, 4]}
    assert spans == named | qshift


def test_burt_meets_the_conditions_of_the_paper() -> None:
    lo, hi = (np.array(f) / np.sqrt(2) for f in undula.Wavelet("burt57").filter_bank[:2])
    np.testing.assert_allclose(lo[np.nonzero(lo)], np.array([-1, 5, 12, 5, -1]) / 20)
    np.testing.assert_allclose(hi[np.nonzero(hi)], np.array([-3, 15, 73, -170, 73, 15, -3]) / 280)
    assert abs(hi.sum()) < 1e-15


def test_table_is_what_the_script_makes() -> None:
    subprocess.run([sys.executable, str(TOOL), "--check"], check=True)
    assert runpy.run_path(str(TOOL))["rational"](0.123456789) is None


def test_names_are_not_case_sensitive() -> None:
    assert undula.Wavelet("DB2") == undula.Wavelet("db2")
    assert hash(undula.Wavelet("DB2")) == hash(undula.Wavelet("db2"))
    assert undula.Wavelet("db2") != undula.Wavelet("db3")


@pytest.mark.parametrize("name", ["db3", "bior2.4", "cdf53", "sym5"])
def test_custom_wavelet_from_filters(name: str) -> None:
    known = undula.Wavelet(name)
    for source in (known, known.filter_bank, np.array(known.filter_bank)):
        mine = undula.Wavelet("mine", source)
        assert mine.filter_bank == known.filter_bank
        assert (mine.name, mine.short_family_name, mine.orthogonal) == ("mine", "", known.orthogonal)
        assert (mine.symmetry == "symmetric") == (known.symmetry == "symmetric")
        assert mine.vanishing_moments_psi == known.vanishing_moments_psi
        assert pickle.loads(pickle.dumps(mine)) == mine
    exact = undula.Wavelet("exact", known.bank)
    assert exact.exact == known.exact


def test_pywavelets_objects_are_accepted() -> None:
    assert undula.Wavelet("mine", pywt.Wavelet("db4")).dec_lo == pywt.Wavelet("db4").dec_lo


@pytest.mark.parametrize("name", ["haar", "db5", "bior3.3", "bior5.5", "cdf97", "dd137", "burt57"])
def test_custom_wavelet_from_a_matrix(name: str) -> None:
    known = undula.Wavelet(name)
    delayed = known.polyphase * Laurent.monomial(3)
    again = undula.Wavelet.from_polyphase(delayed, name)
    np.testing.assert_allclose(again.filter_bank, known.filter_bank, atol=1e-10)


def test_texts() -> None:
    wavelet = undula.Wavelet("bior2.2")
    assert str(wavelet).splitlines()[:4] == str(pywt.Wavelet("bior2.2")).splitlines()[:4]
    assert repr(wavelet) == "Wavelet('bior2.2')"
    assert "filter_bank" in repr(undula.Wavelet("mine", wavelet))
    assert wavelet.short_name == "bior"
    assert pickle.loads(pickle.dumps(wavelet)) == wavelet


def test_a_wavelet_without_a_name() -> None:
    with pytest.raises(TypeError, match=r"needs a name.*or a filter_bank"):
        undula.Wavelet()


def test_properties_of_custom_wavelets_may_be_set() -> None:
    """PyWavelets does not measure them, so its users set them."""
    wavelet = undula.Wavelet("mine", filter_bank=pywt.Wavelet("db2").filter_bank)
    assert wavelet.orthogonal
    wavelet.orthogonal, wavelet.biorthogonal = False, 1  # type: ignore[assignment]
    assert (wavelet.orthogonal, wavelet.biorthogonal) == (False, True)
    with pytest.raises(AttributeError, match="immutable"):
        wavelet.name = "yours"  # type: ignore[misc]
