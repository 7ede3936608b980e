"""Filter banks in fixed point: taps are fractions ``n / 2^b``, sums are rounded by an offset and a shift.

    coefficient = (Σ n · sample + 2^(b-1)) >> b

Unlike integer lifting, this is lossy: reconstructed samples may be off by one. It suits processors without
floating point, since everything fits 16-bit arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import keeps_library, numpy_array
from ..errors import ArgumentError, ArgumentTypeError
from ..liftings import lifting
from ..lowering.axis import AxisOp
from ..lowering.axis_arguments import checked_axes, two_axes
from ..lowering.borders import source_places
from ..wavelets import Wavelet, as_wavelet

__all__ = ["FixedPoint", "burt57", "d4", "shift_rational"]

Array = NDArray[Any]
Taps = dict[int, int]  # numerators by offset


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A filter bank whose taps are fractions over powers of two.

    Parameters
    ----------
    name : str
        Name of the bank.
    low, high : dict of int to int
        Numerators of the analysis filters, by offset from sample ``2k``.
    bits : int
        Their denominator is ``2**bits``.
    low_back, high_back : dict of int to int
        Numerators of the synthesis filters, by the offset of a sample from ``2k``.
    bits_back : int
        Their denominator is ``2**bits_back``.
    mode : {"periodic", "symmetric"}
        Boundary extension of samples and coefficients; symmetric about the end samples.

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

    # --- properties -------------------------------------------------------------------------------

    @cached_property
    def norm(self) -> Fraction:
        """The sum of squares of the low-pass analysis filter; 1 or 2 for an orthogonal bank."""
        return sum((self._forward(n) ** 2 for n in self.low.values()), Fraction(0))

    def moments(self, count: int) -> list[Fraction]:
        """Return the moments Σ tap · offset^p of the high-pass filter, for p = 0, …, count - 1.

        Parameters
        ----------
        count : int
            Number of moments.

        Returns
        -------
        list of Fraction
        """
        first = min(self.high)
        return [
            sum((self._forward(n) * (offset - first) ** p for offset, n in self.high.items()), Fraction(0))
            for p in range(count)
        ]

    def matrix(self, length: int) -> list[list[Fraction]]:
        """Return the matrix of one analysis level for an even length: the low band, then the high band.

        Parameters
        ----------
        length : int
            Number of samples; even.

        Returns
        -------
        list of list of Fraction
            The rows of the matrix.
        """
        self._check_length(length)
        rows = [[Fraction(0)] * length for _ in range(length)]
        for band, taps in enumerate((self.low, self.high)):
            for k in range(length // 2):
                for offset, n in taps.items():
                    rows[band * length // 2 + k][self._fold(2 * k + offset, length)] += self._forward(n)
        return rows

    def matrix_back(self, length: int) -> list[list[Fraction]]:
        """Return the matrix of one synthesis level for an even length.

        Parameters
        ----------
        length : int
            Number of samples; even.

        Returns
        -------
        list of list of Fraction
            The rows of the matrix.
        """
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
        """Return the largest entry, in magnitude, of synthesis times analysis minus the identity.

        Parameters
        ----------
        length : int, default 32
            Number of samples; even.

        Returns
        -------
        float
        """
        analysis, synthesis = (np.array(m(length), dtype=float) for m in (self.matrix, self.matrix_back))
        return float(np.abs(synthesis @ analysis - np.eye(length)).max())

    @property
    def gain(self) -> float:
        """The largest possible ratio of a coefficient to the largest sample, along one axis."""
        sums = [sum(abs(n) for n in taps.values()) for taps in (self.low, self.high)]
        return float(max(sums) / 2**self.bits)

    def _forward(self, n: int) -> Fraction:
        return Fraction(n, 2**self.bits)

    @property
    def _odd(self) -> int:
        """Position of coefficient k of the high band on the line, relative to 2k."""
        return int(self.mode == "symmetric")

    def _fold(self, place: int, length: int) -> int:
        return int(source_places(np.array([place]), length, self.mode)[0])

    def _check_length(self, length: int) -> None:
        if length < 2 or length % 2:
            raise ArgumentError(f"fixed-point filters need an even length, got {length}")

    # --- running ----------------------------------------------------------------------------------

    @keeps_library
    def forward(self, x: ArrayLike, level: int = 1, axes: Sequence[int] = (-2, -1)) -> list[Any]:
        """Decompose an array along two axes.

        Parameters
        ----------
        x : array_like of integers
            ``2**level`` must divide its lengths along the axes.
        level : int, optional
            Number of levels. The default is 1.
        axes : pair of ints, optional
            The default is the last two.

        Returns
        -------
        list
            ``[cA, (cH, cV, cD) of the coarsest level, …]`` in int16.
        """
        array = numpy_array(x)
        if array.dtype.kind not in "iu":
            raise ArgumentTypeError(f"fixed-point filters take integers, got {array.dtype}; round first")
        down, along = checked_axes(two_axes(axes), array.ndim)
        if not isinstance(level, (int, np.integer)) or level < 0:
            raise ArgumentError(f"level must be a non-negative integer, got {level!r}")
        if any(array.shape[axis] % 2**level for axis in (down, along)):
            raise ArgumentError(
                f"2^{level} must divide both sides for {level} level(s), got shape {array.shape}"
            )
        bound = self._largest(level, int(array.min()), int(array.max())) if array.size else 0.0
        if bound > 32767:
            raise ArgumentError(
                f"{level} level(s) of {self.name} could reach ±{bound:.0f}, beyond 16 bits; use fewer levels"
                " or smaller samples"
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

    @keeps_library
    def inverse(self, coeffs: Sequence[Any], axes: Sequence[int] = (-2, -1)) -> Array:
        """Reconstruct an array from its coefficients.

        Parameters
        ----------
        coeffs : list
            Coefficients as :meth:`forward` returns them.
        axes : pair of ints, optional
            The default is the last two.

        Returns
        -------
        ndarray of int16
        """
        if not isinstance(coeffs, (list, tuple)) or not coeffs:
            raise ArgumentError(
                f"coefficients must be a list as forward returns it, got {type(coeffs).__name__}"
            )
        low = self._band(coeffs[0])
        down, along = checked_axes(two_axes(axes), low.ndim)
        for number, details in enumerate(coeffs[1:], 1):
            bands = [self._band(band) for band in details]
            if len(bands) != 3 or any(band.shape != low.shape for band in bands):
                raise ArgumentError(
                    f"level {number} needs three bands of shape {low.shape}, got {[b.shape for b in bands]}"
                )
            horizontal, vertical, both = bands
            left = self._synthesise(low, horizontal, down)
            low = self._synthesise(left, self._synthesise(vertical, both, down), along)
        return low

    def _band(self, band: ArrayLike) -> NDArray[np.int16]:
        """Return a band as int16, or raise an error."""
        array = numpy_array(band, "a band")
        if array.dtype.kind not in "iu":
            raise ArgumentTypeError(f"coefficients must be 16-bit integers, got {array.dtype}")
        if array.size and not (-32768 <= int(array.min()) and int(array.max()) <= 32767):
            raise ArgumentError(
                f"coefficients must fit 16 bits, got values from {array.min()} to {array.max()}"
            )
        return array.astype(np.int16)

    def _largest(self, level: int, least: int, most: int) -> float:
        """Return a bound on the magnitudes of coefficients of samples from ``least`` to ``most``.

        It is that of the cascaded filters, with what rounding after each filter may add.
        """
        bound, error, lowpass = float(max(-least, most)), 0.0, np.ones(1)
        gains = [1.0]  # of all samples of an approximation, for errors of the first one, the second one, …
        for number in range(level):
            cascaded = [self._cascaded(lowpass, taps, 2**number) for taps in (self.low, self.high)]
            rounding = (error * self.gain + 0.5) * self.gain + 0.5
            # Sums of the positive and of the negative taps along an axis: filtered along one, or both.
            sums = [(np.maximum(taps, 0).sum(), np.maximum(-taps, 0).sum()) for taps in (*cascaded, lowpass)]
            for (above, below), (up, down) in product(sums[:2], sums):
                positive, negative = above * up + below * down, above * down + below * up
                largest = max(positive * most - negative * least, negative * most - positive * least)
                bound = max(bound, float(largest) + rounding)
            lowpass = cascaded[0]
            step = 0.5 * (1 + float(np.abs(self._cascaded(np.ones(1), self.low, 1)).sum()))
            error = step * sum(gains)
            gains.append(float(np.abs(lowpass).sum()) ** 2)
        return bound

    def _cascaded(self, lowpass: Array, taps: Taps, spacing: int) -> Array:
        """Return the taps of a filter of an approximation, as a filter of the samples."""
        first = min(taps)
        spaced = np.zeros((max(taps) - first) * spacing + 1)
        for offset, n in taps.items():
            spaced[(offset - first) * spacing] = n / 2**self.bits
        return np.convolve(lowpass, spaced)

    def _sums(self, x: Array, taps: Taps, axis: int, first: int, count: int, step: int) -> NDArray[np.int32]:
        """Return Σ n · x[first + step · k + offset] along an axis, for k < count; x must be padded."""
        total = np.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), np.int32)
        for offset, n in taps.items():
            begin = first + offset
            cut = [slice(None)] * x.ndim
            cut[axis] = slice(begin, begin + step * (count - 1) + 1, step)
            total += np.int32(n) * x[tuple(cut)]
        return total

    def _rounded(self, total: NDArray[np.int32], bits: int) -> NDArray[np.int16]:
        quotients = (total + (1 << bits >> 1)) >> bits
        clipped: NDArray[np.int16] = np.clip(quotients, -32768, 32767).astype(np.int16)
        return clipped

    def _analyse(self, x: Array, axis: int) -> list[Array]:
        length = x.shape[axis]
        reach = max(abs(offset) for taps in (self.low, self.high) for offset in taps)
        places = source_places(np.arange(-reach, length + reach), length, self.mode)
        padded = x.take(places, axis)
        return [
            self._rounded(self._sums(padded, taps, axis, reach, length // 2, 2), self.bits)
            for taps in (self.low, self.high)
        ]

    def _synthesise(self, low: Array, high: Array, axis: int) -> Array:
        length = 2 * low.shape[axis]
        out = np.empty((*low.shape[:axis], length, *low.shape[axis + 1 :]), np.int16)
        reach = 1 + max(abs(offset) for taps in (self.low_back, self.high_back) for offset in taps) // 2
        padded = []
        for band, part in enumerate((low, high)):
            numbers = np.arange(-reach, length // 2 + reach)
            places = source_places(2 * numbers + band * self._odd, length, self.mode) // 2
            padded.append(part.take(places, axis))
        for phase in (0, 1):
            total = np.zeros((*low.shape[:axis], length // 2, *low.shape[axis + 1 :]), np.int32)
            for part, taps in zip(padded, (self.low_back, self.high_back), strict=True):
                phase_taps = {-((o - phase) // 2): n for o, n in taps.items() if (o - phase) % 2 == 0}
                if phase_taps:
                    total += self._sums(part, phase_taps, axis, reach, length // 2, 1)
            cut = [slice(None)] * out.ndim
            cut[axis] = slice(phase, None, 2)
            out[tuple(cut)] = self._rounded(total, self.bits_back)
        return out


def shift_rational(wavelet: Wavelet | str, bits: int = 8) -> FixedPoint:
    """Round the filters of a wavelet to fixed point.

    The largest high-pass tap is adjusted so that constants still have no details. Symmetric wavelets get
    symmetric extension, others periodic extension.

    Parameters
    ----------
    wavelet : Wavelet or str
        The wavelet.
    bits : int, optional
        Fractional bits of the taps, from 1 to 14. The default is 8.

    Returns
    -------
    FixedPoint

    Examples
    --------
    >>> bank = shift_rational("cdf97", 10)
    >>> bank.moments(1), bank.error() < 0.01
    ([Fraction(0, 1)], True)
    """
    wavelet = as_wavelet(wavelet)
    if not isinstance(bits, (int, np.integer)) or not 1 <= bits <= 14:
        raise ArgumentError(f"bits must be an integer from 1 to 14, got {bits!r}")
    op = AxisOp(wavelet, "periodization", 64)
    folds = False
    if wavelet.reconstruction_error <= 1e-6 and wavelet.dec_len % 2 == 0 and lifting(wavelet).symmetric:
        folded = AxisOp(wavelet, "symmetric", 64, "lwt")
        folds = _centred(folded)
        op = folded if folds else op
    scale = 2**bits
    low = {op.analysis.start + j: round(scale * t) for j, t in enumerate(op.analysis.low)}
    high = {op.analysis.start + j: round(scale * t) for j, t in enumerate(op.analysis.high)}
    largest = max(high, key=lambda offset: abs(high[offset]))
    high[largest] -= sum(high.values())
    back: list[Taps] = [{}, {}]
    for band, side in enumerate(op.synthesis):
        for phase, taps in enumerate((side.even, side.odd)):
            for j, tap in enumerate(taps):
                # Sample 2m + phase is made of coefficient m + start + j.
                back[band][phase - 2 * (side.start + j)] = round(scale * tap)
    clean = [{offset: n for offset, n in sorted(taps.items()) if n} for taps in (low, high, *back)]
    return FixedPoint(
        wavelet.name, clean[0], clean[1], int(bits), clean[2], clean[3], int(bits),
        "symmetric" if folds else "periodic",
    )  # fmt: skip


def _centred(op: AxisOp) -> bool:
    """Return True if the filters are symmetric about the positions of their coefficients, 2k and 2k + 1."""
    for band, taps in enumerate((op.analysis.low, op.analysis.high)):
        by_place = {op.analysis.start + j - band: tap for j, tap in enumerate(taps) if tap}
        if not all(math.isclose(tap, by_place.get(-p, 0.0), abs_tol=1e-12) for p, tap in by_place.items()):
            return False
    return True


def _alternating(taps: Taps, sign: int) -> Taps:
    return {offset: (sign if offset % 2 == 0 else -sign) * n for offset, n in taps.items()}


_H = {0: 216, 1: 92, -1: 92, 2: -18, -2: -18}
_G = {0: -220, 1: 94, -1: 94, 2: 20, -2: 20, 3: -4, -3: -4}

# Burt's 5/7 wavelet over 256; its filters are centred on samples 2k and 2k + 1.
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
"""Burt\'s 5/7 filters as multiples of 1/256, as Apple published them in 1999."""

_D4 = (11, 19, 5, -3)

# Daubechies' four taps over 16. Synthesis is half the transpose, so constants are reconstructed exactly.
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
"""The filters of Daubechies with four taps as multiples of 1/16, as Apple published them in 1999."""
