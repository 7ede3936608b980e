"""The row-column strategy: one axis at a time, a piece of its lines in shared memory.

A group loads a piece of some lines with as much around it as results reach, runs the flow there, lifting
steps in place with a barrier after each or filters at once, and writes both bands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .dialect import Dialect
from .kernel import Kernel, Pass, emit_take, opened, parameters, prelude, taken, written
from .text import Text, literal

__all__ = ["EXTENTS", "Shape", "emit"]

EXTENTS = ("rows", "low_rows", "high_rows", "row_pairs", "columns", "pieces", "blocks")


@dataclass(frozen=True)
class Shape:
    """A piece: pairs of places down, numbers side by side; and the work items."""

    pairs: int = 32
    width: int = 32
    items: int = 256

    def shared(self, work: Pass) -> int:
        """Bytes of shared memory."""
        assert work.down is not None
        around = sum(work.down.flow.reach)
        return 2 * (self.pairs + around) * self.width * (8 if work.number == "double" else 4)


@lru_cache(maxsize=512)
def emit(work: Pass, shape: Shape, dialect: Dialect) -> Kernel:
    """The kernel of a pass along ``work.down``, whose rows are as wide as all that lies within."""
    assert work.down is not None
    flow, width = work.down.flow, shape.width
    before, after = flow.reach
    whole = shape.pairs + before + after
    text = Text()
    listed, arrays, integers = parameters(work, dialect, EXTENTS)
    name = f"rowcolumn_{flow.method}_{'back' if work.back else 'forward'}"
    prelude(text, dialect, work)
    for array, border in zip(work.sources, work.down.borders, strict=True):
        emit_take(text, dialect, work, array, border)
    with text.block(f"{dialect.kernel.format(items=shape.items)} {name}(\n        {listed})"):
        text(
            f"{dialect.within}number w[{2 * whole * width}];  // places down, numbers side by side",
            f"const int item = {dialect.item};",
            f"const int block = {dialect.group} % blocks, piece = {dialect.group} / blocks % pieces;",
            f"const {dialect.long} plane = {dialect.group} / blocks / pieces;",
            f"const int first = {flow.first} + piece * {shape.pairs}, left = block * {width};",
        )
        opened(text, dialect, arrays, work)
        with text.block(f"for (int e = item; e < {2 * whole * width}; e += {shape.items})"):
            text(f"const int place = e / {width}, column = left + e % {width};")
            text(f"const int m = first - {before} + place / 2;", "number value = 0;")
            with text.block("if (column < columns)"):
                even, odd = (_moved(taken(work, c, "m"), work) for c in (0, 1))
                text(f"value = place % 2 == 0 ? {even} : {odd};")
            text("w[e] = value;")
        text(dialect.barrier)
        for step in flow.steps:
            offsets = [0, *(tap.offset for tap in step.taps)]
            start, stop = -min(offsets), whole - max(offsets)
            head = f"for (int e = item + {start * width}; e < {stop * width}; e += {shape.items})"
            with text.block(head):
                text(f"const int n = e / {width}, c = e % {width};")
                terms = " + ".join(
                    f"{literal(tap.factor, work.number)} * w[(2 * (n + {tap.offset}) + {tap.component})"
                    f" * {width} + c]"
                    for tap in step.taps
                )
                own = f"w[(2 * n + {step.target}) * {width} + c]"
                text(f"{own} = {own} + {terms};")
            text(dialect.barrier)
        with text.block(f"for (int e = item; e < {shape.pairs * width}; e += {shape.items})"):
            text(
                f"const int n = e / {width} + {before}, c = e % {width}, column = left + c;",
                f"const int m = first + e / {width};",
                "if (column >= columns) continue;",
            )
            for sequence, (component, shift, scale) in enumerate(flow.exits):
                value = f"w[(2 * n + {component}) * {width} + c]"
                if flow.filters:
                    value = f"result{component}"
                    text(f"number {value} = 0;")
                    for tap in flow.filters[component]:
                        at = f"w[(2 * (n + {tap.offset}) + {tap.component}) * {width} + c]"
                        text(f"{value} += {literal(tap.factor, work.number)} * {at};")
                if scale != 1:
                    value += f" * {literal(scale, work.number)}"
                array = "x" if work.back else work.bands[sequence]
                row = f"2 * m + {sequence}" if work.back else f"m - {shift}"
                limit = "rows" if work.back else ("low_rows", "high_rows")[sequence]
                with text.block(f"if ({row} >= 0 && {row} < {limit})"):
                    text(f"{array}[({dialect.long})({row}) * {array}_row + column] = {written(work, value)};")
    return Kernel(name, str(text) + "\n", shape.items, arrays, integers)


def _moved(call: str, work: Pass) -> str:
    """A call that reads a line, told to read it at the column."""
    array = call[len("take_") : call.index("(")]
    return call.replace(f"({array}, ", f"({array} + column, ", 1)
