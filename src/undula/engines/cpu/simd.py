"""The inner loops of the CPU engine, written as vector instructions for LLVM.

Compilers vectorise simple loops, but not those with several results, and not loads that take every second
sample. So the loops that do all the work are spelled out here: each function below is one loop over the
samples of a row, in vectors of 32 bytes, which LLVM maps to what the processor has. Rows are addresses.

The two kinds of work:

    a pair of lifting steps    p = b + f₀·(a' + a),    q = a' + f₁·(p' + p)     (' is the one before)
    two filters                lo = Σ lo[t] source[t],  hi = Σ hi[t] source[t]

Samples are floats or integers. Integers are lifted: what a step adds is rounded, ``(w·(a' + a) + o) >> s``,
in integers twice as wide, or in their own width where ``w`` is ±1 and sums are known to fit. Those of 16 bits
never wrap: what does not fit stays at the largest number there is. Who gives larger ones knows that they fit.

A row of an image is kept in two halves, its even and its odd columns, so that the horizontal work, too, is
such a loop. Every value is computed by the same operations wherever it stands in a vector, so results do not
depend on how the work was cut.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from .emitter import INT, Emitter
from .kernel_layout import INTEGER_FACTORS

__all__ = [
    "add_difference",
    "columns_join",
    "columns_plain",
    "columns_split",
    "copy",
    "extremes",
    "factors_of",
    "filter_join",
    "filter_plain",
    "filter_plain_apart",
    "filter_split",
    "filter_split_apart",
    "join",
    "mix",
    "peek",
    "poke",
    "reals",
    "split",
    "steps",
    "times",
    "whereis",
    "words",
]

Body = Callable[[Emitter, list[Any]], None]


def _loop(name: str, addresses: int, body: Body, numbers: int = 1) -> Any:
    """Return a function of addresses and counts, and of numbers whose type is that of the samples.

    It stays a function of its own in machine code: written into all its callers, it would be compiled as
    often.
    """

    def typed(context: Any, *arguments: Any) -> Any:
        real = arguments[addresses]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            emit = Emitter(builder, str(real))
            kind = ir.FunctionType(ir.VoidType(), [INT] * addresses + [emit.type] * numbers)
            function = cgutils.get_or_insert_function(builder.module, kind, f"undula_{name}_{real}")
            if function.is_declaration:
                function.linkage = "linkonce_odr"
                function.attributes.add("noinline")
                inside = ir.IRBuilder(function.append_basic_block("entry"))
                body(Emitter(inside, str(real)), list(function.args))
                inside.ret_void()
            builder.call(function, values)
            return context.get_dummy_value()

        return types.void(*[types.int64] * addresses, *[real] * numbers), generate

    # Numba looks at the names of parameters, so the function needs as many as it takes.
    words = ", ".join(f"x{k}" for k in range(addresses + numbers))
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def {name}(context, {words}):\n    return typed(context, {words})", scope)
    return intrinsic(scope[name])


# --- single samples and whole rows ----------------------------------------------------------------


@intrinsic
def whereis(context, array):
    """Return the address of the first element of an array, without counting references."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array_struct = context.make_array(signature.args[0])(context, builder, values[0])
        return builder.ptrtoint(array_struct.data, INT)

    return types.int64(array), generate


def _array_at(kind: Any, context: Any, builder: Any, address: Any) -> Any:
    """Return an array at an address; it has no owner, so that passing it on counts no references."""
    array_struct = context.make_array(kind)(context, builder)
    size = context.get_constant(types.intp, kind.dtype.bitwidth // 8)
    many = context.get_constant(types.intp, 1 << 40)
    data = builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer())
    populate_array(array_struct, data=data, shape=[many], strides=[size], itemsize=size, meminfo=None)
    return array_struct._getvalue()


