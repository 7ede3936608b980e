"""Collaborative filtering on the CPU: tiles of images, which threads filter, and what they add up to.

Tiles are the same for any number of threads, and are added up in their order, so results are the same, too.
Volumes are those of ``collaborative_volumes``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...lowering.collaborative import (
    BLOCK,
    BLOCK_SAMPLES,
    CUBE,
    FLOOR,
    MAX_RANGE,
    STEP,
    CollaborativeProfile,
    displacements,
    extended_shape,
    limited_noise,
    matching_scale,
)
from ..memory import empty
from ..threads import get_num_threads, ranges, run
from .collaborative_layout import LANES, QUEUE, TABLE_WORDS
from .executable import address
from .machine_code import kernel

__all__ = ["FilterStep", "FilterTile", "filter_memory", "filter_planes", "mirror", "tile_bytes"]

Array = NDArray[Any]

BYTES, FLOAT, WORD = np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.int64)
INTEGER, SHORT = np.dtype(np.int32), np.dtype(np.int16)
BAND = 16  # rows of references of a tile
BANDS_AT_ONCE = 4  # bands of tiles that have sums of their own at the same time
MAX_COLUMNS = 63  # references of a row of a tile: samples and keys of the tile then fit into a cache
STRIP = 64  # rows that a thread adds up at a time
LINE = 16  # floats of a line of a cache


def filter_planes(
    x: Array,
    sigmas: Array,
    profile: CollaborativeProfile,
    matched: int,
    out: Array,
    memory: Array | None = None,
) -> None:
    """Filter images of shape ``(items, rows, columns)``, or volumes of ``(items, layers, rows, columns)``.

    Parameters
    ----------
    x : array
    sigmas : array
        Noise of each item. Items without noise stay as they are.
    profile : CollaborativeProfile
    matched : int
        Number of channels: items ``k``, ``k + items / matched``, … have the groups of the first one of them.
    out : array
        It may be ``x``.
    memory : array of bytes, optional
        As many as :func:`filter_memory` returns, to work with.
    """
    images = len(x) // matched
    if memory is None:
        memory = empty((filter_memory(x.shape, profile, matched),), BYTES)
    for image in range(images):
        items = slice(image, None, images)
        _filter_image(x[items], sigmas[items], profile, out[items], memory)


def filter_memory(shape: tuple[int, ...], profile: CollaborativeProfile, matched: int) -> int:
    """Return the bytes of the arrays that an image takes, of items of this shape."""
    extended = extended_shape(shape[1:], profile.layer_step)
    rows = matched * math.prod(extended[:-1])
    # The planes, the result of the first step, and the sums and weights of a step.
    return 2 * rows * (_plane_stride(extended[-1]) + extended[-1]) * FLOAT.itemsize


def tile_bytes(shape: tuple[int, ...], profile: CollaborativeProfile, matched: int) -> int:
    """Return the bytes of the sums of the tiles of an image that are filtered at the same time."""
    columns = extended_shape(shape[1:], profile.layer_step)[-1]
    rows = STEP * (BAND * BANDS_AT_ONCE + 1) + 2 * profile.radius
    return 4 * matched * rows * columns * FLOAT.itemsize if len(shape) == 3 else 0


def _plane_stride(columns: int) -> int:
    """Return the distance of the rows of planes: an odd number of lines, so that a cache holds many rows."""
    return (-(-columns // LINE) | 1) * LINE


def _arrays(memory: Array, count: int, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return planes, the result of the first step, and the sums and weights of a step."""
    floats, stride = memory[: len(memory) // 4 * 4].view(FLOAT), _plane_stride(shape[-1])
    rows = count * math.prod(shape[:-1])
    planes, pilot = (
        floats[begin : begin + rows * stride].reshape(count, *shape[:-1], stride)[..., : shape[-1]]
        for begin in (0, rows * stride)
    )
    sums = floats[2 * rows * stride :][: 2 * rows * shape[-1]].reshape(2, count, *shape)
    return planes, pilot, sums


def _filter_image(x: Array, sigmas: Array, profile: CollaborativeProfile, out: Array, memory: Array) -> None:
    """Filter the channels of one image or volume in units of their noise."""
    least = np.array([plane.min() for plane in x], np.float64)
    largest = np.array([plane.max() for plane in x]) - least
    sigmas = limited_noise(sigmas, largest)
    noisy = (sigmas > 0) & (largest < MAX_RANGE * sigmas)
    out[...] = x
    if not noisy.any():
        return
    # Blocks are matched in the first channel, whether it has noise or not.
    unit = np.where(noisy, sigmas, np.maximum(sigmas[noisy].max(), largest / MAX_RANGE))
    used = noisy.copy()
    used[0] = True
    floors = (least - FLOOR * unit).astype(x.dtype)
    kept, shape = np.flatnonzero(used), x.shape[1:]
    inside = tuple(slice(n) for n in shape[1:])
    planes, pilot, sums = _arrays(memory, len(kept), extended_shape(shape, profile.layer_step))

    def scale(begin: int, end: int) -> None:
        for plane, k in zip(planes, kept, strict=True):
            np.multiply(x[k, begin:end] - floors[k], 1 / unit[k], out=plane[(slice(begin, end), *inside)])

    run(scale, _strips(shape))
    mirror(planes, shape)
    _filter(planes, profile, sums, pilot)

    def restore(begin: int, end: int) -> None:
        part = (slice(begin, end), *inside)
        for number, k in enumerate(kept):
            if noisy[k]:  # Only differences are rounded to single precision.
                change = pilot[number][part] - planes[number][part]
                out[k, begin:end] += change * x.dtype.type(unit[k])

    run(restore, _strips(shape))


def _strips(shape: tuple[int, ...]) -> list[tuple[int, int]]:
    height = STRIP if len(shape) == 2 else 1
    return [(begin, min(begin + height, shape[0])) for begin in range(0, shape[0], height)]


def mirror(planes: Array, shape: tuple[int, ...]) -> None:
    """Fill the rows, columns and layers by which planes were extended."""
    inside = [slice(None), *(slice(n) for n in shape)]
    for axis, count in enumerate(shape, 1):
        places = np.arange(count, planes.shape[axis]) % (2 * count)
        source = np.minimum(places, 2 * count - 1 - places)
        target = list(inside)
        inside[axis] = slice(None)
        target[axis] = slice(count, None)
        planes[tuple(target)] = np.take(planes, source, axis)[
            (*target[:axis], slice(None), *target[axis + 1 :])
        ]


def _filter(planes: Array, profile: CollaborativeProfile, sums: Array, result: Array) -> None:
    """Filter planes of floats with noise of standard deviation 1, whose shape is extended already."""
    from .collaborative_volumes import VolumeStep

    step = ImageStep if planes.ndim == 3 else VolumeStep
    scale = matching_scale(planes[0])
    step(planes, planes, profile, scale, False).run(sums, result)
    step(planes, result, profile, scale, True).run(sums, result)


class _Search(NamedTuple):
    """The displacements that are compared.

    Parameters
    ----------
    moves : array
        By number.
    others : array
        Displacements along all axes but the last one, in the order of loops.
    rights : array
        Displacements along the last axis, in the order of loops.
    numbers : array
        The number of each pair of them.
    """

    moves: Array
    others: Array
    rights: Array
    numbers: Array


@cache
def _search(radius: int, ndim: int) -> _Search:
    """Return the displacements, nearest first."""
    moves = displacements(radius, ndim)
    numbers = {tuple(move): k for k, move in enumerate(moves.tolist())}
    rights = sorted(range(-radius, radius + 1), key=abs)
    others = sorted(product(rights, repeat=ndim - 1), key=lambda move: sum(n * n for n in move))
    table = [[numbers[(*move, right)] for right in rights] for move in others]
    return _Search(moves, np.array(others, WORD), np.array(rights, WORD), np.array(table, WORD))


@dataclass(frozen=True)
class FilterTile:
    """References that are filtered together.

    Parameters
    ----------
    begin, end : int
        Rows of references.
    columns : int
        Number of references of a row.
    place : tuple of int
        First sample of the first reference.
    totals : array
        Weighted sums of blocks of all planes, then their weights.
    origin : tuple of int
        Place of the first reference in the sums.
    """

    begin: int
    end: int
    columns: int
    place: tuple[int, ...]
    totals: Array
    origin: tuple[int, ...]


class FilterStep:
    """One of the two steps of the filter.

    Parameters
    ----------
    noisy, pilot : array
        All planes, and the result of the first step.
    profile : CollaborativeProfile
    scale : tuple of float
        The sample that is matched as 0, and the factor of samples.
    weighted : bool
        Whether this is the second step.
    """

    kernel_name: ClassVar[str]
    layers: ClassVar[int]  # of a block
    cell_rows: ClassVar[int]
    cells: ClassVar[int]  # of a block
    order: ClassVar[tuple[int, ...]]  # of the axes of coefficients
    cleared: ClassVar[bool]  # Whether each tile has its own sums.

    def __init__(
        self,
        noisy: Array,
        pilot: Array,
        profile: CollaborativeProfile,
        scale: tuple[float, float],
        weighted: bool,
    ) -> None:
        self.noisy, self.pilot, self.weighted, self.profile = noisy, pilot, weighted, profile
        self.size = profile.weighted if weighted else profile.thresholded
        self.search = _search(profile.radius, noisy.ndim - 1)
        self.scale = np.array(scale, FLOAT)
        side = round(BLOCK_SAMPLES ** (1 / len(self.order)))
        variances, penalties = np.ones((side,) * len(self.order)), np.zeros(len(self.search.moves), WORD)
        if profile.noise is not None:
            variances = profile.noise.variances(weighted).reshape(variances.shape)
            penalties = penalties if weighted else profile.noise.penalties(scale[1])
        variances = variances.transpose(self.order).reshape(-1)
        noise, thresholds = profile.gain_noise * variances, profile.threshold * np.sqrt(variances)
        self.shrinkage = np.array([noise if weighted else thresholds, variances], FLOAT)
        self.penalties = (penalties[self.search.numbers] // self.cells).astype(INTEGER)
        self.source_moves = self.search.moves @ np.array(noisy.strides[1:], WORD)

    def filter(self, tile: FilterTile) -> None:
        """Filter the groups of a tile, and add them to its sums."""
        planes, *depth, height, width = self.noisy.shape
        plane_bytes, *layer_bytes, row_bytes, _ = self.noisy.strides
        total_bytes, *total_layer, total_row, _ = tile.totals[0].strides
        radius, side = self.profile.radius, len(self.search.rights)
        lines = tile.end - tile.begin
        vectors = -(-(tile.columns + 1) // LANES)
        margin = (radius + STEP - 1) // STEP
        phase = LANES * vectors + 2 * margin + 2  # samples of a row of a phase
        cell = LANES * vectors  # distances of a row of cells
        layers = self.layers + 2 * radius if depth else 1
        rows = self.cell_rows * (lines + 1) + 2 * radius
        phases = empty((layers, rows, STEP, phase), INTEGER)
        first_cell = (radius * rows if depth else 0) + radius
        samples = empty((STEP * (phase + 1),), SHORT)
        offsets = np.array(
            [
                4 * (((c + right) % STEP) * phase + (c + right) // STEP)
                for right in self.search.rights.tolist()
                for c in range(0, STEP, 2)
            ],
            WORD,
        )
        moves = self._moves(tile, rows, 4 * STEP * phase)
        cells = empty((side, cell), INTEGER)
        sums = empty((side, cell + LANES), INTEGER)
        limits = empty((lines, cell), INTEGER)
        keys = empty((lines, vectors, self.size, LANES), INTEGER)
        queues = empty((lines, vectors, QUEUE, LANES), INTEGER)
        counts = empty((lines, vectors), WORD)
        groups = empty((2, self.size, BLOCK_SAMPLES), FLOAT)
        match = self.pilot if self.weighted else self.noisy
        total_strides = np.array(tile.totals[0, 0].strides, WORD)
        total_moves = self.search.moves @ total_strides
        source_strides = np.array(self.noisy.strides[1:], WORD)
        table = [
            *(address(match), address(self.scale), address(self.scale) + self.scale.itemsize),
            *(address(self.noisy), address(self.pilot), planes, plane_bytes, *(layer_bytes or [0])),
            *(row_bytes, *(depth or [1]), height, width, side, self.size, self.weighted),
            *(address(self.shrinkage[0]), address(self.shrinkage[1]), address(self.source_moves)),
            *(address(self.search.numbers), address(self.penalties), address(self.search.rights)),
            *(tile.begin, tile.end, tile.place[-1], tile.columns, vectors, address(moves), len(moves)),
            *(int(source_strides @ tile.place), self.cell_rows * row_bytes),
            *(address(tile.totals[0]), address(tile.totals[1]), planes * total_bytes * self.cleared),
            *(address(total_moves), int(total_strides @ tile.origin), self.cell_rows * total_row),
            *(total_bytes, *(total_layer or [0]), total_row),
            *(address(samples), address(phases), 4 * phase),
            *(tile.place[0] - radius if depth else 0, tile.place[-2] - radius, layers, rows),
            *(address(phases) + 4 * (STEP * phase * first_cell + margin), address(offsets)),
            *(address(cells), 4 * cell, address(sums), address(limits)),
            *(address(keys), address(queues), address(counts), address(groups[0]), address(groups[1])),
        ]
        assert len(table) == TABLE_WORDS
        described = np.array(table, WORD)
        kernel(self.kernel_name, "float32")(address(described))

    def _moves(self, tile: FilterTile, rows: int, row_bytes: int) -> Array:
        """Return rows of cells that stay inside when they are moved, from and to, and the move in bytes."""
        *_, height, _ = self.noisy.shape
        downs, step = self.search.others[:, -1], self.cell_rows
        first = np.maximum(tile.begin, (step - 1 - downs) // step)
        last = np.minimum(tile.end, (height - step - downs) // step)
        moved = downs * row_bytes
        if self.search.others.shape[1] > 1:
            layers = self.search.others[:, 0]
            places = tile.place[0] + layers
            outside = (places < 0) | (places > self.noisy.shape[1] - CUBE)
            last = np.where(outside, first - 1, last)
            moved = moved + layers * (rows * row_bytes)
        return np.ascontiguousarray(np.stack([first, last, moved], axis=1))


class ImageStep(FilterStep):
    """A step of the filter of images: each tile has its own sums, which are added up in the end."""

    kernel_name = "filter_tile"
    layers, cell_rows, cells = 1, STEP, 4
    order = (1, 0)
    cleared = True

    def run(self, sums: Array, result: Array) -> None:
        """Write the filtered planes; ``sums`` are memory for this."""
        threads = get_num_threads()
        planes, rows, columns = self.noisy.shape
        strips = ranges(rows, max(threads, -(-rows // STRIP)))
        run(lambda begin, end: sums[:, :, begin:end].fill(0), strips)
        down = rows // STEP - 1
        for first in range(0, down, BAND * BANDS_AT_ONCE):
            tiles = self._tiles(first, min(first + BAND * BANDS_AT_ONCE, down))
            run(self.filter, [(tile,) for tile in tiles])
            run(partial(self._add_up, tiles, sums), strips)
        del tiles

        def weigh(begin: int, end: int) -> None:
            scratch = empty((end - begin + BLOCK, columns), FLOAT)
            for plane in range(planes):
                places = (address(sums[0, plane]), address(sums[1, plane]), address(result[plane]))
                kernel("weigh_rows", "float32")(
                    *places, result.strides[1], begin, end, columns, address(scratch)
                )

        run(weigh, strips)

    def _tiles(self, first: int, last: int) -> list[FilterTile]:
        """Return the tiles of some rows of references."""
        planes, _, columns = self.noisy.shape
        across, radius = columns // STEP - 1, self.profile.radius
        tiles = []
        for begin in range(first, last, BAND):
            end = min(begin + BAND, last)
            for left, right in ranges(across, -(-across // MAX_COLUMNS)):
                shape = tuple(STEP * (n + 1) + 2 * radius for n in (end - begin, right - left))
                totals = empty((2, planes, *shape), FLOAT)
                place = STEP * begin, STEP * left
                tiles.append(FilterTile(begin, end, right - left, place, totals, (radius, radius)))
        return tiles

    def _add_up(self, tiles: list[FilterTile], sums: Array, begin: int, end: int) -> None:
        """Add up rows of tiles, in the order of tiles."""
        columns, radius = sums.shape[3], self.profile.radius
        for tile in tiles:
            rows, width = tile.totals.shape[2:]
            top, first = (n - radius for n in tile.place)
            low, high = max(begin, top), min(end, top + rows)
            left, right = max(0, first), min(columns, first + width)
            if low < high:
                part = tile.totals[:, :, low - top : high - top, left - first : right - first]
                sums[:, :, low:high, left:right] += part
