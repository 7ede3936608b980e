"""One class for each array library, behind ``library_of(x)``.

To accept arrays of another library, write its class and add it to ``LIBRARIES``; :mod:`undula.arrays.library`
lists what it needs. Nothing here calls a driver: the GPU engine turns a :class:`DeviceKey` into the device
that it stands for.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, ArgumentTypeError, OutOfMemoryError
from .dlpack import CUDA_DEVICE, HOST_DEVICES, DLPackArray
from .library import CHUNKED, HOST, MAX_ALIGNMENT, ArrayLibrary, DeviceKey, element_strides
from .view import ArrayView, Shape, contiguous

__all__ = ["DASK", "JAX", "LIBRARIES", "NUMPY", "TORCH", "library_of", "mapped", "upload"]

DEFAULT_STREAM = 1  # of CUDA, on which work waits for all other streams


def mapped(nested: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to everything in nested dictionaries, sequences and dataclasses that is not None.

    What the function does not change is not copied.
    """
    if is_dataclass(nested) and not isinstance(nested, type):
        parts = {field.name: getattr(nested, field.name) for field in fields(nested) if field.init}
        changed = mapped(parts, change)
        return nested if changed is parts else replace(nested, **changed)
    if isinstance(nested, dict):
        items = [mapped(part, change) for part in nested.values()]
        if all(map(operator.is_, items, nested.values())):
            return nested
        return dict(zip(nested, items, strict=True))
    if isinstance(nested, (list, tuple)):
        items = [mapped(part, change) for part in nested]
        if all(map(operator.is_, items, nested)):
            return nested
        return type(nested)(*items) if hasattr(nested, "_fields") else type(nested)(items)
    return nested if nested is None else change(nested)


