"""Metadata survives from every format to every format that stores it, as the table of the documentation says.

Files are written and read by Exiv2 (pyexiv2), Pillow, pillow-heif and tifffile.
"""

import re
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pillow_heif
import pyexiv2
import pytest
import tifffile
from PIL import Image, ImageCms, PngImagePlugin

import undula
from undula import io
from undula.io.filtering import filter_picture
from undula.io.raster import save

pillow_heif.register_heif_opener()
pyexiv2.set_log_level(4)  # Exiv2 has no names for some tags that are kept.

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "photos.md"
GREY = (3 * np.arange(24)[:, None] + 5 * np.arange(32)[None, :]).astype("u1")
PHOTO = np.dstack([GREY, GREY[::-1], GREY[:, ::-1]])
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
PROFILE = SRGB.replace("sRGB".encode("utf-16-be"), "wide".encode("utf-16-be"))
EXIF = {
    "Exif.Image.Make": "Maker",
    "Exif.Image.Artist": "José",
    "Exif.Photo.ISOSpeedRatings": "400",
    "Exif.Photo.ExposureTime": "1/125",
    "Exif.Photo.ExposureBiasValue": "-2/3",
    "Exif.Photo.UserComment": "charset=Ascii hello",
    "Exif.Photo.LensModel": "50mm",
    "Exif.GPSInfo.GPSLatitudeRef": "N",
    "Exif.GPSInfo.GPSLatitude": "47/1 4/1 3/1",
}
XMP = {"Xmp.dc.title": {'lang="x-default"': "Hallo"}, "Xmp.xmp.Rating": "5"}
IPTC = {"Iptc.Application2.City": "Graz", "Iptc.Application2.Keywords": ["cat", "eyes"]}
TEXTS = {"Comment": "a comment", "Description": "a caption", "Title": "Öl", "Author": "日本"}
DPI = (300, 150)
SUFFIXES = {
    "JPEG": "jpg",
    "PNG": "png",
    "TIFF": "tif",
    "WebP": "webp",
    "AVIF": "avif",
    "HEIC": "heic",
    "GIF": "gif",
    "BMP": "bmp",
    "JPEG 2000": "jp2",
    "`.npy`, `.npz`": "npy",
}


def identity(x: Any, **options: Any) -> Any:
    """A filter that changes nothing."""
    return x


@cache
def table() -> dict[str, dict[str, str]]:
    """The table of what is kept, as the guide shows it: by format and by what is kept."""
    section = GUIDE.read_text(encoding="utf-8").partition("## What is kept")[2]
    lines = re.findall(r"^\|(.+)\|$", section.partition("\n## ")[0], re.M)
    head, _, *rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def write_source(path: Path) -> None:
    """Write a photograph with everything that its format and the libraries can store."""
    image, kind = Image.fromarray(PHOTO), path.suffix[1:]
    options: dict[str, Any] = {}
    if kind not in ("gif", "bmp", "jp2"):
        options["icc_profile"] = PROFILE
    if kind in ("jpg", "png", "bmp", "tif"):
        options["dpi"] = DPI
    if kind in ("jpg", "gif", "jp2"):
        options["comment"] = TEXTS["Comment"]
    if kind == "tif":
        options["description"] = TEXTS["Description"]
    if kind == "png":
        options["pnginfo"] = PngImagePlugin.PngInfo()
        for key, text in TEXTS.items():
            options["pnginfo"].add_text(key, text)
    if kind in ("avif", "heic"):  # Exiv2 does not write these.
        write_source(path.with_suffix(".webp"))
        with Image.open(path.with_suffix(".webp")) as other:
            exif = other.info["exif"] if kind == "heic" else without_orientation(other.info["exif"])
            options |= {"exif": exif, "xmp": other.info["xmp"]}
    image.save(path, **options)
    if kind in ("jpg", "png", "tif", "webp"):
        exif = EXIF | {"Exif.Image.Orientation": "6"}
        if kind == "webp":
            exif |= {"Exif.Image.XResolution": f"{DPI[0]}/1", "Exif.Image.YResolution": f"{DPI[1]}/1"}
        with pyexiv2.Image(str(path)) as file:
            file.modify_exif(exif)
            file.modify_xmp(XMP)
            if kind != "webp":
                file.modify_iptc(IPTC)


