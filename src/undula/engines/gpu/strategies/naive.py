"""One axis at a time by filters; every value is read from global memory."""

from __future__ import annotations

from ....lowering.axis import AxisOp
from ....wavelets import Wavelet
from ..emit import naive
from ..launches import Launch
from .base import Strategy, StrategyCost, Target, Workload, launches_of

__all__ = ["NAIVE", "Naive"]


class Naive(Strategy):
    """Each work item computes one pair of results from global memory."""

    name = "naive"
    methods = ("filters",)
    methods_note = "which runs filters"

    def operator(self, op: AxisOp, method: str) -> AxisOp:
        """Return the operator by filters."""
        return super().operator(op, "filters")

    def launches(self, workload: Workload, target: Target) -> list[Launch]:
        """Return the launch of one pass."""
        kernel = naive.emit(workload.spec, target.dialect)
        columns, planes, pairs = workload.columns, workload.planes, workload.row_pairs
        extents = (workload.rows, *workload.row_counts, pairs, columns, planes)
        return launches_of(kernel, -(-columns * pairs * planes // kernel.items), workload.views, extents)

    def cost(self, axes: int, operations: float, wavelet: Wavelet, scheme: str) -> StrategyCost:
        """Return the cost of a level: one pass for each axis."""
        return StrategyCost(axes, operations, accesses=operations)


NAIVE = Naive()
