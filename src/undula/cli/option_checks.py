"""Refusing options that apply to none of the files of a command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import ArgumentError, FileError
from ..io.dicom_filtering import AUTOMATIC
from ..io.files import IMAGES, check_writable
from ..io.filtering import Encoding
from .finding import FileJob, input_kind
from .jobs import LOSSY_IMAGES, FilterOptions, is_dicom
from .outputs import PIPE, check_drawing, check_exists, check_outputs
from .zarr_stores import is_zarr

__all__ = ["refuse_image_options", "refuse_mask_options", "refuse_video_options"]

VIDEO_FLAGS = {
    "--frames": "frames",
    "--codec": "codec",
    "--crf": "quality",
    "--preset": "preset",
    "--no-audio": "audio",
    "--start": "start",
    "--duration": "duration",
}


def refuse_video_options(jobs: Sequence[FileJob], encoding: Encoding) -> None:
    """Raise an error for options of encoders if no input is a video, which they apply to."""
    default = Encoding()
    given = [flag for flag, name in VIDEO_FLAGS.items() if getattr(encoding, name) != getattr(default, name)]
    if given and not any(_may_be_video(job.source) for job in jobs):
        kind = "a Zarr store" if is_zarr(jobs[0].source) else "an image"
        inputs = f"{jobs[0].source} is {kind}" if len(jobs) == 1 else f"none of {len(jobs)} inputs is a video"
        raise ArgumentError(f"{given[0]} applies to video only; {inputs}")


def refuse_image_options(jobs: Sequence[FileJob], options: FilterOptions) -> None:
    """Raise an error for options of images if there is no result that they apply to."""
    lossy = {suffix for suffix, kind in IMAGES.items() if kind in LOSSY_IMAGES}
    # The format of standard output depends on the input.
    may_be_lossy = (str(job.target) == PIPE or job.target.suffix.lower() in lossy for job in jobs)
    if options.image_quality is not None and not any(may_be_lossy):
        outputs = f"{jobs[0].target.name} is not" if len(jobs) == 1 else f"none of {len(jobs)} outputs is"
        raise ArgumentError(f"--image-quality applies to JPEG, WebP, AVIF and HEIC; {outputs} one of them")
    if options.preview is None:
        return
    if len(jobs) > 1:
        raise ArgumentError(f"--preview shows a single image, got {len(jobs)} files")
    if is_zarr(jobs[0].source) or str(jobs[0].source).startswith("camera:"):
        raise ArgumentError(f"--preview applies to image files only, got {jobs[0].source}")
    check_drawing("--preview", options.preview)
    check_outputs(options.preview, overwrite=options.overwrite, inputs=[jobs[0].source])
    check_outputs(jobs[0].target, options.preview, overwrite=True)
    check_writable(options.preview)


def refuse_mask_options(jobs: Sequence[FileJob], mask: str, shown_mask: Path | None) -> None:
    """Raise an error for options of masks if no input is DICOM, or if one picture would show several."""
    check_drawing("--show-mask", shown_mask)
    if shown_mask is not None and len(jobs) > 1:
        raise ArgumentError(f"--show-mask shows the mask of one file; got {len(jobs)} inputs")
    if mask == AUTOMATIC and shown_mask is None:
        return
    for job in jobs:
        check_exists(job.source)
    if not any(str(job.source) == PIPE or is_dicom(job.source) for job in jobs):
        flag = "--mask" if shown_mask is None else "--show-mask"
        inputs = f"{jobs[0].source} is not" if len(jobs) == 1 else f"none of {len(jobs)} inputs is"
        raise ArgumentError(f"{flag} applies to DICOM files only; {inputs}")


def _may_be_video(source: Path) -> bool:
    """Return whether an input is a video, or cannot be read yet."""
    if str(source) == PIPE:
        return True
    if is_zarr(source):
        return False
    try:
        return input_kind(source) in ("video", None)
    except FileError:
        return True
