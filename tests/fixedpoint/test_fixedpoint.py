"""Fixed point: what the paper says of its filters, exactly; transforms in 16 bits that come back nearly."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undula
from undula.fixedpoint import FixedPoint, burt57, d4, shift_rational


def test_daubechies_over_sixteen() -> None:
    assert d4.norm == Fraction(129, 64)
    assert d4.moments(2) == [0, 0]
    assert d4.moments(3)[2] != 0


def test_burt_over_256() -> None:
    g = [Fraction(n, 256) for n in (-220, 94, 20, -4)]
    assert g[0] + 2 * g[1] + 2 * g[2] + 2 * g[3] == 0
    assert burt57.moments(2) == [0, 0]
    # As printed in the paper, the first and the last row of each half.
    rows = [[int(256 * value) for value in row] for row in burt57.matrix(8)]
    assert rows[0] == [216, 184, -36, 0, 0, 0, 0, 0]
    assert rows[3] == [0, 0, 0, 0, -18, 92, 198, 92]
    assert rows[4] == [94, -200, 90, 20, -4, 0, 0, 0]
    assert rows[7] == [0, 0, 0, 0, -8, 40, 188, -220]
    back = [[int(256 * value) for value in row] for row in burt57.matrix_back(8)]
    assert back[0] == [220, -40, 0, 0, 184, 0, 0, 0]
    assert back[7] == [0, 0, -8, 188, 0, 0, 36, -216]


def test_burt_is_its_own_inverse_but_for_one_in_8192() -> None:
    there, back = np.array(burt57.matrix(8)), np.array(burt57.matrix_back(8))
    rest = (np.eye(8, dtype=int) - there @ back) * 8192
    expected = np.zeros((8, 8), int)
    expected[0, 2] = expected[7, 5] = 2
    for i, j in (
        (1, 1),
        (1, 3),
        (2, 0),
        (2, 3),
        (3, 1),
        (3, 2),
        (4, 5),
        (4, 6),
        (5, 4),
        (5, 7),
        (6, 4),
        (6, 6),
    ):
        expected[i, j] = 1
    assert (rest == expected).all()
    longer = np.array(burt57.matrix(64)) @ np.array(burt57.matrix_back(64)) - np.eye(64, dtype=int)
    assert abs(longer).max() <= Fraction(2, 8192)


@given(
    st.sampled_from(["d4", "burt57", "haar", "db2", "db5", "cdf53", "cdf97", "dd137", "bior3.3", "sym4"]),
    st.integers(1, 12).map(lambda n: 4 * n),
    st.integers(1, 12).map(lambda n: 4 * n),
    st.integers(0, 2),
    st.integers(0, 2**32 - 1),
)
def test_what_is_computed_is_the_matrix_rounded(
    name: str, height: int, width: int, level: int, seed: int
) -> None:
    known: dict[str, FixedPoint] = {"d4": d4, "burt57": burt57}
    filters = known.get(name) or shift_rational(name, 10)
    x = np.random.default_rng(seed).integers(0, 256, (height, width)).astype(np.uint8)
    coeffs = filters.forward(x, level)
    assert coeffs[0].dtype == np.int16
    assert coeffs[0].shape == (height >> level, width >> level)
    if level == 1:
        rows = np.array(filters.matrix(width), dtype=float)
        columns = np.array(filters.matrix(height), dtype=float)
        along = np.floor(x @ rows.T + 0.5)
        whole = np.floor(columns @ along + 0.5)
        half, side = height // 2, width // 2
        np.testing.assert_array_equal(coeffs[0], whole[:half, :side])
        horizontal, vertical, both = coeffs[1]
        np.testing.assert_array_equal(horizontal, whole[half:, :side])
        np.testing.assert_array_equal(vertical, whole[:half, side:])
        np.testing.assert_array_equal(both, whole[half:, side:])
        back = np.array(filters.matrix_back(height), dtype=float)
        again = np.array(filters.matrix_back(width), dtype=float)
        first = np.floor(back @ whole + 0.5)
        np.testing.assert_array_equal(filters.inverse(coeffs), np.floor(first @ again.T + 0.5))


def test_channels_and_batches() -> None:
    x = np.random.default_rng(0).integers(0, 256, (2, 16, 24, 3)).astype(np.uint8)
    whole = d4.forward(x, 2, (1, 2))
    alone = d4.forward(x[1, :, :, 2], 2)
    np.testing.assert_array_equal(whole[0][1, :, :, 2], alone[0])
    np.testing.assert_array_equal(d4.inverse(whole, (1, 2))[1, :, :, 2], d4.inverse(alone))


@pytest.mark.parametrize("name", ["haar", "db2", "db4", "sym5", "coif1", "cdf53", "cdf97", "burt57", "dd137"])
def test_more_bits_are_nearer(name: str) -> None:
    errors = [shift_rational(name, bits).error() for bits in (4, 8, 12)]
    assert errors[0] >= errors[1] >= errors[2] < errors[0]
    assert errors[2] < 1e-3
    assert all(shift_rational(name, bits).moments(1) == [0] for bits in (3, 5, 8, 12))
    # Tap by tap they are the wavelet's.
    near = shift_rational(name, 12)
    exact = sorted(tap for tap in undula.Wavelet(name).dec_lo if abs(tap) > 1e-3)
    mine = sorted(n / 4096 for n in near.low.values() if abs(n) > 4)
    np.testing.assert_allclose(mine, exact, atol=2e-4)


BAD: dict[str, tuple[Any, str]] = {
    "floats": (lambda: d4.forward(np.ones((4, 4))), "float64"),
    "odd sides": (lambda: d4.forward(np.ones((5, 4), int)), r"2\^1 must divide.*\(5, 4\)"),
    "sixteen bits are too few": (lambda: d4.forward(np.full((8, 8), 20000)), "beyond 16 bits"),
    "an axis": (lambda: d4.forward(np.ones((4, 4), int), 1, (0, 5)), "5"),
    "one axis twice": (lambda: d4.forward(np.ones((4, 4), int), 1, (0, 0)), "0"),
    "a negative level": (lambda: d4.forward(np.ones((4, 4), int), -1), "-1"),
    "wide coefficients": (lambda: d4.inverse([np.full((4, 4), 2**20)]), "1048576"),
    "float coefficients": (lambda: d4.inverse([np.ones((4, 4))]), "float64"),
    "bands that do not fit": (
        lambda: d4.inverse([np.ones((4, 4), "i2"), (np.ones((2, 2), "i2"),) * 3]),
        r"\(2, 2\)",
    ),
    "bits": (lambda: shift_rational("db2", 20), "20"),
    "an odd matrix": (lambda: d4.matrix(7), "7"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, said = BAD[case]
    with pytest.raises(undula.UndulaError, match=said):
        act()
