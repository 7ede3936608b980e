"""The engine of devices: the levels of a transform as one program of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...arrays import COMPLEX, ArrayView
from ...errors import ArgumentError
from ...lowering.spec import BandTree, Operators
from ..base import DEFAULT_OPTIONS, Engine, TransformOptions, engine
from .arrays import RESULTS
from .launches import Task, UnfollowableError
from .strategies import STRATEGIES
from .strategies.base import LIFTING
from .transform import DeviceLevel, transform

__all__ = ["DeviceEngine", "contiguous_views", "device_engine", "device_levels", "prepared_program"]


class DeviceEngine(Engine):
    """Kernels on one device.

    Parameters
    ----------
    name : str
        The key in :data:`~undula.engines.base.ENGINES`.
    device : CudaDevice or OpenCLDevice
    """

    lifting = LIFTING

    def __init__(self, name: str, device: Any) -> None:
        self.name, self.device = name, device

    def operators(
        self, tree: BandTree, dtype: np.dtype[Any], options: TransformOptions = DEFAULT_OPTIONS
    ) -> list[tuple[tuple[int, ...], Operators]]:
        """Return for each level the shape of its samples and the operators that its strategy runs."""
        strategy = STRATEGIES[options.strategy]
        return [
            (shape, tuple((axis, strategy.operator(op, options.method)) for axis, op in operators))
            for shape, operators in tree.operators(dtype, LIFTING)
        ]

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of results: float16 stays, integers of 8 and 16 bits become float32."""
        wide = "complex128" if dtype.kind == "c" else "float64"
        return np.dtype(RESULTS.get(str(dtype.newbyteorder("=")), wide))

    def compile(
        self,
        back: bool,
        tree: BandTree,
        dtype: np.dtype[Any],
        layouts: Sequence[ArrayView | None],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> Any:
        """Compile a transform; complex numbers are pairs along one more axis of the views.

        The samples may be smaller than those of the tree, and then are padded with zeros. The views are in
        buffers 0, 1, and so on.
        """
        return prepared_program(self.device, back, tree, dtype.name, tuple(layouts), options)


def device_engine(backend: str) -> DeviceEngine:
    """Return the engine of a device, such as ``cuda:1``; an error for engines on the host."""
    found = engine(backend)
    if not isinstance(found, DeviceEngine):
        raise ArgumentError(f"backend {backend!r} is no device; expected 'cuda' or 'opencl'")
    return found


@lru_cache(maxsize=512)
def device_levels(tree: BandTree, dtype: str) -> tuple[DeviceLevel, ...]:
    """Return the levels of a transform, finest first; complex numbers are pairs along one more axis."""
    pair = (2,) if dtype in COMPLEX else ()
    real = COMPLEX.get(dtype, dtype)
    precision = np.dtype("float32" if real == "float16" else real)
    spec, levels = tree.spec, []
    for shape, operators in tree.operators(precision, LIFTING):
        tasks = [Task(axis, op) for axis, op in operators]
        bands = {key: (*s, *pair) for key, s in spec.band_shapes(shape).items()}
        levels.append(DeviceLevel((*shape, *pair), tuple(tasks), bands))
    return tuple(levels)


@lru_cache(maxsize=256)
def prepared_program(
    device: Any,
    back: bool,
    tree: BandTree,
    dtype: str,
    views: tuple[ArrayView | None, ...],
    options: TransformOptions,
) -> Any:
    """Return the program of a transform, ready to run on a device."""
    samples, *coefficients = views
    assert samples is not None
    levels = device_levels(tree, dtype)
    try:
        program = transform(back, levels, samples, coefficients, device.dialect, device.limits, options)
    except UnfollowableError as error:
        raise ArgumentError(f"out has strides that kernels do not follow: {error}") from None
    return device.prepare(program)


def contiguous_views(tree: BandTree, dtype: str) -> list[ArrayView]:
    """Return all bands as C-contiguous arrays, in flat order, in buffers from 1 on."""
    shapes = enumerate(tree.flat_shapes, 1)
    return [ArrayView.contiguous(number, shape, dtype).as_pairs() for number, shape in shapes]
