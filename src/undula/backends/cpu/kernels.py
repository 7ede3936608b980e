"""The kernels of the CPU backend: which rows are worked on in which order.

A kernel is called with addresses and with *programs*, the arrays that say what is done along an axis (see
``program``); nothing is allocated and nothing is copied to get at strided data. Rows of images are worked on
from the top down: the steps down the columns remember a few rows, a finished row is lifted along its length
while it is in the cache, and every coefficient is written once. So a level is one pass over memory.

    planes   (…, H, W, c)   both axes at once, c samples at each place (colours, or parts of complex numbers)
    columns  (…, H, c)      down the columns
    lines    (…, W, c)      along rows
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, njit

from .layout import BLOCK, CHUNK, SHORT, STRIP
from .simd import columns_join as _join
from .simd import columns_plain as _plain
from .simd import columns_split as _split
from .simd import (
    copy,
    filter_join,
    filter_plain,
    filter_split,
    join,
    peek,
    poke,
    reals,
    split,
    steps,
    whereis,
    words,
)

__all__ = [
    "add_rounded",
    "add_step",
    "analyse_columns",
    "analyse_lines",
    "analyse_planes",
    "synthesise_columns",
    "synthesise_lines",
    "synthesise_planes",
]

split1, split2 = _split[1], _split[2]
plain1, plain2 = _plain[1], _plain[2]
join1, join2 = _join[1], _join[2]

# Entries of a program: integers of both directions, of the way forward and of the way back,
KIND, PAIRS, LENGTH, LOW, HIGH, PLACE, FIRST = range(7)
START, TAPS, LEFT, RIGHT, RIMS, NEAR_END, NEAR_START = range(7, 14)
DELTA, LOW_START, LOW_TAPS, HIGH_START, HIGH_TAPS, LOW_LEFT, LOW_RIGHT, HIGH_LEFT, HIGH_RIGHT = range(7, 16)
TABLE, ENTRY = 16, 4  # what lies beyond the ends: where the table begins, integers of one of its entries
# and numbers: the factors of steps, two scales, 1 and 0, the taps of filters, the factors of the table.
SCALE, ONE, ZERO, FILTERS = 4, 6, 7, 8
LIFTED, FILTERED = 0, 1  # kinds
TERMS = 3

# Entries of the arguments: addresses, and strides in bytes.
X, X_PLANE, X_ROW, BANDS, BAND_PLANE, BAND_ROW = 0, 1, 2, 3, 7, 11
PLANES, BEGIN, END, CHANNELS, SCRATCH, SLOT, HALF, ORIGIN, BUFFER = range(15, 24)

SPLIT, PLAIN, JOIN = range(3)  # layouts of rows

# Nobody calls these from Python by way of Numba, so they need none of its wrappers.
_compiled: Any = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


# --- one row --------------------------------------------------------------------------------------


@_compiled
def _room(step, size):
    """How many places of a row are lifted at a time, and the bytes to keep for a half of them."""
    chunk = max(1, CHUNK * size // step)
    return chunk, (chunk + 4) * step


@_compiled
def _lift(b, a, step, pairs, numbers, out_b, out_a, begin, end, scale_b, scale_a, buffer):
    """Results ``begin … end`` of all steps along a row; sample i of a half is at ``b + i·step``."""
    n = step // numbers.itemsize
    one = numbers[ONE]
    chunk, room = _room(step, numbers.itemsize)
    for k in range(begin, end, chunk):
        count = min(chunk, end - k)
        at = k * step
        if pairs == 1:
            steps(
                b + at, a + at, step, out_b + at, out_a + at, count * n,
                numbers[0], numbers[1], scale_b, scale_a,
            )  # fmt: skip
        else:
            before = at - step
            steps(
                b + before, a + before, step, buffer, buffer + room, (count + 2) * n,
                numbers[0], numbers[1], one, one,
            )  # fmt: skip
            steps(
                buffer + step, buffer + room + 2 * step, step, out_b + at, out_a + at, count * n,
                numbers[2], numbers[3], scale_b, scale_a,
            )  # fmt: skip


@_compiled
def _halves(place, even, odd, step):
    """Where the samples at ``place`` and at the place after it begin, as steps change them by turns."""
    if place % 2 == 0:
        return even + (place // 2) * step, odd + (place // 2) * step
    return odd + (place // 2) * step, even + (place // 2 + 1) * step


@_compiled
def _analyse_row(even, odd, step, program, numbers, low, high, begin, end, scale, buffer, listed, free):
    """Coefficients ``begin … end`` of a row that is given in halves with what lies beyond its ends.

    ``scale`` is that of the columns; a lifted row is multiplied with it. ``listed`` has space for addresses
    from ``free`` on.
    """
    if end <= begin:
        return
    if program[KIND] == LIFTED:
        b, a = _halves(program[PLACE], even, odd, step)
        first = program[FIRST]
        scale_b, scale_a = numbers[SCALE + first] * scale, numbers[SCALE + 1 - first] * scale
        out_b, out_a = (high, low) if first else (low, high)
        _lift(b, a, step, program[PAIRS], numbers, out_b, out_a, begin, end, scale_b, scale_a, buffer)
        return
    taps = program[TAPS]
    for tap in range(taps):
        place = 2 * begin + program[START] + tap
        listed[free + tap] = (odd if place % 2 else even) + (place // 2) * step
    size = numbers.itemsize
    low_taps = whereis(numbers) + FILTERS * size
    count = (end - begin) * (step // size)
    filter_plain(
        whereis(listed) + 8 * free, low_taps, low_taps + taps * size, taps,
        low + begin * step, high + begin * step, count, 0, numbers[0],
    )  # fmt: skip


@_compiled
def _analyse_whole(even, odd, step, program, numbers, low, high, scale, buffer, listed, free):
    """All coefficients of a row. The high band of an odd line may be shorter by one."""
    both = min(program[LOW], program[HIGH])
    _analyse_row(even, odd, step, program, numbers, low, high, int64(0), both, scale, buffer, listed, free)
    if both < program[LOW]:
        nowhere = buffer + 2 * _room(step, numbers.itemsize)[1] - both * step
        _analyse_row(
            even, odd, step, program, numbers, low, nowhere, both, both + 1, scale, buffer, listed, free
        )


@_compiled
def _split_row(row, even, odd, places, channels, like):
    """Even and odd places of a row apart."""
    size = like.itemsize
    one = like[0]
    pairs = places // 2
    if channels == 1:
        split(row, even, odd, pairs, one)
        if places % 2:
            poke(even + pairs * size, peek(row + 2 * pairs * size, one))
        return
    step = channels * size
    for k in range(places):
        side = odd if k % 2 else even
        if channels == 2 or channels == 3:
            for j in range(channels):
                poke(side + (k // 2) * step + j * size, peek(row + k * step + j * size, one))
        else:
            copy(side + (k // 2) * step, row + k * step, channels, one)


@_compiled
def _join_row(even, odd, row, places, channels, like):
    """The inverse of :func:`_split_row`."""
    size = like.itemsize
    one = like[0]
    pairs = places // 2
    if channels == 1:
        join(even, odd, row, pairs, one)
        if places % 2:
            poke(row + 2 * pairs * size, peek(even + pairs * size, one))
        return
    step = channels * size
    for k in range(places):
        side = odd if k % 2 else even
        if channels == 2 or channels == 3:
            for j in range(channels):
                poke(row + k * step + j * size, peek(side + (k // 2) * step + j * size, one))
        else:
            copy(row + k * step, side + (k // 2) * step, channels, one)


@_compiled
def _entry(program, place):
    """The number in the table of a place beyond the ends of a line."""
    return place + program[LEFT] if place < 0 else program[LEFT] + place - program[LENGTH]


@_compiled
def _extend(even, odd, channels, program, numbers, begin, end, from_even, from_odd, stride):
    """Puts places ``begin … end`` beyond the ends of a row beside its halves.

    They are made of samples that are read at ``from_even`` and ``from_odd``, ``stride`` bytes apart.
    """
    size = numbers.itemsize
    one = numbers[ONE]
    step = channels * size
    factors = FILTERS + 2 * program[TAPS]
    for place in range(begin, end):
        entry = _entry(program, place)
        target = (odd if place & 1 else even) + (place >> 1) * step
        table = TABLE + ENTRY * entry
        if program[table + TERMS] < 0:  # a copy
            source = (from_odd if program[table] & 1 else from_even) + (program[table] >> 1) * stride
            for channel in range(channels):
                poke(target + channel * size, peek(source + channel * size, one))
            continue
        for channel in range(channels):
            total = numbers[ZERO]
            for term in range(TERMS):
                factor = numbers[factors + TERMS * entry + term]
                if factor != 0:
                    at = program[table + term]
                    source = (from_odd if at & 1 else from_even) + (at >> 1) * stride
                    total += factor * peek(source + channel * size, one)
            poke(target + channel * size, total)


@_compiled
def _list_moves(program, half, step, listed, free):
    """Where samples beyond the ends of a row in halves go, and where they are copied from, in bytes."""
    left, length = program[LEFT], program[LENGTH]
    for entry in range(left + program[RIGHT]):
        place = entry - left if entry < left else entry - left + length
        source = program[TABLE + ENTRY * entry]
        listed[free + 2 * entry] = (place & 1) * half + (place >> 1) * step
        listed[free + 2 * entry + 1] = (source & 1) * half + (source >> 1) * step


# --- forward --------------------------------------------------------------------------------------


@_compiled
def _row_at(place, program, x, row, rims, slot):
    """The address of a row of the image, or of what lies beyond its ends at that place."""
    if 0 <= place < program[LENGTH]:
        return x + place * row
    entry = TABLE + ENTRY * _entry(program, place)
    if program[entry + TERMS] < 0:
        return x + program[entry] * row
    return rims + program[entry + TERMS] * slot


@_compiled
def _make_rims(program, numbers, x, row, rims, slot, count, begin, end, listed, free):
    """Computes rows beyond the ends, at places ``begin … end``, that are no copies of others."""
    size = numbers.itemsize
    length = program[LENGTH]
    for place in range(begin, end):
        if 0 <= place < length:
            continue
        entry = _entry(program, place)
        number = program[TABLE + ENTRY * entry + TERMS]
        if number < 0:
            continue
        first = FILTERS + 2 * program[TAPS] + TERMS * entry
        terms = 0
        while terms < TERMS and numbers[first + terms] != 0:
            listed[free + terms] = x + program[TABLE + ENTRY * entry + terms] * row
            terms += 1
        factors = whereis(numbers) + first * size
        target = rims + number * slot
        addresses = whereis(listed) + 8 * free
        filter_plain(addresses, factors, factors, terms, target, target, count, 0, numbers[0])


@_compiled
def _read_places(program, begin, end):
    """The places of a line that coefficients ``begin … end`` are made of."""
    if program[KIND] == LIFTED:
        place, pairs = program[PLACE], program[PAIRS]
        return 2 * begin + place - 1 - 2 * pairs, 2 * (end + pairs - 2) + place + 2
    return 2 * begin + program[START], 2 * (end - 1) + program[START] + program[TAPS]


@_compiled
def _down(pairs, layout, b, a, a1, states, slot, half, out_b, out_a, n, numbers, scales):
    """One more pair of rows of the steps down the columns, by the loop for so many pairs and this layout."""
    f = whereis(numbers)
    s0, s1, s2, s3 = scales
    if layout == SPLIT:
        if pairs == 1:
            split1(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)
        else:
            split2(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)
    elif layout == JOIN:
        if pairs == 1:
            join1(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)
        else:
            join2(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)
    elif pairs == 1:
        plain1(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)
    else:
        plain2(b, a, a1, states, slot, half, out_b, out_a, n, f, s0, s1, s2, s3)


@_compiled
def _analyse_plane(x, row, down, downs, along, alongs, bands, begin, end, goes_on, c, place, listed):
    """Rows ``begin … end`` of all four bands of one plane, both axes lifted or both filtered.

    ``down`` and ``along`` are programs, ``downs`` and ``alongs`` their numbers; ``bands`` has the arguments,
    with the addresses of the bands; ``place`` says where scratch is. What ``goes_on`` where the last call
    ended finds there what has to be remembered.
    """
    scratch, slot, half, origin, buffer = place
    size = downs.itemsize
    one = downs[ONE]
    ones = (one, one, one, one)
    step = c * size
    width, pairs, taps = along[LENGTH], down[PAIRS], down[TAPS]
    count, n = width * c, width // 2
    lifted = down[KIND] == LIFTED
    states = scratch + origin  # rows remembered
    made = states + (2 * pairs * slot if lifted else 0)  # finished rows
    rims = made + 3 * slot
    low, high = _read_places(down, begin, end)
    _make_rims(down, downs, x, row, rims, slot, count, low, high, listed, taps)
    filters = whereis(downs) + FILTERS * size
    addresses = whereis(listed)
    moves = taps + along[TAPS] + TERMS
    beyond = along[LEFT] + along[RIGHT]
    if along[RIMS] == 0:
        _list_moves(along, half, step, listed, moves)
    start, stop = begin, end
    if lifted:
        start, stop = begin + pairs - 1 if goes_on else begin - pairs, end + pairs - 1
    for t in range(start, stop):
        low_row, high_row = made, made + slot
        low_scale, high_scale = one, one
        k = t
        if lifted:
            k = t - pairs + 1
            at = 2 * t + down[PLACE]
            b = _row_at(at, down, x, row, rims, slot)
            a = _row_at(at + 1, down, x, row, rims, slot)
            a1 = _row_at(at - 1, down, x, row, rims, slot)
            row_b, row_a = made, made + slot
            if c == 1:
                row_b, row_a = states + (2 * pairs - 2) * slot, states + (2 * pairs - 1) * slot
                _down(pairs, SPLIT, b, a, a1, states, slot, half, 0, 0, n, downs, ones)
                if width % 2:
                    o, e = 2 * n * size, n * size
                    _down(
                        pairs, PLAIN, b + o, a + o, a1 + o, states + e, slot, 0,
                        row_b + e, row_a + e, 1, downs, ones,
                    )  # fmt: skip
            else:
                _down(pairs, PLAIN, b, a, a1, states, slot, 0, row_b, row_a, count, downs, ones)
            if k < begin:
                continue
            low_row, high_row = (row_a, row_b) if down[FIRST] else (row_b, row_a)
            low_scale, high_scale = downs[SCALE], downs[SCALE + 1]
        else:
            for tap in range(taps):
                listed[tap] = _row_at(2 * t + down[START] + tap, down, x, row, rims, slot)
            if c == 1:
                filter_split(addresses, filters, filters + taps * size, taps, low_row, high_row, n, half, one)
                if width % 2:
                    for tap in range(taps):
                        listed[tap] += 2 * n * size
                    filter_plain(
                        addresses, filters, filters + taps * size, taps,
                        low_row + n * size, high_row + n * size, 1, 0, one,
                    )  # fmt: skip
            else:
                filter_plain(
                    addresses, filters, filters + taps * size, taps, low_row, high_row, count, 0, one
                )
        for band in range(2):
            if k >= down[LOW + band]:
                continue
            even = high_row if band else low_row
            if c > 1:
                parts = made + 2 * slot
                _split_row(even, parts, parts + half, width, c, downs)
                even = parts
            odd = even + half
            if along[RIMS]:
                _extend(even, odd, c, along, alongs, -along[LEFT], int64(0), even, odd, step)
                _extend(even, odd, c, along, alongs, width, width + along[RIGHT], even, odd, step)
            elif c == 1:
                for move in range(moves, moves + 2 * beyond, 2):
                    poke(even + listed[move], peek(even + listed[move + 1], one))
            else:
                for move in range(moves, moves + 2 * beyond, 2):
                    for channel in range(0, step, size):
                        poke(even + listed[move] + channel, peek(even + listed[move + 1] + channel, one))
            target = BANDS + 2 * band
            _analyse_whole(
                even, odd, step, along, alongs,
                bands[target] + k * bands[target + BAND_ROW - BANDS],
                bands[target + 1] + k * bands[target + 1 + BAND_ROW - BANDS],
                high_scale if band else low_scale, buffer, listed, taps,
            )  # fmt: skip


@_compiled
def _place(arguments):
    return (
        arguments[SCRATCH], arguments[SLOT], arguments[HALF], arguments[ORIGIN], arguments[BUFFER]
    )  # fmt: skip


@_compiled
def _next_plane(arguments):
    """Moves all addresses on by one plane."""
    arguments[X] += arguments[X_PLANE]
    for band in range(4):
        arguments[BANDS + band] += arguments[BAND_PLANE + band]


@_compiled
def analyse_planes(
    arguments, down, downs, along, alongs, arguments2, down2, downs2, along2, alongs2, listed, like
):
    """One level of images, or two at once where the second has planes.

    Of one level, rows ``BEGIN … END`` of the bands ``aa, ad, da, dd`` are made; of two, those of the second
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
    if not second:
        for _ in range(arguments[PLANES]):
            _analyse_plane(
                arguments[X], arguments[X_ROW], down, downs, along, alongs, arguments,
                arguments[BEGIN], arguments[END], second, arguments[CHANNELS], _place(arguments), listed,
            )  # fmt: skip
            _next_plane(arguments)
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
                    goes_on, c, _place(arguments), listed,
                )  # fmt: skip
                known = last
            _analyse_plane(
                rows - kept * row, row, down2, downs2, along2, alongs2, arguments2, begin, end,
                begin > arguments2[BEGIN], c, _place(arguments2), listed,
            )  # fmt: skip
            begin = end
        _next_plane(arguments)
        _next_plane(arguments2)


