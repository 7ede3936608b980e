"""Levels of both families of transforms, forward and back, for coefficients by key.

A :class:`Recipe` says what is wanted whatever the shape; :func:`level` makes of it, once for each shape and
dtype, something that runs. All public functions are thin forms of :func:`decompose` and :func:`recompose`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backends import cpu
from ..errors import ArgumentError
from ..plans.axes import Axes, checked_axes
from ..plans.boundary import LWT_MODES, MODES, check_mode, signal_length
from ..plans.coeffs import per_axis
from ..plans.growth import Growth, gains_back, growth
from ..plans.line import Line, Steps, dwt_line, lwt_line, lwt_steps
from ..plans.mixing import Mixing
from ..wavelets import Wavelet, as_wavelet
from .arrays import check_out, result_dtype

__all__ = ["Level", "Recipe", "decompose", "level", "recipe", "recompose"]

Array = NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Recipe:
    """What is done along which axes, and how lines go on."""

    lifted: bool
    axes: tuple[int, ...]
    wavelets: tuple[Wavelet, ...]
    modes: tuple[str, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.lifted, self.axes, self.wavelets, self.modes))

    def __hash__(self) -> int:
        """The same as ever, found once: levels are looked up by it at every call."""
        return self._hash

    @cached_property
    def keys(self) -> list[str]:
        """The keys of all bands, that of the approximation first."""
        return ["".join(letters) for letters in product("ad", repeat=len(self.axes))]


@lru_cache(maxsize=512)
def _recipe(ndim: int, wavelet: Any, mode: Any, axes: Any, lifted: bool) -> Recipe:
    found = checked_axes(axes, ndim)
    known = LWT_MODES if lifted else MODES
    wavelets = [as_wavelet(w) for w in per_axis(wavelet, len(found), "wavelet")]
    modes = [check_mode(m, known) for m in per_axis(mode, len(found), "mode")]
    return Recipe(lifted, tuple(found), tuple(wavelets), tuple(modes))


def recipe(ndim: int, wavelet: Any, mode: Any, axes: Axes, lifted: bool = False) -> Recipe:
    """What a caller asks for, or an error that says what is wrong with the asking."""
    # Sequences are made tuples, so that the answer can be looked up the next time; but not where something
    # else would be found because it is equal, as 1.0 and True are equal to 1.
    given = [tuple(v) if isinstance(v, (list, np.ndarray)) else v for v in (wavelet, mode, axes)]
    for value in given:
        for part in value if isinstance(value, tuple) else (value,):
            if type(part) not in _PLAIN:
                return _recipe.__wrapped__(ndim, *given, lifted)
    return _recipe(ndim, *given, lifted)


_PLAIN = (str, int, Wavelet, type(None))


class Level:
    """One level for arrays of one shape and dtype.

    Attributes
    ----------
    shape : tuple of int
        Of the samples.
    shapes : dict
        Of the bands, by key.
    lines : list of (axis, Line or Steps)
    """

    def __init__(self, wanted: Recipe, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype
        self.lines: list[tuple[int, Line | Steps]] = []
        for axis, wavelet, mode in zip(wanted.axes, wanted.wavelets, wanted.modes, strict=True):
            self.lines.append((axis, _line(wanted.lifted, shape[axis], wavelet, mode, dtype)))
        self.shapes: dict[str, Shape] = {}
        for key in wanted.keys:
            band = list(shape)
            for letter, (axis, line) in zip(key, self.lines, strict=True):
                band[axis] = line.counts[letter == "d"]
            self.shapes[key] = tuple(band)
        self.low = wanted.keys[0]
        self.engine = cpu.Level(shape, dtype, self.lines)
        self._both: tuple[Level, Any] | None = None

    def with_next(self, other: Level) -> Any:
        """What does this level and the next one at once, or None; looked up after the first time."""
        if self._both is None or self._both[0] is not other:
            self._both = (other, self.engine.with_next(other.engine))
        return self._both[1]

    def backward(self, bands: Mapping[str, Array | None], out: Array | None = None) -> Array:
        """The samples; bands that are None are zero."""
        x = cpu.empty(self.shape, self.dtype) if out is None else out
        self.engine.backward(bands, x)
        return x


def _line(lifted: bool, length: int, wavelet: Wavelet, mode: str, dtype: np.dtype[Any]) -> Line | Steps:
    single = dtype.char in "fF"
    if not lifted:
        return dwt_line(length, wavelet, mode, single)
    line = lwt_line(length, wavelet, mode, single or dtype.kind == "i")
    # (Integers are lifted by chains alone; those of 64 bits are too rare to compile loops for.)
    if line is None or (dtype.kind == "i" and (line.chain is None or dtype.itemsize == 8)):
        return lwt_steps(length, wavelet, mode)
    return line


@lru_cache(maxsize=512)
def level(wanted: Recipe, shape: Shape, dtype: np.dtype[Any]) -> Level:
    """A level that runs; the same one for the same asking."""
    return Level(wanted, shape, dtype)


# --- many levels ----------------------------------------------------------------------------------


def shapes(wanted: Recipe, shape: Shape, levels: int, dtype: np.dtype[Any]) -> list[Any]:
    """The shapes of the coefficients, nested as they are."""
    details: list[dict[str, Shape]] = []
    for _ in range(levels):
        one = level(wanted, shape, dtype)
        shape = one.shapes[one.low]
        details.insert(0, {key: part for key, part in one.shapes.items() if key != one.low})
    return [shape, *details]


def decompose(wanted: Recipe, x: Array, levels: int, out: Sequence[Any] | None = None) -> list[Any]:
    """``[approximation, details of the coarsest level, …]``, details by key.

    ``out`` is nested alike, and has been checked by :func:`checked_targets`.
    """
    if levels == 0:
        if out is None:
            return [x.copy()]
        out[0][...] = x
        return list(out)
    coeffs: list[Any] = []

    def targets(one: Level, number: int) -> dict[str, Array]:
        """Arrays for the bands of a level, but not for an approximation that nobody will see."""
        given = {} if out is None else dict(out[levels - number])
        if out is not None and number == levels - 1:
            given[one.low] = out[0]
        for key, shape in one.shapes.items():
            if key not in given and (key != one.low or number == levels - 1):
                given[key] = cpu.empty(shape, one.dtype)
        return given

    while len(coeffs) < levels:
        number = len(coeffs)
        one = level(wanted, x.shape, x.dtype)
        bands = targets(one, number)
        if number + 1 < levels:
            two = level(wanted, one.shapes[one.low], x.dtype)
            both = one.with_next(two)
            if both is not None:
                beyond = targets(two, number + 1)
                beyond.setdefault(two.low, cpu.empty(two.shapes[two.low], two.dtype))
                one.engine.forward_two(both, x, bands, two.engine, beyond)
                x = beyond.pop(two.low)
                coeffs[:0] = [beyond, bands]
                continue
            bands[one.low] = cpu.empty(one.shapes[one.low], one.dtype)
        one.engine.forward(x, bands)
        x = bands.pop(one.low)
        coeffs.insert(0, bands)
    return [x, *coeffs]


def decompose_mixed(
    wanted: Recipe, image: Array, mixing: Mixing, levels: int, dtype: np.dtype[Any]
) -> list[Any]:
    """The same for planes ``(P, H, W)`` that are made of the channels of an image, ``(H, W, C)``.

    They are made row by row as the first level needs them, where it can do that, and are never all there.
    """
    shape = (mixing.planes, *image.shape[:2])
    one = level(wanted, shape, dtype) if levels else None
    if one is None or not one.engine.mixes:
        planes = cpu.empty(shape, dtype)
        cpu.mix_planes(image, mixing, planes)
        return decompose(wanted, planes, levels)
    details = {key: cpu.empty(s, dtype) for key, s in one.shapes.items() if key != one.low}
    if levels > 1:
        two = level(wanted, one.shapes[one.low], dtype)
        both = one.with_next(two)
        if both is not None:
            others = {key: cpu.empty(s, dtype) for key, s in two.shapes.items()}
            one.engine.forward_mixed(image, mixing, details, both, others)
            low = others.pop(two.low)
            return [*decompose(wanted, low, levels - 2), others, details]
    low = cpu.empty(one.shapes[one.low], dtype)
    one.engine.forward_mixed(image, mixing, {one.low: low, **details})
    return [*decompose(wanted, low, levels - 1), details]


def checked_targets(
    wanted: Recipe, x: Array, levels: int, out: Any, keyed: Sequence[Any] | None, given: Array
) -> Sequence[Any]:
    """Arrays for results, as they are nested by key; an error where one does not fit.

    ``out`` is what the caller gave, ``keyed`` the same with details by key, or None if it is no such thing;
    ``given`` is the caller's array, of which ``x`` may be a copy of another type.
    """
    expected = shapes(wanted, x.shape, levels, x.dtype)
    alike = keyed is not None and len(keyed) == len(expected)
    if keyed is None or not alike:
        found = f"{len(out)} entries" if isinstance(out, (list, tuple)) else type(out).__name__
        raise ArgumentError(
            f"out must be nested as the result is, [approximation, details of {levels} level(s)]; got {found}"
        )
    before: list[Array] = [given]
    for number, (part, shape) in enumerate(zip(keyed, expected, strict=True)):
        parts = {"": (part, shape)}
        if number:
            if not isinstance(part, Mapping) or sorted(part) != sorted(shape):
                raise ArgumentError(f"out has to hold the details {sorted(shape)} at place {number}")
            parts = {key: (part[key], shape[key]) for key in shape}
        for key, (array, wants) in parts.items():
            name = f"out[{number}]" + (f"[{key!r}]" if key else "")
            before.append(check_out(array, wants, x.dtype, before, name))
    return keyed


def recompose(
    wanted: Recipe, coeffs: Sequence[Any], shape: Shape | None = None, out: Array | None = None
) -> Array:
    """The inverse of :func:`decompose`.

    Parameters
    ----------
    wanted : Recipe
    coeffs : list
        Arrays of numbers or None: the approximation, and details by key.
    shape : tuple of int, optional
        Of the result, where an odd length is wanted back.
    out : array, optional
        For the result.
    """
    bands_of = [band for level in coeffs[1:] for band in level.values()]
    given = [array for array in (coeffs[0], *bands_of) if array is not None]
    if not given:
        raise ArgumentError("At least one coefficient parameter must be specified.")
    dtypes = {array.dtype for array in given}
    common = np.result_type(*dtypes) if len(dtypes) > 1 else dtypes.pop()
    dtype = common if wanted.lifted and common.kind in "iu" else result_dtype(common)
    if wanted.lifted and common.kind not in "iu" and any(array.dtype.kind in "iu" for array in given):
        raise ArgumentError(
            "coefficients of an LWT are all integers (unscaled) or all floats (scaled), got "
            f"{sorted({str(array.dtype) for array in given})}"
        )
    whole = wanted.lifted and dtype.kind in "iu"
    if whole:
        dtype = integer_dtype(dtype)
    x: Array | None = None if coeffs[0] is None else coeffs[0].astype(dtype, copy=False)
    last = len(coeffs) - 1
    for number, details in enumerate(coeffs[1:], 1):
        bands: dict[str, Array | None] = {
            key: None if band is None else band.astype(dtype, copy=False) for key, band in details.items()
        }
        if x is None and all(band is None for band in bands.values()):
            continue
        low = wanted.keys[0]
        fitting = _partition if wanted.lifted else _alike
        lengths, approximation = fitting(wanted, x, bands, number)
        bands = {low: approximation, **{key: bands.get(key) for key in wanted.keys[1:]}}
        if number == last and shape is not None:
            lengths = _wanted_shape(wanted, lengths, shape)
        one = level(wanted, lengths, dtype)
        target = None
        if number == last and out is not None:
            target = check_out(out, lengths, dtype, given, "out")
        x = one.backward(bands, target)
    if x is None:
        raise ArgumentError("At least one coefficient parameter must be specified.")
    if last == 0:
        if shape is not None and shape != x.shape:
            raise ArgumentError(f"without details the shape is that of the approximation, {x.shape}")
        if out is None:
            return np.array(x)
        check_out(out, x.shape, dtype, given, "out")[...] = x
        return out
    if whole and not surely_fit(wanted, coeffs, x):
        if dtype.itemsize == 8:
            check_way_back(wanted, x, coeffs)
        else:
            x[...] = _narrowed(_recomposed_wider(wanted, coeffs, dtype), dtype)
    return x


def integer_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The integers that coefficients of these are lifted in."""
    signed = dtype.itemsize if dtype.kind == "i" else min(8, 2 * dtype.itemsize)
    return np.dtype(f"i{max(2, signed)}")


