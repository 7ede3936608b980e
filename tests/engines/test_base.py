"""Engines: one interface and one table of them."""

import sys
from collections.abc import Sequence
from threading import Event
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import undula
from comparing import assert_same, noise
from undula.arrays import ArrayView
from undula.engines import base
from undula.engines.base import ENGINES, EngineEntry, TransformOptions, engine
from undula.engines.reference import ReferenceEngine
from undula.engines.threads import WorkCancelledError, cancellable, run
from undula.lowering.spec import BandTree, transform_spec

TREE = BandTree.of_samples(transform_spec(2, "cdf97", "symmetric", None), (21, 34), 2)
SHAPES = [(21, 34), *TREE.flat_shapes]
DTYPE = np.dtype("float32")
CUDA = pytest.param("cuda", marks=pytest.mark.cuda)


def transformed(backend: str, back: bool, values: Sequence[Any]) -> list[Any]:
    """Compile for arrays in C order, and run on arrays in the memory of the device."""
    target = engine(backend)
    arrays = [target.upload(x, target.allocate(x.shape, "float32")) for x in values]
    views = [ArrayView.contiguous(0, shape, "float32") for shape in SHAPES]
    target.compile(back, TREE, DTYPE, views).run(arrays)
    target.finish()
    return [target.download(array, np.empty_like(x)) for array, x in zip(arrays, values, strict=True)]


@pytest.mark.parametrize("backend", ["cpu", "opencl", CUDA])
def test_executables_do_what_those_of_the_reference_do(backend: str) -> None:
    values = [noise(*shape, dtype="f4") for shape in SHAPES]
    for back in (False, True):
        assert_same(transformed(backend, back, values), transformed("reference", back, values), 10)


@pytest.mark.parametrize("backend", ["cpu", "reference", "opencl", CUDA])
def test_bound_runs_read_their_arrays_anew(backend: str) -> None:
    plan = undula.Plan((21, 34), "haar", level=2, dtype="f4", backend=backend)
    resident = plan.resident("hard", 1e9)
    for seed in (1, 2):
        x = seed * noise(21, 34, dtype="f4")
        resident.upload(x)
        resident.forward()
        resident.inverse()
        resident.finish()
        coeffs = undula.wavedec2(x, "haar", level=2)
        assert_same(resident.download()[0], coeffs[0], 10)
        smooth = plan.inverse([coeffs[0], *(tuple(map(np.zeros_like, part)) for part in coeffs[1:])])
        assert_same(resident.download_samples(), smooth, 10)


def test_names_of_engines() -> None:
    assert engine() is engine("auto") is engine("cpu")
    assert engine("opencl:0").name == "opencl"
    for wrong in ("cpu:0", "reference:1", "opencl:x", "opencl:-1", "gpu", "auto:1", "", 7):
        with pytest.raises(undula.UnknownNameError, match="unknown backend"):
            engine(wrong)  # type: ignore[arg-type]
    with pytest.raises(undula.ArgumentError, match="scheme 'sweldens' is for backends 'cuda'"):
        engine("cpu").check_options(scheme="sweldens", strategy="auto")


def test_an_engine_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(ReferenceEngine):
        """The reference with results that are twice as large."""

        name = "twice"

        def run(self, back: bool, tree: BandTree, arrays: Any, dtype: Any, *options: Any) -> None:
            super().run(back, tree, arrays, dtype, TransformOptions())
            for array in arrays[:1] if back else arrays[1:]:
                array *= 2

    module: Any = ModuleType("undula.engines.twice")
    module.engine, module.names = lambda number: Twice(), lambda: ["two of them"]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(ENGINES, "twice", EngineEntry("twice"))
    monkeypatch.setattr(base, "BACKENDS", ("auto", *ENGINES))
    assert undula.devices()["twice"] == "two of them"
    x = noise(20, 31)
    expected = undula.dwt2(x, "db2")
    assert_same(undula.dwt2(x, "db2", backend="twice")[0], 2 * expected[0], 10)
    assert_same(undula.Plan(x.shape, "db2", level=1, backend="twice").forward(x)[0], 2 * expected[0], 10)
    base._engine.cache_clear()


@pytest.mark.parametrize("threads", [1, 3])
def test_work_is_cancelled_between_its_pieces(threads: int) -> None:
    cancelled, done = Event(), []

    def work(number: int) -> None:
        done.append(number)
        if number == 5:
            cancelled.set()
        if number > 5:
            cancelled.wait(30)  # Or other threads could do all work before.

    undula.set_num_threads(threads)
    try:
        with pytest.raises(WorkCancelledError), cancellable(cancelled):
            run(work, [(number,) for number in range(10_000)])
        assert 5 in done
        assert len(done) < 10_000
        run(work, [(number,) for number in range(10)])  # Outside of the block, nothing is cancelled.
        assert done[-1] == 9 or threads > 1
    finally:
        undula.set_num_threads(None)


def test_a_filter_can_be_cancelled() -> None:
    cancelled = Event()
    cancelled.set()
    with pytest.raises(WorkCancelledError, match="was cancelled"), cancellable(cancelled):
        undula.denoise(np.zeros((40, 40)), method="collaborative")
