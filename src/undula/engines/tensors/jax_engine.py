"""The engine of values that JAX traces: it calls operators that JAX differentiates, batches and compiles."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...arrays import JAX
from ...errors import ArgumentError, ArgumentTypeError
from ...lowering.nesting import flat_bands, keyed_bands, shapes_of
from ...lowering.spec import NO_COEFFICIENTS, BandTree, TransformSpec
from .encoding import encoded
from .engine import TensorEngine

__all__ = ["JaxEngine", "jax_engine"]

Shape = tuple[int, ...]


class JaxEngine(TensorEngine):
    """Transforms of values within ``jit``, ``grad``, ``vmap`` and others, on any device of JAX."""

    name = "jax"
    library = JAX

    def decompose(
        self, spec: TransformSpec, x: Any, levels: int, out: Any = None, padded: Shape | None = None
    ) -> list[Any]:
        """Return keyed coefficients as values of JAX."""
        _refuse(out, "out")
        if padded is not None and padded != tuple(x.shape):
            x = _functions().pad(x, [(0, n - m) for n, m in zip(padded, x.shape, strict=True)])
        return keyed_bands(self.forward_call(spec, levels, list)(x), spec.keys[1:])

    def forward_call(
        self, spec: TransformSpec, levels: int, nest: Callable[[list[Any]], Any]
    ) -> Callable[[Any], Any]:
        """Return a function of samples that nests their bands, given in flat order, by ``nest``."""
        from .jax_operators import decompose

        _check_forward(spec)

        def call(x: Any) -> Any:
            x = _inexact(x)
            if not levels:
                return nest([x])
            return nest(decompose(x, encoded(spec), levels))

        return call

    def inverse_call(
        self, tree: BandTree, dtype: np.dtype[Any] | None = None
    ) -> Callable[[Sequence[Any]], Any]:
        """Return a function of bands in flat order, None for zeros, that returns their samples."""
        from .jax_operators import recompose

        _check_forward(tree.spec)

        def call(bands: Sequence[Any]) -> Any:
            xp = _functions()
            common = xp.result_type(*(_inexact(band) for band in bands if band is not None))
            ready = [
                xp.zeros(shape, common) if band is None else band.astype(common)
                for band, shape in zip(bands, tree.flat_shapes, strict=True)
            ]
            return recompose(ready, encoded(tree.spec), tree.sample_shapes[0])

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
        """Return the samples of keyed coefficients as a value of JAX."""
        _refuse(out, "out")
        _refuse(limits, "a rule")
        flat = flat_bands(coeffs, spec.keys[1:])
        bands: list[Any] = [None if band is None else _functions().asarray(band) for band in flat]
        given = [band for band in bands if band is not None]
        if not given:
            raise ArgumentError(NO_COEFFICIENTS)
        if spec.lifted:
            self.check_floats(given)
        tree, low = BandTree.of_bands(spec, shapes_of(coeffs, JAX), shape)
        x: Any = bands[0]
        if tree.levels:
            if x is not None and tuple(x.shape) != low:
                x = x[tuple(slice(n) for n in low or ())]
            details = bands[len(bands) - tree.levels * (len(spec.keys) - 1) :]
            x = self.inverse_call(tree)([x, *details])
        return x if cut is None or cut == tuple(x.shape) else x[tuple(slice(n) for n in cut)]

    def check_floats(self, tensors: Sequence[Any]) -> None:
        """Raise an error for integers, which are lifted exactly only outside of JAX's transformations."""
        if any(np.dtype(x.dtype).kind in "iub" for x in tensors):
            raise ArgumentTypeError(
                "the LWT of integers is not traced by JAX; convert them to floats, or call this outside of"
                " jit, grad and vmap"
            )


def _functions() -> Any:
    return sys.modules["jax"].numpy


def _inexact(x: Any) -> Any:
    """Return a value in a dtype of floats, as JAX chooses it."""
    return x if np.dtype(x.dtype).kind in "fcV" else x.astype(_functions().float_)


def _refuse(argument: Any, what: str) -> None:
    if argument is not None:
        raise ArgumentTypeError(
            f"{what} cannot be combined with values that JAX traces; omit it, or call this outside of jit,"
            " grad and vmap"
        )


def _check_forward(spec: TransformSpec) -> None:
    if spec.dual:
        raise ArgumentTypeError(
            "adjoints of values that JAX traces are JAX's own; use jax.vjp or jax.linear_transpose of the"
            " transform"
        )


@lru_cache(maxsize=16)
def jax_engine(backend: str) -> JaxEngine:
    """Return the engine of values that JAX traces; they stay on their device whatever the backend is."""
    return JaxEngine(backend)
