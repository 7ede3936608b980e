"""The dual-tree complex wavelet transform: nearly shift-invariant, and with directions.

Two real DWTs along each axis, whose wavelets are nearly a Hilbert pair, are the real and imaginary parts of
complex coefficients. Their magnitudes change little if samples are shifted, and in two and more dimensions
each band has one direction. There are 2^d times as many numbers as samples, for d axes.

The filters are q-shift filters as Kingsbury defined them [1]_, optimised by ``tools/design_qshift.py``, with
a symmetric wavelet at the first level. :mod:`undula.lowering.dual_tree` computes all trees by one DWT.

References
----------
.. [1] N. G. Kingsbury, "Complex wavelets for shift invariant analysis and filtering of signals", Applied and
   Computational Harmonic Analysis 10 (3), 2001, 234-253.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import as_shape, given_array, library_of
from ..engines.base import Engine
from ..engines.chunked.engine import ChunkedEngine
from ..engines.dispatch import engine_for
from ..errors import ArgumentError, ArgumentTypeError, MismatchedBandsError
from ..lowering.axis_arguments import Axes, checked_axes, one_axis, two_axes
from ..lowering.borders import max_level
from ..lowering.dual_tree import COMPLEX, DualTree, orientations
from ..lowering.spec import NO_COEFFICIENTS
from ..wavelets import Wavelet, as_wavelet

__all__ = ["dtcwt", "dtcwt2", "dtcwtn", "idtcwt", "idtcwt2", "idtcwtn"]

Array = NDArray[Any]
Name = Wavelet | str
Shape = tuple[int, ...]

MAX_AXES = 5  # There are 4^n/2 directions.
DELAY_TOLERANCE = 0.2  # in samples: symmetric filters are 0.25 off, most others more


def dtcwtn(
    data: ArrayLike,
    wavelet: Name = "qshift14",
    level: int | None = None,
    axes: Axes = None,
    *,
    first: Name = "cdf97",
    backend: str = "auto",
) -> list[Array]:
    """Compute the dual-tree complex wavelet transform along several axes.

    Parameters
    ----------
    data : array_like
        Real samples, of any shape and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL on a device are
        transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str, default "qshift14"
        The q-shift wavelet of all levels but the first: ``qshift10``, ``qshift14``, ``qshift18``, or an
        orthogonal one whose ``dec_lo`` has a delay of a quarter of a sample from its centre.
    level : int, optional
        The number of levels. The default is as many as are useful, at least 1.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    first : Wavelet or str, default "cdf97"
        The wavelet of the first level, with symmetric filters of odd lengths: ``cdf53``, ``cdf97``,
        ``bior6.8`` and others.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list of arrays
        ``[lowpass, details of the coarsest level, …, details of the finest level]``. The low-pass band is
        real. Details are complex, with the directions along a new first axis: 6 for two axes, 28 for three,
        ``2**(d - 1) * (2**d - 1)`` for d. With one axis there is one band, and no new axis.

    See Also
    --------
    idtcwtn : The inverse.
    dtcwt2 : The transform of images, with directions in the order of their angles.

    Notes
    -----
    Lines go on beyond their ends as their mirror images. Lengths are rounded up to a multiple of
    ``2**level`` by repeating the last sample, and a band of level j has ``2**-j`` as many coefficients along
    each axis. The low-pass band has twice as many, of both trees in turn.

    The details of a level are ordered by the real bands that they are made of, with the keys of
    :func:`undula.dwtn`, and then by the sign of their frequency along each axis but the last.

    If the wavelet of the first level were orthogonal, the coefficients would have the energy of the samples;
    with ``cdf97`` they have it nearly.

    Examples
    --------
    >>> volume = np.random.default_rng(0).standard_normal((16, 16, 16))
    >>> lowpass, *details = dtcwtn(volume, level=2)
    >>> lowpass.shape, [bands.shape for bands in details]
    ((8, 8, 8), [(28, 4, 4, 4), (28, 8, 8, 8)])
    """
    return _forward(data, wavelet, level, axes, first, backend)


def idtcwtn(
    coeffs: Sequence[ArrayLike | None],
    wavelet: Name = "qshift14",
    axes: Axes = None,
    *,
    shape: int | Sequence[int] | None = None,
    first: Name = "cdf97",
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`dtcwtn`.

    Parameters
    ----------
    coeffs : sequence of array_like or None
        Coefficients as :func:`dtcwtn` returns them. None in place of an array stands for zeros.
    wavelet : Wavelet or str, default "qshift14"
        The q-shift wavelet of the transform.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    shape : int or sequence of int, optional
        Shape of the samples, needed if lengths were not multiples of ``2**level``. By default they were.
    first : Wavelet or str, default "cdf97"
        The wavelet of the first level.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    array
        The samples: the mean of those of all trees.

    Examples
    --------
    >>> volume = np.random.default_rng(0).standard_normal((7, 8, 9))
    >>> bool(np.allclose(idtcwtn(dtcwtn(volume, level=2), shape=volume.shape), volume))
    True
    """
    return _inverse(coeffs, wavelet, axes, shape, first, backend)


