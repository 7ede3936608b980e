"""The engine of tensors that PyTorch differentiates, traces or batches: it calls PyTorch's operators.

Whatever is not linear in exactly the dtype of the kernels is done by PyTorch itself, around the operators:
conversion, padding and cutting, of which it knows the derivatives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from ...arrays import TORCH, ArrayLibrary
from ...errors import ArgumentError, ArgumentTypeError
from ...lowering.graph import Graph
from ...lowering.nesting import arrays_of, flat_bands, keyed_bands, shapes_of
from ...lowering.spec import NO_COEFFICIENTS, BandTree, TransformSpec
from ..base import DEFAULT_OPTIONS, GraphExecutable, TransformOptions, split_backend
from ..numpy_engine import NumpyEngine
from .encoding import encoded

__all__ = ["TensorEngine", "tensor_engine"]

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
        from .operators import decompose

        transform, backend, bfloat16 = encoded(spec), self.backend, _torch().bfloat16
        exact = _exact_dtypes()

        def call(x: Any) -> Any:
            if levels and x.dtype in exact:
                return nest(decompose(x, transform, levels, backend))
            converted = x.to(_computed_dtype(x))
            if not levels:
                return nest([converted.clone()])
            bands = decompose(converted, transform, levels, backend)
            return nest([band.to(bfloat16) for band in bands] if x.dtype == bfloat16 else bands)

        return call

    def inverse_call(
        self, tree: BandTree, dtype: np.dtype[Any] | None = None
    ) -> Callable[[Sequence[Any]], Any]:
        """Return a function of bands in flat order, None for zeros, that returns their samples."""
        from .operators import recompose

        transform, backend, torch = encoded(tree.spec), self.backend, _torch()
        shape, fixed = tree.sample_shapes[0], None if dtype is None else getattr(torch, dtype.name)

        def call(bands: Sequence[Any]) -> Any:
            given = [band for band in bands if band is not None]
            dtype = fixed or _computed_dtype(*given)
            converted = [band if band is None or band.dtype == dtype else band.to(dtype) for band in bands]
            x = recompose(converted, transform, shape, backend)
            return x.to(torch.bfloat16) if all(band.dtype == torch.bfloat16 for band in given) else x

        return call

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
