"""Kernels of undecimated transforms: each work item computes the results at one place of one axis.

Taps are multiples of the dilation apart, which is a parameter, so all levels have the same kernel. Far from
the ends of a line, samples are read where they are; neighbouring work items read most of them from caches.
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
    load_expr,
    parameter_list,
    store_expr,
)
from .text import Text, literal

__all__ = ["EXTENTS", "emit"]

EXTENTS = ("rows", "count", "dilation", "columns", "planes")
ITEMS = 128


@lru_cache(maxsize=512)
def emit(spec: KernelSpec, dialect: Dialect) -> Kernel:
    """Return the kernel for ``spec.down``, of dilation 1; a row holds all elements of the axes within."""
    assert spec.down is not None
    taps = spec.down.dilated_taps
    text = Text()
    listed, arrays, integers = parameter_list(spec, dialect, EXTENTS)
    name = f"undecimated_{'back' if spec.back else 'forward'}"
    read, written = ("count", "rows") if spec.back else ("rows", "count")
    emit_prelude(text, dialect, spec)
    for array, border in zip(spec.sources, spec.down.borders, strict=True):
        emit_take(text, dialect, spec, array, border)
    with text.block(f"{dialect.kernel.format(items=ITEMS)} {name}(\n        {listed})"):
        text(
            f"const {dialect.long} place = ({dialect.long}){dialect.group} * {ITEMS} + {dialect.item};",
            f"const {dialect.long} each = ({dialect.long})columns * {written};",
            f"const {dialect.long} plane = place / each;",
            "if (plane >= planes) return;",
            "const int column = place % each % columns;",
            "const int k = (int)(place % each / columns);",
        )
        emit_pointers(text, dialect, arrays, spec)
        for array in arrays:
            text(f"{array} += column;")
        offsets = sorted({offset for band in taps for offset, _ in band})
        results = ("result",) if spec.back else ("result0", "result1")
        text(f"number {', '.join(f'{result} = 0' for result in results)};")
        first, last = offsets[0], offsets[-1]
        inside = f"k + dilation * {first} >= 0 && k + dilation * {last} < {read}"
        for head in (f"if ({inside})", "else"):
            with text.block(head):
                for offset in offsets:
                    _emit_place(text, dialect, spec, offset, results, head == "else", read)
        for result, array in zip(results, spec.results, strict=True):
            text(f"{array}[({dialect.long})k * {array}_row] = {store_expr(spec, result)};")
    return Kernel(name, str(text) + "\n", ITEMS, arrays, integers)


def _emit_place(
    text: Text,
    dialect: Dialect,
    spec: KernelSpec,
    offset: int,
    results: tuple[str, ...],
    beyond: bool,
    read: str,
) -> None:
    """Append what the sample, or the coefficients, at one offset add to the results."""
    assert spec.down is not None
    place = f"k + dilation * {offset}"
    for number, array in enumerate(spec.sources):
        if beyond:
            value = f"take_{array}({array}, {array}_row, {place}, {read}, {read})"
        else:
            value = load_expr(spec, f"{array}[({dialect.long})({place}) * {array}_row]")
        with text.block():
            text(f"const number value = {value};")
            for band, taps in enumerate(spec.down.dilated_taps):
                factor = dict(taps).get(offset)
                if factor is not None and (not spec.back or band == number):
                    result = results[0 if spec.back else band]
                    text(f"{result} += {literal(factor, spec.number)} * value;")
