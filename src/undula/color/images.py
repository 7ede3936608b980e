"""Conversion of colour images to planes and back, and their wavelet transforms."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays import array_in_memory, keeps_library, library_of, numpy_array
from ..engines import cpu
from ..engines.dispatch import engine_for
from ..engines.gpu.engine import DeviceEngine
from ..errors import ArgumentError, ArgumentTypeError
from ..functions import ilwt2
from ..functions.lifted import channels_of_lwt2, lwt2_of_channels
from ..wavelets import Wavelet
from .spaces import Space, space

__all__ = ["expand", "forward", "from_planes", "inverse", "subsample", "to_planes"]

Array = NDArray[Any]


def _check_image(array: Any, dtype: str, channel_axis: int) -> None:
    """Raise an error if an array is not a colour image."""
    if dtype not in ("uint8", "uint16"):
        raise ArgumentTypeError(
            f"a colour image has the dtype uint8 or uint16, got {dtype}; convert it first"
        )
    if len(array.shape) != 3:
        raise ArgumentError(
            f"a colour image has three axes (rows, columns, channels), got shape {tuple(array.shape)}"
        )
    _check_axis(channel_axis)
    if array.shape[channel_axis] not in (3, 4):
        raise ArgumentError(
            f"a colour image has 3 channels, or 4 with alpha, along axis {channel_axis}; got"
            f" {array.shape[channel_axis]} (shape {tuple(array.shape)})"
        )
    if 0 in array.shape:
        raise ArgumentError(f"the image is empty: shape {tuple(array.shape)}")


def _check_axis(channel_axis: int) -> None:
    if not isinstance(channel_axis, (int, np.integer)) or not -3 <= channel_axis < 3:
        raise ArgumentError(f"channel_axis must be an integer from -3 to 2, got {channel_axis!r}")


def _channel_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise ArgumentTypeError(f"dtype must be uint8 or uint16, got {dtype!r}") from None
    if kind not in (np.dtype(np.uint8), np.dtype(np.uint16)):
        raise ArgumentTypeError(f"dtype must be uint8 or uint16, got {kind}")
    return kind


def channels_last(image: ArrayLike, channel_axis: int) -> Array:
    """Return a colour image as a C-contiguous array with its channels last."""
    array = numpy_array(image, "image")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    _check_image(array, str(array.dtype), channel_axis)
    return np.ascontiguousarray(np.moveaxis(array, channel_axis, -1))


@keeps_library
def to_planes(image: ArrayLike, color: str = "rct", *, channel_axis: int = -1) -> Array:
    """Split a colour image into a luma plane, two chroma planes and, if present, alpha.

    Parameters
    ----------
    image : array_like of uint8 or uint16
        An image of 3 or 4 channels.
    color : {"rct", "apple", "ict", "bt601", "bt709"}, default "rct"
        The colour space.
    channel_axis : int, default -1
        The axis of the channels: -1 for ``(H, W, 3)``, 0 for ``(3, H, W)``.

    Returns
    -------
    ndarray of shape (3, H, W) or (4, H, W)
        For integer spaces int16 (from uint8) or int32 (from uint16), else float32.

    Examples
    --------
    >>> to_planes(np.array([[[200, 100, 50]]], "uint8"))[:, 0, 0].tolist()
    [112, -50, 100]
    """
    array, target = channels_last(image, channel_axis), space(color)
    planes = cpu.empty((array.shape[2], *array.shape[:2]), _plane_dtype(array, target))
    cpu.mix_planes(array, target.mixing(array.shape[2]), planes)
    return planes


def _plane_dtype(image: Array, target: Space) -> np.dtype[Any]:
    if not target.integer:
        return np.dtype(np.float32)
    return np.dtype(np.int16 if image.dtype == np.uint8 else np.int32)


@keeps_library
def from_planes(
    planes: ArrayLike, color: str = "rct", *, dtype: DTypeLike = np.uint8, channel_axis: int = -1
) -> Array:
    """Join planes into a colour image; the inverse of :func:`to_planes`.

    Parameters
    ----------
    planes : array_like of shape (3, H, W) or (4, H, W)
        Integers for integer spaces.
    color : {"rct", "apple", "ict", "bt601", "bt709"}, default "rct"
        The colour space of the planes.
    dtype : {uint8, uint16}, optional
        The dtype of the image. Values outside its range are clipped. The default is uint8.
    channel_axis : int, default -1
        The axis of the channels in the result.

    Returns
    -------
    ndarray
        The image.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (4, 5, 3)).astype("uint8")
    >>> bool((from_planes(to_planes(image)) == image).all())
    True
    """
    array, source, kind = numpy_array(planes, "planes"), space(color), _channel_dtype(dtype)
    _check_axis(channel_axis)
    if array.dtype.kind == "c":
        raise ArgumentTypeError(f"planes must be real, got {array.dtype}")
    if array.ndim != 3 or array.shape[0] not in (3, 4):
        raise ArgumentError(f"planes must have the shape (3, H, W) or (4, H, W), got {array.shape}")
    if source.integer and array.dtype.kind not in "iu":
        raise ArgumentTypeError(f"planes of {color!r} are integers, got {array.dtype}; round first")
    if (
        array.dtype.kind in "iub" and array.dtype.itemsize >= 4
    ):  # Far beyond the range of any channel, and safe in int32.
        array = np.clip(array, -(2**24) if array.dtype.kind == "i" else 0, 2**24).astype(np.int32)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    out = cpu.empty((*array.shape[1:], array.shape[0]), kind)
    cpu.join_channels(array, out, None if source.inverse is None else np.array(source.inverse, np.float64))
    return np.moveaxis(out, -1, channel_axis)


@keeps_library
def forward(
    image: ArrayLike,
    wavelet: Wavelet | str | None = None,
    level: int | None = 3,
    *,
    color: str = "rct",
    mode: str = "symmetric",
    channel_axis: int = -1,
    backend: str = "auto",
) -> list[Any]:
    """Convert a colour image to planes and transform them by the LWT, in one pass over the image.

    Parameters
    ----------
    image : array of uint8 or uint16
        An image of 3 or 4 channels.
    wavelet : Wavelet or str, optional
        The default is ``cdf53`` for integer spaces, which with ``rct`` is lossless, and ``cdf97`` for others.
    level : int or None, default 3
        Number of levels; None for as many as the image allows.
    color : {"rct", "apple", "ict", "bt601", "bt709"}, default "rct"
        The colour space.
    mode : {"symmetric", "periodic", "zero"}, default "symmetric"
        How lines go on beyond their ends, one of ``undula.LWT_MODES``.
    channel_axis : int, default -1
        The axis of the channels: -1 for ``(H, W, 3)``, 0 for ``(3, H, W)``.
    backend : {"auto", "cpu", "cuda", "opencl"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. Images on a device need channels last and at
        least one level.

    Returns
    -------
    list
        ``[cA, (cH, cV, cD) of the coarsest level, …]``, each with the planes along its first axis. On a
        device these are views of interleaved memory.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (40, 50, 3)).astype("uint8")
    >>> coeffs = forward(image)
    >>> coeffs[0].shape, bool((inverse(coeffs) == image).all())
    ((3, 5, 7), True)
    """
    target, engine = space(color), engine_for([array_in_memory(image, "image")], backend)
    array: Any
    if engine.takes_numpy:
        array, dtype = channels_last(image, channel_axis), str(np.asarray(image).dtype)
    else:
        array, dtype = image, engine.library.dtype(image)
        _check_image(array, dtype, channel_axis)
        if channel_axis not in (-1, 2):
            raise ArgumentError("on a device, channels must come last: permute the image to (H, W, channels)")
    name = wavelet or ("cdf53" if target.integer else "cdf97")
    most = round(target.largest * int(np.iinfo(dtype).max)) + 1
    mixing = target.mixing(int(array.shape[2]))
    return lwt2_of_channels(array, mixing, name, level, mode, most, target.integer, engine)


@keeps_library
def inverse(
    coeffs: Sequence[Any],
    wavelet: Wavelet | str | None = None,
    *,
    color: str = "rct",
    mode: str = "symmetric",
    dtype: DTypeLike | None = None,
    channel_axis: int = -1,
    backend: str = "auto",
) -> Array:
    """Reconstruct a colour image; the inverse of :func:`forward`.

    Parameters
    ----------
    coeffs : list
        Coefficients as :func:`forward` returns them.
    wavelet : Wavelet or str, optional
        The wavelet of the transform. The default is ``cdf53`` for integer spaces, and ``cdf97`` for others.
    color : {"rct", "apple", "ict", "bt601", "bt709"}, default "rct"
        The colour space of the transform.
    mode : {"symmetric", "periodic", "zero"}, default "symmetric"
        How lines go on beyond their ends, one of ``undula.LWT_MODES``.
    dtype : {uint8, uint16}, optional
        The dtype of the image. The default is uint8; required for coefficients in int32 or int64.
    channel_axis : int, default -1
        The axis of the channels in the result.
    backend : {"auto", "cpu", "cuda", "opencl"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. Arrays on a device are transformed there.

    Returns
    -------
    ndarray, or an array of the library of the coefficients
        The image.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype("uint8")
    >>> bool((inverse(forward(image, color="rct"), color="rct") == image).all())
    True
    """
    source = space(color)
    name = wavelet or ("cdf53" if source.integer else "cdf97")
    _check_axis(channel_axis)
    if not isinstance(coeffs, (list, tuple)) or not len(coeffs):
        raise ArgumentError(f"coefficients must be a list as forward returns it, got {type(coeffs).__name__}")
    low = array_in_memory(coeffs[0], "the low-pass band")
    kinds = library_of(low).dtype(low)
    if source.integer == kinds.startswith("float"):
        raise ArgumentTypeError(f"{kinds} coefficients are not those of {color!r}")
    if len(low.shape) != 3 or int(low.shape[0]) not in (3, 4):
        raise ArgumentError(
            f"coefficients must have 3 or 4 planes along their first axis, got shape {tuple(low.shape)}"
        )
    if dtype is None:
        if kinds in ("int32", "int64"):
            raise ArgumentError(
                f"{kinds} coefficients may stand for either dtype; pass dtype='uint8' or dtype='uint16'"
            )
        dtype = np.uint8
    arrays = [coeffs[0], *(band for part in coeffs[1:] for band in part)]
    engine = engine_for([array_in_memory(array, "coefficients") for array in arrays], backend)
    if isinstance(engine, DeviceEngine) and len(coeffs) > 1:
        image: Array = channels_of_lwt2(
            coeffs, source.unmixing, name, mode, engine, str(_channel_dtype(dtype))
        )
        axis = channel_axis % 3
        order = (2, 0, 1) if axis == 0 else (0, 2, 1)
        return image if axis == 2 else engine.library.transpose(image, order)
    return from_planes(ilwt2(coeffs, name, mode), color, dtype=dtype, channel_axis=channel_axis)


@keeps_library
def subsample(plane: ArrayLike) -> Array:
    """Downsample a plane by 2 along both axes: means of 2 × 2 samples.

    Means of integers are rounded, halves upwards. The last row or column of an odd side is repeated.

    Parameters
    ----------
    plane : array_like
        The last two axes are downsampled.

    Returns
    -------
    ndarray
        The plane of half the sides, rounded up.

    Examples
    --------
    >>> subsample(np.array([[1, 2, 9], [3, 5, 8]])).tolist()
    [[3, 9]]
    """
    x = numpy_array(plane, "plane")
    if x.ndim < 2:
        raise ArgumentError(f"a plane has at least two axes, got shape {x.shape}")
    edges = [(0, 0)] * (x.ndim - 2) + [(0, x.shape[-2] % 2), (0, x.shape[-1] % 2)]
    wide = np.pad(x, edges, mode="edge")
    quarters = [wide[..., i::2, j::2] for i in (0, 1) for j in (0, 1)]
    if x.dtype.kind in "iu":  # Quotients and remainders by 4 are added apart, so that no sum overflows.
        remainder: Any = sum((part & 3).astype(np.int64) for part in quarters)
        return np.asarray(sum(part >> 2 for part in quarters) + ((remainder + 2) >> 2).astype(x.dtype))
    real = np.float32 if x.dtype == np.float16 else np.result_type(x.dtype, np.float32)
    return np.asarray(sum(part.astype(real) / 4 for part in quarters)).astype(
        np.float64 if x.dtype.kind == "b" else x.dtype
    )


@keeps_library
def expand(plane: ArrayLike, shape: Sequence[int]) -> Array:
    """Upsample a plane by 2 along both axes: repeat each sample 2 × 2 times.

    Parameters
    ----------
    plane : array_like
        As :func:`subsample` returns it.
    shape : pair of ints
        Height and width of the result.

    Returns
    -------
    ndarray
        The plane of this shape.

    Examples
    --------
    >>> expand(np.array([[3, 9]]), (2, 3)).tolist()
    [[3, 3, 9], [3, 3, 9]]
    """
    x = numpy_array(plane, "plane")
    try:
        height, width = (operator.index(n) for n in shape)
    except (TypeError, ValueError):
        raise ArgumentError(f"shape must be two integers, got {shape!r}") from None
    if x.ndim < 2 or x.shape[-2:] != ((height + 1) // 2, (width + 1) // 2):
        raise ArgumentError(f"a plane of shape {x.shape} cannot be expanded to {(height, width)}")
    return x.repeat(2, -2).repeat(2, -1)[..., :height, :width]
