"""No gradient is lost without a word: transforms have gradients, and other functions refuse to lose them.

PyTorch and JAX are not among the packages that tests need: without them, what needs them is skipped.
"""

import inspect
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import undula
from cases import THOROUGH
from undula import color, measures
from undula.arrays import library_of
from undula.filters import Blur, Pipeline

pytestmark = pytest.mark.filterwarnings("ignore:Level value", "ignore:the last axis has")


def _stream(x: Any) -> Any:
    stream = undula.ForwardStream(8, "haar", dtype="f4")
    return [*stream.push(x), *stream.finish()]


def _stream_back(x: Any) -> Any:
    stream = undula.InverseStream(8, "haar", dtype="f4")
    return stream.push(undula.Rows(1, 0, dict.fromkeys(("aa", "ad", "da", "dd"), x[:, :4])))


def _plan(**options: Any) -> undula.Plan:
    return undula.Plan((8, 8), "haar", level=1, dtype="f4", **options)


def _separable(x: Any) -> Any:
    result = undula.fswavedecn(np.ones((8, 8), "f4"), "haar", levels=1)
    result[1, 1] = x[:4, :4]
    result.coeffs = x
    return undula.fswaverecn(result)


ROWS = np.ones((8, 8), "f4")
DETAILS = dict.fromkeys(("ad", "da", "dd"), ROWS)
# What each public function does with an image of 8 × 8, in every place where it takes an array.
CALLS: dict[str, Callable[[Any], Any]] = {
    "Pipeline": lambda x: Pipeline("db2", 1, [Blur(1.0)])(x),
    "Pipeline.frames": lambda x: list(Pipeline("db2", 1, [Blur(1.0)]).frames([x], workers=1)),
    "Pipeline.views": lambda x: Pipeline("db2", 1, [Blur(1.0)]).views(x),
    "Pipeline, sigma": lambda x: Pipeline("db2", 1, ["shrink"])(ROWS, sigma=x[0, :1]),
    "Plan.forward": lambda x: _plan().forward(x),
    "Plan.forward, reference": lambda x: _plan(backend="reference").forward(x),
    "Plan.forward, opencl": lambda x: _plan(backend="opencl").forward(x),
    "Plan.frames": lambda x: list(_plan().frames([x])),
    "Plan.inverse": lambda x: _plan().inverse([x[:4, :4], (None, x[:4, :4], None)]),
    "Plan.inverse, limits": lambda x: _plan().inverse(
        _plan().forward(ROWS), rule="soft", limits=x[:1, :6].reshape(1, 2, 3)
    ),
    "ForwardStream": _stream,
    "InverseStream": _stream_back,
    "Wavelet": lambda x: undula.Wavelet("own", filter_bank=[x[0, :2], x[0, :2], x[0, :2], x[0, :2]]),
    "array_to_coeffs": lambda x: undula.array_to_coeffs(x, undula.coeffs_to_array([ROWS])[1]),
    "calibrate": lambda x: undula.calibrate(x, sigma=1.0),
    "coeffs_to_array": lambda x: undula.coeffs_to_array([x, (x, x, x)]),
    "cwt": lambda x: undula.cwt(x, [1.0], "mexh"),
    "cwt, scales": lambda x: undula.cwt(ROWS, x[0], "mexh"),
    "denoise": undula.denoise,
    "denoise, a map": lambda x: undula.denoise(ROWS, sigma=x),
    "denoise, over time": lambda x: undula.denoise(x.reshape(4, 4, 4), over_time=2),
    "denoise_frames": lambda x: list(undula.denoise_frames([x, x], 2)),
    "denoise_wavelet": undula.denoise_wavelet,
    "denoise_wavelet, sigma": lambda x: undula.denoise_wavelet(ROWS, sigma=x[0, 0]),
    "despeckle": undula.despeckle,
    "downcoef": lambda x: undula.downcoef("a", x[0], "haar"),
    "dwt": lambda x: undula.dwt(x, "haar"),
    "dwt, a list": lambda x: undula.dwt([x[0, k] for k in range(4)], "haar"),
    "dwt2": lambda x: undula.dwt2(x, "haar"),
    "dwtn": lambda x: undula.dwtn(x, "haar"),
    "enhance": undula.enhance,
    "estimate_sigma": undula.estimate_sigma,
    "fswavedecn": lambda x: undula.fswavedecn(x, "haar"),
    "fswaverecn": _separable,
    "icwt": lambda x: undula.icwt(x[:1], [1.0], "mexh"),
    "idwt": lambda x: undula.idwt(x, ROWS, "haar"),
    "idwt, details": lambda x: undula.idwt(None, x, "haar"),
    "idwt2": lambda x: undula.idwt2((ROWS, (x, None, None)), "haar"),
    "idwtn": lambda x: undula.idwtn({"aa": ROWS, "dd": x}, "haar"),
    "ilwt": lambda x: undula.ilwt([ROWS, x], "cdf53"),
    "ilwt2": lambda x: undula.ilwt2([ROWS, (ROWS, x, ROWS)], "cdf53"),
    "ilwtn": lambda x: undula.ilwtn([x, DETAILS], "cdf53"),
    "lwt": lambda x: undula.lwt(x, "cdf53"),
    "lwt2": lambda x: undula.lwt2(x, "cdf53"),
    "lwtn": lambda x: undula.lwtn(x, "cdf53"),
    "orthogonal_filter_bank": lambda x: undula.orthogonal_filter_bank(x[0]),
    "pad": lambda x: undula.pad(x, 2, "symmetric"),
    "qmf": lambda x: undula.qmf(x[0]),
    "ravel_coeffs": lambda x: undula.ravel_coeffs([x]),
    "sharpen": undula.sharpen,
    "threshold": lambda x: undula.threshold(x, 1.0),
    "threshold, value": lambda x: undula.threshold(ROWS, x + 0),
    "threshold, substitute": lambda x: undula.threshold(ROWS, 1.0, "hard", x[0, 0]),
    "threshold_firm": lambda x: undula.threshold_firm(x, 1.0, 2.0),
    "threshold_firm, value": lambda x: undula.threshold_firm(ROWS, x, 2.0),
    "unravel_coeffs": lambda x: undula.unravel_coeffs(x.reshape(-1), *undula.ravel_coeffs([ROWS])[1:]),
    "swt": lambda x: undula.swt(x, "haar"),
    "swt2": lambda x: undula.swt2(x, "haar", 1),
    "swtn": lambda x: undula.swtn(x, "haar", 1),
    "iswt": lambda x: undula.iswt([(x, ROWS)], "haar"),
    "iswt2": lambda x: undula.iswt2([(ROWS, (ROWS, x, ROWS))], "haar"),
    "iswtn": lambda x: undula.iswtn([{"aa": ROWS, **DETAILS, "da": x}], "haar"),
    "best_basis": lambda x: undula.best_basis(undula.WaveletPacket(x, "haar", maxlevel=1)),
    "adjoint": lambda x: undula.adjoint("waverec2", x, "db2", level=1),
    "adjoint, of wavedec2": lambda x: undula.adjoint("wavedec2", [x, (x, None, x)], "haar"),
    "dtcwt": lambda x: undula.dtcwt(x, level=1),
    "dtcwt2": lambda x: undula.dtcwt2(x, level=1),
    "dtcwtn": lambda x: undula.dtcwtn(x, level=1),
    "idtcwt": lambda x: undula.idtcwt([x, None]),
    "idtcwt2": lambda x: undula.idtcwt2([x, None]),
    "idtcwtn": lambda x: undula.idtcwtn([x, None]),
    "estimate_poisson": lambda x: undula.estimate_poisson(x),
    "estimate_spectrum": lambda x: undula.estimate_spectrum(x),
    "modwt": lambda x: undula.modwt(x, "haar", 1),
    "imodwt": lambda x: undula.imodwt([x, ROWS], "haar"),
    "modwt_mra": lambda x: undula.modwt_mra(x, "haar", 1),
    "mra": lambda x: undula.mra(x, "haar", 1),
    "mra, dwt": lambda x: undula.mra(x, "haar", 1, transform="dwt"),
    "mra2": lambda x: undula.mra2(x, "haar", 1),
    "mran": lambda x: undula.mran(x, "haar", 1),
    "dwt, decay": lambda x: undula.dwt(x, "haar", undula.Decay()),
    "upcoef": lambda x: undula.upcoef("a", x[0], "haar"),
    "wavedec": lambda x: undula.wavedec(x, "haar"),
    "wavedec2": lambda x: undula.wavedec2(x, "haar"),
    "wavedec2, opencl": lambda x: undula.wavedec2(x, "haar", backend="opencl"),
    "wavedecn": lambda x: undula.wavedecn(x, "haar"),
    "waverec": lambda x: undula.waverec([ROWS, x], "haar"),
    "waverec2": lambda x: undula.waverec2([x, (ROWS, ROWS, ROWS)], "haar"),
    "waverecn": lambda x: undula.waverecn([ROWS, {**DETAILS, "da": x}], "haar"),
    "measures.compare_bands": lambda x: measures.compare_bands(x, ROWS, level=1),
    "measures.difference": lambda x: measures.difference(ROWS, x),
    "measures.psnr": lambda x: measures.psnr(ROWS, x),
    "measures.ssim": lambda x: measures.ssim(x, ROWS),
    "measures.value_range": lambda x: measures.value_range(x, ROWS),
    "color.expand": lambda x: color.expand(x, (16, 16)),
    "color.from_planes": lambda x: color.from_planes(x.reshape(4, 4, 4)[:3], "ict"),
    "color.inverse": lambda x: color.inverse([x.reshape(4, 4, 4)[:3]], color="ict"),
    "color.rmse": lambda x: color.rmse(x.reshape(4, 4, 4), x.reshape(4, 4, 4)),
    "color.subsample": color.subsample,
}
# Arrays of integers alone, which have no gradients, coefficients as these functions make them, or no arrays.
WITHOUT = {
    "Plan", "PlanCost", "Prediction", "FswavedecnResult", "InverseStream", "Rows", "collect_rows", "ceilings",
    "devices", "unusable_devices", "dwt_coeff_len", "dwt_max_level", "dwtn_max_level", "families",
    "get_num_threads", "keep_memory", "kept_memory", "lifting", "scheme", "set_num_threads", "swt_max_level",
    "wavedecn_shapes", "wavedecn_size", "wavelist", "DiscreteContinuousWavelet", "central_frequency",
    "frequency2scale", "integrate_wavelet", "orthfilt", "scale2frequency",
    "imra", "imra2", "imran",  # sums, of which libraries know the gradients
    "color.forward", "color.to_planes", "color.burt_forward", "color.burt_inverse", "color.d4_forward",
    "color.d4_inverse", "color.rmsy", "color.space",
}  # fmt: skip


