"""Transforms that do not depend on where an image begins.

A decimated transform keeps every second result, and which ones these are depends on the first sample. Here
every level is done for all shifts by one sample, of what each shift of the level before has left; on the way
back the mean of all is taken. So ``n`` levels of an image are the mean over ``2ⁿ × 2ⁿ`` shifts of it, at the
price of ``4 n`` single levels: the undecimated transform, by the fast kernels of the decimated one, with its
borders and all its wavelets. Most of what is gained by all shifts is gained by those of the finest levels, so
that the others may do without.

A shifted image begins one sample earlier, with a mirrored one. What is known of its last sample, then, is
what the other shift says.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ..backends.cpu import empty, get_num_threads
from ..backends.cpu import filters as cpu
from ..backends.cpu.threads import run
from ..errors import ArgumentError
from ..plans import dwt_coeff_len
from ..plans.axes import checked_axes
from ..transforms import dwtn, idwtn
from ..transforms.arrays import given_array, result_dtype
from ..wavelets import as_wavelet
from .arrays import Arrays, arrays_for

__all__ = ["backward", "cycle_spin", "forward"]

Details = list[dict[str, Any]]


def _beginning(arrays: Arrays, x: Any, places: int, wide: Any = None) -> Any:
    """One more sample in front of each of the last axes, mirrored; ``wide`` has the room and the others."""
    ndim = len(x.shape)
    if arrays.host:
        if wide is None:
            wide = _with_room(x.shape, x.dtype, places)
            wide[(..., *[slice(1, None)] * places)] = x
        for axis in range(ndim - places, ndim):
            before = [slice(None)] * axis
            at = min(2, x.shape[axis])
            wide[(*before, slice(0, 1))] = wide[(*before, slice(at, at + 1))]
        return wide
    for axis in range(ndim - places, ndim):
        cut = [slice(None)] * ndim
        at = 1 if x.shape[axis] > 1 else 0
        cut[axis] = slice(at, at + 1)
        x = arrays.xp.concat([x[tuple(cut)], x], axis=axis)
    return x


def _with_room(shape: tuple[int, ...], dtype: Any, places: int) -> Any:
    """An array with one sample more along its last axes."""
    lead = len(shape) - places
    return empty((*shape[:lead], *(n + 1 for n in shape[lead:])), np.dtype(dtype))


def _shifts(level: int, places: int, shifted: int) -> list[tuple[int, ...]]:
    """The shifts of a level, counted from 0: all of them up to some level, and beyond it none."""
    return list(product((0, 1), repeat=places)) if level < shifted else [(0,) * places]


def _shifted(x: Any, shift: tuple[int, ...], counts: tuple[int, ...]) -> Any:
    """Of an array with one sample more, the part that begins at a shift."""
    return x[(..., *(slice(1 - s, 1 - s + n) for s, n in zip(shift, counts, strict=True)))]


def forward(
    arrays: Arrays,
    x: Any,
    wavelet: Any,
    levels: int,
    places: int,
    mode: str = "symmetric",
    backend: str = "auto",
    changed: Callable[[Any, int], Any] | None = None,
    shifted: int = 64,
) -> tuple[Any, Details, list[tuple[int, ...]]]:
    """The approximation, details by key, finest first, and the shapes that they came from.

    ``x`` has items and then, along its last axes, places; results have all shifts in between. ``changed``
    may do something to an approximation before it is decomposed further; after ``shifted`` levels there is
    one shift alone.
    """
    node = x[:, None, ...]
    axes = tuple(range(2, 2 + places))
    details: Details = []
    shapes = []
    room: Any = None
    for level in range(levels):
        if level and changed is not None:
            same, node = node, changed(node, level)
            room = room if same is node else None
        counts = tuple(int(n) for n in node.shape[2:])
        wide = _beginning(arrays, node, places, room)
        shifts = _shifts(level, places, shifted)
        parts = [_shifted(wide, shift, counts) for shift in shifts]
        if arrays.host:
            node, found, room = _host_level(parts, wavelet, mode, axes, backend)
        else:
            made = [dwtn(part, wavelet, mode, axes, backend=backend) for part in parts]
            found = {key: arrays.xp.concat([one[key] for one in made], axis=1) for key in made[0]}
            node = found.pop("a" * places)
        details.append(found)
        shapes.append(counts)
    return node, details, shapes


def _host_level(
    parts: list[Any], wavelet: Any, mode: str, axes: tuple[int, ...], backend: str
) -> tuple[Any, dict[str, Any], Any]:
    """All shifts of one level, each straight into its part of the results."""
    items, nodes, *counts = parts[0].shape
    places = [dwt_coeff_len(n, as_wavelet(wavelet).dec_len, mode) for n in counts]
    dtype = result_dtype(parts[0].dtype)
    shape = (items, nodes * len(parts), *places)
    found = {"".join(letters): empty(shape, dtype) for letters in list(product("ad", repeat=len(axes)))[1:]}
    # (The next level wants one more sample in front.)
    room = _with_room(shape, dtype, len(axes))
    found["a" * len(axes)] = room[(..., *[slice(1, None)] * len(axes))]

    def one(number: int) -> None:
        out = {key: band[:, number * nodes : (number + 1) * nodes] for key, band in found.items()}
        dwtn(parts[number], wavelet, mode, axes, out=out, backend=backend)

    _each(one, len(parts), backend)
    return found.pop("a" * len(axes)), found, room


def backward(
    arrays: Arrays,
    low: Any,
    details: Details,
    shapes: list[tuple[int, ...]],
    wavelet: Any,
    places: int,
    mode: str = "symmetric",
    backend: str = "auto",
    shifted: int = 64,
) -> Any:
    """The mean of what all shifts make of their coefficients."""
    axes = tuple(range(2, 2 + places))
    for level in reversed(range(len(details))):
        found, counts, shifts = details[level], shapes[level], _shifts(level, places, shifted)
        nodes = low.shape[1] // len(shifts)
        bands = {"a" * places: low, **found}
        shape = (low.shape[0], nodes, *counts)
        made: dict[int, Any] = {}

        def one(number: int, bands: Any = bands, shape: Any = shape, made: Any = made) -> None:
            part = slice(number * shape[1], (number + 1) * shape[1])
            own = {key: band[:, part] for key, band in bands.items()}
            made[number] = idwtn(own, wavelet, mode, axes, shape=shape, backend=backend)

        _each(one, len(shifts), backend if arrays.host else "elsewhere")
        low = made[0]
        for number, shift in enumerate(shifts[1:], 1):
            low = _added(arrays, low, made[number], shift, number == len(shifts) - 1)
    return low[:, 0]


def _each(work: Callable[[int], None], count: int, backend: str) -> None:
    """Calls for all shifts: on the host at the same time, as one of them alone is too small for threads."""
    if backend in ("auto", "cpu") and get_num_threads() > 1:
        run(work, [(number,) for number in range(count)])
        return
    for number in range(count):
        work(number)


def _added(arrays: Arrays, total: Any, y: Any, shift: tuple[int, ...], last: bool) -> Any:
    """The sum so far; with the last shift, the mean."""
    if arrays.host and len(shift) == 2:
        planes = [a.reshape(-1, *a.shape[-2:]) for a in (y, total)]
        cpu.add_shifted(planes[0], planes[1], *shift, last)
        return total
    xp = arrays.xp
    cut = y
    for axis, s in enumerate(shift):
        if s:
            own = (*[slice(None)] * (len(y.shape) - len(shift) + axis),)
            rest = xp.zeros_like(cut[(*own, slice(0, 1))])
            cut = xp.concat([cut[(*own, slice(1, None))], rest], axis=len(own))
    total = total + cut
    if last:
        for axis in range(len(shift)):
            place = len(y.shape) - len(shift) + axis
            count = int(y.shape[place])
            weights = np.full(count, 0.5)
            weights[-1] = 1.0
            shape = [1] * len(y.shape)
            shape[place] = count
            total = total * xp.reshape(_weights(arrays, weights, y), tuple(shape))
    return total


def _weights(arrays: Arrays, weights: np.ndarray[Any, Any], like: Any) -> Any:
    if arrays.host:
        return weights.astype(like.dtype)
    from array_api_compat import device

    return arrays.xp.asarray(weights.tolist(), dtype=like.dtype, device=device(like))


def cycle_spin(
    x: Any, function: Callable[[Any], Any], max_shifts: int | tuple[int, ...] = 1, axes: Any = None
) -> Any:
    """The mean over shifts of what a function makes of shifted arrays, each shifted back.

    For what is done in a single call for all shifts, see ``invariant=True`` of :func:`undula.denoise`.

    Parameters
    ----------
    x : array
        Of NumPy, or of a library with the functions of the array API.
    function : callable
        Takes and returns arrays of one shape.
    max_shifts : int or one for each axis
        Shifts from 0 up to this are taken.
    axes : sequence of int, optional
        All axes if not given.

    Examples
    --------
    >>> x = np.arange(12.0).reshape(3, 4)
    >>> bool(np.allclose(cycle_spin(x, lambda part: part, 1), x))
    True
    """
    x = given_array(x, "x")
    arrays = arrays_for(x)
    xp, ndim = arrays.xp, len(x.shape)
    if isinstance(axes, (int, np.integer)):
        axes = (axes,)
    own = tuple(range(ndim)) if axes is None else tuple(checked_axes(tuple(axes), ndim))
    most = (max_shifts,) * len(own) if isinstance(max_shifts, (int, np.integer)) else tuple(max_shifts)
    if len(most) != len(own) or min(most, default=0) < 0:
        raise ArgumentError(f"max_shifts must be {len(own)} numbers from 0 on, got {max_shifts!r}")
    total: Any = None
    count = 0
    for shift in product(*(range(m + 1) for m in most)):
        made = function(xp.roll(x, tuple(-s for s in shift), axis=own))
        if tuple(made.shape) != tuple(x.shape):
            raise ArgumentError(
                f"the function has to keep the shape {tuple(x.shape)}, and made {tuple(made.shape)}"
            )
        back = xp.roll(made, shift, axis=own)
        if not xp.isdtype(back.dtype, ("real floating", "complex floating")):  # (integers would overflow)
            back = xp.astype(back, xp.float64)
        total = back if total is None else total + back
        count += 1
    return total / count
