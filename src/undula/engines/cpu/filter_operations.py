"""Operations on NumPy arrays outside of graphs, by threads; :mod:`.filter_kernels` has their loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..memory import empty
from ..threads import ranges, run, workers

__all__ = ["convolve", "median_magnitude", "rounded"]

Array = NDArray[Any]


def _flat(x: Array) -> Array:
    """Return an array as one line: a view if it is C-contiguous, a copy otherwise."""
    return np.ascontiguousarray(x).reshape(-1)


def median_magnitude(x: Array, least: float = 0.0) -> float:
    """Return the median of the magnitudes above ``least``, ignoring NaNs and infinities; 0 if there are none.

    Magnitudes are counted by their leading bits first; only those around the median are sorted.
    """
    from . import filter_kernels

    source = _flat(x)
    integer_type: Any = np.int32 if source.dtype == np.float32 else np.int64
    bits = source.view(integer_type)
    shift = integer_type(8 * source.itemsize - 13)
    mask, most = integer_type(np.iinfo(integer_type).max), source.dtype.type(np.inf).view(integer_type)
    start = integer_type(min(int(source.dtype.type(least).view(integer_type)) + 1, int(most)))
    counts: list[NDArray[np.int32]] = []
    gathered: list[Array] = []

    def count(begin: int, end: int) -> None:
        piece_counts = np.zeros((2, (1 << 12) + 1), np.int32)
        filter_kernels.tally(bits, begin, end, shift, mask, start, most, piece_counts)
        counts.append(piece_counts.sum(axis=0))

    def gather(begin: int, end: int) -> None:
        candidates = np.empty(inside, integer_type)
        gathered.append(candidates[: filter_kernels.gather(bits, begin, end, low, high, mask, candidates)])

    pieces = ranges(source.size, workers(4 * source.size))
    run(count, pieces)
    total = counts[0] if len(counts) == 1 else np.sum(counts, axis=0)
    upto = np.cumsum(total[:-1])
    known = int(upto[-1])
    if known == 0:
        return 0.0
    first, last = (int(np.searchsorted(upto, k, "right")) for k in ((known - 1) // 2, known // 2))
    inside = int(upto[last] - upto[first] + total[first])
    low = integer_type(max(int(start), first << int(shift)))
    high = integer_type(min((last + 1) << int(shift), int(most)))
    run(gather, pieces)
    candidates = gathered[0] if len(gathered) == 1 else np.concatenate(gathered)
    before = int(upto[first] - total[first])
    places = [(known - 1) // 2 - before, known // 2 - before]
    candidates.partition(sorted(set(places)))
    middle = candidates[places].view(source.dtype)
    return (float(middle[0]) + float(middle[1])) / 2


def _planes(planes: int, rows: int, samples: int) -> Iterator[tuple[int, int, int, int]]:
    """Divide planes among threads: some planes each or, if there are few planes, some rows of all."""
    threads = workers(samples)
    if planes >= threads:
        for first, last in ranges(planes, threads):
            yield first, last, 0, rows
    else:
        for begin, end in ranges(rows, threads):
            yield 0, planes, begin, end


def rounded(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return floats as integers of up to 32 bits: rounded, and clipped to the range of the dtype."""
    from . import filter_kernels

    out = empty(x.shape, dtype)
    info = np.iinfo(dtype)
    # The largest float that is not beyond the largest integer.
    most = x.dtype.type(info.max)
    if int(most) > info.max:
        most = np.nextafter(most, x.dtype.type(0))
    source, target = _flat(x), out.reshape(-1)
    pieces = ranges(source.size, workers(source.size))
    run(filter_kernels.rounded, [(source, target, b, e, x.dtype.type(info.min), most) for b, e in pieces])
    return out


def convolve(x: Array, taps: Array, axes: Sequence[int] = (0, 1)) -> Array:
    """Convolve planes ``(P, H, W)`` with symmetric taps along rows (axis 0) and down columns (axis 1).

    Borders are mirrored.
    """
    from . import filter_kernels

    typed_taps = taps.astype(x.dtype)
    pieces = list(_planes(x.shape[0], x.shape[1], x.size))
    for axis in axes:
        out = empty(x.shape, x.dtype)
        run(filter_kernels.convolve_rows, [(x, out, *piece, typed_taps, axis == 1) for piece in pieces])
        x = out
    return x
