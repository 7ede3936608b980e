"""The best basis against a search among all bases, and against what is known of signals."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import undula
from comparing import assert_same, noise

NORM = 0.7


def magnitudes(c: Any) -> Any:
    return np.abs(c.astype("c16")).ravel()


COSTS: dict[str, Callable[[Any, float], float]] = {
    "entropy": lambda c, energy: -sum(p * np.log(p) for p in magnitudes(c) ** 2 / energy if p),
    "log energy": lambda c, energy: sum(np.log(m**2) for m in magnitudes(c) if m),
    "threshold": lambda c, energy: np.count_nonzero(magnitudes(c) > 3),
    "norm": lambda c, energy: np.sum(magnitudes(c) ** NORM),
}


def bases(node: Any) -> Iterator[list[Any]]:
    """All bases of a tree below a node, as lists of nodes."""
    yield [node]
    if node.level < node.maxlevel:
        for parts in product(*(list(bases(subnode)) for subnode in node.decompose())):
            yield [leaf for part in parts for leaf in part]


PACKETS: dict[str, Callable[[], Any]] = {
    "line": lambda: undula.WaveletPacket(noise(32), "db2", "periodization", 3),
    "complex": lambda: undula.WaveletPacket(noise(20, dtype="c16"), "haar", maxlevel=2),
    "batch": lambda: undula.WaveletPacket(noise(3, 24), "haar", "periodization", 3),
    "bytes": lambda: undula.WaveletPacket(np.arange(0, 250, 10).astype("u1"), "haar", maxlevel=2),
    "image": lambda: undula.WaveletPacket2D(noise(9, 12), "haar", "symmetric", 2),
    "volume": lambda: undula.WaveletPacketND(noise(8, 4, 4), "haar", maxlevel=1),
}


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", PACKETS)
def test_no_basis_costs_less(name: str, cost: str) -> None:
    packet = PACKETS[name]()
    energy = float(np.sum(magnitudes(packet.data) ** 2))
    options = {"threshold": {"threshold": 3.0}, "norm": {"p": NORM}}.get(cost, {})
    basis: Any = undula.best_basis(packet, cost, **options)
    assert not packet.has_any_subnode
    computed = sum(COSTS[cost](leaf.data, energy) for leaf in basis.get_leaf_nodes())
    least = min(sum(COSTS[cost](leaf.data, energy) for leaf in leaves) for leaves in bases(PACKETS[name]()))
    assert computed == pytest.approx(least, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(basis.reconstruct(), packet.data, atol=1e-10 * np.abs(packet.data).max())


def test_a_spike_is_not_decomposed_and_a_tone_is() -> None:
    spike, n = np.zeros(64), np.arange(64)
    spike[20] = 1
    for cost in ("entropy", "norm"):
        packet = undula.WaveletPacket(spike, "db4", "periodization", 3)
        assert [leaf.path for leaf in undula.best_basis(packet, cost).get_leaf_nodes()] == [""]
    tone = undula.WaveletPacket(np.cos(np.pi * (n + 0.5) / 2), "haar", "periodization", 3)
    assert max(leaf.level for leaf in undula.best_basis(tone).get_leaf_nodes()) == 3
    assert max(leaf.level for leaf in undula.best_basis(tone, level=1).get_leaf_nodes()) == 1


def test_entropy_does_not_depend_on_the_scale() -> None:
    x = noise(64)
    paths = [
        [leaf.path for leaf in undula.best_basis(undula.WaveletPacket(k * x, "db2")).get_leaf_nodes()]
        for k in (1, 1000, 1e-3)
    ]
    assert paths[0] == paths[1] == paths[2]
    assert len(paths[0]) > 1


def leaf_paths(x: Any, mode: str, cost: str) -> list[str]:
    tree = (undula.WaveletPacket if x.ndim == 1 else undula.WaveletPacket2D)(x, "db4", mode, maxlevel=4)
    return [leaf.path for leaf in undula.best_basis(tree, cost).get_leaf_nodes()]


t = np.linspace(-40, 40, 256)
SIGNALS = {
    "a peak whose tails underflow": np.exp(-t * t),
    "steps": np.repeat([3.0, 7, 1, 5], 32),
    "a cubic": t**3,
    "a line": t,
    "a photograph": np.rint(128 + 50 * np.add.outer(np.sin(t[:48]), np.cos(t[:40] ** 2)) + noise(48, 40)),
}


@pytest.mark.parametrize("cost", ["entropy", "log energy", "norm"])
@pytest.mark.parametrize("mode", ["smooth", "symmetric", "periodization"])
@pytest.mark.parametrize("name", SIGNALS)
def test_single_precision_and_other_units_choose_the_same_basis(name: str, mode: str, cost: str) -> None:
    x = SIGNALS[name]
    paths = leaf_paths(x, mode, cost)
    assert leaf_paths(x.astype("f4"), mode, cost) == paths
    if cost != "log energy":  # A logarithm is that of a number of units.
        for factor in (2.0**60, 2.0**-100):
            assert leaf_paths((x * factor).astype("f4"), mode, cost) == paths
        for factor in (2.0**900, 2.0**-900):
            assert leaf_paths(x * factor, mode, cost) == paths


def test_a_function_as_cost_and_trees_of_coefficients() -> None:
    x = noise(4, 32)
    packet = undula.WaveletPacket(x, "haar")
    empty = undula.WaveletPacket(None, "haar", axis=1)
    empty["a"], empty["d"] = packet["a"], packet["d"]
    for tree in (packet, empty):
        basis = undula.best_basis(tree, lambda c: -(c.shape[-1] ** 2))
        assert [leaf.path for leaf in basis.get_leaf_nodes()] == [""]
        basis = undula.best_basis(tree, lambda c: c.shape[-1] ** 2)
        assert {leaf.level for leaf in basis.get_leaf_nodes()} == {5}
        assert_same(basis.reconstruct(), x)
    assert empty.data is None
    assert packet["a"].has_any_subnode is False


def test_zeros_cost_nothing() -> None:
    for cost in ("entropy", "log energy", "norm"):
        basis = undula.best_basis(undula.WaveletPacket(np.zeros(16), "haar"), cost)
        assert basis.get_leaf_nodes() == [basis]


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "another cost": (lambda: undula.best_basis(PACKETS["line"](), "entropie"), "'entropie'.*'entropy'"),
    "no threshold": (lambda: undula.best_basis(PACKETS["line"](), "threshold"), "threshold=None"),
    "a square": (lambda: undula.best_basis(PACKETS["line"](), "norm", p=2), "p=2"),
    "too deep": (lambda: undula.best_basis(PACKETS["line"](), level=4), "0 to 3, got 4"),
    "an array": (lambda: undula.best_basis(np.ones(8)), "got ndarray"),  # type: ignore[type-var]
    "a node": (lambda: undula.best_basis(PACKETS["line"]()["a"]), "got Node"),
    "NaN": (lambda: undula.best_basis(undula.WaveletPacket([np.nan, 1.0], "haar"), "norm"), "nan"),
    "NaN without a cost": (lambda: undula.best_basis(undula.WaveletPacket([np.nan, 1.0], "haar")), "nan"),
    "NaN of a function": (lambda: undula.best_basis(PACKETS["line"](), lambda c: np.nan), "NaN"),
    "a cost of another type": (lambda: undula.best_basis(PACKETS["line"](), lambda c: None), "got None"),  # type: ignore[arg-type,return-value]
    "a word as threshold": (
        lambda: undula.best_basis(PACKETS["line"](), "threshold", threshold="a"),  # type: ignore[arg-type]
        "threshold='a'",
    ),
    "a truth value as threshold": (
        lambda: undula.best_basis(PACKETS["line"](), "threshold", threshold=True),
        "threshold=True",
    ),
    "an infinity": (lambda: undula.best_basis(undula.WaveletPacket([np.inf, 1.0], "haar")), "got inf"),
    "no data": (lambda: undula.best_basis(undula.WaveletPacket(None, "haar")), "no data"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, message = BAD[case]
    with pytest.raises(undula.UndulaError, match=message):
        act()


@pytest.mark.parametrize("cost", COSTS)
def test_coefficients_beyond_the_range_of_their_dtype_are_refused(cost: str) -> None:
    x = np.full((64, 64), 2e38, np.float32)
    options: dict[str, Any] = {"threshold": 1.0} if cost == "threshold" else {}
    with np.errstate(over="ignore", invalid="ignore"):
        packet = undula.WaveletPacket2D(x, "db2", maxlevel=3)
        with pytest.raises(undula.ArgumentError, match="beyond the range of float32"):
            undula.best_basis(packet, cost=cost, **options)
    undula.best_basis(undula.WaveletPacket2D(x.astype(float), "db2", maxlevel=3), cost=cost, **options)