def without_orientation(exif: bytes) -> bytes:
    """Pillow encodes EXIF data with an orientation anew when it writes AVIF, and replaces accents."""
    order = "<" if exif[:2] == b"II" else ">"
    return exif.replace(struct.pack(f"{order}HHI", 274, 3, 1), struct.pack(f"{order}HHI", 65000, 3, 1))


def pixels(path: Path, mode: str) -> Any:
    """The pixels of a file, as NumPy or Pillow reads them."""
    if path.suffix == ".npy":
        return np.load(path)
    with Image.open(path) as image:
        return np.asarray(image.convert(mode))


def kept(path: Path) -> dict[str, bool]:
    """What a file contains, as other libraries read it."""
    with Image.open(path) as image:
        image.load()
        info, texts = image.info, dict(getattr(image, "text", {}))
        description = getattr(image, "tag_v2", {}).get(270)
    with pyexiv2.Image(str(path)) as file:
        exif, xmp, iptc = file.read_exif(), file.read_xmp(), file.read_iptc()
    resolution = info.get("dpi")
    if resolution is None and "Exif.Image.XResolution" in exif:
        resolution = [eval(exif[f"Exif.Image.{axis}Resolution"]) for axis in "XY"]
    comment = info.get("comment", b"")
    found = {name: texts[name] for name in TEXTS if name in texts}
    if path.suffix in (".jpg", ".gif", ".jp2") and not comment.startswith(b"Created by"):
        found |= {"Comment": comment.rstrip(b"\0").decode()} if comment else {}
    if path.suffix == ".tif" and description:
        found["Description"] = description
    assert all(TEXTS[name] == text for name, text in found.items())
    return {
        "EXIF": EXIF.items() <= exif.items(),
        "XMP": xmp == XMP,
        "IPTC": iptc == IPTC,
        "ICC profile": info.get("icc_profile") == PROFILE,
        "resolution": resolution is not None and sorted(map(round, resolution)) == sorted(DPI),
        **{f"text {name}": name in found for name in TEXTS},
    }


def expected(label: str) -> dict[str, bool]:
    """What the table says of a format."""
    row = table()[label]
    columns = ("EXIF", "XMP", "IPTC", "ICC profile", "resolution")
    texts = {"yes": set(TEXTS), "comment": {"Comment"}, "description": {"Description"}, "–": set()}
    return {column: row[column] == "yes" for column in columns} | {
        f"text {name}": name in texts[row["texts"]] for name in TEXTS
    }


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for suffix in SUFFIXES.values():
        if suffix != "npy":
            write_source(folder / f"x.{suffix}")
    return folder


def test_table_lists_every_format_that_is_written() -> None:
    assert list(table()) == list(SUFFIXES)
    kinds = {io.IMAGES[f".{suffix}"] for suffix in SUFFIXES.values()}
    assert kinds == set(io.IMAGES.values()) - {"dicom", "npz"}


@pytest.mark.parametrize("source", [name for name in SUFFIXES if SUFFIXES[name] != "npy"])
def test_sources_contain_what_the_table_lists(source: str, sources: Path) -> None:
    """Otherwise the next test would find nothing to lose."""
    found = kept(sources / f"x.{SUFFIXES[source]}")
    missing = [name for name, value in expected(source).items() if value and not found[name]]
    assert missing == []


