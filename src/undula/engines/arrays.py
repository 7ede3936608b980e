"""Arrays as callers give them: which type they are transformed in, and whether results fit where they go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ArgumentError, ArgumentTypeError
from ..inputs import numpy_array, refuse_gradients
from .gpu.libraries import library_of

__all__ = ["as_array", "as_shape", "check_out", "given_array", "nested", "result_dtype"]

Array = NDArray[Any]


def as_array(data: ArrayLike, what: str = "data") -> Array:
    """An array of numbers, or an error."""
    if type(data) is np.ndarray and data.dtype.kind in "fc":
        return data
    refuse_gradients(data, what)
    library = library_of(data)
    if library is not None:
        raise ArgumentTypeError(
            f"{what} is an array of {library.name} on a device, and this works on the host; bring it there"
            " first (the transforms themselves take it where it is)"
        )
    return numpy_array(data, what)


def given_array(data: Any, what: str = "data") -> Any:
    """An array of numbers, on the host or on a device."""
    refuse_gradients(data, what)
    return as_array(data, what) if library_of(data) is None else data


_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_COMPLEX_SINGLE, _COMPLEX_DOUBLE = np.dtype(np.complex64), np.dtype(np.complex128)


def result_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type a transform is done in: float32 stays, float16 becomes it, integers become float64."""
    kind, size = dtype.kind, dtype.itemsize
    if kind == "c":
        return _COMPLEX_SINGLE if size <= 8 else _COMPLEX_DOUBLE
    return _SINGLE if kind == "f" and size <= 4 else _DOUBLE


def as_shape(shape: Sequence[int] | int | None, ndim: int) -> tuple[int, ...] | None:
    """A shape that the caller wants back, checked for being one."""
    if shape is None:
        return None
    wanted = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if len(wanted) != ndim or not all(isinstance(n, (int, np.integer)) for n in wanted):
        raise ArgumentError(f"shape must be {ndim} integers, those of the array transformed; got {shape!r}")
    return tuple(int(n) for n in wanted)


def nested(coeffs: Any) -> Iterable[Array]:
    """All arrays of coefficients, however they are nested."""
    if isinstance(coeffs, np.ndarray):
        yield coeffs
    elif isinstance(coeffs, Mapping):
        for part in coeffs.values():
            yield from nested(part)
    elif isinstance(coeffs, (list, tuple)):
        for part in coeffs:
            yield from nested(part)


def check_out(
    out: object, shape: tuple[int, ...], dtype: np.dtype[Any], inputs: Iterable[Array], what: str
) -> Array:
    """An array that results are to be written to, or an error that says why they cannot."""
    if not isinstance(out, np.ndarray):
        raise ArgumentTypeError(f"{what} must be a NumPy array, got {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype:
        raise ArgumentError(
            f"{what} must have shape {shape} and dtype {dtype}, got {out.shape} and {out.dtype}"
        )
    if not out.flags.writeable:
        raise ArgumentError(f"{what} must be writeable")
    if out.size and any(n > 1 and stride == 0 for n, stride in zip(out.shape, out.strides, strict=True)):
        raise ArgumentError(f"{what} must not share memory with itself, got strides {out.strides}")
    for x in inputs:
        if np.may_share_memory(x, out) and np.shares_memory(x, out):
            raise ArgumentError(f"{what} must not share memory with the input or with another result")
    return out
