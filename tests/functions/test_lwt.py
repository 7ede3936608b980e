"""The LWT on the engine against the reference: floats to rounding, integers bit for bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from cases import WAVELETS, parametrize_pairwise
from comparing import assert_identical, assert_same, flat, noise, reference
from undula.lowering.growth import growth


@parametrize_pairwise(
    name=WAVELETS,
    mode=undula.LWT_MODES,
    dtype=["f8", "f4", "i8", "c16"],
    shape=[(1,), (2,), (3,), (37,), (64,), (1, 7), (16, 33)],
)
def test_every_wavelet_agrees_with_the_reference(
    name: str, mode: str, dtype: str, shape: tuple[int, ...]
) -> None:
    x = noise(*shape, dtype=dtype)
    theirs = reference.lwtn(x, name, 2, mode)
    assert_same(undula.lwtn(x, name, 2, mode), theirs, 10)
    back = undula.ilwtn(theirs, name, mode)
    assert_same(back, reference.ilwtn(theirs, name, mode), 10)


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
        assert back.dtype == coeffs[0].dtype
        np.testing.assert_array_equal(back, x)
        theirs = reference.lwtn(x, name, level, mode, axes)
        for mine, wanted in zip(flat(coeffs), flat(theirs), strict=True):
            np.testing.assert_array_equal(mine, wanted)
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


EXTREME = st.sampled_from(["lowest", "highest", "both", "noise"])


@given(
    st.sampled_from(["haar", "db2", "db4", "cdf53", "cdf97", "dd137", "burt57", "rbio3.1", "coif1", "sym5"]),
    st.sampled_from(undula.LWT_MODES),
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.integers(0, 7),
    st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]),
    EXTREME,
    st.integers(0, 2**32 - 1),
)
@pytest.mark.thorough
@settings(max_examples=5 * settings.default.max_examples)
def test_integers_come_back_bit_for_bit(
    name: str, mode: str, shape: list[int], level: int, dtype: str, values: str, seed: int
) -> None:
    info = np.iinfo(dtype)
    # (Of 32 and 64 bits, as large as the storage allows.)
    low, high = (int(info.min), int(info.max)) if info.bits <= 16 else (-1000 * (info.min < 0), 2**12)
    rng = np.random.default_rng(seed)
    x = {
        "lowest": lambda: np.full(shape, low, dtype),
        "highest": lambda: np.full(shape, high, dtype),
        "both": lambda: rng.choice(np.array([low, high], dtype), shape),
        "noise": lambda: rng.integers(low, high, shape, dtype, endpoint=True),
    }[values]()
    try:
        coeffs = undula.lwtn(x, name, level, mode)
    except undula.ArgumentError:
        if info.bits != 32:  # (those that wide storage is asked for)
            raise
        coeffs = undula.lwtn(x, name, level, mode, dtype="i8")
    assert {part.dtype for part in flat(coeffs)} <= {np.dtype(n) for n in ("i2", "i4", "i8")}
    np.testing.assert_array_equal(undula.ilwtn(coeffs, name, mode), x)
    exact = reference.lwtn(x.astype("i8"), name, level, mode)
    for mine, wanted in zip(flat(coeffs), flat(exact), strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_integers_are_kept_in_the_smallest_that_holds_them() -> None:
    expected = {"u1": "i2", "i1": "i2", "u2": "i4", "i2": "i4", "i4": "i4", "u4": "i4", "i8": "i8"}
    for given_dtype, kept in expected.items():
        coeffs = undula.lwt2(np.ones((16, 16), given_dtype), "cdf53", 3)
        assert {part.dtype for part in flat(coeffs)} == {np.dtype(kept)}
    # Twelve bits in sixteen: asked for, and known to fit.
    x = np.random.default_rng(1).integers(0, 2**11, (100, 120)).astype("u2")
    coeffs = undula.lwt2(x, "cdf53", 4, dtype="i2")
    assert coeffs[0].dtype == np.int16
    np.testing.assert_array_equal(undula.ilwt2(coeffs, "cdf53"), x)
    wide = undula.lwt2(x, "cdf53", 4, dtype="i8")
    assert wide[0].dtype == np.int64
    np.testing.assert_array_equal(wide[0], coeffs[0])


@pytest.mark.parametrize("dtype", ["u2", "i4", "u4", "i8"])
def test_integers_in_the_other_byte_order(dtype: str) -> None:
    x = np.random.default_rng(2).integers(0, 256, (9, 12)).astype(dtype)
    swapped = x.astype(x.dtype.newbyteorder())
    assert_identical(undula.lwt2(swapped, "cdf53", 2), undula.lwt2(x, "cdf53", 2))
    for asked in (np.dtype("i4"), np.dtype("i8")):
        expected = undula.lwt2(x, "cdf53", 2, dtype=asked)
        assert_identical(undula.lwt2(swapped, "cdf53", 2, dtype=asked.newbyteorder()), expected)
    large = [np.full(4, sign * 0x7F000000, "i4") for sign in (1, -1)]  # small numbers in the other order
    with pytest.raises(undula.ArgumentError, match="int32 does not hold"):
        undula.ilwt([band.astype(band.dtype.newbyteorder()) for band in large], "cdf97")


def test_what_is_known_to_fit_is_what_does() -> None:
    """Samples of the largest size, with the signs that lead to the largest numbers."""
    for name in ("cdf53", "cdf97", "dd137"):
        grows = growth((undula.Wavelet(name),) * 2, ("symmetric",) * 2, (48, 48), 3)
        rng = np.random.default_rng(2)
        found = 0
        for _ in range(30):
            x = rng.choice([-1000, 1000], (48, 48))
            found = max(found, *(int(np.abs(part).max()) for part in flat(undula.lwt2(x, name, 3))))
        assert found <= grows.bound(1000)


@pytest.mark.parametrize(
    ("name", "level", "shape", "dtype", "most"),
    [
        ("db16", 5, (64, 64), "u2", 65535),
        ("db31", 4, (20, 8), "u2", 65535),
        ("cdf53", 4, (48, 48), "i4", 8 * 10**7),
        ("haar", 3, (33, 40), "i4", 9 * 10**7),
        ("sym12", 6, (11, 22), "u2", 65535),
    ],
)
def test_what_was_transformed_is_never_refused(
    name: str, level: int, shape: tuple[int, int], dtype: str, most: int
) -> None:
    """Bounds on the way back are wider than on the way there; but these coefficients come from samples."""
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, most, shape).astype(dtype)
        np.testing.assert_array_equal(undula.ilwt2(undula.lwt2(x, name, level), name), x)
    huge = np.full((4, 4), np.iinfo("i4").min, "i4")
    np.testing.assert_array_equal(undula.lwt2(huge, "cdf53", 0)[0], huge)


@pytest.mark.parametrize("dtype", ["int16", "int32"])
@pytest.mark.parametrize("name", ["cdf53", "cdf97", "haar", "db2"])
def test_changed_coefficients_are_exact_or_an_error(name: str, dtype: str) -> None:
    wider = {"int16": "int32", "int32": "int64"}[dtype]
    most = int(np.iinfo(dtype).max)
    rng = np.random.default_rng(3)
    for size, details in ((most, most), (most, 0), (most // 2, most // 3), (100, 20)):
        coeffs = [np.full((4, 4), size), tuple(rng.choice([-details, details], (4, 4)) for _ in range(3))]
        exact = undula.ilwt2(coeffs, name)  # in 64 bits
        given = [coeffs[0].astype(dtype), tuple(band.astype(dtype) for band in coeffs[1])]
        if np.abs(exact).max() > most:
            with pytest.raises(undula.ArgumentError, match=f"{dtype} does not hold; pass .* {wider}"):
                undula.ilwt2(given, name)
        else:
            back = undula.ilwt2(given, name)
            assert back.dtype == dtype
            np.testing.assert_array_equal(back, exact)
        given = [given[0].astype(wider), tuple(band.astype(wider) for band in given[1])]
        np.testing.assert_array_equal(undula.ilwt2(given, name), exact)


BAD: dict[str, tuple[Any, str]] = {
    "no lifting": (lambda: undula.lwt(np.ones(8), "dmey"), "dmey"),
    "a mode of the DWT": (lambda: undula.lwt(np.ones(8), "haar", mode="reflect"), "'reflect'"),
    "negative level": (lambda: undula.lwt(np.ones(8), "haar", -1), "-1"),
    "level of no integer": (lambda: undula.lwt(np.ones(8), "haar", 1.5), "1.5"),  # type: ignore[arg-type]
    "huge integers": (lambda: undula.lwt([2**62, 0], "haar"), "could overflow.*got up to"),
    "integers too large for their kind": (
        lambda: undula.lwt(np.array([2**30, -(2**30)], "i4"), "cdf53"),
        "in int32 could overflow.*dtype='int64'",
    ),
    "integers too large for what was asked": (
        lambda: undula.lwt2(np.full((9, 9), 30000, "i2"), "cdf53", dtype="i2"),
        "in int16 could overflow.*fit, got up to ±30000",
    ),
    "floats to be kept as integers": (lambda: undula.lwt(np.ones(8), "cdf53", dtype="i4"), "float64.*round"),
    "integers of no such kind": (lambda: undula.lwt([1, 2], "cdf53", dtype="u1"), "int16, int32, int64"),
    "coefficients of nothing": (
        lambda: undula.ilwt([np.full(4, 2**31 - 1, "i4"), np.full(4, 1 - 2**31, "i4")], "cdf97"),
        "lead to samples .* int32 does not hold; pass coefficients of int64",
    ),
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
