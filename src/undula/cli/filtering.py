"""Commands that filter files.

Each command declares its own options and returns a :class:`CommandFilter`. The options that all of them
share are those of :func:`filter_files`, which does the work.
"""

from __future__ import annotations

import inspect
import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer import Argument, Option

from ..errors import ArgumentError
from ..filters import Pipeline
from ..filters.calibration import CalibratedPipeline
from ..filters.poisson import PHOTON_NOISE
from ..filters.verbs import CORRELATED, SHIFTS_HELP, VERBS, Denoising, Verb, VerbOption
from ..filters.words import parse_stage
from ..io.cutting import parse_seconds
from ..io.derivation import Derivation
from ..io.dicom_filtering import AUTOMATIC
from ..io.files import atomic_write, check_writable
from ..io.filtering import Encoding
from .common import (
    LEVEL_HELP,
    WAVELET_HELP,
    Backend,
    FilterOver,
    Json,
    MaxPixels,
    Overwrite,
    Quiet,
    Resume,
    Scheduler,
    StackNames,
    Workers,
    app,
)
from .finding import LEFT_OUT, LeftOut, find_jobs
from .jobs import FAILED, PLANNED, SKIPPED, WRITTEN, FilterOptions, run_jobs
from .option_checks import refuse_image_options, refuse_mask_options, refuse_video_options
from .outputs import PIPE, ResultNames, check_outputs
from .screen import print_error, print_json, print_text, print_warning
from .zarr_stores import InterruptedWorkError

MAX_ERROR_LINES = 20
MAX_OUTPUT_LINES = 5
KEYWORD = inspect.Parameter.KEYWORD_ONLY
VideoOption = partial(Option, rich_help_panel="Video options")
ImageOption = partial(Option, rich_help_panel="Image options")
BatchOption = partial(Option, rich_help_panel="Many files")
DicomOption = partial(Option, rich_help_panel="DICOM options")
SOME_FAILED = 4  # The exit status if some files were filtered and others could not be.

