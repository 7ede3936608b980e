"""Filters of arrays in stores, as functions of Dask arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any
from uuid import uuid4

import numpy as np

from ..engines.memory import keep_at_most
from ..errors import ArgumentError, UndulaError
from ..io.files import import_optional
from .blocks import block_lengths
from .filter_passes import FilterPasses, regions_of, tasks_at_once
from .opening import NamedArray, SourceArray, open_source
from .partial import PartialStore
from .running import TaskRunner, ThreadRunner, task_runner
from .work import (
    Progress,
    StorePath,
    checked_target,
    continuing,
    create_group,
    describe_work,
    finisher,
    version,
)
from .writing import run_token, write_region

__all__ = ["apply"]

KEPT_BYTES = 1 << 28  # Memory that is kept from one block to the next, and by Dask from one pass to the next.


def apply(
    source: StorePath,
    target: StorePath,
    work: Callable[[Any], Any],
    *,
    description: Any = None,
    blocks: Sequence[int] | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    runner: TaskRunner | None = None,
) -> None:
    """Filter an array in a store by a function of Dask arrays.

    Parameters
    ----------
    source : path
        An array of Zarr, a group with a single array, or an image of OME-Zarr.
    target : path
        The folder to write: an array with chunks, codecs, names of axes and attributes of the source. Of an
        image of OME-Zarr, it is an image with its axes, channels and distances, without smaller levels.
    work : callable
        Takes a Dask array and returns one of the same shape, such as :func:`undula.denoise` or a
        :class:`undula.Pipeline`.
    description : object, optional
        What ``work`` does, in JSON's types. Filters of Undula describe themselves: an interrupted call is
        continued by one with the same pipeline, options and source. The work of other functions is known by
        this alone; without it, such a call begins again.
    blocks : sequence of int, optional
        Lengths of the chunks of the Dask array, multiples of those in the store. By default, chunks are
        joined up to two million samples.
    scheduler : str, optional
        Address of the scheduler of a Dask cluster, whose workers can read and write both stores.
    workers : int, optional
        Number of processes to start on this machine. By default, threads of this process are used.
    overwrite : bool, default False
        Whether to replace a store that exists, when the new one is complete.
    resume : bool, default True
        Whether to continue an interrupted call with the same arguments.
    progress : callable, optional
        Called with the number of regions that are done, and the number of all regions.
    runner : TaskRunner, optional
        What runs tasks, instead of ``scheduler`` and ``workers``.

    Examples
    --------
    >>> import tempfile, zarr
    >>> folder = tempfile.mkdtemp()
    >>> _ = zarr.create_array(f"{folder}/x.zarr", data=np.arange(16.0).reshape(4, 4), chunks=(2, 2))
    >>> apply(f"{folder}/x.zarr", f"{folder}/y.zarr", lambda x: 2 * x)
    >>> float(zarr.open_array(f"{folder}/y.zarr")[3, 3])
    30.0
    """
    da = import_optional("dask.array", "scale")
    dask = import_optional("dask", "scale")
    from ..filters.chunked import plan_of

    given = open_source(source)
    path = checked_target(target, given.location)
    lengths = block_lengths(given.shape, given.chunks, range(len(given.shape)), 0)[0]
    if blocks is not None:
        lengths = tuple(blocks)
    x = da.from_array(
        NamedArray(given.array),
        chunks=lengths,
        name=f"undula-store-{uuid4().hex}",
        inline_array=True,
        meta=np.empty((0,) * len(lengths), given.array.dtype),
    )
    if given.array.dtype != given.dtype:
        x = x.astype(given.dtype)
    source_name = x.name  # Assignments to items change the array in place, and its name.
    try:
        with dask.config.set({"undula.kept-bytes": KEPT_BYTES}):
            result = work(x)
    except UndulaError as error:
        raise ArgumentError(f"cannot filter {source} in chunks: {error}") from None
    if not isinstance(result, da.Array) or result.shape != given.shape:
        raise ArgumentError(f"a filter must return a Dask array of shape {given.shape}, got {result!r}")
    dtype = np.dtype(result.dtype)
    plan = plan_of(result, source_name)
    filters = None if plan is None else plan.to_json()
    is_known = not (filters is None and description is None)
    if plan is not None:
        plan, joined = regions_of(plan, given.chunks)
        if blocks is None:
            lengths = joined
    options = {"filter": filters, "description": description, "version": version(), "regions": lengths}
    made_by = describe_work("apply", given, options, dtype=dtype.name)
    with (
        keep_at_most(KEPT_BYTES),
        PartialStore(path, made_by, overwrite, resume, is_known) as output,
        run_token() as token,
    ):
        if not output.prepared:
            with output.preparing():
                _create_like(output, given, dtype)
        location = str(output.path / given.component)
        if plan is None:
            with task_runner(scheduler, workers, runner) as running:
                _store_blocks(result.rechunk(lengths), output, location, token, progress, running)
            return
        if scheduler is None and workers is None and runner is None:
            runner = ThreadRunner(tasks_at_once(plan, lengths))
        passes = FilterPasses(plan, output, token, given.location, location, lengths)
        with task_runner(scheduler, workers, runner) as running:
            passes.run(running, progress)


def _create_like(output: PartialStore, source: SourceArray, dtype: np.dtype[Any]) -> None:
    """Create an array like the source; of another dtype, with the default codecs."""
    import zarr

    names = source.names if source.array.metadata.zarr_format == 3 else None
    if source.component:
        create_group(output, source.array.metadata.zarr_format, source.filtered_attributes())
    location = str(output.path / source.component)
    if dtype == source.dtype:
        zarr.from_array(
            location,
            data=source.array,
            write_data=False,
            fill_value=source.array.fill_value,
            attributes=dict(source.array.attrs),
            dimension_names=names,
        )
        return
    zarr.create_array(
        location,
        shape=source.shape,
        chunks=source.chunks,
        dtype=dtype,
        zarr_format=source.array.metadata.zarr_format,
        attributes=dict(source.array.attrs),
        dimension_names=names,
    )


def _write_block(values: Any, location: str, token: str, region: tuple[slice, ...]) -> None:
    """Write a block of a Dask array; a task of its own."""
    write_region(location, token, region, np.asarray(values))


def _store_blocks(
    result: Any,
    output: PartialStore,
    location: str,
    token: str,
    progress: Progress | None,
    runner: TaskRunner,
) -> None:
    """Compute and write the blocks that are not done."""
    from dask.array.core import slices_from_chunks
    from dask.delayed import delayed

    write = delayed(_write_block, pure=False)
    blocks = result.to_delayed()
    places = list(product(*map(range, blocks.shape)))
    regions = slices_from_chunks(result.chunks)
    numbers = [number for number in range(len(places)) if (0, number) not in output.done]
    tasks = [write(blocks[places[number]], location, token, regions[number]) for number in numbers]
    if progress is not None:
        progress(len(output.done), len(places))
    with continuing(output, len(places)):
        runner.compute(tasks, finisher(output, 0, numbers, len(places), progress))
