"""DLPack: memory of ours handed to another library, without a copy.

The structures are those of DLPack 0.x: a capsule named ``dltensor`` around a managed tensor, which the new
owner deletes through its own function pointer.
"""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = ["capsule"]


class _Device(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int), ("device_id", ctypes.c_int))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


CODES = {"i": 0, "u": 1, "f": 2, "c": 5}
_alive: dict[int, Any] = {}  # what capsules speak of, until their owners delete it


def _forget(address: int) -> None:
    _alive.pop(address, None)


_delete = _DELETER(_forget)

# Capsules are named by their addresses here: one that is being destroyed must not be referred to again.
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


def _unclaimed(address: int) -> None:
    """A capsule that nobody took over (its name would be another) is gone."""
    if _is_valid(address, _NAME):
        _forget(_pointer(address, _NAME))


_destroy = _DESTRUCTOR(_unclaimed)


def capsule(array: Any, stream: int | None) -> Any:
    """A capsule of a DeviceArray; the taker's stream waits for the one that the array is made on."""
    from .runtime import check, device

    owner = device(array.number)
    owner.activate()
    driver = owner._driver
    if stream is not None and stream != -1 and stream != array.stream:
        event = check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        check(driver.cuEventRecord(event, array.stream))
        check(driver.cuStreamWaitEvent(stream, event, 0))
        check(driver.cuEventDestroy(event))
    elif stream is None:
        check(driver.cuStreamSynchronize(array.stream))
    shape, strides = (
        (ctypes.c_int64 * max(1, len(array.shape)))(*own) for own in (array.shape, array.strides)
    )
    made = _Managed()
    made.tensor.data = array.memory.address
    made.tensor.device = _Device(2, array.number)
    made.tensor.ndim = len(array.shape)
    made.tensor.dtype = _DataType(CODES[array.dtype.kind], 8 * array.dtype.itemsize, 1)
    made.tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    made.tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    made.deleter = _delete
    address = ctypes.addressof(made)
    _alive[address] = (made, shape, strides, array)
    return _new(address, _NAME, _destroy)
