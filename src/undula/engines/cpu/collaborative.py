"""Collaborative filtering on the CPU: tiles of images, which threads filter, and what they add up to.

Tiles are the same for any number of threads, and are added up in their order, so results are the same, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...lowering.collaborative import (
    BLOCK,
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

__all__ = ["collaborate", "filter_planes", "mirror"]

Array = NDArray[Any]

FLOAT, WORD = np.dtype(np.float32), np.dtype(np.int64)
INTEGER, SHORT = np.dtype(np.int32), np.dtype(np.int16)
BAND = 16  # rows of references of a tile
MAX_COLUMNS = 63  # references of a row of a tile: samples and keys of the tile then fit into a cache
STRIP = 64  # rows that a thread adds up at a time
LINE = 16  # floats of a line of a cache


def filter_planes(x: Array, sigmas: Array, profile: CollaborativeProfile, matched: int, out: Array) -> None:
    """Filter planes of shape ``(items, rows, columns)``.

    Parameters
    ----------
    x : array
    sigmas : array
        Noise of each item. Items without noise stay as they are.
    profile : CollaborativeProfile
    matched : int
        Number of channels: items ``k``, ``k + items / matched``, … have the groups of the first one of them.
    out : array
    """
    images = len(x) // matched
    for image in range(images):
        items = slice(image, None, images)
        _filter_image(x[items], sigmas[items], profile, out[items])


def _filter_image(x: Array, sigmas: Array, profile: CollaborativeProfile, out: Array) -> None:
    """Filter the channels of one image in units of their noise."""
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
    rows, columns = x.shape[1:]
    extended = (int(used.sum()), *extended_shape((rows, columns)))
    planes = _empty_planes(*extended)
    kept = np.flatnonzero(used)

    def scale(begin: int, end: int) -> None:
        for plane, k in zip(planes, kept, strict=True):
            np.multiply(x[k, begin:end] - floors[k], 1 / unit[k], out=plane[begin:end, :columns])

    run(scale, _strips(rows))
    mirror(planes, rows, columns)
    filtered = collaborate(planes, profile)

    def restore(begin: int, end: int) -> None:
        for number, k in enumerate(kept):
            if noisy[k]:  # Only differences are rounded to single precision.
                change = filtered[number, begin:end, :columns] - planes[number, begin:end, :columns]
                out[k, begin:end] += change * x.dtype.type(unit[k])

    run(restore, _strips(rows))


def _strips(rows: int) -> list[tuple[int, int]]:
    return [(begin, min(begin + STRIP, rows)) for begin in range(0, rows, STRIP)]


def _empty_planes(count: int, rows: int, columns: int) -> Array:
    """Return planes whose rows begin an odd number of lines apart: a cache then holds blocks of many rows."""
    stride = (-(-columns // LINE) | 1) * LINE
    return empty((count, rows, stride), FLOAT)[:, :, :columns]


def mirror(planes: Array, rows: int, columns: int) -> None:
    """Fill the rows and columns by which planes were extended."""
    for axis, count in ((1, rows), (2, columns)):
        places = np.arange(count, planes.shape[axis]) % (2 * count)
        source = np.minimum(places, 2 * count - 1 - places)
        if axis == 1:
            planes[:, count:, :columns] = planes[:, source, :columns]
        else:
            planes[:, :, count:] = planes[:, :, source]


def collaborate(planes: Array, profile: CollaborativeProfile) -> Array:
    """Filter planes of floats with noise of standard deviation 1, whose shape is extended already."""
    scale = matching_scale(planes[0])
    pilot = _FilterStep(planes, planes, profile, scale, False).run()
    return _FilterStep(planes, pilot, profile, scale, True).run()


@cache
def _search(radius: int) -> tuple[Array, Array, Array]:
    """Return all displacements by number, their numbers in the order of loops, and those of one axis."""
    moves = displacements(radius)
    numbers = {(int(down), int(right)): k for k, (down, right) in enumerate(moves)}
    axis = sorted(range(-radius, radius + 1), key=abs)
    table = [numbers[down, right] for down in axis for right in axis]
    return moves, np.array(table + axis, np.int64), np.array(axis, np.int64)


@dataclass(frozen=True)
class _Tile:
    """References that are filtered together, and their weighted sums of blocks."""

    begin: int  # rows of references
    end: int
    left: int  # first reference of a row
    columns: int
    totals: Array  # of all planes, then the weights
    top: int  # place of the sums in the image
    first: int


class _FilterStep:
    """One of the two steps of the filter."""

    def __init__(
        self,
        noisy: Array,
        pilot: Array,
        profile: CollaborativeProfile,
        scale: tuple[float, float],
        weighted: bool,
    ) -> None:
        self.noisy, self.pilot, self.weighted, self.radius = noisy, pilot, weighted, profile.radius
        self.size = profile.weighted if weighted else profile.thresholded
        self.threshold = np.array([profile.threshold], FLOAT)
        self.moves, self.numbers, self.axis = _search(profile.radius)
        self.scale = np.array(scale, FLOAT)

    def run(self) -> Array:
        """Return the filtered planes."""
        tiles = self._tiles()
        threads = get_num_threads()
        run(self._filter, [(tile,) for tile in tiles])
        planes, rows, columns = self.noisy.shape
        sums = empty((2, planes, rows, columns), FLOAT)
        result = _empty_planes(*self.noisy.shape)
        strips = ranges(rows, max(threads, -(-rows // STRIP)))
        run(lambda begin, end: _add_up(tiles, sums, begin, end), strips)

        def weigh(begin: int, end: int) -> None:
            scratch = empty((end - begin + BLOCK, columns), FLOAT)
            for plane in range(planes):
                places = (address(sums[0, plane]), address(sums[1, plane]), address(result[plane]))
                kernel("weigh_rows", "float32")(
                    *places, result.strides[1], begin, end, columns, address(scratch)
                )

        run(weigh, strips)
        return result

    def _tiles(self) -> list[_Tile]:
        planes, rows, columns = self.noisy.shape
        down, across = rows // STEP - 1, columns // STEP - 1
        pieces = ranges(across, -(-across // MAX_COLUMNS))
        tiles = []
        for begin in range(0, down, BAND):
            end = min(begin + BAND, down)
            for left, right in pieces:
                shape = tuple(STEP * (n + 1) + 2 * self.radius for n in (end - begin, right - left))
                totals = empty((2, planes, *shape), FLOAT)
                place = STEP * begin - self.radius, STEP * left - self.radius
                tiles.append(_Tile(begin, end, STEP * left, right - left, totals, *place))
        return tiles

    def _filter(self, tile: _Tile) -> None:
        planes, rows, columns = self.noisy.shape
        side = len(self.axis)
        vectors = -(-(tile.columns + 1) // LANES)
        margin = (self.radius + 3) // 4
        phase = LANES * vectors + 2 * margin + 2  # samples of a row of a phase
        cell = LANES * vectors  # distances of a row of cells
        lines = tile.end - tile.begin
        phases = empty((STEP * (lines + 1) + 2 * self.radius, STEP, phase), INTEGER)
        samples = empty((STEP * (phase + 1),), SHORT)
        offsets = np.array(
            [
                4 * (((c + right) % STEP) * phase + (c + right) // STEP)
                for right in self.axis.tolist()
                for c in range(0, STEP, 2)
            ],
            np.int64,
        )
        cells = empty((side, cell), INTEGER)
        sums = empty((side, cell + LANES), INTEGER)
        limits = empty((lines, cell), INTEGER)
        keys = empty((lines, vectors, self.size, LANES), INTEGER)
        queues = empty((lines, vectors, QUEUE, LANES), INTEGER)
        counts = empty((lines, vectors), WORD)
        groups = empty((2, self.size, BLOCK, BLOCK), FLOAT)
        match = self.pilot if self.weighted else self.noisy
        plane_bytes, row_bytes = match.strides[:2]
        table = [
            *(address(match), address(self.scale), address(self.scale) + self.scale.itemsize),
            *(address(self.noisy), address(self.pilot), planes, plane_bytes, row_bytes),
            *(rows, columns, self.radius, side, self.size, self.weighted, address(self.threshold)),
            *(address(self.moves), address(self.numbers)),
            *(tile.begin, tile.end, tile.left, tile.columns, vectors),
            *(address(tile.totals[0]), address(tile.totals[1])),
            *(tile.totals[0, 0].nbytes, 4 * tile.totals.shape[-1]),
            *(address(samples), address(phases), 4 * phase, address(offsets)),
            *(address(cells), 4 * cell, address(sums), address(limits)),
            *(address(keys), address(queues), address(counts), address(groups[0]), address(groups[1])),
        ]
        assert len(table) == TABLE_WORDS
        described = np.array(table, np.int64)
        kernel("filter_tile", "float32")(address(described))


def _add_up(tiles: list[_Tile], sums: Array, begin: int, end: int) -> None:
    """Add up rows of all tiles, in the order of tiles."""
    sums[:, :, begin:end] = 0
    columns = sums.shape[3]
    for tile in tiles:
        rows, width = tile.totals.shape[2:]
        low, high = max(begin, tile.top), min(end, tile.top + rows)
        left, right = max(0, tile.first), min(columns, tile.first + width)
        if low < high:
            part = tile.totals[:, :, low - tile.top : high - tile.top, left - tile.first : right - tile.first]
            sums[:, :, low:high, left:right] += part