def _restored(
    results: Any, from_host: Callable[[NDArray[Any]], Any], from_dlpack: Callable[[Any], Any]
) -> Any:
    """Return nested results with arrays of NumPy, and those that an engine allocated on a GPU, converted."""

    def restore(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return from_host(x if x.flags.writeable else x.copy())  # Older versions of DLPack cannot tell.
        return from_dlpack(x) if library_of(x) is INTERFACE else x

    return mapped(results, restore)


def _torch_is_transforming(torch: Any) -> bool:
    """Return whether torch.func is at work: it wraps tensors in others that look alike."""
    core: Any = getattr(torch, "_C")  # noqa: B009 (there is no public function)
    return bool(getattr(core, "_are_functorch_transforms_active")())  # noqa: B009


def _imported(name: str) -> Any:
    """Import a library, for :func:`upload` alone; None if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


class NumpyLibrary(ArrayLibrary):
    """NumPy, and everything that it can read: lists, numbers, objects with ``__array__``."""

    name, module, array_type = "NumPy", "numpy", "ndarray"

    def device(self, x: Any) -> DeviceKey:
        return HOST

    def buffer(self, x: Any) -> int:
        return int(x.__array_interface__["data"][0])

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        return np.empty(shape, dtype)

    def namespace(self, x: Any) -> Any:
        return np


class TorchLibrary(ArrayLibrary):
    """PyTorch, on the host and on GPUs."""

    name, module, array_type = "PyTorch", "torch", "Tensor"

    def device(self, x: Any) -> DeviceKey:
        if x.is_cuda:
            return DeviceKey("cuda", int(x.device.index or 0))
        return HOST if x.device.type == "cpu" else DeviceKey(x.device.type, x.device.index)

    def is_traced(self, x: Any) -> bool:
        torch = sys.modules["torch"]
        if torch.compiler.is_compiling() or (x.requires_grad and torch.is_grad_enabled()):
            return True
        # NumPy has no bfloat16, and tensors of device "meta" have no memory. Subclasses other than parameters
        # are those of fake and functional tensors.
        if x.dtype == torch.bfloat16 or x.is_meta or type(x) not in (torch.Tensor, torch.nn.Parameter):
            return True
        return _torch_is_transforming(torch) or self._has_tangent(torch, x)

    def has_operators(self, x: Any) -> bool:
        torch = sys.modules["torch"]
        dtype = x.dtype
        exact = dtype is torch.float32 or dtype is torch.float64 or dtype.is_complex
        return (exact and (x.is_cpu or x.is_cuda) and x.is_contiguous()) or self.is_traced(x)

    def is_differentiated(self, x: Any) -> bool:
        torch = sys.modules["torch"]
        if not (x.requires_grad and torch.is_grad_enabled()) or torch.compiler.is_compiling():
            return False
        plain = type(x) in (torch.Tensor, torch.nn.Parameter)
        return plain and not _torch_is_transforming(torch) and not self._has_tangent(torch, x)

    def _has_tangent(self, torch: Any, x: Any) -> bool:
        return torch.autograd.forward_ad.unpack_dual(x).tangent is not None

    def refuse_gradients(self, x: Any, what: str) -> None:
        torch = sys.modules["torch"]
        if x.requires_grad and torch.is_grad_enabled():
            raise ArgumentTypeError(
                f"{what} is a tensor with requires_grad=True, and this function has no gradients (transforms"
                " do); pass its .detach(), or call this within torch.no_grad()"
            )
        if self._has_tangent(torch, x):
            raise ArgumentTypeError(
                f"{what} is a tensor with a tangent, and this function has no derivatives (transforms do);"
                " pass its .detach()"
            )

    def dtype(self, x: Any) -> str:
        return str(x.dtype).removeprefix("torch.")

    def strides(self, x: Any) -> Shape:
        return contiguous(self.shape(x)) if x.is_contiguous() else tuple(x.stride())

    def buffer(self, x: Any) -> int:
        return int(x.data_ptr())

    def layout_keys(self, arrays: Sequence[Any]) -> list[Any]:
        torch = sys.modules["torch"]
        differentiates = torch.is_grad_enabled()
        keys: list[Any] = [
            (x.shape, x.stride(), x.dtype, x.is_conj(), x.is_neg(), x.requires_grad and differentiates)
            for x in arrays
        ]
        # Tensors have tangents only within a level of forward differentiation, of which PyTorch tells nobody.
        if getattr(torch.autograd.forward_ad, "_current_level", 0) >= 0:
            keys += [self._has_tangent(torch, x) for x in arrays]
        return keys

    def queue(self, x: Any) -> int | None:
        return int(sys.modules["torch"].cuda.current_stream(x.device).cuda_stream) if x.is_cuda else None

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)

    def convert(self, x: Any, dtype: str) -> Any:
        return x.to(getattr(sys.modules["torch"], dtype))

    def transpose(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.permute(axes)

    def copy(self, x: Any) -> Any:
        return x.clone()

    def to_numpy(self, x: Any) -> NDArray[Any]:
        return np.asarray(self.materialize(x).cpu())

    def upload(self, x: NDArray[Any], number: int) -> Any:
        torch = _imported("torch")
        if torch is None or not torch.cuda.is_available():
            return None
        if x.dtype in (np.uint16, np.uint32, np.uint64):  # PyTorch has no arithmetic for these.
            x = x.astype(np.int64 if x.dtype == np.uint64 else f"i{2 * x.dtype.itemsize}")
        uploaded = torch.from_numpy(np.ascontiguousarray(x)).to(f"cuda:{number}")
        torch.cuda.synchronize(number)
        return uploaded

    def materialize(self, x: Any) -> Any:
        # Most tensors are returned as they are, so that a plan recognises the arrays of its last run.
        if x.requires_grad or x.is_conj() or x.is_neg():
            return x.detach().resolve_conj().resolve_neg()
        return x

    def restore(self, results: Any, like: Any) -> Any:
        torch = sys.modules["torch"]

        def restore(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return x
            # (PyTorch has no negative strides.)
            tensor = torch.from_numpy(x if min(x.strides, default=0) >= 0 else x.copy())
            return tensor if like.device.type == "cpu" else tensor.to(like.device)

        return mapped(results, restore)


class CupyLibrary(ArrayLibrary):
    """CuPy."""

    name, module, array_type = "CuPy", "cupy", "ndarray"

    def device(self, x: Any) -> DeviceKey:
        return DeviceKey("cuda", int(x.device.id))

    def buffer(self, x: Any) -> int:
        return int(x.data.ptr)

    def queue(self, x: Any) -> int:
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        with like.device:
            return sys.modules["cupy"].empty(shape, dtype)

    def to_numpy(self, x: Any) -> NDArray[Any]:
        return np.asarray(x.get())

    def restore(self, results: Any, like: Any) -> Any:
        with like.device:
            return mapped(
                results, lambda x: sys.modules["cupy"].asarray(x) if isinstance(x, np.ndarray) else x
            )

    def upload(self, x: NDArray[Any], number: int) -> Any:
        cupy = _imported("cupy")
        if cupy is None:
            return None
        with cupy.cuda.Device(number):
            uploaded = cupy.asarray(x)
            cupy.cuda.get_current_stream().synchronize()
        return uploaded


class OpenCLLibrary(ArrayLibrary):
    """PyOpenCL, on any OpenCL device."""

    name, module, array_type = "PyOpenCL", "pyopencl.array", "Array"

    def device(self, x: Any) -> DeviceKey:
        return DeviceKey("opencl", None, (x.context, self.queue(x).device))

    def buffer(self, x: Any) -> Any:
        return x.base_data

    def view(self, x: Any) -> ArrayView:
        offset = x.offset // x.dtype.itemsize
        return ArrayView(x.base_data, self.shape(x), self.strides(x), self.dtype(x), offset, MAX_ALIGNMENT, x)

    def strides(self, x: Any) -> Shape:
        size = x.dtype.itemsize  # The flags of these arrays would be computed anew each time.
        return tuple([step // size for step in x.strides])

    def layout_keys(self, arrays: Sequence[Any]) -> list[Any]:
        return [(x.shape, x.strides, x.dtype, x.offset) for x in arrays]

    def queue(self, x: Any) -> Any:
        if x.queue is None:
            raise ArgumentError("the PyOpenCL array has no queue; pass x.with_queue(queue)")
        return x.queue

    def events(self, arrays: Sequence[Any]) -> list[Any]:
        return [event for x in arrays if x is not None for event in x.events]

    def add_event(self, arrays: Sequence[Any], event: Any) -> None:
        for x in arrays:
            x.add_event(event)

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        queue = self.queue(like)
        try:
            return sys.modules["pyopencl.array"].empty(queue, shape, dtype)
        except sys.modules["pyopencl"].Error as error:
            size = math.prod(shape) * np.dtype(dtype).itemsize
            raise OutOfMemoryError(
                f"{queue.device.name.strip()} cannot allocate {size} bytes ({error})"
            ) from error

    def convert(self, x: Any, dtype: str) -> Any:
        try:
            return x.astype(dtype)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ArgumentTypeError(
                f"PyOpenCL cannot convert this {x.dtype} array to {dtype} ({error}); convert it first, or"
                " pass a contiguous array"
            ) from error

    def to_numpy(self, x: Any) -> NDArray[Any]:
        return np.asarray(x.get())


class InterfaceLibrary(ArrayLibrary):
    """Any array with ``__cuda_array_interface__``, such as those of Numba."""

    name = "the CUDA array interface"
    allocates = False

    def owns(self, x: Any) -> bool:
        return hasattr(x, "__cuda_array_interface__")

    def device(self, x: Any) -> DeviceKey:
        if hasattr(x, "__dlpack_device__"):
            return DeviceKey("cuda", int(x.__dlpack_device__()[1]))
        return DeviceKey("cuda", None, self.buffer(x))

    def shape(self, x: Any) -> Shape:
        return tuple(x.__cuda_array_interface__["shape"])

    def dtype(self, x: Any) -> str:
        return str(np.dtype(x.__cuda_array_interface__["typestr"]))

    def strides(self, x: Any) -> Shape:
        steps = x.__cuda_array_interface__.get("strides")
        if steps is None:
            return contiguous(self.shape(x))
        return element_strides(steps, np.dtype(self.dtype(x)).itemsize)

    def buffer(self, x: Any) -> int:
        return x.__cuda_array_interface__["data"][0] or 0

    def queue(self, x: Any) -> int:
        return int(x.__cuda_array_interface__.get("stream") or DEFAULT_STREAM)

    def convert(self, x: Any, dtype: str) -> Any:
        raise ArgumentTypeError(
            f"arrays of {self.name} cannot be converted here; pass {dtype} instead of {self.dtype(x)}"
        )

    def to_numpy(self, x: Any) -> NDArray[Any]:
        return np.asarray(x.copy_to_host() if hasattr(x, "copy_to_host") else x.get())

    def check_writable(self, x: Any, what: str) -> None:
        if x.__cuda_array_interface__["data"][1]:
            raise ArgumentError(f"{what} must be writeable")


class JaxLibrary(ArrayLibrary):
    """JAX, on the host and on GPUs; its arrays are immutable, and its streams are unknown."""

    name, module, array_type = "JAX", "jax", "Array"
    allocates = False

    def device(self, x: Any) -> DeviceKey:
        # The buffer, which also tells, can be read only from arrays in row-major order.
        device = next(iter(x.devices()))
        return DeviceKey("cuda", device.local_hardware_id) if device.platform == "gpu" else HOST

    def is_traced(self, x: Any) -> bool:
        """Return whether a value stands for an array within ``jit``, ``grad``, ``vmap`` and others."""
        return isinstance(x, getattr(getattr(sys.modules["jax"], "core", None), "Tracer", ()))

    def refuse_gradients(self, x: Any, what: str) -> None:
        if self.is_traced(x):
            raise ArgumentTypeError(
                f"{what} is a value that JAX traces within jit, grad or vmap, and this function takes arrays"
                " alone, without gradients; call it outside of them, or within jit by jax.pure_callback"
            )

    def strides(self, x: Any) -> Shape:
        return INTERFACE.strides(x)

    def buffer(self, x: Any) -> int:
        return INTERFACE.buffer(x)

    def queue(self, x: Any) -> int:
        return DEFAULT_STREAM

    def materialize(self, x: Any) -> Any:
        return x.block_until_ready()

    def check_writable(self, x: Any, what: str) -> None:
        raise ArgumentTypeError(f"{what} is a JAX array, which is immutable; omit out=")

    def restore(self, results: Any, like: Any) -> Any:
        jax = sys.modules["jax"]
        return _restored(
            results, lambda x: jax.device_put(x, next(iter(like.devices()))), jax.dlpack.from_dlpack
        )


class DLPackLibrary(ArrayLibrary):
    """Any other array with ``__dlpack__``; on a GPU it is read as :class:`DLPackArray`.

    Libraries with the array API, whose arrays have ``__array_namespace__``, get arrays of theirs as results.
    """

    name = "DLPack"
    allocates = False

    def owns(self, x: Any) -> bool:
        return hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")

    def device(self, x: Any) -> DeviceKey:
        kind, number = x.__dlpack_device__()
        if kind in HOST_DEVICES:
            return HOST
        return DeviceKey("cuda" if kind == CUDA_DEVICE else f"device type {int(kind)} of DLPack", int(number))

    def dtype(self, x: Any) -> str:
        return self.view(x).dtype

    def strides(self, x: Any) -> Shape:
        return self.view(x).strides

    def buffer(self, x: Any) -> int:
        return int(self.view(x).buffer)

    def view(self, x: Any) -> ArrayView:
        array = self.to_numpy(x) if self.device(x).on_host else self.wrap(x)
        return library_of(array).view(array)

    def to_numpy(self, x: Any) -> NDArray[Any]:
        if hasattr(x, "__array__"):
            try:
                return np.asarray(x)
            except (TypeError, RuntimeError):  # Some libraries do so only for arrays of the default device.
                pass
        return np.from_dlpack(x)

    def wrap(self, x: Any) -> Any:
        return DLPackArray(x, DEFAULT_STREAM)

    def restore(self, results: Any, like: Any) -> Any:
        if not hasattr(like, "__array_namespace__"):
            return results
        from_dlpack = like.__array_namespace__().from_dlpack

        def from_host(x: NDArray[Any]) -> Any:
            array, device = from_dlpack(x), like.device
            try:
                return array if array.device == device else array.to_device(device)
            except (TypeError, ValueError) as error:
                raise ArgumentTypeError(
                    f"results have dtype {x.dtype}, which arrays of this library cannot have on {device}"
                    f" ({error}); convert the data to float32 first"
                ) from None

        return _restored(results, from_host, from_dlpack)


class DaskLibrary(ArrayLibrary):
    """Dask: arrays in chunks, which are computed later, by any number of workers."""

    name, module, array_type = "Dask", "dask.array", "Array"
    allocates = False

    def device(self, x: Any) -> DeviceKey:
        return CHUNKED

    def buffer(self, x: Any) -> Any:
        raise ArgumentTypeError("the chunks of a Dask array have no common memory; call its compute() first")

    def wrap(self, x: Any) -> Any:
        if not isinstance(x.dtype, np.dtype) or x.dtype.kind not in "biufc":
            raise ArgumentTypeError(
                f"a Dask array must have chunks of NumPy or CuPy with numbers, got dtype {x.dtype}"
            )
        if isinstance(getattr(x, "_meta", None), np.ma.MaskedArray):
            raise ArgumentTypeError(
                "the chunks of this Dask array are masked arrays, whose masks would be lost; fill them first,"
                " by dask.array.ma.filled"
            )
        if any(math.isnan(n) for n in x.shape):
            raise ArgumentError(
                f"the chunks of this Dask array have unknown sizes, {x.shape}; call its"
                " compute_chunk_sizes() first"
            )
        return x


NUMPY, CUPY, TORCH, JAX = NumpyLibrary(), CupyLibrary(), TorchLibrary(), JaxLibrary()
OPENCL, INTERFACE, DLPACK, DASK = OpenCLLibrary(), InterfaceLibrary(), DLPackLibrary(), DaskLibrary()
# The first that owns an array is taken: libraries before protocols, which several of them support.
LIBRARIES: tuple[ArrayLibrary, ...] = (NUMPY, DASK, CUPY, TORCH, JAX, OPENCL, INTERFACE, DLPACK)
_by_type: dict[type, ArrayLibrary] = dict.fromkeys((np.ndarray, list, tuple, float, int), NUMPY)


def library_of(x: Any) -> ArrayLibrary:
    """Return the library of an array; NumPy's for everything that no other library owns.

    Parameters
    ----------
    x : array_like

    Examples
    --------
    >>> library_of(np.ones(3)).name, library_of([1, 2]).device([1, 2]).kind
    ('NumPy', 'host')
    """
    library = _by_type.get(type(x))
    if library is not None:
        return library
    for library in LIBRARIES:
        if library.owns(x):
            if library.module:  # The type alone does not tell whether an object supports a protocol.
                _by_type[type(x)] = library
            return library
    return NUMPY


def upload(x: NDArray[Any], number: int) -> Any:
    """Copy a NumPy array to a GPU by the first installed library that can; None if there is none."""
    copies = (library.upload(x, number) for library in LIBRARIES)
    return next((copy for copy in copies if copy is not None), None)
