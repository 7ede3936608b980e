"""Arrays of other libraries go in and come out as they are, where they are."""

from typing import Any

import numpy as np
import pytest

import undula
from comparing import noise
from undula.arrays import library_of


@pytest.fixture(params=["float32", "float64", "float16", "complex64", "uint8"])
def dtype(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def pyopencl_array(x: Any) -> tuple[Any, Any]:
    import pyopencl as cl
    import pyopencl.array as cla

    from undula.engines.gpu.opencl.runtime import default_device

    own = default_device()
    return cla.to_device(cl.CommandQueue(own.context, own.handle), x), lambda a: a.get()


def torch_array(x: Any) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    return torch.from_numpy(np.array(x)).cuda(), lambda a: a.cpu().numpy()


def cupy_array(x: Any) -> tuple[Any, Any]:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    return cupy.asarray(x), lambda a: a.get()


def jax_array(x: Any) -> tuple[Any, Any]:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    if x.dtype == np.float64:
        pytest.skip("JAX has doubles only when told so for the whole process")
    return jax.numpy.asarray(x), np.asarray


def numba_array(x: Any) -> tuple[Any, Any]:
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("Numba has no GPU here")
    return cuda.to_device(x), lambda a: a.get()


MAKERS = {
    "pyopencl": pyopencl_array,
    "torch": pytest.param(torch_array, marks=pytest.mark.cuda),
    "cupy": pytest.param(cupy_array, marks=pytest.mark.cuda),
    "jax": pytest.param(jax_array, marks=pytest.mark.cuda),
    "numba": pytest.param(numba_array, marks=pytest.mark.cuda),
}


@pytest.fixture(params=list(MAKERS.values()), ids=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_round_trip(make: Any, dtype: str) -> None:
    x = np.abs(noise(37, 50)).astype(dtype)
    given, host = make(x)
    coeffs = undula.wavedec2(given, "db2", level=2)
    theirs = undula.wavedec2(x.astype("f8" if dtype[0] != "c" else "c16"), "db2", level=2)
    kept = {"uint8": "float32"}.get(dtype, dtype)
    loose = {"float16": 0.5, "float64": 1e-10}.get(kept, 1e-3)
    if type(coeffs[0]).__name__ != "DeviceArray":
        assert type(coeffs[0]) is type(given)
    for mine, other in zip(
        (coeffs[0], *coeffs[1], *coeffs[2]), (theirs[0], *theirs[1], *theirs[2]), strict=True
    ):
        assert host(mine).dtype == kept
        np.testing.assert_allclose(host(mine), other, atol=loose)
    back = undula.waverec2(coeffs, "db2", shape=x.shape)
    np.testing.assert_allclose(host(back), x, atol=4 * loose)


def test_integers_where_they_are(make: Any) -> None:
    for dtype, kept, asked in (
        ("u1", "i2", None),
        ("i2", "i4", None),
        ("i2", "i2", "i2"),
        ("i4", "i4", "i4"),
    ):
        x = np.abs(noise(37, 50)).astype(dtype)
        given, host = make(x)
        coeffs = undula.lwt2(given, "cdf53", 2, dtype=asked)
        wanted = undula.lwt2(x, "cdf53", 2, dtype=asked)
        for mine, other in zip((coeffs[0], *coeffs[1]), (wanted[0], *wanted[1]), strict=True):
            assert host(mine).dtype == kept
            np.testing.assert_array_equal(host(mine), other)
        np.testing.assert_array_equal(host(undula.ilwt2(coeffs, "cdf53")), x)
    with pytest.raises(undula.ArgumentError, match=r"not looked at.*dtype='int32'"):
        undula.lwt2(make(np.ones((8, 8), "i4"))[0], "cdf53")


def test_colours_where_they_are(make: Any) -> None:
    x = np.random.default_rng(1).integers(0, 256, (30, 44, 3)).astype("u1")
    given, host = make(x)
    coeffs = undula.color.forward(given, level=2)
    wanted = undula.color.forward(x, level=2)
    for mine, other in zip((coeffs[0], *coeffs[1]), (wanted[0], *wanted[1]), strict=True):
        assert tuple(mine.shape) == other.shape
        # (Planes are a view of numbers side by side.)
        beside = mine.permute(1, 2, 0) if hasattr(mine, "permute") else mine.transpose((1, 2, 0))
        np.testing.assert_array_equal(host(beside), np.moveaxis(other, 0, -1))
    np.testing.assert_array_equal(host(undula.color.inverse(coeffs)), x)


def test_views(make: Any) -> None:
    x = noise(40, 60, dtype="f4")
    given, host = make(x)
    if type(given).__module__.startswith("numba"):
        pytest.skip("slices of Numba's arrays are none of ours")
    for view, own in ((given.T, x.T), (given[3:35, 5:60], x[3:35, 5:60]), (given[::2], x[::2])):
        mine = undula.wavedec2(view, "db2", level=2)
        np.testing.assert_allclose(host(mine[0]), undula.wavedec2(own, "db2", level=2)[0], atol=1e-4)
        back = undula.waverec2(mine, "db2", shape=own.shape)
        np.testing.assert_allclose(host(back), own, atol=1e-4)


def test_out(make: Any) -> None:
    x = noise(40, 60, dtype="f4")
    given, host = make(x)
    if type(given).__module__.startswith(("jax", "numba")):
        pytest.skip("not meant to be written to")
    first = undula.wavedec2(given, "db2", level=2)
    kept = host(first[0]).copy()
    again = undula.wavedec2(given + given, "db2", level=2, out=first)
    assert again[0] is first[0]
    np.testing.assert_allclose(host(first[0]), 2 * kept, atol=1e-4)
    with pytest.raises(undula.ArgumentError, match="must have shape"):
        undula.wavedec2(given[:38], "db2", level=2, out=first)
    with pytest.raises(undula.ArgumentTypeError, match="must be an array of"):
        undula.wavedec2(given, "db2", level=2, out=[x, *first[1:]])


def test_out_must_lie_apart(make: Any) -> None:
    x = noise(32, 48, dtype="f4")
    given, host = make(x)
    if type(given).__module__.startswith(("jax", "numba")):
        pytest.skip("not meant to be written to")
    backend = "opencl" if type(given).__module__.startswith("pyopencl") else "cuda"
    plan = undula.Plan(x.shape, "haar", level=1, mode="periodization", dtype="f4", backend=backend)
    quarters = [given[:16, :24], (given[16:, :24], given[:16, 24:], given[16:, 24:])]
    with pytest.raises(undula.ArgumentError, match="must not share memory"):
        plan.forward(given, out=quarters)
    other, _ = make(x * 0)
    quarters = [other[:16, :24], (other[16:, :24], other[:16, 24:], other[16:, 24:])]
    plan.forward(given, out=quarters)  # quarters of another array lie apart, though among each other
    np.testing.assert_allclose(host(other)[:16, :24], plan.forward(x)[0], atol=1e-4)
    with pytest.raises(undula.ArgumentError, match="must not share memory"):
        plan.forward(given, out=[quarters[0], (quarters[0], quarters[0], quarters[0])])
    with pytest.raises(undula.ArgumentError, match="must not share memory"):
        plan.inverse(quarters, out=other)


def test_a_plan_that_was_run_on_other_arrays(make: Any) -> None:
    x = noise(32, 48, dtype="f4")
    given, host = make(x)
    if type(given).__module__.startswith(("jax", "numba")):
        pytest.skip("not meant to be written to")
    backend = "opencl" if type(given).__module__.startswith("pyopencl") else "cuda"
    plan = undula.Plan(x.shape, "db2", level=2, dtype="f4", backend=backend)
    expected = undula.wavedec2(x, "db2", level=2)
    out = plan.forward(given)
    for _ in range(3):
        plan.forward(given, out=out)
    np.testing.assert_allclose(plan.forward(x)[0], expected[0], atol=1e-4)
    np.testing.assert_allclose(plan.forward(x, out=plan.empty())[0], expected[0], atol=1e-4)
    twice, _ = make(2 * x)
    plan.forward(twice, out=out)
    np.testing.assert_allclose(host(out[0]), 2 * expected[0], atol=1e-4)
    back = plan.inverse(out)
    plan.inverse(out, out=back)
    plan.inverse([out[0], out[1], (None, out[2][1], None)], out=back)
    theirs = undula.waverec2([2 * expected[0], _twice(expected[1]), (None, 2 * expected[2][1], None)], "db2")
    np.testing.assert_allclose(host(back), theirs, atol=1e-3)


def _twice(bands: Any) -> Any:
    return tuple(2 * band for band in bands)


def test_queues_without_order() -> None:
    import pyopencl as cl
    import pyopencl.array as cla

    from undula.engines.gpu.opencl.runtime import default_device

    own = default_device()
    free = cl.CommandQueue(own.context, own.handle, cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    x = noise(256, 256, dtype="f4")
    given = cla.to_device(cl.CommandQueue(own.context, own.handle), x)
    for _ in range(8):
        given = given * 1.0 + 0.0
    made = undula.wavedec2(given.with_queue(free), "db2", level=4)
    theirs = undula.wavedec2(x, "db2", level=4)
    np.testing.assert_allclose(made[0].get(), theirs[0], atol=1e-2)
    back = undula.waverec2(made, "db2")
    np.testing.assert_allclose(back.get(), x, atol=1e-3)


def test_mixtures_are_refused(make: Any) -> None:
    x = noise(16, 16, dtype="f4")
    given, _ = make(x)
    coeffs = undula.wavedec2(given, "haar", level=1)
    with pytest.raises(undula.ArgumentError, match="one library"):
        undula.waverec2([np.zeros((8, 8), "f4"), coeffs[1]], "haar")
    with pytest.raises(undula.ArgumentError, match="where it is"):
        undula.wavedec2(given, "haar", level=1, backend="cpu")
    with pytest.raises(undula.ArgumentTypeError, match="works on the host"):
        undula.fswavedecn(given, "haar")


def test_torch_on_the_host() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.randn(20, 30, requires_grad=True)
    with torch.no_grad():
        coeffs = undula.wavedec2(x, "db2", level=1)
    assert isinstance(coeffs[0], torch.Tensor)
    assert isinstance(coeffs[1][2], torch.Tensor)
    np.testing.assert_allclose(undula.waverec2(coeffs, "db2").numpy(), x.detach().numpy(), atol=1e-5)


# PyTorch imports its decompositions for tangents, which use what it deprecates.
@pytest.mark.filterwarnings("ignore:.torch.jit.script.:DeprecationWarning")
def test_layout_keys_of_torch_tell_all_that_a_run_depends_on() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    forward_ad = torch.autograd.forward_ad

    def keys(change: Any = lambda x: None) -> Any:
        x = torch.zeros(4, 6)
        change(x)
        return library_of(x).layout_keys([x])

    def replace_data(x: Any) -> None:
        x.data = x.data.T

    assert keys() == keys()
    for change in (torch.Tensor.t_, lambda x: x.resize_(2, 12), replace_data, torch.Tensor.requires_grad_):
        assert keys(change) != keys()
    with torch.no_grad():
        assert keys(torch.Tensor.requires_grad_) == keys()
    with forward_ad.dual_level():
        x = torch.zeros(4, 6)
        both = [library_of(each).layout_keys([each]) for each in (x, forward_ad.make_dual(x, x))]
        assert both[0] != both[1]


def test_the_host_reads_no_arrays_of_devices() -> None:
    x, _ = pyopencl_array(np.ones((4, 4), "f4"))
    for act in (
        lambda: undula.coeffs_to_array([x, (x, x, x)]),
        lambda: undula.pad(x, 1, "zero"),
        lambda: undula.ravel_coeffs([x]),
        lambda: undula.measures.psnr(x, x),
    ):
        with pytest.raises(undula.ArgumentTypeError, match="bring arrays of a device to the host"):
            act()


@pytest.mark.cuda
def test_the_callers_stream() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    x = torch.randn(2048, 2048, device="cuda")
    expected = undula.wavedec2(2 * x, "cdf97", level=3)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = x
        for _ in range(20):
            y = y + x / 20
        mine = undula.wavedec2(y, "cdf97", level=3)
    stream.synchronize()
    torch.testing.assert_close(mine[0], expected[0], atol=1e-3, rtol=1e-4)


@pytest.mark.cuda
def test_a_reused_plan_replays_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    plan = undula.Plan((300, 500), "cdf97", level=4, dtype="f4", backend="cuda")
    x = torch.randn(300, 500, device="cuda")
    coeffs = plan.forward(x)
    for _ in range(4):
        x.copy_(torch.randn(300, 500, device="cuda"))
        plan.forward(x, out=coeffs)
        back = plan.inverse(coeffs)
        torch.testing.assert_close(back, x, atol=1e-4, rtol=1e-4)
    assert plan.executable(False).prepared.recorded_graphs > 0
    plan.inverse(coeffs, out=back)
    for function in ("decompose", "recompose"):  # What ran on these arrays before needs no checks again.
        monkeypatch.setattr(f"undula.plan.plan.{function}", None)
    x.mul_(2)
    torch.testing.assert_close(plan.inverse(plan.forward(x, out=coeffs), out=back), x, atol=1e-4, rtol=1e-4)


@pytest.mark.cuda
def test_out_of_memory_says_how_much() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    from undula.engines.gpu.cuda.runtime import device

    with pytest.raises(undula.OutOfMemoryError, match="bytes were requested"):
        device(0).allocate(1 << 50, 0)
    x = np.zeros((8, 8), "f4")
    assert undula.wavedec2(x, "haar", level=1, backend="cuda")[0].shape == (4, 4)
