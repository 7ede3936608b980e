"""Arrays of all libraries: which library an array belongs to, where it is, and how kernels see it.

``get_backend(x)`` answers the first two questions by one object for each library, :class:`ArrayView` the
third. Nothing here imports an array library or calls a driver.
"""

from .backends import HOST, NUMPY, ArrayBackend, DeviceKey, get_backend, upload
from .inputs import (
    as_shape,
    check_out,
    given_array,
    numpy_array,
    refuse_gradients,
    result_dtype,
)
from .view import COMPLEX, ArrayView, contiguous, dtype_name

__all__ = [
    "COMPLEX",
    "HOST",
    "NUMPY",
    "ArrayBackend",
    "ArrayView",
    "DeviceKey",
    "as_shape",
    "check_out",
    "contiguous",
    "dtype_name",
    "get_backend",
    "given_array",
    "numpy_array",
    "refuse_gradients",
    "result_dtype",
    "upload",
]
