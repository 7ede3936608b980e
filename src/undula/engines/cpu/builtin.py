"""Executables as built-in functions of Python, which take NumPy's arrays.

A call by way of ctypes, with the address and the layout of every array asked for in Python, takes several
times as long as a small transform. So the kernel ``play_arrays`` gets the objects themselves: it reads the
fields of the arrays in memory, and compares them with a table of what they have to be. Whether the fields are
where it reads them is checked once. If they are not, the functions refuse all arrays, and callers treat them
like arrays of other layouts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...arrays import ArrayView
from .builtin_layout import (
    ABSENT,
    AXES,
    DATA,
    DIMENSIONS,
    DTYPE,
    FLAGS,
    INT_BITS,
    KIND,
    KIND_BITS,
    LENGTHS,
    READ,
    STRIDES,
    VIEWS,
    WRITEABLE,
    WRITTEN,
)
from .executable import CpuExecutable
from .machine_code import ENTRY_NAME, kernel_address

__all__ = ["array_function"]


MAX_LOCKED_SAMPLES = 1 << 12  # Samples up to which handing over Python's lock takes longer than the work.
FASTCALL = 0x80  # Python's flag for functions that are called with an array of objects.
HEADER = object.__basicsize__ // 8  # words


_spare = ctypes.c_int64()  # The address of memory that no call uses at the moment, or 0.


def array_function(
    executable: CpuExecutable, dtype: np.dtype[Any], back: bool, views: Sequence[ArrayView | None]
) -> Callable[..., bool]:
    """Return an executable as a function of arrays.

    Parameters
    ----------
    executable : CpuExecutable
    dtype : dtype
        Dtype of the arrays.
    back : bool
        Whether to compute samples from bands.
    views : sequence of ArrayView or None
        Views of the samples, and of the bands in flat order; None for a band of zeros.

    Returns
    -------
    function
        To be called with the samples and all bands, None for a band of zeros. It returns False, and has done
        nothing, if an array has another type, shape, dtype or layout, is not aligned, cannot be written to,
        or shares memory with a result; and always, if there cannot be such a function.
    """
    if executable.has_functions or not _fields_are_known():
        return lambda *arrays: False
    tape, scratch, temporary = executable.single_tape() or (0, 0, 0)
    buffers = -(-scratch // 64) * 64
    samples = views[0]
    assert samples is not None
    ndim = len(samples.shape)
    table = [
        kernel_address("play_arrays", str(executable.dtype)),
        tape,
        buffers + 8 * (2 + len(views)) + 2 * 64,
        temporary,
        buffers,
        ctypes.addressof(_spare),
        executable.samples > MAX_LOCKED_SAMPLES,
        *_python_functions(),
        HEADER,
        id(np.ndarray),
        id(None),
        _words_at(id(dtype), HEADER + KIND + 1)[-1] & KIND_BITS,
        dtype.alignment - 1,
        ndim,
        len(views),
    ]
    assert len(table) == VIEWS
    for k, view in enumerate(views):
        table += _view_words(view, ndim, WRITTEN if (k == 0) == back else READ)
    function = _function(str(executable.dtype), _CallTable(table, executable))
    if tape:
        return function

    def run(*arrays: Any) -> bool:
        addresses = function(*arrays)
        if addresses:
            executable.run_at(addresses)
        return bool(addresses)

    return run


def _view_words(view: ArrayView | None, ndim: int, role: int) -> list[int]:
    if view is None:
        return [ABSENT] + [0] * (AXES - 1 + 2 * ndim)
    axes = list(zip(view.shape, view.byte_strides, strict=True))
    spans = [(n - 1) * stride for n, stride in axes]
    before = -sum(span for span in spans if span < 0)
    after = sum(span for span in spans if span > 0) + view.itemsize
    return [role, before, after, *(word for axis in axes for word in axis)]


class _CallTable(np.ndarray[Any, np.dtype[np.int64]]):
    """The table of a function, which keeps the executable whose tape it has the address of."""

    executable: CpuExecutable

    def __new__(cls, words: Sequence[int], executable: CpuExecutable) -> _CallTable:
        table = np.array(words, np.int64).view(cls)
        table.executable = executable
        return table


class _MethodDef(ctypes.Structure):
    """How Python describes a built-in function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


_methods: dict[str, _MethodDef] = {}


def _method(dtype: str) -> _MethodDef:
    """Return a description that lives forever: functions hold its address, and no reference to it."""
    # Several threads may come here at once; all get the one that stays.
    return _methods.setdefault(dtype, _MethodDef(b"run", kernel_address(ENTRY_NAME, dtype), FASTCALL, None))


def _function(dtype: str, table: _CallTable) -> Callable[..., Any]:
    """Return a built-in function that keeps a table, and gives it to the kernel."""
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    function: Callable[..., Any] = make(ctypes.addressof(_method(dtype)), table, None)
    return function


@cache
def _python_functions() -> list[int]:
    """Return the addresses of functions of Python, in the order of the table."""
    names = (
        "PyMem_RawMalloc", "PyMem_RawFree", "PyEval_SaveThread", "PyEval_RestoreThread", "PyBool_FromLong",
        "PyBytes_FromStringAndSize",
    )  # fmt: skip
    return [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in names]


def _words_at(start: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(start))


@cache
def _fields_are_known() -> bool:
    """Return whether arrays of NumPy have their fields where ``play_arrays`` reads them."""
    if np.ndarray.__basicsize__ < 8 * (HEADER + FLAGS + 1) or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    x = np.zeros((3, 4, 5))
    frozen = np.zeros(4, ">f4")
    frozen.flags.writeable = False
    return all(
        _fields_match(a) for a in (x, x.T, x[::-1, 1:, ::2], x.astype("c8"), np.zeros(3, "f4"), frozen)
    )


def _fields_match(x: Any) -> bool:
    kind = x.dtype
    fields = _words_at(id(x), HEADER + FLAGS + 1)
    if fields[HEADER - 1] != id(np.ndarray) or fields[HEADER + DATA] != x.__array_interface__["data"][0]:
        return False
    if fields[HEADER + DIMENSIONS] & INT_BITS != x.ndim or fields[HEADER + DTYPE] != id(kind):
        return False
    bytes_of_kind = _words_at(id(kind), HEADER + KIND + 1)[-1].to_bytes(8, "little", signed=True)
    return (
        bool(fields[HEADER + FLAGS] & WRITEABLE) == x.flags.writeable
        and bytes_of_kind[:3] == f"{kind.kind}{kind.char}{kind.byteorder}".encode()
        and int.from_bytes(bytes_of_kind[4:], "little") == kind.num
        and _words_at(fields[HEADER + LENGTHS], x.ndim) == list(x.shape)
        and _words_at(fields[HEADER + STRIDES], x.ndim) == list(x.strides)
    )
