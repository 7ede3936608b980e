"""Stationary transforms: the DWT without decimation, with the functions, arguments and results of PyWavelets.

Every level keeps the coefficients at all places, and the taps of its filters are twice as far apart as those
of the level before. So coefficients move with the samples, and there are as many in each band as samples.

PyWavelets takes lines as periods whose length is a multiple of ``2**level``. With ``mode=``, lines have any
length: in mode ``periodization`` they are periods, with as many coefficients as samples. In the other modes
they are extended as for the DWT, and bands keep all coefficients that depend on the line: ``L - 1`` more at
the first level, for filters of ``L`` taps, twice as many more at the second, and so on.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import library_of, result_dtype, traceable_array
from ..engines.base import UnfollowableStridesError
from ..engines.cpu.engine import ForwardCall
from ..engines.dispatch import decompose, engine_for, recompose
from ..engines.tensors import call_untraced, is_torch_compiling
from ..errors import ArgumentError, ArgumentTypeError, MismatchedBandsError
from ..lowering.axis_arguments import Axes, one_axis, two_axes
from ..lowering.nesting import FORMS, TUPLE_KEYS, arrays_of, from_keys, keyed_as, keyed_bands
from ..lowering.spec import (
    MAX_STATIONARY_LEVEL,
    NO_COEFFICIENTS,
    BandTree,
    TransformSpec,
    check_extension,
    is_exact_key,
    stationary_spec,
)
from ..wavelets import Wavelet
from .compiled_calls import CALLS, call_key, keep_call

__all__ = ["iswt", "iswt2", "iswtn", "swt", "swt2", "swt_max_level", "swtn"]

Array = NDArray[Any]
Name = Wavelet | str
Names = Wavelet | str | Sequence[Any]
Mode = str | int | None
Modes = str | int | Sequence[Any] | None

PERIODIC = "periodization"  # the mode of PyWavelets


def swt_max_level(input_len: int) -> int:
    """Return how many levels of :func:`swt` a line has, if its length limits them.

    Parameters
    ----------
    input_len : int
        Length of the line.

    Returns
    -------
    int
        How often the length is divisible by two.

    Examples
    --------
    >>> swt_max_level(48)
    4
    """
    if not isinstance(input_len, (int, np.integer)) or isinstance(input_len, bool):
        raise ArgumentTypeError(f"the length is an integer, got {input_len!r}")
    if input_len < 1:
        raise ArgumentError(f"Cannot apply swt to a size {input_len} signal; it needs samples")
    level = max(0, (int(input_len) & -int(input_len)).bit_length() - 1)
    if not level:
        warnings.warn(
            f"No levels of stationary wavelet decomposition are possible: the length {input_len} is odd."
            " Pad the line, or pass mode=, which takes any length",
            UserWarning,
            stacklevel=2,
        )
    return level


def _warn_of_energy(form: str, spec: TransformSpec) -> None:
    subject = "the wavelet is" if form == "wavedec" else "the wavelets used are"
    names = ", ".join(dict.fromkeys(wavelet.name for wavelet in spec.wavelets))
    warnings.warn(
        f"norm=True, but {subject} not orthogonal, so the energy of the samples is not kept: {names}",
        UserWarning,
        stacklevel=4,
    )


def _checked_levels(
    shape: tuple[int, ...], spec: TransformSpec, level: Any, start_level: Any, limited: bool
) -> int:
    """Return the number of levels, or raise an error if lines are too short or do not have such a period."""
    if level is not None and (not isinstance(level, (int, np.integer)) or isinstance(level, bool)):
        raise ArgumentTypeError(f"level must be an integer, got {level!r}")
    lengths = [shape[axis] for axis in spec.axes]
    if min(lengths) < 1 and level != 0:
        raise ArgumentError(f"Input data must have samples along the transformed axes, got shape {shape}")
    if level == 0:
        return 0
    if limited:
        most = min((n & -n).bit_length() - 1 for n in lengths) - start_level
        reason = f"the length of a line must be a multiple of 2**(start_level + level); got shape {shape}"
        hint = "pad the array, or pass mode=, which takes any length"
        if most < 1:
            raise ArgumentError(f"no level is possible from start_level={start_level}: {reason}; {hint}")
        if level is not None and level > most:
            raise ArgumentError(f"level must be from 1 to {most}, got {level}: {reason}; {hint}")
    else:
        spans = (n / (w.dec_len - 1) for n, w in zip(lengths, spec.wavelets, strict=True))
        most = max(1, min(int(math.log2(max(1.0, span))) for span in spans) - start_level)
    if level is None:
        return int(most)
    if not 0 <= level <= MAX_STATIONARY_LEVEL:
        raise ArgumentError(f"level must be from 0 to {MAX_STATIONARY_LEVEL}, got {level}")
    check_extension(spec, int(level))
    return int(level)


class _StationaryCall:
    """A stationary transform that is compiled for NumPy arrays of one layout: by level, or all at once."""

    def __init__(self, form: str, trees: Sequence[BandTree], x: Array, trim_approx: bool) -> None:
        self._form, self._trim, self._keys = form, trim_approx, trees[0].spec.keys
        self._calls = []
        for tree in trees:
            self._calls.append(ForwardCall(tree, x, list))
            x = np.empty(tree.approximation_shape, x.dtype)

    def __call__(self, x: Array) -> list[Any] | None:
        """Return the coefficients, or None if the arrays have to be looked at closer."""
        levels = []
        for call in self._calls:
            flat = call(x)
            if flat is None:
                return None
            levels.append(flat)
            x = flat[0]
        if self._trim:
            return from_keys(keyed_bands(levels[0], self._keys[1:]), self._form)
        low, *rest = self._keys
        return [
            _level_as(self._form, flat[0], dict(zip(rest, flat[1:], strict=True)), low)
            for flat in reversed(levels)
        ]


def _forward(
    form: str,
    data: Any,
    wavelet: Names,
    level: Any,
    start_level: Any,
    axes: Any,
    trim_approx: bool,
    norm: bool,
    mode: Modes,
    out: Any,
    backend: str,
) -> list[Any]:
    key = None
    if type(data) is np.ndarray and out is None and backend == "auto":
        numbers = level, start_level
        if is_exact_key(wavelet, mode, axes, *numbers):
            layout = data.shape, data.strides, data.dtype, bool(trim_approx), bool(norm)
            name = form.replace("wavedec", "swt")
            key = call_key(name, wavelet, mode, axes, (*numbers, *map(type, numbers), *layout))
            call = CALLS.get(key)
            if call is not None:
                coeffs: list[Any] | None = call(data)
                if coeffs is not None:
                    return coeffs
    elif is_torch_compiling():
        numbers = level, start_level
        return call_untraced(  # type: ignore[no-any-return]
            __name__, "_forward", form, data, wavelet, *numbers, axes, trim_approx, norm, mode, out, backend
        )
    x = traceable_array(data)
    ndim = len(x.shape)
    if ndim < 1:
        raise ArgumentError(f"{FORMS[form].expected}, got a single number")
    spec = stationary_spec(ndim, wavelet, PERIODIC if mode is None else mode, axes, start_level, norm)
    silent = not norm or all(wavelet.orthogonal for wavelet in spec.wavelets)
    if not silent:
        _warn_of_energy(form, spec)
    if form == "wavedec" and isinstance(level, (int, np.integer)) and level < 1:
        raise ArgumentError(f"Level value must be greater than zero, got {level}")
    levels = _checked_levels(tuple(x.shape), spec, level, start_level, mode is None)
    engine = engine_for([x], backend)
    if not levels:
        return [x] if trim_approx else []
    # A call that warns is not looked up, so that it warns each time.
    if key is not None and silent and x.size and x.dtype == result_dtype(x.dtype):
        tree = BandTree.of_samples(spec, x.shape, levels)
        shapes = enumerate(tree.sample_shapes)
        trees = [tree] if trim_approx else [BandTree(spec.at_level(k), (shape,)) for k, shape in shapes]
        with suppress(UnfollowableStridesError):
            keep_call(key, _StationaryCall(form, trees, x, trim_approx))
    restore = library_of(data).restore
    if trim_approx:
        keyed = None if out is None else keyed_as(out, form)
        return from_keys(restore(decompose(engine, spec, x, levels, out, keyed), data), form)
    if out is not None and (not isinstance(out, (list, tuple)) or len(out) != levels):
        got = f"{len(out)} entries" if isinstance(out, (list, tuple)) else type(out).__name__
        raise ArgumentError(f"out must hold the arrays of {levels} level(s), coarsest first, got {got}")
    coeffs = []
    for number in range(levels):
        nested = None if out is None else out[levels - 1 - number]
        bands = None if nested is None else _with_approximation(nested, spec.keys[0])
        low, details = decompose(engine, spec.at_level(number), x, 1, nested, bands)
        of_caller = restore([low, details], data)
        coeffs.append(_level_as(form, of_caller[0], of_caller[1], spec.keys[0]))
        x = low
    return coeffs[::-1]


def _level_as(form: str, low: Any, details: Mapping[str, Any], key: str) -> Any:
    """Return one level with its approximation, nested as ``form`` does."""
    if form == "wavedec":
        return low, details["d"]
    if form == "wavedec2":
        return low, tuple(details[name] for name in TUPLE_KEYS)
    return {key: low, **details}


def _with_approximation(level: Any, key: str) -> list[Any] | None:
    """Return one level that was nested by :func:`_level_as` as keyed coefficients; None if it was not."""
    if isinstance(level, Mapping):
        return [level.get(key), {name: band for name, band in level.items() if name != key}]
    if not isinstance(level, (tuple, list)) or len(level) != 2:
        return None
    if len(key) == 1:
        return [level[0], {"d": level[1]}]
    details = level[1]
    if not isinstance(details, (tuple, list)) or len(details) != len(TUPLE_KEYS):
        return None
    return [level[0], dict(zip(TUPLE_KEYS, details, strict=True))]


def _inverse(
    form: str,
    coeffs: Any,
    wavelet: Names,
    axes: Any,
    norm: bool,
    mode: Modes,
    start_level: int,
    out: Any,
    backend: str,
) -> Array:
    if is_torch_compiling():
        return call_untraced(  # type: ignore[no-any-return]
            __name__, "_inverse", form, coeffs, wavelet, axes, norm, mode, start_level, out, backend
        )
    if isinstance(coeffs, np.ndarray) and coeffs.ndim > 1:
        coeffs = list(coeffs)  # Bands of one shape are often stacked in one array.
    if isinstance(coeffs, (str, Mapping, np.ndarray)) or not isinstance(coeffs, Sequence):
        raise ArgumentTypeError(f"Expected a list of coefficients, got {type(coeffs).__name__}")
    if not coeffs:
        raise ArgumentError(NO_COEFFICIENTS)
    keyed = _keyed(form, coeffs)
    if keyed is None:
        raise ArgumentError(
            f"coefficients must be nested as {form.replace('wavedec', 'swt')} does, with all approximations"
            " or, after trim_approx=True, with one"
        )
    arrays: list[Any] = [_band(keyed[0], "the approximation")]
    for number, details in enumerate(keyed[1:], 1):
        arrays.append({key: _band(band, f"band {key!r} of level {number}") for key, band in details.items()})
    given = [band for band in arrays_of(arrays) if band is not None]
    if not given:
        raise ArgumentError(NO_COEFFICIENTS)
    ndim = len(given[0].shape)
    if form == "wavedecn" and axes is None and len(arrays) > 1 and arrays[1]:
        axes = tuple(range(-len(next(iter(arrays[1]))), 0))
    spec = stationary_spec(ndim, wavelet, PERIODIC if mode is None else mode, axes, start_level, norm)
    for number, details in enumerate(arrays[1:], 1):
        if not set(details) <= set(spec.keys[1:]):
            raise ArgumentError(
                f"details {number} of {len(spec.axes)} axes have keys among {spec.keys[1:]}, got"
                f" {sorted(map(str, details))}"
            )
    if mode is None and len({tuple(band.shape) for band in given}) > 1:
        shapes = sorted({tuple(band.shape) for band in given})
        raise MismatchedBandsError(f"all bands must have the same shape, got {shapes}")
    engine = engine_for(given, backend)
    samples = recompose(engine, spec, arrays, None, out)
    example = next(band for band in arrays_of(keyed) if band is not None)
    restored: Array = library_of(example).restore(samples, example)
    return restored


def _band(band: Any, what: str) -> Any:
    return None if band is None else traceable_array(band, what)


def _keyed(form: str, coeffs: Sequence[Any]) -> list[Any] | None:
    """Return coefficients with one approximation, or with those of all levels, as keyed ones."""
    first = coeffs[0]
    nested = isinstance(first, (tuple, list))
    if nested and len(first) != 2 and any(hasattr(part, "shape") for part in first):
        return None  # neither two parts nor an approximation
    if form == "wavedecn" and isinstance(first, Mapping):
        lengths = {len(name) for name in first if isinstance(name, str)}
        if len(lengths) > 1:
            return None
        key = "a" * max(lengths, default=1)
        levels = [_with_approximation(level, key) for level in coeffs]
    elif form == "wavedec2" and nested and len(first) == 2:
        levels = [_with_approximation(level, "aa") for level in coeffs]
    elif form == "wavedec" and nested and len(first) == 2 and np.ndim(first[0]):
        levels = [_with_approximation(level, "a") for level in coeffs]
    else:
        return keyed_as(coeffs, form)
    known = [level for level in levels if level is not None]
    if len(known) != len(levels):
        return None
    return [known[0][0], *(details for _, details in known)]


# --- public functions -----------------------------------------------------------------------------


def swtn(
    data: ArrayLike,
    wavelet: Names,
    level: int | None,
    start_level: int = 0,
    axes: Axes = None,
    trim_approx: bool = False,
    norm: bool = False,
    *,
    mode: Modes = None,
    out: Sequence[Any] | None = None,
    backend: str = "auto",
) -> list[Any]:
    """Compute the stationary wavelet transform along several axes.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    level : int or None
        Number of levels; None for as many as the lengths allow, or, with ``mode``, as many as are useful.
    start_level : int, default 0
        How many levels were computed before: the taps of the first level are ``2**start_level`` apart.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    trim_approx : bool, default False
        Whether to return the approximation of the coarsest level only.
    norm : bool, default False
        Whether to divide the filters by √2, so that an orthogonal wavelet keeps the energy of the samples
        and approximations have the range of the samples.
    mode : str or int, or a sequence of them, optional
        How lines of any length go on beyond their ends: one of ``undula.MODES`` or its number, or one for
        each axis; see the notes. By default, lines are periods whose length is a multiple of
        ``2**(start_level + level)``, as in PyWavelets.
    out : list, optional
        Arrays for the coefficients, nested as the result is.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list of dict
        The bands of each level by key, coarsest level first; with ``trim_approx``, the approximation, and
        then the details of each level.

    See Also
    --------
    undula.modwt : The same along one axis in the convention of statistics.

    Notes
    -----
    In mode ``"periodization"`` a line of any length is a period, and bands have the shape of the samples. In
    the other modes, bands have all coefficients that depend on the line, so that it can be reconstructed:
    ``(L - 1) * 2**k`` more along each axis at level ``k``, counted from 0, for filters of ``L`` taps.

    Examples
    --------
    >>> coarse, fine = swtn(np.eye(4), "haar", 2)
    >>> sorted(fine), fine["ad"].shape
    (['aa', 'ad', 'da', 'dd'], (4, 4))
    >>> swtn(np.ones(5), "db2", 1, mode="symmetric")[0]["a"].shape
    (8,)
    """
    return _forward(
        "wavedecn", data, wavelet, level, start_level, axes, trim_approx, norm, mode, out, backend
    )


def iswtn(
    coeffs: Sequence[Any],
    wavelet: Names,
    axes: Axes = None,
    norm: bool = False,
    *,
    mode: Modes = None,
    start_level: int = 0,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`swtn`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`swtn` returns them. Approximations but the coarsest are not used. None in
        place of a band stands for zeros.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    axes : int or sequence of int, optional
        Axes to transform. The default is the last axes, as many as keys have letters.
    norm : bool, default False
        Whether the coefficients were computed with ``norm=True``.
    mode : str or int, or a sequence of them, optional
        The mode of the transform: one of ``undula.MODES`` or its number, or one for each axis. By default,
        lines are periods whose length is a multiple of ``2**(start_level + level)``, as in PyWavelets.
    start_level : int, default 0
        The ``start_level`` of the transform.
    out : array, optional
        Array for the result.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    array
        The samples: the mean of what all choices of every second coefficient give.

    Examples
    --------
    >>> x = np.arange(8.0).reshape(2, 4)
    >>> bool(np.allclose(iswtn(swtn(x, "haar", 1), "haar"), x))
    True
    """
    return _inverse("wavedecn", coeffs, wavelet, axes, norm, mode, start_level, out, backend)