# Functions that PyTorch differentiates.
DIFFERENTIABLE = {
    name
    for name in CALLS
    if name.partition(",")[0] in {
        "Pipeline", "Pipeline.frames",
        "Plan.forward", "Plan.frames", "Plan.inverse", "adjoint", "dwt", "dwt2", "dwtn", "idwt", "idwt2",
        "idwtn", "ilwt", "ilwt2", "ilwtn",
        "imodwt", "iswt", "iswt2", "iswtn", "lwt", "lwt2", "lwtn", "modwt", "modwt_mra", "mra",
        "mra2", "mran", "sharpen",
        "swt", "swt2", "swtn", "threshold", "threshold_firm", "wavedec", "wavedec2", "wavedecn", "waverec",
        "waverec2", "waverecn",
    }
} - {
    "Pipeline, sigma",
    "Plan.inverse, limits", "dwt, a list", "threshold, value", "threshold, substitute",
    "threshold_firm, value",
}  # fmt: skip


# JAX has its own transposes, and runs no graphs of filters.
NOT_TRACED_BY_JAX = {"adjoint", "adjoint, of wavedec2", "Pipeline", "Pipeline.frames", "sharpen"}


def _names(package: str) -> list[str]:
    """All calls; or one, to be skipped, where the package is missing."""
    return list(CALLS) if find_spec(package) else ["dwt"]


