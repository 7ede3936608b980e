"""Factorisations: multiplied back, compared, well conditioned, and the textbook's where there is one."""

from fractions import Fraction as F
from itertools import pairwise

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from cases import parametrize_some
from undula.algebra import ROOT2, Laurent, PolyphaseMatrix
from undula.liftings import euclid, rotations
from undula.liftings.conditioning import FLOAT32_LIMIT, RESIDUAL_LIMIT

LIFTED = [name for name in undula.wavelist(undula.families(), kind="discrete") if name != "dmey"]
SYMMETRIC = (
    "bior2.2 bior2.4 bior2.6 bior2.8 bior4.4 bior5.5 bior6.8 rbio2.2 rbio2.4 rbio2.6 rbio2.8 rbio4.4 rbio5.5"
    " rbio6.8 cdf53 cdf97 dd137 burt57"
).split()
ALPHA = (-1.586134342059924, -0.052980118572961, 0.882911075530934, 0.443506852043971)


def pair(value: object, exponent: int) -> Laurent:
    return Laurent({0: value, exponent: value})


# The longer, the longer it takes to factor them: of those with more than 24 taps, every third.
LONG = [name for name in LIFTED if undula.Wavelet(name).dec_len > 24]


@parametrize_some("name", LIFTED, [name for name in LIFTED if name not in LONG or name in LONG[::3]])
def test_steps_multiply_back_and_keep_precision(name: str) -> None:
    wavelet = undula.Wavelet(name)
    lifting = undula.lifting(name)
    if wavelet.exact:
        assert lifting.exact
        assert lifting.matrix() == wavelet.polyphase
        assert lifting.residual == 0
    else:
        assert lifting.matrix().distance(wavelet.polyphase) == lifting.residual <= RESIDUAL_LIMIT
    assert lifting.conditioning.float32_error <= FLOAT32_LIMIT
    assert lifting.conditioning.good
    assert lifting.largest <= 6
    assert lifting.symmetric == (name in SYMMETRIC)
    assert abs(lifting.odd) == 1
    kinds = [step.kind for step in lifting.steps]
    assert all(a != b for a, b in pairwise(kinds))


def test_the_textbooks_factorisations() -> None:
    half = F(1, 2)
    haar = undula.lifting("haar")
    assert haar.pairs() == ((Laurent({0: -1}), Laurent({0: half})),)
    assert haar.scaling == (ROOT2, -1 / ROOT2)
    cdf53 = undula.lifting("cdf53")
    assert cdf53.pairs() == ((pair(-half, -1), pair(F(1, 4), 1)),)
    assert cdf53.scaling == (ROOT2, 1 / ROOT2)
    dd137 = undula.lifting("dd137")
    predict = Laurent({1: F(1, 16), 0: F(-9, 16), -1: F(-9, 16), -2: F(1, 16)})
    update = Laurent({2: F(-1, 32), 1: F(9, 32), 0: F(9, 32), -1: F(-1, 32)})
    assert dd137.pairs() == ((predict, update),)
    for name in ("cdf97", "bior4.4"):
        cdf97 = undula.lifting(name)
        assert [step.kind for step in cdf97.steps] == ["predict", "update"] * 2
        for step, value in zip(cdf97.steps, ALPHA, strict=True):
            assert step.filter.close(pair(value, -1 if step.is_predict else 1), 1e-10)
        assert float(cdf97.scaling[0]) == pytest.approx(1.149604398860241, abs=1e-10)
    db2 = undula.lifting("db2")
    root3 = 3**0.5
    first, second, third = (step.filter for step in db2.steps)
    assert first.close(Laurent({0: -root3}))
    assert second.close(Laurent({0: root3 / 4, 1: (root3 - 2) / 4}))
    assert third.close(Laurent({-1: 1.0}))


def test_burt_57_by_hand() -> None:
    first, second, third = undula.lifting("burt57").steps
    assert [step.kind for step in (first, second, third)] == ["predict", "update", "predict"]
    assert first.filter == pair(F(-1, 5), -1)
    assert second.filter == pair(F(5, 14), 1)
    assert third.filter == pair(F(-21, 100), -1)


@pytest.mark.parametrize("name", ["haar", "db6", "sym9", "coif4", "db38", "bior3.5", "rbio5.5", "cdf53"])
def test_inverse_and_adjoint(name: str) -> None:
    lifting = undula.lifting(name)
    one = PolyphaseMatrix.identity(2)
    assert (lifting.inverse().matrix() @ lifting.matrix()).close(one, 1e-9)
    assert lifting.adjoint().matrix().close(lifting.matrix().adjoint(), 1e-9)
    assert lifting.inverse().inverse().steps == lifting.steps
    assert lifting.inverse().inverse().after.close(lifting.after, 1e-14)
    assert lifting.adjoint().adjoint() == lifting
    assert lifting.shifted().matrix().close(lifting.matrix(), 1e-12)
    assert lifting.shifted().shifted().steps == lifting.steps


