"""Stages: some levels of a transform of an array in chunks, as tasks on its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from operator import getitem
from typing import Any

import numpy as np

from ...lowering.nesting import band_keys
from ...lowering.spec import BandTree, TransformSpec
from .blocks import ChunkedWindow, ForwardBlock, InverseBlock
from .lines import axis_blocks, line_transforms
from .sources import ChunkedArray, ChunkReader, Key

__all__ = ["Tasks", "forward_stage", "inverse_stage", "select_item"]

Shape = tuple[int, ...]


@dataclass
class Tasks:
    """Tasks by layer, and the layers that each layer depends on."""

    layers: dict[str, dict[Key, Any]] = field(default_factory=dict)
    dependencies: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str, tasks: dict[Key, Any], dependencies: set[str]) -> None:
        """Add a layer, unless it has no tasks."""
        if tasks:
            self.layers[name] = tasks
            self.dependencies[name] = dependencies

    def add_rims(self, reader: ChunkReader) -> set[str]:
        """Add the tasks that cut out rims, and return the layers that blocks depend on."""
        self.add(reader.rims_name, reader.rim_tasks, {reader.array.name})
        return {reader.array.name, reader.rims_name} & {reader.array.name, *self.layers}


def _flat_keys(spec: TransformSpec, levels: int) -> list[tuple[int, str]]:
    """Return level and key of all bands in flat order."""
    keys = band_keys(len(spec.axes))
    return [(levels, keys[0]), *((level, key) for level in range(levels, 0, -1) for key in keys[1:])]


def _letters(spec: TransformSpec, key: str, ndim: int) -> list[str]:
    """Return the letter of a band along each axis, and nothing along those that stay."""
    letters = [""] * ndim
    for axis, letter in zip(spec.axes, key, strict=True):
        letters[axis] = letter
    return letters


def forward_stage(
    tasks: Tasks,
    name: str,
    source: ChunkedArray,
    tree: BandTree,
    boundaries: Sequence[Sequence[int]],
    backend: str,
    integers: np.dtype[Any] | None,
    dtype: np.dtype[Any],
    extent: tuple[Shape, int] | None,
) -> list[ChunkedArray]:
    """Add the tasks of a stage forward.

    Parameters
    ----------
    tasks : Tasks
    name : str
        Name of the stage.
    source : ChunkedArray
        The samples.
    tree : BandTree
        The levels of the stage.
    boundaries : sequence
        Along each axis, where blocks begin, and the end of the last one.
    backend, integers, extent
        As :class:`ForwardBlock` takes them.
    dtype : dtype
        Dtype of the coefficients.

    Returns
    -------
    list of ChunkedArray
        The bands in flat order; tasks return all of them.
    """
    spec, levels, ndim = tree.spec, tree.levels, len(source.boundaries)
    lines = line_transforms(tree)
    along = [axis_blocks(line, places, False) for line, places in zip(lines, boundaries, strict=True)]
    flat = _flat_keys(spec, levels)
    letters = [_letters(spec, key, ndim) for _, key in flat]
    reader, blocks = ChunkReader(source, name, boundaries), dict[Key, tuple[Any, list[Key]]]()
    for numbers in product(*(range(len(axis)) for axis in along)):
        block = [axis[number] for axis, number in zip(along, numbers, strict=True)]
        keys: dict[Key, int] = {}
        window = reader.window([axis.window.segments for axis in block], keys)
        results = tuple(
            tuple(
                axis.result(line, level, letter)
                for axis, line, letter in zip(block, lines, of_band, strict=True)
            )
            for (level, _), of_band in zip(flat, letters, strict=True)
        )
        task = ForwardBlock(spec, levels, backend, integers, extent, window, results)
        blocks[(name, *numbers)] = (task, list(keys))
    for rims in reader.rim_tasks:
        # A worker cuts the rims out of the chunks of a block before it transforms the block, as others may
        # wait for them.
        _, arguments = blocks[(name, *rims[1:])]
        if rims not in arguments:
            arguments.append(rims)
    tasks.add(name, blocks, tasks.add_rims(reader))
    bands = []
    for item, ((level, _), of_band) in enumerate(zip(flat, letters, strict=True)):
        places = tuple(
            (0, *(block.coefficients(line, level, letter)[1] for block in axis))
            for axis, line, letter in zip(along, lines, of_band, strict=True)
        )
        bands.append(ChunkedArray(name, places, dtype, item))
    return bands


def select_item(tasks: Tasks, name: str, array: ChunkedArray) -> ChunkedArray:
    """Add tasks that select the array among the results of a stage."""
    numbers = product(*(range(len(sizes)) for sizes in array.chunks))
    layer = {(name, *number): (getitem, (array.name, *number), array.item) for number in numbers}
    tasks.add(name, layer, {array.name})
    return ChunkedArray(name, array.boundaries, array.dtype)


def inverse_stage(
    tasks: Tasks,
    name: str,
    sources: Sequence[ChunkedArray | None],
    tree: BandTree,
    boundaries: Sequence[Sequence[int]],
    backend: str,
    dtype: np.dtype[Any],
) -> ChunkedArray:
    """Add the tasks of a stage back; the parameters are those of :func:`forward_stage`.

    ``sources`` are the bands in flat order, None for zeros. The array of the samples is returned.
    """
    spec, levels = tree.spec, tree.levels
    lines = line_transforms(tree)
    along = [axis_blocks(line, places, True) for line, places in zip(lines, boundaries, strict=True)]
    flat = _flat_keys(spec, levels)
    readers = [
        None if source is None else ChunkReader(source, f"{name}-{number}")
        for number, source in enumerate(sources)
    ]
    last = max(spec.axes)
    several = len(spec.axes) > 1 and prod(tree.sample_shapes[0][last + 1 :]) > 1
    blocks = {}
    for numbers in product(*(range(len(axis)) for axis in along)):
        block = [axis[number] for axis, number in zip(along, numbers, strict=True)]
        shape = tuple(axis.window.length for axis in block)
        inner = BandTree.of_samples(spec, shape, levels)
        keys: dict[Key, int] = {}
        bands: list[ChunkedWindow | None] = []
        for (level, _), counts, reader in zip(flat, inner.flat_shapes, readers, strict=True):
            if reader is None:
                bands.append(None)
                continue
            segments = [
                axis.window.segments if line is None else axis.window.band_segments(level, count)
                for axis, line, count in zip(block, lines, counts, strict=True)
            ]
            bands.append(reader.window(segments, keys))
        result = []
        for axis, line in zip(block, lines, strict=True):
            start, stop = axis.samples
            place = 0 if line is None else axis.window.place(0, start)
            result.append(slice(place, place + stop - start))
        doubled = several and prod(shape[last + 1 :]) == 1
        task = InverseBlock(spec, levels, backend, dtype, shape, tuple(bands), tuple(result), doubled)
        blocks[(name, *numbers)] = (task, list(keys))
    tasks.add(name, blocks, set[str]().union(*(tasks.add_rims(reader) for reader in readers if reader)))
    return ChunkedArray(name, tuple(map(tuple, boundaries)), dtype)
