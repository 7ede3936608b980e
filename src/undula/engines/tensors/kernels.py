"""What the operators of PyTorch compute: transforms of tensors without gradients, by the other engines.

What was compiled for tensors of one layout is kept. On the host a tensor is an array of NumPy; on a GPU only
addresses change from call to call, and scratch memory is PyTorch's, which reuses it.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...arrays import TORCH, ArrayView
from ...errors import ArgumentError, ArgumentTypeError
from ...lowering.nesting import keyed_bands
from ...lowering.spec import BandTree, TransformSpec
from ..base import UnfollowableStridesError
from ..cpu.engine import CPU, ForwardCall, InverseCall
from ..dispatch import decompose, engine_for, recompose
from ..gpu.engine import LibraryEngine
from ..memory import allocator
from ..numpy_engine import array_view
from .encoding import decoded
from .stacking import Stacking

__all__ = ["band_tree", "decompose_tensor", "recompose_tensors"]

MAX_ALIGNMENT = 16  # bytes; kernels access no wider pieces
SCRATCH_ALIGNMENT = 256  # bytes

new_tensor = partial(torch.empty_like, memory_format=torch.contiguous_format)

Shape = tuple[int, ...]


def band_tree(transform: str, shape: Any, levels: int) -> BandTree:
    """Return the shapes of all levels of a transform."""
    return BandTree.of_samples(decoded(transform), tuple(map(int, shape)), levels)


def _level_count(bands: Any, spec: TransformSpec) -> int:
    return (len(bands) - 1) // (len(spec.keys) - 1)


# --- on the host ----------------------------------------------------------------------------------


class _StackedCall:
    """A forward transform of arrays of one layout into new tensors: the approximation, and stacked levels."""

    def __init__(self, tree: BandTree, x: Any, stacking: Stacking) -> None:
        self._tree, self._stacking, self._dtype = tree, stacking, x.dtype
        self._new = allocator(sum(map(math.prod, tree.flat_shapes)) * x.itemsize)
        bands = stacking.unstack(stacking.allocate(tree, lambda shape: np.empty(shape, x.dtype)))
        self._run = CPU.compile_function(False, tree, x.dtype, [array_view(part) for part in (x, *bands)])

    def __call__(self, x: Any) -> list[Tensor] | None:
        """Return new tensors, or None if the kernels do not fit the array."""
        new, dtype = self._new, self._dtype
        parts = self._stacking.allocate(self._tree, lambda shape: new(shape, dtype))
        return list(map(torch.from_numpy, parts)) if self._run(x, *self._stacking.unstack(parts)) else None


@lru_cache(maxsize=512)
def _forward_call(
    transform: str, levels: int, shape: Shape, strides: Shape, dtype: np.dtype[Any], stacking: Stacking | None
) -> Any:
    """Return a compiled transform of arrays of one layout to a list of tensors; None if there is none."""
    layout: Any = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)
    tree = band_tree(transform, shape, levels)
    from_numpy = torch.from_numpy
    try:
        if stacking is not None:
            return _StackedCall(tree, layout, stacking)
        return ForwardCall(tree, layout, lambda bands: list(map(from_numpy, bands)))
    except UnfollowableStridesError:
        return None


@lru_cache(maxsize=512)
def _inverse_call(
    transform: str, shape: Shape, strides: tuple[Shape | None, ...], dtype: np.dtype[Any]
) -> InverseCall | None:
    """Return a compiled inverse of bands with these strides, None for zeros; None if there is none."""
    tree = band_tree(transform, shape, _level_count(strides, decoded(transform)))
    example = np.empty(1, dtype)
    layouts = [
        None if steps is None else np.lib.stride_tricks.as_strided(example, part, steps)
        for steps, part in zip(strides, tree.flat_shapes, strict=True)
    ]
    try:
        return InverseCall(tree, layouts)
    except UnfollowableStridesError:
        return None


def _samples(transform: str, shape: Shape, bands: list[Any]) -> Any:
    """Return the samples of bands, None for zeros; None if kernels cannot read the bands as they are."""
    strides = tuple([None if band is None else band.strides for band in bands])
    dtype = next(band.dtype for band in bands if band is not None)
    call = _inverse_call(transform, shape, strides, dtype)
    return None if call is None else call(bands)


def _array(x: Tensor) -> Any:
    """Return a tensor of the host as an array of NumPy, which shares its memory unless that is conjugated."""
    try:
        return x.numpy(force=True)
    except TypeError as error:
        raise ArgumentTypeError(f"tensors must be dense; {error}") from None


def _flat(coeffs: list[Any]) -> list[Any]:
    return [coeffs[0], *(band for part in coeffs[1:] for band in part.values())]


# --- on a GPU -------------------------------------------------------------------------------------


class _DeviceRun:
    """A transform of tensors of one layout on a GPU.

    Parameters
    ----------
    back : bool
        Whether samples are computed from bands.
    tree : BandTree
    views : list of ArrayView or None
        The samples, and the bands in flat order.
    x : Tensor
        A tensor on the GPU.
    shapes : list of tuple of int
        The tensors that are results.
    places : list of (int, int)
        For each array that is written, the number of its tensor and the first byte in that.
    """

    def __init__(
        self,
        back: bool,
        tree: BandTree,
        views: list[ArrayView | None],
        x: Tensor,
        shapes: list[Shape],
        places: list[tuple[int, int]],
    ) -> None:
        from torch._C import _cuda_getCurrentRawStream as current_stream  # Only builds for CUDA have it.

        engine = engine_for([x.detach()])
        assert isinstance(engine, LibraryEngine)
        pairs = [None if view is None else view.as_pairs() for view in views]
        self._back, self._places = back, places
        self._prepared = engine.compile(back, tree, np.dtype(TORCH.dtype(x)), pairs).prepared
        self._scratch, self._offsets = 0, list[int]()
        for count, kind in self._prepared.program.scratch:
            self._offsets.append(self._scratch)
            size = count * np.dtype(kind).itemsize
            self._scratch += -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        # PyTorch makes a tensor like another one in half the time that it needs to make one from its shape.
        self._examples = [torch.empty(1, dtype=x.dtype, device=x.device).expand(shape) for shape in shapes]
        self._scratch_example = torch.empty(1, dtype=torch.uint8, device=x.device).expand(self._scratch)
        self._current_stream = partial(current_stream, x.device.index)

    def __call__(self, arrays: list[Tensor | None]) -> list[Tensor]:
        """Return new tensors with the results for the arrays that are read."""
        results = list(map(new_tensor, self._examples))
        starts = [result.data_ptr() for result in results]
        written = [starts[number] + offset for number, offset in self._places]
        read = [None if x is None else x.data_ptr() for x in arrays]
        buffers = written + read if self._back else read + written
        if self._scratch:
            scratch = new_tensor(self._scratch_example)
            first = scratch.data_ptr()
            buffers += [first + offset for offset in self._offsets]
        self._prepared.run(buffers, self._current_stream())
        return results


def _layout(x: Tensor) -> tuple[Shape, int]:
    return x.stride(), math.gcd(x.data_ptr(), MAX_ALIGNMENT)


def _stacked_view(band: Tensor, dtype: str) -> ArrayView:
    """Return a band of a stacked level, at the start of a buffer of its own."""
    alignment = math.gcd(band.storage_offset() * band.element_size(), MAX_ALIGNMENT)
    return ArrayView(0, tuple(band.shape), band.stride(), dtype, 0, alignment)


@lru_cache(maxsize=512)
def _forward_run(
    transform: str,
    levels: int,
    shape: Shape,
    layout: tuple[Shape, int],
    dtype: Any,
    device: Any,
    stacking: Stacking | None,
) -> _DeviceRun:
    strides, alignment = layout
    tree = band_tree(transform, shape, levels)
    example = torch.empty(0, dtype=dtype, device=device)
    name = TORCH.dtype(example)
    samples = ArrayView(0, shape, strides, name, 0, alignment)
    if stacking is None:
        bands = [ArrayView.contiguous(0, part, name) for part in tree.flat_shapes]
        places = [(number, 0) for number in range(len(bands))]
        return _DeviceRun(False, tree, [samples, *bands], example, tree.flat_shapes, places)
    tensors = stacking.allocate(tree, lambda part: torch.empty(part, dtype=dtype, device="meta"))
    parts = stacking.unstack(tensors)
    bands = [_stacked_view(band, name) for band in parts]
    count = len(stacking.places)
    places = [
        (-(-number // count), band.storage_offset() * band.element_size())
        for number, band in enumerate(parts)
    ]
    return _DeviceRun(False, tree, [samples, *bands], example, stacking.allocate(tree, tuple), places)


@lru_cache(maxsize=512)
def _inverse_run(
    transform: str, shape: Shape, layouts: tuple[tuple[Shape, int] | None, ...], dtype: Any, device: Any
) -> _DeviceRun:
    tree = band_tree(transform, shape, _level_count(layouts, decoded(transform)))
    example = torch.empty(0, dtype=dtype, device=device)
    name = TORCH.dtype(example)
    parts = zip(layouts, tree.flat_shapes, strict=True)
    bands = [None if kind is None else ArrayView(0, part, kind[0], name, 0, kind[1]) for kind, part in parts]
    samples = ArrayView.contiguous(0, shape, name)
    return _DeviceRun(True, tree, [samples, *bands], example, [shape], [(0, 0)])


def _plain(x: Tensor) -> Tensor:
    """Return a tensor whose memory holds its numbers."""
    return x.detach().resolve_conj().resolve_neg() if x.is_conj() or x.is_neg() else x


# --- kernels --------------------------------------------------------------------------------------


def decompose_tensor(
    x: Tensor, transform: str, levels: int, backend: str = "auto", stacking: Stacking | None = None
) -> list[Tensor]:
    """Return the bands of a tensor in flat order, or the approximation and stacked levels."""
    if x.is_cuda:
        x = _plain(x)
        if x.numel() and backend in ("auto", "cuda"):
            run = _forward_run(transform, levels, tuple(x.shape), _layout(x), x.dtype, x.device, stacking)
            return run([x])
        x = x.detach().contiguous()
        bands = _flat(decompose(engine_for([x], backend), decoded(transform), x, levels))
        return bands if stacking is None else stacking.stack(bands)
    array = _array(x)
    if backend == "auto" and array.size:
        call = _forward_call(transform, levels, array.shape, array.strides, array.dtype, stacking)
        tensors: list[Tensor] | None = None if call is None else call(array)
        if tensors is not None:
            return tensors
    array = np.ascontiguousarray(array)
    coeffs = decompose(engine_for([array], backend), decoded(transform), array, levels)
    bands = [torch.from_numpy(band) for band in _flat(coeffs)]
    return bands if stacking is None else stacking.stack(bands)


def recompose_tensors(bands: Any, transform: str, shape: Any, backend: str = "auto") -> Tensor:
    """Return the samples of bands in flat order, None for zeros."""
    lengths = tuple(shape)
    example = next(band for band in bands if band is not None)
    devices = {band.device for band in bands if band is not None}
    if len(devices) > 1:
        raise ArgumentError(
            f"arrays are on different devices, {sorted(map(str, devices))}; move them to one device"
        )
    if example.is_cuda:
        return _recompose_on_device(bands, transform, lengths, backend, example)
    arrays = [None if band is None else _array(band) for band in bands]
    dtype = next(array.dtype for array in arrays if array is not None)
    x = None
    if backend == "auto" and math.prod(lengths):
        x = _samples(transform, lengths, arrays)
    if x is None:
        arrays = [None if array is None else np.ascontiguousarray(array) for array in arrays]
        if backend == "auto" and math.prod(lengths):
            x = _samples(transform, lengths, arrays)
    if x is None:
        spec = decoded(transform)
        if spec.lifted:  # No band of an LWT may be missing.
            shapes = band_tree(transform, lengths, _level_count(arrays, spec)).flat_shapes
            pairs = zip(arrays, shapes, strict=True)
            arrays = [np.zeros(part, dtype) if array is None else array for array, part in pairs]
        engine = engine_for([array for array in arrays if array is not None], backend)
        x = recompose(engine, spec, keyed_bands(arrays, spec.keys[1:]), lengths)
    return torch.from_numpy(x)


def _recompose_on_device(bands: Any, transform: str, lengths: Shape, backend: str, example: Tensor) -> Tensor:
    ready = [None if band is None else _plain(band) for band in bands]
    if math.prod(lengths) and backend in ("auto", "cuda"):
        layouts = tuple([None if band is None else _layout(band) for band in ready])
        run = _inverse_run(transform, lengths, layouts, example.dtype, example.device)
        return run(ready)[0]
    spec = decoded(transform)
    keyed = keyed_bands(
        [None if band is None else band.detach().contiguous() for band in ready], spec.keys[1:]
    )
    samples: Tensor = recompose(engine_for([example.detach()], backend), spec, keyed, lengths)
    return samples
