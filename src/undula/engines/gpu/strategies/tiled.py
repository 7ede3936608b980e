"""Two axes at once by a scheme, with tiles of quads in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import ArgumentError
from ....lowering.choose import lifts_precisely
from ....lowering.spec import Task
from ....schemes import SCHEMES
from ....schemes import scheme as named_scheme
from ....wavelets import Wavelet
from ...base import Knobs
from ..emit import tiled
from ..launches import Launch
from .base import Strategy, StrategyCost, Target, Workload, launches_of
from .rowcolumn import ROWCOLUMN

__all__ = ["TILED", "Tiled"]

TILE_QUADS = ((32, 32), (32, 16), (64, 64), (32, 64))  # along and down, in order of preference
MODEL_TILE_QUADS = 32  # along and down a tile in the performance model
MIN_RESULT_QUADS = 4  # along and down a tile, without its halo
MAX_ITEMS = 256  # work items of a group

Tile = tuple[tiled.Quads, tiled.TileGeometry]


class Tiled(Strategy):
    """A group runs a scheme on a tile of quads, with a barrier before each factor that reads neighbours."""

    name = "tiled"
    candidates = tuple(Knobs(tile=tile) for tile in ((32, 32), (32, 16), (64, 16)))
    methods = ()
    methods_note = "which runs schemes"
    needs_two_axes = True

    @property
    def one_axis(self) -> Strategy:
        """The strategy for passes over a single axis."""
        return ROWCOLUMN

    @property
    def with_scheme(self) -> Strategy:
        """The strategy itself, since it runs schemes."""
        return self

    def fits(self, tasks: Sequence[Task], dtype: str, target: Target) -> bool:
        """Return whether a tile can hold the scheme of two axes, in both directions."""
        return all(self.tile(tasks, back, dtype, target) is not None for back in (False, True))

    def misfit(self, tasks: Sequence[Task], dtype: str, target: Target) -> ArgumentError | None:
        """Return an error with the schemes that would fit, unless the axes differ and no scheme was given."""
        periodized = {task.op.periodized for task in tasks}
        if len({task.op.wavelet for task in tasks}) > 1 or len(periodized) > 1:
            if target.scheme == "auto":
                return None
            return ArgumentError(
                f"scheme {target.scheme!r} has one wavelet for both axes, and periodization for both or none"
            )
        possible = [name for name in SCHEMES if self.fits(tasks, dtype, target._replace(scheme=name))]
        names = dict.fromkeys(task.op.wavelet.name for task in tasks)
        asked = "sweldens" if target.scheme == "auto" else target.scheme
        return ArgumentError(
            f"scheme {asked!r} of {', '.join(names)} does not fit into a tile; "
            + (f"those that do: {', '.join(possible)}" if possible else "none does: use strategy 'sliding'")
        )

    def tile(
        self,
        tasks: Sequence[Task],
        back: bool,
        dtype: str,
        target: Target,
        sizes: Sequence[tuple[int, int]] = TILE_QUADS,
    ) -> Tile | None:
        """Return the scheme of two axes and the first of ``sizes`` that fits; None if there is none."""
        down, along = (task.op for task in tasks)
        wavelet, periodized = down.wavelet, down.periodized
        if along.wavelet != wavelet or along.periodized != periodized:
            return None
        name = target.scheme
        if name == "auto":
            name = "sweldens" if lifts_precisely(wavelet, np.dtype(dtype)) else "convolution"
        if name != "convolution" and not lifts_precisely(wavelet, np.dtype(np.float32)):
            return None
        quads = tiled.quads(wavelet, name, periodized, down.family == "lwt", back)
        if quads.terms > tiled.MAX_TERMS:
            return None
        number = "double" if dtype == "float64" else "float"
        for wide, high in [target.knobs.tile] if target.knobs.tile[0] else sizes:
            geometry = tiled.TileGeometry(wide, high, min(MAX_ITEMS, target.limits.items))
            enough = min(geometry.results(quads)) >= MIN_RESULT_QUADS
            if enough and geometry.shared_bytes(quads, number) <= target.limits.shared:
                return quads, geometry
        return None

    def launches(self, workload: Workload, target: Target) -> list[Launch]:
        """Return the launch of one pass."""
        tile = self.tile(workload.tasks, workload.spec.back, workload.samples.dtype, target)
        assert tile is not None, "the axes do not fit into a tile"
        return self.launches_of_tile(workload, tile, target)

    def launches_of_tile(self, workload: Workload, tile: Tile, target: Target) -> list[Launch]:
        """Return the launch of one pass with a given tile."""
        spec, rows, columns = workload.spec, workload.rows, workload.columns
        row_counts, column_counts = workload.row_counts, workload.column_counts
        quads, geometry = tile
        wide, high = geometry.results(quads)
        downwards = -(-quads.range(spec.back, 0, rows, row_counts)[1] // high)
        across = -(-quads.range(spec.back, 1, columns, column_counts)[1] // wide)
        extents = (rows, columns, *row_counts, *column_counts, across, downwards)
        kernel = tiled.emit(spec, quads, geometry, target.dialect)
        groups = across * downwards * workload.planes * spec.channels
        return launches_of(kernel, groups, workload.views, extents)

    def method(self, wavelet: Wavelet, mode: str, method: str, scheme: str, single: bool) -> str:
        """Return ``"filters"`` for the convolution scheme, and ``"lifting"`` for all others."""
        return "filters" if scheme == "convolution" else "lifting"

    def cost(self, axes: int, operations: float, wavelet: Wavelet, scheme: str) -> StrategyCost:
        """Return the cost of a level: that of the scheme, and of halos that are computed twice."""
        if axes != 2:
            return super().cost(axes, operations, wavelet, scheme)
        chosen = named_scheme(wavelet, "sweldens" if scheme == "auto" else scheme)
        (left, right), (above, below) = chosen.halo
        side = MODEL_TILE_QUADS
        rereads = side**2 / max(1, (side - left - right) * (side - above - below))
        return StrategyCost(
            1,
            chosen.operations / 4 * rereads,
            (chosen.reads + chosen.writes) / 4 * rereads,
            chosen.barriers * rereads / (4 * side**2),
            rereads,
        )


TILED = Tiled()
