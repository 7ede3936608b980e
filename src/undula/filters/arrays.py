"""What filters do with numbers, on arrays of any library.

Bands have their items (images of a batch, channels) along the first axis, places along the last ones, and
whatever belongs together in between. What is found of an item, such as its noise, is one number for each: on
the host a NumPy array, elsewhere an array of the same library, which nobody waits for.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..backends.cpu import empty
from ..backends.cpu import filters as cpu
from ..backends.devices.libraries import library_of
from ..errors import ArgumentTypeError

__all__ = ["Arrays", "arrays_for", "count_of", "rounding_of"]

NORMAL = 0.6744897501960817  # the median of the magnitude of a normal deviate


class Arrays(ABC):
    """The operations of one library; ``xp`` has its functions, as the array API names them."""

    xp: Any
    host = False

    @abstractmethod
    def shrink(
        self, bands: Sequence[Any], rule: str, lows: Sequence[Any], highs: Sequence[Any], own: bool = False
    ) -> list[Any]:
        """Bands by thresholds, one for each item or for all of a band; ``own`` bands may be overwritten."""

    @abstractmethod
    def energies(self, bands: Sequence[Any]) -> list[Any]:
        """For each band, the sum of squares of each item."""

    @abstractmethod
    def magnitude(self, x: Any, least: Any = 0.0) -> Any:
        """The median magnitude of each item, of what is above ``least``."""

    @abstractmethod
    def local(
        self,
        x: Any,
        parents: Any,
        radius: int,
        noise: Any,
        factor: float,
        weight: float,
        offset: int,
        bivariate: bool,
        places: int,
    ) -> Any:
        """Every coefficient by those around it; see ``backends.cpu.filtering``."""

    @abstractmethod
    def convolve(self, x: Any, taps: np.ndarray[Any, Any], places: int) -> Any:
        """Symmetric taps along the last axes, borders mirrored."""

    @abstractmethod
    def along(self, x: Any, taps: np.ndarray[Any, Any], axis: int, places: int) -> Any:
        """Symmetric taps along one of the last axes."""

    @abstractmethod
    def finish(self, x: Any) -> None:
        """Waits until an array is there, for who measures."""

    def per_item(self, value: Any, x: Any) -> Any:
        """One number for each item, from one for all or one for each."""
        wide = self.xp.asarray(value, dtype=x.dtype) if self.host else _beside(self.xp, value, x)
        return self.xp.broadcast_to(self.xp.reshape(wide, (-1,)), (x.shape[0],))

    def spread(self, value: Any, x: Any) -> Any:
        """Numbers of items, in a shape that goes with the items."""
        return self.xp.reshape(value, (-1, *[1] * (len(x.shape) - 1)))


def _beside(xp: Any, value: Any, x: Any) -> Any:
    """A number, on the device of an array."""
    if hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic)):
        return xp.astype(value, x.dtype) if value.dtype != x.dtype else value
    from array_api_compat import device

    return xp.asarray(np.asarray(value, dtype=np.float64).tolist(), dtype=x.dtype, device=device(x))


class Host(Arrays):
    """NumPy's arrays, by compiled loops."""

    xp = np
    host = True

    def finish(self, x: Any) -> None:
        """Nothing is waited for."""

    def shrink(
        self, bands: Sequence[Any], rule: str, lows: Sequence[Any], highs: Sequence[Any], own: bool = False
    ) -> list[Any]:
        sources = [np.ascontiguousarray(band) for band in bands]
        targets = sources if own else [empty(band.shape, band.dtype) for band in sources]
        items: list[tuple[Any, Any, float, float]] = []
        for source, target, low, high in zip(sources, targets, lows, highs, strict=True):
            if isinstance(low, float):
                items.append((source, target, low, high))
                continue
            if np.size(low) == 1 and np.size(high) == 1:
                items.append((source, target, float(np.reshape(low, ())), float(np.reshape(high, ()))))
                continue
            pairs = np.broadcast_arrays(np.reshape(low, -1), np.reshape(high, -1))
            items += zip(source, target, *(each.tolist() for each in pairs), strict=True)
        if items:
            xs, outs, low_list, high_list = zip(*items, strict=True)
            cpu.shrink(xs, rule, low_list, high_list, outs)
        return targets

    def energies(self, bands: Sequence[Any]) -> list[Any]:
        sources = [np.ascontiguousarray(band) for band in bands]
        found = iter(cpu.sums_of_squares([item for band in sources for item in band]))
        return [np.array([next(found) for _ in range(band.shape[0])]) for band in sources]

    def magnitude(self, x: Any, least: Any = 0.0) -> Any:
        limits = np.broadcast_to(np.reshape(least, -1), (x.shape[0],)).tolist()
        found = zip(x, limits, strict=True)
        return np.array([cpu.median_magnitude(item, limit) for item, limit in found])

    def local(
        self,
        x: Any,
        parents: Any,
        radius: int,
        noise: Any,
        factor: float,
        weight: float,
        offset: int,
        bivariate: bool,
        places: int,
    ) -> Any:
        if places > 2:
            return _local(np, x, parents, radius, noise, factor, weight, offset, bivariate, places)
        sigmas = np.broadcast_to(np.asarray(noise, np.float64).reshape(-1), (x.shape[0],))
        alike = len({*sigmas.tolist()}) == 1
        out = []
        for k in range(1 if alike else x.shape[0]):
            part = slice(None) if alike else slice(k, k + 1)
            planes = _planes(x[part], places)
            above = None if parents is None else _planes(parents[part], places)
            made = cpu.local(planes, above, radius, sigmas[k], factor, weight, offset, bivariate)
            out.append(made.reshape(x[part].shape))
        return out[0] if alike else np.concatenate(out)

    def convolve(self, x: Any, taps: np.ndarray[Any, Any], places: int) -> Any:
        if places > 2:
            return _convolve(np, x, taps, places)
        return cpu.convolve(_planes(x, places), taps, range(places)).reshape(x.shape)

    def along(self, x: Any, taps: np.ndarray[Any, Any], axis: int, places: int) -> Any:
        if places > 2:
            return _along(np, x, taps, len(x.shape) - places + axis)
        own = places - 1 - axis
        return cpu.convolve(_planes(x, places), taps, (own,)).reshape(x.shape)


