"""Pipelines of tensors that PyTorch differentiates: every node of a graph by functions that it knows.

The buffers of the graph are tensors; a node that writes a part of a buffer makes a new one. Statistics have
no gradients here: a threshold that a statistic selects changes with all samples of an image, and in steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...arrays import ArrayView, contiguous
from ...errors import ArgumentTypeError
from ...lowering.expressions import Constant, Expression, Load, WindowSum
from ...lowering.graph import Collaborate, Graph, Move, Pointwise, Reduce, Stencil, Transform
from .encoding import encoded
from .operators import decompose, recompose

__all__ = ["TensorGraph"]

Buffers = dict[str, Tensor]


class TensorGraph:
    """A graph that runs node by node, on tensors of one device.

    Parameters
    ----------
    graph : Graph
    backend : str
        The engine that transforms tensors of the host.
    """

    def __init__(self, graph: Graph, backend: str) -> None:
        self.graph, self.backend = graph.scheduled(), backend
        for node in self.graph.nodes:
            if isinstance(node, (Reduce, Collaborate)):
                raise ArgumentTypeError(
                    "the tensor has requires_grad=True, and this filter has no gradients: it chooses what it"
                    " does by statistics of the image, such as its noise or the energy of its bands; give it"
                    " thresholds (Shrink('given', threshold=…)), or sigma and a method that needs no other"
                    " statistics ('universal', 'minimax', 'bivariate', 'block', 'directional'); or pass"
                    " .detach() of the tensor, or call this within torch.no_grad()"
                )

    def run(self, arrays: Mapping[str, Any], seconds: Any = None) -> dict[str, Tensor]:
        """Return the outputs by name, given the inputs by name."""
        device = arrays["image"].device
        buffers: Buffers = {}
        for name, buffer in self.graph.buffers.items():
            dtype, given = getattr(torch, buffer.dtype), arrays.get(name)
            if given is None:
                buffers[name] = torch.zeros(max(1, math.prod(buffer.shape)), dtype=dtype, device=device)
            else:
                buffers[name] = torch.as_tensor(given, device=device).to(dtype).reshape(-1)
        for node in self.graph.nodes:
            if isinstance(node, Transform):
                _transform(node, buffers, self.backend)
            else:
                _RUNNERS[type(node)](node, buffers)
        return {name: _load(buffer.view, buffers) for name, buffer in self.graph.outputs.items()}


def _is_whole(view: ArrayView, buffer: Tensor) -> bool:
    same = math.prod(view.shape) == buffer.numel() and not view.offset
    return same and view.strides == contiguous(view.shape)


def _places(view: ArrayView, buffer: Tensor) -> Tensor:
    """Return the place of each element of a view in its buffer."""
    least = view.offset + sum(min(0, (n - 1) * s) for n, s in zip(view.shape, view.strides, strict=True))
    assert least >= 0  # PyTorch would count from the end.
    places = torch.full((1,) * len(view.shape), view.offset, device=buffer.device)
    for axis, (count, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        along = stride * torch.arange(count, device=buffer.device)
        places = places + along.reshape([-1 if k == axis else 1 for k in range(len(view.shape))])
    return places


def _load(view: ArrayView, buffers: Buffers) -> Tensor:
    buffer = buffers[view.buffer]
    if _is_whole(view, buffer):
        return buffer.reshape(view.shape)
    return buffer[_places(view, buffer)]


def _store(view: ArrayView, buffers: Buffers, values: Tensor) -> None:
    buffer = buffers[view.buffer]
    values = torch.broadcast_to(values, view.shape).to(buffer.dtype)
    if _is_whole(view, buffer):
        buffers[view.buffer] = values.reshape(-1)
    else:
        places = _places(view, buffer).reshape(-1)
        buffers[view.buffer] = buffer.index_copy(0, places, values.reshape(-1))


# --- transforms -----------------------------------------------------------------------------------


def _transform(node: Transform, buffers: Buffers, backend: str) -> None:
    spec, levels, shape = encoded(node.tree.spec), node.tree.levels, node.tree.sample_shapes[0]
    if node.shifts == 1:
        if node.back:
            bands = [_load(view, buffers) for view in node.bands]
            _store(node.samples, buffers, recompose(bands, spec, shape, backend))
            return
        for view, band in zip(
            node.bands, decompose(_load(node.samples, buffers), spec, levels, backend), strict=True
        ):
            _store(view, buffers, band)
        return
    axes, nodes, parts = node.tree.spec.axes, node.samples.shape[1], list[list[Tensor]]()
    total: Any = 0
    covered = torch.zeros(node.samples.shape, device=buffers[node.samples.buffer].device)
    for number, shift in enumerate(product((0, 1), repeat=len(axes))):
        if not node.back:
            moved = sum(s * node.samples.strides[axis] for s, axis in zip(shift, axes, strict=True))
            view = node.samples._replace(offset=node.samples.offset - moved)
            parts.append(list(decompose(_load(view, buffers).contiguous(), spec, levels, backend)))
            continue
        part = slice(number * nodes, (number + 1) * nodes)
        x = recompose([_load(view, buffers)[:, part] for view in node.bands], spec, shape, backend)
        # Sample i of the image is sample i + 1 of the line that begins one sample earlier.
        for s, axis in zip(shift, axes, strict=True):
            if s:
                x = x.narrow(axis, 1, x.shape[axis] - 1)
        lengths = [full - n for full, n in zip(node.samples.shape, x.shape, strict=True)]
        ends = [k for n in reversed(lengths) for k in (0, n)]
        total = total + torch.nn.functional.pad(x, ends)
        covered = covered + torch.nn.functional.pad(torch.ones_like(x, dtype=covered.dtype), ends)
    if node.back:
        _store(node.samples, buffers, total / covered)
        return
    for view, *bands in zip(node.bands, *parts, strict=True):
        _store(view, buffers, torch.cat(bands, 1))


# --- expressions ----------------------------------------------------------------------------------


def _guarded(function: Callable[..., Tensor], defined: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Return a function of a last argument that has no infinite derivatives where it is not defined.

    There, an expression selects another value, but an infinite derivative times zero is no number.
    """

    def guarded(*arguments: Tensor) -> Tensor:
        *others, x = arguments
        inside = defined(x)
        value = function(*others, torch.where(inside, x, torch.ones_like(x)))
        return torch.where(inside, value, function(*(part.detach() for part in others), x.detach()))

    return guarded


