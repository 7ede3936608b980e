"""Integer lifting along one axis of a chunk, band after band, in the language of :mod:`.translate`.

An axis is divided into groups of samples that are transformed by themselves. In its result the approximation
is followed by the details from the coarsest level to the finest one. The kinds of steps are::

    DELTA    d[i] = x[i] - x[i-1],                              d[0] = x[0]
    HAAR     d[i] = x[2i+1] - x[2i],                            s[i] = x[2i] + (d[i] >> 1)
    LIFT53   d[i] = x[2i+1] - ((x[2i] + x[2i+2] + 1) >> 1),     s[i] = x[2i] + ((d[i-1] + d[i] + 2) >> 2)

Samples are converted to the wider integers of coefficients, the *plane*, as they are read. Sums are computed
with unsigned integers of the same size, ``bits``, which wrap around: so damaged coefficients lead to wrong
samples, and to nothing worse. Several rows are processed at a time, as many columns wide as caches hold.
"""

from __future__ import annotations

import numpy as np

from .translate import converted, reals, size_of, words

__all__ = ["DELTA", "HAAR", "HEAD_WORDS", "LIFT53", "PASS_WORDS"]

DELTA, HAAR, LIFT53 = range(3)  # kinds of steps
HEAD_WORDS, PASS_WORDS = 4, 12  # words of the table of a chunk, and of each of its passes

# --- rows -----------------------------------------------------------------------------------------


def load_row(source, target, count, convert, sample, plane, bits):
    """Read samples, or coefficients unless they are to be converted."""
    out = reals(target, bits)
    if convert:
        x = reals(source, sample)
        for j in range(count):
            out[j] = converted(converted(x[j], plane), bits)
    else:
        y = reals(source, bits)
        for j in range(count):
            out[j] = y[j]


def store_row(source, target, count, convert, sample, plane, bits):
    """Write samples, or coefficients unless they are to be converted; return bits if some do not fit."""
    x = reals(source, bits)
    lost = converted(0, bits)
    if convert:
        out = reals(target, sample)
        for j in range(count):
            narrow = converted(x[j], sample)
            out[j] = narrow
            lost |= x[j] ^ converted(converted(narrow, plane), bits)
    else:
        kept = reals(target, bits)
        for j in range(count):
            kept[j] = x[j]
    return lost


def subtract_rows(target, first, second, count, bits):
    """Write ``first - second``."""
    out, x, y = reals(target, bits), reals(first, bits), reals(second, bits)
    for j in range(count):
        out[j] = x[j] - y[j]


def add_rows(target, first, second, count, bits):
    """Write ``first + second``."""
    out, x, y = reals(target, bits), reals(first, bits), reals(second, bits)
    for j in range(count):
        out[j] = x[j] + y[j]


def add_half(target, base, detail, count, plane, bits):
    """Write ``base + ⌊detail / 2⌋``."""
    out, x, y = reals(target, bits), reals(base, bits), reals(detail, bits)
    for j in range(count):
        out[j] = x[j] + converted(converted(y[j], plane) >> 1, bits)


def subtract_half(target, base, detail, count, plane, bits):
    """Write ``base - ⌊detail / 2⌋``."""
    out, x, y = reals(target, bits), reals(base, bits), reals(detail, bits)
    for j in range(count):
        out[j] = x[j] - converted(converted(y[j], plane) >> 1, bits)


def subtract_mean(target, base, left, right, count, plane, bits):
    """Write ``base - ⌊(left + right + 1) / 2⌋``."""
    out, x = reals(target, bits), reals(base, bits)
    y, z = reals(left, bits), reals(right, bits)
    for j in range(count):
        out[j] = x[j] - converted(converted(y[j] + z[j] + 1, plane) >> 1, bits)


def add_mean(target, base, left, right, count, plane, bits):
    """Write ``base + ⌊(left + right + 1) / 2⌋``."""
    out, x = reals(target, bits), reals(base, bits)
    y, z = reals(left, bits), reals(right, bits)
    for j in range(count):
        out[j] = x[j] + converted(converted(y[j] + z[j] + 1, plane) >> 1, bits)


def add_quarter(target, base, left, right, count, plane, bits):
    """Write ``base + ⌊(left + right + 2) / 4⌋``."""
    out, x = reals(target, bits), reals(base, bits)
    y, z = reals(left, bits), reals(right, bits)
    for j in range(count):
        out[j] = x[j] + converted(converted(y[j] + z[j] + 2, plane) >> 2, bits)


def subtract_quarter(target, base, left, right, count, plane, bits):
    """Write ``base - ⌊(left + right + 2) / 4⌋``."""
    out, x = reals(target, bits), reals(base, bits)
    y, z = reals(left, bits), reals(right, bits)
    for j in range(count):
        out[j] = x[j] - converted(converted(y[j] + z[j] + 2, plane) >> 2, bits)


