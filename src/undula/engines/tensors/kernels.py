"""What the operators of PyTorch compute: transforms of tensors without gradients, by the other engines.

What was compiled for tensors of one layout is kept. On the host a tensor is an array of NumPy; on a GPU only
addresses change from call to call, and scratch memory is PyTorch's, which reuses it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...arrays import TORCH, ArrayView
from ...errors import ArgumentError, ArgumentTypeError
from ...lowering.nesting import keyed_bands
from ...lowering.spec import BandTree, TransformSpec
from ..base import UnfollowableStridesError
from ..cpu.engine import ForwardCall, InverseCall
from ..dispatch import decompose, engine_for, recompose
from ..gpu.engine import LibraryEngine
from .encoding import decoded

__all__ = ["band_tree", "decompose_tensor", "recompose_tensors"]

MAX_ALIGNMENT = 16  # bytes; kernels access no wider pieces
SCRATCH_ALIGNMENT = 256  # bytes

Shape = tuple[int, ...]


def band_tree(transform: str, shape: Any, levels: int) -> BandTree:
    """Return the shapes of all levels of a transform."""
    return BandTree.of_samples(decoded(transform), tuple(map(int, shape)), levels)


def _level_count(bands: Any, spec: TransformSpec) -> int:
    return (len(bands) - 1) // (len(spec.keys) - 1)


# --- on the host ----------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _forward_call(transform: str, levels: int, shape: Shape, strides: Shape, dtype: np.dtype[Any]) -> Any:
    """Return a compiled transform of arrays of one layout to a list of bands; None if there is none."""
    layout: Any = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)
    from_numpy = torch.from_numpy
    try:
        return ForwardCall(
            band_tree(transform, shape, levels), layout, lambda bands: list(map(from_numpy, bands))
        )
    except UnfollowableStridesError:
        return None


@lru_cache(maxsize=512)
def _inverse_call(transform: str, shape: Shape, given: tuple[bool, ...], dtype: np.dtype[Any]) -> InverseCall:
    """Return a compiled inverse of bands in C order, of which only some are given."""
    spec = decoded(transform)
    tree = band_tree(transform, shape, _level_count(given, spec))
    bands = zip(given, tree.flat_shapes, strict=True)
    return InverseCall(tree, [np.empty(part, dtype) if there else None for there, part in bands])


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
    """

    def __init__(self, back: bool, tree: BandTree, views: list[ArrayView | None], x: Tensor) -> None:
        engine = engine_for([x.detach()])
        assert isinstance(engine, LibraryEngine)
        pairs = [None if view is None else view.as_pairs() for view in views]
        self._prepared = engine.compile(back, tree, np.dtype(TORCH.dtype(x)), pairs).prepared
        self._scratch, self._offsets = 0, list[int]()
        for count, kind in self._prepared.program.scratch:
            self._offsets.append(self._scratch)
            size = count * np.dtype(kind).itemsize
            self._scratch += -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        self.shapes = [tree.sample_shapes[0]] if back else tree.flat_shapes
        self.dtype, self.device = x.dtype, x.device

    def __call__(self, arrays: list[Tensor | None]) -> None:
        """Run on the samples and all bands."""
        buffers = [None if x is None else x.data_ptr() for x in arrays]
        if self._scratch:
            scratch = torch.empty(self._scratch, dtype=torch.uint8, device=self.device)
            first = scratch.data_ptr()
            buffers += [first + offset for offset in self._offsets]
        self._prepared.run(buffers, torch.cuda.current_stream(self.device).cuda_stream)

    def results(self) -> list[Tensor]:
        """Allocate the results."""
        dtype, device = self.dtype, self.device
        return [torch.empty(shape, dtype=dtype, device=device) for shape in self.shapes]


def _layout(x: Tensor) -> tuple[Shape, int]:
    return x.stride(), math.gcd(x.data_ptr(), MAX_ALIGNMENT)


