"""Adjoints of transforms: exact transposes of their matrices, also at the ends of lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..arrays import library_of, traceable_array
from ..engines.dispatch import decompose, engine_for, recompose
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..lowering.axis_arguments import Axes
from ..lowering.boundary_methods import BoundaryMethod, has_boundary_method
from ..lowering.nesting import FORMS, Form, arrays_of, keyed_as
from ..lowering.spec import TransformSpec, checked_level, deepest_lwt, transform_spec, undecimated_spec
from ..wavelets import Wavelet
from . import bounded

__all__ = ["adjoint"]


class _AdjointKind(NamedTuple):
    """A transform that has an adjoint: its family, its number of axes (None for any), and its direction."""

    family: str
    axes: int | None
    back: bool


_NAMES = {
    "dwt": ("wavedec", "waverec"),
    "lwt": ("lwt", "ilwt"),
    "swt": ("swt", "iswt"),
}
_SUFFIXES = {"": 1, "2": 2, "n": None}
TRANSFORMS = {
    name + suffix: _AdjointKind(family, axes, bool(back))
    for family, pair in _NAMES.items()
    for back, name in enumerate(pair)
    for suffix, axes in _SUFFIXES.items()
} | {"modwt": _AdjointKind("modwt", 1, False), "imodwt": _AdjointKind("modwt", 1, True)}
_DEFAULT_AXES: dict[int | None, int | tuple[int, int]] = {1: -1, 2: (-2, -1)}


def adjoint(
    function: str | Callable[..., Any],
    data: Any,
    wavelet: Wavelet | str | Sequence[Any],
    mode: str | int | BoundaryMethod | Sequence[Any] | None = None,
    level: int | None = None,
    axes: Axes = None,
    *,
    shape: Sequence[int] | None = None,
    backend: str = "auto",
) -> Any:
    """Apply the adjoint of a transform, the transpose of its matrix.

    For every x and y, the inner product of ``wavedec2(x)`` and ``y`` is that of ``x`` and
    ``adjoint("wavedec2", y)``, to rounding, with every boundary mode and method. Adjoints are what gradients,
    and solvers of inverse problems, need.

    Parameters
    ----------
    function : str or function
        The transform: ``wavedec``, ``waverec``, ``lwt``, ``ilwt``, ``swt`` or ``iswt``, or one of these with
        ``2`` or ``n`` behind its name; or ``modwt`` or ``imodwt``.
    data : list or array_like
        For a forward transform, coefficients nested as it returns them, with one approximation (``swt`` with
        ``trim_approx=True``); None stands for zeros. For an inverse transform, samples.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str, int or BoundaryMethod, or a sequence of them, optional
        The boundary mode, or for ``wavedec`` and ``waverec`` a boundary method. The default is
        ``"symmetric"``, and ``"periodization"`` for ``swt`` and ``modwt``.
    level : int, optional
        For an inverse transform, the number of levels. The default is as many as are useful.
    axes : int or sequence of int, optional
        The axes of the transform. The default is that of the function: the last axis, the last two, or all.
    shape : sequence of int, optional
        For a forward transform, the shape of the samples, needed for odd lengths.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    array or list
        The samples, or coefficients nested as the forward transform returns them.

    See Also
    --------
    undula.Plan.adjoint : The same for arrays of one shape, many times.
    undula.operators.WaveletOperator : The transform as a linear operator of SciPy.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.arange(9.0), [np.ones(5), np.ones(5)]
    >>> import undula
    >>> forward = sum(a @ b for a, b in zip(undula.wavedec(x, "haar", level=1), y))
    >>> bool(np.isclose(forward, x @ adjoint("wavedec", y, "haar", shape=(9,))))
    True
    """
    name = function if isinstance(function, str) else getattr(function, "__name__", repr(function))
    if name not in TRANSFORMS:
        raise UnknownNameError("transform with an adjoint", name, tuple(TRANSFORMS))
    transform = TRANSFORMS[name]
    form = FORMS[{1: "wavedec", 2: "wavedec2"}.get(transform.axes or 0, "wavedecn")]
    if axes is None:
        axes = _DEFAULT_AXES.get(transform.axes)
    if transform.family == "dwt" and has_boundary_method(mode):
        return _bounded(transform, form, data, wavelet, mode, level, axes, shape, backend)
    if transform.back:
        return _of_inverse(transform, form, data, wavelet, mode, level, axes, backend)
    keyed = _keyed(data[::-1] if transform.family == "modwt" else data, form)
    bands: list[Any] = [_band(keyed[0]), *({k: _band(v) for k, v in part.items()} for part in keyed[1:])]
    given = [band for band in arrays_of(bands) if band is not None]
    if not given:
        raise ArgumentError("at least one band of coefficients is needed, got only None")
    if transform.family == "lwt" and any(library_of(b).dtype(b).startswith(("int", "uint")) for b in given):
        raise ArgumentTypeError(
            "the LWT of integers rounds, and has no adjoint; pass coefficients of floats, whose LWT is scaled"
        )
    spec = _spec(transform, len(given[0].shape), wavelet, mode, form.axes(axes)).adjoint()
    samples = recompose(engine_for(given, backend), spec, bands, None if shape is None else tuple(shape))
    example = next(band for band in arrays_of(keyed) if band is not None)
    return library_of(example).restore(samples, example)


def _keyed(data: Any, form: Form) -> list[Any]:
    keyed = keyed_as(data, form.multilevel)
    if keyed is None:
        raise ArgumentError(f"coefficients are nested as {form.name} does, got {type(data).__name__}")
    return keyed


def _bounded(
    transform: _AdjointKind,
    form: Form,
    data: Any,
    wavelet: Any,
    mode: Any,
    level: int | None,
    axes: Axes,
    shape: Any,
    backend: str,
) -> Any:
    """Apply the adjoint of a transform with a boundary method."""
    if transform.back:
        return bounded.forward(form, data, wavelet, mode, level, axes, None, backend, transposed=True)
    keyed = _keyed(data, form)
    return bounded.inverse(keyed, wavelet, mode, form.axes(axes), shape, None, backend, transposed=True)


def _of_inverse(
    kind: _AdjointKind,
    form: Form,
    data: Any,
    wavelet: Any,
    mode: Any,
    level: Any,
    axes: Axes,
    backend: str,
) -> list[Any]:
    x = traceable_array(data)
    spec = _spec(kind, len(x.shape), wavelet, mode, form.axes(axes))
    if kind.family == "lwt" and level is None:
        level = deepest_lwt(spec, x.shape)
    levels = checked_level(x.shape, spec.wavelets, spec.axes, level)
    coeffs = decompose(engine_for([x], backend), spec.adjoint(), x, levels)
    nested: list[Any] = form.from_keyed(library_of(data).restore(coeffs, data))
    return nested[::-1] if kind.family == "modwt" else nested


def _spec(transform: _AdjointKind, ndim: int, wavelet: Any, mode: Any, axes: Axes) -> TransformSpec:
    if transform.family == "modwt":
        return undecimated_spec(ndim, wavelet, "periodization", axes, gain=math.sqrt(0.5), causal=True)
    if transform.family == "swt":
        return undecimated_spec(ndim, wavelet, "periodization" if mode is None else mode, axes)
    return transform_spec(
        ndim, wavelet, "symmetric" if mode is None else mode, axes, transform.family == "lwt"
    )


def _band(band: Any) -> Any:
    return None if band is None else traceable_array(band, "coefficients")
