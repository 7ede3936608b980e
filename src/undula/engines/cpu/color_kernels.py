"""Compiled loops that join planes to interleaved channels, rounded and clipped to what a channel holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["join_matrix", "join_reversible"]

_compiled: Any = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})


@_compiled
def _woven(row, out):
    """Interleave three rows of integers as channels."""
    for j in range(out.shape[0]):
        out[j, 0] = row[0, j]
        out[j, 1] = row[1, j]
        out[j, 2] = row[2, j]


@_compiled
def join_reversible(planes, out, begin, end, most):
    """Join planes of the reversible colour space: ⌊(R + 2G + B)/4⌋, B - G and R - G."""
    # Compilers vectorize rows of planes, so channels are interleaved afterwards.
    row = np.empty((3, out.shape[1]), out.dtype)
    red, green, blue = row[0], row[1], row[2]
    for i in range(begin, end):
        luma, first, second = planes[0, i], planes[1, i], planes[2, i]
        for j in range(out.shape[1]):
            u, v = np.int32(first[j]), np.int32(second[j])
            middle = np.int32(luma[j]) - ((u + v) >> 2)
            red[j] = min(max(v + middle, 0), most)
            green[j] = min(max(middle, 0), most)
            blue[j] = min(max(u + middle, 0), most)
        _woven(row, out[i])
        for channel in range(3, out.shape[2]):
            for j in range(out.shape[1]):
                out[i, j, channel] = min(max(np.int64(planes[channel, i, j]), 0), most)


@_compiled
def join_matrix(planes, out, begin, end, most, matrix):
    """Join planes of any other colour space: each channel is a weighted sum of planes, rounded."""
    row = np.empty((3, out.shape[1]), out.dtype)
    top = planes.dtype.type(most)
    zero, half = planes.dtype.type(0), planes.dtype.type(0.5)
    for i in range(begin, end):
        first, second, third = planes[0, i], planes[1, i], planes[2, i]
        for channel in range(3):
            a = planes.dtype.type(matrix[channel, 0])
            b = planes.dtype.type(matrix[channel, 1])
            c = planes.dtype.type(matrix[channel, 2])
            line = row[channel]
            for j in range(out.shape[1]):
                value = a * first[j] + b * second[j] + c * third[j]
                line[j] = np.int32(min(max(value + half, zero), top + half))
        _woven(row, out[i])
        for channel in range(3, out.shape[2]):
            for j in range(out.shape[1]):
                value = np.floor(float(planes[channel, i, j]) + 0.5)
                out[i, j, channel] = np.int64(min(max(value, 0.0), float(most)))
