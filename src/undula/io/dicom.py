"""DICOM: pixels out of a dataset, and filtered ones back into a valid copy of it.

The copy is a derived image with a name of its own: it says that it is derived and by what, and leaves
everything about the patient and the study as it was.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, FileError
from .files import check_size, needed
from .raster import Picture

__all__ = ["read_dicom", "window", "write_dicom"]


def read_dicom(path: Path, max_pixels: int | None = None) -> Picture:
    """The pixels of a DICOM file: stored values of monochrome images, red, green and blue of all others."""
    pydicom = needed("pydicom")
    pixel_tools = needed("pydicom.pixels")
    dataset = pydicom.dcmread(path, force=path.suffix.lower() == ".dcm")
    for name in ("Rows", "Columns", "PixelData"):
        if name not in dataset:
            raise FileError(f"{path} is a DICOM file without a picture: it has no {name}")
    if int(dataset.get("BitsAllocated", 8)) not in (8, 16, 32):
        raise FileError(
            f"{path} has pixels of {dataset.BitsAllocated} bit(s), and there is nothing to filter"
        )
    frames = int(dataset.get("NumberOfFrames", 1) or 1)
    check_size(path, int(dataset.Rows) * int(dataset.Columns) * frames, max_pixels)
    if not getattr(dataset, "file_meta", None) or "TransferSyntaxUID" not in dataset.file_meta:
        raise FileError(f"{path} does not say how its pixels are kept (no TransferSyntaxUID)")
    pixels = dataset.pixel_array
    kind = str(dataset.get("PhotometricInterpretation", ""))
    if kind == "PALETTE COLOR":
        pixels = pixel_tools.apply_color_lut(pixels, dataset)
        if pixels.dtype == np.uint16:
            pixels = (pixels >> 8).astype(np.uint8)
    color = int(dataset.get("SamplesPerPixel", 1)) > 1 or kind == "PALETTE COLOR"
    pages = pixels.ndim - color > 2
    return Picture(np.ascontiguousarray(pixels), "dicom", pages, about={"dataset": dataset})


def window(picture: Picture) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The pixels as a screen shows them: 8 bits, by the window that the file asks for, or by their range."""
    pixels = picture.pixels
    dataset = picture.about.get("dataset")
    if pixels.dtype == np.uint8 and (dataset is None or picture.channel_axis is not None):
        return pixels
    if dataset is not None and picture.channel_axis is None:
        pixel_tools = needed("pydicom.pixels")
        shown = pixel_tools.apply_modality_lut(pixels, dataset)
        if "WindowCenter" in dataset and "WindowWidth" in dataset:
            shown = pixel_tools.apply_voi_lut(shown, dataset)
        if dataset.get("PhotometricInterpretation") == "MONOCHROME1":
            shown = shown.max() - shown
    else:
        shown = pixels
    shown = shown.astype(np.float64)
    low, high = float(shown.min()), float(shown.max())
    return np.asarray((shown - low) * (255 / max(high - low, 1e-12)) + 0.5, np.uint8)


def write_dicom(path: Path, picture: Picture) -> None:
    """A copy of the dataset that the picture came from, with these pixels in it."""
    pydicom = needed("pydicom")
    uid = needed("pydicom.uid")
    source = picture.about.get("dataset")
    if source is None:
        raise ArgumentError(
            "a DICOM file is written from one that was read, which says whose picture it is; this came from"
            f" {picture.kind or 'no file'}: write PNG, TIFF or .npy"
        )
    pixels = picture.pixels
    frames = pixels.shape[0] if picture.pages else 1
    wanted = int(source.get("NumberOfFrames", 1) or 1)
    if (
        frames != wanted
        or pixels.shape[picture.axes[0]] != source.Rows
        or pixels.shape[picture.axes[1]] != source.Columns
    ):
        raise ArgumentError(
            f"the dataset has {wanted} frame(s) of {source.Rows}×{source.Columns}, got pixels of"
            f" {pixels.shape}"
        )
    dataset = copy.deepcopy(source)
    color = picture.channel_axis is not None
    if color:
        dataset.PhotometricInterpretation = "RGB"
        dataset.SamplesPerPixel = 3
        dataset.PlanarConfiguration = 0
        for name in list(dataset.dir("Palette")):
            delattr(dataset, name)
        bits = 8 * pixels.itemsize
        dataset.BitsAllocated = dataset.BitsStored = bits
        dataset.HighBit = bits - 1
        dataset.PixelRepresentation = 0
        pixels = pixels[..., :3]
    else:
        allocated = int(dataset.BitsAllocated)
        signed = int(dataset.get("PixelRepresentation", 0))
        pixels = pixels.astype(f"{'i' if signed else 'u'}{allocated // 8}", copy=False)
    data = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder("<"))).tobytes()
    dataset.PixelData = data + b"\0" * (len(data) % 2)
    element = dataset["PixelData"]
    element.VR = "OW" if pixels.itemsize > 1 else "OB"
    element.is_undefined_length = False
    if "SOPInstanceUID" in source and "SOPClassUID" in source:
        origin = pydicom.Dataset()
        origin.ReferencedSOPClassUID = source.SOPClassUID
        origin.ReferencedSOPInstanceUID = source.SOPInstanceUID
        dataset.SourceImageSequence = pydicom.Sequence([origin])
    dataset.SOPInstanceUID = uid.generate_uid()
    kinds = list(dataset.get("ImageType", ["DERIVED", "SECONDARY"]))
    dataset.ImageType = ["DERIVED", *kinds[1:]] if len(kinds) > 1 else ["DERIVED", "SECONDARY"]
    from .. import __version__

    note = f"filtered with undula {__version__}"
    before = str(dataset.get("DerivationDescription", "")).strip()
    dataset.DerivationDescription = (f"{before}; {note}" if before else note)[-1024:]
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
    if "MediaStorageSOPClassUID" not in dataset.file_meta and "SOPClassUID" in dataset:
        dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    pydicom.dcmwrite(path, dataset, enforce_file_format=True)
