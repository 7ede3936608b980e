"""The functions on stores: what they check, create and run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ..errors import ArgumentError, FileError, UndulaError
from ..functions import ilwtn, waverecn
from ..io.files import import_optional, short_message
from ..lowering.borders import LWT_MODES
from ..lowering.spec import MAX_LEVEL, checked_level, transform_spec
from ..wavelets import as_wavelet
from .blocks import StageTransform, block_lengths
from .coefficients import (
    APPROXIMATION,
    CoefficientHeader,
    CopyStage,
    band_chunks,
    create_bands,
    create_scratch,
    forward_stages,
    inverse_stages,
    read_header,
    work_dtype,
)
from .opening import NamedArray, SourceArray, multiscale, open_array, open_group, open_source, spatial_axes
from .partial import PartialStore
from .pyramids import (
    ChunkCopyStage,
    PyramidStage,
    default_levels,
    lowpass_moments,
    multiscales,
    ome_names,
    pyramid_axes,
)
from .running import TaskRunner, task_runner
from .work import Progress, check_apart, continuing, finisher, run_stages, to_dtype

__all__ = ["apply", "inverse", "level_shapes", "pyramid", "read_coefficients", "refine", "transform"]

StorePath = str | Path
FORMATS = (2, 3)
COEFFICIENTS = "coefficients"  # The group of a pyramid that has details.


def _version() -> str:
    from .. import __version__

    return __version__


def _wavelet_name(wavelet: Any) -> str:
    """Return the name of a built-in wavelet, by which a store can be read back."""
    name = as_wavelet(wavelet).name
    if as_wavelet(name) != as_wavelet(wavelet):
        raise ArgumentError(f"stores take built-in wavelets, which have a name; got {wavelet!r}")
    return str(name)


def _target(target: StorePath, source: str) -> Path:
    if "://" in str(target):
        raise ArgumentError(
            f"outputs are folders of a file system that all workers can write to, got {target}"
        )
    check_apart(source, Path(target))
    return Path(target)


def _zarr_format(zarr_format: int | None, source: Any) -> int:
    number = zarr_format if zarr_format is not None else source.metadata.zarr_format
    if number not in FORMATS:
        raise ArgumentError(f"zarr_format must be 2 or 3, got {zarr_format!r}")
    return int(number)


@contextmanager
def _runner(runner: TaskRunner | None, scheduler: str | None, workers: int | None) -> Iterator[TaskRunner]:
    if runner is not None:
        yield runner
        return
    with task_runner(scheduler, workers) as started:
        yield started


@contextmanager
def _prepared(output: PartialStore) -> Iterator[None]:
    """Report errors while arrays are created as errors of the output."""
    try:
        yield
    except UndulaError:
        raise
    except Exception as error:  # Zarr raises errors of many kinds.
        raise FileError(f"cannot write {output.target}: {short_message(error)}") from None
    output.mark_prepared()


def transform(
    source: StorePath,
    target: StorePath,
    wavelet: Any = "cdf97",
    mode: str = "symmetric",
    level: int | None = 3,
    axes: str | int | Sequence[int | str] | None = None,
    *,
    dtype: Any = None,
    zarr_format: int | None = None,
    backend: str = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    runner: TaskRunner | None = None,
) -> None:
    """Write the wavelet coefficients of an array to a store.

    They are those of :func:`undula.wavedecn` of the whole array, bit for bit.

    Parameters
    ----------
    source : path
        An array of Zarr, a group with a single array, or an image of OME-Zarr.
    target : path
        The folder to write: a group with the arrays ``approximation``, ``level1/ad`` and so on.
    wavelet : str or Wavelet, default "cdf97"
        A built-in wavelet.
    mode : str, default "symmetric"
        How lines are extended beyond their ends.
    level : int or None, default 3
        Number of levels; None for as many as are useful.
    axes : str, int or sequence, optional
        Axes to transform, by number or name, such as ``"z,y,x"``. By default, all but those named ``t``,
        ``c`` or ``time``.
    dtype : {"float32", "float64"}, optional
        Dtype of the coefficients. By default float32 for integers of 8 and 16 bits and for float32, and
        float64 for others.
    zarr_format : {2, 3}, optional
        The format of the new store. By default that of the source.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        The engine that transforms blocks; ``auto`` is the CPU.
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
    >>> x = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    >>> _ = zarr.create_array(f"{folder}/x.zarr", data=x, chunks=(32, 32))
    >>> transform(f"{folder}/x.zarr", f"{folder}/coeffs.zarr", "haar", level=2)
    >>> inverse(f"{folder}/coeffs.zarr", f"{folder}/back.zarr")
    >>> bool((zarr.open_array(f"{folder}/back.zarr")[...] == x).all())
    True
    """
    given = open_source(source)
    path = _target(target, given.location)
    numbers = spatial_axes(given, axes)
    spec = transform_spec(len(given.shape), wavelet, mode, numbers)
    levels = checked_level(given.shape, spec.wavelets, spec.axes, level)
    name = _wavelet_name(wavelet)
    result = work_dtype(given.dtype) if dtype is None else np.dtype(dtype)
    if result.kind not in ("c" if given.dtype.kind == "c" else "f"):
        raise ArgumentError(f"dtype must be float32 or float64, got {dtype!r}")
    number = _zarr_format(zarr_format, given.array)
    header = CoefficientHeader(
        shape=given.shape,
        dtype=given.dtype.name,
        axes=numbers,
        wavelet=name,
        mode=mode,
        lifted=False,
        levels=levels,
        chunks=given.chunks,
        names=given.names,
        attributes=dict(given.array.attrs),
        version=_version(),
    )
    work = _work("transform", given, header.to_json(), dtype=result.name, zarr_format=number)
    with PartialStore(path, work, overwrite, resume) as output:
        if not output.prepared:
            with _prepared(output):
                group = _create_group(output, number, {"undula": header.to_json()})
                create_bands(group, header, result, output.scratch)
        stages = forward_stages(
            uuid4().hex,
            given.location,
            str(output.path),
            output.scratch,
            header,
            result,
            backend,
            str(source),
        )
        with _runner(runner, scheduler, workers) as running:
            run_stages(running, output, stages, progress)


def _work(operation: str, source: SourceArray, options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Describe work for the journal."""
    return {
        "operation": operation,
        "source": source.location,
        "source_metadata": source.fingerprint,
        **options,
        **more,
    }