def swt(
    data: ArrayLike,
    wavelet: Name,
    level: int | None = None,
    start_level: int = 0,
    axis: int = -1,
    trim_approx: bool = False,
    norm: bool = False,
    *,
    mode: Mode = None,
    out: Sequence[Any] | None = None,
    backend: str = "auto",
) -> list[Any]:
    """Compute the stationary wavelet transform along one axis.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str
        The wavelet.
    level : int, optional
        Number of levels. The default is as many as the length allows, or, with ``mode``, as many as are
        useful.
    start_level : int, default 0
        How many levels were computed before: the taps of the first level are ``2**start_level`` apart.
    axis : int, default -1
        Axis to transform.
    trim_approx : bool, default False
        Whether to return the approximation of the coarsest level only.
    norm : bool, default False
        Whether to divide the filters by √2, so that an orthogonal wavelet keeps the energy of the samples and
        approximations have the range of the samples.
    mode : str or int, optional
        How lines of any length go on beyond their ends: one of ``undula.MODES`` or its number. In mode
        ``"periodization"`` bands have the shape of the samples; in the other modes they are longer. By
        default, lines are periods whose length is a multiple of ``2**(start_level + level)``, as in
        PyWavelets.
    out : list, optional
        Arrays for the coefficients, nested as the result is.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list
        ``[(cA, cD) of the coarsest level, …, (cA, cD) of the finest level]``; with ``trim_approx``,
        ``[cA, cD of the coarsest level, …, cD of the finest level]``.

    Examples
    --------
    >>> (cA, cD), = swt([1.0, 2.0, 4.0, 8.0], "haar", 1, norm=True)
    >>> cA.tolist(), cD.round(3).tolist()
    ([1.5, 3.0, 6.0, 4.5], [-0.5, -1.0, -2.0, 3.5])
    """
    return _forward(
        "wavedec", data, wavelet, level, start_level, one_axis(axis), trim_approx, norm, mode, out, backend
    )


