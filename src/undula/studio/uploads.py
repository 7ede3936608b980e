"""Files that visitors send: no longer than allowed, and gone again unless they could be opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import FileError
from .room import ServerBudget

__all__ = ["Arrival", "TooLongError", "arriving"]


class TooLongError(FileError):
    """A file is larger than a visitor may send."""


@dataclass
class Arrival:
    """A file on its way; the disk that it takes is counted while it comes."""

    room: ServerBudget
    path: Path
    taken: int = 0
    kept: bool = False

    async def receive(self, chunks: AsyncIterator[bytes], length: int = 0) -> None:
        """Writes what comes, as long as it is not too long; ``length`` is how long it says that it is."""
        most = self.room.limits.upload
        wrong = TooLongError(
            f"it is larger than {most / 1e6:,.0f} MB, which is the limit of this Studio (--max-upload)"
        )
        if length > most:
            raise wrong
        with self.path.open("wb") as file:
            async for chunk in chunks:
                if self.taken + len(chunk) > most:
                    raise wrong
                self.room.store(len(chunk))
                self.taken += len(chunk)
                file.write(chunk)
        if self.taken == 0:
            raise FileError("the file is empty")

    def keep(self) -> None:
        """It is open: whoever has it removes it."""
        self.kept = True


@contextmanager
def arriving(room: ServerBudget, path: Path) -> Iterator[Arrival]:
    """A file that is removed, with all it has taken, if anything keeps it from being opened."""
    arrival = Arrival(room, path)
    try:
        yield arrival
    finally:
        if not arrival.kept:
            path.unlink(missing_ok=True)
            room.discard(arrival.taken)
