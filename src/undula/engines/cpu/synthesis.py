"""The kernels of synthesis, from bands to samples: rows are processed from the top down.

Rows of coefficients are lifted along their length first, and then combined down the columns; what lies beyond
the ends of a band is zero, or stands elsewhere in it.
"""

from __future__ import annotations

from numba import int64

from .kernel_layout import (
    BAND_ROW,
    BANDS,
    BEFORE,
    BEGIN,
    CHANNELS,
    DELTA,
    END,
    FILTERED,
    FILTERS,
    FIRST,
    FOLD_PLACES,
    FOLD_WEIGHTS,
    FOLDS,
    HIGH_LEFT,
    HIGH_RIGHT,
    HIGH_TAPS,
    INSIDE,
    JOIN,
    KIND,
    LENGTH,
    LIFTED,
    LINE,
    LOW,
    LOW_LEFT,
    LOW_RIGHT,
    LOW_START,
    LOW_TAPS,
    LOW_TURN,
    ONE,
    PAIRS,
    PLACE,
    PLAIN,
    PLANES,
    SCALE,
    SHORT,
    STRIP,
    TABLE,
    X_ROW,
    ZERO,
    X,
)
from .rows import compiled, down_columns, halves, join_row, lift, next_plane, scratch_of, zero_row
from .simd import copy, filter_join, filter_plain, filter_zip, peek, poke, reals, times, whereis, words

__all__ = ["synthesise_columns", "synthesise_lines", "synthesise_planes"]


@compiled
def _coefficient(op, band, number):
    """Return the coefficient of a band at a number, which may be beyond its ends; -1 for zero."""
    count = op[LOW + band]
    if 0 <= number < count:
        return number
    table = TABLE + band * (op[LOW_LEFT] + op[LOW_RIGHT])
    left = op[LOW_LEFT + 2 * band]
    return op[table + (number + left if number < 0 else left + number - count)]


@compiled
def _used(op, band, begin, end):
    """Return the coefficients of a band that samples ``begin … end`` (``begin`` even) are made of."""
    if op[KIND] == FILTERED:
        start, taps = op[LOW_START + 2 * band], op[LOW_TAPS + 2 * band]
        return begin // 2 + start, (end + 1) // 2 - 1 + start + taps
    first, last = _steps_for(op, begin, end)
    pairs = op[PAIRS]
    if band == op[FIRST]:
        return first - pairs, last + pairs - 1
    return first - pairs - 1 + op[DELTA], last + pairs - 1 + op[DELTA]


