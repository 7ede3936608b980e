"""Images as planes of floats: any axes, channels, dtypes and masks, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import given_array, library_of, refuse_gradients
from ..color import from_planes, to_planes
from ..color.spaces import space
from ..engines.cpu import filter_operations as cpu
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..lowering.axis_arguments import checked_axes
from .holes import fill_holes
from .operations import ArrayOperations, operations_for

__all__ = ["AUTO", "COLORS", "ImagePlanes", "align_mask", "find_channel_axis"]

COLORS = ("ycbcr", "channels")
AUTO = "auto"
FLOAT64_DTYPES = ("float64", "int32", "uint32", "int64", "uint64")  # Filtered in float64, others in float32.


def _all_finite(x: np.ndarray[Any, Any]) -> bool:
    """Return whether all samples are finite, mostly by their sum, which is fast."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.sum(x, dtype=None if x.dtype.itemsize > 2 else np.float32)
    return bool(np.isfinite(total)) or bool(np.isfinite(x).all())


def find_channel_axis(
    shape: tuple[int, ...], channel_axis: int | str | None, axes: Sequence[int] | None
) -> int | None:
    """Return the axis of channels, counted from 0, or None if there is none."""
    ndim = len(shape)
    if channel_axis == AUTO:
        return 2 if ndim == 3 and shape[2] in (3, 4) and axes is None else None
    if channel_axis is None:
        return None
    if not isinstance(channel_axis, (int, np.integer)) or not -ndim <= channel_axis < ndim:
        raise ArgumentError(
            f"channel_axis must be from {-ndim} to {ndim - 1}, None or 'auto', got {channel_axis!r}"
        )
    if ndim == 1:
        raise ArgumentError("a one-dimensional array has no axis for channels; pass channel_axis=None")
    return int(channel_axis) % ndim


def _find_spatial_axes(
    shape: tuple[int, ...], channel: int | None, axes: Sequence[int] | int | None
) -> list[int]:
    if axes is None:
        others = [axis for axis in range(len(shape)) if axis != channel]
        # Along an axis of one sample there would seem to be no noise.
        return [axis for axis in others if shape[axis] > 1] or others[-1:]
    given = (int(axes),) if isinstance(axes, (int, np.integer)) else tuple(axes)
    spatial = sorted(checked_axes(given, len(shape)))
    if channel in spatial:
        raise ArgumentError(f"axis {channel} is the axis of channels and cannot be among axes {given}")
    return spatial


def align_mask(
    mask: Any, xp: Any, shape: tuple[int, ...], channel: int | None, axes: Sequence[int] | int | None
) -> Any:
    """Broadcast a mask of samples, of pixels, or of one image of a batch to the shape of the image."""
    mask = given_array(mask, "mask")
    if not library_of(mask).dtype(mask).startswith("bool"):
        raise ArgumentTypeError(f"mask must be boolean, True where samples are valid; got dtype {mask.dtype}")
    mask_shape = tuple(int(n) for n in mask.shape)
    spatial = _find_spatial_axes(shape, channel, axes)
    if channel is not None and mask_shape == tuple(n for axis, n in enumerate(shape) if axis != channel):
        mask = xp.expand_dims(mask, axis=channel)
    elif mask_shape != shape:
        if mask_shape != tuple(shape[axis] for axis in spatial):
            raise ArgumentError(f"mask must have the shape of the image, {shape}, got {mask_shape}")
        mask = xp.reshape(mask, tuple(n if axis in spatial else 1 for axis, n in enumerate(shape)))
    return xp.broadcast_to(mask, shape)


