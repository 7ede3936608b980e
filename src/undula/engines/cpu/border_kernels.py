"""Results at the ends of lines, in the language of :mod:`.translate`: sums of listed numbers."""

from __future__ import annotations

from .translate import converted, fused, reals, words

__all__: list[str] = []


def combine_listed(table, like):
    """Write weighted sums of lines.

    Words of the table: the planes ``0 … 1``, the number of rows of a plane, of results, the addresses of
    results (their place, their first and last term), of terms (a source and a place in it) and of weights;
    the length of a line; address and strides of planes, rows and places of the result; and of each source;
    and whether sums are added to the results. A source without an address is zero.
    """
    t = words(table)
    items, terms, weights, count = words(t[4]), words(t[5]), reals(t[6], like), t[7]
    for plane in range(t[0], t[1]):
        for row in range(t[2]):
            for item in range(t[3]):
                out = reals(t[8] + plane * t[9] + row * t[10] + items[3 * item] * t[11], like)
                begin, end = items[3 * item + 1], items[3 * item + 2]
                if count == 1:
                    total = out[0] if t[20] != 0 else converted(0, like)
                    for k in range(begin, end):
                        s = 12 + 4 * terms[2 * k]
                        if t[s] != 0:
                            start = t[s] + plane * t[s + 1] + row * t[s + 2]
                            x = reals(start + terms[2 * k + 1] * t[s + 3], like)
                            total = fused(weights[k], x[0], total)
                    out[0] = total
                else:
                    if t[20] == 0:
                        for j in range(count):
                            out[j] = converted(0, like)
                    for k in range(begin, end):
                        s = 12 + 4 * terms[2 * k]
                        if t[s] != 0:
                            start = t[s] + plane * t[s + 1] + row * t[s + 2]
                            x = reals(start + terms[2 * k + 1] * t[s + 3], like)
                            w = weights[k]
                            for j in range(count):
                                out[j] = fused(w, x[j], out[j])
