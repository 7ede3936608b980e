"""Boundaries: how a line goes on beyond its ends, and how long its bands are.

Two families of transforms. The DWT extends the line once, before the first step, and keeps every
coefficient that the extension touches, as PyWavelets does: ``⌊(N + L - 1) / 2⌋`` in each band. The LWT keeps
exactly N numbers: even places become the low band, odd places the high one, and every step finds its missing
neighbours by folding their places back onto the line.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ArgumentError, UnknownNameError
from ..inputs import numpy_array
from ..wavelets import Wavelet, as_wavelet

__all__ = [
    "LWT_MODES",
    "MODES",
    "Modes",
    "band_length",
    "check_mode",
    "combinations",
    "dwt_coeff_len",
    "dwt_max_level",
    "extend",
    "max_level",
    "pad",
    "signal_length",
    "source_places",
]

MODES = (
    "zero",
    "constant",
    "symmetric",
    "periodic",
    "smooth",
    "periodization",
    "reflect",
    "antisymmetric",
    "antireflect",
)
"""Modes of the DWT family, in PyWavelets' order."""

LWT_MODES = ("symmetric", "periodic", "zero")
"""Modes of the LWT family; symmetric is whole-sample, as in JPEG 2000."""


class Modes:
    """The modes of the DWT by name and number, as in PyWavelets.

    Examples
    --------
    >>> Modes.from_object("periodic") == Modes.periodic
    True
    """

    zero = 0
    symmetric = 1
    constant = 2
    smooth = 3
    periodic = 4
    periodization = 5
    reflect = 6
    antisymmetric = 7
    antireflect = 8

    modes: ClassVar[list[str]] = list(MODES)

    @staticmethod
    def from_object(mode: object) -> int:
        """The number of a mode given by name or number."""
        number: int = getattr(Modes, check_mode(mode))
        return number


_NUMBERED = {getattr(Modes, name): name for name in MODES}


def check_mode(mode: object, known: tuple[str, ...] = MODES) -> str:
    """The name of a mode given by name or by its number in :class:`Modes`, or an error."""
    if isinstance(mode, (int, np.integer)) and not isinstance(mode, bool):
        mode = _NUMBERED.get(int(mode), mode)
    name = mode.lower().strip() if isinstance(mode, str) else mode
    if not isinstance(name, str) or name not in known:
        raise UnknownNameError("mode", mode, known)
    return name


def extend(line: NDArray[Any], axis: int, start: int, stop: int, mode: str) -> NDArray[Any]:
    """The samples of places ``start … stop - 1``, of a line that is known from 0 to its length.

    Examples
    --------
    >>> extend(np.array([1, 2, 3]), 0, -3, 6, "reflect")
    array([2, 3, 2, 1, 2, 3, 2, 1, 2])
    """
    n = line.shape[axis]
    if n == 0:
        raise ArgumentError(f"an axis of length 0 cannot be extended; the shape is {line.shape}")
    if 0 <= start <= stop <= n:
        return np.take(line, range(start, stop), axis)
    index, factors = combinations(n, np.arange(start, stop), mode)
    total = np.take(line, index[:, 0], axis)
    if mode not in _WEIGHTED:
        return total
    shape = [1] * line.ndim
    shape[axis] = -1
    kind = line.dtype if line.dtype.kind in "iu" else line.real.dtype
    weights = [column.astype(kind).reshape(shape) for column in factors.T]
    total = np.where(weights[0] != 0, total * weights[0], line.dtype.type(0))
    for number, weight in enumerate(weights[1:]):
        pair = (np.take(line, index[:, 2 * number + side], axis) for side in (1, 2))
        rise = np.subtract(*pair)
        total = np.where(weight != 0, total + weight * rise, total)
    return np.asarray(total, dtype=line.dtype)


