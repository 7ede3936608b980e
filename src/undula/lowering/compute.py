"""The meaning of the nodes of a graph, in NumPy, except for transforms: those belong to engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import ArrayView
from .collaborative import collaborate, limited_noise
from .expressions import evaluate, strided
from .graph import Collaborate, Move, Pointwise, Reduce, Stencil

__all__ = ["compute"]

Array = NDArray[Any]
Buffers = dict[str, Array]


def compute(node: Pointwise | Stencil | Reduce | Move | Collaborate, buffers: Buffers) -> None:
    """Compute what a node writes.

    Parameters
    ----------
    node : Node
    buffers : dict of str to ndarray
        The samples of buffers, as one line each.
    """
    run: Callable[[Any, Buffers], None] = _RUNNERS[type(node)]
    run(node, buffers)


def _store(view: ArrayView, buffers: Buffers, values: Any) -> None:
    strided(buffers[view.buffer], view)[...] = values


def _pointwise(node: Pointwise, buffers: Buffers) -> None:
    for view, value in zip(node.results, node.values, strict=True):
        _store(view, buffers, np.broadcast_to(evaluate(value, buffers), view.shape))


def _stencil(node: Stencil, buffers: Buffers) -> None:
    computed = []
    for view, source, value in zip(node.results, node.sources, node.values, strict=True):
        total = np.broadcast_to(evaluate(source, buffers), view.shape)
        for axis, taps in enumerate(node.taps, total.ndim - len(node.taps)):
            radius, count = len(taps) // 2, total.shape[axis]
            places = np.arange(-radius, count + radius) % (2 * count)
            extended = np.take(total, np.minimum(places, 2 * count - 1 - places), axis)
            windows = np.lib.stride_tricks.sliding_window_view(extended, len(taps), axis)
            total = windows @ np.asarray(taps, total.dtype)
        computed.append((view, evaluate(value, buffers, total)))
    for view, values in computed:
        _store(view, buffers, values)


def _reduce(node: Reduce, buffers: Buffers) -> None:
    limits = node.limits or (None,) * len(node.results)
    for shape, view, source, limit in zip(node.shapes, node.results, node.sources, limits, strict=True):
        x = np.broadcast_to(evaluate(source, buffers), shape).reshape(shape[0], -1)
        if limit is None:
            numbers = np.sum(x, 1, np.float64) if node.kind == "sum" else np.max(x, 1)
        else:
            bounds = np.broadcast_to(evaluate(limit, buffers), shape[:1])
            statistic = _median if node.kind == "median" else _sure
            numbers = np.array([statistic(*pair) for pair in zip(np.abs(x), bounds, strict=True)])
        _store(view, buffers, numbers)


def _median(magnitudes: Array, floor: float) -> float:
    counted = magnitudes[np.isfinite(magnitudes) & (magnitudes > floor)]
    return float(np.median(counted.astype(np.float64))) if counted.size else 0.0


def _sure(magnitudes: Array, limit: float) -> float:
    """Evaluate Stein's risk estimate at each magnitude and return the magnitude of least risk."""
    scaled = np.sort(magnitudes).astype(np.float64)
    count, ranks = scaled.size, np.arange(1, scaled.size + 1)
    squares = scaled * scaled
    risk = count - 2 * ranks + np.cumsum(squares) + (count - ranks) * squares
    risk = np.where(scaled <= limit, risk, np.inf)
    best = int(np.argmin(risk))
    return float(scaled[best]) if risk[best] < count else 0.0


def _move(node: Move, buffers: Buffers) -> None:
    x = strided(buffers[node.source.buffer], node.source)
    for axis, places in node.places:
        x = np.take(x, places, axis)
    _store(node.result, buffers, x)


def _collaborate(node: Collaborate, buffers: Buffers) -> None:
    x, sigmas = (strided(buffers[view.buffer], view) for view in (node.source, node.noise))
    (out,) = (strided(buffers[view.buffer], view) for view in node.results)
    images = len(x) // node.channels
    for image in range(images):
        items = slice(image, None, images)
        spatial = tuple(range(1, x.ndim))
        noise = limited_noise(sigmas[items], np.ptp(x[items], axis=spatial))
        noise = np.expand_dims(noise, spatial)
        unit = np.where(noise > 0, noise, noise.max() or 1).astype(np.float64)
        filtered = collaborate(x[items] / unit, node.profile) * unit
        out[items] = np.where(noise > 0, filtered, x[items])


_RUNNERS: dict[type, Callable[[Any, Buffers], None]] = {
    Pointwise: _pointwise,
    Stencil: _stencil,
    Reduce: _reduce,
    Move: _move,
    Collaborate: _collaborate,
}
