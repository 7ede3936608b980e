"""Filters of images in windows: how far they reach, and what is computed of a window.

How far around a block a window reaches follows from the graph of the pipeline. Statistics of the image, such
as its noise, are computed first, in passes over all blocks; see :mod:`.statistics`. Nothing here knows where
the samples of windows come from: chunks of Dask, or an array in a store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
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
from ..lowering.expressions import loads
from ..lowering.graph import Reduce
from ..lowering.reach import reaches
from ..lowering.windows import Interval, LineWindow, aligned_boundaries, margin_window
from ..wavelets import as_wavelet
from .pipeline import Pipeline
from .pipeline_json import has_known_name
from .planes import ImageLayout, check_magnitude, largest_magnitude
from .programs import ImageRecipe, window_program
from .speckle import MULTIPLICATIVE
from .statistics import Statistic

__all__ = ["BlockLine", "FilterPlan", "FilteredBlock", "StatisticPart", "StatisticPass", "numbered"]

Array = np.ndarray[Any, Any]
PACKAGE = __name__.partition(".")[0]
Boundaries = Sequence[Sequence[int]]


class BlockLine(NamedTuple):
    """A block along one axis of the image: its samples, and the window around it."""

    samples: Interval
    window: LineWindow


class StatisticPass(NamedTuple):
    """One pass over the image for a statistic, how far its windows reach, and the part that it is taken from.

    The part is None for all of the image.
    """

    statistic: Statistic
    reach: int
    region: tuple[Interval, ...] | None

    @property
    def is_last(self) -> bool:
        """Whether the values of the statistic are known after this pass."""
        return self.statistic.digit == Statistic.digits(self.statistic.kind, self.statistic.dtype) - 1


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
    passes : list of StatisticPass
        What has to be known of the image before.
    """

    def __init__(self, pipeline: Pipeline, sigma: Any, layout: ImageLayout, backend: str) -> None:
        self.pipeline, self.layout, self.backend = pipeline, layout, backend
        self.sigmas = None if sigma is None else layout.item_sigmas(sigma)
        self.sigma = None if sigma is None else np.atleast_1d(np.asarray(sigma, np.float64)).tolist()
        self.image_shape = tuple(layout.shape[axis] for axis in layout.axes)
        self.levels = pipeline.levels_for(self.image_shape)
        self.unit = 1 << self.levels
        graph = pipeline.graph(self._recipe(layout))
        distances = reaches(graph, self._scales())
        self.reach = distances["result"]
        self.passes: list[StatisticPass] = []
        for number, node in enumerate(graph.reductions()):
            self.passes += self._passes(number, node, distances)

    @staticmethod
    def _passes(number: int, node: Reduce, distances: dict[str, int]) -> list[StatisticPass]:
        if node.kind == "sure":
            raise ArgumentError(
                "SURE sorts all coefficients, which needs them in memory; use another method for Dask"
                " arrays, such as 'bayes' or 'bivariate'"
            )
        dtype = np.dtype(node.results[0].dtype)
        views = [load.view for source in node.sources for load in loads(source)]
        reach = max(distances[view.buffer] for view in views)
        return [
            StatisticPass(Statistic(number, node.kind, digit, dtype), reach, node.region)
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
        return FilteredBlock(self._window_run(blocks), window, self._place_in_window(blocks))

    def statistic_part(
        self, each: StatisticPass, blocks: Sequence[BlockLine], window: ChunkedWindow
    ) -> StatisticPart:
        """Return what computes the contribution of a block to a statistic."""
        places = None
        if each.region is None:
            levels = range(self.levels + 1)
            places = tuple(self._spatial(self._place_in_window(blocks, level)) for level in levels)
        return StatisticPart(self._window_run(blocks), window, places, each.statistic)

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
