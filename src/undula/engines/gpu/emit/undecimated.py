"""Kernels of undecimated transforms for one axis: each work item computes the results at a few places.

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

__all__ = ["EXTENTS", "ITEMS", "PLACES", "emit"]

EXTENTS = ("rows", "count", "dilation", "columns", "shift", "across", "downwards")
ITEMS = 128
PLACES = 4  # of an item


@lru_cache(maxsize=512)
def emit(spec: KernelSpec, dialect: Dialect) -> Kernel:
    """Return the kernel for ``spec.down``, of dilation 1; a row holds all elements of the axes within.

    A group has a tile of ``1 << shift`` columns.
    """
    assert spec.down is not None
    text, long = Text(), dialect.long
    listed, arrays, integers = parameter_list(spec, dialect, EXTENTS)
    name = f"undecimated_{'back' if spec.back else 'forward'}"
    read, written = ("count", "rows") if spec.back else ("rows", "count")
    offsets = sorted({offset for band in spec.down.dilated_taps for offset, _ in band})
    emit_prelude(text, dialect, spec)
    for array, border in zip(spec.sources, spec.down.borders, strict=True):
        emit_take(text, dialect, spec, array, border)
    with text.block(f"{dialect.kernel.format(items=ITEMS)} {name}(\n        {listed})"):
        text(
            f"const int item = {dialect.item}, group = {dialect.group}, high = {ITEMS} >> shift;",
            "const int column = (group % across << shift) + (item & (1 << shift) - 1);",
            "const int plane = group / across / downwards;",
            f"const int first = group / across % downwards * (high * {PLACES}) + (item >> shift);",
            f"const int last = first + high * {PLACES - 1};",
        )
        emit_pointers(text, dialect, arrays, spec)
        text(f"if (column >= columns || first >= {written}) return;")
        for array in arrays:
            text(f"{array} += column;")
        for array in spec.sources:
            text(f"const {long} {array}_step = ({long})dilation * {array}_row;")
        before = f"first + ({long})dilation * {offsets[0]} >= 0"
        after = f"last + ({long})dilation * {offsets[-1]} < {read}"
        with (
            text.block(f"if ({before} && {after} && last < {written})"),
            text.unrolled("v", PLACES),
        ):
            text("const int k = first + v * high;")
            _emit_results(text, dialect, spec, offsets, None)
        with text.block("else"):
            text("#pragma unroll 1")
            with text.block(f"for (int k = first; k <= min(last, {written} - 1); k += high)"):
                _emit_results(text, dialect, spec, offsets, read)
    return Kernel(name, str(text) + "\n", ITEMS, arrays, integers)


def _emit_results(
    text: Text, dialect: Dialect, spec: KernelSpec, offsets: list[int], extent: str | None
) -> None:
    """Append the results at place ``k``; ``extent`` is the length of a line, if the taps may reach beyond."""
    assert spec.down is not None
    results = ("result",) if spec.back else ("result0", "result1")
    text(f"number {', '.join(f'{result} = 0' for result in results)};")
    for offset in offsets:
        for number, array in enumerate(spec.sources):
            if extent is None:
                value = load_expr(spec, f"{array}[({dialect.long})k * {array}_row + {offset} * {array}_step]")
            else:
                place = f"k + dilation * {offset}"
                value = f"take_{array}({array}, {array}_row, {place}, {extent}, {extent})"
            with text.block():
                text(f"const number value = {value};")
                for band, taps in enumerate(spec.down.dilated_taps):
                    factor = dict(taps).get(offset)
                    if factor is not None and (not spec.back or band == number):
                        result = results[0 if spec.back else band]
                        text(f"{result} += {literal(factor, spec.number)} * value;")
    for result, array in zip(results, spec.results, strict=True):
        text(f"{array}[({dialect.long})k * {array}_row] = {store_expr(spec, result)};")
