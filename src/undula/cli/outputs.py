"""Protection of existing files: no command replaces a file unless ``--overwrite`` is given.

Commands check all their outputs before they start to work, so that an error changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from ..errors import FileError
from ..io.files import detect_kind

PIPE = "-"  # Standard input or output.
Identity = tuple[int, int] | str
_KIND_NAMES = {"npy": "NumPy", "npz": "NumPy", "jpeg2000": "JPEG 2000", "webp": "WebP", "video": "video"}


def identity(path: str | Path) -> Identity:
    """Return a key that is equal for two paths if and only if they lead to the same file."""
    try:
        status = os.stat(path)
    except OSError:
        return os.path.abspath(path)
    return status.st_dev, status.st_ino


def check_outputs(
    *outputs: str | Path | None,
    overwrite: bool,
    inputs: Iterable[str | Path] = (),
    advice: str = "name another output",
) -> None:
    """Raise an error if an output exists, is a folder or an input, or is named twice.

    Parameters
    ----------
    *outputs : path or None
        Files that the command is going to write. None and standard output are ignored.
    overwrite : bool
        Whether existing files may be replaced. Inputs, folders and other outputs never are.
    inputs : iterable of paths, optional
        Files that the command reads.
    advice : str, optional
        What the user can do instead of overwriting, for the error message.
    """
    input_keys = {identity(path) for path in inputs if str(path) != PIPE}
    output_keys: set[Identity] = set()
    for output in outputs:
        if output is None or str(output) == PIPE:
            continue
        path, key = Path(output), identity(output)
        if key in input_keys:
            raise FileError(f"{path} is an input and cannot be replaced; name another output")
        if key in output_keys:
            raise FileError(f"{path} is named for two outputs; name another file for one of them")
        if path.is_dir():
            raise FileError(f"cannot write {path}: it is a folder; name a file in it")
        if os.path.lexists(path) and not overwrite:
            raise FileError(
                f"{path} exists ({_describe(path)}) and would be lost; add --overwrite (-y) to replace it,"
                f" or {advice}"
            )
        output_keys.add(key)


def _describe(path: Path) -> str:
    """Describe an existing file by its kind, size and date."""
    if path.is_symlink():
        return f"a link to {os.readlink(path)}"
    status = path.stat()
    try:
        kind = detect_kind(path)
    except FileError:  # The file is empty or cannot be read.
        kind = None
    name = f"{_KIND_NAMES.get(kind, kind.upper())} file" if kind else "file"
    date = datetime.fromtimestamp(status.st_mtime).strftime("%Y-%m-%d %H:%M")
    return f"a {name} of {status.st_size:,} bytes, modified on {date}"
