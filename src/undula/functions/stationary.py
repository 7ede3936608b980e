"""Stationary transforms: the DWT without decimation, with the functions, arguments and results of PyWavelets.

Every level keeps the coefficients at all places, and the taps of its filters are twice as far apart as those
of the level before. So coefficients move with the samples, and there are as many in each band as samples.

PyWavelets takes lines as periods whose length is a multiple of ``2**level``. With ``mode=``, lines have any
length: in mode ``periodization`` they are periods, with as many coefficients as samples. In the other modes
they are extended as for the DWT, and bands keep all coefficients that depend on the line: ``L - 1`` more at
the first level, for filters of ``L`` taps, twice as many more at the second, and so on.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.axis_arguments import Axes, one_axis, two_axes
from ..wavelets import Wavelet
from .discrete_calls import Names
from .stationary_calls import StationaryModes, forward, inverse

__all__ = ["iswt", "iswt2", "iswtn", "swt", "swt2", "swt_max_level", "swtn"]

Array = NDArray[Any]
Name = Wavelet | str
Mode = str | int | None


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


def swtn(
    data: ArrayLike,
    wavelet: Names,
    level: int | None,
    start_level: int = 0,
    axes: Axes = None,
    trim_approx: bool = False,
    norm: bool = False,
    *,
    mode: StationaryModes = None,
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
    return forward("wavedecn", data, wavelet, level, start_level, axes, trim_approx, norm, mode, out, backend)


def iswtn(
    coeffs: Sequence[Any],
    wavelet: Names,
    axes: Axes = None,
    norm: bool = False,
    *,
    mode: StationaryModes = None,
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
    return inverse("wavedecn", coeffs, wavelet, axes, norm, mode, start_level, out, backend)


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
    return forward(
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
    return inverse("wavedec", coeffs, wavelet, one_axis(axis), norm, mode, start_level, out, backend)


def swt2(
    data: ArrayLike,
    wavelet: Names,
    level: int | None,
    start_level: int = 0,
    axes: Sequence[int] = (-2, -1),
    trim_approx: bool = False,
    norm: bool = False,
    *,
    mode: StationaryModes = None,
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
    return forward(
        "wavedec2", data, wavelet, level, start_level, two_axes(axes), trim_approx, norm, mode, out, backend
    )


def iswt2(
    coeffs: Sequence[Any],
    wavelet: Names,
    norm: bool = False,
    axes: Sequence[int] = (-2, -1),
    *,
    mode: StationaryModes = None,
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
    return inverse("wavedec2", coeffs, wavelet, two_axes(axes), norm, mode, start_level, out, backend)
