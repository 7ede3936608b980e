"""Colour images to planes and back, and their wavelet transforms."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..backends import cpu
from ..errors import ArgumentError, ArgumentTypeError
from ..transforms import ilwt2
from ..transforms.arrays import as_array, given_array
from ..transforms.lifted import channels_of_lwt2, lwt2_of_channels
from ..transforms.ondevice import HostLibrary, engine
from ..wavelets import Wavelet
from .spaces import Space, space

__all__ = ["expand", "forward", "from_planes", "inverse", "subsample", "to_planes"]

Array = NDArray[Any]


def _checked(array: Any, dtype: str, channel_axis: int) -> None:
    """An error for what is no colour image."""
    if dtype not in ("uint8", "uint16"):
        raise ArgumentTypeError(
            f"a colour image has channels of uint8 or uint16, got {dtype}; convert it first"
        )
    if len(array.shape) != 3:
        raise ArgumentError(
            f"a colour image has three axes, rows, columns and channels; got shape {array.shape}"
        )
    _check_axis(channel_axis)
    if array.shape[channel_axis] not in (3, 4):
        raise ArgumentError(
            f"a colour image has 3 channels, or 4 with opacity, along axis {channel_axis}; got"
            f" {array.shape[channel_axis]} (shape {tuple(array.shape)})"
        )
    if 0 in array.shape:
        raise ArgumentError(f"an image with pixels is needed, got shape {tuple(array.shape)}")


def _check_axis(channel_axis: int) -> None:
    if not isinstance(channel_axis, (int, np.integer)) or not -3 <= channel_axis < 3:
        raise ArgumentError(f"channel_axis is one of three axes, got {channel_axis!r}")


def _channel_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise ArgumentTypeError(f"channels are uint8 or uint16, got dtype {dtype!r}") from None
    if kind not in (np.dtype(np.uint8), np.dtype(np.uint16)):
        raise ArgumentTypeError(f"channels are uint8 or uint16, got dtype {kind}")
    return kind


def _image(image: ArrayLike, channel_axis: int) -> Array:
    """An image with its channels last, in one piece."""
    array = as_array(image, "image")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    _checked(array, str(array.dtype), channel_axis)
    return np.ascontiguousarray(np.moveaxis(array, channel_axis, -1))


def to_planes(image: ArrayLike, color: str = "rct", *, channel_axis: int = -1) -> Array:
    """The planes of a colour image: brightness, two of colour differences, and opacity if there is one.

    Parameters
    ----------
    image : uint8 or uint16, with 3 or 4 channels
    color : str
        One of ``SPACES``.
    channel_axis : int
        Where the channels are: -1 for ``(H, W, 3)``, 0 for ``(3, H, W)``.

    Returns
    -------
    array ``(3, H, W)`` or ``(4, H, W)``
        int16 or int32 for spaces of integers, float32 for the others.

    Examples
    --------
    >>> to_planes(np.array([[[200, 100, 50]]], "uint8"))[:, 0, 0].tolist()
    [112, -50, 100]
    """
    array, own = _image(image, channel_axis), space(color)
    planes = cpu.empty((array.shape[2], *array.shape[:2]), _plane_dtype(array, own))
    cpu.mix_planes(array, own.mixing(array.shape[2]), planes)
    return planes


def _plane_dtype(image: Array, own: Space) -> np.dtype[Any]:
    if not own.whole:
        return np.dtype(np.float32)
    return np.dtype(np.int16 if image.dtype == np.uint8 else np.int32)


def from_planes(
    planes: ArrayLike, color: str = "rct", *, dtype: DTypeLike = np.uint8, channel_axis: int = -1
) -> Array:
    """The inverse of :func:`to_planes`; what a channel does not hold is cut off.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (4, 5, 3)).astype("uint8")
    >>> bool((from_planes(to_planes(image)) == image).all())
    True
    """
    array, own, kind = as_array(planes, "planes"), space(color), _channel_dtype(dtype)
    _check_axis(channel_axis)
    if array.dtype.kind == "c":
        raise ArgumentTypeError(f"planes are real numbers, got {array.dtype}")
    if array.ndim != 3 or array.shape[0] not in (3, 4):
        raise ArgumentError(f"planes have shape (3, H, W) or (4, H, W), got {array.shape}")
    if own.whole and array.dtype.kind not in "iu":
        raise ArgumentTypeError(f"planes of {color!r} are integers, got {array.dtype}; round them first")
    if array.dtype.kind in "iub" and array.dtype.itemsize >= 4:  # (far more than any channel holds)
        array = np.clip(array, -(2**24) if array.dtype.kind == "i" else 0, 2**24).astype(np.int32)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    out = cpu.empty((*array.shape[1:], array.shape[0]), kind)
    cpu.join_channels(array, out, None if own.back is None else np.array(own.back, np.float64))
    return np.moveaxis(out, -1, channel_axis)


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
    """Planes of a colour image and their LWT, in one pass over the image.

    Parameters
    ----------
    image : uint8 or uint16, with 3 or 4 channels
    wavelet : Wavelet or str, optional
        ``cdf53`` for spaces of integers, which then come back bit for bit (with ``rct``), ``cdf97`` for
        others.
    level : int or None
        How often the approximation is decomposed; None for as often as there is something to decompose.
    color, channel_axis
        See :func:`to_planes`.
    backend : "auto", "cpu", "cuda" or "opencl"
        As for ``lwt2``: arrays on a device are transformed there, with channels last and at least one level.

    Returns
    -------
    list
        ``[cA, (cH, cV, cD) of the coarsest level, …]``, each with the planes along its first axis; on a
        device, these are views of numbers that lie side by side.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (40, 50, 3)).astype("uint8")
    >>> coeffs = forward(image)
    >>> coeffs[0].shape, bool((inverse(coeffs) == image).all())
    ((3, 5, 7), True)
    """
    own, device = space(color), engine([given_array(image, "image")], backend)
    array: Any
    if device is None or isinstance(device, HostLibrary):
        array, dtype = _image(image, channel_axis), str(np.asarray(image).dtype)
    else:
        array, dtype = image, device.dtype(image)
        _checked(array, dtype, channel_axis)
        if channel_axis not in (-1, 2):
            raise ArgumentError(
                "on a device, channels are side by side: permute the image to (H, W, channels)"
            )
    name = wavelet or ("cdf53" if own.whole else "cdf97")
    most = round(own.largest * int(np.iinfo(dtype).max)) + 1
    mixing = own.mixing(int(array.shape[2]))
    return lwt2_of_channels(array, mixing, name, level, mode, most, own.whole, device)


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
    """The inverse of :func:`forward`.

    ``dtype`` is that of the image: uint8 or uint16. If not given it is uint8, except for coefficients in
    int32 or int64, where it has to be said.
    """
    own = space(color)
    name = wavelet or ("cdf53" if own.whole else "cdf97")
    _check_axis(channel_axis)
    if not isinstance(coeffs, (list, tuple)) or not len(coeffs):
        raise ArgumentError(f"coefficients are nested as forward does, got {type(coeffs).__name__}")
    kinds = str(getattr(coeffs[0], "dtype", "")).removeprefix("torch.")
    if own.whole == kinds.startswith("float"):
        raise ArgumentTypeError(f"{kinds} coefficients are not those of {color!r}")
    if len(coeffs[0].shape) != 3 or int(coeffs[0].shape[0]) not in (3, 4):
        raise ArgumentError(
            f"coefficients of 3 or 4 planes are needed, along the first axis; got {tuple(coeffs[0].shape)}"
        )
    if dtype is None:
        if kinds in ("int32", "int64"):
            raise ArgumentError(f"{kinds} coefficients may be of either: say dtype='uint8' or dtype='uint16'")
        dtype = np.uint8
    arrays = [coeffs[0], *(band for part in coeffs[1:] for band in part)]
    device = engine([given_array(array, "coefficients") for array in arrays], backend)
    if device is not None and len(coeffs) > 1:
        made = channels_of_lwt2(coeffs, own.unmixing, name, mode, device, str(_channel_dtype(dtype)))
        axis = channel_axis % 3
        order = (2, 0, 1) if axis == 0 else (0, 2, 1)
        turned: Array = made if axis == 2 else device.turned(made, order)
        return turned
    return from_planes(ilwt2(coeffs, name, mode), color, dtype=dtype, channel_axis=channel_axis)


def subsample(plane: ArrayLike) -> Array:
    """A quarter of the samples: means of 2 × 2, of integers rounded up at a half.

    A row or column that is left over stands for two.

    Examples
    --------
    >>> subsample(np.array([[1, 2, 9], [3, 5, 8]])).tolist()
    [[3, 9]]
    """
    x = as_array(plane, "plane")
    if x.ndim < 2:
        raise ArgumentError(f"a plane has two axes, got shape {x.shape}")
    edges = [(0, 0)] * (x.ndim - 2) + [(0, x.shape[-2] % 2), (0, x.shape[-1] % 2)]
    wide = np.pad(x, edges, mode="edge")
    four = [wide[..., i::2, j::2] for i in (0, 1) for j in (0, 1)]
    if x.dtype.kind in "iu":  # (quarters and what is left of them: no sum is larger than a sample)
        rest: Any = sum((part & 3).astype(np.int64) for part in four)
        return np.asarray(sum(part >> 2 for part in four) + ((rest + 2) >> 2).astype(x.dtype))
    real = np.float32 if x.dtype == np.float16 else np.result_type(x.dtype, np.float32)
    return np.asarray(sum(part.astype(real) / 4 for part in four)).astype(
        np.float64 if x.dtype.kind == "b" else x.dtype
    )


def expand(plane: ArrayLike, shape: Sequence[int]) -> Array:
    """The inverse of :func:`subsample`, as far as there is one: each sample stands for 2 × 2.

    Examples
    --------
    >>> expand(np.array([[3, 9]]), (2, 3)).tolist()
    [[3, 3, 9], [3, 3, 9]]
    """
    x = as_array(plane, "plane")
    try:
        height, width = (operator.index(n) for n in shape)
    except (TypeError, ValueError):
        raise ArgumentError(f"a shape of two whole numbers is needed, got {shape!r}") from None
    if x.ndim < 2 or x.shape[-2:] != ((height + 1) // 2, (width + 1) // 2):
        raise ArgumentError(f"a plane of shape {x.shape} is not a quarter of {(height, width)}")
    return x.repeat(2, -2).repeat(2, -1)[..., :height, :width]
