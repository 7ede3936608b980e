"""Built-in functions of arrays: they read NumPy's objects in memory, so no object may deceive them."""

import gc
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undula
from comparing import assert_same, noise
from undula.engines.cpu import builtin
from undula.engines.cpu.engine import CPU, cached_executable
from undula.lowering.spec import BandTree, transform_spec

pytestmark = pytest.mark.filterwarnings("ignore:Level value")


def laid_out(x: Any, layout: str) -> Any:
    """The same numbers in memory of another layout."""
    if layout == "fortran":
        return np.asfortranarray(x)
    if layout == "reversed":
        return x[..., ::-1].copy()[..., ::-1]
    if layout == "upside down":
        return x[::-1].copy()[::-1]
    if layout == "strided":
        memory = np.full((*x.shape[:-1], 2 * x.shape[-1]), 7, x.dtype)
        memory[..., ::2] = x
        return memory[..., ::2]
    if layout == "padded":
        memory = np.full((*x.shape[:-1], x.shape[-1] + 3), 7, x.dtype)
        memory[..., :-3] = x
        return memory[..., :-3]
    if layout == "unaligned":
        memory = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
        memory[...] = x
        return memory
    if layout == "swapped":
        return x.astype(x.dtype.newbyteorder())
    if layout == "pickled":
        return pickle.loads(pickle.dumps(x))
    if layout == "read-only":
        x = x.copy()
        x.flags.writeable = False
    if layout == "long axis":
        return x[np.newaxis][:, ::1].transpose([*range(1, x.ndim + 1), 0])[..., 0]
    return x


LAYOUTS = [
    "plain", "fortran", "reversed", "upside down", "strided", "padded", "unaligned", "swapped", "pickled",
    "read-only", "long axis",
]  # fmt: skip
shapes = st.lists(st.integers(1, 24), min_size=1, max_size=3)
dtypes = st.sampled_from(["f4", "f8", "c8", "c16"])


@given(
    st.sampled_from(["haar", "db4", "bior4.4"]),
    st.sampled_from(undula.MODES),
    shapes,
    dtypes,
    st.lists(st.sampled_from(LAYOUTS), min_size=2, max_size=6),
)
def test_layouts_do_not_matter(
    name: str, mode: str, shape: list[int], dtype: str, layouts: list[str]
) -> None:
    x = noise(*shape, dtype=dtype)
    expected = undula.wavedecn(x, name, mode, 2)
    for layout in layouts:  # Calls after the first one find what was compiled for another layout.
        coeffs = undula.wavedecn(laid_out(x, layout), name, mode, 2)
        assert_same(coeffs, expected)
        bands = [
            laid_out(coeffs[0], layout),
            *({key: laid_out(band, layout) for key, band in part.items()} for part in coeffs[1:]),
        ]
        assert_same(undula.waverecn(bands, name, mode), undula.waverecn(expected, name, mode))


@given(shapes, dtypes, st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS))
def test_results_go_into_arrays_of_any_layout(shape: list[int], dtype: str, layout: str, other: str) -> None:
    x = noise(*shape, dtype=dtype)
    plan = undula.Plan(shape, "db2", level=2, axes=range(len(shape)), dtype=dtype)
    expected = plan.forward(x)
    out = plan.empty()
    out[0] = laid_out(out[0], other)
    if other in ("read-only", "swapped"):
        with pytest.raises(undula.UndulaError):
            plan.forward(laid_out(x, layout), out=out)
        return
    plan.forward(laid_out(x, layout), out=out)
    assert_same(out, expected)
    back = laid_out(np.zeros(shape, dtype), other)
    out[0] = laid_out(out[0], layout)
    plan.inverse(out, out=back)
    assert_same(back, plan.inverse(expected))


def contiguous_function(back: bool, tree: BandTree) -> Callable[..., bool]:
    dtype = np.dtype(float)
    return CPU.compile_function(back, tree, dtype, tree.contiguous_views(dtype.name))


def test_arrays_that_share_memory_are_refused() -> None:
    memory = noise(99)
    tree = BandTree.of_samples(transform_spec(1, "haar", "symmetric", None), (32,), 1)
    forward, back = (contiguous_function(way, tree) for way in (False, True))
    assert forward(memory[:32], memory[32:48], memory[48:64])
    assert not forward(memory[:32], memory[31:47], memory[48:64])
    assert not forward(memory[:32], memory[32:48], memory[47:63])
    assert back(memory[64:96], memory[:16], memory[:16])  # Arrays that are only read may be the same.
    assert not back(memory[10:42], memory[:16], memory[42:58])


class Subclass(np.ndarray[Any, Any]):
    """An array that may do something else with its numbers."""


