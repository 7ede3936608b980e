"""The engines on arrays of NumPy where they are: what the CPU engine and the reference have in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import ArrayView, result_dtype
from ..lowering.graph import Graph
from ..lowering.rules import shrunk
from ..lowering.spec import BandTree
from ..lowering.symbolic import symbolic_input, symbolic_output, xp
from .base import (
    DEFAULT_OPTIONS,
    Engine,
    GraphExecutable,
    RunCache,
    TransformOptions,
    UnfollowableStridesError,
)
from .cpu.executable import FIRST_ARRAY
from .memory import empty

__all__ = ["NumpyEngine", "array_view"]

Array = NDArray[Any]
Shape = tuple[int, ...]


class NumpyEngine(Engine):
    """An engine that runs on arrays of NumPy where they are."""

    exact = True

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of results: float32 stays, float16 becomes it, integers become float64."""
        return result_dtype(dtype)

    def run(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Array | None],
        dtype: np.dtype[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
        fresh: bool = True,
        cache: RunCache | None = None,
    ) -> None:
        """Transform arrays in flat order; samples are padded, and rules applied, before or after.

        Arrays whose strides kernels cannot follow are copied.
        """
        samples, *bands = arrays
        assert samples is not None
        if options.rule is not None:
            limits = np.asarray(bands[-1], np.float64)
            bands = [bands[0], *_shrunk(self, tree, bands[1:-1], options.rule, limits)]
        results: list[tuple[Array, Array]] = []  # Arrays of the caller, and what to copy to them afterwards.
        if samples.shape != tree.sample_shapes[0]:
            padded = np.zeros(tree.sample_shapes[0], samples.dtype)
            corner = padded[tuple(slice(n) for n in samples.shape)]
            if back:
                results.append((samples, corner))
            else:
                corner[...] = samples
            samples = padded
        ready = [samples, *bands]

        def copied(number: int) -> ArrayView | None:
            """Put an array in C order in the place of another one, and return its view."""
            array = ready[number]
            assert array is not None
            if (number == 0) == back:
                ready[number] = new = empty(array.shape, array.dtype)
                results.append((array, new))
            else:
                ready[number] = new = np.array(array, order="C")
            return array_view(new)

        views = [x if x is None else array_view(x) or copied(number) for number, x in enumerate(ready)]
        while True:
            try:
                executable = self.compile(back, tree, dtype, views, options)
                break
            except UnfollowableStridesError as error:
                number = error.buffer - FIRST_ARRAY
                views[number] = copied(number)
        executable.run(ready)
        for target, values in results:
            target[...] = values


def array_view(x: Array) -> ArrayView | None:
    """Return an array as kernels see it, in any buffer; None if they cannot, because it is not aligned.

    Arrays of one layout have equal views: the strides of axes of one sample do not matter.
    """
    return _view(x.shape, x.strides, x.dtype) if x.flags.aligned else None


@lru_cache(maxsize=4096)
def _view(shape: Shape, strides: Shape, dtype: np.dtype[Any]) -> ArrayView | None:
    view = ArrayView.contiguous(0, shape, dtype.name)
    if all(n == 1 or step == other for n, step, other in zip(shape, strides, view.byte_strides, strict=True)):
        return view
    if any(step % dtype.itemsize for step in strides):
        return None
    return view._replace(strides=tuple(step // dtype.itemsize for step in strides))


@lru_cache(maxsize=64)
def _rule_graph(engine: Engine, rule: str, shapes: tuple[Shape, ...], dtype: str) -> GraphExecutable:
    """Return the program that applies a rule to bands, of which each has its own limits."""
    graph = Graph()
    limits = symbolic_input(graph, "limits", (2, len(shapes)), dtype)
    for k, shape in enumerate(shapes):
        band = symbolic_input(graph, f"band{k}", shape, dtype)
        symbolic_output(graph, f"result{k}", shrunk(xp, rule, band, limits[0, k], limits[1, k]))
    return engine.compile_graph(graph)


def _shrunk(
    engine: Engine, tree: BandTree, details: Sequence[Array | None], rule: str, limits: Array
) -> list[Array | None]:
    """Return details after a rule; in flat order the coarsest level comes first, in limits the finest."""
    by_band = np.moveaxis(limits[: tree.levels][::-1], 1, 0).reshape(2, -1)  # in flat order
    present = {number: band for number, band in enumerate(details) if band is not None}
    if not present:
        return list(details)
    dtype = next(iter(present.values())).dtype
    graph = _rule_graph(engine, rule, tuple(band.shape for band in present.values()), str(dtype))
    inputs = {f"band{k}": band for k, band in enumerate(present.values())}
    results = graph.run({"limits": by_band[:, list(present)].astype(dtype), **inputs})
    shrunk_details = list(details)
    for k, number in enumerate(present):
        shrunk_details[number] = results[f"result{k}"]
    return shrunk_details
