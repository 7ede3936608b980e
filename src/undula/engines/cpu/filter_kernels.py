"""Compiled loops of filters, which change coefficients between a decomposition and a reconstruction.

Arrays are C-contiguous. No branch depends on a sample, so that the compiler can vectorize the loops:

    soft      x - min(max(x, -t), t)
    local     x · max(0, 1 - k·s²/√(v·m)),  v = max(e - s², tiny),  m = x² + q·parent²   (bivariate)
              x · max(0, 1 - k·s²/e)                                                     (block)

with e the mean of x² in a window, s the noise, k the strength, and q the weight of the parent. Sums over a
window are taken down the columns first, and then along the row of these sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .simd import reals

__all__ = [
    "add_shifted",
    "convolve_rows",
    "gather",
    "local",
    "rounded",
    "shrink_all",
    "squares_all",
    "tally",
]

_compiled: Any = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
_exactly: Any = njit(nogil=True, cache=True, error_model="numpy")

PIECE = 2048  # Samples that fit into the first-level cache.


@_compiled
def shrink_all(table, thresholds, rule, like):
    """Apply a rule to samples at addresses: each row of the table is a source, a target and a count.

    Each row of ``thresholds`` has two thresholds; the second one is for ``firm``.
    """
    # Sources may be targets, which would prevent vectorization; the block in between never is.
    block = np.empty(PIECE, reals(table[0, 0], like).dtype)
    for row in range(len(table)):
        x, out = reals(table[row, 0], like), reals(table[row, 1], like)
        for begin in range(0, table[row, 2], PIECE):
            count = min(PIECE, table[row, 2] - begin)
            source = x[begin : begin + count]  # Indices from 0 need no check of their sign.
            for i in range(count):
                block[i] = source[i]
            _shrink(block, out[begin : begin + count], count, rule, thresholds[row, 0], thresholds[row, 1])


@_compiled
def _shrink(x, out, count, rule, low, high):
    t = x.dtype.type(low)
    zero = x.dtype.type(0)
    if rule == 0:  # soft
        for i in range(count):
            out[i] = x[i] - min(max(x[i], -t), t)
    elif rule == 1:  # hard
        for i in range(count):
            out[i] = x[i] if abs(x[i]) >= t else zero
    elif rule == 2:  # garrote
        square = t * t
        for i in range(count):
            v = x[i]
            out[i] = v - square / v if abs(v) > t else zero
    elif rule == 3:  # firm
        top = x.dtype.type(high)
        slope = x.dtype.type(high / max(high - low, 1e-30))
        for i in range(count):
            v = x[i]
            m = abs(v)
            spread = max(m - t, zero) * slope
            size = m if m > top else spread
            out[i] = size if v >= zero else -size
    elif rule == 4:  # greater
        for i in range(count):
            out[i] = x[i] if x[i] >= t else zero
    elif rule == 5:  # less
        for i in range(count):
            out[i] = x[i] if x[i] <= t else zero
    else:  # gain
        for i in range(count):
            out[i] = x[i] * t


@_compiled
def squares_all(table, out, like):
    """Sum the squares of samples at addresses: each row of the table is an address and a count.

    Sums are taken in pieces, and in float64, because squares easily leave the range of float32.
    """
    for row in range(len(table)):
        x = reals(table[row, 0], like)
        count = table[row, 1]
        total = 0.0
        for start in range(0, count, 1024):
            part = 0.0
            block = x[start : min(start + 1024, count)]
            for i in range(len(block)):
                part += np.float64(block[i]) * np.float64(block[i])
            total += part
        out[row] = total


@_exactly
def tally(bits, begin, end, shift, mask, least, most, counts):
    """Count magnitudes, given as bits, by their leading bits; the last count is that of all ignored ones.

    ``mask`` removes the sign. Bits from ``least`` and below ``most`` are counted, others are ignored. Even
    and odd samples are counted separately, so that no increment waits for the previous one.
    """
    last = np.uint32(counts.shape[1] - 1)
    block = bits[begin:end]
    even_counts, odd_counts = counts[0], counts[1]
    for i in range(len(block) // 2):
        first, second = block[2 * i] & mask, block[2 * i + 1] & mask
        even_counts[np.uint32(first >> shift) if least <= first < most else last] += 1
        odd_counts[np.uint32(second >> shift) if least <= second < most else last] += 1
    if len(block) % 2:
        first = block[len(block) - 1] & mask
        even_counts[np.uint32(first >> shift) if least <= first < most else last] += 1


@_exactly
def gather(bits, begin, end, low, high, mask, out):
    """Write the magnitudes from ``low`` and below ``high``, as bits, to ``out``; return their number."""
    gathered = np.uint64(0)
    block = bits[begin:end]
    for i in range(len(block)):
        magnitude = block[i] & mask
        if low <= magnitude < high:
            out[gathered] = magnitude
            gathered += np.uint64(1)
    return gathered


@_exactly
def _mirrored(index, count):
    """Mirror an index beyond the ends of a line back into it, repeating the last sample."""
    period = 2 * count
    index = index % period
    return index if index < count else period - 1 - index


@_compiled
def _doubled(line, out, offset):
    """Write ``line[(i + offset) // 2]`` to ``out[i]``; the last sample stands for those beyond it."""
    count = len(out)
    last = line[len(line) - 1]
    for j in range(count):
        out[j] = last
    even = out[offset % 2 :]
    pairs = min(len(line) - (offset + 1) // 2, len(even) // 2)
    block = line[(offset + 1) // 2 :]
    for k in range(max(pairs, 0)):
        even[2 * k] = block[k]
        even[2 * k + 1] = block[k]
    if offset % 2 and count:
        out[0] = line[min(offset // 2, len(line) - 1)]
    if len(even) % 2 and 0 <= pairs < len(block) and 2 * pairs < len(even):
        even[2 * pairs] = block[pairs]


@_compiled
def local(x, parents, out, first, last, begin, end, radius, bivariate, noise, factor, weight, offset):
    """Shrink each coefficient in rows ``begin … end`` of planes ``first … last`` by its neighbours.

    ``parents`` has the planes of the next coarser level, or none. The parent of the coefficient ``(i, j)`` is
    the one at ``((i + offset) // 2, (j + offset) // 2)``.
    """
    rows, columns = x.shape[1], x.shape[2]
    kind = x.dtype.type
    width = 2 * radius + 1
    share = kind(1.0 / (width * width))
    # Coefficients are measured in units of the noise, so that squares of squares neither overflow nor vanish.
    unit = kind(1.0 / noise)
    amount = kind(factor)
    tiny = kind(1e-6)
    heavy = kind(weight)
    sums = np.empty(columns + 2 * radius, x.dtype)
    middle = sums[radius : radius + columns]  # Indices from 0 need no check of their sign.
    energy = np.empty(columns, x.dtype)
    above = np.zeros(columns, x.dtype)
    has_parents = parents.shape[0] > 0
    for plane in range(first, last):
        known = -1
        for row in range(begin, end):
            for down in range(row - radius, row + radius + 1):
                source = x[plane, down if 0 <= down < rows else _mirrored(down, rows)]
                if down == row - radius:
                    for j in range(columns):
                        scaled = source[j] * unit
                        middle[j] = scaled * scaled
                else:
                    for j in range(columns):
                        scaled = source[j] * unit
                        middle[j] += scaled * scaled
            for k in range(radius):
                sums[radius - 1 - k] = middle[_mirrored(-1 - k, columns)]
                sums[radius + columns + k] = middle[_mirrored(columns + k, columns)]
            if radius == 3:
                a, b, c, d = sums[:columns], sums[1:], sums[2:], sums[3:]
                e, f, g = sums[4:], sums[5:], sums[6:]
                for j in range(columns):
                    energy[j] = ((a[j] + b[j]) + (c[j] + d[j])) + ((e[j] + f[j]) + g[j])
            else:
                for j in range(columns):
                    energy[j] = sums[j]
                for k in range(1, width):
                    part = sums[k : k + columns]
                    for j in range(columns):
                        energy[j] += part[j]
            if has_parents and (row + offset) // 2 != known:
                known = (row + offset) // 2
                _doubled(parents[plane, min(known, parents.shape[1] - 1)], above, offset)
            values, target = x[plane, row], out[plane, row]
            if bivariate:
                for j in range(columns):
                    v, up = values[j] * unit, above[j] * unit
                    var = max(energy[j] * share - kind(1), tiny)
                    size = v * v + heavy * up * up + tiny
                    target[j] = values[j] * max(kind(1) - amount / np.sqrt(var * size), kind(0))
            else:
                for j in range(columns):
                    target[j] = values[j] * max(kind(1) - amount / (energy[j] * share + tiny), kind(0))


@_exactly
def rounded(x, out, begin, end, least, most):
    """Clip samples ``begin … end`` to ``least`` and ``most``, and round them, halves to the even integer."""
    source, target = x[begin:end], out[begin:end]
    for i in range(len(source)):
        target[i] = out.dtype.type(np.rint(min(max(source[i], least), most)))


@_compiled
def add_shifted(x, out, first, last, down, along, scale):
    """Add planes, from their sample ``(down, along)`` on, to planes ``out``.

    With ``scale``, divide each sum by the number of shifts that cover the sample; see ``filters.shifts``.
    """
    rows, columns = x.shape[1] - down, x.shape[2] - along
    for plane in range(first, last):
        for i in range(rows):
            source, target = x[plane, i + down, along:], out[plane, i]
            for j in range(columns):
                target[j] += source[j]
    if scale:
        quarter, half = out.dtype.type(0.25), out.dtype.type(0.5)
        height, width = out.shape[1], out.shape[2]
        for plane in range(first, last):
            for i in range(height):
                weight = half if i == height - 1 else quarter
                target = out[plane, i]
                for j in range(width):
                    target[j] *= weight
                target[width - 1] *= out.dtype.type(2)


@_compiled
def convolve_rows(x, out, first, last, begin, end, taps, down):
    """Convolve rows ``begin … end`` of planes with symmetric taps down the columns or along the rows."""
    rows, columns = x.shape[1], x.shape[2]
    radius = (len(taps) - 1) // 2
    line = np.empty(columns + 2 * radius, x.dtype)
    middle = line[radius : radius + columns]
    for plane in range(first, last):
        for i in range(begin, end):
            source, target = x[plane, i], out[plane, i]
            tap = taps[radius]
            for j in range(columns):
                target[j] = tap * source[j]
            if down:
                for k in range(1, radius + 1):
                    tap = taps[radius + k]
                    above, below = x[plane, _mirrored(i - k, rows)], x[plane, _mirrored(i + k, rows)]
                    for j in range(columns):
                        target[j] += tap * (above[j] + below[j])
            else:
                for j in range(columns):
                    middle[j] = source[j]
                for k in range(radius):
                    line[radius - 1 - k] = source[_mirrored(-1 - k, columns)]
                    line[radius + columns + k] = source[_mirrored(columns + k, columns)]
                for k in range(1, radius + 1):
                    tap = taps[radius + k]
                    left, right = line[radius - k :], line[radius + k :]
                    for j in range(columns):
                        target[j] += tap * (left[j] + right[j])
