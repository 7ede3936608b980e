"""Read the pixels of a DICOM file, and write filtered ones to a valid copy of its dataset.

The copy is a derived image with a UID of its own. It says what it was derived from and by what, and leaves
all elements of the patient and the study unchanged. As in the standard, a *cell* is the word of allocated
bits that contains the stored bits of a sample.
"""

from __future__ import annotations

import copy
import io
import zlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, FileError, MissingExtraError, install_hint
from .derivation import OVERLAY_GROUPS, Derivation, get_element
from .files import check_size, import_optional
from .foreign import foreign_code
from .limits import MAX_METADATA_BYTES, codestream_size, inflates_beyond
from .picture import Picture
from .stored import StoredRange

__all__ = [
    "check_pixels",
    "get_element",
    "read_dicom",
    "read_header",
    "refuse_map",
    "without_image",
    "write_dicom",
]

Array = NDArray[Any]
PIXEL_DATA_TAG = 0x7FE00010
UNDEFINED_LENGTH = 0xFFFFFFFF  # of an element that ends with a delimiter
ELEMENT_HEAD_BYTES = 8  # The tag and the length of an element, at least.


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


def read_header(path: Path) -> Any:
    """Read the elements of a dataset before its pixels."""
    with foreign_code(f"cannot read {path} as dicom"):
        return _header(path, _deflated_part(path))


def without_image(path: Path, maps: bool = True) -> str:
    """Say why a DICOM file is not filtered with others: it has no image, or a map that is not asked for.

    Files whose header is cut off or damaged count as images, so that their error is reported.
    """
    try:
        header = read_header(path)
    except MissingExtraError:
        raise
    except Exception:  # pydicom raises all kinds of errors for damaged files.
        return ""
    if "Rows" not in header:
        return "" if _is_damaged(header) else "DICOM without an image"
    name = map_name(header)
    return f"{name}, which --maps includes" if name and not maps else ""


def _is_damaged(header: Any) -> bool:
    """Return whether a dataset has no elements, or its file ends within one, or within the tag of one."""
    tags = [tag for tag in header.keys() if tag.group not in (0, 2)]  # noqa: SIM118 (it would decode them)
    last = header.get_item(tags[-1]) if tags else None
    length = getattr(last, "length", UNDEFINED_LENGTH)  # Elements that pydicom has decoded were complete.
    if last is None or length == UNDEFINED_LENGTH:
        return last is None
    name = getattr(header, "filename", None)  # There is none for deflated datasets.
    rest = Path(name).stat().st_size - last.value_tell - length if name else 0
    return len(last.value or b"") < length or 0 < rest < ELEMENT_HEAD_BYTES


# Images whose samples are quantities or labels, by the UID of their class.
_MAPS = {
    "1.2.840.10008.5.1.4.1.1.481.2": "dose grid",
    "1.2.840.10008.5.1.4.1.1.30": "parametric map",
    "1.2.840.10008.5.1.4.1.1.66.4": "segmentation",
    "1.2.840.10008.5.1.4.1.1.66.7": "label map",
    "1.2.840.10008.5.1.4.1.1.81.1": "thickness map",
    "1.2.840.10008.5.1.4.1.1.82.1": "topography map",
}
_MAP_MODALITIES = {"RTDOSE": "dose grid", "SEG": "segmentation"}  # of other classes


def map_name(header: Any) -> str:
    """Return what the samples of a dataset are if they are no brightness, such as ``"dose grid"``."""
    name = _MAPS.get(str(get_element(header, "SOPClassUID", "")), "")
    return name or _MAP_MODALITIES.get(str(get_element(header, "Modality", "")), "")


def refuse_map(path: Path, header: Any) -> None:
    """Raise an error for an image whose samples are quantities or labels."""
    if name := map_name(header):
        raise FileError(
            f"{path} is a {name}: its samples are measurements or labels, which filters for pictures falsify;"
            " maps=True filters it all the same"
        )


def check_pixels(path: Path, header: Any) -> None:
    """Raise an error unless a DICOM file with this header has pixels, which are not read."""
    _check_size_elements(path, header)
    if not _may_have_pixels(path):
        raise FileError(f"{path} is a DICOM file without an image: it has no PixelData")


def _may_have_pixels(path: Path) -> bool:
    """Return whether there is anything after the header of a DICOM file; unknown if it is deflated."""
    if _deflated_part(path) is not None:
        return True
    with path.open("rb") as file:
        import_optional("pydicom").dcmread(file, stop_before_pixels=True, force=True)
        return bool(file.read(1))


def _check_size_elements(path: Path, header: Any) -> None:
    for name in ("Rows", "Columns"):
        if name not in header and _is_damaged(header):
            raise FileError(f"{path} is cut off or damaged: its DICOM header ends before its {name}")
        if name not in header:
            raise FileError(f"{path} is a DICOM file without an image: it has no {name}")


def _header(path: Path, deflated: bytes | None) -> Any:
    """Read the elements before the pixels; ``deflated`` are the bytes that contain them, if not the file."""
    if deflated is None:
        return import_optional("pydicom").dcmread(path, stop_before_pixels=True, force=True)
    start = zlib.decompressobj(-zlib.MAX_WBITS).decompress(deflated, MAX_METADATA_BYTES)
    return import_optional("pydicom.filereader").read_dataset(
        io.BytesIO(start), False, True, stop_when=lambda tag, vr, length: tag >= PIXEL_DATA_TAG
    )