def _planes(x: Any, places: int) -> Any:
    """All planes in a row; lines are planes of one row."""
    rows = x.shape[-2] if places == 2 else 1
    return np.ascontiguousarray(x).reshape(-1, rows, x.shape[-1])


class Elsewhere(Arrays):
    """Arrays of any library that has the functions of the array API."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def shrink(
        self, bands: Sequence[Any], rule: str, lows: Sequence[Any], highs: Sequence[Any], own: bool = False
    ) -> list[Any]:
        return [self._shrunk(*each, rule) for each in zip(bands, lows, highs, strict=True)]

    def energies(self, bands: Sequence[Any]) -> list[Any]:
        return [self.xp.sum(x * x, axis=tuple(range(1, len(x.shape)))) for x in bands]

    def _shrunk(self, x: Any, low: Any, high: Any, rule: str) -> Any:
        xp = self.xp
        t = self.spread(self.per_item(low, x), x)
        if rule == "gain":
            return x * t
        if rule == "soft":
            return x - xp.minimum(xp.maximum(x, -t), t)
        zero = xp.zeros_like(x)
        if rule in ("greater", "less"):
            return xp.where(x >= t if rule == "greater" else x <= t, x, zero)
        magnitude = xp.abs(x)
        if rule == "hard":
            return xp.where(magnitude >= t, x, zero)
        if rule == "garrote":
            return xp.where(magnitude > t, x - t * t / xp.where(x == 0, xp.ones_like(x), x), zero)
        top = self.spread(self.per_item(high, x), x)
        size = xp.maximum(magnitude - t, zero) * (top / xp.maximum(top - t, xp.full_like(top, 1e-30)))
        return xp.sign(x) * xp.where(magnitude > top, magnitude, size)

    def magnitude(self, x: Any, least: Any = 0.0) -> Any:
        xp = self.xp
        flat = xp.sort(xp.abs(xp.reshape(x, (x.shape[0], -1))), axis=1)
        # (Those left out come first: their number is found, not asked for.)
        limit = xp.reshape(self.per_item(least, x), (-1, 1))
        zeros = xp.sum(flat <= limit, axis=1)
        count = flat.shape[1]
        most = xp.full_like(zeros, count - 1)
        low = xp.minimum((zeros + count - 1) // 2, most)
        high = xp.minimum((zeros + count) // 2, most)
        picked = [xp.take_along_axis(flat, xp.reshape(k, (-1, 1)), axis=1)[:, 0] for k in (low, high)]
        return (picked[0] + picked[1]) / 2

    def local(
        self,
        x: Any,
        parents: Any,
        radius: int,
        noise: Any,
        factor: float,
        weight: float,
        offset: int,
        bivariate: bool,
        places: int,
    ) -> Any:
        own = self.spread(self.per_item(noise, x), x)
        return _local(self.xp, x, parents, radius, own, factor, weight, offset, bivariate, places)

    def finish(self, x: Any) -> None:
        float(self.xp.reshape(x, (-1,))[0])

    def convolve(self, x: Any, taps: np.ndarray[Any, Any], places: int) -> Any:
        return _convolve(self.xp, x, taps, places)

    def along(self, x: Any, taps: np.ndarray[Any, Any], axis: int, places: int) -> Any:
        return _along(self.xp, x, taps, len(x.shape) - places + axis)


def _mirrored(xp: Any, x: Any, axis: int, radius: int) -> Any:
    """Samples beyond both ends, the last one repeated first."""
    count = x.shape[axis]
    places = np.arange(-radius, count + radius) % (2 * count)
    places = np.where(places < count, places, 2 * count - 1 - places)
    return _taken(xp, x, places, axis)


def _taken(xp: Any, x: Any, places: np.ndarray[Any, Any], axis: int) -> Any:
    if xp is np:
        return np.take(x, places, axis=axis)
    from array_api_compat import device

    return xp.take(x, xp.asarray(places.tolist(), device=device(x)), axis=axis)


def _cut(x: Any, axis: int, begin: int, count: int) -> Any:
    cut = [slice(None)] * len(x.shape)
    cut[axis] = slice(begin, begin + count)
    return x[tuple(cut)]


def _convolve(xp: Any, x: Any, taps: np.ndarray[Any, Any], places: int) -> Any:
    for axis in range(len(x.shape) - places, len(x.shape)):
        x = _along(xp, x, taps, axis)
    return x


def _along(xp: Any, x: Any, taps: np.ndarray[Any, Any], axis: int) -> Any:
    radius = (len(taps) - 1) // 2
    wide, count = _mirrored(xp, x, axis, radius), x.shape[axis]
    total = float(taps[radius]) * x
    for k in range(1, radius + 1):
        pair = _cut(wide, axis, radius - k, count) + _cut(wide, axis, radius + k, count)
        total = total + float(taps[radius + k]) * pair
    return total


def _local(
    xp: Any,
    x: Any,
    parents: Any,
    radius: int,
    noise: Any,
    factor: float,
    weight: float,
    offset: int,
    bivariate: bool,
    places: int,
) -> Any:
    own = noise if xp is not np else np.reshape(noise, (-1, *[1] * (len(x.shape) - 1))).astype(x.dtype)
    # (In units of the noise; where there is none, nothing is taken out.)
    quiet = own <= 0
    unit = 1 / xp.where(quiet, xp.ones_like(own), own)
    given, x = x, x * unit
    energy = _convolve(xp, x * x, np.full(2 * radius + 1, 1 / (2 * radius + 1)), places)
    tiny = 1e-6
    if bivariate:
        size = x * x + tiny
        if parents is not None:
            above = parents
            for axis in range(len(x.shape) - places, len(x.shape)):
                lines = np.minimum((np.arange(x.shape[axis]) + offset) // 2, parents.shape[axis] - 1)
                above = _taken(xp, above, lines, axis)
            above = above * unit
            size = size + weight * above * above
        gain = 1 - factor / xp.sqrt(xp.maximum(energy - 1, xp.full_like(energy, tiny)) * size)
    else:
        gain = 1 - factor / (energy + tiny)
    made = given * xp.maximum(gain, xp.zeros_like(gain))
    return xp.where(xp.broadcast_to(quiet, given.shape), given, made)


HOST = Host()


@lru_cache(maxsize=16)
def _elsewhere(xp: Any) -> Elsewhere:
    return Elsewhere(xp)


def arrays_for(x: Any) -> Arrays:
    """What filters an array where it is."""
    library = library_of(x)
    if library is None:
        return HOST
    import array_api_compat

    if not array_api_compat.is_array_api_obj(x):
        raise ArgumentTypeError(
            f"filters on a device work on arrays of CuPy, PyTorch or JAX, got one of {library.name}; these"
            " share memory with it (from_dlpack), or bring it to the host"
        )
    return _elsewhere(array_api_compat.array_namespace(x))


def rounding_of(arrays: Arrays, low: Any, levels: int, places: int) -> Any:
    """For each item, what may be left by rounding of coefficients that are zero, by its approximation."""
    xp = arrays.xp
    largest = xp.max(xp.abs(low), axis=tuple(range(1, len(low.shape))))
    return largest * (8 * float(xp.finfo(low.dtype).eps) * 2.0 ** (-levels * places / 2))


def count_of(x: Any) -> int:
    """How many numbers an item has."""
    return math.prod(int(n) for n in x.shape[1:])
