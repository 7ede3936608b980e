"""Details of a level as one tensor, with its bands along an axis.

Layers return details in this form. Kernels write and read the bands where they are in it, so that they are
copied neither on the way forward nor on the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...lowering.nesting import details_by_level
from ...lowering.spec import BandTree

__all__ = ["Stacking"]

Shape = tuple[int, ...]


class Stacking(NamedTuple):
    """How the bands of a level become one tensor.

    Parameters
    ----------
    axis : int
        The axis of the stacked tensor along which its bands are.
    places : tuple of int
        The index of each band along that axis, in the order of keys.
    """

    axis: int
    places: tuple[int, ...]

    def stack(self, bands: Sequence[Tensor]) -> list[Tensor]:
        """Return the approximation, and one tensor for each level, coarsest first, of bands in flat order."""
        order = np.argsort(self.places)
        levels = details_by_level(bands[1:], len(self.places))
        return [bands[0], *[torch.stack([level[k] for k in order], self.axis) for level in levels]]

    def unstack(self, parts: Iterable[Any]) -> list[Any]:
        """Return bands in flat order, as views of the approximation and of the levels; None for None."""
        low, *levels = parts
        bands = [low]
        for level in levels:
            if level is None:
                bands += [None] * len(self.places)
                continue
            stacked = (
                level.unbind(self.axis) if isinstance(level, Tensor) else np.moveaxis(level, self.axis, 0)
            )
            bands += [stacked[place] for place in self.places]
        return bands

    def allocate(self, tree: BandTree, empty: Callable[[Shape], Any]) -> list[Any]:
        """Return the approximation and the levels of a transform, made by ``empty`` from their shapes."""
        low, *details = tree.flat_shapes
        count = len(self.places)
        shapes = details[::count]
        return [empty(low), *[empty((*s[: self.axis], count, *s[self.axis :])) for s in shapes]]
