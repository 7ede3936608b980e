"""From the arguments of the functions of the SWT to an engine, and back.

:func:`forward` and :func:`inverse` are all that these functions call. ``form`` is the function of the DWT
whose nesting of coefficients is theirs: ``wavedec``, ``wavedec2`` or ``wavedecn``. What was compiled for an
equal call before is looked up and called, as by :mod:`.discrete_calls`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import library_of, result_dtype, traceable_array
from ..engines.base import Engine, UnfollowableStridesError
from ..engines.cpu.engine import ForwardCall
from ..engines.dispatch import decompose, engine_for, recompose
from ..engines.tensors import call_untraced, is_torch_compiling
from ..errors import ArgumentError, ArgumentTypeError, MismatchedBandsError
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
from .compiled_calls import CALLS, call_key, keep_call
from .discrete_calls import Names

__all__ = ["StationaryModes", "forward", "inverse"]

Array = NDArray[Any]
StationaryModes = str | int | Sequence[Any] | None

PERIODIC = "periodization"  # the mode of PyWavelets


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

    def __init__(self, form: str, spec: TransformSpec, levels: int, x: Array, trim_approx: bool) -> None:
        self._form, self._trim, self._keys = form, trim_approx, spec.keys
        tree = BandTree.of_samples(spec, x.shape, levels)
        shapes = enumerate(tree.sample_shapes)
        trees = [tree] if trim_approx else [BandTree(spec.at_level(k), (shape,)) for k, shape in shapes]
        self._calls = []
        for tree in trees:
            self._calls.append(ForwardCall(tree, x, list))
            x = np.empty(tree.approximation_shape, x.dtype)

    def __call__(self, x: Array) -> list[Any] | None:
        """Return the coefficients, or None if only engines can read the array."""
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


def forward(
    form: str,
    data: Any,
    wavelet: Names,
    level: Any,
    start_level: Any,
    axes: Any,
    trim_approx: bool,
    norm: bool,
    mode: StationaryModes,
    out: Any,
    backend: str,
) -> list[Any]:
    """Return the coefficients of samples, nested as ``form`` does, with all approximations or with one."""
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
            __name__, "forward", form, data, wavelet, *numbers, axes, trim_approx, norm, mode, out, backend
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
        with suppress(UnfollowableStridesError):
            keep_call(key, _StationaryCall(form, spec, levels, x, trim_approx))
    if not trim_approx:
        return _with_all_approximations(form, engine, spec, data, x, levels, out)
    keyed = None if out is None else keyed_as(out, form)
    return from_keys(library_of(data).restore(decompose(engine, spec, x, levels, out, keyed), data), form)


def _with_all_approximations(
    form: str, engine: Engine, spec: TransformSpec, data: Any, x: Any, levels: int, out: Any
) -> list[Any]:
    """Return the coefficients of ``x``, which is ``data`` as the engine reads it, level by level."""
    if out is not None and (not isinstance(out, (list, tuple)) or len(out) != levels):
        got = f"{len(out)} entries" if isinstance(out, (list, tuple)) else type(out).__name__
        raise ArgumentError(f"out must hold the arrays of {levels} level(s), coarsest first, got {got}")
    coeffs = []
    for number in range(levels):
        nested = None if out is None else out[levels - 1 - number]
        bands = None if nested is None else _with_approximation(nested, spec.keys[0])
        low, details = decompose(engine, spec.at_level(number), x, 1, nested, bands)
        of_caller = library_of(data).restore([low, details], data)
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


def _has_axes(x: Any) -> bool:
    return isinstance(x, (list, tuple)) or bool(getattr(x, "shape", ()))


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


def inverse(
    form: str,
    coeffs: Any,
    wavelet: Names,
    axes: Any,
    norm: bool,
    mode: StationaryModes,
    start_level: int,
    out: Any,
    backend: str,
) -> Array:
    """Return the samples of coefficients, with all approximations or with one."""
    if is_torch_compiling():
        return call_untraced(  # type: ignore[no-any-return]
            __name__, "inverse", form, coeffs, wavelet, axes, norm, mode, start_level, out, backend
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
    elif form == "wavedec" and nested and len(first) == 2 and _has_axes(first[0]):
        levels = [_with_approximation(level, "a") for level in coeffs]
    else:
        return keyed_as(coeffs, form)
    known = [level for level in levels if level is not None]
    if len(known) != len(levels):
        return None
    return [known[0][0], *(details for _, details in known)]
