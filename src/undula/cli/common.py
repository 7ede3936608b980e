"""What the commands share: the Typer application, common options, and a few helpers for numbers."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import typer
from typer import Argument, Option

import undula

from ..errors import FileError
from ..io import DEFAULT_MAX_PIXELS

# Headings of the list of commands, in their order.
PANELS = ("Filters", "Transforms", "Information", "Measurements", "Studio and samples")


def _print_version(requested: bool) -> None:
    if requested:
        print(undula.__version__)
        raise typer.Exit


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=False)
def main(
    version: Annotated[
        bool, Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Wavelets for images, video and DICOM: denoise, despeckle, sharpen, transform, compare."""


Image = Annotated[str, Argument(metavar="IMAGE", help="An image file, or - for standard input.")]
Json = Annotated[bool, Option("--json", help="Print a report as JSON.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print errors only.")]
Backend = Annotated[
    str, Option("--backend", help="Backend: auto, cpu, reference, cuda, opencl, or a device such as cuda:1.")
]
MaxPixels = Annotated[
    int | None,
    Option(
        "--max-pixels", min=1, help="Refuse files with more pixels.", show_default=f"{DEFAULT_MAX_PIXELS:,}"
    ),
]
Overwrite = Annotated[bool, Option("--overwrite", "-y", help="Replace existing files.")]
LEVEL_HELP = "Number of decomposition levels."
Level = Annotated[int, Option("--level", "-l", min=0, help=LEVEL_HELP)]
AutoLevel = Annotated[
    int | None, Option("--level", "-l", min=0, help=LEVEL_HELP, show_default="depends on the image size")
]
CLUSTER = "Zarr and clusters"
Scheduler = Annotated[
    str | None,
    Option(
        "--scheduler",
        help="Address of the scheduler of a Dask cluster, such as tcp://10.0.0.1:8786.",
        rich_help_panel=CLUSTER,
    ),
]
Workers = Annotated[
    int | None,
    Option(
        "--workers",
        min=1,
        help="Number of processes to start on this machine.",
        show_default="threads of this process",
        rich_help_panel=CLUSTER,
    ),
]
Resume = Annotated[
    bool,
    Option(
        "--resume/--no-resume",
        help="Continue an interrupted run with the same options, or begin again.",
        rich_help_panel=CLUSTER,
    ),
]
STACKS = "Stacks"
StackNames = Annotated[
    str | None,
    Option(
        "--axes",
        help="Names of the axes of a stack, one letter each, such as TZCYX; Z40C3YX divides 120 pages.",
        show_default="those in the file",
        rich_help_panel=STACKS,
    ),
]
FilterOver = Annotated[
    str | None,
    Option(
        "--filter-over",
        help="Axes that are filtered together, such as ZYX for volumes or TYX for time series.",
        show_default="YX, each plane by itself; for Zarr, all in space",
        rich_help_panel=STACKS,
    ),
]
Axes = Annotated[
    str | None,
    Option(
        "--axes",
        help="Axes of a Zarr array, by number or name, such as z,y,x.",
        show_default="all in space",
        rich_help_panel=CLUSTER,
    ),
]
WAVELET_HELP = "Name of a wavelet; undula info --wavelets lists them."
Wavelet = Annotated[str, Option("--wavelet", "-w", help=WAVELET_HELP)]


def check_finite(pixels: np.ndarray[Any, Any], source: str) -> None:
    """Raise an error for NaN and infinity, which a transform would spread to their surroundings."""
    count = np.count_nonzero(~np.isfinite(pixels))
    if count:
        raise FileError(
            f"{count} samples of {source} are NaN or infinite and would spread to others; replace them first"
        )


def to_dtype(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert an array to a dtype; for integers, round and clip to their range."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = np.clip(np.round(values), info.min, info.max)
    return values.astype(dtype)


def similarity_text(report: dict[str, Any]) -> str:
    """Format the PSNR and, if present, the SSIM of a report, without those that are not finite."""
    parts = []
    if math.isfinite(report["psnr"]):
        parts.append(f"PSNR {report['psnr']:.2f} dB")
    elif report["psnr"] == math.inf:
        parts.append("no difference")
    if "ssim" in report and math.isfinite(report["ssim"]):
        parts.append(f"SSIM {report['ssim']:.4f}")
    return ", ".join(parts)