def test_other_objects_are_refused() -> None:
    tree = BandTree.of_samples(transform_spec(2, "haar", "symmetric", (1,)), (2, 8), 1)
    forward = contiguous_function(False, tree)
    low, high = np.zeros((2, 4)), np.zeros((2, 4))
    x = noise(2, 8)
    assert forward(x, low, high)
    others = [
        None, 1, "x", [], object, x.tolist(), x.view(Subclass), np.ma.masked_array(x), x[0],
        x[None], x.T, x[:, :7], x[:1],
        x.astype("f4"), x.astype("i8"), x.astype(">f8"), x.view("m8[s]"), x.view("V8"), x.astype(object),
        np.broadcast_to(x[:1], (2, 8)), np.float64(3),
    ]  # fmt: skip
    for other in others:
        assert forward(other, low, high) is False
    assert not forward(x, low)
    assert not forward(x, low, high, high)
    assert not forward()
    low.flags.writeable = False
    assert not forward(x, low, high)


def test_bands_of_zeros_are_none() -> None:
    tree = BandTree.of_samples(transform_spec(1, "haar", "symmetric", None), (8,), 1)
    views = [*tree.contiguous_views("float64")[:2], None]
    back = CPU.compile_function(True, tree, np.dtype(float), views)
    x, low = np.zeros(8), noise(4)
    assert back(x, low, None)
    assert_same(x, undula.idwt(low, np.zeros(4), "haar"), 1e-15)
    assert not back(x, low, low)
    assert not back(x, None, None)


def test_functions_count_their_references() -> None:
    x = noise(64)
    objects = (x, True, False, None, np.dtype(float))
    undula.dwt(x, "db4")
    before = [sys.getrefcount(value) for value in objects]
    for _ in range(1000):
        undula.dwt(x, "db4")
    after = [sys.getrefcount(value) for value in objects]
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 50


def test_a_function_keeps_what_it_runs() -> None:
    x = noise(300)
    tree = BandTree.of_samples(transform_spec(1, "sym5", "periodic", None), x.shape, 2)
    bands = [np.zeros(shape) for shape in tree.flat_shapes]
    forward = contiguous_function(False, tree)
    cached_executable.cache_clear()
    gc.collect()
    noise(10_000)
    assert forward(x, *bands)
    assert_same(bands, undula.wavedec(x, "sym5", "periodic", 2), 0)


@pytest.mark.parametrize("size", [100, 20_000])
def test_threads_do_not_share_scratch(size: int) -> None:
    x = noise(size)
    expected = undula.wavedec(x, "db4", level=3)
    wrong = []

    def work() -> None:
        for _ in range(100):
            again = undula.wavedec(x, "db4", level=3)
            wrong.extend(k for k, (a, b) in enumerate(zip(again, expected, strict=True)) if (a != b).any())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_known_fields_everything_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    assert builtin._fields_are_known()
    x = noise(77)
    expected = undula.wavedec(x, "db3", level=2)
    monkeypatch.setattr(builtin, "_fields_are_known", lambda: False)
    plan = undula.Plan(77, "db3", level=2)
    out = plan.empty()
    assert_same(plan.forward(x, out=out), expected, 0)
    monkeypatch.setattr("undula.functions.discrete_calls.CALLS", {})
    for _ in range(2):
        assert_same(undula.wavedec(x, "db3", level=2), expected, 0)


def test_a_transform_is_compiled_once() -> None:
    x = noise(23, 1, 37)[:, 0]
    before = cached_executable.cache_info().misses
    coeffs = undula.wavedec2(x, "db5", level=2)
    undula.wavedec2(x, "db5", level=2, out=coeffs)
    undula.wavedec2(noise(23, 37), "db5", level=2)
    plan = undula.Plan(x.shape, "db5", level=2)
    plan.forward(x)
    plan.forward(x, out=coeffs)
    views = plan.tree.contiguous_views(x.dtype.name)
    assert CPU.compile(False, plan.tree, x.dtype, views) is CPU.compile(False, plan.tree, x.dtype, views[:])
    assert cached_executable.cache_info().misses == before + 1
    # What kernels cannot follow is copied; that it has to be is kept, too.
    mirrored = x[:, ::-1]
    assert_same(undula.wavedec2(mirrored, "db5", level=2), undula.wavedec2(mirrored.copy(), "db5", level=2))
    before = cached_executable.cache_info().misses
    undula.wavedec2(mirrored, "db5", level=2)
    assert cached_executable.cache_info().misses == before


THREADS = """
import threading
import numpy as np
import undula

x = np.random.default_rng(0).standard_normal((220, 210)).astype("f4")
barrier = threading.Barrier(6)

def work(number):
    barrier.wait()
    for k in range(60):
        part = x[: 200 + k % 7 + number, : 200 + k % 5]
        bands = undula.dwtn(part, "db2")
        again = {key: np.empty_like(band) for key, band in bands.items()}
        undula.dwtn(part, "db2", out=again)
        assert all((again[key] == bands[key]).all() for key in bands)
        undula.idwtn({"aa": bands["aa"], "dd": bands["dd"]}, "db2")

threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_first_calls_of_several_threads() -> None:
    for _ in range(3):  # Functions held the address of a description that another thread had replaced.
        subprocess.run([sys.executable, "-X", "faulthandler", "-c", THREADS], check=True, timeout=120)
