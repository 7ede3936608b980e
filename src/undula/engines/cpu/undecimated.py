"""Undecimated transforms along one axis, or along two neighbouring ones at once."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...lowering.axis import AxisOp
from ...lowering.borders import extend
from ..memory import empty
from ..threads import ranges, run, workers
from .executable import MAX_LINE_CHANNELS, address
from .machine_code import source_address

__all__ = ["UndecimatedPass"]

Array = NDArray[Any]
Shape = tuple[int, ...]
Terms = list[list[tuple[int, int, float]]]  # number of a row, offset and factor, for each result

LINE_PLACES = 4096  # of a line that are worked on at once, so that they stay in the first cache
STRIP_SAMPLES = 4096  # of rows that are worked on at once, if they are filtered downwards only
ZERO_ROW = -1


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
        self.back, self.dtype, self.samples = back, dtype, math.prod(shape)
        ops = [op.inverse() if back else op for op in operators]
        inner = math.prod(shape[axis + len(ops) :])
        within_rows = len(ops) == 1 and inner < MAX_LINE_CHANNELS
        self.down = None if within_rows else ops[0]
        self.along = ops[-1] if within_rows or len(ops) == 2 else None
        self.planes, rows = (1, math.prod(shape[:axis])) if within_rows else (math.prod(shape[:axis]), 0)
        self.channels = inner if self.along else 1
        # Rows and places along them: of the sources, and of the results.
        read, written = (1, 0) if back else (0, 1)
        down = (rows, rows) if self.down is None else (self.down.length, self.down.counts[0])
        along = (inner, inner) if self.along is None else (self.along.length, self.along.counts[0])
        self.source_rows, self.rows = down[read], down[written]
        self.length, self.columns = along[read], along[written]
        self._tables: dict[tuple[bool, ...], _UndecimatedTables] = {}

    def __call__(self, x: Array, bands: Sequence[Array | None]) -> None:
        """Transform ``x`` to the bands, or the bands to ``x``; None stands for a band of zeros."""
        inputs, outputs = (bands, [x]) if self.back else ([x], bands)
        sources = [None if band is None else np.ascontiguousarray(band) for band in inputs]
        results = []
        for array in outputs:
            assert array is not None
            results.append(array if array.flags.c_contiguous else empty(array.shape, array.dtype))
        present = tuple(source is not None for source in sources)
        tables = self._tables.get(present)
        if tables is None:
            tables = self._tables.setdefault(present, _UndecimatedTables(self, present))
        tables.run([source for source in sources if source is not None], results)
        for array, result in zip(outputs, results, strict=True):
            if array is not result:
                array[...] = result  # type: ignore[index]

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

    def run(self, sources: Sequence[Array], results: Sequence[Array]) -> None:
        """Filter arrays in C order."""
        work = self.work
        size, row = work.dtype.itemsize, work.length * work.channels
        if not sources:
            for result in results:
                result[...] = 0
            return
        described: list[int] = []
        rims = []
        for source in sources:
            lines = source.reshape(work.planes, work.source_rows, row)
            described += [address(source), work.source_rows * row * size, row * size]
            rim = lines[:, :0]
            if self.rims and work.down is not None:
                parts = [extend(lines, 1, a, b, work.down.sample_mode) for a, b in self.rims]
                rim = np.ascontiguousarray(np.concatenate(parts, axis=1))
                rims.append(rim)
            described += [address(rim) if rim.size else 0, rim.shape[1] * row * size, row * size]
        width = work.columns * work.channels
        targets = [
            word for result in results for word in (address(result), work.rows * width * size, width * size)
        ]
        described_sources, described_results = (np.array(words, np.int64) for words in (described, targets))
        segment = work.columns
        if work.along is None:
            segment = STRIP_SAMPLES
        elif work.down is None:
            segment = max(LINE_PLACES, 2 * (self.after - self.before))
        places = min(segment, work.columns) + self.after - self.before
        line_bytes = -(-places * work.channels * size // 64) * 64 + 64
        list_bytes = -(-8 * self.most_terms // 64) * 64
        kernel = _kernel(work.dtype.name)

        def work_on(planes: tuple[int, int], rows: tuple[int, int], columns: tuple[int, int]) -> None:
            scratch = empty((2 * list_bytes + self.intermediates * line_bytes + 64,), np.dtype(np.uint8))
            start = -(-address(scratch) // 64) * 64
            lines = start + 2 * list_bytes
            words = np.array(
                [
                    *planes, *rows, *columns, work.down.dilation if work.down else 1,
                    address(described_sources), address(self.terms), address(self.row_places),
                    address(self.weights), start, start + list_bytes, self.first_row, work.channels,
                    work.length, address(described_results), lines, self.before, self.after,
                    _address(self.value_places), _address(self.value_weights), work.down is not None,
                    work.along is not None, address(self.begins), self.intermediates, line_bytes,
                    _address(self.along_terms), address(self.ends), _address(self.along_weights),
                    self.results, segment,
                ],
                np.int64,
            )  # fmt: skip
            kernel(None, None, address(words), 0)

        run(work_on, self._pieces())

    def _pieces(self) -> list[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]:
        """Return planes, rows and columns for each thread."""
        work = self.work
        planes, rows, columns = (0, work.planes), (0, work.rows), (0, work.columns)
        threads = workers(work.samples)
        if work.planes >= threads:
            return [(part, rows, columns) for part in ranges(work.planes, threads)]
        if work.rows >= threads:
            return [(planes, part, columns) for part in ranges(work.rows, threads)]
        if work.down is None or work.along is None:
            return [(planes, rows, part) for part in ranges(work.columns, threads)]
        return [(planes, rows, columns)]


def _listed(results: Terms, dtype: np.dtype[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Return the terms of all results one after the other, where each result begins, and the factors."""
    flat = [term for terms in results for term in terms]
    numbers = np.array([term[:2] for term in flat], np.int64).reshape(-1, 2)
    begins = np.cumsum([0, *map(len, results)])
    return numbers, begins.astype(np.int64), np.array([factor for *_, factor in flat], dtype)


def _address(x: Array) -> int:
    return address(x) if x.size else 0


@cache
def _kernel(dtype: str) -> Callable[..., int]:
    """Return a function of the address of a table; ctypes lets other threads run while it works."""
    text = "def kernel(table, like):\n    filter_planes(table, like)\n"
    number = ctypes.c_float if dtype == "float32" else ctypes.c_double
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, number)
    return kind(source_address(text, dtype))