@compiled
def _steps_for(op, begin, end):
    """Return the results k of inverse lifting, at places up to 2k + PLACE, that cover ``begin … end``."""
    place = op[PLACE]
    return -((place - begin) // 2), (end - place) // 2 + 1


@compiled
def _turned(op, band, tap):
    """Return which tap of a band comes at this turn."""
    at, taps = op[LOW_TURN + band] + tap, op[LOW_TAPS + 2 * band]
    return at - taps if at >= taps else at


@compiled
def _synthesise_row(low, high, step, op, numbers, even, odd, begin, end, scaled, buffer, listed, free):
    """Compute samples ``begin … end`` (``begin`` even) in halves, from bands and what lies beyond them."""
    unit = numbers[ONE]
    size = numbers.itemsize
    if op[KIND] == LIFTED:
        place, first = op[PLACE], op[FIRST]
        k0, k1 = _steps_for(op, begin, end)
        b, a = (high, low) if first else (low, high)
        a += op[DELTA] * step
        out_a, out_b = halves(place - 1, even, odd, step)
        scale_b, scale_a = unit, unit
        if scaled:
            scale_b, scale_a = numbers[SCALE + first], numbers[SCALE + 1 - first]
        lift(b, a, step, op[PAIRS], numbers, out_b, out_a, k0, k1, scale_b, scale_a, buffer)
        return
    taps = _list_sources(low, high, step, op, begin, listed, free)
    filters = whereis(numbers) + FILTERS * size
    pairs = (end + 1) // 2 - begin // 2
    at = (begin // 2) * step
    filter_plain(
        whereis(listed) + 8 * free, filters, filters + taps * size, taps, even + at, odd + at,
        pairs * (step // size), 0, unit,
    )  # fmt: skip


@compiled
def _list_sources(low, high, step, op, begin, listed, free):
    """List the addresses of what the filters read for samples from ``begin`` on; return how many."""
    taps = 0
    for band in range(1, -1, -1):
        for tap in range(op[LOW_TAPS + 2 * band]):
            number = begin // 2 + op[LOW_START + 2 * band] + _turned(op, band, tap)
            listed[free + taps] = (high if band else low) + number * step
            taps += 1
    return taps


@compiled
def _middle(op):
    """Return which samples of a line are made of the bands alone; those near the ends need copies."""
    length = op[LENGTH]
    left, right = max(op[LOW_LEFT], op[HIGH_LEFT]), max(op[LOW_RIGHT], op[HIGH_RIGHT])
    if left == 0 and right == 0:
        return int64(0), length
    inside, outside = 2 * left, length - length % 2 - 2 * right - 2
    if outside <= inside or length < SHORT:
        return length, length
    return inside, outside


@compiled
def _take(band, step, op, which, target, begin, end, like):
    """Copy coefficients ``begin … end`` of a band to ``target``, and those beyond its ends as well."""
    size = like.itemsize
    n = step // size
    count = op[LOW + which]
    inside, outside = max(begin, 0), min(end, count)
    if outside > inside:
        copy(target + inside * step, band + inside * step, (outside - inside) * n, like[0])
    _stand_in(band, step, op, which, target, begin, min(end, 0), like)
    _stand_in(band, step, op, which, target, max(begin, count), end, like)


@compiled
def _stand_in(band, step, op, which, target, begin, end, like):
    """Copy what stands for coefficients beyond the ends of a band."""
    size = like.itemsize
    if op[FOLDS] > 0:  # There are no coefficients beyond the ends of a line that is folded.
        zero_row(target + begin * step, (end - begin) * (step // size), like)
        return
    for number in range(begin, end):
        source = _coefficient(op, which, number)
        for k in range(step // size):
            value = like[ZERO]
            if source >= 0:
                value = peek(band + source * step + k * size, like[0])
            poke(target + number * step + k * size, value, like[0])


@compiled
def _make_row(number, band, down, along, alongs, bands, c, target, place, listed, free, scaled):
    """Compute a row of the low or high band of the columns, in halves, from its two bands along the rows.

    In adjoints, the row is longer, and what is beyond the ends of the line is added to samples of the line.
    """
    _, _, half, origin, buffer = place
    step = c * alongs.itemsize
    width = along[LENGTH]
    source = _coefficient(down, band, number)
    if source < 0:
        zero_row(target, (width + 1) // 2 * c, alongs)
        zero_row(target + half, (width + 1) // 2 * c, alongs)
        return
    taken = place[0] + origin
    first = BANDS + 2 * band
    low = bands[first] + source * bands[first + BAND_ROW - BANDS]
    high = bands[first + 1] + source * bands[first + 1 + BAND_ROW - BANDS]
    inside, outside = _middle(along)
    for part in range(3):
        begin = int64(0) if part == 0 else inside if part == 1 else outside
        end = inside if part == 0 else outside if part == 1 else width
        if end <= begin:
            continue
        from_low, from_high = low, high
        if part != 1:
            from_low, from_high = taken, taken + half
            for which in range(2):
                unit, last = _used(along, which, begin, end)
                _take(
                    high if which else low, step, along, which, from_high if which else from_low, unit, last,
                    alongs,
                )  # fmt: skip
        _synthesise_row(
            from_low, from_high, step, along, alongs, target, target + half, begin, end, scaled, buffer,
            listed, free,
        )  # fmt: skip
    places, weights = along[FOLD_PLACES], along[FOLD_WEIGHTS]
    for k in range(along[FOLDS]):
        source = _in_halves(target, half, step, along[places + 2 * k])
        sample = _in_halves(target, half, step, along[places + 2 * k + 1])
        weight = alongs[weights + k]
        for channel in range(0, step, alongs.itemsize):
            value = peek(source + channel, weight)
            poke(sample + channel, peek(sample + channel, weight) + weight * value, weight)


@compiled
def _in_halves(row, half, step, place):
    """Return the address of a sample of a row in halves."""
    return row + (place & 1) * half + (place >> 1) * step


@compiled
def _synthesise_plane(arguments, down, downs, along, alongs, begin, end, place, listed):
    """Compute rows ``begin … end`` (``begin`` even) of a plane, both axes lifted or both filtered."""
    scratch, slot, half, origin, _ = place
    c = arguments[CHANNELS]
    x, row = arguments[X], arguments[X_ROW]
    size = downs.itemsize
    unit = downs[ONE]
    width = along[INSIDE]
    count, n = width * c, width // 2
    start = along[BEFORE] // 2 * c * size  # of the line in a row
    free = down[LOW_TAPS] + down[HIGH_TAPS]
    rows = scratch + slot + origin  # (the first slot is for coefficients)
    if down[KIND] == LIFTED:
        pairs, first = down[PAIRS], down[FIRST]
        scale_b, scale_a = downs[SCALE + first], downs[SCALE + 1 - first]
        # Which band stands on even columns?
        which = along[FIRST] if along[PLACE] % 2 == 0 else 1 - along[FIRST]
        on_even, on_odd = alongs[SCALE + which], alongs[SCALE + 1 - which]
        # Samples of both halves are added to each other if rows are folded, so that they are scaled before.
        scaled = c > 1 or along[FOLDS] > 0
        if scaled:
            on_even, on_odd = unit, unit
        b_even, a_even = times(scale_b, on_even), times(scale_a, on_even)
        scales = (b_even, times(scale_b, on_odd), a_even, times(scale_a, on_odd))
        plain = (b_even, unit, a_even, unit)
        computed, merged, nowhere = rows, rows + 3 * slot, rows + 6 * slot
        states = rows + 8 * slot
        k0, k1 = _steps_for(down, begin, end)
        for t in range(k0 - pairs - 1, k1 + pairs - 1):
            k = t - pairs + 1
            now, then = t % 2, 1 - t % 2
            a, b, a1 = computed + now * slot, computed + 2 * slot, computed + then * slot
            _make_row(
                t + down[DELTA], 1 - first, down, along, alongs, arguments, c, a, place, listed, free, scaled
            )
            if t < k0 - pairs:
                if c > 1:
                    join_row(a + start, a + start + half, merged + now * slot, width, c, alongs)
                continue
            _make_row(t, first, down, along, alongs, arguments, c, b, place, listed, free, scaled)
            at_b, at_a = 2 * k + down[PLACE], 2 * k + down[PLACE] - 1
            out_b = x + at_b * row if k >= k0 and begin <= at_b < end else nowhere
            out_a = x + at_a * row if k >= k0 and begin <= at_a < end else nowhere + slot
            a, b, a1 = a + start, b + start, a1 + start
            if c == 1:
                down_columns(pairs, JOIN, b, a, a1, states, slot, half, out_b, out_a, n, downs, scales)
                if width % 2:
                    o, e = 2 * n * size, n * size
                    down_columns(
                        pairs, PLAIN, b + e, a + e, a1 + e, states + e, slot, 0,
                        out_b + o, out_a + o, 1, downs, plain,
                    )  # fmt: skip
            else:
                join_row(a, a + half, merged + now * slot, width, c, alongs)
                join_row(b, b + half, merged + 2 * slot, width, c, alongs)
                down_columns(
                    pairs, PLAIN, merged + 2 * slot, merged + now * slot, merged + then * slot, states,
                    slot, 0, out_b, out_a, count, downs, (scale_b, unit, scale_a, unit),
                )  # fmt: skip
        return
    low_taps, high_taps, taps = down[LOW_TAPS], down[HIGH_TAPS], free
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
                    join_row(parts + start, parts + start + half, at, width, c, alongs)
            for tap in range(used):
                number = m + down[LOW_START + 2 * band] + _turned(down, band, tap)
                at = ring + (band * low_taps + number % used) * slot
                listed[(1 - band) * high_taps + tap] = at + start if c == 1 else at
        even = x + 2 * m * row
        odd = even + row if 2 * m + 1 < end else nowhere
        addresses = whereis(listed)
        if c == 1:
            filter_join(addresses, filters, filters + taps * size, taps, even, odd, n, half, unit)
            if width % 2:
                for tap in range(taps):
                    listed[tap] += n * size
                o = 2 * n * size
                filter_plain(addresses, filters, filters + taps * size, taps, even + o, odd + o, 1, 0, unit)
        else:
            filter_plain(addresses, filters, filters + taps * size, taps, even, odd, count, 0, unit)


@compiled
def synthesise_planes(arguments, down, downs, along, alongs, listed, like):
    """Invert one level of images: rows ``BEGIN … END`` of each plane."""
    arguments = words(arguments)
    down = words(down)
    downs = reals(downs, like)
    along = words(along)
    alongs = reals(alongs, like)
    listed = words(listed)
    for _ in range(arguments[PLANES]):
        _synthesise_plane(
            arguments,
            down,
            downs,
            along,
            alongs,
            arguments[BEGIN],
            arguments[END],
            scratch_of(arguments),
            listed,
        )
        next_plane(arguments)


@compiled
def _band_row(arguments, op, band, number, zero, offset):
    """Return the address of a row of coefficients, or of zeros."""
    source = _coefficient(op, band, number)
    return arguments[BANDS + band] + source * arguments[BAND_ROW + band] + offset if source >= 0 else zero


@compiled
def synthesise_columns(arguments, down, downs, listed, like):
    """Invert one level down the columns: rows ``BEGIN … END`` (``BEGIN`` even)."""
    arguments = words(arguments)
    down = words(down)
    downs = reals(downs, like)
    listed = words(listed)
    scratch, slot, _, origin, _ = scratch_of(arguments)
    size = downs.itemsize
    unit = downs[ONE]
    row, begin, end = arguments[X_ROW], arguments[BEGIN], arguments[END]
    pairs, first = down[PAIRS], down[FIRST]
    zero = scratch + origin
    nowhere = zero + slot
    states = zero + 3 * slot
    filters = whereis(downs) + FILTERS * size
    scales = (downs[SCALE + first], unit, downs[SCALE + 1 - first], unit)
    taps = down[LOW_TAPS] + down[HIGH_TAPS]
    zero_row(zero, min(STRIP, arguments[CHANNELS]), downs)
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
                    down_columns(
                        pairs, PLAIN,
                        _band_row(arguments, down, first, t, zero, strip * size),
                        _band_row(arguments, down, 1 - first, other, zero, strip * size),
                        _band_row(arguments, down, 1 - first, other - 1, zero, strip * size),
                        states, slot, 0, out_b, out_a, count, downs, scales,
                    )  # fmt: skip
                continue
            for m in range(begin // 2, (end + 1) // 2):
                listing = 0
                for band in range(1, -1, -1):
                    for tap in range(down[LOW_TAPS + 2 * band]):
                        number = m + down[LOW_START + 2 * band] + _turned(down, band, tap)
                        listed[listing] = _band_row(arguments, down, band, number, zero, strip * size)
                        listing += 1
                even = x + 2 * m * row
                odd = even + row if 2 * m + 1 < end else nowhere
                filter_plain(whereis(listed), filters, filters + taps * size, taps, even, odd, count, 0, unit)
        next_plane(arguments)


@compiled
def synthesise_lines(arguments, along, alongs, listed, like):
    """Invert one level along lines: samples ``BEGIN … END`` (``BEGIN`` even) of each."""
    arguments = words(arguments)
    along = words(along)
    alongs = reals(alongs, like)
    listed = words(listed)
    scratch, slot, half, origin, buffer = scratch_of(arguments)
    c = arguments[CHANNELS]
    step = c * alongs.itemsize
    chunk = 2 * max(8, LINE // (2 * c))
    zipped = c == 1 and along[KIND] == FILTERED
    inside, outside = _middle(along)
    for _ in range(arguments[PLANES]):
        begin = arguments[BEGIN]
        while begin < arguments[END]:
            end = min(begin + chunk, arguments[END])
            at = (begin // 2) * step
            low, high = arguments[BANDS], arguments[BANDS + 1]
            x = arguments[X] + begin * step
            if inside <= begin < outside:
                end = min(arguments[END] if zipped else end, outside)
                if zipped and end > begin + 1:
                    end -= (end - begin) % 2  # The last sample of an odd line has no partner.
            else:
                end = min(end, inside) if begin < inside else end
                low = scratch + origin - at
                high = low + half
                for which in range(2):
                    first, last = _used(along, which, begin, end)
                    target = high if which else low
                    _take(arguments[BANDS + which], step, along, which, target, first, last, alongs)
            if zipped and (end - begin) % 2 == 0:
                taps = _list_sources(low, high, step, along, begin, listed, 0)
                filters = whereis(alongs) + FILTERS * step
                filter_zip(
                    whereis(listed), filters, filters + taps * step, taps, x, x, (end - begin) // 2, 0,
                    alongs[ONE],
                )  # fmt: skip
            else:
                even = scratch + origin + slot - at
                _synthesise_row(
                    low, high, step, along, alongs, even, even + half, begin, end, True, buffer, listed, 0
                )
                join_row(even + at, even + half + at, x, end - begin, c, alongs)
            begin = end
        next_plane(arguments)