def dtcwt(
    data: ArrayLike,
    wavelet: Name = "qshift14",
    level: int | None = None,
    axis: int = -1,
    *,
    first: Name = "cdf97",
    backend: str = "auto",
) -> list[Array]:
    """Compute the dual-tree complex wavelet transform along one axis.

    Parameters
    ----------
    data : array_like
        Real samples, of any shape and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL on a device are
        transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str, default "qshift14"
        The q-shift wavelet of all levels but the first: ``qshift10``, ``qshift14``, ``qshift18``, or an
        orthogonal one whose ``dec_lo`` has a delay of a quarter of a sample from its centre.
    level : int, optional
        The number of levels. The default is as many as are useful, at least 1.
    axis : int, default -1
        Axis to transform.
    first : Wavelet or str, default "cdf97"
        The wavelet of the first level, with symmetric filters of odd lengths: ``cdf53``, ``cdf97``,
        ``bior6.8`` and others.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list of arrays
        ``[lowpass, details of the coarsest level, …, details of the finest level]``, the low-pass band real,
        details complex; see :func:`dtcwtn` for lengths and borders.

    See Also
    --------
    idtcwt : The inverse.

    Examples
    --------
    >>> x = np.cos(1.1 * np.arange(64))
    >>> lowpass, coarse, fine = dtcwt(x, level=2)
    >>> len(lowpass), len(coarse), len(fine)
    (32, 16, 32)

    The magnitudes of the coefficients of a wave are equal, as those of real wavelets are not:

    >>> bool(np.ptp(abs(coarse[4:-4])) < 0.02 * abs(coarse[8]))
    True
    """
    return _forward(data, wavelet, level, one_axis(axis), first, backend)


