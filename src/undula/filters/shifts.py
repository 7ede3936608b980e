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

from ..arrays import given_array, result_dtype
from ..engines.cpu import empty, get_num_threads
from ..engines.cpu import filter_operations as cpu
from ..engines.threads import run
from ..errors import ArgumentError
from ..lowering.axis_arguments import checked_axes
from ..lowering.borders import band_length
from .base import Details
from .operations import ArrayOperations, operations_for
from .rules import like
from .transforms import MAX_LEVELS, PipelineTransform

__all__ = ["cycle_spin", "forward", "inverse"]


def _prepend_mirrored(operations: ArrayOperations, x: Any, ndim: int, padded: Any = None) -> Any:
    """Prepend a mirrored sample along each spatial axis; ``padded`` holds ``x`` with room for it, if any."""
    axes = range(len(x.shape) - ndim, len(x.shape))
    if operations.host:
        if padded is None:
            padded = _empty_padded(x.shape, x.dtype, ndim)
            padded[(..., *[slice(1, None)] * ndim)] = x
        for axis in axes:
            before = [slice(None)] * axis
            mirrored = min(2, x.shape[axis])
            padded[(*before, slice(0, 1))] = padded[(*before, slice(mirrored, mirrored + 1))]
        return padded
    for axis in axes:
        mirrored = 1 if x.shape[axis] > 1 else 0
        first = x[(*[slice(None)] * axis, slice(mirrored, mirrored + 1), ...)]
        x = operations.xp.concat([first, x], axis=axis)
    return x


def _empty_padded(shape: tuple[int, ...], dtype: Any, ndim: int) -> Any:
    """Allocate an array with one more sample along each spatial axis."""
    lead = len(shape) - ndim
    return empty((*shape[:lead], *(n + 1 for n in shape[lead:])), np.dtype(dtype))


def _shifts(level: int, ndim: int, shifted_levels: int) -> list[tuple[int, ...]]:
    """Return the shifts of a level, counted from 0."""
    return list(product((0, 1), repeat=ndim)) if level < shifted_levels else [(0,) * ndim]


def _shifted_view(padded: Any, shift: tuple[int, ...], counts: tuple[int, ...]) -> Any:
    """Return the part of a padded array that begins at a shift."""
    return padded[(..., *(slice(1 - s, 1 - s + n) for s, n in zip(shift, counts, strict=True)))]


def forward(
    operations: ArrayOperations,
    x: Any,
    transform: PipelineTransform,
    levels: int,
    ndim: int,
    on_approximation: Callable[[Any, int], Any] | None = None,
    shifted_levels: int = MAX_LEVELS,
) -> tuple[Any, Details, list[tuple[int, ...]]]:
    """Decompose arrays for all shifts.

    Parameters
    ----------
    operations : ArrayOperations
    x : array of shape (items, ...)
    transform : PipelineTransform
    levels : int
    ndim : int
        Number of spatial axes.
    on_approximation : callable, optional
        Takes an approximation and its level; returns the approximation to be decomposed further.
    shifted_levels : int, optional
        Number of the finest levels with all shifts; the others have one.

    Returns
    -------
    low : array of shape (items, shifts, ...)
    details : list of dict
        Bands of the same form, finest level first.
    shapes : list of tuple
        For each level, the spatial shape of the array that was decomposed.
    """
    low = x[:, None, ...]
    axes = tuple(range(2, 2 + ndim))
    details: Details = []
    shapes = []
    padded: Any = None
    for level in range(levels):
        if level and on_approximation is not None:
            unchanged, low = low, on_approximation(low, level)
            padded = padded if unchanged is low else None
        counts = tuple(int(n) for n in low.shape[2:])
        padded = _prepend_mirrored(operations, low, ndim, padded)
        views = [_shifted_view(padded, shift, counts) for shift in _shifts(level, ndim, shifted_levels)]
        if operations.host:
            low, bands, padded = _host_level(views, transform, axes)
        else:
            parts = [transform.decompose_level(view, axes) for view in views]
            bands = {key: operations.xp.concat([part[key] for part in parts], axis=1) for key in parts[0]}
            low = bands.pop("a" * ndim)
        details.append(bands)
        shapes.append(counts)
    return low, details, shapes


