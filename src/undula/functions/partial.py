"""Parts of a DWT, and the DWT that goes through all levels of one axis before the next.

``downcoef`` and ``upcoef`` compute one band of one line only; ``fswavedecn`` is the fully separable
transform, whose bands are named by one level for each axis.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import NUMPY, keeps_library, library_of, numpy_array
from ..engines.memory import available_memory, memory_size
from ..errors import ArgumentError, ArgumentTypeError, NotEnoughMemoryError
from ..lowering.axis_arguments import Axes, checked_axes, per_axis
from ..lowering.borders import check_mode, extend, max_level
from ..lowering.boundary_methods import has_boundary_method
from ..lowering.spec import MAX_LEVEL
from ..wavelets import Wavelet, as_wavelet
from .discrete import dwt, idwt, wavedec, waverec

__all__ = ["FswavedecnResult", "downcoef", "fswavedecn", "fswaverecn", "upcoef"]

Array = NDArray[Any]

LINES_AT_ONCE = 3  # That a level needs: coefficients with zeros around, and samples before they are cut.


def _part(part: object) -> str:
    if part not in ("a", "d"):
        raise ArgumentError(f"Argument 1 must be 'a' or 'd', got {part!r}")
    return str(part)


def _count(number: object, what: str, least: int, most: int | None = None) -> int:
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
        raise ArgumentTypeError(f"{what} must be an integer, got {number!r}")
    if number < least:
        raise ArgumentError(f"Value of {what} must be at least {least}, got {number}")
    if most is not None and number > most:
        raise ArgumentError(f"Value of {what} must be at most {most}, got {number}")
    return int(number)


def _line(data: ArrayLike, what: str) -> Array:
    x = numpy_array(data, what)
    if x.ndim != 1 or not x.size:
        raise ArgumentError(f"{what} must be one line of numbers, got shape {x.shape}")
    return x.astype(np.float64) if x.dtype.kind == "b" else x


@keeps_library
def downcoef(
    part: str, data: ArrayLike, wavelet: Wavelet | str, mode: str | int = "symmetric", level: int = 1
) -> Array:
    """Compute only the approximation (``"a"``) or the details (``"d"``) of one level of a line.

    Parameters
    ----------
    part : {"a", "d"}
        Which coefficients to return: approximation or details.
    data : array_like
        One line of samples.
    wavelet : Wavelet or str
        The wavelet.
    mode : str or int, default "symmetric"
        How the line goes on beyond its ends: one of ``undula.MODES`` or its number.
    level : int, default 1
        The level of the coefficients.

    Returns
    -------
    ndarray
        The coefficients.

    Examples
    --------
    >>> downcoef("a", [1.0, 2.0, 3.0, 4.0], "haar", level=2).round(3).tolist()
    [5.0]
    """
    which = _part(part)
    if not has_boundary_method(mode):
        check_mode(mode)  # before the level, as in PyWavelets
    levels, x = _count(level, "level", 1, MAX_LEVEL), _line(data, "data")
    for number in range(levels):
        low, high = dwt(x, wavelet, mode)
        x = high if which == "d" and number == levels - 1 else low
    return x


@keeps_library
def upcoef(part: str, coeffs: ArrayLike, wavelet: Wavelet | str, level: int = 1, take: int = 0) -> Array:
    """Compute the signal that a line of approximation (``"a"``) or detail (``"d"``) coefficients contributes.

    Parameters
    ----------
    part : {"a", "d"}
        What the coefficients are: approximation or details.
    coeffs : array_like
        One line of coefficients.
    wavelet : Wavelet or str
        The wavelet.
    level : int, default 1
        How many levels to go back.
    take : int, default 0
        Length of the middle part to return; 0 for everything that the coefficients reach.

    Returns
    -------
    ndarray
        The samples.

    Examples
    --------
    >>> upcoef("a", [1.0, 2.0], "haar").round(3).tolist()
    [0.707, 0.707, 1.414, 1.414]
    """
    which, levels, length = _part(part), _count(level, "level", 1, MAX_LEVEL), _count(take, "take", 0)
    bank = as_wavelet(wavelet)
    x = _line(coeffs, "coeffs")
    rim = bank.rec_len // 2 - 1
    sizes = [x.size]
    for _ in range(levels):
        sizes.append(2 * sizes[-1] + bank.rec_len - 2)
    start = (sizes[-1] - length) // 2
    needed = [(start, start + length) if 0 < length < sizes[-1] else (0, sizes[-1])]
    for size in reversed(sizes[:-1]):  # Of each level, the coefficients that the result is made of.
        first, last = needed[0]
        needed.insert(0, (max(0, (first - bank.rec_len + 2) // 2), min(size, (last + 1) // 2)))
    _check_line(max(last - first for first, last in needed), x.dtype, levels)
    x = x[slice(*needed[0])]
    for number in range(levels):
        # With zeros around, the coefficients reach everything that they can.
        padded = extend(x, 0, -rim, x.size + rim, "zero") if rim else x
        details = which == "d" and number == 0
        x = idwt(None if details else padded, padded if details else None, bank, "zero")
        before = 2 * needed[number][0]
        x = x[needed[number + 1][0] - before : needed[number + 1][1] - before]
    return x


def _check_line(size: int, dtype: np.dtype[Any], levels: int) -> None:
    """Raise an error for a line that does not fit into memory."""
    nbytes, available = LINES_AT_ONCE * size * dtype.itemsize, available_memory()
    if available is not None and nbytes > available:
        raise NotEnoughMemoryError(
            f"going back {levels} levels leads to {size:,} samples, which take {memory_size(nbytes)} of"
            f" memory, and {memory_size(available)} are available: choose a smaller level, or a part by take"
        )


class FswavedecnResult:
    """The coefficients of a fully separable transform, in one array.

    Bands are named by a level for each transformed axis, from 0 for the approximation to the finest
    details: ``result[1, 2]``. They can be read, and replaced.

    Attributes
    ----------
    coeffs : ndarray
        All coefficients in one array, laid out as :func:`undula.coeffs_to_array` lays them out.
    coeff_slices : list
        For each axis, the slices of its levels.
    wavelets : list of Wavelet
        The wavelet of each transformed axis.
    modes : list of str
        The boundary mode of each transformed axis.
    axes : tuple of int
        The transformed axes.

    Examples
    --------
    >>> result = fswavedecn(np.ones((8, 8)), "haar", levels=1)
    >>> result[0, 0].shape, result[1, 1].shape
    ((4, 4), (4, 4))
    """

    def __init__(
        self,
        coeffs: Array,
        coeff_slices: Sequence[Sequence[slice]],
        wavelets: Sequence[Wavelet],
        modes: Sequence[str],
        axes: Sequence[int],
    ) -> None:
        self._coeffs = coeffs
        self.coeff_slices = [list(slices) for slices in coeff_slices]
        self.wavelets = list(wavelets)
        self.modes = list(modes)
        self.axes = tuple(axes)

    @property
    def coeffs(self) -> Array:
        """The array of all coefficients."""
        return self._coeffs

    @coeffs.setter
    def coeffs(self, coeffs: Array) -> None:
        if np.shape(coeffs) != self._coeffs.shape:
            raise ArgumentError(
                f"new coefficients need the shape {self._coeffs.shape}, got {np.shape(coeffs)}"
            )
        self._coeffs = library_of(self._coeffs).restore(numpy_array(coeffs, "coefficients"), self._coeffs)

    @property
    def ndim(self) -> int:
        """Dimensions of the data."""
        return self._coeffs.ndim

    @property
    def ndim_transform(self) -> int:
        """How many axes were transformed."""
        return len(self.axes)

    @property
    def levels(self) -> list[int]:
        """How many levels were made along each axis."""
        return [len(slices) - 1 for slices in self.coeff_slices]

    @property
    def wavelet_names(self) -> list[str]:
        """The names of the wavelets."""
        return [wavelet.name for wavelet in self.wavelets]

    @property
    def approx(self) -> Array:
        """The approximation."""
        return self[(0,) * self.ndim_transform]

    @approx.setter
    def approx(self, values: ArrayLike) -> None:
        self[(0,) * self.ndim_transform] = values

    def __repr__(self) -> str:
        return (
            f"<FswavedecnResult of shape {self._coeffs.shape}: {self.wavelet_names}, levels {self.levels},"
            f" modes {self.modes}, axes {self.axes}>"
        )

    def detail_keys(self) -> list[tuple[int, ...]]:
        """Return the names of all bands but the approximation."""
        return [key for key in product(*(range(n + 1) for n in self.levels)) if any(key)]

    def _place(self, levels: tuple[int, ...] | int) -> tuple[slice, ...]:
        key = tuple(levels) if isinstance(levels, Iterable) else (levels,)
        if len(key) != self.ndim_transform or not all(
            isinstance(k, (int, np.integer)) and 0 <= k <= n for k, n in zip(key, self.levels, strict=True)
        ):
            raise ArgumentError(
                f"a band is named by one level for each of {self.ndim_transform} axes, from 0 to"
                f" {self.levels}; got {levels!r}"
            )
        place = [slice(None)] * self.ndim
        for axis, number, slices in zip(self.axes, key, self.coeff_slices, strict=True):
            place[axis] = slices[number]
        return tuple(place)

    def __getitem__(self, levels: tuple[int, ...] | int) -> Array:
        return self._coeffs[self._place(levels)]

    def __setitem__(self, levels: tuple[int, ...] | int, values: ArrayLike) -> None:
        place, new = self._place(levels), numpy_array(values, "coefficients")
        if new.shape != self._coeffs[place].shape:
            raise ArgumentError(f"band {levels} has shape {self._coeffs[place].shape}, got {new.shape}")
        library = library_of(self._coeffs)
        dtype = np.dtype(library.dtype(self._coeffs))
        if new.dtype != dtype:
            message = f"coefficients of {new.dtype} are converted to {dtype}, that of band {levels}"
            warnings.warn(message, UserWarning, stacklevel=2)
        if library is NUMPY:
            self._coeffs[place] = new
        else:  # Arrays of other libraries may be immutable.
            changed = np.array(library.to_numpy(self._coeffs))
            changed[place] = new
            self._coeffs = library.restore(changed, self._coeffs)


def fswavedecn(
    data: ArrayLike,
    wavelet: Wavelet | str | Sequence[Any],
    mode: str | int | Sequence[Any] = "symmetric",
    levels: int | Sequence[int] | None = None,
    axes: Axes = None,
) -> FswavedecnResult:
    """Compute the fully separable DWT: all levels along one axis, then all along the next.

    Parameters
    ----------
    data : array_like
        Samples, real or complex.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str or int, or a sequence of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or one for each axis.
    levels : int or sequence of int, optional
        Number of levels, or one for each axis. The default is as many as are useful.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.

    Returns
    -------
    FswavedecnResult
        The coefficients in one array, and where each band is.

    Examples
    --------
    >>> result = fswavedecn(np.ones((32, 32)), "sym2", levels=(1, 3))
    >>> result.detail_keys()
    [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]
    """
    x = numpy_array(data)
    if x.ndim < 1:
        raise ArgumentError("Expected at least 1D input data, got a single number")
    numbers = checked_axes(axes, x.ndim)
    wavelets = [as_wavelet(w) for w in per_axis(wavelet, len(numbers), "wavelet")]
    modes = [check_mode(m) for m in per_axis(mode, len(numbers), "mode")]
    depths = tuple(levels) if isinstance(levels, Iterable) else (levels,) * len(numbers)
    if len(depths) != len(numbers):
        raise ArgumentError(f"one level for each of {len(numbers)} axes is needed, got levels={levels!r}")
    slices = []
    for axis, bank, extension, depth in zip(numbers, wavelets, modes, depths, strict=True):
        number = max_level(x.shape[axis], bank.dec_len) if depth is None else _count(depth, "levels", 0)
        parts = wavedec(x, bank, extension, number, axis)
        ends = np.cumsum([0, *(part.shape[axis] for part in parts)]).tolist()
        slices.append([slice(a, b) for a, b in pairwise(ends)])
        x = np.concatenate(parts, axis=axis)
    coeffs = library_of(data).restore(x, data)
    return FswavedecnResult(
        coeffs, slices, wavelets, modes, numbers if axes is None else np.atleast_1d(axes).tolist()
    )


def fswaverecn(fswavedecn_result: FswavedecnResult) -> Array:
    """Compute the inverse of :func:`fswavedecn`.

    Parameters
    ----------
    fswavedecn_result : FswavedecnResult
        Coefficients of :func:`fswavedecn`.

    Returns
    -------
    ndarray
        The samples.

    Examples
    --------
    >>> x = np.arange(48.0).reshape(6, 8)
    >>> bool(np.allclose(fswaverecn(fswavedecn(x, "haar")), x))
    True
    """
    result = fswavedecn_result
    if not hasattr(result, "coeff_slices"):
        raise ArgumentTypeError(f"a result of fswavedecn is needed, got {type(result).__name__}")
    x = result.coeffs
    axes = checked_axes(result.axes, x.ndim)
    for axis, slices, wavelet, mode in reversed(
        list(zip(axes, result.coeff_slices, result.wavelets, result.modes, strict=True))
    ):
        before = (slice(None),) * axis
        x = waverec([x[(*before, part, ...)] for part in slices], wavelet, mode, axis)
    return x
