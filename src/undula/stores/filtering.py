"""Filters of arrays in stores, as functions of Dask arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any
from uuid import uuid4

import numpy as np

from ..errors import ArgumentError, UndulaError
from ..io.files import import_optional
from .blocks import block_lengths
from .opening import NamedArray, SourceArray, open_array, open_source
from .partial import PartialStore
from .running import TaskRunner, task_runner
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

__all__ = ["apply"]


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
        Options of ``work`` in JSON's types. A call resumes another one if they are equal.
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
    given = open_source(source)
    path = checked_target(target, given.location)
    lengths = block_lengths(given.shape, given.chunks, range(len(given.shape)), 0)[0]
    if blocks is not None:
        lengths = tuple(blocks)
    token = uuid4().hex
    x = da.from_array(
        NamedArray(given.array),
        chunks=lengths,
        name=f"undula-store-{token}",
        inline_array=True,
        meta=np.empty((0,) * len(lengths), given.array.dtype),
    )
    if given.array.dtype != given.dtype:
        x = x.astype(given.dtype)
    try:
        result = work(x)
    except UndulaError as error:
        raise ArgumentError(f"cannot filter {source} in chunks: {error}") from None
    if not isinstance(result, da.Array) or result.shape != given.shape:
        raise ArgumentError(f"a filter must return a Dask array of shape {given.shape}, got {result!r}")
    dtype = np.dtype(result.dtype)
    result = result.rechunk(lengths)
    made_by = describe_work("apply", given, {"filter": description, "version": version()}, dtype=dtype.name)
    with PartialStore(path, made_by, overwrite, resume) as output:
        if not output.prepared:
            with output.preparing():
                _create_like(output, given, dtype)
        location = str(output.path / given.component)
        _store_blocks(result, output, location, token, progress, runner, scheduler, workers)


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
    open_array(location, token, True)[region] = np.asarray(values)


def _store_blocks(
    result: Any,
    output: PartialStore,
    location: str,
    token: str,
    progress: Progress | None,
    runner: TaskRunner | None,
    scheduler: str | None,
    workers: int | None,
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
    with task_runner(scheduler, workers, runner) as running, continuing(output, len(places)):
        running.compute(tasks, finisher(output, 0, numbers, len(places), progress))
