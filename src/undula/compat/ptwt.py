"""The functions of ptwt, the PyTorch Wavelet Toolbox, with its names, defaults and results.

Modes are those of PyWavelets, ``periodization`` included, and tensors may have any dtype. The names ``axis``
and ``axes`` are None in ptwt for the last axes, as here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from ..errors import ArgumentError
from ..functions import discrete, stationary
from ..wavelets import Wavelet

__all__ = [
    "WaveletDetailTuple2d",
    "fswavedec2",
    "fswavedec3",
    "fswaverec2",
    "fswaverec3",
    "iswt",
    "swt",
    "wavedec",
    "wavedec2",
    "wavedec3",
    "waverec",
    "waverec2",
    "waverec3",
]

Name = Wavelet | str


class WaveletDetailTuple2d(NamedTuple):
    """The details of one level of an image.

    Attributes
    ----------
    horizontal, vertical, diagonal : Tensor
        The bands, as :func:`undula.dwt2` names them.

    Examples
    --------
    >>> import torch
    >>> WaveletDetailTuple2d(*torch.zeros(3, 4, 4)).diagonal.shape
    torch.Size([4, 4])
    """

    horizontal: Tensor
    vertical: Tensor
    diagonal: Tensor


def wavedec(
    data: Tensor, wavelet: Name, *, mode: str = "reflect", level: int | None = None, axis: int | None = -1
) -> list[Tensor]:
    """Compute several levels of the DWT along one axis.

    Parameters
    ----------
    data : Tensor
        Lines of samples.
    wavelet : Wavelet or str
        The wavelet.
    mode : str, default "reflect"
        How lines go on beyond their ends: one of ``undula.MODES``.
    level : int, optional
        Number of levels. The default is as many as are useful.
    axis : int or None, default -1
        Axis to transform. None stands for the last one.

    Returns
    -------
    list of Tensor
        ``[approximation, details of the coarsest level, …, details of the finest level]``.

    Examples
    --------
    >>> import torch
    >>> [band.shape[-1] for band in wavedec(torch.randn(2, 16), "haar", level=2)]
    [4, 4, 8]
    """
    axis = -1 if axis is None else axis
    return list(discrete.wavedec(data, wavelet, mode, level, axis))


def waverec(coeffs: Sequence[Tensor], wavelet: Name, *, axis: int | None = None) -> Tensor:
    """Compute the inverse of :func:`wavedec`.

    Parameters
    ----------
    coeffs : sequence of Tensor
        Coefficients as :func:`wavedec` returns them.
    wavelet : Wavelet or str
        The wavelet of the transform.
    axis : int, optional
        Axis to transform. None stands for the last one.

    Returns
    -------
    Tensor
        The samples.

    Examples
    --------
    >>> import torch
    >>> waverec(wavedec(torch.randn(2, 16), "haar"), "haar").shape
    torch.Size([2, 16])
    """
    return discrete.waverec(list(coeffs), wavelet, "zero", -1 if axis is None else axis)


def wavedec2(
    data: Tensor,
    wavelet: Name,
    *,
    mode: str = "reflect",
    level: int | None = None,
    axes: Sequence[int] | None = (-2, -1),
) -> tuple[Any, ...]:
    """Compute several levels of the DWT of images.

    Parameters
    ----------
    data : Tensor
        Images, along the last two axes by default.
    wavelet : Wavelet or str
        The wavelet.
    mode : str, default "reflect"
        How lines go on beyond their ends: one of ``undula.MODES``.
    level : int, optional
        Number of levels. The default is as many as are useful.
    axes : pair of int or None, default (-2, -1)
        The two axes to transform. None stands for the last two.

    Returns
    -------
    tuple
        The approximation, and a :class:`WaveletDetailTuple2d` for each level, coarsest first.

    Examples
    --------
    >>> import torch
    >>> low, details = wavedec2(torch.randn(1, 8, 8), "haar", level=1)
    >>> low.shape, details.horizontal.shape
    (torch.Size([1, 4, 4]), torch.Size([1, 4, 4]))
    """
    axes = _axes(axes, 2)
    low, *levels = discrete.wavedec2(data, wavelet, mode, level, axes)
    return low, *(WaveletDetailTuple2d(*details) for details in levels)


def waverec2(coeffs: Sequence[Any], wavelet: Name, *, axes: Sequence[int] | None = None) -> Tensor:
    """Compute the inverse of :func:`wavedec2`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`wavedec2` returns them.
    wavelet : Wavelet or str
        The wavelet of the transform.
    axes : pair of int, optional
        The two axes to transform. None stands for the last two.

    Returns
    -------
    Tensor
        The samples.

    Examples
    --------
    >>> import torch
    >>> waverec2(wavedec2(torch.randn(1, 8, 8), "haar"), "haar").shape
    torch.Size([1, 8, 8])
    """
    plain = [coeffs[0], *(tuple(details) for details in coeffs[1:])]
    return discrete.waverec2(plain, wavelet, "zero", _axes(axes, 2))


def wavedec3(
    data: Tensor,
    wavelet: Name,
    *,
    mode: str = "zero",
    level: int | None = None,
    axes: Sequence[int] | None = (-3, -2, -1),
) -> tuple[Any, ...]:
    """Compute several levels of the DWT of volumes.

    Parameters
    ----------
    data : Tensor
        Volumes, along the last three axes by default.
    wavelet : Wavelet or str
        The wavelet.
    mode : str, default "zero"
        How lines go on beyond their ends: one of ``undula.MODES``.
    level : int, optional
        Number of levels. The default is as many as are useful.
    axes : sequence of three int or None, default (-3, -2, -1)
        The three axes to transform. None stands for the last three.

    Returns
    -------
    tuple
        The approximation, and for each level, coarsest first, a dictionary of its bands.

    Examples
    --------
    >>> import torch
    >>> low, details = wavedec3(torch.randn(1, 8, 8, 8), "haar", level=1)
    >>> sorted(details)
    ['aad', 'ada', 'add', 'daa', 'dad', 'dda', 'ddd']
    """
    return _wavedecn(data, wavelet, mode, level, _axes(axes, 3))


def waverec3(coeffs: Sequence[Any], wavelet: Name, *, axes: Sequence[int] | None = None) -> Tensor:
    """Compute the inverse of :func:`wavedec3`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`wavedec3` returns them.
    wavelet : Wavelet or str
        The wavelet of the transform.
    axes : sequence of three int, optional
        The three axes to transform. None stands for the last three.

    Returns
    -------
    Tensor
        The samples.

    Examples
    --------
    >>> import torch
    >>> waverec3(wavedec3(torch.randn(1, 8, 8, 8), "haar"), "haar").shape
    torch.Size([1, 8, 8, 8])
    """
    return _waverecn(coeffs, wavelet, _axes(axes, 3))


def fswavedec2(
    data: Tensor,
    wavelet: Name,
    *,
    mode: str = "reflect",
    level: int | None = None,
    axes: Sequence[int] | None = None,
) -> tuple[Any, ...]:
    """Compute the DWT of images with details by key, as ptwt's separable transform does.

    Parameters
    ----------
    data : Tensor
        Images, along the last two axes by default.
    wavelet : Wavelet or str
        The wavelet.
    mode : str, default "reflect"
        How lines go on beyond their ends: one of ``undula.MODES``.
    level : int, optional
        Number of levels. The default is as many as are useful.
    axes : pair of int, optional
        The two axes to transform. None stands for the last two.

    Returns
    -------
    tuple
        The approximation, and for each level, coarsest first, a dictionary of its bands.

    Examples
    --------
    >>> import torch
    >>> low, details = fswavedec2(torch.randn(1, 8, 8), "haar", level=1)
    >>> sorted(details)
    ['ad', 'da', 'dd']
    """
    return _wavedecn(data, wavelet, mode, level, _axes(axes, 2))


def fswaverec2(coeffs: Sequence[Any], wavelet: Name, *, axes: Sequence[int] | None = None) -> Tensor:
    """Compute the inverse of :func:`fswavedec2`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`fswavedec2` returns them.
    wavelet : Wavelet or str
        The wavelet of the transform.
    axes : pair of int, optional
        The two axes to transform. None stands for the last two.

    Returns
    -------
    Tensor
        The samples.

    Examples
    --------
    >>> import torch
    >>> fswaverec2(fswavedec2(torch.randn(1, 8, 8), "haar"), "haar").shape
    torch.Size([1, 8, 8])
    """
    return _waverecn(coeffs, wavelet, _axes(axes, 2))


def fswavedec3(
    data: Tensor,
    wavelet: Name,
    *,
    mode: str = "reflect",
    level: int | None = None,
    axes: Sequence[int] | None = None,
) -> tuple[Any, ...]:
    """Compute the DWT of volumes with details by key, as ptwt's separable transform does.

    Parameters
    ----------
    data : Tensor
        Volumes, along the last three axes by default.
    wavelet : Wavelet or str
        The wavelet.
    mode : str, default "reflect"
        How lines go on beyond their ends: one of ``undula.MODES``.
    level : int, optional
        Number of levels. The default is as many as are useful.
    axes : sequence of three int, optional
        The three axes to transform. None stands for the last three.

    Returns
    -------
    tuple
        The approximation, and for each level, coarsest first, a dictionary of its bands.

    Examples
    --------
    >>> import torch
    >>> len(fswavedec3(torch.randn(1, 8, 8, 8), "haar", level=2))
    3
    """
    return _wavedecn(data, wavelet, mode, level, _axes(axes, 3))


def fswaverec3(coeffs: Sequence[Any], wavelet: Name, *, axes: Sequence[int] | None = None) -> Tensor:
    """Compute the inverse of :func:`fswavedec3`.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as :func:`fswavedec3` returns them.
    wavelet : Wavelet or str
        The wavelet of the transform.
    axes : sequence of three int, optional
        The three axes to transform. None stands for the last three.

    Returns
    -------
    Tensor
        The samples.

    Examples
    --------
    >>> import torch
    >>> fswaverec3(fswavedec3(torch.randn(1, 8, 8, 8), "haar"), "haar").shape
    torch.Size([1, 8, 8, 8])
    """
    return _waverecn(coeffs, wavelet, _axes(axes, 3))


def swt(data: Tensor, wavelet: Name, level: int | None = None, *, axis: int | None = None) -> list[Tensor]:
    """Compute the stationary transform along one axis, with one approximation.

    Lines are periods of any length; ``level`` is needed if the length is odd.

    Parameters
    ----------
    data : Tensor
        Lines of samples.
    wavelet : Wavelet or str
        The wavelet.
    level : int, optional
        Number of levels. The default is as many as the length can be halved; it is needed if the length is
        odd.
    axis : int, optional
        Axis to transform. None stands for the last one.

    Returns
    -------
    list of Tensor
        The approximation of the coarsest level, and the details of each level, coarsest first.

    Examples
    --------
    >>> import torch
    >>> [band.shape[-1] for band in swt(torch.randn(2, 8), "haar", 2)]
    [8, 8, 8]
    """
    axis = -1 if axis is None else axis
    if level is None:
        level = stationary.swt_max_level(data.shape[axis])
    return stationary.swt(data, wavelet, level, axis=axis, trim_approx=True, mode="periodization")


def iswt(coeffs: Sequence[Tensor], wavelet: Name, *, axis: int | None = None) -> Tensor:
    """Compute the inverse of :func:`swt`.

    Parameters
    ----------
    coeffs : sequence of Tensor
        Coefficients as :func:`swt` returns them.
    wavelet : Wavelet or str
        The wavelet of the transform.
    axis : int, optional
        Axis to transform. None stands for the last one.

    Returns
    -------
    Tensor
        The samples.

    Examples
    --------
    >>> import torch
    >>> iswt(swt(torch.randn(2, 8), "haar", 2), "haar").shape
    torch.Size([2, 8])
    """
    return stationary.iswt(list(coeffs), wavelet, axis=-1 if axis is None else axis, mode="periodization")


def _axes(axes: Sequence[int] | None, count: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(-count, 0))
    if len(tuple(axes)) != count:
        raise ArgumentError(f"{count} axes are needed, got {axes!r}")
    return tuple(axes)


def _wavedecn(
    data: Tensor, wavelet: Name, mode: str, level: int | None, axes: tuple[int, ...]
) -> tuple[Any, ...]:
    return tuple(discrete.wavedecn(data, wavelet, mode, level, axes))


def _waverecn(coeffs: Sequence[Any], wavelet: Name, axes: tuple[int, ...]) -> Tensor:
    if not all(isinstance(details, Mapping) for details in coeffs[1:]):
        raise ArgumentError("details of each level must be given by key, such as {'ad': …}")
    return discrete.waverecn([coeffs[0], *(dict(details) for details in coeffs[1:])], wavelet, "zero", axes)
