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
from .sources import ChunkedArray
from .stages import axis_windows, line_transforms

__all__ = [
    "PLANS",
    "PlanStage",
    "StageCost",
    "aligned_blocks",
    "chosen_stages",
    "divided_stages",
    "total_cost",
]

PLANS = ("auto", "fused", "level")
MIN_PAIRED_CHUNKS = 32  # With fewer chunks, workers might be idle.

# Rough figures of one worker, to compare plans by.
TRANSFORM_RATE = 2e9  # bytes of samples and coefficients per second
TRANSFER_RATE = 5e8  # bytes per second between workers
TASK_SECONDS = 5e-4  # time of the scheduler and of a worker for a task


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
        Bytes of the largest task: its chunks, its window and its results.
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
    candidates = {
        "fused": [[tree.levels]],
        "level": [[1] * tree.levels],
        "auto": [[*[1] * k, *([tree.levels - k] if tree.levels > k else [])] for k in range(tree.levels)],
    }[plan]
    plans = [divided_stages(tree, source, dtype, depths) for depths in candidates]
    return min(plans, key=lambda stages: total_cost(stages).seconds)


def divided_stages(
    tree: BandTree, source: ChunkedArray, dtype: np.dtype[Any], depths: Sequence[int]
) -> list[PlanStage]:
    """Return stages of so many levels each."""
    boundaries: Sequence[Sequence[int]] = _paired(tree.spec, source)
    lengths = [_usual_length(places) for places in boundaries]
    chunks = [len(places) - 1 for places in source.boundaries]
    stages, first, itemsize = [], 0, source.dtype.itemsize
    for depth in depths:
        part = BandTree(tree.spec, tree.sample_shapes[first : first + depth])
        blocks = aligned_blocks(tree.spec, boundaries, depth)
        last = first + depth == tree.levels
        stages.append(PlanStage(part, blocks, _cost(part, blocks, chunks, itemsize, dtype.itemsize, last)))
        lines = line_transforms(part)
        approximation = [
            places
            if line is None
            else [line.results(depth, False, 0, place)[1] if place else 0 for place in places]
            for line, places in zip(lines, blocks, strict=True)
        ]
        chunks = [len(places) - 1 for places in approximation]
        boundaries = [
            places if line is None else merged_boundaries(places, length)
            for line, places, length in zip(lines, approximation, lengths, strict=True)
        ]
        first, itemsize = first + depth, dtype.itemsize
    return stages


def _cost(
    tree: BandTree,
    blocks: list[list[int]],
    chunks: Sequence[int],
    itemsize: int,
    result_size: int,
    last: bool,
) -> StageCost:
    lengths = [
        [window.length for window in axis_windows(line, places)]
        for line, places in zip(line_transforms(tree), blocks, strict=True)
    ]
    useful, samples = prod(tree.sample_shapes[0]), prod(map(sum, lengths))
    count = prod(map(len, lengths))
    # Each block selects its details, and its approximation for the next stage or as a result.
    selected = tree.levels * (len(tree.spec.keys) - 1) + 1
    halo = (samples - useful) * itemsize
    tasks = count * (1 + selected) + (prod(chunks) if halo else 0)
    computed = samples * (itemsize + 2 * result_size)
    # Workers that have most of the approximations of a block get it, so that few are sent.
    sent = halo + (0 if last else prod(tree.approximation_shape) * result_size // 8)
    seconds = computed / TRANSFORM_RATE + sent / TRANSFER_RATE + tasks * TASK_SECONDS
    peak = prod(map(max, lengths)) * (2 * itemsize + result_size)
    return StageCost(count, tasks, halo, samples / useful - 1, peak, seconds)


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


def _paired(spec: TransformSpec, source: ChunkedArray) -> list[Sequence[int]]:
    """Return where blocks begin: two chunks each where there are many, which halves the number of tasks."""
    boundaries: list[Sequence[int]] = list(source.boundaries)
    axis = max(spec.axes, key=lambda axis: len(boundaries[axis]))
    if prod(map(len, source.chunks)) >= MIN_PAIRED_CHUNKS:
        places = boundaries[axis]
        boundaries[axis] = [*places[:-1:2], places[-1]]
    return boundaries


def _usual_length(places: Sequence[int]) -> int:
    """Return the median length of blocks."""
    lengths = sorted(stop - start for start, stop in pairwise(places))
    return lengths[len(lengths) // 2]
