"""Adjoints as engines run them: a plain operator, and the results at the ends of lines that differ.

Far from the ends of a line, the adjoint of an operator is the operator of the dual wavelet in the other
direction, for which engines have kernels. At the ends, a boundary mode makes coefficients depend on samples
inside the line, and the adjoint has to fold their numbers back. :class:`BorderRows` lists what those results
are made of, and engines compute them anew. Or engines compute samples beyond the ends as well, and add them
to others as :class:`Fold` lists it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .axis import AxisOp
from .choose import LiftingLimits, axis_op

__all__ = ["BorderRows", "Fold", "Term", "border_rows", "differs_at_ends", "fold_of", "plain_operator"]

FROM_START, FROM_CENTRE, FROM_END = range(3)
MIN_REGULAR_TAPS = 4  # Lines with fewer samples than so many times the taps are listed completely.
# Differences between results that are the same, times the largest factor: the filters and the lifting of a
# wavelet agree to about ten digits.
NEGLIGIBLE = 1e-9
ZERO = 1e-14


class Term(NamedTuple):
    """A number that a result is made of, and its factor.

    ``anchor`` says what ``offset`` is counted from: the start of the sequence, its end, or the place that
    corresponds to that of the result.
    """

    sequence: int
    anchor: int
    offset: int
    factor: float


@dataclass(frozen=True)
class BorderRows:
    """What one sequence of the results of an adjoint is made of.

    Parameters
    ----------
    left, right : int
        Number of results at both ends that are made of other numbers than those far from the ends.
    changed : bool
        Whether any of them differs from what the plain operator computes.
    phases, step : int
        Far from the ends, the terms of result ``j`` are those of row ``left + j % phases``, counted from
        ``j // phases * step``.
    rows : tuple of tuple of Term
        First the results at the left end, then one row for each phase, then the results at the right end.
    """

    left: int
    right: int
    changed: bool
    phases: int
    step: int
    rows: tuple[tuple[Term, ...], ...]

    def places(self, length: int) -> NDArray[np.int64]:
        """Return the places of the results at both ends of a sequence."""
        return np.concatenate([np.arange(self.left), np.arange(length - self.right, length)])

    def terms(self, place: int, length: int, lengths: tuple[int, ...]) -> Iterator[tuple[int, int, float]]:
        """Yield the sequences, numbers and factors of a result.

        Parameters
        ----------
        place, length : int
            The result, and the number of results.
        lengths : tuple of int
            Lengths of the sequences that are read.
        """
        row = self.left + place % self.phases
        if place < self.left:
            row = place
        elif place >= length - self.right:
            row = self.left + self.phases + place - (length - self.right)
        for sequence, anchor, offset, factor in self.rows[row]:
            base = (0, place // self.phases * self.step, lengths[sequence])[anchor]
            yield sequence, base + offset, factor


def plain_operator(op: AxisOp, dtype: np.dtype[Any], limits: LiftingLimits) -> AxisOp:
    """Return the analysis that agrees with an adjoint far from the ends of lines.

    Parameters
    ----------
    op : AxisOp
        The adjoint of a synthesis. The inverse of the result agrees with the adjoint of the analysis.
    dtype, limits
        As :func:`~undula.lowering.choose.axis_op` takes them.
    """
    if op.family == "swt":
        return replace(op, wavelet=op.wavelet.dual, back=False, transposed=False, gain=0.5 / op.gain)
    mode = op.mode if op.family == "lwt" or op.periodized else "zero"
    return axis_op(op.wavelet.dual, mode, op.length, op.family == "lwt", dtype, limits)


def differs_at_ends(op: AxisOp) -> bool:
    """Return whether an adjoint differs from its plain operator at the ends of lines."""
    circular = op.family == "swt" and op.periodized
    return not circular and any(rows.changed for rows in border_rows(op))


@dataclass(frozen=True)
class Fold:
    """How an adjoint of an analysis folds back what the boundary mode extended.

    Parameters
    ----------
    before, after : int
        How many samples the plain operator computes beyond the ends of a line; ``before`` is even.
    entries : tuple of (int, int, float)
        The places beyond the ends, the samples of the line to which they are added, and their weights.
    """

    before: int
    after: int
    entries: tuple[tuple[int, int, float], ...]


@lru_cache(maxsize=512)
def fold_of(op: AxisOp) -> Fold | None:
    """Return how an adjoint folds lines; None if it is no adjoint of an analysis that extends them once."""
    if not differs_at_ends(op):
        return Fold(0, 0, ())
    if op.back or op.family != "dwt" or op.periodized:
        return None
    analysis = op.adjoint()
    ((begin, end),) = analysis.window(0, max(op.counts)).ranges
    before, after = -(min(0, begin) // 2) * 2, max(0, end - op.length)
    places = np.concatenate([np.arange(-before, 0), np.arange(op.length, op.length + after)])
    index, factors = analysis.beyond(places)
    entries = []
    for place, samples, weights in zip(places.tolist(), index.tolist(), factors.tolist(), strict=True):
        # One sample, and differences of pairs of samples.
        signed = [weights[0], *(part for weight in weights[1:] for part in (weight, -weight))]
        entries += [(place, n, weight) for n, weight in zip(samples, signed, strict=True) if weight]
    return Fold(before, after, tuple(entries)) if entries else Fold(0, 0, ())


def border_rows(op: AxisOp) -> tuple[BorderRows, ...]:
    """Return what each sequence of results of an adjoint is made of.

    Parameters
    ----------
    op : AxisOp
        The adjoint of a synthesis or of an analysis.
    """
    regular = MIN_REGULAR_TAPS * op.wavelet.dec_len * op.dilation + 16 * op.dilation
    # All long lines of the same parity have the same rows.
    length = op.length if op.length < regular else regular + (op.length - regular) % 2
    return _border_rows(replace(op, length=length), length < regular)


@lru_cache(maxsize=512)
def _border_rows(op: AxisOp, complete: bool) -> tuple[BorderRows, ...]:
    plain = plain_operator(op if op.back else op.inverse(), np.dtype(np.float64), LiftingLimits(0, 0, False))
    matrix = np.ascontiguousarray(op.adjoint().matrix().T)
    matrix[np.abs(matrix) <= ZERO * np.abs(matrix).max(initial=0.0)] = 0
    different = np.abs(matrix - (plain if op.back else plain.inverse()).matrix()) > _negligible(matrix)
    changed = different.any(axis=1)
    stride = 1 if op.family == "swt" else 2
    samples: tuple[int, ...] = (op.length,)
    results, lengths = (op.counts, samples) if op.back else (samples, op.counts)
    pattern = (1, stride) if op.back else (stride, 1)  # phases and step
    cuts = np.cumsum(results)[:-1]
    return tuple(
        _sequence_rows(rows, differs, lengths, pattern, complete)
        for rows, differs in zip(np.split(matrix, cuts), np.split(changed, cuts), strict=True)
    )


def _negligible(matrix: NDArray[Any]) -> float:
    return NEGLIGIBLE * float(np.abs(matrix).max(initial=0.0))


def _sequence_rows(
    matrix: NDArray[Any],
    changed: NDArray[np.bool_],
    lengths: tuple[int, ...],
    pattern: tuple[int, int],
    complete: bool,
) -> BorderRows:
    """Return the rows of one sequence of results, given its part of the matrix."""
    phases, step = pattern
    count, middle = len(matrix), len(matrix) // 2 // phases * phases
    if complete:
        rows = tuple(_terms(row, lengths) for row in matrix)
        return BorderRows(count, 0, bool(changed.any()), phases, step, (*rows, *[()] * phases))
    centres = [_terms(matrix[middle + p], lengths, middle // phases * step) for p in range(phases)]
    irregular = changed.copy()
    for place in range(count):
        row = np.zeros(matrix.shape[1])
        starts = np.cumsum((0, *lengths))
        for sequence, _, offset, factor in centres[place % phases]:
            number = place // phases * step + offset
            if 0 <= number < lengths[sequence]:
                row[starts[sequence] + number] = factor
            else:
                irregular[place] = True
        irregular[place] |= bool(np.any(np.abs(row - matrix[place]) > _negligible(matrix)))
    places = np.flatnonzero(irregular)
    left = int(max(places[places < middle], default=-1)) + 1
    right = count - int(min(places[places >= middle], default=count))
    assert max(left, right) < 3 * count // 8, "the ends of the line depend on its middle"
    ends = [_terms(row, lengths) for row in (*matrix[:left], *matrix[count - right :])]
    return BorderRows(left, right, bool(changed.any()), phases, step, (*ends[:left], *centres, *ends[left:]))


def _terms(row: NDArray[Any], lengths: tuple[int, ...], centre: int | None = None) -> tuple[Term, ...]:
    """Return the terms of a row of a matrix, counted from a centre or from the nearest end."""
    terms = []
    for sequence, part in enumerate(np.split(row, np.cumsum(lengths)[:-1])):
        numbers = np.flatnonzero(part)
        for place, factor in zip(numbers.tolist(), part[numbers].tolist(), strict=True):
            if centre is not None:
                terms.append(Term(sequence, FROM_CENTRE, place - centre, factor))
            elif place < lengths[sequence] // 2:
                terms.append(Term(sequence, FROM_START, place, factor))
            else:
                terms.append(Term(sequence, FROM_END, place - lengths[sequence], factor))
    return tuple(terms)
