"""DLPack: memory that is passed to another library without a copy.

The structures are those of DLPack 0.x: a capsule named ``dltensor`` around a managed tensor, which the new
owner deletes through its function pointer.
"""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = ["capsule"]


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


CODES = {"i": 0, "u": 1, "f": 2, "c": 5}
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


def capsule(array: Any, stream: int | None) -> Any:
    """Return a capsule of a DeviceArray; the consumer's stream waits for the stream of the array."""
    from .runtime import check, device

    owner = device(array.number)
    owner.activate()
    driver = owner.driver
    if stream is not None and stream != -1 and stream != array.stream:
        event = check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        check(driver.cuEventRecord(event, array.stream))
        check(driver.cuStreamWaitEvent(stream, event, 0))
        check(driver.cuEventDestroy(event))
    elif stream is None:
        check(driver.cuStreamSynchronize(array.stream))
    shape, strides = (
        (ctypes.c_int64 * max(1, len(array.shape)))(*values) for values in (array.shape, array.strides)
    )
    managed = _DLManagedTensor()
    managed.tensor.data = array.memory.address
    managed.tensor.device = _DLDevice(2, array.number)
    managed.tensor.ndim = len(array.shape)
    managed.tensor.dtype = _DLDataType(CODES[array.dtype.kind], 8 * array.dtype.itemsize, 1)
    managed.tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    managed.tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = _delete
    address = ctypes.addressof(managed)
    _alive[address] = (managed, shape, strides, array)
    return _new(address, _NAME, _destroy)
