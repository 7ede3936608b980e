"""A plan with its arrays where it runs: to measure moving and calculating, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import ondevice

if TYPE_CHECKING:
    from .plan import Plan

__all__ = ["Resident"]

Array = NDArray[Any]


class Resident:
    """The samples and coefficients of a plan, on the plan's device.

    On the CPU they are NumPy's arrays, and moving them is nothing. All but :meth:`download` only start what
    they do; :meth:`finish` waits for it.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        if not plan._on_device:
            self._samples: Any = np.zeros(plan.shape, plan.dtype)
            self._again: Any = np.zeros(plan.shape, plan.dtype)
            self._coeffs = plan.forward(self._samples)
            return
        library = plan._host
        self._device, queue = library.device(None), library.queue(None)
        self._queue = queue
        self._made, stages = plan._programs(False)
        self._made_back, _ = plan._programs(True)
        self._layouts = ondevice.layouts(stages, str(plan.dtype))
        self._samples = np.empty(plan.shape, plan._source)
        self._memory = self._device.allocate(self._samples.nbytes, queue)
        self._back = self._device.allocate(int(np.prod(plan.shape)) * plan.dtype.itemsize, queue)
        sizes = [int(np.prod(one.shape)) * np.dtype(one.dtype).itemsize for one in self._layouts]
        self._bands = [self._device.allocate(size, queue) for size in sizes]
        self._own = {
            back: [
                self._device.allocate(count * np.dtype(kind).itemsize, queue)
                for count, kind in made.program.own
            ]
            for back, made in ((False, self._made), (True, self._made_back))
        }

    def _buffers(self, back: bool) -> list[Any]:
        first = self._back if back else self._memory
        return [getattr(one, "address", one) for one in (first, *self._bands, *self._own[back])]

    def upload(self, x: Array) -> None:
        """Brings samples to the device."""
        if not self.plan._on_device:
            self._samples = x if x.dtype == self.plan.dtype else x.astype(self.plan.dtype)
        else:
            self._device.upload(np.ascontiguousarray(x), self._memory, self._queue)

    def forward(self) -> None:
        """Samples to coefficients."""
        if not self.plan._on_device:
            self.plan.forward(self._samples, out=self._coeffs)
        else:
            self._made.run(self._buffers(False), self._queue)

    def inverse(self) -> None:
        """Coefficients to samples."""
        if not self.plan._on_device:
            self.plan.inverse(self._coeffs, out=self._again)
        else:
            self._made_back.run(self._buffers(True), self._queue)

    def finish(self) -> None:
        """Waits for all that was started."""
        if self.plan._on_device:
            self._device.finish(self._queue)

    def download(self) -> Sequence[Array]:
        """The coefficients, one array after the other: the approximation, then details, coarsest first."""
        if not self.plan._on_device:
            from .plan import flat

            return flat(self._coeffs)
        made = [np.empty(one.shape, one.dtype) for one in self._layouts]
        for memory, array in zip(self._bands, made, strict=True):
            self._device.download(memory, array, self._queue)
        return made

    def download_samples(self) -> Array:
        """What :meth:`inverse` made."""
        if not self.plan._on_device:
            return np.asarray(self._again)
        made = np.empty(self.plan.shape, self.plan.dtype)
        self._device.download(self._back, made, self._queue)
        return made
