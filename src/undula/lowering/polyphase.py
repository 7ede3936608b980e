"""The numbers of one level along one axis, derived from a wavelet.

They come in two forms:

- *filters along the line*: ``low[k] = Σ taps[j] · x[2k + start + j]``, see :class:`AnalysisFilters`;
- *polyphase form*: two components go in, ``a[m]`` and ``b[m]`` (even and odd samples, or low and high band),
  lifting steps change one by the other, or filters make two new ones of both, and two components come out.
  Engines that run this form run every transform. It knows neither the length of the line nor its borders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..liftings import Lifting, lifting
from ..wavelets import Wavelet
from .rounding import Rounding, rounding

__all__ = [
    "DIRECT",
    "AnalysisFilters",
    "Entry",
    "Exit",
    "Polyphase",
    "Step",
    "StepTable",
    "SynthesisFilters",
    "Tap",
    "band_places",
    "filters_of",
    "most_precise_order",
    "periodization_lead",
    "polyphase_of",
    "shift_of_bands",
]

MAX_CANCELLING_TAPS = 4

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class AnalysisFilters:
    """Filters from samples to bands: coefficient k of both bands reads the samples ``2k + start …``."""

    start: int
    low: Numbers
    high: Numbers

    @cached_property
    def cancels(self) -> bool:
        """Whether the high-pass taps are a multiple of a first, second or third difference.

        Then the details of a constant are exactly 0, provided that products are rounded before they are
        added, which fused multiply-adds do not do.

        Examples
        --------
        >>> [filters_of(Wavelet(name), (0, 0))[0].cancels for name in ("bior2.4", "db2")]
        [True, False]
        """
        taps = np.array([tap for tap in self.high if tap])
        binomial = [(-1) ** k * math.comb(taps.size - 1, k) for k in range(taps.size)]
        return taps.size <= MAX_CANCELLING_TAPS and np.allclose(taps / taps[0], binomial, rtol=1e-12)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The order in which taps are added; those that cancel stay together."""
        begins = tuple(range(len(self.low)))
        if self.cancels:
            places = np.flatnonzero(self.high)
            begins = tuple(k for k in begins if not places[0] < k <= places[-1])
        return most_precise_order((self.low, self.high), begins)


@dataclass(frozen=True)
class SynthesisFilters:
    """Filters from one band to samples: the samples 2m and 2m + 1 read its coefficients ``m + start …``."""

    start: int
    even: Numbers
    odd: Numbers

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The order in which taps are added."""
        return most_precise_order((self.even, self.odd), tuple(range(len(self.even))))


@lru_cache(maxsize=1024)
def most_precise_order(filters: tuple[Numbers, Numbers], begins: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of taps with the least rounding error, which begins at one of ``begins``.

    It runs to the last tap and continues with the first. The rounding error of an addition is proportional to
    the sum so far. Where taps are large in the middle, beginning there keeps sums small until the end; from
    the first tap on, they would be large for half of the way.
    """
    count = len(filters[0])
    orders = (np.array(begins)[:, np.newaxis] + np.arange(count)) % count
    losses = np.sum(np.cumsum(np.array(filters)[:, orders], axis=2) ** 2, axis=(0, 2))
    best = 0
    for k, loss in enumerate(losses):
        if loss < losses[best] * (1 - 1e-9):  # the first of equal ones
            best = k
    return tuple(orders[best].tolist())


