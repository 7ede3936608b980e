"""Images as planes of floats: any axes, channels, dtypes and masks, and the way back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import DASK, differentiable_image, given_array, library_of, refuse_gradients
from ..color.spaces import space
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..lowering.axis_arguments import checked_axes, checked_axis

__all__ = [
    "AUTO",
    "COLORS",
    "GivenImage",
    "ImageLayout",
    "align_mask",
    "check_magnitude",
    "checked_counted",
    "checked_sigmas",
    "copied_frame",
    "find_channel_axis",
    "image_layout",
    "is_constant",
    "largest_magnitude",
    "native_samples",
    "unit_of",
]

COLORS = ("ycbcr", "channels")
AUTO = "auto"
MAX_AXES = 6  # There are 2^n bands of a level, each of them for 2^n shifts.
# Transforms multiply samples by up to this, which leaves room for them in the range of floats.
MAX_TRANSFORM_GAIN = 2.0**20
MAX_EXPONENT = 32  # Floats whose largest magnitude is 2 to a power beyond this get another unit.
FLOAT64_DTYPES = ("float64", "int32", "uint32", "int64", "uint64")  # Filtered in float64, others in float32.


def largest_magnitude(x: np.ndarray[Any, Any]) -> float:
    """Return the largest magnitude of the samples, which is not finite unless all of them are."""
    with np.errstate(invalid="ignore"):
        return float(np.maximum(x.max(), -x.min()))


def unit_of(largest: float) -> float:
    """Return the power of two by which samples are divided so that no filter leaves the range of floats.

    It is 1 for samples of ordinary magnitude. Results do not depend on it, because products with powers of
    two are exact.
    """
    exponent = math.frexp(largest)[1] if math.isfinite(largest) else 0
    return 1.0 if largest == 0 or abs(exponent) <= MAX_EXPONENT else math.ldexp(1.0, exponent - 1)


def magnitude_limit(dtype: str) -> float:
    """Return the magnitude of samples up to which transforms of them are finite."""
    return float(np.finfo(dtype).max) / MAX_TRANSFORM_GAIN


def check_magnitude(largest: float, dtype: str) -> None:
    """Raise an error for samples that are too large to be filtered in this dtype."""
    limit = magnitude_limit(dtype)
    if largest > limit:
        wider = ", convert them to float64" if dtype == "float32" else ""
        raise ArgumentError(
            f"{dtype} samples can be filtered up to {limit:.1e}, got {largest:.1e}: divide them{wider}, or"
            " exclude them by mask"
        )


def is_constant(image: Any, mask: Any) -> bool:
    """Return whether all valid samples of an array of NumPy are equal."""
    if not isinstance(image, np.ndarray) or image.dtype.kind not in "iuf" or not image.size:
        return False
    samples = image if mask is None or np.shape(mask) != image.shape else image[np.asarray(mask, bool)]
    return bool(samples.size) and bool(samples.min() == samples.max())


def native_samples(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array in the byte order of the machine, or raise an error for floats of more than 64 bits."""
    if x.dtype.kind == "f" and x.dtype.itemsize > 8:
        raise ArgumentTypeError(
            f"images must have real numbers of at most 64 bits, got {x.dtype}; convert them first"
        )
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


def find_channel_axis(
    shape: tuple[int, ...], channel_axis: int | str | None, axes: Sequence[int] | None
) -> int | None:
    """Return the axis of channels, counted from 0, or None if there is none."""
    ndim = len(shape)
    if isinstance(channel_axis, str) and channel_axis == AUTO:
        return 2 if ndim == 3 and shape[2] in (3, 4) and axes is None else None
    if channel_axis is None:
        return None
    channel = checked_axis(channel_axis, ndim, others=", None or 'auto'")
    if ndim == 1:
        raise ArgumentError("a one-dimensional array has no axis for channels; pass channel_axis=None")
    return channel


def _find_spatial_axes(
    shape: tuple[int, ...], channel: int | None, axes: Sequence[int] | int | None
) -> list[int]:
    if axes is None:
        others = [axis for axis in range(len(shape)) if axis != channel]
        # Along an axis of one sample there would seem to be no noise.
        return [axis for axis in others if shape[axis] > 1] or others[-1:]
    spatial = sorted(checked_axes(axes, len(shape)))
    if channel in spatial:
        raise ArgumentError(f"axis {channel} is the axis of channels and cannot be among axes {axes}")
    return spatial


