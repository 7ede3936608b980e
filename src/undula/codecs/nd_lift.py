"""The format ``nd_lift`` 0.1: reversible lifting along the axes of a chunk of integers.

The format is that of nd-image-codecs (Fideus Labs). Each transform of a list replaces the samples along one
axis by an approximation and details, in wider integers: 32 bits, or 64 for samples of 64 bits. A transform
starts from what the one before it left. For ``lift53``, one level is ::

    d[i] = x[2i+1] - ⌊(x[2i] + x[2i+2] + 1) / 2⌋
    s[i] = x[2i]   + ⌊(d[i-1] + d[i] + 2) / 4⌋

with lines mirrored at their ends. The rounding of ``d`` differs from that of JPEG 2000 and of ``cdf53``. This
module checks configurations and ranges; :mod:`..engines.cpu.coding` computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..engines.cpu.coding import CODING_KINDS, CodingStep, decode, encode
from ..errors import ArgumentError, ArgumentTypeError, UnknownAxisError, UnknownNameError

__all__ = ["NAME", "VERSION", "AxisLifting", "NdLift", "coefficient_dtype"]

Array = NDArray[Any]

NAME = "nd_lift"
VERSION = "0.1"
LARGEST = {"dimension": 2**63 - 1, "levels": 2**8 - 1, "group": 2**32 - 1}  # members of a transform


@dataclass(frozen=True)
class AxisLifting:
    """One transform along one axis of a chunk.

    Parameters
    ----------
    dimension : int
        Axis of the chunk, from 0.
    kind : {"delta", "haar", "lift53"}
        Differences, the S transform, or the reversible 5/3 transform.
    levels : int, default 0
        How often the approximation is decomposed, at least once and at most 255 times; ``delta`` ignores it.
    axis : str, default ""
        Name of the axis, for readers of the configuration.
    group : int, default 0
        How many samples along the axis are transformed together; 0 for all.

    Examples
    --------
    >>> AxisLifting(0, "lift53", levels=2).configuration()
    {'axis': '', 'dimension': 0, 'kind': 'lift53', 'levels': 2, 'group': 0}
    """

    dimension: int
    kind: str
    levels: int = 0
    axis: str = ""
    group: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in CODING_KINDS:
            raise UnknownNameError("kind of nd_lift transform", self.kind, CODING_KINDS)
        for name, largest in LARGEST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise ArgumentTypeError(f"nd_lift: {name} must be an integer, got {value!r}")
            if not 0 <= value <= largest:
                raise ArgumentError(f"nd_lift: {name} must be from 0 to {largest}, got {value}")
            object.__setattr__(self, name, int(value))
        if self.kind != "delta" and self.levels == 0:
            raise ArgumentError(f"nd_lift: {self.kind} needs levels from 1 on, got 0")
        if not isinstance(self.axis, str):
            raise ArgumentTypeError(f"nd_lift: axis must be the name of an axis, got {self.axis!r}")

    @classmethod
    def parse(cls, members: Any) -> AxisLifting:
        """Return a transform from its JSON object.

        Parameters
        ----------
        members : dict
            What :meth:`configuration` returns.

        Returns
        -------
        AxisLifting
        """
        if isinstance(members, AxisLifting):
            return members
        if not isinstance(members, Mapping):
            raise ArgumentTypeError(
                f"nd_lift: a transform is an object with 'dimension' and 'kind', got {members!r}"
            )
        known = [field.name for field in fields(cls)]
        for name in members:
            if name not in known:
                raise UnknownNameError("member of nd_lift transform", name, known)
        for name in ("dimension", "kind"):
            if name not in members:
                raise ArgumentError(f"nd_lift: a transform needs {name!r}, got {dict(members)!r}")
        return cls(**members)

    def configuration(self) -> dict[str, Any]:
        """Return the JSON object."""
        members = asdict(self)
        return {name: members[name] for name in ("axis", "dimension", "kind", "levels", "group")}

    def step(self, shape: Sequence[int]) -> CodingStep | None:
        """Return what is computed for chunks of a shape; None for an axis of one sample.

        Parameters
        ----------
        shape : sequence of int
            Shape of a chunk.

        Returns
        -------
        CodingStep or None
        """
        length = shape[self.dimension]
        group = min(self.group or length, length)
        return None if length < 2 else CodingStep(self.kind, self.dimension, self.levels, group)


@dataclass(frozen=True)
class NdLift:
    """The format ``nd_lift``: transforms of chunks of integers, and back bit for bit.

    Parameters
    ----------
    transforms : sequence of AxisLifting or of mappings
        In the order of encoding.
    version : str, default "0.1"
        Of the format.

    Examples
    --------
    >>> lift = NdLift([{"dimension": 0, "kind": "lift53", "levels": 1}])
    >>> coefficients = lift.encode(np.array([3, 4, 6, 9], np.uint8))
    >>> coefficients.dtype, coefficients.tolist()
    (dtype('int32'), [3, 7, -1, 3])
    >>> lift.decode(coefficients, np.uint8)
    array([3, 4, 6, 9], dtype=uint8)
    """

    transforms: tuple[AxisLifting, ...] = ()
    version: str = VERSION

    def __init__(self, transforms: Iterable[Any] = (), version: str = VERSION) -> None:
        if not isinstance(version, str):
            raise ArgumentTypeError(f"nd_lift: version must be a text such as {VERSION!r}, got {version!r}")
        if version.split(".")[:2] != VERSION.split("."):
            raise ArgumentError(f"nd_lift: version {version!r} is unknown; this is version {VERSION!r}")
        if isinstance(transforms, (str, Mapping)) or not isinstance(transforms, Iterable):
            raise ArgumentTypeError(f"nd_lift: transforms must be a list, got {transforms!r}")
        object.__setattr__(self, "version", version)
        object.__setattr__(self, "transforms", tuple(map(AxisLifting.parse, transforms)))

    @classmethod
    def parse(cls, configuration: Any) -> NdLift:
        """Return the transforms of a stored configuration, which names its version.

        Parameters
        ----------
        configuration : dict
            What :meth:`configuration` returns.

        Returns
        -------
        NdLift
        """
        if not isinstance(configuration, Mapping):
            raise ArgumentTypeError(f"nd_lift: a configuration is an object, got {configuration!r}")
        for name in configuration:
            if name not in ("version", "transforms"):
                raise UnknownNameError("member of nd_lift configuration", name, ["version", "transforms"])
        for name in ("version", "transforms"):
            if name not in configuration:
                raise ArgumentError(f"nd_lift: the configuration needs {name!r}, got {dict(configuration)!r}")
        return cls(configuration["transforms"], configuration["version"])

    def configuration(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "version": self.version,
            "transforms": [transform.configuration() for transform in self.transforms],
        }

    def check(self, dimensions: int, dtype: DTypeLike) -> None:
        """Raise an error unless chunks of this many dimensions and this dtype can be transformed.

        Parameters
        ----------
        dimensions : int
            Number of axes of the chunks.
        dtype : dtype_like
            Dtype of the samples.
        """
        coefficient_dtype(dtype)
        for transform in self.transforms:
            if transform.dimension >= dimensions:
                raise UnknownAxisError(
                    f"nd_lift: dimension {transform.dimension} is out of range for chunks of {dimensions}"
                    " dimension(s)"
                )

    def encode(self, x: Array) -> Array:
        """Return the coefficients of a chunk: int32, or int64 for samples of 64 bits.

        Samples that could lead to coefficients beyond these integers are an error.

        Parameters
        ----------
        x : array
            Integer samples of a chunk.

        Returns
        -------
        array
            Coefficients, in the shape of the chunk.
        """
        self.check(x.ndim, x.dtype)
        plane = coefficient_dtype(x.dtype)
        samples = np.require(x, x.dtype.newbyteorder("="), ["C", "A"]).reshape(x.shape)
        steps = self._steps(x.shape)
        if not x.size:
            return np.empty(x.shape, plane)
        limits = np.iinfo(samples.dtype)
        # Samples are looked at only if the largest ones of their dtype could lead to too much.
        if self._overflowing(x.shape, int(limits.min), int(limits.max), plane) is not None:
            low, high = int(samples.min()), int(samples.max())
            problem = self._overflowing(x.shape, low, high, plane)
            if problem is not None:
                raise ArgumentError(
                    f"nd_lift: {problem} of samples from {low} to {high} could overflow {plane};"
                    " use fewer levels, or store the array without nd_lift"
                )
        return encode(samples, plane, steps) if steps else samples.astype(plane)

    def decode(self, coefficients: Array, dtype: DTypeLike) -> Array:
        """Return the samples of a dtype that lead to these coefficients.

        Parameters
        ----------
        coefficients : array
            What :meth:`encode` returned.
        dtype : dtype_like
            Dtype of the samples.

        Returns
        -------
        array
            Samples, in the shape of the chunk.
        """
        sample_dtype = np.dtype(dtype)
        self.check(coefficients.ndim, sample_dtype)
        plane = coefficient_dtype(sample_dtype)
        if coefficients.dtype.newbyteorder("=") != plane:
            raise ArgumentTypeError(
                f"nd_lift: coefficients of {sample_dtype} samples are {plane}, got {coefficients.dtype}"
            )
        x = np.require(coefficients, plane, ["C", "A"]).reshape(coefficients.shape)
        native = sample_dtype.newbyteorder("=")
        steps = self._steps(x.shape)
        if not x.size:
            return np.empty(x.shape, sample_dtype)
        if steps:
            samples, fits = decode(x, native, steps)
        else:
            samples = x.astype(native)
            fits = bool((samples == x).all())
        if not fits:
            raise ArgumentError(
                f"nd_lift: decoded samples do not fit {sample_dtype}: the chunk is damaged, or was not"
                " written with this configuration"
            )
        return samples.astype(sample_dtype, copy=False)

    def _steps(self, shape: Sequence[int]) -> list[CodingStep]:
        steps = (transform.step(shape) for transform in self.transforms)
        return [step for step in steps if step is not None]

    def _overflowing(self, shape: Sequence[int], low: int, high: int, plane: np.dtype[Any]) -> str | None:
        """Return the transform that could lead to too large numbers, in words; None if there is none.

        The range of samples is followed through all transforms and the sums within them, as the format
        demands: which chunks are refused is part of it.
        """
        info = np.iinfo(plane)
        least, most = int(info.min), int(info.max)
        if low < least or high > most:
            return "conversion"
        for transform in self.transforms:
            step = transform.step(shape)
            if step is None:
                continue
            sums, low, high = _grown(step, low, high)
            if min(low, *sums) < least or max(high, *sums) > most:
                times = "" if step.kind == "delta" else f"{step.levels} level(s) of "
                return f"{times}{step.kind} along dimension {step.axis}"
        return None


def coefficient_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the integers that coefficients of samples are kept in.

    Examples
    --------
    >>> coefficient_dtype(np.uint16), coefficient_dtype(np.int64)
    (dtype('int32'), dtype('int64'))
    """
    dtype = np.dtype(dtype)
    if dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"nd_lift: integers of 8 to 64 bits are needed, got {dtype}; round floats first"
        )
    return np.dtype(np.int32 if dtype.itemsize <= 4 else np.int64)


def _grown(step: CodingStep, low: int, high: int) -> tuple[list[int], int, int]:
    """Return the ends of the ranges of all sums within a step, and the range of what it leaves."""
    sums = [low, high]
    band_low, band_high = low, high  # the approximation
    levels = 1 if step.kind == "delta" else min(step.levels, (step.group - 1).bit_length())
    for _ in range(levels):
        width = band_high - band_low  # Details are from -width to width.
        low, high = min(low, -width), max(high, width)
        if step.kind == "haar":
            band_low, band_high = band_low + (-width >> 1), band_high + (width >> 1)
        elif step.kind == "lift53":
            sums += [2 * band_low + 1, 2 * band_high + 1, 2 - 2 * width, 2 * width + 2]
            band_low += (2 - 2 * width) >> 2
            band_high += (2 * width + 2) >> 2
        low, high = min(low, band_low), max(high, band_high)
    return sums, low, high
