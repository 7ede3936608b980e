"""Undecimated transforms along one axis, or along two neighbouring ones at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...lowering.axis import AxisOp
from ...lowering.borders import extend
from ..base import UnfollowableStridesError
from ..threads import ranges
from .executable import CALL_BYTES, SCRATCH_BUFFER, KernelCall, address
from .machine_code import source_address
from .passes import MAX_LINE_CHANNELS

__all__ = ["UndecimatedPass"]

Array = NDArray[Any]
Shape = tuple[int, ...]
Terms = list[list[tuple[int, int, float]]]  # number of a row, offset and factor, for each result
Piece = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]  # planes, rows and columns

LINE_PLACES = 4096  # of a line that are worked on at once, so that they stay in the first cache
STRIP_SAMPLES = 4096  # of rows that are worked on at once, if they are filtered downwards only
ZERO_ROW = -1
# Words of a table that are addresses in the scratch, and those that are addresses in the table itself.
SCRATCH_WORDS, TABLE_WORDS = (11, 12, 17), (7, 16)


class UndecimatedPass:
    """An undecimated transform of arrays of one shape, forward or back.

    Parameters
    ----------
    back : bool
        Whether to compute samples from bands.
    shape : tuple of int
        Shape of the samples.
    dtype : dtype
        float32 or float64.
    axis : int
        The axis, or the first of two.
    operators : one or two AxisOps
        Analyses.
    """

    def __init__(
        self, back: bool, shape: Shape, dtype: np.dtype[Any], axis: int, operators: Sequence[AxisOp]
    ) -> None:
        self.back, self.dtype, self.axis, self.samples = back, dtype, axis, math.prod(shape)
        ops = [op.inverse() if back else op for op in operators]
        inner = math.prod(shape[axis + len(ops) :])
        within_rows = len(ops) == 1 and inner < MAX_LINE_CHANNELS
        self.down = None if within_rows else ops[0]
        self.along = ops[-1] if within_rows or len(ops) == 2 else None
        self.inner = axis if within_rows else axis + 1  # the first axis within a row
        self.planes = math.prod(shape[:axis])
        self.channels = inner if self.along else 1
        # Rows and places along them: of the sources, and of the results.
        read, written = (1, 0) if back else (0, 1)
        down = (1, 1) if self.down is None else (self.down.length, self.down.counts[0])
        along = (inner, inner) if self.along is None else (self.along.length, self.along.counts[0])
        self.source_rows, self.rows = down[read], down[written]
        self.length, self.columns = along[read], along[written]
        self._tables = _UndecimatedTables(self, (True,) * (2 ** len(ops) if back else 1))
        # Kernels find tables by their addresses, so these have to stay.
        self._with_zeros: dict[tuple[bool, ...], _UndecimatedTables] = {}

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch that a call needs."""
        return CALL_BYTES + self._tables.scratch_bytes

    @property
    def rim_shape(self) -> Shape | None:
        """The shape of rows beyond the ends that are computed before, as planes; None if there are none."""
        counts = [end - begin for begin, end in self._tables.rims]
        return (self.planes, sum(counts), self.length * self.channels) if counts else None

    def fill_rim(self, rim: Array, sources: Sequence[Array]) -> None:
        """Compute rows beyond the ends of the samples."""
        assert self.down is not None
        lines = sources[0].reshape(self.planes, self.source_rows, -1)
        parts = [extend(lines, 1, begin, end, self.down.sample_mode) for begin, end in self._tables.rims]
        rim[...] = np.concatenate(parts, axis=1)

    def check(self, *views: ArrayView | None) -> None:
        """Raise an error for a view whose strides kernels cannot follow."""
        for view in views:
            if view is not None:
                self._described(view)

    def _described(self, view: ArrayView) -> list[int]:
        """Return the start, and the strides of planes and rows, in bytes."""
        strides = view.plane_strides(self.axis, self.inner)
        if strides is None:
            raise UnfollowableStridesError(view.buffer)
        return [view.offset * view.itemsize, *(step * view.itemsize for step in strides)]

    def calls(
        self, x: ArrayView, bands: Sequence[ArrayView | None], rim: ArrayView | None, threads: int
    ) -> list[KernelCall]:
        """Return one call for each thread: some of the planes, of the rows, or of the columns."""
        inputs, outputs = (bands, [x]) if self.back else ([x], bands)
        tables = self._tables
        present = tuple(view is not None for view in inputs)
        if not all(present):
            # Other calls may use the first ones that were made, so those stay.
            tables = self._with_zeros.setdefault(present, _UndecimatedTables(self, present))
        described: list[int] = []
        relative = []  # numbers of words among those of the arrays, and the buffers they are relative to
        for view in inputs:
            if view is not None:
                relative.append((len(described), view.buffer))
                described += [*self._described(view), 0, 0, 0]
                if rim is not None:
                    relative.append((len(described) - 3, rim.buffer))
                    rows, row = rim.shape[1:]
                    described[-3:] = [
                        rim.offset * rim.itemsize,
                        rows * row * rim.itemsize,
                        row * rim.itemsize,
                    ]
        results = len(described)
        for view in outputs:
            assert view is not None
            relative.append((len(described), view.buffer))
            described += self._described(view)
        return [
            tables.call(piece, described, results, relative, kernel_address_of(self.dtype.name))
            for piece in self._pieces(threads)
        ]

    def _pieces(self, threads: int) -> list[Piece]:
        planes, rows, columns = (0, self.planes), (0, self.rows), (0, self.columns)
        if self.planes >= threads:
            return [(part, rows, columns) for part in ranges(self.planes, threads)]
        if self.rows >= threads:
            return [(planes, part, columns) for part in ranges(self.rows, threads)]
        if self.down is None or self.along is None:
            return [(planes, rows, part) for part in ranges(self.columns, threads)]
        return [(planes, rows, columns)]

    def down_terms(self) -> Terms:
        """Return what the intermediate rows are made of: numbers of sources, offsets and factors."""
        if self.down is None:
            return [[(source, 0, 1.0)] for source in range(2 if self.back else 1)]
        low, high = self.down.dilated_taps
        if not self.back:
            return [[(0, *tap) for tap in taps] for taps in (low, high)]
        step = 1 if self.along is None else 2  # Bands of two axes are aa, ad, da, dd.
        # Details come first: they are small, and so are the rounding errors of their sums.
        return [[*((step + k, *tap) for tap in high), *((k, *tap) for tap in low)] for k in range(step)]

    def along_terms(self) -> Terms:
        """Return what the results are made of: numbers of intermediate rows, offsets and factors."""
        if self.along is None:
            return []
        low, high = self.along.dilated_taps
        if self.back:
            return [[*((1, *tap) for tap in high), *((0, *tap) for tap in low)]]
        rows = 1 if self.down is None else 2
        return [[(row, *tap) for tap in taps] for row in range(rows) for taps in (low, high)]


