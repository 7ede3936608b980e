"""The vocabulary of programs for devices.

A :class:`DeviceLevel` is what is to be computed. Buffers are numbered, those of the caller first. A
:class:`Launch` is a kernel with its buffers and integers, and a :class:`DeviceProgram` a sequence of
launches. Nothing here calls a driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...lowering.spec import Task
from .emit import Kernel

__all__ = [
    "PAD_ELEMENTS",
    "DeviceLevel",
    "DeviceLimits",
    "DeviceProgram",
    "Launch",
    "UnfusedError",
]

PAD_ELEMENTS = 8  # Rows of scratch arrays are padded to a multiple of this, for access in wide words.

Shape = tuple[int, ...]


class UnfusedError(Exception):
    """Details cannot be thresholded while they are read, but only in a pass of their own."""


class DeviceLimits(NamedTuple):
    """The resources of a device.

    Parameters
    ----------
    units : int
        Multiprocessors or cores.
    shared : int
        Bytes of memory that a group shares.
    items : int
        Largest number of work items in a group.
    gpu : bool
        Whether work items run in parallel. On other devices they are iterations of a loop, and short kernels
        are faster.
    unit_shared : int
        Bytes of memory for all groups on a unit, if a launch may ask for more than ``shared``; else 0.
    """

    units: int = 8
    shared: int = 49152
    items: int = 256
    gpu: bool = True
    unit_shared: int = 0


@dataclass(frozen=True, eq=False)
class DeviceLevel:
    """One level: the shape of its samples, the computation along each axis, and the shapes of its bands.

    The bands are ordered by key; the approximation comes first. If the computations along the axes are
    adjoints, these are in ``adjoints``, and ``tasks`` has their plain operators.
    """

    shape: Shape
    tasks: tuple[Task, ...]
    shapes: dict[str, Shape]
    adjoints: tuple[Task, ...] = ()


@dataclass(frozen=True)
class Launch:
    """A kernel with its number of groups, its buffers, and its integers in the order of its parameters."""

    kernel: Kernel
    groups: int
    buffers: tuple[int, ...]
    values: tuple[int, ...]

    def fitted(self, capacity: Callable[[Kernel], int]) -> Launch:
        """Return the launch for a device; ``capacity`` tells how many groups of a kernel it runs at once."""
        return self


@dataclass(frozen=True)
class DeviceProgram:
    """A sequence of launches.

    Parameters
    ----------
    launches : tuple of Launch
    scratch : tuple of (int, str)
        Elements and dtypes of further buffers, which follow those of the caller.
    changing : int, optional
        Number of the first buffers that change from run to run; all of them if None.
    """

    launches: tuple[Launch, ...]
    scratch: tuple[tuple[int, str], ...]
    changing: int | None = None

    @property
    def source(self) -> str:
        """The texts of all kernels, without repetitions."""
        return "\n\n".join(dict.fromkeys(launch.kernel.source for launch in self.launches))

    def fitted(self, capacity: Callable[[Kernel], int]) -> DeviceProgram:
        """Return the program with launches for a device that runs so many groups of a kernel at once."""
        return replace(self, launches=tuple(launch.fitted(capacity) for launch in self.launches))
