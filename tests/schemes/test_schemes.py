"""Ten schemes: the counts of the paper's Tables 2, 3 and 4, and equality by multiplication."""

from fractions import Fraction as F

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from cases import WAVELETS, parametrize_some
from undula.algebra import Laurent, PolyphaseMatrix
from undula.schemes import STEPWISE

NAMES = "sweldens iwahashi iwahashi* explosive explosive* monolithic monolithic* polyphase polyphase*".split()
TABLE_2 = {
    "cdf53": "4/16 3/24 3/18 3/24 3/18 2/24 2/18 1/63 1/23",
    "cdf97": "8/32 6/48 6/36 6/48 6/36 4/48 4/36 2/126 2/46",
    "dd137": "4/32 3/64 3/50 3/64 3/50 2/64 2/50 1/255 1/203",
}
# Cells with single and double buffering; the second double is for connected pairs.
TABLE_3 = "2/3/3 3/4/4 3/4/6 2/3/3 2/3/3 3/6/6 3/6/6 4/4/8 4/4/8"
# Writes as (constant, per pair), reads per pair of degree 1 and of degree 3.
TABLE_4 = "1+4/8/24 2+4/10/42 0+6/10/42 0+4/10/42 0+4/10/42 0+6/10/42 0+6/10/42 0+4/21/117 0+4/12/117"


def doubled() -> undula.Lifting:
    """Two pairs of degree-3 steps."""
    one = undula.lifting("dd137")
    return undula.Lifting.make((*one.steps, *one.steps))


@pytest.mark.parametrize("wavelet", TABLE_2)
def test_table_2(wavelet: str) -> None:
    counts = [(s.barriers, s.operations) for s in (undula.scheme(wavelet, name) for name in NAMES)]
    assert " ".join(f"{b}/{o}" for b, o in counts) == TABLE_2[wavelet]


def test_table_3() -> None:
    rows = []
    for name in NAMES:
        one, two = undula.scheme("cdf53", name).cells, undula.scheme("cdf97", name).cells
        assert one == undula.scheme("dd137", name).cells
        assert two == undula.scheme(doubled(), name).cells
        assert one.single == two.single
        rows.append(f"{one.single}/{one.double}/{two.double}")
    assert " ".join(rows) == TABLE_3


@pytest.mark.parametrize(("name", "row"), list(zip(NAMES, TABLE_4.split(), strict=True)))
def test_table_4(name: str, row: str) -> None:
    writes, degree1, degree3 = row.split("/")
    constant, per_pair = map(int, writes.split("+"))
    for wavelet, pairs, reads in (("cdf53", 1, degree1), ("cdf97", 2, degree1), ("dd137", 1, degree3)):
        scheme = undula.scheme(wavelet, name)
        assert scheme.writes == constant + per_pair * pairs
        assert scheme.reads == int(reads) * pairs
    long = undula.scheme(doubled(), name)
    assert (long.writes, long.reads) == (constant + per_pair * 2, int(degree3) * 2)


def test_the_convolution_scheme() -> None:
    scheme = undula.scheme("cdf97", "convolution")
    assert (scheme.barriers, scheme.operations) == (1, (9 + 7) ** 2)
    assert scheme.halo == ((2, 2), (2, 2))
    meyer = undula.Wavelet("dmey")  # it has no lifting, but its filters are a scheme like any other's
    assert undula.scheme(meyer, "convolution").matrix() == meyer.polyphase.tensor(meyer.polyphase)
    assert undula.scheme(meyer, "convolution").inverse().matrix() == meyer.synthesis.tensor(meyer.synthesis)


def test_haar_needs_no_barrier(scheme_name: str) -> None:
    scheme = undula.scheme("haar", scheme_name)
    assert (scheme.barriers, scheme.reads, scheme.writes, scheme.cells) == (0, 0, 0, (0, 0))
    assert scheme.halo == ((0, 0), (0, 0))


# Products of long polynomials take time: of these, only the ones that most tests use.
LIFTED = [name for name in undula.wavelist(undula.families(), kind="discrete") if name != "dmey"]
SHORT = [name for name in LIFTED if undula.Wavelet(name).dec_len <= 14]


