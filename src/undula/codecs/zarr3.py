"""The codecs ``nd_lift`` and ``undula.zigzag`` of Zarr 3 arrays, found by entry points or by this import.

If nd-image-codecs is installed as well, ``zarr.config`` chooses between the two implementations::

    zarr.config.set({"codecs.nd_lift": "undula.codecs.zarr3.NdLiftCodec"})
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import ArgumentError, MissingExtraError, install_hint
from .nd_lift import NAME, VERSION, AxisLifting, NdLift, coefficient_dtype
from .zigzag import folded, folded_dtype, unfolded

try:
    from zarr.abc.codec import ArrayArrayCodec
    from zarr.codecs import BytesCodec
    from zarr.dtype import Int32, Int64, UInt8, UInt16, UInt32, UInt64
    from zarr.registry import register_codec
except ImportError as error:
    raise MissingExtraError(f"this codec needs Zarr 3.1 or later: {install_hint('scale')}") from error

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import NDBuffer

__all__ = ["CoefficientBytesCodec", "NdLiftCodec", "ZigZagCodec"]

ZIGZAG = "undula.zigzag"


@dataclass(frozen=True, kw_only=True)
class NativeInt32(Int32):
    """Integers of 32 bits, in the byte order of the machine where none is given.

    Zarr 3.1 configures the codec ``bytes`` for the dtype of the array, and not for that of the coefficients:
    for samples of one byte it gets no byte order, and writes and reads the one of the machine.
    """

    def to_native_dtype(self) -> Any:
        """Return the dtype of NumPy."""
        return super().to_native_dtype() if self.endianness else np.dtypes.Int32DType()


@dataclass(frozen=True, kw_only=True)
class NativeUInt32(UInt32):
    """Unsigned integers of 32 bits; see :class:`NativeInt32`."""

    def to_native_dtype(self) -> Any:
        """Return the dtype of NumPy."""
        return super().to_native_dtype() if self.endianness else np.dtypes.UInt32DType()


UNSIGNED: dict[str, Any] = {"uint8": UInt8, "uint16": UInt16, "uint32": NativeUInt32, "uint64": UInt64}


@dataclass(frozen=True)
class NdLiftCodec(ArrayArrayCodec):
    """Lossless integer lifting of chunks, as a filter of Zarr 3 arrays.

    Each chunk is transformed by one thread, during which other threads run.

    Parameters
    ----------
    transforms : sequence of AxisLifting or of mappings
        Transforms along axes, in the order of encoding. A mapping has the keys ``dimension``, ``kind``
        (``delta``, ``haar`` or ``lift53``), ``levels``, ``group`` and ``axis`` of
        :class:`undula.codecs.AxisLifting`.
    version : str, default "0.1"
        Of the format.

    Examples
    --------
    >>> codec = NdLiftCodec(transforms=[{"dimension": 0, "kind": "lift53", "levels": 2}])
    >>> codec.to_dict()["name"]
    'nd_lift'
    """

    is_fixed_size = True

    lift: NdLift

    def __init__(self, *, transforms: Iterable[Any] = (), version: str = VERSION) -> None:
        object.__setattr__(self, "lift", NdLift(transforms, version))

    @property
    def transforms(self) -> tuple[AxisLifting, ...]:
        """The transforms, in the order of encoding."""
        return self.lift.transforms

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the codec of an entry in the metadata of an array."""
        if data.get("name") != NAME:
            raise ArgumentError(f"expected the codec {NAME!r}, got {data.get('name')!r}")
        lift = NdLift.parse(data.get("configuration", {}))
        return cls(transforms=lift.transforms, version=lift.version)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in the metadata of an array."""
        return {"name": NAME, "configuration": self.lift.configuration()}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Raise an error unless arrays of this shape and dtype can be transformed."""
        self.lift.check(len(shape), dtype.to_native_dtype())

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        """Return what a chunk is after encoding."""
        plane = coefficient_dtype(chunk_spec.dtype.to_native_dtype())
        # A chunk of nothing but fill values does not have constant coefficients. Codecs behind this one only
        # need a number that is the same in both directions, and the format takes the fill value itself.
        fill = np.asarray(chunk_spec.fill_value).astype(plane)[()]
        return replace(chunk_spec, dtype=NativeInt32() if plane == np.int32 else Int64(), fill_value=fill)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Return the size of an encoded chunk in bytes."""
        dtype = chunk_spec.dtype.to_native_dtype()
        return input_byte_length // dtype.itemsize * coefficient_dtype(dtype).itemsize

    def _encode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        coefficients = self.lift.encode(chunk_array.as_numpy_array())
        return chunk_spec.prototype.nd_buffer.from_numpy_array(coefficients)

    def _decode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        samples = self.lift.decode(chunk_array.as_numpy_array(), chunk_spec.dtype.to_native_dtype())
        return chunk_spec.prototype.nd_buffer.from_numpy_array(samples)

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)


@dataclass(frozen=True)
class ZigZagCodec(ArrayArrayCodec):
    """Signed integers as unsigned ones: 0, -1, 1, -2 … as 0, 1, 2, 3 …, as a filter of Zarr 3 arrays.

    Behind :class:`NdLiftCodec` it helps compressors, which find fewer patterns in numbers with signs.

    Examples
    --------
    >>> ZigZagCodec().to_dict()
    {'name': 'undula.zigzag', 'configuration': {}}
    """

    is_fixed_size = True

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the codec of an entry in the metadata of an array."""
        if data.get("name") != ZIGZAG or data.get("configuration"):
            raise ArgumentError(f"expected the codec {ZIGZAG!r} without a configuration, got {data!r}")
        return cls()

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in the metadata of an array."""
        return {"name": ZIGZAG, "configuration": {}}

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        """Return what a chunk is after encoding."""
        dtype = chunk_spec.dtype.to_native_dtype()
        fill = folded(np.asarray(chunk_spec.fill_value, dtype))[()]
        return replace(chunk_spec, dtype=UNSIGNED[folded_dtype(dtype).name](), fill_value=fill)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Return the size of an encoded chunk in bytes."""
        return input_byte_length

    def _encode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return chunk_spec.prototype.nd_buffer.from_numpy_array(folded(chunk_array.as_numpy_array()))

    def _decode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        numbers = unfolded(chunk_array.as_numpy_array(), chunk_spec.dtype.to_native_dtype())
        return chunk_spec.prototype.nd_buffer.from_numpy_array(numbers)

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)


class CoefficientBytesCodec(BytesCodec):
    """The codec ``bytes`` with a byte order that is kept, for arrays of 8-bit samples in Zarr 3.1.

    Zarr 3.1 removes the byte order of such arrays, whose coefficients have 32 bits nevertheless. Other
    implementations and later versions of Zarr need it. Arrays are stored with the usual codec ``bytes``.

    Attributes
    ----------
    endian : {"little", "big"}, default "little"
        The byte order.

    Examples
    --------
    >>> CoefficientBytesCodec(endian="little").to_dict()
    {'name': 'bytes', 'configuration': {'endian': 'little'}}
    """

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        """Return the same codec."""
        return self


register_codec(NAME, NdLiftCodec)
register_codec(ZIGZAG, ZigZagCodec)
