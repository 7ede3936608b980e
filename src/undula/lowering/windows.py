"""Windows: parts of a transform, computed from parts of its input, with the numbers of the whole.

Some results of a transform depend on some of its samples. Along each axis these samples are cut out of the
line, and transformed as a line of their own, a :class:`LineWindow`, in the same boundary mode. Its results
are those of the whole line, except near the cuts, where they are dropped. Cuts are at multiples of
``2**levels`` samples, so that coefficients keep their places. A window of a periodic line may consist of its
two ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from ..wavelets import Wavelet
from .axis import AxisOp
from .borders import BORDERS, LWT_BORDERS

__all__ = [
    "Interval",
    "LineTransform",
    "LineWindow",
    "aligned_boundaries",
    "margin_window",
    "merged_boundaries",
]

Interval = tuple[int, int]

# What lies beyond the end of a line is made of samples at most this many further inside than it is outside.
RIM = 2


@dataclass(frozen=True)
class LineWindow:
    """Parts of a line that are transformed as a line of their own.

    Parameters
    ----------
    length : int
        Samples of the window.
    segments : tuple of (int, int)
        The samples of the line that it consists of; all ends but that of the line are multiples of
        ``2**levels``, or differ from the end of the line by such a multiple.
    """

    length: int
    segments: tuple[Interval, ...]

    def band_segments(self, level: int, count: int) -> list[Interval]:
        """Return the coefficients of a band that the window has.

        Parameters
        ----------
        level : int
            Level of the band, 1 for the finest.
        count : int
            The number of coefficients that a line as long as the window has in the band.
        """
        *inner, (last, _) = ((start >> level, stop >> level) for start, stop in self.segments)
        rest = count - sum(stop - start for start, stop in inner)
        return [*inner, (last, last + rest)]

    def place(self, level: int, start: int) -> int:
        """Return where a coefficient of the line, or a sample for level 0, is in the window."""
        before = 0
        for first, stop in self.segments[:-1]:
            if start < stop >> level:
                break
            before += (stop - first) >> level
        else:
            first = self.segments[-1][0]
        return before + start - (first >> level)


@dataclass(frozen=True)
class LineTransform:
    """Levels of a transform along one axis, of which windows are known.

    Parameters
    ----------
    wavelet : Wavelet
    mode : str
    lifted : bool
        Whether this is the LWT, or the DWT.
    lengths : tuple of int
        Samples of the line at each level, finest first, and the low coefficients of the coarsest level.
    """

    wavelet: Wavelet
    mode: str
    lifted: bool
    lengths: tuple[int, ...]

    @property
    def levels(self) -> int:
        """The number of levels."""
        return len(self.lengths) - 1

    def window(self, start: int, stop: int) -> LineWindow:
        """Return the window from which analysis computes all coefficients of samples ``start … stop - 1``.

        Both are multiples of ``2**levels``, or the end of the line. Coefficients of a level are those from
        ``start / 2**level`` on; at the end of the line, also those beyond.
        """
        needed: list[Interval] = []
        for level in range(self.levels, 0, -1):
            needed = _merged([*needed, self.results(level, False, start, stop)])
            needed = self._sources(level, needed, False)
        return self._cut(_merged([*needed, (start, stop)]))

    def inverse_window(self, start: int, stop: int) -> LineWindow:
        """Return the window from which synthesis computes samples ``start … stop - 1``."""
        needed = [(start, stop)]
        covered = list(needed)
        for level in range(1, self.levels + 1):
            needed = self._sources(level, needed, True)
            covered += [(first << level, min(last << level, self.lengths[0])) for first, last in needed]
            # The last coefficients of a band may lie beyond the end of the line.
            if any(last << level > self.lengths[0] for _, last in needed):
                covered.append((self.lengths[0] - 1, self.lengths[0]))
        return self._cut([part for part in _merged(covered) if part[0] < part[1]])

    def results(self, level: int, high: bool, start: int, stop: int) -> Interval:
        """Return the low or high coefficients of a level that belong to samples ``start … stop - 1``."""
        if stop < self.lengths[0]:
            return start >> level, stop >> level
        count = self.lengths[level]
        return start >> level, self.lengths[level - 1] - count if high and self.lifted else count

    def _cut(self, needed: Iterable[Interval]) -> LineWindow:
        return _cut(needed, self.lengths[0], 1 << self.levels)

    def _sources(self, level: int, results: Iterable[Interval], back: bool) -> list[Interval]:
        """Return the samples that coefficients of a level are made of, or the other way round."""
        length = shortest = self.lengths[level if back else level - 1]
        if back and self.lifted:  # There may be one high coefficient less than there are low ones.
            shortest = self.lengths[level - 1] - length
        sources: list[Interval] = []
        for start, stop in results:
            if stop <= start:
                continue
            first, last = self._reads(start, stop, back)
            before, after = max(0, -first), max(0, last - shortest)
            sources.append((max(first, 0), min(last, length)))
            # Lifting steps that each extend the band they read go back and forth between its end and inside.
            span = (stop - start) // 2 if back else 2 * (stop - start)
            width = RIM + (last - first - span if self.lifted else 0)
            if before:
                rim = min(length, before + width)
                sources.append((length - rim, length) if self._wraps(back) else (0, rim))
            if after:
                rim = min(length, after + width)
                sources.append((0, rim) if self._wraps(back) else (length - rim, length))
        return _merged(sources)

    def _wraps(self, back: bool) -> bool:
        if self.lifted:
            return LWT_BORDERS[self.mode][0].wraps
        return BORDERS[self.mode].wraps and (not back or self.mode == "periodization")

    def _reads(self, start: int, stop: int, back: bool) -> Interval:
        """Return the places that results depend on, with those beyond the ends."""
        return _reads(self.wavelet, self.mode, self.lifted, start, stop, back)


@lru_cache(maxsize=4096)
def _reads(wavelet: Wavelet, mode: str, lifted: bool, start: int, stop: int, back: bool) -> Interval:
    op = AxisOp(wavelet, mode, 0, "lwt" if lifted else "dwt", back)
    if not lifted:
        ranges = op.window(start, stop).ranges
        return min(first for first, _ in ranges), max(last for _, last in ranges)
    before, after = replace(op, method="lifting").reach
    if back:
        return start // 2 - before, (stop - 1) // 2 + after + 1
    return 2 * (start - before), 2 * (stop + after)


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return intervals in their order, joined where they overlap or touch.

    Examples
    --------
    >>> _merged([(4, 6), (0, 2), (1, 3), (6, 7)])
    [(0, 3), (4, 7)]
    """
    result: list[Interval] = []
    for start, stop in sorted(intervals):
        if result and start <= result[-1][1]:
            result[-1] = result[-1][0], max(stop, result[-1][1])
        else:
            result.append((start, stop))
    return result


