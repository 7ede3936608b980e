"""Pipelines on Dask arrays: each block of an image is filtered in a window around it.

How far around a block the window reaches follows from the graph of the pipeline. Statistics of the image,
such as its noise, are computed first, each by a task for each block and one that joins their results. They do
not depend on the chunks: medians are exact, found by counting magnitudes by their bits, 16 at a time, and
sums are exact until they are rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise, product
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.delayed import Delayed
from dask.graph_manipulation import bind
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray

from ..arrays import library_of
from ..engines.base import engine
from ..engines.chunked.blocks import ChunkedWindow, Slices
from ..engines.chunked.sources import ChunkReader, Key, named
from ..engines.chunked.transforms import as_chunked
from ..engines.chunked.workers import worker_resources
from ..engines.dispatch import engine_for
from ..errors import ArgumentError
from ..lowering.borders import BORDERS
from ..lowering.expressions import loads
from ..lowering.graph import Reduce
from ..lowering.reach import reaches
from ..lowering.windows import Interval, LineWindow, aligned_boundaries, margin_window
from .pipeline import Pipeline
from .planes import GivenImage, ImageLayout, check_magnitude, largest_magnitude
from .programs import ImageRecipe, window_program
from .speckle import MULTIPLICATIVE

__all__ = ["filter_chunks"]

Array = np.ndarray[Any, Any]
DIGIT_BITS = 16
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
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    if x.size and any(0 in lengths for lengths in x.chunks):
        x = x.rechunk(tuple(tuple(n for n in lengths if n) for lengths in x.chunks))
    layout = GivenImage(x, channel_axis, axes, pipeline.colors).layout
    if layout.channel is not None:
        x = x.rechunk({layout.channel: -1})
    return _ChunkedFilter(pipeline, x, sigma, layout, backend).result()


class _Block(NamedTuple):
    """A block along one axis of the image: its samples, and the window around it."""

    samples: Interval
    window: LineWindow


class _ChunkedFilter:
    """The tasks that filter a Dask array."""

    def __init__(self, pipeline: Pipeline, x: Any, sigma: Any, layout: ImageLayout, backend: str) -> None:
        self.pipeline, self.x, self.layout, self.backend = pipeline, x, layout, backend
        self.sigmas = None if sigma is None else layout.item_sigmas(sigma)
        self.image_shape = tuple(layout.shape[axis] for axis in layout.axes)
        self.levels = pipeline.levels_for(self.image_shape)
        self.source = as_chunked(x)
        self.name = f"undula-filter-{tokenize(pipeline, x.name, sigma, layout, backend)}"
        graph = x.__dask_graph__()
        self.layers: dict[str, Any] = dict(graph.layers)
        self.dependencies: dict[str, Any] = dict(graph.dependencies)
        self.passes: list[str] = []
        recipe = self._recipe(layout)
        self.graph = pipeline.graph(recipe)
        self.reductions = self.graph.reductions()
        for node in self.reductions:
            if node.kind == "sure":
                raise ArgumentError(
                    "SURE sorts all coefficients, which needs them in memory; use another method for Dask"
                    " arrays, such as 'bayes' or 'bivariate'"
                )
        self.reach = reaches(self.graph, self._scales())
        unit = 1 << self.levels
        self.boundaries = [
            aligned_boundaries(places, unit) if axis in layout.axes else list(places)
            for axis, places in enumerate(self.source.boundaries)
        ]

    def _recipe(self, layout: ImageLayout, image_shape: tuple[int, ...] = ()) -> ImageRecipe:
        positive = self.pipeline.speckle in MULTIPLICATIVE
        return ImageRecipe(layout, self.sigmas is not None, positive=positive, image_shape=image_shape)

    def _scales(self) -> dict[tuple[int, ...], int]:
        """Return the distance of neighbours at each level, by the shape of the image at that level."""
        shapes = self.pipeline.level_shapes(self.image_shape)
        return {shape: 1 << level for level, shape in enumerate(shapes)}

    def _blocks(self, reach: int) -> list[list[_Block]]:
        """Return the blocks along each axis, with windows that reach this far."""
        unit, wraps = 1 << self.levels, BORDERS[self.pipeline.mode].wraps
        along = []
        for axis, places in enumerate(self.boundaries):
            blocks = []
            for start, stop in pairwise(places):
                window = LineWindow(stop - start, ((start, stop),))
                if axis in self.layout.axes:
                    window = margin_window(places[-1], start, stop, reach, unit, wraps)
                blocks.append(_Block((start, stop), window))
            along.append(blocks)
        return along

    def _region_blocks(self, region: tuple[Interval, ...]) -> list[list[_Block]]:
        """Return the blocks along each axis of a part of the image, which is one window of its own."""
        along = self._blocks(0)
        for axis, (start, stop) in zip(self.layout.axes, region, strict=True):
            along[axis] = [_Block((start, stop), LineWindow(stop - start, ((start, stop),)))]
        return along

    def result(self) -> Any:
        """Return the filtered array."""
        statistics = [self._statistic(number, node) for number, node in enumerate(self.reductions)]
        reader = ChunkReader(self.source, self.name)
        tasks: dict[Key, Any] = {}
        for numbers, blocks in self._numbered(self._blocks(self.reach["result"])):
            keys: dict[Key, int] = {}
            window = reader.window([block.window.segments for block in blocks], keys)
            task = FilteredBlock(self._window_run(blocks), window, self._place_in_window(blocks))
            known = [(name, *self._batch(numbers)) for name in statistics]
            tasks[(self.name, *numbers)] = (task, list(keys), known)
        self._add_pass(self.name, tasks | reader.rim_tasks)
        chunks = tuple(tuple(stop - start for start, stop in pairwise(places)) for places in self.boundaries)
        graph = HighLevelGraph(self.layers, self.dependencies)
        return da.Array(graph, self.name, chunks, meta=meta_from_array(self.x))

    def _add_pass(self, name: str, tasks: dict[Key, Any]) -> None:
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

    def _numbered(self, along: list[list[_Block]]) -> Iterator[tuple[tuple[int, ...], list[_Block]]]:
        for numbers in product(*(range(len(blocks)) for blocks in along)):
            yield numbers, [blocks[number] for blocks, number in zip(along, numbers, strict=True)]

    def _batch(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of a block along the axes that are not spatial: of images with statistics."""
        return tuple(number for axis, number in enumerate(numbers) if axis not in self.layout.axes)

    def _window_run(self, blocks: Sequence[_Block]) -> WindowRun:
        """Return how the pipeline runs on the window of a block."""
        layout = replace(self.layout, shape=tuple(block.window.length for block in blocks))
        sigmas = None
        if self.sigmas is not None:
            # Items are channels and, of each, images; the noise is that of the channel.
            count = layout.planes_shape[0] // (3 if layout.mixed else layout.channels)
            channels = self.sigmas.reshape(layout.planes_shape[0] // count, -1)[:, 0]
            sigmas = tuple(np.repeat(channels, count).tolist())
        return WindowRun(self.pipeline, self._recipe(layout, self.image_shape), self.backend, sigmas)

    def _spatial(self, slices: Slices) -> Slices:
        return tuple(slices[axis] for axis in self.layout.axes)

    def _place_in_window(self, blocks: Sequence[_Block], level: int = 0) -> Slices:
        """Return where a block, or its coefficients of a level, are in the window."""
        slices = []
        for axis, block in enumerate(blocks):
            if axis not in self.layout.axes:
                slices.append(slice(None))
                continue
            start, stop = block.samples
            place = block.window.place(level, start >> level)
            last = stop >= self.layout.shape[axis]
            slices.append(slice(place, None if last else place + ((stop - start) >> level)))
        return tuple(slices)

    # --- statistics -------------------------------------------------------------------------------

    def _statistic(self, number: int, node: Reduce) -> str:
        """Add the tasks of a statistic, and return the name of those that have its values."""
        if node.region is None:
            views = [load.view for source in node.sources for load in loads(source)]
            along = self._blocks(max(self.reach[view.buffer] for view in views))
        else:
            along = self._region_blocks(node.region)
        dtype = np.dtype(node.results[0].dtype)
        digits = 8 * dtype.itemsize // DIGIT_BITS if node.kind == "median" else 1
        state = ""
        for digit in range(digits):
            name = self._statistic_name(number, "" if digit == digits - 1 else f"-digit{digit}")
            statistic = Statistic(number, node.kind, digit, dtype)
            tasks, keys = self._parts(name, statistic, along, state, node.region is not None)
            self._add_pass(name, tasks | self._joined(name, statistic, keys, state))
            self._read_again(name, keys)
            state = name
        return state

    def _statistic_name(self, number: int, suffix: str = "") -> str:
        return named(f"{self.name}-{number}{suffix}", "statistic")

    def _parts(
        self,
        name: str,
        statistic: Statistic,
        along: list[list[_Block]],
        state: str,
        of_region: bool,
    ) -> tuple[dict[Key, Any], dict[tuple[int, ...], list[Key]]]:
        """Return the tasks of a statistic on blocks, and their keys, by the images that they belong to."""
        reader = ChunkReader(self.source, name)
        tasks: dict[Key, Any] = {}
        keys: dict[tuple[int, ...], list[Key]] = {}
        for numbers, blocks in self._numbered(along):
            batch = self._batch(numbers)
            needed: dict[Key, int] = {}
            window = reader.window([block.window.segments for block in blocks], needed)
            places = None
            if not of_region:
                levels = range(self.levels + 1)
                places = tuple(self._spatial(self._place_in_window(blocks, level)) for level in levels)
            task = StatisticPart(self._window_run(blocks), window, places, statistic)
            known = [(self._statistic_name(k), *batch) for k in range(statistic.number)]
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


# --- what workers run -----------------------------------------------------------------------------


@dataclass(frozen=True)
class WindowRun:
    """The pipeline on a window: what workers need to compile and run it."""

    pipeline: Pipeline
    recipe: ImageRecipe
    backend: str
    sigmas: tuple[float, ...] | None

    def outputs(
        self, image: Any, known: Sequence[Sequence[Array]], number: int | None = None
    ) -> dict[str, Any]:
        """Run the program of :func:`~undula.filters.programs.window_program` with known statistics."""
        with worker_resources():
            program = window_program(self.pipeline, self.recipe, engine_for([image], self.backend), number)
            arrays = {"image": image}
            if self.sigmas is not None:
                arrays["sigma"] = np.array(self.sigmas, self.recipe.layout.working_dtype)
            for names, values in zip(program.statistics, known, strict=False):
                arrays |= dict(zip(names, values, strict=True))
            outputs: dict[str, Any] = program.executable.run(arrays)
            return outputs


@dataclass(frozen=True)
class FilteredBlock:
    """A block of the filtered image."""

    run: WindowRun
    window: ChunkedWindow
    result: Slices

    def __call__(self, arguments: Sequence[Any], known: Sequence[Any]) -> Any:
        """Return the block."""
        image = self.window.joined(arguments)
        _check_samples(image, self.run.recipe)
        return self.run.outputs(image, known)["result"][self.result]


def _check_samples(image: Any, recipe: ImageRecipe) -> None:
    """Raise an error for samples that are left out of images in memory, which needs more than a window."""
    if isinstance(image, np.ndarray) and image.dtype.kind == "f":
        largest = largest_magnitude(image)
        if not math.isfinite(largest):
            raise ArgumentError(
                "this Dask array has NaNs or infinities, which are left out of images in memory only; replace"
                " them first, for instance by dask.array.nan_to_num"
            )
        check_magnitude(largest, recipe.layout.working_dtype)
    if recipe.positive and not (least := image.min()) > 0:
        raise ArgumentError(
            f"speckle filters of Dask arrays need samples above zero, got {least}; zeros have no logarithm,"
            " and filling them in needs the image in memory"
        )


@dataclass(frozen=True)
class Statistic:
    """One pass over the image for a statistic.

    Parameters
    ----------
    number : int
        Number of the node in the graph.
    kind : {"sum", "max", "median"}
    digit : int
        For medians, how many digits of the magnitudes are known already; see :func:`_counted`.
    dtype : dtype
    """

    number: int
    kind: str
    digit: int
    dtype: np.dtype[Any]

    def part(self, source: Array, limit: Array | None, state: Any) -> Any:
        """Return what a block contributes to each item of an array."""
        items = source.reshape(len(source), -1)
        if self.kind == "max":
            return items.max(axis=1)
        if self.kind == "sum":
            return [_exact_sum(item) for item in items]
        assert limit is not None
        prefixes = [None] * len(items) if state is None else state.prefixes
        return [_counted(*each, self.digit) for each in zip(items, limit, prefixes, strict=True)]

    def joined(self, parts: Sequence[Sequence[Any]]) -> list[Any]:
        """Join the contributions of blocks, for each array."""
        return [self._joined(of_array) for of_array in zip(*parts, strict=True)]

    def _joined(self, parts: Sequence[Any]) -> Any:
        if self.kind == "max":
            return np.max(parts, axis=0)
        add = _add_sums if self.kind == "sum" else np.add
        return [reduce(add, of_item) for of_item in zip(*parts, strict=True)]

    def finished(self, parts: Sequence[Sequence[Any]], states: Sequence[Any] | None) -> list[Any]:
        """Return the values of each array; or, of a median, what is known after this digit."""
        totals = self.joined(parts)
        if self.kind == "max":
            return [np.asarray(total, self.dtype) for total in totals]
        if self.kind == "sum":
            return [np.array([_rounded_sum(total) for total in of_array], self.dtype) for of_array in totals]
        before = [None] * len(totals) if states is None else states
        ranks = [_Ranks.after(*each, self.digit) for each in zip(totals, before, strict=True)]
        last = DIGIT_BITS * (self.digit + 1) == 8 * self.dtype.itemsize
        return [each.medians(self.dtype) for each in ranks] if last else ranks


@dataclass(frozen=True)
class StatisticPart:
    """What a block contributes to a statistic.

    Parameters
    ----------
    run : WindowRun
    window : ChunkedWindow
    places : tuple of tuple of slice, optional
        At each level, where the coefficients of the block are in the window; None if all of it counts.
    statistic : Statistic
    """

    run: WindowRun
    window: ChunkedWindow
    places: tuple[Slices, ...] | None
    statistic: Statistic

    def __call__(self, arguments: Sequence[Any], known: Sequence[Any], states: Any) -> list[Any]:
        """Return the contribution to each array of the statistic."""
        image = self.window.joined(arguments)
        _check_samples(image, self.run.recipe)
        outputs = self.run.outputs(image, known, self.statistic.number)
        parts = []
        for number in range(sum(name.startswith("source") for name in outputs)):
            source, limit = outputs[f"source{number}"], outputs.get(f"limit{number}")
            state = None if states is None else states[number]
            parts.append(self.statistic.part(_on_host(source[self._place(source)]), _on_host(limit), state))
        return parts

    def _place(self, source: Any) -> tuple[Any, ...]:
        """Return where the coefficients of the block are in an array of the window."""
        if self.places is None:
            return (...,)
        layout = self.run.recipe.layout
        shapes = self.run.pipeline.level_shapes(layout.planes_shape[1:], len(self.places) - 1)
        levels = {shape: level for level, shape in enumerate(shapes)}
        return (..., *self.places[levels[source.shape[source.ndim - layout.ndim :]]])


def _on_host(x: Any) -> Any:
    return x if x is None or isinstance(x, np.ndarray) else np.asarray(library_of(x).to_numpy(x))


# --- exact sums -----------------------------------------------------------------------------------

FIXED_POINT = 1200  # Bits after the point, enough for all floats.
HALF = 27  # Bits of the lower half of a mantissa; sums of halves are exact in floats.
MAX_TERMS = 1 << 25


def _exact_sum(x: Array) -> tuple[int, float]:
    """Return the sum of finite numbers as an integer in fixed point, and that of all others."""
    total, special = 0, 0.0
    for first in range(0, x.size, MAX_TERMS):
        part = x[first : first + MAX_TERMS].astype(np.float64)
        finite = np.isfinite(part)
        if not finite.all():
            special += float(part[~finite].sum())
            part = part[finite]
        mantissas, exponents = np.frexp(part)
        integers = (mantissas * 2.0**53).astype(np.int64)
        exponents = exponents.astype(np.int64) + (FIXED_POINT - 53)
        least = int(exponents.min(initial=0))
        places = exponents - least
        high = np.bincount(places, (integers >> HALF).astype(np.float64))
        low = np.bincount(places, (integers & ((1 << HALF) - 1)).astype(np.float64))
        for place, (a, b) in enumerate(zip(high.tolist(), low.tolist(), strict=True)):
            if a or b:
                total += ((int(a) << HALF) + int(b)) << (least + place)
    return total, special


def _add_sums(x: tuple[int, float], y: tuple[int, float]) -> tuple[int, float]:
    return x[0] + y[0], x[1] + y[1]


def _rounded_sum(x: tuple[int, float]) -> float:
    return float(Fraction(x[0], 1 << FIXED_POINT)) + x[1]


# --- exact medians --------------------------------------------------------------------------------


def _counted(x: Array, limit: Any, prefixes: Any, digit: int) -> NDArray[np.int64]:
    """Count the finite magnitudes above a limit by one digit of their bits.

    Parameters
    ----------
    x : array
        Floats, whose magnitudes are in the order of their bits.
    limit : float
    prefixes : pair of int or None
        The digits before this one of the two numbers in the middle; None for the first digit.
    digit : int

    Returns
    -------
    array of shape (2, 65536)
        For each of the two, how many magnitudes with its prefix have which digit.
    """
    integer = np.dtype(f"u{x.itemsize}")
    bits = np.abs(x[np.isfinite(x)]).view(integer)
    bits = bits[bits > np.abs(x.dtype.type(limit)).view(integer)]
    shift = 8 * x.itemsize - DIGIT_BITS * (digit + 1)
    digits = (bits >> integer.type(shift)) & integer.type((1 << DIGIT_BITS) - 1)
    if prefixes is None:
        return np.repeat(np.bincount(digits, minlength=1 << DIGIT_BITS)[np.newaxis], 2, axis=0)
    leading = bits >> integer.type(shift + DIGIT_BITS)
    return np.stack([np.bincount(digits[leading == p], minlength=1 << DIGIT_BITS) for p in prefixes])


@dataclass(frozen=True)
class _Ranks:
    """For each item, the leading digits of the two numbers in the middle, and their ranks among those.

    An item without numbers has a median of zero, and a rank of -1.
    """

    prefixes: list[tuple[int, int]]
    ranks: list[tuple[int, int]]

    @staticmethod
    def after(counts: Sequence[NDArray[np.int64]], before: _Ranks | None, digit: int) -> _Ranks:
        """Return what is known after the counts of one more digit."""
        prefixes, ranks = [], []
        for item, both in enumerate(counts):
            if before is None:
                total = int(both[0].sum())
                known, rank = (0, 0), ((total - 1) // 2, total // 2) if total else (-1, -1)
            else:
                known, rank = before.prefixes[item], before.ranks[item]
            digits = [_next_digit(*each) for each in zip(both, known, rank, strict=True)]
            prefixes.append((digits[0][0], digits[1][0]))
            ranks.append((digits[0][1], digits[1][1]))
        return _Ranks(prefixes, ranks)

    def medians(self, dtype: np.dtype[Any]) -> Array:
        """Return the medians, after the last digit."""
        middle = np.array(self.prefixes, f"u{dtype.itemsize}").view(dtype).astype(np.float64)
        return ((middle[:, 0] + middle[:, 1]) / 2).astype(dtype)


def _next_digit(counts: NDArray[np.int64], prefix: int, rank: int) -> tuple[int, int]:
    """Return the prefix with one more digit, and the rank among the numbers that have it."""
    if rank < 0:
        return 0, -1
    upto = np.cumsum(counts)
    digit = int(np.searchsorted(upto, rank, "right"))
    return (prefix << DIGIT_BITS) | digit, rank - int(upto[digit] - counts[digit])
