"""Laws of exact numbers, polynomials and matrices."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import THOROUGH
from undula.algebra import ROOT2, Laurent, PolyphaseMatrix, Surd, surd

fractions = st.fractions(min_value=-9, max_value=9, max_denominator=12)
numbers = st.builds(surd, fractions, fractions)
lines = st.dictionaries(st.integers(-4, 4), numbers, max_size=4).map(lambda d: Laurent(d, 1))
planes = st.dictionaries(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), fractions, max_size=4).map(
    lambda d: Laurent(d, 2)
)


@given(numbers, numbers, numbers)
def test_surds_form_a_field(a: Surd, b: Surd, c: Surd) -> None:
    assert (a + b) * c == a * c + b * c
    assert a * b == b * a
    assert a - a == 0
    assert (a - b) + b == a
    if b:
        assert a / b * b == a
        assert isinstance(b / b, Fraction)
    assert float(a * b) == pytest.approx(float(a) * float(b), abs=1e-12)


def test_surds_mix_with_numbers() -> None:
    assert ROOT2**2 == 2
    assert ROOT2**-2 == Fraction(1, 2)
    assert 1 / ROOT2 == ROOT2 / 2
    assert 3 - ROOT2 == -(ROOT2 - 3)
    assert float(abs(1 - ROOT2)) == pytest.approx(math.sqrt(2) - 1)
    assert ROOT2 * 0.5 == pytest.approx(math.sqrt(0.5))
    assert 1.0 / ROOT2 == pytest.approx(math.sqrt(0.5))
    assert hash(surd(1, 2)) == hash(surd(1, 2))
    assert [str(surd(*p)) for p in ((0, 1), (0, -3), (1, 2), (2, -1))] == [
        "√2",
        "-3√2",
        "(1 + 2√2)",
        "(2 - √2)",
    ]
    assert str(surd(0, Fraction(3, 4))) == "3√2/4"


@given(lines, lines, lines)
def test_polynomials_form_a_ring(p: Laurent, q: Laurent, r: Laurent) -> None:
    assert (p + q) * r == p * r + q * r
    assert (p * q) * r == p * (q * r)
    assert p * q == q * p
    assert p - p == 0
    assert p * 1 == p + 0 == p
    assert (p * q).reverse() == p.reverse() * q.reverse()
    assert hash(p + q) == hash(q + p)


@given(planes, planes)
def test_polynomials_in_two_variables(p: Laurent, q: Laurent) -> None:
    assert (p * q).exchange() == p.exchange() * q.exchange()
    assert p.exchange().exchange() == p.reverse().reverse() == p
    z, w = Fraction(2), Fraction(-3)
    assert (p * q)(z, w) == p(z, w) * q(z, w)
    assert p.exchange()(z, w) == p(w, z)


@given(lines, lines)
def test_floats_follow_exact_numbers(p: Laurent, q: Laurent) -> None:
    product = p.to_float() * q
    assert not product.exact
    assert product.close(p * q, 1e-9)
    assert (p.to_float() - q.to_float()).close(p - q, 1e-9)


def test_looking_at_a_polynomial() -> None:
    p = Laurent({-2: 3, 1: Fraction(-1, 2)})
    assert (len(p), p.degree, p.support, p[-2], p[0], p[1]) == (2, 3, ((-2, 1),), 3, 0, Fraction(-1, 2))
    assert dict(p.items()) == {-2: 3, 1: Fraction(-1, 2)}
    assert (p.max_abs(), p.norm1()) == (3.0, 3.5)
    assert str(p) == "-1/2·z + 3·z⁻²"
    assert str(Laurent({(0, 0): 1, (-1, 2): -1.5})) == "1 - 1.5·zₘ⁻¹zₙ²"
    assert str(Laurent({})) == "0"
    assert str(Laurent({1: 1 - ROOT2, 0: -ROOT2})) == "(1 - √2)·z - √2"
    assert eval(repr(p), {"Laurent": Laurent, "Fraction": Fraction}) == p
    assert pickle.loads(pickle.dumps(p)) == p
    assert [Laurent(t).symmetry for t in ({0: 1, 1: 1}, {0: 1, 2: -1}, {0: 1, 1: 2})] == [1, -1, 0]
    assert Laurent({0: 0, 3: 0}) == Laurent({}) == 0
    assert hash(Laurent({0: 2})) == hash(2)
    assert Laurent({0: 1}) != "1"


def test_powers_and_division() -> None:
    p = Laurent({0: 1, 1: 1})
    assert p**3 == p * p * p
    assert p**0 == 1
    assert Laurent({2: 4}) ** -1 == Laurent({-2: Fraction(1, 4)})
    assert (p * Laurent({3: 2})) / Laurent({3: 2}) == p
    assert Laurent({1: 0.5}) ** -2 == Laurent({-2: 4.0})


def test_chop_leaves_exact_numbers_alone() -> None:
    assert Laurent({0: 1.0, 1: 1e-15}).chop(1e-12) == Laurent({0: 1.0})
    tiny = Laurent({0: Fraction(1, 10**20)})
    assert tiny.chop(1e-12) == tiny


steps = st.tuples(st.booleans(), lines)


def chain(parts: list[tuple[bool, Laurent]]) -> PolyphaseMatrix:
    matrices = [PolyphaseMatrix([[1, 0], [f, 1]] if low else [[1, f], [0, 1]]) for low, f in parts]
    return PolyphaseMatrix.product(matrices, 2)


# (Numbers grow with every step, and products of four take seconds.)
@pytest.mark.thorough
@settings(max_examples=20)
@given(*[st.lists(steps, max_size=4 if THOROUGH else 3)] * 2)
def test_matrices_of_steps(first: list[tuple[bool, Laurent]], second: list[tuple[bool, Laurent]]) -> None:
    a, b = chain(first), chain(second)
    one = PolyphaseMatrix.identity(2)
    assert a.determinant() == 1
    assert a.inverse() @ a == a @ a.inverse() == one
    assert (a @ b).inverse() == b.inverse() @ a.inverse()
    assert (a @ b).adjoint() == b.adjoint() @ a.adjoint()
    assert a.adjoint().adjoint() == a
    assert (a + b) - b == a
    assert a**2 == a @ a
    assert a**-1 == a.inverse()


short = st.tuples(
    st.booleans(), st.dictionaries(st.integers(-2, 2), fractions, max_size=2).map(lambda d: Laurent(d, 1))
)


@settings(max_examples=20)
@given(st.lists(short, max_size=2), st.lists(short, max_size=2))
def test_tensor_products(first: list[tuple[bool, Laurent]], second: list[tuple[bool, Laurent]]) -> None:
    a, b = chain(first), chain(second)
    assert a.tensor(b) @ b.tensor(a) == (a @ b).tensor(b @ a)
    assert a.tensor(b).exchange() == b.tensor(a)
    assert a.tensor(b).adjoint() == a.adjoint().tensor(b.adjoint())
    assert a.tensor(b).inverse() == a.inverse().tensor(b.inverse())


def test_inverse_by_adjugate_and_of_renumbering() -> None:
    z = Laurent.monomial(1)
    m = PolyphaseMatrix([[2, z], [0, z * 3]])
    assert m.inverse() @ m == PolyphaseMatrix.identity(2)
    swap = PolyphaseMatrix([[0, z], [3, 0]])
    assert swap.is_monomial
    assert swap.inverse() @ swap == PolyphaseMatrix.identity(2)
    noisy = PolyphaseMatrix([[1.0, 0.5], [Laurent({0: 0.25, 1: 1e-14}), 1.0]])
    assert (noisy.inverse() @ noisy).close(PolyphaseMatrix.identity(2), 1e-12)


def test_counting() -> None:
    m = PolyphaseMatrix([[1, Laurent({-1: 1, 2: 1})], [1, 2]])
    assert m.operations == 4  # the one on the diagonal is free, the one beside it is an addition
    assert m.halo == ((1, 2),)
    assert not m.is_scalar
    assert not m.is_identity
    assert m.transpose()[1, 0] == m[0, 1]
    assert (m * 2)[0, 0] == 2
    assert np.isclose(m.distance(PolyphaseMatrix([[1, 0], [1, 2]])), 1)
    assert len({m, PolyphaseMatrix(m.rows)}) == 1
