"""PyTorch differentiates, batches and compiles transforms, checked by differences, loops and eager calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undula
from cases import THOROUGH
from undula.engines.tensors.encoding import decoded, encoded
from undula.lowering.spec import transform_spec

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:Level value", "ignore:norm=True", "ignore:`torch.jit", "ignore:.*is deprecated"
)
Transform = Callable[[Any], Any]


def flat(nested: Any) -> list[Any]:
    if isinstance(nested, dict):
        nested = list(nested.values())
    return [t for part in nested for t in flat(part)] if isinstance(nested, (list, tuple)) else [nested]


def round_trip(name: str, wavelet: Any, mode: Any = None) -> tuple[Transform, Transform]:
    """A transform and its inverse, which continue after each other."""
    dwt: dict[str, tuple[Transform, Transform]] = {
        "dwt": (
            lambda x: undula.dwt(x, wavelet, mode, axis=0),
            lambda c: undula.idwt(*c, wavelet, mode, axis=0),
        ),
        "dwt2": (lambda x: undula.dwt2(x, wavelet, mode), lambda c: undula.idwt2(c, wavelet, mode)),
        "dwtn": (lambda x: undula.dwtn(x, wavelet, mode), lambda c: undula.idwtn(c, wavelet, mode)),
        "wavedec": (
            lambda x: undula.wavedec(x, wavelet, mode, 2),
            lambda c: undula.waverec(c, wavelet, mode),
        ),
        "wavedec2": (
            lambda x: undula.wavedec2(x, wavelet, mode, 2),
            lambda c: undula.waverec2(c, wavelet, mode),
        ),
        "wavedecn": (
            lambda x: undula.wavedecn(x, wavelet, mode, 1),
            lambda c: undula.waverecn(c, wavelet, mode),
        ),
        "lwt2": (lambda x: undula.lwt2(x, wavelet, 2, mode), lambda c: undula.ilwt2(c, wavelet, mode)),
        "swt": (
            lambda x: undula.swt(x, wavelet, 1, mode=mode),
            lambda c: undula.iswt(c, wavelet, mode=mode),
        ),
        "swt2": (
            lambda x: undula.swt2(x, wavelet, 2, trim_approx=True, norm=True, mode=mode),
            lambda c: undula.iswt2(c, wavelet, norm=True, mode=mode),
        ),
        "modwt": (
            lambda x: undula.modwt(x, wavelet, 2, boundary="reflection"),
            lambda c: undula.imodwt(c, wavelet, boundary="reflection"),
        ),
    }
    return dwt[name]


SHAPES = {"dwt": (7, 2), "wavedec": (2, 9), "wavedecn": (4, 5, 6), "dwtn": (4, 5, 6), "swt": (2, 8)}
SOME = [
    ("dwt", "db2", "symmetric"),
    ("dwt2", "bior2.2", "smooth"),
    ("wavedec", "db3", "antireflect"),
    ("wavedec2", "cdf97", "periodization"),
    ("wavedecn", "haar", "reflect"),
    ("lwt2", "cdf53", "symmetric"),
    ("swt", "db2", None),
    ("swt2", "db2", "constant"),
    ("modwt", "sym4", None),
]
ALL = [
    (name, wavelet, mode)
    for name in ("dwt", "dwt2", "dwtn", "wavedec", "wavedec2", "wavedecn", "lwt2", "swt", "swt2", "modwt")
    for wavelet in ("haar", "db3", "bior2.2", "cdf97", "rbio1.3", "coif1")
    for mode in (
        undula.LWT_MODES if name == "lwt2" else (None,) if name in ("swt", "modwt") else undula.MODES
    )
]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "wavelet", "mode"), ALL if THOROUGH else SOME)
def test_derivatives_are_those_of_differences(name: str, wavelet: str, mode: Any) -> None:
    forward, inverse = round_trip(name, wavelet, mode)
    rng = torch.Generator().manual_seed(1)
    x = torch.randn(SHAPES.get(name, (6, 7)), dtype=torch.float64, generator=rng).requires_grad_()
    fast = {"fast_mode": not THOROUGH}

    def bands(x: Any) -> tuple[Any, ...]:
        return tuple(flat(forward(x)))

    def weighted(x: Any) -> Any:  # Bands get gradients that are not those of the forward transform.
        return inverse(_scaled(forward(x)))

    assert gradcheck(bands, x, check_forward_ad=True, **fast)
    assert gradcheck(weighted, x, check_forward_ad=True, **fast)
    assert gradgradcheck(bands, x, **fast)
    assert gradgradcheck(weighted, x, **fast)


def _scaled(coeffs: Any) -> Any:
    """Coefficients with another factor for each place."""
    if isinstance(coeffs, dict):
        return {key: _scaled(part) for key, part in coeffs.items()}
    if isinstance(coeffs, (list, tuple)):
        return type(coeffs)(_scaled(part) for part in coeffs)
    return coeffs * torch.linspace(0.5, 2, coeffs.numel(), dtype=coeffs.dtype).reshape(coeffs.shape)


@pytest.mark.parametrize("shape", [(6, 7), (64, 48)])
def test_gradients_of_some_bands_of_an_lwt(shape: tuple[int, int]) -> None:
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    low, (detail, *_) = undula.lwt2(x, "cdf53", 1)
    weights = torch.randn_like(low)
    (gradient,) = torch.autograd.grad((low * weights).sum(), x, retain_graph=True)
    zero = 0 * detail.sum()  # Now this band has a gradient, too.
    (expected,) = torch.autograd.grad((low * weights).sum() + zero, x)
    torch.testing.assert_close(gradient, expected)


def test_results_are_those_without_gradients() -> None:
    for name, wavelet, mode in SOME:
        forward, inverse = round_trip(name, wavelet, mode)
        x = torch.randn(SHAPES.get(name, (6, 7)), dtype=torch.float64)
        expected = flat(forward(x.numpy()))
        got = flat(forward(x.clone().requires_grad_()))
        for one, two in zip(got, expected, strict=True):
            np.testing.assert_allclose(one.detach(), two, atol=1e-12)
        back = inverse(forward(x.clone().requires_grad_())).detach()
        np.testing.assert_allclose(back, inverse(forward(x.numpy())), atol=1e-12)


def test_missing_bands_and_odd_lengths() -> None:
    x = torch.randn(13, 11, dtype=torch.float64, requires_grad=True)

    def partial(x: Any) -> Any:
        low, (_, v, _), fine = undula.wavedec2(x, "db2", level=2)
        return undula.waverec2([low, (None, v, None), fine], "db2", shape=(13, 11))

    def approximation(x: Any) -> Any:
        return undula.waverec2([undula.wavedec2(x, "db2", level=2)[0], None, None], "db2")

    def mixed(x: Any) -> Any:  # an array of NumPy and a tensor without gradient among the bands
        return undula.idwt2((np.ones((8, 7)), (x[:8, :7], torch.ones(8, 7), None)), "db2")

    for function in (partial, approximation, mixed):
        assert gradcheck(function, x, fast_mode=True)


def test_complex_numbers() -> None:
    x = torch.randn(9, dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda x: tuple(undula.wavedec(x, "db2", level=2)), x, check_forward_ad=True)
    assert gradgradcheck(lambda x: undula.waverec(undula.wavedec(x.conj(), "db2", level=2), "db2"), x)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("float16", "float32"), ("bfloat16", "bfloat16"), ("float32", "float32"), ("complex64", "complex64")],
)
def test_dtypes(dtype: str, result: str) -> None:
    x = torch.randn(8, 8).to(getattr(torch, dtype)).requires_grad_()
    coeffs = undula.wavedec2(x, "haar", level=2)
    assert {band.dtype for band in flat(coeffs)} == {getattr(torch, result)}
    samples = undula.waverec2(coeffs, "haar")
    assert samples.dtype == getattr(torch, result)
    (gradient,) = torch.autograd.grad(samples.abs().sum(), x)
    assert gradient.dtype == x.dtype


def test_autocast() -> None:
    x = torch.randn(2, 8, 8, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = undula.wavedec2(torch.nn.functional.linear(x, torch.eye(8)), "haar", level=1)[0]
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("in_dim", [0, 1, 2])
def test_batches_are_loops(in_dim: int) -> None:
    batch = torch.randn(3, 6, 8, dtype=torch.float64).movedim(0, in_dim)

    def loss(x: Any, weight: Any) -> Any:
        low, details = undula.wavedec2(x, "db2", level=1)
        return (undula.waverec2([low * weight, details], "db2") ** 3).sum()

    weight = torch.randn(4, 5, dtype=torch.float64)
    for function in (loss, torch.func.grad(loss), torch.func.hessian(loss)):
        together = torch.func.vmap(function, in_dims=(in_dim, None))(batch, weight)
        each = torch.stack([function(x, weight) for x in batch.unbind(in_dim)])
        torch.testing.assert_close(together, each)
    x = batch.select(in_dim, 0)
    torch.testing.assert_close(torch.func.jacfwd(loss)(x, weight), torch.func.jacrev(loss)(x, weight))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_batches_of_autograd(strategy: str) -> None:
    def energies(x: Any) -> Any:
        low, (high, _, diagonal), _ = undula.wavedec2(x, "db2", "symmetric", level=2)
        return undula.waverec2([low**2, (high, None, diagonal), None], "db2", "symmetric")

    x = torch.randn(7, 8, dtype=torch.float64, requires_grad=True)
    expected = torch.autograd.functional.jacobian(energies, x)
    jacobian = torch.autograd.functional.jacobian(energies, x, vectorize=True, strategy=strategy)
    torch.testing.assert_close(jacobian, expected)

    def loss(x: Any) -> Any:
        return energies(x).sum()

    hessian = torch.autograd.functional.hessian(loss, x, vectorize=True, outer_jacobian_strategy=strategy)
    torch.testing.assert_close(hessian, torch.autograd.functional.hessian(loss, x))


def test_operators_are_registered_as_they_should() -> None:
    from undula.engines.tensors.operators import decompose_operator, recompose_operator

    text = encoded(transform_spec(3, ("db2", "haar"), ("zero", "periodization"), (2, 0)))
    for x in (torch.randn(5, 2, 8), torch.randn(8, 5, 2).permute(1, 2, 0).double().requires_grad_()):
        bands = [band.detach().requires_grad_(x.requires_grad) for band in decompose_operator(x, text, 2)]
        torch.library.opcheck(decompose_operator, (x, text, 2))
        bands[1] = None
        torch.library.opcheck(recompose_operator, (bands, text, (5, 2, 8)))


def test_transforms_are_encoded() -> None:
    exact = undula.Wavelet("own", undula.Wavelet("cdf53").bank)
    floats = undula.Wavelet("own", undula.Wavelet("db3").filter_bank)
    spec = transform_spec(3, (exact, floats, "haar"), "zero", (0, 2, 1))
    for each in (spec, spec.adjoint()):
        assert decoded(encoded(each)) == each


OWN = undula.Wavelet("own", undula.Wavelet("db2").filter_bank)


def _all(x: Any) -> Any:
    """Many transforms in one graph, since each graph takes seconds to compile."""
    x = undula.waverec2(undula.wavedec2(x, "db2", level=2), "db2")
    x = undula.iswt2(undula.swt2(x, "haar", 1), "haar")
    x = undula.ilwt2(undula.lwt2(x, "cdf97"), "cdf97")
    low, details = undula.dwt(x, OWN)
    x = undula.idwt(undula.threshold(low, 0.1), None, "db2") + undula.idwt(None, details, "db2")
    bands = undula.dwtn(x, "haar", axes=(0, 2))
    x = undula.idwtn({key: band for key, band in bands.items() if key != "dd"}, "haar", axes=(0, 2))
    x = undula.imodwt(undula.modwt(x, "haar", 1), "haar")
    return undula.waverec2([undula.dwt2(x, "haar")[0], (None, None, None)], "haar")


def test_compiled_programs_are_those_of_python() -> None:
    x = torch.randn(2, 16, 16, requires_grad=True)
    compiled = torch.compile(_all, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), _all(x))
    results = [torch.autograd.grad((f(x) ** 2).sum(), x)[0] for f in (compiled, _all)]
    torch.testing.assert_close(*results)


def test_plans() -> None:
    plan = undula.Plan((5, 6), "db2", level=1, square=True)
    x = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: tuple(flat(plan.forward(x))), x)
    assert gradcheck(lambda x: plan.inverse(_scaled(plan.forward(x))), x)
    with pytest.raises(undula.ArgumentError, match="bfloat16"):
        plan.forward(x.detach().bfloat16())


def test_integers_are_not_lifted_by_operators() -> None:
    with pytest.raises(undula.ArgumentTypeError, match="LWT of integers"):
        torch.func.vmap(lambda x: undula.lwt(x, "cdf53")[0])(torch.ones(2, 8, dtype=torch.int32))


def test_sparse_tensors_are_refused() -> None:
    sparse = torch.eye(8).to_sparse()
    for tensor in (sparse, sparse.clone().requires_grad_()):
        with pytest.raises(undula.ArgumentTypeError, match="to_dense"):
            undula.dwt2(tensor, "haar")


def test_tensors_in_chunks_of_dask_are_refused() -> None:
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    chunks = da.ones((8, 8), chunks=4).map_blocks(torch.from_numpy)
    with pytest.raises(undula.ArgumentTypeError, match=r"NumPy or CuPy .* got dtype torch\.float64"):
        undula.dwt2(chunks, "haar")


def test_nesting_does_not_depend_on_gradients() -> None:
    plain = torch.randn(32)
    for x in (plain, plain.clone().requires_grad_()):
        assert type(undula.wavedec(x, "db2", level=2)) is list
        assert type(undula.dwt(x, "db2")) is tuple


@pytest.mark.parametrize("backend", ["cpu", "reference", "opencl"])
def test_other_engines(backend: str) -> None:
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    expected_bands = flat(undula.wavedec2(x, "coif1", "zero", level=2))
    for band, expected_band in zip(
        flat(undula.wavedec2(x, "coif1", "zero", level=2, backend=backend)), expected_bands, strict=True
    ):
        (gradient,) = torch.autograd.grad((band**2).sum(), x)
        (expected,) = torch.autograd.grad((expected_band**2).sum(), x, retain_graph=True)
        torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize(
    "method",
    [undula.Decay(0.7), undula.Polynomial(2), undula.Taper(4, 0.2), undula.BoundaryFilters()],
    ids=str,
)
def test_boundary_methods_have_gradients(method: Any) -> None:
    x = torch.arange(17, dtype=torch.float64).sin().requires_grad_()
    coeffs = undula.wavedec(x, "db2", method, 2)
    assert torch.autograd.gradcheck(lambda x: tuple(undula.wavedec(x, "db2", method, 2)), x)
    (gradient,) = torch.autograd.grad(coeffs, x, coeffs)
    adjoint = undula.adjoint("wavedec", [band.detach() for band in coeffs], "db2", method, shape=(17,))
    assert isinstance(adjoint, torch.Tensor)
    torch.testing.assert_close(adjoint, gradient)
    low, *details = (band.detach().requires_grad_() for band in coeffs)
    # The gradient of one band alone: the others are plain tensors.
    samples = undula.waverec([low, *(band.detach() for band in details)], "db2", method, shape=17)
    (gradient,) = torch.autograd.grad(samples, low, samples)
    torch.testing.assert_close(gradient, undula.adjoint("waverec", samples, "db2", method, 2)[0])
