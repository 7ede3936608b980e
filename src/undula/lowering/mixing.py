"""Samples that are made of others: planes that are sums of channels, and the inverse; rows in fragments."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Mixing", "RowFragments", "Unmixing"]


class Mixing(NamedTuple):
    """How planes are made of channels.

    Parameters
    ----------
    weights : tuple of tuples
        For each plane, the weight of each channel.
    offsets : tuple
        Added to each sum.
    shifts : tuple of int
        For integers, the number of bits by which sums are shifted to the right.
    """

    weights: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]
    shifts: tuple[int, ...]

    @property
    def planes(self) -> int:
        """How many there are."""
        return len(self.weights)


class RowFragments(NamedTuple):
    """Rows that are in fragments at different places in memory.

    Parameters
    ----------
    counts : tuple of int
        The number of samples of each fragment.
    """

    counts: tuple[int, ...]


class Unmixing(NamedTuple):
    """How three channels are made of planes again: by a matrix; without one, as the reversible space does.

    Where there is a fourth channel, it is the fourth plane.
    """

    matrix: tuple[tuple[float, ...], ...] | None
