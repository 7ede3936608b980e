"""Wavelet packets against PyWavelets: coefficients, names, laziness, edits, copies, dtypes, devices."""

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st

import undula
from comparing import assert_same, noise
from undula.engines.dispatch import engine_for
from undula.functions import packet_transforms

pytestmark = pytest.mark.filterwarnings("ignore:Level value")

KINDS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "WaveletPacket": ((3, 61), {"axis": -1}),
    "WaveletPacket2D": ((21, 3, 30), {"axes": (0, 2)}),
    "WaveletPacketND": ((12, 9, 2, 10), {"axes": (0, 1, 3)}),
}


def pair(kind: str, x: Any, wavelet: str = "db2", **options: Any) -> tuple[Any, Any]:
    """The same tree of Undula and of PyWavelets."""
    return getattr(undula, kind)(x, wavelet, **options), getattr(pywt, kind)(x, wavelet, **options)


def assert_same_nodes(ours: list[Any], theirs: list[Any], looser: float = 1) -> None:
    assert [node.path for node in ours] == [node.path for node in theirs]
    assert_same([node.data for node in ours], [node.data for node in theirs], looser)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", pywt.Modes.modes)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_levels(kind: str, mode: str, dtype: str) -> None:
    shape, options = KINDS[kind]
    x = noise(*shape, dtype=dtype)
    ours, theirs = pair(kind, x, mode=mode, maxlevel=2, **options)
    # Extrapolation makes large numbers of small ones, and rounding errors with them.
    assert_same_nodes(ours.get_level(2), theirs.get_level(2), 100)
    assert_same_nodes(ours.get_level(1), theirs.get_level(1), 100)
    assert_same(ours.reconstruct(update=False), x, 100)


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_of_a_level_are_those_computed_one_by_one(kind: str) -> None:
    shape, options = KINDS[kind]
    packet = getattr(undula, kind)(noise(*shape, dtype="f4"), "db2", maxlevel=2, **options)
    lazy = copy.copy(packet)
    for node in packet.get_level(2):
        assert_same(lazy[node.path].data, node.data)


def test_a_level_is_one_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, batches = type(engine_for([np.ones(1)])), []
    run = engine.run

    def counted(self: Any, back: bool, tree: Any, *rest: Any) -> Any:
        batches.append(tree.sample_shapes[0])
        return run(self, back, tree, *rest)

    monkeypatch.setattr(engine, "run", counted)
    monkeypatch.setattr(packet_transforms, "dwtn", None)
    packet = undula.WaveletPacket(noise(64), "haar")
    assert len(packet.get_level(4)) == 16
    assert batches == [(1, 64), (2, 32), (4, 16), (8, 8)]
    packet.get_level(5)  # Nodes that exist are stacked.
    packet.get_leaf_nodes(decompose=True)
    assert batches[4:] == [(16, 4), (32, 2)]


def test_access_is_lazy() -> None:
    packet: Any = undula.WaveletPacket2D(noise(16, 16), "haar")
    assert packet.a is packet.h is packet.v is packet.d is None
    node = packet["vh"]
    assert packet.v == packet["v"] != packet["h"]
    assert node == packet.v.h
    assert {node: 1}[packet["vh"]] == 1
    assert not packet.a.has_any_subnode
    assert packet.get_subnode("a").get_subnode("d", decompose=False) is None
    assert [leaf.path for leaf in packet.get_leaf_nodes()] == ["a", "h", "va", "vh", "vv", "vd", "d"]
    assert packet.get_level(2, decompose=False) == [packet["v"][part] for part in packet.PARTS]
    line = undula.WaveletPacket(noise(16), "haar")
    assert line.a is line.d is None
    assert line["d"] == line.d
    volume = undula.WaveletPacketND(noise(8, 8), "haar")
    assert volume.PARTS == dict.fromkeys(["aa", "ad", "da", "dd"])
    assert volume["ad"] == volume.PARTS["ad"]


@pytest.mark.parametrize("kind", ["WaveletPacket", "WaveletPacket2D"])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_frequency_order(kind: str, level: int) -> None:
    def paths(nodes: Any) -> Any:
        return [paths(node) if isinstance(node, list) else node.path for node in nodes]

    ours, theirs = pair(kind, np.ones((8, 8)), "haar")
    assert paths(ours.get_level(level, "freq")) == paths(theirs.get_level(level, "freq"))
    assert np.ravel(ours.get_level(0, "freq")).tolist() == [ours]


