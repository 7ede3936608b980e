"""Launches: the words in which a program for a device is written.

Buffers are numbers, those of the caller first; arrays are places in buffers; a launch is a kernel with its
buffers and integers; a program is launches in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...plans.line import Line, Steps
from ...wavelets import Wavelet
from ..clike import Kernel

__all__ = ["Knobs", "Launch", "Limits", "Program", "Ref", "Task", "UnfollowableError", "UnfusedError"]

Shape = tuple[int, ...]


class UnfollowableError(Exception):
    """Strides that kernels cannot follow; the array has to be copied first."""


class UnfusedError(Exception):
    """Details cannot be shrunk while they are read; it has to be done before."""


class Ref(NamedTuple):
    """An array: a buffer, and where in it the numbers are, in elements."""

    buffer: int
    shape: Shape
    strides: Shape
    dtype: str
    start: int = 0
    alignment: int = 16  # bytes, of the first element


class Task(NamedTuple):
    """What is done along an axis."""

    axis: int
    wavelet: Wavelet
    line: Line | Steps


class Limits(NamedTuple):
    """What a device has: units that work at once, bytes that a group shares, items of a group.

    ``gpu`` says that it is none of the kind on which items are turns of a loop, and short texts count.
    """

    units: int = 8
    shared: int = 49152
    items: int = 256
    gpu: bool = True


@dataclass(frozen=True)
class Knobs:
    """What may be tuned: 0 and empty leave it to the program."""

    pixels: int = 0
    warps: int = 0
    strip: int = 0
    prefetch: int = -1
    unroll: int = 0
    lockstep: int = -1
    tile: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Launch:
    """One kernel, its groups, its buffers, and its integers in order."""

    kernel: Kernel
    groups: int
    buffers: tuple[int, ...]
    values: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """Launches, and the buffers that they need besides those of the caller: elements and dtype."""

    launches: tuple[Launch, ...]
    own: tuple[tuple[int, str], ...]
    first_own: int

    @property
    def source(self) -> str:
        """The texts of all kernels, each once."""
        return "\n\n".join(dict.fromkeys(launch.kernel.source for launch in self.launches))
