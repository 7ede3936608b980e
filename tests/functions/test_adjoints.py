"""Adjoints: transposes of dense matrices, inner products on every engine, operators of SciPy, bad input."""

from typing import Any

import dask.array
import numpy as np
import pytest
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from cases import pairwise, parametrize_some
from comparing import flat
from undula.operators import WaveletOperator

# Scaled so that all taps are dyadic: sums of small integers are exact.
RATIONAL = undula.Wavelet(
    "rational 5/3",
    [
        [0, -1 / 8, 1 / 4, 3 / 4, 1 / 4, -1 / 8],
        [0, 1 / 2, -1, 1 / 2, 0, 0],
        [0, 1 / 2, 1, 1 / 2, 0, 0],
        [0, 1 / 8, 1 / 4, -3 / 4, 1 / 4, 1 / 8],
    ],
)
# A shape, its axes and the number of levels: short and long lines, planes, volumes, batches, odd lengths.
ARRAYS = [
    ((1,), (0,), 1),
    ((5,), (0,), 1),
    ((97,), (0,), 3),
    ((3, 40), (1,), 2),
    ((40, 7), (0,), 1),
    ((33, 50), (0, 1), 2),
    ((2, 60, 61), (1, 2), 1),
    ((9, 10, 11), (0, 1, 2), 1),
    ((20, 3, 21), (0, 2), 1),
]
WAVELETS = ("haar", "db4", "bior4.4", "rbio3.1", "coif2", "dmey")
FORMS = {"dwt": ("wavedecn", "waverecn"), "lwt": ("lwtn", "ilwtn"), "swt": ("swtn", "iswtn")}
CASES = [
    (family, wavelet, mode, array, dtype)
    for family, modes in (("dwt", undula.MODES), ("lwt", undula.LWT_MODES), ("swt", undula.MODES))
    for wavelet, mode, array, dtype in pairwise(WAVELETS, modes, ARRAYS, ("f8", "c16", "f4"))
    if not (family == "lwt" and wavelet == "dmey")
]


