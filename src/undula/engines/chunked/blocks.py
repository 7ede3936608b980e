"""Blocks: the tasks of a chunked transform, as workers run them.

A task gets chunks, or rims of them, of which parts are the fragments of the window of its block. It
transforms the window, and returns the results that are free of the cuts. A large window is never in memory as
a whole. Kernels for images read the fragments of each row where they are. Other windows are put together in
stripes, of which the first level is computed while they are in the cache. A block is described completely by
itself, so that any worker can run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import result_dtype
from ...errors import ArgumentError
from ...lowering.mixing import RowFragments
from ...lowering.nesting import flat_bands, keyed_bands
from ...lowering.spec import BandTree, TransformSpec
from ...lowering.windows import Interval
from .. import cpu
from ..base import Engine
from ..cpu import address
from ..cpu.engine import CPU
from ..dispatch import decompose, engine_for, grown, recompose, surely_fit
from ..memory import empty
from .lines import axis_blocks, line_transforms
from .workers import worker_resources

__all__ = ["ChunkedWindow", "ForwardBlock", "Fragment", "InverseBlock", "Rims"]

Shape = tuple[int, ...]
Slices = tuple[slice, ...]

# A window is put together in stripes of so many bytes, which caches hold, but not in stripes of fewer rows
# than so many filters, whose margins would be transformed again and again.
STRIPE_BYTES = 1 << 21
STRIPE_TAPS = 8


class Fragment(NamedTuple):
    """The part of a window that is in one chunk, or in a rim of one.

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
class ChunkedWindow:
    """A window as the fragments that it consists of."""

    shape: Shape
    fragments: tuple[Fragment, ...]

    @staticmethod
    def of_array(shape: Shape, argument: int = 0) -> ChunkedWindow:
        """Return a window that is a single array, an argument of the task."""
        return ChunkedWindow(shape, (Fragment(argument, None, None, tuple(map(slice, shape))),))

    def joined(self, arguments: Sequence[Any]) -> Any:
        """Return the window as one array."""
        first = self.fragments[0].of(arguments)
        if len(self.fragments) == 1:
            # Axes in another order in memory would be transformed in that order, and rounded differently.
            in_rows = not isinstance(first, np.ndarray) or first.strides[-1:] == (first.itemsize,)
            return first if in_rows else np.ascontiguousarray(first)
        if isinstance(first, np.ndarray):
            window = _window_memory(self.shape, first.dtype)
        else:
            window = np.empty_like(first, shape=self.shape)
        window[self.fragments[0].target] = first
        for fragment in self.fragments[1:]:
            window[fragment.target] = fragment.of(arguments)
        return window

    def rows(
        self, arguments: Sequence[Any], axis: int, dtype: np.dtype[Any]
    ) -> tuple[NDArray[np.int64], RowFragments, list[Any]] | None:
        """Return the addresses of the fragments of all rows, the lengths of fragments, and their arrays.

        A row has the samples along all axes after this one. Addresses have shape ``(planes, rows,
        fragments)``. Arrays that kernels cannot read are copied, such as those that come from another worker
        and are not aligned. None is returned if fragments begin at odd places, or have another dtype or shape
        than expected.
        """
        starts = sorted({fragment.target[axis + 1].start for fragment in self.fragments})
        if any(start % 2 for start in starts):
            return None
        addresses, arrays = np.empty((*self.shape[: axis + 1], len(starts)), np.int64), []
        for fragment in self.fragments:
            array, shape = fragment.of(arguments), tuple(part.stop - part.start for part in fragment.target)
            expected = type(array) is np.ndarray and (array.dtype, array.shape) == (dtype, shape)
            if not expected or shape[axis + 2 :] != self.shape[axis + 2 :]:
                return None
            if not (array.flags.aligned and array[(0,) * (axis + 1)].flags.c_contiguous):
                array = array.copy()
            arrays.append(array)
            places: Any = address(array)
            for length, stride in zip(shape[: axis + 1], array.strides[: axis + 1], strict=True):
                places = np.add.outer(places, stride * np.arange(length))
            column = addresses[..., starts.index(fragment.target[axis + 1].start)]
            column[fragment.target[: axis + 1]] = places
        lengths = (stop - start for start, stop in pairwise([*starts, self.shape[axis + 1]]))
        numbers = prod(self.shape[axis + 2 :]) * (2 if dtype.kind == "c" else 1)
        fragments = RowFragments(tuple(n * numbers for n in lengths))
        return addresses.reshape(-1, *addresses.shape[-2:]), fragments, arrays

    def stripe(self, axis: int, segments: Sequence[Interval]) -> ChunkedWindow:
        """Return the parts of the window between these places along an axis, as a window of their own."""
        fragments, length = [], 0
        for start, stop in segments:
            for fragment in self.fragments:
                place = fragment.target[axis]
                first, last = max(start, place.start), min(stop, place.stop)
                if first < last:
                    sources = list(
                        fragment.source or (slice(0, part.stop - part.start) for part in fragment.target)
                    )
                    begin = sources[axis].start + first - place.start
                    sources[axis] = slice(begin, begin + last - first)
                    target = _along(
                        fragment.target, axis, slice(length + first - start, length + last - start)
                    )
                    fragments.append(fragment._replace(source=tuple(sources), target=target))
            length += stop - start
        return ChunkedWindow((*self.shape[:axis], length, *self.shape[axis + 1 :]), tuple(fragments))


def _along(slices: Slices, axis: int, part: slice) -> Slices:
    """Return slices with another one along an axis."""
    return (*slices[:axis], part, *slices[axis + 1 :])


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
        return tuple(_copied(arrays[argument][part]) for argument, part in self.parts)