# --- one level along an axis that is not the last one ----------------------------------------------


def analyse_level(x, pitch, low, low_pitch, high, high_pitch, count, columns, kind, plane, bits):
    """Compute one level from ``count`` rows, at least two. Pitches are distances of rows in bytes."""
    details = count >> 1
    for i in range(details):
        even = x + 2 * i * pitch
        odd, detail = even + pitch, high + i * high_pitch
        if kind == HAAR:
            subtract_rows(detail, odd, even, columns, bits)
            add_half(low + i * low_pitch, even, detail, columns, plane, bits)
        else:
            right = odd + pitch if 2 * i + 2 < count else even
            subtract_mean(detail, odd, even, right, columns, plane, bits)
            left = detail - high_pitch if i > 0 else detail
            add_quarter(low + i * low_pitch, even, left, detail, columns, plane, bits)
    if count & 1:
        even = x + 2 * details * pitch
        last = high + (details - 1) * high_pitch
        if kind == HAAR:
            load_row(even, low + details * low_pitch, columns, 0, bits, plane, bits)
        else:
            add_quarter(low + details * low_pitch, even, last, last, columns, plane, bits)


def synthesise_level(x, pitch, low, low_pitch, high, high_pitch, count, columns, kind, plane, bits):
    """Compute ``count`` rows, at least two, from one level."""
    details = count >> 1
    if kind == HAAR:
        for i in range(details):
            even, detail = x + 2 * i * pitch, high + i * high_pitch
            subtract_half(even, low + i * low_pitch, detail, columns, plane, bits)
            add_rows(even + pitch, even, detail, columns, bits)
        if count & 1:
            load_row(low + details * low_pitch, x + 2 * details * pitch, columns, 0, bits, plane, bits)
        return
    subtract_quarter(x, low, high, high, columns, plane, bits)
    for i in range(details):
        even, detail = x + 2 * i * pitch, high + i * high_pitch
        right = even
        if 2 * i + 2 < count:
            right = even + 2 * pitch
            after = detail + high_pitch if i + 1 < details else detail
            subtract_quarter(right, low + (i + 1) * low_pitch, detail, after, columns, plane, bits)
        add_mean(even + pitch, detail, even, right, columns, plane, bits)


def analyse_group(x, spare, pitch, target, target_pitch, count, columns, levels, kind, plane, bits):
    """Transform ``count`` rows at ``x``, which are overwritten; ``spare`` has room for half of them."""
    size, level = count, 0
    while level < levels and size >= 2:
        half = (size + 1) >> 1
        last = level + 1 == levels or half < 2
        low = target if last else spare
        low_pitch = target_pitch if last else pitch
        analyse_level(
            x, pitch, low, low_pitch, target + half * target_pitch, target_pitch,
            size, columns, kind, plane, bits,
        )  # fmt: skip
        x, spare = spare, x
        size = half
        level += 1
    if level == 0:
        for i in range(count):
            load_row(x + i * pitch, target + i * target_pitch, columns, 0, bits, plane, bits)


def synthesise_group(x, spare, pitch, source, source_pitch, count, columns, levels, kind, plane, bits):
    """Compute ``count`` rows from a group of coefficients; return the address of the buffer they are in."""
    depth, size = 0, count
    while depth < levels and size >= 2:
        depth += 1
        size = (size + 1) >> 1
    low, low_pitch = source, source_pitch
    if depth == 0:
        for i in range(count):
            load_row(source + i * source_pitch, x + i * pitch, columns, 0, bits, plane, bits)
        return x
    while depth > 0:
        depth -= 1
        size = (count + (1 << depth) - 1) >> depth
        half = (size + 1) >> 1
        synthesise_level(
            x, pitch, low, low_pitch, source + half * source_pitch, source_pitch,
            size, columns, kind, plane, bits,
        )  # fmt: skip
        low, low_pitch = x, pitch
        x, spare = spare, x
    return low


def encode_columns(numbers, source, target, scratch, convert, sample, plane, bits):
    """Transform along an axis with other axes behind it."""
    outer, count, inner, group = numbers[0], numbers[1], numbers[2], numbers[3]
    levels, kind, width = numbers[4], numbers[5], numbers[6]
    size = size_of(plane)
    sample_size = size_of(sample) if convert else size
    pitch, target_pitch = width * size, inner * size
    for index in range(outer):
        begin = 0
        while begin < inner:
            columns = min(width, inner - begin)
            first = 0
            while first < count:
                rows = min(group, count - first)
                place = (index * count + first) * inner + begin
                result = target + place * size
                for i in range(rows):
                    row = source + (place + i * inner) * sample_size
                    load_row(row, scratch + i * pitch, columns, convert, sample, plane, bits)
                if kind == DELTA:
                    load_row(scratch, result, columns, 0, bits, plane, bits)
                    for i in range(1, rows):
                        row = scratch + i * pitch
                        subtract_rows(result + i * target_pitch, row, row - pitch, columns, bits)
                else:
                    analyse_group(
                        scratch, scratch + group * pitch, pitch, result, target_pitch,
                        rows, columns, levels, kind, plane, bits,
                    )  # fmt: skip
                first += rows
            begin += columns


