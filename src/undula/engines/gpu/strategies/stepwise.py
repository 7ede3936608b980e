"""Lifting steps one by one, for an LWT whose steps are extended separately.

Callers do not choose this strategy: it runs every operator whose method is ``"steps"``.
"""

from __future__ import annotations

from dataclasses import replace

from ....lowering.borders import LWT_BORDERS
from ..emit import naive, stepwise
from ..launches import Launch
from .base import Strategy, Target, Workload, launches_of

__all__ = ["STEPWISE", "Stepwise"]


class Stepwise(Strategy):
    """A launch that splits or merges the samples, and one for each lifting step.

    Steps work in the bands forward, and in the samples for the inverse.
    """

    name = "stepwise"

    def launches(self, workload: Workload, target: Target) -> list[Launch]:
        """Return the launches of one axis."""
        spec, (task,), dialect = workload.spec, workload.tasks, target.dialect
        back = spec.back
        op = task.op.inverse() if back else task.op
        rows, inner, planes = workload.rows, workload.columns, workload.planes
        pairs = (rows + 1) // 2
        kernel = naive.emit(replace(spec, down=op.any_length, along=None), dialect)
        extents: tuple[int, ...] = (rows, *op.counts, pairs, inner, planes)
        launches = launches_of(kernel, -(-inner * pairs * planes // kernel.items), workload.views, extents)
        if back:  # Both sequences are interleaved in the samples.
            view, (plane, row) = workload.views["x"]
            halves = [(view._replace(offset=view.offset + k * row), (plane, 2 * row)) for k in (0, 1)]
        else:
            halves = [workload.views["a"], workload.views["d"]]
        scales = [way.scale for way in op.exits]
        for step in op.steps:
            target_band, other = step.target, 1 - step.target
            if not back:  # The bands were scaled before the steps.
                ratio = scales[target_band] / scales[other]
                step = step._replace(taps=tuple(t._replace(factor=ratio * t.factor) for t in step.taps))
            kernel = stepwise.emit(spec.result, step, LWT_BORDERS[op.mode][other], dialect, back)
            count = op.counts[target_band]
            extents = (rows, count, op.counts[other], inner, planes)
            views = {"a": halves[other], "d": halves[target_band]}
            launches += launches_of(kernel, -(-inner * count * planes // kernel.items), views, extents)
        return launches


STEPWISE = Stepwise()
