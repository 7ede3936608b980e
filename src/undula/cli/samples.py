"""The command that writes sample files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import numpy as np
from typer import Argument, Option

from .. import io
from ..errors import FileError
from ..io.files import IMAGES, VIDEOS, atomic_write, import_optional
from ..io.samples import scene, write_clip
from ..stores.partial import PartialStore
from .common import Json, Overwrite, app
from .outputs import check_outputs
from .screen import print_output
from .zarr_stores import SUFFIX

# Samples of DICOM, and a word in the name of the file that asks for each.
SCANS = {"ultrasound-clip": "clip", "ct": "ct", "ultrasound": ""}


@app.command(rich_help_panel="Studio and samples")
def example(
    target: Annotated[
        Path,
        Argument(
            metavar="OUTPUT",
            help="An image, a video or a Zarr array, such as photo.png, noisy if its name contains noisy;"
            " or DICOM: a scan, or ct.dcm or clip.dcm.",
        ),
    ],
    sample: Annotated[
        str | None,
        Option("--sample", help="A sample of the Studio instead, such as noisy, volume or clip."),
    ] = None,
    overwrite: Overwrite = False,
    json_: Json = False,
) -> None:
    """Write a sample image, video, DICOM file or Zarr array to try the other commands with.

    Example: `undula example noisy.png`
    """
    sigma = 12.0 if "noisy" in target.stem else 2.0
    if target.suffix.lower() == SUFFIX and sample is None:
        _write_stack(target, sigma, overwrite)
        print_output(target, json_)
        return
    check_outputs(target, overwrite=overwrite)
    if sample is not None:
        _copy_sample(sample, target)
    elif target.suffix.lower() in VIDEOS:
        write_clip(target, sigma)
    elif IMAGES.get(target.suffix.lower(), "dicom") != "dicom":
        io.write(target, scene(240, 320, 0.0, sigma))
    elif target.suffix.lower() in IMAGES:
        names = [name for name, word in SCANS.items() if word in target.stem.lower()]
        _copy_sample(names[0], target)
    else:
        raise FileError(
            f"cannot write {target.name!r}: an example is an image, a video, a DICOM file or a Zarr array,"
            " such as noisy.png, noisy.mp4, scan.dcm or noisy.zarr"
        )
    print_output(target, json_)


def _copy_sample(name: str, target: Path) -> None:
    """Copy a sample, which keeps its format."""
    source, formats = io.sample(name), IMAGES | VIDEOS
    if formats.get(target.suffix.lower()) != formats[source.suffix]:
        raise FileError(f"the sample {name!r} is a {source.suffix} file, got {target.name!r}")
    with atomic_write(target) as temporary:
        shutil.copyfile(source, temporary)


def _write_stack(target: Path, sigma: float, overwrite: bool) -> None:
    """Write a stack of slices as a Zarr array."""
    zarr = import_optional("zarr", "scale")
    slices = np.stack([scene(240, 320, 0.2 * number, sigma)[..., 0] for number in range(8)])
    with PartialStore(target, {"operation": "example"}, overwrite, resume=False) as output:
        zarr.create_array(str(output.path), data=slices, chunks=(4, 64, 64), dimension_names=("z", "y", "x"))
