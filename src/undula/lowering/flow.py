"""Flows: one level along one axis as an operator on two sequences side by side.

Two components flow in, ``a[m]`` and ``b[m]``: the even and the odd samples of a line, or on the way back the
low and the high band. Lifting steps change one by the other,

    a[m] += Σ factor · b[m + offset],    then    b[m] += Σ factor · a[m + offset],    …

or filters make two new ones of both. Two components flow out, scaled. Forward and back, DWT and LWT, lifting
and filters are all such flows, so a kernel that runs a flow runs every transform. A flow knows neither the
length of the line nor how it goes on beyond its ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from ..liftings import Lifting, lifting
from ..wavelets import Wavelet
from .line import PRECISE, dwt_line, lwt_line
from .rounding import Rounding, rounding

__all__ = ["Entry", "Exit", "Flow", "FlowStep", "Tap", "flow"]

MOST_STEPS = 12  # Lifting beyond this is one long chain of waits; filters then do more work at once.


class Tap(NamedTuple):
    """``factor · component[m + offset]``."""

    component: int
    offset: int
    factor: float


class FlowStep(NamedTuple):
    """``target[m] += Σ taps``, all of the other component; of integers, the sum is rounded."""

    target: int
    taps: tuple[Tap, ...]
    rounded: Rounding | None = None


class Entry(NamedTuple):
    """Component c flows in as ``sequence[m + shift]``."""

    sequence: int
    shift: int


class Exit(NamedTuple):
    """Sequence t flows out: ``sequence[k] = scale · component[k + shift]``."""

    component: int
    shift: int
    scale: float


@dataclass(frozen=True)
class Flow:
    """The operator.

    Parameters
    ----------
    entries : (Entry, Entry)
        Where the two components come from.
    steps : tuple of FlowStep
        Lifting; empty where there are filters.
    filters : tuple of two tuples of Tap
        What the two components become at the end; empty where there are steps.
    exits : (Exit, Exit)
        Where the two results go.

    Examples
    --------
    >>> haar = flow(Wavelet("haar"), "symmetric", back=False, method="filters")
    >>> [[(t.component, t.offset, round(t.factor, 3)) for t in taps] for taps in haar.filters]
    [[(0, 0, 0.707), (1, 0, 0.707)], [(0, 0, 1.0), (1, 0, -1.0)]]
    >>> [round(way.scale, 3) for way in haar.exits]
    [1.0, 0.707]
    """

    entries: tuple[Entry, Entry]
    steps: tuple[FlowStep, ...]
    filters: tuple[tuple[Tap, ...], ...]
    exits: tuple[Exit, Exit]

    @property
    def method(self) -> str:
        """``"lifting"`` or ``"filters"``."""
        return "filters" if self.filters else "lifting"

    @cached_property
    def reach(self) -> tuple[int, int]:
        """How many pairs before and after its own the results at m depend on."""
        if self.filters:
            offsets = [tap.offset for taps in self.filters for tap in taps]
            return max(0, -min(offsets)), max(0, *offsets)
        before, after = [0, 0], [0, 0]
        for step in self.steps:
            other = 1 - step.target
            for tap in step.taps:
                before[step.target] = max(before[step.target], before[other] - tap.offset)
                after[step.target] = max(after[step.target], after[other] + tap.offset)
        return max(before), max(after)

    @property
    def first(self) -> int:
        """The first m whose results are wanted."""
        return min(way.shift for way in self.exits)

    def pairs(self, counts: tuple[int, int]) -> int:
        """From the first m on, how many there are for results of so many numbers."""
        return max(count + way.shift for count, way in zip(counts, self.exits, strict=True)) - self.first

    @property
    def operations(self) -> int:
        """Multiply-adds for a pair of samples, without the scaling."""
        lists = self.filters or [step.taps for step in self.steps]
        return sum(len(taps) for taps in lists)


def flow(
    wavelet: Wavelet,
    mode: str,
    back: bool,
    method: str = "auto",
    lifted: bool = False,
    single: bool = True,
    whole: bool = False,
) -> Flow:
    """The flow of a level.

    Parameters
    ----------
    wavelet : Wavelet
    mode : str
        Of the DWT; it matters for ``periodization`` alone, whose bands begin elsewhere.
    back : bool
        From bands to samples.
    method : "auto", "lifting" or "filters"
        Which of the two; ``auto`` lifts where the steps are few and precise enough.
    lifted : bool
        The LWT, whose bands stand at the even and the odd places.
    single : bool
        float32 is precise enough.
    whole : bool
        Integers, which are lifted by rounded steps and not scaled.
    """
    if whole:
        return _rounded(wavelet, back)
    return _flow(wavelet, mode == "periodization", back, method, lifted, single)


@lru_cache(maxsize=1024)
def _rounded(wavelet: Wavelet, back: bool) -> Flow:
    """The flow of integers, on the line."""
    made = _lifted(lifting(wavelet).on_line(), 0, whole=True)
    exits = tuple(way._replace(scale=1.0) for way in made.exits)
    made = replace(made, exits=(exits[0], exits[1]))
    if not back:
        return made
    undone = _undone(made)
    steps = tuple(
        step._replace(rounded=first.rounded.undone())
        for step, first in zip(undone.steps, reversed(made.steps), strict=True)
        if first.rounded is not None
    )
    return replace(undone, steps=steps)


@lru_cache(maxsize=1024)
def _flow(wavelet: Wavelet, periodized: bool, back: bool, method: str, lifted: bool, single: bool) -> Flow:
    lead = wavelet.dec_len // 2 - 1 if periodized else 0
    if method == "auto":
        method = "filters"
        if wavelet.dec_len <= 2 * MOST_STEPS and wavelet.reconstruction_error <= 1e-6:
            chain = lifting(wavelet)
            if len(chain.steps) <= MOST_STEPS and (single or chain.residual <= PRECISE):
                method = "lifting"
    if method == "lifting":
        chain = lifting(wavelet)
        made = _lifted(chain.on_line() if lifted else chain, lead)
        return _undone(made) if back else made
    # (Any length will do: filters do not depend on it.)
    line = lwt_line(2, wavelet, "periodic", True) if lifted else None
    if line is None:
        line = dwt_line(2, wavelet, "periodization" if periodized else "symmetric", True)
    if not back:
        analysis = line.analysis
        taps = [
            [
                Tap((analysis.start + j) % 2, (analysis.start + j) // 2, band[j])
                for j in analysis.order
                if band[j]
            ]
            for band in (analysis.low, analysis.high)
        ]
        scale = 1.0
        if analysis.cancels:
            # Products with small integers are exact, fused with a sum or not, so a constant has no details.
            scale = min(abs(tap.factor) for tap in taps[1])
            taps[1] = [tap._replace(factor=float(round(tap.factor / scale))) for tap in taps[1]]
        middle = _middle(taps)
        moved = tuple(tuple(tap._replace(offset=tap.offset - middle) for tap in some) for some in taps)
        return Flow((Entry(0, 0), Entry(1, 0)), (), moved, (Exit(0, middle, 1.0), Exit(1, middle, scale)))
    taps = [[], []]
    for band in (1, 0):  # (details first, which are small)
        side = line.synthesis[band]
        for phase, factors in enumerate((side.even, side.odd)):
            taps[phase] += [Tap(band, side.start + j, factors[j]) for j in side.order if factors[j]]
    middle = _middle(taps)
    moved = tuple(tuple(tap._replace(offset=tap.offset - middle) for tap in some) for some in taps)
    return Flow((Entry(0, middle), Entry(1, middle)), (), moved, (Exit(0, 0, 1.0), Exit(1, 0, 1.0)))


def _middle(taps: list[list[Tap]]) -> int:
    """An even offset near the middle of all: results are numbered by what they are made of, around them."""
    offsets = [tap.offset for some in taps for tap in some]
    return 2 * round((min(offsets) + max(offsets)) / 4)


def _lifted(chain: Lifting, lead: int, whole: bool = False) -> Flow:
    """Steps on the even and the odd samples, wherever on the line the lifting begins."""
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
        rounded = rounding([value for _, value in step.filter.items()]) if whole else None
        steps.append(FlowStep(component[target], tuple(taps), rounded))
    exits = []
    for row in chain.after.rows:
        ((source, (exponent, scale)),) = [(j, item) for j, entry in enumerate(row) for item in entry.items()]
        exits.append(Exit(component[source], exponent + shift[source], float(scale)))
    return Flow((Entry(0, 0), Entry(1, 0)), tuple(steps), (), (exits[0], exits[1]))


def _undone(made: Flow) -> Flow:
    """The flow back: steps in reverse order, and their scaling at the end again."""
    entries, scales = [Entry(0, 0)] * 2, [1.0, 1.0]
    for band, (component, shift, scale) in enumerate(made.exits):
        entries[component] = Entry(band, -shift)
        scales[component] = 1 / scale
    steps = []
    for target, taps, _ in reversed(made.steps):
        factor = -scales[1 - target] / scales[target]
        steps.append(FlowStep(target, tuple(tap._replace(factor=factor * tap.factor) for tap in taps)))
    return Flow((entries[0], entries[1]), tuple(steps), (), (Exit(0, 0, scales[0]), Exit(1, 0, scales[1])))