def surely_fit(wanted: Recipe, coeffs: Sequence[Any], x: Array) -> bool:
    """Whether integers of the dtype of ``x`` hold whatever such coefficients can lead to on the way back."""
    bands = [coeffs[0], *(details[key] for details in coeffs[1:] for key in wanted.keys[1:])]
    weights, error = _gains_back(wanted, x.shape, len(coeffs) - 1, 8 * x.itemsize)
    return sum(map(mul, weights, cpu.largest_of(bands)), error) <= 1


@lru_cache(maxsize=512)
def _gains_back(wanted: Recipe, shape: Shape, levels: int, bits: int) -> tuple[list[float], float]:
    lengths = tuple(shape[axis] for axis in wanted.axes)
    weights, error = gains_back(wanted.wavelets, wanted.modes, lengths, levels, bits)
    return weights.tolist(), error


def _recomposed_wider(wanted: Recipe, coeffs: Sequence[Any], dtype: np.dtype[Any]) -> Array:
    """The samples in integers twice as wide as ``dtype``."""
    wider = np.dtype(f"i{2 * dtype.itemsize}")
    details = [{key: band.astype(wider) for key, band in part.items()} for part in coeffs[1:]]
    return recompose(wanted, [coeffs[0].astype(wider), *details])


def _narrowed(x: Array, dtype: np.dtype[Any]) -> Array:
    """Samples in a dtype that holds them, or an error."""
    least, most, info = int(x.min()), int(x.max()), np.iinfo(dtype)
    if least < info.min or most > info.max:
        raise ArgumentError(
            f"these {dtype} coefficients lead to samples from {least} to {most}, which {dtype} does not hold;"
            f" pass coefficients of {x.dtype}"
        )
    return x.astype(dtype)


