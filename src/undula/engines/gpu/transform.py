"""Programs of complete transforms: all levels, forward or inverse, for arrays of one shape.

Buffers are numbered: the samples, the approximation, then the details of each level from coarse to fine, in
the order of their keys. Approximations between levels are scratch arrays, with padded rows so that they are
accessed in wide words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ...arrays import COMPLEX, ArrayView
from ...errors import ArgumentError
from ...lowering.adjoints import plain_operator
from ...lowering.nesting import details_by_level
from ...lowering.spec import BandTree, Task
from ..base import Knobs, TransformOptions
from .batched_levels import append_batched_levels
from .batches import batch_parts
from .builder import ProgramBuilder
from .emit import Dialect
from .launches import PAD_ELEMENTS, DeviceLevel, DeviceLimits, DeviceProgram
from .strategies import STRATEGIES, Strategy, Target
from .strategies.base import LIFTING

__all__ = [
    "append_levels",
    "builder_target",
    "check_lengths",
    "device_levels",
    "transform_program",
]

MAX_LENGTH = 2**30  # samples along an axis; kernels compute twice that number as an int

Shape = tuple[int, ...]


DEFAULT_KNOBS = Knobs()


def transform_program(
    back: bool,
    levels: Sequence[DeviceLevel],
    samples: ArrayView,
    coefficients: Sequence[ArrayView | None],
    dialect: Dialect,
    limits: DeviceLimits,
    options: TransformOptions,
) -> DeviceProgram:
    """Build the program of a transform.

    Parameters
    ----------
    back : bool
        Whether to compute samples from coefficients.
    levels : sequence of DeviceLevel
        From fine to coarse.
    samples : ArrayView
        In buffer 0, of the shape of the first level, or smaller; then the samples are padded with zeros.
    coefficients : sequence of ArrayView or None
        In the order of their buffers, which are numbered from 1; for the inverse, None stands for zeros.
    dialect : Dialect
    limits : DeviceLimits
    options : TransformOptions
    """
    check_lengths(levels[0].shape)
    buffers = 1 + len(coefficients) + (options.rule is not None)
    builder = ProgramBuilder(*builder_target(dialect, limits, options), buffers)
    plain = options.rule is None and options.mixing is None and options.unmixing is None
    arrays = levels, samples, list(coefficients)
    if plain and append_batched_levels(builder, back, *arrays):
        return builder.program()
    for part in batch_parts(*arrays) if plain else [arrays]:
        builder.reuse_scratch()
        append_levels(builder, back, *part, options)
    return builder.program()


def check_lengths(shape: Shape) -> None:
    """Raise an error for samples of a shape that kernels cannot count."""
    if max(shape, default=0) >= MAX_LENGTH:
        raise ArgumentError(f"kernels count to 2³⁰ along an axis, got shape {shape}")


def builder_target(
    dialect: Dialect, limits: DeviceLimits, options: TransformOptions
) -> tuple[Strategy, Target]:
    """Return the strategy and the target of a builder."""
    target = Target(dialect, limits, options.scheme, options.method, options.knobs or DEFAULT_KNOBS)
    return STRATEGIES[options.strategy], target


def append_levels(
    builder: ProgramBuilder,
    back: bool,
    levels: Sequence[DeviceLevel],
    samples: ArrayView,
    coefficients: Sequence[ArrayView | None],
    options: TransformOptions,
) -> None:
    """Append the levels of a transform to a program; the arguments are those of :func:`transform_program`."""
    count = len(levels[0].shapes) - 1  # detail bands of each level
    details = details_by_level(coefficients[1:], count)[::-1]  # finest first
    dtype = next(view.dtype for view in coefficients if view is not None)
    work = []  # The samples, tasks, bands and adjoints of each level.
    x = samples
    if samples.shape != levels[0].shape:
        x = builder.allocate(levels[0].shape, samples.dtype) if back else builder.padded(x, levels[0].shape)
    padded = x
    approximation: ArrayView | None
    for number, level in enumerate(levels):
        keys = list(level.shapes)
        bands: dict[str, ArrayView | None] = dict(zip(keys[1:], details[number], strict=True))
        if number == len(levels) - 1:
            approximation = coefficients[0]
        else:
            shape = level.shapes[keys[0]]
            in_rows = all(
                builder.in_one_pass(shape, part.tasks, dtype) for part in (level, levels[number + 1])
            )
            approximation = builder.allocate(shape, dtype, PAD_ELEMENTS if in_rows else 1)
        bands[keys[0]] = approximation
        work.append((x, level.tasks, bands, level.adjoints))
        if approximation is not None:
            x = approximation
    numbered = list(enumerate(work))
    for number, (x, tasks, bands, adjoints) in reversed(numbered) if back else numbered:
        mixing, unmixing = (None, options.unmixing) if back else (options.mixing, None)
        colors = (mixing, unmixing) if x is padded else (None, None)
        rule = _limits(options, len(coefficients), number, count, len(levels))
        builder.level(back, x, tasks, bands, colors, rule, adjoints)
    if back and padded is not samples:
        builder.copy(padded, samples)


def _limits(
    options: TransformOptions, coefficients: int, number: int, count: int, levels: int
) -> tuple[str, ArrayView, int] | None:
    """Return the rule for the details of a level, its limits, and their stride from plane to plane."""
    if options.rule is None:
        return None
    size = 2 * count
    view = ArrayView(1 + coefficients, (size,), (1,), "float32", number * size)
    return options.rule, view, levels * size if options.each else 0


@lru_cache(maxsize=512)
def device_levels(tree: BandTree, dtype: str) -> tuple[DeviceLevel, ...]:
    """Return the levels of a transform, finest first; complex numbers are pairs along one more axis."""
    pair = (2,) if dtype in COMPLEX else ()
    real = COMPLEX.get(dtype, dtype)
    precision = np.dtype("float32" if real == "float16" else real)
    spec, levels = tree.spec, []
    for number, (shape, operators) in enumerate(tree.operators(precision, LIFTING)):
        bands = {key: (*s, *pair) for key, s in spec.at_level(number).band_shapes(shape).items()}
        adjoints = operators if spec.dual else ()
        if adjoints:
            operators = tuple(Task(axis, plain_operator(op, precision, LIFTING)) for axis, op in operators)
        levels.append(DeviceLevel((*shape, *pair), operators, bands, adjoints))
    return tuple(levels)
