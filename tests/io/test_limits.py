"""Files that declare, or decompress to, more than allowed are refused before memory is allocated."""

import io as bytes_io
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
import tifffile
from PIL import Image
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
)

import undula
from undula import io
from undula.cli import main

SIDE = 2000  # 4 million pixels; the limit is one million
LIMIT = 1_000_000
EMPTY = np.zeros((SIDE, SIDE), np.uint8)


def _pillow(suffix: str, **options: Any) -> Callable[[Path], None]:
    return lambda path: Image.fromarray(EMPTY).save(path, suffix.upper(), **options)


def _npz(path: Path) -> None:
    np.savez_compressed(path, EMPTY.astype("f8"))


def _header_of_npz(path: Path) -> None:
    head = bytes_io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (SIDE, SIDE)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("image.npy", head.getvalue() + b"\0" * 80)


def _npy(path: Path) -> None:
    np.save(path, EMPTY)


def _tiff(path: Path) -> None:
    tifffile.imwrite(path, EMPTY, compression="zlib")


def _pages(path: Path) -> None:
    tifffile.imwrite(path, EMPTY.reshape(100, 100, 400), compression="zlib")


def _gif_frame(path: Path) -> None:
    """A frame that is larger than the logical screen."""
    Image.fromarray(EMPTY).save(path, "GIF")
    data = bytearray(path.read_bytes())
    data[6:10] = struct.pack("<HH", 10, 10)
    path.write_bytes(data)


def _gif_frames(path: Path) -> None:
    frames = [Image.fromarray(EMPTY[:400, :400] + k) for k in range(8)]
    frames[0].save(path, "GIF", save_all=True, append_images=frames[1:])


def _jp2(path: Path) -> None:
    """A box that contradicts the codestream."""
    Image.fromarray(EMPTY).save(path, "JPEG2000")
    data = path.read_bytes()
    size = struct.pack(">II", SIDE, SIDE)
    path.write_bytes(data.replace(b"ihdr" + size, b"ihdr" + struct.pack(">II", 10, 10)))


def _dataset(rows: int, columns: int, syntax: Any) -> Any:
    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = syntax
    dataset.SOPClassUID, dataset.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.7", "1.2.3"
    dataset.Rows, dataset.Columns, dataset.SamplesPerPixel = rows, columns, 1
    dataset.PhotometricInterpretation, dataset.PixelRepresentation = "MONOCHROME2", 0
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 8, 8, 7
    return dataset


def _dicom(path: Path, syntax: Any = ExplicitVRLittleEndian) -> None:
    dataset = _dataset(SIDE, SIDE, syntax)
    dataset.add_new("PixelData", "OB", EMPTY.tobytes())
    dataset.save_as(path, enforce_file_format=True)


def _deflated_dicom(path: Path) -> None:
    _dicom(path, DeflatedExplicitVRLittleEndian)


def _deflated_element(path: Path) -> None:
    """Few pixels, and another element that is large."""
    dataset = _dataset(10, 10, DeflatedExplicitVRLittleEndian)
    dataset.add_new("PixelData", "OB", bytes(100))
    dataset.add_new((0x7FE1, 0x0010), "LO", "somebody")
    dataset.add_new((0x7FE1, 0x1000), "OB", bytes(40 << 20))
    dataset.save_as(path, enforce_file_format=True)


def _coded_frame(path: Path, kind: str, syntax: Any) -> None:
    """A frame that is larger than the dataset declares."""
    coded = bytes_io.BytesIO()
    Image.fromarray(EMPTY).save(coded, kind, **({"no_jp2": True} if kind == "JPEG2000" else {}))
    dataset = _dataset(10, 10, syntax)
    dataset.add_new("PixelData", "OB", pydicom.encaps.encapsulate([coded.getvalue()]))
    dataset["PixelData"].is_undefined_length = True
    dataset.save_as(path, enforce_file_format=True)


def _jpeg_frame(path: Path) -> None:
    _coded_frame(path, "JPEG", JPEGBaseline8Bit)


def _jpeg2000_frame(path: Path) -> None:
    _coded_frame(path, "JPEG2000", JPEG2000Lossless)


def _tiff_strip(path: Path) -> None:
    """A strip that decompresses to far more than its size."""
    tifffile.imwrite(path, np.zeros((10, 10), np.uint8))
    with tifffile.TiffFile(path) as file:
        tags = file.pages[0].tags
        places = {name: tags[name].valueoffset for name in ("StripOffsets", "StripByteCounts", "Compression")}
    packed = zlib.compress(bytes(40 << 20))
    data = bytearray(path.read_bytes())
    for name, value in (("StripOffsets", len(data)), ("StripByteCounts", len(packed)), ("Compression", 8)):
        kind = "<H" if name == "Compression" else "<I"
        struct.pack_into(kind, data, places[name], value)
    path.write_bytes(data + packed)


