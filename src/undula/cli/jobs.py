"""Filtering files: the work on each of them, and the report of what was done."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from .. import io
from ..errors import ArgumentError, FileError, MissingExtraError, SchedulerError, UndulaError
from ..io.derivation import Derivation, get_element
from ..io.dicom import read_header, refuse_map
from ..io.dicom_filtering import AUTOMATIC, DicomFilter, FilteredDicom
from ..io.files import (
    EXPORT_ADVICE,
    IMAGES,
    VIDEOS,
    Y4M_SIGNATURE,
    output_kind,
    pixel_limit,
)
from ..io.filtering import Encoding, Filter, filter_picture, filter_video
from ..io.foreign import foreign_code
from ..io.preview import write_preview
from ..io.series import group_series
from ..io.summary import check_result
from ..io.video_sources import Y4MReader
from ..stores.opening import open_source
from ..stores.partial import check_store
from ..stores.pictures import BLOCKS_AT_ONCE, filter_in_blocks, imported_image, large_picture
from ..stores.running import TaskRunner, ThreadRunner, task_runner
from .finding import FileJob, input_kind
from .outputs import PIPE, check_exists, check_outputs, identity, piped_suffix, without_empty_folders
from .screen import error_text, message_line, print_warning, progress_bar
from .zarr_stores import InterruptedWorkError, check_zarr_target, filter_store, is_zarr

ADVICE = "name another output; the last path is the output, and several files go into a folder with --output"

# What a report says of a file.
WRITTEN, SKIPPED, PLANNED, FAILED = "written", "skipped", "planned", "failed"
LOSSY_IMAGES = ("jpeg", "webp", "avif", "heif")


@dataclass(frozen=True)
class FilterOptions:
    """Options shared by all commands that filter files."""

    backend: str
    max_pixels: int | None
    overwrite: bool
    quiet: bool
    encoding: Encoding
    sigma: float | None
    scheduler: str | None = None
    workers: int | None = None
    resume: bool = True
    mask: str = AUTOMATIC
    shown_mask: Path | None = None
    derivation: Derivation | None = None
    skip_existing: bool = False
    dry_run: bool = False
    jobs: int = 1
    image_quality: int | None = None
    preview: Path | None = None
    axes: str | None = None
    filter_over: str | None = None
    maps: bool = False

    @property
    def is_distributed(self) -> bool:
        """Whether files are filtered by other processes."""
        return self.scheduler is not None or self.workers is not None

    def dicom_filter(self, make_filter: Callable[[bool], Filter]) -> DicomFilter:
        """Return the filter for DICOM files."""
        over_time = self.encoding.over_time
        return DicomFilter(
            make_filter(over_time > 0),
            over_time,
            self.mask,
            self.shown_mask,
            self.derivation,
            self.sigma,
            self.backend,
            self.max_pixels,
            self.maps,
        )


@contextmanager
def input_path(source: str, head: bytes = b"") -> Iterator[Path]:
    """Yield the path of an input; for standard input, that of a temporary file with its content.

    ``head`` is what has been read from standard input already.
    """
    if source != PIPE:
        yield Path(source)
        return
    with tempfile.TemporaryDirectory(prefix="undula-") as folder:
        path = Path(folder) / "input"
        with path.open("wb") as file:
            file.write(head)
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield path
        except UndulaError as error:
            error.args = (str(error).replace(str(path), "standard input"),)
            raise


@contextmanager
def output_path(target: str, suffix: str) -> Iterator[Path]:
    """Yield the path of an output; for standard output, that of a temporary file with the given suffix."""
    if target != PIPE:
        yield Path(target)
        return
    with tempfile.TemporaryDirectory(prefix="undula-") as folder:
        path = Path(folder) / f"output{suffix}"
        try:
            yield path
        except UndulaError as error:
            error.args = (str(error).replace(str(path), "standard output"),)
            raise
        try:
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise FileError(f"cannot write to standard output: {error.strerror or error}") from None


def read_image(source: str, max_pixels: int | None = None, single_page: bool = False) -> io.Picture:
    """Read an image from a file or from standard input; with ``single_page``, refuse those with several."""
    with input_path(source) as path:
        image = io.read(path, max_pixels)
    if single_page and image.pages:
        raise FileError(f"{source} has {len(image.pixels)} pages, but this command takes a single image")
    return image


def is_dicom(source: Path) -> bool:
    """Return whether an input is DICOM by its content."""
    try:
        return not is_zarr(source) and input_kind(source) == "dicom"
    except FileError:
        return False


def run_jobs(
    jobs: Sequence[FileJob],
    make_filter: Callable[[bool], Filter],
    options: FilterOptions,
    collect: bool = False,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Filter files, and return an entry of the report for each result and for each error.

    If a file fails, the others are still filtered. The error of a single file is raised, unless ``collect``.
    After an interrupt, there are no entries for the files that were not filtered; that of a single file is
    raised. ``make_filter`` returns the filter, given whether it is for video. ``report`` is called with each
    entry as soon as it is known.
    """
    entries: list[dict[str, Any] | None] = [None] * len(jobs)
    with ExitStack() as stack:
        if len(jobs) > 1:
            stack.enter_context(suppress(KeyboardInterrupt))
        stack.enter_context(without_empty_folders(job.target.parent for job in jobs))
        progress = stack.enter_context(progress_bar("files", len(jobs), options.quiet or len(jobs) < 2))
        runner = None
        if options.is_distributed:
            runner = stack.enter_context(task_runner(options.scheduler, options.workers))

        def finished(number: int, entry: Any) -> None:
            if isinstance(entry, Exception):
                if len(jobs) == 1 and not collect:
                    raise entry
                entry = {"error": error_text(entry)}
            if "error" in entry:  # Other processes do not know the command.
                entry = {**entry, "error": message_line(entry["error"])}
            paths = {"input": str(jobs[number].source)}
            if "error" not in entry:
                paths["output"] = str(jobs[number].target)
            paths["status"] = FAILED if "error" in entry else WRITTEN
            entries[number] = entry = {**paths, **entry}
            if report is not None:
                report(entry)
            progress(sum(each is not None for each in entries))

        checked = list(_checked_jobs(jobs, options, finished))
        if runner is not None:
            remote = [number for number in checked if not is_zarr(jobs[number].source)]
            checked = [number for number in checked if number not in remote]
            run = partial(_run_remote_job, make_filter=make_filter, options=replace(options, quiet=True))
            try:
                items = [_absolute(jobs[number]) for number in remote]
                runner.run(run, items, lambda item, entry: finished(remote[item], entry))
            except SchedulerError as error:
                for number in remote:
                    if entries[number] is None:
                        finished(number, error)
        if options.encoding.over_time and len(jobs) > 1:
            checked = list(_run_stacks(jobs, checked, make_filter, options, finished))
        several = min(options.jobs, len(checked))
        run = partial(
            _run_job,
            make_filter=make_filter,
            options=replace(options, quiet=several > 1 or options.quiet),
            runner=runner,
        )
        for number, get_entry in _started(run, [(number, jobs[number]) for number in checked], several):
            try:
                entry = get_entry()
            except InterruptedWorkError:
                raise
            except Exception as error:  # Decoders, filters and encoders may raise anything.
                finished(number, error)
            else:
                finished(number, entry)
    results = [entry for entry in entries if entry is not None and "error" not in entry]
    return results, [entry for entry in entries if entry is not None and "error" in entry]


