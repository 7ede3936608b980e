"""Kernels of undecimated transforms for two neighbouring axes: down the rows of a plane, and along rows.

Rows that are multiples of the dilation apart do not depend on the others. A group marches down a strip of
such rows, and each work item has one column. An item multiplies each sample that it loads by all taps down
columns, and adds the products to the sums of the results that read the sample. These sums are in registers;
one of each band is complete after each row. Complete sums go to shared memory, from where they are combined
along rows. So every sample is loaded once, apart from those that neighbouring strips and tiles share.

The columns of a group are a *tile*: runs of neighbouring columns, with the distance of the dilation from one
run to the next. In shared memory, runs follow each other, so the distance of taps is the length of a run.
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
UNIT_REGISTERS = 65536
# Registers of an item besides those of its sums; borders are functions of several samples in some modes.
OTHER_REGISTERS = 42
BORDER_REGISTERS = 40


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
        Neighbouring columns, channels counted.
    batch : int
        Rows between two barriers.
    """

    width: int
    run: int
    batch: int

    def items(self, spec: KernelSpec) -> int:
        """Return the work items of a group: one for each column that the results of a tile read."""
        assert spec.along is not None
        first, last = tap_range(spec.along)
        return -(-(self.width + (last - first) * self.run) // WARP) * WARP

    def tiles(self, columns: int, dilation: int) -> int:
        """Return the tiles of all runs that are multiples of the dilation apart."""
        return -(-(-(-columns // dilation) * self.run) // self.width)


@lru_cache(maxsize=512)
def emit(spec: KernelSpec, geometry: PlaneGeometry, dialect: Dialect) -> Kernel:
    """Return the kernel for operators of dilation 1; the dilations are parameters of the kernel."""
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
        self.weighted = any(border.weighted for border in self.borders)  # Only samples have such borders.
        self.certain = all(border.certain for border in self.borders)
        self.text = Text()

    def kernel(self) -> Kernel:
        """Return the kernel."""
        text, spec, dialect, batch = self.text, self.spec, self.dialect, self.geometry.batch
        listed, arrays, integers = parameter_list(spec, dialect, EXTENTS)
        name = f"undecimated_plane_{'back' if spec.back else 'forward'}"
        emit_prelude(text, dialect, spec)
        text(f"typedef {spec.number}2 number2;")
        if self.weighted:
            emit_plane_take(text, dialect, spec, "x", *self.borders)
        else:
            for border, axis in zip(self.borders, ("down", "along"), strict=True):
                emit_border(text, dialect, border, f"x_{axis}")
        bounds = f"{self.items}{dialect.groups_bound.format(groups=self._groups_of_unit)}"
        with text.block(f"{dialect.kernel.format(items=bounds)} {name}(\n        {listed})"):
            text(f"{dialect.shared_memory}number2 complete[2][{batch}][{self.items}];")
            self._emit_place()
            emit_pointers(text, dialect, arrays, spec)
            self._emit_column()
            for array in spec.sources:
                text(f"number next_{array}[{batch}];")
            self._emit_loads("start")
            text(f"number sums0[{max(1, self.span)}], sums1[{max(1, self.span)}];")
            with text.unrolled("t", max(1, self.span)):
                text("sums0[t] = sums1[t] = 0;")
            for array in spec.results:
                text(
                    f"const {dialect.long} {array}_step = ({dialect.long})row_dilation * {array}_row;",
                    f"{array} += begin * {array}_step + ({dialect.long})phase * {array}_row;",
                )
            text("int side = 0;")
            with text.block(f"for (int n = start; n < end; n += {batch})"):
                self._emit_down()
                self._emit_loads(f"n + {batch}")
                with text.block("if (n >= begin)"):
                    text(dialect.barrier)
                    self._emit_along()
                    text("side = 1 - side;")
        return Kernel(name, str(text) + "\n", self.items, arrays, integers)

    @property
    def _groups_of_unit(self) -> int:
        """The groups that a unit of the device should run at once: as many as its registers suffice for."""
        sums = 2 * self.span * (2 if self.spec.number == "double" else 1)
        registers = sums + OTHER_REGISTERS + (BORDER_REGISTERS if self.weighted else 0)
        return max(1, UNIT_REGISTERS // (self.items * registers))

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

    def _emit_column(self) -> None:
        """Append where an item reads its column, and where its results go; -1 for nowhere."""
        text, long, channels, run = self.text, self.dialect.long, self.spec.channels, self.geometry.run
        first, last = tap_range(self.along)
        text(
            f"const int t = tile * {self.geometry.width} + item;",
            f"const int within = begin_run + t % {run}, channel = within % {channels};",
            f"const {long} column = ({long})column_dilation * (t / {run}) + within / {channels};",
            f"const int result = item < {self.geometry.width} && column < columns"
            f" && within < column_dilation * {channels};",
            f"const int target = result ? (int)column * {channels} + channel : -1;",
            # No result reads columns further to the right; their numbers might exceed 32 bits.
            f"const int c = (int)min(column + ({long})column_dilation * {first},"
            f" ({long})columns - 1 + ({long})column_dilation * {last});",
        )
        if self.weighted:
            text(f"const int place = c >= 0 && c < read_columns ? c * {channels} + channel : -1;")
        else:
            text("const int read = c >= 0 && c < read_columns ? c : x_along_place(c, read_columns, 0);")
            text(f"const int place = read < 0 ? -1 : read * {channels} + channel;")

    def _emit_loads(self, number: str) -> None:
        """Append the loads of a batch of rows, of which the first completes result ``number``."""
        text, spec, long = self.text, self.spec, self.dialect.long
        inside = "r >= 0 && r < read_rows"
        with text.unrolled("b", self.geometry.batch):
            text(f"const int r = row_dilation * (min({number} + b, end - 1) + {self.last}) + phase;")
            if self.weighted:
                value = load_expr(spec, f"x[({long})r * x_row + place]")
                beyond = "take_x(x + channel, x_row, r, c, read_rows, read_columns)"
                text(f"next_x[b] = {inside} && place >= 0 ? {value} : {beyond};")
                return
            text(f"const int row = {inside} ? r : x_down_place(r, read_rows, 0);")
            for array in spec.sources:
                value = load_expr(spec, f"{array}[({long})row * {array}_row + place]")
                if not self.certain:
                    value = f"row < 0 || place < 0 ? 0 : {value}"
                text(f"next_{array}[b] = {value};")

    def _emit_down(self) -> None:
        """Append the sums down columns; those that are complete go to shared memory."""
        text = self.text
        with text.unrolled("b", self.geometry.batch):
            text("number2 sum;")
            for number, part in enumerate("xy"):
                sums, terms = f"sums{number}", self._terms_down(number)
                for t in range(self.span + 1):
                    target = f"{sums}[{t - 1}]" if t else f"sum.{part}"
                    addends = [f"{sums}[{t}]"] if t < self.span else []
                    for array, taps in terms:
                        factor = dict(taps).get(self.last - t)
                        if factor is not None:
                            addends.append(f"{literal(factor, self.spec.number)} * next_{array}[b]")
                    text(f"{target} = {' + '.join(addends) or '0'};")
            text("complete[side][b][item] = sum;")

    def _terms_down(self, number: int) -> list[tuple[str, DilatedTaps]]:
        """Return the arrays, and their taps, of one of the two sums down columns."""
        low, high = self.down.dilated_taps
        if not self.spec.back:
            return [("x", (low, high)[number])]
        return [(self.spec.bands[number], low), (self.spec.bands[2 + number], high)]

    def _emit_along(self) -> None:
        """Append the sums along rows of a batch, and their stores."""
        text, spec = self.text, self.spec
        first, last = tap_range(self.along)
        low, high = self.along.dilated_taps
        # The two sums down columns, and the taps along rows, that make up each result.
        parts: dict[str, tuple[tuple[str, DilatedTaps], ...]]
        if spec.back:
            parts = {"x": (("x", low), ("y", high))}
        else:
            pairs = product("xy", (low, high))
            parts = {name: (pair,) for name, pair in zip(spec.results, pairs, strict=True)}
        with text.unrolled("b", self.geometry.batch):
            with text.block("if (target >= 0 && n + b < end)"):
                text(f"number {', '.join(f'result_{name} = 0' for name in parts)};")
                for offset in range(first, last + 1):
                    with text.block():
                        place = f"item + {(offset - first) * self.geometry.run}"
                        text(f"const number2 sum = complete[side][b][{place}];")
                        for name, terms in parts.items():
                            for part, taps in terms:
                                factor = dict(taps).get(offset)
                                if factor is not None:
                                    text(f"result_{name} += {literal(factor, spec.number)} * sum.{part};")
                for name in parts:
                    text(f"{name}[target] = {store_expr(spec, f'result_{name}')};")
            for name in parts:
                text(f"{name} += {name}_step;")
