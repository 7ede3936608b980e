"""DICOM files for tests: written here, or real ones of pydicom and pydicom-data."""

from pathlib import Path
from typing import Any

import pydicom
import pytest
from pydicom.data import get_testdata_file
from pydicom.uid import CTImageStorage, ExplicitVRBigEndian, ExplicitVRLittleEndian, generate_uid


def scan_path(name: str) -> Path:
    """Return the path of a real scan; skip the test if it is not installed."""
    path = get_testdata_file(f"{name}.dcm", download=False)
    if path is None:
        pytest.skip(f"the scan {name} needs the package pydicom-data")
    return Path(str(path))


def save(path: Path, cells: Any, stored: int, signed: bool = False, **elements: Any) -> Path:
    """Write a DICOM file with these cells."""
    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    syntax = elements.pop("syntax", ExplicitVRLittleEndian)
    dataset.file_meta.TransferSyntaxUID = syntax if not syntax.is_compressed else ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = CTImageStorage
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID = generate_uid()
    color = cells.shape[-1] == 3
    frames = cells.ndim - color == 3
    if frames:
        dataset.NumberOfFrames = len(cells)
    dataset.Rows, dataset.Columns = cells.shape[int(frames) : int(frames) + 2]
    dataset.SamplesPerPixel = 3 if color else 1
    if color:
        dataset.PlanarConfiguration = 0
    dataset.PhotometricInterpretation = "RGB" if color else "MONOCHROME2"
    dataset.PixelRepresentation = int(signed)
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 8 * cells.itemsize, stored, stored - 1
    for name, value in elements.items():
        setattr(dataset, name, value)
    order = ">" if syntax == ExplicitVRBigEndian else "<"
    dataset.PixelData = cells.astype(cells.dtype.newbyteorder(order)).tobytes()
    dataset["PixelData"].VR = "OW" if cells.itemsize > 1 else "OB"
    if syntax.is_compressed:
        dataset.compress(syntax)
    dataset.save_as(path, enforce_file_format=True)
    return path


def damage_rle(path: Path) -> None:
    """Change a byte so that pylibjpeg-rle, which is written in Rust, panics: that is no Exception."""
    data = bytearray(path.read_bytes())
    offset_table = data.rindex(b"\xe0\x7f\x10\x00")
    frame = data.index(b"\xfe\xff\x00\xe0", data.index(b"\xfe\xff\x00\xe0", offset_table) + 8)
    data[frame + 16] = 0  # Where the second segment begins.
    path.write_bytes(data)
