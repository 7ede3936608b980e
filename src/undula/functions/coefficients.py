"""Functions on coefficients: their shapes, and how they are arranged in one array.

Coefficients are nested as PyWavelets nests them: ``[approximation, details of the coarsest level, …]``, where
the details of a level are one array (``wavedec``), three in a tuple (``wavedec2``) or a dictionary by key
(``wavedecn``). Along each transformed axis, the bands of one array are in the order

    approximation | details, coarsest level | … | details, finest level
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import keeps_library, numpy_array, result_dtype
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.axis_arguments import Axes, checked_axes, per_axis
from ..lowering.borders import BORDERS, band_length, check_mode, extend, max_level
from ..lowering.boundary_methods import BoundaryMethod, Extrapolation
from ..lowering.nesting import band_keys, from_keys, to_keys
from ..lowering.spec import BandTree, checked_level, transform_spec
from ..wavelets import Wavelet, as_wavelet

__all__ = [
    "array_to_coeffs",
    "coeffs_to_array",
    "dwt_coeff_len",
    "dwt_max_level",
    "dwtn_max_level",
    "pad",
    "ravel_coeffs",
    "unravel_coeffs",
    "wavedecn_shapes",
    "wavedecn_size",
]

Array = NDArray[Any]
SWT_FORMATS = ("swt", "swt2", "swtn")


# --- shapes ---------------------------------------------------------------------------------------


def _lengths(shape: Any) -> tuple[int, ...]:
    """Return a shape that the caller passed as a tuple; a single length is one axis."""
    lengths = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in lengths):
        raise ArgumentTypeError(f"a shape is an integer for each axis, got {shape!r}")
    return tuple(int(n) for n in lengths)


def _filter_length(filter_len: object) -> int:
    if isinstance(filter_len, (int, float, np.number)):
        if int(filter_len) != filter_len:
            raise ArgumentError(f"filter_len must be a whole number of taps or a wavelet, got {filter_len!r}")
        return int(filter_len)
    return as_wavelet(filter_len).dec_len


def dwt_max_level(data_len: int, filter_len: int | Wavelet | str) -> int:
    """Return the deepest useful level of a one-dimensional DWT.

    Parameters
    ----------
    data_len : int
        Number of samples.
    filter_len : int, Wavelet or str
        Number of filter taps, or a wavelet.

    Returns
    -------
    int
        The deepest level whose approximation is at least as long as the filters; 0 if there is none.

    Examples
    --------
    >>> dwt_max_level(1000, "db2"), dwt_max_level(1000, 38)
    (8, 4)
    """
    taps = _filter_length(filter_len)
    if taps < 2:
        raise ArgumentError(f"a filter has at least 2 taps, got {filter_len!r}")
    if not isinstance(data_len, (int, float, np.number)):
        raise ArgumentTypeError(f"data_len must be an integer, got {data_len!r}")
    if data_len < 0 or int(data_len) != data_len:
        raise ArgumentError(f"a length is a whole number from 0 on, got {data_len!r}")
    return max_level(int(data_len), taps)


def dwt_coeff_len(data_len: int, filter_len: int | Wavelet | str, mode: str | int) -> int:
    """Return the number of coefficients in each band of a one-dimensional DWT.

    Parameters
    ----------
    data_len : int
        Number of samples.
    filter_len : int, Wavelet or str
        Number of filter taps, or a wavelet.
    mode : str, int or BoundaryMethod
        Boundary mode, one of ``undula.MODES``, or a method that extends lines, such as ``undula.Decay()``.

    Returns
    -------
    int
        The number of coefficients.

    Examples
    --------
    >>> dwt_coeff_len(9, "db2", "symmetric"), dwt_coeff_len(9, "db2", "periodization")
    (6, 5)
    """
    taps = _filter_length(filter_len)
    if not isinstance(data_len, (int, float, np.number)):
        raise ArgumentTypeError(f"data_len must be an integer, got {data_len!r}")
    if data_len < 1:
        raise ArgumentError(f"Value of data_len must be greater than zero, got {data_len!r}")
    if taps < 1:
        raise ArgumentError(f"Value of filter_len must be greater than zero, got {filter_len!r}")
    return band_length(int(data_len), taps, check_mode(mode))


def dwtn_max_level(
    shape: Sequence[int] | int,
    wavelet: Wavelet | str | Sequence[Any],
    axes: Axes = None,
) -> int:
    """Return the deepest useful level for a shape: the smallest of those of its axes.

    Parameters
    ----------
    shape : int or sequence of int
        Shape of the samples.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.

    Returns
    -------
    int
        The deepest useful level.

    Examples
    --------
    >>> dwtn_max_level((64, 32), ("db2", "db4"))
    2
    """
    lengths = _lengths(shape)
    numbers = checked_axes(axes, len(lengths))
    wavelets = [as_wavelet(w) for w in per_axis(wavelet, len(numbers), "wavelet")]
    return min(dwt_max_level(lengths[axis], w.dec_len) for axis, w in zip(numbers, wavelets, strict=True))


def wavedecn_shapes(
    shape: Sequence[int] | int,
    wavelet: Wavelet | str | Sequence[Any],
    mode: str | int | Sequence[Any] = "symmetric",
    level: int | None = None,
    axes: Axes = None,
) -> list[Any]:
    """Return the shapes of the coefficients of ``wavedecn``, without computing them.

    Parameters
    ----------
    shape : int or sequence of int
        Shape of the samples.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str or int, or a sequence of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or one for each axis.
    level : int, optional
        How often the approximation is decomposed. The default is as often as is useful.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.

    Returns
    -------
    list
        The shape of the approximation, and for each level, coarsest first, a dictionary with the shapes of
        its bands.

    Examples
    --------
    >>> wavedecn_shapes((6, 7), "haar", level=1)
    [(3, 4), {'ad': (3, 4), 'da': (3, 4), 'dd': (3, 4)}]
    """
    lengths = _lengths(shape)
    spec = transform_spec(len(lengths), wavelet, mode, axes)
    levels = checked_level(lengths, spec.wavelets, spec.axes, level)
    if levels and any(lengths[axis] < 1 for axis in spec.axes):
        raise ArgumentError(f"a transformed axis has at least one sample, got shape {lengths}")
    return BandTree.of_samples(spec, lengths, levels).shapes if levels else [lengths]


def wavedecn_size(shapes: Sequence[Any]) -> int:
    """Return the number of coefficients, given their shapes or the coefficients themselves.

    Parameters
    ----------
    shapes : list
        Shapes as :func:`wavedecn_shapes` returns them, or coefficients as :func:`wavedecn` does.

    Returns
    -------
    int
        The number of coefficients in all bands.

    Examples
    --------
    >>> wavedecn_size(wavedecn_shapes((6, 7), "haar", level=1))
    48
    """

    def size(part: Any) -> int:
        if part is None:
            return 0
        return int(part.size) if hasattr(part, "size") else math.prod(_lengths(part))

    if (
        isinstance(shapes, (str, Mapping))
        or not isinstance(shapes, Sequence)
        or not shapes
        or not all(isinstance(level, Mapping) for level in shapes[1:])
    ):
        raise ArgumentTypeError(
            f"shapes are the list of wavedecn_shapes, or the coefficients of wavedecn, got {shapes!r:.80}"
        )
    return size(shapes[0]) + sum(size(part) for level in shapes[1:] for part in level.values())


# --- one array ------------------------------------------------------------------------------------


@keeps_library
def pad(x: ArrayLike, pad_widths: Any, mode: str | int | BoundaryMethod) -> NDArray[Any]:
    """Extend an array beyond its ends as the DWT does.

    Parameters
    ----------
    x : array_like
        Samples.
    pad_widths : int, (before, after), or one such pair for each axis
        Number of samples to add.
    mode : str, int or BoundaryMethod
        Boundary mode, one of ``undula.MODES``, or a method that extends lines, such as ``undula.Decay()``.

    Returns
    -------
    ndarray
        The extended array.

    Raises
    ------
    ArgumentError
        If values beyond the ends do not fit into an integer dtype.

    Examples
    --------
    >>> pad([1, 2, 3], (2, 1), "symmetric")
    array([2, 1, 1, 2, 3, 3])
    """
    array = numpy_array(x)
    if not array.ndim:
        raise ArgumentError(f"an array with at least one axis can be padded, got the number {x!r}")
    if isinstance(mode, BoundaryMethod):
        return _padded_by_method(array, _pad_widths(pad_widths, array.ndim), mode)
    name = check_mode(mode)
    dtype = array.dtype
    # Differences of samples may have another sign, and NumPy has none of booleans.
    if dtype.kind == "b" or (dtype.kind in "iu" and BORDERS[name].weighted):
        array = array.astype(np.int64)
    for axis, (before, after) in enumerate(_pad_widths(pad_widths, array.ndim)):
        if name == "periodization":  # A line of odd length repeats its last sample first.
            array = extend(array, axis, 0, array.shape[axis] + array.shape[axis] % 2, "constant")
        array = extend(array, axis, -before, array.shape[axis] + after, name)
    if array.dtype != dtype and (array.astype(dtype) != array).any():
        raise ArgumentError(
            f"in mode {name!r} values beyond the ends do not fit into {dtype}: they are from {array.min()} to"
            f" {array.max()}; convert x to a signed or a larger type first"
        )
    return array.astype(dtype, copy=False)


def _pad_widths(pad_widths: Any, ndim: int) -> list[list[int]]:
    try:
        widths = np.broadcast_to(np.round(pad_widths), (ndim, 2))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"pad_widths must be one pair (before, after) or {ndim} such pairs, got {pad_widths!r}"
        ) from None
    if widths.dtype.kind not in "iuf" or (widths < 0).any() or not np.isfinite(widths).all():
        raise ArgumentError(f"pad_widths must be non-negative integers, got {pad_widths!r}")
    pairs: list[list[int]] = widths.astype(np.intp).tolist()
    return pairs


def _padded_by_method(array: NDArray[Any], widths: list[list[int]], method: BoundaryMethod) -> NDArray[Any]:
    from .bounded import extended

    if not isinstance(method, Extrapolation):
        raise ArgumentError(f"{method} does not extend lines; Decay and Polynomial do")
    array = array.astype(result_dtype(array.dtype), copy=False)
    for axis, (before, after) in enumerate(widths):
        array = extended(array, axis, method, before, after)
    return array


def _checked(coeffs: Sequence[Any], axes: Axes) -> tuple[list[Any], list[int]]:
    """Return coefficients by key, and the axes along which they were transformed."""
    keyed = to_keys(coeffs)
    ndim = keyed[0].ndim
    count = len(next(iter(keyed[1]))) if len(keyed) > 1 else ndim
    if axes is None and count != ndim:
        raise ArgumentError(
            f"details of {count} axes in arrays of {ndim} dimensions: say which, such as axes=(-2, -1)"
        )
    numbers = checked_axes(axes, ndim)
    if len(keyed) > 1 and len(numbers) != count:
        raise ArgumentError(f"axes {axes} do not fit details of {count} axes")
    keys = band_keys(len(numbers))[1:]
    for number, level in enumerate(keyed[1:], 1):
        shapes = {array.shape for array in level.values()}
        if sorted(level) != keys or len(shapes) != 1 or len(next(iter(shapes))) != ndim:
            raise ArgumentError(
                f"details {number} must be {keys} of one shape, got"
                f" { {key: array.shape for key, array in level.items()} }"
            )
    return keyed, numbers


@keeps_library
def coeffs_to_array(
    coeffs: Sequence[Any], padding: float | None = 0, axes: Axes = None
) -> tuple[Array, list[Any]]:
    """Arrange all coefficients in one array, the approximation in its first corner.

    Parameters
    ----------
    coeffs : sequence
        Coefficients from ``wavedec``, ``wavedec2`` or ``wavedecn``.
    padding : number or None, optional
        Value of the gaps between bands. With None, a gap is an error. The default is 0.
    axes : int or sequence of int, optional
        The transformed axes. The default is all axes.

    Returns
    -------
    array : ndarray
    slices : list
        The slices of the bands, for :func:`array_to_coeffs`.

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
    keyed, numbers = _checked(coeffs, axes)
    approximation = keyed[0]
    shape = list(approximation.shape)
    # Without details, the slices are those of PyWavelets.
    slices: list[Any] = [tuple(slice(n if len(keyed) > 1 else None) for n in shape)]
    for level in keyed[1:]:
        size = next(iter(level.values())).shape
        places = {}
        for key in level:
            place = [slice(n) if axis in numbers else slice(None) for axis, n in enumerate(size)]
            for letter, axis in zip(key, numbers, strict=True):
                if letter == "d":
                    place[axis] = slice(shape[axis], shape[axis] + size[axis])
            places[key] = tuple(place)
        slices.append(places)
        for axis in range(len(shape)):
            shape[axis] = shape[axis] + size[axis] if axis in numbers else max(shape[axis], size[axis])
    count = approximation.size + sum(array.size for level in keyed[1:] for array in level.values())
    if padding is None and count != math.prod(shape):
        if count > math.prod(shape):
            raise ArgumentError(
                f"{count} coefficients are more than an array of shape {tuple(shape)} holds: the bands"
                " overlap and do not belong to one transform"
            )
        raise ArgumentError(
            f"{count} coefficients do not fill an array of shape {tuple(shape)}; give a padding for the gaps"
        )
    array = np.full(shape, 0 if padding is None else padding, dtype=approximation.dtype)
    array[slices[0]] = approximation
    for level, places in zip(keyed[1:], slices[1:], strict=True):
        for key, band in level.items():
            array[places[key]] = band
    return array, slices


