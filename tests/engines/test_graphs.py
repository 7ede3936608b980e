"""Graphs on the CPU, compared with the meaning of their nodes in NumPy."""

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from cases import THOROUGH
from undula.engines.cpu import graphs, tasks
from undula.engines.cpu.compile import level_passes
from undula.engines.cpu.encoding import encode_analysis, encode_synthesis
from undula.engines.cpu.graphs import CpuGraph
from undula.engines.cpu.nests import cut
from undula.engines.cpu.passes import AxisPass
from undula.engines.reference.graphs import ReferenceGraph
from undula.filters.operations import OPERATIONS, LocalWindow
from undula.filters.transforms import PipelineTransform
from undula.lowering.expressions import WINDOW
from undula.lowering.graph import Graph, Stencil
from undula.lowering.symbolic import (
    SymbolicArray,
    materialize,
    reduced,
    symbolic,
    symbolic_input,
    symbolic_output,
    xp,
)
from undula.wavelets import as_wavelet

RNG = np.random.default_rng(0)
DTYPES = st.sampled_from(["float32", "float64"])


def _samples(shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def _traced(function: Callable[..., Any], arrays: list[np.ndarray]) -> tuple[Graph, dict[str, np.ndarray]]:
    """Return the graph of a function of arrays, and its inputs."""
    graph = Graph()
    names = [f"x{k}" for k in range(len(arrays))]
    inputs = [
        symbolic_input(graph, name, x.shape, str(x.dtype)) for name, x in zip(names, arrays, strict=True)
    ]
    results = function(*inputs)
    for k, result in enumerate(results if isinstance(results, list) else [results]):
        symbolic_output(graph, f"y{k}", result)
    return graph, dict(zip(names, arrays, strict=True))


def _check(function: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """Compare what the CPU computes with NumPy, and return it."""
    graph, inputs = _traced(function, list(arrays))
    actual, expected = CpuGraph(graph).run(inputs), ReferenceGraph(graph).run(inputs)
    for name, values in expected.items():
        assert actual[name].dtype == values.dtype
        assert actual[name].flags.c_contiguous
        rtol, atol = (2e-5, 1e-5) if values.dtype == np.float32 else (1e-10, 1e-11)
        np.testing.assert_allclose(actual[name], values, rtol=rtol, atol=atol)
    return list(actual.values())


# --- nodes ----------------------------------------------------------------------------------------


def _all_operations(x: SymbolicArray, y: SymbolicArray) -> list[SymbolicArray]:
    size = xp.sqrt(x * x + 1) / (2 + xp.abs(-y))
    inside = (x < y) & ~(x >= 0.5) | (x != x) | (y <= -1) | (x == 2) | (y > 2)
    values = xp.where(inside, xp.maximum(x, y), xp.minimum(size, xp.log(xp.abs(y) + 1)))
    powers = xp.exp(xp.round(3 * values) / 3) + (xp.abs(x) + 0.1) ** 0.3
    return [values, powers, inside, xp.full_like(x, 3.0)]


@settings(max_examples=12 if THOROUGH else 4)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), DTYPES, st.data())
def test_pointwise(shape: list[int], dtype: str, data: st.DataObject) -> None:
    broadcast = [n if data.draw(st.booleans()) else 1 for n in shape]
    _check(_all_operations, _samples(tuple(shape), dtype), _samples(tuple(broadcast), dtype))


def test_pointwise_of_views() -> None:
    x = _samples((6, 8, 10), "float32")
    _check(lambda x: [x[:, ::2, ::-1] + x[::-1, 1::2], xp.permute_dims(x, (2, 0, 1)) * 2], x)
    valid = x > 0
    _check(lambda x, valid: [xp.where(valid, x, 0.0), xp.astype(valid & (x < 1), "float32")], x, valid)
    integers = np.arange(60, dtype=np.uint8).reshape(3, 20)
    _check(lambda x: [x / 3, xp.astype(xp.round(x * 1.5), "int16")], integers.astype("float64"))