def test_every_function_is_looked_at() -> None:
    known = {name.partition(",")[0] for name in CALLS} | WITHOUT
    modules: list[tuple[str, ModuleType]] = [("", undula), ("measures.", measures), ("color.", color)]
    functions = {
        prefix + name
        for prefix, module in modules
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }
    assert functions <= known


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def jax() -> Any:
    return pytest.importorskip("jax", reason="JAX is not installed")


@pytest.mark.parametrize("name", _names("torch"))
def test_tensors_that_require_a_gradient(torch: Any, name: str) -> None:
    x = torch.arange(64.0).reshape(8, 8).requires_grad_()
    if name not in DIFFERENTIABLE:
        message = r"requires_grad.*\.detach\(\).*torch\.no_grad\(\)"
        with pytest.raises(undula.ArgumentTypeError, match=message):
            CALLS[name](x)
        return
    tensors = [part for part in _arrays(CALLS[name](x)) if isinstance(part, torch.Tensor)]
    assert any(part.requires_grad for part in tensors)
    (gradient,) = torch.autograd.grad(sum(part.sum() for part in tensors if part.requires_grad), x)
    assert gradient.isfinite().all()


def _arrays(nested: Any) -> list[Any]:
    if isinstance(nested, dict):
        nested = list(nested.values())
    if not isinstance(nested, (list, tuple)):
        return [nested]
    return [part for each in nested for part in _arrays(each)]


