"""Commands that filter files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

import undula

from ..errors import ArgumentError
from ..filters import Pipeline, Shrink
from ..filters.functions import enhancing, sharpening
from ..filters.words import stage_of_words
from ..io.files import atomic_write
from ..io.filtering import Encoding
from . import jobs as work
from .common import (
    Backend,
    Codec,
    Frames,
    Json,
    Level,
    MaxPixels,
    NoAudio,
    Output,
    OverTime,
    Overwrite,
    Paths,
    Preset,
    Quality,
    Quiet,
    Recursive,
    Sigma,
    Wave,
    app,
)
from .outputs import PIPE, check_outputs
from .screen import complain, say, show_json

MOST_ERRORS = 20  # lines about files of a batch


def _filtered(
    paths: list[str],
    output: str | None,
    recursive: bool,
    make: Any,
    options: work.Options,
    json_: bool,
    save: Path | None = None,
    chain: Path | None = None,
) -> None:
    """Filters files and reports; the pipeline is written to ``save``, and came from the file ``chain``."""
    begin = time.perf_counter()
    found = work.jobs(paths, output, recursive)
    if save is not None:
        inputs = [*(job.source for job in found), *([chain] if chain else [])]
        check_outputs(save, overwrite=options.overwrite, inputs=inputs)
        check_outputs(*(job.target for job in found), save, overwrite=True, inputs=[chain] if chain else [])
    to_pipe = any(str(job.target) == PIPE for job in found)
    results, errors = work.run_jobs(found, make, options, collect=json_ and not to_pipe)
    if save is not None and results:
        with atomic_write(save) as beside:
            make(False).save(beside)
    seconds = time.perf_counter() - begin
    frames = sum(result["frames"] for result in results)
    if json_ and not to_pipe:
        show_json({"files": results, "errors": errors, "seconds": seconds, "frames": frames})
    elif not options.quiet and not to_pipe:
        for result in results[:5]:
            say(f"{result['output']}")
        if len(results) > 5:
            say(f"… and {len(results) - 5} more")
        if frames > 1:
            say(f"{frames} frames in {seconds:.1f} s, {frames / seconds:.1f} per second")
    if errors:
        _complain_of_files(errors, len(found))
        raise typer.Exit(1)


def _complain_of_files(errors: list[dict[str, str]], total: int) -> None:
    """One line for each kind of error, with the name of a file that has it, and a last one with counts."""
    named: dict[str, list[str]] = {}
    for error in errors:
        named.setdefault(error["error"], []).append(error["input"])
    for message, files in list(named.items())[:MOST_ERRORS]:
        others = f" and {len(files) - 1} more" if len(files) > 1 else ""
        complain(message if files[0] in message else f"{files[0]}{others}: {message}")
    if len(named) > MOST_ERRORS:
        complain(f"… and {len(named) - MOST_ERRORS} more errors; --json lists all of them")
    if total > 1:
        complain(f"{len(errors)} of {total} files {'was' if len(errors) == 1 else 'were'} not filtered")


# --- filters --------------------------------------------------------------------------------------


@app.command()
def denoise(
    paths: Paths,
    output: Output = None,
    sigma: Sigma = None,
    strength: Annotated[
        float, typer.Option("--strength", "-s", help="how strongly to filter; above 1 removes more")
    ] = 1.0,
    method: Annotated[
        str, typer.Option("--method", "-m", help="bivariate, block, bayes, sure, hybrid, minimax, universal")
    ] = "bivariate",
    wavelet: Wave = "",
    level: Level = None,
    shifts: Annotated[
        int | None, typer.Option("--shifts", help="levels with all shifts: 2 for pictures, 0 for video")
    ] = None,
    over_time: OverTime = 0,
    recursive: Recursive = False,
    backend: Backend = "auto",
    quality: Quality = 18,
    codec: Codec = None,
    preset: Preset = "veryfast",
    no_audio: NoAudio = False,
    frames: Frames = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take the noise out of pictures, DICOM files and video.

    Examples
    --------
    - `undula example noisy.png && undula denoise noisy.png clean.png`
    - `undula example noisy.mp4 && undula denoise noisy.mp4 clean.mp4 --strength 1.2`
    """

    def make(video: bool) -> Pipeline:
        all_shifts = shifts if shifts is not None else (0 if video else 2)
        name = wavelet or ("db2" if all_shifts else "bior4.4")
        return Pipeline(name, level, [Shrink(method, strength=strength)], invariant=all_shifts)

    encoding = Encoding(over_time, quality, codec, preset, not no_audio, frames)
    options = work.Options(backend, max_pixels, overwrite, quiet or json_, encoding, sigma)
    _filtered(paths, output, recursive, make, options, json_)


