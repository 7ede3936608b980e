"""What a scheme costs in local memory: cells, reads and writes per quadruple.

The model of a thread that owns one quadruple. Before a barrier it writes those of its components that
neighbours will read, unless the value written for the stage before is still good. After the barrier it
reads what it needs of its neighbours, unless it still holds the value in a register. With a single buffer
a second barrier guards the rewriting; with a double buffer new values go to cells that nobody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..algebra import PolyphaseMatrix

__all__ = ["Cells", "Traffic", "traffic"]


class Cells(NamedTuple):
    """Local memory cells per quadruple."""

    single: int
    double: int


@dataclass(frozen=True)
class Traffic:
    """Local memory traffic of one quadruple."""

    cells: Cells
    reads: int
    writes: int


def traffic(stages: Sequence[Sequence[PolyphaseMatrix]], barriers: Sequence[bool]) -> Traffic:
    """Follows one quadruple through the stages, each a sequence of matrices."""
    version = [0, 0, 0, 0]  # how often each component has changed
    held: dict[int, int] = {}  # component in local memory → the version that lies there
    registers: set[tuple[int, int, tuple[int, int]]] = set()
    reads = writes = single = double = 0
    for matrices, barrier in zip(stages, barriers, strict=True):
        if barrier:
            wanted = {
                (j, version[j], offset)
                for row in matrices[0].rows
                for j, entry in enumerate(row)
                for offset, _ in entry.items()
                if offset != (0, 0)
            }
            shared = {component: number for component, number, _ in wanted}
            fresh = [c for c, number in shared.items() if held.get(c) != number]
            writes += len(fresh)
            double = max(double, len(held) + len(fresh))
            single = max(single, len(shared))
            held = shared
            reads += len(wanted - registers)
            registers |= wanted
        for matrix in matrices:
            for i, row in enumerate(matrix.rows):
                version[i] += not all(e.is_one if i == j else not e for j, e in enumerate(row))
    return Traffic(Cells(single, double), reads, writes)
