"""Kernels of the CPU, which are machine code, and transforms compiled to calls of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..memory import allocator, empty, keep_memory, kept_memory
from ..threads import get_num_threads, run, set_num_threads, workers
from .builtin import array_function
from .compile import LIFTING, compile_rows, compile_transform, mixes
from .executable import FIRST_ARRAY, CpuExecutable, address
from .machine_code import kernel
from .mixing import join_channels, mix_planes

__all__ = [
    "FIRST_ARRAY",
    "LIFTING",
    "CpuExecutable",
    "address",
    "allocator",
    "array_function",
    "compile_rows",
    "compile_transform",
    "empty",
    "get_num_threads",
    "join_channels",
    "keep_memory",
    "kept_memory",
    "largest",
    "largest_of",
    "mix_planes",
    "mixes",
    "set_num_threads",
]

Array = NDArray[Any]


def largest(x: Array) -> int:
    """Return the largest magnitude of integers."""
    return int(largest_of([x])[0])


def largest_of(arrays: Sequence[Array]) -> list[int]:
    """Return the largest magnitude of the integers in each array."""
    dtype, total = arrays[0].dtype, 0
    table: list[int] = []
    readable = dtype.isnative and dtype.char in _KERNEL_DTYPES
    for x in arrays:
        if not readable or x.dtype != dtype or not x.flags.c_contiguous:
            return [max(-int(x.min()), int(x.max())) if x.size else 0 for x in arrays]
        table += [address(x) if x.size else 0, x.size]
        total += x.size
    count, threads = len(arrays), workers(total)
    if threads > 1:  # each thread has a part of every array
        pieces: list[int] = []
        for thread in range(threads):
            for start, size in zip(table[::2], table[1::2], strict=True):
                begin, end = size * thread // threads, size * (thread + 1) // threads
                pieces += [start + begin * dtype.itemsize, end - begin]
        table = pieces
    memory = np.array([*table, *[0] * (len(table) // 2 + 16 * threads)], np.int64)
    start = address(memory)
    results = start + 8 * len(table)
    scratch = results + 4 * len(table)
    run(
        kernel("find_largest", _KERNEL_DTYPES[dtype.char]),
        [
            (start + 16 * count * thread, results + 8 * count * thread, scratch + 128 * thread, count)
            for thread in range(threads)
        ],
    )
    largest: list[int] = memory[len(table) : len(table) + count * threads].tolist()
    return largest if threads == 1 else [max(largest[k::count]) for k in range(count)]


_KERNEL_DTYPES = {"h": "int16", "i": "int32"}
