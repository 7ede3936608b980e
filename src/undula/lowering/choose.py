"""Lifting or filters: one rule for all engines."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..liftings import lifting
from ..wavelets import Wavelet
from .axis import AxisOp
from .polyphase import Step
from .rounding import Rounding

__all__ = ["LiftingLimits", "NeighbourStep", "axis_op", "lifts_precisely", "neighbour_steps"]

MAX_PRECISE_RESIDUAL = 1e-13  # between lifting and filters, for double precision
MAX_RECONSTRUCTION_ERROR = 1e-6  # Filters that are further from perfect reconstruction cannot be factored.


class LiftingLimits(NamedTuple):
    """The liftings that the kernels of an engine run; filters are faster than longer ones.

    Parameters
    ----------
    max_steps : int
    max_taps : int
        Filters of the DWT with more taps are not factored.
    neighbours : bool
        Whether a step must add a multiple of the sum of two neighbours.
    max_integer_bytes : int
        Size of the largest integers that are lifted on a line that is extended once.
    """

    max_steps: int
    max_taps: int
    neighbours: bool
    max_integer_bytes: int = 4


class NeighbourStep(NamedTuple):
    """A lifting step that adds ``factor · (left + right)``; for integers, a rounded sum."""

    factor: float
    rounded: Rounding


@lru_cache(maxsize=4096)
def axis_op(
    wavelet: Wavelet, mode: str, length: int, lwt: bool, dtype: np.dtype[Any], limits: LiftingLimits
) -> AxisOp:
    """Return the analysis of a line by the best method for a dtype.

    Parameters
    ----------
    wavelet : Wavelet
    mode : str
    length : int
    lwt : bool
        Whether this is the LWT, or the DWT.
    dtype : dtype
        Dtype of the samples: integers are lifted by rounded steps.
    limits : LiftingLimits
    """
    rounded = dtype.kind == "i"
    method = _method(wavelet, mode, length, lwt, dtype, limits)
    return AxisOp(wavelet, mode, length, "lwt" if lwt else "dwt", method=method, rounded=rounded)


def _method(
    wavelet: Wavelet, mode: str, length: int, lwt: bool, dtype: np.dtype[Any], limits: LiftingLimits
) -> str:
    if not lwt:
        short = wavelet.dec_len <= limits.max_taps
        lifts = short and lifts_precisely(wavelet, dtype) and _runs(wavelet, mode, lwt, limits)
        return "lifting" if lifts else "filters"
    # Steps that treat both sides alike keep a symmetric line symmetric, and an even period stays one: then
    # extending the line once is the same as extending it in each step.
    folds = mode == "symmetric" and lifting(wavelet).symmetric
    wraps = mode == "periodic" and length % 2 == 0
    if length == 1 or not (folds or wraps):
        return "steps"
    runs = _runs(wavelet, mode, lwt, limits)
    if dtype.kind == "i":
        return "lifting" if runs and dtype.itemsize <= limits.max_integer_bytes else "steps"
    if runs:
        return "lifting"
    # An LWT is defined by its steps, of which filters are an approximation.
    return "filters" if lifts_precisely(wavelet, dtype) else "steps"


def lifts_precisely(wavelet: Wavelet, dtype: np.dtype[Any]) -> bool:
    """Return whether the lifting of a wavelet is as good as its filters in a dtype."""
    if wavelet.reconstruction_error > MAX_RECONSTRUCTION_ERROR:
        return False
    return dtype.char in "efF" or lifting(wavelet).residual <= MAX_PRECISE_RESIDUAL


def _runs(wavelet: Wavelet, mode: str, lwt: bool, limits: LiftingLimits) -> bool:
    """Return whether kernels run the lifting of a wavelet."""
    op = AxisOp(wavelet, mode, 0, "lwt" if lwt else "dwt", method="lifting")
    if not 0 < len(op.steps) <= limits.max_steps:
        return False
    return not limits.neighbours or neighbour_steps(op) is not None


def neighbour_steps(op: AxisOp) -> tuple[int, tuple[NeighbourStep, ...]] | None:
    """Return lifting as sums of two neighbours, which change the bands by turns; None if it is not that.

    Returns
    -------
    first : {0, 1}
        The band that the first step changes.
    steps : tuple of NeighbourStep
        As many as make pairs: a step that does nothing is added at the end, for synthesis at the beginning.
    """
    band_of = {way.component: band for band, way in enumerate((op.inverse() if op.back else op).exits)}
    bands = [band_of[step.target] for step in op.steps]
    by_turns = all(band == (bands[0] + number) % 2 for number, band in enumerate(bands))
    # The band that analysis changes first has its first coefficient one place behind that of the other.
    changed = bands[-1] if op.back else bands[0]
    aligned = op.places[changed] - op.places[1 - changed] == 1
    if not by_turns or not aligned or not all(map(_between_neighbours, op.steps)):
        return None
    steps = [NeighbourStep(max(s.taps, key=lambda tap: tap.offset).factor, s.rounded) for s in op.steps]
    if len(steps) % 2 == 0:
        return bands[0], tuple(steps)
    idle = NeighbourStep(0.0, Rounding((0, 0), 0, 0))
    return (1 - bands[0], (idle, *steps)) if op.back else (bands[0], (*steps, idle))


def _between_neighbours(step: Step) -> bool:
    if len(step.taps) != 2:
        return False
    left, right = sorted(step.taps, key=lambda tap: tap.offset)
    # Of component 0, the neighbours in component 1 are at m - 1 and m; of component 1, at m and m + 1.
    return (left.offset, right.offset) == (step.target - 1, step.target) and math.isclose(
        left.factor, right.factor, rel_tol=1e-12
    )