def _started(
    run: Callable[[FileJob], dict[str, Any]], jobs: Sequence[tuple[int, FileJob]], count: int
) -> Iterator[tuple[int, Callable[[], dict[str, Any]]]]:
    """Yield the number of each job and a function that returns its entry; several run at the same time."""
    if count < 2:
        yield from ((number, partial(run, job)) for number, job in jobs)
        return
    with ThreadPoolExecutor(count) as pool:
        futures = {pool.submit(run, job): number for number, job in jobs}
        left = dict(futures)
        try:
            for future in as_completed(futures):
                yield left.pop(future), future.result
        except KeyboardInterrupt:
            print_warning("interrupted; the files in progress are finished first")
            pool.shutdown(cancel_futures=True)
            yield from ((left[future], future.result) for future in left if not future.cancelled())
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _checked_jobs(
    jobs: Sequence[FileJob], options: FilterOptions, finished: Callable[[int, Any], None]
) -> Iterator[int]:
    """Yield the numbers of the jobs that are to be run, and report the others."""
    sources = {identity(job.source): job.source for job in jobs}
    advice = ADVICE if len(jobs) == 1 else "name another folder"
    for number, job in enumerate(jobs):
        # The output may be the input of another job.
        inputs = [job.source, sources.get(identity(job.target), job.source)]
        try:
            if options.skip_existing and os.path.lexists(job.target):
                check_exists(job.source)
                finished(number, {"status": SKIPPED, "frames": 0})
                continue
            if not is_zarr(job.source) and is_zarr(job.target):
                check_exists(job.source)
                check_store(job.target, options.overwrite)
            elif not is_zarr(job.source):
                check_outputs(job.target, overwrite=options.overwrite, inputs=inputs, advice=advice)
            if options.dry_run:
                _check_headers(job, options)
                finished(number, {"status": PLANNED, "frames": 0})
                continue
        except Exception as error:  # A file that fails must not stop the others; it is listed at the end.
            finished(number, error)
        else:
            yield number


