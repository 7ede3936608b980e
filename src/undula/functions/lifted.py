"""The LWT of arrays: lifting that gives exactly as many numbers as it gets, for any size and any level.

Floats are scaled as the filter bank scales them; integers stay integers, unscaled, and come back bit for
bit. How large they can get is known from their dtype, and decides in which integers results are kept. In
mode ``symmetric`` lines go on as in a mirror, as in JPEG 2000.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays import library_of, traceable_array
from ..engines import cpu
from ..engines.base import Engine, TransformOptions
from ..engines.chunked.engine import ChunkedEngine
from ..engines.cpu.engine import CPU
from ..engines.dispatch import decompose, decompose_mixed, engine_for, grown, recompose
from ..engines.gpu.engine import DeviceEngine
from ..engines.numpy_engine import NumpyEngine
from ..engines.tensors import call_untraced, is_torch_compiling
from ..engines.tensors.engine import TensorEngine
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.axis_arguments import Axes, one_axis, two_axes
from ..lowering.mixing import Mixing, Unmixing
from ..lowering.nesting import arrays_of, from_keys, to_keys
from ..lowering.spec import TransformSpec, deepest_lwt, transform_spec
from ..wavelets import Wavelet

__all__ = ["ilwt", "ilwt2", "ilwtn", "lwt", "lwt2", "lwtn"]

Array = NDArray[Any]
Name = Wavelet | str
Names = Wavelet | str | Sequence[Any]

MOST_LEVELS = 64  # Lines of one sample may be scaled on and on; beyond this it is surely a mistake.
STORAGES = ("int16", "int32", "int64")  # of integers


def lwtn(
    x: ArrayLike,
    wavelet: Names,
    level: int | None = 1,
    mode: str | Sequence[str] = "symmetric",
    axes: Axes = None,
    *,
    out: Sequence[Any] | None = None,
    dtype: DTypeLike | None = None,
    backend: str = "auto",
) -> list[Any]:
    """Compute the LWT of several levels along several axes.

    Parameters
    ----------
    x : array_like
        Floats of any kind, or integers, for which the way back is exact. Dask arrays are transformed when
        their results are computed, with the same numbers.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis; any but ``dmey``, which has no lifting.
    level : int or None, default 1
        How often the approximation is decomposed; None for as often as there is something to decompose.
    mode : str or sequence of str, default "symmetric"
        How lines go on beyond their ends: one of ``undula.LWT_MODES``, or one for each axis.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    out : list, optional
        Arrays for the coefficients, nested as the result is.
    dtype : {int16, int32, int64}, optional
        Dtype of the coefficients of integers. The default for 8 and 16 bits is the smallest that provably
        holds whatever such samples can lead to in this shape, borders and rounding included; for 32 and 64
        bits, as many. Nothing is ever cut off: samples that could lead to more are an error. Those on a
        device are not looked at: there, a dtype is your word that they fit.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list
        ``[approximation, details of the coarsest level, …]``, details as dictionaries: as many numbers as
        ``x`` has.

    Raises
    ------
    ReconstructionError
        If the wavelet has no lifting steps, as ``dmey``.

    Examples
    --------
    >>> low, details = lwtn(np.arange(15).reshape(3, 5), "cdf53")
    >>> low.shape, {key: band.shape for key, band in details.items()}
    ((2, 3), {'ad': (2, 2), 'da': (1, 3), 'dd': (1, 2)})
    """
    return _lwtn(x, wavelet, level, mode, axes, out, dtype, "wavedecn", backend)


def _lwtn(
    x: ArrayLike,
    wavelet: Names,
    level: int | None,
    mode: Any,
    axes: Axes,
    out: Any,
    dtype: DTypeLike | None,
    form: str,
    backend: str,
) -> list[Any]:
    if is_torch_compiling():
        options = {"level": level, "axes": axes, "out": out, "dtype": dtype, "backend": backend}
        return from_keys(call_untraced(__name__, "lwtn", x, wavelet, mode=mode, **options), form)
    given = array = traceable_array(x, "x")
    engine = engine_for([given], backend)
    shape = engine.library.shape(array)
    if not shape or 0 in shape:
        raise ArgumentError(f"an array with samples along some axis is needed, got shape {shape}")
    spec = transform_spec(len(shape), wavelet, mode, axes, lifted=True)
    levels = _levels(spec, shape, level)
    if isinstance(engine, TensorEngine):
        engine.check_floats([array])
    elif isinstance(engine, NumpyEngine) and array.dtype.kind == "b":
        array = array.astype(np.float64 if dtype is None else np.int8)
    stored = _stored_dtype(engine, array, spec, levels, dtype)
    if out is None and engine is CPU and _is_image(given, spec, stored):
        of_planes = transform_spec(3, spec.wavelets, spec.modes, (1, 2), lifted=True)
        once = Mixing(((1,),), (0,), (0,))
        assert stored is not None
        planes = decompose_mixed(of_planes, given[..., np.newaxis], once, levels, stored)
        coeffs = [planes[0][0], *({key: band[0] for key, band in part.items()} for part in planes[1:])]
    else:
        keyed = to_keys(out, traceable_array) if isinstance(out, (list, tuple)) else None
        coeffs = decompose(engine, spec, array, levels, out, keyed, integers=stored)
    return from_keys(library_of(x).restore(coeffs, x), form)


def _is_image(x: Any, spec: TransformSpec, kept: np.dtype[Any] | None) -> TypeGuard[Array]:
    """Return whether this is an image of unsigned integers whose rows the first level can read."""
    return (
        isinstance(x, np.ndarray)
        and x.dtype in (np.uint8, np.uint16)
        and x.flags.c_contiguous
        and x.ndim == 2
        and spec.axes == (0, 1)
        and kept is not None
        and x.dtype.itemsize < kept.itemsize < 8
    )


def storage(
    dtype: np.dtype[Any],
    spec: TransformSpec,
    shape: tuple[int, ...],
    levels: int,
    asked: DTypeLike | None,
    largest: Callable[[], int] | None,
) -> np.dtype[Any] | None:
    """Return the integers that results are kept in; None for floats.

    ``largest`` looks for the largest of the samples, where their dtype does not tell enough.
    """
    if asked is not None:
        asked = np.dtype(asked).newbyteorder("=")
        if asked.name not in STORAGES:
            raise ArgumentTypeError(f"integers are kept as {', '.join(STORAGES)}, got dtype {asked}")
    if dtype.kind not in "iu":
        if asked is None:
            return None
        raise ArgumentTypeError(
            f"integers come back exactly, and these are {dtype}: round them first, or leave dtype away"
        )
    grows = grown(spec, shape, levels)
    info = np.iinfo(dtype)
    most = max(-int(info.min), int(info.max))
    sizes = [np.dtype(name) for name in STORAGES]
    if asked is not None:
        sizes = [asked]
    elif dtype.itemsize > 2:
        sizes = [np.dtype(np.int32 if dtype.itemsize == 4 else np.int64)]
    for size in sizes:
        same = grows.idle and dtype.kind == "i" and size.itemsize >= dtype.itemsize  # nothing is done
        if same or grows.fits(most, 8 * size.itemsize):
            return size
    size = sizes[-1]
    bits = 8 * size.itemsize
    wider = f" or pass dtype='int{2 * bits}'" if bits < 64 else ""
    limit = f"samples from -{grows.largest(bits)} to {grows.largest(bits)} fit"
    what = f"{levels} level(s) of {', '.join(dict.fromkeys(w.name for w in spec.wavelets))} in {size}"
    if largest is None:
        if asked is not None:
            return size
        raise ArgumentError(
            f"{what} could overflow: {limit}. Samples on a device are not looked at; if they are no larger,"
            f" say so: dtype={str(size)!r}"
        )
    largest_magnitude = largest()
    if not grows.fits(largest_magnitude, bits):
        raise ArgumentError(
            f"{what} could overflow: {limit}, got up to ±{largest_magnitude}; scale them down{wider}"
        )
    return size


def lwt2_of_channels(
    image: Any,
    mixing: Mixing,
    wavelet: Names,
    level: int | None,
    mode: str | Sequence[str],
    largest: int,
    integer: bool,
    engine: Engine,
) -> list[Any]:
    """Compute the LWT of planes that are mixed from the channels of a contiguous image ``(H, W, C)``.

    ``largest`` is the largest number of a plane, ``integer`` says that planes are integers, else float32.
    """
    spec = transform_spec(3, wavelet, mode, (1, 2), lifted=True)
    height, width = (int(n) for n in image.shape[:2])
    shape = (mixing.planes, height, width)
    levels = _levels(spec, shape, level)
    dtype, on_device = np.dtype(np.float32), isinstance(engine, DeviceEngine)
    if integer:
        size = 1 if str(image.dtype).endswith("uint8") else 2
        grows = grown(spec, shape, levels)
        sizes = [np.dtype(name) for name in STORAGES if np.dtype(name).itemsize > size]
        fitting = [one for one in sizes if grows.fits(largest, 8 * one.itemsize)]
        if not fitting or (on_device and fitting[0] == np.int64):
            raise ArgumentError(
                f"{levels} level(s) of this wavelet could overflow {'int32' if on_device else 'int64'};"
                " use fewer levels"
            )
        dtype = fitting[0]
    if on_device:
        if levels == 0:
            raise ArgumentError("on a device, colours become planes in the first level: level is at least 1")
        interleaved = transform_spec(3, spec.wavelets, spec.modes, (0, 1), lifted=True)
        options, integers = TransformOptions(mixing=mixing), dtype if integer else None
        coeffs = decompose(engine, interleaved, image, levels, options=options, integers=integers)
        return from_keys(engine.restore(_turned(engine, coeffs, (2, 0, 1)), image), "wavedec2")
    if engine is CPU and dtype != np.int64:  # The kernels that mix channels have no such integers.
        return from_keys(decompose_mixed(spec, image, mixing, levels, dtype), "wavedec2")
    planes = cpu.empty(shape, np.dtype(np.int32) if integer else dtype)
    cpu.mix_planes(image, mixing, planes)
    return from_keys(decompose(engine, spec, planes, levels, integers=dtype if integer else None), "wavedec2")


def channels_of_lwt2(
    coeffs: Sequence[Any], unmixing: Unmixing, wavelet: Names, mode: Any, engine: Engine, dtype: str
) -> Any:
    """Compute channels ``(H, W, C)`` from coefficients of planes, on a device."""
    read = to_keys(coeffs, traceable_array)
    spec = transform_spec(3, wavelet, mode, (0, 1), lifted=True)
    options = TransformOptions(unmixing=unmixing)
    image = recompose(engine, spec, _turned(engine, read, (1, 2, 0)), options=options, result=np.dtype(dtype))
    return engine.restore(image, read[0])


def _turned(engine: Engine, coeffs: Sequence[Any], axes: tuple[int, ...]) -> list[Any]:
    rest = [{key: engine.library.transpose(band, axes) for key, band in part.items()} for part in coeffs[1:]]
    return [engine.library.transpose(coeffs[0], axes), *rest]


def _levels(spec: TransformSpec, shape: tuple[int, ...], level: int | None) -> int:
    deepest = deepest_lwt(spec, shape)
    if level is None:
        return deepest
    if not isinstance(level, (int, np.integer)) or isinstance(level, bool):
        raise ArgumentTypeError(f"level must be an integer or None, got {level!r}")
    if not 0 <= level <= max(deepest, MOST_LEVELS):
        raise ArgumentError(f"level must be from 0 to {max(deepest, MOST_LEVELS)}, got {level}")
    return int(level)


def ilwtn(
    coeffs: Sequence[Any],
    wavelet: Names,
    mode: str | Sequence[str] = "symmetric",
    axes: Axes = None,
    *,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`lwtn`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`lwtn` returns them.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis; any but ``dmey``, which has no lifting.
    mode : str or sequence of str, default "symmetric"
        How lines go on beyond their ends: one of ``undula.LWT_MODES``, or one for each axis.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    out : array, optional
        Array for the result.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    array
        The samples.

    Notes
    -----
    Integer coefficients that were changed may lead to more than their dtype holds. On the CPU the result is
    exact or an error; on a device, what does not fit is clipped at every step.

    Examples
    --------
    >>> x = np.random.default_rng(0).integers(0, 256, (5, 7))
    >>> bool((ilwtn(lwtn(x, "cdf97", level=3), "cdf97") == x).all())
    True
    """
    if is_torch_compiling():
        options = {"axes": axes, "out": out, "backend": backend}
        return call_untraced(__name__, "ilwtn", coeffs, wavelet, mode, **options)  # type: ignore[no-any-return]
    read = to_keys(coeffs, traceable_array)
    ndim = len(read[0].shape)
    if ndim < 1:
        raise ArgumentError("coefficients are arrays with at least one axis, got a single number")
    spec = transform_spec(ndim, wavelet, mode, axes, lifted=True)
    for number, level in enumerate(read[1:], 1):
        if sorted(level) != spec.keys[1:]:
            raise ArgumentError(
                f"details {spec.keys[1:]} are needed at level {number}, got {sorted(map(str, level))}"
            )
    samples = recompose(engine_for(arrays_of(read), backend), spec, read, None, out)
    restored: Array = library_of(coeffs[0]).restore(samples, coeffs[0])
    return restored


