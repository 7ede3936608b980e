"""Image quality measures: PSNR and SSIM of two arrays, and PSNR of each band of their transforms."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import keeps_library, numpy_array
from .engines.cpu import filter_operations as cpu
from .errors import ArgumentError
from .functions import wavedecn
from .wavelets import Wavelet, as_wavelet

__all__ = ["BandMeasure", "compare_bands", "difference", "psnr", "ssim", "value_range"]

Array = NDArray[Any]


def _arrays(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """Convert two arguments to arrays; raise an error if these cannot be compared."""
    x, y = numpy_array(a), numpy_array(b)
    if x.shape != y.shape:
        raise ArgumentError(f"arrays to compare must have the same shape, got {x.shape} and {y.shape}")
    if x.size == 0:
        raise ArgumentError(f"arrays to compare must not be empty, got shape {x.shape}")
    return x, y


def value_range(a: ArrayLike, b: ArrayLike, data_range: float | None = None) -> float:
    """Return the range of values that the measures use as the peak.

    Parameters
    ----------
    a, b : array_like
        The arrays to compare.
    data_range : float, optional
        A positive number, which is returned.

    Returns
    -------
    float
        ``data_range`` if given. For integers, the range of the dtype. For floats, 1 if no magnitude exceeds
        1.5, 255 if none exceeds 256, and the largest magnitude otherwise.

    Examples
    --------
    >>> value_range(np.zeros(3, "u1"), np.ones(3, "u1"))
    255.0
    """
    if data_range is not None:
        if not 0 < data_range < math.inf:
            raise ArgumentError(f"data_range must be positive and finite, got {data_range}")
        return float(data_range)
    x, y = numpy_array(a), numpy_array(b)
    dtype = np.promote_types(x.dtype, y.dtype)  # float64 for int64 with uint64
    if all(kind in "iu" for kind in (x.dtype.kind, y.dtype.kind, dtype.kind)):
        return float(np.iinfo(dtype).max) - float(np.iinfo(dtype).min)
    peak = max(float(np.abs(z[np.isfinite(z)].astype(np.float64)).max(initial=0)) for z in (x, y))
    return 1.0 if peak <= 1.5 else 255.0 if peak <= 256 else peak


@keeps_library
def difference(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the absolute difference of two arrays as floats.

    Parameters
    ----------
    a, b : array_like
        Arrays of the same shape.

    Returns
    -------
    ndarray
        ``|a - b|``, exact before conversion to float for integers. It is 0 where both samples are NaN or the
        same infinity, and NaN where only one of them is finite.

    Examples
    --------
    >>> difference([1.0, np.nan, np.nan], [3.0, np.nan, 3.0])
    array([ 2.,  0., nan])
    """
    x, y = _arrays(a, b)
    dtype = np.promote_types(x.dtype, y.dtype)
    if dtype.kind in "iu":  # Unsigned 64-bit integers wrap around, so that their difference is exact.
        high, low = np.maximum(x, y).astype(np.uint64), np.minimum(x, y).astype(np.uint64)
        return (high - low).astype(np.float64)
    x, y = (z.astype(np.promote_types(dtype, np.float64)) for z in (x, y))
    finite = np.isfinite(x) & np.isfinite(y)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(x - y)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    return np.where(finite, gap, np.where(same, 0.0, np.nan))


def psnr(a: ArrayLike, b: ArrayLike, data_range: float | None = None) -> float:
    """Compute the peak signal-to-noise ratio of two arrays.

    Parameters
    ----------
    a, b : array_like
        Arrays of the same shape.
    data_range : float, optional
        The peak-to-peak range of values. The default is the range of the dtype for integers; for floats, 1 if
        no magnitude exceeds 1.5, 255 if none exceeds 256, and the largest magnitude otherwise.

    Returns
    -------
    float
        The ratio in decibels, infinite for equal arrays. Samples that are NaN or the same infinity in both
        arrays are ignored. The result is NaN if a sample is not finite in one array only, or if no samples
        remain.

    Examples
    --------
    >>> psnr(np.zeros((4, 4), "u1"), np.full((4, 4), 255, "u1"))
    0.0
    """
    x, y = _arrays(a, b)
    peak = value_range(x, y, data_range)
    gap = difference(x, y)
    gap = gap[np.isnan(gap) | (np.isfinite(x) & np.isfinite(y))]
    largest = float(gap.max(initial=0))
    if gap.size == 0 or math.isnan(largest):
        return math.nan
    if largest in (0, math.inf):
        return math.inf if largest == 0 else -math.inf
    # Divide by the largest difference, since the squares alone may underflow or overflow.
    error = float(np.mean((gap / largest) ** 2))
    return 20 * (math.log10(peak) - math.log10(largest)) - 10 * math.log10(error)


