"""The filters ``undula_nd_lift`` and ``undula_zigzag`` of numcodecs, for Zarr 2, found by entry points.

Filters of Zarr 2 get the bytes of a chunk without its shape when they decode. So the configuration has the
shape and the dtype of chunks, besides what the codec of Zarr 3 has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..errors import ArgumentError, ArgumentTypeError, MissingExtraError, install_hint
from .nd_lift import VERSION, NdLift, coefficient_dtype
from .zigzag import folded, folded_dtype, unfolded

try:
    from numcodecs.abc import Codec
    from numcodecs.compat import ensure_ndarray, ndarray_copy
    from numcodecs.registry import register_codec
except ImportError as error:
    raise MissingExtraError(f"this filter needs numcodecs: {install_hint('scale')}") from error

__all__ = ["NdLiftFilter", "ZigZagFilter"]


class NdLiftFilter(Codec):  # type: ignore[misc] # numcodecs has no types
    """Lossless integer lifting of chunks, as a filter of Zarr 2 arrays.

    Parameters
    ----------
    dtype : dtype
        Of the samples: integers of any size and byte order.
    shape : sequence of int
        Shape of a chunk in memory, in C order. Chunks at the end of an array are as large as all others. For
        arrays in order ``F`` it is the reversed shape of chunks, and dimensions count from the last one.
    transforms : sequence of AxisLifting or of mappings
        Transforms along axes, in the order of encoding. A mapping has the keys ``dimension``, ``kind``
        (``delta``, ``haar`` or ``lift53``), ``levels``, ``group`` and ``axis`` of
        :class:`undula.codecs.AxisLifting`.
    version : str, default "0.1"
        Of the format ``nd_lift``.

    Examples
    --------
    >>> lifting = NdLiftFilter("<u2", (2, 3), [{"dimension": 1, "kind": "delta"}])
    >>> lifting.encode(np.array([[1, 2, 4], [7, 7, 7]], np.uint16)).tolist()
    [1, 1, 2, 7, 0, 0]
    """

    codec_id = "undula_nd_lift"

    def __init__(
        self, dtype: DTypeLike, shape: Sequence[int], transforms: Iterable[Any] = (), version: str = VERSION
    ) -> None:
        self.lift = NdLift(transforms, version)
        self.dtype = np.dtype(dtype)
        if not isinstance(shape, Sequence) or any(
            isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 0
            for length in shape
        ):
            raise ArgumentTypeError(f"{self.codec_id}: shape must be integers from 0 on, got {shape!r}")
        self.shape = tuple(map(int, shape))
        self.lift.check(len(self.shape), self.dtype)
        # Bytes in files are little-endian, as those of Zarr 3 usually are.
        self.stored_dtype = coefficient_dtype(self.dtype).newbyteorder("<")

    def encode(self, buf: Any) -> Any:
        """Return the coefficients of a chunk, as a line of numbers."""
        samples = self._chunk(buf, self.dtype)
        return self.lift.encode(samples).astype(self.stored_dtype, copy=False).reshape(-1)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Return the samples of a chunk, as a line of numbers."""
        samples = self.lift.decode(self._chunk(buf, self.stored_dtype), self.dtype)
        return ndarray_copy(samples.reshape(-1), out)

    def get_config(self) -> dict[str, Any]:
        """Return the entry in the metadata of an array."""
        return {
            "id": self.codec_id,
            **self.lift.configuration(),
            "dtype": self.dtype.str,
            "shape": list(self.shape),
        }

    def _chunk(self, buf: Any, dtype: np.dtype[Any]) -> Any:
        """Return the numbers of a buffer in the shape of a chunk."""
        line = ensure_ndarray(buf).reshape(-1, order="A")
        size = math.prod(self.shape) * dtype.itemsize
        if line.nbytes != size:
            raise ArgumentError(
                f"{self.codec_id}: a chunk of shape {self.shape} has {size} bytes"
                f" of {dtype}, got {line.nbytes}; pass the dtype of the array and the shape of its chunks"
            )
        return line.view(dtype).reshape(self.shape)


class ZigZagFilter(Codec):  # type: ignore[misc]
    """Signed integers as unsigned ones: 0, -1, 1, -2 … as 0, 1, 2, 3 …, as a filter of Zarr 2 arrays.

    Parameters
    ----------
    dtype : dtype, default "<i4"
        Of the signed integers. The default are the coefficients of :class:`NdLiftFilter` for samples of up to
        32 bits.

    Examples
    --------
    >>> ZigZagFilter("<i2").encode(np.array([0, -1, 1], np.int16)).tolist()
    [0, 1, 2]
    """

    codec_id = "undula_zigzag"

    def __init__(self, dtype: DTypeLike = "<i4") -> None:
        self.dtype = np.dtype(dtype)
        self.stored_dtype = folded_dtype(self.dtype).newbyteorder("<")

    def encode(self, buf: Any) -> Any:
        """Return the unsigned integers of a chunk, as a line of numbers."""
        numbers = ensure_ndarray(buf).reshape(-1, order="A").view(self.dtype)
        return folded(numbers).astype(self.stored_dtype, copy=False)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Return the signed integers of a chunk, as a line of numbers."""
        numbers = ensure_ndarray(buf).reshape(-1, order="A").view(self.stored_dtype)
        return ndarray_copy(unfolded(numbers, self.dtype), out)

    def get_config(self) -> dict[str, Any]:
        """Return the entry in the metadata of an array."""
        return {"id": self.codec_id, "dtype": self.dtype.str}


register_codec(NdLiftFilter)
register_codec(ZigZagFilter)