def _dataset(path: Path, max_pixels: int | None) -> Any:
    """Read a dataset after its header has been checked."""
    pydicom = import_optional("pydicom")
    deflated = _deflated_part(path)
    header = _header(path, deflated)
    nbytes = _check_header(path, header, max_pixels)
    if deflated is not None and inflates_beyond(deflated, nbytes + MAX_METADATA_BYTES, -zlib.MAX_WBITS):
        raise FileError(
            f"{path} decompresses to more than its {nbytes:,} bytes of pixels and {MAX_METADATA_BYTES:,}"
            " bytes of other elements"
        )
    dataset = pydicom.dcmread(path, force=True)
    if "PixelData" not in dataset:
        for name in ("FloatPixelData", "DoubleFloatPixelData"):
            if name in dataset:
                raise FileError(f"{path} has samples of floating point ({name}), which are not supported")
        check_pixels(path, header)
        raise FileError(f"{path} is cut off or damaged: its PixelData cannot be read")
    if "TransferSyntaxUID" not in dataset.file_meta:
        if not nbytes <= len(dataset.PixelData) <= nbytes + 1:
            raise FileError(f"{path} does not declare how its pixels are encoded (no TransferSyntaxUID)")
        dataset.file_meta.TransferSyntaxUID = _uncompressed_syntax(dataset)
    if dataset.file_meta.TransferSyntaxUID.is_encapsulated:
        _check_decoder(path, dataset.file_meta.TransferSyntaxUID)
        _check_frames(path, dataset)
    return dataset


def _check_decoder(path: Path, syntax: Any) -> None:
    """Raise an error if pixels of a transfer syntax cannot be decoded."""
    try:
        is_available = import_optional("pydicom.pixels").get_decoder(syntax).is_available
    except NotImplementedError:
        raise FileError(f"{path} is compressed as {syntax.name}, which pydicom cannot decode") from None
    if not is_available:
        raise MissingExtraError(
            f"{path} is compressed as {syntax.name}, whose decoder is not installed: {install_hint('dicom')}"
        )


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
    _check_size_elements(path, header)
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


def write_dicom(
    path: Path, picture: Picture, kind: str, *, derivation: Derivation | None = None, **options: Any
) -> None:
    """Write a copy of the dataset that a picture was read from, with these pixels.

    Pixels that were compressed are compressed again, without loss.
    """
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
    dataset.file_meta.TransferSyntaxUID = import_optional("pydicom.uid").ExplicitVRLittleEndian
    (derivation or Derivation()).apply(dataset, source)
    _keep_compression(dataset, source)
    # Other elements are converted only now, and may be malformed.
    problem = f"{source.filename} has elements besides its pixels that cannot be copied"
    with foreign_code(problem, OSError):
        # Some files declare explicit VRs and have none; pydicom supplies those of elements that are read.
        if any(element.VR is None for element in dataset.values() if element.tag < PIXEL_DATA_TAG):
            deque(dataset.iterall(), maxlen=0)
        pydicom.dcmwrite(path, dataset, enforce_file_format=True)


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
    return any((group, 0x0102) in dataset and (group, 0x3000) not in dataset for group in OVERLAY_GROUPS)


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


def _keep_compression(dataset: Any, source: Any) -> None:
    """Compress the pixels without loss if those of the source are compressed and an encoder is installed."""
    uid, pixel_tools = import_optional("pydicom.uid"), import_optional("pydicom.pixels")
    before = source.file_meta.TransferSyntaxUID
    if before == uid.DeflatedExplicitVRLittleEndian:
        dataset.file_meta.TransferSyntaxUID = before
    if not before.is_encapsulated:
        return
    _declare_loss(dataset, source)
    if "RLE" in before.name:
        syntax = uid.RLELossless
    else:  # DCMTK and others decode JPEG-LS, but not JPEG 2000.
        syntax = uid.JPEG2000Lossless if "JPEG 2000" in before.name else uid.JPEGLSLossless
        bits = _SampleBits.from_dataset(dataset)
        cells = np.frombuffer(dataset.PixelData, bits.dtype)
        # These encoders drop unused bits, which may contain overlays or padding.
        if cells.min() < bits.range.low or cells.max() > bits.range.high:
            return
    if not pixel_tools.get_encoder(syntax).is_available:
        return
    color = dataset.PhotometricInterpretation
    if syntax == uid.JPEG2000Lossless and color == "RGB":
        dataset.PhotometricInterpretation = "YBR_RCT"  # The encoder converts to it.
    try:
        pixel_tools.compress(dataset, syntax, generate_instance_uid=False)
    except (ValueError, RuntimeError):  # Encoders cannot store all depths, and nothing has been changed.
        dataset.PhotometricInterpretation = color


# Methods of lossy compression by the names of transfer syntaxes.
_LOSSY_METHODS = {
    "JPEG Baseline (Process 1)": "ISO_10918_1",
    "JPEG Extended (Process 2 and 4)": "ISO_10918_1",
    "JPEG-LS Lossy (Near-Lossless) Image Compression": "ISO_14495_1",
    "JPEG 2000 Image Compression": "ISO_15444_1",
    "High-Throughput JPEG 2000 Image Compression": "ISO_15444_15",
}


def _declare_loss(dataset: Any, source: Any) -> None:
    """Declare that the pixels were compressed with loss, unless the source says whether they were."""
    method = _LOSSY_METHODS.get(source.file_meta.TransferSyntaxUID.name)
    if "LossyImageCompression" in source or method is None:
        return
    dataset.LossyImageCompression = "01"
    dataset.LossyImageCompressionMethod = method
    dataset.LossyImageCompressionRatio = round(len(dataset.PixelData) / len(source.PixelData), 2)
