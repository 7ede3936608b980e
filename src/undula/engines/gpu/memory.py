"""The scratch memory of graphs: the arena, and the tables that are uploaded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Arena", "Tables"]

ALIGNMENT_BYTES = 256  # of arrays in the arena


class Arena:
    """Memory that arrays share in turn."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # pieces, by their place

    def take(self, size: int) -> int:
        """Return the place of a piece of memory, in bytes."""
        size = max(1, -(-size // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
        for k, (begin, end) in enumerate(self._free):
            if end - begin >= size:
                self._free[k : k + 1] = [(begin + size, end)] if end - begin > size else []
                return begin
        begin = self.size
        if self._free and self._free[-1][1] == self.size:
            begin = self._free.pop()[0]
        self.size = begin + size
        return begin

    def give_back(self, begin: int, size: int) -> None:
        """Free a piece of memory."""
        size = max(1, -(-size // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
        pieces: list[tuple[int, int]] = []
        for piece in sorted([*self._free, (begin, begin + size)]):
            if pieces and pieces[-1][1] == piece[0]:
                pieces[-1] = (pieces[-1][0], piece[1])
            else:
                pieces.append(piece)
        self._free = pieces


class Tables:
    """The memory that is uploaded once, while it is filled."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, np.ndarray[Any, Any]]] = []
        self.size = 8  # bytes

    def reserve(self, size: int) -> int:
        """Return the place of so many bytes, which are zero."""
        begin = self.size
        self.size += -(-size // 8) * 8
        return begin

    def fill(self, begin: int, values: Any, dtype: str) -> None:
        """Set bytes that were reserved."""
        self._parts.append((begin, np.asarray(values).astype(dtype).reshape(-1).view(np.uint8)))

    def add(self, values: Sequence[float], dtype: str) -> int:
        """Return the place of numbers, in elements."""
        itemsize = np.dtype(dtype).itemsize
        begin = self.reserve(len(values) * itemsize)
        self.fill(begin, values, dtype)
        return begin // itemsize

    def image(self) -> np.ndarray[Any, Any]:
        """Return all bytes."""
        image = np.zeros(self.size, np.uint8)
        for begin, values in self._parts:
            image[begin : begin + values.size] = values
        return image