def test_frequencies_rise() -> None:
    """Each tone is strongest in the node of its frequency."""
    for place in range(8):
        tone = np.cos(np.pi * (place + 0.5) / 8 * np.arange(512))
        nodes = undula.WaveletPacket(tone, "db20", "periodization", maxlevel=3).get_level(3, "freq")
        assert np.argmax([np.square(node.data).sum() for node in nodes]) == place


@pytest.mark.parametrize("kind", KINDS)
def test_attributes(kind: str) -> None:
    shape, options = KINDS[kind]
    ours, theirs = pair(kind, noise(*shape), mode="reflect", maxlevel=2, **options)
    names = "path path_tuple node_name level maxlevel mode axes is_empty has_any_subnode PART_LEN".split()
    last = list(theirs.PARTS)[-1]
    assert ours.data_size == theirs.data_size
    for path in ("", last, last * 2):
        node, other = ours[path], theirs[path]
        assert {name: getattr(node, name) for name in names} == {name: getattr(other, name) for name in names}
        assert list(node.PARTS) == list(other.PARTS)
        assert node.wavelet == undula.Wavelet("db2")
        assert (node.parent.path if path else node.parent) == (other.parent.path if path else None)
    assert str(undula.WaveletPacket([1.0, 2.0], "haar")) == str(pywt.WaveletPacket([1.0, 2.0], "haar"))


@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize("walk", ["walk", "walk_depth"])
def test_walks(walk: str, decompose: bool) -> None:
    def visited(packet: Any) -> list[str]:
        paths: list[str] = []

        def visit(node: Any, suffix: str, *, prefix: str) -> bool:
            paths.append(prefix + node.path + suffix)
            return bool(node.path != "d")

        packet["aad"]
        getattr(packet, walk)(visit, ("<",), {"prefix": ">"}, decompose)
        return paths

    ours, theirs = pair("WaveletPacket", noise(32), "haar", maxlevel=3)
    assert visited(ours) == visited(theirs)
    for leaves in (False, True):
        assert_same_nodes(ours.get_leaf_nodes(leaves), theirs.get_leaf_nodes(leaves))


@pytest.mark.parametrize("kind", KINDS)
def test_edits_follow_pywavelets(kind: str) -> None:
    """The same sequence of edits leads to the same trees and samples."""
    shape, options = KINDS[kind]
    if kind == "WaveletPacketND":  # PyWavelets does not reconstruct inner nodes of odd lengths.
        shape = tuple(4 * length for length in shape)
    results = []
    for packet in pair(kind, 10 * noise(*shape), mode="periodization", maxlevel=2, **options):
        first, *_, last = packet.PARTS
        packet[first + last].data = 0 * packet[first + last].data
        packet[last] = np.ones_like(packet[last].data)
        del packet[first + first]
        results += [packet.reconstruct(update=False), packet[first].reconstruct(update=True)]
        packet.reconstruct()
        results.append(packet.data)
    half = len(results) // 2
    assert_same(results[:half], results[half:])
    assert results[0].shape == results[2].shape == shape


@pytest.mark.parametrize("kind", KINDS)
def test_trees_of_coefficients(kind: str) -> None:
    axes: dict[str, Any] = {"axes": (0, 1)} if kind == "WaveletPacketND" else {}
    x = noise(16, 16)
    full = getattr(undula, kind)(x, "db2", "periodization", **axes)
    empty = getattr(undula, kind)(None, "db2", "periodization", **axes)
    assert empty.is_empty
    assert empty.maxlevel is None
    first, *others = full.PARTS
    for part in full.PARTS:
        empty[first + part] = full[first + part].data.tolist()
    for part in others:
        empty[part] = full[part]
    assert_same(empty.reconstruct(update=False), x)
    assert empty.data is None
    assert_same(empty.reconstruct(), empty.data)
    assert empty.maxlevel == full.maxlevel
    assert [node.path for node in empty.get_leaf_nodes()] == [*(first + part for part in full.PARTS), *others]


