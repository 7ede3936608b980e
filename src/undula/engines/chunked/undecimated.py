"""Undecimated transforms of Dask arrays, level by level.

A block of results along one axis is made of a window of the line, which is extended first where it reaches
beyond the ends. Axes are transformed in the order in which the CPU transforms them, so bits are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from ...lowering.axis import AxisOp
from ...lowering.borders import combinations
from ...lowering.nesting import keyed_bands
from ...lowering.spec import BandTree, Task, TransformSpec, undecimated_spec
from ...lowering.windows import Interval
from ..dispatch import decompose, engine_for, recompose
from ..numpy_engine import NumpyEngine
from .blocks import ChunkedWindow
from .sources import ChunkedArray, ChunkReader, Key, named
from .stages import Tasks, select_item
from .workers import worker_resources

__all__ = ["UndecimatedLevel", "undecimated_levels", "undecimated_tasks", "undecimated_tasks_back"]

Intervals = tuple[Interval, ...]


@dataclass(frozen=True)
class LineBlock:
    """Some results of an undecimated operator, and the parts of a line that they are made of.

    Parameters
    ----------
    op : AxisOp
    start, stop : int
        The results.
    begin, end : int
        The places of the extended line, or of the extended bands, that they read.
    segments : tuple of (int, int)
        The parts of the line that the window consists of.
    """

    op: AxisOp
    start: int
    stop: int
    begin: int
    end: int
    segments: Intervals

    @staticmethod
    def of(op: AxisOp, start: int, stop: int) -> LineBlock:
        """Return the block of the results ``start … stop - 1``."""
        before, after = op.tap_span
        begin, end = start + before, stop + after
        index, factors = _sources(op, np.arange(begin, end))
        used = np.unique(index[np.repeat(factors != 0, [1, 2, 2], axis=1)])
        if not used.size:  # All places are zero; a window needs a sample.
            used = np.zeros(1, np.int64)
        parts = np.split(used, np.flatnonzero(np.diff(used) > 1) + 1)
        return LineBlock(op, start, stop, begin, end, tuple((int(p[0]), int(p[-1]) + 1) for p in parts))

    def extended(self, window: Any, axis: int) -> Any:
        """Return the places from ``begin`` to ``end`` of a line, given its window."""
        index, factors = _sources(self.op, np.arange(self.begin, self.end))
        starts = np.array([start for start, _ in self.segments])
        lengths = np.array([stop - start for start, stop in self.segments])
        part = np.searchsorted(starts, index, side="right") - 1
        places = index - starts[part] + np.concatenate([[0], np.cumsum(lengths)[:-1]])[part]
        places = np.clip(places, 0, lengths.sum() - 1)  # Those that nothing is read from may be anywhere.

        def taken(column: int) -> Any:
            return window[(*[slice(None)] * axis, places[:, column])]

        shape = [1] * window.ndim
        shape[axis] = -1
        weights = [column.astype(window.real.dtype).reshape(shape) for column in factors.T]
        total = taken(0)
        if (factors[:, 0] != 1).any():
            total = np.where(weights[0] != 0, total * weights[0], window.dtype.type(0))
        for number, weight in enumerate(weights[1:]):
            if weight.any():
                rise = taken(2 * number + 1) - taken(2 * number + 2)
                total = np.where(weight != 0, total + weight * rise, total)
        return total.astype(window.dtype, copy=False)

    @property
    def first(self) -> int:
        """The number of the first result among those of the extended window, beyond which there are zeros."""
        return -replace(self.op, mode="zero").tap_span[0]


def _sources(op: AxisOp, places: NDArray[np.int_]) -> tuple[NDArray[np.int_], NDArray[np.float64]]:
    """Return what a line, or a band, is made of at some places; see :func:`combinations`."""
    if not op.back:
        return op.beyond(places)
    numbers = op.coefficients_beyond(0, places)
    index, factors = combinations(op.counts[0], np.maximum(numbers, 0), "zero")
    factors[:, 0] = numbers >= 0
    return index, factors


def _order_back(axes: list[int]) -> list[int]:
    """Return the order of axes in which the CPU computes samples: two neighbours at the end at once."""
    if len(axes) < 2 or (len(axes) == 2 and axes[1] == axes[0] + 1):
        return axes
    return [*_order_back(axes[1:]), axes[0]]


@dataclass(frozen=True)
class UndecimatedBlock:
    """One level of a block, forward or back.

    Parameters
    ----------
    spec : TransformSpec
    backend : str
    dtype : dtype
        Dtype in which to transform.
    lines : tuple of (int, LineBlock)
        The axes, in the order of the transform's keys, and what is computed along each.
    windows : tuple of ChunkedWindow or None
        Forward the samples, back the bands in the order of their keys; None for zeros.
    """

    spec: TransformSpec
    backend: str
    dtype: np.dtype[Any]
    lines: tuple[tuple[int, LineBlock], ...]
    windows: tuple[ChunkedWindow | None, ...]

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Return the bands of the block in the order of their keys, or its samples."""
        arrays = [
            None if window is None else window.joined(arguments).astype(self.dtype, copy=False)
            for window in self.windows
        ]
        with worker_resources():
            return self._samples(arrays) if self.lines[0][1].op.back else self._bands(arrays[0])

    def _spec(self, ndim: int, axis: int, op: AxisOp) -> TransformSpec:
        return undecimated_spec(ndim, op.wavelet, "zero", (axis,), op.dilation, op.gain)

    def _bands(self, x: Any) -> tuple[Any, ...]:
        bands: dict[tuple[tuple[int, str], ...], Any] = {(): x}
        lines = dict(self.lines)
        for axis in sorted(lines):
            block = lines[axis]
            halves: dict[tuple[tuple[int, str], ...], Any] = {}
            for key, band in bands.items():
                extended = block.extended(band, axis)
                spec = self._spec(x.ndim, axis, block.op)
                low, details = decompose(engine_for([extended], self.backend), spec, extended, 1)
                part = (*[slice(None)] * axis, slice(block.first, block.first + block.stop - block.start))
                halves[(*key, (axis, "a"))] = low[part]
                halves[(*key, (axis, "d"))] = details["d"][part]
            bands = halves
        by_axis = {frozenset(key): band for key, band in bands.items()}
        axes = [axis for axis, _ in self.lines]
        return tuple(by_axis[frozenset(zip(axes, key, strict=True))] for key in self.spec.keys)

    def _samples(self, arrays: Sequence[Any]) -> Any:
        axes = [axis for axis, _ in self.lines]
        bands = {
            frozenset(zip(axes, key, strict=True)): band
            for key, band in zip(self.spec.keys, arrays, strict=True)
        }
        lines = dict(self.lines)
        for axis in _order_back(sorted(lines)):
            joined = {}
            for key, band in bands.items():
                if (axis, "a") in key:
                    rest = key - {(axis, "a")}
                    joined[rest] = self._joined(lines[axis], axis, band, bands[rest | {(axis, "d")}])
            bands = joined
        (samples,) = bands.values()
        return samples

    def _joined(self, block: LineBlock, axis: int, low: Any, high: Any) -> Any:
        if low is None and high is None:
            return None
        pair = [None if band is None else block.extended(band, axis) for band in (low, high)]
        given = next(band for band in pair if band is not None)
        spec = self._spec(given.ndim, axis, block.op)
        engine = engine_for(pair, self.backend)
        x = recompose(engine, spec, keyed_bands(pair, spec.keys[1:]), checked=False)
        return x[(*[slice(None)] * axis, slice(block.first, block.first + block.stop - block.start))]


