"""The kernels that play a tape: many calls of other kernels in one call from Python.

A tape is an array of integers: how many calls there are, and for each call

    address of the kernel, number of its parameters, number of words, number of relocations,
    the words: parameters, followed by the arrays of arguments that parameters point to,
    the relocations: pairs of a word and the buffer whose address is added to it.

Kernels change their arguments while they work, so the words are copied to the beginning of the scratch,
which is buffer 0, before the call.

``play`` is given the addresses of the buffers. ``play_arrays`` is given Python's objects: it reads in NumPy's
arrays where their samples are, and checks that they are what the tape was made for.

``play_steps`` is called by several threads at once. It plays many tapes, the pieces of steps: those of one
step in any order, steps one after the other.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from .builtin_layout import (
    ABSENT,
    ARRAY_TYPE,
    ARRAYS,
    AXES,
    BUFFER_START,
    BYTES_AFTER,
    BYTES_BEFORE,
    DATA,
    DIMENSIONS,
    DTYPE,
    DTYPE_WORD,
    FLAGS,
    FREE,
    HEADER_WORDS,
    INT_BITS,
    KERNEL,
    KIND,
    KIND_BITS,
    LENGTHS,
    MAKE_BOOL,
    MAKE_BYTES,
    MALLOC,
    MAX_SPARE_BYTES,
    MEMORY_BYTES,
    MISALIGNED_BITS,
    NDIM,
    NONE,
    RELEASES_GIL,
    RESTORE_THREAD,
    ROLE,
    SAVE_THREAD,
    SPARE,
    STRIDES,
    TAPE,
    TEMPORARY_START,
    VIEWS,
    WRITEABLE,
    WRITTEN,
)
from .emitter import INT
from .kernel_layout import COUNTER_END, FINISHED, SLEEP, TAKEN
from .rows import compiled
from .simd import words

__all__ = ["entry_module", "play", "play_arrays", "play_steps"]

MAX_SPINS = 1 << 12  # How often a waiting thread looks before it sleeps.
SLEEP_MICROSECONDS = 20


def _caller(parameters: int) -> Any:
    """Return a function that calls the kernel at an address with the first words of an array."""

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


_call_1, _call_4, _call_6, _call_11 = map(_caller, (1, 4, 6, 11))


@compiled
def play(tape, buffers, like):
    """Run all calls of a tape, one after the other, on the buffers at these addresses."""
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
        if parameters == 1:
            _call_1(kernel, start, like)
        elif parameters == 4:
            _call_4(kernel, start, like)
        elif parameters == 6:
            _call_6(kernel, start, like)
        else:
            _call_11(kernel, start, like)


# --- Python's objects -----------------------------------------------------------------------------


@intrinsic
def _call_c(context: Any, address: Any, argument: Any, second: Any) -> Any:
    """Call a function of C with one or two integers or pointers."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(INT, [INT, INT])
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), values[1:])

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def _swap(context: Any, address: Any, value: Any) -> Any:
    """Store a word and return what was there, at once for all threads."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.atomic_rmw("xchg", builder.inttoptr(values[0], INT.as_pointer()), values[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _add(context: Any, address: Any, value: Any) -> Any:
    """Add to a word and return what was there, at once for all threads."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(values[0], INT.as_pointer()), values[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _current(context: Any, address: Any) -> Any:
    """Return a word as other threads have left it, with all that they have written before."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(values[0], INT.as_pointer()), "seq_cst", 8)

    return types.int64(types.int64), generate


@compiled
def play_steps(pieces, buffers, counters, like):
    """Play tapes until all have been taken.

    ``pieces`` has the address of the tape of each piece, and the number of pieces in all steps before. A
    piece waits until so many are finished. Whoever has taken a piece of these is at work on it, so the wait
    does not depend on threads that have not begun.
    """
    table, shared = words(pieces), words(counters)
    while True:
        piece = _add(counters + 8 * TAKEN, 1)
        if piece >= shared[COUNTER_END]:
            return
        needed, spins = table[2 * piece + 1], 0
        while _current(counters + 8 * FINISHED) < needed:
            spins += 1
            # A core that sleeps takes over a thread that waits for another core. One that spins does not.
            if spins > MAX_SPINS and shared[SLEEP] != 0:
                _call_c(shared[SLEEP], SLEEP_MICROSECONDS, 0)
        play(table[2 * piece], buffers, like)
        _add(counters + 8 * FINISHED, 1)


@compiled
def _take_memory(table):
    """Return memory for a call, or 0; its size stands at its beginning."""
    memory, size = _swap(table[SPARE], 0), table[MEMORY_BYTES]
    if memory != 0 and words(memory)[0] < size:
        _call_c(table[FREE], memory, 0)
        memory = int64(0)
    if memory == 0:
        memory = _call_c(table[MALLOC], size, 0)
        if memory != 0:
            words(memory)[0] = size
    return memory


@compiled
def _leave_memory(table, memory):
    """Keep memory for the next call, in place of what was kept before."""
    if words(memory)[0] <= MAX_SPARE_BYTES:
        memory = _swap(table[SPARE], memory)
    if memory != 0:
        _call_c(table[FREE], memory, 0)


@compiled
def _locate(table, objects, addresses):
    """Write the address of each array; False if an object is not the array that the table describes."""
    header, ndim, arrays = table[HEADER_WORDS], table[NDIM], table[ARRAYS]
    size = AXES + 2 * ndim
    for k in range(arrays):
        view = VIEWS + k * size
        role = table[view + ROLE]
        if role == ABSENT:
            if objects[k] != table[NONE]:
                return False
            addresses[k] = 0
            continue
        array = words(objects[k])
        if array[header - 1] != table[ARRAY_TYPE] or array[header + DIMENSIONS] & INT_BITS != ndim:
            return False
        if words(array[header + DTYPE])[header + KIND] & KIND_BITS != table[DTYPE_WORD]:
            return False
        if role == WRITTEN and not array[header + FLAGS] & WRITEABLE:
            return False
        start = array[header + DATA]
        if start & table[MISALIGNED_BITS]:
            return False
        addresses[k] = start
        lengths, strides = words(array[header + LENGTHS]), words(array[header + STRIDES])
        for axis in range(ndim):
            length = lengths[axis]
            if length != table[view + AXES + 2 * axis]:
                return False
            if length != 1 and strides[axis] != table[view + AXES + 2 * axis + 1]:
                return False
    for k in range(arrays):
        view = VIEWS + k * size
        if table[view + ROLE] != WRITTEN:
            continue
        begin, end = addresses[k] - table[view + BYTES_BEFORE], addresses[k] + table[view + BYTES_AFTER]
        for other in range(arrays):
            view = VIEWS + other * size
            if other != k and table[view + ROLE] != ABSENT:
                start = addresses[other]
                if begin < start + table[view + BYTES_AFTER] and start - table[view + BYTES_BEFORE] < end:
                    return False
    return True


@compiled
def play_arrays(table, objects, count, like):
    """Run a tape on arrays, and return True or False, whether it was run.

    Without a tape, the addresses of the arrays are returned as bytes, or False.
    """
    table = words(table)
    if count != table[ARRAYS]:
        return _call_c(table[MAKE_BOOL], 0, 0)
    memory = _take_memory(table)
    if memory == 0:
        return _call_c(table[MAKE_BOOL], 0, 0)
    start = (memory + 8 + 63) & -64
    buffers = start + table[BUFFER_START]
    words(buffers)[0] = start
    words(buffers)[1] = start + table[TEMPORARY_START]
    if not _locate(table, words(objects), words(buffers + 16)):
        result = _call_c(table[MAKE_BOOL], 0, 0)
    elif table[TAPE] == 0:
        result = _call_c(table[MAKE_BYTES], buffers + 16, 8 * count)
    elif table[RELEASES_GIL]:
        state = _call_c(table[SAVE_THREAD], 0, 0)
        play(table[TAPE], buffers, like)
        _call_c(table[RESTORE_THREAD], state, 0)
        result = _call_c(table[MAKE_BOOL], 1, 0)
    else:
        play(table[TAPE], buffers, like)
        result = _call_c(table[MAKE_BOOL], 1, 0)
    _leave_memory(table, memory)
    return result


def entry_module(symbol: str, header: int, real: Any) -> ir.Module:
    """Return the function that Python calls with its table, the objects, and how many they are.

    It only translates between the conventions of Python and of Numba. The table is an array of NumPy, and
    begins with the address of the kernel.
    """
    pointer = ir.IntType(8).as_pointer()
    module = ir.Module(symbol)
    function = ir.Function(module, ir.FunctionType(pointer, [pointer, pointer, INT]), symbol)
    table, objects, count = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    fields = builder.bitcast(table, INT.as_pointer())
    start = builder.load(builder.gep(fields, [INT(header // 8 + DATA)]))
    words_at = builder.inttoptr(start, INT.as_pointer())
    kind = ir.FunctionType(ir.IntType(32), [pointer, pointer, INT, INT, INT, real])
    kernel = builder.inttoptr(builder.load(builder.gep(words_at, [INT(KERNEL)])), kind.as_pointer())
    result, error = builder.alloca(INT), builder.alloca(INT)
    places = [builder.bitcast(place, pointer) for place in (result, error)]
    like = ir.Constant(real, 0)
    builder.call(kernel, [*places, start, builder.ptrtoint(objects, INT), count, like])
    builder.ret(builder.inttoptr(builder.load(result), pointer))
    return module
