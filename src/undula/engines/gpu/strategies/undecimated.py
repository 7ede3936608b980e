"""Undecimated transforms, one axis at a time.

Callers do not choose this strategy: it runs every undecimated operator.
"""

from __future__ import annotations

from dataclasses import replace

from ....lowering.axis import AxisOp
from ....wavelets import Wavelet
from ..emit import undecimated
from ..launches import Launch
from .base import Strategy, StrategyCost, Target, Workload, launches_of

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

    def cost(self, axes: int, operations: float, wavelet: Wavelet, scheme: str) -> StrategyCost:
        """Return the cost of a level: one pass for each axis."""
        return StrategyCost(axes, operations)


UNDECIMATED = Undecimated()
