"""Read the pixels of a DICOM file, and write filtered ones to a valid copy of its dataset.

The copy is a derived image with a UID of its own. It says what it was derived from and by what, and leaves
all elements of the patient and the study unchanged. As in the standard, a *cell* is the word of allocated
bits that contains the stored bits of a sample.
"""

from __future__ import annotations

import copy
import io
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, FileError
from .files import check_size, import_optional, short_message
from .limits import MAX_METADATA_BYTES, codestream_size, inflates_beyond
from .picture import Picture
from .stored import StoredRange

__all__ = ["get_element", "read_dicom", "window", "write_dicom"]

Array = NDArray[Any]
PIXEL_DATA_TAG = 0x7FE00010


def get_element(dataset: Any, name: str, default: Any = None) -> Any:
    """Return the value of an element; the default if it is missing, empty or malformed."""
    try:
        value = dataset.get(name)
    except Exception:  # pydicom converts values lazily, and malformed ones raise all kinds of errors.
        return default
    return default if value is None or value == "" else value


def read_dicom(path: Path, kind: str, max_pixels: int | None = None) -> Picture:
    """Read a DICOM file: the stored values of a monochrome image, or the RGB values of others."""
    pixel_tools = import_optional("pydicom.pixels")
    dataset = _dataset(path, max_pixels)
    photometric = str(dataset.get("PhotometricInterpretation", ""))
    if photometric == "PALETTE COLOR":
        pixels = pixel_tools.apply_color_lut(pixel_tools.pixel_array(dataset), dataset)
        if pixels.dtype == np.uint16:
            pixels = (pixels >> 8).astype(np.uint8)
        color, stored = True, StoredRange(0, 255)
    elif int(dataset.get("SamplesPerPixel", 1)) > 1:
        pixels = pixel_tools.pixel_array(dataset)
        color, stored = True, _SampleBits.from_dataset(dataset).range
    else:
        pixels, stored = _monochrome(dataset, _cells(dataset))
        color = False
    pages = pixels.ndim - color > 2
    about = {"dataset": dataset, "suffix": path.suffix}
    if photometric == "MONOCHROME1":
        about["photometric"] = "miniswhite"
    return Picture(np.ascontiguousarray(pixels), kind, pages, about=about, stored=stored)


def _dataset(path: Path, max_pixels: int | None) -> Any:
    """Read a dataset after its header has been checked."""
    pydicom = import_optional("pydicom")
    deflated = _deflated_part(path)
    if deflated is None:
        header = pydicom.dcmread(path, stop_before_pixels=True, force=True)
    else:
        start = zlib.decompressobj(-zlib.MAX_WBITS).decompress(deflated, MAX_METADATA_BYTES)
        header = import_optional("pydicom.filereader").read_dataset(
            io.BytesIO(start), False, True, stop_when=lambda tag, vr, length: tag >= PIXEL_DATA_TAG
        )
    nbytes = _check_header(path, header, max_pixels)
    if deflated is not None and inflates_beyond(deflated, nbytes + MAX_METADATA_BYTES, -zlib.MAX_WBITS):
        raise FileError(
            f"{path} decompresses to more than its {nbytes:,} bytes of pixels and {MAX_METADATA_BYTES:,}"
            " bytes of other elements"
        )
    dataset = pydicom.dcmread(path, force=True)
    if "PixelData" not in dataset:
        raise FileError(f"{path} is a DICOM file without an image: it has no PixelData")
    if "TransferSyntaxUID" not in dataset.file_meta:
        if not nbytes <= len(dataset.PixelData) <= nbytes + 1:
            raise FileError(f"{path} does not declare how its pixels are encoded (no TransferSyntaxUID)")
        dataset.file_meta.TransferSyntaxUID = _uncompressed_syntax(dataset)
    if dataset.file_meta.TransferSyntaxUID.is_encapsulated:
        _check_frames(path, dataset)
    return dataset


def _uncompressed_syntax(dataset: Any) -> Any:
    """Return the transfer syntax of a dataset that does not declare it."""
    uid = import_optional("pydicom.uid")
    implicit, little_endian = dataset.original_encoding
    if not little_endian:
        return uid.ExplicitVRBigEndian
    return uid.ImplicitVRLittleEndian if implicit else uid.ExplicitVRLittleEndian


def _deflated_part(path: Path) -> bytes | None:
    """Return the bytes after the file meta information if they are deflated, else None."""
    reader = import_optional("pydicom.filereader")
    with path.open("rb") as file:
        if reader.read_preamble(file, True) is None:
            return None
        meta = reader.read_dataset(file, False, True, stop_when=lambda tag, vr, length: tag.group != 2)
        deflated = import_optional("pydicom.uid").DeflatedExplicitVRLittleEndian
        return file.read() if get_element(meta, "TransferSyntaxUID") == deflated else None


