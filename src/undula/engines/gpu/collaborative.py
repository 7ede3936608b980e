"""The launches of collaborative filtering; see :mod:`undula.engines.gpu.emit.collaborative`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...arrays import ArrayView
from ...errors import ArgumentError
from ...lowering.collaborative import STEP, CollaborativeProfile, extended_shape
from ...lowering.expressions import Call, Load
from ...lowering.graph import Collaborate
from .emit import Kernel
from .emit.collaborative import (
    CLEARED,
    FLAT_ITEMS,
    REFERENCES,
    UNIT_NUMBERS,
    WEIGHED_TILE,
    emit_clear,
    emit_groups,
    emit_scaled,
    emit_units,
    emit_weighed,
)
from .emit.matching import emit_matching, matching_tile, packed_displacements, visits
from .emit.parts import pattern_of
from .graph_builder import GraphBuilder
from .launches import Launch
from .parts import NO_OFFSET, Part, PartArray, grouped, part_array
from .reductions import fold

__all__ = ["lower_collaborate"]

MAX_CHUNK_BYTES = 2**30  # Images of a batch are filtered in chunks of at most so much scratch memory.
MAX_AREA = 2**31  # samples of a plane
SUMS = 3  # integers of a sample: two parts of its sum, and the weight


def lower_collaborate(builder: GraphBuilder, node: Collaborate) -> None:
    """Append launches for the extremes of planes, and for their groups of blocks."""
    source, items = builder.resolve(node.source), node.source.shape[0]
    if len(source.shape) != 3:
        raise ArgumentError(
            "groups of blocks of volumes are filtered on the CPU; copy the volume to the host or pass"
            " backend='cpu', or name the two axes of its planes to filter these as images"
        )
    if node.profile.noise is not None:
        raise ArgumentError(
            "groups of blocks whose noise has a spectrum are filtered on the CPU; copy the image to the"
            " host or pass backend='cpu', or use quality='fast'"
        )
    load = Load(node.source)
    extremes = []
    for value in (Call("negative", (load,)), load):
        pattern, _, constants = pattern_of(value)
        extreme = builder.scratch((items,), source.dtype)
        axes = (("stride", 1), NO_OFFSET, NO_OFFSET)
        arrays = [part_array(source), PartArray(extreme.buffer, extreme.dtype, extreme.offset, axes)]
        for group in grouped([Part(source.shape, arrays, pattern, constants).merged(1)], 1):
            fold(builder, "max", group)
        extremes.append(extreme)
    noise, result = builder.resolve(node.noise), builder.resolve(node.results[0])
    groups = _BlockGroups(builder, node.profile, node.channels, source, noise, result, *extremes)
    builder.launches += groups.launches()


@dataclass(frozen=True)
class _BlockGroups:
    """The groups of blocks of a node.

    Parameters
    ----------
    builder : GraphBuilder
    profile : CollaborativeProfile
    channels : int
    source, noise, result : ArrayView
        In numbered buffers.
    lowest, highest : ArrayView
        Largest negative, and largest sample of each plane.
    """

    builder: GraphBuilder
    profile: CollaborativeProfile
    channels: int
    source: ArrayView
    noise: ArrayView
    result: ArrayView
    lowest: ArrayView
    highest: ArrayView

    def launches(self) -> list[Launch]:
        """Return all launches."""
        items, *samples = self.source.shape
        images = items // self.channels
        rows, columns = extended_shape((samples[0], samples[1]))
        if rows * columns >= MAX_AREA:
            raise ArgumentError(
                f"devices filter groups of images of less than 2³¹ samples, got {tuple(samples)}; filter"
                " parts of the image, or pass backend='cpu'"
            )
        down, across = rows // STEP - 1, columns // STEP - 1
        size = max(self.profile.thresholded, self.profile.weighted)
        image_bytes = 4 * self.channels * rows * columns * (2 + SUMS) + 2 * down * across * size
        chunk = min(images, max(1, MAX_CHUNK_BYTES // image_bytes))
        shape = (self.channels * chunk, rows, columns)
        memory = {
            "noisy": self.builder.scratch(shape, "float32"),
            "pilot": self.builder.scratch(shape, "float32"),
            "sums": self.builder.scratch((SUMS, *shape), "int32"),
            "places": self.builder.scratch((chunk, down, across, size), "uint16"),
            "units": self.builder.scratch((items, UNIT_NUMBERS), self.source.dtype),
            "used": self.builder.scratch((items,), "int32"),
            "x": self.source,
            "result": self.result,
        }
        steps = {"items": items, "images": images, "noise_step": self.noise.strides[0]}
        arrays = {**memory, "noise": self.noise, "lowest": self.lowest, "highest": self.highest}
        kernel = emit_units(self.source.dtype, self.noise.dtype, self.builder.dialect)
        launches = [_launch(kernel, -(-items // FLAT_ITEMS), arrays, steps)]
        radius = self.profile.radius
        memory["numbers"] = self._table(visits(radius), "int32")
        memory["moves"] = self._table(packed_displacements(radius), "uint16")
        for first in range(0, images, chunk):
            launches += self._chunk(memory, images, first, min(chunk, images - first))
        return launches

    def _table(self, values: Any, dtype: str) -> ArrayView:
        buffer, start = self.builder.table(values.reshape(-1), dtype)
        return ArrayView(buffer, (), (), dtype, start)

    def _chunk(self, memory: dict[str, ArrayView], images: int, first: int, chunk: int) -> list[Launch]:
        """Return the launches for some images."""
        _, rows, columns = memory["noisy"].shape
        planes, (_, high, wide) = self.channels * chunk, self.source.shape
        moves = {"x": first * self.source.strides[0], "result": first * self.result.strides[0]}
        moves |= {"units": first * UNIT_NUMBERS, "used": first}
        arrays = {
            name: view._replace(offset=view.offset + moves.get(name, 0)) for name, view in memory.items()
        }
        numbers = {"rows": rows, "columns": columns, "chunk": chunk, "images": images, "planes": planes}
        numbers |= {"down": rows // STEP - 1, "across": columns // STEP - 1}
        numbers |= {"samples_down": high, "samples_across": wide, "count_step": 3 * planes * rows * columns}
        for name in ("x", "result"):
            for what, step in zip(("item", "row", "column"), arrays[name].strides, strict=True):
                numbers[f"{name}_{what}_step"] = step
        down, across, profile = numbers["down"], numbers["across"], self.profile
        tile = matching_tile(profile.radius, self.builder.limits.shared, self.builder.dialect)
        if tile is None:
            raise ArgumentError(
                "groups of blocks need more shared memory than the device has for work items,"
                f" {self.builder.limits.shared} bytes; pass backend='cpu' or quality='fast'"
            )

        def tiled(kernel: Kernel, sizes: tuple[int, int], extent: tuple[int, int], count: int) -> Launch:
            tiers, tiles = (-(-n // size) for n, size in zip(extent, sizes, strict=True))
            counted = {"tiles": tiles, "strips": tiles, "tiers": tiers}
            return _launch(kernel, tiles * tiers * count, arrays, {**numbers, **counted})

        dialect, dtype = self.builder.dialect, self.source.dtype
        scaled = emit_scaled(dtype, dialect)
        launches = [tiled(scaled, WEIGHED_TILE, (rows, columns), planes)]
        for weighted, size in enumerate((profile.thresholded, profile.weighted)):
            arrays["image"] = arrays["pilot" if weighted else "noisy"]
            matching = emit_matching(profile.radius, size, tile, dialect)
            launches.append(tiled(matching, (tile.lines, tile.across), (down, across), chunk))
            launches.append(
                _launch(emit_clear(dialect), -(-numbers["count_step"] // CLEARED), arrays, numbers)
            )
            shrinkage = profile.gain_noise if weighted else profile.threshold
            groups = emit_groups(
                profile.radius, size, bool(weighted), shrinkage, self.builder.limits.gpu, dialect
            )
            launches.append(tiled(groups, (REFERENCES, REFERENCES), (down, across), planes))
            weighed = emit_weighed(dtype if weighted else None, dialect)
            extent = (high, wide) if weighted else (rows, columns)
            launches.append(tiled(weighed, WEIGHED_TILE, extent, planes))
        return launches


def _launch(kernel: Kernel, groups: int, arrays: dict[str, ArrayView], numbers: dict[str, int]) -> Launch:
    """Return a launch with the arrays and integers that its kernel names."""
    starts = {f"{name}_start": arrays[name].offset for name in kernel.arrays}
    values = tuple({**numbers, **starts}[name] for name, _ in kernel.integers)
    return Launch(kernel, groups, tuple(arrays[name].buffer for name in kernel.arrays), values)
