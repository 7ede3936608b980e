"""Coefficients compared, however they are nested; and arrays to transform."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import undula
from undula.engines.base import TransformOptions, engine
from undula.lowering.nesting import from_keys, to_keys
from undula.lowering.spec import BandTree, transform_spec

TOLERANCE = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-12, "complex128": 1e-12, "int64": 0.0}


def flat(coeffs: Any) -> list[NDArray[Any]]:
    if isinstance(coeffs, np.ndarray):
        return [coeffs]
    if isinstance(coeffs, dict):
        return [array for key in sorted(coeffs) for array in flat(coeffs[key])]
    return [array for part in coeffs for array in flat(part)]


def assert_same(mine: Any, theirs: Any, looser: float = 1) -> None:
    """The same shapes, dtypes and numbers, relative to the largest."""
    a, b = flat(mine), flat(theirs)
    assert [(x.shape, x.dtype) for x in a] == [(x.shape, x.dtype) for x in b]
    scale = max((float(np.abs(x).max()) for x in b if x.size), default=0.0) or 1.0
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=looser * TOLERANCE[x.dtype.name] * scale)


def assert_identical(mine: Any, theirs: Any) -> None:
    for x, y in zip(flat(mine), flat(theirs), strict=True):
        np.testing.assert_array_equal(x, y)


def noise(*shape: int, dtype: str = "f8") -> NDArray[Any]:
    rng = np.random.default_rng(sum(shape))
    x = 10 * rng.standard_normal(shape)
    return (x + 1j * x[::-1]).astype(dtype) if dtype[0] == "c" else x.astype(dtype)


class _Reference:
    """The functions of Undula on the reference engine."""

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(undula, name), backend="reference")


reference = _Reference()


def by_scheme(scheme: str, x: Any, wavelet: str, mode: str, lifted: bool = False) -> list[Any]:
    """One level of the last two axes on the reference, by a scheme."""
    tree, dtype = _tree(np.shape(x), wavelet, mode, lifted), np.asarray(x).dtype
    bands = [np.empty(shape, dtype) for shape in tree.flat_shapes]
    executable = engine("reference").compile(False, tree, dtype, (), TransformOptions(scheme=scheme))
    executable.run([np.asarray(x), *bands])
    return from_keys(tree.by_key(bands), "wavedec2")


def back_by_scheme(
    scheme: str,
    coeffs: Any,
    shape: tuple[int, ...],
    wavelet: str,
    mode: str,
    lifted: bool = False,
) -> NDArray[Any]:
    """The inverse of :func:`by_scheme`."""
    tree, (low, details) = _tree(shape, wavelet, mode, lifted), to_keys(coeffs)
    x = np.empty(shape, low.dtype)
    options = TransformOptions(scheme=scheme)
    executable = engine("reference").compile(True, tree, low.dtype, (), options)
    executable.run([x, low, *(details[key] for key in tree.spec.keys[1:])])
    return x


def _tree(shape: tuple[int, ...], wavelet: str, mode: str, lifted: bool) -> BandTree:
    return BandTree.of_samples(transform_spec(len(shape), wavelet, mode, (-2, -1), lifted), shape, 1)
