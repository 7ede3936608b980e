"""Commands on coefficients: write them to files, reconstruct images, keep only some of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Argument, Option

import undula

from .. import io, measures, stores
from ..errors import ArgumentError, FileError, UndulaError
from ..filters import picture
from ..io.files import atomic_write, check_size, detect_kind
from ..io.limits import check_arrays
from .common import (
    Axes,
    Image,
    Json,
    Level,
    MaxPixels,
    Overwrite,
    Quiet,
    Resume,
    Scheduler,
    Wavelet,
    Workers,
    app,
    check_finite,
    similarity_text,
    to_dtype,
)
from .jobs import output_path, read_image
from .outputs import PIPE, check_outputs, piped_suffix
from .screen import print_json, print_output, print_text
from .zarr_stores import check_zarr_target, is_zarr, refuse_store_options, store_work

PANEL = "Transforms"


@app.command(rich_help_panel=PANEL)
def transform(
    source: Image,
    target: Annotated[
        Path,
        Argument(metavar="COEFFICIENTS", help="The .npz file to write; for a Zarr array, a Zarr store."),
    ],
    wavelet: Wavelet = "cdf97",
    level: Level = 3,
    mode: Annotated[
        str, Option("--mode", help="How the image is extended beyond its borders.")
    ] = "symmetric",
    show: Annotated[
        Path | None, Option("--picture", help="Also write the pyramid of coefficients as an image.")
    ] = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
    axes: Axes = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    resume: Resume = True,
) -> None:
    """Write the wavelet coefficients of an image to a file, and optionally show them as a pyramid.

    Those of a Zarr array are written to a Zarr store, region by region.

    Example: `undula example photo.png && undula transform photo.png coeffs.npz --picture pyramid.png`
    """
    if is_zarr(source):
        if show is not None:
            raise ArgumentError(f"--picture applies to images only; {source} is a Zarr store")
        check_zarr_target(source, target)
        with store_work(target, quiet or json_) as progress:
            stores.transform(
                source,
                target,
                wavelet,
                mode,
                level,
                axes,
                scheduler=scheduler,
                workers=workers,
                overwrite=overwrite,
                resume=resume,
                progress=progress,
            )
        if json_ or not quiet:
            print_output(target, json_, wavelet=undula.Wavelet(wavelet).name, mode=mode, level=level)
        return
    refuse_store_options(source, scheduler, workers, axes)
    check_outputs(target, show, overwrite=overwrite, inputs=[source])
    if target.suffix.lower() != ".npz":
        raise FileError(f"coefficients of an image file are written as .npz, got {target.name!r}")
    # The file of coefficients has no field for the orientation.
    image = read_image(source, max_pixels, single_page=True).upright()
    check_finite(image.pixels, source)
    coeffs = undula.wavedecn(image.pixels, wavelet, mode, level, axes=(0, 1))
    bands: dict[str, Any] = {"low": coeffs[0]}
    for number, details in enumerate(reversed(coeffs[1:]), 1):
        bands |= {f"level{number}_{key}": band for key, band in details.items()}
    header = {
        "wavelet": undula.Wavelet(wavelet).name,
        "mode": mode,
        "level": str(len(coeffs) - 1),
        "dtype": str(image.pixels.dtype),
        "shape": ",".join(map(str, image.pixels.shape)),
        "channels": ",".join(image.channels),
    }
    with atomic_write(target) as temporary, temporary.open("wb") as file:
        np.savez(file, coeffs=np.array([f"{key}={value}" for key, value in header.items()]), **bands)
    if show is not None:
        brightness = image.brightness()
        approximation, *details = undula.wavedecn(brightness, wavelet, mode, level)
        pyramid = [{key: band[None] for key, band in part.items()} for part in reversed(details)]
        io.write(show, picture(approximation[None], pyramid, brightness.shape)[0])
    if json_ or not quiet:
        print_output(target, json_, **header, bands={key: list(band.shape) for key, band in bands.items()})


@app.command(rich_help_panel=PANEL)
def inverse(
    source: Annotated[
        Path,
        Argument(metavar="COEFFICIENTS", help="An .npz file or Zarr store written by undula transform."),
    ],
    target: Annotated[Path, Argument(metavar="OUTPUT", help="The image file or Zarr array to write.")],
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    resume: Resume = True,
) -> None:
    """Reconstruct an image, or a Zarr array, from its wavelet coefficients.

    Example: `undula example photo.png && undula transform photo.png c.npz && undula inverse c.npz back.png`
    """
    if is_zarr(source):
        check_zarr_target(source, target)
        with store_work(target, quiet or json_) as progress:
            stores.inverse(
                source,
                target,
                scheduler=scheduler,
                workers=workers,
                overwrite=overwrite,
                resume=resume,
                progress=progress,
            )
        if json_ or not quiet:
            print_output(target, json_)
        return
    refuse_store_options(source, scheduler, workers)
    if detect_kind(source) != "npz":
        raise FileError(f"{source} is not a file of coefficients; write one with `undula transform`")
    check_outputs(target, overwrite=overwrite, inputs=[source])
    check_arrays(source, "npz", max_pixels)
    try:
        with source.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if "coeffs" not in archive.files:
                raise FileError(f"{source} contains no coefficients; write them with `undula transform`")
            header = dict(str(line).split("=", 1) for line in archive["coeffs"])
            levels = int(header["level"])
            if not 0 <= levels <= len(archive.files):
                raise FileError(f"{source} declares {levels} levels but has {len(archive.files)} arrays")
            shape = tuple(int(n) for n in header["shape"].split(","))
            check_size(source, math.prod(shape), max_pixels)
            coeffs: list[Any] = [archive["low"]]
            for number in range(levels, 0, -1):
                prefix = f"level{number}_"
                names = [name for name in archive.files if name.startswith(prefix)]
                coeffs.append({name.removeprefix(prefix): archive[name] for name in names})
            pixels = undula.waverecn(coeffs, header["wavelet"], header["mode"], axes=(0, 1), shape=shape)
            dtype = np.dtype(header["dtype"])
            channels = tuple(filter(None, header.get("channels", "").split(",")))
    except UndulaError:
        raise
    except Exception as error:  # A damaged archive may raise anything.
        raise FileError(f"cannot read {source}: {' '.join(str(error).split())[:120]}") from None
    io.write(target, io.Picture(to_dtype(pixels, dtype), channels=channels))
    if json_ or not quiet:
        print_output(target, json_, shape=list(pixels.shape))


@app.command(rich_help_panel=PANEL)
def approximate(
    source: Image,
    target: Annotated[
        str, Argument(metavar="OUTPUT", help="The image file to write, or - for standard output.")
    ],
    share: Annotated[
        float | None,
        Option("--share", help="Fraction of the coefficients to keep, from 0 to 1; the largest are kept."),
    ] = None,
    low: Annotated[
        bool, Option("--low", help="Keep only the approximation, and write it as a small image.")
    ] = False,
    wavelet: Wavelet = "cdf97",
    level: Level = 3,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Keep only the largest coefficients, or only the approximation, and measure the loss.

    Example: `undula example photo.png && undula approximate photo.png small.png --share 0.05`
    """
    if (share is None) == (not low):
        raise ArgumentError(
            "expected either --share with the fraction of the coefficients to keep, such as 0.05, or --low"
        )
    if share is not None and not 0 <= share <= 1:
        raise ArgumentError(f"--share must be from 0 to 1, got {share}")
    check_outputs(target, overwrite=overwrite, inputs=[source])
    image = read_image(source, max_pixels, single_page=True)
    pixels = image.pixels.astype(np.float64)
    check_finite(pixels, source)
    approximation, *details = undula.wavedecn(pixels, wavelet, level=level, axes=(0, 1))
    magnitudes = np.concatenate(
        [np.abs(band).ravel() for band in (approximation, *(b for part in details for b in part.values()))]
    )
    coeffs: list[Any]
    if low:
        kept = approximation.size
        coeffs = [approximation, *({} for _ in details)]  # Bands that are missing are zero.
    else:
        kept = round((share or 0) * magnitudes.size)
        index = magnitudes.size - kept
        threshold = np.partition(magnitudes, index)[index] if kept else np.inf
        coeffs = [
            np.where(np.abs(approximation) >= threshold, approximation, 0),
            *(
                {key: np.where(np.abs(band) >= threshold, band, 0) for key, band in part.items()}
                for part in details
            ),
        ]
    reconstruction = undula.waverecn(coeffs, wavelet, axes=(0, 1), shape=pixels.shape)
    restored = to_dtype(reconstruction, image.pixels.dtype)
    report = {"share": kept / magnitudes.size, "psnr": measures.psnr(image.pixels, restored)}
    if min(pixels.shape[:2]) >= 7:
        report["ssim"] = measures.ssim(image.pixels, restored, channel_axis=image.channel_axis)
    # Each level doubles the mean of the approximation.
    result = to_dtype(approximation / 2.0 ** len(details), image.pixels.dtype) if low else restored
    with output_path(target, piped_suffix(image.kind)) as path:
        io.write(path, image.with_pixels(result))
    if json_:
        print_json(report)
    elif target != PIPE:
        print_text(f"{100 * report['share']:.1f} % of the coefficients, " + similarity_text(report))
