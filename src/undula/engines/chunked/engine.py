"""The engine of Dask arrays: builds graphs of tasks, which transform windows of the array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from ...arrays import DASK
from ...errors import ArgumentError
from ...lowering.dual_tree import DualTree
from ...lowering.nesting import arrays_of
from ...lowering.spec import TransformSpec
from ..base import Engine, split_backend
from ..numpy_engine import NumpyEngine

__all__ = ["ChunkedEngine", "chunked_engine"]

Shape = tuple[int, ...]


class ChunkedEngine(NumpyEngine):
    """Transforms of Dask arrays, by tasks that run on another engine.

    Parameters
    ----------
    backend : str
        The engine that transforms chunks of NumPy; chunks on a device are transformed there.
    """

    name = "dask"
    library = DASK

    def __init__(self, backend: str) -> None:
        split_backend(backend)
        self.backend = backend

    def decompose(
        self, spec: TransformSpec, x: Any, levels: int, out: Any, integers: np.dtype[Any] | None
    ) -> list[Any]:
        """Return keyed coefficients as Dask arrays."""
        from .transforms import decompose

        if out is not None:
            _refuse_out()
        return decompose(spec, x, levels, self.backend, integers)

    def recompose(self, spec: TransformSpec, coeffs: Sequence[Any], shape: Shape | None, out: Any) -> Any:
        """Return the samples of keyed coefficients as a Dask array."""
        from .transforms import recompose

        if out is not None:
            _refuse_out()
        given = [band for band in arrays_of(coeffs) if band is not None]
        dtype = self.coefficient_dtype(spec.lifted, {np.dtype(band.dtype) for band in given})
        return recompose(spec, coeffs, shape, self.backend, dtype)

    def dual_tree_bands(self, tree: DualTree, x: Any) -> dict[str, Any]:
        """Return the low-pass band and the details of a dual tree by name, as Dask arrays."""
        from .dual_tree import dual_tree_bands

        return dual_tree_bands(tree, x, self.backend)

    def dual_tree_samples(self, tree: DualTree, bands: Mapping[str, Any]) -> Any:
        """Return the samples of a dual tree as a Dask array."""
        from .dual_tree import dual_tree_samples

        return dual_tree_samples(tree, bands, self.backend)

    def compile(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise an error: executables are for arrays in memory."""
        _refuse_plans()

    def compile_graph(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise an error: executables are for arrays in memory."""
        _refuse_plans()


def _refuse_out() -> NoReturn:
    raise ArgumentError("transforms of Dask arrays are computed later; omit out, and store the results")


def _refuse_plans() -> NoReturn:
    raise ArgumentError("this needs an array in memory, and got a Dask array; call its compute() first")


@lru_cache(maxsize=16)
def chunked_engine(backend: str) -> Engine:
    """Return the engine of Dask arrays whose chunks a backend transforms."""
    return ChunkedEngine(backend)
