"""The reference: every transform in plain NumPy, slow and easy to check. The oracle of all backends.

Arithmetic is in the longest float there is, whatever comes in; integers given to the LWT stay integers and
come back bit for bit. Arguments, defaults and results are PyWavelets' where it has such a function;
``scheme`` names one of :data:`undula.SCHEMES` by whose stages two axes are transformed, instead of by the
filters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import ArgumentError, ArgumentTypeError
from ...lowering.axes import Axes, checked_axes, one_axis, two_axes
from ...lowering.borders import LWT_MODES, check_mode, max_level
from ...lowering.growth import growth
from ...schemes import check_name
from ...wavelets import Wavelet, as_wavelet
from . import level as one_level

__all__ = [
    "dwt",
    "dwt2",
    "dwtn",
    "idwt",
    "idwt2",
    "idwtn",
    "ilwt",
    "ilwt2",
    "ilwtn",
    "lwt",
    "lwt2",
    "lwtn",
    "wavedec",
    "wavedec2",
    "wavedecn",
    "waverec",
    "waverec2",
    "waverecn",
]

LWT_LEVELS = 64  # Lines of one sample may be scaled on and on; beyond this it is surely a mistake.
INTEGER_LIMIT = 2**40  # Larger integers could overflow in the sums of a step.

Array = NDArray[Any]
Name = Wavelet | str


@dataclass(frozen=True)
class _Transform:
    """One level of one family of transforms, on arrays and on bands by key."""

    lifted: bool
    wavelet: Wavelet
    mode: str
    axes: tuple[int, ...]
    scheme: str | None

    @property
    def keys(self) -> list[str]:
        return ["".join(letters) for letters in product("ad", repeat=len(self.axes))]

    def forward(self, x: Array) -> dict[str, Array]:
        if self.lifted:
            bands = one_level.lwt(x, self.wavelet, self.mode, self.axes, self.scheme)
        elif self.scheme is not None:
            bands = one_level.dwt(x, self.wavelet, self.mode, self.axes, self.scheme)
        else:
            bands = [x]
            for axis in self.axes:
                bands = [
                    b for part in bands for b in one_level.dwt(part, self.wavelet, self.mode, [axis], None)
                ]
        return dict(zip(self.keys, bands, strict=True))

    def inverse(self, coeffs: Mapping[str, Array]) -> Array:
        bands = [coeffs[key] for key in self.keys]
        if self.lifted:
            return one_level.ilwt(bands, self.wavelet, self.mode, self.axes, self.scheme)
        if self.scheme is not None:
            return one_level.idwt(bands, self.wavelet, self.mode, self.axes, self.scheme)
        for axis in reversed(self.axes):
            pairs = zip(bands[::2], bands[1::2], strict=True)
            bands = [one_level.idwt(list(pair), self.wavelet, self.mode, [axis], None) for pair in pairs]
        return bands[0]


def _transform(
    lifted: bool,
    shape: tuple[int, ...],
    wavelet: Name,
    mode: str,
    axes: Axes,
    name: str | None,
) -> _Transform:
    """The transform asked for, or an error that says what is wrong with the asking."""
    found = tuple(checked_axes(axes, len(shape)))
    name = None if name is None else check_name(name)
    if name is not None and len(found) != 2:
        raise ArgumentError(f"scheme {name!r} works on two axes, got {len(found)}")
    mode = check_mode(mode, LWT_MODES) if lifted else check_mode(mode)
    return _Transform(lifted, as_wavelet(wavelet), mode, found, name)


def _samples(x: ArrayLike, what: str = "an array") -> Array:
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ArgumentError(f"{what} of numbers is needed: {error}") from None
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(f"{what} of numbers is needed, got dtype {array.dtype}")
    if array.size == 0 or array.ndim == 0:
        raise ArgumentError(f"{what} with samples along some axis is needed, got shape {array.shape}")
    return array


def _working(transform: _Transform, dtypes: Sequence[np.dtype[Any]]) -> tuple[type, np.dtype[Any]]:
    """The type to compute in, and the dtype of results: PyWavelets' rules, and integers for the LWT."""
    common = np.result_type(*dtypes)
    if transform.lifted and common.kind not in "iu" and any(dtype.kind in "iu" for dtype in dtypes):
        raise ArgumentError(
            f"coefficients of an LWT are all integers (unscaled) or all floats (scaled), got {dtypes}"
        )
    if transform.lifted and common.kind in "iu":
        if transform.scheme is not None:
            raise ArgumentError(
                f"integers are lifted axis by axis, step by step, not by scheme {transform.scheme!r}"
            )
        return np.int64, np.dtype(np.int64)
    if common.kind == "c":
        return np.clongdouble, np.dtype(np.complex64 if common.itemsize <= 8 else np.complex128)
    single = common.kind == "f" and common.itemsize <= 4
    return np.longdouble, np.dtype(np.float32 if single else np.float64)


