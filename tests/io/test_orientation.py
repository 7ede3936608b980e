"""Images stay upright, from every format to every format."""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

import undula
from undula import io
from undula.io.filtering import filter_picture

# Different along both axes and from every corner; smooth, so that JPEG is close.
GREY = (3 * np.arange(24)[:, None] + 5 * np.arange(32)[None, :]).astype("u1")
DEEP = np.dstack([GREY, GREY[::-1], GREY[:, ::-1]]).astype("u2") * 257
SOURCES = ["jpg", "png", "webp", "tif", "lzw.tif", "deep.tif", "deep.png"]
TARGETS = ["jpg", "png", "webp", "tif", "bmp", "gif", "jp2", "npy", "npz"]
DEEP_TARGETS = ["png", "tif", "npy", "npz"]


def identity(x: Any, **options: Any) -> Any:
    """A filter that changes nothing."""
    return x


def write_oriented(path: Path, orientation: int) -> None:
    """Write an image with a tag for the orientation, by Pillow or tifffile."""
    exif = Image.Exif()
    exif[274] = orientation
    if path.name.endswith("deep.png"):  # Pillow does not write colours of 16 bits.
        io.write(path, DEEP)
        data, body = path.read_bytes(), b"eXIf" + exif.tobytes().removeprefix(b"Exif\0\0")
        chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
        path.write_bytes(data[:33] + chunk + data[33:])
    elif path.name.endswith("lzw.tif"):
        Image.fromarray(GREY).save(path, compression="tiff_lzw", tiffinfo={274: orientation})
    elif path.suffix == ".tif":
        pixels = DEEP if "deep" in path.name else GREY
        tifffile.imwrite(path, pixels, extratags=[(274, "H", 1, orientation, True)])
    else:
        arguments = {"webp": {"lossless": True}, "jpg": {"quality": 100}}.get(path.suffix[1:], {})
        Image.fromarray(GREY).save(path, exif=exif, **arguments)


def displayed(path: Path) -> Any:
    """The pixels as a viewer displays them, in 8 bits."""
    if path.suffix in (".npy", ".npz"):
        stored = np.load(path)
        pixels = stored["image"] if path.suffix == ".npz" else stored
        return pixels if pixels.dtype == np.uint8 else (pixels >> 8).astype("u1")
    if path.suffix == ".tif" and "lzw" not in path.name:
        with tifffile.TiffFile(path) as file:
            pixels, tag = file.asarray(), file.pages[0].tags.get("Orientation")
        image = Image.fromarray(pixels if pixels.dtype == np.uint8 else (pixels >> 8).astype("u1"))
        exif = Image.Exif()
        exif[274] = 1 if tag is None else int(tag.value)
        image.info["exif"] = exif.tobytes()
        return np.asarray(ImageOps.exif_transpose(image))
    with Image.open(path) as image:  # Pillow turns a TIFF upright when it loads it.
        turned = ImageOps.exif_transpose(image)
        return np.asarray(turned if turned.mode in ("L", "RGB") else turned.convert("RGB"))


PAIRS = [
    (source, target)
    for source in SOURCES
    for target in TARGETS
    if "deep" not in source or target in DEEP_TARGETS
]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda name: name)
def test_images_stay_upright(source: str, target: str, orientation: int, tmp_path: Path) -> None:
    before, after = tmp_path / f"x.{source}", tmp_path / f"y.{target}"
    write_oriented(before, orientation)
    shown = displayed(before)
    assert shown.shape[:2] == ((24, 32) if orientation < 5 else (32, 24))
    filter_picture(before, after, identity)
    result = displayed(after)
    if result.ndim == 3 and shown.ndim == 2:  # WebP has no grey.
        result = result[..., 1]
    assert result.shape == shown.shape
    assert np.abs(result.astype(int) - shown).max() <= (6 if "jpg" in (source, target) else 1)


@pytest.mark.parametrize("target", ["png", "jpg", "tif", "bmp"])
def test_resolution_turns_with_the_pixels(target: str, tmp_path: Path) -> None:
    tifffile.imwrite(
        tmp_path / "x.tif",
        GREY,
        resolution=(200, 100),
        resolutionunit=2,
        extratags=[(274, "H", 1, 6, True)],
    )
    filter_picture(tmp_path / "x.tif", tmp_path / f"y.{target}", identity)
    with Image.open(tmp_path / f"y.{target}") as image:
        dpi = image.info["dpi"]
    assert dpi == pytest.approx((100, 200) if target == "bmp" else (200, 100), abs=0.1)


def test_every_page_stores_its_orientation(tmp_path: Path) -> None:
    io.write(tmp_path / "x.tif", io.Picture(np.stack([GREY, GREY[::-1]]), pages=True, orientation=8))
    with tifffile.TiffFile(tmp_path / "x.tif") as file:
        assert [page.tags["Orientation"].value for page in file.pages] == [8, 8]
    io.write(tmp_path / "y.gif", io.read(tmp_path / "x.tif"))
    np.testing.assert_array_equal(io.read(tmp_path / "y.gif").pixels[1, ..., 0], np.rot90(GREY[::-1]))


def test_exif_data_are_kept(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[271], exif[274] = "a maker", 3
    Image.fromarray(GREY).save(tmp_path / "x.jpg", exif=exif)
    given = io.read(tmp_path / "x.jpg")
    assert given.orientation == 3
    io.write(tmp_path / "y.jpg", given.upright())
    with Image.open(tmp_path / "y.jpg") as image:
        assert image.getexif()[271] == "a maker"
        assert image.getexif().get(274, 1) == 1


@pytest.mark.parametrize("value", [0, 9, 700])
def test_invalid_orientations_are_errors(value: int, tmp_path: Path) -> None:
    write_oriented(tmp_path / "x.jpg", value)
    write_oriented(tmp_path / "x.tif", value)
    assert io.read(tmp_path / "x.jpg").orientation == io.read(tmp_path / "x.tif").orientation == 1
    with pytest.raises(undula.ArgumentError, match="from 1 to 8"):
        io.Picture(GREY, orientation=value)
