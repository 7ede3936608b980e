"""The DWT of arrays, with the functions, arguments and results of PyWavelets.

Every function is a form of ``wavedecn`` or ``waverecn``: with one level for ``dwtn``, and with simpler
coefficients for one and two axes. ``out=`` takes arrays for the results, nested as the results are.
``shape=`` restores odd lengths, which the coefficients do not determine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import as_shape, library_of, operand, result_dtype, traceable_array
from ..engines.cpu.engine import InverseCall, forward_call
from ..engines.dispatch import decompose, engine_for, operator_engine, recompose
from ..engines.tensors import call_compiled, is_compiled
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.axis_arguments import Axes
from ..lowering.borders import BORDERS
from ..lowering.boundary_methods import BoundaryMethod, has_boundary_method
from ..lowering.nesting import FORMS, NESTING, Form, arrays_of, band_keys, flat_bands, keyed_as, shapes_of
from ..lowering.spec import (
    NO_COEFFICIENTS,
    BandTree,
    TransformSpec,
    checked_level,
    exact_types,
    is_exact_key,
    transform_spec,
)
from ..wavelets import Wavelet

__all__ = [
    "dwt",
    "dwt2",
    "dwtn",
    "idwt",
    "idwt2",
    "idwtn",
    "wavedec",
    "wavedec2",
    "wavedecn",
    "waverec",
    "waverec2",
    "waverecn",
]

Array = NDArray[Any]
Name = Wavelet | str
Names = Wavelet | str | Sequence[Any]
Mode = str | int | BoundaryMethod
Modes = str | int | BoundaryMethod | Sequence[Any]
Length = int | Sequence[int] | None


DWT, DWT2, DWTN, WAVEDEC, WAVEDEC2, WAVEDECN = FORMS.values()
MAX_CALLS = 2048
_calls: dict[Any, Any] = {}  # What was compiled for earlier calls, by their arguments.


def _call_key(form: Form, wavelet: Names, mode: Modes, axes: Any, rest: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the key by which a call is looked up; ``rest`` is what it depends on besides these arguments."""
    key = (form.name, wavelet, mode, axes, rest, type(mode), type(axes))
    if type(axes) is tuple or type(mode) is tuple:
        return *key, exact_types(mode), exact_types(axes)
    return key


def _remember(key: Any, call: Any) -> None:
    """Keep a compiled call, unless an argument could compare equal to one of another type."""
    _, wavelet, mode, axes, *_ = key
    if not is_exact_key(wavelet, mode, axes):
        return
    if len(_calls) >= MAX_CALLS:
        _calls.clear()
    _calls[key] = call


def _forward(
    form: Form, data: Any, wavelet: Names, mode: Modes, level: int | None, axes: Any, out: Any, backend: str
) -> Any:
    """Return the coefficients in a form; what was compiled for an equal call before is looked up."""
    key = compiled = None
    layout: tuple[Any, ...] | None = None
    if type(data) is np.ndarray:
        if backend == "auto":
            layout = data.shape, data.strides, data.dtype
    elif is_compiled():
        options = {"axis" if form.multilevel == "wavedec" else "axes": axes, "out": out, "backend": backend}
        if form.name == form.multilevel:
            options["level"] = level
        return call_compiled(__name__, form.name, data, wavelet, mode, **options)
    else:
        library = library_of(data)
        if library.has_operators(data):
            layout = data.shape, backend, library.name
    if layout is not None and out is None:
        key = _call_key(form, wavelet, mode, axes, (*layout, level, type(level)))
        try:
            compiled = _calls.get(key)
        except TypeError:  # A list, for instance of wavelets, is not looked up.
            key = None
        if compiled is not None:
            call, warn = compiled
            coeffs = call(data)
            if coeffs is not None:
                if warn is not None:
                    warn(stacklevel=4)
                return coeffs
    if has_boundary_method(mode):
        from . import bounded

        return bounded.forward(form, data, wavelet, mode, level, axes, out, backend)
    x = traceable_array(data) if key is None else operand(data)
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
    if key is not None and compiled is None:
        compiled = _compiled_forward(form, spec, x, levels, backend)
        if compiled is not None:
            _remember(key, compiled)
            coeffs = compiled[0](data)
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
        halves = {key: dwt(band, wavelet, mode, axis, backend=backend) for key, band in bands.items()}
        bands = {key + letter: halves[key]["ad".index(letter)] for key in bands for letter in "ad"}
    return bands


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
            key: idwt(*pair, wavelet, mode, axis, backend=backend)
            for key, pair in pairs.items()
            if any(band is not None for band in pair)
        }
    return bands[""]


