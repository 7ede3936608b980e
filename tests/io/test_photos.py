"""HEIC, AVIF and raw photographs, and the quality of JPEG."""

from pathlib import Path
from typing import Any

import numpy as np
import pillow_heif
import pytest
import rawpy
import skimage.data
import tifffile
from PIL import Image, JpegImagePlugin

import undula
from undula import io
from undula.io.files import detect_kind
from undula.io.preview import detailed_region, write_preview

pillow_heif.register_heif_opener()
PHOTO = skimage.data.astronaut()[40:136, 60:188].copy()
PHOTO[:6, :6] = 255  # LibRaw takes the brightest sample of a raw file as white.
# The Bayer filter of an sRGB camera, so that a developed file has the colours of the photograph.
LINEAR = np.where(PHOTO <= 10.3, PHOTO / 3294.6, ((PHOTO / 255 + 0.055) / 1.055) ** 2.4)
XYZ_TO_SRGB = [
    3.2404542,
    -1.5371385,
    -0.4985314,
    -0.969266,
    1.8760108,
    0.041556,
    0.0556434,
    -0.2040259,
    1.0572252,
]


def write_dng(path: Path, orientation: int = 1) -> None:
    """Write a raw file of 14 bits by tifffile."""
    mosaic = np.zeros(PHOTO.shape[:2])
    for row, column, channel in ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2)):
        mosaic[row::2, column::2] = LINEAR[row::2, column::2, channel]
    matrix = tuple(number for value in XYZ_TO_SRGB for number in (round(value * 10_000), 10_000))
    tags: list[tuple[Any, ...]] = [
        (271, 2, 0, "Maker", True),
        (272, 2, 0, "Model", True),
        (274, 3, 1, orientation, True),
        (33421, 3, 2, (2, 2), True),
        (33422, 1, 4, bytes([0, 1, 1, 2]), True),
        (50706, 1, 4, bytes([1, 4, 0, 0]), True),
        (50708, 2, 0, "Maker Model", True),
        (50714, 3, 1, 256, True),
        (50717, 3, 1, 16_383, True),
        (50721, 10, 9, matrix, True),
        (50728, 5, 3, (1, 1, 1, 1, 1, 1), True),
        (50778, 3, 1, 21, True),
    ]
    stored = np.round(256 + mosaic * (16_383 - 256)).astype("u2")
    tifffile.imwrite(path, stored, photometric=32803, planarconfig=1, extratags=tags)


@pytest.mark.parametrize("name", ["x.dng", "x.tif", "x"])
def test_raw_files_are_developed(name: str, tmp_path: Path) -> None:
    write_dng(tmp_path / name)
    assert detect_kind(tmp_path / name) == "raw"
    picture = io.read(tmp_path / name)
    assert picture.kind == "raw"
    assert picture.pixels.dtype == np.uint16
    assert undula.measures.psnr(PHOTO / 255, picture.pixels / 65535) > 25
    with rawpy.imread(str(tmp_path / name)) as raw:
        expected = raw.postprocess(use_camera_wb=True, output_bps=16, no_auto_bright=True, gamma=(2.4, 12.92))
    np.testing.assert_array_equal(picture.pixels, expected)
    io.write(tmp_path / "y.jpg", picture)
    with Image.open(tmp_path / "y.jpg") as image:
        assert image.getexif()[272] == "Model"
    io.write(tmp_path / "y.png", picture)
    np.testing.assert_array_equal(io.read(tmp_path / "y.png").pixels, expected)


def test_raw_files_are_upright(tmp_path: Path) -> None:
    write_dng(tmp_path / "x.dng", 6)
    turned = io.read(tmp_path / "x.dng")
    assert turned.pixels.shape == (128, 96, 3)
    assert turned.orientation == 1
    assert undula.measures.psnr(np.rot90(PHOTO, -1) / 255, turned.pixels / 65535) > 25


