"""Images as callers have them: any axes, channels, dtype, holes; and the way back to just that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backends.cpu import filters as cpu
from ..color import from_planes, to_planes
from ..color.spaces import space
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..inputs import refuse_gradients
from ..plans.axes import checked_axes
from ..transforms.arrays import given_array
from ..transforms.ondevice import restorer
from .arrays import Arrays, arrays_for
from .holes import filled

__all__ = ["COLORS", "Subject"]

COLORS = ("ycbcr", "channels")
AUTO = "auto"


def _all_finite(x: np.ndarray[Any, Any]) -> bool:
    """Whether all are numbers: mostly seen by their sum, which is soon found."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.sum(x, dtype=None if x.dtype.itemsize > 2 else np.float32)
    return bool(np.isfinite(total)) or bool(np.isfinite(x).all())


class Subject:
    """An image, a volume or a batch of them, as planes of floats with items first.

    Parameters
    ----------
    x : array
    channel_axis : int, None or "auto"
        ``auto`` takes a last axis of 3 or 4 for channels, where there are three axes and all are filtered.
    axes : sequence of int, optional
        Along which places lie; the others count images. All but that of the channels, if not given.
    color : str
        ``ycbcr`` filters brightness and colour differences; ``channels`` each channel by itself.
    mask : array of bool, optional
        Where samples are valid.

    Attributes
    ----------
    planes : array ``(items, …)``
    valid : array of bool ``(items or 1, …)``, or None where all are
    keep : array of bool, or None
        The same in the layout of the image.
    uneven : bool
        Whether channels are mixed, and some pixels lack some of theirs: see :meth:`joined`.
    """

    def __init__(
        self,
        x: Any,
        channel_axis: int | str | None = AUTO,
        axes: Sequence[int] | None = None,
        color: str = "ycbcr",
        mask: Any = None,
    ) -> None:
        shown = None
        if isinstance(x, np.ma.MaskedArray):
            shown, x = ~np.ma.getmaskarray(x), x.data
        self.given = given_array(x, "image")
        self._restored = restorer(x)
        self.arrays: Arrays = arrays_for(self.given)
        self.shape = tuple(int(n) for n in self.given.shape)
        self.dtype = str(self.given.dtype).removeprefix("torch.")
        if self.arrays.host:
            self.dtype = str(self.given.dtype.newbyteorder("="))
        ndim = len(self.shape)
        if color not in COLORS:
            raise UnknownNameError("colour", color, COLORS)
        if ndim == 0 or 0 in self.shape:
            raise ArgumentError(f"an array with samples is needed, got shape {self.shape}")
        if self.dtype.startswith(("complex", "bool")):
            raise ArgumentTypeError(f"images are real numbers, got {self.dtype}; convert them first")
        self.channel = self._channel_of(self.shape, channel_axis, axes)
        self.axes = self._axes_of(self.shape, self.channel, axes)
        self.places = len(self.axes)
        self.batch = [axis for axis in range(ndim) if axis not in (self.channel, *self.axes)]
        # Channels first, then images, then places.
        front = [] if self.channel is None else [self.channel]
        self.order = [*front, *self.batch, *self.axes]
        self.channels = 1 if self.channel is None else self.shape[self.channel]
        self.mixed = self.channels in (3, 4) and color == "ycbcr"
        self.working = (
            "float64" if self.dtype in ("float64", "int32", "uint32", "int64", "uint64") else "float32"
        )
        self.keep = self._valid(mask, shown)
        self.uneven = False
        if self.keep is not None and self.mixed:
            self._look_at_pixels(mask)
        self.valid = None if self.keep is None else self.arranged(self.keep)
        self.extra: Any = None
        self.planes = self._planes()
        if self.valid is not None:
            self.planes = filled(self.arrays, self.planes, self.valid, self.places)

    @staticmethod
    def _channel_of(
        shape: tuple[int, ...], channel_axis: int | str | None, axes: Sequence[int] | None
    ) -> int | None:
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
            raise ArgumentError("a line of samples has no axis for channels")
        return int(channel_axis) % ndim

    @staticmethod
    def _axes_of(shape: tuple[int, ...], channel: int | None, axes: Sequence[int] | int | None) -> list[int]:
        rest = [axis for axis in range(len(shape)) if axis != channel]
        if axes is None:
            # (An axis of one sample has no places; it would be taken for lines without any noise.)
            return [axis for axis in rest if shape[axis] > 1] or rest[-1:]
        given = (int(axes),) if isinstance(axes, (int, np.integer)) else tuple(axes)
        found = sorted(checked_axes(given, len(shape)))
        if channel in found:
            raise ArgumentError(f"axis {channel} is that of the channels, and among axes {given}")
        return found

    # --- there ------------------------------------------------------------------------------------

    @property
    def _quick(self) -> bool:
        """Whether the loops for colour images can be used."""
        return (
            self.arrays.host
            and self.mixed
            and self.dtype in ("uint8", "uint16")
            and len(self.shape) == 3
            and self.places == 2  # (one where a side has one pixel, or where axes say so)
            and self.given.dtype.isnative
        )

    def _planes(self) -> Any:
        xp = self.arrays.xp
        if self._quick:
            made = to_planes(self.given, "bt601", channel_axis=self.channel or 0)
            if self.channels == 4:
                self.extra, made = made[3:], made[:3]
            return made
        given = self.given
        if self.valid is not None:  # (what is no number is not to be mixed with others)
            given = xp.where(self.keep, given, xp.zeros_like(given))
        moved = xp.permute_dims(given, tuple(self.order))
        if self.arrays.host:
            planes = np.ascontiguousarray(moved, dtype=self.working)
        else:
            planes = xp.astype(moved, getattr(xp, self.working))
        if self.mixed:
            if self.channels == 4:
                self.extra, planes = planes[3:], planes[:3]
            planes = self._matrix(planes, np.array(space("bt601").mixing(3).weights, float))
        return xp.reshape(planes, (-1, *planes.shape[len(planes.shape) - self.places :]))

    def _matrix(self, planes: Any, matrix: np.ndarray[Any, Any]) -> Any:
        xp = self.arrays.xp
        rows = [sum(float(w) * planes[k] for k, w in enumerate(row)) for row in matrix]
        return xp.stack(rows, axis=0)

    def _look_at_pixels(self, mask: Any) -> None:
        """Whether some pixels lack some of their channels, and whether enough have all of them to be mixed.

        Brightness of a pixel is known only with all of its channels. Where that is so for less than half of
        those with some, nothing is mixed.
        """
        xp = self.arrays.xp
        if not self.arrays.host and tuple(mask.shape) != self.shape:
            return  # (the same for all channels, and nobody waits for the device to say so)
        turned = xp.permute_dims(self.keep, tuple(self.order))[:3]
        every, some = xp.all(turned, axis=0), xp.any(turned, axis=0)
        axes = tuple(range(len(every.shape) - self.places, len(every.shape)))
        counts = [xp.sum(found, axis=axes) for found in (every, some)]
        self.mixed = bool(xp.all(2 * counts[0] >= counts[1]))
        self.uneven = self.mixed and bool(xp.any(some & ~every))

    @staticmethod
    def aligned(
        mask: Any, xp: Any, shape: tuple[int, ...], channel: int | None, axes: Sequence[int] | int | None
    ) -> Any:
        """A mask in the shape of the image: one for each sample, for each pixel, or for each image."""
        own = given_array(mask, "mask")
        if not str(own.dtype).removeprefix("torch.").startswith("bool"):
            raise ArgumentTypeError(f"a mask has True where samples are valid, got dtype {own.dtype}")
        found = tuple(int(n) for n in own.shape)
        places = Subject._axes_of(shape, channel, axes)
        if channel is not None and found == tuple(n for axis, n in enumerate(shape) if axis != channel):
            own = xp.expand_dims(own, axis=channel)
        elif found != shape:
            if found != tuple(shape[axis] for axis in places):
                raise ArgumentError(f"a mask has the shape of the image, {shape}, got {found}")
            own = xp.reshape(own, tuple(n if axis in places else 1 for axis, n in enumerate(shape)))
        return xp.broadcast_to(own, shape)

    def _valid(self, mask: Any, shown: Any) -> Any:
        """Where samples are valid, in the layout of the image; None where all are."""
        xp = self.arrays.xp
        floats = self.dtype.startswith("float")
        found = shown
        if self.arrays.host and floats and not _all_finite(self.given):
            finite = np.isfinite(self.given)
            found = finite if found is None else found & finite
        if mask is not None:
            own = self.aligned(mask, xp, self.shape, self.channel, self.axes)
            found = own if found is None else found & own
        if found is not None and self.arrays.host and not found.any():
            raise ArgumentError("no sample is valid: all are masked or NaN")
        return found

    def arranged(self, found: Any) -> Any:
        """What is true of samples, in the order of the planes."""
        xp = self.arrays.xp
        turned = xp.permute_dims(found, tuple(self.order))
        if self.mixed:
            turned = xp.all(turned[:3], axis=0, keepdims=True)
            turned = xp.broadcast_to(turned, (3, *turned.shape[1:]))
        return xp.reshape(turned, (-1, *turned.shape[len(turned.shape) - self.places :]))

    # --- and back ---------------------------------------------------------------------------------

    def sigmas(self, sigma: Any) -> Any:
        """The noise of every item, from one number or one for each channel; None stays None."""
        if sigma is None:
            return None
        refuse_gradients(sigma, "sigma")
        try:
            given = np.atleast_1d(np.asarray(sigma, np.float64))
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"sigma must be a number, got {sigma!r}") from None
        if given.ndim != 1 or len(given) not in (1, self.channels):
            raise ArgumentError(
                f"sigma is a number, or one for each of {self.channels} channel(s), got shape {given.shape}"
            )
        if not np.isfinite(given).all() or (given < 0).any():
            raise ArgumentError(f"sigma must be a number, and not negative, got {sigma!r}")
        if self.mixed:
            weights = np.array(space("bt601").mixing(3).weights, float)
            squares = np.broadcast_to(given, (self.channels,))[:3] ** 2
            given = np.sqrt((weights**2) @ squares)
        items = int(self.planes.shape[0])
        each = np.repeat(given, items // len(given))
        return self.arrays.per_item(each, self.planes)

    def closed(self, planes: Any) -> Any:
        """Planes as the image that they came from."""
        xp = self.arrays.xp
        if self._quick:
            if self.extra is not None:
                planes = np.concatenate([planes, self.extra])
            made = from_planes(planes, "bt601", dtype=self.dtype, channel_axis=self.channel or 0)
            return self._restored(self._kept(made))
        sizes = [self.shape[axis] for axis in self.order]
        if self.mixed:
            sizes[0] = 3
        planes = xp.reshape(planes, tuple(sizes))
        if self.mixed:
            weights = np.array(space("bt601").mixing(3).weights, float)
            planes = self._matrix(planes, np.linalg.inv(weights))
            if self.extra is not None:
                planes = xp.concat([planes, self.extra], axis=0)
        back = [self.order.index(axis) for axis in range(len(self.order))]
        return self._restored(self._kept(self._typed(xp.permute_dims(planes, tuple(back)))))

    def spread_map(self, planes: Any) -> Any:
        """Numbers for every sample of every item, in the layout of the image."""
        sizes = tuple(self.shape[axis] for axis in self.order)
        back = tuple(self.order.index(axis) for axis in range(len(self.order)))
        return self.arrays.xp.permute_dims(self.arrays.xp.reshape(planes, sizes), back)

    def _typed(self, x: Any) -> Any:
        """Of the dtype of the image: integers rounded, and cut to what they hold."""
        xp = self.arrays.xp
        kind = getattr(xp, self.dtype) if not self.arrays.host else self.given.dtype.newbyteorder("=")
        if self.arrays.host and kind.kind in "iu" and kind.itemsize <= 4 and x.dtype.kind == "f":
            return cpu.rounded(x, kind)
        if not self.dtype.startswith("float"):
            info = np.iinfo(self.dtype)
            # (The largest integers of 32 and 64 bits are no floats; those below them are.)
            most = float(info.max) if info.bits <= 32 else float(np.nextafter(float(info.max), 0))
            x = xp.clip(xp.round(x), float(info.min), most)
        if self.arrays.host:
            return np.ascontiguousarray(x, dtype=kind)
        return xp.astype(x, kind)

    def joined(self, mixed: Any, apart: Any) -> Any:
        """Pixels with all of their colours from one image, all others from another."""
        xp, axis = self.arrays.xp, self.channel or 0
        colors = tuple(slice(3) if a == axis else slice(None) for a in range(len(self.shape)))
        every = xp.all(self.keep[colors], axis=axis, keepdims=True)
        return self._restored(xp.where(every, *(given_array(image) for image in (mixed, apart))))

    def restored(self, x: Any) -> Any:
        """Floats in the layout of the image, as the image that they came from."""
        return self._restored(self._kept(self._typed(x)))

    def _kept(self, x: Any) -> Any:
        """What was not valid is as it was."""
        return x if self.valid is None else self.arrays.xp.where(self.keep, x, self.given)
