"""Adjoints on devices: launches for the results at the ends of lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...arrays import ArrayView
from ...lowering.adjoints import border_rows
from ...lowering.axis import AxisOp
from .emit import Dialect, adjoints
from .emit.adjoints import FrameSpec, LineSpec
from .launches import Launch

__all__ = ["BorderFrame", "line_ends"]

MAX_NARROW_ITEMS = 2**31  # that are counted in 32 bits

# Arrays in the order of keys, with the strides of planes and rows.
Arrays = Sequence[tuple[ArrayView, tuple[int, int]]]


def _lengths(op: AxisOp) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the lengths of the sequences that an adjoint reads, and of its results."""
    samples: tuple[int, ...] = (op.length,)
    return (samples, op.counts) if op.back else (op.counts, samples)


def _values(arrays: Arrays) -> list[int]:
    return [value for view, (plane, row) in arrays for value in (view.offset, plane, row)]


def line_ends(
    dialect: Dialect, op: AxisOp, planes: int, inner: int, sources: Arrays, results: Arrays
) -> list[Launch]:
    """Return the launches for the ends of lines along one axis.

    Parameters
    ----------
    dialect : Dialect
    op : AxisOp
        The adjoint, of a synthesis or of an analysis.
    planes, inner : int
        Elements before and behind the axis.
    sources, results : sequence of (ArrayView, (int, int))
        The arrays, with strides from plane to plane and along the axis.
    """
    launches = []
    source_lengths, lengths = _lengths(op)
    for rows, result, length in zip(border_rows(op), results, lengths, strict=True):
        spec = LineSpec(rows, len(sources), sources[0][0].dtype, result[0].dtype)
        items = planes * inner * spec.items
        if not rows.changed or not items:
            continue
        kernel = adjoints.emit_line_ends(spec, dialect, items >= MAX_NARROW_ITEMS)
        arrays = [*sources, result]
        extents = (planes * inner, inner, length, source_lengths[0], source_lengths[-1])
        buffers = tuple(view.buffer for view, _ in arrays)
        groups = -(-items // kernel.items)
        launches.append(Launch(kernel, groups, buffers, (*_values(arrays), *extents)))
    return launches


class BorderFrame:
    """The results of adjoints along two axes at the ends of both.

    Parameters
    ----------
    ops : (AxisOp, AxisOp)
        The adjoints, of syntheses or of analyses.
    inner : int
        Elements behind the axes.
    source, result : str
        Dtypes.
    """

    def __init__(self, ops: Sequence[AxisOp], inner: int, source: str, result: str) -> None:
        down, along = map(border_rows, ops)
        lengths = [_lengths(op) for op in ops]
        counts = lengths[0][1]
        columns = any(rows.left + rows.right < n for rows, n in zip(down, counts, strict=True))
        self.spec = FrameSpec(down, along, source, result, columns or not any(rows.changed for rows in down))
        sequences = [lengths[axis][kind] for kind in (0, 1) for axis in (0, 1)]
        self.extents = (*(n for part in sequences for n in (part[0], part[-1])), inner)
        self.ends_items, self.rest_items, self.buffer_size = self.spec.sizes(self.extents)

    def launches(
        self,
        dialect: Dialect,
        allocate: Callable[[tuple[int, ...], str], ArrayView],
        planes: int,
        sources: Arrays,
        results: Arrays,
    ) -> list[Launch]:
        """Return the launches of both phases for all planes; ``allocate`` returns a scratch array."""
        view = allocate((planes, self.buffer_size), self.spec.number)
        buffer = (view, (self.buffer_size, 0))
        phases = (
            ("ends", self.ends_items, [*sources, buffer]),
            ("rest", self.rest_items, [buffer, *results]),
        )
        launches = []
        for phase, items, arrays in phases:
            kernel = adjoints.emit_frame_phase(self.spec, phase, dialect)
            groups = -(-planes * items // kernel.items)
            buffers = tuple(part.buffer for part, _ in arrays)
            values = (*_values(arrays), planes, items, *self.extents)
            launches += [Launch(kernel, groups, buffers, values)] if groups else []
        return launches
