"""Values that JAX traces: transforms equal those of arrays, and gradients equal adjoints."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import undula
from cases import THOROUGH

jax = pytest.importorskip("jax", reason="JAX is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:Level value")
IMAGES = [(17, 12), (33, 40), (2, 9, 10)]


@pytest.fixture(autouse=True)
def double_precision() -> Any:
    with jax.enable_x64(True):
        yield


def noise(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape)


def assert_close(results: Any, expected: Any) -> None:
    leaves = jax.tree.leaves
    for result, value in zip(leaves(results), leaves(expected), strict=True):
        assert isinstance(result, jax.Array)
        np.testing.assert_allclose(np.asarray(result), value, atol=1e-11)


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(len(undula.MODES)))
def test_images_in_all_modes(number: int) -> None:
    mode, shape = undula.MODES[number], IMAGES[number % 3]
    wavelet = ("haar", "db3", "bior4.4", "sym4")[number % 4]
    level = 2 if THOROUGH or number % 3 == 0 else 1

    @jax.jit
    def traced(x: Any) -> Any:
        coeffs, transpose = jax.vjp(lambda x: undula.wavedec2(x, wavelet, mode, level), x)
        return coeffs, undula.waverec2(coeffs, wavelet, mode, shape=shape), transpose(coeffs)[0]

    x = noise(*shape)
    coeffs = undula.wavedec2(x, wavelet, mode, level)
    assert_close(traced(x), (coeffs, x, undula.adjoint("wavedec2", coeffs, wavelet, mode, shape=shape)))


@pytest.mark.parametrize("mode", undula.LWT_MODES)
def test_liftings(mode: str) -> None:
    wavelet = "db2" if mode == "zero" else "cdf97"

    @jax.jit
    def traced(x: Any) -> Any:
        coeffs = undula.lwt2(x, wavelet, 2, mode)
        return coeffs, undula.ilwt2(coeffs, wavelet, mode)

    x = noise(9, 14)
    assert_close(traced(x), (undula.lwt2(x, wavelet, 2, mode), x))


def test_undecimated_transforms() -> None:
    x = noise(16, 24)
    coeffs = undula.swt2(x, "db2", 2)
    assert_close(jax.jit(lambda x: undula.swt2(x, "db2", 2))(x), coeffs)
    assert_close([jax.jit(lambda c: undula.iswt2(c, "db2"))(jax.tree.map(jax.numpy.asarray, coeffs))], [x])
    assert_close(jax.jit(lambda x: undula.modwt(x, "db2", 2))(x), undula.modwt(x, "db2", 2))


def test_batches_equal_loops() -> None:
    x = noise(5, 30)
    traced = jax.vmap(lambda line: undula.wavedec(line, "db2", level=2))(x)
    assert_close(traced, undula.wavedec(x, "db2", level=2))


def test_derivatives_of_both_modes_and_orders() -> None:
    from jax.test_util import check_grads

    x = jax.numpy.asarray(noise(12))
    check_grads(jax.jit(lambda x: undula.dwt(x, "db2", "smooth")[0] ** 2), (x,), order=2)


@pytest.fixture
def on_cpu() -> Iterator[None]:
    """Compile for the CPU, also where JAX has a GPU."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.mark.parametrize("samples", [0, 1 << 40], ids=["kernels", "expressions"])
@pytest.mark.parametrize(("wavelet", "mode"), [("db2", "symmetric"), ("bior2.2", "periodization")])
@pytest.mark.usefixtures("on_cpu")
def test_operators(monkeypatch: pytest.MonkeyPatch, samples: int, wavelet: str, mode: str) -> None:
    """By kernels and by expressions, the transformations of JAX give the same."""
    from jax.test_util import check_grads

    from undula.engines.tensors import jax_operators

    monkeypatch.setattr(jax_operators, "MIN_KERNEL_SAMPLES", samples)
    jax.clear_caches()
    x, batch = noise(10, 12), noise(3, 10, 12)
    text = str(jax.jit(lambda x: undula.wavedec2(x, wavelet, mode, 1)).lower(x).as_text())
    assert ("callback" in text) == (samples == 0)
    # JAX compiles every operation of an expression by itself, and for every derivative.
    level, checked = (2, x) if THOROUGH or samples == 0 else (1, x[0])

    def energy(x: Any) -> Any:
        low, *details = undula.wavedecn(x, wavelet, mode, level)
        back = undula.waverecn([2 * low, *details], wavelet, mode, shape=x.shape)
        return (back**3).sum()

    check_grads(jax.jit(energy), (checked,), order=2)
    expected = np.stack([jax.grad(energy)(image) for image in batch])
    assert_close(jax.jit(jax.vmap(jax.grad(energy)))(batch), expected)
    assert_close(jax.jit(jax.grad(lambda x: jax.vmap(energy)(x).sum()))(batch), expected)
    energies = np.array([energy(image) for image in batch])
    assert_close(jax.vmap(energy, in_axes=1)(batch.swapaxes(0, 1)), energies)
    jax.clear_caches()


def test_missing_bands_and_other_dtypes() -> None:
    low = noise(6)
    traced = jax.jit(lambda low: undula.idwt(low, None, "db2"))(low)
    assert_close([traced], [undula.idwt(low, None, "db2")])
    integers = jax.jit(lambda x: undula.dwt(x, "haar")[0])(np.arange(8))
    assert_close([integers], [undula.dwt(np.arange(8), "haar")[0]])
    with pytest.raises(undula.ArgumentTypeError, match="LWT of integers"):
        jax.jit(lambda x: undula.lwt(x, "cdf53")[0])(np.arange(8))


def test_errors_say_what_to_do() -> None:
    with pytest.raises(undula.ArgumentTypeError, match=r"out .*outside of jit"):
        jax.jit(lambda x: undula.dwt(x, "haar", out=(np.ones(4), np.ones(4)))[0])(noise(8))
    with pytest.raises(undula.ArgumentTypeError, match=r"jax\.vjp"):
        jax.jit(lambda x: undula.adjoint("waverec", x, "haar", level=1)[0])(noise(8))
