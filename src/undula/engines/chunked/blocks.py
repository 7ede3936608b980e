"""Blocks: the tasks of a chunked transform, as workers run them.

A task gets chunks, or rims of them, puts the window of its block together, transforms that, and returns the
results that are free of the cuts. A block is described completely by itself, so that any worker can run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError
from ...lowering.nesting import flat_bands, keyed_bands
from ...lowering.spec import TransformSpec
from .. import cpu
from ..dispatch import decompose, engine_for, grown, recompose, surely_fit
from ..memory import empty
from .workers import worker_resources

__all__ = ["ChunkPart", "ForwardBlock", "InverseBlock", "Rims", "WindowPieces"]

Shape = tuple[int, ...]
Slices = tuple[slice, ...]


class ChunkPart(NamedTuple):
    """A part of a window.

    Parameters
    ----------
    argument : int
        The argument of the task that has it.
    item : int or None
        Its number, if the argument is a tuple of arrays.
    source : tuple of slice or None
        The part of the array; None for all of it.
    target : tuple of slice
        Where it belongs in the window.
    """

    argument: int
    item: int | None
    source: Slices | None
    target: Slices

    def of(self, arguments: Sequence[Any]) -> Any:
        """Return the array."""
        array = arguments[self.argument]
        if self.item is not None:
            array = array[self.item]
        return array if self.source is None else array[self.source]


@dataclass(frozen=True)
class WindowPieces:
    """A window as the pieces that it consists of."""

    shape: Shape
    pieces: tuple[ChunkPart, ...]

    def joined(self, arguments: Sequence[Any]) -> Any:
        """Return the window as one array."""
        first = self.pieces[0].of(arguments)
        if len(self.pieces) == 1:
            return first
        if isinstance(first, np.ndarray):
            window = _window_memory(self.shape, first.dtype)
        else:
            window = np.empty_like(first, shape=self.shape)
        window[self.pieces[0].target] = first
        for piece in self.pieces[1:]:
            window[piece.target] = piece.of(arguments)
        return window


def _window_memory(shape: Shape, dtype: np.dtype[Any]) -> Any:
    """Return an uninitialised array, in memory that is kept for the next window, which may be smaller.

    Windows at the ends of lines are a little shorter than others, so sizes are rounded up; the system
    provides pages that are used only.
    """
    size = prod(shape)
    unit = 1 << max(0, size.bit_length() - 3)
    return empty((-(-size // unit) * unit,), dtype)[:size].reshape(shape)


@dataclass(frozen=True)
class Rims:
    """Copies of small parts of chunks, for blocks that would otherwise need the chunks.

    Parameters
    ----------
    item : int or None
        The number of the array, if the arguments are tuples of arrays.
    parts : tuple of (int, tuple of slice)
        The argument that has the part, and which part of it.
    """

    item: int | None
    parts: tuple[tuple[int, Slices], ...]

    def __call__(self, chunks: Sequence[Any]) -> tuple[Any, ...]:
        """Return the copies."""
        arrays = chunks if self.item is None else [chunk[self.item] for chunk in chunks]
        return tuple(arrays[argument][part].copy() for argument, part in self.parts)


@dataclass(frozen=True)
class ForwardBlock:
    """Levels of analysis of a block.

    Parameters
    ----------
    spec : TransformSpec
    levels : int
    backend : str
    integers : dtype or None
        Dtype of the coefficients of an LWT of integers.
    extent : (tuple of int, int) or None
        Shape of the samples of the whole transform and its levels, which bound how large integers get; None
        if the samples are coefficients of another stage.
    window : WindowPieces
    results : tuple of tuple of slice
        The results in the bands of the window, in flat order.
    """

    spec: TransformSpec
    levels: int
    backend: str
    integers: np.dtype[Any] | None
    extent: tuple[Shape, int] | None
    window: WindowPieces
    results: tuple[Slices, ...]

    def __call__(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the bands of the block in flat order."""
        x = self.window.joined(arguments)
        with worker_resources():
            if self.integers is not None and self.extent is not None:
                self._check_size(x, *self.extent)
            coeffs = decompose(
                engine_for([x], self.backend), self.spec, x, self.levels, integers=self.integers
            )
        flat = flat_bands(coeffs, self.spec.keys[1:])
        return tuple(band[part] for band, part in zip(flat, self.results, strict=True))

    def _check_size(self, x: Any, shape: Shape, levels: int) -> None:
        """Raise an error for integers whose coefficients their dtype may not hold."""
        assert self.integers is not None
        growth, bits = grown(self.spec, shape, levels), 8 * self.integers.itemsize
        info = np.iinfo(x.dtype)
        idle = growth.idle and x.dtype.kind == "i" and self.integers.itemsize >= x.dtype.itemsize
        if idle or growth.fits(max(-int(info.min), int(info.max)), bits) or not isinstance(x, np.ndarray):
            return
        largest = cpu.largest(x)
        if not growth.fits(largest, bits):
            limit = growth.largest(bits)
            wider = f" or pass dtype='int{2 * bits}'" if bits < 64 else ""
            raise ArgumentError(
                f"{levels} level(s) in {self.integers} could overflow: samples from -{limit} to {limit} fit,"
                f" got up to ±{largest}; scale them down{wider}"
            )


