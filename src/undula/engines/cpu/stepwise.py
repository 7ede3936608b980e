"""Lifting one step at a time: the LWT where lines are not simply extended, and of integers.

A step sweeps over one band and adds to each coefficient what it finds in the other one. Places beyond the
ends are looked up in a table; all others are at a fixed distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...lowering.axis import AxisOp
from ..threads import ranges, run, workers
from .stepwise_kernels import add_rounded, add_step

__all__ = ["StepwisePass"]

Array = NDArray[Any]
Shape = tuple[int, ...]


class StepwisePass:
    """A pass along one axis of arrays of one shape, forward or back, one lifting step at a time."""

    def __init__(self, back: bool, shape: Shape, dtype: np.dtype[Any], axis: int, op: AxisOp) -> None:
        self.back, self.axis, self.op, self.dtype = back, axis, op, dtype
        self.outer, self.inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        self.samples = math.prod(shape)
        self.factors: list[Array] = [
            np.array(step.rounded.weights, np.int64)
            if dtype.kind == "i"
            else np.array([tap.factor for tap in step.taps], dtype)
            for step in op.steps
        ]

    def __call__(self, x: Array, bands: Sequence[Array | None]) -> None:
        """Transform ``x`` to the bands, or the bands to ``x``; None stands for a band of zeros."""
        counts = self.op.counts
        line = x.reshape(self.outer, self.op.length, self.inner) if not self.back else None
        parts: list[Array] = []
        for phase, (band, count) in enumerate(zip(bands, counts, strict=True)):
            shape = (self.outer, count, self.inner)
            if line is not None:
                parts.append(line[:, phase::2].copy())
            else:
                parts.append(np.zeros(shape, self.dtype) if band is None else np.array(band).reshape(shape))
        scaling = None if self.dtype.kind == "i" else self.op.scaling
        if scaling is not None and self.back:
            for part, scale in zip(parts, scaling, strict=True):
                part /= self.dtype.type(scale)
        order = list(range(len(self.factors)))
        for number in reversed(order) if self.back else order:
            self._step(number, parts)
        if line is None:
            target = x if x.flags.c_contiguous else np.empty(x.shape, x.dtype)
            lines = target.reshape(self.outer, self.op.length, self.inner)
            for phase, part in enumerate(parts):
                lines[:, phase::2] = part
            if target is not x:
                x[...] = target
            return
        for number, (part, band) in enumerate(zip(parts, bands, strict=True)):
            assert band is not None
            if scaling is not None:
                part *= self.dtype.type(scaling[number])
            band[...] = part.reshape(band.shape)

    def _step(self, number: int, parts: Sequence[Array]) -> None:
        table, sign = self.op.step_tables[number], -1 if self.back else 1
        step = table.step
        target, source = parts[step.target], parts[1 - step.target]
        if not target.size:
            return
        fixed = (table.offsets, self.factors[number], table.begin, table.end, table.border, table.table)
        kernel: Any = add_rounded
        rest: tuple[Any, ...] = (step.rounded.offset, step.rounded.shift, sign)
        if self.dtype.kind == "i":
            info = np.iinfo(self.dtype)
            rest += (int(info.min), int(info.max))
        if self.dtype.kind != "i":
            kernel, rest = add_step, ()
            fixed = (fixed[0], sign * fixed[1], *fixed[2:])
        threads = workers(self.samples)
        pieces: list[tuple[Any, ...]]
        if self.outer >= threads:
            pieces = [
                (target[a:b], source[a:b], *fixed, 0, self.inner, *rest)
                for a, b in ranges(self.outer, threads)
            ]
        else:
            pieces = [(target, source, *fixed, a, b, *rest) for a, b in ranges(self.inner, threads)]
        run(kernel, pieces)
