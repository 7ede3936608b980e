"""Compiling and launching through PyOpenCL."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DeviceError, KernelError, MissingDeviceError, OutOfMemoryError, install_hint
from ..clike import OPENCL, Kernel
from ..devices.launches import DeviceProgram, Launch, Limits

__all__ = ["Device", "default_device", "device", "names", "numbered_device"]

LOCAL = 49152  # bytes that a kernel of ours takes at most, also where there are more


class Device:
    """One device in one context."""

    dialect = OPENCL

    def __init__(self, context: Any, handle: Any) -> None:
        self.context, self.handle = context, handle
        self.name = handle.name.strip()
        import pyopencl as cl

        self.limits = Limits(
            units=handle.max_compute_units,
            shared=min(LOCAL, handle.local_mem_size),
            items=min(1024, handle.max_work_group_size),
            gpu=bool(handle.type & cl.device_type.GPU),
        )
        self._functions: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def key(self) -> str:
        """What tells this kind of device from others."""
        return f"opencl {self.name} {self.handle.driver_version}"

    def function(self, kernel: Kernel) -> Any:
        """A kernel, compiled; PyOpenCL keeps the machine code on disk."""
        import pyopencl as cl

        with self._lock:
            if kernel.source not in self._functions:
                try:
                    built = cl.Program(self.context, kernel.source).build(devices=[self.handle])
                except cl.Error as error:
                    raise KernelError(kernel.name, kernel.source, str(error)) from error
                self._functions[kernel.source] = built
            return cl.Kernel(self._functions[kernel.source], kernel.name)

    def prepare(self, program: DeviceProgram) -> Prepared:
        """A program, ready to run."""
        return Prepared(self, program)

    @property
    def queue(self) -> Any:
        """A queue for those who bring none."""
        import pyopencl as cl

        with self._lock:
            if not hasattr(self, "_queue"):
                self._queue = cl.CommandQueue(self.context, self.handle)
        return self._queue

    # --- arrays of the host -----------------------------------------------------------------------

    def allocate(self, size: int, queue: Any) -> Any:
        """Memory of the device, freed with the last reference to it."""
        import pyopencl as cl

        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, size))
        except cl.Error as error:
            raise OutOfMemoryError(f"{self.name} has no room for {size} bytes ({error})") from error

    def upload(self, x: NDArray[Any], buffer: Any, queue: Any) -> None:
        """From the host; the array is in one piece."""
        import pyopencl as cl

        if x.nbytes:
            cl.enqueue_copy(queue, buffer, x, is_blocking=True)

    def download(self, buffer: Any, x: NDArray[Any], queue: Any) -> None:
        """To the host."""
        import pyopencl as cl

        if x.nbytes:
            cl.enqueue_copy(queue, x, buffer, is_blocking=True)

    def finish(self, queue: Any) -> None:
        """Waits for all that was started."""
        queue.finish()


class Prepared:
    """A program on one device."""

    def __init__(self, device: Device, program: DeviceProgram) -> None:
        self.device, self.program = device, program
        self._calls = [_Call(device, launch) for launch in program.launches]
        self._lock = threading.Lock()

    def run(self, buffers: Sequence[Any], queue: Any, events: Sequence[Any] = ()) -> Any:
        """Enqueues everything, in order and after some events; ``buffers`` are in the program's order.

        Returns the last event.
        """
        import pyopencl as cl

        # Queues that keep no order are told it, launch by launch.
        free = queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        event, wait = None, list(events)
        try:
            with self._lock:
                for call in self._calls:
                    event = call(buffers, queue, wait)
                    wait = [event] if free else []
            return event
        except cl.MemoryError as error:
            raise OutOfMemoryError(f"{self.device.name}: {error}") from error
        except cl.Error as error:
            raise DeviceError(f"{self.device.name}: {error}") from error


class _Call:
    def __init__(self, device: Device, launch: Launch) -> None:
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


_devices: dict[tuple[int, int], Device] = {}
_lock = threading.Lock()


def device(context: Any, handle: Any) -> Device:
    """A device in a context, the same one for the same asking."""
    key = (context.int_ptr, handle.int_ptr)
    with _lock:
        if key not in _devices:
            _devices[key] = Device(context, handle)
        return _devices[key]


def _found() -> list[Any]:
    """All devices, in the order in which their drivers tell them; an error if there is none."""
    try:
        import pyopencl as cl
    except ImportError as error:
        raise MissingDeviceError(
            f"backend 'opencl' needs PyOpenCL: {install_hint('opencl')} (and a driver of your device; "
            "pip install pocl-binary-distribution runs kernels on the CPU)"
        ) from error
    try:
        found = [one for platform in cl.get_platforms() for one in platform.get_devices()]
    except cl.Error:
        found = []
    if not found:
        raise MissingDeviceError(
            "PyOpenCL finds no device: install the OpenCL driver of your GPU, or "
            "pip install pocl-binary-distribution to run kernels on the CPU"
        )
    return found


def names() -> list[str]:
    """What the devices are called, in the order of their numbers."""
    return [f"{one.name.strip()} ({one.platform.name.strip()})" for one in _found()]


@cache
def default_device() -> Device:
    """The first GPU, or else the first device that there is."""
    found = _found()
    import pyopencl as cl

    return numbered_device(next((k for k, one in enumerate(found) if one.type & cl.device_type.GPU), 0))


@cache
def numbered_device(number: int) -> Device:
    """A device by its number."""
    found = _found()
    if number >= len(found):
        raise MissingDeviceError(f"there is no OpenCL device number {number}; the drivers know {len(found)}")
    import pyopencl as cl

    return device(cl.Context([found[number]]), found[number])
