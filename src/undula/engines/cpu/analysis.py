"""The kernels of analysis, from samples to bands: which rows are processed in which order.

A kernel is called with addresses and with *encoded operators*, the arrays that say what is done along an axis
(see ``encoding``). It allocates nothing, and does not copy strided data. Rows of images are processed from
the top down: the steps down the columns remember a few rows, a finished row is lifted along its length
while it is in the cache, and every coefficient is written once. So a level is one pass over memory.

    planes   (…, H, W, c)   both axes at once, c samples at each place (colours, or parts of complex numbers)
    columns  (…, H, c)      down the columns
    lines    (…, W, c)      along rows
"""

from __future__ import annotations

from numba import int64

from .kernel_layout import (
    BAND_ROW,
    BANDS,
    BEGIN,
    BLOCK,
    CHANNELS,
    DIFFERENCES,
    END,
    ENTRY,
    FACTORS,
    FILTERS,
    FIRST,
    FRAGMENT_COUNT,
    FRAGMENTS,
    HIGH,
    HIGH_BEGIN,
    HIGH_END,
    KIND,
    LEFT,
    LENGTH,
    LIFTED,
    LINE,
    LOW,
    MIX,
    MIX_CHANNELS,
    MIX_PLANE,
    MIX_TABLE,
    NEAR_END,
    NEAR_START,
    ONE,
    PAIRS,
    PLACE,
    PLAIN,
    PLANES,
    RIGHT,
    RIMS,
    SCALE,
    SPLIT,
    START,
    STRIP,
    TABLE,
    TAPS,
    TERMS,
    TURN,
    X_ROW,
    ZERO,
    X,
)
from .rows import (
    compiled,
    down_columns,
    halves,
    lift,
    mix_row,
    next_plane,
    room_for,
    scratch_of,
    split_row,
)
from .simd import (
    add_difference,
    copy,
    filter_plain,
    filter_plain_apart,
    filter_split,
    filter_split_apart,
    peek,
    poke,
    reals,
    times,
    whereis,
    words,
)

__all__ = ["analyse_columns", "analyse_lines", "analyse_planes"]


@compiled
def _turned(op, tap):
    """Return the place that the tap of this turn reads, for coefficients 0."""
    at = op[TURN] + tap
    return op[START] + (at - op[TAPS] if at >= op[TAPS] else at)


@compiled
def _filter(addresses, op, numbers, low, high, count):
    """Apply both filters to sources at listed addresses; taps of the high one that cancel do so exactly."""
    size = numbers.itemsize
    taps = op[TAPS]
    filters = whereis(numbers) + FILTERS * size
    if op[HIGH_END]:
        filter_plain_apart(
            addresses, filters, filters + taps * size, taps, op[HIGH_BEGIN], op[HIGH_END],
            low, high, count, 0, numbers[0],
        )  # fmt: skip
    else:
        filter_plain(addresses, filters, filters + taps * size, taps, low, high, count, 0, numbers[0])


@compiled
def _filter_halves(addresses, op, numbers, low, high, count, half):
    """Apply both filters to whole rows, with results in halves."""
    size = numbers.itemsize
    taps = op[TAPS]
    filters = whereis(numbers) + FILTERS * size
    if op[HIGH_END]:
        filter_split_apart(
            addresses, filters, filters + taps * size, taps, op[HIGH_BEGIN], op[HIGH_END],
            low, high, count, half, numbers[0],
        )  # fmt: skip
    else:
        filter_split(addresses, filters, filters + taps * size, taps, low, high, count, half, numbers[0])


