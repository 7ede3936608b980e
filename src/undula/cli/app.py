"""The commands."""

from __future__ import annotations

import logging
import math
import platform
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import undula

from .. import io, measures
from ..errors import ArgumentError, FileError, UndulaError
from ..filters import Blur, Contrast, Gain, Laplace, Pipeline, Shrink, Stage, Unsharp, estimate_sigma, picture
from ..io.files import IMAGES, VIDEOS, written
from . import jobs as work
from .screen import complain, say, show_json, show_table, steps

__all__ = ["app", "run"]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Wavelets for pictures, video and DICOM: denoise, despeckle, sharpen, transform, compare.",
)

Paths = Annotated[
    list[str], typer.Argument(help="INPUT OUTPUT; or inputs and folders, with --output; - is a pipe")
]
Output = Annotated[
    str | None, typer.Option("--output", "-o", help="a folder for all results, or a file for one")
]
Recursive = Annotated[bool, typer.Option("--recursive", "-r", help="folders within folders, too")]
Json = Annotated[bool, typer.Option("--json", help="for machines")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress, no words")]
Backend = Annotated[str, typer.Option("--backend", help="auto, cpu, cuda or opencl")]
MaxPixels = Annotated[int | None, typer.Option("--max-pixels", help="the most pixels that a file may have")]
Keep = Annotated[bool, typer.Option("--keep", help="never overwrite")]
Level = Annotated[
    int | None, typer.Option("--level", "-l", help="levels; as usual for the size if not given")
]
Wave = Annotated[str, typer.Option("--wavelet", "-w", help="any wavelet: undula info --wavelets lists them")]
Sigma = Annotated[
    float | None, typer.Option("--sigma", help="the noise, in grey levels; estimated if not given")
]
OverTime = Annotated[int, typer.Option("--over-time", help="video: so many frames filtered together, in 3-D")]
Quality = Annotated[int, typer.Option("--quality", help="video: constant quality, 0 is the best")]
Codec = Annotated[str | None, typer.Option("--codec", help="video: an encoder of FFmpeg's")]
Preset = Annotated[str, typer.Option("--preset", help="video: how much the encoder tries")]
NoAudio = Annotated[bool, typer.Option("--no-audio", help="video: leave sound and subtitles away")]
Frames = Annotated[int | None, typer.Option("--frames", help="video: the most frames to take")]


# What is wrong with how a command was called; typer has it from click, or has it itself.
USAGE: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def run(arguments: list[str] | None = None) -> int:
    """Runs a command; one line for an error, and its exit status."""
    for name in ("tifffile", "pydicom", "libav"):  # (what is wrong is told in one line)
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    command = typer.main.get_command(app)
    try:
        found = command.main(arguments, prog_name="undula", standalone_mode=False)
        return found if isinstance(found, int) else 0
    except typer.Exit as error:
        return int(error.exit_code)
    except USAGE as error:
        error.show()
        return 2
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted; nothing was left half done")
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except UndulaError as error:
        complain(str(error))
        return 1
    except MemoryError:
        complain("there is not enough memory for this")
        return 1
    except OSError as error:
        complain(f"{error.filename or ''}: {error.strerror or error}")
        return 1


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
    recursive: Recursive = False,
    quality: Quality = 18,
    keep: Keep = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take speckle out of ultrasound, radar and OCT pictures, clips and DICOM files.

    Example: `undula example noisy.png && undula despeckle noisy.png clean.png --kind intensity`
    """
    begin = time.perf_counter()
    found = work.jobs(paths, output, recursive)
    options = work.Options(max_pixels=max_pixels, overwrite=not keep, quiet=quiet or json_, quality=quality)

    class Despeckled(Pipeline):
        """What has no pipeline of its own: zeros are left out first."""

        def __call__(self, x: Any, **told: Any) -> Any:
            axis = told.get("channel_axis")
            return undula.despeckle(x, kind=kind, looks=looks, strength=strength, channel_axis=axis)

    results = work.run_jobs(found, lambda video: Despeckled(), options)
    _done(results, begin, json_, quiet)


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
    keep: Keep = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make edges steeper.

    Example: `undula example photo.png && undula sharpen photo.png sharp.png --amount 0.7`
    """
    methods: dict[str, list[Stage]] = {
        "unsharp": [Unsharp(sigma, amount)],
        "laplace": [Laplace(0.1 * amount)],
        "diagonal": [Laplace(0.1 * amount, "diagonal")],
        "wavelet": [Contrast(0.25, 1 + amount), Gain((1 + 0.5 * amount, 1 + 0.25 * amount, 1.0))],
    }
    if method not in methods:
        raise undula.UnknownNameError("method", method, tuple(methods))
    options = work.Options(backend, max_pixels, not keep, quiet or json_, quality=quality, luma=True)
    _filtered(
        paths, output, recursive, lambda video: Pipeline("bior4.4", None, methods[method]), options, json_
    )


@app.command()
def enhance(
    paths: Paths,
    output: Output = None,
    amount: Annotated[float, typer.Option("--amount", "-a", help="from 0 to 1")] = 0.4,
    noise: Annotated[bool, typer.Option("--denoise/--no-denoise", help="take noise out before")] = True,
    recursive: Recursive = False,
    backend: Backend = "auto",
    quality: Quality = 18,
    keep: Keep = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Bring out weak structures at all scales.

    Example: `undula example photo.png && undula enhance photo.png clear.png`
    """
    stages: list[Stage] = [Shrink("bayes", strength=0.7)] if noise else []
    pipeline = Pipeline("bior4.4", None, [*stages, Contrast(amount)])
    options = work.Options(backend, max_pixels, not keep, quiet or json_, quality=quality, luma=True)
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
        with written(save) as beside:
            pipeline.save(beside)
    options = work.Options(backend, max_pixels, not keep, quiet or json_, over_time, quality)
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


# --- transforms -----------------------------------------------------------------------------------


@app.command()
def transform(
    source: Annotated[str, typer.Argument(help="a picture")],
    target: Annotated[Path, typer.Argument(help="coefficients, as .npz")],
    wavelet: Wave = "cdf97",
    level: Level = 3,
    mode: Annotated[str, typer.Option("--mode", help="how lines go on beyond their ends")] = "symmetric",
    show: Annotated[Path | None, typer.Option("--picture", help="and as a picture")] = None,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Write the coefficients of a picture to a file, and show them as a pyramid.

    Example: `undula example photo.png && undula transform photo.png coeffs.npz --picture pyramid.png`
    """
    given = work.read_picture(source, max_pixels)
    if given.pages:
        raise FileError(f"{source} has {len(given.pixels)} pages, and this transforms one picture")
    coeffs = undula.wavedecn(given.pixels, wavelet, mode, level, axes=(0, 1))
    found: dict[str, Any] = {"low": coeffs[0]}
    for number, details in enumerate(reversed(coeffs[1:]), 1):
        found |= {f"level{number}_{key}": band for key, band in details.items()}
    about = {"wavelet": undula.Wavelet(wavelet).name, "mode": mode, "level": str(len(coeffs) - 1)}
    about |= {"dtype": str(given.pixels.dtype), "shape": ",".join(map(str, given.pixels.shape))}
    if target.suffix.lower() != ".npz":
        raise FileError(f"coefficients are written as .npz, got {target.name!r}")
    with written(target) as beside, beside.open("wb") as file:
        np.savez(file, coeffs=np.array([f"{key}={value}" for key, value in about.items()]), **found)
    if show is not None:
        planes = _grey(given.pixels)
        own = undula.wavedecn(planes, wavelet, mode, level)
        details = [{k: b[None] for k, b in part.items()} for part in reversed(own[1:])]
        io.write(show, picture(own[0][None], details, planes.shape)[0])
    if json_:
        show_json(
            {"output": str(target), **about, "bands": {key: list(band.shape) for key, band in found.items()}}
        )


@app.command()
def inverse(
    source: Annotated[Path, typer.Argument(help="coefficients, as .npz of undula transform")],
    target: Annotated[Path, typer.Argument(help="a picture")],
) -> None:
    """Make a picture of coefficients again.

    Example: `undula example photo.png && undula transform photo.png c.npz && undula inverse c.npz back.png`
    """
    if not source.exists():
        raise FileError(f"cannot read {source}: there is no such file")
    try:
        with source.open("rb") as file, np.load(file, allow_pickle=False) as found:
            if "coeffs" not in found.files:
                raise FileError(f"{source} has no coefficients of undula transform in it")
            about = dict(str(line).split("=", 1) for line in found["coeffs"])
            levels = int(about["level"])
            coeffs: list[Any] = [found["low"]]
            for number in range(levels, 0, -1):
                start = f"level{number}_"
                keys = [name for name in found.files if name.startswith(start)]
                coeffs.append({name.removeprefix(start): found[name] for name in keys})
            shape = tuple(int(n) for n in about["shape"].split(","))
            made = undula.waverecn(coeffs, about["wavelet"], about["mode"], axes=(0, 1), shape=shape)
            dtype = np.dtype(about["dtype"])
    except UndulaError:
        raise
    except Exception as error:
        raise FileError(f"cannot read {source}: {' '.join(str(error).split())[:120]}") from None
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        made = np.clip(np.round(made), info.min, info.max)
    io.write(target, made.astype(dtype))


def _grey(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Brightness, as floats."""
    x = pixels.astype(np.float64)
    return x if x.ndim == 2 else x[..., :3] @ np.array([0.299, 0.587, 0.114])


@app.command()
def approximate(
    source: Annotated[str, typer.Argument(help="a picture")],
    target: Annotated[str, typer.Argument(help="a picture")],
    share: Annotated[
        float | None, typer.Option("--share", help="of the coefficients that are kept, 0 to 1")
    ] = None,
    low: Annotated[
        bool, typer.Option("--low", help="keep the approximation alone, as a small picture")
    ] = False,
    wavelet: Wave = "cdf97",
    level: Level = 3,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Keep the largest coefficients, or the approximation alone, and tell what is lost.

    Example: `undula example photo.png && undula approximate photo.png small.png --share 0.05`
    """
    if (share is None) == (not low):
        raise ArgumentError(
            "give a share of the coefficients (--share 0.05), or --low for the approximation alone"
        )
    if share is not None and not 0 <= share <= 1:
        raise ArgumentError(f"a share is from 0 to 1, got {share}")
    given = work.read_picture(source, max_pixels)
    if given.pages:
        raise FileError(f"{source} has {len(given.pixels)} pages, and this takes one picture")
    x = given.pixels.astype(np.float64)
    coeffs = undula.wavedecn(x, wavelet, level=level, axes=(0, 1))
    levels = len(coeffs) - 1
    total = sum(band.size for part in coeffs[1:] for band in part.values()) + coeffs[0].size
    if low:
        small = coeffs[0] / 2.0**levels
        kept = coeffs[0].size
        zeros = [coeffs[0], *(dict.fromkeys(part) for part in coeffs[1:])]
        made = undula.waverecn(zeros, wavelet, axes=(0, 1), shape=x.shape)
        result = _rounded(small, given.pixels.dtype)
    else:
        sizes = np.concatenate(
            [np.abs(b).ravel() for b in (coeffs[0], *(b for p in coeffs[1:] for b in p.values()))]
        )
        kept = round((share or 0) * sizes.size)
        limit = np.partition(sizes, sizes.size - kept)[sizes.size - kept] if kept else np.inf
        cut: list[Any] = [np.where(np.abs(coeffs[0]) >= limit, coeffs[0], 0)]
        cut += [{k: np.where(np.abs(b) >= limit, b, 0) for k, b in part.items()} for part in coeffs[1:]]
        made = undula.waverecn(cut, wavelet, axes=(0, 1), shape=x.shape)
        result = _rounded(made, given.pixels.dtype)
    back = _rounded(made, given.pixels.dtype)
    axis = given.channel_axis
    found = {"share": kept / total, "psnr": measures.psnr(given.pixels, back)}
    if min(x.shape[:2]) >= 7:
        found["ssim"] = measures.ssim(given.pixels, back, channel_axis=axis)
    with work.piped("x", target, ".png") as (_, end):
        io.write(end, given.with_pixels(result))
    if json_:
        show_json(found)
    elif target != work.PIPE:
        say(f"{100 * kept / total:.1f} % of the coefficients, " + _measured(found))


def _rounded(x: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = np.clip(np.round(x), info.min, info.max)
    return x.astype(dtype)


def _measured(found: dict[str, float]) -> str:
    words = [f"PSNR {found['psnr']:.2f} dB" if math.isfinite(found["psnr"]) else "equal to the last bit"]
    if "ssim" in found:
        words.append(f"SSIM {found['ssim']:.4f}")
    return ", ".join(words)


# --- looking --------------------------------------------------------------------------------------


@app.command()
def compare(
    a: Annotated[str, typer.Argument(help="a picture")],
    b: Annotated[str, typer.Argument(help="another one of the same size")],
    wavelet: Wave = "cdf97",
    level: Level = 3,
    difference: Annotated[Path | None, typer.Option("--difference", help="write a picture of it")] = None,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Tell how alike two pictures are: PSNR, SSIM, and for each band of their transforms.

    Example: `undula example photo.png && undula denoise photo.png b.png && undula compare photo.png b.png`
    """
    one, two = (work.read_picture(path, max_pixels) for path in (a, b))
    if one.pixels.shape != two.pixels.shape:
        raise ArgumentError(
            f"{a} has shape {one.pixels.shape}, and {b} {two.pixels.shape}: they cannot be compared"
        )
    found: dict[str, Any] = {"psnr": measures.psnr(one.pixels, two.pixels)}
    pages = (
        [(p, q) for p, q in zip(one.pixels, two.pixels, strict=True)]
        if one.pages
        else [(one.pixels, two.pixels)]
    )
    if min(one.pixels.shape[axis] for axis in one.axes) >= 7:
        axis = -1 if one.channel_axis is not None else None
        found["ssim"] = float(np.mean([measures.ssim(p, q, channel_axis=axis) for p, q in pages]))
    scale = measures._range(one.pixels, two.pixels, None)
    p, q = pages[0]
    own = min(level or 3, max(1, math.floor(math.log2(max(2, min(p.shape[:2]))))))
    bands = measures.compare_bands(_grey(p), _grey(q), wavelet, own, scale)
    if difference is not None:
        shown = np.abs(p.astype(np.float64) - q.astype(np.float64))
        top = shown.max() or 1.0
        io.write(difference, np.round(255 * shown / top).astype(np.uint8))
    if json_:
        found["bands"] = [band._asdict() for band in bands]
        show_json(found)
        return
    say(_measured(found))
    rows = [[str(band.level), band.band, band.psnr, band.inner] for band in bands]
    show_table("PSNR of bands, dB", ["level", "band", "all", "away from borders"], rows)


@app.command()
def verify(
    source: Annotated[str, typer.Argument(help="a picture")],
    first: Annotated[
        str, typer.Option("--first", help="a backend: cpu, reference, opencl, cuda")
    ] = "reference",
    second: Annotated[
        str, typer.Option("--second", help="another one, with a strategy or scheme: opencl:tiled")
    ] = "cpu",
    wavelet: Wave = "cdf97",
    level: Level = 3,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Compare two backends or strategies on a picture, for every level and band.

    Example: `undula example photo.png && undula verify photo.png --first reference --second cpu`
    """
    given = _grey(work.read_picture(source, max_pixels).pixels)

    def plan(text: str) -> undula.Plan:
        backend, _, how = text.partition(":")
        told: dict[str, Any] = {}
        if how:
            told["scheme" if how in undula.SCHEMES else "strategy"] = how
        return undula.Plan(given.shape, wavelet, level=level, backend=backend, dtype="float64", **told)

    plans = [plan(first), plan(second)]
    coeffs = [own.forward(given) for own in plans]
    names = ("cH", "cV", "cD")
    rows = []
    for number in range(len(coeffs[0])):
        parts = [[each[0]] if number == 0 else list(each[number]) for each in coeffs]
        depth = len(coeffs[0]) - max(1, number)
        for name, p, q in zip(("cA",) if number == 0 else names, *parts, strict=True):
            rows.append([str(depth), name, measures.psnr(p, q, 255.0), float(np.abs(p - q).max())])
    back = max(float(np.abs(own.inverse(c) - given).max()) for own, c in zip(plans, coeffs, strict=True))
    worst = max(row[3] for row in rows)
    if json_:
        show_json(
            {
                "first": repr(plans[0]),
                "second": repr(plans[1]),
                "bands": [dict(zip(("level", "band", "psnr", "largest"), row, strict=True)) for row in rows],
                "largest": worst,
                "back": back,
            }
        )
        return
    shown = [[*row[:3], f"{row[3]:.1e}"] for row in rows]
    show_table(f"{first} and {second}", ["level", "band", "PSNR, dB", "largest difference"], shown)
    say(f"largest difference {worst:.1e}, after the way back {back:.1e} from the picture")


@app.command()
def scheme(
    wavelet: Annotated[str, typer.Argument(help="a wavelet")],
    name: Annotated[str | None, typer.Argument(help="a scheme; all are counted if not given")] = None,
    json_: Json = False,
) -> None:
    """Print the lifting steps of a wavelet, and its schemes with what they cost.

    Example: `undula scheme cdf53 "monolithic*"`
    """
    if name is not None:
        own = undula.scheme(wavelet, name)
        if json_:
            show_json(
                {"scheme": name, "operations": own.operations, "barriers": own.barriers, "text": str(own)}
            )
        else:
            say(str(own))
            say(f"{own.operations} operations, {own.barriers} barrier(s)")
        return
    made = [undula.scheme(wavelet, each) for each in undula.SCHEMES]
    if json_:
        counts = [
            {"scheme": n, "operations": s.operations, "barriers": s.barriers}
            for n, s in zip(undula.SCHEMES, made, strict=True)
        ]
        show_json({"wavelet": wavelet, "lifting": str(undula.lifting(wavelet)), "schemes": counts})
        return
    say(str(undula.lifting(wavelet)))
    rows = [[n, s.operations, s.barriers] for n, s in zip(undula.SCHEMES, made, strict=True)]
    show_table("", ["scheme", "operations", "barriers"], rows)


@app.command()
def info(
    source: Annotated[str | None, typer.Argument(help="a file; this machine if not given")] = None,
    wavelets: Annotated[bool, typer.Option("--wavelets", help="list all wavelets")] = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Tell about this installation, or about a file: size, type, noise.

    Example: `undula info` or `undula example photo.png && undula info photo.png`
    """
    if wavelets:
        names = undula.wavelist()
        show_json(names) if json_ else say(" ".join(names))
        return
    found = _about_file(source, max_pixels) if source is not None else _about_machine()
    if json_:
        show_json(found)
        return
    width = max(len(key) for key in found)
    for key, value in found.items():
        say(f"{key:{width}}  {value}")


def _about_file(source: str, max_pixels: int | None) -> dict[str, Any]:
    with work.piped(source, "x", "") as (path, _):
        if not str(path).startswith("camera:") and not path.exists():
            raise FileError(f"cannot read {path}: there is no such file")
        if path.is_dir():
            raise FileError(f"{path} is a folder")
        if work.is_video(path):
            known = io.look(path, max_pixels)
            frame = next(io.read_frames(path, 1, max_pixels), None)
            if frame is None:
                raise FileError(f"{path} has no frames that could be decoded")
            return {
                "file": source,
                "kind": f"video, {known.codec} in {known.container}",
                "size": f"{known.width} × {known.height}",
                "frames": known.frames,
                "rate": round(known.rate, 3),
                "seconds": round(known.seconds, 3),
                "pixels": known.pixels,
                "audio": ", ".join(known.audio) or "none",
                "noise of the first frame": _noise(frame),
            }
        given = io.read(path, max_pixels)
    pixels = given.pixels
    about: dict[str, Any] = {
        "file": source,
        "kind": given.kind,
        "size": f"{pixels.shape[given.axes[1]]} × {pixels.shape[given.axes[0]]}",
        "channels": pixels.shape[-1] if given.channel_axis is not None else 1,
        "type": str(pixels.dtype),
        "range": f"{pixels.min()} to {pixels.max()}",
        "noise": _noise(pixels[0] if given.pages else pixels),
    }
    if given.pages:
        about["pages"] = len(pixels)
    if given.profile:
        about["colour profile"] = f"{len(given.profile)} bytes"
    dataset = given.about.get("dataset")
    if dataset is not None:
        about["modality"] = str(dataset.get("Modality", "?"))
        about["photometric"] = str(dataset.get("PhotometricInterpretation", "?"))
    return about


def _noise(pixels: np.ndarray[Any, Any]) -> float:
    grey = _grey(pixels)
    return round(float(estimate_sigma(grey)), 4) if min(grey.shape) > 4 else 0.0


def _about_machine() -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, Any] = {
        "undula": undula.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": undula.get_num_threads(),
    }
    packages = ("numpy", "numba", "pillow", "tifffile", "pydicom", "av", "cuda-core", "pyopencl", "nicegui")
    extras = {"cuda-core": "cuda", "pyopencl": "opencl", "nicegui": "studio"}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = f"missing: pip install 'undula[{extras.get(package, 'app')}]'"
    for backend in ("cuda", "opencl"):
        found[f"backend {backend}"] = _device(backend)
    return found


def _device(backend: str) -> str:
    from ..transforms.ondevice import host

    try:
        own = host(backend).device(None)
    except UndulaError as error:
        return f"none: {error}"
    except Exception as error:  # a driver that is there and does not work
        return f"none: {' '.join(str(error).split())[:100]}"
    return str(getattr(own, "name", None) or own.key)


# --- speed ----------------------------------------------------------------------------------------


@app.command()
def accept(
    source: Annotated[str | None, typer.Argument(help="a video; 1920×1080 noise if not given")] = None,
    frames: Annotated[int, typer.Option("--frames", help="frames that are kept in memory")] = 50,
    wavelet: Wave = "cdf97",
    level: Level = 3,
    backend: Backend = "auto",
    rate: Annotated[float, typer.Option("--rate", help="frames in a second that are needed")] = 25.0,
    histogram: Annotated[
        Path | None, typer.Option("--histogram", help="write a picture of the times")
    ] = None,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test whether this machine transforms video in time: colour frames, forward and back, one by one.

    Example: `undula accept --frames 20`
    """
    if source is None:
        rng = np.random.default_rng(0)
        held = [rng.integers(0, 256, (1080, 1920, 3)).astype(np.uint8) for _ in range(min(frames, 8))]
        held = [held[k % len(held)] for k in range(frames)]
    else:
        if not source.startswith("camera:") and not Path(source).exists():
            raise FileError(f"cannot read {source}: there is no such file")
        held = list(io.read_frames(source, frames, max_pixels))
    if not held:
        raise FileError(f"{source} has no frames that could be decoded")
    forward_times, back_times = [], []
    error = 0.0
    with steps("frames", len(held), quiet or json_) as progress:
        for number, frame in enumerate([held[0]] * 2 + held):
            begin = time.perf_counter()
            coeffs = undula.color.forward(frame, wavelet, level, color="ict", backend=backend)
            middle = time.perf_counter()
            back = undula.color.inverse(coeffs, wavelet, color="ict", backend=backend)
            end = time.perf_counter()
            if number < 2:  # warming up
                continue
            forward_times.append(1e3 * (middle - begin))
            back_times.append(1e3 * (end - middle))
            error = max(error, float(np.abs(back.astype(np.float64) - frame).max()))
            progress(number - 1)
    found: dict[str, Any] = {
        "frames": len(held),
        "size": f"{held[0].shape[1]} × {held[0].shape[0]}",
        "backend": backend,
        "wavelet": wavelet,
        "level": level,
        "largest error": error,
    }
    for name, some in (("forward", forward_times), ("back", back_times)):
        found[name] = {
            "mean": float(np.mean(some)),
            "min": min(some),
            "max": max(some),
            "fps": 1e3 / float(np.mean(some)),
        }
    accepted = min(found["forward"]["fps"], found["back"]["fps"]) >= rate
    found["accepted"] = accepted
    if histogram is not None:
        io.write(histogram, _histogram({"forward": forward_times, "back": back_times}, 1e3 / rate))
    if json_:
        show_json(found)
    else:
        rows = [[n, *(found[n][k] for k in ("mean", "min", "max", "fps"))] for n in ("forward", "back")]
        title = f"{found['size']}, {len(held)} frames, {wavelet}, {level} levels, milliseconds"
        show_table(title, ["", "mean", "min", "max", "frames/s"], rows)
        say(f"{'accepted' if accepted else 'NOT accepted'}: {rate:g} frames in a second are needed")
    if not accepted:
        raise typer.Exit(3)


def _histogram(times: dict[str, list[float]], limit: float) -> np.ndarray[Any, Any]:
    """Bars of times, with a line where they should end."""
    from PIL import Image, ImageDraw

    width, height, pad = 720, 300, 40
    sheet = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(sheet)
    longest = max(max(some) for some in times.values())
    top = max(longest * 1.05, limit * 1.1)
    bins = np.linspace(0, top, 61)
    counts = {name: np.histogram(some, bins)[0] for name, some in times.items()}
    most = max(int(c.max()) for c in counts.values())
    step = (width - 2 * pad) / 60
    for name, color, shift in (("forward", "#0b7285", 0.0), ("back", "#e8590c", 0.5)):
        for k, count in enumerate(counts[name]):
            if count:
                left = pad + (k + shift) * step
                high = (height - 2 * pad) * count / most
                draw.rectangle([left, height - pad - high, left + step / 2 - 1, height - pad], fill=color)
    draw.line([pad, height - pad, width - pad, height - pad], fill="#868e96")
    at = pad + (width - 2 * pad) * limit / top
    draw.line([at, pad / 2, at, height - pad], fill="#c92a2a", width=2)
    draw.text((at - 90, pad / 2 - 12), f"limit {limit:.1f} ms", fill="#c92a2a")
    for share in (0, 0.25, 0.5, 0.75, 1):
        draw.text(
            (pad + share * (width - 2 * pad) - 10, height - pad + 6), f"{share * top:.1f} ms", fill="#1d2733"
        )
    draw.text((pad, 8), "forward", fill="#0b7285")
    draw.text((pad + 60, 8), "back", fill="#e8590c")
    return np.asarray(sheet)


@app.command()
def bench(
    json_: Json = False,
    quick: Annotated[bool, typer.Option("--quick", help="small sizes alone")] = False,
) -> None:
    """Measure this machine: transforms beside a copy, and denoising.

    Example: `undula bench --quick`
    """
    rows = []
    for n in (512, 1024) if quick else (512, 1024, 2048, 4096):
        x = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
        y = np.empty_like(x)
        plan = undula.Plan((n, n), "cdf97", level=5 if n > 512 else 4, dtype="float32")
        coeffs = plan.forward(x)
        rows.append(
            [
                f"{n}²",
                _best(lambda x=x, y=y: np.copyto(y, x)),
                _best(lambda p=plan, x=x, c=coeffs: p.forward(x, out=c)),
                _best(lambda p=plan, y=y, c=coeffs: p.inverse(c, out=y)),
                _best(lambda x=x: undula.denoise_wavelet(x)),
                _best(lambda x=x: undula.denoise(x), 3),
            ]
        )
    names = ["size", "copy", "forward", "back", "denoise_wavelet", "denoise"]
    if json_:
        show_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        show_table("milliseconds, float32, CDF 9/7, all levels that are usual", names, rows)


def _best(do: Any, runs: int = 9) -> float:
    do()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        do()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


@app.command()
def example(
    target: Annotated[
        Path, typer.Argument(help="photo.png, noisy.png, noisy.mp4, …: noise if the name says so")
    ],
) -> None:
    """Write a picture or a clip to try the other commands with.

    Example: `undula example noisy.png`
    """
    rough = 12.0 if "noisy" in target.stem else 2.0
    if target.suffix.lower() in VIDEOS:
        _example_clip(target, rough)
        return
    if target.suffix.lower() not in IMAGES or target.suffix.lower() == ".dcm":
        raise FileError(
            f"an example is a picture or a clip, such as noisy.png or noisy.mp4; got {target.name!r}"
        )
    io.write(target, _scene(240, 320, 0.0, rough))


def _scene(height: int, width: int, turn: float, rough: float) -> np.ndarray[Any, Any]:
    """Something with edges, textures and slopes."""
    rng = np.random.default_rng(round(turn * 1000))
    y, x = np.mgrid[:height, :width].astype(np.float64)
    sky = 150 + 60 * y / height
    hill = y > 0.62 * height + 18 * np.sin(x / 37 + turn) + 6 * np.sin(x / 11)
    disc = (x - (0.7 * width + 12 * np.cos(turn))) ** 2 + (y - 0.3 * height) ** 2 < (0.14 * height) ** 2
    bars = (x > 0.12 * width) & (x < 0.3 * width) & (y > 0.3 * height) & (y < 0.7 * height)
    grey = np.where(hill, 70 + 25 * np.sin(x / 3) * np.sin(y / 4), sky)
    grey = np.where(bars, 60 + 120 * ((x // 6) % 2), grey)
    planes = [np.where(disc, c, grey * t) for c, t in ((235, 1.0), (180, 0.96), (60, 0.88))]
    image = np.stack(planes, axis=-1) + rough * rng.standard_normal((height, width, 3))
    return np.clip(np.round(image), 0, 255).astype(np.uint8)


def _example_clip(target: Path, rough: float) -> None:
    from ..io.files import needed

    av = needed("av")
    with written(target) as beside:
        kind = VIDEOS[target.suffix.lower()]
        with av.open(str(beside), "w", format=kind) as container:
            stream = container.add_stream(io.video.CODECS[kind], rate=25)
            stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
            for number in range(50):
                frame = av.VideoFrame.from_ndarray(_scene(240, 320, number / 8, rough), format="rgb24")
                container.mux(stream.encode(frame.reformat(format="yuv420p")))
            container.mux(stream.encode(None))
