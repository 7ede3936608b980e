"""Lifting steps one by one, for an LWT whose steps are extended separately.

Callers do not choose this strategy: it runs every axis whose line is a :class:`~undula.lowering.line.Steps`.
"""

from __future__ import annotations

from ....lowering.borders import BORDERS, LWT_BORDERS
from ....lowering.flow import Entry, Exit, Flow, Tap
from ....lowering.line import Steps
from ..emit import KernelSpec, naive, stepwise
from ..emit.kernel import Axis
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
        line, back = task.line, spec.back
        assert isinstance(line, Steps)
        rounded = spec.number == "int"
        scales = [1 / s for s in line.scaling] if back else list(line.scaling)
        if rounded:
            scales = [1.0, 1.0]
        copies = Flow(
            (Entry(0, 0), Entry(1, 0)),
            (),
            ((Tap(0, 0, 1.0),), (Tap(1, 0, 1.0),)),
            (Exit(0, 0, scales[0]), Exit(1, 0, scales[1])),
        )
        borders = (BORDERS["zero"],) * (2 if back else 1)
        rows, inner, planes = workload.rows, workload.columns, workload.planes
        pairs = (rows + 1) // 2
        split = KernelSpec(back, Axis(copies, borders), None, 1, spec.source, spec.result)
        kernel = naive.emit(split, dialect)
        extents: tuple[int, ...] = (rows, *line.counts, pairs, inner, planes)
        launches = launches_of(kernel, -(-inner * pairs * planes // kernel.items), workload.views, extents)
        if back:  # Both sequences are interleaved in the samples.
            view, (plane, row) = workload.views["x"]
            halves = [(view._replace(offset=view.offset + k * row), (plane, 2 * row)) for k in (0, 1)]
        else:
            halves = [workload.views["a"], workload.views["d"]]
        for step in reversed(line.steps) if back else line.steps:
            target_band, other = step.target, 1 - step.target
            # Forward, the bands were scaled before the steps.
            ratio = -1.0 if back else scales[target_band] / scales[other]
            kernel = stepwise.emit(
                spec.result,
                tuple(ratio * factor for factor in step.factors),
                tuple(step.offsets.tolist()),
                (step.rounded.undone() if back else step.rounded) if rounded else None,
                LWT_BORDERS[line.mode][other],
                dialect,
                back,
            )
            count = line.counts[target_band]
            extents = (rows, count, line.counts[other], inner, planes)
            views = {"a": halves[other], "d": halves[target_band]}
            launches += launches_of(kernel, -(-inner * count * planes // kernel.items), views, extents)
        return launches


STEPWISE = Stepwise()
