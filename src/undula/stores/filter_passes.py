"""Filters of arrays in stores by pipelines: passes over the samples for statistics, and one that filters.

A task reads the window of a region from the store, so that nothing is kept in memory from one pass to the
next. What is known of the image so far is saved in the partial store, and a run that is interrupted in any
pass goes on from there. Images that are one region each need no passes of their own: a task does all.
"""

from __future__ import annotations

import base64
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import prod
from typing import Any

import numpy as np

from ..engines.chunked.blocks import ChunkedWindow
from ..engines.threads import get_num_threads
from ..filters.statistics import Ranks
from ..filters.windows import BlockLine, FilteredBlock, FilterPlan, StatisticPart, StatisticPass, numbered
from ..lowering.windows import Interval
from .blocks import BlockGrid
from .opening import open_array, read_window
from .partial import PartialStore
from .running import TaskRunner
from .work import Progress, continuing
from .writing import write_region

__all__ = ["FilterPasses", "region_lengths", "tasks_at_once"]

Shape = tuple[int, ...]
Batch = tuple[int, ...]
Segments = tuple[Sequence[Interval], ...]

WORK_BYTES = 800 << 20  # Of all windows that are filtered at a time.
REGIONS_AT_ONCE = 64  # Images are filtered together until they have so many regions.
SAVE_INTERVAL_S = 2.0


@dataclass(frozen=True)
class StatisticTask:
    """The contribution of the window of a block to a statistic."""

    token: str
    source: str
    segments: Segments
    part: StatisticPart
    known: Sequence[Any]
    state: Any

    def __call__(self) -> Any:
        """Read the window, and return the contribution."""
        x = read_window(open_array(self.source, self.token), self.segments)
        return self.part([x], self.known, self.state)


@dataclass(frozen=True)
class LocalPass:
    """A pass over an image that is in memory."""

    part: StatisticPart
    window: tuple[slice, ...]
    is_last: bool


@dataclass(frozen=True)
class FilterTask:
    """A region of the filtered image.

    Parameters
    ----------
    token, source, target : str
    segments : tuple of sequence of (int, int)
        The window.
    block : FilteredBlock
    inner : tuple of slice
        The region in the block.
    region : tuple of slice
    known : sequence
        The statistics of the image.
    passes : sequence of LocalPass
        How they are computed, if the window is the image.
    """

    token: str
    source: str
    target: str
    segments: Segments
    block: FilteredBlock
    inner: tuple[slice, ...]
    region: tuple[slice, ...]
    known: Sequence[Any]
    passes: Sequence[LocalPass] = field(default=())

    def __call__(self) -> None:
        """Read the window, filter it, and write the region."""
        x = read_window(open_array(self.source, self.token), self.segments)
        known, state = list(self.known), None
        for each in self.passes:
            statistic = each.part.statistic
            state = statistic.finished([each.part([x[each.window]], known, state)], state)
            if each.is_last:
                known.append(state)
                state = None
        write_region(self.target, self.token, self.region, np.asarray(self.block([x], known)[self.inner]))


def _run(task: StatisticTask | FilterTask) -> Any:
    """Run a task; a function that workers import."""
    return task()