@pytest.mark.parametrize("name", _names("torch"))
def test_tensors_without_a_gradient_are_taken(torch: Any, name: str) -> None:
    """What is made of them is what is made of NumPy's arrays."""
    plain = np.arange(64, dtype="f4").reshape(8, 8)
    x = torch.from_numpy(plain.copy()).requires_grad_()
    try:
        wanted = CALLS[name](plain)
    except undula.UndulaError as error:  # such as filters that do not give the signal back
        with torch.no_grad(), pytest.raises(type(error)):
            CALLS[name](x)
        return
    with torch.no_grad():
        _assert_equal(CALLS[name](x), wanted)
    _assert_equal(CALLS[name](x.detach()), wanted)


def _assert_equal(mine: Any, theirs: Any) -> None:
    if isinstance(theirs, dict):
        assert sorted(mine) == sorted(theirs)
        for key, part in theirs.items():
            _assert_equal(mine[key], part)
    elif isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs)
        for one, two in zip(mine, theirs, strict=True):
            _assert_equal(one, two)
    elif isinstance(theirs, (np.ndarray, float)):
        np.testing.assert_array_equal(np.asarray(mine), theirs)


def test_out_of_the_host_is_no_tensor(torch: Any) -> None:
    with pytest.raises(undula.ArgumentTypeError):
        undula.dwt(np.ones(8), "haar", out=(torch.ones(4, requires_grad=True), torch.ones(4)))  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_tensors_of_other_kinds(torch: Any) -> None:
    """Parameters, subclasses from elsewhere, duals of forward mode, and what torch.func wraps."""

    class Own(torch.Tensor):  # type: ignore[misc, name-defined]
        pass

    def dwt(x: Any) -> Any:
        return undula.dwt(x, "haar")[0].sum()

    for x in (torch.nn.Parameter(torch.ones(8)), torch.ones(8, requires_grad=True).as_subclass(Own)):
        assert dwt(x).requires_grad
        with torch.no_grad():
            assert isinstance(undula.dwt(x, "haar")[0], torch.Tensor)
        with pytest.raises(undula.ArgumentTypeError, match="requires_grad"):
            undula.denoise(x)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(8), torch.ones(8))
        assert torch.autograd.forward_ad.unpack_dual(dwt(dual)).tangent is not None
        with pytest.raises(undula.ArgumentTypeError, match=r"tangent.*\.detach\(\)"):
            undula.denoise(dual)


def test_results_are_not_written_to_arrays_of_the_caller(torch: Any) -> None:
    x = torch.ones(8, requires_grad=True)
    with pytest.raises(undula.ArgumentTypeError, match=r"out .*torch\.no_grad\(\)"):
        undula.dwt(x, "haar", out=(torch.ones(4), torch.ones(4)))  # type: ignore[arg-type]


NOT_COMPILED = ("idwt", "lwt", "swt")  # Their gradients are also taken without jit.


@pytest.mark.thorough
@pytest.mark.parametrize("name", _names("jax"))
def test_values_that_jax_traces(jax: Any, name: str) -> None:
    for transform in (jax.jit, jax.grad, jax.vmap):

        def traced(x: Any) -> Any:
            results = [part for part in _arrays(CALLS[name](x)) if isinstance(part, jax.Array)]
            return sum(part.sum() for part in results)

        x = jax.numpy.arange(2.0 * 8 * 8, dtype="float32").reshape(2, 8, 8)
        if name in DIFFERENTIABLE - NOT_TRACED_BY_JAX:
            gradient = jax.grad(traced)
            if not (THOROUGH or name in NOT_COMPILED):  # JAX compiles every operation by itself.
                gradient = jax.jit(gradient)
            assert np.isfinite(np.asarray(gradient(x[0]))).all()
            return
        with pytest.raises(undula.ArgumentTypeError, match=r"JAX traces"):
            transform(traced)(x if transform is jax.vmap else x[0])


def test_arrays_of_jax_are_taken(jax: Any) -> None:
    x = jax.numpy.ones((8, 8), "float32")
    on_host = undula.wavedec2(np.asarray(x), "haar")[0]
    np.testing.assert_allclose(undula.wavedec2(x, "haar")[0], on_host, rtol=1e-6)


def test_arrays_of_jax_are_not_written_to(jax: Any) -> None:
    x = jax.numpy.ones((4, 4))
    with pytest.raises(undula.ArgumentTypeError, match="immutable"):
        library_of(x).check_writable(x, "out")
    with pytest.raises(undula.ArgumentTypeError, match=r"must be a NumPy array|immutable"):
        undula.idwt(x, x, "haar", out=x)  # type: ignore[arg-type]
