"""The kernel that plays a tape: many calls of other kernels in one call from Python.

A tape is an array of integers: how many calls there are, and for each call

    address of the kernel, number of its parameters, number of words, number of relocations,
    the words: parameters, followed by the arrays of arguments that parameters point to,
    the relocations: pairs of a word and the buffer whose address is added to it.

Kernels change their arguments while they work, so the words are copied to the beginning of the scratch,
which is buffer 0, before the call.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .emitter import INT
from .rows import compiled
from .simd import words

__all__ = ["play"]


def _caller(parameters: int) -> Any:
    """A function that calls the kernel at an address with the first words of an array."""

    @intrinsic
    def call_kernel(context: Any, kernel: Any, block: Any, like: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            address, start, sample = values
            first = builder.inttoptr(start, INT.as_pointer())
            loaded = [builder.load(builder.gep(first, [ir.Constant(INT, k)])) for k in range(parameters)]
            # Numba's convention: addresses for a result and an error, which kernels do not have, come first.
            pointer = ir.IntType(8).as_pointer()
            nothing = builder.bitcast(cgutils.alloca_once(builder, INT), pointer)
            kind = ir.FunctionType(ir.IntType(32), [pointer, pointer, *[INT] * parameters, sample.type])
            function = builder.inttoptr(address, kind.as_pointer())
            builder.call(function, [nothing, nothing, *loaded, sample])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, like), generate

    return call_kernel


_call_4, _call_6, _call_11 = _caller(4), _caller(6), _caller(11)


@compiled
def play(tape, buffers, like):
    """Runs all calls of a tape, one after the other, on the buffers at these addresses."""
    tape = words(tape)
    buffers = words(buffers)
    start = buffers[0]
    block = words(start)
    at = 1
    for _ in range(tape[0]):
        kernel, parameters, count, relocations = tape[at], tape[at + 1], tape[at + 2], tape[at + 3]
        at += 4
        for k in range(count):
            block[k] = tape[at + k]
        at += count
        for _ in range(relocations):
            block[tape[at]] += buffers[tape[at + 1]]
            at += 2
        if parameters == 4:
            _call_4(kernel, start, like)
        elif parameters == 6:
            _call_6(kernel, start, like)
        else:
            _call_11(kernel, start, like)
