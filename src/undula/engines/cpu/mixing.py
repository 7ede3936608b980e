"""Planes that are sums of interleaved channels: colours, or samples of another type; rows in fragments."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...lowering.mixing import Mixing, RowFragments
from ..threads import ranges, run, workers
from .executable import address
from .kernel_layout import MIX_CHANNELS
from .machine_code import kernel

__all__ = ["fragments_table", "join_channels", "mix_planes", "mixing_table"]

Array = NDArray[Any]


@lru_cache(maxsize=64)
def mixing_table(mixing: Mixing, size: int, floats: bool) -> NDArray[np.int64]:
    """Return a mixing as the table that kernels read."""
    channels = len(mixing.weights[0])
    table = np.zeros(2 + 6 * mixing.planes, np.int64)
    table[MIX_CHANNELS : MIX_CHANNELS + 2] = channels, size
    numbers = table[2:].view(np.float64 if floats else np.int64).reshape(mixing.planes, 6)
    for row, weights, offset, shift in zip(
        numbers, mixing.weights, mixing.offsets, mixing.shifts, strict=True
    ):
        scale = 2.0**-shift if floats else 1
        row[:channels] = [weight * scale for weight in weights]
        row[4] = 0 if floats and shift else offset * scale
        row[5] = shift
    return table


@lru_cache(maxsize=64)
def fragments_table(fragments: RowFragments) -> NDArray[np.int64]:
    """Return the lengths of fragments as the table that kernels read."""
    return np.array([0, len(fragments.counts), *fragments.counts], np.int64)


def mix_planes(image: Array, mixing: Mixing, out: Array) -> None:
    """Mix the channels of an image ``(H, W, C)`` to planes ``(P, H, W)``, both C-contiguous."""
    rows, width = image.shape[:2]
    work = kernel("mix_planes", str(out.dtype))
    table = mixing_table(mixing, image.itemsize, out.dtype.kind == "f")

    def mix_rows(begin: int, end: int) -> None:
        parameters = np.array(
            [
                address(image) + begin * image.strides[0], image.strides[0],
                address(out) + begin * out.strides[1], out.strides[0], out.strides[1],
                mixing.planes, end - begin, width, address(table),
            ],
            np.int64,
        )  # fmt: skip
        work(address(parameters))

    run(mix_rows, list(ranges(rows, workers(out.size))))


def join_channels(planes: Array, out: Array, matrix: NDArray[np.float64] | None) -> None:
    """Join planes ``(P, H, W)`` to channels ``(H, W, P)``: by a matrix, or reversibly if it is None."""
    from .color_kernels import join_matrix, join_reversible

    most = int(np.iinfo(out.dtype).max)
    work, rest = (join_reversible, ()) if matrix is None else (join_matrix, (matrix,))
    pieces = ranges(out.shape[0], workers(out.size))
    run(work, [(planes, out, begin, end, most, *rest) for begin, end in pieces])