class FilterPasses:
    """All passes over an array in a store.

    Parameters
    ----------
    plan : FilterPlan
    output : PartialStore
    token, source, target : str
        The run, and the locations of both arrays.
    lengths : tuple of int
        Lengths of regions, multiples of the chunks that they are written to.
    """

    def __init__(
        self, plan: FilterPlan, output: PartialStore, token: str, source: str, target: str, lengths: Shape
    ) -> None:
        self.plan, self.output, self.token = plan, output, token
        self.source, self.target = source, target
        self.grid = BlockGrid(plan.layout.shape, lengths)
        ends = zip(self.grid.shape, lengths, strict=True)
        self.boundaries = plan.aligned([[*range(0, n, length), n] for n, length in ends])
        counts = self.grid.counts
        self.is_whole = prod(counts[axis] for axis in plan.layout.axes) == 1
        # Regions are numbered along the last axis first, and those of an image by the images they belong to.
        self.regions: dict[Batch, list[int]] = {}
        for number in range(len(self.grid)):
            places = tuple(map(int, np.unravel_index(number, counts)))
            self.regions.setdefault(plan.batch(places), []).append(number)
        self.passes = [] if self.is_whole else plan.passes
        self.state = _State.restored(output.saved())

    def run(self, runner: TaskRunner, progress: Progress | None) -> None:
        """Run all passes that are not done."""
        done, total = self._counts()

        def advance() -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(done, total)

        if progress is not None:
            progress(done, total)
        with continuing(self.output, len(self.grid)):
            for group in self._groups():
                self._run_group(runner, group, advance)

    def _groups(self) -> Iterator[list[Batch]]:
        """Yield images that are filtered together."""
        places = {batch: place for place, batch in enumerate(self.regions)}
        regions = len(self.grid) // len(self.regions)
        at_once = max(1, REGIONS_AT_ONCE // regions) if self.passes else len(self.regions)
        for _, group in groupby(self.regions, lambda batch: places[batch] // at_once):
            yield list(group)

    def _left(self, group: Sequence[Batch]) -> list[tuple[Batch, int]]:
        done = self.output.done
        return [(batch, k) for batch in group for k in self.regions[batch] if (0, k) not in done]

    def _counts(self) -> tuple[int, int]:
        """Return how many tasks are done, and how many there are."""
        done, total = len(self.output.done), len(self.grid)
        for group in self._groups():
            finished = not self._left(group)
            for number, each in enumerate(self.passes):
                count = len(self._blocks(group, each))
                total += count
                if finished or self.state.is_past(group[0], number):
                    done += count
                elif self.state.is_at(group[0], number):
                    done += len(self.state.done)
        return done, total

    def _blocks(self, group: Sequence[Batch], each: StatisticPass) -> list[tuple[Batch, list[BlockLine]]]:
        wanted, plan = set(group), self.plan
        along = plan.pass_blocks(self.boundaries, each)
        blocks = ((plan.batch(numbers), block) for numbers, block in numbered(along))
        return [(batch, block) for batch, block in blocks if batch in wanted]

    def _run_group(self, runner: TaskRunner, group: Sequence[Batch], advance: Any) -> None:
        left = self._left(group)
        if not left:
            return
        if self.passes:
            if self.state.first != group[0]:
                self.state = _State(group[0])
            for number in range(self.state.number, len(self.passes)):
                self._run_pass(runner, group, number, advance)

        def finished(item: int, result: Any) -> None:
            if isinstance(result, BaseException):
                raise result
            self.output.record(0, left[item][1])
            advance()

        runner.run(_run, [self._filter_task(batch, number) for batch, number in left], finished)

    def _run_pass(self, runner: TaskRunner, group: Sequence[Batch], number: int, advance: Any) -> None:
        """Compute a statistic, or a digit of it, of some images."""
        each, state = self.passes[number], self.state
        blocks = self._blocks(group, each)
        left = [k for k in range(len(blocks)) if k not in state.done]
        saved = time.monotonic()

        def finished(item: int, result: Any) -> None:
            nonlocal saved
            if isinstance(result, BaseException):
                raise result
            batch = blocks[left[item]][0]
            parts = [state.totals[batch], result] if batch in state.totals else [result]
            state.totals[batch] = each.statistic.joined(parts)
            state.done.add(left[item])
            if time.monotonic() - saved > SAVE_INTERVAL_S:
                self.output.save(state.to_json())
                saved = time.monotonic()
            advance()

        try:
            runner.run(_run, [self._statistic_task(each, *blocks[k]) for k in left], finished)
        except BaseException:
            if state.done:
                self.output.save(state.to_json())
            raise
        for batch in group:
            values = each.statistic.finished([state.totals[batch]], state.digits.get(batch))
            if each.is_last:
                state.known.setdefault(batch, []).append(values)
                state.digits.pop(batch, None)
            else:
                state.digits[batch] = values
        state.number, state.done, state.totals = number + 1, set(), {}
        self.output.save(state.to_json())

    def _statistic_task(self, each: StatisticPass, batch: Batch, blocks: list[BlockLine]) -> StatisticTask:
        window = ChunkedWindow.of_array(tuple(block.window.length for block in blocks))
        part = self.plan.statistic_part(each, blocks, window)
        known, digits = self.state.known.get(batch, []), self.state.digits.get(batch)
        return StatisticTask(self.token, self.source, _segments(blocks), part, tuple(known), digits)

    def _filter_task(self, batch: Batch, number: int) -> FilterTask:
        plan, blocks, inner = self.plan, [], []
        region = self.grid.block(number)
        for axis, (start, stop) in enumerate(region):
            first, last = start, stop
            if axis in plan.layout.axes:
                first -= start % plan.unit
                last = min(self.grid.shape[axis], -(-stop // plan.unit) * plan.unit)
            blocks.append(plan.line(axis, first, last, plan.reach))
            inner.append(slice(start - first, stop - first))
        window = ChunkedWindow.of_array(tuple(block.window.length for block in blocks))
        return FilterTask(
            self.token,
            self.source,
            self.target,
            _segments(blocks),
            plan.filtered_block(blocks, window),
            tuple(inner),
            tuple(slice(*part) for part in region),
            tuple(self.state.known.get(batch, [])),
            self._local_passes(blocks) if self.is_whole else (),
        )

    def _local_passes(self, blocks: list[BlockLine]) -> tuple[LocalPass, ...]:
        """Return the passes over an image that is one block."""
        plan, passes = self.plan, []
        boundaries = [block.samples for block in blocks]
        for each in plan.passes:
            ((_, part),) = numbered(plan.pass_blocks(boundaries, each))
            window = tuple(slice(None) for _ in blocks)
            if each.region is not None:
                window = tuple(
                    slice(*block.samples) if axis in plan.layout.axes else slice(None)
                    for axis, block in enumerate(part)
                )
            shape = ChunkedWindow.of_array(tuple(block.window.length for block in part))
            passes.append(LocalPass(plan.statistic_part(each, part, shape), window, each.is_last))
        return tuple(passes)


def _segments(blocks: Sequence[BlockLine]) -> Segments:
    return tuple(block.window.segments for block in blocks)


class _State:
    """What is known of the images of a group.

    Attributes
    ----------
    first : tuple of int or None
        The first image of the group.
    number : int
        The pass that runs.
    known : dict
        For each image, the values of the statistics that are complete.
    digits : dict
        For each image, what is known of a median after some passes.
    done : set of int
        The blocks of the pass that are done.
    totals : dict
        For each image, what they contribute.
    """

    def __init__(self, first: Batch | None = None) -> None:
        self.first, self.number = first, 0
        self.known: dict[Batch, list[Any]] = {}
        self.digits: dict[Batch, Any] = {}
        self.done: set[int] = set()
        self.totals: dict[Batch, Any] = {}

    def is_past(self, first: Batch, number: int) -> bool:
        """Whether a pass over a group is complete."""
        return self.first == first and self.number > number

    def is_at(self, first: Batch, number: int) -> bool:
        """Whether a pass over a group has begun."""
        return self.first == first and self.number == number

    def to_json(self) -> dict[str, Any]:
        """Return the state in JSON's types."""
        images = (self.known, self.digits, self.totals)
        values = [[[list(batch), _encoded(value)] for batch, value in of.items()] for of in images]
        return {"first": self.first, "number": self.number, "done": sorted(self.done), "images": values}

    @staticmethod
    def restored(saved: Any) -> _State:
        """Return a state that was saved, or the first one."""
        state = _State()
        if saved is not None:
            state.first, state.number = tuple(saved["first"]), saved["number"]
            state.done = set(saved["done"])
            images = ({tuple(batch): _decoded(value) for batch, value in each} for each in saved["images"])
            state.known, state.digits, state.totals = images
        return state


def _encoded(value: Any) -> Any:
    """Return nested lists of numbers and arrays in JSON's types."""
    if isinstance(value, Ranks):
        return {"prefixes": value.prefixes, "ranks": value.ranks}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(zlib.compress(np.ascontiguousarray(value).data, 1)).decode()
        return {"data": data, "shape": value.shape, "dtype": value.dtype.str}
    if isinstance(value, (list, tuple)):
        return [_encoded(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "ranks" in value:
        return Ranks(value["prefixes"], value["ranks"])
    data = zlib.decompress(base64.b64decode(value["data"]))
    return np.frombuffer(data, value["dtype"]).reshape(value["shape"]).copy()


# --- regions --------------------------------------------------------------------------------------


def _window_bytes(plan: FilterPlan, lengths: Shape) -> int:
    """Return about how much memory it takes to filter a region in the middle of the array."""
    shape = list(lengths)
    for axis in plan.layout.axes:
        margin = 2 * -(-plan.reach // plan.unit) * plan.unit
        shape[axis] = min(plan.layout.shape[axis], lengths[axis] + margin)
    itemsize = np.dtype(plan.layout.working_dtype).itemsize
    return prod(shape) * itemsize * WINDOW_COPIES[min(len(plan.layout.axes), 3) - 1]


WINDOW_COPIES = (40, 40, 100)  # Arrays as large as the window, for one, two, and three or more axes.


def region_lengths(plan: FilterPlan, chunks: Shape) -> Shape:
    """Return the lengths of regions: chunks, joined while their windows take little memory."""
    shape, axes = plan.layout.shape, plan.layout.axes
    lengths = list(chunks)
    if plan.layout.channel is not None:
        lengths[plan.layout.channel] = shape[plan.layout.channel]
    while True:
        growing = [axis for axis in axes if lengths[axis] < shape[axis]]
        if not growing:
            return tuple(lengths)
        # The shortest axis has the most windows for its samples.
        axis = min(growing, key=lambda axis: (lengths[axis], -axis))
        larger = list(lengths)
        larger[axis] = min(2 * lengths[axis], -(-shape[axis] // chunks[axis]) * chunks[axis])
        if _window_bytes(plan, tuple(larger)) > WORK_BYTES // 2:
            return tuple(lengths)
        lengths = larger


def tasks_at_once(plan: FilterPlan, lengths: Shape) -> int:
    """Return how many regions are filtered at a time."""
    return max(1, min(get_num_threads(), WORK_BYTES // _window_bytes(plan, lengths)))
