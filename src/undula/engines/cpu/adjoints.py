"""Adjoints on the CPU: the pass of a plain operator, and what differs from it at the ends of lines.

Those of the DWT are a :class:`FoldedPass`. Its kernels compute some samples beyond the ends as well, which
are added to samples of the line: within rows by the kernels, and rows beyond the ends to other rows
afterwards.

All others are an :class:`AdjointPass`, which computes the results at the ends of lines once more. Those at
the ends of two axes take two steps: along one axis for those at its ends, as lines of a small array, and
along the other axis for all of these lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...lowering.adjoints import Fold, border_rows
from ...lowering.axis import AxisOp
from ..base import UnfollowableStridesError
from ..threads import ranges
from .executable import CALL_BYTES, SCRATCH_BUFFER, ExecutableStep, KernelCall, address
from .machine_code import source_address
from .passes import AxisPass

__all__ = ["AdjointPass", "FoldedPass"]

Array = NDArray[Any]
Shape = tuple[int, ...]
FIRST_GRID, MAX_SOURCES = 8, 2  # where arrays begin among the words of a table, and how many are read
Views = Sequence[ArrayView | None]
Temporary = Callable[[Shape], ArrayView]
Grids = dict[int, "_LineGrid"]  # sources by number; those that are zero are left out


class _LineGrid(NamedTuple):
    """An array as kernels see it: where it is, and bytes between planes, rows and places."""

    buffer: int
    offset: int
    plane: int
    row: int
    place: int

    def moved(self, offset: int) -> _LineGrid:
        """Return the grid that begins so many bytes later."""
        return self._replace(offset=self.offset + offset)


class _Sums:
    """Weighted sums that results at some places are made of, in the memory where kernels read them."""

    def __init__(
        self, listed: Iterable[tuple[int, Iterable[tuple[int, int, float]]]], dtype: np.dtype[Any]
    ) -> None:
        items: list[tuple[int, int, int]] = []
        terms: list[tuple[int, int]] = []
        weights: list[float] = []
        for number, parts in listed:
            begin = len(terms)
            for source, place, factor in parts:
                terms.append((source, place))
                weights.append(factor)
            items.append((number, begin, len(terms)))
        self.count = len(items)
        self.items = np.array(items or [(0, 0, 0)], np.int64)
        self.terms = np.array(terms or [(0, 0)], np.int64)
        self.weights = np.array(weights or [0.0], dtype)


class FoldedPass:
    """Adjoints of analyses along one axis across rows, or along two neighbouring axes.

    Parameters
    ----------
    plain : AxisPass
        The pass of the plain operators, which knows how they fold lines.
    fold : Fold
        How they fold the first axis.
    """

    def __init__(self, plain: AxisPass, fold: Fold) -> None:
        self.plain, end = plain, plain.count + fold.before
        # The rows beyond both ends, as kernels count them. They begin with an even row, which may be the last
        # one of the line.
        self.ranges = [(0, fold.before), (end - end % 2, end + fold.after)] if fold.entries else []
        starts = np.cumsum([0, *(stop - begin for begin, stop in self.ranges)]).tolist()
        self.rows = starts[-1]

        def place(row: int) -> int:
            """Return where a row beyond the ends is in the array of all of them."""
            number = row + fold.before
            return number if row < 0 else starts[1] + number - self.ranges[1][0]

        targets: dict[int, list[tuple[int, int, float]]] = {}
        for row, sample, weight in fold.entries:
            targets.setdefault(sample, []).append((0, place(row), weight))
        self._sums = _Sums(targets.items(), plain.dtype)

    def steps(self, x: ArrayView, bands: Views, temporary: Temporary) -> list[ExecutableStep]:
        """Return the steps that compute the rows beyond the ends, and add them to rows of the samples.

        The arguments are those of :meth:`AdjointPass.steps`.
        """
        if not self.rows:
            return []
        plain, axis = self.plain, self.plain.axis
        shape = (*plain.shape[:axis], self.rows, *plain.shape[axis + 1 :])
        beyond, steps, first = temporary(shape), [], 0
        for begin, end in self.ranges:
            rows = beyond._replace(offset=beyond.offset + first * beyond.strides[axis])
            first += end - begin
            calls = partial(plain.plane_calls, rows, bands, begin, end)
            steps.append(ExecutableStep(math.prod(shape), plain.scratch_bytes, calls))
        target, source = (_line_grid(view, axis, plain.dtype) for view in (x, beyond))
        line = math.prod(shape[axis + 1 :])

        def add(threads: int) -> list[KernelCall]:
            parts = ranges(plain.planes, min(threads, plain.planes))
            return [
                _call(plain.dtype, part, self._sums, {0: source}, target, 1, line, True) for part in parts
            ]

        return [*steps, ExecutableStep(math.prod(shape), CALL_BYTES, add)]


class AdjointPass:
    """Adjoints along one axis, or along two neighbouring ones, of arrays of one shape.

    Parameters
    ----------
    plain : pass
        The pass of the plain operators.
    back : bool
        Whether to compute samples from bands.
    shape : tuple of int
        Shape of the samples.
    dtype : dtype
        float32 or float64.
    axis : int
        The axis, or the first of two.
    operators : one or two AxisOps
        Adjoints of syntheses.
    """

    def __init__(
        self,
        plain: Any,
        back: bool,
        shape: Shape,
        dtype: np.dtype[Any],
        axis: int,
        operators: Sequence[AxisOp],
    ) -> None:
        self.plain, self.back, self.dtype, self.axis = plain, back, dtype, axis
        self.planes, self.samples = math.prod(shape[:axis]), math.prod(shape)
        self.channels = math.prod(shape[axis + len(operators) :])
        self.place = self.channels * dtype.itemsize  # bytes between places of the last axis
        self.rows = [border_rows(op.inverse() if back else op) for op in operators]
        ends = [((op.length,), op.counts) for op in operators]
        self.results = [samples if back else bands for samples, bands in ends]
        self.sources = [bands if back else samples for samples, bands in ends]
        self._sums: dict[Any, _Sums] = {}  # Kernels find them by their addresses, so these have to stay.

    def steps(self, x: ArrayView, bands: Views, temporary: Temporary) -> list[ExecutableStep]:
        """Return the steps that compute the results at the ends.

        Parameters
        ----------
        x : ArrayView
            The samples.
        bands : sequence of ArrayView or None
        temporary : function
            Returns an intermediate result of a shape.
        """
        inputs, outputs = (bands, [x]) if self.back else ([x], bands)
        sources = {k: self._grid(view) for k, view in enumerate(inputs) if view is not None}
        targets = [self._grid(view) for view in outputs if view is not None]
        if len(self.rows) > 1:
            return [*self._along(sources, targets, temporary), *self._down(sources, targets, temporary)]
        return [
            self._step(self._at_ends(0, k, numbered=False), sources, target, 1, self.channels)
            for k, target in enumerate(targets)
            if self.rows[0][k].changed
        ]

    def _along(self, sources: Grids, targets: list[_LineGrid], temporary: Temporary) -> list[ExecutableStep]:
        """Return the steps for the ends of rows."""
        steps, size, columns = [], self.dtype.itemsize, len(self.sources[1])
        for sequence, rows in enumerate(self.rows[1]):
            if not rows.changed:
                continue
            sums, ends = self._at_ends(1, sequence), {}
            for number, count in enumerate(self.sources[0]):
                parts = {k: sources[columns * number + k] for k in range(columns)
                         if columns * number + k in sources}  # fmt: skip
                if parts:
                    view = temporary((self.planes, count, sums.count, self.channels))
                    row = sums.count * self.place
                    target = _LineGrid(view.buffer, view.offset * size, count * row, row, self.place)
                    placed = {k: grid._replace(place=self.place) for k, grid in parts.items()}
                    steps.append(self._step(sums, placed, target, count, self.channels))
                    ends[number] = target._replace(row=0, place=row)
            for other, length in enumerate(self.results[0]):
                target = targets[len(self.rows[1]) * other + sequence]._replace(row=0)
                everywhere = self._everywhere(0, other, length)
                far = (self.results[1][sequence] - rows.right) * self.place
                for width, begin, place in ((rows.left, 0, 0), (rows.right, rows.left * self.place, far)):
                    moved = {k: grid.moved(begin) for k, grid in ends.items()}
                    line = width * self.channels
                    steps.append(self._step(everywhere, moved, target.moved(place), 1, line))
        return steps

    def _down(self, sources: Grids, targets: list[_LineGrid], temporary: Temporary) -> list[ExecutableStep]:
        """Return the steps for the first and the last rows."""
        steps, size, columns = [], self.dtype.itemsize, len(self.sources[1])
        for sequence, rows in enumerate(self.rows[0]):
            if not rows.changed:
                continue
            sums, ends = self._at_ends(0, sequence), {}
            for number, count in enumerate(self.sources[1]):
                parts = {k: sources[columns * k + number]._replace(row=0) for k in range(len(self.sources[0]))
                         if columns * k + number in sources}  # fmt: skip
                if parts:
                    view = temporary((self.planes, sums.count, count, self.channels))
                    row = count * self.place
                    target = _LineGrid(view.buffer, view.offset * size, sums.count * row, 0, row)
                    steps.append(self._step(sums, parts, target, 1, count * self.channels))
                    ends[number] = target._replace(row=row, place=self.place)
            for other, length in enumerate(self.results[1]):
                target = targets[len(self.rows[1]) * sequence + other]
                target = target._replace(row=target.place, place=self.place)
                everywhere = self._everywhere(1, other, length)
                far = (self.results[0][sequence] - rows.right) * target.row
                for height, first, begin in ((rows.left, 0, 0), (rows.right, rows.left, far)):
                    moved = {k: grid.moved(first * grid.row) for k, grid in ends.items()}
                    steps.append(self._step(everywhere, moved, target.moved(begin), height, self.channels))
        return steps

    def _at_ends(self, axis: int, sequence: int, numbered: bool = True) -> _Sums:
        """Return what the results at the ends of an axis are made of, at their places or numbered from 0."""
        places = self.rows[axis][sequence].places(self.results[axis][sequence])
        numbers = range(places.size) if numbered else places
        return self._listed((axis, sequence, "ends"), places, numbers)

    def _everywhere(self, axis: int, sequence: int, length: int) -> _Sums:
        return self._listed((axis, sequence, "all"), range(length), range(length))

    def _listed(self, key: tuple[int, int, str], places: Iterable[int], numbers: Iterable[int]) -> _Sums:
        if key not in self._sums:
            axis, sequence, _ = key
            rows, length = self.rows[axis][sequence], self.results[axis][sequence]
            terms = ((int(n), rows.terms(int(p), length, self.sources[axis]))
                     for p, n in zip(places, numbers, strict=True))  # fmt: skip
            self._sums[key] = _Sums(terms, self.dtype)
        return self._sums[key]

    def _grid(self, view: ArrayView) -> _LineGrid:
        return _line_grid(view, self.axis, self.dtype)

    def _step(self, sums: _Sums, sources: Grids, target: _LineGrid, rows: int, count: int) -> ExecutableStep:
        """Return the step that writes sums of lines of ``count`` numbers."""

        def calls(threads: int) -> list[KernelCall]:
            parts = ranges(self.planes, min(threads, self.planes))
            return [_call(self.dtype, part, sums, sources, target, rows, count) for part in parts]

        return ExecutableStep(self.planes * rows * sums.count * count, CALL_BYTES, calls)


def _line_grid(view: ArrayView, axis: int, dtype: np.dtype[Any]) -> _LineGrid:
    """Return an array as planes of rows; the places of a row are those of an axis."""
    strides = view.plane_strides(axis, axis + 1)
    if strides is None:
        raise UnfollowableStridesError(view.buffer)
    size = dtype.itemsize
    return _LineGrid(view.buffer, view.offset * size, strides[0] * size, strides[1] * size, strides[1] * size)


def _call(
    dtype: np.dtype[Any],
    planes: tuple[int, int],
    sums: _Sums,
    sources: Grids,
    target: _LineGrid,
    rows: int,
    count: int,
    added: bool = False,
) -> KernelCall:
    lists = address(sums.items), address(sums.terms), address(sums.weights)
    table = [*planes, rows if count else 0, sums.count, *lists, count, *target[1:]]
    relocations = [(0, SCRATCH_BUFFER), (1 + FIRST_GRID, target.buffer)]
    for number in range(MAX_SOURCES):
        grid = sources.get(number)
        if grid is not None:
            relocations.append((1 + len(table), grid.buffer))
        table += [0] * 4 if grid is None else grid[1:]
    table.append(int(added))
    return KernelCall(_kernel(dtype.name), 1, [8, *table], relocations)


@cache
def _kernel(dtype: str) -> int:
    return source_address("def kernel(table, like):\n    combine_listed(table, like)\n", dtype)
