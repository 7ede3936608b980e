"""Transforms of Dask arrays: the stages they are divided into, and the arrays that come out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from ...arrays import DASK, result_dtype
from ...errors import ArgumentError
from ...lowering.nesting import flat_bands, shapes_of
from ...lowering.spec import BandTree, TransformSpec
from .plans import PLANS, aligned_blocks, chosen_stages
from .sources import ChunkedArray, named
from .stages import Tasks, forward_stage, inverse_stage, select_item
from .undecimated import undecimated_tasks, undecimated_tasks_back

__all__ = ["as_chunked", "as_dask", "decompose", "recompose"]

Shape = tuple[int, ...]


def decompose(
    spec: TransformSpec, x: Any, levels: int, backend: str, integers: np.dtype[Any] | None
) -> list[Any]:
    """Return keyed coefficients of a Dask array, as Dask arrays.

    Parameters
    ----------
    spec : TransformSpec
    x : dask.array.Array
    levels : int
    backend : str
        The engine that transforms chunks of NumPy.
    integers : dtype, optional
        Dtype of the coefficients of an LWT of integers.
    """
    dtype = result_dtype(x.dtype) if integers is None else integers
    if levels == 0:
        return [x.astype(dtype)]
    tree = BandTree.of_samples(spec, x.shape, levels)
    if 0 in x.shape:
        return tree.by_key([da.zeros(shape, dtype=dtype) for shape in tree.flat_shapes])
    x = _without_empty_chunks(x)
    if spec.family == "swt":
        bands, tasks = undecimated_tasks(tree, as_chunked(x), backend, dtype)
    else:
        bands, tasks = forward_tasks(tree, as_chunked(x), backend, integers, dtype, plan_name())
    meta = meta_from_array(x, dtype=dtype)
    arrays = []
    for number, band in enumerate(bands):
        selected = band
        if band.item is not None:
            selected = select_item(tasks, named(f"{band.name}-{number}", "band"), band)
        arrays.append(_dask_array(selected, tasks, [x], meta))
    return tree.by_key(arrays)


def plan_name() -> str:
    """Return the plan that the configuration of Dask asks for."""
    name = dask.config.get("undula.plan", "auto")
    if name not in PLANS:
        raise ArgumentError(f"the setting undula.plan is one of {', '.join(PLANS)}; got {name!r}")
    return str(name)


def forward_tasks(
    tree: BandTree,
    source: ChunkedArray,
    backend: str,
    integers: np.dtype[Any] | None,
    dtype: np.dtype[Any],
    plan: str,
) -> tuple[list[ChunkedArray], Tasks]:
    """Return all bands in flat order, and the tasks that compute them."""
    name = f"undula-forward-{tokenize(source.name, tree, backend, str(integers), plan)}"
    tasks, low = Tasks(), source
    details: list[ChunkedArray] = []
    stages = chosen_stages(tree, source, dtype, plan)
    for number, stage in enumerate(stages):
        extent = None if number else (tree.sample_shapes[0], tree.levels)
        bands = forward_stage(
            tasks, f"{name}-{number}", low, stage.tree, stage.blocks, backend, integers, dtype, extent
        )
        low, details = bands[0], [*bands[1:], *details]
        if number < len(stages) - 1:
            # Only the approximation is sent to where the next stage needs it.
            low = select_item(tasks, named(f"{name}-{number}", "low"), low)
    return [low, *details], tasks


def recompose(
    spec: TransformSpec, coeffs: Sequence[Any], shape: Shape | None, backend: str, dtype: np.dtype[Any]
) -> Any:
    """Return the samples of keyed coefficients as a Dask array.

    Parameters
    ----------
    spec : TransformSpec
    coeffs : list
        Keyed; arrays of Dask or NumPy, and None for zeros.
    shape : tuple of int, optional
        Shape of the samples.
    backend : str
    dtype : dtype
        Dtype in which to transform.
    """
    tree, cut = BandTree.of_bands(spec, shapes_of(coeffs, DASK), shape)
    flat = [None if band is None else as_dask(band) for band in flat_bands(coeffs, spec.keys[1:])]
    flat = [None if band is None else _without_empty_chunks(band) for band in flat]
    if tree.levels == 0:
        return next(band for band in flat if band is not None).astype(dtype)
    flat = [flat[0], *flat[len(flat) - tree.levels * (len(spec.keys) - 1) :]]
    if flat[0] is not None and flat[0].shape != cut:
        flat[0] = flat[0][tuple(slice(n) for n in cut or ())]
    if 0 in tree.sample_shapes[0]:
        return da.zeros(tree.sample_shapes[0], dtype=dtype)
    given = [band for band in flat if band is not None]
    sources = [None if band is None else as_chunked(band) for band in flat]
    if spec.family == "swt":
        samples, tasks = undecimated_tasks_back(tree, sources, backend, dtype)
    else:
        samples, tasks = inverse_tasks(tree, sources, backend, dtype, plan_name())
    return _dask_array(samples, tasks, given, meta_from_array(given[0], dtype=dtype))


def inverse_tasks(
    tree: BandTree, bands: Sequence[ChunkedArray | None], backend: str, dtype: np.dtype[Any], plan: str
) -> tuple[ChunkedArray, Tasks]:
    """Return the samples of bands in flat order, and the tasks that compute them."""
    spec, count = tree.spec, len(tree.spec.keys) - 1
    names = [None if band is None else band.name for band in bands]
    name = f"undula-inverse-{tokenize(names, tree, backend, str(dtype), plan)}"
    tasks = Tasks()
    low, details = bands[0], list(bands[1:])
    first = tree.levels
    # Halos of synthesis are about as wide as filters at each level, so that levels are best done one by one.
    depths = [tree.levels] if plan == "fused" else [1] * tree.levels
    for number, depth in enumerate(depths):
        first -= depth
        stage_tree = BandTree(spec, tree.sample_shapes[first : first + depth])
        of_stage, details = details[: depth * count], details[depth * count :]
        sources = [low, *of_stage]
        blocks = aligned_blocks(spec, _boundaries_back(stage_tree, sources), depth)
        if any(source is not None for source in sources):
            low = inverse_stage(tasks, f"{name}-{number}", sources, stage_tree, blocks, backend, dtype)
    assert low is not None
    return low, tasks


def _boundaries_back(tree: BandTree, sources: Sequence[ChunkedArray | None]) -> list[list[int]]:
    """Return where blocks of samples begin, by the chunks of the finest details, or of other bands."""
    known = [(band, level) for band, level in zip(sources, _levels(tree), strict=True) if band is not None]
    band, level = known[-1]
    shape = tree.sample_shapes[0]
    boundaries = []
    for axis, (places, length) in enumerate(zip(band.boundaries, shape, strict=True)):
        if axis in tree.spec.axes:
            inner = sorted({place << level for place in places[1:-1] if 0 < place << level < length})
            boundaries.append([0, *inner, length])
        else:
            boundaries.append(sorted(set(places)))  # A band without coefficients may have empty chunks.
    return boundaries


def _levels(tree: BandTree) -> list[int]:
    count = len(tree.spec.keys) - 1
    return [tree.levels, *(level for level in range(tree.levels, 0, -1) for _ in range(count))]


def as_chunked(x: Any) -> ChunkedArray:
    """Return a Dask array as the stages see it."""
    boundaries = tuple((0, *accumulate(sizes)) for sizes in x.chunks)
    return ChunkedArray(x.name, boundaries, x.dtype)


def _without_empty_chunks(x: Any) -> Any:
    """Return a Dask array without chunks that have no samples, unless all have none."""
    if 0 in x.shape or not any(0 in sizes for sizes in x.chunks):
        return x
    return x.rechunk(tuple(tuple(size for size in sizes if size) for sizes in x.chunks))


def as_dask(band: Any) -> Any:
    """Return an array of NumPy or Dask as one of Dask."""
    return band if isinstance(band, da.Array) else da.from_array(np.asarray(band), chunks=-1)


def _dask_array(array: ChunkedArray, tasks: Tasks, sources: Sequence[Any], meta: Any) -> Any:
    """Return an array in chunks as a Dask array, with all tasks that it depends on."""
    layers: dict[str, Any] = {}
    dependencies: dict[str, set[str]] = {}
    given = {source.name: source for source in sources}
    waiting = [array.name]
    while waiting:
        name = waiting.pop()
        if name in layers:
            continue
        if name in given:
            graph = given[name].__dask_graph__()
            layers.update(graph.layers)
            dependencies.update(graph.dependencies)
            continue
        layers[name], dependencies[name] = tasks.layers[name], tasks.dependencies[name]
        waiting.extend(tasks.dependencies[name])
    return da.Array(HighLevelGraph(layers, dependencies), array.name, array.chunks, meta=meta)
