"""Moves as tasks: rows of samples that stay beside each other are copied."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...lowering.graph import Move
from .executable import SCRATCH_BUFFER, KernelCall, address
from .machine_code import source_address
from .nests import KernelPart, NoKernelError, cut
from .tasks import GraphTasks, Step, piece_samples

__all__ = ["add_move"]

MOVE_TEXT = """
def kernel(block, like):
    w = words(block)
    outer, rows = words(w[7]), words(w[8])
    for i0 in range(w[0], w[1]):
        for i1 in range(w[2], w[3]):
            for i2 in range(w[4], w[5]):
                source = w[10] + i0 * w[11] + outer[i1] * w[12] + rows[i2] * w[13]
                target = w[14] + i0 * w[15] + i1 * w[16] + i2 * w[17]
                copy_row(source, target, w[6], w[9], np.{dtype}(0))
"""


def move_text(itemsize: int) -> str:
    """Return the kernel that copies rows.

    Its words are the first place and the one after the last of three loops; the number of runs (see
    ``kernels.copy_row``); the addresses of tables with the places of the second and third loop in the source,
    and of the runs; and the address and three strides of the source and of the target.
    """
    return MOVE_TEXT.format(dtype=f"uint{8 * itemsize}")


def add_move(tasks: GraphTasks, node: Move) -> None:
    """Add the task of a node that copies samples to other places."""
    source, result = node.source, node.result
    tables = [np.arange(n) for n in result.shape]
    for axis, places in node.places:
        tables[axis] = np.asarray(places)
    lead = [axis for axis in range(len(result.shape) - 3) if result.shape[axis] > 1]
    contiguous = source.shape[-1] == 1 or (source.strides[-1] == 1 and result.strides[-1] in (0, 1))
    if len(lead) > 1 or not contiguous:
        raise NoKernelError("no kernel moves these axes")
    if lead and any(axis == lead[0] for axis, _ in node.places):
        raise NoKernelError("no kernel moves items")
    missing = max(0, 3 - len(result.shape))
    tables = [*[np.zeros(1, np.int64)] * missing, *tables]
    size = source.itemsize
    runs = _runs(tables[-1])
    outer, rows = (tasks.table(tables[k], np.int64) for k in (-3, -2))
    run_table = tasks.table([number for each in runs for number in each], np.int64)
    text = move_text(size)
    items = result.shape[lead[0]] if lead else 1
    lengths = items, len(tables[-3]), len(tables[-2]), len(tables[-1])

    def strides(view: ArrayView) -> list[int]:
        padded = [0] * missing + [s * size for s in view.strides]
        return [view.strides[lead[0]] * size if lead else 0, padded[-3], padded[-2]]

    def steps() -> list[Step]:
        (buffer, start), (target, place) = tasks.locate(source), tasks.locate(result)
        step: Step = []
        kernel = source_address(text, tasks.dtype)
        for part in cut(lengths[:3], max(1, piece_samples(math.prod(lengths)) // lengths[3])):
            words = [bound for pair in part for bound in pair]
            words += [len(runs), address(outer), address(rows), address(run_table)]
            words += [start, *strides(source), place, *strides(result)]
            step.append(
                KernelPart(
                    [KernelCall(kernel, 1, [8, *words], [(0, SCRATCH_BUFFER), (11, buffer), (15, target)])],
                    math.prod(end - begin for begin, end in part) * lengths[3],
                )
            )
        return [step]

    tasks.add((source, result), steps)


def _runs(places: NDArray[Any]) -> list[tuple[int, int, int]]:
    """Return runs of neighbours: the first place in the source and in the target, and the length."""
    breaks = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
    return [(int(places[begin]), begin, end - begin) for begin, end in pairwise(breaks) if end > begin]
