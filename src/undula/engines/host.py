"""Transforms of NumPy's arrays on the CPU: compiled once for each layout, and run on any arrays of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import NUMPY, ArrayView, check_out, result_dtype
from ..errors import ArgumentError
from ..lowering.growth import Growth, gains_back, growth
from ..lowering.mixing import Mixing
from ..lowering.spec import NO_COEFFICIENTS, BandTree, TransformSpec
from . import base, cpu
from .base import DEFAULT_OPTIONS, Engine, TransformOptions
from .cpu import FIRST_ARRAY, Executable, UnfollowedStridesError, allocator, empty

__all__ = [
    "CPU",
    "CPUEngine",
    "ForwardCall",
    "HostEngine",
    "InverseCall",
    "array_call",
    "decompose",
    "host_engine",
    "recompose",
]

Array = NDArray[Any]
Shape = tuple[int, ...]
Layout = tuple[int, ...] | None  # strides, () for C order, None for an array of zeros

# --- executables ----------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def executable(back: bool, tree: BandTree, dtype: np.dtype[Any], layouts: tuple[Layout, ...]) -> Executable:
    """Return what transforms arrays of these layouts: the samples, then bands in flat order."""
    return cpu.compile_transform(
        back, dtype, tree.operators(dtype, cpu.LIFTING), _views(tree, dtype, layouts)
    )


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


class HostEngine(Engine):
    """An engine that runs on arrays of NumPy."""

    def run(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Array | None],
        dtype: np.dtype[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Transform arrays in flat order; None stands for zeros."""
        self.compile(back, tree, dtype, (), options).run(arrays)


class CPUEngine(HostEngine):
    """Kernels that are machine code, on all cores."""

    name = "cpu"
    lifting = cpu.LIFTING

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of results: float32 stays, float16 becomes it, integers become float64."""
        return result_dtype(dtype)

    def compile(
        self,
        back: bool,
        tree: BandTree,
        dtype: np.dtype[Any],
        layouts: Sequence[Layout],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> Executable:
        """Compile a transform; a layout is the strides in bytes, or () for C order."""
        return executable(back, tree, dtype, tuple(layouts))

    def run(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Array | None],
        dtype: np.dtype[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Transform arrays in flat order; those whose strides kernels cannot follow are copied."""
        run(back, tree, arrays, dtype)


CPU = CPUEngine()


def host_engine(backend: str) -> HostEngine:
    """Return the engine of a backend that computes on the host."""
    found = base.engine(backend)
    assert isinstance(found, HostEngine)
    return found


def engine(number: int | None) -> CPUEngine:
    """Return the engine; there is one."""
    return CPU


def names() -> list[str]:
    """Return a description of the processor."""
    threads = cpu.get_num_threads()
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
    return cpu.array_function(compiled, dtype, back, _views(tree, dtype, layouts))


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


# --- forward --------------------------------------------------------------------------------------


def decompose(
    spec: TransformSpec,
    x: Array,
    levels: int,
    out: Sequence[Any] | None = None,
    engine: HostEngine = CPU,
    options: TransformOptions = DEFAULT_OPTIONS,
) -> list[Any]:
    """Return ``[approximation, details of the coarsest level, …]``, details by key.

    ``out`` is nested alike, and has been checked by :func:`checked_targets`.
    """
    if levels == 0:
        if out is None:
            return [x.copy()]
        out[0][...] = x
        return list(out)
    order = None if out is not None else _memory_order(x)
    if order is not None:
        coeffs = decompose(spec.transposed(order), x.transpose(order), levels, None, engine, options)
        back = [order.index(axis) for axis in range(x.ndim)]
        details = [{key: band.transpose(back) for key, band in part.items()} for part in coeffs[1:]]
        return [coeffs[0].transpose(back), *details]
    tree = BandTree.of_samples(spec, x.shape, levels)
    bands = [empty(shape, x.dtype) for shape in tree.flat_shapes] if out is None else flat_bands(spec, out)
    engine.run(False, tree, [x, *bands], x.dtype, options)
    return tree.by_key(bands)


def _memory_order(x: Array) -> list[int] | None:
    """Return the axes from the largest stride to the smallest, if samples are beside each other only so."""
    if x.flags.c_contiguous or x.ndim < 2 or x.strides[-1] == x.itemsize or x.itemsize not in x.strides:
        return None
    return sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))


def flat_bands(spec: TransformSpec, keyed: Sequence[Any]) -> list[Any]:
    """Return bands in flat order: the approximation, then details by level in the order of their keys."""
    return [keyed[0], *(part.get(key) for part in keyed[1:] for key in spec.keys[1:])]