@pytest.mark.parametrize("target", SUFFIXES)
@pytest.mark.parametrize("source", [name for name in SUFFIXES if SUFFIXES[name] != "npy"])
def test_everything_survives_that_both_formats_store(
    source: str, target: str, sources: Path, tmp_path: Path
) -> None:
    before, after = sources / f"x.{SUFFIXES[source]}", tmp_path / f"y.{SUFFIXES[target]}"
    lost = ", ".join(filter_picture(before, after, identity).lost)
    stored, storable = expected(source), expected(target)
    survives = {name: stored[name] and storable[name] for name in stored}
    if (source, target) == ("TIFF", "PNG"):  # The description is in the EXIF data, and readers find it there.
        survives["text Description"] = False
    if target != "`.npy`, `.npz`":
        found = kept(after)
        assert {name: found[name] for name in survives} == survives
    for name, label in {
        "EXIF": "EXIF",
        "XMP": "XMP",
        "IPTC": "IPTC",
        "ICC profile": "colour profile",
    }.items():
        assert (label in lost.replace("EXIF, XMP or IPTC of JPEG 2000", "")) == (
            stored[name] and not storable[name]
        )
    for name in TEXTS:
        assert (name in lost) == (
            stored[f"text {name}"] and not survives[f"text {name}"] and source != "TIFF"
        )
    if stored["resolution"] and not storable["resolution"] and not stored["EXIF"]:
        assert "resolution" in lost


@pytest.mark.parametrize("target", SUFFIXES)
def test_orientation_is_stored_or_applied(target: str, sources: Path, tmp_path: Path) -> None:
    after = tmp_path / f"y.{SUFFIXES[target]}"
    filter_picture(sources / "x.png", after, identity)
    # Pillow turns TIFF upright.
    stored = tifffile.imread(after) if target == "TIFF" else pixels(after, "RGB")
    turned = stored.shape[:2] == PHOTO.shape[1::-1]
    if target == "HEIC":  # libheif turns the pixels of HEIC upright.
        assert turned
        assert pillow_heif.open_heif(after).info["exif"][6:8] in (b"II", b"MM")
        turned = False
    assert table()[target]["orientation"] == ("turned" if turned else "yes")


@pytest.mark.parametrize("target", SUFFIXES)
def test_transparency(target: str, tmp_path: Path) -> None:
    alpha = np.where(np.arange(32) < 16, 0, 255) + np.zeros((24, 1), int)
    few_colors = PHOTO // 64 * 64  # GIF stores 256.
    picture = io.Picture(np.dstack([few_colors, alpha.astype("u1")]))
    after = tmp_path / f"y.{SUFFIXES[target]}"
    if table()[target]["transparency"] == "–":
        with pytest.raises(undula.ArgumentTypeError, match="no alpha"):
            io.write(after, picture)
        return
    io.write(after, picture)
    np.testing.assert_array_equal(pixels(after, "RGBA")[..., 3], alpha)


def test_exif_data_are_kept_byte_for_byte(sources: Path, tmp_path: Path) -> None:
    given = io.read(sources / "x.jpg")
    for suffix in ("jpg", "png", "webp", "heic"):
        save(tmp_path / f"y.{suffix}", given.with_pixels(given.pixels[:8]))
        assert io.read(tmp_path / f"y.{suffix}").exif[-200:] == given.exif[-200:] or suffix in (
            "webp",
            "heic",
        )
    turned = tmp_path / "turned.jpg"
    io.write(turned, given.upright())
    exif = io.read(turned).exif
    assert len(exif) == len(given.exif)
    assert sum(a != b for a, b in zip(exif, given.exif, strict=True)) == 1  # The orientation.


