"""The interface of strategies, and the values that they work on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from ....arrays import ArrayView
from ....errors import ArgumentError
from ....lowering.axis import AxisOp
from ....lowering.choose import LiftingLimits, axis_op
from ....lowering.spec import Task
from ....wavelets import Wavelet
from ...base import Knobs
from ..emit import Dialect, Kernel, KernelSpec
from ..launches import DeviceLimits, Launch

__all__ = [
    "LIFTING",
    "Strategy",
    "StrategyCost",
    "StripLaunch",
    "Target",
    "Views",
    "Workload",
    "launches_of",
    "view_values",
]

# A longer lifting is one long chain of waits; filters then do more work at once.
LIFTING = LiftingLimits(max_steps=12, max_taps=24, neighbours=False)

# Arrays by name, each with the strides of its planes and rows.
Views = Mapping[str, "tuple[ArrayView, tuple[int, int]]"]


class Target(NamedTuple):
    """A device, and the caller's choices for it.

    Parameters
    ----------
    dialect : Dialect
    limits : DeviceLimits
    scheme : str
        ``"auto"``, or a scheme for two axes.
    method : {"auto", "lifting", "filters"}
    knobs : Knobs
        Tuning parameters.
    """

    dialect: Dialect
    limits: DeviceLimits
    scheme: str
    method: str
    knobs: Knobs


@dataclass(frozen=True)
class Workload:
    """One pass over an array: the kernel's specification, its arrays and their extents.

    Parameters
    ----------
    spec : KernelSpec
    views : Views
        The arrays of the kernel by name.
    tasks : tuple of Task
        The axes that are transformed, outermost first.
    rows, columns : int
        Extents of the samples.
    row_counts, column_counts : (int, int)
        Extents of the low and the high band.
    planes : int
    """

    spec: KernelSpec
    views: Views
    tasks: tuple[Task, ...]
    rows: int
    row_counts: tuple[int, int]
    columns: int
    column_counts: tuple[int, int]
    planes: int

    @property
    def samples(self) -> ArrayView:
        """The array of samples."""
        return self.views["x"][0]

    @property
    def row_pairs(self) -> int:
        """Pairs of rows with results."""
        if self.spec.down is None:
            return self.rows
        return self.spec.down.pairs(self._results(self.rows, self.row_counts))

    @property
    def column_pairs(self) -> int:
        """Pairs of columns with results; columns, if there is no axis within rows."""
        if self.spec.along is None:
            return self.columns
        return self.spec.along.pairs(self._results(self.columns, self.column_counts))

    def _results(self, length: int, counts: tuple[int, int]) -> tuple[int, int]:
        return ((length + 1) // 2, length // 2) if self.spec.back else counts


class StrategyCost(NamedTuple):
    """The cost of a level.

    ``passes`` is how often the level goes through memory, and ``rereads`` how often a sample is read in a
    pass. The others are per sample: multiply-adds, accesses to shared memory, and barriers.
    """

    passes: int
    operations: float
    accesses: float = 0.0
    barriers: float = 0.0
    rereads: float = 1.0


class Strategy(ABC):
    """A way to distribute the work of a level over a device.

    Attributes
    ----------
    name : str
    candidates : tuple of Knobs
        Settings that tuning tries besides the default.
    methods : tuple of str
        What the caller may ask for with ``method=``; ``methods_note`` explains it in errors.
    needs_two_axes : bool
        Whether the strategy exists for two axes only.
    within_rows : bool
        Whether an axis of adjacent elements is transformed within rows.
    applies_rules : bool
        Whether a pass over one axis can apply a threshold rule to the details that it reads.
    """

    name: ClassVar[str]
    candidates: ClassVar[tuple[Knobs, ...]] = ()
    methods: ClassVar[tuple[str, ...]] = ("lifting", "filters")
    methods_note: ClassVar[str] = "which runs both"
    needs_two_axes: ClassVar[bool] = False
    within_rows: ClassVar[bool] = False
    applies_rules: ClassVar[bool] = False

    @property
    def one_axis(self) -> Strategy:
        """The strategy for passes over a single axis."""
        return self

    @property
    def with_scheme(self) -> Strategy | None:
        """The strategy that is used if the caller asks for a scheme; None if that is an error."""
        return None

    def fits(self, tasks: Sequence[Task], dtype: str, target: Target) -> bool:
        """Return whether one pass can transform two neighbouring axes, in both directions."""
        return False

    def misfit(self, tasks: Sequence[Task], dtype: str, target: Target) -> ArgumentError | None:
        """Return the error for axes that do not fit; None if they are transformed one at a time instead."""
        return None

    @abstractmethod
    def launches(self, workload: Workload, target: Target) -> list[Launch]:
        """Return the launches of one pass."""

    def operator(self, op: AxisOp, method: str) -> AxisOp:
        """Return the operator as this strategy runs it, given the caller's method."""
        if method == "auto" or op.rounded or op.method == "steps":
            return op
        return replace(op, method=method)

    def method(self, wavelet: Wavelet, mode: str, method: str, scheme: str, single: bool) -> str:
        """Return ``"lifting"`` or ``"filters"``: what runs along an axis, given the caller's choices."""
        dtype = np.dtype(np.float32 if single else np.float64)
        return self.operator(axis_op(wavelet, mode, 2, False, dtype, LIFTING), method).method

    def cost(self, axes: int, operations: float, wavelet: Wavelet, scheme: str) -> StrategyCost:
        """Return the cost of a level.

        Parameters
        ----------
        axes : int
            Number of transformed axes.
        operations : float
            Multiply-adds per sample along all axes.
        wavelet : Wavelet
        scheme : str
        """
        return StrategyCost(max(1, axes - 1), operations)  # Two of the axes share a pass.


class Division(Protocol):
    """A division of rows into strips."""

    def divided(self, at_once: int) -> tuple[int, tuple[int, ...]]:
        """Return the number of groups, and the last integers of the kernel.

        ``at_once`` is the number of groups that run at the same time.
        """
        ...


@dataclass(frozen=True)
class StripLaunch(Launch):
    """A launch whose strips depend on how many groups the device runs at the same time."""

    strips: Division

    def fitted(self, capacity: Callable[[Kernel], int]) -> Launch:
        """Return the launch with strips for a device; ``capacity`` tells how many groups it runs at once."""
        groups, values = self.strips.divided(capacity(self.kernel))
        fixed = self.values[: len(self.values) - len(values)]
        return replace(self, groups=groups, values=(*fixed, *values))


def view_values(kernel: Kernel, views: Views) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the buffers of a kernel, and the start and strides of each as integers."""
    values: list[int] = []
    for name in kernel.arrays:
        view, (plane, row) = views[name]
        values += [view.offset, plane, row]
    return tuple(views[name][0].buffer for name in kernel.arrays), tuple(values)


def launches_of(kernel: Kernel, groups: int, views: Views, extents: Sequence[int]) -> list[Launch]:
    """Return the launch of a kernel; none if it has no groups."""
    if groups <= 0:
        return []
    buffers, values = view_values(kernel, views)
    return [Launch(kernel, groups, buffers, (*values, *extents))]
