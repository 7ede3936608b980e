"""Which cases a test runs: in ``make test`` some that cover every pair of values, in ``make thorough`` all.

Tests that leave cases out are marked ``thorough``; the end of a run says how many cases were left out.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import prod
from typing import Any

import pytest

__all__ = ["THOROUGH", "WAVELETS", "left_out", "pairwise", "parametrize_pairwise", "parametrize_some", "some"]

THOROUGH = os.environ.get("UNDULA_TESTS") == "thorough"

# One or more of every family: short and long, symmetric and not, exact and not, low band on odd samples.
WAVELETS = (
    *"haar db2 db7 db38 sym4 sym13 coif1 coif5 bior1.3 bior2.4 bior3.3 bior4.4 bior5.5 bior6.8".split(),
    *"rbio1.5 rbio3.1 rbio4.4 cdf53 cdf97 dd137 burt57 d4".split(),
)

_left_out: list[int] = []


def left_out() -> int:
    """Return the number of cases that only ``make thorough`` runs."""
    return sum(_left_out)


def some(everything: Sequence[Any], chosen: Sequence[Any]) -> list[Any]:
    """Return the chosen values, or every value in ``make thorough``."""
    assert all(value in everything for value in chosen), "a chosen value does not exist"
    if THOROUGH:
        return list(everything)
    _left_out.append(len(everything) - len(chosen))
    return list(chosen)


def pairwise(*values: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return combinations in which any two values of different axes meet, or all in ``make thorough``.

    The two longest axes are combined completely. Each further axis is added to these combinations, with the
    value that meets most values for the first time; what has not met then gets combinations of its own.
    """
    axes = [list(axis) for axis in values]
    if THOROUGH:
        return list(product(*axes))
    first, second, *others = sorted(range(len(axes)), key=lambda axis: -len(axes[axis]))
    rows: list[dict[int, int]] = [
        {first: a, second: b} for a in range(len(axes[first])) for b in range(len(axes[second]))
    ]
    known = [first, second]
    for axis in others:
        missing = {
            (other, a, b) for other in known for a in range(len(axes[other])) for b in range(len(axes[axis]))
        }
        for number, row in enumerate(rows):
            order = [(number + shift) % len(axes[axis]) for shift in range(len(axes[axis]))]
            row[axis] = max(order, key=lambda b: sum((k, a, b) in missing for k, a in row.items()))
            missing -= {(k, a, row[axis]) for k, a in row.items()}
        for other, a, b in sorted(missing):
            rows.append({**dict.fromkeys(known, 0), other: a, axis: b})
        known.append(axis)
    chosen = sorted({tuple(row[axis] for axis in range(len(axes))) for row in rows})
    _left_out.append(prod(map(len, axes)) - len(chosen))
    return [tuple(axis[k] for axis, k in zip(axes, row, strict=True)) for row in chosen]


def parametrize_pairwise(**axes: Iterable[Any]) -> Callable[[Any], Any]:
    """Parametrize a test by combinations of these arguments in which all pairs of values occur."""
    cases = pytest.mark.parametrize(tuple(axes), pairwise(*axes.values()))
    return lambda test: pytest.mark.thorough(cases(test))


def parametrize_some(
    names: str | tuple[str, ...], everything: Sequence[Any], chosen: Sequence[Any]
) -> Callable[[Any], Any]:
    """Parametrize a test by chosen values of arguments, or by every value in ``make thorough``."""
    cases = pytest.mark.parametrize(names, some(everything, chosen))
    return lambda test: pytest.mark.thorough(cases(test))
