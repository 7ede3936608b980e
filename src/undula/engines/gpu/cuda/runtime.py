"""Compilation and execution on NVIDIA GPUs."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import DeviceError, KernelError, MissingDeviceError, OutOfMemoryError, install_hint
from ...devices import first_usable
from ...memory import copy_bytes
from .. import disk
from ..emit import CUDA, Kernel
from ..engine import DeviceEngine
from ..launches import DeviceLimits, DeviceProgram, Launch
from ..process import DriverProcess

__all__ = ["CudaDevice", "Memory", "compile_kernel", "device", "device_of_address", "engine", "names"]

SMALL_LAUNCH_GROUPS_PER_UNIT = 2  # Up to so many, launches gain from an early start.
MAX_GRAPHS = 8  # of a program: one for each set of buffers on which it ran more than once
PROCESS = DriverProcess("cuda")


def compile_kernel(kernel: Kernel, arch: str) -> bytes:
    """Return the machine code of a kernel for an architecture such as ``sm_90``; needs no GPU.

    Machine code is cached on disk.
    """
    key = f"{arch}\n{_compiler_version()}\n{kernel.source}"
    code = disk.load(key)
    if code is None:
        code = _compile(kernel, arch)
        disk.save(key, code)
    return code


@cache
def _compiler_version() -> str:
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"nvrtc {major}.{minor}"


def _compile(kernel: Kernel, arch: str) -> bytes:
    from cuda.core import Program as Source
    from cuda.core import ProgramOptions

    options = ProgramOptions(arch=arch, std="c++17")
    try:
        return bytes(Source(kernel.source, "c++", options).compile("cubin").code)
    except Exception as error:  # The class that cuda-core raises is not public.
        raise KernelError(kernel.name, kernel.source, str(error)) from error


def check(result: Sequence[Any], requested_bytes: int = 0) -> Any:
    """Return the value of a driver call, or raise an error; ``requested_bytes`` is part of its message."""
    code, *values = result
    if int(code):
        from cuda.bindings import driver

        _, text = driver.cuGetErrorString(code)
        message = f"CUDA: {text.decode() if text else code.name} ({code.name})"
        if code == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            _, free, total = driver.cuMemGetInfo()
            raise OutOfMemoryError(
                f"{message}: {requested_bytes} bytes were requested, {free} of {total} are free"
            )
        raise DeviceError(message)
    return values[0] if values else None


class Memory:
    """Memory of a GPU from the pool of a stream, freed with the last reference."""

    def __init__(self, device: CudaDevice, size: int, stream: int) -> None:
        self._device, self._stream = device, stream
        device.activate()
        self.address = int(check(device.driver.cuMemAllocAsync(max(1, size), stream), size))

    def __del__(self) -> None:
        address = getattr(self, "address", 0)
        if address:
            try:
                self._device.activate()
                self._device.driver.cuMemFreeAsync(address, self._stream)
            except Exception:  # When Python exits, the driver may be gone, and with it the memory.
                pass


class CudaDevice:
    """One GPU.

    ``driver`` is the module ``cuda.bindings.driver``, and ``arch`` an architecture such as ``sm_90``.
    """

    dialect = CUDA

    def __init__(self, number: int) -> None:
        from cuda.bindings import driver

        self.number, self.driver = number, driver
        handle = check(driver.cuDeviceGet(number))
        attribute = driver.CUdevice_attribute
        queries = {
            "major": attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            "minor": attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            "units": attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
            "unit_shared": attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            "group_shared": attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        }
        traits = {name: check(driver.cuDeviceGetAttribute(what, handle)) for name, what in queries.items()}
        self.arch = f"sm_{traits['major']}{traits['minor']}"
        self.overlaps = traits["major"] >= 9  # Kernels for such GPUs wait for the previous launch.
        self.limits = DeviceLimits(
            units=traits["units"], shared=49152, items=1024, unit_shared=traits["unit_shared"]
        )
        self._group_shared = traits["group_shared"]
        self.context = check(driver.cuDevicePrimaryCtxRetain(handle))
        self.name = _name(number)
        self._functions: dict[str, Any] = {}
        self._modules: list[Any] = []
        self._lock = threading.Lock()
        self._number = int(self.context)
        self._private = threading.local()

    @property
    def key(self) -> str:
        """Identifies this kind of device in caches."""
        return f"cuda {self.name} {self.arch}"

    def activate(self) -> None:
        """Make the device current in this thread."""
        PROCESS.check()
        current = self.driver.cuCtxGetCurrent()[1]
        if int(current) != self._number:
            check(self.driver.cuCtxSetCurrent(self.context))

    def function(self, kernel: Kernel) -> Any:
        """Return a kernel, compiled and loaded."""
        with self._lock:
            if kernel.source not in self._functions:
                self.activate()
                code = compile_kernel(kernel, self.arch)
                module = check(self.driver.cuModuleLoadData(code))
                self._modules.append(module)
                function = check(self.driver.cuModuleGetFunction(module, kernel.name.encode()))
                if kernel.shared_bytes:
                    most = self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    check(self.driver.cuFuncSetAttribute(function, most, self._group_shared))
                self._functions[kernel.source] = function
            return self._functions[kernel.source]

    def capacity(self, kernel: Kernel) -> int:
        """Return how many groups of a kernel run at the same time."""
        function = self.function(kernel)
        self.activate()
        occupancy = self.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
        groups = check(occupancy(function, kernel.items, kernel.shared_bytes))
        return int(groups) * self.limits.units

    def details(self, kernel: Kernel) -> dict[str, int]:
        """Return the resources of a compiled kernel: registers, spilled bytes, and shared bytes of a group.

        ``occupancy`` is the number of threads that a unit holds, in per cent of the most that it could hold.
        """
        attribute, function = self.driver.CUfunction_attribute, self.function(kernel)
        queries = {
            "registers": attribute.CU_FUNC_ATTRIBUTE_NUM_REGS,
            "spilled": attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            "shared": attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        }
        resources = {
            name: int(check(self.driver.cuFuncGetAttribute(what, function))) for name, what in queries.items()
        }
        query = self.driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR
        threads = int(
            check(self.driver.cuDeviceGetAttribute(query, check(self.driver.cuDeviceGet(self.number))))
        )
        held = self.capacity(kernel) // self.limits.units * kernel.items
        return {**resources, "occupancy": round(100 * held / threads)}

    def prepare(self, program: DeviceProgram) -> CudaProgram:
        """Compile the kernels of a program, whose launches are fitted to this GPU."""
        return CudaProgram(self, program.fitted(self.capacity))

    # --- arrays of the host -----------------------------------------------------------------------

    @property
    def queue(self) -> int:
        """The stream of this thread, for callers without one."""
        self.activate()
        return int(self.private_stream())

    def allocate(self, size: int, queue: int) -> Memory:
        """Allocate memory of the GPU, in the order of a stream."""
        return Memory(self, size, queue)

    def upload(self, x: NDArray[Any], buffer: Any, queue: int) -> None:
        """Copy an array from the host, through pinned memory."""
        if not x.nbytes:
            return
        self.activate()
        address = buffer.address if isinstance(buffer, Memory) else buffer
        staging = self._staging(x.nbytes)
        copy_bytes(staging[: x.nbytes], x.reshape(-1).view(np.uint8))
        check(self.driver.cuMemcpyHtoDAsync(address, staging.ctypes.data, x.nbytes, queue))
        check(self.driver.cuStreamSynchronize(queue))

    def download(self, buffer: Any, x: NDArray[Any], queue: int) -> None:
        """Copy an array to the host, through pinned memory."""
        self.activate()
        if not x.nbytes:
            return
        address = buffer.address if isinstance(buffer, Memory) else buffer
        staging = self._staging(x.nbytes)
        check(self.driver.cuMemcpyDtoHAsync(staging.ctypes.data, address, x.nbytes, queue))
        check(self.driver.cuStreamSynchronize(queue))
        copy_bytes(x.reshape(-1).view(np.uint8), staging[: x.nbytes])

    def finish(self, queue: int) -> None:
        """Wait for all work of a stream."""
        check(self.driver.cuStreamSynchronize(queue))

    def order_streams(self, stream: int, follower: int | None) -> None:
        """Let another stream wait for the work of a stream; None waits here, and -1 does not wait."""
        if follower in (-1, stream):
            return
        self.activate()
        driver = self.driver
        if follower is None:
            check(driver.cuStreamSynchronize(stream))
            return
        event = check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        check(driver.cuEventRecord(event, stream))
        check(driver.cuStreamWaitEvent(follower, event, 0))
        check(driver.cuEventDestroy(event))

    def _staging(self, size: int) -> NDArray[np.uint8]:
        """Return pinned memory of this thread, which is reused."""
        staging: NDArray[np.uint8] | None = getattr(self._private, "staging", None)
        if staging is None or staging.nbytes < size:
            staging = self._private.staging = self.pinned(max(size, 1 << 20))
        return staging

    def pinned(self, size: int) -> NDArray[np.uint8]:
        """Allocate pinned memory of the host, which the GPU can access directly."""
        self.activate()
        address = int(check(self.driver.cuMemAllocHost(size), size))
        array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
        weakref.finalize(array.base if array.base is not None else array, self.driver.cuMemFreeHost, address)
        return array

    def private_stream(self) -> Any:
        """Return the stream of this thread, which also records graphs."""
        stream = getattr(self._private, "stream", None)
        if stream is None:
            flag = self.driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            stream = self._private.stream = check(self.driver.cuStreamCreate(flag))
        return stream


class CudaProgram:
    """A program prepared for one GPU: compiled kernels, and their arguments except for the buffers.

    Sequences of launches on buffers that stay the same are replayed as graphs.
    """

    def __init__(self, device: CudaDevice, program: DeviceProgram) -> None:
        self.device, self.program = device, program
        launches = program.launches
        small = [launch.groups <= SMALL_LAUNCH_GROUPS_PER_UNIT * device.limits.units for launch in launches]
        # Launches on buffers of the caller, and those on scratch memory alone, which never changes.
        changing = [
            program.changing is None or any(buffer < program.changing for buffer in launch.buffers)
            for launch in launches
        ]
        calls = [
            _CudaCall(
                device,
                launch,
                device.overlaps and k > 0 and small[k - 1] and small[k] and changing[k - 1] == changing[k],
            )
            for k, launch in enumerate(launches)
        ]
        self._calls = calls
        self._segments = [
            _CudaSegment(device, [calls[k] for k in numbers], not changes or program.changing is None)
            for changes, numbers in _segments(changing)
        ]
        self._lock = threading.Lock()

    def run(self, buffers: Sequence[int], stream: int, events: Sequence[Any] = ()) -> None:
        """Run all launches on a stream; ``buffers`` are addresses.

        From the second run on the same buffers, the launches are replayed as one graph.
        """
        self.device.activate()
        with self._lock:
            for segment in self._segments:
                segment.run(buffers, stream)

    def launch(
        self, buffers: Sequence[int], stream: int, events: Sequence[Any], first: int, last: int
    ) -> None:
        """Run some of the launches."""
        self.device.activate()
        with self._lock:
            for call in self._calls[first:last]:
                call(buffers, stream)

    @property
    def recorded_graphs(self) -> int:
        """The number of graphs that were recorded, one for each set of buffers."""
        return sum(segment.recorded_graphs for segment in self._segments)


def _segments(changing: Sequence[bool]) -> list[tuple[bool, list[int]]]:
    """Return the numbers of neighbouring launches of the same kind."""
    segments: list[tuple[bool, list[int]]] = []
    for number, kind in enumerate(changing):
        if not segments or segments[-1][0] != kind:
            segments.append((kind, []))
        segments[-1][1].append(number)
    return segments


class _CudaSegment:
    """Neighbouring launches, which are replayed as a graph if they run on the same buffers again.

    Parameters
    ----------
    device : CudaDevice
    calls : list of _CudaCall
    recorded : bool
        Whether to record graphs.
    """

    def __init__(self, device: CudaDevice, calls: list[_CudaCall], recorded: bool) -> None:
        self.device, self._calls = device, calls
        self._recorded = recorded and len(calls) > 1
        self._buffers = sorted({buffer for call in calls for buffer in call.buffers})
        self._graphs: OrderedDict[tuple[int, ...], Any] = OrderedDict()

    @property
    def recorded_graphs(self) -> int:
        """The number of graphs that were recorded, one for each set of buffers."""
        return sum(graph is not None for graph in self._graphs.values())

    def run(self, buffers: Sequence[int], stream: int) -> None:
        """Run the launches on a stream."""
        if self._recorded:
            graph = self._graph(buffers)
            if graph is not None:
                (code,) = self.device.driver.cuGraphLaunch(graph, stream)
                if int(code):
                    check((code,))
                return
        for call in self._calls:
            call(buffers, stream)

    def _graph(self, buffers: Sequence[int]) -> Any:
        """Return the graph for these buffers; None for the first run on them."""
        key = tuple([buffers[k] for k in self._buffers])
        replay = self._graphs.get(key)
        if replay is not None:
            return replay
        if key not in self._graphs:
            self._graphs[key] = None
            while len(self._graphs) > MAX_GRAPHS:
                _, old = self._graphs.popitem(last=False)
                if old is not None:
                    self.device.driver.cuGraphExecDestroy(old)
            return None
        driver = self.device.driver
        stream = self.device.private_stream()
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        check(driver.cuStreamBeginCapture(stream, mode))
        try:
            for call in self._calls:
                call(buffers, stream)
        finally:
            graph = check(driver.cuStreamEndCapture(stream))
        replay = check(driver.cuGraphInstantiate(graph, 0))
        check(driver.cuGraphDestroy(graph))
        self._graphs[key] = replay
        return replay


class _CudaCall:
    """A launch with its arguments in memory; only the addresses of buffers change.

    If it is ``early``, it may start while the previous launch is still running: its kernel waits for the
    results.
    """

    def __init__(self, device: CudaDevice, launch: Launch, early: bool) -> None:
        self.driver = driver = device.driver
        self._function = device.function(launch.kernel)
        self._groups, self._items = launch.groups, launch.kernel.items
        self._shared = launch.kernel.shared_bytes
        self._config = None
        if early:
            overlap = driver.CUlaunchAttribute()
            overlap.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            overlap.value.programmaticStreamSerializationAllowed = 1
            self._config = config = driver.CUlaunchConfig()
            config.gridDimX, config.gridDimY, config.gridDimZ = launch.groups, 1, 1
            config.blockDimX, config.blockDimY, config.blockDimZ = launch.kernel.items, 1, 1
            config.sharedMemBytes = self._shared
            config.attrs, config.numAttrs = [overlap], 1
        self.buffers = launch.buffers
        count = len(launch.buffers)
        # Each argument has eight bytes; four-byte arguments use the lower half.
        self._values = (ctypes.c_int64 * (count + len(launch.values)))(*([0] * count), *launch.values)
        start = ctypes.addressof(self._values)
        self._places = (ctypes.c_void_p * len(self._values))(
            *(start + 8 * k for k in range(len(self._values)))
        )
        self._address = ctypes.addressof(self._places)

    def __call__(self, buffers: Sequence[int], stream: Any) -> None:
        for k, buffer in enumerate(self.buffers):
            self._values[k] = buffers[buffer]
        if self._config is None:
            (code,) = self.driver.cuLaunchKernel(
                self._function, self._groups, 1, 1, self._items, 1, 1, self._shared, stream, self._address, 0
            )
        else:
            self._config.hStream = stream
            (code,) = self.driver.cuLaunchKernelEx(self._config, self._function, self._address, 0)
        if int(code):
            check((code,))


INSTALL = install_hint("cuda")


@cache
def device(number: int) -> CudaDevice:
    """Return a GPU by its number."""
    count = _count()
    if number >= count:
        raise MissingDeviceError(f"there is no GPU number {number}; the driver knows {count}")
    return CudaDevice(number)


def _count() -> int:
    """Start the driver, and return the number of its GPUs; an error if there is none."""
    try:
        import cuda.core
        from cuda.bindings import driver
    except ImportError as error:
        raise MissingDeviceError(
            f"backend 'cuda' needs cuda-core and cuda-bindings: {INSTALL} ({error})"
        ) from error
    PROCESS.check()
    try:
        (code,) = driver.cuInit(0)
    except RuntimeError as error:  # The library of the driver is missing.
        raise MissingDeviceError(
            "backend 'cuda' needs NVIDIA's driver, which is not installed (https://www.nvidia.com/drivers, or"
            " the package of your system); backend 'cpu' needs none, 'opencl' supports other devices"
        ) from error
    if int(code):
        raise MissingDeviceError(
            f"NVIDIA's driver finds no GPU ({code.name}); backend 'cpu' needs none, 'opencl' supports others"
        )
    PROCESS.started()
    del cuda
    return int(check(driver.cuDeviceGetCount()))


def _name(number: int) -> str:
    """Return the name of a GPU, which need not be usable."""
    from cuda.bindings import driver

    name: bytes = check(driver.cuDeviceGetName(256, check(driver.cuDeviceGet(number))))
    return name.split(b"\0")[0].decode()


def engine(number: int | None) -> DeviceEngine:
    """Return the engine of a GPU; the first one that can be used if the number is None."""
    return DeviceEngine("cuda", device(first_usable("cuda", range(_count())) if number is None else number))


def names() -> list[str]:
    """Return the names of all GPUs, in the order of their numbers."""
    return [_name(number) for number in range(_count())]


def device_of_address(address: int) -> int:
    """Return the number of the GPU to which an address belongs."""
    from cuda.bindings import driver

    device(0)
    query = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(check(driver.cuPointerGetAttribute(query, address)))