def _compiled_forward(
    form: Form, spec: TransformSpec, x: Any, levels: int, backend: str
) -> tuple[Callable[[Any], Any], Callable[..., int] | None] | None:
    """Compile a transform for NumPy arrays of the layout of ``x``, or for tensors of its shape.

    Returns
    -------
    call : callable
        A function of the array that returns its coefficients.
    warn : function or None
        What each call has to warn of: that there are more levels than are useful.

    None is returned in place of both if kernels cannot read the array as it is.
    """
    nest, call = form.flat_nesting(spec.keys[1:], levels), None
    if not isinstance(x, np.ndarray):
        call = operator_engine(x, backend).forward_call(spec, levels, nest)
    elif levels and x.size and x.dtype == result_dtype(x.dtype) and x.strides[-1] == x.itemsize:
        tree = BandTree.of_samples(spec, x.shape, levels)
        call = forward_call(tree, x, nest)
    if call is None:
        return None
    if form.single or levels <= checked_level(x.shape, spec.wavelets, spec.axes, None):
        return call, None
    return call, partial(checked_level, x.shape, spec.wavelets, spec.axes, levels)


def _inverse(
    arguments: tuple[Any, ...],
    bands: list[Any] | None,
    read: Callable[[], tuple[TransformSpec, list[Any], Any]],
    shape: Length,
    out: Any,
    backend: str,
) -> Array:
    """Return the samples of coefficients; what was compiled for an equal call before is looked up.

    Parameters
    ----------
    arguments : tuple
        The part of the key that :func:`_call_key` returns; the layouts of the bands are the other one.
    bands : list or None
        The bands in an order that follows from the arguments; None if they are not nested plainly.
    read : callable
        A function that checks all arguments, and returns the transform, keyed coefficients, and one band as
        it was passed.
    shape, out, backend
        The arguments of the caller.
    """
    key = None if bands is None or out is not None else _inverse_key(arguments, bands, shape, backend)
    call = None
    if key is not None:
        try:
            call = _calls.get(key)
        except TypeError:
            key = None
        if call is not None:
            x = call(bands)
            if x is not None:
                return x  # type: ignore[no-any-return]
    spec, keyed, example = read()
    if not spec.distinct:
        bands_by_key = {spec.keys[0]: keyed[0], **keyed[1]}
        return _back_along_repeated_axes(spec, bands_by_key, shape, out, backend)  # type: ignore[no-any-return]
    given = [band for band in arrays_of(keyed) if band is not None]
    lengths = as_shape(shape, len(given[0].shape))
    if key is not None and call is None:
        assert bands is not None
        call = _compiled_inverse(spec, keyed, bands, lengths, backend)
        if call is not None:
            _remember(key, call)
            x = call(bands)
            if x is not None:
                return x  # type: ignore[no-any-return]
    keyed = [_traceable(keyed[0]), *({k: _traceable(v) for k, v in part.items()} for part in keyed[1:])]
    engine = engine_for([band for band in arrays_of(keyed) if band is not None], backend)
    samples = recompose(engine, spec, keyed, lengths, out)
    restored: Array = library_of(example).restore(samples, example)
    return restored


def _traceable(band: Any) -> Any:
    return None if band is None else traceable_array(band)


def _inverse_key(
    arguments: tuple[Any, ...], bands: list[Any], shape: Length, backend: str
) -> tuple[Any, ...] | None:
    """Return the key of what is compiled for NumPy arrays alone, or for tensors alone."""
    example = next((band for band in bands if band is not None), None)
    if type(example) is not np.ndarray:
        given = [band for band in bands if band is not None]
        if example is None or not all(library_of(band).has_operators(band) for band in given):
            return None
        lengths = tuple(shape) if isinstance(shape, (list, tuple)) else shape
        layouts = [None if band is None else band.shape for band in bands]
        return *arguments, "tensors", library_of(example).name, lengths, backend, *layouts
    if shape is not None or backend != "auto":
        return None
    entries: list[Any] = [*arguments]
    for band in bands:
        if type(band) is np.ndarray:
            entries += (band.shape, band.dtype)
        elif band is None:
            entries.append(None)
        else:
            return None
    return tuple(entries)


