"""Kernels that measure the peak rates of a device, one for each term of the performance model."""

from __future__ import annotations

from functools import lru_cache

from .dialect import Dialect
from .kernel import Kernel, emit_pointers
from .text import Text

__all__ = ["CHAINS", "ITEMS", "PATH_EXCHANGES", "exchange", "multiply", "path", "stream"]

ITEMS = 256
CHAINS = 8  # independent chains of multiply-adds
PATH_EXCHANGES = 8  # exchanges in a short kernel, as in one level of CDF 9/7


def _head(name: str, dialect: Dialect, words: list[str]) -> str:
    return f"{dialect.kernel.format(items=ITEMS)} {name}({', '.join(words)})"


@lru_cache(maxsize=8)
def stream(dialect: Dialect) -> Kernel:
    """Return a kernel in which each item copies four numbers."""
    text = Text()
    words = [f"{dialect.global_memory}const float4 *x", f"{dialect.global_memory}float4 *y"]
    with text.block(_head("stream", dialect, [*words, f"const {dialect.long} count"])):
        text(f"const {dialect.long} k = ({dialect.long}){dialect.group} * {ITEMS} + {dialect.item};")
        emit_pointers(text, dialect, ())  # Launches wait for each other, as those of a transform do.
        text("if (k < count) y[k] = x[k];")
    return Kernel("stream", f"{text}\n", ITEMS, ("x", "y"), (("count", True),))


@lru_cache(maxsize=8)
def multiply(dialect: Dialect) -> Kernel:
    """Return a kernel of multiply-adds in registers: :data:`CHAINS` in each round."""
    text = Text()
    with text.block(
        _head("multiply", dialect, [f"{dialect.global_memory}float *y", f"const {dialect.long} rounds"])
    ):
        emit_pointers(text, dialect, ())
        for chain in range(CHAINS):
            text(f"float v{chain} = {dialect.item} + {chain};")
        with text.block(f"for ({dialect.long} r = 0; r < rounds; ++r)"):
            for chain in range(CHAINS):
                text(f"v{chain} = v{chain} * 0.999f + 0.001f;")
        total = " + ".join(f"v{chain}" for chain in range(CHAINS))
        text(f"if ({total} == -1.0f) y[0] = 1.0f;")  # This keeps the compiler from removing the chains.
    return Kernel("multiply", f"{text}\n", ITEMS, ("y",), (("rounds", True),))


@lru_cache(maxsize=8)
def exchange(dialect: Dialect, reads: int) -> Kernel:
    """Return a kernel in which items write to shared memory and read ``reads`` neighbours, per round."""
    text, name = Text(), f"exchange_{reads}"
    with text.block(
        _head(name, dialect, [f"{dialect.global_memory}float *y", f"const {dialect.long} rounds"])
    ):
        text(f"{dialect.shared_memory}float cells[{2 * ITEMS}];", f"const int item = {dialect.item};")
        emit_pointers(text, dialect, ())
        text("float v = item;", "cells[item] = v;", f"cells[item + {ITEMS}] = v;")
        with text.block(f"for ({dialect.long} r = 0; r < rounds; ++r)"):
            text("cells[item] = v;", dialect.barrier)
            for k in range(1, reads + 1):
                text(f"v += 0.01f * cells[item + {k}];")
            text(dialect.barrier)
        text("if (v == -1.0f) y[0] = 1.0f;")
    return Kernel(name, f"{text}\n", ITEMS, ("y",), (("rounds", True),))


@lru_cache(maxsize=8)
def path(dialect: Dialect) -> Kernel:
    """Return a kernel that reads a number, exchanges it with neighbours in each round, and writes it."""
    text = Text()
    words = [f"{dialect.global_memory}const float *x", f"{dialect.global_memory}float *y"]
    with text.block(_head("path", dialect, [*words, f"const {dialect.long} rounds"])):
        text(f"{dialect.shared_memory}float cells[{2 * ITEMS}];", f"const int item = {dialect.item};")
        emit_pointers(text, dialect, ())
        text("float v = x[item];", f"cells[item + {ITEMS}] = v;")
        with text.block(f"for ({dialect.long} r = 0; r < rounds; ++r)"):
            text("cells[item] = v;", dialect.barrier, "v += 0.01f * cells[item + 1];", dialect.barrier)
        text("y[item] = v;")
    return Kernel("path", f"{text}\n", ITEMS, ("x", "y"), (("rounds", True),))
