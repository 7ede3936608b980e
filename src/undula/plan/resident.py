"""A plan with its arrays where it runs: to measure moving and calculating, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .plan import Plan

__all__ = ["Resident"]

Array = NDArray[Any]


class Resident:
    """The samples and coefficients of a plan, on the plan's device.

    On the CPU they are NumPy's arrays, and moving them is nothing. All but :meth:`download` only start what
    they do; :meth:`finish` waits for it.

    Parameters
    ----------
    plan : Plan
    rule, limit : str and float, optional
        What is done to details on the way back, and its threshold, the same for all.
    """

    def __init__(self, plan: Plan, rule: str | None = None, limit: float = 0.0) -> None:
        self.plan = plan
        self._rule: dict[str, Any] = {}
        if rule is not None:
            kind = np.float64 if plan.dtype == np.float64 else np.float32
            limits = np.full((plan.level, 2, 2 ** len(plan.axes) - 1), limit, kind)
            self._rule = {"rule": rule, "limits": limits}
        if not plan.on_device:
            self._samples: Any = np.zeros(plan.shape, plan.dtype)
            self._again: Any = np.zeros(plan.shape, plan.dtype)
            self._coeffs = plan.forward(self._samples)
            return
        library = plan.host
        self._device, queue = library.device, library.queue(None)
        self._queue = queue
        self._made = plan.program(False)
        self._layouts = plan.layouts
        self._samples = np.empty(plan.shape, plan.source_dtype)
        self._memory = self._device.allocate(self._samples.nbytes, queue)
        self._back = self._device.allocate(int(np.prod(plan.shape)) * plan.dtype.itemsize, queue)
        sizes = [int(np.prod(one.shape)) * np.dtype(one.dtype).itemsize for one in self._layouts]
        self._bands = [self._device.allocate(size, queue) for size in sizes]
        self._own = self._allocated(self._made)
        self._buffers = _addresses([self._memory, *self._bands, *self._own])

    def _allocated(self, made: Any) -> list[Any]:
        own = made.program.scratch
        return [self._device.allocate(n * np.dtype(kind).itemsize, self._queue) for n, kind in own]

    @cached_property
    def _inverse(self) -> tuple[Any, list[Any]]:
        """The program back, and its buffers."""
        rule = self._rule.get("rule")
        made = self.plan.program(True, rule)
        more = []
        if rule is not None:
            more = [self._device.allocate(self._rule["limits"].nbytes, self._queue)]
            self._device.upload(self._rule["limits"].reshape(-1), more[0], self._queue)
        own = self._allocated(made)
        self._kept = [*more, *own]
        return made, _addresses([self._back, *self._bands, *more, *own])

    def upload(self, x: Array) -> None:
        """Brings samples to the device."""
        if not self.plan.on_device:
            self._samples = x if x.dtype == self.plan.dtype else x.astype(self.plan.dtype)
        else:
            self._device.upload(np.ascontiguousarray(x), self._memory, self._queue)

    def forward(self) -> None:
        """Samples to coefficients."""
        if not self.plan.on_device:
            self.plan.forward(self._samples, out=self._coeffs)
        else:
            self._made.run(self._buffers, self._queue)

    def inverse(self) -> None:
        """Coefficients to samples."""
        if not self.plan.on_device:
            self.plan.inverse(self._coeffs, out=self._again, **self._rule)
        else:
            made, buffers = self._inverse
            made.run(buffers, self._queue)

    def finish(self) -> None:
        """Waits for all that was started."""
        if self.plan.on_device:
            self._device.finish(self._queue)

    def download(self) -> Sequence[Array]:
        """The coefficients, one array after the other: the approximation, then details, coarsest first."""
        if not self.plan.on_device:
            from .plan import flat

            return flat(self._coeffs)
        made = [np.empty(one.shape, one.dtype) for one in self._layouts]
        for memory, array in zip(self._bands, made, strict=True):
            self._device.download(memory, array, self._queue)
        return made

    def download_samples(self) -> Array:
        """What :meth:`inverse` made."""
        if not self.plan.on_device:
            return np.asarray(self._again)
        made = np.empty(self.plan.shape, self.plan.dtype)
        self._device.download(self._back, made, self._queue)
        return made


def _addresses(buffers: Sequence[Any]) -> list[Any]:
    return [getattr(one, "address", one) for one in buffers]