def noise(*shape: int, dtype: Any = "f8", seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def _transform(family: str, x: Any, wavelet: Any, mode: str, axes: Any, level: int, backend: str) -> Any:
    if family == "dwt":
        return undula.wavedecn(x, wavelet, mode, level, axes, backend=backend)
    if family == "lwt":
        return undula.lwtn(x, wavelet, level, mode, axes, backend=backend)
    return undula.swtn(x, wavelet, level, axes=axes, mode=mode, trim_approx=True, backend=backend)


def _inverse(family: str, coeffs: Any, wavelet: Any, mode: str, axes: Any, shape: Any, backend: str) -> Any:
    if family == "dwt":
        return undula.waverecn(coeffs, wavelet, mode, axes, shape=shape, backend=backend)
    if family == "lwt":
        return undula.ilwtn(coeffs, wavelet, mode, axes, backend=backend)
    return undula.iswtn(coeffs, wavelet, axes, mode=mode, backend=backend)


def _product(a: Any, b: Any) -> Any:
    return sum(np.vdot(u, v) for u, v in zip(flat(a), flat(b), strict=True))


def _like(coeffs: Any, seed: int) -> Any:
    bands = [noise(*band.shape, dtype=band.dtype, seed=seed + k) for k, band in enumerate(flat(coeffs))]
    keyed = iter(bands)
    return [next(keyed), *({key: next(keyed) for key in level} for level in coeffs[1:])]


def _check(
    family: str, wavelet: Any, mode: str, array: tuple[Any, Any, int], dtype: str, backend: str
) -> None:
    shape, axes, level = array
    forward, inverse = FORMS[family]
    x = noise(*shape, dtype=dtype)
    try:
        coeffs = _transform(family, x, wavelet, mode, axes, level, backend)
    except undula.ArgumentError:
        assert "reflect" in mode  # needs two samples
        return
    y = _like(coeffs, 1)
    scale = np.sqrt(abs(_product([x], [x]) * _product(y, y)))
    size = max(1.0, max(float(np.abs(band).max(initial=0)) for band in flat(coeffs)))
    # Lifting steps of a wavelet and of its dual agree to about eleven digits.
    digits = 1e-6 if dtype == "f4" else 1e-11 if family == "lwt" else 1e-13
    tolerance = digits * scale * size
    back = undula.adjoint(forward, y, wavelet, mode, axes=axes, shape=shape, backend=backend)
    assert back.shape == shape
    assert back.dtype == x.dtype
    assert abs(_product(coeffs, y) - np.vdot(x, back)) <= tolerance
    samples = _inverse(family, y, wavelet, mode, axes, shape, backend)
    spread = undula.adjoint(inverse, x, wavelet, mode, level, axes, backend=backend)
    assert [band.shape for band in flat(spread)] == [band.shape for band in flat(y)]
    assert abs(np.vdot(samples, x) - _product(y, spread)) <= tolerance


@pytest.mark.filterwarnings("ignore:Level value")
@pytest.mark.parametrize("number", range(9))
def test_inner_products(number: int) -> None:
    for case in CASES[number::9]:
        _check(*case, "cpu")


@pytest.mark.filterwarnings("ignore:Level value")
@pytest.mark.parametrize("array", [((1, 14), (0,), 2), ((4, 1, 3), (1,), 1), ((5, 1), (0, 1), 2)])
@pytest.mark.parametrize("mode", undula.LWT_MODES)
def test_bands_without_coefficients(array: tuple[Any, Any, int], mode: str) -> None:
    """A line of one sample has no details."""
    _check("lwt", "sym4", mode, array, "f8", "cpu")


@pytest.mark.filterwarnings("ignore:Level value")
def test_inner_products_in_the_reference() -> None:
    for family, wavelet, mode, array, dtype in CASES[::12]:
        if np.prod(array[0]) < 3000:
            _check(family, wavelet, mode, array, dtype, "reference")


@pytest.mark.filterwarnings("ignore:Level value")
def test_inner_products_on_devices(target: str) -> None:
    for family, wavelet, mode, array, dtype in CASES[:: 3 if target == "cuda" else 40]:
        if wavelet != "dmey":
            _check(family, wavelet, mode, array, dtype, target)


@pytest.mark.parametrize("wavelet", ["db3", "rbio2.2"])  # whose duals are filtered, and lifted
@pytest.mark.parametrize("modes", [("zero", "constant"), ("reflect", "zero"), ("smooth", "periodic")])
@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_lines_are_folded(wavelet: str, modes: tuple[str, str], dtype: str) -> None:
    shape = (2, 41, 70)
    y = _like(undula.wavedecn(noise(*shape, dtype=dtype), wavelet, modes, 2, axes=(1, 2)), 1)
    results = [
        undula.adjoint("wavedecn", y, wavelet, modes, axes=(1, 2), shape=shape, backend=backend)
        for backend in ("cpu", "reference")
    ]
    precision = 1e-6 if dtype == "f4" else 1e-14
    np.testing.assert_allclose(*results, rtol=0, atol=precision * np.abs(results[1]).max())


@pytest.mark.filterwarnings("ignore:Level value")
@parametrize_some(
    "wavelet",
    [name for name in undula.wavelist(kind="discrete") if name not in WAVELETS],
    ["db2", "db7", "db38", "sym13", "coif5", "bior1.3", "bior3.3", "bior6.8", "rbio1.5", "rbio4.4"],
)
def test_inner_products_of_every_wavelet(wavelet: str) -> None:
    for mode in undula.MODES:
        _check("dwt", wavelet, mode, ((2, 41, 70), (1, 2), 1), "f8", "cpu")


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(undula.MODES),
    st.integers(2, 60),
    st.integers(2, 60),
    st.integers(1, 3),
    st.sampled_from(["haar", "db3", "bior2.2", "sym5"]),
)
@pytest.mark.filterwarnings("ignore:Level value")
def test_random_images(mode: str, rows: int, columns: int, level: int, wavelet: str) -> None:
    _check("dwt", wavelet, mode, ((rows, columns), (0, 1), level), "f8", "cpu")


@pytest.mark.filterwarnings("ignore:Level value")
@pytest.mark.parametrize("mode", undula.MODES)
@pytest.mark.parametrize("length", [4, 17, 64])
def test_matrices_of_rational_wavelets_are_exact_transposes(mode: str, length: int) -> None:
    plan = undula.Plan(length, RATIONAL, level=1, mode=mode)
    operator = WaveletOperator(plan)
    matrix, transpose = operator @ np.eye(length), operator.T @ np.eye(operator.shape[0])
    assert np.array_equal(matrix.T, transpose)
    inverse = operator.inverse()
    assert np.array_equal((inverse @ np.eye(operator.shape[0])).T, inverse.T @ np.eye(length))


