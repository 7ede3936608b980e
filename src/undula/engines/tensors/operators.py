"""The operators ``undula::decompose`` and ``undula::recompose`` of PyTorch; importing this registers them.

Both are linear, so that their derivatives are operators of the same kind, and nothing is saved for them. With
the transform A, its inverse S, and their adjoints A* and S*, which ``spec.adjoint()`` has as its inverse and
its forward transform:

    decompose: y = A x     dy = A dx     dx = A* dy     (recompose of the adjoint)
    recompose: x = S y     dx = S dy     dy = S* dx     (decompose of the adjoint)

Tensors are float32, float64, complex64 or complex128, or float16 on a GPU; :mod:`.engine` converts others.
Results are in C order.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active as are_functorch_transforms_active
from torch._C import _AutoDispatchBelowAutograd as below_autograd
from torch._C import _len_torch_dispatch_stack as dispatch_modes
from torch._functorch.utils import enable_single_level_autograd_function

from ...lowering.nesting import keyed_bands
from ...lowering.spec import BandTree, TransformSpec
from ..base import UnfollowableStridesError
from ..cpu.engine import ForwardCall, InverseCall
from ..dispatch import decompose, engine_for, recompose
from .encoding import decoded, encoded

__all__ = ["decompose_operator", "recompose_operator"]

Shape = tuple[int, ...]

_library = torch.library.Library("undula", "DEF")
_library.define(
    'decompose(Tensor x, str transform, int levels, str backend="auto") -> Tensor[]',
    tags=(torch.Tag.pt2_compliant_tag,),
)
_library.define(
    'recompose(Tensor?[] bands, str transform, SymInt[] shape, str backend="auto") -> Tensor',
    tags=(torch.Tag.pt2_compliant_tag,),
)
decompose_operator = torch.ops.undula.decompose.default
recompose_operator = torch.ops.undula.recompose.default


def _tree(transform: str, shape: Any, levels: int) -> BandTree:
    return BandTree.of_samples(decoded(transform), tuple(map(int, shape)), levels)


def _levels(bands: list[Tensor | None], spec: TransformSpec) -> int:
    return (len(bands) - 1) // (len(spec.keys) - 1)


# --- kernels --------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _forward_call(transform: str, levels: int, shape: Shape, strides: Shape, dtype: np.dtype[Any]) -> Any:
    """Return a compiled transform of arrays of one layout to a list of bands; None if there is none."""
    layout: Any = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)
    try:
        return ForwardCall(_tree(transform, shape, levels), layout, list)
    except UnfollowableStridesError:
        return None


@lru_cache(maxsize=512)
def _inverse_call(transform: str, shape: Shape, given: tuple[bool, ...], dtype: np.dtype[Any]) -> InverseCall:
    """Return a compiled inverse of bands in C order, of which only some are given."""
    spec = decoded(transform)
    tree = _tree(transform, shape, (len(given) - 1) // (len(spec.keys) - 1))
    bands = zip(given, tree.flat_shapes, strict=True)
    return InverseCall(tree, [np.empty(part, dtype) if there else None for there, part in bands])


def _array(x: Tensor) -> Any:
    """Return a tensor of the host as an array of NumPy that shares its memory."""
    if x.requires_grad:
        x = x.detach()
    try:
        return x.numpy()
    except RuntimeError:  # It stands for the conjugate of its memory.
        return x.resolve_conj().resolve_neg().numpy()


def _flat(coeffs: list[Any]) -> list[Any]:
    return [coeffs[0], *(band for part in coeffs[1:] for band in part.values())]


def _decompose(x: Tensor, transform: str, levels: int, backend: str = "auto") -> list[Tensor]:
    if x.is_cuda:
        x = x.detach().resolve_conj().resolve_neg().contiguous()
        return _flat(decompose(engine_for([x], backend), decoded(transform), x, levels))
    array = _array(x)
    if backend == "auto" and array.size:
        call = _forward_call(transform, levels, array.shape, array.strides, array.dtype)
        bands = None if call is None else call(array)
        if bands is not None:
            return [torch.from_numpy(band) for band in bands]
    array = np.ascontiguousarray(array)
    coeffs = decompose(engine_for([array], backend), decoded(transform), array, levels)
    return [torch.from_numpy(band) for band in _flat(coeffs)]


def _recompose(bands: list[Tensor | None], transform: str, shape: Any, backend: str = "auto") -> Tensor:
    spec, lengths = decoded(transform), tuple(shape)
    ready = [
        None if band is None else band.detach().resolve_conj().resolve_neg().contiguous() for band in bands
    ]
    example = next(band for band in ready if band is not None)
    if example.is_cuda:
        keyed = keyed_bands(ready, spec.keys[1:])
        samples: Tensor = recompose(engine_for([example], backend), spec, keyed, lengths)
        return samples
    arrays = [None if band is None else band.numpy() for band in ready]
    x = None
    if backend == "auto" and math.prod(lengths):
        given = tuple([array is not None for array in arrays])
        dtype = next(array.dtype for array in arrays if array is not None)
        x = _inverse_call(transform, lengths, given, dtype)(arrays)
    if x is None:
        keyed = keyed_bands(arrays, spec.keys[1:])
        x = recompose(
            engine_for([array for array in arrays if array is not None], backend), spec, keyed, lengths
        )
    return torch.from_numpy(x)


def _fake_decompose(x: Tensor, transform: str, levels: int, backend: str = "auto") -> list[Tensor]:
    tree = _tree(transform, x.shape, levels)
    return [torch.empty(shape, dtype=x.dtype, device=x.device) for shape in tree.flat_shapes]


def _fake_recompose(bands: list[Tensor | None], transform: str, shape: Any, backend: str = "auto") -> Tensor:
    example = next(band for band in bands if band is not None)
    return torch.empty(tuple(shape), dtype=example.dtype, device=example.device)


for device in ("CPU", "CUDA"):
    _library.impl("decompose", _decompose, device)
    _library.impl("recompose", _recompose, device)
torch.library.register_fake("undula::decompose", _fake_decompose, lib=_library)
torch.library.register_fake("undula::recompose", _fake_recompose, lib=_library)


def _is_plain(x: Tensor) -> bool:
    """Return whether nobody but autograd looks at a tensor, so that its kernel may be called directly."""
    return type(x) is Tensor and not dispatch_modes() and not are_functorch_transforms_active()


# --- derivatives ----------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _adjoint(transform: str) -> str:
    return encoded(decoded(transform).adjoint())


class _Decomposition(torch.autograd.Function):
    """The derivatives of ``decompose``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, transform: str, levels: int, backend: str) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.arguments, ctx.shape = (transform, levels, backend), tuple(x.shape)
        if _is_plain(x):
            return tuple(_decompose(x, transform, levels, backend))
        with below_autograd():
            return tuple(decompose_operator(x, transform, levels, backend))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        if all(gradient is None for gradient in gradients):
            return None, None, None, None
        transform, _, backend = ctx.arguments
        x = recompose_operator(list(gradients), _adjoint(transform), ctx.shape, backend)
        return x, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> tuple[Tensor, ...]:
        return tuple(decompose_operator(tangent, *ctx.arguments))


