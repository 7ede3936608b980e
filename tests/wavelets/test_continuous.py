"""Continuous wavelets: attributes and samples against PyWavelets, formulas against their definitions."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import pywt

import undula
from undula.wavelets import any_wavelet

PARAMETERS = ["cmor1.5-1.0", "cmor0.7-2.1", "shan2-3", "fbsp1-1.5-1.0", "fbsp3-1.5-0.7"]
NAMES = [name for name in pywt.wavelist(kind="continuous") if name not in ("cmor", "shan", "fbsp")]
ATTRIBUTES = (
    "name family_name short_family_name number family_number symmetry orthogonal biorthogonal complex_cwt"
    " lower_bound upper_bound center_frequency bandwidth_frequency fbsp_order"
).split()


@pytest.mark.parametrize("name", [*NAMES, *PARAMETERS])
def test_attributes_are_those_of_pywavelets(name: str) -> None:
    ours, theirs = undula.ContinuousWavelet(name), pywt.ContinuousWavelet(name)
    assert {key: getattr(ours, key) for key in ATTRIBUTES} == {
        key: getattr(theirs, key) for key in ATTRIBUTES
    }
    assert str(ours) == str(theirs)
    assert undula.ContinuousWavelet(name.upper()).name == name


@pytest.mark.parametrize("name", [*NAMES, *PARAMETERS])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_samples_are_those_of_pywavelets(name: str, dtype: str) -> None:
    ours, theirs = (module.ContinuousWavelet(name, np.dtype(dtype)) for module in (undula, pywt))
    for options in ({}, {"level": 5}, {"length": 301}):
        psi, x = ours.wavefun(**options)
        reference, places = theirs.wavefun(**options)
        assert (psi.dtype, x.dtype) == (reference.dtype, places.dtype)
        np.testing.assert_array_equal(x, places)
        np.testing.assert_allclose(psi, reference, rtol=0, atol=1e-14 if dtype == "float64" else 5e-6)


@pytest.mark.parametrize(
    "name", ["gaus1", "gaus4", "gaus7", "cgau3", "cgau8", "mexh", "shan2-1", "fbsp2-2-1"]
)
def test_energy_is_one(name: str) -> None:
    wavelet = undula.ContinuousWavelet(name)
    wavelet.lower_bound, wavelet.upper_bound = -100, 100
    psi, x = wavelet.wavefun(length=100_001)
    expected = 4 / 3 if name.startswith("fbsp") else 1  # 2 · ∫ sinc⁴
    assert np.sum(np.abs(psi) ** 2) * (x[1] - x[0]) == pytest.approx(expected, abs=3e-3)


@pytest.mark.parametrize("family", ["gaus", "cgau"])
def test_orders_are_derivatives(family: str) -> None:
    for order in range(1, 8):
        psi, x = undula.ContinuousWavelet(f"{family}{order}").wavefun(length=20_001)
        higher, _ = undula.ContinuousWavelet(f"{family}{order + 1}").wavefun(length=20_001)
        slope = np.gradient(psi, x, edge_order=2)
        factor = np.vdot(slope, higher) / np.vdot(slope, slope)
        np.testing.assert_allclose(factor * slope, higher, atol=1e-5)


def test_attributes_can_be_changed() -> None:
    ours, theirs = undula.ContinuousWavelet("fbsp2-1-1"), pywt.ContinuousWavelet("fbsp2-1-1")
    for wavelet in (ours, theirs):
        wavelet.lower_bound, wavelet.upper_bound, wavelet.fbsp_order = -3, 4, 3
        wavelet.center_frequency, wavelet.bandwidth_frequency = 0.5, 2
    for mine, other in zip(ours.wavefun(), theirs.wavefun(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-14)
    for attribute, value in (("fbsp_order", 0), ("bandwidth_frequency", -1), ("lower_bound", "left")):
        wavelet = undula.ContinuousWavelet("fbsp2-1-1")
        setattr(wavelet, attribute, value)
        if attribute != "fbsp_order":
            with pytest.raises((undula.ArgumentError, undula.ArgumentTypeError)):
                wavelet.wavefun()
    with pytest.raises(AttributeError):
        ours.name = "morl"  # type: ignore[misc]


@pytest.mark.parametrize("make", [undula.ContinuousWavelet, undula.DiscreteContinuousWavelet])
@pytest.mark.parametrize("name", ["cmor", "shan", "fbsp"])
def test_names_without_parameters_warn(name: str, make: Any) -> None:
    with pytest.warns(FutureWarning, match=f"{name}.*deprecated"):
        ours = make(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs = pywt.ContinuousWavelet(name)
    np.testing.assert_allclose(ours.wavefun()[0], theirs.wavefun()[0], rtol=0, atol=1e-14)
    pickle.loads(pickle.dumps(ours))  # does not warn again


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cmor1", r"'cmor1'.*cmorB-C"),
        ("cmor1-x", "cmorB-C"),
        ("shan1-1-1", "shanB-C"),
        ("cmor0-1", "cmorB-C"),
        ("fbsp1-1", "fbspM-B-C"),
        ("fbsp1.5-1-1", "order.*1.5"),
        ("fbsp0-1-1", "order"),
        ("gaus9", "'gaus9'.*'gaus"),
        ("db2", r"discrete.*undula.Wavelet\('db2'\)"),
        ("qwertz", "'qwertz'"),
        ("", "unknown"),
    ],
)
def test_wrong_names(name: str, words: str) -> None:
    with pytest.raises(undula.ArgumentError, match=words):
        undula.ContinuousWavelet(name)


def test_wrong_arguments() -> None:
    with pytest.raises(undula.ArgumentTypeError, match="3"):
        undula.ContinuousWavelet(3)  # type: ignore[arg-type]
    for dtype in ("complex64", "int32"):
        with pytest.raises(undula.ArgumentError, match=dtype):
            undula.ContinuousWavelet("gaus5", dtype)
    with pytest.raises(undula.ArgumentTypeError, match="dtype"):
        undula.ContinuousWavelet("gaus5", "floating")
    for options in ({"level": -1}, {"level": 99}, {"length": 0}):
        with pytest.raises(undula.ArgumentError):
            undula.ContinuousWavelet("morl").wavefun(**options)
    with pytest.raises(undula.ArgumentTypeError, match="ContinuousWavelet"):
        any_wavelet(5)


def test_the_dwt_refuses_continuous_wavelets() -> None:
    wavelet = undula.ContinuousWavelet("morl")
    with pytest.raises(ValueError, match=r"^The `Wavelet` class.*ContinuousWavelet\('gaus1'\)"):
        undula.Wavelet("gaus1")
    with pytest.raises(ValueError, match=r"^Invalid wavelet name 'cmord'\.\n") as caught:
        undula.Wavelet("cmord")
    assert "ContinuousWavelet" in caught.value.__notes__[0]
    for name in ("morl", wavelet, pywt.ContinuousWavelet("morl")):
        for function in (undula.dwt, undula.wavedec, undula.dwtn):
            with pytest.raises(ValueError, match="discrete"):
                function(np.ones(8), name)


def test_either_kind_by_its_name() -> None:
    bank = pywt.Wavelet("db2").filter_bank
    assert undula.DiscreteContinuousWavelet("db2") == undula.Wavelet("db2")
    assert undula.DiscreteContinuousWavelet("gausian", bank).filter_bank == bank
    assert isinstance(undula.DiscreteContinuousWavelet("Morl"), undula.ContinuousWavelet)
    with pytest.raises(ValueError, match="qwertz"):
        undula.DiscreteContinuousWavelet("qwertz")


def test_pickles_keep_changes() -> None:
    wavelet = undula.ContinuousWavelet("cmor1.5-1.0", np.float32)
    wavelet.upper_bound = 6.0
    again = pickle.loads(pickle.dumps(wavelet))
    assert again.formula == wavelet.formula
    assert repr(again) == "ContinuousWavelet('cmor1.5-1.0')"


def test_lists_are_in_the_order_of_pywavelets() -> None:
    for kind in ("all", "continuous", "discrete"):
        theirs = pywt.wavelist(kind=kind)
        assert [name for name in undula.wavelist(kind=kind) if name in set(theirs)] == theirs
    for family in pywt.families():
        assert undula.wavelist(family) == pywt.wavelist(family)
    assert undula.wavelist("db", kind="continuous") == pywt.wavelist("db", kind="continuous")
    assert undula.wavelist(["morl", "haar"], kind="discrete") == ["haar"]
    for short in (True, False):
        assert undula.families(short)[:14] == pywt.families(short)
    assert len(undula.families()) == len(undula.families(short=False)) == 19
