"""Filters of images in windows: how far they reach, and what is computed of a window.

How far around a block a window reaches follows from the graph of the pipeline. Statistics of the image, such
as its noise, are computed first, in passes over all blocks; see :mod:`.statistics`. Nothing here knows where
the samples of windows come from: chunks of Dask, or an array in a store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from ..arrays import library_of
from ..engines.chunked.blocks import ChunkedWindow, Slices
from ..engines.chunked.workers import worker_resources
from ..engines.dispatch import engine_for
from ..errors import ArgumentError
from ..lowering.borders import BORDERS
from ..lowering.checkpoints import CHECKPOINT, checkpoint_buffers, computing, live_bytes, reading
from ..lowering.expressions import loads
from ..lowering.graph import Graph, Reduce
from ..lowering.reach import reaches
from ..lowering.windows import Interval, LineWindow, aligned_boundaries, margin_window
from ..wavelets import as_wavelet
from .pipeline import Pipeline
from .pipeline_json import has_known_name
from .planes import ImageLayout, check_magnitude, largest_magnitude
from .programs import ImageRecipe, WindowTarget, window_program
from .speckle import MULTIPLICATIVE
from .statistics import Statistic

__all__ = [
    "BlockLine",
    "CheckpointBlock",
    "CheckpointPass",
    "FilterPlan",
    "FilteredBlock",
    "StatisticPart",
    "StatisticPass",
    "numbered",
]

Array = np.ndarray[Any, Any]
PACKAGE = __name__.partition(".")[0]
Boundaries = Sequence[Sequence[int]]


class BlockLine(NamedTuple):
    """A block along one axis of the image: its samples, and the window around it."""

    samples: Interval
    window: LineWindow


class StatisticPass(NamedTuple):
    """One pass over the image for a statistic.

    It has how far windows reach, about how much memory it takes for each of their samples, the part of the
    image that it is taken from, None for all of it, and the numbers of the checkpoints that it reads.
    """

    statistic: Statistic
    reach: int
    nbytes: float
    region: tuple[Interval, ...] | None
    given: tuple[int, ...]

    @property
    def is_last(self) -> bool:
        """Whether the values of the statistic are known after this pass."""
        return self.statistic.digit == Statistic.digits(self.statistic.kind, self.statistic.dtype) - 1


class CheckpointPass(NamedTuple):
    """One pass that computes an approximation at all places.

    Parameters
    ----------
    number : int
    shape : tuple of int
        Its shape: items, shifts, and coefficients along the spatial axes.
    level, reach : int
    given : tuple of int
        The numbers of the checkpoints that it reads.
    nbytes : float
        About how much memory it takes for each sample of a window.
    reads_image, needs_statistics : bool
        Passes that need no statistics come first.
    """

    number: int
    shape: tuple[int, ...]
    level: int
    reach: int
    given: tuple[int, ...]
    nbytes: float
    reads_image: bool
    needs_statistics: bool


class FilterPlan:
    """How an image is filtered in windows.

    Parameters
    ----------
    pipeline : Pipeline
    sigma
        As for :meth:`Pipeline.__call__`.
    layout : ImageLayout
    backend : str

    Attributes
    ----------
    levels : int
    unit : int
        Blocks begin at multiples of it.
    reach : int
        How far the windows of the filtered image reach.
    nbytes : float
        About how much memory it takes to filter a window, for each of its samples.
    passes : list of StatisticPass
        What has to be known of the image before.
    checkpoints : list of CheckpointPass
        The approximations that are stored, if the work is divided.
    given : tuple of int
        The numbers of those that the last pass reads.
    """

    def __init__(
        self, pipeline: Pipeline, sigma: Any, layout: ImageLayout, backend: str, divided: bool = False
    ) -> None:
        self.pipeline, self.layout, self.backend = pipeline, layout, backend
        self.sigmas = None if sigma is None else layout.item_sigmas(sigma)
        self.sigma = None if sigma is None else np.atleast_1d(np.asarray(sigma, np.float64)).tolist()
        self.image_shape = tuple(layout.shape[axis] for axis in layout.axes)
        self.levels = pipeline.levels_for(self.image_shape)
        self.unit, self.samples = 1 << self.levels, math.prod(layout.shape)
        graph = pipeline.graph(self._recipe(layout))
        distances = reaches(graph, self._scales())
        self.reach, self.given = distances["result"], tuple[int, ...]()
        self.checkpoints: list[CheckpointPass] = []
        self.nbytes = live_bytes(graph) / self.samples
        if divided:
            self._divide(graph)
        self.passes: list[StatisticPass] = []
        for number, node in enumerate(graph.reductions()):
            self.passes += self._passes(graph, number, node, distances)

    def divided(self) -> FilterPlan:
        """Return the plan with checkpoints."""
        return FilterPlan(self.pipeline, self.sigma, self.layout, self.backend, True)

    def _divide(self, graph: Graph) -> None:
        """Plan the passes for checkpoints, and what the others read of them."""
        levels = {shape: level for level, shape in enumerate(self.pipeline.level_shapes(self.image_shape))}
        names, count = checkpoint_buffers(graph, levels), len(graph.reductions())
        for number, name in enumerate(names):
            program = computing(graph, name)
            part, given = self._reading(program.with_known_reductions(count), names, range(number))
            reach = reaches(part, self._scales())[CHECKPOINT]
            shape = graph.buffers[name].shape
            level = levels[shape[-self.layout.ndim :]]
            is_last = bool(program.reductions())
            nbytes = live_bytes(part) / self.samples
            each = CheckpointPass(number, shape, level, reach, given, nbytes, "image" in part.inputs, is_last)
            self.checkpoints.append(each)
        known = graph.with_known_reductions(count)
        part, self.given = self._reading(known, names, range(len(names)))
        self.nbytes = live_bytes(part) / self.samples
        self.reach = reaches(part, self._scales())["result"]

    @staticmethod
    def _reading(graph: Graph, names: Sequence[str], numbers: Iterable[int]) -> tuple[Graph, tuple[int, ...]]:
        """Return a graph that reads checkpoints, and the numbers of those that it needs."""
        numbers = list(numbers)
        part = reading(graph, [names[number] for number in numbers])
        return part, tuple(number for number in numbers if names[number] in part.inputs)

    def _passes(
        self, graph: Graph, number: int, node: Reduce, distances: dict[str, int]
    ) -> list[StatisticPass]:
        if node.kind == "sure":
            raise ArgumentError(
                "SURE sorts all coefficients, which needs them in memory; use another method for Dask"
                " arrays, such as 'bayes' or 'bivariate'"
            )
        dtype = np.dtype(node.results[0].dtype)
        views = [load.view for source in node.sources for load in loads(source)]
        reach, given = max(distances[view.buffer] for view in views), tuple[int, ...]()
        part = graph.reduction_sources(number)
        if self.checkpoints and node.region is None:
            names = checkpoint_buffers(graph, {shape: k for k, shape in enumerate(self._scales())})
            before = [each.number for each in self.checkpoints if not each.needs_statistics]
            part, given = self._reading(part, names, before)
            known = reaches(part, self._scales())
            reach = max(known[name] for name in part.outputs if name.startswith("source"))
        nbytes = live_bytes(part) / self.samples
        return [
            StatisticPass(Statistic(number, node.kind, digit, dtype), reach, nbytes, node.region, given)
            for digit in range(Statistic.digits(node.kind, dtype))
        ]

    def to_json(self) -> dict[str, Any] | None:
        """Return what the result depends on, besides the image; None if stages are those of other packages.

        What the code of such stages does, their fields do not say.
        """
        wavelet = as_wavelet(self.pipeline.wavelet)
        if any(type(stage).__module__.partition(".")[0] != PACKAGE for stage in self.pipeline.stages):
            return None
        pipeline, filters = self.pipeline, None
        if not has_known_name(wavelet):
            pipeline = replace(pipeline, wavelet="haar")
            filters = [list(map(float, taps)) for taps in wavelet.filter_bank]
        return {
            "pipeline": json.loads(pipeline.to_json()),
            "filters": filters,
            "sigma": self.sigma,
            "channel_axis": self.layout.channel,
            "axes": list(self.layout.axes),
            "backend": self.backend,
        }

    def _recipe(self, layout: ImageLayout, image_shape: tuple[int, ...] = ()) -> ImageRecipe:
        positive = self.pipeline.speckle in MULTIPLICATIVE
        return ImageRecipe(layout, self.sigmas is not None, positive=positive, image_shape=image_shape)

    def _scales(self) -> dict[tuple[int, ...], int]:
        """Return the distance of neighbours at each level, by the shape of the image at that level."""
        shapes = self.pipeline.level_shapes(self.image_shape)
        return {shape: 1 << level for level, shape in enumerate(shapes)}

    def aligned(self, boundaries: Boundaries) -> list[list[int]]:
        """Return boundaries of blocks, moved to where blocks may begin."""
        return [
            aligned_boundaries(places, self.unit) if axis in self.layout.axes else list(places)
            for axis, places in enumerate(boundaries)
        ]

    def line(self, axis: int, start: int, stop: int, reach: int) -> BlockLine:
        """Return a block along an axis, with the window that reaches this far."""
        window = LineWindow(stop - start, ((start, stop),))
        if axis in self.layout.axes:
            wraps = BORDERS[self.pipeline.mode].wraps
            window = margin_window(self.layout.shape[axis], start, stop, reach, self.unit, wraps)
        return BlockLine((start, stop), window)

    def blocks(self, boundaries: Boundaries, reach: int) -> list[list[BlockLine]]:
        """Return the blocks along each axis between aligned boundaries, with windows that reach this far."""
        return [
            [self.line(axis, start, stop, reach) for start, stop in pairwise(places)]
            for axis, places in enumerate(boundaries)
        ]

    def pass_blocks(self, boundaries: Boundaries, each: StatisticPass) -> list[list[BlockLine]]:
        """Return the blocks of a pass; a part of the image is one window of its own."""
        if each.region is None:
            return self.blocks(boundaries, each.reach)
        along = self.blocks(boundaries, 0)
        for axis, (start, stop) in zip(self.layout.axes, each.region, strict=True):
            along[axis] = [BlockLine((start, stop), LineWindow(stop - start, ((start, stop),)))]
        return along

    def batch(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of a block along the axes that are not spatial: of images with statistics."""
        return tuple(number for axis, number in enumerate(numbers) if axis not in self.layout.axes)

    def filtered_block(self, blocks: Sequence[BlockLine], window: ChunkedWindow) -> FilteredBlock:
        """Return what computes a block of the filtered image."""
        return FilteredBlock(self._window_run(blocks), window, self._place_in_window(blocks), self.given)

    def checkpoint_block(self, each: CheckpointPass, blocks: Sequence[BlockLine]) -> CheckpointBlock:
        """Return what computes a block of a checkpoint."""
        place = self._spatial(self._place_in_window(blocks, each.level))
        return CheckpointBlock(self._window_run(blocks), place, WindowTarget(None, each.number, each.given))

    def checkpoint_segments(self, number: int, blocks: Sequence[BlockLine]) -> list[list[Interval]]:
        """Return the coefficients of a checkpoint that a window has, along the spatial axes."""
        level = self.checkpoints[number].level
        windows = [blocks[axis].window for axis in self.layout.axes]
        shape = tuple(window.length for window in windows)
        counts = self.pipeline.level_shapes(shape, self.levels)[level]
        return [window.band_segments(level, n) for window, n in zip(windows, counts, strict=True)]

    def statistic_part(
        self, each: StatisticPass, blocks: Sequence[BlockLine], window: ChunkedWindow
    ) -> StatisticPart:
        """Return what computes the contribution of a block to a statistic."""
        places = None
        if each.region is None:
            levels = range(self.levels + 1)
            places = tuple(self._spatial(self._place_in_window(blocks, level)) for level in levels)
        return StatisticPart(self._window_run(blocks), window, places, each.statistic, each.given)

    def _window_run(self, blocks: Sequence[BlockLine]) -> WindowRun:
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

    def _place_in_window(self, blocks: Sequence[BlockLine], level: int = 0) -> Slices:
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


