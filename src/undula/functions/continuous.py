"""The continuous wavelet transform, its inverse, and the frequencies of wavelets.

The transform at the scale s compares a signal with the wavelet ψ, stretched by s, at every place b:

    W(s, b) = 1/√s · Σ_n x[n] · ψ*((n - b) / s)

As in PyWavelets, the wavelet is integrated over each sample, by differences of a table of its integral. The
convolutions are computed by :mod:`undula.engines.convolution`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import (
    CHUNKED,
    given_array,
    keeps_library,
    library_of,
    numpy_array,
    refuse_gradients,
    result_dtype,
)
from ..engines.convolution import Convolution, LineKernel, convolve_on_device, fast_length
from ..engines.memory import empty
from ..errors import ArgumentError, ArgumentTypeError, UnknownAxisError, UnknownNameError
from ..lowering.axis_arguments import checked_axes
from ..wavelets import ContinuousWavelet, Formula, Wavelet, any_wavelet

__all__ = [
    "central_frequency",
    "cwt",
    "frequency2scale",
    "icwt",
    "integrate_wavelet",
    "scale2frequency",
]

Array = NDArray[Any]
METHODS = ("conv", "fft", "auto")
MAX_PRECISION = 24
MIN_GROUPED = 1 << 17  # samples of a result, from which kernels of different lengths are separated
MAX_TAPS = 1 << 28
MAX_CACHED = 1 << 22  # samples of a result, up to which its kernels are kept for the next call
# Parts of the spectrum whose gain, relative to the largest one, is lower are not restored by icwt.
LEAST_GAIN = 1e-2
MAX_ITERATIONS = 50


def integrate_wavelet(wavelet: Wavelet | ContinuousWavelet | str, precision: int = 8) -> tuple[Array, ...]:
    """Integrate a wavelet from its beginning to each place, by sums of samples.

    Parameters
    ----------
    wavelet : Wavelet, ContinuousWavelet or str
        The wavelet, or its name.
    precision : int, optional
        The level of ``wavelet.wavefun``. The default is 8.

    Returns
    -------
    tuple of ndarray
        ``(int_psi, x)`` for a continuous or orthogonal wavelet, else ``(int_psi_d, int_psi_r, x)`` for
        decomposition (d) and reconstruction (r).

    Examples
    --------
    >>> int_psi, x = integrate_wavelet("haar", precision=4)
    >>> round(float(int_psi.max()), 6), float(x[int_psi.argmax()])
    (0.5, 0.5)
    """
    if isinstance(wavelet, (tuple, list)):
        warnings.warn(
            "integrating samples is deprecated; use numpy.cumsum, or pass a wavelet",
            DeprecationWarning,
            stacklevel=2,
        )
        psi, x = map(np.asarray, wavelet)
        return np.cumsum(psi) * (x[1] - x[0]), x
    functions = any_wavelet(wavelet).wavefun(precision)
    x = functions[-1]
    if x.size < 2:
        raise ArgumentError(f"precision must be at least 1, so that there are two samples, got {precision}")
    step = x[1] - x[0]
    # (psi, x), (phi, psi, x) or (phi_d, psi_d, phi_r, psi_r, x)
    waves = functions[:1] if len(functions) == 2 else functions[1:-1:2]
    return (*(np.cumsum(psi) * step for psi in waves), x)


def central_frequency(wavelet: Wavelet | ContinuousWavelet | str, precision: int = 8) -> float:
    """Return the frequency at which the spectrum of a wavelet is largest.

    Parameters
    ----------
    wavelet : Wavelet, ContinuousWavelet or str
        The wavelet, or its name.
    precision : int, optional
        The level of ``wavelet.wavefun``. The default is 8.

    Returns
    -------
    float
        In periods per unit of the wavelet's axis.

    Examples
    --------
    >>> float(central_frequency("morl"))
    0.8125
    """
    functions = any_wavelet(wavelet).wavefun(precision)
    psi, x = functions[0 if len(functions) == 2 else 1], functions[-1]
    if x.size < 2:
        raise ArgumentError(f"precision must be at least 1, so that there are two samples, got {precision}")
    periods = int(np.argmax(np.abs(np.fft.fft(psi))[1:])) + 1
    if periods + 1 > psi.size / 2:  # a negative frequency
        periods = psi.size - periods
    return np.float64(1.0) / (float(x[-1] - x[0]) / periods)


@keeps_library
def scale2frequency(wavelet: Wavelet | ContinuousWavelet | str, scale: Any, precision: int = 8) -> Any:
    """Return the frequency that a scale of the CWT stands for.

    Parameters
    ----------
    wavelet : Wavelet, ContinuousWavelet or str
        The wavelet, or its name.
    scale : float or array_like
        One or several scales.
    precision : int, optional
        The level of ``wavelet.wavefun``. The default is 8.

    Returns
    -------
    float or ndarray
        In periods per sample; divide by the sampling period to obtain hertz.

    Examples
    --------
    >>> float(scale2frequency("morl", 2))
    0.40625
    """
    return central_frequency(wavelet, precision=precision) / _numbers(scale, "scale")


@keeps_library
def frequency2scale(wavelet: Wavelet | ContinuousWavelet | str, freq: Any, precision: int = 8) -> Any:
    """Return the scale of the CWT that stands for a frequency: the inverse of :func:`scale2frequency`.

    Parameters
    ----------
    wavelet : Wavelet, ContinuousWavelet or str
        The wavelet, or its name.
    freq : float or array_like
        One or several frequencies, in periods per sample.
    precision : int, optional
        The level of ``wavelet.wavefun``. The default is 8.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> float(frequency2scale("morl", 0.40625))
    2.0
    """
    return central_frequency(wavelet, precision=precision) / _numbers(freq, "freq")


def _numbers(values: Any, what: str) -> Any:
    """Return numbers for arithmetic, also those of other libraries."""
    if isinstance(values, (list, tuple, str, np.ndarray, type(None))):
        return numpy_array(values, what)  # type: ignore[arg-type]
    return values


@keeps_library
def cwt(
    data: Any,
    scales: ArrayLike,
    wavelet: ContinuousWavelet | str,
    sampling_period: float = 1.0,
    method: str = "conv",
    axis: int = -1,
    *,
    precision: int = 12,
) -> tuple[Any, Array]:
    """Compute the continuous wavelet transform along one axis.

    Parameters
    ----------
    data : array_like
        The samples, real or complex, of one or more dimensions. Arrays of PyTorch, CuPy and JAX on a GPU
        are transformed there.
    scales : float or array_like
        The scales, positive numbers: one line of the result for each.
    wavelet : ContinuousWavelet or str
        The wavelet, or its name.
    sampling_period : float, optional
        The time between samples, by which the frequencies are divided; the coefficients do not depend on it.
        The default is 1.
    method : {"conv", "fft", "auto"}, default "conv"
        All compute convolutions by FFT in overlapping blocks, and give the same results. ``"conv"``
        computes sums if there are infinities or NaNs in the data, so that these spread no further
        than the wavelet reaches.
    axis : int, optional
        The axis to transform. The default is the last one.
    precision : int, optional
        The wavelet is sampled at ``2**precision`` places. The default is 12; less distorts large scales.

    Returns
    -------
    coefs : array
        The coefficients, of shape ``(number of scales, *data.shape)``: complex for complex wavelets, and
        float32 or complex64 for data in single precision.
    frequencies : array
        The frequency of each scale, of the library of the data; see :func:`scale2frequency`.

    Notes
    -----
    The coefficients are those of PyWavelets, to the rounding of floating-point numbers: within 1e-12 of the
    largest one in double precision. In single precision they are more accurate than those of PyWavelets,
    which adds up the integral of the wavelet in float32.

    The kernels of the last calls are kept, so that further signals of the same length cost less.

    References
    ----------
    .. [1] C. Torrence and G. P. Compo, "A practical guide to wavelet analysis", Bulletin of the American
       Meteorological Society 79, pp. 61-78, 1998.

    Examples
    --------
    >>> time = np.arange(256) / 100
    >>> coefs, frequencies = cwt(np.sin(2 * np.pi * 10 * time), np.arange(2, 32), "cmor1.5-1.0", 0.01)
    >>> coefs.shape, coefs.dtype.name
    ((30, 256), 'complex128')
    >>> float(frequencies[np.abs(coefs[:, 128]).argmax()].round(1))
    10.0
    """
    refuse_gradients(data, "data")
    x = numpy_array(data) if library_of(data).device(data) == CHUNKED else given_array(data)
    shape = library_of(x).shape(x)
    if not shape or not shape[number := _line_axis(axis, len(shape))]:
        raise ArgumentError(f"data must have samples along its axis, got shape {shape}")
    chosen, scale_line = _continuous(wavelet), _scales(scales)
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    period = _numbers(sampling_period, "sampling_period")
    if np.ndim(period) or not period > 0:
        raise ArgumentError(f"sampling_period must be one positive number, got {sampling_period!r}")
    dtype = result_dtype(np.dtype(library_of(x).dtype(x)))
    formula = chosen.formula
    result = np.result_type(dtype, np.complex64) if formula.conjugate else dtype
    single = dtype in (np.float32, np.complex64)
    key = (formula, _precision(precision), single, result.kind == "c", *_hashable(scale_line))
    if isinstance(x, np.ndarray):
        coefs = _on_host(x.astype(dtype, copy=False), number, key, scale_line.size, result, method)
    else:
        coefs = _on_device(x, number, _kernels(*key), result)
    frequencies = np.atleast_1d(scale2frequency(chosen, scale_line, precision)) / period
    return coefs, frequencies


@keeps_library
def icwt(
    coefs: ArrayLike,
    scales: ArrayLike,
    wavelet: ContinuousWavelet | str,
    axis: int = -1,
    *,
    precision: int = 12,
    complex_signal: bool = False,
) -> Array:
    """Reconstruct a signal from its continuous wavelet transform.

    Parameters
    ----------
    coefs : array_like
        Coefficients of :func:`cwt`, of shape ``(number of scales, *shape of the signal)``.
    scales : float or array_like
        The scales of the coefficients, best in a geometric sequence.
    wavelet : ContinuousWavelet or str
        The wavelet of the transform, or its name.
    axis : int, default -1
        The axis of the signal that was transformed.
    precision : int, default 12
        The wavelet is sampled at ``2**precision`` points, as in the transform.
    complex_signal : bool, default False
        Whether the signal is complex, if the wavelet is; see the notes. With real wavelets, complex
        coefficients tell that it is.

    Returns
    -------
    ndarray
        The signal, without the frequencies that no scale covers; its mean is one of these.

    Notes
    -----
    The coefficients are added up with the weights of the formula of Torrence and Compo [1]_, which needs one
    sum over scales only, for real wavelets as well as for complex ones:

        y(b) = Σ_j Δln(s_j) / √s_j · W(s_j, b)

    The formula divides by a constant, since y is proportional to the signal if the scales are dense and
    unlimited. Here, the same sum of the kernels of the transform is inverted, by conjugate gradients, as a
    convolution whose result is cut off at the ends of the signal. So the scales need not be dense, signals
    need not fade at their ends, and odd wavelets such as ``"gaus1"`` can be inverted, too. Frequencies whose
    gain is less than about 1 % of the largest one are attenuated.

    The largest errors of noise between 0.03 and 0.2 periods per sample, with 8 scales per octave from 0.01
    to 0.35, relative to its largest value, for 12 signals of 1024 samples and 25 wavelets:

    =============================  ======  ===========  =================
    wavelets                       inside  at the ends  signals that fade
    =============================  ======  ===========  =================
    complex ones, and even ones    0.13 %  0.9 %        0.04 %
    gaus1, gaus3, gaus5 and gaus7  0.7 %   5 %          0.02 %
    =============================  ======  ===========  =================

    Inside means 100 samples or more from both ends, where a sine of 0.03 periods per sample was up to 0.6 %
    off. Other signals can be worse at the ends, where a chirp was 2.3 % off, and so are coefficients that
    were changed.

    The coefficients of a complex wavelet do not tell whether the signal is real, which is assumed by default.
    Of a complex signal only the frequencies that the wavelet sees come back: positive ones for ``cmor``,
    ``shan`` and ``fbsp``, negative ones for ``cgau``. Those of the other sign are attenuated or lost; to have
    both, transform the real and imaginary parts of the signal one by one.

    References
    ----------
    .. [1] C. Torrence and G. P. Compo, "A practical guide to wavelet analysis", Bulletin of the American
       Meteorological Society 79, pp. 61-78, 1998.

    Examples
    --------
    >>> time = np.arange(512)
    >>> signal = np.exp(-(((time - 256) / 80) ** 2)) * np.sin(time / 5)
    >>> scales = np.geomspace(2, 64, 41)
    >>> coefs, _ = cwt(signal, scales, "cmor1.5-1.0")
    >>> bool(np.allclose(icwt(coefs, scales, "cmor1.5-1.0"), signal, atol=1e-3))
    True
    """
    array, chosen, lengths = numpy_array(coefs, "coefs"), _continuous(wavelet), _scales(scales)
    if array.ndim < 2 or len(array) != lengths.size or not array.size:
        raise ArgumentError(
            f"coefs must have one line for each of {lengths.size} scales, and no empty axis; got shape"
            f" {array.shape}"
        )
    number = _line_axis(axis, array.ndim - 1)
    dtype = result_dtype(array.dtype)
    lines = np.moveaxis(array, number + 1, -1)
    length = lines.shape[-1]
    order = np.argsort(lengths)
    spacing = np.gradient(np.log(lengths[order])) if lengths.size > 1 else np.ones(1)
    weights = np.empty(lengths.size)
    weights[order] = np.maximum(spacing, np.finfo(float).tiny) / np.sqrt(lengths[order])
    single = dtype in (np.float32, np.complex64)
    kernels = _kernels(chosen.formula, _precision(precision), single, True, *_hashable(lengths))
    size = fast_length(2 * length)
    response = np.zeros(size, complex)
    for weight, kernel in zip(weights, kernels, strict=True):
        short = kernel.cropped(length)
        response[: short.before + 1] += weight * short.taps[short.origin :]
        response[size - short.origin :] += weight * short.taps[: short.origin]
    gain, real = np.fft.fft(response), dtype.kind != "c" or (chosen.formula.conjugate and not complex_signal)
    sums = np.tensordot(weights, lines, (0, 0))
    largest = float(np.abs(sums).max())
    # Energies stay in range if the largest number is about 1; products with powers of two are exact.
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1) if 0 < largest < math.inf else 1.0
    signal = _deconvolved(sums / unit, gain, real) * unit
    dtype = np.result_type(np.float32 if single else np.float64, np.float32 if real else np.complex64)
    return np.ascontiguousarray(np.moveaxis(signal.astype(dtype), -1, number))


def _deconvolved(sums: Array, gain: Array, real: bool) -> Array:
    """Return the lines whose convolutions, cut off at their ends, are nearest to these lines.

    Conjugate gradients minimise ``|A x - sums|² + small · |x|²``, where A is the convolution.
    """
    length, small = sums.shape[-1], (LEAST_GAIN * np.abs(gain).max()) ** 2

    def adjoint(y: Array) -> Array:
        x = np.fft.ifft(gain.conj() * np.fft.fft(y, gain.size))[..., :length]
        return np.asarray(x.real if real else x)

    def normal(x: Array) -> Array:
        image = np.fft.ifft(gain * np.fft.fft(x, gain.size))[..., :length]
        product: Array = adjoint(image) + small * x
        return product

    def energy(x: Array) -> Array:
        return np.asarray(np.einsum("...n,...n->...", x.conj(), x).real)[..., None]

    residual = adjoint(sums)
    x, direction, before = np.zeros_like(residual), residual, energy(residual)
    least = 1e-20 * before
    for _ in range(MAX_ITERATIONS):
        image = normal(direction)
        product = np.einsum("...n,...n->...", direction.conj(), image).real[..., None]
        step = np.divide(before, product, where=product > 0, out=np.zeros_like(before))
        x, residual = x + step * direction, residual - step * image
        after = energy(residual)
        if (after <= least).all():
            break
        direction = (
            residual + np.divide(after, before, where=before > 0, out=np.zeros_like(before)) * direction
        )
        before = after
    return x


def _continuous(wavelet: object) -> ContinuousWavelet:
    chosen = any_wavelet(wavelet)
    if not isinstance(chosen, ContinuousWavelet):
        raise ArgumentError(
            f"the CWT needs a continuous wavelet, got {chosen.name!r}; undula.wavelist(kind='continuous')"
            " lists them, and undula.wavedec takes discrete ones"
        )
    return chosen


def _scales(scales: ArrayLike) -> Array:
    array = np.atleast_1d(numpy_array(scales, "scales"))
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise ArgumentError(
            f"`scales` must be one line of numbers, got shape {array.shape} and dtype {array.dtype}"
        )
    usable = np.isfinite(array) & (array > 0)
    if not usable.all():
        raise ArgumentError(f"`scales` must only include positive values, got {array[~usable][:3].tolist()}")
    return array


def _precision(precision: object) -> int:
    if not isinstance(precision, (int, np.integer)):
        raise ArgumentTypeError(f"precision must be an integer from 1 to {MAX_PRECISION}, got {precision!r}")
    if not 1 <= precision <= MAX_PRECISION:
        raise ArgumentError(f"precision must be an integer from 1 to {MAX_PRECISION}, got {precision}")
    return int(precision)


def _line_axis(axis: object, ndim: int) -> int:
    """Return the number of an axis; a line has one only, and as in PyWavelets any number stands for it."""
    if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
        raise UnknownAxisError(f"axis must be a scalar, an integer; got {axis!r}")
    return 0 if ndim == 1 else checked_axes(int(axis), ndim)[0]


def _hashable(scales: Array) -> tuple[bytes, str]:
    return scales.tobytes(), scales.dtype.str


def _kernels(
    formula: Formula, precision: int, single: bool, complex_result: bool, scales: bytes, scale_dtype: str
) -> list[LineKernel]:
    """Return the kernel of each scale: the wavelet, integrated over each sample."""
    psi, x = formula.sample(2**precision)
    integral = np.cumsum(psi) * (x[1] - x[0])
    if formula.conjugate:
        integral = integral.conj()
    if not complex_result:
        integral = integral.real
    if single:  # As in PyWavelets, the table has the precision of the data.
        integral = integral.astype(np.complex64 if np.iscomplexobj(integral) else np.float32)
    x = x.astype(np.float32 if single else np.float64)
    step, span = x[1] - x[0], x[-1] - x[0]
    kernels = []
    for scale in np.frombuffer(scales, scale_dtype):
        if scale * span > MAX_TAPS:
            raise ArgumentError(f"a scale of {scale} is too large: it has more than {MAX_TAPS} samples")
        places = (np.arange(scale * span + 1) / (scale * step)).astype(np.int64)
        wave = integral[places[places < integral.size]][::-1]
        if wave.size < 2:
            raise ArgumentError(
                f"Selected scale of {scale} too small; the wavelet is shorter than two samples there"
            )
        differences = np.diff(wave.astype(np.result_type(wave, np.float64)), prepend=0, append=0)
        kernels.append(LineKernel(-np.sqrt(np.float64(scale)) * differences, wave.size // 2))
    return kernels


@lru_cache(maxsize=4)
def _prepared(key: tuple[Any, ...], length: int, dtype: np.dtype[Any], grouped: bool) -> Convolution:
    return Convolution(_kernels(*key), length, dtype, grouped)


def _on_host(
    x: Array, number: int, key: tuple[Any, ...], count: int, dtype: np.dtype[Any], method: str
) -> Array:
    """Transform a NumPy array."""
    moved = np.moveaxis(x, number, -1)
    lines = moved.reshape(-1, moved.shape[-1])
    out = empty((count, *lines.shape), dtype)
    if method == "conv" and not np.isfinite(lines).all():
        _convolve_directly(lines, _kernels(*key), out)
    elif out.size:
        prepare = _prepared if out.size <= MAX_CACHED else _prepared.__wrapped__
        prepare(key, lines.shape[-1], dtype, out.size >= MIN_GROUPED)(lines, out)
    return np.ascontiguousarray(np.moveaxis(out.reshape(count, *moved.shape), -1, number + 1))


def _convolve_directly(lines: Array, kernels: Sequence[LineKernel], out: Array) -> None:
    """Convolve by sums, so that infinities and NaNs spread no further than a kernel reaches."""
    with np.errstate(invalid="ignore"):
        for kernel, results in zip(kernels, out, strict=True):
            for line, result in zip(lines, results, strict=True):
                end = kernel.origin + line.size
                result[:] = np.convolve(line, kernel.taps)[kernel.origin : end]


def _on_device(x: Any, number: int, kernels: Sequence[LineKernel], dtype: np.dtype[Any]) -> Any:
    """Transform an array where it is, by the functions of its library."""
    import array_api_compat

    library = library_of(x)
    xp, device = library.namespace(x), array_api_compat.device(x)
    moved = xp.moveaxis(library.convert(x, dtype.name), number, -1)
    lines = xp.reshape(moved, (-1, moved.shape[-1]))
    out = convolve_on_device(xp, lines, kernels, dtype, lambda rows: xp.asarray(rows, device=device))
    return xp.moveaxis(xp.reshape(out, (len(kernels), *moved.shape)), -1, number + 1)
