"""Array operations of filters, for NumPy and for libraries with the array API.

Bands have their items (images of a batch, channels) along the first axis, spatial axes last, and shifts in
between. Statistics, such as the noise, are one number per item: a NumPy array on the host, otherwise an array
of the same library, so that the host never waits for a device.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..arrays import library_of, refuse_gradients
from ..engines.cpu import empty
from ..engines.cpu import filter_operations as cpu
from .rules import apply_rule, like

__all__ = [
    "NORMAL_MEDIAN",
    "NUMPY_OPERATIONS",
    "ArrayOperations",
    "GenericOperations",
    "LocalWindow",
    "item_size",
    "operations_for",
    "rounding_floor",
]

NORMAL_MEDIAN = 0.6744897501960817  # Median magnitude of a standard normal variable.


class LocalWindow(NamedTuple):
    """How a coefficient is shrunk by its neighbours; see ``engines.cpu.filter_kernels`` for the formula.

    Parameters
    ----------
    radius : int
        Radius of the window around the coefficient.
    factor : float
        Strength of the shrinkage.
    weight : float
        Weight of the square of the parent.
    offset : int
        Offset from a coefficient to its parent.
    bivariate : bool
        Whether to use the bivariate rule, or the block rule without parents.
    """

    radius: int
    factor: float
    weight: float = 1.0
    offset: int = 0
    bivariate: bool = True


class ArrayOperations(ABC):
    """Operations on the arrays of one library; ``xp`` is its array API namespace.

    The last ``ndim`` axes of an array are the spatial ones. Borders are mirrored, repeating the last sample.
    """

    xp: Any
    host = False

    @abstractmethod
    def shrink(
        self,
        bands: Sequence[Any],
        rule: str,
        lows: Sequence[Any],
        highs: Sequence[Any],
        overwrite: bool = False,
    ) -> list[Any]:
        """Apply a threshold rule with thresholds per band or per item; ``overwrite`` allows reusing bands."""

    @abstractmethod
    def energies(self, bands: Sequence[Any]) -> list[Any]:
        """Return the sum of squares of each item, for each band."""

    @abstractmethod
    def median_magnitude(self, x: Any, floor: Any = 0.0) -> Any:
        """Return the median of the magnitudes above ``floor``, for each item."""

    @abstractmethod
    def shrink_locally(self, x: Any, parents: Any, noise: Any, window: LocalWindow, ndim: int) -> Any:
        """Shrink each coefficient by its neighbours and, unless ``parents`` is None, its parent."""

    @abstractmethod
    def convolve_axis(self, x: Any, taps: np.ndarray[Any, Any], axis: int, ndim: int) -> Any:
        """Convolve with symmetric taps along one spatial axis, counted from 0."""

    def convolve(self, x: Any, taps: np.ndarray[Any, Any], ndim: int) -> Any:
        """Convolve with symmetric taps along all spatial axes."""
        for axis in range(ndim):
            x = self.convolve_axis(x, taps, axis, ndim)
        return x

    @abstractmethod
    def wait(self, x: Any) -> None:
        """Wait until an array has been computed."""

    def per_item(self, value: Any, x: Any) -> Any:
        """Return one number per item of ``x``, from one number or one per item."""
        numbers = self.xp.reshape(like(self.xp, value, x), (-1,))
        return self.xp.broadcast_to(numbers, (x.shape[0],))

    def spread(self, value: Any, x: Any) -> Any:
        """Reshape one number per item so that it broadcasts against ``x``."""
        return self.xp.reshape(value, (-1, *[1] * (len(x.shape) - 1)))


class NumpyOperations(ArrayOperations):
    """Operations on NumPy arrays, by compiled loops."""

    xp = np
    host = True

    def wait(self, x: Any) -> None:
        """Return at once: NumPy computes synchronously."""

    def shrink(
        self,
        bands: Sequence[Any],
        rule: str,
        lows: Sequence[Any],
        highs: Sequence[Any],
        overwrite: bool = False,
    ) -> list[Any]:
        """Apply the rule to all bands in one call of the compiled loop."""
        sources = [np.ascontiguousarray(band) for band in bands]
        targets = sources if overwrite else [empty(band.shape, band.dtype) for band in sources]
        items: list[tuple[Any, Any, float, float]] = []
        for source, target, low, high in zip(sources, targets, lows, highs, strict=True):
            if isinstance(low, float):
                items.append((source, target, low, high))
                continue
            if np.size(low) == 1 and np.size(high) == 1:
                items.append((source, target, float(np.reshape(low, ())), float(np.reshape(high, ()))))
                continue
            pairs = np.broadcast_arrays(np.reshape(low, -1), np.reshape(high, -1))
            items += zip(source, target, *(limits.tolist() for limits in pairs), strict=True)
        if items:
            xs, outs, low_list, high_list = zip(*items, strict=True)
            cpu.shrink(xs, rule, low_list, high_list, outs)
        return targets

    def energies(self, bands: Sequence[Any]) -> list[Any]:
        sources = [np.ascontiguousarray(band) for band in bands]
        sums = iter(cpu.sums_of_squares([item for band in sources for item in band]))
        return [np.array([next(sums) for _ in range(band.shape[0])]) for band in sources]

    def median_magnitude(self, x: Any, floor: Any = 0.0) -> Any:
        floors = np.broadcast_to(np.reshape(floor, -1), (x.shape[0],)).tolist()
        return np.array([cpu.median_magnitude(*pair) for pair in zip(x, floors, strict=True)])

    def shrink_locally(self, x: Any, parents: Any, noise: Any, window: LocalWindow, ndim: int) -> Any:
        if ndim > 2:
            return _shrink_locally(np, x, parents, noise, window, ndim)
        sigmas = np.broadcast_to(np.asarray(noise, np.float64).reshape(-1), (x.shape[0],))
        alike = len({*sigmas.tolist()}) == 1
        parts = []
        for k in range(1 if alike else x.shape[0]):
            items = slice(None) if alike else slice(k, k + 1)
            coarser = None if parents is None else _planes(parents[items], ndim)
            shrunk = cpu.local(
                _planes(x[items], ndim),
                coarser,
                window.radius,
                sigmas[k],
                window.factor,
                window.weight,
                window.offset,
                window.bivariate,
            )
            parts.append(shrunk.reshape(x[items].shape))
        return parts[0] if alike else np.concatenate(parts)

    def convolve_axis(self, x: Any, taps: np.ndarray[Any, Any], axis: int, ndim: int) -> Any:
        if ndim > 2:
            return _convolve_axis(np, x, taps, len(x.shape) - ndim + axis)
        return cpu.convolve(_planes(x, ndim), taps, (ndim - 1 - axis,)).reshape(x.shape)

    def convolve(self, x: Any, taps: np.ndarray[Any, Any], ndim: int) -> Any:
        if ndim > 2:
            return super().convolve(x, taps, ndim)
        return cpu.convolve(_planes(x, ndim), taps, range(ndim)).reshape(x.shape)


def _planes(x: Any, ndim: int) -> Any:
    """Reshape to ``(planes, rows, columns)``; a line is a plane of one row."""
    rows = x.shape[-2] if ndim == 2 else 1
    return np.ascontiguousarray(x).reshape(-1, rows, x.shape[-1])


class GenericOperations(ArrayOperations):
    """Operations on arrays of any library, by the functions of the array API."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def shrink(
        self,
        bands: Sequence[Any],
        rule: str,
        lows: Sequence[Any],
        highs: Sequence[Any],
        overwrite: bool = False,
    ) -> list[Any]:
        """Apply the rule to each band; nothing is overwritten."""
        return [self._shrink(*band, rule) for band in zip(bands, lows, highs, strict=True)]

    def energies(self, bands: Sequence[Any]) -> list[Any]:
        """Sum squares over all axes but the first."""
        return [self.xp.sum(x * x, axis=tuple(range(1, len(x.shape)))) for x in bands]

    def _shrink(self, x: Any, low: Any, high: Any, rule: str) -> Any:
        low = self.spread(self.per_item(low, x), x)
        if rule == "gain":
            return x * low
        high = self.spread(self.per_item(high, x), x) if rule == "firm" else None
        values, dropped = apply_rule(self.xp, rule, x, low, high)
        return self.xp.where(dropped, self.xp.zeros_like(x), values)

    def median_magnitude(self, x: Any, floor: Any = 0.0) -> Any:
        """Sort the magnitudes and take those in the middle."""
        xp = self.xp
        ordered = xp.sort(xp.abs(xp.reshape(x, (x.shape[0], -1))), axis=1)
        # Magnitudes up to the floor come first. Their number stays on the device: the host need not wait.
        ignored = xp.sum(ordered <= xp.reshape(self.per_item(floor, x), (-1, 1)), axis=1)
        count = ordered.shape[1]
        last = xp.full_like(ignored, count - 1)
        middles = [xp.minimum((ignored + upper) // 2, last) for upper in (count - 1, count)]
        picked = [xp.take_along_axis(ordered, xp.reshape(k, (-1, 1)), axis=1)[:, 0] for k in middles]
        return (picked[0] + picked[1]) / 2

    def shrink_locally(self, x: Any, parents: Any, noise: Any, window: LocalWindow, ndim: int) -> Any:
        """Shrink by the functions of the array API."""
        return _shrink_locally(self.xp, x, parents, self.per_item(noise, x), window, ndim)

    def wait(self, x: Any) -> None:
        """Copy one sample to the host."""
        float(self.xp.reshape(x, (-1,))[0])

    def convolve_axis(self, x: Any, taps: np.ndarray[Any, Any], axis: int, ndim: int) -> Any:
        """Convolve by sums of shifted slices."""
        return _convolve_axis(self.xp, x, taps, len(x.shape) - ndim + axis)


def _mirror(xp: Any, x: Any, axis: int, radius: int) -> Any:
    """Extend an axis at both ends by mirrored samples, repeating the last sample."""
    count = x.shape[axis]
    indices = np.arange(-radius, count + radius) % (2 * count)
    return take(xp, x, np.where(indices < count, indices, 2 * count - 1 - indices), axis)


def take(xp: Any, x: Any, indices: np.ndarray[Any, Any], axis: int) -> Any:
    """Take entries along an axis, by indices on the host."""
    if isinstance(x, np.ndarray):
        return np.take(x, indices, axis=axis)
    from array_api_compat import device

    return xp.take(x, xp.asarray(indices.tolist(), device=device(x)), axis=axis)


def _convolve_axis(xp: Any, x: Any, taps: np.ndarray[Any, Any], axis: int) -> Any:
    radius = (len(taps) - 1) // 2
    count = x.shape[axis]
    mirrored = _mirror(xp, x, axis, radius)
    total = float(taps[radius]) * x
    for k in range(1, radius + 1):
        begins = (radius - k, radius + k)
        before, after = (mirrored[(*[slice(None)] * axis, slice(b, b + count), ...)] for b in begins)
        total = total + float(taps[radius + k]) * (before + after)
    return total


def _shrink_locally(xp: Any, x: Any, parents: Any, noise: Any, window: LocalWindow, ndim: int) -> Any:
    sigma = xp.reshape(like(xp, noise, x), (-1, *[1] * (len(x.shape) - 1)))
    # Coefficients are measured in units of the noise. Without noise they stay unchanged.
    noiseless = sigma <= 0
    unit = 1 / xp.where(noiseless, xp.ones_like(sigma), sigma)
    scaled = x * unit
    spatial_axes = range(len(x.shape) - ndim, len(x.shape))
    width, energy = 2 * window.radius + 1, scaled * scaled
    for axis in spatial_axes:
        energy = _convolve_axis(xp, energy, np.full(width, 1 / width), axis)
    tiny = 1e-6
    if window.bivariate:
        size = scaled * scaled + tiny
        if parents is not None:
            coarser = parents
            for axis in spatial_axes:
                indices = np.minimum((np.arange(x.shape[axis]) + window.offset) // 2, parents.shape[axis] - 1)
                coarser = take(xp, coarser, indices, axis)
            coarser = coarser * unit
            size = size + window.weight * coarser * coarser
        gain = 1 - window.factor / xp.sqrt(xp.maximum(energy - 1, xp.full_like(energy, tiny)) * size)
    else:
        gain = 1 - window.factor / (energy + tiny)
    shrunk = x * xp.maximum(gain, xp.zeros_like(gain))
    return xp.where(xp.broadcast_to(noiseless, x.shape), x, shrunk)


NUMPY_OPERATIONS = NumpyOperations()
_generic_operations = lru_cache(maxsize=16)(GenericOperations)


def operations_for(x: Any) -> ArrayOperations:
    """Return the operations for the library of an array."""
    refuse_gradients(x, "an array")
    library = library_of(x)
    return NUMPY_OPERATIONS if library.device(x).on_host else _generic_operations(library.namespace(x))


def rounding_floor(operations: ArrayOperations, low: Any, levels: int, ndim: int) -> Any:
    """Return the magnitude that rounding alone may give to details that are zero, for each item.

    It is proportional to the largest coefficient of the approximation, ``low``.
    """
    xp = operations.xp
    largest = xp.max(xp.abs(low), axis=tuple(range(1, len(low.shape))))
    return largest * (8 * float(xp.finfo(low.dtype).eps) * 2.0 ** (-levels * ndim / 2))


def item_size(x: Any) -> int:
    """Return the number of samples of one item."""
    return math.prod(int(n) for n in x.shape[1:])
