"""Boundary methods: extrapolations against NumPy, windows, and the orthogonality of boundary filters."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from cases import parametrize_some
from comparing import assert_same, flat, noise
from undula.lowering.boundary_methods import orthogonal_matrix

ORTHOGONAL = [
    name for name in pywt.wavelist(kind="discrete") if pywt.Wavelet(name).orthogonal and name != "dmey"
]
METHODS = [
    undula.Decay(0.7),
    undula.Polynomial(2),
    undula.Taper(4, 0.2),
    undula.BoundaryFilters(),
]
pytestmark = pytest.mark.filterwarnings("ignore:Level value")


@parametrize_some(
    "name", ORTHOGONAL, [*"haar db2 db3 db7 db14 db38 sym4 sym13 sym20 coif1 coif5 coif17".split()]
)
def test_boundary_filters_are_orthogonal(name: str) -> None:
    wavelet = undula.Wavelet(name)
    taps, lo = wavelet.dec_len, np.array(wavelet.dec_lo)
    # The filters themselves are orthogonal up to this.
    errors = [lo[2 * k :] @ lo[: taps - 2 * k] - (k == 0) for k in range(taps // 2)]
    tolerance = 1e-13 + 10 * np.abs(errors).max()
    for length in (*range(1, 13), taps - 1, taps, 2 * taps - 1, 2 * taps, 2 * taps + 1, 3 * taps + 1):
        low, high = orthogonal_matrix(wavelet, length)
        assert (low.shape, high.shape) == (((length + 1) // 2, length), (length // 2, length))
        matrix = np.concatenate([low, high])
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(length), atol=tolerance)


@pytest.mark.parametrize(("name", "moments"), [("haar", 1), ("db2", 1), ("db4", 1), ("db10", 3)])
def test_boundary_filters_ignore_polynomials(name: str, moments: int) -> None:
    """Details of polynomials of low degree vanish at both ends, except those of the last one or two."""
    x = np.polynomial.Polynomial([3.0, 0.01, -1e-4][:moments])(np.arange(100.0))
    _, high = undula.dwt(x, name, undula.BoundaryFilters())
    kept = np.abs(high) > 1e-8
    assert not kept[:-1].any() if name in ("haar", "db2") else np.count_nonzero(kept) <= 2


def test_the_inside_is_that_of_other_modes() -> None:
    x = noise(64)
    low, high = undula.dwt(x, "db4", undula.BoundaryFilters())
    inner_low, inner_high = pywt.dwt(x, "db4", "zero")
    # 7 coefficients of the DWT are cut off by the ends, and 3 + 3 rows stand for them.
    np.testing.assert_allclose(low[2:-1], inner_low[3:-3], atol=1e-12)
    np.testing.assert_allclose(high[1:-2], inner_high[3:-3], atol=1e-12)


@pytest.mark.parametrize("backend", ["cpu", "opencl"])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_round_trips(method: undula.BoundaryMethod, backend: str) -> None:
    for shape, axes in (
        ((17,), (0,)),
        ((64,), (0,)),
        ((30, 41), (0, 1)),
        ((6, 20, 11), (0, 2)),
        ((2, 3), (1,)),
    ):
        x = noise(*shape)
        coeffs = undula.wavedecn(x, "db3", method, 2, axes, backend=backend)
        again = undula.waverecn(coeffs, "db3", method, axes, shape=shape, backend=backend)
        assert_same(again, x, 1e5)
        other = noise(*shape)[::-1]
        folded = undula.adjoint("wavedecn", coeffs, "db3", method, axes=axes, shape=shape, backend=backend)
        spread = undula.wavedecn(other, "db3", method, 2, axes, backend=backend)
        product = sum(np.vdot(u, v) for u, v in zip(flat(coeffs), flat(spread), strict=True))
        np.testing.assert_allclose(np.vdot(folded, other), product, rtol=1e-9)
        if isinstance(method, undula.BoundaryFilters):
            assert sum(band.size for band in flat(coeffs)) == x.size
            energy = sum(float(np.sum(np.abs(band) ** 2)) for band in flat(coeffs))
            np.testing.assert_allclose(energy, np.sum(x**2))
            assert_same(undula.waverecn(coeffs, "db3", method, axes, backend=backend), x, 1e5)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_all_forms(method: undula.BoundaryMethod) -> None:
    x = noise(12, 20, dtype="f4")
    cA, cD = undula.dwt(x, "haar", method)
    assert_same(undula.idwt(cA, cD, "haar", method), x, 100)
    assert_same(undula.idwt2(undula.dwt2(x, "haar", method), "haar", method), x, 100)
    assert_same(undula.idwtn(undula.dwtn(x, "haar", method), "haar", method), x, 100)
    assert_same(undula.waverec(undula.wavedec(x, "haar", method, 2), "haar", method), x, 100)
    assert_same(undula.waverec2(undula.wavedec2(x, "haar", method, 2), "haar", method), x, 100)
    mixed = [method, "periodization"]
    assert_same(undula.waverec2(undula.wavedec2(x, "db2", mixed, 2), "db2", mixed, shape=x.shape), x, 100)
    z = noise(20, dtype="c16")
    assert_same(undula.waverec(undula.wavedec(z, "db2", method, 2), "db2", method), z, 1e4)


@settings(deadline=None, max_examples=30)
@given(
    length=st.integers(2, 60),
    name=st.sampled_from(["haar", "db4", "bior4.4", "rbio3.1"]),
    pair=st.sampled_from(
        [
            (undula.Polynomial(0), "constant"),
            (undula.Polynomial(1), "smooth"),
            (undula.Decay(0), "zero"),
            (undula.Decay(1), "constant"),
        ]
    ),
    level=st.integers(1, 3),
)
def test_special_cases_are_modes(length: int, name: str, pair: Any, level: int) -> None:
    method, mode = pair
    x = noise(length)
    assert_same(undula.wavedec(x, name, method, level), pywt.wavedec(x, name, mode, level), 100)


def test_extrapolation_goes_on_as_the_polynomial() -> None:
    polynomial = np.polynomial.Polynomial([1.0, -2.0, 0.5, 0.25])
    places = np.arange(-5.0, 14.0)
    extended = undula.pad(polynomial(places[5:-4]), (5, 4), undula.Polynomial(3))
    np.testing.assert_allclose(extended, polynomial(places), rtol=1e-10)
    _, details = undula.dwt(polynomial(np.arange(40.0)), "db4", undula.Polynomial(3))
    np.testing.assert_allclose(details, 0, atol=1e-7)  # Four moments vanish, at the ends, too.


def test_windows_fade_the_ends() -> None:
    x = np.ones(40)
    faded = undula.idwt(*undula.dwt(x, "db2", undula.Taper(5, 0.0)), "db2", "zero")
    assert faded[0] == pytest.approx(0)
    assert faded[5] == pytest.approx(1)
    assert (np.diff(faded[:6]) > 0).all()


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "rate": (lambda: undula.Decay(1.5), ValueError, "from 0 to 1, got 1.5"),
    "rate kind": (lambda: undula.Decay("a"), TypeError, "got 'a'"),  # type: ignore[arg-type]
    "degree": (lambda: undula.Polynomial(9), ValueError, "from 0 to 8, got 9"),
    "degree kind": (lambda: undula.Polynomial(1.5), TypeError, "got 1.5"),  # type: ignore[arg-type]
    "width": (lambda: undula.Taper(0), ValueError, "got 0"),
    "biorthogonal": (
        lambda: undula.dwt(np.ones(40), "bior4.4", undula.BoundaryFilters()),
        ValueError,
        "orthogonal wavelets, such as 'db4', and the filters of 'bior4.4'",
    ),
    "nearly": (lambda: undula.dwt(np.ones(400), "dmey", undula.BoundaryFilters()), ValueError, "'dmey'"),
    "packets": (
        lambda: undula.WaveletPacket(np.ones(8), "db2", undula.Decay()),
        TypeError,
        "a boundary method works in",
    ),
    "class": (lambda: undula.dwt(np.ones(8), "db2", undula.Decay), TypeError, r"Decay\(\)"),
    "mra": (
        lambda: undula.mra(np.ones(8), "db2", 1, transform="dwt", mode=undula.Decay()),
        TypeError,
        "a boundary method works in",
    ),
    "lost": (
        lambda: undula.idwt(np.ones(5), np.ones(5), "haar", undula.Taper(2, 0)),
        ValueError,
        "cannot be restored",
    ),
    "missing": (
        lambda: undula.idwt(np.ones(5), None, "haar", undula.BoundaryFilters()),
        ValueError,
        "all bands are needed",
    ),
    "sizes": (
        lambda: undula.idwt(np.ones(5), np.ones(8), "haar", undula.BoundaryFilters()),
        ValueError,
        "incompatible",
    ),
    "shape": (
        lambda: undula.idwt(np.ones(5), np.ones(5), "haar", undula.BoundaryFilters(), shape=9),
        ValueError,
        r"\(9,\) does not match",
    ),
    "out": (
        lambda: undula.dwt(np.ones(8), "haar", undula.Decay(), out=(np.ones(4), np.ones(4))),
        ValueError,
        "omit out",
    ),
    "pad": (lambda: undula.pad(np.ones(3), 2, undula.Taper()), ValueError, "does not extend"),
    "empty": (lambda: undula.dwt([], "haar", undula.Decay()), ValueError, "must have samples"),
    "nothing": (lambda: undula.idwt(None, None, "haar", undula.Decay()), ValueError, "At least one"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, undula.UndulaError)


ADJOINTS = [
    ((1,), (0,), "db2", 1),
    ((2,), (0,), "sym4", 1),
    ((7,), (0,), "db3", 2),
    ((21,), (0,), "sym2", 2),
    ((5, 6), (0, 1), "haar", 1),
    ((2, 12), (1,), "db2", 2),
]


@pytest.mark.parametrize("method", [*METHODS, undula.Decay(1), undula.Polynomial(4)], ids=str)
def test_adjoints_are_transposes(method: Any) -> None:
    """Dense matrices of small transforms, and those of their inverses, are compared with their adjoints."""
    for shape, axes, wavelet, level in ADJOINTS:
        modes = [method, "symmetric"][: len(axes)]
        size = int(np.prod(shape))
        example = undula.wavedecn(np.zeros(shape), wavelet, modes, level, axes)
        bands = flat(example)

        def nested(values: Any, bands: Any = bands, example: Any = example) -> Any:
            pieces = np.split(values, np.cumsum([band.size for band in bands])[:-1])
            arrays = iter([piece.reshape(band.shape) for piece, band in zip(pieces, bands, strict=True)])
            return [next(arrays), *({key: next(arrays) for key in part} for part in example[1:])]

        def joined(coeffs: Any) -> Any:
            return np.concatenate([np.ravel(band) for band in flat(coeffs)])

        samples = np.eye(size).reshape(size, *shape)
        rows = np.eye(sum(band.size for band in bands))
        forward = np.stack([joined(undula.wavedecn(x, wavelet, modes, level, axes)) for x in samples], 1)
        options: dict[str, Any] = {"axes": axes, "shape": shape}
        transpose = [undula.adjoint("wavedecn", nested(y), wavelet, modes, **options).ravel() for y in rows]
        np.testing.assert_allclose(np.stack(transpose, 1), forward.T, atol=1e-10)
        back = [undula.waverecn(nested(y), wavelet, modes, **options).ravel() for y in rows]
        spread = [joined(undula.adjoint("waverecn", x, wavelet, modes, level, axes)) for x in samples]
        np.testing.assert_allclose(np.stack(spread, 0), np.stack(back, 1), atol=1e-10)
