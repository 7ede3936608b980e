"""Bounds for the integers of a lifting transform, known before anything is computed.

Each number that a lifting computes is a sum of samples with known factors, and of the errors that rounding
made on the way, at most ½ each:

    number = Σ factor · sample + Σ factor · error

Samples up to ±M make it at most M · Σ |factor|, and those with the signs of the factors make it just that:
its *gain*. Gains are computed by lifting unit matrices, with the borders of the line, for everything that a
kernel computes. Several axes multiply: the factors of a number in an image are products of those along its
axes.

Far from both ends of a line, all numbers have the same factors. A long line is therefore as good as a shorter
one of the same parity that is long enough to have some places that no end can be seen from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..liftings import lifting
from ..wavelets import Wavelet
from .axis import AxisOp
from .polyphase import StepTable

__all__ = ["KINDS", "Growth", "gains_back", "growth"]

KINDS = ("numbers", "narrow", "medium", "wide")
"""What has to fit: the numbers; what kernels compute in the bits of the numbers, in those but at least 32,
and in twice as many but at most 64."""

WIDTHS = {16: (16, 16, 32, 32), 32: (32, 32, 32, 64), 64: (64, 64, 64, 64)}
WORK = 2**23  # Products for one matrix; beyond that, gains of some levels are multiplied by those of others.
CACHED = 2**16  # elements of a matrix
SLACK = 1e-9  # far more than is lost by computing gains in double precision

Floats = NDArray[np.float64]


class Growth(NamedTuple):
    """Bounds on the values in a transform of samples up to ±M: ``gains · M + errors``.

    Parameters
    ----------
    gains : tuple of float
        One for each of ``KINDS``; 0 for what is not computed.
    errors : tuple of float
        What rounding may have added.
    """

    gains: tuple[float, ...]
    errors: tuple[float, ...]

    def bound(self, largest: int, kind: str = "numbers") -> int:
        """Return the largest number that samples up to ±``largest`` can lead to."""
        number = KINDS.index(kind)
        return math.floor(self.gains[number] * largest + self.errors[number])

    @property
    def idle(self) -> bool:
        """Whether nothing is computed at all."""
        return not self.gains[-1]

    def fits(self, largest: int, bits: int) -> bool:
        """Return whether integers of so many bits hold everything."""
        return all(
            self.bound(largest, kind) < 2 ** (width - 1)
            for kind, width in zip(KINDS, WIDTHS[bits], strict=True)
        )

    def largest(self, bits: int) -> int:
        """Return the largest sample for which integers of so many bits hold everything."""
        low, high = 0, 2 ** (bits - 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(middle, bits) else (low, middle)
        return low


class _Gains(NamedTuple):
    """Gains of one level along one axis: of its line, of both bands, of the low one, and of each kind."""

    entering: float
    leaving: float
    low: float
    kinds: Floats


# --- lifting of matrices --------------------------------------------------------------------------


def _lift(table: StepTable, parts: Sequence[Floats], back: bool) -> Floats:
    """Take a step, or undo it, along the first axis; return its sums before rounding."""
    step, begin, end = table.step, table.begin, table.end
    target, source = parts[step.target], parts[1 - step.target]
    total = np.zeros_like(target)
    for tap, (offset, factor) in enumerate(zip(table.offsets, step.rounded.weights, strict=True)):
        total[begin:end] += factor * source[begin + offset : end + offset]
        inside = table.table[:, tap] >= 0
        total[table.border[inside]] += factor * source[table.table[inside, tap]]
    target += (-1 if back else 1) / 2**step.rounded.shift * total
    return total


def _norms(rows: Floats) -> Floats:
    """Return the sum of magnitudes at each place."""
    norms: Floats = np.abs(rows).sum(axis=-1)
    return norms


def _computed(table: StepTable, parts: Sequence[Floats], back: bool) -> Iterator[tuple[str, Floats, float]]:
    """Take a step; yield what it computes: the kind, the norm at each place, and the rounding error."""
    step = table.step
    weights, offset, shift = step.rounded
    weight = sum(map(abs, weights))
    products = weight * _norms(parts[1 - step.target]).max(axis=0, initial=0)[np.newaxis]
    norms = _norms(_lift(table, parts, back))
    rounded = 0.5 if shift else 0.0
    between_two = len(weights) == 2 and weights[0] == weights[1]
    # Steps between two neighbours may be taken by vector instructions, which have no wider numbers to spare.
    sums = "narrow" if between_two else "medium"
    yield "wide", products, offset
    if max(map(abs, weights)) <= 1:
        # Nothing is multiplied. The sum of the first of more than two terms may be larger than that of all.
        yield sums, norms if weight <= 2 else products, offset
    if between_two and weights[0]:
        yield "medium", norms / abs(weights[0]), 0.0  # two numbers, before they are multiplied
    yield sums, norms / 2**shift, rounded  # what is added to a number
    yield "numbers", _norms(parts[step.target]), rounded


def _adjoint(steps: Sequence[StepTable], high: int, low: Floats) -> Floats:
    """Return the factors of the samples, given those of the low band and the length of the high band."""
    parts = [low, np.zeros((high, low.shape[1]))]
    for table in reversed(steps):
        step, begin, end = table.step, table.begin, table.end
        target, source = parts[step.target], parts[1 - step.target]
        for tap, (offset, factor) in enumerate(zip(table.offsets, step.rounded.weights, strict=True)):
            ratio = factor / 2**step.rounded.shift
            source[begin + offset : end + offset] += ratio * target[begin:end]
            for place, at in zip(table.border.tolist(), table.table[:, tap].tolist(), strict=True):
                if at >= 0:
                    source[at] += ratio * target[place]
    return _merged(parts)


def _merged(parts: Sequence[Floats]) -> Floats:
    low, high = parts
    line = np.empty((len(low) + len(high), *low.shape[1:]))
    line[0::2], line[1::2] = low, high
    return line


@lru_cache(maxsize=1024)
def _steps(length: int, wavelet: Wavelet, mode: str) -> tuple[StepTable, ...]:
    """Return the steps that do anything."""
    if length == 1:
        return ()
    return AxisOp(wavelet, mode, length, "lwt", method="steps", rounded=True).step_tables


# --- lines ----------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _reach(wavelet: Wavelet, odd_period: bool) -> tuple[int, int]:
    """Return how far away the samples of a number are at most, and the products for a pair of samples."""
    chain = lifting(wavelet)
    # (On a periodic line of odd length, places beyond the ends are off by one.)
    reach = len(chain.steps) if odd_period else 0
    for step in chain.steps:
        distance = -chain.odd if step.is_predict else chain.odd
        reach += max(abs(2 * exponent + distance) for exponent, _ in step.filter.items())
    return reach, chain.operations


def _compact(wavelet: Wavelet, mode: str, lengths: Sequence[int]) -> tuple[int, ...]:
    """Return lengths of equivalent lines, finest first, without most samples far from their ends.

    In places of the coarsest level, a number reaches once as far as its line, half as far again in the line
    before, and so on. So there are places that see one end, places that see the other, and at least four that
    see none.
    """
    odd_period = mode == "periodic" and any(length % 2 for length in lengths)
    reach = math.ceil(_reach(wavelet, odd_period)[0] * (2 - 2.0 ** (1 - len(lengths))))
    enough, last = 2 * reach + 4, lengths[-1]
    lengths_near_ends = [last if last <= enough + 1 else enough + last % 2]
    for length in reversed(lengths[:-1]):
        lengths_near_ends.append(2 * lengths_near_ends[-1] - length % 2)
    return tuple(reversed(lengths_near_ends))


def _together(wavelet: Wavelet, mode: str, lengths: Sequence[int], first: bool) -> int:
    """Return how many levels are treated together: the first ones, or the last."""
    count = 1
    while count < len(lengths):
        kept = lengths[: count + 1] if first else lengths[-count - 1 :]
        compact = _compact(wavelet, mode, kept)
        if compact[0] * compact[-1] * _reach(wavelet, False)[1] > WORK:
            break
        count += 1
    return count


def _forward(wavelet: Wavelet, mode: str, lengths: tuple[int, ...]) -> _Gains:
    """Return the gains at the last of some levels, relative to the samples of the first."""
    first = len(lengths) - _together(wavelet, mode, lengths, False)
    gains = _forward_of(wavelet, mode, _compact(wavelet, mode, lengths[first:]))
    if not first:
        return gains
    before = _forward(wavelet, mode, lengths[:first]).low
    return _Gains(before * gains.entering, before * gains.leaving, before * gains.low, before * gains.kinds)


@lru_cache(maxsize=1024)
def _forward_of(wavelet: Wavelet, mode: str, lengths: tuple[int, ...]) -> _Gains:
    rows = np.eye(lengths[-1])
    for length in reversed(lengths[:-1]):
        rows = _adjoint(_steps(length, wavelet, mode), length // 2, rows)
    line = np.ascontiguousarray(rows.T)
    parts = [line[0::2].copy(), line[1::2].copy()]
    kinds = np.zeros(len(KINDS))
    kinds[0] = entering = _norms(line).max()
    for step in _steps(lengths[-1], wavelet, mode):
        for kind, norms, _ in _computed(step, parts, False):
            at = KINDS.index(kind)
            kinds[at] = max(kinds[at], norms.max())
    low, high = (float(_norms(part).max(initial=0)) for part in parts)
    return _Gains(float(entering), max(low, high), low, kinds)


def _backward(wavelet: Wavelet, mode: str, lengths: tuple[int, ...]) -> Floats:
    """Return the gains of each kind at the first of some levels, relative to the two bands of the last."""
    count = _together(wavelet, mode, lengths, True)
    gains = _backward_of(wavelet, mode, _compact(wavelet, mode, lengths[:count]))
    if count == len(lengths):
        return gains
    numbers = _backward(wavelet, mode, lengths[count:])[:, 0]
    product: Floats = numbers[:, np.newaxis] * gains[0]
    return product


@lru_cache(maxsize=1024)
def _backward_of(wavelet: Wavelet, mode: str, lengths: tuple[int, ...]) -> Floats:
    counts = (lengths[-1] + 1) // 2, lengths[-1] // 2
    parts = [np.zeros((count, 2, counts[0])) for count in counts]
    for band, part in enumerate(parts):
        part[np.arange(counts[band]), band, np.arange(counts[band])] = 1
    for length, finer in zip(lengths[:0:-1], lengths[-2::-1], strict=True):
        for step in _steps(length, wavelet, mode)[::-1]:
            _lift(step, parts, True)
        low = _merged(parts)
        parts = [low, np.zeros((finer // 2, *low.shape[1:]))]
    kinds = np.zeros((2, len(KINDS)))
    kinds[:, 0] = np.maximum(*(_norms(part).max(axis=0, initial=0) for part in parts))
    for step in _steps(lengths[0], wavelet, mode)[::-1]:
        for kind, norms, _ in _computed(step, parts, True):
            at = KINDS.index(kind)
            kinds[:, at] = np.maximum(kinds[:, at], norms.max(axis=0))
    return kinds


def _errors(wavelet: Wavelet, mode: str, length: int, back: bool = False) -> _Gains:
    """Return what rounding adds in one level."""
    return _errors_of(wavelet, mode, *_compact(wavelet, mode, (length,)), back)


@lru_cache(maxsize=1024)
def _errors_of(wavelet: Wavelet, mode: str, length: int, back: bool) -> _Gains:
    counts = (length + 1) // 2, length // 2
    kinds, leaving = np.zeros(len(KINDS)), [np.zeros(count) for count in counts]
    steps = _steps(length, wavelet, mode)[:: -1 if back else 1]
    totals: dict[tuple[int, int], Floats] = {}
    kind_of: dict[tuple[int, int], int] = {}
    places = np.arange(counts[0])
    # What the rounding of some steps does to everything from there on; as many as caches hold.
    many = max(1, CACHED // (length * counts[0]))
    for first in range(0, len(steps), many):
        parts = [np.zeros((n, min(many, len(steps) - first) * counts[0])) for n in counts]
        for number, step in enumerate(steps[first:], first):
            for position, (kind, norms, rounding) in enumerate(_computed(step, parts, back)):
                at = number, position
                kind_of[at] = KINDS.index(kind)
                totals[at] = totals.get(at, 0.0) + norms + (rounding if number < first + many else 0.0)
            if number < first + many and step.step.rounded.shift:
                targets = places[: counts[step.step.target]]
                parts[step.step.target][targets, (number - first) * counts[0] + targets] = 0.5
        leaving = [total + _norms(part) for total, part in zip(leaving, parts, strict=True)]
    for at, total in totals.items():
        kinds[kind_of[at]] = max(kinds[kind_of[at]], total.max())
    low, high = (float(total.max(initial=0)) for total in leaving)
    return _Gains(0.0, max(low, high), low, kinds)


# --- transforms -----------------------------------------------------------------------------------


def _lengths(length: int, levels: int) -> tuple[int, ...]:
    """Return the lengths of the lines of all levels, finest first."""
    lengths = [length]
    while len(lengths) < levels:
        lengths.append((lengths[-1] + 1) // 2)
    return tuple(lengths)


@lru_cache(maxsize=1024)
def growth(
    wavelets: tuple[Wavelet, ...], modes: tuple[str, ...], lengths: tuple[int, ...], levels: int
) -> Growth:
    """Return the bounds of a transform, given a wavelet, a mode and a length for each axis."""
    levels = min(levels, max(length - 1 for length in lengths).bit_length())  # (then single numbers are left)
    axes = [
        (wavelet, mode, _lengths(length, levels))
        for wavelet, mode, length in zip(wavelets, modes, lengths, strict=True)
    ]
    gains, errors = np.zeros(len(KINDS)), np.zeros(len(KINDS))
    low_errors: list[float] = []  # that each level adds to its approximation
    for last in range(levels):
        passed = np.zeros(len(KINDS))  # errors of earlier levels
        for first in range(last + 1):
            along = [_forward(wavelet, mode, sizes[first : last + 1]) for wavelet, mode, sizes in axes]
            # An axis after the other: those before are split into bands, those after are not yet.
            most = np.zeros(len(KINDS))
            for axis, gain in enumerate(along):
                others = math.prod(g.leaving for g in along[:axis]) * math.prod(
                    g.entering for g in along[axis + 1 :]
                )
                most = np.maximum(most, others * gain.kinds)
            if first == 0:
                gains = np.maximum(gains, most)
            else:
                passed += low_errors[first - 1] * most
        # (These are the gains of one level alone.)
        error, low_error, added = 0.0, 0.0, np.zeros(len(KINDS))
        for (wavelet, mode, sizes), gain in zip(axes, along, strict=True):
            fresh = _errors(wavelet, mode, sizes[last])
            added = np.maximum(added, gain.kinds * error + fresh.kinds)
            error = gain.leaving * error + fresh.leaving
            low_error = gain.low * low_error + fresh.low
        low_errors.append(low_error)
        errors = np.maximum(errors, passed + added)
    if not gains[-1]:  # (there are no steps)
        return Growth((1.0, 0.0, 0.0, 0.0), (0.0,) * 4)
    return Growth(tuple((gains * (1 + SLACK)).tolist()), tuple((errors * (1 + SLACK)).tolist()))


@lru_cache(maxsize=1024)
def gains_back(
    wavelets: tuple[Wavelet, ...], modes: tuple[str, ...], lengths: tuple[int, ...], levels: int, bits: int
) -> tuple[Floats, float]:
    """Return what coefficients can lead to in the inverse, as parts of the range of so many bits.

    Returns
    -------
    weights : array
        Weights of the approximation and of each band, in flat order. Where the sum of
        ``weight · largest coefficient`` and of ``error`` is at most 1, everything fits.
    error : float
        The part of rounding.
    """
    limits = 2.0 ** (np.array(WIDTHS[bits]) - 1) - 1
    # (Of single numbers, there are no details.)
    depth = max(1, min(levels, max(length - 1 for length in lengths).bit_length()))
    axes = [
        (wavelet, mode, _lengths(length, depth))
        for wavelet, mode, length in zip(wavelets, modes, lengths, strict=True)
    ]
    keys = list(product((0, 1), repeat=len(axes)))
    band_gains = np.zeros((depth, len(keys)))
    for last in range(depth):
        for first in range(last + 1):
            along = [_backward(wavelet, mode, sizes[first : last + 1]) for wavelet, mode, sizes in axes]
            for number, key in enumerate(keys):
                kinds = [gain[band] for gain, band in zip(along, key, strict=True)]
                numbers = [float(kind[0]) for kind in kinds]
                for axis, kind in enumerate(kinds):
                    others = math.prod(numbers[:axis] + numbers[axis + 1 :])
                    band_gains[last, number] = max(band_gains[last, number], (others * kind / limits).max())
    # Errors of rounding: within a level, and as those of the approximation of all finer ones.
    error = passed = 0.0
    for level in range(depth):
        added = 0.0
        for wavelet, mode, sizes in reversed(axes):
            gains = _backward(wavelet, mode, sizes[level : level + 1]).sum(axis=0)
            fresh = _errors(wavelet, mode, sizes[level], True).kinds
            error = max(error, ((gains * added + fresh) / limits).max())
            added = float(gains[0] * added + fresh[0])
        if level:
            passed += added * band_gains[level - 1, 0]
    nothing = np.zeros((levels - depth) * (len(keys) - 1))
    weights = np.concatenate([band_gains[-1:, 0], nothing, band_gains[::-1, 1:].ravel()])
    return weights * (1 + SLACK), (error + passed) * (1 + SLACK)