@pytest.mark.filterwarnings("ignore:Level value")
@pytest.mark.parametrize(("shape", "axes"), [((30,), (0,)), ((12, 14), (0, 1)), ((3, 20), (1,))])
def test_plans_and_functions_agree(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    for transform, mode in (("dwt", "smooth"), ("swt", "periodization")):
        plan = undula.Plan(shape, "bior2.4", level=2, mode=mode, axes=axes, transform=transform)
        x = noise(*shape)
        coeffs = plan.forward(x)
        name, along = ("", axes[0]) if len(axes) == 1 else ("2", axes)
        forward, back = ("wavedec", "waverec") if transform == "dwt" else ("swt", "iswt")
        mine = plan.adjoint.inverse(coeffs)
        theirs = undula.adjoint(forward + name, coeffs, "bior2.4", mode, axes=along, shape=shape)
        assert np.array_equal(mine, theirs)
        spread = undula.adjoint(back + name, x, "bior2.4", mode, 2, along)
        assert all(map(np.array_equal, flat(plan.adjoint.forward(x)), flat(spread)))
        assert plan.adjoint.adjoint.spec == plan.spec


def test_adjoint_of_modwt() -> None:
    x, length = noise(50), 50
    coeffs = undula.modwt(x, "sym4", 2)
    y = [noise(length, seed=k + 1) for k in range(len(coeffs))]
    back = undula.adjoint("modwt", y, "sym4")
    assert np.isclose(_product(coeffs, y), x @ back)
    assert np.isclose(undula.imodwt(y, "sym4") @ x, _product(y, undula.adjoint("imodwt", x, "sym4", level=2)))


def test_missing_bands_are_zero() -> None:
    image = noise(20, 21)
    low, details = undula.wavedec2(image, "db3", level=1)
    zeros = np.zeros_like(low)
    sparse = undula.adjoint("wavedec2", [low, (None, details[1], None)], "db3", shape=(20, 21))
    dense = undula.adjoint(undula.wavedec2, [low, (zeros, details[1], zeros)], "db3", shape=(20, 21))
    assert np.array_equal(sparse, dense)


def test_operators_solve_least_squares() -> None:
    plan = undula.Plan((36, 38), "bior4.4", level=2, mode="reflect")
    operator, x = WaveletOperator(plan), noise(36 * 38)
    solved = scipy.sparse.linalg.lsqr(
        scipy.sparse.linalg.aslinearoperator(operator), operator @ x, atol=1e-13, btol=1e-13
    )
    assert np.allclose(solved[0], x, atol=1e-8)


def test_operators_multiply_all_kinds_of_vectors() -> None:
    plan = undula.Plan(17, "db2", level=2, mode="smooth")
    operator = WaveletOperator(plan)
    matrix, y = operator @ np.eye(17), noise(17, 3)
    z = y[:, 0] + 1j * y[:, 1]
    assert np.allclose(operator @ z, matrix @ z)
    assert np.allclose(operator @ y, matrix @ y)
    w = noise(operator.shape[0])
    assert np.allclose(w @ operator, w @ matrix)
    assert np.allclose(np.stack([w, 1j * w]) @ operator, np.stack([w, 1j * w]) @ matrix)
    assert np.allclose(operator.rmatvec(1j * w), matrix.T @ (1j * w))
    assert (operator @ np.empty((17, 0))).shape == (operator.shape[0], 0)
    for wrong in (3.0, np.ones((17, 2, 2)), np.ones((16, 2)), np.ones(16)):
        with pytest.raises(undula.ArgumentError, match="takes vectors of 17 numbers"):
            operator @ wrong
    with pytest.raises(undula.ArgumentTypeError, match="Dask array"):
        operator @ dask.array.ones(17)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(undula.UnknownNameError, match="wavedec2"):
        undula.adjoint("wavedec_2", [np.ones(4)], "haar")
    with pytest.raises(undula.ArgumentTypeError, match="LWT of integers rounds"):
        undula.adjoint("lwt", undula.lwt(np.arange(9), "cdf53", 1), "cdf53")
    chunks = dask.array.ones(8, chunks=3)
    with pytest.raises(undula.ArgumentTypeError, match="Dask"):
        undula.adjoint("wavedec", [chunks, chunks], "db2")
    with pytest.raises(undula.ArgumentTypeError, match="Dask"):
        undula.adjoint("waverec", chunks, "haar", level=1)
    with pytest.raises(undula.ArgumentError, match="only None"):
        undula.adjoint("wavedec", [None, None], "haar")
    with pytest.raises(undula.ArgumentError, match="nested as wavedec2"):
        undula.adjoint("wavedec2", [np.ones((4, 4)), np.ones((4, 4))], "haar")
    with pytest.raises(undula.ArgumentError, match="scheme"):
        _ = undula.Plan((8, 8), "cdf97", backend="reference", scheme="ns-lifting").adjoint
    with pytest.raises(undula.ArgumentError, match="vectors of 64"):
        WaveletOperator(undula.Plan((8, 8), "haar")).matvec(np.ones(63))
    with pytest.raises(undula.ArgumentError, match="Plan"):
        WaveletOperator("haar")  # type: ignore[arg-type]
