"""CMYK and Lab are kept if a format stores them, else become RGB, never with a profile of other colours."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from inks import cmyk_profile
from PIL import Image, ImageCms

import undula
from undula import io
from undula.io.filtering import filter_picture

PIPELINE = undula.Pipeline("db2", 2, ["shrink"])
PHOTO = np.dstack([np.add.outer(k * np.arange(40), 3 * np.arange(48)) % 256 for k in (2, 3, 4)]).astype("u1")
NOISY = np.clip(PHOTO + np.random.default_rng(1).normal(0, 9, PHOTO.shape), 0, 255).astype("u1")


def profile_of(space: bytes) -> bytes:
    """A profile of a colour space."""
    if space == b"CMYK":
        return cmyk_profile()
    kind = "LAB" if space == b"Lab " else "sRGB"
    plain = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile(kind)).tobytes())
    plain[16:20] = space
    return bytes(plain)


def loaded(path: Path, mode: str | None = None) -> Any:
    """The pixels as Pillow reads them."""
    with Image.open(path) as image:
        return np.asarray(image.convert(mode) if mode else image)


def space_of(path: Path) -> tuple[str, bytes]:
    """The mode of a file, and the colour space of its profile."""
    with Image.open(path) as image:
        return image.mode, image.info.get("icc_profile", b"")[16:20]


@pytest.mark.parametrize("source", ["jpg", "tif"])
@pytest.mark.parametrize("target", ["jpg", "tif", "png", "webp", "bmp", "gif", "jp2"])
def test_cmyk_keeps_its_profile_or_has_none(source: str, target: str, tmp_path: Path) -> None:
    given, result = tmp_path / f"x.{source}", tmp_path / f"y.{target}"
    Image.fromarray(NOISY).convert("CMYK").save(given, icc_profile=profile_of(b"CMYK"))
    pixels = loaded(given)
    filter_picture(given, result, PIPELINE)
    mode, profile = space_of(result)
    if target in ("jpg", "tif"):
        assert (mode, profile) == ("CMYK", b"CMYK")
        correct = np.dstack([PIPELINE(np.ascontiguousarray(pixels[..., k])) for k in range(4)])
        after = loaded(result)
        assert undula.measures.psnr(after, correct) > (34 if target == "jpg" else 200)
    else:
        assert mode in ("RGB", "P")
        assert profile in (b"", b"RGB ")
        # The profile has no hues: pixels that it converted are grey, others have colours.
        shown = loaded(result, "RGB").astype(int)
        assert np.ptp(shown, axis=-1).max() <= 12
        assert shown.std() > 10


@pytest.mark.parametrize("target", ["tif", "png"])
def test_cmyk_of_16_bits(target: str, tmp_path: Path) -> None:
    inks = np.asarray(Image.fromarray(NOISY).convert("CMYK")).astype("u2") * 257 ^ 3
    tifffile.imwrite(tmp_path / "x.tif", inks, photometric="separated")
    given = io.read(tmp_path / "x.tif")
    np.testing.assert_array_equal(given.pixels, inks)
    io.write(tmp_path / f"y.{target}", given)
    back = io.read(tmp_path / f"y.{target}")
    assert back.pixels.dtype == np.uint16
    if target == "tif":
        np.testing.assert_array_equal(back.pixels, inks)
    else:
        light = 1 - inks / 65535
        np.testing.assert_allclose(back.pixels / 65535, light[..., :3] * light[..., 3:], atol=1e-5)


def test_deep_cmyk_with_a_profile_is_not_converted(tmp_path: Path) -> None:
    inks = np.zeros((8, 8, 4), "u2")
    tifffile.imwrite(tmp_path / "x.tif", inks, photometric="separated", iccprofile=profile_of(b"CMYK"))
    with pytest.raises(undula.UndulaError, match=r"uint16 with a colour profile.*write TIFF"):
        io.write(tmp_path / "y.png", io.read(tmp_path / "x.tif"))


def lab_file(path: Path, dtype: str, photometric: str) -> None:
    """Write Lab as TIFF stores it: a and b signed, or with an offset for ICC."""
    kinds = [ImageCms.createProfile(name) for name in ("sRGB", "LAB")]
    image = ImageCms.applyTransform(Image.fromarray(NOISY), ImageCms.buildTransform(*kinds, "RGB", "LAB"))
    stored = np.asarray(image).astype("i4")  # Converted by Pillow.
    stored[..., 1:] = stored[..., 1:].astype("i1")
    if dtype == "u2":
        stored *= [256 if photometric == "icclab" else 257, 256, 256]
    if photometric == "icclab":
        stored[..., 1:] += 128 if dtype == "u1" else 32768
    pixels = stored.astype(dtype)  # Negative numbers wrap around.
    arguments = {"photometric": photometric, "planarconfig": "contig", "iccprofile": profile_of(b"Lab ")}
    tifffile.imwrite(path, pixels, **arguments)


@pytest.mark.parametrize("photometric", ["cielab", "icclab"])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_lab_is_kept_in_tiff(dtype: str, photometric: str, tmp_path: Path) -> None:
    lab_file(tmp_path / "x.tif", dtype, photometric)
    given = io.read(tmp_path / "x.tif")
    assert given.channels == ("lightness", "a", "b")
    io.write(tmp_path / "same.tif", given)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "same.tif"), tifffile.imread(tmp_path / "x.tif"))
    filter_picture(tmp_path / "x.tif", tmp_path / "y.tif", PIPELINE)
    with tifffile.TiffFile(tmp_path / "y.tif") as file:
        assert file.pages[0].photometric.name == photometric.upper()
        assert file.pages[0].tags["InterColorProfile"].value[16:20] == b"Lab "
    after = io.read(tmp_path / "y.tif").pixels
    correct = np.dstack([PIPELINE(np.ascontiguousarray(given.pixels[..., k])) for k in range(3)])
    np.testing.assert_array_equal(after, correct)
    # Colours near grey, where signed numbers change sign, are smooth.
    assert np.abs(after.astype(float) - given.pixels).max() < (60 if dtype == "u1" else 60 * 256)


@pytest.mark.parametrize("photometric", ["cielab", "icclab"])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize("target", ["png", "jpg", "webp", "bmp", "jp2"])
def test_lab_becomes_srgb_elsewhere(target: str, dtype: str, photometric: str, tmp_path: Path) -> None:
    if dtype == "u2" and target != "png":
        pytest.skip(f"{target} is written with 8-bit colours only")
    lab_file(tmp_path / "x.tif", dtype, photometric)
    io.write(tmp_path / f"y.{target}", io.read(tmp_path / "x.tif"))
    back = io.read(tmp_path / f"y.{target}")
    assert back.channels == ("red", "green", "blue")
    assert (back.profile or b"")[16:20] in (b"", b"RGB ")
    near = back.pixels if dtype == "u1" else (back.pixels / 257).round().astype("u1")
    assert undula.measures.psnr(near, NOISY) > (30 if target == "jpg" else 38)


def test_profiles_of_other_colors_are_dropped(tmp_path: Path) -> None:
    for space, pixels, kept in (
        (b"CMYK", NOISY, False),
        (b"Lab ", NOISY, False),
        (b"GRAY", NOISY, False),
        (b"RGB ", NOISY, True),
        (b"GRAY", NOISY[..., 0], True),
        (b"CMYK", NOISY[..., 0], False),
    ):
        for suffix in ("png", "jpg", "tif"):
            io.write(tmp_path / f"x.{suffix}", io.Picture(pixels, profile=profile_of(space)))
            assert (io.read(tmp_path / f"x.{suffix}").profile is not None) == kept


def test_grey_with_alpha_keeps_its_profile(tmp_path: Path) -> None:
    Image.fromarray(NOISY).convert("LA").save(tmp_path / "x.png", icc_profile=profile_of(b"GRAY"))
    filter_picture(tmp_path / "x.png", tmp_path / "y.png", PIPELINE)
    assert space_of(tmp_path / "y.png") == ("LA", b"GRAY")


@pytest.mark.parametrize("mode", ["P", "PA"])
def test_palettes(mode: str, tmp_path: Path) -> None:
    image = Image.fromarray(NOISY).quantize(16)
    arguments = {"transparency": 3} if mode == "PA" else {}
    image.save(tmp_path / "x.png", **arguments)
    given = io.read(tmp_path / "x.png")
    np.testing.assert_array_equal(
        given.pixels, loaded(tmp_path / "x.png", "RGBA")[..., : len(given.channels)]
    )
    assert ("alpha" in given.channels) == (mode == "PA")


def test_other_inks_than_cmyk_are_refused(tmp_path: Path) -> None:
    tifffile.imwrite(
        tmp_path / "x.tif",
        np.zeros((8, 8, 4), "u1"),
        photometric="separated",
        extratags=[(332, "H", 1, 2, True)],
    )
    with pytest.raises(undula.FileError, match="SEPARATED"):
        io.read(tmp_path / "x.tif")


def test_an_invalid_profile_is_ignored(tmp_path: Path) -> None:
    broken = profile_of(b"CMYK")[:200]
    Image.fromarray(NOISY).convert("CMYK").save(tmp_path / "x.jpg", icc_profile=broken)
    io.write(tmp_path / "y.png", io.read(tmp_path / "x.jpg"))
    assert space_of(tmp_path / "y.png") == ("RGB", b"")
    correct = loaded(tmp_path / "x.jpg", "RGB")
    np.testing.assert_array_equal(io.read(tmp_path / "y.png").pixels, correct)