DIFFERENCES = 2  # A sample beyond the ends is made of one on the line and of no more differences than this.
TERMS = 1 + 2 * DIFFERENCES
_WEIGHTED = ("zero", "antisymmetric", "antireflect", "smooth")


def combinations(n: int, places: NDArray[np.int_], mode: str) -> tuple[NDArray[np.int_], NDArray[np.float64]]:
    """What stands at places of a line of ``n`` samples, of which samples it is made.

    It is ``f₀·line[i₀] + f₁·(line[i₁] - line[i₂]) + f₂·(line[i₃] - line[i₄])``. Differences of neighbours are
    small and exact, so little is lost to rounding however far a line is extrapolated, and a constant goes on
    as the same constant.

    Returns
    -------
    index : (places, 5) array of int
    factors : (places, 3) array of float
        The first one is 1, -1 or 0.

    Examples
    --------
    >>> index, factors = combinations(4, np.array([5]), "smooth")
    >>> index.tolist(), factors.tolist()
    ([[3, 3, 2, 0, 0]], [[1.0, 2.0, 0.0]])
    """
    if mode not in MODES:
        raise UnknownNameError("mode", mode, MODES)
    index = np.zeros((places.size, TERMS), dtype=np.int_)
    factors = np.zeros((places.size, 1 + DIFFERENCES))
    factors[:, 0] = 1
    if n == 1 and mode in _LEVEL_ON_ONE:
        return index, factors
    nearest = np.clip(places, 0, n - 1)
    if mode == "periodization":  # an odd line repeats its last sample
        index[:, 0] = np.minimum(places % (n + n % 2), n - 1)
    elif mode == "periodic":
        index[:, 0] = places % n
    elif mode in ("symmetric", "antisymmetric"):
        index[:, 0] = _fold(places, 2 * n - 1)
        if mode == "antisymmetric":
            factors[:, 0] = np.where((places // n) % 2 == 1, -1, 1)
    elif mode == "reflect":
        index[:, 0] = _fold(places, 2 * n - 2)
    elif mode == "antireflect":
        # Odd reflection at both ends: each turn of 2n - 2 places adds twice the rise of the line, and what
        # runs back is as far above the end where it turned as the sample it mirrors is below.
        turn, place = np.divmod(places, 2 * n - 2)
        back = place > n - 1
        mirrored, end = _fold(places, 2 * n - 2), np.where(turn < 0, 0, n - 1)
        index[:, 0] = np.where(back, end, mirrored)
        index[:, 1], index[:, 2], factors[:, 1] = end, mirrored, back
        index[:, 3], index[:, 4], factors[:, 2] = n - 1, 0, 2 * (turn + (back & (turn < 0)))
    elif mode == "smooth":
        index[:, 0] = index[:, 1] = nearest
        index[:, 2], factors[:, 1] = np.where(places < 0, 1, n - 2), np.abs(places - nearest)
    else:
        index[:, 0] = nearest
        if mode == "zero":
            factors[:, 0] = places == nearest
    return index, factors


_LEVEL_ON_ONE = ("reflect", "antireflect", "smooth")  # a line of one sample goes on as a constant


def _fold(places: NDArray[np.int_], last: int) -> NDArray[np.int_]:
    """Places folded by mirrors: at 0 and ``last / 2``, so that ``last`` comes back to 0.

    An odd ``last`` puts the mirror between two samples, at the half; then the first mirror is at -1/2.
    """
    period = last + last % 2
    inside = places % period
    return np.minimum(inside, last - inside) if last % 2 else np.minimum(inside, period - inside)


def band_length(length: int, filter_length: int, mode: str) -> int:
    """Number of coefficients in each band of the DWT of a line."""
    if mode == "periodization":
        return (length + 1) // 2
    return (length + filter_length - 1) // 2


def signal_length(bands: int, filter_length: int, mode: str) -> int:
    """Number of samples that the inverse DWT makes of two bands."""
    return 2 * bands if mode == "periodization" else 2 * bands - filter_length + 2


def max_level(length: int, filter_length: int) -> int:
    """The deepest level of the DWT at which a coefficient is free of border effects."""
    if length < filter_length - 1 or filter_length < 2:
        return 0
    return int(math.log2(length / (filter_length - 1)))


def _filter_length(filter_len: object) -> int:
    if isinstance(filter_len, (int, float, np.number)) and int(filter_len) == filter_len:
        return int(filter_len)
    return as_wavelet(filter_len).dec_len


def dwt_max_level(data_len: int, filter_len: int | Wavelet | str) -> int:
    """The deepest useful level for a line, given the filter's length or the wavelet.

    Examples
    --------
    >>> dwt_max_level(1000, "db2"), dwt_max_level(1000, 38)
    (8, 4)
    """
    taps = _filter_length(filter_len)
    if taps < 2:
        raise ArgumentError(f"a filter has at least 2 taps, got {filter_len!r}")
    if data_len < 0 or int(data_len) != data_len:
        raise ArgumentError(f"a length is a whole number from 0 on, got {data_len!r}")
    return max_level(int(data_len), taps)


def dwt_coeff_len(data_len: int, filter_len: int | Wavelet | str, mode: str | int) -> int:
    """The number of coefficients in each band of a line.

    Examples
    --------
    >>> dwt_coeff_len(9, "db2", "symmetric"), dwt_coeff_len(9, "db2", "periodization")
    (6, 5)
    """
    taps = _filter_length(filter_len)
    if data_len < 1:
        raise ArgumentError(f"Value of data_len must be greater than zero, got {data_len!r}")
    if taps < 1:
        raise ArgumentError(f"Value of filter_len must be greater than zero, got {filter_len!r}")
    return band_length(int(data_len), taps, check_mode(mode))


def pad(x: ArrayLike, pad_widths: Any, mode: str | int) -> NDArray[Any]:
    """An array extended beyond its ends, as a mode extends the lines of a DWT.

    Parameters
    ----------
    x : array_like
    pad_widths : int, (before, after), or one such pair for each axis
    mode : str or int
        Any mode of the DWT.

    Examples
    --------
    >>> pad([1, 2, 3], (2, 1), "symmetric")
    array([2, 1, 1, 2, 3, 3])
    """
    array, name = numpy_array(x), check_mode(mode)
    try:
        widths = np.broadcast_to(np.asarray(pad_widths), (array.ndim, 2))
    except ValueError:
        raise ArgumentError(
            f"pad_widths are one pair (before, after) or {array.ndim} such pairs, got {pad_widths!r}"
        ) from None
    if widths.dtype.kind not in "iu" or (widths < 0).any():
        raise ArgumentError(f"pad_widths are whole numbers from 0 on, got {pad_widths!r}")
    for axis, (before, after) in enumerate(widths.tolist()):
        if name == "periodization":  # an odd line repeats its last sample first
            array = extend(array, axis, 0, array.shape[axis] + array.shape[axis] % 2, "constant")
        array = extend(array, axis, -before, array.shape[axis] + after, name)
    return array


def source_places(places: NDArray[np.int_], length: int, mode: str) -> NDArray[np.int_]:
    """The places on the line from which a lifting step reads when it wants ``places``.

    Even places stay even and odd ones odd. A place that holds nothing is answered with -1: everything
    beyond the ends in mode ``zero``, and odd places on a line of length 1.
    """
    if mode == "symmetric":
        found = _fold(places, 2 * length - 2) if length > 1 else np.where(places % 2, -1, 0)
    elif mode == "periodic":
        # Each of the two components repeats with its own length: on a line of odd length they differ.
        counts = np.where(places % 2, length // 2, (length + 1) // 2)
        found = np.where(counts, 2 * ((places // 2) % np.maximum(counts, 1)) + places % 2, -1)
    else:
        found = np.where((places >= 0) & (places < length), places, -1)
    return found
