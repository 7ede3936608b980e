"""Shift-invariant transforms.

A decimated transform keeps every second coefficient, and which ones these are depends on the first sample.
Here each level is computed for all shifts by one sample, of the approximations of each shift of the previous
level, and the inverse returns the mean over all shifts. So ``n`` levels of an image are the mean over
``2ⁿ × 2ⁿ`` shifts, at the cost of ``4 n`` single levels: the undecimated transform, by the fast kernels of
the decimated one, with its boundaries and all wavelets. Shifts of the finest levels matter most, so that
coarser levels may have none.

A shifted image begins one sample earlier, with a mirrored sample, and ends one sample earlier. The last
sample of the result therefore comes from the unshifted image alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ..arrays import given_array, keeps_library, library_of, refuse_gradients
from ..errors import ArgumentError
from ..lowering.axis_arguments import checked_axes
from ..lowering.graph import Move
from ..lowering.symbolic import SymbolicArray, materialize, symbolic
from .base import Details
from .transforms import MAX_LEVELS, PipelineTransform

__all__ = ["cycle_spin", "forward", "inverse"]


def forward(
    x: SymbolicArray,
    transform: PipelineTransform,
    levels: int,
    ndim: int,
    on_approximation: Callable[[Any, int], Any] | None = None,
    shifted_levels: int = MAX_LEVELS,
    one_shift: bool = False,
) -> tuple[Any, Details, list[tuple[int, ...]]]:
    """Decompose arrays for all shifts.

    Parameters
    ----------
    x : SymbolicArray of shape (items, ...)
    transform : PipelineTransform
    levels : int
    ndim : int
        Number of spatial axes.
    on_approximation : callable, optional
        Takes an approximation and its level; returns the approximation to be decomposed further.
    shifted_levels : int, optional
        Number of the finest levels with all shifts; the others have one.
    one_shift : bool, default False
        Whether the arrays are one of the shifts of the first level, which then has one.

    Returns
    -------
    low : SymbolicArray of shape (items, shifts, ...)
    details : list of dict
        Bands of the same form, finest level first.
    shapes : list of tuple
        For each level, the spatial shape of the array that was decomposed.
    """
    low = x[:, None, ...]
    axes = tuple(range(2, 2 + ndim))
    details: Details = []
    shapes = []
    for level in range(levels):
        if level and on_approximation is not None:
            low = on_approximation(low, level)
        shapes.append(low.shape[2:])
        shifts = 2**ndim if one_shift <= level < shifted_levels else 1
        low, bands = transform.decompose_level(
            _prepend_mirrored(low, ndim) if shifts > 1 else low, axes, shifts
        )
        details.append(bands)
    return low, details, shapes


def _prepend_mirrored(x: SymbolicArray, ndim: int) -> SymbolicArray:
    """Return a copy with a mirrored sample in memory before the first one, along each spatial axis."""
    (source,) = materialize(x)
    counts = x.shape[x.ndim - ndim :]
    padded = x.graph.allocate((*x.shape[: x.ndim - ndim], *(n + 1 for n in counts)), x.dtype)
    places = [(axis, (min(1, n - 1), *range(n))) for axis, n in enumerate(counts, x.ndim - ndim)]
    x.graph.append(Move(source, padded, tuple(places)))
    return symbolic(x.graph, padded)[(..., *[slice(1, None)] * ndim)]


def inverse(
    low: Any,
    details: Details,
    shapes: list[tuple[int, ...]],
    transform: PipelineTransform,
    ndim: int,
    shifted_levels: int = MAX_LEVELS,
    one_shift: bool = False,
) -> Any:
    """Return the mean over the reconstructions of all shifts; the arguments are those of :func:`forward`."""
    axes = tuple(range(2, 2 + ndim))
    for level in reversed(range(len(details))):
        shifts = 2**ndim if one_shift <= level < shifted_levels else 1
        shape = (low.shape[0], low.shape[1] // shifts, *shapes[level])
        low = transform.recompose_level(low, details[level], shape, axes, shifts)
    return low[:, 0]


@keeps_library
def cycle_spin(
    x: Any, function: Callable[[Any], Any], max_shifts: int | tuple[int, ...] = 1, axes: Any = None
) -> Any:
    """Apply a function to shifted copies of an array, and return the mean of the results, shifted back.

    Parameters
    ----------
    x : array
        Array of NumPy, or of a library with the functions of the array API.
    function : callable
        Takes an array and returns one of the same shape.
    max_shifts : int or tuple of int, default 1
        Largest shift along all axes, or along each axis. All shifts from 0 are used.
    axes : int or sequence of int, optional
        Axes to shift; all if None.

    Returns
    -------
    array
        Array of floats of the shape of ``x``.

    See Also
    --------
    undula.denoise : Computes all shifts in one call, with ``invariant=True``.

    Examples
    --------
    >>> x = np.arange(12.0).reshape(3, 4)
    >>> bool(np.allclose(cycle_spin(x, lambda part: part, 1), x))
    True
    """
    x = given_array(x, "x")
    refuse_gradients(x, "an array")
    xp, ndim = library_of(x).namespace(x), len(x.shape)
    if isinstance(axes, (int, np.integer)):
        axes = (axes,)
    if not ndim:
        raise ArgumentError("x must be an array with at least one axis, got a single number")
    axes = tuple(range(ndim)) if axes is None else tuple(checked_axes(tuple(axes), ndim))
    limits = (max_shifts,) * len(axes) if isinstance(max_shifts, (int, np.integer)) else tuple(max_shifts)
    if len(limits) != len(axes) or min(limits, default=0) < 0:
        raise ArgumentError(
            f"max_shifts must be {len(axes)} numbers of at least 0, one for each axis; got {max_shifts!r}"
        )
    total: Any = 0
    for shift in product(*(range(limit + 1) for limit in limits)):
        result = function(xp.roll(x, tuple(-s for s in shift), axis=axes))
        if tuple(result.shape) != tuple(x.shape):
            raise ArgumentError(
                f"the function must keep the shape {tuple(x.shape)}, but returned {tuple(result.shape)}"
            )
        aligned = xp.roll(result, shift, axis=axes)
        if not xp.isdtype(aligned.dtype, ("real floating", "complex floating")):  # Integers would overflow.
            aligned = xp.astype(aligned, xp.float64)
        total = total + aligned
    return total / math.prod(limit + 1 for limit in limits)
