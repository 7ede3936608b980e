"""AxisOp: one level of a transform along one axis, as a linear operator.

Analysis turns the samples of a line into two bands, synthesis two bands into samples. An operator is a small
value (wavelet, mode, length, direction, method) that can be inverted, transposed and cut into windows. Its
filter taps and lifting steps are derived from that; see :mod:`~undula.lowering.polyphase`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from ..liftings import lifting
from ..wavelets import Wavelet
from .borders import (
    BORDERS,
    LWT_BORDERS,
    Border,
    band_lengths,
    combinations,
    extend,
    source_places,
    undecimated_length,
)
from .polyphase import (
    DIRECT,
    AnalysisFilters,
    Entry,
    Exit,
    Polyphase,
    Step,
    StepTable,
    SynthesisFilters,
    Tap,
    band_places,
    filters_of,
    most_precise_order,
    periodization_lead,
    polyphase_of,
    shift_of_bands,
)

__all__ = ["AxisOp", "Window"]

Array = NDArray[Any]
DilatedTaps = tuple[tuple[int, float], ...]  # pairs of an offset and a factor


@dataclass(frozen=True)
class AxisOp:
    """One level of a transform along one axis.

    Parameters
    ----------
    wavelet : Wavelet
    mode : str
        Boundary mode of the family.
    length : int
        Samples of the line; 0 for an operator of any length, which has no counts.
    family : {"dwt", "lwt", "swt"}
        The DWT; the LWT, which has as many coefficients as samples; or the undecimated DWT.
    back : bool
        Whether this is synthesis, from bands to samples, or analysis.
    method : {"filters", "lifting", "steps"}
        Filters, or lifting steps, on a line that is extended once; or, for an LWT, lifting steps that each
        extend the band they read.
    rounded : bool
        Whether lifting steps add rounded sums, and nothing is scaled: for integers.
    transposed : bool
        Whether this is the adjoint of the operator that the other parameters describe.
    dilation : int
        Distance of the taps of an undecimated operator.
    gain : float
        Factor of the taps of an undecimated operator; synthesis divides by it.
    causal : bool
        Whether coefficients of an undecimated operator on a period read samples up to their own place only.
        By default, they read as many before as after it.

    Examples
    --------
    >>> op = AxisOp(Wavelet("haar"), "symmetric", 6)
    >>> op.counts, op.operations
    ((3, 3), 2.0)
    >>> np.round(op.inverse()(*op(np.arange(6.0)))[0], 12)
    array([0., 1., 2., 3., 4., 5.])
    """

    wavelet: Wavelet
    mode: str
    length: int
    family: str = "dwt"
    back: bool = False
    method: str = "filters"
    rounded: bool = False
    transposed: bool = False
    dilation: int = 1
    gain: float = 1.0
    causal: bool = False

    @cached_property
    def _hash(self) -> int:
        kind = self.family, self.back, self.transposed, self.method, self.rounded, self.dilation
        return hash((self.wavelet, self.mode, self.length, *kind))

    def __hash__(self) -> int:
        """Return the hash, which is computed once: encoded operators are looked up by it."""
        return self._hash

    # --- related operators ------------------------------------------------------------------------

    def inverse(self) -> AxisOp:
        """Return the operator in the other direction; that of an adjoint is the adjoint of the inverse."""
        return replace(self, back=not self.back)

    def adjoint(self) -> AxisOp:
        """Return the transposed operator; that of lifting on a line that is extended once is by filters."""
        method = "steps" if self.method == "steps" else "filters"
        return replace(self, transposed=not self.transposed, method=method)

    def undecimated(self, dilation: int = 1) -> AxisOp:
        """Return the operator that keeps the coefficients at all places, with taps ``dilation`` apart.

        Its inverse takes the mean of what even and odd coefficients give. In mode ``periodization``, a line
        of any length is one period.
        """
        return replace(self, family="swt", method="filters", rounded=False, dilation=dilation)

    def filtered(self) -> AxisOp:
        """Return the same operator by filters."""
        return replace(self, method="filters")

    @property
    def any_length(self) -> AxisOp:
        """The operator without its length, and with a mode that stands for all that have the same borders."""
        mode = self.mode
        if self.back and self.family != "lwt" and not self.periodized:
            mode = "zero"
        # The low band of a single sample is scaled differently by steps.
        single = self.method == "steps" and self.length == 1
        return replace(self, length=int(single), mode=mode)

    # --- the line and its bands -------------------------------------------------------------------

    @property
    def periodized(self) -> bool:
        """Whether a line of even length is one period."""
        return self.mode == "periodization"

    @property
    def counts(self) -> tuple[int, int]:
        """The number of low and of high coefficients."""
        if self.family == "swt":
            count = undecimated_length(self.length, self.wavelet.dec_len, self.mode, self.dilation)
            return count, count
        return band_lengths(self.length, self.wavelet.dec_len, self.mode, self.family == "lwt")

    @cached_property
    def places(self) -> tuple[int, int]:
        """Where on the line the first coefficients of the two bands are, by the numbering of the lifting."""
        if self.family == "lwt":
            return 0, 1
        low, high = band_places(lifting(self.wavelet))
        lead = periodization_lead(self.wavelet) if self.periodized else 0
        return low + lead, high + lead

    @property
    def sample_mode(self) -> str:
        """The mode of the DWT that extends the samples."""
        if self.family == "lwt" and self.mode == "symmetric":
            return "reflect"
        return "periodic" if self.family == "swt" and self.periodized else self.mode

    @property
    def borders(self) -> tuple[Border, ...]:
        """The borders of what is read: of the samples, or of the low and of the high band."""
        if self.method == "steps":  # Each step has its own; splitting a line needs none.
            return (BORDERS["zero"],) * (2 if self.back else 1)
        if not self.back:
            return (BORDERS[self.sample_mode],)
        if self.family == "lwt" and self.mode == "symmetric":
            return LWT_BORDERS["symmetric"]
        # A periodic LWT that is extended once has an even length: both bands have the same period.
        return (BORDERS["periodic" if self.family == "lwt" or self.periodized else "zero"],) * 2

    def beyond(self, places: NDArray[np.int_]) -> tuple[NDArray[np.int_], NDArray[np.float64]]:
        """Return indices and factors of the samples that make up the line at some places."""
        return combinations(self.length, places, self.sample_mode)

    def coefficients_beyond(self, band: int, numbers: NDArray[np.int_]) -> NDArray[np.int_]:
        """Return the coefficients that stand for those beyond the ends of a band, -1 for zero."""
        border = (self if self.back else replace(self, back=True)).borders[band]
        return border.sources(numbers, self.length if border.folded else self.counts[band])

    # --- numbers ----------------------------------------------------------------------------------

    @cached_property
    def _moved(self) -> tuple[int, int]:
        if self.causal and self.periodized:
            return -1, -1
        lead = periodization_lead(self.wavelet) if self.periodized else 0
        return shift_of_bands(self.wavelet, self.family == "lwt", lead)

    @property
    def analysis(self) -> AnalysisFilters:
        """The filters from samples to bands."""
        return filters_of(self.wavelet, self._moved)[0]

    @property
    def synthesis(self) -> tuple[SynthesisFilters, SynthesisFilters]:
        """The filters from the low and from the high band to samples."""
        return filters_of(self.wavelet, self._moved)[1]

    @cached_property
    def polyphase(self) -> Polyphase:
        """The polyphase form; that of method ``"steps"`` splits or merges, and scales, without its steps."""
        form = polyphase_of(self.wavelet, self.family, self.periodized, self.back, self.method, self.rounded)
        if self.method != "steps":
            return form
        copies = (Tap(0, 0, 1.0),), (Tap(1, 0, 1.0),)
        low, high = (1.0, 1.0) if self.rounded else self.scaling
        scales = (1 / low, 1 / high) if self.back else (low, high)
        return Polyphase(DIRECT, (), copies, (Exit(0, 0, scales[0]), Exit(1, 0, scales[1])))

    @property
    def entries(self) -> tuple[Entry, Entry]:
        """Where the two components come from."""
        return self.polyphase.entries

    @property
    def filters(self) -> tuple[tuple[Tap, ...], ...]:
        """The taps of both components at the end; empty for lifting."""
        return self.polyphase.filters

    @property
    def exits(self) -> tuple[Exit, Exit]:
        """Where the two results go."""
        return self.polyphase.exits

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The lifting steps; empty for filters."""
        if self.method != "steps":
            return self.polyphase.steps
        return polyphase_of(self.wavelet, self.family, False, self.back, self.method, True).steps

    @property
    def scaling(self) -> tuple[float, float]:
        """The factors of the bands after lifting steps forward."""
        low, high = (float(value) for value in lifting(self.wavelet).scaling)
        if self.family == "lwt" and self.length == 1 and self.mode != "zero":
            # The line is extended as a constant, and this is what the low-pass filter makes of it.
            low = math.fsum(self.wavelet.dec_lo)
        return low, high

    @cached_property
    def step_tables(self) -> tuple[StepTable, ...]:
        """The steps of an LWT, with the neighbours at the ends of its bands."""
        return tuple(self._step_table(step) for step in self.steps)

    def _step_table(self, step: Step) -> StepTable:
        counts, target = self.counts, step.target
        numbers, offsets = np.arange(counts[target]), [tap.offset for tap in step.taps]
        begin = min(max(0, -min(offsets)), counts[target])
        end = max(begin, min(counts[target], counts[1 - target] - max(offsets)))
        border = np.concatenate([numbers[:begin], numbers[end:]])
        sources = [
            source_places(2 * (border + offset) + 1 - target, self.length, self.mode) for offset in offsets
        ]
        table = np.stack([np.where(places < 0, -1, places // 2) for places in sources], axis=1)
        return StepTable(step, begin, end, border.astype(np.int64), table.astype(np.int64))

    # --- cost and reach ---------------------------------------------------------------------------

    @property
    def operations(self) -> float:
        """Multiplications and additions for each sample."""
        if self.family == "swt":
            return float(sum(map(len, self.dilated_taps)))
        steps = sum(factor != 0 for step in self.steps for _, _, factor in step.taps)
        return steps / 2 + 1 if self.steps else sum(len(taps) for taps in self.filters) / 2

    @cached_property
    def reach(self) -> tuple[int, int]:
        """How many pairs before and after its own a result of the polyphase form depends on."""
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
        """The first m of the polyphase form with a result."""
        return min(way.shift for way in self.exits)

    def pairs(self, counts: tuple[int, int]) -> int:
        """Return how many m there are, from the first on, for results of so many numbers."""
        return max(count + way.shift for count, way in zip(counts, self.exits, strict=True)) - self.first

    # --- windows ----------------------------------------------------------------------------------

    def window(self, start: int, stop: int) -> Window:
        """Return what the results ``start … stop - 1`` are made of.

        Parameters
        ----------
        start, stop : int
            Coefficients of both bands for analysis, samples for synthesis.

        Examples
        --------
        >>> AxisOp(Wavelet("db2"), "symmetric", 1000).window(100, 200).sources
        (((198, 400),),)
        """
        if self.transposed or self.method == "steps":
            kind = "an adjoint" if self.transposed else "steps that each extend the band they read"
            raise ArgumentError(
                f"windows are known for operators on a line that is extended once, not for {kind}"
            )
        if not 0 <= start < stop:
            raise ArgumentError(f"a window needs 0 ≤ start < stop, got {start} and {stop}")
        ranges = []
        if self.back:
            for band, taps in enumerate((self.wavelet.rec_lo, self.wavelet.rec_hi)):
                offsets = [self._back_offset(band, t) for t, tap in enumerate(taps) if tap]
                first, last = start - self._base + min(offsets), stop - 1 - self._base + max(offsets)
                ranges.append((-(-first // self.stride), last // self.stride + 1))
        else:
            bands = enumerate((self.wavelet.dec_lo, self.wavelet.dec_hi))
            offsets = [self._offset(band, t) for band, taps in bands for t, tap in enumerate(taps) if tap]
            first, last = self.stride * start + min(offsets), self.stride * (stop - 1) + max(offsets)
            ranges.append((self._base + first, self._base + last + 1))
        return Window(self, start, stop, tuple(ranges))

    # --- the meaning of an operator, in NumPy -----------------------------------------------------

    @property
    def stride(self) -> int:
        """The distance of two coefficients on the line."""
        return 1 if self.family == "swt" else 2

    @property
    def sample_taps(self) -> list[tuple[list[int], list[float]]]:
        """For both bands of an analysis, the places that coefficient 0 reads, and their factors."""
        listed = []
        for band, taps in enumerate(self._bank):
            used = [t for t, tap in enumerate(taps) if tap]
            listed.append(([self._base + self._offset(band, t) for t in used], [taps[t] for t in used]))
        return listed

    def coefficient_taps(self, phase: int) -> list[tuple[list[int], list[float]]]:
        """Return what sample ``phase`` of a synthesis reads: coefficients of both bands, and their factors.

        Sample ``phase + stride · m`` reads those that are m places later.
        """
        listed = []
        for band, taps in enumerate(self._bank):
            places = [phase - self._base + self._back_offset(band, t) for t in range(len(taps))]
            used = [t for t, tap in enumerate(taps) if tap and places[t] % self.stride == 0]
            listed.append(([places[t] // self.stride for t in used], [taps[t] for t in used]))
        return listed

    @property
    def _base(self) -> int:
        """The place of coefficient 0 of an undecimated operator."""
        return -self.dilation if self.family == "swt" and not self.periodized else 0

    def _offset(self, band: int, t: int) -> int:
        """Return the distance from a coefficient's place to the sample that tap t of its filter reads."""
        return self.dilation * (self._moved[band] + 1 - t)

    def _back_offset(self, band: int, t: int) -> int:
        """Return the distance from a sample to the coefficient that tap t of its filter reads."""
        return self.dilation * (self.wavelet.rec_len - 2 - self._moved[band] - t)

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """Apply the operator to the last axis of arrays: the samples, or the low and the high band.

        This is its definition in plain NumPy. Engines compute the same much faster.

        Returns
        -------
        tuple of arrays
            The two bands, or the samples.
        """
        if self.rounded:
            raise ArgumentError("an operator on integers is not linear; engines run it")
        parts = [np.asarray(array, np.result_type(array, np.float32)) for array in arrays]
        if self.method == "steps":
            return self._by_steps(parts)
        return self._spread(parts) if self.transposed else self._gathered(parts)

    def matrix(self) -> Array:
        """Return the operator as a matrix; bands are one after the other.

        Examples
        --------
        >>> AxisOp(Wavelet("haar"), "zero", 2).matrix().round(3)
        array([[ 0.707,  0.707],
               [ 0.707, -0.707]])
        """
        sizes = [self.length] if self.back == self.transposed else list(self.counts)
        identity = np.eye(sum(sizes))
        results = self(*np.split(identity, np.cumsum(sizes)[:-1], axis=1))
        return np.concatenate(results, axis=1).T

    def _gathered(self, parts: Sequence[Array]) -> tuple[Array, ...]:
        """Return the results of filters, of which each reads the extended input."""
        low, high = self._bank
        if not self.back:
            window = self.window(0, max(self.counts))
            (begin, end), (x,) = window.ranges[0], parts
            line = extend(x, x.ndim - 1, begin, end, self.sample_mode)
            bands = []
            for band, (taps, count) in enumerate(zip((low, high), self.counts, strict=True)):
                total = np.zeros((*x.shape[:-1], count), x.dtype)
                for t, tap in enumerate(taps):
                    first = self._base + self._offset(band, t) - begin
                    if tap:
                        total += tap * line[..., first : first + self.stride * count : self.stride]
                bands.append(total)
            return tuple(bands)
        x = np.zeros((*parts[0].shape[:-1], self.length), np.result_type(*parts))
        for band, (taps, part) in enumerate(zip((low, high), parts, strict=True)):
            for t, tap in enumerate(taps):
                places, numbers = self._coefficients(band, t)
                x[..., places] += tap * np.where(numbers < 0, 0, part[..., numbers])
        return (x,)

    def _spread(self, parts: Sequence[Array]) -> tuple[Array, ...]:
        """Return the results of the adjoint: every number goes to where it would have been read."""
        low, high = self._bank
        dtype, outer = np.result_type(*parts), parts[0].shape[:-1]
        if self.back:
            bands = [np.zeros((count, *outer), dtype) for count in self.counts]
            for band, taps in enumerate((low, high)):
                for t, tap in enumerate(taps):
                    places, numbers = self._coefficients(band, t)
                    inside = numbers >= 0
                    values = np.moveaxis(parts[0][..., places[inside]], -1, 0)
                    np.add.at(bands[band], numbers[inside], tap * values)
            return tuple(np.moveaxis(band, 0, -1) for band in bands)
        x = np.zeros((self.length, *outer), dtype)
        for band, (taps, part) in enumerate(zip((low, high), parts, strict=True)):
            values = np.moveaxis(part, -1, 0)
            for t, tap in enumerate(taps):
                places = self._base + self.stride * np.arange(len(values)) + self._offset(band, t)
                index, factors = self.beyond(places)
                terms = [(0, factors[:, 0])]
                for number, weight in enumerate(factors.T[1:]):
                    terms += [(2 * number + 1, weight), (2 * number + 2, -weight)]
                for column, weight in terms:
                    weights = (tap * weight).reshape(-1, *[1] * len(outer)).astype(dtype)
                    np.add.at(x, index[:, column], weights * values)
        return (np.moveaxis(x, 0, -1),)

    @property
    def _bank(self) -> tuple[Sequence[float], Sequence[float]]:
        wavelet, scale = self.wavelet, self.gain
        low, high = (wavelet.rec_lo, wavelet.rec_hi) if self.back else (wavelet.dec_lo, wavelet.dec_hi)
        if self.back:
            # Undecimated coefficients are two transforms, of which either gives the samples.
            scale = (0.5 if self.family == "swt" else 1.0) / self.gain
        return [scale * tap for tap in low], [scale * tap for tap in high]

    @cached_property
    def dilated_taps(self) -> tuple[DilatedTaps, DilatedTaps]:
        """The taps of an undecimated operator, of the low and of the high band.

        Analysis multiplies the samples at ``k + offset`` for coefficient k, synthesis the coefficients at
        ``k + offset`` for sample k. They are in the order with the least rounding error.
        """
        assert self.family == "swt"
        taps = []
        for band, factors in enumerate(self._bank):
            places = [
                self._back_offset(band, t) - self._base if self.back else self._base + self._offset(band, t)
                for t in range(len(factors))
            ]
            order = most_precise_order((tuple(factors),) * 2, tuple(range(len(factors))))
            taps.append(tuple((places[t], float(factors[t])) for t in order if factors[t]))
        return taps[0], taps[1]

    @property
    def tap_span(self) -> tuple[int, int]:
        """The first and the last offset of the taps of an undecimated operator, zeros among them included."""
        ends = 0, self.wavelet.dec_len - 1
        if self.back:
            first, last = sorted(self._back_offset(0, t) - self._base for t in ends)
        else:
            first, last = sorted(self._base + self._offset(0, t) for t in ends)
        return first, last

    def _coefficients(self, band: int, t: int) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
        """Return the samples that read a coefficient with tap t, and which one, -1 for zero."""
        samples = np.arange(self.length)
        places = samples - self._base + self._back_offset(band, t)
        used = places % self.stride == 0
        return samples[used], self.coefficients_beyond(band, places[used] // self.stride)

    def _by_steps(self, parts: Sequence[Array]) -> tuple[Array, ...]:
        """Return the results of lifting steps that extend the bands they read."""
        if len(parts) == 1:
            x = parts[0]
            parts = [x[..., 0::2].copy(), x[..., 1::2].copy()]
            merged = None
        else:
            merged = np.zeros((*parts[0].shape[:-1], self.length), np.result_type(*parts))
            parts = [part.copy() for part in parts]
        scales = [1 / scale for scale in self.scaling] if self.back else list(self.scaling)
        scaled_first = self.back != self.transposed
        if scaled_first:
            parts = [part * scale for part, scale in zip(parts, scales, strict=True)]
        for table in reversed(self.step_tables) if self.transposed else self.step_tables:
            step = table.step
            target, other = np.moveaxis(parts[step.target], -1, 0), np.moveaxis(parts[1 - step.target], -1, 0)
            for number, tap in enumerate(step.taps):
                inner = np.arange(table.begin, table.end)
                rows = np.concatenate([inner, table.border])
                sources = np.concatenate([inner + tap.offset, table.table[:, number]])
                rows, sources = rows[sources >= 0], sources[sources >= 0]
                if self.transposed:
                    np.add.at(other, sources, tap.factor * target[rows])
                else:
                    target[rows] += tap.factor * other[sources]
        if not scaled_first:
            parts = [part * scale for part, scale in zip(parts, scales, strict=True)]
        if merged is None:
            return tuple(parts)
        merged[..., 0::2], merged[..., 1::2] = parts
        return (merged,)


@dataclass(frozen=True)
class Window:
    """Some results of an operator, and the part of its input that they are made of.

    Parameters
    ----------
    op : AxisOp
    start, stop : int
        The results.
    ranges : tuple of (int, int)
        For each sequence of the input, the places of the extended sequence that are read.
    """

    op: AxisOp
    start: int
    stop: int
    ranges: tuple[tuple[int, int], ...]

    @property
    def sources(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each sequence of the input, the ranges of it that are read, with what its borders are made of.

        There is one range within a line, and there may be two at the ends of a periodic one.
        """
        return tuple(self._segments(band, begin, end) for band, (begin, end) in enumerate(self.ranges))

    def _segments(self, band: int, begin: int, end: int) -> tuple[tuple[int, int], ...]:
        op = self.op
        length = op.counts[band] if op.back else op.length
        beyond = np.concatenate([np.arange(begin, min(end, 0)), np.arange(max(begin, length), end)])
        if op.back:
            numbers = op.coefficients_beyond(band, beyond)
            used = numbers[numbers >= 0]
        else:
            index, factors = op.beyond(beyond)
            used = index[np.repeat(factors != 0, [1, *[2] * (factors.shape[1] - 1)], axis=1)]
        inner = np.arange(max(begin, 0), min(end, length))
        ends = [] if inner.size == 0 else [inner[0], inner[-1]]
        points = np.unique(np.concatenate([used, ends]).astype(np.int_))
        if points.size == 0:
            return ()
        # A gap of samples that are not read separates the two ends of a periodic line.
        gaps = np.diff(points)
        inside = (points[:-1] >= max(begin, 0)) & (points[1:] <= min(end, length) - 1)
        cuts = np.flatnonzero((gaps > 1) & ~inside) + 1
        return tuple((int(part[0]), int(part[-1]) + 1) for part in np.split(points, cuts))
