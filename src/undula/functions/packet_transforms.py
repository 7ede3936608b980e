"""Transforms of all nodes of a level of wavelet packets at once.

Nodes of one shape are stacked along a new first axis. The batch ``(K, N)`` is decomposed into the bands
``(2, K, N / 2)``, which are the batch ``(2K, N / 2)`` of the next level without a copy: first the first
subnodes of all nodes, then the second ones, and so on. The way back reads them in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import NUMPY, given_array, library_of, result_dtype, traceable_array
from ..engines.base import engine
from ..engines.dispatch import engine_for
from ..engines.memory import empty
from ..lowering.axis_arguments import per_axis
from ..lowering.borders import max_level
from ..lowering.spec import BandTree, transform_spec
from .discrete import dwt, dwtn
from .discrete_calls import check_line_lengths

__all__ = ["NodeTransform", "layout", "node_transform", "stack", "useful_levels"]

Array = NDArray[Any]
Shape = tuple[int, ...]
MAX_STACKED = 4096  # Samples of a node up to which copying takes less time than a transform of its own.
MAX_TREES = 512


class NodeTransform:
    """One level of the transform of nodes, as their root has checked it.

    Parameters
    ----------
    wavelet, mode, backend
        As the root has them.
    axes : tuple of int
        The axes that are transformed.
    """

    def __init__(self, wavelet: Any, mode: Any, axes: tuple[int, ...], backend: str) -> None:
        self.wavelet, self.mode, self.axes, self.backend = wavelet, mode, axes, backend
        self._trees: dict[tuple[int, Shape], BandTree] = {}

    def _tree(self, count: int, shape: Shape) -> BandTree:
        """Return the transform of so many nodes of one shape, stacked along a new first axis."""
        tree = self._trees.get((count, shape))
        if tree is None:
            axes = [axis + (axis >= 0) for axis in self.axes]
            spec = transform_spec(len(shape) + 1, self.wavelet, self.mode, axes)
            check_line_lengths(spec, (count, *shape), 1)
            if len(self._trees) >= MAX_TREES:
                self._trees.clear()
            tree = self._trees[count, shape] = BandTree.of_samples(spec, (count, *shape), 1)
        return tree

    def __reduce__(self) -> tuple[Any, ...]:
        return node_transform, (self.wavelet, self.mode, self.axes, self.backend)

    def bands(self, x: Array) -> Iterable[Array]:
        """Return the bands of one node, a NumPy array; of a small one in less time than as a batch."""
        if len(self.axes) == 1:
            return dwt(x, self.wavelet, self.mode, self.axes[0], backend=self.backend)
        return dwtn(x, self.wavelet, self.mode, self.axes, backend=self.backend).values()

    def decompose(self, nodes: Sequence[Any], batch: Any = None) -> tuple[list[Any], Any]:
        """Decompose nodes of one layout by one transform.

        Parameters
        ----------
        nodes : sequence
            The data of the nodes.
        batch : array, optional
            The same stacked, if there is such an array.

        Returns
        -------
        bands : list
            The first bands of all nodes, then the second ones, and so on.
        batch : array or None
            The same stacked; None if arrays of this library cannot be parts of another one.
        """
        count, example = len(nodes), nodes[0]
        x = traceable_array(example)
        shape = tuple(x.shape)
        runner = engine_for([x], self.backend)
        library = runner.library
        if not library.allocates or 0 in shape or library_of(x).is_traced(x):
            by_key = [dwtn(x, self.wavelet, self.mode, self.axes, backend=self.backend) for x in nodes]
            return [bands[key] for key in by_key[0] for bands in by_key], None
        tree = self._tree(count, shape)
        if count == 1:
            batch = x.reshape((1, *shape))
        elif batch is None:
            batch = runner.empty((count, *shape), np.dtype(library.dtype(x)), x)
            for number, node in enumerate(nodes):
                batch[number] = given_array(node)
        batch = runner.samples(batch)
        dtype = runner.result_dtype(batch.dtype if library is NUMPY else np.dtype(library.dtype(batch)))
        flat = tree.flat_shapes
        bands = runner.empty((len(flat), *flat[0]), dtype, x)
        runner.run(False, tree, [batch, *_parts(bands)], dtype)
        stacked = bands.reshape((len(flat) * count, *flat[0][1:]))
        results = _parts(stacked)
        if type(example) is not np.ndarray:
            restore = library_of(example).restore
            results = [restore(band, example) for band in results]
        return results, stacked

    def reconstruct(self, batch: Array, shape: Shape | None) -> Array | None:
        """Invert :meth:`decompose` for NumPy arrays.

        Parameters
        ----------
        batch : array
            The stacked bands.
        shape : tuple of int or None
            Shape of a node.

        Returns
        -------
        array or None
            The stacked nodes; None if the bands are not those of nodes of this shape.
        """
        if shape is None:
            return None
        parts = 1 << len(self.axes)
        count = len(batch) // parts
        tree = self._tree(count, shape)
        if tree.flat_shapes[0] != (count, *batch.shape[1:]):
            return None
        x = empty((count, *shape), batch.dtype)
        bands = batch.reshape((parts, count, *batch.shape[1:]))
        engine(self.backend).run(True, tree, [x, *bands], batch.dtype)
        return x


@lru_cache(maxsize=256)
def node_transform(wavelet: Any, mode: Any, axes: tuple[int, ...], backend: str) -> NodeTransform:
    """Return a transform, the same for equal arguments: wavelets that are equal have the same filters."""
    return NodeTransform(wavelet, mode, axes, backend)


def _parts(x: Any) -> list[Any]:
    return [x[number] for number in range(len(x))]


def layout(data: Any) -> tuple[Any, ...]:
    """Return what nodes have in common that can be decomposed by one transform."""
    return type(data), np.shape(data), getattr(data, "dtype", None), getattr(data, "device", None)


def stack(nodes: Sequence[Any]) -> Array | None:
    """Return small NumPy arrays of one shape and dtype as one array; None if they are others."""
    first = nodes[0]
    if type(first) is not np.ndarray or not 0 < first.size <= MAX_STACKED:
        return None
    shape, dtype = first.shape, first.dtype
    if dtype != result_dtype(dtype) or not all(
        type(node) is np.ndarray and node.shape == shape and node.dtype == dtype for node in nodes
    ):
        return None
    return np.concatenate(nodes).reshape((len(nodes), *shape))


def useful_levels(shape: Sequence[int], wavelet: Any, axes: Sequence[int]) -> int:
    """Return how often an array can be decomposed along all of some axes, with a wavelet for each of them.

    Examples
    --------
    >>> from undula import Wavelet
    >>> useful_levels((64, 16), Wavelet("haar"), (0, 1))
    4
    """
    wavelets = per_axis(wavelet, len(axes), "wavelet")
    return min(max_level(shape[axis], bank.dec_len) for axis, bank in zip(axes, wavelets, strict=True))
