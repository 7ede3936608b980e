"""Exponentials, logarithms and powers without branches, so that loops with them are vectorized.

An exponential is ``2ⁿ·exp(r)`` with ``x = n·ln 2 + r``. A logarithm is ``e·ln 2 + 2·atanh(s)`` with
``x = 2ᵉ·m`` and ``s = (m - 1)/(m + 1)``. Both are series of few terms. Errors are up to a few units in the
last place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

__all__ = ["FUNCTIONS"]

# Without the freedom to reorder sums: what is subtracted in two parts has to stay so.
_inlined: Any = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, forceinline=True)


def _bitcast(source: Any, target: Any, kind: Any) -> Any:
    """A function that takes the bits of a number for another one."""

    @intrinsic
    def cast(context: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.bitcast(values[0], kind)

        return target(source), generate

    return cast


def _functions(dtype: Any, mantissa: int, exponential_terms: int, logarithm_terms: int) -> dict[str, Any]:
    """Return the functions of floats of one size, by name."""
    real: Any = np.dtype(dtype).type
    integer: Any = np.dtype(f"int{8 * np.dtype(dtype).itemsize}").type
    info = np.finfo(dtype)
    numba_real, numba_integer = getattr(types, info.dtype.name), getattr(types, np.dtype(integer).name)
    width = 8 * info.dtype.itemsize
    bits = _bitcast(numba_real, numba_integer, ir.IntType(width))
    number = _bitcast(numba_integer, numba_real, ir.FloatType() if width == 32 else ir.DoubleType())

    bias = integer((1 << (width - 2 - mantissa)) - 1)
    shift = integer(mantissa)
    below = integer((1 << mantissa) - 1)
    inverse_ln2 = real(1 / math.log(2))
    # ln 2 in two parts; the first has so few bits that its multiples are exact.
    ln2_high, ln2_low = real(0.693145751953125), real(1.42860682030941723212e-6)
    lowest, highest = real(math.log(float(info.tiny))), real(math.log(float(info.max)))
    powers = tuple(real(1 / math.factorial(k)) for k in range(exponential_terms))
    odd = tuple(real(1 / (2 * k + 1)) for k in range(logarithm_terms))
    root = integer(np.array(math.sqrt(0.5), dtype).view(integer))
    tiny, infinity, zero, unit, two = real(info.tiny), real(np.inf), real(0), real(1), real(2)
    raised, steps = real(2.0 ** (mantissa + 2)), real(mantissa + 2)

    scope: dict[str, Any] = {"np": np, "bits": bits, "number": number, "real": real, "integer": integer}
    scope |= {f"c{k}": value for k, value in enumerate(powers)}
    scope |= {f"d{k}": value for k, value in enumerate(odd)}
    series = f"c{exponential_terms - 1}"
    for k in reversed(range(exponential_terms - 1)):
        series = f"({series}) * r + c{k}"
    arc = f"d{logarithm_terms - 1}"
    for k in reversed(range(logarithm_terms - 1)):
        arc = f"({arc}) * square + d{k}"
    exec(f"def series(r):\n    return {series}\ndef arc(square):\n    return {arc}\n", scope)
    exponential_series, arc_series = _inlined(scope["series"]), _inlined(scope["arc"])

    @_inlined
    def exp(x):
        inside = min(max(x, lowest), highest)
        n = np.rint(inside * inverse_ln2)
        r = (inside - n * ln2_high) - n * ln2_low
        places = integer(n)
        half = integer(places >> 1)
        # 2ⁿ in two factors: it may be beyond the largest number, although the product is not.
        first = number(integer(integer(half + bias) << shift))
        second = number(integer(integer(integer(places - half) + bias) << shift))
        value = exponential_series(r) * first * second
        value = infinity if x > highest else value
        value = zero if x < lowest else value
        return value if x == x else x

    @_inlined
    def log(x):
        small = x < tiny
        scaled = x * raised if small else x
        moved = integer(bits(scaled) - root)
        exponent = real(integer(moved >> shift))
        exponent = exponent - steps if small else exponent
        m = number(integer(integer(moved & below) + root))
        s = (m - unit) / (m + unit)
        value = exponent * ln2_high + (two * s * arc_series(s * s) + exponent * ln2_low)
        value = x if x == infinity else value
        value = -infinity if x == zero else value
        return value if x >= zero else real(np.nan)

    @_inlined
    def power(x, y):
        return exp(y * log(x))

    name = info.dtype.name
    return {f"exp_{name}": exp, f"log_{name}": log, f"power_{name}": power}


FUNCTIONS = {**_functions("float32", 23, 8, 6), **_functions("float64", 52, 14, 12)}
