"""Arrays as callers pass them: read where they are, or refused with an error that says what to do.

Transforms of values that PyTorch or JAX differentiates or traces are operators that these libraries know.
Anything else done to such a value would come back without a gradient, and training would go on with wrong
numbers. So functions that have no gradients refuse such values.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from numbers import Number
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ArgumentError, ArgumentTypeError
from .libraries import library_of
from .library import CHUNKED

__all__ = [
    "array_in_memory",
    "as_shape",
    "check_out",
    "differentiable_image",
    "given_array",
    "numpy_array",
    "operator_array",
    "refuse_gradients",
    "result_dtype",
    "traceable_array",
]

Array = NDArray[Any]


def refuse_gradients(data: Any, what: str = "data") -> None:
    """Raise an error for an array, or a sequence of numbers, that expects a gradient."""
    if isinstance(data, (list, tuple)):
        if "torch" in sys.modules or "jax" in sys.modules:  # Nobody else has gradients.
            for part in data:
                refuse_gradients(part, what)
    else:
        library_of(data).refuse_gradients(data, what)


def given_array(data: Any, what: str = "data") -> Any:
    """Return an array of numbers: of the caller's library if it is on a device, of NumPy otherwise."""
    if isinstance(data, (np.ndarray, list, tuple)):
        return numpy_array(data, what)
    library = library_of(data)
    library.refuse_gradients(data, what)
    return numpy_array(data, what) if library.device(data).on_host else library.wrap(data)


def array_in_memory(data: Any, what: str = "data") -> Any:
    """Return an array of numbers as :func:`given_array` does, and raise an error for Dask arrays."""
    x = given_array(data, what)
    _refuse_chunks(x, what)
    return x


def _refuse_chunks(data: Any, what: str) -> None:
    if library_of(data).device(data) == CHUNKED:
        raise ArgumentTypeError(
            f"{what} is a Dask array, and this works on arrays in memory; call its compute() first"
        )


def traceable_array(data: Any, what: str = "data") -> Any:
    """Return an array of numbers as :func:`given_array` does, and one that its library traces as it is."""
    if type(data) is not np.ndarray and library_of(data).is_traced(data):
        return data
    return given_array(data, what)


def differentiable_image(data: Any) -> Any:
    """Return an image as :func:`given_array` does, and a tensor that expects a gradient as it is."""
    library = library_of(data)
    if type(data) is np.ndarray or not library.is_differentiated(data):
        return given_array(data, "image")
    if library.dtype(data) not in ("float32", "float64"):
        raise ArgumentTypeError(
            f"image has dtype {library.dtype(data)}, in which filters have no gradients; convert it first"
        )
    return data


def operator_array(data: Any, what: str = "data") -> Any:
    """Return an array if operators of its library can transform it, or what :func:`given_array` returns."""
    if type(data) is not np.ndarray and library_of(data).has_operators(data):
        return data
    return given_array(data, what)


def numpy_array(data: ArrayLike, what: str = "data") -> Array:
    """Return an array of numbers that NumPy can read, in the byte order of the machine, or raise an error."""
    if type(data) is np.ndarray and data.dtype.kind in "biufc" and data.dtype.isnative:
        return data
    refuse_gradients(data, what)
    _refuse_chunks(data, what)
    if np.ma.is_masked(data):
        raise ArgumentTypeError(
            f"{what} has masked samples, which this cannot leave out; fill them first, by .filled(…), or use"
            " a filter that can, such as undula.denoise"
        )
    library = library_of(data)
    if not library.device(data).on_host:
        raise ArgumentTypeError(
            f"{what} is an array of {library.name} on a device, and this works on the host; bring arrays of a"
            " device to the host first (the transforms themselves take them where they are)"
        )
    try:
        x = library.to_numpy(data)
    except (TypeError, RuntimeError) as error:  # such as bfloat16, arrays on a GPU, what torch.func wraps
        raise ArgumentTypeError(f"{what} must be an array of numbers that NumPy can read: {error}") from None
    except ValueError as error:
        raise ArgumentError(f"{what} must be an array of numbers: {error}") from None
    if x.dtype.kind == "O":
        x = _numbers_of_objects(x)
    if x.dtype.kind not in "biufc":
        got = f"dtype {x.dtype}" if x.ndim else repr(data)[:60]
        hint = "; undula.io.read(path).pixels reads image files" if isinstance(data, (str, PurePath)) else ""
        raise ArgumentTypeError(f"{what} must be numbers, got {got}{hint}")
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


def _numbers_of_objects(x: Array) -> Array:
    """Return Python's numbers in an array of objects as float64 or complex128; the array if it has others."""
    if not x.size or not all(isinstance(item, Number) for item in x.flat):
        return x
    return x.astype(np.complex128 if any(isinstance(item, complex) for item in x.flat) else np.float64)


_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_COMPLEX_SINGLE, _COMPLEX_DOUBLE = np.dtype(np.complex64), np.dtype(np.complex128)


def result_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a transform: float32 stays, float16 becomes float32, integers become float64."""
    kind, size = dtype.kind, dtype.itemsize
    if kind == "c":
        return _COMPLEX_SINGLE if size <= 8 else _COMPLEX_DOUBLE
    return _SINGLE if kind == "f" and size <= 4 else _DOUBLE


def as_shape(shape: Sequence[int] | int | None, ndim: int) -> tuple[int, ...] | None:
    """Return the shape that the caller asks for, or raise an error unless it is ``ndim`` integers."""
    if shape is None:
        return None
    lengths = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    if len(lengths) != ndim or not all(isinstance(n, (int, np.integer)) for n in lengths):
        raise ArgumentError(f"shape must be {ndim} integers, those of the array transformed; got {shape!r}")
    return tuple(int(n) for n in lengths)


def check_out(
    out: object, shape: tuple[int, ...], dtype: np.dtype[Any], inputs: Iterable[Array], what: str
) -> Array:
    """Return an array on the host that results are to be written to, or raise an error that says why not."""
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
