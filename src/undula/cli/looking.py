"""Commands that tell: of files, of two of them, of schemes, of this machine."""

from __future__ import annotations

import math
import platform
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import undula

from .. import io, measures
from ..errors import ArgumentError, FileError, UndulaError, install_hint
from ..filters import estimate_sigma
from ..io.dicom import get_element
from . import jobs as work
from .common import Json, Level, MaxPixels, Overwrite, Wave, app, check_finite, measured
from .outputs import check_outputs
from .screen import say, show_json, show_table


@app.command()
def compare(
    a: Annotated[str, typer.Argument(help="a picture")],
    b: Annotated[str, typer.Argument(help="another one of the same size")],
    wavelet: Wave = "cdf97",
    level: Level = None,
    difference: Annotated[
        Path | None, typer.Option("--difference", help="save the difference as a picture")
    ] = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Tell how alike two pictures are: PSNR, SSIM, and for each band of their transforms.

    Example: `undula example photo.png && undula denoise photo.png b.png && undula compare photo.png b.png`
    """
    check_outputs(difference, overwrite=overwrite, inputs=[a, b])
    one, two = _alike(*(work.read_picture(path, max_pixels) for path in (a, b)))
    if one.pixels.shape != two.pixels.shape:
        raise ArgumentError(
            f"{a} has shape {one.pixels.shape}, and {b} {two.pixels.shape}: they cannot be compared"
        )
    scale = measures.value_range(one.pixels, two.pixels)
    gap = measures.difference(one.pixels, two.pixels)
    matched = ~np.isnan(gap)  # (the others are NaN or infinite in one picture only)
    unmatched = int(gap.size - np.count_nonzero(matched))
    found: dict[str, Any] = {
        "equal": not gap.any(),
        "psnr": measures.psnr(one.pixels[matched], two.pixels[matched], scale) if matched.any() else math.nan,
        "unmatched": unmatched,
    }
    pages = (
        [(p, q) for p, q in zip(one.pixels, two.pixels, strict=True)]
        if one.pages
        else [(one.pixels, two.pixels)]
    )
    if min(one.pixels.shape[axis] for axis in one.axes) >= 7:
        axis = -1 if one.channel_axis is not None else None
        found["ssim"] = float(np.mean([measures.ssim(p, q, scale, channel_axis=axis) for p, q in pages]))
    p, q = one.brightness(), two.brightness()
    if level is None:
        level = min(3, max(1, math.floor(math.log2(max(2, min(p.shape))))))
    bands = measures.compare_bands(p, q, wavelet, level, scale)
    if difference is not None:
        shown = gap[0] if one.pages else gap
        if one.channel_axis is not None:  # (in colours, unless other channels differ, too)
            colored = one.space == "rgb" and not shown[..., 3:].any()
            shown = shown[..., :3] if colored else shown.max(axis=-1)
        top = np.nanmax(shown, initial=0) or 1.0
        io.write(difference, np.round(np.nan_to_num(255 * (shown / top), nan=255)).astype(np.uint8))
    if json_:
        found["bands"] = [band._asdict() for band in bands]
        show_json(found)
        return
    if found["equal"]:
        say(_equality(one.pixels, two.pixels))
    else:
        if unmatched:
            say(f"{unmatched} samples are NaN or infinite in one of them only; of the others:")
        say(measured(found))
    rows = [[str(band.level), band.band, band.psnr, band.inner] for band in bands]
    show_table("PSNR of bands, dB", ["level", "band", "all", "away from borders"], rows)


def _alike(one: io.Picture, two: io.Picture) -> tuple[io.Picture, io.Picture]:
    """Two pictures as they can be compared: upright, with black at 0, in RGB, where they differ in that."""
    if one.orientation != two.orientation:
        one, two = one.upright(), two.upright()
    if one.about.get("photometric") != two.about.get("photometric"):
        one, two = one.with_black_zero(), two.with_black_zero()
    return (one, two) if one.channels == two.channels else (one.as_rgb(), two.as_rgb())


def _equality(one: np.ndarray[Any, Any], two: np.ndarray[Any, Any]) -> str:
    """In what respect arrays with equal values are equal."""
    if one.dtype != two.dtype:
        return f"all values are equal, but one file has {one.dtype} and the other {two.dtype}"
    return "equal to the last bit" if one.tobytes() == two.tobytes() else "all values are equal"


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
    given = work.read_picture(source, max_pixels).brightness()
    check_finite(given, source)

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
    found = _for_people(found)
    width = max(len(key) for key in found)
    for key, value in found.items():
        say(f"{key:{width}}  {value}")


def _for_people(found: dict[str, Any]) -> dict[str, Any]:
    """Pairs of numbers as one word each."""
    shown = dict(found)
    if "width" in shown:
        size = f"{shown.pop('width')} × {shown.pop('height')}"
        shown = {"file": shown.pop("file"), "kind": shown.pop("kind"), "size": size, **shown}
    if "channel names" in shown:
        names = ", ".join(shown.pop("channel names"))
        shown["channels"] = f"{shown['channels']} ({names})"
    if "least" in shown:
        shown["range"] = f"{shown.pop('least')} to {shown.pop('most')}"
    return shown


def _about_file(source: str, max_pixels: int | None) -> dict[str, Any]:
    with work.piped(source, "x", "") as (path, _):
        if not str(path).startswith("camera:") and not path.exists():
            raise FileError(f"cannot read {path}: there is no such file")
        if path.is_dir():
            raise FileError(f"{path} is a folder")
        if work.is_video(path):
            known = io.probe(path, max_pixels)
            frame = next(io.read_frames(path, 1, max_pixels), None)
            if frame is None:
                raise FileError(f"{path} has no frames that could be decoded")
            return {
                "file": source,
                "kind": f"video, {known.codec} in {known.container}",
                "width": known.width,
                "height": known.height,
                "frames": known.frames,
                "rate": round(known.rate, 3),
                "seconds": round(known.seconds, 3),
                "pixels": known.pixels,
                "audio": ", ".join(known.audio) or "none",
                "noise": _noise(io.Picture(frame)),
            }
        given = io.read(path, max_pixels)
    pixels = given.pixels
    finite = np.isfinite(pixels)
    valid = given.stored.valid(pixels) if given.stored is not None else None
    seen = pixels[finite if valid is None or not valid.any() else valid & finite]
    about: dict[str, Any] = {
        "file": source,
        "kind": given.kind,
        "width": int(pixels.shape[given.axes[1]]),
        "height": int(pixels.shape[given.axes[0]]),
        "channels": len(given.channels),
        "channel names": list(given.channels),
        "type": str(pixels.dtype),
        "least": seen.min().item() if seen.size else math.nan,
        "most": seen.max().item() if seen.size else math.nan,
        "noise": _noise(given, valid[0] if valid is not None and given.pages else valid),
    }
    if given.orientation != 1:
        about["orientation"] = given.orientation
    if not finite.all():
        about["not finite"] = int(np.count_nonzero(~finite))
    if given.pages:
        about["pages"] = len(pixels)
    if given.profile:
        about["colour profile"] = f"{len(given.profile)} bytes"
    dataset = given.about.get("dataset")
    if dataset is not None:
        about["modality"] = str(get_element(dataset, "Modality", "?"))
        about["photometric"] = str(get_element(dataset, "PhotometricInterpretation", "?"))
    return about


def _noise(given: io.Picture, valid: np.ndarray[Any, Any] | None = None) -> float:
    x = given.brightness()
    if valid is not None:
        x[~valid] = np.nan
    x[~np.isfinite(x)] = np.nan
    if np.isnan(x).all():
        return math.nan
    return round(float(estimate_sigma(x)), 4) if min(x.shape) > 4 else 0.0


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
            found[package] = f"missing: {install_hint(extras.get(package, 'app'))}"
    for backend in ("cuda", "opencl"):
        found[f"backend {backend}"] = _device(backend)
    found |= {f"device {name}": what for name, what in undula.devices().items()}
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
