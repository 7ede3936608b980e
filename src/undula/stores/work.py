"""Stages of work on stores: run region by region, resumed where they were left, with errors in one line."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..engines.threads import get_num_threads
from ..errors import ArgumentError, FileError, SchedulerError, UndulaError
from ..io.files import short_message
from ..wavelets import as_wavelet
from .opening import SourceArray
from .partial import PartialStore
from .running import TaskRunner, ThreadRunner

__all__ = [
    "Progress",
    "RegionStage",
    "StorePath",
    "checked_target",
    "continuing",
    "create_group",
    "describe_work",
    "finisher",
    "run_stages",
    "to_dtype",
    "version",
    "wavelet_name",
    "work_error",
    "zarr_format_number",
]

StorePath = str | Path
FORMATS = (2, 3)  # of Zarr

Progress = Callable[[int, int], None]  # Takes how many regions are done, and how many there are.


class RegionStage(Protocol):
    """Work on regions that do not depend on each other; a worker needs nothing else to do it."""

    def __len__(self) -> int:
        """Return the number of regions."""

    def run(self, number: int) -> int | None:
        """Read, compute and write a region; return how many samples are NaN or infinite, if counted."""


def run_stages(
    runner: TaskRunner, output: PartialStore, stages: Sequence[RegionStage], progress: Progress | None
) -> None:
    """Run all regions that are not done, one stage after the other."""
    total = sum(map(len, stages))
    if progress is not None:
        progress(len(output.done), total)
    for place, stage in enumerate(stages):
        numbers = [number for number in range(len(stage)) if (place, number) not in output.done]
        finished = finisher(output, place, numbers, total, progress)
        with continuing(output, total), _chunks_at_once(runner, len(numbers)):
            runner.run(stage.run, numbers, finished)


@contextmanager
def _chunks_at_once(runner: TaskRunner, tasks: int) -> Iterator[None]:
    """Let each task of this process decode few chunks at a time: tasks keep all cores busy."""
    if not isinstance(runner, ThreadRunner) or not tasks:
        yield
        return
    import zarr

    threads = get_num_threads()
    with zarr.config.set({"async.concurrency": -(-threads // min(threads, tasks))}):
        yield


def finisher(
    output: PartialStore, place: int, numbers: Sequence[int], total: int, progress: Progress | None
) -> Callable[[int, Any], None]:
    """Return a function that records a region as done, or raises the error of its task."""

    def finished(item: int, result: Any) -> None:
        if isinstance(result, BaseException):
            raise result
        output.record(place, numbers[item], result if isinstance(result, int) else 0)
        if progress is not None:
            progress(len(output.done), total)

    return finished


@contextmanager
def continuing(output: PartialStore, total: int) -> Iterator[None]:
    """Turn errors of tasks into errors in one line, which say how to go on."""
    try:
        yield
    except Exception as error:  # Tasks, Zarr and schedulers raise errors of many kinds.
        done, hint = len(output.done), ""
        if (
            output.begun
            and output.known
            and (isinstance(error, SchedulerError) or not isinstance(error, UndulaError))
        ):
            hint = f"; {done} of {total} regions are done, run the same command again to continue"
        raise work_error(error, output.target, hint) from None


def work_error(error: Exception, target: Path, hint: str = "") -> UndulaError:
    """Return the error of a task as one that is reported in one line."""
    if isinstance(error, UndulaError):
        if hint:
            error.args = (f"{error}{hint}",)
        return error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return FileError(f"cannot write {target}: {error.strerror}{hint}")
    kind = type(error).__name__
    return FileError(f"cannot write {target}: {kind}: {short_message(error)}{hint}")


def to_dtype(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert numbers to a dtype; for integers, round and clip to their range."""
    if dtype.kind == "b":
        return values >= 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = np.rint(values)
        # The largest integers of 64 bits are not among the floats, so the limits are rounded inwards.
        low, high = values.dtype.type(info.min), values.dtype.type(info.max)
        if int(high) > info.max:
            high = np.nextafter(high, values.dtype.type(0))
        np.clip(values, low, high, out=values)
    return values.astype(dtype, copy=False)


# --- arguments and outputs ------------------------------------------------------------------------


def checked_target(target: StorePath, source: str) -> Path:
    """Return the folder of an output; an error if it would be written into its input, or over it."""
    if "://" in str(target):
        raise ArgumentError(
            f"outputs are folders of a file system that all workers can write to, got {target}"
        )
    path = Path(target)
    if "://" not in source:
        a, b = Path(source).resolve(), path.resolve()
        if a == b or a in b.parents or b in a.parents:
            raise FileError(f"{path} is an input or part of it and cannot be replaced; name another output")
    return path


def wavelet_name(wavelet: Any) -> str:
    """Return the name of a built-in wavelet, by which a store can be read back."""
    name = as_wavelet(wavelet).name
    if as_wavelet(name) != as_wavelet(wavelet):
        raise ArgumentError(f"stores take built-in wavelets, which have a name; got {wavelet!r}")
    return str(name)


def zarr_format_number(zarr_format: int | None, source: Any) -> int:
    """Return the format of an output: the one that was asked for, or that of the source."""
    number = zarr_format if zarr_format is not None else source.metadata.zarr_format
    if number not in FORMATS:
        raise ArgumentError(f"zarr_format must be 2 or 3, got {zarr_format!r}")
    return int(number)


def version() -> str:
    """Return the version of the package, which outputs name."""
    from .. import __version__

    return __version__


def describe_work(
    operation: str, source: SourceArray, options: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """Return a description of work for the journal."""
    return {
        "operation": operation,
        "source": source.location,
        "source_metadata": source.fingerprint,
        **options,
        **more,
    }


def create_group(output: PartialStore, zarr_format: int, attributes: dict[str, Any]) -> Any:
    """Create the group of an output."""
    import zarr

    options: Any = {"zarr_format": zarr_format, "attributes": attributes}
    return zarr.create_group(str(output.path), **options)
