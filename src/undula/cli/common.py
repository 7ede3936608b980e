"""What commands share: the program itself, their options, a few words about numbers."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import typer

import undula

from ..errors import FileError

__all__ = ["app", "check_finite", "measured", "rounded"]


def _version(wanted: bool) -> None:
    if wanted:
        print(undula.__version__)
        raise typer.Exit


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Wavelets for pictures, video and DICOM: denoise, despeckle, sharpen, transform, compare.",
)


@app.callback(invoke_without_command=False)
def whole(
    version: Annotated[
        bool,
        typer.Option("--version", help="print the version and exit", is_eager=True, callback=_version),
    ] = False,
) -> None:
    """Wavelets for pictures, video and DICOM: denoise, despeckle, sharpen, transform, compare."""


Paths = Annotated[
    list[str], typer.Argument(help="INPUT OUTPUT; or inputs and folders, with --output; - is a pipe")
]
Output = Annotated[
    str | None, typer.Option("--output", "-o", help="a folder for all results, or a file for one")
]
Recursive = Annotated[bool, typer.Option("--recursive", "-r", help="also files in subfolders")]
Json = Annotated[bool, typer.Option("--json", help="print the result as JSON")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print errors only")]
Backend = Annotated[
    str, typer.Option("--backend", help="auto, cpu, cuda, opencl, or one device such as cuda:1")
]
MaxPixels = Annotated[
    int | None, typer.Option("--max-pixels", min=1, help="largest number of pixels that a file may have")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", "-y", help="replace outputs that exist")]
Level = Annotated[
    int | None,
    typer.Option("--level", "-l", min=0, help="number of levels; by default as many as suit the size"),
]
Wave = Annotated[str, typer.Option("--wavelet", "-w", help="any wavelet: undula info --wavelets lists them")]
Sigma = Annotated[
    float | None, typer.Option("--sigma", help="the noise, in grey levels; estimated if not given")
]
OverTime = Annotated[
    int, typer.Option("--over-time", min=0, help="video: number of frames to filter together, in 3-D")
]
Quality = Annotated[
    int, typer.Option("--quality", min=0, help="video: constant quality from 0, the best, to 63")
]
Codec = Annotated[
    str | None, typer.Option("--codec", help="video: an encoder of FFmpeg's: libx265, prores_ks, ffv1, …")
]
Preset = Annotated[
    str, typer.Option("--preset", help="video: effort of H.264 and HEVC, ultrafast to placebo")
]
NoAudio = Annotated[
    bool, typer.Option("--no-audio", help="video: write the film alone: no sound, subtitles, cover art")
]
Frames = Annotated[int | None, typer.Option("--frames", min=1, help="video: stop after so many frames")]


def check_finite(pixels: np.ndarray[Any, Any], source: str) -> None:
    """Raises an error for NaN and infinities, which a transform would spread over their surroundings."""
    count = np.count_nonzero(~np.isfinite(pixels))
    if count:
        raise FileError(
            f"{count} samples of {source} are NaN or infinite and would spread to others; replace them first"
        )


def rounded(x: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Numbers as pixels."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = np.clip(np.round(x), info.min, info.max)
    return x.astype(dtype)


def measured(found: dict[str, float]) -> str:
    """How alike two pictures are, in words."""
    words = []
    if math.isfinite(found["psnr"]):
        words.append(f"PSNR {found['psnr']:.2f} dB")
    elif found["psnr"] == math.inf:
        words.append("no difference")
    if "ssim" in found and math.isfinite(found["ssim"]):
        words.append(f"SSIM {found['ssim']:.4f}")
    return ", ".join(words)