def _check_headers(job: FileJob, options: FilterOptions) -> None:
    """Raise an error if the headers of an input tell that it cannot be filtered into its output."""
    if str(job.source) == PIPE or str(job.source).startswith("camera:"):
        return
    if is_zarr(job.source):
        check_zarr_target(job.source, job.target)
        check_store(job.target, options.overwrite)
        open_source(job.source)
        return
    kind = _check_kinds(job.source, job.target)
    _check_map(job.source, options)
    target = job.source if is_zarr(job.target) else job.target
    if str(target) == PIPE:
        suffix = ".y4m" if kind == "video" else piped_suffix(kind, job.piped_format)
        target = Path(f"standard output{suffix}")
    check_result(job.source, target, options.max_pixels)


def _check_map(source: Path, options: FilterOptions) -> None:
    """Raise an error for a DICOM image of quantities or labels, unless it is asked for."""
    if not options.maps and is_dicom(source):
        refuse_map(source, read_header(source))


def _check_kinds(source: Path, target: Path) -> str | None:
    """Return the kind of an input; raise an error if it cannot be written to its output."""
    kind = input_kind(source)
    if is_zarr(target):
        if kind == "video":
            raise FileError(f"{source} is a video and cannot be written as a Zarr store, {target.name}")
        return kind
    if kind is None or str(target) == PIPE:
        return kind
    target_kind = output_kind(target, kind, source.suffix)
    if kind != "video" and target_kind == "video":
        advice = EXPORT_ADVICE if kind == "dicom" else ""
        raise FileError(f"{source} is an image and cannot be written as a video, {target.name}{advice}")
    return kind


def _run_stacks(
    jobs: Sequence[FileJob],
    numbers: Sequence[int],
    make_filter: Callable[[bool], Filter],
    options: FilterOptions,
    finished: Callable[[int, Any], None],
) -> Iterator[int]:
    """Filter DICOM images that belong together as stacks, and yield the numbers of the other jobs.

    An image that belongs to no others is filtered alone.
    """
    headers: dict[Path, Any] = {}
    slices: dict[Path, int] = {}
    for number in numbers:
        source = jobs[number].source
        try:
            header = read_header(source) if is_dicom(source) else None
        except Exception:  # Reading the file again reports its error.
            header = None
        if header is None or int(get_element(header, "NumberOfFrames", 1)) > 1:
            yield number
        else:
            headers[source], slices[source] = header, number
    alone = replace(options, encoding=replace(options.encoding, over_time=0))
    for stack in group_series(headers):
        members = [slices[source] for source in stack]
        targets = [jobs[number].target for number in members]
        reports: Sequence[Any]
        try:
            if len(stack) == 1:
                reports = [_run_job(jobs[members[0]], make_filter, alone)]
            else:
                with foreign_code(f"cannot filter the series of {stack[0]}", Exception):
                    filtered = options.dicom_filter(make_filter).filter_series(stack, targets)
                reports = [_dicom_entry(each) for each in filtered]
        except Exception as error:  # Decoders, filters and encoders may raise anything.
            reports = [error] * len(members)
        for number, report in zip(members, reports, strict=True):
            finished(number, report)