def _create_group(output: PartialStore, zarr_format: int, attributes: dict[str, Any]) -> Any:
    import zarr

    options: Any = {"zarr_format": zarr_format, "attributes": attributes}
    return zarr.create_group(str(output.path), **options)


def inverse(
    source: StorePath,
    target: StorePath,
    *,
    zarr_format: int | None = None,
    backend: str = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    runner: TaskRunner | None = None,
) -> None:
    """Reconstruct an array from its coefficients in a store, in its shape and dtype.

    Integers are rounded and clipped to their range, so integers of up to 32 bits come back exactly.

    Parameters
    ----------
    source : path
        A store that :func:`transform` wrote, or the group ``coefficients`` of a pyramid with details.
    target : path
        The folder to write: an array with the chunks, the names of axes and the attributes of the original.
    zarr_format : {2, 3}, optional
        The format of the new store. By default that of the source.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        The engine that transforms blocks; ``auto`` is the CPU.
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
    >>> x = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    >>> _ = zarr.create_array(f"{folder}/x.zarr", data=x, chunks=(32, 32))
    >>> transform(f"{folder}/x.zarr", f"{folder}/coeffs.zarr", "haar", level=1)
    >>> inverse(f"{folder}/coeffs.zarr", f"{folder}/back.zarr")
    >>> bool((zarr.open_array(f"{folder}/back.zarr")[...] == x).all())
    True
    """
    group, header = read_header(source)
    low = open_source(f"{source}/{APPROXIMATION}")
    path = _target(target, str(Path(source).absolute()))
    number = _zarr_format(zarr_format, group)
    work = _work("inverse", low, header.to_json(), zarr_format=number)
    with PartialStore(path, work, overwrite, resume) as output:
        if not output.prepared:
            with _prepared(output):
                _create_array(output, header, number)
                create_scratch(output, header, header.chunks, low.dtype)
        stages = inverse_stages(
            uuid4().hex,
            str(Path(source).absolute()) if "://" not in str(source) else str(source),
            str(output.path),
            output,
            header,
            header.chunks,
            low.dtype,
            backend,
        )
        with _runner(runner, scheduler, workers) as running:
            run_stages(running, output, stages, progress)


