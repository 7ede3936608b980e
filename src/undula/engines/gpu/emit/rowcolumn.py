"""The row-column emitter: one axis at a time, with segments of lines in shared memory.

A group loads a segment of some lines with its halo, runs the lifting steps in place with a barrier after
each, or the filters at once, and writes both bands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .dialect import Dialect
from .kernel import (
    Kernel,
    KernelSpec,
    emit_pointers,
    emit_prelude,
    emit_take,
    parameter_list,
    store_expr,
    take_expr,
)
from .text import Text, literal

__all__ = ["EXTENTS", "SegmentGeometry", "emit"]

EXTENTS = ("rows", "low_rows", "high_rows", "row_pairs", "columns", "pieces", "blocks")


@dataclass(frozen=True)
class SegmentGeometry:
    """The segments of a group: pairs of places along a line, the number of lines, and the work items."""

    pairs: int = 32
    width: int = 32
    items: int = 256

    def shared_bytes(self, spec: KernelSpec) -> int:
        """Return the bytes of shared memory for a kernel."""
        assert spec.down is not None
        halo = sum(spec.down.reach)
        return 2 * (self.pairs + halo) * self.width * (8 if spec.number == "double" else 4)


@lru_cache(maxsize=512)
def emit(spec: KernelSpec, geometry: SegmentGeometry, dialect: Dialect) -> Kernel:
    """Return the kernel for ``spec.down``; a row holds all elements of the axes within."""
    assert spec.down is not None
    op, width = spec.down, geometry.width
    before, after = op.reach
    loaded = 2 * (geometry.pairs + before + after)
    text = Text()
    listed, arrays, integers = parameter_list(spec, dialect, EXTENTS)
    name = f"rowcolumn_{op.method}_{'back' if spec.back else 'forward'}"
    emit_prelude(text, dialect, spec)
    for array, border in zip(spec.sources, spec.down.borders, strict=True):
        emit_take(text, dialect, spec, array, border)
    with text.block(f"{dialect.kernel.format(items=geometry.items)} {name}(\n        {listed})"):
        text(
            f"{dialect.shared_memory}number w[{loaded * width}];  // places down, numbers side by side",
            f"const int item = {dialect.item};",
            f"const int block = {dialect.group} % blocks, piece = {dialect.group} / blocks % pieces;",
            f"const {dialect.long} plane = {dialect.group} / blocks / pieces;",
            f"const int first = {op.first} + piece * {geometry.pairs}, left = block * {width};",
        )
        emit_pointers(text, dialect, arrays, spec)
        with text.block(f"for (int e = item; e < {loaded * width}; e += {geometry.items})"):
            text(f"const int place = e / {width}, column = left + e % {width};")
            text(f"const int m = first - {before} + place / 2;", "number value = 0;")
            with text.block("if (column < columns)"):
                even, odd = (_at_column(take_expr(spec, c, "m")) for c in (0, 1))
                text(f"value = place % 2 == 0 ? {even} : {odd};")
            text("w[e] = value;")
        text(dialect.barrier)
        for step in op.steps:
            offsets = [0, *(tap.offset for tap in step.taps)]
            start, stop = -min(offsets), loaded // 2 - max(offsets)
            head = f"for (int e = item + {start * width}; e < {stop * width}; e += {geometry.items})"
            with text.block(head):
                text(f"const int n = e / {width}, c = e % {width};")
                terms = " + ".join(
                    f"{literal(tap.factor, spec.number)} * w[(2 * (n + {tap.offset}) + {tap.component})"
                    f" * {width} + c]"
                    for tap in step.taps
                )
                target = f"w[(2 * n + {step.target}) * {width} + c]"
                text(f"{target} = {target} + {terms};")
            text(dialect.barrier)
        with text.block(f"for (int e = item; e < {geometry.pairs * width}; e += {geometry.items})"):
            text(
                f"const int n = e / {width} + {before}, c = e % {width}, column = left + c;",
                f"const int m = first + e / {width};",
                "if (column >= columns) continue;",
            )
            for sequence, (component, shift, scale) in enumerate(op.exits):
                value = f"w[(2 * n + {component}) * {width} + c]"
                if op.filters:
                    value = f"result{component}"
                    text(f"number {value} = 0;")
                    for tap in op.filters[component]:
                        at = f"w[(2 * (n + {tap.offset}) + {tap.component}) * {width} + c]"
                        text(f"{value} += {literal(tap.factor, spec.number)} * {at};")
                if scale != 1:
                    value += f" * {literal(scale, spec.number)}"
                array = "x" if spec.back else spec.bands[sequence]
                row = f"2 * m + {sequence}" if spec.back else f"m - {shift}"
                limit = "rows" if spec.back else ("low_rows", "high_rows")[sequence]
                with text.block(f"if ({row} >= 0 && {row} < {limit})"):
                    place = f"({dialect.long})({row}) * {array}_row + column"
                    text(f"{array}[{place}] = {store_expr(spec, value)};")
    return Kernel(name, str(text) + "\n", geometry.items, arrays, integers)


def _at_column(call: str) -> str:
    """Return a call that reads a line, changed to read the line of the column."""
    array = call[len("take_") : call.index("(")]
    return call.replace(f"({array}, ", f"({array} + column, ", 1)
