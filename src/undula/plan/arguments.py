"""The arguments of plans: read, and refused with an error that says what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..engines.base import Engine
from ..engines.gpu.arrays import RESULTS
from ..engines.gpu.strategies import STRATEGIES
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..lowering.axis_arguments import Axes
from ..lowering.spec import TransformSpec, stationary_spec, transform_spec
from ..schemes import SCHEMES
from ..wavelets import Wavelet

__all__ = [
    "TRANSFORMS",
    "check_choices",
    "check_dtype",
    "check_flags",
    "plan_dtype",
    "plan_shape",
    "plan_spec",
]

METHODS = ("auto", "lifting", "filters")
TRANSFORMS = ("dwt", "swt")
DEFAULT_MODES = {"dwt": "symmetric", "swt": "periodization"}


def plan_shape(shape: Sequence[int] | int) -> tuple[int, ...]:
    """Return the shape of the arrays."""
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if not lengths or not all(isinstance(n, (int, np.integer)) and n >= 0 for n in lengths):
        raise ArgumentError(f"a shape is one or more whole numbers, got {shape!r}")
    return tuple(int(n) for n in lengths)


def plan_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype of the arrays."""
    try:
        known = np.dtype(dtype)
    except TypeError:
        raise ArgumentTypeError(f"a plan is for arrays of numbers, got dtype {dtype!r}") from None
    if known.kind not in "biufc":
        raise ArgumentTypeError(f"a plan is for arrays of numbers, got dtype {known!r}")
    return known


def plan_spec(
    ndim: int,
    wavelet: Wavelet | str | Sequence[Any],
    mode: str | int | Sequence[Any] | None,
    axes: Axes,
    transform: str,
    norm: bool,
    start_level: int,
) -> TransformSpec:
    """Return the transform of arrays of so many axes."""
    if transform not in TRANSFORMS:
        raise UnknownNameError("transform", transform, TRANSFORMS)
    mode = DEFAULT_MODES[transform] if mode is None else mode
    if transform == "swt":
        return stationary_spec(ndim, wavelet, mode, axes, start_level, norm)
    if norm or start_level:
        raise ArgumentError(
            f"norm and start_level are for transform='swt', got norm={norm!r} and"
            f" start_level={start_level!r} for transform={transform!r}"
        )
    return transform_spec(ndim, wavelet, mode, axes)


def check_choices(strategy: str, scheme: str, method: str, stationary: bool) -> None:
    """Raise an error for names that do not exist, and for those that a stationary transform does not have."""
    for what, value, known in (
        ("scheme", scheme, ("auto", *SCHEMES)),
        ("strategy", strategy, tuple(STRATEGIES)),
        ("method", method, METHODS),
    ):
        if value not in known:
            raise UnknownNameError(what, value, known)
        if stationary and value != "auto":
            raise ArgumentError(f"{what} {value!r} is for transform='dwt', not for 'swt'; omit it")


def check_flags(square: bool, tune: bool, norm: bool, stationary: bool, on_device: bool) -> None:
    """Raise an error for what is neither True nor False, and for flags that do not apply."""
    for what, value in (("square", square), ("tune", tune), ("norm", norm)):
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentTypeError(f"{what} must be True or False, got {value!r}")
    if stationary and square:
        raise ArgumentError("a stationary transform takes any shape; omit square")
    if tune and (stationary or not on_device):
        what = "transform='dwt'" if stationary else "backends 'cuda' and 'opencl'"
        raise ArgumentError(f"tune=True is for {what}, whose strategies have settings to measure; omit it")


def check_dtype(engine: Engine, dtype: np.dtype[Any], on_device: bool) -> None:
    """Raise an error for a dtype of arrays that the engine would convert first."""
    dtypes = tuple(RESULTS) if on_device else ("float32", "float64", "complex64", "complex128")
    if dtype.newbyteorder("=").name not in dtypes:
        result = engine.result_dtype(dtype)
        raise ArgumentTypeError(
            f"a plan for {'a device' if on_device else 'the CPU'} is for arrays of {', '.join(dtypes)}, got"
            f" dtype {dtype.name!r}; pass dtype={result.name!r}, in which such arrays are transformed"
        )
