"""Frames: many arrays of one shape on a CUDA device, with transfers while others are transformed.

A few slots take turns. Each has pinned memory of the host, which the GPU reads and writes by itself, memory
on the GPU, and a stream on which a frame is uploaded, transformed and downloaded. Slots work side by side.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..arrays import numpy_array
from ..engines.memory import copy_bytes, empty

__all__ = ["FrameSlot", "frames"]

Array = NDArray[Any]
Shape = tuple[int, ...]


class FrameSlot:
    """Room for one frame.

    Parameters
    ----------
    device : CudaDevice
    prepared : CudaProgram
        The program, prepared for arrays in C order.
    samples : (shape, dtype)
    bands : list of (shape, dtype)
        Shapes and dtypes of the bands, in flat order.
    """

    def __init__(
        self,
        device: Any,
        prepared: Any,
        samples: tuple[Shape, DTypeLike],
        bands: Sequence[tuple[Shape, DTypeLike]],
    ) -> None:
        from ..engines.gpu.cuda.runtime import check

        self.device, self.prepared, self.check = device, prepared, check
        driver = device.driver
        device.activate()
        self.stream = int(check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)))
        self.source = self._pinned(*samples)
        self.results = [self._pinned(*band) for band in bands]
        arrays = [self.source, *self.results]
        self.memories = [device.allocate(array.nbytes, self.stream) for array in arrays]
        scratch = prepared.program.scratch
        self.scratch = [device.allocate(n * np.dtype(kind).itemsize, self.stream) for n, kind in scratch]
        self.buffers = [memory.address for memory in (*self.memories, *self.scratch)]

    def _pinned(self, shape: Shape, dtype: DTypeLike) -> Array:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        array: Array = self.device.pinned(max(1, size))[:size].view(dtype).reshape(shape)
        return array

    def start(self, x: Array) -> None:
        """Start to upload, transform and download a frame."""
        driver = self.device.driver
        self.device.activate()
        if x.flags.c_contiguous and x.dtype == self.source.dtype:
            copy_bytes(self.source.reshape(-1).view(np.uint8), x.reshape(-1).view(np.uint8))
        else:
            self.source[...] = x
        samples, *bands = self.memories
        address = self.source.ctypes.data
        self.check(driver.cuMemcpyHtoDAsync(samples.address, address, self.source.nbytes, self.stream))
        self.prepared.run(self.buffers, self.stream)
        for result, band in zip(self.results, bands, strict=True):
            if result.nbytes:
                address = result.ctypes.data
                self.check(driver.cuMemcpyDtoHAsync(address, band.address, result.nbytes, self.stream))

    def finish(self) -> list[Array]:
        """Return the results of the frame that was started."""
        self.device.activate()
        self.check(self.device.driver.cuStreamSynchronize(self.stream))
        copies = [empty(result.shape, result.dtype) for result in self.results]
        for target, result in zip(copies, self.results, strict=True):
            copy_bytes(target.reshape(-1).view(np.uint8), result.reshape(-1).view(np.uint8))
        return copies


def frames(
    arrays: Iterable[Any], check: Callable[[Array], None], new_slot: Callable[[], FrameSlot], depth: int
) -> Iterator[list[Array]]:
    """Yield the results of each array, in order.

    Parameters
    ----------
    arrays : iterable
    check : function
        A function that raises an error for arrays of another shape or dtype.
    new_slot : function
        A function that returns another :class:`FrameSlot`.
    depth : int
        The number of slots.
    """
    idle: deque[FrameSlot] = deque()
    busy: deque[FrameSlot] = deque()
    for array in arrays:
        x = numpy_array(array)
        check(x)
        if len(busy) == max(1, depth):
            slot = busy.popleft()
            yield slot.finish()
            idle.append(slot)
        slot = idle.popleft() if idle else new_slot()
        slot.start(x)
        busy.append(slot)
    while busy:
        yield busy.popleft().finish()