def _stored_dtype(
    engine: Engine, x: Any, spec: TransformSpec, levels: int, asked: DTypeLike | None
) -> np.dtype[Any] | None:
    """Return the integers that coefficients are stored in; None for floats."""
    if isinstance(engine, TensorEngine):
        return storage(np.dtype(np.float32), spec, (), levels, asked, None)
    dtype = np.dtype(engine.library.dtype(x)).newbyteorder("=")
    if dtype.kind not in "iu":
        return storage(dtype, spec, (), levels, asked, None)
    x = engine.integers(x, dtype)
    # Nobody looks at numbers on a device, as that would mean waiting for them. Dask's tasks look at theirs.
    largest = (lambda: cpu.largest(x)) if engine.takes_numpy else None
    if isinstance(engine, ChunkedEngine):
        largest = lambda: 0  # noqa: E731 (as above)
    stored = storage(dtype, spec, engine.library.shape(x), levels, asked, largest)
    if isinstance(engine, DeviceEngine):
        if asked is not None and np.dtype(asked) == np.int64:
            raise ArgumentTypeError(
                f"backend {engine.name!r} keeps integers as int16 or int32, got dtype int64"
            )
        if stored == np.int64:
            raise ArgumentError(
                f"{levels} level(s) of this wavelet make numbers of {dtype} that int32 may not hold, and"
                f" backend {engine.name!r} has no larger ones; use fewer levels, or the CPU"
            )
    return stored