@pytest.mark.parametrize("name", ["db2", "db11", "sym16", "coif17", "db38"])
def test_rotations_have_small_coefficients(name: str) -> None:
    matrix = undula.Wavelet(name).polyphase
    both = list(rotations.factor(matrix))
    assert [lifting.steps[0].kind for lifting in both] == ["predict", "update"]
    for lifting in both:
        assert lifting.matrix().close(matrix, 1e-11)
        assert lifting.largest <= 1
        assert lifting.operations <= 3 * len(undula.Wavelet(name)) // 2


def test_euclid_alone_reaches_the_least_operations() -> None:
    for name in ("db3", "db4", "db5", "db6", "db7", "coif2", "sym7"):
        wavelet = undula.Wavelet(name)
        best = min(euclid.factor(wavelet.polyphase, wavelet.reconstruction_error), key=lambda c: c.operations)
        assert best.operations <= wavelet.dec_len + 1


taps = st.dictionaries(st.integers(-2, 2), st.integers(-4, 4).filter(bool), min_size=1, max_size=3)
chains = st.lists(taps, min_size=1, max_size=5)


@settings(max_examples=30)
@given(chains, st.booleans(), st.sampled_from([-1, 1]))
def test_any_exact_filter_bank_is_factored(
    filters: list[dict[int, int]], update_first: bool, odd: int
) -> None:
    kinds = ("update", "predict") if update_first else ("predict", "update")
    steps = [(kinds[i % 2], Laurent({e: F(v, 4) for e, v in f.items()})) for i, f in enumerate(filters)]
    given_lifting = undula.Lifting.make(steps, (F(2), F(-1, 3)), odd=odd)  # type: ignore[arg-type]
    wavelet = given_lifting.wavelet("random")
    assert wavelet.exact
    found = undula.lifting(wavelet)
    assert found.exact
    assert found.matrix() == wavelet.polyphase


def test_a_bank_that_only_exchanges_samples() -> None:
    lazy = undula.Wavelet.from_polyphase(PolyphaseMatrix([[0, 1], [1, 0]]), "swap")
    assert undula.lifting(lazy).matrix() == lazy.polyphase
    idle = undula.Wavelet.from_polyphase(PolyphaseMatrix.identity(2), "lazy")
    assert undula.lifting(idle).steps == ()


def test_pairs_of_any_sequence() -> None:
    p, u = Laurent({0: 1}), Laurent({1: 2})
    zero = Laurent({}, 1)
    make = undula.Lifting.make
    assert make([("update", u), ("predict", p)]).pairs() == ((zero, u), (p, zero))
    assert make([("predict", p), ("predict", p), ("update", u)]).pairs() == ((p, zero), (p, u))
    assert make([]).pairs() == ()


def test_custom_lifting_makes_a_wavelet() -> None:
    lifting = undula.Lifting.make(
        [("predict", pair(F(-1, 2), -1)), ("update", pair(F(1, 4), 1))], (ROOT2, 1 / ROOT2)
    )
    assert lifting.wavelet("cdf53").bank == undula.Wavelet("cdf53").bank


def test_conditioning_tells_good_from_bad() -> None:
    bad = undula.Lifting.make([("predict", Laurent({0: 1e4})), ("update", Laurent({0: -1e4}))])
    assert bad.conditioning.float32_error > FLOAT32_LIMIT
    assert not bad.conditioning.good
    assert str(bad.conditioning).endswith("inaccurate: use the filter bank")
    off = undula.Conditioning(largest=1, float32_error=1e-7, residual=1e-8)
    assert not off.good
    assert "inexact: use the filter bank" in str(off)
    assert str(undula.lifting("haar").conditioning).endswith("good")
    hopeless = undula.Lifting.make([("predict", Laurent({0: 1e30})), ("update", Laurent({0: 1e30}))])
    assert hopeless.conditioning.float32_error == float("inf")


def test_text_of_inverse_and_adjoint() -> None:
    assert str(undula.lifting("cdf53").inverse()).splitlines() == [
        "scale    (√2/2·z, √2)",
        "update   U = -1/4·z - 1/4",
        "predict  P = 1/2 + 1/2·z⁻¹",
        "merge    x[2n] = L[n], x[2n+1] = H[n+1]",
    ]
    assert str(undula.lifting("bior5.5").inverse()).endswith("merge    x[2n] = H[n], x[2n+1] = L[n]")
    swap = undula.Lifting([], PolyphaseMatrix([[0, 2], [3, 0]]), PolyphaseMatrix.identity(2))  # type: ignore[arg-type]
    assert str(swap).endswith("scale    (2·H, 3·L)")


def test_wavelets_of_other_libraries_are_understood() -> None:
    assert undula.lifting(pywt.Wavelet("db4")) == undula.lifting("db4")  # type: ignore[arg-type]
    mine = pywt.Wavelet("mine", filter_bank=pywt.Wavelet("db4").filter_bank)
    assert undula.lifting(mine).steps == undula.lifting("db4").steps  # type: ignore[arg-type]


def test_text_names_the_split() -> None:
    assert "L[n] = x[2n+1], H[n] = x[2n]" in str(undula.lifting("bior5.5"))
    assert "L[n] = x[2n], H[n] = x[2n-1]" in str(undula.lifting("cdf97"))
    assert np.isclose(undula.lifting("bior5.5").largest, 5.585789)
