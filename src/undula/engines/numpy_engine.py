"""The engines on arrays of NumPy where they are: what the CPU engine and the reference have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import result_dtype
from ..lowering.spec import BandTree
from .base import DEFAULT_OPTIONS, Engine, RunMemory, TransformOptions
from .cpu.filters import shrink
from .memory import empty

__all__ = ["NumpyEngine"]

Array = NDArray[Any]


class NumpyEngine(Engine):
    """An engine that runs on arrays of NumPy where they are."""

    exact = True

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of results: float32 stays, float16 becomes it, integers become float64."""
        return result_dtype(dtype)

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
        """Transform arrays in flat order; samples are padded, and rules applied, before or after."""
        samples, *bands = arrays
        assert samples is not None
        if options.rule is not None:
            bands = [bands[0], *_shrunk(tree, bands[1:-1], options.rule, np.asarray(bands[-1], np.float64))]
        if samples.shape == tree.sample_shapes[0]:
            self.execute(back, tree, [samples, *bands], dtype, options)
            return
        padded = np.zeros(tree.sample_shapes[0], samples.dtype)
        corner = padded[tuple(slice(n) for n in samples.shape)]
        if not back:
            corner[...] = samples
        self.execute(back, tree, [padded, *bands], dtype, options)
        if back:
            samples[...] = corner

    def execute(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Array | None],
        dtype: np.dtype[Any],
        options: TransformOptions,
    ) -> None:
        """Transform arrays of the shapes of the tree."""
        self.compile(back, tree, dtype, (), options).run(arrays)


def _shrunk(tree: BandTree, details: Sequence[Array | None], rule: str, limits: Array) -> list[Array | None]:
    """Return details after a rule; in flat order the coarsest level comes first, in limits the finest."""
    lows, highs = np.moveaxis(limits[: tree.levels][::-1], 1, 0).reshape(2, -1).tolist()  # in flat order
    present = [(number, band) for number, band in enumerate(details) if band is not None]
    sources = [np.ascontiguousarray(band) for _, band in present]
    results = [empty(band.shape, band.dtype) for band in sources]
    shrink(sources, rule, [lows[k] for k, _ in present], [highs[k] for k, _ in present], results)
    shrunk = list(details)
    for (number, _), band in zip(present, results, strict=True):
        shrunk[number] = band
    return shrunk
