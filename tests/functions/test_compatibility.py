"""Corners of PyWavelets' behaviour, compared with PyWavelets."""

import pickle
from collections.abc import Callable
from fractions import Fraction
from threading import active_count
from typing import Any

import numpy as np
import pytest
import pywt

import undula
from undula.engines import threads

IMAGE = np.random.default_rng(5).normal(size=(7, 10))


@pytest.mark.parametrize("axes", [(1, 1), (0, -2), (-1, 0, 1), ()])
def test_axes_may_be_repeated(axes: tuple[int, ...]) -> None:
    ours, theirs = undula.dwtn(IMAGE, "db2", axes=axes), pywt.dwtn(IMAGE, "db2", axes=axes)
    assert list(ours) == list(theirs)
    for key, band in theirs.items():
        np.testing.assert_allclose(ours[key], band, atol=1e-12)
    if axes:
        del ours["a" * len(axes)], theirs["a" * len(axes)]
        restored = undula.idwtn(ours, "db2", axes=axes)
        np.testing.assert_allclose(restored, pywt.idwtn(theirs, "db2", axes=axes), atol=1e-12)
        if len({axis % 2 for axis in axes}) < len(axes):
            with pytest.raises(undula.ArgumentError, match="distinct"):
                undula.idwtn(ours, "db2", axes=axes, shape=IMAGE.shape)
            with pytest.raises(undula.ArgumentError, match="distinct"):
                undula.dwtn(IMAGE, "db2", axes=axes, out=ours)


def test_an_image_along_one_axis_twice() -> None:
    ours, theirs = (library.dwt2(IMAGE, "haar", axes=(1, 1)) for library in (undula, pywt))
    for one, other in zip((ours[0], *ours[1]), (theirs[0], *theirs[1]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(
        undula.idwt2(ours, "haar", axes=(1, -1)), pywt.idwt2(theirs, "haar", axes=(1, -1)), atol=1e-12
    )


def test_keys_say_which_axes() -> None:
    bands = pywt.dwtn(IMAGE, "db2", axes=(0,))
    np.testing.assert_allclose(undula.idwtn(bands, "db2"), pywt.idwtn(bands, "db2"), atol=1e-12)


@pytest.mark.parametrize("mode", ["reflect", "antireflect"])
def test_a_single_sample_is_not_reflected(mode: str) -> None:
    for library in (undula, pywt):
        with pytest.raises(ValueError, match=r"mode|reflect|length"):
            library.dwt([1.0], "db2", mode)
    with pytest.raises(undula.ArgumentError, match="at level 2"), pytest.warns(UserWarning, match="too high"):
        undula.wavedec([1.0, 2.0], "haar", mode, level=2)


@pytest.mark.parametrize("mode", ["soft", "hard", "garrote", "greater", "less"])
@pytest.mark.parametrize("value", [-2.5, 2.5])
@pytest.mark.parametrize("substitute", [0, 7])
def test_thresholds_may_be_negative(mode: str, value: float, substitute: float) -> None:
    data = np.array([-4.0, -2.0, -0.5, 1.0, 3.0])
    expected = pywt.threshold(data, value, mode, substitute)
    np.testing.assert_allclose(undula.threshold(data, value, mode, substitute), expected)
    limits = np.array([value, 1.0, value, 1.0, value])
    expected = pywt.threshold(data, limits, mode, substitute)
    np.testing.assert_allclose(undula.threshold(data, limits, mode, substitute), expected)


def test_thresholds_may_be_complex_without_an_imaginary_part() -> None:
    data = np.array([-4.0, 1.0, 3.0])
    for mode in ("soft", "hard"):
        ours, theirs = (library.threshold(data, 2 + 0j, mode) for library in (undula, pywt))
        np.testing.assert_allclose(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_objects_that_are_numbers_are_samples() -> None:
    x = np.array([1, 2.5, Fraction(1, 3), 4], dtype=object)
    np.testing.assert_allclose(undula.dwt(x, "haar"), pywt.dwt(x, "haar"))
    assert undula.dwt(np.array([1, 2j], dtype=object), "haar")[0].dtype == np.complex128
    for items in ([None, 1], ["1", 2]):
        with pytest.raises(undula.ArgumentTypeError, match="object"):
            undula.dwt(np.array(items, dtype=object), "haar")


@pytest.mark.parametrize("old", ["zpd", "cpd", "sym", "ppd", "sp1", "per"])
def test_old_names_of_modes_warn(old: str) -> None:
    with pytest.warns(DeprecationWarning, match=old):
        number = getattr(undula.Modes, old)
    with pytest.warns(DeprecationWarning, match=f"(?i){old}"):
        assert number == getattr(pywt.Modes, old)


def test_there_is_no_other_mode() -> None:
    with pytest.raises(AttributeError, match="'cubic'"):
        _ = undula.Modes.cubic


@pytest.mark.filterwarnings("ignore:Level value")
@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda p: p.dwt([1.0, 2.0], "haar", None), TypeError),
        (lambda p: p.wavedec2(IMAGE, "haar", axes=1), TypeError),
        (lambda p: p.dwt_max_level(16, 3.3), ValueError),
        (lambda p: p.threshold([1j], 1, "less"), ValueError),
        (lambda p: p.waverec([IMAGE[0], {"d": IMAGE[0]}], "haar"), ValueError),
        (lambda p: p.waverecn([IMAGE, {"dd": None}], "haar"), ValueError),
        (lambda p: p.wavedecn_shapes((0, 4), "haar", level=1), ValueError),
    ],
)
def test_errors_are_of_the_same_type(call: Callable[[Any], object], error: type[Exception]) -> None:
    for library in (undula, pywt):
        with pytest.raises(error):
            call(library)


def test_names_that_do_not_exist_are_said_in_both_ways() -> None:
    with pytest.raises(ValueError, match="did you mean 'db2'") as raised:
        undula.Wavelet("db2x")
    assert raised.value.args == ("Invalid wavelet name 'db2x'.",)
    copied = pickle.loads(pickle.dumps(raised.value))
    assert (str(copied), copied.args) == (str(raised.value), raised.value.args)


def test_what_is_said_about_a_bank_can_be_corrected() -> None:
    wavelet = undula.Wavelet("mine", filter_bank=undula.Wavelet("db2").filter_bank)
    wavelet.orthogonal = False
    assert not wavelet.orthogonal
    with pytest.raises(AttributeError, match="immutable"):
        wavelet.name = "other"


def test_empty_axes() -> None:
    for library in (undula, pywt):
        assert library.dwt(np.zeros((4, 0)), "db2", axis=0)[0].shape == (3, 0)
        assert library.wavedec(np.zeros((4, 0)), "db2")[0].shape == (4, 0)
        assert library.pad(np.zeros(0), 2, "zero").tolist() == [0, 0, 0, 0]


def test_bands_of_another_dtype_warn() -> None:
    result = undula.fswavedecn(IMAGE, "haar", levels=1, axes=(-1,))
    assert result.axes == (-1,)
    with pytest.warns(UserWarning, match="float32"):
        result[0] = result[0].astype(np.float32)
    np.testing.assert_allclose(undula.fswaverecn(result), IMAGE, atol=1e-6)


@pytest.mark.parametrize("count", [1, 2])
def test_pieces_are_more_than_threads(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "get_num_threads", lambda: count)
    before, seen = active_count(), []
    threads.run(seen.append, [(k,) for k in range(500)])
    assert sorted(seen) == list(range(500))
    assert active_count() <= before + 1