def _create_array(output: PartialStore, header: CoefficientHeader, zarr_format: Any) -> None:
    import zarr

    zarr.create_array(
        str(output.path),
        shape=header.shape,
        chunks=header.chunks,
        dtype=header.dtype,
        zarr_format=zarr_format,
        attributes=dict(header.attributes),
        dimension_names=header.names if zarr_format == 3 else None,
    )


def pyramid(
    source: StorePath,
    target: StorePath,
    wavelet: Any = "cdf53",
    levels: int | None = None,
    axes: str | int | Sequence[int | str] | None = None,
    *,
    details: bool = False,
    scale: Sequence[float] | None = None,
    unit: str | None = None,
    name: str | None = None,
    backend: str = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    runner: TaskRunner | None = None,
) -> None:
    """Write an image of OME-Zarr 0.5 whose levels are approximations of a wavelet transform.

    Level 0 is a copy of the array. Each further level has half the samples along the axes in space, in the
    range and dtype of the image.

    Parameters
    ----------
    source : path
        An array of Zarr, a group with a single array, or an image of OME-Zarr.
    target : path
        The folder to write.
    wavelet : str or Wavelet, default "cdf53"
        A built-in wavelet. ``haar`` computes means.
    levels : int, optional
        Number of levels below the image itself. By default, until no axis is longer than 256 samples.
    axes : str, int or sequence, optional
        Axes to halve, by number or name, such as ``"z,y,x"``. By default ``y`` and ``x``, and ``z`` if it has
        more than 64 samples.
    details : bool, default False
        Whether to store the details as well, in the group ``coefficients``, so that :func:`refine` restores
        finer levels from coarser ones, and :func:`inverse` the image.
    scale : sequence of float, optional
        Distance between samples along each axis. By default that of the source, or 1.
    unit : str, optional
        Unit of ``scale`` along the axes in space, such as ``"micrometer"``.
    name : str, optional
        Name of the image. By default that of the file.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        The engine that transforms blocks; ``auto`` is the CPU.
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

    Warns
    -----
    RuntimeWarning
        If samples are NaN or infinite, with their number. Samples of smaller levels that are computed from
        them are NaN or infinite as well. With ``details``, such samples are an error.

    Examples
    --------
    >>> import tempfile, zarr
    >>> folder = tempfile.mkdtemp()
    >>> x = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    >>> _ = zarr.create_array(f"{folder}/x.zarr", data=x, chunks=(32, 32))
    >>> pyramid(f"{folder}/x.zarr", f"{folder}/y.zarr", "haar", levels=1, details=True)
    >>> level_shapes(f"{folder}/y.zarr")
    [(64, 64), (32, 32)]
    """
    given = open_source(source)
    path = _target(target, given.location)
    if given.dtype.kind not in "iuf":
        raise ArgumentError(f"a pyramid needs integers or floats, got dtype {given.dtype.name}")
    names = ome_names(given)
    given = replace(given, names=names)
    numbers = pyramid_axes(given, names) if axes is None else spatial_axes(given, axes)
    wavelet, mode = _wavelet_name(wavelet), LWT_MODES[0]
    transform_spec(len(given.shape), wavelet, mode, numbers, True)
    count = default_levels(given.shape, numbers) if levels is None else levels
    deepest = (max(given.shape[axis] for axis in numbers) - 1).bit_length()
    if not 0 <= count <= min(MAX_LEVEL, deepest):
        raise ArgumentError(f"levels must be from 0 to {deepest} for shape {given.shape}, got {count}")
    sizes = _sizes(given, scale)
    units = tuple(unit or old if letter in "zyx" else old for letter, old in _units(given, names))
    factor, centre = lowpass_moments(wavelet, mode)
    dtype = work_dtype(given.dtype)
    header = CoefficientHeader(
        shape=given.shape,
        dtype=given.dtype.name,
        axes=numbers,
        wavelet=wavelet,
        mode=mode,
        lifted=True,
        levels=count,
        chunks=given.chunks,
        names=names,
        attributes={},
        version=_version(),
    )
    title = name or Path(str(source)).name.partition(".")[0]
    ome = multiscales(title, names, units, sizes, numbers, count, wavelet, centre, header.version)
    if given.omero is not None:
        ome["omero"] = dict(given.omero)
    work = _work("pyramid", given, header.to_json(), details=details, ome=ome)
    with PartialStore(path, work, overwrite, resume) as output:
        transforms = header.stages()
        if not output.prepared:
            with _prepared(output):
                group = _create_group(output, 3, {"ome": ome})
                _create_levels(group, given, header, transforms)
                if details:
                    inner = group.create_group(COEFFICIENTS, attributes={"undula": header.to_json()})
                    create_bands(inner, header, dtype, output.scratch)
                else:
                    _create_lows(output, header, transforms, dtype)
        stages = _pyramid_stages(
            output, given, header, transforms, factor, dtype, details, backend, str(source)
        )
        with _runner(runner, scheduler, workers) as running:
            run_stages(running, output, stages, progress)
    if output.non_finite:
        subject = f"{output.non_finite} samples of {source} are"
        if output.non_finite == 1:
            subject = f"1 sample of {source} is"
        warnings.warn(
            f"{subject} NaN or infinite; so are the samples of smaller levels that are computed from them",
            RuntimeWarning,
            stacklevel=2,
        )


