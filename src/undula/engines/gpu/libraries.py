"""Array libraries: how to find the memory and the stream of an array, and how to allocate.

A library is looked up by the type of an array, among the modules that are already imported: a caller with an
array of a library has imported it.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError, ArgumentTypeError, OutOfMemoryError
from ...inputs import is_tensor, refuse_gradients
from ..strides import contiguous
from .transform import Layout

__all__ = ["Held", "Library", "library_of"]

READABLE = ("float32", "float64", "float16", "uint8", "uint16", "int16")  # dtypes of samples
READABLE_INTEGERS = ("uint8", "int8", "uint16", "int16", "int32")  # dtypes of samples of integer transforms
COMPLEX = {"complex64": "float32", "complex128": "float64"}
RESULTS = {
    "float64": "float64", "float16": "float16", "complex64": "complex64", "complex128": "complex128",
    "float32": "float32", "uint8": "float32", "uint16": "float32", "int16": "float32",
}  # fmt: skip

Shape = tuple[int, ...]


class Held(NamedTuple):
    """An array as kernels see it: a buffer (an address, or an OpenCL buffer), its layout, and its owner."""

    buffer: Any
    layout: Layout
    array: Any


class Library(ABC):
    """The interface of array libraries."""

    backend = "cuda"
    name = ""

    @abstractmethod
    def device(self, x: Any) -> Any:
        """Return the device of an array."""

    @abstractmethod
    def queue(self, x: Any) -> Any:
        """Return the current stream or queue of the caller."""

    def shape(self, x: Any) -> Shape:
        """Return the shape of an array."""
        return tuple(int(n) for n in x.shape)

    def dtype(self, x: Any) -> str:
        """Return the name of an array's dtype."""
        return str(x.dtype)

    def layout_key(self, x: Any) -> tuple[Any, ...]:
        """Return a key for shape, strides and dtype; it changes if an array is reshaped in place."""
        return x.shape, x.strides, x.dtype

    @abstractmethod
    def held(self, x: Any) -> Held:
        """Return an array as kernels see it."""

    @abstractmethod
    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        """Allocate an array on the device of another one."""

    @abstractmethod
    def converted(self, x: Any, dtype: str) -> Any:
        """Return the array converted to another dtype."""

    def finished(self, results: Any, like: Any) -> Any:
        """Return results in the form that the caller expects."""
        return results

    def turned(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Return a view with permuted axes."""
        return x.transpose(axes)

    def events(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the events after which arrays may be read, for queues that do not ensure the order."""
        return []

    def add_event(self, arrays: Sequence[Any], event: Any) -> None:  # noqa: B027 (most libraries have no events)
        """Attach the event after which arrays may be read."""

    # --- common -----------------------------------------------------------------------------------

    def samples(self, x: Any, what: str = "data") -> Any:
        """Return the array, converted if kernels cannot read its dtype."""
        name = self.dtype(x)
        if name in READABLE or name in COMPLEX:
            return x
        if name in ("bool", "int8", "uint32", "int32", "uint64", "int64"):
            return self.converted(x, "float64")
        raise ArgumentTypeError(
            f"{what} has dtype {name}, which kernels cannot read; convert it to one of"
            f" {', '.join((*READABLE, *COMPLEX))}"
        )

    def integers(self, x: Any, what: str = "data") -> Any:
        """Return the array, or raise an error unless kernels can lift its integers."""
        name = self.dtype(x)
        if name in READABLE_INTEGERS:
            return x
        raise ArgumentTypeError(
            f"{what} has dtype {name}; kernels support {', '.join(READABLE_INTEGERS)}: convert the array, or"
            " move it to the host, which supports 64-bit integers"
        )

    def check(self, x: Any, like: Any, what: str) -> None:
        """Raise an error unless two arrays belong to the same library and device."""
        if library_of(x) is not self:
            raise ArgumentTypeError(
                f"{what} must be an array of {self.name}, like the others; got {type(x).__name__}"
            )
        if self.device(x) is not self.device(like):
            raise ArgumentError(f"{what} is on another device than the other arrays")


class DeviceLibrary(Library):
    """A library whose arrays are on a device."""

    @abstractmethod
    def buffer(self, x: Any) -> tuple[Any, int, int]:
        """Return the buffer, the index of the first element, and the alignment of that element in bytes."""

    @abstractmethod
    def strides(self, x: Any) -> Shape | None:
        """Return the strides in elements; None for a contiguous array."""

    def memory(self, x: Any) -> Any:
        """Return the buffer alone; this is called often."""
        return self.buffer(x)[0]

    def held(self, x: Any) -> Held:
        """Return an array as kernels see it; complex numbers are pairs."""
        shape, dtype, strides = self.shape(x), self.dtype(x), self.strides(x)
        strides = contiguous(shape) if strides is None else strides
        buffer, start, alignment = self.buffer(x)
        if dtype in COMPLEX:
            layout = Layout((*shape, 2), (*(2 * s for s in strides), 1), COMPLEX[dtype], 2 * start, alignment)
        else:
            layout = Layout(shape, strides, dtype, start, alignment)
        return Held(buffer, layout, x)


def alignment_of(address: int) -> int:
    """Return the largest power of two up to 16 that divides an address."""
    return math.gcd(address, 16) or 16


class _Cuda(DeviceLibrary):
    def device(self, x: Any) -> Any:
        from .cuda.runtime import device

        return device(self.number(x))

    @abstractmethod
    def number(self, x: Any) -> int:
        """Return the number of the GPU."""


class _Torch(_Cuda):
    name = "PyTorch"

    def number(self, x: Any) -> int:
        return int(x.device.index or 0)

    def queue(self, x: Any) -> int:
        stream: int = sys.modules["torch"].cuda.current_stream(x.device).cuda_stream
        return stream

    def dtype(self, x: Any) -> str:
        return str(x.dtype).removeprefix("torch.")

    def buffer(self, x: Any) -> tuple[Any, int, int]:
        address = x.data_ptr()
        return address, 0, alignment_of(address)

    def memory(self, x: Any) -> Any:
        return x.data_ptr()

    def layout_key(self, x: Any) -> tuple[Any, ...]:
        return x.shape, x.stride(), x.dtype, x.is_conj(), x.is_neg()

    def strides(self, x: Any) -> Shape | None:
        return None if x.is_contiguous() else tuple(x.stride())

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)

    def converted(self, x: Any, dtype: str) -> Any:
        return x.to(getattr(sys.modules["torch"], dtype))

    def turned(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.permute(axes)

    def samples(self, x: Any, what: str = "data") -> Any:
        return super().samples(x.detach().resolve_conj().resolve_neg(), what)


class _Cupy(_Cuda):
    name = "CuPy"

    def number(self, x: Any) -> int:
        return int(x.device.id)

    def queue(self, x: Any) -> int:
        stream: int = sys.modules["cupy"].cuda.get_current_stream().ptr
        return stream

    def buffer(self, x: Any) -> tuple[Any, int, int]:
        return x.data.ptr, 0, alignment_of(x.data.ptr)

    def memory(self, x: Any) -> Any:
        return x.data.ptr

    def strides(self, x: Any) -> Shape | None:
        return None if x.flags.c_contiguous else tuple(step // x.itemsize for step in x.strides)

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        with like.device:
            return sys.modules["cupy"].empty(shape, dtype)

    def converted(self, x: Any, dtype: str) -> Any:
        return x.astype(dtype)


class _OpenCL(DeviceLibrary):
    backend, name = "opencl", "PyOpenCL"

    def device(self, x: Any) -> Any:
        from .opencl.runtime import device

        return device(x.context, self.queue(x).device)

    def queue(self, x: Any) -> Any:
        if x.queue is None:
            raise ArgumentError("the PyOpenCL array has no queue; pass x.with_queue(queue)")
        return x.queue

    def buffer(self, x: Any) -> tuple[Any, int, int]:
        return x.base_data, x.offset // x.dtype.itemsize, 16

    def layout_key(self, x: Any) -> tuple[Any, ...]:
        return x.shape, x.strides, x.dtype, x.offset

    def strides(self, x: Any) -> Shape | None:
        return tuple(step // x.dtype.itemsize for step in x.strides)

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        try:
            return sys.modules["pyopencl.array"].empty(self.queue(like), shape, dtype)
        except sys.modules["pyopencl"].Error as error:
            size = math.prod(shape) * np.dtype(dtype).itemsize
            raise OutOfMemoryError(
                f"{self.device(like).name} cannot allocate {size} bytes ({error})"
            ) from error

    def converted(self, x: Any, dtype: str) -> Any:
        try:
            return x.astype(dtype)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ArgumentTypeError(
                f"PyOpenCL cannot convert this {x.dtype} array ({error}); pass one of"
                f" {', '.join(READABLE)}, or a contiguous array"
            ) from error

    def events(self, arrays: Sequence[Any]) -> list[Any]:
        return [event for x in arrays if x is not None for event in x.events]

    def add_event(self, arrays: Sequence[Any], event: Any) -> None:
        for x in arrays:
            x.add_event(event)


class DeviceArray:
    """An array on a GPU that belongs to no other library, and can be passed to others by DLPack.

    Results are such arrays if the caller's library cannot allocate arrays.
    """

    def __init__(
        self, buffer: Any, shape: Shape, dtype: str, stream: int, number: int, strides: Shape | None = None
    ) -> None:
        self.memory, self.shape, self.dtype = buffer, shape, np.dtype(dtype)
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
        return 2, self.number

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        from .cuda.dlpack import capsule

        return capsule(self, stream)

    def get(self) -> Any:
        """Return a copy as a NumPy array."""
        from .cuda.runtime import device

        elements = np.empty(math.prod(self.shape), self.dtype)
        device(self.number).download(self.memory.address, elements, self.stream)
        steps = tuple(step * self.dtype.itemsize for step in self.strides)
        return np.lib.stride_tricks.as_strided(elements, self.shape, steps).copy()


class _Interface(_Cuda):
    """Any array with ``__cuda_array_interface__``, such as those of Numba."""

    name = "the CUDA array interface"

    def number(self, x: Any) -> int:
        from .cuda.runtime import device_of_address

        return device_of_address(x.__cuda_array_interface__["data"][0])

    def queue(self, x: Any) -> int:
        return int(x.__cuda_array_interface__.get("stream") or 1)

    def shape(self, x: Any) -> Shape:
        return tuple(x.__cuda_array_interface__["shape"])

    def dtype(self, x: Any) -> str:
        return str(np.dtype(x.__cuda_array_interface__["typestr"]))

    def buffer(self, x: Any) -> tuple[Any, int, int]:
        address = x.__cuda_array_interface__["data"][0] or 0
        return address, 0, alignment_of(address)

    def layout_key(self, x: Any) -> tuple[Any, ...]:
        interface = x.__cuda_array_interface__
        return interface["shape"], interface.get("strides"), interface["typestr"]

    def strides(self, x: Any) -> Shape | None:
        strides = x.__cuda_array_interface__.get("strides")
        size = np.dtype(self.dtype(x)).itemsize
        return None if strides is None else tuple(step // size for step in strides)

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        stream = self.queue(like)
        memory = self.device(like).memory(size, stream)
        return DeviceArray(memory, shape, dtype, stream, self.number(like))

    def check(self, x: Any, like: Any, what: str) -> None:
        super().check(x, like, what)
        if x.__cuda_array_interface__["data"][1]:
            raise ArgumentError(f"{what} must be writeable")

    def converted(self, x: Any, dtype: str) -> Any:
        raise ArgumentTypeError(
            f"kernels cannot read dtype {self.dtype(x)}; convert the array to one of {', '.join(READABLE)}"
        )


class _Jax(_Interface):
    """JAX, whose stream is unknown and whose arrays are immutable; DLPack keeps the order of work."""

    name = "JAX"

    def queue(self, x: Any) -> int:
        return 1

    def check(self, x: Any, like: Any, what: str) -> None:
        raise ArgumentTypeError(f"{what} is a JAX array, which is immutable; omit out=")

    def samples(self, x: Any, what: str = "data") -> Any:
        array = super().samples(x, what)
        array.block_until_ready()  # The stream of JAX is unknown.
        return array

    def converted(self, x: Any, dtype: str) -> Any:
        return x.astype(dtype)

    def shape(self, x: Any) -> Shape:
        return tuple(x.shape)

    def finished(self, results: Any, like: Any) -> Any:
        return _mapped(results, sys.modules["jax"].dlpack.from_dlpack)


def _mapped(nested: Any, change: Any) -> Any:
    if isinstance(nested, dict):
        return {key: _mapped(part, change) for key, part in nested.items()}
    if isinstance(nested, (list, tuple)):
        return type(nested)(_mapped(part, change) for part in nested)
    return nested if nested is None else change(nested)


TORCH, CUPY, OPENCL_ARRAYS, JAX, INTERFACE = _Torch(), _Cupy(), _OpenCL(), _Jax(), _Interface()


def library_of(x: Any) -> Library | None:
    """Return the library of an array on a device; None for arrays that NumPy can read.

    Arrays that require gradients raise an error.
    """
    kind = type(x)
    if kind is np.ndarray or kind in (list, tuple, float, int):
        return None
    refuse_gradients(x, "an array")
    root = kind.__module__.partition(".")[0]
    if is_tensor(x):
        return TORCH if x.is_cuda else None
    if root == "cupy":
        return CUPY
    if root == "pyopencl":
        return OPENCL_ARRAYS if hasattr(x, "base_data") else None
    if root in ("jax", "jaxlib"):
        on_gpu = getattr(x, "devices", None) and next(iter(x.devices())).platform == "gpu"
        return JAX if on_gpu else None
    if isinstance(x, DeviceArray) or hasattr(x, "__cuda_array_interface__"):
        return INTERFACE
    return None


def same_library(arrays: Sequence[Any]) -> Library | None:
    """Return the library of arrays, None for NumPy; an error if they differ. None entries are ignored."""
    present = [x for x in arrays if x is not None]
    libraries = [library_of(x) for x in present]
    if not libraries:
        return None
    library = libraries[0]
    if any(other is not library for other in libraries):
        kinds = sorted({type(x).__module__.partition(".")[0] for x in present})
        raise ArgumentError(f"all arrays must belong to one library, got {', '.join(kinds)}")
    if library is not None and len({id(library.device(x)) for x in present}) > 1:
        raise ArgumentError("arrays are on different devices; move them to one device")
    return library
