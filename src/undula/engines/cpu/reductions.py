"""Reductions as tasks: sums, maxima and medians of items.

Each item is cut into parts in the same way for any number of threads. Parts of sums and maxima are joined by
a second step. Medians count magnitudes by their leading bits first, and compare only those around the median.
"""

from __future__ import annotations

import math

import numpy as np

from ...arrays import ArrayView
from ...lowering.expressions import Expression, Load
from ...lowering.graph import Pointwise, Reduce
from .executable import CALL_BYTES, SCRATCH_BUFFER, KernelCall
from .expressions import KernelText, indented, row_bytes
from .kernel_layout import BINS
from .machine_code import source_address
from .nests import FIRST_EXTRA, MAX_EXTRA_WORDS, KernelPart, Nest, NoKernelError, cut
from .tasks import ALIGNMENT, PIECE, GraphTasks, Step, piece_samples

__all__ = ["add_reduce"]

MAX_ITEM = 1 << 15  # Samples of an item whose median one thread finds alone.

# --- texts of kernels -----------------------------------------------------------------------------


def total_text(nest: Nest, source: Expression, kind: str) -> str:
    """Return the kernel that sums an expression, or finds its maximum, for each item.

    Its extra word is the address of one number, a float64, for each item.
    """
    text = KernelText(nest, FIRST_EXTRA + 1)
    rows, samples, name = text.row(source, "i2")
    if kind == "sum":
        first, part, join = "0.0", f"part += np.float64({name})", "total += part"
    else:
        first, part, join = "-np.inf", f"part = max(part, np.float64({name}))", "total = max(total, part)"
    row = [*rows, f"part = {first}", "for j in range(n):", *indented([*samples, part]), join]
    end = "reals(w[11] + 8 * i0, np.float64(0))[0] = total"
    return text.kernel([f"total = {first}", *text.planes(row), end])


COMBINE_TEXT = """
def kernel(block, like):
    w = words(block)
    parts, out = reals(w[0], np.float64(0)), reals(w[1], np.{dtype}(0))
    for item in range(w[2]):
        total = parts[item]
        for split in range(1, w[3]):
            total = {join}
        out[item] = total
"""


def combine_text(kind: str, dtype: str) -> str:
    """Return the kernel that joins the parts of sums or maxima of items.

    Its words are the addresses of the parts and of the results, the number of items, and that of parts.
    """
    part = "parts[split * w[2] + item]"
    join = f"total + {part}" if kind == "sum" else f"max(total, {part})"
    return COMBINE_TEXT.format(dtype=dtype, join=join)


# Extra words of the kernel for medians, from 11 on.
MEDIAN_WORDS = (
    "counts", "counts_step", "state", "state_step", "candidates", "candidates_step", "limits", "limits_step",
    "results", "results_step", "phases", "splits", "split", "capacity",
)  # fmt: skip
assert len(MEDIAN_WORDS) <= MAX_EXTRA_WORDS
TALLY, LOCATE, GATHER, SELECT = 1, 2, 4, 8
STATE_BYTES = 64  # The state of a median; the number of candidates of each split is behind it.
COUNTS_BYTES = 2 * 4 * (BINS + 1)