@lru_cache(maxsize=512)
def filters_of(
    wavelet: Wavelet, moved: tuple[int, int]
) -> tuple[AnalysisFilters, tuple[SynthesisFilters, SynthesisFilters]]:
    """Return the filters of bands that are ``moved`` places further on than those of PyWavelets."""
    dec, rec = (wavelet.dec_lo, wavelet.dec_hi), (wavelet.rec_lo, wavelet.rec_hi)
    reads: list[dict[int, float]] = []
    synthesis: list[SynthesisFilters] = []
    for band in (0, 1):
        reads.append({moved[band] + 1 - t: tap for t, tap in enumerate(dec[band]) if tap})
        writes: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for t, tap in enumerate(rec[band]):
            # Sample i reads coefficient k with the tap rec[t], t = i - 2k - moved + L - 2.
            double = wavelet.rec_len - 2 - moved[band] - t
            if tap:
                writes[double % 2][(double + 1) // 2] = tap
        start = min((*writes[0], *writes[1]))
        stop = max((*writes[0], *writes[1])) + 1
        even, odd = (tuple(side.get(j, 0.0) for j in range(start, stop)) for side in writes)
        synthesis.append(SynthesisFilters(start, even, odd))
    start, stop = min((*reads[0], *reads[1])), max((*reads[0], *reads[1])) + 1
    low, high = (tuple(side.get(j, 0.0) for j in range(start, stop)) for side in reads)
    return AnalysisFilters(start, low, high), (synthesis[0], synthesis[1])


# --- the polyphase form ---------------------------------------------------------------------------


class Tap(NamedTuple):
    """``factor · component[m + offset]``."""

    component: int
    offset: int
    factor: float


class Step(NamedTuple):
    """A lifting step: ``target[m] += Σ taps``, all of the other component; for integers, a rounded sum."""

    target: int
    taps: tuple[Tap, ...]
    rounded: Rounding


@dataclass(frozen=True, eq=False)
class StepTable:
    """A lifting step that extends the band it reads, on lines of one length.

    Coefficients ``begin ≤ i < end`` read the other band at ``i + offset``. For those in ``border`` the table
    has the numbers of the coefficients to read, -1 for none.
    """

    step: Step
    begin: int
    end: int
    border: NDArray[np.int64]
    table: NDArray[np.int64]

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The offsets of the taps."""
        return np.array([tap.offset for tap in self.step.taps], np.int64)


class Entry(NamedTuple):
    """The origin of a component: ``component[m] = sequence[m + shift]``."""

    sequence: int
    shift: int


class Exit(NamedTuple):
    """The destination of a component: ``sequence[k] = scale · component[k + shift]``."""

    component: int
    shift: int
    scale: float


class Polyphase(NamedTuple):
    """The polyphase form of an operator: either lifting steps or filters between entries and exits."""

    entries: tuple[Entry, Entry]
    steps: tuple[Step, ...]
    filters: tuple[tuple[Tap, ...], ...]
    exits: tuple[Exit, Exit]


DIRECT = (Entry(0, 0), Entry(1, 0))


def _lifting_polyphase(chain: Lifting, lead: int, rounded: bool) -> Polyphase:
    """Return the steps of a lifting, wherever on the line it begins, on even and odd samples."""
    places = [place + lead for place in chain.places]
    component, shift = [place % 2 for place in places], [place // 2 for place in places]
    steps = []
    for step in chain.steps:
        target = int(step.is_predict)
        moved = shift[1 - target] - shift[target]
        taps = [
            Tap(component[1 - target], exponent + moved, float(value))
            for exponent, value in step.filter.items()
        ]
        integers = rounding([value for _, value in step.filter.items()])
        steps.append(Step(component[target], tuple(taps), integers))
    exits = []
    for row in chain.after.rows:
        ((source, (exponent, scale)),) = [(j, item) for j, entry in enumerate(row) for item in entry.items()]
        exits.append(Exit(component[source], exponent + shift[source], 1.0 if rounded else float(scale)))
    return Polyphase(DIRECT, tuple(steps), (), (exits[0], exits[1]))


def _undone(form: Polyphase) -> Polyphase:
    """Return the inverse of lifting: the steps in reverse order, with the scaling at the end again."""
    entries, scales = [Entry(0, 0)] * 2, [1.0, 1.0]
    for band, (component, shift, scale) in enumerate(form.exits):
        entries[component] = Entry(band, -shift)
        scales[component] = 1 / scale
    steps = []
    for target, taps, rounded in reversed(form.steps):
        undone = [tap._replace(factor=-tap.factor * scales[1 - target] / scales[target]) for tap in taps]
        steps.append(Step(target, tuple(undone), rounded.undone()))
    exits = Exit(0, 0, scales[0]), Exit(1, 0, scales[1])
    return Polyphase((entries[0], entries[1]), tuple(steps), (), exits)


def _analysis_polyphase(filters: AnalysisFilters) -> Polyphase:
    taps = [
        [Tap((filters.start + j) % 2, (filters.start + j) // 2, band[j]) for j in filters.order if band[j]]
        for band in (filters.low, filters.high)
    ]
    scale = 1.0
    if filters.cancels:
        # Products with small integers are exact, fused with a sum or not, so a constant has no details.
        scale = min(abs(tap.factor) for tap in taps[1])
        taps[1] = [tap._replace(factor=float(round(tap.factor / scale))) for tap in taps[1]]
    middle, centred = _centred(taps)
    return Polyphase(DIRECT, (), centred, (Exit(0, middle, 1.0), Exit(1, middle, scale)))


def _synthesis_polyphase(bands: Sequence[SynthesisFilters]) -> Polyphase:
    taps: list[list[Tap]] = [[], []]
    for band in (1, 0):  # Details come first: they are small.
        side = bands[band]
        for phase, factors in enumerate((side.even, side.odd)):
            taps[phase] += [Tap(band, side.start + j, factors[j]) for j in side.order if factors[j]]
    middle, centred = _centred(taps)
    return Polyphase((Entry(0, middle), Entry(1, middle)), (), centred, (Exit(0, 0, 1.0), Exit(1, 0, 1.0)))


def _centred(taps: Sequence[Sequence[Tap]]) -> tuple[int, tuple[tuple[Tap, ...], ...]]:
    """Return an even offset near the middle of all taps, and the taps relative to it."""
    offsets = [tap.offset for part in taps for tap in part]
    middle = 2 * round((min(offsets) + max(offsets)) / 4)
    return middle, tuple(tuple(tap._replace(offset=tap.offset - middle) for tap in part) for part in taps)


@lru_cache(maxsize=1024)
def polyphase_of(
    wavelet: Wavelet, family: str, periodized: bool, back: bool, method: str, rounded: bool
) -> Polyphase:
    """Return the polyphase form of an operator; see :class:`~undula.lowering.axis.AxisOp`."""
    lwt = family == "lwt"
    lead = periodization_lead(wavelet) if periodized else 0
    if method == "filters":
        analysis, synthesis = filters_of(wavelet, shift_of_bands(wavelet, lwt, lead))
        return _synthesis_polyphase(synthesis) if back else _analysis_polyphase(analysis)
    chain = lifting(wavelet)
    form = _lifting_polyphase(chain.on_line() if lwt else chain, lead, rounded)
    return _undone(form) if back else form


def periodization_lead(wavelet: Wavelet) -> int:
    """Return where the bands begin in mode periodization."""
    return wavelet.dec_len // 2 - 1


def shift_of_bands(wavelet: Wavelet, lwt: bool, lead: int) -> tuple[int, int]:
    """Return how far the bands are from those of PyWavelets, in places of the line."""
    if not lwt:
        return lead, lead
    low, high = band_places(lifting(wavelet))
    return -low, 1 - high


def band_places(chain: Lifting) -> tuple[int, int]:
    """Return where the two bands of the DWT begin on the line, by the numbering of the lifting."""
    low, high = (exponent for row in chain.after.rows for entry in row for exponent, _ in entry.items())
    return chain.places[0] + 2 * low, chain.places[1] + 2 * high