def _frame_count(dataset: Any) -> int:
    return int(dataset.get("NumberOfFrames", 1) or 1)


def _check_header(path: Path, header: Any, max_pixels: int | None) -> int:
    """Return the number of bytes of the pixels; raise an error if there are too many, or none to filter."""
    if "DirectoryRecordSequence" in header:
        raise FileError(f"{path} is a DICOM directory without an image; pass the folder")
    for name in ("Rows", "Columns"):
        if name not in header:
            raise FileError(f"{path} is a DICOM file without an image: it has no {name}")
    bits = int(header.get("BitsAllocated", 8))
    if bits not in (8, 16, 32):
        raise FileError(f"{path} has {bits} bit(s) per sample; only 8, 16 and 32 can be filtered")
    pixels = int(header.Rows) * int(header.Columns) * _frame_count(header)
    nbytes = pixels * int(header.get("SamplesPerPixel", 1)) * bits // 8
    check_size(path, pixels, max_pixels, nbytes)
    return nbytes


def _check_frames(path: Path, dataset: Any) -> None:
    """Raise an error if a compressed frame is larger than the dataset declares."""
    frames = import_optional("pydicom.encaps").generate_frames(
        dataset.PixelData, number_of_frames=_frame_count(dataset)
    )
    samples = max(4, int(dataset.get("SamplesPerPixel", 1)))
    for frame in frames:
        size = codestream_size(frame)
        if size and (size.pixels > int(dataset.Rows) * int(dataset.Columns) or size.samples > samples):
            raise FileError(
                f"{path} contains a frame of {size.width}×{size.height} pixels, larger than the declared"
                f" {dataset.Columns}×{dataset.Rows}"
            )


@dataclass(frozen=True)
class _SampleBits:
    """The position of the stored bits of a sample within its cell."""

    allocated: int
    stored: int
    shift: int
    signed: bool

    @classmethod
    def from_dataset(cls, dataset: Any) -> _SampleBits:
        """Read the elements that describe the bits; raise an error if they contradict each other."""
        allocated, stored = int(dataset.BitsAllocated), int(dataset.BitsStored)
        if not 1 <= stored <= allocated:
            raise FileError(
                f"{dataset.filename} declares {stored} stored bits (BitsStored) of {allocated} allocated"
                " (BitsAllocated), which is impossible"
            )
        high_bit = int(get_element(dataset, "HighBit", stored - 1))
        native = not dataset.file_meta.TransferSyntaxUID.is_encapsulated
        shift = high_bit + 1 - stored if native and stored <= high_bit + 1 <= allocated else 0
        return cls(allocated, stored, shift, bool(int(dataset.get("PixelRepresentation", 0))))

    @property
    def range(self) -> StoredRange:
        """The range of values that the stored bits can represent."""
        half = 1 << (self.stored - 1)
        return StoredRange(-half, half - 1) if self.signed else StoredRange(0, 2 * half - 1)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of a cell."""
        return np.dtype(f"{'i' if self.signed else 'u'}{self.allocated // 8}")

    def values(self, cells: Array) -> Array:
        """Extract the samples from cells, whatever their unused bits contain."""
        above = self.allocated - self.stored - self.shift
        return np.right_shift(cells << above, above + self.shift) if above or self.shift else cells

    def merged(self, values: Array, cells: Array) -> Array:
        """Return cells with other samples; the unused bits stay as they are."""
        unsigned = f"u{self.allocated // 8}"
        used = np.array(((1 << self.stored) - 1) << self.shift, unsigned)
        return np.asarray(((values.view(unsigned) << self.shift) & used) | (cells.view(unsigned) & ~used))


def _cells(dataset: Any) -> Array:
    """Decode the cells, including their unused bits."""
    return np.asarray(import_optional("pydicom.pixels").pixel_array(dataset, correct_unused_bits=False))


def _monochrome(dataset: Any, cells: Array) -> tuple[Array, StoredRange]:
    """Return the samples of a monochrome image, and their range."""
    bits = _SampleBits.from_dataset(dataset)
    syntax = dataset.file_meta.TransferSyntaxUID
    encoded = syntax.is_encapsulated and syntax.name != "RLE Lossless"
    if encoded and bits.stored < bits.allocated:  # Decoders return samples, which may exceed BitsStored.
        if cells.min() < bits.range.low or cells.max() > bits.range.high:
            bits = replace(bits, stored=bits.allocated)
        return cells, replace(bits.range, padding=_padding(dataset, bits))
    stored = replace(bits.range, padding=_padding(dataset, bits))
    values = bits.values(cells)
    # The padding value may exceed the stored bits, and is therefore compared with whole cells.
    valid = stored.valid(cells) if bits.shift == 0 else None
    return values if valid is None else np.where(valid, values, cells), stored


def _padding(dataset: Any, bits: _SampleBits) -> tuple[int, int] | None:
    """Return the first and the last padding value; None if there is none."""
    values = []
    for name in ("PixelPaddingValue", "PixelPaddingRangeLimit"):
        value = get_element(dataset, name)
        if isinstance(value, int):  # Many writers encode it with the sign of another PixelRepresentation.
            modulus = 1 << bits.allocated
            value %= modulus
            values.append(value - modulus if bits.signed and value >= modulus // 2 else value)
        elif name == "PixelPaddingValue":
            return None
    return min(values), max(values)


def window(picture: Picture) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Convert the pixels of a picture to 8 bits for display.

    Parameters
    ----------
    picture : Picture
        DICOM images are shown in the window that their dataset declares; others, and those without a window,
        from their smallest to their largest value. Images of 8 bits that are not DICOM are unchanged.

    Returns
    -------
    ndarray of uint8
        Of the same shape; padding is black.

    Examples
    --------
    >>> from undula.io import Picture
    >>> window(Picture(np.array([[0.0, 0.5, 1.0]])))
    array([[  0, 128, 255]], dtype=uint8)
    """
    pixels = picture.pixels
    dataset = picture.about.get("dataset")
    if pixels.dtype == np.uint8 and (dataset is None or picture.channel_axis is not None):
        return pixels
    shown = pixels
    if dataset is not None and picture.channel_axis is None:
        pixel_tools = import_optional("pydicom.pixels")
        try:
            shown = pixel_tools.apply_modality_lut(pixels, dataset)
            if "WindowCenter" in dataset and "WindowWidth" in dataset:
                shown = pixel_tools.apply_voi_lut(shown, dataset)
        except Exception as error:  # Malformed elements raise all kinds of errors.
            raise FileError(
                f"cannot apply the window of {dataset.filename}: {short_message(error)}"
            ) from None
        if get_element(dataset, "PhotometricInterpretation") == "MONOCHROME1":
            shown = -shown.astype(np.float64)
    valid = picture.stored.valid(pixels) if picture.stored is not None else None
    measured = shown if valid is None or not valid.any() else shown[valid]
    low, high = float(measured.min()), float(measured.max())
    scaled = (shown.astype(np.float64) - low) * (255 / max(high - low, 1e-12)) + 0.5
    if valid is not None:
        scaled[~valid] = 0
    return np.asarray(np.clip(scaled, 0, 255), np.uint8)


