"""Commands that filter files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

import undula

from ..errors import ArgumentError, FileError
from ..filters import Blur, Contrast, Gain, Laplace, Pipeline, Shrink, Stage, Unsharp
from ..filters.functions import enhancing, sharpening
from ..io.files import written
from . import jobs as work
from .common import (
    Backend,
    Codec,
    Frames,
    Json,
    Keep,
    Level,
    MaxPixels,
    NoAudio,
    Output,
    OverTime,
    Paths,
    Preset,
    Quality,
    Quiet,
    Recursive,
    Sigma,
    Wave,
    app,
)
from .screen import say, show_json


def _done(results: list[dict[str, Any]], begin: float, json_: bool, quiet: bool) -> None:
    seconds = time.perf_counter() - begin
    frames = sum(result["frames"] for result in results)
    if json_:
        show_json({"files": results, "seconds": seconds, "frames": frames})
    elif not quiet and not any(result["output"].endswith("-") for result in results):
        for result in results[:5]:
            say(f"{result['output']}")
        if len(results) > 5:
            say(f"… and {len(results) - 5} more")
        if frames > 1:
            say(f"{frames} frames in {seconds:.1f} s, {frames / seconds:.1f} in a second")


def _filtered(
    paths: list[str],
    output: str | None,
    recursive: bool,
    make: Any,
    options: work.Options,
    json_: bool,
) -> None:
    begin = time.perf_counter()
    found = work.jobs(paths, output, recursive)
    to_pipe = any(str(job.target) == work.PIPE for job in found)
    results = work.run_jobs(found, make, options)
    _done(results, begin, json_ and not to_pipe, options.quiet or to_pipe)


# --- filters --------------------------------------------------------------------------------------


@app.command()
def denoise(
    paths: Paths,
    output: Output = None,
    sigma: Sigma = None,
    strength: Annotated[float, typer.Option("--strength", "-s", help="above 1 more is taken out")] = 1.0,
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
    keep: Keep = False,
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

    options = work.Options(
        backend, max_pixels, not keep, quiet or json_, over_time, quality, codec, preset, not no_audio,
        frames, sigma=sigma,
    )  # fmt: skip
    _filtered(paths, output, recursive, make, options, json_)


@app.command()
def despeckle(
    paths: Paths,
    output: Output = None,
    kind: Annotated[
        str, typer.Option("--kind", "-k", help="log (what screens show), intensity or amplitude")
    ] = "log",
    strength: Annotated[float, typer.Option("--strength", "-s", help="above 1 more is taken out")] = 0.5,
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
    keep: Keep = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take speckle out of ultrasound, radar and OCT pictures, clips and DICOM files.

    Example: `undula example noisy.png && undula despeckle noisy.png clean.png --kind intensity`
    """
    options = work.Options(
        backend, max_pixels, not keep, quiet or json_, over_time, quality, codec, preset, not no_audio,
        frames, luma=True,
    )  # fmt: skip

    def despeckled(x: Any, *, sigma: Any, channel_axis: Any, backend: str) -> Any:
        own = {"channel_axis": channel_axis, "backend": backend}
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
    keep: Keep = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make edges steeper.

    Example: `undula example photo.png && undula sharpen photo.png sharp.png --amount 0.7`
    """
    pipeline = sharpening(amount, method, sigma)
    options = work.Options(
        backend,
        max_pixels,
        not keep,
        quiet or json_,
        0,
        quality,
        codec,
        preset,
        not no_audio,
        frames,
        luma=True,
    )
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
    keep: Keep = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Bring out weak structures at all scales.

    Example: `undula example photo.png && undula enhance photo.png clear.png`
    """
    pipeline = enhancing(amount, noise)
    options = work.Options(
        backend,
        max_pixels,
        not keep,
        quiet or json_,
        0,
        quality,
        codec,
        preset,
        not no_audio,
        frames,
        luma=True,
    )
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
    pipeline_file: Annotated[Path | None, typer.Option("--pipeline", "-p", help="a pipeline in JSON")] = None,
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
    keep: Keep = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a chain of filters: any number of stages in order, or a pipeline from a file.

    A stage may say where it stands: `blur:1@last`, `laplace@image`, `blur:1@approximation`, `gain:2@details`.

    Example: `undula example noisy.png && undula filter noisy.png out.png -S soft:20 -S unsharp:1:0.5@last`
    """
    if (stage is None) == (pipeline_file is None):
        raise ArgumentError("give stages (--stage, as often as you like), or a file (--pipeline)")
    if pipeline_file is not None:
        if not pipeline_file.exists():
            raise FileError(f"cannot read {pipeline_file}: there is no such file")
        pipeline = Pipeline.load(pipeline_file)
    else:
        pipeline = Pipeline(wavelet, level, [parsed_stage(text) for text in stage or []], invariant=shifts)
    if save is not None:
        work.apart(save, *(path for path in paths if Path(path).exists()))
        with written(save) as beside:
            pipeline.save(beside)
    options = work.Options(
        backend, max_pixels, not keep, quiet or json_, over_time, quality, codec, preset, not no_audio, frames
    )
    _filtered(paths, output, recursive, lambda video: pipeline, options, json_)


def parsed_stage(text: str) -> Stage:
    """A stage as it is written on a command line."""
    body, _, place = text.partition("@")
    name, *numbers = body.split(":")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ArgumentError(
            f"a stage is a name and numbers with colons, such as soft:20; got {text!r}"
        ) from None
    where: dict[str, Any] = {"at": place} if place else {}
    if name in ("soft", "hard", "garrote", "firm"):
        return Shrink("given", name, values or 20.0)
    if name in ("bayes", "sure", "hybrid", "universal", "minimax", "bivariate", "block"):
        return Shrink(name, strength=values[0] if values else 1.0)
    if name == "gain":
        return Gain(tuple(values) or 1.5)
    makers: dict[str, Any] = {"blur": Blur, "unsharp": Unsharp, "laplace": Laplace}
    if name == "contrast":
        return Contrast(*values)
    if name == "diagonal":
        return Laplace(values[0] if values else 0.1, "diagonal", **where)
    if name not in makers:
        known = (
            "soft hard garrote firm bayes sure hybrid universal minimax bivariate block gain contrast blur"
        )
        raise undula.UnknownNameError("stage", name, (*known.split(), "unsharp", "laplace", "diagonal"))
    try:
        return makers[name](*values, **where)  # type: ignore[no-any-return]
    except TypeError:
        raise ArgumentError(f"too many numbers for {name}: {text!r}") from None