class ImagePlanes:
    """An image, a volume or a batch of them, as planes of floats with items first.

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
    planes : array of shape (items, ...)
        Items are channels and images. Invalid samples are filled in from their neighbours.
    ndim : int
        Number of spatial axes.
    valid : array of bool or None
        Where samples of the planes are valid; None if all are.
    sample_mask : array of bool or None
        The same in the layout of the image.
    uneven : bool
        Whether channels are mixed although some pixels lack some of them; see :meth:`join`.
    """

    def __init__(
        self,
        x: Any,
        channel_axis: int | str | None = AUTO,
        axes: Sequence[int] | None = None,
        color: str = "ycbcr",
        mask: Any = None,
    ) -> None:
        unmasked = None
        if isinstance(x, np.ma.MaskedArray):
            unmasked, x = ~np.ma.getmaskarray(x), x.data
        self.image = given_array(x, "image")
        self._original = x
        self.operations: ArrayOperations = operations_for(self.image)
        self.shape = tuple(int(n) for n in self.image.shape)
        self.dtype = library_of(self.image).dtype(self.image)
        if self.operations.host:
            self.dtype = str(self.image.dtype.newbyteorder("="))
        if color not in COLORS:
            raise UnknownNameError("colour", color, COLORS)
        if len(self.shape) == 0 or 0 in self.shape:
            raise ArgumentError(f"an array with samples is needed, got shape {self.shape}")
        if self.dtype.startswith(("complex", "bool")):
            raise ArgumentTypeError(f"images must have real numbers, got {self.dtype}; convert them first")
        self.channel = find_channel_axis(self.shape, channel_axis, axes)
        self.axes = _find_spatial_axes(self.shape, self.channel, axes)
        self.ndim = len(self.axes)
        # Planes have channels first, then images, then the spatial axes.
        channel_axes = [] if self.channel is None else [self.channel]
        batch = [axis for axis in range(len(self.shape)) if axis not in (*channel_axes, *self.axes)]
        self.order = [*channel_axes, *batch, *self.axes]
        self.channels = 1 if self.channel is None else self.shape[self.channel]
        self.mixed = self.channels in (3, 4) and color == "ycbcr"
        self.working_dtype = "float64" if self.dtype in FLOAT64_DTYPES else "float32"
        self.sample_mask = self._find_valid(mask, unmasked)
        self.uneven = False
        if self.sample_mask is not None and self.mixed:
            self._check_pixels(mask)
        self.valid = None if self.sample_mask is None else self.arrange(self.sample_mask)
        self._alpha: Any = None
        self.planes = self._make_planes()
        if self.valid is not None:
            self.planes = fill_holes(self.operations, self.planes, self.valid, self.ndim)

    # --- from the image to planes -----------------------------------------------------------------

    @property
    def _compiled(self) -> bool:
        """Whether the compiled loops for colour images apply."""
        return (
            self.operations.host
            and self.mixed
            and self.dtype in ("uint8", "uint16")
            and len(self.shape) == 3
            and self.ndim == 2  # It is 1 if a side has one pixel, or if axes say so.
            and self.image.dtype.isnative
        )

    @property
    def _weights(self) -> np.ndarray[Any, Any]:
        """The matrix from red, green and blue to luma and chroma."""
        return np.array(space("bt601").mixing(3).weights, float)

    def _make_planes(self) -> Any:
        xp = self.operations.xp
        if self._compiled:
            planes = to_planes(self.image, "bt601", channel_axis=self.channel or 0)
            if self.channels == 4:
                self._alpha, planes = planes[3:], planes[:3]
            return planes
        image = self.image
        if self.valid is not None:  # A NaN must not spread to the other channels.
            image = xp.where(self.sample_mask, image, xp.zeros_like(image))
        moved = xp.permute_dims(image, tuple(self.order))
        if self.operations.host:
            planes = np.ascontiguousarray(moved, dtype=self.working_dtype)
        else:
            planes = xp.astype(moved, getattr(xp, self.working_dtype))
        if self.mixed:
            if self.channels == 4:
                self._alpha, planes = planes[3:], planes[:3]
            planes = self._mix(planes, self._weights)
        return self._flatten(planes)

    def _mix(self, planes: Any, matrix: np.ndarray[Any, Any]) -> Any:
        rows = [sum(float(weight) * planes[k] for k, weight in enumerate(row)) for row in matrix]
        return self.operations.xp.stack(rows, axis=0)

    def _flatten(self, x: Any) -> Any:
        """Join all axes before the spatial ones."""
        return self.operations.xp.reshape(x, (-1, *x.shape[len(x.shape) - self.ndim :]))

    def _check_pixels(self, mask: Any) -> None:
        """Determine whether channels can be mixed although some pixels lack some of them.

        The luma of a pixel is known only with all of its channels. If fewer than half of the pixels with a
        valid channel have all of them, channels are not mixed.
        """
        xp = self.operations.xp
        if not self.operations.host and tuple(mask.shape) != self.shape:
            return  # The mask is the same for all channels; no need to wait for the device to say so.
        valid = xp.permute_dims(self.sample_mask, tuple(self.order))[:3]
        complete, partial = xp.all(valid, axis=0), xp.any(valid, axis=0)
        axes = tuple(range(len(complete.shape) - self.ndim, len(complete.shape)))
        self.mixed = bool(xp.all(2 * xp.sum(complete, axis=axes) >= xp.sum(partial, axis=axes)))
        self.uneven = self.mixed and bool(xp.any(partial & ~complete))

    def _find_valid(self, mask: Any, unmasked: Any) -> Any:
        """Return where samples are valid, in the layout of the image; None if all are."""
        valid = unmasked
        if self.operations.host and self.dtype.startswith("float") and not _all_finite(self.image):
            finite = np.isfinite(self.image)
            valid = finite if valid is None else valid & finite
        if mask is not None:
            mask = align_mask(mask, self.operations.xp, self.shape, self.channel, self.axes)
            valid = mask if valid is None else valid & mask
        if valid is not None and self.operations.host and not valid.any():
            raise ArgumentError("no sample is valid: all are masked or NaN")
        return valid

    def arrange(self, mask: Any) -> Any:
        """Convert a mask from the layout of the image to that of the planes."""
        xp = self.operations.xp
        moved = xp.permute_dims(mask, tuple(self.order))
        if self.mixed:
            moved = xp.all(moved[:3], axis=0, keepdims=True)
            moved = xp.broadcast_to(moved, (3, *moved.shape[1:]))
        return self._flatten(moved)

    def item_sigmas(self, sigma: Any) -> Any:
        """Return the noise of each item, from one number or one per channel; None stays None."""
        if sigma is None:
            return None
        refuse_gradients(sigma, "sigma")
        try:
            sigmas = np.atleast_1d(np.asarray(sigma, np.float64))
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"sigma must be a number, got {sigma!r}") from None
        if sigmas.ndim != 1 or len(sigmas) not in (1, self.channels):
            raise ArgumentError(
                f"sigma must be a number, or one for each of {self.channels} channel(s), got shape"
                f" {sigmas.shape}"
            )
        if not np.isfinite(sigmas).all() or (sigmas < 0).any():
            raise ArgumentError(f"sigma must be finite and not negative, got {sigma!r}")
        if self.mixed:
            variances = np.broadcast_to(sigmas, (self.channels,))[:3] ** 2
            sigmas = np.sqrt((self._weights**2) @ variances)
        repeated = np.repeat(sigmas, int(self.planes.shape[0]) // len(sigmas))
        return self.operations.per_item(repeated, self.planes)

    # --- and back ---------------------------------------------------------------------------------

    def to_image(self, planes: Any) -> Any:
        """Convert filtered planes to an image of the original layout, dtype and library."""
        xp = self.operations.xp
        if self._compiled:
            if self._alpha is not None:
                planes = np.concatenate([planes, self._alpha])
            image = from_planes(planes, "bt601", dtype=self.dtype, channel_axis=self.channel or 0)
            return self._as_original(self._keep_invalid(image))
        if not self.mixed:
            return self.restore(self.in_image_layout(planes))
        sizes = (3, *(self.shape[axis] for axis in self.order[1:]))
        channels = self._mix(xp.reshape(planes, sizes), np.linalg.inv(self._weights))
        if self._alpha is not None:
            channels = xp.concat([channels, self._alpha], axis=0)
        return self.restore(self.in_image_layout(channels))

    def in_image_layout(self, planes: Any) -> Any:
        """Reorder planes of all channels to the layout of the image."""
        sizes = tuple(self.shape[axis] for axis in self.order)
        inverse = tuple(self.order.index(axis) for axis in range(len(self.order)))
        return self.operations.xp.permute_dims(self.operations.xp.reshape(planes, sizes), inverse)

    def restore(self, x: Any) -> Any:
        """Convert floats in the layout of the image to its dtype and library, keeping invalid samples."""
        return self._as_original(self._keep_invalid(self._to_dtype(x)))

    def _to_dtype(self, x: Any) -> Any:
        """Convert to the dtype of the image; integers are rounded and clipped to its range."""
        xp = self.operations.xp
        dtype = getattr(xp, self.dtype) if not self.operations.host else self.image.dtype.newbyteorder("=")
        if self.operations.host and dtype.kind in "iu" and dtype.itemsize <= 4 and x.dtype.kind == "f":
            return cpu.rounded(x, dtype)
        if not self.dtype.startswith("float"):
            info = np.iinfo(self.dtype)
            # The largest 64-bit integers are not floats; the next smaller float is the limit.
            largest = float(info.max) if info.bits <= 32 else float(np.nextafter(float(info.max), 0))
            x = xp.clip(xp.round(x), float(info.min), largest)
        if self.operations.host:
            return np.ascontiguousarray(x, dtype=dtype)
        return xp.astype(x, dtype)

    def join(self, mixed: Any, separate: Any) -> Any:
        """Take pixels with all of their channels from one image, and the others from another."""
        xp, axis = self.operations.xp, self.channel or 0
        channels = (*[slice(None)] * axis, slice(3))
        complete = xp.all(self.sample_mask[channels], axis=axis, keepdims=True)
        return self._as_original(xp.where(complete, *(given_array(image) for image in (mixed, separate))))

    def _keep_invalid(self, x: Any) -> Any:
        """Return the filtered samples where they are valid, and the original ones elsewhere."""
        return x if self.valid is None else self.operations.xp.where(self.sample_mask, x, self.image)

    def _as_original(self, x: Any) -> Any:
        """Return an image as an array of the library of the original."""
        return library_of(self._original).restore(x, self._original)
