"""Planes back to interleaved channels: rounded, cut to what a channel holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["join_matrix", "join_reversible"]

_compiled: Any = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})


@_compiled
def join_reversible(planes, out, begin, end, most):
    """Of the reversible space: the planes are ⌊(R + 2G + B)/4⌋, B - G and R - G."""
    for i in range(begin, end):
        for j in range(out.shape[1]):
            u, v = np.int64(planes[1, i, j]), np.int64(planes[2, i, j])
            green = np.int64(planes[0, i, j]) - ((u + v) >> 2)
            out[i, j, 0] = min(max(v + green, 0), most)
            out[i, j, 1] = min(max(green, 0), most)
            out[i, j, 2] = min(max(u + green, 0), most)
        for channel in range(3, out.shape[2]):
            for j in range(out.shape[1]):
                out[i, j, channel] = min(max(np.int64(planes[channel, i, j]), 0), most)


@_compiled
def join_matrix(planes, out, begin, end, most, matrix):
    """Of any other: each channel is a sum of planes, rounded."""
    for i in range(begin, end):
        for j in range(out.shape[1]):
            y, u, v = planes[0, i, j], planes[1, i, j], planes[2, i, j]
            for channel in range(3):
                value = matrix[channel, 0] * y + matrix[channel, 1] * u + matrix[channel, 2] * v
                out[i, j, channel] = np.int64(min(max(np.floor(value + 0.5), 0.0), float(most)))
        for channel in range(3, out.shape[2]):
            for j in range(out.shape[1]):
                value = np.floor(float(planes[channel, i, j]) + 0.5)
                out[i, j, channel] = np.int64(min(max(value, 0.0), float(most)))