def median_text(nest: Nest, source: Expression, result: str) -> str:
    """Return the kernel that finds the median of magnitudes for each item, in phases.

    Magnitudes are counted by their leading bits first; only those around the median are compared.
    """
    text = KernelText(nest, FIRST_EXTRA + len(MEDIAN_WORDS))
    if isinstance(source, Load) and nest.operands[0].is_row and nest.operands[0].view.dtype == nest.dtype:
        row = [f"row = {text.address(0, 'i2')}"]
    else:
        rows, samples, name = text.row(source, "i2")
        row = [*rows, "row = w[10]", "line = reals(row, unit)"]
        row += ["for j in range(n):", *indented([*samples, f"line[j] = {name}"])]
    bits = 8 * nest.itemsize
    most = int(np.array(np.inf, nest.dtype).view(f"int{bits}"))
    head = [
        *(f"{name} = w[{FIRST_EXTRA + k}]" for k, name in enumerate(MEDIAN_WORDS)),
        f"bit = np.int{bits}(0)",
        f"shift, mask = np.int{bits}({bits - 13}), np.int{bits}({2 ** (bits - 1) - 1})",
        f"most, step = np.int{bits}({most}), np.int{bits}(1)",
        "limit = limits + i0 * limits_step",
        "least = bit",
        "if not reals(limit, unit)[0] < 0:",
        f"    least = np.int{bits}(min(reals(limit, bit)[0] & mask, most - step) + step)",
        "place = state + i0 * state_step",
        "table = counts + i0 * counts_step",
        f"part = table + split * {COUNTS_BYTES}",
        "gathered = candidates + i0 * candidates_step",
        f"number = words(place + {STATE_BYTES} + 8 * split)",
        "located = words(place)",
    ]
    low = f"np.int{bits}(located[1]), np.int{bits}(located[2])"
    work = [
        f"if phases & {TALLY}:",
        "    zero_counts(part)",
        *indented(text.planes([*row, "tally(row, n, part, shift, mask, least, most, bit)"])),
        f"if phases & {LOCATE}:",
        "    locate_median(place, table, splits, shift, least, most)",
        f"if phases & {GATHER}:",
        "    count = 0",
        "    if located[0] > 0:",
        f"        low, high = {low}",
        "        target = gathered + split * capacity * size",
        *indented(text.planes([*row, "count = gather(row, n, target, count, low, high, mask, bit)"]), 2),
        "    number[0] = count",
        f"if phases & {SELECT}:",
        f"    gathered_counts = place + {STATE_BYTES}",
        "    middle = select_median(place, gathered, gathered_counts, splits, capacity, table, bit, unit)",
        f"    reals(results + i0 * results_step, np.{result}(0))[0] = middle",
    ]
    return text.kernel([*head, *work])


# --- tasks -----------------------------------------------------------------------------------------