def write_dicom(path: Path, picture: Picture, kind: str, **options: Any) -> None:
    """Write a copy of the dataset that a picture was read from, with these pixels."""
    pydicom = import_optional("pydicom")
    source = picture.about.get("dataset")
    if source is None:
        raise ArgumentError(
            "DICOM needs the data of the patient, and is written only from a picture that was read from"
            f" DICOM; this one was read from {picture.kind or 'no file'}: write PNG, TIFF or .npy"
        )
    shape = picture.pixels.shape
    frames = _frame_count(source)
    sizes = (shape[0] if picture.pages else 1, shape[picture.axes[0]], shape[picture.axes[1]])
    if sizes != (frames, source.Rows, source.Columns):
        raise ArgumentError(
            f"the dataset has {frames} frame(s) of {source.Rows}×{source.Columns}, got pixels of shape"
            f" {shape}"
        )
    dataset = copy.deepcopy(source)
    if picture.channel_axis is not None:
        _set_colors(dataset, picture)
    else:
        _set_monochrome(dataset, picture)
    _record_derivation(dataset, source)
    try:
        pydicom.dcmwrite(path, dataset, enforce_file_format=True)
    except OSError:
        raise
    except Exception as error:  # Other elements are converted only now, and may be malformed.
        raise FileError(
            f"{source.filename} has elements besides its pixels that cannot be copied: {short_message(error)}"
        ) from None


# Elements with the smallest and the largest sample: of the image, and of its series or planes.
_IMAGE_EXTREMA = ("SmallestImagePixelValue", "LargestImagePixelValue")
_OTHER_EXTREMA = (
    "SmallestPixelValueInSeries LargestPixelValueInSeries SmallestImagePixelValueInPlane"
    " LargestImagePixelValueInPlane SmallestValidPixelValue LargestValidPixelValue"
).split()


def _delete(dataset: Any, names: Iterable[str]) -> None:
    for name in names:
        if name in dataset:
            delattr(dataset, name)


