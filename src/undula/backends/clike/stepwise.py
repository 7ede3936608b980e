"""Lifting steps one by one: for the LWT where borders differ from step to step.

A step is one kernel that reads one sequence and adds to the other, in memory. Beyond the ends of the line
each step finds what it reads in its own way, so no extension of the line stands for all of them.
"""

from __future__ import annotations

from functools import lru_cache

from .borders import Border
from .dialect import Dialect
from .kernel import ELEMENTS, Kernel, Pass, opened, parameters, prelude, read, written
from .text import Text, literal

__all__ = ["EXTENTS", "emit"]

EXTENTS = ("length", "own", "other", "columns", "planes")
ITEMS = 128


@lru_cache(maxsize=512)
def emit(
    dtype: str, factors: tuple[float, ...], offsets: tuple[int, ...], border: Border, dialect: Dialect
) -> Kernel:
    """``target[k] += Σ factors · other[k + offsets]``; bands ``d`` is the target and ``a`` is read."""
    work = Pass(False, None, None, 1, dtype, dtype)
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
        text(f"number sum = {read(work, '*target')};")
        for factor, offset in zip(factors, offsets, strict=True):
            with text.block():
                text(f"int q = k + {offset};", f"if (q < 0 || q >= other) q = border_place(q, {extent}, 0);")
                value = read(work, f"a[({dialect.long})q * a_row + column]")
                text(f"if (q >= 0) sum += {literal(factor, work.number)} * {value};")
        text(f"*target = {written(work, 'sum')};")
    return Kernel("lifting_step", str(text) + "\n", ITEMS, ("a", "d"), kept)