class _UndecimatedTables:
    """The tables that a kernel reads, for arrays of which some may be zero.

    Their order is that of the words in :func:`~.undecimated_kernels.filter_planes`.
    """

    def __init__(self, work: UndecimatedPass, present: tuple[bool, ...]) -> None:
        self.work, dtype = work, work.dtype
        renumbered = np.cumsum(present) - 1
        down: Terms = [
            [(int(renumbered[s]), offset, factor) for s, offset, factor in terms if present[s]]
            for terms in work.down_terms()
        ]
        along = work.along_terms()
        if along:  # Rows that are zero are left out.
            kept = [k for k, terms in enumerate(down) if terms]
            down = [down[k] for k in kept]
            along = [
                [(kept.index(k), offset, factor) for k, offset, factor in terms if k in kept]
                for terms in along
            ]
        self.intermediates, self.results = len(down), len(along)
        self.terms, self.begins, self.weights = _listed(down, dtype)
        self.along_terms, self.ends, self.along_weights = _listed(along, dtype)
        offsets = [offset for terms in down for _, offset, _ in terms] or [0]
        self.first_row = min(offsets)
        self.row_places, self.rims = self._rows(min(offsets), work.rows + max(offsets))
        offsets = [offset for terms in along for _, offset, _ in terms] or [0]
        # Values beyond both ends: those before the first place, then those from the length on.
        self.before, self.after = min(0, *offsets), max(0, *offsets)
        ends = max(0, work.columns + self.after - work.length)
        self.value_places, self.value_weights = self._values(self.before, ends)
        self.most_terms = max(len(terms) for terms in (*down, *along))

    def _rows(self, first: int, last: int) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
        """Return the rows at places down a plane, and the ranges beyond the ends that are computed.

        A row is a row of the source, ``-1`` for zeros, or ``-2 - k`` for row k of those that are computed.
        """
        work, op, count = self.work, self.work.down, self.work.source_rows
        places = np.arange(first, last)
        if op is None:
            return places, []
        if work.back:
            return op.coefficients_beyond(0, places).astype(np.int64), []
        index, factors = op.beyond(places)
        rows = np.where(factors[:, 0] == 0, ZERO_ROW, index[:, 0]).astype(np.int64)
        if not op.borders[0].weighted:
            return rows, []
        beyond = (places < 0) | (places >= count)
        rows[beyond] = ZERO_ROW - 1 - np.arange(np.count_nonzero(beyond))
        return rows, [(min(first, 0), 0), (count, max(last, count))]

    def _values(self, before: int, ends: int) -> tuple[NDArray[np.int64], Array]:
        work, op = self.work, self.work.along
        places = np.concatenate([np.arange(before, 0), np.arange(work.length, work.length + ends)])
        if op is None:
            return np.zeros((0, 5), np.int64), np.zeros((0, 3), work.dtype)
        if not work.back:
            index, factors = op.beyond(places)
            return index.astype(np.int64), factors.astype(work.dtype)
        numbers = op.coefficients_beyond(0, places)
        index, weights = np.zeros((places.size, 5), np.int64), np.zeros((places.size, 3), work.dtype)
        index[:, 0], weights[:, 0] = np.maximum(numbers, 0), numbers >= 0
        return index, weights

    @property
    def _segment(self) -> int:
        """Places of a row that are worked on at once."""
        if self.work.along is None:
            return STRIP_SAMPLES
        if self.work.down is None:
            return max(LINE_PLACES, 2 * (self.after - self.before))
        return self.work.columns

    @property
    def _line_bytes(self) -> int:
        places = min(self._segment, self.work.columns) + self.after - self.before
        return -(-places * self.work.channels * self.work.dtype.itemsize // 64) * 64 + 64

    @property
    def _list_bytes(self) -> int:
        return -(-8 * self.most_terms // 64) * 64

    @property
    def scratch_bytes(self) -> int:
        """Bytes for two lists of terms, and for the intermediate rows."""
        return 2 * self._list_bytes + self.intermediates * self._line_bytes

    def call(
        self, piece: Piece, arrays: list[int], results: int, relative: list[tuple[int, int]], kernel: int
    ) -> KernelCall:
        """Return the call for a piece.

        Parameters
        ----------
        piece : Piece
        arrays : list of int
            Starts and strides of the sources, and of the results.
        results : int
            Where the results begin among them.
        relative : list of (int, int)
            Which of them are relative to which buffers.
        kernel : int
            Its address.
        """
        work, lists = self.work, CALL_BYTES
        planes, rows, columns = piece
        table = [
            *planes, *rows, *columns, work.down.dilation if work.down else 1, 0, address(self.terms),
            address(self.row_places), address(self.weights), lists, lists + self._list_bytes, self.first_row,
            work.channels, work.length, 0, lists + 2 * self._list_bytes, self.before, self.after,
            _address(self.value_places), _address(self.value_weights), int(work.down is not None),
            int(work.along is not None), address(self.begins), self.intermediates, self._line_bytes,
            _address(self.along_terms), address(self.ends), _address(self.along_weights), self.results,
            self._segment,
        ]  # fmt: skip
        first = 1 + len(table)  # The only parameter comes first: the address of the table.
        table[7], table[16] = 8 * first, 8 * (first + results)
        relocations = [(0, SCRATCH_BUFFER), *((1 + k, SCRATCH_BUFFER) for k in SCRATCH_WORDS + TABLE_WORDS)]
        relocations += [(first + word, buffer) for word, buffer in relative]
        return KernelCall(kernel, 1, [8, *table, *arrays], relocations)


def _listed(results: Terms, dtype: np.dtype[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Return the terms of all results one after the other, where each result begins, and the factors."""
    flat = [term for terms in results for term in terms]
    numbers = np.array([term[:2] for term in flat], np.int64).reshape(-1, 2)
    begins = np.cumsum([0, *map(len, results)])
    return numbers, begins.astype(np.int64), np.array([factor for *_, factor in flat], dtype)


def _address(x: Array) -> int:
    return address(x) if x.size else 0


@cache
def kernel_address_of(dtype: str) -> int:
    """Return the address of the kernel for numbers of a dtype."""
    return source_address("def kernel(table, like):\n    filter_planes(table, like)\n", dtype)