def add_reduce(tasks: GraphTasks, node: Reduce) -> None:
    """Add the tasks of a node that computes one number for each item."""
    if node.kind == "sure":
        raise NoKernelError(node.kind)
    if node.kind == "median":
        _add_median(tasks, node)
        return
    nests = [Nest(shape, [source], apart=-1) for shape, source in zip(node.shapes, node.sources, strict=True)]
    cuts = [list(cut(nest.lengths[1:], piece_samples(math.prod(nest.lengths[1:])))) for nest in nests]
    parts = [
        tasks.new_buffer((len(pieces), shape[0]), "float64")
        for pieces, shape in zip(cuts, node.shapes, strict=True)
    ]
    texts = [total_text(nest, source, node.kind) for nest, source in zip(nests, node.sources, strict=True)]

    def totals() -> list[Step]:
        step: Step = []
        for nest, text, pieces, view in zip(nests, texts, cuts, parts, strict=True):
            buffer, start = tasks.locate(view)
            items = nest.lengths[0]
            for number, piece in enumerate(pieces):
                inner = math.prod(end - begin for begin, end in piece)
                for (group,) in cut((items,), max(1, PIECE // inner)):
                    extra = start + 8 * number * items, buffer
                    step += tasks.parts(nest, text, [extra], 0, [(group, *piece)])
        return [step]

    def combined() -> list[Step]:
        step: Step = []
        for view, result in zip(parts, node.results, strict=True):
            (source, begin), (target, place) = tasks.locate(view), tasks.locate(result)
            words = [8, begin, place, view.shape[1], view.shape[0]]
            relative = [(0, SCRATCH_BUFFER), (1, source), (2, target)]
            kernel = source_address(combine_text(node.kind, result.dtype), tasks.dtype)
            step.append(KernelPart([KernelCall(kernel, 1, words, relative)], math.prod(view.shape)))
        return [step]

    tasks.add((*node.reads, *parts), totals)
    tasks.add((*parts, *node.results), combined)


def _add_median(tasks: GraphTasks, node: Reduce) -> None:
    limits = [
        tasks.new_buffer(shape[:1], result.dtype)
        for shape, result in zip(node.shapes, node.results, strict=True)
    ]
    tasks.add_pointwise(Pointwise(tuple(limits), node.limits))
    nests = [Nest(shape, [source], apart=-1) for shape, source in zip(node.shapes, node.sources, strict=True)]
    for nest, view in zip(nests, limits, strict=True):
        if nest.dtype != view.dtype:
            raise NoKernelError("a limit has another dtype than its samples")
    texts = [
        median_text(nest, source, result.dtype)
        for nest, source, result in zip(nests, node.sources, node.results, strict=True)
    ]
    works = [
        _MedianWork(tasks, nest, text, limit, result)
        for nest, text, limit, result in zip(nests, texts, limits, node.results, strict=True)
    ]
    views = [*node.reads, *node.writes, *limits, *(view for work in works for view in work.memory)]
    for phases in (TALLY, LOCATE, GATHER, SELECT):
        members = [work for work in works if phases in work.phases]
        if members:
            tasks.add(
                views,
                lambda phases=phases, members=members: [  # type: ignore[misc]
                    [part for work in members for part in work.calls(phases)]
                ],
            )


class _MedianWork:
    """The median of each item of an array: by one call for small items, in phases for large ones."""

    def __init__(self, tasks: GraphTasks, nest: Nest, text: str, limit: ArrayView, result: ArrayView) -> None:
        self.tasks, self.nest, self.text, self.limit, self.result = tasks, nest, text, limit, result
        items, samples = nest.lengths[0], math.prod(nest.lengths[1:])
        self.alone = samples <= MAX_ITEM
        size = samples if self.alone else piece_samples(samples)
        # Rows of memory stay in a cache.
        self.cuts = list(cut(nest.lengths[1:], size))
        splits = len(self.cuts)
        inside = max(math.prod(end - begin for begin, end in part) for part in self.cuts)
        self.capacity = inside + 8  # Candidates are written before it is known whether they are some.
        self.state_bytes = STATE_BYTES + 8 * splits
        sizes = self.state_bytes, splits * COUNTS_BYTES, splits * self.capacity * nest.itemsize
        self.sizes = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
        self.memory = (
            [] if self.alone else [tasks.new_buffer((items * size,), "uint8") for size in self.sizes]
        )
        self.phases = (TALLY,) if self.alone else (TALLY, LOCATE, GATHER, SELECT)
        self.row = max(row_bytes(part[-1][1] - part[-1][0], nest.itemsize) for part in self.cuts)

    def calls(self, phase: int) -> Step:
        """Return the calls of a phase."""
        nest, tasks = self.nest, self.tasks
        items = nest.lengths[0]
        result = tasks.locate(self.result)
        limit = tasks.locate(self.limit)
        if self.alone:
            # All memory is that of the thread, behind the row.
            starts = [CALL_BYTES + self.row + sum(self.sizes[:k]) for k in range(3)]
            places = [(start, SCRATCH_BUFFER, 0) for start in starts]
            scratch = self.row + sum(self.sizes)
            phase = TALLY | LOCATE | GATHER | SELECT
        else:
            located = [tasks.locate(view) for view in self.memory]
            places = [
                (start, buffer, size) for (buffer, start), size in zip(located, self.sizes, strict=True)
            ]
            scratch = self.row
        state, counts, candidates = places
        step: Step = []
        parts = list(enumerate(self.cuts)) if phase & (TALLY | GATHER) else [(0, self.cuts[0])]
        for split, part in parts:
            samples = math.prod(end - begin for begin, end in part)
            for (group,) in cut((items,), max(1, PIECE // max(1, samples))):
                words = [
                    counts[:2], (counts[2], -1), state[:2], (state[2], -1),
                    candidates[:2], (candidates[2], -1),
                    limit[::-1], (self.limit.strides[0] * self.limit.itemsize, -1),
                    result[::-1], (self.result.strides[0] * self.result.itemsize, -1),
                    (phase, -1), (len(self.cuts), -1), (split, -1), (self.capacity, -1),
                ]  # fmt: skip
                assert len(words) == len(MEDIAN_WORDS)
                step += tasks.parts(nest, self.text, words, scratch, [(group, *part)])
        return step
