"""The emitter of the instructions of a loop: vectors of samples, lifting steps, halves of rows.

An :class:`Emitter` stands between the loops of ``simd`` and LLVM: it knows one type of samples, floats or
integers, and what is done to vectors of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

__all__ = ["INDEX", "INT", "VECTOR", "Emitter"]

VECTOR = 32  # bytes
INT, INDEX = ir.IntType(64), ir.IntType(32)


class Emitter:
    """The instructions of one loop, for samples of a dtype, given by its name."""

    def __init__(self, builder: Any, dtype: str) -> None:
        self.b = builder
        self.bytes = np.dtype(dtype).itemsize
        self.integer = np.dtype(dtype).kind == "i"
        self.narrow = False  # integers are added up in their own width
        self.type = ir.FloatType() if self.bytes == 4 else ir.DoubleType()
        if self.integer:
            self.type = ir.IntType(8 * self.bytes)
        self.lanes = VECTOR // self.bytes

    # --- values -----------------------------------------------------------------------------------

    def pointer(self, address: Any) -> Any:
        """Return an address as a pointer to samples."""
        return self.b.inttoptr(address, self.type.as_pointer())

    def vector(self, lanes: int) -> Any:
        """Return the type of a vector of so many samples."""
        return ir.VectorType(self.type, lanes) if lanes > 1 else self.type

    def _at(self, row: Any, place: Any, lanes: int) -> Any:
        return self.b.bitcast(self.b.gep(row, [place]), self.vector(lanes).as_pointer())

    def load(self, row: Any, place: Any, lanes: int) -> Any:
        """Load samples from memory."""
        return self.b.load(self._at(row, place, lanes), align=self.bytes)

    def _function(self, kind: Any, name: str) -> Any:
        """Return a function of LLVM by its name."""
        return self.b.module.globals.get(name) or ir.Function(self.b.module, kind, name)

    def prefetch(self, rows: list[Any], place: Any, lanes: int) -> None:
        """Ask for what will be read soon: as much of each row as two vectors hold."""
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, INDEX, INDEX, INDEX])
        function = self._function(kind, "llvm.prefetch.p0")
        for row in rows if lanes > 1 else []:
            at = self.b.gep(row, [self.b.shl(place, INT(1))])
            self.b.call(function, [self.b.bitcast(at, byte), INDEX(0), INDEX(2), INDEX(1)])

    def store(self, value: Any, row: Any, place: Any, lanes: int) -> None:
        """Store samples in memory."""
        self.b.store(value, self._at(row, place, lanes), align=self.bytes)

    def spread(self, number: Any, lanes: int) -> Any:
        """Return one number in all lanes."""
        if lanes == 1:
            return number
        nothing = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
        first = self.b.insert_element(nothing, number, INDEX(0))
        return self.shuffle(first, nothing, [0] * lanes)

    def shuffle(self, x: Any, y: Any, lanes: list[int]) -> Any:
        """Return the lanes of two vectors, numbered through both, in another order."""
        return self.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(INDEX, len(lanes)), lanes))

    def add(self, total: Any, factor: Any, value: Any) -> Any:
        """Return ``total + factor · value``, rounded once if the processor can."""
        suffix = f"f{8 * self.bytes}"
        if isinstance(value.type, ir.VectorType):
            suffix = f"v{value.type.count}{suffix}"
        kind = ir.FunctionType(value.type, [value.type] * 3)
        function = self._function(kind, f"llvm.fmuladd.{suffix}")
        return self.b.call(function, [factor, value, total])

    def call(self, name: str, *values: Any) -> Any:
        """Call the function that LLVM has for an instruction on values of one type."""
        kind = values[0].type
        vector = isinstance(kind, ir.VectorType)
        suffix = f"v{kind.count}i{kind.element.width}" if vector else f"i{kind.width}"
        signature = ir.FunctionType(kind, [kind] * len(values))
        function = self._function(signature, f"llvm.{name}.{suffix}")
        return self.b.call(function, values)

    def _x86(self, name: str, bits: int, x: Any, y: Any) -> Any:
        """Call an instruction of AVX2 on two vectors, with a result of so many bits in each lane."""
        kind = ir.VectorType(ir.IntType(bits), 8 * VECTOR // bits)
        signature = ir.FunctionType(kind, [x.type, y.type])
        function = self._function(signature, f"llvm.x86.avx2.{name}")
        return self.b.call(function, [x, y])

    def constant(self, value: int, bits: int, lanes: int) -> Any:
        """Return an integer of so many bits, in every lane."""
        kind = ir.IntType(bits)
        return (
            ir.Constant(kind, value)
            if lanes == 1
            else ir.Constant(ir.VectorType(kind, lanes), [value] * lanes)
        )

    # --- lifting steps ----------------------------------------------------------------------------

    def factors(self, address: Any, count: int) -> list[Any]:
        """Load the factors of steps: one number, or ``weight, offset, shift`` for integers."""
        if not self.integer:
            return [self.b.load(self.b.gep(self.pointer(address), [INT(k)])) for k in range(count)]
        row = self.b.inttoptr(address, INT.as_pointer())
        return [
            tuple(self.b.load(self.b.gep(row, [INT(3 * k + part)])) for part in range(3))
            for k in range(count)
        ]

    def in_lanes(self, factor: Any, lanes: int) -> Any:
        """Return a factor in all lanes."""
        if not self.integer:
            return self.spread(factor, lanes)
        bits = self._working
        if self._pairs(lanes):
            weight, offset, shift = (
                self.b.trunc(part, ir.IntType(width))
                for part, width in zip(factor, (16, 32, 32), strict=True)
            )
            return [
                self.spread(weight, lanes),
                self.spread(offset, lanes // 2),
                self.spread(shift, lanes // 2),
            ]
        cut = [self.b.trunc(part, ir.IntType(bits)) if bits < 64 else part for part in factor]
        spread = [self.spread(part, lanes) for part in cut]
        if bits == 64 and self.bytes == 4:  # LLVM then sees that 32 bits are enough.
            half = self.spread(self.b.trunc(factor[0], ir.IntType(32)), lanes)
            spread[0] = self.b.sext(half, spread[0].type)
        return spread

    def _pairs(self, lanes: int) -> bool:
        """Return whether products of 16 bits are added in pairs by one instruction."""
        return self._working == 32 and self.bytes == 2 and lanes == 16 and _has("avx2")

    @property
    def _working(self) -> int:
        """The number of bits in which integers are added up."""
        return 8 * self.bytes if self.narrow or self.bytes == 8 else 16 * self.bytes

    def versions(self, address: Any, work: Callable[[], None]) -> None:
        """Emit the loop; for integers twice, for sums in their own width and in twice that width.

        The flag behind the factors of four steps tells which of the two runs.
        """
        if not self.integer or self.bytes == 8:
            self.narrow = True
            work()
            return
        flag = self.b.load(self.b.gep(self.b.inttoptr(address, INT.as_pointer()), [INT(12)]))
        with self.b.if_else(self.b.icmp_signed("!=", flag, INT(0))) as (then, otherwise):
            for branch, narrow in ((then, True), (otherwise, False)):
                with branch:
                    self.narrow = narrow
                    work()

    def step(self, target: Any, factor: Any, left: Any, right: Any) -> Any:
        """Return ``target + factor · (left + right)``."""
        builder = self.b
        if not self.integer:
            return self.add(target, factor, builder.fadd(left, right))
        weight, offset, shift = factor
        bits = 8 * self.bytes
        lanes = target.type.count if isinstance(target.type, ir.VectorType) else 1
        if self._working == bits and bits > 16:
            both = builder.add(left, right)
            return builder.add(target, builder.ashr(builder.add(builder.mul(weight, both), offset), shift))
        if self._working == bits:
            least = self.constant(1 - 2 ** (bits - 1), bits, lanes)
            both = self.call("smax", self.call("sadd.sat", left, right), least)
            total = self.call("sadd.sat", builder.mul(weight, both), offset)
            return self.call("sadd.sat", target, builder.ashr(total, shift))
        if self._pairs(lanes):
            halves = []
            for first in (0, 4):  # AVX2 packs each half of a vector separately.
                order = [
                    k + side for low in (first, first + 8) for k in range(low, low + 4) for side in (0, 16)
                ]
                both = self.shuffle(left, right, order)
                products = self._x86("pmadd.wd", 32, both, weight)
                halves.append(builder.ashr(builder.add(products, offset), shift))
            return self.call("sadd.sat", target, self._x86("packssdw", 16, *halves))
        wide = ir.IntType(self._working)
        kind = wide if lanes == 1 else ir.VectorType(wide, lanes)
        if bits == 32:
            # A product of two numbers of 32 bits is one instruction, and the lower half of a sum that is
            # shifted does not depend on how the upper half is filled.
            both = builder.sext(builder.add(left, right), kind)
            total = builder.lshr(builder.add(builder.mul(weight, both), offset), shift)
            return builder.add(target, builder.trunc(total, self.vector(lanes)))
        target, left, right = (builder.sext(value, kind) for value in (target, left, right))
        total = builder.add(builder.mul(weight, builder.add(left, right)), offset)
        result = builder.add(target, builder.ashr(total, shift))
        most = self.constant(2 ** (bits - 1) - 1, self._working, lanes)
        least = self.constant(-(2 ** (bits - 1)), self._working, lanes)
        result = self.call("smin", self.call("smax", result, least), most)
        return builder.trunc(result, self.vector(lanes))

    def scaled(self, value: Any, scale: Any) -> Any:
        """Return a value multiplied by a scale; integers are not scaled."""
        return value if self.integer else self.b.fmul(value, scale)

    def plus(self, place: Any, offset: int) -> Any:
        """Return a place, moved on by an offset."""
        return self.b.add(place, INT(offset)) if offset else place

    # --- even and odd -----------------------------------------------------------------------------

    def unzip(self, x: Any, y: Any, lanes: int) -> tuple[Any, Any]:
        """Return the even and the odd samples of two vectors that follow each other."""
        even, odd = (list(range(phase, 2 * lanes, 2)) for phase in (0, 1))
        return self.shuffle(x, y, even), self.shuffle(x, y, odd)

    def load_halves(self, row: Any, place: Any, lanes: int) -> tuple[Any, Any]:
        """Load even and odd samples, ``lanes`` of each, from sample ``2·place`` on."""
        at = self.b.shl(place, INT(1))
        if lanes == 1:
            return self.load(row, at, 1), self.load(row, self.plus(at, 1), 1)
        half = lanes // 2
        quarters = [self.load(row, self.plus(at, half * k), half) for k in range(4)]
        # Quarters are put together so that no lane has to cross the middle of a vector, which is slow.
        x = self.shuffle(quarters[0], quarters[2], list(range(lanes)))
        y = self.shuffle(quarters[1], quarters[3], list(range(lanes)))
        order: tuple[list[int], list[int]] = ([], [])
        for side in (0, half):
            for source in (0, lanes):
                for k in range(half):
                    order[k % 2].append(source + side + k)
        return self.shuffle(x, y, order[0]), self.shuffle(x, y, order[1])

    def load_pairs(self, row: Any, place: Any, lanes: int) -> tuple[Any, Any]:
        """Load the same by two whole vectors, for processors whose shuffles cross the middle quickly."""
        at = self.b.shl(place, INT(1))
        return self.unzip(self.load(row, at, lanes), self.load(row, self.plus(at, lanes), lanes), lanes)

    def store_zipped(self, even: Any, odd: Any, row: Any, place: Any, lanes: int) -> None:
        """Store even and odd samples by turns: the inverse of :meth:`load_halves`."""
        at = self.b.shl(place, INT(1))
        if lanes == 1:
            self.store(even, row, at, 1)
            self.store(odd, row, self.plus(at, 1), 1)
            return
        half = lanes // 2
        for number, first in enumerate((0, half)):
            order = [k + lanes * phase for k in range(first, first + half) for phase in (0, 1)]
            self.store(self.shuffle(even, odd, order), row, self.plus(at, lanes * number), lanes)

    # --- loops ------------------------------------------------------------------------------------

    @contextmanager
    def loop(self, start: Any, stop: Any, step: int) -> Iterator[Any]:
        """Loop over ``i = start, start + step, …`` while a whole step fits; ``i`` ends where it stopped."""
        before = self.b.block
        head, body, end = (self.b.append_basic_block(name) for name in ("head", "body", "end"))
        self.b.branch(head)
        self.b.position_at_end(head)
        i = self.b.phi(INT)
        i.add_incoming(start, before)
        following = self.b.add(i, INT(step))
        self.b.cbranch(self.b.icmp_signed("<=", following, stop), body, end)
        self.b.position_at_end(body)
        yield i
        i.add_incoming(following, self.b.block)
        self.b.branch(head)
        self.b.position_at_end(end)

    def over(
        self,
        count: Any,
        work: Callable[[Any, int, int], None],
        unroll: int,
        once: bool = False,
        wide: bool = False,
    ) -> None:
        """Emit ``work(i, lanes, vectors)`` for all of ``0 … count``.

        The work is done by several vectors at a time, then by one. What is left is one more vector that ends
        with the row; or single samples, if the row is shorter than a vector or nothing may be done twice.
        ``wide`` work, which is limited by arithmetic, begins with vectors of 64 bytes where the processor
        has them.
        """
        start = INT(0)
        if wide and _has("avx512f"):
            with self.loop(start, count, 2 * self.lanes * unroll) as start:
                work(start, 2 * self.lanes, unroll)
        with self.loop(start, count, self.lanes * unroll) as several:
            work(several, self.lanes, unroll)
        with self.loop(several, count, self.lanes) as single:
            work(single, self.lanes, 1)
        if once:
            with self.loop(single, count, 1) as rest:
                work(rest, 1, 1)
            return
        with self.b.if_then(self.b.icmp_signed("<", single, count)):
            long = self.b.icmp_signed(">=", count, INT(self.lanes))
            with self.b.if_else(long) as (then, otherwise):
                with then:
                    work(self.b.sub(count, INT(self.lanes)), self.lanes, 1)
                with otherwise, self.loop(single, count, 1) as rest:
                    work(rest, 1, 1)


@cache
def _has(feature: str) -> bool:
    """Return whether the processor that kernels are compiled for has a feature, such as ``"avx2"``."""
    return bool(llvm.get_host_cpu_features().get(feature))