@_compiled
def analyse_columns(arguments, down, downs, listed, like):
    """One level down the columns: rows ``BEGIN … END`` of the bands ``a, d``."""
    arguments = words(arguments)
    down = words(down)
    downs = reals(downs, like)
    listed = words(listed)
    scratch, slot, _, origin, _ = _place(arguments)
    size = downs.itemsize
    one = downs[ONE]
    row, begin, end = arguments[X_ROW], arguments[BEGIN], arguments[END]
    pairs, taps = down[PAIRS], down[TAPS]
    lifted = down[KIND] == LIFTED
    filters = whereis(downs) + FILTERS * size
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
                    _down(
                        pairs, PLAIN,
                        _row_at(at, down, x, row, rims, slot), _row_at(at + 1, down, x, row, rims, slot),
                        _row_at(at - 1, down, x, row, rims, slot),
                        states, slot, 0,
                        out_b, out_a, count, downs, scales,
                    )  # fmt: skip
                else:
                    for tap in range(taps):
                        listed[tap] = _row_at(2 * t + down[START] + tap, down, x, row, rims, slot)
                    filter_plain(
                        whereis(listed), filters, filters + taps * size, taps, low_row, high_row, count,
                        0, one,
                    )  # fmt: skip
        _next_plane(arguments)


