"""The continuous wavelet transform: against PyWavelets, sums in double precision, and its inverse."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from undula.arrays import NUMPY, ArrayLibrary, DeviceKey
from undula.engines.convolution import Convolution, LineKernel
from undula.functions import continuous

WAVELETS = ["morl", "mexh", "gaus1", "gaus6", "cgau3", "cmor1.5-1.0", "shan1.5-1.2", "fbsp2-1-0.7"]


def signal(*shape: int, dtype: str = "float64", seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def assert_near(ours: Any, theirs: Any, relative: float) -> None:
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=relative * np.abs(theirs).max())


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int16", "bool"])
@pytest.mark.parametrize("wavelet", WAVELETS)
def test_coefficients_are_those_of_pywavelets(wavelet: str, dtype: str) -> None:
    for n, scales in (
        (1, [1, 3]),
        (100, np.arange(1, 40)),
        (1000, np.geomspace(0.3, 200, 9)),
        (9000, [1, 30]),
    ):
        x = signal(n, dtype="float64" if dtype in ("int16", "bool") else dtype)
        x = (100 * x).astype(dtype) if dtype == "int16" else x > 0 if dtype == "bool" else x
        for method in ("conv", "fft"):
            ours, frequencies = undula.cwt(x, scales, wavelet, 0.5, method=method)
            theirs, expected = pywt.cwt(x, scales, wavelet, 0.5, method="conv" if n < 9000 else "fft")
            assert_near(ours, theirs, 1e-12)
            np.testing.assert_array_equal(frequencies, expected)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16"])
@pytest.mark.parametrize("wavelet", WAVELETS)
def test_single_precision(wavelet: str, dtype: str) -> None:
    """PyWavelets adds up in single precision, so its errors grow with the scale, and ours do not."""
    x, scales = signal(700, dtype=dtype), np.geomspace(1, 100, 8)
    ours, _ = undula.cwt(x, scales, wavelet)
    assert_near(ours, pywt.cwt(x, scales, wavelet)[0], 1e-4)
    formula = undula.ContinuousWavelet(wavelet).formula
    kernels = continuous._kernels(formula, 12, True, ours.dtype.kind == "c", scales.tobytes(), "f8")
    wide = x.astype("c16" if dtype[0] == "c" else "f8")
    for line, kernel in zip(ours, kernels, strict=True):
        exact = np.convolve(wide, kernel.taps)[kernel.origin : kernel.origin + x.size]
        np.testing.assert_allclose(line, exact, rtol=0, atol=1e-6 * np.abs(ours).max())


@pytest.mark.parametrize("precision", [5, 10, 14])
def test_precision(precision: int) -> None:
    x, scales = signal(300), [1, 2.5, 40]
    for name in ("morl", "cmor1-1"):
        for ours, theirs in zip(
            undula.cwt(x, scales, name, precision=precision),
            pywt.cwt(x, scales, name, precision=precision),
            strict=True,
        ):
            assert_near(ours, theirs, 1e-12)


@pytest.mark.parametrize(
    ("scales", "near"),
    [
        (3, 1e-12),
        ([], 1e-12),
        (np.arange(1, 5, dtype="i4"), 1e-12),
        # PyWavelets takes the square roots of scales in their own precision: half that of bytes.
        (np.float32(7.3), 1e-6),
        (np.arange(1, 4, dtype="f4"), 1e-6),
        (np.arange(1, 5, dtype="u1"), 1e-3),
    ],
)
def test_kinds_of_scales(scales: Any, near: float) -> None:
    for dtype in ("f4", "f8"):
        ours, theirs = (module.cwt(signal(200, dtype=dtype), scales, "mexh") for module in (undula, pywt))
        assert ours[0].shape == theirs[0].shape
        assert ours[0].dtype == theirs[0].dtype
        np.testing.assert_allclose(ours[0], theirs[0], rtol=0, atol=near if dtype == "f8" else near + 1e-5)
        np.testing.assert_array_equal(ours[1], theirs[1])


@settings(deadline=None, max_examples=20)
@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    axis=st.integers(-3, 2),
    scales=st.lists(st.floats(0.3, 60), min_size=1, max_size=4),
    name=st.sampled_from(WAVELETS),
    ordered=st.booleans(),
)
def test_batches_and_axes(shape: list[int], axis: int, scales: list[float], name: str, ordered: bool) -> None:
    axis = axis % len(shape)
    x = np.asarray(signal(*shape), order="C" if ordered else "F")
    ours, _ = undula.cwt(x, scales, name, axis=axis)
    theirs, _ = pywt.cwt(x, scales, name, axis=axis)
    assert_near(ours, theirs, 1e-12)
    assert ours.flags.c_contiguous


def test_changed_wavelets() -> None:
    results = []
    for module in (undula, pywt):
        wavelet = module.ContinuousWavelet("cmor1-1")
        wavelet.upper_bound, wavelet.complex_cwt = 5, False
        results.append(module.cwt(signal(100), [1, 4], wavelet)[0])
        results.append(module.cwt(signal(100), [2], module.ContinuousWavelet("mexh", np.float32))[0])
    assert_near(results[0], results[2], 1e-12)
    assert_near(results[1], results[3], 1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_samples_spread_as_far_as_the_wavelet(bad: float) -> None:
    x = signal(2, 400)
    x[1, 200] = bad
    ours, _ = undula.cwt(x, [1, 5], "mexh")
    with np.errstate(invalid="ignore"):
        theirs, _ = pywt.cwt(x, [1, 5], "mexh")
    np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(theirs))
    kept = np.isfinite(theirs)
    np.testing.assert_allclose(ours[kept], theirs[kept], rtol=0, atol=1e-12)


def test_long_lines_are_divided_and_shared_by_threads() -> None:
    x, scales = signal(2, 1 << 15), np.geomspace(1, 40, 12)
    result, _ = undula.cwt(x, scales, "morl")
    assert max(group.blocks for group in continuous._prepared(
        (undula.ContinuousWavelet("morl").formula, 12, False, False, scales.tobytes(), scales.dtype.str),
        1 << 15, np.dtype("f8"), True,
    ).groups) > 3  # fmt: skip
    undula.set_num_threads(1)
    try:
        np.testing.assert_array_equal(undula.cwt(x, scales, "morl")[0], result)
    finally:
        undula.set_num_threads(None)
    assert_near(result[:, 1], pywt.cwt(x[1], scales, "morl", method="fft")[0], 1e-12)


@settings(deadline=None, max_examples=30)
@given(
    length=st.integers(1, 3000),
    sizes=st.lists(st.tuples(st.integers(1, 300), st.floats(0, 1)), min_size=1, max_size=5),
    kind=st.sampled_from(["f8", "c16"]),
    grouped=st.booleans(),
)
def test_convolutions(length: int, sizes: list[tuple[int, float]], kind: str, grouped: bool) -> None:
    kernels = [LineKernel(signal(n, dtype=kind, seed=n), int(where * (n - 1))) for n, where in sizes]
    x = signal(2, length)
    out = np.full((len(kernels), 2, length), np.nan, kind)
    Convolution(kernels, length, np.dtype(kind), grouped)(x, out)
    for kernel, lines in zip(kernels, out, strict=True):
        for line, result in zip(x, lines, strict=True):
            exact = np.convolve(line, kernel.taps)[kernel.origin : kernel.origin + length]
            np.testing.assert_allclose(result, exact, rtol=0, atol=1e-12 * max(1, np.abs(exact).max()))


class _Samples:
    """An array of a library on a device, which is NumPy's and has the functions of the array API only."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.ndim, self.dtype = array, array.shape, array.ndim, array.dtype


