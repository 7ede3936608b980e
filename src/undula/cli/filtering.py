"""Commands that filter files.

Each command declares its own options and returns a :class:`CommandFilter`. The options that all of them
share are those of :func:`filter_files`, which does the work.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import undula

from ..errors import ArgumentError
from ..filters import Pipeline
from ..filters.verbs import Denoising, Despeckling, Enhancing, Sharpening
from ..filters.words import parse_stage
from ..io.files import atomic_write
from ..io.filtering import Encoding
from .common import WAVELET_HELP, AutoLevel, Backend, Json, Level, MaxPixels, Overwrite, Quiet, Wavelet, app
from .jobs import FilterOptions, find_jobs, run_jobs
from .outputs import PIPE, check_outputs
from .screen import print_error, print_json, print_text

MAX_ERROR_LINES = 20
MAX_OUTPUT_LINES = 5
DECIMATED_WAVELET = "bior4.4"  # The default for denoising without shifts.
SHIFTS_HELP = "Number of finest levels that are averaged over all shifts: fewer artefacts, but slower."
VideoOption = partial(Option, rich_help_panel="Video options")

OverTime = Annotated[
    int, VideoOption("--over-time", min=0, help="Filter this many frames together, in 3-D; 0 for one by one.")
]
Strength = Annotated[
    float, Option("--strength", "-s", help="Strength of the filter; values above 1 remove more.")
]


@dataclass(frozen=True)
class CommandFilter:
    """The filter that a command applies to files."""

    make: Callable[[bool], Any]  # Takes whether the filter is for video.
    luma: bool = False  # Whether only the luma of a video is filtered.
    over_time: int = 0
    sigma: float | None = None
    save_path: Path | None = None  # File that the pipeline is written to.
    load_path: Path | None = None  # File that the pipeline was read from.


def filter_files(
    command_filter: CommandFilter,
    paths: Annotated[
        list[str],
        Argument(
            metavar="PATH",
            help="An input file and an output file; with --output, any number of input files and folders."
            " A - stands for standard input or output.",
        ),
    ],
    output: Annotated[
        str | None, Option("--output", "-o", help="A folder for all results, or a file for a single result.")
    ] = None,
    recursive: Annotated[bool, Option("--recursive", "-r", help="Include the files in subfolders.")] = False,
    backend: Backend = "auto",
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
    quality: Annotated[
        int, VideoOption("--quality", min=0, help="Constant quality, from 0 (best) to 63.")
    ] = 18,
    codec: Annotated[
        str | None,
        VideoOption(
            "--codec",
            help="Name of an FFmpeg encoder, such as libx265, prores_ks or ffv1.",
            show_default="depends on the container",
        ),
    ] = None,
    preset: Annotated[
        str, VideoOption("--preset", help="Encoding effort for H.264 and HEVC, from ultrafast to placebo.")
    ] = "veryfast",
    no_audio: Annotated[
        bool,
        VideoOption(
            "--no-audio", help="Write only the video stream, without audio, subtitles and cover art."
        ),
    ] = False,
    frames: Annotated[int | None, VideoOption("--frames", min=1, help="Stop after this many frames.")] = None,
) -> None:
    """Filter files, and print a report."""
    start = time.perf_counter()
    jobs = find_jobs(paths, output, recursive)
    save_path = command_filter.save_path
    if save_path is not None:
        pipeline_inputs = [command_filter.load_path] if command_filter.load_path else []
        inputs = [*(job.source for job in jobs), *pipeline_inputs]
        check_outputs(save_path, overwrite=overwrite, inputs=inputs)
        check_outputs(*(job.target for job in jobs), save_path, overwrite=True, inputs=pipeline_inputs)
    encoding = Encoding(
        command_filter.over_time, quality, codec, preset, not no_audio, frames, luma=command_filter.luma
    )
    options = FilterOptions(backend, max_pixels, overwrite, quiet or json_, encoding, command_filter.sigma)
    to_pipe = any(str(job.target) == PIPE for job in jobs)
    results, errors = run_jobs(jobs, command_filter.make, options, collect=json_ and not to_pipe)
    if save_path is not None and results:
        with atomic_write(save_path) as temporary:
            command_filter.make(False).save(temporary)
    seconds = time.perf_counter() - start
    count = sum(result["frames"] for result in results)
    if json_ and not to_pipe:
        print_json({"files": results, "errors": errors, "seconds": seconds, "frames": count})
    elif not (quiet or json_ or to_pipe):
        for result in results[:MAX_OUTPUT_LINES]:
            print_text(result["output"])
        if len(results) > MAX_OUTPUT_LINES:
            print_text(f"… and {len(results) - MAX_OUTPUT_LINES} more")
        if count > 1:
            print_text(f"{count} frames in {seconds:.1f} s, {count / seconds:.1f} per second")
    if errors:
        _print_errors(errors, len(jobs))
        raise typer.Exit(1)


def _print_errors(errors: list[dict[str, str]], total: int) -> None:
    """Print one line for each distinct error, with the first file that has it, and then the counts."""
    inputs: dict[str, list[str]] = {}
    for error in errors:
        inputs.setdefault(error["error"], []).append(error["input"])
    for message, files in list(inputs.items())[:MAX_ERROR_LINES]:
        others = f" and {len(files) - 1} more" if len(files) > 1 else ""
        print_error(message if files[0] in message else f"{files[0]}{others}: {message}")
    if len(inputs) > MAX_ERROR_LINES:
        print_error(f"… and {len(inputs) - MAX_ERROR_LINES} more errors; --json lists all of them")
    if total > 1:
        print_error(f"{len(errors)} of {total} files {'was' if len(errors) == 1 else 'were'} not filtered")


def filter_command(function: Callable[..., CommandFilter]) -> Callable[..., CommandFilter]:
    """Register a command that filters files, with the options of a function and of :func:`filter_files`."""
    names = inspect.signature(function).parameters

    @wraps(function)
    def command(**options: Any) -> None:
        own_options = {name: options.pop(name) for name in names}
        filter_files(function(**own_options), **options)

    shared = list(inspect.signature(filter_files, eval_str=True).parameters.values())[1:]
    parameters = [*shared[:2], *inspect.signature(function, eval_str=True).parameters.values(), *shared[2:]]
    # Typer reads the signature and the annotations.
    command.__dict__["__signature__"] = inspect.Signature(
        [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command(function.__name__.rstrip("_"), rich_help_panel="Filters")(command)
    return function


@filter_command
def denoise(
    sigma: Annotated[
        float | None,
        Option(
            "--sigma",
            help="Standard deviation of the noise, in the units of the pixels.",
            show_default="estimated",
        ),
    ] = None,
    strength: Strength = Denoising.strength,
    method: Annotated[
        str,
        Option(
            "--method", "-m", help="Shrinkage: bivariate, block, bayes, sure, hybrid, minimax or universal."
        ),
    ] = Denoising.method,
    wavelet: Annotated[
        str,
        Option(
            "--wavelet",
            "-w",
            help=WAVELET_HELP,
            show_default=f"{Denoising.wavelet}, or {DECIMATED_WAVELET} if --shifts is 0",
        ),
    ] = "",
    level: AutoLevel = None,
    shifts: Annotated[
        int | None,
        Option("--shifts", help=SHIFTS_HELP, show_default=f"{Denoising.invariant} for images, 0 for video"),
    ] = None,
    over_time: OverTime = 0,
) -> CommandFilter:
    """Remove noise from images, DICOM files and video.

    Examples
    --------
    - `undula example noisy.png && undula denoise noisy.png clean.png`
    - `undula example noisy.mp4 && undula denoise noisy.mp4 clean.mp4 --strength 1.2`
    """

    def make(is_video: bool) -> Pipeline:
        invariant = shifts if shifts is not None else (0 if is_video else Denoising.invariant)
        name = wavelet or (Denoising.wavelet if invariant else DECIMATED_WAVELET)
        return Denoising(
            method=method, strength=strength, wavelet=name, level=level, invariant=invariant
        ).pipeline()

    return CommandFilter(make, over_time=over_time, sigma=sigma)


@filter_command
def despeckle(
    kind: Annotated[
        str,
        Option(
            "--kind", "-k", help="What the pixels are: intensity, amplitude or log (compressed for display)."
        ),
    ] = Despeckling.kind,
    strength: Strength = Despeckling.strength,
    looks: Annotated[
        float | None, Option("--looks", help="Number of looks that were averaged.", show_default="estimated")
    ] = Despeckling.looks,
    over_time: OverTime = 0,
) -> CommandFilter:
    """Remove speckle from ultrasound, radar and OCT images, video and DICOM files.

    Example: `undula example noisy.png && undula despeckle noisy.png clean.png --kind log`
    """

    def apply(image: Any, *, sigma: Any, **options: Any) -> Any:
        return undula.despeckle(image, kind=kind, looks=looks, strength=strength, **options)

    return CommandFilter(lambda is_video: apply, luma=True, over_time=over_time)


@filter_command
def sharpen(
    amount: Annotated[
        float, Option("--amount", "-a", help="Amount of sharpening; 0 changes nothing.")
    ] = Sharpening.amount,
    sigma: Annotated[
        float, Option("--sigma", help="Standard deviation of the blur for unsharp, in pixels.")
    ] = Sharpening.sigma,
    method: Annotated[
        str, Option("--method", "-m", help="Method: unsharp, laplace, diagonal or wavelet.")
    ] = Sharpening.method,
) -> CommandFilter:
    """Sharpen images and video.

    Example: `undula example photo.png && undula sharpen photo.png sharp.png --amount 0.7`
    """
    pipeline = Sharpening(amount=amount, method=method, sigma=sigma).pipeline()
    return CommandFilter(lambda is_video: pipeline, luma=True)


@filter_command
def enhance(
    amount: Annotated[
        float, Option("--amount", "-a", help="Amount of enhancement, from 0 (none) to 1.")
    ] = Enhancing.amount,
    noise: Annotated[
        bool, Option("--denoise/--no-denoise", help="Whether to remove noise first.")
    ] = Enhancing.denoise,
) -> CommandFilter:
    """Enhance weak structures at all scales of images and video.

    Example: `undula example photo.png && undula enhance photo.png clear.png`
    """
    pipeline = Enhancing(amount=amount, denoise=noise).pipeline()
    return CommandFilter(lambda is_video: pipeline, luma=True)


@filter_command
def filter_(
    stage: Annotated[
        list[str] | None,
        Option(
            "--stage",
            "-S",
            help="A stage, such as soft:20, hard:30, bayes, bivariate, blur:1, laplace, unsharp:1:0.5,"
            " gain:1.5 or contrast; repeat the option for several stages, in order.",
        ),
    ] = None,
    pipeline_text: Annotated[
        str | None, Option("--pipeline", "-p", help="A JSON file with a pipeline, or the JSON itself.")
    ] = None,
    save: Annotated[
        Path | None, Option("--save", help="Write the pipeline to a JSON file, for --pipeline.")
    ] = None,
    wavelet: Wavelet = "cdf97",
    level: Level = 3,
    shifts: Annotated[int, Option("--shifts", help=SHIFTS_HELP)] = 0,
    over_time: OverTime = 0,
) -> CommandFilter:
    """Apply a pipeline of stages, given as options or read from a file.

    The spatial stages `blur`, `unsharp`, `laplace` and `diagonal` accept a place: `blur:1@image` (the
    default) filters the image before it is decomposed, `@approximation` the approximation of every level,
    `@last` that of the coarsest level, and `@details` the detail bands.

    Example: `undula example noisy.png && undula filter noisy.png out.png -S soft:20 -S unsharp:1:0.5@last`
    """
    if (stage is None) == (pipeline_text is None):
        raise ArgumentError("expected either stages (--stage, once for each) or a pipeline (--pipeline)")
    load_path = None
    if pipeline_text is None:
        stages = [parse_stage(text) for text in stage or []]
        pipeline = Pipeline(wavelet, level, stages, invariant=shifts)
    elif pipeline_text.lstrip().startswith("{"):
        pipeline = Pipeline.from_json(pipeline_text)
    else:
        load_path = Path(pipeline_text)
        pipeline = Pipeline.load(load_path)
    return CommandFilter(lambda is_video: pipeline, over_time=over_time, save_path=save, load_path=load_path)
