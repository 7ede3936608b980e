"""The arrays of a plan where it runs: to measure transfers and computation, each by itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from .plan import Plan

__all__ = ["Resident"]

Array = NDArray[Any]


class Resident:
    """The samples and coefficients of a plan, on the plan's device.

    On the CPU they are arrays of NumPy. All methods but downloads only start what they do, and
    :meth:`finish` waits for it.

    Parameters
    ----------
    plan : Plan
    rule, limit : str and float, optional
        Threshold rule that the inverse applies to details, and its threshold, the same for all.
    """

    def __init__(self, plan: Plan, rule: str | None = None, limit: float = 0.0) -> None:
        self.plan, self._engine = plan, plan.engine
        self._rule, self._limit = rule, limit
        self._samples = self._engine.allocate(plan.shape, plan.source_dtype)
        self._result = self._engine.allocate(plan.shape, plan.dtype.name)
        self._bands = [self._engine.allocate(shape, plan.dtype.name) for shape in plan.tree.flat_shapes]

    @cached_property
    def _forward(self) -> Callable[[], Any]:
        plan, arrays = self.plan, [self._samples, *self._bands]
        return self._engine.bound(False, plan.tree, arrays, plan.dtype, plan.options)

    @cached_property
    def _inverse(self) -> Callable[[], Any]:
        plan, arrays = self.plan, [self._result, *self._bands]
        if self._rule is not None:
            dtype = np.float64 if plan.dtype == np.float64 else np.float32
            limits = np.full((plan.level, 2, 2 ** len(plan.axes) - 1), self._limit, dtype)
            arrays.append(self._engine.upload(limits))
        return self._engine.bound(True, plan.tree, arrays, plan.dtype, replace(plan.options, rule=self._rule))

    def upload(self, x: Array) -> None:
        """Bring samples to the device."""
        self._engine.upload(x, self._samples)

    def forward(self) -> None:
        """Transform samples to coefficients."""
        self._forward()

    def inverse(self) -> None:
        """Transform coefficients to samples."""
        self._inverse()

    def finish(self) -> None:
        """Wait for all that was started."""
        self._engine.finish()

    def download(self) -> list[Array]:
        """Return the coefficients in flat order: the approximation, then details, coarsest first."""
        shapes = self.plan.tree.flat_shapes
        return [self._downloaded(band, shape) for band, shape in zip(self._bands, shapes, strict=True)]

    def download_samples(self) -> Array:
        """Return what :meth:`inverse` has computed."""
        return self._downloaded(self._result, self.plan.shape)

    def _downloaded(self, array: Any, shape: tuple[int, ...]) -> Array:
        values: Array = self._engine.download(array, np.empty(shape, self.plan.dtype))
        return values