def _sizes(source: SourceArray, scale: Sequence[float] | None) -> tuple[float, ...]:
    ndim = len(source.shape)
    sizes = tuple(map(float, scale if scale is not None else source.scale or (1.0,) * ndim))
    if len(sizes) != ndim or not all(0 < size < float("inf") for size in sizes):
        raise ArgumentError(f"scale must have a positive number for each of {ndim} axes, got {sizes}")
    return sizes


def _units(source: SourceArray, names: Sequence[str]) -> list[tuple[str, str | None]]:
    return list(zip(names, source.units or (None,) * len(names), strict=True))


def _create_levels(
    group: Any, source: SourceArray, header: CoefficientHeader, transforms: Sequence[StageTransform]
) -> None:
    """Create the arrays of all levels of a pyramid."""
    import zarr

    options: dict[str, Any] = {"dtype": source.dtype, "dimension_names": header.names}
    if source.array.metadata.zarr_format == 3 and source.array.shards is None:
        options["compressors"] = source.array.compressors
    if _copies_chunks(source):
        zarr.from_array(
            group.store,
            name="0",
            data=source.array,
            write_data=False,
            fill_value=source.array.fill_value,
            dimension_names=header.names,
        )
    level = 0
    for transform in transforms:
        lengths, stored = block_lengths(transform.shape, header.chunks, header.axes, transform.depth)
        shapes = (*transform.tree.sample_shapes, transform.tree.approximation_shape)
        for depth in range(1 if level or _copies_chunks(source) else 0, transform.depth + 1):
            chunks = band_chunks(shapes[depth], lengths, stored, header.axes, depth)
            group.create_array(str(level + depth), shape=shapes[depth], chunks=chunks, **options)
        level += transform.depth
    if not transforms and not _copies_chunks(source):
        group.create_array("0", shape=header.shape, chunks=header.chunks, **options)


