"""Outputs that are complete or marked: a store is written under another name, and renamed at the end.

``out.zarr`` is written as ``out.zarr.partial``. A journal in it lists what is done: first a description of
the work, then one line for each finished region, with the number of its samples that are NaN or infinite if
there are any. The same work resumes from there; other work is refused.
Zarr writes each chunk to a temporary file and renames it, and a region is listed after all its chunks are
written, so a process that is killed leaves no region that is listed and not whole.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import FileError, UndulaError
from ..io.files import short_message

__all__ = ["JOURNAL", "PartialStore", "check_store", "is_incomplete", "is_store", "partial_path"]

JOURNAL = ".undula-journal"
SUFFIX = ".partial"
SCRATCH = ".undula-scratch"  # Folder of arrays that are removed at the end.
STATE = "state.json"  # In that folder.
METADATA = ("zarr.json", ".zarray", ".zgroup")
MAX_SHOWN = 80  # Characters of a part of a description that an error shows.
PREPARED, COMPLETE = "prepared", "complete"


def is_store(path: str | Path) -> bool:
    """Return whether a folder is a Zarr group or array."""
    return any((Path(path) / name).is_file() for name in METADATA)


def is_incomplete(path: str | Path) -> bool:
    """Return whether a folder is an output that was not completed."""
    try:
        lines = (Path(path) / JOURNAL).read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return COMPLETE not in lines


def partial_path(target: Path) -> Path:
    """Return where a store is written until it is complete."""
    return target.with_name(target.name + SUFFIX)


class PartialStore:
    """A store that is being written; a context manager that completes it if no error is raised.

    Parameters
    ----------
    target : Path
        The folder of the store.
    work : mapping
        Description of the work, in JSON's types. Only the same work is resumed.
    overwrite : bool
        Whether to replace a store that exists, when the new one is complete.
    resume : bool
        Whether to go on with what an earlier run has left.
    known : bool, default True
        Whether the description says all that the result depends on. What other work leaves is of no use: it
        is removed, after an error or when the work begins again.

    Attributes
    ----------
    path : Path
        Where the store is written, as a full path that workers can use.
    prepared : bool
        Whether all arrays were created.
    done : set of (int, int)
        Stages and numbers of the regions that are written.
    non_finite : int
        Samples of these regions that are NaN or infinite, as far as they were counted.
    """

    def __init__(
        self, target: Path, work: Mapping[str, Any], overwrite: bool, resume: bool, known: bool = True
    ) -> None:
        self.target, self.work, self.known = target, json.loads(json.dumps(work)), known
        self.path = partial_path(target).absolute()
        self.overwrite, self.resume = overwrite, resume
        self.prepared, self.done, self.non_finite = False, set[tuple[int, int]](), 0
        self._file: int | None = None

    @property
    def begun(self) -> bool:
        """Whether an interrupted run leaves anything for the next one."""
        return bool(self.done) or self._state.is_file()

    @property
    def _state(self) -> Path:
        return self.scratch / STATE

    def save(self, state: Any) -> None:
        """Keep what is known before regions can be written, in JSON's types."""
        self.scratch.mkdir(exist_ok=True)
        temporary = self._state.with_suffix(".new")
        temporary.write_text(json.dumps(state), encoding="utf-8")
        os.replace(temporary, self._state)

    def saved(self) -> Any:
        """Return what was saved last; None if there is nothing."""
        try:
            return json.loads(self._state.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    @property
    def scratch(self) -> Path:
        """Folder of arrays that are removed at the end."""
        return self.path / SCRATCH

    def __enter__(self) -> PartialStore:
        check_store(self.target, self.overwrite)
        try:
            if self.path.exists():
                self._continue()
            if self._file is None:
                self.path.mkdir(parents=True)
                self._open()
                self._write(json.dumps(self.work))
        except OSError as error:
            self._close()
            if isinstance(error, FileError):
                raise
            raise FileError(f"cannot write {self.path}: {error.strerror or error}") from None
        return self

    def _continue(self) -> None:
        """Read the journal of an earlier run, or remove what it left."""
        if not (self.path / JOURNAL).is_file():
            raise FileError(
                f"{self.path} exists and has no journal of Undula; remove it or name another output"
            )
        self._open()
        text = (self.path / JOURNAL).read_text(encoding="utf-8")
        first, *lines = text.split("\n")[:-1] or [""]  # The last line may be incomplete.
        if self.resume and PREPARED in lines:
            earlier = json.loads(first)
            if earlier == self.work and self.known:
                self.prepared = True
                for line in lines:
                    if line not in (PREPARED, COMPLETE):
                        stage, number, *counted = map(int, line.split())
                        self.done.add((stage, number))
                        self.non_finite += sum(counted)
                assert self._file is not None
                os.ftruncate(self._file, len(text[: text.rindex("\n") + 1].encode()))
                return
            if earlier != self.work and not self.overwrite:
                difference = _difference(earlier, self.work)
                raise FileError(
                    f"{self.path} is the half-written output of other work ({difference}); run the"
                    " earlier command again to complete it, or pass overwrite=True to start again"
                )
        self._close()
        shutil.rmtree(self.path)

    def _open(self) -> None:
        self._file = os.open(self.path / JOURNAL, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FileError(f"another process is writing {self.path}; wait for it") from None
            except OSError:  # Some file systems have no locks.
                pass

    def _write(self, line: str) -> None:
        assert self._file is not None
        content = f"{line}\n".encode()
        if os.write(self._file, content) < len(content):
            raise FileError(f"cannot write {self.path / JOURNAL}: no space left on the disk")

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Report errors while arrays are created as errors of the output; then record that they were."""
        try:
            yield
        except UndulaError:
            raise
        except Exception as error:  # Zarr raises errors of many kinds.
            raise FileError(f"cannot write {self.target}: {short_message(error)}") from None
        self._write(PREPARED)
        self.prepared = True

    def record(self, stage: int, number: int, non_finite: int = 0) -> None:
        """Record that a region is written, and how many of its samples are NaN or infinite."""
        self._write(f"{stage} {number} {non_finite}" if non_finite else f"{stage} {number}")
        self.done.add((stage, number))
        self.non_finite += non_finite

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._complete()
        except OSError as failure:
            raise FileError(f"cannot write {self.target}: {failure.strerror or failure}") from None
        finally:
            self._close()
            if error is not None and not (self.begun and self.known):
                shutil.rmtree(self.path, ignore_errors=True)

    def _complete(self) -> None:
        """Remove what only this run needed, and give the store its name."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        for leftover in self.path.rglob(f"*{SUFFIX}"):  # Chunks of a process that was killed.
            if leftover.is_file():
                leftover.unlink()
        self._write(COMPLETE)
        replaced = None
        if self.target.exists():
            check_store(self.target, self.overwrite)
            replaced = self.target.with_name(f".{self.target.name}-replaced-{os.getpid()}")
            os.rename(self.target, replaced)
        os.rename(self.path, self.target)
        (self.target / JOURNAL).unlink()
        if replaced is not None:
            shutil.rmtree(replaced, ignore_errors=True)


def _difference(earlier: Any, now: Any, name: str = "the work") -> str:
    """Say where two descriptions differ first."""
    if isinstance(earlier, dict) and isinstance(now, dict):
        for key in {**now, **earlier}:
            if earlier.get(key) != now.get(key):
                return _difference(earlier.get(key), now.get(key), key)
    texts = repr(earlier), repr(now)
    if max(map(len, texts)) > MAX_SHOWN:
        return f"{name} is another"
    return f"{name} was {texts[0]}, and is {texts[1]}"


def check_store(target: Path, overwrite: bool) -> None:
    """Raise an error if an output cannot be written, or exists and may not be replaced."""
    if not target.exists():
        return
    if not is_store(target):
        raise FileError(f"cannot write {target}: it exists and is not a Zarr store; name another output")
    if not overwrite:
        raise FileError(
            f"{target} exists and would be lost; pass overwrite=True to replace it, or name another output"
        )