class _Library(ArrayLibrary):
    name, module, array_type = "Fake", __name__, "_Samples"

    def device(self, x: Any) -> DeviceKey:
        return DeviceKey("cuda", 0)

    def buffer(self, x: Any) -> int:
        return 0

    def convert(self, x: Any, dtype: str) -> Any:
        return x.array.astype(dtype)

    def namespace(self, x: Any) -> Any:
        return SimpleNamespace(
            asarray=lambda rows, device: rows,
            **{name: getattr(np, name) for name in ("concat", "fft", "moveaxis", "reshape")},
        )


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
@pytest.mark.parametrize("wavelet", ["morl", "cmor1-1"])
def test_arrays_on_a_device(wavelet: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import array_api_compat

    library, samples = _Library(), signal(3, 90, 2, dtype=dtype)
    for module in ("undula.functions.continuous", "undula.arrays.inputs"):
        monkeypatch.setattr(
            sys.modules[module], "library_of", lambda x: library if isinstance(x, _Samples) else NUMPY
        )
    monkeypatch.setattr(array_api_compat, "device", lambda x: None)
    monkeypatch.setattr("undula.engines.convolution.MAX_ON_DEVICE", 2000)
    ours, frequencies = undula.cwt(_Samples(samples), [1, 2.5, 12], wavelet, axis=1)
    host, expected = undula.cwt(samples, [1, 2.5, 12], wavelet, axis=1)
    assert_near(ours, host, 1e-12 if dtype == "f8" else 1e-6)
    np.testing.assert_array_equal(frequencies, expected)


@pytest.mark.cuda
def test_tensors_on_a_gpu() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    for dtype in ("f4", "f8", "c8"):
        x = signal(4, 3000, dtype=dtype)
        for wavelet in ("morl", "cmor1-1"):
            coefs, _ = undula.cwt(torch.from_numpy(x).cuda(), [1, 2.5, 12], wavelet)
            assert coefs.is_cuda
            assert_near(coefs.cpu().numpy(), undula.cwt(x, [1, 2.5, 12], wavelet)[0], 1e-6)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: undula.cwt(np.ones(32), 0.01, "mexh"), ValueError, r"scale of 0\.01 too small"),
        (lambda: undula.cwt(np.ones(32), [0, 1], "mexh"), ValueError, "positive"),
        (lambda: undula.cwt(np.ones(32), [-1], "mexh"), ValueError, "positive"),
        (lambda: undula.cwt(np.ones(32), [np.nan], "mexh"), ValueError, "positive"),
        (lambda: undula.cwt(np.ones(32), [1e12], "mexh"), ValueError, "too large"),
        (lambda: undula.cwt(np.ones(32), [[1, 2]], "mexh"), ValueError, r"\(1, 2\)"),
        (lambda: undula.cwt(np.ones(32), [1j], "mexh"), ValueError, "complex"),
        (lambda: undula.cwt(np.ones(32), [1], "mexh", method="dct"), ValueError, "'dct'.*conv, fft"),
        (lambda: undula.cwt(np.ones((3, 3)), [1], "mexh", axis=2), np.exceptions.AxisError, "2"),
        (lambda: undula.cwt(np.ones((3, 3)), [1], "mexh", axis=(0,)), np.exceptions.AxisError, "scalar"),
        (lambda: undula.cwt([], [1], "mexh"), ValueError, r"\(0,\)"),
        (lambda: undula.cwt(1.0, [1], "mexh"), ValueError, r"\(\)"),
        (lambda: undula.cwt(["a"], [1], "mexh"), TypeError, "numbers"),
        (lambda: undula.cwt(np.ones(32), [1], "db2"), ValueError, "'db2'.*continuous"),
        (lambda: undula.cwt(np.ones(32), [1], "mexh", precision=0), ValueError, "precision.*0"),
        (lambda: undula.cwt(np.ones(32), [1], "mexh", precision="a"), TypeError, "precision.*'a'"),
        (lambda: undula.cwt(np.ones(32), [1], "mexh", 0), ValueError, "sampling_period.*0"),
        (lambda: undula.cwt(np.ones(32), [1], "mexh", "a"), TypeError, "sampling_period.*'a'"),
        (lambda: undula.cwt(np.ones(32), [np.inf], "mexh"), ValueError, "inf"),
        (lambda: undula.cwt(np.ones(32), [1], "foo"), ValueError, "'foo'.*cmor"),
        (lambda: undula.scale2frequency("mexh", "a"), TypeError, "scale.*'a'"),
        (lambda: undula.Wavelet("db2").wavefun("a"), TypeError, "'a'"),
        (lambda: undula.ContinuousWavelet("mexh").wavefun(length="a"), TypeError, "'a'"),
        (lambda: undula.integrate_wavelet("mexh", 0), ValueError, "precision.*0"),
        (lambda: undula.central_frequency("mexh", 0), ValueError, "precision.*0"),
        (lambda: undula.icwt(np.ones((2, 32)), [1], "mexh"), ValueError, r"1 scales.*\(2, 32\)"),
    ],
)  # fmt: skip
def test_wrong_arguments(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_arrays_that_have_no_fft_are_refused() -> None:
    dask = pytest.importorskip("dask.array")
    with pytest.raises(undula.ArgumentTypeError, match="Dask"):
        undula.cwt(dask.ones(32), [1], "mexh")
    opencl = pytest.importorskip("pyopencl")
    from undula.engines.gpu.opencl.runtime import default_device

    device = default_device()
    queue = opencl.CommandQueue(device.context, device.handle)
    import pyopencl.array

    with pytest.raises(undula.ArgumentTypeError, match="PyOpenCL"):
        undula.cwt(pyopencl.array.to_device(queue, np.ones(32)), [1], "mexh")


def test_no_lines() -> None:
    assert undula.cwt(np.ones((0, 8)), [1, 2], "mexh")[0].shape == (2, 0, 8)


@pytest.mark.parametrize("name", [*WAVELETS, "haar", "db3", "sym5", "bior2.2", "rbio3.1", "dmey"])
def test_integrals_and_frequencies(name: str) -> None:
    for ours, theirs in zip(undula.integrate_wavelet(name), pywt.integrate_wavelet(name), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
    for precision in (3, 8, 11):
        assert undula.central_frequency(name, precision) == pytest.approx(
            pywt.central_frequency(name, precision)
        )
    for scales in (2, [1, 2], np.geomspace(1, 9, 4)):
        for function in ("scale2frequency", "frequency2scale"):
            theirs = getattr(pywt, function)(name, scales)
            np.testing.assert_allclose(getattr(undula, function)(name, scales), theirs)


def test_samples_are_integrated_with_a_warning() -> None:
    x = np.arange(4.0)
    with pytest.warns(DeprecationWarning, match="deprecated"):
        integral, places = undula.integrate_wavelet((np.ones(4), x))  # type: ignore[arg-type]
    assert integral.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(places, x)


def band_limited(n: int, low: float, high: float, seed: int = 0) -> Any:
    frequencies = np.fft.rfftfreq(n)
    spectrum = signal(frequencies.size, dtype="c16", seed=seed) * ((frequencies > low) & (frequencies < high))
    x = np.fft.irfft(spectrum, n)
    return x / np.abs(x).max()


@pytest.mark.parametrize("wavelet", [*WAVELETS, "gaus3", "gaus5", "gaus7", "cgau7", "cmor0.7-2.1"])
def test_inverse_is_as_accurate_as_documented(wavelet: str) -> None:
    n, odd = 1024, wavelet in ("gaus1", "gaus3", "gaus5", "gaus7")
    scales = undula.frequency2scale(wavelet, np.geomspace(0.01, 0.35, 42), 10)
    lines = np.stack([band_limited(n, 0.03, 0.2, seed) for seed in range(12)])
    error = np.abs(undula.icwt(undula.cwt(lines, scales, wavelet)[0], scales, wavelet) - lines)
    assert error[:, 100:-100].max() < (7e-3 if odd else 1.4e-3)
    assert error.max() < (5e-2 if odd else 1e-2)
    x = lines[0]
    fading = x * np.exp(-(((np.arange(n) - n / 2) / (n / 6)) ** 4))
    coefs, _ = undula.cwt(fading.astype("f4"), scales[::-1], wavelet)
    again = undula.icwt(coefs, scales[::-1], wavelet)
    assert again.dtype == np.float32
    np.testing.assert_allclose(again, fading, rtol=0, atol=1e-3)


def test_inverse_of_batches_and_complex_signals() -> None:
    scales = np.geomspace(2, 64, 41)
    x = np.stack([band_limited(400, 0.04, 0.2), 2 * band_limited(400, 0.05, 0.1), np.zeros(400)], axis=1)
    coefs, _ = undula.cwt(x, scales, "morl", axis=0)
    np.testing.assert_allclose(undula.icwt(coefs, scales, "morl", axis=0), x, rtol=0, atol=2e-2)
    coefs, _ = undula.cwt(x * (1 + 2j), scales, "morl", axis=0)
    again = undula.icwt(coefs, scales, "morl", axis=0)
    np.testing.assert_allclose(again, x * (1 + 2j), rtol=0, atol=4e-2)


@pytest.mark.parametrize("wavelet", ["cmor1.5-1.0", "shan1.0-1.5", "fbsp2-1.0-1.0", "cgau5"])
def test_inverse_of_complex_signals_by_complex_wavelets(wavelet: str) -> None:
    """Frequencies of one sign come back, the others are attenuated."""
    n = 1024
    scales = undula.frequency2scale(wavelet, np.geomspace(0.01, 0.35, 42), 10)
    spectrum = np.fft.fft(band_limited(n, 0.03, 0.2)) * (np.fft.fftfreq(n) > 0)
    fading = np.exp(-(((np.arange(n) - n / 2) / (n / 6)) ** 4))
    x = (3 - 1j) * np.fft.ifft(spectrum) * fading
    seen, unseen = (x.conj(), x) if wavelet.startswith("cgau") else (x, x.conj())
    again = undula.icwt(undula.cwt(seen, scales, wavelet)[0], scales, wavelet, complex_signal=True)
    np.testing.assert_allclose(again, seen, rtol=0, atol=1e-3 * np.abs(x).max())
    again = undula.icwt(undula.cwt(unseen, scales, wavelet)[0], scales, wavelet, complex_signal=True)
    assert np.linalg.norm(again) < np.linalg.norm(x)
    real, _ = undula.cwt(x.real, scales, wavelet)
    assert undula.icwt(real, scales, wavelet).dtype == np.float64


@pytest.mark.parametrize("power", [-900, 900])
def test_the_inverse_does_not_depend_on_the_unit(power: int) -> None:
    signal = np.sin(np.arange(64) / 3)
    scales = np.geomspace(2, 16, 12)
    coefs, _ = undula.cwt(signal, scales, "mexh")
    expected = undula.icwt(coefs, scales, "mexh")
    assert np.abs(expected - signal)[8:-8].max() < 0.5
    result = undula.icwt(np.ldexp(coefs, power), scales, "mexh")
    np.testing.assert_array_equal(result, np.ldexp(expected, power))