class _Recomposition(torch.autograd.Function):
    """The derivatives of ``recompose``."""

    @staticmethod
    def forward(ctx: Any, transform: str, shape: Any, backend: str, *bands: Tensor | None) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.arguments, ctx.count = (transform, shape, backend), len(bands)
        with below_autograd():
            x: Tensor = recompose_operator(list(bands), transform, shape, backend)
            return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Any, ...]:
        if gradient is None:
            return (None,) * (3 + ctx.count)
        transform, _, backend = ctx.arguments
        levels = (ctx.count - 1) // (len(decoded(transform).keys) - 1)
        bands = decompose_operator(gradient, _adjoint(transform), levels, backend)
        needed = zip(bands, ctx.needs_input_grad[3:], strict=True)
        return None, None, None, *[band if asked else None for band, asked in needed]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor | None:
        bands = list(tangents[3:])
        transform, shape, backend = ctx.arguments
        x: Tensor = recompose_operator(bands, transform, shape, backend)
        return x


def _recorded(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """Return the results of a function, and record how to differentiate them.

    The method ``apply`` of the class itself would enter the transforms of torch.func a second time.
    """
    apply = super(torch.autograd.Function, function).apply
    if not are_functorch_transforms_active():
        return apply(*arguments)
    with enable_single_level_autograd_function():
        return apply(*arguments)


def _differentiable_decompose(x: Tensor, transform: str, levels: int, backend: str = "auto") -> list[Tensor]:
    return list(_recorded(_Decomposition, x, transform, levels, backend))


def _differentiable_recompose(
    bands: list[Tensor | None], transform: str, shape: Any, backend: str = "auto"
) -> Tensor:
    x: Tensor = _recorded(_Recomposition, transform, tuple(shape), backend, *bands)
    return x


_library.impl("decompose", _differentiable_decompose, "Autograd")
_library.impl("recompose", _differentiable_recompose, "Autograd")


# --- batches --------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _moved(transform: str, place: int) -> str:
    """Return a transform for arrays with another axis at a place."""
    spec = decoded(transform)
    return encoded(replace(spec, axes=tuple(axis + (axis >= place) for axis in spec.axes)))


def _batched_decompose(
    info: Any, in_dims: Any, x: Tensor, transform: str, levels: int, backend: str = "auto"
) -> tuple[list[Tensor], list[int]]:
    place = in_dims[0]
    bands = decompose_operator(x, _moved(transform, place), levels, backend)
    return bands, [place] * len(bands)


def _batched_recompose(
    info: Any, in_dims: Any, bands: list[Tensor | None], transform: str, shape: Any, backend: str = "auto"
) -> tuple[Tensor, int]:
    together = [
        None if band is None else band.expand(info.batch_size, *band.shape) if place is None
        else band.movedim(place, 0)
        for band, place in zip(bands, in_dims[0], strict=True)
    ]  # fmt: skip
    shape = (info.batch_size, *shape)
    return recompose_operator(together, _moved(transform, 0), shape, backend), 0


torch.library.register_vmap("undula::decompose", _batched_decompose, lib=_library)
torch.library.register_vmap("undula::recompose", _batched_recompose, lib=_library)
