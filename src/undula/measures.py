"""How alike two pictures are: PSNR, SSIM, and the same for each band of their transforms."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ArgumentError
from .filters.arrays import HOST
from .inputs import numpy_array
from .transforms import wavedecn
from .wavelets import Wavelet, as_wavelet

__all__ = ["BandMeasure", "compare_bands", "difference", "psnr", "ssim", "value_range"]

Array = NDArray[Any]


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    one, two = numpy_array(a), numpy_array(b)
    if one.shape != two.shape:
        raise ArgumentError(f"only arrays of one shape can be compared, got {one.shape} and {two.shape}")
    if one.size == 0:
        raise ArgumentError(f"arrays with samples are needed, got shape {one.shape}")
    return one, two


def value_range(a: ArrayLike, b: ArrayLike, data_range: float | None = None) -> float:
    """The largest difference that there could be: given, of the dtype, or 1 for floats up to 1.

    Examples
    --------
    >>> value_range(np.zeros(3, "u1"), np.ones(3, "u1"))
    255.0
    """
    if data_range is not None:
        if not 0 < data_range < math.inf:
            raise ArgumentError(f"data_range is a positive number, got {data_range}")
        return float(data_range)
    one, two = numpy_array(a), numpy_array(b)
    if one.dtype.kind in "iu" and two.dtype.kind in "iu":
        info = np.iinfo(np.promote_types(one.dtype, two.dtype) if one.dtype != two.dtype else one.dtype)
        return float(info.max) - float(info.min if info.min < 0 else 0)
    most = max(float(np.abs(x[np.isfinite(x)].astype(np.float64)).max(initial=0)) for x in (one, two))
    return 1.0 if most <= 1.5 else 255.0 if most <= 256 else most


def difference(a: ArrayLike, b: ArrayLike) -> Array:
    """How far each sample is from that of another array, as floats.

    Equal samples are 0 apart, also where both are NaN or the same infinity. Where only one of them is finite
    or a number, the difference is NaN.

    Examples
    --------
    >>> difference([1.0, np.nan, np.nan], [3.0, np.nan, 3.0])
    array([ 2.,  0., nan])
    """
    one, two = _pair(a, b)
    kind = np.promote_types(one.dtype, two.dtype)
    if kind.kind in "iu":  # 64 bits wrap around, and so the difference is exact
        high, low = np.maximum(one, two).astype(np.uint64), np.minimum(one, two).astype(np.uint64)
        return (high - low).astype(np.float64)
    one, two = (x.astype(np.promote_types(kind, np.float64)) for x in (one, two))
    finite = np.isfinite(one) & np.isfinite(two)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(one - two)
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    return np.where(finite, gap, np.where(same, 0.0, np.nan))


def psnr(a: ArrayLike, b: ArrayLike, data_range: float | None = None) -> float:
    """The peak signal-to-noise ratio in decibels; infinite for what is equal.

    Samples that are NaN, or the same infinity, in both arrays are left out. The result is NaN where a sample
    is not finite in one array only, and where no samples remain.

    Examples
    --------
    >>> psnr(np.zeros((4, 4), "u1"), np.full((4, 4), 255, "u1"))
    0.0
    """
    one, two = _pair(a, b)
    scale = value_range(one, two, data_range)
    gap = difference(one, two)
    gap = gap[np.isnan(gap) | (np.isfinite(one) & np.isfinite(two))]
    largest = float(gap.max(initial=0))
    if gap.size == 0 or math.isnan(largest):
        return math.nan
    if largest in (0, math.inf):
        return math.inf if largest == 0 else -math.inf
    # Squares of the differences themselves may be too small or too large for a float.
    error = float(np.mean((gap / largest) ** 2))
    return 20 * (math.log10(scale) - math.log10(largest)) - 10 * math.log10(error)


def ssim(
    a: ArrayLike, b: ArrayLike, data_range: float | None = None, channel_axis: int | None = None
) -> float:
    """The structural similarity, from windows of 7×7; 1 for what is equal.

    Windows with samples that are NaN, or the same infinity, in both arrays are left out. The result is NaN
    where a sample is not finite in one array only, and where no windows remain.

    Examples
    --------
    >>> x = np.random.default_rng(0).integers(0, 256, (32, 32)).astype("u1")
    >>> ssim(x, x)
    1.0
    """
    one, two = _pair(a, b)
    scale = value_range(one, two, data_range)
    if channel_axis is not None:
        parts = [np.moveaxis(each, channel_axis, 0) for each in (one, two)]
        found = [ssim(p, q, scale) for p, q in zip(*parts, strict=True)]
        return float(np.mean(found))
    if one.ndim != 2 or min(one.shape) < 7:
        raise ArgumentError(f"structure is compared in windows of 7×7, got shape {one.shape}")
    if np.isnan(difference(one, two)).any():
        return math.nan
    finite = np.isfinite(one)
    x, y = (np.where(finite, each, 0).astype(np.float64)[None] for each in (one, two))
    taps = np.full(7, 1 / 7)

    def mean(z: Array) -> Array:
        return np.asarray(HOST.convolve(z, taps, 2))

    mx, my = mean(x), mean(y)
    unbiased = 49 / 48
    vx, vy, vxy = (
        unbiased * (mean(p * q) - m * n) for p, q, m, n in ((x, x, mx, mx), (y, y, my, my), (x, y, mx, my))
    )
    c1, c2 = (0.01 * scale) ** 2, (0.03 * scale) ** 2
    whole = ((2 * mx * my + c1) * (2 * vxy + c2)) / ((mx**2 + my**2 + c1) * (vx + vy + c2))
    windows = np.lib.stride_tricks.sliding_window_view(finite, (7, 7)).all(axis=(2, 3))
    return float(whole[0, 3:-3, 3:-3][windows].mean()) if windows.any() else math.nan


class BandMeasure(NamedTuple):
    """One band of two transforms: its PSNR, and that away from the borders."""

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
    """The PSNR of every band of the transforms of two images, with and without what borders have to do with.

    Examples
    --------
    >>> x = np.random.default_rng(0).integers(0, 256, (64, 64)).astype("u1")
    >>> [band.psnr for band in compare_bands(x, x, level=1)]
    [inf, inf, inf, inf]
    """
    one, two = _pair(a, b)
    scale = value_range(one, two, data_range)
    margin = as_wavelet(wavelet).dec_len
    parts = [wavedecn(each.astype(np.float64), wavelet, level=level) for each in (one, two)]
    found = []
    for number in range(len(parts[0])):
        depth = max(1, level - max(0, number - 1)) if level else 0
        bands = [{"a" * one.ndim: part[0]} if number == 0 else part[number] for part in parts]
        for key in bands[0]:
            p, q = bands[0][key], bands[1][key]
            cut = tuple(slice(margin, n - margin) if n > 2 * margin + 1 else slice(None) for n in p.shape)
            gain = 2.0 ** (depth * one.ndim / 2)
            found.append(
                BandMeasure(depth, key, psnr(p, q, scale * gain), psnr(p[cut], q[cut], scale * gain))
            )
    return found
