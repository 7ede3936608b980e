"""Collaborative filtering of video on the CPU: frames that come in, and frames that are done.

A frame waits until those that its blocks are matched with have come, and its result until those that write
to it are done::

    frames n          noisy ──motion──▶ first step of frame n - radius ──▶ pilot of n - radius - SPREAD
    pilots p          second step of frame p - radius ──▶ result of p - radius - SPREAD

Rows of references are filtered in bands of 64 rows. Blocks of groups are at most ``REACH`` rows away, so
every second band writes to other rows: these run at the same time, then the others do. So the order in which
blocks are added, and every bit of the result, is the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...lowering.collaborative import BLOCK, BLOCK_SAMPLES, extended_shape
from ...lowering.temporal import (
    GAIN_NOISE,
    GROUP_SIZE,
    NEAR_ROWS,
    REACH,
    SPREAD,
    THRESHOLD,
    TemporalProfile,
    pyramid_shapes,
)
from ..memory import empty
from ..threads import ranges, run
from .collaborative import mirror
from .executable import address
from .machine_code import kernel
from .temporal_layout import BEGIN, CANDIDATES, FRAMES, MOTION_WORDS, TABLE_WORDS

__all__ = ["TemporalFilter"]

Array = NDArray[Any]

FLOAT, INTEGER = np.dtype(np.float32), np.dtype(np.int32)
BAND = 64  # rows
STRIP = 32  # rows of blocks, or of an image, that a thread works on at a time
assert BAND >= 2 * REACH + BLOCK


@dataclass
class _Frame:
    """A frame, and what is known of it so far."""

    noisy: Array
    images: list[Array]  # the first plane, and its halves
    forward: Array | None = None  # motion to the next frame
    backward: Array | None = None  # motion to the previous one
    pilot: Array | None = None
    sums: list[Array | None] = field(default_factory=lambda: [None, None])  # of both steps


class TemporalFilter:
    """A filter of frames with noise of standard deviation 1, which come one by one.

    Parameters
    ----------
    planes : int
        Number of planes of a frame. Blocks are matched in the first one.
    shape : tuple of int
        Rows and columns of a plane.
    profile : TemporalProfile
    """

    def __init__(self, planes: int, shape: tuple[int, int], profile: TemporalProfile) -> None:
        self.shape, self.profile = shape, profile
        self.spread = min(SPREAD, profile.radius)
        self.extended = (planes, *extended_shape(shape))
        self.frames: dict[int, _Frame] = {}
        self.count = 0
        self.steps = [0, 0]  # frames whose groups are done
        self.results = [0, 0]  # frames that are complete, of pilots and of the result
        self.ended = False
        self.shrinkage = np.repeat(np.array([[THRESHOLD], [GAIN_NOISE]], FLOAT), BLOCK_SAMPLES, axis=1)
        self.variances = np.ones(BLOCK_SAMPLES, FLOAT)

    def push(self, planes: Array) -> Iterator[Array]:
        """Take the next frame, of shape ``(planes, rows, columns)``; yield filtered ones."""
        noisy = empty(self.extended, FLOAT)
        rows, columns = self.shape
        noisy[:, :rows, :columns] = planes
        mirror(noisy, self.shape)
        frame = _Frame(noisy, self._pyramid(noisy[0]))
        before = self.frames.get(self.count - 1)
        if before is not None:
            before.forward, frame.backward = self._motions(before.images, frame.images)
        self.frames[self.count] = frame
        self.count += 1
        yield from self._advance()

    def finish(self) -> Iterator[Array]:
        """Yield the remaining frames, after the last one has come."""
        self.ended = True
        yield from self._advance()

    def _advance(self) -> Iterator[Array]:
        """Do what can be done with the frames that have come."""
        radius = self.profile.radius
        while True:
            # Each step needs frames, or pilots, around its own.
            known = [self.count, self.results[0]]
            due = [
                step
                for step in (0, 1)
                if self.steps[step] < self.count
                and (self.steps[step] + radius < known[step] or (self.ended and known[step] == self.count))
            ]
            if not due:
                return
            self._filter(due)
            for step in due:
                self.steps[step] += 1
                final = self.ended and self.steps[step] == self.count
                while self.results[step] < (self.count if final else self.steps[step] - self.spread):
                    number = self.results[step]
                    result = self._weighted(self.frames[number], step)
                    self.results[step] += 1
                    if step == 0:
                        self.frames[number].pilot = result
                    else:
                        yield result[:, : self.shape[0], : self.shape[1]]
            for number in [n for n in self.frames if n < self.steps[1] - radius]:
                if number < self.results[1]:
                    del self.frames[number]

    # --- groups -----------------------------------------------------------------------------------

    def _filter(self, due: list[int]) -> None:
        """Filter the groups of the next frame of some steps."""
        rows = self.extended[1]
        tables = [(step, *self._tables(step)) for step in due]
        bands = [(begin, min(begin + BAND, rows - BLOCK + 1)) for begin in range(0, rows - BLOCK + 1, BAND)]
        for parity in (0, 1):
            work = [(table, begin, end) for _, table, _ in tables for begin, end in bands[parity::2]]
            if work:
                run(_filter_band, work)

    def _tables(self, step: int) -> tuple[Array, list[Any]]:
        """Return the table of a step, and the arrays whose addresses are in it."""
        number, radius = self.steps[step], self.profile.radius
        after = [n for n in range(number + 1, number + radius + 1) if n < self.count]
        before = [n for n in range(number - 1, number - radius - 1, -1) if n >= 0]
        used = [number, *after, *before]
        frames = [self.frames[n] for n in used]
        fields = [frames[0].forward]
        fields += [self.frames[n - 1].forward for n in after] + [self.frames[n + 1].backward for n in before]
        sums: list[Array | None] = []
        for n, frame in zip(used, frames, strict=True):
            if abs(n - number) > self.spread:
                sums.append(None)
                continue
            if frame.sums[step] is None:
                fresh = empty((2, *self.extended), FLOAT)
                fresh[...] = 0
                frame.sums[step] = fresh
            sums.append(frame.sums[step])
        columns = [
            [address(frame.noisy) for frame in frames],
            [0 if frame.pilot is None else address(frame.pilot) for frame in frames],
            [0 if total is None else address(total[0]) for total in sums],
            [0 if total is None else address(total[1]) for total in sums],
            [0 if motion is None else address(motion) for motion in fields],
        ]
        listed = np.array(columns, np.int64)
        planes, rows, width = self.extended
        table = [
            *(rows, width, 0, 0, planes, 4 * rows * width, self.profile.step, step),
            *(len(frames), len(after), *(address(column) for column in listed)),
            *(rows // BLOCK, width // BLOCK, address(self.shrinkage[step]), address(self.variances)),
        ]
        described = np.zeros(TABLE_WORDS, np.int64)
        described[: len(table)] = table
        return described, [listed, frames, sums]

    def _weighted(self, frame: _Frame, step: int) -> Array:
        """Return the weighted mean of the blocks that were added to a frame."""
        planes, rows, columns = self.extended
        sums, result = frame.sums[step], empty(self.extended, FLOAT)
        assert sums is not None

        def weigh(begin: int, end: int) -> None:
            scratch = empty((end - begin + BLOCK, columns), FLOAT)
            for plane in range(planes):
                places = (address(sums[0, plane]), address(sums[1, plane]), address(result[plane]))
                kernel("weigh_rows", "float32")(*places, 4 * columns, begin, end, columns, address(scratch))
                # Where many blocks are equal, none of a group may cover its reference: 0 / 0.
                strip = result[plane, begin:end]
                np.copyto(strip, frame.noisy[plane, begin:end], where=np.isnan(strip))

        run(weigh, ranges(rows, -(-rows // STRIP)))
        frame.sums[step] = None
        return result

    # --- motion -----------------------------------------------------------------------------------

    def _pyramid(self, plane: Array) -> list[Array]:
        """Return an image and its halves."""
        images = [plane]
        _, height, width = self.extended
        for rows, columns in pyramid_shapes((height, width))[1:]:
            source, half = images[-1], empty((rows, columns), FLOAT)
            width = source.shape[1]

            def halve(begin: int, end: int, source: Array = source, half: Array = half) -> None:
                kernel("halve_rows", "float32")(
                    address(source), source.shape[1], address(half), begin, end, half.shape[1]
                )

            run(halve, ranges(rows, -(-rows * width // (STRIP * 1024))))
            images.append(half)
        return images

    def _motions(self, first: list[Array], second: list[Array]) -> list[Array]:
        """Return the motion from one frame to the next, and back."""
        motions: list[Array | None] = [None, None]
        for x, y in zip(first[::-1], second[::-1], strict=True):
            rows, columns = (n // BLOCK for n in x.shape)
            finer = [empty((rows, columns, 2), INTEGER) for _ in motions]
            work = []
            for source, target, coarse, fine in zip((x, y), (y, x), motions, finer, strict=True):
                shape = (0, 0) if coarse is None else coarse.shape[:2]
                place = 0 if coarse is None else address(coarse)
                table = np.zeros(MOTION_WORDS, np.int64)
                table[:10] = (*x.shape, 0, 0, address(source), address(target), address(fine), place, *shape)
                work += [(table, begin, end) for begin, end in ranges(rows, -(-rows // STRIP))]
            run(_estimate_rows, work)
            motions = list(finer)
        return [motion for motion in motions if motion is not None]


def _filter_band(table: Array, begin: int, end: int) -> None:
    """Filter the groups of rows of references."""
    described = table.copy()
    described[BEGIN : BEGIN + 2] = begin, end
    keys = empty((GROUP_SIZE,), INTEGER)
    candidates = empty((NEAR_ROWS * BLOCK,), FLOAT)
    origins = np.empty((int(table[FRAMES]), 2), np.int64)
    groups = empty((2, GROUP_SIZE, BLOCK, BLOCK), FLOAT)
    memory = (keys, candidates, origins, groups[0], groups[1])
    described[-len(memory) :] = [address(array) for array in memory]
    kernel("filter_references", "float32")(address(described))


def _estimate_rows(table: Array, begin: int, end: int) -> None:
    """Estimate the motion of rows of blocks."""
    described = table.copy()
    described[BEGIN : BEGIN + 2] = begin, end
    candidates = empty((NEAR_ROWS * BLOCK,), FLOAT)
    described[CANDIDATES] = address(candidates)
    kernel("estimate_motion", "float32")(address(described))
