"""The engine of devices: the levels of a transform as one program of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...liftings import lifting
from ...lowering.flow import MOST_STEPS
from ...lowering.line import lwt_steps
from ...lowering.spec import BandTree
from ..base import DEFAULT_OPTIONS, Engine, TransformOptions, engine
from .emit.kernel import INTEGERS
from .launches import Task, UnfollowableError
from .libraries import COMPLEX, RESULTS
from .transform import DeviceLevel, Layout, transform

__all__ = ["DeviceEngine", "contiguous_layouts", "device_engine", "device_levels", "prepared_program"]


class DeviceEngine(Engine):
    """Kernels on one device.

    Parameters
    ----------
    name : str
        The key in :data:`~undula.engines.base.ENGINES`.
    device : CudaDevice or OpenCLDevice
    """

    def __init__(self, name: str, device: Any) -> None:
        self.name, self.device = name, device

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of results: float16 stays, integers of 8 and 16 bits become float32."""
        wide = "complex128" if dtype.kind == "c" else "float64"
        return np.dtype(RESULTS.get(str(dtype.newbyteorder("=")), wide))

    def compile(
        self,
        back: bool,
        tree: BandTree,
        dtype: np.dtype[Any],
        layouts: Sequence[Layout | None],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> Any:
        """Compile a transform; complex numbers are pairs along one more axis of the layouts.

        The layout of the samples may be smaller than those of the tree, which then are padded with zeros.
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
    precision = np.dtype(np.float64 if real == "float64" else np.float32)
    spec, levels = tree.spec, []
    for shape, lines in tree.level_lines(precision):
        tasks = []
        for (axis, line), wavelet, mode in zip(lines, spec.wavelets, spec.modes, strict=True):
            if real in INTEGERS and len(lifting(wavelet).steps) > MOST_STEPS:
                line = lwt_steps(shape[axis], wavelet, mode)
            tasks.append(Task(axis, wavelet, line))
        bands = {key: (*s, *pair) for key, s in spec.band_shapes(shape).items()}
        levels.append(DeviceLevel((*shape, *pair), tuple(tasks), bands))
    return tuple(levels)


@lru_cache(maxsize=256)
def prepared_program(
    device: Any,
    back: bool,
    tree: BandTree,
    dtype: str,
    layouts: tuple[Layout | None, ...],
    options: TransformOptions,
) -> Any:
    """Return the program of a transform, ready to run on a device."""
    samples, *coefficients = layouts
    assert samples is not None
    levels = device_levels(tree, dtype)
    try:
        program = transform(back, levels, samples, coefficients, device.dialect, device.limits, options)
    except UnfollowableError as error:
        raise ArgumentError(f"out has strides that kernels do not follow: {error}") from None
    return device.prepare(program)


def contiguous_layouts(tree: BandTree, dtype: str) -> list[Layout]:
    """Return the layouts of all bands as C-contiguous arrays, in flat order."""
    pair = (2,) if dtype in COMPLEX else ()
    return [Layout.contiguous((*shape, *pair), COMPLEX.get(dtype, dtype)) for shape in tree.flat_shapes]