@keeps_library
def array_to_coeffs(arr: Array, coeff_slices: Sequence[Any], output_format: str = "wavedecn") -> list[Any]:
    """Invert :func:`coeffs_to_array`; the coefficients are views of the array.

    Parameters
    ----------
    arr : ndarray
        Coefficients in one array, as :func:`coeffs_to_array` returns them.
    coeff_slices : list
        The slices of the bands, as :func:`coeffs_to_array` returns them.
    output_format : {"wavedecn", "wavedec2", "wavedec"}, default "wavedecn"
        The function in whose form coefficients are returned.

    Returns
    -------
    list
        Coefficients nested as the function ``output_format`` returns them; views of the array.

    Examples
    --------
    >>> array, slices = coeffs_to_array([np.array([1.0]), np.array([2.0])])
    >>> array_to_coeffs(array, slices, "wavedec")
    [array([1.]), array([2.])]
    """
    array = numpy_array(arr)
    for place in _arrays(_checked_list(coeff_slices, "coeff_slices")):
        if len(place) != array.ndim or any(
            part.stop is not None and part.stop > n for part, n in zip(place, array.shape, strict=True)
        ):
            raise ArgumentError(
                f"coeff_slices are of a larger array, or of one with another number of axes: {place} is not"
                f" in an array of shape {array.shape}"
            )
    return from_keys(_cut(array, coeff_slices, lambda part, _: part), output_format)


