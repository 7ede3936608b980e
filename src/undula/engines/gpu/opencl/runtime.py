"""Compilation and execution through PyOpenCL."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import DeviceError, KernelError, MissingDeviceError, OutOfMemoryError, install_hint
from ...devices import first_usable
from ..emit import OPENCL, Kernel
from ..engine import DeviceEngine
from ..launches import DeviceLimits, DeviceProgram, Launch
from ..process import DriverProcess

__all__ = ["OpenCLDevice", "default_device", "device", "engine", "names", "numbered_device"]

MAX_SHARED_BYTES = 49152  # of a kernel, also on devices with more
GET_POCL = "pocl-opencl-icd of Debian and Ubuntu, or pocl of conda-forge"

PROCESS = DriverProcess("opencl")


class OpenCLDevice:
    """One device in one context."""

    dialect = OPENCL

    def __init__(self, context: Any, handle: Any) -> None:
        PROCESS.started()
        self.context, self.handle = context, handle
        self.name = handle.name.strip()
        import pyopencl as cl

        self.limits = DeviceLimits(
            units=handle.max_compute_units,
            shared=min(MAX_SHARED_BYTES, handle.local_mem_size),
            items=min(1024, handle.max_work_group_size),
            gpu=bool(handle.type & cl.device_type.GPU),
        )
        self._functions: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def key(self) -> str:
        """Identifies this kind of device in caches."""
        return f"opencl {self.name} {self.handle.driver_version}"

    def function(self, kernel: Kernel) -> Any:
        """Return a compiled kernel; PyOpenCL caches the machine code on disk."""
        import pyopencl as cl

        PROCESS.check()
        with self._lock:
            if kernel.source not in self._functions:
                try:
                    with warnings.catch_warnings():  # Compilers write logs for good kernels, too.
                        warnings.simplefilter("ignore", cl.CompilerWarning)
                        built = cl.Program(self.context, kernel.source).build(devices=[self.handle])
                except cl.Error as error:
                    if "unknown target CPU" in str(error):  # PoCL's compiler is older than the processor.
                        version, _, _ = self.handle.platform.version.partition("  ")
                        raise MissingDeviceError(
                            f"the OpenCL driver of {self.name} ({version}) does not know this processor:"
                            f" install a newer PoCL ({GET_POCL})"
                        ) from error
                    raise KernelError(kernel.name, kernel.source, str(error)) from error
                self._functions[kernel.source] = built
            return cl.Kernel(self._functions[kernel.source], kernel.name)

    def prepare(self, program: DeviceProgram) -> OpenCLProgram:
        """Compile the kernels of a program."""
        return OpenCLProgram(self, program)

    @property
    def queue(self) -> Any:
        """The queue for callers without one."""
        import pyopencl as cl

        PROCESS.check()
        with self._lock:
            if not hasattr(self, "_queue"):
                self._queue = cl.CommandQueue(self.context, self.handle)
        return self._queue

    # --- arrays of the host -----------------------------------------------------------------------

    def allocate(self, size: int, queue: Any) -> Any:
        """Allocate memory of the device, freed with the last reference."""
        import pyopencl as cl

        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, size))
        except cl.Error as error:
            raise OutOfMemoryError(f"{self.name} cannot allocate {size} bytes ({error})") from error

    def upload(self, x: NDArray[Any], buffer: Any, queue: Any) -> None:
        """Copy a contiguous array from the host."""
        import pyopencl as cl

        if x.nbytes:
            cl.enqueue_copy(queue, buffer, x, is_blocking=True)

    def download(self, buffer: Any, x: NDArray[Any], queue: Any) -> None:
        """Copy a contiguous array to the host."""
        import pyopencl as cl

        if x.nbytes:
            cl.enqueue_copy(queue, x, buffer, is_blocking=True)

    def finish(self, queue: Any) -> None:
        """Wait for all work of a queue."""
        queue.finish()


class OpenCLProgram:
    """A program prepared for one device: compiled kernels, and their arguments except for the buffers."""

    def __init__(self, device: OpenCLDevice, program: DeviceProgram) -> None:
        self.device, self.program = device, program
        self._calls = [_OpenCLCall(device, launch) for launch in program.launches]
        self._lock = threading.Lock()

    def run(self, buffers: Sequence[Any], queue: Any, events: Sequence[Any] = ()) -> Any:
        """Enqueue all launches after some events, and return the last event.

        ``buffers`` are in the order of the program.
        """
        return self.launch(buffers, queue, events, 0, len(self._calls))

    def launch(self, buffers: Sequence[Any], queue: Any, events: Sequence[Any], first: int, last: int) -> Any:
        """Enqueue some of the launches."""
        import pyopencl as cl

        PROCESS.check()
        # In an out-of-order queue, each launch waits for the previous one.
        out_of_order = queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        event, wait = None, list(events)
        try:
            with self._lock:
                for call in self._calls[first:last]:
                    event = call(buffers, queue, wait)
                    wait = [event] if out_of_order else []
            return event
        except cl.MemoryError as error:
            raise OutOfMemoryError(f"{self.device.name}: {error}") from error
        except cl.Error as error:
            raise DeviceError(f"{self.device.name}: {error}") from error


class _OpenCLCall:
    def __init__(self, device: OpenCLDevice, launch: Launch) -> None:
        self._function = device.function(launch.kernel)
        self._buffers = launch.buffers
        items = launch.kernel.items
        self._global, self._local = (launch.groups * items,), (items,)
        self._values = [
            (np.int64 if wide else np.int32)(value)
            for value, (_, wide) in zip(launch.values, launch.kernel.integers, strict=True)
        ]

    def __call__(self, buffers: Sequence[Any], queue: Any, wait: list[Any]) -> Any:
        chosen = [buffers[k] for k in self._buffers]
        return self._function(queue, self._global, self._local, *chosen, *self._values, wait_for=wait or None)


_devices: dict[tuple[int, int], OpenCLDevice] = {}
_lock = threading.Lock()


def device(context: Any, handle: Any) -> OpenCLDevice:
    """Return the device of a context and a handle; equal arguments give the same object."""
    key = (context.int_ptr, handle.int_ptr)
    with _lock:
        if key not in _devices:
            _devices[key] = OpenCLDevice(context, handle)
        return _devices[key]


def _all_devices() -> list[Any]:
    """Return all devices in the order of their drivers, or raise an error if there are none."""
    try:
        import pyopencl as cl
    except ImportError as error:
        raise MissingDeviceError(
            f"backend 'opencl' needs PyOpenCL: {install_hint('opencl')} (and a driver of your device; "
            f"PoCL runs kernels on the CPU: {GET_POCL})"
        ) from error
    PROCESS.check()
    try:
        handles = [handle for platform in cl.get_platforms() for handle in platform.get_devices()]
    except cl.Error:
        handles = []
    if not handles:
        raise MissingDeviceError(
            "PyOpenCL finds no device: install the OpenCL driver of your GPU, or "
            f"PoCL, which runs kernels on the CPU ({GET_POCL})"
        )
    PROCESS.started()
    return handles


def engine(number: int | None) -> DeviceEngine:
    """Return the engine of a device; that of :func:`default_device` if the number is None."""
    return DeviceEngine("opencl", default_device() if number is None else numbered_device(number))


def names() -> list[str]:
    """Return the names of all devices, in the order of their numbers."""
    return [f"{handle.name.strip()} ({handle.platform.name.strip()})" for handle in _all_devices()]


@cache
def default_device() -> OpenCLDevice:
    """Return the first GPU that can be used, or the first other device if there is no such GPU."""
    handles = _all_devices()
    import pyopencl as cl

    order = sorted(range(len(handles)), key=lambda number: not handles[number].type & cl.device_type.GPU)
    return numbered_device(first_usable("opencl", order))


@cache
def numbered_device(number: int) -> OpenCLDevice:
    """Return a device by its number."""
    handles = _all_devices()
    if number >= len(handles):
        raise MissingDeviceError(
            f"there is no OpenCL device number {number}; the drivers know {len(handles)}"
        )
    import pyopencl as cl

    return device(cl.Context([handles[number]]), handles[number])
