"""Compiled loops on arrays outside of graphs: medians, rounding, convolutions.

Arrays are C-contiguous. No branch depends on a sample, so that the compiler can vectorize the loops.
Pipelines use kernels that are generated from expressions instead; see :mod:`.graphs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["convolve_rows", "gather", "rounded", "tally"]

_compiled: Any = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
_exactly: Any = njit(nogil=True, cache=True, error_model="numpy")


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


@_exactly
def rounded(x, out, begin, end, least, most):
    """Clip samples ``begin … end`` to ``least`` and ``most``, and round them, halves to the even integer."""
    source, target = x[begin:end], out[begin:end]
    for i in range(len(source)):
        target[i] = out.dtype.type(np.rint(min(max(source[i], least), most)))


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