@keeps_library
def ravel_coeffs(coeffs: Sequence[Any], axes: Axes = None) -> tuple[Array, list[Any], list[Any]]:
    """Concatenate all coefficients into one one-dimensional array.

    Parameters
    ----------
    coeffs : sequence
        Coefficients nested as :func:`wavedec`, :func:`wavedec2` or :func:`wavedecn` returns them.
    axes : int or sequence of int, optional
        Axes that were transformed. The default is all axes.

    Returns
    -------
    line : ndarray
        All coefficients, band after band.
    slices, shapes : list
        The slices and shapes of the bands, for :func:`unravel_coeffs`.

    Examples
    --------
    >>> line, slices, shapes = ravel_coeffs([np.eye(2), (np.ones((2, 2)),) * 3])
    >>> line.shape, shapes[0]
    ((16,), (2, 2))
    """
    keyed, _ = _checked(coeffs, axes)
    slices: list[Any] = []
    shapes: list[Any] = []
    end = 0
    for level in keyed:
        parts = level if isinstance(level, dict) else {"": level}
        places = {}
        for key, array in parts.items():
            places[key] = slice(end if slices else None, end + array.size)
            end += array.size
        slices.append(places if isinstance(level, dict) else places[""])
        shapes.append({k: a.shape for k, a in parts.items()} if isinstance(level, dict) else level.shape)
    line = np.concatenate([array.ravel() for array in _arrays(keyed)]).astype(keyed[0].dtype, copy=False)
    return line, slices, shapes


