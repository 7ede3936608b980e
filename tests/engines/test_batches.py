"""Batches that are computed in parts give what they give at once, in less scratch memory."""

from typing import Any

import numpy as np
import pytest

from undula.engines.base import TransformOptions
from undula.engines.gpu import batches
from undula.engines.gpu.emit import CUDA
from undula.engines.gpu.engine import device_engine
from undula.engines.gpu.launches import DeviceLimits
from undula.engines.gpu.transform import device_levels, transform_program
from undula.lowering.spec import BandTree, transform_spec

SHAPE = (3, 5, 40, 33)


def _tree(mode: str, dual: bool, levels: int = 3, shape: tuple[int, ...] = SHAPE) -> BandTree:
    spec = transform_spec(len(shape), "db2", mode, range(len(shape))[-2:])
    return BandTree.of_samples(spec.adjoint() if dual else spec, shape, levels)


def _program(tree: BandTree, back: bool) -> Any:
    samples, *bands = tree.contiguous_views("float32")
    levels = device_levels(tree, "float32")
    return transform_program(back, levels, samples, bands, CUDA, DeviceLimits(), TransformOptions())


@pytest.mark.parametrize(
    ("mode", "dual", "share"),
    # The ends of lines have scratch memory besides.
    [("symmetric", False, 0.15), ("zero", True, 0.15), ("symmetric", True, 0.25)],
)
def test_scratch_memory(monkeypatch: pytest.MonkeyPatch, mode: str, dual: bool, share: float) -> None:
    back = dual
    whole = _program(_tree(mode, dual), back)
    monkeypatch.setattr(batches, "MIN_SAMPLE_BYTES", 0)
    parts = _program(_tree(mode, dual), back)
    assert len(parts.launches) % len(whole.launches) == 0 < len(whole.launches) < len(parts.launches)
    sizes = [sum(count for count, _ in program.scratch) for program in (whole, parts)]
    assert sizes[1] < sizes[0] / 3
    assert sizes[1] < share * np.prod(SHAPE)


@pytest.mark.parametrize("shape", [(2**26,), (8192, 8192), (1, 8192, 8192), (3, 5000, 5000), (0, 9, 9)])
@pytest.mark.parametrize("back", [False, True])
def test_scratch_memory_of_large_arrays(shape: tuple[int, ...], back: bool) -> None:
    program = _program(_tree("symmetric", False, 3, shape), back)
    # Approximations of lines are a half and a quarter of the samples, those of planes a quarter and less.
    share = 0.8 if len(shape) == 1 else 0.35
    assert sum(count for count, _ in program.scratch) <= share * np.prod(shape) + 2


@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize("shape", [SHAPE, (40, 33)])
def test_results_on_a_device(
    monkeypatch: pytest.MonkeyPatch, target: str, dual: bool, shape: tuple[int, ...]
) -> None:
    engine, tree = device_engine(target), _tree("zero", dual, 2, shape)
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")

    def run() -> list[Any]:
        bands = [np.empty(shape, "float32") for shape in tree.flat_shapes]
        engine.run(False, tree, [x, *bands], x.dtype)
        samples = np.empty_like(x)
        engine.run(True, tree, [samples, *bands[:2], None, *bands[3:]], x.dtype)
        return [samples, *bands]

    whole = run()
    monkeypatch.setattr(batches, "MIN_SAMPLE_BYTES", 0)
    # A shape of another batch would be another program; this one is built again.
    from undula.engines.gpu.engine import prepared_program

    prepared_program.cache_clear()
    try:
        for part, expected in zip(run(), whole, strict=True):
            np.testing.assert_array_equal(part, expected)
    finally:
        prepared_program.cache_clear()
