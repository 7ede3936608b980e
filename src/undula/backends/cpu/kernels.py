"""Numba kernels of the filter bank: lines along the last axis, and rows of lines along any other.

Nothing here knows about borders: every kernel reads samples that exist. Loops over taps are outside and
loops over samples inside, each writing one array with unit stride, which is what compilers vectorise. Only
contraction to fused multiply-adds is allowed, so that a sample's value does not depend on where it stands
in a vector or on which thread computed it.

    analysis   a[k] = Σ lo[t] x[2k + 1 - t]
    synthesis  x[2p + q] = Σ lo[2j + q] a[p + h - j] + hi[2j + q] d[p + h - j],   h = L/2 - 1
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["analyse_lines", "analyse_plane", "analyse_rows", "synthesise_lines", "synthesise_rows"]

BLOCK = 1024  # Samples worked on at a time: small enough that all taps find them in the first cache.

_compiled: Any = njit(nogil=True, cache=True, fastmath={"contract"})


@_compiled
def _start(out, x, y, first, second):  # type: ignore[no-untyped-def]
    """Out = first·x + second·y. Loops that begin at 0 over whole slices are those that vectorise."""
    for i in range(out.size):
        out[i] = first * x[i] + second * y[i]


@_compiled
def _add(out, x, y, first, second):  # type: ignore[no-untyped-def]
    """Out += first·x + second·y."""
    for i in range(out.size):
        out[i] += first * x[i] + second * y[i]


@_compiled
def _add_two(out, x, y, z, w, first, second, third, fourth):  # type: ignore[no-untyped-def]
    """Two of the above with one pass over ``out``, which is read and written half as often."""
    for i in range(out.size):
        out[i] += (first * x[i] + second * y[i]) + (third * z[i] + fourth * w[i])


@_compiled
def _filter_table(part, x, table, row, taps, start, stop):  # type: ignore[no-untyped-def]
    """Σ taps[t] x[table[row - t], start:stop]: rows by a table that knows what lies beyond the ends."""
    _start(part, x[table[row], start:stop], x[table[row - 1], start:stop], taps[0], taps[1])
    t = 2
    while t + 3 < taps.size:
        _add_two(
            part,
            x[table[row - t], start:stop],
            x[table[row - t - 1], start:stop],
            x[table[row - t - 2], start:stop],
            x[table[row - t - 3], start:stop],
            taps[t],
            taps[t + 1],
            taps[t + 2],
            taps[t + 3],
        )
        t += 4
    if t < taps.size:
        _add(part, x[table[row - t], start:stop], x[table[row - t - 1], start:stop], taps[t], taps[t + 1])


@_compiled
def analyse_rows(x, first, lo, hi, a, d, k0, k1):  # type: ignore[no-untyped-def]
    """Both bands of rows ``k0 … k1`` along the middle axis; ``x[:, 0]`` is place ``first`` of the line."""
    outer, count, inner = x.shape
    table = np.arange(count)  # every row lies where it is
    for o in range(outer):
        for start in range(0, inner, BLOCK):
            stop = min(start + BLOCK, inner)
            for k in range(k0, k1):
                row = 2 * k + 1 - first
                _filter_table(a[o, k, start:stop], x[o], table, row, lo, start, stop)
                _filter_table(d[o, k, start:stop], x[o], table, row, hi, start, stop)


@_compiled
def _filter_pairs(out, x, y, taps_x, taps_y, begin):  # type: ignore[no-untyped-def]
    """out[m] = Σ taps_x[j] x[begin - j + m] + taps_y[j] y[begin - j + m]."""
    n = out.size
    _start(out, x[begin : begin + n], y[begin : begin + n], taps_x[0], taps_y[0])
    j = 1
    while j + 1 < taps_x.size:
        at, before = begin - j, begin - j - 1
        _add_two(
            out,
            x[at : at + n],
            y[at : at + n],
            x[before : before + n],
            y[before : before + n],
            taps_x[j],
            taps_y[j],
            taps_x[j + 1],
            taps_y[j + 1],
        )
        j += 2
    if j < taps_x.size:
        at = begin - j
        _add(out, x[at : at + n], y[at : at + n], taps_x[j], taps_y[j])


@_compiled
def analyse_lines(x, first, lo, hi, a, d, k0, k1):  # type: ignore[no-untyped-def]
    """Both bands of coefficients ``k0 … k1`` of each line; ``x[:, 0]`` is place ``first``."""
    h = lo.size // 2 - 1
    even = np.empty(BLOCK + h, x.dtype)
    odd = np.empty(BLOCK + h, x.dtype)
    lo_even, lo_odd, hi_even, hi_odd = lo[1::2].copy(), lo[::2].copy(), hi[1::2].copy(), hi[::2].copy()
    for o in range(x.shape[0]):
        for start in range(k0, k1, BLOCK):
            count = min(BLOCK, k1 - start)
            place = 2 * start + 2 - lo.size - first
            line = x[o, place : place + 2 * (count + h)]
            for m in range(count + h):
                even[m] = line[2 * m]
                odd[m] = line[2 * m + 1]
            _filter_pairs(a[o, start : start + count], even, odd, lo_even, lo_odd, h)
            _filter_pairs(d[o, start : start + count], even, odd, hi_even, hi_odd, h)


@_compiled
def _split_row(row, table, signs, first, even, odd):  # type: ignore[no-untyped-def]
    """Even and odd places from ``first`` on; those beyond the ends by the table and its signs."""
    begin = max(0, (1 - first) // 2)
    end = max(begin, min(even.size, (row.size - first) // 2))
    for m in range(begin):
        even[m] = row[table[2 * m]] * signs[2 * m]
        odd[m] = row[table[2 * m + 1]] * signs[2 * m + 1]
    for m in range(end, even.size):
        even[m] = row[table[2 * m]] * signs[2 * m]
        odd[m] = row[table[2 * m + 1]] * signs[2 * m + 1]
    inside = row[2 * begin + first : 2 * end + first]
    even_part, odd_part = even[begin:end], odd[begin:end]
    for m in range(even_part.size):
        even_part[m] = inside[2 * m]
        odd_part[m] = inside[2 * m + 1]


@_compiled
def analyse_plane(  # type: ignore[no-untyped-def]
    x, rows, row_signs, columns, column_signs, first, v_lo, v_hi, h_lo, h_hi, aa, ad, da, dd, k0, k1
):
    """All four bands, rows ``k0 … k1``, in one pass: a finished row is filtered while it is in the cache.

    ``rows`` and ``columns`` say where the places from the first one read lie on the plane, ``first`` is that
    place for columns.
    """
    width, h = x.shape[1], h_lo.size // 2 - 1
    low, high = np.empty(width, x.dtype), np.empty(width, x.dtype)
    even, odd = np.empty(aa.shape[1] + h, x.dtype), np.empty(aa.shape[1] + h, x.dtype)
    lo_taps, hi_taps = np.empty_like(v_lo), np.empty_like(v_hi)
    lo_even, lo_odd = h_lo[1::2].copy(), h_lo[::2].copy()
    hi_even, hi_odd = h_hi[1::2].copy(), h_hi[::2].copy()
    for k in range(k0, k1):
        row = 2 * k + v_lo.size - 1
        for t in range(v_lo.size):
            lo_taps[t] = v_lo[t] * row_signs[row - t]
            hi_taps[t] = v_hi[t] * row_signs[row - t]
        for start in range(0, width, BLOCK):
            stop = min(start + BLOCK, width)
            _filter_table(low[start:stop], x, rows, row, lo_taps, start, stop)
            _filter_table(high[start:stop], x, rows, row, hi_taps, start, stop)
        _split_row(low, columns, column_signs, first, even, odd)
        _filter_pairs(aa[k], even, odd, lo_even, lo_odd, h)
        _filter_pairs(ad[k], even, odd, hi_even, hi_odd, h)
        _split_row(high, columns, column_signs, first, even, odd)
        _filter_pairs(da[k], even, odd, lo_even, lo_odd, h)
        _filter_pairs(dd[k], even, odd, hi_even, hi_odd, h)


@_compiled
def _gather_rows(out, a, d, lo, hi, top, start, stop):  # type: ignore[no-untyped-def]
    """out[start:stop] = Σ lo[j] a[top - j] + hi[j] d[top - j]."""
    part = out[start:stop]
    _start(part, a[top, start:stop], d[top, start:stop], lo[0], hi[0])
    j = 1
    while j + 1 < lo.size:
        _add_two(
            part,
            a[top - j, start:stop],
            d[top - j, start:stop],
            a[top - j - 1, start:stop],
            d[top - j - 1, start:stop],
            lo[j],
            hi[j],
            lo[j + 1],
            hi[j + 1],
        )
        j += 2
    if j < lo.size:
        _add(part, a[top - j, start:stop], d[top - j, start:stop], lo[j], hi[j])


@_compiled
def synthesise_rows(a, d, lo, hi, x, p0, p1):  # type: ignore[no-untyped-def]
    """Rows ``2·p0 … 2·p1`` along the middle axis from both bands."""
    outer, _, inner = a.shape
    h = lo.size // 2 - 1
    lo_even, lo_odd, hi_even, hi_odd = lo[::2].copy(), lo[1::2].copy(), hi[::2].copy(), hi[1::2].copy()
    for o in range(outer):
        for start in range(0, inner, BLOCK):
            stop = min(start + BLOCK, inner)
            for p in range(p0, p1):
                _gather_rows(x[o, 2 * p], a[o], d[o], lo_even, hi_even, p + h, start, stop)
                _gather_rows(x[o, 2 * p + 1], a[o], d[o], lo_odd, hi_odd, p + h, start, stop)


@_compiled
def synthesise_lines(a, d, lo, hi, x, p0, p1):  # type: ignore[no-untyped-def]
    """Samples ``2·p0 … 2·p1`` of each line from both bands."""
    h = lo.size // 2 - 1
    even = np.empty(BLOCK, a.dtype)
    odd = np.empty(BLOCK, a.dtype)
    lo_even, lo_odd, hi_even, hi_odd = lo[::2].copy(), lo[1::2].copy(), hi[::2].copy(), hi[1::2].copy()
    for o in range(a.shape[0]):
        for start in range(p0, p1, BLOCK):
            count = min(BLOCK, p1 - start)
            low, high = a[o, start : start + count + h], d[o, start : start + count + h]
            _filter_pairs(even[:count], low, high, lo_even, hi_even, h)
            _filter_pairs(odd[:count], low, high, lo_odd, hi_odd, h)
            line = x[o, 2 * start : 2 * (start + count)]
            for m in range(count):
                line[2 * m] = even[m]
                line[2 * m + 1] = odd[m]
