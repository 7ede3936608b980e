"""Whole transforms as programs: all levels, forward and back, for arrays of one shape.

Buffers are numbered: the samples, the approximation, then the details of each level, coarsest first, in the
order of their keys. What lies between two levels is the program's own, in rows padded so that they are read
and written in wide pieces; it is never copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...errors import ArgumentError
from ...plans.mixing import Mixing, Unmixing
from ..clike import Dialect, Kernel
from ..strides import contiguous
from .launches import Knobs, Limits, Program, Ref, Task
from .program import Builder

__all__ = ["Layout", "Options", "Stage", "transform"]

PAD = 8  # elements
LONGEST = 2**30  # samples along an axis: twice their number still is an int

Shape = tuple[int, ...]


class Layout(NamedTuple):
    """How an array lies in its buffer: strides and start in elements, alignment in bytes."""

    shape: Shape
    strides: Shape
    dtype: str
    start: int = 0
    alignment: int = 16

    @staticmethod
    def whole(shape: Shape, dtype: str, alignment: int = 16) -> Layout:
        """Of an array in one piece."""
        return Layout(shape, contiguous(shape), dtype, 0, alignment)

    def at(self, buffer: int) -> Ref:
        """The array in a buffer."""
        return Ref(buffer, *self)


@dataclass(frozen=True, eq=False)
class Stage:
    """One level: what is done along which axes, and the shapes of the bands by key, approximation first."""

    shape: Shape
    tasks: tuple[Task, ...]
    shapes: dict[str, Shape]


AUTO = Knobs()


@dataclass(frozen=True)
class Options:
    """How a transform is to be laid over a device.

    ``rule`` is for details on the way back, by limits in one more buffer behind those of the coefficients:
    for each level, finest first, a first and a second one of each band; and so on for the next plane, where
    ``each`` has its own.
    """

    strategy: str = "auto"
    scheme: str = "auto"
    method: str = "auto"
    knobs: Knobs = AUTO
    mixing: Mixing | None = None
    unmixing: Unmixing | None = None
    rule: str | None = None
    each: bool = False


def transform(
    back: bool,
    stages: Sequence[Stage],
    samples: Layout,
    coefficients: Sequence[Layout | None],
    dialect: Dialect,
    limits: Limits,
    options: Options,
    capacity: Callable[[Kernel], int] | None = None,
) -> Program:
    """The program of a transform.

    Parameters
    ----------
    back : bool
    stages : sequence of Stage
        Finest first.
    samples : Layout
        Of the shape of the first stage, or smaller: then zeros are put around them.
    coefficients : sequence of Layout
        In the order of their buffers, from number 1 on; on the way back, None for zeros.
    """
    builder = Builder(
        dialect,
        limits,
        1 + len(coefficients) + (options.rule is not None),
        options.strategy,
        options.scheme,
        options.method,
        options.knobs,
        capacity,
    )
    refs: list[Ref | None] = [
        None if layout is None else layout.at(number) for number, layout in enumerate(coefficients, 1)
    ]
    each = len(stages[0].shapes) - 1
    dtype = next(layout.dtype for layout in coefficients if layout is not None)
    if max(stages[0].shape, default=0) >= LONGEST:
        raise ArgumentError(f"kernels count to 2³⁰ along an axis, got shape {stages[0].shape}")
    levels = []
    x = given = samples.at(0)
    if samples.shape != stages[0].shape:
        # Samples in the corner of a larger array.
        x = builder.memory(stages[0].shape, samples.dtype) if back else builder.padded(x, stages[0].shape)
    whole = x
    between: Ref | None
    for number, stage in enumerate(stages):
        place = 1 + each * (len(stages) - 1 - number)
        keys = list(stage.shapes)
        bands: dict[str, Ref | None] = dict(zip(keys[1:], refs[place : place + each], strict=True))
        if number == len(stages) - 1:
            between = refs[0]
        else:
            shape = stage.shapes[keys[0]]
            wide = all(
                builder.in_one_pass(shape, other.tasks, dtype) for other in (stage, stages[number + 1])
            )
            between = builder.memory(shape, dtype, PAD if wide else 1)
        bands[keys[0]] = between
        levels.append((x, stage.tasks, bands))
        if between is not None:
            x = between
    numbered = list(enumerate(levels))
    for number, (x, tasks, bands) in reversed(numbered) if back else numbered:
        mixing, unmixing = (None, options.unmixing) if back else (options.mixing, None)
        colors = (mixing, unmixing) if x is whole else (None, None)
        rule = _limits(options, len(coefficients), number, each, len(stages))
        builder.level(back, x, tasks, bands, colors, rule)
    if back and whole is not given:
        builder.copy(whole, given)
    return builder.program()


def _limits(
    options: Options, coefficients: int, number: int, each: int, levels: int
) -> tuple[str, Ref, int] | None:
    """The rule for details of a level, where its limits are, and how far those of the next plane are."""
    if options.rule is None:
        return None
    size = 2 * each
    ref = Ref(1 + coefficients, (size,), (1,), "float32", number * size)
    return options.rule, ref, levels * size if options.each else 0
