"""What the kernels of both directions do to one row, or to one pair of rows."""

from __future__ import annotations

from typing import Any

from numba import njit

from .kernel_layout import (
    BAND_PLANE,
    BANDS,
    BUFFER,
    CHUNK,
    HALF,
    JOIN,
    MIX_BYTES,
    MIX_CHANNELS,
    ONE,
    ORIGIN,
    SCRATCH,
    SLOT,
    SPLIT,
    X_PLANE,
    ZERO,
    X,
)
from .simd import (
    columns_join,
    columns_plain,
    columns_split,
    copy,
    factors_of,
    join,
    mix,
    peek,
    poke,
    split,
    steps,
    whereis,
)

__all__ = [
    "compiled",
    "down_columns",
    "halves",
    "join_row",
    "lift",
    "mix_row",
    "next_plane",
    "room_for",
    "scratch_of",
    "split_row",
    "zero_row",
]

split1, split2 = columns_split[1], columns_split[2]
plain1, plain2 = columns_plain[1], columns_plain[2]
join1, join2 = columns_join[1], columns_join[2]
mix1_1, mix3_1, mix4_1 = mix[1, 1], mix[3, 1], mix[4, 1]
mix1_2, mix3_2, mix4_2 = mix[1, 2], mix[3, 2], mix[4, 2]

# Nobody calls these from Python by way of Numba, so they need none of its wrappers.
compiled: Any = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@compiled
def room_for(step, size):
    """Return how many places of a row are lifted at a time, and the bytes of a half of them."""
    chunk = max(1, CHUNK * size // step)
    return chunk, (chunk + 4) * step


@compiled
def lift(b, a, step, pairs, numbers, out_b, out_a, begin, end, scale_b, scale_a, buffer):
    """Compute results ``begin … end`` of all steps along a row; sample i of a half is at ``b + i·step``."""
    n = step // numbers.itemsize
    unit = numbers[ONE]
    chunk, room = room_for(step, numbers.itemsize)
    factors = factors_of(numbers)
    further = 2 * numbers.itemsize if factors == whereis(numbers) else 2 * 3 * 8  # bytes of two steps
    for k in range(begin, end, chunk):
        count = min(chunk, end - k)
        at = k * step
        if pairs == 1:
            steps(
                b + at, a + at, step, out_b + at, out_a + at, count * n,
                factors, factors, scale_b, scale_a,
            )  # fmt: skip
        else:
            before = at - step
            steps(
                b + before, a + before, step, buffer, buffer + room, (count + 2) * n,
                factors, factors, unit, unit,
            )  # fmt: skip
            steps(
                buffer + step, buffer + room + 2 * step, step, out_b + at, out_a + at, count * n,
                factors + further, factors, scale_b, scale_a,
            )  # fmt: skip


@compiled
def halves(place, even, odd, step):
    """Return where the samples at ``place`` and at the next place begin, which steps change by turns."""
    if place % 2 == 0:
        return even + (place // 2) * step, odd + (place // 2) * step
    return odd + (place // 2) * step, even + (place // 2 + 1) * step


@compiled
def split_row(row, even, odd, places, channels, like):
    """Split a row into its even and its odd places."""
    size = like.itemsize
    unit = like[0]
    pairs = places // 2
    if channels == 1:
        split(row, even, odd, pairs, unit)
        if places % 2:
            poke(even + pairs * size, peek(row + 2 * pairs * size, unit), unit)
        return
    step = channels * size
    for k in range(places):
        side = odd if k % 2 else even
        if channels == 2 or channels == 3:
            for j in range(channels):
                poke(side + (k // 2) * step + j * size, peek(row + k * step + j * size, unit), unit)
        else:
            copy(side + (k // 2) * step, row + k * step, channels, unit)


@compiled
def join_row(even, odd, row, places, channels, like):
    """Join the halves of a row: the inverse of :func:`split_row`."""
    size = like.itemsize
    unit = like[0]
    pairs = places // 2
    if channels == 1:
        join(even, odd, row, pairs, unit)
        if places % 2:
            poke(row + 2 * pairs * size, peek(even + pairs * size, unit), unit)
        return
    step = channels * size
    for k in range(places):
        side = odd if k % 2 else even
        if channels == 2 or channels == 3:
            for j in range(channels):
                poke(row + k * step + j * size, peek(side + (k // 2) * step + j * size, unit), unit)
        else:
            copy(row + k * step, side + (k // 2) * step, channels, unit)


@compiled
def zero_row(row, count, like):
    """Fill a row with zeros."""
    for k in range(count):
        poke(row + k * like.itemsize, like[ZERO], like[0])


@compiled
def down_columns(pairs, layout, b, a, a1, states, slot, half, out_b, out_a, n, numbers, scales):
    """Run the steps down the columns for one more pair of rows, by the loop for this layout."""
    f = factors_of(numbers)
    s0, s1, s2, s3 = scales
    if layout == SPLIT:
        if pairs == 1:
            split1(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)
        else:
            split2(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)
    elif layout == JOIN:
        if pairs == 1:
            join1(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)
        else:
            join2(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)
    elif pairs == 1:
        plain1(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)
    else:
        plain2(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)


@compiled
def mix_row(how, table, source, target, count, like):
    """Compute a row of samples from a row of interleaved channels."""
    channels, size = how[MIX_CHANNELS], how[MIX_BYTES]
    if size == 1:
        if channels == 1:
            mix1_1(source, target, count, table, like)
        elif channels == 3:
            mix3_1(source, target, count, table, like)
        else:
            mix4_1(source, target, count, table, like)
    elif channels == 1:
        mix1_2(source, target, count, table, like)
    elif channels == 3:
        mix3_2(source, target, count, table, like)
    else:
        mix4_2(source, target, count, table, like)


@compiled
def scratch_of(arguments):
    """Return where scratch memory is."""
    return (
        arguments[SCRATCH], arguments[SLOT], arguments[HALF], arguments[ORIGIN], arguments[BUFFER]
    )  # fmt: skip


@compiled
def next_plane(arguments):
    """Move all addresses on by one plane."""
    arguments[X] += arguments[X_PLANE]
    for band in range(4):
        arguments[BANDS + band] += arguments[BAND_PLANE + band]
