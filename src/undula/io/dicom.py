"""DICOM: pixels out of a dataset, and filtered ones back into a valid copy of it.

The copy is a derived image with a name of its own: it says that it is derived and by what, and leaves
everything about the patient and the study as it was.
"""

from __future__ import annotations

import copy
import io
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, FileError
from .files import check_size, import_optional
from .limits import MAX_METADATA_BYTES, codestream_size, inflates_beyond
from .picture import Picture
from .stored import StoredRange

__all__ = ["get_element", "read_dicom", "window", "write_dicom"]

Array = NDArray[Any]
PIXELS = 0x7FE00010  # the tag of the pixels, the last of the usual elements


def get_element(dataset: Any, name: str, default: Any = None) -> Any:
    """The value of an element; the default where it is missing, empty, or not to be understood.

    Values are converted when somebody asks for them, and a broken one can raise anything.
    """
    try:
        value = dataset.get(name)
    except Exception:  # (a broken element raises anything when it is converted)
        return default
    return default if value is None or value == "" else value


def read_dicom(path: Path, max_pixels: int | None = None) -> Picture:
    """The pixels of a DICOM file: stored values of monochrome images, red, green and blue of all others."""
    pixel_tools = import_optional("pydicom.pixels")
    dataset = _dataset(path, max_pixels)
    kind = str(dataset.get("PhotometricInterpretation", ""))
    if kind == "PALETTE COLOR":
        pixels = pixel_tools.apply_color_lut(pixel_tools.pixel_array(dataset), dataset)
        if pixels.dtype == np.uint16:
            pixels = (pixels >> 8).astype(np.uint8)
        color, stored = True, StoredRange(0, 255)
    elif int(dataset.get("SamplesPerPixel", 1)) > 1:
        pixels = pixel_tools.pixel_array(dataset)
        color, stored = True, _Layout.of(dataset).range
    else:
        pixels, stored = _monochrome(dataset, _cells(dataset))
        color = False
    pages = pixels.ndim - color > 2
    about = {"dataset": dataset, "suffix": path.suffix}
    if kind == "MONOCHROME1":
        about["photometric"] = "miniswhite"
    return Picture(np.ascontiguousarray(pixels), "dicom", pages, about=about, stored=stored)


def _dataset(path: Path, max_pixels: int | None) -> Any:
    """All of a file, once it is known that its pixels are as many as they should be."""
    pydicom = import_optional("pydicom")
    packed = _deflated_part(path)
    if packed is None:
        head = pydicom.dcmread(path, stop_before_pixels=True, force=True)
    else:
        begin = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, MAX_METADATA_BYTES)
        head = import_optional("pydicom.filereader").read_dataset(
            io.BytesIO(begin), False, True, stop_when=lambda tag, vr, length: tag >= PIXELS
        )
    nbytes = _check_head(path, head, max_pixels)
    if packed is not None and inflates_beyond(packed, nbytes + MAX_METADATA_BYTES, -zlib.MAX_WBITS):
        raise FileError(
            f"{path} unpacks to more than its {nbytes:,} bytes of pixels and {MAX_METADATA_BYTES:,} besides"
        )
    dataset = pydicom.dcmread(path, force=True)
    if "PixelData" not in dataset:
        raise FileError(f"{path} is a DICOM file without a picture: it has no PixelData")
    if "TransferSyntaxUID" not in dataset.file_meta:
        if not nbytes <= len(dataset.PixelData) <= nbytes + 1:
            raise FileError(f"{path} does not say how its pixels are kept (no TransferSyntaxUID)")
        dataset.file_meta.TransferSyntaxUID = _plain_syntax(dataset)
    if dataset.file_meta.TransferSyntaxUID.is_encapsulated:
        _check_frames(path, dataset)
    return dataset


def _plain_syntax(dataset: Any) -> Any:
    """How a dataset is kept that does not say so, as bare ones do not."""
    uid = import_optional("pydicom.uid")
    implicit, little = dataset.original_encoding
    if not little:
        return uid.ExplicitVRBigEndian
    return uid.ImplicitVRLittleEndian if implicit else uid.ExplicitVRLittleEndian


