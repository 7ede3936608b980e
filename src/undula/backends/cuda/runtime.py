"""Compiling and launching on NVIDIA GPUs."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DeviceError, KernelError, MissingDeviceError, OutOfMemoryError, install_hint
from ..clike import CUDA, Kernel
from ..cpu.memory import copy_bytes
from ..devices import disk
from ..devices.launches import DeviceProgram, Launch, Limits

__all__ = ["Device", "Memory", "compile_kernel", "device", "device_of_address"]

SMALL = 2  # Groups for each unit: launches of so few gain from an early start more than they take.
GRAPHS = 8  # that a program keeps: one for each set of buffers it was run on more than once


def compile_kernel(kernel: Kernel, arch: str) -> bytes:
    """Machine code for an architecture such as ``sm_90``; needs no GPU.

    What was compiled once is found on disk.
    """
    key = f"{arch}\n{_compiler()}\n{kernel.source}"
    code = disk.kept(key)
    if code is None:
        code = _compiled(kernel, arch)
        disk.keep(key, code)
    return code


@cache
def _compiler() -> str:
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"nvrtc {major}.{minor}"


def _compiled(kernel: Kernel, arch: str) -> bytes:
    from cuda.core import Program as Source
    from cuda.core import ProgramOptions

    options = ProgramOptions(arch=arch, std="c++17")
    try:
        return bytes(Source(kernel.source, "c++", options).compile("cubin").code)
    except Exception as error:  # (the class that cuda-core raises is none of its public names)
        raise KernelError(kernel.name, kernel.source, str(error)) from error


def check(result: Sequence[Any], wanted: int = 0) -> Any:
    """The value of a call of the driver, or an error; ``wanted`` are bytes that were asked for."""
    code, *values = result
    if int(code):
        from cuda.bindings import driver

        _, text = driver.cuGetErrorString(code)
        said = f"CUDA: {text.decode() if text else code.name} ({code.name})"
        if code == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            _, free, total = driver.cuMemGetInfo()
            raise OutOfMemoryError(f"{said}: {wanted} bytes were needed, {free} of {total} are free")
        raise DeviceError(said)
    return values[0] if values else None


class Memory:
    """Bytes on a GPU, from the pool of its stream; freed with the last reference."""

    def __init__(self, device: Device, size: int, stream: int) -> None:
        self._device, self._stream = device, stream
        device.activate()
        found = device._driver.cuMemAllocAsync(max(1, size), stream)
        self.address = int(check(found, size))

    def __del__(self) -> None:
        address = getattr(self, "address", 0)
        if address:
            with suppress(Exception):  # the interpreter may be on its way out
                self._device.activate()
                self._device._driver.cuMemFreeAsync(address, self._stream)


class Device:
    """One GPU."""

    dialect = CUDA

    def __init__(self, number: int) -> None:
        from cuda.bindings import driver

        self.number, self._driver = number, driver
        handle = check(driver.cuDeviceGet(number))
        attribute = driver.CUdevice_attribute
        ask = {
            "major": attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            "minor": attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            "units": attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        }
        found = {name: check(driver.cuDeviceGetAttribute(what, handle)) for name, what in ask.items()}
        self.arch = f"sm_{found['major']}{found['minor']}"
        self.overlaps = found["major"] >= 9  # launches of a program, as kernels for such GPUs expect it
        self.limits = Limits(units=found["units"], shared=49152, items=1024)
        self.context = check(driver.cuDevicePrimaryCtxRetain(handle))
        name = check(driver.cuDeviceGetName(256, handle))
        self.name = name.split(b"\0")[0].decode()
        self._functions: dict[str, Any] = {}
        self._modules: list[Any] = []
        self._lock = threading.Lock()
        self._number = int(self.context)
        self._private = threading.local()

    @property
    def key(self) -> str:
        """What tells this kind of device from others."""
        return f"cuda {self.name} {self.arch}"

    def activate(self) -> None:
        """Makes the device the one that this thread works with."""
        current = self._driver.cuCtxGetCurrent()[1]
        if int(current) != self._number:
            check(self._driver.cuCtxSetCurrent(self.context))

    def function(self, kernel: Kernel) -> Any:
        """A kernel, compiled and loaded."""
        with self._lock:
            if kernel.source not in self._functions:
                self.activate()
                code = compile_kernel(kernel, self.arch)
                module = check(self._driver.cuModuleLoadData(code))
                self._modules.append(module)
                found = check(self._driver.cuModuleGetFunction(module, kernel.name.encode()))
                self._functions[kernel.source] = found
            return self._functions[kernel.source]

    def capacity(self, kernel: Kernel) -> int:
        """Groups of a kernel that run at once."""
        found = self._driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            self.function(kernel), kernel.items, 0
        )
        return int(check(found)) * self.limits.units

    def details(self, kernel: Kernel) -> dict[str, int]:
        """What the compiler made of a kernel: registers, spilled bytes, bytes that a group shares.

        ``occupancy`` is the share of threads that a unit could hold which it does hold, in per cent.
        """
        attribute, function = self._driver.CUfunction_attribute, self.function(kernel)
        ask = {
            "registers": attribute.CU_FUNC_ATTRIBUTE_NUM_REGS,
            "spilled": attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            "shared": attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        }
        found = {
            name: int(check(self._driver.cuFuncGetAttribute(what, function))) for name, what in ask.items()
        }
        most = self._driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR
        threads = int(
            check(self._driver.cuDeviceGetAttribute(most, check(self._driver.cuDeviceGet(self.number))))
        )
        held = self.capacity(kernel) // self.limits.units * kernel.items
        return {**found, "occupancy": round(100 * held / threads)}

    def prepare(self, program: DeviceProgram) -> Prepared:
        """Compile the kernels of a program, whose launches are fitted to this GPU."""
        return Prepared(self, program.fitted(self.capacity))

    def memory(self, size: int, stream: int) -> Memory:
        """Bytes on the GPU."""
        return Memory(self, size, stream)

    # --- arrays of the host -----------------------------------------------------------------------

    @property
    def queue(self) -> int:
        """A stream for those who bring none: this thread's own."""
        self.activate()
        return int(self.private_stream())

    def allocate(self, size: int, queue: int) -> Memory:
        """Memory for an array."""
        return self.memory(size, queue)

    def upload(self, x: NDArray[Any], buffer: Memory, queue: int) -> None:
        """From the host, through memory that the GPU can read by itself."""
        if not x.nbytes:
            return
        staging = self._staging(x.nbytes)
        copy_bytes(staging[: x.nbytes], x.reshape(-1).view(np.uint8))
        check(self._driver.cuMemcpyHtoDAsync(buffer.address, staging.ctypes.data, x.nbytes, queue))
        check(self._driver.cuStreamSynchronize(queue))

    def download(self, buffer: Any, x: NDArray[Any], queue: int) -> None:
        """To the host, likewise."""
        self.activate()
        if not x.nbytes:
            return
        address = buffer.address if isinstance(buffer, Memory) else buffer
        staging = self._staging(x.nbytes)
        check(self._driver.cuMemcpyDtoHAsync(staging.ctypes.data, address, x.nbytes, queue))
        check(self._driver.cuStreamSynchronize(queue))
        copy_bytes(x.reshape(-1).view(np.uint8), staging[: x.nbytes])

    def finish(self, queue: int) -> None:
        """Waits for all that was started."""
        check(self._driver.cuStreamSynchronize(queue))

    def _staging(self, size: int) -> NDArray[np.uint8]:
        """Pinned memory of this thread's own, kept for the next time."""
        kept: NDArray[np.uint8] | None = getattr(self._private, "staging", None)
        if kept is None or kept.nbytes < size:
            kept = self._private.staging = self.pinned(max(size, 1 << 20))
        return kept

    def pinned(self, size: int) -> NDArray[np.uint8]:
        """Memory of the host that the GPU can read and write by itself."""
        self.activate()
        address = int(check(self._driver.cuMemAllocHost(size), size))
        made = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
        weakref.finalize(made.base if made.base is not None else made, self._driver.cuMemFreeHost, address)
        return made

    def private_stream(self) -> Any:
        """A stream of this thread's own, to record graphs with."""
        stream = getattr(self._private, "stream", None)
        if stream is None:
            flag = self._driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            stream = self._private.stream = check(self._driver.cuStreamCreate(flag))
        return stream


