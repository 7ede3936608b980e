"""The naive strategy: every number from memory, one pair of results for each work item.

One axis at a time, by the filters, without any memory of its own: slow, and the plainest to read. It takes
every wavelet, mode, axis and layout.
"""

from __future__ import annotations

from functools import lru_cache

from .dialect import Dialect
from .kernel import Kernel, Pass, emit_take, opened, parameters, prelude, taken, written
from .text import Text, literal

__all__ = ["EXTENTS", "emit"]

EXTENTS = ("rows", "low_rows", "high_rows", "row_pairs", "columns", "planes")
ITEMS = 128


@lru_cache(maxsize=512)
def emit(work: Pass, dialect: Dialect) -> Kernel:
    """The kernel of a pass along one axis: ``work.down``, whose rows are as wide as all that lies within."""
    assert work.down is not None
    flow = work.down.flow
    text = Text()
    listed, arrays, integers = parameters(work, dialect, EXTENTS)
    name = f"naive_{'back' if work.back else 'forward'}"
    prelude(text, dialect, work)
    for array, border in zip(work.sources, work.down.borders, strict=True):
        emit_take(text, dialect, work, array, border)
    with text.block(f"{dialect.kernel.format(items=ITEMS)} {name}(\n        {listed})"):
        text(
            f"const {dialect.long} place = ({dialect.long}){dialect.group} * {ITEMS} + {dialect.item};",
            f"const {dialect.long} each = ({dialect.long})columns * row_pairs;",
            f"const {dialect.long} plane = place / each;",
            "if (plane >= planes) return;",
            "const int column = place % each % columns;",
            f"const int m = {flow.first} + (int)(place % each / columns);",
        )
        opened(text, dialect, arrays, work)
        for array in arrays:
            text(f"{array} += column;")
        # Results as sums; one statement for each tap keeps long filters readable.
        text("number result0 = 0, result1 = 0;")
        for result, taps in enumerate(flow.filters):
            for tap in taps:
                source = taken(work, tap.component, f"m + {tap.offset}")
                factor = "" if tap.factor == 1 else f"{literal(tap.factor, work.number)} * "
                text(f"result{result} += {factor}{source};")
        for sequence, (component, shift, scale) in enumerate(flow.exits):
            array = "x" if work.back else work.bands[sequence]
            row = f"2 * m + {sequence}" if work.back else f"m - {shift}"
            limit = "rows" if work.back else ("low_rows", "high_rows")[sequence]
            value = f"result{component}" + (f" * {literal(scale, work.number)}" if scale != 1 else "")
            with text.block(f"if ({row} >= 0 && {row} < {limit})"):
                text(f"{array}[({dialect.long})({row}) * {array}_row] = {written(work, value)};")
    return Kernel(name, str(text) + "\n", ITEMS, arrays, integers)
