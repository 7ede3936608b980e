"""The Plan: a transform made ready for arrays of one shape, to be run again and again.

The functions of this package make and keep such things by themselves; a Plan is for those who want to hold
one: to write results into arrays that exist, and to see what a transform costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..backends import reference
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..plans.axes import Axes
from ..plans.coeffs import checked_level, from_keys, keyed_as
from ..plans.line import Line
from ..schemes import SCHEMES
from ..wavelets import Wavelet
from .arrays import as_array, check_out, nested, result_dtype
from .levels import checked_targets, decompose, recipe, recompose, shapes
from .levels import level as one_level

__all__ = ["Plan", "PlanCost"]

Array = NDArray[Any]

BACKENDS = ("auto", "cpu", "reference")
STRATEGIES = ("auto",)


class PlanCost(NamedTuple):
    """What one run of a plan costs.

    ``bytes`` are read from and written to memory; ``operations`` are multiply-adds; at a ``barrier`` all
    threads wait for each other.
    """

    bytes: int
    operations: int
    barriers: int


class Plan:
    """A DWT for arrays of one shape and dtype.

    Parameters
    ----------
    shape : tuple of int
        Of the arrays to be transformed.
    wavelet : Wavelet, str, or one for each axis
    level : int, optional
        How often the approximation is decomposed; as often as is useful if not given.
    mode : str, int, or one for each axis
        How lines go on beyond their ends: one of ``undula.MODES``.
    axes : sequence of int, optional
        All axes if not given.
    dtype : dtype
        Of the arrays; results are float32, float64, complex64 or complex128.
    backend : "auto", "cpu" or "reference"
        ``reference`` is plain NumPy in extended precision, slow.
    scheme : "auto" or one of ``undula.SCHEMES``
        By which scheme two axes are transformed; the engine of the CPU has its own order, so this is for
        the reference.
    strategy : "auto"

    Attributes
    ----------
    shapes : list
        The shapes of the coefficients, nested as they are.
    cost : PlanCost
        What one run forward costs.

    Examples
    --------
    >>> plan = Plan((64, 48), "cdf97", level=2, dtype="float32")
    >>> x = np.ones((64, 48), "float32")
    >>> coeffs = plan.forward(x)
    >>> again = plan.forward(2 * x, out=coeffs)
    >>> bool(np.allclose(plan.inverse(again), 2, atol=1e-5))
    True
    """

    def __init__(
        self,
        shape: Sequence[int] | int,
        wavelet: Wavelet | str | Sequence[Any],
        *,
        level: int | None = None,
        mode: str | int | Sequence[Any] = "symmetric",
        axes: Axes = None,
        dtype: DTypeLike = np.float64,
        backend: str = "auto",
        scheme: str = "auto",
        strategy: str = "auto",
    ) -> None:
        self.shape = _shape(shape)
        if np.dtype(dtype).kind not in "biufc":
            raise ArgumentTypeError(f"a plan is for arrays of numbers, got dtype {dtype!r}")
        self.dtype = result_dtype(np.dtype(dtype))
        self._recipe = recipe(len(self.shape), wavelet, mode, axes)
        self.axes = self._recipe.axes
        if any(self.shape[axis] < 1 for axis in self.axes):
            raise ArgumentError(f"a plan needs samples along the transformed axes, got shape {self.shape}")
        self.level = checked_level(self.shape, self._recipe.wavelets, self.axes, level)
        for what, value, known in (
            ("backend", backend, BACKENDS),
            ("scheme", scheme, ("auto", *SCHEMES)),
            ("strategy", strategy, STRATEGIES),
        ):
            if value not in known:
                raise UnknownNameError(what, value, known)
        if scheme != "auto" and backend != "reference":
            raise ArgumentError(
                f"scheme {scheme!r} is run by backend 'reference'; the CPU engine has its own order of steps,"
                " and gives the same numbers"
            )
        self.backend = "cpu" if backend == "auto" else backend
        self.scheme, self.strategy = scheme, strategy
        if self.backend == "reference" and len(set(self._recipe.wavelets) | set(self._recipe.modes)) > 2:
            raise ArgumentError("backend 'reference' has one wavelet and one mode for all axes")
        self._form = {1: "wavedec", 2: "wavedec2"}.get(len(self.axes), "wavedecn")
        self._shapes = shapes(self._recipe, self.shape, self.level, self.dtype)

    @property
    def shapes(self) -> list[Any]:
        """The shapes of the coefficients, nested as they are."""
        return from_keys(self._shapes, self._form)

    def empty(self) -> list[Any]:
        """Arrays for the coefficients, with nothing in them yet: for ``out=``."""
        made: list[Any] = [np.empty(self._shapes[0], self.dtype)]
        made += [{key: np.empty(s, self.dtype) for key, s in part.items()} for part in self._shapes[1:]]
        return from_keys(made, self._form)

    def forward(self, x: ArrayLike, out: Sequence[Any] | None = None) -> list[Any]:
        """The coefficients, as ``wavedec``, ``wavedec2`` or ``wavedecn`` would give them for so many axes."""
        array = as_array(x)
        if array.shape != self.shape or result_dtype(array.dtype) != self.dtype:
            raise ArgumentError(
                f"this plan is for arrays of shape {self.shape} that are transformed in {self.dtype}, got"
                f" {array.shape} and {array.dtype}"
            )
        given, array = array, array.astype(self.dtype, copy=False)
        targets = None
        if out is not None:
            targets = checked_targets(self._recipe, array, self.level, out, keyed_as(out, self._form), given)
        if self.backend == "reference":
            coeffs = self._reference(array)
            if targets is not None:
                targets[0][...] = coeffs[0]
                for level, part in zip(targets[1:], coeffs[1:], strict=True):
                    for key, values in part.items():
                        level[key][...] = values
                coeffs = list(targets)
        else:
            coeffs = decompose(self._recipe, array, self.level, targets)
        return list(out) if out is not None else from_keys(coeffs, self._form)

    def inverse(self, coeffs: Sequence[Any], out: Array | None = None) -> Array:
        """The samples, in the shape of the plan; None in place of coefficients stands for zeros."""
        keyed = keyed_as(coeffs, self._form)
        if keyed is None or len(keyed) != self.level + 1:
            raise ArgumentError(
                f"coefficients of this plan are nested as {self._form} does, with {self.level} level(s) of"
                " details"
            )
        if out is not None:
            check_out(out, self.shape, self.dtype, nested(list(coeffs)), "out")
        read: list[Any] = [_typed(keyed[0], self.dtype)]
        read += [{key: _typed(band, self.dtype) for key, band in part.items()} for part in keyed[1:]]
        if self.backend == "reference":
            made = self._reference_back(read)
            if out is None:
                return made
            check_out(out, self.shape, self.dtype, nested(list(coeffs)), "out")[...] = made
            return out
        return recompose(self._recipe, read, self.shape, out)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"mode": self._recipe.modes[0], "axes": self.axes}
        return options if self.scheme == "auto" else {**options, "scheme": self.scheme}

    def _reference(self, x: Array) -> list[Any]:
        return reference.wavedecn(x, self._recipe.wavelets[0], level=self.level, **self._options())

    def _reference_back(self, coeffs: Sequence[Any]) -> Array:
        x = reference.waverecn(coeffs, self._recipe.wavelets[0], **self._options())
        return x[tuple(slice(n) for n in self.shape)].astype(self.dtype)

    @property
    def cost(self) -> PlanCost:
        """Bytes that a run forward moves, operations it does, and how often threads wait for each other."""
        shape, moved, operations, barriers = self.shape, 0, 0.0, 0
        for _ in range(self.level):
            one = one_level(self._recipe, shape, self.dtype)
            samples = math.prod(shape)
            passes = max(1, len(one.lines) - 1)  # two axes are one pass
            written = sum(math.prod(s) for s in one.shapes.values())
            moved += (samples + written) * passes * self.dtype.itemsize
            operations += samples * sum(line.operations for _, line in one.lines)
            barriers += passes
            shape = one.shapes[one.low]
        return PlanCost(moved, round(operations), barriers)

    @property
    def method(self) -> str:
        """``"lifting"`` or ``"filters"``: what the plan has decided on, along its last axis."""
        line = one_level(self._recipe, self.shape, self.dtype).lines[-1][1]
        return "lifting" if isinstance(line, Line) and line.chain is not None else "filters"

    def __repr__(self) -> str:
        names = dict.fromkeys(wavelet.name for wavelet in self._recipe.wavelets)
        modes = dict.fromkeys(self._recipe.modes)
        return (
            f"Plan({self.shape}, {', '.join(map(repr, names))}, level={self.level},"
            f" mode={', '.join(map(repr, modes))}, axes={self.axes}, dtype={str(self.dtype)!r},"
            f" backend={self.backend!r})"
        )


def _typed(band: Any, dtype: np.dtype[Any]) -> Array | None:
    if band is None:
        return None
    array = as_array(band, "coefficients")
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise ArgumentTypeError(f"this plan is transformed in {dtype}, got coefficients of {array.dtype}")
    return array.astype(dtype, copy=False)


def _shape(shape: Sequence[int] | int) -> tuple[int, ...]:
    whole = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if not whole or not all(isinstance(n, (int, np.integer)) and n >= 0 for n in whole):
        raise ArgumentError(f"a shape is one or more whole numbers, got {shape!r}")
    return tuple(int(n) for n in whole)
