"""The CPU backend: the filter bank in Numba, one axis at a time for arrays of any dimension, images at once.

An array is seen as ``(outer, line, inner)``. Border coefficients are computed from small extended copies of
the ends of the lines, all others from the array itself. Complex numbers are pairs of real ones, which stand
beside each other along one more inner axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plans.boundary import band_length, extend, signal_length, signed_places
from ...wavelets import Wavelet
from .threads import get_num_threads, ranges, run, set_num_threads

__all__ = ["dwt_axis", "dwt_plane", "get_num_threads", "idwt_axis", "set_num_threads"]

Array = NDArray[Any]
SMALL = 1 << 14  # Samples


def _real(x: Array, axis: int) -> Array:
    """The array as real numbers ``(outer, line, inner)``, in one piece of memory."""
    x = np.ascontiguousarray(x)
    if not x.flags.writeable:  # (or Numba would compile its kernels once more, for arrays of this kind)
        x = x.copy()
    shape = (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))
    if x.dtype.kind == "c":
        return x.view(x.real.dtype).reshape(shape[0], shape[1], 2 * shape[2])
    return x.reshape(shape)


@lru_cache(maxsize=256)
def _taps(wavelet: Wavelet, dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """The four filters in the real type that belongs to a dtype."""
    real = np.empty(0, dtype).real.dtype
    return tuple(np.array(taps, dtype=real) for taps in wavelet.filter_bank)


def dwt_axis(x: Array, wavelet: Wavelet, mode: str, axis: int) -> tuple[Array, Array]:
    """Both bands of one level along one axis of a float or complex array."""
    lead, length = 0, wavelet.dec_len
    if mode == "periodization":
        lead = length // 2 - 1
        if x.shape[axis] % 2:  # an odd line repeats its last sample
            x = extend(x, axis, 0, x.shape[axis] + 1, "constant")
    n = x.shape[axis]
    count = band_length(n, length, mode)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    a, d = np.empty(shape, x.dtype), np.empty(shape, x.dtype)
    lo, hi = _taps(wavelet, x.dtype)[:2]
    # Coefficient k reads places 2k + 2 - L + lead … 2k + 1 + lead: which of them read the line alone?
    # (Of a small array all are computed from an extended copy: that is less to do than to begin thrice.)
    begin = count if x.size < SMALL else min(max(0, (length - 1 - lead) // 2), count)
    end = max(begin, min(count, (n - 2 - lead) // 2 + 1))
    low, high = _real(a, axis), _real(d, axis)
    for k0, k1 in ((0, begin), (end, count)):
        if k1 > k0:
            first = 2 * k0 + 2 - length + lead
            rim = extend(x, axis, first, 2 * k1 + lead, mode)
            _analyse(_real(rim, axis), first - lead, lo, hi, low, high, k0, k1)
    if end > begin:
        _analyse(_real(x, axis), -lead, lo, hi, low, high, begin, end)
    return a, d


def dwt_plane(x: Array, wavelets: Sequence[Wavelet], modes: Sequence[str]) -> list[Array] | None:
    """The four bands ``aa, ad, da, dd`` of the last two axes in one pass, or None where that is not possible.

    It is for real arrays of some size and modes that do not extrapolate.
    """
    if x.dtype.kind == "c" or x.size < SMALL:
        return None
    height, width = x.shape[-2:]
    tables = []
    for n, wavelet, mode in zip((height, width), wavelets, modes, strict=True):
        lead = wavelet.dec_len // 2 - 1 if mode == "periodization" else 0
        count = band_length(n, wavelet.dec_len, mode)
        first = lead + 2 - wavelet.dec_len
        table = signed_places(n, first, lead + 2 * count, mode)
        if table is None or (mode == "periodization" and n % 2):
            return None
        tables.append((count, first, *table))
    from . import kernels

    (tall, _, rows, row_signs), (wide, first, columns, column_signs) = tables
    planes = _real(x, x.ndim - 1).reshape(-1, height, width)
    bands = [np.empty((*x.shape[:-2], tall, wide), x.dtype) for _ in range(4)]
    flat = [band.reshape(-1, tall, wide) for band in bands]
    signs = [s.astype(x.dtype) for s in (row_signs, column_signs)]
    taps = [f for wavelet in wavelets for f in _taps(wavelet, x.dtype)[:2]]
    for number, plane in enumerate(planes):
        out = tuple(band[number] for band in flat)
        fixed = (plane, rows, signs[0], columns, signs[1], first, *taps, *out)
        run(kernels.analyse_plane, [(*fixed, s, e) for s, e in ranges(tall, plane.size)])
    return bands


def _analyse(x: Array, first: int, lo: Array, hi: Array, a: Array, d: Array, k0: int, k1: int) -> None:
    from . import kernels  # here, so that nobody pays for Numba who does not transform

    outer, _, inner = x.shape
    samples = 2 * outer * (k1 - k0) * inner
    if inner == 1:
        lines, low, high = (block.reshape(outer, -1) for block in (x, a, d))
        if outer > 1:
            cuts = [slice(*piece) for piece in ranges(outer, samples)]
            pieces = [(lines[cut], first, lo, hi, low[cut], high[cut], k0, k1) for cut in cuts]
        else:
            pieces = [(lines, first, lo, hi, low, high, k0 + s, k0 + e) for s, e in ranges(k1 - k0, samples)]
        run(kernels.analyse_lines, pieces)
    else:
        pieces = [(x, first, lo, hi, a, d, k0 + s, k0 + e) for s, e in ranges(k1 - k0, samples)]
        run(kernels.analyse_rows, pieces)


def idwt_axis(a: Array | None, d: Array | None, wavelet: Wavelet, mode: str, axis: int) -> Array:
    """One level back along one axis, from two bands of one shape and dtype; a missing one is zero."""
    given = a if a is not None else d
    assert given is not None
    low = a if a is not None else np.zeros_like(given)
    high = d if d is not None else np.zeros_like(given)
    length, offset = wavelet.rec_len, 0
    count = given.shape[axis]
    samples = signal_length(count, length, mode)
    if mode == "periodization":
        # Sample i is sample i - lead of the synthesis of the periodic bands.
        lead, h = length // 2 - 1, length // 2 - 1
        begin = -((lead + 1) // 2)
        offset = -lead - 2 * begin
        low, high = (extend(b, axis, begin, begin + count + 1 + h + 1, "periodic") for b in (low, high))
        pairs = count + 1
    else:
        pairs = samples // 2
    shape = (*given.shape[:axis], 2 * pairs, *given.shape[axis + 1 :])
    x = np.empty(shape, given.dtype)
    lo, hi = _taps(wavelet, x.dtype)[2:]
    _synthesise(_real(low, axis), _real(high, axis), lo, hi, _real(x, axis), pairs)
    if mode == "periodization":
        x = np.ascontiguousarray(np.moveaxis(np.moveaxis(x, axis, 0)[offset : offset + samples], 0, axis))
    return x


def _synthesise(a: Array, d: Array, lo: Array, hi: Array, x: Array, pairs: int) -> None:
    from . import kernels

    outer, _, inner = a.shape
    samples = 2 * outer * pairs * inner
    if inner == 1:
        low, high, lines = (block.reshape(outer, -1) for block in (a, d, x))
        if outer > 1:
            pieces = [(low[s:e], high[s:e], lo, hi, lines[s:e], 0, pairs) for s, e in ranges(outer, samples)]
        else:
            pieces = [(low, high, lo, hi, lines, s, e) for s, e in ranges(pairs, samples)]
        run(kernels.synthesise_lines, pieces)
    else:
        run(kernels.synthesise_rows, [(a, d, lo, hi, x, s, e) for s, e in ranges(pairs, samples)])
