"""Plans: how the levels of a chunked transform are divided into stages, and what that costs.

A stage of several levels needs no results of other blocks in between, but wider halos, which several blocks
compute. A stage for each level has narrow halos, and sends approximations from one stage to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ...lowering.spec import BandTree, TransformSpec
from ...lowering.windows import aligned_boundaries, merged_boundaries
from .blocks import STRIPE_BYTES
from .lines import axis_blocks, line_transforms
from .sources import ChunkedArray
from .undecimated import undecimated_levels

__all__ = [
    "PLANS",
    "PlanStage",
    "StageCost",
    "aligned_blocks",
    "chosen_stages",
    "divided_stages",
    "total_cost",
    "undecimated_stages",
]

PLANS = ("auto", "fused", "level")
BLOCK_BYTES = 1 << 27  # Chunks that are smaller are transformed several at a time, as long as
MIN_BLOCKS = 8  # there are so many blocks, so that no worker is idle.

# Rough figures of one worker, to compare plans by.
TRANSFORM_RATE = 6e9  # bytes of samples and coefficients per second
TRANSFER_RATE = 5e8  # bytes per second between workers
TASK_SECONDS = 1e-3  # time of the scheduler and of a worker for a task


@dataclass(frozen=True)
class StageCost:
    """What a stage costs.

    Parameters
    ----------
    blocks, tasks : int
        Blocks, and all tasks, with those that cut out and select parts.
    halo_bytes : int
        Bytes that blocks get from chunks of other blocks.
    redundant : float
        Share of the samples that several blocks transform.
    peak_bytes : int
        Bytes of the largest task: its chunks, what it holds of its window at a time, and its results.
    seconds : float
        Rough time of one worker.
    """

    blocks: int
    tasks: int
    halo_bytes: int
    redundant: float
    peak_bytes: int
    seconds: float


@dataclass(frozen=True)
class PlanStage:
    """Some levels of a transform, where its blocks begin and end along each axis, and its cost."""

    tree: BandTree
    blocks: list[list[int]]
    cost: StageCost


def chosen_stages(tree: BandTree, source: ChunkedArray, dtype: np.dtype[Any], plan: str) -> list[PlanStage]:
    """Return the stages of a plan; for ``auto``, those that take the least time."""
    levels = tree.levels
    candidates = {
        "fused": [[levels]],
        "level": [[1] * levels],
        "auto": [
            *([*[1] * k, levels - k] for k in range(levels)),
            *([depth, levels - depth] for depth in range(2, levels)),
        ],
    }[plan]
    plans = [divided_stages(tree, source, dtype, depths) for depths in candidates]
    return min(plans, key=lambda stages: total_cost(stages).seconds)


def divided_stages(
    tree: BandTree, source: ChunkedArray, dtype: np.dtype[Any], depths: Sequence[int]
) -> list[PlanStage]:
    """Return stages of so many levels each."""
    boundaries: Sequence[Sequence[int]] = _grouped(tree.spec, source, dtype.itemsize)
    lengths = [_usual_length(places) for places in boundaries]
    stages, first, itemsize = [], 0, source.dtype.itemsize
    for depth in depths:
        part = BandTree(tree.spec, tree.sample_shapes[first : first + depth])
        blocks = aligned_blocks(tree.spec, boundaries, depth)
        lines = line_transforms(part)
        windows = [
            [block.window.length for block in axis_blocks(line, places, False)]
            for line, places in zip(lines, blocks, strict=True)
        ]
        # Workers that have most of the approximations of a block get it, so that few are sent.
        last = first + depth == tree.levels
        sent = 0 if last else prod(part.approximation_shape) * dtype.itemsize // 8
        stages.append(PlanStage(part, blocks, _cost(part, windows, itemsize, dtype.itemsize, sent)))
        approximation = [
            places
            if line is None
            else [line.results(depth, False, 0, place)[1] if place else 0 for place in places]
            for line, places in zip(lines, blocks, strict=True)
        ]
        boundaries = [
            places if line is None else merged_boundaries(places, length)
            for line, places, length in zip(lines, approximation, lengths, strict=True)
        ]
        first, itemsize = first + depth, dtype.itemsize
    return stages


def undecimated_stages(tree: BandTree, source: ChunkedArray, dtype: np.dtype[Any]) -> list[PlanStage]:
    """Return the stages of an undecimated transform: one for each level, with the blocks of the chunks."""
    stages, itemsize = [], source.dtype.itemsize
    for number, level in enumerate(undecimated_levels(tree, source.boundaries, dtype)):
        part = BandTree(level.spec, tree.sample_shapes[number : number + 1])
        # The next stage has a block where this one has, and its approximation stays there.
        cost = _cost(part, level.window_lengths, itemsize, dtype.itemsize, 0)
        stages.append(PlanStage(part, list(map(list, level.boundaries)), cost))
        itemsize = dtype.itemsize
    return stages


def _cost(tree: BandTree, lengths: list[list[int]], itemsize: int, result_size: int, sent: int) -> StageCost:
    """Return the cost of a stage.

    Parameters
    ----------
    tree : BandTree
    lengths : list of list of int
        Samples of the windows of blocks along each axis.
    itemsize, result_size : int
        Bytes of a sample and of a coefficient.
    sent : int
        Bytes of approximations that are sent to the next stage.
    """
    useful, samples = prod(tree.sample_shapes[0]), prod(map(sum, lengths))
    count = prod(map(len, lengths))
    # Each block cuts out its rims, and selects its details, and its approximation for the next stage or as a
    # result.
    bands = len(tree.spec.keys)
    selected = tree.levels * (bands - 1) + 1
    halo = max(0, samples - useful) * itemsize
    tasks = count * (1 + selected + bool(halo))
    # Without decimation, each band has as many coefficients as there are samples.
    results = result_size * (bands if tree.spec.family == "swt" else 1)
    seconds = (
        samples * (itemsize + 2 * results) / TRANSFORM_RATE
        + (halo + sent) / TRANSFER_RATE
        + tasks * TASK_SECONDS
    )
    window = prod(map(max, lengths))
    joined = window * itemsize
    if tree.spec.family != "swt":  # A stripe at a time is joined, and the approximation is kept.
        joined = min(joined, STRIPE_BYTES) + (tree.levels > 1) * window * result_size // bands
    peak = window * (itemsize + results) + joined
    return StageCost(count, tasks, halo, max(0.0, samples / useful - 1), peak, seconds)


def total_cost(stages: Sequence[PlanStage]) -> StageCost:
    """Return the cost of all stages."""
    costs = [stage.cost for stage in stages]
    useful = [prod(stage.tree.sample_shapes[0]) for stage in stages]
    redundant = sum(cost.redundant * size for cost, size in zip(costs, useful, strict=True)) / sum(useful)
    return StageCost(
        sum(cost.blocks for cost in costs),
        sum(cost.tasks for cost in costs),
        sum(cost.halo_bytes for cost in costs),
        redundant,
        max(cost.peak_bytes for cost in costs),
        sum(cost.seconds for cost in costs),
    )


def aligned_blocks(spec: TransformSpec, boundaries: Sequence[Sequence[int]], depth: int) -> list[list[int]]:
    """Return where blocks of a stage begin along each axis: near boundaries of chunks."""
    return [
        aligned_boundaries(places, 1 << depth) if axis in spec.axes else list(places)
        for axis, places in enumerate(boundaries)
    ]


def _grouped(spec: TransformSpec, source: ChunkedArray, itemsize: int) -> list[Sequence[int]]:
    """Return where blocks begin: several small chunks each where there are many, which saves tasks.

    These chunks are neighbours along one axis. If it is the first one, they are on the same worker whether
    workers got the chunks in turn, row by row, or a part of the rows each.
    """
    boundaries: list[Sequence[int]] = list(source.boundaries)
    axis = max(spec.axes, key=lambda axis: len(boundaries[axis]))
    size = max(1, prod(map(_usual_length, boundaries))) * max(itemsize, source.dtype.itemsize)
    most = min(BLOCK_BYTES // size, prod(map(len, source.chunks)) // MIN_BLOCKS)
    if most > 1:
        places = boundaries[axis]
        chunks = len(places) - 1
        groups = -(-chunks // most)
        boundaries[axis] = [places[chunks * number // groups] for number in range(groups + 1)]
    return boundaries


def _usual_length(places: Sequence[int]) -> int:
    """Return the median length of blocks."""
    lengths = sorted(stop - start for start, stop in pairwise(places))
    return lengths[len(lengths) // 2]