@keeps_library
def unravel_coeffs(
    arr: Array, coeff_slices: Sequence[Any], coeff_shapes: Sequence[Any], output_format: str = "wavedecn"
) -> list[Any]:
    """Invert :func:`ravel_coeffs`; the coefficients are views of the line.

    Parameters
    ----------
    arr : ndarray
        All coefficients, as :func:`ravel_coeffs` returns them.
    coeff_slices : list
        The slices of the bands.
    coeff_shapes : list
        The shapes of the bands.
    output_format : {"wavedecn", "wavedec2", "wavedec"}, default "wavedecn"
        The function in whose form coefficients are returned.

    Returns
    -------
    list
        Coefficients nested as the function ``output_format`` returns them.

    Examples
    --------
    >>> coeffs = [np.array([1.0]), np.array([2.0]), np.array([3.0, 4.0])]
    >>> unravel_coeffs(*ravel_coeffs(coeffs), output_format="wavedec")
    [array([1.]), array([2.]), array([3., 4.])]
    """
    _checked_list(coeff_slices, "coeff_slices")
    if len(coeff_slices) != len(_checked_list(coeff_shapes, "coeff_shapes")):
        raise ArgumentError(
            f"as many shapes as slices are needed, got {len(coeff_shapes)} and {len(coeff_slices)}"
        )
    line = numpy_array(arr)
    if line.ndim != 1:
        raise ArgumentError(f"the coefficients must be in one line, got shape {line.shape}")

    def folded(part: Array, place: tuple[int, str | None]) -> Array:
        number, key = place
        shape = coeff_shapes[number] if key is None else coeff_shapes[number][key]
        if part.size != math.prod(shape):
            raise ArgumentError(
                f"an array of {line.size} coefficients has not those of coeff_slices and coeff_shapes: a band"
                f" of shape {shape} has {part.size}"
            )
        return part.reshape(shape)

    # Stationary transforms with one approximation are nested as those of the DWT are.
    nesting = output_format.replace("swt", "wavedec") if output_format in SWT_FORMATS else output_format
    return from_keys(_cut(line, coeff_slices, folded), nesting)


def _arrays(keyed: Sequence[Any]) -> Iterator[Any]:
    for level in keyed:
        if isinstance(level, dict):
            yield from level.values()
        else:
            yield level


def _checked_list(parts: Any, name: str) -> Sequence[Any]:
    """Return an argument that was returned with an array, or raise an error unless it is such a list."""
    if isinstance(parts, (str, Mapping)) or not isinstance(parts, Sequence):
        raise ArgumentTypeError(
            f"{name} must be the list that was returned with the array, got {type(parts).__name__}"
        )
    return parts


def _cut(
    array: Array, slices: Sequence[Any], change: Callable[[Array, tuple[int, str | None]], Array]
) -> list[Any]:
    if not slices:
        raise ArgumentError(
            "coeff_slices must be the list that was returned with the array, got an empty list"
        )
    coeffs: list[Any] = [change(array[slices[0]], (0, None))]
    for number, level in enumerate(slices[1:], 1):
        coeffs.append({key: change(array[place], (number, key)) for key, place in level.items()})
    return coeffs