def decode_columns(numbers, source, target, scratch, convert, sample, plane, bits):
    """Undo :func:`encode_columns`; return bits if samples do not fit."""
    outer, count, inner, group = numbers[0], numbers[1], numbers[2], numbers[3]
    levels, kind, width = numbers[4], numbers[5], numbers[6]
    size = size_of(plane)
    sample_size = size_of(sample) if convert else size
    pitch, source_pitch = width * size, inner * size
    lost = converted(0, bits)
    for index in range(outer):
        begin = 0
        while begin < inner:
            columns = min(width, inner - begin)
            first = 0
            while first < count:
                rows = min(group, count - first)
                place = (index * count + first) * inner + begin
                coefficients = source + place * size
                result = scratch
                if kind == DELTA:
                    load_row(coefficients, scratch, columns, 0, bits, plane, bits)
                    for i in range(1, rows):
                        row = scratch + i * pitch
                        add_rows(row, row - pitch, coefficients + i * source_pitch, columns, bits)
                else:
                    result = synthesise_group(
                        scratch, scratch + group * pitch, pitch, coefficients, source_pitch,
                        rows, columns, levels, kind, plane, bits,
                    )  # fmt: skip
                for i in range(rows):
                    row = target + (place + i * inner) * sample_size
                    lost |= store_row(result + i * pitch, row, columns, convert, sample, plane, bits)
                first += rows
            begin += columns
    return lost


# --- the last axis ---------------------------------------------------------------------------------


def split_line(source, even, odd, count, bits):
    """Write even and odd samples apart, and repeat the last even one."""
    x, first, second = reals(source, bits), reals(even, bits), reals(odd, bits)
    pairs = count >> 1
    for j in range(pairs):
        first[j] = x[2 * j]
        second[j] = x[2 * j + 1]
    if count & 1:
        first[pairs] = x[count - 1]
    else:
        first[pairs] = x[count - 2]


def join_line(target, even, odd, count, bits):
    """Interleave even and odd samples."""
    out, first, second = reals(target, bits), reals(even, bits), reals(odd, bits)
    pairs = count >> 1
    for j in range(pairs):
        out[2 * j] = first[j]
        out[2 * j + 1] = second[j]
    if count & 1:
        out[count - 1] = first[pairs]


def analyse_line_level(line, low, high, even, odd, count, kind, plane, bits):
    """Compute one level of a line of at least two samples."""
    size, details = size_of(plane), count >> 1
    split_line(line, even, odd, count, bits)
    if kind == HAAR:
        subtract_rows(high, odd, even, details, bits)
        add_half(low, even, high, details, plane, bits)
        if count & 1:
            load_row(even + details * size, low + details * size, 1, 0, bits, plane, bits)
        return
    subtract_mean(high, odd, even, even + size, details, plane, bits)
    add_quarter(low, even, high, high, 1, plane, bits)
    add_quarter(low + size, even + size, high, high + size, details - 1, plane, bits)
    if count & 1:
        last, place = high + (details - 1) * size, details * size
        add_quarter(low + place, even + place, last, last, 1, plane, bits)


def synthesise_line_level(line, low, high, even, odd, count, kind, plane, bits):
    """Compute a line of at least two samples from one level."""
    size, details = size_of(plane), count >> 1
    if kind == HAAR:
        subtract_half(even, low, high, details, plane, bits)
        add_rows(odd, even, high, details, bits)
        if count & 1:
            load_row(low + details * size, even + details * size, 1, 0, bits, plane, bits)
    else:
        subtract_quarter(even, low, high, high, 1, plane, bits)
        subtract_quarter(even + size, low + size, high, high + size, details - 1, plane, bits)
        place = details * size
        if count & 1:
            last = high + place - size
            subtract_quarter(even + place, low + place, last, last, 1, plane, bits)
        else:
            load_row(even + place - size, even + place, 1, 0, bits, plane, bits)
        add_mean(odd, high, even, even + size, details, plane, bits)
    join_line(line, even, odd, count, bits)


