"""Whose array it is, and where: answered for all libraries, by fakes where a library or a GPU is missing."""

import gc
import sys
import weakref
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import undula
from undula.arrays import (
    HOST,
    ArrayView,
    DeviceKey,
    given_array,
    library_of,
    numpy_array,
    refuse_gradients,
    upload,
)
from undula.arrays.dlpack import DLPackArray, capsule
from undula.arrays.libraries import CUPY, DLPACK, INTERFACE, JAX, LIBRARIES, NUMPY, OPENCL, TORCH
from undula.engines.gpu import arrays as device_arrays
from undula.engines.gpu import engine as device_engines
from undula.engines.gpu.arrays import DeviceArray, device_of
from undula.engines.gpu.emit import CUDA
from undula.engines.gpu.engine import library_engine

ADDRESS = 0x7F0000000040


class Tensor:
    """A tensor of a fake PyTorch; ``where`` is ``cpu``, ``cuda:1`` and so on."""

    def __init__(self, where: str, requires_grad: bool = False) -> None:
        kind, _, number = where.partition(":")
        self.device = SimpleNamespace(type=kind, index=int(number) if number else None)
        self.is_cuda, self.requires_grad = kind == "cuda", requires_grad
        self.shape, self.dtype = (4, 6), "torch.float32"

    def data_ptr(self) -> int:
        return ADDRESS

    def stride(self) -> tuple[int, int]:
        return (1, 4)

    def is_contiguous(self) -> bool:
        return False


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module: Any = ModuleType("torch")
    module.Tensor, module.is_grad_enabled = Tensor, lambda: True
    module.from_numpy = lambda x: ("tensor", x)
    dual = SimpleNamespace(unpack_dual=lambda x: SimpleNamespace(tangent=None))
    module.autograd = SimpleNamespace(forward_ad=dual)
    streams = SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=7 + device.index))
    module.cuda = streams
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


class CupyArray:
    """An array of a fake CuPy, whose rows are padded to 8 elements."""

    device, data = SimpleNamespace(id=1), SimpleNamespace(ptr=ADDRESS + 8)
    shape, strides, dtype = (4, 6), (32, 4), np.dtype("f4")
    flags = SimpleNamespace(c_contiguous=False)


class JaxArray:
    """An array of a fake JAX."""

    shape, dtype = (4, 6), np.dtype("f4")
    ready = False

    def __init__(self, platform: str = "gpu") -> None:
        self._platform = platform

    def devices(self) -> list[Any]:
        return [SimpleNamespace(platform=self._platform, local_hardware_id=1)]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._platform != "gpu":
            raise AttributeError("on the host")
        return {"shape": (4, 6), "typestr": "<f4", "data": (ADDRESS, True), "version": 3}

    def block_until_ready(self) -> "JaxArray":
        self.ready = True
        return self


class NumbaArray:
    """An array with nothing but the CUDA array interface."""

    shape = (4, 6)

    def __init__(self, **entries: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (4, 6), "typestr": "<f8", "data": (ADDRESS, False), "version": 3, **entries,
        }  # fmt: skip


