"""How columns and rows are distributed over lanes, and what the text calls their parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .....lowering.axis import AxisOp
from .....lowering.borders import Border
from ..dialect import Dialect
from ..kernel import ELEMENTS, KernelSpec

__all__ = ["LaneGeometry", "Lanes", "Piece", "within"]


@dataclass(frozen=True)
class LaneGeometry:
    """The distribution of a kernel's work over lanes.

    Parameters
    ----------
    pixels : int
        Columns that a lane owns, an even number.
    warps : int
        Groups of lanes in a work group, side by side.
    prefetch : int
        Pairs of rows that are loaded ahead.
    wide_source, wide_result : int
        Elements per memory access, as far as the alignment of the arrays allows.
    unroll : int
        Unrolling factor of the loop over rows.
    lockstep : int
        Pairs of rows after which the groups of lanes wait for each other, because they share cache lines.
    apart : bool
        Whether groups of lanes that see no end of a row get a loop of their own.
    packed : bool
        Whether a group may have lanes of several strips, which then have equal numbers of rows.
    lanes : int
        Lanes in a group.
    """

    pixels: int = 8
    warps: int = 4
    prefetch: int = 2
    wide_source: int = 4
    wide_result: int = 4
    unroll: int = 1
    lockstep: int = 4
    apart: bool = True
    packed: bool = False
    lanes: int = 32

    def useful(self, spec: KernelSpec) -> int:
        """Return the number of lanes in a group that have results."""
        return self.lanes - sum(self.overlap(spec))

    def overlap(self, spec: KernelSpec) -> tuple[int, int]:
        """Return the number of lanes at both ends of a group that only provide values for the others."""
        if spec.along is None:
            return 0, 0
        before, after = spec.along.reach
        half = self.pixels // 2
        return -(-before // half), -(-after // half)

    def ends(self, spec: KernelSpec, total: int, counts: tuple[int, int, int]) -> tuple[int, int]:
        """Return the number of groups of lanes at the left and at the right that see an end of a row.

        ``counts`` are the columns of the samples, of the low and of the high band.
        """
        first, step = (spec.along.first, self.pixels // 2) if spec.along else (0, self.pixels)
        before = self.overlap(spec)[0]
        left = right = 0
        for across in range(total):
            start = first + (across * self.useful(spec) - before) * step
            if all(scale * start + shift >= 0 for scale, shift, _ in _accesses(spec)):
                break
            left += 1
        for across in range(total - 1, left - 1, -1):
            stop = first + (across * self.useful(spec) - before + self.lanes) * step
            if all(scale * stop + shift <= counts[which] for scale, shift, which in _accesses(spec)):
                break
            right += 1
        return left, right

    def step(self, spec: KernelSpec) -> int:
        """Return the columns, or pairs of columns, between the starts of neighbouring groups of lanes."""
        return self.useful(spec) * (self.pixels if spec.along is None else self.pixels // 2)


def _accesses(spec: KernelSpec) -> list[tuple[int, int, int]]:
    """Return the columns that a lane at m accesses: from ``scale · m + shift``, below which of the counts."""
    if spec.along is None:
        return [(1, 0, 0)]
    op = spec.along
    bands = (
        [(1, entry.shift, 1 + entry.sequence) for entry in op.entries]
        if spec.back
        else [(1, -way.shift, 1 + band) for band, way in enumerate(op.exits)]
    )
    return [(2, 0, 0), *bands]


class Piece(NamedTuple):
    """The part of a row in one array that a lane reads or writes.

    ``slots`` are the positions of its elements among the values of the lane; ``shift`` is the first element,
    counted from ``m`` in the memory of the array.
    """

    sequence: int
    slots: list[int]
    shift: int


@dataclass(frozen=True)
class Lanes:
    """A kernel laid out over lanes.

    Parameters
    ----------
    spec : KernelSpec
    geometry : LaneGeometry
    dialect : Dialect
    inner : bool
        Whether the text is for groups of lanes that see no end of a row.
    """

    spec: KernelSpec
    geometry: LaneGeometry
    dialect: Dialect
    inner: bool = False

    @property
    def down(self) -> AxisOp | None:
        """The operator across rows."""
        return self.spec.down if self.spec.down else None

    @property
    def along(self) -> AxisOp | None:
        """The operator within rows."""
        return self.spec.along if self.spec.along else None

    @property
    def half(self) -> int:
        """Pairs of columns that a lane owns."""
        return self.geometry.pixels // 2

    @property
    def size(self) -> int:
        """Values of a row that a lane owns."""
        return self.geometry.pixels * self.spec.channels

    @property
    def first(self) -> int:
        """The first pair of columns with results."""
        return self.along.first if self.along else 0

    @property
    def row_count(self) -> int:
        """Rows that are processed at once."""
        return 2 if self.down else 1

    @property
    def raw(self) -> bool:
        """Whether rows stay unconverted in registers until they are used; weighted borders rule this out."""
        return not any(border.weighted for border in self._borders)

    @property
    def lean(self) -> bool:
        """Whether groups of lanes that see an end load single elements."""
        return self.geometry.packed and self.raw

    @property
    def has_long_borders(self) -> bool:
        """Whether functions of borders are kept out of line."""
        return any(border.is_long for border in self._borders)

    @property
    def _borders(self) -> list[Border]:
        return [border for axis in (self.spec.down, self.spec.along) if axis for border in axis.borders]

    @property
    def register_type(self) -> str:
        """C type of rows that are loaded ahead."""
        return ELEMENTS[self.spec.source] if self.raw else "number"

    @property
    def suffix(self) -> str:
        """Suffix of the names of functions."""
        return "_inner" if self.inner else ""

    def pieces(self, reading: bool) -> Iterator[Piece]:
        """Yield the pieces of a row that a lane reads or writes, one for each sequence within the row."""
        channels = self.spec.channels
        if self.along is None or reading != self.spec.back:  # samples
            yield Piece(0, list(range(self.size)), 0)
            return
        for component in (0, 1):
            slots = [(2 * n + component) * channels + c for n in range(self.half) for c in range(channels)]
            if self.spec.back:
                entry = self.along.entries[component]
                yield Piece(entry.sequence, slots, entry.shift)
            else:
                sequence = [e.component for e in self.along.exits].index(component)
                yield Piece(sequence, slots, -self.along.exits[sequence].shift)

    def border_name(self, axis: str, band: int) -> str:
        """Return the prefix of a border's functions."""
        return f"{axis}_{'low' if band == 0 else 'high'}" if self.spec.back else axis

    def extents(self, axis: str, band: int) -> tuple[str, str]:
        """Return the number of elements along ``rows`` or ``columns``, and the extent for its border."""
        spec_axis = self.spec.down if axis == "rows" else self.spec.along
        if not self.spec.back or spec_axis is None:
            return axis, axis
        count = f"{'low' if band == 0 else 'high'}_{axis}"
        return count, axis if spec_axis.borders[band].folded else count

    def band(self, row: int, column: int) -> str:
        """Return the name of the band with these sequences across and within rows."""
        if self.down and self.along:
            return "ad"[row] + "ad"[column]
        return "ad"[row if self.down else column]

    def start_expr(self, shift: int, interleaved: bool) -> str:
        """Return the first place of a lane's piece."""
        base = "2 * m" if interleaved and self.along else "m"
        return base if not shift else f"{base} {'+' if shift > 0 else '-'} {abs(shift)}"

    def row_expr(self, array: str, row: str, reading: bool) -> str:
        """Return the address of a row; strides in bytes make it a single instruction."""
        return self._row_expr(array, f"{array}_own" if self.inner else array, row, reading)

    def plane_row_expr(self, array: str, row: str) -> str:
        """Return the address of a row that is read, in a function whose parameter is the array."""
        return self._row_expr(array, array, row, True)

    def _row_expr(self, array: str, pointer: str, row: str, reading: bool) -> str:
        const = "const " if reading else ""
        element = ELEMENTS[self.spec.source if reading else self.spec.result]
        memory = self.dialect.global_memory
        return (
            f"({memory}{const}{element} *)(({memory}{const}char *){pointer}"
            f" + (unsigned {self.dialect.long})(unsigned int)({row}) * {array}_bytes)"
        )

    def access_width(self, elements: int, shift: int, interleaved: bool, widest: int) -> int:
        """Return how many elements one access moves: it divides the piece and the start of every lane."""
        if self.along is None:
            return math.gcd(elements, widest)
        offset = (2 * self.first if interleaved else self.first + shift) * self.spec.channels
        return math.gcd(elements, offset, widest)


def within(place: str, count: str) -> str:
    """Return the condition ``0 <= place < count`` as a single comparison."""
    return f"(unsigned int)({place}) < (unsigned int){count}"
