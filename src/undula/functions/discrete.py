"""The DWT of arrays, with the functions, arguments and results of PyWavelets.

Every function is a form of ``wavedecn`` or ``waverecn``: with one level for ``dwtn``, and with simpler
coefficients for one and two axes. ``out=`` takes arrays for the results, nested as the results are.
``shape=`` restores odd lengths, which the coefficients do not determine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..lowering.axis_arguments import Axes
from ..lowering.boundary_methods import BoundaryMethod
from ..wavelets import Wavelet
from .discrete_calls import Length, Modes, Names, forward, inverse

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

Array = np.ndarray[Any, Any]
Name = Wavelet | str
Mode = str | int | BoundaryMethod


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
    return forward("dwtn", data, wavelet, mode, 1, axes, out, backend)  # type: ignore[no-any-return]


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
    return inverse("dwtn", coeffs, wavelet, mode, axes, shape, out, backend)  # type: ignore[no-any-return]


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
    return forward("wavedecn", data, wavelet, mode, level, axes, out, backend)  # type: ignore[no-any-return]


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
    return inverse("wavedecn", coeffs, wavelet, mode, axes, shape, out, backend)  # type: ignore[no-any-return]


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
    return forward("dwt", data, wavelet, mode, 1, axis, out, backend)  # type: ignore[no-any-return]


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
    return inverse("dwt", (cA, cD), wavelet, mode, axis, shape, out, backend)  # type: ignore[no-any-return]


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
    return forward("wavedec", data, wavelet, mode, level, axis, out, backend)  # type: ignore[no-any-return]


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
    return inverse("wavedec", coeffs, wavelet, mode, axis, shape, out, backend)  # type: ignore[no-any-return]


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
    return forward("dwt2", data, wavelet, mode, 1, axes, out, backend)  # type: ignore[no-any-return]


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
    return inverse("dwt2", coeffs, wavelet, mode, axes, shape, out, backend)  # type: ignore[no-any-return]


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
    return forward("wavedec2", data, wavelet, mode, level, axes, out, backend)  # type: ignore[no-any-return]


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
    return inverse("wavedec2", coeffs, wavelet, mode, axes, shape, out, backend)  # type: ignore[no-any-return]