@compiled
def _analyse_row(even, odd, step, op, numbers, low, high, begin, end, scale, buffer, listed, free):
    """Compute coefficients ``begin … end`` of a row, given in halves with what lies beyond its ends.

    ``scale`` is that of the columns; a lifted row is multiplied with it. ``listed`` has space for addresses
    from ``free`` on.
    """
    if end <= begin:
        return
    if op[KIND] == LIFTED:
        b, a = halves(op[PLACE], even, odd, step)
        first = op[FIRST]
        scale_b, scale_a = times(numbers[SCALE + first], scale), times(numbers[SCALE + 1 - first], scale)
        out_b, out_a = (high, low) if first else (low, high)
        lift(b, a, step, op[PAIRS], numbers, out_b, out_a, begin, end, scale_b, scale_a, buffer)
        return
    taps = op[TAPS]
    for tap in range(taps):
        place = 2 * begin + _turned(op, tap)
        listed[free + tap] = (odd if place % 2 else even) + (place // 2) * step
    size = numbers.itemsize
    count = (end - begin) * (step // size)
    _filter(
        whereis(listed) + 8 * free, op, numbers, low + begin * step, high + begin * step, count,
    )  # fmt: skip


@compiled
def _analyse_whole(even, odd, step, op, numbers, low, high, scale, buffer, listed, free):
    """Compute all coefficients of a row; the high band of an odd line may be shorter by one."""
    both = min(op[LOW], op[HIGH])
    _analyse_row(even, odd, step, op, numbers, low, high, int64(0), both, scale, buffer, listed, free)
    if both < op[LOW]:
        nowhere = buffer + 2 * room_for(step, numbers.itemsize)[1] - both * step
        _analyse_row(even, odd, step, op, numbers, low, nowhere, both, both + 1, scale, buffer, listed, free)


@compiled
def _entry(op, place):
    """Return the number in the table of a place beyond the ends of a line."""
    return place + op[LEFT] if place < 0 else op[LEFT] + place - op[LENGTH]


@compiled
def _half_at(place, even, odd, stride):
    """Return the address of a place of a row that is given in halves."""
    return (odd if place & 1 else even) + (place >> 1) * stride


@compiled
def _extend(even, odd, channels, op, numbers, begin, end, from_even, from_odd, stride):
    """Put places ``begin … end`` beyond the ends of a row beside its halves.

    They are made of samples that are read at ``from_even`` and ``from_odd``, ``stride`` bytes apart.
    """
    size = numbers.itemsize
    unit = numbers[ONE]
    step = channels * size
    factors = FILTERS + 2 * op[TAPS]
    for place in range(begin, end):
        entry = _entry(op, place)
        target = (odd if place & 1 else even) + (place >> 1) * step
        table = TABLE + ENTRY * entry
        if op[table + TERMS] < 0:  # a copy
            source = _half_at(op[table], from_even, from_odd, stride)
            for channel in range(channels):
                poke(target + channel * size, peek(source + channel * size, unit), unit)
            continue
        for channel in range(channels):
            total = numbers[ZERO]
            first = factors + FACTORS * entry
            if numbers[first] != 0:
                source = _half_at(op[table], from_even, from_odd, stride)
                total = numbers[first] * peek(source + channel * size, unit)
            for number in range(DIFFERENCES):
                factor = numbers[first + 1 + number]
                if factor != 0:
                    plus = _half_at(op[table + 2 * number + 1], from_even, from_odd, stride)
                    minus = _half_at(op[table + 2 * number + 2], from_even, from_odd, stride)
                    rise = peek(plus + channel * size, unit) - peek(minus + channel * size, unit)
                    total += factor * rise
            poke(target + channel * size, total, unit)


@compiled
def _list_moves(op, half, step, listed, free):
    """List where samples beyond the ends of a row in halves go, and where they come from, in bytes."""
    left, length = op[LEFT], op[LENGTH]
    for entry in range(left + op[RIGHT]):
        place = entry - left if entry < left else entry - left + length
        source = op[TABLE + ENTRY * entry]
        listed[free + 2 * entry] = (place & 1) * half + (place >> 1) * step
        listed[free + 2 * entry + 1] = (source & 1) * half + (source >> 1) * step


@compiled
def _row_at(place, op, x, row, rims, slot):
    """Return the address of a row of the image, or of what lies beyond its ends at that place."""
    if 0 <= place < op[LENGTH]:
        return x + place * row
    entry = TABLE + ENTRY * _entry(op, place)
    if op[entry + TERMS] < 0:
        return x + op[entry] * row
    return rims + op[entry + TERMS] * slot


@compiled
def _make_rims(op, numbers, x, row, rims, slot, count, begin, end, listed, free):
    """Compute rows beyond the ends, at places ``begin … end``, that are no copies of others."""
    size = numbers.itemsize
    length = op[LENGTH]
    for place in range(begin, end):
        if 0 <= place < length:
            continue
        entry = _entry(op, place)
        number = op[TABLE + ENTRY * entry + TERMS]
        if number < 0:
            continue
        first = FILTERS + 2 * op[TAPS] + FACTORS * entry
        factors = whereis(numbers) + first * size
        target = rims + number * slot
        table = TABLE + ENTRY * entry
        listed[free] = x + op[table] * row
        terms = 1 if numbers[first] != 0 else 0
        filter_plain(
            whereis(listed) + 8 * free, factors, factors, terms, target, target, count, 0, numbers[0]
        )
        for k in range(DIFFERENCES):
            factor = numbers[first + 1 + k]
            if factor != 0:
                plus, minus = op[table + 2 * k + 1], op[table + 2 * k + 2]
                add_difference(target, x + plus * row, x + minus * row, count, factor)


@compiled
def _read_places(op, begin, end):
    """Return the places of a line that coefficients ``begin … end`` are made of."""
    if op[KIND] == LIFTED:
        place, pairs = op[PLACE], op[PAIRS]
        return 2 * begin + place - 1 - 2 * pairs, 2 * (end + pairs - 2) + place + 2
    return 2 * begin + op[START], 2 * (end - 1) + op[START] + op[TAPS]


@compiled
def _analyse_plane(x, row, down, downs, along, alongs, bands, begin, end, goes_on, c, place, listed, table):
    """Compute rows ``begin … end`` of all four bands of a plane, both axes lifted or both filtered.

    ``down`` and ``along`` are operators, ``downs`` and ``alongs`` their numbers; ``bands`` has the arguments,
    with the addresses of the bands; ``place`` says where scratch is. What ``goes_on`` where the last call
    ended finds there what has to be remembered. Where there is a ``table``, rows are in fragments, whose
    addresses are at ``x``, or samples of lifted planes are made of interleaved channels by it, row by row.
    """
    scratch, slot, half, origin, buffer = place
    size = downs.itemsize
    unit = downs[ONE]
    ones = (unit, unit, unit, unit)
    step = c * size
    width, pairs, taps = along[LENGTH], down[PAIRS], down[TAPS]
    count = width * c
    lifted = down[KIND] == LIFTED
    states = scratch + origin  # rows remembered
    finished = states + (2 * pairs * slot if lifted else 0)  # finished rows
    rims = finished + 3 * slot
    low, high = _read_places(down, begin, end)
    _make_rims(down, downs, x, row, rims, slot, count, low, high, listed, taps)
    ring = rims + down[RIMS] * slot
    how = words(bands[MIX])
    fragments = how[FRAGMENT_COUNT] if table and how[MIX_CHANNELS] == 0 else 0
    addresses = whereis(listed)
    moves = taps + along[TAPS] + TERMS
    beyond = along[LEFT] + along[RIGHT]
    if along[RIMS] == 0:
        _list_moves(along, half, step, listed, moves)
    start, stop = begin, end
    if lifted:
        start, stop = begin + pairs - 1 if goes_on else begin - pairs, end + pairs - 1
    for t in range(start, stop):
        low_row, high_row = finished, finished + slot
        low_scale, high_scale = unit, unit
        k = t
        if lifted:
            k = t - pairs + 1
            at = 2 * t + down[PLACE]
            b = _row_at(at, down, x, row, rims, slot)
            a = _row_at(at + 1, down, x, row, rims, slot)
            a1 = _row_at(at - 1, down, x, row, rims, slot)
            if table and not fragments:
                # (Rows that are a step apart have slots of their own; the last one is still in its.)
                if t == start:
                    mix_row(how, table, a1, ring + ((at - 1) & 3) * slot, width, unit)
                mix_row(how, table, b, ring + (at & 3) * slot, width, unit)
                mix_row(how, table, a, ring + ((at + 1) & 3) * slot, width, unit)
                b, a, a1 = ring + (at & 3) * slot, ring + ((at + 1) & 3) * slot, ring + ((at - 1) & 3) * slot
            row_b, row_a = finished, finished + slot
            if c == 1:
                row_b, row_a = states + (2 * pairs - 2) * slot, states + (2 * pairs - 1) * slot
            o = int64(0)  # bytes before the fragment, in a row whose layout is that of the results
            for fragment in range(max(1, fragments)):
                samples, b_start, a_start, a1_start = count, b, a, a1
                if fragments:
                    samples = how[FRAGMENTS + fragment]
                    b_start, a_start, a1_start = words(b)[fragment], words(a)[fragment], words(a1)[fragment]
                if c > 1:
                    down_columns(
                        pairs, PLAIN, b_start, a_start, a1_start, states + o, slot, 0,
                        row_b + o, row_a + o, samples, downs, ones,
                    )  # fmt: skip
                    o += samples * size
                    continue
                n = samples // 2
                down_columns(
                    pairs, SPLIT, b_start, a_start, a1_start, states + o, slot, half, 0, 0, n, downs, ones
                )
                o += n * size
                if samples % 2:  # only of the last fragment
                    last = 2 * n * size
                    down_columns(
                        pairs, PLAIN, b_start + last, a_start + last, a1_start + last, states + o, slot, 0,
                        row_b + o, row_a + o, 1, downs, ones,
                    )  # fmt: skip
            if k < begin:
                continue
            low_row, high_row = (row_a, row_b) if down[FIRST] else (row_b, row_a)
            low_scale, high_scale = downs[SCALE], downs[SCALE + 1]
        else:
            o = int64(0)
            for fragment in range(max(1, fragments)):
                samples = how[FRAGMENTS + fragment] if fragments else count
                for tap in range(taps):
                    at = _row_at(2 * t + _turned(down, tap), down, x, row, rims, slot)
                    listed[tap] = words(at)[fragment] if fragments else at
                if c > 1:
                    _filter(addresses, down, downs, low_row + o, high_row + o, samples)
                    o += samples * size
                    continue
                n = samples // 2
                _filter_halves(addresses, down, downs, low_row + o, high_row + o, n, half)
                o += n * size
                if samples % 2:
                    for tap in range(taps):
                        listed[tap] += 2 * n * size
                    _filter(addresses, down, downs, low_row + o, high_row + o, 1)
        for band in range(2):
            if k >= down[LOW + band]:
                continue
            even = high_row if band else low_row
            if c > 1:
                parts = finished + 2 * slot
                split_row(even, parts, parts + half, width, c, downs)
                even = parts
            odd = even + half
            if along[RIMS]:
                _extend(even, odd, c, along, alongs, -along[LEFT], int64(0), even, odd, step)
                _extend(even, odd, c, along, alongs, width, width + along[RIGHT], even, odd, step)
            elif c == 1:
                for move in range(moves, moves + 2 * beyond, 2):
                    poke(even + listed[move], peek(even + listed[move + 1], unit), unit)
            else:
                for move in range(moves, moves + 2 * beyond, 2):
                    for channel in range(0, step, size):
                        value = peek(even + listed[move + 1] + channel, unit)
                        poke(even + listed[move] + channel, value, unit)
            target = BANDS + 2 * band
            _analyse_whole(
                even, odd, step, along, alongs,
                bands[target] + k * bands[target + BAND_ROW - BANDS],
                bands[target + 1] + k * bands[target + 1 + BAND_ROW - BANDS],
                high_scale if band else low_scale, buffer, listed, taps,
            )  # fmt: skip


@compiled
def analyse_planes(
    arguments, down, downs, along, alongs, arguments2, down2, downs2, along2, alongs2, listed, like
):
    """Compute one level of images, or two at once if the second has planes.

    One level gives rows ``BEGIN … END`` of the bands ``aa, ad, da, dd``; two levels give those of the second,
    and what they need of the first. The approximation between the two is never written to memory: some rows
    of it, at the address where the second level reads, are enough.
    """
    arguments = words(arguments)
    down = words(down)
    downs = reals(downs, like)
    along = words(along)
    alongs = reals(alongs, like)
    arguments2 = words(arguments2)
    down2 = words(down2)
    downs2 = reals(downs2, like)
    along2 = words(along2)
    alongs2 = reals(alongs2, like)
    listed = words(listed)
    second = arguments2[PLANES] > 0
    table = arguments[MIX] + MIX_TABLE if arguments[MIX] else int64(0)
    none = int64(0)
    if not second:
        for _ in range(arguments[PLANES]):
            _analyse_plane(
                arguments[X], arguments[X_ROW], down, downs, along, alongs, arguments,
                arguments[BEGIN], arguments[END], second, arguments[CHANNELS], scratch_of(arguments), listed,
                table,
            )  # fmt: skip
            next_plane(arguments)
            if table:
                table += MIX_PLANE
        return
    size = downs.itemsize
    c = arguments[CHANNELS]
    length = down2[LENGTH]
    row = arguments2[X_ROW]
    count = row // size
    rows = arguments2[X]
    for _ in range(arguments[PLANES]):
        known = int64(-1)  # rows up to here have been made,
        kept = int64(0)  # and lie there from this one on
        begin = arguments2[BEGIN]
        while begin < arguments2[END]:
            end = min(begin + BLOCK, arguments2[END])
            low, high = _read_places(down2, begin, end)
            first, last = max(low, 0), min(high, length)
            if low < 0:
                last = max(last, min(length, down2[NEAR_START]))
            if high >= length or end == max(down2[LOW], down2[HIGH]):
                first, last = min(first, down2[NEAR_END]), length
            if begin == 0:
                first = int64(0)
            goes_on = known >= 0
            if not goes_on:
                known, kept = first, first
            elif first > kept:
                for number in range(first, known):
                    copy(rows + (number - first) * row, rows + (number - kept) * row, count, downs[0])
                kept = first
            if last > known:
                arguments[BANDS], arguments[BAND_ROW] = rows - kept * row, row
                _analyse_plane(
                    arguments[X], arguments[X_ROW], down, downs, along, alongs, arguments, known, last,
                    goes_on, c, scratch_of(arguments), listed, table,
                )  # fmt: skip
                known = last
            _analyse_plane(
                rows - kept * row, row, down2, downs2, along2, alongs2, arguments2, begin, end,
                begin > arguments2[BEGIN], c, scratch_of(arguments2), listed, none,
            )  # fmt: skip
            begin = end
        next_plane(arguments)
        next_plane(arguments2)
        if table:
            table += MIX_PLANE


@compiled
def analyse_columns(arguments, down, downs, listed, like):
    """Compute one level down the columns: rows ``BEGIN … END`` of the bands ``a, d``."""
    arguments = words(arguments)
    down = words(down)
    downs = reals(downs, like)
    listed = words(listed)
    scratch, slot, _, origin, _ = scratch_of(arguments)
    size = downs.itemsize
    row, begin, end = arguments[X_ROW], arguments[BEGIN], arguments[END]
    pairs, taps = down[PAIRS], down[TAPS]
    lifted = down[KIND] == LIFTED
    states = scratch + origin
    nowhere = states + (2 * pairs * slot if lifted else 0)
    rims = nowhere + 2 * slot
    first = down[FIRST]
    scale_b, scale_a = downs[SCALE + first], downs[SCALE + 1 - first]
    scales = (scale_b, scale_b, scale_a, scale_a)
    low, high = _read_places(down, begin, end)
    for _ in range(arguments[PLANES]):
        for strip in range(0, arguments[CHANNELS], STRIP):
            count = min(STRIP, arguments[CHANNELS] - strip)
            x = arguments[X] + strip * size
            _make_rims(down, downs, x, row, rims, slot, count, low, high, listed, taps)
            start, stop = (begin - pairs, end + pairs - 1) if lifted else (begin, end)
            for t in range(start, stop):
                k = t - pairs + 1 if lifted else t
                low_row = arguments[BANDS] + k * arguments[BAND_ROW] + strip * size
                high_row = arguments[BANDS + 1] + k * arguments[BAND_ROW + 1] + strip * size
                if k < begin or k >= down[LOW]:
                    low_row = nowhere
                if k < begin or k >= down[HIGH]:
                    high_row = nowhere + slot
                if lifted:
                    at = 2 * t + down[PLACE]
                    out_b, out_a = (high_row, low_row) if first else (low_row, high_row)
                    down_columns(
                        pairs, PLAIN,
                        _row_at(at, down, x, row, rims, slot), _row_at(at + 1, down, x, row, rims, slot),
                        _row_at(at - 1, down, x, row, rims, slot),
                        states, slot, 0,
                        out_b, out_a, count, downs, scales,
                    )  # fmt: skip
                else:
                    for tap in range(taps):
                        listed[tap] = _row_at(2 * t + _turned(down, tap), down, x, row, rims, slot)
                    _filter(whereis(listed), down, downs, low_row, high_row, count)
        next_plane(arguments)


@compiled
def analyse_lines(arguments, along, alongs, listed, like):
    """Compute one level along lines: coefficients ``BEGIN … END`` of the bands ``a, d`` of each."""
    arguments = words(arguments)
    along = words(along)
    alongs = reals(alongs, like)
    listed = words(listed)
    scratch, _, half, origin, buffer = scratch_of(arguments)
    size = alongs.itemsize
    unit = alongs[ONE]
    c = arguments[CHANNELS]
    step = c * size
    length = along[LENGTH]
    chunk = max(8, LINE // c)
    both = min(along[LOW], along[HIGH])
    for _ in range(arguments[PLANES]):
        x = arguments[X]
        begin = arguments[BEGIN]
        while begin < arguments[END]:
            # (The last coefficient of an odd line, which has no other beside it, makes a part of its own.)
            end = min(begin + chunk, arguments[END], both if begin < both else along[LOW])
            low, high = _read_places(along, begin, end)
            even = scratch + origin - (low // 2) * step
            odd = even + half
            inside, outside = max(low - low % 2, 0), min(high, length)
            if outside > inside:
                split_row(
                    x + inside * step, even + (inside // 2) * step, odd + (inside // 2) * step,
                    outside - inside, c, alongs,
                )  # fmt: skip
            _extend(even, odd, c, along, alongs, low, min(high, 0), x, x + step, 2 * step)
            _extend(even, odd, c, along, alongs, max(low, length), high, x, x + step, 2 * step)
            high_band = arguments[BANDS + 1]
            if begin >= both:
                high_band = buffer + 2 * room_for(step, size)[1] - begin * step
            _analyse_row(
                even, odd, step, along, alongs, arguments[BANDS], high_band, begin, end, unit, buffer,
                listed, 0,
            )  # fmt: skip
            begin = end
        next_plane(arguments)
