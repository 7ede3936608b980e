"""Where coefficients are: the coordinates of bands.

Coefficient k of a line is ``Σ h[n] x[2k + n]``, with the taps h of a filter. It turns the ramp ``x[n] = n``
into ``Σh · (2k + c)`` with the delay ``c = Σ n h[n] / Σ h[n]``. So approximations are at ``2k + c``, in each
level anew, and trends keep their coordinates. A high-pass filter has no such delay, since ``Σh = 0``; its
coefficients are at its centre of energy, with ``h²`` in place of h.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from xarray import DataArray, Variable

from ..lowering.axis import AxisOp
from ..wavelets import Wavelet

__all__ = ["Centres", "band_coordinates", "filter_centres", "positions"]

Positions = NDArray[np.float64]


class Centres(NamedTuple):
    """Where coefficient 0 is among the samples of its level.

    Parameters
    ----------
    delay : float
        Where a ramp has the value of the low-pass coefficient.
    low, high : float
        The centres of energy of the filters. Those of orthogonal wavelets are mirrored, so that their mean is
        the centre of the support.

    """

    delay: float
    low: float
    high: float


@lru_cache(maxsize=256)
def filter_centres(wavelet: Wavelet, mode: str, lifted: bool) -> Centres:
    """Return where the filters of a transform are.

    Examples
    --------
    >>> filter_centres(Wavelet("haar"), "symmetric", False)
    Centres(delay=0.5, low=0.5, high=0.5)
    >>> filter_centres(Wavelet("cdf53"), "symmetric", True)
    Centres(delay=0.0, low=0.0, high=1.0)
    """
    # Rows of the matrix have the taps at their places. The one in the middle is far from the borders.
    length, method = 8 * wavelet.dec_len, "steps" if lifted else "filters"
    op = AxisOp(wavelet, mode, length, "lwt" if lifted else "dwt", method=method)
    row = op.counts[0] // 2
    low, high = op.matrix()[[row, op.counts[0] + row]]
    places = np.arange(length) - 2 * row
    # Rounding errors would be visible in dates.
    delay, *centres = (round(float(places @ h / h.sum()), 9) + 0.0 for h in (low, low**2, high**2))
    return Centres(delay, *centres)


def positions(delay: float, level: int, centre: float, count: int) -> Positions:
    """Return where the coefficients of a level are, in samples of the array.

    They are at ``2k + centre`` among the approximations of the level before. The first of those has been
    moved by ``delay`` of its samples in each of the levels before.
    """
    step = 2.0 ** (level - 1)
    return delay * (step - 1) + step * (2 * np.arange(count, dtype=np.float64) + centre)


def band_coordinates(
    x: DataArray, dims: Iterable[str], grid: Mapping[str, Positions], ending: str = ""
) -> dict[str, Variable]:
    """Return the coordinates of bands, interpolated from those of the samples.

    Parameters
    ----------
    x : DataArray
        The samples.
    dims : iterable of str
        The transformed dimensions.
    grid : mapping of str to array
        Where coefficients are along these dimensions. Coordinates with others of them are left out.
    ending : str
        What is appended to the names of coordinates and dimensions. Only one-dimensional coordinates are
        returned if there is an ending.
    """
    results = {}
    for name, coordinate in x.coords.items():
        along = set(dims) & set(coordinate.dims)
        if not along or not along <= set(grid) or (ending and coordinate.ndim > 1):
            continue
        variable = coordinate.variable.to_base_variable()
        try:
            for dim in along:
                variable = _interpolated(variable, str(dim), grid[str(dim)])
        except TypeError:
            continue  # There is nothing between two texts.
        renamed = [f"{dim}{ending}" if dim in along else dim for dim in variable.dims]
        results[f"{name}{ending}"] = Variable(renamed, variable.data, coordinate.attrs)
    return results


def _interpolated(coordinate: Any, dim: str, places: Positions) -> Any:
    """Return a coordinate between its samples, linear there and beyond its ends."""
    if coordinate.dtype.kind in "iu":
        coordinate = coordinate.astype(np.float64)
    elif coordinate.dtype.kind in "mM" and np.datetime_data(coordinate.dtype)[0] in ("s", "ms"):
        coordinate = coordinate.astype(f"{coordinate.dtype.kind}8[us]")  # There are halves of seconds.
    last = coordinate.sizes[dim] - 1
    first = np.clip(np.floor(places).astype(int), 0, max(last - 1, 0))
    before, after = (coordinate.isel({dim: index}) for index in (first, np.minimum(first + 1, last)))
    result = before + (after - before) * Variable((dim,), places - first)
    return result.astype(coordinate.dtype) if coordinate.dtype.kind == "f" else result