@lru_cache(maxsize=512)
def _forward_run(
    transform: str, levels: int, shape: Shape, layout: tuple[Shape, int], dtype: Any, device: Any
) -> _DeviceRun:
    strides, alignment = layout
    tree = band_tree(transform, shape, levels)
    example = torch.empty(0, dtype=dtype, device=device)
    name = TORCH.dtype(example)
    bands = [ArrayView.contiguous(0, part, name) for part in tree.flat_shapes]
    samples = ArrayView(0, shape, strides, name, 0, alignment)
    return _DeviceRun(False, tree, [samples, *bands], example)


@lru_cache(maxsize=512)
def _inverse_run(
    transform: str, shape: Shape, layouts: tuple[tuple[Shape, int] | None, ...], dtype: Any, device: Any
) -> _DeviceRun:
    tree = band_tree(transform, shape, _level_count(layouts, decoded(transform)))
    example = torch.empty(0, dtype=dtype, device=device)
    name = TORCH.dtype(example)
    parts = zip(layouts, tree.flat_shapes, strict=True)
    bands = [None if kind is None else ArrayView(0, part, kind[0], name, 0, kind[1]) for kind, part in parts]
    return _DeviceRun(True, tree, [ArrayView.contiguous(0, shape, name), *bands], example)


def _plain(x: Tensor) -> Tensor:
    """Return a tensor whose memory holds its numbers."""
    return x.resolve_conj().resolve_neg() if x.is_complex() else x.resolve_neg()


# --- kernels --------------------------------------------------------------------------------------


def decompose_tensor(x: Tensor, transform: str, levels: int, backend: str = "auto") -> list[Tensor]:
    """Return the bands of a tensor in flat order."""
    if x.is_cuda:
        x = _plain(x.detach())
        if x.numel() and backend in ("auto", "cuda"):
            run = _forward_run(transform, levels, tuple(x.shape), _layout(x), x.dtype, x.device)
            results = run.results()
            run([x, *results])
            return results
        return _flat(decompose(engine_for([x], backend), decoded(transform), x.contiguous(), levels))
    array = _array(x)
    if backend == "auto" and array.size:
        call = _forward_call(transform, levels, array.shape, array.strides, array.dtype)
        bands: list[Tensor] | None = None if call is None else call(array)
        if bands is not None:
            return bands
    array = np.ascontiguousarray(array)
    coeffs = decompose(engine_for([array], backend), decoded(transform), array, levels)
    return [torch.from_numpy(band) for band in _flat(coeffs)]


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
    arrays = [
        None if band is None else _array(band if band.is_contiguous() else band.contiguous())
        for band in bands
    ]
    x = None
    if backend == "auto" and math.prod(lengths):
        given = tuple([array is not None for array in arrays])
        dtype = next(array.dtype for array in arrays if array is not None)
        x = _inverse_call(transform, lengths, given, dtype)(arrays)
    if x is None:
        spec = decoded(transform)
        engine = engine_for([array for array in arrays if array is not None], backend)
        x = recompose(engine, spec, keyed_bands(arrays, spec.keys[1:]), lengths)
    return torch.from_numpy(x)


def _recompose_on_device(bands: Any, transform: str, lengths: Shape, backend: str, example: Tensor) -> Tensor:
    ready = [None if band is None else _plain(band.detach()) for band in bands]
    if math.prod(lengths) and backend in ("auto", "cuda"):
        layouts = tuple([None if band is None else _layout(band) for band in ready])
        run = _inverse_run(transform, lengths, layouts, example.dtype, example.device)
        results = run.results()
        run([*results, *ready])
        return results[0]
    spec = decoded(transform)
    keyed = keyed_bands([None if band is None else band.contiguous() for band in ready], spec.keys[1:])
    samples: Tensor = recompose(engine_for([example.detach()], backend), spec, keyed, lengths)
    return samples