class Passed:
    """An array with nothing but DLPack, which says that its memory is on a device."""

    def __init__(self, x: Any, device: tuple[int, int]) -> None:
        self.x, self.device = x, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        strides = tuple(step // self.x.itemsize for step in self.x.strides)
        return capsule(self.x.ctypes.data, self.x.shape, strides, self.x.dtype, self.device, self)


@pytest.mark.parametrize("x", [np.ones(3), np.ma.ones(3), [1.0], (1,), 2, 3.0, np.float32(1), "text", None])
def test_numpy_takes_what_nobody_else_has(x: Any) -> None:
    assert library_of(x) is NUMPY
    assert NUMPY.device(x) is HOST


def test_every_backend_names_its_library() -> None:
    assert len({library.name for library in LIBRARIES}) == len(LIBRARIES)
    for library in LIBRARIES:
        assert library.module or library in (INTERFACE, DLPACK)


def test_nothing_is_imported() -> None:
    before = set(sys.modules)
    library_of(object())
    assert set(sys.modules) == before


def test_pytorch(torch: Any) -> None:
    keys = {
        "cpu": HOST, "cuda": DeviceKey("cuda", 0), "cuda:1": DeviceKey("cuda", 1), "mps": DeviceKey("mps"),
    }  # fmt: skip
    for where, key in keys.items():
        x = Tensor(where)
        assert library_of(x) is TORCH
        assert TORCH.device(x) == key
    x = Tensor("cuda:1")
    assert TORCH.view(x) == ArrayView(ADDRESS, (4, 6), (1, 4), "float32", alignment=16, owner=x)
    assert (TORCH.queue(x), TORCH.queue(Tensor("cpu"))) == (8, None)
    array = np.ones(3)
    assert TORCH.restore([array, {"d": (array, None)}], Tensor("cpu")) == [
        ("tensor", array),
        {"d": (("tensor", array), None)},
    ]
    assert given_array(x) is x
    with pytest.raises(undula.ArgumentTypeError, match=r"array of PyTorch on a device.*works on the host"):
        numpy_array(x)
    with pytest.raises(undula.ArgumentTypeError, match=r"arrays on 'mps'.*copy them to the host"):
        device_of(TORCH.device(Tensor("mps")))


def test_subclasses_belong_to_the_same_library(torch: Any) -> None:
    class Parameter(Tensor):
        pass

    assert library_of(Parameter("cpu")) is TORCH


def test_gradients_are_refused(torch: Any) -> None:
    for data in (Tensor("cpu", True), Tensor("cuda:0", True), [1.0, [Tensor("cpu", True)]]):
        with pytest.raises(
            undula.ArgumentTypeError, match=r"the weights is a tensor with requires_grad=True"
        ):
            refuse_gradients(data, "the weights")
    refuse_gradients([1.0, Tensor("cpu")])


def test_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("cupy")
    module.ndarray = CupyArray
    module.cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=5))
    monkeypatch.setitem(sys.modules, "cupy", module)
    x = CupyArray()
    assert library_of(x) is CUPY
    assert CUPY.device(x) == DeviceKey("cuda", 1)
    assert CUPY.view(x) == ArrayView(ADDRESS + 8, (4, 6), (8, 1), "float32", alignment=8, owner=x)
    assert CUPY.queue(x) == 5


def test_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("jax")
    module.Array = JaxArray
    module.dlpack = SimpleNamespace(from_dlpack=lambda x: ("jax", x))
    module.device_put = lambda x, device: (device.platform, x)
    monkeypatch.setitem(sys.modules, "jax", module)
    x = JaxArray()
    assert library_of(x) is JAX
    assert JAX.device(JaxArray("cpu")) is HOST
    assert JAX.device(x) == DeviceKey("cuda", 1)
    assert JAX.view(x) == ArrayView(ADDRESS, (4, 6), (6, 1), "float32", owner=x)
    assert not JAX.allocates
    assert JAX.materialize(x).ready
    result, array = NumbaArray(), np.ones(3)
    assert JAX.restore({"d": [result, array, x]}, x) == {"d": [("jax", result), ("gpu", array), x]}
    with pytest.raises(undula.ArgumentTypeError, match="immutable"):
        JAX.check_writable(x, "out")


def test_the_cuda_array_interface() -> None:
    x = NumbaArray()
    assert library_of(x) is INTERFACE
    assert INTERFACE.device(x) == DeviceKey("cuda", None, ADDRESS)
    assert INTERFACE.view(x) == ArrayView(ADDRESS, (4, 6), (6, 1), "float64", owner=x)
    assert INTERFACE.queue(x) == 1
    turned = NumbaArray(shape=(6, 4), strides=(8, 48), stream=9, data=(ADDRESS + 4, True))
    assert INTERFACE.view(turned)[1:6] == ((6, 4), (1, 6), "float64", 0, 4)
    assert INTERFACE.queue(turned) == 9
    with pytest.raises(undula.ArgumentError, match="out must be writeable"):
        INTERFACE.check_writable(turned, "out")
    with pytest.raises(
        undula.ArgumentTypeError, match="CuPy, PyTorch or JAX, got an array of the CUDA array"
    ):
        INTERFACE.namespace(x)


