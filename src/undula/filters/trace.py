"""How a pipeline is run, and what can be seen of it on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..transforms.ondevice import moves
from .arrays import Arrays

__all__ = ["How", "Trace"]


@dataclass
class Trace:
    """What is seen while a pipeline runs.

    Parameters
    ----------
    keep : bool
        Whether coefficients and thresholds are kept; otherwise times alone.

    Attributes
    ----------
    seconds : dict
        ``forward``, ``filter``, ``inverse``, and ``transfer`` of NumPy's arrays to a device and back. Where
        a device does the last stage on the way back, its time is that of the way back.
    before, after : pairs of an approximation and details, finest first; None while they are not known
    limits : dict
        For each stage, by its number from 0, that has thresholds: by level (from 0, the finest) and key, a
        number for each item.
    """

    keep: bool = False
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("forward", "filter", "inverse", "transfer"), 0.0)
    )
    before: tuple[Any, list[dict[str, Any]]] | None = None
    after: tuple[Any, list[dict[str, Any]]] | None = None
    limits: dict[int, dict[tuple[int, str], np.ndarray[Any, Any]]] = field(default_factory=dict)
    _since: float = 0.0
    _moved: Callable[[], float] = float

    @contextmanager
    def watching(self) -> Iterator[None]:
        """From here on."""
        with moves() as self._moved:
            self._since = time.perf_counter()
            yield

    def lap(self, what: str, arrays: Arrays, x: Any) -> None:
        """Until here, when ``x`` is there."""
        arrays.finish(x)
        now, moved = time.perf_counter(), self._moved() - self.seconds["transfer"]
        self.seconds[what] += now - self._since - moved
        self.seconds["transfer"] += moved
        self._since = now


@dataclass(frozen=True)
class How:
    """Where a pipeline runs, how its transforms are laid over a device, and who sees it."""

    backend: str = "auto"
    strategy: str = "auto"
    scheme: str = "auto"
    trace: Trace | None = None

    @property
    def usual(self) -> bool:
        """Whether the library chooses how the work is laid out."""
        return self.strategy == self.scheme == "auto"