def _deflated_part(path: Path) -> bytes | None:
    """What comes after the first group of elements, if it is deflated."""
    reader = import_optional("pydicom.filereader")
    with path.open("rb") as file:
        if reader.read_preamble(file, True) is None:
            return None
        told = reader.read_dataset(file, False, True, stop_when=lambda tag, vr, length: tag.group != 2)
        syntax = get_element(told, "TransferSyntaxUID")
        return (
            file.read() if syntax == import_optional("pydicom.uid").DeflatedExplicitVRLittleEndian else None
        )


def _frame_count(dataset: Any) -> int:
    return int(dataset.get("NumberOfFrames", 1) or 1)


def _check_head(path: Path, head: Any, max_pixels: int | None) -> int:
    """How many bytes the pixels have; an error if they cannot be filtered, or are too many."""
    if "DirectoryRecordSequence" in head:
        raise FileError(f"{path} lists the files of a folder, and has no picture; pass the folder")
    for name in ("Rows", "Columns"):
        if name not in head:
            raise FileError(f"{path} is a DICOM file without a picture: it has no {name}")
    bits = int(head.get("BitsAllocated", 8))
    if bits not in (8, 16, 32):
        raise FileError(f"{path} has pixels of {bits} bit(s), and there is nothing to filter")
    pixels = int(head.Rows) * int(head.Columns) * _frame_count(head)
    nbytes = pixels * int(head.get("SamplesPerPixel", 1)) * bits // 8
    check_size(path, pixels, max_pixels, nbytes)
    return nbytes


def _check_frames(path: Path, dataset: Any) -> None:
    """An error for compressed frames that are larger than the file says."""
    frames = import_optional("pydicom.encaps").generate_frames(
        dataset.PixelData, number_of_frames=_frame_count(dataset)
    )
    samples = max(4, int(dataset.get("SamplesPerPixel", 1)))
    for frame in frames:
        size = codestream_size(frame)
        if size and (size.pixels > int(dataset.Rows) * int(dataset.Columns) or size.samples > samples):
            raise FileError(
                f"{path} has a frame of {size.width}×{size.height} pixels in it, larger than the"
                f" {dataset.Columns}×{dataset.Rows} that it tells of"
            )


@dataclass(frozen=True)
class _Layout:
    """Where a sample lies among the bits that are allocated for it."""

    allocated: int
    stored: int
    shift: int
    signed: bool

    @classmethod
    def of(cls, dataset: Any) -> _Layout:
        allocated, stored = int(dataset.BitsAllocated), int(dataset.BitsStored)
        if not 1 <= stored <= allocated:
            raise FileError(
                f"{dataset.filename} stores {stored} of {allocated} bits, which is not possible (BitsStored,"
                " BitsAllocated)"
            )
        top = int(get_element(dataset, "HighBit", stored - 1))
        native = not dataset.file_meta.TransferSyntaxUID.is_encapsulated
        shift = top + 1 - stored if native and stored <= top + 1 <= allocated else 0
        return cls(allocated, stored, shift, bool(int(dataset.get("PixelRepresentation", 0))))

    @property
    def range(self) -> StoredRange:
        """The values that it can have."""
        half = 1 << (self.stored - 1)
        return StoredRange(-half, half - 1) if self.signed else StoredRange(0, 2 * half - 1)

    @property
    def kind(self) -> np.dtype[Any]:
        """Of integers that hold what is allocated."""
        return np.dtype(f"{'i' if self.signed else 'u'}{self.allocated // 8}")

    def values(self, cells: Array) -> Array:
        """Samples, whatever is in the bits that are not used."""
        above = self.allocated - self.stored - self.shift
        return np.right_shift(cells << above, above + self.shift) if above or self.shift else cells

    def mixed(self, values: Array, cells: Array) -> Array:
        """Cells with these samples, and with what they have in the bits that are not used."""
        bits = f"u{self.allocated // 8}"
        used = np.array(((1 << self.stored) - 1) << self.shift, bits)
        return np.asarray(((values.view(bits) << self.shift) & used) | (cells.view(bits) & ~used))


def _cells(dataset: Any) -> Array:
    """What lies in the bits that are allocated, those that are not used and all."""
    found = import_optional("pydicom.pixels").pixel_array(dataset, correct_unused_bits=False)
    return np.asarray(found)