def test_arrays_of_our_own() -> None:
    x = DeviceArray(SimpleNamespace(address=ADDRESS), (4, 6), "float32", 1, 3)
    assert library_of(x) is INTERFACE
    assert INTERFACE.device(x) == DeviceKey("cuda", 3)
    assert INTERFACE.view(x.transpose((1, 0)))[1:4] == ((6, 4), (1, 6), "float32")


def test_protocols_are_not_remembered_by_type() -> None:
    assert library_of(SimpleNamespace(__cuda_array_interface__={})) is INTERFACE
    assert library_of(SimpleNamespace()) is NUMPY


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "u1", "i2", "c8", "?"])
def test_dlpack_on_the_host(dtype: str) -> None:
    array = np.arange(24).reshape(4, 6).astype(dtype)[:, ::2]
    x = Passed(array, (1, 0))
    assert library_of(x) is DLPACK
    assert DLPACK.device(x) is HOST
    np.testing.assert_array_equal(numpy_array(x), array)
    assert DLPACK.dtype(x) == str(array.dtype)
    np.testing.assert_array_equal(undula.dwt2(x, "haar")[0], undula.dwt2(array, "haar")[0])


def test_dlpack_on_a_gpu() -> None:
    array = np.ones((4, 6), "f4")[1:, ::2]
    x = Passed(array, (2, 1))
    wrapped = given_array(x)
    assert isinstance(wrapped, DLPackArray)
    assert library_of(wrapped) is INTERFACE
    assert INTERFACE.device(wrapped) == DLPACK.device(x) == DeviceKey("cuda", 1)
    assert INTERFACE.view(wrapped)[:4] == (array.ctypes.data, (3, 3), (6, 2), "float32")
    assert DLPACK.restore([wrapped], x) == [wrapped]
    x.__array_namespace__ = lambda: SimpleNamespace(from_dlpack=id)  # type: ignore[attr-defined]
    assert DLPACK.restore([wrapped], x) == [id(wrapped)]
    assert DLPACK.device(Passed(array, (8, 0))).kind == "device type 8 of DLPack"


def test_dlpack_returns_the_memory() -> None:
    x = Passed(np.ones(3), (2, 0))
    owner, wrapped = weakref.ref(x), given_array(x)
    del x
    gc.collect()
    assert owner() is not None
    del wrapped
    gc.collect()
    assert owner() is None


def test_results_are_passed_on_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    from undula.engines.gpu.cuda import runtime

    calls = []

    class Driver:
        CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)

        def __getattr__(self, name: str) -> Any:
            return lambda *values: calls.append((name, *values)) or (0, "event")

    device = object.__new__(runtime.CudaDevice)
    device.driver = Driver()
    monkeypatch.setattr(runtime.CudaDevice, "activate", lambda self: None)
    monkeypatch.setattr(runtime, "device", lambda number: device)
    x = DeviceArray(SimpleNamespace(address=ADDRESS), (4, 6), "float32", 5, 3)
    for stream, expected in (
        (5, []),
        (-1, []),
        (None, [("cuStreamSynchronize", 5)]),
        (
            9,
            [
                ("cuEventCreate", 2),
                ("cuEventRecord", "event", 5),
                ("cuStreamWaitEvent", 9, "event", 0),
                ("cuEventDestroy", "event"),
            ],
        ),
    ):
        calls.clear()
        passed = x.__dlpack__(stream=stream)
        assert calls == expected
        del passed
    calls.clear()
    wrapped = DLPackArray(x, 1)
    assert calls[-2] == ("cuStreamWaitEvent", 1, "event", 0)
    assert INTERFACE.view(wrapped)[:4] == (ADDRESS, (4, 6), (6, 1), "float32")


