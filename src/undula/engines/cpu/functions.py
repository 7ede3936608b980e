"""Exponentials, logarithms and powers without branches, so that loops with them are vectorized.

An exponential is ``2ⁿ·exp(r)`` with ``x = n·ln 2 + r``. A logarithm is ``e·ln 2 + 2·atanh(s)`` with
``x = 2ᵉ·m`` and ``s = (m - 1)/(m + 1)``. Both are series of few terms. Errors are up to a few units in the
last place.

They are texts in the language of :mod:`.translate`. What is subtracted in two parts has to stay so: LLVM must
not reorder their sums.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["function_texts"]

FUNCTIONS = """
def exp_{dtype}(x):
    inside = min(max(x, {lowest}), {highest})
    n = np.rint(inside * {inverse_ln2})
    r = (inside - n * {ln2_high}) - n * {ln2_low}
    places = np.{integer}(n)
    half = places >> 1
    # 2ⁿ in two factors: it may be beyond the largest number, although the product is not.
    first = number_of((half + {bias}) << {mantissa})
    second = number_of((places - half + {bias}) << {mantissa})
    value = ({exponential_series}) * first * second
    value = np.inf if x > {highest} else value
    value = 0.0 if x < {lowest} else value
    return value if x == x else x

def log_{dtype}(x):
    small = x < {tiny}
    scaled = x * {raised} if small else x
    moved = bits_of(scaled) - {root}
    exponent = np.{dtype}(moved >> {mantissa})
    exponent = exponent - {steps} if small else exponent
    m = number_of((moved & {below}) + {root})
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    value = exponent * {ln2_high} + (2.0 * s * ({arc_series}) + exponent * {ln2_low})
    value = x if x == np.inf else value
    value = -np.inf if x == 0.0 else value
    return value if x >= 0.0 else np.{dtype}(np.nan)

def power_{dtype}(x, y):
    return exp_{dtype}(y * log_{dtype}(x))
"""


def function_texts(dtype: str, exponential_terms: int, logarithm_terms: int) -> str:
    """Return the functions of floats of one size."""
    info = np.finfo(dtype)
    width, mantissa = 8 * info.dtype.itemsize, info.nmant
    integer = f"int{width}"

    def real(value: float) -> str:
        return repr(float(info.dtype.type(value)))

    def series(variable: str, coefficients: list[float]) -> str:
        text = real(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            text = f"({text}) * {variable} + {real(coefficient)}"
        return text

    numbers: dict[str, Any] = {
        "bias": (1 << (width - 2 - mantissa)) - 1,
        "below": (1 << mantissa) - 1,
        "inverse_ln2": real(1 / math.log(2)),
        # ln 2 in two parts; the first has so few bits that its multiples are exact.
        "ln2_high": real(0.693145751953125),
        "ln2_low": real(1.42860682030941723212e-6),
        "lowest": real(math.log(float(info.tiny))),
        "highest": real(math.log(float(info.max))),
        "root": int(np.array(math.sqrt(0.5), dtype).view(integer)),
        "tiny": real(float(info.tiny)),
        "raised": real(2.0 ** (mantissa + 2)),
        "steps": real(mantissa + 2),
        "exponential_series": series("r", [1 / math.factorial(k) for k in range(exponential_terms)]),
        "arc_series": series("square", [1 / (2 * k + 1) for k in range(logarithm_terms)]),
    }
    return FUNCTIONS.format(dtype=dtype, integer=integer, mantissa=mantissa, **numbers)
