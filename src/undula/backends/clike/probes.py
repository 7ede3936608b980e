"""Kernels that measure a device: what it can do at most of each thing that takes a transform time."""

from __future__ import annotations

from functools import lru_cache

from .dialect import Dialect
from .kernel import Kernel, opened
from .text import Text

__all__ = ["CHAINS", "ITEMS", "WAYS", "exchange", "multiply", "path", "stream"]

ITEMS = 256
CHAINS = 8  # products that do not wait for each other
WAYS = 8  # exchanges on the way through a short kernel, as a level of CDF 9/7 has them


def _headed(name: str, dialect: Dialect, words: list[str]) -> str:
    return f"{dialect.kernel.format(items=ITEMS)} {name}({', '.join(words)})"


@lru_cache(maxsize=8)
def stream(dialect: Dialect) -> Kernel:
    """Four numbers from one array to another, by each item."""
    text = Text()
    words = [f"{dialect.everywhere}const float4 *x", f"{dialect.everywhere}float4 *y"]
    with text.block(_headed("stream", dialect, [*words, f"const {dialect.long} count"])):
        text(f"const {dialect.long} k = ({dialect.long}){dialect.group} * {ITEMS} + {dialect.item};")
        opened(text, dialect, ())  # (one after the other, as those of a transform)
        text("if (k < count) y[k] = x[k];")
    return Kernel("stream", f"{text}\n", ITEMS, ("x", "y"), (("count", True),))


@lru_cache(maxsize=8)
def multiply(dialect: Dialect) -> Kernel:
    """Multiply-adds in registers: :data:`CHAINS` in each round."""
    text = Text()
    with text.block(
        _headed("multiply", dialect, [f"{dialect.everywhere}float *y", f"const {dialect.long} rounds"])
    ):
        opened(text, dialect, ())
        for chain in range(CHAINS):
            text(f"float v{chain} = {dialect.item} + {chain};")
        with text.block(f"for ({dialect.long} r = 0; r < rounds; ++r)"):
            for chain in range(CHAINS):
                text(f"v{chain} = v{chain} * 0.999f + 0.001f;")
        total = " + ".join(f"v{chain}" for chain in range(CHAINS))
        text(f"if ({total} == -1.0f) y[0] = 1.0f;")  # (so that nothing is left out)
    return Kernel("multiply", f"{text}\n", ITEMS, ("y",), (("rounds", True),))


@lru_cache(maxsize=8)
def exchange(dialect: Dialect, reads: int) -> Kernel:
    """Each round, a number goes to shared memory, all wait, and each item reads some of its neighbours'."""
    text, name = Text(), f"exchange_{reads}"
    with text.block(
        _headed(name, dialect, [f"{dialect.everywhere}float *y", f"const {dialect.long} rounds"])
    ):
        text(f"{dialect.within}float cells[{2 * ITEMS}];", f"const int item = {dialect.item};")
        opened(text, dialect, ())
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
    """The way of one number through a kernel: read, exchanged with neighbours some times, and written."""
    text = Text()
    words = [f"{dialect.everywhere}const float *x", f"{dialect.everywhere}float *y"]
    with text.block(_headed("path", dialect, [*words, f"const {dialect.long} rounds"])):
        text(f"{dialect.within}float cells[{2 * ITEMS}];", f"const int item = {dialect.item};")
        opened(text, dialect, ())
        text("float v = x[item];", f"cells[item + {ITEMS}] = v;")
        with text.block(f"for ({dialect.long} r = 0; r < rounds; ++r)"):
            text("cells[item] = v;", dialect.barrier, "v += 0.01f * cells[item + 1];", dialect.barrier)
        text("y[item] = v;")
    return Kernel("path", f"{text}\n", ITEMS, ("x", "y"), (("rounds", True),))