@parametrize_some("name", LIFTED, [name for name in LIFTED if name in SHORT or name in WAVELETS])
def test_every_scheme_of_every_wavelet_is_its_polyphase_matrix(name: str) -> None:
    wavelet = undula.Wavelet(name)
    whole = wavelet.polyphase.tensor(wavelet.polyphase)
    for scheme in (undula.scheme(wavelet, scheme_name) for scheme_name in undula.SCHEMES):
        if wavelet.exact:
            assert scheme.matrix() == whole, scheme.name
        else:
            assert scheme.matrix().distance(whole) <= 1e-10, scheme.name
        assert all(factor.local for stage in scheme.stages for factor in stage.factors[1:])


@parametrize_some(
    ("name", "scheme_name"),
    [(name, scheme) for name in WAVELETS for scheme in undula.SCHEMES],
    [
        (name, scheme)
        for number, name in enumerate(WAVELETS)
        for scheme in (undula.SCHEMES if name in SHORT else undula.SCHEMES[number % 3 :: 3])
    ],
)
def test_inverse_and_adjoint(name: str, scheme_name: str) -> None:
    wavelet = undula.Wavelet(name)
    scheme = undula.scheme(wavelet, scheme_name)
    inverse, adjoint = scheme.inverse(), scheme.adjoint()
    synthesis = wavelet.synthesis.tensor(wavelet.synthesis)
    if wavelet.exact:
        assert inverse.matrix() == synthesis
        assert adjoint.matrix() == scheme.matrix().adjoint()
        assert inverse.inverse().matrix() == scheme.matrix()
    else:
        assert inverse.matrix().close(synthesis, 2e-10)
        assert adjoint.matrix().close(scheme.matrix().adjoint(), 1e-12)
    # (A tap of one unit in the last place may vanish in a product, so counts may differ by a few.)
    assert inverse.barriers == adjoint.barriers == scheme.barriers
    assert adjoint.operations == scheme.operations
    assert inverse.operations == pytest.approx(scheme.operations, rel=0.01)


taps = st.dictionaries(st.integers(-2, 2), st.integers(-3, 3).filter(bool), min_size=1, max_size=3)


