"""Blocks: the regions in which a store is transformed, and the stages of some levels each.

A block is a part of the samples whose lengths are multiples of ``2**levels``, so that each block writes
chunks of its own in every band: the part ``start … stop - 1`` of a line has the coefficients from ``start
>> level`` on. It is computed from a window that is a little larger, see :mod:`undula.lowering.windows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

from ..engines.chunked.lines import line_transforms
from ..lowering.spec import BandTree, transform_spec
from ..lowering.windows import Interval, LineTransform, LineWindow

__all__ = ["BlockGrid", "BlockWindow", "StageTransform", "block_lengths", "stage_transforms"]

Shape = tuple[int, ...]

# Samples of a block: few enough for many at a time, and enough for windows that are hardly larger.
BLOCK_SAMPLES = 1 << 21
# Levels are computed together while windows have at most this many times the samples of their blocks.
MAX_OVERLAP = 1.3
MAX_DEPTH = 6


@dataclass(frozen=True)
class BlockGrid:
    """An array divided into blocks, in the order of its axes."""

    shape: Shape
    lengths: Shape

    @cached_property
    def counts(self) -> Shape:
        """The number of blocks along each axis."""
        return tuple(-(-n // length) for n, length in zip(self.shape, self.lengths, strict=True))

    def __len__(self) -> int:
        return prod(self.counts)

    def block(self, number: int) -> list[Interval]:
        """Return the samples of a block along each axis."""
        places: list[Interval] = []
        for n, length, count in reversed(list(zip(self.shape, self.lengths, self.counts, strict=True))):
            number, place = divmod(number, count)
            places.append((place * length, min(n, (place + 1) * length)))
        return places[::-1]


@dataclass(frozen=True)
class StageTransform:
    """Some levels of a transform, in types that are quick to send.

    Parameters
    ----------
    shape : tuple of int
        Shape of the samples of the first of these levels.
    axes : tuple of int
    wavelet, mode : str
    lifted : bool
        Whether this is the LWT, or the DWT.
    depth : int
        The number of levels.
    """

    shape: Shape
    axes: tuple[int, ...]
    wavelet: str
    mode: str
    lifted: bool
    depth: int

    @property
    def tree(self) -> BandTree:
        """The shapes of all bands."""
        return _tree(self)

    @property
    def lines(self) -> Sequence[LineTransform | None]:
        """The transform along each axis; None along those that stay."""
        return _lines(self)

    @property
    def bands(self) -> list[tuple[int, str]]:
        """Level and key of all bands in flat order; level 1 is the finest of the stage."""
        first, *details = self.tree.spec.keys
        levels = range(self.depth, 0, -1)
        return [(self.depth, first), *((level, key) for level in levels for key in details)]

    def letters(self, key: str) -> list[str]:
        """Return the letter of a band along each axis, and nothing along those that stay."""
        letters = [""] * len(self.shape)
        for axis, letter in zip(self.axes, key, strict=True):
            letters[axis] = letter
        return letters


@lru_cache(maxsize=64)
def _tree(stage: StageTransform) -> BandTree:
    spec = transform_spec(len(stage.shape), stage.wavelet, stage.mode, stage.axes, stage.lifted)
    return BandTree.of_samples(spec, stage.shape, stage.depth)


@lru_cache(maxsize=64)
def _lines(stage: StageTransform) -> Sequence[LineTransform | None]:
    return tuple(line_transforms(stage.tree))


@dataclass(frozen=True)
class BlockWindow:
    """The window of a block, along each axis.

    Parameters
    ----------
    stage : StageTransform
    block : list of (int, int)
        The samples of the block.
    along : list of LineWindow
    """

    stage: StageTransform
    block: list[Interval]
    along: list[LineWindow]

    @staticmethod
    def of(stage: StageTransform, block: list[Interval], back: bool = False) -> BlockWindow:
        """Return the window of a block, for analysis or for synthesis."""
        along = []
        for line, (start, stop) in zip(stage.lines, block, strict=True):
            if line is None:
                along.append(LineWindow(stop - start, ((start, stop),)))
            else:
                along.append(line.inverse_window(start, stop) if back else line.window(start, stop))
        return BlockWindow(stage, block, along)

    @property
    def shape(self) -> Shape:
        """The shape of the window."""
        return tuple(line.length for line in self.along)

    @property
    def segments(self) -> list[Sequence[Interval]]:
        """The samples that the window consists of, along each axis."""
        return [line.segments for line in self.along]

    def samples(self) -> tuple[slice, ...]:
        """Return where the block is in the window."""
        return self._place(0, self.block)

    def coefficients(self, level: int, key: str) -> tuple[slice, ...]:
        """Return the coefficients of a band that belong to the block."""
        return tuple(slice(*interval) for interval in self._intervals(level, key))

    def results(self, level: int, key: str) -> tuple[slice, ...]:
        """Return where these coefficients are in the band of the window."""
        return self._place(level, self._intervals(level, key))

    def band_segments(self, level: int, counts: Shape) -> list[Sequence[Interval]]:
        """Return the coefficients that a band of the window consists of, given its shape."""
        return [
            window.segments if line is None else window.band_segments(level, count)
            for window, line, count in zip(self.along, self.stage.lines, counts, strict=True)
        ]

    def _intervals(self, level: int, key: str) -> list[Interval]:
        letters = self.stage.letters(key)
        return [
            (start, stop) if line is None else line.results(level, letter == "d", start, stop)
            for line, letter, (start, stop) in zip(self.stage.lines, letters, self.block, strict=True)
        ]

    def _place(self, level: int, intervals: Sequence[Interval]) -> tuple[slice, ...]:
        places = []
        for line, window, (start, stop) in zip(self.stage.lines, self.along, intervals, strict=True):
            place = 0 if line is None else window.place(level, start)
            places.append(slice(place, place + stop - start))
        return tuple(places)


def rounded_up(length: int, unit: int) -> int:
    """Return the next multiple of a unit.

    Examples
    --------
    >>> rounded_up(100, 16)
    112
    """
    return -(-length // unit) * unit


def block_lengths(shape: Shape, chunks: Shape, axes: Sequence[int], depth: int) -> tuple[Shape, Shape]:
    """Return the lengths of blocks, and those of the chunks that results are stored in.

    Blocks are chunks, made multiples of ``2**depth`` and doubled along ``axes`` up to ``BLOCK_SAMPLES``
    samples.

    Examples
    --------
    >>> block_lengths((30, 4000, 4000), (1, 512, 512), (1, 2), 4)
    ((1, 1024, 2048), (1, 512, 512))
    """
    unit = 1 << depth
    stored = tuple(rounded_up(length, unit) if axis in axes else length for axis, length in enumerate(chunks))
    ends = tuple(rounded_up(n, unit) if axis in axes else n for axis, n in enumerate(shape))
    lengths = [min(length, end) for length, end in zip(stored, ends, strict=True)]
    while True:
        # The axis with the fewest chunks grows, the last one of several; chunks along it are read together.
        growing = [axis for axis in axes if lengths[axis] < ends[axis]]
        if not growing or 2 * prod(lengths) > BLOCK_SAMPLES:
            return tuple(lengths), stored
        axis = min(growing, key=lambda axis: (lengths[axis] / stored[axis], -axis))
        lengths[axis] *= 2


def stage_transforms(
    shape: Shape, chunks: Shape, axes: tuple[int, ...], wavelet: str, mode: str, lifted: bool, levels: int
) -> list[StageTransform]:
    """Divide the levels of a transform into stages, finest first.

    More levels in one stage need wider windows; fewer need arrays between the stages.
    """
    stages: list[StageTransform] = []
    while levels:
        for depth in range(min(levels, MAX_DEPTH), 0, -1):
            stage = StageTransform(shape, axes, wavelet, mode, lifted, depth)
            if depth == 1 or _overlap(stage, block_lengths(shape, chunks, axes, depth)[0]) <= MAX_OVERLAP:
                break
        stages.append(stage)
        shape, levels = stage.tree.approximation_shape, levels - stage.depth
    return stages


def _overlap(stage: StageTransform, lengths: Shape) -> float:
    """Return how many times the samples of a block its window has, in the middle of the array."""
    middle = []
    for n, length in zip(stage.shape, lengths, strict=True):
        start = n // 2 // length * length
        middle.append((start, min(n, start + length)))
    return prod(BlockWindow.of(stage, middle).shape) / prod(lengths)
