"""Boundary modes: the values of a line beyond its ends, and the lengths of its bands.

The DWT extends a line once, before the first step, and keeps every coefficient that the extension touches, as
PyWavelets does: ``⌊(N + L - 1) / 2⌋`` in each band. The LWT keeps exactly N numbers: even samples become the
low band, odd ones the high band, and each lifting step extends the band that it reads.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from .boundary_methods import BoundaryMethod

__all__ = [
    "BORDERS",
    "LWT_BORDERS",
    "LWT_MODES",
    "MODES",
    "Arithmetic",
    "Border",
    "Modes",
    "band_length",
    "band_lengths",
    "check_mode",
    "combinations",
    "extend",
    "max_level",
    "signal_length",
    "source_places",
    "undecimated_length",
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


class _OldNames(type):
    """Attributes for the old names of modes, which warn as the names themselves do."""

    def __getattr__(cls, name: str) -> int:
        if name not in OLD_NAMES:
            raise AttributeError(f"there is no mode {name!r}; the modes are {', '.join(MODES)}")
        return Modes.from_object(name)


class Modes(metaclass=_OldNames):
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
        """Return the number of a mode given by name or number.

        Parameters
        ----------
        mode : str or int
            Name or number of a boundary mode.

        Returns
        -------
        int
            Number of the mode, as in PyWavelets.
        """
        number: int = getattr(Modes, check_mode(mode))
        return number


_NUMBERED = {getattr(Modes, name): name for name in MODES}
# Names of earlier versions of PyWavelets, which it still accepts.
OLD_NAMES = {
    "zpd": "zero",
    "cpd": "constant",
    "sym": "symmetric",
    "ppd": "periodic",
    "sp1": "smooth",
    "per": "periodization",
}


def check_mode(mode: object, known: tuple[str, ...] = MODES) -> str:
    """Return the name of a mode given by name or by its number in :class:`Modes`."""
    if isinstance(mode, (int, np.integer)) and not isinstance(mode, bool):
        mode = _NUMBERED.get(int(mode), mode)
    name = mode.lower().strip() if isinstance(mode, str) else mode
    if isinstance(name, str) and known is MODES and name in OLD_NAMES:
        message = (
            f"mode {name!r} is the old name of {OLD_NAMES[name]!r}, which PyWavelets is going to require"
        )
        warnings.warn(message, DeprecationWarning, stacklevel=_depth_in_package())
        name = OLD_NAMES[name]
    if isinstance(mode, BoundaryMethod):
        raise ArgumentTypeError(
            f"a boundary method works in dwt, wavedec and their relatives, and not here, where a mode is"
            f" needed; got {mode!r}"
        )
    if isinstance(mode, type) and issubclass(mode, BoundaryMethod):
        raise ArgumentTypeError(f"pass a boundary method, {mode.__name__}(), not its class")
    if not isinstance(mode, (str, int, np.integer)) or isinstance(mode, bool):
        raise ArgumentTypeError(
            f"a mode is a name or a number, got {mode!r}; the names are {', '.join(known)}"
        )
    if not isinstance(name, str) or name not in known:
        raise UnknownNameError("mode", mode, known)
    return name


def _depth_in_package() -> int:
    """Return how many frames up the caller of this package is, since modes are read at many depths."""
    depth, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"].startswith(f"{__name__.partition('.')[0]}."):
        depth, frame = depth + 1, frame.f_back
    return depth


DIFFERENCES = 2  # the most differences in a value beyond the ends
TERMS = 1 + 2 * DIFFERENCES


# --- the table of boundary modes ------------------------------------------------------------------


class Extension(NamedTuple):
    """The value of a line at a place, as a combination of samples.

    It is ``weights[0]·x[places[0]] + weights[1]·(x[places[1]] - x[places[2]]) + …``; the only weight is 1 if
    there are none. Differences of neighbours are small and exact, so little is lost to rounding however far a
    line is extrapolated, and the extension of a constant is the same constant.
    """

    places: tuple[Any, ...]
    weights: tuple[Any, ...] = ()


class Arithmetic(Protocol):
    """What the rules of :data:`BORDERS` compute with: NumPy's integers, or expressions in C."""

    def where(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """Return one of two values."""

    def both(self, first: Any, second: Any) -> Any:
        """Return whether two conditions hold."""

    def either(self, first: Any, second: Any) -> Any:
        """Return whether at least one of two conditions holds."""

    def minimum(self, first: Any, second: Any) -> Any:
        """Return the smaller value."""

    def quotient(self, value: Any, divisor: Any) -> Any:
        """Return the quotient of a value and one of its divisors, or of a non-negative value."""

    def wrap(self, place: Any, period: Any) -> Any:
        """Return the non-negative remainder."""

    def mirror(self, place: Any, length: Any, last: Any) -> Any:
        """Reflect at both ends, so that ``last`` becomes 0: an odd one repeats the samples at the ends."""


@dataclass(frozen=True)
class Border:
    """A rule for what lies beyond the ends of a line.

    Parameters
    ----------
    name : str
    rule : callable
        The extension at a place p of a line of n samples, written once for any :class:`Arithmetic`. A place
        of -1 stands for zero.
    certain : bool
        Whether every place is made of samples, and none is zero.
    wraps : bool
        Whether values beyond an end are those of the other end.
    is_long : bool
        Whether the rule is so long that copies of it dominate a kernel.
    folded : bool
        Whether n counts the samples of the line, though p counts the coefficients of a band.
    shortest : int
        Samples that a line needs for the functions of PyWavelets, though the rule is defined for one.
    """

    name: str
    rule: Callable[[Any, Any, Any], Extension] = field(repr=False)
    certain: bool = True
    wraps: bool = False
    is_long: bool = False
    folded: bool = False
    shortest: int = 1

    @cached_property
    def _example(self) -> Extension:
        return self.rule(np.arange(1), 2, _NUMPY)

    @property
    def weighted(self) -> bool:
        """Whether samples are multiplied by weights."""
        return bool(self._example.weights)

    @property
    def differences(self) -> int:
        """The number of weighted differences in a value beyond the ends."""
        return len(self._example.places) // 2

    def sources(self, places: NDArray[np.int_], n: int) -> NDArray[np.int_]:
        """Return the sample at each place, -1 for zero; for borders without weights."""
        return np.broadcast_to(self.rule(places, n, _NUMPY).places[0], places.shape)


class _NumpyArithmetic:
    where = staticmethod(np.where)
    both = staticmethod(np.logical_and)
    either = staticmethod(np.logical_or)
    minimum = staticmethod(np.minimum)

    @staticmethod
    def quotient(value: Any, divisor: int) -> Any:
        return value // max(1, divisor)  # Both sides of a condition are computed, so a divisor may be 0.

    @staticmethod
    def wrap(place: Any, period: int) -> Any:
        return place % max(1, period)

    @staticmethod
    def mirror(place: Any, length: int, last: int) -> Any:
        period = max(1, last + last % 2)
        inside = place % period
        return np.minimum(inside, (last if last % 2 else period) - inside)


_NUMPY: Arithmetic = _NumpyArithmetic()


def _zero(p: Any, n: Any, f: Arithmetic) -> Extension:
    return Extension((f.where(f.either(p < 0, p >= n), -1, p),))


def _constant(p: Any, n: Any, f: Arithmetic) -> Extension:
    return Extension((f.where(p < 0, 0, f.where(p >= n, n - 1, p)),))


def _symmetric(p: Any, n: Any, f: Arithmetic) -> Extension:
    return Extension((f.mirror(p, n, 2 * n - 1),))


def _antisymmetric(p: Any, n: Any, f: Arithmetic) -> Extension:
    return Extension((f.mirror(p, n, 2 * n - 1),), (f.where(f.wrap(p, 2 * n) < n, 1, -1),))


def _reflect(p: Any, n: Any, f: Arithmetic) -> Extension:
    return Extension((f.where(n == 1, 0, f.mirror(p, n, 2 * n - 2)),))


def _periodic(p: Any, n: Any, f: Arithmetic) -> Extension:
    return Extension((f.wrap(p, n),))


def _periodization(p: Any, n: Any, f: Arithmetic) -> Extension:
    return Extension(
        (f.minimum(f.wrap(p, n + n % 2), n - 1),)
    )  # A line of odd length repeats its last sample.


def _smooth(p: Any, n: Any, f: Arithmetic) -> Extension:
    end, beside = f.where(p < 0, 0, n - 1), f.where(n == 1, 0, f.where(p < 0, 1, n - 2))
    return Extension((end, end, beside), (1, f.where(n == 1, 0, f.where(p < 0, -p, p - n + 1))))


def _antireflect(p: Any, n: Any, f: Arithmetic) -> Extension:
    # Odd reflection at both ends. Each turn of 2n - 2 places adds twice the rise of the line; a place that
    # runs back is as far above the end where it turned as the sample that it mirrors is below.
    turn = 2 * n - 2
    inside = f.wrap(p, turn)
    back, mirrored, end = inside >= n, f.mirror(p, n, turn), f.where(p < 0, 0, n - 1)
    turns = f.quotient(p - inside, turn) + f.where(f.both(back, p < 0), 1, 0)
    places = f.where(n == 1, 0, f.where(back, end, mirrored)), end, f.where(n == 1, 0, mirrored), n - 1, 0
    return Extension(places, (1, f.where(f.both(n > 1, back), 1, 0), f.where(n == 1, 0, 2 * turns)))


def _folded_low(p: Any, n: Any, f: Arithmetic) -> Extension:
    return Extension((f.where(n == 1, 0, f.quotient(f.mirror(2 * p, n, 2 * n - 2), 2)),))


def _folded_high(p: Any, n: Any, f: Arithmetic) -> Extension:
    return Extension((f.where(n == 1, -1, f.quotient(f.mirror(2 * p + 1, n, 2 * n - 2), 2)),))


def _wrapped(p: Any, n: Any, f: Arithmetic) -> Extension:
    return Extension((f.where(n == 0, -1, f.wrap(p, n)),))


BORDERS = {
    border.name: border
    for border in (
        Border("zero", _zero, certain=False),
        Border("constant", _constant),
        Border("symmetric", _symmetric),
        Border("periodic", _periodic, wraps=True),
        Border("smooth", _smooth),
        Border("periodization", _periodization, wraps=True),
        Border("reflect", _reflect, shortest=2),
        Border("antisymmetric", _antisymmetric, is_long=True),
        Border("antireflect", _antireflect, is_long=True, shortest=2),
        # Bands of an LWT, whose coefficients are at the places 2k and 2k + 1 of a line of n samples.
        Border("folded low", _folded_low, folded=True),
        Border("folded high", _folded_high, certain=False, folded=True),
        Border("wrapped", _wrapped, certain=False, wraps=True),
    )
}
"""All borders by name: the modes of the DWT for samples, and three more for the bands of an LWT."""

LWT_BORDERS = {
    "symmetric": (BORDERS["folded low"], BORDERS["folded high"]),
    "periodic": (BORDERS["wrapped"], BORDERS["wrapped"]),
    "zero": (BORDERS["zero"], BORDERS["zero"]),
}
"""The borders of the low and of the high band, by mode of the LWT."""


def combinations(n: int, places: NDArray[np.int_], mode: str) -> tuple[NDArray[np.int_], NDArray[np.float64]]:
    """Return the samples that make up a line at some places, and their weights; see :class:`Extension`.

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
    extension = BORDERS[mode].rule(places, n, _NUMPY)
    index = np.zeros((places.size, TERMS), dtype=np.int_)
    factors = np.zeros((places.size, 1 + DIFFERENCES))
    factors[:, 0] = 1
    for column, source in enumerate(extension.places):
        index[:, column] = source
    for column, weight in enumerate(extension.weights):
        factors[:, column] = weight
    inside = (places >= 0) & (places < n)
    index[inside, 0], factors[inside] = places[inside], (1, *[0] * DIFFERENCES)
    nothing = index[:, 0] < 0
    index[nothing, 0], factors[nothing, 0] = np.clip(places, 0, n - 1)[nothing], 0
    return index, factors


# --- lines and their lengths ----------------------------------------------------------------------


def extend(line: NDArray[Any], axis: int, start: int, stop: int, mode: str) -> NDArray[Any]:
    """Return the samples ``start … stop - 1`` of a line that is extended beyond its ends.

    Examples
    --------
    >>> extend(np.array([1, 2, 3]), 0, -3, 6, "reflect")
    array([2, 3, 2, 1, 2, 3, 2, 1, 2])
    """
    n = line.shape[axis]
    if n == 0 and mode == "zero":
        return np.zeros((*line.shape[:axis], stop - start, *line.shape[axis + 1 :]), line.dtype)
    if n == 0 and start < stop:
        raise ArgumentError(f"an axis of length 0 cannot be extended; the shape is {line.shape}")
    if 0 <= start <= stop <= n:
        return np.take(line, range(start, stop), axis)
    index, factors = combinations(n, np.arange(start, stop), mode)
    total = np.take(line, index[:, 0], axis)
    if mode != "zero" and not BORDERS[mode].weighted:
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


def band_length(length: int, filter_length: int, mode: str) -> int:
    """Return the number of coefficients in each band of the DWT of a line."""
    if mode == "periodization":
        return (length + 1) // 2
    return (length + filter_length - 1) // 2


def band_lengths(length: int, filter_length: int, mode: str, lifted: bool) -> tuple[int, int]:
    """Return the number of low and high coefficients of a line: of the LWT if ``lifted``, else of the DWT."""
    if lifted:
        return (length + 1) // 2, length // 2
    count = band_length(length, filter_length, mode)
    return count, count


def undecimated_length(length: int, filter_length: int, mode: str, dilation: int) -> int:
    """Return the number of coefficients in each band of an undecimated line, with taps some places apart."""
    return length if mode == "periodization" else length + (filter_length - 1) * dilation


def signal_length(bands: int, filter_length: int, mode: str) -> int:
    """Return the number of samples that the inverse DWT computes from two bands."""
    return 2 * bands if mode == "periodization" else 2 * bands - filter_length + 2


def max_level(length: int, filter_length: int) -> int:
    """Return the deepest level of the DWT at which a coefficient is free of boundary effects."""
    if length < filter_length - 1 or filter_length < 2:
        return 0
    return int(math.log2(length / (filter_length - 1)))


def source_places(places: NDArray[np.int_], length: int, mode: str) -> NDArray[np.int_]:
    """Return the places on the line from which a lifting step reads when it needs ``places``.

    Even places stay even and odd ones odd. The answer is -1 for a place that holds nothing: everything beyond
    the ends in mode ``zero``, and odd places on a line of length 1.
    """
    odd = places % 2
    numbers = [
        border.sources(places // 2, length if border.folded else (length + 1 - band) // 2)
        for band, border in enumerate(LWT_BORDERS[mode])
    ]
    number = np.where(odd, numbers[1], numbers[0])
    return np.where(number < 0, -1, 2 * number + odd)
