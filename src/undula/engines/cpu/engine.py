"""The CPU engine: transforms compiled once for each layout of NumPy's arrays, and run on any such arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...lowering.graph import Graph
from ...lowering.mixing import Mixing, RowFragments
from ...lowering.spec import BandTree, LevelOperators
from ..base import (
    DEFAULT_OPTIONS,
    GraphExecutable,
    RunCache,
    TransformOptions,
    UnfollowableStridesError,
)
from ..memory import allocator
from ..numpy_engine import NumpyEngine, array_view
from ..threads import get_num_threads
from .builtin import array_function
from .compile import LIFTING, compile_transform, kernel_operators, reads_fragments
from .executable import FIRST_ARRAY, CpuExecutable

__all__ = ["CPU", "CpuEngine", "ForwardCall", "InverseCall"]

Array = NDArray[Any]


@lru_cache(maxsize=1024)
def cached_executable(
    back: bool,
    tree: BandTree,
    dtype: np.dtype[Any],
    layouts: tuple[tuple[Any, ...] | None, ...],
    mixing: Mixing | RowFragments | None,
) -> CpuExecutable | int:
    """Return an executable for arrays of these shapes, strides and dtypes, in flat order.

    If kernels cannot follow the strides of an array, the number of its buffer is returned, and kept as well.
    """
    views = [
        None if layout is None else ArrayView(buffer, *layout)
        for buffer, layout in enumerate(layouts, FIRST_ARRAY)
    ]
    try:
        return compile_transform(back, dtype, CPU.operators(tree, dtype), views, mixing)
    except UnfollowableStridesError as error:
        return error.buffer


class CpuEngine(NumpyEngine):
    """Kernels that are machine code, on all cores."""

    name = "cpu"
    lifting = LIFTING

    def operators(
        self, tree: BandTree, dtype: np.dtype[Any], options: TransformOptions = DEFAULT_OPTIONS
    ) -> list[LevelOperators]:
        """Return the operators of each level, finest first, as kernels run them."""
        levels = super().operators(tree, dtype, options)
        return [LevelOperators(shape, kernel_operators(operators)) for shape, operators in levels]

    def compile(
        self,
        back: bool,
        tree: BandTree,
        dtype: np.dtype[Any],
        views: Sequence[ArrayView | None],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> CpuExecutable:
        """Compile a transform for arrays of the shapes and strides of these views.

        With mixing, the first view is that of an image ``(H, W, C)``, of whose channels the samples are made.
        An executable is kept for the next time, whatever the buffers of the views are.
        """
        layouts = tuple([None if view is None else view[1:4] for view in views])
        executable = cached_executable(back, tree, dtype, layouts, options.mixing)
        if isinstance(executable, int):
            raise UnfollowableStridesError(executable)
        return executable

    def compile_graph(self, graph: Graph, options: TransformOptions = DEFAULT_OPTIONS) -> GraphExecutable:
        """Compile the program of a pipeline."""
        from .graphs import CpuGraph

        return CpuGraph(graph)

    def compile_function(
        self, back: bool, tree: BandTree, dtype: np.dtype[Any], views: Sequence[ArrayView | None]
    ) -> Callable[..., bool]:
        """Compile a transform into a function of the samples and all bands in flat order.

        It returns False, and has done nothing, if it cannot read the arrays; :meth:`run` can.
        """
        return array_function(self.compile(back, tree, dtype, views), dtype, back, views)

    def run(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Array | None],
        dtype: np.dtype[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
        fresh: bool = True,
        cache: RunCache | None = None,
    ) -> None:
        """Transform arrays in flat order, those in C order by a built-in function, which a plan keeps."""
        samples = arrays[0]
        assert samples is not None
        # Integers may be lifted by functions of NumPy's arrays, of which no built-in function is made.
        plain = options.rule is None and samples.shape == tree.sample_shapes[0] and dtype.kind in "fc"
        if plain and samples.flags.c_contiguous:
            function = _contiguous_function(back, tree, dtype)
            if cache is not None:
                cache.repeat = function
            if function(*arrays):
                return
        super().run(back, tree, arrays, dtype, options)

    def reads_fragments(self, tree: BandTree, dtype: np.dtype[Any]) -> bool:
        """Return whether :meth:`run_on_fragments` can decompose samples of a dtype."""
        return reads_fragments(dtype, *self.operators(tree, dtype)[0])

    def run_on_fragments(
        self,
        tree: BandTree,
        rows: Array,
        fragments: RowFragments,
        bands: Sequence[Array],
        dtype: np.dtype[Any],
    ) -> None:
        """Decompose planes whose rows are in fragments at different places in memory.

        Parameters
        ----------
        tree : BandTree
        rows : array of int64
            Addresses of the fragments of each row, of shape ``(planes, rows, fragments)``.
        fragments : RowFragments
            The lengths of the fragments, in real numbers; even, except that of the last one, unless there are
            several samples at each place.
        bands : sequence of array
            Results in flat order, C-contiguous.
        dtype : dtype
            Dtype of samples and results.
        """
        views = [ArrayView.contiguous(0, rows.shape, "int64"), *tree.contiguous_views(dtype.name)[1:]]
        layouts = tuple(view[1:4] for view in views)
        executable = cached_executable(False, tree, dtype, layouts, fragments)
        assert not isinstance(executable, int)
        executable.run([rows, *bands])

    def memory_order(self, arrays: Sequence[Array | None]) -> list[int] | None:
        """Return the axes by falling strides, if samples are beside each other in that order only."""
        orders = [_memory_order(array) for array in arrays if array is not None]
        return orders[0] if all(order == orders[0] for order in orders) else None


def _memory_order(x: Array) -> list[int] | None:
    if x.flags.c_contiguous or x.ndim < 2 or x.strides[-1] == x.itemsize or x.itemsize not in x.strides:
        return None
    return sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))


CPU = CpuEngine()


def engine(number: int | None) -> CpuEngine:
    """Return the engine; there is one."""
    return CPU


def names() -> list[str]:
    """Return a description of the processor."""
    threads = get_num_threads()
    return [f"CPU, {threads} thread{'s' * (threads > 1)}"]


# --- calls that were seen before ------------------------------------------------------------------


@lru_cache(maxsize=256)
def _contiguous_function(back: bool, tree: BandTree, dtype: np.dtype[Any]) -> Callable[..., bool]:
    return CPU.compile_function(back, tree, dtype, tree.contiguous_views(dtype.name))


class ForwardCall:
    """A forward transform of arrays of one shape, dtype and strides into new arrays.

    Parameters
    ----------
    tree : BandTree
    x : array
        Samples of the layout that all others have.
    nest : callable
        Nests the bands, given in flat order, as the caller expects them.
    """

    def __init__(self, tree: BandTree, x: Array, nest: Callable[[list[Array]], Any]) -> None:
        self._dtype, self._nest = x.dtype, nest
        self._shapes = tree.flat_shapes
        self._empty = allocator(sum(map(math.prod, self._shapes)) * x.itemsize)
        view = array_view(x)
        if view is None:
            raise UnfollowableStridesError(FIRST_ARRAY)
        views = [view, *tree.contiguous_views(x.dtype.name)[1:]]
        self._run = CPU.compile_function(False, tree, x.dtype, views)

    def __call__(self, x: Array) -> Any:
        """Return the coefficients, or None if only :meth:`CpuEngine.run` can read the array."""
        new, dtype = self._empty, self._dtype
        bands = [new(shape, dtype) for shape in self._shapes]
        return self._nest(bands) if self._run(x, *bands) else None


class InverseCall:
    """An inverse transform of arrays of one dtype into a new array.

    Parameters
    ----------
    tree : BandTree
    bands : sequence of array or None
        Bands in flat order, with the layouts that all others have; None for zeros.
    """

    def __init__(self, tree: BandTree, bands: Sequence[Array | None]) -> None:
        self._shape = tree.sample_shapes[0]
        self._dtype = next(band.dtype for band in bands if band is not None)
        self._empty = allocator(math.prod(self._shape) * self._dtype.itemsize)
        samples = ArrayView.contiguous(0, self._shape, self._dtype.name)
        views = [None if band is None else array_view(band) for band in bands]
        if any(band is not None and view is None for band, view in zip(bands, views, strict=True)):
            raise UnfollowableStridesError(FIRST_ARRAY)
        self._run = CPU.compile_function(True, tree, self._dtype, [samples, *views])

    def __call__(self, bands: Sequence[Array | None]) -> Array | None:
        """Return the samples of bands, or None if only :meth:`CpuEngine.run` can read them."""
        x = self._empty(self._shape, self._dtype)
        return x if self._run(x, *bands) else None
