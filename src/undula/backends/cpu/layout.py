"""Sizes that kernels and those who find room for them agree on."""

from __future__ import annotations

__all__ = ["BLOCK", "CHUNK", "SHORT", "STRIP"]

CHUNK = 512  # Samples lifted at a time along a row: what they need stays in the first cache.
SHORT = 1024  # Places of a row below which a copy of all its coefficients is the least work.
BLOCK = 16  # Rows of a second level made at a time: what they need of the first stays in a cache.
STRIP = 2048  # Samples side by side that are worked on from top to bottom, where rows are no lines.
