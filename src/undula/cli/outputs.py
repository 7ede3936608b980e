"""The rule for every file that a command writes: nothing that exists is replaced unless the caller says so.

Commands check all their outputs before any work is done, so that an error leaves everything as it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from ..errors import FileError
from ..io.files import detect_kind

__all__ = ["PIPE", "Identity", "check_outputs", "identity"]

PIPE = "-"  # standard input or output
Identity = tuple[int, int] | str
_NAMES = {"npy": "NumPy", "npz": "NumPy", "jpeg2000": "JPEG 2000", "webp": "WebP", "video": "video"}


def identity(path: str | Path) -> Identity:
    """What two paths have in common if and only if they lead to the same file."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.abspath(path)
    return found.st_dev, found.st_ino


def check_outputs(
    *outputs: str | Path | None,
    overwrite: bool,
    inputs: Iterable[str | Path] = (),
    advice: str = "name another output",
) -> None:
    """Raises an error for an output that exists, is a folder, is an input, or is another output as well.

    Parameters
    ----------
    *outputs : path, optional
        Files that a command is going to write; None and standard output are left out.
    overwrite : bool
        Whether files that exist may be replaced. Inputs, folders and other outputs never are.
    inputs : paths
        Files that the command reads.
    advice : str
        What the caller can do instead of overwriting.
    """
    read = {identity(path) for path in inputs if str(path) != PIPE}
    seen: set[Identity] = set()
    for output in outputs:
        if output is None or str(output) == PIPE:
            continue
        path, key = Path(output), identity(output)
        if key in read:
            raise FileError(f"{path} is an input and is not replaced; name another output")
        if key in seen:
            raise FileError(
                f"{path} would be written twice, by two outputs; name another file for one of them"
            )
        if path.is_dir():
            raise FileError(f"{path} is a folder, and a file is written here; name a file in it")
        if os.path.lexists(path) and not overwrite:
            raise FileError(
                f"{path} exists ({_described(path)}) and would be lost; add --overwrite (-y) to replace it,"
                f" or {advice}"
            )
        seen.add(key)


def _described(path: Path) -> str:
    """What would be lost: the kind of file, its size and date."""
    if path.is_symlink():
        return f"a link to {os.readlink(path)}"
    about = path.stat()
    try:
        kind = detect_kind(path)
    except FileError:  # (an empty file is no kind of file)
        kind = None
    name = f"{_NAMES.get(kind, kind.upper())} file" if kind else "file"
    changed = datetime.fromtimestamp(about.st_mtime).strftime("%Y-%m-%d %H:%M")
    return f"a {name} of {about.st_size:,} bytes, changed on {changed}"
