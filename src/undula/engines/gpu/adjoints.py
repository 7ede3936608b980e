"""Adjoints on devices: launches for the results at the ends of lines.

Results at the ends of two axes are computed in two steps: along one axis for those at its ends, into a small
array, and from there along the other axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...arrays import ArrayView
from ...lowering.adjoints import border_rows
from ...lowering.axis import AxisOp
from .emit import Dialect, adjoints
from .emit.adjoints import EndsSpec
from .launches import Launch

__all__ = ["AdjointEnds"]

MAX_NARROW_ITEMS = 2**31  # that are counted in 32 bits
NEVER = 2**31 - 1  # a place before which nothing is moved by a gap


class _DeviceGrid(NamedTuple):
    """An array as kernels see it: where it is, and elements between planes, rows and places."""

    buffer: int
    dtype: str
    start: int
    plane: int
    row: int
    place: int

    def moved(self, row: int, place: int, start: int = 0) -> _DeviceGrid:
        """Return the array with other strides."""
        return self._replace(row=row, place=place, start=self.start + start)


class _Gap(NamedTuple):
    """Results from a place on are so many places later: between both ends of a line lie all others."""

    split: int = NEVER
    size: int = 0


NO_GAP = _Gap()


class AdjointEnds:
    """The results of adjoints along one or two axes at the ends of lines.

    Parameters
    ----------
    dialect : Dialect
    allocate : function
        Returns a scratch array of a shape and dtype.
    ops : one or two AxisOps
        The adjoints, of syntheses or of analyses.
    planes, inner : int
        Elements before and behind their axes.
    """

    def __init__(
        self,
        dialect: Dialect,
        allocate: Callable[[tuple[int, ...], str], ArrayView],
        ops: Sequence[AxisOp],
        planes: int,
        inner: int,
    ) -> None:
        self.dialect, self.allocate, self.planes, self.inner = dialect, allocate, planes, inner
        self.rows = [border_rows(op) for op in ops]
        ends = [((op.length,), op.counts) for op in ops]
        self.results = [bands if op.back else samples for op, (samples, bands) in zip(ops, ends, strict=True)]
        self.sources = [samples if op.back else bands for op, (samples, bands) in zip(ops, ends, strict=True)]

    def launches(
        self,
        inputs: Sequence[tuple[ArrayView, tuple[int, int]]],
        outputs: Sequence[tuple[ArrayView, tuple[int, int]]],
    ) -> list[Launch]:
        """Return the launches, given arrays with the strides of planes and rows, in the order of keys."""
        sources, results = ([_grid(*pair) for pair in pairs] for pairs in (inputs, outputs))
        if len(self.rows) == 2:
            return [*self._along(sources, results), *self._down(sources, results)]
        launches = []
        for sequence, rows in enumerate(self.rows[0]):
            if rows.changed:
                gap = self.results[0][sequence] - rows.left - rows.right
                launches += self._launch(0, sequence, False, sources, results[sequence], 1, self.inner,
                                         place_gap=gap)  # fmt: skip
        return launches

    def _along(self, sources: list[_DeviceGrid], results: list[_DeviceGrid]) -> list[Launch]:
        """Return the launches for the ends of rows."""
        launches, columns = [], len(self.sources[1])
        for sequence, rows in enumerate(self.rows[1]):
            if not rows.changed:
                continue
            count = rows.left + rows.right
            row, parts = count * self.inner, []
            for number, length in enumerate(self.sources[0]):
                read = [sources[columns * number + k] for k in range(columns)]
                read = [grid.moved(grid.row, self.inner) for grid in read]
                view = self.allocate((self.planes, length, count, self.inner), results[0].dtype)
                target = _DeviceGrid(view.buffer, view.dtype, view.offset, length * row, row, self.inner)
                launches += self._launch(1, sequence, False, read, target, length, self.inner)
                parts.append(target.moved(0, row))
            gap = (self.results[1][sequence] - count) * self.inner
            for other in range(len(self.results[0])):
                target = results[len(self.rows[1]) * other + sequence]
                target = target.moved(0, target.row)
                split = _Gap(rows.left * self.inner, gap)
                launches += self._launch(0, other, True, parts, target, 1, row, inner_gap=split)
        return launches

    def _down(self, sources: list[_DeviceGrid], results: list[_DeviceGrid]) -> list[Launch]:
        """Return the launches for the first and the last rows."""
        launches, columns = [], len(self.sources[1])
        for sequence, rows in enumerate(self.rows[0]):
            if not rows.changed:
                continue
            count, parts = rows.left + rows.right, []
            for number, length in enumerate(self.sources[1]):
                read = [sources[columns * k + number] for k in range(len(self.sources[0]))]
                read = [grid.moved(0, grid.row) for grid in read]
                row = length * self.inner
                view = self.allocate((self.planes, count, length, self.inner), results[0].dtype)
                target = _DeviceGrid(view.buffer, view.dtype, view.offset, count * row, 0, row)
                launches += self._launch(0, sequence, False, read, target, 1, row)
                parts.append(target.moved(row, self.inner))
            gap = self.results[0][sequence] - count
            for other in range(len(self.results[1])):
                target = results[len(self.rows[1]) * sequence + other]
                target = target.moved(target.row, self.inner)
                launches += self._launch(1, other, True, parts, target, count, self.inner,
                                         row_gap=_Gap(rows.left, gap))  # fmt: skip
        return launches

    def _launch(
        self,
        axis: int,
        sequence: int,
        everywhere: bool,
        sources: Sequence[_DeviceGrid],
        target: _DeviceGrid,
        rows: int,
        inner: int,
        row_gap: _Gap = NO_GAP,
        place_gap: int = 0,
        inner_gap: _Gap = NO_GAP,
    ) -> list[Launch]:
        """Return the launch that combines lines along an axis; none if there are no results."""
        listed, length = self.rows[axis][sequence], self.results[axis][sequence]
        spec = EndsSpec(listed, everywhere, len(sources), sources[0].dtype, target.dtype)
        items = self.planes * rows * spec.items(length) * inner
        kernel = adjoints.emit(replace(spec, wide=items >= MAX_NARROW_ITEMS), self.dialect)
        groups = -(-items // kernel.items)
        if groups == 0:
            return []
        lengths = self.sources[axis]
        strides = [value for grid in (*sources, target) for value in grid[2:]]
        extents = [
            self.planes, rows, length, inner, lengths[0], lengths[-1], *row_gap, place_gap, *inner_gap,
        ]  # fmt: skip
        buffers = tuple(grid.buffer for grid in (*sources, target))
        return [Launch(kernel, groups, buffers, (*strides, *extents))]


def _grid(view: ArrayView, strides: tuple[int, int]) -> _DeviceGrid:
    """Return an array as planes of rows; the places of a row are those of the first axis."""
    plane, row = strides
    return _DeviceGrid(view.buffer, view.dtype, view.offset, plane, row, row)