def _set_colors(dataset: Any, picture: Picture) -> None:
    """Store RGB values; with as many bits as before if the dataset has colours."""
    pixels = picture.pixels[..., :3]
    palette = dataset.get("PhotometricInterpretation") == "PALETTE COLOR"
    if int(dataset.get("SamplesPerPixel", 1)) > 1 and picture.stored is not None:
        stored, dtype = picture.stored, _SampleBits.from_dataset(dataset).dtype
    elif palette or pixels.dtype == np.uint8:
        stored, dtype = StoredRange(0, 255), np.dtype("u1")
    else:
        stored, dtype = StoredRange(0, 65535), np.dtype("u2")
    dataset.PhotometricInterpretation = "RGB"
    dataset.SamplesPerPixel = 3
    dataset.PlanarConfiguration = 0
    _delete(dataset, (*dataset.dir("Palette"), *_IMAGE_EXTREMA))
    _set_pixel_data(dataset, stored.fitted(pixels, np.empty(pixels.shape, dtype)), stored)


def _set_monochrome(dataset: Any, picture: Picture) -> None:
    """Store the samples of a monochrome image; padding and overlays in unused bits stay as they are."""
    if int(dataset.get("SamplesPerPixel", 1)) > 1 or picture.stored is None:
        raise ArgumentError(f"the dataset has colours, got grey pixels of shape {picture.pixels.shape}")
    stored, bits = picture.stored, _SampleBits.from_dataset(dataset)
    overlays = _has_embedded_overlays(dataset)
    if overlays or stored.padding is not None:
        cells = _cells(dataset)
        before = _monochrome(dataset, cells)[0]
    else:
        before = np.empty(picture.pixels.shape, bits.dtype)
    samples = stored.fitted(picture.pixels, before)
    valid = stored.valid(before) if stored.padding is not None else None
    measured = samples if valid is None else samples[valid]
    extrema = (measured.min(), measured.max()) if measured.size else ()
    for name, value in zip(_IMAGE_EXTREMA, extrema, strict=False):
        if name in dataset:
            dataset.add_new(name, "SS" if stored.low < 0 else "US", int(value))
            if not -32768 <= value <= 65535:
                delattr(dataset, name)
    if not overlays:
        _set_pixel_data(dataset, samples, stored)
        return
    merged = bits.merged(samples, cells)
    _set_pixel_data(dataset, merged if valid is None else np.where(valid, merged, cells), None)


def _has_embedded_overlays(dataset: Any) -> bool:
    """Return whether unused bits of the cells contain overlays."""
    groups = range(0x6000, 0x6020, 2)
    return any((group, 0x0102) in dataset and (group, 0x3000) not in dataset for group in groups)


def _set_pixel_data(dataset: Any, cells: Array, stored: StoredRange | None) -> None:
    """Store cells uncompressed; without a range, the elements that describe their bits are unchanged."""
    if stored is not None:
        dataset.BitsAllocated = 8 * cells.itemsize
        dataset.BitsStored = stored.high.bit_length() + (stored.low < 0)
        dataset.HighBit = dataset.BitsStored - 1
        dataset.PixelRepresentation = int(stored.low < 0)
    data = np.ascontiguousarray(cells.astype(cells.dtype.newbyteorder("<"))).tobytes()
    dataset.PixelData = data + b"\0" * (len(data) % 2)
    dataset["PixelData"].VR = "OW" if cells.itemsize > 1 else "OB"
    dataset["PixelData"].is_undefined_length = False
    _delete(dataset, (*_OTHER_EXTREMA, "ExtendedOffsetTable", "ExtendedOffsetTableLengths"))


def _record_derivation(dataset: Any, source: Any) -> None:
    """Give the dataset a new UID, and record its source and the filtering."""
    from .. import __version__

    pydicom, uid = import_optional("pydicom"), import_optional("pydicom.uid")
    if "SOPInstanceUID" in source and "SOPClassUID" in source:
        origin = pydicom.Dataset()
        origin.ReferencedSOPClassUID = source.SOPClassUID
        origin.ReferencedSOPInstanceUID = source.SOPInstanceUID
        dataset.SourceImageSequence = pydicom.Sequence([origin])
    dataset.SOPInstanceUID = uid.generate_uid()
    image_type = get_element(dataset, "ImageType", [])
    values = [] if isinstance(image_type, str) else list(image_type)
    dataset.ImageType = ["DERIVED", *(values[1:] or ["SECONDARY"])]
    note = f"filtered with undula {__version__}"
    before = str(get_element(dataset, "DerivationDescription", "")).strip()
    dataset.DerivationDescription = (f"{before}; {note}" if before else note)[-1024:]
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
    if "MediaStorageSOPClassUID" not in dataset.file_meta and "SOPClassUID" in dataset:
        dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
