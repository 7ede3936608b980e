"""From the arguments of the functions of the DWT to an engine, and back.

:func:`forward` and :func:`inverse` are all that these functions call. What was compiled for an equal call
before is looked up and called. Otherwise the arguments are read and checked, and the transform is compiled
for the next time, or goes through :mod:`undula.engines.dispatch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import as_shape, library_of, operator_array, traceable_array
from ..engines.dispatch import decompose, engine_for, recompose
from ..engines.tensors import call_untraced, is_torch_compiling
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.borders import BORDERS
from ..lowering.boundary_methods import BoundaryMethod, has_boundary_method
from ..lowering.nesting import FORMS, NESTING, Form, arrays_of, band_keys, keyed_as
from ..lowering.spec import NO_COEFFICIENTS, BandTree, TransformSpec, checked_level, transform_spec
from ..wavelets import Wavelet
from .compiled_calls import CALLS, bands_layout, call_key, compile_forward, compile_inverse, keep_call

__all__ = ["Length", "Modes", "Names", "check_line_lengths", "forward", "inverse"]

Names = Wavelet | str | Sequence[Any]
Modes = str | int | BoundaryMethod | Sequence[Any]
Length = int | Sequence[int] | None


# --- forward --------------------------------------------------------------------------------------


def forward(
    name: str, data: Any, wavelet: Names, mode: Modes, level: int | None, axes: Any, out: Any, backend: str
) -> Any:
    """Return the coefficients of samples, nested as the function of this name nests them."""
    key, kept = None, None
    layout: tuple[Any, ...] | None = None
    if type(data) is np.ndarray:
        if backend == "auto":
            layout = data.shape, data.strides, data.dtype
    elif is_torch_compiling():
        return call_untraced(__name__, "forward", name, data, wavelet, mode, level, axes, out, backend)
    else:
        library = library_of(data)
        if library.has_operators(data):
            layout = data.shape, backend, library.name
    if layout is not None and out is None:
        key = call_key(name, wavelet, mode, axes, (*layout, level, type(level)))
        try:
            kept = CALLS.get(key)
        except TypeError:  # A list, for instance of wavelets, is not looked up.
            key = None
        if kept is not None:
            coeffs = kept.call(data)
            if coeffs is not None:
                if kept.warn is not None:
                    kept.warn(stacklevel=4)
                return coeffs
    form = FORMS[name]
    if has_boundary_method(mode):
        from . import bounded

        return bounded.forward(form, data, wavelet, mode, level, axes, out, backend)
    x = traceable_array(data) if key is None else operator_array(data)
    ndim = len(x.shape)
    if ndim < 1:
        raise ArgumentError(f"{form.expected}, got a single number")
    spec = transform_spec(ndim, wavelet, mode, form.axes(axes), distinct=not form.single)
    levels = 1 if form.single else checked_level(x.shape, spec.wavelets, spec.axes, level, stacklevel=4)
    if levels and any(x.shape[axis] < 1 for axis in spec.axes):
        raise ArgumentError(f"Input data must have samples along the transformed axes, got shape {x.shape}")
    if not spec.distinct:
        return form.from_bands(_along_repeated_axes(spec, data if spec.axes else x, out, backend))
    check_line_lengths(spec, x.shape, levels)
    if key is not None and kept is None:
        kept = compile_forward(form, spec, x, levels, backend)
        if kept is not None:
            keep_call(key, kept)
            coeffs = kept.call(data)
            if coeffs is not None:
                return coeffs
    keyed = None if out is None else form.keyed(out, spec.keys[0])
    x = traceable_array(x)
    coeffs = decompose(engine_for([x], backend), spec, x, levels, out, keyed)
    return form.from_keyed(library_of(data).restore(coeffs, data))


def check_line_lengths(spec: TransformSpec, shape: tuple[int, ...], levels: int) -> None:
    """Raise an error if a line is too short for its mode, as PyWavelets does."""
    for axis, mode in zip(spec.axes, spec.modes, strict=True):
        shortest = BORDERS[mode].shortest
        if shortest > 1:
            for number, samples in enumerate(BandTree.of_samples(spec, shape, levels).sample_shapes, 1):
                if samples[axis] < shortest:
                    raise ArgumentError(
                        f"mode {mode!r} needs {shortest} samples, got {samples[axis]} along axis {axis}"
                        f" at level {number} of shape {shape}; use fewer levels or another mode"
                    )


def _along_repeated_axes(spec: TransformSpec, data: Any, out: Any, backend: str) -> dict[str, Any]:
    """Return the bands of one level, by key, of a transform along one axis after the other."""
    if out is not None:
        raise ArgumentError(f"out needs axes that are distinct, got {spec.axes}")
    bands = {"": data}
    for axis, wavelet, mode in zip(spec.axes, spec.wavelets, spec.modes, strict=True):
        halves = {
            key: forward("dwt", band, wavelet, mode, 1, axis, None, backend) for key, band in bands.items()
        }
        bands = {key + letter: halves[key]["ad".index(letter)] for key in bands for letter in "ad"}
    return bands


# --- back -----------------------------------------------------------------------------------------


def inverse(
    name: str, coeffs: Any, wavelet: Names, mode: Modes, axes: Any, shape: Length, out: Any, backend: str
) -> Any:
    """Return the samples of coefficients that are nested as the function of this name nests them."""
    if is_torch_compiling():
        return call_untraced(__name__, "inverse", name, coeffs, wavelet, mode, axes, shape, out, backend)
    form = FORMS[name]
    key = call = None
    bands, names = form.listed(coeffs) or ([], ())
    layout = bands_layout(bands, shape, backend) if bands and out is None else None
    if layout is not None:
        key = call_key(name, wavelet, mode, axes, (names, layout))
        try:
            call = CALLS.get(key)
        except TypeError:
            key = None
        if call is not None:
            x = call(bands)
            if x is not None:
                return x
    if has_boundary_method(mode):
        from . import bounded

        keyed = _keyed_level(form, coeffs) if form.single else _keyed_levels(form, coeffs)
        return bounded.inverse(keyed, wavelet, mode, form.axes(axes), shape, out, backend)
    read = _read_level if form.single else _read_levels
    spec, keyed, example = read(form, coeffs, wavelet, mode, axes)
    if not spec.distinct:
        return _back_along_repeated_axes(spec, {spec.keys[0]: keyed[0], **keyed[1]}, shape, out, backend)
    given = [band for band in arrays_of(keyed) if band is not None]
    lengths = as_shape(shape, len(given[0].shape))
    if key is not None and call is None:
        call = compile_inverse(spec, keyed, bands, lengths, backend)
        if call is not None:
            keep_call(key, call)
            x = call(bands)
            if x is not None:
                return x
    keyed = [_traceable(keyed[0]), *({k: _traceable(v) for k, v in part.items()} for part in keyed[1:])]
    engine = engine_for([band for band in arrays_of(keyed) if band is not None], backend)
    return library_of(example).restore(recompose(engine, spec, keyed, lengths, out), example)


def _traceable(band: Any) -> Any:
    return None if band is None else traceable_array(band)


def _back_along_repeated_axes(
    spec: TransformSpec, bands: Mapping[str, Any], shape: Length, out: Any, backend: str
) -> Any:
    """Invert :func:`_along_repeated_axes`."""
    if shape is not None or out is not None:
        raise ArgumentError(f"shape and out need axes that are distinct, got {spec.axes}")
    steps = zip(spec.axes, spec.wavelets, spec.modes, strict=True)
    for number, (axis, wavelet, mode) in reversed(list(enumerate(steps))):
        pairs = {key: (bands.get(f"{key}a"), bands.get(f"{key}d")) for key in band_keys(number)}
        bands = {
            key: inverse("dwt", pair, wavelet, mode, axis, None, None, backend)
            for key, pair in pairs.items()
            if any(band is not None for band in pair)
        }
    return bands[""]


# --- coefficients of callers ----------------------------------------------------------------------


def _by_key(form: Form, coeffs: Any) -> Mapping[str, Any]:
    """Return the bands of one level by key, or raise an error that says what is wrong."""
    if form.name == "dwt":
        return dict(zip("ad", coeffs, strict=True))
    if form.name == "dwtn":
        if isinstance(coeffs, Mapping):
            return coeffs
        raise ArgumentTypeError(f"bands are given by key, such as {{'aa': …}}, got {type(coeffs).__name__}")
    keyed = form.keyed(coeffs, "aa")
    if keyed is None:
        raise ArgumentError(f"coefficients are a pair (cA, (cH, cV, cD)), got {type(coeffs).__name__}")
    return {"aa": keyed[0], **keyed[1]}


def _keyed_level(form: Form, coeffs: Any) -> list[Any]:
    """Return coefficients of one level as keyed ones."""
    bands = _by_key(form, coeffs)
    low = "a" * max(map(len, bands), default=1)
    return [bands.get(low), {key: band for key, band in bands.items() if key != low}]


def _keyed_levels(form: Form, coeffs: Any) -> list[Any]:
    """Return coefficients of several levels as keyed ones, or raise an error that says what is wrong."""
    if isinstance(coeffs, (str, Mapping, np.ndarray)) or not isinstance(coeffs, Sequence):
        raise ArgumentError(f"Expected sequence of coefficient arrays, got {type(coeffs).__name__}")
    if len(coeffs) < 1:
        raise ArgumentError("Coefficient list too short (minimum 1 array required).")
    keyed = keyed_as(coeffs, form.name)
    if keyed is None:
        raise ArgumentError(
            f"Unexpected detail coefficient type: coefficients must be nested as {form.name} does:"
            f" {NESTING[form.name]}"
        )
    return keyed


def _read_level(
    form: Form, coeffs: Any, wavelet: Names, mode: Modes, axes: Any
) -> tuple[TransformSpec, list[Any], Any]:
    """Return the transform, bands by key, and one of them as it was given, of one level."""
    given, axes = _by_key(form, coeffs), form.axes(axes)
    bands = {key: _band(band, f"band {key!r}") for key, band in given.items()}
    shapes = {key: tuple(band.shape) for key, band in bands.items() if band is not None}
    if not shapes:
        raise ArgumentError(NO_COEFFICIENTS)
    if len(set(shapes.values())) > 1:
        raise ArgumentError(f"Coefficients arrays must have the same shape, got {shapes}")
    if axes is None:
        axes = range(max(len(str(key)) for key in bands))
    spec = transform_spec(len(next(iter(shapes.values()))), wavelet, mode, axes, distinct=False)
    if not set(bands) <= set(spec.keys):
        raise ArgumentError(
            f"bands of {len(spec.axes)} axes have keys among {spec.keys}, got {sorted(map(str, bands))}"
        )
    example = next(band for band in given.values() if band is not None)
    return spec, [bands.pop(spec.keys[0], None), bands], example


def _read_levels(
    form: Form, coeffs: Any, wavelet: Names, mode: Modes, axes: Any
) -> tuple[TransformSpec, list[Any], Any]:
    """Return the transform, coefficients by key, and one of them as it was given, of several levels."""
    keyed = _keyed_levels(form, coeffs)
    arrays: list[Any] = [_band(keyed[0], "the approximation")]
    for number, level in enumerate(keyed[1:], 1):
        if form.name == "wavedecn" and any(band is None for band in level.values()):
            raise ArgumentError(f"details {number} must be arrays, got None; leave out the key or pass zeros")
        arrays.append({key: _band(band, f"band {key!r} of level {number}") for key, band in level.items()})
    given = [a for a in arrays_of(arrays) if a is not None]
    if not given:
        raise ArgumentError(NO_COEFFICIENTS)
    if not given[0].shape:
        raise ArgumentError("coefficients must be arrays with at least one axis, got a single number")
    spec = transform_spec(len(given[0].shape), wavelet, mode, form.axes(axes))
    for number, level in enumerate(arrays[1:], 1):
        if not set(level) <= set(spec.keys[1:]):
            raise ArgumentError(
                f"details {number} of {len(spec.axes)} axes have keys among {spec.keys[1:]}, got"
                f" {sorted(map(str, level))}"
            )
    return spec, arrays, next(a for a in arrays_of(keyed) if a is not None)


def _band(band: Any, what: str) -> Any:
    return None if band is None else operator_array(band, what)
