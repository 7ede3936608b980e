"""Symbolic arrays: code that computes with arrays, run once to record what it would compute.

A :class:`SymbolicArray` stands for an array of a :class:`~undula.lowering.graph.Graph`. Operators and the
functions of :class:`Namespace`, which are those of the array API, build expressions. Nodes are appended when
an array is needed in memory: for a transform, a window, or a statistic.

>>> graph = Graph()
>>> x = symbolic_input(graph, "x", (2, 3), "float32")
>>> symbolic_output(graph, "y", xp.maximum(2 * x - 1, xp.zeros_like(x)))
>>> print(graph)
x: float32[2, 3]
y: float32[2, 3] = maximum(((2 · x) - 1), 0)
return y: float32[2, 3]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from types import EllipsisType
from typing import Any

import numpy as np

from ..arrays import ArrayView, contiguous
from ..errors import ArgumentError
from .expressions import OPERATIONS, Call, Constant, Expression, Load, loads, rewritten
from .graph import Graph, Move, Pointwise, Reduce

__all__ = [
    "Namespace",
    "SymbolicArray",
    "materialize",
    "reduced",
    "symbolic",
    "symbolic_input",
    "symbolic_output",
    "xp",
]

_NUMPY_NAMES = {operation.numpy: name for name, operation in OPERATIONS.items()}

Shape = tuple[int, ...]
Scalar = bool | int | float


class SymbolicArray:
    """An array that a graph will compute.

    Parameters
    ----------
    graph : Graph
    shape : tuple of int
    dtype : str
    expression : Expression
        Its samples. Loads are broadcast to the shape.
    """

    def __init__(self, graph: Graph, shape: Shape, dtype: str, expression: Expression) -> None:
        self.graph, self.shape, self.dtype, self.expression = graph, tuple(shape), dtype, expression

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __bool__(self) -> bool:
        raise ArgumentError(
            "a stage asked for the value of a sample, but pipelines are compiled before there are samples;"
            " use where() to choose between arrays"
        )

    __float__ = __int__ = __iter__ = __bool__

    def __array_ufunc__(self, function: Any, method: str, *arguments: Any, **options: Any) -> Any:
        name = _NUMPY_NAMES.get(function)
        if name is None or method != "__call__" or options:
            self.__array__(function.__name__)
        return _call(str(name), *arguments)

    def __array__(self, function: Any = None, *_: Any, **__: Any) -> Any:
        raise ArgumentError(
            f"pipelines are compiled before there are samples, and cannot compile NumPy's"
            f" {function or 'asarray'}; use the functions of pyramid.operations.xp"
        )

    def _binary(self, name: str, other: Any, swapped: bool = False) -> Any:
        if not isinstance(other, (SymbolicArray, bool, int, float, np.number, np.bool_)):
            return NotImplemented
        return _call(name, *((other, self) if swapped else (self, other)))

    def __add__(self, other: Any) -> Any:
        return self._binary("add", other)

    def __sub__(self, other: Any) -> Any:
        return self._binary("subtract", other)

    def __mul__(self, other: Any) -> Any:
        return self._binary("multiply", other)

    def __truediv__(self, other: Any) -> Any:
        return self._binary("divide", other)

    def __radd__(self, other: Any) -> Any:
        return self._binary("add", other, True)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("subtract", other, True)

    def __rmul__(self, other: Any) -> Any:
        return self._binary("multiply", other, True)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary("divide", other, True)

    def __pow__(self, other: Any) -> Any:
        if other == 2:
            return self * self
        return self._binary("power", other)

    def __neg__(self) -> Any:
        return _call("negative", self)

    def __abs__(self) -> Any:
        return _call("abs", self)

    def __lt__(self, other: Any) -> Any:
        return self._binary("less", other)

    def __le__(self, other: Any) -> Any:
        return self._binary("less_equal", other)

    def __gt__(self, other: Any) -> Any:
        return self._binary("greater", other)

    def __ge__(self, other: Any) -> Any:
        return self._binary("greater_equal", other)

    def __eq__(self, other: object) -> Any:
        return self._binary("equal", other)

    def __ne__(self, other: object) -> Any:
        return self._binary("not_equal", other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> Any:
        return self._binary("logical_and", other)

    def __or__(self, other: Any) -> Any:
        return self._binary("logical_or", other)

    def __invert__(self) -> Any:
        return _call("logical_not", self)

    def __getitem__(self, index: Any) -> SymbolicArray:
        index = index if isinstance(index, tuple) else (index,)
        position = [k for k, part in enumerate(index) if isinstance(part, EllipsisType)]
        consumed = sum(part is not None and not isinstance(part, EllipsisType) for part in index)
        rest = (slice(None),) * (self.ndim - consumed)
        k = position[0] if position else len(index)
        full = (*index[:k], *rest, *index[k + 1 :])

        def indexed(view: ArrayView) -> ArrayView:
            shape, strides, offset, axis = [], [], view.offset, 0
            for part in full:
                if part is None:
                    shape.append(1)
                    strides.append(0)
                    continue
                n, stride = view.shape[axis], view.strides[axis]
                axis += 1
                if isinstance(part, slice):
                    begin, end, step = part.indices(n)
                    shape.append(len(range(begin, end, step)))
                    strides.append(stride * step)
                    offset += stride * begin
                else:
                    offset += stride * (int(part) % n)
            return view._replace(shape=tuple(shape), strides=tuple(strides), offset=offset)

        return self._viewed(indexed)

    def _viewed(self, change: Callable[[ArrayView], ArrayView]) -> SymbolicArray:
        """Return the array with the view of each load changed."""
        shape = change(ArrayView("", self.shape, (0,) * self.ndim, self.dtype)).shape
        if any(load.finer for load in loads(self.expression)):
            materialize(self)

        def changed(load: Load) -> Load:
            return Load(change(_broadcast(load.view, self.shape)))

        return SymbolicArray(self.graph, shape, self.dtype, rewritten(self.expression, changed))


def _broadcast(view: ArrayView, shape: Shape) -> ArrayView:
    """Return a view broadcast to a shape."""
    missing = len(shape) - len(view.shape)
    sizes, strides = (1,) * missing + view.shape, (0,) * missing + view.strides
    if any(n not in (1, m) for n, m in zip(sizes, shape, strict=True)):
        raise ArgumentError(f"cannot broadcast an array of shape {view.shape} to {shape}")
    steps = tuple(0 if n == 1 else s for n, s in zip(sizes, strides, strict=True))
    return view._replace(shape=shape, strides=steps)


def symbolic(graph: Graph, view: ArrayView) -> SymbolicArray:
    """Return an array of a graph as a symbolic array."""
    return SymbolicArray(graph, view.shape, view.dtype, Load(view))


def symbolic_input(graph: Graph, name: str, shape: Shape, dtype: str) -> SymbolicArray:
    """Add an array that the caller of a graph passes."""
    return symbolic(graph, graph.add_input(name, shape, dtype))


def symbolic_output(graph: Graph, name: str, x: SymbolicArray) -> None:
    """Add an array that the caller of a graph gets."""
    view = graph.add_output(name, x.shape, x.dtype)
    graph.append(Pointwise((view,), (x.expression,)))


def _as_expression(value: Any) -> Expression:
    return value.expression if isinstance(value, SymbolicArray) else Constant(float(value))


def _call(name: str, *arguments: Any) -> SymbolicArray:
    """Apply an operation to symbolic arrays and numbers."""
    arrays = [x for x in arguments if isinstance(x, SymbolicArray)]
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    if OPERATIONS[name].condition:
        dtype = "bool"
    else:
        numbers = arguments[1:] if name == "where" else arguments
        values = [x for x in numbers if isinstance(x, SymbolicArray)]
        dtype = str(np.result_type(*(np.dtype(x.dtype) for x in values))) if values else "float64"
    return SymbolicArray(arrays[0].graph, shape, dtype, Call(name, tuple(map(_as_expression, arguments))))


def materialize(*arrays: SymbolicArray) -> list[ArrayView]:
    """Return the views of arrays; those that are expressions are computed by one node."""
    waiting: dict[int, SymbolicArray] = {}
    for x in arrays:
        load = x.expression
        if not isinstance(load, Load) or load.finer or load.view[1:4:2] != (x.shape, x.dtype):
            waiting[id(x)] = x
    if waiting:
        parts = list(waiting.values())
        graph = parts[0].graph
        results = tuple(graph.allocate(x.shape, x.dtype) for x in parts)
        graph.append(Pointwise(results, tuple(x.expression for x in parts)))
        for x, view in zip(parts, results, strict=True):
            x.expression = Load(view)
    return [x.expression.view for x in arrays]  # type: ignore[union-attr]


def reduced(
    kind: str,
    arrays: Sequence[SymbolicArray],
    limits: Sequence[SymbolicArray | Scalar] = (),
    region: tuple[tuple[int, int], ...] | None = None,
) -> list[SymbolicArray]:
    """Return one number for each item of each array; see :class:`~undula.lowering.graph.Reduce`."""
    graph = arrays[0].graph
    results = tuple(graph.allocate((x.shape[0],), x.dtype) for x in arrays)
    sources = tuple(x.expression for x in arrays)
    shapes = tuple(x.shape for x in arrays)
    graph.append(Reduce(kind, shapes, results, sources, tuple(map(_as_expression, limits)), region))
    return [symbolic(graph, view) for view in results]


class Namespace:
    """The functions of the array API that symbolic arrays have."""

    float32, float64, bool = "float32", "float64", "bool"
    uint8, uint16, uint32, uint64 = "uint8", "uint16", "uint32", "uint64"
    int8, int16, int32, int64 = "int8", "int16", "int32", "int64"
    float16 = "float16"

    def __getattr__(self, name: str) -> Any:
        names = sorted(name for name in dir(type(self)) if not name.startswith("_"))
        raise ArgumentError(f"pipelines cannot compile {name!r}; stages can use {', '.join(names)}")

    @staticmethod
    def finfo(dtype: str) -> Any:
        """Return the limits of floats."""
        return np.finfo(dtype)

    @staticmethod
    def isdtype(dtype: str, kind: str | tuple[str, ...]) -> bool:  # type: ignore[valid-type]
        """Return whether a dtype is of a kind."""
        return bool(np.isdtype(np.dtype(dtype), kind))

    # --- at each place ----------------------------------------------------------------------------

    def abs(self, x: SymbolicArray) -> SymbolicArray:
        """Return magnitudes."""
        return _call("abs", x)

    def sqrt(self, x: SymbolicArray) -> SymbolicArray:
        """Return square roots."""
        return _call("sqrt", x)

    def exp(self, x: SymbolicArray) -> SymbolicArray:
        """Return exponentials."""
        return _call("exp", x)

    def log(self, x: SymbolicArray) -> SymbolicArray:
        """Return logarithms."""
        return _call("log", x)

    def round(self, x: SymbolicArray) -> SymbolicArray:
        """Round, halves to the even integer."""
        return _call("round", x)

    def maximum(self, x: Any, y: Any) -> SymbolicArray:
        """Return the larger samples."""
        return _call("maximum", x, y)

    def minimum(self, x: Any, y: Any) -> SymbolicArray:
        """Return the smaller samples."""
        return _call("minimum", x, y)

    def clip(self, x: SymbolicArray, low: Any, high: Any) -> SymbolicArray:
        """Limit samples to a range."""
        return self.minimum(self.maximum(x, low), high)

    def where(self, condition: SymbolicArray, x: Any, y: Any) -> SymbolicArray:
        """Choose between two arrays."""
        return _call("where", condition, x, y)

    def isinf(self, x: SymbolicArray) -> SymbolicArray:
        """Return whether samples are infinite."""
        return _call("equal", _call("abs", x), math.inf)

    def astype(self, x: SymbolicArray, dtype: str) -> SymbolicArray:
        """Convert to another dtype; numbers that are stored as integers have to be rounded before."""
        if x.dtype == dtype:
            return x
        expression = x.expression
        if x.dtype == "bool":
            expression = Call("where", (expression, Constant(1.0), Constant(0.0)))
        elif dtype == "bool":
            expression = Call("not_equal", (expression, Constant(0.0)))
        return SymbolicArray(x.graph, x.shape, dtype, expression)

    def full_like(self, x: SymbolicArray, value: Scalar) -> SymbolicArray:
        """Return an array of one value."""
        return SymbolicArray(x.graph, x.shape, x.dtype, Constant(float(value)))

    def zeros_like(self, x: SymbolicArray) -> SymbolicArray:
        """Return an array of zeros."""
        return self.full_like(x, 0.0)

    def ones_like(self, x: SymbolicArray) -> SymbolicArray:
        """Return an array of ones."""
        return self.full_like(x, 1.0)

    # --- layout -----------------------------------------------------------------------------------

    def broadcast_to(self, x: SymbolicArray, shape: Sequence[int]) -> SymbolicArray:
        """Repeat an array along axes of one sample."""
        np.broadcast_shapes(x.shape, tuple(shape))
        return SymbolicArray(x.graph, tuple(shape), x.dtype, x.expression)

    def permute_dims(self, x: SymbolicArray, axes: Sequence[int]) -> SymbolicArray:
        """Reorder axes."""
        return x._viewed(
            lambda view: view._replace(
                shape=tuple(view.shape[axis] for axis in axes),
                strides=tuple(view.strides[axis] for axis in axes),
            )
        )

    def expand_dims(self, x: SymbolicArray, axis: int) -> SymbolicArray:
        """Insert an axis of one sample."""
        return x[(*[slice(None)] * (axis % (x.ndim + 1)), None)]

    def reshape(self, x: SymbolicArray, shape: Sequence[int]) -> SymbolicArray:
        """Give an array another shape; it is computed first if its samples are not in C order."""
        known = math.prod(n for n in shape if n != -1)
        sizes = tuple(math.prod(x.shape) // max(1, known) if n == -1 else int(n) for n in shape)
        if math.prod(sizes) != math.prod(x.shape):
            raise ArgumentError(f"cannot reshape an array of shape {x.shape} to {tuple(shape)}")
        views = {}
        for load in loads(x.expression):
            view = None if load.finer else _reshaped(_broadcast(load.view, x.shape), sizes)
            if view is None:
                return symbolic(x.graph, _copied(x)._replace(shape=sizes, strides=contiguous(sizes)))
            views[id(load)] = Load(view)
        return SymbolicArray(x.graph, sizes, x.dtype, rewritten(x.expression, lambda load: views[id(load)]))

    def concat(self, arrays: Sequence[SymbolicArray], axis: int = 0) -> SymbolicArray:
        """Join arrays along an axis."""
        first = arrays[0]
        axis %= first.ndim
        length = sum(x.shape[axis] for x in arrays)
        target = first.graph.allocate((*first.shape[:axis], length, *first.shape[axis + 1 :]), first.dtype)
        results, begin = [], 0
        for x in arrays:
            results.append(target._replace(shape=x.shape, offset=begin * target.strides[axis]))
            begin += x.shape[axis]
        first.graph.append(Pointwise(tuple(results), tuple(x.expression for x in arrays)))
        return symbolic(first.graph, target)

    def stack(self, arrays: Sequence[SymbolicArray], axis: int = 0) -> SymbolicArray:
        """Join arrays along a new axis."""
        place = axis % (arrays[0].ndim + 1)
        return self.concat([self.expand_dims(x, place) for x in arrays], place)

    def take(self, x: SymbolicArray, indices: Sequence[int], axis: int) -> SymbolicArray:
        """Take entries along an axis."""
        (view,) = materialize(x)
        axis %= x.ndim
        places = tuple(int(k) for k in indices)
        result = x.graph.allocate((*x.shape[:axis], len(places), *x.shape[axis + 1 :]), x.dtype)
        x.graph.append(Move(view, result, ((axis, places),)))
        return symbolic(x.graph, result)

    # --- statistics -------------------------------------------------------------------------------

    def _reduced(self, kind: str, x: SymbolicArray, axis: Any, keepdims: Any) -> SymbolicArray:
        axes = sorted(k % x.ndim for k in ((axis,) if isinstance(axis, int) else axis))
        lead = x.ndim - len(axes)
        if axes != list(range(lead, x.ndim)):
            raise ArgumentError(f"statistics are taken of the last axes, got axes {axis} of shape {x.shape}")
        (result,) = reduced(kind, [self.reshape(x, (math.prod(x.shape[:lead]), *x.shape[lead:]))])
        return self.reshape(result, (*x.shape[:lead], *([1] * len(axes) if keepdims else [])))

    def sum(self, x: SymbolicArray, *, axis: Any, keepdims: Scalar = False) -> SymbolicArray:
        """Return the sum of each item."""
        return self._reduced("sum", x, axis, keepdims)

    def max(self, x: SymbolicArray, *, axis: Any, keepdims: Scalar = False) -> SymbolicArray:
        """Return the maximum of each item."""
        return self._reduced("max", x, axis, keepdims)

    def mean(self, x: SymbolicArray, *, axis: Any, keepdims: Scalar = False) -> SymbolicArray:
        """Return the mean of each item."""
        total = self.sum(x, axis=axis, keepdims=keepdims)
        items, axes = math.prod(total.shape), 1 if isinstance(axis, int) else len(axis)
        count = x.graph.item_samples((items, *x.shape[x.ndim - axes :]))
        mean: SymbolicArray = total * (items / (items * count))
        return mean

    def all(self, x: SymbolicArray, *, axis: int, keepdims: Scalar = False) -> SymbolicArray:
        """Return whether all of a few entries along the first axis hold."""
        return self._joined("logical_and", x, axis, keepdims)

    def any(self, x: SymbolicArray, *, axis: int, keepdims: Scalar = False) -> SymbolicArray:
        """Return whether any of a few entries along the first axis holds."""
        return self._joined("logical_or", x, axis, keepdims)

    def _joined(self, name: str, x: SymbolicArray, axis: int, keepdims: Scalar) -> SymbolicArray:
        parts: list[SymbolicArray] = [x[(*[slice(None)] * axis, k)] for k in range(x.shape[axis])]
        joined = reduce(lambda a, b: _call(name, a, b), parts)
        return self.expand_dims(joined, axis) if keepdims else joined


def _reshaped(view: ArrayView, shape: Shape) -> ArrayView | None:
    """Return a view in another shape, or None if its samples have to be copied."""
    rest = [pair for pair in zip(view.shape, view.strides, strict=True) if pair[0] != 1]
    strides = []
    for n in reversed(shape):
        # An axis of the new shape is made of the last axes, or of a part of one.
        stride, covered = 0, 1
        while covered < n:
            length, step = rest.pop()
            if covered == 1:
                stride = step
            elif step != stride * covered:
                return None
            if n % (covered * length) == 0:
                covered *= length
            elif (covered * length) % n == 0:
                used = n // covered
                rest.append((length // used, step * used))
                covered = n
            else:
                return None
        strides.append(stride)
    return view._replace(shape=shape, strides=tuple(reversed(strides)))


def _copied(x: SymbolicArray) -> ArrayView:
    """Return the view of a copy in C order."""
    result = x.graph.allocate(x.shape, x.dtype)
    x.graph.append(Pointwise((result,), (x.expression,)))
    return result


xp = Namespace()