@pytest.mark.thorough
@settings(max_examples=15 * settings.default.max_examples // 25)
@given(st.lists(taps, min_size=1, max_size=3), st.booleans())
def test_any_sequence_of_steps(filters: list[dict[int, int]], update_first: bool) -> None:
    kinds = ("update", "predict") if update_first else ("predict", "update")
    steps = [(kinds[i % 2], Laurent({e: F(v, 2) for e, v in f.items()})) for i, f in enumerate(filters)]
    lifting = undula.Lifting.make(steps, (F(3), F(1, 3)))
    forward, back = lifting.matrix(), lifting.inverse().matrix()
    assert (forward @ back).is_identity
    for name in undula.SCHEMES:
        scheme = undula.scheme(lifting, name)
        assert scheme.matrix() == forward.tensor(forward)
        assert scheme.inverse().matrix() == back.tensor(back)
        inner = PolyphaseMatrix.product((stage.matrix for stage in scheme.stages), 4)
        for needed, held in zip(inner.halo, scheme.halo, strict=True):
            assert needed[0] <= held[0]
            assert needed[1] <= held[1]


@pytest.mark.parametrize("wavelet", ["cdf53", "cdf97", "dd137", "db2", "bior2.4", "bior6.8"])
def test_the_halo_is_what_results_depend_on(wavelet: str, scheme_name: str) -> None:
    forward = undula.scheme(wavelet, scheme_name)
    for scheme in (forward, forward.inverse(), forward.adjoint()):
        product = PolyphaseMatrix.product((factor.matrix for factor in scheme.factors), 4)
        assert scheme.halo == product.halo, scheme.name


def test_stepwise_schemes_are_those_without_composition() -> None:
    assert set(undula.SCHEMES) - set(STEPWISE) == {"convolution", "polyphase", "polyphase*"}


FORMULAS = {
    "sweldens": "y = Z S^V_U | S^H_U | T^V_P | T^H_P | E x",
    "iwahashi": "y = Z S^I_U | R^I_P,U | T^I_P | E x",
    "iwahashi*": "y = Z S^V_U₀ S^H_U₀ S^I_U₁ | R^I_P₁,U₁ | T^I_P₁ | T^V_P₀ T^H_P₀ E x",
    "explosive": "y = Z S^E_U | R^E_P,U | T^E_P | E x",
    "explosive*": "y = Z S^V_U₀ S^H_U₀ S^E_U₁ | R^E_P₁,U₁ | T^E_P₁ | T^V_P₀ T^H_P₀ E x",
    "monolithic": "y = Z S_U | T_P | E x",
    "monolithic*": "y = Z S^V_U₀ S^H_U₀ S_U₁ | T^V_P₀ T^H_P₀ T_P₁ | E x",
    "polyphase": "y = Z N_P,U | E x",
    "polyphase*": "y = Z S^V_U₀ S^H_U₀ N_P₁,U₁ | T^V_P₀ T^H_P₀ E x",
    "convolution": "y = Z C | x",
}


def test_formulas_are_those_of_the_paper(scheme_name: str) -> None:
    assert undula.scheme("cdf53", scheme_name).formula() == FORMULAS[scheme_name]


def test_text_of_a_scheme() -> None:
    text = str(undula.scheme("cdf53", "iwahashi"))
    assert text.startswith("iwahashi of cdf53: 3 barriers, 24 operations, halo 1+1 × 1+1\n")
    assert "P = -1/2 - 1/2·z⁻¹" in text
    assert "S^I_U = ⎢ 0  1   0     0 ⎥" in text
    assert "⎡ 1  U  U*  -UU* ⎤" in text
    assert "Z = diag(2·zₘ⁻¹zₙ⁻¹, zₙ⁻¹, zₘ⁻¹, 1/2)" in text
    connected = undula.scheme("cdf97", "monolithic*").formula()
    assert "T_P⁽¹⁾₁" in connected
    assert connected.count("|") == 4
    inverse = str(undula.scheme("cdf53", "monolithic").inverse())
    assert "(T_P)⁻¹" in inverse
    assert str(undula.scheme("haar", "sweldens").adjoint()).startswith("adjoint of sweldens of haar")
    assert undula.scheme(undula.Lifting.make([]), "sweldens").matrix().is_monomial


def test_everything_printed_multiplies_to_the_matrix() -> None:
    scheme = undula.scheme("cdf53", "explosive*")
    inner = PolyphaseMatrix.product((stage.matrix for stage in scheme), 4)
    assert scheme.after @ inner @ scheme.before == scheme.matrix()
    assert len(scheme) == len(scheme.stages) == 4
    assert str(scheme).endswith("E = diag(1, zₘ⁻¹, zₙ⁻¹, zₘ⁻¹zₙ⁻¹)")
    assert str(undula.scheme("bior5.5", "sweldens")).splitlines()[-1].startswith("    ⎣")
    lazy = undula.Lifting.make([], odd=1)
    assert undula.scheme(lazy, "sweldens").formula() == "y = x"


def test_turning_twice_gives_the_scheme_back(scheme_name: str) -> None:
    scheme = undula.scheme("cdf53", scheme_name)
    assert scheme.inverse().inverse() == scheme
    assert scheme.adjoint().adjoint() == scheme
    assert str(scheme.inverse().inverse()) == str(scheme)


@pytest.mark.parametrize(
    ("name", "mirror"), [("rbio2.2", "bior2.2"), ("rbio4.4", "bior4.4"), ("rbio6.8", "bior6.8")]
)
def test_chains_of_update_and_predict_cost_what_their_mirror_images_do(name: str, mirror: str) -> None:
    assert not undula.lifting(name).steps[0].is_predict
    for scheme_name in undula.SCHEMES:
        a, b = undula.scheme(name, scheme_name), undula.scheme(mirror, scheme_name)
        assert (a.barriers, a.operations, a.cells, a.reads, a.writes) == (
            b.barriers,
            b.operations,
            b.cells,
            b.reads,
            b.writes,
        )
    assert undula.scheme("rbio2.2", "monolithic").formula() == "y = Z S'_P | T'_U | E x"


def test_a_stage_multiplies_its_factors() -> None:
    stage = undula.scheme("cdf53", "monolithic*").stages[0]
    assert isinstance(stage.matrix, PolyphaseMatrix)
    assert stage.matrix == undula.scheme("cdf53", "monolithic").stages[0].matrix
    assert str(stage) == "T^V_P₀ T^H_P₀ T_P₁"
    assert (stage.barrier, stage.operations, stage.halo) == (True, 9, ((1, 0), (1, 0)))


def test_the_former_name_of_stages_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="SchemeStage"):
        assert undula.Stage is undula.SchemeStage
    with pytest.raises(AttributeError, match="'Stages'"):
        _ = undula.Stages