@app.command()
def despeckle(
    paths: Paths,
    output: Output = None,
    kind: Annotated[
        str, typer.Option("--kind", "-k", help="log (what screens show), intensity or amplitude")
    ] = "log",
    strength: Annotated[
        float, typer.Option("--strength", "-s", help="how strongly to filter; above 1 removes more")
    ] = 0.5,
    looks: Annotated[
        float | None, typer.Option("--looks", help="how many looks were averaged, if known")
    ] = None,
    backend: Backend = "auto",
    over_time: OverTime = 0,
    recursive: Recursive = False,
    quality: Quality = 18,
    codec: Codec = None,
    preset: Preset = "veryfast",
    no_audio: NoAudio = False,
    frames: Frames = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take speckle out of ultrasound, radar and OCT pictures, clips and DICOM files.

    Example: `undula example noisy.png && undula despeckle noisy.png clean.png --kind intensity`
    """
    encoding = Encoding(over_time, quality, codec, preset, not no_audio, frames, luma=True)
    options = work.Options(backend, max_pixels, overwrite, quiet or json_, encoding)

    def despeckled(x: Any, *, sigma: Any, channel_axis: Any, backend: str, mask: Any = None) -> Any:
        own = {"channel_axis": channel_axis, "backend": backend, "mask": mask}
        return undula.despeckle(x, kind=kind, looks=looks, strength=strength, **own)

    _filtered(paths, output, recursive, lambda video: despeckled, options, json_)


@app.command()
def sharpen(
    paths: Paths,
    output: Output = None,
    amount: Annotated[float, typer.Option("--amount", "-a", help="0 is nothing")] = 1.0,
    sigma: Annotated[float, typer.Option("--sigma", help="of the blur of unsharp, in pixels")] = 1.0,
    method: Annotated[
        str, typer.Option("--method", "-m", help="unsharp, laplace, diagonal or wavelet")
    ] = "unsharp",
    recursive: Recursive = False,
    backend: Backend = "auto",
    quality: Quality = 18,
    codec: Codec = None,
    preset: Preset = "veryfast",
    no_audio: NoAudio = False,
    frames: Frames = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make edges steeper.

    Example: `undula example photo.png && undula sharpen photo.png sharp.png --amount 0.7`
    """
    pipeline = sharpening(amount, method, sigma)
    encoding = Encoding(0, quality, codec, preset, not no_audio, frames, luma=True)
    options = work.Options(backend, max_pixels, overwrite, quiet or json_, encoding)
    _filtered(paths, output, recursive, lambda video: pipeline, options, json_)


@app.command()
def enhance(
    paths: Paths,
    output: Output = None,
    amount: Annotated[float, typer.Option("--amount", "-a", help="from 0 to 1")] = 0.4,
    noise: Annotated[bool, typer.Option("--denoise/--no-denoise", help="take noise out before")] = True,
    recursive: Recursive = False,
    backend: Backend = "auto",
    quality: Quality = 18,
    codec: Codec = None,
    preset: Preset = "veryfast",
    no_audio: NoAudio = False,
    frames: Frames = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Bring out weak structures at all scales.

    Example: `undula example photo.png && undula enhance photo.png clear.png`
    """
    pipeline = enhancing(amount, noise)
    encoding = Encoding(0, quality, codec, preset, not no_audio, frames, luma=True)
    options = work.Options(backend, max_pixels, overwrite, quiet or json_, encoding)
    _filtered(paths, output, recursive, lambda video: pipeline, options, json_)


STAGE_HELP = (
    "a stage: soft:20, hard:30, bayes, bivariate, blur:1, laplace, unsharp:1:0.5, gain:1.5, contrast, …; give"
    " several, in order"
)


@app.command("filter")
def filter_(
    paths: Paths,
    output: Output = None,
    stage: Annotated[list[str] | None, typer.Option("--stage", "-S", help=STAGE_HELP)] = None,
    pipeline_text: Annotated[
        str | None,
        typer.Option("--pipeline", "-p", help="a file with a pipeline in JSON, or the JSON itself"),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="write the pipeline down, for --pipeline")
    ] = None,
    wavelet: Wave = "cdf97",
    level: Level = 3,
    shifts: Annotated[int, typer.Option("--shifts", help="levels with all shifts")] = 0,
    recursive: Recursive = False,
    backend: Backend = "auto",
    quality: Quality = 18,
    over_time: OverTime = 0,
    codec: Codec = None,
    preset: Preset = "veryfast",
    no_audio: NoAudio = False,
    frames: Frames = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a chain of filters: any number of stages in order, or a pipeline from a file.

    A stage may say where it stands: `blur:1@last`, `laplace@image`, `blur:1@approximation`, `gain:2@details`.

    Example: `undula example noisy.png && undula filter noisy.png out.png -S soft:20 -S unsharp:1:0.5@last`
    """
    if (stage is None) == (pipeline_text is None):
        raise ArgumentError("give stages (--stage, as often as you like), or a pipeline (--pipeline)")
    chain = None
    if pipeline_text is not None:
        chain = None if pipeline_text.lstrip().startswith("{") else Path(pipeline_text)
        pipeline = Pipeline.from_json(pipeline_text) if chain is None else Pipeline.load(chain)
    else:
        pipeline = Pipeline(wavelet, level, [stage_of_words(text) for text in stage or []], invariant=shifts)
    encoding = Encoding(over_time, quality, codec, preset, not no_audio, frames)
    options = work.Options(backend, max_pixels, overwrite, quiet or json_, encoding)
    _filtered(paths, output, recursive, lambda video: pipeline, options, json_, save, chain)
