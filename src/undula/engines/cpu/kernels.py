"""The loops of generated kernels that do not depend on expressions, in the language of :mod:`.translate`.

Samples are at addresses. No branch in a loop depends on a sample where that can be avoided, so that the
compiler can vectorize it.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import numpy as np

from .coding_kernels import DELTA, HAAR, HEAD_WORDS, PASS_WORDS
from .functions import function_texts
from .kernel_layout import BINS
from .translate import Library, converted, function_definitions, reals, size_of, words
from .undecimated_kernels import TERM_WORDS, VALUE_PLACES, VALUE_WEIGHTS

__all__ = ["library"]


@cache
def library() -> Library:
    """Return what generated kernels can use: functions of this module and others, exp and log."""
    functions: dict[str, ast.FunctionDef] = {}
    for name in ("kernels.py", "coding_kernels.py", "undecimated_kernels.py", "border_kernels.py"):
        functions |= function_definitions(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    del functions["library"]
    texts = function_texts("float32", 8, 6) + function_texts("float64", 14, 12)
    exact = function_definitions(texts)
    constants = {
        "BINS": BINS, "DELTA": DELTA, "HAAR": HAAR, "HEAD_WORDS": HEAD_WORDS, "PASS_WORDS": PASS_WORDS,
        "TERM_WORDS": TERM_WORDS, "VALUE_PLACES": VALUE_PLACES, "VALUE_WEIGHTS": VALUE_WEIGHTS,
    }  # fmt: skip
    return Library({**functions, **exact}, frozenset(exact), constants)


def mirrored(index, count):
    """Mirror an index beyond the ends of a line back into it, repeating the last sample."""
    if 0 <= index < count:
        return index
    period = 2 * count
    index = index % period
    return index if index < count else period - 1 - index


def mirror_ends(line, count, radius, like):
    """Write mirrored samples before and after the samples of a line; ``line`` is its address."""
    x = reals(line, like)
    for k in range(radius):
        x[radius - 1 - k] = x[radius + mirrored(-1 - k, count)]
        x[radius + count + k] = x[radius + mirrored(count + k, count)]


def add_scaled(target, source, count, weight, first, like):
    """Add a multiple of one row to another one, or store it if it is the ``first``."""
    x, out = reals(source, like), reals(target, like)
    factor = converted(weight, like)
    if first:
        for j in range(count):
            out[j] = factor * x[j]
    else:
        for j in range(count):
            out[j] += factor * x[j]


def double_row(source, target, count, offset, last, step, like):
    """Write the sample at ``min((j + offset) // 2, last)`` of a row to place j of another one.

    ``step`` is the distance between samples of the source, which is a number of bytes.
    """
    out = reals(target, like)
    if step != size_of(like):
        for j in range(count):
            out[j] = reals(source + min((j + offset) >> 1, last) * step, like)[0]
        return
    line = reals(source, like)
    for j in range(count):
        out[j] = line[last]
    begin = (offset + 1) >> 1
    first = offset & 1
    # Pairs of equal samples, after a single one at the beginning if the offset is odd.
    pairs = max(0, min(last + 1 - begin, (count - first) >> 1))
    block, even = reals(source + begin * step, like), reals(target + first * step, like)
    for k in range(pairs):
        even[2 * k] = block[k]
        even[2 * k + 1] = block[k]
    if first and count:
        out[0] = line[min(offset >> 1, last)]
    if first + 2 * pairs < count and begin + pairs <= last:
        even[2 * pairs] = block[pairs]


# --- medians --------------------------------------------------------------------------------------


def tally(row, count, counts, shift, mask, least, most, like):
    """Count the magnitudes of a row, given as bits, by their leading bits; the last count is of all others.

    ``mask`` removes the sign. Bits from ``least`` and below ``most`` are counted. Even and odd samples are
    counted apart, so that no increment waits for the previous one.
    """
    bits = reals(row, like)
    even, odd = reals(counts, np.int32(0)), reals(counts + 4 * (BINS + 1), np.int32(0))
    last = np.uint64(BINS)
    for i in range(count >> 1):
        first, second = bits[2 * i] & mask, bits[2 * i + 1] & mask
        even[np.uint64(first >> shift) if least <= first < most else last] += 1
        odd[np.uint64(second >> shift) if least <= second < most else last] += 1
    if count & 1:
        first = bits[count - 1] & mask
        even[np.uint64(first >> shift) if least <= first < most else last] += 1


def locate_median(state, counts, splits, shift, least, most):
    """Find the bins of the two middle magnitudes.

    ``splits`` tables of counts are added up. The state is the number of magnitudes, the lowest bits and the
    first beyond the highest bits of both bins, and the places of both among those in the bins.
    """
    words_of_state = words(state)
    totals = reals(counts, np.int32(0))
    for part in range(1, 2 * splits):
        others = reals(counts + 4 * part * (BINS + 1), np.int32(0))
        for k in range(BINS):
            totals[k] += others[k]
    known = 0
    for k in range(BINS):
        known += totals[k]
    words_of_state[0] = known
    below, before, first = 0, 0, -1
    for k in range(BINS):
        upto = below + totals[k]
        if first < 0 and upto > (known - 1) >> 1:
            first, before = k, below
        if upto > known >> 1:
            words_of_state[1] = max(least, first << shift)
            words_of_state[2] = min((k + 1) << shift, most)
            words_of_state[3] = ((known - 1) >> 1) - before
            words_of_state[4] = (known >> 1) - before
            break
        below = upto


def gather(row, count, target, gathered, low, high, mask, like):
    """Append the magnitudes of a row from ``low`` and below ``high``, as bits; return their number."""
    bits, out = reals(row, like), reals(target, like)
    at = np.uint64(gathered)
    for i in range(count):
        magnitude = bits[i] & mask
        out[at] = magnitude
        at += np.uint64(low <= magnitude < high)
    return np.int64(at)


def select(x, count, rank):
    """Return the entry of a rank, counted from 0, of an array in any order; entries are exchanged."""
    low, high = 0, count - 1
    while low < high:
        pivot = x[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return x[rank]


def narrow(state, candidates, gathered, splits, capacity, counts, like):
    """Move the candidates together that can be the two middle ones, and return their number.

    Candidates of all splits are counted by their next bits, as :func:`tally` does by the leading ones; the
    places of both middle ones in the state become those among the candidates that are left.
    """
    words_of_state, numbers, x = words(state), words(gathered), reals(candidates, like)
    table = reals(counts, np.int32(0))
    lowest, shift = words_of_state[1], 0
    while (words_of_state[2] - 1 - lowest) >> shift >= BINS:
        shift += 1
    for k in range(BINS):
        table[k] = 0
    for part in range(splits):
        for k in range(part * capacity, part * capacity + numbers[part]):
            table[np.uint64((np.int64(x[k]) - lowest) >> shift)] += 1
    below, first, last = 0, 0, 0
    while below + table[first] <= words_of_state[3]:
        below += table[first]
        first += 1
    last, upto = first, below + table[first]
    while upto <= words_of_state[4]:
        last += 1
        upto += table[last]
    words_of_state[3] -= below
    words_of_state[4] -= below
    low, high = lowest + (first << shift), lowest + ((last + 1) << shift)
    count = 0
    for part in range(splits):
        for k in range(part * capacity, part * capacity + numbers[part]):
            value = x[k]
            x[count] = value
            count += np.int64(low <= value < high)
    return count


def select_median(state, candidates, gathered, splits, capacity, counts, bits_like, like):
    """Return the mean of the two middle magnitudes, from what was gathered in splits of some capacity."""
    words_of_state = words(state)
    if words_of_state[0] == 0:
        return 0.0
    x, place = reals(candidates, bits_like), reals(candidates, like)
    count = narrow(state, candidates, gathered, splits, capacity, counts, bits_like)
    rank = words_of_state[3]
    low = select(x, count, rank)
    high = low
    if words_of_state[4] > rank:  # All entries after the selected one are at least as large.
        high = x[rank + 1]
        for k in range(rank + 2, count):
            high = min(high, x[k])
    x[0] = low
    first = np.float64(place[0])
    x[0] = high
    return (first + np.float64(place[0])) / 2


def zero_counts(counts):
    """Set a table of counts to zero."""
    table = reals(counts, np.int32(0))
    for k in range(2 * (BINS + 1)):
        table[k] = 0


def copy_row(source, target, runs, table, like):
    """Copy samples of a row to other places.

    The table has runs of samples that stay beside each other: the first place in the source and in the
    target, and the length.
    """
    numbers = words(table)
    size = size_of(like)
    for k in range(runs):
        x = reals(source + numbers[3 * k] * size, like)
        out = reals(target + numbers[3 * k + 1] * size, like)
        for j in range(numbers[3 * k + 2]):
            out[j] = x[j]