def encode_lines(numbers, source, target, scratch, convert, sample, plane, bits):
    """Transform along the last axis."""
    outer, count, group = numbers[0], numbers[1], numbers[3]
    levels, kind = numbers[4], numbers[5]
    size = size_of(plane)
    sample_size = size_of(sample) if convert else size
    room = (group + 2) * size
    line, even, odd = scratch, scratch + room, scratch + 2 * room
    for index in range(outer):
        first = 0
        while first < count:
            length = min(group, count - first)
            place = index * count + first
            result = target + place * size
            load_row(source + place * sample_size, line, length, convert, sample, plane, bits)
            remaining, level = length, 0
            if kind == DELTA:
                load_row(line, result, 1, 0, bits, plane, bits)
                subtract_rows(result + size, line + size, line, length - 1, bits)
            else:
                while level < levels and remaining >= 2:
                    half = (remaining + 1) >> 1
                    low = result if level + 1 == levels or half < 2 else line
                    high = result + half * size
                    analyse_line_level(line, low, high, even, odd, remaining, kind, plane, bits)
                    remaining = half
                    level += 1
                if level == 0:
                    load_row(line, result, length, 0, bits, plane, bits)
            first += length


def decode_lines(numbers, source, target, scratch, convert, sample, plane, bits):
    """Undo :func:`encode_lines`; return bits if samples do not fit."""
    outer, count, group = numbers[0], numbers[1], numbers[3]
    levels, kind = numbers[4], numbers[5]
    size = size_of(plane)
    sample_size = size_of(sample) if convert else size
    room = (group + 2) * size
    line, even, odd = scratch, scratch + room, scratch + 2 * room
    lost = converted(0, bits)
    for index in range(outer):
        first = 0
        while first < count:
            length = min(group, count - first)
            place = index * count + first
            coefficients = source + place * size
            if kind == DELTA:
                total, x, out = converted(0, bits), reals(coefficients, bits), reals(line, bits)
                for j in range(length):
                    total += x[j]
                    out[j] = total
            else:
                depth, remaining = 0, length
                while depth < levels and remaining >= 2:
                    depth += 1
                    remaining = (remaining + 1) >> 1
                load_row(coefficients, line, remaining, 0, bits, plane, bits)
                while depth > 0:
                    depth -= 1
                    remaining = (length + (1 << depth) - 1) >> depth
                    high = coefficients + ((remaining + 1) >> 1) * size
                    synthesise_line_level(line, line, high, even, odd, remaining, kind, plane, bits)
            lost |= store_row(line, target + place * sample_size, length, convert, sample, plane, bits)
            first += length
    return lost


# --- chunks ----------------------------------------------------------------------------------------


def encode_chunk(table, sample, plane, bits):
    """Run the passes of a table over each block of a chunk.

    The table has the number of blocks, the number of passes, the address of the scratch memory and a word
    that says whether samples did not fit. Each pass has ``PASS_WORDS`` words: those that
    :func:`encode_columns` reads, the addresses of source and target in the first block, their distances
    between blocks in bytes, and whether samples are converted.
    """
    head = words(table)
    blocks, passes, scratch = head[0], head[1], head[2]
    for block in range(blocks):
        for number in range(passes):
            numbers = words(table + 8 * (HEAD_WORDS + PASS_WORDS * number))
            source, target = numbers[7] + block * numbers[9], numbers[8] + block * numbers[10]
            if numbers[2] == 1:
                encode_lines(numbers, source, target, scratch, numbers[11], sample, plane, bits)
            else:
                encode_columns(numbers, source, target, scratch, numbers[11], sample, plane, bits)


def decode_chunk(table, sample, plane, bits):
    """Run the passes of a table over each block of a chunk; see :func:`encode_chunk`."""
    head = words(table)
    blocks, passes, scratch = head[0], head[1], head[2]
    lost = converted(0, bits)
    for block in range(blocks):
        for number in range(passes):
            numbers = words(table + 8 * (HEAD_WORDS + PASS_WORDS * number))
            source, target = numbers[7] + block * numbers[9], numbers[8] + block * numbers[10]
            if numbers[2] == 1:
                lost |= decode_lines(numbers, source, target, scratch, numbers[11], sample, plane, bits)
            else:
                lost |= decode_columns(numbers, source, target, scratch, numbers[11], sample, plane, bits)
    head[3] = np.int64(lost != 0)


# --- signs -----------------------------------------------------------------------------------------


def fold_signs(table, plane, bits):
    """Write 0, 1, 2, 3 … for 0, -1, 1, -2 …; the table has the addresses of source and target and a count."""
    head = words(table)
    x, out = reals(head[0], bits), reals(head[1], bits)
    for j in range(head[2]):
        out[j] = (x[j] + x[j]) ^ converted(converted(x[j], plane) >> (8 * size_of(plane) - 1), bits)


def unfold_signs(table, plane, bits):
    """Undo :func:`fold_signs`."""
    head = words(table)
    x, out = reals(head[0], bits), reals(head[1], bits)
    for j in range(head[2]):
        out[j] = (x[j] >> 1) ^ (converted(0, bits) - (x[j] & 1))
