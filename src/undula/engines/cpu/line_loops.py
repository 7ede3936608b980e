"""Loops over the middle of long lines, each generated for one filter bank or lifting: which, and where.

The kernels for lines run every wavelet. They split a part of a line into halves, and read the sources of
each tap from them, at places that begin anywhere in a cache line. Vectors of 64 bytes then nearly always span
two cache lines, which takes twice the time. Here the number and the order of the taps are known. So a line is
read once, in whole vectors; what stands between two of them is shifted together in registers; and results are
stored once.

    analysis     samples ── deinterleave ──▶ even, odd ── filters or steps ──▶ low, high
    synthesis    low, high ── filters or steps ──▶ even, odd ── interleave ──▶ samples

Every value is computed by the same operations, in the same order, as by the loops of ``simd``, so it does not
matter which of them computes it. A loop reads whole vectors, and nothing beyond the ends of a line: what is
left there is computed by the kernels.

A loop is known by its name, which has all that its code (see ``line_code``) depends on:

    line_analyse_filters_T_t_b_e     T taps, beginning with tap t; if e > 0, the high filter has only those
                                     from number b to e, and rounds their products before it adds them
    line_synthesise_filters_L_H_l_h  L and H taps of the low and the high band, beginning with taps l and h
    line_analyse_lifting_P_f, line_synthesise_lifting_P_f
                                     P pairs of steps, the first of which changes band f
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .encoding import EncodedOp
from .kernel_layout import (
    DELTA,
    FIRST,
    HIGH,
    HIGH_BEGIN,
    HIGH_END,
    HIGH_START,
    HIGH_TAPS,
    HIGH_TURN,
    KIND,
    LIFTED,
    LOW,
    LOW_START,
    LOW_TAPS,
    LOW_TURN,
    PAIRS,
    PLACE,
    START,
    TAPS,
    TURN,
)

__all__ = ["WIDE", "LineLoop", "line_loop", "vectors_ahead"]

WIDE = 64  # bytes of a vector
MAX_TAPS = 20  # Longer filters need more registers than there are.
MIN_LENGTH = 2048  # Samples of a line from which on a loop is worth two more calls, for the ends.
MIN_TURNS = 16

Places = tuple[int, int, int]


@dataclass(frozen=True)
class LineLoop:
    """A loop, and which pairs of samples or coefficients of a line it can compute.

    Parameters
    ----------
    name : str
    lanes : int
        Pairs that one turn computes.
    places : (int, int, int)
        The sample and the coefficients of the low and the high band at which pair 0 begins.
    begin, end : int
        The pairs for which all that is read is inside of the line.
    """

    name: str
    lanes: int
    places: Places
    begin: int
    end: int

    def pairs_within(self, begin: int, end: int) -> tuple[int, int]:
        """Return which of the pairs ``begin … end`` the loop computes: whole turns, or none."""
        first = max(begin, self.begin)
        turns = (min(end, self.end) - first) // self.lanes
        return (first, first + turns * self.lanes) if turns >= MIN_TURNS else (end, end)


def line_loop(back: bool, encoded: EncodedOp, dtype: np.dtype[Any]) -> LineLoop | None:
    """Return the loop of an operator along lines, None if the kernels do as well without one."""
    op = encoded.integers.tolist()
    short = encoded.length < MIN_LENGTH or (op[KIND] != LIFTED and encoded.taps > MAX_TAPS)
    if dtype.kind != "f" or short or not _has_wide_vectors():
        return None
    return (_synthesis_loop if back else _analysis_loop)(op, encoded.length, WIDE // dtype.itemsize)


def _analysis_loop(op: Sequence[int], length: int, lanes: int) -> LineLoop:
    if op[KIND] == LIFTED:
        name = f"line_analyse_lifting_{op[PAIRS]}_{op[FIRST]}"
        start, before, after = op[PLACE], lanes, lanes * (op[PAIRS] - 1)
    else:
        name = f"line_analyse_filters_{op[TAPS]}_{op[TURN]}_{op[HIGH_BEGIN]}_{op[HIGH_END]}"
        start, before, after = op[START], 0, lanes * vectors_ahead((op[TAPS] - 1) // 2, lanes)
    end = min((length - start) // 2 - after, op[LOW], op[HIGH])
    return LineLoop(name, lanes, (start, 0, 0), before - start // 2, end)


def _synthesis_loop(op: Sequence[int], length: int, lanes: int) -> LineLoop:
    if op[KIND] == LIFTED:
        name = f"line_synthesise_lifting_{op[PAIRS]}_{op[FIRST]}"
        start, low, high = op[PLACE] - 1, *((op[DELTA], 0) if op[FIRST] else (0, op[DELTA]))
        before, after = lanes, [lanes * (op[PAIRS] - 1)] * 2
    else:
        taps = op[LOW_TAPS], op[HIGH_TAPS]
        name = f"line_synthesise_filters_{taps[0]}_{taps[1]}_{op[LOW_TURN]}_{op[HIGH_TURN]}"
        start, low, high = 0, op[LOW_START], op[HIGH_START]
        before, after = 0, [lanes * vectors_ahead(count - 1, lanes) for count in taps]
    begin = max(-(start // 2), before - low, before - high)
    end = min((length - start) // 2, op[LOW] - low - after[0], op[HIGH] - high - after[1])
    return LineLoop(name, lanes, (start, low, high), begin, end)


def vectors_ahead(offset: int, lanes: int) -> int:
    """Return how many more vectors are read, if the last tap is so many lanes behind the first."""
    return -(-offset // lanes)


@cache
def _has_wide_vectors() -> bool:
    """Return whether the processor has vectors of 64 bytes, and an instruction that shifts two together."""
    import llvmlite.binding as llvm

    return bool(llvm.get_host_cpu_features().get("avx512f"))