def _copied(x: Any) -> Any:
    """Return a copy, for NumPy in memory that is kept for the next one."""
    if type(x) is not np.ndarray:
        return x.copy()
    copy = empty(x.shape, x.dtype)
    copy[...] = x
    return copy


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
    window : ChunkedWindow
    results : tuple of tuple of slice
        The results in the bands of the window, in flat order.
    """

    spec: TransformSpec
    levels: int
    backend: str
    integers: np.dtype[Any] | None
    extent: tuple[Shape, int] | None
    window: ChunkedWindow
    results: tuple[Slices, ...]

    def __call__(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the bands of the block in flat order."""
        first = self.window.fragments[0].of(arguments)
        engine, count = engine_for([first], self.backend), len(self.spec.keys) - 1
        with worker_resources():
            axis, places = self._stripes(first.itemsize) if engine is CPU else (0, [])
            if not places:
                return self._parts(engine, self.window.joined(arguments), self.levels, self.results)
            bands = self._bands_of_fragments(arguments, first.dtype)
            if bands is not None:
                return bands
            low, *details = self._first_level(arguments, axis, places)
            if self.levels == 1:
                return (low, *details)
            return (*self._parts(engine, low, self.levels - 1, self.results[:-count]), *details)

    def _parts(self, engine: Engine, x: Any, levels: int, parts: Sequence[Slices]) -> tuple[Any, ...]:
        """Return parts of the bands of a window, or of its approximation, in flat order."""
        if levels == self.levels:
            self._check_size(x)
        coeffs = decompose(engine, self.spec, x, levels, integers=self.integers)
        flat = flat_bands(coeffs, self.spec.keys[1:])
        return tuple(band[part] for band, part in zip(flat, parts, strict=True))

    def _bands_of_fragments(self, arguments: Sequence[Any], dtype: np.dtype[Any]) -> tuple[Any, ...] | None:
        """Return the bands of a window that is not put together, or None if kernels need it as one array."""
        tree = BandTree.of_samples(self.spec, self.window.shape, self.levels)
        if self.integers is not None or result_dtype(dtype) != dtype or not CPU.reads_fragments(tree, dtype):
            return None
        rows = self.window.rows(arguments, min(self.spec.axes), dtype)
        if rows is None:
            return None
        addresses, fragments, _arrays = rows
        bands = [empty(shape, dtype) for shape in tree.flat_shapes]
        CPU.run_on_fragments(tree, addresses, fragments, bands, dtype)
        return tuple(band[part] for band, part in zip(bands, self.results, strict=True))

    def _stripes(self, itemsize: int) -> tuple[int, list[int]]:
        """Return the axis along which the window is divided into stripes, where they begin, and its end.

        There are no places if the window is small, or is a chunk.
        """
        spec, shape = self.spec, self.window.shape
        for axis, length in enumerate(shape):
            rows = STRIPE_BYTES * length // (prod(shape) * itemsize)
            if axis in spec.axes:
                rows = max(rows, STRIPE_TAPS * spec.wavelets[spec.axes.index(axis)].dec_len)
            rows += 2 - rows % 2
            if 2 * rows <= length and len(self.window.fragments) > 1:
                return axis, [*range(0, length - rows + 1, rows), length]
        return 0, []

    def _first_level(self, arguments: Sequence[Any], axis: int, places: Sequence[int]) -> list[Any]:
        """Return the bands of the first level: the results of the details, and the approximation.

        Of the approximation, all is returned that the other levels need.
        """
        keys = self.spec.keys
        tree = BandTree.of_samples(self.spec, self.window.shape, 1)
        parts = [self.results[0], *self.results[1 - len(keys) :]]
        if self.levels > 1:
            parts[0] = tuple(slice(0, n) for n in tree.approximation_shape)
        line, letters = line_transforms(tree)[axis], [""] * len(keys)
        if line is not None:
            letters = [key[self.spec.axes.index(axis)] for key in keys]
        bands: list[Any] = []
        for stripe in axis_blocks(line, places, False):
            x = self.window.stripe(axis, stripe.window.segments).joined(arguments)
            self._check_size(x)
            flat = flat_bands(decompose(CPU, self.spec, x, 1, integers=self.integers), keys[1:])
            if not bands:
                shapes = [tuple(part.stop - part.start for part in of_band) for of_band in parts]
                bands = [empty(shape, flat[0].dtype) for shape in shapes]
            for band, result, part, letter in zip(bands, flat, parts, letters, strict=True):
                start, stop = stripe.coefficients(line, 1, letter)
                first, last = max(start, part[axis].start), min(stop, part[axis].stop)
                if first < last:
                    before = part[axis].start
                    place = stripe.result(line, 1, letter).start + first - start
                    target = _along((slice(None),) * band.ndim, axis, slice(first - before, last - before))
                    band[target] = result[_along(part, axis, slice(place, place + last - first))]
        return bands

    def _check_size(self, x: Any) -> None:
        """Raise an error for integers whose coefficients their dtype may not hold."""
        if self.integers is None or self.extent is None:
            return
        shape, levels = self.extent
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
    bands : tuple of ChunkedWindow or None
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
    bands: tuple[ChunkedWindow | None, ...]
    result: Slices
    doubled: bool = False

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Return the samples of the block."""
        bands = [
            None if band is None or not band.fragments else band.joined(arguments) for band in self.bands
        ]
        given = next(band for band in bands if band is not None)
        for number, band in enumerate(self.bands):
            if band is not None and not band.fragments:  # Lines of one sample have no high coefficients.
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