def lwt(
    x: ArrayLike,
    wavelet: Name,
    level: int | None = 1,
    mode: str = "symmetric",
    axis: int = -1,
    *,
    out: Sequence[Array] | None = None,
    dtype: DTypeLike | None = None,
    backend: str = "auto",
) -> list[Array]:
    """Compute the LWT of several levels along one axis.

    Parameters
    ----------
    x : array_like
        Floats of any kind, or integers, for which the way back is exact.
    wavelet : Wavelet or str
        Any wavelet but ``dmey``, which has no lifting.
    level : int or None, default 1
        How often the approximation is decomposed; None for as often as there is something to decompose.
    mode : str, default "symmetric"
        How lines go on beyond their ends: one of ``undula.LWT_MODES``.
    axis : int, default -1
        Axis to transform.
    out : list of arrays, optional
        Arrays for the coefficients, in the order of the result.
    dtype : {int16, int32, int64}, optional
        Dtype of the coefficients of integers. The default for 8 and 16 bits is the smallest that provably
        holds whatever such samples can lead to in this shape; for 32 and 64 bits, as many. Samples that could
        lead to more are an error; those on a device are not checked.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list of arrays
        ``[cA, cD of the coarsest level, …]``.

    Raises
    ------
    ReconstructionError
        If the wavelet has no lifting steps, as ``dmey``.

    Examples
    --------
    >>> [band.tolist() for band in lwt([1, 2, 3, 4, 5], "cdf53")]
    [[1, 3, 5], [0, 0]]
    """
    return _lwtn(x, wavelet, level, mode, one_axis(axis), out, dtype, "wavedec", backend)