_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "divide": _guarded(torch.divide, lambda x: x != 0),
    "power": torch.pow,
    "sqrt": _guarded(torch.sqrt, lambda x: x > 0),
    "log": _guarded(torch.log, lambda x: x > 0),
    "equal": torch.eq,
    "not_equal": torch.ne,
}  # The functions of PyTorch for other operations have their names.


def _evaluate(expression: Expression, buffers: Buffers, window: Tensor | None = None) -> Tensor:
    device, results = next(iter(buffers.values())).device, dict[int, Tensor]()

    def visit(part: Expression) -> Tensor:
        if id(part) not in results:
            results[id(part)] = value(part)
        return results[id(part)]

    def value(part: Expression) -> Tensor:
        if isinstance(part, Constant):
            return torch.tensor(part.value, dtype=torch.float64, device=device)
        if isinstance(part, WindowSum):
            assert window is not None
            return window
        if isinstance(part, Load):
            return _loaded(part, buffers)
        arguments = [visit(argument) for argument in part.arguments]
        if part.operation == "where":
            arguments[0] = arguments[0].bool()
        return (_FUNCTIONS.get(part.operation) or getattr(torch, part.operation))(*arguments)

    return visit(expression)


def _loaded(load: Load, buffers: Buffers) -> Tensor:
    x = _load(load.view, buffers)
    if not (x.is_floating_point() or x.dtype == torch.bool):  # Expressions compute with floats.
        x = x.to(torch.float64)
    for axis, length in enumerate(load.finer, x.ndim - len(load.finer)):
        places = (torch.arange(length, device=x.device) + load.offset) // 2
        x = x.index_select(axis, places.clamp(max=x.shape[axis] - 1))
    return x


# --- nodes ----------------------------------------------------------------------------------------


def _pointwise(node: Pointwise, buffers: Buffers) -> None:
    for view, value in zip(node.results, node.values, strict=True):
        _store(view, buffers, _evaluate(value, buffers))


def _stencil(node: Stencil, buffers: Buffers) -> None:
    computed = []
    for view, source, value in zip(node.results, node.sources, node.values, strict=True):
        total = torch.broadcast_to(_evaluate(source, buffers), view.shape)
        for axis, taps in enumerate(node.taps, total.ndim - len(node.taps)):
            radius, count = len(taps) // 2, total.shape[axis]
            places = np.arange(-radius, count + radius) % (2 * count)
            mirrored = torch.as_tensor(np.minimum(places, 2 * count - 1 - places), device=total.device)
            extended = total.index_select(axis, mirrored)
            total = sum(tap * extended.narrow(axis, k, count) for k, tap in enumerate(taps))
        computed.append((view, _evaluate(value, buffers, total)))
    for view, values in computed:
        _store(view, buffers, values)


def _move(node: Move, buffers: Buffers) -> None:
    x = _load(node.source, buffers)
    for axis, places in node.places:
        x = x.index_select(axis, torch.as_tensor(places, device=x.device))
    _store(node.result, buffers, x)


_RUNNERS: dict[type, Callable[[Any, Buffers], None]] = {
    Pointwise: _pointwise,
    Stencil: _stencil,
    Move: _move,
}
