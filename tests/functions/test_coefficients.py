"""Shapes, pads and layouts of coefficients against PyWavelets."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st

import undula

MODES = pywt.Modes.modes
FORMATS = {"wavedec": pywt.wavedec, "wavedec2": pywt.wavedec2, "wavedecn": pywt.wavedecn}


def decomposed(form: str, shape: tuple[int, ...], level: int, **options: Any) -> Any:
    x = np.random.default_rng(0).standard_normal(shape)
    return FORMATS[form](x, "db2", level=level, **options)


def assert_nested_equal(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert sorted(a) == sorted(b)
        for key in a:
            assert_nested_equal(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_nested_equal(x, y)
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b


@pytest.mark.filterwarnings("ignore:Level value")
@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("form", "shape", "axes"),
    [
        ("wavedec", (21,), None),
        ("wavedec2", (13, 22), None),
        ("wavedecn", (13, 22), None),
        ("wavedecn", (9, 8, 11), None),
        ("wavedecn", (9, 8, 11), (-1, 0)),
        ("wavedec2", (3, 13, 22), (-2, -1)),
    ],
)
def test_layouts(form: str, shape: tuple[int, ...], axes: tuple[int, ...] | None, level: int) -> None:
    options = {} if axes is None else {"axes": axes}
    coeffs = decomposed(form, shape, level, **options)
    array, slices = undula.coeffs_to_array(coeffs, axes=axes)
    wanted, places = pywt.coeffs_to_array(coeffs, axes=axes)
    np.testing.assert_array_equal(array, wanted)
    if level:
        assert_nested_equal(slices, places)
    assert_nested_equal(
        undula.array_to_coeffs(array, slices, form), pywt.array_to_coeffs(wanted, places, form)
    )
    line, cuts, shapes = undula.ravel_coeffs(coeffs, axes=axes)
    theirs = pywt.ravel_coeffs(coeffs, axes=axes)
    np.testing.assert_array_equal(line, theirs[0])
    assert_nested_equal([cuts, shapes], list(theirs[1:]))
    assert_nested_equal(undula.unravel_coeffs(line, cuts, shapes, form), pywt.unravel_coeffs(*theirs, form))


def test_coefficients_cut_out_are_views() -> None:
    array, slices = undula.coeffs_to_array(decomposed("wavedec2", (16, 16), 2))
    for part in (
        undula.array_to_coeffs(array, slices)[0],
        undula.array_to_coeffs(array, slices)[1]["dd"],
    ):
        assert np.shares_memory(part, array)


@pytest.mark.filterwarnings("ignore:Level value")
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.sampled_from(["haar", "db3", "bior4.4"]),
    st.sampled_from(MODES),
    st.none() | st.integers(0, 4),
)
def test_shapes(shape: list[int], wavelet: str, mode: str, level: int | None) -> None:
    mine = undula.wavedecn_shapes(tuple(shape), wavelet, mode, level)
    theirs = pywt.wavedecn_shapes(tuple(shape), wavelet, mode, level)
    assert_nested_equal(mine, theirs)
    assert undula.wavedecn_size(mine) == pywt.wavedecn_size(theirs)
    assert undula.dwtn_max_level(tuple(shape), wavelet) == pywt.dwtn_max_level(tuple(shape), wavelet)


def test_shapes_with_a_wavelet_and_a_mode_for_each_axis() -> None:
    options: Any = ((20, 30), ("haar", "db4"), ("zero", "periodization"), 1, (1, 0))
    assert_nested_equal(undula.wavedecn_shapes(*options), pywt.wavedecn_shapes(*options))
    assert undula.dwtn_max_level((20, 90), ("haar", "db4"), (1, 0)) == pywt.dwtn_max_level(
        (20, 90), ("haar", "db4"), (1, 0)
    )


@pytest.mark.filterwarnings("ignore:Level value")
def test_size_of_arrays() -> None:
    coeffs = decomposed("wavedecn", (9, 9), 2)
    assert undula.wavedecn_size(coeffs) == pywt.wavedecn_size(coeffs)


def test_levels_too_deep_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="Level value of 5 is too high"):
        undula.wavedecn_shapes((8, 8), "db4", level=5)


@given(
    st.sampled_from(MODES),
    st.lists(st.integers(2, 6), min_size=1, max_size=2),
    st.integers(1, 7),
    st.integers(1, 7),
)
def test_pad(mode: str, shape: list[int], before: int, after: int) -> None:
    x = np.random.default_rng(1).standard_normal(shape)
    np.testing.assert_allclose(
        undula.pad(x, (before, after), mode), pywt.pad(x, (before, after), mode), atol=1e-12
    )
    np.testing.assert_allclose(undula.pad(x, before, mode), pywt.pad(x, before, mode), atol=1e-12)
    each = [(before, after)] * len(shape)
    np.testing.assert_allclose(undula.pad(x, each, mode), pywt.pad(x, each, mode), atol=1e-12)


def test_modes_by_number() -> None:
    for name in MODES:
        assert getattr(undula.Modes, name) == getattr(pywt.Modes, name)
        assert undula.Modes.from_object(name) == undula.Modes.from_object(getattr(undula.Modes, name))
        assert undula.dwt_coeff_len(9, 4, getattr(pywt.Modes, name)) == pywt.dwt_coeff_len(9, 4, name)
    assert undula.Modes.modes == MODES


@given(st.integers(0, 5000), st.sampled_from(["haar", "db5", 2, 3, 10, 41]))
def test_max_level(length: int, taps: Any) -> None:
    assert undula.dwt_max_level(length, taps) == pywt.dwt_max_level(length, taps)


@pytest.mark.parametrize("mode", ["zero", "constant", "symmetric", "reflect", "periodic", "periodization"])
def test_booleans_are_padded(mode: str) -> None:
    x = np.array([True, False, True, True])
    made, theirs = undula.pad(x, 2, mode), pywt.pad(x, 2, mode)
    assert made.dtype == theirs.dtype == bool
    assert (made == theirs).all()


def test_integers_are_extrapolated_where_they_fit() -> None:
    made = undula.pad(np.array([100, 101, 103], "u1"), 1, "smooth")
    assert made.dtype == np.uint8
    assert made.tolist() == [99, 100, 101, 103, 105]


def test_an_approximation_alone_has_the_slices_of_pywavelets() -> None:
    for x in (np.ones(3), np.ones((3, 4))):
        array, slices = undula.coeffs_to_array([x])
        assert slices == pywt.coeffs_to_array([x])[1]
        assert_nested_equal(undula.array_to_coeffs(array, slices), [x])


OLD_NAMES = ["zpd", "cpd", "sym", "ppd", "sp1", "per"]


@pytest.mark.parametrize("mode", OLD_NAMES)
def test_old_names_of_modes(mode: str) -> None:
    x = np.random.default_rng(0).standard_normal(9)
    with pytest.warns(DeprecationWarning, match=mode):
        theirs = pywt.dwt(x, "db3", mode)
    with pytest.warns(DeprecationWarning, match=mode) as caught:
        made = undula.dwt(x, "db3", mode)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(made, theirs, atol=1e-12)
    with pytest.raises(undula.UndulaError, match=mode):
        undula.lwt(x, "haar", mode=mode)


COEFFS = [np.ones((2, 2)), tuple(np.ones((3, 2, 2)))]
RAVELLED, ARRANGED = undula.ravel_coeffs(COEFFS), undula.coeffs_to_array(COEFFS)
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "no list": (lambda: undula.coeffs_to_array(5), "got int"),  # type: ignore[arg-type]
    "no approximation": (lambda: undula.coeffs_to_array([None, np.ones(2)]), "None"),
    "no details": (lambda: undula.coeffs_to_array([np.ones((2, 2)), (None, None, None)]), "None"),
    "two details": (lambda: undula.coeffs_to_array([np.ones((2, 2)), (np.ones((2, 2)),) * 2]), "got 2"),
    "unequal details": (
        lambda: undula.coeffs_to_array(
            [np.ones((2, 2)), (np.ones((2, 2)), np.ones((2, 3)), np.ones((2, 2)))]
        ),
        r"\(2, 3\)",
    ),
    "axes unsaid": (lambda: undula.ravel_coeffs([np.ones((2, 2)), np.ones((2, 2))]), "axes="),
    "wrong axes": (lambda: undula.coeffs_to_array(COEFFS, axes=(0, 5)), r"\(0, 5\)"),
    "a gap with no padding": (
        lambda: undula.coeffs_to_array([np.ones((2, 2)), tuple(np.ones((3, 3, 3)))], padding=None),
        r"31 coefficients.*\(5, 5\)",
    ),
    "unknown format": (lambda: undula.array_to_coeffs(np.ones(4), [(slice(2),)], "wavedec3"), "wavedec3"),
    "slices missing": (lambda: undula.array_to_coeffs(np.ones(4), []), "coeff_slices.*empty list"),
    "slices are None": (lambda: undula.unravel_coeffs(np.ones(4), None, None), "coeff_slices.*NoneType"),  # type: ignore[arg-type]
    "a line too short": (lambda: undula.unravel_coeffs(np.ones(5), *RAVELLED[1:]), r"array of 5.*\(2, 2\)"),
    "an array too small": (lambda: undula.array_to_coeffs(np.ones((3, 3)), ARRANGED[1]), r"larger.*\(3, 3\)"),
    "an array of one axis": (lambda: undula.array_to_coeffs(np.ones(9), ARRANGED[1]), r"axes.*\(9,\)"),
    "details of another form": (
        lambda: undula.array_to_coeffs(ARRANGED[0], ARRANGED[1], "wavedec"),
        "'wavedec' is for details d, got ad, da, dd",
    ),
    "no coefficients": (lambda: undula.coeffs_to_array([]), "empty list"),
    "no coefficients in a line": (lambda: undula.ravel_coeffs([]), "empty list"),
    "no coefficients to lift": (lambda: undula.ilwt([], "haar"), "empty list"),
    "bands that overlap": (
        lambda: undula.coeffs_to_array([np.ones((2, 2)), tuple(np.ones((3, 5, 5)))], padding=None),
        r"79 coefficients are more than.*\(7, 7\)",
    ),
    "a length that is a word": (lambda: undula.dwt_max_level("a", 4), "data_len.*'a'"),  # type: ignore[arg-type]
    "a band of a word": (lambda: undula.dwt_coeff_len("a", 4, "zero"), "data_len.*'a'"),  # type: ignore[arg-type]
    "a shape that is a word": (lambda: undula.wavedecn_shapes("a", "haar"), "'a'"),  # type: ignore[arg-type]
    "shapes that are a number": (lambda: undula.wavedecn_size(5), "wavedecn_shapes.*5"),  # type: ignore[arg-type]
    "a number to pad": (lambda: undula.pad(5, 2, "zero"), "at least one axis.*5"),
    "negative values of bytes": (
        lambda: undula.pad(np.array([1, 2], "u1"), 1, "antisymmetric"),
        "'antisymmetric'.*uint8.*-2 to 2",
    ),
    "large values of bytes": (lambda: undula.pad(np.array([9, 250], "u1"), 1, "smooth"), "uint8.*491"),
    "differences of booleans": (lambda: undula.pad([True, False], 1, "antireflect"), "bool.*-1 to 2"),
    "shapes missing": (lambda: undula.unravel_coeffs(np.ones(4), [slice(4)], []), "got 0 and 1"),
    "filter of one tap": (lambda: undula.dwt_max_level(8, 1), "got 1"),
    "negative length": (lambda: undula.dwt_max_level(-1, 4), "-1"),
    "no data": (lambda: undula.dwt_coeff_len(0, 4, "zero"), "greater than zero"),
    "no filter": (lambda: undula.dwt_coeff_len(4, 0, "zero"), "greater than zero"),
    "mode number": (lambda: undula.Modes.from_object(99), "99"),
    "negative pad": (lambda: undula.pad([1, 2], -1, "zero"), "-1"),
    "pads of three axes": (lambda: undula.pad([1, 2], [(1, 1)] * 3, "zero"), "1 such pairs"),
    "too few wavelets": (lambda: undula.dwtn_max_level((8, 8, 8), ("haar", "db2")), "got 2"),
    "axis of a shape": (lambda: undula.wavedecn_shapes((8, 8), "haar", axes=(0, 3)), r"\(0, 3\)"),
    "axis twice": (lambda: undula.wavedecn_shapes((8, 8), "haar", axes=(0, 0)), r"\(0, 0\)"),
    "negative level": (lambda: undula.wavedecn_shapes((8, 8), "haar", level=-1), "-1"),
    "level a word": (lambda: undula.wavedecn_shapes((8, 8), "haar", level="2"), "'2'"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, message = BAD[case]
    with pytest.raises(undula.UndulaError, match=f"(?s){message}"):
        act()
