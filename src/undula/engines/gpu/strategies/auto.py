"""The default: sliding, and tiles for levels that are too small to fill a device with strips."""

from __future__ import annotations

import math

from ..launches import Launch
from .base import Strategy, Target, Workload
from .sliding import Sliding
from .tiled import TILED

__all__ = ["AUTO", "Auto"]

MAX_TILED_QUADS_PER_UNIT = 512  # Up to so many, tiles are faster, since they have no long loops.
SMALL_TILE_QUADS = ((16, 16), (32, 16))  # along and down, in order of preference


class Auto(Sliding):
    """Sliding, or tiles for small levels on a GPU."""

    name = "auto"

    @property
    def with_scheme(self) -> Strategy:
        """The tiled strategy."""
        return TILED

    def launches(self, workload: Workload, target: Target) -> list[Launch]:
        """Return the launches of one pass."""
        spec, samples = workload.spec, workload.samples
        has_colors = spec.mixing is not None or spec.unmixing is not None
        if spec.down and spec.along and any(spec.down.reach) and spec.number != "int" and not has_colors:
            small = math.prod(samples.shape) // 4 <= MAX_TILED_QUADS_PER_UNIT * target.limits.units
            if small and target.limits.gpu and target.method == "auto":
                tile = TILED.tile(workload.tasks, spec.back, samples.dtype, target, SMALL_TILE_QUADS)
                if tile is not None:
                    return TILED.launches_of_tile(workload, tile, target)
        return super().launches(workload, target)


AUTO = Auto()