def test_removed_nodes() -> None:
    packet = undula.WaveletPacket2D(None, "haar", "symmetric")
    packet["va"] = np.ones((2, 2))
    node = packet["va"]
    del packet["va"]
    assert node.parent is None
    assert (node.data == 1).all()
    with pytest.raises(TypeError, match=r"'va'.*no data"):
        packet["va"]
    full = undula.WaveletPacket(noise(8), "haar")
    del full["a"]
    assert not full.get_subnode("a").is_empty  # It is computed again.


@given(st.data())
def test_reconstruction_of_any_tree(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 20), min_size=2, max_size=3)))
    axes = data.draw(st.permutations(range(len(shape)))).copy()[: data.draw(st.integers(1, len(shape)))]
    wavelets = [data.draw(st.sampled_from(["haar", "db2", "bior2.2"])) for _ in axes]
    # Reflections need two samples, also at the last of three levels.
    known = [mode for mode in undula.MODES if min(shape) > 8 or not mode.endswith("reflect")]
    modes = [data.draw(st.sampled_from(known)) for _ in axes]
    x = noise(*shape)
    packet = undula.WaveletPacketND(x, wavelets, modes, 3, axes)
    parts = list(packet.PARTS)
    for _ in range(data.draw(st.integers(0, 4))):
        packet[tuple(data.draw(st.lists(st.sampled_from(parts), min_size=1, max_size=3)))]
    np.testing.assert_allclose(packet.reconstruct(), x, atol=1e-6 * np.abs(x).max())


def test_a_wavelet_for_each_axis() -> None:
    x = noise(40, 40)
    transform = ("haar", "db4"), ("zero", "periodic")
    packet = undula.WaveletPacket2D(x, *transform)
    assert packet.maxlevel == min(undula.dwt_max_level(40, name) for name in transform[0]) == 2
    bands = pywt.dwtn(pywt.dwtn(x, *transform)["da"], *transform)
    for nodes in (packet, copy.copy(packet)):
        assert_same(nodes["hv"].data, bands["ad"])
    packet.decompose_to()
    assert_same(packet["hv"].data, bands["ad"])


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2"])
def test_other_dtypes(dtype: str) -> None:
    x = np.arange(32).astype(dtype)
    packet = undula.WaveletPacket(x, "db2", maxlevel=2)
    assert packet.data is x
    expected = undula.WaveletPacket(x.astype("f4" if dtype == "f2" else "f8"), "db2", maxlevel=2)
    assert_same([n.data for n in packet.get_level(2)], [n.data for n in expected.get_level(2)])
    packet["d"] = x[:16]
    assert packet["d"].data.dtype == expected["d"].data.dtype


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda packet: pickle.loads(pickle.dumps(packet))]
)
def test_copies(kind: str, duplicate: Callable[[Any], Any]) -> None:
    shape, options = KINDS[kind]
    packet = getattr(undula, kind)(noise(*shape), "db2", maxlevel=2, **options)
    last = list(packet.PARTS)[-1]
    packet[last] = 2 * packet[last].data
    other = duplicate(packet)
    assert type(other) is type(packet)
    assert (other.axes, other.mode, other.maxlevel) == (packet.axes, packet.mode, packet.maxlevel)
    assert other[last] is not packet[last]
    assert other[last].parent is other
    assert_same(other.reconstruct(), packet.reconstruct(update=False))
    other[last] = 0 * other[last].data
    assert packet[last].data.any()


def test_nodes_keep_their_tree_which_is_released_without_the_collector() -> None:
    gc.disable()
    try:
        packet = undula.WaveletPacket(noise(64), "haar")
        node = packet.get_level(3)[-1]
        alive = weakref.ref(packet)
        del packet
        assert node.parent.parent.parent == alive()
        assert node.parent["d"] == node
        del node
        assert alive() is None
    finally:
        gc.enable()


def test_attributes_of_users_stay_with_a_node() -> None:
    packet = undula.WaveletPacket(noise(16), "haar")
    packet["ad"].cost = 3
    assert packet["a"]["d"].cost == packet.get_level(2)[1].cost == 3


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_nodes(duplicate: Callable[[Any], Any]) -> None:
    packet = undula.WaveletPacket(noise(16), "haar")
    packet["ad"].data[:] = 0
    node = packet["a"]
    other = duplicate(node)
    assert other != node
    assert (other.path, other.maxlevel, type(other)) == ("a", 4, type(node))
    assert_same(other.reconstruct(), node.reconstruct())
    other["a"] = np.ones(4)
    assert (packet["aa"].data != 1).all()
    if duplicate is not copy.copy:
        assert other.parent["aa"].parent == other