def test_maker_notes(sources: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    path.write_bytes((sources / "x.jpg").read_bytes())
    with pyexiv2.Image(str(path)) as file:
        file.modify_exif({"Exif.Photo.MakerNote": "1 2 3 4 5 6 7 8 9"})
    for suffix, lost in (
        ("png", ()),
        ("webp", ("IPTC", "text (Comment)")),
        ("tif", ("maker notes", "text (Comment)")),
    ):
        assert save(tmp_path / f"y.{suffix}", io.read(path)) == lost
        with pyexiv2.Image(str(tmp_path / f"y.{suffix}")) as file:
            assert ("Exif.Photo.MakerNote" in file.read_exif()) == (suffix != "tif")


def test_data_that_do_not_fit_into_a_jpeg(tmp_path: Path) -> None:
    picture = io.Picture(PHOTO, xmp=b"<x>" + b" " * 70_000, iptc=b"\x1c\x02" * 40_000)
    with pytest.warns(
        UserWarning, match=r"y.jpg does not keep XMP of more than 64 kB, IPTC of more than 64 kB"
    ):
        io.write(tmp_path / "y.jpg", picture)
    io.write(tmp_path / "y.png", picture)
    back = io.read(tmp_path / "y.png")
    assert (back.xmp, back.iptc) == (picture.xmp, picture.iptc)


def test_parts_that_are_not_read_are_named(sources: Path, tmp_path: Path) -> None:
    layers = tmp_path / "layers.tif"
    block = b"Adobe Photoshop Document Data Block\0MIB8"
    Image.fromarray(PHOTO).save(layers, tiffinfo={37724: block})
    assert io.read(layers).lost == ("layers",)
    both = [Image.fromarray(PHOTO), Image.fromarray(PHOTO[::-1])]
    both[0].save(tmp_path / "x.mpo", format="MPO", save_all=True, append_images=both[1:])
    assert io.read(tmp_path / "x.mpo").lost == ("1 further image",)
    xmp = (
        b'<x:xmpmeta xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1" MotionPhoto="1"/>'
    )
    both[0].save(tmp_path / "x.jpg", xmp=xmp)
    assert io.read(tmp_path / "x.jpg").lost == ("HDR gain map", "video of the motion photo")
    heif = pillow_heif.from_pillow(both[0])
    heif.add_from_pillow(both[1])
    heif.save(tmp_path / "x.heic")
    assert io.read(tmp_path / "x.heic").lost == ("1 further image",)
    assert io.read(sources / "x.jp2").lost == ()
    with pyexiv2.Image(str(sources / "x.jp2")) as file:
        file.modify_xmp(XMP)
    assert io.read(sources / "x.jp2").lost == ("EXIF, XMP or IPTC of JPEG 2000",)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("exif", [b"Exif\0\0", b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0 damaged", b"II"])
def test_damaged_exif_data_do_not_stop_a_filter(exif: bytes, tmp_path: Path) -> None:
    Image.fromarray(PHOTO).save(tmp_path / "x.jpg", exif=exif)
    picture = io.read(tmp_path / "x.jpg")
    assert picture.orientation == 1
    for suffix in ("jpg", "png", "tif", "webp", "heic"):
        save(tmp_path / f"y.{suffix}", picture)
        assert io.read(tmp_path / f"y.{suffix}").pixels.shape == PHOTO.shape


def test_colour_chunks_of_png_are_kept(tmp_path: Path) -> None:
    info = PngImagePlugin.PngInfo()
    info.add(b"gAMA", struct.pack(">I", 100_000))
    Image.fromarray(PHOTO).save(tmp_path / "x.png", pnginfo=info)
    io.write(tmp_path / "y.png", io.read(tmp_path / "x.png"))
    with Image.open(tmp_path / "y.png") as image:
        assert image.info["gamma"] == 1.0
    deep = io.read(tmp_path / "x.png").with_pixels(PHOTO.astype("u2") * 257)
    io.write(tmp_path / "deep.png", deep)
    with Image.open(tmp_path / "deep.png") as image:
        assert image.info["gamma"] == 1.0


def test_texts_of_a_png_with_16_bits(sources: Path, tmp_path: Path) -> None:
    given = io.read(sources / "x.png")
    io.write(tmp_path / "y.png", given.with_pixels(given.pixels.astype("u2") * 257))
    assert all(kept(tmp_path / "y.png").values())


def test_srgb_profile_is_no_loss(tmp_path: Path) -> None:
    assert save(tmp_path / "y.bmp", io.Picture(PHOTO, profile=SRGB)) == ()
    assert save(tmp_path / "z.bmp", io.Picture(PHOTO, profile=PROFILE)) == ("colour profile",)
