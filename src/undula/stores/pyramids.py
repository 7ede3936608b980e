"""Pyramids of OME-Zarr: written, and read from the coarsest level to the image."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, FileError
from ..functions import ilwtn, waverecn
from ..lowering.borders import LWT_MODES
from ..lowering.spec import MAX_LEVEL, transform_spec
from .blocks import StageTransform, block_lengths
from .coefficients import (
    APPROXIMATION,
    CoefficientHeader,
    CopyStage,
    band_chunks,
    create_bands,
    read_header,
    work_dtype,
)
from .functions import read_coefficients
from .opening import SourceArray, multiscale, open_group, open_source, spatial_axes
from .partial import PartialStore
from .pyramid_stages import (
    ChunkCopyStage,
    PyramidStage,
    default_levels,
    lowpass_moments,
    multiscales,
    ome_names,
    pyramid_axes,
)
from .running import TaskRunner, task_runner
from .work import (
    Progress,
    StorePath,
    checked_target,
    create_group,
    describe_work,
    run_stages,
    to_dtype,
    version,
    wavelet_name,
)
from .writing import run_token

__all__ = ["level_shapes", "pyramid", "refine"]

COEFFICIENTS = "coefficients"  # The group of a pyramid that has details.


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
    path = checked_target(target, given.location)
    if given.dtype.kind not in "iuf":
        raise ArgumentError(f"a pyramid needs integers or floats, got dtype {given.dtype.name}")
    names = ome_names(given)
    given = replace(given, names=names)
    numbers = pyramid_axes(given, names) if axes is None else spatial_axes(given, axes)
    wavelet, mode = wavelet_name(wavelet), LWT_MODES[0]
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
        version=version(),
    )
    title = name or Path(str(source)).name.partition(".")[0]
    ome = multiscales(title, names, units, sizes, numbers, count, wavelet, centre, header.version)
    if given.omero is not None:
        ome["omero"] = dict(given.omero)
    work = describe_work("pyramid", given, header.to_json(), details=details, ome=ome, backend=backend)
    with PartialStore(path, work, overwrite, resume) as output, run_token() as token:
        transforms = header.stages()
        if not output.prepared:
            with output.preparing():
                group = create_group(output, 3, {"ome": ome})
                _create_levels(group, given, header, transforms)
                if details:
                    inner = group.create_group(COEFFICIENTS, attributes={"undula": header.to_json()})
                    create_bands(inner, header, dtype, output.scratch)
                else:
                    _create_lows(output, header, transforms, dtype)
        stages = _pyramid_stages(
            token, output, given, header, transforms, factor, dtype, details, backend, str(source)
        )
        with task_runner(scheduler, workers, runner) as running:
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
    token: str,
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
    root = str(output.path)
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
