"""How a pipeline is run, and what can be observed while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..arrays import library_of
from ..engines.gpu.arrays import measure_transfers
from ..lowering.graph import Graph
from ..lowering.symbolic import SymbolicArray, symbolic_output
from .base import BandLimits, Details
from .operations import OPERATIONS

__all__ = ["RunOptions", "Trace", "keep_coefficients", "keep_limits"]


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

    Examples
    --------
    >>> from undula.filters import Pipeline
    >>> trace = Trace()
    >>> _ = Pipeline("haar", 1, ["shrink"])(np.ones((8, 8)), trace=trace)
    >>> sorted(trace.seconds)
    ['filter', 'forward', 'inverse', 'transfer']
    """

    keep: bool = False
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("forward", "filter", "inverse", "transfer"), 0.0)
    )
    before: tuple[Any, Details] | None = None
    after: tuple[Any, Details] | None = None
    limits: dict[int, dict[tuple[int, str], np.ndarray[Any, Any]]] = field(default_factory=dict)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measure transfers, and with them subtract what is counted for other phases."""
        with measure_transfers() as moved:
            yield
            self.seconds["transfer"] += moved()

    def keep_outputs(self, outputs: Mapping[str, Any], unit: float = 1.0) -> None:
        """Keep coefficients and thresholds among the outputs of a graph.

        Parameters
        ----------
        outputs : mapping
            Outputs of a graph, by name.
        unit : float, default 1.0
            The number by which samples were divided.
        """
        pyramids: dict[str, tuple[Any, Details]] = {}
        for name, output in outputs.items():
            array = output if unit == 1 else output * unit
            kind, *place = name.split(".")
            if kind == "limits":
                stage, index, key = place
                values = np.asarray(library_of(array).to_numpy(array), np.float64)
                self.limits.setdefault(int(stage), {})[int(index), key] = values
            elif kind in ("before", "after"):
                low, details = pyramids.get(kind, (None, []))
                if place == ["low"]:
                    low = array
                else:
                    index, key = place
                    details += [{} for _ in range(int(index) + 1 - len(details))]
                    details[int(index)][key] = array
                pyramids[kind] = low, details
        self.before, self.after = pyramids.get("before"), pyramids.get("after")


def keep_coefficients(graph: Graph, name: str, low: Any, details: Details) -> None:
    """Make coefficients outputs of a graph."""
    symbolic_output(graph, f"{name}.low", low)
    for index, bands in enumerate(details):
        for key, band in bands.items():
            symbolic_output(graph, f"{name}.{index}.{key}", band)


def keep_limits(x: SymbolicArray, stage: int, limits: BandLimits | None) -> None:
    """Make the thresholds of a stage, given by its index, outputs of the graph of planes."""
    if limits is None:
        return
    for (index, key), low in zip(limits.bands, limits.lows, strict=True):
        name = f"limits.{stage}.{index}.{key}"
        symbolic_output(x.graph, name, OPERATIONS.per_item(low, x))


class RunOptions(NamedTuple):
    """Where a pipeline runs, how a device computes its transforms, and the trace that observes it."""

    backend: str = "auto"
    strategy: str = "auto"
    scheme: str = "auto"
    trace: Trace | None = None
