"""Undecimated filters down the rows and along the rows of planes, in the language of :mod:`.translate`.

A row of a result is a weighted sum of rows: of rows of the sources for filters down the plane, and of the
same row, moved, for filters along it. Down comes first. Its results, the *intermediate* rows, stay in the
cache, with the values beyond their ends in place::

    sources ──down──▶ intermediate rows ──extend──▶ ──along──▶ results

Without filters down the plane, intermediate rows are copies of the sources; without filters along it, they
are the results. Sums are computed in the order of their terms at every place, and products are never
rounded, so results do not depend on how a plane is divided. :class:`~.undecimated.UndecimatedPass` describes
the tables.
"""

from __future__ import annotations

from .translate import converted, fused, reals, size_of, words

__all__ = ["TERM_WORDS", "VALUE_PLACES", "VALUE_WEIGHTS"]

TERM_WORDS = 2  # the number of a source or of an intermediate row, and an offset
VALUE_PLACES, VALUE_WEIGHTS = 5, 3  # of a value beyond the ends: x₀·w₀ + w₁·(x₁ - x₂) + w₂·(x₃ - x₄)


def combine_rows(target, listed, weights, terms, count, like):
    """Write the weighted sum of rows, whose addresses are listed."""
    out, rows, w = reals(target, like), words(listed), reals(weights, like)
    done = 0
    while terms - done >= 4:
        a, b = reals(rows[done], like), reals(rows[done + 1], like)
        c, d = reals(rows[done + 2], like), reals(rows[done + 3], like)
        w0, w1, w2, w3 = w[done], w[done + 1], w[done + 2], w[done + 3]
        if done == 0:
            for j in range(count):
                out[j] = fused(w3, d[j], fused(w2, c[j], fused(w1, b[j], w0 * a[j])))
        else:
            for j in range(count):
                out[j] = fused(w3, d[j], fused(w2, c[j], fused(w1, b[j], fused(w0, a[j], out[j]))))
        done += 4
    while terms - done >= 2:
        a, b = reals(rows[done], like), reals(rows[done + 1], like)
        w0, w1 = w[done], w[done + 1]
        if done == 0:
            for j in range(count):
                out[j] = fused(w1, b[j], w0 * a[j])
        else:
            for j in range(count):
                out[j] = fused(w1, b[j], fused(w0, a[j], out[j]))
        done += 2
    if terms > done:
        a = reals(rows[done], like)
        w0 = w[done]
        if done == 0:
            for j in range(count):
                out[j] = w0 * a[j]
        else:
            for j in range(count):
                out[j] = fused(w0, a[j], out[j])
    if terms == 0:
        for j in range(count):
            out[j] = converted(0, like)


def combine_down(table, target, plane, y, begin, end, left, count, like):
    """Write the weighted sum of rows of the sources for row y: the terms ``begin … end``."""
    t = words(table)
    sources, terms, places = words(t[7]), words(t[8]), words(t[9])
    weights, rows, used = reals(t[10], like), words(t[11]), reals(t[12], like)
    number = 0
    for k in range(begin, end):
        s = 6 * terms[TERM_WORDS * k]
        row = places[y + terms[TERM_WORDS * k + 1] - t[13]]
        address = sources[s] + plane * sources[s + 1] + row * sources[s + 2]
        if row < -1:  # a row beyond the ends, computed beforehand
            address = sources[s + 3] + plane * sources[s + 4] + (-2 - row) * sources[s + 5]
        if row != -1:
            rows[number] = address + left * size_of(like)
            used[number] = weights[k]
            number += 1
    combine_rows(target, t[11], t[12], number, count, like)


def extend_row(table, line, target, first, begin, end, like):
    """Write the values of a line at the places ``begin … end`` beyond its ends.

    ``line`` is the address of its first sample, ``target`` that of the value at the place ``first``.
    """
    t = words(table)
    x, out, numbers, weights = reals(line, like), reals(target, like), words(t[20]), reals(t[21], like)
    channels, length = t[14], t[15]
    for place in range(begin, end):
        at = place - t[18] if place < 0 else place - length - t[18]
        for c in range(channels):
            p, w = VALUE_PLACES * at, VALUE_WEIGHTS * at
            value = converted(0, like)
            if weights[w] != 0:
                value = weights[w] * x[numbers[p] * channels + c]
            if weights[w + 1] != 0:
                difference = x[numbers[p + 1] * channels + c] - x[numbers[p + 2] * channels + c]
                value = value + weights[w + 1] * difference
            if weights[w + 2] != 0:
                difference = x[numbers[p + 3] * channels + c] - x[numbers[p + 4] * channels + c]
                value = value + weights[w + 2] * difference
            out[(place - first) * channels + c] = value


def filter_row(table, plane, y, left, right, like):
    """Write the places ``left … right`` of row y of all results."""
    t = words(table)
    size = size_of(like)
    sources, results = words(t[7]), words(t[16])
    down, along, channels = t[22], t[23], t[14]
    begins = words(t[24])
    if along == 0:
        for k in range(t[25]):
            target = results[3 * k] + plane * results[3 * k + 1] + y * results[3 * k + 2]
            target = target + left * channels * size
            count = (right - left) * channels
            combine_down(table, target, plane, y, begins[k], begins[k + 1], left * channels, count, like)
    else:
        length = t[15]
        first, last = left + t[18], right + t[19]  # the places that are read
        begin, end = max(0, first), min(length, last)
        for k in range(t[25]):
            target = t[17] + k * t[26]
            inside = target + (begin - first) * channels * size
            line = inside - begin * channels * size
            if down:
                count = (end - begin) * channels
                combine_down(table, inside, plane, y, begins[k], begins[k + 1], begin * channels, count, like)
            else:
                line = sources[6 * k] + plane * sources[6 * k + 1] + y * sources[6 * k + 2]
                x, out = reals(line + begin * channels * size, like), reals(inside, like)
                for j in range((end - begin) * channels):
                    out[j] = x[j]
            extend_row(table, line, target, first, first, min(0, last), like)
            extend_row(table, line, target, first, max(length, first), last, like)
        terms, ends = words(t[27]), words(t[28])
        rows = words(t[11])
        for k in range(t[30]):
            for number in range(ends[k], ends[k + 1]):
                place = left + terms[TERM_WORDS * number + 1] - first
                rows[number - ends[k]] = t[17] + terms[TERM_WORDS * number] * t[26] + place * channels * size
            target = results[3 * k] + plane * results[3 * k + 1] + y * results[3 * k + 2]
            target = target + left * channels * size
            weights = t[29] + ends[k] * size
            combine_rows(target, t[11], weights, ends[k + 1] - ends[k], (right - left) * channels, like)


def filter_planes(table, like):
    """Write some planes, rows and columns of all results."""
    t = words(table)
    for plane in range(t[0], t[1]):
        left = t[4]
        while left < t[5]:
            right = min(left + t[31], t[5])
            # Rows that are a multiple of the dilation apart read the same rows.
            for phase in range(t[6]):
                y = t[2] + phase
                while y < t[3]:
                    filter_row(table, plane, y, left, right, like)
                    y += t[6]
            left = right
