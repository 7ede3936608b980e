"""Filter banks in fixed point: taps are fractions ``n / 2^b``, sums are rounded by an offset and a shift.

    coefficient = (Σ n · sample + 2^(b-1)) >> b

Unlike lifting in integers, this loses a little: what comes back is off by one here and there. It is what
processors without floats did, in two multiplications and a shift, with 16 bits throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ArgumentError, ArgumentTypeError
from ..inputs import numpy_array
from ..liftings import lifting
from ..plans.axes import checked_axes, two_axes
from ..plans.boundary import source_places
from ..plans.line import Line, dwt_line, lwt_line
from ..wavelets import Wavelet, as_wavelet

__all__ = ["FixedPoint", "burt57", "d4", "shift_rational"]

Array = NDArray[Any]
Taps = dict[int, int]  # numerators by offset


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A filter bank of fractions over powers of two.

    Parameters
    ----------
    name : str
    low, high : dict
        Numerators of the filters forward, by offset from sample ``2k``.
    bits : int
        What they are divided by: ``2^bits``.
    low_back, high_back : dict
        Numerators of the filters back, by the offset of a sample from ``2k``.
    bits_back : int
    mode : str
        How lines go on, and their coefficients: ``"periodic"``, or ``"symmetric"`` about their end samples.

    Examples
    --------
    >>> d4.norm, [str(moment) for moment in d4.moments(2)]
    (Fraction(129, 64), ['0', '0'])
    """

    name: str
    low: Taps
    high: Taps
    bits: int
    low_back: Taps
    high_back: Taps
    bits_back: int
    mode: str

    # --- what it is like --------------------------------------------------------------------------

    @cached_property
    def norm(self) -> Fraction:
        """The sum of the squares of the low filter: 2, or 1, where the bank is orthogonal."""
        return sum((self._forward(n) ** 2 for n in self.low.values()), Fraction(0))

    def moments(self, count: int) -> list[Fraction]:
        """Σ tap · offset^p of the high filter, p = 0, 1, …: 0 where polynomials have no details."""
        first = min(self.high)
        return [
            sum((self._forward(n) * (offset - first) ** p for offset, n in self.high.items()), Fraction(0))
            for p in range(count)
        ]

    def matrix(self, length: int) -> list[list[Fraction]]:
        """The level forward of a line of even length: rows of the low band first, then of the high one."""
        self._check_length(length)
        rows = [[Fraction(0)] * length for _ in range(length)]
        for band, taps in enumerate((self.low, self.high)):
            for k in range(length // 2):
                for offset, n in taps.items():
                    rows[band * length // 2 + k][self._fold(2 * k + offset, length)] += self._forward(n)
        return rows

    def matrix_back(self, length: int) -> list[list[Fraction]]:
        """The level back: as many rows as samples."""
        self._check_length(length)
        rows = [[Fraction(0)] * length for _ in range(length)]
        for band, taps in enumerate((self.low_back, self.high_back)):
            for i in range(length):
                for offset, n in taps.items():
                    if (i - offset) % 2 == 0:
                        k = self._fold(i - offset + band * self._odd, length) // 2
                        rows[i][band * length // 2 + k] += Fraction(n, 2**self.bits_back)
        return rows

    def error(self, length: int = 32) -> float:
        """How far back is from forward, as matrices: the largest entry of what should be zero."""
        there, back = (np.array(m(length), dtype=float) for m in (self.matrix, self.matrix_back))
        return float(np.abs(back @ there - np.eye(length)).max())

    @property
    def gain(self) -> float:
        """How many times the largest sample a coefficient can be."""
        sums = [sum(abs(n) for n in taps.values()) for taps in (self.low, self.high)]
        return float(max(sums) / 2**self.bits)

    def _forward(self, n: int) -> Fraction:
        return Fraction(n, 2**self.bits)

    @property
    def _odd(self) -> int:
        """Where on the line coefficients of the high band stand, beside 2k; folding goes by that."""
        return int(self.mode == "symmetric")

    def _fold(self, place: int, length: int) -> int:
        return int(source_places(np.array([place]), length, self.mode)[0])

    def _check_length(self, length: int) -> None:
        if length < 2 or length % 2:
            raise ArgumentError(f"fixed-point filters take lines of even length, got {length}")

    # --- running ----------------------------------------------------------------------------------

    def forward(self, x: ArrayLike, level: int = 1, axes: Sequence[int] = (-2, -1)) -> list[Any]:
        """``[cA, (cH, cV, cD) of the coarsest level, …]`` in int16.

        Parameters
        ----------
        x : array of integers
            Lines along the axes have to be of even length at each level.
        level : int
        axes : two ints
        """
        array = numpy_array(x)
        if array.dtype.kind not in "iu":
            raise ArgumentTypeError(f"fixed-point filters take integers, got {array.dtype}; round them first")
        down, along = checked_axes(two_axes(axes), array.ndim)
        if not isinstance(level, (int, np.integer)) or level < 0:
            raise ArgumentError(f"level is a whole number from 0 on, got {level!r}")
        if any(array.shape[axis] % 2**level for axis in (down, along)):
            raise ArgumentError(
                f"{level} level(s) take sides that 2^{level} divides, got shape {array.shape}"
            )
        largest = max((abs(int(v)) for v in (array.min(), array.max())), default=0) if array.size else 0
        bound = largest * self._grows(level)
        if bound > 32767:
            raise ArgumentError(
                f"{level} level(s) of {self.name} could lead to ±{bound:.0f}, beyond 16 bits: use fewer, or"
                " smaller samples"
            )
        low: Array = array.astype(np.int16)
        details: list[tuple[Array, ...]] = []
        for _ in range(level):
            rows = self._analyse(low, along)
            (low, vertical), (horizontal, both) = (
                (a, b)
                for a, b in zip(self._analyse(rows[0], down), self._analyse(rows[1], down), strict=True)
            )
            details.insert(0, (horizontal, vertical, both))
        return [low, *details]

    def inverse(self, coeffs: Sequence[Any], axes: Sequence[int] = (-2, -1)) -> Array:
        """The samples, in int16."""
        if not isinstance(coeffs, (list, tuple)) or not coeffs:
            raise ArgumentError(f"coefficients are nested as forward does, got {type(coeffs).__name__}")
        low = self._band(coeffs[0])
        down, along = checked_axes(two_axes(axes), low.ndim)
        for number, details in enumerate(coeffs[1:], 1):
            bands = [self._band(band) for band in details]
            if len(bands) != 3 or any(band.shape != low.shape for band in bands):
                found = [band.shape for band in bands]
                raise ArgumentError(f"level {number} needs three bands of shape {low.shape}, got {found}")
            horizontal, vertical, both = bands
            left = self._synthesise(low, horizontal, down)
            low = self._synthesise(left, self._synthesise(vertical, both, down), along)
        return low

    def _band(self, band: ArrayLike) -> NDArray[np.int16]:
        """Coefficients in 16 bits, or an error."""
        array = numpy_array(band, "a band")
        if array.dtype.kind not in "iu":
            raise ArgumentTypeError(f"coefficients are integers of 16 bits, got {array.dtype}")
        if array.size and not (-32768 <= int(array.min()) and int(array.max()) <= 32767):
            raise ArgumentError(f"coefficients of 16 bits, got {array.min()} to {array.max()}")
        return array.astype(np.int16)

    def _grows(self, level: int) -> float:
        low = sum(abs(n) for n in self.low.values()) / 2**self.bits
        return float(max(1.0, low ** (2 * max(0, level - 1)) * self.gain**2))

    def _sums(self, x: Array, taps: Taps, axis: int, first: int, count: int, step: int) -> NDArray[np.int32]:
        """Σ n · x[first + step · k + offset] along an axis of an array that is long enough."""
        total = np.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), np.int32)
        for offset, n in taps.items():
            begin = first + offset
            cut = [slice(None)] * x.ndim
            cut[axis] = slice(begin, begin + step * (count - 1) + 1, step)
            total += np.int32(n) * x[tuple(cut)]
        return total

    def _rounded(self, total: NDArray[np.int32], bits: int) -> NDArray[np.int16]:
        kept = (total + (1 << bits >> 1)) >> bits
        cut: NDArray[np.int16] = np.clip(kept, -32768, 32767).astype(np.int16)
        return cut

    def _analyse(self, x: Array, axis: int) -> list[Array]:
        length = x.shape[axis]
        reach = max(abs(offset) for taps in (self.low, self.high) for offset in taps)
        places = source_places(np.arange(-reach, length + reach), length, self.mode)
        wide = x.take(places, axis)
        return [
            self._rounded(self._sums(wide, taps, axis, reach, length // 2, 2), self.bits)
            for taps in (self.low, self.high)
        ]

    def _synthesise(self, low: Array, high: Array, axis: int) -> Array:
        length = 2 * low.shape[axis]
        out = np.empty((*low.shape[:axis], length, *low.shape[axis + 1 :]), np.int16)
        reach = 1 + max(abs(offset) for taps in (self.low_back, self.high_back) for offset in taps) // 2
        wide = []
        for band, part in enumerate((low, high)):
            numbers = np.arange(-reach, length // 2 + reach)
            places = source_places(2 * numbers + band * self._odd, length, self.mode) // 2
            wide.append(part.take(places, axis))
        for phase in (0, 1):
            total = np.zeros((*low.shape[:axis], length // 2, *low.shape[axis + 1 :]), np.int32)
            for part, taps in zip(wide, (self.low_back, self.high_back), strict=True):
                own = {-((o - phase) // 2): n for o, n in taps.items() if (o - phase) % 2 == 0}
                if own:
                    total += self._sums(part, own, axis, reach, length // 2, 1)
            cut = [slice(None)] * out.ndim
            cut[axis] = slice(phase, None, 2)
            out[tuple(cut)] = self._rounded(total, self.bits_back)
        return out


def shift_rational(wavelet: Wavelet | str, bits: int = 8) -> FixedPoint:
    """A wavelet in fixed point: its filters rounded to so many bits, constants still without details.

    Symmetric wavelets go on symmetrically, others periodically.

    Examples
    --------
    >>> made = shift_rational("cdf97", 10)
    >>> made.moments(1), made.error() < 0.01
    ([Fraction(0, 1)], True)
    """
    own = as_wavelet(wavelet)
    if not isinstance(bits, (int, np.integer)) or not 1 <= bits <= 14:
        raise ArgumentError(f"taps have 1 to 14 bits behind the point, got {bits!r}")
    line: Line | None = None
    if own.reconstruction_error <= 1e-6 and lifting(own).symmetric:
        line = lwt_line(64, own, "symmetric", True)
    folds = line is not None and line.mode == "reflect" and own.dec_len % 2 == 0 and _centred(line)
    if line is None or not folds:
        line = dwt_line(64, own, "periodization", True)
    scale = 2**bits
    low = {line.analysis.start + j: round(scale * t) for j, t in enumerate(line.analysis.low)}
    high = {line.analysis.start + j: round(scale * t) for j, t in enumerate(line.analysis.high)}
    largest = max(high, key=lambda offset: abs(high[offset]))
    high[largest] -= sum(high.values())
    back: list[Taps] = [{}, {}]
    for band, side in enumerate(line.synthesis):
        for phase, taps in enumerate((side.even, side.odd)):
            for j, tap in enumerate(taps):
                # Sample 2m + phase is made of coefficient m + start + j.
                back[band][phase - 2 * (side.start + j)] = round(scale * tap)
    clean = [{offset: n for offset, n in sorted(taps.items()) if n} for taps in (low, high, *back)]
    return FixedPoint(
        own.name, clean[0], clean[1], int(bits), clean[2], clean[3], int(bits),
        "symmetric" if folds else "periodic",
    )  # fmt: skip


def _centred(line: Line) -> bool:
    """Filters about the places of their coefficients, 2k and 2k + 1, alike on both sides."""
    start, found = line.analysis.start, []
    for band, taps in enumerate((line.analysis.low, line.analysis.high)):
        by_place = {start + j - band: tap for j, tap in enumerate(taps) if tap}
        found.append(
            all(math.isclose(tap, by_place.get(-p, 0.0), abs_tol=1e-12) for p, tap in by_place.items())
        )
    return all(found)


def _alternating(taps: Taps, sign: int) -> Taps:
    return {offset: (sign if offset % 2 == 0 else -sign) * n for offset, n in taps.items()}


_H = {0: 216, 1: 92, -1: 92, 2: -18, -2: -18}
_G = {0: -220, 1: 94, -1: 94, 2: 20, -2: 20, 3: -4, -3: -4}

# Burt's 5/7 wavelet over 256, its filters about samples 2k and 2k + 1.
burt57 = FixedPoint(
    "burt57",
    low=_H,
    high={offset + 1: n for offset, n in _G.items()},
    bits=8,
    low_back=_alternating(_G, -1),
    high_back={offset + 1: n for offset, n in _alternating(_H, -1).items()},
    bits_back=8,
    mode="symmetric",
)

_D4 = (11, 19, 5, -3)

# Daubechies' four taps over 16, and half their transpose back: what is constant comes back as it was.
d4 = FixedPoint(
    "d4",
    low=dict(enumerate(_D4)),
    high={0: -3, 1: -5, 2: 19, 3: -11},
    bits=4,
    low_back=dict(enumerate(_D4)),
    high_back={0: -3, 1: -5, 2: 19, 3: -11},
    bits_back=5,
    mode="periodic",
)
