"""PSNR and SSIM of samples that are not finite, tiny or huge, and the report of ``undula compare``."""

import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undula
from undula import io
from undula.cli import main
from undula.measures import compare_bands, psnr, ssim

X = np.random.default_rng(0).uniform(0, 1, (32, 40)).astype("f4")


def changed(value: float, place: tuple[int, int] = (9, 9), x: Any = X) -> Any:
    changed_array = x.copy()
    changed_array[place] = value
    return changed_array


def test_samples_that_are_not_finite_in_both_are_ignored() -> None:
    for value in (np.nan, np.inf, -np.inf):
        x = changed(value)
        assert psnr(x, x) == math.inf
        assert ssim(x, x) == 1
        y = changed(0.5, (20, 20), x)
        expected = psnr(
            np.delete(X.ravel(), 9 * 40 + 9), np.delete(changed(0.5, (20, 20)).ravel(), 9 * 40 + 9)
        )
        assert psnr(x, y) == pytest.approx(expected)
        assert 0 < ssim(x, y) < 1
        assert all(band.psnr > 0 or math.isnan(band.psnr) for band in compare_bands(x, y, level=1))


def test_ssim_ignores_windows_with_samples_that_are_not_finite() -> None:
    y = np.clip(X + 0.1 * X[::-1], 0, 1)
    far = ssim(changed(np.nan, (0, 0)), changed(np.nan, (0, 0), y))
    structure = pytest.importorskip("skimage.metrics").structural_similarity
    similarity = structure(X, y, data_range=1, full=True)[1][3:-3, 3:-3]
    similarity[0, 0] = np.nan  # The only window with the corner.
    assert far == pytest.approx(np.nanmean(similarity), abs=1e-6)


@pytest.mark.parametrize(("a", "b"), [(np.nan, 0.5), (np.inf, 0.5), (np.inf, -np.inf), (np.nan, np.inf)])
def test_a_sample_that_is_not_finite_in_one_gives_nan(a: float, b: float) -> None:
    for x, y in ((changed(a), changed(b)), (changed(b), changed(a))):
        assert math.isnan(psnr(x, y))
        assert math.isnan(ssim(x, y))
        assert np.flatnonzero(np.isnan(undula.measures.difference(x, y))).tolist() == [9 * 40 + 9]


def test_arrays_without_finite_samples_give_nan() -> None:
    nothing = np.full((8, 8), np.nan)
    assert math.isnan(psnr(nothing, nothing))
    assert math.isnan(ssim(nothing, nothing))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (np.zeros(4), np.full(4, 1e-170), 3400.0),  # The square underflows.
        (np.zeros(4), np.full(4, 1e200), 0.0),  # The square overflows.
        (np.full(4, 2**62, "i8"), np.full(4, 2**62 + 1, "i8"), 20 * math.log10(2**64)),  # Equal as floats.
        (np.full(4, -(2**63), "i8"), np.full(4, 2**63 - 1, "i8"), 0.0),
        (np.full(4, 2**64 - 1, "u8"), np.full(4, 2**64 - 2, "u8"), 20 * math.log10(2**64)),
        (np.array([-128], "i1"), np.array([127], "i1"), 0.0),
        (np.array([True]), np.array([False]), 0.0),
        (np.array([-1, 255]), np.array([0, 255], "u8"), 20 * math.log10(255) + 10 * math.log10(2)),
    ],
)
def test_differences_neither_underflow_nor_overflow(a: Any, b: Any, expected: float) -> None:
    assert psnr(a, b) == pytest.approx(expected, abs=1e-6)
    assert psnr(b, a) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_invalid_ranges_are_errors(value: float) -> None:
    with pytest.raises(undula.ArgumentError, match="data_range"):
        psnr(X, X, value)


# --- undula compare -------------------------------------------------------------------------------


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Two arrays through ``undula compare``: its text, and its JSON."""
    monkeypatch.chdir(tmp_path)

    def run(a: Any, b: Any, options: str = "") -> tuple[str, Any]:
        np.save("a.npy", a)
        np.save("b.npy", b)
        assert main(shlex.split(f"compare a.npy b.npy {options}")) == 0
        text = capsys.readouterr().out
        assert main(shlex.split("compare a.npy b.npy --json")) == 0
        return text, json.loads(capsys.readouterr().out)

    return run


def test_different_files_with_not_a_number(compared: Any) -> None:
    x = changed(np.nan)
    text, report = compared(x, changed(0.7, (20, 20), x))
    assert "equal" not in text
    assert text.startswith("PSNR ")
    assert report["equal"] is False
    assert report["psnr"] > 0
    assert 0 < report["ssim"] < 1
    assert report["unmatched"] == 0


def test_equal_files_with_not_a_number(compared: Any) -> None:
    text, report = compared(changed(np.nan), changed(np.nan))
    assert text.startswith("identical")
    assert report["equal"] is True
    assert report["psnr"] is None
    assert report["ssim"] == 1


def test_files_that_are_not_finite_at_different_places(compared: Any) -> None:
    text, report = compared(changed(np.nan), changed(np.inf, (3, 3)), "--difference d.png")
    assert "2 samples are NaN or infinite in only one of the images" in text
    assert "equal" not in text
    assert report["equal"] is False
    assert report["unmatched"] == 2
    assert report["psnr"] is None  # All others are equal.
    assert report["ssim"] is None
    shown = io.read("d.png").pixels
    assert shown[9, 9] == shown[3, 3] == 255
    assert np.count_nonzero(shown) == 2


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros((9, 9)), np.full((9, 9), 1e-200)),
        (np.full((9, 9), 2**60), np.full((9, 9), 2**60 + 1)),
    ],
)
def test_files_whose_difference_is_small(compared: Any, a: Any, b: Any) -> None:
    text, report = compared(a, b)
    assert "equal" not in text
    assert report["equal"] is False
    assert report["psnr"] > 300


def test_equal_values_that_are_other_bits(compared: Any) -> None:
    text, report = compared(np.ones((9, 9), "u1"), np.ones((9, 9), "f4"))
    assert text.startswith("all values are equal, but the types differ: uint8 and float32")
    assert report["equal"] is True
    text, _ = compared(np.zeros((9, 9)), -np.zeros((9, 9)))
    assert text.startswith("all values are equal")
    assert "last bit" not in text


def test_other_commands_on_samples_that_are_not_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", changed(np.nan, (3, 4), changed(-np.inf)))
    assert main(["info", "x.npy", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert 0 <= report["least"] < report["most"] <= 1
    assert report["not finite"] == 2
    assert report["noise"] > 0
    np.save("nothing.npy", np.full((16, 16), np.nan))
    assert main(["info", "nothing.npy"]) == 0
    assert main(["compare", "nothing.npy", "nothing.npy"]) == 0
    capsys.readouterr()
    for line in ("approximate x.npy y.npy --share 0.5", "verify x.npy", "transform x.npy y.npz"):
        assert main(line.split()) == 1
        assert "2 samples of x.npy are NaN or infinite" in capsys.readouterr().err
    assert not Path("y.npy").exists()
