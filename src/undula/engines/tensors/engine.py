"""The engine of PyTorch's tensors, which calls operators that PyTorch can differentiate, trace and batch.

Plain tensors, of which PyTorch records nothing, are transformed by the same functions without its dispatcher.

Whatever is not linear in exactly the dtype of the kernels is done by PyTorch itself, around the operators:
conversion, padding and cutting, of which it knows the derivatives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...arrays import TORCH, ArrayLibrary
from ...errors import ArgumentError, ArgumentTypeError
from ...lowering.graph import Graph
from ...lowering.nesting import arrays_of, flat_bands, keyed_bands, shapes_of
from ...lowering.spec import NO_COEFFICIENTS, BandTree, TransformSpec
from ..base import DEFAULT_OPTIONS, GraphExecutable, TransformOptions, split_backend
from ..numpy_engine import NumpyEngine
from .encoding import encoded

if TYPE_CHECKING:
    from .stacking import Stacking

__all__ = ["TensorEngine", "decomposed", "recomposed", "tensor_engine"]

Shape = tuple[int, ...]


class TensorEngine(NumpyEngine):
    """Transforms of tensors by operators of PyTorch, which run on another engine.

    Parameters
    ----------
    backend : str
        The engine that transforms tensors of the host; those of a GPU are transformed there.
    """

    name = "torch"
    library: ArrayLibrary = TORCH

    def __init__(self, backend: str) -> None:
        split_backend(backend)
        self.backend = backend

    def decompose(
        self,
        spec: TransformSpec,
        x: Any,
        levels: int,
        out: Any = None,
        padded: Shape | None = None,
    ) -> list[Any]:
        """Return keyed coefficients as tensors."""
        if out is not None:
            _refuse_out()
        if padded is not None and padded != tuple(x.shape):
            missing = [n - m for n, m in zip(padded, x.shape, strict=True)]
            x = _torch().nn.functional.pad(x, [k for n in reversed(missing) for k in (0, n)])
        bands = self.forward_call(spec, levels, list)(x)
        return keyed_bands(bands, spec.keys[1:])

    def forward_call(
        self, spec: TransformSpec, levels: int, nest: Callable[[list[Any]], Any]
    ) -> Callable[[Any], Any]:
        """Return a function of tensors that nests their bands, given in flat order, by ``nest``."""
        transform, backend = encoded(spec), self.backend
        return lambda x: nest(decomposed(x, transform, levels, backend))

    def inverse_call(
        self, tree: BandTree, dtype: np.dtype[Any] | None = None
    ) -> Callable[[Sequence[Any]], Any]:
        """Return a function of bands in flat order, None for zeros, that returns their samples."""
        transform, backend, shape = encoded(tree.spec), self.backend, tree.sample_shapes[0]
        fixed = None if dtype is None else getattr(_torch(), dtype.name)
        return lambda bands: recomposed(bands, transform, shape, backend, fixed)

    def recompose(
        self,
        spec: TransformSpec,
        coeffs: Sequence[Any],
        shape: Shape | None = None,
        out: Any = None,
        cut: Shape | None = None,
        dtype: np.dtype[Any] | None = None,
        limits: Any = None,
    ) -> Any:
        """Return the samples of keyed coefficients as a tensor."""
        if out is not None:
            _refuse_out()
        if limits is not None:
            _refuse_limits()
        tensors = [_tensor(band, coeffs) for band in flat_bands(coeffs, spec.keys[1:])]
        given = [band for band in tensors if band is not None]
        if not given:
            raise ArgumentError(NO_COEFFICIENTS)
        if spec.lifted:
            self.check_floats(given)
        tree, low = BandTree.of_bands(spec, shapes_of(coeffs, TORCH), shape)
        x = tensors[0]
        if not tree.levels:
            x = x.to(_computed_dtype(*given), copy=True)
        else:
            if x is not None and tuple(x.shape) != low:
                x = x[tuple(slice(n) for n in low or ())]
            details = tensors[len(tensors) - tree.levels * (len(spec.keys) - 1) :]
            x = self.inverse_call(tree, dtype)([x, *details])
        return x if cut is None or cut == tuple(x.shape) else x[tuple(slice(n) for n in cut)]

    def check_floats(self, tensors: Sequence[Any]) -> None:
        """Raise an error for integers, which are lifted exactly only outside of PyTorch's operators."""
        if not all(x.is_floating_point() or x.is_complex() for x in tensors):
            raise ArgumentTypeError(
                "the LWT of integers has no gradients, and is not traced by PyTorch; convert them to floats,"
                " or call this outside of torch.compile and torch.func"
            )

    def compile(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise an error: executables are for arrays alone."""
        _refuse_plans()

    def compile_graph(self, graph: Graph, options: TransformOptions = DEFAULT_OPTIONS) -> GraphExecutable:
        """Compile the program of a pipeline, which PyTorch differentiates."""
        from .graphs import TensorGraph

        return TensorGraph(graph, self.backend)


def decomposed(
    x: Any, transform: str, levels: int, backend: str = "auto", stacking: Stacking | None = None
) -> list[Any]:
    """Return the bands of a tensor of any dtype in flat order, or the approximation and stacked levels."""
    from .operators import decompose

    exact = x.dtype in _exact_dtypes()
    converted = x if exact else x.to(_computed_dtype(x))
    if not levels:
        return [converted.clone()]
    parts = decompose(converted, transform, levels, backend, stacking)
    return [part.to(x.dtype) for part in parts] if x.dtype == _torch().bfloat16 else parts


def recomposed(
    parts: Sequence[Any],
    transform: str,
    shape: Shape,
    backend: str = "auto",
    dtype: Any = None,
    stacking: Stacking | None = None,
) -> Any:
    """Return the samples of bands in flat order, or of an approximation and stacked levels; None for zeros.

    They are computed in ``dtype``, by default in that of the tensors.
    """
    from .operators import recompose

    given = [part for part in parts if part is not None]
    common = dtype or _computed_dtype(*given)
    converted = [part if part is None or part.dtype == common else part.to(common) for part in parts]
    x = recompose(converted, transform, shape, backend, stacking)
    bfloat16 = _torch().bfloat16
    return x.to(bfloat16) if all(part.dtype == bfloat16 for part in given) else x


def _torch() -> Any:
    return sys.modules["torch"]


def _tensor(band: Any, coeffs: Sequence[Any]) -> Any:
    """Return a band beside the tensors among the coefficients."""
    if band is None or TORCH.owns(band):
        return band
    example = next(part for part in arrays_of(coeffs) if part is not None and TORCH.owns(part))
    return _torch().as_tensor(np.asarray(band), device=example.device)


@lru_cache(maxsize=1)
def _exact_dtypes() -> frozenset[Any]:
    """Return the dtypes in which tensors are transformed on all devices."""
    torch = _torch()
    return frozenset((torch.float32, torch.float64, torch.complex64, torch.complex128))


def _computed_dtype(*tensors: Any) -> Any:
    """Return the dtype in which tensors are transformed.

    On the host these are float32, float64 and their complex counterparts, and integers become float64. On a
    GPU there is float16 besides, and integers of 8 and 16 bits become float32.
    """
    torch = _torch()
    common = tensors[0].dtype
    for x in tensors[1:]:
        if x.dtype != common:
            common = torch.promote_types(common, x.dtype)
    if common in _exact_dtypes():
        return common
    on_device = tensors[0].device.type == "cuda"
    if common == torch.float16 and on_device:
        return common
    if common.is_complex:
        return torch.complex64
    small = common in (torch.bool, torch.int8, torch.uint8, torch.int16, torch.uint16)
    return torch.float32 if common.is_floating_point or (on_device and small) else torch.float64


def _refuse_out() -> NoReturn:
    raise ArgumentTypeError(
        "out cannot be combined with tensors that PyTorch differentiates or traces; omit it, pass .detach()"
        " of a tensor with requires_grad=True, or call this within torch.no_grad()"
    )


def _refuse_limits() -> NoReturn:
    raise ArgumentTypeError(
        "a rule has no gradients within an inverse; apply undula.threshold to the coefficients, pass"
        " .detach() of tensors with requires_grad=True, or call this within torch.no_grad()"
    )


def _refuse_plans() -> NoReturn:
    raise ArgumentTypeError(
        "this needs an array, and got a tensor that PyTorch differentiates or traces; pass .detach() of a"
        " tensor with requires_grad=True, or call this within torch.no_grad()"
    )


@lru_cache(maxsize=16)
def tensor_engine(backend: str) -> TensorEngine:
    """Return the engine of tensors that a backend transforms."""
    return TensorEngine(backend)
