"""DLPack: memory that libraries pass to each other without a copy.

The structures are those of DLPack 0.x: a capsule named ``dltensor`` around a managed tensor. The library that
takes it over renames the capsule and later calls the deleter of the tensor; a capsule that nobody took over
calls it when it is destroyed.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__all__ = ["CUDA_DEVICE", "HOST_DEVICES", "DLPackArray", "capsule"]

Shape = tuple[int, ...]

HOST_DEVICES = (1, 3)  # the CPU, and its memory that is pinned for CUDA
CUDA_DEVICE = 2
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class _DLDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int), ("device_id", ctypes.c_int))


class _DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _DLManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


_alive: dict[int, Any] = {}  # tensors and their arrays, until their owners delete them


def _forget(address: int) -> None:
    _alive.pop(address, None)


_delete = _DELETER(_forget)

# These functions take the address of a capsule: one that is being destroyed must not be referenced again.
_NAME = b"dltensor"
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def _on_destroy(address: int) -> None:
    """Free the tensor of a capsule that no library took over, since that would have changed its name."""
    if _is_valid(address, _NAME):
        _forget(_pointer(address, _NAME))


_destroy = _DESTRUCTOR(_on_destroy)


def capsule(
    address: int, shape: Shape, strides: Shape, dtype: np.dtype[Any], device: tuple[int, int], owner: Any
) -> Any:
    """Return a capsule of an array, which keeps ``owner`` alive; ``strides`` are in elements."""
    lengths, steps = ((ctypes.c_int64 * max(1, len(shape)))(*values) for values in (shape, strides))
    managed = _DLManagedTensor()
    managed.tensor.data = address
    managed.tensor.device = _DLDevice(*device)
    managed.tensor.ndim = len(shape)
    managed.tensor.dtype = _DLDataType(CODES[dtype.kind], 8 * dtype.itemsize, 1)
    managed.tensor.shape = ctypes.cast(lengths, ctypes.POINTER(ctypes.c_int64))
    managed.tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = _delete
    key = ctypes.addressof(managed)
    _alive[key] = (managed, lengths, steps, owner)
    return _new(key, _NAME, _destroy)


class DLPackArray:
    """An array on a GPU that its library passes by DLPack, with the CUDA array interface.

    The capsule is never taken over: it is held, and returns the memory when it is destroyed.

    Parameters
    ----------
    x : object
        An array with ``__dlpack__`` and ``__dlpack_device__``, on a CUDA device.
    stream : int
        Work on this stream waits until the array has been computed.
    """

    def __init__(self, x: Any, stream: int) -> None:
        self._capsule = x.__dlpack__(stream=stream)
        tensor = _DLManagedTensor.from_address(_pointer(id(self._capsule), _NAME)).tensor
        ndim = tensor.ndim
        kinds = {code: kind for kind, code in CODES.items()}
        kind, bits = kinds.get(tensor.dtype.code, "V"), tensor.dtype.bits
        self.shape = tuple(tensor.shape[:ndim])
        # NumPy has no name for other types, such as bfloat16, and none for vectors.
        self.dtype = np.dtype(f"{kind}{bits // 8}" if tensor.dtype.lanes == 1 else f"V{bits // 8}")
        steps = tuple(tensor.strides[:ndim]) if tensor.strides else None
        self.__cuda_array_interface__ = {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": ((tensor.data or 0) + tensor.byte_offset, True),
            "strides": None if steps is None else tuple(step * self.dtype.itemsize for step in steps),
            "version": 3,
            "stream": stream,
        }
        self._device = tuple(x.__dlpack_device__())

    def __dlpack_device__(self) -> tuple[int, int]:
        return int(self._device[0]), int(self._device[1])
