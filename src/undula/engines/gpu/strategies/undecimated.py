"""Undecimated transforms, one axis at a time.

Callers do not choose this strategy: it runs every undecimated operator.
"""

from __future__ import annotations

from dataclasses import replace

from ....lowering.axis import AxisOp
from ..emit import undecimated
from ..launches import Launch
from .base import Strategy, Target, Workload, launches_of

__all__ = ["UNDECIMATED", "Undecimated"]


class Undecimated(Strategy):
    """Each work item computes the results at one place."""

    name = "undecimated"

    def operator(self, op: AxisOp, method: str) -> AxisOp:
        """Return the operator with a dilation of 1, for which kernels are printed."""
        return replace(op, dilation=1)

    def launches(self, workload: Workload, target: Target) -> list[Launch]:
        """Return the launch of one axis."""
        (task,), (count, _) = workload.tasks, workload.row_counts
        kernel = undecimated.emit(workload.spec, target.dialect)
        rows, columns, planes = workload.rows, workload.columns, workload.planes
        results = columns * planes * (rows if workload.spec.back else count)
        extents = (rows, count, task.op.dilation, columns, planes)
        return launches_of(kernel, -(-results // kernel.items), workload.views, extents)


UNDECIMATED = Undecimated()
