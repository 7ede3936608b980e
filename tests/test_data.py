"""Signals and images for demonstrations, against PyWavelets."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import pywt.data

import undula
from undula import data

FIXED = ("Gabor", "sineoneoverx")


@pytest.mark.parametrize("name", pywt.data.demo_signal("list"))
def test_signals_are_those_of_pywavelets(name: str) -> None:
    if name in FIXED:
        np.testing.assert_allclose(data.demo_signal(name), pywt.data.demo_signal(name), rtol=0, atol=1e-12)
        return
    for n in (64, 104, 1024, 2304):
        theirs = pywt.data.demo_signal(name, n)[:n]
        np.testing.assert_allclose(data.demo_signal(name.upper(), n), theirs, rtol=0, atol=1e-11)
    for n in (1, 2, 3, 7, 100):  # for some of which PyWavelets fails
        assert data.demo_signal(name, n).shape == (n,)


def test_names_of_signals() -> None:
    assert data.demo_signal("LIST") == pywt.data.demo_signal("list")
    with pytest.raises(ValueError, match=r"'dopler'.*'doppler'"):
        data.demo_signal("dopler", 64)
    for n in (0, -1, 2.5, "many"):
        with pytest.raises(ValueError, match="integer"):
            data.demo_signal("Doppler", n)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n must be provided"):
        data.demo_signal("Doppler")
    with pytest.raises(ValueError, match="fixed"):
        data.demo_signal("gabor", 512)
    with pytest.raises(undula.ArgumentTypeError, match="string"):
        data.demo_signal(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["aero", "ascent", "camera", "ecg"])
def test_files_are_those_of_pywavelets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = getattr(pywt.data, name)()
    monkeypatch.setitem(sys.modules, "pywt", undula)  # which may stand in for PyWavelets
    ours = getattr(data, name)()
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def test_temperatures_are_those_of_pywavelets() -> None:
    for ours, theirs in zip(data.nino(), pywt.data.nino(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_without_pywavelets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    skimage = ModuleType("skimage")
    skimage.data = ModuleType("skimage.data")  # type: ignore[attr-defined]
    skimage.data.camera = lambda: np.zeros((2, 2))  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for read in (data.aero, data.ascent, data.ecg, data.nino):
        with pytest.raises(undula.MissingExtraError, match="pip install PyWavelets"):
            read()
    monkeypatch.setitem(sys.modules, "skimage", skimage)
    assert data.camera().shape == (2, 2)
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(undula.MissingExtraError, match="camera"):
        data.camera()
