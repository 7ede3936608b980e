"""Parts: the arrays that one launch computes, in numbers.

Arrays of a node with the same expression, in the same buffers, are parts of one launch; see
:mod:`undula.engines.gpu.emit.parts`. Axes of a part are joined where that makes no difference, so that most
parts have one or two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...arrays import ArrayView
from ...errors import ArgumentError
from .emit import Dialect
from .emit.parts import DTYPES, Access, PartsSpec, Pattern

__all__ = [
    "NARROW",
    "NO_OFFSET",
    "Part",
    "PartArray",
    "PartGroup",
    "PartRow",
    "grouped",
    "part_array",
    "row_numbers",
]

NARROW = 2**31 - 2**16  # Offsets below it fit into 32 bits, also those of items beyond the end.

Shape = tuple[int, ...]

# How the index along an axis becomes an offset: its kind, and the numbers of that kind.
AxisOffset = tuple[Any, ...]
NO_OFFSET: AxisOffset = ("none",)


class PartArray(NamedTuple):
    """An array of a part: where it is, and the offset along each axis of the part."""

    buffer: int
    dtype: str
    start: int
    axes: tuple[AxisOffset, ...]


class PartRow(NamedTuple):
    """A part in numbers: its row in the table of a launch.

    Parameters
    ----------
    groups : int
        How many groups of work items compute it.
    fields : sequence of int
        Its numbers, besides those of arrays.
    arrays : sequence of PartArray
    constants : sequence of float
    """

    groups: int
    fields: Sequence[int]
    arrays: Sequence[PartArray]
    constants: Sequence[float]


@dataclass
class Part:
    """One array that a node computes.

    Parameters
    ----------
    sizes : tuple of int
        Lengths along the axes.
    arrays : list of PartArray
        The loads of the pattern, then others, such as the result.
    pattern : Pattern
    constants : list of float
    """

    sizes: Shape
    arrays: list[PartArray]
    pattern: Pattern
    constants: list[float]

    def merged(self, first: int = 0, last: int = 0) -> Part:
        """Return the part with axes joined where that makes no difference.

        The ``first`` and ``last`` axes are kept as they are.
        """
        ndim = len(self.sizes)
        sizes: list[int] = []
        columns: list[list[AxisOffset]] = []
        for axis, size in enumerate(self.sizes):
            column = [array.axes[axis] for array in self.arrays]
            kept = axis < first or axis >= ndim - last
            if not kept and size == 1 and all(each[0] in ("none", "stride") for each in column):
                continue
            joins = (
                not kept
                and len(sizes) > first
                and all(_joins(a, b, size) for a, b in zip(columns[-1], column, strict=True))
            )
            if joins:
                sizes[-1] *= size
                columns[-1] = column
            else:
                sizes.append(size)
                columns.append(column)
        if not sizes:
            sizes, columns = [1], [[NO_OFFSET] * len(self.arrays)]
        arrays = [
            array._replace(axes=tuple(column[k] for column in columns)) for k, array in enumerate(self.arrays)
        ]
        return replace(self, sizes=tuple(sizes), arrays=arrays)

    def padded(self, ndim: int, first: int = 0) -> Part:
        """Return the part with axes of one sample inserted behind the first ones."""
        count = ndim - len(self.sizes)
        sizes = (*self.sizes[:first], *[1] * count, *self.sizes[first:])
        arrays = [
            array._replace(axes=(*array.axes[:first], *[NO_OFFSET] * count, *array.axes[first:]))
            for array in self.arrays
        ]
        return replace(self, sizes=sizes, arrays=arrays)

    @property
    def key(self) -> tuple[Any, ...]:
        """What parts of one launch have in common."""
        return (
            self.pattern,
            tuple((array.buffer, array.dtype, _special_axes(array)) for array in self.arrays),
        )

    @property
    def reach(self) -> int:
        """The largest offset within any of the arrays."""
        largest = math.prod(self.sizes)
        for array in self.arrays:
            steps = [
                abs(axis[1]) * (size - 1)
                for axis, size in zip(array.axes, self.sizes, strict=True)
                if axis[0] in ("stride", "finer")
            ]
            largest = max(largest, sum(steps))
        return largest


def _joins(outer: AxisOffset, inner: AxisOffset, size: int) -> bool:
    """Return whether two neighbouring axes are like one."""
    if outer[0] == inner[0] == "none":
        return True
    return outer[0] == inner[0] == "stride" and bool(outer[1] == inner[1] * size)


def _special_axes(array: PartArray) -> tuple[tuple[int, str], ...]:
    ndim = len(array.axes)
    return tuple(
        (axis - ndim, kind[0]) for axis, kind in enumerate(array.axes) if kind[0] in ("finer", "places")
    )


@dataclass
class PartGroup:
    """Parts of one launch, with the same number of axes, and how the kernel sees their arrays.

    Parameters
    ----------
    parts : list of Part
    first : int
        Number of axes that are not joined with others.
    """

    parts: list[Part]
    first: int = 0

    def __post_init__(self) -> None:
        ndim = max(len(part.sizes) for part in self.parts)
        self.parts = [part.padded(ndim, self.first) for part in self.parts]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.parts[0].sizes)

    @property
    def pattern(self) -> Pattern:
        """The expressions."""
        return self.parts[0].pattern

    @property
    def constants(self) -> int:
        """The number of constants of a part."""
        return len(self.parts[0].constants)

    @property
    def number(self) -> str:
        """The C type of intermediate values."""
        dtypes = {array.dtype for part in self.parts for array in part.arrays}
        return "double" if dtypes & {"float64", "int32"} else "float"

    @property
    def wide(self) -> bool:
        """Whether offsets need 64 bits."""
        return max(part.reach for part in self.parts) >= NARROW

    def spec(self, dialect: Dialect, *others: str, guard: ArrayView | None = None) -> PartsSpec:
        """Return what a kernel computes, with names for some of the arrays behind the loads.

        It computes nothing if there is a guard, and that is zero.
        """
        loads = len({step for step in self.pattern.steps if step[0] == "load"})
        accesses = []
        for k, name in enumerate([*(f"x{k}" for k in range(loads)), *others]):
            arrays = [part.arrays[k] for part in self.parts]
            kinds = []
            for axis in range(self.ndim):
                kind = {array.axes[axis][0] for array in arrays}
                kinds.append("stride" if kind == {"none", "stride"} else kind.pop())
            accesses.append(Access(name, arrays[0].dtype, tuple(kinds), name == "result"))
        return PartsSpec(
            self.pattern,
            tuple(accesses),
            self.ndim,
            self.number,
            self.constants,
            self.wide,
            dialect,
            "" if guard is None else guard.dtype,
        )


def part_array(view: ArrayView, shape: Shape | None = None) -> PartArray:
    """Return an array whose view is in a numbered buffer, broadcast to a shape."""
    if view.dtype not in DTYPES:
        raise ArgumentError(
            f"kernels cannot read or write arrays of dtype {view.dtype}; convert them on the host"
        )
    missing = len(view.shape if shape is None else shape) - len(view.shape)
    axes = [NO_OFFSET] * missing + [
        ("stride", step) if n > 1 and step else NO_OFFSET
        for n, step in zip(view.shape, view.strides, strict=True)
    ]
    return PartArray(view.buffer, view.dtype, view.offset, tuple(axes))


def row_numbers(array: PartArray, access: Access, table: int) -> list[int]:
    """Return the numbers of an array in the row of a part; ``table`` is the place of the first row."""
    numbers = [array.start]
    for axis, kind in zip(array.axes, access.axes, strict=True):
        if kind == "stride":
            numbers.append(axis[1] if axis[0] == "stride" else 0)
        elif kind == "places":
            numbers.append(axis[1] - table)
        elif kind == "finer":
            numbers += axis[1:]
    return numbers


def grouped(parts: Iterable[Part], first: int = 0) -> list[PartGroup]:
    """Return the parts in groups that one launch computes."""
    keyed: dict[Any, list[Part]] = {}
    for part in parts:
        keyed.setdefault(part.key, []).append(part)
    return [PartGroup(group, first) for group in keyed.values()]