def ilwt(
    coeffs: Sequence[ArrayLike],
    wavelet: Name,
    mode: str = "symmetric",
    axis: int = -1,
    *,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`lwt`.

    Parameters
    ----------
    coeffs : sequence of array_like
        Coefficients as :func:`lwt` returns them.
    wavelet : Wavelet or str
        Any wavelet but ``dmey``, which has no lifting.
    mode : str, default "symmetric"
        How lines go on beyond their ends: one of ``undula.LWT_MODES``.
    axis : int, default -1
        Axis to transform.
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
    >>> ilwt(lwt([1, 2, 3, 4, 5], "cdf53"), "cdf53").tolist()
    [1, 2, 3, 4, 5]
    """
    return ilwtn(coeffs, wavelet, mode, one_axis(axis), out=out, backend=backend)


def lwt2(
    x: ArrayLike,
    wavelet: Names,
    level: int | None = 1,
    mode: str | Sequence[str] = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    out: Sequence[Any] | None = None,
    dtype: DTypeLike | None = None,
    backend: str = "auto",
) -> list[Any]:
    """Compute the LWT of images in several levels.

    Parameters
    ----------
    x : array_like
        Floats of any kind, or integers, for which the way back is exact.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis; any but ``dmey``, which has no lifting.
    level : int or None, default 1
        How often the approximation is decomposed; None for as often as there is something to decompose.
    mode : str or sequence of str, default "symmetric"
        How lines go on beyond their ends: one of ``undula.LWT_MODES``, or one for each axis.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
    out : list, optional
        Arrays for the coefficients, nested as the result is.
    dtype : {int16, int32, int64}, optional
        Dtype of the coefficients of integers. The default for 8 and 16 bits is the smallest that provably
        holds whatever such samples can lead to in this shape; for 32 and 64 bits, as many. Samples that could
        lead to more are an error; those on a device are not checked.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list
        ``[cA, (cH, cV, cD) of the coarsest level, …]``.

    Raises
    ------
    ReconstructionError
        If the wavelet has no lifting steps, as ``dmey``.

    Examples
    --------
    >>> cA, (cH, cV, cD) = lwt2(np.ones((3, 5)), "cdf97")
    >>> cA.shape, cH.shape, cV.shape, cD.shape
    ((2, 3), (1, 3), (2, 2), (1, 2))
    """
    return _lwtn(x, wavelet, level, mode, two_axes(axes), out, dtype, "wavedec2", backend)


def ilwt2(
    coeffs: Sequence[Any],
    wavelet: Names,
    mode: str | Sequence[str] = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    out: Array | None = None,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`lwt2`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`lwt2` returns them.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis; any but ``dmey``, which has no lifting.
    mode : str or sequence of str, default "symmetric"
        How lines go on beyond their ends: one of ``undula.LWT_MODES``, or one for each axis.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
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
    >>> x = np.arange(15).reshape(3, 5)
    >>> bool((ilwt2(lwt2(x, "cdf53"), "cdf53") == x).all())
    True
    """
    return ilwtn(coeffs, wavelet, mode, two_axes(axes), out=out, backend=backend)
