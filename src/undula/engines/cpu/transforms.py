"""Transforms of a graph as tasks: all levels, or one level with all shifts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ...arrays import ArrayView
from ...lowering.expressions import Call, Constant, Expression, Load
from ...lowering.graph import Pointwise, Transform
from ..base import UnfollowableStridesError
from .compile import LIFTING, compile_transform, level_passes, ordered_bands
from .executable import FIRST_ARRAY, SCRATCH_BUFFER, CpuExecutable, KernelCall
from .expressions import pointwise_text
from .nests import KernelPart, Nest, NoKernelError
from .passes import AxisPass
from .tasks import ALIGNMENT, MAX_PIECES, PIECE, GraphTasks, Step

__all__ = ["add_transform"]

SHIFTED = "shifted"  # The name of memory of the thread with the reconstructions of all shifts.
MAX_GROUP = 8  # Shifts of an array that are transformed in one piece.
BAND_BYTES = 1 << 19  # Samples of all shifts that stay in a cache until their mean is taken.
MIN_BAND_ROWS, MAX_BAND_ROWS = 16, 64


def add_transform(tasks: GraphTasks, node: Transform) -> None:
    """Add the tasks of a transform."""
    levels = node.tree.operators(np.dtype(node.bands[0].dtype), LIFTING)
    if node.shifts == 1:
        _add_levels(tasks, node.back, [levels], [(node.samples, *node.bands)])
        return
    axes, (items, nodes) = node.tree.spec.axes, node.samples.shape[:2]
    shifts = list(product((0, 1), repeat=len(axes)))
    one_item = [((1, *shape[1:]), operators) for shape, operators in levels]
    if node.back and _is_banded(levels[0], node.samples.dtype):
        _add_banded_inverse(tasks, node, levels[0], shifts)
        return
    parts = None
    if node.back:
        parts = tasks.new_buffer((items, len(shifts), *node.samples.shape[1:]), node.samples.dtype)
    arrays = []
    for item in range(items):
        for number, shift in enumerate(shifts):
            bands = [_part(view, (item, number * nodes), (1, nodes)) for view in node.bands]
            if parts is not None:
                samples = _part(parts, (item, number), (1, 1))
                samples = samples._replace(shape=samples.shape[1:], strides=samples.strides[1:])
            else:
                moved = sum(s * node.samples.strides[axis] for s, axis in zip(shift, axes, strict=True))
                samples = _part(node.samples, (item,), (1,))
                samples = samples._replace(offset=samples.offset - moved)
            arrays.append((samples, *bands))
    _add_levels(tasks, node.back, [one_item] * len(arrays), arrays)
    if parts is not None:
        # The mean of many shifts may have more loads than a kernel has arguments; NumPy computes it then.
        tasks.add_node(_mean_of_shifts(node.samples, parts, axes, shifts), GraphTasks.add_pointwise)


def _add_banded_inverse(
    tasks: GraphTasks, node: Transform, level: Any, shifts: Sequence[tuple[int, ...]]
) -> None:
    """Reconstruct all shifts of some rows in memory of the thread, and take their mean."""
    samples, dtype = node.samples, np.dtype(node.samples.dtype)
    _, operators = level
    items, nodes, height, width = samples.shape
    plane = (1, 1, height, width)
    passes = level_passes(True, plane, dtype, operators)
    tasks.tables.append(passes)  # It keeps what kernels have the address of.
    row = width * dtype.itemsize
    band = BAND_BYTES // (len(shifts) * row) // 2 * 2
    band = max(MIN_BAND_ROWS, min(MAX_BAND_ROWS, band))
    start = -(-passes.work.scratch_bytes // ALIGNMENT) * ALIGNMENT
    part_bytes = -(-(band + 2) * row // ALIGNMENT) * ALIGNMENT
    tasks.scratch_bytes = max(tasks.scratch_bytes, start + len(shifts) * part_bytes)
    # All rows of each shift would be here, if they were not computed a few at a time.
    elements = part_bytes // dtype.itemsize
    parts = ArrayView(SHIFTED, (1, len(shifts), 1, height, width), (0, elements, 0, width, 1), samples.dtype)
    mean = _mean_of_shifts(_part(samples, (0, 0), (1, 1)), parts, node.tree.spec.axes, shifts)
    regions = []
    for result, value in zip(mean.results, mean.values, strict=True):
        nest = Nest(result.shape, [value], result, apart=2)
        first = 0 if result.offset < samples.offset + (height - 1) * samples.strides[2] else height - 1
        regions.append((nest, pointwise_text(nest, value), first))
    tables = [tasks.table(nest.constants) for nest, _, _ in regions]

    def calls(item: int, number: int, begin: int, end: int) -> list[KernelCall]:
        result: list[KernelCall] = []
        for k, shift in enumerate(shifts):
            views = [tasks.placed(_part(view, (item, k * nodes + number), (1, 1))) for view in node.bands]
            place = (start + k * part_bytes) // dtype.itemsize
            target = ArrayView.contiguous(SCRATCH_BUFFER, plane, samples.dtype, place)
            bands = ordered_bands(passes, views[0], views[1:])
            stop = min(height, end + 2 * shift[0])
            result += passes.work.row_calls(target, bands, begin, stop, 1)
        moved = (item * samples.strides[0] + number * samples.strides[1]) * dtype.itemsize

        def locate(view: ArrayView) -> tuple[int, int]:
            if view.buffer == SHIFTED:
                return SCRATCH_BUFFER, start - begin * row + view.offset * dtype.itemsize
            buffer, place = tasks.locate(view)
            return buffer, place + moved

        for (nest, text, first), table in zip(regions, tables, strict=True):
            rows = max(begin, first) - first, min(end, first + nest.lengths[2]) - first
            if rows[0] < rows[1]:
                ranges = ((0, 1), (0, 1), rows, (0, nest.lengths[3]))
                result.append(nest.call(text, tasks.dtype, table, ranges, (), locate))
        return result

    def steps() -> list[Step]:
        step: Step = []
        for item, number in product(range(items), range(nodes)):
            for begin in range(0, height, band):
                end = min(height, begin + band)
                count = len(shifts) * (end - begin) * width
                step.append(KernelPart(calls(item, number, begin, end), count))
        return [step]

    tasks.add((*node.reads, *node.writes), steps)


def _add_levels(
    tasks: GraphTasks, back: bool, levels: Sequence[Any], arrays: Sequence[tuple[ArrayView, ...]]
) -> None:
    """Add transforms that run at the same time."""
    before: list[tuple[ArrayView, ArrayView]] = []
    after: list[tuple[ArrayView, ArrayView]] = []
    followed = []
    for each, given in zip(levels, arrays, strict=True):
        views = list(given)
        while True:
            try:
                numbered = [view._replace(buffer=k) for k, view in enumerate(views, FIRST_ARRAY)]
                if compile_transform(back, np.dtype(views[0].dtype), each, numbered).has_functions:
                    raise NoKernelError("a transform is not made of kernels")
                break
            except UnfollowableStridesError as error:
                number = error.buffer - FIRST_ARRAY
                copy = tasks.new_buffer(views[number].shape, views[number].dtype)
                read = (number == 0) != back
                (before if read else after).append((views[number], copy))
                views[number] = copy
        followed.append(views)
    for view, copy in before:
        tasks.copy(view, copy)

    def steps() -> list[Step]:
        start, transforms = 0, []
        for each, views in zip(levels, followed, strict=True):
            placed = [tasks.placed(view) for view in views]
            transforms.append(compile_transform(back, np.dtype(views[0].dtype), each, placed, start=start))
            start = transforms[-1].transform_bytes
        tasks.transform_bytes = max(tasks.transform_bytes, start)
        tasks.tables.extend(transforms)  # They keep what kernels have the address of.
        return _joined_steps(tasks, transforms)

    tasks.add([view for views in followed for view in views], steps)
    for view, copy in after:
        tasks.copy(copy, view)


def _joined_steps(tasks: GraphTasks, transforms: Sequence[CpuExecutable]) -> list[Step]:
    """Return steps of several transforms at once; those of the same rows are in one piece."""
    steps: list[Step] = []
    for group in zip(*(transform.steps for transform in transforms), strict=True):
        step: Step = []
        for first in range(0, len(group), MAX_GROUP):
            members = group[first : first + MAX_GROUP]
            samples = sum(each.samples for each in members)
            pieces = max(1, min(MAX_PIECES, samples // PIECE))
            parts = []
            for each in members:
                assert each.calls is not None
                tasks.scratch_bytes = max(tasks.scratch_bytes, each.scratch_bytes)
                parts.append(each.calls(pieces))
            count = max(map(len, parts))
            if all(len(calls) == count for calls in parts):
                step += [KernelPart(list(calls), samples // count) for calls in zip(*parts, strict=True)]
            else:
                step += [KernelPart([call], samples // len(calls)) for calls in parts for call in calls]
        steps.append(step)
    return steps


def _part(view: ArrayView, begins: Sequence[int], lengths: Sequence[int]) -> ArrayView:
    """Return a part of an array along its first axes."""
    offset = view.offset + sum(begin * stride for begin, stride in zip(begins, view.strides, strict=False))
    return view._replace(shape=(*lengths, *view.shape[len(lengths) :]), offset=offset)


def _is_banded(level: Any, dtype: str) -> bool:
    """Whether rows of a level are reconstructed a few at a time: those of images."""
    shape, operators = level
    if [axis for axis, _ in operators] != [2, 3] or len(shape) != 4:
        return False
    work = level_passes(True, (1, 1, *shape[2:]), np.dtype(dtype), operators).work
    return isinstance(work, AxisPass) and work.kind == "planes"


def _mean_of_shifts(
    samples: ArrayView, parts: ArrayView, axes: Sequence[int], shifts: Sequence[tuple[int, ...]]
) -> Pointwise:
    """Return the mean over the shifts that have a sample.

    Sample i of the array is sample i + 1 of the line that begins one sample earlier. The last sample of an
    axis is not in that line.
    """
    shape = samples.shape
    results, values = [], []
    for last in product((False, True), repeat=len(axes)):
        begins, lengths = [0] * len(shape), list(shape)
        for is_last, axis in zip(last, axes, strict=True):
            begins[axis] = shape[axis] - 1 if is_last else 0
            lengths[axis] = 1 if is_last else shape[axis] - 1
        if 0 in lengths:
            continue
        terms: list[Expression] = []
        for number, shift in enumerate(shifts):
            if any(s and is_last for s, is_last in zip(shift, last, strict=True)):
                continue
            places = list(begins)
            for s, axis in zip(shift, axes, strict=True):
                places[axis] += s
            view = _part(parts, (0, number, *places[1:]), (shape[0], 1, *lengths[1:]))
            view = view._replace(
                shape=(view.shape[0], *view.shape[2:]), strides=(view.strides[0], *view.strides[2:])
            )
            terms.append(Load(view))
        total = terms[0]
        for term in terms[1:]:
            total = Call("add", (total, term))
        values.append(Call("multiply", (total, Constant(1 / len(terms)))))
        results.append(_part(samples, begins, lengths))
    return Pointwise(tuple(results), tuple(values))
