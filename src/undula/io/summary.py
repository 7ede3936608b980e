"""What the headers of files tell: their kind and size, and whether a result could be written.

Nothing is decoded but headers, so that folders of thousands of files are described and checked in seconds.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import FileError, UndulaError
from .derivation import get_element
from .dicom import check_pixels
from .dicom import read_header as read_dicom_header
from .files import IMAGES, check_size, detect_kind, import_optional, output_kind
from .foreign import foreign_code
from .limits import check_declared
from .picture import Picture
from .raster import read, read_header, save
from .truncation import check_complete
from .video import probe

__all__ = ["FileSummary", "check_result", "summarize"]

TRIAL_SIDE = 16  # Of images that are written to try a format.


class FileSummary(NamedTuple):
    """The kind of a file, such as ``"png"`` or ``"video"``, its size, and the number of pages or frames."""

    kind: str
    width: int
    height: int
    frames: int


def summarize(path: Path, max_pixels: int | None = None) -> FileSummary:
    """Return what the header of an image or video tells; an error if it cannot be read or is too large."""
    kind = detect_kind(path)
    if kind is None and IMAGES.get(path.suffix.lower()) == "dicom":
        kind = "dicom"
    if kind is None:
        raise FileError(f"{path} is in no file format that Undula reads")
    if kind == "video":
        video = probe(path, max_pixels)
        return FileSummary(kind, video.width, video.height, video.frames)
    with foreign_code(f"cannot read {path} as {kind}"):
        check_declared(path, kind, max_pixels)
        check_complete(path, kind)
        width, height, frames = _image_size(path, kind, max_pixels)
    check_size(path, width * height * frames, max_pixels)
    return FileSummary(kind, width, height, frames)


def _image_size(path: Path, kind: str, max_pixels: int | None) -> tuple[int, int, int]:
    """Return the width, the height and the number of pages of an image."""
    if kind == "dicom":
        header = read_dicom_header(path)
        check_pixels(path, header)
        return int(header.Columns), int(header.Rows), int(get_element(header, "NumberOfFrames", 1))
    if kind == "raw":
        with import_optional("rawpy", "photo").RawPy() as raw:
            raw.open_file(str(path))
            return int(raw.sizes.width), int(raw.sizes.height), 1
    if kind == "heif":
        file = import_optional("pillow_heif", "photo").open_heif(path)
        size = file[file.primary_index].size
        return int(size[0]), int(size[1]), 1
    picture = read_header(path)
    if picture is None and kind != "npz":
        with import_optional("PIL.Image").open(path) as image:
            return image.width, image.height, int(getattr(image, "n_frames", 1))
    picture = read(path, max_pixels) if picture is None else picture
    height, width = (int(picture.pixels.shape[axis]) for axis in picture.axes)
    return width, height, len(picture.all_pages)


def check_result(source: Path, target: Path, max_pixels: int | None = None) -> FileSummary:
    """Raise an error if a file cannot be read, or the result of filtering it not be written.

    A small image of the same kind is written to a temporary folder, unless only decoding would tell its kind.
    """
    summary = summarize(source, max_pixels)
    result_kind = output_kind(target, summary.kind, source.suffix)
    if summary.kind == "video" or result_kind in ("tiff", "dicom"):
        return summary
    header = _dicom_pixels(source) if summary.kind == "dicom" else read_header(source)
    if header is not None:
        with tempfile.TemporaryDirectory(prefix="undula-") as folder:
            trial = Path(folder) / f"trial{target.suffix}"
            try:
                save(trial, _small(header))
            except UndulaError as error:
                error.args = (str(error).replace(str(trial), str(target)),)
                raise
    return summary


def _dicom_pixels(path: Path) -> Picture:
    """Return zeros of the type and the channels of a DICOM image."""
    header = read_dicom_header(path)
    sign = "i" if get_element(header, "PixelRepresentation", 0) else "u"
    dtype = f"{sign}{max(8, int(get_element(header, 'BitsAllocated', 8))) // 8}"
    samples = int(get_element(header, "SamplesPerPixel", 1))
    return Picture(np.zeros((TRIAL_SIDE, TRIAL_SIDE, samples)[: 2 + (samples > 1)], dtype), "dicom")


def _small(header: Picture) -> Picture:
    """Return a few pixels of a header, without metadata."""
    sides = (slice(TRIAL_SIDE),) * 2
    pixels: Any = header.pixels[:, *sides] if header.pages else header.pixels[sides]
    small = np.ascontiguousarray(pixels[:2] if header.pages else pixels)
    return replace(header, pixels=small, profile=None, exif=None, xmp=None, iptc=None, texts={}, stack=None)
