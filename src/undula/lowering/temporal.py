"""Collaborative filtering of video: the groups of a frame have blocks of the frames around it.

As in :mod:`.collaborative`, similar blocks are transformed, shrunk and inverted together, in two steps. Here
they come from several frames. They are looked for along the motion of the reference::

    frame      t - 1                  t                     t + 1                  t + 2
    window     place + motion         around the            place + motion         best block + motion
                                      reference

*Motion* is a displacement from a frame to the next or to the previous one, for each block of 8×8 samples. It
is estimated from coarse to fine. It only needs to be good enough for the window around it: every block of a
window may become one of the group, and blocks that do not match are not chosen. So what is hidden, what
appears and what cuts separate is filtered within its frame, and leaves no trace in others.

A filtered block is written back to its frame if that is at most ``SPREAD`` frames away. Noise has the
standard deviation 1. This module has the parameters, and the meaning in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .collaborative import (
    BLOCK,
    LEAST_GAIN,
    NUMBER_BITS,
    WINDOW_TAPS,
    cosine_matrix,
    extended_shape,
    haar_matrix,
    wavelet_matrix,
)

__all__ = [
    "COARSE_WINDOWS",
    "COLUMNS",
    "GAIN_NOISE",
    "GROUP_SIZE",
    "MAX_FRAMES",
    "NEAR_ROWS",
    "OTHER_ROWS",
    "REACH",
    "SPREAD",
    "THRESHOLD",
    "WINDOW_BITS",
    "TemporalProfile",
    "filter_clip",
    "pyramid_shapes",
]

Array = NDArray[Any]

GROUP_SIZE = 16  # blocks
COLUMNS = 8  # of a window: 4 places to the left of its centre, and 3 to the right
NEAR_ROWS, OTHER_ROWS = 9, 5  # of the windows in the frame of the reference, and in other frames
REACH = 28  # rows from a reference to the blocks of its group, at most
SPREAD = 2  # frames
THRESHOLD = 2.9
GAIN_NOISE = 1.0  # as in the profiles of images
WINDOW_BITS = 7  # of the number of a block within a window
MAX_FRAMES = (1 << NUMBER_BITS - WINDOW_BITS) - 1  # frames around that of the reference
COARSE_WINDOWS = tuple((down, right) for down in (-9, 0) for right in (-12, -4, 4))  # first places of windows
MAX_PYRAMID = 4  # images
LEAST_LEVEL = 32  # samples along an axis of an image that is halved


@dataclass(frozen=True)
class TemporalProfile:
    """How a video is filtered.

    Parameters
    ----------
    radius : int
        Number of frames before and after a frame whose blocks it gets.
    step : int, default 4
        Samples from one reference to the next.
    """

    radius: int
    step: int = 4


def pyramid_shapes(shape: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the shapes of an image and of its halves, in which motion is estimated."""
    shapes = [shape]
    while min(shapes[-1]) >= LEAST_LEVEL and len(shapes) < MAX_PYRAMID:
        rows, columns = shapes[-1]
        shapes.append((rows // 2, columns // 2))
    return shapes


def filter_clip(frames: Array, profile: TemporalProfile) -> Array:
    """Filter frames of shape ``(frames, planes, rows, columns)``; blocks are matched in the first plane."""
    shape = frames.shape[2:]
    added = [(0, extended - n) for n, extended in zip(shape, extended_shape(shape), strict=True)]
    noisy = np.pad(frames, ((0, 0), (0, 0), *added), mode="symmetric")
    images = [_pyramid(frame[0]) for frame in noisy]
    motions = {
        (t, t + way): _motion(images[t], images[t + way])
        for t in range(len(noisy))
        for way in (-1, 1)
        if 0 <= t + way < len(noisy)
    }
    pilot = _filtered(noisy, None, motions, profile)
    result = _filtered(noisy, pilot, motions, profile)
    return np.asarray(result[:, :, : shape[0], : shape[1]])


def _filtered(
    noisy: Array, pilot: Array | None, motions: dict[Any, Array], profile: TemporalProfile
) -> Array:
    """Return the result of one step: the first one, if there is no pilot."""
    matrix = cosine_matrix() if pilot is not None else wavelet_matrix()
    inverse, haar = np.linalg.inv(matrix), haar_matrix(GROUP_SIZE)
    window = np.outer(WINDOW_TAPS, WINDOW_TAPS)
    matched = (noisy if pilot is None else pilot)[:, 0].astype(np.float32)
    total, weights = np.zeros(noisy.shape), np.zeros(noisy.shape)

    def coefficients(clip: Array, k: int, group: list[tuple[int, int, int]]) -> Array:
        blocks = np.array([clip[t, k, y : y + BLOCK, x : x + BLOCK] for t, y, x in group], float)
        return np.asarray(np.einsum("ng,gij->nij", haar, matrix @ blocks @ matrix.T))

    rows, columns = noisy.shape[2:]
    for t in range(len(noisy)):
        for top in references(rows, profile.step):
            for left in references(columns, profile.step):
                group = _group(matched, motions, t, top, left, profile.radius)
                for k in range(noisy.shape[1]):
                    values = coefficients(noisy, k, group)
                    if pilot is None:
                        gains = (np.abs(values) > THRESHOLD).astype(float)
                        weight = 1 / max(1.0, gains.sum())
                    else:
                        energy = coefficients(pilot, k, group) ** 2
                        gains = energy / (energy + GAIN_NOISE)
                        weight = 1 / max(LEAST_GAIN, (gains**2).sum())
                    blocks = inverse @ np.einsum("gn,nij->gij", haar.T, values * gains) @ inverse.T
                    for (frame, y, x), block in zip(group, blocks, strict=True):
                        if abs(frame - t) <= SPREAD:
                            total[frame, k, y : y + BLOCK, x : x + BLOCK] += weight * window * block
                            weights[frame, k, y : y + BLOCK, x : x + BLOCK] += weight * window
    # Where many blocks are equal, none of a group may cover its reference.
    return np.where(weights > 0, total / np.where(weights > 0, weights, 1), noisy)


def references(count: int, step: int) -> list[int]:
    """Return the places of references along an axis, which cover all samples."""
    return [*range(0, count - BLOCK, step), count - BLOCK]


def _group(
    matched: Array, motions: dict[Any, Array], t: int, top: int, left: int, radius: int
) -> list[tuple[int, int, int]]:
    """Return the frame, the row and the column of the blocks that are most similar to a reference."""
    rows, columns = matched.shape[1:]
    reference = matched[t, top : top + BLOCK, left : left + BLOCK]
    after = range(t + 1, min(len(matched), t + radius + 1))
    before = range(t - 1, max(-1, t - radius - 1), -1)
    candidates = []
    for slot, frame in enumerate([t, *after, *before]):
        if slot == 0 or abs(frame - t) == 1:
            y, x = top, left
        if frame != t:
            field = motions[frame + (1 if frame < t else -1), frame]
            i, j = ((p + BLOCK // 2) // BLOCK for p in (y, x))
            down, right = field[min(i, field.shape[0] - 1), min(j, field.shape[1] - 1)]
            y, x = y + down, x + right
        height = NEAR_ROWS if frame == t else OTHER_ROWS
        lowest, highest = max(0, top - REACH), min(rows - BLOCK, top + REACH)
        y = min(max(y - height // 2, lowest), highest - height + 1)
        x = min(max(x - COLUMNS // 2, 0), columns - BLOCK - COLUMNS + 1)
        keys = _keys(reference, matched[frame], y, x, height, slot)
        best = int(np.argmin(keys))
        places = [(y + k // COLUMNS, x + k % COLUMNS) for k in range(len(keys))]
        candidates += [(key, (frame, *place)) for key, place in zip(keys, places, strict=True)]
        y, x = places[best]
    candidates.sort()
    return [place for _, place in candidates[:GROUP_SIZE]]


def _keys(reference: Array, image: Array, y: int, x: int, height: int, slot: int) -> list[int]:
    """Return the keys of the blocks of a window: leading bits of the distance, then their number."""
    part = image[y : y + height + BLOCK - 1, x : x + COLUMNS + BLOCK - 1]
    distances = _distances(reference, part).reshape(-1)
    numbers = (slot << WINDOW_BITS) + np.arange(len(distances), dtype=np.int32)
    return [int(key) for key in (distances.view(np.int32) >> NUMBER_BITS << NUMBER_BITS) | numbers]


def _distances(reference: Array, image: Array) -> Array:
    blocks = sliding_window_view(image, (BLOCK, BLOCK))
    return np.ascontiguousarray(((blocks - reference) ** 2).sum(axis=(2, 3)), np.float32)


# --- motion ---------------------------------------------------------------------------------------


def _pyramid(image: Array) -> list[Array]:
    images = [image.astype(np.float32)]
    for rows, columns in pyramid_shapes(image.shape)[1:]:
        pairs = images[-1][: 2 * rows, : 2 * columns].reshape(rows, 2, columns, 2)
        images.append((pairs.sum(axis=(1, 3)) / 2).astype(np.float32))
    return images


def _motion(source: Sequence[Array], target: Sequence[Array]) -> Array:
    """Return the displacements of all blocks from one image to another."""
    motion = None
    for x, y in zip(source[::-1], target[::-1], strict=True):
        rows, columns = (n // BLOCK for n in x.shape)
        finer = np.empty((rows, columns, 2), np.int64)
        for i in range(rows):
            for j in range(columns):
                finer[i, j] = _block_motion(x, y, motion, i, j)
        motion = finer
    assert motion is not None
    return motion


def _block_motion(source: Array, target: Array, coarse: Array | None, i: int, j: int) -> tuple[int, int]:
    """Return the displacement of a block, near one of those of the coarser images."""
    top, left = BLOCK * i, BLOCK * j
    limits = [n - BLOCK for n in source.shape]
    reference = source[top : top + BLOCK, left : left + BLOCK]

    def key(down: int, right: int) -> np.int32:
        y, x = min(max(top + down, 0), limits[0]), min(max(left + right, 0), limits[1])
        distance = _distances(reference, target[y : y + BLOCK, x : x + BLOCK])
        return np.int32(distance.view(np.int32)[0, 0] >> NUMBER_BITS)

    if coarse is None:
        windows, height = [(top + down, left + right) for down, right in COARSE_WINDOWS], NEAR_ROWS
    else:
        ways = [(0, 0), *((0, 2 * (j % 2) - 1), (2 * (i % 2) - 1, 0))]
        near = [(min(i // 2 + a, len(coarse) - 1), min(j // 2 + b, coarse.shape[1] - 1)) for a, b in ways]
        moves = [(0, 0), *(tuple(2 * coarse[max(a, 0), max(b, 0)]) for a, b in near)]
        down, right = moves[int(np.argmin([key(*move) for move in moves]))]
        windows, height = [(top + down - OTHER_ROWS // 2, left + right - COLUMNS // 2)], OTHER_ROWS
    nearest = []
    for number, (y, x) in enumerate(windows):
        y = min(max(y, 0), limits[0] - height + 1)
        x = min(max(x, 0), limits[1] - COLUMNS + 1)
        keys = _keys(reference, target, y, x, height, number)
        k = int(np.argmin(keys))
        nearest.append((keys[k], y + k // COLUMNS - top, x + k % COLUMNS - left))
    _, down, right = min(nearest)
    return down, right
