"""Filters of arrays in stores by pipelines: passes over the samples for statistics, and one that filters.

A task reads the window of a region from the store, so that nothing is kept in memory from one pass to the
next. What is known of the image so far is saved in the partial store, and a run that is interrupted in any
pass goes on from there. An image that is a single region is filtered by one task.
"""

from __future__ import annotations

import base64
import shutil
import time
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, pairwise, product
from math import prod
from typing import Any

import numpy as np

from ..engines.chunked.blocks import ChunkedWindow
from ..engines.threads import get_num_threads
from ..filters.statistics import Ranks
from ..filters.windows import (
    BlockLine,
    CheckpointPass,
    FilterPlan,
    StatisticPass,
    numbered,
)
from ..lowering.windows import Interval
from .blocks import BlockGrid
from .filter_tasks import (
    CheckpointTask,
    FilterPart,
    FilterTask,
    LocalPass,
    Segments,
    StatisticTask,
    StoredWindow,
    run_task,
)
from .opening import open_array
from .partial import PartialStore
from .running import TaskRunner
from .work import Progress, chunks_at_once, continuing

__all__ = ["FilterPasses", "regions_of", "tasks_at_once"]

Shape = tuple[int, ...]
Batch = tuple[int, ...]

WORK_BYTES = 900 << 20  # Of all windows that are filtered at a time.
PROGRAM_SHARE = 1.1  # Of the arrays that are needed at a time, what programs allocate.
MAX_OVERLAP = 3.0  # Windows of more samples for each sample of their region are divided by checkpoints.
LEAST_LENGTH = 32  # Of blocks.
MAX_TASKS = 2  # tasks that share this memory
REGIONS_AT_ONCE = 64  # Images are filtered together up to this number of regions.
SAVE_INTERVAL_S = 2.0


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
        counts = self.grid.counts
        # Regions consist of chunks, which may be larger than the parts that are filtered at a time.
        self.parts = self._lengths(plan)
        self.is_whole = all(
            counts[axis] == 1 and self.parts[axis] >= plan.layout.shape[axis] for axis in plan.layout.axes
        )
        # Regions are numbered along the last axis first, and those of an image by the images they belong to.
        self.regions: dict[Batch, list[int]] = {}
        for number in range(len(self.grid)):
            places = tuple(map(int, np.unravel_index(number, counts)))
            self.regions.setdefault(plan.batch(places), []).append(number)
        self.passes: list[StatisticPass | CheckpointPass] = []
        if not self.is_whole:
            self.passes += [each for each in plan.checkpoints if not each.needs_statistics]
            self.passes += plan.passes
            self.passes += [each for each in plan.checkpoints if each.needs_statistics]
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
        if self.plan.checkpoints:
            at_once = 1
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

    def _blocks(
        self, group: Sequence[Batch], each: StatisticPass | CheckpointPass
    ) -> list[tuple[Batch, list[BlockLine]]]:
        images, plan = set(group), self.plan
        boundaries = self._boundaries(each)
        if isinstance(each, CheckpointPass):
            along = plan.blocks(boundaries, each.reach)
        else:
            along = plan.pass_blocks(boundaries, each)
        blocks = ((plan.batch(numbers), block) for numbers, block in numbered(along))
        return [(batch, block) for batch, block in blocks if batch in images]

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

        with chunks_at_once(runner, len(left)):
            runner.run(run_task, [self._filter_task(batch, number) for batch, number in left], finished)

    def _run_pass(self, runner: TaskRunner, group: Sequence[Batch], number: int, advance: Any) -> None:
        """Compute a checkpoint, a statistic, or a digit of it, of some images."""
        each, state = self.passes[number], self.state
        blocks = self._blocks(group, each)
        left = [k for k in range(len(blocks)) if k not in state.done]
        saved = time.monotonic()
        if isinstance(each, CheckpointPass):
            if not state.done:
                self._create(each, blocks[0][1])
            tasks: list[Any] = [self._checkpoint_task(each, *blocks[k]) for k in left]
        else:
            tasks = [self._statistic_task(each, *blocks[k]) for k in left]

        def finished(item: int, result: Any) -> None:
            nonlocal saved
            if isinstance(result, BaseException):
                raise result
            if isinstance(each, StatisticPass):
                batch = blocks[left[item]][0]
                parts = [state.totals[batch], result] if batch in state.totals else [result]
                state.totals[batch] = each.statistic.joined(parts)
            state.done.add(left[item])
            if time.monotonic() - saved > SAVE_INTERVAL_S:
                self.output.save(state.to_json())
                saved = time.monotonic()
            advance()

        try:
            with chunks_at_once(runner, len(tasks)):
                runner.run(run_task, tasks, finished)
        except BaseException:
            if state.done:
                self.output.save(state.to_json())
            raise
        if isinstance(each, StatisticPass):
            self._finish(group, each)
        state.number, state.done, state.totals = number + 1, set(), {}
        self.output.save(state.to_json())
        needed = {*self.plan.given, *chain.from_iterable(after.given for after in self.passes[number + 1 :])}
        for checkpoint in self.plan.checkpoints:
            if checkpoint.number not in needed:
                shutil.rmtree(self._location(checkpoint.number), ignore_errors=True)

    def _finish(self, group: Sequence[Batch], each: StatisticPass) -> None:
        """Note what is known of a statistic after a pass."""
        state = self.state
        for batch in group:
            values = each.statistic.finished([state.totals[batch]], state.digits.get(batch))
            if each.is_last:
                state.known.setdefault(batch, []).append(values)
                state.digits.pop(batch, None)
            else:
                state.digits[batch] = values

    def _location(self, number: int) -> str:
        return str(self.output.scratch / f"checkpoint{number}")

    def _lengths(self, each: FilterPlan | StatisticPass | CheckpointPass) -> list[int]:
        """Return the lengths of the parts of an image that a pass works on at a time."""
        return _grown(self.plan, self.grid.lengths, each.reach, each.nbytes)

    def _boundaries(self, each: StatisticPass | CheckpointPass) -> list[list[int]]:
        """Return the boundaries between these parts."""
        pairs = zip(self.grid.shape, self._lengths(each), strict=True)
        return self.plan.aligned([[*range(0, n, length), n] for n, length in pairs])

    def _create(self, each: CheckpointPass, blocks: list[BlockLine]) -> None:
        """Create the array of a checkpoint."""
        import zarr

        items = self.plan.checkpoint_block(each, blocks).run.recipe.layout.planes_shape[0]
        inner = [blocks[axis].samples for axis in self.plan.layout.axes]
        # Windows read parts of the parts around theirs.
        chunks = [max(1, -(-(stop - start) // (2 << each.level))) for start, stop in inner]
        zarr.create_array(
            self._location(each.number),
            shape=(items, *each.shape[1:]),
            chunks=(items, *each.shape[1 : -len(inner)], *chunks),
            dtype=self.plan.layout.working_dtype,
            compressors=None,
            overwrite=True,
        )

    def _given(self, numbers: Sequence[int], blocks: list[BlockLine]) -> tuple[StoredWindow, ...]:
        """Return the windows of checkpoints."""
        windows = []
        for number in numbers:
            segments = self.plan.checkpoint_segments(number, blocks)
            shape = open_array(self._location(number), self.token).shape
            outer = [[(0, n)] for n in shape[: -len(segments)]]
            windows.append(StoredWindow(self.token, self._location(number), (*outer, *segments)))
        return tuple(windows)

    def _checkpoint_task(self, each: CheckpointPass, batch: Batch, blocks: list[BlockLine]) -> CheckpointTask:
        plan = self.plan
        shape, region = each.shape[-plan.layout.ndim :], [slice(None)] * (len(each.shape) - plan.layout.ndim)
        for axis, length in zip(plan.layout.axes, shape, strict=True):
            start, stop = blocks[axis].samples
            last = stop >= self.grid.shape[axis]
            region.append(slice(start >> each.level, length if last else stop >> each.level))
        window = StoredWindow(self.token, self.source, _segments(blocks)) if each.reads_image else None
        return CheckpointTask(
            window,
            plan.checkpoint_block(each, blocks),
            tuple(self.state.known.get(batch, [])),
            self._given(each.given, blocks),
            self.token,
            self._location(each.number),
            tuple(region),
        )

    def _statistic_task(self, each: StatisticPass, batch: Batch, blocks: list[BlockLine]) -> StatisticTask:
        window = ChunkedWindow.of_array(tuple(block.window.length for block in blocks))
        part = self.plan.statistic_part(each, blocks, window)
        known, digits = self.state.known.get(batch, []), self.state.digits.get(batch)
        stored = StoredWindow(self.token, self.source, _segments(blocks))
        return StatisticTask(stored, part, tuple(known), digits, self._given(each.given, blocks))

    def _filter_task(self, batch: Batch, number: int) -> FilterTask:
        plan, region = self.plan, self.grid.block(number)
        along = []
        for axis, (start, stop) in enumerate(region):
            step = self.parts[axis]
            cuts = [start, *range((start // step + 1) * step, stop, step), stop]
            along.append(list(pairwise(cuts)))
        parts = [self._filter_part(region, part) for part in product(*along)]
        lines = [plan.line(axis, *part, plan.reach) for axis, part in enumerate(region)]
        return FilterTask(
            self.token,
            self.target,
            tuple(slice(*part) for part in region),
            parts,
            tuple(self.state.known.get(batch, [])),
            self._local_passes(lines) if self.is_whole else (),
        )

    def _filter_part(self, region: Sequence[Interval], part: Sequence[Interval]) -> FilterPart:
        plan, blocks, inner, place = self.plan, [], [], []
        for axis, ((start, stop), (begin, _)) in enumerate(zip(part, region, strict=True)):
            first, last = start, stop
            if axis in plan.layout.axes:
                first -= start % plan.unit
                last = min(self.grid.shape[axis], -(-stop // plan.unit) * plan.unit)
            blocks.append(plan.line(axis, first, last, plan.reach))
            inner.append(slice(start - first, stop - first))
            place.append(slice(start - begin, stop - begin))
        window = ChunkedWindow.of_array(tuple(block.window.length for block in blocks))
        return FilterPart(
            StoredWindow(self.token, self.source, _segments(blocks)),
            plan.filtered_block(blocks, window),
            tuple(inner),
            tuple(place),
            () if self.is_whole else self._given(plan.given, blocks),
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


def _window_lengths(plan: FilterPlan, lengths: Sequence[int], reach: int) -> list[int]:
    """Return the lengths of the window of a region in the middle of the array."""
    shape = list(lengths)
    for axis in plan.layout.axes:
        margin = 2 * -(-reach // plan.unit) * plan.unit
        shape[axis] = min(plan.layout.shape[axis], lengths[axis] + margin)
    return shape


def _window_bytes(plan: FilterPlan, lengths: Sequence[int], reach: int, nbytes: float) -> float:
    """Return about how much memory it takes to filter a region in the middle of the array."""
    return PROGRAM_SHARE * nbytes * prod(_window_lengths(plan, lengths, reach))


def _grown(plan: FilterPlan, lengths: Sequence[int], reach: int, nbytes: float) -> list[int]:
    """Return the lengths of blocks, doubled along spatial axes while their windows take little memory.

    Parameters
    ----------
    plan : FilterPlan
    lengths : sequence of int
        The lengths along the other axes.
    reach : int
        How far windows reach.
    nbytes : float
        What filtering takes for each sample of a window.
    """
    shape, lengths = plan.layout.shape, list(lengths)
    least = -(-LEAST_LENGTH // plan.unit) * plan.unit
    for axis in plan.layout.axes:
        lengths[axis] = least
    limit = WORK_BYTES / MAX_TASKS  # On all machines, so that any of them can resume.
    while True:
        windows = _window_lengths(plan, lengths, reach)
        growing = [axis for axis in plan.layout.axes if lengths[axis] < shape[axis]]
        larger = list(lengths)
        if not growing:
            return lengths
        axis = max(growing, key=lambda axis: (windows[axis] / lengths[axis], axis))
        larger[axis] *= 2
        is_free = _window_lengths(plan, larger, reach) == windows
        if not is_free and _window_bytes(plan, larger, reach, nbytes) > limit:
            return lengths
        lengths = larger


def regions_of(plan: FilterPlan, chunks: Shape) -> tuple[FilterPlan, Shape]:
    """Return the plan, divided by checkpoints if windows were much larger than their blocks, and regions.

    Regions consist of chunks, joined to the lengths of blocks.
    """
    shape, lengths = plan.layout.shape, list(chunks)
    if plan.layout.channel is not None:
        lengths[plan.layout.channel] = shape[plan.layout.channel]
    grown = _grown(plan, lengths, plan.reach, plan.nbytes)
    overlaps = prod(_window_lengths(plan, grown, plan.reach)) > MAX_OVERLAP * prod(grown)
    if overlaps or _window_bytes(plan, grown, plan.reach, plan.nbytes) > WORK_BYTES:
        divided = plan.divided()
        smaller = _grown(divided, lengths, divided.reach, divided.nbytes)
        if divided.checkpoints and any(smaller[axis] < shape[axis] for axis in plan.layout.axes):
            plan, grown = divided, smaller
    joined = (
        min(-(-n // chunk) * chunk, -(-length // chunk) * chunk)
        for n, length, chunk in zip(shape, grown, chunks, strict=True)
    )
    return plan, tuple(joined)


def tasks_at_once(plan: FilterPlan, chunks: Shape) -> int:
    """Return how many blocks are filtered at a time."""
    lengths = _grown(plan, chunks, plan.reach, plan.nbytes)
    nbytes = _window_bytes(plan, lengths, plan.reach, plan.nbytes)
    return max(1, min(get_num_threads(), int(WORK_BYTES / nbytes)))
