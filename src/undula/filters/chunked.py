"""Pipelines on Dask arrays: each block of an image is filtered in a window around it.

Statistics of the image are computed first, each by a task for each block and one that joins their results.
They do not depend on the chunks. See :mod:`.windows` for what the tasks compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.delayed import Delayed
from dask.graph_manipulation import bind
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from ..engines.base import engine
from ..engines.chunked.sources import ChunkReader, Key, named
from ..engines.chunked.transforms import as_chunked
from ..errors import ArgumentError
from .pipeline import Pipeline
from .planes import GivenImage
from .statistics import Statistic
from .windows import FilterPlan, StatisticPass, numbered

__all__ = ["filter_chunks", "plan_of"]

MAX_JOINED = 32  # Results of blocks that one task joins.
MAX_KEPT_BYTES = 4 << 30  # Of images that Dask keeps from one pass to the next.


def filter_chunks(
    pipeline: Pipeline,
    x: Any,
    sigma: Any,
    channel_axis: int | str | None,
    axes: Sequence[int] | None,
    backend: str,
    refused: dict[str, Any],
) -> Any:
    """Return a filtered Dask array; nothing is computed yet.

    Parameters
    ----------
    pipeline : Pipeline
    x : dask.array.Array
    sigma, channel_axis, axes, backend
        As for :meth:`Pipeline.__call__`.
    refused : dict
        Arguments that are for arrays in memory only; None for those that were not passed.
    """
    for name, value in refused.items():
        if value is not None:
            raise ArgumentError(
                f"{name} is for arrays in memory; omit it for Dask arrays, or call compute() first"
            )
    if pipeline.speckle == "log":
        raise ArgumentError(
            "kind='log' looks for the dark background of an image, which needs it in memory; call compute()"
            " first, or filter a Dask array with denoise(…, method='block')"
        )
    if any("result" in stage.places() for stage in pipeline.stages):
        raise ArgumentError(
            "collaborative and directional filtering need the image or volume in memory; call compute()"
            " first, or filter a Dask array with quality='fast' and another method, such as 'bivariate'"
        )
    engine(backend)  # An error for unknown ones.
    source = x.name
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    if x.size and any(0 in lengths for lengths in x.chunks):
        x = x.rechunk(tuple(tuple(n for n in lengths if n) for lengths in x.chunks))
    layout = GivenImage(x, channel_axis, axes, pipeline.colors).layout
    if layout.channel is not None:
        x = x.rechunk({layout.channel: -1})
    return _ChunkedFilter(FilterPlan(pipeline, sigma, layout, backend), x, source).result()


class _FilterLayer(MaterializedLayer):
    """The tasks of the blocks of a filtered array, and what they were made from."""

    def __init__(self, tasks: Mapping[Key, Any], plan: FilterPlan, source: str) -> None:
        super().__init__(tasks)
        self.plan, self.source = plan, source


def plan_of(result: Any, name: str) -> FilterPlan | None:
    """Return how a Dask array is a filter of the one of this name; None if it is anything else."""
    layer = result.dask.layers.get(result.name)
    return layer.plan if isinstance(layer, _FilterLayer) and layer.source == name else None


class _ChunkedFilter:
    """The tasks that filter a Dask array."""

    def __init__(self, plan: FilterPlan, x: Any, given: str) -> None:
        self.plan, self.x, self.given = plan, x, given
        self.source = as_chunked(x)
        key = tokenize(plan.pipeline, x.name, plan.sigma, plan.layout, plan.backend)
        self.name = f"undula-filter-{key}"
        graph = x.__dask_graph__()
        self.layers: dict[str, Any] = dict(graph.layers)
        self.dependencies: dict[str, Any] = dict(graph.dependencies)
        self.passes: list[str] = []
        self.boundaries = plan.aligned(self.source.boundaries)

    def result(self) -> Any:
        """Return the filtered array."""
        statistics = self._statistics()
        reader = ChunkReader(self.source, self.name)
        tasks: dict[Key, Any] = {}
        for numbers, blocks in numbered(self.plan.blocks(self.boundaries, self.plan.reach)):
            keys: dict[Key, int] = {}
            window = reader.window([block.window.segments for block in blocks], keys)
            task = self.plan.filtered_block(blocks, window)
            known = [(name, *self.plan.batch(numbers)) for name in statistics]
            tasks[(self.name, *numbers)] = (task, list(keys), known)
        self._add_pass(self.name, _FilterLayer(tasks | reader.rim_tasks, self.plan, self.given))
        chunks = tuple(tuple(stop - start for start, stop in pairwise(places)) for places in self.boundaries)
        graph = HighLevelGraph(self.layers, self.dependencies)
        return da.Array(graph, self.name, chunks, meta=meta_from_array(self.x))

    def _add_pass(self, name: str, tasks: Any) -> None:
        """Add the tasks of one pass over the image."""
        self.layers[name], self.dependencies[name] = tasks, {self.source.name, *self.passes}
        self.passes.append(name)

    def _read_again(self, name: str, batches: Iterable[tuple[int, ...]]) -> None:
        """Read a large image again after a pass, as Dask would otherwise keep it all for the next pass."""
        if self.x.nbytes <= dask.config.get("undula.kept-bytes", MAX_KEPT_BYTES):
            return
        graph = HighLevelGraph(self.layers, self.dependencies)
        finished = [Delayed((name, *batch), graph, layer=name) for batch in batches]
        again = bind(self.x, finished)
        graph = again.__dask_graph__()
        self.layers |= graph.layers
        self.dependencies |= graph.dependencies
        self.source = as_chunked(again)

    def _statistics(self) -> list[str]:
        """Add the tasks of all statistics, and return the names of those that have their values."""
        names: list[str] = []
        state = ""
        for each in self.plan.passes:
            statistic = each.statistic
            suffix = "" if each.is_last else f"-digit{statistic.digit}"
            name = named(f"{self.name}-{statistic.number}{suffix}", "statistic")
            tasks, keys = self._parts(name, each, names, state)
            self._add_pass(name, tasks | self._joined(name, statistic, keys, state))
            self._read_again(name, keys)
            state = name
            if each.is_last:
                names.append(name)
                state = ""
        return names

    def _parts(
        self, name: str, each: StatisticPass, statistics: Sequence[str], state: str
    ) -> tuple[dict[Key, Any], dict[tuple[int, ...], list[Key]]]:
        """Return the tasks of a pass on blocks, and their keys, by the images that they belong to."""
        reader = ChunkReader(self.source, name)
        tasks: dict[Key, Any] = {}
        keys: dict[tuple[int, ...], list[Key]] = {}
        for numbers, blocks in numbered(self.plan.pass_blocks(self.boundaries, each)):
            batch = self.plan.batch(numbers)
            needed: dict[Key, int] = {}
            window = reader.window([block.window.segments for block in blocks], needed)
            task = self.plan.statistic_part(each, blocks, window)
            known = [(statistic, *batch) for statistic in statistics]
            key: Key = (named(name, "part"), *numbers)
            tasks[key] = (task, list(needed), known, (state, *batch) if state else None)
            keys.setdefault(batch, []).append(key)
        return tasks | reader.rim_tasks, keys

    def _joined(
        self, name: str, statistic: Statistic, keys: dict[tuple[int, ...], list[Key]], state: str
    ) -> dict[Key, Any]:
        """Return the tasks that join the results of blocks, some at a time."""
        tasks: dict[Key, Any] = {}
        for batch, waiting in keys.items():
            level = 0
            while len(waiting) > MAX_JOINED:
                joined: list[Key] = []
                for first in range(0, len(waiting), MAX_JOINED):
                    joined.append((named(f"{name}-{level}", "join"), *batch, first))
                    tasks[joined[-1]] = (statistic.joined, waiting[first : first + MAX_JOINED])
                waiting, level = joined, level + 1
            tasks[(name, *batch)] = (statistic.finished, waiting, (state, *batch) if state else None)
        return tasks
