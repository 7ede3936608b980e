"""Filters of DataArrays and Datasets, with names for the dimensions of space and of channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import DTypeLike
from xarray import DataArray, Dataset

from .. import filters
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..filters import Pipeline
from .arguments import Dims, check_array, checked_dims, keeps_attrs, numeric_variables

__all__ = [
    "apply_pipeline",
    "denoise",
    "denoise_wavelet",
    "despeckle",
    "enhance",
    "estimate_sigma",
    "sharpen",
]

X = TypeVar("X", DataArray, Dataset)


def denoise(
    x: X,
    sigma: Any = None,
    *,
    dim: Dims = None,
    channel_dim: str | None = None,
    mask: DataArray | None = None,
    keep_attrs: bool | None = None,
    **options: Any,
) -> X:
    """Remove noise.

    Parameters
    ----------
    x : DataArray or Dataset
        Images; of a Dataset, the numeric variables that have the dimensions. Dask arrays are filtered
        lazily. With a mask, or with noise in a DataArray, each chunk must have whole images.
    sigma : float, sequence of float, or DataArray, optional
        Standard deviation of the noise: a number, one per channel, or a DataArray with some of the
        dimensions of ``x``, such as that of :func:`estimate_sigma`. Estimated for each image if None.
    dim : str or iterable of str, optional
        Dimensions of space. The default is all but that of the channels. Along the others there are images,
        which are filtered one by one.
    channel_dim : str, optional
        Dimension of the channels. No dimension is taken for channels by itself.
    mask : DataArray of bool, optional
        True where samples are valid, with some of the dimensions of ``x``.
    keep_attrs : bool, optional
        Whether the result has the attributes of ``x``. The default is the option of xarray, or else True.
    **options
        Further arguments of :func:`undula.denoise`, such as ``method`` and ``strength``.

    Returns
    -------
    DataArray or Dataset
        The filtered images, otherwise like ``x``.

    Examples
    --------
    >>> noisy = np.random.default_rng(0).standard_normal((3, 64, 64)) + 100
    >>> images = DataArray(noisy, dims=("time", "y", "x"), attrs={"units": "K"})
    >>> smooth = denoise(images, dim=("y", "x"))
    >>> smooth.dims, smooth.units, bool(smooth.std() < 0.2)
    (('time', 'y', 'x'), 'K', True)
    """
    options = {"sigma": sigma, "mask": mask, **options}
    return _filtered(filters.denoise, x, dim, channel_dim, keep_attrs, options)


def despeckle(
    x: X,
    *,
    dim: Dims = None,
    channel_dim: str | None = None,
    mask: DataArray | None = None,
    keep_attrs: bool | None = None,
    **options: Any,
) -> X:
    """Remove speckle from ultrasound, radar or OCT images.

    Parameters
    ----------
    x : DataArray or Dataset
        Images; of a Dataset, the numeric variables that have the dimensions. Dask arrays are filtered lazily.
        With a mask, or with noise in a DataArray, each chunk must have whole images.
    dim : str or iterable of str, optional
        Dimensions of space. The default is all but that of the channels. Along the others there are images,
        which are filtered one by one.
    channel_dim : str, optional
        Dimension of the channels. No dimension is taken for channels by itself.
    mask : DataArray of bool, optional
        True where samples are valid, with some of the dimensions of ``x``.
    keep_attrs : bool, optional
        Whether the result has the attributes of ``x``. The default is the option of xarray, or else True.
    **options
        Further arguments of :func:`undula.despeckle`.

    Returns
    -------
    DataArray or Dataset
        The filtered images, otherwise like ``x``.

    Examples
    --------
    >>> speckled = DataArray(100 * np.random.default_rng(0).gamma(4, 1 / 4, (64, 64)), dims=("y", "x"))
    >>> bool(despeckle(speckled).std() < 0.4 * speckled.std())
    True
    """
    options = {"mask": mask, **options}
    return _filtered(filters.despeckle, x, dim, channel_dim, keep_attrs, options)


def sharpen(
    x: X,
    *,
    dim: Dims = None,
    channel_dim: str | None = None,
    mask: DataArray | None = None,
    keep_attrs: bool | None = None,
    **options: Any,
) -> X:
    """Sharpen images.

    Parameters
    ----------
    x : DataArray or Dataset
        Images; of a Dataset, the numeric variables that have the dimensions. Dask arrays are filtered lazily.
        With a mask, or with noise in a DataArray, each chunk must have whole images.
    dim : str or iterable of str, optional
        Dimensions of space. The default is all but that of the channels. Along the others there are images,
        which are filtered one by one.
    channel_dim : str, optional
        Dimension of the channels. No dimension is taken for channels by itself.
    mask : DataArray of bool, optional
        True where samples are valid, with some of the dimensions of ``x``.
    keep_attrs : bool, optional
        Whether the result has the attributes of ``x``. The default is the option of xarray, or else True.
    **options
        Further arguments of :func:`undula.sharpen`.

    Returns
    -------
    DataArray or Dataset
        The filtered images, otherwise like ``x``.

    Examples
    --------
    >>> step = DataArray(np.repeat([[0.0, 1.0]], 8, axis=0).repeat(4, axis=1), dims=("y", "x"))
    >>> bool(sharpen(step).max() > 1)
    True
    """
    options = {"mask": mask, **options}
    return _filtered(filters.sharpen, x, dim, channel_dim, keep_attrs, options)


def enhance(
    x: X,
    *,
    dim: Dims = None,
    channel_dim: str | None = None,
    mask: DataArray | None = None,
    keep_attrs: bool | None = None,
    **options: Any,
) -> X:
    """Enhance weak structures at all scales.

    Parameters
    ----------
    x : DataArray or Dataset
        Images; of a Dataset, the numeric variables that have the dimensions. Dask arrays are filtered lazily.
        With a mask, or with noise in a DataArray, each chunk must have whole images.
    dim : str or iterable of str, optional
        Dimensions of space. The default is all but that of the channels. Along the others there are images,
        which are filtered one by one.
    channel_dim : str, optional
        Dimension of the channels. No dimension is taken for channels by itself.
    mask : DataArray of bool, optional
        True where samples are valid, with some of the dimensions of ``x``.
    keep_attrs : bool, optional
        Whether the result has the attributes of ``x``. The default is the option of xarray, or else True.
    **options
        Further arguments of :func:`undula.enhance`.

    Returns
    -------
    DataArray or Dataset
        The filtered images, otherwise like ``x``.

    Examples
    --------
    >>> weak = DataArray(100 + 5 * np.sin(np.arange(64) / 3) * np.ones((64, 1)), dims=("y", "x"))
    >>> bool(enhance(weak).std() > weak.std())
    True
    """
    options = {"mask": mask, **options}
    return _filtered(filters.enhance, x, dim, channel_dim, keep_attrs, options)


def apply_pipeline(
    x: X,
    pipeline: Pipeline,
    *,
    sigma: Any = None,
    dim: Dims = None,
    channel_dim: str | None = None,
    mask: DataArray | None = None,
    keep_attrs: bool | None = None,
    **options: Any,
) -> X:
    """Filter images by a pipeline.

    Parameters
    ----------
    x : DataArray or Dataset
        Images; of a Dataset, the numeric variables that have the dimensions. Dask arrays are filtered lazily.
        With a mask, or with noise in a DataArray, each chunk must have whole images.
    pipeline : Pipeline
        The pipeline.
    sigma : float, sequence of float, or DataArray, optional
        Standard deviation of the noise, which does not vary within an image: a number, one per channel, or a
        DataArray with some of the other dimensions of ``x``. Estimated for each image if None.
    dim : str or iterable of str, optional
        Dimensions of space. The default is all but that of the channels. Along the others there are images,
        which are filtered one by one.
    channel_dim : str, optional
        Dimension of the channels. No dimension is taken for channels by itself.
    mask : DataArray of bool, optional
        True where samples are valid, with some of the dimensions of ``x``.
    keep_attrs : bool, optional
        Whether the result has the attributes of ``x``. The default is the option of xarray, or else True.
    **options
        Further arguments of :meth:`undula.Pipeline.__call__`.

    Returns
    -------
    DataArray or Dataset
        The filtered images, otherwise like ``x``.

    Examples
    --------
    >>> pipeline = Pipeline("bior4.4", 2, [filters.Gain(2.0)])
    >>> image = DataArray(np.eye(16), dims=("y", "x"))
    >>> bool(apply_pipeline(image, pipeline).max() > 1)
    True
    """
    if not isinstance(pipeline, Pipeline):
        raise ArgumentTypeError(f"an undula.Pipeline is needed, got {type(pipeline).__name__}")
    options = {"sigma": sigma, "mask": mask, **options}
    return _filtered(pipeline, x, dim, channel_dim, keep_attrs, options)


def denoise_wavelet(
    x: X,
    sigma: Any = None,
    *,
    dim: Dims = None,
    channel_dim: str | None = None,
    keep_attrs: bool | None = None,
    **options: Any,
) -> X:
    """Denoise as ``skimage.restoration.denoise_wavelet`` does.

    Parameters
    ----------
    x : DataArray or Dataset
        Images; of a Dataset, the numeric variables that have the dimensions. Chunks of Dask arrays must have
        whole images.
    sigma : float, sequence of float, or DataArray, optional
        Standard deviation of the noise, which does not vary within an image: a number, one per channel, or a
        DataArray with some of the other dimensions of ``x``. Estimated for each image if None.
    dim : str or iterable of str, optional
        Dimensions of space. The default is all but that of the channels. Along the others there are images,
        which are filtered one by one.
    channel_dim : str, optional
        Dimension of the channels. No dimension is taken for channels by itself.
    keep_attrs : bool, optional
        Whether the result has the attributes of ``x``. The default is the option of xarray, or else True.
    **options
        Further arguments of :func:`undula.denoise_wavelet`.

    Returns
    -------
    DataArray or Dataset
        The filtered images as floats, otherwise like ``x``.

    Examples
    --------
    >>> noisy = DataArray(np.random.default_rng(0).standard_normal((64, 64)) / 10 + 0.5, dims=("y", "x"))
    >>> bool(denoise_wavelet(noisy).std() < 0.05)
    True
    """
    options = {"sigma": sigma, **options}
    return _filtered(filters.denoise_wavelet, x, dim, channel_dim, keep_attrs, options)


def estimate_sigma(x: X, *, dim: Dims = None, keep_attrs: bool | None = None) -> X:
    """Estimate the standard deviation of the noise of each image.

    Parameters
    ----------
    x : DataArray or Dataset
        Images; of a Dataset, the numeric variables that have the dimensions. Chunks of Dask arrays must have
        whole images.
    dim : str or iterable of str, optional
        Dimensions of space. The default is all. Along the others, channels included, there are images.
    keep_attrs : bool, optional
        Whether the result has the attributes of ``x``. The default is the option of xarray, or else True.

    Returns
    -------
    DataArray or Dataset
        One number for each image, with the remaining dimensions.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((2, 128, 128)) * [[[1.0]], [[5.0]]]
    >>> estimate_sigma(DataArray(noise, dims=("time", "y", "x")), dim=("y", "x")).round().values
    array([1., 5.])
    """
    return _filtered(filters.estimate_sigma, x, dim, None, keep_attrs, {})


ONE_IMAGE = (filters.denoise_wavelet, filters.estimate_sigma)  # Functions that take no batches.


def _filtered(
    function: Callable[..., Any],
    x: X,
    dim: Dims,
    channel_dim: str | None,
    keep_attrs: bool | None,
    options: dict[str, Any],
) -> X:
    """Apply a filter to an array, or to the variables of a dataset that have the dimensions."""
    kept = keeps_attrs(keep_attrs)
    if not isinstance(x, Dataset):
        return _filtered_array(function, x, dim, channel_dim, kept, options)
    if channel_dim is not None:
        checked_dims(x, channel_dim)
    results = {}
    for name in numeric_variables(x, dim):
        channel = channel_dim if channel_dim in x[name].dims else None
        results[name] = _filtered_array(function, x[name], dim, channel, kept, options)
    dataset = x.assign(results)
    return dataset if kept else dataset.drop_attrs(deep=False)


def _filtered_array(
    function: Callable[..., Any],
    x: DataArray,
    dim: Dims,
    channel_dim: str | None,
    keep_attrs: bool,
    options: dict[str, Any],
) -> DataArray:
    check_array(x)
    channels = () if channel_dim is None else checked_dims(x, channel_dim)
    everywhere = dim is None or dim is ...
    spatial = checked_dims(x, [str(name) for name in x.dims if name not in channels] if everywhere else dim)
    if set(channels) & set(spatial):
        raise ArgumentError(f"{channel_dim!r} is the dimension of channels and cannot be in dim={dim!r}")
    image = (*spatial, *channels)
    plain: dict[str, Any] = {"channel_axis": -1 if channels else None}
    if function not in ONE_IMAGE and not everywhere:
        plain["axes"] = tuple(range(-len(image), -len(channels)))
    arrays = {}
    for name, value in options.items():
        if isinstance(value, DataArray):
            arrays[name] = _aligned(x, value, image, name != "sigma" or not {*spatial}.isdisjoint(value.dims))
        elif name in ("mask", "counted") and value is not None:
            raise ArgumentTypeError(f"{name} must be a DataArray, got {type(value).__name__}")
        else:
            plain[name] = value

    # Noise that differs between images, but not within them, needs a call for each image.
    named = [{*array.dims} for array in arrays.values()]
    looped = function in ONE_IMAGE or any(dims - {*image} and not dims & {*spatial} for dims in named)
    # Whole images are filtered chunk by chunk. Parts of images are left to filters, which read across chunks.
    split = [name for name in image if len(x.chunksizes.get(name, ())) > 1]
    if split and (looped or arrays):
        raise ArgumentError(
            f"there are several chunks along {split}, but whole images are needed for masks, for noise in"
            f" DataArrays and by {' and '.join(f.__name__ for f in ONE_IMAGE)}; use"
            f" x.chunk({dict.fromkeys(split, -1)})"
        )
    result: DataArray = xr.apply_ufunc(
        lambda samples, *values: function(samples, **dict(zip(arrays, values, strict=True)), **plain),
        x,
        *arrays.values(),
        input_core_dims=[image, *([name for name in image if name in dims] for dims in named)],
        output_core_dims=[() if function is filters.estimate_sigma else image],
        vectorize=looped,
        dask="allowed" if split else "parallelized",
        output_dtypes=[_result_dtype(function, x.dtype)],
        keep_attrs=True,
    )
    result = result.transpose(*(name for name in x.dims if name in result.dims))
    return result if keep_attrs else result.drop_attrs(deep=False)


def _aligned(x: DataArray, value: DataArray, image: tuple[str, ...], broadcast: bool) -> xr.Variable:
    """Return an argument that belongs to the samples, the channels or the images of x."""
    unknown = [str(name) for name in value.dims if name not in x.dims]
    if unknown:
        raise UnknownNameError("dimension", unknown[0], [str(name) for name in x.dims])
    value = xr.align(x, value, join="exact", copy=False)[1]
    if broadcast:
        value = value.broadcast_like(x)
    if value.chunks:
        value = value.chunk({name: -1 for name in image if name in value.dims})
    return value.variable


def _result_dtype(function: Callable[..., Any], dtype: np.dtype[Any]) -> DTypeLike:
    if function not in ONE_IMAGE:
        return dtype
    single = function is filters.denoise_wavelet and dtype in (np.float16, np.float32)
    return np.float32 if single else np.float64
