"""Arrays of all libraries: which library an array belongs to, where it is, and how kernels see it.

``library_of(x)`` answers the first two questions by one object for each library, :class:`ArrayView` the
third. Nothing here imports an array library or calls a driver.
"""

from .inputs import (
    array_in_memory,
    as_shape,
    check_out,
    differentiable_image,
    given_array,
    numpy_array,
    operator_array,
    refuse_gradients,
    result_dtype,
    traceable_array,
)
from .libraries import DASK, JAX, NUMPY, TORCH, library_of, upload
from .library import CHUNKED, HOST, ArrayLibrary, DeviceKey
from .numbers import check_integer, check_number, is_integer, is_number
from .results import empty_like, keeps_library
from .view import COMPLEX, ArrayView, contiguous, dtype_name

__all__ = [
    "CHUNKED",
    "COMPLEX",
    "DASK",
    "HOST",
    "JAX",
    "NUMPY",
    "TORCH",
    "ArrayLibrary",
    "ArrayView",
    "DeviceKey",
    "array_in_memory",
    "as_shape",
    "check_integer",
    "check_number",
    "check_out",
    "contiguous",
    "differentiable_image",
    "dtype_name",
    "empty_like",
    "given_array",
    "is_integer",
    "is_number",
    "keeps_library",
    "library_of",
    "numpy_array",
    "operator_array",
    "refuse_gradients",
    "result_dtype",
    "traceable_array",
    "upload",
]
