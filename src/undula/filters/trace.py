"""How a pipeline is run, and what can be observed while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays import library_of
from ..engines.gpu.arrays import measure_transfers
from .base import BandLimits, Details
from .operations import ArrayOperations

__all__ = ["RunOptions", "Trace"]


@dataclass
class Trace:
    """A record of one run of a pipeline.

    Parameters
    ----------
    keep : bool, default False
        Whether to keep coefficients and thresholds in addition to times.

    Attributes
    ----------
    seconds : dict
        Times of ``forward``, ``filter``, ``inverse``, and of the ``transfer`` of NumPy arrays to and from a
        device. If a device applies the last stage during the inverse transform, its time counts as inverse.
    before, after : tuple of (approximation, details) or None
        Coefficients before and after the stages, details finest level first.
    limits : dict
        For each stage with thresholds, by its index: a dictionary from ``(index, key)`` to one threshold per
        item. Index 0 is the finest level.
    """

    keep: bool = False
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("forward", "filter", "inverse", "transfer"), 0.0)
    )
    before: tuple[Any, Details] | None = None
    after: tuple[Any, Details] | None = None
    limits: dict[int, dict[tuple[int, str], np.ndarray[Any, Any]]] = field(default_factory=dict)
    _since: float = 0.0
    _moved: Callable[[], float] = float

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Start measuring."""
        with measure_transfers() as self._moved:
            self._since = time.perf_counter()
            yield

    def lap(self, phase: str, operations: ArrayOperations, x: Any) -> None:
        """Count the time since the last lap, until ``x`` has been computed, for a phase."""
        operations.wait(x)
        now, moved = time.perf_counter(), self._moved() - self.seconds["transfer"]
        self.seconds[phase] += now - self._since - moved
        self.seconds["transfer"] += moved
        self._since = now

    def keep_limits(self, stage: int, limits: BandLimits | None, items: int) -> None:
        """Keep the thresholds of a stage, by its index."""
        if limits is not None:
            self.limits[stage] = {
                place: np.broadcast_to(np.asarray(library_of(low).to_numpy(low), np.float64), (items,)).copy()
                for place, low in zip(limits.bands, limits.lows, strict=True)
            }


@dataclass(frozen=True)
class RunOptions:
    """Where a pipeline runs, how a device computes its transforms, and the trace that observes it."""

    backend: str = "auto"
    strategy: str = "auto"
    scheme: str = "auto"
    trace: Trace | None = None