def test_pyopencl() -> None:
    import pyopencl as cl
    import pyopencl.array as cla

    from undula.engines.gpu.opencl.runtime import default_device

    device = default_device()
    queue = cl.CommandQueue(device.context, device.handle)
    x = cla.to_device(queue, np.arange(24, dtype="f4").reshape(4, 6))
    assert library_of(x) is OPENCL
    assert OPENCL.device(x) == DeviceKey("opencl", None, (device.context, device.handle))
    assert device_of(OPENCL.device(x)) is device
    part = x[1:, 2:]
    assert OPENCL.view(part)[1:] == ((3, 4), (6, 1), "float32", 8, 16, part)
    assert OPENCL.view(part).overlaps(OPENCL.view(x))
    assert not OPENCL.view(part).overlaps(OPENCL.view(x.copy()))
    assert OPENCL.queue(x) == queue
    result = OPENCL.empty((2, 2), "float64", x)
    assert (type(result), result.shape, result.dtype) == (cla.Array, (2, 2), np.float64)
    np.testing.assert_array_equal(OPENCL.to_numpy(OPENCL.convert(x, "float64")), x.get())
    np.testing.assert_array_equal(OPENCL.to_numpy(OPENCL.transpose(x, (1, 0)).copy()), x.get().T)
    with pytest.raises(undula.ArgumentError, match="has no queue"):
        OPENCL.device(x.with_queue(None))


def test_arrays_share_a_library_and_a_device(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = {number: Mock(number=number, dialect=CUDA) for number in (0, 1)}
    for module in (device_arrays, device_engines):
        monkeypatch.setattr(module, "device_of", lambda key: devices[key.number])
    here, there = Tensor("cuda:0"), Tensor("cuda:1")
    joined = library_engine([here, None, Tensor("cuda:0")])
    assert joined is not None
    assert (joined.library, joined.device) == (TORCH, devices[0])
    assert library_engine([Tensor("cpu"), np.ones(3), None]) is None
    assert library_engine([]) is None
    with pytest.raises(undula.ArgumentError, match="different devices"):
        library_engine([here, there])
    for other in (np.ones(3), Tensor("cpu"), NumbaArray()):
        with pytest.raises(undula.ArgumentError, match="one library, got"):
            library_engine([here, other])
    with pytest.raises(undula.ArgumentTypeError, match="out must be an array of PyTorch"):
        joined.check_out(np.ones(3), (3,), np.dtype("f4"), [], "out")
    with pytest.raises(undula.ArgumentError, match="out is on another device"):
        joined.check_out(there, (3,), np.dtype("f4"), [], "out")


def test_uploads(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(6, dtype="u2").reshape(2, 3).T
    monkeypatch.setitem(sys.modules, "cupy", None)  # Not installed.
    torch.cuda.is_available = lambda: False
    assert upload(x, 1) is None
    torch.cuda.is_available, torch.cuda.synchronize = lambda: True, lambda number: None
    torch.from_numpy = lambda array: SimpleNamespace(to=lambda where: (array, where))
    array, where = upload(x, 1)
    assert (array.dtype, array.flags.c_contiguous, where) == (np.int32, True, "cuda:1")
    np.testing.assert_array_equal(array, x)


def test_real_tensors_of_the_host() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.arange(24.0).reshape(4, 6).T
    assert library_of(x) is TORCH
    assert TORCH.view(x) == ArrayView(x.data_ptr(), (6, 4), (1, 6), "float32", 0, TORCH.view(x).alignment, x)
    array = numpy_array(x)
    assert array.ctypes.data == x.data_ptr()
    restored = TORCH.restore([array], x)[0]
    assert restored.data_ptr() == x.data_ptr()
    assert TORCH.empty((2,), "complex64", x).dtype == torch.complex64
    conjugate = torch.ones(3, dtype=torch.complex64).conj()
    assert conjugate.is_conj()
    assert not TORCH.materialize(conjugate).is_conj()


def test_real_arrays_of_jax_on_the_host() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = jax.device_put(jax.numpy.arange(24.0).reshape(4, 6), jax.devices("cpu")[0])
    assert library_of(x) is JAX
    assert JAX.device(x).on_host
    np.testing.assert_array_equal(numpy_array(x), np.arange(24.0).reshape(4, 6))
