"""What a transform is, whatever computes it: a :class:`TransformSpec`, and the shapes of its bands.

A :class:`BandTree` is inferred from the shape of samples or from the shapes of coefficients, and knows the
shapes of all bands. How bands are nested is known by :mod:`undula.lowering.nesting`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..arrays import ArrayView
from ..errors import ArgumentError, ArgumentTypeError
from ..wavelets import Wavelet, as_wavelet
from .axis import AxisOp
from .axis_arguments import Axes, checked_axes, per_axis
from .borders import (
    LWT_MODES,
    MODES,
    band_lengths,
    check_mode,
    max_level,
    signal_length,
    undecimated_length,
)
from .choose import LiftingLimits, axis_op
from .nesting import band_keys, keyed_bands

__all__ = [
    "MAX_LEVEL",
    "MAX_STATIONARY_LEVEL",
    "BandTree",
    "LevelOperators",
    "Operators",
    "Task",
    "TransformSpec",
    "check_extension",
    "checked_level",
    "exact_types",
    "is_exact_key",
    "stationary_spec",
    "transform_spec",
    "undecimated_spec",
]

Shape = tuple[int, ...]
MAX_LEVEL = 64  # No array is large enough for more levels.
MAX_STATIONARY_LEVEL = 40  # Distances of taps stay far below the largest integer.
MAX_ADDED_COEFFICIENTS = 2**24  # at both ends of a line, by a stationary transform
NO_COEFFICIENTS = "At least one coefficient parameter must be specified."


class Task(NamedTuple):
    """An axis, and the operator along it."""

    axis: int
    op: AxisOp


Operators = tuple[Task, ...]


class LevelOperators(NamedTuple):
    """The shape of the samples of a level, and the operators along its axes."""

    shape: Shape
    operators: Operators


@dataclass(frozen=True)
class TransformSpec:
    """A transform: its axes, the wavelet along each of them, and how lines go on beyond their ends.

    Parameters
    ----------
    family : {"dwt", "lwt", "swt"}
        The DWT; the LWT, which has as many coefficients as samples; or the undecimated DWT.
    axes : tuple of int
        Axes that are transformed, from 0.
    wavelets : tuple of Wavelet
        The wavelet of each axis.
    modes : tuple of str
        The boundary mode of each axis.
    dilation : int, default 1
        Distance of the taps of an undecimated transform at its first level. It doubles from level to level.
    gain : float, default 1.0
        Factor of the filters of an undecimated transform along each axis.
    causal : bool, default False
        Whether coefficients of an undecimated transform of periods read samples up to their own place only.
    dual : bool, default False
        Whether this is the transform of adjoints: forward, the adjoint of the inverse that the other
        parameters describe, and inverse, the adjoint of the forward transform.
    """

    family: str
    axes: tuple[int, ...]
    wavelets: tuple[Wavelet, ...]
    modes: tuple[str, ...]
    dilation: int = 1
    gain: float = 1.0
    causal: bool = False
    dual: bool = False

    @cached_property
    def _hash(self) -> int:
        kind = self.family, self.dilation, self.gain, self.causal, self.dual
        return hash((self.axes, self.wavelets, self.modes, *kind))

    def __hash__(self) -> int:
        """Return the hash, which is computed once: executables are looked up by it."""
        return self._hash

    @property
    def lifted(self) -> bool:
        """Whether this is the LWT."""
        return self.family == "lwt"

    def adjoint(self) -> TransformSpec:
        """Return the transform whose inverse is the adjoint of this one, forward and inverse exchanged."""
        return replace(self, dual=not self.dual)

    def at_level(self, level: int) -> TransformSpec:
        """Return the transform of one level, counted from 0 for the finest."""
        return replace(self, dilation=self.dilation << level) if self.family == "swt" and level else self

    @cached_property
    def distinct(self) -> bool:
        """Whether there are axes, and none is transformed twice; engines need this."""
        return len(set(self.axes)) == len(self.axes) > 0

    @cached_property
    def keys(self) -> list[str]:
        """The keys of the bands of one level, that of the approximation first."""
        return band_keys(len(self.axes))

    def transposed(self, order: Sequence[int]) -> TransformSpec:
        """Return the same transform for arrays whose axes are in another order."""
        return replace(self, axes=tuple(order.index(axis) for axis in self.axes))

    def counts(self, axis: int, length: int) -> tuple[int, int]:
        """Return the number of low and of high coefficients of a line along ``axes[axis]``, at one level."""
        wavelet, mode = self.wavelets[axis], self.modes[axis]
        if self.family == "swt":
            count = undecimated_length(length, wavelet.dec_len, mode, self.dilation)
            return count, count
        return band_lengths(length, wavelet.dec_len, mode, self.lifted)

    def band_shapes(self, shape: Shape) -> dict[str, Shape]:
        """Return the shapes of the bands of one level, by key."""
        counts = [self.counts(k, shape[axis]) for k, axis in enumerate(self.axes)]
        shapes = {}
        for key in self.keys:
            band = list(shape)
            for letter, axis, count in zip(key, self.axes, counts, strict=True):
                band[axis] = count[letter == "d"]
            shapes[key] = tuple(band)
        return shapes

    def operators(self, shape: Shape, dtype: np.dtype[Any], limits: LiftingLimits) -> Operators:
        """Return the operators along the axes, for samples of this shape.

        Parameters
        ----------
        shape : tuple of int
            Shape of the samples.
        dtype : dtype
            The dtype that the transform is computed in.
        limits : LiftingLimits
            What the engine can lift.
        """
        return _operators(self, tuple(shape[axis] for axis in self.axes), dtype, limits)


@lru_cache(maxsize=1024)
def _operators(spec: TransformSpec, lengths: Shape, dtype: np.dtype[Any], limits: LiftingLimits) -> Operators:
    if spec.dual:
        tasks = _operators(replace(spec, dual=False), lengths, dtype, limits)
        return tuple(Task(axis, op.inverse().adjoint()) for axis, op in tasks)
    along = zip(spec.axes, lengths, spec.wavelets, spec.modes, strict=True)
    if spec.family == "swt":
        undecimated = []
        for axis, n, wavelet, mode in along:
            dilation = spec.dilation
            if mode == "periodization":  # On a circle of n places, distances count up to n.
                dilation = (dilation - 1) % max(1, n) + 1
            op = AxisOp(wavelet, mode, n, "swt", dilation=dilation, gain=spec.gain, causal=spec.causal)
            undecimated.append(Task(axis, op))
        return tuple(undecimated)
    return tuple(
        Task(axis, axis_op(wavelet, mode, n, spec.lifted, dtype, limits)) for axis, n, wavelet, mode in along
    )


@lru_cache(maxsize=512)
def _spec(ndim: int, wavelet: Any, mode: Any, axes: Any, lifted: bool, distinct: bool) -> TransformSpec:
    numbers = checked_axes(axes, ndim, distinct)
    known = LWT_MODES if lifted else MODES
    wavelets = [as_wavelet(w) for w in per_axis(wavelet, len(numbers), "wavelet")]
    modes = [check_mode(m, known) for m in per_axis(mode, len(numbers), "mode")]
    return TransformSpec("lwt" if lifted else "dwt", tuple(numbers), tuple(wavelets), tuple(modes))


def transform_spec(
    ndim: int, wavelet: Any, mode: Any, axes: Axes, lifted: bool = False, distinct: bool = True
) -> TransformSpec:
    """Return the transform that a caller asks for, or raise an error that says what is wrong with it.

    Axes that are repeated, or none at all, are an error if they have to be ``distinct``.
    """
    # Sequences become tuples, which can be looked up the next time.
    given = [tuple(v) if isinstance(v, (list, np.ndarray)) else v for v in (wavelet, mode, axes)]
    make = _spec if is_exact_key(*given) else _spec.__wrapped__
    return make(ndim, *given, lifted, distinct)


def undecimated_spec(
    ndim: int,
    wavelet: Any,
    mode: Any,
    axes: Axes,
    dilation: int = 1,
    gain: float = 1.0,
    causal: bool = False,
) -> TransformSpec:
    """Return an undecimated transform; the arguments are those of :func:`transform_spec` and of the class."""
    spec = transform_spec(ndim, wavelet, mode, axes)
    return replace(spec, family="swt", dilation=dilation, gain=gain, causal=causal)


def stationary_spec(
    ndim: int, wavelet: Any, mode: Any, axes: Axes, start_level: Any, norm: bool
) -> TransformSpec:
    """Return a stationary transform from a level on, whose filters are divided by √2 if ``norm``."""
    if not isinstance(start_level, (int, np.integer)) or isinstance(start_level, bool):
        raise ArgumentTypeError(f"start_level must be an integer, got {start_level!r}")
    if not 0 <= start_level <= MAX_STATIONARY_LEVEL:
        raise ArgumentError(f"start_level must be from 0 to {MAX_STATIONARY_LEVEL}, got {start_level}")
    gain = 1 / math.sqrt(2) if norm else 1.0
    return undecimated_spec(ndim, wavelet, mode, axes, 1 << int(start_level), gain)


# Values of these types mean the same wherever they are equal.
_EXACT_TYPES = frozenset({str, np.str_, int, np.int64, Wavelet, type(None)})


def check_extension(spec: TransformSpec, levels: int) -> None:
    """Raise an error if the bands of a stationary transform would be far longer than any line."""
    for wavelet, mode in zip(spec.wavelets, spec.modes, strict=True):
        added = (wavelet.dec_len - 1) * spec.dilation * (2**levels - 1)
        if mode != "periodization" and added > MAX_ADDED_COEFFICIENTS:
            raise ArgumentError(
                f"{levels} level(s) of {wavelet.name!r} in mode {mode!r} would add {added:,} coefficients to"
                f" each line, and {MAX_ADDED_COEFFICIENTS:,} are the most; use fewer levels, or mode"
                " 'periodization'"
            )


def exact_types(argument: Any) -> Any:
    """Return the type of an argument, or the types of the parts of a tuple.

    They tell apart keys of caches that compare equal, as True and 1.0 are equal to 1.
    """
    return tuple(map(type, argument)) if type(argument) is tuple else type(argument)


def is_exact_key(*arguments: Any) -> bool:
    """Return whether a cache may keep arguments: none could compare equal to one of another type."""
    types = map(exact_types, arguments)
    return all(_EXACT_TYPES.issuperset(t if isinstance(t, tuple) else (t,)) for t in types)


@dataclass(frozen=True)
class BandTree:
    """The shapes of all levels of a transform.

    Parameters
    ----------
    spec : TransformSpec
        The transform.
    sample_shapes : tuple of tuple of int
        Shapes of the samples of each level, finest first; the samples of the next level are the
        approximation of this one.
    """

    spec: TransformSpec
    sample_shapes: tuple[Shape, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.spec, self.sample_shapes))

    def __hash__(self) -> int:
        """Return the hash, which is computed once: executables are looked up by it."""
        return self._hash

    @staticmethod
    def of_samples(spec: TransformSpec, shape: Shape, levels: int) -> BandTree:
        """Return the tree of ``levels`` levels for samples of this shape."""
        return _tree_of_samples(spec, shape, levels)

    @staticmethod
    def of_bands(
        spec: TransformSpec, shapes: Sequence[Any], shape: Shape | None = None
    ) -> tuple[BandTree, Shape | None]:
        """Return the tree that coefficients come from, and the shape of the approximation in it.

        Parameters
        ----------
        spec : TransformSpec
            The transform.
        shapes : list
            Shapes of keyed coefficients, None for zeros. Levels without any coefficients are left out.
        shape : tuple of int, optional
            Shape of the samples, needed for odd lengths.

        Returns
        -------
        tree : BandTree
            The tree.
        approximation : tuple of int or None
            Shape to which the approximation is cut: one that stems from an odd length may have one sample
            too many along an axis.
        """
        low, cut = shapes[0], shapes[0]
        samples: list[Shape] = []
        infer = _lwt_shapes if spec.lifted else _dwt_shapes
        for number, details in enumerate(shapes[1:], 1):
            level = len(shapes) - 1 - number
            if all(band is None for band in details.values()):
                if low is None:
                    continue
                if shape is not None and spec.family == "dwt":
                    low = _without_surplus(spec, low, shape, level)
            lengths, low = infer(spec.at_level(level), low, details, number)
            if not samples:
                cut = low
            elif low is not None:
                samples[-1] = low
            samples.append(lengths)
            low = lengths
        if low is None:
            raise ArgumentError(NO_COEFFICIENTS)
        if shape is not None and len(shapes) > 1:
            samples[-1] = _checked_shape(spec, samples[-1], shape)
        elif shape is not None and shape != low:
            raise ArgumentError(f"without details the shape is that of the approximation, {low}")
        return BandTree(spec, tuple(reversed(samples))), cut

    @property
    def levels(self) -> int:
        """The number of levels."""
        return len(self.sample_shapes)

    @cached_property
    def detail_shapes(self) -> list[dict[str, Shape]]:
        """The shapes of the details of each level by key, coarsest first."""
        keys = self.spec.keys[1:]
        numbered = reversed(list(enumerate(self.sample_shapes)))
        shapes = [self.spec.at_level(level).band_shapes(shape) for level, shape in numbered]
        return [{key: bands[key] for key in keys} for bands in shapes]

    @cached_property
    def approximation_shape(self) -> Shape:
        """The shape of the coarsest approximation."""
        return self.spec.at_level(self.levels - 1).band_shapes(self.sample_shapes[-1])[self.spec.keys[0]]

    @property
    def shapes(self) -> list[Any]:
        """The shapes of keyed coefficients: the approximation, then details by key, coarsest level first."""
        return [self.approximation_shape, *self.detail_shapes]

    @cached_property
    def flat_shapes(self) -> list[Shape]:
        """The shapes of all bands in flat order."""
        return [self.approximation_shape, *(shape for part in self.detail_shapes for shape in part.values())]

    def contiguous_views(self, dtype: str) -> list[ArrayView]:
        """Return views of the samples, in buffer 0, and of all bands in flat order, as arrays in C order."""
        shapes = self.sample_shapes[0], *self.flat_shapes
        return [ArrayView.contiguous(number, shape, dtype) for number, shape in enumerate(shapes)]

    def by_key(self, flat: Sequence[Any]) -> list[Any]:
        """Return bands in flat order as keyed coefficients."""
        return keyed_bands(flat, self.spec.keys[1:])

    def operators(self, dtype: np.dtype[Any], limits: LiftingLimits) -> list[LevelOperators]:
        """Return the operators of each level, finest first."""
        return [
            LevelOperators(shape, self.spec.at_level(level).operators(shape, dtype, limits))
            for level, shape in enumerate(self.sample_shapes)
        ]


@lru_cache(maxsize=512)
def _tree_of_samples(spec: TransformSpec, shape: Shape, levels: int) -> BandTree:
    shapes = []
    for level in range(levels):
        shapes.append(shape)
        shape = spec.at_level(level).band_shapes(shape)[spec.keys[0]]
    return BandTree(spec, tuple(shapes))


def _dwt_shapes(
    spec: TransformSpec, low: Shape | None, details: Mapping[str, Shape | None], number: int
) -> tuple[Shape, Shape | None]:
    """Return the shape of the samples that bands come from, and the shape of the approximation among them."""
    shapes = {shape for shape in details.values() if shape is not None}
    if len(shapes) > 1:
        given = {key: shape for key, shape in details.items() if shape is not None}
        raise ArgumentError(f"Coefficients arrays must have the same shape, got {given}")
    if shapes:
        shape = shapes.pop()
        if low is not None and low != shape:
            surplus = [have - want for have, want in zip(low, shape, strict=False)]
            # The inverse of the DWT gives an even number of samples where an odd number was decomposed.
            allowed = (0, 1) if spec.family == "dwt" else (0,)
            if len(shape) != len(low) or any(
                k not in allowed or (k and axis not in spec.axes) for axis, k in enumerate(surplus)
            ):
                raise ArgumentError(
                    f"incompatible coefficient array sizes: approximation {low} and details {shape} of"
                    f" level {number}"
                )
            low = shape
    else:
        assert low is not None
        shape = low
    lengths = list(shape)
    for axis, wavelet, mode in zip(spec.axes, spec.wavelets, spec.modes, strict=True):
        count = shape[axis]
        if spec.family == "swt":
            lengths[axis] = 2 * count - undecimated_length(count, wavelet.rec_len, mode, spec.dilation)
            if lengths[axis] < 1:
                raise ArgumentError(
                    f"Invalid coefficient arrays length: {count} along axis {axis} is too short for the"
                    f" {wavelet.rec_len} taps of {wavelet.name!r}, {spec.dilation} apart, in mode {mode!r}"
                )
            continue
        lengths[axis] = signal_length(count, wavelet.rec_len, mode)
        if count < 1 or (mode != "periodization" and 2 * count < wavelet.rec_len):
            raise ArgumentError(
                f"Invalid coefficient arrays length: {count} along axis {axis} is too short for the"
                f" {wavelet.rec_len} taps of {wavelet.name!r} in mode {mode!r}"
            )
    return tuple(lengths), low


def _without_surplus(spec: TransformSpec, low: Shape, shape: Shape, level: int) -> Shape:
    """Return the shape of an approximation that may have one sample too many, and has no details to tell."""
    lengths = list(low)
    for number, axis in enumerate(spec.axes):
        count = shape[axis]
        for _ in range(level + 1):
            count, _ = spec.counts(number, count)
        lengths[axis] -= lengths[axis] == count + 1
    return tuple(lengths)


def _lwt_shapes(
    spec: TransformSpec, low: Shape | None, details: Mapping[str, Shape | None], number: int
) -> tuple[Shape, Shape | None]:
    """Return the same for an LWT, which has as many high coefficients as low ones, or one fewer."""
    missing = [key for key, shape in details.items() if shape is None]
    if low is None or missing:
        raise ArgumentError(
            f"an LWT needs all its coefficients, level {number} has none for"
            f" {'the approximation' if low is None else missing}"
        )
    shapes = {spec.keys[0]: low, **details}
    high = shapes.get(spec.keys[-1]) or ()
    fits = len(high) == len(low) and sorted(shapes) == sorted(spec.keys)
    lengths = list(low)
    if fits:
        for axis in spec.axes:
            fits &= low[axis] - high[axis] in (0, 1)
            lengths[axis] += high[axis]
        fits &= shapes == spec.band_shapes(tuple(lengths))
    if not fits:
        raise ArgumentError(f"coefficients of level {number} do not make up one array: {shapes}")
    return tuple(lengths), low


def _checked_shape(spec: TransformSpec, lengths: Shape, shape: Shape) -> Shape:
    """Return the shape that the caller asks for, or raise an error unless it has these coefficients."""
    least = [n - (axis in spec.axes and spec.family == "dwt") for axis, n in enumerate(lengths)]
    if len(shape) != len(lengths) or not all(
        a <= n <= b for a, n, b in zip(least, shape, lengths, strict=True)
    ):
        raise ArgumentError(
            f"shape {shape} does not match these coefficients; expected between {tuple(least)} and {lengths}"
        )
    return shape


def deepest_lwt(spec: TransformSpec, shape: Shape) -> int:
    """Return the level at which the longest line of an LWT is a single number."""
    return max(1, *(math.ceil(math.log2(max(1, shape[axis]))) for axis in spec.axes))


def checked_level(
    shape: Sequence[int],
    wavelets: Sequence[Wavelet],
    axes: Sequence[int],
    level: int | None,
    stacklevel: int = 3,
) -> int:
    """Return the level, or the deepest useful one for None, and warn if it is deeper than that."""
    lengths = ((shape[axis], wavelet.dec_len) for axis, wavelet in zip(axes, wavelets, strict=True))
    deepest = min(max_level(*pair) for pair in lengths)
    if level is None:
        return deepest
    if not isinstance(level, (int, np.integer)) or isinstance(level, bool):
        raise ArgumentTypeError(f"level must be an integer or None, got {level!r}")
    if not 0 <= level <= MAX_LEVEL:
        raise ArgumentError(f"level must be from 0 to {MAX_LEVEL}, got {level}")
    if level > deepest:
        warnings.warn(
            f"Level value of {level} is too high for shape {tuple(shape)}: beyond {deepest} all coefficients"
            " will experience boundary effects.",
            UserWarning,
            stacklevel=stacklevel,
        )
    return int(level)
