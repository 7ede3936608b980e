"""A small call of every public function that takes arrays, with arrays that ``a`` makes of NumPy's."""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import undula

MODULES = (
    "undula",
    "undula.color",
    "undula.filters",
    "undula.fixedpoint",
    "undula.measures",
    "undula.operators",
)
# Public modules for other kinds of data: the functions of one library, files, stores, named dimensions.
OTHER_MODULES = (
    "codecs", "compat", "dask", "data", "errors", "experiments", "io", "pywt", "stores", "torch", "xarray"
)  # fmt: skip

Call = Callable[[Callable[[Any], Any]], Any]


def nested(a: Callable[[Any], Any], coeffs: Any) -> Any:
    """Convert all arrays of coefficients."""
    if isinstance(coeffs, dict):
        return {key: nested(a, part) for key, part in coeffs.items()}
    if isinstance(coeffs, (list, tuple)):
        return type(coeffs)(nested(a, part) for part in coeffs)
    return a(coeffs)


def leaves(results: Any) -> Iterator[Any]:
    """Iterate over everything in nested results that is no plain number, slice or text."""
    if isinstance(results, undula.FswavedecnResult):
        results = [results.coeffs, results.approx]
    if isinstance(results, undula.BaseNode):
        results = [node.data for node in (results, *results.get_leaf_nodes())]
    if is_dataclass(results):
        results = list(vars(results).values())
    if isinstance(results, dict):
        results = list(results.values())
    if isinstance(results, (list, tuple)):
        for part in results:
            yield from leaves(part)
    elif results is not None and not isinstance(results, (bool, int, float, complex, str, slice)):
        yield results


COLUMNS = ("NumPy", "PyTorch", "JAX", "array_api_strict", "Dask")
GRADIENTS, JIT = "gradients of PyTorch", "`jax.jit`"
Make = Callable[[Any], Any]


def library(name: str) -> tuple[Make, type]:
    """Return how to make an array of a library, and its class; a test is skipped if it is not installed."""
    if name == "NumPy":
        return np.asarray, np.ndarray
    if name == "PyTorch":
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        return lambda x: torch.from_numpy(np.array(x)), torch.Tensor
    if name == "JAX":
        jax = pytest.importorskip("jax", reason="JAX is not installed")
        return jax.numpy.asarray, jax.Array
    if name == "Dask":
        da = pytest.importorskip("dask.array", reason="Dask is not installed")
        return lambda x: da.from_array(np.asarray(x), chunks=5), da.Array
    import array_api_strict as xp

    return lambda x: xp.asarray(np.asarray(x)), type(xp.ones(1))


def outcome(call: Call, column: str) -> bool:
    """Return whether a function takes what a column of the table of libraries stands for.

    If it does, its results are arrays of the same library; if not, it raises an error of the package.
    """
    try:
        if column == JIT:
            return _is_traced(call)
        if column == GRADIENTS:
            make, kind = library("PyTorch")
            results = list(leaves(call(lambda x: _with_gradient(make(x)))))
            return any(isinstance(x, kind) and x.requires_grad for x in results)
        make, kind = library(column)
        results = list(leaves(call(make)))
    except undula.UndulaError:
        return False
    assert all(isinstance(x, kind) for x in results), [type(x) for x in results]
    return True


def _with_gradient(x: Any) -> Any:
    return x.requires_grad_() if x.is_floating_point() or x.is_complex() else x


def _is_traced(call: Call) -> bool:
    """Return whether a function works within ``jax.jit``, by tracing it without compiling anything."""
    import jax

    given: list[Any] = []
    list(leaves(call(lambda x: given.append(x) or x)))

    def traced(*arrays: Any) -> Any:
        waiting = iter(arrays)
        return list(leaves(call(lambda x: next(waiting))))

    jax.eval_shape(traced, *map(jax.numpy.asarray, given))
    return True