@intrinsic
def words(context, address):
    """Return the integers at an address, as an array."""
    kind = types.Array(types.int64, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _array_at(kind, context, builder, values[0])

    return kind(types.int64), generate


@intrinsic
def reals(context, address, like):
    """Return the numbers at an address, as an array."""
    kind = types.Array(like, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _array_at(kind, context, builder, values[0])

    return kind(types.int64, like), generate


@intrinsic
def factors_of(context, array):
    """Return the address of the factors of the steps of an encoded operator.

    They are its first numbers; for integers, they are behind them.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array_struct = context.make_array(signature.args[0])(context, builder, values[0])
        address = builder.ptrtoint(array_struct.data, INT)
        is_integer = isinstance(signature.args[0].dtype, types.Integer)
        return builder.add(address, INT(INTEGER_FACTORS)) if is_integer else address

    return types.int64(array), generate


@intrinsic
def peek(context, address, like):
    """Return the sample at an address."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit = Emitter(builder, str(like))
        return emit.load(emit.pointer(values[0]), INT(0), 1)

    return like(types.int64, like), generate


@intrinsic
def poke(context, address, value, like):
    """Store a sample at an address."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit = Emitter(builder, str(like))
        emit.store(values[1], emit.pointer(values[0]), INT(0), 1)
        return context.get_dummy_value()

    return types.void(types.int64, like, like), generate


@intrinsic
def times(context, scale, other):
    """Return the product of two scales; integers are not scaled."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return Emitter(builder, str(scale)).scaled(*values)

    return scale(scale, scale), generate


def _copy(emit: Emitter, values: list[Any]) -> None:
    target, source, count, _ = values
    rows = emit.pointer(source), emit.pointer(target)

    def work(i: Any, lanes: int, vectors: int) -> None:
        for k in range(vectors):
            at = emit.plus(i, k * lanes)
            emit.store(emit.load(rows[0], at, lanes), rows[1], at, lanes)

    emit.over(count, work, 2)


def _split(emit: Emitter, values: list[Any]) -> None:
    source, even, odd, count, _ = values
    rows = [emit.pointer(address) for address in (source, even, odd)]

    def work(i: Any, lanes: int, vectors: int) -> None:
        for k in range(vectors):
            at = emit.plus(i, k * lanes)
            for half, row in zip(emit.load_halves(rows[0], at, lanes), rows[1:], strict=True):
                emit.store(half, row, at, lanes)

    emit.over(count, work, 2, wide=True)


def _join(emit: Emitter, values: list[Any]) -> None:
    even, odd, target, count, _ = values
    rows = [emit.pointer(address) for address in (even, odd, target)]

    def work(i: Any, lanes: int, vectors: int) -> None:
        halves = (emit.load(row, i, lanes) for row in rows[:2])
        emit.store_zipped(*halves, rows[2], i, lanes)

    emit.over(count, work, 1)


def _extremes(emit: Emitter, values: list[Any]) -> None:
    """Find the smallest and the largest integers, lane by lane: a vector of each, then one number of each."""
    source, out, count, _ = values
    if not emit.integer:
        return
    builder, row, target = emit.b, emit.pointer(source), emit.pointer(out)
    bits, bounds = 8 * emit.bytes, {}
    for lanes in (emit.lanes, 1):
        bounds[lanes] = [cgutils.alloca_once(builder, emit.vector(lanes)) for _ in range(2)]
        for place, start in zip(bounds[lanes], (2 ** (bits - 1) - 1, -(2 ** (bits - 1))), strict=True):
            builder.store(emit.constant(start, bits, lanes), place)

    def work(i: Any, lanes: int, vectors: int) -> None:
        for k in range(vectors):
            value = emit.load(row, emit.plus(i, k * lanes), lanes)
            for place, name in zip(bounds[lanes], ("smin", "smax"), strict=True):
                builder.store(emit.call(name, builder.load(place), value), place)

    emit.over(count, work, 2)
    at = 0
    for lanes in (emit.lanes, 1):
        for place in bounds[lanes]:
            emit.store(builder.load(place), target, INT(at), lanes)
            at += lanes


copy = _loop("copy", 3, _copy)
extremes = _loop("extremes", 3, _extremes)
split = _loop("split", 4, _split)
join = _loop("join", 4, _join)


def _mix(channels: int, size: int) -> Any:
    """Compute a row of a plane as a weighted sum of channels, interleaved unsigned samples of ``size`` bytes.

    At an address stand the weights, an offset and a shift: integers of 64 bits, for
    ``(Σ w·x + offset) >> shift``; or, where samples become floats, doubles, for ``Σ w·x + offset``.
    """

    def body(emit: Emitter, values: list[Any]) -> None:
        if emit.bytes == 8 or (emit.bytes < 2 * size and emit.integer):
            return  # (never asked for: doubles are not made of bytes, and small integers not of large ones)
        source, target, count, table, _ = values
        builder, bits = emit.b, 8 * size
        row = builder.inttoptr(source, ir.IntType(bits).as_pointer())
        out = emit.pointer(target)
        wide = ir.IntType(32) if emit.integer else emit.type
        numbers = builder.inttoptr(table, (INT if emit.integer else ir.DoubleType()).as_pointer())
        weights = [builder.load(builder.gep(numbers, [INT(k)])) for k in range(6)]
        if emit.integer:
            weights = [builder.trunc(number, wide) for number in weights]
        elif emit.bytes == 4:
            weights = [builder.fptrunc(number, wide) for number in weights]

        def work(i: Any, lanes: int, vectors: int) -> None:
            at = builder.gep(row, [builder.mul(i, INT(channels))])
            if lanes == 1:
                parts = [builder.load(builder.gep(at, [INT(k)])) for k in range(channels)]
            else:
                kind = ir.VectorType(ir.IntType(bits), lanes * channels)
                interleaved = builder.load(builder.bitcast(at, kind.as_pointer()), align=size)
                nothing = ir.Constant(kind, ir.Undefined)
                parts = [
                    emit.shuffle(interleaved, nothing, list(range(k, lanes * channels, channels)))
                    for k in range(channels)
                ]
            kind = wide if lanes == 1 else ir.VectorType(wide, lanes)
            total = emit.spread(weights[4], lanes)
            for k in range(channels):
                weight = emit.spread(weights[k], lanes)
                if emit.integer:
                    total = builder.add(total, builder.mul(weight, builder.zext(parts[k], kind)))
                else:
                    total = emit.add(total, weight, builder.uitofp(parts[k], kind))
            if emit.integer:
                total = builder.ashr(total, emit.spread(weights[5], lanes))
                if emit.bytes < 4:
                    total = builder.trunc(total, emit.vector(lanes))
            emit.store(total, out, i, lanes)

        emit.over(count, work, 1)

    return _loop(f"mix{channels}_{size}", 4, body)


mix = {(channels, size): _mix(channels, size) for channels in (1, 3, 4) for size in (1, 2)}


# --- lifting --------------------------------------------------------------------------------------


def _steps(emit: Emitter, values: list[Any]) -> None:
    """Run two steps along a row: ``b`` and ``a`` are its halves, ``shift`` the bytes between samples.

    p[i] = (b[i] + f₀·(a[i-1] + a[i]))·s₀ and q[i] = (a[i-1] + f₁·(p[i-1] + p[i]))·s₁, p before scaling. The
    factors stand at an address; ``flag`` is where those of all steps begin.
    """
    b, a, shift, p, q, count, factors, flag, *scales = values
    before = emit.b.sub(a, shift)
    addresses = [b, a, before, emit.b.sub(b, shift), emit.b.sub(before, shift)]
    rows = [emit.pointer(address) for address in addresses]
    targets = emit.pointer(p), emit.pointer(q)
    known = emit.factors(factors, 2)

    def loop() -> None:
        spread = {
            n: [*(emit.in_lanes(f, n) for f in known), *(emit.spread(s, n) for s in scales)]
            for n in (1, emit.lanes, *([] if emit.integer else [2 * emit.lanes]))
        }

        def work(i: Any, lanes: int, vectors: int) -> None:
            factor0, factor1, scale0, scale1 = spread[lanes]
            for k in range(vectors):
                at = emit.plus(i, k * lanes)
                b0, a0, a1, b1, a2 = (emit.load(row, at, lanes) for row in rows)
                first = emit.step(b0, factor0, a1, a0)
                earlier = emit.step(b1, factor0, a2, a1)
                second = emit.step(a1, factor1, earlier, first)
                emit.store(emit.scaled(first, scale0), targets[0], at, lanes)
                emit.store(emit.scaled(second, scale1), targets[1], at, lanes)

        emit.over(count, work, 2, wide=not emit.integer)

    emit.versions(flag, loop)


steps = _loop("steps", 8, _steps, 2)


def _columns(pairs: int, layout: str) -> Any:
    """Run all steps down the columns at once, for one more pair of rows.

    The rows before are remembered as ``2·pairs - 1`` states, each the last result of one step, in place:

        z₀ = b + f₀·(a' + a),   zⱼ = sⱼ₋₁ + fⱼ·(sⱼ + zⱼ₋₁) with s₀ = a',   and then sⱼ₊₁ becomes zⱼ

    ``split`` reads whole rows and writes halves, ``join`` reads halves and writes whole rows; ``plain`` takes
    rows as they are. The two last results are the outcome, scaled into rows of their own except by
    ``split``, which leaves them with the states.
    """

    def body(emit: Emitter, values: list[Any]) -> None:
        b, a, a1, remembered, slot, half, out_b, out_a, count, numbers, *scales = values
        builder = emit.b
        coefficients = emit.factors(numbers, 2 * pairs)
        phases = range(1 if layout == "plain" else 2)

        def halves(address: Any) -> list[Any]:
            return [emit.pointer(builder.add(address, half) if phase else address) for phase in phases]

        def states(address: Any, number: int) -> list[list[Any]]:
            return [halves(builder.add(address, builder.mul(slot, INT(k)))) for k in range(number)]

        kept = 2 * pairs if layout == "split" else 2 * pairs - 1
        known = states(remembered, kept)
        inputs = [[emit.pointer(row)] if layout == "split" else halves(row) for row in (b, a, a1)]
        outputs = emit.pointer(out_b), emit.pointer(out_a)
        # The next pair of rows is fetched while this one is worked on: then memory never waits.
        further = builder.shl(builder.sub(a, b), INT(1))
        ahead = [emit.pointer(builder.add(row, further)) for row in (b, a)]

        def loop() -> None:
            spread = {
                n: [*(emit.in_lanes(f, n) for f in coefficients), *(emit.spread(s, n) for s in scales)]
                for n in (1, emit.lanes)
            }
            emit.over(count, partial(work, spread), 1, once=True)

        def work(spread: Any, i: Any, lanes: int, vectors: int) -> None:
            factors, scale = spread[lanes][: 2 * pairs], spread[lanes][2 * pairs :]
            if layout == "split":
                emit.prefetch(ahead, i, lanes)
                rows = [emit.load_halves(row[0], i, lanes) for row in inputs]
            else:
                rows = [tuple(emit.load(part, i, lanes) for part in row) for row in inputs]
            results = []
            for phase in phases:
                changed, right, left = (row[phase] for row in rows)
                z: list[Any] = []
                for step in range(2 * pairs):
                    z.append(emit.step(changed, factors[step], left, right))
                    if step < 2 * pairs - 1:
                        changed, right = left, z[-1]
                        left = emit.load(known[step][phase], i, lanes)
                for number in range(kept):
                    emit.store(z[number], known[number][phase], i, lanes)
                results.append(z[-2:])
            if layout == "plain":
                for number in (0, 1):
                    value = emit.scaled(results[0][number], scale[2 * number])
                    emit.store(value, outputs[number], i, lanes)
            if layout == "join":
                for number in (0, 1):
                    pair = (emit.scaled(results[k][number], scale[2 * number + k]) for k in phases)
                    emit.store_zipped(*pair, outputs[number], i, lanes)

        emit.versions(numbers, loop)

    return _loop(f"columns_{layout}{pairs}", 10, body, 4)


columns_split = {pairs: _columns(pairs, "split") for pairs in (1, 2)}
columns_plain = {pairs: _columns(pairs, "plain") for pairs in (1, 2)}
columns_join = {pairs: _columns(pairs, "join") for pairs in (1, 2)}


# --- filters --------------------------------------------------------------------------------------


def _add_difference(emit: Emitter, values: list[Any]) -> None:
    """Add to a row a multiple of the difference of two rows.

    Products are rounded before they are added, as in the kernels that extend lines along the other axis, so
    that results do not depend on the kernel, which the shape decides.
    """
    target, plus, minus, count, factor = values
    if emit.integer:
        return  # (integers are lifted, and never extrapolated)
    rows = [emit.pointer(address) for address in (target, plus, minus)]

    def work(i: Any, lanes: int, vectors: int) -> None:
        total, high, low = (emit.load(row, i, lanes) for row in rows)
        product = emit.b.fmul(emit.spread(factor, lanes), emit.b.fsub(high, low))
        emit.store(emit.b.fadd(total, product), rows[0], i, lanes)

    emit.over(count, work, 1, once=True)


add_difference = _loop("add_difference", 4, _add_difference)


def _filter(layout: str, apart: bool = False) -> Any:
    """Compute two sums over the same sources, whose addresses are listed at an address.

    ``split`` reads whole rows and writes halves, ``join`` reads halves and writes whole rows, and ``zip``
    writes the two sums by turns into one row. ``apart``, the high filter has taps only from one number to
    another, and its products are rounded before they are added: so taps that cancel do so exactly.
    """

    def body(emit: Emitter, values: list[Any]) -> None:
        if emit.integer:
            return  # (integers are lifted)
        sources, low, high, taps, *between, out_low, out_high, count, half, _ = values
        builder = emit.b
        listed = builder.inttoptr(sources, INT.as_pointer())
        filters = emit.pointer(low), emit.pointer(high)
        outputs = [
            [emit.pointer(builder.add(out, half) if phase else out) for phase in (0, 1)]
            for out in (out_low, out_high)
        ]

        def work(i: Any, lanes: int, vectors: int) -> None:
            parts = vectors if layout in ("plain", "zip") else 2 * vectors  # vectors of each sum
            start = builder.shl(i, INT(1)) if layout == "split" else i
            zero = ir.Constant(emit.vector(lanes), 0.0 if lanes == 1 else [0.0] * lanes)
            sums = [[cgutils.alloca_once(builder, emit.vector(lanes)) for _ in range(parts)] for _ in filters]
            for place in (*sums[0], *sums[1]):
                builder.store(zero, place)

            def add(tap: Any, both: bool, first: bool = False) -> None:
                address = builder.load(builder.gep(listed, [tap]))
                rows = [emit.pointer(address)]
                if layout == "join":
                    rows.append(emit.pointer(builder.add(address, half)))
                factors = [emit.spread(builder.load(builder.gep(taps_, [tap])), lanes) for taps_ in filters]
                for k in range(parts):
                    number, phase = divmod(k, len(rows))
                    value = emit.load(rows[phase], emit.plus(start, number * lanes), lanes)
                    builder.store(emit.add(builder.load(sums[0][k]), factors[0], value), sums[0][k])
                    if both and apart:
                        product = builder.fmul(factors[1], value)
                        total = product if first else builder.fadd(builder.load(sums[1][k]), product)
                        builder.store(total, sums[1][k])
                    elif both:
                        builder.store(emit.add(builder.load(sums[1][k]), factors[1], value), sums[1][k])

            if apart:
                begin, end = between
                with emit.loop(INT(0), begin, 1) as tap:
                    add(tap, False)
                add(begin, True, first=True)
                with emit.loop(builder.add(begin, INT(1)), end, 1) as tap:
                    add(tap, True)
                with emit.loop(end, taps, 1) as tap:
                    add(tap, False)
            else:
                with emit.loop(INT(0), taps, 1) as tap:
                    add(tap, True)
            if layout == "zip":
                for k in range(vectors):
                    pair = (builder.load(total[k]) for total in sums)
                    emit.store_zipped(*pair, outputs[0][0], emit.plus(i, k * lanes), lanes)
                return
            for total, rows in zip(sums, outputs, strict=True):
                totals = [builder.load(place) for place in total]
                for k in range(vectors):
                    at = emit.plus(i, k * lanes)
                    if layout == "plain":
                        emit.store(totals[k], rows[0], at, lanes)
                        continue
                    pair = totals[2 * k], totals[2 * k + 1]
                    if layout == "join":
                        emit.store_zipped(*pair, rows[0], at, lanes)
                        continue
                    if lanes > 1:
                        pair = emit.unzip(*pair, lanes)
                    for value, row in zip(pair, rows, strict=True):
                        emit.store(value, row, at, lanes)

        emit.over(count, work, 4 if layout in ("plain", "zip") else 2, wide=True)

    return _loop(f"filter_{layout}{'_apart' * apart}", 10 if apart else 8, body)


filter_split, filter_plain, filter_join, filter_zip = map(_filter, ("split", "plain", "join", "zip"))
filter_split_apart, filter_plain_apart = (_filter(layout, True) for layout in ("split", "plain"))
