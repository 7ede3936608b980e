"""Pyramids of OME-Zarr 0.5 from the approximations of a lifting wavelet transform.

Each level halves the image along the axes in space. A sample of level ``l`` is the approximation divided by
the factor by which ``l`` levels multiply a constant image, ``2**(l * axes / 2)`` for all built-in wavelets,
rounded and clipped to the dtype of the image. In samples of the image it is at ``scale * n + translation``,
with ``scale = 2**l`` and ``translation = m * (2**l - 1)``, where ``m`` is the centre of mass of the
low-pass filter: 0 for ``cdf53`` and ``cdf97``, 1/2 for ``haar``.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ..engines.chunked.workers import worker_resources
from ..engines.dispatch import decompose, engine_for
from ..errors import ArgumentError, FileError
from ..functions import lwt
from .blocks import BlockGrid, BlockWindow, StageTransform
from .opening import OME_NAMES, SPACE, SourceArray, open_array, read_window
from .partial import SUFFIX
from .work import to_dtype
from .writing import write_region, writing

__all__ = [
    "ChunkCopyStage",
    "PyramidStage",
    "default_levels",
    "image_attributes",
    "lowpass_moments",
    "multiscales",
    "ome_names",
    "pyramid_axes",
]

Shape = tuple[int, ...]
MIN_LENGTH = 64  # Shorter axes, such as few slices of a stack, are not halved by default.
CHUNKS_AT_ONCE = 16  # Chunks that one task copies.
COARSEST_LENGTH = 256  # Levels are added until the image is no longer than this.
COLORS = ("FF0000", "00FF00", "0000FF", "FF00FF", "00FFFF", "FFFF00")  # of channels, for viewers
TYPES = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}


class Workspace(threading.local):
    """Memory of a thread that blocks use one after the other.

    Blocks at the borders differ in size, so memory that is allocated for each of them would be scattered.
    """

    def __init__(self) -> None:
        self.buffers: dict[str, np.ndarray[Any, Any]] = {}

    def array(self, name: str, shape: Shape, dtype: str) -> np.ndarray[Any, Any]:
        """Return an array that is valid until the next one of this name."""
        size = prod(shape) * np.dtype(dtype).itemsize
        if name not in self.buffers or self.buffers[name].size < size:
            self.buffers[name] = np.empty(size, np.uint8)
        return self.buffers[name][:size].view(dtype).reshape(shape)


WORKSPACE = Workspace()


@dataclass(frozen=True)
class PyramidStage:
    """Levels of a pyramid: a block reads its window, and writes its part of every level.

    Parameters
    ----------
    token : str
        Identifies the run, for arrays that workers keep open.
    source : str
        Location of the samples: the image, or an approximation.
    copy : str or None
        Where to copy the samples.
    levels : tuple of str
        Locations of the levels, finest first.
    low : str or None
        Location of the last approximation as it is, for the next stage.
    details : tuple of tuple of str
        Locations of the details of each level, finest first; empty if they are not stored.
    factors : tuple of float
        What approximations of each level are multiplied with.
    transform : StageTransform
    lengths : tuple of int
        Lengths of blocks.
    dtype, result : str
        Dtypes of approximations and of the image.
    backend : str
    name : str or None
        What errors call the source; None if its samples are those of an earlier stage.
    """

    token: str
    source: str
    copy: str | None
    levels: tuple[str, ...]
    low: str | None
    details: tuple[tuple[str, ...], ...]
    factors: tuple[float, ...]
    transform: StageTransform
    lengths: Shape
    dtype: str
    result: str
    backend: str
    name: str | None

    def __len__(self) -> int:
        return len(self.grid)

    @property
    def grid(self) -> BlockGrid:
        """The blocks."""
        return BlockGrid(self.transform.shape, self.lengths)

    def run(self, number: int) -> int:
        """Write a block of all levels, and return how many samples of the source are NaN or infinite."""
        block = self.grid.block(number)
        window = BlockWindow.of(self.transform, block)
        low = read_window(open_array(self.source, self.token), window.segments)
        if self.copy is not None:
            self._write(self.copy, tuple(slice(*part) for part in block), low[window.samples()])
        non_finite = 0
        if self.name is not None and low.dtype.kind == "f":
            if self.details and not np.isfinite(low).all():
                raise FileError(
                    f"{self.name} has samples that are NaN or infinite, which details cannot restore; replace"
                    " them first, or omit the details"
                )
            inner = low[window.samples()]
            non_finite = inner.size - int(np.count_nonzero(np.isfinite(inner)))
        samples = WORKSPACE.array("samples", low.shape, self.dtype)
        np.copyto(samples, low, casting="unsafe")
        low = samples
        spec, result = self.transform.tree.spec, np.dtype(self.result)
        key = spec.keys[0]
        engine = engine_for([low], self.backend)
        for depth, (location, factor) in enumerate(zip(self.levels, self.factors, strict=True), 1):
            bands = spec.band_shapes(low.shape)
            out: list[Any] = [WORKSPACE.array(f"{key}{depth % 2}", bands.pop(key), self.dtype)]
            out.append({name: WORKSPACE.array(name, shape, self.dtype) for name, shape in bands.items()})
            with worker_resources():
                low, details = decompose(engine, spec, low, 1, out, out)
            region = window.coefficients(depth, key)
            values = low[window.results(depth, key)]
            if depth == len(self.levels) and self.low is not None:
                self._write(self.low, region, values)
            self._write(location, region, to_dtype(values * values.dtype.type(factor), result))
            for name, target in zip(
                spec.keys[1:], self.details[depth - 1] if self.details else (), strict=False
            ):
                band = details[name][window.results(depth, name)]
                self._write(target, window.coefficients(depth, name), band)
        return non_finite

    def _write(self, location: str, region: tuple[slice, ...], values: Any) -> None:
        if values.size:
            write_region(location, self.token, region, values)


@dataclass(frozen=True)
class ChunkCopyStage:
    """Copy the chunks of an array as they are stored, which takes a fraction of the time to encode them.

    Parameters
    ----------
    token : str
        Identifies the run, for arrays that workers keep open.
    source, target : str
        Folders of arrays of Zarr 3 with the same metadata.
    counts : tuple of int
        Chunks along each axis.
    """

    token: str
    source: str
    target: str
    counts: Shape

    def __len__(self) -> int:
        return -(-prod(self.counts) // CHUNKS_AT_ONCE)

    def run(self, number: int) -> None:
        """Copy some chunks; those that are not stored stay so."""
        metadata = open_array(self.source, self.token).metadata
        first = number * CHUNKS_AT_ONCE
        for index in range(first, min(first + CHUNKS_AT_ONCE, prod(self.counts))):
            key = metadata.encode_chunk_key(tuple(map(int, np.unravel_index(index, self.counts))))
            target = Path(self.target, key)
            temporary = target.with_name(f"{target.name}.{uuid4().hex}{SUFFIX}")
            try:
                with writing(self.token):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(Path(self.source, key), temporary)
                    os.replace(temporary, target)
            except FileNotFoundError:
                continue
            except OSError:
                temporary.unlink(missing_ok=True)
                raise


@lru_cache(maxsize=32)
def lowpass_moments(wavelet: str, mode: str) -> tuple[float, float]:
    """Return the factor of constants along one axis, and the centre of mass of the low-pass filter.

    Both are measured in the middle of a line that is longer than any filter.

    Examples
    --------
    >>> factor, centre = lowpass_moments("haar", "symmetric")
    >>> round(factor**2, 6), round(centre, 6)
    (2.0, 0.5)
    """
    length, middle = 1024, 256
    factor = float(lwt(np.ones(length), wavelet, 1, mode)[0][middle])
    ramp = float(lwt(np.arange(length) - 2.0 * middle, wavelet, 1, mode)[0][middle])
    return factor, round(ramp / factor, 9)


def ome_names(source: SourceArray) -> tuple[str, ...]:
    """Return the names of the axes as OME-Zarr has them: ``t``, ``c``, ``z``, ``y``, ``x``, in this order."""
    ndim = len(source.shape)
    if not 2 <= ndim <= 5:
        raise ArgumentError(f"images of OME-Zarr have 2 to 5 axes, got {ndim}")
    names = tuple(name.lower() for name in source.names or ())
    order = [OME_NAMES.find(name) for name in names]
    if names and -1 not in order and order == sorted(set(order)) and names[-2:] == ("y", "x"):
        return names
    return tuple(OME_NAMES[-ndim:] if ndim != 4 else "czyx")


def pyramid_axes(source: SourceArray, names: Sequence[str]) -> tuple[int, ...]:
    """Return the axes that are halved by default: all in space but short ones, and always y and x."""
    return tuple(
        axis
        for axis, (name, length) in enumerate(zip(names, source.shape, strict=True))
        if name in SPACE and (name != "z" or length > MIN_LENGTH)
    )


def default_levels(shape: Shape, axes: Sequence[int]) -> int:
    """Return how many levels make the longest axis no longer than ``COARSEST_LENGTH``.

    Examples
    --------
    >>> default_levels((30, 4000, 4000), (1, 2))
    4
    """
    longest, levels = max(shape[axis] for axis in axes), 0
    while ceil(longest / 2**levels) > COARSEST_LENGTH:
        levels += 1
    return levels


def multiscales(
    name: str,
    names: Sequence[str],
    units: Sequence[str | None],
    scale: Sequence[float],
    axes: Sequence[int],
    levels: int,
    wavelet: str,
    centre: float,
    version: str,
) -> dict[str, Any]:
    """Return the attribute ``ome`` of an image.

    Parameters
    ----------
    name : str
        Name of the image.
    names, units, scale
        Name, unit and distance of samples along each axis.
    axes : sequence of int
        Axes that are halved.
    levels : int
        Levels below the image itself.
    wavelet : str
    centre : float
        Centre of mass of the low-pass filter.
    version : str
        Version of Undula.
    """
    datasets = []
    for level in range(levels + 1):
        factors = [2**level if axis in axes else 1 for axis in range(len(names))]
        sizes = [float(size * factor) for size, factor in zip(scale, factors, strict=True)]
        shifts = [float(size * centre * (factor - 1)) for size, factor in zip(scale, factors, strict=True)]
        steps: list[dict[str, Any]] = [{"type": "scale", "scale": sizes}]
        if any(shifts):
            steps.append({"type": "translation", "translation": shifts})
        datasets.append({"path": str(level), "coordinateTransformations": steps})
    image = {
        "name": name,
        "axes": _described_axes(names, units),
        "datasets": datasets,
        "type": "wavelet approximation",
        "metadata": {
            "description": "Approximations of a lifting wavelet transform, in the range of the image",
            "method": "undula.stores.pyramid",
            "version": version,
            "kwargs": {"wavelet": wavelet, "axes": list(axes)},
        },
    }
    return {"version": "0.5", "multiscales": [image]}


def _described_axes(names: Sequence[str], units: Sequence[str | None]) -> list[dict[str, str]]:
    described = []
    for letter, unit in zip(names, units, strict=True):
        axis = {"name": letter, "type": TYPES[letter]}
        described.append({**axis, "unit": unit} if unit else axis)
    return described


def image_attributes(
    name: str,
    names: Sequence[str],
    units: Sequence[str | None],
    scale: Sequence[float],
    channels: Sequence[str],
    dtype: np.dtype[Any],
) -> dict[str, Any]:
    """Return the attribute ``ome`` of an image with a single level, the array ``0``.

    ``channels`` are the names of channels, which are written with colours and the range of the dtype for
    viewers; empty if there are none. The other arguments are those of :func:`multiscales`.
    """
    scaled = [{"type": "scale", "scale": list(map(float, scale))}]
    datasets = [{"path": "0", "coordinateTransformations": scaled}]
    image = {"name": name, "axes": _described_axes(names, units), "datasets": datasets}
    ome: dict[str, Any] = {"version": "0.5", "multiscales": [image]}
    if channels:
        low, high = (0.0, 1.0) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        window = {"min": float(low), "max": float(high), "start": float(low), "end": float(high)}
        colors = [COLORS[number % len(COLORS)] for number in range(len(channels))]
        if len(channels) == 1:
            colors = ["FFFFFF"]
        ome["omero"] = {
            "channels": [
                {"label": label, "color": color, "active": True, "window": window}
                for label, color in zip(channels, colors, strict=True)
            ]
        }
    return ome