RANDOM = np.random.default_rng(5)
LINE = RANDOM.standard_normal(16)
IMAGE = RANDOM.standard_normal((16, 16))
SINGLE = IMAGE.astype(np.float32)
VOLUME = RANDOM.standard_normal((8, 8, 8))
PLANE = RANDOM.integers(0, 255, (16, 16)).astype(np.uint8)
COLORS = RANDOM.integers(0, 255, (16, 16, 3)).astype(np.uint8)
INTEGERS = np.arange(64, dtype=np.int16).reshape(8, 8)
SCALES = np.arange(1.0, 5.0)


def inverse(forward: Callable[[Any], Any], x: Any, back: Callable[[Any], Any]) -> Call:
    """Return the call of an inverse."""
    return lambda a: back(nested(a, forward(x)))


def transforms() -> dict[str, Call]:
    """Return the calls of functions that come in pairs."""
    calls: dict[str, Call] = {}
    for stem in ("dwt", "wavedec", "lwt", "swt", "dtcwt", "mra"):
        options = {} if stem == "dwt" else {"level": 2}
        for suffix, x in (("", LINE), ("2", IMAGE), ("n", VOLUME)):
            name = stem + suffix
            back = {"wavedec": "waverec"}.get(stem, f"i{stem}") + suffix
            wavelet = () if stem == "dtcwt" else ("cdf53",)
            of_bands = () if stem == "mra" else wavelet

            def forward(x: Any, name: str = name, wavelet: Any = wavelet, options: Any = options) -> Any:
                return getattr(undula, name)(x, *wavelet, **options)

            calls[name] = lambda a, x=x, forward=forward: forward(a(x))
            take = (lambda coeffs: coeffs) if back == "idwt" else (lambda coeffs: [coeffs])
            calls[back] = inverse(
                forward,
                x,
                lambda coeffs, back=back, rest=of_bands, take=take: getattr(undula, back)(
                    *take(coeffs), *rest
                ),
            )
    return calls


def nodes(packet: Any, path: str) -> Any:
    """Return what a tree of packets returns: nodes, and samples after a node was replaced."""
    kept = packet[path].data
    packet[path] = kept
    return [packet[path], packet.reconstruct(update=False)]


def pushed(a: Callable[[Any], Any]) -> Any:
    stream = undula.ForwardStream(16, "cdf53", level=1, dtype="float32")
    return [part for rows in (stream.push(a(SINGLE)), stream.finish()) for part in rows]


def pulled(a: Callable[[Any], Any]) -> Any:
    stream = undula.InverseStream(16, "cdf53", level=1, dtype="float32")
    return [stream.push(undula.Rows(r.level, r.start, nested(a, r.bands))) for r in pushed(np.asarray)]


def planned(a: Callable[[Any], Any]) -> Any:
    plan = undula.Plan((16, 16), "cdf53", level=1, dtype="float32")
    coeffs = plan.forward(a(SINGLE))
    return [coeffs, plan.inverse(nested(a, plan.forward(SINGLE)))]


def multiplied(a: Callable[[Any], Any]) -> Any:
    from undula.operators import WaveletOperator

    operator = WaveletOperator(undula.Plan((8,), "cdf53", level=1))
    x, y, m = LINE[:8], LINE[: operator.shape[0]], IMAGE[:8, :2]
    return [operator.matvec(a(x)), operator.rmatvec(a(y)), operator.matmat(a(m)), operator @ a(x)]


def fixed(a: Callable[[Any], Any]) -> Any:
    pair = undula.fixedpoint.shift_rational("cdf53")
    return [pair.forward(a(INTEGERS)), pair.inverse(nested(a, pair.forward(INTEGERS)))]


GREYS = RANDOM.poisson(np.linspace(50, 500, 64 * 64).reshape(64, 64)).astype(np.float64)
FLAT = undula.coeffs_to_array(undula.wavedec2(IMAGE, "haar", level=2))
RAVELLED = undula.ravel_coeffs(undula.wavedec2(IMAGE, "haar", level=2))
FSWT = undula.fswavedecn(IMAGE, "haar", levels=1)
RGB = undula.color.forward(COLORS, level=1)
BURT = undula.color.burt_forward(COLORS, 1)
D4 = undula.color.d4_forward(COLORS, 1)