def _tiff_tile(path: Path) -> None:
    """A tile that is far larger than the image."""
    tifffile.imwrite(path, np.zeros((16, 16), np.uint8), tile=(16, 16))
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as file:
        for name in ("TileWidth", "TileLength"):
            tag = file.pages[0].tags[name]
            struct.pack_into("<H" if int(tag.dtype) == 3 else "<I", data, tag.valueoffset, 60_000)
    path.write_bytes(data)


def _png_profile(path: Path) -> None:
    """A colour profile that decompresses to far more than allowed."""
    io.write(path, np.zeros((10, 10, 3), np.uint16))
    data = path.read_bytes()
    profile = b"profile\0\0" + zlib.compress(bytes(40 << 20))
    chunk = (
        struct.pack(">I", len(profile)) + b"iCCP" + profile + struct.pack(">I", zlib.crc32(b"iCCP" + profile))
    )
    path.write_bytes(data[:33] + chunk + data[33:])


BOMBS: dict[str, Callable[[Path], None]] = {
    "x.png": _pillow("png"),
    "x.jpg": _pillow("jpeg"),
    "x.bmp": _pillow("bmp"),
    "x.webp": _pillow("webp", lossless=True),
    "x.gif": _pillow("gif"),
    "frame.gif": _gif_frame,
    "frames.gif": _gif_frames,
    "x.jp2": _jp2,
    "x.tif": _tiff,
    "pages.tif": _pages,
    "strip.tif": _tiff_strip,
    "tile.tif": _tiff_tile,
    "profile.png": _png_profile,
    "x.npy": _npy,
    "x.npz": _npz,
    "header.npz": _header_of_npz,
    "x.dcm": _dicom,
    "deflated.dcm": _deflated_dicom,
    "element.dcm": _deflated_element,
    "jpeg.dcm": _jpeg_frame,
    "jpeg2000.dcm": _jpeg2000_frame,
}


@pytest.mark.parametrize("name", BOMBS)
def test_declared_sizes_are_checked_before_memory_is_allocated(name: str, tmp_path: Path) -> None:
    path, packed = tmp_path / name, name in ("deflated.dcm", "element.dcm")
    BOMBS[name](path)
    io.read(io.sample("scene"))  # Memory for imports is not counted.
    tracemalloc.start()
    try:
        with pytest.raises(undula.FileError, match=rf"{path.name}.*(limit|larger|more than)"):
            io.read(path, max_pixels=LIMIT)
        # The start of a deflated dataset is decompressed to find the size.
        assert tracemalloc.get_traced_memory()[1] < (36 << 20 if packed else 4_000_000)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "pixels"),
    [
        ("x.npy", np.zeros((30, 30), "c16")),
        ("x.npz", np.zeros((30, 30), "c16")),
        ("x.tif", np.zeros((30, 30, 5))),
    ],
)
def test_bytes_are_counted_too(name: str, pixels: Any, tmp_path: Path) -> None:
    if name == "x.tif":
        tifffile.imwrite(tmp_path / name, pixels, photometric="minisblack", planarconfig="contig")
    else:
        (np.save if name == "x.npy" else np.savez)(tmp_path / name, pixels)
    with pytest.raises(undula.FileError, match=r"(14,400|14,528|36,000) bytes.*limit.*8,000"):
        io.read(tmp_path / name, max_pixels=1000)


def test_coefficients_have_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    io.write(tmp_path / "x.png", EMPTY[:64, :64])
    source = tmp_path / "c.npz"
    assert main(["transform", str(tmp_path / "x.png"), str(source)]) == 0
    given = dict(np.load(source))
    words = list(given.pop("coeffs"))
    huge = {name: np.zeros((3000, 3000)) for name in ("low",)}
    cases = {
        "limit": (words, huge),
        "4,096,000,000 pixels": (
            [w if not w.startswith("shape") else "shape=64000,64000" for w in words],
            {},
        ),
        "level": ([w if not w.startswith("level") else "level=999999999" for w in words], {}),
    }
    for about, (header, more) in cases.items():
        np.savez_compressed(tmp_path / "bad.npz", coeffs=np.array(header), **(given | more))
        capsys.readouterr()
        given_words = [
            "inverse",
            str(tmp_path / "bad.npz"),
            str(tmp_path / "y.png"),
            "--max-pixels",
            str(LIMIT),
        ]
        assert main(given_words) == 1
        assert about in capsys.readouterr().err
    assert main(["inverse", str(source), str(tmp_path / "y.png")]) == 0
    assert main(["inverse", str(source), str(tmp_path / "y.png"), "--max-pixels", "1000"]) == 1