def _cut(needed: Iterable[Interval], length: int, unit: int) -> LineWindow:
    """Return the window of segments that contain all needed samples of a line."""
    segments = _merged(
        (start - start % unit, length if stop == length else min(length, -(-stop // unit) * unit))
        for start, stop in needed
    )
    if len(segments) > 2:  # Lines are short then.
        segments = [(0, length)]
    if len(segments) == 1:
        ((start, stop),) = segments
        # Windows differ from the line by a multiple of the unit, so that at all levels both are even or
        # both are odd, which decides how some lines are lifted.
        segments = [(start, min(length, stop + (length - stop) % unit))]
    return LineWindow(sum(stop - start for start, stop in segments), tuple(segments))


def margin_window(length: int, start: int, stop: int, margin: int, unit: int, wraps: bool) -> LineWindow:
    """Return the window of samples ``start … stop - 1`` of a line, and others up to ``margin`` around them.

    Parameters
    ----------
    length : int
        Samples of the line.
    start, stop, margin : int
    unit : int
        Cuts are at multiples of it.
    wraps : bool
        Whether the line goes on at its other end.

    Examples
    --------
    >>> margin_window(1000, 96, 192, 10, 8, False).segments
    ((80, 208),)
    >>> margin_window(1000, 0, 96, 10, 8, True).segments
    ((0, 112), (984, 1000))
    """
    first, last = start - margin, stop + margin
    needed = [(max(0, first), min(last, length))]
    # What lies beyond an end is made of samples that may be as far inside.
    if first < 0:
        needed.append((max(0, length + first), length) if wraps else (0, min(length, RIM - first)))
    if last > length:
        needed.append((0, min(length, last - length)) if wraps else (max(0, 2 * length - last - RIM), length))
    return _cut(needed, length, unit)


def aligned_boundaries(boundaries: Sequence[int], unit: int) -> list[int]:
    """Return boundaries between parts of a line, moved to multiples of a unit; the ends stay.

    No part is shorter than the unit, unless the line is.

    Examples
    --------
    >>> aligned_boundaries([0, 10, 11, 20, 30], 4)
    [0, 12, 20, 30]
    """
    first, *inner, last = boundaries
    moved = {(2 * place + unit) // (2 * unit) * unit for place in inner}
    return [first, *sorted(place for place in moved if first < place <= last - unit), last]


def merged_boundaries(boundaries: Sequence[int], length: int) -> list[int]:
    """Return boundaries without those that would make parts much shorter than ``length``.

    Examples
    --------
    >>> merged_boundaries([0, 5, 10, 15, 20, 23], 10)
    [0, 10, 23]
    """
    kept = [boundaries[0]]
    for place, after in pairwise(boundaries[1:]):
        if place - kept[-1] + (after - place) // 2 >= length and boundaries[-1] - place >= length // 2:
            kept.append(place)
    return [*kept, boundaries[-1]]
