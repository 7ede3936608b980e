"""A line and what one level does to it: all that a device needs to know, in numbers.

A transform of an array is the same work along each of its axes; a :class:`Line` says what that work is for
lines of one length. Coefficients stand at places of the line, ``low[k]`` at ``2k + places[0]`` and
``high[k]`` at ``2k + places[1]``, and are computed by filters

    low[k] = Σ low_taps[j] x[2k + start + j],    high likewise,

or, where the wavelet has such a chain, by lifting steps that add to a sample a multiple of its two
neighbours. What lies
beyond the ends of the line is a combination of samples on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..liftings import Lifting, LiftingStep, lifting
from ..wavelets import Wavelet
from .borders import band_length, combinations, source_places
from .rounding import Rounding, rounding

__all__ = [
    "Analysis",
    "Chain",
    "Line",
    "Step",
    "Steps",
    "Synthesis",
    "dwt_line",
    "lwt_line",
    "lwt_steps",
]

LONGEST = 12  # Taps of the filters beyond which a chain would have more steps than it saves.
PAIRS = 2  # of steps: longer chains take as many loads and multiply-adds as the filters, by count
MAX_CANCELLING_TAPS = 4
PRECISE = 1e-13  # A chain further than this from its filters is not run in double precision.

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Analysis:
    """The filters of a level forward: both read the samples ``2k + start …`` of the line."""

    start: int
    low: Numbers
    high: Numbers

    @property
    def cancels(self) -> bool:
        """The taps of the high filter are those of a first, second or third difference, times a number.

        Then the details of a constant are exactly 0, if products are rounded before they are added, which
        fused multiply-adds do not.

        Examples
        --------
        >>> [dwt_line(8, Wavelet(name), "symmetric", True).analysis.cancels for name in ("bior2.4", "db2")]
        [True, False]
        """
        taps = np.array([tap for tap in self.high if tap])
        binomial = [(-1) ** k * math.comb(taps.size - 1, k) for k in range(taps.size)]
        return taps.size <= MAX_CANCELLING_TAPS and np.allclose(taps / taps[0], binomial, rtol=1e-12)

    @property
    def order(self) -> tuple[int, ...]:
        """The order in which taps are added up; those that cancel stay together."""
        begins = tuple(range(len(self.low)))
        if self.cancels:
            places = np.flatnonzero(self.high)
            begins = tuple(k for k in begins if not places[0] < k <= places[-1])
        return _most_precise((self.low, self.high), begins)


@dataclass(frozen=True)
class Synthesis:
    """The filters of a level back, for one band: sample pairs m read its coefficients ``m + start …``."""

    start: int
    even: Numbers
    odd: Numbers

    @property
    def order(self) -> tuple[int, ...]:
        """The order in which taps are added up."""
        return _most_precise((self.even, self.odd), tuple(range(len(self.even))))


@lru_cache(maxsize=1024)
def _most_precise(filters: tuple[Numbers, Numbers], begins: tuple[int, ...]) -> tuple[int, ...]:
    """The order of taps whose sums lose least: from one of ``begins`` to the last, then from the first on.

    Every addition is rounded in proportion to the sum so far. Where taps are large in the middle, beginning
    there keeps sums small until the end; from the first tap on, they would be large for half of the way.
    """
    count = len(filters[0])
    orders = (np.array(begins)[:, np.newaxis] + np.arange(count)) % count
    losses = np.sum(np.cumsum(np.array(filters)[:, orders], axis=2) ** 2, axis=(0, 2))
    best = 0
    for k, loss in enumerate(losses):
        if loss < losses[best] * (1 - 1e-9):  # (of equal ones, the first)
            best = k
    return tuple(orders[best].tolist())


@dataclass(frozen=True)
class Chain:
    """Lifting steps between neighbours: every sample of one band gains ``factor · (left + right)``.

    Parameters
    ----------
    first : 0 or 1
        The band that the first step changes, low or high; the steps change them by turns.
    steps : tuple of float
        Their factors, as many as make pairs; the last one may do nothing.
    scaling : (low, high)
        What the bands are multiplied with in the end.
    rounded : tuple of Rounding
        The steps of integers, which are not scaled.
    """

    first: int
    steps: Numbers
    scaling: tuple[float, float]
    rounded: tuple[Rounding, ...]

    @property
    def pairs(self) -> int:
        """How many pairs of steps there are."""
        return len(self.steps) // 2

    def inverse(self) -> Chain:
        """The chain that undoes this one, with its scaling at the end, too."""
        scales = [1 / scale for scale in self.scaling]
        steps = []
        for number, factor in reversed(list(enumerate(self.steps))):
            target = (self.first + number) % 2
            steps.append(-factor * scales[1 - target] / scales[target])
        rounded = tuple(step.undone() for step in reversed(self.rounded))
        return Chain(1 - self.first, tuple(steps), (scales[0], scales[1]), rounded)


@dataclass(frozen=True)
class Line:
    """One level of a transform, for lines of one length.

    Parameters
    ----------
    length : int
        Samples.
    counts : (low, high)
        Coefficients of each band.
    places : (low, high)
        Where on the line the first coefficient of each band stands.
    mode : str
        How samples go on beyond the ends.
    family : str
        ``"dwt"`` or ``"lwt"``; for the way back.
    analysis : Analysis
    synthesis : (Synthesis, Synthesis)
        Of the low and of the high band.
    chain : Chain or None
        The lifting that is to be preferred to the filters.
    """

    length: int
    counts: tuple[int, int]
    places: tuple[int, int]
    mode: str
    family: str
    analysis: Analysis
    synthesis: tuple[Synthesis, Synthesis]
    chain: Chain | None

    def reads(self) -> tuple[int, int]:
        """The first and the last place that coefficients 0 are made of; those of k are 2k further on."""
        if self.chain is None:
            return self.analysis.start, self.analysis.start + len(self.analysis.low) - 1
        place, pairs = self.places[self.chain.first], self.chain.pairs
        return place - 1 - 2 * pairs, place - 1 + 2 * pairs

    def uses(self, samples: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """For each band, the first coefficient that samples 0 … are made of, and the one after the last."""
        half = (samples + 1) // 2
        if self.chain is None:
            low, high = ((s.start, half - 1 + s.start + len(s.even)) for s in self.synthesis)
            return low, high
        back = self.chain.inverse()
        place, pairs = self.places[back.first], back.pairs
        moved = (place + 1 - self.places[1 - back.first]) // 2
        first, last = -(place // 2), (samples - place) // 2 + 1
        own = first - pairs, last + pairs - 1
        other = first - pairs - 1 + moved, last + pairs - 1 + moved
        return (own, other) if back.first == 0 else (other, own)

    def beyond(self, places: NDArray[np.int_]) -> tuple[NDArray[np.int_], NDArray[np.float64]]:
        """Samples at places beyond the ends: indices and factors, as :func:`combinations` has them."""
        return combinations(self.length, places, self.mode)

    def coefficients_beyond(self, band: int, numbers: NDArray[np.int_]) -> NDArray[np.int_]:
        """Which coefficients stand for those beyond the ends of a band, on the way back; -1 for zero."""
        if self.family == "lwt":
            found = source_places(2 * numbers + band, self.length, _LWT_MODE[self.mode])
            return np.where(found < 0, -1, found // 2)
        if self.mode == "periodization":
            return numbers % self.counts[band]
        return np.where((numbers >= 0) & (numbers < self.counts[band]), numbers, -1)

    @property
    def operations(self) -> float:
        """Multiplications and additions for each sample."""
        if self.chain is not None:
            return sum(factor != 0 for factor in self.chain.steps) + 1.0
        return sum(tap != 0 for tap in (*self.analysis.low, *self.analysis.high)) / 2


_LWT_MODE = {"reflect": "symmetric", "periodic": "periodic"}


@lru_cache(maxsize=1024)
def dwt_line(length: int, wavelet: Wavelet, mode: str, single: bool) -> Line:
    """One level of the DWT. ``single`` says that float32 is precise enough to choose a chain for."""
    lead = wavelet.dec_len // 2 - 1 if mode == "periodization" else 0
    count = band_length(length, wavelet.dec_len, mode)
    factored = _short_lifting(wavelet)
    own = (0, 0) if factored is None else _places(factored)
    places = own[0] + lead, own[1] + lead
    chain = None
    if factored is not None and (single or factored.residual <= PRECISE):
        chain = _chain(factored, places)
    return Line(length, (count, count), places, mode, "dwt", *_filters(wavelet, own, places), chain)


@lru_cache(maxsize=1024)
def lwt_line(length: int, wavelet: Wavelet, mode: str, single: bool) -> Line | None:
    """One level of the LWT, or None where its steps have to be taken one by one.

    Steps that treat both sides alike keep a symmetric line symmetric, and an even period stays one; then
    the LWT is a matter of extending the line once, as the DWT is.
    """
    factored = lifting(wavelet)
    folds = mode == "symmetric" and factored.symmetric
    wraps = mode == "periodic" and length % 2 == 0
    if length == 1 or not (folds or wraps):
        return None
    places = (0, 1)
    chain = _chain(factored, places)
    if chain is None and not (single or factored.residual <= PRECISE):
        return None
    return Line(
        length,
        ((length + 1) // 2, length // 2),
        places,
        "reflect" if folds else "periodic",
        "lwt",
        *_filters(wavelet, _places(factored), places),
        chain,
    )


def _short_lifting(wavelet: Wavelet) -> Lifting | None:
    if wavelet.dec_len > LONGEST or wavelet.reconstruction_error > 1e-6:
        return None
    return lifting(wavelet)


def _places(chain: Lifting) -> tuple[int, int]:
    """Where on the line the two bands of the DWT stand, by the numbering of the lifting."""
    low, high = (exponent for row in chain.after.rows for entry in row for exponent, _ in entry.items())
    return chain.places[0] + 2 * low, chain.places[1] + 2 * high


def _chain(chain: Lifting, places: tuple[int, int]) -> Chain | None:
    """The lifting as steps between neighbours, if it is such, is short and begins where bands are aligned."""
    if not chain.steps or len(chain.steps) > 2 * PAIRS:
        return None
    first = int(chain.steps[0].is_predict)
    if places[first] + 1 - places[1 - first] != 2:
        return None
    steps: list[float] = []
    rounded: list[Rounding] = []
    for number, step in enumerate(chain.steps):
        if step.is_predict != ((first + number) % 2 == 1):
            return None
        distance = -chain.odd if step.is_predict else chain.odd
        sides = {2 * exponent + distance: float(value) for exponent, value in step.filter.items()}
        if sides.keys() != {-1, 1} or not math.isclose(sides[-1], sides[1], rel_tol=1e-12):
            return None
        steps.append(sides[1])
        rounded.append(rounding([value for _, value in step.filter.items()]))
    if len(steps) % 2:
        steps.append(0.0)
        rounded.append(Rounding((0, 0), 0, 0))
    low, high = (float(value) for value in chain.scaling)
    return Chain(first, tuple(steps), (low, high), tuple(rounded))


def _filters(
    wavelet: Wavelet, own: tuple[int, int], places: tuple[int, int]
) -> tuple[Analysis, tuple[Synthesis, Synthesis]]:
    """The filters for bands that stand at ``places``, where those of PyWavelets stand at ``own``."""
    dec, rec = (wavelet.dec_lo, wavelet.dec_hi), (wavelet.rec_lo, wavelet.rec_hi)
    reads: list[dict[int, float]] = []
    synthesis: list[Synthesis] = []
    for band in (0, 1):
        moved = places[band] - own[band]
        reads.append({moved + 1 - t: tap for t, tap in enumerate(dec[band]) if tap})
        writes: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for t, tap in enumerate(rec[band]):
            # Sample i is made of rec[t] times coefficient k, t = i - 2k - moved + L - 2.
            double = wavelet.rec_len - 2 - moved - t
            if tap:
                writes[double % 2][(double + 1) // 2] = tap
        start = min((*writes[0], *writes[1]))
        stop = max((*writes[0], *writes[1])) + 1
        even, odd = (tuple(side.get(j, 0.0) for j in range(start, stop)) for side in writes)
        synthesis.append(Synthesis(start, even, odd))
    start, stop = min((*reads[0], *reads[1])), max((*reads[0], *reads[1])) + 1
    low, high = (tuple(side.get(j, 0.0) for j in range(start, stop)) for side in reads)
    return Analysis(start, low, high), (synthesis[0], synthesis[1])


@dataclass(frozen=True, eq=False)
class Step:
    """One lifting step on lines of one length: ``target[i] += Σ factors[t] · other[i + offsets[t]]``.

    That holds for ``begin ≤ i < end``; for those listed in ``border`` the table has the numbers of the
    coefficients to take, -1 for none. For integers, the sum is ``rounded``.
    """

    target: int
    factors: Numbers
    offsets: NDArray[np.int64]
    begin: int
    end: int
    border: NDArray[np.int64]
    table: NDArray[np.int64]
    rounded: Rounding


@dataclass(frozen=True, eq=False)
class Steps:
    """One level of the LWT of lines of one length, step by step."""

    length: int
    counts: tuple[int, int]
    mode: str
    steps: tuple[Step, ...]
    scaling: tuple[float, float]

    @property
    def operations(self) -> float:
        """Multiplications and additions for each sample."""
        return sum(len(step.factors) for step in self.steps) / 2 + 1


@lru_cache(maxsize=1024)
def lwt_steps(length: int, wavelet: Wavelet, mode: str) -> Steps:
    """One level of the LWT as steps that look up their neighbours."""
    chain = lifting(wavelet)
    counts = (length + 1) // 2, length // 2
    low, high = (float(value) for value in chain.scaling)
    if length == 1 and mode != "zero":
        # The line goes on as a constant, of which the low-pass filter makes this.
        low = math.fsum(wavelet.dec_lo)
    steps = tuple(_step(step, chain.odd, counts, length, mode) for step in chain.steps)
    return Steps(length, counts, mode, steps, (low, high))


def _step(step: LiftingStep, odd: int, counts: tuple[int, int], length: int, mode: str) -> Step:
    target = int(step.is_predict)
    numbers = np.arange(counts[target])
    terms = list(step.filter.items())
    # How far the other band's coefficient lies, in places of the line and by number.
    distances = [(1 - 2 * target) * odd + 2 * exponent for exponent, _ in terms]
    offsets = [(target + distance) // 2 for distance in distances]
    found = [source_places(2 * numbers + target + distance, length, mode) for distance in distances]
    table = np.stack([np.where(places < 0, -1, places // 2) for places in found], axis=1)
    begin = min(max(0, -min(offsets)), counts[target])
    end = max(begin, min(counts[target], counts[1 - target] - max(offsets)))
    border = np.concatenate([numbers[:begin], numbers[end:]])
    values = [value for _, value in terms]
    return Step(
        target,
        tuple(float(value) for value in values),
        np.array(offsets, dtype=np.int64),
        begin,
        end,
        border.astype(np.int64),
        table[border].astype(np.int64),
        rounding(values),
    )
