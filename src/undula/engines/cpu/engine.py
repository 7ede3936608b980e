"""Transforms of NumPy's arrays on the CPU: compiled once for each layout, and run on any arrays of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...lowering.mixing import Mixing
from ...lowering.spec import BandTree
from ..base import DEFAULT_OPTIONS, RunMemory, TransformOptions
from ..memory import allocator, empty
from ..numpy_engine import NumpyEngine
from ..threads import get_num_threads
from .calls import array_function
from .compile import LIFTING, compile_mixed, compile_transform
from .executable import FIRST_ARRAY, CpuExecutable, UnfollowedStridesError

__all__ = [
    "CPU",
    "CpuEngine",
    "ForwardCall",
    "InverseCall",
    "array_call",
    "mixed_executable",
]

Array = NDArray[Any]
Shape = tuple[int, ...]
Layout = tuple[int, ...] | None  # strides, () for C order, None for an array of zeros

# --- executables ----------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def executable(
    back: bool, tree: BandTree, dtype: np.dtype[Any], layouts: tuple[Layout, ...]
) -> CpuExecutable:
    """Return what transforms arrays of these layouts: the samples, then bands in flat order."""
    return compile_transform(back, dtype, tree.operators(dtype, LIFTING), _views(tree, dtype, layouts))


def _views(tree: BandTree, dtype: np.dtype[Any], layouts: Sequence[Layout]) -> list[ArrayView | None]:
    """Return arrays as kernels see them, or raise an error where strides are no multiples of an element."""
    size, views = dtype.itemsize, list[ArrayView | None]()
    for number, (shape, layout) in enumerate(zip(_shapes(tree), layouts, strict=True), FIRST_ARRAY):
        if layout is None:
            views.append(None)
        elif any(step % size for step in layout):
            raise UnfollowedStridesError(number)
        elif layout:
            views.append(ArrayView(number, shape, tuple(step // size for step in layout), dtype.name))
        else:
            views.append(ArrayView.contiguous(number, shape, dtype.name))
    return views


def _shapes(tree: BandTree) -> list[Shape]:
    return [tree.sample_shapes[0], *tree.flat_shapes]


_unfollowed: set[Any] = set()  # Layouts of which kernels cannot follow the strides.


def run(back: bool, tree: BandTree, arrays: Sequence[Array | None], dtype: np.dtype[Any]) -> None:
    """Transform arrays: the samples, then bands in flat order, None for zeros.

    Arrays whose strides kernels cannot follow are copied.
    """
    arrays = list(arrays)
    targets = range(1) if back else range(1, len(arrays))
    copied: list[tuple[Array, Array]] = []

    def copy(k: int) -> None:
        array = arrays[k]
        assert array is not None
        if k in targets:
            arrays[k] = empty(array.shape, array.dtype)
            copied.append((array, arrays[k]))  # type: ignore[arg-type]
        else:
            arrays[k] = np.array(array, order="C")

    layouts: list[Layout] = []
    for k, array in enumerate(arrays):
        layout = None if array is None else () if array.flags.c_contiguous else array.strides
        if layout is not None and (
            not array.flags.aligned or (back, tree, dtype, k, layout) in _unfollowed  # type: ignore[union-attr]
        ):
            copy(k)
            layout = ()
        layouts.append(layout)
    while True:
        try:
            compiled = executable(back, tree, dtype, tuple(layouts))
            break
        except UnfollowedStridesError as error:
            k = error.buffer - FIRST_ARRAY
            if len(_unfollowed) > 1024:
                _unfollowed.clear()
            _unfollowed.add((back, tree, dtype, k, layouts[k]))
            copy(k)
            layouts[k] = ()
    compiled.run(arrays)
    for target, values in copied:
        target[...] = values


class CpuEngine(NumpyEngine):
    """Kernels that are machine code, on all cores."""

    name = "cpu"
    lifting = LIFTING

    def compile(
        self,
        back: bool,
        tree: BandTree,
        dtype: np.dtype[Any],
        views: Sequence[ArrayView | None],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> CpuExecutable:
        """Compile a transform for arrays of the strides of these views."""
        return executable(
            back, tree, dtype, tuple([None if view is None else view.byte_strides for view in views])
        )

    def run(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Array | None],
        dtype: np.dtype[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
        fresh: bool = True,
        memory: RunMemory | None = None,
    ) -> None:
        """Transform arrays in flat order; a plan can repeat that on other arrays in C order."""
        samples = arrays[0]
        assert samples is not None
        # Integers may be lifted by steps that are no kernels.
        plain = options.rule is None and samples.shape == tree.sample_shapes[0] and dtype.kind in "fc"
        if plain and samples.flags.c_contiguous:
            call = _contiguous_call(back, tree, dtype)
            if memory is not None:
                memory.repeat = call
            if call(*arrays):
                return
        super().run(back, tree, arrays, dtype, options)

    def execute(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Array | None],
        dtype: np.dtype[Any],
        options: TransformOptions,
    ) -> None:
        """Transform arrays of the shapes of the tree, and copy those whose strides kernels cannot follow."""
        run(back, tree, arrays, dtype)

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


def array_call(
    back: bool, tree: BandTree, dtype: np.dtype[Any], layouts: Sequence[Layout] | None = None
) -> Callable[..., bool]:
    """Return a function of the samples and all bands in flat order, by default all in C order.

    It returns False, and has done nothing, where :func:`run` has to look closer at the arrays.
    """
    layouts = ((),) * len(_shapes(tree)) if layouts is None else tuple(layouts)
    compiled = executable(back, tree, dtype, layouts)
    return array_function(compiled, dtype, back, _views(tree, dtype, layouts))


_contiguous_call = lru_cache(maxsize=256)(array_call)


class ForwardCall:
    """A transform forward of arrays of one shape, dtype and strides into new arrays.

    Parameters
    ----------
    tree : BandTree
    dtype : dtype
    strides : tuple of int
        Of the samples.
    nest : function
        That makes what the caller returns of the bands in flat order.
    """

    def __init__(
        self, tree: BandTree, dtype: np.dtype[Any], strides: Shape, nest: Callable[[list[Array]], Any]
    ) -> None:
        self._dtype, self._nest = dtype, nest
        self._shapes = tree.flat_shapes
        self._empty = allocator(sum(map(math.prod, self._shapes)) * dtype.itemsize)
        self._run = array_call(False, tree, dtype, [strides, *[()] * len(self._shapes)])

    def __call__(self, x: Array) -> Any:
        """Return the coefficients, or None if :func:`run` has to look closer at the array."""
        new, dtype = self._empty, self._dtype
        bands = [new(shape, dtype) for shape in self._shapes]
        return self._nest(bands) if self._run(x, *bands) else None


class InverseCall:
    """A transform back of arrays of known shapes and dtype, in C order, into a new array."""

    def __init__(self, tree: BandTree, dtype: np.dtype[Any], layouts: Sequence[Layout]) -> None:
        self._shape, self._dtype = tree.sample_shapes[0], dtype
        self._empty = allocator(math.prod(self._shape) * dtype.itemsize)
        self._run = array_call(True, tree, dtype, [(), *layouts])

    def __call__(self, bands: Sequence[Array | None]) -> Array | None:
        """Return the samples of bands in flat order, or None if :func:`run` has to look closer at them."""
        x = self._empty(self._shape, self._dtype)
        return x if self._run(x, *bands) else None


# --- channels of images -----------------------------------------------------------------------------


@lru_cache(maxsize=64)
def mixed_executable(tree: BandTree, dtype: np.dtype[Any], image: ArrayView, mixing: Mixing) -> CpuExecutable:
    """Return what transforms planes that are made of the channels of an image ``(H, W, C)``."""
    bands = [
        ArrayView.contiguous(number, part, dtype.name)
        for number, part in enumerate(tree.flat_shapes, FIRST_ARRAY + 1)
    ]
    return compile_mixed(dtype, tree.operators(dtype, LIFTING), image, mixing, bands)
