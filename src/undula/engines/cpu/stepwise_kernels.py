"""Kernels that take one lifting step at a time: they sweep over one band and look into the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["add_rounded", "add_step"]

_stepwise: Any = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})


@_stepwise
def add_step(target, source, offsets, factors, begin, end, border, table, first, last):
    """Add ``Σ factors[t] · source[i + offsets[t]]`` to ``target[i]``, for columns ``first … last``."""
    for outer in range(target.shape[0]):
        if target.shape[2] == 1:
            part = target[outer, begin:end, 0]
            for tap in range(factors.size):
                factor = factors[tap]
                other = source[outer, begin + offsets[tap] : end + offsets[tap], 0]
                for i in range(part.size):
                    part[i] += factor * other[i]
        else:
            for i in range(begin, end):
                row = target[outer, i, first:last]
                for tap in range(factors.size):
                    factor = factors[tap]
                    beside = source[outer, i + offsets[tap], first:last]
                    for j in range(row.size):
                        row[j] += factor * beside[j]
        for number in range(border.size):
            row = target[outer, border[number], first:last]
            for tap in range(factors.size):
                if table[number, tap] >= 0:
                    factor = factors[tap]
                    beside = source[outer, table[number, tap], first:last]
                    for j in range(row.size):
                        row[j] += factor * beside[j]


@_stepwise
def add_rounded(
    target, source, offsets, weights, begin, end, border, table, first, last, offset, shift, sign, least, most
):
    """Add ``sign · ((Σ weight · source + offset) >> shift)`` to integers, clipped to ``least … most``."""
    for outer in range(target.shape[0]):
        for number in range(begin, end + border.size):
            i = number if number < end else border[number - end]
            for j in range(first, last):
                total = offset
                for tap in range(weights.size):
                    at = i + offsets[tap] if number < end else table[number - end, tap]
                    if at >= 0:
                        total += weights[tap] * np.int64(source[outer, at, j])
                value = np.int64(target[outer, i, j]) + sign * (total >> shift)
                target[outer, i, j] = min(max(value, least), most)