def _dicom_entry(filtered: FilteredDicom) -> dict[str, Any]:
    """Return the entry of a DICOM file in the report."""
    return {
        "shape": list(filtered.shape),
        "frames": filtered.frames,
        "protected": round(filtered.protected, 4),
        "lost": list(filtered.lost),
    }


def _absolute(job: FileJob) -> FileJob:
    """Return a job for a process that may run in another folder."""
    if str(job.source).startswith("camera:") or PIPE in (str(job.source), str(job.target)):
        raise ArgumentError(
            "cameras and pipes cannot be filtered by other processes; omit --scheduler and --workers"
        )
    return FileJob(job.source.absolute(), job.target.absolute())


def _run_remote_job(job: FileJob, make_filter: Callable[[bool], Filter], options: FilterOptions) -> Any:
    """Filter a file in another process, and return its entry in the report, or that of its error."""
    try:
        return _run_job(job, make_filter, options)
    except Exception as error:  # Not all errors can be sent to another process.
        return {"error": error_text(error)}


def _run_job(
    job: FileJob,
    make_filter: Callable[[bool], Filter],
    options: FilterOptions,
    runner: TaskRunner | None = None,
) -> dict[str, Any]:
    """Filter one file and return its entry in the report."""
    with foreign_code(f"cannot filter {job.source}", Exception):
        return _entry(job, make_filter, options, runner)


def _entry(
    job: FileJob, make_filter: Callable[[bool], Filter], options: FilterOptions, runner: TaskRunner | None
) -> dict[str, Any]:
    if is_zarr(job.source):
        return _run_store_job(job, make_filter(False), options, runner)
    if is_zarr(job.target):
        return _run_import_job(job, make_filter(False), options)
    start = time.perf_counter()
    lost: tuple[str, ...] = ()
    shape: Sequence[int]
    common: Any = {"sigma": options.sigma, "backend": options.backend, "max_pixels": options.max_pixels}
    head = sys.stdin.buffer.read(len(Y4M_SIGNATURE)) if str(job.source) == PIPE else b""
    if head == Y4M_SIGNATURE:
        return _run_video_job(Y4MReader(sys.stdin.buffer, head), job, make_filter, options, common)
    with ExitStack() as stack:
        source = stack.enter_context(input_path(str(job.source), head))
        kind = _check_kinds(source, job.target)
        if kind == "video":
            return _run_video_job(source, job, make_filter, options, common)
        target = stack.enter_context(output_path(str(job.target), piped_suffix(kind, job.piped_format)))
        is_lossy = IMAGES.get(target.suffix.lower()) in LOSSY_IMAGES
        if options.image_quality is not None and str(job.target) == PIPE and not is_lossy:
            raise ArgumentError(
                "--image-quality applies to JPEG, WebP, AVIF and HEIC, and this is written as"
                f" {target.suffix}; choose one with --format"
            )
        if target.suffix in VIDEOS:
            raise ArgumentError(f"{source} is an image and cannot be written as a video, {target.suffix}")

        def start_progress(total: int) -> Any:
            return stack.enter_context(progress_bar(source.name, total, options.quiet))

        stack_options: Any = {"axes": options.axes, "over": options.filter_over}
        if kind == "dicom":
            refuse_stack_options(source, "a DICOM file", options)
            target.parent.mkdir(parents=True, exist_ok=True)
            filtered = options.dicom_filter(make_filter).filter_file(source, target, start_progress)
            if options.preview is not None:
                write_preview(options.preview, io.read(source), io.read(target))
            return _dicom_entry(filtered)
        if options.encoding.over_time:
            raise ArgumentError(f"--over-time applies to video only; {source} is an image")
        target.parent.mkdir(parents=True, exist_ok=True)
        pipeline = make_filter(False)
        header = None if options.preview is not None else large_picture(source, **stack_options)
        if header is not None and _filters_in_blocks(
            source, target, header, pipeline, options, common, start_progress
        ):
            shape, frames = header.pixels.shape, len(header.all_pages)
        else:
            if options.image_quality is not None and is_lossy:
                common["quality"] = options.image_quality
            shape, frames, lost = filter_picture(
                source,
                target,
                pipeline,
                begin=start_progress,
                preview=options.preview,
                **stack_options,
                **common,
            )
    seconds = round(time.perf_counter() - start, 3)
    return {"shape": list(shape), "frames": frames, "seconds": seconds, "lost": list(lost)}


