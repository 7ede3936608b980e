"""Passes: one or two neighbouring axes of an array at one level, as calls of the kernels that transform them.

A pass sees arrays as planes of rows (:class:`PlaneStrides`), and cuts the planes or their rows into one part
for each thread. Which kernel runs is its kind: ``planes`` for two axes, ``lines`` for one whose samples are
beside each other, and ``columns`` for one whose samples are rows apart. Two levels of images may be one call
(:func:`fused_calls`), so that the approximation between them stays in scratch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...arrays import ArrayView
from ...lowering.adjoints import Fold
from ...lowering.axis import AxisOp
from ...lowering.borders import TERMS
from ..base import UnfollowableStridesError
from ..threads import ranges
from .encoding import NO_FOLD, EncodedOp, encode_analysis, encode_synthesis
from .executable import CALL_BYTES, SCRATCH_BUFFER, KernelCall, address, aligned
from .kernel_layout import BANDS, BLOCK, BUFFER, CHUNK, LINE, SCRATCH, STRIP, X
from .line_loops import LineLoop, line_loop
from .machine_code import kernel_address

__all__ = ["AxisPass", "PlaneStrides", "fused_calls", "fused_scratch", "fusible"]

Shape = tuple[int, ...]

MAX_LINE_CHANNELS = 16  # Samples side by side below which an axis is worked on as lines.
MIN_PART_ROWS = 16  # Fewer rows are not worth a call: some are read by two calls.


@dataclass(frozen=True)
class PlaneStrides:
    """An array of a pass, as planes of rows: where it is, and bytes between planes and between rows."""

    buffer: int
    offset: int
    plane: int
    row: int


NOWHERE = PlaneStrides(-1, 0, 0, 0)


class ScratchLayout:
    """Scratch of a kernel: rows in halves, a buffer for steps along a row, a list of addresses."""

    def __init__(self, half: int, origin: int, slots: int, step: int, listed: int, size: int) -> None:
        self.origin, self.half = aligned(origin), aligned(half) + 64
        self.slot = 2 * self.half + 64
        self.before = aligned(self.slot * slots + self.origin)  # the buffer
        steps = 2 * (max(1, CHUNK * size // step) + 4) * step + 2 * step
        self.bytes = aligned(self.before + steps + 64)
        self.listed = aligned(8 * (listed + TERMS))

    def arguments(self, start: int) -> list[int]:
        """Return the arguments that describe the scratch of a kernel, which begins at byte ``start``."""
        return [start, self.slot, self.half, self.origin, start + self.before]


class AxisPass:
    """One or two neighbouring axes of arrays of one shape, forward or back.

    Parameters
    ----------
    back : bool
        Whether to compute samples from bands.
    shape : tuple of int
        Shape of the samples.
    dtype : dtype
        float32 or float64; int16 or int32 for lines that are lifted.
    axis : int
        The axis, or the first of two.
    operators : one or two AxisOps
        Analyses.
    folds : sequence of Fold, optional
        How adjoints of analyses, of which the inverses of the operators are the plain ones, fold lines.
    """

    def __init__(
        self,
        back: bool,
        shape: Shape,
        dtype: np.dtype[Any],
        axis: int,
        operators: Sequence[AxisOp],
        folds: Sequence[Fold] = (NO_FOLD, NO_FOLD),
    ) -> None:
        # Kernels find the arrays of encoded operators by their addresses, so these have to stay.
        if back:
            pairs = zip(operators, folds, strict=False)
            self._encoded_ops = [encode_synthesis(op.inverse(), dtype, fold) for op, fold in pairs]
        else:
            self._encoded_ops = [encode_analysis(op, dtype) for op in operators]
        self.back, self.size, self.dtype, self.axis = back, dtype.itemsize, dtype, axis
        self.op_addresses = [
            address(array) for op in self._encoded_ops for array in (op.integers, op.numbers)
        ]
        last = axis + len(operators) - 1
        self.channels = math.prod(shape[last + 1 :])
        along = len(operators) == 1 and self.channels < MAX_LINE_CHANNELS
        self.kind = "planes" if len(operators) == 2 else "lines" if along else "columns"
        self.inner = axis if along else axis + 1
        self.shape = shape
        self.planes, self.samples = math.prod(shape[:axis]), math.prod(shape)
        first = self._encoded_ops[0]
        self.count, self.unit = (operators[0].length, 2) if back else (max(first.counts), 1)
        self.first_row = folds[0].before if back else 0  # of the line, in the order of the kernel
        self.local = all(op.local for op in self._encoded_ops)
        self.lifted = all(op.method == "lifting" for op in operators)
        self.overlap = first.taps + first.reach
        layout = {"planes": self._plane_scratch, "lines": self._line_scratch, "columns": self._column_scratch}
        self.scratch = layout[self.kind](self._encoded_ops)
        # One row of zeros stands for a band that is zero. It is made here: kernels hold its address, and
        # threads that made it later at the same time would each have their own.
        row = 1 if self.kind == "columns" else max(self._encoded_ops[-1].counts)
        self._zeros = np.zeros(max(1, row * self.channels) if back else 0, self.dtype)

    def _plane_scratch(self, ops: Sequence[EncodedOp]) -> ScratchLayout:
        down, along = ops
        step = self.channels * self.size
        reach = along.reach + 8
        places = max(*along.counts, (along.length + 1) // 2) + 2 * reach
        # Forward, four rows are for samples that are made of others.
        slots = 4 * down.pairs + (9 + (0 if down.pairs else down.taps) if self.back else 8 + down.rims)
        listed = down.taps + along.taps + 4 * reach
        return ScratchLayout(places * step, reach * step, slots, step, listed, self.size)

    def _line_scratch(self, ops: Sequence[EncodedOp]) -> ScratchLayout:
        (along,) = ops
        step = self.channels * self.size
        reach = along.reach + 8
        places = min(max(8, LINE // self.channels), max(*along.counts, (along.length + 1) // 2))
        half = (places + 2 * reach) * step
        return ScratchLayout(half, reach * step, 3, step, along.taps, self.size)

    def _column_scratch(self, ops: Sequence[EncodedOp]) -> ScratchLayout:
        (down,) = ops
        width = min(STRIP, self.channels) * self.size
        return ScratchLayout(width, 0, 4 * down.pairs + 4 + down.rims, self.size, down.taps, self.size)

    @property
    def reads_fragments(self) -> bool:
        """Whether rows of samples may be in fragments: what lies beyond the ends is copies of rows."""
        return self.kind == "planes" and not self.back and not self._encoded_ops[0].rims

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch that a call needs."""
        return CALL_BYTES + self.scratch.bytes + self.scratch.listed

    @cached_property
    def kernel(self) -> int:
        """The address of the kernel that does the work."""
        return kernel_address(f"{'synthesise' if self.back else 'analyse'}_{self.kind}", str(self.dtype))

    @cached_property
    def _loop(self) -> LineLoop | None:
        """The loop for the middle of long lines."""
        if self.kind != "lines" or self.channels > 1:
            return None
        return line_loop(self.back, self._encoded_ops[0], self.dtype)

    def check(self, *views: ArrayView | PlaneStrides | None) -> None:
        """Raise an error for a view whose strides kernels cannot follow."""
        for view in views:
            if isinstance(view, ArrayView):
                self._plane_strides(view)

    def _plane_strides(self, view: ArrayView) -> PlaneStrides:
        strides = view.plane_strides(self.axis, self.inner)
        if strides is None:
            raise UnfollowableStridesError(view.buffer)
        plane, row = strides
        return PlaneStrides(view.buffer, view.offset * self.size, plane * self.size, row * self.size)

    def located(self, views: Sequence[ArrayView | PlaneStrides | None]) -> list[PlaneStrides]:
        """Return samples and bands as planes of rows; bands that are None are zero, or are not kept."""
        nothing = PlaneStrides(-1, address(self._zeros), 0, 0) if self.back else NOWHERE
        planes = [
            nothing if view is None else view if isinstance(view, PlaneStrides) else self._plane_strides(view)
            for view in views
        ]
        return [*planes, *[NOWHERE] * (5 - len(planes))]

    def arguments(
        self,
        arrays: Sequence[PlaneStrides],
        planes: tuple[int, int],
        rows: tuple[int, int],
        scratch: int,
        mix: int = 0,
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the arguments for some planes and rows, and which of them are relative to buffers."""
        first = planes[0]
        offsets = [array.offset + first * array.plane for array in arrays]
        steps, strides = [array.plane for array in arrays], [array.row for array in arrays]
        words = [
            offsets[0], steps[0], strides[0], *offsets[1:], *steps[1:], *strides[1:],
            planes[1] - first, *rows, self.channels, *self.scratch.arguments(scratch), mix,
        ]  # fmt: skip
        places = (X, *range(BANDS, BANDS + 4))
        relative = [(k, a.buffer) for k, a in zip(places, arrays, strict=True) if a.buffer >= 0]
        return words, [*relative, (SCRATCH, SCRATCH_BUFFER), (BUFFER, SCRATCH_BUFFER)]

    def call(
        self, arrays: Sequence[PlaneStrides], planes: tuple[int, int], rows: tuple[int, int], mix: int = 0
    ) -> KernelCall:
        """Return the call for some planes and some rows."""
        if self._loop is None:
            return self._kernel_call(arrays, planes, rows, mix)
        begin, end = rows
        start = self._loop.places[0]
        # Back, results are samples; pair k is samples 2k + start and the one after.
        pairs = (-((start - begin) // 2), (end - start) // 2) if self.back else rows
        first, last = self._loop.pairs_within(*pairs)
        if first == last:
            return self._kernel_call(arrays, planes, rows, mix)
        call = self._loop_call(self._loop, arrays, planes, (first, last))
        if self.back:
            # Kernels begin with even samples. A sample that the loop computes as well is the same.
            first, last = 2 * first + start + start % 2, 2 * last + start - start % 2
        ends = [part for part in ((begin, first), (last, end)) if part[0] < part[1]]
        call.further += [self._kernel_call(arrays, planes, part) for part in ends]
        return call

    def _loop_call(
        self,
        loop: LineLoop,
        arrays: Sequence[PlaneStrides],
        planes: tuple[int, int],
        pairs: tuple[int, int],
    ) -> KernelCall:
        """Return the call of a loop for some pairs of samples of some lines."""
        first, last = pairs
        places = [place + k * first for place, k in zip(loop.places, (2, 1, 1), strict=True)]
        arrays = arrays[:3]
        starts = [
            array.offset + planes[0] * array.plane + place * self.size
            for array, place in zip(arrays, places, strict=True)
        ]
        strides = [array.plane for array in arrays]
        turns, numbers = (last - first) // loop.lanes, self.op_addresses[1]
        relocations = [(0, SCRATCH_BUFFER)]
        relocations += [(k, array.buffer) for k, array in enumerate(arrays, 1) if array.buffer >= 0]
        words = [8, *starts, *strides, planes[1] - planes[0], turns, numbers]
        return KernelCall(kernel_address(loop.name, str(self.dtype)), 1, words, relocations)

    def _kernel_call(
        self, arrays: Sequence[PlaneStrides], planes: tuple[int, int], rows: tuple[int, int], mix: int = 0
    ) -> KernelCall:
        """Return a call of the kernel for some planes and some rows."""
        words, relative = self.arguments(arrays, planes, rows, CALL_BYTES, mix)
        listed = CALL_BYTES + self.scratch.bytes
        # The kernel for images forward could do a second level, too; here there is none.
        more = (
            [address(NO_SECOND_LEVEL), *self.op_addresses] if self.kind == "planes" and not self.back else []
        )
        count = 2 + len(self.op_addresses) + len(more)
        parameters = [8 * count, *self.op_addresses, *more, listed]
        relocations = [(0, SCRATCH_BUFFER), (count - 1, SCRATCH_BUFFER)]
        relocations += [(count + word, buffer) for word, buffer in relative]
        return KernelCall(self.kernel, count, [*parameters, *words], relocations)

    def calls(
        self, x: ArrayView | PlaneStrides, bands: Sequence[ArrayView | None], threads: int, mix: int = 0
    ) -> list[KernelCall]:
        """Return one call for each thread: some of the planes, some of the rows of all, or both."""
        arrays, begin = self.located([x, *bands]), self.first_row
        arrays[0] = _from_row(arrays[0], begin)
        end = begin + self.count
        if self.planes >= threads and not mix:
            return [self.call(arrays, part, (begin, end)) for part in ranges(self.planes, threads)]
        planes = [(0, self.planes)]
        if self.count < threads * MIN_PART_ROWS and not mix:
            planes, threads = ranges(self.planes, self.planes), max(1, threads // self.planes)
        parts = ranges(-(-self.count // self.unit), threads)
        rows = [(begin + first * self.unit, min(begin + last * self.unit, end)) for first, last in parts]
        return [self.call(arrays, group, part, mix) for group in planes for part in rows]

    def plane_calls(
        self, x: ArrayView, bands: Sequence[ArrayView | None], begin: int, end: int, threads: int
    ) -> list[KernelCall]:
        """Return calls for rows ``begin … end`` of all planes, in an array that begins with the first row."""
        arrays = self.located([x, *bands])
        arrays[0] = _from_row(arrays[0], begin)
        return [
            self.call(arrays, part, (begin, end)) for part in ranges(self.planes, min(threads, self.planes))
        ]

    def row_calls(
        self, x: ArrayView, bands: Sequence[ArrayView | None], begin: int, end: int, threads: int
    ) -> list[KernelCall]:
        """Return calls for rows ``begin … end`` of the result, in arrays that begin with the first of them.

        The rows must not depend on samples beyond an end of the array that is no end of the image.
        """
        arrays = self.located([x, *bands])
        for k in range(1) if self.back else range(1, 5):
            arrays[k] = _from_row(arrays[k], begin)
        calls = []
        for first, last in ranges(-(-(end - begin) // self.unit), threads):
            part = begin + first * self.unit, min(begin + last * self.unit, end)
            calls.append(self.call(arrays, (0, self.planes), part))
        return calls


def _from_row(array: PlaneStrides, row: int) -> PlaneStrides:
    """Return an array that begins with so many rows that it does not have."""
    return replace(array, offset=array.offset - row * array.row)


NO_SECOND_LEVEL = np.zeros(32, np.int64)  # Arguments of a level without planes.


def fusible(first: object, second: object) -> bool:
    """Return whether one call can compute both levels: of images, if the second needs nearby rows only."""
    return (
        isinstance(first, AxisPass)
        and isinstance(second, AxisPass)
        and first.kind == second.kind == "planes"
        and second.local
    )


def fused_scratch(first: AxisPass, second: AxisPass) -> tuple[int, int, int]:
    """Return where rows of the approximation are in the scratch, their stride, and the size of it all."""
    row = aligned(math.prod(second.shape[second.axis + 1 :]) * second.size) + 64
    start = CALL_BYTES + first.scratch.bytes + second.scratch.bytes
    rows = aligned((2 * BLOCK + 2 * second.overlap + 8) * row)
    return start, row, start + rows + max(first.scratch.listed, second.scratch.listed)


def fused_calls(
    first: AxisPass,
    second: AxisPass,
    x: ArrayView | PlaneStrides,
    bands: Sequence[ArrayView | None],
    others: Sequence[ArrayView | None],
    threads: int,
    mix: int = 0,
) -> list[KernelCall]:
    """Return calls for two levels forward, where the approximation between them is not kept.

    ``bands`` are those of the first level, the first of them None, and ``others`` all of the second.
    """
    start, row, size = fused_scratch(first, second)
    listed = size - max(first.scratch.listed, second.scratch.listed)
    outer = first.located([x, *bands])
    inner = [PlaneStrides(SCRATCH_BUFFER, start, 0, row), *second.located([None, *others])[1:]]
    planes = 0, first.planes
    if threads > 1 and first.planes >= threads and not mix:
        cuts = [(part, (0, second.count)) for part in ranges(first.planes, threads)]
    else:
        cuts = [(planes, part) for part in ranges(second.count, threads)]
    calls = []
    for part, rows in cuts:
        words, relative = first.arguments(outer, part, (0, 0), CALL_BYTES, mix)
        scratch = CALL_BYTES + first.scratch.bytes
        more, more_relative = second.arguments(inner, part, rows, scratch)
        count = 3 + len(first.op_addresses) + len(second.op_addresses)
        parameters = [8 * count, *first.op_addresses, 8 * (count + len(words)), *second.op_addresses, listed]
        relocations = [(k, SCRATCH_BUFFER) for k in (0, 1 + len(first.op_addresses), count - 1)]
        relocations += [(count + word, buffer) for word, buffer in relative]
        relocations += [(count + len(words) + word, buffer) for word, buffer in more_relative]
        calls.append(KernelCall(first.kernel, count, [*parameters, *words, *more], relocations))
    return calls
