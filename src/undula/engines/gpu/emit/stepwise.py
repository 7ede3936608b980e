"""Kernels for single lifting steps, for an LWT whose steps are extended separately.

A kernel reads one sequence and adds to the other, in global memory. In these modes each step extends the
sequence that it reads, and no extension of the samples is equivalent to all of them.
"""

from __future__ import annotations

from functools import lru_cache

from ....lowering.borders import Border
from ....lowering.polyphase import Step
from .borders import emit_border
from .dialect import Dialect
from .kernel import (
    ELEMENTS,
    Kernel,
    KernelSpec,
    emit_pointers,
    emit_prelude,
    load_expr,
    parameter_list,
    step_expr,
    store_expr,
)
from .text import Text

__all__ = ["EXTENTS", "emit"]

EXTENTS = ("length", "own", "other", "columns", "planes")
ITEMS = 128


@lru_cache(maxsize=512)
def emit(
    dtype: str,
    step: Step,
    border: Border,
    dialect: Dialect,
    back: bool,
) -> Kernel:
    """Return the kernel of a step: ``d[k] += Σ factor · a[k + offset]``."""
    spec = KernelSpec(back, None, None, 1, dtype, dtype)
    text = Text()
    element = ELEMENTS[dtype]
    emit_prelude(text, dialect, spec)
    emit_border(text, dialect, border, "border")
    _, _, integers = parameter_list(spec, dialect, EXTENTS)
    used = tuple((name, wide) for name, wide in integers if not name.startswith("x_"))
    listed = ",\n        ".join(
        [f"{dialect.global_memory}const {element} *a", f"{dialect.global_memory}{element} *d"]
        + [f"const {dialect.long if wide else 'int'} {name}" for name, wide in used]
    )
    extent = "length" if border.folded else "other"
    with text.block(f"{dialect.kernel.format(items=ITEMS)} lifting_step(\n        {listed})"):
        text(
            f"const {dialect.long} place = ({dialect.long}){dialect.group} * {ITEMS} + {dialect.item};",
            f"const {dialect.long} plane = place / columns / own;",
            "if (plane >= planes) return;",
            "const int column = place % columns, k = (int)(place / columns % own);",
        )
        emit_pointers(text, dialect, ("a", "d"))
        text(f"{dialect.global_memory}{element} *target = d + ({dialect.long})k * d_row + column;")
        values = [f"value{k}" for k in range(len(step.taps))]
        text(f"number {', '.join(f'{value} = 0' for value in values)};")
        for name, (_, offset, _) in zip(values, step.taps, strict=True):
            with text.block():
                text(f"int q = k + {offset};", f"if (q < 0 || q >= other) q = border_place(q, {extent}, 0);")
                value = load_expr(spec, f"a[({dialect.long})q * a_row + column]")
                text(f"if (q >= 0) {name} = {value};")
        old = load_expr(spec, "*target")
        sums = step_expr(spec, dialect, old, step, values)
        text(f"*target = {store_expr(spec, sums)};")
    return Kernel("lifting_step", str(text) + "\n", ITEMS, ("a", "d"), used)