def refuse_stack_options(source: Any, kind: str, options: FilterOptions) -> None:
    """Raise an error for options of stacks if the input has no axes with names."""
    given = {"--axes": options.axes, "--filter-over": options.filter_over}
    for flag, value in given.items():
        if value is not None:
            raise ArgumentError(f"{flag} applies to stacks of images; {source} is {kind}")


def _filters_in_blocks(
    source: Path,
    target: Path,
    header: io.Picture,
    pipeline: Filter,
    options: FilterOptions,
    common: dict[str, Any],
    begin: Callable[[int], Any],
) -> bool:
    """Filter a large image in blocks; return False if it has to be filtered as a whole, and may be."""
    bars: list[Any] = []

    def progress(done: int, total: int) -> None:
        if not bars:
            bars.append(begin(total))
        bars[0](done)

    try:
        filter_in_blocks(
            source, target, header, pipeline, over=options.filter_over, progress=progress, **common
        )
    except (ArgumentError, MissingExtraError):
        pixels = header.pixels.size // len(header.channels)
        if pixels > pixel_limit(options.max_pixels):
            raise
        return False
    return True


def _run_import_job(job: FileJob, pipeline: Filter, options: FilterOptions) -> dict[str, Any]:
    """Filter a file into an image of OME-Zarr, and return its entry in the report."""
    with input_path(str(job.source)) as source:
        _check_kinds(source, job.target)
        _check_map(source, options)
        job.target.parent.mkdir(parents=True, exist_ok=True)
        over = options.filter_over or "YX"
        with imported_image(source, job.target, options.axes, over, options.max_pixels) as stored:
            again = replace(options, axes=None, filter_over=over, resume=False)
            return _run_store_job(FileJob(stored, job.target), pipeline, again, ThreadRunner(BLOCKS_AT_ONCE))


def _run_video_job(
    source: Any, job: FileJob, make_filter: Callable[[bool], Filter], options: FilterOptions, common: Any
) -> dict[str, Any]:
    """Filter a video and return its entry in the report; to standard output, it is written as Y4M."""
    target = job.target
    if job.piped_format not in ("", "y4m"):
        raise ArgumentError(
            f"{job.source} is a video, which is written to standard output as Y4M; omit --format"
        )
    if options.preview is not None:
        raise ArgumentError(f"--preview applies to images only; {source} is a video")
    refuse_stack_options(source, "a video", options)
    begin = time.perf_counter()
    destination = sys.stdout.buffer if str(target) == PIPE else target
    if destination is target:
        target.parent.mkdir(parents=True, exist_ok=True)
    video, encoding = io.probe(source, options.max_pixels), options.encoding
    seconds = max(0.0, video.seconds - encoding.start)
    seconds = min(seconds, encoding.duration) if encoding.duration is not None else seconds
    total = min(round(seconds * video.rate), encoding.frames or video.frames)
    with progress_bar(Path(str(source)).name, total, options.quiet) as progress:
        frames = filter_video(source, destination, make_filter(True), encoding, progress=progress, **common)
    sys.stdout.flush()
    elapsed = round(time.perf_counter() - begin, 3)
    return {"shape": [video.height, video.width], "frames": frames, "seconds": elapsed}


def _run_store_job(
    job: FileJob, pipeline: Filter, options: FilterOptions, runner: TaskRunner | None
) -> dict[str, Any]:
    """Filter a Zarr store and return its entry in the report."""
    if options.encoding.over_time:
        raise ArgumentError(f"--over-time applies to video only; {job.source} is a Zarr store")
    shape = filter_store(
        job.source,
        job.target,
        pipeline,
        options.sigma,
        options.backend,
        options.overwrite,
        options.resume,
        options.quiet,
        runner,
        options.axes,
        options.filter_over,
    )
    return {"shape": list(shape), "frames": 1}