class Prepared:
    """A program on one device: functions, and their arguments but for the buffers."""

    def __init__(self, device: Device, program: DeviceProgram) -> None:
        self.device, self.program = device, program
        launches = program.launches
        small = [launch.groups <= SMALL * device.limits.units for launch in launches]
        self._calls = [
            _Call(device, launch, device.overlaps and k > 0 and small[k - 1] and small[k])
            for k, launch in enumerate(launches)
        ]
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[int, ...], Any] = OrderedDict()

    def run(self, buffers: Sequence[int], stream: int, events: Sequence[Any] = ()) -> None:
        """Launches everything on a stream, which keeps the order; ``buffers`` are addresses.

        What is run again on the same buffers is replayed as one graph.
        """
        device = self.device
        device.activate()
        if len(self._calls) > 1:
            graph = self._graph(tuple(buffers))
            if graph is not None:
                (code,) = device._driver.cuGraphLaunch(graph, stream)
                if int(code):
                    check((code,))
                return
        with self._lock:
            for call in self._calls:
                call(buffers, stream)

    def _graph(self, buffers: tuple[int, ...]) -> Any:
        with self._lock:
            found = self._seen.get(buffers)
            if found is not None:
                return found
            known = buffers in self._seen
            if not known:
                self._seen[buffers] = None
                while len(self._seen) > GRAPHS:
                    _, old = self._seen.popitem(last=False)
                    if old is not None:
                        self.device._driver.cuGraphExecDestroy(old)
                return None
            driver = self.device._driver
            stream = self.device.private_stream()
            mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
            check(driver.cuStreamBeginCapture(stream, mode))
            try:
                for call in self._calls:
                    call(buffers, stream)
            finally:
                graph = check(driver.cuStreamEndCapture(stream))
            made = check(driver.cuGraphInstantiate(graph, 0))
            check(driver.cuGraphDestroy(graph))
            self._seen[buffers] = made
            return made