def _host_level(
    views: list[Any], transform: PipelineTransform, axes: tuple[int, ...]
) -> tuple[Any, dict[str, Any], Any]:
    """Decompose all shifts of one level, each directly into its part of the results."""
    items, nodes, *counts = views[0].shape
    ndim = len(axes)
    sizes = [band_length(n, transform.wavelet.dec_len, transform.mode) for n in counts]
    dtype = result_dtype(views[0].dtype)
    shape = (items, nodes * len(views), *sizes)
    bands = {"".join(letters): empty(shape, dtype) for letters in list(product("ad", repeat=ndim))[1:]}
    # The approximation gets room for the sample that the next level prepends.
    padded = _empty_padded(shape, dtype, ndim)
    bands["a" * ndim] = padded[(..., *[slice(1, None)] * ndim)]

    def decompose(number: int) -> None:
        out = {key: band[:, number * nodes : (number + 1) * nodes] for key, band in bands.items()}
        transform.decompose_level(views[number], axes, out)

    _for_all_shifts(decompose, len(views), transform.backend)
    return bands.pop("a" * ndim), bands, padded


def inverse(
    operations: ArrayOperations,
    low: Any,
    details: Details,
    shapes: list[tuple[int, ...]],
    transform: PipelineTransform,
    ndim: int,
    shifted_levels: int = MAX_LEVELS,
) -> Any:
    """Return the mean over the reconstructions of all shifts; the arguments are those of :func:`forward`."""
    axes = tuple(range(2, 2 + ndim))
    for level in reversed(range(len(details))):
        shifts = _shifts(level, ndim, shifted_levels)
        bands = {"a" * ndim: low, **details[level]}
        shape = (low.shape[0], low.shape[1] // len(shifts), *shapes[level])
        parts: dict[int, Any] = {}

        def reconstruct(number: int, bands: Any = bands, shape: Any = shape, parts: Any = parts) -> None:
            nodes = slice(number * shape[1], (number + 1) * shape[1])
            coeffs = {key: band[:, nodes] for key, band in bands.items()}
            parts[number] = transform.recompose_level(coeffs, shape, axes)

        _for_all_shifts(reconstruct, len(shifts), transform.backend if operations.host else "device")
        low = parts[0]
        for number, shift in enumerate(shifts[1:], 1):
            low = _add_shifted(operations, low, parts[number], shift, number == len(shifts) - 1)
    return low[:, 0]


def _for_all_shifts(work: Callable[[int], None], count: int, backend: str) -> None:
    """Call a function for each shift: on the CPU in threads, as one shift alone is too small to be shared."""
    if backend in ("auto", "cpu") and get_num_threads() > 1:
        run(work, [(number,) for number in range(count)])
        return
    for number in range(count):
        work(number)


def _add_shifted(operations: ArrayOperations, total: Any, y: Any, shift: tuple[int, ...], last: bool) -> Any:
    """Add the reconstruction of a shift, shifted back; with the last one, turn the sum into the mean."""
    if operations.host and len(shift) == 2:
        planes = [a.reshape(-1, *a.shape[-2:]) for a in (y, total)]
        cpu.add_shifted(planes[0], planes[1], *shift, last)
        return total
    xp = operations.xp
    first_axis = len(y.shape) - len(shift)
    aligned = y
    for axis, s in enumerate(shift, first_axis):
        if s:
            before = [slice(None)] * axis
            missing = xp.zeros_like(aligned[(*before, slice(0, 1), ...)])
            aligned = xp.concat([aligned[(*before, slice(1, None), ...)], missing], axis=axis)
    total = total + aligned
    if last:
        for axis in range(first_axis, len(y.shape)):
            count = int(y.shape[axis])
            weights = np.full(count, 0.5)
            weights[-1] = 1.0  # Only one shift has the last sample.
            shape = [1] * len(y.shape)
            shape[axis] = count
            total = total * xp.reshape(like(xp, weights, y), tuple(shape))
    return total


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
    xp, ndim = operations_for(x).xp, len(x.shape)
    if isinstance(axes, (int, np.integer)):
        axes = (axes,)
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