def _line_blocks(
    operators: Sequence[Task], boundaries: Sequence[Sequence[int]], back: bool
) -> list[list[LineBlock | Interval]]:
    """Return the blocks along each axis; those along axes that stay are intervals."""
    ops = {axis: op.inverse() if back else op for axis, op in operators}
    return [
        [LineBlock.of(ops[axis], *ends) if axis in ops else ends for ends in pairwise(places)]
        for axis, places in enumerate(boundaries)
    ]


def _segments(block: Sequence[LineBlock | Interval]) -> list[Intervals]:
    return [part.segments if isinstance(part, LineBlock) else (part,) for part in block]


def _block_task(
    spec: TransformSpec,
    backend: str,
    dtype: np.dtype[Any],
    block: Sequence[LineBlock | Interval],
    windows: Sequence[ChunkedWindow | None],
) -> UndecimatedBlock:
    lines = []
    for axis in spec.axes:
        part = block[axis]
        assert isinstance(part, LineBlock)
        lines.append((axis, part))
    return UndecimatedBlock(spec, backend, dtype, tuple(lines), tuple(windows))


def _resized(places: Sequence[int], length: int) -> tuple[int, ...]:
    """Return where blocks begin along a line of another length; the last one is longer or shorter."""
    return (*(place for place in places[:-1] if place < length), length)


