"""Stencils as tasks: weighted sums over windows.

Rows of sums are kept in memory of the thread while they are needed, so that each sample is read once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from ...arrays import ArrayView
from ...lowering.expressions import WINDOW, Expression, Load, loads, rewritten
from ...lowering.graph import Pointwise, Stencil
from .executable import address
from .expressions import KernelText, indented, row_bytes
from .nests import FIRST_EXTRA, Nest, cut
from .tasks import GraphTasks, Step, coarser_operands, piece_samples

__all__ = ["add_stencil"]

MAX_BOX_RADIUS = 4  # Wider windows are summed as those of other weights.
MAX_UNROLLED_RADIUS = 8
MAX_ROWS_AT_ONCE = 6  # More arrays in one loop are not vectorized: too many of them could overlap.
MAX_COARSER_AXES = 3
MIN_ROWS = 64  # of a piece: neighbouring rows are needed as well

# --- texts of kernels -----------------------------------------------------------------------------


def box_text(nest: Nest, source: Expression, value: Expression, down: int, along: int) -> str:
    """Return the kernel for the mean over a small box; its extra word is the address of the weight.

    Sums along rows are kept in pairs of rows, so that a sum down the columns is half as long.
    """
    text = KernelText(nest, FIRST_EXTRA + 1)
    source_rows, source_samples, squared = text.row(source, "mirrored(i2, w[8])")
    rows, samples, name = text.row(value, "row", "window")
    width = 2 * along + 1
    pairs = [f"p{k}[j]" for k in range(down)]
    body = [
        *source_rows,
        f"line = reals(w[10] + {along} * size, unit)",
        "for j in range(n):",
        *indented([*source_samples, f"line[j] = {squared}"]),
        f"mirror_ends(w[10], n, {along}, unit)",
        *(f"a{k} = reals(w[10] + {k} * size, unit)" for k in range(width)),
        "last = reals(w[10] + (1 + (i2 & 1)) * pitch, unit)",
        "previous = reals(w[10] + (2 - (i2 & 1)) * pitch, unit)",
        f"pair = reals(w[10] + (3 + (i2 - begin2 + {3 * down - 1}) % {2 * down}) * pitch, unit)"
        if down
        else "",
        "for j in range(n):",
        f"    total = {_balanced([f'a{k}[j]' for k in range(width)])}",
        "    pair[j] = previous[j] + total" if down else "",
        "    last[j] = total",
        f"if i2 >= begin2 + {down}:",
        f"    row = i2 - {down}",
        *indented(rows),
        *indented(text.target("row")),
        *(
            f"    p{k} = reals(w[10] + (3 + (i2 - begin2 + {down + 2 * k}) % {2 * down}) * pitch, unit)"
            for k in range(down)
        ),
        "    for j in range(n):",
        f"        window = {_balanced([*pairs, 'last[j]'])} * weight",
        *indented([*samples, text.store(name)], 2),
    ]
    body = [line for line in body if line]
    planes = [
        f"weight = np.{nest.dtype}(reals(w[11], np.float64(0))[0])",
        "for i1 in range(begin1, end1):",
        *indented(text.lines[1]),
        f"    for i2 in range(begin2 - {down}, end2 + {down}):",
        *indented(body, 2),
    ]
    return text.kernel(planes, f"n + {2 * along}", f"{3 + 2 * down} * pitch")


def window_text(nest: Nest, source: Expression, value: Expression, down: int, along: int) -> str:
    """Return the kernel for a window of any weights.

    Its extra words are the radii down and along, and the addresses of the weights down and along. The text
    has the sums of small windows; large ones are summed by loops.
    """
    text = KernelText(nest, FIRST_EXTRA + 4)
    source_rows, source_samples, summed = text.row(source, "mirrored(i2, w[8])")
    rows, samples, name = text.row(value, "row", "window")
    other_row = "ring + (i2 - begin2 + down + 1 + {}) % slots * pitch"
    body = [
        *source_rows,
        "line = reals(w[10] + along * size, unit)",
        "for j in range(n):",
        *indented([*source_samples, f"line[j] = {summed}"]),
        "mirror_ends(w[10], n, along, unit)",
        "last = ring + (i2 - begin2 + down) % slots * pitch",
        *_weighted_rows(nest.dtype, "last", "w[10] + {} * size", "along", along),
        "if i2 >= begin2 + down:",
        "    row = i2 - down",
        *indented(rows),
        *indented(text.target("row")),
        "    total = w[10] + pitch",
        *indented(_weighted_rows(nest.dtype, "total", other_row, "down", down)),
        "    totals = reals(total, unit)",
        "    for j in range(n):",
        "        window = totals[j]",
        *indented([*samples, text.store(name)], 2),
    ]
    planes = [
        "down, along, slots, ring = w[11], w[12], 2 * w[11] + 1, w[10] + 2 * pitch",
        "weights_down, weights_along = reals(w[13], np.float64(0)), reals(w[14], np.float64(0))",
        "for i1 in range(begin1, end1):",
        *indented(text.lines[1]),
        "    for i2 in range(begin2 - down, end2 + down):",
        *indented(body, 2),
    ]
    return text.kernel(planes, "n + 2 * w[12]", "(3 + 2 * w[11]) * pitch")


def _weighted_rows(dtype: str, target: str, place: str, axis: str, radius: int) -> list[str]:
    """Return the lines that add up rows with weights; ``place`` is the address of a row, given its number."""
    if radius > MAX_UNROLLED_RADIUS:
        return [
            f"for k in range(2 * {axis} + 1):",
            f"    add_scaled({target}, {place.format('k')}, n, weights_{axis}[k], k == 0, unit)",
        ]
    lines = [f"sums = reals({target}, unit)"]
    for first in range(0, 2 * radius + 1, MAX_ROWS_AT_ONCE):
        numbers = range(first, min(first + MAX_ROWS_AT_ONCE, 2 * radius + 1))
        lines += [f"a{k} = reals({place.format(k)}, unit)" for k in numbers]
        lines += [f"f{k} = np.{dtype}(weights_{axis}[{k}])" for k in numbers]
        terms = [f"f{k} * a{k}[j]" for k in numbers]
        lines += ["for j in range(n):", f"    sums[j] = {_balanced([*['sums[j]'] * (first > 0), *terms])}"]
    return lines


def _balanced(terms: Sequence[str]) -> str:
    """Return a sum of neighbours first."""
    if len(terms) == 1:
        return terms[0]
    half = 1 << ((len(terms) - 1).bit_length() - 1)
    return f"({_balanced(terms[:half])} + {_balanced(terms[half:])})"


# --- tasks -----------------------------------------------------------------------------------------


def add_stencil(tasks: GraphTasks, node: Stencil) -> None:
    """Add the tasks of a node that sums over windows.

    All axes but the last two are summed by steps of their own. Kernels follow coarser levels along three
    axes, so results with more are computed in parts.
    """
    sources = list(node.sources)
    for axis in range(len(node.taps) - 2):
        if len(node.taps[axis]) > 1:
            sources = _summed(tasks, node, sources, axis)
    down, along = ((1.0,), *node.taps)[-2:]
    radii = len(down) // 2, len(along) // 2
    box = max(radii) <= MAX_BOX_RADIUS and len(set(down)) == len(set(along)) == 1
    weights = tasks.table([down[0] * along[0]]), tasks.table(down), tasks.table(along)
    kernels = []
    for whole in zip(node.results, sources, node.values, strict=True):
        for result, source, value in _divided(*whole, len(node.taps)):
            nest = Nest(result.shape, [source, value], result, apart=min(2, len(node.taps)))
            text = (box_text if box else window_text)(nest, source, value, *radii)
            kernels.append((nest, text))
    extras = [(address(weights[0]), -1)]
    if not box:
        extras = [(radii[0], -1), (radii[1], -1), (address(weights[1]), -1), (address(weights[2]), -1)]

    views = [load.view for load in loads(*sources)]
    _add_windows(tasks, (*node.reads, *node.writes, *views), kernels, radii, extras)


def _divided(
    result: ArrayView, source: Expression, value: Expression, ndim: int
) -> Iterator[tuple[ArrayView, Expression, Expression]]:
    """Yield parts with at most three spatial axes of a result that reads a coarser level."""
    if ndim <= MAX_COARSER_AXES or not any(load.finer for load in loads(value)):
        yield result, source, value
        return
    axis = len(result.shape) - ndim

    def at(place: int) -> Callable[[Load], Expression]:
        def part(load: Load) -> Expression:
            behind = axis - len(result.shape)
            if len(load.view.shape) < -behind:
                return load
            there = (place + load.offset) // 2 if load.finer else place
            return Load(_without_axis(load.view, behind, there), load.finer[1:], load.offset)

        return part

    for place in range(result.shape[axis]):
        parts = rewritten(source, at(place)), rewritten(value, at(place))
        yield from _divided(_without_axis(result, axis, place), *parts, ndim - 1)


def _without_axis(view: ArrayView, axis: int, place: int) -> ArrayView:
    """Return the part of a view at one place of an axis; an axis of one sample is that at all places."""
    axis %= len(view.shape)
    offset = view.offset + min(place, view.shape[axis] - 1) * view.strides[axis]
    shape, strides = (each[:axis] + each[axis + 1 :] for each in (view.shape, view.strides))
    return view._replace(shape=shape, strides=strides, offset=offset)


def _summed(tasks: GraphTasks, node: Stencil, sources: Sequence[Expression], axis: int) -> list[Expression]:
    """Return sources that are summed along one axis of the window."""
    results = [tasks.new_buffer(view.shape, view.dtype) for view in node.results]
    taps = node.taps[axis]
    kernels = []
    first = -len(node.taps) + axis
    for result, source in zip(results, sources, strict=True):
        # The axis is that of rows, and all that follow it are columns.
        plain = _materialized(tasks, source, result)
        rows = math.prod(result.shape[first + 1 :])
        shape = (math.prod(result.shape[:first]), result.shape[first], rows)
        view, target = (x._replace(shape=shape, strides=(shape[1] * rows, rows, 1)) for x in (plain, result))
        load = Load(view)
        nest = Nest(shape, [load], target, apart=2)
        kernels.append((nest, window_text(nest, load, WINDOW, len(taps) // 2, 0)))
    table, unit = tasks.table(taps), tasks.table([1.0])
    extras = [(len(taps) // 2, -1), (0, -1), (address(table), -1), (address(unit), -1)]

    views = [operand.view for nest, _ in kernels for operand in nest.operands]
    _add_windows(tasks, views, kernels, (len(taps) // 2, 0), extras)
    return [Load(result) for result in results]


def _add_windows(
    tasks: GraphTasks,
    views: Sequence[ArrayView],
    kernels: Sequence[tuple[Nest, str]],
    radii: tuple[int, int],
    extras: Sequence[tuple[int, int]],
) -> None:
    """Add the task of kernels for windows of these radii, down and along."""

    def steps() -> list[Step]:
        step: Step = []
        for nest, text in kernels:
            *outer, columns = nest.lengths
            rows = piece_samples(math.prod(nest.lengths)) // max(1, columns)
            parts = [(*part, (0, columns)) for part in cut(outer, max(1, rows), MIN_ROWS)]
            count = 4 + 2 * radii[0] + coarser_operands(nest)
            memory = count * row_bytes(columns + 2 * radii[1], nest.itemsize)
            step += tasks.parts(nest, text, extras, memory, parts)
        return [step]

    tasks.add(views, steps)


def _materialized(tasks: GraphTasks, source: Expression, result: ArrayView) -> ArrayView:
    """Return the view of an expression in C order, which is computed if it is not in memory."""
    contiguous = ArrayView.contiguous(result.buffer, result.shape, result.dtype)
    if isinstance(source, Load) and not source.finer:
        view = source.view
        if (view.shape, view.strides, view.dtype) == (contiguous.shape, contiguous.strides, result.dtype):
            return view
    view = tasks.new_buffer(result.shape, result.dtype)
    tasks.add_pointwise(Pointwise((view,), (source,)))
    return view
