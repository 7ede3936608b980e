"""Tasks that filter an array in a store: each reads the windows that it needs, and writes a part.

A task has all that a worker needs, in types that are quick to send.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..filters.windows import CheckpointBlock, FilteredBlock, StatisticPart
from ..lowering.windows import Interval
from .opening import open_array, read_window
from .writing import write_region

__all__ = [
    "CheckpointTask",
    "FilterPart",
    "FilterTask",
    "LocalPass",
    "Segments",
    "StatisticTask",
    "StoredWindow",
    "run_task",
]

Segments = tuple[Sequence[Interval], ...]


@dataclass(frozen=True)
class StoredWindow:
    """A window of an array in a store."""

    token: str
    location: str
    segments: Segments

    def read(self) -> Any:
        """Return the samples."""
        return read_window(open_array(self.location, self.token), self.segments)


@dataclass(frozen=True)
class StatisticTask:
    """The contribution of the window of a block to a statistic."""

    window: StoredWindow
    part: StatisticPart
    known: Sequence[Any]
    state: Any
    given: Sequence[StoredWindow]

    def __call__(self) -> Any:
        """Read the window, and return the contribution."""
        given = [window.read() for window in self.given]
        return self.part([self.window.read()], self.known, self.state, given)


@dataclass(frozen=True)
class CheckpointTask:
    """A part of a checkpoint."""

    window: StoredWindow | None
    block: CheckpointBlock
    known: Sequence[Any]
    given: Sequence[StoredWindow]
    token: str
    target: str
    region: tuple[slice, ...]

    def __call__(self) -> None:
        """Read windows, and write the part."""
        image = None if self.window is None else self.window.read()
        values = self.block(image, self.known, [window.read() for window in self.given])
        write_region(self.target, self.token, self.region, values)


@dataclass(frozen=True)
class LocalPass:
    """A pass over an image that is in memory."""

    part: StatisticPart
    window: tuple[slice, ...]
    is_last: bool


@dataclass(frozen=True)
class FilterPart:
    """A part of a region of the filtered image.

    Parameters
    ----------
    window : StoredWindow
    block : FilteredBlock
    inner : tuple of slice
        The part in the block.
    place : tuple of slice
        The part in the region.
    given : sequence of StoredWindow
        The windows of checkpoints.
    """

    window: StoredWindow
    block: FilteredBlock
    inner: tuple[slice, ...]
    place: tuple[slice, ...]
    given: Sequence[StoredWindow]

    def samples(self, known: Sequence[Any], passes: Sequence[LocalPass]) -> Any:
        """Read the window, and return the filtered samples."""
        x = self.window.read()
        known, state = list(known), None
        for each in passes:
            statistic = each.part.statistic
            state = statistic.finished([each.part([x[each.window]], known, state)], state)
            if each.is_last:
                known.append(state)
                state = None
        return np.asarray(self.block([x], known, [window.read() for window in self.given])[self.inner])


@dataclass(frozen=True)
class FilterTask:
    """A region of the filtered image, which is written at once.

    Parameters
    ----------
    token, target : str
    region : tuple of slice
    parts : sequence of FilterPart
    known : sequence
        The statistics of the image.
    passes : sequence of LocalPass
        How they are computed, if the window of the only part is the image.
    """

    token: str
    target: str
    region: tuple[slice, ...]
    parts: Sequence[FilterPart]
    known: Sequence[Any]
    passes: Sequence[LocalPass]

    def __call__(self) -> None:
        """Filter all parts, and write the region."""
        if len(self.parts) == 1:
            values = self.parts[0].samples(self.known, self.passes)
        else:
            shape = tuple(part.stop - part.start for part in self.region)
            values = np.empty(shape, open_array(self.target, self.token, True).dtype)
            for part in self.parts:
                values[part.place] = part.samples(self.known, self.passes)
        write_region(self.target, self.token, self.region, values)


def run_task(task: StatisticTask | CheckpointTask | FilterTask) -> Any:
    """Run a task; a function that workers import."""
    return task()