def _all_alike(arrays: Sequence[Array]) -> bool:
    """Return whether all arrays are in C order and of one dtype that needs no conversion."""
    dtype = arrays[0].dtype
    plain = all(a.dtype == dtype and a.flags.c_contiguous and a.flags.aligned and a.size for a in arrays)
    return plain and result_dtype(dtype) == dtype and dtype.isnative


def _compiled_inverse(
    spec: TransformSpec, keyed: list[Any], given: Sequence[Any], shape: tuple[int, ...] | None, backend: str
) -> Any:
    """Compile an inverse for bands in the order of ``given``; None if they must be cut or levels left out.

    None is also returned if one array is given as several bands, as zeros often are: it does not tell which
    band is which, and later calls would mix up theirs.
    """
    arrays = [band for band in given if band is not None]
    on_numpy = type(arrays[0]) is np.ndarray
    if len(set(map(id, arrays))) < len(arrays) or (on_numpy and not _all_alike(arrays)):
        return None
    tree, low = BandTree.of_bands(spec, shapes_of(keyed), shape)
    bands = flat_bands(keyed, spec.keys[1:])
    if tree.levels != len(keyed) - 1 or not tree.levels or (low is not None and low != bands[0].shape):
        return None
    order = [
        next(k for k, a in enumerate(given) if a is band) if band is not None else None for band in bands
    ]
    call: Any = (
        InverseCall(tree, bands) if on_numpy else operator_engine(arrays[0], backend).inverse_call(tree)
    )
    plain = [None if band is None else k for k, band in enumerate(bands)]
    if order == plain and len(given) == len(bands):
        return call
    return lambda bands: call([None if k is None else bands[k] for k in order])


def _band(band: Any, what: str) -> Any:
    return None if band is None else operand(band, what)


def dwtn(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Axes = None,
    *,
    out: dict[str, Array] | None = None,
    backend: str = "auto",
) -> dict[str, Array]:
    """Compute one level of the DWT along several axes.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any dimension, strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and
        PyOpenCL on a device are transformed there. Dask arrays are transformed when their results are
        computed, with the same numbers; see :mod:`undula.dask`.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str, int or BoundaryMethod, or a sequence of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, a method such as
        :class:`undula.BoundaryFilters`, or one for each axis.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    out : dict of arrays, optional
        Arrays for the bands, by key.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    dict of arrays
        Bands by key: ``"ad"`` is low along the first axis and high along the second.

    Notes
    -----
    On the CPU integers become float64 and float16 becomes float32; on a device integers of 8 and 16 bits
    become float32, and float16 stays. PyTorch can differentiate and compile transforms of tensors.

    Examples
    --------
    >>> sorted(dwtn([[1.0, 2.0], [3.0, 4.0]], "haar").items())[0]
    ('aa', array([[5.]]))
    """
    return _forward(DWTN, data, wavelet, mode, 1, axes, out, backend)  # type: ignore[no-any-return]