CALLS: dict[str, Call] = {
    **transforms(),
    "ForwardStream": pushed,
    "InverseStream": pulled,
    "Pipeline": lambda a: undula.Pipeline(stages=[undula.filters.Shrink()])(a(IMAGE)),
    "Plan": planned,
    "WaveletPacket": lambda a: nodes(undula.WaveletPacket(a(LINE), "haar", maxlevel=2), "ad"),
    "WaveletPacket2D": lambda a: nodes(undula.WaveletPacket2D(a(IMAGE), "haar", maxlevel=2), "ad"),
    "WaveletPacketND": lambda a: nodes(undula.WaveletPacketND(a(VOLUME), "haar", maxlevel=1), "aad"),
    "adjoint": lambda a: undula.adjoint(
        "wavedec", nested(a, undula.wavedec(LINE, "db2", level=1)), "db2", shape=(16,)
    ),
    "array_to_coeffs": lambda a: undula.array_to_coeffs(a(FLAT[0]), FLAT[1]),
    "best_basis": lambda a: undula.best_basis(undula.WaveletPacket(a(LINE), "haar", maxlevel=2)),
    "calibrate": lambda a: undula.calibrate(a(IMAGE), 0.5),
    "coeffs_to_array": lambda a: undula.coeffs_to_array(nested(a, undula.wavedec2(IMAGE, "haar", level=2))),
    "collect_rows": lambda a: undula.collect_rows(pushed(a)),
    "cwt": lambda a: undula.cwt(a(LINE), SCALES, "mexh"),
    "denoise": lambda a: undula.denoise(a(IMAGE), 0.5),
    "denoise_frames": lambda a: list(undula.denoise_frames([a(IMAGE), a(IMAGE)], 0.5, over_time=2)),
    "denoise_wavelet": lambda a: undula.denoise_wavelet(a(IMAGE), 0.5),
    "despeckle": lambda a: undula.despeckle(a(abs(IMAGE)), looks=4),
    "downcoef": lambda a: undula.downcoef("a", a(LINE), "db2"),
    "enhance": lambda a: undula.enhance(a(IMAGE)),
    "estimate_poisson": lambda a: undula.estimate_poisson(a(GREYS)),
    "estimate_sigma": lambda a: undula.estimate_sigma(a(IMAGE)),
    "estimate_spectrum": lambda a: undula.estimate_spectrum(a(np.tile(IMAGE, (4, 4)))),
    "frequency2scale": lambda a: undula.frequency2scale("mexh", a(1 / SCALES)),
    "fswavedecn": lambda a: undula.fswavedecn(a(IMAGE), "haar", levels=1),
    "fswaverecn": lambda a: undula.fswaverecn(undula.fswavedecn(a(IMAGE), "haar", levels=1)),
    "icwt": lambda a: undula.icwt(a(undula.cwt(LINE, SCALES, "mexh")[0]), SCALES, "mexh"),
    "imodwt": lambda a: undula.imodwt(nested(a, undula.modwt(LINE, "haar", 2)), "haar"),
    "modwt": lambda a: undula.modwt(a(LINE), "haar", 2),
    "modwt_mra": lambda a: undula.modwt_mra(a(LINE), "haar", 2),
    "orthfilt": lambda a: undula.orthfilt(a(np.ones(2))),
    "orthogonal_filter_bank": lambda a: undula.orthogonal_filter_bank(a(np.ones(2))),
    "pad": lambda a: undula.pad(a(LINE), 2, "symmetric"),
    "qmf": lambda a: undula.qmf(a(np.ones(2))),
    "ravel_coeffs": lambda a: undula.ravel_coeffs(nested(a, undula.wavedec2(IMAGE, "haar", level=2))),
    "scale2frequency": lambda a: undula.scale2frequency("mexh", a(SCALES)),
    "sharpen": lambda a: undula.sharpen(a(IMAGE)),
    "threshold": lambda a: undula.threshold(a(LINE), 0.5),
    "threshold_firm": lambda a: undula.threshold_firm(a(LINE), 0.5, 1.0),
    "unravel_coeffs": lambda a: undula.unravel_coeffs(a(RAVELLED[0]), *RAVELLED[1:]),
    "upcoef": lambda a: undula.upcoef("a", a(LINE), "db2"),
    "color.burt_forward": lambda a: undula.color.burt_forward(a(COLORS), 1),
    "color.burt_inverse": lambda a: undula.color.burt_inverse(
        undula.color.BurtCoeffs(*nested(a, [BURT.y, BURT.u, BURT.v]), BURT.shape)
    ),
    "color.d4_forward": lambda a: undula.color.d4_forward(a(COLORS), 1),
    "color.d4_inverse": lambda a: undula.color.d4_inverse(nested(a, D4)),
    "color.expand": lambda a: undula.color.expand(a(PLANE), (31, 32)),
    "color.forward": lambda a: undula.color.forward(a(COLORS), level=1),
    "color.from_planes": lambda a: undula.color.from_planes(a(undula.color.to_planes(COLORS))),
    "color.inverse": lambda a: undula.color.inverse(nested(a, RGB)),
    "color.rmse": lambda a: undula.color.rmse(a(COLORS), a(COLORS)),
    "color.rmsy": lambda a: undula.color.rmsy(
        a(COLORS), undula.color.BurtCoeffs(*nested(a, [BURT.y, BURT.u, BURT.v]), BURT.shape)
    ),
    "color.subsample": lambda a: undula.color.subsample(a(PLANE)),
    "color.to_planes": lambda a: undula.color.to_planes(a(COLORS)),
    "filters.cycle_spin": lambda a: undula.filters.cycle_spin(a(IMAGE), lambda x: 2 * x),
    "filters.picture": lambda a: undula.filters.picture(
        a(VOLUME), [dict.fromkeys(("ad", "da", "dd"), a(VOLUME))], (16, 16)
    ),
    "fixedpoint.FixedPoint": fixed,
    "measures.compare_bands": lambda a: undula.measures.compare_bands(a(IMAGE), a(IMAGE), level=1),
    "measures.difference": lambda a: undula.measures.difference(a(IMAGE), a(IMAGE)),
    "measures.psnr": lambda a: undula.measures.psnr(a(IMAGE), a(-IMAGE)),
    "measures.ssim": lambda a: undula.measures.ssim(a(IMAGE), a(IMAGE)),
    "measures.value_range": lambda a: undula.measures.value_range(a(IMAGE), a(IMAGE)),
    "operators.WaveletOperator": multiplied,
}
# Public names that take no arrays, or are what other functions here take and return.
WITHOUT_ARRAYS = set(
    """
    BaseNode BoundaryFilters BoundaryMethod Ceilings Conditioning ContinuousWavelet Decay
    DiscreteContinuousWavelet FswavedecnResult Laurent Lifting LiftingStep Modes Node Node2D NodeND
    PlanCost Polynomial PolyphaseMatrix Prediction Rows Scheme SchemeStage Taper Wavelet ceilings
    central_frequency devices dwt_coeff_len dwt_max_level dwtn_max_level families get_num_threads
    integrate_wavelet keep_memory kept_memory lifting scheme set_num_threads swt_max_level
    wavedecn_shapes wavedecn_size wavelist unusable_devices color.BurtCoeffs color.Space color.space
    filters.Blur
    filters.Calibration filters.Collaborative filters.Contrast filters.Directional filters.FilterStage
    filters.Gain filters.Laplace filters.PoissonNoise filters.Shrink filters.Trace filters.Unsharp
    filters.Views fixedpoint.shift_rational measures.BandMeasure
""".split()
)


def public_names() -> set[str]:
    """Return all public functions and classes that are no errors, as they are written after ``undula.``."""
    names: dict[int, str] = {}
    for module in map(importlib.import_module, MODULES):
        prefix = module.__name__.removeprefix("undula").removeprefix(".")
        for name in module.__all__:
            value = getattr(module, name)
            is_error = isinstance(value, type) and issubclass(value, Exception | Warning)
            if callable(value) and not isinstance(value, ModuleType) and not is_error:
                names.setdefault(id(value), f"{prefix}.{name}".lstrip("."))
    return set(names.values())
