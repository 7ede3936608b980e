"""Arrays in chunks, and which parts of which chunks the window of a block consists of."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...lowering.windows import Interval
from .blocks import ChunkedWindow, Fragment, Rims, Slices

__all__ = ["ChunkReader", "ChunkedArray", "Key", "named"]

Key = tuple[Hashable, ...]

# Of a chunk, a part up to this share is cut out by a task of its own, so that the chunk need not be sent.
MAX_RIM_SHARE = 0.25


def named(name: str, kind: str) -> str:
    """Return the name of tasks of another kind, before the hash, as dashboards show what stands before that.

    Examples
    --------
    >>> named("undula-forward-0f1e-2", "rims")
    'undula-forward-rims-0f1e-2'
    """
    library, action, *rest = name.split("-")
    return "-".join((library, action, kind, *rest))


@dataclass(frozen=True)
class ChunkedArray:
    """An array whose chunks are results of tasks.

    Parameters
    ----------
    name : str
        Tasks have the keys ``(name, *numbers)``.
    boundaries : tuple of tuple of int
        Along each axis, where chunks begin, and the end of the last one.
    dtype : dtype
    item : int or None
        The number of the chunk, if tasks return tuples.
    """

    name: str
    boundaries: tuple[tuple[int, ...], ...]
    dtype: np.dtype[Any]
    item: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(places[-1] for places in self.boundaries)

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """The sizes of the chunks along each axis."""
        return tuple(tuple(stop - start for start, stop in pairwise(places)) for places in self.boundaries)


class _AxisFragment(NamedTuple):
    """A part of a chunk along one axis, and where it belongs in the window."""

    chunk: int
    start: int
    stop: int
    target: int


def _axis_fragments(places: Sequence[int], segments: Sequence[Interval]) -> list[_AxisFragment]:
    """Return the parts of chunks that segments of a line consist of."""
    fragments, target = [], 0
    for start, stop in segments:
        while start < stop:
            chunk = bisect_right(places, start) - 1
            end = min(stop, places[chunk + 1])
            fragments.append(_AxisFragment(chunk, start - places[chunk], end - places[chunk], target))
            target += end - start
            start = end
    return fragments


class _Rim(NamedTuple):
    """A part of a chunk that other blocks need."""

    chunk: tuple[int, ...]
    part: tuple[Interval, ...]


class ChunkReader:
    """What the blocks of a stage read of an array in chunks.

    Blocks that need a small part of a chunk get it from a task that cuts out all such parts of a group of
    chunks.

    Parameters
    ----------
    array : ChunkedArray
    name : str
        Name of the stage.
    blocks : sequence of sequence of int, optional
        Along each axis, where blocks of the array begin, and the end of the last one. The chunks of a block
        are a group; by default, each chunk is one.

    Attributes
    ----------
    rim_tasks : dict
        The tasks that cut out parts of chunks, by key; complete after all windows are known.
    """

    def __init__(self, array: ChunkedArray, name: str, blocks: Sequence[Sequence[int]] | None = None) -> None:
        self.array, self.rims_name = array, named(name, "rims")
        self._rims: dict[tuple[int, ...], dict[_Rim, int]] = {}
        self._chunks = array.chunks
        self._groups = [
            [bisect_right(places, (start + stop) // 2) - 1 for start, stop in pairwise(ends)]
            for places, ends in zip(blocks or array.boundaries, array.boundaries, strict=True)
        ]

    def window(self, segments: Sequence[Sequence[Interval]], keys: dict[Key, int]) -> ChunkedWindow:
        """Return a window of the array.

        Parameters
        ----------
        segments : sequence of sequence of (int, int)
            The parts of the array that it consists of, along each axis.
        keys : dict
            The keys that the task depends on, numbered; those of the window are added.
        """
        along = [
            _axis_fragments(places, parts)
            for places, parts in zip(self.array.boundaries, segments, strict=True)
        ]
        fragments = []
        for parts in product(*along):
            chunk = tuple(part.chunk for part in parts)
            target = tuple(slice(part.target, part.target + part.stop - part.start) for part in parts)
            inner = tuple((part.start, part.stop) for part in parts)
            size = prod(self._chunks[axis][number] for axis, number in enumerate(chunk))
            count = prod(stop - start for start, stop in inner)
            if count <= MAX_RIM_SHARE * size:
                group = tuple(of_axis[part] for of_axis, part in zip(self._groups, chunk, strict=True))
                rims = self._rims.setdefault(group, {})
                number = rims.setdefault(_Rim(chunk, inner), len(rims))
                key: Key = (self.rims_name, *group)
                fragments.append(Fragment(keys.setdefault(key, len(keys)), number, None, target))
            else:
                complete = count == size
                key = (self.array.name, *chunk)
                fragments.append(
                    Fragment(
                        keys.setdefault(key, len(keys)),
                        self.array.item,
                        None if complete else _slices(inner),
                        target,
                    )
                )
        shape = tuple(sum(stop - start for start, stop in parts) for parts in segments)
        return ChunkedWindow(shape, tuple(fragments))

    @property
    def rim_tasks(self) -> dict[Key, Any]:
        """The tasks that cut out parts of chunks."""
        tasks = {}
        for group, rims in self._rims.items():
            chunks = list(dict.fromkeys(rim.chunk for rim in rims))
            parts = tuple((chunks.index(rim.chunk), _slices(rim.part)) for rim in rims)
            keys = [(self.array.name, *chunk) for chunk in chunks]
            tasks[(self.rims_name, *group)] = (Rims(self.array.item, parts), keys)
        return tasks


def _slices(intervals: Sequence[Interval]) -> Slices:
    return tuple(slice(start, stop) for start, stop in intervals)