def _levels(transform: _Transform, shape: tuple[int, ...], level: int | None) -> int:
    lengths = [shape[axis] for axis in transform.axes]
    if transform.lifted:
        whole = max(1, math.ceil(math.log2(max(lengths))))
        deepest = max(whole, LWT_LEVELS)
    else:
        whole = deepest = min(max_level(length, transform.wavelet.dec_len) for length in lengths)
    if level is None:
        return whole
    if not isinstance(level, (int, np.integer)) or isinstance(level, bool):
        raise ArgumentTypeError(f"level must be an integer or None, got {level!r}")
    if not 0 <= level <= deepest:
        raise ArgumentError(
            f"level {level} is not possible for shape {shape} along axes {transform.axes} with the"
            f" {transform.wavelet.dec_len} taps of {transform.wavelet.name!r}: from 0 to {deepest}"
        )
    return int(level)


def _decompose(transform: _Transform, x: ArrayLike, level: int | None) -> list[Any]:
    array = _samples(x)
    working, dtype = _working(transform, [array.dtype])
    if working is np.int64 and max(abs(int(array.min())), abs(int(array.max()))) > INTEGER_LIMIT:
        raise ArgumentError(f"integers up to ±2⁴⁰ are lifted, got {array.min()} to {array.max()}")
    levels = _levels(transform, array.shape, level)
    if working is np.int64:
        wavelets, modes = (transform.wavelet,) * len(transform.axes), (transform.mode,) * len(transform.axes)
        grows = growth(wavelets, modes, tuple(array.shape[axis] for axis in transform.axes), levels)
        if not grows.fits(max(abs(int(array.min())), abs(int(array.max()))), 64):
            raise ArgumentError(
                f"{levels} level(s) of {transform.wavelet.name} could overflow int64: samples up to"
                f" ±{grows.largest(64)} fit, got {array.min()} to {array.max()}"
            )
    approximation: Array = array.astype(working)
    details: list[dict[str, Array]] = []
    for _ in range(levels):
        bands = transform.forward(approximation)
        approximation = bands.pop(transform.keys[0])
        details.insert(0, {key: band.astype(dtype) for key, band in bands.items()})
    return [approximation.astype(dtype), *details]


def _recompose(transform: _Transform, coeffs: Sequence[Any]) -> Array:
    levels = [_details(transform, level, number) for number, level in enumerate(coeffs[1:], 1)]
    approximation = np.asarray(coeffs[0])
    dtypes = [approximation.dtype, *(band.dtype for level in levels for band in level.values())]
    working, dtype = _working(transform, dtypes)
    x: Array = approximation.astype(working)
    for number, level in enumerate(levels, 1):
        shapes = {key: band.shape for key, band in level.items()}
        if not transform.lifted:
            # An approximation that stems from an odd length comes back one sample too long.
            fitting = next(iter(shapes.values()))
            surplus = {have - want for have, want in zip(x.shape, fitting, strict=False)}
            fits = len(fitting) == x.ndim and surplus <= {0, 1} and set(shapes.values()) == {fitting}
        else:
            fitting = x.shape
            fits = _partition(transform, x.shape, shapes)
        if not fits:
            raise ArgumentError(
                f"coefficients of level {number} do not fit: approximation {x.shape}, details {shapes}"
            )
        x = x[tuple(slice(n) for n in fitting)]
        bands: dict[str, Array] = {key: band.astype(working) for key, band in level.items()}
        x = transform.inverse({transform.keys[0]: x, **bands})
    return x.astype(dtype)


def _details(transform: _Transform, level: object, number: int) -> dict[str, Array]:
    """The arrays of one level, or an error that says which are needed."""
    keys = transform.keys[1:]
    if not isinstance(level, Mapping) or sorted(map(str, level)) != sorted(keys):
        found = sorted(map(str, level)) if isinstance(level, Mapping) else type(level).__name__
        raise ArgumentError(f"details {keys} are needed at level {number}, got {found}")
    arrays = {key: np.asarray(level[key]) for key in keys}
    for key, array in arrays.items():
        if array.dtype.kind not in "biufc" or array.ndim <= max(transform.axes):
            raise ArgumentError(
                f"detail {key!r} of level {number} is no array of numbers with axes {transform.axes}:"
                f" dtype {array.dtype}, shape {array.shape}"
            )
    return arrays


