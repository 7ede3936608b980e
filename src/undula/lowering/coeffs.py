"""Coefficients of several levels: their shapes, and how they are laid into one array.

Coefficients are nested as PyWavelets nests them: ``[approximation, details of the coarsest level, …]``, where
the details of a level are one array (``wavedec``), three in a tuple (``wavedec2``) or a dictionary by key
(``wavedecn``). Along each transformed axis the blocks of one array stand in the order

    approximation | details, coarsest level | … | details, finest level
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import numpy_array
from ..errors import ArgumentError, ArgumentTypeError
from ..wavelets import Wavelet, as_wavelet
from .axes import Axes, checked_axes
from .borders import band_length, check_mode, dwt_max_level, max_level

__all__ = [
    "MAX_LEVEL",
    "array_to_coeffs",
    "checked_level",
    "coeffs_to_array",
    "detail_keys",
    "dwtn_max_level",
    "from_keys",
    "keyed_as",
    "per_axis",
    "ravel_coeffs",
    "to_keys",
    "unravel_coeffs",
    "wavedecn_shapes",
    "wavedecn_size",
]

Array = NDArray[Any]
MAX_LEVEL = 64  # No array is larger than what so many levels decompose.
FORMATS = ("wavedec", "wavedec2", "wavedecn")
_TUPLE = ("da", "ad", "dd")  # the order of a wavedec2 tuple: horizontal, vertical, diagonal


def detail_keys(axes: int) -> list[str]:
    """The keys of one level's details, in the order of the alphabet.

    Examples
    --------
    >>> detail_keys(2)
    ['ad', 'da', 'dd']
    """
    return ["".join(letters) for letters in product("ad", repeat=axes)][1:]


# --- nesting --------------------------------------------------------------------------------------


def to_keys(coeffs: Sequence[Any], read: Callable[[Any], Any] = numpy_array) -> list[Any]:
    """Coefficients of any nesting, with the details of every level as a dictionary of arrays.

    ``read`` makes an array of what was given.
    """
    if isinstance(coeffs, (str, Mapping, np.ndarray)) or not isinstance(coeffs, Sequence) or not coeffs:
        raise ArgumentTypeError(
            f"coefficients are a list [approximation, details, …], got {type(coeffs).__name__}"
        )
    if coeffs[0] is None:
        raise ArgumentError("the approximation is needed, got None")
    levels = []
    for number, level in enumerate(coeffs[1:], 1):
        if isinstance(level, Mapping):
            named = dict(level)
        elif isinstance(level, (tuple, list)):
            if len(level) != 3:
                raise ArgumentError(f"details {number} are three arrays (cH, cV, cD), got {len(level)}")
            named = dict(zip(_TUPLE, level, strict=True))
        else:
            named = {"d": level}
        missing = [key for key, array in named.items() if array is None]
        if missing or not named:
            raise ArgumentError(f"details {number} are needed as arrays, got None for {missing}")
        levels.append({key: read(named[key]) for key in sorted(named)})
    return [read(coeffs[0]), *levels]


def from_keys(coeffs: Sequence[Any], output_format: str) -> list[Any]:
    """Coefficients with dictionaries of details, nested as one of the functions ``wavedec…`` does."""
    if output_format not in FORMATS:
        raise ArgumentError(f"output_format is one of {FORMATS}, got {output_format!r}")
    if output_format == "wavedec":
        return [coeffs[0], *(level["d"] for level in coeffs[1:])]
    if output_format == "wavedec2":
        return [coeffs[0], *(tuple(level[key] for key in _TUPLE) for level in coeffs[1:])]
    return list(coeffs)


def keyed_as(coeffs: Any, form: str) -> list[Any] | None:
    """Coefficients with details by key; None where they are not nested in this form."""
    if not isinstance(coeffs, (list, tuple)) or not coeffs:
        return None
    keyed: list[Any] = [coeffs[0]]
    for level in coeffs[1:]:
        if form == "wavedec":
            keyed.append({"d": level})
        elif form == "wavedec2" and isinstance(level, (tuple, list)) and len(level) == 3:
            keyed.append(dict(zip(_TUPLE, level, strict=True)))
        elif form == "wavedecn" and isinstance(level, Mapping):
            keyed.append(dict(level))
        elif level is None:
            keyed.append({})
        else:
            return None
    return keyed


def _checked(coeffs: Sequence[Any], axes: Axes) -> tuple[list[Any], list[int]]:
    """Coefficients by key, and the axes along which they were transformed."""
    keyed = to_keys(coeffs)
    ndim = keyed[0].ndim
    count = len(next(iter(keyed[1]))) if len(keyed) > 1 else ndim
    if axes is None and count != ndim:
        raise ArgumentError(
            f"details of {count} axes in arrays of {ndim} dimensions: say which, such as axes=(-2, -1)"
        )
    found = checked_axes(axes, ndim)
    if len(keyed) > 1 and len(found) != count:
        raise ArgumentError(f"axes {axes} do not fit details of {count} axes")
    for number, level in enumerate(keyed[1:], 1):
        shapes = {array.shape for array in level.values()}
        if sorted(level) != detail_keys(len(found)) or len(shapes) != 1 or len(next(iter(shapes))) != ndim:
            raise ArgumentError(
                f"details {number} must be {detail_keys(len(found))} of one shape, got"
                f" { {key: array.shape for key, array in level.items()} }"
            )
    return keyed, found


# --- one array ------------------------------------------------------------------------------------


def coeffs_to_array(
    coeffs: Sequence[Any], padding: float | None = 0, axes: Axes = None
) -> tuple[Array, list[Any]]:
    """All coefficients in one array, as the picture of a pyramid has them.

    Parameters
    ----------
    coeffs : sequence
        From ``wavedec``, ``wavedec2`` or ``wavedecn``.
    padding : number or None
        What fills the gaps where bands do not meet; with None a gap is an error.
    axes : int or sequence of int, optional
        The axes that were transformed, where that is not all of them.

    Returns
    -------
    array, slices
        The slices that :func:`array_to_coeffs` needs.

    Examples
    --------
    >>> a = np.ones((2, 2))
    >>> array, slices = coeffs_to_array([a, (2 * a, 3 * a, 4 * a)])
    >>> print(array)
    [[1. 1. 3. 3.]
     [1. 1. 3. 3.]
     [2. 2. 4. 4.]
     [2. 2. 4. 4.]]
    """
    keyed, found = _checked(coeffs, axes)
    approximation = keyed[0]
    shape = list(approximation.shape)
    slices: list[Any] = [tuple(slice(n) for n in shape)]
    for level in keyed[1:]:
        size = next(iter(level.values())).shape
        places = {}
        for key in level:
            place = [slice(n) if axis in found else slice(None) for axis, n in enumerate(size)]
            for letter, axis in zip(key, found, strict=True):
                if letter == "d":
                    place[axis] = slice(shape[axis], shape[axis] + size[axis])
            places[key] = tuple(place)
        slices.append(places)
        for axis in range(len(shape)):
            shape[axis] = shape[axis] + size[axis] if axis in found else max(shape[axis], size[axis])
    held = approximation.size + sum(array.size for level in keyed[1:] for array in level.values())
    if padding is None and held != math.prod(shape):
        raise ArgumentError(
            f"{held} coefficients do not fill an array of shape {tuple(shape)}; give a padding for the gaps"
        )
    array = np.full(shape, 0 if padding is None else padding, dtype=approximation.dtype)
    array[slices[0]] = approximation
    for level, places in zip(keyed[1:], slices[1:], strict=True):
        for key, band in level.items():
            array[places[key]] = band
    return array, slices


def array_to_coeffs(arr: Array, coeff_slices: Sequence[Any], output_format: str = "wavedecn") -> list[Any]:
    """The inverse of :func:`coeffs_to_array`; the coefficients are views of the array."""
    return from_keys(_cut(numpy_array(arr), coeff_slices, lambda part, _: part), output_format)


def ravel_coeffs(coeffs: Sequence[Any], axes: Axes = None) -> tuple[Array, list[Any], list[Any]]:
    """All coefficients in one line.

    Returns
    -------
    line, slices, shapes
        The slices and shapes that :func:`unravel_coeffs` needs.
    """
    keyed, _ = _checked(coeffs, axes)
    slices: list[Any] = []
    shapes: list[Any] = []
    end = 0
    for level in keyed:
        parts = level if isinstance(level, dict) else {"": level}
        places = {}
        for key, array in parts.items():
            places[key] = slice(end or None, end + array.size)
            end += array.size
        slices.append(places if isinstance(level, dict) else places[""])
        shapes.append({k: a.shape for k, a in parts.items()} if isinstance(level, dict) else level.shape)
    line = np.concatenate([array.ravel() for array in _arrays(keyed)]).astype(keyed[0].dtype, copy=False)
    return line, slices, shapes


def unravel_coeffs(
    arr: Array, coeff_slices: Sequence[Any], coeff_shapes: Sequence[Any], output_format: str = "wavedecn"
) -> list[Any]:
    """The inverse of :func:`ravel_coeffs`; the coefficients are views of the line."""
    if len(coeff_slices) != len(coeff_shapes):
        raise ArgumentError(
            f"as many shapes as slices are needed, got {len(coeff_shapes)} and {len(coeff_slices)}"
        )
    line = numpy_array(arr)

    def folded(part: Array, place: tuple[int, str | None]) -> Array:
        number, key = place
        shape = coeff_shapes[number] if key is None else coeff_shapes[number][key]
        return part.reshape(shape)

    return from_keys(_cut(line, coeff_slices, folded), output_format)


def _arrays(keyed: Sequence[Any]) -> Iterator[Array]:
    for level in keyed:
        if isinstance(level, dict):
            yield from level.values()
        else:
            yield level


def _cut(
    array: Array, slices: Sequence[Any], change: Callable[[Array, tuple[int, str | None]], Array]
) -> list[Any]:
    if isinstance(slices, (str, Mapping)) or not isinstance(slices, Sequence) or not slices:
        raise ArgumentTypeError(f"slices are the list that came with the array, got {type(slices).__name__}")
    coeffs: list[Any] = [change(array[slices[0]], (0, None))]
    for number, level in enumerate(slices[1:], 1):
        coeffs.append({key: change(array[place], (number, key)) for key, place in level.items()})
    return coeffs


# --- shapes ---------------------------------------------------------------------------------------


def per_axis(values: Any, count: int, what: str) -> list[Any]:
    """One value for each axis: the same for all, or a sequence of as many."""
    if isinstance(values, (list, tuple)):
        if len(values) == 1:
            return list(values) * count
        if len(values) != count:
            raise ArgumentError(f"one {what} for each of {count} axes is needed, got {len(values)}")
        return list(values)
    return [values] * count


def _lengths(shape: Sequence[int] | int, axes: Axes) -> tuple[list[int], list[int]]:
    whole = [int(shape)] if isinstance(shape, (int, np.integer)) else list(shape)
    return whole, checked_axes(axes, len(whole))


def dwtn_max_level(
    shape: Sequence[int] | int,
    wavelet: Wavelet | str | Sequence[Any],
    axes: Axes = None,
) -> int:
    """The deepest useful level for a shape: the least of those of its axes.

    Examples
    --------
    >>> dwtn_max_level((64, 32), ("db2", "db4"))
    2
    """
    whole, found = _lengths(shape, axes)
    wavelets = [as_wavelet(w) for w in per_axis(wavelet, len(found), "wavelet")]
    return min(dwt_max_level(whole[axis], w.dec_len) for axis, w in zip(found, wavelets, strict=True))


def wavedecn_shapes(
    shape: Sequence[int] | int,
    wavelet: Wavelet | str | Sequence[Any],
    mode: str | int | Sequence[Any] = "symmetric",
    level: int | None = None,
    axes: Axes = None,
) -> list[Any]:
    """The shapes of the coefficients of ``wavedecn``, without computing them.

    Examples
    --------
    >>> wavedecn_shapes((6, 7), "haar", level=1)
    [(3, 4), {'ad': (3, 4), 'da': (3, 4), 'dd': (3, 4)}]
    """
    whole, found = _lengths(shape, axes)
    wavelets = [as_wavelet(w) for w in per_axis(wavelet, len(found), "wavelet")]
    modes = [check_mode(m) for m in per_axis(mode, len(found), "mode")]
    shapes: list[Any] = []
    for _ in range(checked_level(whole, wavelets, found, level)):
        for axis, w, m in zip(found, wavelets, modes, strict=True):
            whole[axis] = band_length(whole[axis], w.dec_len, m)
        shapes.insert(0, dict.fromkeys(detail_keys(len(found)), tuple(whole)))
    return [tuple(whole), *shapes]


def checked_level(
    shape: Sequence[int],
    wavelets: Sequence[Wavelet],
    axes: Sequence[int],
    level: int | None,
    stacklevel: int = 3,
) -> int:
    """The level, or the deepest useful one for None; a warning where it is deeper than useful."""
    lengths = ((shape[axis], wavelet.dec_len) for axis, wavelet in zip(axes, wavelets, strict=True))
    deepest = min(max_level(*pair) for pair in lengths)
    if level is None:
        return deepest
    if not isinstance(level, (int, np.integer)) or isinstance(level, bool):
        raise ArgumentTypeError(f"level must be an integer or None, got {level!r}")
    if not 0 <= level <= MAX_LEVEL:
        raise ArgumentError(f"level must be from 0 to {MAX_LEVEL}, got {level}")
    if level > deepest:
        warnings.warn(
            f"Level value of {level} is too high for shape {tuple(shape)}: beyond {deepest} all coefficients"
            " will experience boundary effects.",
            UserWarning,
            stacklevel=stacklevel,
        )
    return int(level)


def wavedecn_size(shapes: Sequence[Any]) -> int:
    """The number of coefficients, from :func:`wavedecn_shapes` or from the coefficients themselves.

    Examples
    --------
    >>> wavedecn_size(wavedecn_shapes((6, 7), "haar", level=1))
    48
    """

    def size(part: Any) -> int:
        if part is None:
            return 0
        return int(part.size) if hasattr(part, "size") else math.prod(part)

    return size(shapes[0]) + sum(size(part) for level in shapes[1:] for part in level.values())
