"""The reference engine: transforms in plain NumPy, slow and easy to check. The oracle of all other engines.

Floats are computed in the longest type that NumPy has, whatever the dtype of the arrays. The integers of an
LWT are computed in int64, and come back bit for bit. A scheme transforms two axes by its matrices instead of
by the filters or lifting steps of one axis after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...errors import ArgumentError
from ...lowering.graph import Graph
from ...lowering.nesting import details_by_level
from ...lowering.spec import BandTree, Operators, Task, TransformSpec
from ..base import DEFAULT_OPTIONS, GraphExecutable, TransformOptions
from ..numpy_engine import NumpyEngine
from . import level

__all__ = ["ReferenceEngine", "ReferenceExecutable"]

MAX_INTEGER = 2**40  # Larger integers could overflow in the sums of a lifting step.

Array = NDArray[Any]


class ReferenceEngine(NumpyEngine):
    """Plain NumPy in extended precision."""

    name = "reference"

    def compile(
        self,
        back: bool,
        tree: BandTree,
        dtype: np.dtype[Any],
        views: Sequence[ArrayView | None] = (),
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> ReferenceExecutable:
        """Return the transform; layouts of arrays do not matter."""
        return ReferenceExecutable(back, tree, dtype, options.scheme)

    def compile_graph(self, graph: Graph, options: TransformOptions = DEFAULT_OPTIONS) -> GraphExecutable:
        """Return the program of a pipeline, which runs node by node."""
        from .graphs import ReferenceGraph

        return ReferenceGraph(graph)


class ReferenceExecutable:
    """A transform level by level.

    Parameters
    ----------
    back : bool
        Whether to compute samples from coefficients.
    tree : BandTree
    dtype : dtype
        Dtype of the coefficients.
    scheme : str, optional
        The name of a scheme, for two axes with one wavelet and one mode.
    """

    def __init__(self, back: bool, tree: BandTree, dtype: np.dtype[Any], scheme: str = "auto") -> None:
        spec = tree.spec
        self.back, self.tree, self.scheme = back, tree, None if scheme == "auto" else scheme
        self._kind = {"i": np.int64, "c": np.clongdouble}.get(dtype.kind, np.longdouble)
        if self.scheme is None:
            return
        if len(spec.axes) != 2 or len(set(spec.wavelets)) > 1 or len(set(spec.modes)) > 1:
            raise ArgumentError(
                f"scheme {scheme!r} transforms two axes with one wavelet and one mode, got"
                f" {len(spec.axes)} axes with {[w.name for w in spec.wavelets]} and {list(spec.modes)}"
            )
        if self._kind is np.int64:
            raise ArgumentError(f"integers are lifted axis by axis, not by scheme {scheme!r}; omit it")

    def run(self, arrays: Sequence[Array | None]) -> None:
        """Transform arrays in flat order; None stands for zeros."""
        samples, low, *details = arrays
        by_level = details_by_level(details, len(self.tree.spec.keys) - 1)
        assert samples is not None
        if self.back:
            self._synthesise(samples, low, by_level)
        else:
            self._analyse(samples, low, by_level)

    def _analyse(self, samples: Array, low: Any, by_level: Sequence[Any]) -> None:
        if self._kind is np.int64 and samples.size:
            least, most = int(samples.min()), int(samples.max())
            if max(-least, most) > MAX_INTEGER:
                raise ArgumentError(f"integers up to ±2⁴⁰ are lifted, got {least} to {most}; scale them down")
        x: Array = samples.astype(self._kind)
        for number, bands in enumerate(reversed(by_level)):
            x, *values = self._forward(x, self.tree.spec.at_level(number))
            for target, band in zip(bands, values, strict=True):
                target[...] = band
        low[...] = x

    def _synthesise(self, samples: Array, low: Array | None, by_level: Sequence[Any]) -> None:
        def working(array: Array | None, shape: tuple[int, ...]) -> Array:
            return np.zeros(shape, self._kind) if array is None else array.astype(self._kind)

        x = working(low, self.tree.approximation_shape)
        numbered = reversed(list(enumerate(self.tree.sample_shapes)))
        for (number, shape), detail_shapes, bands in zip(
            numbered, self.tree.detail_shapes, by_level, strict=True
        ):
            details = [working(*pair) for pair in zip(bands, detail_shapes.values(), strict=True)]
            # A DWT has the coefficients of an odd length in common with the next even one.
            spec = self.tree.spec.at_level(number)
            x = self._inverse([x, *details], spec, shape)[tuple(slice(n) for n in shape)]
        samples[...] = x

    def _forward(self, x: Array, spec: TransformSpec) -> list[Array]:
        """Return the bands of one level in the order of their keys."""
        bands = [x]
        if spec.family == "swt" or spec.dual:
            for task in _operators(spec, x.shape):
                bands = [half for band in bands for half in level.apply_operator(task, band)]
            return bands
        split = level.lwt if spec.lifted else level.dwt
        if self.scheme is not None:
            return split(x, spec.wavelets[0], spec.modes[0], spec.axes, self.scheme)
        for axis, wavelet, mode in zip(spec.axes, spec.wavelets, spec.modes, strict=True):
            bands = [half for band in bands for half in split(band, wavelet, mode, [axis], None)]
        return bands

    def _inverse(self, bands: list[Array], spec: TransformSpec, shape: tuple[int, ...]) -> Array:
        """Return the samples of one level."""
        if spec.family == "swt" or spec.dual:
            for axis, op in reversed(_operators(spec, shape)):
                task, pairs = Task(axis, op.inverse()), list(pairwise(bands))[::2]
                bands = [level.apply_operator(task, *pair)[0] for pair in pairs]
            return bands[0]
        join = level.ilwt if spec.lifted else level.idwt
        if self.scheme is not None:
            return join(bands, spec.wavelets[0], spec.modes[0], spec.axes, self.scheme)
        along = list(zip(spec.axes, spec.wavelets, spec.modes, strict=True))
        for axis, wavelet, mode in reversed(along):
            halves = list(pairwise(bands))[::2]
            bands = [join(list(pair), wavelet, mode, [axis], None) for pair in halves]
        return bands[0]


def _operators(spec: TransformSpec, shape: tuple[int, ...]) -> Operators:
    return spec.operators(shape, np.dtype(np.float64), ReferenceEngine.lifting)


def engine(number: int | None) -> ReferenceEngine:
    """Return the engine; there is one."""
    return ReferenceEngine()


def names() -> list[str]:
    """Return no names, as the reference is not listed among the devices: it only checks the others."""
    return []
