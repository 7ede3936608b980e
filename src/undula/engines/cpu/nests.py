"""Nests of loops: what a kernel computes for each place of a result, and the arrays that it reads there.

A nest has four loops over the places of a result, the last one along contiguous samples. The arguments of its
kernel, in words:

    0 … 7   the first place and the one after the last, for each loop
    8       the number of rows, for windows
    9       the address of the constants
    10      the address of memory of the thread
    11 …    what belongs to the kind of kernel, then the operands: for each one its address and four strides
            in bytes; if it belongs to the next coarser level, an offset and the last place along three axes
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...lowering.expressions import Expression, loads
from .executable import CALL_BYTES, SCRATCH_BUFFER, KernelCall
from .executable import address as array_address
from .machine_code import source_address

__all__ = [
    "FIRST_EXTRA",
    "LOOPS",
    "MAX_EXTRA_WORDS",
    "KernelPart",
    "Nest",
    "NoKernelError",
    "TooManyAxesError",
    "cut",
]

Shape = tuple[int, ...]
Ranges = tuple[tuple[int, int], ...]

LOOPS = 4
FIRST_EXTRA = 11  # The word from which on there is what belongs to the kind of kernel.
MAX_EXTRA_WORDS = 14  # that belong to any kind of kernel
MAX_WORDS = CALL_BYTES // 8 - 1
LOADABLE = {
    "float32",
    "float64",
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
}


class NoKernelError(Exception):
    """No kernel can compute a node, or a part of it; NumPy does."""


class TooManyAxesError(NoKernelError):
    """No kernel has as many loops as a node has axes; it may have enough for a part of the node."""


@dataclass(frozen=True)
class KernelPart:
    """Calls of kernels, one after the other, and how many samples they compute."""

    calls: list[KernelCall]
    samples: int


def cut(lengths: Sequence[int], size: int, least: int = 1) -> Iterator[Ranges]:
    """Cut loops into parts of about ``size`` places, the outer loops first; see ``ranges`` of threads.

    Parts have at least ``least`` places of the last loop that is given.

    Examples
    --------
    >>> list(cut((2, 10), 5))
    [((0, 1), (0, 5)), ((0, 1), (5, 10)), ((1, 2), (0, 5)), ((1, 2), (5, 10))]
    """
    if not lengths:
        yield ()
        return
    inner = math.prod(lengths[1:])
    step = max(1, size // max(1, inner), least if len(lengths) == 1 else 1)
    count = -(-lengths[0] // step)
    for k in range(count):
        part = lengths[0] * k // count, lengths[0] * (k + 1) // count
        if inner > size and len(lengths) > 1:
            for rest in cut(lengths[1:], size, least):
                yield part, *rest
        else:
            yield part, *((0, n) for n in lengths[1:])


@dataclass
class Operand:
    """An array of a kernel: strides in bytes along all axes, and which axes belong to the coarser level."""

    view: ArrayView
    strides: list[int]
    lasts: list[int] = field(default_factory=list)  # for coarser arrays, the last place, or -1
    offset: int = 0

    @property
    def is_coarser(self) -> bool:
        """Whether the array belongs to the next coarser level than the result."""
        return any(last >= 0 for last in self.lasts)

    @property
    def is_row(self) -> bool:
        """Whether samples of a row are beside each other."""
        return not self.is_coarser and self.strides[-1] == self.view.itemsize


def _operand(view: ArrayView, shape: Shape, finer: Shape = (), offset: int = 0) -> Operand:
    missing = len(shape) - len(view.shape)
    lengths, size = (1,) * missing + view.shape, view.itemsize
    strides = [0] * missing + [s * size for s in view.strides]
    coarse = len(shape) - len(finer)
    lasts = [n - 1 if axis >= coarse else -1 for axis, n in enumerate(lengths)] if finer else []
    if not finer and any(n not in (1, m) for n, m in zip(lengths, shape, strict=True)):
        raise ValueError(f"cannot broadcast an array of shape {view.shape} to {shape}")
    return Operand(view, [0 if n == 1 else s for n, s in zip(lengths, strides, strict=True)], lasts, offset)


class Nest:
    """Four loops over the places of a result, and the operands of expressions there.

    Parameters
    ----------
    shape : tuple of int
        The shape of the result.
    expressions : sequence of Expression
    result : ArrayView, optional
    apart : int, default 0
        Number of the last axes that must not be joined with others, or -1 to keep the first one apart.
    """

    def __init__(
        self, shape: Shape, expressions: Sequence[Expression], result: ArrayView | None = None, apart: int = 0
    ) -> None:
        self.operands: list[Operand] = []
        self.numbers: dict[int, int] = {}  # of the operand of each load
        known: dict[tuple[Any, ...], int] = {}
        for load in loads(*expressions):
            if load.view.dtype not in LOADABLE:
                raise NoKernelError(f"no kernel loads {load.view.dtype}")
            key = (*load.view[:5], load.finer, load.offset)
            if key not in known:
                known[key] = len(self.operands)
                self.operands.append(_operand(load.view, shape, load.finer, load.offset))
            self.numbers[id(load)] = known[key]
        dtypes = [np.dtype(o.view.dtype) for o in self.operands if o.view.dtype != "bool"]
        if not dtypes and result is not None and result.dtype != "bool":
            dtypes = [np.dtype(result.dtype)]
        kind = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
        self.dtype = str(kind) if kind.kind == "f" else "float64"
        if result is not None:
            if result.dtype not in LOADABLE:
                raise NoKernelError(f"no kernel stores {result.dtype}")
            self.operands.append(_operand(result, shape))
        self.result = result
        self.lengths = self._joined(shape, apart)
        self.constants: list[float] = []
        count = FIRST_EXTRA + MAX_EXTRA_WORDS + sum(9 if o.is_coarser else 5 for o in self.operands)
        if count > MAX_WORDS:
            raise NoKernelError(f"a kernel would have {count} arguments")

    @property
    def itemsize(self) -> int:
        """The size of the numbers that are computed with."""
        return np.dtype(self.dtype).itemsize

    def _joined(self, shape: Shape, apart: int) -> Shape:
        """Join axes that all operands have in order, and return four lengths."""
        joined: list[tuple[int, list[int]]] = []  # length, and the axes, of which the last one gives strides
        first_apart = len(shape) - apart if apart > 0 else len(shape)
        for axis, n in enumerate(shape):
            fixed = axis >= first_apart or (apart < 0 and axis == 0)
            if n == 1 and not fixed and not any(o.lasts and o.lasts[axis] >= 0 for o in self.operands):
                continue
            after_fixed = apart < 0 and joined and joined[-1][1] == [0]
            if joined and not fixed and not after_fixed and self._continues(joined[-1][1][-1], axis, n):
                joined[-1] = joined[-1][0] * n, [*joined[-1][1], axis]
            else:
                joined.append((n, [axis]))
        if len(joined) > LOOPS:
            raise TooManyAxesError(f"no kernel has loops for shape {shape}")
        missing = LOOPS - len(joined)
        axes = [(n, group[-1]) for n, group in joined]
        if apart < 0:
            axes = [*axes[:1], *[(1, -1)] * missing, *axes[1:]]
        else:
            axes = [*[(1, -1)] * missing, *axes]
        for o in self.operands:
            o.strides = [0 if axis < 0 else o.strides[axis] for _, axis in axes]
            o.lasts = [-1 if axis < 0 or not o.lasts else o.lasts[axis] for _, axis in axes]
            if o.lasts[0] >= 0:
                raise TooManyAxesError("no kernel reads a coarser level along this number of axes")
        return tuple(n for n, _ in axes)

    def _continues(self, before: int, axis: int, n: int) -> bool:
        return all(
            o.strides[before] == o.strides[axis] * n
            and (not o.lasts or (o.lasts[before] < 0 and o.lasts[axis] < 0))
            for o in self.operands
        )

    def call(
        self,
        text: str,
        dtype: str,
        table: NDArray[np.float64],
        ranges: Ranges,
        extras: Sequence[tuple[int, int]] = (),
        locate: Callable[[ArrayView], tuple[int, int]] = lambda view: (0, 0),
    ) -> KernelCall:
        """Return a call of a kernel.

        Parameters
        ----------
        text : str
        dtype : str
            The dtype by which the tape tells kernels the type of samples.
        table : ndarray
            The constants.
        ranges : tuple of (int, int)
            Of each loop.
        extras : sequence of (int, int)
            Words of this kind of kernel, each with the buffer that it is relative to, or -1.
        locate : callable
            Returns the buffer of a view, and the byte in it where the view begins.
        """
        words: list[int] = [bound for pair in ranges for bound in pair]
        words += [self.lengths[2], array_address(table), CALL_BYTES]
        relocations = [(len(words) - 1, SCRATCH_BUFFER)]
        for word, buffer in extras:
            if buffer >= 0:
                relocations.append((len(words), buffer))
            words.append(word)
        for o in self.operands:
            buffer, start = locate(o.view)
            relocations.append((len(words), buffer))
            words += [start, *o.strides]
            if o.is_coarser:
                words += [o.offset, *o.lasts[1:]]
        kernel = source_address(text, dtype)
        return KernelCall(
            kernel,
            1,
            [8, *words],
            [(0, SCRATCH_BUFFER), *((word + 1, buffer) for word, buffer in relocations)],
        )
