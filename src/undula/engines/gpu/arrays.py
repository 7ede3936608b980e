"""Arrays on devices: which device holds them, how results are allocated beside them, and what kernels read.

``undula.arrays`` knows the libraries of arrays. Here their keys of devices become devices, and
:class:`DeviceArrays` joins a library and a device for the engine. :class:`UploadedArrays` are NumPy arrays
that are copied to a device and back.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...arrays import COMPLEX, NUMPY, ArrayBackend, ArrayView, DeviceKey, contiguous, get_backend
from ...arrays.dlpack import CUDA_DEVICE, capsule
from ...errors import ArgumentError, ArgumentTypeError
from ..cpu import empty

__all__ = [
    "READABLE",
    "RESULTS",
    "DeviceArray",
    "DeviceArrays",
    "UploadedArrays",
    "common_arrays",
    "device_of",
    "moves",
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


class DeviceArrays:
    """The arrays of one library on one device.

    Parameters
    ----------
    library : ArrayBackend
    device : object
        As :func:`device_of` returns it.
    """

    uploaded = False  # Whether arrays are copied to the device, and results back.

    def __init__(self, library: ArrayBackend, device: Any) -> None:
        self.library, self.device = library, device

    @property
    def backend(self) -> str:
        """The backend of the device, ``"cuda"`` or ``"opencl"``."""
        name: str = self.device.dialect.name
        return name

    def queue(self, x: Any) -> Any:
        """Return the queue on which an array is transformed."""
        return self.library.queue(x)

    def view(self, x: Any) -> ArrayView:
        """Return an array as kernels see it; complex numbers are pairs."""
        return self.library.view(x).as_pairs()

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        """Allocate a result, by the library of the caller if it can."""
        if self.library.allocates:
            return self.library.empty(shape, dtype, like)
        queue = self.queue(like)
        memory = self.device.allocate(math.prod(shape) * np.dtype(dtype).itemsize, queue)
        return DeviceArray(memory, shape, dtype, queue, self.device.number)

    def samples(self, x: Any, what: str = "data") -> Any:
        """Return the array, converted if kernels cannot read its dtype."""
        x = self.library.materialize(x)
        name = self.library.dtype(x)
        if name in READABLE or name in COMPLEX:
            return x
        if name in ("bool", "int8", "uint32", "int32", "uint64", "int64"):
            return self.library.convert(x, "float64")
        raise ArgumentTypeError(
            f"{what} has dtype {name}, which kernels cannot read; convert it to one of"
            f" {', '.join((*READABLE, *COMPLEX))}"
        )

    def integers(self, x: Any, what: str = "data") -> Any:
        """Return the array, or raise an error unless kernels can lift its integers."""
        x = self.library.materialize(x)
        name = self.library.dtype(x)
        if name in READABLE_INTEGERS:
            return x
        raise ArgumentTypeError(
            f"{what} has dtype {name}; kernels support {', '.join(READABLE_INTEGERS)}: convert the array, or"
            " move it to the host, which supports 64-bit integers"
        )

    def check(self, x: Any, what: str) -> None:
        """Raise an error unless results can be written to an array."""
        library = get_backend(x)
        if library is not self.library:
            raise ArgumentTypeError(
                f"{what} must be an array of {self.library.name}, like the others; got {type(x).__name__}"
            )
        library.check_writable(x, what)
        if device_of(library.device(x)) is not self.device:
            raise ArgumentError(f"{what} is on another device than the other arrays")

    def finished(self, results: Any, like: Any) -> Any:
        """Return results, however nested, as arrays of the caller's library."""
        return self.library.restore(results, like)


def common_arrays(arrays: Sequence[Any]) -> DeviceArrays | None:
    """Return the library and device of arrays; None if they are on the host. None entries are ignored."""
    present = [x for x in arrays if x is not None]
    libraries = [get_backend(x) for x in present]
    keys = [library.device(x) for library, x in zip(libraries, present, strict=True)]
    if all(key.on_host for key in keys):
        return None
    library = libraries[0]
    if any(other is not library for other in libraries) or any(key.on_host for key in keys):
        kinds = sorted({type(x).__module__.partition(".")[0] for x in present})
        raise ArgumentError(f"all arrays must belong to one library, got {', '.join(kinds)}")
    devices = {id(device): device for device in map(device_of, set(keys))}
    if len(devices) > 1:
        raise ArgumentError("arrays are on different devices; move them to one device")
    return DeviceArrays(library, *devices.values())


# --- NumPy arrays on devices ----------------------------------------------------------------------


_transfers = threading.local()


@contextmanager
def moves() -> Iterator[Callable[[], float]]:
    """Measure how many seconds this thread copies NumPy arrays to devices and back.

    Within this context, devices are waited for before and after each copy.
    """
    before = getattr(_transfers, "seconds", None)
    _transfers.seconds = 0.0
    try:
        yield lambda: float(_transfers.seconds)
    finally:
        _transfers.seconds = before


class UploadedArrays(DeviceArrays):
    """NumPy arrays that are copied to a device, and whose results are copied back.

    Results are views of memory of the device until they are finished.
    """

    uploaded = True

    def __init__(self, device: Any) -> None:
        super().__init__(NUMPY, device)

    def queue(self, x: Any) -> Any:
        """Return the queue of the device: NumPy has none."""
        return self.device.queue

    def view(self, x: Any) -> ArrayView:
        """Return a result, or copy an array to the device."""
        if isinstance(x, ArrayView):
            return x.as_pairs()
        array = np.ascontiguousarray(x)
        view = self.empty(array.shape, str(array.dtype), array)
        with self._timed():
            self.device.upload(array, view.owner, self.queue(x))
        return view.as_pairs()

    def empty(self, shape: Shape, dtype: str, like: Any) -> ArrayView:
        """Allocate memory of the device for a result."""
        memory = self.device.allocate(math.prod(shape) * np.dtype(dtype).itemsize, self.queue(like))
        return ArrayView.contiguous(getattr(memory, "address", memory), shape, dtype, owner=memory)

    def samples(self, x: Any, what: str = "data") -> Any:
        """Return the array, in the byte order of the machine and of a dtype that kernels read."""
        if str(x.dtype) in RESULTS:
            return x
        native = x.dtype.newbyteorder("=")
        if str(native) not in RESULTS:
            native = np.dtype(np.complex128 if native.kind == "c" else np.float64)
        return x.astype(native)

    def integers(self, x: Any, what: str = "data") -> Any:
        """Return the array, in the byte order of the machine."""
        return super().integers(x.astype(x.dtype.newbyteorder("="), copy=False), what)

    def finished(self, results: Any, like: Any) -> Any:
        """Return results as NumPy arrays."""
        if isinstance(results, dict):
            return {key: self.finished(part, like) for key, part in results.items()}
        if isinstance(results, list):
            return [self.finished(part, like) for part in results]
        array = empty(results.shape, np.dtype(results.dtype))
        with self._timed():
            self.device.download(results.owner, array, self.device.queue)
        return array

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Measure a copy, if anyone asked for it by :func:`moves`."""
        if getattr(_transfers, "seconds", None) is None:
            yield
            return
        self.device.finish(self.device.queue)
        begin = time.perf_counter()
        yield
        self.device.finish(self.device.queue)
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