def iswt(
    coeffs: Sequence[Any],
    wavelet: Name,
    norm: bool = False,
    axis: int = -1,
    *,
    mode: Mode = None,
    start_level: int = 0,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`swt`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`swt` returns them. Approximations but the coarsest are not used. None in
        place of a band stands for zeros.
    wavelet : Wavelet or str
        The wavelet.
    norm : bool, default False
        Whether the coefficients were computed with ``norm=True``.
    axis : int, default -1
        Axis to transform.
    mode : str or int, optional
        The mode of the transform: one of ``undula.MODES`` or its number. By default, lines are periods whose
        length is a multiple of ``2**(start_level + level)``, as in PyWavelets.
    start_level : int, default 0
        The ``start_level`` of the transform.
    out : array, optional
        Array for the result.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    array
        The samples.

    Examples
    --------
    >>> iswt(swt([1.0, 2.0, 4.0, 8.0], "haar", 2), "haar").round(12).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    return _inverse("wavedec", coeffs, wavelet, one_axis(axis), norm, mode, start_level, out, backend)


def swt2(
    data: ArrayLike,
    wavelet: Names,
    level: int | None,
    start_level: int = 0,
    axes: Sequence[int] = (-2, -1),
    trim_approx: bool = False,
    norm: bool = False,
    *,
    mode: Modes = None,
    out: Sequence[Any] | None = None,
    backend: str = "auto",
) -> list[Any]:
    """Compute the stationary wavelet transform of images.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    level : int or None
        Number of levels; None for as many as the lengths allow, or, with ``mode``, as many as are useful.
    start_level : int, default 0
        How many levels were computed before: the taps of the first level are ``2**start_level`` apart.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
    trim_approx : bool, default False
        Whether to return the approximation of the coarsest level only.
    norm : bool, default False
        Whether to divide the filters by √2, so that an orthogonal wavelet keeps the energy of the samples and
        approximations have the range of the samples.
    mode : str or int, or a pair of them, optional
        How lines of any length go on beyond their ends: one of ``undula.MODES`` or its number, or one for
        each axis. In mode ``"periodization"`` bands have the shape of the samples; in the other modes they
        are longer. By default, lines are periods whose length is a multiple of ``2**(start_level + level)``,
        as in PyWavelets.
    out : list, optional
        Arrays for the coefficients, nested as the result is.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list
        ``[(cA, (cH, cV, cD)) of the coarsest level, …]``; with ``trim_approx``, ``[cA, (cH, cV, cD) of the
        coarsest level, …]``. The details are horizontal edges, vertical edges and diagonals.

    Examples
    --------
    >>> ((cA, (cH, cV, cD)),) = swt2(np.eye(4), "haar", 1)
    >>> cA.shape, cH.shape
    ((4, 4), (4, 4))
    """
    return _forward(
        "wavedec2", data, wavelet, level, start_level, two_axes(axes), trim_approx, norm, mode, out, backend
    )


def iswt2(
    coeffs: Sequence[Any],
    wavelet: Names,
    norm: bool = False,
    axes: Sequence[int] = (-2, -1),
    *,
    mode: Modes = None,
    start_level: int = 0,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`swt2`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`swt2` returns them. Approximations but the coarsest are not used. None in
        place of a band stands for zeros.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    norm : bool, default False
        Whether the coefficients were computed with ``norm=True``.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
    mode : str or int, or a pair of them, optional
        The mode of the transform: one of ``undula.MODES`` or its number, or one for each axis. By default,
        lines are periods whose length is a multiple of ``2**(start_level + level)``, as in PyWavelets.
    start_level : int, default 0
        The ``start_level`` of the transform.
    out : array, optional
        Array for the result.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    array
        The samples.

    Examples
    --------
    >>> x = np.arange(16.0).reshape(4, 4)
    >>> bool(np.allclose(iswt2(swt2(x, "db2", 2), "db2"), x))
    True
    """
    return _inverse("wavedec2", coeffs, wavelet, two_axes(axes), norm, mode, start_level, out, backend)
