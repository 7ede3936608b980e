"""The code of the loops over the middle of long lines, which :mod:`.line_loops` describes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from .emitter import INT, Emitter
from .kernel_layout import FILTERS, SCALE
from .line_loops import WIDE, vectors_ahead
from .translate import optimised_object

__all__ = ["object_code"]


def object_code(name: str, dtype: str) -> bytes:
    """Compile a loop, and return its symbol, a zero byte and its object code.

    It is called like a kernel, with the address of nine integers: where samples, low and high coefficients
    are, the bytes between two lines of each, the numbers of lines and of turns, and where the numbers of the
    encoded operator are.
    """
    _, direction, method, *parameters = name.split("_")
    module, pointer = ir.Module(name), ir.IntType(8).as_pointer()
    real = ir.FloatType() if dtype == "float32" else ir.DoubleType()
    kind = ir.FunctionType(ir.IntType(32), [pointer, pointer, INT, real])
    function = ir.Function(module, kind, name)
    function.attributes.add("nounwind")
    emit = Emitter(ir.IRBuilder(function.append_basic_block()), dtype)
    loop = _LiftingCode if method == "lifting" else _FilterCode
    loop(emit, direction == "synthesise", [int(number) for number in parameters]).lines(function.args[2])
    emit.b.ret(ir.IntType(32)(0))
    return name.encode() + b"\0" + optimised_object(module)


class _LoopCode(ABC):
    """The code of a loop: two sequences of vectors, even and odd or low and high, become two others."""

    def __init__(self, emit: Emitter, back: bool) -> None:
        self.emit, self.back = emit, back
        self.lanes = WIDE // emit.bytes
        self.integers = ir.VectorType(ir.IntType(8 * emit.bytes), self.lanes)

    def lines(self, table: Any) -> None:
        """Emit the loop over all lines."""
        builder = self.emit.b
        row = builder.inttoptr(table, INT.as_pointer())
        *starts, lines, turns, numbers = (builder.load(builder.gep(row, [INT(k)])) for k in range(9))
        end = builder.mul(turns, INT(self.lanes))
        self.prepare(numbers)
        with self.emit.loop(INT(0), lines, 1) as line:
            self.x, *self.bands = (
                self.emit.pointer(builder.add(start, builder.mul(line, stride)))
                for start, stride in zip(starts[:3], starts[3:], strict=True)
            )
            self.line(end)

    @abstractmethod
    def prepare(self, numbers: Any) -> None:
        """Emit what is done once: load the numbers, and make room for what turns remember."""

    @abstractmethod
    def line(self, end: Any) -> None:
        """Emit the turns that compute pairs ``0 … end`` of a line."""

    def spread(self, numbers: Any, first: int, count: int) -> list[Any]:
        """Load numbers, each into all lanes."""
        row, emit = self.emit.pointer(numbers), self.emit
        return [emit.spread(emit.load(row, INT(first + k), 1), self.lanes) for k in range(count)]

    def remember(self, count: int) -> list[Any]:
        """Return places for vectors that the next turn needs."""
        return [self.emit.b.alloca(self.integers) for _ in range(count)]

    def load(self, sequence: int, place: Any, vector: int = 0) -> Any:
        """Load a vector of one of the two sequences, so many vectors beyond a place."""
        at = self.emit.plus(place, vector * self.lanes)
        if self.back:
            return self.keep(self.emit.load(self.bands[sequence], at, self.lanes))
        return self.keep(self.emit.load_pairs(self.x, at, self.lanes)[sequence])

    def keep(self, vector: Any) -> Any:
        """Return a vector as integers, as it is computed by instructions of its own.

        LLVM would join the shuffle that made it with those that follow, and would not shift floats by the
        instruction for that. Both take longer. It does not look into assembler statements, even empty ones.
        """
        kind = ir.FunctionType(self.integers, [self.integers])
        return self.emit.b.asm(kind, "", "=v,0", [self.emit.b.bitcast(vector, self.integers)], False)

    def reals(self, vector: Any) -> Any:
        """Return a vector that was kept as numbers."""
        return self.emit.b.bitcast(vector, self.emit.vector(self.lanes))

    def shift(self, x: Any, y: Any, offset: int) -> Any:
        """Return the numbers that begin so many lanes after the beginning of ``x``, which ``y`` follows."""
        return self.reals(self.emit.shuffle(x, y, list(range(offset, offset + self.lanes))))

    def store(self, place: Any, first: Any, second: Any) -> None:
        """Store results: even and odd samples, or low and high coefficients."""
        if self.back:
            self.emit.store_zipped(first, second, self.x, place, self.lanes)
        else:
            self.emit.store(first, self.bands[0], place, self.lanes)
            self.emit.store(second, self.bands[1], place, self.lanes)


class _FilterCode(_LoopCode):
    """Filters: two sums over the same taps, each of which is a sequence and an offset in it."""

    def __init__(self, emit: Emitter, back: bool, parameters: Sequence[int]) -> None:
        super().__init__(emit, back)
        self.rounded: range | None = None  # taps of the high filter whose products are rounded
        if back:
            *counts, low_turn, high_turn = parameters
            turns = (1, counts[1], high_turn), (0, counts[0], low_turn)  # Details are added first.
            self.taps = [(band, (turn + k) % count) for band, count, turn in turns for k in range(count)]
        else:
            count, turn, begin, end = parameters
            self.rounded = range(begin, end) if end else None
            self.taps = [divmod((turn + k) % count, 2)[::-1] for k in range(count)]
        offsets = [max(offset for which, offset in self.taps if which == k) for k in (0, 1)]
        self.ahead = [vectors_ahead(offset, self.lanes) for offset in offsets]

    def prepare(self, numbers: Any) -> None:
        """Load the filters."""
        count = len(self.taps)
        self.low, self.high = (self.spread(numbers, FILTERS + first, count) for first in (0, count))
        self.known = [self.remember(vectors) for vectors in self.ahead]

    def line(self, end: Any) -> None:
        """Emit the turns."""
        builder = self.emit.b
        for k, places in enumerate(self.known):
            for number, where in enumerate(places):
                builder.store(self.load(k, INT(0), number), where)
        with self.emit.loop(INT(0), end, self.lanes) as place:
            sequences = [
                [*(builder.load(where) for where in self.known[k]), self.load(k, place, self.ahead[k])]
                for k in (0, 1)
            ]
            low = high = ir.Constant(self.emit.vector(self.lanes), [0.0] * self.lanes)
            for number, (which, offset) in enumerate(self.taps):
                vector, lane = divmod(offset, self.lanes)
                if lane:
                    value = self.shift(sequences[which][vector], sequences[which][vector + 1], lane)
                else:
                    value = self.reals(sequences[which][vector])
                low = self.emit.add(low, self.low[number], value)
                if self.rounded is None:
                    high = self.emit.add(high, self.high[number], value)
                elif number in self.rounded:
                    product = builder.fmul(self.high[number], value)
                    high = product if number == self.rounded.start else builder.fadd(high, product)
            self.store(place, low, high)
            for vectors, places in zip(sequences, self.known, strict=True):
                for value, where in zip(vectors[1:], places, strict=True):
                    builder.store(value, where)


class _LiftingCode(_LoopCode):
    """One or two pairs of lifting steps, as ``simd.steps`` defines them."""

    def __init__(self, emit: Emitter, back: bool, parameters: Sequence[int]) -> None:
        super().__init__(emit, back)
        self.pairs, self.first = parameters

    def prepare(self, numbers: Any) -> None:
        """Load factors and scales."""
        self.factors = self.spread(numbers, 0, 2 * self.pairs)
        scales = self.spread(numbers, SCALE, 2)
        self.scales = scales[::-1] if self.first else scales
        self.known = self.remember(2 * self.pairs)

    def line(self, end: Any) -> None:
        """Emit the turns."""
        builder, emit, lanes = self.emit.b, self.emit, self.lanes
        # Before the first turn, vectors are computed with zeros in place of what precedes them. That spoils
        # a few of their first lanes, of which nothing is used.
        state = [ir.Constant(self.integers, [0] * lanes)] * (2 * self.pairs)
        for number in range(self.pairs):
            state, _ = self.turn(INT((number - 1) * lanes), state)
        for vector, where in zip(state, self.known, strict=True):
            builder.store(vector, where)
        with emit.loop(INT(0), end, lanes) as place:
            at = emit.plus(place, (self.pairs - 1) * lanes)
            state, results = self.turn(at, [builder.load(where) for where in self.known])
            p, q = (emit.scaled(value, scale) for value, scale in zip(results, self.scales, strict=True))
            # In synthesis, what the last step changes precedes what the one before changes.
            self.store(place, *((q, p) if self.back or self.first else (p, q)))
            for vector, where in zip(state, self.known, strict=True):
                builder.store(vector, where)

    def turn(self, place: Any, state: Sequence[Any]) -> tuple[list[Any], tuple[Any, Any]]:
        """Read the vectors at a place; return what the next turn needs, and the results of the last steps.

        Those of two pairs belong to the place before: the second pair needs what follows of the first.
        """
        step, reals, last = self.emit.step, self.reals, self.lanes - 1
        b, a = (self.load(k ^ (self.back and self.first), place) for k in (0, 1))
        a_before, p_before = state[:2]
        changed = self.shift(a_before, a, last)
        p = self.keep(step(reals(b), self.factors[0], changed, reals(a)))
        q = step(changed, self.factors[1], self.shift(p_before, p, last), reals(p))
        if self.pairs == 1:
            return [a, p], (reals(p), q)
        q = self.keep(q)
        q_before, r_before = state[2:]
        r = self.keep(step(reals(p_before), self.factors[2], reals(q_before), self.shift(q_before, q, 1)))
        s = step(reals(q_before), self.factors[3], self.shift(r_before, r, last), reals(r))
        return [a, p, q, r], (reals(r), s)