def align_mask(
    mask: Any, xp: Any, shape: tuple[int, ...], channel: int | None, axes: Sequence[int] | int | None
) -> Any:
    """Broadcast a mask of samples, of pixels, or of one image of a batch to the shape of the image."""
    if DASK.owns(mask):
        raise ArgumentTypeError("mask is a Dask array, but the image is not; call the compute() of the mask")
    mask = given_array(mask, "mask")
    if not library_of(mask).dtype(mask).startswith("bool"):
        raise ArgumentTypeError(f"mask must be boolean, True where samples are valid; got dtype {mask.dtype}")
    xp = np if isinstance(mask, np.ndarray) else xp
    mask_shape = tuple(int(n) for n in mask.shape)
    spatial = _find_spatial_axes(shape, channel, axes)
    if channel is not None and mask_shape == tuple(n for axis, n in enumerate(shape) if axis != channel):
        mask = xp.expand_dims(mask, axis=channel)
    elif mask_shape != shape:
        if mask_shape != tuple(shape[axis] for axis in spatial):
            raise ArgumentError(f"mask must have the shape of the image, {shape}, got {mask_shape}")
        mask = xp.reshape(mask, tuple(n if axis in spatial else 1 for axis, n in enumerate(shape)))
    return xp.broadcast_to(mask, shape)


def checked_counted(counted: Any, shape: tuple[int, ...]) -> Any:
    """Return where samples count in statistics, or raise an error unless that is known of each sample."""
    counted = given_array(counted, "counted")
    dtype, counted_shape = library_of(counted).dtype(counted), tuple(counted.shape)
    if not dtype.startswith("bool"):
        raise ArgumentTypeError(f"counted must be boolean, True where samples count; got dtype {dtype}")
    if counted_shape != shape:
        raise ArgumentError(f"counted must have the shape of the image, {shape}, got {counted_shape}")
    return counted


def copied_frame(frame: Any) -> Any:
    """Return a copy of an array on the host, whose memory the caller may use for the next frame."""
    library = library_of(frame)
    return library.copy(frame) if hasattr(frame, "dtype") and library.device(frame).on_host else frame


