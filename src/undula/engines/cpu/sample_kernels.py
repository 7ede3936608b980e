"""Kernels on samples outside of transforms: planes mixed from channels, and the largest magnitudes."""

from __future__ import annotations

from numba import int64

from .kernel_layout import MIX_PLANE, MIX_TABLE
from .rows import compiled, mix_row
from .simd import extremes, reals, words

__all__ = ["find_largest", "mix_planes"]


@compiled
def mix_planes(parameters, like):
    """Compute rows of planes from interleaved channels."""
    values = words(parameters)
    x, x_row, out, out_plane, out_row = values[0], values[1], values[2], values[3], values[4]
    planes, rows, width, how = values[5], values[6], values[7], values[8]
    for row in range(rows):
        for plane in range(planes):
            table = how + MIX_TABLE + plane * MIX_PLANE
            target = out + plane * out_plane + row * out_row
            mix_row(words(how), table, x + row * x_row, target, width, like)


@compiled
def find_largest(table, out, scratch, count, like):
    """Find the largest magnitude of integers: a table has addresses, each with a count."""
    table = words(table)
    out = words(out)
    ends = reals(scratch, like)
    lanes = 32 // ends.itemsize
    for number in range(count):
        extremes(table[2 * number], scratch, table[2 * number + 1], like)
        most = max(int64(0), -int64(ends[2 * lanes]), int64(ends[2 * lanes + 1]))
        for lane in range(lanes):
            most = max(most, -int64(ends[lane]), int64(ends[lanes + lane]))
        out[number] = most