def decompose_mixed(
    spec: TransformSpec, image: Array, mixing: Mixing, levels: int, dtype: np.dtype[Any]
) -> list[Any]:
    """Decompose planes ``(P, H, W)`` that are made of the channels of an image, ``(H, W, C)``.

    They are made row by row as the first level needs them, where it can do that, and are never all there.
    """
    shape = (mixing.planes, *image.shape[:2])
    tree = BandTree.of_samples(spec, shape, levels)
    operators = tree.operators(dtype, cpu.LIFTING)
    if not levels or not cpu.mixes(*operators[0][:1], dtype, operators[0][1]):
        planes = empty(shape, dtype)
        cpu.mix_planes(image, mixing, planes)
        return decompose(spec, planes, levels)
    bands = [empty(part, dtype) for part in tree.flat_shapes]
    view = ArrayView(FIRST_ARRAY, image.shape, NUMPY.strides(image), image.dtype.name)
    _mixed(tree, dtype, view, mixing).run([image, *bands])
    return tree.by_key(bands)


@lru_cache(maxsize=64)
def _mixed(tree: BandTree, dtype: np.dtype[Any], image: ArrayView, mixing: Mixing) -> Executable:
    bands = [
        ArrayView.contiguous(number, part, dtype.name)
        for number, part in enumerate(tree.flat_shapes, FIRST_ARRAY + 1)
    ]
    return cpu.compile_mixed(dtype, tree.operators(dtype, cpu.LIFTING), image, mixing, bands)


def checked_targets(
    spec: TransformSpec, x: Array, levels: int, out: Any, keyed: Sequence[Any] | None, given: Array
) -> Sequence[Any]:
    """Return arrays for results, nested by key, or raise an error where one does not fit.

    ``out`` is what the caller gave, ``keyed`` the same with details by key, or None if it is no such thing;
    ``given`` is the caller's array, of which ``x`` may be a copy of another type.
    """
    expected = BandTree.of_samples(spec, x.shape, levels).shapes if levels else [x.shape]
    if keyed is None or len(keyed) != len(expected):
        got = f"{len(out)} entries" if isinstance(out, (list, tuple)) else type(out).__name__
        raise ArgumentError(
            f"out must be nested as the result is, [approximation, details of {levels} level(s)]; got {got}"
        )
    before: list[Array] = [given]
    for number, (part, shape) in enumerate(zip(keyed, expected, strict=True)):
        parts = {"": (part, shape)}
        if number:
            if not isinstance(part, Mapping) or sorted(part) != sorted(shape):
                raise ArgumentError(f"out has to hold the details {sorted(shape)} at place {number}")
            parts = {key: (part[key], shape[key]) for key in shape}
        for key, (array, wants) in parts.items():
            name = f"out[{number}]" + (f"[{key!r}]" if key else "")
            before.append(check_out(array, wants, x.dtype, before, name))
    return keyed


# --- back -----------------------------------------------------------------------------------------


def recompose(
    spec: TransformSpec,
    coeffs: Sequence[Any],
    shape: Shape | None = None,
    out: Array | None = None,
    engine: HostEngine = CPU,
    options: TransformOptions = DEFAULT_OPTIONS,
) -> Array:
    """Return the samples of coefficients: the inverse of :func:`decompose`.

    Parameters
    ----------
    spec : TransformSpec
    coeffs : list
        Arrays of numbers or None: the approximation, and details by key.
    shape : tuple of int, optional
        Of the result, where an odd length is asked for.
    out : array, optional
        For the result.
    engine : HostEngine, optional
    options : TransformOptions, optional
    """
    bands = [coeffs[0], *(band for part in coeffs[1:] for band in part.values())]
    given = [band for band in bands if band is not None]
    if not given:
        raise ArgumentError(NO_COEFFICIENTS)
    dtype = coefficient_dtype(spec, given)
    typed: list[Any] = [
        _typed(coeffs[0], dtype),
        *({key: _typed(band, dtype) for key, band in part.items()} for part in coeffs[1:]),
    ]
    tree, low = BandTree.of_bands(spec, band_shapes(typed), shape)
    if tree.levels == 0:
        x = np.array(typed[0]) if out is None else check_out(out, typed[0].shape, dtype, given, "out")
        x[...] = typed[0]
        return x
    flat = flat_bands(spec, [typed[0], *typed[len(typed) - tree.levels :]])
    if flat[0] is not None and flat[0].shape != low:
        flat[0] = flat[0][tuple(slice(n) for n in low or ())]
    lengths = tree.sample_shapes[0]
    order = _common_order(flat) if out is None else None
    if out is not None:
        x = check_out(out, lengths, dtype, given, "out")
        engine.run(True, tree, [x, *flat], dtype, options)
    elif order is None:
        x = empty(lengths, dtype)
        engine.run(True, tree, [x, *flat], dtype, options)
    else:
        turned = BandTree(
            spec.transposed(order), tuple(tuple(s[axis] for axis in order) for s in tree.sample_shapes)
        )
        x = empty(turned.sample_shapes[0], dtype)
        turned_bands = [None if band is None else band.transpose(order) for band in flat]
        engine.run(True, turned, [x, *turned_bands], dtype, options)
        x = x.transpose([order.index(axis) for axis in range(x.ndim)])
    if spec.lifted and dtype.kind in "iu" and not surely_fit(spec, coeffs, x):
        if dtype.itemsize == 8:
            check_way_back(spec, x, coeffs, engine)
        else:
            x[...] = _narrowed(_recomposed_wider(spec, coeffs, dtype, engine), dtype)
    return x