OverTime = Annotated[
    int,
    VideoOption(
        "--over-time",
        min=0,
        help="Filter this many frames, or slices of a DICOM series, as a volume, by default with Haar"
        " wavelets; 0 for one by one.",
    ),
]
Sigma = Annotated[
    float | None,
    Option(
        "--sigma",
        help="Standard deviation of the noise, in the units of the pixels.",
        show_default="estimated",
    ),
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
    description: str = ""  # The command with its options, for the description of DICOM series.


def filter_files(
    command_filter: CommandFilter,
    paths: Annotated[
        list[str],
        Argument(
            metavar="PATH",
            help="An input and an output: files, folders or Zarr stores; with --output, any number of inputs."
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
    json_lines: Annotated[
        bool, Option("--json-lines", help="Print one line of JSON for each file as soon as it is done.")
    ] = False,
    quiet: Quiet = False,
    suffix: Annotated[
        str | None,
        BatchOption(
            "--suffix",
            help="Text to add to the names of results, such as -clean; without --output, the results"
            " are written beside their inputs.",
        ),
    ] = None,
    format_: Annotated[
        str | None,
        BatchOption(
            "--format",
            help="Format of the results, such as png, jpg or mp4, also of an image on standard output.",
            show_default="that of the input",
        ),
    ] = None,
    skip_existing: Annotated[
        bool, BatchOption("--skip-existing", help="Leave out files whose results exist.")
    ] = False,
    dry_run: Annotated[
        bool, BatchOption("--dry-run", help="List what would be written and what would fail; write nothing.")
    ] = False,
    jobs_: Annotated[
        int, BatchOption("--jobs", "-j", min=1, help="Number of files to filter at the same time.")
    ] = 1,
    image_quality: Annotated[
        int | None,
        ImageOption(
            "--image-quality",
            min=1,
            max=100,
            help="Quality of JPEG, AVIF, HEIC, and of WebP, which is lossless otherwise.",
            show_default="that of a JPEG input; 95 for JPEG, 90 for AVIF and HEIC",
        ),
    ] = None,
    preview: Annotated[
        Path | None,
        ImageOption(
            "--preview", help="Write the most detailed part before and after the filter as an image."
        ),
    ] = None,
    crf: Annotated[
        int, VideoOption("--crf", min=0, help="Constant quality of the encoder, from 0 (best) to 63.")
    ] = 18,
    codec: Annotated[
        str | None,
        VideoOption(
            "--codec",
            help="Name of an FFmpeg encoder, such as libx265, prores_ks or ffv1, or copy-like for the codec,"
            " pixel format and depth of the source.",
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
    axes: StackNames = None,
    filter_over: FilterOver = None,
    start: Annotated[
        str, VideoOption("--start", help="Time of the first frame, in seconds or as hh:mm:ss.")
    ] = "0",
    duration: Annotated[
        str | None,
        VideoOption(
            "--duration", help="Duration of the result, in seconds or as hh:mm:ss.", show_default="to the end"
        ),
    ] = None,
    mask: Annotated[
        str,
        DicomOption(
            "--mask",
            help="What to leave unchanged: auto finds burned-in text and colour Doppler, none filters"
            " everything; or a picture of the same size in black, which is filtered, and white.",
        ),
    ] = AUTOMATIC,
    show_mask: Annotated[
        Path | None,
        DicomOption("--show-mask", help="Write a picture that shows what is left unchanged, in green."),
    ] = None,
    maps: Annotated[
        bool,
        DicomOption(
            "--maps", help="Filter dose grids, parametric maps and segmentations, too, which are no pictures."
        ),
    ] = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    resume: Resume = True,
) -> None:
    """Filter files, and print a report."""
    started = time.perf_counter()
    if skip_existing and overwrite:
        raise ArgumentError("--skip-existing keeps existing files and --overwrite replaces them; choose one")
    if jobs_ > 1 and (scheduler or workers):
        raise ArgumentError("--jobs filters files in this process; omit it, or --scheduler and --workers")
    names, left_out = ResultNames.from_options(suffix, format_), LeftOut()
    jobs = find_jobs(paths, output, recursive, names, maps, left_out)
    save_path = command_filter.save_path
    if save_path is not None:
        pipeline_inputs = [command_filter.load_path] if command_filter.load_path else []
        inputs = [*(job.source for job in jobs), *pipeline_inputs]
        check_outputs(save_path, overwrite=overwrite, inputs=inputs)
        check_outputs(*(job.target for job in jobs), save_path, overwrite=True, inputs=pipeline_inputs)
        command_filter.make(False).to_json()  # Not every pipeline can be written.
        check_writable(save_path)
    encoding = Encoding(
        command_filter.over_time,
        crf,
        codec,
        preset,
        not no_audio,
        frames,
        luma=command_filter.luma,
        start=parse_seconds(start),
        duration=parse_seconds(duration) if duration is not None else None,
    )
    refuse_video_options(jobs, encoding)
    refuse_mask_options(jobs, mask, show_mask)
    if show_mask is not None:
        check_outputs(show_mask, overwrite=overwrite, inputs=[job.source for job in jobs])
        check_outputs(*(job.target for job in jobs), show_mask, overwrite=True)
    options = FilterOptions(
        backend,
        max_pixels,
        overwrite,
        quiet or json_ or json_lines,
        encoding,
        command_filter.sigma,
        scheduler,
        workers,
        resume,
        mask,
        show_mask,
        Derivation(command_filter.description),
        skip_existing=skip_existing,
        dry_run=dry_run,
        jobs=jobs_,
        image_quality=image_quality,
        preview=preview,
        axes=axes,
        filter_over=filter_over,
        maps=maps,
    )
    refuse_image_options(jobs, options)
    if quiet:
        warnings.simplefilter("ignore", UserWarning)
    to_pipe = any(str(job.target) == PIPE for job in jobs)
    as_json = (json_ or json_lines) and not to_pipe
    print_line = partial(print_json, indent=None) if json_lines and not to_pipe else None
    if print_line is not None:
        for entry in left_out.entries:
            print_line(entry)
    results, errors = run_jobs(jobs, command_filter.make, options, collect=as_json, report=print_line)
    if save_path is not None and results and not dry_run:
        with atomic_write(save_path) as temporary:
            command_filter.make(False).save(temporary)
    seconds = time.perf_counter() - started
    counts = Counter(entry["status"] for entry in (*results, *errors))
    summary = {
        "frames": sum(result["frames"] for result in results),
        "seconds": seconds,
        **{status: counts[status] for status in (WRITTEN, SKIPPED, PLANNED, FAILED)},
    }
    if as_json:
        lists = {} if json_lines else {"files": results, "errors": errors, LEFT_OUT: left_out.entries}
        print_json({**lists, **summary}, None if json_lines else 1)
    elif not (quiet or json_ or json_lines or to_pipe):
        _print_results(results, len(jobs), summary)
        for line in left_out.lines():
            print_text(line)
    if not quiet:
        _print_losses(results)
    if errors:
        _print_errors(errors, len(jobs))
    if len(results) + len(errors) < len(jobs):
        raise InterruptedWorkError(
            f"interrupted; {counts[WRITTEN]} of {len(jobs)} files were written, and nothing was left half"
            " done. Add --skip-existing to go on"
        )
    if errors:
        raise typer.Exit(SOME_FAILED if results else 1)


def _print_results(results: list[dict[str, Any]], total: int, summary: dict[str, Any]) -> None:
    """Print the paths of results, or of what a dry run would read and write, and a summary of several."""
    planned = [f"{result['input']} → {result['output']}" for result in results if result["status"] == PLANNED]
    written = [result["output"] for result in results if result["status"] == WRITTEN]
    for line in (*planned, *written[:MAX_OUTPUT_LINES]):
        print_text(line)
    if len(written) > MAX_OUTPUT_LINES:
        print_text(f"… and {len(written) - MAX_OUTPUT_LINES} more")
    if len(results) == 1 and results[0].get("protected"):
        print_text(
            f"{results[0]['protected']:.1%} of the pixels are left unchanged: --show-mask FILE.png shows"
            " them, --mask none filters all"
        )
    seconds, frames = summary["seconds"], summary["frames"]
    if total > 1 or len(written) < len(results):
        counts = [
            f"{summary[status]} {status}" for status in (WRITTEN, PLANNED, SKIPPED, FAILED) if summary[status]
        ]
        print_text(f"{total} file{'s' if total > 1 else ''}: {', '.join(counts)}, in {seconds:.1f} s")
    if frames > len(written):
        print_text(f"{frames} frames in {seconds:.1f} s, {frames / seconds:.1f} per second")


def _print_losses(results: list[dict[str, Any]]) -> None:
    """Print one warning for all results that lack the same parts of their inputs."""
    outputs: dict[str, list[str]] = {}
    for result in results:
        if result.get("lost"):
            outputs.setdefault(", ".join(result["lost"]), []).append(result["output"])
    for lost, names in outputs.items():
        others = f" and {len(names) - 1} more do" if len(names) > 1 else " does"
        print_warning(f"{names[0]}{others} not keep {lost}")


def _print_errors(errors: list[dict[str, Any]], total: int) -> None:
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
        description = _describe(function, own_options)
        filter_files(replace(function(**own_options), description=description), **options)

    shared = list(inspect.signature(filter_files, eval_str=True).parameters.values())[1:]
    parameters = [*shared[:2], *inspect.signature(function, eval_str=True).parameters.values(), *shared[2:]]
    # Typer reads the signature and the annotations.
    command.__dict__["__signature__"] = inspect.Signature(
        [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command(function.__name__.rstrip("_"), rich_help_panel="Filters")(command)
    return function


def _describe(function: Callable[..., CommandFilter], options: dict[str, Any]) -> str:
    """Return a command with the options that differ from their defaults, as one would type it."""
    words = [function.__name__.rstrip("_")]
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        value = options[parameter.name]
        if value == parameter.default or parameter.name == "save":
            continue
        declared = get_args(parameter.annotation)[1]
        # Within Annotated, Typer takes the first name of an option for its default.
        flags = next(name for name in (declared.default, *declared.param_decls) if name[:2] == "--").split(
            "/"
        )
        if isinstance(value, bool):
            words.append(flags[0] if value else flags[-1])
            continue
        for each in value if isinstance(value, list) else [value]:
            words += [flags[0], Path(each).name if parameter.name == "pipeline_text" else f"{each}"]
    return " ".join(words)


FLAGS = {
    "amount": ("--amount", "-a"),
    "calibrate": ("--calibrate",),
    "denoise": ("--denoise/--no-denoise",),
    "invariant": ("--shifts",),
    "kind": ("--kind", "-k"),
    "level": ("--level", "-l"),
    "method": ("--method", "-m"),
    "strength": ("--strength", "-s"),
    "wavelet": ("--wavelet", "-w"),
}
EXAMPLES = {
    "denoise": "`undula example noisy.mp4 && undula denoise noisy.mp4 clean.mp4 --strength 1.2`",
    "despeckle": "`undula example noisy.png && undula despeckle noisy.png clean.png --kind log`",
    "sharpen": "`undula example photo.png && undula sharpen photo.png sharp.png --amount 0.7`",
    "enhance": "`undula example photo.png && undula enhance photo.png clear.png`",
}


def verb_command(name: str, verb: type[Verb]) -> None:
    """Register the command of a verb, whose options are those of the verb."""
    parameters = [_verb_parameter(each, verb) for each in fields(verb)]  # type: ignore[arg-type]
    if verb.takes_sigma:
        parameters.insert(0, inspect.Parameter("sigma", KEYWORD, default=None, annotation=Sigma))
    if verb.windows:
        parameters.append(inspect.Parameter("over_time", KEYWORD, default=0, annotation=OverTime))

    def command(over_time: int = 0, **options: Any) -> CommandFilter:
        sigma = options.pop("sigma", None) if verb.takes_sigma else None

        over_motion = "over_time" in verb.options() and over_time > 0

        def make(is_video: bool) -> Any:
            given = dict(options)
            if is_video and over_motion:
                chosen = {key: value for key, value in given.items() if value is not None}
                return Denoising(**chosen, over_time=over_time).denoiser()
            for key, description in verb.options().items():
                if key in given and given[key] is None and description.for_video is not None:
                    given[key] = getattr(verb, key)
                    if is_video and verb(**given).uses(key):
                        given[key] = description.for_video
            pipeline = verb(**given).pipeline()
            if given.get("calibrate"):
                return CalibratedPipeline(pipeline)
            default = given.get("wavelet") == getattr(verb, "wavelet", None)
            return _for_windows(pipeline, over_time) if is_video and over_time and default else pipeline

        for is_video in (False, True):  # An error in an option is raised before any file is read.
            make(is_video)
        if sigma is not None and options.get("noise") == CORRELATED:
            raise ArgumentError(f"--noise {CORRELATED} is estimated from the image; omit --sigma")
        if sigma is None:
            sigma = verb(**{k: v for k, v in options.items() if v is not None}).noise_sigma
        # The chroma of a video is no count of photons.
        luma = verb.luma_only or options.get("noise") in PHOTON_NOISE
        return CommandFilter(make, luma=luma, over_time=over_time, sigma=sigma)

    command.__name__ = name
    command.__doc__ = f"{verb.summary}.\n\nExample: {EXAMPLES[name]}"
    command.__dict__["__signature__"] = inspect.Signature(parameters)
    filter_command(command)


def _for_windows(pipeline: Pipeline, frames: int) -> Pipeline:
    """Return a pipeline with Haar wavelets, of which few frames are enough for several levels."""
    level = pipeline.level
    if level is None:
        level = min(3, int(math.log2(max(2, frames))))
    return replace(pipeline, wavelet="haar", level=level)


def _verb_parameter(each: Field[Any], verb: type[Verb]) -> inspect.Parameter:
    """Return an option of a command, from the field of a verb."""
    description: VerbOption = each.metadata["option"]
    hint = get_type_hints(verb)[each.name]
    kinds = [kind for kind in (bool, int, float, str) if kind in (hint, *get_args(hint))]
    kind: Any = int if each.name == "invariant" else kinds[0]
    help_text, default, shown = description.help, each.default, description.auto or True
    if description.choices:
        help_text = f"{help_text} One of {', '.join(description.choices)}."
    if each.name == "wavelet":
        help_text = WAVELET_HELP
    if description.for_video is not None:
        shown = f"{default} for images, {description.for_video} for video"
        default = None
    flags = FLAGS.get(each.name, (f"--{each.name.replace('_', '-')}",))
    annotation = kind if default is not None else kind | None
    least: dict[str, Any] = {"min": 0} if kind is int else {}
    panel = "Video options" if description.video_only else None
    described = Option(*flags, help=help_text, show_default=shown, rich_help_panel=panel, **least)
    declared = Annotated[annotation, described]  # type: ignore[valid-type]
    return inspect.Parameter(each.name, KEYWORD, default=default, annotation=declared)


for _name, _verb in VERBS.items():
    verb_command(_name, _verb)


def _is_json(text: str) -> bool:
    """Return whether a text is JSON rather than the path of a file, which may begin with a bracket."""
    return text.lstrip().startswith("{") or (text.lstrip().startswith("[") and not os.path.exists(text))


def _default_of_stages(default: str) -> str:
    return f"{default}, or that of --pipeline"


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
    wavelet: Annotated[
        str | None, Option("--wavelet", "-w", help=WAVELET_HELP, show_default=_default_of_stages("cdf97"))
    ] = None,
    level: Annotated[
        int | None,
        Option("--level", "-l", min=0, help=LEVEL_HELP, show_default=_default_of_stages("3")),
    ] = None,
    shifts: Annotated[
        int | None, Option("--shifts", min=0, help=SHIFTS_HELP, show_default=_default_of_stages("0"))
    ] = None,
    over_time: OverTime = 0,
) -> CommandFilter:
    """Apply a pipeline of stages, given as options or read from a file.

    The options `--wavelet`, `--level` and `--shifts` replace those of a pipeline that is read.

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
        pipeline = Pipeline("cdf97", 3, stages)
    elif _is_json(pipeline_text):
        pipeline = Pipeline.from_json(pipeline_text)
    else:
        load_path = Path(pipeline_text)
        pipeline = Pipeline.load(load_path)
    changes: dict[str, Any] = {"wavelet": wavelet, "level": level, "invariant": shifts}
    pipeline = replace(pipeline, **{name: value for name, value in changes.items() if value is not None})

    def make(is_video: bool) -> Pipeline:
        windows = is_video and over_time and wavelet is None and pipeline_text is None
        return _for_windows(pipeline, over_time) if windows else pipeline

    return CommandFilter(make, over_time=over_time, save_path=save, load_path=load_path)