def check_way_back(wanted: Recipe, x: Array, coeffs: Sequence[Any]) -> None:
    """An error unless these samples, transformed, give just these coefficients: then nothing was cut off."""
    levels = len(coeffs) - 1
    if grown(wanted, x.shape, levels).fits(cpu.largest(x), 8 * x.itemsize):
        again = decompose(wanted, x, levels)
        same = [np.array_equal(again[0], coeffs[0])]
        for mine, given in zip(again[1:], coeffs[1:], strict=True):
            same += [np.array_equal(mine[key], band) for key, band in given.items()]
        if all(same):
            return
    raise ArgumentError(
        f"these coefficients lead to numbers that {x.dtype} does not hold; scale them down before the inverse"
    )


@lru_cache(maxsize=512)
def grown(wanted: Recipe, shape: Shape, levels: int) -> Growth:
    """How large numbers get along lines of these lengths."""
    return growth(wanted.wavelets, wanted.modes, tuple(shape[axis] for axis in wanted.axes), levels)


class _Shaped:
    """What the checks of coefficients look at, without the numbers."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.ndim = shape, len(shape)

    def __getitem__(self, cut: tuple[slice, ...]) -> _Shaped:
        return _Shaped(tuple(len(range(*part.indices(n))) for part, n in zip(cut, self.shape, strict=True)))


def recompose_shapes(
    wanted: Recipe, sizes: Sequence[Any], shape: Shape | None
) -> tuple[int, Shape | None, tuple[Shape, ...]]:
    """From the shapes of coefficients, what :func:`recompose` would make of each level.

    Returns how many levels have coefficients at all, the shape that the approximation is cut to, and the
    shapes of the samples of each level, finest first.
    """
    x: Any = None if sizes[0] is None else _Shaped(sizes[0])
    cut: Shape | None = None
    found: list[Shape] = []
    last = len(sizes) - 1
    for number, details in enumerate(sizes[1:], 1):
        bands: dict[str, Any] = {key: None if s is None else _Shaped(s) for key, s in details.items()}
        if x is None and all(band is None for band in bands.values()):
            continue
        fitting = _partition if wanted.lifted else _alike
        lengths, approximation = fitting(wanted, x, bands, number)
        if not found:
            cut = None if approximation is None else approximation.shape
        elif approximation is not None:
            found[-1] = approximation.shape
        if number == last and shape is not None:
            lengths = _wanted_shape(wanted, lengths, shape)
        found.append(lengths)
        x = _Shaped(lengths)
    if x is None:
        raise ArgumentError("At least one coefficient parameter must be specified.")
    if last == 0 and shape is not None and shape != x.shape:
        raise ArgumentError(f"without details the shape is that of the approximation, {x.shape}")
    return len(found), cut, tuple(reversed(found))


def _alike(
    wanted: Recipe, x: Array | None, bands: Mapping[str, Array | None], number: int
) -> tuple[Shape, Array | None]:
    """The shape that bands of one shape make, and the approximation cut to it.

    An approximation that stems from an odd length comes back one sample too long.
    """
    shapes = {band.shape for band in bands.values() if band is not None}
    if len(shapes) > 1:
        found = {key: band.shape for key, band in bands.items() if band is not None}
        raise ArgumentError(f"Coefficients arrays must have the same shape, got {found}")
    if shapes:
        shape = shapes.pop()
        if x is not None and x.shape != shape:
            surplus = [have - want for have, want in zip(x.shape, shape, strict=False)]
            if len(shape) != x.ndim or any(
                k not in (0, 1) or (k and axis not in wanted.axes) for axis, k in enumerate(surplus)
            ):
                raise ArgumentError(
                    f"incompatible coefficient array sizes: approximation {x.shape} and details {shape} of"
                    f" level {number}"
                )
            x = x[tuple(slice(n) for n in shape)]
    else:
        assert x is not None
        shape = x.shape
    lengths = list(shape)
    for axis, wavelet, mode in zip(wanted.axes, wanted.wavelets, wanted.modes, strict=True):
        count = shape[axis]
        lengths[axis] = signal_length(count, wavelet.rec_len, mode)
        if count < 1 or (mode != "periodization" and 2 * count < wavelet.rec_len):
            raise ArgumentError(
                f"Invalid coefficient arrays length: {count} along axis {axis} is too short for the"
                f" {wavelet.rec_len} taps of {wavelet.name!r} in mode {mode!r}"
            )
    return tuple(lengths), x


def _wanted_shape(wanted: Recipe, lengths: Shape, shape: Shape) -> Shape:
    """The shape asked for, if it is one that has these coefficients."""
    least = [n - (axis in wanted.axes and not wanted.lifted) for axis, n in enumerate(lengths)]
    if len(shape) != len(lengths) or not all(
        a <= n <= b for a, n, b in zip(least, shape, lengths, strict=True)
    ):
        raise ArgumentError(
            f"shape {shape} does not have these coefficients; from {tuple(least)} to {lengths} do"
        )
    return shape


def _partition(
    wanted: Recipe, x: Array | None, bands: Mapping[str, Array | None], number: int
) -> tuple[Shape, Array | None]:
    """The shape that the bands of an LWT make up: along each axis as many high as low, or one fewer."""
    missing = [key for key, band in bands.items() if band is None]
    if x is None or missing:
        raise ArgumentError(
            f"an LWT needs all its coefficients, level {number} has none for"
            f" {'the approximation' if x is None else missing}"
        )
    found = {wanted.keys[0]: x.shape, **{key: band.shape for key, band in bands.items() if band is not None}}
    high = found.get(wanted.keys[-1], ())
    fits = len(high) == x.ndim and sorted(found) == sorted(wanted.keys)
    lengths = list(x.shape)
    if fits:
        for axis in wanted.axes:
            fits &= x.shape[axis] - high[axis] in (0, 1)
            lengths[axis] += high[axis]
        for key, shape in found.items():
            expected = list(x.shape)
            for letter, axis in zip(key, wanted.axes, strict=True):
                expected[axis] = high[axis] if letter == "d" else x.shape[axis]
            fits &= shape == tuple(expected)
    if not fits:
        raise ArgumentError(f"coefficients of level {number} do not make up one array: {found}")
    return tuple(lengths), x


def deepest_lwt(wanted: Recipe, shape: Shape) -> int:
    """The level at which the longest line of an LWT is a single number."""
    return max(1, *(math.ceil(math.log2(max(1, shape[axis]))) for axis in wanted.axes))
