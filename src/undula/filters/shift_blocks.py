"""Pipelines that compute the shifts of the first level one after the other, in memory for one of them.

All shifts of an image with ``n`` axes have ``2ⁿ`` times its coefficients at each level. Here the shifts of
the first level are blocks: each is decomposed, filtered and reconstructed by one program, and added to the
mean.

    image ──before──▶ planes ──block, for each shift──▶ mean of the shifts ──after──▶ result
                        └──sources, for each shift──▶ statistics of all shifts, which blocks need

A mean is added up in the order of shifts, and a median or SURE is computed from the coefficients of all
shifts, as one program for all of them does it. So results are the same, except for the rounding of sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engines.base import Engine
from ..engines.cpu.engine import CPU
from ..engines.cpu.graphs import CpuGraph
from ..engines.memory import empty, free_kept
from ..lowering.expressions import Expression, Load, loads
from ..lowering.graph import Graph, Pointwise, Reduce
from ..lowering.symbolic import reduced, symbolic_input, symbolic_output
from .item_programs import ItemProgram
from .programs import ImageRecipe, filtered_pyramid, has_pyramid, image_graph

if TYPE_CHECKING:
    from .pipeline import Pipeline

__all__ = ["ShiftBlocks", "shift_blocks"]

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
Shape = tuple[int, ...]
Shift = tuple[int, ...]
ADDED_UP = ("sum", "max")  # Statistics of all blocks that follow from those of each.
MIN_AXES = 3  # With fewer, only large images are computed in blocks.
LARGE_IMAGE = 1 << 23  # samples of all planes


def shift_blocks(pipeline: Pipeline, recipe: ImageRecipe, engine: Engine) -> ShiftBlocks | None:
    """Return the program of a pipeline in blocks, or None if all shifts are computed at once."""
    layout = recipe.layout
    is_block = recipe.keep or recipe.image_shape
    is_large = layout.ndim >= MIN_AXES or math.prod(layout.planes_shape) >= LARGE_IMAGE
    if engine is not CPU or is_block or layout.ndim < 2 or not is_large or not pipeline.shifted_levels:
        return None
    if not has_pyramid(pipeline, recipe, layout.planes_shape[1:]):
        return None
    before, count = _before(pipeline, recipe), 2**layout.ndim
    block = _block(pipeline, recipe, before, count)
    statistics = _statistics(block, _block(pipeline, recipe, before, 1), count)
    return None if statistics is None else ShiftBlocks(before, block, statistics, _after(pipeline, recipe))


@dataclass(frozen=True)
class _BlockStatistic:
    """A statistic of the coefficients of one block, or of all.

    Parameters
    ----------
    node : Reduce
        That of a block.
    shapes : tuple of tuple of int
        The arrays of all blocks.
    joined : tuple of bool
        Whether each array is that of all blocks; otherwise that of the first one.
    sources, limits : frozenset of str
        The results of other statistics that its arrays and its limits depend on.
    """

    node: Reduce
    shapes: tuple[Shape, ...]
    joined: tuple[bool, ...]
    sources: frozenset[str]
    limits: frozenset[str]

    @property
    def kept(self) -> bool:
        """Whether its arrays are kept until all blocks are done."""
        return any(self.joined) and self.node.kind not in ADDED_UP

    @property
    def samples(self) -> int:
        """The number of samples that are kept."""
        return sum(map(math.prod, self.shapes)) if self.kept else 0

    @property
    def results(self) -> tuple[str, ...]:
        """The names of its results."""
        return tuple(view.buffer for view in self.node.results)


class ShiftBlocks:
    """The program of a pipeline that computes the shifts of the first level one after the other.

    Parameters
    ----------
    before : Graph
        Computes the planes to decompose.
    block : Graph
        Filters one shift of them.
    statistics : sequence of _BlockStatistic
        Those of blocks.
    after : Graph
        Computes the result from the mean of the shifts.
    """

    def __init__(
        self, before: Graph, block: Graph, statistics: Sequence[_BlockStatistic], after: Graph
    ) -> None:
        planes = before.outputs["samples"]
        self._shifts = list(product((0, 1), repeat=len(planes.shape) - 1))
        self._plane_bytes = math.prod(planes.shape) * np.dtype(planes.dtype).itemsize
        known: set[str] = set()
        self._rounds = []
        for members in _rounds(statistics, math.prod(planes.shape)):
            self._rounds.append(_Round(block, members, known, self._shifts))
            known.update(name for member in members for name in member.results)
        self._before, self._after = CpuGraph(before), CpuGraph(after)
        self._block = ItemProgram(block.with_inputs(known), ("samples", "filtered"))
        self._dtype = np.dtype(planes.dtype)
        self._are_copies = _are_copies(before)

    @property
    def nbytes(self) -> int:
        """The bytes that a run takes besides its inputs, those of the result included."""
        # The planes and the mean of an item, or the mean alone.
        means = 1 if self._are_copies else 1 + 1 / len(self._block.items)
        blocks = self._plane_bytes * means + self._block.nbytes
        rounds = [self._plane_bytes + each.nbytes for each in self._rounds]
        return int(max(self._before.nbytes, blocks, *rounds, self._plane_bytes + self._after.nbytes))

    def run(self, arrays: Mapping[str, Any], seconds: dict[str, float] | None = None) -> dict[str, Any]:
        """Return the result, given the inputs by name; add the time of each phase to ``seconds``."""
        known = {**arrays, **self._before.run(arrays, seconds)}
        planes = known["samples"]
        known.setdefault("given", planes)
        for each in self._rounds:
            free_kept()  # Each program takes memory of other sizes.
            known |= each.run(planes, known, seconds)
        free_kept()
        if self._are_copies:  # Shifts are made of the image itself.
            planes = arrays["image"].reshape(planes.shape)
            known = {name: array for name, array in known.items() if name not in ("samples", "given")}
        in_place = len(self._block.items) > 1 and not self._are_copies
        result = planes if in_place else empty(planes.shape, self._dtype)
        prepared = self._block.prepared(known)
        for item in self._block.items:
            mean = empty(planes[item].shape, self._dtype) if in_place else result[item]
            for shift in self._shifts:
                samples = self._samples(planes[item], shift)
                outputs = {} if any(shift) else {"filtered": mean}
                part = self._block.run(prepared, item, samples, seconds, outputs)["filtered"]
                if any(shift):
                    mean[_places(shift, slice(0, -1))] += part[_places(shift, slice(1, None))]
                del part  # It has the memory of the run.
            _divide(mean)
            if in_place:
                result[item] = mean
        del known, prepared, planes, mean, samples, outputs
        free_kept()
        return self._after.run({**arrays, "filtered": result}, seconds)

    def _samples(self, planes: Array, shift: Shift) -> Array | Callable[[Array], None]:
        """Return one of the shifts of planes, or what writes it."""
        return planes if not any(shift) and planes.dtype == self._dtype else partial(_shift, planes, shift)


class _Round:
    """Statistics that are computed in one pass over the blocks.

    Parameters
    ----------
    block : Graph
    members : sequence of _BlockStatistic
    known : set of str
        The results of former rounds.
    shifts : list of tuple of int
    """

    def __init__(
        self, block: Graph, members: Sequence[_BlockStatistic], known: set[str], shifts: list[Shift]
    ) -> None:
        self._members, self._shifts = members, shifts
        graph, joined = block.with_inputs(known), []
        outputs: dict[str, tuple[Shape, str, Expression]] = {}
        self._programs: dict[_BlockStatistic, tuple[CpuGraph, CpuGraph]] = {}
        for member in members:
            for k, (view, is_joined) in enumerate(zip(member.node.results, member.joined, strict=True)):
                name = f"{view.buffer}.block"
                outputs[name] = view.shape, view.dtype, Load(view)
                if member.kept:
                    outputs[name] = member.node.shapes[k], view.dtype, member.node.sources[k]
                joined += [name] * is_joined
            if member.kept:
                self._programs[member] = _limits(block, member, known), _reduction(member)
            known = known.union(member.results)
        self._first = ItemProgram(graph.with_outputs(outputs), ("samples",))
        others = {name: outputs[name] for name in joined}
        self._others = ItemProgram(graph.with_outputs(others), ("samples",)) if others else None

    @property
    def nbytes(self) -> int:
        """The bytes that a run takes besides its inputs."""
        sizes = [member.samples * np.dtype(member.node.results[0].dtype).itemsize for member in self._members]
        blocks = [program.nbytes for program in (self._first, self._others) if program is not None]
        return sum(sizes) + max(*blocks, *(each.nbytes for _, each in self._programs.values()), 0)

    def run(self, planes: Array, known: Mapping[str, Any], seconds: dict[str, float] | None) -> Arrays:
        """Return the results by name."""
        sources: Arrays = {}
        for number, shift in enumerate(self._shifts):
            program = self._first if number == 0 else self._others
            if program is not None:
                prepared = program.prepared(known)
                samples = [partial(_shift, planes[k], shift) if number else planes[k] for k in program.items]
                parts = [
                    program.run(prepared, item, part, seconds)
                    for item, part in zip(program.items, samples, strict=True)
                ]
                names = parts[0].keys()
                arrays = {name: np.concatenate([part[name] for part in parts]) for name in names}
                self._join(sources, arrays if len(parts) > 1 else parts[0], number)
        results: Arrays = {}
        for member in self._members:
            arrays = {view.buffer: sources[f"{view.buffer}.block"] for view in member.node.results}
            if member.kept:
                limits, reduction = self._programs[member]
                arrays = reduction.run({**arrays, **limits.run({**known, **results}, seconds)}, seconds)
                arrays = {name.removesuffix(".result"): array for name, array in arrays.items()}
            results |= {
                view.buffer: arrays[view.buffer].astype(view.dtype, copy=False)
                for view in member.node.results
            }
        return results

    def _join(self, sources: Arrays, parts: Arrays, number: int) -> None:
        """Add what a block contributes to statistics."""
        for member in self._members:
            for view, shape in zip(member.node.results, member.shapes, strict=True):
                name = f"{view.buffer}.block"
                if name not in parts:
                    continue
                part = parts[name]
                if member.kept:
                    whole = sources.setdefault(name, empty(shape, part.dtype) if number == 0 else part)
                    whole[:, number :: shape[1] // part.shape[1]] = part
                elif number == 0:
                    sources[name] = part.astype(np.float64)
                elif member.node.kind == "sum":
                    sources[name] += part
                else:
                    np.maximum(sources[name], part, out=sources[name])


# --- graphs ---------------------------------------------------------------------------------------


def _before(pipeline: Pipeline, recipe: ImageRecipe) -> Graph:
    """Return the graph of the planes to decompose, and of where they are valid."""
    values = {}

    def pyramid(pipeline: Pipeline, x: Any, given: Any, recipe: ImageRecipe, sigma: Any, valid: Any) -> Any:
        values["samples"] = x
        if given is not x:
            values["given"] = given
        if valid is not None:
            values["valid"] = valid
        return x

    graph = image_graph(pipeline, recipe, pyramid)
    return graph.with_outputs({name: (x.shape, x.dtype, x.expression) for name, x in values.items()})


def _block(pipeline: Pipeline, recipe: ImageRecipe, before: Graph, count: int) -> Graph:
    """Return the graph that filters one shift of the planes, or all of them if ``count`` is 1."""
    graph = Graph(blocks=count)
    arrays = {
        name: symbolic_input(graph, name, buffer.shape, buffer.dtype)
        for name, buffer in before.outputs.items()
    }
    x, sigma, layout = arrays["samples"], None, recipe.layout
    if recipe.sigma:
        sigma = symbolic_input(graph, "sigma", layout.planes_shape[:1], layout.working_dtype)
    given = arrays["given"] if "given" in arrays else symbolic_input(graph, "given", x.shape, x.dtype)
    filtered = filtered_pyramid(pipeline, x, given, recipe, sigma, arrays.get("valid"), count > 1)
    symbolic_output(graph, "filtered", filtered)
    return graph


def _after(pipeline: Pipeline, recipe: ImageRecipe) -> Graph:
    """Return the graph of the result."""

    def pyramid(pipeline: Pipeline, x: Any, given: Any, recipe: ImageRecipe, sigma: Any, valid: Any) -> Any:
        return symbolic_input(x.graph, "filtered", x.shape, x.dtype)

    return image_graph(pipeline, recipe, pyramid)


def _are_copies(before: Graph) -> bool:
    """Return whether planes are the samples of the image, in the same order."""
    nodes = before.scheduled().nodes
    if len(nodes) != 1 or not isinstance(nodes[0], Pointwise) or len(nodes[0].results) != 1:
        return False
    (value,), (result,) = nodes[0].values, nodes[0].results
    if not isinstance(value, Load) or value.finer or value.view.buffer != "image":
        return False
    size = math.prod(before.inputs["image"].shape)
    return all(
        view.offset == 0 and math.prod(view.shape) == size and view.plane_strides(0, 0) is not None
        for view in (value.view, result)
    )


# --- statistics -----------------------------------------------------------------------------------


def _statistics(block: Graph, whole_graph: Graph, count: int) -> list[_BlockStatistic] | None:
    """Return the statistics of a block, or None if they do not follow from those of all blocks."""
    reads: dict[str, frozenset[str]] = {}
    for node in block.nodes:
        read = frozenset[str]().union(*(reads.get(view.buffer, ()) for view in node.reads))
        for view in node.writes:
            reads[view.buffer] = frozenset({view.buffer}) if isinstance(node, Reduce) else read
    statistics, nodes = [], block.reductions()
    wholes = whole_graph.reductions()
    if [node.kind for node in nodes] != [node.kind for node in wholes]:
        return None
    for node, of_all in zip(nodes, wholes, strict=True):
        pairs = list(zip(map(math.prod, of_all.shapes), map(math.prod, node.shapes), strict=True))
        if not all(n in (m, count * m) for n, m in pairs):
            return None
        sources, limits = (
            frozenset[str]().union(*(reads.get(load.view.buffer, ()) for load in loads(*values)))
            for values in (node.sources, node.limits)
        )
        statistics.append(
            _BlockStatistic(node, of_all.shapes, tuple(n != m for n, m in pairs), sources, limits)
        )
    return statistics


def _rounds(statistics: Sequence[_BlockStatistic], samples: int) -> Iterator[list[_BlockStatistic]]:
    """Yield the statistics that are computed in the same pass, which keep about ``samples`` samples."""
    pending, known = list(statistics), set[str]()
    while pending:
        members: list[_BlockStatistic] = []
        available, kept = set(known), 0
        for each in pending:
            # Limits of arrays that are kept are computed when all blocks are done.
            is_ready = each.sources <= known and each.limits <= (available if each.kept else known)
            if is_ready and (not kept or kept + each.samples <= samples):
                members.append(each)
                kept += each.samples
                available.update(each.results)
        pending = [each for each in pending if each not in members]
        known = available
        yield members


def _limits(block: Graph, member: _BlockStatistic, known: set[str]) -> CpuGraph:
    """Return the program of the limits of a statistic."""
    outputs = {
        f"{view.buffer}.limit": (view.shape, view.dtype, limit)
        for view, limit in zip(member.node.results, member.node.limits, strict=True)
    }
    return CpuGraph(block.with_inputs(known).with_outputs(outputs))


def _reduction(member: _BlockStatistic) -> CpuGraph:
    """Return the program of a statistic of the arrays of all blocks."""
    graph = Graph()
    for view, shape in zip(member.node.results, member.shapes, strict=True):
        source = symbolic_input(graph, view.buffer, shape, view.dtype)
        limit = symbolic_input(graph, f"{view.buffer}.limit", view.shape, view.dtype)
        symbolic_output(graph, f"{view.buffer}.result", reduced(member.node.kind, [source], [limit])[0])
    return CpuGraph(graph)


# --- shifts ---------------------------------------------------------------------------------------


def _places(shift: Shift, places: slice) -> tuple[slice, ...]:
    """Return the given places along axes that are shifted, and all along others."""
    return (slice(None), *(places if moved else slice(None) for moved in shift))


def _shift(planes: Array, shift: Shift, result: Array) -> None:
    """Write planes whose lines begin one sample earlier, with a mirrored sample, along some axes."""
    for first in product(*((False, True)[: 1 + moved] for moved in shift)):
        source, target = [slice(None)], [slice(None)]
        for moved, is_first, n in zip(shift, first, planes.shape[1:], strict=True):
            mirrored = min(1, n - 1)
            source.append(
                slice(mirrored, mirrored + 1) if is_first else slice(0, -1) if moved else slice(None)
            )
            target.append(slice(0, 1) if is_first else slice(1, None) if moved else slice(None))
        result[tuple(target)] = planes[tuple(source)]


def _divide(total: Array) -> None:
    """Divide sums over shifts by their number: the last sample of a line is that of no shift alone."""
    for last in product((False, True), repeat=total.ndim - 1):
        places = (slice(None), *(slice(-1, None) if is_last else slice(0, -1) for is_last in last))
        total[places] *= total.dtype.type(0.5 ** last.count(False))
