"""Coefficients in stores: written from an array, read, and transformed back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..io.files import import_optional
from ..lowering.spec import checked_level, transform_spec
from .coefficients import (
    APPROXIMATION,
    CoefficientHeader,
    create_bands,
    create_scratch,
    forward_stages,
    inverse_stages,
    read_header,
    work_dtype,
)
from .opening import open_source, spatial_axes
from .partial import PartialStore
from .running import TaskRunner, task_runner
from .work import (
    Progress,
    StorePath,
    checked_target,
    create_group,
    describe_work,
    run_stages,
    version,
    wavelet_name,
    zarr_format_number,
)
from .writing import run_token

__all__ = ["inverse", "read_coefficients", "transform"]


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
    path = checked_target(target, given.location)
    numbers = spatial_axes(given, axes)
    spec = transform_spec(len(given.shape), wavelet, mode, numbers)
    levels = checked_level(given.shape, spec.wavelets, spec.axes, level)
    name = wavelet_name(wavelet)
    result = work_dtype(given.dtype) if dtype is None else np.dtype(dtype)
    if result.kind not in ("c" if given.dtype.kind == "c" else "f"):
        raise ArgumentError(f"dtype must be float32 or float64, got {dtype!r}")
    number = zarr_format_number(zarr_format, given.array)
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
        version=version(),
    )
    work = describe_work(
        "transform", given, header.to_json(), dtype=result.name, zarr_format=number, backend=backend
    )
    with PartialStore(path, work, overwrite, resume) as output, run_token() as token:
        if not output.prepared:
            with output.preparing():
                group = create_group(output, number, {"undula": header.to_json()})
                create_bands(group, header, result, output.scratch)
        stages = forward_stages(
            token,
            given.location,
            str(output.path),
            output.scratch,
            header,
            result,
            backend,
            str(source),
        )
        with task_runner(scheduler, workers, runner) as running:
            run_stages(running, output, stages, progress)


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
    path = checked_target(target, str(Path(source).absolute()))
    number = zarr_format_number(zarr_format, group)
    work = describe_work("inverse", low, header.to_json(), zarr_format=number, backend=backend)
    with PartialStore(path, work, overwrite, resume) as output, run_token() as token:
        if not output.prepared:
            with output.preparing():
                _create_array(output, header, number)
                create_scratch(output, header, header.chunks, low.dtype)
        stages = inverse_stages(
            token,
            str(Path(source).absolute()) if "://" not in str(source) else str(source),
            str(output.path),
            output,
            header,
            header.chunks,
            low.dtype,
            backend,
        )
        with task_runner(scheduler, workers, runner) as running:
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

    Raises
    ------
    FileError
        If the store does not exist, is incomplete, or holds no coefficients.

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
