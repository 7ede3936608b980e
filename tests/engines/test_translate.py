"""Kernels in a small part of Python: machine code does what Python does with the same text."""

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undula.engines.cpu import kernels, translate
from undula.engines.cpu.functions import function_texts
from undula.engines.cpu.machine_code import source_address

SCOPE = {**vars(translate), **vars(kernels)}

INTEGERS = """
def kernel(block, like):
    x = words(block)
    a, b = x[0], x[1]
    x[2] = a % 7
    x[3] = a % -7
    x[4] = (a & 12 | 1) << 3
    x[5] = a >> 2
    x[6] = min(a, b) - max(3, b)
    x[7] = mirrored(a, 5)
    count = 0
    while count * count < abs_of(b):
        count += 1
        if count == 9:
            break
    x[8] = count
    for k in range(3, 6):
        if k == 4 and a > 0 or not b < 0:
            x[9] += k
        else:
            x[9] -= 1
    a, b = b, a
    x[10] = a if 0 <= b < 10 else -1
"""
FLOATS = """
def kernel(block, like):
    w = words(block)
    x, y, out = reals(w[1], like), reals(w[2], np.float64(0)), reals(w[3], like)
    factor = converted(y[0], like)
    for j in range(w[0]):
        v = x[j]
        u = max(v, factor) / (min(v, 0.5) + 2.5)
        small = abs(v) <= 1
        out[j] = math.sqrt(abs(u)) if small else -np.rint(v * 3 - factor)
"""


def machine_code(text: str, dtype: str, block: int) -> None:
    kind = ctypes.c_float if dtype == "float32" else ctypes.c_double
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, kind)(
        source_address(text, dtype)
    )
    assert function(None, None, block, 0) == 0


def python(text: str, dtype: str, block: int) -> None:
    scope: dict[str, Any] = {**SCOPE, "math": np}  # NumPy's root of a float32 is a float32.
    exec(text, scope)
    scope["kernel"](block, np.dtype(dtype).type(0))


@given(st.integers(-100, 100), st.integers(-100, 100))
def test_integers(a: int, b: int) -> None:
    text = INTEGERS.replace("abs_of(b)", "max(b, -b)")
    results = []
    for run in (machine_code, python):
        x = np.zeros(11, np.int64)
        x[:2] = a, b
        run(text, "float32", x.ctypes.data)
        results.append(x)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats(dtype: str) -> None:
    x = np.r_[np.random.default_rng(0).normal(0, 2, 37), 0, -0.0, 1, np.inf, -np.inf, 1e30].astype(dtype)
    results = []
    for run in (machine_code, python):
        y, out = np.array([0.75]), np.zeros_like(x)
        words = np.array([len(x), *(array.ctypes.data for array in (x, y, out))])
        with np.errstate(invalid="ignore"):
            run(FLOATS, dtype, words.ctypes.data)
        results.append(out)
    np.testing.assert_allclose(*results, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("dtype", "terms"), [("float32", (8, 6)), ("float64", (14, 12))])
@pytest.mark.parametrize("name", ["exp", "log"])
def test_functions(name: str, dtype: str, terms: tuple[int, int]) -> None:
    """Both in Python and as machine code, within a few units in the last place of NumPy's."""
    text = f"""
def kernel(block, like):
    w = words(block)
    x, out = reals(w[1], like), reals(w[2], like)
    for j in range(w[0]):
        out[j] = {name}_{dtype}(x[j])
"""
    info = np.finfo(dtype)
    x = np.r_[np.geomspace(info.tiny, info.max / 2, 301), info.smallest_subnormal, 0, 1, np.inf, np.nan, -1]
    if name == "exp":
        x = np.r_[np.linspace(-800, 800, 401), x[-5:], -np.inf]
    x = x.astype(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
        for run in (machine_code, python):
            out = np.zeros_like(x)
            words = np.array([len(x), x.ctypes.data, out.ctypes.data])
            run(function_texts(dtype, *terms) + text if run is python else text, dtype, words.ctypes.data)
            np.testing.assert_allclose(out, expected, rtol=4 * info.eps, atol=2 * info.tiny)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x = [1, 2]", r"cannot be written so: \[1, 2\]"),
        ("y = undefined + 1", "cannot be written so: undefined"),
        ("for k in words(block): pass", "cannot be written so: for k"),
        ("x = 1\n    x = np.float32(2)", "x is int64, and float32 in: x"),
        ("x = words(block) + 1", r"cannot be written so: words\(block\) \+ 1"),
        ("x = np.float32(1) % 2", "cannot be written so"),
        ("words(block)[0] = 0.5", "0.5 is not of dtype int64"),
        ("import os", "cannot be written so: import os"),
    ],
)
def test_what_is_not_in_the_language_is_refused(line: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        source_address(f"def kernel(block, like):\n    {line}\n", "float32")
