"""Frames: many arrays of one shape on a CUDA device, with transfers while others are transformed.

A few slots take turns. Each has memory that the GPU reads and writes by itself on the host, memory on the
GPU, and a stream on which a frame goes there, is transformed and comes back; what different slots do runs
side by side.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import ArrayView, numpy_array
from ..engines.cpu.memory import copy_bytes, empty

__all__ = ["frames"]

Array = NDArray[Any]


class _Slot:
    """Room for one frame."""

    def __init__(
        self, device: Any, made: Any, shape: tuple[int, ...], dtype: str, layouts: Sequence[ArrayView]
    ) -> None:
        from ..engines.gpu.cuda.runtime import check

        self.device, self.made, self.check = device, made, check
        driver = device.driver
        device.activate()
        self.stream = int(check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)))
        size = math.prod(shape) * np.dtype(dtype).itemsize
        self.source = device.pinned(max(1, size))[:size].view(dtype).reshape(shape)
        self.samples = device.memory(size, self.stream)
        self.results, self.bands = [], []
        for layout in layouts:
            wanted = math.prod(layout.shape) * np.dtype(layout.dtype).itemsize
            self.results.append(
                device.pinned(max(1, wanted))[:wanted].view(layout.dtype).reshape(layout.shape)
            )
            self.bands.append(device.memory(wanted, self.stream))
        self.own = [
            device.memory(n * np.dtype(kind).itemsize, self.stream) for n, kind in made.program.scratch
        ]
        memories = [self.samples, *self.bands, *self.own]
        self.buffers = [memory.address for memory in memories]

    def start(self, x: Array) -> None:
        """A frame on its way."""
        driver = self.device.driver
        self.device.activate()
        if x.flags.c_contiguous and x.dtype == self.source.dtype:
            copy_bytes(self.source.reshape(-1).view(np.uint8), x.reshape(-1).view(np.uint8))
        else:
            self.source[...] = x
        address = self.source.ctypes.data
        self.check(driver.cuMemcpyHtoDAsync(self.samples.address, address, self.source.nbytes, self.stream))
        self.made.run(self.buffers, self.stream)
        for result, band in zip(self.results, self.bands, strict=True):
            if result.nbytes:
                found = driver.cuMemcpyDtoHAsync(result.ctypes.data, band.address, result.nbytes, self.stream)
                self.check(found)

    def finish(self) -> list[Array]:
        """The results of the frame that was started."""
        self.device.activate()
        self.check(self.device.driver.cuStreamSynchronize(self.stream))
        made = [empty(result.shape, result.dtype) for result in self.results]
        for target, result in zip(made, self.results, strict=True):
            copy_bytes(target.reshape(-1).view(np.uint8), result.reshape(-1).view(np.uint8))
        return made


def frames(
    device: Any,
    made: Any,
    arrays: Iterable[Any],
    checked: Callable[[tuple[int, ...], Any], None],
    dtype: str,
    layouts: Sequence[ArrayView],
    depth: int,
) -> Iterator[list[Array]]:
    """The results of each array, in order."""
    slots: deque[_Slot] = deque()
    busy: deque[_Slot] = deque()
    for array in arrays:
        x = numpy_array(array)
        checked(x.shape, x.dtype)
        if len(busy) == max(1, depth):
            slot = busy.popleft()
            yield slot.finish()
            slots.append(slot)
        slot = slots.popleft() if slots else _Slot(device, made, x.shape, dtype, layouts)
        slot.start(x)
        busy.append(slot)
    while busy:
        yield busy.popleft().finish()
