"""Coefficients in stores: the layout of their group, and the stages that write them and read them back.

The group has an array ``approximation`` and, for each level, a group such as ``level1`` with the arrays of
its details, ``ad``, ``da``, ``dd``; level 1 is the finest. The attribute ``undula`` has all that the
inverse needs: ``{"kind": "coefficients", "wavelet": "cdf97", "mode": "symmetric", "levels": 3, "axes": [0,
1], "shape": …, "dtype": "uint16", …}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..engines.chunked.blocks import ChunkedWindow, ForwardBlock, InverseBlock
from ..errors import FileError
from ..io.files import short_message
from ..lowering.spec import BandTree, transform_spec
from .blocks import BlockGrid, BlockWindow, StageTransform, block_lengths, stage_transforms
from .opening import COEFFICIENTS_KIND, open_array, open_group, read_window
from .partial import PartialStore
from .work import to_dtype
from .writing import write_region

__all__ = [
    "CoefficientHeader",
    "CopyStage",
    "ForwardStage",
    "InverseStage",
    "band_chunks",
    "create_bands",
    "create_scratch",
    "forward_stages",
    "inverse_stages",
    "read_header",
    "work_dtype",
]

Shape = tuple[int, ...]
APPROXIMATION = "approximation"


def work_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which numbers are transformed.

    float32 has 24 bits, enough to restore integers of 16 bits.
    """
    if dtype.kind == "c":
        return np.dtype(dtype)
    small = dtype.kind in "biu" and dtype.itemsize <= 2
    return np.dtype(np.float32 if small or (dtype.kind == "f" and dtype.itemsize <= 4) else np.float64)


@dataclass(frozen=True)
class CoefficientHeader:
    """What is known of coefficients in a store: their transform, and the array that they stand for."""

    shape: Shape
    dtype: str
    axes: tuple[int, ...]
    wavelet: str
    mode: str
    lifted: bool
    levels: int
    chunks: Shape
    names: tuple[str, ...] | None
    attributes: Mapping[str, Any]
    version: str

    def to_json(self) -> dict[str, Any]:
        """Return the header as the attribute of a group."""
        return {
            "kind": COEFFICIENTS_KIND,
            "version": self.version,
            "transform": "lwt" if self.lifted else "dwt",
            "wavelet": self.wavelet,
            "mode": self.mode,
            "levels": self.levels,
            "axes": list(self.axes),
            "shape": list(self.shape),
            "dtype": self.dtype,
            "chunks": list(self.chunks),
            "dimension_names": None if self.names is None else list(self.names),
            "attributes": dict(self.attributes),
        }

    @staticmethod
    def from_json(header: Mapping[str, Any]) -> CoefficientHeader:
        """Return the header that an attribute describes."""
        names = header["dimension_names"]
        return CoefficientHeader(
            shape=tuple(map(int, header["shape"])),
            dtype=np.dtype(header["dtype"]).name,
            axes=tuple(map(int, header["axes"])),
            wavelet=str(header["wavelet"]),
            mode=str(header["mode"]),
            lifted=header["transform"] == "lwt",
            levels=int(header["levels"]),
            chunks=tuple(map(int, header["chunks"])),
            names=None if names is None else tuple(map(str, names)),
            attributes=dict(header["attributes"]),
            version=str(header["version"]),
        )

    @property
    def tree(self) -> BandTree:
        """The shapes of all bands."""
        spec = transform_spec(len(self.shape), self.wavelet, self.mode, self.axes, self.lifted)
        return BandTree.of_samples(spec, self.shape, self.levels)

    def band_names(self) -> list[str]:
        """Return the names of the arrays of all bands in flat order."""
        keys = self.tree.spec.keys[1:]
        return [
            APPROXIMATION,
            *(f"level{level}/{key}" for level in range(self.levels, 0, -1) for key in keys),
        ]

    def stages(self) -> list[StageTransform]:
        """Return the stages of the transform, finest first."""
        return stage_transforms(
            self.shape, self.chunks, self.axes, self.wavelet, self.mode, self.lifted, self.levels
        )


def read_header(path: str | Path) -> tuple[Any, CoefficientHeader]:
    """Open a group of coefficients, and check that it has all its bands."""
    group = open_group(path)
    attribute = group.attrs.get("undula")
    if not isinstance(attribute, Mapping) or attribute.get("kind") != COEFFICIENTS_KIND:
        raise FileError(f"{path} has no coefficients; write them with `undula transform`")
    try:
        header = CoefficientHeader.from_json(attribute)
        shapes = header.tree.flat_shapes if header.levels else [header.shape]
        for name, shape in zip(header.band_names(), shapes, strict=True):
            if name not in group:
                raise FileError(f"{path} is damaged: the band {name} is missing")
            if tuple(group[name].shape) != shape:
                raise FileError(
                    f"{path} is damaged: the band {name} has shape {tuple(group[name].shape)}, not {shape}"
                )
    except FileError:
        raise
    except Exception as error:  # Damaged metadata may raise anything.
        raise FileError(f"cannot read the coefficients in {path}: {short_message(error)}") from None
    return group, header


