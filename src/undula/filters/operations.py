"""Operations of filters on symbolic arrays, which become nodes of a graph.

Bands have their items (images of a batch, channels) along the first axis, spatial axes last, and shifts in
between. Statistics, such as the noise, are one number per item.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..lowering.expressions import WINDOW, Load
from ..lowering.graph import Stencil
from ..lowering.rules import shrunk
from ..lowering.symbolic import SymbolicArray, materialize, reduced, symbolic, xp

__all__ = [
    "NORMAL_MEDIAN",
    "OPERATIONS",
    "ArrayOperations",
    "LocalWindow",
    "item_size",
    "rounding_floor",
    "smallest_normal",
]

NORMAL_MEDIAN = 0.6744897501960817  # Median magnitude of a standard normal variable.
TINY = 1e-6  # Keeps divisors above zero, in units of the noise.


class LocalWindow(NamedTuple):
    """How a coefficient is shrunk by its neighbours.

    In units of the noise, with the mean e of the squares in a window, a coefficient c is multiplied by
    ``1 - k/√((e - 1)·(c² + q·p²))``, where p is its parent, or by ``1 - k/e`` without the bivariate rule, and
    by 0 where that is negative.

    Parameters
    ----------
    radius : int
        Radius of the window around the coefficient.
    factor : float or array
        Strength of the shrinkage, k, or one for each item.
    weight : float
        Weight of the square of the parent, q.
    offset : int
        Offset from a coefficient to its parent.
    bivariate : bool
        Whether to use the bivariate rule, or the block rule without parents.
    """

    radius: int
    factor: Any
    weight: float = 1.0
    offset: int = 0
    bivariate: bool = True


class ArrayOperations:
    """Operations on the arrays of a pipeline; ``xp`` has the functions of the array API.

    The last ``ndim`` axes of an array are the spatial ones. Borders are mirrored, repeating the last sample.
    """

    xp = xp

    def shrink(self, bands: Sequence[Any], rule: str, lows: Sequence[Any], highs: Sequence[Any]) -> list[Any]:
        """Apply a threshold rule, or ``gain``, with thresholds per band or per item."""
        return [self._shrink(*band, rule) for band in zip(bands, lows, highs, strict=True)]

    def _shrink(self, x: Any, low: Any, high: Any, rule: str) -> Any:
        thresholds = (self.spread(self.per_item(limit, x), x) for limit in (low, high))
        return shrunk(xp, rule, x, *thresholds)

    def energies(self, bands: Sequence[Any]) -> list[Any]:
        """Return the sum of squares of each item, for each band."""
        return list(reduced("sum", [x * x for x in bands]))

    def median_magnitude(self, x: Any, floor: Any = 0.0) -> Any:
        """Return the median of the magnitudes above ``floor``, for each item."""
        return reduced("median", [x], [floor])[0]

    def median(self, x: Any) -> Any:
        """Return the median of the samples of each item."""
        # Samples become positive, so that their order is that of their magnitudes.
        largest = xp.max(xp.abs(x), axis=tuple(range(1, len(x.shape))))
        offset = 2 * xp.where(largest > 0, largest, 1.0)
        return self.median_magnitude(x + self.spread(offset, x)) - offset

    def shrink_locally(self, x: Any, parents: Any, noise: Any, window: LocalWindow, ndim: int) -> Any:
        """Shrink each coefficient by its neighbours and, unless ``parents`` is None, its parent."""
        sigma = self.spread(self.per_item(noise, x), x)
        # Coefficients are measured in units of the noise. Without noise they stay unchanged.
        noiseless = sigma < smallest_normal(x)
        unit = 1 / xp.where(noiseless, 1.0, sigma)
        factor = window.factor
        if isinstance(factor, SymbolicArray):
            factor = self.spread(factor, x)
        scaled = x * unit
        energy = SymbolicArray(x.graph, x.shape, x.dtype, WINDOW)
        if window.bivariate:
            size = scaled * scaled + TINY
            if parents is not None:
                (view,) = materialize(parents)
                finer = Load(view, x.shape[len(x.shape) - ndim :], window.offset)
                coarser = SymbolicArray(x.graph, x.shape, x.dtype, finer) * unit
                size = size + window.weight * coarser * coarser
            gain = 1 - factor / xp.sqrt(xp.maximum(energy - 1, TINY) * size)
        else:
            gain = 1 - factor / (energy + TINY)
        shrunk = xp.where(noiseless, x, x * xp.maximum(gain, 0.0))
        width = 2 * window.radius + 1
        return self._stencil(scaled * scaled, ((1 / width,) * width,) * ndim, shrunk)

    def _stencil(
        self, source: Any, taps: tuple[tuple[float, ...], ...], value: Any, guard: Any = None
    ) -> Any:
        result = source.graph.allocate(source.shape, source.dtype)
        view = None if guard is None else materialize(guard)[0]
        source.graph.append(Stencil(taps, (result,), (source.expression,), (value.expression,), view))
        return symbolic(source.graph, result)

    def convolve_axis(
        self, x: Any, taps: np.ndarray[Any, Any], axis: int, ndim: int, guard: Any = None
    ) -> Any:
        """Convolve with symmetric taps along one spatial axis, counted from 0.

        It may be skipped if the number ``guard`` is zero.
        """
        weights = tuple(float(tap) for tap in taps)
        window = SymbolicArray(x.graph, x.shape, x.dtype, WINDOW)
        return self._stencil(x, tuple(weights if k == axis else (1.0,) for k in range(ndim)), window, guard)

    def convolve(self, x: Any, taps: np.ndarray[Any, Any], ndim: int, guard: Any = None) -> Any:
        """Convolve with symmetric taps along all spatial axes; see :meth:`convolve_axis`."""
        for axis in range(ndim):
            x = self.convolve_axis(x, taps, axis, ndim, guard)
        return x

    def window_sums(self, x: Any, factor: Any, radius: int, ndim: int) -> Any:
        """Return the sums of samples in a window around each place, times the factor of the place."""
        width = 2 * radius + 1
        window = SymbolicArray(x.graph, x.shape, x.dtype, WINDOW)
        return self._stencil(x, ((1.0,) * width,) * ndim, factor * window)

    def remainders(self, x: Any, taps: np.ndarray[Any, Any], ndim: int, limits: Any) -> Any:
        """Return the magnitudes of the differences from a blur by symmetric taps, up to limits of items."""
        window = SymbolicArray(x.graph, x.shape, x.dtype, WINDOW)
        limited = xp.minimum(xp.abs(x - window), self.spread(limits, x))
        return self._stencil(x, (tuple(float(tap) for tap in taps),) * ndim, limited)

    def per_item(self, value: Any, x: Any) -> Any:
        """Return one number per item of ``x``, from one number or one per item."""
        if not isinstance(value, SymbolicArray):
            value = xp.full_like(x[:, *[0] * (len(x.shape) - 1)], float(value))
        return xp.broadcast_to(xp.reshape(value, (-1,)), (x.shape[0],))

    def spread(self, value: Any, x: Any) -> Any:
        """Return one number per item in a shape that broadcasts against ``x``; it is computed only once."""
        materialize(value)
        return xp.reshape(value, (-1, *[1] * (len(x.shape) - 1)))


OPERATIONS = ArrayOperations()


def rounding_floor(low: Any, levels: int, ndim: int) -> Any:
    """Return the magnitude that rounding alone may give to details that are zero, for each item.

    It is proportional to the largest coefficient of the approximation, ``low``.
    """
    largest = xp.max(xp.abs(low), axis=tuple(range(1, len(low.shape))))
    return largest * (8 * float(np.finfo(low.dtype).eps) * 2.0 ** (-levels * ndim / 2))


def smallest_normal(x: SymbolicArray) -> float:
    """Return the smallest number above 0 whose inverse is finite in the dtype of an array."""
    return float(xp.finfo(x.dtype).smallest_normal)


def item_size(x: SymbolicArray) -> int:
    """Return the number of samples of one item; of the whole image, if the graph is that of a window."""
    return x.graph.item_samples(x.shape)
