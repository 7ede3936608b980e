"""One level of a transform in plain NumPy: an array to the list of its bands, and back.

One function computes: :func:`apply` runs a polyphase matrix over the components of an array. The DWT
extends the lines, applies the matrices of a scheme and cuts out the bands. The LWT applies the same
matrices with places beyond the ends folded back onto the line.

Bands are listed in the order ``aa, ad, da, dd`` for two axes, ``d`` meaning high along the axis of that
letter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...algebra import PolyphaseMatrix
from ...errors import ArgumentError
from ...liftings import lifting
from ...lowering.borders import band_length, extend, signal_length, source_places
from ...lowering.rounding import rounding
from ...lowering.spec import Task
from ...schemes import STEPWISE, Scheme, scheme
from ...wavelets import Wavelet

__all__ = ["apply", "apply_operator", "dwt", "idwt", "ilwt", "lwt"]

Array = NDArray[Any]
Bands = list[Array]
Matrices = list[PolyphaseMatrix]
# (component, axis, its bit, bit of the component it is wanted for, exponent) → component moved
Shift = Callable[[Array, int, int, int, int], Array]


def apply(matrix: PolyphaseMatrix, bands: Sequence[Array], axes: Sequence[int], shift: Shift) -> Bands:
    """Multiply a matrix and components: each row is a sum of coefficients times shifted components.

    Bit ``v`` of a component's number tells high from low along the axis of variable ``v``; variable 0 runs
    along the last of ``axes``.
    """

    @cache
    def moved(j: int, bits: tuple[int, ...], exponents: tuple[int, ...]) -> Array:
        if not exponents:
            return bands[j]
        v = len(exponents) - 1
        return shift(moved(j, bits[:-1], exponents[:-1]), axes[-1 - v], j >> v & 1, bits[-1], exponents[-1])

    results = []
    for i, row in enumerate(matrix.rows):
        bits = tuple(i >> v & 1 for v in range(len(axes)))
        total: Any = 0
        for j, entry in enumerate(row):
            for key, value in entry.items():
                total = total + float(value) * moved(j, bits, key if isinstance(key, tuple) else (key,))
        results.append(total)
    return results


def apply_operator(task: Task, *arrays: Array) -> Bands:
    """Apply the operator along an axis, as it is defined, to samples or to the low and the high band."""
    axis, op = task
    results = op(*(np.moveaxis(array, axis, -1) for array in arrays))
    return [np.moveaxis(result, -1, axis) for result in results]


def _cut(x: Array, axes: Sequence[int], cuts: Sequence[slice]) -> Array:
    index = [slice(None)] * x.ndim
    for axis, cut in zip(axes, cuts, strict=True):
        index[axis] = cut
    return x[tuple(index)]


def _split(x: Array, axes: Sequence[int]) -> Bands:
    """Split an array into its even and odd places along each axis."""
    return [
        _cut(x, axes, [slice(bit, None, 2) for bit in bits]) for bits in product((0, 1), repeat=len(axes))
    ]


def _join(bands: Sequence[Array], axes: Sequence[int]) -> Array:
    """Return the array of which these are the even and odd places."""
    shape = list(bands[0].shape)
    for axis in axes:
        shape[axis] += bands[-1].shape[axis]
    x = np.empty(shape, dtype=np.result_type(*bands))
    for place, band in zip(_split(x, axes), bands, strict=True):
        place[...] = band
    return x


# --- DWT: extend, apply, cut ----------------------------------------------------------------------


def _shift_block(part: Array, axis: int, source: int, target: int, exponent: int) -> Array:
    """Shift a component within a block; what comes in at its rim is wrong, and cut off in the end."""
    moved, count = np.zeros_like(part), part.shape[axis]
    kept, place = (slice(max(0, e), max(0, count + min(0, e))) for e in (exponent, -exponent))
    _cut(moved, [axis], [place])[...] = _cut(part, [axis], [kept])
    return moved


def _reach(matrices: Matrices) -> int:
    return sum(max(max(side) for side in matrix.halo) for matrix in matrices)


def _analyse(
    x: Array, matrices: Matrices, axes: Sequence[int], mode: str, counts: Sequence[int], lead: int = 0
) -> Bands:
    """Return bands of ``counts`` coefficients, of the line that begins ``lead`` places later."""
    margin = _reach(matrices)
    for axis, count in zip(axes, counts, strict=True):
        x = extend(x, axis, lead - 2 * margin, lead + 2 * (count + margin), mode)
    bands = _split(x, axes)
    for matrix in matrices:
        bands = apply(matrix, bands, axes, _shift_block)
    return [_cut(b, axes, [slice(margin, margin + count) for count in counts]) for b in bands]


def _synthesise(
    bands: Bands,
    matrices: Matrices,
    axes: Sequence[int],
    mode: str,
    starts: Sequence[int],
    counts: Sequence[int],
) -> Array:
    """Return ``counts`` samples from ``starts`` on, of bands that are extended by ``mode``."""
    margin = _reach(matrices) + max(map(abs, starts))
    for axis in axes:
        bands = [extend(b, axis, -margin, b.shape[axis] + margin, mode) for b in bands]
    for matrix in matrices:
        bands = apply(matrix, bands, axes, _shift_block)
    x = _join(bands, axes)
    firsts = [2 * margin + start for start in starts]
    return _cut(x, axes, [slice(f, f + n) for f, n in zip(firsts, counts, strict=True)])


def _matrices(wavelet: Wavelet, name: str | None, inverse: bool) -> Matrices:
    """Return the matrices of one level in the order of application: of a scheme, or of the filters."""
    if name is None:
        return [wavelet.synthesis if inverse else wavelet.polyphase]
    return _unrolled(scheme(wavelet, name), inverse)


def _unrolled(factored: Scheme, inverse: bool) -> Matrices:
    factored = factored.inverse() if inverse else factored
    return [factored.before, *(factor.matrix for factor in factored.factors), factored.after]


def dwt(x: Array, wavelet: Wavelet, mode: str, axes: Sequence[int], name: str | None) -> Bands:
    """Compute one level of the DWT, by a scheme (two axes) or by the filters (one axis)."""
    length, lead = wavelet.dec_len, 0
    counts = [band_length(x.shape[axis], length, mode) for axis in axes]
    if mode == "periodization":
        lead = length // 2 - 1
        for axis in axes:  # an odd line repeats its last sample
            x = extend(x, axis, 0, x.shape[axis] + x.shape[axis] % 2, "constant")
    return _analyse(x, _matrices(wavelet, name, False), axes, mode, counts, lead)


def idwt(bands: Bands, wavelet: Wavelet, mode: str, axes: Sequence[int], name: str | None) -> Array:
    """Compute the inverse of :func:`dwt`."""
    length = wavelet.rec_len
    counts = [signal_length(bands[0].shape[axis], length, mode) for axis in axes]
    if min(counts) < 1:
        raise ArgumentError(
            f"bands of shape {bands[0].shape} are too small for a filter of {length} taps in mode {mode!r}"
        )
    around, start = ("periodic", 1 - length // 2) if mode == "periodization" else ("zero", 0)
    matrices = _matrices(wavelet, name, True)
    return _synthesise(bands, matrices, axes, around, [start] * len(axes), counts)


# --- LWT: steps that fold places back onto the line -----------------------------------------------


def _shift_line(lengths: Mapping[int, int], odd: int, mode: str) -> Shift:
    """Return a shift along a line, whose places beyond the ends are folded back by the mode."""

    def shift(part: Array, axis: int, source: int, target: int, exponent: int) -> Array:
        length = lengths[axis]
        sources = np.arange(target, length, 2) + (source - target) * odd + 2 * exponent
        places = source_places(sources, length, mode)
        if (places >= 0).all():
            return np.take(part, places // 2, axis)
        moved = np.zeros([places.size if k == axis else n for k, n in enumerate(part.shape)], part.dtype)
        there = places >= 0  # (the others hold nothing)
        np.moveaxis(moved, axis, 0)[there] = np.moveaxis(part, axis, 0)[places[there] // 2]
        return moved

    return shift


def _scales(wavelet: Wavelet, length: int, mode: str) -> tuple[float, float]:
    """Return the factors of the low and the high band of a line after the steps."""
    low, high = (float(value) for value in lifting(wavelet).scaling)
    if length == 1 and mode != "zero":
        # The line goes on as a constant, of which the low-pass filter makes this.
        low = math.fsum(wavelet.dec_lo)
    return low, high


def _scale(bands: Bands, wavelet: Wavelet, lengths: Mapping[int, int], mode: str, power: int) -> Bands:
    factors = [_scales(wavelet, length, mode) for length in lengths.values()]
    return [
        band * math.prod(pair[bit] for pair, bit in zip(factors, bits, strict=True)) ** power
        for bits, band in zip(product((0, 1), repeat=len(factors)), bands, strict=True)
    ]


@lru_cache(maxsize=64)
def _steps(wavelet: Wavelet, name: str | None, inverse: bool) -> Matrices:
    """Return the matrices between splitting and scaling, of one axis or of a stepwise scheme."""
    if name is None:
        chain = lifting(wavelet).inverse() if inverse else lifting(wavelet)
        return [step.matrix for step in chain.steps]
    factorization = scheme(lifting(wavelet), name)
    return [factor.matrix for factor in (factorization.inverse() if inverse else factorization).factors]


def lwt(x: Array, wavelet: Wavelet, mode: str, axes: Sequence[int], name: str | None) -> Bands:
    """Compute one level of the LWT, by a scheme (two axes) or by the lifting steps (one axis)."""
    lengths = {axis: x.shape[axis] for axis in axes}
    if name is not None and name not in STEPWISE:
        matrices, around = _extended(wavelet, lengths, mode, name, inverse=False)
        bands = _analyse(x, matrices, axes, around, [(n + 1) // 2 for n in lengths.values()])
        return [
            _cut(
                band, axes, [slice((n + 1 - bit) // 2) for n, bit in zip(lengths.values(), bits, strict=True)]
            )
            for bits, band in zip(product((0, 1), repeat=len(axes)), bands, strict=True)
        ]
    bands = _split(x, axes)
    if np.issubdtype(x.dtype, np.integer):
        return _integer_steps(bands, wavelet, mode, axes[0], lengths, inverse=False)
    shift = _shift_line(lengths, lifting(wavelet).odd, mode)
    for matrix in _steps(wavelet, name, False):
        bands = apply(matrix, bands, axes, shift)
    return _scale(bands, wavelet, lengths, mode, 1)


def ilwt(bands: Bands, wavelet: Wavelet, mode: str, axes: Sequence[int], name: str | None) -> Array:
    """Compute the inverse of :func:`lwt`."""
    lengths = {axis: bands[0].shape[axis] + bands[-1].shape[axis] for axis in axes}
    if name is not None and name not in STEPWISE:
        matrices, around = _extended(wavelet, lengths, mode, name, inverse=True)
        line = _join(bands, axes)
        margin = _reach(matrices)
        for axis, n in lengths.items():
            line = extend(line, axis, -2 * margin, n + n % 2 + 2 * margin, around)
        x = _split(line, axes)
        for matrix in matrices:
            x = apply(matrix, x, axes, _shift_block)
        return _cut(_join(x, axes), axes, [slice(2 * margin, 2 * margin + n) for n in lengths.values()])
    if np.issubdtype(bands[0].dtype, np.integer):
        return _join(_integer_steps(bands, wavelet, mode, axes[0], lengths, inverse=True), axes)
    bands = _scale(bands, wavelet, lengths, mode, -1)
    shift = _shift_line(lengths, lifting(wavelet).odd, mode)
    for matrix in _steps(wavelet, name, True):
        bands = apply(matrix, bands, axes, shift)
    return _join(bands, axes)


def _extended(
    wavelet: Wavelet, lengths: Mapping[int, int], mode: str, name: str, inverse: bool
) -> tuple[Matrices, str]:
    """Return the matrices of a scheme that composes steps, and the extension under which it is an LWT."""
    chain = lifting(wavelet)
    folds = mode == "symmetric" and chain.symmetric
    wraps = mode == "periodic" and all(n % 2 == 0 for n in lengths.values())
    if not (folds or wraps) or min(lengths.values()) < 2:
        raise ArgumentError(
            f"scheme {name!r} composes steps, so it has no LWT of {wavelet.name!r} in mode {mode!r} for"
            f" lengths {tuple(lengths.values())}: that takes a symmetric wavelet in mode 'symmetric' or"
            f" even lengths in mode 'periodic', of at least 2; or one of the schemes"
            f" {', '.join(STEPWISE)}"
        )
    matrices = _unrolled(scheme(chain.on_line(), name), inverse)
    return matrices, "reflect" if folds else "periodic"


def _integer_steps(
    bands: Bands, wavelet: Wavelet, mode: str, axis: int, lengths: Mapping[int, int], inverse: bool
) -> Bands:
    """Lift reversibly: each step adds its sum rounded, ⌊· + ½⌋; nothing is scaled."""
    chain = lifting(wavelet)
    shift = _shift_line(lengths, chain.odd, mode)
    sign = -1 if inverse else 1
    for step in reversed(chain.steps) if inverse else chain.steps:
        target, source = (1, 0) if step.is_predict else (0, 1)
        moved = [
            (value, shift(bands[source], axis, source, target, exponent))
            for exponent, value in step.filter.items()
        ]
        bands[target] = bands[target] + sign * _rounded(moved)
    return bands


def _rounded(terms: Sequence[tuple[Any, Array]]) -> Array:
    """Return ⌊sum + ½⌋, with factors that are fractions over a power of two."""
    rounded = rounding([value for value, _ in terms])
    total = sum(
        weight * part.astype(np.int64) for weight, (_, part) in zip(rounded.weights, terms, strict=True)
    )
    return np.asarray((total + rounded.offset) >> rounded.shift)