def _smoothed(x: SymbolicArray, taps: tuple[tuple[float, ...], ...]) -> SymbolicArray:
    result = x.graph.allocate(x.shape, x.dtype)
    window = SymbolicArray(x.graph, x.shape, x.dtype, WINDOW)
    x.graph.append(Stencil(taps, (result,), ((x * x).expression,), ((window + x).expression,)))
    return symbolic(x.graph, result)


BOX, WIDE, SLOPE = (1 / 7,) * 7, (1 / 11,) * 11, (0.1, 0.2, 0.4, 0.25, 0.05)


@pytest.mark.parametrize(
    "taps",
    [
        (BOX, BOX),
        (WIDE, BOX),
        (SLOPE, (1.0,)),
        ((1.0,), SLOPE),
        (BOX,),
        (SLOPE,),
        (BOX, BOX, BOX),
        ((0.5,) * 3,) * 3,
    ],
    ids=lambda taps: "x".join(str(len(t)) for t in taps),
)
@settings(max_examples=8 if THOROUGH else 3)
@given(st.lists(st.integers(1, 30), min_size=3, max_size=3), DTYPES)
def test_stencils(taps: tuple[tuple[float, ...], ...], sizes: list[int], dtype: str) -> None:
    shape = (2, 2, *sizes[: len(taps)])
    _check(lambda x: _smoothed(x, taps), _samples(shape, dtype))


@settings(max_examples=25 if THOROUGH else 8)
@given(
    st.tuples(st.integers(1, 33), st.integers(1, 33), st.integers(1, 9)),
    st.integers(0, 4),
    st.integers(0, 5),
    DTYPES,
    st.sampled_from([1, 2, 3]),
)
def test_local_shrinkage(sizes: tuple[int, ...], radius: int, offset: int, dtype: str, ndim: int) -> None:
    shape = sizes[:ndim]
    coarser = tuple(n // 2 + 1 for n in shape)
    window = LocalWindow(radius, 1.3, 0.8, offset)

    def shrunk(x: SymbolicArray, parents: SymbolicArray, noise: SymbolicArray) -> SymbolicArray:
        return OPERATIONS.shrink_locally(x, parents, noise, window, ndim)

    x, parents = _samples((2, 3, *shape), dtype), _samples((2, 3, *coarser), dtype)
    _check(shrunk, x, parents, np.array([0.5, 0.0], dtype))


@settings(max_examples=12 if THOROUGH else 4)
@given(st.integers(1, 3), st.integers(1, 400), DTYPES, st.integers(-30, 30), st.integers(0, 2**32 - 1))
def test_statistics(items: int, count: int, dtype: str, scale: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((items, count)) * 2.0**scale).astype(dtype)
    floor = np.abs(x).max(axis=1) / 8
    _check(lambda x: [*reduced("sum", [x * x, xp.abs(x)]), *reduced("max", [x, -x])], x)
    x[rng.random(x.shape) < 0.2] = 0
    x[rng.random(x.shape) < 0.1] = np.nan
    x[rng.random(x.shape) < 0.1] = -np.inf
    _check(lambda x, floor: [*reduced("median", [x, x / 2, 2 * x], [0.0, floor, -1.0])], x, floor)
    for result in _check(lambda x: reduced("median", [x], [0.0]), np.full((items, count), np.nan, dtype)):
        np.testing.assert_array_equal(result, 0)


def test_statistics_of_large_items() -> None:
    x = _samples((2, 300, 333), "float32")
    x[1] *= 1e-20
    results = _check(lambda x: reduced("median", [x, x * 2], [0.0, 0.0]), x)
    np.testing.assert_array_equal(results[0], np.median(np.abs(x.reshape(2, -1)), axis=1))
    _check(lambda x: [*reduced("sum", [x * x]), *reduced("max", [x])], x)
    equal = np.ones((1, 200_000), "float32")
    equal[:, ::2] = 2
    assert _check(lambda x: reduced("median", [x], [0.0]), equal)[0] == 1.5


def test_sure_is_computed_by_numpy() -> None:
    x = _samples((2, 20, 20))
    _check(lambda x: xp.reshape(reduced("sure", [x * 2], [3.0])[0], (2, 1, 1)) + x, x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool"])
def test_moves(dtype: str) -> None:
    x = _samples((2, 3, 9, 14)) > 0 if dtype == "bool" else _samples((2, 3, 9, 14), dtype)
    _check(lambda x: [xp.take(x, [1, 0, 1, 2, 3, 8, 8], 2), xp.take(x, range(0, 14, 2), 3)], x)
    _check(lambda x: [xp.take(x, [2, 0], 1), xp.take(x, [1, 1, 0], 0), xp.take(x[..., ::2], [3, 4], -1)], x)


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 23), min_size=1, max_size=3),
    DTYPES,
    st.sampled_from(["haar", "db2", "db3", "bior4.4"]),
    st.sampled_from(["symmetric", "periodization", "zero", "reflect"]),
    st.booleans(),
    st.integers(1, 2),
)
def test_transforms(shape: list[int], dtype: str, wavelet: str, mode: str, shifted: bool, items: int) -> None:
    ndim = len(shape)
    transform = PipelineTransform(as_wavelet(wavelet), mode)
    axes, count = tuple(range(2, 2 + ndim)), 2**ndim if shifted else 1

    def there_and_back(x: SymbolicArray) -> list[SymbolicArray]:
        low, details = transform.decompose_level(x[(..., *[slice(1, None)] * ndim)], axes, count)
        changed = {key: band * 0.5 for key, band in details.items()}
        size = (items, 2, *shape)
        return [low, *details.values(), transform.recompose_level(low, changed, size, axes, count)]

    _check(there_and_back, _samples((items, 2, *(n + 1 for n in shape)), dtype))


