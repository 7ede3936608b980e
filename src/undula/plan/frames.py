"""Frames: many arrays of one shape on a CUDA device, with transfers while others are transformed.

A few slots take turns. Each has pinned memory of the host, which the GPU reads and writes by itself, memory
on the GPU, and a stream on which a frame is uploaded, transformed and downloaded. Slots work side by side.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..arrays import numpy_array
from ..engines.memory import copy_bytes, empty
from ..engines.threads import run

__all__ = ["FrameSlot", "frames"]

Array = NDArray[Any]
Shape = tuple[int, ...]
ALIGNMENT = 256  # bytes


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
        # All results are in one block of memory, and come back by one copy.
        ends = list(accumulate(-(-_nbytes(*band) // ALIGNMENT) * ALIGNMENT for band in bands))
        self.source = self._pinned(_nbytes(*samples)).view(samples[1]).reshape(samples[0])
        self.downloaded = self._pinned(ends[-1])
        self.results = [
            self.downloaded[begin : begin + _nbytes(shape, dtype)].view(dtype).reshape(shape)
            for begin, (shape, dtype) in zip([0, *ends[:-1]], bands, strict=True)
        ]
        self.uploaded, self.computed = (
            device.allocate(array.nbytes, self.stream) for array in (self.source, self.downloaded)
        )
        scratch = prepared.program.scratch
        self.scratch = [device.allocate(n * np.dtype(kind).itemsize, self.stream) for n, kind in scratch]
        self.buffers = [
            self.uploaded.address,
            *(self.computed.address + begin for begin in [0, *ends[:-1]]),
            *(memory.address for memory in self.scratch),
        ]

    def _pinned(self, size: int) -> Array:
        pinned: Array = self.device.pinned(max(1, size))[:size]
        return pinned

    def start(self, x: Array) -> None:
        """Start to upload, transform and download a frame."""
        driver = self.device.driver
        self.device.activate()
        if x.flags.c_contiguous and x.dtype == self.source.dtype:
            copy_bytes(self.source.reshape(-1).view(np.uint8), x.reshape(-1).view(np.uint8))
        else:
            self.source[...] = x
        copies = (self.uploaded.address, self.source.ctypes.data, self.source.nbytes, self.stream)
        self.check(driver.cuMemcpyHtoDAsync(*copies))
        self.prepared.run(self.buffers, self.stream)
        copies = (self.downloaded.ctypes.data, self.computed.address, self.downloaded.nbytes, self.stream)
        self.check(driver.cuMemcpyDtoHAsync(*copies))

    def finish(self) -> list[Array]:
        """Return the results of the frame that was started."""
        self.device.activate()
        self.check(self.device.driver.cuStreamSynchronize(self.stream))
        copies = [empty(result.shape, result.dtype) for result in self.results]
        # The finest bands, which are the largest, come last.
        run(np.copyto, list(zip(copies, self.results, strict=True))[::-1])
        return copies


def _nbytes(shape: Shape, dtype: DTypeLike) -> int:
    return math.prod(shape) * np.dtype(dtype).itemsize


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
        if len(busy) == depth:
            slot = busy.popleft()
            yield slot.finish()
            idle.append(slot)
        slot = idle.popleft() if idle else new_slot()
        slot.start(x)
        busy.append(slot)
    while busy:
        yield busy.popleft().finish()
