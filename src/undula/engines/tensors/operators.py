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

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, is_grad_enabled
from torch import _add_batch_dim as add_batch_dim
from torch import _remove_batch_dim as remove_batch_dim
from torch._C import _are_functorch_transforms_active as are_functorch_transforms_active
from torch._C import _AutoDispatchBelowAutograd as below_autograd
from torch._C import _get_tracing_state as tracing_state
from torch._C import _len_torch_dispatch_stack as dispatch_modes
from torch._C import _vmapmode_decrement_nesting as leave_batch_level
from torch._C import _vmapmode_increment_nesting as enter_batch_level
from torch._C._functorch import is_legacy_batchedtensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from ...errors import ArgumentError
from .encoding import adjoint_of, decoded, moved
from .kernels import band_tree, decompose_tensor, recompose_tensors
from .stacking import Stacking

__all__ = ["EXPRESSIONS", "decompose", "decompose_operator", "recompose", "recompose_operator"]

PLAIN_TYPES = frozenset((Tensor, torch.nn.Parameter))
# What computes transforms in place of the operators, forward and back; None if nothing does.
EXPRESSIONS: ContextVar[tuple[Callable[..., Any], Callable[..., Any]] | None] = ContextVar(
    "undula_expressions", default=None
)

_library = torch.library.Library("undula", "DEF")
_library.define(
    'decompose(Tensor x, str transform, int levels, str backend="auto") -> Tensor[]',
    tags=(torch.Tag.pt2_compliant_tag,),
)
_library.define(
    'recompose(Tensor?[] bands, str transform, SymInt[] shape, str backend="auto") -> Tensor',
    tags=(torch.Tag.pt2_compliant_tag,),
)


def forward_ad_level() -> int:
    """Return the level of forward mode, -1 outside of it."""
    return int(getattr(forward_ad, "_current_level"))  # noqa: B009 (there is no public function)


decompose_operator = torch.ops.undula.decompose.default
recompose_operator = torch.ops.undula.recompose.default


# --- kernels --------------------------------------------------------------------------------------


def _fake_decompose(x: Tensor, transform: str, levels: int, backend: str = "auto") -> list[Tensor]:
    tree = band_tree(transform, x.shape, levels)
    return [torch.empty(shape, dtype=x.dtype, device=x.device) for shape in tree.flat_shapes]


def _fake_recompose(bands: list[Tensor | None], transform: str, shape: Any, backend: str = "auto") -> Tensor:
    example = next(band for band in bands if band is not None)
    return torch.empty(tuple(shape), dtype=example.dtype, device=example.device)


for device in ("CPU", "CUDA"):
    _library.impl("decompose", decompose_tensor, device)
    _library.impl("recompose", recompose_tensors, device)
torch.library.register_fake("undula::decompose", _fake_decompose, lib=_library)
torch.library.register_fake("undula::recompose", _fake_recompose, lib=_library)


def _is_observed(tensors: Sequence[Tensor]) -> bool:
    """Return whether something besides autograd looks at calls, which then go through the dispatcher."""
    return (
        not PLAIN_TYPES.issuperset(map(type, tensors))
        or dispatch_modes()
        or are_functorch_transforms_active()
        or tracing_state() is not None
        or forward_ad_level() >= 0
        or any(x.is_meta or is_legacy_batchedtensor(x) for x in tensors)
    )


def decompose(
    x: Tensor, transform: str, levels: int, backend: str = "auto", stacking: Stacking | None = None
) -> Any:
    """Return what ``undula::decompose`` returns, without PyTorch's dispatcher where it has nothing to do.

    With ``stacking``, the approximation and the stacked levels are returned.
    """
    if _is_observed((x,)):
        expressions = EXPRESSIONS.get()
        operator = decompose_operator if expressions is None else expressions[0]
        bands = operator(x, transform, levels, backend)
        return bands if stacking is None else stacking.stack(bands)
    if x.requires_grad and is_grad_enabled():
        return _apply_decomposition(decompose_tensor, x, (transform, levels, backend), stacking)
    return decompose_tensor(x, transform, levels, backend, stacking)


def recompose(
    parts: Sequence[Tensor | None],
    transform: str,
    shape: Any,
    backend: str = "auto",
    stacking: Stacking | None = None,
) -> Any:
    """Return what ``undula::recompose`` returns, without PyTorch's dispatcher where it has nothing to do.

    ``parts`` are the bands in flat order or, with ``stacking``, the approximation and the stacked levels.
    """
    given = [part for part in parts if part is not None]
    if _is_observed(given):
        expressions = EXPRESSIONS.get()
        operator = recompose_operator if expressions is None else expressions[1]
        return operator(_bands(parts, stacking), transform, shape, backend)
    if is_grad_enabled() and any(part.requires_grad for part in given):
        arguments = transform, tuple(shape), backend
        return _apply_recomposition(recompose_tensors, arguments, stacking, *parts)
    return recompose_tensors(_bands(parts, stacking), transform, shape, backend)


def _bands(parts: Sequence[Tensor | None], stacking: Stacking | None) -> list[Tensor | None]:
    return list(parts) if stacking is None else stacking.unstack(parts)


# --- derivatives ----------------------------------------------------------------------------------