def _copies_chunks(source: SourceArray) -> bool:
    """Return whether level 0 has the chunks of the source as they are: for arrays of Zarr 3 in folders."""
    return source.array.metadata.zarr_format == 3 and "://" not in source.location


def _create_lows(
    output: PartialStore,
    header: CoefficientHeader,
    transforms: Sequence[StageTransform],
    dtype: np.dtype[Any],
) -> None:
    """Create the approximations between stages."""
    import zarr

    for place, transform in enumerate(transforms[:-1]):
        lengths, stored = block_lengths(transform.shape, header.chunks, header.axes, transform.depth)
        shape = transform.tree.approximation_shape
        chunks = band_chunks(shape, lengths, stored, header.axes, transform.depth)
        location = str(output.scratch / f"low{place}")
        zarr.create_array(location, shape=shape, chunks=chunks, dtype=dtype, compressors=None)


def _pyramid_stages(
    output: PartialStore,
    source: SourceArray,
    header: CoefficientHeader,
    transforms: Sequence[StageTransform],
    factor: float,
    dtype: np.dtype[Any],
    details: bool,
    backend: str,
    name: str,
) -> list[Any]:
    """Return the stages that write all levels of a pyramid; ``name`` is what errors call the source."""
    token, root = uuid4().hex, str(output.path)
    bands = f"{root}/{COEFFICIENTS}"
    stages: list[Any] = []
    location, level = source.location, 0
    copied = _copies_chunks(source)
    if copied:
        counts = tuple(-(-n // size) for n, size in zip(source.shape, source.chunks, strict=True))
        stages.append(ChunkCopyStage(token, location, f"{root}/0", counts))
    if not transforms:
        lengths = block_lengths(header.shape, header.chunks, header.axes, 0)[0]
        if not copied:
            stages.append(CopyStage(token, location, f"{root}/0", header.shape, lengths, header.dtype))
        if details:
            target = f"{bands}/{APPROXIMATION}"
            stages.append(CopyStage(token, location, target, header.shape, lengths, dtype.name))
        return stages
    for place, transform in enumerate(transforms):
        numbers = range(level + 1, level + transform.depth + 1)
        is_last = place == len(transforms) - 1
        low = f"{bands}/{APPROXIMATION}" if is_last else str(output.scratch / f"low{place}")
        keys = transform.tree.spec.keys[1:]
        lengths = block_lengths(transform.shape, header.chunks, header.axes, transform.depth)[0]
        stages.append(
            PyramidStage(
                token,
                location,
                None if place or copied else f"{root}/0",
                tuple(f"{root}/{number}" for number in numbers),
                low if details or not is_last else None,
                tuple(tuple(f"{bands}/level{n}/{key}" for key in keys) for n in numbers) if details else (),
                tuple(factor ** (-n * len(header.axes)) for n in numbers),
                transform,
                lengths,
                dtype.name,
                header.dtype,
                backend,
                None if place else name,
            )
        )
        location, level = low, level + transform.depth
    return stages


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
    path = _target(target, given.location)
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
    made_by = _work("apply", given, {"filter": description, "version": _version()}, dtype=dtype.name)
    with PartialStore(path, made_by, overwrite, resume) as output:
        if not output.prepared:
            with _prepared(output):
                _create_like(output, given, dtype)
        location = str(output.path / given.component)
        _store_blocks(result, output, location, token, progress, runner, scheduler, workers)


def _create_like(output: PartialStore, source: SourceArray, dtype: np.dtype[Any]) -> None:
    """Create an array like the source; of another dtype, with the default codecs."""
    import zarr

    names = source.names if source.array.metadata.zarr_format == 3 else None
    if source.component:
        _create_group(output, source.array.metadata.zarr_format, source.filtered_attributes())
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
    with _runner(runner, scheduler, workers) as running, continuing(output, len(places)):
        running.compute(tasks, finisher(output, 0, numbers, len(places), progress))


def level_shapes(source: StorePath) -> list[tuple[int, ...]]:
    """Return the shapes of all levels of an OME-Zarr image, finest first.

    Parameters
    ----------
    source : path
        A pyramid.

    Returns
    -------
    list of tuple of int
        The shapes.

    Examples
    --------
    >>> import tempfile, zarr
    >>> folder = tempfile.mkdtemp()
    >>> x = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    >>> _ = zarr.create_array(f"{folder}/x.zarr", data=x, chunks=(32, 32))
    >>> pyramid(f"{folder}/x.zarr", f"{folder}/y.zarr", "haar", levels=1, details=True)
    >>> level_shapes(f"{folder}/y.zarr")
    [(64, 64), (32, 32)]
    """
    group = open_group(source)
    image = multiscale(group)
    if image is None:
        raise FileError(f"{source} is not an image of OME-Zarr")
    return [tuple(group[dataset["path"]].shape) for dataset in image["datasets"]]


def read_coefficients(source: StorePath) -> list[Any]:
    """Read coefficients as Dask arrays, as :func:`undula.waverecn` takes them.

    Parameters
    ----------
    source : path
        A store that :func:`transform` wrote, or the group ``coefficients`` of a pyramid with details.

    Returns
    -------
    list
        The approximation, then the details of each level as a dictionary, coarsest first.

    Examples
    --------
    >>> import tempfile, zarr
    >>> folder = tempfile.mkdtemp()
    >>> x = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    >>> _ = zarr.create_array(f"{folder}/x.zarr", data=x, chunks=(32, 32))
    >>> transform(f"{folder}/x.zarr", f"{folder}/coeffs.zarr", "haar", level=1)
    >>> low, bands = read_coefficients(f"{folder}/coeffs.zarr")
    >>> low.shape, sorted(bands)
    ((32, 32), ['ad', 'da', 'dd'])
    """
    da = import_optional("dask.array", "scale")
    group, header = read_header(source)
    bands = [da.from_array(group[name], chunks=group[name].chunks) for name in header.band_names()]
    return header.tree.by_key(bands) if header.levels else bands


def refine(source: StorePath) -> Iterator[Any]:
    """Read an image progressively: from the coarsest level to the image itself.

    Each level is computed from the one before and from the details of that level, so nothing is read twice.

    Parameters
    ----------
    source : path
        A pyramid with details, or a store that :func:`transform` wrote.

    Yields
    ------
    dask.array.Array
        A level in the range and dtype of the image.

    Examples
    --------
    >>> import tempfile, zarr
    >>> folder = tempfile.mkdtemp()
    >>> x = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    >>> _ = zarr.create_array(f"{folder}/x.zarr", data=x, chunks=(32, 32))
    >>> pyramid(f"{folder}/x.zarr", f"{folder}/y.zarr", "haar", levels=1, details=True)
    >>> [level.shape for level in refine(f"{folder}/y.zarr")]
    [(32, 32), (64, 64)]
    """
    group = Path(source) / COEFFICIENTS
    path = group if group.is_dir() else Path(source)
    _, header = read_header(path)
    low, *details = read_coefficients(path)
    factor = lowpass_moments(header.wavelet, LWT_MODES[0])[0] ** len(header.axes)
    dtype = np.dtype(header.dtype)

    def image(low: Any, level: int) -> Any:
        return (low * np.dtype(low.dtype).type(factor**-level)).map_blocks(to_dtype, dtype, dtype=dtype)

    yield image(low, header.levels)
    for level, part in zip(range(header.levels - 1, -1, -1), details, strict=True):
        if header.lifted:
            low = ilwtn([low, part], header.wavelet, header.mode, header.axes)
        else:
            shape = header.tree.sample_shapes[level]
            low = waverecn([low, part], header.wavelet, header.mode, header.axes, shape=shape)
        yield image(low, level)
