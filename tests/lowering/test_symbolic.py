"""Symbolic arrays record what NumPy would compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undula.engines.reference.graphs import ReferenceGraph
from undula.errors import ArgumentError
from undula.lowering.graph import Graph, Move, Pointwise
from undula.lowering.symbolic import SymbolicArray, materialize, reduced, symbolic_input, symbolic_output, xp

Array = np.ndarray[Any, Any]


def traced(function: Any, *arrays: Array) -> tuple[Array, Graph]:
    """Return what a function computes of arrays, by a graph that was recorded from it."""
    graph = Graph()
    inputs = [symbolic_input(graph, f"x{k}", x.shape, str(x.dtype)) for k, x in enumerate(arrays)]
    symbolic_output(graph, "y", function(xp, *inputs))
    result = ReferenceGraph(graph).run({f"x{k}": x for k, x in enumerate(arrays)})["y"]
    return result, graph


FUNCTIONS = {
    "arithmetic": lambda xp, x, y: (x + y) * 2 - x / (1 + abs(y)) - (-x) + 3 / (2 + xp.abs(x)) - (1 - y),
    "ufuncs": lambda xp, x, y: np.sqrt(np.abs(x)) + np.float64(2) * np.maximum(x, y),
    "powers": lambda xp, x, y: x**2 + xp.sqrt(xp.abs(y)) + (1 + xp.abs(x)) ** 0.3,
    "exponentials": lambda xp, x, y: xp.exp(x) + xp.log(1 + xp.abs(y)),
    "comparisons": lambda xp, x, y: xp.where((x < y) | (x >= 1) & ~(y <= 0), x, y),
    "limits": lambda xp, x, y: xp.clip(xp.round(3 * x), -2.0, 2.0) + xp.minimum(x, y) - xp.maximum(y, x),
    "equality": lambda xp, x, y: xp.where((x == y) | (xp.round(x) != 0), xp.ones_like(x), xp.zeros_like(x)),
    "conversions": lambda xp, x, y: xp.astype(x > 0, xp.float64) + xp.full_like(y, 0.25),
    "infinities": lambda xp, x, y: xp.where(xp.isinf(x / xp.zeros_like(x)), x, y),
    "permuted": lambda xp, x, y: xp.permute_dims(x * 2 + y, (2, 0, 1)),
    "sliced": lambda xp, x, y: (x - y)[..., ::2][:, :2, None],
    "one": lambda xp, x, y: (x * y)[0, -1],
    "reshaped": lambda xp, x, y: xp.reshape(xp.permute_dims(x, (1, 2, 0)) + 1, (-1,)),
    "split": lambda xp, x, y: xp.reshape(x + y, (x.shape[0], 1, -1)),
    "joined": lambda xp, x, y: xp.concat([x, y * 2, x], axis=1),
    "stacked": lambda xp, x, y: xp.stack([x, -y], axis=-1),
    "broadcast": lambda xp, x, y: xp.broadcast_to(x[:, :1], x.shape) + y[0],
    "expanded": lambda xp, x, y: xp.expand_dims(x, axis=1) + xp.expand_dims(y, axis=1),
    "gathered": lambda xp, x, y: xp.take(x - y, np.array([0, 0]), axis=1),
    "sums": lambda xp, x, y: xp.sum(x * y, axis=(1, 2)) + xp.max(x, axis=(1, 2)),
    "row means": lambda xp, x, y: (
        xp.mean(x * y, axis=-1, keepdims=True) + xp.max(y, axis=(-2, -1))[:, None, None]
    ),
    "means": lambda xp, x, y: x - xp.mean(x, axis=(1, 2), keepdims=True),
    "quantifiers": lambda xp, x, y: xp.where(xp.all(x > 0, axis=0) & ~xp.any(y > 0, axis=0), x[0], y[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (3, 5, 1)])
def test_functions_match_numpy(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, *shape))
    y.flat[0] = x.flat[0]
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](np, x, y)
    actual, _ = traced(FUNCTIONS[name], x, y)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=1e-14)


@given(st.data())
@settings(max_examples=60)
def test_chains_of_layouts_match_numpy(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * 3))
    x = np.arange(float(np.prod(shape))).reshape(shape)
    y: Any = x
    graph = Graph()
    z: Any = symbolic_input(graph, "x", shape, "float64")
    for _ in range(data.draw(st.integers(1, 5))):
        kind = data.draw(st.sampled_from(["reshape", "permute", "slice", "compute", "flatten"]))
        if kind == "reshape":
            sizes = (*y.shape[:-2], -1) if y.ndim > 1 else (-1, 1, *y.shape)
            y, z = (space.reshape(v, sizes) for space, v in ((np, y), (xp, z)))
        elif kind == "flatten":
            y, z = (space.reshape(v, (-1,)) for space, v in ((np, y), (xp, z)))
        elif kind == "permute":
            order = tuple(data.draw(st.permutations(range(y.ndim))))
            y, z = (space.permute_dims(v, order) for space, v in ((np, y), (xp, z)))
        elif kind == "slice":
            step = data.draw(st.sampled_from([1, 2, -1]))
            y, z = y[..., ::step], z[..., ::step]
        else:
            y, z = 2 * y + 1, 2 * z + 1
    symbolic_output(graph, "y", z)
    np.testing.assert_array_equal(ReferenceGraph(graph).run({"x": x})["y"], y)


def test_integers_are_computed_as_floats() -> None:
    x = np.array([200, 100], np.uint8)
    actual, _ = traced(lambda xp, x: xp.astype(x, xp.float32) * 2 - 1, x)
    np.testing.assert_array_equal(actual, [399, 199])


def test_an_array_is_computed_once() -> None:
    graph = Graph()
    x = symbolic_input(graph, "x", (4,), "float64")
    y = 2 * x
    assert materialize(y) == materialize(y)
    assert materialize(x)[0].buffer == "x"
    assert len(graph.nodes) == 1


def test_nodes_that_can_run_together_are_joined() -> None:
    graph = Graph()
    x = symbolic_input(graph, "x", (2, 8), "float64")
    first, second = 2 * x, 3 * x
    materialize(first)
    (total,) = reduced("sum", [first])
    materialize(second)
    (other,) = reduced("sum", [second])
    symbolic_output(graph, "y", total + other)
    joined = graph.scheduled()
    assert [type(node).__name__ for node in joined.nodes] == ["Pointwise", "Reduce", "Pointwise"]
    for program in (graph, joined):
        result = ReferenceGraph(program).run({"x": np.ones((2, 8))})["y"]
        np.testing.assert_array_equal(result, [40, 40])


def test_arrays_that_are_copied_to_an_output_are_computed_there() -> None:
    graph = Graph()
    x = symbolic_input(graph, "x", (4, 3), "float64")
    y = xp.take(x, [2, 0], axis=0)
    symbolic_output(graph, "y", y)
    assert len(graph.nodes) == 2
    assert [view.buffer for node in graph.scheduled().nodes for view in node.writes] == ["y"]
    samples = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(ReferenceGraph(graph).run({"x": samples})["y"], samples[[2, 0]])
    symbolic_output(graph, "z", xp.permute_dims(y, (1, 0)))  # Now something else needs it, too.
    assert len(graph.scheduled().nodes) == 2
    np.testing.assert_array_equal(ReferenceGraph(graph).run({"x": samples})["z"], samples[[2, 0]].T)


def test_a_graph_prints_its_program() -> None:
    _, graph = traced(lambda xp, x: xp.where(x > 0, xp.sqrt(x), 0.0), np.ones(3))
    assert "y: float64[3] = where((x0 > 0), sqrt(x0), 0)" in str(graph)


def test_graphs_refuse_nodes_that_make_no_sense() -> None:
    graph = Graph()
    x = graph.add_input("x", (4,), "float64")
    loose = graph.allocate((4,), "float64")
    with pytest.raises(ValueError, match="no node has written"):
        graph.append(Move(loose, graph.allocate((4,), "float64"), ()))
    with pytest.raises(ValueError, match="writes the input"):
        graph.append(Move(x, x, ()))
    with pytest.raises(ValueError, match="no buffer 'z'"):
        graph.append(Move(x._replace(buffer="z"), loose, ()))
    with pytest.raises(ValueError, match="exceeds"):
        graph.append(Move(x._replace(offset=1), loose, ()))
    with pytest.raises(ValueError, match="already"):
        graph.add_output("x", (4,), "float64")
    assert not graph.nodes


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda x: 1 if x > 0 else 2, "before there are samples"),
        (lambda x: np.cos(x), "NumPy's cos; use the functions of pyramid.operations.xp"),
        (lambda x: np.asarray(x), "pyramid.operations.xp"),
        (lambda x: xp.sort(x), "cannot compile 'sort'"),
        (lambda x: xp.sum(x, axis=0), "of the last axes"),
        (lambda x: xp.reshape(x, (7,)), "cannot reshape"),
    ],
)
def test_what_cannot_be_recorded_is_an_error(misuse: Any, message: str) -> None:
    x = symbolic_input(Graph(), "x", (2, 3), "float64")
    assert isinstance(x, SymbolicArray)
    with pytest.raises((ArgumentError, TypeError), match=message):
        misuse(x)


def test_outputs_may_be_inputs() -> None:
    actual, graph = traced(lambda xp, x: x, np.arange(3.0))
    np.testing.assert_array_equal(actual, [0, 1, 2])
    assert isinstance(graph.nodes[0], Pointwise)


def test_what_nothing_needs_is_not_computed() -> None:
    graph = Graph()
    x = symbolic_input(graph, "x", (2, 8), "float32")
    doubled = 2 * x
    materialize(doubled, x + 1)
    unused = xp.sum(doubled, axis=1) + 1
    materialize(unused)
    symbolic_output(graph, "y", xp.sum(x * doubled, axis=1))
    scheduled = graph.scheduled()
    assert [type(node).__name__ for node in scheduled.nodes] == ["Pointwise", "Reduce"]
    assert set(scheduled.buffers) < set(graph.buffers)
    values = np.arange(16, dtype="f4").reshape(2, 8)
    np.testing.assert_array_equal(ReferenceGraph(scheduled).run({"x": values})["y"], (2 * values**2).sum(1))