class _Decomposition(torch.autograd.Function):
    """The derivatives of ``decompose``; ``kernel`` computes it without them."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Any, x: Tensor, arguments: tuple[Any, ...], stacking: Stacking | None
    ) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.arguments, ctx.shape, ctx.stacking = arguments, x.shape, stacking
        return tuple(kernel(x, *arguments) if stacking is None else kernel(x, *arguments, stacking))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        if all(gradient is None for gradient in gradients):
            return None, None, None, None
        transform, _, backend = ctx.arguments
        x = recompose(gradients, adjoint_of(transform), ctx.shape, backend, ctx.stacking)
        return None, x, None, None

    @staticmethod
    def jvp(ctx: Any, _: Any, tangent: Tensor, *__: Any) -> tuple[Tensor, ...]:
        return tuple(decompose_operator(tangent, *ctx.arguments))


class _Recomposition(torch.autograd.Function):
    """The derivatives of ``recompose``; ``kernel`` computes it without them."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Any, arguments: tuple[Any, ...], stacking: Stacking | None, *parts: Tensor | None
    ) -> Tensor:
        ctx.set_materialize_grads(False)
        bands = _bands(parts, stacking)
        ctx.arguments, ctx.stacking, ctx.count = arguments, stacking, len(bands)
        x: Tensor = kernel(bands, *arguments)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Any, ...]:
        needed = ctx.needs_input_grad[3:]
        if gradient is None:
            return None, None, None, *[None] * len(needed)
        transform, _, backend = ctx.arguments
        levels = (ctx.count - 1) // (len(decoded(transform).keys) - 1)
        parts = decompose(gradient, adjoint_of(transform), levels, backend, ctx.stacking)
        pairs = zip(parts, needed, strict=True)
        return None, None, None, *[part if is_needed else None for part, is_needed in pairs]

    @staticmethod
    def jvp(ctx: Any, _: Any, __: Any, ___: Any, *tangents: Any) -> Tensor | None:
        x: Tensor = recompose_operator(list(tangents), *ctx.arguments)
        return x


# The method ``apply`` of the classes themselves would enter the transforms of torch.func a second time.
_apply_decomposition: Any = super(torch.autograd.Function, _Decomposition).apply
_apply_recomposition: Any = super(torch.autograd.Function, _Recomposition).apply


def _recorded(apply: Any, *arguments: Any) -> Any:
    """Return the results of a function, and record how to differentiate them."""
    if not are_functorch_transforms_active():
        return apply(*arguments)
    with enable_single_level_autograd_function():
        return apply(*arguments)


def _decompose_below(x: Tensor, *arguments: Any) -> list[Tensor]:
    with below_autograd():
        bands: list[Tensor] = decompose_operator(x, *arguments)
        return bands


def _recompose_below(bands: Sequence[Tensor | None], *arguments: Any) -> Tensor:
    with below_autograd():
        x: Tensor = recompose_operator(list(bands), *arguments)
        return x


def _differentiable_decompose(x: Tensor, transform: str, levels: int, backend: str = "auto") -> list[Tensor]:
    return list(_recorded(_apply_decomposition, _decompose_below, x, (transform, levels, backend), None))


def _differentiable_recompose(
    bands: list[Tensor | None], transform: str, shape: Any, backend: str = "auto"
) -> Tensor:
    arguments = transform, tuple(shape), backend
    x: Tensor = _recorded(_apply_recomposition, _recompose_below, arguments, None, *bands)
    return x


_library.impl("decompose", _differentiable_decompose, "Autograd")
_library.impl("recompose", _differentiable_recompose, "Autograd")


# --- batches --------------------------------------------------------------------------------------


def _batched_decompose(
    info: Any, in_dims: Any, x: Tensor, transform: str, levels: int, backend: str = "auto"
) -> tuple[list[Tensor], list[int]]:
    place = in_dims[0]
    bands = decompose_operator(x, moved(transform, place), levels, backend)
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
    return recompose_operator(together, moved(transform, 0), shape, backend), 0


torch.library.register_vmap("undula::decompose", _batched_decompose, lib=_library)
torch.library.register_vmap("undula::recompose", _batched_recompose, lib=_library)


# torch.autograd, with is_grads_batched or vectorize, has batches of its own, which carry a level.


def _batch_level(tensors: Sequence[Tensor]) -> tuple[int, int]:
    """Return the innermost level of which some tensor has a batch, and the size of the batch."""
    level = enter_batch_level() - 1
    leave_batch_level()
    while level:
        # A tensor without a batch of this level becomes a batch of no tensors.
        sizes = [remove_batch_dim(x, level, 0, 0).shape[0] for x in tensors]
        if any(sizes):
            return level, max(sizes)
        level -= 1
    raise ArgumentError("PyTorch has to batch at least one tensor")


def _decompose_of_autograd(x: Tensor, *arguments: Any) -> list[Tensor]:
    level, size = _batch_level([x])
    bands, _ = _batched_decompose(None, (0,), remove_batch_dim(x, level, size, 0), *arguments)
    return [add_batch_dim(band, 0, level) for band in bands]


def _recompose_of_autograd(bands: list[Tensor | None], transform: str, shape: Any, *arguments: Any) -> Tensor:
    level, size = _batch_level([band for band in bands if band is not None])
    together = [None if band is None else remove_batch_dim(band, level, size, 0) for band in bands]
    x = recompose_operator(together, moved(transform, 0), (size, *shape), *arguments)
    return add_batch_dim(x, 0, level)


_library.impl("decompose", _decompose_of_autograd, "Batched")
_library.impl("recompose", _recompose_of_autograd, "Batched")
