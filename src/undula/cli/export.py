"""The command that writes DICOM files as pictures and videos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ..errors import ArgumentError, FileError
from ..io.derivation import get_element
from ..io.dicom import read_header
from ..io.export import export_picture, export_series
from ..io.files import IMAGES, VIDEOS, detect_kind
from .common import Json, MaxPixels, Overwrite, Quiet, app
from .finding import LEFT_OUT, FileJob, LeftOut, find_jobs
from .outputs import check_outputs
from .screen import error_text, print_error, print_json, print_text, progress_bar

PICTURE, VIDEO = ".png", ".mp4"  # The formats of results in a folder.


@app.command(rich_help_panel="Information")
def export(
    paths: Annotated[
        list[str],
        Argument(
            metavar="PATH",
            help="An input and an output: a DICOM file and a picture or video, a folder with a series and a"
            " video, or two folders; with --output, any number of inputs.",
        ),
    ],
    output: Annotated[
        str | None, Option("--output", "-o", help="A folder for all results, or a file for a single result.")
    ] = None,
    recursive: Annotated[bool, Option("--recursive", "-r", help="Include the files in subfolders.")] = False,
    window: Annotated[
        tuple[float, float] | None,
        Option(
            "--window",
            metavar="C W",
            help="Center and width of the window, such as 40 400.",
            show_default="that of the file, or its range",
        ),
    ] = None,
    frame: Annotated[
        int | None, Option("--frame", min=0, help="Write this frame of a clip, counted from 0, as a picture.")
    ] = None,
    rate: Annotated[
        float | None,
        Option("--rate", min=0.1, help="Frames per second of a video.", show_default="that of the clip"),
    ] = None,
    crf: Annotated[
        int, Option("--crf", min=0, max=51, help="Constant quality of a video, from 0 (best) to 51.")
    ] = 18,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write DICOM files as pictures or video, as they are displayed.

    Patient data in the header is left behind; text that is burned into the image is not.

    Example: `undula example ultrasound.dcm && undula export ultrasound.dcm ultrasound.png`
    """
    shared: dict[str, Any] = {"rate": rate, "quality": crf, "max_pixels": max_pixels}
    left_out = LeftOut()
    target = Path(paths[-1] if output is None else output)
    sources = [Path(path) for path in (paths[:-1] if output is None else paths)]
    if target.suffix.lower() in VIDEOS and (len(sources) > 1 or any(map(Path.is_dir, sources))):
        if frame is not None:
            raise ArgumentError(f"--frame chooses a frame of one clip; {target} is made of several files")
        jobs = find_jobs(
            [str(source) for source in sources], str(target.parent), recursive, left_out=left_out
        )
        files = [job.source for job in jobs if detect_kind(job.source) == "dicom"]
        for job in jobs:
            if job.source not in files:
                left_out.add(job.source, "no DICOM file")
        check_outputs(target, overwrite=overwrite, inputs=files)
        target.parent.mkdir(parents=True, exist_ok=True)
        with progress_bar(target.name, len(files), quiet or json_) as progress:
            count = export_series(files, target, window, **shared, progress=progress)
        results: list[dict[str, Any]] = [
            {"input": [str(file) for file in files], "output": str(target), "frames": count}
        ]
        errors: list[dict[str, str]] = []
    else:
        jobs = _renamed(find_jobs(paths, output, recursive, left_out=left_out))
        if frame is not None and len(jobs) > 1:
            raise ArgumentError(f"--frame chooses a frame of one clip; got {len(jobs)} files")
        results, errors = _export_files(jobs, overwrite, collect=json_, window=window, frame=frame, **shared)
    if json_:
        print_json({"files": results, "errors": errors, LEFT_OUT: left_out.entries})
    elif not quiet:
        for line in (*(result["output"] for result in results), *left_out.lines()):
            print_text(line)
    for error in errors:
        print_error(
            error["error"] if error["input"] in error["error"] else f"{error['input']}: {error['error']}"
        )
    if errors:
        raise typer.Exit(1)


def _renamed(jobs: Sequence[FileJob]) -> list[FileJob]:
    """Return jobs whose targets are pictures or videos, by their suffix."""
    renamed = []
    for job in jobs:
        suffix = job.target.suffix.lower()
        if suffix in VIDEOS or IMAGES.get(suffix, "dicom") != "dicom":
            renamed.append(job)
            continue
        if len(jobs) == 1 and not job.target.is_dir() and job.source.name != job.target.name:
            raise FileError(f"{job.target.name!r} is no picture or video; name it .png, .jpg, .gif or .mp4")
        stem = job.target.stem if suffix in IMAGES else job.target.name
        try:
            is_clip = int(get_element(read_header(job.source), "NumberOfFrames", 1)) > 1
        except Exception:  # Reading the file again reports its error.
            is_clip = False
        renamed.append(replace(job, target=job.target.with_name(stem + (VIDEO if is_clip else PICTURE))))
    return renamed


def _export_files(
    jobs: Sequence[FileJob], overwrite: bool, collect: bool, window: Any, frame: int | None, **options: Any
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Export files one by one; an error of one of several does not stop the others."""
    results: list[dict[str, Any]] = []
    errors: list[dict[str, str]] = []
    for job in jobs:
        try:
            check_outputs(job.target, overwrite=overwrite, inputs=[job.source])
            job.target.parent.mkdir(parents=True, exist_ok=True)
            count = export_picture(job.source, job.target, window, frame, **options)
        except Exception as error:  # Decoders and encoders may raise anything.
            if len(jobs) == 1 and not collect:
                raise
            errors.append({"input": str(job.source), "error": error_text(error)})
        else:
            results.append({"input": str(job.source), "output": str(job.target), "frames": count})
    return results, errors
