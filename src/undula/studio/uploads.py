"""Files that visitors upload: limited in size, and removed unless they can be opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import FileError
from .budget import ServerBudget

__all__ = ["Upload", "UploadTooLargeError", "receiving"]


class UploadTooLargeError(FileError):
    """An upload is larger than this Studio allows."""


@dataclass
class Upload:
    """A file that is being received; its disk space is accounted for as it arrives."""

    budget: ServerBudget
    path: Path
    received: int = 0
    kept: bool = False

    async def receive(self, chunks: AsyncIterator[bytes], length: int = 0) -> None:
        """Write the chunks to the file; ``length`` is the declared number of bytes, if any."""
        limit = self.budget.limits.upload
        too_large = UploadTooLargeError(f"it is larger than {limit / 1e6:,.0f} MB, the limit of --max-upload")
        if length > limit:
            raise too_large
        with self.path.open("wb") as file:
            async for chunk in chunks:
                if self.received + len(chunk) > limit:
                    raise too_large
                self.budget.store(len(chunk))
                self.received += len(chunk)
                file.write(chunk)
        if self.received == 0:
            raise FileError("the file is empty")

    def keep(self) -> None:
        """Keep the file: from now on the session removes it."""
        self.kept = True


@contextmanager
def receiving(budget: ServerBudget, path: Path) -> Iterator[Upload]:
    """Receive an upload; unless it is kept, the file is removed and its disk space released."""
    upload = Upload(budget, path)
    try:
        yield upload
    finally:
        if not upload.kept:
            path.unlink(missing_ok=True)
            budget.discard(upload.received)
