"""Blocks along one axis: their samples, their windows, and the coefficients that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...lowering.spec import BandTree
from ...lowering.windows import Interval, LineTransform, LineWindow

__all__ = ["AxisBlock", "axis_blocks", "line_transforms"]


def line_transforms(tree: BandTree) -> list[LineTransform | None]:
    """Return the transform along each axis of the samples of a tree; None along those that stay."""
    spec = tree.spec
    lines: list[LineTransform | None] = [None] * len(tree.sample_shapes[0])
    for axis, wavelet, mode in zip(spec.axes, spec.wavelets, spec.modes, strict=True):
        lengths = (*(shape[axis] for shape in tree.sample_shapes), tree.approximation_shape[axis])
        lines[axis] = LineTransform(wavelet, mode, spec.lifted, lengths)
    return lines


@dataclass(frozen=True)
class AxisBlock:
    """A block along one axis: its samples, and the window that it is computed from."""

    samples: Interval
    window: LineWindow

    def coefficients(self, line: LineTransform | None, level: int, letter: str) -> Interval:
        """Return the coefficients of a band that belong to the block."""
        return self.samples if line is None else line.results(level, letter == "d", *self.samples)

    def result(self, line: LineTransform | None, level: int, letter: str) -> slice:
        """Return where these coefficients are in the window."""
        start, stop = self.coefficients(line, level, letter)
        place = 0 if line is None else self.window.place(level, start)
        return slice(place, place + stop - start)


def axis_blocks(line: LineTransform | None, places: Sequence[int], back: bool) -> list[AxisBlock]:
    """Return the blocks along an axis, given where they begin and the end of the last one."""
    blocks = []
    for start, stop in pairwise(places):
        if line is None:
            window = LineWindow(stop - start, ((start, stop),))
        else:
            window = line.inverse_window(start, stop) if back else line.window(start, stop)
        blocks.append(AxisBlock((start, stop), window))
    return blocks