def test_transforms_of_several_levels() -> None:
    transform = PipelineTransform(as_wavelet("bior4.4"))

    def there_and_back(x: SymbolicArray) -> list[SymbolicArray]:
        low, details = transform.decompose(x, 3, (1, 2))
        return [low, transform.recompose(low, details, x.shape, (1, 2))]

    _check(there_and_back, _samples((3, 61, 70)))


# --- running --------------------------------------------------------------------------------------


def _denoised(x: SymbolicArray) -> SymbolicArray:
    """Use every kind of node."""
    transform = PipelineTransform(as_wavelet("db2"))
    low, details = transform.decompose_level(x[:, None, 1:, 1:], (2, 3), 4)
    noise = OPERATIONS.median_magnitude(details["dd"], reduced("max", [xp.abs(low)])[0] * 1e-6)
    window = LocalWindow(3, 1.0)
    shrunk = {key: OPERATIONS.shrink_locally(band, None, noise, window, 2) for key, band in details.items()}
    shape = (x.shape[0], 1, x.shape[1] - 1, x.shape[2] - 1)
    return transform.recompose_level(xp.take(low, range(low.shape[2]), 2), shrunk, shape, (2, 3), 4)


def test_graphs_keep_what_kernels_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels find encoded operators by their addresses, so a graph keeps them, whatever caches do."""
    passes: list[weakref.ref[AxisPass]] = []
    make = AxisPass.__init__

    def recorded(work: AxisPass, *arguments: Any) -> None:
        make(work, *arguments)
        passes.append(weakref.ref(work))

    monkeypatch.setattr(AxisPass, "__init__", recorded)
    level_passes.cache_clear()
    x = _samples((513, 702), "float32")
    expected = undula.denoise(x)
    assert len(passes) > 4
    for cached in (level_passes, encode_analysis, encode_synthesis):
        cached.cache_clear()
    gc.collect()
    assert all(work() is not None for work in passes)
    np.testing.assert_array_equal(undula.denoise(x), expected)


def test_results_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "THREADED", 0)
    monkeypatch.setattr(graphs, "PIECE", 1 << 10)
    monkeypatch.setattr(tasks, "PIECE", 1 << 10)
    graph, inputs = _traced(_denoised, [_samples((2, 131, 140), "float32")])
    executable = CpuGraph(graph)
    results = []
    try:
        for threads in (1, 2, 3, 1):
            undula.set_num_threads(threads)
            results.append(executable.run(inputs)["y0"])
    finally:
        undula.set_num_threads(None)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    expected = ReferenceGraph(graph).run(inputs)["y0"]
    np.testing.assert_allclose(results[0], expected, rtol=1e-4, atol=1e-4)


def test_a_graph_runs_in_many_threads_at_once() -> None:
    arrays = [_samples((1, 120, 120)) * k for k in range(1, 9)]
    graph, _ = _traced(_denoised, arrays[:1])
    executable = CpuGraph(graph)
    expected = [executable.run({"x0": x})["y0"] for x in arrays]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: executable.run({"x0": x})["y0"], arrays * 3))
    for result, values in zip(results, expected * 3, strict=True):
        np.testing.assert_array_equal(result, values)


def test_inputs_of_any_layout() -> None:
    x = _samples((1, 40, 50))
    graph, inputs = _traced(_denoised, [x])
    executable = CpuGraph(graph)
    expected = executable.run(inputs)["y0"]
    shifted = np.zeros(x.nbytes + 1, np.uint8)[1:].view("f8").reshape(x.shape)
    shifted[...] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for other in (np.asfortranarray(x), np.repeat(x, 2, axis=2)[..., ::2], x.astype(">f8"), shifted, frozen):
        np.testing.assert_array_equal(executable.run({"x0": other})["y0"], expected)
    with pytest.raises(ValueError, match=r"x0 must have shape \(1, 40, 50\), got \(1, 50, 40\)"):
        executable.run({"x0": x.transpose(0, 2, 1)})


def test_times_of_phases() -> None:
    graph, inputs = _traced(_denoised, [_samples((1, 40, 50))])
    seconds = dict.fromkeys(("forward", "filter", "inverse"), 0.0)
    executable = CpuGraph(graph)
    np.testing.assert_array_equal(executable.run(inputs, seconds)["y0"], executable.run(inputs)["y0"])
    assert min(seconds.values()) > 0


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(1, 500), st.integers(1, 20))
def test_parts_cover_everything_once(lengths: list[int], size: int, least: int) -> None:
    counts = np.zeros(lengths, int)
    for part in cut(lengths, size, least):
        counts[tuple(slice(begin, end) for begin, end in part)] += 1
    assert (counts == 1).all()


def test_outputs_may_be_intermediate_results() -> None:
    def both(x: SymbolicArray) -> list[SymbolicArray]:
        doubled = 2 * x
        materialize(doubled)
        return [doubled, doubled, doubled + 1, x]

    _check(both, _samples((3, 4)))


def test_inputs_and_outputs_may_be_in_the_memory_of_a_run() -> None:
    graph = Graph()
    y = 3 * symbolic_input(graph, "x", (2, 5000), "float32")
    materialize(y)
    (total,) = reduced("sum", [y])
    symbolic_output(graph, "y", y / total[:, None])
    x = np.random.default_rng(0).random((2, 5000), np.float32)
    expected = CpuGraph(graph).run({"x": x})["y"]
    executable = CpuGraph(graph, ("x", "y"))
    assert executable.nbytes < CpuGraph(graph).nbytes + x.nbytes
    given = np.empty_like(x)
    for arrays in ({"x": x}, {"x": lambda target: np.copyto(target, x)}):
        np.testing.assert_array_equal(executable.run(arrays)["y"], expected)
        assert executable.run(arrays, outputs={"y": given})["y"] is given
        np.testing.assert_array_equal(given, expected)
