"""The interface to an array library: what its class in :mod:`undula.arrays.libraries` has to know.

The methods of :class:`ArrayLibrary` in their order:

- ``module`` and ``array_type`` name the class of its arrays; only ``upload`` imports the module;
- ``device`` tells where an array is: on the host, on a GPU, or in an OpenCL context;
- ``is_traced`` tells whether the library differentiates, traces or batches what is done with an array, which
  then has to be transformed by operators that the library knows, ``has_operators`` whether it can be,
  ``is_differentiated`` whether that is all that the library does, and ``refuse_gradients`` raises an error
  for arrays whose gradients would be lost;
- ``shape``, ``dtype``, ``strides`` (in elements) and ``buffer`` describe an array, and ``view`` all of it;
- ``layout_keys`` change when an array is reshaped or converted in place, or expects a gradient;
- ``queue`` is the caller's stream or queue, and ``events`` what else to wait for;
- ``empty`` allocates beside an array, ``convert``, ``transpose`` and ``copy`` do what they say;
- ``to_numpy`` reads an array on the host, and copies one of a device there; ``upload`` copies to a device;
- ``wrap`` and ``materialize`` make an array readable, ``restore`` makes results the caller's kind of arrays;
- ``namespace`` has the functions of the array API, for filters.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, ArgumentTypeError
from .view import ArrayView, Shape, contiguous, dtype_name

__all__ = ["CHUNKED", "HOST", "MAX_ALIGNMENT", "ArrayLibrary", "DeviceKey", "element_strides"]

MAX_ALIGNMENT = 16  # bytes; kernels access no wider words


class DeviceKey(NamedTuple):
    """Where an array is, for anyone to map to a device.

    Parameters
    ----------
    kind : str
        ``"host"``, ``"cuda"``, ``"opencl"``, ``"chunks"`` for Dask, or another name that a library gives to a
        device.
    number : int, optional
        Number of the GPU.
    handle : object, optional
        The context and the device of OpenCL; the address of an array on a GPU that only the driver knows.
    """

    kind: str
    number: int | None = None
    handle: Any = None

    @property
    def on_host(self) -> bool:
        """Whether NumPy can read arrays there."""
        return self.kind == "host"


HOST = DeviceKey("host")
CHUNKED = DeviceKey("chunks")  # of Dask, wherever its workers are


class ArrayLibrary(ABC):
    """What has to be known of an array library. Instances have no state; every method takes an array.

    Attributes
    ----------
    name : str
        Name of the library, for messages.
    module, array_type : str
        The class of its arrays.
    allocates : bool
        Whether ``empty`` can allocate on a device; otherwise the engine does.
    """

    name = ""
    module = ""
    array_type = ""
    allocates = True

    def owns(self, x: Any) -> bool:
        """Return whether this is an array of the library: whoever has one has imported the library."""
        kind = getattr(sys.modules.get(self.module), self.array_type, None)
        return kind is not None and isinstance(x, kind)

    @abstractmethod
    def device(self, x: Any) -> DeviceKey:
        """Return where an array is."""

    def is_traced(self, x: Any) -> bool:
        """Return whether an array has to be transformed by operators that the library knows."""
        return False

    def has_operators(self, x: Any) -> bool:
        """Return whether an array can be transformed by such operators as it is."""
        return self.is_traced(x)

    def is_differentiated(self, x: Any) -> bool:
        """Return whether the library runs functions of an array as they come, and records their gradients."""
        return False

    def refuse_gradients(self, x: Any, what: str) -> None:  # noqa: B027 (most libraries have no gradients)
        """Raise an error for an array that expects a gradient, where none is computed."""

    def shape(self, x: Any) -> Shape:
        """Return the shape of an array."""
        return tuple(map(int, x.shape))

    def dtype(self, x: Any) -> str:
        """Return the name of an array's dtype, as NumPy spells it."""
        return dtype_name(x.dtype)

    def strides(self, x: Any) -> Shape:
        """Return the strides in elements; those of axes of one sample do not matter."""
        if x.flags.c_contiguous:
            return contiguous(self.shape(x))
        return element_strides(x.strides, x.dtype.itemsize)

    @abstractmethod
    def buffer(self, x: Any) -> Any:
        """Return the address of the first element, or the handle of the buffer."""

    def view(self, x: Any) -> ArrayView:
        """Return an array as kernels see it."""
        address = self.buffer(x)
        alignment = math.gcd(address, MAX_ALIGNMENT)
        return ArrayView(address, self.shape(x), self.strides(x), self.dtype(x), 0, alignment, x)

    def layout_keys(self, arrays: Sequence[Any]) -> list[Any]:
        """Return a key of each array for its shape, strides and dtype, quickly."""
        return [(x.shape, x.strides, x.dtype) for x in arrays]

    def queue(self, x: Any) -> Any:
        """Return the caller's current stream or queue; None on the host."""
        return None

    def events(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the events after which arrays may be read, for queues that do not ensure the order."""
        return []

    def add_event(self, arrays: Sequence[Any], event: Any) -> None:  # noqa: B027 (most libraries have none)
        """Attach the event after which arrays may be read."""

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        """Allocate an array where another one is."""
        raise NotImplementedError(f"the engine allocates results for arrays of {self.name}")

    def convert(self, x: Any, dtype: str) -> Any:
        """Return an array of another dtype."""
        return x.astype(dtype)

    def transpose(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Return a view with permuted axes."""
        return x.transpose(axes)

    def copy(self, x: Any) -> Any:
        """Return a copy in the same place."""
        return x.copy()

    def to_numpy(self, x: Any) -> NDArray[Any]:
        """Return a NumPy array with the same samples, without a copy if the array is on the host."""
        return np.asarray(x)

    def upload(self, x: NDArray[Any], number: int) -> Any:
        """Copy a NumPy array to a GPU and wait; None if the library cannot, or is not installed."""
        return None

    def wrap(self, x: Any) -> Any:
        """Return an array of a device as an object with a shape and a dtype; most arrays are that already."""
        return x

    def materialize(self, x: Any) -> Any:
        """Return an array whose memory holds its values, so that kernels can read it."""
        return x

    def check_writable(self, x: Any, what: str) -> None:  # noqa: B027 (most arrays can be written to)
        """Raise an error for an array that results must not be written to."""

    def restore(self, results: Any, like: Any) -> Any:
        """Return results, however nested, as arrays of the caller's library.

        Parameters
        ----------
        results : array, or nested lists, tuples and dictionaries of them
            NumPy arrays, or arrays that the engine allocated on a device.
        like : array
            What the caller passed.
        """
        return results

    def namespace(self, x: Any) -> Any:
        """Return the functions of the array API for arrays of the library."""
        import array_api_compat

        if not array_api_compat.is_array_api_obj(x):
            raise ArgumentTypeError(
                f"filters on a device work on arrays of CuPy, PyTorch or JAX, got an array of {self.name};"
                " convert it with from_dlpack, which shares its memory, or copy it to the host"
            )
        return array_api_compat.array_namespace(x)


def element_strides(strides: Sequence[int], itemsize: int) -> Shape:
    """Return strides in elements, of strides in bytes."""
    if any(step % itemsize for step in strides):
        raise ArgumentError(
            f"strides {tuple(strides)} must be multiples of the size of an element, {itemsize} bytes; copy"
            " the array"
        )
    return tuple(step // itemsize for step in strides)