class _Call:
    """A launch with its arguments in memory, where only the addresses of buffers change.

    One that is ``early`` may start while the one before it ends: kernels wait by themselves for what was
    written before them.
    """

    def __init__(self, device: Device, launch: Launch, early: bool) -> None:
        self._driver = driver = device._driver
        self._function = device.function(launch.kernel)
        self._groups, self._items = launch.groups, launch.kernel.items
        self._config = None
        if early:
            allowed = driver.CUlaunchAttribute()
            allowed.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            allowed.value.programmaticStreamSerializationAllowed = 1
            self._config = config = driver.CUlaunchConfig()
            config.gridDimX, config.gridDimY, config.gridDimZ = launch.groups, 1, 1
            config.blockDimX, config.blockDimY, config.blockDimZ = launch.kernel.items, 1, 1
            config.attrs, config.numAttrs = [allowed], 1
        self._buffers = launch.buffers
        count = len(launch.buffers)
        # Each argument has eight bytes; those of four take the lower half.
        self._values = (ctypes.c_int64 * (count + len(launch.values)))(*([0] * count), *launch.values)
        start = ctypes.addressof(self._values)
        self._places = (ctypes.c_void_p * len(self._values))(
            *(start + 8 * k for k in range(len(self._values)))
        )
        self._address = ctypes.addressof(self._places)

    def __call__(self, buffers: Sequence[int], stream: Any) -> None:
        for k, buffer in enumerate(self._buffers):
            self._values[k] = buffers[buffer]
        if self._config is None:
            (code,) = self._driver.cuLaunchKernel(
                self._function, self._groups, 1, 1, self._items, 1, 1, 0, stream, self._address, 0
            )
        else:
            self._config.hStream = stream
            (code,) = self._driver.cuLaunchKernelEx(self._config, self._function, self._address, 0)
        if int(code):
            check((code,))


INSTALL = install_hint("cuda")


@cache
def device(number: int) -> Device:
    """A GPU by number."""
    try:
        import cuda.core
        from cuda.bindings import driver
    except ImportError as error:
        raise MissingDeviceError(
            f"backend 'cuda' needs cuda-core and cuda-bindings: {INSTALL} ({error})"
        ) from error
    try:
        (code,) = driver.cuInit(0)
    except RuntimeError as error:  # (no library of the driver)
        raise MissingDeviceError(
            "backend 'cuda' needs NVIDIA's driver, which is not installed (https://www.nvidia.com/drivers, or"
            " the package of your system); backend 'cpu' needs none, 'opencl' takes other devices"
        ) from error
    if int(code):
        raise MissingDeviceError(
            f"NVIDIA's driver finds no GPU ({code.name}); backend 'cpu' needs none, 'opencl' takes others"
        )
    count = check(driver.cuDeviceGetCount())
    if number >= count:
        raise MissingDeviceError(f"there is no GPU number {number}; the driver knows {count}")
    del cuda
    return Device(number)


def names() -> list[str]:
    """What the GPUs are called, in the order of their numbers."""
    device(0)
    from cuda.bindings import driver

    return [device(number).name for number in range(check(driver.cuDeviceGetCount()))]


def device_of_address(address: int) -> int:
    """The number of the GPU that an address is on."""
    from cuda.bindings import driver

    device(0)
    what = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(check(driver.cuPointerGetAttribute(what, address)))
