"""Boundary methods beyond the modes of PyWavelets, as values that transforms take in place of a mode.

:class:`Decay` and :class:`Polynomial` extend a line by weighted sums of its outermost samples.
:class:`Taper` fades the samples towards the ends. :class:`BoundaryFilters` changes the filters at the ends,
so that a line of N samples has N coefficients and the transform is orthogonal.

At the ends of a line, rows of the orthogonal matrix of a filter bank are cut off. They span the orthogonal
complement of the rows that are inside. Any orthonormal basis of that space completes the matrix; here the
low-pass part of it spans the projections of polynomials, so the other part has vanishing moments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, ArgumentTypeError
from ..wavelets import Wavelet

__all__ = [
    "BoundaryFilters",
    "BoundaryMethod",
    "Decay",
    "EndFilters",
    "Extrapolation",
    "Polynomial",
    "Taper",
    "end_filters",
    "has_boundary_method",
    "orthogonal_matrix",
]

Matrix = NDArray[np.float64]
MAX_ORTHOGONALITY_ERROR = 1e-8  # dmey only approximates an orthogonal wavelet, and has 2e-3
MAX_DEGREE = 8  # Higher powers magnify rounding errors of the outermost samples without bounds.


class BoundaryMethod:
    """How a transform treats the ends of lines; the base of all methods.

    Examples
    --------
    >>> import undula
    >>> isinstance(undula.BoundaryFilters(), BoundaryMethod)
    True
    """


def has_boundary_method(mode: Any) -> bool:
    """Return whether a mode, or one of several, is a boundary method."""
    if isinstance(mode, (list, tuple)):
        return any(isinstance(each, BoundaryMethod) for each in mode)
    return isinstance(mode, BoundaryMethod)


class Extrapolation(BoundaryMethod, ABC):
    """A method that extends lines by weighted sums of their outermost samples."""

    @abstractmethod
    def weights(self, count: int, length: int) -> Matrix:
        """Return the matrix that makes the next ``count`` samples of the outermost ones, nearest first.

        Parameters
        ----------
        count : int
            Number of samples beyond the end.
        length : int
            Number of samples of the line.

        Returns
        -------
        array ``(count, used)``
            Weights of the ``used`` outermost samples; the first row is for the sample nearest to the end.
        """


def _checked_factor(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(f"{what} is a number, got {value!r}")
    if not 0 <= value <= 1:
        raise ArgumentError(f"{what} is from 0 to 1, got {value!r}")
    return float(value)


def _checked_count(value: Any, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(f"{what} is an integer, got {value!r}")
    if not least <= value <= most:
        raise ArgumentError(f"{what} is from {least} to {most}, got {value}")
    return int(value)


@dataclass(frozen=True)
class Decay(Extrapolation):
    """Lines go on with their last sample, multiplied by a factor from place to place.

    Parameters
    ----------
    rate : float, default 0.5
        The factor, from 0, which is mode ``"zero"``, to 1, which is mode ``"constant"``.

    Examples
    --------
    >>> import undula
    >>> undula.pad([4.0, 8.0], 3, undula.Decay(0.5)).tolist()
    [0.5, 1.0, 2.0, 4.0, 8.0, 4.0, 2.0, 1.0]
    """

    rate: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _checked_factor(self.rate, "the rate"))

    def weights(self, count: int, length: int) -> Matrix:
        """Return powers of the rate."""
        return np.power(self.rate, np.arange(1, count + 1))[:, np.newaxis]


@dataclass(frozen=True)
class Polynomial(Extrapolation):
    """Lines go on as the polynomial through their outermost samples.

    Parameters
    ----------
    degree : int, default 2
        Degree of the polynomial: 0 is mode ``"constant"``, and 1 is mode ``"smooth"``. Lines that are too
        short get the highest degree that they determine.

    Examples
    --------
    >>> import undula
    >>> undula.pad([1.0, 4.0, 9.0], 2, undula.Polynomial(2)).tolist()
    [1.0, 0.0, 1.0, 4.0, 9.0, 16.0, 25.0]
    """

    degree: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", _checked_count(self.degree, "the degree", 0, MAX_DEGREE))

    def weights(self, count: int, length: int) -> Matrix:
        """Return the values of Lagrange's polynomials."""
        nodes = np.arange(min(self.degree + 1, length))
        places = -np.arange(1.0, count + 1)[:, np.newaxis]
        columns = []
        for node in nodes:
            others = nodes[nodes != node]
            columns.append(np.prod((places - others) / (node - others), axis=1))
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Taper(BoundaryMethod):
    """Samples are faded towards the ends before a transform in mode ``"zero"``, and restored by the inverse.

    Parameters
    ----------
    width : int, default 8
        How many samples at each end are faded, by half a period of a cosine.
    least : float, default 0.1
        The factor of the outermost samples. The inverse divides by it, and so multiplies errors of
        coefficients by its reciprocal. With 0, samples are lost, and there is no inverse.

    Examples
    --------
    >>> import undula
    >>> x = [1.0, 2.0, 3.0, 4.0]
    >>> bands = undula.dwt(x, "haar", undula.Taper(width=2))
    >>> undula.idwt(*bands, "haar", undula.Taper(width=2)).round(3).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    width: int = 8
    least: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", _checked_count(self.width, "the width", 1, 2**30))
        object.__setattr__(self, "least", _checked_factor(self.least, "the least factor"))

    def factors(self, length: int) -> Matrix:
        """Return the factors of the samples of a line.

        Parameters
        ----------
        length : int
            Number of samples of the line.

        Returns
        -------
        array ``(length,)``
            Factors from 0 to 1.

        Examples
        --------
        >>> Taper(2, 0.0).factors(5).round(9).tolist()
        [0.0, 0.5, 1.0, 0.5, 0.0]
        """
        places = np.arange(length)
        distance = np.minimum(np.minimum(places, length - 1 - places) / self.width, 1)
        return np.asarray(self.least + (1 - self.least) * (1 - np.cos(np.pi * distance)) / 2)


@dataclass(frozen=True)
class BoundaryFilters(BoundaryMethod):
    """The filters are replaced by others at the ends, so that the transform of any length is orthogonal.

    A line of N samples has ``⌈N/2⌉`` low and ``⌊N/2⌋`` high coefficients. The wavelet has to be orthogonal.

    References
    ----------
    .. [1] C. Herley and M. Vetterli, "Orthogonal time-varying filter banks and wavelet packets", IEEE Trans.
       Signal Processing 42(10), 1994.

    Examples
    --------
    >>> import undula
    >>> cA, cD = undula.dwt([3.0, 1.0, 4.0, 1.0, 5.0], "db4", undula.BoundaryFilters())
    >>> len(cA), len(cD), round(float(cA @ cA + cD @ cD), 9)
    (3, 2, 52.0)
    """


@dataclass(frozen=True, eq=False)
class EndFilters:
    """The rows of an orthogonal transform at the ends of a long line.

    ``left[band]`` multiplies the first samples, and ``right[band]`` the last ones. Between them are the
    coefficients of the filters that are completely inside.
    """

    left: tuple[Matrix, Matrix]
    right: tuple[Matrix, Matrix]


def _check_orthogonal(wavelet: Wavelet) -> None:
    low, taps = np.array(wavelet.dec_lo), wavelet.dec_len
    error = max(abs(low[2 * k :] @ low[: taps - 2 * k] - (k == 0)) for k in range(taps // 2))
    if not wavelet.orthogonal or error > MAX_ORTHOGONALITY_ERROR:
        raise ArgumentError(
            "boundary filters are for orthogonal wavelets, such as 'db4', and the filters of"
            f" {wavelet.name!r} are not orthogonal"
        )


def _rows(wavelet: Wavelet, length: int) -> tuple[list[Matrix], list[Matrix], list[Matrix]]:
    """Return the rows of the filter bank that touch a line: cut off at the left, inside, and at the right.

    Each has the low rows and the high rows by turns. A row that is cut off at both ends is at the left.
    """
    taps = wavelet.dec_len
    left, inside, right = list[Matrix](), list[Matrix](), list[Matrix]()
    for k in range((length + taps - 1) // 2):
        first, last = 2 * k + 2 - taps, 2 * k + 1
        part = left if first < 0 else right if last >= length else inside
        for filter_taps in (wavelet.dec_lo, wavelet.dec_hi):
            row = np.zeros(length)
            for t, tap in enumerate(filter_taps):
                if 0 <= last - t < length:
                    row[last - t] = tap
            part.append(row)
    return left, inside, right


def _divided(projector: Matrix, low: int | None) -> tuple[Matrix, Matrix]:
    """Return orthonormal rows that span the range of a projector: low-pass rows, and the others.

    Parameters
    ----------
    projector : (n, n) array
        Its eigenvalues are 0 and 1.
    low : int or None
        The number of low-pass rows; None for half of all, rounded up.
    """
    values, vectors = np.linalg.eigh(projector)
    basis = vectors[:, values > 0.5]
    count = basis.shape[1]
    if not count:
        return np.zeros((0, len(projector))), np.zeros((0, len(projector)))
    low = -(-count // 2) if low is None else low
    places = np.linspace(-1, 1, len(projector)) if len(projector) > 1 else np.zeros(1)
    polynomials = np.polynomial.chebyshev.chebvander(places, max(low - 1, 0))[:, :low]
    rows = (basis @ np.linalg.qr(basis.T @ polynomials, mode="complete")[0]).T
    largest = np.argmax(np.abs(rows), axis=1)
    rows *= np.sign(rows[np.arange(len(rows)), largest])[:, np.newaxis]
    return rows[:low], rows[low:]


@lru_cache(maxsize=256)
def orthogonal_matrix(wavelet: Wavelet, length: int) -> tuple[Matrix, Matrix]:
    """Return the low and the high rows of the orthogonal transform of a line.

    Examples
    --------
    >>> low, high = orthogonal_matrix(Wavelet("db3"), 7)
    >>> low.shape, high.shape, bool(np.allclose(low.T @ low + high.T @ high, np.eye(7), atol=1e-10))
    ((4, 7), (3, 7), True)
    """
    _check_orthogonal(wavelet)
    if length >= 2 * wavelet.dec_len:
        ends = end_filters(wavelet, length % 2)
        _, inside, _ = _rows(wavelet, length)
        bands = []
        for band in (0, 1):
            before, after = ends.left[band], ends.right[band]
            left, right = np.zeros((len(before), length)), np.zeros((len(after), length))
            left[:, : before.shape[1]], right[:, length - after.shape[1] :] = before, after
            bands.append(np.concatenate([left, np.array(inside[band::2]).reshape(-1, length), right]))
        return bands[0], bands[1]
    _, inside, _ = _rows(wavelet, length)
    rows = np.array(inside).reshape(-1, length)
    low, high = _divided(np.eye(length) - rows.T @ rows, (length + 1) // 2 - len(rows) // 2)
    return np.concatenate([rows[0::2], low]), np.concatenate([rows[1::2], high])


@lru_cache(maxsize=256)
def end_filters(wavelet: Wavelet, odd: int) -> EndFilters:
    """Return the rows at the ends of lines of at least twice as many samples as the filters have taps.

    Parameters
    ----------
    wavelet : Wavelet
        An orthogonal one.
    odd : {0, 1}
        Whether the length is odd.
    """
    _check_orthogonal(wavelet)
    taps = wavelet.dec_len
    length = 4 * taps + odd
    left, inside, right = (np.array(rows).reshape(-1, length) for rows in _rows(wavelet, length))
    # Rows that are cut off are orthogonal to those inside, and their Gram matrix is a projector.
    begin, end = taps - 2, taps - 2 + odd
    first, last = left[:, :begin], right[:, length - end :]
    low_left, high_left = _divided(first.T @ first, None)
    remaining = (length + 1) // 2 - len(inside) // 2 - len(low_left)
    low_right, high_right = _divided(last.T @ last, remaining)
    return EndFilters((low_left, high_left), (low_right, high_right))