def test_raw_files_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(undula.FileError, match=r"raw files.*read, not written"):
        io.write(tmp_path / "x.nef", PHOTO)
    write_dng(tmp_path / "x.dng")
    with pytest.raises(undula.FileError, match="limit is 1,000"):
        io.read(tmp_path / "x.dng", max_pixels=1000)
    (tmp_path / "y.dng").write_bytes((tmp_path / "x.dng").read_bytes()[:2000])
    with pytest.raises(undula.FileError, match="cannot read"):
        io.read(tmp_path / "y.dng")


@pytest.mark.parametrize("suffix", ["heic", "avif"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_heic_and_avif(suffix: str, channels: int, tmp_path: Path) -> None:
    alpha = np.where(np.arange(128) < 50, 0, 255) + np.zeros((96, 1), int)
    pixels = np.dstack([PHOTO, alpha])[..., {1: [1], 2: [1, 3], 3: [0, 1, 2], 4: [0, 1, 2, 3]}[channels]]
    names = (
        *("grey",) * (channels < 3),
        *("red", "green", "blue") * (channels > 2),
        *("alpha",) * (1 - channels % 2),
    )
    picture = io.Picture(pixels.astype("u1"), channels=names)
    path = tmp_path / f"x.{suffix}"
    io.write(path, picture)
    assert detect_kind(path) == {"heic": "heif"}.get(suffix, suffix)
    back = io.read(path)
    with Image.open(path) as other:
        np.testing.assert_array_equal(np.asarray(other), back.pixels)
    shown = picture.for_screen().pixels
    if back.pixels.ndim > shown.ndim:
        shown = np.dstack([shown] * 3)
    visible = np.nonzero(alpha) if channels in (2, 4) else ...
    assert undula.measures.psnr(shown[visible], back.for_screen().pixels[visible]) > 38
    small = tmp_path / f"small.{suffix}"
    io.write(small, picture, quality=20)
    assert small.stat().st_size < 0.6 * path.stat().st_size


def test_deep_heic(tmp_path: Path) -> None:
    deep = PHOTO.astype("u2") * 257
    io.write(tmp_path / "x.heic", deep)
    picture = io.read(tmp_path / "x.heic")
    assert picture.pixels.dtype == np.uint16
    assert pillow_heif.open_heif(tmp_path / "x.heic").info["bit_depth"] == 10
    assert undula.measures.psnr(deep, picture.pixels, 65535) > 38
    with pytest.warns(UserWarning, match="more than 8 bits per sample"):
        io.write(tmp_path / "y.jpg", picture)
    assert undula.measures.psnr(PHOTO, io.read(tmp_path / "y.jpg").pixels) > 35
    with pytest.raises(undula.ArgumentTypeError, match="8 or 10 bits"):
        io.write(tmp_path / "z.heic", PHOTO / 255)
    with pytest.raises(undula.ArgumentTypeError, match="one page"):
        io.write(tmp_path / "z.heic", io.Picture(PHOTO[None], pages=True))


def test_hdr_colours_of_heic(tmp_path: Path) -> None:
    file = pillow_heif.from_bytes("RGB;16", (128, 96), (PHOTO.astype("u2") * 257).tobytes())
    file.save(tmp_path / "x.heic", color_primaries=9, transfer_characteristics=16, matrix_coefficients=9)
    picture = io.read(tmp_path / "x.heic")
    io.write(tmp_path / "y.heic", picture)
    colors = pillow_heif.open_heif(tmp_path / "y.heic").info["nclx_profile"]
    assert (colors["color_primaries"], colors["transfer_characteristics"]) == (9, 16)
    with pytest.warns(UserWarning, match="HDR brightness curve"):
        io.write(tmp_path / "y.png", picture)


def test_frames_of_an_avif(tmp_path: Path) -> None:
    io.write(tmp_path / "x.avif", io.Picture(np.stack([PHOTO, PHOTO[::-1]]), pages=True))
    back = io.read(tmp_path / "x.avif")
    assert back.pages
    assert undula.measures.psnr(PHOTO[::-1], back.pixels[1]) > 38


@pytest.mark.parametrize("content", [b"\0\0\0\x18ftypheic", b"\0\0\0\x18ftypavif", b"\0\0\0\x18ftypcrx "])
def test_damaged_photographs_are_errors(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content + bytes(100))
    with pytest.raises(undula.FileError, match="cannot read"):
        io.read(tmp_path / "x")


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize(("quality", "subsampling"), [(60, 2), (93, 1), (75, 0)])
def test_jpeg_keeps_its_quality(mode: str, quality: int, subsampling: int, tmp_path: Path) -> None:
    image = Image.fromarray(PHOTO).convert(mode)
    image.save(tmp_path / "x.jpg", quality=quality, subsampling=subsampling, progressive=True)
    io.write(tmp_path / "y.jpg", io.read(tmp_path / "x.jpg"))
    with Image.open(tmp_path / "x.jpg") as before, Image.open(tmp_path / "y.jpg") as after:
        assert after.quantization == before.quantization
        assert JpegImagePlugin.get_sampling(after) == JpegImagePlugin.get_sampling(before)
        assert after.info["progressive"]
    io.write(tmp_path / "z.jpg", io.read(tmp_path / "x.jpg"), quality=99)
    image.save(tmp_path / "best.jpg", quality=99)
    with Image.open(tmp_path / "best.jpg") as expected, Image.open(tmp_path / "z.jpg") as after:
        assert after.quantization == expected.quantization


def test_quality_of_webp(tmp_path: Path) -> None:
    io.write(tmp_path / "x.webp", PHOTO)
    np.testing.assert_array_equal(io.read(tmp_path / "x.webp").pixels, PHOTO)
    io.write(tmp_path / "y.webp", PHOTO, quality=50)
    assert (tmp_path / "y.webp").stat().st_size < (tmp_path / "x.webp").stat().st_size / 4


# --- previews -------------------------------------------------------------------------------------


def test_preview_shows_texture_rather_than_one_edge() -> None:
    image = np.zeros((300, 400))
    image[:, 50:] = 100.0  # A strong edge.
    image[150:250, 250:350] += 10 * np.random.default_rng(0).random((100, 100))
    row, column = detailed_region(image, 100, 100)
    assert (row, column) == (150, 250)


@pytest.mark.parametrize(
    "pixels",
    [
        PHOTO,
        PHOTO[..., 0],
        PHOTO.astype("u2") * 257,
        PHOTO[..., 0] / 1000.0,
        np.dstack([PHOTO, PHOTO[..., :1]]),
        np.stack([PHOTO, PHOTO]),
        PHOTO[:1, :1],
        np.tile(PHOTO, (6, 5, 1)),
    ],
    ids=lambda pixels: f"{pixels.dtype}{pixels.shape}",
)
def test_preview_of_any_image(pixels: Any, tmp_path: Path) -> None:
    before = io.Picture(pixels, pages=pixels.ndim == 4)
    after = before.with_pixels((pixels / 2).astype(pixels.dtype))
    write_preview(tmp_path / "p.png", before, after)
    shown = io.read(tmp_path / "p.png").pixels.astype(int)
    width = (shown.shape[1] - 36) // 2
    left, right = shown[34:-28, 12 : 12 + width], shown[34:-28, 24 + width : -12]
    assert left.shape == right.shape
    if pixels.shape[-1] != 4 and pixels.dtype != np.float64:  # Transparent parts are white in both.
        np.testing.assert_allclose(right, left / 2, atol=2)
    if pixels is PHOTO:
        scale = width // PHOTO.shape[1]
        np.testing.assert_array_equal(left[::scale, ::scale], PHOTO)


def test_errors_of_libraw_are_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.nef"
    path.write_bytes(b"II*\0" + bytes(100))
    with pytest.raises(undula.FileError, match=r"bad\.nef as raw: Unsupported file format"):
        io.read(path)