def idwtn(
    coeffs: Mapping[str, ArrayLike | None],
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Axes = None,
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`dwtn`.

    Parameters
    ----------
    coeffs : mapping of str to array_like or None
        Bands by key; those that are missing or None are zero.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str, int or BoundaryMethod, or a sequence of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, a method such as
        :class:`undula.BoundaryFilters`, or one for each axis.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    shape : int or sequence of int, optional
        Shape of the result, needed for odd lengths. By default every transformed length is even.
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
    >>> bands = dwtn(np.eye(3), "haar")
    >>> idwtn(bands, "haar").shape, idwtn(bands, "haar", shape=(3, 3)).shape
    ((4, 4), (3, 3))
    """
    if is_compiled():
        options = {"axes": axes, "shape": shape, "out": out, "backend": backend}
        return call_compiled(__name__, "idwtn", coeffs, wavelet, mode, **options)  # type: ignore[no-any-return]
    if not isinstance(coeffs, Mapping):
        raise ArgumentTypeError(f"bands are given by key, such as {{'aa': …}}, got {type(coeffs).__name__}")
    if has_boundary_method(mode):
        low = "a" * max(map(len, coeffs), default=1)
        keyed = [coeffs.get(low), {key: band for key, band in coeffs.items() if key != low}]
        return _bounded_inverse(keyed, wavelet, mode, axes, shape, out, backend)
    arguments = _call_key(DWTN, wavelet, mode, axes, tuple(coeffs))
    bands = list(coeffs.values())
    return _inverse(arguments, bands, lambda: _read_bands(coeffs, wavelet, mode, axes), shape, out, backend)


def _bounded_inverse(
    keyed: list[Any] | None, wavelet: Names, mode: Modes, axes: Any, shape: Length, out: Any, backend: str
) -> Array:
    """Return the samples of keyed coefficients of a transform with a boundary method."""
    from . import bounded

    if keyed is None:
        raise ArgumentError("coefficients must be nested as the transform nests them")
    samples: Array = bounded.inverse(keyed, wavelet, mode, axes, shape, out, backend)
    return samples


def _read_bands(
    coeffs: Mapping[str, Any], wavelet: Names, mode: Modes, axes: Axes
) -> tuple[TransformSpec, list[Any], Any]:
    """Return the transform, bands by key, and one of them as it was given, of one level."""
    bands = {key: _band(band, f"band {key!r}") for key, band in coeffs.items()}
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
    sample = next(band for band in coeffs.values() if band is not None)
    return spec, [bands.pop(spec.keys[0], None), bands], sample


def wavedecn(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes = "symmetric",
    level: int | None = None,
    axes: Axes = None,
    *,
    out: Sequence[Any] | None = None,
    backend: str = "auto",
) -> list[Any]:
    """Compute several levels of the DWT along several axes.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str, int or BoundaryMethod, or a sequence of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, a method such as
        :class:`undula.BoundaryFilters`, or one for each axis.
    level : int, optional
        How often the approximation is decomposed. The default is as often as is useful.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    out : list, optional
        Arrays for the coefficients, nested as the result is.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list
        ``[approximation, details of the coarsest level, …, details of the finest level]``, the details of a
        level as a dictionary of arrays.

    Examples
    --------
    >>> approximation, coarse, fine = wavedecn(np.eye(8), "haar", level=2)
    >>> approximation.shape, {key: band.shape for key, band in fine.items()}
    ((2, 2), {'ad': (4, 4), 'da': (4, 4), 'dd': (4, 4)})
    """
    return _forward(WAVEDECN, data, wavelet, mode, level, axes, out, backend)  # type: ignore[no-any-return]


def waverecn(
    coeffs: Sequence[Any],
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Axes = None,
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`wavedecn`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`wavedecn` returns them; bands that are missing, and a level that is None, are
        zero.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str, int or BoundaryMethod, or a sequence of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, a method such as
        :class:`undula.BoundaryFilters`, or one for each axis.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    shape : int or sequence of int, optional
        Shape of the result, needed for odd lengths. By default every transformed length is even.
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
    >>> coeffs = wavedecn(np.eye(7), "haar", level=2)
    >>> waverecn(coeffs, "haar", shape=(7, 7)).shape
    (7, 7)
    """
    return _waverecn(WAVEDECN, coeffs, wavelet, mode, axes, shape, out, backend)


def _waverecn(
    form: Form, coeffs: Sequence[Any], wavelet: Names, mode: Modes, axes: Any, shape: Length, out: Any,
    backend: str,
) -> Array:  # fmt: skip
    if is_compiled():
        options = {
            "axis" if form is WAVEDEC else "axes": axes,
            "shape": shape,
            "out": out,
            "backend": backend,
        }
        name = form.name.replace("dec", "rec")
        return call_compiled(__name__, name, coeffs, wavelet, mode, **options)  # type: ignore[no-any-return]
    if has_boundary_method(mode):
        keyed = keyed_as(coeffs, form.name)
        return _bounded_inverse(keyed, wavelet, mode, form.axes(axes), shape, out, backend)
    bands, keys = form.listed(coeffs) or (None, ())
    arguments = _call_key(form, wavelet, mode, axes, keys)
    return _inverse(
        arguments, bands, lambda: _read_levels(form, coeffs, wavelet, mode, axes), shape, out, backend
    )


def _read_levels(
    form: Form, coeffs: Sequence[Any], wavelet: Names, mode: Modes, axes: Any
) -> tuple[TransformSpec, list[Any], Any]:
    """Return the transform, coefficients by key, and one of them as it was given, of several levels."""
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
    arrays: list[Any] = [_band(keyed[0], "the approximation")]
    for number, level in enumerate(keyed[1:], 1):
        if form is WAVEDECN and any(band is None for band in level.values()):
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


# --- one axis -------------------------------------------------------------------------------------


def dwt(
    data: ArrayLike,
    wavelet: Name,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    out: tuple[Array, Array] | None = None,
    backend: str = "auto",
) -> tuple[Array, Array]:
    """Compute one level of the DWT along one axis.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str
        The wavelet.
    mode : str, int or BoundaryMethod, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or a method such as
        :class:`undula.BoundaryFilters`.
    axis : int, default -1
        Axis to transform.
    out : pair of arrays, optional
        Arrays for ``cA`` and ``cD``.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    cA, cD : array
        Approximation and details.

    Examples
    --------
    >>> cA, cD = dwt([1, 2, 3, 4], "haar")
    >>> cA.round(3).tolist(), cD.round(3).tolist()
    ([2.121, 4.95], [-0.707, -0.707])
    """
    return _forward(DWT, data, wavelet, mode, 1, axis, out, backend)  # type: ignore[no-any-return]


def idwt(
    cA: ArrayLike | None,
    cD: ArrayLike | None,
    wavelet: Name,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`dwt`.

    Parameters
    ----------
    cA, cD : array_like or None
        Approximation and details; one of them may be None, for zeros.
    wavelet : Wavelet or str
        The wavelet.
    mode : str, int or BoundaryMethod, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or a method such as
        :class:`undula.BoundaryFilters`.
    axis : int, default -1
        Axis to transform.
    shape : int or sequence of int, optional
        Shape of the result, needed for odd lengths. By default every transformed length is even.
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
    >>> cA, cD = dwt([1.0, 2.0, 3.0], "haar")
    >>> idwt(cA, cD, "haar", shape=3).round(3).tolist()
    [1.0, 2.0, 3.0]
    """
    if is_compiled():
        options = {"axis": axis, "shape": shape, "out": out, "backend": backend}
        return call_compiled(__name__, "idwt", cA, cD, wavelet, mode, **options)  # type: ignore[no-any-return]
    if has_boundary_method(mode):
        return _bounded_inverse([cA, {"d": cD}], wavelet, mode, DWT.axes(axis), shape, out, backend)
    arguments = _call_key(DWT, wavelet, mode, axis, ())
    return _inverse(
        arguments, [cA, cD], lambda: _read_bands({"a": cA, "d": cD}, wavelet, mode, DWT.axes(axis)),
        shape, out, backend,
    )  # fmt: skip


def wavedec(
    data: ArrayLike,
    wavelet: Name,
    mode: Mode = "symmetric",
    level: int | None = None,
    axis: int = -1,
    *,
    out: Sequence[Array] | None = None,
    backend: str = "auto",
) -> list[Array]:
    """Compute several levels of the DWT along one axis.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str
        The wavelet.
    mode : str, int or BoundaryMethod, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or a method such as
        :class:`undula.BoundaryFilters`.
    level : int, optional
        How often the approximation is decomposed. The default is as often as is useful.
    axis : int, default -1
        Axis to transform.
    out : list of arrays, optional
        Arrays for the coefficients, in the order of the result.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list of arrays
        ``[cA, cD of the coarsest level, …, cD of the finest level]``.

    Examples
    --------
    >>> [band.round(3).tolist() for band in wavedec([1, 2, 3, 4], "haar", level=2)]
    [[5.0], [-2.0], [-0.707, -0.707]]
    """
    return _forward(WAVEDEC, data, wavelet, mode, level, axis, out, backend)  # type: ignore[no-any-return]


def waverec(
    coeffs: Sequence[ArrayLike | None],
    wavelet: Name,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`wavedec`.

    Parameters
    ----------
    coeffs : sequence of array_like or None
        Coefficients as :func:`wavedec` returns them; None stands for zeros.
    wavelet : Wavelet or str
        The wavelet.
    mode : str, int or BoundaryMethod, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or a method such as
        :class:`undula.BoundaryFilters`.
    axis : int, default -1
        Axis to transform.
    shape : int or sequence of int, optional
        Shape of the result, needed for odd lengths. By default every transformed length is even.
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
    >>> waverec(wavedec([1, 2, 3, 4], "haar", level=2), "haar").round(3).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    return _waverecn(WAVEDEC, coeffs, wavelet, mode, axis, shape, out, backend)


# --- two axes -------------------------------------------------------------------------------------


def dwt2(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    out: tuple[Array, tuple[Array, Array, Array]] | None = None,
    backend: str = "auto",
) -> tuple[Array, tuple[Array, Array, Array]]:
    """Compute one level of the DWT of images.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str, int or BoundaryMethod, or a sequence of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, a method such as
        :class:`undula.BoundaryFilters`, or one for each axis.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
    out : (array, (array, array, array)), optional
        Arrays for the coefficients, nested as the result is.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    cA : array
        Approximation.
    (cH, cV, cD) : tuple of arrays
        Horizontal, vertical and diagonal details.

    Examples
    --------
    >>> cA, (cH, cV, cD) = dwt2([[1.0, 2.0], [3.0, 4.0]], "haar")
    >>> [float(band[0, 0].round(3)) for band in (cA, cH, cV, cD)]
    [5.0, -2.0, -1.0, 0.0]
    """
    return _forward(DWT2, data, wavelet, mode, 1, axes, out, backend)  # type: ignore[no-any-return]


def idwt2(
    coeffs: tuple[ArrayLike | None, tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None]],
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`dwt2`.

    Parameters
    ----------
    coeffs : (array_like, (array_like, array_like, array_like))
        Coefficients as :func:`dwt2` returns them; None in place of a band stands for zeros.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str, int or BoundaryMethod, or a sequence of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, a method such as
        :class:`undula.BoundaryFilters`, or one for each axis.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
    shape : int or sequence of int, optional
        Shape of the result, needed for odd lengths. By default every transformed length is even.
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
    >>> coeffs = dwt2([[1.0, 2.0], [3.0, 4.0]], "haar")
    >>> idwt2(coeffs, "haar").round(3).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if is_compiled():
        options = {"axes": axes, "shape": shape, "out": out, "backend": backend}
        return call_compiled(__name__, "idwt2", coeffs, wavelet, mode, **options)  # type: ignore[no-any-return]
    keyed = keyed_as(coeffs, "wavedec2")
    if keyed is None or len(keyed) != 2:
        raise ArgumentError(f"coefficients are a pair (cA, (cH, cV, cD)), got {type(coeffs).__name__}")
    if has_boundary_method(mode):
        return _bounded_inverse(keyed, wavelet, mode, DWT2.axes(axes), shape, out, backend)
    by_key = {"aa": keyed[0], **keyed[1]}
    bands = list(by_key.values()) if len(by_key) == 4 else None
    return _inverse(
        _call_key(DWT2, wavelet, mode, axes, ()), bands,
        lambda: _read_bands(by_key, wavelet, mode, DWT2.axes(axes)), shape, out, backend,
    )  # fmt: skip


def wavedec2(
    data: ArrayLike,
    wavelet: Names,
    mode: Modes = "symmetric",
    level: int | None = None,
    axes: Sequence[int] = (-2, -1),
    *,
    out: Sequence[Any] | None = None,
    backend: str = "auto",
) -> list[Any]:
    """Compute several levels of the DWT of images.

    Parameters
    ----------
    data : array_like
        Samples, real or complex, of any strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str, int or BoundaryMethod, or a sequence of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, a method such as
        :class:`undula.BoundaryFilters`, or one for each axis.
    level : int, optional
        How often the approximation is decomposed. The default is as often as is useful.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
    out : list, optional
        Arrays for the coefficients, nested as the result is.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list
        ``[cA, (cH, cV, cD) of the coarsest level, …, (cH, cV, cD) of the finest level]``.

    Examples
    --------
    >>> coeffs = wavedec2(np.eye(8), "haar", level=2)
    >>> [coeffs[0].shape, *(level[0].shape for level in coeffs[1:])]
    [(2, 2), (2, 2), (4, 4)]
    """
    return _forward(WAVEDEC2, data, wavelet, mode, level, axes, out, backend)  # type: ignore[no-any-return]


def waverec2(
    coeffs: Sequence[Any],
    wavelet: Names,
    mode: Modes = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    shape: Length = None,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`wavedec2`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`wavedec2` returns them; None in place of a band or a level stands for zeros.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str, int or BoundaryMethod, or a sequence of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, a method such as
        :class:`undula.BoundaryFilters`, or one for each axis.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
    shape : int or sequence of int, optional
        Shape of the result, needed for odd lengths. By default every transformed length is even.
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
    >>> coeffs = wavedec2(np.eye(7), "haar", level=2)
    >>> waverec2(coeffs, "haar").shape, waverec2(coeffs, "haar", shape=(7, 7)).shape
    ((8, 8), (7, 7))
    """
    return _waverecn(WAVEDEC2, coeffs, wavelet, mode, axes, shape, out, backend)