def _monochrome(dataset: Any, cells: Array) -> tuple[Array, StoredRange]:
    """The samples of a monochrome image, and what they can be."""
    layout = _Layout.of(dataset)
    syntax = dataset.file_meta.TransferSyntaxUID
    coded = syntax.is_encapsulated and syntax.name != "RLE Lossless"
    if coded and layout.stored < layout.allocated:  # (what a codec says of its samples is what they are)
        if cells.min() < layout.range.low or cells.max() > layout.range.high:
            layout = replace(layout, stored=layout.allocated)
        return cells, replace(layout.range, padding=_padding(dataset, layout))
    stored = replace(layout.range, padding=_padding(dataset, layout))
    values = layout.values(cells)
    measured = stored.valid(cells) if layout.shift == 0 else None
    # (Padding may lie beyond the stored bits: it is known by all of them.)
    return values if measured is None else np.where(measured, values, cells), stored


def _padding(dataset: Any, layout: _Layout) -> tuple[int, int] | None:
    """The first and the last value that say that nothing was measured."""
    found = []
    for name in ("PixelPaddingValue", "PixelPaddingRangeLimit"):
        value = get_element(dataset, name)
        if isinstance(value, int):  # (many write it as if samples had the other sign)
            whole = 1 << layout.allocated
            value = value % whole
            found.append(value - whole if layout.signed and value >= whole // 2 else value)
        elif name == "PixelPaddingValue":
            return None
    return min(found), max(found)


def window(picture: Picture) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The pixels as a screen shows them: 8 bits, by the window that the file asks for, or by their range.

    Padding is black.
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
        except Exception as error:  # (whatever a broken element leads to)
            raise FileError(f"cannot tell how {dataset.filename} is shown: {error}") from None
        if get_element(dataset, "PhotometricInterpretation") == "MONOCHROME1":
            shown = -shown.astype(np.float64)
    valid = picture.stored.valid(pixels) if picture.stored is not None else None
    seen = shown if valid is None or not valid.any() else shown[valid]
    low, high = float(seen.min()), float(seen.max())
    scaled = (shown.astype(np.float64) - low) * (255 / max(high - low, 1e-12)) + 0.5
    if valid is not None:
        scaled[~valid] = 0
    return np.asarray(np.clip(scaled, 0, 255), np.uint8)


def write_dicom(path: Path, picture: Picture) -> None:
    """A copy of the dataset that the picture came from, with these pixels in it."""
    pydicom = import_optional("pydicom")
    source = picture.about.get("dataset")
    if source is None:
        raise ArgumentError(
            "DICOM is written only from a picture that was read from DICOM, for the data of the patient; this"
            f" one came from {picture.kind or 'no file'}: write PNG, TIFF or .npy"
        )
    shape = picture.pixels.shape
    frames = _frame_count(source)
    sizes = (shape[0] if picture.pages else 1, shape[picture.axes[0]], shape[picture.axes[1]])
    if sizes != (frames, source.Rows, source.Columns):
        raise ArgumentError(
            f"the dataset has {frames} frame(s) of {source.Rows}×{source.Columns}, got pixels of {shape}"
        )
    dataset = copy.deepcopy(source)
    if picture.channel_axis is not None:
        _put_colors(dataset, picture)
    else:
        _put_samples(dataset, picture)
    _tell_origin(dataset, source)
    try:
        pydicom.dcmwrite(path, dataset, enforce_file_format=True)
    except OSError:
        raise
    except Exception as error:  # (an element that nobody needed until now)
        reason = " ".join(str(error).partition("Traceback")[0].split())
        raise FileError(
            f"{source.filename} has something besides its pixels that cannot be copied: {reason}"
        ) from None


# What the file says of the values of its samples, besides the bits that they have.
_OF_IMAGE = ("SmallestImagePixelValue", "LargestImagePixelValue")
_OF_OTHERS = (
    "SmallestPixelValueInSeries",
    "LargestPixelValueInSeries",
    "SmallestImagePixelValueInPlane",
    "LargestImagePixelValueInPlane",
    "SmallestValidPixelValue",
    "LargestValidPixelValue",
)


def _put_colors(dataset: Any, picture: Picture) -> None:
    """Red, green and blue; of as many bits as the file has, where it has colours."""
    pixels = picture.pixels[..., :3]
    palette = dataset.get("PhotometricInterpretation") == "PALETTE COLOR"
    if int(dataset.get("SamplesPerPixel", 1)) > 1 and picture.stored is not None:
        stored, kind = picture.stored, _Layout.of(dataset).kind
    elif palette or pixels.dtype == np.uint8:
        stored, kind = StoredRange(0, 255), np.dtype("u1")
    else:
        stored, kind = StoredRange(0, 65535), np.dtype("u2")
    dataset.PhotometricInterpretation = "RGB"
    dataset.SamplesPerPixel = 3
    dataset.PlanarConfiguration = 0
    for name in (*dataset.dir("Palette"), *_OF_IMAGE):
        if name in dataset:
            delattr(dataset, name)
    _put(dataset, stored.fitted(pixels, np.empty(pixels.shape, kind)), stored)


def _put_samples(dataset: Any, picture: Picture) -> None:
    """Samples of a monochrome image; padding, and overlays among their bits, are as they were."""
    if int(dataset.get("SamplesPerPixel", 1)) > 1 or picture.stored is None:
        raise ArgumentError(f"the dataset has colours, got pixels of {picture.pixels.shape}")
    stored, layout = picture.stored, _Layout.of(dataset)
    overlays = _embedded_overlays(dataset)
    if overlays or stored.padding is not None:
        cells = _cells(dataset)
        before = _monochrome(dataset, cells)[0]
    else:
        before = np.empty(picture.pixels.shape, layout.kind)
    made = stored.fitted(picture.pixels, before)
    valid = stored.valid(before) if stored.padding is not None else None
    seen = made if valid is None else made[valid]
    for name, value in zip(_OF_IMAGE, (seen.min(), seen.max()) if seen.size else (), strict=False):
        if name in dataset:
            dataset.add_new(name, "SS" if stored.low < 0 else "US", int(value))
            if not -32768 <= value <= 65535:
                delattr(dataset, name)
    if not overlays:
        _put(dataset, made, stored)
        return
    mixed = layout.mixed(made, cells)
    _put(dataset, mixed if valid is None else np.where(valid, mixed, cells), None)


def _embedded_overlays(dataset: Any) -> bool:
    """Whether bits that samples do not use have overlays in them."""
    groups = range(0x6000, 0x6020, 2)
    return any((group, 0x0102) in dataset and (group, 0x3000) not in dataset for group in groups)


def _put(dataset: Any, cells: Array, stored: StoredRange | None) -> None:
    """Cells as they are kept uncompressed; bits are as before if there is no range."""
    if stored is not None:
        dataset.BitsAllocated = 8 * cells.itemsize
        dataset.BitsStored = stored.high.bit_length() + (stored.low < 0)
        dataset.HighBit = dataset.BitsStored - 1
        dataset.PixelRepresentation = int(stored.low < 0)
    data = np.ascontiguousarray(cells.astype(cells.dtype.newbyteorder("<"))).tobytes()
    dataset.PixelData = data + b"\0" * (len(data) % 2)
    dataset["PixelData"].VR = "OW" if cells.itemsize > 1 else "OB"
    dataset["PixelData"].is_undefined_length = False
    for name in (*_OF_OTHERS, "ExtendedOffsetTable", "ExtendedOffsetTableLengths"):
        if name in dataset:
            delattr(dataset, name)


def _tell_origin(dataset: Any, source: Any) -> None:
    """That it is derived, from what, and by whom; it gets a name of its own."""
    pydicom, uid = import_optional("pydicom"), import_optional("pydicom.uid")
    if "SOPInstanceUID" in source and "SOPClassUID" in source:
        origin = pydicom.Dataset()
        origin.ReferencedSOPClassUID = source.SOPClassUID
        origin.ReferencedSOPInstanceUID = source.SOPInstanceUID
        dataset.SourceImageSequence = pydicom.Sequence([origin])
    dataset.SOPInstanceUID = uid.generate_uid()
    kinds = get_element(dataset, "ImageType", [])
    kinds = [] if isinstance(kinds, str) else list(kinds)
    dataset.ImageType = ["DERIVED", *kinds[1:]] if len(kinds) > 1 else ["DERIVED", "SECONDARY"]
    from .. import __version__

    note = f"filtered with undula {__version__}"
    before = str(get_element(dataset, "DerivationDescription", "")).strip()
    dataset.DerivationDescription = (f"{before}; {note}" if before else note)[-1024:]
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
    if "MediaStorageSOPClassUID" not in dataset.file_meta and "SOPClassUID" in dataset:
        dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
