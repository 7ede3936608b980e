"""Images are written and read in every format and depth; damaged files are errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skimage.data
from PIL import Image, ImageCms
from pydicom import dcmread, examples

import undula
from undula import io
from undula.io.raster import save

PHOTO = skimage.data.astronaut()[40:131, 60:157]
GREY = skimage.data.camera()[40:131, 60:157]
DEEP = (PHOTO.astype("u2") * 257) ^ np.arange(97, dtype="u2")[:, None]
OPAQUE = np.dstack([PHOTO, GREY])
FLOATS = GREY.astype("f4") / 7

LOSSLESS = [
    ("png", GREY),
    ("png", PHOTO),
    ("png", OPAQUE),
    ("png", DEEP[..., 0]),
    ("png", DEEP),
    ("png", np.dstack([DEEP, DEEP[..., 0]])),
    ("tif", GREY),
    ("tif", PHOTO),
    ("tif", OPAQUE),
    ("tiff", DEEP),
    ("tif", FLOATS),
    ("tif", GREY.astype("i4") - 100),
    ("bmp", GREY),
    ("bmp", PHOTO),
    ("webp", PHOTO),
    ("webp", OPAQUE),
    ("jp2", GREY),
    ("jp2", PHOTO),
    ("jp2", DEEP[..., 1]),
    ("npy", FLOATS),
    ("npy", DEEP),
    ("npz", GREY),
]


@pytest.mark.parametrize(
    ("suffix", "pixels"), LOSSLESS, ids=lambda v: v if isinstance(v, str) else f"{v.dtype}{v.shape}"
)
def test_lossless_files_keep_every_bit(suffix: str, pixels: Any, tmp_path: Path) -> None:
    io.write(tmp_path / f"some.{suffix}", pixels)
    back = io.read(tmp_path / f"some.{suffix}")
    assert back.pixels.dtype == pixels.dtype
    np.testing.assert_array_equal(back.pixels, pixels)
    assert back.channel_axis == (2 if pixels.ndim == 3 else None)
    again = tmp_path / f"again.{suffix}"
    io.write(again, back)
    np.testing.assert_array_equal(io.read(again).pixels, pixels)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([f"some.{suffix}", f"again.{suffix}"])


def test_other_libraries_read_the_files(tmp_path: Path) -> None:
    import tifffile

    for suffix in ("png", "bmp", "webp", "jp2", "tif"):
        io.write(tmp_path / f"x.{suffix}", PHOTO)
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / f"x.{suffix}")), PHOTO)
    io.write(tmp_path / "deep.tif", DEEP)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "deep.tif"), DEEP)
    io.write(tmp_path / "deep.png", DEEP)  # Pillow reads 8 of the 16 bits.
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "deep.png")), (DEEP >> 8).astype("u1"))


@pytest.mark.parametrize("suffix", ["jpg", "jpeg"])
def test_jpeg_is_close(suffix: str, tmp_path: Path) -> None:
    io.write(tmp_path / f"x.{suffix}", PHOTO)
    back = io.read(tmp_path / f"x.{suffix}")
    assert back.kind == "jpeg"
    assert undula.measures.psnr(PHOTO, back.pixels) > 35


@pytest.mark.parametrize(
    "pixels", [np.stack([GREY, GREY[::-1]]), np.stack([PHOTO, PHOTO[::-1], PHOTO[:, ::-1]])]
)
def test_pages(pixels: Any, tmp_path: Path) -> None:
    io.write(tmp_path / "x.tif", io.Picture(pixels, pages=True))
    back = io.read(tmp_path / "x.tif")
    assert back.pages
    np.testing.assert_array_equal(back.pixels, pixels)
    io.write(tmp_path / "x.npy", io.Picture(pixels, pages=True))
    np.testing.assert_array_equal(io.read(tmp_path / "x.npy").pixels, pixels)


def test_frames_of_a_gif_keep_their_times(tmp_path: Path) -> None:
    frames = [Image.fromarray(np.roll(GREY, 9 * k, axis=0)) for k in range(3)]
    frames[0].save(
        tmp_path / "x.gif", save_all=True, append_images=frames[1:], duration=[40, 80, 120], loop=2
    )
    given = io.read(tmp_path / "x.gif")
    assert given.pages
    assert len(given.pixels) == 3
    io.write(tmp_path / "y.gif", given)
    back = io.read(tmp_path / "y.gif")
    assert back.about["durations"] == [40, 80, 120]
    assert back.about["loop"] == 2
    assert undula.measures.psnr(back.pixels, given.pixels) > 30


def test_profiles_and_orientation_survive(tmp_path: Path) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    exif = Image.Exif()
    exif[274] = 6
    exif[271] = "a maker"
    Image.fromarray(PHOTO).save(tmp_path / "x.jpg", icc_profile=profile, exif=exif, dpi=(300, 300))
    given = io.read(tmp_path / "x.jpg")
    for suffix in ("jpg", "png", "webp"):
        io.write(tmp_path / f"y.{suffix}", given)
        with Image.open(tmp_path / f"y.{suffix}") as image:
            assert image.info["icc_profile"] == profile
            assert image.getexif()[274] == 6
            assert image.getexif()[271] == "a maker"
    io.write(tmp_path / "y.tif", io.Picture(DEEP, profile=profile, orientation=6))
    back = io.read(tmp_path / "y.tif")
    assert back.profile == profile
    assert back.orientation == 6
    io.write(tmp_path / "deep.png", io.Picture(DEEP, profile=profile))
    assert io.read(tmp_path / "deep.png").profile == profile


@pytest.mark.parametrize("mode", ["1", "P", "L", "LA", "RGB", "RGBA", "CMYK", "I;16"])
def test_every_mode_of_pillow(mode: str, tmp_path: Path) -> None:
    kind = "tif" if mode == "CMYK" else "png"
    image = Image.fromarray(DEEP[..., 0]) if mode == "I;16" else Image.fromarray(PHOTO).convert(mode)
    if mode == "CMYK":
        image.save(tmp_path / "x.jpg")
        kind = "jpg"
    else:
        image.save(tmp_path / f"x.{kind}")
    pixels = io.read(tmp_path / f"x.{kind}").pixels
    assert pixels.dtype == (np.uint16 if mode == "I;16" else np.uint8)
    assert pixels.shape[:2] == PHOTO.shape[:2]


# --- DICOM ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rgb_color", "ybr_color", "palette_color", "ct", "mr", "overlay"])
def test_dicom_keeps_the_patient_and_gets_a_new_uid(name: str, tmp_path: Path) -> None:
    source = examples.get_path(name)
    given = io.read(source)
    pixels = given.pixels.copy()
    rows = (slice(None),) * given.axes[0] + (slice(20, 40),)
    pixels[rows] //= 2
    lost = save(tmp_path / "out.dcm", given.with_pixels(pixels))
    assert lost == (("icon image",) if name == "overlay" else ())
    before, after = dcmread(source), dcmread(tmp_path / "out.dcm")
    np.testing.assert_array_equal(after.pixel_array, pixels)
    for element in before:
        group = element.tag.group
        is_of_series = element.keyword in ("SeriesInstanceUID", "SeriesNumber")
        if (group in (0x0010, 0x0020) and not is_of_series) or element.keyword in (
            "StudyDate",
            "Modality",
            "Rows",
            "Columns",
            "Manufacturer",
        ):
            assert after[element.tag] == element
    assert after.SOPInstanceUID != before.get("SOPInstanceUID")
    assert after.SOPInstanceUID == after.file_meta.MediaStorageSOPInstanceUID
    assert "undula" in after.DerivationDescription
    assert after.ImageType[0] == "DERIVED"
    assert io.window(given).dtype == np.uint8
    again = io.read(tmp_path / "out.dcm")
    np.testing.assert_array_equal(again.pixels, pixels)


def test_dicom_without_an_image(tmp_path: Path) -> None:
    broken = tmp_path / "x.dcm"
    broken.write_bytes(b"\0" * 200)
    with pytest.raises(undula.FileError):
        io.read(broken)


def test_dicom_is_written_from_dicom_only(tmp_path: Path) -> None:
    with pytest.raises(undula.ArgumentError, match="data of the patient"):
        io.write(tmp_path / "x.dcm", GREY)
    given = io.read(examples.get_path("ct"))
    with pytest.raises(undula.ArgumentError, match="the dataset has"):
        io.write(tmp_path / "x.dcm", given.with_pixels(given.pixels[:10]))
    assert not list(tmp_path.iterdir())


# --- what goes wrong ------------------------------------------------------------------------------


def test_formats_are_detected_by_content(tmp_path: Path) -> None:
    io.write(tmp_path / "x.png", PHOTO)
    (tmp_path / "x.png").rename(tmp_path / "x.jpg")
    assert io.read(tmp_path / "x.jpg").kind == "png"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"nothing that anybody knows, but long enough" * 9, "no file format"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "png"),
        (b"\xff\xd8\xff\xe0 and no more", "jpeg"),
        (b"II*\0\xff\xff\xff\xff", "no images|tiff"),
        (b"PK\x03\x04 no archive", "npz"),
        (b"\x93NUMPY\x01\0v\0{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "npy"),
        (b"GIF89a\0", "gif"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "jpeg2000"),
        (b"\0" * 128 + b"DICM" + b"\x02\0\0\0", "dicom|DICOM"),
        (b"\x1aE\xdf\xa3 matroska", "video"),
    ],
)
def test_damaged_files_are_errors(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(undula.FileError, match=message):
        io.read(tmp_path / "x.bin")


def test_huge_declared_sizes_are_errors(tmp_path: Path) -> None:
    io.write(tmp_path / "x.png", GREY)
    data = bytearray((tmp_path / "x.png").read_bytes())
    data[16:24] = (60_000).to_bytes(4, "big") * 2
    import zlib

    data[29:33] = zlib.crc32(bytes(data[12:29])).to_bytes(4, "big")
    (tmp_path / "x.png").write_bytes(bytes(data))
    with pytest.raises(undula.FileError, match=r"3,600,000,000 pixels.*max_pixels"):
        io.read(tmp_path / "x.png")
    io.write(tmp_path / "y.tif", GREY)
    with pytest.raises(undula.FileError, match="limit is 1,000"):
        io.read(tmp_path / "y.tif", max_pixels=1000)


@pytest.mark.parametrize(
    ("name", "pixels", "message"),
    [
        ("x.jpg", DEEP, "8 bits"),
        ("x.bmp", OPAQUE, "no alpha"),
        ("x.png", FLOATS, "8 or 16 bits"),
        ("x.webp", DEEP, "8 bits"),
        ("x.png", np.stack([GREY] * 2, axis=-1), "channels"),
        ("x.xyz", GREY, "suffix"),
        ("x.mp4", GREY, "video"),
    ],
)
def test_pixels_that_a_format_cannot_store(name: str, pixels: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        io.write(tmp_path / name, pixels)
    assert not list(tmp_path.iterdir())


def test_paths_that_cannot_be_written_or_read(tmp_path: Path) -> None:
    with pytest.raises(undula.FileError, match="cannot write"):
        io.write(tmp_path / "no folder" / "x.png", GREY)
    with pytest.raises(undula.FileError, match="cannot read"):
        io.read(tmp_path / "nothing.png")


# --- measures -------------------------------------------------------------------------------------


def test_measures_equal_those_of_scikit_image() -> None:
    from skimage.metrics import peak_signal_noise_ratio, structural_similarity

    rough = np.clip(PHOTO + np.random.default_rng(0).normal(0, 20, PHOTO.shape), 0, 255).astype("u1")
    assert undula.measures.psnr(PHOTO, rough) == pytest.approx(peak_signal_noise_ratio(PHOTO, rough))
    expected = structural_similarity(PHOTO, rough, channel_axis=-1)
    assert undula.measures.ssim(PHOTO, rough, channel_axis=-1) == pytest.approx(expected, abs=1e-6)
    floats = GREY / 255.0
    expected = structural_similarity(floats, floats**1.1, data_range=1)
    assert undula.measures.ssim(floats, floats**1.1) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(undula.ArgumentError, match="same shape"):
        undula.measures.psnr(GREY, PHOTO)


def test_colours_of_tiff_are_not_mistaken(tmp_path: Path) -> None:
    import tifffile

    Image.fromarray(PHOTO).convert("CMYK").save(tmp_path / "cmyk.tif")
    expected = np.asarray(Image.open(tmp_path / "cmyk.tif").convert("RGB"))
    np.testing.assert_array_equal(io.read(tmp_path / "cmyk.tif").as_rgb().pixels, expected)
    Image.fromarray(PHOTO).convert("P").save(tmp_path / "p.tif")
    assert io.read(tmp_path / "p.tif").pixels.shape == PHOTO.shape
    tifffile.imwrite(tmp_path / "white.tif", GREY, photometric="miniswhite", description="my words")
    io.write(tmp_path / "again.tif", io.read(tmp_path / "white.tif"))
    with tifffile.TiffFile(tmp_path / "again.tif") as file:
        assert file.pages[0].photometric.name == "MINISWHITE"
        assert file.pages[0].description == "my words"
    np.testing.assert_array_equal(
        np.asarray(Image.open(tmp_path / "again.tif")), np.asarray(Image.open(tmp_path / "white.tif"))
    )


def test_nothing_is_dropped_silently(tmp_path: Path) -> None:
    import tifffile

    with tifffile.TiffWriter(tmp_path / "x.tif") as file:
        file.write(GREY)
        file.write(PHOTO)
        file.write(DEEP[:20, :20, 0])
    with pytest.raises(undula.FileError, match="3 series"):
        io.read(tmp_path / "x.tif")
    np.savez(tmp_path / "two.npz", a=GREY, b=GREY)
    with pytest.raises(undula.FileError, match="2 arrays"):
        io.read(tmp_path / "two.npz")
    np.savez(tmp_path / "named.npz", scan=GREY)
    io.write(tmp_path / "again.npz", io.read(tmp_path / "named.npz"))
    with np.load(tmp_path / "again.npz") as arrays:
        assert arrays.files == ["scan"]


def test_frames_of_a_png(tmp_path: Path) -> None:
    io.write(tmp_path / "x.png", io.Picture(np.stack([PHOTO, PHOTO[::-1]]), pages=True))
    back = io.read(tmp_path / "x.png")
    assert back.pages
    np.testing.assert_array_equal(back.pixels, np.stack([PHOTO, PHOTO[::-1]]))


@pytest.mark.parametrize(("old", "new"), [("look", "probe"), ("LIMIT", "DEFAULT_MAX_PIXELS")])
def test_deprecated_names_warn_and_work(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"io.{old} is deprecated; use undula.io.{new}"):
        assert getattr(io, old) is getattr(io, new)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = io.no_such_name
