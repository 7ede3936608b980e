"""The scratch memory of graphs: the arena with padded rows, and the tables that are uploaded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays import ArrayView
from ...lowering.graph import Graph, Transform
from .launches import PAD_ELEMENTS

__all__ = ["MIN_PADDED_COLUMNS", "Arena", "Tables", "row_pitches", "with_pitch"]

ALIGNMENT_BYTES = 256  # of arrays in the arena
MIN_PADDED_COLUMNS = 32  # Rows of transforms with at least so many are padded.


class Arena:
    """Memory that arrays share in turn."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # ranges of bytes, by their place

    def take(self, size: int) -> int:
        """Return the first byte of a range of so many."""
        size = max(1, -(-size // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
        for k, (begin, end) in enumerate(self._free):
            if end - begin >= size:
                self._free[k : k + 1] = [(begin + size, end)] if end - begin > size else []
                return begin
        begin = self.size
        if self._free and self._free[-1][1] == self.size:
            begin = self._free.pop()[0]
        self.size = begin + size
        return begin

    def give_back(self, begin: int, size: int) -> None:
        """Free a range of bytes."""
        size = max(1, -(-size // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
        joined: list[tuple[int, int]] = []
        for first, last in sorted([*self._free, (begin, begin + size)]):
            if joined and joined[-1][1] == first:
                joined[-1] = (joined[-1][0], last)
            else:
                joined.append((first, last))
        self._free = joined


class Tables:
    """The memory that is uploaded once, while it is filled."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, np.ndarray[Any, Any]]] = []
        self.size = 8  # bytes

    def reserve(self, size: int) -> int:
        """Return the place of so many bytes, which are zero."""
        begin = self.size
        self.size += -(-size // 8) * 8
        return begin

    def fill(self, begin: int, values: Any, dtype: str) -> None:
        """Set bytes that were reserved."""
        self._parts.append((begin, np.asarray(values).astype(dtype).reshape(-1).view(np.uint8)))

    def add(self, values: Sequence[float], dtype: str) -> int:
        """Return the place of numbers, in elements."""
        itemsize = np.dtype(dtype).itemsize
        begin = self.reserve(len(values) * itemsize)
        self.fill(begin, values, dtype)
        return begin // itemsize

    def image(self) -> np.ndarray[Any, Any]:
        """Return all bytes."""
        image = np.zeros(self.size, np.uint8)
        for begin, values in self._parts:
            image[begin : begin + values.size] = values
        return image


def row_pitches(graph: Graph, fixed: set[str]) -> dict[str, tuple[int, int]]:
    """Return for buffers of transforms the length of their rows, and a longer one for access in wide words.

    Those of the caller stay as they are, as do buffers with views that go on from row to row.
    """
    pitches: dict[str, tuple[int, int]] = {}
    for node in graph.nodes:
        if not isinstance(node, Transform):
            continue
        for view in (node.samples, *node.bands):
            buffer = graph.buffers[view.buffer]
            columns = buffer.shape[-1]
            if buffer.name not in fixed and len(buffer.shape) > 1 and columns >= MIN_PADDED_COLUMNS:
                pitches[buffer.name] = columns, -(-columns // PAD_ELEMENTS) * PAD_ELEMENTS
    for node in graph.nodes:
        for view in (*node.reads, *node.writes):
            if view.buffer in pitches and with_pitch(view, *pitches[view.buffer]) is None:
                del pitches[view.buffer]
    return pitches


def with_pitch(view: ArrayView, columns: int, pitch: int) -> ArrayView | None:
    """Return a view of a buffer with rows of ``columns`` for one whose rows are ``pitch`` apart, or None."""
    row, first = divmod(view.offset, columns)
    low = high = first
    strides = []
    for n, step in zip(view.shape, view.strides, strict=True):
        if n > 1 and step % columns:  # along a row
            low, high = low + min(0, step * (n - 1)), high + max(0, step * (n - 1))
            strides.append(step)
        else:
            strides.append(step // columns * pitch if n > 1 else 0)
    if low < 0 or high >= columns:
        return None
    return view._replace(strides=tuple(strides), offset=row * pitch + first)