@dataclass(frozen=True)
class UndecimatedLevel:
    """A level of an undecimated transform: where its blocks begin along each axis, and the blocks."""

    spec: TransformSpec
    boundaries: tuple[tuple[int, ...], ...]
    along: list[list[LineBlock | Interval]]

    @property
    def window_lengths(self) -> list[list[int]]:
        """The samples of the windows of blocks along each axis."""
        return [
            [sum(stop - start for start, stop in segments) for segments in _segments(axis)]
            for axis in self.along
        ]


def undecimated_levels(
    tree: BandTree, boundaries: tuple[tuple[int, ...], ...], dtype: np.dtype[Any]
) -> Iterator[UndecimatedLevel]:
    """Yield the levels forward, finest first, given where the chunks of the samples begin."""
    for number, shape in enumerate(tree.sample_shapes):
        spec = tree.spec.at_level(number)
        operators = spec.operators(shape, dtype, NumpyEngine.lifting)
        lengths = dict(enumerate(shape)) | {axis: op.counts[0] for axis, op in operators}
        boundaries = tuple(_resized(places, lengths[axis]) for axis, places in enumerate(boundaries))
        yield UndecimatedLevel(spec, boundaries, _line_blocks(operators, boundaries, False))


def undecimated_tasks(
    tree: BandTree, source: ChunkedArray, backend: str, dtype: np.dtype[Any]
) -> tuple[list[ChunkedArray], Tasks]:
    """Return all bands in flat order, and the tasks that compute them."""
    name = f"undula-forward-{tokenize(source.name, tree, backend, str(dtype))}"
    tasks, low, details = Tasks(), source, list[ChunkedArray]()
    for number, of_level in enumerate(undecimated_levels(tree, source.boundaries, dtype)):
        spec, level, along = of_level.spec, f"{name}-{number}", of_level.along
        reader, blocks = ChunkReader(low, level), {}
        for numbers in product(*(range(len(axis)) for axis in along)):
            block = [axis[k] for axis, k in zip(along, numbers, strict=True)]
            keys: dict[Key, int] = {}
            window = reader.window(_segments(block), keys)
            blocks[(level, *numbers)] = (_block_task(spec, backend, dtype, block, [window]), list(keys))
        tasks.add(level, blocks, tasks.add_rims(reader))
        bands = [ChunkedArray(level, of_level.boundaries, dtype, k) for k in range(len(spec.keys))]
        low, details = select_item(tasks, named(level, "low"), bands[0]), [*bands[1:], *details]
    return [low, *details], tasks


def undecimated_tasks_back(
    tree: BandTree, bands: Sequence[ChunkedArray | None], backend: str, dtype: np.dtype[Any]
) -> tuple[ChunkedArray, Tasks]:
    """Return the samples of bands in flat order, and the tasks that compute them."""
    names = [None if band is None else band.name for band in bands]
    name = f"undula-inverse-{tokenize(names, tree, backend, str(dtype))}"
    tasks, low, details, count = Tasks(), bands[0], list(bands[1:]), len(tree.spec.keys) - 1
    for number in reversed(range(tree.levels)):
        sources, details = [low, *details[:count]], details[count:]
        given = [source for source in sources if source is not None]
        if not given:
            continue
        shape, spec, level = tree.sample_shapes[number], tree.spec.at_level(number), f"{name}-{number}"
        operators = spec.operators(shape, dtype, NumpyEngine.lifting)
        boundaries = [_resized(places, n) for places, n in zip(given[-1].boundaries, shape, strict=True)]
        along = _line_blocks(operators, boundaries, True)
        readers = [
            None if source is None else ChunkReader(source, f"{level}-{k}")
            for k, source in enumerate(sources)
        ]
        blocks = {}
        for numbers in product(*(range(len(axis)) for axis in along)):
            block = [axis[k] for axis, k in zip(along, numbers, strict=True)]
            keys: dict[Key, int] = {}
            windows = [
                None if reader is None else reader.window(_segments(block), keys) for reader in readers
            ]
            blocks[(level, *numbers)] = (_block_task(spec, backend, dtype, block, windows), list(keys))
        tasks.add(level, blocks, set[str]().union(*(tasks.add_rims(reader) for reader in readers if reader)))
        low = ChunkedArray(level, tuple(map(tuple, boundaries)), dtype)
    assert low is not None
    return low, tasks
