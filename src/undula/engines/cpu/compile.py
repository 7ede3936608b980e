"""From a transform to an executable: the levels in order, fused in pairs, axes split where there are many.

One axis, or two neighbouring ones, are worked on at once; where there are more, the first is split off and
its two bands are worked on in turn. Complex numbers are pairs of real ones beside each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from ...arrays import ArrayView
from ...lowering.adjoints import differs_at_ends, fold_of, plain_operator
from ...lowering.axis import AxisOp
from ...lowering.choose import LiftingLimits
from ...lowering.mixing import Mixing, RowFragments
from ...lowering.nesting import details_by_level
from ...lowering.spec import LevelOperators, Operators, Task
from .adjoints import AdjointPass, FoldedPass
from .executable import TEMPORARY_BUFFER, CpuExecutable, ExecutableStep, address
from .mixing import fragments_table, mixing_table
from .passes import AxisPass, PlaneStrides, fused_calls, fused_scratch, fusible
from .undecimated import UndecimatedPass

__all__ = [
    "LIFTING",
    "compile_rows",
    "compile_transform",
    "kernel_operators",
    "level_passes",
    "mixes",
    "ordered_bands",
    "reads_fragments",
]

# Kernels take up to two pairs of steps between neighbours; longer liftings do as much work as filters.
LIFTING = LiftingLimits(max_steps=4, max_taps=12, neighbours=True)

Shape = tuple[int, ...]
Views = Sequence[ArrayView | None]
Source = ArrayView | PlaneStrides


@dataclass(frozen=True)
class _Split:
    """The first axis apart from all others: its two bands have shapes of their own."""

    first: Any
    shapes: Sequence[Shape]
    rest: Sequence[Any]


@dataclass(frozen=True)
class LevelPasses:
    """What is done at one level, and in which order its bands stand.

    ``bands[k]`` is the number, in the order of the caller's keys, of band ``k`` in the order of the work.
    """

    work: Any
    bands: tuple[int, ...]


def _work(
    back: bool, shape: Shape, dtype: np.dtype[Any], operators: Operators, adjoints: Sequence[AxisOp] = ()
) -> Any:
    """Return the work along some axes; ``adjoints`` are those whose plain operators are given."""
    axis, op = operators[0]
    neighbours = (
        len(operators) == 2
        and operators[1].axis == axis + 1
        and "steps" not in (op.method, operators[1].op.method)
    )
    joined = 2 if neighbours else 1  # axes that are worked on at once
    work = _plain_pass(back, shape, dtype, axis, [task.op for task in operators[:joined]])
    if any(differs_at_ends(adjoint.inverse() if back else adjoint) for adjoint in adjoints[:joined]):
        folds = [fold_of(adjoint.inverse()) for adjoint in adjoints[:joined]] if back else []
        known = [fold for fold in folds if fold is not None]
        if len(known) < joined or not isinstance(work, AxisPass) or work.kind == "lines":
            work = AdjointPass(work, back, shape, dtype, axis, adjoints[:joined])
        else:
            ops = [task.op for task in operators[:joined]]
            work = FoldedPass(AxisPass(back, shape, dtype, axis, ops, known), known[0])
    if joined == len(operators):
        return work
    shapes = [(*shape[:axis], count, *shape[axis + 1 :]) for count in op.counts]
    rest = [
        _work(back, part, dtype, operators[1:], adjoints[1:]) if 0 not in part else None for part in shapes
    ]
    return _Split(work, shapes, rest)


def _plain_pass(
    back: bool, shape: Shape, dtype: np.dtype[Any], axis: int, operators: Sequence[AxisOp]
) -> Any:
    if operators[0].family == "swt":
        return UndecimatedPass(back, shape, dtype, axis, operators)
    if operators[0].method != "steps":
        return AxisPass(back, shape, dtype, axis, operators)
    from .stepwise import StepwisePass

    return StepwisePass(back, shape, dtype, axis, operators[0])


def kernel_operators(operators: Operators) -> Operators:
    """Return the operators along the axes of a level as kernels run them.

    The kernels for planes run two neighbouring axes, the last ones, both by lifting or both by filters.
    """
    last = sorted(operators)[-2:]
    axes, methods = [axis for axis, _ in last], {op.method for _, op in last}
    if axes[0] + 1 != axes[-1] or methods != {"lifting", "filters"}:
        return operators
    return tuple(Task(axis, op.filtered() if axis in axes else op) for axis, op in operators)


@lru_cache(maxsize=1024)
def level_passes(back: bool, shape: Shape, dtype: np.dtype[Any], operators: Operators) -> LevelPasses:
    """Return the work of one level of real samples."""
    adjoints = [task.op for task in operators if task.op.transposed]
    if adjoints:
        operators = tuple(Task(axis, plain_operator(op, dtype, LIFTING)) for axis, op in operators)
    operators = kernel_operators(operators)
    order = list(range(len(operators)))
    if dtype.kind == "f":  # Rounding makes the order of integer steps matter.
        order.sort(key=lambda k: operators[k][0])
    count = len(order)
    bands = []
    for letters in product((0, 1), repeat=count):
        number = 0
        for place, letter in zip(order, letters, strict=True):
            number |= letter << (count - 1 - place)
        bands.append(number)
    ordered = tuple(operators[k] for k in order)
    work = _work(back, shape, dtype, ordered, [adjoints[k] for k in order] if adjoints else [])
    return LevelPasses(work, tuple(bands))


class _Builder:
    """Steps of an executable, and the intermediate results between them."""

    def __init__(self, back: bool, dtype: np.dtype[Any], start: int = 0) -> None:
        self.back, self.dtype = back, dtype
        self.steps: list[ExecutableStep] = []
        self.tables: list[Any] = []
        self.end = self.transform_bytes = start

    def temporary(self, shape: Shape) -> ArrayView:
        """Return a new intermediate result."""
        view = ArrayView.contiguous(TEMPORARY_BUFFER, shape, self.dtype.name, self.end // self.dtype.itemsize)
        self.end += -(-math.prod(shape) * self.dtype.itemsize // 64) * 64
        self.transform_bytes = max(self.transform_bytes, self.end)
        return view

    def add(self, work: Any, x: Source, bands: Views, mix: int = 0) -> None:
        """Add the work of a level, or of some of its axes."""
        if isinstance(work, AxisPass):
            views = tuple(bands)
            work.check(x, *views)
            self.steps.append(
                ExecutableStep(
                    work.samples, work.scratch_bytes, lambda threads: work.calls(x, views, threads, mix)
                )
            )
            return
        assert isinstance(x, ArrayView)
        if isinstance(work, (AdjointPass, FoldedPass)):
            end = self.end
            self.add(work.plain, x, bands)
            self.steps += work.steps(x, bands, self.temporary)
            self.end = end
        elif isinstance(work, UndecimatedPass):
            self._add_undecimated(work, x, tuple(bands))
        elif isinstance(work, _Split):
            self._add_split(work, x, bands)
        else:
            self.steps.append(ExecutableStep(math.prod(x.shape), function=work, views=(x, *bands)))

    def _add_undecimated(self, work: UndecimatedPass, x: ArrayView, bands: Views) -> None:
        work.check(x, *bands)
        rim = None
        if work.rim_shape is not None:
            rim = self.temporary(work.rim_shape)
            self.steps.append(ExecutableStep(work.samples, function=work.fill_rim, views=(rim, x)))
        self.steps.append(
            ExecutableStep(
                work.samples, work.scratch_bytes, lambda threads: work.calls(x, bands, rim, threads)
            )
        )

    def _add_split(self, work: _Split, x: ArrayView, bands: Views) -> None:
        end, half = self.end, len(bands) // 2
        halves = [bands[:half], bands[half:]]
        parts: list[ArrayView | None] = [self.temporary(shape) for shape in work.shapes]
        if not self.back:
            self.add(work.first, x, parts)
        for k, (part, group, rest) in enumerate(zip(parts, halves, work.rest, strict=True)):
            if rest is None or part is None:
                continue
            if self.back and all(band is None for band in group):
                parts[k] = None
            else:
                self.add(rest, part, group)
        if self.back:
            self.add(work.first, x, parts)
        self.end = end  # What follows may use this memory again.

    def add_fused(
        self, first: AxisPass, second: AxisPass, x: Source, bands: Views, others: Views, mix: int = 0
    ) -> None:
        """Add two levels forward at once."""
        views, more = tuple(bands), tuple(others)
        first.check(x, *views)
        second.check(*more)
        _, _, scratch = fused_scratch(first, second)
        self.steps.append(
            ExecutableStep(
                first.samples,
                scratch,
                lambda threads: fused_calls(first, second, x, views, more, threads, mix),
            )
        )

    def executable(self, arrays: int) -> CpuExecutable:
        """Return the executable of all steps."""
        return CpuExecutable(self.dtype, self.steps, arrays, self.transform_bytes, self.tables)


def compile_transform(
    back: bool,
    dtype: np.dtype[Any],
    levels: Sequence[LevelOperators],
    arrays: Sequence[ArrayView | None],
    mixing: Mixing | RowFragments | None = None,
    start: int = 0,
) -> CpuExecutable:
    """Compile some levels of a transform.

    Parameters
    ----------
    back : bool
        Whether to compute samples from coefficients.
    dtype : dtype
        Dtype of samples and coefficients.
    levels : sequence of LevelOperators
        The levels, finest first.
    arrays : sequence of ArrayView or None
        The samples, the approximation, and the details, coarsest level first, in the order of their keys;
        None for details, or an approximation, that are zero.
    mixing : Mixing or RowFragments, optional
        Forward: the first array is an image ``(H, W, C)``, and its channels are mixed to planes ``(P, H, W)``
        row by row, as the first level needs them. Or it has the addresses ``(P, H, fragments)`` of the
        fragments of all rows of planes.
    start : int, default 0
        The first byte for intermediate results.
    """
    if dtype.kind == "c":
        dtype = np.empty(0, dtype).real.dtype
        arrays = [None if view is None else view.as_pairs() for view in arrays]
        levels = [LevelOperators((*shape, 2), operators) for shape, operators in levels]
    builder = _Builder(back, dtype, start)
    x, approximation, *details = arrays
    assert x is not None
    of_level = _finest_first(details, levels)
    passes = [level_passes(back, shape, dtype, operators) for shape, operators in levels]
    if back:
        _add_levels_back(builder, x, approximation, of_level, levels, passes)
        return builder.executable(len(arrays))
    assert approximation is not None
    source: Source = x
    mix = 0
    if mixing is not None:
        if isinstance(mixing, RowFragments):
            table = fragments_table(mixing)
            source = PlaneStrides(x.buffer, 0, *x.byte_strides[:2])
        else:
            table = mixing_table(mixing, x.itemsize, dtype.kind == "f")
            source = PlaneStrides(x.buffer, 0, 0, x.byte_strides[0])
        builder.tables.append(table)
        mix = address(table)
    _add_levels(builder, source, approximation, of_level, levels, passes, mix)
    return builder.executable(len(arrays))


def reads_fragments(dtype: np.dtype[Any], shape: Shape, operators: Operators) -> bool:
    """Return whether the first level can read rows in fragments."""
    if dtype.kind == "c":
        dtype, shape = np.empty(0, dtype).real.dtype, (*shape, 2)
    work = level_passes(False, shape, dtype, operators).work
    return isinstance(work, AxisPass) and work.reads_fragments


def mixes(dtype: np.dtype[Any], shape: Shape, operators: Operators) -> bool:
    """Return whether the first level can mix its planes from the channels of an image, row by row."""
    work = level_passes(False, shape, dtype, operators).work
    return isinstance(work, AxisPass) and work.kind == "planes" and work.channels == 1 and work.lifted


def compile_rows(
    back: bool,
    dtype: np.dtype[Any],
    level: LevelOperators,
    arrays: Sequence[ArrayView | None],
    begin: int,
    end: int,
) -> CpuExecutable:
    """Compile some rows of one level of images, in arrays of results that begin with the first of them."""
    shape, operators = level
    if dtype.kind == "c":
        dtype = np.empty(0, dtype).real.dtype
        arrays = [None if view is None else view.as_pairs() for view in arrays]
        shape = (*shape, 2)
    passes = level_passes(back, shape, dtype, operators)
    work, x = passes.work, arrays[0]
    assert isinstance(work, AxisPass)
    assert x is not None
    bands = ordered_bands(passes, arrays[1], arrays[2:])
    step = ExecutableStep(
        work.samples, work.scratch_bytes, lambda threads: work.row_calls(x, bands, begin, end, threads)
    )
    return CpuExecutable(dtype, [step], len(arrays))


def _finest_first(details: Views, levels: Sequence[LevelOperators]) -> Sequence[Views]:
    _, operators = levels[0]
    return details_by_level(details, 2 ** len(operators) - 1)[::-1]


def ordered_bands(passes: LevelPasses, low: ArrayView | None, details: Views) -> list[ArrayView | None]:
    """Return the bands of a level in the order of the work."""
    views = [low, *details]
    return [views[number] for number in passes.bands]


def _add_levels(
    builder: _Builder,
    x: Source,
    approximation: ArrayView,
    details: Sequence[Views],
    levels: Sequence[LevelOperators],
    passes: Sequence[LevelPasses],
    mix: int = 0,
) -> None:
    """Add the levels forward; ``mix`` is the address of the table by which the first makes its samples."""
    count, number = len(levels), 0

    def low_of(k: int) -> ArrayView:
        return approximation if k == count - 1 else builder.temporary(levels[k + 1][0])

    while number < count:
        this = passes[number]
        if number + 1 < count and fusible(this.work, passes[number + 1].work):
            after = passes[number + 1]
            low = low_of(number + 1)
            others = ordered_bands(after, low, details[number + 1])
            builder.add_fused(
                this.work, after.work, x, ordered_bands(this, None, details[number]), others, mix
            )
            number += 2
        else:
            low = low_of(number)
            builder.add(this.work, x, ordered_bands(this, low, details[number]), mix)
            number += 1
        x, mix = low, 0


def _add_levels_back(
    builder: _Builder,
    x: ArrayView,
    approximation: ArrayView | None,
    details: Sequence[Views],
    levels: Sequence[LevelOperators],
    passes: Sequence[LevelPasses],
) -> None:
    low = approximation
    for number in reversed(range(len(levels))):
        if low is None and all(band is None for band in details[number]):
            continue
        target = x if number == 0 else builder.temporary(levels[number][0])
        builder.add(passes[number].work, target, ordered_bands(passes[number], low, details[number]))
        low = target
