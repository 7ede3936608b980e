"""All levels of a batch in one launch give what they give level by level."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from undula.arrays import ArrayView
from undula.engines.base import TransformOptions, engine
from undula.engines.gpu import batches
from undula.engines.gpu.cuda.runtime import compile_kernel
from undula.engines.gpu.emit import CUDA
from undula.engines.gpu.engine import device_engine, prepared_program
from undula.engines.gpu.launches import DeviceLimits, DeviceProgram
from undula.engines.gpu.transform import device_levels, transform_program
from undula.lowering.spec import BandTree, transform_spec


def _tree(shape: tuple[int, ...], wavelet: str, mode: str, levels: int, dual: bool) -> BandTree:
    spec = transform_spec(len(shape), wavelet, mode, (-2, -1))
    return BandTree.of_samples(spec.adjoint() if dual else spec, shape, levels)


def _program(tree: BandTree, back: bool, unit_shared: int = 233472, **options: Any) -> DeviceProgram:
    samples, *bands = tree.contiguous_views("float32")
    levels = device_levels(tree, "float32")
    limits = DeviceLimits(units=132, unit_shared=unit_shared)
    return transform_program(back, levels, samples, bands, CUDA, limits, TransformOptions(**options))


@pytest.fixture
def small_device(monkeypatch: pytest.MonkeyPatch, target: str) -> Iterator[Any]:
    """Return the engine of a device that seems to have one unit, which a few planes occupy."""
    chosen = device_engine(target)
    prepared_program.cache_clear()
    monkeypatch.setattr(chosen.device, "limits", chosen.device.limits._replace(units=1, gpu=True))
    yield chosen
    prepared_program.cache_clear()


@pytest.mark.parametrize(
    ("shape", "wavelet", "mode", "levels", "dtype"),
    [
        ((26, 70, 64), "db2", "zero", 3, "float32"),
        ((13, 4, 80, 83), "db4", "symmetric", 2, "float32"),
        ((30, 33, 20), "bior2.2", "periodic", 2, "float64"),
        ((30, 24, 36), "db2", "reflect", 2, "complex64"),
    ],
)
def test_results(
    small_device: Any, shape: tuple[int, ...], wavelet: str, mode: str, levels: int, dtype: str
) -> None:
    random = np.random.default_rng(0)
    for dual, back in ((False, False), (True, True)):
        tree = _tree(shape, wavelet, mode, levels, dual)
        shapes = (shape, *tree.flat_shapes)
        arrays = [random.standard_normal((2, *part)).astype("float32").astype(dtype)[0] for part in shapes]
        results = []
        for runner in (small_device, engine("cpu")):
            copies = [array.copy() for array in arrays]
            # A band that is not given stands for zeros.
            missing = [*copies[:2], None, *copies[3:]] if back else copies
            runner.run(back, tree, missing, np.dtype(dtype))
            results.append(copies[:1] if back else copies[1:])
        views = [ArrayView.contiguous(k, part, dtype).as_pairs() for k, part in enumerate(shapes)]
        launches = small_device.compile(back, tree, np.dtype(dtype), views).program.launches
        assert [launch.kernel.name for launch in launches] == [f"levels_{'back' if back else 'forward'}"]
        precision = 1e-5 if dtype != "float64" else 1e-12
        for result, expected in zip(*results, strict=True):
            np.testing.assert_allclose(result, expected, rtol=0, atol=precision * np.abs(expected).max())


@pytest.mark.parametrize(
    ("size", "unit_shared", "items", "shared_levels"),
    [
        (256, 0, 512, 0),
        (256, 102400, 1024, 2),  # One large group shares what two small ones cannot.
        (256, 65536, 512, 1),
        (256, 233472, 512, 2),
        (400, 233472, 1024, 2),
    ],
)
def test_memory(size: int, unit_shared: int, items: int, shared_levels: int) -> None:
    """Approximations take memory that a group shares if they fit, and else little scratch memory."""
    tree = _tree((1024, size, size), "db2", "zero", 3, False)
    for back in (False, True):
        program = _program(tree, back, unit_shared)
        (launch,) = program.launches
        assert launch.kernel.items == items
        shapes = [tree.sample_shapes[1], tree.sample_shapes[2]][2 - shared_levels :]
        needed = 4 * sum(math.prod(shape[1:]) for shape in shapes)
        assert needed <= launch.kernel.shared_bytes <= min(1.1 * needed, unit_shared * items // 1024)
        assert len(program.scratch) == 2 - shared_levels
        assert sum(count for count, _ in program.scratch) <= batches.MAX_SCRATCH_SHARE * 1024 * size**2


@pytest.mark.parametrize(("arch", "unit_shared"), [("sm_75", 65536), ("sm_90", 233472), ("sm_90", 0)])
@pytest.mark.parametrize(("wavelet", "mode", "dual"), [("db2", "zero", False), ("db4", "smooth", True)])
def test_compiles(arch: str, unit_shared: int, wavelet: str, mode: str, dual: bool) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    program = _program(_tree((1024, 256, 256), wavelet, mode, 3, dual), dual, unit_shared)
    assert compile_kernel(program.launches[0].kernel, arch)


@pytest.mark.parametrize(
    ("shape", "levels", "options"),
    [
        ((16, 256, 256), 3, {}),  # too few planes
        ((1024, 256, 256), 1, {}),  # no other level
        ((256, 1024, 1024), 3, {}),  # Approximations take too much memory.
        ((1024, 256, 256), 3, {"strategy": "rowcolumn"}),
        ((1024, 256, 256), 3, {"method": "lifting"}),
    ],
)
def test_batches_that_do_not_fit(shape: tuple[int, ...], levels: int, options: dict[str, Any]) -> None:
    program = _program(_tree(shape, "db2", "zero", levels, False), False, **options)
    assert not any("levels" in launch.kernel.name for launch in program.launches)


def test_ends_of_lines() -> None:
    """Adjoints that fold lines at their ends take one launch in batches, and else three for each level."""
    program = _program(_tree((1024, 256, 256), "db4", "symmetric", 3, True), True)
    assert len(program.launches) == 1
    program = _program(_tree((1024, 1024), "db4", "symmetric", 3, True), True)
    assert len(program.launches) == 9