@dataclass(frozen=True)
class ForwardStage:
    """Levels of analysis: a block reads its window, and writes its part of every band.

    Parameters
    ----------
    token : str
        Identifies the run, for arrays that workers keep open.
    source : str
        Location of the samples.
    bands : tuple of str
        Locations of the bands in flat order; the first is the approximation.
    transform : StageTransform
    lengths : tuple of int
        Lengths of blocks.
    dtype : str
        Dtype of the coefficients.
    finite : bool
        Whether to check that all samples are finite.
    name : str
        What errors call the source.
    """

    token: str
    source: str
    bands: tuple[str, ...]
    transform: StageTransform
    lengths: Shape
    dtype: str
    backend: str
    finite: bool
    name: str

    def __len__(self) -> int:
        return len(self.grid)

    @property
    def grid(self) -> BlockGrid:
        """The blocks."""
        return BlockGrid(self.transform.shape, self.lengths)

    def run(self, number: int) -> None:
        """Transform a block."""
        window = BlockWindow.of(self.transform, self.grid.block(number))
        x = read_window(open_array(self.source, self.token), window.segments)
        x = x.astype(self.dtype, copy=False)
        if self.finite and not np.isfinite(x).all():
            raise FileError(
                f"{self.name} has samples that are NaN or infinite and would spread; replace them first"
            )
        bands = self.transform.bands
        results = tuple(window.results(level, key) for level, key in bands)
        task = ForwardBlock(
            self.transform.tree.spec,
            self.transform.depth,
            self.backend,
            None,
            None,
            ChunkedWindow.of_array(x.shape),
            results,
        )
        for (level, key), location, values in zip(bands, self.bands, task([x]), strict=True):
            if values.size:
                write_region(location, self.token, window.coefficients(level, key), values)


@dataclass(frozen=True)
class InverseStage:
    """Levels of synthesis: a block reads windows of all bands, and writes its samples.

    Parameters
    ----------
    token, bands, transform, lengths, backend
        As for :class:`ForwardStage`.
    target : str
        Location of the samples.
    dtype : str
        Dtype in which to transform.
    result : str
        Dtype of the samples.
    """

    token: str
    bands: tuple[str, ...]
    target: str
    transform: StageTransform
    lengths: Shape
    dtype: str
    result: str
    backend: str

    def __len__(self) -> int:
        return len(self.grid)

    @property
    def grid(self) -> BlockGrid:
        """The blocks."""
        return BlockGrid(self.transform.shape, self.lengths)

    def run(self, number: int) -> None:
        """Reconstruct a block."""
        stage, block = self.transform, self.grid.block(number)
        spec = stage.tree.spec
        window = BlockWindow.of(stage, block, back=True)
        inner = BandTree.of_samples(spec, window.shape, stage.depth)
        arrays, windows = [], []
        for place, ((level, _), shape) in enumerate(zip(stage.bands, inner.flat_shapes, strict=True)):
            segments = window.band_segments(level, shape)
            arrays.append(read_window(open_array(self.bands[place], self.token), segments))
            windows.append(ChunkedWindow.of_array(shape, place) if prod(shape) else ChunkedWindow(shape, ()))
        # A single channel of several is transformed as it is among them; see InverseBlock.
        last = max(spec.axes)
        several = len(spec.axes) > 1 and prod(stage.shape[last + 1 :]) > 1
        doubled = several and prod(window.shape[last + 1 :]) == 1
        task = InverseBlock(
            spec,
            stage.depth,
            self.backend,
            np.dtype(self.dtype),
            window.shape,
            tuple(windows),
            window.samples(),
            doubled,
        )
        samples = to_dtype(task(arrays), np.dtype(self.result))
        write_region(self.target, self.token, tuple(slice(*part) for part in block), samples)


@dataclass(frozen=True)
class CopyStage:
    """Copy an array into another dtype: a transform of no levels, forward or back."""

    token: str
    source: str
    target: str
    shape: Shape
    lengths: Shape
    dtype: str

    def __len__(self) -> int:
        return len(BlockGrid(self.shape, self.lengths))

    def run(self, number: int) -> None:
        """Copy a block."""
        block = BlockGrid(self.shape, self.lengths).block(number)
        x = read_window(open_array(self.source, self.token), [[part] for part in block])
        region = tuple(slice(*part) for part in block)
        write_region(self.target, self.token, region, to_dtype(x, np.dtype(self.dtype)))