def numbered(along: Sequence[Sequence[BlockLine]]) -> Iterator[tuple[tuple[int, ...], list[BlockLine]]]:
    """Yield all blocks with their numbers, given those along each axis."""
    for numbers in product(*(range(len(blocks)) for blocks in along)):
        yield numbers, [blocks[number] for blocks, number in zip(along, numbers, strict=True)]


# --- what workers run -----------------------------------------------------------------------------


@dataclass(frozen=True)
class WindowRun:
    """The pipeline on a window: what workers need to compile and run it."""

    pipeline: Pipeline
    recipe: ImageRecipe
    backend: str
    sigmas: tuple[float, ...] | None

    def outputs(
        self, image: Any, known: Sequence[Sequence[Array]], target: WindowTarget, given: Sequence[Any] = ()
    ) -> dict[str, Any]:
        """Run the program of :func:`~undula.filters.programs.window_program`.

        Parameters
        ----------
        image : array or None
        known : sequence of sequence of array
            The values of statistics.
        target : WindowTarget
        given : sequence of array
            The windows of checkpoints.
        """
        with worker_resources():
            engine = engine_for([given[0] if image is None else image], self.backend)
            program = window_program(self.pipeline, self.recipe, engine, target)
            arrays = dict(zip(program.checkpoints, given, strict=True))
            if image is not None:
                arrays["image"] = image
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
    given: tuple[int, ...] = ()

    def __call__(self, arguments: Sequence[Any], known: Sequence[Any], given: Sequence[Any] = ()) -> Any:
        """Return the block."""
        image = self.window.joined(arguments)
        _check_samples(image, self.run.recipe)
        return self.run.outputs(image, known, WindowTarget(given=self.given), given)["result"][self.result]


@dataclass(frozen=True)
class CheckpointBlock:
    """A block of a checkpoint, of all items and shifts."""

    run: WindowRun
    result: Slices
    target: WindowTarget

    def __call__(self, image: Any, known: Sequence[Any], given: Sequence[Any]) -> Any:
        """Return the block, given the window of the image if it is needed, and those of checkpoints."""
        if image is not None:
            _check_samples(image, self.run.recipe)
        return _on_host(self.run.outputs(image, known, self.target, given)[CHECKPOINT][..., *self.result])


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
    given: tuple[int, ...] = ()

    def __call__(
        self, arguments: Sequence[Any], known: Sequence[Any], states: Any, given: Sequence[Any] = ()
    ) -> list[Any]:
        """Return the contribution to each array of the statistic; ``given`` are windows of checkpoints."""
        image = self.window.joined(arguments)
        _check_samples(image, self.run.recipe)
        outputs = self.run.outputs(image, known, WindowTarget(self.statistic.number, None, self.given), given)
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
