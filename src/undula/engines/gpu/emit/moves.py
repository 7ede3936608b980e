"""Kernels that only move data: filling with zeros, and copying between strides."""

from __future__ import annotations

from functools import lru_cache

from .dialect import Dialect
from .kernel import ELEMENTS, Kernel, emit_pointers
from .text import Text

__all__ = ["copy", "fill"]

ITEMS = 128


def _kernel(
    name: str, text: Text, dialect: Dialect, arrays: list[str], integers: list[str]
) -> tuple[str, str]:
    """Return the head of a kernel whose integers all have 64 bits, and its name."""
    words = arrays + [f"const {dialect.long} {name}" for name in integers]
    if dialect.prelude:
        text(*dialect.prelude.split("\n"))
    return f"{dialect.kernel.format(items=ITEMS)} {name}(\n        " + ",\n        ".join(words) + ")", name


@lru_cache(maxsize=64)
def fill(dtype: str, dialect: Dialect) -> Kernel:
    """Return a kernel that writes zeros from the start of a buffer."""
    text = Text()
    head, name = _kernel(
        "fill_zero", text, dialect, [f"{dialect.global_memory}{ELEMENTS[dtype]} *x"], ["count"]
    )
    with text.block(head):
        emit_pointers(text, dialect, ())
        text(f"const {dialect.long} k = ({dialect.long}){dialect.group} * {ITEMS} + {dialect.item};")
        text("if (k < count) x[k] = 0;")
    return Kernel(name, str(text) + "\n", ITEMS, ("x",), (("count", True),))


@lru_cache(maxsize=64)
def copy(dtype: str, ndim: int, dialect: Dialect) -> Kernel:
    """Return a kernel that copies between arrays of any strides."""
    text = Text()
    element = ELEMENTS[dtype]
    integers = ["count", "x_start", "y_start"]
    integers += [f"{what}{axis}" for axis in range(ndim) for what in ("size", "from", "to")]
    arrays = [f"{dialect.global_memory}const {element} *x", f"{dialect.global_memory}{element} *y"]
    head, name = _kernel("copy", text, dialect, arrays, integers)
    with text.block(head):
        text(f"const {dialect.long} k = ({dialect.long}){dialect.group} * {ITEMS} + {dialect.item};")
        emit_pointers(text, dialect, ())
        text("if (k >= count) return;", f"{dialect.long} rest = k, source = x_start, target = y_start;")
        for axis in range(ndim - 1, -1, -1):
            text(f"source += rest % size{axis} * from{axis};", f"target += rest % size{axis} * to{axis};")
            if axis:
                text(f"rest /= size{axis};")
        text("y[target] = x[source];")
    return Kernel(name, str(text) + "\n", ITEMS, ("x", "y"), tuple((name, True) for name in integers))