def ssim(
    a: ArrayLike, b: ArrayLike, data_range: float | None = None, channel_axis: int | None = None
) -> float:
    """Compute the mean structural similarity of two images.

    Parameters
    ----------
    a, b : array_like
        Images of the same shape, at least 7×7.
    data_range : float, optional
        The peak-to-peak range of values. The default is the range of the dtype for integers; for floats, 1 if
        no magnitude exceeds 1.5, 255 if none exceeds 256, and the largest magnitude otherwise.
    channel_axis : int, optional
        The axis of the channels, whose similarities are averaged. By default an image has none.

    Returns
    -------
    float
        The mean over all windows of 7×7 samples, 1 for equal images. Windows with samples that are NaN or the
        same infinity in both images are ignored. The result is NaN if a sample is not finite in one image
        only, or if no windows remain.

    Examples
    --------
    >>> x = np.random.default_rng(0).integers(0, 256, (32, 32)).astype("u1")
    >>> ssim(x, x)
    1.0
    """
    x, y = _arrays(a, b)
    peak = value_range(x, y, data_range)
    if channel_axis is not None:
        channels = zip(*(np.moveaxis(z, channel_axis, 0) for z in (x, y)), strict=True)
        return float(np.mean([ssim(p, q, peak) for p, q in channels]))
    if x.ndim != 2 or min(x.shape) < 7:
        raise ArgumentError(f"ssim needs two axes of 7 samples or more, got shape {x.shape}")
    if not all(z.dtype.kind in "biu" for z in (x, y)) and np.isnan(difference(x, y)).any():
        return math.nan
    finite = np.isfinite(x)
    x, y = (np.where(finite, z, 0).astype(np.float64)[None] for z in (x, y))
    taps = np.full(7, 1 / 7)

    def mean(z: Array) -> Array:
        return cpu.convolve(z, taps)

    mx, my = mean(x), mean(y)
    unbiased = 49 / 48  # Bessel's correction
    vx, vy, vxy = (
        unbiased * (mean(p * q) - m * n) for p, q, m, n in ((x, x, mx, mx), (y, y, my, my), (x, y, mx, my))
    )
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    similarity = ((2 * mx * my + c1) * (2 * vxy + c2)) / ((mx**2 + my**2 + c1) * (vx + vy + c2))
    inner = similarity[0, 3:-3, 3:-3]
    if finite.all():  # Looking at all windows would take most of the time.
        return float(inner.mean())
    windows = np.lib.stride_tricks.sliding_window_view(finite, (7, 7)).all(axis=(2, 3))
    return float(inner[windows].mean()) if windows.any() else math.nan


class BandMeasure(NamedTuple):
    """The PSNR of one band of two transforms.

    Attributes
    ----------
    level : int
        The decomposition level, 1 for the finest.
    band : str
        The key of the band, such as ``"aa"`` or ``"ad"``.
    psnr, inner : float
        In decibels: of the whole band, and without the margin that the boundary mode affects.

    Examples
    --------
    >>> x = np.random.default_rng(0).integers(0, 256, (64, 64)).astype("u1")
    >>> low = compare_bands(x, np.roll(x, 1), level=1)[0]
    >>> low.level, low.band
    (1, 'aa')
    """

    level: int
    band: str
    psnr: float
    inner: float


def compare_bands(
    a: ArrayLike,
    b: ArrayLike,
    wavelet: str | Wavelet = "cdf97",
    level: int = 3,
    data_range: float | None = None,
) -> list[BandMeasure]:
    """Compute the PSNR of every band of the transforms of two arrays.

    Parameters
    ----------
    a, b : array_like
        Arrays of the same shape.
    wavelet : str or Wavelet, default "cdf97"
        The wavelet.
    level : int, default 3
        The number of decomposition levels.
    data_range : float, optional
        The peak-to-peak range of values. The default is the range of the dtype for integers; for floats, 1 if
        no magnitude exceeds 1.5, 255 if none exceeds 256, and the largest magnitude otherwise. It is scaled
        by the gain of each band.

    Returns
    -------
    list of BandMeasure
        The approximation first, then the details from the coarsest level to the finest.

    Examples
    --------
    >>> x = np.random.default_rng(0).integers(0, 256, (64, 64)).astype("u1")
    >>> [band.psnr for band in compare_bands(x, x, level=1)]
    [inf, inf, inf, inf]
    """
    x, y = _arrays(a, b)
    peak = value_range(x, y, data_range)
    margin = as_wavelet(wavelet).dec_len
    coefficients = [wavedecn(z.astype(np.float64), wavelet, level=level) for z in (x, y)]
    measures = []
    for number in range(len(coefficients[0])):
        depth = max(1, level - max(0, number - 1)) if level else 0
        gain = 2.0 ** (depth * x.ndim / 2)
        bands = [{"a" * x.ndim: c[0]} if number == 0 else c[number] for c in coefficients]
        for key in bands[0]:
            p, q = bands[0][key], bands[1][key]
            inner = tuple(slice(margin, n - margin) if n > 2 * margin + 1 else slice(None) for n in p.shape)
            measures.append(
                BandMeasure(depth, key, psnr(p, q, peak * gain), psnr(p[inner], q[inner], peak * gain))
            )
    return measures