@dataclass(frozen=True)
class InverseBlock:
    """Levels of synthesis of a block.

    Parameters
    ----------
    spec : TransformSpec
    levels : int
    backend : str
    dtype : dtype
        Dtype in which to transform.
    shape : tuple of int
        Shape of the samples of the window.
    bands : tuple of WindowPieces or None
        The windows of all bands in flat order; None for zeros.
    result : tuple of slice
        The block in the samples of the window.
    doubled : bool
        Whether to transform the window twice, side by side. Kernels scale planes of a single channel in
        another order, and a chunk may have one channel of several.
    """

    spec: TransformSpec
    levels: int
    backend: str
    dtype: np.dtype[Any]
    shape: Shape
    bands: tuple[WindowPieces | None, ...]
    result: Slices
    doubled: bool = False

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Return the samples of the block."""
        bands = [None if band is None or not band.pieces else band.joined(arguments) for band in self.bands]
        given = next(band for band in bands if band is not None)
        for number, band in enumerate(self.bands):
            if band is not None and not band.pieces:  # Lines of one sample have no high coefficients.
                bands[number] = np.empty_like(given, shape=band.shape)
        with worker_resources():
            if not self.doubled:
                return self._samples(bands, self.shape)
            bands = [None if band is None else np.repeat(band, 2, axis=-1) for band in bands]
            return self._samples(bands, (*self.shape[:-1], 2))

    def _samples(self, bands: list[Any], shape: Shape) -> Any:
        engine = engine_for(bands, self.backend)
        keyed = keyed_bands(bands, self.spec.keys[1:])
        given = next(band for band in bands if band is not None)
        x = recompose(engine, self.spec, keyed, shape, dtype=self.dtype, checked=False)
        if self.dtype.kind != "i" or not isinstance(given, np.ndarray) or surely_fit(self.spec, keyed, x):
            return x[self.result]
        # Near the cuts, integers may be larger than anywhere in the whole transform. They are dropped.
        wide = np.dtype(np.int64)
        x = recompose(engine, self.spec, _converted(keyed, wide), shape, checked=False)[self.result]
        info = np.iinfo(self.dtype)
        least, most = (int(x.min()), int(x.max())) if x.size else (0, 0)
        if least < info.min or most > info.max:
            raise ArgumentError(
                f"these {self.dtype} coefficients lead to samples from {least} to {most}, which {self.dtype}"
                f" does not hold; pass coefficients of {wide}"
            )
        return x.astype(self.dtype)


def _converted(keyed: list[Any], dtype: np.dtype[Any]) -> list[Any]:
    details = [{key: band.astype(dtype) for key, band in part.items()} for part in keyed[1:]]
    return [keyed[0].astype(dtype), *details]