def band_shapes(coeffs: Sequence[Any]) -> list[Any]:
    """Return the shapes of coefficients by key, None for those that are None."""
    low = None if coeffs[0] is None else coeffs[0].shape
    details = [
        {key: None if band is None else band.shape for key, band in part.items()} for part in coeffs[1:]
    ]
    return [low, *details]


def coefficient_dtype(spec: TransformSpec, given: Sequence[Array]) -> np.dtype[Any]:
    """Return the dtype in which coefficients are transformed back."""
    dtypes = {array.dtype for array in given}
    common = np.result_type(*dtypes) if len(dtypes) > 1 else dtypes.pop()
    if not spec.lifted:
        return result_dtype(common)
    if common.kind in "iu":
        return integer_dtype(common)
    if any(array.dtype.kind in "iu" for array in given):
        raise ArgumentError(
            "coefficients of an LWT are all integers (unscaled) or all floats (scaled), got "
            f"{sorted({str(array.dtype) for array in given})}"
        )
    return result_dtype(common)


def _typed(band: Array | None, dtype: np.dtype[Any]) -> Array | None:
    return None if band is None else band.astype(dtype, copy=False)


def _common_order(bands: Sequence[Array | None]) -> list[int] | None:
    """Return the order of axes in memory that all bands have, if it is another than that of C."""
    orders = [_memory_order(band) for band in bands if band is not None]
    return orders[0] if all(order == orders[0] for order in orders) else None


# --- integers -------------------------------------------------------------------------------------


def integer_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the integers that coefficients of these are lifted in."""
    signed = dtype.itemsize if dtype.kind == "i" else min(8, 2 * dtype.itemsize)
    return np.dtype(f"i{max(2, signed)}")


def surely_fit(spec: TransformSpec, coeffs: Sequence[Any], x: Array) -> bool:
    """Whether integers of the dtype of ``x`` hold whatever such coefficients can lead to on the way back."""
    weights, error = _gains_back(spec, x.shape, len(coeffs) - 1, 8 * x.itemsize)
    return sum(map(mul, weights, cpu.largest_of(flat_bands(spec, coeffs))), error) <= 1


@lru_cache(maxsize=512)
def _gains_back(spec: TransformSpec, shape: Shape, levels: int, bits: int) -> tuple[list[float], float]:
    lengths = tuple(shape[axis] for axis in spec.axes)
    weights, error = gains_back(spec.wavelets, spec.modes, lengths, levels, bits)
    return weights.tolist(), error


def _recomposed_wider(
    spec: TransformSpec, coeffs: Sequence[Any], dtype: np.dtype[Any], engine: HostEngine
) -> Array:
    """Return the samples in integers twice as wide as ``dtype``."""
    wider = np.dtype(f"i{2 * dtype.itemsize}")
    details = [{key: band.astype(wider) for key, band in part.items()} for part in coeffs[1:]]
    return recompose(spec, [coeffs[0].astype(wider), *details], engine=engine)


def _narrowed(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return samples in a dtype that holds them, or raise an error."""
    least, most, info = int(x.min()), int(x.max()), np.iinfo(dtype)
    if least < info.min or most > info.max:
        raise ArgumentError(
            f"these {dtype} coefficients lead to samples from {least} to {most}, which {dtype} does not hold;"
            f" pass coefficients of {x.dtype}"
        )
    return x.astype(dtype)


def check_way_back(spec: TransformSpec, x: Array, coeffs: Sequence[Any], engine: HostEngine = CPU) -> None:
    """Raise an error unless these samples, transformed, give just these coefficients."""
    levels = len(coeffs) - 1
    if grown(spec, x.shape, levels).fits(cpu.largest(x), 8 * x.itemsize):
        again = decompose(spec, x, levels, None, engine)
        same = [np.array_equal(again[0], coeffs[0])]
        for computed, given in zip(again[1:], coeffs[1:], strict=True):
            same += [np.array_equal(computed[key], band) for key, band in given.items()]
        if all(same):
            return
    raise ArgumentError(
        f"these coefficients lead to numbers that {x.dtype} does not hold; scale them down before the inverse"
    )


@lru_cache(maxsize=512)
def grown(spec: TransformSpec, shape: Shape, levels: int) -> Growth:
    """Return how large numbers get along lines of these lengths."""
    return growth(spec.wavelets, spec.modes, tuple(shape[axis] for axis in spec.axes), levels)
