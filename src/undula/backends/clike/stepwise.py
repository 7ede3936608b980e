"""Lifting steps one by one: for the LWT where borders differ from step to step.

A step is one kernel that reads one sequence and adds to the other, in memory. Beyond the ends of the line
each step finds what it reads in its own way, so no extension of the line stands for all of them.
"""

from __future__ import annotations

from functools import lru_cache

from ...plans.flow import FlowStep, Tap
from ...plans.rounding import Rounding
from .borders import Border
from .dialect import Dialect
from .kernel import ELEMENTS, Kernel, Pass, opened, parameters, prelude, read, stepped, written
from .text import Text

__all__ = ["EXTENTS", "emit"]

EXTENTS = ("length", "own", "other", "columns", "planes")
ITEMS = 128


@lru_cache(maxsize=512)
def emit(
    dtype: str,
    factors: tuple[float, ...],
    offsets: tuple[int, ...],
    rounded: Rounding | None,
    border: Border,
    dialect: Dialect,
    back: bool,
) -> Kernel:
    """``target[k] += Σ factors · other[k + offsets]``; bands ``d`` is the target and ``a`` is read."""
    work = Pass(back, None, None, 1, dtype, dtype)
    text = Text()
    element = ELEMENTS[dtype]
    prelude(text, dialect, work)
    border.emit(text, dialect, "border", "number")
    _, _, integers = parameters(work, dialect, EXTENTS)
    kept = tuple((name, wide) for name, wide in integers if not name.startswith("x_"))
    listed = ",\n        ".join(
        [f"{dialect.everywhere}const {element} *a", f"{dialect.everywhere}{element} *d"]
        + [f"const {dialect.long if wide else 'int'} {name}" for name, wide in kept]
    )
    extent = "length" if border.kind.startswith("folded") else "other"
    with text.block(f"{dialect.kernel.format(items=ITEMS)} lifting_step(\n        {listed})"):
        text(
            f"const {dialect.long} place = ({dialect.long}){dialect.group} * {ITEMS} + {dialect.item};",
            f"const {dialect.long} plane = place / columns / own;",
            "if (plane >= planes) return;",
            "const int column = place % columns, k = (int)(place / columns % own);",
        )
        opened(text, dialect, ("a", "d"))
        text(f"{dialect.everywhere}{element} *target = d + ({dialect.long})k * d_row + column;")
        values = [f"value{k}" for k in range(len(offsets))]
        text(f"number {', '.join(f'{value} = 0' for value in values)};")
        for name, offset in zip(values, offsets, strict=True):
            with text.block():
                text(f"int q = k + {offset};", f"if (q < 0 || q >= other) q = border_place(q, {extent}, 0);")
                value = read(work, f"a[({dialect.long})q * a_row + column]")
                text(f"if (q >= 0) {name} = {value};")
        taps = tuple(Tap(0, offset, factor) for offset, factor in zip(offsets, factors, strict=True))
        own = read(work, "*target")
        sums = stepped(work, dialect, own, FlowStep(0, taps, rounded), values)
        text(f"*target = {written(work, sums)};")
    return Kernel("lifting_step", str(text) + "\n", ITEMS, ("a", "d"), kept)