@pytest.mark.parametrize("kind", KINDS)
def test_reconstruction_by_levels_is_that_by_nodes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees that are full are reconstructed by levels where nodes are small, the others node by node."""
    shape, options = KINDS[kind]
    packet = getattr(undula, kind)(noise(*shape), "db2", maxlevel=2, **options)
    packet.get_level(2)
    first, *_, last = packet.PARTS
    packet[last + first].data = 2 * packet[last + first].data
    del packet[first + first], packet[first + last]  # a part of the tree that is not full
    results = [packet.reconstruct(update=False)]
    monkeypatch.setattr(packet_transforms, "MAX_STACKED", 0)
    results.append(packet.reconstruct(update=False))
    assert_same(*results)


def test_on_a_device(target: str) -> None:
    x = noise(24, 40, dtype="f4")
    packet = undula.WaveletPacket2D(x, "db2", "symmetric", backend=target)
    assert packet["a"].backend == target
    assert_same_nodes(packet.get_level(2), pywt.WaveletPacket2D(x, "db2", "symmetric").get_level(2))
    assert_same(packet.reconstruct(), x)


def test_arrays_of_pyopencl() -> None:
    from pyopencl import array

    from undula.engines.gpu.opencl.runtime import default_device

    queue = default_device().queue
    x = noise(3, 64, dtype="f4")
    packet = undula.WaveletPacket(array.to_device(queue, x), "db2", maxlevel=2)
    theirs = pywt.WaveletPacket(x, "db2", maxlevel=2)
    nodes = packet.get_level(2)
    assert all(type(node.data) is array.Array for node in nodes)
    assert_same([node.data.get() for node in nodes], [node.data for node in theirs.get_level(2)])
    assert_same(packet.reconstruct().get(), x)
    packet["a"] = 2 * packet["a"].data
    del packet["aa"], packet["ad"], packet["da"], packet["dd"]
    packet.get_level(2)  # Nodes that exist are stacked.
    assert_same(packet["ad"].data.get(), 2 * theirs["ad"].data)


def test_arrays_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = noise(33, dtype="f4")
    packet = undula.WaveletPacket(torch.from_numpy(x), "db2", maxlevel=2)
    nodes = packet.get_level(2)
    assert all(isinstance(node.data, torch.Tensor) for node in nodes)
    theirs = pywt.WaveletPacket(x, "db2", maxlevel=2).get_level(2)
    assert_same([node.data.numpy() for node in nodes], [node.data for node in theirs])
    assert_same(packet.reconstruct().numpy(), x)


def reconstruct_nothing() -> Any:
    packet = undula.WaveletPacket(None, "haar", maxlevel=1)
    assert [node.is_empty for node in packet.decompose()] == [True, True]
    return packet.reconstruct()


LINE, IMAGE = np.arange(8.0), np.ones((8, 8))
BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "path too long": (lambda: undula.WaveletPacket(LINE, "haar")["aaaa"], IndexError, "'aaaa'.*level.*3"),
    "path of a node too long": (
        lambda: undula.WaveletPacket(LINE, "haar")["a"]["aaa"],
        ValueError,
        "last level.*3",
    ),
    "assigned too deep": (
        lambda: undula.WaveletPacket(LINE, "haar")["aa"].__setitem__("aa", LINE),
        IndexError,
        "'aa'",
    ),
    "no such band": (lambda: undula.WaveletPacket(LINE, "haar")["ac"], ValueError, "'a', 'd'; got 'c'"),
    "half a name": (lambda: undula.WaveletPacketND(IMAGE, "haar")["a"], ValueError, "'dd'; got 'a'"),
    "path of numbers": (lambda: undula.WaveletPacket(LINE, "haar")[(5, 3)], TypeError, r"\(5, 3\)"),
    "assigned to a number": (
        lambda: undula.WaveletPacket(LINE, "haar").__setitem__(3, LINE),
        TypeError,
        "got 3",
    ),
    "order": (lambda: undula.WaveletPacket(LINE, "haar").get_level(1, "f"), ValueError, "'f'"),
    "order of an image": (lambda: undula.WaveletPacket2D(IMAGE, "haar").get_level(1, "f"), ValueError, "'f'"),
    "level too deep": (lambda: undula.WaveletPacket(LINE, "haar").get_level(4), ValueError, "0 to 3, got 4"),
    "level of another type": (lambda: undula.WaveletPacket(LINE, "haar").get_level("1"), TypeError, "'1'"),  # type: ignore[arg-type]
    "maxlevel of another type": (lambda: undula.WaveletPacket(LINE, "haar", maxlevel=1.5), TypeError, "1.5"),  # type: ignore[arg-type]
    "negative maxlevel": (lambda: undula.WaveletPacket(LINE, "haar", maxlevel=-1), ValueError, "got -1"),
    "negative level": (lambda: undula.WaveletPacketND(IMAGE, "haar").get_level(-1), ValueError, "got -1"),
    "no data": (lambda: undula.WaveletPacket(None, "haar").get_level(1), TypeError, "no data"),
    "empty subnodes": (reconstruct_nothing, ValueError, "no subnode of node ''"),
    "axis": (lambda: undula.WaveletPacket(LINE, "haar", axis=1), ValueError, r"\(1,\)"),
    "axes": (lambda: undula.WaveletPacket2D(IMAGE, "haar", axes=(0, 0)), ValueError, r"\(0, 0\)"),
    "an axis of an image": (lambda: undula.WaveletPacket2D(IMAGE, "haar", axes=(0,)), ValueError, r"\(0,\)"),
    "axes without data": (lambda: undula.WaveletPacketND(None, "haar", axes=(1, 1)), ValueError, r"\(1, 1\)"),
    "neither data nor axes": (lambda: undula.WaveletPacketND(None, "haar"), ValueError, "axes=None"),
    "a line as an image": (lambda: undula.WaveletPacket2D(LINE, "haar"), ValueError, r"\(8,\)"),
    "a number": (lambda: undula.WaveletPacketND(3.0, "haar"), ValueError, "single number"),
    "wavelet": (lambda: undula.WaveletPacket(LINE, "hare"), ValueError, "'hare'"),
    "mode": (lambda: undula.WaveletPacket2D(IMAGE, "haar", "smoth"), ValueError, "'smoth'.*'smooth'"),
    "three wavelets": (lambda: undula.WaveletPacket2D(IMAGE, ["haar"] * 3), ValueError, "2 axes.*got 3"),
    "data of strings": (lambda: undula.WaveletPacket(LINE, "haar").__setitem__("a", ["x"]), TypeError, "<U1"),
    "path of an image": (
        lambda: undula.WaveletPacket2D(IMAGE, "haar").expand_2d_path("ax"),
        ValueError,
        "got 'x'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, kind, message = BAD[case]
    with pytest.raises(kind, match=message) as error:
        act()
    assert isinstance(error.value, undula.UndulaError)


@pytest.mark.parametrize("name", ["WaveletPacket", "WaveletPacket2D"])
@pytest.mark.parametrize("length", [7, 9, 10])
@pytest.mark.parametrize("wavelet", ["haar", "db2"])
def test_nodes_of_odd_lengths_can_be_replaced(wavelet: str, length: int, name: str) -> None:
    """PyWavelets raises an error here for bands of odd lengths."""
    x = (
        np.arange(float(length))
        if name == "WaveletPacket"
        else np.arange(float(length**2)).reshape(length, -1)
    )
    packet = getattr(undula, name)(x, wavelet, "symmetric", maxlevel=2)
    values = packet["a"].data
    del packet["a"]
    packet["a"] = values
    assert packet["aa"].data is not None
    np.testing.assert_allclose(packet.reconstruct(update=False), x, atol=1e-10)


def test_errors_of_data() -> None:
    for kind in (undula.WaveletPacket, undula.WaveletPacket2D, undula.WaveletPacketND):
        for wrong in ([[1, 2], [3]], "text"):
            with pytest.raises(undula.UndulaError, match="must be"):
                kind(wrong, "haar")
    packet = undula.WaveletPacket(np.arange(8.0), "haar")
    with pytest.raises(undula.ArgumentTypeError, match="got None"):
        packet["a"] = None
