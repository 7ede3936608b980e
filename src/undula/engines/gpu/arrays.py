"""Arrays on devices: which device holds them, which dtypes kernels read, and arrays without a library.

``undula.arrays`` names a device by a :class:`~undula.arrays.DeviceKey`; :func:`device_of` returns the device.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...arrays import HOST, ArrayLibrary, DeviceKey, contiguous, library_of
from ...arrays.dlpack import CUDA_DEVICE, capsule
from ...errors import ArgumentError, ArgumentTypeError

__all__ = [
    "READABLE",
    "READABLE_INTEGERS",
    "RESULTS",
    "DeviceArray",
    "common_device",
    "device_of",
    "measure_transfers",
    "timed_transfer",
]

READABLE = ("float32", "float64", "float16", "uint8", "uint16", "int16")  # dtypes of samples
READABLE_INTEGERS = ("uint8", "int8", "uint16", "int16", "int32")  # dtypes of samples of integer transforms
RESULTS = {
    "float64": "float64", "float16": "float16", "complex64": "complex64", "complex128": "complex128",
    "float32": "float32", "uint8": "float32", "uint16": "float32", "int16": "float32",
}  # fmt: skip

Shape = tuple[int, ...]


def device_of(key: DeviceKey) -> Any:
    """Return the device that a key stands for; equal keys give the same object."""
    if key.kind == "cuda":
        from .cuda import runtime as cuda

        return cuda.device(cuda.device_of_address(key.handle) if key.number is None else key.number)
    if key.kind == "opencl":
        from .opencl import runtime as opencl

        return opencl.device(*key.handle)
    raise ArgumentTypeError(
        f"arrays on {key.kind!r} cannot be transformed there; copy them to the host, or to a device of CUDA"
        " or OpenCL"
    )


def common_device(arrays: Sequence[Any]) -> tuple[ArrayLibrary, Any] | None:
    """Return the library and the device of arrays; None if they are on the host. None entries are ignored."""
    present = [x for x in arrays if x is not None]
    libraries = [library_of(x) for x in present]
    keys = [library.device(x) for library, x in zip(libraries, present, strict=True)]
    if keys.count(HOST) == len(keys):
        return None
    library = libraries[0]
    if libraries.count(library) == len(keys) == keys.count(keys[0]):
        return library, device_of(keys[0])
    if any(other is not library for other in libraries) or HOST in keys:
        kinds = sorted({type(x).__module__.partition(".")[0] for x in present})
        raise ArgumentError(f"all arrays must belong to one library, got {', '.join(kinds)}")
    devices = {id(device): device for device in map(device_of, set(keys))}
    if len(devices) > 1:
        raise ArgumentError("arrays are on different devices; move them to one device")
    return library, *devices.values()


# --- NumPy arrays on devices ----------------------------------------------------------------------


_transfers = threading.local()


@contextmanager
def measure_transfers() -> Iterator[Callable[[], float]]:
    """Measure how many seconds this thread copies NumPy arrays to devices and back.

    Within this context, devices are waited for before and after each copy.
    """
    before = getattr(_transfers, "seconds", None)
    _transfers.seconds = 0.0
    try:
        yield lambda: float(_transfers.seconds)
    finally:
        _transfers.seconds = before


@contextmanager
def timed_transfer(device: Any) -> Iterator[None]:
    """Measure a copy, if anyone asked for it by :func:`measure_transfers`."""
    if getattr(_transfers, "seconds", None) is None:
        yield
        return
    device.finish(device.queue)
    begin = time.perf_counter()
    yield
    device.finish(device.queue)
    _transfers.seconds += time.perf_counter() - begin


# --- arrays of our own ----------------------------------------------------------------------------


class DeviceArray:
    """An array on a GPU that belongs to no other library, and can be passed to others by DLPack.

    Results are such arrays if the caller's library cannot allocate arrays.
    """

    def __init__(
        self, memory: Any, shape: Shape, dtype: str, stream: int, number: int, strides: Shape | None = None
    ) -> None:
        self.memory, self.shape, self.dtype = memory, shape, np.dtype(dtype)
        self.stream, self.number = stream, number
        self.strides = contiguous(shape) if strides is None else strides  # in elements

    def transpose(self, axes: tuple[int, ...]) -> DeviceArray:
        """Return a view with permuted axes."""
        shape, strides = (tuple(values[axis] for axis in axes) for values in (self.shape, self.strides))
        return DeviceArray(self.memory, shape, str(self.dtype), self.stream, self.number, strides)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.memory.address, False),
            "strides": tuple(step * self.dtype.itemsize for step in self.strides),
            "version": 3,
            "stream": self.stream or 1,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA_DEVICE, self.number

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        from .cuda.runtime import device

        device(self.number).order_streams(self.stream, stream)
        return capsule(
            self.memory.address, self.shape, self.strides, self.dtype, self.__dlpack_device__(), self
        )

    def get(self) -> Any:
        """Return a copy as a NumPy array."""
        from .cuda.runtime import device

        elements = np.empty(math.prod(self.shape), self.dtype)
        device(self.number).download(self.memory.address, elements, self.stream)
        steps = tuple(step * self.dtype.itemsize for step in self.strides)
        return np.lib.stride_tricks.as_strided(elements, self.shape, steps).copy()
