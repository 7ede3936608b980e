"""Collaborative filtering of volumes on the CPU.

Layers of references are filtered in bands of rows. Blocks are added to the sums of the whole volume, so bands
run at the same time only if they write to other samples: those of every second band, of layers that are
further apart than blocks of groups reach. So the order in which blocks are added, and every bit of the
result, is the same for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...lowering.collaborative import CUBE, CUBE_STEPS
from ..memory import empty
from ..threads import ranges, run
from .collaborative import FilterStep, FilterTile
from .executable import address
from .machine_code import kernel

__all__ = ["VolumeStep"]

Array = NDArray[Any]

FLOAT = np.dtype(np.float32)
BAND = 16  # rows of references
MAX_COLUMNS = 31  # references of a row of a tile: the samples around it then fit into a cache
SLAB = 8  # layers that a thread divides by their weights at a time


class VolumeStep(FilterStep):
    """A step of the filter of volumes."""

    kernel_name = "filter_cubes"
    layers, cell_rows, cells = CUBE, CUBE_STEPS[0], 2
    order = (2, 0, 1)
    cleared = False

    def run(self, sums: Array, result: Array) -> None:
        """Write the filtered volumes; ``sums`` are memory for this."""
        planes, depth, rows, columns = self.noisy.shape
        radius, step = self.profile.radius, self.profile.layer_step
        slabs = ranges(depth, -(-depth // SLAB))
        run(lambda begin, end: sums[:, :, begin:end].fill(0), slabs)
        down, across = rows // CUBE_STEPS[0] - 1, columns // CUBE_STEPS[1]
        assert CUBE_STEPS[0] * BAND > 2 * radius + CUBE
        bands = [(begin, min(begin + BAND, down)) for begin in range(0, down, BAND)]
        pieces = ranges(across, -(-across // MAX_COLUMNS))

        def filter_band(layer: int, begin: int, end: int) -> None:
            for left, right in pieces:
                place = (layer, CUBE_STEPS[0] * begin, CUBE_STEPS[1] * left)
                self.filter(FilterTile(begin, end, right - left, place, sums, place))

        layers = range(0, depth - CUBE + 1, step)
        period = -(-(2 * radius + CUBE) // step)
        for first in range(min(period, len(layers))):
            for parity in range(min(2, len(bands))):
                run(filter_band, [(z, *band) for z in layers[first::period] for band in bands[parity::2]])

        def weigh(begin: int, end: int) -> None:
            scratch = empty(((end - begin + CUBE) * rows, columns), FLOAT)
            for plane in range(planes):
                places = (address(sums[0, plane]), address(sums[1, plane]), address(result[plane]))
                kernel("weigh_layers", "float32")(
                    *places, *result.strides[1:3], begin, end, rows, columns, address(scratch)
                )

        run(weigh, slabs)
