"""The wavelet transform of a pipeline, as nodes of its graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..lowering.graph import Transform
from ..lowering.spec import BandTree, transform_spec
from ..lowering.symbolic import SymbolicArray, materialize, symbolic
from ..wavelets import Wavelet

__all__ = ["MAX_LEVELS", "PipelineTransform"]

MAX_LEVELS = 64  # No array is large enough for more.


@dataclass(frozen=True)
class PipelineTransform:
    """A transform of symbolic arrays.

    Parameters
    ----------
    wavelet : Wavelet
    mode : str
        Boundary mode.
    """

    wavelet: Wavelet
    mode: str = "symmetric"

    def _tree(self, shape: tuple[int, ...], axes: Sequence[int], levels: int) -> BandTree:
        spec = transform_spec(len(shape), self.wavelet, self.mode, tuple(axes))
        return BandTree.of_samples(spec, shape, levels)

    def decompose(
        self, x: SymbolicArray, levels: int, axes: Sequence[int], shifts: int = 1
    ) -> tuple[Any, list[dict[str, Any]]]:
        """Return the approximation, and the details of each level by key, finest first."""
        graph, tree = x.graph, self._tree(x.shape, axes, levels)
        (samples,) = materialize(x)
        shapes = [
            (shape[0], shifts * shape[1], *shape[2:]) if shifts > 1 else shape for shape in tree.flat_shapes
        ]
        bands = tuple(graph.allocate(shape, x.dtype) for shape in shapes)
        graph.phase, before = "forward", graph.phase
        graph.append(Transform(tree, False, samples, bands, shifts))
        graph.phase = before
        low, *details = tree.by_key([symbolic(graph, band) for band in bands])
        return low, details[::-1]

    def recompose(
        self,
        low: SymbolicArray,
        details: list[dict[str, Any]],
        shape: tuple[int, ...],
        axes: Sequence[int],
        shifts: int = 1,
    ) -> SymbolicArray:
        """Return the samples of the coefficients of :meth:`decompose`."""
        graph, tree = low.graph, self._tree(shape, axes, len(details))
        keys = tree.spec.keys[1:]
        # An approximation that was reconstructed from an odd length may have one sample too many.
        expected = tree.approximation_shape[2 if shifts > 1 else 0 :]
        low = low[(..., *(slice(n) for n in expected))]
        bands = materialize(low, *(level[key] for level in reversed(details) for key in keys))
        samples = graph.allocate(shape, low.dtype)
        graph.phase, before = "inverse", graph.phase
        graph.append(Transform(tree, True, samples, tuple(bands), shifts))
        graph.phase = before
        return symbolic(graph, samples)

    def decompose_level(
        self, x: SymbolicArray, axes: Sequence[int], shifts: int = 1
    ) -> tuple[Any, dict[str, Any]]:
        """Return the approximation and the details of one level by key."""
        low, (details,) = self.decompose(x, 1, axes, shifts)
        return low, details

    def recompose_level(
        self,
        low: SymbolicArray,
        details: dict[str, Any],
        shape: tuple[int, ...],
        axes: Sequence[int],
        shifts: int = 1,
    ) -> SymbolicArray:
        """Return the samples of the coefficients of :meth:`decompose_level`."""
        return self.recompose(low, [details], shape, axes, shifts)
