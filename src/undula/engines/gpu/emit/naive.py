"""The naive emitter: each work item computes one pair of results with values read from global memory.

It filters one axis at a time. It is slow, simple, and supports all wavelets, modes, axes and layouts.
"""

from __future__ import annotations

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

__all__ = ["EXTENTS", "emit"]

EXTENTS = ("rows", "low_rows", "high_rows", "row_pairs", "columns", "planes")
ITEMS = 128


@lru_cache(maxsize=512)
def emit(spec: KernelSpec, dialect: Dialect) -> Kernel:
    """Return the kernel for ``spec.down``; a row holds all elements of the axes within."""
    assert spec.down is not None
    op = spec.down
    text = Text()
    listed, arrays, integers = parameter_list(spec, dialect, EXTENTS)
    name = f"naive_{'back' if spec.back else 'forward'}"
    emit_prelude(text, dialect, spec)
    for array, border in zip(spec.sources, spec.down.borders, strict=True):
        emit_take(text, dialect, spec, array, border)
    with text.block(f"{dialect.kernel.format(items=ITEMS)} {name}(\n        {listed})"):
        text(
            f"const {dialect.long} place = ({dialect.long}){dialect.group} * {ITEMS} + {dialect.item};",
            f"const {dialect.long} each = ({dialect.long})columns * row_pairs;",
            f"const {dialect.long} plane = place / each;",
            "if (plane >= planes) return;",
            "const int column = place % each % columns;",
            f"const int m = {op.first} + (int)(place % each / columns);",
        )
        emit_pointers(text, dialect, arrays, spec)
        for array in arrays:
            text(f"{array} += column;")
        # One statement for each tap keeps long filters readable.
        text("number result0 = 0, result1 = 0;")
        for result, taps in enumerate(op.filters):
            for tap in taps:
                source = take_expr(spec, tap.component, f"m + {tap.offset}")
                factor = "" if tap.factor == 1 else f"{literal(tap.factor, spec.number)} * "
                text(f"result{result} += {factor}{source};")
        for sequence, (component, shift, scale) in enumerate(op.exits):
            array = "x" if spec.back else spec.bands[sequence]
            row = f"2 * m + {sequence}" if spec.back else f"m - {shift}"
            limit = "rows" if spec.back else ("low_rows", "high_rows")[sequence]
            value = f"result{component}" + (f" * {literal(scale, spec.number)}" if scale != 1 else "")
            with text.block(f"if ({row} >= 0 && {row} < {limit})"):
                text(f"{array}[({dialect.long})({row}) * {array}_row] = {store_expr(spec, value)};")
    return Kernel(name, str(text) + "\n", ITEMS, arrays, integers)
