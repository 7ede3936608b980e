"""Commands about coefficients: to files and back, and with few of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import undula

from .. import io, measures
from ..errors import ArgumentError, FileError, UndulaError
from ..filters import picture
from ..io.files import atomic_write, check_size
from ..io.limits import check_arrays
from . import jobs as work
from .common import Json, Level, MaxPixels, Overwrite, Wave, app, check_finite, measured, rounded
from .outputs import PIPE, check_outputs
from .screen import say, show_json


@app.command()
def transform(
    source: Annotated[str, typer.Argument(help="a picture")],
    target: Annotated[Path, typer.Argument(help="coefficients, as .npz")],
    wavelet: Wave = "cdf97",
    level: Level = 3,
    mode: Annotated[
        str, typer.Option("--mode", help="how the image is extended beyond its borders")
    ] = "symmetric",
    show: Annotated[Path | None, typer.Option("--picture", help="also save the pyramid as a picture")] = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Write the coefficients of a picture to a file, and show them as a pyramid.

    Example: `undula example photo.png && undula transform photo.png coeffs.npz --picture pyramid.png`
    """
    check_outputs(target, show, overwrite=overwrite, inputs=[source])
    if target.suffix.lower() != ".npz":
        raise FileError(f"coefficients are written as .npz, got {target.name!r}")
    given = work.read_picture(source, max_pixels).upright()  # (coefficients have no orientation)
    if given.pages:
        raise FileError(f"{source} has {len(given.pixels)} pages, and this transforms one picture")
    check_finite(given.pixels, source)  # (one NaN would be in every coefficient that reaches it)
    coeffs = undula.wavedecn(given.pixels, wavelet, mode, level, axes=(0, 1))
    found: dict[str, Any] = {"low": coeffs[0]}
    for number, details in enumerate(reversed(coeffs[1:]), 1):
        found |= {f"level{number}_{key}": band for key, band in details.items()}
    about = {"wavelet": undula.Wavelet(wavelet).name, "mode": mode, "level": str(len(coeffs) - 1)}
    about |= {"dtype": str(given.pixels.dtype), "shape": ",".join(map(str, given.pixels.shape))}
    about["channels"] = ",".join(given.channels)
    with atomic_write(target) as beside, beside.open("wb") as file:
        np.savez(file, coeffs=np.array([f"{key}={value}" for key, value in about.items()]), **found)
    if show is not None:
        planes = given.brightness()
        own = undula.wavedecn(planes, wavelet, mode, level)
        details = [{k: b[None] for k, b in part.items()} for part in reversed(own[1:])]
        io.write(show, picture(own[0][None], details, planes.shape)[0])
    if json_:
        show_json(
            {"output": str(target), **about, "bands": {key: list(band.shape) for key, band in found.items()}}
        )
    else:
        say(str(target))


@app.command()
def inverse(
    source: Annotated[Path, typer.Argument(help="coefficients, as .npz of undula transform")],
    target: Annotated[Path, typer.Argument(help="a picture")],
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Reconstruct a picture from its coefficients.

    Example: `undula example photo.png && undula transform photo.png c.npz && undula inverse c.npz back.png`
    """
    if not source.exists():
        raise FileError(f"cannot read {source}: there is no such file")
    check_outputs(target, overwrite=overwrite, inputs=[source])
    check_arrays(source, "npz", max_pixels)
    try:
        with source.open("rb") as file, np.load(file, allow_pickle=False) as found:
            if "coeffs" not in found.files:
                raise FileError(f"{source} has no coefficients of undula transform in it")
            about = dict(str(line).split("=", 1) for line in found["coeffs"])
            levels = int(about["level"])
            if not 0 <= levels <= len(found.files):
                raise FileError(f"{source} tells of level={levels}, and has {len(found.files)} arrays")
            shape = tuple(int(n) for n in about["shape"].split(","))
            check_size(source, math.prod(shape), max_pixels)
            coeffs: list[Any] = [found["low"]]
            for number in range(levels, 0, -1):
                start = f"level{number}_"
                keys = [name for name in found.files if name.startswith(start)]
                coeffs.append({name.removeprefix(start): found[name] for name in keys})
            made = undula.waverecn(coeffs, about["wavelet"], about["mode"], axes=(0, 1), shape=shape)
            dtype = np.dtype(about["dtype"])
            names = tuple(filter(None, about.get("channels", "").split(",")))
    except UndulaError:
        raise
    except Exception as error:  # (whatever a broken archive leads to)
        raise FileError(f"cannot read {source}: {' '.join(str(error).split())[:120]}") from None
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        made = np.clip(np.round(made), info.min, info.max)
    io.write(target, io.Picture(made.astype(dtype), channels=names))
    show_json({"output": str(target), "shape": list(made.shape)}) if json_ else say(str(target))


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
    overwrite: Overwrite = False,
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
    check_outputs(target, overwrite=overwrite, inputs=[source])
    given = work.read_picture(source, max_pixels)
    if given.pages:
        raise FileError(f"{source} has {len(given.pixels)} pages, and this takes one picture")
    x = given.pixels.astype(np.float64)
    check_finite(x, source)
    coeffs = undula.wavedecn(x, wavelet, level=level, axes=(0, 1))
    levels = len(coeffs) - 1
    total = sum(band.size for part in coeffs[1:] for band in part.values()) + coeffs[0].size
    if low:
        small = coeffs[0] / 2.0**levels
        kept = coeffs[0].size
        zeros = [coeffs[0], *(dict.fromkeys(part) for part in coeffs[1:])]
        made = undula.waverecn(zeros, wavelet, axes=(0, 1), shape=x.shape)
        result = rounded(small, given.pixels.dtype)
    else:
        sizes = np.concatenate(
            [np.abs(b).ravel() for b in (coeffs[0], *(b for p in coeffs[1:] for b in p.values()))]
        )
        kept = round((share or 0) * sizes.size)
        limit = np.partition(sizes, sizes.size - kept)[sizes.size - kept] if kept else np.inf
        cut: list[Any] = [np.where(np.abs(coeffs[0]) >= limit, coeffs[0], 0)]
        cut += [{k: np.where(np.abs(b) >= limit, b, 0) for k, b in part.items()} for part in coeffs[1:]]
        made = undula.waverecn(cut, wavelet, axes=(0, 1), shape=x.shape)
        result = rounded(made, given.pixels.dtype)
    back = rounded(made, given.pixels.dtype)
    axis = given.channel_axis
    found = {"share": kept / total, "psnr": measures.psnr(given.pixels, back)}
    if min(x.shape[:2]) >= 7:
        found["ssim"] = measures.ssim(given.pixels, back, channel_axis=axis)
    with work.piped("x", target, ".png") as (_, end):
        io.write(end, given.with_pixels(result))
    if json_:
        show_json(found)
    elif target != PIPE:
        say(f"{100 * kept / total:.1f} % of the coefficients, " + measured(found))