def idtcwt(
    coeffs: Sequence[ArrayLike | None],
    wavelet: Name = "qshift14",
    axis: int = -1,
    *,
    shape: int | Sequence[int] | None = None,
    first: Name = "cdf97",
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`dtcwt`.

    Parameters
    ----------
    coeffs : sequence of array_like or None
        Coefficients as :func:`dtcwt` returns them. None in place of an array stands for zeros.
    wavelet : Wavelet or str, default "qshift14"
        The q-shift wavelet of the transform.
    axis : int, default -1
        Axis to transform.
    shape : int or sequence of int, optional
        Shape of the samples, needed if the length was not a multiple of ``2**level``. By default it was.
    first : Wavelet or str, default "cdf97"
        The wavelet of the first level.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    array
        The samples.

    Examples
    --------
    >>> idtcwt(dtcwt([1.0, 2.0, 4.0, 8.0, 5.0], level=1), shape=5).round(12).tolist()
    [1.0, 2.0, 4.0, 8.0, 5.0]
    """
    return _inverse(coeffs, wavelet, one_axis(axis), shape, first, backend)


def dtcwt2(
    data: ArrayLike,
    wavelet: Name = "qshift14",
    level: int | None = None,
    axes: Sequence[int] = (-2, -1),
    *,
    first: Name = "cdf97",
    backend: str = "auto",
) -> list[Array]:
    """Compute the dual-tree complex wavelet transform of images.

    Parameters
    ----------
    data : array_like
        Real samples, of any shape and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL on a device are
        transformed there, Dask arrays when their results are computed.
    wavelet : Wavelet or str, default "qshift14"
        The q-shift wavelet of all levels but the first: ``qshift10``, ``qshift14``, ``qshift18``, or an
        orthogonal one whose ``dec_lo`` has a delay of a quarter of a sample from its centre.
    level : int, optional
        The number of levels. The default is as many as are useful, at least 1.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
    first : Wavelet or str, default "cdf97"
        The wavelet of the first level, with symmetric filters of odd lengths: ``cdf53``, ``cdf97``,
        ``bior6.8`` and others.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    list of arrays
        ``[lowpass, details of the coarsest level, …, details of the finest level]``. The low-pass band is
        real. Details are complex arrays whose first axis has the six directions, of lines at 15°, 45°, 75°,
        105°, 135° and 165° from the horizontal axis, counterclockwise. See :func:`dtcwtn` for lengths and
        borders.

    See Also
    --------
    idtcwt2 : The inverse.

    Examples
    --------
    >>> lowpass, coarse, fine = dtcwt2(np.eye(64), level=2)
    >>> lowpass.shape, coarse.shape, fine.shape
    ((32, 32), (6, 16, 16), (6, 32, 32))

    The main diagonal falls from left to right, at 135°:

    >>> int(np.argmax(np.sum(np.abs(coarse) ** 2, axis=(1, 2))))
    4
    """
    return _forward(data, wavelet, level, two_axes(axes), first, backend)


def idtcwt2(
    coeffs: Sequence[ArrayLike | None],
    wavelet: Name = "qshift14",
    axes: Sequence[int] = (-2, -1),
    *,
    shape: int | Sequence[int] | None = None,
    first: Name = "cdf97",
    backend: str = "auto",
) -> Array:
    """Compute the inverse of :func:`dtcwt2`.

    Parameters
    ----------
    coeffs : sequence of array_like or None
        Coefficients as :func:`dtcwt2` returns them. None in place of an array stands for zeros.
    wavelet : Wavelet or str, default "qshift14"
        The q-shift wavelet of the transform.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis.
    shape : sequence of int, optional
        Shape of the samples, needed if lengths were not multiples of ``2**level``. By default they were.
    first : Wavelet or str, default "cdf97"
        The wavelet of the first level.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    array
        The samples.

    Examples
    --------
    >>> image = np.arange(35.0).reshape(5, 7)
    >>> bool(np.allclose(idtcwt2(dtcwt2(image, level=2), shape=(5, 7)), image))
    True
    """
    return _inverse(coeffs, wavelet, two_axes(axes), shape, first, backend)


# --- for any number of axes -----------------------------------------------------------------------


def _forward(
    data: ArrayLike, wavelet: Name, level: Any, axes: Axes, first: Name, backend: str
) -> list[Array]:
    x = _real_array(data, "data")
    numbers = checked_axes(axes, len(x.shape))
    shape = tuple(map(int, x.shape))
    if not shape or 0 in shape:
        raise ArgumentError(f"data must have axes and samples along each of them, got shape {shape}")
    if len(numbers) > MAX_AXES:
        raise ArgumentError(
            f"a dual tree has at most {MAX_AXES} axes, got {len(numbers)}: name those to transform by axes"
        )
    start, others = _wavelets(first, wavelet)
    levels = _levels([shape[axis] for axis in numbers], others, level)
    engine = engine_for([x], backend)
    dtype = engine.result_dtype(np.dtype(engine.library.dtype(x)))
    tree = DualTree(shape, tuple(numbers), levels, start, others, str(dtype))
    if isinstance(engine, ChunkedEngine):
        results = engine.dual_tree_bands(tree, x)
    else:
        x = engine.coefficients(engine.samples(x), dtype)
        results = _forward_program(tree, engine).run({"x": x})
    names = ["lowpass", *(f"level{k}" for k in range(levels, 0, -1))]
    bands: list[Array] = library_of(data).restore([results[name] for name in names], data)
    return bands


def _inverse(coeffs: Any, wavelet: Name, axes: Axes, shape: Any, first: Name, backend: str) -> Array:
    if isinstance(coeffs, (str, Mapping, np.ndarray)) or not isinstance(coeffs, Sequence):
        raise ArgumentTypeError(
            f"coefficients are a list [lowpass, details, …], as dtcwt returns it; got {type(coeffs).__name__}"
        )
    if len(coeffs) < 2:
        raise ArgumentError(f"coefficients are a low-pass band and details, got a list of {len(coeffs)}")
    levels = len(coeffs) - 1
    names = ["lowpass", *(f"level{k}" for k in range(levels, 0, -1))]
    arrays = {}
    for name, band in zip(names, coeffs, strict=True):
        if band is not None:
            what = "the low-pass band" if name == "lowpass" else f"the details of level {name[5:]}"
            arrays[name] = (_real_array if name == "lowpass" else given_array)(band, what)
    if not arrays:
        raise ArgumentError(NO_COEFFICIENTS)
    numbers, padded = _sample_shape(arrays, levels, axes)
    start, others = _wavelets(first, wavelet)
    lengths = _cut_shape(padded, numbers, levels, shape)
    given = list(arrays.values())
    engine = engine_for(given, backend)
    dtypes = [np.dtype(engine.library.dtype(band)) for band in given]
    kind = engine.result_dtype(np.result_type(*dtypes))
    dtype = "float32" if kind in (np.float32, np.complex64) else "float64"
    tree = DualTree(lengths, tuple(numbers), levels, start, others, dtype)
    if isinstance(engine, ChunkedEngine):
        return engine.dual_tree_samples(tree, arrays)  # type: ignore[no-any-return]
    inputs = {
        name: engine.coefficients(band, np.dtype(dtype if name == "lowpass" else COMPLEX[dtype]))
        for name, band in arrays.items()
    }
    result = _inverse_program(tree, frozenset(names) - frozenset(arrays), engine).run(inputs)["x"]
    example = next(band for band in coeffs if band is not None)
    samples: Array = library_of(example).restore(result, example)
    return samples


@lru_cache(maxsize=64)
def _forward_program(tree: DualTree, engine: Engine) -> Any:
    return engine.compile_graph(tree.forward())


@lru_cache(maxsize=64)
def _inverse_program(tree: DualTree, missing: frozenset[str], engine: Engine) -> Any:
    return engine.compile_graph(tree.inverse(missing))


def _real_array(data: Any, what: str) -> Any:
    x = given_array(data, what)
    dtype = np.dtype(library_of(x).dtype(x))
    if dtype.kind == "c":
        raise ArgumentTypeError(
            f"{what} must be real, got {dtype}; transform its real and its imaginary part"
        )
    return x


# --- arguments ------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _checked_wavelets(start: Wavelet, others: Wavelet) -> None:
    """Raise an error for wavelets that make no dual tree."""
    low, high = start.dec_lo, start.dec_hi
    centred = low[0] == high[-1] == 0 and all(
        np.allclose(taps, taps[::-1], atol=1e-6) for taps in (low[1:], high[:-1])
    )
    if not centred:
        raise ArgumentError(
            f"the first level needs symmetric filters of odd lengths, aligned as those of 'cdf97', and"
            f" {start.name!r} has others; use 'cdf53', 'cdf97' or 'bior6.8'"
        )
    taps = np.asarray(others.dec_lo)
    places = np.arange(len(taps)) - (len(taps) - 1) / 2
    delay = float(taps @ places / taps.sum())
    if not others.orthogonal or abs(delay - 0.25) > DELAY_TOLERANCE:
        raise ArgumentError(
            f"a dual tree needs an orthogonal wavelet with a delay of 0.25 samples, such as 'qshift14';"
            f" {others.name!r} has {delay:.2f}" + ("" if others.orthogonal else " and is not orthogonal")
        )


def _wavelets(first: Name, wavelet: Name) -> tuple[Wavelet, Wavelet]:
    start, others = as_wavelet(first), as_wavelet(wavelet)
    _checked_wavelets(start, others)
    return start, others


def _levels(lengths: Sequence[int], wavelet: Wavelet, level: Any) -> int:
    shortest = min(lengths)
    most = max(1, (shortest - 1).bit_length())
    if level is None:
        return min(most, max(1, max_level(shortest, wavelet.dec_len)))
    if not isinstance(level, (int, np.integer)) or isinstance(level, bool):
        raise ArgumentTypeError(f"level must be an integer or None, got {level!r}")
    if not 1 <= level <= most:
        raise ArgumentError(
            f"level must be from 1 to {most} for lines of {shortest} samples, which are extended to a"
            f" multiple of 2**level; got {level}"
        )
    return int(level)


def _sample_shape(arrays: Mapping[str, Any], levels: int, axes: Axes) -> tuple[list[int], Shape]:
    """Return the axes of coefficients, and the shape of the samples that they come from."""
    shapes = {name: tuple(map(int, band.shape)) for name, band in arrays.items()}
    name, shape = next(iter(shapes.items()))
    ndim = len(shape)
    if not ndim:
        raise ArgumentError("coefficients must be arrays with at least one axis, got a single number")
    if name != "lowpass":
        # There is an axis of directions unless one axis was transformed.
        single = axes is not None and (isinstance(axes, int) or len(tuple(axes)) == 1)
        ndim -= 0 if single or ndim == 1 else 1
    numbers = checked_axes(axes, ndim)
    directions = (len(orientations(len(numbers))),) if len(numbers) > 1 else ()
    factor = 1 << (levels - 1 if name == "lowpass" else int(name[5:]))
    lead = 0 if name == "lowpass" else len(directions)
    samples = tuple(n * factor if axis in numbers else n for axis, n in enumerate(shape[lead:]))
    for other, given in shapes.items():
        factor = 1 << (levels - 1 if other == "lowpass" else int(other[5:]))
        expected = tuple(n // factor if axis in numbers else n for axis, n in enumerate(samples))
        expected = expected if other == "lowpass" else (*directions, *expected)
        if given != expected or 0 in given:
            what = "the low-pass band" if other == "lowpass" else f"details of level {other[5:]}"
            raise MismatchedBandsError(
                f"{what} must have shape {expected} beside {name} of shape {shape}, got {given}"
            )
    return numbers, samples


def _cut_shape(padded: Shape, axes: Sequence[int], levels: int, shape: Any) -> Shape:
    """Return the shape of the result."""
    lengths = as_shape(shape, len(padded))
    if lengths is None:
        return padded
    for axis, (n, most) in enumerate(zip(lengths, padded, strict=True)):
        least = most - (1 << levels) + 1 if axis in axes else most
        if not least <= n <= most:
            raise ArgumentError(
                f"shape {lengths} does not match these coefficients; expected from {least} to {most} along"
                f" axis {axis}"
            )
    return lengths
