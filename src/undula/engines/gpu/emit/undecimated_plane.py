"""Kernels of undecimated transforms for two neighbouring axes, of which the second is within rows.

Rows that are multiples of the dilation apart do not depend on the others. A group marches down a strip of
them: each row that arrives is multiplied by all taps down columns and added to the results that read it,
which are in registers, so that one of them is complete after each row. Complete results go to shared memory,
from where they are combined along rows. So every sample is read once, apart from those around strips and
tiles.

Along rows, a group has a *tile* of columns: runs of neighbouring columns that are a dilation apart. They are
stored one after the other, so that taps read the tile at multiples of the length of a run.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import NamedTuple

from ....lowering.axis import AxisOp, DilatedTaps
from .borders import emit_border
from .dialect import Dialect
from .kernel import (
    Kernel,
    KernelSpec,
    emit_plane_take,
    emit_pointers,
    emit_prelude,
    load_expr,
    parameter_list,
    store_expr,
)
from .text import Text, literal

__all__ = ["EXTENTS", "PlaneGeometry", "emit", "tap_range"]

EXTENTS = (
    "read_rows", "read_columns", "rows", "columns", "row_dilation", "column_dilation",
    "across", "runs", "phases", "strip", "strips",
)  # fmt: skip
WARP = 32
REGISTERS = 65536  # of a unit


def tap_range(op: AxisOp) -> tuple[int, int]:
    """Return the first and the last offset of the taps that are not zero."""
    offsets = [offset for taps in op.dilated_taps for offset, _ in taps]
    return min(offsets), max(offsets)


class PlaneGeometry(NamedTuple):
    """How a group distributes its work.

    Parameters
    ----------
    width : int
        Results in a row of a tile, a multiple of the length of a run.
    run : int
        Neighbouring columns.
    per_item : int
        Columns of a work item.
    batch : int
        Rows between two barriers.
    registers : int
        Registers that an item needs; with fewer groups on a unit of the device it may use more.
    """

    width: int
    run: int
    per_item: int
    batch: int
    registers: int

    def items(self, spec: KernelSpec) -> int:
        """Return the work items of a group: enough for a tile and the columns that its last results read."""
        assert spec.along is not None
        first, last = tap_range(spec.along)
        return -(-(self.width + (last - first) * self.run) // (self.per_item * WARP)) * WARP

    def shared_bytes(self, spec: KernelSpec) -> int:
        """Return the shared memory of a group."""
        size = 8 if spec.number == "double" else 4
        return 2 * self.batch * self.per_item * self.items(spec) * 2 * size


@lru_cache(maxsize=512)
def emit(spec: KernelSpec, geometry: PlaneGeometry, dialect: Dialect) -> Kernel:
    """Return the kernel for operators of dilation 1."""
    return _PlaneEmitter(spec, geometry, dialect).kernel()


class _PlaneEmitter:
    def __init__(self, spec: KernelSpec, geometry: PlaneGeometry, dialect: Dialect) -> None:
        assert spec.down is not None
        assert spec.along is not None
        self.spec, self.geometry, self.dialect = spec, geometry, dialect
        self.down, self.along = spec.down, spec.along
        self.items = geometry.items(spec)
        self.first, self.last = tap_range(spec.down)
        self.span = self.last - self.first
        self.borders = spec.down.borders[0], spec.along.borders[0]  # The same for both bands.
        self.weighted = any(border.weighted for border in self.borders)
        self.certain = all(border.certain for border in self.borders)
        self.text = Text()

    def kernel(self) -> Kernel:
        """Return the kernel."""
        text, spec, dialect, geometry = self.text, self.spec, self.dialect, self.geometry
        listed, arrays, integers = parameter_list(spec, dialect, EXTENTS)
        name = f"undecimated_plane_{'back' if spec.back else 'forward'}"
        emit_prelude(text, dialect, spec)
        text(f"typedef {spec.number}2 couple;")
        if self.weighted:
            emit_plane_take(text, dialect, spec, "x", *self.borders)
        else:
            for border, axis in zip(self.borders, ("down", "along"), strict=True):
                emit_border(text, dialect, border, f"x_{axis}")
        staged = geometry.per_item * self.items
        groups = max(1, REGISTERS // (self.items * geometry.registers))
        bounds = f"{self.items}{dialect.groups_bound.format(groups=groups)}"
        with text.block(f"{dialect.kernel.format(items=bounds)} {name}(\n        {listed})"):
            text(f"{dialect.shared_memory}couple staged[2][{geometry.batch}][{staged}];")
            self._emit_place()
            emit_pointers(text, dialect, arrays, spec)
            self._emit_columns()
            shape = f"[{geometry.batch}][{geometry.per_item}]"
            for array in spec.sources:
                text(f"number next_{array}{shape};")
            self._emit_loads("start")
            text(f"number sums0[{geometry.per_item}][{max(1, self.span)}];")
            text(f"number sums1[{geometry.per_item}][{max(1, self.span)}];")
            with text.unrolled("v", geometry.per_item), text.unrolled("t", max(1, self.span)):
                text("sums0[v][t] = sums1[v][t] = 0;")
            for array in spec.results:
                text(
                    f"const {dialect.long} {array}_step = ({dialect.long})row_dilation * {array}_row;",
                    f"{array} += begin * {array}_step + ({dialect.long})phase * {array}_row;",
                )
            text("int side = 0;")
            with text.block(f"for (int n = start; n < end; n += {geometry.batch})"):
                self._emit_down()
                self._emit_loads(f"n + {geometry.batch}")
                with text.block("if (n >= begin)"):
                    text(dialect.barrier)
                    self._emit_along()
                    text("side = 1 - side;")
        return Kernel(name, str(text) + "\n", self.items, arrays, integers)

    def _emit_place(self) -> None:
        """Append the division of the index of a group."""
        batch = self.geometry.batch
        self.text(
            f"const int item = {self.dialect.item};",
            f"int rest = {self.dialect.group};",
            "const int tile = rest % across;",
            "rest /= across;",
            f"const int begin_run = rest % runs * {self.geometry.run};",
            "rest /= runs;",
            "const int phase = rest % phases;",
            "rest /= phases;",
            "const int begin = rest % strips * strip;",
            "const int plane = rest / strips;",
            "const int end = min(begin + strip, (rows - phase + row_dilation - 1) / row_dilation);",
            # The first result needs the rows before it, in whole batches.
            f"const int start = begin - {-(-self.span // batch) * batch};",
        )

    def _emit_columns(self) -> None:
        """Append where the columns of an item are read, and where results go, -1 for nowhere."""
        text, geometry, long = self.text, self.geometry, self.dialect.long
        channels = self.spec.channels
        first, last = tap_range(self.along)
        text(f"int places[{geometry.per_item}], targets[{geometry.per_item}];")
        if self.weighted:
            text(f"int read[{geometry.per_item}], channel[{geometry.per_item}];")
        with text.unrolled("v", geometry.per_item):
            text(
                f"const int t = tile * {geometry.width} + item + v * {self.items};",
                f"const int within = begin_run + t % {geometry.run};",
                f"const {long} column = ({long})column_dilation * (t / {geometry.run})"
                f" + within / {channels};",
                f"const int result = item + v * {self.items} < {geometry.width} && column < columns"
                f" && within < column_dilation * {channels};",
                f"targets[v] = result ? (int)column * {channels} + within % {channels} : -1;",
                f"const int p = (int)min(column + ({long})column_dilation * {first},"
                f" ({long})columns - 1 + ({long})column_dilation * {last});",
            )
            inside = "p >= 0 && p < read_columns"
            if self.weighted:
                text(f"places[v] = {inside} ? p * {channels} + within % {channels} : -1;")
                text("read[v] = p;", f"channel[v] = within % {channels};")
            else:
                text(f"const int q = {inside} ? p : x_along_place(p, read_columns, 0);")
                text(f"places[v] = q < 0 ? -1 : q * {channels} + within % {channels};")

    def _emit_loads(self, number: str) -> None:
        """Append the loads of a batch of rows, of which the first completes result ``number``."""
        text, spec, geometry, long = self.text, self.spec, self.geometry, self.dialect.long
        with text.unrolled("b", geometry.batch):
            text(f"const int p = row_dilation * (min({number} + b, end - 1) + {self.last}) + phase;")
            inside = "p >= 0 && p < read_rows"
            if not self.weighted:
                text(f"const int row = {inside} ? p : x_down_place(p, read_rows, 0);")
            for array in spec.sources:
                at = "p" if self.weighted else "row"
                value = load_expr(spec, f"{array}[({long}){at} * {array}_row + places[v]]")
                if self.weighted:
                    beyond = "take_x(x + channel[v], x_row, p, read[v], read_rows, read_columns)"
                    value = f"{inside} && places[v] >= 0 ? {value} : {beyond}"
                elif not self.certain:
                    value = f"row < 0 || places[v] < 0 ? 0 : {value}"
                with text.unrolled("v", geometry.per_item):
                    text(f"next_{array}[b][v] = {value};")

    def _emit_down(self) -> None:
        """Append the sums down columns, and what is complete of them to shared memory."""
        text, geometry = self.text, self.geometry
        with text.unrolled("b", geometry.batch), text.unrolled("v", geometry.per_item):
            for array in self.spec.sources:
                text(f"const number {array}_value = next_{array}[b][v];")
            text("couple sum;")
            for number, part in enumerate("xy"):
                sums, terms = f"sums{number}[v]", self._terms_down(number)
                for t in range(self.span + 1):
                    target = f"{sums}[{t - 1}]" if t else f"sum.{part}"
                    words = [f"{sums}[{t}]"] if t < self.span else []
                    for array, taps in terms:
                        factor = dict(taps).get(self.last - t)
                        if factor is not None:
                            words.append(f"{literal(factor, self.spec.number)} * {array}_value")
                    text(f"{target} = {' + '.join(words) or '0'};")
            text(f"staged[side][b][item + v * {self.items}] = sum;")

    def _terms_down(self, number: int) -> list[tuple[str, DilatedTaps]]:
        """Return the arrays, and their taps, of one of the two sums down columns."""
        taps = self.down.dilated_taps
        if not self.spec.back:
            return [("x", taps[number])]
        return [(self.spec.bands[number], taps[0]), (self.spec.bands[2 + number], taps[1])]

    def _emit_along(self) -> None:
        """Append the sums along rows of a batch, and their stores."""
        text, spec, geometry = self.text, self.spec, self.geometry
        first, last = tap_range(self.along)
        low, high = self.along.dilated_taps
        # The two sums down columns, and the taps along rows, that make up each result.
        parts: dict[str, tuple[tuple[str, DilatedTaps], ...]]
        if spec.back:
            parts = {"x": (("x", low), ("y", high))}
        else:
            pairs = product("xy", (low, high))
            parts = {name: (pair,) for name, pair in zip(spec.results, pairs, strict=True)}
        with text.unrolled("b", geometry.batch):
            with (
                text.unrolled("v", geometry.per_item),
                text.block("if (targets[v] >= 0 && n + b < end)"),
            ):
                text(f"number {', '.join(f'result_{name} = 0' for name in parts)};")
                for offset in range(first, last + 1):
                    place = f"item + v * {self.items} + {(offset - first) * geometry.run}"
                    with text.block():
                        text(f"const couple sum = staged[side][b][{place}];")
                        for name, terms in parts.items():
                            for part, taps in terms:
                                factor = dict(taps).get(offset)
                                if factor is not None:
                                    text(f"result_{name} += {literal(factor, spec.number)} * sum.{part};")
                for name in parts:
                    text(f"{name}[targets[v]] = {store_expr(spec, f'result_{name}')};")
            for name in parts:
                text(f"{name} += {name}_step;")