@dataclass(frozen=True)
class ImageLayout:
    """The axes and the dtype of an image, a volume or a batch of them, and what its planes are.

    Planes are floats of shape ``(items, ...)``. Items are channels and images, and the other axes are the
    spatial ones. Methods take arrays of NumPy or symbolic arrays, whose functions are in ``xp``.

    Parameters
    ----------
    shape : tuple of int
    dtype : str
    channel : int or None
        Axis of channels.
    axes : tuple of int
        Spatial axes; the other axes count images.
    mixed : bool
        Whether planes are luma and chroma, or the channels.
    """

    shape: tuple[int, ...]
    dtype: str
    channel: int | None
    axes: tuple[int, ...]
    mixed: bool

    @property
    def ndim(self) -> int:
        """The number of spatial axes."""
        return len(self.axes)

    @property
    def channels(self) -> int:
        """The number of channels."""
        return 1 if self.channel is None else self.shape[self.channel]

    @property
    def working_dtype(self) -> str:
        """The dtype of planes."""
        return "float64" if self.dtype in FLOAT64_DTYPES else "float32"

    @property
    def exceeds_floats(self) -> bool:
        """Whether samples may be integers that planes cannot hold."""
        return self.dtype in ("int64", "uint64")

    @property
    def batch_axes(self) -> tuple[int, ...]:
        """The axes that count images."""
        return tuple(axis for axis in range(len(self.shape)) if axis not in (self.channel, *self.axes))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The axes of the image in the order of planes: channels, images, then spatial axes."""
        channel = () if self.channel is None else (self.channel,)
        return (*channel, *self.batch_axes, *self.axes)

    @cached_property
    def planes_shape(self) -> tuple[int, ...]:
        """The shape of planes."""
        sizes = [self.shape[axis] for axis in self.order]
        if self.mixed:
            sizes[0] = 3
        lead = len(sizes) - self.ndim
        return (int(np.prod(sizes[:lead], dtype=int)), *sizes[lead:])

    @property
    def weights(self) -> np.ndarray[Any, Any]:
        """The matrix from red, green and blue to luma and chroma."""
        return np.array(space("bt601").mixing(3).weights, float)

    def to_planes(self, xp: Any, image: Any, mask: Any = None) -> Any:
        """Return the planes of an image; samples outside the mask are zero."""
        if mask is not None:  # A NaN must not spread to the other channels.
            image = xp.where(mask, image, xp.zeros_like(image))
        planes = xp.astype(xp.permute_dims(image, self.order), getattr(xp, self.working_dtype))
        if self.mixed:
            planes = _mix(xp, planes, self.weights)
        return self._flatten(xp, planes)

    def _flatten(self, xp: Any, x: Any) -> Any:
        """Join all axes before the spatial ones."""
        return xp.reshape(x, (-1, *x.shape[len(x.shape) - self.ndim :]))

    def mask_planes(self, xp: Any, mask: Any) -> Any:
        """Return a mask of planes: luma and chroma of a pixel are valid if all of its channels are."""
        moved = xp.permute_dims(mask, self.order)
        if self.mixed:
            moved = xp.all(moved[:3], axis=0, keepdims=True)
            moved = xp.broadcast_to(moved, (3, *moved.shape[1:]))
        return self._flatten(xp, moved)

    def to_image(self, xp: Any, planes: Any, image: Any, mask: Any = None) -> Any:
        """Return planes as an image; alpha, and samples outside the mask, are those of ``image``."""
        if self.mixed:
            channels = xp.reshape(planes, (3, *(self.shape[axis] for axis in self.order[1:])))
            planes = _mix(xp, channels, np.linalg.inv(self.weights))
            if self.channels == 4:
                alpha = xp.permute_dims(image, self.order)[3:]
                planes = xp.concat([planes, xp.astype(alpha, getattr(xp, self.working_dtype))], axis=0)
        return self.restore(xp, self.in_image_layout(xp, planes), image, mask)

    def in_image_layout(self, xp: Any, planes: Any) -> Any:
        """Reorder planes of all channels to the layout of the image."""
        sizes = tuple(self.shape[axis] for axis in self.order)
        inverse = tuple(self.order.index(axis) for axis in range(len(self.order)))
        return xp.permute_dims(xp.reshape(planes, sizes), inverse)

    def restore(self, xp: Any, x: Any, image: Any, mask: Any = None) -> Any:
        """Convert floats to the dtype of the image; samples outside the mask are those of ``image``.

        Results beyond the range of integers or float16 become its limits.
        If :attr:`exceeds_floats`, the mask is left to :meth:`GivenImage.as_given`.
        """
        if not self.dtype.startswith("float"):
            info = np.iinfo(self.dtype)
            # The largest integers may not be floats; the next smaller float is the limit.
            largest = float(np.dtype(self.working_dtype).type(info.max))
            if int(largest) > info.max:
                largest = float(np.nextafter(np.dtype(self.working_dtype).type(largest), 0))
            x = xp.round(xp.clip(x, float(info.min), largest))
        elif self.dtype == "float16":
            largest = float(np.finfo(np.float16).max)
            x = xp.clip(x, -largest, largest)
        x = xp.astype(x, getattr(xp, self.dtype))
        return x if mask is None or self.exceeds_floats else xp.where(mask, x, image)

    def item_sigmas(self, sigma: Any, unit: float = 1.0) -> np.ndarray[Any, Any]:
        """Return the noise of each item of samples in other units, from one number or one per channel."""
        sigmas = np.atleast_1d(checked_sigmas(sigma))
        if sigmas.ndim != 1 or len(sigmas) not in (1, self.channels):
            raise ArgumentError(
                f"sigma must be a number, or one for each of {self.channels} channel(s), got shape"
                f" {sigmas.shape}"
            )
        with np.errstate(over="ignore"):
            sigmas = np.minimum(sigmas / unit, magnitude_limit(self.working_dtype))
        if self.mixed:
            variances = np.broadcast_to(sigmas, (self.channels,))[:3] ** 2
            sigmas = np.sqrt((self.weights**2) @ variances)
        items = self.planes_shape[0]
        return np.repeat(sigmas, items // len(sigmas)).astype(self.working_dtype)


def checked_sigmas(sigma: Any) -> np.ndarray[Any, Any]:
    """Return standard deviations of noise as an array, or raise an error unless all are numbers from 0 on."""
    refuse_gradients(sigma, "sigma")
    try:
        given = np.asarray(library_of(sigma).to_numpy(sigma) if hasattr(sigma, "dtype") else sigma)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"sigma must be a number, got {sigma!r}") from None
    if given.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"sigma must be a number, got {sigma!r}")
    sigmas = given.astype(np.float64)
    if not np.isfinite(sigmas).all() or (sigmas < 0).any():
        raise ArgumentError(f"sigma must be finite and not negative, got {sigma!r}")
    return sigmas


def _mix(xp: Any, planes: Any, matrix: np.ndarray[Any, Any]) -> Any:
    """Return weighted sums of the first three planes."""
    rows = [sum(float(weight) * planes[k] for k, weight in enumerate(row)) for row in matrix]
    return xp.stack(rows, axis=0)


def image_layout(
    shape: tuple[int, ...],
    dtype: str,
    channel_axis: int | str | None = AUTO,
    axes: Sequence[int] | None = None,
    color: str = COLORS[0],
) -> ImageLayout:
    """Return the layout of an image; the arguments are those of :class:`GivenImage`."""
    if color not in COLORS:
        raise UnknownNameError("colour", color, COLORS)
    if len(shape) == 0 or 0 in shape:
        raise ArgumentError(f"an array with samples is needed, got shape {shape}")
    if dtype.startswith(("complex", "bool")):
        raise ArgumentTypeError(f"images must have real numbers, got {dtype}; convert them first")
    channel = find_channel_axis(shape, channel_axis, axes)
    spatial = tuple(_find_spatial_axes(shape, channel, axes))
    if len(spatial) > MAX_AXES:
        raise ArgumentError(
            f"an image is filtered over at most {MAX_AXES} axes, got {len(spatial)} of an array of shape"
            f" {shape}; name those to filter over by axes, and the others count images"
        )
    mixed = channel is not None and shape[channel] in (3, 4) and color == COLORS[0]
    return ImageLayout(shape, dtype, channel, spatial, mixed)


class GivenImage:
    """An image as the caller passed it, its layout, and where its samples are valid.

    Parameters
    ----------
    x : array
    channel_axis : int, None or "auto"
        Axis of channels. ``auto`` takes the last of three axes if it has 3 or 4 samples and ``axes`` is None.
    axes : sequence of int, optional
        Spatial axes; the other axes count images. All axes except that of the channels if None.
    color : {"ycbcr", "channels"}
        Whether to filter luma and chroma, or each channel separately.
    mask : array of bool, optional
        True where samples are valid. On the host, NaNs and infinities are not valid either; on a device they
        are not detected.

    Attributes
    ----------
    array : array
        The image as an array of NumPy, or of its library if that has it on a device.
    layout : ImageLayout
    mask : array of bool or None
        Where samples are valid, in the shape of the image; None if all are.
    uneven : bool
        Whether channels are mixed although some pixels lack some of them; see :meth:`join`.
    unit : float or None
        The :func:`unit_of` the samples; None if images of a batch have different ones. It is 1 on a device.
    """

    def __init__(
        self,
        x: Any,
        channel_axis: int | str | None = AUTO,
        axes: Sequence[int] | None = None,
        color: str = "ycbcr",
        mask: Any = None,
    ) -> None:
        self._original, unmasked = x, None
        self.unit: float | None = 1.0
        if isinstance(x, np.ma.MaskedArray):
            unmasked, x = ~np.ma.getmaskarray(x), x.data
        # A tensor that is differentiated stays with its library, like an array on a device.
        self.array = differentiable_image(x)
        library = library_of(self.array)
        self.on_host = isinstance(self.array, np.ndarray)
        shape = tuple(int(n) for n in self.array.shape)
        if self.on_host:
            self.array = native_samples(self.array)
        dtype = library.dtype(self.array)
        self.layout = image_layout(shape, dtype, channel_axis, axes, color)
        self.mask, self.uneven = self._find_valid(mask, unmasked), False
        if self.mask is not None and self.layout.mixed:
            self._check_pixels(mask)

    @property
    def xp(self) -> Any:
        """The functions of the array API for the image."""
        return np if self.on_host else library_of(self.array).namespace(self.array)

    def _find_valid(self, mask: Any, unmasked: Any) -> Any:
        """Return where samples are valid, in the layout of the image; None if all are."""
        layout, valid = self.layout, unmasked
        floats = self.on_host and layout.dtype.startswith("float")
        largest = largest_magnitude(self.array) if floats else 0.0
        if floats and not math.isfinite(largest):
            finite = np.isfinite(self.array)
            valid = finite if valid is None else valid & finite
        if mask is not None:
            mask = align_mask(mask, self.xp, layout.shape, layout.channel, layout.axes)
            valid = mask if valid is None else valid & mask
        if valid is not None and self.on_host and not valid.any():
            raise ArgumentError("no sample is valid: all are masked or NaN")
        if floats:
            self.unit = self._find_unit(largest, valid)
        return valid

    def _find_unit(self, largest: float, valid: Any) -> float | None:
        """Return the unit of the samples, given their largest magnitude and where they are valid."""
        batch = self.layout.batch_axes
        if math.prod(self.layout.shape[axis] for axis in batch) == 1:
            return unit_of(largest if valid is None else largest_magnitude(self.array[valid]))
        samples = self.array if valid is None else np.where(valid, self.array, 0)
        others = tuple(axis for axis in range(samples.ndim) if axis not in batch)
        units = set(map(unit_of, np.maximum(samples.max(others), -samples.min(others)).ravel().tolist()))
        return units.pop() if len(units) == 1 else None

    def in_units(self) -> Any:
        """Return the array in its unit; see :meth:`from_units`."""
        if self.unit in (None, 1.0):
            return self.array
        with np.errstate(over="ignore"):  # of samples that are not valid
            return self.array / self.array.dtype.type(self.unit)

    def from_units(self, x: Any) -> Any:
        """Return a filtered array in the units of the image; its largest samples stay finite."""
        if self.unit in (None, 1.0):
            return x
        limit = np.finfo(x.dtype).max
        with np.errstate(over="ignore"):
            x = np.clip(x * x.dtype.type(self.unit), -limit, limit)
        return x if self.mask is None else np.where(self.mask, x, self.array)

    def one_by_one(self, filtered: Callable[[Any, Any, tuple[slice, ...]], Any]) -> Any:
        """Filter the images of a batch one by one, and return an array like the one of this image.

        Parameters
        ----------
        filtered : callable
            Takes the array of an image, its mask or None, and the place of both, and returns an array.
            Images without a valid sample stay as they are.
        """
        shape = self.layout.shape
        axis = next(axis for axis in self.layout.batch_axes if shape[axis] > 1)
        images = []
        for number in range(shape[axis]):
            place = (*[slice(None)] * axis, slice(number, number + 1))
            image, mask = self.array[place], None if self.mask is None else self.mask[place]
            if mask is None or bool(self.xp.any(mask)):
                image = filtered(image, mask, place)
            images.append(image)
        return self.xp.concat(images, axis=axis)

    def _check_pixels(self, mask: Any) -> None:
        """Determine whether channels can be mixed although some pixels lack some of them.

        The luma of a pixel is known only with all of its channels. If fewer than half of the pixels with a
        valid channel have all of them, channels are not mixed.
        """
        xp, layout = np if isinstance(self.mask, np.ndarray) else self.xp, self.layout
        if not self.on_host and tuple(mask.shape) != layout.shape:
            return  # The mask is the same for all channels; no need to wait for the device to say so.
        valid = xp.permute_dims(self.mask, layout.order)[:3]
        complete, partial = xp.all(valid, axis=0), xp.any(valid, axis=0)
        axes = tuple(range(len(complete.shape) - layout.ndim, len(complete.shape)))
        mixed = bool(xp.all(2 * xp.sum(complete, axis=axes) >= xp.sum(partial, axis=axes)))
        self.layout = ImageLayout(layout.shape, layout.dtype, layout.channel, layout.axes, mixed)
        self.uneven = mixed and bool(xp.any(partial & ~complete))

    def join(self, mixed: Any, separate: Any) -> Any:
        """Take pixels with all of their channels from one image, and the others from another."""
        xp, axis = self.xp, self.layout.channel or 0
        channels = (*[slice(None)] * axis, slice(3))
        complete = xp.all(self.mask[channels], axis=axis, keepdims=True)
        return self.as_given(xp.where(complete, *(given_array(image) for image in (mixed, separate))))

    def as_given(self, x: Any) -> Any:
        """Return an image as an array of the library of the original."""
        if self.mask is not None and self.layout.exceeds_floats:
            x = self.xp.where(self.mask, x, self.array)
        return library_of(self._original).restore(x, self._original)
