"""The local memory of a scheme: cells, reads and writes per quadruple.

The model is a thread that owns one quadruple. Before a barrier it writes those of its components that
neighbours will read, unless the value in local memory is still valid. After the barrier it reads the values
of its neighbours that it does not yet hold in a register. With a single buffer, a second barrier precedes
the next write; with a double buffer, new values go to unused cells.
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
    """Count the cells, reads and writes of one quadruple.

    Parameters
    ----------
    stages : sequence of sequences of PolyphaseMatrix
        The matrices of each stage, in the order of application.
    barriers : sequence of bool
        True for each stage that a barrier precedes.
    """
    version = [0, 0, 0, 0]  # Number of changes of each component.
    stored: dict[int, int] = {}  # Version of each component in local memory.
    registers: set[tuple[int, int, tuple[int, int]]] = set()
    reads = writes = single = double = 0
    for matrices, barrier in zip(stages, barriers, strict=True):
        if barrier:
            needed = {
                (j, version[j], offset)
                for row in matrices[0].rows
                for j, entry in enumerate(row)
                for offset, _ in entry.items()
                if offset != (0, 0)
            }
            shared = {component: number for component, number, _ in needed}
            fresh = [c for c, number in shared.items() if stored.get(c) != number]
            writes += len(fresh)
            double = max(double, len(stored) + len(fresh))
            single = max(single, len(shared))
            stored = shared
            reads += len(needed - registers)
            registers |= needed
        for matrix in matrices:
            for i, row in enumerate(matrix.rows):
                version[i] += not all(e.is_one if i == j else not e for j, e in enumerate(row))
    return Traffic(Cells(single, double), reads, writes)