def create_bands(
    group: Any, header: CoefficientHeader, dtype: np.dtype[Any], scratch: Path, **options: Any
) -> None:
    """Create the arrays of all bands, and those between stages in ``scratch``."""
    import zarr

    chunks = header.chunks
    names = header.names if group.metadata.zarr_format == 3 else None
    level, stages = 0, header.stages()
    for place, stage in enumerate(stages):
        lengths, stored = block_lengths(stage.shape, chunks, stage.axes, stage.depth)
        shapes = stage.tree.flat_shapes
        for (depth, key), shape in zip(stage.bands, shapes, strict=True):
            sizes = band_chunks(shape, lengths, stored, stage.axes, depth)
            if key == stage.tree.spec.keys[0] and place < len(stages) - 1:
                zarr.create_array(
                    str(scratch / f"low{place}"), shape=shape, chunks=sizes, dtype=dtype, compressors=None
                )
                continue
            name = APPROXIMATION if key == stage.tree.spec.keys[0] else f"level{level + depth}/{key}"
            group.create_array(name, shape=shape, chunks=sizes, dtype=dtype, dimension_names=names, **options)
        level += stage.depth
    if not stages:
        group.create_array(
            APPROXIMATION, shape=header.shape, chunks=chunks, dtype=dtype, dimension_names=names, **options
        )


def band_chunks(shape: Shape, lengths: Shape, stored: Shape, axes: Sequence[int], level: int) -> Shape:
    """Return the chunks of a band: each of them belongs to one block."""
    return tuple(
        max(1, min(n, size, length >> level) if axis in axes else min(n, size))
        for axis, (n, length, size) in enumerate(zip(shape, lengths, stored, strict=True))
    )


def forward_stages(
    token: str,
    source: str,
    group: str,
    scratch: Path,
    header: CoefficientHeader,
    dtype: np.dtype[Any],
    backend: str,
    name: str,
) -> list[ForwardStage | CopyStage]:
    """Return the stages that write all bands of a group."""
    transforms = header.stages()
    if not transforms:
        target = f"{group}/{APPROXIMATION}"
        lengths = block_lengths(header.shape, header.chunks, header.axes, 0)[0]
        return [CopyStage(token, source, target, header.shape, lengths, dtype.name)]
    stages: list[ForwardStage | CopyStage] = []
    level = 0
    for place, transform in enumerate(transforms):
        is_last = place == len(transforms) - 1
        low = f"{group}/{APPROXIMATION}" if is_last else str(scratch / f"low{place}")
        details = (f"{group}/level{level + depth}/{key}" for depth, key in transform.bands[1:])
        lengths = block_lengths(transform.shape, header.chunks, header.axes, transform.depth)[0]
        stages.append(
            ForwardStage(
                token, source, (low, *details), transform, lengths, dtype.name, backend, place == 0, name
            )
        )
        source, level = low, level + transform.depth
    return stages


def inverse_stages(
    token: str,
    group: str,
    target: str,
    output: PartialStore,
    header: CoefficientHeader,
    chunks: Shape,
    dtype: np.dtype[Any],
    backend: str,
) -> list[InverseStage | CopyStage]:
    """Return the stages that read all bands of a group, and write the samples.

    Parameters
    ----------
    token : str
    group, target : str
        Locations.
    output : PartialStore
    header : CoefficientHeader
    chunks : tuple of int
        Chunks of the target; blocks are multiples of them.
    dtype : dtype
        Dtype of the coefficients.
    backend : str
    """
    transforms = header.stages()
    low = f"{group}/{APPROXIMATION}"
    if not transforms:
        lengths = block_lengths(header.shape, chunks, header.axes, 0)[0]
        return [CopyStage(token, low, target, header.shape, lengths, header.dtype)]
    stages: list[InverseStage | CopyStage] = []
    level = header.levels
    for place in range(len(transforms) - 1, -1, -1):
        transform = transforms[place]
        level -= transform.depth
        details = (f"{group}/level{level + depth}/{key}" for depth, key in transform.bands[1:])
        samples = target if place == 0 else str(output.scratch / f"low{place - 1}")
        # Results of all stages but the last one are chunks of any size, and those of the target are given.
        lengths = block_lengths(transform.shape, _clipped(chunks, transform.shape), header.axes, 0)[0]
        result = header.dtype if place == 0 else dtype.name
        stages.append(
            InverseStage(token, (low, *details), samples, transform, lengths, dtype.name, result, backend)
        )
        low = samples
    return stages


def create_scratch(
    output: PartialStore, header: CoefficientHeader, chunks: Shape, dtype: np.dtype[Any]
) -> None:
    """Create the arrays between the stages of the inverse."""
    import zarr

    for place, transform in enumerate(header.stages()[1:]):
        zarr.create_array(
            str(output.scratch / f"low{place}"),
            shape=transform.shape,
            chunks=_clipped(chunks, transform.shape),
            dtype=dtype,
            compressors=None,
        )


def _clipped(chunks: Shape, shape: Shape) -> Shape:
    return tuple(min(size, n) for size, n in zip(chunks, shape, strict=True))