@_compiled
def analyse_lines(arguments, along, alongs, listed, like):
    """One level along lines: coefficients ``BEGIN … END`` of the bands ``a, d`` of each."""
    arguments = words(arguments)
    along = words(along)
    alongs = reals(alongs, like)
    listed = words(listed)
    scratch, _, half, origin, buffer = _place(arguments)
    size = alongs.itemsize
    one = alongs[ONE]
    c = arguments[CHANNELS]
    step = c * size
    length = along[LENGTH]
    chunk = max(8, STRIP // c)
    both = min(along[LOW], along[HIGH])
    for _ in range(arguments[PLANES]):
        x = arguments[X]
        begin = arguments[BEGIN]
        while begin < arguments[END]:
            # (The last coefficient of an odd line, which has no other beside it, makes a piece of its own.)
            end = min(begin + chunk, arguments[END], both if begin < both else along[LOW])
            low, high = _read_places(along, begin, end)
            even = scratch + origin - (low // 2) * step
            odd = even + half
            inside, outside = max(low - low % 2, 0), min(high, length)
            if outside > inside:
                _split_row(
                    x + inside * step, even + (inside // 2) * step, odd + (inside // 2) * step,
                    outside - inside, c, alongs,
                )  # fmt: skip
            _extend(even, odd, c, along, alongs, low, min(high, 0), x, x + step, 2 * step)
            _extend(even, odd, c, along, alongs, max(low, length), high, x, x + step, 2 * step)
            high_band = arguments[BANDS + 1]
            if begin >= both:
                high_band = buffer + 2 * _room(step, size)[1] - begin * step
            _analyse_row(
                even, odd, step, along, alongs, arguments[BANDS], high_band, begin, end, one, buffer,
                listed, 0,
            )  # fmt: skip
            begin = end
        _next_plane(arguments)


# --- back -----------------------------------------------------------------------------------------


@_compiled
def _coefficient(program, band, number):
    """Which coefficient of a band stands at a number, beyond its ends, too; -1 for zero."""
    count = program[LOW + band]
    if 0 <= number < count:
        return number
    table = TABLE + band * (program[LOW_LEFT] + program[LOW_RIGHT])
    left = program[LOW_LEFT + 2 * band]
    return program[table + (number + left if number < 0 else left + number - count)]


@_compiled
def _used(program, band, begin, end):
    """The coefficients of a band that samples ``begin … end`` (``begin`` even) are made of."""
    if program[KIND] == FILTERED:
        start, taps = program[LOW_START + 2 * band], program[LOW_TAPS + 2 * band]
        return begin // 2 + start, (end + 1) // 2 - 1 + start + taps
    first, last = _steps_for(program, begin, end)
    pairs = program[PAIRS]
    if band == program[FIRST]:
        return first - pairs, last + pairs - 1
    return first - pairs - 1 + program[DELTA], last + pairs - 1 + program[DELTA]


@_compiled
def _steps_for(program, begin, end):
    """The results k of a lifting back, at places 2k + PLACE and before, that cover ``begin … end``."""
    place = program[PLACE]
    return -((place - begin) // 2), (end - place) // 2 + 1


@_compiled
def _synthesise_row(low, high, step, program, numbers, even, odd, begin, end, scaled, buffer, listed, free):
    """Samples ``begin … end`` (``begin`` even) in halves, from bands with what lies beyond their ends."""
    one = numbers[ONE]
    size = numbers.itemsize
    if program[KIND] == LIFTED:
        place, first = program[PLACE], program[FIRST]
        k0, k1 = _steps_for(program, begin, end)
        b, a = (high, low) if first else (low, high)
        a += program[DELTA] * step
        out_a, out_b = _halves(place - 1, even, odd, step)
        scale_b, scale_a = one, one
        if scaled:
            scale_b, scale_a = numbers[SCALE + first], numbers[SCALE + 1 - first]
        _lift(b, a, step, program[PAIRS], numbers, out_b, out_a, k0, k1, scale_b, scale_a, buffer)
        return
    taps = 0
    for band in range(2):
        for tap in range(program[LOW_TAPS + 2 * band]):
            number = begin // 2 + program[LOW_START + 2 * band] + tap
            listed[free + taps] = (high if band else low) + number * step
            taps += 1
    filters = whereis(numbers) + FILTERS * size
    pairs = (end + 1) // 2 - begin // 2
    at = (begin // 2) * step
    filter_plain(
        whereis(listed) + 8 * free, filters, filters + taps * size, taps, even + at, odd + at,
        pairs * (step // size), 0, one,
    )  # fmt: skip


@_compiled
def _take(band, step, program, which, target, begin, end, like):
    """Coefficients ``begin … end`` of a band, and what stands for those beyond its ends, at ``target``."""
    size = like.itemsize
    n = step // size
    count = program[LOW + which]
    inside, outside = max(begin, 0), min(end, count)
    if outside > inside:
        copy(target + inside * step, band + inside * step, (outside - inside) * n, like[0])
    _stand_in(band, step, program, which, target, begin, min(end, 0), like)
    _stand_in(band, step, program, which, target, max(begin, count), end, like)


@_compiled
def _stand_in(band, step, program, which, target, begin, end, like):
    """What stands for coefficients beyond the ends of a band."""
    size = like.itemsize
    for number in range(begin, end):
        source = _coefficient(program, which, number)
        for k in range(step // size):
            value = like[ZERO]
            if source >= 0:
                value = peek(band + source * step + k * size, like[0])
            poke(target + number * step + k * size, value)


@_compiled
def _zero(row, count, like):
    """Zeros."""
    for k in range(count):
        poke(row + k * like.itemsize, like[ZERO])


@_compiled
def _make_row(number, band, down, along, alongs, bands, c, target, place, listed, free, scaled):
    """A row of the low or the high band of the columns, in halves, from its two bands along the rows."""
    _, _, half, origin, buffer = place
    step = c * alongs.itemsize
    width = along[LENGTH]
    source = _coefficient(down, band, number)
    if source < 0:
        _zero(target, (width + 1) // 2 * c, alongs)
        _zero(target + half, (width + 1) // 2 * c, alongs)
        return
    taken = place[0] + origin
    first = BANDS + 2 * band
    low = bands[first] + source * bands[first + BAND_ROW - BANDS]
    high = bands[first + 1] + source * bands[first + 1 + BAND_ROW - BANDS]
    # Samples away from the ends are made from the bands themselves, those near them from copies.
    inside = 2 * max(along[LOW_LEFT], along[HIGH_LEFT])
    outside = width - width % 2 - 2 * max(along[LOW_RIGHT], along[HIGH_RIGHT]) - 2
    if outside <= inside or width < SHORT:
        inside, outside = width, width
    for part in range(3):
        begin = int64(0) if part == 0 else inside if part == 1 else outside
        end = inside if part == 0 else outside if part == 1 else width
        if end <= begin:
            continue
        from_low, from_high = low, high
        if part != 1:
            from_low, from_high = taken, taken + half
            for which in range(2):
                one, last = _used(along, which, begin, end)
                _take(
                    high if which else low, step, along, which, from_high if which else from_low, one, last,
                    alongs,
                )  # fmt: skip
        _synthesise_row(
            from_low, from_high, step, along, alongs, target, target + half, begin, end, scaled, buffer,
            listed, free,
        )  # fmt: skip


@_compiled
def _synthesise_plane(arguments, down, downs, along, alongs, begin, end, place, listed):
    """Rows ``begin … end`` (``begin`` even) of one plane, both axes lifted or both filtered."""
    scratch, slot, half, origin, _ = place
    c = arguments[CHANNELS]
    x, row = arguments[X], arguments[X_ROW]
    size = downs.itemsize
    one = downs[ONE]
    width = along[LENGTH]
    count, n = width * c, width // 2
    free = down[LOW_TAPS] + down[HIGH_TAPS]
    rows = scratch + slot + origin  # (the first slot is for coefficients)
    if down[KIND] == LIFTED:
        pairs, first = down[PAIRS], down[FIRST]
        scale_b, scale_a = downs[SCALE + first], downs[SCALE + 1 - first]
        # Which band stands on even columns?
        which = along[FIRST] if along[PLACE] % 2 == 0 else 1 - along[FIRST]
        on_even, on_odd = alongs[SCALE + which], alongs[SCALE + 1 - which]
        scales = (scale_b * on_even, scale_b * on_odd, scale_a * on_even, scale_a * on_odd)
        plain = (scale_b * on_even, one, scale_a * on_even, one)
        made, whole, nowhere = rows, rows + 3 * slot, rows + 6 * slot
        states = rows + 8 * slot
        k0, k1 = _steps_for(down, begin, end)
        for t in range(k0 - pairs - 1, k1 + pairs - 1):
            k = t - pairs + 1
            now, then = t % 2, 1 - t % 2
            a, b, a1 = made + now * slot, made + 2 * slot, made + then * slot
            _make_row(
                t + down[DELTA], 1 - first, down, along, alongs, arguments, c, a, place, listed, free, c > 1
            )
            if t < k0 - pairs:
                if c > 1:
                    _join_row(a, a + half, whole + now * slot, width, c, alongs)
                continue
            _make_row(t, first, down, along, alongs, arguments, c, b, place, listed, free, c > 1)
            at_b, at_a = 2 * k + down[PLACE], 2 * k + down[PLACE] - 1
            out_b = x + at_b * row if k >= k0 and begin <= at_b < end else nowhere
            out_a = x + at_a * row if k >= k0 and begin <= at_a < end else nowhere + slot
            if c == 1:
                _down(pairs, JOIN, b, a, a1, states, slot, half, out_b, out_a, n, downs, scales)
                if width % 2:
                    o, e = 2 * n * size, n * size
                    _down(
                        pairs, PLAIN, b + e, a + e, a1 + e, states + e, slot, 0,
                        out_b + o, out_a + o, 1, downs, plain,
                    )  # fmt: skip
            else:
                _join_row(a, a + half, whole + now * slot, width, c, alongs)
                _join_row(b, b + half, whole + 2 * slot, width, c, alongs)
                _down(
                    pairs, PLAIN, whole + 2 * slot, whole + now * slot, whole + then * slot, states,
                    slot, 0, out_b, out_a, count, downs, (scale_b, one, scale_a, one),
                )  # fmt: skip
        return
    low_taps, taps = down[LOW_TAPS], free
    filters = whereis(downs) + FILTERS * size
    nowhere, parts = rows, rows + slot
    ring = rows + 2 * slot
    for m in range(begin // 2, (end + 1) // 2):
        # Rows of coefficients stay in two rings; each pair of rows takes one more of both bands.
        for band in range(2):
            used = down[LOW_TAPS + 2 * band]
            last = m + down[LOW_START + 2 * band] + used - 1
            for number in range(last - used + 1 if m == begin // 2 else last, last + 1):
                at = ring + (band * low_taps + number % used) * slot
                if c == 1:
                    _make_row(number, band, down, along, alongs, arguments, c, at, place, listed, taps, True)
                else:
                    _make_row(
                        number, band, down, along, alongs, arguments, c, parts, place, listed, taps, True
                    )
                    _join_row(parts, parts + half, at, width, c, alongs)
            for tap in range(used):
                number = m + down[LOW_START + 2 * band] + tap
                listed[band * low_taps + tap] = ring + (band * low_taps + number % used) * slot
        even = x + 2 * m * row
        odd = even + row if 2 * m + 1 < end else nowhere
        addresses = whereis(listed)
        if c == 1:
            filter_join(addresses, filters, filters + taps * size, taps, even, odd, n, half, one)
            if width % 2:
                for tap in range(taps):
                    listed[tap] += n * size
                o = 2 * n * size
                filter_plain(addresses, filters, filters + taps * size, taps, even + o, odd + o, 1, 0, one)
        else:
            filter_plain(addresses, filters, filters + taps * size, taps, even, odd, count, 0, one)


@_compiled
def synthesise_planes(arguments, down, downs, along, alongs, listed, like):
    """One level of images back: rows ``BEGIN … END`` of each plane."""
    arguments = words(arguments)
    down = words(down)
    downs = reals(downs, like)
    along = words(along)
    alongs = reals(alongs, like)
    listed = words(listed)
    for _ in range(arguments[PLANES]):
        _synthesise_plane(
            arguments, down, downs, along, alongs, arguments[BEGIN], arguments[END], _place(arguments), listed
        )
        _next_plane(arguments)


@_compiled
def synthesise_columns(arguments, down, downs, listed, like):
    """One level down the columns back: rows ``BEGIN … END`` (``BEGIN`` even)."""
    arguments = words(arguments)
    down = words(down)
    downs = reals(downs, like)
    listed = words(listed)
    scratch, slot, _, origin, _ = _place(arguments)
    size = downs.itemsize
    one = downs[ONE]
    row, begin, end = arguments[X_ROW], arguments[BEGIN], arguments[END]
    pairs, first = down[PAIRS], down[FIRST]
    zero = scratch + origin
    nowhere = zero + slot
    states = zero + 3 * slot
    filters = whereis(downs) + FILTERS * size
    scales = (downs[SCALE + first], one, downs[SCALE + 1 - first], one)
    taps = down[LOW_TAPS] + down[HIGH_TAPS]
    _zero(zero, min(STRIP, arguments[CHANNELS]), downs)
    for _ in range(arguments[PLANES]):
        for strip in range(0, arguments[CHANNELS], STRIP):
            count = min(STRIP, arguments[CHANNELS] - strip)
            x = arguments[X] + strip * size
            if down[KIND] == LIFTED:
                k0, k1 = _steps_for(down, begin, end)
                for t in range(k0 - pairs, k1 + pairs - 1):
                    k = t - pairs + 1
                    at_b, at_a = 2 * k + down[PLACE], 2 * k + down[PLACE] - 1
                    out_b = x + at_b * row if k >= k0 and begin <= at_b < end else nowhere
                    out_a = x + at_a * row if k >= k0 and begin <= at_a < end else nowhere + slot
                    other = t + down[DELTA]
                    _down(
                        pairs, PLAIN,
                        _band_row(arguments, down, first, t, zero, strip * size),
                        _band_row(arguments, down, 1 - first, other, zero, strip * size),
                        _band_row(arguments, down, 1 - first, other - 1, zero, strip * size),
                        states, slot, 0, out_b, out_a, count, downs, scales,
                    )  # fmt: skip
                continue
            for m in range(begin // 2, (end + 1) // 2):
                listing = 0
                for band in range(2):
                    for tap in range(down[LOW_TAPS + 2 * band]):
                        number = m + down[LOW_START + 2 * band] + tap
                        listed[listing] = _band_row(arguments, down, band, number, zero, strip * size)
                        listing += 1
                even = x + 2 * m * row
                odd = even + row if 2 * m + 1 < end else nowhere
                filter_plain(whereis(listed), filters, filters + taps * size, taps, even, odd, count, 0, one)
        _next_plane(arguments)


@_compiled
def _band_row(arguments, program, band, number, zero, offset):
    """The address of a row of coefficients, or of zeros."""
    source = _coefficient(program, band, number)
    return arguments[BANDS + band] + source * arguments[BAND_ROW + band] + offset if source >= 0 else zero


@_compiled
def synthesise_lines(arguments, along, alongs, listed, like):
    """One level along lines back: samples ``BEGIN … END`` (``BEGIN`` even) of each."""
    arguments = words(arguments)
    along = words(along)
    alongs = reals(alongs, like)
    listed = words(listed)
    scratch, slot, half, origin, buffer = _place(arguments)
    c = arguments[CHANNELS]
    step = c * alongs.itemsize
    chunk = 2 * max(8, STRIP // (2 * c))
    for _ in range(arguments[PLANES]):
        for begin in range(arguments[BEGIN], arguments[END], chunk):
            end = min(begin + chunk, arguments[END])
            taken = scratch + origin
            starts = (taken, taken + half)
            for which in range(2):
                first, last = _used(along, which, begin, end)
                target = starts[which] - (begin // 2) * step
                _take(arguments[BANDS + which], step, along, which, target, first, last, alongs)
            at = (begin // 2) * step
            even = taken + slot - at
            _synthesise_row(
                starts[0] - at, starts[1] - at, step, along, alongs, even, even + half, begin, end, True,
                buffer, listed, 0,
            )  # fmt: skip
            _join_row(even + at, even + half + at, arguments[X] + begin * step, end - begin, c, alongs)
        _next_plane(arguments)


# --- one step at a time ---------------------------------------------------------------------------

_stepwise: Any = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})


@_stepwise
def add_step(target, source, offsets, factors, begin, end, border, table, first, last):
    """``target[i] += Σ factors[t] · source[i + offsets[t]]``, of samples ``first … last`` side by side."""
    for outer in range(target.shape[0]):
        if target.shape[2] == 1:
            part = target[outer, begin:end, 0]
            for tap in range(factors.size):
                factor = factors[tap]
                other = source[outer, begin + offsets[tap] : end + offsets[tap], 0]
                for i in range(part.size):
                    part[i] += factor * other[i]
        else:
            for i in range(begin, end):
                row = target[outer, i, first:last]
                for tap in range(factors.size):
                    factor = factors[tap]
                    beside = source[outer, i + offsets[tap], first:last]
                    for j in range(row.size):
                        row[j] += factor * beside[j]
        for number in range(border.size):
            row = target[outer, border[number], first:last]
            for tap in range(factors.size):
                if table[number, tap] >= 0:
                    factor = factors[tap]
                    beside = source[outer, table[number, tap], first:last]
                    for j in range(row.size):
                        row[j] += factor * beside[j]


@_stepwise
def add_rounded(target, source, offsets, factors, begin, end, border, table, first, last, whole, unit, sign):
    """The same for integers: ``sign · ⌊sum + ½⌋``; the sum is exact where factors are ``whole / unit``."""
    for outer in range(target.shape[0]):
        for number in range(begin, end + border.size):
            i = number if number < end else border[number - end]
            for j in range(first, last):
                total, exact = 0.0, 0
                for tap in range(factors.size):
                    at = i + offsets[tap] if number < end else table[number - end, tap]
                    if at >= 0:
                        if unit:
                            exact += whole[tap] * source[outer, at, j]
                        else:
                            total += factors[tap] * source[outer, at, j]
                if unit:
                    target[outer, i, j] += sign * ((exact + unit // 2) // unit)
                else:
                    target[outer, i, j] += sign * int(np.floor(total + 0.5))