def _partition(transform: _Transform, low: tuple[int, ...], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """True when the bands of an LWT make up one array: along each axis as many high as low, or one fewer."""
    high = shapes[transform.keys[-1]]
    if len(high) != len(low):
        return False
    lengths = {axis: (low[axis], high[axis]) for axis in transform.axes}
    if any(a - b not in (0, 1) for a, b in lengths.values()):
        return False
    for key, shape in shapes.items():
        wanted = list(low)
        for letter, axis in zip(key, transform.axes, strict=True):
            wanted[axis] = lengths[axis][letter == "d"]
        if shape != tuple(wanted):
            return False
    return True


def _approximation(coeffs: object) -> Array:
    """The first of the coefficients, from which the number of axes is read."""
    if isinstance(coeffs, (str, Mapping)) or not isinstance(coeffs, Sequence) or not coeffs:
        raise ArgumentTypeError(
            f"coefficients are a list [approximation, details, …], got {type(coeffs).__name__}"
        )
    return _samples(coeffs[0], "an approximation")


def wavedecn(
    x: ArrayLike,
    wavelet: Name,
    mode: str = "symmetric",
    level: int | None = None,
    axes: Axes = None,
    *,
    scheme: str | None = None,
) -> list[Any]:
    """The DWT of several levels: ``[approximation, details of the coarsest level, …, of the finest]``.

    Details are dictionaries of bands. With the name of a ``scheme`` two axes are transformed by its
    stages; without one, by the filters.
    """
    transform = _transform(False, _samples(x).shape, wavelet, mode, axes, scheme)
    return _decompose(transform, x, level)


def waverecn(
    coeffs: Sequence[Any],
    wavelet: Name,
    mode: str = "symmetric",
    axes: Axes = None,
    *,
    scheme: str | None = None,
) -> Array:
    """The inverse of :func:`wavedecn`."""
    shape = _approximation(coeffs).shape
    return _recompose(_transform(False, shape, wavelet, mode, axes, scheme), coeffs)


def lwtn(
    x: ArrayLike,
    wavelet: Name,
    level: int | None = 1,
    mode: str = "symmetric",
    axes: Axes = None,
    *,
    scheme: str | None = None,
) -> list[Any]:
    """The LWT of several levels, in the form of :func:`wavedecn`: as many numbers out as in."""
    transform = _transform(True, _samples(x).shape, wavelet, mode, axes, scheme)
    return _decompose(transform, x, level)


def ilwtn(
    coeffs: Sequence[Any],
    wavelet: Name,
    mode: str = "symmetric",
    axes: Axes = None,
    *,
    scheme: str | None = None,
) -> Array:
    """The inverse of :func:`lwtn`."""
    shape = _approximation(coeffs).shape
    return _recompose(_transform(True, shape, wavelet, mode, axes, scheme), coeffs)


# --- one level, and the plainer forms of one and two axes -----------------------------------------

_PLAIN = {1: ("d",), 2: ("da", "ad", "dd")}  # PyWavelets' order: horizontal, vertical, diagonal


def _plain(coeffs: Sequence[Any], axes: int) -> list[Any]:
    """Details as arrays (one axis) or as tuples (two axes) instead of dictionaries."""
    rows = [tuple(level[key] for key in _PLAIN[axes]) for level in coeffs[1:]]
    return [coeffs[0], *(row[0] if axes == 1 else row for row in rows)]


def _keyed(coeffs: Sequence[Any], axes: int) -> list[Any]:
    """The inverse of :func:`_plain`."""
    _approximation(coeffs)
    keyed: list[Any] = [coeffs[0]]
    for row in coeffs[1:]:
        arrays = (row,) if axes == 1 else tuple(row) if isinstance(row, (tuple, list)) else ()
        if len(arrays) != len(_PLAIN[axes]):
            raise ArgumentError(f"details of a level are {len(_PLAIN[axes])} arrays, got {len(arrays)}")
        keyed.append(dict(zip(_PLAIN[axes], arrays, strict=True)))
    return keyed


def dwtn(
    x: ArrayLike,
    wavelet: Name,
    mode: str = "symmetric",
    axes: Axes = None,
    *,
    scheme: str | None = None,
) -> dict[str, Array]:
    """One level of the DWT: bands by key; ``"ad"`` is low along the first axis and high along the second."""
    array = _samples(x)
    transform = _transform(False, array.shape, wavelet, mode, axes, scheme)
    working, dtype = _working(transform, [array.dtype])
    return {key: b.astype(dtype) for key, b in transform.forward(array.astype(working)).items()}


def idwtn(
    coeffs: Mapping[str, ArrayLike],
    wavelet: Name,
    mode: str = "symmetric",
    axes: Axes = None,
    *,
    scheme: str | None = None,
) -> Array:
    """The inverse of :func:`dwtn`."""
    if not isinstance(coeffs, Mapping) or not coeffs:
        raise ArgumentTypeError(f"bands are given by key, such as {{'aa': …}}, got {coeffs!r}")
    lowest = min(coeffs, key=str)
    details = {key: band for key, band in coeffs.items() if key != lowest}
    return waverecn([coeffs[lowest], details], wavelet, mode, axes, scheme=scheme)


def dwt(x: ArrayLike, wavelet: Name, mode: str = "symmetric", axis: int = -1) -> tuple[Array, Array]:
    """One level of the DWT of lines: ``(cA, cD)``."""
    bands = dwtn(x, wavelet, mode, one_axis(axis))
    return bands["a"], bands["d"]


def idwt(cA: ArrayLike, cD: ArrayLike, wavelet: Name, mode: str = "symmetric", axis: int = -1) -> Array:
    """The inverse of :func:`dwt`."""
    return waverec([cA, cD], wavelet, mode, axis)


def dwt2(
    x: ArrayLike,
    wavelet: Name,
    mode: str = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    scheme: str | None = None,
) -> tuple[Array, tuple[Array, Array, Array]]:
    """One level of the DWT of images: ``(cA, (cH, cV, cD))``."""
    bands = dwtn(x, wavelet, mode, two_axes(axes), scheme=scheme)
    return bands["aa"], (bands["da"], bands["ad"], bands["dd"])


def idwt2(
    coeffs: tuple[ArrayLike, tuple[ArrayLike, ArrayLike, ArrayLike]],
    wavelet: Name,
    mode: str = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    scheme: str | None = None,
) -> Array:
    """The inverse of :func:`dwt2`."""
    if not isinstance(coeffs, Sequence) or len(coeffs) != 2:
        raise ArgumentError(f"coefficients are a pair (cA, (cH, cV, cD)), got {type(coeffs).__name__}")
    return waverec2(coeffs, wavelet, mode, axes, scheme=scheme)


def wavedec(
    x: ArrayLike, wavelet: Name, mode: str = "symmetric", level: int | None = None, axis: int = -1
) -> list[Array]:
    """The DWT of lines in several levels: ``[cA, cD of the coarsest level, …, cD of the finest]``."""
    return _plain(wavedecn(x, wavelet, mode, level, one_axis(axis)), 1)


def waverec(coeffs: Sequence[ArrayLike], wavelet: Name, mode: str = "symmetric", axis: int = -1) -> Array:
    """The inverse of :func:`wavedec`."""
    return waverecn(_keyed(coeffs, 1), wavelet, mode, one_axis(axis))


def wavedec2(
    x: ArrayLike,
    wavelet: Name,
    mode: str = "symmetric",
    level: int | None = None,
    axes: Sequence[int] = (-2, -1),
    *,
    scheme: str | None = None,
) -> list[Any]:
    """The DWT of images in several levels: ``[cA, (cH, cV, cD) of the coarsest level, …]``."""
    return _plain(wavedecn(x, wavelet, mode, level, two_axes(axes), scheme=scheme), 2)


def waverec2(
    coeffs: Sequence[Any],
    wavelet: Name,
    mode: str = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    scheme: str | None = None,
) -> Array:
    """The inverse of :func:`wavedec2`."""
    return waverecn(_keyed(coeffs, 2), wavelet, mode, two_axes(axes), scheme=scheme)


def lwt(
    x: ArrayLike, wavelet: Name, level: int | None = 1, mode: str = "symmetric", axis: int = -1
) -> list[Array]:
    """The LWT of lines, in the form of :func:`wavedec`."""
    return _plain(lwtn(x, wavelet, level, mode, one_axis(axis)), 1)


def ilwt(coeffs: Sequence[ArrayLike], wavelet: Name, mode: str = "symmetric", axis: int = -1) -> Array:
    """The inverse of :func:`lwt`."""
    return ilwtn(_keyed(coeffs, 1), wavelet, mode, one_axis(axis))


def lwt2(
    x: ArrayLike,
    wavelet: Name,
    level: int | None = 1,
    mode: str = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    scheme: str | None = None,
) -> list[Any]:
    """The LWT of images, in the form of :func:`wavedec2`.

    Examples
    --------
    >>> [cA, (cH, cV, cD)] = lwt2(np.arange(15).reshape(3, 5), "cdf53")
    >>> cA.shape, cH.shape, cV.shape, cD.shape
    ((2, 3), (1, 3), (2, 2), (1, 2))
    """
    return _plain(lwtn(x, wavelet, level, mode, two_axes(axes), scheme=scheme), 2)


def ilwt2(
    coeffs: Sequence[Any],
    wavelet: Name,
    mode: str = "symmetric",
    axes: Sequence[int] = (-2, -1),
    *,
    scheme: str | None = None,
) -> Array:
    """The inverse of :func:`lwt2`."""
    return ilwtn(_keyed(coeffs, 2), wavelet, mode, two_axes(axes), scheme=scheme)
